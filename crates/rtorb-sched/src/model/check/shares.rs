//! What a bound is made of, to the nanosecond.
//!
//! The bound of a segment is what its worst job took: everything that came before the window in which it ran (the segments before it,
//! the ways between, jitter), and that window (blocking, its own jobs until this one, all that preempted them), less what it arrived
//! after the beginning of the window. So it is a sum of parts that each have a name and a layer. A window may begin with an earlier
//! segment of the same chain on that CPU: then that one's execution is a part of it.

use std::collections::{BTreeMap, HashMap};

use super::super::checked::{Layer, Share};
use super::super::composed::Part;
use super::steps::{Analysed, View};

/// How many of those that preempt a step are told by their names; the rest is told as one.
const NAMED: usize = 8;

/// The same for what the kernel does: the tick, and the timers of each release.
const INTERRUPTS_NAMED: usize = 3;

/// The shares of an activation's bound; the largest first.
pub(super) fn of_activation(view: &View<'_>, analysed: &Analysed, activation: usize) -> Vec<Share> {
    let activation = &view.composed.activations[activation];
    let mut table = Table::default();
    let mut preempted = Preempted::default();
    for step in path(view, analysed, activation.done) {
        let window = Window {
            view,
            analysed,
            step,
            own: activation.behaviour,
        };
        window.add(&mut table, &mut preempted);
    }
    preempted.name(view, &mut table);
    table.sorted()
}

/// The same step by step: each share says of which behaviour's step it is.
pub(super) fn of_chain(view: &View<'_>, analysed: &Analysed, activation: usize) -> Vec<Share> {
    let mut shares: Vec<Share> = vec![];
    for step in path(view, analysed, view.composed.activations[activation].done) {
        let own = view.composed.segments[step].behaviour;
        let mut table = Table::default();
        let mut preempted = Preempted::default();
        let window = Window {
            view,
            analysed,
            step,
            own,
        };
        window.add(&mut table, &mut preempted);
        preempted.name(view, &mut table);
        let name = &view.system.behaviours[own].name;
        shares.extend(table.sorted().into_iter().map(|share| Share {
            what: format!("{name}: {}", share.what),
            ..share
        }));
    }
    shares
}

/// The segments whose windows follow each other in the bound, from the first to this one.
fn path(view: &View<'_>, analysed: &Analysed, done: usize) -> Vec<usize> {
    let before = |&step: &usize| view.composed.segments[analysed.found[step].begins_with].after;
    let mut path: Vec<usize> = core::iter::successors(Some(done), before).collect();
    path.reverse();
    path
}

/// The window of a step, and what comes between the window before and this one.
struct Window<'a> {
    view: &'a View<'a>,
    analysed: &'a Analysed,
    step: usize,
    /// The behaviour whose table it is.
    own: usize,
}

impl<'a> Window<'a> {
    fn add(&self, table: &mut Table, preempted: &mut Preempted<'a>) {
        let view = self.view;
        let found = &self.analysed.found[self.step];
        let first = &view.composed.segments[found.begins_with];
        for part in first.delay.iter().chain(&first.jitter) {
            table.add_part(part, 1);
        }
        self.add_execution(self.step, found.own_jobs, table);
        self.add_blocking(table);
        let mut chain = vec![self.step];
        chain.extend(core::iter::successors(
            view.composed.segments[self.step].after,
            |&step| view.composed.segments[step].after,
        ));
        for (other, times) in self.analysed.interference(self.step) {
            match view.interrupt(other) {
                Some(part) => preempted.interrupts.push((part, times)),
                None if chain.contains(&other) => self.add_execution(other, times, table),
                None => preempted.add(view, other, times),
            }
        }
        let period_ns = self.analysed.steps[self.step].task.period_ns;
        let later_ns = i128::from(found.job) * i128::from(period_ns) + i128::from(found.later_ns);
        let times = found.job.max(u64::from(found.later_ns > 0));
        table.add(
            Layer::Application,
            "arrived later".to_owned(),
            times,
            -later_ns,
        );
    }

    /// What a segment of the chain executes, so many times.
    fn add_execution(&self, segment: usize, jobs: u64, table: &mut Table) {
        for part in &self.view.composed.segments[segment].execution {
            match part.code_of {
                Some(behaviour) if behaviour == self.own => {
                    table.add_called("own execution".to_owned(), part, jobs);
                }
                Some(behaviour) => {
                    let name = &self.view.system.behaviours[behaviour].name;
                    table.add_called(format!("execution of {name}"), part, jobs);
                }
                None => table.add_part(part, jobs),
            }
        }
        table.add_part(&self.view.locks(segment), jobs);
    }

