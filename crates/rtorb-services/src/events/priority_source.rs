//! What is known of the `rt_info` that a subscription names: how urgent its consumer is.

use core::fmt;
use rtorb::rt::Priority;
use std::time::Duration;

/// Tells how urgent an `rt_info` is: a scheduling service, a file of one, or the number itself ([`RtInfoIsPriority`]).
///
/// It is asked when a consumer connects, on the thread that serves its call, and never while events are dispatched.
pub trait PrioritySource: fmt::Debug + Send + Sync {
    /// How urgent whoever has that handle is.
    ///
    /// # Errors
    /// [`UrgencyError`], which refuses the consumer.
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UrgencyError>;
}

/// How urgent a consumer is, and in which order it is served among those of its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgency {
    /// The CORBA priority, which decides the lane.
    pub priority: Priority,
    /// Its place among consumers of one lane (`Dispatching_Type_t` of the scheduler's `Config_Info`).
    pub order: DispatchOrder,
    /// How long after an event came its consumer should have it; zero where nothing is known.
    pub deadline: Duration,
    /// How long the consumer works for it; zero where nothing is known.
    pub execution: Duration,
}

/// In which order the consumers of one lane are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DispatchOrder {
    /// In that in which events came for them.
    #[default]
    Arrival,
    /// The earliest deadline first.
    Deadline,
    /// The least laxity first: deadline less execution.
    Laxity,
}

/// Why it is not known how urgent a handle is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrgencyError {
    /// There is no such handle: the consumer gets BAD_PARAM.
    #[error("no priority is known of rt_info {0}")]
    UnknownRtInfo(i32),
    /// The source did not tell, and may later: the consumer gets TRANSIENT.
    #[error("no priority was told of rt_info {rt_info}: {reason}")]
    NotTold {
        /// The handle.
        rt_info: i32,
        /// What the source says, or why it could not be asked.
        reason: String,
    },
}

impl Urgency {
    /// That priority, in order of arrival.
    pub const fn of(priority: Priority) -> Self {
        Self {
            priority,
            order: DispatchOrder::Arrival,
            deadline: Duration::ZERO,
            execution: Duration::ZERO,
        }
    }

    /// How long after an event came its consumer's turn is, for comparison with others of the lane; none in order of arrival.
    pub(crate) fn turn_after(&self) -> Option<Duration> {
        match self.order {
            DispatchOrder::Arrival => None,
            DispatchOrder::Deadline => Some(self.deadline),
            DispatchOrder::Laxity => Some(self.deadline.saturating_sub(self.execution)),
        }
    }
}

/// The handle is the CORBA priority itself: for systems without a scheduling service.
#[derive(Clone, Copy, Debug, Default)]
pub struct RtInfoIsPriority;

impl PrioritySource for RtInfoIsPriority {
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UrgencyError> {
        let number = i16::try_from(rt_info).ok();
        number
            .and_then(|number| Priority::new(number).ok())
            .map(Urgency::of)
            .ok_or(UrgencyError::UnknownRtInfo(rt_info))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_a_priority_if_it_can_be_one() {
        let seven = RtInfoIsPriority.urgency(7).expect("a priority");
        assert_eq!(seven.priority.get(), 7);
        assert_eq!(
            RtInfoIsPriority.urgency(-1),
            Err(UrgencyError::UnknownRtInfo(-1))
        );
        assert_eq!(
            RtInfoIsPriority.urgency(40_000),
            Err(UrgencyError::UnknownRtInfo(40_000))
        );
    }

    #[test]
    fn laxity_is_what_execution_leaves_of_the_deadline() {
        let mut urgency = Urgency::of(Priority::MIN);
        urgency.deadline = Duration::from_millis(10);
        urgency.execution = Duration::from_millis(4);
        assert_eq!(urgency.turn_after(), None);
        urgency.order = DispatchOrder::Deadline;
        assert_eq!(urgency.turn_after(), Some(Duration::from_millis(10)));
        urgency.order = DispatchOrder::Laxity;
        assert_eq!(urgency.turn_after(), Some(Duration::from_millis(6)));
    }
}
