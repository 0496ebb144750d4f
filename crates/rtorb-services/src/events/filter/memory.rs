//! The memory of a tree's conjunctions: remembered events one behind the other.

use crate::stubs::rtec_event::rtec_event_comm::EventHeader;

/// A delivered event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventOctets<'a> {
    /// Its decoded header.
    pub header: &'a EventHeader,
    /// The event in native byte order, encoded for an offset that is 4 modulo 8: that of the first event of a set, behind the
    /// count. At other offsets, 4 bytes of padding go between `ttl` and `creation_time`; the rest is the same.
    pub octets: &'a [u8],
}

#[derive(Debug)]
pub(super) struct Memory {
    events: Vec<Remembered>,
    octets: Vec<u8>,
    bytes_max: usize,
}

#[derive(Debug)]
struct Remembered {
    header: EventHeader,
    begin: usize,
    end: usize,
}

impl Memory {
    /// Memory for at most `events` events. It reserves `octets` bytes and grows to at most `bytes_max`.
    pub(super) fn new(events: usize, octets: usize, bytes_max: usize) -> Self {
        Self {
            events: Vec::with_capacity(events),
            octets: Vec::with_capacity(octets.min(bytes_max)),
            bytes_max,
        }
    }

    /// Copies an event and returns its index, or `None` if there is no room.
    pub(super) fn remember(&mut self, event: EventOctets<'_>) -> Option<usize> {
        let begin = self.octets.len();
        let end = begin + event.octets.len();
        if end > self.bytes_max {
            return None;
        }
        if end > self.octets.capacity() {
            let room = end.next_power_of_two().min(self.bytes_max);
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

    /// Removes all events and keeps the memory.
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
