//! Thread pools under load: which thread serves what, how many wait, and what becomes of those for whom there is no room.
//!
//! Tests of order and of counts, not of time. Most of them map every CORBA priority to time sharing, so that they need no
//! privilege: the lanes are told apart all the same.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rtorb::endpoint::Endpoint;
use rtorb::rt::{
    LanedThreadpool, NativePriority, Priority, PriorityMapping, PriorityModel, RequestBuffering,
    RequestOrder, Threadpool, ThreadpoolId, ThreadpoolLane,
};
use rtorb::thread::SchedPolicy;
use rtorb::{
    CompletionStatus, DispatchStrategy, ExceptionKind, Limits, ObjectRef, Orb, OrbBuilder,
    PoaPolicies, SystemException,
};
use rtorb_os::sched::{allowed, current_policy};
use rtorb_tests::raw::{self, CLOSE_CONNECTION};
use rtorb_tests::relay::Served;
use rtorb_tests::running::until;
use rtorb_tests::skip;
use rtorb_tests::stubs::exchange::{Party, PartyServant};

/// Every CORBA priority is time sharing.
#[derive(Debug)]
struct Flat;

impl PriorityMapping for Flat {
    fn to_native(&self, _: Priority) -> Option<NativePriority> {
        Some(0)
    }

    fn to_corba(&self, _: NativePriority) -> Option<Priority> {
        Some(Priority::MIN)
    }
}

/// A servant that says who serves it, and whose attribute can be set only while its gate is open.
#[derive(Debug, Default)]
struct Gated {
    gate: Gate,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    state: Arc<(Mutex<GateState>, Condvar)>,
}

#[derive(Debug, Default)]
struct GateState {
    open: bool,
    /// Values that were given, in the order in which they were let in.
    begun: Vec<i32>,
    /// The threads that were let in.
    threads: BTreeSet<String>,
}

impl Gate {
    pub(super) fn open(&self) {
        self.state.0.lock().expect("no panic").open = true;
        self.state.1.notify_all();
    }

    pub(super) fn close(&self) {
        let mut state = self.state.0.lock().expect("no panic");
        *state = GateState {
            begun: core::mem::take(&mut state.begun),
            ..GateState::default()
        };
    }

    pub(super) fn begun(&self) -> Vec<i32> {
        self.state.0.lock().expect("no panic").begun.clone()
    }

    pub(super) fn threads(&self) -> BTreeSet<String> {
        self.state.0.lock().expect("no panic").threads.clone()
    }

    fn pass(&self, value: i32) {
        let (state, changed) = &*self.state;
        let mut state = state.lock().expect("no panic");
        state.begun.push(value);
        state.threads.insert(who());
        while !state.open {
            state = changed.wait(state).expect("no panic");
        }
    }
}

impl PartyServant for Gated {
    fn name(&self) -> Result<String, SystemException> {
        Ok(who())
    }

    fn level(&self) -> Result<i32, SystemException> {
        Ok(0)
    }

    fn set_level(&self, value: i32) -> Result<(), SystemException> {
        self.gate.pass(value);
        Ok(())
    }
}

/// Name and scheduling of the calling thread.
fn who() -> String {
    let thread = thread::current();
    format!("{} {}", thread.name().unwrap_or("?"), current_policy())
}

/// An ORB that serves by one pool of lanes alone: nobody runs it.
pub(super) struct Pooled {
    pub(super) orb: Orb,
    pub(super) pool: ThreadpoolId,
}

impl Pooled {
    pub(super) fn start(builder: OrbBuilder, pool: LanedThreadpool) -> Self {
        let orb = builder.build().expect("the ORB can be built");
        let pool = orb
            .rt_orb()
            .create_threadpool_with_lanes(pool)
            .expect("the host lets it start");
        Self { orb, pool }
    }

    /// A pool with that number, whose threads have other names than those of pools that are made first.
    pub(super) fn numbered(number: u32, builder: OrbBuilder, pool: LanedThreadpool) -> Self {
        Self::try_numbered(number, builder, pool).expect("the host lets it start")
    }

