//! Advice: changes to the system, tried one at a time, and reported only if the deadline then holds.

use std::collections::BTreeMap;

use super::super::verdict::rounded_up;
use super::goals::period_ns;
use super::steps::{Analysis, View};
use crate::holistic::SchedulingPolicy;
use crate::holistic::{Step, StepResponse, holistic};

/// The maximum number of steps analysed for advice: about a hundred trials for some hundreds of steps, fewer for larger systems.
const STEPS_MAX: usize = 60_000;

/// The number of contributors that are tried.
const CONTRIBUTORS: usize = 3;

/// What precedes the changes in an explanation.
const SUFFICES: &str = " Each of these changes alone suffices: ";

/// Returns the changes that an explanation lists, of which each alone suffices.
pub(in super::super) fn remedies(explanation: &str) -> Vec<String> {
    let listed = explanation.split_once(SUFFICES);
    let listed = listed.map(|(_, listed)| listed.trim_end_matches('.').split("; "));
    listed.into_iter().flatten().map(str::to_owned).collect()
}

/// A deadline that is missed.
#[derive(Clone, Copy)]
pub(super) struct MissedDeadline {
    pub(super) activation: usize,
    pub(super) deadline_ns: u64,
}

/// The trials of changes.
pub(super) struct Advice<'a> {
    view: &'a View<'a>,
    analysis: &'a Analysis,
    tries_left: usize,
}

impl<'a> Advice<'a> {
    pub(super) fn new(view: &'a View<'a>, analysis: &'a Analysis) -> Self {
        let steps = analysis.steps.len().max(1);
        Self {
            view,
            analysis,
            tries_left: (STEPS_MAX / steps).max(20),
        }
    }

    /// Returns a sentence about changes that help, with a leading space; empty if no trial is left.
    pub(super) fn about(&mut self, target: MissedDeadline) -> String {
        if self.tries_left == 0 {
            return String::new();
        }
        let view = self.view;
        let own = view.composition.activations[target.activation].behaviour;
        let contributors = self.contributors(target);
        let name = |behaviour: usize| &view.system.behaviours[behaviour].name;
        let mut help: Vec<String> = vec![];
        if let Some(ns) = self.shorter(target, own) {
            help.push(format!("shorten its own execution by {}", rounded_up(ns)));
        }
        for &other in &contributors {
            if let Some(ns) = self.shorter(target, other) {
                help.push(format!("shorten {} by {}", name(other), rounded_up(ns)));
            }
            if self.moved(target, other) {
                help.push(format!("move {} to another CPU", name(other)));
            }
            if self.rarer(target, other) {
                help.push(format!("let {} run half as often", name(other)));
            }
            if let Some(priority) = self.raised(target, other) {
                help.push(format!(
                    "give it priority {priority}, above {}",
                    name(other)
                ));
            }
        }
        match help.as_slice() {
            [] => " No single change that was tried is enough: shorter execution, other CPUs, lower rates and \
                   other priorities of this behaviour and of those that take most of the time."
                .to_owned(),
            help => format!("{SUFFICES}{}.", help.join("; ")),
        }
    }

    /// Returns the behaviours that take most of the time on the way, the longest first; without a bound, those with the highest
    /// demand.
    fn contributors(&self, target: MissedDeadline) -> Vec<usize> {
        let mut by: BTreeMap<usize, u128> = BTreeMap::new();
        let activation = &self.view.composition.activations[target.activation];
        let mut next = Some(activation.done);
        while let Some(step) = next {
            for (other, times) in self.in_the_way(step) {
                if let Some(segment) = self.view.composition.segments.get(other) {
                    let ns =
                        u128::from(self.analysis.steps[other].task.worst_ns) * u128::from(times);
                    let sum = by.entry(segment.behaviour).or_default();
                    *sum = sum.saturating_add(ns);
                }
            }
            next = self.view.composition.segments[step].after;
        }
        by.remove(&activation.behaviour);
        let mut by: Vec<(usize, u128)> = by.into_iter().collect();
        by.sort_by_key(|&(_, ns)| core::cmp::Reverse(ns));
        by.into_iter()
            .take(CONTRIBUTORS)
            .map(|(behaviour, _)| behaviour)
            .collect()
    }

    fn in_the_way(&self, step: usize) -> Vec<(usize, u64)> {
        if self.analysis.found[step].response.bound_ns().is_some() {
            return self.analysis.interference(step);
        }
        let steps = &self.analysis.steps;
        let fixed = self.view.composition.processors[steps[step].processor].scheduling
            == SchedulingPolicy::FixedPriority;
        let counts = |&other: &usize| {
            other != step
                && steps[other].processor == steps[step].processor
                && (!fixed || steps[other].level <= steps[step].level)
        };
        // The jobs in one second; only their ratio matters.
        let others = (0..steps.len()).filter(counts);
        others
            .map(|other| (other, steps[other].task.arrivals().jobs_in(1_000_000_000)))
            .collect()
    }

