//! The states of a server's connection: each transition that there is, and that there is no other.

use rtorb_wire::connection::{ServerConnection, ServerPhase};
use rtorb_wire::giop::Version;

use ServerPhase::{Draining, Ended, Finishing, Held, Reading, Requested};

const PHASES: [ServerPhase; 6] = [Reading, Requested, Held, Draining, Finishing, Ended];

/// A connection in that phase, with one request taken out.
fn connection_in(phase: ServerPhase) -> ServerConnection {
    let state = ServerConnection::new();
    state.take();
    let is_there = match phase {
        Reading => true,
        Requested => state.request(),
        Held => state.hold(),
        Draining => state.drain(),
        Finishing => state.drain() && state.end(),
        Ended => state.end(),
    };
    assert!(is_there, "{phase:?}");
    assert_eq!(state.phase(), phase);
    state
}

/// Asserts that a transition leads from the phases of `expected` to those behind them, and from the others nowhere.
fn assert_leads(
    name: &str,
    transition: fn(&ServerConnection) -> bool,
    expected: &[(ServerPhase, ServerPhase)],
) {
    for phase in PHASES {
        let state = connection_in(phase);
        let next = expected.iter().find(|(from, _)| *from == phase);
        assert_eq!(transition(&state), next.is_some(), "{name} in {phase:?}");
        let next = next.map_or(phase, |(_, next)| *next);
        assert_eq!(state.phase(), next, "{name} in {phase:?}");
    }
}

#[test]
fn each_transition_leads_from_its_phases_only() {
    let requested = [(Reading, Requested), (Requested, Requested)];
    assert_leads("request", ServerConnection::request, &requested);
    assert_leads(
        "reported",
        ServerConnection::reported,
        &[(Requested, Reading)],
    );
    let held = [(Reading, Held), (Requested, Held)];
    assert_leads("hold", ServerConnection::hold, &held);
    assert_leads("served", ServerConnection::served, &[(Held, Requested)]);
    let draining = [
        (Reading, Draining),
        (Requested, Draining),
        (Held, Draining),
        (Ended, Finishing),
    ];
    assert_leads("drain", ServerConnection::drain, &draining);
    let drained = [(Draining, Reading), (Finishing, Ended)];
    assert_leads("drained", ServerConnection::drained, &drained);
    let ended = [
        (Reading, Ended),
        (Requested, Ended),
        (Held, Ended),
        (Draining, Finishing),
    ];
    assert_leads("end", ServerConnection::end, &ended);
}

#[test]
fn a_phase_says_who_may_send_and_whether_the_connection_is_read() {
    for phase in PHASES {
        let state = connection_in(phase);
        assert!(!state.sends_alone() && !state.is_idle(), "another replies");
        state.served();
        let has_unsent = matches!(phase, Draining | Finishing);
        assert_eq!(state.has_unsent(), has_unsent);
        assert_eq!(state.sends_alone(), !has_unsent);
        let is_read = matches!(phase, Reading | Requested | Held);
        assert_eq!(state.is_read(), is_read, "{phase:?}");
    }
}

#[test]
fn requests_are_served_in_place_when_none_is_taken_out() {
    let state = ServerConnection::new();
    assert!(!state.is_taken_out());
    state.take_out();
    assert_eq!((state.take(), state.take()), (0, 1));
    assert!(!state.serve_in_place() && !state.served());
    assert!(!state.serve_in_place() && !state.served());
    assert!(state.is_taken_out() && state.serve_in_place());
    assert!(!state.is_taken_out());
}

#[test]
fn small_replies_raise_the_bound_on_requests_taken_out_and_a_bulk_one_lowers_it() {
    let state = ServerConnection::new();
    assert!(
        state.may_be_bulk(),
        "the replies to a new client may be large"
    );
    /// How many requests are taken out before the connection is held.
    fn bound(state: &ServerConnection) -> u32 {
        let bound = (1..100).find(|_| {
            state.take();
            state.hold()
        });
        let bound = bound.expect("it is bounded");
        let resumed = (0..bound).filter(|_| state.served());
        assert_eq!(resumed.count(), 1, "when half of them are served");
        bound
    }
    assert_eq!(bound(&state), 1);
    for expected in [3, 4, 5, 5] {
        state.note_answered();
        state.raise_bound(5);
        assert_eq!(bound(&state), expected);
    }
    state.note_bulk_reply();
    state.raise_bound(5);
    assert!(state.may_be_bulk() && bound(&state) == 1);
}

#[test]
fn a_connection_is_idle_while_no_message_is_being_served() {
    let state = ServerConnection::new();
    assert!(state.is_idle() && state.version().is_none());
    state.note_message(Version::V1_2);
    assert!(!state.is_idle());
    assert_eq!(state.version(), Some(Version::V1_2));
    state.note_answered();
    assert!(state.is_idle() && state.version() == Some(Version::V1_2));
    state.note_message(Version::V1_2);
    state.note_early_reply();
    state.note_answered();
    assert!(
        state.is_answered() && !state.is_idle(),
        "its servant executes"
    );
    state.note_partial();
    assert!(
        !state.look_at_partial(),
        "the next message may take its time"
    );
    state.note_executed();
    assert!(state.is_idle());
    state.note_early_reply();
    state.note_message(Version::V1_2);
    state.note_executed();
    assert!(!state.is_answered(), "the next message has come");
    state.note_answered();
    state.report_end();
    assert!(state.is_ending() && !state.gives_way());
    state.give_way();
    assert!(state.is_ending() && state.gives_way() && state.is_idle());
}

#[test]
fn a_connection_with_a_deferred_reply_is_not_idle_and_nobody_sends_alone_from_then_on() {
    let state = ServerConnection::new();
    assert!(state.is_idle() && state.sends_alone() && !state.has_deferred());
    state.note_deferred();
    state.note_deferred();
    state.note_settled();
    assert!(!state.is_idle() && !state.sends_alone() && state.has_deferred());
    assert!(!state.hold(), "it is no request taken out");
    state.note_settled();
    assert!(state.is_idle() && !state.has_deferred());
    assert!(!state.sends_alone(), "a thread may be about to send");
    let bidirectional = ServerConnection::new();
    bidirectional.share_sending();
    assert!(bidirectional.is_idle() && !bidirectional.sends_alone());
}

#[test]
fn a_client_is_known_from_its_first_message_on_that_is_served() {
    for note in [
        ServerConnection::note_answered,
        ServerConnection::note_bulk_reply,
    ] {
        for phase in PHASES {
            let state = connection_in(phase);
            state.note_message(Version::V1_2);
            assert!(!state.is_known(), "it is not served yet");
            assert!(note(&state) && state.is_known(), "{phase:?}");
            assert_eq!(state.phase(), phase);
            for again in [
                ServerConnection::note_answered,
                ServerConnection::note_bulk_reply,
                ServerConnection::note_answered,
            ] {
                assert!(!again(&state) && state.is_known(), "{phase:?}");
            }
        }
    }
}
