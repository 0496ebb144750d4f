//! How much of each CPU is used, by layer.

use std::collections::BTreeMap;

use super::super::checked::{Assumption, Layer, ProcessorUse};
use super::super::system::Scheduling;
use super::steps::{Analysed, View};
use crate::Utilisation;

/// Above this, real-time work meets what Linux keeps for the rest: 50 ms of each second.
const THROTTLED_MILLIONTHS: u64 = 950_000;

/// The use of every CPU on which something runs.
pub(super) fn processors(view: &View<'_>, analysed: &Analysed) -> Vec<ProcessorUse> {
    let mut shares: Vec<BTreeMap<Layer, Shares>> =
        vec![BTreeMap::new(); view.composed.processors.len()];
    for (index, step) in analysed.steps.iter().enumerate() {
        for (layer, ns) in view.layers(index) {
            shares[step.processor]
                .entry(layer)
                .or_default()
                .add(step.task.period_ns, ns);
        }
    }
    let used =
        |(processor, layers): (&super::super::composed::Processor, &BTreeMap<Layer, Shares>)| {
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
                    Scheduling::FixedPriority => "fixed_priority",
                    Scheduling::EarliestDeadline => "earliest_deadline",
                },
                utilisation_millionths: all.millionths(),
                layers_millionths: by_layer,
            }
        };
    view.composed
        .processors
        .iter()
        .zip(&shares)
        .map(used)
        .collect()
}

/// What follows for bounds from how much is used.
pub(super) fn assumptions(processors: &[ProcessorUse]) -> Vec<Assumption> {
    let full = |processor: &&ProcessorUse| processor.utilisation_millionths > THROTTLED_MILLIONTHS;
    let say = |processor: &ProcessorUse| Assumption {
        node: Some(processor.node.clone()),
        what: format!(
            "real-time work takes {} of CPU {}, and the bounds assume that it gets it: Linux keeps 50 ms of each second for \
             the rest (kernel.sched_rt_runtime_us, or the fair server). Use less than 95 %, or turn that off where nothing \
             else needs this CPU",
            percent(processor.utilisation_millionths),
            processor.cpu
        ),
    };
    processors.iter().filter(full).map(say).collect()
}

/// As percent with one decimal, rounded up.
pub(super) fn percent(millionths: u64) -> String {
    let tenths = millionths.div_ceil(1_000);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Execution by period: those of one period are one share, so that exact sums stay short.
#[derive(Clone, Default)]
struct Shares {
    by_period: BTreeMap<u64, u64>,
}

impl Shares {
    fn add(&mut self, period_ns: u64, ns: u64) {
        let sum = self.by_period.entry(period_ns).or_default();
        *sum = sum.saturating_add(ns);
    }

    fn add_all(&mut self, other: &Self) {
        other
            .by_period
            .iter()
            .for_each(|(&period_ns, &ns)| self.add(period_ns, ns));
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
