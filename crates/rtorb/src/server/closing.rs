//! Closes a server's connections so that CloseConnection reaches clients that still send.

use super::session::Session;
use crate::clock::{monotonic_ns, nanoseconds, sleep_until};
use std::sync::Arc;

/// Ends connections with CloseConnection. Call it when none of their requests is in progress, but for replies that servants have
/// deferred: for these it waits, at most [`Limits::deferred_reply_time`](crate::Limits::deferred_reply_time).
///
/// Closing a socket with unread bytes resets the connection, and the client may lose the last messages. So bytes are received and
/// discarded until the client's host has acknowledged all messages, for at most [`LINGER_NS`]. Unsent replies are sent until their
/// own deadline.
pub(super) fn close_all(mut sessions: Vec<Arc<Session>>) {
    // Nobody serves them any more: CloseConnection tells their clients so.
    for session in &sessions {
        session.orb.held.forget(session);
    }
    settle_deferred(&sessions);
    for session in &sessions {
        session.say_closing();
    }
    let deadline_ns = monotonic_ns() + LINGER_NS;
    loop {
        let is_late = monotonic_ns() >= deadline_ns;
        sessions.retain(|session| !is_ended(session, is_late));
        if sessions.is_empty() {
            return;
        }
        sleep_until(monotonic_ns() + ROUND_NS);
    }
}

/// How long bytes are received and discarded, in nanoseconds.
const LINGER_NS: u64 = 500_000_000;

/// The time between two checks of the closing connections, in nanoseconds.
const ROUND_NS: u64 = 1_000_000;

/// Waits for the deferred replies of connections, and sends NO_RESPONSE in the place of those that are missing then.
fn settle_deferred(sessions: &[Arc<Session>]) {
    let Some(first) = sessions.first() else {
        return;
    };
    let wait_ns = nanoseconds(first.orb.limits.deferred_reply_time);
    if !await_deferred(sessions, wait_ns) {
        revoke_deferred(sessions);
    }
}

/// Sends NO_RESPONSE in the place of the deferred replies of connections, and waits for those that are being sent, at most [`LINGER_NS`].
fn revoke_deferred(sessions: &[Arc<Session>]) {
    let deadline_ns = monotonic_ns() + LINGER_NS;
    loop {
        // Again and again: the watchdog puts a reply back that it could not send.
        for session in sessions.iter().filter(|it| it.state.has_deferred()) {
            session.orb.deferred.revoke(session);
        }
        if await_deferred(sessions, ROUND_NS) || monotonic_ns() >= deadline_ns {
            return;
        }
    }
}

/// Waits for the deferred replies of connections, at most this time. Returns true if all are sent.
fn await_deferred(sessions: &[Arc<Session>], time_ns: u64) -> bool {
    let deadline_ns = monotonic_ns().saturating_add(time_ns);
    while sessions.iter().any(|session| session.state.has_deferred()) {
        if monotonic_ns() >= deadline_ns {
            return false;
        }
        sleep_until(monotonic_ns() + ROUND_NS);
    }
    true
}

/// Returns true if a connection can be closed.
fn is_ended(session: &Session, is_late: bool) -> bool {
    if session.state.has_unsent() {
        session.give_up();
        if matches!(session.flush(), Ok(false)) {
            return false;
        }
    }
    session.stream.drain();
    // Sending is not ended before that: Linux resets a connection of which both directions are ended when more bytes come.
    is_late || session.stream.is_acknowledged()
}
