//! The events that the conjunctions of a tree remember, one behind the other in memory that is kept.

use super::delivery::EventOctets;
use crate::stubs::rtec_event::rtec_event_comm::EventHeader;

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
