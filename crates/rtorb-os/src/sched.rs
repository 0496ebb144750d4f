//! How the kernel schedules a thread: policy, priority and CPUs.

use crate::refused::{Refused, What};
use crate::usage;
use core::fmt;
use core::ops::RangeInclusive;
use rustix::io::Errno;
use rustix::process::Resource;
use rustix::thread::{CapabilitySet, CpuSet};

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
    /// SCHED_DEADLINE: a share of the CPU that the kernel promises, before every other policy.
    ///
    /// In each period the thread may run for `runtime_ns`, and has had it by `deadline_ns` after the period began.
    /// 1024 ns <= runtime <= deadline <= period, and the period between 100 us and 4 s
    /// (`/proc/sys/kernel/sched_deadline_period_{min,max}_us`). Such a thread may run on all CPUs of its root domain and
    /// makes no other thread (sched(7)).
    Deadline {
        /// Processor time a period, in nanoseconds.
        runtime_ns: u64,
        /// When it is due, in nanoseconds from the beginning of the period.
        deadline_ns: u64,
        /// From the beginning of a period to that of the next, in nanoseconds.
        period_ns: u64,
    },
}

impl SchedPolicy {
    /// Its name as in sched(7).
    pub fn name(self) -> &'static str {
        match self {
            Self::Other => "SCHED_OTHER",
            Self::Fifo(_) => "SCHED_FIFO",
            Self::RoundRobin(_) => "SCHED_RR",
            Self::Idle => "SCHED_IDLE",
            Self::Deadline { .. } => "SCHED_DEADLINE",
        }
    }

    /// Its priority; 0 where the policy has none.
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
        // SAFETY: it takes no memory.
        let min = unsafe { libc::sched_get_priority_min(self.number()) };
        // SAFETY: as above.
        let max = unsafe { libc::sched_get_priority_max(self.number()) };
        min.clamp(0, 99) as u8..=max.clamp(0, 99) as u8
    }

    fn number(self) -> libc::c_int {
        match self {
            Self::Other => libc::SCHED_OTHER,
            Self::Fifo(_) => libc::SCHED_FIFO,
            Self::RoundRobin(_) => libc::SCHED_RR,
            Self::Idle => libc::SCHED_IDLE,
            Self::Deadline { .. } => libc::SCHED_DEADLINE,
        }
    }

    pub(crate) fn refused(self, errno: Errno) -> Refused {
        let what = match self {
            Self::Deadline {
                runtime_ns,
                deadline_ns,
                period_ns,
            } => What::Deadline {
                runtime_ns,
                deadline_ns,
                period_ns,
            },
            _ => What::Scheduling {
                policy: self.name(),
                priority: self.priority(),
            },
        };
        Refused { what, errno }
    }
}

impl fmt::Display for SchedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Other | Self::Idle => f.write_str(self.name()),
            Self::Fifo(priority) | Self::RoundRobin(priority) => {
                write!(f, "{} {priority}", self.name())
            }
            Self::Deadline {
                runtime_ns,
                deadline_ns,
                period_ns,
            } => write!(
                f,
                "{} {runtime_ns} of {period_ns} ns within {deadline_ns} ns",
                self.name()
            ),
        }
    }
}

/// `struct sched_param` as the kernel has it. musl's functions of these names refuse whatever is asked (POSIX means whole
/// processes by them, Linux threads), and its structure is another one: hence the system calls themselves.
#[repr(C)]
struct SchedParam {
    sched_priority: libc::c_int,
}

/// Gives the calling thread a policy.
///
/// # Errors
/// [`Refused`] when it may not have it, when the priority is none of [`SchedPolicy::priorities`], or when the three times
/// of a deadline do not go together (EINVAL) or the CPUs are promised to others (EBUSY).
pub fn apply_policy(policy: SchedPolicy) -> Result<(), Refused> {
    apply_to(CALLING_THREAD, policy)
}

/// Gives a thread of this process a policy; its number is that of [`thread_id`](crate::thread::thread_id).
///
/// The caller sees to it that the thread does not end meanwhile: its number could be another one's then.
///
/// # Errors
/// As [`apply_policy`]; ESRCH when there is no such thread.
pub fn apply_policy_to(thread_id: u32, policy: SchedPolicy) -> Result<(), Refused> {
    match libc::pid_t::try_from(thread_id) {
        Ok(thread) if thread > 0 => apply_to(thread, policy),
        // 0 would be the calling thread.
        _ => Err(policy.refused(Errno::SRCH)),
    }
}

fn apply_to(thread: libc::pid_t, policy: SchedPolicy) -> Result<(), Refused> {
    if let SchedPolicy::Deadline { .. } = policy {
        return apply_deadline(thread, policy);
    }
    let parameters = SchedParam {
        sched_priority: i32::from(policy.priority()),
    };
    // SAFETY: the parameters outlive the call; a thread that is not there is refused.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            thread,
            policy.number(),
            &raw const parameters,
        )
    };
    match answer {
        0 => Ok(()),
        _ => Err(policy.refused(last_error())),
    }
}

