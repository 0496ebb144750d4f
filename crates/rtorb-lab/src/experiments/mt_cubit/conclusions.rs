//! What follows from the measured times: how much of the load the high-priority client feels, and whether the promises hold.

use std::collections::BTreeMap;

use super::measured::{Key, Measured, Of, Role, labels_of};
use super::plan::{Cell, Condition, Load, Plan};
use crate::results::statistics::median;
use crate::results::{Derived, Highlight, Labels, Target};

/// Every number that needs more than one series.
pub(super) fn derived(measured: &Measured) -> Vec<Derived> {
    let mut derived = Vec::new();
    for key in measured.keys(Role::High) {
        derived.extend(to_raw(measured, key));
        if key.cell.low_clients > 0 {
            derived.extend(to_unloaded(measured, key, Of::P50));
            derived.extend(to_unloaded(measured, key, Of::P99));
            derived.extend(to_low_mean(measured, key));
        }
    }
    derived.extend(
        measured
            .shares()
            .filter_map(|(preset, cell, side, shares)| {
                let mut labels = labels_of(preset, cell, Role::High);
                labels.remove("role");
                if let Some(side) = side {
                    labels.insert("side".to_owned(), side.into());
                }
                named("cpu_share", labels, shares.to_vec())
            }),
    );
    derived
}

/// The high-priority client beside as many low-priority ones as there were, a contestant each.
pub(super) fn highlights(measured: &Measured, plan: &Plan) -> Vec<Highlight> {
    let Some(cell) = hardest(plan) else {
        return Vec::new();
    };
    let mut highlights = Vec::new();
    for key in measured.keys(Role::High).filter(|key| key.cell == cell) {
        let us = |key: &Key, of| measured.median(key, of).map(|ns| ns / 1e3);
        let (Some(loaded), Some(p99)) = (us(key, Of::P50), us(key, Of::P99)) else {
            continue;
        };
        let alone = us(&key.alone(), Of::P50)
            .map(|alone| format!("{alone:.1} us without them, "))
            .unwrap_or_default();
        highlights.push(Highlight {
            what: format!(
                "{}: high-priority median beside {} low-priority clients, {}",
                key.preset,
                cell.low_clients,
                cell.condition.load.label()
            ),
            value: loaded,
            unit: "us".to_owned(),
            beside: format!("{alone}p99 {p99:.1} us"),
        });
    }
    highlights
}

/// The promises of the project that these measurements can decide.
pub(super) fn targets(measured: &Measured) -> Vec<Target> {
    let mut targets = Vec::new();
    for key in measured.keys(Role::High) {
        let condition = key.cell.condition;
        if key.preset != PROMISED || condition.servant_work_us != PROMISED_WORK_US {
            continue;
        }
        let what = |text: &str| format!("{}, {}: {text}", key.preset, key.cell);
        if key.cell.low_clients == 0 {
            continue;
        }
        let ratios = [
            (Of::P50, "high-priority median, to that without them", 1.3),
            (Of::P99, "high-priority p99, to that without them", 1.5),
        ];
        targets.extend(ratios.into_iter().filter_map(|(of, text, limit)| {
            let ratio = to_unloaded(measured, key, of)?.value;
            Some(Target::at_most(what(text), ratio, limit, "ratio"))
        }));
        targets.extend(to_low_mean(measured, key).map(|ratio| {
            let worst = ratio.rounds.iter().copied().fold(0.0, f64::max);
            let text = what("high-priority mean, to the low-priority one, in the worst round");
            Target::at_most(text, worst, 1.0, "ratio")
        }));
        targets.extend(to_raw(measured, key).map(|ratio| {
            let text = what("high-priority median, to the raw TCP round trip (a goal)");
            Target::at_most(text, ratio.value, 3.0, "ratio")
        }));
    }
    targets
}

/// A number of the high-priority client as a multiple of what it is without low-priority ones.
pub(super) fn to_unloaded(measured: &Measured, key: &Key, of: Of) -> Option<Derived> {
    let name = match of {
        Of::P99 => "loaded_to_unloaded_p99",
        _ => "loaded_to_unloaded_p50",
    };
    let alone = key.alone();
    let rounds = paired(&measured.rounds(key, of), &measured.rounds(&alone, of));
    let ratio = named(name, labels_of(&key.preset, key.cell, Role::High), rounds)?;
    // Of the medians: what is promised.
    Some(Derived {
        value: measured.median(key, of)? / measured.median(&alone, of)?,
        ..ratio
    })
}

/// The high-priority client's mean as a multiple of the low-priority ones'.
fn to_low_mean(measured: &Measured, key: &Key) -> Option<Derived> {
    let low = measured.rounds(&key.low(), Of::Mean);
    let rounds = paired(&measured.rounds(key, Of::Mean), &low);
    let labels = labels_of(&key.preset, key.cell, Role::High);
    named("high_to_low_mean", labels, rounds)
}

