//! What a connection could not send without waiting: the rest of one message, kept until it can go.

use crate::orb::OrbCore;
use crate::transport::Stream;
use rtorb_wire::cdr::Segment;
use rtorb_wire::{Writer, giop};
use rustix::io::Errno;

/// The octets of a message that are still to be sent; none where it is whole at the transport.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// The octets kept, reused.
    octets: Vec<u8>,
    /// How many of them went meanwhile.
    sent: usize,
}

impl Rest {
    /// Sends what the transport takes of a message at once, and keeps what it does not; nothing may be kept before.
    #[inline]
    pub(super) fn send(
        &mut self,
        orb: &OrbCore,
        stream: &Stream,
        message: &Writer<'_>,
    ) -> Result<(), Errno> {
        debug_assert!(self.is_empty(), "a message would overtake another");
        if orb.fragment_octets.is_some_and(|max| message.len() > max) {
            return self.send_fragments(orb, stream, message);
        }
        let (own, lent) = message.parts();
        match stream.send_message_now(own, lent)? {
            sent if sent == message.len() => Ok(()),
            sent => self.keep(own, lent, sent),
        }
    }

    /// Sends what the transport takes at once; true when nothing is left.
    #[inline]
    pub(super) fn flush(&mut self, stream: &Stream) -> Result<bool, Errno> {
        if !self.is_empty() {
            self.sent += stream.send_message_now(&self.octets[self.sent..], &[])?;
        }
        Ok(self.is_empty())
    }

    /// Sends all of it, however long the transport takes.
    #[cold]
    pub(super) fn finish(&mut self, stream: &Stream) -> Result<(), Errno> {
        stream.send(&self.octets[self.sent..])?;
        self.sent = self.octets.len();
        Ok(())
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.sent == self.octets.len()
    }

    #[cold]
    fn send_fragments(
        &mut self,
        orb: &OrbCore,
        stream: &Stream,
        message: &Writer<'_>,
    ) -> Result<(), Errno> {
        self.begin(message.len())?;
        let max = orb.fragment_octets.unwrap_or(usize::MAX);
        for part in giop::fragments(&message.to_octets(), max) {
            self.append(&part)?;
        }
        self.flush(stream).map(|_| ())
    }

    /// Keeps a message but for its first `sent` octets.
    #[cold]
    fn keep(&mut self, own: &[u8], lent: &[Segment<'_>], sent: usize) -> Result<(), Errno> {
        let lent_octets: usize = lent.iter().map(|segment| segment.octets.len()).sum();
        self.begin(own.len() + lent_octets - sent)?;
        let mut gone = sent;
        let mut from = 0;
        for segment in lent {
            self.append_behind(&own[from..segment.after], &mut gone)?;
            self.append_behind(segment.octets, &mut gone)?;
            from = segment.after;
        }
        self.append_behind(&own[from..], &mut gone)
    }

    /// Has room for so many octets, and none yet.
    fn begin(&mut self, octets: usize) -> Result<(), Errno> {
        self.octets.clear();
        self.sent = 0;
        self.octets.try_reserve(octets).map_err(|_| Errno::NOMEM)
    }

    /// Appends a part of a message of which the first `gone` octets are not kept.
    fn append_behind(&mut self, part: &[u8], gone: &mut usize) -> Result<(), Errno> {
        let skipped = part.len().min(*gone);
        *gone -= skipped;
        self.append(&part[skipped..])
    }

    fn append(&mut self, part: &[u8]) -> Result<(), Errno> {
        self.octets
            .try_reserve(part.len())
            .map_err(|_| Errno::NOMEM)?;
        self.octets.extend_from_slice(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_the_message_without_what_went_wherever_that_ended() {
        let own = [1, 2, 3, 4, 5];
        let (first, second) = ([10, 11, 12], [20, 21]);
        let lent = [
            Segment {
                after: 2,
                octets: &first,
            },
            Segment {
                after: 4,
                octets: &second,
            },
        ];
        let whole = [1, 2, 10, 11, 12, 3, 4, 20, 21, 5];
        let mut rest = Rest::default();
        for sent in 0..whole.len() {
            rest.keep(&own, &lent, sent).expect("there is memory");
            assert_eq!(rest.octets, whole[sent..], "{sent}");
            assert!(!rest.is_empty());
        }
    }
}
