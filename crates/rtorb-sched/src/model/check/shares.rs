//! The shares of a bound, exact to the nanosecond.
//!
//! The bound of a segment is the sum of two times of its worst job: the time before its window (preceding segments, delays,
//! jitter), and the window itself (blocking, its own jobs up to this one, all preemptions), minus its arrival relative to the
//! beginning of the window. So it is a sum of parts, each with a name and a layer. A window may begin with a preceding segment of
//! the same chain on that CPU; then that segment's execution is a part of it.

use std::collections::{BTreeMap, HashMap};

use super::super::composition::Part;
use super::super::report::{Layer, Share};
use super::steps::{Analysis, View};

/// The number of preempting behaviours listed by name; the others form one share.
const NAMED: usize = 8;

/// The number of interrupts listed by name: the tick, and timers of releases.
const INTERRUPTS_NAMED: usize = 3;

/// Returns the shares of an activation's bound, the largest first.
pub(super) fn of_activation(view: &View<'_>, analysis: &Analysis, activation: usize) -> Vec<Share> {
    let activation = &view.composition.activations[activation];
    let mut table = Table::default();
    let mut preemptions = Preemptions::default();
    for (step, follower) in path(view, analysis, activation.done) {
        let window = Window {
            view,
            analysis,
            step,
            follower,
            own: activation.behaviour,
        };
        window.add(&mut table, &mut preemptions);
    }
    preemptions.name(view, &mut table);
    table.sorted()
}

/// Returns the shares step by step; each names the behaviour of its step.
pub(super) fn of_chain(view: &View<'_>, analysis: &Analysis, activation: usize) -> Vec<Share> {
    let mut shares: Vec<Share> = vec![];
    let done = view.composition.activations[activation].done;
    for (step, follower) in path(view, analysis, done) {
        let own = view.composition.segments[step].behaviour;
        let mut table = Table::default();
        let mut preemptions = Preemptions::default();
        let window = Window {
            view,
            analysis,
            step,
            follower,
            own,
        };
        window.add(&mut table, &mut preemptions);
        preemptions.name(view, &mut table);
        let name = &view.system.behaviours[own].name;
        shares.extend(table.sorted().into_iter().map(|share| Share {
            what: format!("{name}: {}", share.what),
            ..share
        }));
    }
    shares
}

/// Returns the segments whose windows follow each other in the bound, from the first to this one, each with the one that it releases.
fn path(view: &View<'_>, analysis: &Analysis, done: usize) -> Vec<(usize, Option<usize>)> {
    let before = |&(step, _): &(usize, Option<usize>)| {
        let first = analysis.found[step].begins_with;
        Some((view.composition.segments[first].after?, Some(first)))
    };
    let mut path: Vec<_> = core::iter::successors(Some((done, None)), before).collect();
    path.reverse();
    path
}

/// The window of a step, and the time between it and the preceding window.
struct Window<'a> {
    view: &'a View<'a>,
    analysis: &'a Analysis,
    step: usize,
    /// The segment that it releases, with whose window the bound goes on.
    follower: Option<usize>,
    /// The behaviour that the table is about.
    own: usize,
}

impl<'a> Window<'a> {
    fn add(&self, table: &mut Table, preemptions: &mut Preemptions<'a>) {
        let view = self.view;
        let found = &self.analysis.found[self.step];
        let first = &view.composition.segments[found.begins_with];
        for part in first.delay.iter().chain(&first.jitter) {
            table.add_part(part, 1);
        }
        self.add_execution(self.step, found.own_jobs, table);
        self.add_blocking(table);
        let mut chain = vec![self.step];
        chain.extend(core::iter::successors(
            view.composition.segments[self.step].after,
            |&step| view.composition.segments[step].after,
        ));
        let interference = match self.follower {
            Some(follower) => self.analysis.interference_before(self.step, follower),
            None => self.analysis.interference(self.step),
        };
        for (other, times) in interference {
            match view.interrupt(other) {
                Some(part) => preemptions.interrupts.push((part, times)),
                None if chain.contains(&other) => self.add_execution(other, times, table),
                None => preemptions.add(view, other, times),
            }
        }
        let period_ns = self.analysis.steps[self.step].task.period_ns;
        let later_ns = i128::from(found.job) * i128::from(period_ns) + i128::from(found.later_ns);
        let times = found.job.max(u64::from(found.later_ns > 0));
        table.add(
            Layer::Application,
            "arrived later".to_owned(),
            times,
            -later_ns,
        );
    }

    /// Adds the execution of a segment of the chain.
    fn add_execution(&self, segment: usize, jobs: u64, table: &mut Table) {
        for part in &self.view.composition.segments[segment].execution {
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
        let (view, steps) = (self.view, &self.analysis.steps);
        let Some(blocked) = self
            .analysis
            .blocked(self.step, view.composition.segments.len())
        else {
            return;
        };
        let segment = &view.composition.segments[blocked];
        segment
            .blocking
            .iter()
            .for_each(|part| table.add_part(part, 1));
        for wait in view.waits(blocked, &|segment: usize| steps[segment].level) {
            let holder = view.composition.segments[wait.holder].behaviour;
            let resource = &view.system.resources[wait.resource].name;
            let what = format!("{resource} held by {}", view.system.behaviours[holder].name);
            table.add(Layer::Application, what, 1, wait.ns.into());
        }
        if let Some(holder) = self.analysis.level_holders[blocked] {
            let behaviour = view.composition.segments[holder.segment].behaviour;
            let name = &view.system.behaviours[behaviour].name;
            let what = format!("{name} on the last level");
            table.add(Layer::Application, what, 1, holder.ns.into());
        }
    }
}

/// A table that sums shares.
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

/// The preemptions by behaviour and layer: their number and time.
#[derive(Default)]
struct Preemptions<'a> {
    by: BTreeMap<usize, BTreeMap<Layer, (u64, i128)>>,
    interrupts: Vec<(&'a Part, u64)>,
}

impl Preemptions<'_> {
    fn add(&mut self, view: &View<'_>, segment: usize, times: u64) {
        let mine = self
            .by
            .entry(view.composition.segments[segment].behaviour)
            .or_default();
        for (layer, ns) in view.layers(segment) {
            let (before, sum) = mine.entry(layer).or_default();
            *before = before.saturating_add(times);
            *sum += i128::from(ns) * i128::from(times);
        }
    }

    /// Adds the longest ones by name, the others as one share.
    fn name(mut self, view: &View<'_>, table: &mut Table) {
        self.interrupts.sort_by_key(|(part, times)| {
            core::cmp::Reverse(i128::from(part.ns) * i128::from(*times))
        });
        for (index, &(part, times)) in self.interrupts.iter().enumerate() {
            if index < INTERRUPTS_NAMED || self.interrupts.len() == INTERRUPTS_NAMED + 1 {
                table.add_part(part, times);
            } else {
                table.add_called("other interrupts".to_owned(), part, times);
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
        // A share of "1 other" is listed by name instead.
        let named = if by.len() == NAMED + 1 {
            by.len()
        } else {
            by.len().min(NAMED)
        };
        let others = by.len() - named;
        for (index, (behaviour, layers)) in by.into_iter().enumerate() {
            let what = if index < named {
                format!("preempted by {}", view.system.behaviours[behaviour].name)
            } else {
                format!("preempted by {others} others")
            };
            for (layer, (times, ns)) in layers {
                table.add(layer, what.clone(), times, ns);
            }
        }
    }
}
