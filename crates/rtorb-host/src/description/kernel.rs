//! What the kernel was built and started as: its preemption model, its options, and its threads' priorities.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};

use crate::system::System;

/// The kernel's options, as far as they matter to a deadline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelOptions {
    /// Whether the configuration that it was built with can be read.
    pub configuration_visible: bool,
    /// Options for finding defects that make it slow, as `CONFIG_` names them.
    pub slow: Vec<String>,
    /// Whether interrupt handlers run in threads, which have priorities.
    pub interrupt_threads: Option<bool>,
    /// Whether timers may be moved from an idle CPU to a busy one.
    pub timer_migration: Option<bool>,
}

/// Threads of a running host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Threads {
    /// The highest real-time priority of each kind of kernel thread that has one.
    pub(super) kernel: Option<BTreeMap<String, u32>>,
    /// Whether a daemon moves interrupts from CPU to CPU.
    pub(super) irqbalance: Option<bool>,
    /// The threads that handle interrupts (`irq/...`) or receive packets (`napi/...`).
    pub(super) handlers: Vec<KernelThread>,
}

/// A thread of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelThread {
    /// Before Linux 5.17 its first 15 bytes only.
    pub(super) name: String,
    /// Its real-time priority; 0 is none.
    pub(super) priority: u32,
}

impl KernelOptions {
    pub(super) fn of(system: &System, configuration: Option<&str>, preempt_rt: bool) -> Self {
        let slow = SLOW_OPTIONS
            .iter()
            .filter(|name| configuration.is_some_and(|text| is_set(text, name)));
        let forced = system.boot_option("threadirqs");
        Self {
            configuration_visible: configuration.is_some(),
            slow: slow.map(|name| (*name).to_owned()).collect(),
            interrupt_threads: if preempt_rt {
                Some(true)
            } else {
                forced.map(|option| option.0.is_some())
            },
            timer_migration: system.switch("/proc/sys/kernel/timer_migration"),
        }
    }
}

impl Threads {
    /// A process that has its own numbering of processes sees no kernel threads, and knows nothing of them.
    pub(super) fn of(system: &System) -> Self {
        if system.read("/proc/2/comm").as_deref() != Some("kthreadd") {
            return Self::default();
        }
        let mut kernel: BTreeMap<String, u32> = BTreeMap::new();
        let mut irqbalance = false;
        let mut handlers = Vec::new();
        let numbers = system.names("/proc").into_iter();
        for number in numbers.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
            // A process may end while it is looked at.
            let stat = system.read(&format!("/proc/{number}/stat"));
            let Some(process) = stat.as_deref().and_then(ProcessStat::parse) else {
                continue;
            };
            irqbalance |= process.name == "irqbalance";
            if process.parent != KTHREADD {
                continue;
            }
            if process.priority > 0 {
                let highest = kernel.entry(process.kind()).or_default();
                *highest = (*highest).max(process.priority);
            }
            if matches!(process.kind().as_str(), "irq" | "napi") {
                handlers.push(KernelThread {
                    name: process.name.to_owned(),
                    priority: process.priority,
                });
            }
        }
        Self {
            kernel: Some(kernel),
            irqbalance: Some(irqbalance),
            handlers,
        }
    }
}

/// Returns true if the kernel says that it is PREEMPT_RT.
pub(super) fn is_preempt_rt(system: &System) -> bool {
    let version = system.read("/proc/sys/kernel/version");
    system.read("/sys/kernel/realtime").as_deref() == Some("1")
        || version.is_some_and(|version| version.contains("PREEMPT_RT"))
}

/// `PREEMPT_RT`, `full`, `lazy`, `voluntary`, `none`, or `unknown`.
pub(super) fn preemption(system: &System, configuration: Option<&str>, preempt_rt: bool) -> String {
    if preempt_rt || configuration.is_some_and(|text| is_set(text, "PREEMPT_RT")) {
        return "PREEMPT_RT".to_owned();
    }
    preemption_model(system, configuration, preempt_rt)
}

