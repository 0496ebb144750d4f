//! The scheduling service (RtecScheduler): rates, deadlines and criticalities to priorities, off line and at run time.
//!
//! Off line: [`Description`] is a file of operations, [`Schedule`] the priorities that follow, which ORBs and channels read
//! at start. At run time: [`Scheduling`] serves TAO's interface `RtecScheduler::Scheduler`; priorities are read from what
//! was computed last, without a wait for those who change or compute.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use rtorb_services::scheduling::Schedule;
//!
//! let schedule = Schedule::read("schedule.computed.toml")?;
//! let orb = rtorb::Orb::builder()
//!     .dispatch(rtorb::DispatchStrategy::Lanes)
//!     .lanes(schedule.lanes())
//!     .build()?;
//! let priority = schedule.priority("navigation").ok_or("navigation is not scheduled")?;
//! orb.rt_current().set_the_priority(priority)?;
//! # Ok(())
//! # }
//! ```
//!
//! What levels, bounds and verdicts are made of is in `rtorb-sched`.

mod description;
mod priorities;
mod raised;
mod schedule;
mod servant;
mod table;

pub use description::Description;
pub use priorities::RemoteScheduler;
pub use schedule::{Computation, ComputeError, Level, Placed, Schedule};

pub use rtorb_sched::times::{parse_ns, text_of_ns};
pub use rtorb_sched::toml_file::FileError;

/// What levels and verdicts are made of.
pub use rtorb_sched as analysis;

use arc_swap::ArcSwapOption;
use rtorb::rt::Priority;
use rtorb::{ExceptionKind, ObjectKeyError, Orb, PoaError, PoaPolicies, SystemException};
use rtorb_os::sync::Mutex;
use rtorb_sched::{Dispatching, PriorityRange, Severity, Strategy};
use std::sync::Arc;

use crate::stubs::rtec_scheduler::rtec_scheduler::{
    AnomalySeverity, ConfigInfo, DispatchingTypeT, RtInfo, Scheduler, SchedulerGetConfigInfosError,
    SchedulerGetRtInfoSetError, SchedulerPriorityError, SchedulingAnomaly,
};
use raised::Raised;
use servant::SchedulerObject;
use table::Table;

/// What a scheduling service is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulingConfig {
    /// How levels are made; that of the description, where there is one, unless this is given.
    pub strategy: Option<Strategy>,
    /// What is known from the beginning; it is scheduled before the service answers.
    pub description: Option<Description>,
    /// Operations: NO_RESOURCES. 1 to 100,000; 10,000. The analysis of so many takes seconds.
    pub infos_max: usize,
    /// Dependencies: NO_RESOURCES. 1 to 1,000,000; 40,000.
    pub dependencies_max: usize,
}

impl Default for SchedulingConfig {
    fn default() -> Self {
        Self {
            strategy: None,
            description: None,
            infos_max: 10_000,
            dependencies_max: 40_000,
        }
    }
}

