//! The clients that a plain channel still has to notify that they are disconnected.

use std::collections::VecDeque;

use crate::stubs::cos_event::cos_event_comm::{PushConsumer, PushSupplier};

/// A client to notify that it is disconnected.
#[derive(Debug)]
pub(super) enum Goodbye {
    Supplier(PushSupplier),
    Consumer(PushConsumer),
}

/// The clients in the order in which they were disconnected, with a bound for suppliers and one for consumers.
#[derive(Debug)]
pub(super) struct Goodbyes {
    waiting: VecDeque<Goodbye>,
    suppliers_max: usize,
    consumers_max: usize,
}

impl Goodbyes {
    pub(super) fn new(suppliers_max: usize, consumers_max: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            suppliers_max,
            consumers_max,
        }
    }

    /// Adds a client. Returns false, and leaves it out, if too many of its kind wait.
    pub(super) fn add(&mut self, goodbye: Goodbye) -> bool {
        let of_same_kind = |other: &&Goodbye| {
            std::mem::discriminant::<Goodbye>(other) == std::mem::discriminant(&goodbye)
        };
        let most = match goodbye {
            Goodbye::Supplier(_) => self.suppliers_max,
            Goodbye::Consumer(_) => self.consumers_max,
        };
        let has_room = self.waiting.iter().filter(of_same_kind).count() < most;
        if has_room {
            self.waiting.push_back(goodbye);
        }
        has_room
    }

    pub(super) fn take(&mut self) -> Option<Goodbye> {
        self.waiting.pop_front()
    }
}