/// The model, whatever else the kernel is.
pub(super) fn preemption_model(
    system: &System,
    configuration: Option<&str>,
    preempt_rt: bool,
) -> String {
    if let Some(model) = dynamic_model(system) {
        return model;
    }
    // Where the scheduler's files are visible, and none of them has a model, the kernel has the one that it was built with, whatever it
    // was told. Before Linux 5.13 they are beside the folder.
    let scheduler = [
        "/sys/kernel/debug/sched",
        "/sys/kernel/debug/sched_features",
    ];
    let may_obey = !scheduler.iter().any(|path| system.exists(path));
    if may_obey && let Some(model) = system.boot_option("preempt").and_then(|option| option.0) {
        return model;
    }
    let Some(configuration) = configuration else {
        return if preempt_rt { "full" } else { "unknown" }.to_owned();
    };
    let models = [
        ("PREEMPT_LAZY", "lazy"),
        ("PREEMPT_VOLUNTARY", "voluntary"),
        ("PREEMPT_NONE", "none"),
    ];
    let chosen = models.iter().find(|(name, _)| is_set(configuration, name));
    chosen.map_or("full", |(_, model)| model).to_owned()
}

/// A kernel with PREEMPT_DYNAMIC says here which model it runs: the one in parentheses.
fn dynamic_model(system: &System) -> Option<String> {
    let models = system.read("/sys/kernel/debug/sched/preempt")?;
    let (_, rest) = models.split_once('(')?;
    let (model, _) = rest.split_once(')')?;
    Some(model.to_owned())
}

/// The configuration that the kernel was built with, from the places where it may be kept.
pub(super) fn configuration(system: &System, release: &str) -> Option<String> {
    let beside_the_kernel = [
        format!("/boot/config-{release}"),
        format!("/lib/modules/{release}/config"),
    ];
    if let Some(text) = beside_the_kernel.iter().find_map(|path| system.read(path)) {
        return Some(text);
    }
    let packed = File::open(system.path("/proc/config.gz")).ok()?;
    let mut text = String::new();
    let mut unpacked = GzDecoder::new(packed).take(CONFIGURATION_BYTES_MAX);
    unpacked.read_to_string(&mut text).ok()?;
    Some(text)
}

/// Whether the configuration has `CONFIG_NAME=y`.
pub(super) fn is_set(configuration: &str, name: &str) -> bool {
    configuration.lines().any(|line| {
        line.strip_prefix("CONFIG_")
            .and_then(|rest| rest.strip_prefix(name))
            == Some("=y")
    })
}

struct ProcessStat<'a> {
    name: &'a str,
    parent: u32,
    priority: u32,
}

impl<'a> ProcessStat<'a> {
    /// Fields 2, 4 and 40 of proc_pid_stat(5), counted after the command's name, which may itself hold spaces.
    fn parse(stat: &'a str) -> Option<Self> {
        let (before, after) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = after.split_whitespace().collect();
        Some(Self {
            name: before.split_once('(')?.1,
            parent: fields.get(4 - 3)?.parse().ok()?,
            priority: fields.get(40 - 3)?.parse().ok()?,
        })
    }

    /// `irq` of `irq/24-eth0`, `migration` of `migration/0`.
    fn kind(&self) -> String {
        let end = self.name.find(['/', ':']).unwrap_or(self.name.len());
        self.name[..end].to_owned()
    }
}

/// The parent of all kernel threads.
const KTHREADD: u32 = 2;
/// A configuration has some 300 KiB.
const CONFIGURATION_BYTES_MAX: u64 = 16 << 20;
/// Options that check every lock, memory access or object; the kernel's own help texts warn of their cost.
const SLOW_OPTIONS: [&str; 14] = [
    "PROVE_LOCKING",
    "DEBUG_LOCK_ALLOC",
    "LOCK_STAT",
    "DEBUG_SPINLOCK",
    "DEBUG_RT_MUTEXES",
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_PREEMPT",
    "DEBUG_OBJECTS",
    "DEBUG_KMEMLEAK",
    "SLUB_DEBUG_ON",
    "KASAN",
    "KCSAN",
    "IRQSOFF_TRACER",
    "PREEMPT_TRACER",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_set_only_by_its_whole_name() {
        let text = "CONFIG_KASAN_STACK=y\n# CONFIG_KASAN is not set\nCONFIG_KCSAN=y\n";
        assert!(!is_set(text, "KASAN"));
        assert!(is_set(text, "KCSAN"));
        assert!(!is_set(text, "CSAN"));
    }

    #[test]
    fn kernel_threads_have_kinds() {
        let stat = format!("50 (irq/24-ACPI:Ged) S 2 {}", "0 ".repeat(35) + "50 1 0");
        let process = ProcessStat::parse(&stat).unwrap();
        assert_eq!(
            (process.kind(), process.parent, process.priority),
            ("irq".to_owned(), 2, 50)
        );
        assert!(ProcessStat::parse("50 (short) S 2").is_none());
    }
}
