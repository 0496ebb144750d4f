//! A task: execution time, period and deadline.

use serde::Deserialize;
use thiserror::Error;

use crate::arrivals::{Arrivals, Burst, Phase};

/// A task on one processor. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// The period; for a sporadic task the least time between two arrivals, or the window of a burst. At least 1.
    pub period_ns: u64,
    /// The jobs within a period.
    pub burst: Burst,
    /// The static offset of a strictly periodic task. [`holistic`](mod@crate::holistic) uses it; analyses that do not bound the
    /// same with more pessimism.
    pub phase: Option<Phase>,
    /// The worst-case execution time of one job.
    pub worst_ns: u64,
    /// The typical execution time of one job. No verdict uses it.
    pub typical_ns: u64,
    /// The best-case execution time of one job.
    pub best_ns: u64,
    /// The deadline, from a job's arrival; may be longer than the period (arbitrary deadlines). At least 1.
    pub deadline_ns: u64,
    /// The release jitter: the longest time from a job's arrival to its release.
    pub jitter_ns: u64,
    /// The blocking: the longest time that a job waits for less urgent ones, in critical sections or in a kernel that cannot be
    /// preempted.
    pub blocking_ns: u64,
    /// What a missed deadline costs.
    pub criticality: Criticality,
    /// Which task runs first among equals.
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

/// Which task runs first among equals (RtecScheduler::Importance_t).
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

/// Why a task is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TaskError {
    /// The period is 0: infinitely many jobs would arrive at once.
    #[error("the period is 0: it must be at least 1 ns")]
    NoPeriod,
    /// The deadline is 0.
    #[error("the deadline is 0: it must be at least 1 ns")]
    NoDeadline,
    /// The jobs of a burst do not fit into the period.
    #[error(
        "a burst of {jobs} jobs, {gap_ns} ns apart, does not fit into the period of {period_ns} ns"
    )]
    Burst {
        /// The number of jobs.
        jobs: u32,
        /// The gap, in ns.
        gap_ns: u64,
        /// The period, in ns.
        period_ns: u64,
    },
    /// The execution times are out of order.
    #[error(
        "execution times must be best <= typical <= worst, but are {best_ns}, {typical_ns} and {worst_ns} ns"
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
    /// Creates a task whose deadline is its period, without jitter or blocking. Best and typical time equal the worst.
    #[must_use]
    pub const fn periodic(period_ns: u64, worst_ns: u64) -> Self {
        Self {
            period_ns,
            burst: Burst::NONE,
            phase: None,
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

    /// Returns the task with another deadline.
    #[must_use]
    pub const fn with_deadline(mut self, deadline_ns: u64) -> Self {
        self.deadline_ns = deadline_ns;
        self
    }

    /// Returns the task with another release jitter.
    #[must_use]
    pub const fn with_jitter(mut self, jitter_ns: u64) -> Self {
        self.jitter_ns = jitter_ns;
        self
    }

    /// Returns the task with another blocking.
    #[must_use]
    pub const fn with_blocking(mut self, blocking_ns: u64) -> Self {
        self.blocking_ns = blocking_ns;
        self
    }

    /// Returns the task with bursts.
    #[must_use]
    pub const fn with_burst(mut self, burst: Burst) -> Self {
        self.burst = burst;
        self
    }

    /// Returns the task with a static offset.
    #[must_use]
    pub const fn with_phase(mut self, phase: Phase) -> Self {
        self.phase = Some(phase);
        self
    }

    /// Returns the task with another criticality.
    #[must_use]
    pub const fn with_criticality(mut self, criticality: Criticality) -> Self {
        self.criticality = criticality;
        self
    }

    /// Returns how much longer than its window the time is in which jobs arrive that delay a job, in ns. A job without execution ends at
    /// the first moment at which no other waits, so what arrives at the end of its window delays it too.
    pub(crate) const fn tail_ns(&self) -> u64 {
        if self.worst_ns == 0 { 1 } else { 0 }
    }

    pub(crate) const fn arrivals(&self) -> Arrivals {
        Arrivals {
            period_ns: self.period_ns,
            burst: self.burst,
        }
    }

    /// Checks that the task is valid.
    ///
    /// # Errors
    /// [`TaskError`] names the invalid field.
    pub const fn check(&self) -> Result<(), TaskError> {
        if self.period_ns == 0 {
            return Err(TaskError::NoPeriod);
        }
        if self.deadline_ns == 0 {
            return Err(TaskError::NoDeadline);
        }
        let burst_ns = self.burst.gap_ns.checked_mul(self.burst.jobs as u64);
        if self.burst.jobs == 0 || !matches!(burst_ns, Some(ns) if ns <= self.period_ns) {
            return Err(TaskError::Burst {
                jobs: self.burst.jobs,
                gap_ns: self.burst.gap_ns,
                period_ns: self.period_ns,
            });
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
    fn an_invalid_task_is_an_error() {
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
