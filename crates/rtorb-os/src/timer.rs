//! Periodic releases that do not drift.
//!
//! All times are absolute nanoseconds of CLOCK_MONOTONIC, as [`monotonic_ns`] returns them: the work between two waits does
//! not move the next release.

use crate::clock::{monotonic_ns, sleep_until};

/// Releases a thread periodically.
///
/// The lateness of a release depends on the host and on the thread's priority. For SCHED_OTHER the kernel adds up to 50 us
/// on purpose (timer slack, prctl(2)); for SCHED_FIFO, RR and DEADLINE it adds nothing.
///
/// ```
/// use rtorb_os::timer::PeriodicTimer;
/// let mut timer = PeriodicTimer::every(1_000_000);
/// for _ in 0..3 {
///     let release = timer.wait();
///     println!("{} ns late, {} periods missed", release.lateness_ns, release.missed);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct PeriodicTimer {
    next_ns: u64,
    period_ns: u64,
    missed: u64,
}

impl PeriodicTimer {
    /// Releases every `period_ns`, first one period from now.
    ///
    /// # Panics
    /// If the period is 0.
    pub fn every(period_ns: u64) -> Self {
        Self::starting_at(monotonic_ns().saturating_add(period_ns), period_ns)
    }

    /// Releases every `period_ns`, first at `first_ns`, which may be past. Timers with one start keep their phase.
    ///
    /// # Panics
    /// If the period is 0.
    pub fn starting_at(first_ns: u64, period_ns: u64) -> Self {
        assert!(period_ns > 0, "the period is 0");
        Self {
            next_ns: first_ns,
            period_ns,
            missed: 0,
        }
    }

    /// Sleeps until the next release. If releases are overdue, returns the latest of them at once, with the number of those
    /// before it. Control loops want this, because an old sample is worthless to them.
    pub fn wait(&mut self) -> Release {
        self.sleep();
        self.latest_due(monotonic_ns())
    }

    /// Sleeps until the next release and skips none: overdue releases return at once, one after the other, each with its
    /// whole lateness. Load generators want this, because they must send what they did not send in time.
    pub fn wait_each(&mut self) -> Release {
        self.sleep();
        self.next_due(monotonic_ns())
    }

    /// The time of the next release.
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// The time between two releases.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// The releases that [`wait`](Self::wait) has skipped.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    fn sleep(&self) {
        if monotonic_ns() < self.next_ns {
            sleep_until(self.next_ns);
        }
    }

    fn latest_due(&mut self, now_ns: u64) -> Release {
        let missed = now_ns.saturating_sub(self.next_ns) / self.period_ns;
        // At most `now_ns`, so it fits.
        self.next_ns += missed * self.period_ns;
        self.missed += missed;
        Release {
            missed,
            ..self.next_due(now_ns)
        }
    }

    fn next_due(&mut self, now_ns: u64) -> Release {
        let scheduled_ns = self.next_ns;
        self.next_ns = scheduled_ns.saturating_add(self.period_ns);
        Release {
            scheduled_ns,
            lateness_ns: now_ns.saturating_sub(scheduled_ns),
            missed: 0,
        }
    }
}

/// One release of a [`PeriodicTimer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The time at which it was due.
    pub scheduled_ns: u64,
    /// How much later it happened.
    pub lateness_ns: u64,
    /// The releases skipped between the previous one and this one.
    pub missed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(scheduled_ns: u64, lateness_ns: u64, missed: u64) -> Release {
        Release {
            scheduled_ns,
            lateness_ns,
            missed,
        }
    }

    #[test]
    fn releases_keep_their_times_when_the_thread_is_late() {
        let mut timer = PeriodicTimer::starting_at(1_000, 100);
        assert_eq!(timer.latest_due(1_000), release(1_000, 0, 0));
        assert_eq!(timer.latest_due(1_199), release(1_100, 99, 0));
        assert_eq!(timer.latest_due(1_200), release(1_200, 0, 0));
        assert_eq!(timer.latest_due(1_555), release(1_500, 55, 2));
        assert_eq!(timer.next_ns(), 1_600);
        assert_eq!(timer.latest_due(1_700), release(1_700, 0, 1));
        assert_eq!(timer.missed(), 3);
    }

    #[test]
    fn waiting_for_each_release_skips_none() {
        let mut timer = PeriodicTimer::starting_at(1_000, 100);
        let all: Vec<_> = (0..3).map(|_| timer.next_due(1_250)).collect();
        assert_eq!(
            all,
            [
                release(1_000, 250, 0),
                release(1_100, 150, 0),
                release(1_200, 50, 0)
            ]
        );
        assert_eq!((timer.next_ns(), timer.missed()), (1_300, 0));
    }

    #[test]
    fn a_thread_is_never_released_early() {
        let mut timer = PeriodicTimer::every(200_000);
        let mut last_ns = 0;
        for _ in 0..20 {
            let release = timer.wait();
            assert!(monotonic_ns() >= release.scheduled_ns + release.lateness_ns);
            assert!(release.scheduled_ns >= last_ns + 200_000);
            assert_eq!(release.scheduled_ns % 200_000, timer.next_ns() % 200_000);
            last_ns = release.scheduled_ns;
        }
    }
}
