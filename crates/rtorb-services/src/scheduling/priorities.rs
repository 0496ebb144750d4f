//! How urgent an event's consumer is, by a schedule: for channels, which ask when a consumer connects.

use rtorb_sched::Dispatching;
use std::time::Duration;

use super::times::UNIT_NS;
use super::{Schedule, Scheduling};
use crate::events::{DispatchOrder, PrioritySource, UnknownRtInfo, Urgency};
use crate::stubs::rtec_scheduler::rtec_scheduler::{DispatchingTypeT, RtInfo, Scheduler};
use rtorb::rt::Priority;

impl PrioritySource for Schedule {
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UnknownRtInfo> {
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
        known().ok_or(UnknownRtInfo(rt_info))
    }
}

/// By what the service has computed last.
impl PrioritySource for Scheduling {
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UnknownRtInfo> {
        let published = self.shared.published();
        let published = published.map_err(|_| UnknownRtInfo(rt_info))?;
        published.schedule.urgency(rt_info)
    }
}

/// A Scheduler in another process, ours or TAO's, asked anew each time: three calls, each of which takes as long as the ORB's
/// round-trip timeout at most. What it does not answer is unknown.
#[derive(Clone, Debug)]
pub struct RemoteScheduler(pub Scheduler);

impl PrioritySource for RemoteScheduler {
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UnknownRtInfo> {
        let known = || {
            let (priority, _, level) = self.0.priority(rt_info).ok()?;
            let (_, dispatching) = self.0.dispatch_configuration(level).ok()?;
            let info = self.0.get(rt_info).ok()?;
            let worst_ns = info.worst_case_execution_time.saturating_mul(UNIT_NS);
            Some(Urgency {
                priority: Priority::new(i16::try_from(priority).ok()?).ok()?,
                order: match dispatching {
                    DispatchingTypeT::StaticDispatching => DispatchOrder::Arrival,
                    DispatchingTypeT::DeadlineDispatching => DispatchOrder::Deadline,
                    DispatchingTypeT::LaxityDispatching => DispatchOrder::Laxity,
                },
                deadline: Duration::from_nanos(deadline_ns(&info).unwrap_or(0)),
                execution: Duration::from_nanos(worst_ns),
            })
        };
        known().ok_or(UnknownRtInfo(rt_info))
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
