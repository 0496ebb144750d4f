//! The conjunctions of two modes during the change from one to the other.

use crate::CallKind;
use crate::graph::{CallGraph, GraphError, OperationKind, TaskSet};

/// How often one caller calls, by names, which are the same in each mode.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct CallerRate<'a> {
    name: &'a str,
    is_waiting: bool,
    count: u32,
    /// Each root with its period and its number of runs.
    rates: Vec<(&'a str, Option<u64>, u64)>,
}

/// Makes a plain operation of each conjunction in `both` whose callers do not call as often in each mode as in both together. A run that
/// takes the last call of each mode, in whatever order, is then one of the runs at each call. Its root may be the one that has waited, so it
/// has the longest wait of either mode as jitter.
pub(super) fn release(both: &mut CallGraph, modes: [&CallGraph; 2]) -> Result<(), GraphError> {
    let waits = |index: usize| {
        let name = &both.operations[index].name;
        let its = modes.iter().map(|mode| mode.operations.iter());
        let mut its = its.filter_map(|mut its| its.find(|one| one.name == *name));
        its.any(|one| one.kind == OperationKind::Conjunction)
    };
    let mut left: Vec<usize> = (0..both.operations.len())
        .filter(|&index| waits(index))
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    let sets = [modes[0].task_set()?, modes[1].task_set()?];
    // The callers of one conjunction may be others.
    while !left.is_empty() {
        let set = both.task_set()?;
        let stays = |&index: &usize| {
            both.operations[index].kind == OperationKind::Conjunction
                && modes.iter().zip(&sets).all(|(mode, of_mode)| {
                    let at = place(mode, &both.operations[index].name);
                    at.is_none_or(|at| callers(mode, of_mode, at) == callers(both, &set, index))
                })
        };
        let (stay, change): (Vec<usize>, Vec<usize>) = left.iter().partition(|index| stays(index));
        if change.is_empty() {
            break;
        }
        for &index in &change {
            let name = both.operations[index].name.clone();
            let each = modes.iter().zip(&sets);
            let longest_ns = each.map(|(mode, set)| wait_ns(mode, set, &name)).max();
            let operation = &mut both.operations[index];
            operation.kind = OperationKind::Operation;
            operation.jitter_ns = operation.jitter_ns.saturating_add(longest_ns.unwrap_or(0));
        }
        left = stay;
    }
    Ok(())
}

fn place(graph: &CallGraph, name: &str) -> Option<usize> {
    graph.operations.iter().position(|one| one.name == name)
}

fn callers<'a>(graph: &'a CallGraph, set: &TaskSet, index: usize) -> Vec<CallerRate<'a>> {
    let name = |index: usize| graph.operations[index].name.as_str();
    let calls = graph.calls.iter().filter(|call| call.callee == index);
    let caller = calls.map(|call| {
        let rates = set.rates[call.caller].iter();
        let period = |root: usize| graph.operations[root].period_ns;
        let rates = rates.map(|rate| (name(rate.root), period(rate.root), rate.count));
        let mut rates: Vec<_> = rates.collect();
        rates.sort_unstable();
        CallerRate {
            name: name(call.caller),
            is_waiting: call.kind == CallKind::TwoWay,
            count: call.count,
            rates,
        }
    });
    let mut callers: Vec<CallerRate<'_>> = caller.collect();
    callers.sort_unstable();
    callers
}

/// Returns how long an operation of a mode waits for others after its slowest caller.
fn wait_ns(graph: &CallGraph, set: &TaskSet, name: &str) -> u64 {
    let Some(index) = place(graph, name) else {
        return 0;
    };
    let own_ns = graph.operations[index].jitter_ns;
    let its = set.tasks.iter().filter(|task| task.operation == index);
    let waits = its.map(|task| task.task.jitter_ns.saturating_sub(own_ns));
    waits.max().unwrap_or(0)
}
