//! What follows from the measured times: how much of the load the high-priority client feels, and whether the promises hold.

use rtorb_results::by_round::ByRound;
use rtorb_results::{Claim, Derived, Highlight};

use super::measured::{Key, Measured, Of, Role, labels_of};
use super::plan::{Cell, Condition, Load, Plan};

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
                Derived::of_rounds("cpu_share", labels, "ratio", &shares.into())
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

/// The claims about the high-priority client of the preset in which nothing is shared between priorities.
pub(super) fn claims(measured: &Measured) -> Vec<Claim> {
    let keys = measured.keys(Role::High);
    let judged = keys.filter(|key| key.preset == PROMISED && key.cell.low_clients > 0);
    judged.flat_map(|key| claims_of(measured, key)).collect()
}

fn claims_of(measured: &Measured, key: &Key) -> Vec<Claim> {
    let Cell {
        condition,
        low_clients,
    } = key.cell;
    let of_alone = |of| {
        measured
            .rounds(key, of)
            .divided_by(&measured.rounds(&key.alone(), of))
    };
    let of_low = |of| {
        measured
            .rounds(key, of)
            .divided_by(&measured.rounds(&key.low(), of))
    };
    let to_raw = measured
        .rounds(key, Of::P50)
        .divided_by(&measured.raw_rounds());
    let mut claims = vec![
        (
            "to-alone-p50",
            "high-priority median, to that without them",
            of_alone(Of::P50),
            1.3,
        ),
        (
            "to-alone-p99",
            "high-priority p99, to that without them",
            of_alone(Of::P99),
            1.5,
        ),
        (
            "to-raw",
            "high-priority median, to the raw TCP round trip (a goal)",
            to_raw,
            3.0,
        ),
    ];
    // Without work, a call of either takes as long: nothing is served while another one waits.
    if condition.servant_work_us > 0 {
        claims.extend([
            (
                "to-low-mean",
                "high-priority mean, to the low-priority one",
                of_low(Of::Mean),
                1.0,
            ),
            (
                "to-low-p99",
                "high-priority p99, to the low-priority one",
                of_low(Of::P99),
                1.0,
            ),
        ]);
    }
    let (load, work_us) = (condition.load.label(), condition.servant_work_us);
    let claim = |(id, text, rounds, limit): (&str, &str, ByRound, f64)| {
        let id = format!("{id}.{load}.{work_us}us.{low_clients}");
        let statement = format!("{}, {}: {text}", key.preset, key.cell);
        Claim::at_most(id, statement, &rounds, limit, "ratio")
    };
    claims.into_iter().filter_map(claim).collect()
}

/// A number of the high-priority client as a multiple of what it is without low-priority ones.
pub(super) fn to_unloaded(measured: &Measured, key: &Key, of: Of) -> Option<Derived> {
    let name = match of {
        Of::P99 => "loaded_to_unloaded_p99",
        _ => "loaded_to_unloaded_p50",
    };
    let alone = key.alone();
    let rounds = measured
        .rounds(key, of)
        .divided_by(&measured.rounds(&alone, of));
    let labels = labels_of(&key.preset, key.cell, Role::High);
    let ratio = Derived::of_rounds(name, labels, "ratio", &rounds)?;
    // Of the medians: what is promised.
    Some(Derived {
        value: measured.median(key, of)? / measured.median(&alone, of)?,
        ..ratio
    })
}

/// The high-priority client's mean as a multiple of the low-priority ones'.
fn to_low_mean(measured: &Measured, key: &Key) -> Option<Derived> {
    let low = measured.rounds(&key.low(), Of::Mean);
    let rounds = measured.rounds(key, Of::Mean).divided_by(&low);
    let labels = labels_of(&key.preset, key.cell, Role::High);
    Derived::of_rounds("high_to_low_mean", labels, "ratio", &rounds)
}

/// The high-priority client's median as a multiple of the raw exchange's.
fn to_raw(measured: &Measured, key: &Key) -> Option<Derived> {
    let rounds = measured
        .rounds(key, Of::P50)
        .divided_by(&measured.raw_rounds());
    let labels = labels_of(&key.preset, key.cell, Role::High);
    let ratio = Derived::of_rounds("loaded_to_raw_p50", labels, "ratio", &rounds)?;
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

/// Whose promises they are.
const PROMISED: &str = "tao";

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::Verdict;
    use rtorb_results::statistics::Statistics;

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
                (key("tao", 50, Role::Low), &rounds([500.0; 3], 900.0, 600.0)),
            ],
            &[6.0, 6.0, 7.0],
        );
        let claims = claims(&measured);
        let judged: Vec<(&str, Verdict)> = claims
            .iter()
            .map(|claim| (claim.id.as_str(), claim.verdict))
            .collect();
        assert_eq!(
            judged,
            [
                ("to-alone-p50.saturating.500us.50", Verdict::NotJudged),
                ("to-alone-p99.saturating.500us.50", Verdict::Missed),
                ("to-raw.saturating.500us.50", Verdict::NotJudged),
                ("to-low-mean.saturating.500us.50", Verdict::Held),
                ("to-low-p99.saturating.500us.50", Verdict::Held),
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
        assert!(claims(&measured).is_empty());
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
}