    /// The same; the exception if the host refuses it.
    pub(super) fn try_numbered(
        number: u32,
        builder: OrbBuilder,
        pool: LanedThreadpool,
    ) -> Result<Self, SystemException> {
        let orb = builder.build().expect("the ORB can be built");
        let rt = orb.rt_orb();
        for _ in 1..number {
            let before = rt.create_threadpool(Threadpool::default());
            before.expect("the host lets it start");
        }
        let pool = rt.create_threadpool_with_lanes(pool).inspect_err(|_| {
            // Its other pools would hold the ORB.
            orb.destroy().expect("outside of servants");
        })?;
        assert_eq!(pool.get(), number);
        Ok(Self { orb, pool })
    }

    /// Without privileges.
    pub(super) fn flat(pool: LanedThreadpool) -> Self {
        Self::start(Orb::builder().priority_mapping(Flat), pool)
    }

    /// An object that the lane of that priority serves, as a client with an ORB of its own sees it.
    pub(super) fn party(&self, lane: i16) -> (Party, Gate) {
        let gate = Gate::default();
        let party = self.activate(lane, Gated { gate: gate.clone() });
        (seen_by_a_client(&self.orb, party.as_object()), gate)
    }

    pub(super) fn activate(&self, lane: i16, servant: impl PartyServant + 'static) -> Party {
        let rt = self.orb.rt_orb();
        let model = rt.create_priority_model_policy(PriorityModel::ServerDeclared, priority(lane));
        let policies = PoaPolicies::default()
            .with(model)
            .with(rt.create_threadpool_policy(self.pool));
        let root = self.orb.root_poa().expect("it listens");
        let poa = root.create_poa(&format!("lane {lane}"), policies);
        poa.expect("a new name").activate(servant).expect("room")
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let ended = self.orb.destroy();
        assert!(ended.is_ok() || thread::panicking(), "{ended:?}");
    }
}

pub(super) fn seen_by_a_client(orb: &Orb, object: &ObjectRef) -> Party {
    let client = Orb::builder().build().expect("the ORB can be built");
    let object = client.string_to_object(&orb.object_to_string(object));
    Party::unchecked_narrow(object.expect("a reference"))
}

pub(super) fn priority(number: i16) -> Priority {
    Priority::new(number).expect("not negative")
}

pub(super) fn lane(lane: i16, static_threads: u32) -> ThreadpoolLane {
    ThreadpoolLane {
        lane_priority: priority(lane),
        static_threads,
        ..ThreadpoolLane::default()
    }
}

/// A call on a thread, and so a connection, of its own.
pub(super) fn call(party: &Party, value: i32) -> thread::JoinHandle<Result<(), SystemException>> {
    let party = party.clone();
    thread::spawn(move || party.set_level(value))
}

pub(super) fn served(call: thread::JoinHandle<Result<(), SystemException>>) {
    assert_eq!(call.join().expect("no panic"), Ok(()));
}

pub(super) fn until_begun(gate: &Gate, count: usize) {
    until("so many requests are being served", || {
        (gate.begun().len() == count).then_some(())
    });
}

//= RT-CORBA 1.2 §Threadpools
//% test
#[test]
fn a_flooded_lane_refuses_what_has_no_room_and_the_other_lane_serves_on() {
    let pool = Pooled::flat(LanedThreadpool {
        lanes: vec![lane(1, 1), lane(2, 1)],
        request_buffering: Some(RequestBuffering {
            max_buffered_requests: 3,
            max_request_buffer_size: 0,
        }),
        ..LanedThreadpool::default()
    });
    let ((low, gate), (high, _)) = (pool.party(1), pool.party(2));
    let held = call(&low, 0);
    until_begun(&gate, 1);
    // Three have room to wait; which of those that come at the same time is not said.
    let flood: Vec<_> = (1..=10).map(|n| call(&low, n)).collect();
    until("all but those that wait are refused", || {
        let ended = flood.iter().filter(|call| call.is_finished()).count();
        (ended == 7).then_some(())
    });
    for _ in 0..50 {
        assert!(
            high.name()
                .expect("the high lane has time")
                .contains("l1-1")
        );
    }
    gate.open();
    served(held);
    let answers: Vec<_> = flood
        .into_iter()
        .map(|call| call.join().expect("no panic"))
        .collect();
    let full = SystemException::omg(ExceptionKind::Transient, 1);
    let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
    let refused: Vec<_> = refused.map(|e| (e.kind, e.minor, e.completed)).collect();
    assert_eq!(refused, [(full.kind, full.minor, CompletionStatus::No); 7]);
    assert_eq!(gate.begun().len(), 4);
}

