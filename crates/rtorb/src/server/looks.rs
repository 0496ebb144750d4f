//! The times at which a server looks at its connections: for messages that do not arrive, and less often for silent connections.

use crate::Limits;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

/// When a server looks at all its connections, and what for.
#[derive(Debug)]
pub(super) struct LookSchedule {
    period: Duration,
    /// The number of looks from one that is for messages that do not arrive to the next such one.
    partial_every: u32,
    /// The number of looks from one that is for silent connections to the next such one.
    silent_every: u32,
    /// The number of looks that have begun.
    begun: AtomicU32,
}

impl LookSchedule {
    /// Looks for each kind at intervals of a quarter to a half of its limit, so that two intervals are within the limit.
    pub(super) fn new(limits: &Limits) -> Self {
        let (partial, silent) = (limits.receive_timeout / 2, limits.idle_buffer_time / 2);
        let period = silent.min(partial);
        let every = |time: Duration| {
            // Rounded down: no look comes too late.
            let looks = time.as_nanos() / period.as_nanos().max(1);
            u32::try_from(looks).unwrap_or(u32::MAX).max(1)
        };
        Self {
            period,
            partial_every: every(partial),
            silent_every: every(silent),
            begun: AtomicU32::new(0),
        }
    }

    /// The time from one look to the next.
    pub(super) fn period(&self) -> Duration {
        self.period
    }

    /// Begins a look at all connections.
    pub(super) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// True if the look that has begun is for messages that do not arrive.
    pub(super) fn is_for_partial(&self) -> bool {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("message-cut") {
            return true;
        }
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("slow-sender-kept") {
            return false;
        }
        self.begun
            .load(Ordering::Relaxed)
            .is_multiple_of(self.partial_every)
    }

    /// True if the look that has begun is for silent connections.
    pub(super) fn is_for_silent(&self) -> bool {
        self.begun
            .load(Ordering::Relaxed)
            .is_multiple_of(self.silent_every)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_looked_at_as_often_as_its_own_limit_says() {
        let looks = |receive, idle| {
            LookSchedule::new(&Limits::with(|limits| {
                limits.receive_timeout = Duration::from_secs(receive);
                limits.idle_buffer_time = Duration::from_secs(idle);
            }))
        };
        for (receive, idle, period, partial_every, silent_every) in [
            (60, 300, 30, 1, 5),
            (300, 60, 30, 5, 1),
            (10, 10, 5, 1, 1),
            (70, 20, 10, 3, 1),
        ] {
            let looks = looks(receive, idle);
            assert_eq!(looks.period(), Duration::from_secs(period));
            let (mut partial, mut silent) = (0, 0);
            for _ in 0..20 {
                looks.begin();
                partial += usize::from(looks.is_for_partial());
                silent += usize::from(looks.is_for_silent());
            }
            let counts = (20 / partial_every, 20 / silent_every);
            assert_eq!((partial, silent), counts, "{receive} and {idle}");
        }
    }
}
