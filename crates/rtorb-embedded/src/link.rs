//! What carries bytes to the peer and back.

use rtorb_wire::Writer;
use rtorb_wire::connection::ReceiveLimits;

/// A stream of bytes to one peer. The application implements it, for example over a serial line.
pub trait Link {
    /// Sends all bytes, and waits until they are taken. A message may be sent in several pieces.
    ///
    /// After an error the peer may have a part of a message, and would read the next message as its rest. A link that cannot take back what
    /// it has sent of a message therefore answers [`LinkError::Broken`] then and from then on, until it has begun a new stream.
    ///
    /// # Errors
    /// When the peer does not take them in the time that the link allows, or the link is broken.
    fn send(&mut self, bytes: &[u8]) -> Result<(), LinkError>;

    /// Receives at least one byte into `into`, and waits for it. Returns how many; 0 when the peer has ended the stream.
    ///
    /// After [`LinkError::TimedOut`] a client and a server read on where they stopped: the rest of a message belongs to that message. After
    /// any other end they expect the beginning of one. So a link that takes a timeout for the end of its stream answers
    /// [`LinkError::Broken`].
    ///
    /// # Errors
    /// When none comes in the time that the link allows, or the link is broken.
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, LinkError>;
}

/// Why a link did not carry bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkError {
    /// The time passed that the link allows.
    TimedOut,
    /// The link is broken.
    Broken,
}

/// Sends a finished message: the writer's own bytes, with those of its values between them.
pub(crate) fn send(link: &mut dyn Link, message: &Writer<'_>) -> Result<(), LinkError> {
    let (own, lent) = message.parts();
    let mut from = 0;
    for segment in lent {
        link.send(&own[from..segment.after])?;
        link.send(segment.bytes)?;
        from = segment.after;
    }
    if from == own.len() {
        return Ok(());
    }
    link.send(&own[from..])
}

/// What a receiver of messages of at most that many bytes takes.
pub(crate) fn limits(message_bytes_max: usize) -> ReceiveLimits {
    ReceiveLimits {
        message_bytes_max,
        fragmented_messages_max: 1,
    }
}
