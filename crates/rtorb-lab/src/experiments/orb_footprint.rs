//! `orb/footprint`: how large the program is, and how much memory an ORB takes: idle, serving an object, and for each
//! connection.
//!
//! The memory is what the kernel says of the processes (`/proc/PID/smaps_rollup`), read while nobody calls. Each connection
//! is one of a client thread that has made one call and then waits, as in a system whose clients are there all the time.

use std::fs;
use std::time::Duration;

use rtorb_results::labels;

use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use crate::processes::Process;
use library::Library;
use measured::{CLIENTS, IDLE, Measured, SERVER, process};
use memory::Memory;
use program::Program;

pub(crate) mod clients;
mod library;
mod measured;
pub(super) mod memory;
mod program;

/// The experiment.
#[derive(Debug)]
pub struct OrbFootprint;

impl Experiment for OrbFootprint {
    fn name(&self) -> &'static str {
        "orb/footprint"
    }

    fn title(&self) -> &'static str {
        "How large the program is, and what memory an ORB and each of its connections take"
    }

    fn reproduces(&self) -> &'static str {
        "P0 Figure 7, P4 section 1.3"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        let plan = Plan::of(effort);
        let connections: Vec<String> = plan.connections.iter().map(ToString::to_string).collect();
        labels([
            ("rounds", plan.rounds.into()),
            ("presets", PRESETS.join(" ").into()),
            ("connections", connections.join(" ").into()),
            ("memory_locked", false.into()),
            ("build", BUILD.into()),
            ("effort", effort.name().into()),
        ])
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let plan = Plan::of(context.effort);
        let mut measured = Measured::default();
        let complete = is_complete(measure(context, plan, &mut measured, progress))?;
        Ok(measured.outcome(complete))
    }
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    rounds: usize,
    connections: &'static [usize],
}

impl Plan {
    fn of(effort: Effort) -> Self {
        match effort {
            Effort::Glance | Effort::Emulated { .. } => Self {
                rounds: 1,
                connections: &CONNECTIONS[..3],
            },
            Effort::Quick => Self {
                rounds: 1,
                connections: &CONNECTIONS,
            },
            Effort::Full => Self {
                rounds: 20,
                connections: &CONNECTIONS,
            },
        }
    }
}

fn measure(
    context: &Context,
    plan: Plan,
    measured: &mut Measured,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    progress.begin(plan.rounds * PRESETS.len());
    let path = &context.launcher.executable;
    let file = fs::read(path).map_err(LabError::file(path))?;
    let program = Program::of(&file);
    let program = program
        .ok_or_else(|| LabError::process(&path.display().to_string(), "is no 64-bit ELF file"))?;
    *measured = Measured::of(program, Library::of(&file));
    drop(file);
    for round in 0..plan.rounds {
        for preset in PRESETS {
            if context.interrupted() {
                return Err(LabError::Interrupted);
            }
            measure_preset(context, plan, preset, round, measured)?;
            progress.step(&format!("{preset}, round {} of {}", round + 1, plan.rounds));
        }
    }
    Ok(())
}

/// An idle ORB, then a server and its clients with more and more connections.
fn measure_preset(
    context: &Context,
    plan: Plan,
    preset: &str,
    round: usize,
    measured: &mut Measured,
) -> Result<(), LabError> {
    let launcher = &context.launcher;
    let idle = launcher.start(&format!("{preset} idle"), &["idle-orb", preset])?;
    measured.add(&process(IDLE, preset, 0), round, memory_of(&idle)?);
    drop(idle);
    // In this order: the clients are ended before the server that they are connected to.
    let role = ["rate-server", "iiop://127.0.0.1:0", preset, "0"];
    let server = launcher.start(&format!("{preset} server"), &role)?;
    let role = ["idle-clients", preset, server.text()];
    let mut clients = launcher.start(&format!("{preset} clients"), &role)?;
    for &connections in plan.connections {
        if context.interrupted() {
            return Err(LabError::Interrupted);
        }
        clients.ask::<()>(&connections, Duration::ZERO)?;
        for (what, running) in [(SERVER, &server), (CLIENTS, &clients)] {
            let labels = process(what, preset, connections);
            measured.add(&labels, round, memory_of(running)?);
        }
    }
    measured.scheduling.extend(server.scheduling());
    measured.scheduling.extend(clients.scheduling());
    drop(clients);
    Ok(())
}

fn memory_of(process: &Process) -> Result<Memory, LabError> {
    Memory::of(process.id()).ok_or_else(|| {
        LabError::process(
            process.name(),
            "its /proc/PID/smaps_rollup cannot be read (it takes Linux 4.14 and /proc)",
        )
    })
}

/// A thread for each connection; and one for all of them, in a lane.
const PRESETS: [&str; 2] = ["default", "tao"];
const CONNECTIONS: [usize; 5] = [0, 1, 10, 100, 1_000];
/// How this program was built: without optimisation it is several times as large.
const BUILD: &str = if cfg!(debug_assertions) {
    "debug"
} else {
    "release"
};
