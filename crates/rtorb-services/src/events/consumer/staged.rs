//! What a subscription lets through, between its answer and the queue.

use crate::events::event::{Form, Message};
use crate::events::filter::Delivery;
use rtorb::cdr::CharCodeSet;

/// Messages one behind the other, in memory that is kept.
#[derive(Debug, Default)]
pub(super) struct Staged {
    octets: Vec<u8>,
    parts: Vec<(Form, usize)>,
}

impl Staged {
    /// Adds what goes out together; its text, if it has any, is in that code set.
    pub(super) fn add(&mut self, delivery: &Delivery<'_>, text: Option<CharCodeSet>) {
        let begin = self.octets.len();
        for event in delivery.events() {
            append(&mut self.octets, begin, event.octets);
        }
        let form = Form {
            events: delivery.len() as u32,
            text,
        };
        self.parts.push((form, self.octets.len() - begin));
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        let mut begin = 0;
        self.parts.iter().map(move |&(form, octets)| {
            let message = Message {
                form,
                octets: &self.octets[begin..][..octets],
            };
            begin += octets;
            message
        })
    }

    /// Forgets all, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.octets.clear();
        self.parts.clear();
    }
}

/// Writes one more event of the set whose first begins at `begin`.
///
/// An event begins at a multiple of 4, and the first number of 8 octets in it is the fourth member: where it begins at one of 8,
/// 4 octets of padding come before that, and all that follows lies as it did.
fn append(octets: &mut Vec<u8>, begin: usize, event: &[u8]) {
    let written = octets.len() - begin;
    octets.resize(begin + written.next_multiple_of(4), 0);
    // The count before the set is 4 octets long.
    match (octets.len() - begin).is_multiple_of(8) {
        true => octets.extend_from_slice(event),
        false => {
            let (small, rest) = event.split_at(event.len().min(SMALL_MEMBERS_OCTETS));
            octets.extend_from_slice(small);
            octets.extend_from_slice(&[0; 4]);
            octets.extend_from_slice(rest);
        }
    }
}

/// Type, source and ttl.
const SMALL_MEMBERS_OCTETS: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::event::Octets;
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
    fn events_one_behind_the_other_are_an_event_set() {
        for first in 0..9 {
            for second in 0..9 {
                let events = [event(1, first), event(2, second), event(3, first)];
                let mut set = vec![1, 2, 3];
                for event in &events {
                    let octets = Octets::of(core::slice::from_ref(event), CharCodeSet::Latin1);
                    append(&mut set, 3, octets.expect("it fits").message().octets);
                }
                let form = Form {
                    events: 3,
                    text: None,
                };
                let message = Message {
                    form,
                    octets: &set[3..],
                };
                assert_eq!(message.values().as_deref(), Ok(&events[..]));
            }
        }
    }
}
