//! `orb/footprint`: how large the program is, and how much memory an ORB takes: idle, serving an object, and for each
//! connection.
//!
//! The memory is what the kernel says of the processes (`/proc/PID/smaps_rollup`), read while nobody calls. Each connection
//! is one of a client thread that has made one call and then waits, as in a system whose clients are there all the time.

use std::fs;
use std::time::Duration;

use crate::experiments::prelude::*;
use crate::processes::{Launcher, Process};
use library::Library;
use memory::{Memory, NO_MEMORY, PRIVATE_DIRTY};
use program::Program;

pub(crate) mod clients;
mod library;
pub(super) mod memory;
mod program;
mod says;

/// The experiment.
pub const STUDY: Study<Footprint> = Study {
    name: "orb/footprint",
    title: "How large the program is, and what memory an ORB and each of its connections take",
    reproduces: "P0 Figure 7, P4 section 1.3",
    amounts: Amounts {
        glance: 1,
        emulated: 1,
        quick: [1, 1],
        full: [20, 1],
        samples: "readings_per_round",
    },
    // A thread for each connection; and one for all of them, in a lane. Without a preset, it is the program.
    factors: &[Factor::texts(PRESET, &PRESETS).or_absent()],
    parameters: &[("memory_locked", Flag(false)), ("build", Text(BUILD))],
    columns: &["counted"],
    plots,
    says: says::SAYS,
    ..Study::with(|context, _| Footprint::start(context))
};

/// The file of this program, whose processes are read when they have their turn.
#[derive(Debug)]
pub struct Footprint {
    program: Program,
    library: Option<Library>,
    /// True if the kernel says what memory a process has.
    tells_memory: bool,
}

impl Footprint {
    fn start(context: &Context) -> Result<Self, LabError> {
        let path = &context.launcher.executable;
        let file = fs::read(path).map_err(LabError::file(path))?;
        let program = Program::of(&file);
        let none = || LabError::process(&path.display().to_string(), "is no 64-bit ELF file");
        Ok(Self {
            program: program.ok_or_else(none)?,
            library: Library::of(&file),
            tells_memory: Memory::of(std::process::id()).is_some(),
        })
    }

    /// What is the same in all rounds.
    fn sizes(&self) -> Vec<Count> {
        let of_program = self.program.named().map(|(counted, size)| {
            let of = [("what", "program".into()), ("counted", counted.into())];
            count(labels(of), size)
        });
        let of_library = self.library.iter().flat_map(Library::named);
        let of_library = of_library.map(|(name, size)| {
            let of = [
                ("what", "library_text".into()),
                ("crate", name.into()),
                ("counted", "code".into()),
            ];
            count(labels(of), size)
        });
        of_program.into_iter().chain(of_library).collect()
    }
}

impl Subject for Footprint {
    /// Reads an idle ORB, then a server and its clients with more and more connections.
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError> {
        let Some(preset) = cell.level(PRESET) else {
            return Ok(Sampled {
                counts: self.sizes(),
                ..Sampled::default()
            });
        };
        if !self.tells_memory {
            return Ok(Sampled::default());
        }
        let launcher = &turn.context.launcher;
        let idle = launcher.start(&format!("{preset} idle"), &["idle-orb", &preset])?;
        let mut counts = memory_of(&idle, "idle_orb", 0)?;
        drop(idle);
        let scheduling = served(
            launcher,
            &preset,
            connections(turn.context.effort),
            &mut counts,
        )?;
        Ok(Sampled {
            counts,
            scheduling,
            ..Sampled::default()
        })
    }

    fn notes(&self) -> Vec<String> {
        let note = match self.library {
            Some(_) => OF_SYMBOLS,
            None => STRIPPED,
        };
        [NOTE, note].map(str::to_owned).into()
    }

    fn absent(&self) -> Vec<(Labels, String)> {
        let presets = if self.tells_memory { &[] } else { &PRESETS[..] };
        let absent = |preset: &&str| (labels([(PRESET, (*preset).into())]), NO_MEMORY.to_owned());
        presets.iter().map(absent).collect()
    }

    fn parameters(effort: Effort) -> Parameters {
        let connections = connections(effort).iter().map(ToString::to_string);
        labels([(
            "connections",
            connections.collect::<Vec<_>>().join(" ").into(),
        )])
    }
}

