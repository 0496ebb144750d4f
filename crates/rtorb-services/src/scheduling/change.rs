//! The change of a running system to another description: the analysis of the new system and of the change, and the switch.

use rtorb::SystemException;
use rtorb::rt::ThreadpoolLane;
use rtorb_sched::{GraphError, Mode, PriorityRange, Refusal, SearchLimits, Transition, admit};
use std::sync::Arc;

use super::config::Admission;
use super::description::Description;
use super::exception::SchedulerException;
use super::schedule::{Computation, ComputeError, Level, Schedule};
use super::state::{PublishedSchedule, SchedulerState};
use crate::events::{PrioritySource as _, Urgency, UrgencyError};

/// A change that took place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemChange {
    /// The number of operations with another priority or another order in their level, and of new ones.
    pub operations_changed: u32,
    /// Why it is not proven that every deadline holds, in the new system and during the change; `None` if it is.
    pub unproven: Option<NotAdmitted>,
    /// The longest time for which work of the old system may go on, in ns; `None` if that is unknown.
    pub longest_old_job_ns: Option<u64>,
}

/// A deadline is not proven to hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{during}: {refusal}")]
pub struct NotAdmitted {
    /// The system or the change that is not proven.
    during: &'static str,
    /// The first deadline that is broken, and what would help.
    pub refusal: Refusal,
}

