//! The description of a host that stands beside every number: kernel, CPU, clock, and what scheduler and memory limits allow.

use std::collections::BTreeMap;

use rtorb_os::is_in_inner_user_namespace;
use serde::{Deserialize, Serialize};

use crate::idle_states::DmaLatency;
pub use crate::netlink::Coalescing;
use crate::system::{System, cpu_list, field};
pub use cpus::{IdleState, Idling, best_cpu};
pub use groups::RealTimeGroups;
pub use interrupts::Interrupts;
pub use kernel::KernelOptions;
pub use memory::MemoryMoves;
pub use network::{Interface, InterfaceInterrupt, Network};
pub use quota::CpuQuota;
pub use stolen::{StolenByCpu, StolenTime, stolen_ms};

mod cpus;
mod groups;
mod interrupts;
mod kernel;
mod memory;
mod network;
mod quota;
mod stolen;
mod virtualisation;

/// The host as it was when an experiment began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its name in the network (`uname -n`).
    #[serde(default)]
    pub name: Option<String>,
    /// `uname -r`.
    pub kernel_release: String,
    /// `uname -v`.
    pub kernel_version: String,
    /// The machine's architecture.
    pub machine: String,
    /// `PREEMPT_RT`, `full`, `lazy`, `voluntary`, `none`, or what of it could be found out.
    pub preemption: String,
    /// Whether the kernel is PREEMPT_RT.
    pub preempt_rt: bool,
    /// What else of the kernel's options matters.
    #[serde(default)]
    pub kernel_options: KernelOptions,
    /// The highest real-time priority of each kind of kernel thread that has one; `None` in a container, which sees none.
    #[serde(default)]
    pub kernel_threads: Option<BTreeMap<String, u32>>,
    /// The CPU's own name.
    pub cpu_model: Option<String>,
    /// CPUs online.
    pub cpus_online: usize,
    /// CPUs that this process may use, as the kernel lists them.
    pub cpus_allowed: Option<String>,
    /// The CPU that the laboratory measures on.
    #[serde(default)]
    pub cpu_measured: Option<usize>,
    /// Whether two CPUs share a core's units at this moment.
    pub smt_active: Option<bool>,
    /// The frequency governor of each CPU, those that agree named once; `None` when the kernel controls no frequency.
    pub governor: Option<String>,
    /// Whether a CPU may run faster than it always can.
    #[serde(default)]
    pub boost: Option<bool>,
    /// What an idle CPU does.
    #[serde(default)]
    pub idling: Idling,
    /// Why /dev/cpu_dma_latency could not be opened; `None` when it could.
    #[serde(default)]
    pub cpu_dma_latency_refused: Option<String>,
    /// Whether CPUs were kept out of deep idle states while it was measured (/dev/cpu_dma_latency held at 0).
    #[serde(default)]
    pub cpu_dma_latency_held: bool,
    /// CPUs taken out of the general scheduler (`isolcpus` or a cpuset), empty when there are none.
    pub cpus_isolated: String,
    /// CPUs that have no tick while one task runs (`nohz_full`), empty when there are none.
    pub cpus_nohz_full: String,
    /// CPUs that leave the kernel's deferred work to others (`rcu_nocbs`), empty when there are none.
    #[serde(default)]
    pub cpus_rcu_nocbs: Option<String>,
    /// The interrupts of devices.
    #[serde(default)]
    pub interrupts: Interrupts,
    /// Microseconds of each period that real-time tasks may use; -1 is without limit.
    pub rt_runtime_us: Option<i64>,
    /// The period of that limit, in microseconds.
    pub rt_period_us: Option<i64>,
    /// Nanoseconds of each second that ordinary threads get of the measured CPU if real-time threads fill it: the fair server of Linux
    /// 6.12 and newer. `None` if it is not visible.
    #[serde(default)]
    pub fair_server_ns: Option<i64>,
    /// What the control group of this process has of it.
    #[serde(default)]
    pub real_time_groups: RealTimeGroups,
    /// The CPU quota of the control groups of this process, if any is visible.
    #[serde(default)]
    pub cpu_quota: Option<CpuQuota>,
    /// True if the control group of this process is visible, so that `None` above means that no quota limits it.
    #[serde(default)]
    pub cpu_groups_visible: bool,
    /// The clock source in use.
    pub clock_source: Option<String>,
    /// Whether the kernel trusts an x86 CPU's own counter as a clock; `None` on other machines.
    #[serde(default)]
    pub tsc_trusted: Option<bool>,
    /// The resolution of CLOCK_MONOTONIC in nanoseconds.
    pub clock_resolution_ns: u64,
    /// What the host runs inside, as far as it shows: `kvm`, `container`, ...; `none` is bare metal as far as it shows.
    pub virtualisation: String,
    /// Time that a hypervisor or the firmware took.
    #[serde(default)]
    pub stolen: StolenTime,
    /// Bytes of memory that this process may lock; `None` is without limit.
    pub memory_lock_bytes: Option<u64>,
    /// The highest real-time priority that this process may ask for without the privilege.
    pub rtprio_limit: Option<u64>,
    /// Microseconds that a real-time thread may run without blocking before it is killed; `None` is without limit.
    #[serde(default)]
    pub rttime_limit_us: Option<u64>,
    /// Files and connections that this process may have open; `None` is without limit.
    #[serde(default)]
    pub open_files_limit: Option<u64>,
    /// Whether a thread of this process was given SCHED_FIFO when it asked.
    pub fifo_granted: bool,
    /// Whether this process may lock its memory whatever the limit says.
    pub may_lock_memory: bool,
    /// Which of the capabilities that matter here this process has in effect, where the kernel asks for them.
    #[serde(default)]
    pub capabilities: Option<Vec<String>>,
    /// Bytes of memory.
    pub memory_bytes: Option<u64>,
    /// What the kernel may do with memory under a running program.
    #[serde(default)]
    pub memory_moves: MemoryMoves,
    /// The network interfaces, and what the kernel does with their packets.
    #[serde(default)]
    pub network: Network,
    /// The load averages when the description was made: one, five and fifteen minutes.
    pub load_average: Option<String>,
}