/// The high-priority client's median as a multiple of the raw exchange's.
fn to_raw(measured: &Measured, key: &Key) -> Option<Derived> {
    let rounds = paired(&measured.rounds(key, Of::P50), &measured.raw_rounds());
    let labels = labels_of(&key.preset, key.cell, Role::High);
    let ratio = named("loaded_to_raw_p50", labels, rounds)?;
    Some(Derived {
        value: measured.median(key, Of::P50)? / measured.raw_median()?,
        ..ratio
    })
}

/// The cell in which a priority has most to stand.
pub(super) fn hardest(plan: &Plan) -> Option<Cell> {
    let of_condition = |condition: &&Condition| {
        (
            condition.load == Load::Saturating,
            condition.servant_work_us,
        )
    };
    Some(Cell {
        condition: *plan.conditions.iter().max_by_key(of_condition)?,
        low_clients: *plan.low_clients.iter().max()?,
    })
}

impl Key {
    /// The same without low-priority clients.
    pub(super) fn alone(&self) -> Self {
        let mut key = self.clone();
        key.cell.low_clients = 0;
        key
    }

    /// The low-priority clients beside it.
    pub(super) fn low(&self) -> Self {
        Self {
            role: Role::Low,
            ..self.clone()
        }
    }
}

/// Round by round, so that a drift of the machine cancels; rounds that one of them has not are left out.
fn paired(ours: &BTreeMap<usize, f64>, theirs: &BTreeMap<usize, f64>) -> Vec<f64> {
    ours.iter()
        .filter_map(|(round, ours)| Some(ours / theirs.get(round)?))
        .collect()
}

fn named(name: &str, labels: Labels, rounds: Vec<f64>) -> Option<Derived> {
    Some(Derived {
        name: name.to_owned(),
        labels,
        unit: "ratio".to_owned(),
        value: median(&rounds)?,
        rounds,
    })
}

/// Whose promises they are.
const PROMISED: &str = "tao";
const PROMISED_WORK_US: u64 = 500;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::statistics::Statistics;

    fn key(preset: &str, low_clients: usize, role: Role) -> Key {
        Key {
            place: 0,
            preset: preset.to_owned(),
            cell: Cell {
                condition: Condition::new(Load::Saturating, 500),
                low_clients,
            },
            role,
        }
    }

    fn rounds(p50: [f64; 3], p99: f64, mean: f64) -> [Statistics; 3] {
        p50.map(|p50| Statistics {
            p50,
            p99,
            mean,
            ..Statistics::default()
        })
    }

    #[test]
    fn the_promises_are_judged_by_medians_of_rounds() {
        let measured = Measured::with(
            &[
                (
                    key("tao", 0, Role::High),
                    &rounds([10.0, 30.0, 11.0], 40.0, 12.0),
                ),
                (
                    key("tao", 50, Role::High),
                    &rounds([12.0, 11.0, 90.0], 80.0, 13.0),
                ),
                (key("tao", 50, Role::Low), &rounds([0.0; 3], 0.0, 600.0)),
            ],
            &[6.0, 6.0, 7.0],
        );
        let targets = targets(&measured);
        let held: Vec<(f64, bool)> = targets
            .iter()
            .map(|target| (target.value, target.holds))
            .collect();
        assert_eq!(
            held,
            [
                (12.0 / 11.0, true),
                (2.0, false),
                (13.0 / 600.0, true),
                (2.0, true)
            ]
        );
    }

    #[test]
    fn only_the_promised_preset_is_judged() {
        let measured = Measured::with(
            &[
                (
                    key("corbaplus", 0, Role::High),
                    &rounds([10.0; 3], 1.0, 1.0),
                ),
                (
                    key("corbaplus", 9, Role::High),
                    &rounds([900.0; 3], 1.0, 1.0),
                ),
                (key("default", 0, Role::High), &rounds([10.0; 3], 1.0, 1.0)),
                (key("tao", 0, Role::High), &rounds([10.5; 3], 1.0, 1.0)),
            ],
            &[6.0],
        );
        assert!(targets(&measured).is_empty());
        let names: Vec<String> = derived(&measured)
            .into_iter()
            .map(|found| found.name)
            .collect();
        assert_eq!(
            names
                .iter()
                .filter(|name| *name == "loaded_to_raw_p50")
                .count(),
            4
        );
        assert_eq!(
            names
                .iter()
                .filter(|name| *name == "loaded_to_unloaded_p50")
                .count(),
            1
        );
    }

    #[test]
    fn a_round_that_one_side_has_not_is_left_out() {
        let ours = BTreeMap::from([(0, 4.0), (2, 9.0)]);
        let theirs = BTreeMap::from([(0, 2.0), (1, 5.0)]);
        assert_eq!(paired(&ours, &theirs), [2.0]);
    }
}
