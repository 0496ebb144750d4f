//! The output of a consumer's filter on its way to the queue.

use crate::events::event::{Form, Message};
use crate::events::filter::Delivery;
use rtorb::cdr::CharCodeSet;

/// Messages one behind the other. Clearing keeps the memory.
#[derive(Debug, Default)]
pub(super) struct FilterOutput {
    bytes: Vec<u8>,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    form: Form,
    bytes: usize,
}

impl FilterOutput {
    /// Adds the events of one push. `text` is the code set of their text, if they have any.
    pub(super) fn add(&mut self, delivery: &Delivery<'_>, text: Option<CharCodeSet>) {
        let begin = self.bytes.len();
        for event in delivery.events() {
            append(&mut self.bytes, begin, event.bytes);
        }
        self.parts.push(Part {
            form: Form {
                events: delivery.len() as u32,
                text,
            },
            bytes: self.bytes.len() - begin,
        });
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        let mut rest = &self.bytes[..];
        self.parts.iter().map(move |part| {
            let (bytes, behind) = rest.split_at(part.bytes);
            rest = behind;
            Message {
                form: part.form,
                bytes,
            }
        })
    }

    /// Removes all messages and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.parts.clear();
    }
}

/// Appends one event to the set that begins at `begin`.
///
/// An event begins at a multiple of 4, and its fourth member is the first that is aligned to 8. At an offset that is a multiple of 8
/// from the set's count, 4 bytes of padding go before that member; the rest is the same.
fn append(bytes: &mut Vec<u8>, begin: usize, event: &[u8]) {
    let written = bytes.len() - begin;
    bytes.resize(begin + written.next_multiple_of(4), 0);
    // The count before the set takes 4 bytes.
    if (bytes.len() - begin).is_multiple_of(8) {
        bytes.extend_from_slice(event);
        return;
    }
    let (small, rest) = event.split_at(event.len().min(SMALL_MEMBERS_BYTES));
    bytes.extend_from_slice(small);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(rest);
}

/// Type, source and ttl.
const SMALL_MEMBERS_BYTES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::event::EncodedEvents;
    use crate::stubs::rtec_event::rtec_event_comm::{Event, EventData, EventHeader};
    use rtorb::any::Any;

    fn event(number: i32, payload: usize) -> Event {
        Event {
            header: EventHeader {
                r#type: 16 + number,
                source: number,
                ttl: 1,
                creation_time: u64::MAX - 1,
                ec_recv_time: 6,
                ec_send_time: 7,
            },
            data: EventData {
                pad1: 0,
                payload: vec![9; payload],
                any_value: Any::from_value(&0.25f64).expect("a double"),
            },
        }
    }

    #[test]
    fn appended_events_are_an_event_set() {
        for first in 0..9 {
            for second in 0..9 {
                let events = [event(1, first), event(2, second), event(3, first)];
                let mut set = vec![1, 2, 3];
                for event in &events {
                    let bytes =
                        EncodedEvents::of(core::slice::from_ref(event), CharCodeSet::Latin1);
                    append(&mut set, 3, bytes.expect("it fits").message().bytes);
                }
                let form = Form {
                    events: 3,
                    text: None,
                };
                let message = Message {
                    form,
                    bytes: &set[3..],
                };
                assert_eq!(message.values().as_deref(), Ok(&events[..]));
            }
        }
    }
}
