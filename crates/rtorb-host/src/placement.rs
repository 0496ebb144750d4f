//! Where the measured processes run and with what priority: what is asked for, and what was really obtained.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rtorb_os::sched::SchedPolicy;
use serde::{Deserialize, Serialize};

use crate::description::{Host, best_cpu};
use crate::system::{FIFO_PRIORITY, cpu_list, field, read};

/// What is asked for. Client and server of a contestant get the same, so that a call is two context switches and no
/// other CPU's wake-up hides in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The one CPU of both processes.
    pub cpu: Option<usize>,
    /// SCHED_FIFO with this priority; `None` leaves the scheduling as it is.
    pub fifo: Option<u8>,
}

impl Placement {
    /// The best that this host allows: an isolated CPU or else the last of several, and SCHED_FIFO when it is granted.
    #[must_use]
    pub fn best(host: &Host) -> Self {
        let allowed = host.cpus_allowed.as_deref().unwrap_or_default();
        Self {
            cpu: best_cpu(allowed, &host.cpus_isolated),
            fifo: host.fifo_granted.then_some(FIFO_PRIORITY),
        }
    }

    /// Gives the calling thread this placement; threads that it starts later inherit it.
    ///
    /// # Errors
    /// What the system refused and how to allow it.
    pub fn apply(&self) -> Result<(), String> {
        if let Some(cpu) = self.cpu {
            rtorb_os::sched::apply_affinity(&[cpu]).map_err(|refused| refused.to_string())?;
        }
        if let Some(priority) = self.fifo {
            rtorb_os::sched::apply_policy(SchedPolicy::Fifo(priority))
                .map_err(|refused| refused.to_string())?;
        }
        Ok(())
    }
}

/// The scheduling that the threads of a measured process had while it was measured, read from /proc.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObtainedScheduling {
    /// Which process: `rtorb tcp server`.
    pub process: String,
    /// How many threads it had.
    pub threads: usize,
    /// The policy of all its threads, or `mixed`.
    pub policy: String,
    /// The real-time priority of its least urgent thread, 0 when that is not scheduled in real time.
    pub priority: u32,
    /// The CPUs that its threads may use, as the kernel lists them.
    pub cpus: String,
    /// Whether all threads were SCHED_FIFO and on one CPU.
    pub real_time: bool,
}

/// Whether every one was scheduled in real time; false when none was seen.
#[must_use]
pub fn all_real_time(scheduling: &[ObtainedScheduling]) -> bool {
    !scheduling.is_empty() && scheduling.iter().all(|threads| threads.real_time)
}

/// Reads from /proc what the threads of a running process have; `None` when it is gone.
#[must_use]
pub fn obtained(process: &str, id: u32) -> Option<ObtainedScheduling> {
    // A thread may end while it is looked at.
    let threads: Vec<_> = fs::read_dir(format!("/proc/{id}/task"))
        .ok()?
        .filter_map(|entry| {
            let task = entry.ok()?.path();
            thread_scheduling(&read(task.join("stat"))?, &read(task.join("status"))?)
        })
        .collect();
    let first = threads.first()?.clone();
    let one_cpu = threads
        .iter()
        .all(|thread| thread.cpus == first.cpus && cpu_list(&thread.cpus).len() == 1);
    let all_fifo = threads.iter().all(|thread| thread.policy == SCHED_FIFO);
    let one_policy = threads.iter().all(|thread| thread.policy == first.policy);
    Some(ObtainedScheduling {
        process: process.to_owned(),
        threads: threads.len(),
        policy: if one_policy {
            policy_name(first.policy)
        } else {
            "mixed"
        }
        .to_owned(),
        priority: threads
            .iter()
            .map(|thread| thread.priority)
            .min()
            .unwrap_or(0),
        cpus: first.cpus,
        real_time: one_cpu && all_fifo,
    })
}

/// Reads from /proc what the calling thread has; `None` if /proc cannot be read.
#[must_use]
pub fn obtained_here(process: &str) -> Option<ObtainedScheduling> {
    let own = Path::new("/proc/thread-self");
    let found = thread_scheduling(&read(own.join("stat"))?, &read(own.join("status"))?)?;
    Some(ObtainedScheduling {
        process: process.to_owned(),
        threads: 1,
        policy: policy_name(found.policy).to_owned(),
        priority: found.priority,
        real_time: found.policy == SCHED_FIFO && cpu_list(&found.cpus).len() == 1,
        cpus: found.cpus,
    })
}

/// The same for each priority that the threads have, least urgent first, with the names of the threads; empty when the
/// process is gone.
#[must_use]
pub fn obtained_by_priority(process: &str, id: u32) -> Vec<ObtainedScheduling> {
    let Ok(entries) = fs::read_dir(format!("/proc/{id}/task")) else {
        return Vec::new();
    };
    let mut kinds: BTreeMap<(u32, u32, String), (usize, BTreeSet<String>)> = BTreeMap::new();
    for task in entries.flatten().map(|entry| entry.path()) {
        // A thread that ended meanwhile has nothing any more.
        let thread = || {
            let stat = read(task.join("stat"))?;
            let status = read(task.join("status"))?;
            Some((thread_name(&stat)?, thread_scheduling(&stat, &status)?))
        };
        if let Some((name, found)) = thread() {
            let kind = kinds
                .entry((found.policy, found.priority, found.cpus))
                .or_default();
            kind.0 += 1;
            kind.1.insert(name);
        }
    }
    let described = kinds
        .into_iter()
        .map(|((policy, priority, cpus), (threads, names))| {
            let names: Vec<String> = names.into_iter().collect();
            ObtainedScheduling {
                process: format!("{process}: {}", names.join(", ")),
                threads,
                policy: policy_name(policy).to_owned(),
                priority,
                real_time: policy == SCHED_FIFO && cpu_list(&cpus).len() == 1,
                cpus,
            }
        });
    described.collect()
}

