//! The deadline of a call.

use core::time::Duration;

/// The time by which a call must have ended, on the clock of the driver. It is fixed once, when the call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    begun_ns: u64,
    /// [`NEVER_NS`] if it never passes.
    at_ns: u64,
}

/// The time of a deadline that never passes.
const NEVER_NS: u64 = u64::MAX;

impl Deadline {
    /// The deadline of something that does not wait. It never passes, and its beginning is not known.
    pub const NONE: Self = Self {
        begun_ns: NEVER_NS,
        at_ns: NEVER_NS,
    };

    /// The deadline of a call that begins at `now_ns`. Without a timeout, or with one that the clock cannot count, it never passes.
    #[inline]
    pub const fn new(now_ns: u64, timeout: Option<Duration>) -> Self {
        Self::after(now_ns, timeout_ns(timeout))
    }

    /// The deadline of a call that begins at `now_ns`, with what [`timeout_ns`] returns for its timeout.
    #[inline]
    pub const fn after(now_ns: u64, timeout_ns: u64) -> Self {
        Self {
            begun_ns: now_ns,
            at_ns: now_ns.saturating_add(timeout_ns),
        }
    }

    /// The same deadline, or `at_ns` if that is earlier.
    #[must_use]
    pub const fn no_later_than(self, at_ns: u64) -> Self {
        Self {
            begun_ns: self.begun_ns,
            at_ns: if at_ns < self.at_ns {
                at_ns
            } else {
                self.at_ns
            },
        }
    }

    /// The time at which the call began.
    #[inline]
    pub const fn begun_ns(self) -> u64 {
        self.begun_ns
    }

    /// The time at which the deadline passes; `None` if it never passes.
    #[inline]
    pub const fn at_ns(self) -> Option<u64> {
        if self.at_ns == NEVER_NS {
            None
        } else {
            Some(self.at_ns)
        }
    }

    /// The time from the beginning of the call to the deadline.
    #[inline]
    pub const fn timeout_ns(self) -> u64 {
        self.at_ns.saturating_sub(self.begun_ns)
    }

    /// True if it has passed at `now_ns`.
    #[inline]
    pub const fn has_passed(self, now_ns: u64) -> bool {
        self.at_ns <= now_ns
    }

    /// The time from the beginning of the call to `now_ns`.
    pub const fn elapsed(self, now_ns: u64) -> Duration {
        Duration::from_nanos(now_ns.saturating_sub(self.begun_ns))
    }
}

/// Returns a timeout in nanoseconds; `u64::MAX` for none, and for one that the clock cannot count.
#[inline]
pub const fn timeout_ns(timeout: Option<Duration>) -> u64 {
    match timeout {
        Some(timeout) => timeout
            .as_secs()
            .saturating_mul(1_000_000_000)
            .saturating_add(timeout.subsec_nanos() as u64),
        None => NEVER_NS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_a_timeout_after_the_beginning_or_never() {
        let timeout = Duration::from_millis(5);
        assert_eq!(Deadline::new(7, Some(timeout)).at_ns(), Some(5_000_007));
        assert_eq!(Deadline::new(7, Some(Duration::MAX)).at_ns(), None);
        let deadline = Deadline::new(7, Some(timeout));
        assert_eq!(deadline.timeout_ns(), 5_000_000);
        assert!(!deadline.has_passed(5_000_006) && deadline.has_passed(5_000_007));
        assert_eq!(deadline.no_later_than(9).at_ns(), Some(9));
        assert_eq!(deadline.no_later_than(u64::MAX), deadline);
        assert_eq!(Deadline::NONE.elapsed(10), Duration::ZERO);
        assert_eq!(Deadline::new(7, None).at_ns(), None);
        assert_eq!(Deadline::new(7, None).elapsed(10), Duration::from_nanos(3));
        // A coarse clock may be behind.
        assert_eq!(Deadline::new(7, None).elapsed(5), Duration::ZERO);
    }
}
