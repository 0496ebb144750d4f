//! How threads run, as the kernel says it, and priorities that need no permission.

use std::fs;
use std::path::Path;

use rtorb::rt::{NativePriority, Priority, PriorityMapping};

/// Every CORBA priority runs under time sharing: for tests of everything but scheduling.
#[derive(Clone, Copy, Debug)]
pub struct TimeSharing;

impl PriorityMapping for TimeSharing {
    fn to_native(&self, _: Priority) -> Option<NativePriority> {
        Some(0)
    }

    fn to_corba(&self, native: NativePriority) -> Option<Priority> {
        (native == 0).then_some(Priority::MIN)
    }
}

/// A thread as the kernel lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Task {
    /// Its name, at most 15 octets.
    pub name: String,
    /// `SCHED_OTHER`, `SCHED_FIFO`, `SCHED_RR`, or the kernel's number of another policy.
    pub policy: String,
    /// 0 for SCHED_OTHER.
    pub priority: u32,
}

impl Task {
    /// A thread of that name under SCHED_FIFO, or SCHED_OTHER for priority 0.
    #[must_use]
    pub fn new(name: &str, priority: u32) -> Self {
        let policy = if priority == 0 {
            "SCHED_OTHER"
        } else {
            "SCHED_FIFO"
        };
        Self {
            name: name.to_owned(),
            policy: policy.to_owned(),
            priority,
        }
    }
}

/// The threads of a process, by name; one that ends meanwhile is left out.
///
/// # Panics
///
/// There is no such process.
#[must_use]
pub fn tasks(process: u32) -> Vec<Task> {
    let folder = fs::read_dir(format!("/proc/{process}/task")).expect("the process runs");
    let mut tasks: Vec<_> = folder
        .filter_map(|entry| task(&entry.ok()?.path()))
        .collect();
    tasks.sort();
    tasks
}

/// The fields 40 and 41 of /proc/PID/task/TID/stat (proc_pid_stat(5)): rt_priority and policy.
fn task(folder: &Path) -> Option<Task> {
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    let (before, after) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let fields: Vec<_> = after.split_whitespace().collect();
    // Field 3 is the first behind the name.
    let (priority, policy) = (fields.get(37)?, fields.get(38)?);
    let policy = match *policy {
        "0" => "SCHED_OTHER",
        "1" => "SCHED_FIFO",
        "2" => "SCHED_RR",
        other => other,
    };
    Some(Task {
        name: name.to_owned(),
        policy: policy.to_owned(),
        priority: priority.parse().ok()?,
    })
}
