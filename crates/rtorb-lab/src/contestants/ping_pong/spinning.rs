//! What a side that spins does between two looks.

use rtorb_os::clock::{monotonic_ns, sleep_until};

/// A wait that spins. After a while in vain it naps between two looks: nothing is measured then, and the kernel stops real-time
/// threads that never rest.
#[derive(Debug)]
pub(crate) struct Spinning {
    deadline_ns: Option<u64>,
    looks: u32,
    nap_ns: Option<u64>,
}

impl Spinning {
    /// A wait that ends then, at the latest.
    pub(crate) fn until(deadline_ns: Option<u64>) -> Self {
        Self {
            deadline_ns,
            looks: 0,
            nap_ns: None,
        }
    }

    /// Returns soon; false if the deadline has passed.
    pub(crate) fn pause(&mut self) -> bool {
        self.looks += 1;
        if !self.looks.is_multiple_of(LOOKS) {
            std::hint::spin_loop();
            return true;
        }
        self.rest()
    }

    #[cold]
    fn rest(&mut self) -> bool {
        let now_ns = monotonic_ns();
        if self
            .deadline_ns
            .is_some_and(|deadline_ns| deadline_ns <= now_ns)
        {
            return false;
        }
        if *self.nap_ns.get_or_insert(now_ns + SPIN_NS) <= now_ns {
            sleep_until(now_ns + NAP_NS);
        }
        true
    }
}

/// Between two looks at the clock.
const LOOKS: u32 = 1_000;
/// Longer than any exchange takes, far shorter than what makes the kernel stop real-time threads.
const SPIN_NS: u64 = 2_000_000;
const NAP_NS: u64 = 500_000;
