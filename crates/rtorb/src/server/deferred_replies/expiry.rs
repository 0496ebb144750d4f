//! The deadlines of deferred replies: the watchdog answers calls that nobody has answered in time.
//!
//! The watchdog waits for no client. Where no event loop sends for it, and the client does not take the exception, it tries again. As long as
//! the client may take to receive any reply, the exception waits in the place of the reply; then the connection ends.

use super::{
    DeferredReplies, NOT_ANSWERED_IN_TIME, ReplyDemand, ReplyDestination, ReplyPlace, ReplyPlaces,
    TakenReply, TimeoutReply, UnsentReply,
};
use crate::clock::nanoseconds;
use crate::deadline::NONE_NS;
use crate::server::session::Session;
use crate::thread_state::EndingCalls;
use crate::wait::wake_tasks;
use crate::wait::watchdog::WatchedReplies;
use core::mem;
use std::sync::Arc;

/// How soon the watchdog tries again to send to a client that takes nothing, in nanoseconds.
const AGAIN_NS: u64 = 10_000_000;

impl ReplyPlaces {
    /// Plans a look of the watchdog at that time, or none at [`NONE_NS`]. Returns true if it has to look earlier than it would.
    #[must_use]
    pub(super) fn plan_look(&mut self, at_ns: u64) -> bool {
        let is_earlier = at_ns < self.next_look_ns;
        self.next_look_ns = self.next_look_ns.min(at_ns);
        is_earlier
    }

    /// Begins a look: from here on, each reply that is deferred plans another one. If no deadline has passed, begins none and returns when to
    /// look.
    fn begin_look(&mut self, now_ns: u64) -> Option<u64> {
        if self.next_look_ns > now_ns {
            return Some(self.next_look_ns);
        }
        self.next_look_ns = NONE_NS;
        None
    }
}

impl WatchedReplies for DeferredReplies {
    /// It holds the lock for one place at a time. A reply that is deferred meanwhile makes the watchdog look again.
    fn end_due(&self, now_ns: u64) -> Option<u64> {
        let planned = self.places.lock().begin_look(now_ns);
        if let Some(next_ns) = planned {
            return (next_ns < NONE_NS).then_some(next_ns);
        }
        let mut next_ns = NONE_NS;
        let mut number = 0;
        loop {
            let mut places = self.places.lock();
            let Some(place) = places.all.get(number) else {
                places.next_look_ns = places.next_look_ns.min(next_ns);
                return (next_ns < NONE_NS).then_some(next_ns);
            };
            let mut at_ns = place.due_ns();
            if at_ns <= now_ns {
                let due = self.take_from(&mut places, number);
                drop(places);
                at_ns = due.and_then(|due| due.expire(now_ns)).unwrap_or(NONE_NS);
            }
            next_ns = next_ns.min(at_ns);
            number += 1;
        }
    }
}

impl ReplyPlace {
    /// Returns when the watchdog acts on the unsent reply; [`NONE_NS`] if there is none, or it has no deadline.
    fn due_ns(&self) -> u64 {
        self.reply
            .as_ref()
            .map_or(NONE_NS, |reply| reply.deadline_ns)
    }
}

impl TakenReply<'_> {
    /// Answers a call whose deadline has passed. Returns when to try again, if the client takes nothing now.
    #[cold]
    fn expire(mut self, now_ns: u64) -> Option<u64> {
        // Interceptors see the end of the call here, and may start calls.
        let _ending = EndingCalls::begin();
        let reply = self.reply.as_ref()?;
        let ReplyDestination::Connection(session) = &reply.destination else {
            return None;
        };
        let session = Arc::clone(session);
        let timeout = *self.timeout.get_or_insert_with(|| {
            self.table.note_expired();
            let send_ns = nanoseconds(session.orb.limits.send_timeout);
            TimeoutReply {
                bytes: reply.write(&mut self.memory, &session.orb, |_| {
                    Err(NOT_ANSWERED_IN_TIME)
                }),
                until_ns: now_ns.saturating_add(send_ns),
            }
        });
        let (out, bytes) = (&mut self.memory.out, timeout.bytes);
        let sent = reply.send_to(&session, out, bytes, Session::send_if_room);
        let waker = self.waker.take();
        let again_ns = match sent {
            Ok(false) => self.await_room(&session, timeout, now_ns),
            Ok(true) | Err(_) => {
                drop(self);
                None
            }
        };
        // It may run any code of an executor.
        wake_tasks(waker);
        again_ns
    }

    /// Has the watchdog try again to send an answer of which the client takes nothing now. Returns when. Ends the connection if it was tried for
    /// too long.
    fn await_room(self, session: &Session, timeout: TimeoutReply, now_ns: u64) -> Option<u64> {
        if now_ns >= timeout.until_ns {
            session.end_slow_receiver();
            return None;
        }
        let again_ns = now_ns.saturating_add(AGAIN_NS);
        self.put_back(timeout, again_ns);
        Some(again_ns)
    }

    /// Puts the reply back into its place, where only the watchdog and the end of the ORB find it.
    fn put_back(mut self, timeout: TimeoutReply, again_ns: u64) {
        let mut places = self.table.places.lock();
        let place = &mut places.all[self.number];
        place.demand = ReplyDemand::Expired(timeout);
        place.memory = mem::take(&mut self.memory);
        place.reply = self.reply.take().map(|reply| UnsentReply {
            deadline_ns: again_ns,
            ..reply
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;

    #[test]
    fn the_watchdog_has_to_look_again_only_for_an_earlier_deadline() {
        let table = DeferredReplies::new(&Limits::default());
        let plan = |at_ns| table.places.lock().plan_look(at_ns);
        assert!(plan(20));
        assert!(!plan(20));
        assert!(!plan(30));
        assert!(plan(10));
        assert_eq!(table.end_due(5), Some(10), "no deadline has passed");
        assert!(!plan(20));
        assert_eq!(table.end_due(15), None, "no reply is left");
        assert!(plan(30));
    }
}