    fn add_blocking(&self, table: &mut Table) {
        let (view, steps) = (self.view, &self.analysed.steps);
        let Some(blocked) = self
            .analysed
            .blocked(self.step, view.composed.segments.len())
        else {
            return;
        };
        let segment = &view.composed.segments[blocked];
        segment
            .blocking
            .iter()
            .for_each(|part| table.add_part(part, 1));
        for wait in view.waits(blocked, &|segment: usize| steps[segment].level) {
            let holder = view.composed.segments[wait.holder].behaviour;
            let resource = &view.system.resources[wait.resource].name;
            let what = format!("{resource} held by {}", view.system.behaviours[holder].name);
            table.add(Layer::Application, what, 1, wait.ns.into());
        }
    }
}

/// Shares as they add up.
#[derive(Default)]
struct Table {
    shares: Vec<(Layer, String, u64, i128)>,
    places: HashMap<(Layer, String), usize>,
}

impl Table {
    fn add_part(&mut self, part: &Part, times: u64) {
        self.add_called(part.what.clone(), part, times);
    }

    fn add_called(&mut self, what: String, part: &Part, times: u64) {
        let ns = i128::from(part.ns) * i128::from(times);
        self.add(part.layer, what, part.times.saturating_mul(times), ns);
    }

    fn add(&mut self, layer: Layer, what: String, times: u64, ns: i128) {
        if ns == 0 {
            return;
        }
        let shares = &mut self.shares;
        let place = *self
            .places
            .entry((layer, what))
            .or_insert_with_key(|(layer, what)| {
                shares.push((*layer, what.clone(), 0, 0));
                shares.len() - 1
            });
        shares[place].2 = shares[place].2.saturating_add(times);
        shares[place].3 += ns;
    }

    fn sorted(mut self) -> Vec<Share> {
        self.shares.sort_by_key(|&(.., ns)| core::cmp::Reverse(ns));
        let share = |(layer, what, times, ns)| Share {
            layer,
            what,
            times,
            ns: i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX }),
        };
        self.shares.into_iter().map(share).collect()
    }
}

/// Who preempted, by behaviour and layer: how many times, and how long.
#[derive(Default)]
struct Preempted<'a> {
    by: BTreeMap<usize, BTreeMap<Layer, (u64, i128)>>,
    interrupts: Vec<(&'a Part, u64)>,
}

impl Preempted<'_> {
    fn add(&mut self, view: &View<'_>, segment: usize, times: u64) {
        let mine = self
            .by
            .entry(view.composed.segments[segment].behaviour)
            .or_default();
        for (layer, ns) in view.layers(segment) {
            let (before, sum) = mine.entry(layer).or_default();
            *before = before.saturating_add(times);
            *sum += i128::from(ns) * i128::from(times);
        }
    }

    /// The longest by name, the rest together.
    fn name(mut self, view: &View<'_>, table: &mut Table) {
        self.interrupts.sort_by_key(|(part, times)| {
            core::cmp::Reverse(i128::from(part.ns) * i128::from(*times))
        });
        for (index, &(part, times)) in self.interrupts.iter().enumerate() {
            match index < INTERRUPTS_NAMED || self.interrupts.len() == INTERRUPTS_NAMED + 1 {
                true => table.add_part(part, times),
                false => table.add_called("other interrupts".to_owned(), part, times),
            }
        }
        let sum = |layers: &BTreeMap<Layer, (u64, i128)>| {
            layers.values().map(|&(_, ns)| ns).sum::<i128>()
        };
        let mut by: Vec<_> = self
            .by
            .into_iter()
            .filter(|(_, layers)| sum(layers) > 0)
            .collect();
        by.sort_by_key(|(_, layers)| core::cmp::Reverse(sum(layers)));
        // One that would be told as "1 other" has a name as well.
        let named = if by.len() == NAMED + 1 {
            by.len()
        } else {
            by.len().min(NAMED)
        };
        let others = by.len() - named;
        for (index, (behaviour, layers)) in by.into_iter().enumerate() {
            let what = match index < named {
                true => format!("preempted by {}", view.system.behaviours[behaviour].name),
                false => format!("preempted by {others} others"),
            };
            for (layer, (times, ns)) in layers {
                table.add(layer, what.clone(), times, ns);
            }
        }
    }
}
