//! The times by contestant, cell and role, and the series that they become.

use std::collections::BTreeMap;

use rtorb_results::by_round::ByRound;
use rtorb_results::statistics::{Recorder, Statistics, median};
use rtorb_results::{Labels, LostRound, Series, labels};

use super::plan::Cell;
use crate::contestants::Orb;
use crate::contestants::burst::Samples;
use crate::contestants::rates::Times;
use crate::contestants::rates::contestants::{RateContestant, Turn};

/// What tells one series from another, from which moment on it counts aside.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// The place of the contestant in the line-up, so that series come in that order.
    pub(super) place: usize,
    pub(super) preset: String,
    pub(super) cell: Cell,
    pub(super) role: Role,
}

/// Whose calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    High,
    Low,
}

impl Role {
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::High => "high",
            Self::Low => "low",
        }
    }
}

/// What is said of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    P50,
    P99,
    Mean,
    /// The standard deviation: jitter, as the papers have it.
    Jitter,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    parts: BTreeMap<Key, Part>,
    /// Processor time as a share of one CPU, by contestant, cell and, where they are on two hosts, side, of each round.
    shares: BTreeMap<(usize, String, Cell, Option<&'static str>), Vec<f64>>,
    raw: Option<RawPart>,
    pub(super) lost: Vec<LostRound>,
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Default)]
struct Part {
    sent: Recorder,
    release: Recorder,
    /// By round: one may be missing where a contestant failed.
    sent_rounds: BTreeMap<usize, Statistics>,
    release_rounds: BTreeMap<usize, Statistics>,
    wrong: u64,
    missed: u64,
}

#[derive(Debug, Default)]
struct RawPart {
    recorder: Recorder,
    rounds: Vec<Statistics>,
}

impl Measured {
    pub(super) fn add(
        &mut self,
        place: usize,
        contestant: &RateContestant,
        cell: Cell,
        (round, turn): (usize, &Turn),
    ) {
        for (role, times) in [Role::High, Role::Low].into_iter().zip(&turn.ran.groups) {
            let key = Key {
                place,
                preset: contestant.preset.clone(),
                cell,
                role,
            };
            self.parts.entry(key).or_default().add(round, times);
        }
        for (side, share) in turn.cpu.by_side() {
            let key = (place, contestant.preset.clone(), cell, side);
            self.shares.entry(key).or_default().push(share);
        }
    }

    pub(super) fn add_raw(&mut self, samples: &Samples) {
        let raw = self.raw.get_or_insert_default();
        raw.recorder.record_all(&samples.times_ns);
        raw.recorder.end_round();
        raw.rounds.push(statistics_of(&samples.times_ns));
    }

    /// Remembers something once.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Every key of a role.
    pub(super) fn keys(&self, role: Role) -> impl Iterator<Item = &Key> {
        self.parts.keys().filter(move |key| key.role == role)
    }

    /// A number of each round, from sending on; empty when it was not measured.
    pub(super) fn rounds(&self, key: &Key, of: Of) -> ByRound {
        let rounds = self.parts.get(key).map(|part| &part.sent_rounds);
        rounds
            .into_iter()
            .flatten()
            .map(|(round, found)| (*round, value(found, of)))
            .collect()
    }

    /// The median over rounds of a number.
    pub(super) fn median(&self, key: &Key, of: Of) -> Option<f64> {
        self.rounds(key, of).median()
    }

    /// The median over rounds of the raw exchange's.
    pub(super) fn raw_median(&self) -> Option<f64> {
        self.raw_rounds().median()
    }

    /// The raw exchange's median of each round.
    pub(super) fn raw_rounds(&self) -> ByRound {
        let rounds = self.raw.iter().flat_map(|raw| &raw.rounds);
        rounds
            .enumerate()
            .map(|(round, found)| (round, found.p50))
            .collect()
    }

    /// Shares of the CPU: contestant, cell, side where they are on two hosts, and the share of each round.
    pub(super) fn shares(
        &self,
    ) -> impl Iterator<Item = (&str, Cell, Option<&'static str>, &[f64])> {
        self.shares.iter().map(|((_, preset, cell, side), shares)| {
            (preset.as_str(), *cell, *side, shares.as_slice())
        })
    }

