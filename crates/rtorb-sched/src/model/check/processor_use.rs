//! The utilisation of each CPU by layer.

use std::collections::BTreeMap;

use super::super::report::{Assumption, Layer, ProcessorUse};
use super::steps::{Analysis, View};
use crate::Utilisation;
use crate::holistic::SchedulingPolicy;
use crate::utilisation::share;

/// Above this utilisation, real-time work competes with the 50 ms of each second that Linux reserves for other work.
const THROTTLED_MILLIONTHS: u64 = 950_000;

/// Returns the utilisation of every CPU that executes something.
pub(super) fn processors(view: &View<'_>, analysis: &Analysis) -> Vec<ProcessorUse> {
    let mut shares: Vec<BTreeMap<Layer, Shares>> =
        vec![BTreeMap::new(); view.composition.processors.len()];
    for (index, step) in analysis.steps.iter().enumerate() {
        for (layer, ns) in view.layers(index) {
            shares[step.processor]
                .entry(layer)
                .or_default()
                .add(share(step.task.arrivals(), ns));
        }
    }
    let used = |(processor, layers): (
        &super::super::composition::Processor,
        &BTreeMap<Layer, Shares>,
    )| {
        let mut all = Shares::default();
        layers.values().for_each(|layer| all.add_all(layer));
        let by_layer = layers
            .iter()
            .map(|(&layer, shares)| (layer, shares.millionths()));
        let mut by_layer: Vec<_> = by_layer.filter(|&(_, used)| used > 0).collect();
        by_layer.sort_by_key(|&(layer, used)| (core::cmp::Reverse(used), layer));
        ProcessorUse {
            node: view.system.nodes[processor.node].name.clone(),
            cpu: processor.cpu,
            scheduling: match processor.scheduling {
                SchedulingPolicy::FixedPriority => "fixed_priority",
                SchedulingPolicy::EarliestDeadline => "earliest_deadline",
            },
            levels: processor.levels,
            utilisation_millionths: all.millionths(),
            layers_millionths: by_layer,
        }
    };
    view.composition
        .processors
        .iter()
        .zip(&shares)
        .map(used)
        .collect()
}

/// Returns the assumptions that follow from a high utilisation.
pub(super) fn assumptions(processors: &[ProcessorUse]) -> Vec<Assumption> {
    let full = |processor: &&ProcessorUse| processor.utilisation_millionths > THROTTLED_MILLIONTHS;
    let say = |processor: &ProcessorUse| Assumption {
        node: Some(processor.node.clone()),
        what: format!(
            "real-time work uses {} of CPU {}, and the bounds assume that it gets this share. But Linux reserves 50 ms of each second for \
             other work (kernel.sched_rt_runtime_us, or the fair server). Use less than 95 %, or switch this off if no other work \
             needs this CPU",
            percent(processor.utilisation_millionths),
            processor.cpu
        ),
    };
    processors.iter().filter(full).map(say).collect()
}

/// Formats millionths as percent with one decimal, rounded up.
pub(super) fn percent(millionths: u64) -> String {
    let tenths = millionths.div_ceil(1_000);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Execution time by period: entries of one period are merged, so that exact sums stay small.
#[derive(Clone, Default)]
struct Shares {
    by_period: BTreeMap<u64, u64>,
}

impl Shares {
    fn add(&mut self, (ns, period_ns): (u64, u64)) {
        let sum = self.by_period.entry(period_ns).or_default();
        *sum = sum.saturating_add(ns);
    }

    fn add_all(&mut self, other: &Self) {
        other
            .by_period
            .iter()
            .for_each(|(&period_ns, &ns)| self.add((ns, period_ns)));
    }

    fn millionths(&self) -> u64 {
        Utilisation::of_shares(
            self.by_period
                .iter()
                .map(|(&period_ns, &ns)| (ns, period_ns)),
        )
        .millionths()
    }
}