    /// Returns the least reduction of a behaviour's execution that suffices, if there is one.
    fn shorter(&mut self, target: MissedDeadline, behaviour: usize) -> Option<u64> {
        let worst_ns = self.view.system.urgent_ns(behaviour);
        let without = |by: u64| {
            self.view
                .grown(&self.analysis.steps, behaviour, -i128::from(by))
        };
        if worst_ns < 2 || !self.holds(target, &without(worst_ns - 1)) {
            return None;
        }
        // A thousandth of the execution is fine enough, and the message rounds up.
        let fine = (worst_ns / 1_000).max(1);
        let (mut too_little, mut enough) = (0, worst_ns - 1);
        while enough - too_little > fine && self.tries_left > 0 {
            let middle = u64::midpoint(too_little, enough);
            if self.holds(target, &without(middle)) {
                enough = middle;
            } else {
                too_little = middle;
            }
        }
        Some(enough)
    }

    /// Returns whether the deadline holds if a behaviour executes on another CPU.
    fn moved(&mut self, target: MissedDeadline, behaviour: usize) -> bool {
        let segments = &self.view.composition.segments;
        let done = self.view.composition.activations[target.activation].done;
        let mut chain = vec![];
        let mut next = Some(done);
        while let Some(step) = next {
            chain.push(step);
            next = segments[step].after;
        }
        // A part of the target's own chain would need a call to another CPU, whose cost is unknown here.
        if chain
            .iter()
            .any(|&step| segments[step].behaviour == behaviour)
        {
            return false;
        }
        let mut steps = self.analysis.steps.clone();
        for (step, segment) in steps.iter_mut().zip(segments) {
            if segment.behaviour == behaviour {
                step.task.worst_ns = 0;
            }
        }
        self.holds(target, &steps)
    }

    /// Returns whether the deadline holds if the behaviour's root arrives half as often.
    fn rarer(&mut self, target: MissedDeadline, behaviour: usize) -> bool {
        let activation = &self.view.composition.activations[target.activation];
        let roots = self.view.goals.of_behaviour[behaviour].iter();
        let mut roots: Vec<usize> = roots
            .map(|&index| self.view.composition.activations[index].root)
            .collect();
        roots.dedup();
        let &[root] = roots.as_slice() else {
            return false;
        };
        // Only a root has a rate of its own, and the rate of the target's root is a requirement.
        if root != behaviour || root == activation.root {
            return false;
        }
        let Some(period_ns) = period_ns(&self.view.system.behaviours[root]).checked_mul(2) else {
            return false;
        };
        let mut steps = self.analysis.steps.clone();
        let segments = &self.view.composition.segments;
        for (step, segment) in steps.iter_mut().zip(segments) {
            if segment.root == root {
                step.task.period_ns = period_ns;
            }
        }
        self.holds(target, &steps)
    }

    /// Returns a priority above the other behaviour's with which the deadline holds and no other deadline is newly missed.
    fn raised(&mut self, target: MissedDeadline, other: usize) -> Option<i16> {
        let goals = self.view.goals;
        let done = self.view.composition.activations[target.activation].done;
        let owner = goals.owner_of[done];
        let above = *goals.of_owner.get(&other)?;
        let priority = self.analysis.priorities[above]?.checked_add(1)?;
        let in_range = i32::from(priority) <= self.view.system.priorities.most_urgent;
        let raises = self.analysis.priorities[owner].is_some_and(|now| now < priority);
        if !in_range || !raises || !self.spend() {
            return None;
        }
        let mut priorities = self.analysis.priorities.clone();
        priorities[owner] = Some(priority);
        let next = self.view.analyse(priorities);
        let holds = |found: &[StepResponse], (step, deadline_ns): (usize, u64)| {
            found[step].response.meets(deadline_ns) == Some(true)
        };
        let harms =
            |end: (usize, u64)| holds(&self.analysis.found, end) && !holds(&next.found, end);
        let helps = holds(&next.found, (done, target.deadline_ns));
        (helps && !self.view.deadlines().any(harms)).then_some(priority)
    }

    fn holds(&mut self, target: MissedDeadline, steps: &[Step]) -> bool {
        if !self.spend() {
            return false;
        }
        let done = self.view.composition.activations[target.activation].done;
        let found = holistic(steps, &self.analysis.policies, self.view.limits);
        found[done].response.meets(target.deadline_ns) == Some(true)
    }

    fn spend(&mut self) -> bool {
        let left = self.tries_left > 0;
        self.tries_left = self.tries_left.saturating_sub(1);
        left
    }
}
