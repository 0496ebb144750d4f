//! A push that a gateway forwards: the bytes in which it came, with a lower `ttl`.

use rtorb::any::Any;
use rtorb::cdr::{
    ByteOrder, CharCodeSet, Decode, DecodeError, Encode, EncodeError, Reader, Writer,
};

use crate::stubs::rtec_event::rtec_event_comm::{Event, EventHeader};

/// The arguments of a push to forward.
#[derive(Debug)]
pub(super) struct ForwardedMessage {
    /// The events as GIOP 1.2 encodes them in this machine's byte order, from a multiple of 8.
    bytes: Vec<u8>,
    /// The code set of strings in anys.
    char_code_set: CharCodeSet,
    /// The number of events.
    pub(super) events: u32,
}

/// A push after the check of `ttl`.
#[derive(Debug)]
pub(super) struct TtlResult {
    /// The events to forward, if any.
    pub(super) message: Option<ForwardedMessage>,
    /// Events whose `ttl` was used up.
    pub(super) expired: u32,
}

impl ForwardedMessage {
    /// Reads the arguments of a push and decreases the `ttl` of each event.
    ///
    /// # Errors
    /// If the bytes are not events.
    pub(super) fn take(r: &mut Reader<'_>) -> Result<TtlResult, DecodeError> {
        r.buffer_up(r.remaining())?;
        let lies_as_we_have_it =
            r.order() == ByteOrder::NATIVE && r.giop_minor() >= 2 && r.position().is_multiple_of(8);
        if lies_as_we_have_it && r.buffered().starts_with(&1u32.to_ne_bytes()) {
            return Self::take_one(r);
        }
        Self::take_all(r)
    }

    /// Writes the arguments of a push.
    ///
    /// # Errors
    /// If the message is too large or text cannot be converted for the other side.
    pub(super) fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let is_as_we_have_it = w.order() == ByteOrder::NATIVE
            && w.giop_minor() >= 2
            && w.position().is_multiple_of(8)
            && w.char_code_set() == self.char_code_set;
        if is_as_we_have_it {
            return w.octets(&self.bytes);
        }
        let events = Vec::<Event>::decode(&mut self.reader())
            .expect("the bytes were read through when they were taken");
        let from = w.position() % 8;
        let own = Writer::new(Vec::new(), BYTES_MAX)
            .with_order(w.order())
            .with_giop_minor(w.giop_minor())
            .with_char_code_set(w.char_code_set());
        w.octets(&encoded(&events, own, from)?)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    fn reader(&self) -> Reader<'_> {
        Reader::new(&self.bytes, ByteOrder::NATIVE).with_char_code_set(self.char_code_set)
    }

    /// The common case of one event: its `ttl` is at a known offset, and nothing is decoded and encoded again.
    fn take_one(r: &mut Reader<'_>) -> Result<TtlResult, DecodeError> {
        let (bytes, left) = (r.buffered(), r.remaining());
        r.count(1)?;
        let header = EventHeader::decode(r)?;
        i32::decode(r)?;
        r.octets()?;
        Any::decode(r)?;
        if header.ttl <= 0 {
            return Ok(TtlResult {
                message: None,
                expired: 1,
            });
        }
        let mut bytes = bytes[..left - r.remaining()].to_vec();
        bytes[TTL_AT..TTL_AT + 4].copy_from_slice(&(header.ttl - 1).to_ne_bytes());
        Ok(TtlResult {
            message: Some(Self {
                bytes,
                char_code_set: r.char_code_set(),
                events: 1,
            }),
            expired: 0,
        })
    }

    fn take_all(r: &mut Reader<'_>) -> Result<TtlResult, DecodeError> {
        let char_code_set = r.char_code_set();
        let mut events = Vec::<Event>::decode(r)?;
        let came = events.len();
        events.retain_mut(|event| {
            let may_pass = event.header.ttl > 0;
            event.header.ttl = event.header.ttl.saturating_sub(1);
            may_pass
        });
        let expired = (came - events.len()) as u32;
        if events.is_empty() {
            return Ok(TtlResult {
                message: None,
                expired,
            });
        }
        let own = Writer::new(Vec::new(), BYTES_MAX).with_char_code_set(char_code_set);
        // Text that came in this code set can be encoded in it.
        let bytes = encoded(&events, own, 0).map_err(|_| DecodeError::BadEncapsulation)?;
        Ok(TtlResult {
            message: Some(Self {
                bytes,
                char_code_set,
                events: events.len() as u32,
            }),
            expired,
        })
    }
}

/// Encodes events at an offset of `from` in a stream.
fn encoded<'a>(
    events: &'a [Event],
    mut own: Writer<'a>,
    from: usize,
) -> Result<Vec<u8>, EncodeError> {
    own.octets(&[0; 8][..from])?;
    events.encode(&mut own)?;
    Ok(own.to_bytes().split_off(from))
}