#[test]
fn octets_that_wait_are_bounded_too() {
    let pool = Pooled::flat(LanedThreadpool {
        lanes: vec![lane(1, 1)],
        request_buffering: Some(RequestBuffering {
            max_buffered_requests: 0,
            max_request_buffer_size: 1,
        }),
        ..LanedThreadpool::default()
    });
    let (party, gate) = pool.party(1);
    let held = call(&party, 0);
    until_begun(&gate, 1);
    let refused = party.set_level(1).expect_err("it is larger than one octet");
    assert_eq!(refused.kind, ExceptionKind::Transient);
    gate.open();
    served(held);
    // With a thread for it, it need not fit; but a thread that has just answered may not have come back yet.
    until("a request that finds a thread is served", || {
        party.set_level(2).ok()
    });
}

#[test]
fn without_buffering_requests_wait_in_their_connections() {
    let pool = Pooled::flat(LanedThreadpool {
        lanes: vec![lane(1, 1)],
        ..LanedThreadpool::default()
    });
    let (party, gate) = pool.party(1);
    let calls: Vec<_> = (0..20).map(|n| call(&party, n)).collect();
    until_begun(&gate, 1);
    gate.open();
    calls.into_iter().for_each(served);
    assert_eq!(gate.begun().len(), 20);
    assert_eq!(gate.threads().len(), 1);
}

#[test]
fn dynamic_threads_come_while_the_others_are_busy_and_go_when_idle() {
    for buffering in [None, Some(RequestBuffering::default())] {
        let limits = Limits::with(|limits| limits.idle_thread_time = Duration::from_millis(50));
        let pool = Pooled::start(
            Orb::builder().priority_mapping(Flat).limits(limits),
            LanedThreadpool {
                lanes: vec![ThreadpoolLane {
                    dynamic_threads: 2,
                    ..lane(1, 1)
                }],
                request_buffering: buffering,
                ..LanedThreadpool::default()
            },
        );
        let (party, gate) = pool.party(1);
        let calls: Vec<_> = (0..4).map(|n| call(&party, n)).collect();
        until_begun(&gate, 3);
        let names: BTreeSet<_> = gate.threads().iter().map(|who| number_of(who)).collect();
        assert_eq!(names, BTreeSet::from([1, 2, 3]));
        assert_eq!(gate.begun().len(), 3, "one waits");
        gate.open();
        calls.into_iter().for_each(served);
        // Whoever is idle for long enough has gone, so the static one serves.
        until("the dynamic threads have gone", || {
            thread::sleep(Duration::from_millis(120));
            let calls: BTreeSet<_> = (0..3).map(|_| party.name().expect("served")).collect();
            (calls.len() == 1 && calls.iter().all(|who| number_of(who) == 1)).then_some(())
        });
    }
}

fn address(party: &Party) -> SocketAddr {
    let tcp = party
        .as_object()
        .endpoints()
        .find_map(|endpoint| match endpoint {
            Endpoint::Tcp { host, port } => format!("{host}:{port}").parse().ok(),
            _ => None,
        });
    tcp.expect("it listens on loopback")
}

pub(super) fn raw_client(party: &Party) -> RawClient {
    RawClient(raw::Connection::to(address(party)))
}

/// A client without an ORB, which sends as it likes.
pub(super) struct RawClient(raw::Connection);

impl RawClient {
    pub(super) fn send(&mut self, octets: &[u8]) {
        self.0.send(octets);
    }

