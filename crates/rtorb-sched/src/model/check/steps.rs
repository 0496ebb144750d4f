//! The steps of the analysis: the segments of a composed system with priorities, then its interrupts.

use super::super::composition::{Composition, Part, Segment, sum_ns};
use super::super::report::Layer;
use super::super::system::System;
use super::blocking::{BlockingSection, Levels, Lockers};
use super::goals::{Goals, period_ns};
use crate::edf;
use crate::holistic::relatives::relatives;
use crate::holistic::{
    Begins, FIRST_NS, SchedulingPolicy, Step, StepResponse, holistic, interference,
};
use crate::{Phase, Response, SearchLimits, Task};

/// The input of all parts of a check.
pub(super) struct View<'a> {
    pub(super) system: &'a System,
    pub(super) composition: &'a Composition,
    pub(super) goals: &'a Goals,
    pub(super) lockers: Lockers<'a>,
    pub(super) limits: SearchLimits,
    /// The processor and index of each interrupt, in the order of the steps after the segments.
    pub(super) interrupts: Vec<(usize, usize)>,
}

/// The steps with priorities, and their responses.
pub(super) struct Analysis {
    /// The priority of each owner.
    pub(super) priorities: Vec<Option<i16>>,
    pub(super) steps: Vec<Step>,
    pub(super) policies: Vec<SchedulingPolicy>,
    /// The segment that blocks each segment on the last level of a lane, if one does.
    pub(super) level_holders: Vec<Option<LevelHolder>>,
    pub(super) found: Vec<StepResponse>,
}

/// A job that blocks another one on the last level of its lane.
#[derive(Clone, Copy)]
pub(super) struct LevelHolder {
    /// Its first segment.
    pub(super) segment: usize,
    /// How long it keeps the level.
    pub(super) ns: u64,
}

impl Analysis {
    /// Returns the interference in a step's window.
    pub(super) fn interference(&self, step: usize) -> Vec<(usize, u64)> {
        interference(&self.steps, &self.policies, &self.found, step)
    }

    /// Returns the interference in a step's window until it releases a follower.
    pub(super) fn interference_before(&self, step: usize, follower: usize) -> Vec<(usize, u64)> {
        let mut all = self.interference(step);
        let relatives = &relatives(&self.steps, &self.policies)[step];
        let early: Vec<usize> = relatives.overlapping(&self.steps, follower).collect();
        for (other, times) in &mut all {
            *times -= u64::from(early.contains(other));
        }
        all.retain(|&(_, times)| times > 0);
        all
    }

