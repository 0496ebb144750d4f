//! The scheduling service as an object of an ORB.

use arc_swap::ArcSwapOption;
use rtorb::rt::Priority;
use rtorb::{Orb, PoaPolicies};
use rtorb_os::sync::Mutex;
use rtorb_sched::Strategy;
use std::sync::Arc;

use super::admission::AdmittedFlows;
use super::change::{DescribedSystem, NotAdmitted, SystemChange, SystemChangeError};
use super::config::{Admission, SchedulingConfig, SchedulingError};
use super::published::PublishedSchedule;
use super::schedule::Schedule;
use super::servant::SchedulerObject;
use super::server_scheduler::ServerScheduler;
use super::state::SchedulerState;
use super::table::Table;
use crate::events::{Channel, FlowAdmission, PrioritySource, Urgency, UrgencyError};
use crate::stubs::rtec_scheduler::rtec_scheduler::Scheduler;
use crate::stubs::rtec_scheduler::rtorb_scheduling::ChangeableScheduler;

/// A scheduling service that an ORB serves.
#[derive(Clone, Debug)]
pub struct Scheduling {
    pub(super) shared: Arc<SchedulerState>,
    reference: Scheduler,
}

impl Scheduling {
    /// Serves a Scheduler. It becomes the ORB's initial reference `ScheduleService`, and `corbaloc::HOST:PORT/ScheduleService`.
    ///
    /// The manager of the ORB's root adapter lets requests in, as for every object.
    ///
    /// # Errors
    /// [`SchedulingError`].
    pub fn serve(orb: &Orb, config: SchedulingConfig) -> Result<Self, SchedulingError> {
        let bounds = [
            ("infos_max", config.infos_max, 100_000, "1 to 100,000"),
            (
                "dependencies_max",
                config.dependencies_max,
                1_000_000,
                "1 to 1,000,000",
            ),
        ];
        for (bound, value, most, range) in bounds {
            if !(1..=most).contains(&value) {
                return Err(SchedulingError::Bound {
                    bound,
                    value,
                    range,
                });
            }
        }
        let mut table = Table::new(&config);
        let system = match config.strategy {
            Some(strategy) => config.system.map(|system| system.with_strategy(strategy)),
            None => config.system,
        };
        let described = system.as_ref().map(DescribedSystem::description);
        let strategy = config
            .strategy
            .or(described.as_ref().map(|described| described.strategy))
            .unwrap_or(Strategy::RateMonotonic);
        if let Some(described) = &described {
            table
                .load(described)
                .map_err(|_| SchedulingError::TooMany)?;
        }
        let shared = Arc::new(SchedulerState {
            strategy,
            table: Mutex::new(table),
            computing: Mutex::new(()),
            published: ArcSwapOption::empty(),
            channels: Mutex::default(),
            servers: Mutex::default(),
            flows: Mutex::new(AdmittedFlows::new(config.dependencies_max)),
            last_refusal: Mutex::default(),
        });
        if let Some((system, described)) = system.zip(described) {
            let computed = PublishedSchedule::of(system, described)?;
            if config.admission == Admission::RefuseUnproven {
                NotAdmitted::check(&computed)?;
            }
            shared.publish(computed);
        }
        let poa = orb.root_poa()?.create_poa(NAME, PoaPolicies::PERSISTENT)?;
        let servant = SchedulerObject(Arc::clone(&shared));
        let reference: ChangeableScheduler = poa.activate_with_id(NAME, servant)?;
        let reference = Scheduler::from(reference);
        orb.bind_object_key(NAME, reference.as_object())
            .inspect_err(|_| poa.destroy())?;
        orb.register_initial_reference(NAME, reference.as_object().clone());
        Ok(Self { shared, reference })
    }

    /// Replaces all operations by those of another system: the priorities, the order in each level, and the modes of the channels
    /// and servers that follow ([`reorder_channel`](Self::reorder_channel), [`change_server`](Self::change_server)). Handles follow
    /// the names. A request for a priority gets the old one or the new one.
    ///
    /// A service that runs operations of one processor cannot change to a system of components, nor back.
    ///
    /// # Errors
    /// [`SystemChangeError`]; nothing has changed then, except that lanes which the change had already added stay, idle.
    pub fn apply(
        &self,
        system: impl Into<DescribedSystem>,
        admission: Admission,
    ) -> Result<SystemChange, SystemChangeError> {
        self.shared.apply(system.into(), admission)
    }

    /// Why it is not proven that every deadline of the system in force holds, also with the events of the channels that ask it; `None` if
    /// it is, and before there is a system.
    #[must_use]
    pub fn unproven(&self) -> Option<NotAdmitted> {
        let published = self.shared.published().ok()?;
        let alone = NotAdmitted::check(&published).err();
        let (flows, _) = self.shared.flows.lock().all();
        alone.or_else(|| Some(NotAdmitted::with_events(published.refusal_with(&flows)?)))
    }

    /// Returns true if a deadline of the system in force holds only in a lane that preempts a running job for a more urgent one of
    /// its level: the first one of [`Schedule::lanes`] does, and the lane of a channel does not.
    #[must_use]
    pub fn needs_preemption(&self) -> bool {
        let published = self.shared.published();
        published.is_ok_and(|published| published.needs_preemption())
    }

    /// Has every change of this service reorder a channel of this process too, whose source of priorities is this service: its
    /// lanes exchange their priorities, and its consumers get another order. A change that a channel cannot make is refused.
    pub fn reorder_channel(&self, channel: &Channel) {
        let channel = Arc::downgrade(channel.core());
        let mut channels = self.shared.channels.lock();
        channels.retain(|known| known.strong_count() > 0 && !known.ptr_eq(&channel));
        channels.push(channel);
    }

    /// Has every change of this service [change](ServerScheduler::change) a server of this process too. A change that it cannot make is
    /// refused.
    pub fn change_server(&self, server: &ServerScheduler) {
        let server = Arc::downgrade(&server.0);
        let mut servers = self.shared.servers.lock();
        servers.retain(|known| known.strong_count() > 0 && !known.ptr_eq(&server));
        servers.push(server);
    }

    /// The Scheduler.
    #[must_use]
    pub fn reference(&self) -> &Scheduler {
        &self.reference
    }

    /// The last computed schedule.
    #[must_use]
    pub fn schedule(&self) -> Option<Schedule> {
        let published = self.shared.published().ok()?;
        Some(published.schedule.clone())
    }

    /// The CORBA priority of an operation, by handle. Does not wait for a computation.
    #[must_use]
    pub fn priority_of(&self, handle: i32) -> Option<Priority> {
        self.shared.published().ok()?.schedule.priority_of(handle)
    }

    /// The CORBA priority of an operation, by name.
    #[must_use]
    pub fn priority(&self, name: &str) -> Option<Priority> {
        self.shared.published().ok()?.schedule.priority(name)
    }
}

/// Uses the last computed schedule.
impl PrioritySource for Scheduling {
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UrgencyError> {
        let published = self.shared.published();
        let published = published.map_err(|_| UrgencyError::NotTold {
            rt_info,
            reason: "nothing is scheduled yet".to_owned(),
        })?;
        published.schedule.urgency(rt_info)
    }

    fn admission(&self) -> Option<&dyn FlowAdmission> {
        Some(self)
    }
}

/// The name of the initial reference, and the object key.
const NAME: &str = "ScheduleService";
