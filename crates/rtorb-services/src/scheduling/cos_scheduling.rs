//! The client's side of the scheduling service of RT-CORBA 1.x (RTCosScheduling): priorities by the names of activities.

use arc_swap::ArcSwap;
use rtorb::rt::Priority;
use rtorb::{Orb, PoaError, SystemException};
use std::sync::Arc;

use super::schedule::Schedule;

/// The error of a name, an object or an adapter of the scheduling service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CosSchedulingError {
    /// The schedule has no operation with that name, or no CORBA priority for it (UnknownName).
    #[error("UnknownName: the schedule has no CORBA priority for {0:?}")]
    UnknownName(String),
    /// The new schedule does not fit objects and lanes of the running server. No priority has changed; lanes that were
    /// added stay.
    #[error("{0}")]
    CannotChange(String),
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
    schedule: Arc<ArcSwap<Schedule>>,
}

impl ClientScheduler {
    /// Creates a scheduler that reads priorities from `schedule`.
    #[must_use]
    pub fn new(orb: &Orb, schedule: impl Into<Arc<Schedule>>) -> Self {
        Self {
            orb: orb.clone(),
            schedule: Arc::new(ArcSwap::new(schedule.into())),
        }
    }

    /// Reads priorities from another schedule from now on, in all clones. A thread gets its new priority when it begins an activity.
    pub fn change(&self, schedule: impl Into<Arc<Schedule>>) {
        self.schedule.store(schedule.into());
    }

    /// Gives the calling thread the priority of an activity, until it begins another one.
    ///
    /// # Errors
    /// [`CosSchedulingError::UnknownName`]; the errors of [`set_the_priority`](rtorb::rt::RtCurrent::set_the_priority).
    //= RT-CORBA 1.2 §Scheduling Service
    //# A thread that schedules an activity runs at the priority of that activity.
    pub fn schedule_activity(&self, name: &str) -> Result<(), CosSchedulingError> {
        let priority = priority_of(&self.schedule.load(), name)?;
        Ok(self.orb.rt_current().set_the_priority(priority)?)
    }
}

pub(super) fn priority_of(schedule: &Schedule, name: &str) -> Result<Priority, CosSchedulingError> {
    let priority = schedule.priority(name);
    priority.ok_or_else(|| CosSchedulingError::UnknownName(name.to_owned()))
}
