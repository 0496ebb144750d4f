//! The host described beside every number: kernel, CPU, clock, and what the scheduler and memory limits allow.
//!
//! Everything is read from /proc and /sys; what cannot be read is `None`, never a guess.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Resource;
use serde::{Deserialize, Serialize};

/// The host as it was when an experiment began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
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
    /// The CPU's own name.
    pub cpu_model: Option<String>,
    /// CPUs online.
    pub cpus_online: usize,
    /// CPUs that this process may use, as the kernel lists them.
    pub cpus_allowed: Option<String>,
    /// Whether two CPUs share a core's units at this moment.
    pub smt_active: Option<bool>,
    /// The frequency governor of each CPU, those that agree named once; `None` when the kernel controls no frequency.
    pub governor: Option<String>,
    /// CPUs taken out of the general scheduler (`isolcpus`), empty when there are none.
    pub cpus_isolated: String,
    /// CPUs that have no tick while one task runs (`nohz_full`), empty when there are none.
    pub cpus_nohz_full: String,
    /// Microseconds of each period that real-time tasks may use; -1 is without limit.
    pub rt_runtime_us: Option<i64>,
    /// The period of that limit, in microseconds.
    pub rt_period_us: Option<i64>,
    /// The clock source in use.
    pub clock_source: Option<String>,
    /// The resolution of CLOCK_MONOTONIC in nanoseconds.
    pub clock_resolution_ns: u64,
    /// What the host runs inside, as far as it shows: `kvm`, `container`, ...; `none` is bare metal as far as it shows.
    pub virtualisation: String,
    /// Octets of memory that this process may lock; `None` is without limit.
    pub memory_lock_bytes: Option<u64>,
    /// The highest real-time priority that this process may ask for without the privilege.
    pub rtprio_limit: Option<u64>,
    /// Whether a thread of this process was given SCHED_FIFO when it asked.
    pub fifo_granted: bool,
    /// Whether this process may lock its memory whatever the limit says.
    pub may_lock_memory: bool,
    /// Octets of memory.
    pub memory_bytes: Option<u64>,
    /// The load averages when the description was made: one, five and fifteen minutes.
    pub load_average: Option<String>,
}

impl Host {
    /// Describes the host that this program runs on.
    #[must_use]
    pub fn describe() -> Self {
        let uname = rustix::system::uname();
        let kernel_version = uname.version().to_string_lossy().into_owned();
        let kernel_release = uname.release().to_string_lossy().into_owned();
        let preempt_rt = read("/sys/kernel/realtime").as_deref() == Some("1")
            || kernel_version.contains("PREEMPT_RT");
        let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
        let status = read("/proc/self/status").unwrap_or_default();
        Self {
            preemption: preemption(preempt_rt, &kernel_release),
            preempt_rt,
            kernel_release,
            machine: uname.machine().to_string_lossy().into_owned(),
            kernel_version,
            cpu_model: field(&cpuinfo, "model name").or_else(|| field(&cpuinfo, "Model")),
            cpus_online: read("/sys/devices/system/cpu/online")
                .map_or(1, |list| cpu_list(&list).len()),
            cpus_allowed: field(&status, "Cpus_allowed_list"),
            smt_active: read("/sys/devices/system/cpu/smt/active").map(|value| value == "1"),
            governor: governor(),
            cpus_isolated: read("/sys/devices/system/cpu/isolated").unwrap_or_default(),
            cpus_nohz_full: nohz_full(),
            rt_runtime_us: number("/proc/sys/kernel/sched_rt_runtime_us"),
            rt_period_us: number("/proc/sys/kernel/sched_rt_period_us"),
            clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            clock_resolution_ns: clock_resolution_ns(),
            virtualisation: virtualisation(&cpuinfo),
            memory_lock_bytes: rustix::process::getrlimit(Resource::Memlock).current,
            rtprio_limit: rustix::process::getrlimit(Resource::Rtprio).current,
            fifo_granted: crate::placement::fifo_is_granted(),
            may_lock_memory: capable(&status, CAP_IPC_LOCK),
            memory_bytes: read("/proc/meminfo")
                .and_then(|text| field(&text, "MemTotal"))
                .and_then(|value| value.trim_end_matches("kB").trim().parse::<u64>().ok())
                .map(|kib| kib * 1024),
            load_average: read("/proc/loadavg")
                .map(|text| text.split(' ').take(3).collect::<Vec<_>>().join(" ")),
        }
    }
}

/// The CPUs of a kernel list such as `0-3,8`.
#[must_use]
pub fn cpu_list(list: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>())
            && last < CPUS_MAX
        {
            cpus.extend(first..=last);
        }
    }
    cpus
}

/// The text of a file without the white space around it; `None` when it cannot be read or is not there.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().trim_end_matches('\0').to_owned())
}

/// The value of `NAME: value` in such files as /proc/self/status.
pub(crate) fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim().to_owned())
    })
}

fn number(path: &str) -> Option<i64> {
    read(path)?.parse().ok()
}

