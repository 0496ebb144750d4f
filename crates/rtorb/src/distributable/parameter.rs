//! Scheduling parameters of segments, and what a scheduling discipline makes of them.

use crate::clock::monotonic_ns;
use crate::deadline::NONE_NS;
use crate::exception::{SystemException, local};
use crate::realtime::Priority;
use core::fmt::Debug;
use rtorb_wire::giop::SegmentParameter;
use std::time::Duration;

/// How a segment of a distributable thread is scheduled. A request of the thread carries it to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchedulingParameter {
    /// By a CORBA priority: [`FixedPriority`].
    Priority(Priority),
    /// By a deadline: [`EarliestDeadlineFirst`].
    Deadline {
        /// The deadline, in nanoseconds of CLOCK_MONOTONIC of this host.
        at_ns: u64,
        /// The importance beside other deadlines; the larger, the more important.
        importance: i32,
    },
}

impl SchedulingParameter {
    /// Returns a deadline that passes this long after now, without importance.
    pub fn deadline_after(time: Duration) -> Self {
        let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self::Deadline {
            at_ns: monotonic_ns().saturating_add(time_ns),
            importance: 0,
        }
    }

    /// Returns the form that travels.
    pub(super) fn to_wire(parameter: Option<Self>, now_ns: u64) -> SegmentParameter {
        match parameter {
            None => SegmentParameter::None,
            Some(Self::Priority(priority)) => SegmentParameter::Priority(priority.get()),
            Some(Self::Deadline { at_ns, importance }) => SegmentParameter::Deadline {
                left_ns: at_ns.saturating_sub(now_ns),
                importance,
            },
        }
    }

    /// Returns the parameter that arrived at `now_ns`.
    ///
    /// # Errors
    /// DATA_CONVERSION 2 for a negative priority.
    pub(super) fn from_wire(
        arrived: SegmentParameter,
        now_ns: u64,
    ) -> Result<Option<Self>, SystemException> {
        Ok(match arrived {
            SegmentParameter::None => None,
            SegmentParameter::Priority(number) => {
                let priority = Priority::new(number).map_err(|_| local::UNMAPPED_PRIORITY)?;
                Some(Self::Priority(priority))
            }
            SegmentParameter::Deadline {
                left_ns,
                importance,
            } => Some(Self::Deadline {
                at_ns: now_ns.saturating_add(left_ns),
                importance,
            }),
        })
    }

    /// Returns the deadline, [`NONE_NS`] without one.
    pub(super) fn deadline_ns(parameter: Option<Self>) -> u64 {
        match parameter {
            Some(Self::Deadline { at_ns, .. }) => at_ns,
            _ => NONE_NS,
        }
    }
}

/// What a segment does to its thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentEffect {
    /// The CORBA priority of the thread; `None` leaves it as it is.
    pub priority: Option<Priority>,
}

/// A scheduling discipline (`RTScheduling::Scheduler`): it says which parameters a segment may have, and what they do to its thread.
///
/// A segment's deadline needs no effect: the calls of the segment end by it, with every discipline that accepts it.
pub trait SchedulingDiscipline: Debug + Send + Sync {
    /// Returns the name of the discipline (`scheduling_discipline_name`).
    fn name(&self) -> &'static str;

    /// Returns the effect of a segment that begins, or is updated, with this parameter; `None` if the discipline does not have it
    /// (UNSUPPORTED_SCHEDULING_DISCIPLINE). The end of a segment takes its effect back.
    fn effect(&self, parameter: &SchedulingParameter) -> Option<SegmentEffect>;
}

/// The discipline whose parameter is a CORBA priority, which the thread of the segment has.
//= RT-CORBA 1.2 §Fixed Priority Scheduling
//# A segment runs at the priority that is its parameter.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedPriority;

impl SchedulingDiscipline for FixedPriority {
    fn name(&self) -> &'static str {
        "Fixed Priority"
    }

    fn effect(&self, parameter: &SchedulingParameter) -> Option<SegmentEffect> {
        match parameter {
            SchedulingParameter::Priority(priority) => Some(SegmentEffect {
                priority: Some(*priority),
            }),
            SchedulingParameter::Deadline { .. } => None,
        }
    }
}

/// The discipline whose parameter is a deadline. The calls of the segment end by it.
//= RT-CORBA 1.2 §Earliest Deadline First Scheduling
//# A segment has a deadline and an importance, which its calls carry.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarliestDeadlineFirst;

impl SchedulingDiscipline for EarliestDeadlineFirst {
    fn name(&self) -> &'static str {
        "Earliest Deadline First"
    }

    fn effect(&self, parameter: &SchedulingParameter) -> Option<SegmentEffect> {
        match parameter {
            SchedulingParameter::Priority(_) => None,
            SchedulingParameter::Deadline { .. } => Some(SegmentEffect::default()),
        }
    }
}
