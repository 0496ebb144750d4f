//! The bytes of a sample: a header in its attachment, and one event as its payload.

use rtorb::cdr::{
    ByteOrder, CharCodeSet, Decode, DecodeError, Encode, EncodeError, Reader, Writer,
};
use rtorb_services::events::Event;

use crate::keys::EventKey;

/// The version of the header, of reports and of members' keys that this crate speaks.
pub(crate) const VERSION: u8 = 1;

/// The attachment of an event.
///
/// | byte | content, the most significant byte first |
/// |---|---|
/// | 0 | version: 1 |
/// | 1 | 0 |
/// | 2 to 3 | CORBA priority at which the event was published; -1 for none |
/// | 4 to 11 | run: another number for each start of a lane of a member |
/// | 12 to 19 | index of the event among those of the run with its type and source, from 0 |
/// | 20 to 27 | time of publication: UTC in units of 100 ns since 15 October 1582, as CORBA counts it |
/// | 28 to 35 | deadline: nanoseconds from that time on; 0 for none |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleHeader {
    pub(crate) priority: Option<i16>,
    pub(crate) run: u64,
    pub(crate) index: u64,
    pub(crate) sent_ticks: u64,
    pub(crate) deadline_ns: u64,
}

/// What is wrong with a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MalformedSample {
    #[error(
        "it has version {0} of the federation, and this member speaks version {own}: give all members the same version of rtorb",
        own = VERSION
    )]
    OtherVersion(u8),
    #[error("its key is not PREFIX/CHANNEL/TYPE/SOURCE")]
    Key,
    #[error("it deletes a key, and events are never deleted")]
    Delete,
    #[error("it has no attachment: its publisher is no member of a federation of rtorb")]
    NoHeader,
    #[error("its header has {0} bytes and not {right}", right = SampleHeader::BYTES)]
    HeaderLength(usize),
    #[error("its priority is {0}")]
    Priority(i16),
    #[error("it is not encoded as CDR in the byte order of either kind of machine")]
    Encapsulation,
    #[error("it is no event: {0}")]
    Event(DecodeError),
    #[error("{0} bytes follow its event")]
    Rest(usize),
    #[error("the type or the source of its event is not that of its key")]
    OtherEvent,
    #[error("its run has more than {most} types and sources", most = crate::keys::KEYS_MAX)]
    TooManyKeys,
    #[error("it is no list of numbers")]
    Report,
}

impl SampleHeader {
    pub(crate) const BYTES: usize = 36;

    pub(crate) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0] = VERSION;
        bytes[2..4].copy_from_slice(&self.priority.unwrap_or(NO_PRIORITY).to_be_bytes());
        let numbers = [self.run, self.index, self.sent_ticks, self.deadline_ns];
        for (place, number) in bytes[4..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    /// The time until the deadline of the event in nanoseconds, at a time in the unit of `sent_ticks`; `None` without a deadline. An event
    /// from the future, by a clock that is ahead, has all its time.
    pub(crate) fn deadline_left_ns(&self, now_ticks: u64) -> Option<u64> {
        if self.deadline_ns == 0 {
            return None;
        }
        let age_ns = now_ticks
            .saturating_sub(self.sent_ticks)
            .saturating_mul(TICK_NS);
        Some(self.deadline_ns.saturating_sub(age_ns))
    }

    /// Reads a header.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, MalformedSample> {
        match bytes.first() {
            None => return Err(MalformedSample::HeaderLength(0)),
            Some(&VERSION) => {}
            Some(&other) => return Err(MalformedSample::OtherVersion(other)),
        }
        let bytes: &[u8; Self::BYTES] = bytes
            .try_into()
            .map_err(|_| MalformedSample::HeaderLength(bytes.len()))?;
        let number = |at: usize| {
            let (number, _) = bytes[at..]
                .split_first_chunk()
                .expect("the places are constant");
            u64::from_be_bytes(*number)
        };
        let priority = match i16::from_be_bytes([bytes[2], bytes[3]]) {
            NO_PRIORITY => None,
            wrong @ i16::MIN..0 => return Err(MalformedSample::Priority(wrong)),
            priority => Some(priority),
        };
        Ok(Self {
            priority,
            run: number(4),
            index: number(12),
            sent_ticks: number(20),
            deadline_ns: number(28),
        })
    }
}

/// Encodes an event as the payload of a sample: the four bytes of a CDR encapsulation, as DDS and ROS 2 have it, and the event in
/// this machine's byte order, with its text in UTF-8.
///
/// # Errors
/// If a value cannot be encoded.
pub(crate) fn encode_event(event: &Event) -> Result<Vec<u8>, EncodeError> {
    let mut w = Writer::new(Vec::new(), BYTES_MAX).with_char_code_set(CharCodeSet::Utf8);
    event.encode(&mut w)?;
    let mut payload = ENCAPSULATION.to_vec();
    payload.extend_from_slice(&w.to_bytes());
    Ok(payload)
}

/// Decodes the payload of a sample.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn decode_event(payload: &[u8], key: EventKey) -> Result<Event, MalformedSample> {
    let (encapsulation, body) = payload
        .split_first_chunk::<4>()
        .ok_or(MalformedSample::Encapsulation)?;
    let order = match encapsulation {
        [0, 0, _, _] => ByteOrder::Big,
        [0, 1, _, _] => ByteOrder::Little,
        [_, _, _, _] => return Err(MalformedSample::Encapsulation),
    };
    let mut r = Reader::new(body, order).with_char_code_set(CharCodeSet::Utf8);
    let event = Event::decode(&mut r).map_err(MalformedSample::Event)?;
    if r.remaining() > 0 {
        return Err(MalformedSample::Rest(r.remaining()));
    }
    let own = EventKey {
        event_type: event.header.r#type,
        source: event.header.source,
    };
    if own != key {
        return Err(MalformedSample::OtherEvent);
    }
    Ok(event)
}

