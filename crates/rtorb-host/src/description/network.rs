//! The network interfaces: when their devices interrupt, which CPUs and threads receive their packets, and in which order
//! packets leave.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::kernel::KernelThread;
use crate::netlink::{Coalescing, Discipline};
use crate::system::System;

/// The network interfaces, and what the kernel does with their packets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// The interfaces that are up, by name, without the loopback interface; `None` if they cannot be listed.
    pub interfaces: Option<BTreeMap<String, Interface>>,
    /// Whether the kernel tells when devices interrupt.
    pub coalescing_visible: bool,
    /// Microseconds for which poll(2), select(2) and epoll(7) look for packets themselves (`net.core.busy_poll`).
    pub busy_poll_us: Option<i64>,
    /// Microseconds for which a blocking read looks for packets itself (`net.core.busy_read`).
    pub busy_read_us: Option<i64>,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// Whether it has a device; a bridge and a veth(4) have none.
    pub has_device: bool,
    /// When its device interrupts; `None` if the driver has no such settings.
    pub coalescing: Option<Coalescing>,
    /// How many queues receive packets.
    pub receive_queues: usize,
    /// How many queues send packets.
    pub transmit_queues: usize,
    /// The interrupts of its device; empty if there are none or none are visible.
    pub interrupts: Vec<InterfaceInterrupt>,
    /// Whether threads receive its packets (threaded NAPI, Linux 5.12 and later).
    pub napi_threaded: Option<bool>,
    /// The real-time priorities of those threads, 0 without one; empty if there are none or none are visible.
    pub napi_priorities: Vec<u32>,
    /// The kinds of its queueing disciplines (tc(8)), such as `pfifo_fast`; empty if they are not visible.
    pub disciplines: Vec<String>,
}

/// An interrupt of a network device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceInterrupt {
    /// Its number in /proc/irq.
    pub number: u32,
    /// The CPUs that it may come to, as the kernel lists them.
    pub cpus: Option<String>,
    /// The real-time priority of its thread, 0 without one; `None` if no thread is seen.
    pub thread_priority: Option<u32>,
}

impl Network {
    /// `threads` are the kernel's handlers of interrupts and packets.
    pub(super) fn of(system: &System, threads: &[KernelThread]) -> Self {
        let lines = interrupt_lines(system);
        let of = |name: String| {
            let interface = Interface::of(system, &name, (&lines, threads))?;
            Some((name, interface))
        };
        let mut names = system.names(FOLDER);
        names.sort();
        let visible = system.exists(FOLDER) && is_own_namespace(system, &names);
        let interfaces = names.into_iter().filter_map(of).take(INTERFACES_MAX);
        Self {
            interfaces: visible.then(|| interfaces.collect()),
            coalescing_visible: system.answers.network.coalescing.is_some(),
            busy_poll_us: system.number("/proc/sys/net/core/busy_poll"),
            busy_read_us: system.number("/proc/sys/net/core/busy_read"),
        }
    }
}

impl Interface {
    /// `None` if the interface is not up, or is the loopback interface.
    fn of(
        system: &System,
        name: &str,
        (lines, threads): (&BTreeMap<u32, String>, &[KernelThread]),
    ) -> Option<Self> {
        let folder = format!("{FOLDER}/{name}");
        let flags = system.read(&format!("{folder}/flags"))?;
        let flags = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
        if flags & IFF_UP == 0 || flags & IFF_LOOPBACK != 0 {
            return None;
        }
        let index = system.number(&format!("{folder}/ifindex"));
        let index = u32::try_from(index?).ok()?;
        let answers = &system.answers.network;
        let mut coalescing = answers.coalescing.iter().flatten();
        let queues = system.names(&format!("{folder}/queues"));
        let count = |kind: &str| {
            queues
                .iter()
                .filter(|queue| queue.starts_with(kind))
                .count()
        };
        let numbers = interrupts(system, name, lines);
        Some(Self {
            has_device: system.exists(&format!("{folder}/device")),
            coalescing: coalescing
                .find(|found| found.interface == index)
                .map(|found| found.coalescing),
            receive_queues: count("rx-"),
            transmit_queues: count("tx-"),
            interrupts: numbers
                .into_iter()
                .map(|number| InterfaceInterrupt::of(system, number, threads))
                .collect(),
            napi_threaded: system.switch(&format!("{folder}/threaded")),
            napi_priorities: priorities(threads, &format!("napi/{name}-")).collect(),
            disciplines: answers
                .disciplines
                .as_deref()
                .map(|all| Discipline::kinds(all, index))
                .unwrap_or_default(),
        })
    }
}

