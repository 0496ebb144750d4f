//! The scheduling service as an object of an ORB.

use arc_swap::ArcSwapOption;
use rtorb::rt::Priority;
use rtorb::{Orb, PoaPolicies};
use rtorb_os::sync::Mutex;
use rtorb_sched::Strategy;
use std::sync::Arc;

use super::config::{SchedulingConfig, SchedulingError};
use super::description::Description;
use super::schedule::Schedule;
use super::servant::SchedulerObject;
use super::state::SchedulerState;
use super::table::Table;
use crate::events::{PrioritySource, Urgency, UrgencyError};
use crate::stubs::rtec_scheduler::rtec_scheduler::Scheduler;

/// A scheduling service that an ORB serves.
#[derive(Clone, Debug)]
pub struct Scheduling {
    shared: Arc<SchedulerState>,
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
        let described = config.description.as_ref();
        let strategy = config
            .strategy
            .or(described.map(|described| described.strategy))
            .unwrap_or(Strategy::RateMonotonic);
        let mut table = Table::new(&config);
        if let Some(described) = described {
            table
                .load(described)
                .map_err(|_| SchedulingError::TooMany)?;
        }
        let shared = Arc::new(SchedulerState {
            strategy,
            table: Mutex::new(table),
            computing: Mutex::new(()),
            published: ArcSwapOption::empty(),
        });
        if let Some(described) = config.description {
            let computed = Schedule::compute(&Description {
                strategy,
                ..described
            })?;
            shared.publish(computed.schedule);
        }
        let poa = orb.root_poa()?.create_poa(NAME, PoaPolicies::PERSISTENT)?;
        let servant = SchedulerObject(Arc::clone(&shared));
        let reference: Scheduler = poa.activate_with_id(NAME, servant)?;
        orb.bind_object_key(NAME, reference.as_object())?;
        orb.register_initial_reference(NAME, reference.as_object().clone());
        Ok(Self { shared, reference })
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
}

/// The name of the initial reference, and the object key.
const NAME: &str = "ScheduleService";
