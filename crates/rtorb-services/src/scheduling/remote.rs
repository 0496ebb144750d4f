//! Schedulers in other processes, ours or TAO's.

use rtorb::exception::local;
use rtorb::rt::Priority;
use rtorb::timing::{MissRatio, MissRatios};
use rtorb::{ExceptionKind, SystemException};
use rtorb_sched::Dispatching;
use std::time::Duration;

use super::schedule::{Level, Schedule, ScheduledOperation};
use super::table::UNIT_NS;
use crate::events::{
    DispatchOrder, EventFlow, FlowAdmission, PrioritySource, Urgency, UrgencyError,
};
use crate::stubs::rtec_scheduler::rtec_scheduler::{
    ConfigInfo, DispatchingTypeT, RtInfo, Scheduler, SchedulerGetConfigInfosError,
    SchedulerGetRtInfoSetError, SchedulerPriorityError,
};
use crate::stubs::rtec_scheduler::rtorb_scheduling::{
    self, ChangeableScheduler, ChangeableSchedulerAdmitChannelError, ChangeableSchedulerAdmitError,
    NotAdmitted,
};

/// A Scheduler in another process, ours or TAO's. The timeout of one call bounds each query, which makes several.
#[derive(Clone, Debug)]
pub struct RemoteScheduler(pub Scheduler);

impl PrioritySource for RemoteScheduler {
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UrgencyError> {
        let (number, dispatching, info) = self.0.as_object().within_timeout(|| {
            let (number, _, level) = self.0.priority(rt_info).map_err(|error| match error {
                SchedulerPriorityError::UnknownTask(_) => UrgencyError::UnknownRtInfo(rt_info),
                other => not_told(rt_info, other),
            })?;
            let configuration = self.0.dispatch_configuration(level);
            let (_, dispatching) = configuration.map_err(|error| not_told(rt_info, error))?;
            let info = self.0.get(rt_info);
            let info = info.map_err(|error| not_told(rt_info, error))?;
            Ok((number, dispatching, info))
        })?;
        let worst_ns = info.worst_case_execution_time.saturating_mul(UNIT_NS);
        let priority = i16::try_from(number).ok();
        let priority = priority.and_then(|number| Priority::new(number).ok());
        Ok(Urgency {
            priority: priority
                .ok_or_else(|| not_told(rt_info, format!("{number} is no CORBA priority")))?,
            order: match dispatching {
                DispatchingTypeT::StaticDispatching => DispatchOrder::Arrival,
                DispatchingTypeT::DeadlineDispatching => DispatchOrder::Deadline,
                DispatchingTypeT::LaxityDispatching => DispatchOrder::Laxity,
            },
            deadline: Duration::from_nanos(deadline_ns(&info).unwrap_or(0)),
            execution: Duration::from_nanos(worst_ns),
        })
    }

    fn admission(&self) -> Option<&dyn FlowAdmission> {
        Some(self)
    }
}

/// A Scheduler of rtorb admits events; another one, such as TAO's, admits all.
impl FlowAdmission for RemoteScheduler {
    fn admit(&self, channel: &str, flows: &[EventFlow]) -> Result<(), String> {
        self.0
            .as_object()
            .within_timeout(|| self.admit_flows(channel, flows))
    }
}

impl RemoteScheduler {
    fn admit_flows(&self, channel: &str, flows: &[EventFlow]) -> Result<(), String> {
        let scheduler = changeable(&self.0).map_err(|exception| exception.to_string())?;
        let Some(scheduler) = scheduler else {
            return Ok(());
        };
        let flow = |flow: &EventFlow| rtorb_scheduling::EventFlow {
            supplier: flow.supplier,
            consumer: flow.consumer,
            count: flow.count,
        };
        let flows: Vec<_> = flows.iter().map(flow).collect();
        let refusal = |refused: NotAdmitted| format!("{} {}", refused.operation, refused.reason);
        match scheduler.admit_channel(channel, &flows) {
            Ok(()) => Ok(()),
            Err(ChangeableSchedulerAdmitChannelError::NotAdmitted(refused)) => {
                Err(refusal(refused))
            }
            Err(ChangeableSchedulerAdmitChannelError::System(older))
                if older.kind == ExceptionKind::BadOperation =>
            {
                scheduler.admit(&flows).map_err(|error| match error {
                    ChangeableSchedulerAdmitError::NotAdmitted(refused) => refusal(refused),
                    ChangeableSchedulerAdmitError::System(exception) => exception.to_string(),
                })
            }
            Err(ChangeableSchedulerAdmitChannelError::System(exception)) => {
                Err(exception.to_string())
            }
        }
    }
}

