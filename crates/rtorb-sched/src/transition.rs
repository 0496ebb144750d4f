//! The change of a running system to another one: whether every deadline holds while jobs of both are there.
//!
//! Jobs of the old mode may be pending when the first jobs of the new mode arrive, and each thread changes its priority at a time
//! of its own. So the analysis assumes the worse of both modes for each operation: the shorter period and deadline, the longer
//! execution, jitter and blocking, and any priority between the old one and the new one. Operations whose ranges of priorities
//! overlap form one level, in which the bounds hold for any order; no job outside a level delays it except those of more urgent
//! levels. Two things are assumed. An operation keeps the shorter of its two periods between the last arrival of the old mode
//! and the first of the new one. A request finds a thread of its lane, which has the larger number of both modes meanwhile.

mod conjunctions;

use std::collections::BTreeMap;

use crate::admission::{IN_TWO_STEPS, Refusal};
use crate::graph::{CallGraph, GraphError, Operation, OperationCall, OperationKind};
use crate::limits::SearchLimits;
use crate::response::Response;
use crate::schedule::{Dispatching, LevelInfo, Schedule};
use crate::task::Task;
use crate::utilisation::Utilisation;

/// A system and the levels that it runs in.
#[derive(Clone, Copy, Debug)]
pub struct Mode<'a> {
    /// The operations.
    pub graph: &'a CallGraph,
    /// Their levels and bounds.
    pub schedule: &'a Schedule,
    /// The urgency of each level. A larger one is more urgent, and both modes of a transition use the same scale.
    pub urgencies: &'a [i32],
}

/// The analysis of a change from one mode to another.
#[derive(Clone, Debug)]
pub struct Transition {
    graph: CallGraph,
    schedule: Schedule,
    /// The number of operations of the old mode, which are the first ones of the graph.
    old: usize,
}

impl Transition {
    /// Analyses the change from `old` to `new`. Operations of one name are the same operation.
    ///
    /// # Errors
    /// [`GraphError`] if the calls of both modes together make a circle, or their times do not fit.
    pub fn between(old: Mode<'_>, new: Mode<'_>, limits: SearchLimits) -> Result<Self, GraphError> {
        let mut merged = Merged::of(old);
        merged.add(new);
        let (levels, infos) = bands(&merged, [old, new]);
        let mut graph = CallGraph {
            calls: merged.calls(),
            operations: merged.operations,
        };
        conjunctions::release(&mut graph, [old.graph, new.graph])?;
        let task_set = graph.task_set()?;
        let tasks: Vec<Task> = task_set.tasks.iter().map(|task| task.task).collect();
        let mut schedule = Schedule {
            strategy: new.schedule.strategy,
            operations: Vec::new(),
            levels: infos,
            anomalies: Vec::new(),
            utilisation: Utilisation::of(&tasks),
        };
        schedule.judge(&graph, &task_set, &levels, limits);
        Ok(Self {
            graph,
            schedule,
            old: old.graph.operations.len(),
        })
    }

    /// Returns why the change is refused; `None` if every deadline holds during it.
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        let refusal = Refusal::of(&self.graph, &self.schedule)?;
        Some(Refusal {
            remedies: vec![IN_TWO_STEPS.to_owned()],
            ..refusal
        })
    }

    /// Returns the longest time for which jobs of the old mode may run: the largest bound on a response of its operations.
    /// `None` if one is unbounded.
    #[must_use]
    pub fn longest_ns(&self) -> Option<u64> {
        let old = &self.schedule.operations[..self.old];
        // All tasks of an operation have the same deadline here, so the one with the least slack has the longest response.
        let bounds = old.iter().filter_map(|operation| operation.response);
        bounds
            .map(Response::bound_ns)
            .try_fold(0, |longest: u64, bound| Some(longest.max(bound?)))
    }
}

/// The operations of both modes.
struct Merged {
    operations: Vec<Operation>,
    by_name: BTreeMap<String, usize>,
    /// For each operation its levels in the old and in the new mode.
    places: Vec<[Option<u32>; 2]>,
    /// For each operation whether its deadlines in both modes differ.
    changes_deadline: Vec<bool>,
    /// The counts of calls, by caller, callee and kind.
    counts: BTreeMap<(usize, usize, bool), OperationCall>,
}

impl Merged {
    fn of(old: Mode<'_>) -> Self {
        let operations = old.graph.operations.clone();
        let levels = old.schedule.operations.iter();
        let names = operations.iter().map(|operation| operation.name.clone());
        let mut merged = Self {
            by_name: names.zip(0..).collect(),
            places: levels.map(|scheduled| [scheduled.level, None]).collect(),
            changes_deadline: vec![false; operations.len()],
            counts: BTreeMap::new(),
            operations,
        };
        // With the deadlines that `None` stands for, so that they can be compared.
        let effective = old.schedule.operations.iter().map(|it| it.period_ns);
        for (operation, period_ns) in merged.operations.iter_mut().zip(effective) {
            operation.deadline_ns = operation.deadline_ns.or(period_ns);
        }
        let same: Vec<usize> = (0..merged.operations.len()).collect();
        merged.add_calls(old.graph, &same);
        merged
    }