/// Changes the priority of the calling thread, which is FIFO or RR, and nothing else.
///
/// A thread that is lowered goes to the front of the queue of its new priority, one that is raised to the back
/// (sched(7)): so lowering does not hand the CPU to an equal.
///
/// # Errors
/// [`Refused`] when the thread has another policy, or may not have the priority.
pub fn apply_priority(priority: u8) -> Result<(), Refused> {
    let parameters = SchedParam {
        sched_priority: i32::from(priority),
    };
    // SAFETY: the parameters outlive the call; 0 is the calling thread.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setparam, 0, &raw const parameters) };
    match answer {
        0 => Ok(()),
        _ => Err(Refused {
            what: What::Scheduling {
                policy: current_policy().name(),
                priority,
            },
            errno: last_error(),
        }),
    }
}

/// The calling thread's policy as the kernel has it; policies that this crate does not set (SCHED_BATCH, SCHED_EXT) are
/// told as `Other`.
pub fn current_policy() -> SchedPolicy {
    let mut attributes = no_attributes();
    // SAFETY: the attributes are ours to write and as long as we say; 0 is the calling thread.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            0,
            &raw mut attributes,
            attributes.size,
            0,
        )
    };
    // A seccomp filter may forbid it; the thread is then known to have none of our policies, since it cannot set them.
    if answer != 0 {
        return SchedPolicy::Other;
    }
    let priority = attributes.sched_priority.min(99) as u8;
    match attributes.sched_policy as libc::c_int {
        libc::SCHED_FIFO => SchedPolicy::Fifo(priority),
        libc::SCHED_RR => SchedPolicy::RoundRobin(priority),
        libc::SCHED_IDLE => SchedPolicy::Idle,
        libc::SCHED_DEADLINE => SchedPolicy::Deadline {
            runtime_ns: attributes.sched_runtime,
            deadline_ns: attributes.sched_deadline,
            period_ns: attributes.sched_period,
        },
        _ => SchedPolicy::Other,
    }
}

/// Whether a thread of this process may have `policy`, as far as its capabilities and limits tell; nothing is changed.
///
/// SCHED_FIFO and SCHED_RR need CAP_SYS_NICE or RLIMIT_RTPRIO of at least the priority; SCHED_DEADLINE needs CAP_SYS_NICE
/// (sched(7)). A container that keeps the capability but not its power (a user namespace, seccomp, a control group
/// without real-time runtime) is only found out by trying: [`apply_policy`] on a thread that ends after it.
///
/// # Errors
/// [`Refused`] as [`apply_policy`] would answer.
pub fn allowed(policy: SchedPolicy) -> Result<(), Refused> {
    if !policy.priorities().contains(&policy.priority()) || !times_go_together(policy) {
        return Err(policy.refused(Errno::INVAL));
    }
    if !policy.is_real_time() || has_capability(CapabilitySet::SYS_NICE) {
        return Ok(());
    }
    let limit = rustix::process::getrlimit(Resource::Rtprio).current;
    let below_limit = limit.is_none_or(|limit| u64::from(policy.priority()) <= limit);
    match policy {
        SchedPolicy::Fifo(_) | SchedPolicy::RoundRobin(_) if below_limit => Ok(()),
        _ => Err(policy.refused(Errno::PERM)),
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

/// How often a thread has left the CPU to another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// To wait for something.
    pub voluntary: u64,
    /// Because another one was to run.
    pub involuntary: u64,
}

/// Those of the calling thread since it began (RUSAGE_THREAD): one system call. An interrupt is none.
pub fn thread_switches() -> Switches {
    let usage = usage::of(libc::RUSAGE_THREAD);
    Switches {
        voluntary: usage.ru_nvcsw as u64,
        involuntary: usage.ru_nivcsw as u64,
    }
}

/// True if the process has the capability in effect.
pub(crate) fn has_capability(capability: CapabilitySet) -> bool {
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(capability))
}

fn apply_deadline(thread: libc::pid_t, policy: SchedPolicy) -> Result<(), Refused> {
    let SchedPolicy::Deadline {
        runtime_ns,
        deadline_ns,
        period_ns,
    } = policy
    else {
        return Ok(());
    };
    if !times_go_together(policy) {
        return Err(policy.refused(Errno::INVAL));
    }
    let attributes = libc::sched_attr {
        sched_policy: libc::SCHED_DEADLINE as u32,
        sched_runtime: runtime_ns,
        sched_deadline: deadline_ns,
        sched_period: period_ns,
        ..no_attributes()
    };
    // SAFETY: the attributes outlive the call and say their own length; a thread that is not there is refused.
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0) };
    match answer {
        0 => Ok(()),
        _ => Err(policy.refused(last_error())),
    }
}

