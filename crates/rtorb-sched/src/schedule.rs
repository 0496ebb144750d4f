//! The complete schedule of a call graph: levels, response times and verdicts.

use std::collections::{BTreeMap, BTreeSet};

use crate::audsley::audsley_of_groups;
use crate::chains::response_times_in_chains;
use crate::edf::{self, DemandResult};
use crate::graph::{CallGraph, GraphError, GraphTask, OperationKind, TaskSet};
use crate::levels::{Strategy, ranked};
use crate::limits::SearchLimits;
use crate::response::Response;
use crate::task::Task;
use crate::times::text_of_ns;
use crate::utilisation::Utilisation;

/// The levels that a strategy assigns to operations on one processor, and whether their deadlines hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The strategy that assigned the levels.
    pub strategy: Strategy,
    /// The result for each operation, in the order of the call graph.
    pub operations: Vec<OperationSchedule>,
    /// The levels, the most urgent first.
    pub levels: Vec<LevelInfo>,
    /// The anomalies, the most severe first.
    pub anomalies: Vec<Anomaly>,
    /// The utilisation of the processor.
    pub utilisation: Utilisation,
}

/// The level, response time and verdict of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationSchedule {
    /// The level, 0 the most urgent; `None` if the operation never runs.
    pub level: Option<u32>,
    /// The order within the level, 0 first: more important operations first, then callers before callees.
    pub subpriority: u32,
    /// The shortest period of its roots, in ns.
    pub period_ns: Option<u64>,
    /// The deadline with the least slack, in ns from the arrival of the root.
    pub deadline_ns: Option<u64>,
    /// The worst-case response time from the same arrival; in a dynamic level, for any order of that level's jobs.
    pub response: Option<Response>,
    /// The verdict.
    pub verdict: Verdict,
}

/// Whether an operation meets its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It always meets its deadline.
    Meets,
    /// It meets its deadline in a lane that has the order of its level and preempts over [`LevelInfo::preemption_levels`]. The
    /// response time for any order exceeds the deadline.
    MeetsIfPreempted,
    /// The bound exceeds the deadline.
    Misses,
    /// The analysis ended undecided.
    NotProven,
    /// It has no period, and no operation with a period calls it.
    NeverRuns,
}

/// A level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelInfo {
    /// The dispatching order within the level.
    pub dispatching: Dispatching,
    /// The distinct periods of the level, the shortest first, in ns.
    pub periods_ns: Vec<u64>,
    /// The number of different relative deadlines of its tasks, or laxities if it dispatches by them: a lane with that many native
    /// priorities lets no job wait for a less urgent one. 1 for a static level.
    pub preemption_levels: u32,
}

/// The dispatching order within a level (RtecScheduler::Dispatching_Type_t).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatching {
    /// By subpriority, then first come first served.
    Static,
    /// The earliest deadline first.
    Deadline,
    /// The least laxity first: the deadline less the longest execution of the operation, fixed when the job arrives.
    Laxity,
}

/// An anomaly of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// The severity.
    pub severity: Severity,
    /// What is wrong, and what to do.
    pub description: String,
}

/// The severity of an anomaly (RtecScheduler::Anomaly_Severity).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No schedule exists.
    Fatal,
    /// The schedule misses a requirement.
    Error,
    /// A property is unknown.
    Warning,
}

impl Schedule {
    /// Schedules the operations of a call graph.
    ///
    /// # Errors
    /// [`GraphError`] if the graph is invalid.
    pub fn compute(
        graph: &CallGraph,
        strategy: Strategy,
        limits: SearchLimits,
    ) -> Result<Self, GraphError> {
        let task_set = graph.task_set()?;
        let tasks: Vec<Task> = task_set.tasks.iter().map(|task| task.task).collect();
        let utilisation = Utilisation::of(&tasks);
        let mut anomalies = Vec::new();
        let levels = operation_levels(graph, &task_set, strategy, limits, &mut anomalies);
        let mut schedule = Self {
            strategy,
            operations: Vec::new(),
            levels: level_infos(graph, &task_set, strategy, &levels),
            anomalies,
            utilisation,
        };
        schedule.judge(graph, &task_set, &levels, limits);
        Ok(schedule)
    }