    fn answer(&mut self) -> Option<raw::Answer> {
        self.0.answer()
    }

    fn ask(&mut self, octets: &[u8]) -> Option<raw::Answer> {
        self.0.ask(octets)
    }

    /// The requests to which the next so many replies belong, none of which is an exception.
    pub(super) fn answers(&mut self, count: usize) -> BTreeSet<u32> {
        let ids: BTreeSet<_> = (0..count)
            .map(|_| {
                let answer = self.answer().expect("the connection is open");
                assert_eq!((answer.kind, answer.status), (raw::REPLY, 0));
                answer.id
            })
            .collect();
        assert_eq!(ids.len(), count, "each is answered once");
        ids
    }
}

/// The request to set the level to `id`, whose number is the same.
pub(super) fn set_level(party: &Party, id: u32) -> Vec<u8> {
    request(&key(party), id, "_set_level").of_long(id as i32)
}

fn level(party: &Party, id: u32) -> Vec<u8> {
    request(&key(party), id, "_get_level").empty()
}

fn key(party: &Party) -> Vec<u8> {
    let ior = party.as_object().ior();
    let profile = ior.iiop_profiles().next();
    profile.expect("an IIOP profile").object_key
}

fn request<'a>(key: &'a [u8], id: u32, operation: &'a str) -> raw::Request<'a> {
    raw::Request {
        minor: 2,
        big: false,
        id,
        reply: true,
        key,
        operation,
    }
}

/// The number behind the last hyphen of a thread's name.
pub(super) fn number_of(who: &str) -> u32 {
    let name = who.split(' ').next().unwrap_or_default();
    let number = name.rsplit('-').next().unwrap_or_default();
    number.parse().expect("a thread of a lane")
}

//= RT-CORBA 1.2 §Threadpools
//% test
#[test]
fn a_lane_whose_threads_are_busy_borrows_one_of_a_less_urgent_lane() {
    for buffering in [None, Some(RequestBuffering::default())] {
        let Some(builder) = fifo() else { return };
        let pool = Pooled::start(
            builder,
            LanedThreadpool {
                lanes: vec![lane(1, 1), lane(2, 1), lane(3, 1)],
                allow_borrowing: true,
                request_buffering: buffering,
                ..LanedThreadpool::default()
            },
        );
        let ((low, _), (_middle, _), (high, gate)) = (pool.party(1), pool.party(2), pool.party(3));
        let calls: Vec<_> = (0..4).map(|n| call(&high, n)).collect();
        until_begun(&gate, 3);
        let at_the_lanes_priority: BTreeSet<_> = (0..3)
            .map(|lane| format!("rtorb-p1l{lane}-1 SCHED_FIFO 3"))
            .collect();
        assert_eq!(gate.threads(), at_the_lanes_priority);
        gate.open();
        calls.into_iter().for_each(served);
        assert_eq!(low.name(), Ok("rtorb-p1l0-1 SCHED_FIFO 1".to_owned()));
        // Its thread answers before it takes the next request, which another lane may carry out until then.
        until("the lane serves itself", || {
            (high.name() == Ok("rtorb-p1l2-1 SCHED_FIFO 3".to_owned())).then_some(())
        });
    }
}

#[test]
fn a_lane_is_helped_as_soon_as_a_less_urgent_thread_has_time() {
    let Some(builder) = fifo() else { return };
    let pool = Pooled::start(
        builder,
        LanedThreadpool {
            lanes: vec![lane(1, 1), lane(2, 1)],
            allow_borrowing: true,
            ..LanedThreadpool::default()
        },
    );
    let ((low, low_gate), (high, high_gate)) = (pool.party(1), pool.party(2));
    let calls = [call(&low, 0), call(&high, 0)];
    until_begun(&low_gate, 1);
    until_begun(&high_gate, 1);
    let waits = call(&high, 1);
    thread::sleep(Duration::from_millis(20));
    assert_eq!(high_gate.begun(), [0], "nobody has time");
    low_gate.open();
    until_begun(&high_gate, 2);
    high_gate.open();
    calls.into_iter().chain([waits]).for_each(served);
}

