//! A whole answer: operations in, levels, responses and verdicts out.

use std::collections::BTreeMap;

use crate::audsley::audsley_of_groups;
use crate::chains::response_times_in_chains;
use crate::edf::{self, Demand};
use crate::graph::{CallGraph, GraphError, Kind, System};
use crate::levels::{Strategy, ranked};
use crate::limits::Limits;
use crate::response::Response;
use crate::task::Task;
use crate::utilisation::Utilisation;

/// The levels that a strategy gives to operations on one processor, and whether their deadlines hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// How the levels were made.
    pub strategy: Strategy,
    /// What became of each operation, in the order of the call graph.
    pub operations: Vec<Scheduled>,
    /// The levels, the most urgent first.
    pub levels: Vec<LevelInfo>,
    /// What is wrong or doubtful, the worst first.
    pub anomalies: Vec<Anomaly>,
    /// How much of the processor all of it uses.
    pub utilisation: Utilisation,
}

/// What became of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// Its level, 0 the most urgent; `None` if it never runs.
    pub level: Option<u32>,
    /// Its place among those of its level, 0 first: the more important, then callers before what they call.
    pub subpriority: u32,
    /// The shortest period with which it runs, in ns.
    pub period_ns: Option<u64>,
    /// The deadline that is nearest to its bound, in ns from the arrival of what began it.
    pub deadline_ns: Option<u64>,
    /// Its worst response, from the same moment; in a dynamic level, for any order of the jobs of that level.
    pub response: Option<Response>,
    /// What that means.
    pub verdict: Verdict,
}

/// Whether an operation meets its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Always.
    Meets,
    /// Always, if the dispatcher of its level preempts a running job for one that is more urgent: the response for any
    /// order is beyond the deadline, and the demand test holds.
    MeetsIfPreempted,
    /// The bound is beyond the deadline.
    Misses,
    /// Neither was proven.
    NotProven,
    /// It has no period, and nobody that has one calls it.
    NeverRuns,
}

/// One level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelInfo {
    /// How jobs of the level go before each other.
    pub dispatching: Dispatching,
    /// The different periods in it, the shortest first, in ns.
    pub periods_ns: Vec<u64>,
}

/// How jobs of one level go before each other (RtecScheduler::Dispatching_Type_t).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatching {
    /// By subpriority, then first come first served.
    Static,
    /// The earliest deadline first.
    Deadline,
    /// The least laxity first: deadline less what is left to execute.
    Laxity,
}

/// Something that is wrong or doubtful.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// How bad it is.
    pub severity: Severity,
    /// What it is, and what to do.
    pub description: String,
}

/// How bad an anomaly is (RtecScheduler::Anomaly_Severity).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// There is no schedule.
    Fatal,
    /// The schedule does not do what is asked.
    Error,
    /// Something is not known.
    Warning,
}

impl Schedule {
    /// Schedules the operations of a call graph.
    ///
    /// # Errors
    /// [`GraphError`] when no tasks follow from it.
    pub fn compute(
        graph: &CallGraph,
        strategy: Strategy,
        limits: Limits,
    ) -> Result<Self, GraphError> {
        let system = graph.system()?;
        let tasks: Vec<Task> = system.tasks.iter().map(|task| task.task).collect();
        let utilisation = Utilisation::of(&tasks);
        let mut anomalies = Vec::new();
        let levels = operation_levels(graph, &system, strategy, limits, &mut anomalies);
        let mut schedule = Self {
            strategy,
            operations: Vec::new(),
            levels: level_infos(&system, strategy, &levels),
            anomalies,
            utilisation,
        };
        schedule.operations = judged(graph, &system, &levels, &schedule.levels, limits);
        schedule.find_anomalies(graph);
        Ok(schedule)
    }

    /// Whether all deadlines hold; `None` if that was neither proven nor refuted.
    #[must_use]
    pub fn holds(&self) -> Option<bool> {
        let any = |verdict| {
            self.operations
                .iter()
                .any(|operation| operation.verdict == verdict)
        };
        match () {
            () if any(Verdict::Misses) => Some(false),
            () if any(Verdict::NotProven) => None,
            () => Some(true),
        }
    }

    /// The operation whose deadline is the first to be missed: of the most urgent level, and there the shortest deadline.
    #[must_use]
    pub fn first_miss(&self) -> Option<usize> {
        let all = self.operations.iter().enumerate();
        let missed = all.filter(|(_, operation)| operation.verdict == Verdict::Misses);
        let first = missed.min_by_key(|(_, operation)| (operation.level, operation.deadline_ns));
        first.map(|(index, _)| index)
    }

