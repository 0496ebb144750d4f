//! What would help: changes that were tried, one at a time, and are told only if the deadline holds with them.

use std::collections::BTreeMap;

use super::super::system::Scheduling;
use super::super::verdict::rounded_up;
use super::goals::period_ns;
use super::steps::{Analysed, View};
use crate::holistic::{Found, Step, holistic};

/// How many steps may be analysed for advice, in all: a hundred tries for a system of some hundreds, fewer for larger ones.
const STEPS_MAX: usize = 60_000;

/// How many of those that are in the way are looked at.
const CONTRIBUTORS: usize = 3;

/// A deadline that is missed.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) activation: usize,
    pub(super) deadline_ns: u64,
}

/// Tries changes.
pub(super) struct Advice<'a> {
    view: &'a View<'a>,
    analysed: &'a Analysed,
    tries_left: usize,
}

impl<'a> Advice<'a> {
    pub(super) fn new(view: &'a View<'a>, analysed: &'a Analysed) -> Self {
        let steps = analysed.steps.len().max(1);
        Self {
            view,
            analysed,
            tries_left: (STEPS_MAX / steps).max(20),
        }
    }

    /// A sentence about what would help, with a space before it; empty where no try was left.
    pub(super) fn about(&mut self, target: Target) -> String {
        if self.tries_left == 0 {
            return String::new();
        }
        let view = self.view;
        let own = view.composed.activations[target.activation].behaviour;
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
            [] => " None of the changes that were tried is enough alone: shorter execution, other CPUs, lower rates and \
                   other priorities of this and of what takes most of the time."
                .to_owned(),
            help => format!(" Each of these alone would do: {}.", help.join("; ")),
        }
    }

    /// The behaviours that take most of the time on the way there, the longest first; where there is no bound, those that ask for most.
    fn contributors(&self, target: Target) -> Vec<usize> {
        let mut by: BTreeMap<usize, u128> = BTreeMap::new();
        let activation = &self.view.composed.activations[target.activation];
        let mut next = Some(activation.done);
        while let Some(step) = next {
            for (other, times) in self.in_the_way(step) {
                if let Some(segment) = self.view.composed.segments.get(other) {
                    let ns =
                        u128::from(self.analysed.steps[other].task.worst_ns) * u128::from(times);
                    let sum = by.entry(segment.behaviour).or_default();
                    *sum = sum.saturating_add(ns);
                }
            }
            next = self.view.composed.segments[step].after;
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
        if self.analysed.found[step].response.bound_ns().is_some() {
            return self.analysed.interference(step);
        }
        let steps = &self.analysed.steps;
        let fixed = self.view.composed.processors[steps[step].processor].scheduling
            == Scheduling::FixedPriority;
        let counts = |&other: &usize| {
            other != step
                && steps[other].processor == steps[step].processor
                && (!fixed || steps[other].level <= steps[step].level)
        };
        // In one second: what matters is how they compare.
        let others = (0..steps.len()).filter(counts);
        others
            .map(|other| {
                (
                    other,
                    1_000_000_000_u64.div_ceil(steps[other].task.period_ns),
                )
            })
            .collect()
    }

    /// The least by which a behaviour's execution must get shorter, if it can.
    fn shorter(&mut self, target: Target, behaviour: usize) -> Option<u64> {
        let worst_ns = self.view.system.behaviours[behaviour].execution.worst_ns();
        let without = |by: u64| {
            self.view
                .grown(&self.analysed.steps, behaviour, -i128::from(by))
        };
        if worst_ns < 2 || !self.holds(target, &without(worst_ns - 1)) {
            return None;
        }
        // To a thousandth of it: nobody cuts finer, and it is told rounded up.
        let fine = (worst_ns / 1_000).max(1);
        let (mut too_little, mut enough) = (0, worst_ns - 1);
        while enough - too_little > fine && self.tries_left > 0 {
            let middle = u64::midpoint(too_little, enough);
            match self.holds(target, &without(middle)) {
                true => enough = middle,
                false => too_little = middle,
            }
        }
        Some(enough)
    }

    /// Whether it holds when what a behaviour executes beside the target is elsewhere.
    fn moved(&mut self, target: Target, behaviour: usize) -> bool {
        let segments = &self.view.composed.segments;
        let done = self.view.composed.activations[target.activation].done;
        let mut chain = vec![];
        let mut next = Some(done);
        while let Some(step) = next {
            chain.push(step);
            next = segments[step].after;
        }
        // A part of its own chain cannot leave without a call to another CPU, which costs what is not known here.
        if chain
            .iter()
            .any(|&step| segments[step].behaviour == behaviour)
        {
            return false;
        }
        let mut steps = self.analysed.steps.clone();
        for (step, segment) in steps.iter_mut().zip(segments) {
            if segment.behaviour == behaviour {
                step.task.worst_ns = 0;
            }
        }
        self.holds(target, &steps)
    }

    /// Whether it holds when what begins a behaviour comes half as often.
    fn rarer(&mut self, target: Target, behaviour: usize) -> bool {
        let activation = &self.view.composed.activations[target.activation];
        let roots = self.view.goals.of_behaviour[behaviour].iter();
        let mut roots: Vec<usize> = roots
            .map(|&index| self.view.composed.activations[index].root)
            .collect();
        roots.dedup();
        let &[root] = roots.as_slice() else {
            return false;
        };
        // Only a behaviour that begins itself has a rate of its own, and that of the target is its purpose.
        if root != behaviour || root == activation.root {
            return false;
        }
        let Some(period_ns) = period_ns(&self.view.system.behaviours[root]).checked_mul(2) else {
            return false;
        };
        let mut steps = self.analysed.steps.clone();
        let segments = &self.view.composed.segments;
        for (step, segment) in steps.iter_mut().zip(segments) {
            if segment.root == root {
                step.task.period_ns = period_ns;
            }
        }
        self.holds(target, &steps)
    }

    /// The priority above another's with which it holds and nothing is missed that was not.
    fn raised(&mut self, target: Target, other: usize) -> Option<i16> {
        let goals = self.view.goals;
        let done = self.view.composed.activations[target.activation].done;
        let owner = goals.owner_of[done];
        let above = *goals.of_owner.get(&other)?;
        let priority = self.analysed.priorities[above]?.checked_add(1)?;
        let in_range = i32::from(priority) <= self.view.system.priorities.most_urgent;
        let raises = self.analysed.priorities[owner].is_some_and(|now| now < priority);
        if !in_range || !raises || !self.spend() {
            return None;
        }
        let mut priorities = self.analysed.priorities.clone();
        priorities[owner] = Some(priority);
        let next = self.view.analyse(priorities);
        let holds = |found: &[Found], (step, deadline_ns): (usize, u64)| {
            found[step].response.meets(deadline_ns) == Some(true)
        };
        let harms =
            |end: (usize, u64)| holds(&self.analysed.found, end) && !holds(&next.found, end);
        let helps = holds(&next.found, (done, target.deadline_ns));
        (helps && !self.view.deadlines().any(harms)).then_some(priority)
    }

    fn holds(&mut self, target: Target, steps: &[Step]) -> bool {
        if !self.spend() {
            return false;
        }
        let done = self.view.composed.activations[target.activation].done;
        let found = holistic(steps, &self.analysed.policies, self.view.limits);
        found[done].response.meets(target.deadline_ns) == Some(true)
    }

    fn spend(&mut self) -> bool {
        let left = self.tries_left > 0;
        self.tries_left = self.tries_left.saturating_sub(1);
        left
    }
}
