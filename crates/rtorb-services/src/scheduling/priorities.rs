//! How urgent an event's consumer is, by a schedule: for channels, which ask when a consumer connects.

use rtorb_sched::Dispatching;
use std::time::Duration;

use super::UNIT_NS;
use super::{Schedule, Scheduling};
use crate::events::{DispatchOrder, PrioritySource, Urgency, UrgencyError};
use crate::stubs::rtec_scheduler::rtec_scheduler::{
    DispatchingTypeT, RtInfo, Scheduler, SchedulerPriorityError,
};
use rtorb::rt::Priority;

impl PrioritySource for Schedule {
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UrgencyError> {
        let known = || {
            let placed = self.placed(rt_info)?;
            let level = self.levels().get(placed.level as usize)?;
            Some(Urgency {
                priority: self.priority_of(rt_info)?,
                order: match level.dispatching {
                    Dispatching::Static => DispatchOrder::Arrival,
                    Dispatching::Deadline => DispatchOrder::Deadline,
                    Dispatching::Laxity => DispatchOrder::Laxity,
                },
                deadline: Duration::from_nanos(placed.deadline_ns),
                execution: Duration::from_nanos(placed.worst_ns),
            })
        };
        known().ok_or(UrgencyError::UnknownRtInfo(rt_info))
    }
}

/// By what the service has computed last.
impl PrioritySource for Scheduling {
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UrgencyError> {
        let published = self.shared.published();
        let published = published.map_err(|_| not_told(rt_info, "nothing is scheduled yet"))?;
        published.schedule.urgency(rt_info)
    }
}

/// A Scheduler in another process, ours or TAO's, asked anew each time: three calls, each of which takes as long as the ORB's
/// round-trip timeout at most.
#[derive(Clone, Debug)]
pub struct RemoteScheduler(pub Scheduler);

impl PrioritySource for RemoteScheduler {
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UrgencyError> {
        let (number, _, level) = self.0.priority(rt_info).map_err(|error| match error {
            SchedulerPriorityError::UnknownTask(_) => UrgencyError::UnknownRtInfo(rt_info),
            other => not_told(rt_info, other),
        })?;
        let configuration = self.0.dispatch_configuration(level);
        let (_, dispatching) = configuration.map_err(|error| not_told(rt_info, error))?;
        let info = self.0.get(rt_info);
        let info = info.map_err(|error| not_told(rt_info, error))?;
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
}

fn not_told(rt_info: i32, reason: impl ToString) -> UrgencyError {
    UrgencyError::NotTold {
        rt_info,
        reason: reason.to_string(),
    }
}

/// The quantum, which is the deadline where it is not zero, or else the period.
pub(super) fn deadline_ns(info: &RtInfo) -> Option<u64> {
    let period = u64::try_from(info.period).ok();
    [Some(info.quantum), period]
        .into_iter()
        .flatten()
        .find(|units| *units > 0)
        .map(|units| units.saturating_mul(UNIT_NS))
}