/// Adds the memory of a server and of its clients, with more and more connections.
fn served(
    launcher: &Launcher,
    preset: &str,
    connections: &[usize],
    counts: &mut Vec<Count>,
) -> Result<Vec<ObtainedScheduling>, LabError> {
    // In this order: the clients are ended before the server that they are connected to.
    let role = ["rate-server", "iiop://127.0.0.1:0", preset, "0"];
    let server = launcher.start(&format!("{preset} server"), &role)?;
    let role = ["idle-clients", preset, server.text()];
    let mut clients = launcher.start(&format!("{preset} clients"), &role)?;
    for &connections in connections {
        if launcher.interrupted() {
            return Err(LabError::Interrupted);
        }
        clients.ask::<()>(&connections, Duration::ZERO)?;
        counts.extend(memory_of(&server, "server", connections)?);
        counts.extend(memory_of(&clients, "clients", connections)?);
    }
    let both = [&server, &clients].into_iter();
    Ok(both.filter_map(Process::scheduling).collect())
}

/// Bytes, and what they are of.
type Count = (Labels, f64, (&'static str, u64));

fn count(of: Labels, bytes: u64) -> Count {
    (of, bytes as f64, ("bytes", 1))
}

fn memory_of(process: &Process, what: &str, connections: usize) -> Result<Vec<Count>, LabError> {
    let memory = Memory::of(process.id()).ok_or_else(|| {
        LabError::process(process.name(), "its /proc/PID/smaps_rollup cannot be read")
    })?;
    let each = memory.named().map(|(counted, bytes)| {
        let of = [
            ("what", what.into()),
            ("connections", connections.into()),
            ("counted", counted.into()),
        ];
        count(labels(of), bytes)
    });
    Ok(each.into())
}

fn connections(effort: Effort) -> &'static [usize] {
    match effort {
        Effort::Glance | Effort::Emulated { .. } => &[0, 1, 10],
        Effort::Quick | Effort::Full => &[0, 1, 10, 100, 1_000],
    }
}

fn plots() -> Vec<Plot> {
    vec![Plot::line_chart("memory-against-connections", "Memory against connections")
        .caption(
            "Bytes that a process has written and shares with no other process. No client calls meanwhile.",
        )
        .of(labels([("counted", PRIVATE_DIRTY.into())]))
        .lines(["what", PRESET])
        .x("connections")
        .values([StatisticName::P50])]
}

const PRESET: &str = "preset";
const PRESETS: [&str; 2] = ["default", "tao"];
/// How this program was built: without optimisation it is several times as large.
const BUILD: &str = if cfg!(debug_assertions) {
    "debug"
} else {
    "release"
};
const NOTE: &str = "Memory was not locked: with mlockall(2) the whole of every thread's stack and of every mapping is resident.";
const STRIPPED: &str = "This program has no symbols, so the ORB's share of it cannot be told: a build by `cargo build --release` has them.";
const OF_SYMBOLS: &str = "The ORB's code is that of the functions whose names are of its crates (`library_text`). Functions of the standard library that were made for it are not in it, nor what was inlined into other crates; constants have no names, and are in the whole program's `text` alone.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::interrupt::Interrupt;

    #[test]
    fn a_kernel_that_does_not_tell_memory_loses_no_round() {
        let context = Context::new(Effort::Glance, "/bin/false".into(), Interrupt::new());
        let turn = Turn {
            context: &context.expect("a folder"),
            round: 0,
            samples: 1,
            run_ms: 0,
        };
        let mut footprint = Footprint {
            program: Program::default(),
            library: None,
            tells_memory: false,
        };
        let cells = STUDY.cells(Effort::Glance);
        let counts = cells.iter().map(|cell| {
            let sampled = footprint.measure(&Cell::of(cell), &turn);
            sampled.expect("nothing is started").counts.len()
        });
        // The sizes of the program are known all the same.
        assert_eq!(counts.collect::<Vec<_>>(), [5, 0, 0]);
        let absent = footprint.absent();
        assert!(cells[1..].iter().all(|cell| {
            let mut reasons = absent.iter().filter(|(of, _)| Cell::of(cell).is_of(of));
            reasons.any(|(_, why)| why.contains("smaps_rollup"))
        }));
    }
}
