//! Real-time group scheduling: whether the control group of this process may use real-time policies at all.
//!
//! [`CpuGroup`] says which group has real-time time.

use rtorb_os::CpuGroup;
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
    /// The file that moves a process to the root group, if it can be reached from here.
    #[serde(default)]
    pub root_procs: Option<String>,
}

impl RealTimeGroups {
    pub(super) fn of(system: &System, configuration: Option<&str>) -> Self {
        let found = CpuGroup::find(&system.root);
        let runtime_us = found
            .as_ref()
            .and_then(|group| group.rt_runtime_us(&system.root));
        let built = configuration.map(active_by_default);
        // The file is there only in such a kernel.
        let first = found.as_ref().filter(|group| group.version == 1);
        let by_file = first.map(|_| runtime_us.is_some());
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
        let Some(group) = found.filter(|_| active == Some(true)) else {
            return Self {
                active,
                ..Self::default()
            };
        };
        Self {
            active,
            runtime_us: match group.version {
                1 => runtime_us,
                _ => second(system, &group),
            },
            root_procs: group.root_procs(&system.root),
            group: Some(group.name),
        }
    }
}

/// Of a group of the second hierarchy, where only the root group has real-time time.
fn second(system: &System, group: &CpuGroup) -> Option<i64> {
    if group.name == "/" {
        return system.number("/proc/sys/kernel/sched_rt_runtime_us");
    }
    let controllers = format!("{}/cgroup.controllers", group.folder);
    system.read(&controllers).map(|_| 0)
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
