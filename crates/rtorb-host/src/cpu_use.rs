//! What used the CPUs for some time: the hypervisor, interrupts, and each process.

use std::collections::BTreeMap;
use std::fs;

use crate::system::read;

/// The counters of all CPUs and processes at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    cpus: BTreeMap<usize, CpuTimes>,
    processes: BTreeMap<u32, Process>,
}

/// What used the CPUs between two moments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuUse {
    /// Of each CPU.
    pub cpus: BTreeMap<usize, CpuTimes>,
    /// The processes that ran, those that ran longest first.
    pub processes: Vec<ProcessUse>,
}

/// Times of a CPU, as the kernel counts them: in steps of its tick.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Interrupt handlers, in ms.
    pub interrupts_ms: u64,
    /// Soft interrupts, such as the processing of packets, in ms.
    pub soft_interrupts_ms: u64,
    /// What the hypervisor gave to other machines, in ms.
    pub stolen_ms: u64,
}

/// A process, and how long it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessUse {
    /// Its number.
    pub id: u32,
    /// Its name: the first 15 bytes.
    pub name: String,
    /// How long it ran, in ms.
    pub ran_ms: u64,
    /// The CPU on which its main thread ran last.
    pub cpu: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    name: String,
    parent: u32,
    ran_ms: u64,
    cpu: usize,
}

impl Snapshot {
    /// Reads all counters. What cannot be read is left out.
    #[must_use]
    pub fn now() -> Self {
        let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = folders.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let processes =
            ids.filter_map(|id| Some((id, process(&read(format!("/proc/{id}/stat"))?)?)));
        Self {
            cpus: cpu_times(&read("/proc/stat").unwrap_or_default()),
            processes: processes.collect(),
        }
    }

    /// Returns what used the CPUs since an earlier snapshot, without the process `own` and all that it started.
    #[must_use]
    pub fn since(&self, before: &Self, own: u32) -> CpuUse {
        let cpus = self.cpus.iter().map(|(cpu, times)| {
            let earlier = before.cpus.get(cpu).copied().unwrap_or_default();
            (*cpu, times.since(earlier))
        });
        let mut processes: Vec<ProcessUse> = self
            .processes
            .iter()
            .filter(|(id, _)| !self.descends(**id, own))
            .map(|(id, process)| {
                let earlier = before.processes.get(id).map_or(0, |one| one.ran_ms);
                ProcessUse {
                    id: *id,
                    name: process.name.clone(),
                    ran_ms: process.ran_ms.saturating_sub(earlier),
                    cpu: process.cpu,
                }
            })
            .filter(|process| process.ran_ms > 0)
            .collect();
        processes.sort_by_key(|process| (std::cmp::Reverse(process.ran_ms), process.id));
        CpuUse {
            cpus: cpus.collect(),
            processes,
        }
    }

    /// Returns true for the process `own` and all below it.
    fn descends(&self, id: u32, own: u32) -> bool {
        let parent = |id: &u32| self.processes.get(id).map(|process| process.parent);
        // A number may be used again between two readings, so that parents could be a circle.
        std::iter::successors(Some(id), parent)
            .take(GENERATIONS_MAX)
            .any(|id| id == own)
    }
}

impl CpuTimes {
    fn since(self, before: Self) -> Self {
        Self {
            interrupts_ms: self.interrupts_ms.saturating_sub(before.interrupts_ms),
            soft_interrupts_ms: self
                .soft_interrupts_ms
                .saturating_sub(before.soft_interrupts_ms),
            stolen_ms: self.stolen_ms.saturating_sub(before.stolen_ms),
        }
    }
}

/// Parses the lines of single CPUs of proc_stat(5).
fn cpu_times(stat: &str) -> BTreeMap<usize, CpuTimes> {
    let line = |line: &str| {
        let (name, times) = line.split_once(' ')?;
        let cpu = name.strip_prefix("cpu")?.parse().ok()?;
        let times: Vec<u64> = times
            .split_whitespace()
            .map_while(|time| time.parse().ok())
            .collect();
        let ms = |place: usize| times.get(place).copied().map_or(0, ms_of_ticks);
        let times = CpuTimes {
            interrupts_ms: ms(5),
            soft_interrupts_ms: ms(6),
            stolen_ms: ms(7),
        };
        Some((cpu, times))
    };
    stat.lines().filter_map(line).collect()
}

/// Parses proc_pid_stat(5). The name may contain anything, also blanks and parentheses.
fn process(stat: &str) -> Option<Process> {
    let (head, rest) = stat.rsplit_once(") ")?;
    let (_, name) = head.split_once('(')?;
    // The first of these is field 3, the state.
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Process {
        name: name.to_owned(),
        parent: u32::try_from(number(4)?).ok()?,
        ran_ms: ms_of_ticks(number(14)? + number(15)?),
        cpu: usize::try_from(number(39)?).ok()?,
    })
}

fn ms_of_ticks(ticks: u64) -> u64 {
    ticks.saturating_mul(1_000) / rustix::param::clock_ticks_per_second()
}

/// More than any tree of processes has.
const GENERATIONS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(id: u32, name: &str, parent: u32, ticks: u64) -> (u32, Process) {
        let zeros = "0 ".repeat(23);
        let text = format!("{id} ({name}) R {parent} 0 0 0 0 0 0 0 0 0 {ticks} 0 {zeros}3 0 0");
        (id, process(&text).unwrap())
    }

    #[test]
    fn a_process_may_have_any_name() {
        let (_, process) = stat(7, "a) b (c", 1, 250);
        assert_eq!(process.name, "a) b (c");
        assert_eq!((process.parent, process.ran_ms, process.cpu), (1, 2_500, 3));
        assert_eq!(super::process("7 (x"), None);
    }

    #[test]
    fn only_others_are_counted_and_the_longest_comes_first() {
        let before = Snapshot {
            cpus: cpu_times("cpu  9 9 9 9 9 9 9 9\ncpu0 1 0 0 0 0 100 200 300\n"),
            processes: [stat(5, "compiler", 1, 100), stat(6, "old", 1, 50)].into(),
        };
        let after = Snapshot {
            cpus: cpu_times("cpu0 1 0 0 0 0 101 202 303\n"),
            processes: [
                stat(5, "compiler", 1, 150),
                stat(6, "old", 1, 50),
                stat(20, "own", 1, 900),
                stat(21, "child", 20, 900),
                stat(22, "grandchild", 21, 900),
                stat(30, "new", 5, 400),
            ]
            .into(),
        };
        let found = after.since(&before, 20);
        let names = found
            .processes
            .iter()
            .map(|one| (one.name.as_str(), one.ran_ms));
        assert_eq!(
            names.collect::<Vec<_>>(),
            [("new", 4_000), ("compiler", 500)]
        );
        let times = CpuTimes {
            interrupts_ms: 10,
            soft_interrupts_ms: 20,
            stolen_ms: 30,
        };
        assert_eq!(found.cpus, [(0, times)].into());
    }

    #[test]
    fn this_host_can_be_read() {
        let now = Snapshot::now();
        assert!(!now.cpus.is_empty());
        assert!(now.processes.contains_key(&std::process::id()));
        let later = Snapshot::now().since(&now, std::process::id());
        assert!(
            later
                .processes
                .iter()
                .all(|one| one.id != std::process::id())
        );
    }
}
