//! A thread that waits on a shared connection, and the buffer for its reply.

use crate::clock::monotonic_ns;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use rtorb_os::futex;
use rtorb_os::sync::Mutex;
use rtorb_wire::connection::ReplyError;
use std::sync::Arc;

/// A waiting thread. The thread that reads for all delivers replies to it.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    /// The state: one of the constants below. Only this thread sleeps on this word, so a wake-up wakes no other thread.
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
/// The thread sleeps, and nothing is delivered. A change of this state must wake it.
const ASLEEP: u32 = 1;
const REPLIED: u32 = 2;
const LEADING: u32 = 3;

impl Waiter {
    /// Begins to wait for another reply.
    pub(crate) fn begin(&self) {
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Sets whether another thread may cancel the wait.
    pub(crate) fn set_cancellable(&self, is_cancellable: bool) {
        self.is_cancellable.store(is_cancellable, Ordering::Relaxed);
    }

    /// Returns how long the thread may wait at a socket. Nobody can wake it there, so it checks periodically whether it is
    /// cancelled.
    #[inline]
    pub(crate) fn look_by(&self, deadline_ns: Option<u64>) -> Option<u64> {
        if !self.is_cancellable.load(Ordering::Relaxed) {
            return deadline_ns;
        }
        let look_ns = monotonic_ns().saturating_add(LOOK_NS);
        Some(deadline_ns.map_or(look_ns, |at_ns| at_ns.min(look_ns)))
    }

    /// Delivers a reply, or the reason why there is none, and wakes the thread.
    pub(crate) fn deliver(&self, put: impl FnOnce(&mut Delivery)) {
        put(&mut self.delivery.lock());
        self.set(REPLIED);
    }

    /// Makes the thread the leader and wakes it.
    pub(crate) fn lead(&self) {
        self.set(LEADING);
    }

    /// Returns true if the reply was delivered.
    pub(crate) fn has_reply(&self) -> bool {
        self.state.load(Ordering::Acquire) == REPLIED
    }

    /// Returns true if the thread is the leader and has no reply.
    pub(crate) fn is_leading(&self) -> bool {
        self.state.load(Ordering::Acquire) == LEADING
    }

    /// Sleeps until a reply or the lead arrives, at the latest until `deadline_ns` of the monotonic clock.
    pub(crate) fn wait(&self, deadline_ns: Option<u64>) -> WakeReason {
        loop {
            let state =
                self.state
                    .compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
            match state {
                Err(REPLIED) => return WakeReason::Replied,
                Err(LEADING) => return WakeReason::Leading,
                _ => {}
            }
            let in_time = futex::wait(&self.state, ASLEEP, deadline_ns);
            match self.state.load(Ordering::Acquire) {
                AWAKE | ASLEEP if !in_time => return WakeReason::Late,
                _ => {}
            }
        }
    }

    /// Sleeps until another thread has delivered the reply.
    pub(crate) fn await_delivery(&self) {
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state == REPLIED {
                return;
            }
            let slept =
                self.state
                    .compare_exchange(state, ASLEEP, Ordering::AcqRel, Ordering::Relaxed);
            if slept.is_ok() {
                futex::wait(&self.state, ASLEEP, None);
            }
        }
    }

    fn set(&self, state: u32) {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("wake-lost")
            && self.state.load(Ordering::Acquire) == AWAKE
        {
            rtorb_os::simulation::point();
            return self.state.store(state, Ordering::Release);
        }
        if self.state.swap(state, Ordering::AcqRel) == ASLEEP {
            futex::wake(&self.state, 1);
        }
    }
}

/// A thread's memory for a call on a shared connection. Later calls reuse it; a nested call has its own.
#[derive(Debug, Default)]
pub(crate) struct CallSlot {
    pub(crate) waiter: Arc<Waiter>,
    /// The buffer of the request.
    pub(crate) out: Vec<u8>,
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
