//! Real-time group scheduling: whether the control group of this process may use real-time policies at all.
//!
//! A kernel with CONFIG_RT_GROUP_SCHED gives real-time time to groups. In the first hierarchy a group has what
//! `cpu.rt_runtime_us` says, and a new one has none; the second hierarchy has no way to give it, so that only the root group
//! has any (Documentation/scheduler/sched-rt-group.rst and admin-guide/cgroup-v2.rst, "CPU").

use serde::{Deserialize, Serialize};

use super::kernel::is_set;
use crate::system::System;

/// What real-time time the group of this process has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealTimeGroups {
    /// Whether the kernel gives groups their own.
    pub active: Option<bool>,
    /// The group of this process in the hierarchy that has the `cpu` controller; `/` is the root group.
    pub group: Option<String>,
    /// Microseconds of each period that the group's real-time tasks may use; 0 is none: SCHED_FIFO is refused.
    pub runtime_us: Option<i64>,
}

impl RealTimeGroups {
    pub(super) fn of(system: &System, configuration: Option<&str>) -> Self {
        let first = First::find(system);
        let built = configuration.map(active_by_default);
        // The file is there only in such a kernel.
        let by_file = first.as_ref().map(|first| first.runtime_us.is_some());
        let chosen = system
            .boot_option("rt_group_sched")
            .and_then(|option| option.0);
        let active = match (built, chosen.as_deref()) {
            (_, Some("0")) => Some(false),
            (Some(Built::No), _) => Some(false),
            (Some(Built::Yes) | Some(Built::OnDemand), Some("1")) => Some(true),
            (Some(Built::Yes), _) => Some(true),
            (Some(Built::OnDemand), _) => Some(false),
            (None, _) => by_file,
        };
        let (group, runtime_us) = match (active, first) {
            (Some(true), Some(first)) => (Some(first.group), first.runtime_us),
            (Some(true), None) => second(system),
            _ => (None, None),
        };
        Self {
            active,
            group,
            runtime_us,
        }
    }
}

enum Built {
    No,
    OnDemand,
    Yes,
}

fn active_by_default(configuration: &str) -> Built {
    if !is_set(configuration, "RT_GROUP_SCHED") {
        return Built::No;
    }
    if is_set(configuration, "RT_GROUP_SCHED_DEFAULT_DISABLED") {
        Built::OnDemand
    } else {
        Built::Yes
    }
}

/// The group of this process in the first hierarchy.
struct First {
    group: String,
    runtime_us: Option<i64>,
}

impl First {
    fn find(system: &System) -> Option<Self> {
        let groups = system.read("/proc/self/cgroup")?;
        let group = groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let controllers = parts.next()?;
            controllers
                .split(',')
                .any(|name| name == "cpu")
                .then_some(())?;
            parts.next()
        })?;
        let mounts = system.read("/proc/self/mountinfo")?;
        let (root, mount) = mounts.lines().find_map(cpu_mount)?;
        // In a container the mounted part of the hierarchy begins below its root.
        let inside = group.strip_prefix(root.trim_end_matches('/')).unwrap_or("");
        let path = format!("{mount}{}", inside.trim_end_matches('/'));
        Some(Self {
            group: group.to_owned(),
            runtime_us: system.number(&format!("{path}/cpu.rt_runtime_us")),
        })
    }
}

/// Which part of the hierarchy with the `cpu` controller is mounted, and where (proc_pid_mountinfo(5)).
fn cpu_mount(line: &str) -> Option<(&str, &str)> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut words = file_system.split(' ');
    let is_cpu =
        words.next() == Some("cgroup") && words.nth(1)?.split(',').any(|option| option == "cpu");
    let mut fields = mount.split(' ').skip(3);
    is_cpu.then_some((fields.next()?, fields.next()?))
}

/// In the second hierarchy a task belongs, for the CPU, to the nearest group that has the controller.
fn second(system: &System) -> (Option<String>, Option<i64>) {
    let groups = system.read("/proc/self/cgroup").unwrap_or_default();
    let Some(group) = groups.lines().find_map(|line| line.strip_prefix("0::")) else {
        return (None, None);
    };
    let mut inner = group.trim_end_matches('/');
    while !inner.is_empty() {
        let controllers = format!("/sys/fs/cgroup{inner}/cgroup.controllers");
        match system.read(&controllers) {
            None => return (Some(group.to_owned()), None),
            Some(names) if names.split(' ').any(|name| name == "cpu") => {
                return (Some(inner.to_owned()), Some(0));
            }
            Some(_) => inner = inner.rsplit_once('/').map_or("", |(outer, _)| outer),
        }
    }
    let of_all = system.number("/proc/sys/kernel/sched_rt_runtime_us");
    (Some("/".to_owned()), of_all)
}