    fn add(&mut self, new: Mode<'_>) {
        let each = new.graph.operations.iter().zip(&new.schedule.operations);
        let mut places = Vec::with_capacity(new.graph.operations.len());
        for (operation, scheduled) in each {
            let operation = Operation {
                deadline_ns: operation.deadline_ns.or(scheduled.period_ns),
                ..operation.clone()
            };
            let at = if let Some(&at) = self.by_name.get(&operation.name) {
                self.changes_deadline[at] =
                    self.operations[at].deadline_ns != operation.deadline_ns;
                self.operations[at] = worse(&self.operations[at], &operation);
                at
            } else {
                self.by_name
                    .insert(operation.name.clone(), self.operations.len());
                self.operations.push(operation);
                self.places.push([None, None]);
                self.changes_deadline.push(false);
                self.operations.len() - 1
            };
            self.places[at][1] = scheduled.level;
            places.push(at);
        }
        self.add_calls(new.graph, &places);
    }

    /// Adds the calls of a graph whose operations have these indices here.
    fn add_calls(&mut self, graph: &CallGraph, places: &[usize]) {
        for call in &graph.calls {
            let moved = OperationCall {
                caller: places[call.caller],
                callee: places[call.callee],
                ..*call
            };
            let waits = call.kind == crate::CallKind::TwoWay;
            let known = self.counts.entry((moved.caller, moved.callee, waits));
            let known = known.or_insert(moved);
            known.count = known.count.max(moved.count);
        }
    }

    fn calls(&self) -> Vec<OperationCall> {
        self.counts.values().copied().collect()
    }
}

/// An operation with the worse of each number.
fn worse(one: &Operation, other: &Operation) -> Operation {
    let shorter = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
    Operation {
        name: one.name.clone(),
        kind: match (one.kind, other.kind) {
            (one, other) if one == other => one,
            // It runs at each call, which is at least as often, and takes its time here.
            _ => OperationKind::Operation,
        },
        period_ns: shorter(one.period_ns, other.period_ns),
        deadline_ns: shorter(one.deadline_ns, other.deadline_ns),
        worst_ns: one.worst_ns.max(other.worst_ns),
        typical_ns: one.typical_ns.max(other.typical_ns),
        jitter_ns: one.jitter_ns.max(other.jitter_ns),
        blocking_ns: one.blocking_ns.max(other.blocking_ns),
        criticality: one.criticality.max(other.criticality),
        importance: one.importance.max(other.importance),
    }
}

/// Joins operations whose ranges of urgency overlap. Returns the level of each, and what each level is.
fn bands(merged: &Merged, modes: [Mode<'_>; 2]) -> (Vec<Option<u32>>, Vec<LevelInfo>) {
    let places = &merged.places;
    let range = |place: &[Option<u32>; 2]| {
        let both = [0, 1].map(|mode| urgency(modes[mode], place[mode]));
        let both = || both.iter().flatten().copied();
        Some((both().max()?, both().min()?))
    };
    let ranges: Vec<Option<(i32, i32)>> = places.iter().map(range).collect();
    let mut order: Vec<usize> = (0..places.len())
        .filter(|&index| ranges[index].is_some())
        .collect();
    order.sort_by_key(|&index| core::cmp::Reverse(ranges[index]));
    let mut levels = vec![None; places.len()];
    let mut members: Vec<Vec<usize>> = Vec::new();
    let mut lowest = i32::MAX;
    for index in order {
        let Some((most, least)) = ranges[index] else {
            continue;
        };
        if members.is_empty() || most < lowest {
            members.push(Vec::new());
            lowest = least;
        }
        lowest = lowest.min(least);
        let last = members.len() - 1;
        members[last].push(index);
        levels[index] = u32::try_from(last).ok();
    }
    let info = |band: &Vec<usize>| {
        let by_deadline = levels_by_deadline(band, merged, modes);
        LevelInfo {
            dispatching: match by_deadline {
                Some(_) => Dispatching::Deadline,
                None => Dispatching::Static,
            },
            periods_ns: Vec::new(),
            preemption_levels: by_deadline.unwrap_or(1),
        }
    };
    let infos = members.iter().map(info).collect();
    (levels, infos)
}

fn urgency(mode: Mode<'_>, level: Option<u32>) -> Option<i32> {
    mode.urgencies.get(level? as usize).copied()
}

/// Returns the native priorities of the lane that serves the operations of a band in both modes by deadline, the smaller number of both;
/// `None` if there is no such lane. A job of the old mode with another deadline would take a native priority more.
fn levels_by_deadline(band: &[usize], merged: &Merged, modes: [Mode<'_>; 2]) -> Option<u32> {
    if band.iter().any(|&at| merged.changes_deadline[at]) {
        return None;
    }
    let mut lanes = Vec::new();
    for (mode, at) in (0..2).flat_map(|mode| band.iter().map(move |&at| (mode, at))) {
        let Some(level) = merged.places[at][mode] else {
            continue;
        };
        let info = modes[mode].schedule.levels.get(level as usize)?;
        if info.dispatching != Dispatching::Deadline {
            return None;
        }
        lanes.push((urgency(modes[mode], Some(level)), info.preemption_levels));
    }
    let (first, _) = lanes.first()?;
    let is_one = lanes.iter().all(|(urgency, _)| urgency == first);
    let fewest = lanes.iter().map(|(_, levels)| *levels).min();
    fewest.filter(|_| is_one)
}

#[cfg(test)]
mod tests;
