//! One I/O thread passes each request through a chain of filters to the queue of the threads that serve its priority
//! (MT-Orbix, P1 2.2.2).
//!
//! The filters of the application come first. What they leave goes by the priority that the object was declared with, then by
//! the one that the request brings, and else to the first lane. A request of high priority waits for no servant of a lower
//! one, but for the one I/O thread that reads and filters whatever comes before it.

use super::pool::{Buffering, Intake, LaneConfig, LaneSelection, PoolConfig};
use crate::exception::{SystemException, local};
use crate::realtime::{CallPriority, Priority, ThreadpoolLane};
use crate::server::{ActiveObject, ServerCore, propagated};
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::ThreadConfig;
use rtorb_wire::giop::RequestHeader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Looks at each request before a servant's thread is chosen, for
/// [`DispatchStrategy::FilterChain`](crate::DispatchStrategy::FilterChain).
///
/// It runs on the I/O thread, for every request of an object that the ORB knows: it neither waits nor allocates. A request for an unknown
/// object goes to the first lane, which refuses it. A closure will do.
pub trait RequestFilter: Send + Sync {
    /// The CORBA priority that the request shall be served at; `None` leaves it to the next filter.
    ///
    /// The lane with that priority serves it; where there is none, the most urgent one that is less urgent, else the least
    /// urgent of all.
    fn priority(&self, request: &FilteredRequest<'_>) -> Option<Priority>;
}

impl<F: Fn(&FilteredRequest<'_>) -> Option<Priority> + Send + Sync> RequestFilter for F {
    fn priority(&self, request: &FilteredRequest<'_>) -> Option<Priority> {
        self(request)
    }
}

/// A request as filters see it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FilteredRequest<'r> {
    /// The path of the object's adapter from the root, separated by `/`.
    pub adapter: &'r str,
    /// The object's id in its adapter.
    pub object_id: &'r [u8],
    /// The operation's name.
    pub operation: &'r [u8],
    /// The priority that the object was declared with (SERVER_DECLARED).
    pub declared: Option<Priority>,
    /// The priority that the request brings (RTCorbaPriority).
    pub propagated: Option<Priority>,
}

/// The filters of the application, and the lanes that serve what passes them.
pub(crate) struct FilterChain {
    filters: Vec<Arc<dyn RequestFilter>>,
    pub(crate) lanes: Vec<ThreadpoolLane>,
}

impl FilterChain {
    /// A chain of these filters. Without a lane, one thread serves all requests; it runs as the server's threads do.
    pub(crate) fn new(filters: Vec<Arc<dyn RequestFilter>>, lanes: Vec<ThreadpoolLane>) -> Self {
        Self { filters, lanes }
    }

    /// Asks the application's filters for the priority of a request.
    ///
    /// # Errors
    /// UNKNOWN if a filter panics. Only this client sees it: the I/O thread reads for others too.
    fn ask(&self, request: &FilteredRequest<'_>) -> Result<Option<Priority>, SystemException> {
        if self.filters.is_empty() {
            return Ok(None);
        }
        let asked = || {
            let mut filters = self.filters.iter();
            filters.find_map(|filter| filter.priority(request))
        };
        catch_unwind(AssertUnwindSafe(asked)).map_err(|_| local::FILTER_PANICKED)
    }
}

/// Lanes behind queues, which one I/O thread fills.
pub(super) fn config(orb: &ServerCore, chain: &Arc<FilterChain>) -> PoolConfig {
    let lanes = chain.lanes.iter().map(|lane| LaneConfig {
        dynamic_threads: 0,
        ..LaneConfig::of_lane(
            format!("rtorb-s{}", lane.lane_priority),
            lane,
            orb.server_threads.clone(),
        )
    });
    let mut lanes: Vec<_> = lanes.collect();
    if lanes.is_empty() {
        lanes.push(LaneConfig::plain(orb, "rtorb-servant", 1));
    }
    let intake = Intake::Routed {
        // With several lanes a connection is always read: an urgent request may stand behind others that wait.
        buffering: Buffering {
            bounds_connections: lanes.len() == 1,
            ..Buffering::default()
        },
        io_thread: io_thread(orb, &chain.lanes),
        route: LaneSelection(Box::new({
            let chain = Arc::clone(chain);
            move |session, request, workspace| {
                request.examine(session, workspace, |object, located, header| {
                    let object = object.map(|object| (object, object.id_or(located)));
                    let priority = filter(&session.orb, &chain, object, header)?;
                    Ok(priority.map_or(0, |priority| lane_of(&chain.lanes, priority)))
                })
            }
        })),
    };
    PoolConfig::own(lanes, intake)
}

