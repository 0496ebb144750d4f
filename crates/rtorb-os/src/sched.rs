//! How the kernel schedules a thread: policy, priority and CPUs.

pub use crate::policy::SchedPolicy;

use crate::refused::user_namespace::is_in_inner_user_namespace;
use crate::refused::{Refused, Resource};
use rustix::io::Errno;
use rustix::process::Resource as Limit;
use rustix::thread::{CapabilitySet, CapabilitySets, CpuSet};
use std::path::Path;

/// `struct sched_param` of the kernel.
///
/// This module makes the system calls itself: musl's functions of these names always fail, because POSIX applies them to
/// processes and Linux to threads, and musl's structure is a different one.
#[repr(C)]
struct SchedParam {
    sched_priority: libc::c_int,
}

/// Sets the policy of the calling thread.
///
/// # Errors
/// [`Refused`] when the thread may not have the policy; when the priority is not in [`SchedPolicy::priorities`], or the
/// three times of a deadline are not in order (EINVAL); when other deadline threads have reserved the CPUs (EBUSY).
pub fn apply_policy(policy: SchedPolicy) -> Result<(), Refused> {
    apply_to(CALLING_THREAD, policy)
}

/// Sets the policy of the thread of this process with the number `thread_id` (see [`thread_id`](crate::thread::thread_id)).
///
/// The thread must not end during the call: another thread could get its number.
///
/// # Errors
/// As [`apply_policy`]; ESRCH when there is no such thread.
pub fn apply_policy_to(thread_id: u32, policy: SchedPolicy) -> Result<(), Refused> {
    match libc::pid_t::try_from(thread_id) {
        Ok(thread) if thread > 0 => apply_to(thread, policy),
        // 0 would be the calling thread.
        _ => Err(Resource::Policy(policy).refused(Errno::SRCH)),
    }
}

fn apply_to(thread: libc::pid_t, policy: SchedPolicy) -> Result<(), Refused> {
    let returned = if let SchedPolicy::Deadline {
        runtime_ns,
        deadline_ns,
        period_ns,
    } = policy
    {
        if !policy.is_valid() {
            return Err(Resource::Policy(policy).refused(Errno::INVAL));
        }
        let attributes = libc::sched_attr {
            sched_policy: libc::SCHED_DEADLINE as u32,
            // Without it, the thread could make no other.
            sched_flags: libc::SCHED_FLAG_RESET_ON_FORK as u64,
            sched_runtime: runtime_ns,
            sched_deadline: deadline_ns,
            sched_period: period_ns,
            ..NO_ATTRIBUTES
        };
        // SAFETY: `attributes` outlives the call and states its own size; the kernel checks the thread's number.
        unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0) }
    } else {
        let parameters = SchedParam {
            sched_priority: policy.priority().into(),
        };
        let number = policy.number();
        let call = libc::SYS_sched_setscheduler;
        // SAFETY: `parameters` outlives the call; the kernel checks the thread's number.
        unsafe { libc::syscall(call, thread, number, &raw const parameters) }
    };
    Resource::Policy(policy).check(returned)
}

/// Changes the priority of the calling thread, which is FIFO or RR, and nothing else.
///
/// A thread that is lowered goes to the front of the queue of its new priority, one that is raised to the back
/// (sched(7)). So a lowered thread does not yield the CPU to threads of the same priority.
///
/// # Errors
/// [`Refused`] when the thread has another policy, or may not have the priority.
pub fn apply_priority(priority: u8) -> Result<(), Refused> {
    let parameters = SchedParam {
        sched_priority: priority.into(),
    };
    // SAFETY: `parameters` outlives the call.
    let returned = unsafe {
        libc::syscall(
            libc::SYS_sched_setparam,
            CALLING_THREAD,
            &raw const parameters,
        )
    };
    Resource::Policy(SchedPolicy::Fifo(priority)).check(returned)
}

