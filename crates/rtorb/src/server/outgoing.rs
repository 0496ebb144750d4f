//! Sending messages to a client.

use crate::orb::OrbCore;
use crate::transport::Stream;
use rtorb_wire::cdr::Segment;
use rtorb_wire::giop;
use rustix::io::Errno;

/// Sends a message in one piece, or in fragments if the ORB is told to send them.
#[inline]
pub(crate) fn send(
    orb: &OrbCore,
    stream: &Stream,
    own: &[u8],
    lent: &[Segment<'_>],
) -> Result<(), Errno> {
    match orb.fragment_octets {
        None => stream.send_message(own, lent),
        Some(max) => send_fragments(stream, &joined(own, lent), max),
    }
}

/// Sends a finished message in parts of at most `octets_max` octets, if it is larger.
pub(crate) fn send_fragments(
    stream: &Stream,
    message: &[u8],
    octets_max: usize,
) -> Result<(), Errno> {
    if message.len() <= octets_max {
        return stream.send(message);
    }
    giop::fragments(message, octets_max).try_for_each(|part| stream.send(&part))
}

/// The message as one run of octets.
pub(crate) fn joined(own: &[u8], lent: &[Segment<'_>]) -> Vec<u8> {
    let mut message = Vec::with_capacity(
        own.len()
            + lent
                .iter()
                .map(|segment| segment.octets.len())
                .sum::<usize>(),
    );
    let mut from = 0;
    for segment in lent {
        message.extend_from_slice(&own[from..segment.after]);
        message.extend_from_slice(segment.octets);
        from = segment.after;
    }
    message.extend_from_slice(&own[from..]);
    message
}
