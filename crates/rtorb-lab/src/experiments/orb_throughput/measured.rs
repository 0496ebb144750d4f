//! The samples by cell, contestant and part, and the series that they become.

use std::collections::BTreeMap;

use rtorb_results::by_round::ByRound;
use rtorb_results::statistics::Recorder;
use rtorb_results::{Labels, LostRound, Series, labels};

use super::cells::Cell;
use crate::contestants::burst::{Samples, Verb};
use crate::contestants::operations::Operation;
use crate::contestants::{Architecture, Contestant, Orb, Transport};
use crate::error::LabError;

/// What tells one series from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    /// The place of the operation in [`Operation::ALL`], so that series come in that order.
    operation: usize,
    pub(super) len: usize,
    pub(super) orb: Orb,
    architecture: Architecture,
    pub(super) transport: Transport,
    /// The place of the verb: call, work, marshal.
    part: u8,
}

impl Key {
    pub(super) fn call(cell: &Cell, orb: Orb, transport: Transport) -> Self {
        Self::new(cell, orb, transport, Verb::Call)
    }

    /// What is timed without a call is timed once an ORB, in the client that has the TCP connection.
    pub(super) fn part(cell: &Cell, orb: Orb, verb: Verb) -> Self {
        Self::new(cell, orb, Transport::Tcp, verb)
    }

    fn new(cell: &Cell, orb: Orb, transport: Transport, verb: Verb) -> Self {
        let operation = Operation::ALL
            .iter()
            .position(|known| *known == cell.operation)
            .unwrap_or(0);
        Self {
            operation,
            len: cell.len,
            orb,
            architecture: Architecture::Plain,
            transport,
            part: verb as u8,
        }
    }

    /// The same call of another architecture.
    pub(super) fn of(self, architecture: Architecture) -> Self {
        Self {
            architecture,
            ..self
        }
    }

    pub(super) fn cell(&self) -> Cell {
        Cell {
            operation: Operation::ALL[self.operation],
            len: self.len,
        }
    }

    fn labels(&self, real_time: bool) -> Labels {
        let cell = self.cell();
        let transport = if self.part == Verb::Call as u8 {
            self.transport.label()
        } else {
            "none"
        };
        let part = ["call", "servant_work", "marshalling"][usize::from(self.part)];
        let mut labels = labels([
            ("operation", cell.operation.name().into()),
            ("orb", self.orb.label().into()),
            ("transport", transport.into()),
            ("len", cell.len.into()),
            (
                "payload_bytes",
                cell.operation.payload_bytes(cell.len).into(),
            ),
            ("part", part.into()),
            ("real_time", real_time.into()),
        ]);
        if let Some(preset) = self.architecture.label() {
            labels.insert("preset".to_owned(), preset.into());
        }
        labels
    }
}

/// Everything that was measured.
#[derive(Debug)]
pub(super) struct Measured {
    parts: BTreeMap<Key, Part>,
    pub(super) lost: Vec<LostRound>,
}

impl Measured {
    pub(super) fn new() -> Self {
        Self {
            parts: BTreeMap::new(),
            lost: Vec::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        contestant: &Contestant,
        cell: &Cell,
        (verb, round): (Verb, usize),
        samples: &Samples,
    ) {
        let key =
            Key::new(cell, contestant.orb, contestant.transport, verb).of(contestant.architecture);
        let part = self.parts.entry(key).or_default();
        part.recorder.record_all(&samples.times_ns);
        part.recorder.end_round();
        part.wrong += samples.wrong;
        part.elapsed_ns += samples.elapsed_ns;
        let mut times = Recorder::new();
        times.record_all(&samples.times_ns);
        part.p50.set(round, times.statistics().p50);
    }

    /// Keeps that a contestant failed in a round.
    pub(super) fn lose(
        &mut self,
        (contestant, cell): (&Contestant, &Cell),
        round: usize,
        error: &LabError,
    ) {
        self.lost.push(LostRound {
            round,
            what: format!("{contestant}: {cell}"),
            why: error.to_string(),
        });
    }

    /// The medians of the rounds of a series; empty when it was not measured.
    pub(super) fn rounds(&self, key: &Key) -> ByRound {
        self.parts
            .get(key)
            .map(|part| part.p50.clone())
            .unwrap_or_default()
    }

    /// Calls a second of a series.
    pub(super) fn calls_per_second(&self, key: &Key) -> Option<f64> {
        self.parts.get(key).and_then(Part::calls_per_second)
    }

    /// Every call that was measured for an ORB or raw transport, those of other architectures aside.
    pub(super) fn calls(&self, orb: Orb) -> impl Iterator<Item = &Key> {
        self.parts
            .keys()
            .filter(move |key| key.orb == orb && key.part == Verb::Call as u8)
            .filter(|key| key.architecture == Architecture::Plain)
    }

    pub(super) fn series(&self, real_time: bool) -> Vec<Series> {
        let with = |(key, part): (&Key, &Part)| Series {
            rounds_p50: part.p50.values(),
            wrong: part.wrong,
            calls_per_second: (key.part == Verb::Call as u8)
                .then(|| part.calls_per_second())
                .flatten(),
            ..Series::from_recorder(key.labels(real_time), &part.recorder)
        };
        self.parts.iter().map(with).collect()
    }

    #[cfg(test)]
    pub(super) fn with_rounds(rounds: &[(Key, &[f64])]) -> Self {
        let mut measured = Self::new();
        for (key, values) in rounds {
            let part = measured.parts.entry(*key).or_default();
            part.p50 = (*values).into();
        }
        measured
    }
}

#[derive(Debug, Default)]
struct Part {
    recorder: Recorder,
    p50: ByRound,
    wrong: u64,
    elapsed_ns: u64,
}

impl Part {
    fn calls_per_second(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| self.recorder.count() as f64 * 1e9 / self.elapsed_ns as f64)
    }
}
