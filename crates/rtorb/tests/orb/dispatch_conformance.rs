//! The conformance suite of the dispatch axis: whichever threads serve, these are the same.
//!
//! A case is a strategy, or a thread pool of an adapter, with a number of threads; every check of the other files runs for every case, as a test named
//! `CASE::CHECK`.

mod calls;
mod clients;
mod ends;
mod pools;
mod servants;

use pools::{Pool, lane};
use rtorb::interceptors::ServerRequestInterceptor;
use rtorb::{DispatchStrategy, Orb, OrbBuilder, Poa};
use rtorb_tests::loopback::own_endpoint;
use rtorb_tests::ours::Ours;
use rtorb_tests::scheduling::TimeSharing;

/// The cases: name, what serves, and how many calls at a time.
macro_rules! cases {
    ($($name:ident: $serving:ident($what:ident), $threads:literal;)*) => {
        $(mod $name {
            use super::*;

            const CASE: Case = Case {
                serving: serving!($serving $what),
                threads: $threads,
            };
            every_check!(CASE);
        })*

        #[test]
        fn every_strategy_is_a_case() {
            let cases = [$(serving!($serving $what)),*];
            for (name, dispatch) in DispatchStrategy::ALL {
                let is_it = |case: &Serving| matches!(case, Serving::Strategy(way) if *way == dispatch);
                assert!(cases.iter().any(is_it), "{name} is no case of this suite");
            }
        }
    };
}

macro_rules! serving {
    (Strategy $way:ident) => {
        Serving::Strategy(DispatchStrategy::$way)
    };
    (Intercepted $way:ident) => {
        Serving::Intercepted(DispatchStrategy::$way)
    };
    (Pool $kind:ident) => {
        Serving::Pool(Pool::$kind)
    };
}

macro_rules! every_check {
    ($case:ident) => {
        every_check! { $case;
            calls::operations_are_right_in_every_version_and_byte_order,
            calls::operations_are_right_over_a_unix_socket,
            calls::operations_are_right_through_shared_memory,
            calls::operations_are_right_in_fragments_both_ways,
            calls::thirty_two_threads_do_not_disturb_each_other,
            calls::requests_that_do_not_wait_for_replies_are_each_answered_once,
            calls::requests_are_found_wherever_the_stream_is_cut,
            calls::oneways_are_all_carried_out_and_never_answered,
            calls::fragments_of_several_requests_may_come_in_turn,
            calls::objects_are_located_in_every_version,
            calls::a_request_that_is_cancelled_leaves_the_connection_good,
            calls::unknown_keys_and_operations_have_their_own_exceptions,
            clients::a_wrong_header_ends_the_connection_and_no_other,
            clients::a_message_cut_off_anywhere_harms_nobody,
            clients::clients_that_never_finish_a_header_keep_nobody_waiting,
            clients::a_client_that_leaves_in_the_middle_of_its_reply_harms_nobody,
            clients::a_client_that_leaves_while_its_request_is_served_harms_nobody,
            clients::clients_that_take_no_replies_are_left_and_the_others_are_served,
            clients::an_idle_connection_gives_way_to_one_too_many,
            clients::a_client_is_refused_when_all_connections_are_busy,
            clients::random_messages_harm_nobody,
            servants::a_panic_is_unknown_for_its_caller_and_nothing_for_others,
            servants::a_call_that_takes_long_holds_up_no_more_than_its_thread,
            servants::more_calls_than_threads_are_all_answered,
            servants::a_servant_may_call_its_server_where_another_thread_serves,
            servants::an_object_that_goes_answers_right_or_is_gone,
            servants::a_call_in_progress_is_answered_although_its_object_goes,
            ends::a_server_that_ends_leaves_no_client_waiting,
            ends::a_call_in_progress_is_answered_before_the_server_ends,
            ends::requests_that_wait_when_the_server_ends_are_answered_or_told,
            ends::a_servant_may_end_its_server,
            ends::its_socket_file_is_gone_and_later_clients_are_refused,
            ends::its_servants_are_dropped_although_they_hold_the_orb,
        }
    };
    ($case:ident; $($file:ident::$check:ident,)*) => {
        $(#[test]
        fn $check() {
            $file::$check($case);
        })*
    };
}

