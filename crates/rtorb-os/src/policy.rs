//! Scheduling policies of sched(7).

use core::fmt;
use core::ops::RangeInclusive;

/// A scheduling policy of sched(7) with its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchedPolicy {
    /// SCHED_OTHER: time sharing, without a guarantee.
    Other,
    /// SCHED_FIFO at a priority of 1 (least urgent) to 99: runs until it blocks or a more urgent thread is ready.
    Fifo(u8),
    /// SCHED_RR: as FIFO, and threads of one priority take turns.
    RoundRobin(u8),
    /// SCHED_IDLE: runs only when no other thread is ready.
    Idle,
    /// SCHED_DEADLINE: a share of the CPU that the kernel guarantees, before every other policy.
    ///
    /// In each period the thread may run for `runtime_ns`, and has done so by `deadline_ns` after the period began.
    /// 1024 ns <= runtime <= deadline <= period, and the period is between 100 us and 4 s
    /// (`/proc/sys/kernel/sched_deadline_period_{min,max}_us`). Such a thread runs on all CPUs of its root domain: only a cpuset
    /// restricts them. Threads that it makes are SCHED_OTHER (sched(7)).
    Deadline {
        /// CPU time for each period, in nanoseconds.
        runtime_ns: u64,
        /// The deadline of each period, in nanoseconds from its start.
        deadline_ns: u64,
        /// The length of a period, in nanoseconds.
        period_ns: u64,
    },
}

impl SchedPolicy {
    /// The name of the policy in sched(7).
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "SCHED_OTHER",
            Self::Fifo(_) => "SCHED_FIFO",
            Self::RoundRobin(_) => "SCHED_RR",
            Self::Idle => "SCHED_IDLE",
            Self::Deadline { .. } => "SCHED_DEADLINE",
        }
    }

    /// The priority; 0 where the policy has none.
    pub fn priority(self) -> u8 {
        match self {
            Self::Other | Self::Idle | Self::Deadline { .. } => 0,
            Self::Fifo(priority) | Self::RoundRobin(priority) => priority,
        }
    }

    /// True for the policies that come before all time sharing: FIFO, RR and DEADLINE.
    pub fn is_real_time(self) -> bool {
        matches!(
            self,
            Self::Fifo(_) | Self::RoundRobin(_) | Self::Deadline { .. }
        )
    }

    /// The priorities that the kernel has for this policy: 1 to 99 for FIFO and RR, 0 to 0 for the others
    /// (sched_get_priority_min(2)).
    pub fn priorities(self) -> RangeInclusive<u8> {
        // SAFETY: the call takes one number and no memory.
        let min = unsafe { libc::sched_get_priority_min(self.number()) };
        // SAFETY: the call takes one number and no memory.
        let max = unsafe { libc::sched_get_priority_max(self.number()) };
        min.clamp(0, 99) as u8..=max.clamp(0, 99) as u8
    }

    /// The number of the policy in system calls.
    pub(crate) fn number(self) -> libc::c_int {
        match self {
            Self::Other => libc::SCHED_OTHER,
            Self::Fifo(_) => libc::SCHED_FIFO,
            Self::RoundRobin(_) => libc::SCHED_RR,
            Self::Idle => libc::SCHED_IDLE,
            Self::Deadline { .. } => libc::SCHED_DEADLINE,
        }
    }

    /// True if sched(7) has this priority, or these three times of a deadline.
    pub(crate) fn is_valid(self) -> bool {
        match self {
            Self::Deadline {
                runtime_ns,
                deadline_ns,
                period_ns,
            } => {
                runtime_ns >= DEADLINE_RUNTIME_NS_MIN
                    && runtime_ns <= deadline_ns
                    && deadline_ns <= period_ns
                    && period_ns < 1 << 63
            }
            _ => self.priorities().contains(&self.priority()),
        }
    }
}

/// The kernel counts in units of 1024 ns.
const DEADLINE_RUNTIME_NS_MIN: u64 = 1024;

impl fmt::Display for SchedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match *self {
            Self::Other | Self::Idle => Ok(()),
            Self::Fifo(priority) | Self::RoundRobin(priority) => write!(f, " {priority}"),
            Self::Deadline {
                runtime_ns,
                deadline_ns,
                period_ns,
            } => write!(f, " {runtime_ns} of {period_ns} ns within {deadline_ns} ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SchedPolicy;

    #[test]
    fn only_fifo_and_rr_have_priorities() {
        let deadline = SchedPolicy::Deadline {
            runtime_ns: 1,
            deadline_ns: 1,
            period_ns: 1,
        };
        assert_eq!(SchedPolicy::Fifo(1).priorities(), 1..=99);
        assert_eq!(SchedPolicy::RoundRobin(1).priorities(), 1..=99);
        assert_eq!(SchedPolicy::Other.priorities(), 0..=0);
        assert_eq!(deadline.priorities(), 0..=0);
    }
}