/// The ORB limits messages itself.
const BYTES_MAX: usize = usize::MAX >> 1;
/// The offset of the first event's `ttl`: behind the count, its type and its source.
const TTL_AT: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stubs::rtec_event::rtec_event_comm::EventData;

    fn event(ttl: i32, text: &str) -> Event {
        Event {
            header: EventHeader {
                r#type: 17,
                source: 3,
                ttl,
                creation_time: 1,
                ec_recv_time: 2,
                ec_send_time: 3,
            },
            data: EventData {
                pad1: 0,
                payload: text.as_bytes().to_vec(),
                any_value: Any::from_value(&text.to_owned()).expect("text goes into an any"),
            },
        }
    }

    fn one_less(events: &[Event]) -> Vec<Event> {
        let passes = events.iter().filter(|event| event.header.ttl > 0);
        let mut less: Vec<Event> = passes.cloned().collect();
        less.iter_mut().for_each(|event| event.header.ttl -= 1);
        less
    }

    fn stream(events: &[Event], order: ByteOrder, from: usize) -> Vec<u8> {
        let own = Writer::new(Vec::new(), BYTES_MAX).with_order(order);
        let mut bytes = vec![0xee; from];
        bytes.extend(encoded(events, own, from % 8).expect("it can be written"));
        bytes
    }

    fn take(bytes: &[u8], order: ByteOrder, from: usize) -> Result<TtlResult, DecodeError> {
        let mut r = Reader::new(bytes, order);
        r.take(from)?;
        ForwardedMessage::take(&mut r)
    }

    #[test]
    fn events_arrive_with_one_gateway_less_however_they_came_and_go() {
        let sets = [
            vec![event(1, "one")],
            vec![event(5, "five"), event(0, "none"), event(2, "")],
        ];
        for events in &sets {
            for (order, from) in [
                (ByteOrder::NATIVE, 0),
                (ByteOrder::NATIVE, 4),
                (ByteOrder::Big, 0),
                (ByteOrder::Little, 12),
            ] {
                let taken = take(&stream(events, order, from), order, from).expect("a set");
                let message = taken.message.expect("some of it passes");
                let expected = one_less(events);
                assert_eq!(taken.expired as usize, events.len() - expected.len());
                assert_eq!(message.events as usize, expected.len());
                for (order, from) in [(ByteOrder::NATIVE, 0), (ByteOrder::Big, 20)] {
                    let mut w = Writer::new(Vec::new(), BYTES_MAX).with_order(order);
                    w.octets(&[0; 20][..from]).expect("there is room");
                    message.write(&mut w).expect("it can be written");
                    let bytes = w.to_bytes();
                    let mut r = Reader::new(&bytes, order);
                    r.take(from).expect("it was written");
                    assert_eq!(Vec::<Event>::decode(&mut r), Ok(expected.clone()));
                    assert_eq!(r.remaining(), 0);
                }
            }
        }
    }

    #[test]
    fn text_inside_of_an_any_is_told_in_the_code_set_of_the_other_side() {
        let bytes = stream(&[event(1, "t\u{e9}l\u{e9}")], ByteOrder::NATIVE, 0);
        let taken = take(&bytes, ByteOrder::NATIVE, 0).expect("a set");
        let message = taken.message.expect("it passes");
        let mut w = Writer::new(Vec::new(), BYTES_MAX).with_char_code_set(CharCodeSet::Utf8);
        message.write(&mut w).expect("it can be written");
        let bytes = w.to_bytes();
        let mut r = Reader::new(&bytes, ByteOrder::NATIVE).with_char_code_set(CharCodeSet::Utf8);
        let events = Vec::<Event>::decode(&mut r).expect("a set");
        let text: String = events[0].data.any_value.extract().expect("text");
        assert_eq!(text, "t\u{e9}l\u{e9}");
    }

    #[test]
    fn what_may_pass_no_gateway_does_not() {
        for ttl in [0, -1, i32::MIN] {
            for count in 1..=2 {
                let events = vec![event(ttl, "x"); count];
                let taken = take(&stream(&events, ByteOrder::NATIVE, 0), ByteOrder::NATIVE, 0);
                let taken = taken.expect("a set");
                assert!(taken.message.is_none());
                assert_eq!(taken.expired as usize, count);
            }
        }
    }

    #[test]
    fn bytes_that_are_no_set_of_events_are_refused_wherever_they_end() {
        for count in 1..=2 {
            let bytes = stream(&vec![event(1, "text"); count], ByteOrder::NATIVE, 0);
            for end in 0..bytes.len() {
                assert!(take(&bytes[..end], ByteOrder::NATIVE, 0).is_err(), "{end}");
            }
        }
    }
}
