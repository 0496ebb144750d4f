//! Checks all calls together: the trigger of each behaviour, cycles, and the size of the analysis.

use std::collections::BTreeMap;

use super::tables::{BehaviourTable, File};
use super::timing::{self, Annotations};
use super::{LineError, Lines, Place, Stopped};
use crate::model::system::{CallWay, System, Timing, Trigger};
use crate::task::Task;
use crate::times::text_of_ns;
use crate::utilisation::Utilisation;

pub(super) fn check(
    system: &mut System,
    file: &File,
    annotations: &Annotations,
    lines: &Lines,
) -> Result<(), Stopped> {
    let components = file.component.iter();
    let tables: Vec<&BehaviourTable> = components.flat_map(|table| &table.behaviour).collect();
    let timings = tables
        .iter()
        .map(|table| lines.keep(timing::of(table, annotations, lines)).flatten());
    let timings: Vec<Option<&Timing>> = timings.collect();
    let order = lines.keep(callers_first(system)).ok_or(Stopped)?;
    let callers = callers(system);
    for place in 0..tables.len() {
        lines.keep(check_ways(system, place, &callers[place]));
        let kind = check_kind(system, place, tables[place], &callers[place], lines);
        lines.keep(kind);
    }
    for (place, callers) in callers.iter().enumerate() {
        if callers.is_empty() {
            lines.keep(set_trigger(system, place, timings[place]));
        }
    }
    lines.go_on()?;
    lines.keep(check_sizes(system, &order, &callers));
    lines.go_on()?;
    let mut ranks = vec![0; order.len()];
    for (rank, place) in order.iter().enumerate() {
        ranks[*place] = rank;
    }
    let each = timings.iter().enumerate();
    for (place, timing) in each.filter_map(|(place, timing)| Some((place, (*timing)?))) {
        let promise = check_promise(system, place, timing, &order, &ranks, &callers);
        lines.keep(promise);
    }
    lines.go_on()
}

/// A caller of a behaviour.
#[derive(Clone, Copy)]
struct Caller {
    behaviour: usize,
    two_way: bool,
    count: u32,
    line: usize,
}

/// Returns the callers of every behaviour.
fn callers(system: &System) -> Vec<Vec<Caller>> {
    let mut callers = vec![Vec::new(); system.behaviours.len()];
    for (behaviour, each) in system.behaviours.iter().enumerate() {
        for call in &each.calls {
            for callee in &call.to {
                callers[*callee].push(Caller {
                    behaviour,
                    two_way: call.way == CallWay::TwoWay,
                    count: call.count,
                    line: call.line,
                });
            }
        }
    }
    callers
}

/// Checks that a behaviour always runs at its caller's priority, or always at its own.
fn check_ways(system: &System, place: usize, callers: &[Caller]) -> Result<(), LineError> {
    let waits = callers.iter().find(|caller| caller.two_way);
    let goes_on = callers.iter().find(|caller| !caller.two_way);
    let (Some(waits), Some(goes_on)) = (waits, goes_on) else {
        return Ok(());
    };
    let reason = format!(
        "{:?} is called two-way in line {} and one-way or by an event in line {}: a two-way call runs at the caller's priority, the others at its own, so write two behaviours",
        system.behaviours[place].name, waits.line, goes_on.line
    );
    Err(LineError::at(
        Place::of_line(waits.line.max(goes_on.line)),
        reason,
    ))
}

