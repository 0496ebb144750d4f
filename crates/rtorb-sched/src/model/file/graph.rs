//! All calls together: what begins a behaviour, and that calls end and are no more than can be analysed.

use std::collections::BTreeMap;

use super::tables::{BehaviourTable, File};
use super::timing::{self, Annotated};
use super::{Lines, Wrong};
use crate::model::system::{CallWay, System, Timing, Trigger};
use crate::task::Task;
use crate::times::text_of_ns;
use crate::utilisation::Utilisation;

pub(super) fn check(
    system: &mut System,
    file: &File,
    annotated: &Annotated,
    lines: &Lines,
) -> Result<(), Wrong> {
    let components = file.component.iter();
    let tables: Vec<&BehaviourTable> = components.flat_map(|table| &table.behaviour).collect();
    let timings: Vec<Option<&Timing>> = tables
        .iter()
        .map(|table| timing::of(table, annotated, lines))
        .collect::<Result<_, _>>()?;
    let order = callers_first(system)?;
    let callers = callers(system);
    for place in 0..tables.len() {
        check_ways(system, place, &callers[place])?;
        check_kind(system, (place, tables[place]), &callers[place], lines)?;
    }
    for (place, callers) in callers.iter().enumerate() {
        if callers.is_empty() {
            begin(system, place, timings[place])?;
        }
    }
    check_sizes(system, &order, &callers)?;
    let mut ranks = vec![0; order.len()];
    for (rank, place) in order.iter().enumerate() {
        ranks[*place] = rank;
    }
    let each = timings.iter().enumerate();
    for (place, timing) in each.filter_map(|(place, timing)| Some((place, (*timing)?))) {
        check_promise(system, place, timing, (&order, &ranks), &callers)?;
    }
    Ok(())
}

/// One that calls a behaviour, and how.
#[derive(Clone, Copy)]
struct Caller {
    behaviour: usize,
    two_way: bool,
    count: u32,
    line: usize,
}

/// The callers of every behaviour.
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

/// One that is called runs at its caller's priority or at its own, and not now this and now that.
fn check_ways(system: &System, place: usize, callers: &[Caller]) -> Result<(), Wrong> {
    let waits = callers.iter().find(|caller| caller.two_way);
    let goes_on = callers.iter().find(|caller| !caller.two_way);
    let (Some(waits), Some(goes_on)) = (waits, goes_on) else {
        return Ok(());
    };
    let reason = format!(
        "{:?} is called two-way in line {} and without waiting in line {}: the one has its caller's priority, the other its own, so write two behaviours",
        system.behaviours[place].name, waits.line, goes_on.line
    );
    Err(Wrong::at(waits.line.max(goes_on.line), reason))
}

/// One that is called is begun by nothing else, and of one that its caller waits for the priority is the caller's.
fn check_kind(
    system: &System,
    (place, table): (usize, &BehaviourTable),
    callers: &[Caller],
    lines: &Lines,
) -> Result<(), Wrong> {
    let Some(caller) = callers.first() else {
        return Ok(());
    };
    let name = &system.behaviours[place].name;
    if let Some(trigger) = table.period.as_ref().or(table.minimum_gap.as_ref()) {
        let reason = format!(
            "{name:?} is begun by itself here, and called in line {}: take this away, or write two behaviours",
            caller.line
        );
        return Err(Wrong::at(lines.of(trigger), reason));
    }
    if let Some(jitter) = &table.jitter {
        let reason = format!(
            "jitter is how late the clock or something outside begins a behaviour, and {name:?} is called in line {}: take it away",
            caller.line
        );
        return Err(Wrong::at(lines.of(jitter), reason));
    }
    match &table.priority {
        Some(priority) if caller.two_way => {
            let reason = format!(
                "{name:?} is called two-way in line {}, so it runs at its caller's priority (CLIENT_PROPAGATED): take its own away, or call it one-way",
                caller.line
            );
            Err(Wrong::at(lines.of(priority), reason))
        }
        _ => Ok(()),
    }
}

/// What begins one that nobody calls.
fn begin(system: &mut System, place: usize, timing: Option<&Timing>) -> Result<(), Wrong> {
    let behaviour = &mut system.behaviours[place];
    if behaviour.trigger != Trigger::Called {
        return Ok(());
    }
    // An annotated operation that nobody here calls is called from outside, no more often than its interface says.
    if let Some(gap_ns) = timing.and_then(|timing| timing.period_ns) {
        behaviour.trigger = Trigger::Sporadic { gap_ns };
        return Ok(());
    }
    let reason = format!(
        "nothing begins {:?}: write a period, or a minimum_gap if something outside begins it, or have a behaviour call it",
        behaviour.name
    );
    Err(Wrong::at(behaviour.line, reason))
}

