//! A composed system with priorities, as steps for the analysis: the segments in their order, and after them the interrupts.

use super::super::checked::Layer;
use super::super::composed::{Composed, Part};
use super::super::system::{Scheduling, System};
use super::blocking::{Levels, Lockers, Wait};
use super::goals::{Goals, period_ns};
use crate::holistic::{Found, Policy, Step, holistic, interference};
use crate::{Limits, Task};

/// What all parts of a check look at.
pub(super) struct View<'a> {
    pub(super) system: &'a System,
    pub(super) composed: &'a Composed,
    pub(super) goals: &'a Goals,
    pub(super) lockers: Lockers<'a>,
    pub(super) limits: Limits,
    /// What each interrupt is, in the order of the steps after the segments: its processor and its place there.
    pub(super) interrupts: Vec<(usize, usize)>,
}

/// Bounds with the steps that they are of.
pub(super) struct Analysed {
    /// The priority of each owner.
    pub(super) priorities: Vec<Option<i16>>,
    pub(super) steps: Vec<Step>,
    pub(super) policies: Vec<Policy>,
    pub(super) found: Vec<Found>,
}

impl Analysed {
    /// The other steps in a step's window, and how many times.
    pub(super) fn interference(&self, step: usize) -> Vec<(usize, u64)> {
        interference(&self.steps, &self.policies, &self.found, step)
    }

    /// The segment whose blocking is in a step's window: its own, or, where deadlines decide, that of one in the busy period.
    pub(super) fn blocked(&self, step: usize, segments: usize) -> Option<usize> {
        let ns = self.found[step].blocking_ns;
        let its = |&other: &usize| {
            let other = &self.steps[other];
            other.processor == self.steps[step].processor && other.task.blocking_ns == ns
        };
        core::iter::once(step)
            .chain(0..segments)
            .find(its)
            .filter(|_| ns > 0)
    }
}

impl<'a> View<'a> {
    pub(super) fn new(
        system: &'a System,
        composed: &'a Composed,
        goals: &'a Goals,
        limits: Limits,
    ) -> Self {
        let processors = composed.processors.iter().enumerate();
        let interrupts = processors.flat_map(|(processor, what)| {
            (0..what.interrupts.len()).map(move |place| (processor, place))
        });
        Self {
            system,
            composed,
            goals,
            lockers: Lockers::new(system, composed, goals),
            limits,
            interrupts: interrupts.collect(),
        }
    }

    /// The bounds with these priorities of the owners.
    pub(super) fn analyse(&self, priorities: Vec<Option<i16>>) -> Analysed {
        let levels = self.levels(&priorities);
        let steps = self.steps(&|segment| levels[segment]);
        let policies = self.policies();
        let found = holistic(&steps, &policies, self.limits);
        Analysed {
            priorities,
            steps,
            policies,
            found,
        }
    }

    /// The level of each segment: interrupts are before all, at 0.
    pub(super) fn levels(&self, priorities: &[Option<i16>]) -> Vec<u32> {
        let mut used: Vec<i16> = priorities.iter().copied().flatten().collect();
        used.sort_unstable_by(|a, b| b.cmp(a));
        used.dedup();
        let level = |&owner: &usize| {
            let priority = priorities[owner]?;
            u32::try_from(used.partition_point(|&other| other > priority)).ok()
        };
        // Where deadlines decide there are no priorities, and one level below the interrupts.
        let of = |owner: &usize| level(owner).unwrap_or(0).saturating_add(1);
        let mut levels: Vec<u32> = self.goals.owner_of.iter().map(of).collect();
        for (level, segment) in levels.iter_mut().zip(&self.composed.segments) {
            if self.composed.processors[segment.processor].scheduling
                == Scheduling::EarliestDeadline
            {
                *level = 1;
            }
        }
        levels
    }

    /// The segments, and then the interrupts. Where deadlines decide, an interrupt has the earliest that there can be: it goes before
    /// every job that is not late yet. So what holds there is counted in whole, and a bound beyond its deadline leaves out the interrupts
    /// after that deadline.
    pub(super) fn steps(&self, level: Levels<'_>) -> Vec<Step> {
        let segments = 0..self.composed.segments.len();
        let mut steps: Vec<Step> = segments.map(|index| self.step(index, level)).collect();
        for (index, &(processor, place)) in self.interrupts.iter().enumerate() {
            let interrupt = &self.composed.processors[processor].interrupts[place];
            let task = Task::periodic(interrupt.period_ns, interrupt.cost.ns);
            let task = match self.composed.processors[processor].scheduling {
                Scheduling::FixedPriority => task,
                Scheduling::EarliestDeadline => task.with_deadline(1),
            };
            steps.push(Step {
                task,
                processor,
                level: 0,
                after: None,
                delay_ns: 0,
                transaction: self.system.behaviours.len() + index,
            });
        }
        steps
    }