    fn find_anomalies(&mut self, graph: &CallGraph) {
        let mut add = |severity, description| {
            self.anomalies.push(Anomaly {
                severity,
                description,
            });
        };
        if self.utilisation.exceeds_one() {
            let millionths = self.utilisation.millionths();
            add(
                Severity::Error,
                format!(
                    "{}.{:04} % of the processor is asked for: lower rates or execution times, or move operations to \
                     another processor",
                    millionths / 10_000,
                    millionths % 10_000
                ),
            );
        }
        for (operation, scheduled) in graph.operations.iter().zip(&self.operations) {
            let name = &operation.name;
            match scheduled.verdict {
                Verdict::NeverRuns => add(
                    Severity::Error,
                    format!(
                        "{name} has no period, and nobody calls it that has one: give it a period or a caller"
                    ),
                ),
                Verdict::Misses => add(Severity::Error, format!("{name} {}", lateness(scheduled))),
                Verdict::NotProven => add(
                    Severity::Warning,
                    format!("{name} could not be proven to meet its deadline"),
                ),
                Verdict::MeetsIfPreempted => add(
                    Severity::Warning,
                    format!(
                        "{name} meets its deadline if a job of its level that is more urgent preempts those that run"
                    ),
                ),
                Verdict::Meets => {}
            }
            if operation.worst_ns == 0 && operation.kind != Kind::Remote {
                add(
                    Severity::Warning,
                    format!(
                        "{name} takes no time as it stands: give it a worst-case execution time"
                    ),
                );
            }
        }
        self.anomalies.sort_by_key(|anomaly| anomaly.severity);
    }
}

fn lateness(scheduled: &Scheduled) -> String {
    let deadline = scheduled.deadline_ns.unwrap_or_default();
    match scheduled.response {
        Some(Response::Bounded { ns }) => format!(
            "misses its deadline of {deadline} ns: at worst it is done after {ns} ns, {} ns late",
            ns.saturating_sub(deadline)
        ),
        Some(Response::Undecided { at_least_ns }) => {
            format!(
                "misses its deadline of {deadline} ns: at worst it takes {at_least_ns} ns or more"
            )
        }
        _ => format!(
            "misses its deadline of {deadline} ns: with what goes first, it is later each time"
        ),
    }
}

/// The level of each operation; `None` for those that never run.
fn operation_levels(
    graph: &CallGraph,
    system: &System,
    strategy: Strategy,
    limits: Limits,
    anomalies: &mut Vec<Anomaly>,
) -> Vec<Option<u32>> {
    // Operations with tasks of their own, and these tasks.
    let mut own: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, task) in system.tasks.iter().enumerate() {
        own.entry(task.operation).or_default().push(index);
    }
    let least = |key: fn(&Task) -> u64| {
        let of = |tasks: &Vec<usize>| {
            tasks
                .iter()
                .map(|&task| key(&system.tasks[task].task))
                .min()
        };
        ranked(own.values().map(of))
    };
    let ranks = match strategy {
        Strategy::RateMonotonic => least(|task| task.period_ns),
        Strategy::DeadlineMonotonic => least(|task| task.deadline_ns),
        Strategy::MaximumUrgencyFirst => ranked(
            own.keys()
                .map(|&index| core::cmp::Reverse(graph.operations[index].criticality)),
        ),
        Strategy::EarliestDeadlineFirst | Strategy::MinimumLaxityFirst => vec![0; own.len()],
        Strategy::Optimal => {
            let tasks: Vec<Task> = system.tasks.iter().map(|task| task.task).collect();
            let groups: Vec<Vec<usize>> = own.values().cloned().collect();
            audsley_of_groups(&tasks, &groups, limits).unwrap_or_else(|| {
                anomalies.push(Anomaly {
                    severity: Severity::Error,
                    description: "no order of fixed priorities meets all deadlines: the one by deadlines is shown"
                        .to_owned(),
                });
                least(|task| task.deadline_ns)
            })
        }
    };
    let mut levels = vec![None; graph.operations.len()];
    for (&operation, rank) in own.keys().zip(ranks) {
        levels[operation] = Some(rank);
    }
    // Who runs in the tasks of others only has the level of the most urgent of them.
    for (index, carriers) in system.carriers.iter().enumerate() {
        if levels[index].is_none() {
            let of = |&task: &usize| levels[system.tasks[task].operation];
            levels[index] = carriers.iter().filter_map(of).min();
        }
    }
    levels
}