impl Schedule {
    /// Reads the schedule of a Scheduler, ours or another. The deadline of an operation with neither quantum nor period is the
    /// shortest period of its level. The timeout of one call bounds all the calls together.
    ///
    /// # Errors
    /// The exceptions of the calls; INTERNAL if the answers contradict each other; BAD_INV_ORDER if nothing is scheduled.
    pub fn ask(scheduler: &Scheduler) -> Result<Self, SystemException> {
        scheduler
            .as_object()
            .within_timeout(|| Self::read_from(scheduler))
    }

    fn read_from(scheduler: &Scheduler) -> Result<Self, SystemException> {
        let configs = scheduler.get_config_infos().map_err(|error| match error {
            SchedulerGetConfigInfosError::NotScheduled(_) => local::NOT_SCHEDULED,
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
            // A level has the threads of all its operations, as in the computation.
            known.threads = known
                .threads
                .saturating_add(u32::try_from(info.threads).unwrap_or(0));
            operations.push(ScheduledOperation {
                deadline_ns: deadline_ns(&info)
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
        let schedule = Self::of(None, levels, operations);
        Ok(schedule.with_miss_ratios(miss_ratios(scheduler)?))
    }
}

/// Returns the scheduler of rtorb; `None` of another one.
fn changeable(scheduler: &Scheduler) -> Result<Option<ChangeableScheduler>, SystemException> {
    match ChangeableScheduler::narrow(scheduler.as_object()) {
        Ok(scheduler) => Ok(Some(scheduler)),
        Err(other) if other.kind == ExceptionKind::BadParam => Ok(None),
        Err(exception) => Err(exception),
    }
}

/// Returns how many calls of operations may be late; nothing if the scheduler does not say it.
fn miss_ratios(scheduler: &Scheduler) -> Result<MissRatios, SystemException> {
    let asked = changeable(scheduler)?.map(|scheduler| scheduler.miss_ratios());
    let told = match asked.unwrap_or_else(|| Ok(Vec::new())) {
        Ok(told) => told,
        Err(older) if older.kind == ExceptionKind::BadOperation => Vec::new(),
        Err(exception) => return Err(exception),
    };
    let ratio = |one: rtorb_scheduling::OperationMissRatio| {
        let ratio = one.ratio.first().map(|ratio| MissRatio {
            misses: ratio.misses,
            calls: ratio.calls,
        });
        match ratio {
            Some(ratio) if !ratio.is_countable() => Err(contradiction()),
            ratio => Ok((one.operation, ratio)),
        }
    };
    told.into_iter().map(ratio).collect()
}

/// True if an operation is in the schedule. It calls the Scheduler only if the numbers may be the initial ones.
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
    local::ANSWERS_CONTRADICT
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

fn not_told(rt_info: i32, reason: impl ToString) -> UrgencyError {
    UrgencyError::NotTold {
        rt_info,
        reason: reason.to_string(),
    }
}

/// The quantum if it is not zero, else the period.
fn deadline_ns(info: &RtInfo) -> Option<u64> {
    let period = u64::try_from(info.period).ok();
    [Some(info.quantum), period]
        .into_iter()
        .flatten()
        .find(|units| *units > 0)
        .map(|units| units.saturating_mul(UNIT_NS))
}