/// The name of a thread in its stat, without the number that tells it from others of its kind.
fn thread_name(stat: &str) -> Option<String> {
    let (_, after) = stat.split_once('(')?;
    let (name, _) = after.rsplit_once(')')?;
    let kind = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    Some(match kind.strip_suffix('-') {
        Some(kind) => kind.to_owned(),
        None => name.to_owned(),
    })
}

#[derive(Clone, Debug)]
struct ThreadScheduling {
    policy: u32,
    priority: u32,
    cpus: String,
}

/// Fields 40 and 41 of proc_pid_stat(5), counted after the command's name, which may itself hold spaces.
fn thread_scheduling(stat: &str, status: &str) -> Option<ThreadScheduling> {
    let after_name: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    Some(ThreadScheduling {
        priority: after_name.get(40 - 3)?.parse().ok()?,
        policy: after_name.get(41 - 3)?.parse().ok()?,
        cpus: field(status, "Cpus_allowed_list")?,
    })
}

fn policy_name(policy: u32) -> &'static str {
    match policy {
        0 => "SCHED_OTHER",
        SCHED_FIFO => "SCHED_FIFO",
        2 => "SCHED_RR",
        3 => "SCHED_BATCH",
        5 => "SCHED_IDLE",
        6 => "SCHED_DEADLINE",
        _ => "unknown",
    }
}

const SCHED_FIFO: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_spaces_in_its_name_is_read() {
        let mut stat = "17 (odd ) name) S".to_owned();
        for number in 4..=45 {
            stat.push_str(&format!(
                " {}",
                if number == 40 {
                    50
                } else {
                    i32::from(number == 41)
                }
            ));
        }
        let thread = thread_scheduling(&stat, "Cpus_allowed_list:\t1\n").unwrap();
        assert_eq!(
            (thread.policy, thread.priority, thread.cpus.as_str()),
            (SCHED_FIFO, 50, "1")
        );
    }

    #[test]
    fn threads_of_a_kind_have_one_name() {
        assert_eq!(
            thread_name("17 (rtorb-worker-3) S 1"),
            Some("rtorb-worker".to_owned())
        );
        assert_eq!(
            thread_name("17 (odd ) name) S 1"),
            Some("odd ) name".to_owned())
        );
        assert_eq!(thread_name("17 (x86) S 1"), Some("x86".to_owned()));
        assert_eq!(thread_name(""), None);
    }

    #[test]
    fn this_process_is_described_by_priority() {
        let found = obtained_by_priority("this", std::process::id());
        assert!(found.iter().map(|kind| kind.threads).sum::<usize>() >= 1);
        assert!(found.iter().all(|kind| kind.process.starts_with("this: ")));
        assert!(obtained_by_priority("nobody", u32::MAX).is_empty());
    }

    #[test]
    fn a_thread_is_described_by_what_it_has_and_not_by_what_was_asked_for() {
        let cpu = rtorb_os::sched::current_affinity()[0];
        let asked = |policy, affinity| rtorb_os::thread::ThreadConfig {
            policy,
            affinity,
            stack_bytes: None,
        };
        let found = |config| {
            let thread = rtorb_os::thread::spawn("described", &config, || obtained_here("it"));
            thread.ok()?.join().ok().flatten().flatten()
        };
        let plain = found(asked(Some(SchedPolicy::Idle), vec![cpu])).expect("a thread of its own");
        assert_eq!(
            (plain.policy.as_str(), plain.real_time),
            ("SCHED_IDLE", false)
        );
        assert_eq!((plain.cpus, plain.threads), (cpu.to_string(), 1));
        // Only where the host grants it.
        if let Some(urgent) = found(asked(Some(SchedPolicy::Fifo(12)), vec![cpu])) {
            assert_eq!((urgent.priority, urgent.real_time), (12, true));
        }
    }

    #[test]
    fn this_process_is_described() {
        let own = obtained("this", std::process::id()).unwrap();
        assert!(own.threads >= 1);
        assert!(!own.cpus.is_empty());
        assert_eq!(obtained("nobody", u32::MAX), None);
    }

    #[test]
    fn an_isolated_cpu_is_preferred_when_it_is_allowed() {
        let mut host = Host::describe();
        host.cpus_allowed = Some("0-3".to_owned());
        host.cpus_isolated = "2".to_owned();
        assert_eq!(Placement::best(&host).cpu, Some(2));
        host.cpus_isolated = "9".to_owned();
        assert_eq!(Placement::best(&host).cpu, Some(3));
    }
}