/// What sched(7) asks of the three times; true for policies without.
fn times_go_together(policy: SchedPolicy) -> bool {
    match policy {
        SchedPolicy::Deadline {
            runtime_ns,
            deadline_ns,
            period_ns,
        } => {
            runtime_ns >= DEADLINE_RUNTIME_NS_MIN
                && runtime_ns <= deadline_ns
                && deadline_ns <= period_ns
                && period_ns < 1 << 63
        }
        _ => true,
    }
}

fn no_attributes() -> libc::sched_attr {
    libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    }
}

/// What the kernel takes for the thread that asks.
const CALLING_THREAD: libc::pid_t = 0;

/// The kernel counts in units of 1024 ns.
const DEADLINE_RUNTIME_NS_MIN: u64 = 1024;

pub(crate) fn last_error() -> Errno {
    std::io::Error::last_os_error()
        .raw_os_error()
        .map_or(Errno::PERM, Errno::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::{ThreadConfig, spawn};

    /// What a fresh thread has after asking for `policy`.
    fn obtained(policy: SchedPolicy) -> Result<SchedPolicy, Refused> {
        let config = ThreadConfig {
            policy: Some(policy),
            ..ThreadConfig::default()
        };
        let thread = spawn("policy", &config, current_policy)?;
        Ok(thread.join().expect("no panic").expect("it was begun"))
    }

    fn deadline(runtime_ns: u64, deadline_ns: u64, period_ns: u64) -> SchedPolicy {
        SchedPolicy::Deadline {
            runtime_ns,
            deadline_ns,
            period_ns,
        }
    }

    #[test]
    fn a_thread_has_the_policy_that_it_asked_for_or_is_told_why_not() {
        let policies = [
            SchedPolicy::Other,
            SchedPolicy::Idle,
            SchedPolicy::Fifo(7),
            SchedPolicy::RoundRobin(9),
            deadline(1_000_000, 5_000_000, 10_000_000),
        ];
        for policy in policies {
            match obtained(policy) {
                Ok(seen) => assert_eq!(seen, policy),
                Err(refused) => {
                    assert!(policy.is_real_time());
                    println!("skipped: {refused}");
                }
            }
        }
    }

    #[test]
    fn a_thread_can_be_given_a_policy_by_another() {
        use crate::thread::thread_id;
        use std::sync::mpsc::channel;
        let ((tell, told), (wake, woken)) = (channel(), channel::<()>());
        let thread = spawn("another", &ThreadConfig::default(), move || {
            tell.send(thread_id()).expect("it is awaited");
            woken.recv().expect("it is woken");
            current_policy()
        });
        let own = current_policy();
        let applied = apply_policy_to(told.recv().expect("it runs"), SchedPolicy::Fifo(7));
        wake.send(()).expect("it waits");
        let seen = thread.expect("a thread").join().expect("no panic");
        match applied {
            Ok(()) => assert_eq!(seen, Some(SchedPolicy::Fifo(7))),
            Err(refused) => println!("skipped: {refused}"),
        }
        assert_eq!(current_policy(), own);
        for nobody in [0, u32::MAX] {
            let refused = apply_policy_to(nobody, SchedPolicy::Other).expect_err("no thread");
            assert_eq!(refused.errno, Errno::SRCH);
        }
    }

    #[test]
    fn what_no_kernel_allows_is_refused_as_invalid() {
        let wrong = [
            SchedPolicy::Fifo(0),
            SchedPolicy::Fifo(100),
            SchedPolicy::RoundRobin(0),
            deadline(1_000, 5_000_000, 10_000_000),
            deadline(6_000_000, 5_000_000, 10_000_000),
            deadline(1_000_000, 5_000_000, 4_000_000),
            deadline(1_000_000, 5_000_000, 0),
            deadline(u64::MAX, u64::MAX, u64::MAX),
        ];
        for policy in wrong {
            let asked = allowed(policy).expect_err("invalid");
            assert_eq!(asked.errno, Errno::INVAL, "{policy}");
            assert_eq!(obtained(policy).expect_err("invalid"), asked);
        }
    }

    #[test]
    fn whoever_is_not_allowed_is_refused_when_trying() {
        for policy in [
            SchedPolicy::Other,
            SchedPolicy::Idle,
            SchedPolicy::Fifo(99),
            SchedPolicy::RoundRobin(1),
        ] {
            match (allowed(policy), obtained(policy)) {
                (Err(asked), tried) => assert_eq!(tried, Err(asked)),
                (Ok(()), Err(tried)) => println!("a container's refusal: {tried}"),
                (Ok(()), Ok(seen)) => assert_eq!(seen, policy),
            }
        }
    }

    #[test]
    fn only_fifo_and_rr_have_priorities() {
        assert_eq!(SchedPolicy::Fifo(1).priorities(), 1..=99);
        assert_eq!(SchedPolicy::RoundRobin(1).priorities(), 1..=99);
        assert_eq!(SchedPolicy::Other.priorities(), 0..=0);
        assert_eq!(deadline(1, 1, 1).priorities(), 0..=0);
    }
}
