//! The started calls of an ORB: a bounded number, each with memory that later calls use again.

use super::pending_call::PendingCall;
use super::waiter::CallSlot;
use core::sync::atomic::{AtomicU64, Ordering};
use rtorb_os::sync::Mutex;
use rtorb_wire::connection::Receiver;
use std::sync::Arc;

/// The places of the started calls of an ORB. The watchdog ends those whose deadlines have passed.
#[derive(Debug)]
pub(crate) struct CallTable {
    calls_max: usize,
    refused: AtomicU64,
    places: Mutex<Places>,
}

#[derive(Debug, Default)]
struct Places {
    /// Each place that was ever used, with its call from the sending of the request to the end of the call.
    calls: Vec<Option<PendingCall>>,
    /// Free places with their memory, the most recently freed last.
    free: Vec<(usize, CallSlot)>,
    /// The time of the watchdog's next look; `u64::MAX` while it plans none.
    next_look_ns: u64,
}

/// The place of a call. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct CallPlace {
    table: Arc<CallTable>,
    number: usize,
    pub(crate) slot: CallSlot,
}

impl CallTable {
    /// Makes an empty table for at most `calls_max` calls. It takes no memory.
    pub(crate) fn new(calls_max: usize) -> Self {
        Self {
            calls_max,
            refused: AtomicU64::new(0),
            places: Mutex::new(Places {
                next_look_ns: u64::MAX,
                ..Places::default()
            }),
        }
    }

    /// Takes a place; `None` if the table is full, which is counted.
    pub(crate) fn take_place(self: &Arc<Self>) -> Option<CallPlace> {
        let mut places = self.places.lock();
        let (number, slot) = match places.free.pop() {
            Some(used) => used,
            None if places.calls.len() < self.calls_max => {
                places.calls.push(None);
                (places.calls.len() - 1, new_slot())
            }
            None => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return None;
            }
        };
        Some(CallPlace {
            table: Arc::clone(self),
            number,
            slot,
        })
    }

    /// Returns the number of calls that were refused because the table was full.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Ends the calls whose deadlines have passed. Returns the earliest deadline of the others; `None` if none has one.
    ///
    /// It holds the lock for one place at a time. A call that begins meanwhile makes the watchdog look again.
    pub(super) fn look(&self, now_ns: u64) -> Option<u64> {
        self.places.lock().next_look_ns = u64::MAX;
        let mut next_ns = u64::MAX;
        let mut number = 0;
        loop {
            let mut places = self.places.lock();
            let Some(place) = places.calls.get_mut(number) else {
                places.next_look_ns = places.next_look_ns.min(next_ns);
                return (next_ns < u64::MAX).then_some(next_ns);
            };
            number += 1;
            match place.as_ref().and_then(|call| call.deadline.at_ns()) {
                Some(at_ns) if at_ns <= now_ns => {
                    let due = place.take();
                    drop(places);
                    due.iter().for_each(PendingCall::expire);
                }
                at_ns => next_ns = next_ns.min(at_ns.unwrap_or(u64::MAX)),
            }
        }
    }
}

impl CallPlace {
    /// Watches the deadline of the call at this place. Returns true if the watchdog has to look earlier than it would.
    #[must_use]
    pub(crate) fn watch(&self, call: &PendingCall) -> bool {
        let mut places = self.table.places.lock();
        places.calls[self.number] = Some(call.clone());
        let at_ns = call.deadline.at_ns().unwrap_or(u64::MAX);
        let is_earlier = at_ns < places.next_look_ns;
        #[cfg(simulation)]
        let is_earlier = is_earlier && !rtorb_os::simulation::is_planted("call-unwatched");
        places.next_look_ns = places.next_look_ns.min(at_ns);
        is_earlier
    }

    /// Notes that the watchdog does not look: the next call that is watched has to start it.
    #[cold]
    pub(crate) fn note_unwatched(&self) {
        self.table.places.lock().next_look_ns = u64::MAX;
    }
}

impl Drop for CallPlace {
    fn drop(&mut self) {
        let slot = CallSlot {
            waiter: Arc::clone(&self.slot.waiter),
            out: core::mem::take(&mut self.slot.out),
            interception: self.slot.interception.take(),
        };
        let mut places = self.table.places.lock();
        // The connection may end with its last call: not under the lock.
        let call = places.calls[self.number].take();
        places.free.push((self.number, slot));
        drop(places);
        drop(call);
    }
}

/// Makes the memory of a place. Its buffer is as large as that of a connection, because the two are swapped.
#[cold]
fn new_slot() -> CallSlot {
    let slot = CallSlot::default();
    slot.waiter.delivery.lock().message = Receiver::new_buffer();
    slot
}
