//! Time that is taken without a trace in any program: by a hypervisor, or by the machine's firmware.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::system::{System, field, read};

/// What was taken, as far as the host tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StolenTime {
    /// Millionths of the CPUs' time since the host started that the hypervisor gave to others.
    pub since_boot_ppm: Option<u64>,
    /// For how many milliseconds it was watched, with one CPU kept busy: an idle one loses nothing.
    pub watched_ms: u64,
    /// Millionths of the CPUs' time that the hypervisor gave to others while it was watched.
    pub watched_ppm: Option<u64>,
    /// System management interrupts since the machine started (Intel's MSR_SMI_COUNT).
    pub smi_since_boot: Option<u64>,
    /// Those while it was watched.
    pub smi_watched: Option<u64>,
    /// Whether the kernel has the tracer that finds gaps which nothing else explains; `None` when that is not visible.
    pub hwlat_tracer: Option<bool>,
}

impl StolenTime {
    /// Takes as long as the system is to be watched.
    pub(super) fn of(system: &System, cpuinfo: &str, cpu: usize) -> Self {
        let intel = field(cpuinfo, "vendor_id").as_deref() == Some("GenuineIntel");
        let smi = || {
            if intel {
                system
                    .register(&format!("/dev/cpu/{cpu}/msr"), MSR_SMI_COUNT)
                    .map(|count| count & u64::from(u32::MAX))
            } else {
                None
            }
        };
        let (times_before, smi_before) = (Times::read(system), smi());
        let begin = Instant::now();
        while begin.elapsed() < system.answers.watch {
            std::hint::spin_loop();
        }
        let (times_after, smi_after) = (Times::read(system), smi());
        let tracers = system
            .read("/sys/kernel/tracing/available_tracers")
            .or_else(|| system.read("/sys/kernel/debug/tracing/available_tracers"));
        let watched = times_after.zip(times_before);
        Self {
            since_boot_ppm: times_after.map(Times::stolen_ppm),
            watched_ms: u64::try_from(system.answers.watch.as_millis()).unwrap_or(u64::MAX),
            watched_ppm: watched.map(|(after, before)| after.since(before).stolen_ppm()),
            smi_since_boot: smi_after,
            smi_watched: smi_after
                .zip(smi_before)
                .map(|(after, before)| after.wrapping_sub(before)),
            hwlat_tracer: tracers.map(|names| names.split(' ').any(|name| name == "hwlat")),
        }
    }
}

/// Milliseconds since the host started for which the hypervisor gave the CPU to others, in steps of ten; of all CPUs together
/// where none is named. `None` where the kernel does not tell.
#[must_use]
pub fn stolen_ms(cpu: Option<usize>) -> Option<u64> {
    let stat = read("/proc/stat")?;
    let name = cpu.map_or_else(|| "cpu".to_owned(), |number| format!("cpu{number}"));
    stolen_ms_in(&stat, &name)
}

/// The time that the hypervisor gave to others, of each CPU, since some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StolenByCpu(BTreeMap<usize, u64>);

impl StolenByCpu {
    /// Reads the time since the host started. It is empty where the kernel does not tell.
    #[must_use]
    pub fn now() -> Self {
        Self::parse(&read("/proc/stat").unwrap_or_default())
    }

    fn parse(stat: &str) -> Self {
        let names = stat
            .lines()
            .filter_map(|line| line.split_whitespace().next());
        let cpus = names.filter_map(|name| name.strip_prefix("cpu")?.parse::<usize>().ok());
        let of_cpu = |cpu| Some((cpu, stolen_ms_in(stat, &format!("cpu{cpu}"))?));
        Self(cpus.filter_map(of_cpu).collect())
    }

    /// Returns the time since an earlier moment.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let each = self.0.iter();
        let since = each.map(|(cpu, ms)| {
            let earlier = before.0.get(cpu).copied().unwrap_or(*ms);
            (*cpu, ms.saturating_sub(earlier))
        });
        Self(since.collect())
    }

    /// Returns the time of the CPU that lost most of these, in ms; `None` if the kernel counts it for none of them.
    #[must_use]
    pub fn most_ms(&self, cpus: &BTreeSet<usize>) -> Option<u64> {
        cpus.iter().filter_map(|cpu| self.0.get(cpu)).copied().max()
    }
}

