//! A task: what it needs, how often, and until when.

use serde::Deserialize;
use thiserror::Error;

/// A task on one processor. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its period, or for a sporadic task the least time between two arrivals; at least 1.
    pub period_ns: u64,
    /// The longest that one job executes.
    pub worst_ns: u64,
    /// What one job usually executes: told, and no part of a verdict.
    pub typical_ns: u64,
    /// The shortest that one job executes.
    pub best_ns: u64,
    /// From a job's arrival to when it must be done; may be more than the period (arbitrary deadlines). At least 1.
    pub deadline_ns: u64,
    /// How long after its arrival a job may be released.
    pub jitter_ns: u64,
    /// The longest that a job waits for less urgent ones: critical sections, or a kernel that cannot be preempted.
    pub blocking_ns: u64,
    /// What a failure to meet the deadline would cost.
    pub criticality: Criticality,
    /// What goes first among equals.
    pub importance: Importance,
}

/// What a missed deadline costs (RtecScheduler::Criticality_t).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are what there is to say")]
pub enum Criticality {
    VeryLow,
    Low,
    #[default]
    Medium,
    High,
    VeryHigh,
}

/// What goes first among equals (RtecScheduler::Importance_t).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are what there is to say")]
pub enum Importance {
    VeryLow,
    Low,
    #[default]
    Medium,
    High,
    VeryHigh,
}

/// What makes no sense in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TaskError {
    /// It would arrive without end at one moment.
    #[error("a period is at least 1 ns")]
    NoPeriod,
    /// Nothing is done in no time.
    #[error("a deadline is at least 1 ns")]
    NoDeadline,
    /// The times are out of order.
    #[error(
        "execution times are best <= typical <= worst: here {best_ns}, {typical_ns} and {worst_ns} ns"
    )]
    Times {
        /// The best one, in ns.
        best_ns: u64,
        /// The typical one, in ns.
        typical_ns: u64,
        /// The worst one, in ns.
        worst_ns: u64,
    },
}

impl Task {
    /// A task whose deadline is its period, without jitter or blocking; best and typical time are the worst.
    #[must_use]
    pub const fn periodic(period_ns: u64, worst_ns: u64) -> Self {
        Self {
            period_ns,
            worst_ns,
            typical_ns: worst_ns,
            best_ns: worst_ns,
            deadline_ns: period_ns,
            jitter_ns: 0,
            blocking_ns: 0,
            criticality: Criticality::Medium,
            importance: Importance::Medium,
        }
    }

    /// The same with another deadline.
    #[must_use]
    pub const fn with_deadline(mut self, deadline_ns: u64) -> Self {
        self.deadline_ns = deadline_ns;
        self
    }

    /// The same with another release jitter.
    #[must_use]
    pub const fn with_jitter(mut self, jitter_ns: u64) -> Self {
        self.jitter_ns = jitter_ns;
        self
    }

    /// The same with another blocking.
    #[must_use]
    pub const fn with_blocking(mut self, blocking_ns: u64) -> Self {
        self.blocking_ns = blocking_ns;
        self
    }

    /// The same with another criticality.
    #[must_use]
    pub const fn with_criticality(mut self, criticality: Criticality) -> Self {
        self.criticality = criticality;
        self
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    /// [`TaskError`] with what does not.
    pub const fn check(&self) -> Result<(), TaskError> {
        if self.period_ns == 0 {
            return Err(TaskError::NoPeriod);
        }
        if self.deadline_ns == 0 {
            return Err(TaskError::NoDeadline);
        }
        if self.best_ns > self.typical_ns || self.typical_ns > self.worst_ns {
            return Err(TaskError::Times {
                best_ns: self.best_ns,
                typical_ns: self.typical_ns,
                worst_ns: self.worst_ns,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_no_sense_is_told() {
        assert_eq!(Task::periodic(10, 3).check(), Ok(()));
        assert_eq!(Task::periodic(0, 3).check(), Err(TaskError::NoPeriod));
        let hasty = Task::periodic(10, 3).with_deadline(0);
        assert_eq!(hasty.check(), Err(TaskError::NoDeadline));
        let disordered = Task {
            typical_ns: 4,
            ..Task::periodic(10, 3)
        };
        let said = disordered.check().unwrap_err().to_string();
        assert!(said.contains("3, 4 and 3 ns"), "{said}");
    }
}