/// Checks that a called behaviour has no trigger of its own, and that a callee of a two-way call has no priority of its own.
fn check_kind(
    system: &System,
    place: usize,
    table: &BehaviourTable,
    callers: &[Caller],
    lines: &Lines,
) -> Result<(), LineError> {
    let Some(caller) = callers.first() else {
        return Ok(());
    };
    let name = &system.behaviours[place].name;
    if let Some(trigger) = table.period.as_ref().or(table.minimum_gap.as_ref()) {
        let reason = format!(
            "{name:?} has its own trigger here, but is called in line {}: remove the trigger, or write two behaviours",
            caller.line
        );
        return Err(LineError::at(lines.of(trigger), reason));
    }
    if let Some(jitter) = &table.jitter {
        let reason = format!(
            "jitter applies to a release by the clock or from outside, but {name:?} is called in line {}: remove it",
            caller.line
        );
        return Err(LineError::at(lines.of(jitter), reason));
    }
    match &table.priority {
        Some(priority) if caller.two_way => {
            let reason = format!(
                "{name:?} is called two-way in line {}, so it runs at its caller's priority (CLIENT_PROPAGATED): remove its own, or call it one-way",
                caller.line
            );
            Err(LineError::at(lines.of(priority), reason))
        }
        _ => Ok(()),
    }
}

/// Sets the trigger of a behaviour without callers.
fn set_trigger(
    system: &mut System,
    place: usize,
    timing: Option<&Timing>,
) -> Result<(), LineError> {
    let behaviour = &mut system.behaviours[place];
    if behaviour.trigger != Trigger::Called {
        return Ok(());
    }
    // An annotated operation without callers in the file is called from outside, at most as often as its interface allows.
    if let Some(gap_ns) = timing.and_then(|timing| timing.period_ns) {
        behaviour.trigger = Trigger::Sporadic {
            gap_ns,
            burst: None,
        };
        return Ok(());
    }
    let reason = format!(
        "nothing releases {:?}: write a period, or a minimum_gap if something outside releases it, or call it from a behaviour",
        behaviour.name
    );
    Err(LineError::at(Place::of_line(behaviour.line), reason))
}

/// Returns all behaviours, callers before callees; or the cycle in which they call each other.
fn callers_first(system: &System) -> Result<Vec<usize>, LineError> {
    let all: Vec<Vec<usize>> = system
        .behaviours
        .iter()
        .map(|each| each.calls.iter().flat_map(|call| call.to.clone()).collect())
        .collect();
    let mut state = vec![Visit::New; all.len()];
    let mut callees_first = Vec::with_capacity(all.len());
    for start in 0..all.len() {
        // The path from the start, each with the number of callees already followed.
        let mut way: Vec<(usize, usize)> = Vec::new();
        if state[start] == Visit::New {
            state[start] = Visit::OnTheWay;
            way.push((start, 0));
        }
        while let Some((behaviour, followed)) = way.last_mut() {
            let Some(callee) = all[*behaviour].get(*followed).copied() else {
                state[*behaviour] = Visit::Done;
                callees_first.push(*behaviour);
                way.pop();
                continue;
            };
            *followed += 1;
            match state[callee] {
                Visit::Done => {}
                Visit::New => {
                    state[callee] = Visit::OnTheWay;
                    way.push((callee, 0));
                }
                Visit::OnTheWay => {
                    let cycle = way.iter().map(|(place, _)| *place);
                    let cycle: Vec<usize> = cycle.skip_while(|place| *place != callee).collect();
                    return Err(cycle_of_calls(system, &cycle));
                }
            }
        }
    }
    callees_first.reverse();
    Ok(callees_first)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    OnTheWay,
    Done,
}

fn cycle_of_calls(system: &System, cycle: &[usize]) -> LineError {
    let last = &system.behaviours[cycle[cycle.len() - 1]];
    let closing = last
        .calls
        .iter()
        .find(|call| call.to.contains(&cycle[0]))
        .map_or(last.line, |call| call.line);
    let again = cycle[0];
    let left_out = cycle.len().saturating_sub(NAMES_SHOWN);
    let name = |place: &usize| format!("{:?}", system.behaviours[*place].name);
    let mut names: Vec<String> = cycle.iter().take(NAMES_SHOWN).map(name).collect();
    if left_out > 0 {
        names.push(format!("{left_out} others, the last of which"));
    }
    names.push(name(&again));
    let reason = format!(
        "calls form a cycle, {}, which would never end: remove one of them",
        names.join(" calls ")
    );
    LineError::at(Place::of_line(closing), reason)
}

