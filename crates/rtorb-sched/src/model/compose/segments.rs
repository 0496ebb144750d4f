//! Parts of segments, and the passes over all segments.

use std::collections::BTreeSet;

use super::super::composition::{Part, Segment};
use super::super::report::Layer;
use super::super::system::{Placement, System};
use super::ComposeError;
use super::costs::Costs;

/// Adds a part to the one with the same cause, or as a new one; ignores empty parts. Sums saturate at 64 bits.
pub(super) fn add(parts: &mut Vec<Part>, part: Part) {
    if part.ns == 0 && part.code_of.is_none() {
        return;
    }
    let same = |known: &&mut Part| {
        known.layer == part.layer && known.what == part.what && known.code_of == part.code_of
    };
    match parts.iter_mut().find(same) {
        Some(known) => {
            known.times = known.times.saturating_add(part.times);
            known.ns = known.ns.saturating_add(part.ns);
        }
        None => parts.push(part),
    }
}

/// Creates a part of the host or the ORB.
pub(super) fn part(layer: Layer, what: &str, times: u64, each_ns: u64) -> Part {
    Part {
        layer,
        what: what.to_owned(),
        code_of: None,
        times,
        ns: each_ns.saturating_mul(times),
    }
}

/// Adds two switches to each segment, in and out (P3 section 4.2), with the maximum number of ready tasks on its CPU: the
/// behaviours that run there at a priority of their own, for each root.
pub(super) fn add_switches(segments: &mut [Segment], places: &[Placement], costs: &mut Costs<'_>) {
    let mut ready: Vec<BTreeSet<(usize, usize, usize)>> = vec![BTreeSet::new(); places.len()];
    for segment in &*segments {
        ready[segment.processor].insert((segment.behaviour, segment.priority_of, segment.root));
    }
    let each_ns: Vec<u64> = places
        .iter()
        .zip(&ready)
        .map(|(place, ready)| costs.switch(place.node, ready.len() as u64))
        .collect();
    for segment in segments {
        let switches = part(
            Layer::OperatingSystem,
            "context switches",
            2,
            each_ns[segment.processor],
        );
        add(&mut segment.execution, switches);
    }
}

/// Checks that all times fit into 64 bits.
pub(super) fn check_lengths(system: &System, segments: &[Segment]) -> Result<(), ComposeError> {
    for segment in segments {
        let lists = [
            &segment.delay,
            &segment.jitter,
            &segment.execution,
            &segment.blocking,
        ];
        let fits = |parts: &&Vec<Part>| {
            let sum = parts
                .iter()
                .try_fold(0_u64, |sum, part| sum.checked_add(part.ns));
            sum.is_some_and(|sum| sum < u64::MAX)
        };
        if !lists.iter().all(fits) {
            let root = &system.behaviours[segment.root];
            return Err(ComposeError::TooLong {
                line: root.line,
                root: root.name.clone(),
            });
        }
    }
    Ok(())
}
