//! The sensitivity of each behaviour: how much its own execution may grow, and what then misses its deadline first.
//!
//! The sensitivity analysis covers steps that grow together. Here, each step's deadline is the shortest of the activations and
//! chains that end with it. Under earliest deadline first, deadlines also order the jobs and cannot be replaced. So systems with
//! such nodes are analysed by trial, within [`STEPS_MAX`].

use super::super::report::{BehaviourBound, Sensitivity};
use super::steps::{Analysis, View};
use crate::holistic::SchedulingPolicy;
use crate::holistic::{Step, StepResponse, holistic};
use crate::sensitivity;

/// The maximum number of steps analysed in trials.
const STEPS_MAX: usize = 2_000_000;

/// Adds the sensitivity to each behaviour.
pub(super) fn add(view: &View<'_>, analysis: &Analysis, behaviours: &mut [BehaviourBound]) {
    let by_deadline = |processor: &super::super::composition::Processor| {
        processor.scheduling == SchedulingPolicy::EarliestDeadline
    };
    let sensitivities = if view.composition.processors.iter().any(by_deadline) {
        by_trying(view, analysis)
    } else {
        by_analysis(view, analysis)
    };
    for (behaviour, sensitivity) in behaviours.iter_mut().zip(sensitivities) {
        behaviour.sensitivity = sensitivity;
    }
}

fn by_analysis(view: &View<'_>, analysis: &Analysis) -> Vec<Option<Sensitivity>> {
    let mut steps = analysis.steps.clone();
    // A step without a deadline ends before the last deadline if its successor does.
    let last_ns = view.deadlines().map(|(_, deadline_ns)| deadline_ns).max();
    for step in &mut steps {
        step.task.deadline_ns = last_ns.unwrap_or(u64::MAX);
    }
    for (step, deadline_ns) in view.deadlines() {
        let least = &mut steps[step].task.deadline_ns;
        *least = deadline_ns.min(*least);
    }
    let asked = sensitivity::GrowthAnalysis::new(&steps, &analysis.policies, view.limits);
    let answer = |behaviour: usize| {
        let growth = view.growth(behaviour);
        let growing: Vec<usize> = growth.iter().map(|&(segment, _)| segment).collect();
        let found = asked.may_grow(&growing);
        let may_grow_ns = found.by_ns.map(|ns| of_execution(ns, &growth));
        // Segments also have the execution of others, which does not shrink.
        let least = -i128::from(view.system.urgent_ns(behaviour));
        Some(Sensitivity {
            may_grow_ns: may_grow_ns.filter(|&ns| i128::from(ns) >= least),
            breaks_first: found.breaks_first.and_then(|step| ended_by(view, step)),
        })
    };
    (0..view.system.behaviours.len()).map(answer).collect()
}

/// Converts the growth of segments to the growth of the behaviour: a segment that executes it several times grows so many times.
fn of_execution(ns: i64, growth: &[(usize, u64)]) -> i64 {
    let times = growth
        .iter()
        .map(|&(_, times)| i64::try_from(times).unwrap_or(i64::MAX));
    if ns >= 0 {
        ns / times.max().unwrap_or(1)
    } else {
        // Rounded down, so that the segment with the fewest executions shrinks enough.
        ns.div_euclid(times.min().unwrap_or(1))
    }
}

/// Returns the behaviour or chain with the shortest deadline that ends with a step.
fn ended_by(view: &View<'_>, step: usize) -> Option<String> {
    let activations = view
        .composition
        .activations
        .iter()
        .zip(&view.goals.deadlines_ns);
    let here = activations.filter(|(activation, _)| activation.done == step);
    let behaviours = here.map(|(activation, &deadline_ns)| {
        (
            deadline_ns,
            0,
            &view.system.behaviours[activation.behaviour].name,
        )
    });
    let chains = view.system.chains.iter().zip(&view.goals.of_chain);
    let ends = |index: &usize| view.composition.activations[*index].done == step;
    let chains = chains.filter(|(_, activations)| activations.iter().any(ends));
    let chains = chains.map(|(chain, _)| (chain.deadline_ns, 1, &chain.name));
    let first = behaviours
        .chain(chains)
        .min()
        .map(|(.., name)| name.clone());
    first.or_else(|| {
        let later = view
            .composition
            .segments
            .iter()
            .position(|segment| segment.after == Some(step));
        later.and_then(|later| ended_by(view, later))
    })
}

fn by_trying(view: &View<'_>, analysis: &Analysis) -> Vec<Option<Sensitivity>> {
    let tries = STEPS_MAX / analysis.steps.len().max(1);
    let each = tries / view.system.behaviours.len().max(1);
    // Bisection of the longest time to a nanosecond takes this many trials.
    if each < 65 {
        return vec![None; view.system.behaviours.len()];
    }
    let trial = Trial { view, analysis };
    (0..view.system.behaviours.len())
        .map(|behaviour| Some(trial.about(behaviour)))
        .collect()
}

struct Trial<'a> {
    view: &'a View<'a>,
    analysis: &'a Analysis,
}

impl Trial<'_> {
    fn about(&self, behaviour: usize) -> Sensitivity {
        let worst_ns = i64::try_from(self.view.system.urgent_ns(behaviour));
        let grows = !self.view.growth(behaviour).is_empty();
        let (Ok(worst_ns), true) = (worst_ns, grows) else {
            return self.nothing();
        };
        let missed = self.first_missed(&self.analysis.found);
        // Bisection between a growth that holds and one that does not.
        let (mut holds, mut breaks) = if missed.is_none() {
            (0, self.too_much())
        } else {
            (-worst_ns, 0)
        };
        if missed.is_some() && self.broken_by(behaviour, holds).is_some() {
            return Sensitivity {
                may_grow_ns: None,
                breaks_first: missed,
            };
        }
        let mut breaks_first = match missed {
            Some(missed) => Some(missed),
            None => self.broken_by(behaviour, breaks),
        };
        if breaks_first.is_none() {
            return self.nothing();
        }
        while breaks - holds > 1 {
            let middle = i64::midpoint(holds, breaks);
            match self.broken_by(behaviour, middle) {
                None => holds = middle,
                Some(first) => {
                    breaks = middle;
                    breaks_first = Some(first);
                }
            }
        }
        Sensitivity {
            may_grow_ns: Some(holds),
            breaks_first,
        }
    }

    fn nothing(&self) -> Sensitivity {
        Sensitivity {
            may_grow_ns: None,
            breaks_first: self.first_missed(&self.analysis.found),
        }
    }

    /// Returns a growth beyond every deadline.
    fn too_much(&self) -> i64 {
        let deadlines = self.view.deadlines().map(|(_, deadline_ns)| deadline_ns);
        let most = deadlines.max().unwrap_or(0).saturating_add(1);
        i64::try_from(most)
            .unwrap_or(i64::MAX / 2)
            .min(i64::MAX / 2)
    }

    /// Returns what misses its deadline first with this growth.
    fn broken_by(&self, behaviour: usize, by_ns: i64) -> Option<String> {
        let steps: Vec<Step> = self
            .view
            .grown(&self.analysis.steps, behaviour, by_ns.into());
        self.first_missed(&holistic(&steps, &self.analysis.policies, self.view.limits))
    }

    fn first_missed(&self, found: &[StepResponse]) -> Option<String> {
        let missed = |&(step, deadline_ns): &(usize, u64)| {
            found[step].response.meets(deadline_ns) != Some(true)
        };
        let missed = self.view.deadlines().filter(missed);
        let first = missed.min_by_key(|&(_, deadline_ns)| deadline_ns)?;
        ended_by(self.view, first.0)
    }
}
