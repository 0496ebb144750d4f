//! Admission: a system is refused with the first deadline that it would miss and the changes that would help.

use core::fmt;

use crate::graph::CallGraph;
use crate::levels::Strategy;
use crate::limits::SearchLimits;
use crate::schedule::{Schedule, Verdict, lateness};
use crate::times::text_of_ns;

/// Why a system is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The operation whose deadline is missed first, or else is not proven first.
    pub operation: String,
    /// What is wrong with its response time.
    pub reason: String,
    /// The changes of which each alone lets every deadline hold. Empty if none was found.
    pub remedies: Vec<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.operation, self.reason)?;
        if !self.remedies.is_empty() {
            write!(f, ". What would help: {}", self.remedies.join("; or "))?;
        }
        Ok(())
    }
}

/// Admits a system if every deadline is proven to hold.
///
/// # Errors
/// [`Refusal`].
pub fn admit(graph: &CallGraph, schedule: &Schedule) -> Result<(), Refusal> {
    match Refusal::of(graph, schedule) {
        None => Ok(()),
        Some(refusal) => Err(Refusal {
            remedies: remedies(graph, schedule.strategy),
            ..refusal
        }),
    }
}

impl Refusal {
    /// The refusal of a schedule whose deadlines are not all proven, without remedies.
    pub(crate) fn of(graph: &CallGraph, schedule: &Schedule) -> Option<Self> {
        let first = schedule.first_unproven()?;
        let scheduled = &schedule.operations[first];
        let reason = match scheduled.verdict {
            Verdict::Misses => lateness(scheduled),
            _ => format!(
                "is not proven to meet its deadline of {}",
                text_of_ns(scheduled.deadline_ns.unwrap_or_default())
            ),
        };
        Some(Self {
            operation: graph.operations[first].name.clone(),
            reason,
            remedies: Vec::new(),
        })
    }
}

/// Searches for changes after which every deadline holds.
fn remedies(graph: &CallGraph, strategy: Strategy) -> Vec<String> {
    if graph.operations.len() > OPERATIONS_MAX {
        return Vec::new();
    }
    let mut found = Vec::new();
    let others = Strategy::ALL.into_iter();
    let mut others = others.filter(|(_, other)| *other != strategy);
    if let Some((name, _)) = others.find(|(_, other)| holds(graph, *other)) {
        found.push(format!("the strategy {name}"));
    }
    let shorter = |index: usize| {
        let percent = largest_percent(|percent| {
            let mut changed = graph.clone();
            scale(&mut changed.operations[index].worst_ns, percent);
            holds(&changed, strategy)
        })?;
        Some((percent, index))
    };
    let least_change = (0..graph.operations.len())
        .filter_map(shorter)
        .max_by_key(|&(percent, index)| (percent, core::cmp::Reverse(index)));
    if let Some((percent, index)) = least_change {
        let operation = &graph.operations[index];
        let mut worst_ns = operation.worst_ns;
        scale(&mut worst_ns, percent);
        found.push(format!(
            "{} executes for at most {} instead of {}",
            operation.name,
            text_of_ns(worst_ns),
            text_of_ns(operation.worst_ns)
        ));
    }
    let all = largest_percent(|percent| {
        let mut changed = graph.clone();
        for operation in &mut changed.operations {
            scale(&mut operation.worst_ns, percent);
        }
        holds(&changed, strategy)
    });
    if let Some(percent) = all {
        found.push(format!(
            "every operation executes for at most {percent} % of its worst"
        ));
    }
    found
}

/// The largest percentage below 100 that suffices; `None` if not even 1 does. What suffices at a percentage also does below it.
fn largest_percent(suffices: impl Fn(u64) -> bool) -> Option<u64> {
    let percents: Vec<u64> = (1..100).collect();
    let enough = percents.partition_point(|&percent| suffices(percent));
    percents.get(enough.checked_sub(1)?).copied()
}

fn scale(worst_ns: &mut u64, percent: u64) {
    let scaled = u128::from(*worst_ns) * u128::from(percent) / 100;
    *worst_ns = u64::try_from(scaled).expect("a percentage below 100 makes it smaller");
}

fn holds(graph: &CallGraph, strategy: Strategy) -> bool {
    Schedule::compute(graph, strategy, LIMITS).is_ok_and(|found| found.holds() == Some(true))
}

/// What helps if the old and the new system hold, and the change does not.
pub(crate) const IN_TWO_STEPS: &str =
    "change in two steps: first to the longer periods and shorter execution times";

/// A larger system is refused without remedies, so that a refusal takes no seconds.
const OPERATIONS_MAX: usize = 64;

/// Smaller than the default, because a search for remedies makes hundreds of analyses.
const LIMITS: SearchLimits = SearchLimits {
    steps_max: 20_000,
    rounds_max: 100,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Criticality, Operation};

    fn operation(name: &str, period_ms: u64, worst_ms: u64) -> Operation {
        Operation {
            period_ns: Some(period_ms * 1_000_000),
            worst_ns: worst_ms * 1_000_000,
            typical_ns: worst_ms * 1_000_000,
            ..Operation::named(name)
        }
    }

    fn graph(operations: Vec<Operation>) -> CallGraph {
        CallGraph {
            operations,
            calls: vec![],
        }
    }

    #[test]
    fn a_system_that_holds_is_admitted() {
        let graph = graph(vec![operation("fast", 10, 2), operation("slow", 100, 50)]);
        let schedule =
            Schedule::compute(&graph, Strategy::RateMonotonic, LIMITS).expect("a schedule");
        assert_eq!(admit(&graph, &schedule), Ok(()));
    }

    #[test]
    fn a_refusal_names_the_first_miss_and_each_remedy_suffices() {
        // 15 of 25 ms and 45 of 100 ms: 105 %.
        let mut display = operation("display", 25, 15);
        display.criticality = Criticality::Low;
        let graph = graph(vec![display, operation("control", 100, 45)]);
        let schedule =
            Schedule::compute(&graph, Strategy::RateMonotonic, LIMITS).expect("a schedule");
        let refusal = admit(&graph, &schedule).expect_err("105 %");
        assert_eq!(refusal.operation, "control");
        assert!(refusal.reason.contains("deadline of 100ms"), "{refusal}");
        // No strategy schedules 105 %. 40 ms of control are the rest of 60 %: 88 % of 45 ms.
        assert_eq!(
            refusal.remedies,
            [
                "display executes for at most 13.65ms instead of 15ms",
                "every operation executes for at most 95 % of its worst"
            ]
        );
    }

    #[test]
    fn another_strategy_is_named_if_it_suffices() {
        let mut late = operation("late", 100, 30);
        late.deadline_ns = Some(35_000_000);
        let graph = graph(vec![operation("early", 50, 20), late]);
        let schedule =
            Schedule::compute(&graph, Strategy::RateMonotonic, LIMITS).expect("a schedule");
        let refusal = admit(&graph, &schedule).expect_err("50 ms are more than 35 ms");
        assert_eq!(refusal.remedies[0], "the strategy dms");
    }
}
