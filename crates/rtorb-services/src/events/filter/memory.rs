//! The memory of a tree's conjunctions: remembered events one behind the other.

use crate::stubs::rtec_event::rtec_event_comm::EventHeader;

/// A delivered event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventBytes<'a> {
    /// Its decoded header.
    pub header: &'a EventHeader,
    /// The event in native byte order, encoded for an offset that is 4 modulo 8: that of the first event of a set, behind the
    /// count. At other offsets, 4 bytes of padding go between `ttl` and `creation_time`; the rest is the same.
    pub bytes: &'a [u8],
}

#[derive(Debug)]
pub(super) struct Memory {
    events: Vec<Remembered>,
    bytes: Vec<u8>,
    bytes_max: usize,
}

#[derive(Debug)]
struct Remembered {
    header: EventHeader,
    begin: usize,
    end: usize,
}

impl Memory {
    /// Memory for at most `events` events. It reserves `bytes` and grows to at most `bytes_max`.
    pub(super) fn new(events: usize, bytes: usize, bytes_max: usize) -> Self {
        Self {
            events: Vec::with_capacity(events),
            bytes: Vec::with_capacity(bytes.min(bytes_max)),
            bytes_max,
        }
    }

    /// Copies an event and returns its index, or `None` if there is no room.
    pub(super) fn remember(&mut self, event: EventBytes<'_>) -> Option<usize> {
        let begin = self.bytes.len();
        let end = begin + event.bytes.len();
        if end > self.bytes_max {
            return None;
        }
        if end > self.bytes.capacity() {
            let room = end.next_power_of_two().min(self.bytes_max);
            self.bytes.reserve_exact(room - begin);
        }
        self.bytes.extend_from_slice(event.bytes);
        self.events.push(Remembered {
            header: *event.header,
            begin,
            end,
        });
        Some(self.events.len() - 1)
    }

    pub(super) fn event(&self, index: usize) -> EventBytes<'_> {
        let remembered = &self.events[index];
        EventBytes {
            header: &remembered.header,
            bytes: &self.bytes[remembered.begin..remembered.end],
        }
    }

    /// Removes all events and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.bytes.clear();
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
        let mut remember = |bytes: &[u8]| {
            let event = EventBytes {
                header: &header,
                bytes,
            };
            let place = memory.remember(event);
            if let Some(place) = place {
                assert_eq!(memory.event(place), event);
            }
            (place, memory.bytes.capacity())
        };
        assert_eq!(remember(&[1; 10]), (Some(0), 10));
        assert_eq!(remember(&[2; 20]), (Some(1), 32));
        assert_eq!(remember(&[3; 71]), (None, 32));
        assert_eq!(remember(&[4; 70]), (Some(2), 100));
        assert_eq!(memory.event(1).bytes, [2; 20]);
        memory.clear();
        assert_eq!(memory.bytes.capacity(), 100);
    }
}
