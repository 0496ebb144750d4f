//! Priority levels from rates, deadlines and criticalities. Level 0 is the most urgent; equal tasks share a level.

use core::fmt;
use core::str::FromStr;

use crate::task::Task;

/// How levels are assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Shorter periods go first (Liu and Layland 1973): optimal among fixed priorities where deadlines are periods.
    RateMonotonic,
    /// Shorter deadlines go first (Leung and Whitehead 1982): optimal where deadlines are not after the periods.
    DeadlineMonotonic,
    /// More critical tasks go first; within one criticality the job with the least laxity, then the more important one (Stewart
    /// and Khosla 1991). An overload affects the less critical tasks only.
    MaximumUrgencyFirst,
    /// One level, dispatched by earliest deadline (Liu and Layland 1973).
    EarliestDeadlineFirst,
    /// One level, dispatched by least laxity (Mok 1983).
    MinimumLaxityFirst,
    /// Fixed priorities that meet all deadlines, if there are any (Audsley 1991); each task has its own level.
    Optimal,
}

impl Strategy {
    /// All strategies with their names.
    pub const ALL: [(&'static str, Self); 6] = [
        ("rms", Self::RateMonotonic),
        ("dms", Self::DeadlineMonotonic),
        ("muf", Self::MaximumUrgencyFirst),
        ("edf", Self::EarliestDeadlineFirst),
        ("mlf", Self::MinimumLaxityFirst),
        ("optimal", Self::Optimal),
    ];
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.iter().find(|(_, strategy)| strategy == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

impl FromStr for Strategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.iter().find(|(name, _)| *name == text);
        named.map(|(_, strategy)| *strategy).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name).join(", ");
            format!("unknown strategy {text:?}: choose one of {names}")
        })
    }
}

/// Returns the level of each task by its period.
#[must_use]
pub fn rate_monotonic(tasks: &[Task]) -> Vec<u32> {
    ranked(tasks.iter().map(|task| task.period_ns))
}

/// Returns the level of each task by its deadline.
#[must_use]
pub fn deadline_monotonic(tasks: &[Task]) -> Vec<u32> {
    ranked(tasks.iter().map(|task| task.deadline_ns))
}

/// Returns the level of each task by its criticality, the most critical first.
#[must_use]
pub fn by_criticality(tasks: &[Task]) -> Vec<u32> {
    ranked(
        tasks
            .iter()
            .map(|task| core::cmp::Reverse(task.criticality)),
    )
}

/// Returns the rank of each key among the distinct keys, the smallest first.
pub(crate) fn ranked<K: Ord>(keys: impl IntoIterator<Item = K>) -> Vec<u32> {
    let keys: Vec<K> = keys.into_iter().collect();
    let mut sorted: Vec<&K> = keys.iter().collect();
    sorted.sort();
    sorted.dedup();
    let rank = |key: &K| sorted.partition_point(|other| *other < key);
    keys.iter()
        .map(|key| u32::try_from(rank(key)).unwrap_or(u32::MAX))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Criticality;

    #[test]
    fn equals_share_a_level() {
        let tasks = [
            Task::periodic(50, 1).with_criticality(Criticality::Low),
            Task::periodic(25, 1).with_deadline(60),
            Task::periodic(50, 1).with_deadline(10),
        ];
        assert_eq!(rate_monotonic(&tasks), [1, 0, 1]);
        assert_eq!(deadline_monotonic(&tasks), [1, 2, 0]);
        assert_eq!(by_criticality(&tasks), [1, 0, 0]);
    }

    #[test]
    fn strategies_round_trip_as_text() {
        for (name, strategy) in Strategy::ALL {
            assert_eq!(name.parse(), Ok(strategy));
            assert_eq!(strategy.to_string(), name);
        }
        assert!("fifo".parse::<Strategy>().unwrap_err().contains("rms, dms"));
    }
}
