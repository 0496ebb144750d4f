//! Closes a server's connections so that CloseConnection reaches clients that still send.

use super::session::Session;
use crate::clock::{monotonic_ns, sleep_until};
use std::sync::Arc;

/// Ends connections with CloseConnection. Call it when none of their requests is in progress.
///
/// Closing a socket with unread bytes resets the connection, and the client may lose the last messages. So bytes are received and
/// discarded until the client's host has acknowledged all messages, for at most [`LINGER_NS`]. Unsent replies are sent until their
/// own deadline.
pub(super) fn close_all(mut sessions: Vec<Arc<Session>>) {
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
