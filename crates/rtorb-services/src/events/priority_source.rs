//! The urgency of a consumer by the `rt_info` in its subscription.

use core::fmt;
use rtorb::rt::Priority;
use std::time::Duration;

/// A source of urgencies: a scheduling service, a file of one, or the number itself ([`RtInfoIsPriority`]).
///
/// The channel calls it when a consumer connects, on the thread that serves that call, and never while it dispatches events.
pub trait PrioritySource: fmt::Debug + Send + Sync {
    /// The urgency of an `rt_info`.
    ///
    /// # Errors
    /// [`UrgencyError`]; the channel then refuses the consumer.
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UrgencyError>;

    /// The admission of the events of suppliers to consumers. By default there is none, and every event is admitted.
    fn admission(&self) -> Option<&dyn FlowAdmission> {
        None
    }
}

/// Decides whether events may run the operations of their consumers as often as their suppliers send them.
///
/// The channel asks when a consumer or a supplier connects, and connects no other one meanwhile: the calls of the admission to other
/// objects end within 5 s, and the client is refused then. When one has disconnected, it says which events are left, and at its end that
/// there are none.
pub trait FlowAdmission {
    /// Admits all events of the channel of that name in place of those that it had, or refuses the client that connects. Fewer events are
    /// always admitted, and a channel without events is forgotten.
    ///
    /// # Errors
    /// The deadline that would be missed first, and what would help.
    fn admit(&self, channel: &str, flows: &[EventFlow]) -> Result<(), String>;
}

/// The events of one supplier's operation that run the operation of one or several consumers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventFlow {
    /// The `rt_info` of the supplier.
    pub supplier: i32,
    /// The `rt_info` of the consumers.
    pub consumer: i32,
    /// How often each event of the supplier runs the consumers' operation: the number of consumers.
    pub count: u32,
}

/// The urgency of a consumer and its order in its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Urgency {
    /// The CORBA priority, from which the lane follows.
    pub priority: Priority,
    /// The order among consumers of one lane (`Dispatching_Type_t` of the scheduler's `Config_Info`).
    pub order: DispatchOrder,
    /// The time within which the consumer should get an event; zero if unknown.
    pub deadline: Duration,
    /// The time that the consumer works for an event; zero if unknown.
    pub execution: Duration,
}

/// The order in which a lane serves its consumers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DispatchOrder {
    /// Order of arrival of their events.
    #[default]
    Arrival,
    /// The earliest deadline first.
    Deadline,
    /// The least laxity first: deadline less execution.
    Laxity,
}

/// Why the urgency of an `rt_info` is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrgencyError {
    /// The handle does not exist: the consumer gets BAD_PARAM.
    #[error("no priority is known of rt_info {0}")]
    UnknownRtInfo(i32),
    /// The source cannot answer now: the consumer gets TRANSIENT.
    #[error("no priority was told of rt_info {rt_info}: {reason}")]
    NotTold {
        /// The handle.
        rt_info: i32,
        /// The error of the source.
        reason: String,
    },
}

impl Urgency {
    /// A priority with order of arrival.
    pub const fn of(priority: Priority) -> Self {
        Self {
            priority,
            order: DispatchOrder::Arrival,
            deadline: Duration::ZERO,
            execution: Duration::ZERO,
        }
    }

    /// The time from an event's arrival to its consumer's turn; `None` in order of arrival.
    pub(crate) fn turn_after(&self) -> Option<Duration> {
        match self.order {
            DispatchOrder::Arrival => None,
            DispatchOrder::Deadline => Some(self.deadline),
            DispatchOrder::Laxity => Some(self.deadline.saturating_sub(self.execution)),
        }
    }
}

/// The handle is the CORBA priority. For systems without a scheduling service.
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
