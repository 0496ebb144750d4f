//! Sending a finished message, by a client or a server.

use crate::orb::OrbCore;
use crate::transport::Stream;
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
