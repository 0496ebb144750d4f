//! The urgency of an event's consumer by a schedule. A channel asks for it when the consumer connects.

use rtorb_sched::Dispatching;
use std::time::Duration;

use super::schedule::Schedule;
use crate::events::{DispatchOrder, PrioritySource, Urgency, UrgencyError};

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
