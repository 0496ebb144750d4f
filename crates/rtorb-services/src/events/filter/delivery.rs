//! What a subscription hands over: one event, or the events of a conjunction together.

use super::memory::Memory;
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

/// What is to be pushed to the consumer in one call.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a>(What<'a>);

#[derive(Clone, Copy, Debug)]
enum What<'a> {
    One(EventOctets<'a>),
    Together {
        memory: &'a Memory,
        order: &'a [usize],
    },
}

impl<'a> Delivery<'a> {
    /// One event.
    pub fn one(event: EventOctets<'a>) -> Self {
        Self(What::One(event))
    }

    pub(super) fn together(memory: &'a Memory, order: &'a [usize]) -> Self {
        Self(What::Together { memory, order })
    }

    /// How many events, 1 at least.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        match self.0 {
            What::One(_) => 1,
            What::Together { order, .. } => order.len(),
        }
    }

    /// Octets of all events, without padding between them.
    pub fn octets_total(&self) -> usize {
        self.events().map(|event| event.octets.len()).sum()
    }

    /// The events, in the order in which they came.
    pub fn events(&self) -> impl Iterator<Item = EventOctets<'a>> + use<'a> {
        let what = self.0;
        (0..self.len()).map(move |index| match what {
            What::One(event) => event,
            What::Together { memory, order } => memory.event(order[index]),
        })
    }
}
