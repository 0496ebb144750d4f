//! The change of a running system to another description: the analysis of the new system and of the change, and the switch.

use rtorb::{CurrentCall, ExceptionKind, SystemException};
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
use crate::events::{CannotReorder, EventFlow};

/// A change that took place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemChange {
    /// The number of operations with another priority or another order in their level, and of new ones.
    pub operations_changed: u32,
    /// Why it is not proven that every deadline holds, in the new system and during the change; `None` if it is.
    pub unproven: Option<NotAdmitted>,
    /// True if a deadline holds only in a lane that [preempts](super::Scheduling::needs_preemption).
    pub needs_preemption: bool,
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
    /// Returns an error if a deadline of the system is not proven to hold.
    pub(super) fn check(computed: &PublishedSchedule) -> Result<(), Self> {
        match computed.refusal() {
            None => Ok(()),
            Some(refusal) => Err(Self {
                during: "the system is not admitted",
                refusal,
            }),
        }
    }

    /// The refusal of a system that holds without the events of channels.
    pub(super) fn with_events(refusal: Refusal) -> Self {
        Self {
            during: "the system is not admitted with the events of the channels that are connected",
            refusal,
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
        let changed = self.change(&new, &described, admission);
        if let Err(refused) = &changed {
            self.table.lock().release(&reserved);
            self.note_refusal(refused);
        }
        changed
    }

    fn change(
        &self,
        new: &DescribedSystem,
        description: &Description,
        admission: Admission,
    ) -> Result<SystemChange, SystemChangeError> {
        for _ in 0..ATTEMPTS {
            let computed = PublishedSchedule::of(new.clone(), description.clone())?;
            let (flows, changes) = self.flows.lock().all();
            let change = self.analyse(&computed, &flows)?;
            if let Some(refused) = &change.unproven
                && admission == Admission::RefuseUnproven
            {
                return Err(refused.clone().into());
            }
            check_caller().map_err(SystemChangeError::System)?;
            if self.switch(computed, changes)? {
                return Ok(change);
            }
        }
        Err(SystemChangeError::Fixed(
            "channels admitted other events during each analysis: apply it again".to_owned(),
        ))
    }

    /// Analyses the new system and the change to it, with these events of channels.
    fn analyse(
        &self,
        computed: &PublishedSchedule,
        flows: &[EventFlow],
    ) -> Result<SystemChange, SystemChangeError> {
        let before = self.published().ok();
        let with_events = computed.with_events(flows);
        let refused_with_events = match &with_events {
            Ok(it) => it.as_ref().and_then(PublishedSchedule::refusal),
            Err(refusal) => Some(refusal.clone()),
        };
        let refused_with_events = refused_with_events.map(NotAdmitted::with_events);
        let mut change = SystemChange {
            operations_changed: computed.changed_since(before.as_deref()),
            unproven: NotAdmitted::check(computed).err().or(refused_with_events),
            needs_preemption: computed.needs_preemption(),
            longest_old_job_ns: None,
        };
        if let Some(before) = &before {
            before.check_kind(computed)?;
        }
        let Some(before) = before else {
            return Ok(change);
        };
        let before_with_events = before.with_events(flows);
        if let (Ok(old), Ok(new), None) = (&before_with_events, &with_events, &change.unproven) {
            let old = old.as_ref().unwrap_or(&before);
            // A system that misses deadlines has none that the change could break.
            if old.holds() == Some(true) {
                let transition = old.transition_to(new.as_ref().unwrap_or(computed))?;
                change.longest_old_job_ns = transition.longest_ns;
                change.unproven = transition.refusal.map(|refusal| NotAdmitted {
                    during: "the new system holds, but not the change to it",
                    refusal,
                });
            }
        }
        Ok(change)
    }

    /// Publishes a schedule, changes the servers and reorders the channels. If one cannot change, only the lanes that were added
    /// stay. No client connects to a channel meanwhile, and no server schedules an object. Returns false and changes nothing if the events of
    /// channels have changed since their number of changes was `changes`.
    fn switch(&self, computed: PublishedSchedule, changes: u64) -> Result<bool, SystemChangeError> {
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
        let flows = self.flows.lock();
        if !flows.are_as_of(changes) {
            return Ok(false);
        }
        let described = self.table.lock().replace(&computed.description);
        described.map_err(system)?;
        self.publish(computed);
        drop(flows);
        prepared.into_iter().for_each(ServerChange::carry_out);
        for (channel, reorder) in channels.iter().zip(reorders) {
            channel.carry_out(reorder);
        }
        Ok(true)
    }
}

