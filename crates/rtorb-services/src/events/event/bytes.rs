//! Events as bytes: in a request that arrives, in a queue, and in a request that is sent.
//!
//! The bytes are those after the count of an EventSet that begins at a multiple of 8, in this machine's byte order, as GIOP 1.2
//! encodes them. Most events arrive and leave in this form, so the channel copies them and never decodes them.

use crate::stubs::rtec_event::rtec_event_comm::{Event, EventHeader};
use rtorb::SystemException;
use rtorb::cdr::{ByteOrder, CharCodeSet, Decode, Encode, EncodeError, Reader, Writer};

/// The content of one push to a consumer: one event, or the events of a conjunction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message<'o> {
    pub(crate) form: Form,
    pub(crate) bytes: &'o [u8],
}

/// What is needed to decode the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    /// The number of events.
    pub(crate) events: u32,
    /// The code set of their text; `None` if they certainly have no text.
    pub(crate) text: Option<CharCodeSet>,
}

/// A received event with its decoded header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming<'o> {
    pub(crate) header: EventHeader,
    pub(crate) message: Message<'o>,
}

/// Reads the arguments of a `push`, calls `each` for every event, and returns their number.
///
/// A single event in this machine's byte order and GIOP 1.2 is borrowed from the request. Its any is not checked: code that
/// decodes it checks it.
///
/// # Errors
/// MARSHAL and similar if the bytes are not events. `each` may have been called for the events before.
pub(crate) fn read<'m>(
    arguments: &mut Reader<'m>,
    mut each: impl FnMut(Incoming<'_>),
) -> Result<u64, SystemException> {
    let body = arguments.remaining();
    arguments.buffer_up(body)?;
    let bytes = arguments.buffered();
    let is_ours = arguments.order() == ByteOrder::NATIVE
        && arguments.giop_minor() == 2
        && arguments.position().is_multiple_of(LARGEST_ALIGNMENT);
    let count = arguments.count(Event::BYTES_MIN)?;
    if count == 1
        && is_ours
        && let Some(bytes) = bytes.get(COUNT_BYTES..)
    {
        each(borrowed(bytes, arguments)?);
        return Ok(1);
    }
    for _ in 0..count {
        let text = arguments.char_code_set();
        let event = Event::decode(arguments)?;
        let bytes = EncodedEvents::of(core::slice::from_ref(&event), text)?;
        each(bytes.incoming(event.header));
    }
    Ok(count as u64)
}

/// Encoded events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EncodedEvents {
    form: Form,
    /// With the count, so that the alignment is that of a request.
    set: Vec<u8>,
}

impl EncodedEvents {
    /// Encodes events, with their text in the given code set.
    ///
    /// # Errors
    /// If a value cannot be encoded.
    pub(crate) fn of(events: &[Event], text: CharCodeSet) -> Result<Self, SystemException> {
        let mut w = Writer::new(Vec::new(), BYTES_MAX).with_char_code_set(text);
        events.encode(&mut w)?;
        Ok(Self {
            form: Form {
                events: events.len() as u32,
                text: Some(text),
            },
            set: w.to_bytes(),
        })
    }

    pub(crate) fn message(&self) -> Message<'_> {
        Message {
            form: self.form,
            bytes: &self.set[COUNT_BYTES..],
        }
    }

    /// Returns the only event, with its header, as if it had been received.
    pub(crate) fn incoming(&self, header: EventHeader) -> Incoming<'_> {
        Incoming {
            header,
            message: self.message(),
        }
    }
}

impl<'o> Message<'o> {
    /// True if the bytes fit unchanged into the arguments that `w` writes.
    pub(crate) fn goes_into(&self, w: &Writer<'_>) -> bool {
        w.order() == ByteOrder::NATIVE
            && w.giop_minor() == 2
            && w.position().is_multiple_of(LARGEST_ALIGNMENT)
            && self.form.text.is_none_or(|text| text == w.char_code_set())
    }

    /// Writes the bytes unchanged.
    pub(crate) fn write(&self, w: &mut Writer<'o>) -> Result<(), EncodeError> {
        w.count(self.form.events as usize)?;
        w.lend_bytes(self.bytes)
    }

    /// Decodes the events, for a consumer that the bytes do not fit.
    ///
    /// # Errors
    /// MARSHAL and similar if the bytes are not events.
    pub(crate) fn values(&self) -> Result<Vec<Event>, SystemException> {
        let set = [&self.form.events.to_ne_bytes()[..], self.bytes].concat();
        let mut r = Reader::new(&set, ByteOrder::NATIVE)
            .with_char_code_set(self.form.text.unwrap_or_default());
        Ok(Vec::<Event>::decode(&mut r)?)
    }
}

/// Borrows the only event of a request, behind the count.
fn borrowed<'m>(
    bytes: &'m [u8],
    arguments: &mut Reader<'m>,
) -> Result<Incoming<'m>, SystemException> {
    let text = arguments.char_code_set();
    let header = EventHeader::decode(arguments)?;
    let _pad = i32::decode(arguments)?;
    let _payload = arguments.octets()?;
    let kind = u32::decode(arguments)?;
    // The rest is the any's value.
    arguments.take(arguments.remaining())?;
    Ok(Incoming {
        header,
        message: Message {
            form: Form {
                events: 1,
                text: (!is_without_text(kind)).then_some(text),
            },
            bytes,
        },
    })
}