/// All behaviours, each after all who call it; or the circle in which they call each other.
fn callers_first(system: &System) -> Result<Vec<usize>, Wrong> {
    let all: Vec<Vec<usize>> = system
        .behaviours
        .iter()
        .map(|each| each.calls.iter().flat_map(|call| call.to.clone()).collect())
        .collect();
    let mut state = vec![Visit::New; all.len()];
    let mut callees_first = Vec::with_capacity(all.len());
    for start in 0..all.len() {
        // The way from the start, each with the number of its callees that were followed.
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
                    let circle = way.iter().map(|(place, _)| *place);
                    let circle: Vec<usize> = circle.skip_while(|place| *place != callee).collect();
                    return Err(circle_of_calls(system, &circle));
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

fn circle_of_calls(system: &System, circle: &[usize]) -> Wrong {
    let last = &system.behaviours[circle[circle.len() - 1]];
    let closing = last
        .calls
        .iter()
        .find(|call| call.to.contains(&circle[0]))
        .map_or(last.line, |call| call.line);
    let again = circle[0];
    let left_out = circle.len().saturating_sub(NAMES_SHOWN);
    let name = |place: &usize| format!("{:?}", system.behaviours[*place].name);
    let mut names: Vec<String> = circle.iter().take(NAMES_SHOWN).map(name).collect();
    if left_out > 0 {
        names.push(format!("{left_out} others, the last of which"));
    }
    names.push(name(&again));
    let reason = format!(
        "calls go in a circle, {}: it would never end, so take one of them out",
        names.join(" calls ")
    );
    Wrong::at(closing, reason)
}

/// Calls may be no deeper and no more than an analysis can follow.
fn check_sizes(system: &System, order: &[usize], callers: &[Vec<Caller>]) -> Result<(), Wrong> {
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
                "{:?} is more than {CALL_DEPTH_MAX} calls away from what begins them: shorten that way",
                behaviour.name
            );
            return Err(Wrong::at(behaviour.line, reason));
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
                "with {:?}, which runs {} times, more than {EXECUTIONS_MAX} behaviours run when everything begins once: lower counts, or call fewer",
                behaviour.name, times[*place]
            );
            return Err(Wrong::at(behaviour.line, reason));
        }
    }
    Ok(())
}

/// The annotated period of one that is called is no trigger but a promise of its interface: those who call it may not do so
/// more often, all together and in the long run.
fn check_promise(
    system: &System,
    place: usize,
    timing: &Timing,
    (order, ranks): (&[usize], &[usize]),
    callers: &[Vec<Caller>],
) -> Result<(), Wrong> {
    let Some(least_ns) = timing.period_ns.filter(|_| !callers[place].is_empty()) else {
        return Ok(());
    };
    // How often each that leads here does so, the one that is called last first.
    let mut ahead = BTreeMap::from([(ranks[place], 1_u64)]);
    let mut roots = Vec::new();
    while let Some((rank, times)) = ahead.pop_last() {
        let behaviour = order[rank];
        match system.behaviours[behaviour].trigger {
            Trigger::Periodic { period_ns } | Trigger::Sporadic { gap_ns: period_ns } => {
                roots.push(Task::periodic(period_ns, times * least_ns));
            }
            Trigger::Called => {}
        }
        for caller in &callers[behaviour] {
            let sum = ahead.entry(ranks[caller.behaviour]).or_insert(0);
            *sum += times * u64::from(caller.count);
        }
    }
    // One call takes a period of the promise: more than the whole time is more often than promised.
    let used = Utilisation::of(&roots);
    if !used.exceeds_one() {
        return Ok(());
    }
    let behaviour = &system.behaviours[place];
    let operation = behaviour.operation.as_deref().unwrap_or_default();
    let reason = format!(
        "{:?} is called {} times as often as @period(\"{}\") of {operation}{} allows: call it less often, or change that",
        behaviour.name,
        decimal(used.millionths()),
        text_of_ns(least_ns),
        timing::place(timing)
    );
    Err(Wrong::at(behaviour.line, reason))
}

fn decimal(millionths: u64) -> String {
    format!(
        "{}.{:02}",
        millionths / 1_000_000,
        millionths % 1_000_000 / 10_000
    )
}

/// How much of a circle is told: more than a way of calls may be long, so it is all of any that is not absurd.
const NAMES_SHOWN: usize = CALL_DEPTH_MAX;
/// How many calls may follow each other.
const CALL_DEPTH_MAX: usize = 64;
/// How often behaviours may run, all together, when everything that begins by itself begins once.
const EXECUTIONS_MAX: u64 = 100_000;