/// Checks the depth and the number of calls.
fn check_sizes(system: &System, order: &[usize], callers: &[Vec<Caller>]) -> Result<(), LineError> {
    let mut depths = vec![0_usize; order.len()];
    let mut times = vec![1_u64; order.len()];
    let mut all: u64 = 0;
    for place in order {
        let behaviour = &system.behaviours[*place];
        let each = callers[*place].iter();
        let deepest = each
            .clone()
            .map(|caller| depths[caller.behaviour] + 1)
            .max();
        depths[*place] = deepest.unwrap_or(0);
        if depths[*place] > CALL_DEPTH_MAX {
            let reason = format!(
                "{:?} is more than {CALL_DEPTH_MAX} calls away from its root: shorten the sequence of calls",
                behaviour.name
            );
            return Err(LineError::at(Place::of_line(behaviour.line), reason));
        }
        if !callers[*place].is_empty() {
            times[*place] = each.fold(0, |sum: u64, caller| {
                let of_one = times[caller.behaviour].saturating_mul(caller.count.into());
                sum.saturating_add(of_one)
            });
        }
        all = all.saturating_add(times[*place]);
        if all > EXECUTIONS_MAX {
            let reason = format!(
                "with {:?}, which runs {} times, more than {EXECUTIONS_MAX} behaviours run when every root arrives once: lower counts, or remove calls",
                behaviour.name, times[*place]
            );
            return Err(LineError::at(Place::of_line(behaviour.line), reason));
        }
    }
    Ok(())
}

/// Checks the annotated period of a called behaviour. It is no trigger but a promise of the interface: all callers together may
/// not call more often in the long run.
fn check_promise(
    system: &System,
    place: usize,
    timing: &Timing,
    order: &[usize],
    ranks: &[usize],
    callers: &[Vec<Caller>],
) -> Result<(), LineError> {
    let Some(least_ns) = timing.period_ns.filter(|_| !callers[place].is_empty()) else {
        return Ok(());
    };
    // The number of calls that each behaviour on the way here makes, the last one first.
    let mut ahead = BTreeMap::from([(ranks[place], 1_u64)]);
    let mut roots = Vec::new();
    while let Some((rank, times)) = ahead.pop_last() {
        let behaviour = order[rank];
        let trigger = system.behaviours[behaviour].trigger;
        if let Some(period_ns) = trigger.period_ns() {
            let root = Task::periodic(period_ns, times * least_ns);
            roots.push(root.with_burst(trigger.burst()));
        }
        for caller in &callers[behaviour] {
            let sum = ahead.entry(ranks[caller.behaviour]).or_insert(0);
            *sum += times * u64::from(caller.count);
        }
    }
    // One call uses one annotated period: a utilisation above 1 is more often than promised.
    let used = Utilisation::of(&roots);
    if !used.exceeds_one() {
        return Ok(());
    }
    let behaviour = &system.behaviours[place];
    let operation = behaviour.operation.as_deref().unwrap_or_default();
    let reason = format!(
        "{:?} is called {} times as often as @period(\"{}\") of {operation}{} allows: call it less often, or change the annotation",
        behaviour.name,
        decimal(used.millionths()),
        text_of_ns(least_ns),
        timing::place(timing)
    );
    Err(LineError::at(Place::of_line(behaviour.line), reason))
}

fn decimal(millionths: u64) -> String {
    format!(
        "{}.{:02}",
        millionths / 1_000_000,
        millionths % 1_000_000 / 10_000
    )
}

/// The maximum number of names of a cycle in a message; longer than any valid sequence of calls.
const NAMES_SHOWN: usize = CALL_DEPTH_MAX;
/// The maximum depth of calls.
const CALL_DEPTH_MAX: usize = 64;
/// The maximum number of executions when every root arrives once.
const EXECUTIONS_MAX: u64 = 100_000;