fn preemption(preempt_rt: bool, release: &str) -> String {
    if preempt_rt {
        return "PREEMPT_RT".to_owned();
    }
    // A kernel with PREEMPT_DYNAMIC says here which model it runs: the one in parentheses.
    if let Some(models) = read("/sys/kernel/debug/sched/preempt")
        && let Some(model) = models
            .split('(')
            .nth(1)
            .and_then(|rest| rest.split(')').next())
    {
        return model.to_owned();
    }
    if let Some(line) = read("/proc/cmdline")
        && let Some(model) = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("preempt="))
    {
        return model.to_owned();
    }
    let Some(config) = kernel_config(release) else {
        return "unknown".to_owned();
    };
    let set = |name: &str| {
        config
            .lines()
            .any(|line| line == format!("CONFIG_{name}=y"))
    };
    let model = [
        ("PREEMPT_RT", "PREEMPT_RT"),
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
    ];
    let chosen = model
        .iter()
        .find(|(name, _)| set(name))
        .map(|(_, model)| *model);
    let none = if set("PREEMPT_NONE") { "none" } else { "full" };
    chosen.unwrap_or(none).to_owned()
}

/// The configuration that the kernel was built with, from the places where it may be kept.
/// How often a second the kernel's own tick comes on a CPU that computes (CONFIG_HZ); `None` when its configuration cannot
/// be read.
pub(crate) fn kernel_tick_hz(release: &str) -> Option<u32> {
    let config = kernel_config(release)?;
    let mut lines = config.lines();
    lines.find_map(|line| line.strip_prefix("CONFIG_HZ=")?.parse().ok())
}

fn kernel_config(release: &str) -> Option<String> {
    if let Some(text) = read(format!("/boot/config-{release}")) {
        return Some(text);
    }
    if !Path::new("/proc/config.gz").exists() {
        return None;
    }
    let output = Command::new("gzip")
        .args(["-dc", "/proc/config.gz"])
        .stdin(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn governor() -> Option<String> {
    let online = cpu_list(&read("/sys/devices/system/cpu/online")?);
    let mut governors: Vec<String> = online
        .iter()
        .filter_map(|cpu| {
            read(format!(
                "/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"
            ))
        })
        .collect();
    governors.sort();
    governors.dedup();
    (!governors.is_empty()).then(|| governors.join(", "))
}

/// The kernel writes `(null)` when it was built with nohz_full and started without.
fn nohz_full() -> String {
    read("/sys/devices/system/cpu/nohz_full")
        .filter(|list| !list.contains("null"))
        .unwrap_or_default()
}

fn clock_resolution_ns() -> u64 {
    let resolution = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
    u64::try_from(resolution.tv_sec * 1_000_000_000 + resolution.tv_nsec).unwrap_or(0)
}

fn virtualisation(cpuinfo: &str) -> String {
    let mut layers = Vec::new();
    let hypervisor = cpuinfo
        .lines()
        .any(|line| line.starts_with("flags") && line.split(' ').any(|f| f == "hypervisor"));
    let vendor = read("/sys/hypervisor/type").or_else(|| read("/sys/class/dmi/id/sys_vendor"));
    let clocks = read("/sys/devices/system/clocksource/clocksource0/available_clocksource")
        .unwrap_or_default();
    if hypervisor || read("/sys/hypervisor/type").is_some() {
        layers.push(match (vendor, clocks.contains("kvm-clock")) {
            (_, true) => "kvm".to_owned(),
            (Some(vendor), false) => vendor,
            (None, false) => "virtual machine".to_owned(),
        });
    }
    if Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists() {
        layers.push("container".to_owned());
    }
    if layers.is_empty() {
        "none".to_owned()
    } else {
        layers.join(", ")
    }
}

/// Whether this process holds a capability in effect.
fn capable(status: &str, capability: u32) -> bool {
    field(status, "CapEff")
        .and_then(|mask| u64::from_str_radix(&mask, 16).ok())
        .is_some_and(|mask| mask & (1 << capability) != 0)
}

const CAP_IPC_LOCK: u32 = 14;
/// More CPUs than any Linux is built for, so that a malformed list cannot make a long one.
const CPUS_MAX: usize = 8192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_lists() {
        assert_eq!(cpu_list("0-3,8"), [0, 1, 2, 3, 8]);
        assert_eq!(cpu_list(""), [0usize; 0]);
        assert_eq!(cpu_list("7\n"), [7]);
        assert_eq!(cpu_list("0-99999999999"), [0usize; 0]);
    }

    #[test]
    fn this_host_has_a_kernel_and_a_cpu() {
        let host = Host::describe();
        assert!(!host.kernel_release.is_empty());
        assert!(host.cpus_online >= 1);
        assert!(host.clock_resolution_ns >= 1);
        assert!(!host.preemption.is_empty());
    }

    #[test]
    fn fields_are_found_whole() {
        let text = "Cpus_allowed:\t3\nCpus_allowed_list:\t0-1\n";
        assert_eq!(field(text, "Cpus_allowed_list").as_deref(), Some("0-1"));
        assert_eq!(field(text, "Cpus"), None);
    }
}
