//! The started calls of an ORB: a bounded number, each with memory that later calls use again.

use super::pending_call::PendingCall;
use super::waiter::CallSlot;
use crate::strategies::FullCallTable;
use crate::thread_state;
use core::sync::atomic::{AtomicU64, Ordering};
use rtorb_os::sync::{Condvar, Mutex};
use rtorb_wire::connection::Receiver;
use std::sync::Arc;

/// The places of the started calls of an ORB. The watchdog ends those whose deadlines have passed.
#[derive(Debug)]
pub(crate) struct CallTable {
    calls_max: usize,
    full: FullCallTable,
    refused: AtomicU64,
    delayed: AtomicU64,
    places: Mutex<Places>,
    /// Notified when a place becomes free and threads wait for one.
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Places {
    /// Each place that was ever used, with its call from the sending of the request to the end of the call.
    calls: Vec<Option<PendingCall>>,
    /// Free places with their memory, the most recently freed last.
    free: Vec<FreePlace>,
    /// The number of threads that wait for a place.
    waiting: usize,
    /// The time of the watchdog's next look; `u64::MAX` while it plans none.
    next_look_ns: u64,
}

/// A place that no call has, and its memory.
type FreePlace = (usize, CallSlot);

/// The place of a call. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct CallPlace {
    table: Arc<CallTable>,
    number: usize,
    pub(crate) slot: CallSlot,
}

impl CallTable {
    /// Makes an empty table for at most `calls_max` calls. It takes no memory.
    pub(crate) fn new(calls_max: usize, full: FullCallTable) -> Self {
        Self {
            calls_max,
            full,
            refused: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
            freed: Condvar::new(),
            places: Mutex::new(Places {
                next_look_ns: u64::MAX,
                ..Places::default()
            }),
        }
    }

    /// Takes a place; `None` if the table is full.
    pub(crate) fn take_place(self: &Arc<Self>) -> Option<CallPlace> {
        let taken = self.places.lock().take(self.calls_max);
        taken.map(|place| self.place(place))
    }

    /// Returns true if the calling thread [waits](Self::await_place) for a place. Otherwise its call is refused.
    #[cold]
    pub(crate) fn may_wait(&self) -> bool {
        let waits = self.full == FullCallTable::Wait && self.calls_max > 0;
        waits && !thread_state::ends_calls()
    }

    /// Counts a call that is refused because the table is full.
    #[cold]
    pub(crate) fn note_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits for a place, at most until `until_ns`, and only while `is_open` returns true. The most urgent of several threads is woken first.
    #[cold]
    pub(crate) fn await_place(
        self: &Arc<Self>,
        until_ns: Option<u64>,
        is_open: impl Fn() -> bool,
    ) -> Option<CallPlace> {
        let mut places = self.places.lock();
        places.waiting += 1;
        self.delayed.fetch_add(1, Ordering::Relaxed);
        let mut is_late = false;
        let taken = loop {
            let taken = places.take(self.calls_max);
            if taken.is_some() || is_late || !is_open() {
                break taken;
            }
            match until_ns {
                None => self.freed.wait(&mut places),
                Some(until_ns) => is_late = !self.freed.wait_until(&mut places, until_ns),
            }
        };
        places.waiting -= 1;
        drop(places);
        taken.map(|place| self.place(place))
    }

    /// Wakes all threads that wait for a place, so that they look whether the table [is open](Self::await_place).
    #[cold]
    pub(crate) fn wake_waiting(&self) {
        // Under the lock, so that no thread begins to wait between its look and this.
        let places = self.places.lock();
        self.freed.notify_all(&self.places);
        drop(places);
    }

    fn place(self: &Arc<Self>, (number, slot): FreePlace) -> CallPlace {
        CallPlace {
            table: Arc::clone(self),
            number,
            slot,
        }
    }

    /// Returns the number of calls that were refused because the table was full.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the number of calls that had to wait because the table was full.
    pub(crate) fn delayed(&self) -> u64 {
        self.delayed.load(Ordering::Relaxed)
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

impl Places {
    /// Takes a place; `None` if `calls_max` calls have one.
    fn take(&mut self, calls_max: usize) -> Option<FreePlace> {
        if let Some(used) = self.free.pop() {
            return Some(used);
        }
        if self.calls.len() >= calls_max {
            return None;
        }
        self.calls.push(None);
        Some((self.calls.len() - 1, new_slot()))
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
        if places.waiting > 0 {
            // Under the lock, so that the kernel hands it to the most urgent one. A thread that begins a call may still take the place first.
            self.table.freed.notify_one(&self.table.places);
        }
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