/// The preemption model that the running kernel has, also of one that is PREEMPT_RT: `none`, `voluntary`, `full`, `lazy`, or `unknown`.
#[must_use]
pub fn preemption_model() -> String {
    preemption_model_of(&System::this())
}

pub(crate) fn preemption_model_of(system: &System) -> String {
    let release = system.read("/proc/sys/kernel/osrelease");
    let configuration = kernel::configuration(system, &release.unwrap_or_default());
    let preempt_rt = kernel::is_preempt_rt(system);
    kernel::preemption_model(system, configuration.as_deref(), preempt_rt)
}

impl Host {
    /// Describes the host that this program runs on. It is watched for stolen time for 300 ms.
    #[must_use]
    pub fn describe() -> Self {
        Self::of(&System::this())
    }

    /// Describes the emulated machine that this program runs in. It is not watched: nobody can take time from it.
    #[must_use]
    pub fn describe_emulated() -> Self {
        Self::of(&System::this().unwatched())
    }

    /// The emulated machine of a guest that is no Linux: of a host, only what the guest says is known.
    #[must_use]
    pub fn of_guest(release: &str, instructions: &str, preemption: &str) -> Self {
        Self {
            name: None,
            kernel_release: release.to_owned(),
            machine: instructions.to_owned(),
            preemption: preemption.to_owned(),
            ..Self::of(&System::unknown())
        }
    }

    /// Whether a hypervisor may take its CPUs away, as far as it shows. A container takes none.
    #[must_use]
    pub fn is_virtual_machine(&self) -> bool {
        let mut layers = self.virtualisation.split(", ");
        layers.any(|layer| !matches!(layer, "none" | "container" | ""))
    }