    fn step(&self, index: usize, level: Levels<'_>) -> Step {
        let segment = &self.composed.segments[index];
        let blocking_ns = self.waits(index, level).into_iter().map(|wait| wait.ns);
        let blocking_ns = blocking_ns.fold(sum(&segment.blocking), u64::saturating_add);
        let worst_ns = sum(&segment.execution).saturating_add(self.locks(index).ns);
        let owner = &self.goals.owners[self.goals.owner_of[index]];
        let period_ns = period_ns(&self.system.behaviours[segment.root]);
        Step {
            task: Task::periodic(period_ns, worst_ns)
                .with_deadline(owner.deadline_ns)
                .with_jitter(sum(&segment.jitter))
                .with_blocking(blocking_ns),
            processor: segment.processor,
            level: level(index),
            after: segment.after,
            delay_ns: sum(&segment.delay),
            transaction: segment.root,
        }
    }

    /// The sections that keep a segment waiting.
    pub(super) fn waits(&self, segment: usize, level: Levels<'_>) -> Vec<Wait> {
        self.lockers.waits(segment, level)
    }

    /// What a segment executes for locks that others hold.
    pub(super) fn locks(&self, segment: usize) -> Part {
        let times = self.lockers.contended(segment);
        let each = self.composed.segments[segment].contended_lock_ns;
        Part {
            layer: Layer::OperatingSystem,
            what: "locks that others hold".to_owned(),
            code_of: None,
            times,
            ns: times.saturating_mul(each),
        }
    }

    /// What an interrupt is, of a step that is one.
    pub(super) fn interrupt(&self, step: usize) -> Option<&Part> {
        let index = step.checked_sub(self.composed.segments.len())?;
        let &(processor, place) = self.interrupts.get(index)?;
        Some(&self.composed.processors[processor].interrupts[place].cost)
    }

    /// What a step executes, by layer.
    pub(super) fn layers(&self, step: usize) -> Vec<(Layer, u64)> {
        if let Some(part) = self.interrupt(step) {
            return vec![(part.layer, part.ns)];
        }
        let mut layers: Vec<(Layer, u64)> = vec![];
        let locks = self.locks(step);
        for part in self.composed.segments[step]
            .execution
            .iter()
            .chain([&locks])
        {
            match layers.iter_mut().find(|(layer, _)| *layer == part.layer) {
                Some((_, ns)) => *ns = ns.saturating_add(part.ns),
                None => layers.push((part.layer, part.ns)),
            }
        }
        layers.retain(|&(_, ns)| ns > 0);
        layers
    }

    pub(super) fn policies(&self) -> Vec<Policy> {
        let policy = |scheduling| match scheduling {
            Scheduling::FixedPriority => Policy::FixedPriority,
            Scheduling::EarliestDeadline => Policy::EarliestDeadline,
        };
        let processors = self.composed.processors.iter();
        processors
            .map(|processor| policy(processor.scheduling))
            .collect()
    }

    /// What must be done when: the step that ends it, and its deadline; the behaviours' first, then the chains'.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let activations = self
            .composed
            .activations
            .iter()
            .zip(&self.goals.deadlines_ns);
        let chains = self.system.chains.iter().zip(&self.goals.of_chain);
        let ends = |index: &usize| self.composed.activations[*index].done;
        activations
            .map(|(activation, &deadline_ns)| (activation.done, deadline_ns))
            .chain(chains.flat_map(move |(chain, activations)| {
                activations
                    .iter()
                    .map(move |index| (ends(index), chain.deadline_ns))
            }))
    }

    /// How much longer each segment executes when a behaviour's own execution gets 1 ns longer: those that get longer at all.
    pub(super) fn growth(&self, behaviour: usize) -> Vec<(usize, u64)> {
        let times = |segment: usize| {
            let parts = self.composed.segments[segment].execution.iter();
            let its = parts.filter(|part| part.code_of == Some(behaviour));
            its.fold(0, |sum: u64, part| sum.saturating_add(part.times))
        };
        let all = (0..self.composed.segments.len()).map(|segment| (segment, times(segment)));
        all.filter(|&(_, times)| times > 0).collect()
    }

    /// The steps when a behaviour's own execution is so much longer, or shorter.
    pub(super) fn grown(&self, steps: &[Step], behaviour: usize, by_ns: i128) -> Vec<Step> {
        let mut steps = steps.to_vec();
        for (segment, times) in self.growth(behaviour) {
            let worst_ns = &mut steps[segment].task.worst_ns;
            let grown = i128::from(*worst_ns) + by_ns * i128::from(times);
            *worst_ns = u64::try_from(grown.max(0)).unwrap_or(u64::MAX);
        }
        steps
    }

    /// Whether everything is proven.
    pub(super) fn holds(&self, found: &[Found]) -> bool {
        let holds = |(step, deadline_ns): (usize, u64)| {
            found[step].response.meets(deadline_ns) == Some(true)
        };
        self.deadlines().all(holds)
    }
}

/// The sum of parts, in ns.
pub(super) fn sum(parts: &[Part]) -> u64 {
    parts
        .iter()
        .fold(0, |sum, part| sum.saturating_add(part.ns))
}
