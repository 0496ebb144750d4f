//! The way of an event from the thread that received it to the consumers: in place to consumers of that thread's lane, through the
//! intake to every other lane.

use super::config::Dispatching;
use super::consumer::{Consumer, Dispatch};
use super::event::Incoming;
use super::filter::Key;
use super::subscriptions::{Matching, Subscriptions};
use rtorb::rt::Priority;
use rtorb_os::clock::monotonic_ns;
use std::sync::Arc;

/// Gives an event to all consumers that want it, the most urgent lane first. The calling thread has the given priority.
///
/// A lane is woken when all its consumers have the event or its intake has it, and before less urgent lanes get the event.
pub(crate) fn dispatch(
    event: &Incoming<'_>,
    priority: Priority,
    dispatching: Dispatching,
    subscriptions: &Subscriptions<Arc<Consumer>>,
) {
    let now_ns = monotonic_ns();
    let consumers = subscriptions.snapshot();
    let mut matching = consumers.matching(Key::of(&event.header));
    let mut next = matching.next();
    while let Some(first) = next {
        let lane = first.lane();
        let is_in_place = match dispatching {
            // Events in the intake go first.
            Dispatching::Priority => lane.priority() == priority && lane.undistributed() == 0,
            Dispatching::Reactive => true,
            Dispatching::Lanes => false,
        };
        next = if is_in_place {
            offer_each(event, first, &mut matching, Dispatch::InPlace, now_ns)
        } else if lane.accept(event, now_ns, subscriptions) {
            lane.wake();
            lane.skip(&mut matching);
            matching.next()
        } else {
            offer_each(event, first, &mut matching, Dispatch::ByLane, now_ns)
        };
    }
}

/// Offers an event to `first` and to the other consumers of its lane. Returns the first consumer of the next lane.
fn offer_each<'m>(
    event: &Incoming<'_>,
    first: &'m Arc<Consumer>,
    matching: &mut Matching<'m, Arc<Consumer>>,
    dispatch: Dispatch,
    now_ns: u64,
) -> Option<&'m Arc<Consumer>> {
    let lane = first.lane();
    let mut must_wake = false;
    let mut next = Some(first);
    while let Some(consumer) = next
        && Arc::ptr_eq(consumer.lane(), lane)
    {
        must_wake |= consumer.offer(event, dispatch, now_ns);
        next = matching.next();
    }
    if must_wake {
        lane.wake();
    }
    next
}

#[cfg(test)]
#[path = "dispatch_tests.rs"]
mod tests;