const NO_PRIORITY: i16 = -1;

/// Nanoseconds of the unit of UTC.
const TICK_NS: u64 = 100;

const ENCAPSULATION: [u8; 4] = match ByteOrder::NATIVE {
    ByteOrder::Big => [0, 0, 0, 0],
    ByteOrder::Little => [0, 1, 0, 0],
};

/// The member checks the size of what it publishes itself.
const BYTES_MAX: usize = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb::any::Any;

    fn header() -> SampleHeader {
        SampleHeader {
            priority: Some(32_767),
            run: u64::MAX - 1,
            index: 7,
            sent_ticks: 1 << 60,
            deadline_ns: 5_000_000,
        }
    }

    fn event() -> Event {
        let text = Any::from_value(&"Grüße".to_owned()).expect("text goes into an any");
        let mut event = Event::new(3, 20, text);
        event.header.creation_time = 12;
        event.data.payload = vec![1, 2, 3];
        event
    }

    const KEY: EventKey = EventKey {
        event_type: 20,
        source: 3,
    };

    #[test]
    fn a_header_is_read_as_it_was_written() {
        for priority in [None, Some(0), Some(99)] {
            let header = SampleHeader {
                priority,
                ..header()
            };
            assert_eq!(SampleHeader::read(&header.to_bytes()), Ok(header));
        }
    }

    #[test]
    fn the_time_until_a_deadline_is_counted_from_the_publication() {
        let header = SampleHeader {
            sent_ticks: 1_000,
            deadline_ns: 5_000,
            ..header()
        };
        assert_eq!(header.deadline_left_ns(1_000), Some(5_000));
        assert_eq!(header.deadline_left_ns(1_020), Some(3_000));
        assert_eq!(header.deadline_left_ns(1_050), Some(0));
        assert_eq!(header.deadline_left_ns(u64::MAX), Some(0));
        assert_eq!(header.deadline_left_ns(0), Some(5_000), "a clock ahead");
        let without = SampleHeader {
            deadline_ns: 0,
            ..header
        };
        assert_eq!(without.deadline_left_ns(u64::MAX), None);
    }

    #[test]
    fn a_wrong_header_says_what_is_wrong() {
        let bytes = header().to_bytes();
        let read = SampleHeader::read;
        assert_eq!(read(&[]), Err(MalformedSample::HeaderLength(0)));
        assert_eq!(read(&bytes[..35]), Err(MalformedSample::HeaderLength(35)));
        let mut newer = bytes;
        newer[0] = 2;
        assert_eq!(read(&newer), Err(MalformedSample::OtherVersion(2)));
        assert_eq!(read(&newer[..1]), Err(MalformedSample::OtherVersion(2)));
        let mut wrong = bytes;
        wrong[2] = 0x80;
        assert!(matches!(read(&wrong), Err(MalformedSample::Priority(_))));
        let said = MalformedSample::OtherVersion(2).to_string();
        assert!(
            said.contains("version 2") && said.contains("version 1"),
            "{said}"
        );
    }

    #[test]
    fn an_event_is_decoded_as_it_was_encoded() {
        let event = event();
        let payload = encode_event(&event).expect("it can be encoded");
        assert_eq!(decode_event(&payload, KEY), Ok(event));
    }

    #[test]
    fn an_event_of_the_other_byte_order_is_decoded() {
        let (order, mark) = match ByteOrder::NATIVE {
            ByteOrder::Big => (ByteOrder::Little, 1),
            ByteOrder::Little => (ByteOrder::Big, 0),
        };
        let event = event();
        let mut w = Writer::new(Vec::new(), 1000)
            .with_order(order)
            .with_char_code_set(CharCodeSet::Utf8);
        event.encode(&mut w).expect("it can be encoded");
        let payload = [&[0, mark, 0, 0], w.to_bytes().as_slice()].concat();
        assert_eq!(decode_event(&payload, KEY).as_ref(), Ok(&event));
    }

    #[test]
    fn no_bytes_are_taken_for_an_event_that_is_none() {
        let payload = encode_event(&event()).expect("it can be encoded");
        for length in 0..payload.len() {
            assert!(
                decode_event(&payload[..length], KEY).is_err(),
                "{length} bytes"
            );
        }
        let longer = [payload.as_slice(), &[0]].concat();
        assert_eq!(decode_event(&longer, KEY), Err(MalformedSample::Rest(1)));
        let mut other = payload.clone();
        other[1] = 9;
        assert_eq!(
            decode_event(&other, KEY),
            Err(MalformedSample::Encapsulation)
        );
        let key = EventKey { source: 4, ..KEY };
        assert_eq!(
            decode_event(&payload, key),
            Err(MalformedSample::OtherEvent)
        );
        // A changed byte is another event, or none: never a panic.
        for at in 4..payload.len() {
            for byte in [0, 0x7f, 0x80, 0xff] {
                let mut changed = payload.clone();
                changed[at] = byte;
                let _ = decode_event(&changed, KEY);
            }
        }
    }
}
