//! The times at which a server looks at its connections: for messages that do not arrive, and less often for silent connections.

use crate::Limits;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

/// When a server looks at all its connections, and what for.
#[derive(Debug)]
pub(super) struct LookSchedule {
    period: Duration,
    /// One of so many looks is also for silent connections.
    silent_every: u32,
    /// The number of looks that have begun.
    begun: AtomicU32,
}

impl LookSchedule {
    /// A time passes in full between two looks that it takes: it is therefore at least half of the limit.
    pub(super) fn new(limits: &Limits) -> Self {
        let silent = limits.idle_buffer_time / 2;
        let period = silent.min(limits.receive_timeout / 2);
        let silent_every = silent.as_nanos() / period.as_nanos().max(1);
        Self {
            period,
            silent_every: u32::try_from(silent_every).unwrap_or(u32::MAX).max(1),
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

    /// True if the look that has begun is also for silent connections.
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
    fn silent_connections_are_looked_at_as_often_as_their_own_limit_says() {
        let looks = |receive, idle| {
            LookSchedule::new(&Limits::with(|limits| {
                limits.receive_timeout = Duration::from_secs(receive);
                limits.idle_buffer_time = Duration::from_secs(idle);
            }))
        };
        for (receive, idle, period, every) in [(60, 300, 30, 5), (300, 60, 30, 1), (10, 10, 5, 1)] {
            let looks = looks(receive, idle);
            assert_eq!(looks.period(), Duration::from_secs(period));
            let silent = (0..20).filter(|_| {
                looks.begin();
                looks.is_for_silent()
            });
            assert_eq!(silent.count(), 20 / every, "{receive} and {idle}");
        }
    }
}
