//! What the kernel has counted for the threads of a process, read from outside.

use std::fs;

use crate::host::field;

/// Sums over all threads that a process has now. They only grow while no thread ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadSums {
    /// Times that a thread gave up the CPU to wait.
    pub voluntary_switches: u64,
    /// Times that a thread lost the CPU to another one.
    pub involuntary_switches: u64,
    /// Processor time in nanoseconds.
    pub cpu_ns: u64,
}

impl ThreadSums {
    /// Of the process with this id (proc_pid_status(5), `Documentation/scheduler/sched-stats.rst` of Linux); `None` when it is
    /// gone.
    #[must_use]
    pub fn of(process: u32) -> Option<Self> {
        let mut sums = Self::default();
        for task in fs::read_dir(format!("/proc/{process}/task")).ok()? {
            let task = task.ok()?.path();
            let status = fs::read_to_string(task.join("status")).ok()?;
            let schedstat = fs::read_to_string(task.join("schedstat")).ok()?;
            let number = |name| field(&status, name)?.parse::<u64>().ok();
            sums.voluntary_switches += number("voluntary_ctxt_switches")?;
            sums.involuntary_switches += number("nonvoluntary_ctxt_switches")?;
            sums.cpu_ns += schedstat.split(' ').next()?.parse::<u64>().ok()?;
        }
        Some(sums)
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let less = u64::saturating_sub;
        Self {
            voluntary_switches: less(self.voluntary_switches, earlier.voluntary_switches),
            involuntary_switches: less(self.involuntary_switches, earlier.involuntary_switches),
            cpu_ns: less(self.cpu_ns, earlier.cpu_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_gives_up_the_cpu() {
        let own = || ThreadSums::of(std::process::id()).unwrap();
        let before = own();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let since = own().since(before);
        assert!(since.voluntary_switches >= 1, "{since:?}");
        assert_eq!(ThreadSums::of(u32::MAX), None);
    }
}