/// True for the TypeCode kinds without value and of numbers (CORBA 3, 15.3.5.1), whose encoding does not depend on a code set.
fn is_without_text(kind: u32) -> bool {
    matches!(kind, 0..=8 | 10 | 23 | 24)
}

/// The count of an EventSet.
const COUNT_BYTES: usize = 4;

/// The largest alignment of a CDR type.
const LARGEST_ALIGNMENT: usize = 8;

/// The bound on the bytes of a push: more than the ORB accepts in a message.
const BYTES_MAX: usize = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stubs::rtec_event::rtec_event_comm::EventData;
    use rtorb::any::Any;

    fn event(number: i32, payload: &[u8], any_value: Any) -> Event {
        Event {
            header: EventHeader {
                r#type: 16 + number,
                source: number,
                ttl: 1,
                creation_time: 5,
                ec_recv_time: 6,
                ec_send_time: 7,
            },
            data: EventData {
                pad1: 0,
                payload: payload.to_vec(),
                any_value,
            },
        }
    }

    fn anys() -> Vec<Any> {
        vec![
            Any::NULL,
            Any::from_value(&7i32).expect("a long"),
            Any::from_value(&0.5f64).expect("a double"),
            Any::from_value(&"Grüße".to_owned()).expect("a string"),
            Any::from_value(&event(3, b"inner", Any::NULL)).expect("a struct"),
        ]
    }

    fn encoded(events: &[Event], order: ByteOrder, minor: u8) -> Vec<u8> {
        let mut w = Writer::new(Vec::new(), 1 << 20)
            .with_order(order)
            .with_giop_minor(minor);
        events.encode(&mut w).expect("it fits");
        w.to_bytes()
    }

    fn read_all(set: &[u8], order: ByteOrder, minor: u8) -> Vec<Event> {
        let mut r = Reader::new(set, order).with_giop_minor(minor);
        let mut got = Vec::new();
        let count = read(&mut r, |incoming| {
            let values = incoming.message.values().expect("events");
            assert_eq!(values.len(), incoming.message.form.events as usize);
            assert_eq!(values[0].header, incoming.header);
            got.extend(values);
        });
        assert_eq!(count, Ok(got.len() as u64));
        got
    }

    #[test]
    fn what_comes_is_what_waits_in_every_order_and_version() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for minor in 0..=2 {
                for any in anys() {
                    for payload in [&b""[..], b"1", b"12345", &[7; 3000]] {
                        let one = [event(1, payload, any.clone())];
                        assert_eq!(read_all(&encoded(&one, order, minor), order, minor), one);
                        let several = [
                            event(1, payload, any.clone()),
                            event(2, b"x", any.clone()),
                            event(3, payload, Any::NULL),
                        ];
                        let set = encoded(&several, order, minor);
                        assert_eq!(read_all(&set, order, minor), several);
                    }
                }
            }
        }
    }

    #[test]
    fn an_event_of_this_machine_is_borrowed() {
        let set = encoded(&[event(1, b"abc", Any::NULL)], ByteOrder::NATIVE, 2);
        let mut r = Reader::new(&set, ByteOrder::NATIVE);
        let count = read(&mut r, |incoming| {
            assert_eq!(incoming.message.bytes.as_ptr(), set[4..].as_ptr());
            assert_eq!(incoming.message.form.text, None);
            let mut w = Writer::new(Vec::new(), 1000);
            assert!(incoming.message.goes_into(&w));
            incoming.message.write(&mut w).expect("it fits");
            assert_eq!(w.to_bytes(), set);
        });
        assert_eq!(count, Ok(1));
    }

    #[test]
    fn bytes_that_are_no_events_are_refused() {
        let set = encoded(&[event(1, b"abc", Any::NULL)], ByteOrder::NATIVE, 2);
        for length in 0..set.len() {
            let mut r = Reader::new(&set[..length], ByteOrder::NATIVE);
            assert!(read(&mut r, |_| panic!("an event of {length} bytes")).is_err());
        }
        let mut claims_more = set;
        claims_more[0] = 2;
        let mut r = Reader::new(&claims_more, ByteOrder::NATIVE);
        assert!(read(&mut r, |_| {}).is_err());
    }

    #[test]
    fn text_goes_only_where_its_code_set_is_spoken() {
        let bytes =
            EncodedEvents::of(&[event(1, b"", Any::NULL)], CharCodeSet::Utf8).expect("it fits");
        let latin = Writer::new(Vec::new(), 1000);
        assert!(!bytes.message().goes_into(&latin));
        let utf8 = Writer::new(Vec::new(), 1000).with_char_code_set(CharCodeSet::Utf8);
        assert!(bytes.message().goes_into(&utf8));
        assert!(!bytes.message().goes_into(&utf8.with_order(other_order())));
    }

    fn other_order() -> ByteOrder {
        match ByteOrder::NATIVE {
            ByteOrder::Little => ByteOrder::Big,
            ByteOrder::Big => ByteOrder::Little,
        }
    }
}