/// The policy that the kernel has for the calling thread. Policies that this crate does not set (SCHED_BATCH, SCHED_EXT)
/// are reported as `Other`.
pub fn current_policy() -> SchedPolicy {
    policy_of(CALLING_THREAD)
}

/// The policy of the calling thread for threads that another one creates: SCHED_DEADLINE, which these cannot have, becomes SCHED_OTHER.
pub fn policy_for_others() -> SchedPolicy {
    match current_policy() {
        SchedPolicy::Deadline { .. } => SchedPolicy::Other,
        policy => policy,
    }
}

/// The policy of the thread of this process with that number, as [`current_policy`] reports it. `Other` if there is no such thread.
pub fn current_policy_of(thread_id: u32) -> SchedPolicy {
    match libc::pid_t::try_from(thread_id) {
        Ok(thread) if thread > 0 => policy_of(thread),
        _ => SchedPolicy::Other,
    }
}

fn policy_of(thread: libc::pid_t) -> SchedPolicy {
    let mut attributes = NO_ATTRIBUTES;
    let (call, size) = (libc::SYS_sched_getattr, attributes.size);
    // SAFETY: `attributes` is writable during the call and `size` is its size; the kernel checks the thread's number.
    let returned = unsafe { libc::syscall(call, thread, &raw mut attributes, size, 0) };
    // A seccomp filter may forbid the call. Then the thread has no policy of this crate, because it could not set one.
    if returned != 0 {
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

/// Checks whether a thread of this process may have `policy`, by its capabilities and limits, without changing anything.
///
/// SCHED_FIFO and SCHED_RR need CAP_SYS_NICE or RLIMIT_RTPRIO of at least the priority; SCHED_DEADLINE needs CAP_SYS_NICE
/// (sched(7)). A container can keep the capability but not its power (seccomp, a control group without real-time runtime).
/// Only trying shows that: call [`apply_policy`] on a thread that ends after it.
///
/// # Errors
/// [`Refused`] as [`apply_policy`] would return.
pub fn allowed(policy: SchedPolicy) -> Result<(), Refused> {
    let resource = Resource::Policy(policy);
    if !policy.is_valid() {
        return Err(resource.refused(Errno::INVAL));
    }
    if !policy.is_real_time() || has_capability(CapabilitySet::SYS_NICE) {
        return Ok(());
    }
    let limit = rustix::process::getrlimit(Limit::Rtprio).current;
    let is_below_limit = limit.is_none_or(|limit| u64::from(policy.priority()) <= limit);
    match policy {
        SchedPolicy::Fifo(_) | SchedPolicy::RoundRobin(_) if is_below_limit => Ok(()),
        _ => Err(resource.refused(Errno::PERM)),
    }
}

/// Lets the calling thread run on these CPUs only.
///
/// # Errors
/// [`Refused`] when none of them exists or is allowed.
pub fn apply_affinity(cpus: &[usize]) -> Result<(), Refused> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(Resource::Affinity { cpu }.refused(Errno::INVAL));
        }
        set.set(cpu);
    }
    let cpu = cpus.first().copied().unwrap_or(0);
    rustix::thread::sched_setaffinity(None, &set)
        .map_err(|errno| Resource::Affinity { cpu }.refused(errno))
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

/// True if the process has the capability in the host's user namespace.
fn has_capability(capability: CapabilitySet) -> bool {
    let is_effective = |sets: CapabilitySets| sets.effective.contains(capability);
    rustix::thread::capabilities(None).is_ok_and(is_effective)
        && !is_in_inner_user_namespace(Path::new("/"))
}

const NO_ATTRIBUTES: libc::sched_attr = libc::sched_attr {
    size: size_of::<libc::sched_attr>() as u32,
    sched_policy: 0,
    sched_flags: 0,
    sched_nice: 0,
    sched_priority: 0,
    sched_runtime: 0,
    sched_deadline: 0,
    sched_period: 0,
};

/// The thread number that stands for the calling thread in system calls.
const CALLING_THREAD: libc::pid_t = 0;
