//! The output of a subscription: one event, or the events of a conjunction together.

use super::memory::{EventBytes, Memory};

/// The events of one push to the consumer.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a>(Events<'a>);

#[derive(Clone, Copy, Debug)]
enum Events<'a> {
    One(EventBytes<'a>),
    Together {
        memory: &'a Memory,
        order: &'a [usize],
    },
}

impl<'a> Delivery<'a> {
    /// One event.
    pub fn one(event: EventBytes<'a>) -> Self {
        Self(Events::One(event))
    }

    pub(super) fn together(memory: &'a Memory, order: &'a [usize]) -> Self {
        Self(Events::Together { memory, order })
    }

    /// The number of events, 1 at least.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        match self.0 {
            Events::One(_) => 1,
            Events::Together { order, .. } => order.len(),
        }
    }

    /// The events, in the order in which they came.
    pub fn events(&self) -> impl Iterator<Item = EventBytes<'a>> + use<'a> {
        let events = self.0;
        (0..self.len()).map(move |index| match events {
            Events::One(event) => event,
            Events::Together { memory, order } => memory.event(order[index]),
        })
    }
}
