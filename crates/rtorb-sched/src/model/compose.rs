//! Composes a system with its platforms layer by layer (P3 section 3, Figure 2): what each CPU executes, and the cause of each
//! cost.
//!
//! docs/explanation/model.md has the table of rules. Every root (a periodic or sporadic behaviour) becomes a tree of segments. A CPU executes
//! a segment without suspending it.

mod costs;
mod expansion;
mod messages;
mod segments;

use std::collections::BTreeSet;

use thiserror::Error;

use super::composition::{Composition, Interrupt, Part, Processor};
use super::platform::Platform;
use super::report::Layer;
use super::system::{CallWay, Placement, System};
use crate::arrivals::Burst;
use crate::holistic::SchedulingPolicy;
use costs::Costs;
use expansion::Expansion;

/// The maximum number of segments, and of calls followed.
pub const SEGMENTS_MAX: usize = 100_000;

/// The maximum length of a call path, from the root on.
pub const PATH_MAX: usize = 128;

/// An error of the composition of a system with platforms.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// The numbers of nodes and platforms differ.
    #[error(
        "the system has {nodes} nodes but {platforms} platforms: give one for each node, in order"
    )]
    Platforms {
        /// The number of nodes.
        nodes: usize,
        /// The number of platforms.
        platforms: usize,
    },
    /// There is no link for a call.
    #[error(
        "line {line}: {caller} calls {called}, but there is no link between their nodes {from} and {to}: add a [[link]]"
    )]
    NoLink {
        /// The call's line in the system's file.
        line: usize,
        /// The behaviour that calls.
        caller: String,
        /// The callee, or the channel.
        called: String,
        /// The node that the call leaves.
        from: String,
        /// The node that it must reach.
        to: String,
    },
    /// There are more calls than the limit.
    #[error(
        "line {line}: {root} and the roots before it cause more than {SEGMENTS_MAX} calls or segments: lower `count`, or remove \
         calls"
    )]
    TooMany {
        /// The root's line in the system's file.
        line: usize,
        /// The root.
        root: String,
    },
    /// A call path is too long, or is a cycle.
    #[error(
        "line {line}: a call path from {root} to {behaviour} is longer than {PATH_MAX} behaviours: calls may not form a \
         cycle"
    )]
    TooDeep {
        /// The root's line in the system's file.
        line: usize,
        /// The root.
        root: String,
        /// The end of the path.
        behaviour: String,
    },
    /// A time does not fit into 64 bits of nanoseconds.
    #[error(
        "line {line}: a segment of {root} executes for more than 500 years: lower its times or counts"
    )]
    TooLong {
        /// The root's line in the system's file.
        line: usize,
        /// The root.
        root: String,
    },
}

/// Composes a system with one platform for each of its nodes, in order.
///
/// # Errors
/// [`ComposeError`] names the cause and its line in the system's file.
pub fn compose(system: &System, platforms: &[Platform]) -> Result<Composition, ComposeError> {
    if system.nodes.len() != platforms.len() {
        return Err(ComposeError::Platforms {
            nodes: system.nodes.len(),
            platforms: platforms.len(),
        });
    }
    let mut costs = Costs::of(system, platforms);
    let places = places(system);
    let mut expansion = Expansion::new(system, &places, &mut costs);
    for root in roots(system).map(|(root, _)| root) {
        expansion.expand(root)?;
    }
    let (mut segments, activations) = expansion.done();
    segments::add_switches(&mut segments, &places, &mut costs);
    segments::check_lengths(system, &segments)?;
    let processors = places
        .iter()
        .map(|place| processor(system, *place, &mut costs))
        .collect();
    Ok(Composition {
        processors,
        segments,
        activations,
        assumptions: costs.assumptions(),
    })
}

/// Returns the periodic and sporadic behaviours with their periods, gaps or windows.
fn roots(system: &System) -> impl Iterator<Item = (usize, u64)> {
    let behaviours = system.behaviours.iter().enumerate();
    behaviours.filter_map(|(at, behaviour)| Some((at, behaviour.trigger.period_ns()?)))
}

/// Returns the CPUs that execute something.
fn places(system: &System) -> Vec<Placement> {
    let behaviours = (0..system.behaviours.len()).map(|behaviour| system.placement(behaviour));
    let calls = system
        .behaviours
        .iter()
        .flat_map(|behaviour| &behaviour.calls);
    let channels = calls.filter_map(|call| match call.way {
        CallWay::Event { channel } => {
            let channel = &system.channels[channel];
            Some(Placement {
                node: channel.node,
                cpu: channel.cpu,
            })
        }
        CallWay::TwoWay | CallWay::OneWay => None,
    });
    let places: BTreeSet<Placement> = behaviours.chain(channels).collect();
    places.into_iter().collect()
}

/// Returns a CPU with the interrupts that preempt all segments: the clock's tick (P3 Equations 1 to 3), and one for each release
/// of a root there.
fn processor(system: &System, place: Placement, costs: &mut Costs<'_>) -> Processor {
    let Placement { node, cpu } = place;
    let mut interrupts = Vec::new();
    let tick_ns = costs.tick(node);
    if tick_ns > 0 {
        interrupts.push(Interrupt {
            period_ns: costs.tick_period(node),
            burst: Burst::NONE,
            jitter_ns: 0,
            cost: interrupt("tick".to_owned(), tick_ns),
        });
    }
    for (root, period_ns) in roots(system).filter(|(root, _)| system.placement(*root) == place) {
        let release_ns = costs.release_interrupt(node);
        if release_ns > 0 {
            let root = &system.behaviours[root];
            let what = format!("release of {}", root.name);
            interrupts.push(Interrupt {
                period_ns,
                burst: root.trigger.burst(),
                jitter_ns: root.jitter_ns,
                cost: interrupt(what, release_ns),
            });
        }
    }
    let scheduling = system.scheduling(place);
    Processor {
        node,
        cpu,
        scheduling,
        levels: system.nodes[node]
            .levels
            .filter(|_| scheduling == SchedulingPolicy::EarliestDeadline),
        interrupts,
        hypervisor_ns: costs.platform(node).hypervisor_ns(),
    }
}

fn interrupt(what: String, ns: u64) -> Part {
    Part {
        layer: Layer::OperatingSystem,
        what,
        code_of: None,
        times: 1,
        ns,
    }
}