impl InterfaceInterrupt {
    fn of(system: &System, number: u32, threads: &[KernelThread]) -> Self {
        Self {
            number,
            cpus: system.read(&format!("/proc/irq/{number}/smp_affinity_list")),
            thread_priority: priorities(threads, &format!("irq/{number}-")).min(),
        }
    }
}

/// Whether these interfaces of /sys are those of this process. After unshare(1) they are those of another network namespace,
/// until /sys is mounted again.
fn is_own_namespace(system: &System, names: &[String]) -> bool {
    let Some(table) = system.read("/proc/self/net/dev") else {
        return true;
    };
    let own: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.trim()))
        .collect();
    let shown = names.iter().map(String::as_str);
    let shown = shown.filter(|name| system.exists(&format!("{FOLDER}/{name}/ifindex")));
    shown.collect::<BTreeSet<&str>>() == own
}

/// The numbers of a device's interrupts: its message-signalled ones, and those of its name.
fn interrupts(system: &System, name: &str, lines: &BTreeMap<u32, String>) -> BTreeSet<u32> {
    let device = format!("{FOLDER}/{name}/device");
    if !system.exists(&device) {
        return BTreeSet::new();
    }
    // The interrupts of a virtio device are those of the PCI device above it.
    let kind = system.read(&format!("{device}/modalias"));
    let folder = if kind.is_some_and(|kind| kind.starts_with("virtio:")) {
        format!("{device}/../msi_irqs")
    } else {
        format!("{device}/msi_irqs")
    };
    let signalled = system.names(&folder).into_iter();
    let signalled = signalled.filter_map(|number| number.parse().ok());
    // The kernel keeps more of them ready than the driver uses.
    let used = signalled.filter(|number| lines.is_empty() || lines.contains_key(number));
    let named = lines
        .iter()
        .filter(|(_, line)| names_interface(line, name))
        .map(|(number, _)| *number);
    used.chain(named).take(INTERRUPTS_MAX).collect()
}

/// Whether a line of /proc/interrupts ends with the interface's name, as in `eth0`, `eth0-rx-1` and `uhci_hcd:usb1, eth0`.
fn names_interface(line: &str, name: &str) -> bool {
    let words = line.split([' ', ',']);
    words
        .filter_map(|word| word.strip_prefix(name))
        .any(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The lines of /proc/interrupts by the interrupts' numbers. The CPUs' own interrupts have letters for a number.
fn interrupt_lines(system: &System) -> BTreeMap<u32, String> {
    let table = system.read("/proc/interrupts").unwrap_or_default();
    let lines = table.lines().filter_map(|line| {
        let (number, rest) = line.trim().split_once(':')?;
        Some((number.parse().ok()?, rest.to_owned()))
    });
    lines.collect()
}

/// The priorities of the threads whose names begin so.
fn priorities<'a>(threads: &'a [KernelThread], begin: &'a str) -> impl Iterator<Item = u32> + 'a {
    let is_cut = |name: &str| name.len() == COMM_BYTES_MAX && begin.starts_with(name);
    let found = threads
        .iter()
        .filter(move |thread| thread.name.starts_with(begin) || is_cut(&thread.name));
    found.map(|thread| thread.priority)
}

const FOLDER: &str = "/sys/class/net";
/// linux/if.h.
const IFF_UP: u32 = 0x1;
const IFF_LOOPBACK: u32 = 0x8;
/// The name of a thread, proc_pid_comm(5).
const COMM_BYTES_MAX: usize = 15;
/// A host with many containers has as many interfaces without a device.
const INTERFACES_MAX: usize = 256;
/// MSI-X has no more.
const INTERRUPTS_MAX: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_interrupts_and_threads() {
        assert!(names_interface(" 5 0  GICv2 189 Level  eth0", "eth0"));
        assert!(names_interface(
            " 5 IO-APIC 16-fasteoi uhci_hcd:usb1, eth0",
            "eth0"
        ));
        assert!(names_interface(" 5 0  PCI-MSIX 1-edge eth0-TxRx-0", "eth0"));
        assert!(!names_interface(" 5 0  PCI-MSIX 1-edge eth01", "eth0"));
        let thread = |name: &str, priority| KernelThread {
            name: name.to_owned(),
            priority,
        };
        let threads = [
            thread("napi/eth0-8193", 50),
            thread("napi/enp0s31f6n", 40),
            thread("napi/eth01-8193", 30),
            thread("irq/30-eth0", 20),
        ];
        let found = |begin| priorities(&threads, begin).collect::<Vec<u32>>();
        assert_eq!(found("napi/eth0-"), [50]);
        assert_eq!(found("napi/enp0s31f6np0-"), [40]);
        assert_eq!(found("irq/30-"), [20]);
        assert!(found("irq/3-").is_empty());
    }
}