#[test]
fn a_lender_whose_own_client_comes_first_has_another_one_called() {
    for buffering in [None, Some(RequestBuffering::default())] {
        let pool = Pooled::flat(LanedThreadpool {
            lanes: vec![lane(1, 1), lane(2, 1), lane(3, 1)],
            allow_borrowing: true,
            request_buffering: buffering,
            ..LanedThreadpool::default()
        });
        let ((low, low_gate), (high, high_gate)) = (pool.party(1), pool.party(3));
        let (mut lows, mut highs) = (raw_client(&low), raw_client(&high));
        for round in 0..100 {
            let held = call(&high, 0);
            until_begun(&high_gate, 1 + 2 * round);
            // Both wake the low lane's thread. If it takes its own client's, the middle lane's is there.
            highs.send(&set_level(&high, 1));
            lows.send(&set_level(&low, 2));
            until_begun(&high_gate, 2 + 2 * round);
            high_gate.open();
            highs.answers(1);
            served(held);
            low_gate.open();
            lows.answers(1);
            high_gate.close();
            low_gate.close();
        }
    }
}

#[test]
fn a_lane_whose_thread_is_lent_gets_a_dynamic_one() {
    for buffering in [None, Some(RequestBuffering::default())] {
        let pool = Pooled::flat(LanedThreadpool {
            lanes: vec![
                ThreadpoolLane {
                    dynamic_threads: 1,
                    ..lane(1, 1)
                },
                lane(2, 1),
            ],
            allow_borrowing: true,
            request_buffering: buffering,
            ..LanedThreadpool::default()
        });
        let ((low, _), (high, gate)) = (pool.party(1), pool.party(2));
        let calls = [call(&high, 0), call(&high, 1)];
        until_begun(&gate, 2);
        assert_eq!(number_of(&low.name().expect("served")), 2);
        gate.open();
        calls.into_iter().for_each(served);
    }
}

#[test]
fn no_thread_stays_at_the_priority_of_a_lane_that_called_it() {
    const POLICIES: [&str; 3] = ["SCHED_OTHER", "SCHED_FIFO 1", "SCHED_FIFO 3"];
    const THREADS: [u32; 3] = [3, 2, 1];
    let _alone = alone_with_names();
    for buffering in [None, Some(RequestBuffering::default())] {
        let Some(builder) = fifo() else { return };
        let lanes = [0, 1, 3].into_iter().zip(THREADS);
        let pool = Pooled::numbered(
            3,
            builder,
            LanedThreadpool {
                lanes: lanes
                    .map(|(number, threads)| lane(number, threads))
                    .collect(),
                allow_borrowing: true,
                request_buffering: buffering,
                ..LanedThreadpool::default()
            },
        );
        let parties = [0, 1, 3].map(|lane| pool.party(lane));
        thread::scope(|scope| {
            for (party, gate) in &parties {
                gate.open();
                for _ in 0..4 {
                    scope.spawn(|| (0..200).for_each(|n| party.set_level(n).expect("served")));
                }
            }
        });
        for ((_, gate), policy) in parties.iter().zip(POLICIES) {
            let threads = gate.threads();
            assert!(
                threads.iter().all(|who| who.ends_with(policy)),
                "{threads:?}"
            );
        }
        let expected = (0..3).flat_map(|lane| {
            let names = (1..=THREADS[lane]).map(move |n| format!("rtorb-p3l{lane}-{n}"));
            names.map(move |name| format!("{name} {}", POLICIES[lane]))
        });
        let expected: BTreeSet<_> = expected.collect();
        until("all wait as their lanes do", || {
            let threads = threads_named("rtorb-p3l");
            expected.is_subset(&threads).then_some(())
        });
    }
}

