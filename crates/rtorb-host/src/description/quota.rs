//! CPU quotas: how much CPU time the control groups of this process may use in each period, and how often they were stopped.

use rtorb_os::CpuGroup;
use serde::{Deserialize, Serialize};

use crate::system::System;

/// The quota of the group around this process that has the smallest share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuQuota {
    /// The group; `/` is the root group of what this process sees.
    pub group: String,
    /// The file that sets it.
    pub file: String,
    /// Microseconds of CPU time that the group may use in each period.
    pub quota_us: u64,
    /// The period in microseconds.
    pub period_us: u64,
    /// Periods in which the group ran.
    pub periods: Option<u64>,
    /// Periods in which it had used up its quota, and was stopped.
    pub throttled_periods: Option<u64>,
    /// For how long it was stopped in all, in microseconds.
    pub throttled_us: Option<u64>,
}

/// True if the control group of this process, in the hierarchy that has the `cpu` controller, is visible.
pub(super) fn is_visible(system: &System) -> bool {
    let group = CpuGroup::find(&system.root);
    group.is_some_and(|group| system.exists(&group.folder))
}

impl CpuQuota {
    /// The smallest quota; `None` if there is none, or if control groups are not visible.
    pub(super) fn of(system: &System) -> Option<Self> {
        let group = CpuGroup::find(&system.root)?;
        let folders = std::iter::successors(Some(group.folder.as_str()), |folder| {
            let outer = folder.rsplit_once('/')?.0;
            (outer.len() >= group.mount.len()).then_some(outer)
        });
        let quotas = folders.filter_map(|folder| Self::of_folder(system, &group, folder));
        quotas.min_by(|one, other| {
            let [left, right] = [(one, other), (other, one)]
                .map(|(of, by)| u128::from(of.quota_us) * u128::from(by.period_us));
            left.cmp(&right)
        })
    }

    fn of_folder(system: &System, group: &CpuGroup, folder: &str) -> Option<Self> {
        let (file, quota_us, period_us) = match group.version {
            1 => {
                let file = format!("{folder}/cpu.cfs_quota_us");
                let period = system.number(&format!("{folder}/cpu.cfs_period_us"))?;
                let quota = system.number(&file)?;
                (
                    file,
                    u64::try_from(quota).ok()?,
                    u64::try_from(period).ok()?,
                )
            }
            _ => {
                let file = format!("{folder}/cpu.max");
                let text = system.read(&file)?;
                let (quota, period) = text.split_once(' ')?;
                // The quota is `max` where there is none.
                (file, quota.parse().ok()?, period.parse().ok()?)
            }
        };
        let statistics = system
            .read(&format!("{folder}/cpu.stat"))
            .unwrap_or_default();
        let count = |name: &str| {
            let mut lines = statistics.lines();
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
            value.parse::<u64>().ok()
        };
        let inside = folder
            .strip_prefix(&group.mount)
            .filter(|inside| !inside.is_empty());
        Some(Self {
            group: inside.unwrap_or("/").to_owned(),
            file,
            quota_us,
            period_us,
            periods: count("nr_periods"),
            throttled_periods: count("nr_throttled"),
            throttled_us: count("throttled_usec")
                .or_else(|| Some(count("throttled_time")? / 1_000)),
        })
    }
}
