//! Whether a load that another program makes has begun: what /proc says of the processes in its group.

use std::fs;
use std::path::PathBuf;

/// What shows that every part of a load has done something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// So many threads have had processor time.
    TasksRan(usize),
    /// So many octets were given to write(2), proc_pid_io(5).
    OctetsWritten(u64),
}

impl Sign {
    /// Whether the load with this process group gives it.
    pub(super) fn is_seen(self, group: u32) -> bool {
        match self {
            Self::TasksRan(count) => tasks_that_ran(group) >= count,
            Self::OctetsWritten(count) => bytes_written(group) >= count,
        }
    }
}

/// How many threads of all processes in the group have had processor time.
fn tasks_that_ran(group: u32) -> usize {
    let tasks = members(group)
        .into_iter()
        .filter_map(|process| fs::read_dir(process.join("task")).ok())
        .flatten()
        .flatten();
    let ran = tasks.filter(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat_field(&stat, UTIME) + stat_field(&stat, STIME) > 0
    });
    ran.count()
}

fn bytes_written(group: u32) -> u64 {
    let written = members(group).into_iter().map(|process| {
        let io = fs::read_to_string(process.join("io")).unwrap_or_default();
        let octets = io.lines().find_map(|line| line.strip_prefix("wchar: "));
        octets
            .and_then(|octets| octets.parse::<u64>().ok())
            .unwrap_or(0)
    });
    written.sum()
}

fn members(group: u32) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let is_member = |process: &PathBuf| {
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        stat_field(&stat, PGRP) == u64::from(group)
    };
    let processes = entries.flatten().map(|entry| entry.path());
    processes.filter(is_member).collect()
}

/// A field of proc_pid_stat(5), counted from 1; 0 when it is not there.
fn stat_field(stat: &str, number: usize) -> u64 {
    // The second one, the name, may itself hold spaces.
    let after_name = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let field = after_name.split_whitespace().nth(number - 3);
    field.and_then(|field| field.parse().ok()).unwrap_or(0)
}

const PGRP: usize = 5;
const UTIME: usize = 14;
const STIME: usize = 15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_as_the_manual_does() {
        let stat = "17 (odd ) name) S 2 3 4 5 6 7 8 9 10 11 120 130 16";
        assert_eq!(
            (
                stat_field(stat, PGRP),
                stat_field(stat, UTIME),
                stat_field(stat, STIME)
            ),
            (3, 120, 130)
        );
        assert_eq!(stat_field("", PGRP), 0);
    }

    #[test]
    fn a_group_of_nobody_has_done_nothing() {
        assert!(!Sign::TasksRan(1).is_seen(u32::MAX));
        assert!(!Sign::OctetsWritten(1).is_seen(u32::MAX));
    }
}
