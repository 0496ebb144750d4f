//! What is handed over to a lane: events that are still to be offered to its consumers.
//!
//! One hand-over an event, however many consumers of the lane want it: so what an event costs the thread that it comes in on does
//! not grow with those who are less urgent. The lane's own thread distributes. Where there is no room, the thread that hands over
//! distributes the oldest itself, so that nothing is lost here and nobody waits for more than what it hands over after.

use super::ChannelConfig;
use super::event::{Incoming, Message};
use super::queue::EventQueue;
use crate::stubs::rtec_event::rtec_event_comm::EventHeader;
use core::sync::atomic::{AtomicUsize, Ordering};
use rtorb_os::sync::Mutex;
use std::collections::VecDeque;

/// First in, first offered; bounded, with all its memory taken when it is made.
#[derive(Debug)]
pub(crate) struct Intake {
    /// Events that are not yet offered to everybody, the one that is being offered included.
    events: AtomicUsize,
    handed: Mutex<Handed>,
    /// Held by who distributes, so that events are offered in the order in which they came; memory for the one that it is about.
    distribution: Mutex<Vec<u8>>,
}

#[derive(Debug)]
struct Handed {
    queue: EventQueue,
    /// Of the events in the queue.
    headers: VecDeque<EventHeader>,
}

impl Intake {
    pub(crate) fn new(config: &ChannelConfig) -> Self {
        Self {
            events: AtomicUsize::new(0),
            handed: Mutex::new(Handed {
                queue: EventQueue::new(config.intake_events, config.intake_octets),
                headers: VecDeque::with_capacity(config.intake_events),
            }),
            distribution: Mutex::new(Vec::with_capacity(config.event_octets_max)),
        }
    }

    /// Events that are not yet offered to everybody.
    pub(crate) fn len(&self) -> usize {
        self.events.load(Ordering::SeqCst)
    }

    /// When the oldest of them came, unless that one is being offered.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        if self.len() == 0 {
            return None;
        }
        self.handed.lock().queue.oldest().map(|it| it.came_ns)
    }

    /// Adds an event that came at that time. Where there is no room for it, `offer` is called for the oldest until there is, on this
    /// thread; at last for this event itself, when all that came before are offered and others took the room.
    pub(crate) fn hand_over(
        &self,
        event: &Incoming<'_>,
        came_ns: u64,
        mut offer: impl FnMut(&Incoming<'_>, u64),
    ) {
        if self.take_in(event, came_ns) {
            return;
        }
        let mut octets = self.distribution.lock();
        for _ in 0..self.len() {
            if self.take_in(event, came_ns) {
                return;
            }
            self.offer_oldest(&mut octets, &mut offer);
        }
        if !self.take_in(event, came_ns) {
            offer(event, came_ns);
        }
    }

    /// Calls `offer` for the oldest event and the time when it came, if there is one; waits for who is distributing.
    pub(crate) fn distribute_oldest(&self, mut offer: impl FnMut(&Incoming<'_>, u64)) {
        let mut octets = self.distribution.lock();
        self.offer_oldest(&mut octets, &mut offer);
    }

    /// True if somebody waits for who is distributing: it has an event to hand over, and no room.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.distribution.has_waiters()
    }

    fn take_in(&self, event: &Incoming<'_>, came_ns: u64) -> bool {
        let mut handed = self.handed.lock();
        if !handed.queue.push(event.message, came_ns) {
            return false;
        }
        handed.headers.push_back(event.header);
        self.events.fetch_add(1, Ordering::SeqCst);
        true
    }

    /// As [`distribute_oldest`](Self::distribute_oldest), by who holds the distribution.
    fn offer_oldest(&self, octets: &mut Vec<u8>, offer: &mut impl FnMut(&Incoming<'_>, u64)) {
        let mut handed = self.handed.lock();
        let (Some(entry), Some(header)) = (handed.queue.pop(octets), handed.headers.pop_front())
        else {
            return;
        };
        drop(handed);
        let message = Message {
            form: entry.form,
            octets,
        };
        offer(&Incoming { header, message }, entry.came_ns);
        self.events.fetch_sub(1, Ordering::SeqCst);
    }
}