cases! {
    thread_per_connection: Strategy(ThreadPerConnection), 0;
    reactive: Strategy(Reactive), 1;
    worker_pool: Strategy(WorkerPool), 4;
    worker_pool_of_one: Strategy(WorkerPool), 1;
    leader_followers: Strategy(LeaderFollowers), 4;
    leader_followers_of_one: Strategy(LeaderFollowers), 1;
    filter_chain: Strategy(FilterChain), 4;
    filter_chain_of_one: Strategy(FilterChain), 1;
    thread_per_request: Strategy(ThreadPerRequest), 0;
    lanes: Strategy(Lanes), 4;
    lanes_of_one: Strategy(Lanes), 1;
    intercepted_thread_per_connection: Intercepted(ThreadPerConnection), 0;
    intercepted_worker_pool: Intercepted(WorkerPool), 4;
    intercepted_lanes: Intercepted(Lanes), 4;
    pool: Pool(Plain), 4;
    pool_of_one: Pool(Plain), 1;
    pool_that_grows: Pool(Growing), 4;
    pool_that_buffers: Pool(Buffering), 4;
    pool_of_one_that_buffers: Pool(Buffering), 1;
    pool_of_lanes: Pool(Lanes), 4;
    pool_of_lanes_that_borrow: Pool(Borrowing), 4;
    pool_of_lanes_of_one: Pool(Lanes), 1;
    pool_of_lanes_by_deadline: Pool(Deadlines), 1;
}

/// Changes nothing.
struct Onlooker;

impl ServerRequestInterceptor for Onlooker {}

/// A way to serve, with a number of threads.
#[derive(Clone, Copy)]
struct Case {
    serving: Serving,
    /// How many calls are served at a time; 0 is as many as there are connections or requests.
    threads: u32,
}

/// What serves the objects of a case.
#[derive(Clone, Copy)]
enum Serving {
    /// The ORB's own threads.
    Strategy(DispatchStrategy),
    /// The ORB's own threads, and interceptors that see each request.
    Intercepted(DispatchStrategy),
    /// A thread pool of their adapter.
    Pool(Pool),
}

impl Case {
    fn builder(self) -> OrbBuilder {
        let lane = lane(0, self.threads.max(1));
        let builder = Orb::builder().priority_mapping(TimeSharing);
        let builder = match self.serving {
            Serving::Intercepted(_) => builder.server_interceptor(Onlooker),
            _ => builder,
        };
        match self.serving {
            // Levels need real-time priorities, which they do not get where the host refuses them.
            Serving::Pool(Pool::Deadlines) => Orb::builder().best_effort(),
            Serving::Pool(_) => builder,
            Serving::Strategy(dispatch) | Serving::Intercepted(dispatch) => builder
                .dispatch(dispatch)
                .pool_threads(lane.static_threads as usize)
                .lanes([lane]),
        }
    }

    fn serve(self) -> Ours {
        self.serve_as(self.builder().listen(&own_endpoint()))
    }

    fn serve_as(self, builder: OrbBuilder) -> Ours {
        Ours::serve_in(builder, |orb| self.adapter(orb))
    }

    fn adapter(self, orb: &Orb) -> Poa {
        match self.serving {
            Serving::Strategy(_) | Serving::Intercepted(_) => {
                orb.root_poa().expect("the ORB can listen")
            }
            Serving::Pool(pool) => pool.adapter(orb, self.threads),
        }
    }

    fn is_reactive(self) -> bool {
        matches!(self.serving, Serving::Strategy(DispatchStrategy::Reactive))
    }

    /// How many calls can be held up while another one is served still.
    fn spare_threads(self) -> usize {
        match self.threads {
            0 => 8,
            threads => threads as usize - 1,
        }
    }
}