fn stolen_ms_in(stat: &str, name: &str) -> Option<u64> {
    Some(Times::parse(stat, name)?.stolen * 1_000 / rustix::param::clock_ticks_per_second())
}

/// Of one CPU, or of all together, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Times {
    all: u64,
    stolen: u64,
}

impl Times {
    fn read(system: &System) -> Option<Self> {
        Self::parse(&system.read("/proc/stat")?, "cpu")
    }

    /// The line of this name in proc_stat(5). What guests use is counted in the times before it already.
    fn parse(stat: &str, name: &str) -> Option<Self> {
        let mut lines = stat.lines().map(str::split_whitespace);
        let words = lines.find_map(|mut words| (words.next()? == name).then_some(words))?;
        let times: Vec<u64> = words.map_while(|time| time.parse().ok()).collect();
        Some(Self {
            stolen: *times.get(STEAL)?,
            all: times[..=STEAL].iter().sum(),
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            all: self.all.saturating_sub(before.all),
            stolen: self.stolen.saturating_sub(before.stolen),
        }
    }

    fn stolen_ppm(self) -> u64 {
        self.stolen
            .saturating_mul(1_000_000)
            .checked_div(self.all)
            .unwrap_or(0)
    }
}

/// Its place among the times of a CPU: user, nice, system, idle, iowait, irq, softirq, steal.
const STEAL: usize = 7;
/// Intel's Software Developer's Manual, volume 4.
const MSR_SMI_COUNT: u64 = 0x34;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_are_not_counted_twice() {
        let times = Times::parse("cpu  60 0 20 900 0 0 10 10 50 0\ncpu0 1 1\n", "cpu").unwrap();
        assert_eq!((times.all, times.stolen), (1000, 10));
        assert_eq!(times.stolen_ppm(), 10_000);
        let after = Times::parse("cpu  70 0 20 900 0 0 10 20 50 0", "cpu").unwrap();
        assert_eq!(after.since(times).stolen_ppm(), 500_000);
        assert_eq!(times.since(times).stolen_ppm(), 0);
        assert_eq!(Times::parse("cpu  1 2 3 4", "cpu"), None);
    }

    /// The server has CPU 0, the clients CPU 1: who watches CPU 1 alone sees nothing.
    #[test]
    fn of_the_used_cpus_the_one_that_lost_most_counts() {
        let stat = |first: u64, third: u64| {
            let line = |cpu: u64, stolen: u64| format!("cpu{cpu} 9 0 0 0 0 0 0 {stolen} 0 0\n");
            let lines = [line(0, first), line(1, 5), line(2, third)].concat();
            StolenByCpu::parse(&format!("cpu  27 0 0 0 0 0 0 9 0 0\n{lines}intr 1\n"))
        };
        let tick_ms = 1_000 / rustix::param::clock_ticks_per_second();
        let since = stat(12, 90).since(&stat(2, 4));
        let most_ms = |cpus: &[usize]| since.most_ms(&cpus.iter().copied().collect());
        assert_eq!(most_ms(&[1]), Some(0));
        assert_eq!(most_ms(&[0, 1]), Some(10 * tick_ms));
        assert_eq!((most_ms(&[7]), most_ms(&[])), (None, None));
    }

    #[test]
    fn each_cpu_has_its_own_line() {
        let stat =
            "cpu  3 0 0 0 0 0 0 9 0 0\ncpu1 1 0 0 0 0 0 0 2 0 0\ncpu11 1 0 0 0 0 0 0 7 0 0\n";
        let stolen = |name| Times::parse(stat, name).map(|times| times.stolen);
        assert_eq!(
            (stolen("cpu1"), stolen("cpu11"), stolen("cpu2")),
            (Some(2), Some(7), None)
        );
    }
}
