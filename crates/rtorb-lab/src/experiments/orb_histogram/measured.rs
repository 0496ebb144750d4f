//! The latencies by transport, number of receivers, load and role.

use std::collections::BTreeMap;

use super::PRESET;
use crate::contestants::{Orb, Transport};
use crate::results::{Series, labels};
use crate::square_wave::Latencies;
use crate::square_wave::recorded::Recorded;
use crate::square_wave::system::Role;

/// What is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    pub(super) transport: Transport,
    pub(super) receivers: usize,
    pub(super) loaded: bool,
    pub(super) role: Role,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// The name of the load.
    load: String,
    cells: BTreeMap<Cell, Recorded>,
    pub(super) notes: Vec<String>,
}

impl Measured {
    pub(super) fn of(load: String) -> Self {
        Self {
            load,
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, cell: Cell, latencies: &Latencies) {
        self.cells.entry(cell).or_default().add(latencies);
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
        let series = self.cells().flat_map(|(cell, recorded)| {
            let labels = labels([
                ("orb", Orb::Rtorb.label().into()),
                ("preset", PRESET.into()),
                ("transport", cell.transport.label().into()),
                ("receivers", cell.receivers.into()),
                ("role", cell.role.name().into()),
                ("load", self.load(&cell).into()),
                ("payload_bytes", 0usize.into()),
                ("pulse", pulse.into()),
                ("real_time", real_time.into()),
            ]);
            recorded.series(&labels).collect::<Vec<_>>()
        });
        series.collect()
    }
}
