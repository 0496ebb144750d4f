//! What is done for a call or an event: the behaviour's own code, then the calls that it makes.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use rtorb::{ExceptionKind, SystemException};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::futex;
use rtorb_os::sched::{SchedPolicy, current_policy};
use rtorb_services::stubs::rtec_event::rtec_event_comm::{Event, PushConsumerServant};

use super::idl::model::{Behaviour, BehaviourServant, Job};
use super::ways::{Failures, OfJob, Way, instant_at, read_job};
use super::work::{Work, drawn_ns, make_ready};
use crate::model::plan::{ComponentPlan, NOBODY, PlaceOf};
use crate::model::records::{self, Kept};

/// What all threads of the process have in common.
#[derive(Debug)]
pub(super) struct Performer {
    pub(super) plan: ComponentPlan,
    pub(super) work: Work,
    pub(super) jobs: Kept<5>,
    /// How many calls to the servant that gathers have begun.
    pub(super) gathered: AtomicU32,
    /// Of each behaviour, once they are known.
    pub(super) ways: OnceLock<Vec<Vec<Way>>>,
    pub(super) failures: Failures,
}

impl Performer {
    /// Performs a job, as it came or began, and keeps when it was done.
    pub(super) fn perform(&self, index: usize, job: &Job) {
        let behaviour = &self.plan.behaviours[index];
        let known = behaviour
            .places
            .binary_search_by_key(&(job.caller, job.call), |of| (of.caller, of.call));
        let done = match known {
            Ok(found) => self.perform_at(index, behaviour.places[found], job),
            Err(_) if job.caller == NOBODY => self.practise(index, job),
            Err(_) => Err(format!(
                "{}: called by nobody that is known",
                behaviour.name
            )),
        };
        if let Err(what) = done {
            self.failures.add(|| format!("{}: {what}", behaviour.name));
        }
    }

    fn perform_at(&self, index: usize, at: PlaceOf, job: &Job) -> Result<(), String> {
        let behaviour = &self.plan.behaviours[index];
        let place = at.place;
        let number = job.number;
        let total_ns = drawn_ns(
            &behaviour.execution,
            self.plan.seed,
            behaviour.number,
            number,
        );
        let worked = self.work.execute(behaviour, total_ns, (place, number))?;
        OfJob::set(at.priority);
        self.call(index, place, job)?;
        self.jobs.keep(&records::Job {
            place,
            number,
            release_ns: job.release,
            begin_ns: worked.begin_ns,
            own_end_ns: worked.end_ns,
            end_ns: monotonic_ns(),
        });
        Ok(())
    }

    /// The same without an account of it, and little work: what a job touches is touched, and the thread is one of the right priority.
    pub(super) fn practise(&self, index: usize, job: &Job) -> Result<(), String> {
        let behaviour = &self.plan.behaviours[index];
        let has = current_policy();
        let right = |priority: &u8| has == SchedPolicy::Fifo(*priority);
        if !behaviour.runs_at.iter().any(right) {
            let wanted = &behaviour.runs_at;
            return Err(format!(
                "its thread is {has}, and its priorities are {wanted:?}"
            ));
        }
        self.work
            .execute(behaviour, PRACTICE_NS, (NOBODY, job.number))?;
        if let Some(at) = behaviour.places.first() {
            OfJob::set(at.priority);
        }
        self.call(index, NOBODY, job)
    }

    fn call(&self, index: usize, place: u32, job: &Job) -> Result<(), String> {
        let ways = self.ways_of(index);
        let calls = self.plan.behaviours[index].calls.iter();
        for (number, (plan, way)) in calls.zip(ways).enumerate() {
            let onward = Job {
                caller: place,
                call: number as u32,
                ..*job
            };
            for _ in 0..plan.count {
                match way {
                    Way::Here { behaviour } => self.perform_here(*behaviour, &onward)?,
                    _ => way.call(&onward)?,
                }
            }
        }
        Ok(())
    }

    /// Performs a behaviour of this component on the calling thread.
    fn perform_here(&self, number: u32, job: &Job) -> Result<(), String> {
        let mut behaviours = self.plan.behaviours.iter();
        let index = behaviours.position(|behaviour| behaviour.number == number);
        self.perform(index.ok_or("it calls a behaviour of no component")?, job);
        Ok(())
    }

    /// Has a lane with levels do a job by its deadline, and returns whether it could begin in time.
    pub(super) fn release(
        &self,
        index: usize,
        object: &Behaviour,
        job: &Job,
        payload: &[u8],
    ) -> bool {
        let behaviour = &self.plan.behaviours[index];
        let deadline_ns = job.release.saturating_add(behaviour.deadline_ns);
        let object = object.with_end_time(instant_at(deadline_ns));
        match object.start(job, payload) {
            Ok(()) => true,
            Err(late) if late.kind == ExceptionKind::Timeout => false,
            Err(failed) => {
                self.failures
                    .add(|| format!("{}: {failed}", behaviour.name));
                true
            }
        }
    }