fn level_infos(system: &System, strategy: Strategy, levels: &[Option<u32>]) -> Vec<LevelInfo> {
    let dispatching = match strategy {
        Strategy::RateMonotonic | Strategy::DeadlineMonotonic | Strategy::Optimal => {
            Dispatching::Static
        }
        Strategy::EarliestDeadlineFirst => Dispatching::Deadline,
        Strategy::MaximumUrgencyFirst | Strategy::MinimumLaxityFirst => Dispatching::Laxity,
    };
    let count = levels.iter().flatten().max().map_or(0, |last| last + 1);
    let info = |level: u32| {
        let mine = |task: &&crate::SystemTask| levels[task.operation] == Some(level);
        let mut periods_ns: Vec<u64> = system
            .tasks
            .iter()
            .filter(mine)
            .map(|task| task.task.period_ns)
            .collect();
        periods_ns.sort_unstable();
        periods_ns.dedup();
        LevelInfo {
            dispatching,
            periods_ns,
        }
    };
    (0..count).map(info).collect()
}

/// What the analysis says of each operation.
fn judged(
    graph: &CallGraph,
    system: &System,
    levels: &[Option<u32>],
    infos: &[LevelInfo],
    limits: Limits,
) -> Vec<Scheduled> {
    let tasks: Vec<Task> = system.tasks.iter().map(|task| task.task).collect();
    let after: Vec<Vec<usize>> = system.tasks.iter().map(|task| task.after.clone()).collect();
    let of_task = |task: &crate::SystemTask| levels[task.operation].unwrap_or(u32::MAX);
    let task_levels: Vec<u32> = system.tasks.iter().map(of_task).collect();
    let responses = response_times_in_chains(&tasks, &task_levels, &after, limits);
    let top = demand_of_top(&tasks, &task_levels, &after, infos, limits);
    let verdict = |index: usize, deadline_ns: u64| {
        let dynamic = infos
            .get(task_levels[index] as usize)
            .is_some_and(|info| info.dispatching != Dispatching::Static);
        match (responses[index].meets(deadline_ns), top) {
            (Some(true), _) => Verdict::Meets,
            // The demand test is about the task's own deadline.
            (_, Some(Demand::Meets))
                if task_levels[index] == 0 && deadline_ns >= tasks[index].deadline_ns =>
            {
                Verdict::MeetsIfPreempted
            }
            (Some(false), Some(Demand::Misses { task, .. })) if task == index => Verdict::Misses,
            (Some(false), _) if !dynamic || responses[index] == Response::Unbounded => {
                Verdict::Misses
            }
            _ => Verdict::NotProven,
        }
    };
    let subpriorities = subpriorities(graph, system, levels);
    let operation = |(index, operation): (usize, &crate::Operation)| {
        let activations = system.activations[index].iter();
        let period = |root: usize| graph.operations[root].period_ns;
        let carried = system.carriers[index].iter().filter_map(|&task| {
            let deadline = operation
                .deadline_ns
                .or_else(|| period(system.tasks[task].root))?;
            Some((verdict(task, deadline), task, deadline))
        });
        let slack = |task: usize, deadline: u64| match responses[task] {
            Response::Bounded { ns } => i128::from(deadline) - i128::from(ns),
            _ => i128::MIN,
        };
        let tightest = carried
            .min_by_key(|&(verdict, task, deadline)| (badness(verdict), slack(task, deadline)));
        Scheduled {
            level: levels[index],
            subpriority: subpriorities[index],
            period_ns: activations
                .filter_map(|activation| period(activation.root))
                .min(),
            deadline_ns: tightest.map(|(_, _, deadline)| deadline),
            response: tightest.map(|(_, task, _)| responses[task]),
            verdict: tightest.map_or(Verdict::NeverRuns, |(verdict, ..)| verdict),
        }
    };
    graph.operations.iter().enumerate().map(operation).collect()
}

/// The demand test of the most urgent level where it is dynamic: nothing else interferes there. Jobs that others start have
/// a jitter that the bounds for any order give, so the test is made without them only.
fn demand_of_top(
    tasks: &[Task],
    levels: &[u32],
    after: &[Vec<usize>],
    infos: &[LevelInfo],
    limits: Limits,
) -> Option<Demand> {
    let info = infos.first()?;
    let top: Vec<usize> = (0..tasks.len())
        .filter(|&index| levels[index] == 0)
        .collect();
    let started = top.iter().any(|&index| !after[index].is_empty());
    if info.dispatching == Dispatching::Static || started {
        return None;
    }
    let of_level: Vec<Task> = top.iter().map(|&index| tasks[index]).collect();
    Some(match edf::demand(&of_level, limits) {
        Demand::Misses { task, interval_ns } => Demand::Misses {
            task: top[task],
            interval_ns,
        },
        other => other,
    })
}

/// The lower the worse.
fn badness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Misses => 0,
        Verdict::NotProven => 1,
        Verdict::MeetsIfPreempted => 2,
        Verdict::Meets | Verdict::NeverRuns => 3,
    }
}