#[test]
fn requests_pipelined_on_one_connection_are_served_by_several_threads() {
    let pool = Pooled::flat(LanedThreadpool {
        lanes: vec![lane(1, 2)],
        ..LanedThreadpool::default()
    });
    let (party, gate) = pool.party(1);
    let mut client = raw_client(&party);
    // The first one is served where it lies, with the second one behind it.
    client.send(&[set_level(&party, 0), set_level(&party, 1)].concat());
    gate.open();
    assert_eq!(client.answers(2), BTreeSet::from([0, 1]));
    // Now the server knows what kind of client this is.
    gate.close();
    for id in 2..5 {
        client.send(&set_level(&party, id));
    }
    until_begun(&gate, 4);
    assert_eq!(gate.threads().len(), 2);
    gate.open();
    assert_eq!(client.answers(3), BTreeSet::from([2, 3, 4]));
}

#[test]
fn a_client_that_pipelines_keeps_no_other_from_the_lanes_thread() {
    const FLOOD: u32 = 64;
    let pooled = Pooled::flat(LanedThreadpool {
        lanes: vec![lane(0, 1)],
        ..LanedThreadpool::default()
    });
    let (party, gate) = pooled.party(0);
    let mut flood = raw_client(&party);
    let requests = (0..FLOOD).flat_map(|id| set_level(&party, id));
    flood.send(&requests.collect::<Vec<_>>());
    until_begun(&gate, 1);
    let mut other = raw_client(&party);
    other.send(&set_level(&party, FLOOD));
    gate.open();
    other.answers(1);
    flood.answers(FLOOD as usize);
    let begun = gate.begun();
    assert_ne!(begun.last(), Some(&(FLOOD as i32)), "{begun:?}");
}

#[test]
fn clients_that_pipeline_and_clients_that_wait_get_every_answer_once() {
    const REQUESTS: u32 = 3000;
    for buffering in [None, Some(RequestBuffering::default())] {
        let pool = Pooled::flat(LanedThreadpool {
            lanes: vec![lane(1, 3)],
            request_buffering: buffering,
            ..LanedThreadpool::default()
        });
        let (party, gate) = pool.party(1);
        gate.open();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut client = raw_client(&party);
                    for first in (0..REQUESTS).step_by(100) {
                        let batch: Vec<_> = (first..first + 100)
                            .flat_map(|id| set_level(&party, id))
                            .collect();
                        client.send(&batch);
                        assert_eq!(client.answers(100), (first..first + 100).collect());
                    }
                });
                scope.spawn(|| (0..REQUESTS).for_each(|_| drop(party.name().expect("served"))));
            }
        });
        assert_eq!(gate.begun().len() as u32, 2 * REQUESTS);
    }
}

//= GIOP 1.2 §15.5.1.1
//% test
#[test]
fn a_pool_that_ends_answers_what_it_serves_and_tells_its_clients() {
    for buffering in [None, Some(RequestBuffering::default())] {
        let pool = Pooled::flat(LanedThreadpool {
            lanes: vec![lane(1, 1), lane(2, 2)],
            allow_borrowing: true,
            request_buffering: buffering,
            ..LanedThreadpool::default()
        });
        let ((low, gate), (high, _)) = (pool.party(1), pool.party(2));
        let (mut busy, mut idle) = (raw_client(&low), raw_client(&high));
        assert_eq!(idle.ask(&level(&high, 7)).map(|answer| answer.id), Some(7));
        busy.send(&set_level(&low, 1));
        until_begun(&gate, 1);
        pool.orb.shutdown();
        // The other lane has nothing to wait for.
        assert_eq!(
            idle.answer().map(|answer| answer.kind),
            Some(CLOSE_CONNECTION)
        );
        assert_eq!(idle.answer(), None);
        gate.open();
        assert_eq!(busy.answers(1), BTreeSet::from([1]));
        assert_eq!(
            busy.answer().map(|answer| answer.kind),
            Some(CLOSE_CONNECTION)
        );
        assert_eq!(busy.answer(), None);
        let address = address(&low);
        assert!(std::net::TcpStream::connect(address).is_err());
    }
}

