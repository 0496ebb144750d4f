//! A wake-up signal for one sleeping thread: an event count in one word. Only a thread that really sleeps costs a system call.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use rtorb_os::futex;

/// Counts wake-ups. One thread waits for the next; any thread raises it.
#[derive(Debug, Default)]
pub(crate) struct WakeSignal {
    count: AtomicU32,
    is_asleep: AtomicBool,
    is_stopping: AtomicBool,
}

impl WakeSignal {
    /// Wakes the waiting thread. Makes no system call if the thread is awake.
    pub(crate) fn wake(&self) {
        // One total order with the operations of `wait`: either the thread sees the new count, or this sees that it sleeps.
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.is_asleep.load(Ordering::SeqCst) {
            futex::wake(&self.count, 1);
        }
    }

    /// Asks the waiting thread to end: from now on no wait lasts.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.wake();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// The wake-ups so far. Read it, then look for work, then call [`wait`](Self::wait): so no wake-up is lost.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// Sleeps until the count differs from `seen`, at most until `deadline_ns`. May return early.
    ///
    /// It ends at a stop too: a stop before the caller read the count does not change the count again.
    pub(crate) fn wait(&self, seen: u32, deadline_ns: Option<u64>) {
        self.is_asleep.store(true, Ordering::SeqCst);
        if self.count() == seen && !self.is_stopping() {
            futex::wait(&self.count, seen, deadline_ns);
        }
        self.is_asleep.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_os::clock::monotonic_ns;

    #[test]
    fn no_wake_up_is_lost() {
        let (signal, done) = (WakeSignal::default(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    done.fetch_add(1, Ordering::SeqCst);
                    signal.wake();
                }
            });
            let late_ns = monotonic_ns() + 20_000_000_000;
            let mut seen = signal.count();
            while done.load(Ordering::SeqCst) < 10_000 {
                signal.wait(seen, Some(late_ns));
                assert!(monotonic_ns() < late_ns, "a wake-up was lost");
                seen = signal.count();
            }
        });
    }

    #[test]
    fn no_wait_lasts_after_a_stop_whenever_the_count_was_read() {
        let signal = WakeSignal::default();
        let before = signal.count();
        // A thread has just found that it need not stop.
        assert!(!signal.is_stopping());
        signal.stop();
        let late_ns = monotonic_ns() + 20_000_000_000;
        for seen in [before, signal.count()] {
            signal.wait(seen, Some(late_ns));
            assert!(monotonic_ns() < late_ns, "the stop was lost");
        }
    }

    #[test]
    fn a_wait_ends_at_its_deadline() {
        let signal = WakeSignal::default();
        let deadline_ns = monotonic_ns() + 2_000_000;
        while monotonic_ns() < deadline_ns {
            signal.wait(signal.count(), Some(deadline_ns));
        }
    }
}