    /// Passes a job on to a lane with levels. What is done for practice has no deadline.
    fn pass_on(&self, index: usize, object: &Behaviour, job: &Job, payload: &[u8]) {
        if job.caller != NOBODY {
            self.release(index, object, job, payload);
        } else if let Err(failed) = object.start(job, payload) {
            let name = &self.plan.behaviours[index].name;
            self.failures.add(|| format!("{name}: {failed}"));
        }
    }

    /// Waits until `calls` calls to the gathering servant have begun.
    pub(super) fn await_gathered(&self, calls: u32) -> Result<(), SystemException> {
        let deadline_ns = monotonic_ns() + GATHER_NS_MAX;
        let mut begun = self.gathered.load(Ordering::SeqCst);
        while begun < calls {
            if monotonic_ns() >= deadline_ns {
                return Err(ExceptionKind::NoResources.into());
            }
            futex::wait(&self.gathered, begun, Some(deadline_ns));
            begun = self.gathered.load(Ordering::SeqCst);
        }
        Ok(())
    }

    fn ways_of(&self, index: usize) -> &[Way] {
        let all = self.ways.get();
        all.and_then(|all| all.get(index))
            .map_or(&[], Vec::as_slice)
    }

    /// Opens what the calling thread needs for a behaviour's calls.
    pub(super) fn touch(&self, index: usize) -> Result<(), String> {
        make_ready();
        let places = self.plan.behaviours[index].places.iter();
        let priorities: BTreeSet<u8> = places.map(|at| at.priority).collect();
        let ways = self.ways_of(index);
        priorities.iter().try_for_each(|priority| {
            OfJob::set(*priority);
            ways.iter().try_for_each(Way::touch)
        })
    }
}

/// A behaviour that is called, or what warms the threads of lanes.
#[derive(Debug)]
pub(super) struct Servant {
    performer: Arc<Performer>,
    role: ServantRole,
}

#[derive(Debug)]
enum ServantRole {
    /// Performs the behaviour at this index.
    Performs(usize),
    /// Passes the jobs of the behaviour at this index on to its object in the lane with levels.
    PassesOn(usize, Behaviour),
    /// Gathers the threads of a lane, which open connections to these objects too.
    Gathers(Vec<Behaviour>),
}

impl Servant {
    pub(super) fn of(performer: &Arc<Performer>, index: usize) -> Self {
        Self {
            performer: Arc::clone(performer),
            role: ServantRole::Performs(index),
        }
    }

    pub(super) fn passing_on(performer: &Arc<Performer>, index: usize, object: Behaviour) -> Self {
        Self {
            performer: Arc::clone(performer),
            role: ServantRole::PassesOn(index, object),
        }
    }

    pub(super) fn gathering(performer: &Arc<Performer>, objects: Vec<Behaviour>) -> Self {
        Self {
            performer: Arc::clone(performer),
            role: ServantRole::Gathers(objects),
        }
    }

    fn perform(&self, job: &Job, payload: &[u8]) {
        match &self.role {
            ServantRole::Performs(index) => self.performer.perform(*index, job),
            ServantRole::PassesOn(index, object) => {
                self.performer.pass_on(*index, object, job, payload)
            }
            ServantRole::Gathers(_) => {}
        }
    }
}

impl BehaviourServant for Servant {
    fn run(&self, which: &Job, payload: &[u8]) -> Result<(), SystemException> {
        self.perform(which, payload);
        Ok(())
    }

    fn start(&self, which: &Job, payload: &[u8]) -> Result<(), SystemException> {
        self.perform(which, payload);
        Ok(())
    }

    fn touch(&self) -> Result<(), SystemException> {
        make_ready();
        Ok(())
    }

    fn gather(&self, threads: u32) -> Result<(), SystemException> {
        let performer = &self.performer;
        performer.gathered.fetch_add(1, Ordering::SeqCst);
        futex::wake(&performer.gathered, i32::MAX as u32);
        performer.await_gathered(threads)?;
        if let ServantRole::Gathers(objects) = &self.role {
            objects.iter().try_for_each(Behaviour::touch)?;
        }
        let own = current_policy();
        let behaviours = self.performer.plan.behaviours.iter().enumerate();
        for (index, behaviour) in behaviours {
            let may_run_here = |priority: &u8| own == SchedPolicy::Fifo(*priority);
            if behaviour.runs_at.iter().any(may_run_here)
                && let Err(what) = self.performer.touch(index)
            {
                let name = &behaviour.name;
                self.performer.failures.add(|| format!("{name}: {what}"));
            }
        }
        make_ready();
        Ok(())
    }
}

impl PushConsumerServant for Servant {
    fn push(&self, data: &[Event]) -> Result<(), SystemException> {
        for event in data {
            match read_job(&event.data.payload) {
                Some(job) => self.perform(&job, &event.data.payload),
                None => self
                    .performer
                    .failures
                    .add(|| "an event without a job".to_owned()),
            }
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Enough to touch what a job touches.
const PRACTICE_NS: u64 = 20_000;
/// All threads of a lane are there at once, or never.
const GATHER_NS_MAX: u64 = 2_000_000_000;
