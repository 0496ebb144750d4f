//! The change of a running system to another description: the analysis of the new system and of the change, and the switch.

use rtorb::SystemException;
use rtorb_sched::{Refusal, Strategy};
use std::sync::{Arc, Weak};

use super::config::Admission;
use super::description::Description;
use super::exception::SchedulerException;
use super::modelled_system::ModelledSystem;
use super::published::PublishedSchedule;
use super::schedule::ComputeError;
use super::server_scheduler::ServerChange;
use super::state::SchedulerState;
use crate::events::CannotReorder;

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

/// A system that a scheduling service runs.
#[derive(Clone, Debug)]
pub enum DescribedSystem {
    /// The operations of one processor.
    Operations(Description),
    /// Components on nodes.
    Components(ModelledSystem),
}

impl DescribedSystem {
    /// Returns the system with another strategy.
    #[must_use]
    pub fn with_strategy(mut self, strategy: Strategy) -> Self {
        match &mut self {
            Self::Operations(description) => description.strategy = strategy,
            Self::Components(modelled) => modelled.system.strategy = strategy,
        }
        self
    }

    /// Returns the operations, with handles that count from 1.
    pub(super) fn description(&self) -> Description {
        match self {
            Self::Operations(description) => description.clone(),
            Self::Components(modelled) => modelled.description(),
        }
    }
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

impl From<Description> for DescribedSystem {
    fn from(operations: Description) -> Self {
        Self::Operations(operations)
    }
}

impl From<ModelledSystem> for DescribedSystem {
    fn from(components: ModelledSystem) -> Self {
        Self::Components(components)
    }
}

impl NotAdmitted {
    /// Admits a system.
    pub(super) fn check(computed: &PublishedSchedule) -> Result<(), Self> {
        match computed.refusal() {
            None => Ok(()),
            Some(refusal) => Err(Self {
                during: "the system is not admitted",
                refusal,
            }),
        }
    }
}

impl SchedulerState {
    /// Replaces all operations. A request for a priority gets the old one or the new one.
    pub(super) fn apply(
        &self,
        new: DescribedSystem,
        admission: Admission,
    ) -> Result<SystemChange, SystemChangeError> {
        let _one = self.computing.lock();
        let described = new.description();
        let reserved = self.table.lock().reserve(&described.graph.operations);
        let reserved = reserved.map_err(system)?;
        let described = Description {
            handles: reserved.handles.clone(),
            ..described
        };
        let changed = self.change(new, described, admission);
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
        new: DescribedSystem,
        description: Description,
        admission: Admission,
    ) -> Result<SystemChange, SystemChangeError> {
        let computed = PublishedSchedule::of(new, description)?;
        let before = self.published().ok();
        let mut change = SystemChange {
            operations_changed: computed.changed_since(before.as_deref()),
            unproven: NotAdmitted::check(&computed).err(),
            longest_old_job_ns: None,
        };
        if let Some(before) = &before {
            before.check_kind(&computed)?;
        }
        // A system that misses deadlines has none that the change could break.
        let proven_before = before.filter(|before| before.holds() == Some(true));
        if let Some(before) = proven_before
            && change.unproven.is_none()
        {
            let transition = before.transition_to(&computed)?;
            change.longest_old_job_ns = transition.longest_ns;
            change.unproven = transition.refusal.map(|refusal| NotAdmitted {
                during: "the new system holds, but not the change to it",
                refusal,
            });
        }
        if let Some(refused) = &change.unproven
            && admission == Admission::RefuseUnproven
        {
            return Err(refused.clone().into());
        }
        self.switch(computed)?;
        Ok(change)
    }

    /// Publishes a schedule, changes the servers and reorders the channels. If one cannot change, only the lanes that were added
    /// stay. No client connects to a channel meanwhile, and no server schedules an object.
    fn switch(&self, computed: PublishedSchedule) -> Result<(), SystemChangeError> {
        let mut channels = self.channels.lock();
        let channels = living(&mut channels);
        let mut reorders = Vec::with_capacity(channels.len());
        for channel in &channels {
            let reorder = channel.reorder(&computed.schedule);
            let fixed = |part| SystemChangeError::Fixed(CannotReorder(part).to_string());
            reorders.push(reorder.map_err(fixed)?);
        }
        let servers = living(&mut self.servers.lock());
        let schedule = Arc::new(computed.schedule.clone());
        let prepared = servers
            .iter()
            .map(|server| server.prepare(Arc::clone(&schedule)));
        let prepared: Vec<ServerChange<'_>> = prepared
            .collect::<Result<_, _>>()
            .map_err(SystemChangeError::Fixed)?;
        let described = self.table.lock().replace(&computed.description);
        described.map_err(system)?;
        self.publish(computed);
        prepared.into_iter().for_each(ServerChange::carry_out);
        for (channel, reorder) in channels.iter().zip(reorders) {
            channel.carry_out(reorder);
        }
        Ok(())
    }
}

/// Returns those that still exist, in order, and removes the others.
fn living<T>(known: &mut Vec<Weak<T>>) -> Vec<Arc<T>> {
    known.retain(|known| known.strong_count() > 0);
    known.iter().filter_map(Weak::upgrade).collect()
}

fn system(exception: SchedulerException) -> SystemChangeError {
    SystemChangeError::System(match exception {
        SchedulerException::System(exception) => exception,
        _ => rtorb::exception::local::CONTRADICTION,
    })
}
