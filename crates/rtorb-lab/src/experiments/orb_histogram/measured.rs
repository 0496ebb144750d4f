//! The latencies by transport, number of receivers, load and role.

use std::collections::BTreeMap;

use rtorb_results::{LostRound, Series, labels};

use super::PRESET;
use crate::contestants::square_wave::recorded::Recorded;
use crate::contestants::square_wave::system::Role;
use crate::contestants::square_wave::{Latencies, Meetings, Part};
use crate::contestants::{Orb, Transport};

/// What is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    pub(super) transport: Transport,
    pub(super) receivers: usize,
    pub(super) loaded: bool,
    pub(super) role: Role,
}

/// The latencies of one wave by what the other one's call did when the edge came.
#[derive(Debug, Default)]
pub(super) struct Met {
    /// It was in progress.
    pub(super) in_progress: Recorded,
    /// There was none.
    pub(super) none: Recorded,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// The name of the load.
    load: String,
    cells: BTreeMap<Cell, Recorded>,
    /// Of the high receiver beside the low one.
    meetings: BTreeMap<Cell, Met>,
    pub(super) lost: Vec<LostRound>,
    pub(super) notes: Vec<String>,
}

impl Measured {
    pub(super) fn of(load: String) -> Self {
        Self {
            load,
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, round: usize, cell: Cell, latencies: &Latencies) {
        self.cells.entry(cell).or_default().add(round, latencies);
    }

    /// Adds a round of the high receiver beside the low one. One without a meeting, or with nothing else, compares nothing.
    pub(super) fn meet(&mut self, round: usize, cell: Cell, [high, low]: [&Latencies; 2]) {
        let Meetings { in_progress, none } = Meetings::of(high, low);
        if in_progress.edges_ns.is_empty() || none.edges_ns.is_empty() {
            return;
        }
        let met = self.meetings.entry(cell).or_default();
        met.in_progress.add(round, &in_progress);
        met.none.add(round, &none);
    }

    pub(super) fn met(&self, cell: Cell) -> Option<&Met> {
        self.meetings.get(&cell)
    }

    /// Remembers something once.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The value of the label `load`.
    pub(super) fn load(&self, cell: &Cell) -> &str {
        match cell.loaded {
            true => &self.load,
            false => "none",
        }
    }

    pub(super) fn cells(&self) -> impl Iterator<Item = (Cell, &Recorded)> {
        self.cells.iter().map(|(cell, recorded)| (*cell, recorded))
    }

    pub(super) fn get(&self, cell: Cell) -> Option<&Recorded> {
        self.cells.get(&cell)
    }

    pub(super) fn series(&self, pulse: &str, real_time: bool) -> Vec<Series> {
        let labels = |cell: &Cell| {
            labels([
                ("orb", Orb::Rtorb.label().into()),
                ("preset", PRESET.into()),
                ("transport", cell.transport.label().into()),
                ("receivers", cell.receivers.into()),
                ("role", cell.role.name().into()),
                ("load", self.load(cell).into()),
                ("payload_bytes", 0usize.into()),
                ("pulse", pulse.into()),
                ("real_time", real_time.into()),
            ])
        };
        let mut series = Vec::new();
        for (cell, recorded) in self.cells() {
            series.extend(recorded.series(&labels(&cell)));
        }
        for (cell, met) in &self.meetings {
            for (low_call, recorded) in [("in_progress", &met.in_progress), ("none", &met.none)] {
                let mut labels = labels(cell);
                labels.insert("low_call".to_owned(), low_call.into());
                labels.insert("part".to_owned(), MEETING.into());
                series.push(recorded.series_of(Part::Call, labels));
            }
        }
        series
    }
}

/// The part of the latencies that [`Met`] tells apart: from the edge until the output was set, as `call`.
pub(super) const MEETING: &str = "meeting";
