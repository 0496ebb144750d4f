//! A thread or a task that waits on a shared connection, and the buffer for its reply.

use crate::clock::monotonic_ns;
use crate::interceptors::ClientInterception;
use crate::recorder;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use core::task::Waker;
use rtorb_os::futex;
use rtorb_os::sync::Mutex;
use rtorb_wire::connection::ReplyError;
use std::sync::Arc;

/// A waiting thread or task. The thread that reads for all delivers replies to it.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    /// The state: the sum of some of the constants below. Only this thread sleeps on this word, so a wake-up wakes no other thread.
    state: AtomicU32,
    pub(crate) delivery: Mutex<Delivery>,
    /// True if another thread may cancel the wait.
    is_cancellable: AtomicBool,
}

/// The result of a wait for a reply.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    /// The reply, in the first `bytes` bytes; the buffer is reused.
    pub(crate) message: Vec<u8>,
    pub(crate) bytes: usize,
    /// The reason why there is no reply.
    pub(crate) error: Option<ReplyError>,
    /// When it was delivered, in ticks of the recorder, if the call is recorded; otherwise 0.
    pub(crate) arrived: u64,
    /// True if `arrived` is to be noted.
    is_timed: bool,
    /// The task that waits. It is under the same lock as the reply, so that no wake-up is lost.
    task: Option<Waker>,
}

/// How long a thread waits at a socket at a time if another thread may cancel the wait, in nanoseconds.
const LOOK_NS: u64 = 50_000_000;

/// The reason why a thread woke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// Its reply was delivered, or the reason why there is no reply.
    Replied,
    /// It is the leader: it reads for all waiting threads.
    Leading,
    /// The deadline passed.
    Late,
}

/// The thread is awake, and nothing is delivered.
const AWAKE: u32 = 0;
/// The thread sleeps. A change of this state must wake it.
const ASLEEP: u32 = 1;
/// The reply was delivered, or the reason why there is none. This happens once, after the request was removed from the pending ones.
const REPLIED: u32 = 2;
/// The thread was made the leader. It has to make another one the leader, also if its reply was delivered before it woke.
const LEADING: u32 = 4;

impl Waiter {
    /// Begins to wait for another reply.
    pub(crate) fn begin(&self) {
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Has the time of the next delivery noted.
    #[cold]
    pub(crate) fn time_delivery(&self) {
        let mut delivery = self.delivery.lock();
        delivery.is_timed = true;
        delivery.arrived = 0;
    }

    /// Sets whether another thread may cancel the wait.
    pub(crate) fn set_cancellable(&self, is_cancellable: bool) {
        self.is_cancellable.store(is_cancellable, Ordering::Relaxed);
    }

    /// Returns how long the thread may wait at a socket. No other thread can wake it there, so it checks periodically
    /// whether it is cancelled.
    #[inline]
    pub(crate) fn look_by(&self, deadline_ns: Option<u64>) -> Option<u64> {
        if !self.is_cancellable.load(Ordering::Relaxed) {
            return deadline_ns;
        }
        let look_ns = monotonic_ns().saturating_add(LOOK_NS);
        Some(deadline_ns.map_or(look_ns, |at_ns| at_ns.min(look_ns)))
    }

    /// Delivers a reply, or the reason why there is none, and wakes the thread. Returns the waker of the task, if one waits.
    ///
    /// The caller wakes the task once it holds no lock: that may run any code of an executor, and drop other calls.
    #[must_use]
    pub(crate) fn deliver(&self, put: impl FnOnce(&mut Delivery)) -> Option<Waker> {
        let mut delivery = self.delivery.lock();
        put(&mut delivery);
        if delivery.is_timed {
            delivery.arrived = recorder::now();
        }
        let task = delivery.task.take();
        let is_asleep = self.add(REPLIED);
        drop(delivery);
        self.wake_if(is_asleep);
        task
    }

    /// Has `waker` woken when the reply is delivered, instead of an earlier waker. Returns true if it is delivered already.
    pub(crate) fn await_as_task(&self, waker: &Waker) -> bool {
        let earlier = {
            let mut delivery = self.delivery.lock();
            if self.has_reply() {
                return true;
            }
            match &delivery.task {
                Some(known) if known.will_wake(waker) => return false,
                _ => delivery.task.replace(waker.clone()),
            }
        };
        drop(earlier);
        false
    }

    /// Forgets the task that waits, so that it is not woken.
    pub(crate) fn forget_task(&self) {
        let task = self.delivery.lock().task.take();
        drop(task);
    }

    /// Makes the thread the leader and wakes it. It must not be the leader already.
    pub(crate) fn lead(&self) {
        let is_asleep = self.add(LEADING);
        self.wake_if(is_asleep);
    }

    /// Notes that the thread leads no longer.
    pub(crate) fn end_lead(&self) {
        self.state.fetch_and(!LEADING, Ordering::AcqRel);
    }

    /// Returns true if the reply was delivered.
    pub(crate) fn has_reply(&self) -> bool {
        self.state.load(Ordering::Acquire) & REPLIED != 0
    }

    /// Returns true if the thread was made the leader.
    pub(crate) fn is_leading(&self) -> bool {
        self.state.load(Ordering::Acquire) & LEADING != 0
    }

    /// Sleeps until a reply or the lead arrives, at the latest until `deadline_ns` of the monotonic clock.
    pub(crate) fn wait(&self, deadline_ns: Option<u64>) -> WakeReason {
        let mut in_time = true;
        loop {
            let state =
                self.state
                    .compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
            let state = state.map_or_else(|known| known, |_| ASLEEP);
            if state & LEADING != 0 {
                self.state.fetch_and(!ASLEEP, Ordering::AcqRel);
                return WakeReason::Leading;
            }
            if state & REPLIED != 0 {
                return WakeReason::Replied;
            }
            if !in_time {
                return WakeReason::Late;
            }
            in_time = futex::wait(&self.state, ASLEEP, deadline_ns);
        }
    }

    /// Sleeps until the reply is delivered. Returns false if `deadline_ns` passes first and the call can be [given up](super::ReplySource::give_up):
    /// it cannot while the reply is being delivered.
    pub(crate) fn await_reply(
        &self,
        deadline_ns: Option<u64>,
        give_up: impl FnOnce() -> bool,
    ) -> bool {
        if self.wait(deadline_ns) != WakeReason::Late {
            return true;
        }
        if give_up() {
            return false;
        }
        self.await_delivery();
        true
    }

    /// Sleeps until another thread has delivered the reply.
    pub(crate) fn await_delivery(&self) {
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state & REPLIED != 0 {
                return;
            }
            let asleep = state | ASLEEP;
            let slept =
                self.state
                    .compare_exchange(state, asleep, Ordering::AcqRel, Ordering::Relaxed);
            if slept.is_ok() {
                futex::wait(&self.state, asleep, None);
            }
        }
    }

