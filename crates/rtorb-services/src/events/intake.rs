//! The intake of a lane: events that are still to be offered to the lane's consumers.
//!
//! An event is copied into it once, however many consumers of the lane want it, so its cost for the supplier's thread does not grow
//! with the consumers that are less urgent. The lane's thread distributes the events. A supplier's thread that finds no room
//! distributes the oldest event itself: nothing is lost here, and no thread waits for more than the events before its own.

use super::config::ChannelConfig;
use super::event::{Incoming, Message};
use super::queue::EventQueue;
use crate::stubs::rtec_event::rtec_event_comm::EventHeader;
use core::sync::atomic::{AtomicUsize, Ordering};
use rtorb_os::sync::Mutex;
use std::collections::VecDeque;

/// A bounded first-in, first-out queue. It reserves all its memory when it is made.
#[derive(Debug)]
pub(crate) struct Intake {
    /// Events that are not offered to every consumer yet, with the one that is being offered.
    events: AtomicUsize,
    pending: Mutex<PendingEvents>,
    /// Held by the thread that distributes, so that events are offered in the order in which they came. It holds the bytes of the
    /// event that is being offered.
    distribution: Mutex<Vec<u8>>,
}

#[derive(Debug)]
struct PendingEvents {
    queue: EventQueue,
    /// The headers of the events in the queue.
    headers: VecDeque<EventHeader>,
}

impl Intake {
    pub(crate) fn new(config: &ChannelConfig) -> Self {
        Self {
            events: AtomicUsize::new(0),
            pending: Mutex::new(PendingEvents {
                queue: EventQueue::new(config.intake_events, config.intake_bytes),
                headers: VecDeque::with_capacity(config.intake_events),
            }),
            distribution: Mutex::new(Vec::with_capacity(config.event_bytes_max)),
        }
    }

    /// Events that are not offered to every consumer yet.
    pub(crate) fn len(&self) -> usize {
        self.events.load(Ordering::SeqCst)
    }

    /// When the oldest pending event came. An event that is being offered is not pending.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        if self.len() == 0 {
            return None;
        }
        self.pending.lock().queue.oldest().map(|it| it.came_ns)
    }

    /// Adds an event that came at `came_ns`. While there is no room, it calls `offer` for the oldest event on this thread. If all
    /// earlier events are offered and other threads took the room, it calls `offer` for this event itself.
    pub(crate) fn enqueue(
        &self,
        event: &Incoming<'_>,
        came_ns: u64,
        mut offer: impl FnMut(&Incoming<'_>, u64),
    ) {
        if self.try_enqueue(event, came_ns) {
            return;
        }
        let mut bytes = self.distribution.lock();
        for _ in 0..self.len() {
            if self.try_enqueue(event, came_ns) {
                return;
            }
            self.offer_oldest(&mut bytes, &mut offer);
        }
        if !self.try_enqueue(event, came_ns) {
            offer(event, came_ns);
        }
    }

    /// Calls `offer` with the oldest event and the time when it came, if there is one. Waits while another thread distributes.
    pub(crate) fn distribute_oldest(&self, mut offer: impl FnMut(&Incoming<'_>, u64)) {
        let mut bytes = self.distribution.lock();
        self.offer_oldest(&mut bytes, &mut offer);
    }

    /// True if a supplier's thread waits for the distribution lock because it has an event and no room.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.distribution.has_waiters()
    }

    fn try_enqueue(&self, event: &Incoming<'_>, came_ns: u64) -> bool {
        let mut pending = self.pending.lock();
        if !pending.queue.push(event.message, came_ns) {
            return false;
        }
        pending.headers.push_back(event.header);
        self.events.fetch_add(1, Ordering::SeqCst);
        true
    }

    /// Offers the oldest event. The caller holds the distribution lock, which owns `bytes`.
    fn offer_oldest(&self, bytes: &mut Vec<u8>, offer: &mut impl FnMut(&Incoming<'_>, u64)) {
        let mut pending = self.pending.lock();
        let (Some(entry), Some(header)) = (pending.queue.pop(bytes), pending.headers.pop_front())
        else {
            return;
        };
        drop(pending);
        let message = Message {
            form: entry.form,
            bytes,
        };
        let _offered = Offered(&self.events);
        offer(&Incoming { header, message }, entry.came_ns);
    }
}

/// Counts an event as offered when it is dropped. If `offer` panics, the lane's thread must not look for the event for ever.
struct Offered<'i>(&'i AtomicUsize);

impl Drop for Offered<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::client::Arrival;
    use crate::events::event::EncodedEvents;
    use rtorb::cdr::CharCodeSet;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn an_event_whose_offer_panics_is_not_pending_for_ever() {
        let intake = Intake::new(&ChannelConfig::default());
        let event = Arrival::default().event;
        let bytes = EncodedEvents::of(core::slice::from_ref(&event), CharCodeSet::Latin1);
        let bytes = bytes.expect("it fits");
        let incoming = bytes.incoming(event.header);
        intake.enqueue(&incoming, 1, |_, _| panic!("there is room"));
        let offered = catch_unwind(AssertUnwindSafe(|| {
            intake.distribute_oldest(|_, _| panic!("a fault of a consumer"));
        }));
        assert!(offered.is_err());
        assert_eq!(intake.len(), 0);
    }
}