    /// The median share of the CPU, of two hosts that of the busier one.
    pub(super) fn busy(&self) -> BTreeMap<(&str, Cell), f64> {
        let mut busy: BTreeMap<_, f64> = BTreeMap::new();
        for (preset, cell, _, shares) in self.shares() {
            let known = busy.entry((preset, cell)).or_default();
            *known = known.max(median(shares).unwrap_or_default());
        }
        busy
    }

    pub(super) fn series(&self, real_time: bool) -> Vec<Series> {
        let mut all: Vec<Series> = self
            .raw
            .iter()
            .map(|raw| Series {
                rounds_p50: raw.rounds.iter().map(|found| found.p50).collect(),
                rounds_p99: raw.rounds.iter().map(|found| found.p99).collect(),
                ..Series::from_recorder(raw_labels(real_time), &raw.recorder)
            })
            .collect();
        for (key, part) in &self.parts {
            let kinds = [
                ("call", &part.sent, &part.sent_rounds),
                ("from_release", &part.release, &part.release_rounds),
            ];
            all.extend(kinds.map(|(kind, recorder, rounds)| {
                let mut labels = labels_of(&key.preset, key.cell, key.role);
                labels.insert("part".to_owned(), kind.into());
                labels.insert("real_time".to_owned(), real_time.into());
                Series {
                    rounds_p50: rounds.values().map(|found| found.p50).collect(),
                    rounds_p99: rounds.values().map(|found| found.p99).collect(),
                    wrong: part.wrong,
                    ..Series::from_recorder(labels, recorder)
                }
            }));
        }
        all
    }

    /// Releases of low-priority clients that were left out, over all rounds, where there were any.
    pub(super) fn missed(&self) -> impl Iterator<Item = (&Key, u64)> {
        self.parts
            .iter()
            .map(|(key, part)| (key, part.missed))
            .filter(|(_, missed)| *missed > 0)
    }

    #[cfg(test)]
    pub(super) fn with(parts: &[(Key, &[Statistics])], raw: &[f64]) -> Self {
        let mut measured = Self::default();
        for (key, rounds) in parts {
            let part = measured.parts.entry(key.clone()).or_default();
            part.sent_rounds = rounds.iter().copied().enumerate().collect();
        }
        let of = |p50: &f64| Statistics {
            p50: *p50,
            ..Statistics::default()
        };
        measured.raw = Some(RawPart {
            recorder: Recorder::new(),
            rounds: raw.iter().map(of).collect(),
        });
        measured
    }
}

impl Part {
    fn add(&mut self, round: usize, times: &Times) {
        self.sent.record_all(&times.sent_ns);
        self.release.record_all(&times.release_ns);
        self.sent.end_round();
        self.release.end_round();
        self.wrong += times.wrong;
        self.missed += times.missed;
        if !times.sent_ns.is_empty() {
            self.sent_rounds
                .insert(round, statistics_of(&times.sent_ns));
            self.release_rounds
                .insert(round, statistics_of(&times.release_ns));
        }
    }
}

/// The labels of a contestant's cell; without those that say of what part the series is.
pub(super) fn labels_of(preset: &str, cell: Cell, role: Role) -> Labels {
    let orb = if preset == Orb::OmniOrb.label() {
        Orb::OmniOrb
    } else {
        Orb::Rtorb
    };
    labels([
        ("orb", orb.label().into()),
        ("preset", preset.into()),
        ("transport", "tcp".into()),
        ("operation", "octet".into()),
        ("role", role.label().into()),
        ("load", cell.condition.load.label().into()),
        ("low_clients", cell.low_clients.into()),
        ("servant_work_us", cell.condition.servant_work_us.into()),
    ])
}

fn raw_labels(real_time: bool) -> Labels {
    labels([
        ("orb", Orb::Raw.label().into()),
        ("transport", "tcp".into()),
        ("operation", "octet".into()),
        ("part", "call".into()),
        ("real_time", real_time.into()),
    ])
}

fn value(found: &Statistics, of: Of) -> f64 {
    match of {
        Of::P50 => found.p50,
        Of::P99 => found.p99,
        Of::Mean => found.mean,
        Of::Jitter => found.stddev,
    }
}

fn statistics_of(times_ns: &[u64]) -> Statistics {
    let mut recorder = Recorder::new();
    recorder.record_all(times_ns);
    recorder.statistics()
}