    /// Adds to the state. Returns true if the thread sleeps, and must be woken.
    #[inline]
    fn add(&self, state: u32) -> bool {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("wake-lost")
            && self.state.load(Ordering::Acquire) == AWAKE
        {
            (0..20).for_each(|_| rtorb_os::simulation::point());
            self.state.store(state, Ordering::Release);
            return false;
        }
        self.state.fetch_add(state, Ordering::AcqRel) & ASLEEP != 0
    }

    #[inline]
    fn wake_if(&self, is_asleep: bool) {
        if is_asleep {
            futex::wake(&self.state, 1);
        }
    }
}

/// The memory of a call on a shared connection: a thread's, or that of a started call. Later calls reuse it; a nested call has its
/// own.
#[derive(Debug, Default)]
pub(crate) struct CallSlot {
    pub(crate) waiter: Arc<Waiter>,
    /// The buffer of the request.
    pub(crate) out: Vec<u8>,
    /// The interception of a started call, or memory of an earlier one. A call has it only if the ORB has interceptors.
    pub(crate) interception: Option<Box<ClientInterception>>,
}

thread_local! {
    static SLOT: Cell<Option<Box<CallSlot>>> = const { Cell::new(None) };
}

/// Runs `work` with the thread's call slot.
pub(crate) fn with_call_slot<T>(work: impl FnOnce(&mut CallSlot) -> T) -> T {
    // A thread that calls from a destructor while it ends has no call slot.
    let mut slot = SLOT.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let done = work(&mut slot);
    let _ = SLOT.try_with(|place| place.set(Some(slot)));
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_made_the_leader_learns_it_although_its_reply_comes_before_it_wakes() {
        let waiter = Waiter::default();
        waiter.lead();
        assert!(waiter.deliver(|_| ()).is_none());
        assert_eq!(waiter.wait(None), WakeReason::Leading);
        assert!(waiter.has_reply());
        waiter.end_lead();
        assert_eq!(waiter.wait(None), WakeReason::Replied);
    }

    #[test]
    fn a_wait_that_was_too_short_is_repeated() {
        let waiter = Waiter::default();
        assert_eq!(waiter.wait(Some(0)), WakeReason::Late);
        assert_eq!(waiter.wait(Some(0)), WakeReason::Late);
        waiter.lead();
        assert_eq!(waiter.wait(Some(0)), WakeReason::Leading);
        waiter.end_lead();
        assert_eq!(waiter.wait(Some(0)), WakeReason::Late);
        assert!(waiter.deliver(|_| ()).is_none());
        assert_eq!(waiter.wait(Some(0)), WakeReason::Replied);
    }
}