/// Why a running system does not change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SystemChangeError {
    /// The new system, or the change to it, is not proven to keep every deadline.
    #[error(transparent)]
    NotAdmitted(#[from] NotAdmitted),
    /// The new system has no schedule.
    #[error(transparent)]
    Compute(#[from] ComputeError),
    /// Some part of the system cannot change while it runs.
    #[error("{0}")]
    Fixed(String),
    /// A bound of the service.
    #[error(transparent)]
    System(SystemException),
}

impl NotAdmitted {
    /// Why a system is not admitted; `None` if it is.
    ///
    /// # Errors
    /// [`ComputeError`].
    pub fn of(description: &Description) -> Result<Option<Self>, ComputeError> {
        let computed = Schedule::compute(description)?;
        Ok(Self::check(description, &computed).err())
    }

    /// Admits a system.
    pub(super) fn check(description: &Description, computed: &Computation) -> Result<(), Self> {
        admit(&description.graph, &computed.analysis).map_err(|refusal| Self {
            during: "the system is not admitted",
            refusal,
        })
    }
}

impl SchedulerState {
    /// Replaces all operations. A request for a priority gets the old one or the new one.
    pub(super) fn apply(
        &self,
        description: Description,
        admission: Admission,
    ) -> Result<SystemChange, SystemChangeError> {
        let _one = self.computing.lock();
        let reserved = self.table.lock().reserve(&description.graph.operations);
        let reserved = reserved.map_err(system)?;
        let handles = reserved.handles.clone();
        let described = Description {
            handles,
            ..description
        };
        let changed = self.change(described, admission);
        if let Err(refused) = &changed {
            self.table.lock().release(&reserved);
            self.note_refusal(refused);
        }
        changed
    }

    /// Remembers a refusal for clients.
    pub(super) fn note_refusal(&self, refused: &dyn core::fmt::Display) {
        *self.last_refusal.lock() = refused.to_string();
    }

    fn change(
        &self,
        description: Description,
        admission: Admission,
    ) -> Result<SystemChange, SystemChangeError> {
        let computed = Schedule::compute(&description)?;
        let before = self.published().ok();
        let mut change = SystemChange {
            operations_changed: changed(before.as_deref(), &computed.schedule),
            unproven: NotAdmitted::check(&description, &computed).err(),
            longest_old_job_ns: None,
        };
        // A system that misses deadlines has none that the change could break.
        let proven_before = before.filter(|before| before.analysis.holds() == Some(true));
        if let Some(before) = proven_before
            && change.unproven.is_none()
        {
            let transition = transition(&before, &description, &computed)?;
            change.longest_old_job_ns = transition.longest_ns();
            change.unproven = transition.refusal().map(|refusal| NotAdmitted {
                during: "the new system holds, but not the change to it",
                refusal,
            });
        }
        if let Some(refused) = &change.unproven
            && admission == Admission::RefuseUnproven
        {
            return Err(refused.clone().into());
        }
        self.check_lanes(&computed.schedule)?;
        self.switch(description, computed)?;
        Ok(change)
    }

    /// Publishes a schedule and reorders the channels, or does nothing. No client connects to a channel meanwhile.
    fn switch(
        &self,
        description: Description,
        computed: Computation,
    ) -> Result<(), SystemChangeError> {
        let mut channels = self.channels.lock();
        channels.retain(|channel| channel.strong_count() > 0);
        let channels: Vec<_> = channels
            .iter()
            .filter_map(|known| known.upgrade())
            .collect();
        let mut reorders = Vec::with_capacity(channels.len());
        for channel in &channels {
            let reorder = channel.reorder(&computed.schedule);
            reorders.push(reorder.map_err(|part| {
                SystemChangeError::Fixed(format!("a channel cannot change while it runs: {part}"))
            })?);
        }
        self.table.lock().replace(&description).map_err(system)?;
        self.publish(description, computed);
        for (channel, reorder) in channels.iter().zip(reorders) {
            channel.carry_out(reorder);
        }
        Ok(())
    }

    /// Checks that each level has a lane of the ORB with enough threads.
    fn check_lanes(&self, schedule: &Schedule) -> Result<(), SystemChangeError> {
        let lanes = self.lanes.lock();
        let Some(lanes) = &*lanes else {
            return Ok(());
        };
        let missing = schedule
            .levels()
            .iter()
            .find(|level| !has_lane(lanes, level));
        missing.map_or(Ok(()), |level| {
            Err(SystemChangeError::Fixed(format!(
                "the lanes of the ORB cannot change while it runs, and none has the priority {} and {} threads: restart it",
                level.priority, level.threads
            )))
        })
    }
}

fn has_lane(lanes: &[ThreadpoolLane], level: &Level) -> bool {
    lanes.iter().any(|lane| {
        i32::from(lane.lane_priority.get()) == level.priority
            && lane.static_threads >= level.threads
    })
}

fn transition(
    before: &Arc<PublishedSchedule>,
    description: &Description,
    computed: &Computation,
) -> Result<Transition, SystemChangeError> {
    let most_urgent_is_low = |range: PriorityRange| range.most_urgent < range.least_urgent;
    let reversed = most_urgent_is_low(description.priorities);
    if reversed != most_urgent_is_low(before.description.priorities) {
        return Err(SystemChangeError::Fixed(
            "the direction of the priorities cannot change while the system runs: restart it"
                .to_owned(),
        ));
    }
    let urgencies = |schedule: &Schedule| -> Vec<i32> {
        let levels = schedule.levels().iter();
        let urgency = |level: &Level| {
            if reversed {
                -level.priority
            } else {
                level.priority
            }
        };
        levels.map(urgency).collect()
    };
    let (old, new) = (urgencies(&before.schedule), urgencies(&computed.schedule));
    let old = Mode {
        graph: &before.description.graph,
        schedule: &before.analysis,
        urgencies: &old,
    };
    let new = Mode {
        graph: &description.graph,
        schedule: &computed.analysis,
        urgencies: &new,
    };
    let found = Transition::between(old, new, SearchLimits::default());
    found.map_err(|error: GraphError| {
        SystemChangeError::Fixed(format!("the old and the new system together: {error}"))
    })
}

/// The number of operations whose urgency changes, and of new ones.
fn changed(before: Option<&PublishedSchedule>, new: &Schedule) -> u32 {
    let urgency = |schedule: &Schedule, handle: i32| -> Result<Urgency, UrgencyError> {
        schedule.urgency(handle)
    };
    let differs = |handle: i32| {
        let old = before.and_then(|before| urgency(&before.schedule, handle).ok());
        old != urgency(new, handle).ok()
    };
    let operations = new.operations().iter();
    let count = operations
        .filter(|operation| differs(operation.handle))
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn system(exception: SchedulerException) -> SystemChangeError {
    SystemChangeError::System(match exception {
        SchedulerException::System(exception) => exception,
        _ => rtorb::exception::local::CONTRADICTION,
    })
}