#[test]
fn an_orb_cannot_be_destroyed_from_within() {
    /// Destroys the ORB that calls it.
    struct Suicide(Orb);
    impl PartyServant for Suicide {
        fn name(&self) -> Result<String, SystemException> {
            self.0.destroy().map(|()| String::new())
        }
        fn level(&self) -> Result<i32, SystemException> {
            Ok(0)
        }
        fn set_level(&self, _: i32) -> Result<(), SystemException> {
            Ok(())
        }
    }
    let pool = Pooled::flat(LanedThreadpool {
        lanes: vec![lane(1, 1)],
        ..LanedThreadpool::default()
    });
    let party = pool.activate(1, Suicide(pool.orb.clone()));
    let refused = seen_by_a_client(&pool.orb, party.as_object()).name();
    assert_eq!(
        refused.map_err(|e| (e.kind, e.minor)),
        Err(SystemException::omg(ExceptionKind::BadInvOrder, 3))
            .map_err(|e: SystemException| (e.kind, e.minor))
    );
}

#[test]
fn a_call_that_would_wait_for_its_own_thread_is_refused() {
    /// Asks itself.
    struct Circle {
        own: Arc<Mutex<Option<Party>>>,
    }
    impl PartyServant for Circle {
        fn name(&self) -> Result<String, SystemException> {
            let own = self.own.lock().expect("no panic").clone();
            own.expect("it is told who it is").name()
        }
        fn level(&self) -> Result<i32, SystemException> {
            Ok(0)
        }
        fn set_level(&self, _: i32) -> Result<(), SystemException> {
            Ok(())
        }
    }
    let pool = Pooled::flat(LanedThreadpool {
        lanes: vec![lane(1, 1)],
        ..LanedThreadpool::default()
    });
    let own = Arc::new(Mutex::new(None));
    let circle = Circle {
        own: Arc::clone(&own),
    };
    let party = pool.activate(1, circle);
    *own.lock().expect("no panic") = Some(party.clone());
    let refused = seen_by_a_client(&pool.orb, party.as_object()).name();
    let refused = refused.expect_err("nobody else could serve it");
    let expected = SystemException::omg(ExceptionKind::BadInvOrder, 3);
    assert_eq!(
        (refused.kind, refused.minor),
        (expected.kind, expected.minor)
    );
    // What holds its own reference holds the ORB.
    own.lock().expect("no panic").take();
}

/// An ORB with real priorities; none, with the reason, where the host refuses.
pub(super) fn fifo() -> Option<OrbBuilder> {
    match allowed(SchedPolicy::Fifo(9)) {
        Ok(()) => Some(Orb::builder()),
        Err(refused) => {
            skip(&refused.to_string());
            None
        }
    }
}

#[test]
fn every_thread_has_the_name_policy_and_priority_of_the_configuration() {
    let Some(builder) = fifo() else { return };
    let _alone = alone_with_names();
    let orb = builder.build().expect("the ORB can be built");
    let rt = orb.rt_orb();
    // Its number is one that no pool of any other test has meanwhile.
    let pools = (0..5).map(|_| {
        rt.create_threadpool_with_lanes(LanedThreadpool {
            lanes: vec![
                ThreadpoolLane {
                    dynamic_threads: 1,
                    ..lane(4, 2)
                },
                lane(0, 1),
                lane(7, 1),
            ],
            allow_borrowing: true,
            request_buffering: Some(RequestBuffering::default()),
            ..LanedThreadpool::default()
        })
        .expect("the host lets it start")
    });
    let pools: Vec<_> = pools.collect();
    let pool = pools[4];
    let expected = [
        ("l0-1", "SCHED_FIFO 4"),
        ("l0-2", "SCHED_FIFO 4"),
        ("l0-io", "SCHED_FIFO 4"),
        ("l1-1", "SCHED_OTHER"),
        ("l1-io", "SCHED_OTHER"),
        ("l2-1", "SCHED_FIFO 7"),
        ("l2-io", "SCHED_FIFO 7"),
        ("-mgr", "SCHED_FIFO 7"),
    ];
    let name = format!("rtorb-p{pool}");
    let expected: BTreeSet<_> = expected
        .map(|(rest, policy)| format!("{name}{rest} {policy}"))
        .into();
    assert_eq!(threads_named(&name), expected);
    orb.destroy().expect("outside of servants");
    // The kernel lists a thread for a moment after it was joined.
    until("its threads are gone", || {
        threads_named(&name).is_empty().then_some(())
    });
}

