//! How the kernel schedules a thread: policy, priority and CPUs.

use crate::refused::{Refused, What};
use core::fmt;
use rustix::io::Errno;
use rustix::thread::CpuSet;

/// A scheduling policy of sched(7) with its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchedPolicy {
    /// SCHED_OTHER: time sharing, no promise.
    Other,
    /// SCHED_FIFO at a priority of 1 (least urgent) to 99: runs until it blocks or a more urgent thread is ready.
    Fifo(u8),
    /// SCHED_RR: as FIFO, and threads of one priority take turns.
    RoundRobin(u8),
    /// SCHED_IDLE: only when nobody else wants the CPU.
    Idle,
}

impl SchedPolicy {
    /// Its name as in sched(7).
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "SCHED_OTHER",
            Self::Fifo(_) => "SCHED_FIFO",
            Self::RoundRobin(_) => "SCHED_RR",
            Self::Idle => "SCHED_IDLE",
        }
    }

    /// Its priority; 0 where the policy has none.
    pub fn priority(self) -> u8 {
        match self {
            Self::Other | Self::Idle => 0,
            Self::Fifo(priority) | Self::RoundRobin(priority) => priority,
        }
    }

    /// True for the policies with a priority.
    pub fn is_real_time(self) -> bool {
        matches!(self, Self::Fifo(_) | Self::RoundRobin(_))
    }
}

impl fmt::Display for SchedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_real_time() {
            true => write!(f, "{} {}", self.name(), self.priority()),
            false => f.write_str(self.name()),
        }
    }
}

/// Gives the calling thread a policy.
///
/// # Errors
/// [`Refused`] when it may not have it.
pub fn apply_policy(policy: SchedPolicy) -> Result<(), Refused> {
    let number = match policy {
        SchedPolicy::Other => libc::SCHED_OTHER,
        SchedPolicy::Fifo(_) => libc::SCHED_FIFO,
        SchedPolicy::RoundRobin(_) => libc::SCHED_RR,
        SchedPolicy::Idle => libc::SCHED_IDLE,
    };
    let parameters = libc::sched_param {
        sched_priority: i32::from(policy.priority()),
    };
    // SAFETY: the parameters outlive the call; 0 is the calling thread.
    let answer = unsafe { libc::sched_setscheduler(0, number, &raw const parameters) };
    match answer {
        0 => Ok(()),
        _ => Err(Refused {
            what: What::Scheduling {
                policy: policy.name(),
                priority: policy.priority(),
            },
            errno: last_error(),
        }),
    }
}

/// The calling thread's policy as the kernel has it; policies that this crate does not set are told as `Other`.
pub fn current_policy() -> SchedPolicy {
    // SAFETY: it takes no memory; 0 is the calling thread.
    let number = unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters are ours to write.
    let _ = unsafe { libc::sched_getparam(0, &raw mut parameters) };
    let priority = parameters.sched_priority.clamp(0, 99) as u8;
    match number {
        libc::SCHED_FIFO => SchedPolicy::Fifo(priority),
        libc::SCHED_RR => SchedPolicy::RoundRobin(priority),
        libc::SCHED_IDLE => SchedPolicy::Idle,
        _ => SchedPolicy::Other,
    }
}

/// Lets the calling thread run on these CPUs only.
///
/// # Errors
/// [`Refused`] when none of them is there or allowed.
pub fn apply_affinity(cpus: &[usize]) -> Result<(), Refused> {
    let first = cpus.first().copied().unwrap_or(0);
    let refused = |errno| Refused {
        what: What::Affinity { cpu: first },
        errno,
    };
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(Refused {
                what: What::Affinity { cpu },
                errno: Errno::INVAL,
            });
        }
        set.set(cpu);
    }
    rustix::thread::sched_setaffinity(None, &set).map_err(refused)
}

/// The CPUs that the calling thread may run on.
pub fn current_affinity() -> Vec<usize> {
    rustix::thread::sched_getaffinity(None)
        .map(|set| {
            (0..CpuSet::MAX_CPU)
                .filter(|&cpu| set.is_set(cpu))
                .collect()
        })
        .unwrap_or_default()
}

fn last_error() -> Errno {
    std::io::Error::last_os_error()
        .raw_os_error()
        .map_or(Errno::PERM, Errno::from_raw_os_error)
}
