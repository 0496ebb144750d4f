//! Sending a finished message, by a client or a server.

use crate::orb::OrbCore;
use crate::transport::{Stream, Unsent};
use rtorb_wire::{Writer, giop};
use rustix::io::Errno;

/// Sends a message in one piece, or in fragments if it is larger than the ORB is told to send at once.
#[inline]
pub(crate) fn send(orb: &OrbCore, stream: &Stream, message: &Writer<'_>) -> Result<(), Errno> {
    match orb.fragment_octets {
        Some(max) if message.len() > max => {
            giop::fragments(&message.to_octets(), max).try_for_each(|part| stream.send(&part))
        }
        _ => {
            let (own, lent) = message.parts();
            stream.send_message(own, lent)
        }
    }
}

/// As [`send`], at the latest until `deadline_ns` of the monotonic clock.
pub(crate) fn send_by(
    orb: &OrbCore,
    stream: &Stream,
    message: &Writer<'_>,
    deadline_ns: Option<u64>,
) -> Result<(), Unsent> {
    let max = match orb.fragment_octets {
        Some(max) if message.len() > max => max,
        _ => {
            let (own, lent) = message.parts();
            return stream.send_message_by(own, lent, deadline_ns);
        }
    };
    let mut has_begun = false;
    for part in giop::fragments(&message.to_octets(), max) {
        stream
            .send_message_by(&part, &[], deadline_ns)
            .map_err(|unsent| Unsent {
                has_begun: has_begun || unsent.has_begun,
                ..unsent
            })?;
        has_begun = true;
    }
    Ok(())
}
