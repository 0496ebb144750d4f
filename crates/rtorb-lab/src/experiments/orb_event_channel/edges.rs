//! From an edge on the input until the output is set: by a call, and by an event through the channel.

use std::collections::BTreeMap;

use rtorb_results::{Labels, LostRound, ObtainedScheduling, Series, labels};

use super::plan::{PERIOD_NS, Plan};
use crate::contestants::Transport;
use crate::contestants::event_channel::Served;
use crate::contestants::event_channel::system::Channel;
use crate::contestants::square_wave::recorded::Recorded;
use crate::contestants::square_wave::system::{Role, System};
use crate::contestants::square_wave::{Part, Path, Run};
use crate::error::LabError;
use crate::experiment::{Context, Progress};
use crate::processes::load::Load;

/// What is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cell {
    pub(super) transport: Transport,
    pub(super) loaded: bool,
    pub(super) path: Path,
}

/// The latencies of all edges.
#[derive(Debug, Default)]
pub(super) struct Edges {
    /// The name of the load.
    load: String,
    cells: BTreeMap<Cell, Recorded>,
    pub(super) scheduling: Vec<ObtainedScheduling>,
    pub(super) lost: Vec<LostRound>,
}

impl Edges {
    pub(super) fn of(load: String) -> Self {
        Self {
            load,
            ..Self::default()
        }
    }

    pub(super) fn measure(
        &mut self,
        (context, plan, load): (&Context, &Plan, &Load),
        notes: &mut Vec<String>,
        progress: &mut dyn Progress,
    ) -> Result<(), LabError> {
        let mut systems = self.start(context)?;
        for round in 0..plan.rounds {
            context.begin_round(round);
            for beside in plan.loads {
                let (mut running, made_by) = beside.start((load, round), context)?;
                notes.extend(made_by);
                let loaded = beside.is_load();
                self.round((context, plan), (round, loaded), &mut systems)?;
                running.check()?;
                let under = if loaded { ", under load" } else { "" };
                for _ in &systems {
                    let said = format!("edges, round {} of {}{under}", round + 1, plan.rounds);
                    progress.step(&said);
                    progress.step(&said);
                }
            }
        }
        Ok(())
    }

    /// A channel, a supplier and a receiver for each transport.
    fn start(&mut self, context: &Context) -> Result<Vec<System>, LabError> {
        // Two systems cannot have the same lines.
        let transports = if context.gpio.is_empty() {
            &TRANSPORTS[..]
        } else {
            &TRANSPORTS[..1]
        };
        let mut systems = Vec::new();
        for transport in transports {
            let channel = Channel::start(
                context,
                (*transport, "edges"),
                &served(context, &[Role::High]),
            )?;
            let mut system = System::start_with(context, *transport, &[Role::High], Some(channel))?;
            for path in Path::ALL {
                let scheduling = system.roll_call(&run(&system, FEW_EDGES, path))?;
                // The second one has all that the first one had.
                if path == Path::Event {
                    self.scheduling.extend(scheduling);
                }
            }
            systems.push(system);
        }
        Ok(systems)
    }

    /// Each system by each path; which goes first differs from round to round.
    fn round(
        &mut self,
        (context, plan): (&Context, &Plan),
        (round, loaded): (usize, bool),
        systems: &mut [System],
    ) -> Result<(), LabError> {
        let (count, paths) = (systems.len(), Path::ALL.len());
        for turn in 0..count * paths {
            if context.interrupted() {
                return Err(LabError::Interrupted);
            }
            let system = &mut systems[(turn / paths + round) % count];
            let path = Path::ALL[(turn + round) % paths];
            let transport = system.transport;
            match system.run(&run(system, plan.edges, path)) {
                Ok(waves) => {
                    let cell = Cell {
                        transport,
                        loaded,
                        path,
                    };
                    let recorded = self.cells.entry(cell).or_default();
                    waves
                        .iter()
                        .for_each(|latencies| recorded.add(round, latencies));
                }
                Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                Err(error) => self.lost.push(LostRound {
                    round,
                    what: format!("{}, by {}", transport.label(), path.name()),
                    why: error.to_string(),
                }),
            }
        }
        Ok(())
    }

    /// The value of the label `load`.
    pub(super) fn load(&self, cell: &Cell) -> &str {
        if cell.loaded { &self.load } else { "none" }
    }

    pub(super) fn cells(&self) -> impl Iterator<Item = (Cell, &Recorded)> {
        self.cells.iter().map(|(cell, recorded)| (*cell, recorded))
    }

    pub(super) fn get(&self, cell: Cell) -> Option<&Recorded> {
        self.cells.get(&cell)
    }

    pub(super) fn labels(&self, cell: &Cell) -> Labels {
        labels([
            ("preset", "tao".into()),
            ("transport", cell.transport.label().into()),
            ("path", cell.path.name().into()),
            ("role", Role::High.name().into()),
            ("load", self.load(cell).into()),
            ("payload_bytes", 0usize.into()),
        ])
    }

    pub(super) fn series(&self, pulse: &str) -> Vec<Series> {
        let mut series = Vec::new();
        for (cell, recorded) in self.cells() {
            let mut labels = self.labels(&cell);
            labels.insert("pulse".to_owned(), pulse.into());
            // Nobody answers an event.
            let parts = Part::ALL
                .into_iter()
                .filter(|part| cell.path == Path::Call || *part != Part::RoundTrip);
            for part in parts {
                let mut labels = labels.clone();
                labels.insert("part".to_owned(), part.name().into());
                series.push(recorded.series_of(part, labels));
            }
        }
        series
    }

    #[cfg(test)]
    pub(super) fn add(
        &mut self,
        round: usize,
        cell: Cell,
        latencies: &crate::contestants::square_wave::Latencies,
    ) {
        self.cells.entry(cell).or_default().add(round, latencies);
    }
}

/// A channel with a lane for each role, that loses nothing.
pub(in crate::experiments) fn served(context: &Context, roles: &[Role]) -> Served {
    let real_time = context.launcher.placement.fifo.is_some();
    Served {
        lanes: if real_time {
            roles.iter().map(|role| role.priority()).collect()
        } else {
            vec![0]
        },
        queue_events: QUEUE_EVENTS,
        wait_ms: Some(WAIT_MS),
        counts: false,
    }
}

fn run(system: &System, edges: usize, path: Path) -> Run {
    Run {
        duration_ns: edges as u64 * PERIOD_NS,
        payload_bytes: 0,
        path,
        waves: vec![system.wave(Role::High, PERIOD_NS, 0)],
    }
}

const TRANSPORTS: [Transport; 2] = [Transport::Tcp, Transport::Unix];
const FEW_EDGES: usize = 10;
/// As many as the channel has by default.
const QUEUE_EVENTS: usize = 256;
/// Longer than any of these consumers is away, shorter than a send may take.
const WAIT_MS: u64 = 4_000;