    /// Analyses other calls or times of the same operations in the same levels.
    ///
    /// # Errors
    /// [`GraphError`] if the graph is invalid.
    pub fn reanalysed(&self, graph: &CallGraph, limits: SearchLimits) -> Result<Self, GraphError> {
        let task_set = graph.task_set()?;
        let tasks: Vec<Task> = task_set.tasks.iter().map(|task| task.task).collect();
        let levels: Vec<Option<u32>> = self.operations.iter().map(|it| it.level).collect();
        let mut schedule = Self {
            operations: Vec::new(),
            anomalies: Vec::new(),
            utilisation: Utilisation::of(&tasks),
            ..self.clone()
        };
        schedule.judge(graph, &task_set, &levels, limits);
        Ok(schedule)
    }

    /// Analyses the operations of a graph in these levels.
    pub(crate) fn judge(
        &mut self,
        graph: &CallGraph,
        task_set: &TaskSet,
        levels: &[Option<u32>],
        limits: SearchLimits,
    ) {
        let late;
        (self.operations, late) = judged(graph, task_set, levels, &self.levels, limits);
        if let Some((waiting, caller)) = late {
            let name = |index: usize| &graph.operations[index].name;
            self.anomalies.push(Anomaly {
                severity: Severity::Warning,
                description: format!(
                    "{0} waits for {1}, which is not proven to end within its period, so that nothing bounds the wait, and nothing is proven: make \
                     {1} end within its period, or {0} a disjunction",
                    name(waiting),
                    name(caller)
                ),
            });
        }
        self.find_anomalies(graph);
    }

    /// Returns whether all deadlines hold, where the lane of the most urgent level preempts if that is
    /// [needed](Self::needs_preemption); `None` if neither was proven.
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

    /// Returns true if a deadline holds only in a lane that preempts a running job for a more urgent one of its level.
    #[must_use]
    pub fn needs_preemption(&self) -> bool {
        let mut operations = self.operations.iter();
        operations.any(|operation| operation.verdict == Verdict::MeetsIfPreempted)
    }

    /// Returns the first operation that misses its deadline: in the most urgent level the one with the shortest deadline.
    #[must_use]
    pub fn first_miss(&self) -> Option<usize> {
        let first = self.first_unproven()?;
        (self.operations[first].verdict == Verdict::Misses).then_some(first)
    }

    /// Returns the first operation that misses its deadline, or else the first one that is not proven to meet it.
    #[must_use]
    pub fn first_unproven(&self) -> Option<usize> {
        let first = |verdict| {
            let all = self.operations.iter().enumerate();
            let such = all.filter(|(_, operation)| operation.verdict == verdict);
            such.min_by_key(|(_, operation)| (operation.level, operation.deadline_ns))
        };
        let found = first(Verdict::Misses).or_else(|| first(Verdict::NotProven));
        found.map(|(index, _)| index)
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
                    "the utilisation is {}.{:04} % of the processor: lower rates or execution times, or move operations to \
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
                        "{name} never runs, because neither it nor any of its callers has a period: give it a period or a caller"
                    ),
                ),
                Verdict::Misses => add(Severity::Error, format!("{name} {}", lateness(scheduled))),
                Verdict::NotProven => add(
                    Severity::Warning,
                    format!("{name} is not proven to meet its deadline"),
                ),
                Verdict::MeetsIfPreempted => add(
                    Severity::Warning,
                    format!(
                        "{name} meets its deadline only in a lane that preempts a running job for a more urgent one, which the lane of a \
                         channel does not"
                    ),
                ),
                Verdict::Meets => {}
            }
            if operation.worst_ns == 0 && operation.kind != OperationKind::Remote {
                add(
                    Severity::Warning,
                    format!("{name} has no worst-case execution time: give it one"),
                );
            }
        }
        self.anomalies.sort_by_key(|anomaly| anomaly.severity);
    }
}

