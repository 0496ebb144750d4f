//! The scheduling service of RT-CORBA 1.x (RTCosScheduling): priorities by the names of activities and objects.

use rtorb::poa::ServedBy;
use rtorb::rt::{LanedThreadpool, Policy, Priority, PriorityModel};
use rtorb::{ObjectRef, Orb, Poa, PoaError, PoaPolicies, SystemException};
use std::sync::Arc;

use super::schedule::Schedule;

/// The error of a name, an object or an adapter of the scheduling service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CosSchedulingError {
    /// The schedule has no operation with that name, or no CORBA priority for it (UnknownName).
    #[error("UnknownName: the schedule has no CORBA priority for {0:?}")]
    UnknownName(String),
    /// The adapter refuses.
    #[error(transparent)]
    Poa(#[from] PoaError),
    /// The host or the ORB refuses.
    #[error(transparent)]
    System(#[from] SystemException),
}

/// The scheduling of a client's threads by the names of activities (RTCosScheduling::ClientScheduler).
///
/// An activity is an operation of the schedule.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use rtorb_services::scheduling::{ClientScheduler, Schedule};
///
/// let orb = rtorb::Orb::builder().build()?;
/// let scheduler = ClientScheduler::new(&orb, Schedule::read("computed.toml")?);
/// scheduler.schedule_activity("sensors.sample")?;
/// // The calls of this thread have the priority of that activity.
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ClientScheduler {
    orb: Orb,
    schedule: Arc<Schedule>,
}

impl ClientScheduler {
    /// Creates a scheduler that reads priorities from `schedule`.
    #[must_use]
    pub fn new(orb: &Orb, schedule: impl Into<Arc<Schedule>>) -> Self {
        Self {
            orb: orb.clone(),
            schedule: schedule.into(),
        }
    }

    /// Gives the calling thread the priority of an activity, until it begins another one.
    ///
    /// # Errors
    /// [`CosSchedulingError::UnknownName`]; the errors of [`set_the_priority`](rtorb::rt::RtCurrent::set_the_priority).
    //= RT-CORBA 1.2 §Scheduling Service
    //# A thread that schedules an activity runs at the priority of that activity.
    pub fn schedule_activity(&self, name: &str) -> Result<(), CosSchedulingError> {
        let priority = priority_of(&self.schedule, name)?;
        Ok(self.orb.rt_current().set_the_priority(priority)?)
    }
}

/// The scheduling of a server's objects by their names (RTCosScheduling::ServerScheduler).
///
/// Its adapters share one thread pool, with a lane for each level of the schedule.
#[derive(Clone, Debug)]
pub struct ServerScheduler {
    schedule: Arc<Schedule>,
    pool: Policy,
    model: Policy,
}

impl ServerScheduler {
    /// Creates a scheduler that reads priorities from `schedule`, and its thread pool.
    ///
    /// # Errors
    /// BAD_PARAM for a schedule without levels; the errors of
    /// [`create_threadpool_with_lanes`](rtorb::rt::RtOrb::create_threadpool_with_lanes).
    pub fn new(orb: &Orb, schedule: impl Into<Arc<Schedule>>) -> Result<Self, SystemException> {
        let schedule = schedule.into();
        let lanes = schedule.lanes();
        let least_urgent = lanes.iter().map(|lane| lane.lane_priority).min();
        let rt_orb = orb.rt_orb();
        let pool = rt_orb.create_threadpool_with_lanes(LanedThreadpool {
            lanes,
            ..LanedThreadpool::default()
        })?;
        let otherwise = least_urgent.unwrap_or(Priority::MIN);
        Ok(Self {
            schedule,
            pool: rt_orb.create_threadpool_policy(pool),
            model: rt_orb.create_priority_model_policy(PriorityModel::ServerDeclared, otherwise),
        })
    }

    /// Creates an adapter whose objects the schedule's lanes serve, each at the priority of its name. An object that is not
    /// [scheduled](Self::schedule_object) has the least urgent priority.
    ///
    /// # Errors
    /// Those of [`Poa::create_poa`]: InvalidPolicy if `policies` has a priority model or a thread pool of its own.
    //= RT-CORBA 1.2 §Scheduling Service
    //# An adapter of the server scheduler has the policies that the schedule needs.
    pub fn create_poa(
        &self,
        parent: &Poa,
        name: &str,
        policies: PoaPolicies,
    ) -> Result<Poa, PoaError> {
        let policies = policies.with(self.pool.clone()).with(self.model.clone());
        parent.create_poa(name, policies)
    }

    /// Activates a servant in an adapter of this scheduler, as the object with that name in the schedule.
    ///
    /// An object has its priority from its activation on, so this does both.
    ///
    /// # Errors
    /// [`CosSchedulingError::UnknownName`]; those of [`Poa::activate_with_priority`].
    //= RT-CORBA 1.2 §Scheduling Service
    //# The calls of a scheduled object run at the priority of its name.
    pub fn schedule_object<
        I: ServedBy<S, Object = ObjectRef> + 'static,
        S: Send + Sync + 'static,
    >(
        &self,
        poa: &Poa,
        servant: S,
        name: &str,
    ) -> Result<I, CosSchedulingError> {
        let priority = priority_of(&self.schedule, name)?;
        Ok(poa.activate_with_priority(servant, priority)?)
    }
}

fn priority_of(schedule: &Schedule, name: &str) -> Result<Priority, CosSchedulingError> {
    let priority = schedule.priority(name);
    priority.ok_or_else(|| CosSchedulingError::UnknownName(name.to_owned()))
}
