//! How urgent and how critical a request is: what a lane's order makes of its deadline, and of the annotations of its operation.

use crate::strategies::RequestOrder;
use crate::timing::{Criticality, OperationTiming};
use core::cmp::Reverse;

/// The urgency of a request, fixed when the request arrives. The least value is the most urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Urgency {
    /// The criticality of the operation, in an order that looks at it; else of all requests the same.
    criticality: Reverse<Criticality>,
    /// The deadline, or the time by which the servant must begin in order to meet it.
    by_ns: u64,
}

/// What decides when a request runs, and whether it keeps its place in a full queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Importance {
    pub(super) urgency: Urgency,
    pub(super) criticality: Criticality,
}

impl Importance {
    /// The importance in `order` of a request with this deadline (`u64::MAX` for none), to an operation with these annotations.
    pub(crate) fn new(
        order: RequestOrder,
        deadline_ns: u64,
        timing: Option<&OperationTiming>,
    ) -> Self {
        Self {
            urgency: Urgency::new(order, deadline_ns, timing),
            criticality: criticality(timing),
        }
    }
}

impl Urgency {
    /// The urgency in `order` of a request with this deadline (`u64::MAX` for none), to an operation with these annotations.
    ///
    /// Requests without a deadline come after those that have one.
    fn new(order: RequestOrder, deadline_ns: u64, timing: Option<&OperationTiming>) -> Self {
        let worst_ns = timing.and_then(|timing| timing.worst_ns).unwrap_or(0);
        // The laxity of two waiting requests shrinks at the same rate, so their order is that of the times by which they must begin.
        let begin_by_ns = match deadline_ns {
            u64::MAX => u64::MAX,
            _ => deadline_ns.saturating_sub(worst_ns),
        };
        let (criticality, by_ns) = match order {
            RequestOrder::Fifo | RequestOrder::FifoShedding => (UNSTATED, 0),
            RequestOrder::EarliestDeadline => (UNSTATED, deadline_ns),
            RequestOrder::LeastLaxity => (UNSTATED, begin_by_ns),
            RequestOrder::MaximumUrgency => (criticality(timing), begin_by_ns),
        };
        Self {
            criticality: Reverse(criticality),
            by_ns,
        }
    }
}

fn criticality(timing: Option<&OperationTiming>) -> Criticality {
    let stated = timing.and_then(OperationTiming::criticality);
    stated.unwrap_or(UNSTATED)
}

/// The criticality of an operation without the annotation, as in the analysis.
const UNSTATED: Criticality = Criticality::Medium;

#[cfg(test)]
mod tests {
    use super::*;
    use RequestOrder::{EarliestDeadline, LeastLaxity, MaximumUrgency};

    fn timing(worst_ns: u64, criticality: Criticality) -> OperationTiming {
        let timing = OperationTiming::new("O");
        timing.worst_case_ns(worst_ns).critical(criticality)
    }

    #[test]
    fn each_order_compares_what_its_name_says() {
        let short = timing(10, Criticality::Low);
        let long = timing(500, Criticality::Low);
        let vital = timing(10, Criticality::VeryHigh);
        let is_before = |order, (deadline_ns, timing), (other_ns, other)| {
            Urgency::new(order, deadline_ns, Some(timing))
                < Urgency::new(order, other_ns, Some(other))
        };
        assert!(is_before(EarliestDeadline, (1_000, &short), (1_100, &long)));
        assert!(is_before(LeastLaxity, (1_100, &long), (1_000, &short)));
        assert!(is_before(MaximumUrgency, (1_100, &long), (1_000, &short)));
        assert!(is_before(LeastLaxity, (1_000, &short), (9_000, &vital)));
        assert!(is_before(MaximumUrgency, (9_000, &vital), (1_000, &short)));
    }

    #[test]
    fn a_request_without_a_deadline_comes_last_whatever_its_worst_case() {
        let long = timing(500, Criticality::Medium);
        for order in [EarliestDeadline, LeastLaxity, MaximumUrgency] {
            let without = Urgency::new(order, u64::MAX, Some(&long));
            assert!(Urgency::new(order, u64::MAX - 1, None) < without, "{order}");
        }
    }

    #[test]
    fn an_operation_that_states_no_criticality_is_of_the_middle() {
        let of = |criticality| {
            let timing = timing(0, criticality);
            Urgency::new(MaximumUrgency, 1, Some(&timing))
        };
        let unstated = Urgency::new(MaximumUrgency, 1, None);
        assert!(of(Criticality::High) < unstated && unstated < of(Criticality::Low));
    }
}
