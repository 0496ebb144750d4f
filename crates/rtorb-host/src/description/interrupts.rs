//! Which interrupts of devices come to the CPU that is measured on.

use serde::{Deserialize, Serialize};

use crate::system::{System, cpu_list};

/// The interrupts of devices, summed up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupts {
    /// How many the host has.
    pub devices: Option<usize>,
    /// How many of them may be handled on the measured CPU.
    pub allowed: Option<usize>,
    /// How many times one of them was handled there since the host started.
    pub handled: Option<u64>,
    /// Those that came there most often, with their counts.
    pub busiest: Vec<(String, u64)>,
    /// The lines that several devices share, such as `16 (ehci_hcd:usb1, eth0)`.
    pub shared: Option<Vec<String>>,
    /// Whether irqbalance runs, which moves them from CPU to CPU.
    pub balanced: Option<bool>,
}

impl Interrupts {
    pub(super) fn of(system: &System, cpu: usize, balanced: Option<bool>) -> Self {
        let Some(table) = system.read("/proc/interrupts") else {
            return Self {
                balanced,
                ..Self::default()
            };
        };
        let mut lines = table.lines();
        let head = lines.next().unwrap_or_default();
        let cpus: Vec<&str> = head.split_whitespace().collect();
        let column = cpus.iter().position(|name| *name == format!("CPU{cpu}"));
        let mut devices: Vec<Device> = lines
            .filter_map(|line| Device::parse(line, cpus.len(), column))
            .collect();
        let visible = system.exists("/proc/irq/default_smp_affinity") || devices.is_empty();
        let allowed = devices
            .iter()
            .filter(|device| device.may_come_to(system, cpu));
        let allowed = visible.then(|| allowed.count());
        devices.sort_by_key(|device| std::cmp::Reverse(device.count));
        Self {
            devices: Some(devices.len()),
            allowed,
            shared: Some(devices.iter().filter_map(Device::shared).collect()),
            handled: column.map(|_| devices.iter().map(|device| device.count).sum()),
            busiest: devices
                .into_iter()
                .filter(|device| device.count > 0)
                .take(BUSIEST)
                .map(|device| (device.name, device.count))
                .collect(),
            balanced,
        }
    }
}

struct Device {
    number: u32,
    /// Of several devices on one line, all their names, with commas between.
    name: String,
    /// On the measured CPU.
    count: u64,
}

impl Device {
    /// A line such as ` 36:  0  1159421  PCI-MSIX-0000:00:02.0  1-edge  virtio1-req.0`. What has letters for a number is of
    /// the CPUs themselves.
    fn parse(line: &str, cpus: usize, column: Option<usize>) -> Option<Self> {
        let (number, rest) = line.trim().split_once(':')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let number: u32 = number.parse().ok()?;
        let words_of_name = words.get(cpus..)?;
        let is_end = |word: &&str| !word.ends_with(',');
        // The line names its devices last, with a comma behind each but the last one.
        let others = words_of_name.iter().rev().skip(1).position(is_end);
        let others = others.unwrap_or(words_of_name.len().checked_sub(1)?);
        let name = words_of_name[words_of_name.len() - 1 - others..].join(" ");
        if PER_CPU.iter().any(|timer| name.contains(timer)) {
            return None;
        }
        Some(Self {
            number,
            name,
            count: column
                .and_then(|column| words.get(column)?.parse().ok())
                .unwrap_or(0),
        })
    }

    /// The line and its devices, if it has several.
    fn shared(&self) -> Option<String> {
        let is_shared = self.name.contains(", ");
        is_shared.then(|| format!("{} ({})", self.number, self.name))
    }

    fn may_come_to(&self, system: &System, cpu: usize) -> bool {
        let path = format!("/proc/irq/{}/smp_affinity_list", self.number);
        let list = system.read(&path).unwrap_or_default();
        cpu_list(&list).contains(&cpu)
    }
}

/// How many are named.
const BUSIEST: usize = 3;
/// Each CPU of an arm machine has its own of these, with a number as if they were devices.
const PER_CPU: [&str; 4] = ["arch_timer", "vtimer", "arm-pmu", "IPI"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_architectures() {
        let device = Device::parse(" 36:  7  9 PCI-MSIX-0000:00:02.0 1-edge eth0", 2, Some(1));
        let device = device.unwrap();
        assert_eq!((device.number, device.count), (36, 9));
        assert_eq!(device.name, "eth0");
        let timer = " 11:  100  100  GICv3 27 Level arch_timer";
        assert!(Device::parse(timer, 2, Some(0)).is_none());
        let mac = " 48:  5  0  GICv2 189 Level eth0";
        assert_eq!(Device::parse(mac, 2, Some(0)).unwrap().count, 5);
        let shared = " 16:  0  3  IO-APIC  16-fasteoi  ehci_hcd:usb1, i801_smbus, eth0";
        let shared = Device::parse(shared, 2, Some(1)).unwrap();
        let said = "16 (ehci_hcd:usb1, i801_smbus, eth0)".to_owned();
        assert_eq!((shared.count, shared.shared()), (3, Some(said)));
        let alone = Device::parse(" 16: 0 3 eth0", 2, Some(1)).unwrap();
        assert_eq!((alone.name.as_str(), alone.shared()), ("eth0", None));
        assert!(Device::parse("LOC:  100  100  Local timer interrupts", 2, Some(0)).is_none());
        assert!(Device::parse("ERR: 0", 2, Some(0)).is_none());
    }
}