    /// Describes a host.
    pub(crate) fn of(system: &System) -> Self {
        let text = |path| system.read(path).unwrap_or_default();
        let kernel_version = text("/proc/sys/kernel/version");
        let kernel_release = text("/proc/sys/kernel/osrelease");
        let preempt_rt = kernel::is_preempt_rt(system);
        let configuration = kernel::configuration(system, &kernel_release);
        let configuration = configuration.as_deref();
        let threads = kernel::Threads::of(system);
        let cpuinfo = text("/proc/cpuinfo");
        let status = text("/proc/self/status");
        let capabilities = capabilities(system, &status);
        let cpus_allowed = field(&status, "Cpus_allowed_list");
        let cpus_isolated = cpus::isolated(system);
        let cpu_measured = cpus::best_cpu(cpus_allowed.as_deref().unwrap_or(""), &cpus_isolated);
        let cpu = cpu_measured.unwrap_or(0);
        let answers = &system.answers;
        Self {
            name: system.read("/proc/sys/kernel/hostname"),
            preemption: kernel::preemption(system, configuration, preempt_rt),
            preempt_rt,
            network: Network::of(system, &threads.handlers),
            kernel_options: KernelOptions::of(system, configuration, preempt_rt),
            kernel_threads: threads.kernel,
            kernel_release,
            machine: answers.machine.clone(),
            kernel_version,
            cpu_model: cpu_model(system, &cpuinfo),
            cpus_online: system
                .read("/sys/devices/system/cpu/online")
                .map_or(1, |list| cpu_list(&list).len()),
            cpus_allowed,
            cpu_measured,
            smt_active: cpus::smt(system, cpu),
            governor: cpus::governor(system),
            boost: cpus::boost(system),
            idling: Idling::of(system, cpu),
            cpu_dma_latency_refused: DmaLatency::may_be_held(&system.path(DmaLatency::DEVICE))
                .err()
                .map(|error| error.to_string()),
            cpu_dma_latency_held: false,
            cpus_isolated,
            cpus_nohz_full: cpus::nohz_full(system),
            cpus_rcu_nocbs: cpus::rcu_nocbs(system),
            interrupts: Interrupts::of(system, cpu, threads.irqbalance),
            rt_runtime_us: system.number("/proc/sys/kernel/sched_rt_runtime_us"),
            rt_period_us: system.number("/proc/sys/kernel/sched_rt_period_us"),
            fair_server_ns: cpus::fair_server_ns(system, cpu),
            real_time_groups: RealTimeGroups::of(system, configuration),
            cpu_quota: CpuQuota::of(system),
            cpu_groups_visible: quota::is_visible(system),
            clock_source: clocks(system, "current"),
            tsc_trusted: tsc_trusted(system, &cpuinfo),
            clock_resolution_ns: answers.clock_resolution_ns,
            virtualisation: virtualisation::virtualisation(system, &cpuinfo),
            stolen: StolenTime::of(system, &cpuinfo, cpu),
            memory_lock_bytes: answers.memory_lock_bytes,
            rtprio_limit: answers.rtprio_limit,
            rttime_limit_us: answers.rttime_limit_us,
            open_files_limit: answers.open_files_limit,
            fifo_granted: answers.fifo_granted,
            may_lock_memory: capabilities
                .as_ref()
                .is_some_and(|held| held.iter().any(|name| name == "CAP_IPC_LOCK")),
            capabilities,
            memory_bytes: memory::total_bytes(system),
            memory_moves: MemoryMoves::of(system),
            load_average: system
                .read("/proc/loadavg")
                .map(|text| text.split(' ').take(3).collect::<Vec<_>>().join(" ")),
        }
    }
}

/// How often a second the kernel's own tick comes on a CPU that computes (CONFIG_HZ); `None` when its configuration cannot
/// be read.
#[must_use]
pub fn kernel_tick_hz(release: &str) -> Option<u32> {
    let configuration = kernel::configuration(&System::this(), release)?;
    let mut lines = configuration.lines();
    lines.find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok())
}

/// What the CPU calls itself, or the board where CPUs have no names.
fn cpu_model(system: &System, cpuinfo: &str) -> Option<String> {
    field(cpuinfo, "model name")
        .or_else(|| field(cpuinfo, "Model"))
        .or_else(|| system.read("/proc/device-tree/model"))
}

/// Which of [`CAPABILITIES`] this process has in effect, without those that have no power in its user namespace.
fn capabilities(system: &System, status: &str) -> Option<Vec<String>> {
    let mask = u64::from_str_radix(&field(status, "CapEff")?, 16).ok()?;
    let is_inner = is_in_inner_user_namespace(&system.root);
    let held = CAPABILITIES
        .iter()
        .filter(|(bit, name)| mask & (1 << bit) != 0 && !(is_inner && OF_HOST.contains(name)));
    Some(held.map(|(_, name)| (*name).to_owned()).collect())
}

fn clocks(system: &System, which: &str) -> Option<String> {
    system.read(&format!(
        "/sys/devices/system/clocksource/clocksource0/{which}_clocksource"
    ))
}

/// A counter that was found to be unstable is not offered any more.
fn tsc_trusted(system: &System, cpuinfo: &str) -> Option<bool> {
    let flags = field(cpuinfo, "flags")?;
    let has_counter = flags.split(' ').any(|flag| flag == "tsc");
    let offered = clocks(system, "available")?;
    has_counter.then(|| offered.split(' ').any(|clock| clock == "tsc"))
}

/// By number: linux/capability.h.
const CAPABILITIES: [(u32, &str); 3] = [
    (12, "CAP_NET_ADMIN"),
    (14, "CAP_IPC_LOCK"),
    (23, "CAP_SYS_NICE"),
];
/// The kernel asks for these in the host's user namespace; for the others in that of the network.
const OF_HOST: [&str; 2] = ["CAP_IPC_LOCK", "CAP_SYS_NICE"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_a_kernel_and_a_cpu() {
        let host = Host::describe();
        let uname = rustix::system::uname();
        assert_eq!(host.kernel_release, uname.release().to_string_lossy());
        assert_eq!(host.kernel_version, uname.version().to_string_lossy());
        assert!(host.cpus_online >= 1);
        assert!(host.clock_resolution_ns >= 1);
        assert!(!host.preemption.is_empty());
    }
}