#[test]
fn the_threads_that_read_for_the_own_lanes_of_an_orb_have_the_names_of_their_lanes() {
    let Some(builder) = fifo() else { return };
    let ordered = |number| ThreadpoolLane {
        order: RequestOrder::EarliestDeadline,
        ..lane(number, 2)
    };
    let builder = builder.dispatch(DispatchStrategy::Lanes);
    let _served = Served::by(builder.lanes(vec![ordered(9), ordered(30)]));
    // No other ORB of these tests has such lanes.
    until("its threads run", || {
        let own = threads_named("rtorb-p0l");
        let runs = |reader: &str| own.iter().any(|thread| thread.starts_with(reader));
        (runs("rtorb-p0l0-io ") && runs("rtorb-p0l1-io ")).then_some(())
    });
}

#[test]
fn a_pool_that_the_host_refuses_leaves_nothing_behind() {
    let orb = Orb::builder().priority_mapping(Flat).build();
    let orb = orb.expect("the ORB can be built");
    let refused = orb.rt_orb().create_threadpool_with_lanes(LanedThreadpool {
        // No address space is as large.
        stacksize: 1 << 50,
        lanes: vec![lane(1, 2), lane(2, 1)],
        ..LanedThreadpool::default()
    });
    let refused = refused.expect_err("no such stack");
    assert_eq!(refused.kind, ExceptionKind::NoResources);
    // Its threads would hold the ORB.
    let pool = orb.rt_orb().create_threadpool(Threadpool::default());
    assert!(pool.is_ok());
    assert_eq!(orb.destroy(), Ok(()));
}

#[test]
fn threads_without_lanes_take_the_priority_of_the_call_and_go_back() {
    let Some(builder) = fifo() else { return };
    let orb = builder.build().expect("the ORB can be built");
    let rt = orb.rt_orb();
    let pool = rt
        .create_threadpool(Threadpool {
            static_threads: 2,
            default_priority: priority(2),
            ..Threadpool::default()
        })
        .expect("the host lets it start");
    let pool = Pooled { orb, pool };
    for declared in [5, 8] {
        let (party, _) = pool.party(declared);
        let who = party.name().expect("served");
        assert!(who.ends_with(&format!("SCHED_FIFO {declared}")), "{who}");
    }
}

/// Keeps out other tests that look at the names of threads: before a pool with a number, [`Pooled::numbered`] makes all of those below, and
/// their threads have the names of another test's.
pub(super) fn alone_with_names() -> MutexGuard<'static, ()> {
    static NAMES: Mutex<()> = Mutex::new(());
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Name and scheduling of the threads of this process whose names begin so, as the kernel has them.
///
/// The kernel leaves a thread out of its list if another one ends while that is listed. So it is asked several times, and a thread counts
/// that is in one of the lists.
pub(super) fn threads_named(start: &str) -> BTreeSet<String> {
    (0..3).flat_map(|_| listed_threads(start)).collect()
}

fn listed_threads(start: &str) -> BTreeSet<String> {
    let tasks = fs::read_dir("/proc/self/task").expect("there is /proc");
    let stats = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("stat")).ok());
    stats
        .filter_map(|stat| {
            // The name is in parentheses and may hold any character; rt_priority and policy are fields 40 and 41.
            let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
            let fields: Vec<_> = rest.split_whitespace().collect();
            let policy = match (fields.get(38)?, fields.get(37)?) {
                (&"0", _) => "SCHED_OTHER".to_owned(),
                (&"1", priority) => format!("SCHED_FIFO {priority}"),
                (policy, priority) => format!("policy {policy} {priority}"),
            };
            name.starts_with(start).then(|| format!("{name} {policy}"))
        })
        .collect()
}
