//! Sending a finished message, by a client or a server; a CancelRequest is one.

mod cancel_request;

pub(crate) use cancel_request::{CancelRequest, CancelSent};

use crate::transport::{Stream, Unsent};
use rtorb_wire::{Writer, giop};

/// Sends a message in one piece, or in fragments of `fragment_bytes` if it is larger.
#[inline]
pub(crate) fn send(
    stream: &Stream,
    message: &Writer<'_>,
    fragment_bytes: Option<usize>,
) -> Result<(), Unsent> {
    let max = match fragment_bytes {
        Some(max) if message.len() > max => max,
        _ => {
            let (own, lent) = message.parts();
            return stream.send_message(own, lent);
        }
    };
    send_fragments(message, max, |part| stream.send(part))
}

/// As [`send`], until `deadline_ns` of the monotonic clock at the latest.
pub(crate) fn send_by(
    stream: &Stream,
    message: &Writer<'_>,
    fragment_bytes: Option<usize>,
    deadline_ns: Option<u64>,
) -> Result<(), Unsent> {
    let max = match fragment_bytes {
        Some(max) if message.len() > max => max,
        _ => {
            let (own, lent) = message.parts();
            return stream.send_message_by(own, lent, deadline_ns);
        }
    };
    send_fragments(message, max, |part| {
        stream.send_message_by(part, &[], deadline_ns)
    })
}

fn send_fragments(
    message: &Writer<'_>,
    max: usize,
    send: impl Fn(&[u8]) -> Result<(), Unsent>,
) -> Result<(), Unsent> {
    let mut has_begun = false;
    for part in giop::fragments(&message.to_bytes(), max) {
        send(&part).map_err(|unsent| Unsent {
            has_begun: has_begun || unsent.has_begun,
            ..unsent
        })?;
        has_begun = true;
    }
    Ok(())
}
