//! The CPUs: who may use them, how fast they are, and how deep they sleep.

use serde::{Deserialize, Serialize};

use crate::system::{System, cpu_list};

/// What an idle CPU does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idling {
    /// The kernel's driver of idle states, `none` or such; `None` where nothing of it is visible.
    pub driver: Option<String>,
    /// Whether the kernel was told never to sleep (`idle=poll`).
    pub polls: bool,
    /// The states of the CPU that is measured on, lightest first.
    pub states: Vec<IdleState>,
}

/// A state in which a CPU waits for work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleState {
    /// The driver's name for it: `POLL`, `C1E`, `WFI`.
    pub name: String,
    /// Microseconds that it takes to leave it, as the driver has it.
    pub exit_latency_us: u64,
    /// Whether it may be entered.
    pub enabled: bool,
}

impl Idling {
    pub(super) fn of(system: &System, cpu: usize) -> Self {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
        let state = |number: usize| {
            let read = |what: &str| system.read(&format!("{folder}/state{number}/{what}"));
            Some(IdleState {
                name: read("name")?,
                exit_latency_us: read("latency")?.parse().ok()?,
                enabled: read("disable").as_deref() != Some("1"),
            })
        };
        let polls = system.boot_option("idle").and_then(|option| option.0);
        Self {
            driver: system.read("/sys/devices/system/cpu/cpuidle/current_driver"),
            polls: polls.as_deref() == Some("poll"),
            states: (0..IDLE_STATES_MAX).map_while(state).collect(),
        }
    }

    /// The enabled state that takes longest to leave.
    #[must_use]
    pub fn deepest(&self) -> Option<&IdleState> {
        let enabled = self.states.iter().filter(|state| state.enabled);
        enabled.max_by_key(|state| state.exit_latency_us)
    }
}

/// CPUs that the scheduler gives nobody who does not ask for them by name, from the command line or from a cpuset.
pub(super) fn isolated(system: &System) -> String {
    let by_boot = system.read("/sys/devices/system/cpu/isolated");
    let by_cpuset = system.read("/sys/fs/cgroup/cpuset.cpus.isolated");
    let mut lists: Vec<String> = by_boot.into_iter().chain(by_cpuset).collect();
    lists.retain(|list| !list.is_empty());
    lists.dedup();
    lists.join(",")
}

/// The kernel writes `(null)` when it was built with nohz_full and started without.
pub(super) fn nohz_full(system: &System) -> String {
    system
        .read("/sys/devices/system/cpu/nohz_full")
        .filter(|list| !list.contains("null"))
        .unwrap_or_default()
}

/// Returns the CPUs that leave the kernel's deferred work to others.
pub(super) fn rcu_nocbs(system: &System) -> Option<String> {
    let option = system.boot_option("rcu_nocbs")?;
    Some(option.0.unwrap_or_default())
}

/// Returns the time of the fair server on a CPU, in nanoseconds of each second.
pub(super) fn fair_server_ns(system: &System, cpu: usize) -> Option<i64> {
    system.number(&format!(
        "/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime"
    ))
}

/// The governors of all CPUs that have one, each named once.
pub(super) fn governor(system: &System) -> Option<String> {
    let online = cpu_list(&system.read("/sys/devices/system/cpu/online")?);
    let of = |cpu| {
        system.read(&format!(
            "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"
        ))
    };
    let mut governors: Vec<String> = online.into_iter().filter_map(of).collect();
    governors.sort();
    governors.dedup();
    (!governors.is_empty()).then(|| governors.join(", "))
}

/// Whether a CPU may run faster than it always can.
pub(super) fn boost(system: &System) -> Option<bool> {
    let by_intel = system.switch("/sys/devices/system/cpu/intel_pstate/no_turbo");
    by_intel
        .map(|off| !off)
        .or_else(|| system.switch("/sys/devices/system/cpu/cpufreq/boost"))
}

/// Whether two CPUs share a core's units: as the kernel says, or as the siblings of a CPU do.
pub(super) fn smt(system: &System, cpu: usize) -> Option<bool> {
    let siblings = || {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        system.read(&path).map(|list| cpu_list(&list).len() > 1)
    };
    system
        .switch("/sys/devices/system/cpu/smt/active")
        .or_else(siblings)
}

/// Drivers have at most ten (CPUIDLE_STATE_MAX).
const IDLE_STATES_MAX: usize = 10;

/// The CPU to measure on, of those that this process may use: an isolated one, or else the last.
#[must_use]
pub fn best_cpu(allowed: &str, isolated: &str) -> Option<usize> {
    let allowed = cpu_list(allowed);
    let isolated = cpu_list(isolated);
    // Interrupts prefer the first CPU, and the laboratory itself needs one to wait on.
    isolated
        .iter()
        .find(|cpu| allowed.contains(cpu))
        .or(allowed.last())
        .copied()
}
