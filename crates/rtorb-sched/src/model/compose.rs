//! A system and its platforms, composed layer by layer (P3 section 3, Figure 2): what each CPU executes, and what each cost of it is.
//!
//! docs/model.md has the table of rules. Every root (a periodic or sporadic behaviour) becomes a tree of segments: what one CPU executes
//! without suspending itself.

mod costs;
mod expansion;
mod messages;
mod segments;

use std::collections::BTreeSet;

use thiserror::Error;

use super::checked::Layer;
use super::composed::{Composed, Interrupt, Part, Processor};
use super::platform::Platform;
use super::system::{CallWay, System, Trigger};
use costs::Costs;
use expansion::Expansion;

/// How many segments there may be, and how many calls are followed.
pub const SEGMENTS_MAX: usize = 100_000;

/// How many behaviours one call may begin after another, from the root on.
pub const PATH_MAX: usize = 128;

/// Why a system cannot be composed with these platforms.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ComposeError {
    /// Each node has one.
    #[error(
        "the system has {nodes} nodes, and {platforms} platforms were given: give one a node, in order"
    )]
    Platforms {
        /// Of the system.
        nodes: usize,
        /// Given.
        platforms: usize,
    },
    /// Nothing carries the call.
    #[error(
        "line {line}: {caller} calls {called}, and there is no link between their nodes {from} and {to}: describe it as a [[link]]"
    )]
    NoLink {
        /// The call's line in the system's file.
        line: usize,
        /// The behaviour that calls.
        caller: String,
        /// What it calls, or the channel.
        called: String,
        /// The node that the call leaves.
        from: String,
        /// The node that it must reach.
        to: String,
    },
    /// Calls of calls, or counts, beyond what is followed.
    #[error(
        "line {line}: {root} begins more than {SEGMENTS_MAX} calls or segments, with those of the roots before it: make `count` less, or \
         let fewer calls call others"
    )]
    TooMany {
        /// The root's line in the system's file.
        line: usize,
        /// The behaviour that begins them.
        root: String,
    },
    /// Calls of calls of calls, or calls in a circle.
    #[error(
        "line {line}: {root} begins calls that follow each other further than {PATH_MAX} behaviours, to {behaviour}: calls may not go in \
         a circle"
    )]
    TooDeep {
        /// The root's line in the system's file.
        line: usize,
        /// The behaviour that begins them.
        root: String,
        /// The behaviour that is too deep.
        behaviour: String,
    },
    /// More than 64 bits of nanoseconds.
    #[error(
        "line {line}: what {root} begins executes for more than 500 years at one place: make its times or counts less"
    )]
    TooLong {
        /// The root's line in the system's file.
        line: usize,
        /// The behaviour that begins it.
        root: String,
    },
}

/// Composes a system with a platform for each of its nodes, in the order of the nodes.
///
/// # Errors
/// [`ComposeError`]: what cannot be composed, with its line in the system's file.
pub fn compose(system: &System, platforms: &[Platform]) -> Result<Composed, ComposeError> {
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
    Ok(Composed {
        processors,
        segments,
        activations,
        assumptions: costs.assumptions(),
    })
}

/// The periodic and sporadic behaviours, and their periods or gaps.
fn roots(system: &System) -> impl Iterator<Item = (usize, u64)> {
    let behaviours = system.behaviours.iter().enumerate();
    behaviours.filter_map(|(at, behaviour)| match behaviour.trigger {
        Trigger::Periodic { period_ns } => Some((at, period_ns)),
        Trigger::Sporadic { gap_ns } => Some((at, gap_ns)),
        Trigger::Called => None,
    })
}

/// The CPUs on which something runs: node, and CPU of the node.
fn places(system: &System) -> Vec<(usize, u32)> {
    let behaviours = (0..system.behaviours.len()).map(|behaviour| system.place(behaviour));
    let calls = system
        .behaviours
        .iter()
        .flat_map(|behaviour| &behaviour.calls);
    let channels = calls.filter_map(|call| match call.way {
        CallWay::Event { channel } => {
            let channel = &system.channels[channel];
            Some((channel.node, channel.cpu))
        }
        CallWay::TwoWay | CallWay::OneWay => None,
    });
    let places: BTreeSet<(usize, u32)> = behaviours.chain(channels).collect();
    places.into_iter().collect()
}

/// A CPU with what goes before all segments: the clock's tick (P3 Equations 1 to 3), and an interrupt for each release of a root there.
fn processor(system: &System, place: (usize, u32), costs: &mut Costs<'_>) -> Processor {
    let (node, cpu) = place;
    let mut interrupts = Vec::new();
    let tick_ns = costs.tick(node);
    if tick_ns > 0 {
        interrupts.push(Interrupt {
            period_ns: costs.tick_period(node),
            cost: interrupt("tick".to_owned(), tick_ns),
        });
    }
    for (root, period_ns) in roots(system).filter(|(root, _)| system.place(*root) == place) {
        let release_ns = costs.release_interrupt(node);
        if release_ns > 0 {
            let what = format!("release of {}", system.behaviours[root].name);
            interrupts.push(Interrupt {
                period_ns,
                cost: interrupt(what, release_ns),
            });
        }
    }
    Processor {
        node,
        cpu,
        scheduling: system.nodes[node].scheduling,
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