/// Why there is no scheduling service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulingError {
    /// A bound is out of its range.
    #[error("{bound} is {value}: choose {range}")]
    Bound {
        /// The field of [`SchedulingConfig`].
        bound: &'static str,
        /// What was given.
        value: usize,
        /// What may be.
        range: &'static str,
    },
    /// More operations or dependencies are described than may be.
    #[error(
        "the description has more operations or dependencies than infos_max and dependencies_max allow"
    )]
    TooMany,
    /// No schedule follows from the description.
    #[error(transparent)]
    Compute(#[from] ComputeError),
    /// The ORB cannot serve it.
    #[error(transparent)]
    Poa(#[from] PoaError),
    /// The key `ScheduleService` is another object's already.
    #[error(transparent)]
    Key(#[from] ObjectKeyError),
    /// The ORB has ended.
    #[error(transparent)]
    System(#[from] SystemException),
}

/// A scheduling service that an ORB serves.
#[derive(Clone, Debug)]
pub struct Scheduling {
    shared: Arc<Shared>,
    reference: Scheduler,
}

/// What the service's threads share.
#[derive(Debug)]
struct Shared {
    strategy: Strategy,
    table: Mutex<Table>,
    /// Held while a schedule is computed: one at a time, and the last begun is the last published.
    computing: Mutex<()>,
    published: ArcSwapOption<Published>,
}

/// The schedule that was computed last.
#[derive(Debug)]
struct Published {
    schedule: Schedule,
}

impl Scheduling {
    /// Serves a Scheduler; it becomes the ORB's initial reference `ScheduleService`, and `corbaloc::HOST:PORT/ScheduleService`.
    ///
    /// Requests are let in by the ORB's root adapter's manager, as for every object.
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
        let shared = Arc::new(Shared {
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

    /// The schedule that was computed last.
    #[must_use]
    pub fn schedule(&self) -> Option<Schedule> {
        let published = self.shared.published().ok()?;
        Some(published.schedule.clone())
    }

    /// The CORBA priority of an operation in it; does not wait for whoever computes.
    #[must_use]
    pub fn priority_of(&self, handle: i32) -> Option<Priority> {
        self.shared.published().ok()?.schedule.priority_of(handle)
    }

    /// The same by name.
    #[must_use]
    pub fn priority(&self, name: &str) -> Option<Priority> {
        self.shared.published().ok()?.schedule.priority(name)
    }
}

impl Schedule {
    /// What a Scheduler, ours or another, has computed. The deadline of an operation that has neither quantum nor period is
    /// the shortest period of its level.
    ///
    /// # Errors
    /// What the calls answer; INTERNAL when the answers contradict each other; BAD_INV_ORDER when it has computed nothing.
    pub fn ask(scheduler: &Scheduler) -> Result<Self, SystemException> {
        let configs = scheduler.get_config_infos().map_err(|error| match error {
            SchedulerGetConfigInfosError::NotScheduled(_) => ExceptionKind::BadInvOrder.into(),
            SchedulerGetConfigInfosError::System(exception) => exception,
            _ => contradiction(),
        })?;
        let infos = scheduler.get_rt_info_set().map_err(|error| match error {
            SchedulerGetRtInfoSetError::System(exception) => exception,
            _ => contradiction(),
        })?;
        let mut levels = Vec::with_capacity(configs.len());
        for (place, config) in (0_i32..).zip(configs) {
            if config.preemption_priority != place {
                return Err(contradiction());
            }
            levels.push(Level::of(&config));
        }
        let mut operations = Vec::with_capacity(infos.len());
        for info in infos {
            if !is_scheduled(scheduler, &info)? {
                continue;
            }
            let level = u32::try_from(info.preemption_priority).map_err(|_| contradiction())?;
            let known = levels.get_mut(level as usize).ok_or_else(contradiction)?;
            // A level has the threads of all its operations together, as where it was computed.
            known.threads = known
                .threads
                .saturating_add(u32::try_from(info.threads).unwrap_or(0));
            operations.push(Placed {
                deadline_ns: priorities::deadline_ns(&info)
                    .or(known.periods_ns.first().copied())
                    .unwrap_or(0),
                worst_ns: info.worst_case_execution_time.saturating_mul(UNIT_NS),
                name: info.entry_point,
                handle: info.handle,
                level,
                subpriority: u32::try_from(info.preemption_subpriority).unwrap_or(u32::MAX),
            });
        }
        levels
            .iter_mut()
            .for_each(|level: &mut Level| level.threads = level.threads.max(1));
        Ok(Self::of(None, levels, operations))
    }
}

/// Whether an operation is in the schedule; asked only where its numbers may be those that it was made with.
fn is_scheduled(scheduler: &Scheduler, info: &RtInfo) -> Result<bool, SystemException> {
    if (info.priority, info.preemption_priority) != (0, 0) {
        return Ok(true);
    }
    match scheduler.priority(info.handle) {
        Ok(_) => Ok(true),
        Err(SchedulerPriorityError::NotScheduled(_)) => Ok(false),
        Err(SchedulerPriorityError::System(exception)) => Err(exception),
        Err(_) => Err(contradiction()),
    }
}

fn contradiction() -> SystemException {
    ExceptionKind::Internal.into()
}

impl Level {
    fn of(config: &ConfigInfo) -> Self {
        let units = config.timer_periods.iter();
        Self {
            priority: config.thread_priority,
            dispatching: match config.dispatching_type {
                DispatchingTypeT::StaticDispatching => Dispatching::Static,
                DispatchingTypeT::DeadlineDispatching => Dispatching::Deadline,
                DispatchingTypeT::LaxityDispatching => Dispatching::Laxity,
            },
            periods_ns: units
                .map(|units| u64::from(units.unsigned_abs()) * UNIT_NS)
                .collect(),
            threads: 0,
        }
    }
}

impl Shared {
    /// What was computed last. A reader never waits for a writer.
    fn published(&self) -> Result<Arc<Published>, Raised> {
        self.published.load_full().ok_or(Raised::NotScheduled)
    }

    fn publish(&self, schedule: Schedule) {
        self.published.store(Some(Arc::new(Published { schedule })));
    }

    /// Computes a schedule of what is known, and publishes it. What cannot be scheduled is told as fatal, and the schedule
    /// before stays: what runs by it must not lose its priorities.
    fn compute(
        &self,
        least_urgent: i32,
        most_urgent: i32,
    ) -> Result<Vec<SchedulingAnomaly>, Raised> {
        let _one = self.computing.lock();
        let priorities = PriorityRange {
            least_urgent,
            most_urgent,
        };
        let description = self.table.lock().description(self.strategy, priorities);
        match Schedule::compute(&description) {
            Ok(computed) => {
                self.publish(computed.schedule);
                let each = computed.analysis.anomalies.into_iter();
                Ok(each
                    .map(|anomaly| SchedulingAnomaly {
                        description: anomaly.description,
                        severity: severity(anomaly.severity),
                    })
                    .collect())
            }
            Err(ComputeError::Levels(_)) => Err(Raised::InsufficientThreadPriorityLevels),
            Err(ComputeError::Graph(error)) => Ok(vec![SchedulingAnomaly {
                description: error.to_string(),
                severity: AnomalySeverity::AnomalyFatal,
            }]),
        }
    }
}

/// The levels as the interface tells them.
fn configs(schedule: &Schedule) -> Vec<ConfigInfo> {
    let units = |ns: u64| i32::try_from(ns / UNIT_NS).unwrap_or(i32::MAX);
    let config = |(place, level): (i32, &Level)| ConfigInfo {
        preemption_priority: place,
        thread_priority: level.priority,
        dispatching_type: dispatching(level.dispatching),
        timer_periods: level.periods_ns.iter().copied().map(units).collect(),
    };
    (0..).zip(schedule.levels()).map(config).collect()
}

fn dispatching(known: Dispatching) -> DispatchingTypeT {
    match known {
        Dispatching::Static => DispatchingTypeT::StaticDispatching,
        Dispatching::Deadline => DispatchingTypeT::DeadlineDispatching,
        Dispatching::Laxity => DispatchingTypeT::LaxityDispatching,
    }
}

fn severity(known: Severity) -> AnomalySeverity {
    match known {
        Severity::Fatal => AnomalySeverity::AnomalyFatal,
        Severity::Error => AnomalySeverity::AnomalyError,
        Severity::Warning => AnomalySeverity::AnomalyWarning,
    }
}

/// What everybody calls it: as an initial reference, and in its key.
const NAME: &str = "ScheduleService";
/// Units of 100 ns, which the interface counts in; less than one is none.
const UNIT_NS: u64 = 100;
