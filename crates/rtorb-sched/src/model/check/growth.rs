//! How much longer each behaviour's own execution may get, and what breaks first then.
//!
//! The analysis answers for steps that grow together. What it is asked here has the goals in place of the deadlines that order steps:
//! those of what ends with each. Where deadlines decide who runs first they cannot be changed, and interrupts are there the
//! earliest of all; so on such nodes it is found by trying, as long as [`STEPS_MAX`] allows.

use super::super::checked::{BehaviourBound, Sensitivity};
use super::super::system::Scheduling;
use super::steps::{Analysed, View};
use crate::holistic::{Found, Step, holistic};
use crate::sensitivity;

/// How many steps may be analysed for trying, in all.
const STEPS_MAX: usize = 2_000_000;

/// Adds to each behaviour how much longer it may get.
pub(super) fn add(view: &View<'_>, analysed: &Analysed, behaviours: &mut [BehaviourBound]) {
    let by_deadline = |processor: &super::super::composed::Processor| {
        processor.scheduling == Scheduling::EarliestDeadline
    };
    let sensitivities = match view.composed.processors.iter().any(by_deadline) {
        true => by_trying(view, analysed),
        false => by_analysis(view, analysed),
    };
    for (behaviour, sensitivity) in behaviours.iter_mut().zip(sensitivities) {
        behaviour.sensitivity = sensitivity;
    }
}

fn by_analysis(view: &View<'_>, analysed: &Analysed) -> Vec<Option<Sensitivity>> {
    let mut steps = analysed.steps.clone();
    // What nothing ends with is done before the last deadline if what follows it is.
    let last_ns = view.deadlines().map(|(_, deadline_ns)| deadline_ns).max();
    for step in &mut steps {
        step.task.deadline_ns = last_ns.unwrap_or(u64::MAX);
    }
    for (step, deadline_ns) in view.deadlines() {
        let least = &mut steps[step].task.deadline_ns;
        *least = deadline_ns.min(*least);
    }
    let asked = sensitivity::Sensitivity::new(&steps, &analysed.policies, view.limits);
    let answer = |behaviour: usize| {
        let growth = view.growth(behaviour);
        let growing: Vec<usize> = growth.iter().map(|&(segment, _)| segment).collect();
        let found = asked.may_grow(&growing);
        Some(Sensitivity {
            may_grow_ns: found.by_ns.map(|ns| of_execution(ns, &growth)),
            breaks_first: found.breaks_first.and_then(|step| ended_by(view, step)),
        })
    };
    (0..view.system.behaviours.len()).map(answer).collect()
}

/// From how much its segments may grow to how much it may: one that executes it several times grows so many times.
fn of_execution(ns: i64, growth: &[(usize, u64)]) -> i64 {
    let times = growth
        .iter()
        .map(|&(_, times)| i64::try_from(times).unwrap_or(i64::MAX));
    match ns >= 0 {
        true => ns / times.max().unwrap_or(1),
        // Down: by as much as helps the one with the fewest.
        false => ns.div_euclid(times.min().unwrap_or(1)),
    }
}

/// The behaviour or chain of the shortest deadline that ends with a step.
fn ended_by(view: &View<'_>, step: usize) -> Option<String> {
    let activations = view
        .composed
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
    let ends = |index: &usize| view.composed.activations[*index].done == step;
    let chains = chains.filter(|(_, activations)| activations.iter().any(ends));
    let chains = chains.map(|(chain, _)| (chain.deadline_ns, 1, &chain.name));
    let first = behaviours
        .chain(chains)
        .min()
        .map(|(.., name)| name.clone());
    first.or_else(|| {
        let later = view
            .composed
            .segments
            .iter()
            .position(|segment| segment.after == Some(step));
        later.and_then(|later| ended_by(view, later))
    })
}

fn by_trying(view: &View<'_>, analysed: &Analysed) -> Vec<Option<Sensitivity>> {
    let tries = STEPS_MAX / analysed.steps.len().max(1);
    let each = tries / view.system.behaviours.len().max(1);
    // As many as halving the longest time to a nanosecond takes.
    if each < 65 {
        return vec![None; view.system.behaviours.len()];
    }
    let trial = Trial { view, analysed };
    (0..view.system.behaviours.len())
        .map(|behaviour| Some(trial.about(behaviour)))
        .collect()
}

struct Trial<'a> {
    view: &'a View<'a>,
    analysed: &'a Analysed,
}

impl Trial<'_> {
    fn about(&self, behaviour: usize) -> Sensitivity {
        let worst_ns = i64::try_from(self.view.system.behaviours[behaviour].execution.worst_ns());
        let grows = !self.view.growth(behaviour).is_empty();
        let (Ok(worst_ns), true) = (worst_ns, grows) else {
            return self.nothing();
        };
        let missed = self.first_missed(&self.analysed.found);
        // Between one that holds and one that does not, from what is there.
        let (mut holds, mut breaks) = match missed.is_none() {
            true => (0, self.too_much()),
            false => (-worst_ns, 0),
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
            breaks_first: self.first_missed(&self.analysed.found),
        }
    }

    /// More than any execution may be: beyond every deadline.
    fn too_much(&self) -> i64 {
        let deadlines = self.view.deadlines().map(|(_, deadline_ns)| deadline_ns);
        let most = deadlines.max().unwrap_or(0).saturating_add(1);
        i64::try_from(most)
            .unwrap_or(i64::MAX / 2)
            .min(i64::MAX / 2)
    }

    /// What is not proven first when it gets so much longer.
    fn broken_by(&self, behaviour: usize, by_ns: i64) -> Option<String> {
        let steps: Vec<Step> = self
            .view
            .grown(&self.analysed.steps, behaviour, by_ns.into());
        self.first_missed(&holistic(&steps, &self.analysed.policies, self.view.limits))
    }

    fn first_missed(&self, found: &[Found]) -> Option<String> {
        let missed = |&(step, deadline_ns): &(usize, u64)| {
            found[step].response.meets(deadline_ns) != Some(true)
        };
        let missed = self.view.deadlines().filter(missed);
        let first = missed.min_by_key(|&(_, deadline_ns)| deadline_ns)?;
        ended_by(self.view, first.0)
    }
}
