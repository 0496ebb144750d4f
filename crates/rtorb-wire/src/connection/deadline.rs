//! When a call gives up.

use core::time::Duration;

/// The time by which a call must have ended, on the clock of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    begun_ns: u64,
    timeout: Option<Duration>,
}

impl Deadline {
    /// The deadline of a call that begins at `now_ns`; without a timeout it never passes.
    #[inline]
    pub const fn new(now_ns: u64, timeout: Option<Duration>) -> Self {
        Self {
            begun_ns: now_ns,
            timeout,
        }
    }

    /// When it passes; `None` if never.
    #[inline]
    pub fn at_ns(self) -> Option<u64> {
        let timeout = self.timeout?.as_nanos().min(u128::from(u64::MAX)) as u64;
        Some(self.begun_ns.saturating_add(timeout))
    }

    /// How long the call has lasted at `now_ns`.
    pub const fn elapsed(self, now_ns: u64) -> Duration {
        Duration::from_nanos(now_ns.saturating_sub(self.begun_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_a_timeout_after_the_beginning_or_never() {
        let timeout = Duration::from_millis(5);
        assert_eq!(Deadline::new(7, Some(timeout)).at_ns(), Some(5_000_007));
        assert_eq!(
            Deadline::new(7, Some(Duration::MAX)).at_ns(),
            Some(u64::MAX)
        );
        assert_eq!(Deadline::new(7, None).at_ns(), None);
        assert_eq!(Deadline::new(7, None).elapsed(10), Duration::from_nanos(3));
        // A coarse clock may be behind.
        assert_eq!(Deadline::new(7, None).elapsed(5), Duration::ZERO);
    }
}
