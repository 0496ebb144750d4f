//! A budget of events: so many a second, and some at once.

/// A budget of events. Time is a parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// The time between two events, in nanoseconds.
    interval_ns: u64,
    /// How far events may be ahead of their even spread, in nanoseconds.
    ahead_ns: u64,
    /// When the next event is due if events are spread evenly.
    due_ns: u64,
}

impl Budget {
    /// Makes the budget of `per_second` events, a tenth of which may come at once.
    pub(crate) fn new(per_second: u32) -> Self {
        let interval_ns = 1_000_000_000 / u64::from(per_second.max(1));
        Self {
            interval_ns,
            ahead_ns: interval_ns * u64::from(per_second / 10),
            due_ns: 0,
        }
    }

    /// Returns true if an event is allowed now.
    pub(crate) fn allows(&self, now_ns: u64) -> bool {
        now_ns >= self.allowed_ns()
    }

    /// Returns the time from which on the next event is allowed.
    pub(crate) fn allowed_ns(&self) -> u64 {
        self.due_ns.saturating_sub(self.ahead_ns)
    }

    /// Takes an event out of the budget.
    pub(crate) fn take(&mut self, now_ns: u64) {
        self.due_ns = self.due_ns.max(now_ns) + self.interval_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_events_pass_in_a_second_than_the_budget_has() {
        let mut budget = Budget::new(100);
        let (mut now_ns, mut passed) = (5_000_000_000, 0);
        for _ in 0..100_000 {
            now_ns += 10_000;
            if budget.allows(now_ns) {
                budget.take(now_ns);
                passed += 1;
            }
        }
        assert!((100..=111).contains(&passed), "{passed}");
        assert!(budget.allows(budget.allowed_ns()));
    }
}