/// The place of each operation in its level.
fn subpriorities(graph: &CallGraph, system: &System, levels: &[Option<u32>]) -> Vec<u32> {
    let mut place = vec![0; graph.operations.len()];
    for (at, &index) in system.order.iter().enumerate() {
        place[index] = at;
    }
    let mut order: Vec<usize> = (0..place.len()).collect();
    order.sort_by_key(|&index| {
        let importance = core::cmp::Reverse(graph.operations[index].importance);
        (levels[index], importance, place[index])
    });
    let mut subpriorities = vec![0; place.len()];
    for level in order.chunk_by(|&a, &b| levels[a] == levels[b]) {
        for (at, &index) in (0_u32..).zip(level) {
            subpriorities[index] = at;
        }
    }
    subpriorities
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Call, Criticality, Operation, Way};

    fn operation(name: &str, period_ns: u64, worst_ns: u64) -> Operation {
        Operation {
            period_ns: Some(period_ns),
            worst_ns,
            typical_ns: worst_ns,
            ..Operation::named(name)
        }
    }

    fn compute(graph: &CallGraph, strategy: Strategy) -> Schedule {
        Schedule::compute(graph, strategy, Limits::default()).expect("a schedule")
    }

    #[test]
    fn rates_become_levels_and_callees_have_those_of_their_callers() {
        let mut graph = CallGraph {
            operations: vec![
                operation("slow", 100, 10),
                operation("fast", 10, 2),
                Operation {
                    worst_ns: 1,
                    ..Operation::named("event")
                },
                Operation {
                    worst_ns: 1,
                    ..Operation::named("call")
                },
                Operation::named("lost"),
            ],
            calls: vec![],
        };
        let call = |caller, callee, way| Call {
            caller,
            callee,
            count: 1,
            way,
        };
        graph.calls = vec![call(1, 2, Way::OneWay), call(0, 3, Way::TwoWay)];
        let schedule = compute(&graph, Strategy::RateMonotonic);
        let levels: Vec<_> = schedule
            .operations
            .iter()
            .map(|operation| operation.level)
            .collect();
        assert_eq!(levels, [Some(1), Some(0), Some(0), Some(1), None]);
        assert_eq!(schedule.levels[0].periods_ns, [10]);
        assert_eq!(schedule.operations[4].verdict, Verdict::NeverRuns);
        assert_eq!(schedule.anomalies[0].severity, Severity::Error);
        assert!(schedule.anomalies[0].description.starts_with("lost "));
        assert_eq!(schedule.first_miss(), None);
    }

    #[test]
    fn overload_is_told_with_the_first_deadline_that_is_missed() {
        let graph = CallGraph {
            operations: vec![
                operation("a", 10, 5),
                operation("b", 20, 8),
                operation("c", 40, 20),
            ],
            calls: vec![],
        };
        let schedule = compute(&graph, Strategy::RateMonotonic);
        assert_eq!(schedule.holds(), Some(false));
        assert_eq!(schedule.first_miss(), Some(2));
        assert!(schedule.anomalies[0].description.contains("140.0000 %"));
        assert!(schedule.anomalies[1].description.starts_with("c misses"));
        let deadlines = compute(&graph, Strategy::EarliestDeadlineFirst);
        assert_eq!(deadlines.holds(), Some(false));
    }

    #[test]
    fn maximum_urgency_first_protects_the_critical() {
        let critical = |name, period, worst, criticality| Operation {
            criticality,
            ..operation(name, period, worst)
        };
        let graph = CallGraph {
            operations: vec![
                critical("display", 10, 6, Criticality::Low),
                critical("control", 40, 20, Criticality::VeryHigh),
            ],
            calls: vec![],
        };
        let schedule = compute(&graph, Strategy::MaximumUrgencyFirst);
        assert_eq!(schedule.operations[1].level, Some(0));
        assert_eq!(schedule.operations[1].verdict, Verdict::Meets);
        assert_eq!(schedule.operations[0].verdict, Verdict::Misses);
        assert_eq!(schedule.levels[0].dispatching, Dispatching::Laxity);
        let by_rate = compute(&graph, Strategy::RateMonotonic);
        assert_eq!(by_rate.operations[1].verdict, Verdict::Misses);
    }

    #[test]
    fn deadlines_can_use_what_fixed_priorities_cannot() {
        let graph = CallGraph {
            operations: vec![operation("a", 10, 5), operation("b", 14, 7)],
            calls: vec![],
        };
        let fixed = compute(&graph, Strategy::Optimal);
        assert_eq!(fixed.holds(), Some(false));
        assert!(fixed.anomalies[0].description.starts_with("no order"));
        let dynamic = compute(&graph, Strategy::EarliestDeadlineFirst);
        assert_eq!(dynamic.holds(), Some(true));
        assert_eq!(dynamic.operations[1].verdict, Verdict::MeetsIfPreempted);
    }
}