/// Says by how much a response exceeds its deadline.
pub(crate) fn lateness(scheduled: &OperationSchedule) -> String {
    let deadline_ns = scheduled.deadline_ns.unwrap_or_default();
    let response = match scheduled.response {
        Some(Response::Bounded { ns }) => format!(
            "worst-case response time is {}, {} too long",
            text_of_ns(ns),
            text_of_ns(ns.saturating_sub(deadline_ns))
        ),
        Some(Response::Undecided { at_least_ns }) => format!(
            "worst-case response time is at least {}",
            text_of_ns(at_least_ns)
        ),
        _ => "response times grow without bound".to_owned(),
    };
    format!(
        "misses its deadline of {}: its {response}",
        text_of_ns(deadline_ns)
    )
}

/// Returns the level of each operation; `None` if it never runs.
fn operation_levels(
    graph: &CallGraph,
    task_set: &TaskSet,
    strategy: Strategy,
    limits: SearchLimits,
    anomalies: &mut Vec<Anomaly>,
) -> Vec<Option<u32>> {
    // Operations with tasks of their own, and these tasks.
    let mut own: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, task) in task_set.tasks.iter().enumerate() {
        own.entry(task.operation).or_default().push(index);
    }
    let least = |key: fn(&Task) -> u64| {
        let of = |tasks: &Vec<usize>| {
            tasks
                .iter()
                .map(|&task| key(&task_set.tasks[task].task))
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
            let tasks: Vec<Task> = task_set.tasks.iter().map(|task| task.task).collect();
            let groups: Vec<Vec<usize>> = own.values().cloned().collect();
            audsley_of_groups(&tasks, &groups, limits).unwrap_or_else(|| {
                anomalies.push(Anomaly {
                    severity: Severity::Error,
                    description: "no order of fixed priorities meets all deadlines: the schedule has the deadline-monotonic order"
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
    // An operation that runs only in tasks of others has the level of the most urgent of them.
    for (index, carriers) in task_set.carriers.iter().enumerate() {
        if levels[index].is_none() {
            let of = |&task: &usize| levels[task_set.tasks[task].operation];
            levels[index] = carriers.iter().filter_map(of).min();
        }
    }
    levels
}

fn level_infos(
    graph: &CallGraph,
    task_set: &TaskSet,
    strategy: Strategy,
    levels: &[Option<u32>],
) -> Vec<LevelInfo> {
    let dispatching = match strategy {
        Strategy::RateMonotonic | Strategy::DeadlineMonotonic | Strategy::Optimal => {
            Dispatching::Static
        }
        Strategy::EarliestDeadlineFirst => Dispatching::Deadline,
        Strategy::MaximumUrgencyFirst | Strategy::MinimumLaxityFirst => Dispatching::Laxity,
    };
    let count = levels.iter().flatten().max().map_or(0, |last| last + 1);
    let info = |level: u32| {
        let mine = |task: &&GraphTask| levels[task.operation] == Some(level);
        let mut periods_ns: Vec<u64> = task_set
            .tasks
            .iter()
            .filter(mine)
            .map(|task| task.task.period_ns)
            .collect();
        periods_ns.sort_unstable();
        periods_ns.dedup();
        let tasks = task_set.tasks.iter().filter(mine);
        LevelInfo {
            dispatching,
            periods_ns,
            preemption_levels: preemption_levels(
                tasks.map(|task| urgency(graph, task, dispatching)),
            ),
        }
    };
    (0..count).map(info).collect()
}

/// Returns the number of different relative urgencies, at least 1.
fn preemption_levels(urgencies: impl Iterator<Item = Option<u64>>) -> u32 {
    let different: BTreeSet<u64> = urgencies.flatten().collect();
    u32::try_from(different.len()).unwrap_or(u32::MAX).max(1)
}

/// Returns the time from the arrival of a job by which a lane orders it, in ns: the deadline, or the laxity; `None` in order of arrival.
fn urgency(graph: &CallGraph, task: &GraphTask, dispatching: Dispatching) -> Option<u64> {
    let worst_ns = graph.operations[task.operation].worst_ns;
    match dispatching {
        Dispatching::Static => None,
        Dispatching::Deadline => Some(task.task.deadline_ns),
        Dispatching::Laxity => Some(task.task.deadline_ns.saturating_sub(worst_ns)),
    }
}

/// Returns the analysis result of each operation.
fn judged(
    graph: &CallGraph,
    task_set: &TaskSet,
    levels: &[Option<u32>],
    infos: &[LevelInfo],
    limits: SearchLimits,
) -> (Vec<OperationSchedule>, Option<(usize, usize)>) {
    let tasks: Vec<Task> = task_set.tasks.iter().map(|task| task.task).collect();
    let after: Vec<Vec<usize>> = task_set
        .tasks
        .iter()
        .map(|task| task.after.clone())
        .collect();
    let of_task = |task: &GraphTask| levels[task.operation].unwrap_or(u32::MAX);
    let task_levels: Vec<u32> = task_set.tasks.iter().map(of_task).collect();
    let mut responses = response_times_in_chains(&tasks, &task_levels, &after, limits);
    let late = late_caller(graph, task_set, &responses);
    if late.is_some() {
        responses
            .iter_mut()
            .for_each(|response| *response = response.at_least());
    }
    let top = demand_of_top(graph, task_set, &task_levels, infos, limits);
    let verdict = |index: usize, deadline_ns: u64| {
        let dynamic = infos
            .get(task_levels[index] as usize)
            .is_some_and(|info| info.dispatching != Dispatching::Static);
        match (responses[index].meets(deadline_ns), top) {
            (Some(true), _) => Verdict::Meets,
            // The demand test covers the task's own deadline only.
            (_, Some(DemandResult::Meets))
                if task_levels[index] == 0 && deadline_ns >= tasks[index].deadline_ns =>
            {
                Verdict::MeetsIfPreempted
            }
            (Some(false), Some(DemandResult::Misses { task, .. })) if task == index => {
                Verdict::Misses
            }
            (Some(false), _) if !dynamic || responses[index] == Response::Unbounded => {
                Verdict::Misses
            }
            _ => Verdict::NotProven,
        }
    };
    let subpriorities = subpriorities(graph, task_set, levels);
    let operation = |(index, operation): (usize, &crate::Operation)| {
        let rates = task_set.rates[index].iter();
        let period = |root: usize| graph.operations[root].period_ns;
        let carried = task_set.carriers[index].iter().filter_map(|&task| {
            let deadline = operation
                .deadline_ns
                .or_else(|| period(task_set.tasks[task].root))?;
            Some((verdict(task, deadline), task, deadline))
        });
        let slack = |task: usize, deadline: u64| match responses[task] {
            Response::Bounded { ns } => i128::from(deadline) - i128::from(ns),
            _ => i128::MIN,
        };
        let tightest = carried
            .min_by_key(|&(verdict, task, deadline)| (badness(verdict), slack(task, deadline)));
        OperationSchedule {
            level: levels[index],
            subpriority: subpriorities[index],
            period_ns: rates.filter_map(|rate| period(rate.root)).min(),
            deadline_ns: tightest.map(|(_, _, deadline)| deadline),
            response: tightest.map(|(_, task, _)| responses[task]),
            verdict: tightest.map_or(Verdict::NeverRuns, |(verdict, ..)| verdict),
        }
    };
    let operations = graph.operations.iter().enumerate();
    (operations.map(operation).collect(), late)
}

/// Returns a conjunction, and a caller of it that may end more than a period after its arrival. The jitter of the conjunction has one
/// period of each other caller until that one arrives, and one until it ends.
fn late_caller(
    graph: &CallGraph,
    task_set: &TaskSet,
    responses: &[Response],
) -> Option<(usize, usize)> {
    let is_late = |&task: &usize| {
        let period_ns = task_set.tasks[task].task.period_ns;
        responses[task].meets(period_ns) != Some(true)
    };
    let conjunctions = task_set
        .tasks
        .iter()
        .filter(|task| graph.operations[task.operation].kind == OperationKind::Conjunction);
    let mut pairs = conjunctions.flat_map(|task| {
        let calls = graph.calls.iter();
        let calls = calls.filter(|call| call.callee == task.operation);
        calls.map(move |call| (task, call.caller))
    });
    let found = pairs.find(|(task, caller)| {
        let carriers = task_set.carriers[*caller].iter();
        let mut others = carriers.filter(|other| task_set.tasks[**other].root != task.root);
        others.any(is_late)
    });
    found.map(|(task, caller)| (task.operation, caller))
}

/// Analyses the most urgent level as a lane of its order that preempts, if it is dynamic: no other level interferes there. Jobs
/// released by others have a jitter that comes from the bounds for any order, so levels with such jobs are not analysed.
fn demand_of_top(
    graph: &CallGraph,
    task_set: &TaskSet,
    levels: &[u32],
    infos: &[LevelInfo],
    limits: SearchLimits,
) -> Option<DemandResult> {
    let info = infos.first()?;
    let each = (0..).zip(&task_set.tasks).zip(levels);
    let top: Vec<(usize, &GraphTask)> = each
        .filter(|(_, level)| **level == 0)
        .map(|(task, _)| task)
        .collect();
    let started = top.iter().any(|(_, task)| !task.after.is_empty());
    if info.dispatching == Dispatching::Static || started {
        return None;
    }
    let of_level: Vec<Task> = top.iter().map(|(_, task)| task.task).collect();
    let urgencies: Vec<u64> = top
        .iter()
        .filter_map(|(_, task)| urgency(graph, task, info.dispatching))
        .collect();
    Some(match edf::demand(&of_level, limits) {
        DemandResult::Misses { task, interval_ns } => DemandResult::Misses {
            task: top[task].0,
            interval_ns,
        },
        DemandResult::Meets if !meets_by(&urgencies, &of_level, info.preemption_levels, limits) => {
            DemandResult::Undecided
        }
        other => other,
    })
}

/// True if each task meets its deadline in a lane that orders jobs by these urgencies, each fixed at the arrival, and has `levels` native
/// priorities. The demand test holds, which decides it if the urgencies are the deadlines and no job waits for a level.
fn meets_by(urgencies: &[u64], tasks: &[Task], levels: u32, limits: SearchLimits) -> bool {
    let each = tasks.iter().zip(urgencies);
    let ordered: Vec<Task> = each
        .clone()
        .map(|(task, urgency)| task.with_deadline(*urgency))
        .collect();
    let holders = edf::level_holders(&ordered, levels);
    let mut both = each;
    if holders.iter().all(Option::is_none)
        && both.all(|(task, urgency)| task.deadline_ns == *urgency)
    {
        return true;
    }
    let blocked = ordered.iter().zip(holders).map(|(task, holder)| {
        let held_ns = holder.map_or(0, |holder| tasks[holder].worst_ns);
        task.with_blocking(task.blocking_ns.saturating_add(held_ns))
    });
    let blocked: Vec<Task> = blocked.collect();
    let bounds = edf::response_times(&blocked, limits);
    let mut bounds = bounds.iter().zip(tasks);
    bounds.all(|(bound, task)| bound.meets(task.deadline_ns) == Some(true))
}

/// Orders verdicts from the worst to the best.
fn badness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Misses => 0,
        Verdict::NotProven => 1,
        Verdict::MeetsIfPreempted => 2,
        Verdict::Meets | Verdict::NeverRuns => 3,
    }
}

/// Returns the subpriority of each operation.
fn subpriorities(graph: &CallGraph, task_set: &TaskSet, levels: &[Option<u32>]) -> Vec<u32> {
    let mut place = vec![0; graph.operations.len()];
    for (at, &index) in task_set.order.iter().enumerate() {
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
    use crate::{CallKind, Criticality, Operation, OperationCall};

    fn operation(name: &str, period_ns: u64, worst_ns: u64) -> Operation {
        Operation {
            period_ns: Some(period_ns),
            worst_ns,
            typical_ns: worst_ns,
            ..Operation::named(name)
        }
    }

    fn compute(graph: &CallGraph, strategy: Strategy) -> Schedule {
        Schedule::compute(graph, strategy, SearchLimits::default()).expect("a schedule")
    }

    #[test]
    fn a_miss_is_described_with_times_in_their_units() {
        let graph = CallGraph {
            operations: vec![
                operation("fast", 70_000_000, 26_000_000),
                operation("slow", 100_000_000, 62_000_000),
            ],
            ..CallGraph::default()
        };
        let described = &compute(&graph, Strategy::RateMonotonic).anomalies[0].description;
        assert_eq!(
            described,
            "slow misses its deadline of 100ms: its worst-case response time is 118ms, 18ms too long"
        );
    }

    /// `often` may end 16 after its arrival, which is more than its period.
    #[test]
    fn a_conjunction_that_waits_for_a_late_caller_is_not_proven() {
        let within = |name, period_ns, worst_ns, deadline_ns| Operation {
            deadline_ns: Some(deadline_ns),
            ..operation(name, period_ns, worst_ns)
        };
        let call = |caller| OperationCall {
            caller,
            callee: 3,
            count: 1,
            kind: CallKind::OneWay,
        };
        let graph = |worst_ns| CallGraph {
            operations: vec![
                within("urgent", 30, worst_ns, 12),
                within("often", 10, 4, 30),
                within("seldom", 100, 1, 100),
                Operation {
                    kind: OperationKind::Conjunction,
                    period_ns: None,
                    ..within("fuse", 100, 1, 200)
                },
            ],
            calls: vec![call(1), call(2)],
        };
        let strategy = Strategy::DeadlineMonotonic;
        assert_eq!(compute(&graph(6), strategy).holds(), Some(true));
        let late = compute(&graph(12), strategy);
        assert_eq!(late.holds(), None, "{late:?}");
        let mut said = late.anomalies.iter();
        assert!(said.any(|one| one.description.starts_with("fuse waits for often, which")));
    }

    #[test]
    fn rates_become_levels_and_callees_inherit_them() {
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
        let call = |caller, callee, kind| OperationCall {
            caller,
            callee,
            count: 1,
            kind,
        };
        graph.calls = vec![call(1, 2, CallKind::OneWay), call(0, 3, CallKind::TwoWay)];
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
    fn an_overload_names_the_first_missed_deadline() {
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
    fn earliest_deadline_first_uses_more_than_fixed_priorities() {
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
        assert!(dynamic.needs_preemption());
        assert_eq!(dynamic.levels[0].preemption_levels, 2);
    }

    #[test]
    fn laxities_are_those_of_the_arrival() {
        let due = |name, deadline, worst| Operation {
            deadline_ns: Some(deadline),
            ..operation(name, 20, worst)
        };
        let graph = |late, long| CallGraph {
            operations: vec![due("early", 5, 2), due("late", late, long)],
            calls: vec![],
        };
        let verdict = |graph, strategy| compute(&graph, strategy).operations[0].verdict;
        let by_deadline = verdict(graph(10, 8), Strategy::EarliestDeadlineFirst);
        assert_eq!(by_deadline, Verdict::MeetsIfPreempted);
        // The laxity of `late` is 2 and that of `early` 3: `late` ends first, after 8.
        let by_laxity = verdict(graph(10, 8), Strategy::MinimumLaxityFirst);
        assert_eq!(by_laxity, Verdict::NotProven);
        let apart = verdict(graph(20, 8), Strategy::MinimumLaxityFirst);
        assert_eq!(apart, Verdict::MeetsIfPreempted);
    }

    #[test]
    fn jobs_of_one_deadline_with_jitter_wait_for_each_other() {
        let due = |name, jitter_ns, worst| Operation {
            deadline_ns: Some(10),
            jitter_ns,
            ..operation(name, 20, worst)
        };
        // A job of `late` that is released 3 after its arrival finds one of `long`, which is due later and has the only level.
        let graph = CallGraph {
            operations: vec![due("late", 3, 4), due("long", 0, 6)],
            calls: vec![],
        };
        let schedule = compute(&graph, Strategy::EarliestDeadlineFirst);
        assert_eq!(schedule.levels[0].preemption_levels, 1);
        assert_eq!(schedule.operations[0].verdict, Verdict::NotProven);
    }
}