    /// Returns the segment whose blocking is in a step's window: its own, or, under earliest deadline first, one in the busy
    /// period.
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
        composition: &'a Composition,
        goals: &'a Goals,
        limits: SearchLimits,
    ) -> Self {
        let processors = composition.processors.iter().enumerate();
        let interrupts = processors.flat_map(|(processor, what)| {
            (0..what.interrupts.len()).map(move |place| (processor, place))
        });
        Self {
            system,
            composition,
            goals,
            lockers: Lockers::new(system, composition, goals),
            limits,
            interrupts: interrupts.collect(),
        }
    }

    /// Returns true if a job by deadline waits for another CPU: then how long a segment executes depends on the bounds of others.
    pub(super) fn has_suspensions(&self) -> bool {
        let mut segments = self.composition.segments.iter();
        segments.any(|segment| segment.waits_for.is_some())
    }

    /// Analyses the system with these priorities of the owners.
    pub(super) fn analyse(&self, priorities: Vec<Option<i16>>) -> Analysis {
        let levels = self.levels(&priorities);
        let steps = self.steps(&|segment| levels[segment]);
        let policies = self.policies();
        let found = holistic(&steps, &policies, self.limits);
        Analysis {
            priorities,
            policies,
            level_holders: self.level_holders(&steps),
            steps,
            found,
        }
    }

    /// Returns the level of each segment. Interrupts have level 0.
    pub(super) fn levels(&self, priorities: &[Option<i16>]) -> Vec<u32> {
        let mut used: Vec<i16> = priorities.iter().copied().flatten().collect();
        used.sort_unstable_by(|a, b| b.cmp(a));
        used.dedup();
        let level = |&owner: &usize| {
            let priority = priorities[owner]?;
            u32::try_from(used.partition_point(|&other| other > priority)).ok()
        };
        // Under earliest deadline first there are no priorities, and one level below the interrupts.
        let of = |owner: &usize| level(owner).unwrap_or(0).saturating_add(1);
        let mut levels: Vec<u32> = self.goals.owner_of.iter().map(of).collect();
        for (level, segment) in levels.iter_mut().zip(&self.composition.segments) {
            if self.composition.processors[segment.processor].scheduling
                == SchedulingPolicy::EarliestDeadline
            {
                *level = 1;
            }
        }
        levels
    }

    /// Returns the steps: the segments, then the interrupts, which precede every job, also by deadline.
    pub(super) fn steps(&self, level: Levels<'_>) -> Vec<Step> {
        let segments = 0..self.composition.segments.len();
        let mut steps: Vec<Step> = segments.map(|index| self.step(index, level)).collect();
        // What a job releases before the last one ends may come first too. Predecessors come first.
        for index in 0..steps.len() {
            let before = steps[index].after;
            steps[index].may_be_overtaken |=
                before.is_some_and(|before| steps[before].may_be_overtaken);
        }
        self.add_level_blocking(&mut steps);
        self.add_threads(&mut steps);
        for (index, &(processor, place)) in self.interrupts.iter().enumerate() {
            let interrupt = &self.composition.processors[processor].interrupts[place];
            let task = Task::periodic(interrupt.period_ns, interrupt.cost.ns)
                .with_burst(interrupt.burst)
                .with_jitter(interrupt.jitter_ns);
            let task = match self.composition.processors[processor].scheduling {
                SchedulingPolicy::FixedPriority => task,
                SchedulingPolicy::EarliestDeadline => task.with_deadline(FIRST_NS),
            };
            steps.push(Step {
                task,
                processor,
                level: 0,
                after: None,
                delay_ns: 0,
                transaction: self.system.behaviours.len() + index,
                begins: Begins::AtEnd,
                thread_until: None,
                may_be_overtaken: false,
            });
        }
        steps
    }

    fn step(&self, index: usize, level: Levels<'_>) -> Step {
        let segment = &self.composition.segments[index];
        let blocking_ns = self.section_blocking_ns(index, level);
        let worst_ns = sum_ns(&segment.execution).saturating_add(self.locks(index).ns);
        let owner = &self.goals.owners[self.goals.owner_of[index]];
        let root = &self.system.behaviours[segment.root];
        let task = Task::periodic(period_ns(root), worst_ns).with_burst(root.trigger.burst());
        let clock = self.system.placement(segment.root).node;
        let phase = root.trigger.offset_ns();
        let task = phase.map_or(task, |offset_ns| {
            task.with_phase(Phase { offset_ns, clock })
        });
        Step {
            task: task
                .with_deadline(owner.deadline_ns)
                .with_jitter(sum_ns(&segment.jitter))
                .with_blocking(blocking_ns),
            processor: segment.processor,
            level: level(index),
            after: segment.after,
            delay_ns: sum_ns(&segment.delay),
            transaction: segment.root,
            begins: self.begins(index),
            thread_until: None,
            // A root has one thread; the others have as many as a lane needs.
            may_be_overtaken: segment.priority_of != segment.root && self.waits_amid(segment),
        }
    }

    /// Sets until when the thread of a root performs a job, if it waits for another CPU meanwhile. A lane with levels counts such a time as
    /// execution, so that the segments of a job follow each other on their CPU.
    fn add_threads(&self, steps: &mut [Step]) {
        let segments = &self.composition.segments;
        for activation in &self.composition.activations {
            if activation.path.len() > 1 {
                continue;
            }
            let before = |&segment: &usize| segments[segment].after;
            let way = core::iter::successors(Some(activation.done), before);
            let way: Vec<usize> = way.take(segments.len()).collect();
            let first = way.last().copied().unwrap_or(activation.done);
            let here = segments[first].processor;
            if way
                .iter()
                .any(|&segment| segments[segment].processor != here)
            {
                steps[first].thread_until = Some(activation.done);
            }
        }
    }

    /// Returns the first segments of the roots whose thread is not proven to be free when the next job arrives, each with the time for which a
    /// job keeps it at least, if that is known.
    pub(super) fn late_threads(&self, analysis: &Analysis) -> Vec<(usize, Option<u64>)> {
        let steps = analysis.steps.iter().enumerate();
        let late = steps.filter_map(|(index, step)| {
            let response = analysis.found[step.thread_until?].response;
            let busy_ns = match response {
                Response::Bounded { ns } | Response::Undecided { at_least_ns: ns } => Some(ns),
                Response::Unbounded => None,
            };
            let is_late = busy_ns.is_none_or(|ns| ns > step.task.arrivals().gap_ns());
            is_late.then_some((index, busy_ns))
        });
        late.collect()
    }

    fn begins(&self, index: usize) -> Begins {
        let segments = &self.composition.segments;
        let before = segments[index].after.map(|before| &segments[before]);
        let Some(before) = before.filter(|_| segments[index].begins_early) else {
            return Begins::AtEnd;
        };
        if self.waits_amid(before) {
            Begins::MeanwhileIfAsUrgent
        } else {
            Begins::Meanwhile
        }
    }

    /// Returns whether the thread of a segment may wait in its middle, so that what is as urgent goes first. A thread of a lane with levels
    /// performs calls on its CPU itself, and nothing as urgent begins while it waits for a mutex.
    fn waits_amid(&self, segment: &Segment) -> bool {
        let policy = self.composition.processors[segment.processor].scheduling;
        policy == SchedulingPolicy::FixedPriority
            && (segment.calls_here || !segment.sections.is_empty())
    }

    /// Returns the blocking of a segment by the kernel and by sections.
    pub(super) fn section_blocking_ns(&self, index: usize, level: Levels<'_>) -> u64 {
        let kernel_ns = sum_ns(&self.composition.segments[index].blocking);
        let waits = self.waits(index, level).into_iter().map(|wait| wait.ns);
        waits.fold(kernel_ns, u64::saturating_add)
    }

    /// Returns the first segments of the jobs of a lane, and these jobs as tasks. A job that another segment releases may have any jitter.
    pub(super) fn jobs(&self, steps: &[Step], processor: usize) -> (Vec<usize>, Vec<Task>) {
        let here = 0..self.composition.segments.len();
        let here = here.filter(|&index| steps[index].processor == processor);
        let (mut first, mut jobs): (Vec<usize>, Vec<Task>) = (Vec::new(), Vec::new());
        // Predecessors come first.
        for index in here {
            let task = &steps[index].task;
            match first.binary_search(&self.first_of(index)) {
                Ok(job) => jobs[job].worst_ns = jobs[job].worst_ns.saturating_add(task.worst_ns),
                Err(_) => {
                    first.push(index);
                    jobs.push(match steps[index].after {
                        Some(_) => task.with_jitter(u64::MAX),
                        None => *task,
                    });
                }
            }
        }
        (first, jobs)
    }

    /// Returns the segment with which the thread of a segment began its job, if it keeps its level while it waits.
    fn first_of(&self, segment: usize) -> usize {
        let segments = &self.composition.segments;
        let before = |&segment: &usize| Some(segments[segment].waits_for.as_ref()?.sent_by);
        let all = core::iter::successors(Some(segment), before);
        all.last().unwrap_or(segment)
    }

    /// Returns the job that blocks each segment on the last level of its lane for longest, if one does.
    fn level_holders(&self, steps: &[Step]) -> Vec<Option<LevelHolder>> {
        let mut holders = vec![None; self.composition.segments.len()];
        for (processor, what) in self.composition.processors.iter().enumerate() {
            let Some(levels) = what.levels else { continue };
            let (first, jobs) = self.jobs(steps, processor);
            for (&index, holder) in first.iter().zip(edf::level_holders(&jobs, levels)) {
                holders[index] = holder.map(|holder| LevelHolder {
                    segment: first[holder],
                    ns: jobs[holder].worst_ns,
                });
            }
        }
        holders
    }

    /// Sets the blocking of segments in lanes with levels.
    fn add_level_blocking(&self, steps: &mut [Step]) {
        for (index, holder) in self.level_holders(steps).into_iter().enumerate() {
            let Some(holder) = holder else { continue };
            let sections_ns = self.section_blocking_ns(index, &|_| 1);
            steps[index].task.blocking_ns = sections_ns.saturating_add(holder.ns);
        }
    }

    /// Returns the sections that block a segment.
    pub(super) fn waits(&self, segment: usize, level: Levels<'_>) -> Vec<BlockingSection> {
        self.lockers.waits(segment, level)
    }

    /// Returns the execution for contended locks of a segment.
    pub(super) fn locks(&self, segment: usize) -> Part {
        let times = self.lockers.contended(segment);
        let each = self.composition.segments[segment].contended_lock_ns;
        Part {
            layer: Layer::OperatingSystem,
            what: "locks that others hold".to_owned(),
            code_of: None,
            times,
            ns: times.saturating_mul(each),
        }
    }

    /// Returns the cost of a step that is an interrupt.
    pub(super) fn interrupt(&self, step: usize) -> Option<&Part> {
        let index = step.checked_sub(self.composition.segments.len())?;
        let &(processor, place) = self.interrupts.get(index)?;
        Some(&self.composition.processors[processor].interrupts[place].cost)
    }

    /// Returns the execution of a step by layer.
    pub(super) fn layers(&self, step: usize) -> Vec<(Layer, u64)> {
        if let Some(part) = self.interrupt(step) {
            return vec![(part.layer, part.ns)];
        }
        let mut layers: Vec<(Layer, u64)> = vec![];
        let locks = self.locks(step);
        for part in self.composition.segments[step]
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

    pub(super) fn policies(&self) -> Vec<SchedulingPolicy> {
        let processors = self.composition.processors.iter();
        processors.map(|processor| processor.scheduling).collect()
    }

    /// Returns all deadlines, each with the step that ends the work: first those of behaviours, then those of chains.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let activations = self
            .composition
            .activations
            .iter()
            .zip(&self.goals.deadlines_ns);
        let chains = self.system.chains.iter().zip(&self.goals.of_chain);
        let ends = |index: &usize| self.composition.activations[*index].done;
        activations
            .map(|(activation, &deadline_ns)| (activation.done, deadline_ns))
            .chain(chains.flat_map(move |(chain, activations)| {
                activations
                    .iter()
                    .map(move |index| (ends(index), chain.deadline_ns))
            }))
    }

    /// Returns the growth of each segment when a behaviour's own execution grows by 1 ns, for the segments that grow.
    pub(super) fn growth(&self, behaviour: usize) -> Vec<(usize, u64)> {
        let times = |segment: usize| {
            let parts = self.composition.segments[segment].execution.iter();
            let its = parts.filter(|part| part.code_of == Some(behaviour));
            its.fold(0, |sum: u64, part| sum.saturating_add(part.times))
        };
        let all = (0..self.composition.segments.len()).map(|segment| (segment, times(segment)));
        all.filter(|&(_, times)| times > 0).collect()
    }

    /// Returns the steps after a growth, or a reduction, of a behaviour's own execution.
    pub(super) fn grown(&self, steps: &[Step], behaviour: usize, by_ns: i128) -> Vec<Step> {
        let mut steps = steps.to_vec();
        for (segment, times) in self.growth(behaviour) {
            let worst_ns = &mut steps[segment].task.worst_ns;
            let grown = i128::from(*worst_ns) + by_ns * i128::from(times);
            *worst_ns = u64::try_from(grown.max(0)).unwrap_or(u64::MAX);
        }
        self.add_level_blocking(&mut steps);
        steps
    }

    /// Returns whether all deadlines are proven to hold.
    pub(super) fn holds(&self, found: &[StepResponse]) -> bool {
        let holds = |(step, deadline_ns): (usize, u64)| {
            found[step].response.meets(deadline_ns) == Some(true)
        };
        self.deadlines().all(holds)
    }
}