/// The scheduling of the I/O thread: that of the most urgent lane, above its levels, or that of the server's threads if it is more urgent.
/// A less urgent I/O thread would delay urgent requests behind running servants.
fn io_thread(orb: &ServerCore, lanes: &[ThreadpoolLane]) -> ThreadConfig {
    let most_urgent = lanes.iter().max_by_key(|lane| lane.lane_priority);
    // The builder has refused lanes without a native priority on this host.
    let native = most_urgent.and_then(|lane| lane.most_urgent(orb.rt.mapping.as_ref()));
    let of_lane = native.map(|native| orb.rt.policy(native));
    let policy = match (orb.server_threads.policy, of_lane) {
        // More urgent than all lanes.
        (Some(chosen @ SchedPolicy::Deadline { .. }), _) => Some(chosen),
        (Some(chosen), Some(of_lane)) if chosen.priority() < of_lane.priority() => Some(of_lane),
        (chosen, of_lane) => chosen.or(of_lane),
    };
    orb.rt.obtainable(&ThreadConfig {
        policy,
        ..orb.server_threads.clone()
    })
}

/// The priority that the chain gives a request.
fn filter(
    orb: &ServerCore,
    chain: &FilterChain,
    object: Option<(&ActiveObject, &[u8])>,
    header: &RequestHeader<'_>,
) -> Result<Option<Priority>, SystemException> {
    let Some((object, object_id)) = object else {
        return Ok(None);
    };
    let declared = match &object.priority {
        CallPriority::Declared(declared) => Some(declared.priority()),
        CallPriority::AsItIs | CallPriority::Propagated { .. } => None,
    };
    let (propagated, otherwise) = match (&object.priority, propagated(header)) {
        (CallPriority::Propagated { otherwise }, told) => (told?, Some(otherwise.get())),
        // The object ignores a propagated priority, so a malformed one must not fail the call.
        (_, told) => (told.ok().flatten(), None),
    };
    let request = FilteredRequest {
        adapter: object.adapter.path(),
        object_id,
        operation: header.operation,
        declared,
        propagated: propagated.map(|(priority, _)| priority),
    };
    if let Some(priority) = chain.ask(&request)? {
        return Ok(Some(priority));
    }
    let priority = declared.or(request.propagated).or(otherwise);
    priority
        .map(|priority| orb.rt.inbound(priority, &object.id))
        .transpose()
}

/// The lane for a priority: its own, else the most urgent one below it, else the least urgent of all.
fn lane_of(lanes: &[ThreadpoolLane], priority: Priority) -> usize {
    let by_priority = |&(_, lane): &(usize, &ThreadpoolLane)| lane.lane_priority;
    let below = lanes
        .iter()
        .enumerate()
        .filter(|(_, lane)| lane.lane_priority <= priority)
        .max_by_key(by_priority);
    let least = || lanes.iter().enumerate().min_by_key(by_priority);
    below.or_else(least).map_or(0, |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Orb;
    use rtorb_tests::relay::has_priorities;

    #[test]
    fn the_io_thread_is_as_urgent_as_the_most_urgent_lane_or_more() {
        if !has_priorities() {
            return;
        }
        let lane = |number| ThreadpoolLane {
            lane_priority: Priority::new(number).expect("in range"),
            static_threads: 1,
            ..ThreadpoolLane::default()
        };
        let lanes = [lane(20), lane(30)];
        for (chosen, expected) in [
            (None, SchedPolicy::Fifo(30)),
            (Some(SchedPolicy::Other), SchedPolicy::Fifo(30)),
            (Some(SchedPolicy::Fifo(10)), SchedPolicy::Fifo(30)),
            (
                Some(SchedPolicy::RoundRobin(40)),
                SchedPolicy::RoundRobin(40),
            ),
        ] {
            let builder = Orb::builder().server_threads(ThreadConfig {
                policy: chosen,
                ..ThreadConfig::default()
            });
            let orb = builder.build().expect("an ORB");
            let io_thread = io_thread(&orb.core.adapters.server, &lanes);
            assert_eq!(io_thread.policy, Some(expected), "{chosen:?}");
        }
    }

    #[test]
    fn a_priority_is_served_by_the_nearest_lane_that_is_not_above_it() {
        let lane = |number| ThreadpoolLane {
            lane_priority: Priority::new(number).expect("in range"),
            static_threads: 1,
            ..ThreadpoolLane::default()
        };
        let lanes = [lane(20), lane(5), lane(90)];
        for (priority, expected) in [
            (20, 0),
            (5, 1),
            (90, 2),
            (89, 0),
            (32_767, 2),
            (6, 1),
            (0, 1),
        ] {
            let priority = Priority::new(priority).expect("in range");
            assert_eq!(lane_of(&lanes, priority), expected, "{priority}");
        }
        assert_eq!(lane_of(&[], Priority::MAX), 0);
    }
}
