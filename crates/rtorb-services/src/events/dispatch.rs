//! The way of an event from the thread that it comes in on: in place to consumers of that thread's lane, by one hand-over to each
//! other lane.

use super::Dispatching;
use super::consumer::{Consumer, Dispatch};
use super::event::Incoming;
use super::filter::Key;
use super::lane::Lane;
use super::subscriptions::{Matching, Subscriptions};
use rtorb::rt::Priority;
use rtorb_os::clock::monotonic_ns;
use std::sync::Arc;

/// Hands an event to all consumers that want it, the most urgent lane first, on a thread of that priority.
///
/// A lane is rung when all its consumers have the event, or it has the event for them, and before a less urgent one is looked at.
pub(crate) fn dispatch(
    event: &Incoming<'_>,
    priority: Priority,
    (subscriptions, dispatching): (&Subscriptions<Arc<Consumer>>, Dispatching),
) {
    let now_ns = monotonic_ns();
    let consumers = subscriptions.snapshot();
    let mut matching = consumers.matching(Key::of(&event.header));
    let mut next = matching.next();
    while let Some(first) = next {
        let lane = first.lane();
        let is_in_place = match dispatching {
            // What was handed over goes first.
            Dispatching::Priority => lane.priority() == priority && lane.undistributed() == 0,
            Dispatching::Reactive => true,
            Dispatching::Lanes => false,
        };
        next = if is_in_place {
            offer_each(event, first, (&mut matching, Dispatch::InPlace), now_ns)
        } else if lane.hand_over(event, now_ns, subscriptions) {
            lane.ring();
            lane.skip(&mut matching);
            matching.next()
        } else {
            offer_each(event, first, (&mut matching, Dispatch::ByLane), now_ns)
        };
    }
}

/// Offers an event to `first` and all others of its lane; answers the first of another lane.
fn offer_each<'m>(
    event: &Incoming<'_>,
    first: &'m Arc<Consumer>,
    (matching, dispatch): (&mut Matching<'m, Arc<Consumer>>, Dispatch),
    now_ns: u64,
) -> Option<&'m Arc<Consumer>> {
    let lane: &Arc<Lane> = first.lane();
    let mut is_to_ring = false;
    let mut next = Some(first);
    while let Some(consumer) = next
        && Arc::ptr_eq(consumer.lane(), lane)
    {
        is_to_ring |= consumer.offer(event, dispatch, now_ns);
        next = matching.next();
    }
    if is_to_ring {
        lane.ring();
    }
    next
}

#[cfg(test)]
mod tests;
