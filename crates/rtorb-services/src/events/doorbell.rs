//! How a thread of the channel sleeps until there is work: one word, and a system call only for who really sleeps.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use rtorb_os::futex;

/// One thread waits for it; any number ring.
#[derive(Debug, Default)]
pub(crate) struct Doorbell {
    rings: AtomicU32,
    is_asleep: AtomicBool,
}

impl Doorbell {
    /// Wakes the thread if it sleeps; no system call if it does not.
    pub(crate) fn ring(&self) {
        // In one order with those of `wait`: either the thread sees the ring, or we see that it sleeps.
        self.rings.fetch_add(1, Ordering::SeqCst);
        if self.is_asleep.load(Ordering::SeqCst) {
            futex::wake(&self.rings, 1);
        }
    }

    /// The rings so far; look for work after this, and before [`wait`](Self::wait).
    pub(crate) fn rings(&self) -> u32 {
        self.rings.load(Ordering::SeqCst)
    }

    /// Sleeps until it rings once more than `heard`, at the latest until `deadline_ns`; may return without a reason.
    pub(crate) fn wait(&self, heard: u32, deadline_ns: Option<u64>) {
        self.is_asleep.store(true, Ordering::SeqCst);
        if self.rings() == heard {
            futex::wait(&self.rings, heard, deadline_ns);
        }
        self.is_asleep.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_os::clock::monotonic_ns;

    #[test]
    fn no_ring_is_missed() {
        let (bell, done) = (Doorbell::default(), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    done.fetch_add(1, Ordering::SeqCst);
                    bell.ring();
                }
            });
            let late_ns = monotonic_ns() + 20_000_000_000;
            let mut heard = bell.rings();
            while done.load(Ordering::SeqCst) < 10_000 {
                bell.wait(heard, Some(late_ns));
                assert!(monotonic_ns() < late_ns, "a ring was missed");
                heard = bell.rings();
            }
        });
    }

    #[test]
    fn it_waits_no_longer_than_told() {
        let bell = Doorbell::default();
        let deadline_ns = monotonic_ns() + 2_000_000;
        while monotonic_ns() < deadline_ns {
            bell.wait(bell.rings(), Some(deadline_ns));
        }
    }
}
