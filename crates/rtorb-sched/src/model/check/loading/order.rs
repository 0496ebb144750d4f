//! The jobs of a lane with levels: whether they arrive with the deadlines of the analysis, and whether its mutexes block no more jobs
//! than the analysis says.

use super::super::super::system::{CallWay, Locking, Placement};
use super::super::steps::View;
use crate::holistic::SchedulingPolicy;

/// Checks the jobs of a CPU that schedules by deadline, with the [`own_deadlines`] of the system.
///
/// # Errors
/// In words, what its lane would do otherwise than the analysis says, and what to change.
pub(super) fn check(
    view: &View<'_>,
    own_ns: &[Option<u64>],
    place: Placement,
) -> Result<(), String> {
    let order = JobOrder { view, own_ns };
    let jobs = order.jobs(place)?;
    order.check_ceilings(place, &jobs)
}

struct JobOrder<'a> {
    view: &'a View<'a>,
    /// The deadline of each behaviour that has a thread or a job of its own, and executes by deadline.
    own_ns: &'a [Option<u64>],
}

/// A behaviour, and the deadline of the job that performs it.
struct Job {
    behaviour: usize,
    deadline_ns: u64,
}

/// The deadlines of a behaviour at the end of a path of calls.
#[derive(Clone, Copy)]
struct Arrival {
    /// The deadline with which it arrives: the earliest of those that the calls before it bring.
    carried_ns: Option<u64>,
    /// The deadline of the analysis.
    due_ns: Option<u64>,
}

impl JobOrder<'_> {
    /// Returns what the jobs of a CPU perform. Each must arrive with the deadline of the analysis.
    fn jobs(&self, place: Placement) -> Result<Vec<Job>, String> {
        let system = self.view.system;
        let activations = self.view.composition.activations.iter();
        let here = activations.filter(|one| system.placement(one.behaviour) == place);
        let mut found = Vec::new();
        for activation in here {
            let Arrival { carried_ns, due_ns } = self.arrival(&activation.path);
            if carried_ns != due_ns {
                return Err(self.wrong_deadline(&activation.path, carried_ns));
            }
            found.extend(due_ns.map(|deadline_ns| Job {
                behaviour: activation.behaviour,
                deadline_ns,
            }));
        }
        Ok(found)
    }

    fn arrival(&self, path: &[usize]) -> Arrival {
        let root = path.first().copied();
        let own_ns = root.and_then(|root| self.own_ns[root]);
        let mut at = Arrival {
            carried_ns: own_ns.filter(|_| root.is_some_and(|root| self.is_by_deadline(root))),
            due_ns: own_ns,
        };
        for edge in path.windows(2) {
            let (caller, callee) = (edge[0], edge[1]);
            let way = self.way(caller, callee);
            let brought_ns = match way {
                // The thread of the caller performs it too.
                CallWay::TwoWay if self.is_by_deadline(caller) => None,
                CallWay::TwoWay => self.own_ns[caller],
                CallWay::Event { .. } if !self.is_by_deadline(callee) => None,
                CallWay::OneWay | CallWay::Event { .. } => self.own_ns[callee],
            };
            at = Arrival {
                carried_ns: at.carried_ns.into_iter().chain(brought_ns).min(),
                due_ns: match way {
                    CallWay::TwoWay => at.due_ns,
                    CallWay::OneWay | CallWay::Event { .. } => self.own_ns[callee],
                },
            };
        }
        at
    }

    /// Returns how one behaviour calls another one. Of several calls all are waited for, or none.
    fn way(&self, caller: usize, callee: usize) -> CallWay {
        let mut calls = self.view.system.behaviours[caller].calls.iter();
        let call = calls.find(|call| call.to.contains(&callee));
        call.map_or(CallWay::TwoWay, |call| call.way)
    }

    fn is_by_deadline(&self, behaviour: usize) -> bool {
        let system = self.view.system;
        system.scheduling(system.placement(behaviour)) == SchedulingPolicy::EarliestDeadline
    }

    fn name(&self, behaviour: Option<&usize>) -> &str {
        behaviour.map_or("a job", |&one| &self.view.system.behaviours[one].name)
    }

    fn wrong_deadline(&self, path: &[usize], carried_ns: Option<u64>) -> String {
        let callee = self.name(path.last());
        let caller = self.name(path.iter().rev().nth(1));
        match carried_ns {
            Some(_) => format!(
                "{callee} is due later than its caller {caller}, and a call of a job with a deadline inherits that: give {callee} a deadline \
                 that is no later"
            ),
            None => format!(
                "{caller} has the priority of its caller and no deadline of its own, so its call of {callee} brings none: let the caller of \
                 {caller} call {callee}"
            ),
        }
    }

    /// Checks that the job with the shortest deadline locks each mutex with a ceiling. The ceiling is the highest level: while a job
    /// holds the mutex, no other job begins. The analysis says the same only of jobs that are no more urgent than all that lock it.
    fn check_ceilings(&self, place: Placement, jobs: &[Job]) -> Result<(), String> {
        let system = self.view.system;
        let least_ns = jobs.iter().map(|job| job.deadline_ns).min();
        let urgent = jobs.iter().filter(|job| Some(job.deadline_ns) == least_ns);
        let urgent: Vec<usize> = urgent.map(|job| job.behaviour).collect();
        for (index, resource) in system.resources.iter().enumerate() {
            let component = &system.components[resource.component];
            let is_here = (component.node, component.cpu) == (place.node, place.cpu);
            let locks = |behaviour: &usize| {
                let mut sections = system.behaviours[*behaviour].sections.iter();
                sections.any(|section| section.resource == index)
            };
            if is_here && resource.locking == Locking::Ceiling && !urgent.iter().any(locks) {
                return Err(format!(
                    "{} has a ceiling, and {}, which has the shortest deadline of its CPU, does not lock it but would wait for it: a ceiling \
                     is above all jobs of the CPU. Write mutex = \"inheritance\"",
                    resource.name,
                    self.name(urgent.first()),
                ));
            }
        }
        Ok(())
    }
}

/// Returns the deadline that orders the jobs of each behaviour, of those that have a thread or a job of their own and execute by deadline.
pub(super) fn own_deadlines(view: &View<'_>) -> Vec<Option<u64>> {
    let by_deadline = |segment: &usize| {
        let processor = view.composition.segments[*segment].processor;
        view.composition.processors[processor].scheduling == SchedulingPolicy::EarliestDeadline
    };
    let mut own_ns = vec![None; view.system.behaviours.len()];
    for owner in &view.goals.owners {
        if owner.segments.iter().any(by_deadline) {
            own_ns[owner.behaviour] = Some(owner.deadline_ns);
        }
    }
    own_ns
}