/// How often a change is analysed with the events of channels that connect meanwhile.
const ATTEMPTS: usize = 4;

/// Checks that the client of the call that this thread executes, if it executes one, still awaits its result.
pub(super) fn check_caller() -> Result<(), SystemException> {
    let Some(call) = CurrentCall::get() else {
        return Ok(());
    };
    if call.remaining().is_some_and(|left| left.is_zero()) {
        return Err(ExceptionKind::Timeout.into());
    }
    call.check()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Channel, ChannelConfig, strategies};
    use crate::scheduling::{Scheduling, SchedulingConfig};
    use crate::stubs::rtec_scheduler::rtorb_scheduling::{
        Admission as IfUnproven, ChangeableScheduler, ChangeableSchedulerApplyError,
    };
    use rtorb::{DispatchStrategy, Limits, Orb};
    use std::time::Duration;

    const TEXT: &str = r#"operation = [{ name = "a", period = "5ms", worst = "10us" }]"#;

    #[test]
    fn a_channel_that_is_given_twice_is_reordered_once() {
        let channel_config = ChannelConfig::default();
        let orb = Orb::builder()
            .strategies(strategies(DispatchStrategy::ThreadPerConnection))
            .limits(channel_config.limits(Limits::default()))
            .best_effort()
            .on_warning(|_| {})
            .build();
        let orb = orb.expect("an ORB");
        let described = |text: &str| Description::of_text("the test", text).expect("it is right");
        let config = SchedulingConfig {
            system: Some(described(TEXT).into()),
            ..SchedulingConfig::default()
        };
        let service = Scheduling::serve(&orb, config).expect("it holds");
        let source = Arc::new(service.clone());
        let channel = Channel::serve_with(&orb, channel_config, source);
        let channel = channel.expect("a channel");
        for _ in 0..2 {
            service.reorder_channel(&channel);
        }
        let slower = described(&TEXT.replace("5ms", "7ms"));
        let changed = service.apply(slower, Admission::RefuseUnproven);
        assert!(changed.is_ok(), "{changed:?}");
    }

    #[test]
    fn a_caller_that_has_given_up_changes_nothing() {
        let orb = Orb::builder().build().expect("an ORB");
        let system = Description::of_text("the test", TEXT).expect("it is right");
        let config = SchedulingConfig {
            system: Some(system.into()),
            ..SchedulingConfig::default()
        };
        let service = Scheduling::serve(&orb, config).expect("it holds");
        let object = service.reference().as_object().clone();
        let scheduler = ChangeableScheduler::narrow(&object).expect("it answers");
        let before = service.schedule();
        let new = TEXT.replace("5ms", "7ms");
        let apply = || scheduler.apply(&new, IfUnproven::RefuseUnproven);
        // The calling thread serves the call itself, also when its deadline has passed.
        match rtorb::with_deadline(Duration::ZERO, apply) {
            Err(ChangeableSchedulerApplyError::System(late)) => {
                assert_eq!(late.kind, ExceptionKind::Timeout);
            }
            other => panic!("{other:?}"),
        }
        assert_ne!(*service.shared.last_refusal.lock(), "", "it was asked");
        assert_eq!(service.schedule(), before);
        assert!(apply().is_ok());
        assert_ne!(service.schedule(), before);
    }
}
