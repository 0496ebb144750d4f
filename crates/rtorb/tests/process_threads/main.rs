//! Tests that look for threads of the whole process. They run one after the other: no other test has threads beside them.

mod connections;
mod exhausted;
mod flood;
mod refused;
mod shutdown;
mod waiting;

fn main() {
    rtorb_tests::alone::run_each(&[
        (
            "a_reference_that_is_made_anew_for_each_call_uses_the_connection_that_is_there",
            connections::a_reference_that_is_made_anew_for_each_call_uses_the_connection_that_is_there,
        ),
        (
            "a_reference_without_code_sets_does_not_decide_for_one_that_has_them",
            connections::a_reference_without_code_sets_does_not_decide_for_one_that_has_them,
        ),
        (
            "an_orb_ends_with_its_last_reference_whatever_connections_its_threads_have",
            connections::an_orb_ends_with_its_last_reference_whatever_connections_its_threads_have,
        ),
        (
            "a_connections_own_thread_ends_with_it",
            connections::a_connections_own_thread_ends_with_it,
        ),
        (
            "an_orb_that_is_shut_down_before_it_listens_never_does",
            shutdown::an_orb_that_is_shut_down_before_it_listens_never_does,
        ),
        (
            "an_orb_that_is_shut_down_before_it_runs_is_not_ready",
            shutdown::an_orb_that_is_shut_down_before_it_runs_is_not_ready,
        ),
        (
            "the_shortest_and_the_longest_times_are_ones_that_the_system_takes",
            shutdown::the_shortest_and_the_longest_times_are_ones_that_the_system_takes,
        ),
        (
            "an_orb_that_two_threads_run_has_its_lanes_once_and_ends_for_both",
            shutdown::an_orb_that_two_threads_run_has_its_lanes_once_and_ends_for_both,
        ),
        (
            "a_client_for_whom_there_is_no_thread_is_refused_and_the_server_serves_the_next_one",
            exhausted::a_client_for_whom_there_is_no_thread_is_refused_and_the_server_serves_the_next_one,
        ),
        (
            "a_request_for_which_there_is_no_thread_is_transient_and_the_server_serves_the_next_one",
            exhausted::a_request_for_which_there_is_no_thread_is_transient_and_the_server_serves_the_next_one,
        ),
        (
            "a_flood_of_strangers_has_no_more_threads_than_the_limit_says",
            flood::a_flood_of_strangers_has_no_more_threads_than_the_limit_says,
        ),
        (
            "a_client_thread_whose_priority_is_refused_fails_the_call_that_starts_it",
            refused::a_client_thread_whose_priority_is_refused_fails_the_call_that_starts_it,
        ),
        (
            "a_client_thread_whose_priority_is_refused_fails_what_would_be_below_it",
            refused::a_client_thread_whose_priority_is_refused_fails_what_would_be_below_it,
        ),
        (
            "a_connection_does_not_give_way_while_its_thread_waits_for_room_for_a_reply",
            waiting::a_connection_does_not_give_way_while_its_thread_waits_for_room_for_a_reply,
        ),
    ]);
}
