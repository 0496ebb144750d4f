//! The events that the conjunctions of a tree remember, one behind the other in memory that is kept.

use crate::stubs::rtec_event::rtec_event_comm::EventHeader;

/// One event as it is forwarded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventOctets<'a> {
    /// What its octets say of it.
    pub header: &'a EventHeader,
    /// The event in native byte order, as laid out from a place that is 4 modulo 8: where the first event of a set is, behind the
    /// count. Elsewhere 4 octets of padding come between `ttl` and `creation_time`; all else is the same at both places.
    pub octets: &'a [u8],
}

#[derive(Debug)]
pub(super) struct Memory {
    events: Vec<Remembered>,
    octets: Vec<u8>,
    octets_max: usize,
}

#[derive(Debug)]
struct Remembered {
    header: EventHeader,
    begin: usize,
    end: usize,
}

impl Memory {
    /// For `events` at most, with room for `octets` that grows to `octets_max` at most.
    pub(super) fn new(events: usize, octets: usize, octets_max: usize) -> Self {
        Self {
            events: Vec::with_capacity(events),
            octets: Vec::with_capacity(octets.min(octets_max)),
            octets_max,
        }
    }

    /// Copies the event; where it is, or nothing when there is no room for it.
    pub(super) fn remember(&mut self, event: EventOctets<'_>) -> Option<usize> {
        let begin = self.octets.len();
        let end = begin + event.octets.len();
        if end > self.octets_max {
            return None;
        }
        if end > self.octets.capacity() {
            let room = end.next_power_of_two().min(self.octets_max);
            self.octets.reserve_exact(room - begin);
        }
        self.octets.extend_from_slice(event.octets);
        self.events.push(Remembered {
            header: *event.header,
            begin,
            end,
        });
        Some(self.events.len() - 1)
    }

    pub(super) fn event(&self, index: usize) -> EventOctets<'_> {
        let remembered = &self.events[index];
        EventOctets {
            header: &remembered.header,
            octets: &self.octets[remembered.begin..remembered.end],
        }
    }

    /// Forgets all, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.octets.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::filter::types;

    #[test]
    fn memory_grows_to_its_bound_and_no_further() {
        let header = EventHeader {
            r#type: types::UNDEFINED,
            source: 1,
            ttl: 1,
            creation_time: 0,
            ec_recv_time: 0,
            ec_send_time: 0,
        };
        let mut memory = Memory::new(4, 10, 100);
        let mut remember = |octets: &[u8]| {
            let event = EventOctets {
                header: &header,
                octets,
            };
            let place = memory.remember(event);
            if let Some(place) = place {
                assert_eq!(memory.event(place), event);
            }
            (place, memory.octets.capacity())
        };
        assert_eq!(remember(&[1; 10]), (Some(0), 10));
        assert_eq!(remember(&[2; 20]), (Some(1), 32));
        assert_eq!(remember(&[3; 71]), (None, 32));
        assert_eq!(remember(&[4; 70]), (Some(2), 100));
        assert_eq!(memory.event(1).octets, [2; 20]);
        memory.clear();
        assert_eq!(memory.octets.capacity(), 100);
    }
}
