//! `orb/whitebox`: what a two-way call costs besides time, for each architecture: locks, heap calls, context switches,
//! system calls; and where its processor time goes.
//!
//! Nothing is timed while something is counted, and no other experiment runs with a counter: P1 2.2.2 did its whitebox
//! runs apart from the others too.

use std::time::Duration;

use rtorb::Strategies;
use rtorb_results::labels;

use crate::contestants::OMNIORB;
use crate::contestants::peers::omniorb::{self, OmniOrb};
use crate::contestants::whitebox::clients::LOW_CLIENTS;
use crate::contestants::whitebox::omniorb::Programs;
use crate::contestants::whitebox::{Priorities, perf, strace};
use crate::error::LabError;
use crate::experiment::{Context, Effort, Experiment, Outcome, Parameters, Progress, is_complete};
use contestant::{Contestant, Run};
use measured::Measured;

mod conclusions;
mod contestant;
mod measured;

/// The experiment.
#[derive(Debug)]
pub struct OrbWhitebox;

impl Experiment for OrbWhitebox {
    fn name(&self) -> &'static str {
        "orb/whitebox"
    }

    fn title(&self) -> &'static str {
        "What a two-way call costs besides time: locks, heap calls, switches, system calls; and where its time goes"
    }

    fn reproduces(&self) -> &'static str {
        "P1 Figures 9 to 14"
    }

    fn parameters(&self, effort: Effort) -> Parameters {
        labels([
            ("rounds", rounds(effort).into()),
            ("low_clients", LOW_CLIENTS.into()),
            ("high_clients", 1u32.into()),
            ("requests_per_client_and_round", TEN.count.into()),
            ("requests_of_a_single_client_and_round", ONE.count.into()),
            ("high_period_us", TEN.period_us.into()),
            ("operation", "cube_long".into()),
            ("effort", effort.name().into()),
        ])
    }

    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Outcome, LabError> {
        let mut measured = Measured::default();
        let complete = is_complete(measure(context, &mut measured, progress))?;
        Ok(conclusions::outcome(measured, complete))
    }
}

/// Who is counted.
#[derive(Clone, Debug)]
enum Who {
    Preset(&'static str),
    OmniOrb(Programs),
}

impl Who {
    fn name(&self) -> &'static str {
        match self {
            Self::Preset(name) => name,
            Self::OmniOrb(_) => OMNIORB,
        }
    }
}

fn measure(
    context: &Context,
    measured: &mut Measured,
    progress: &mut dyn Progress,
) -> Result<(), LabError> {
    let mut line_up: Vec<Who> = Strategies::PRESETS
        .iter()
        .map(|(name, _)| Who::Preset(name))
        .collect();
    match omniorb_programs(context) {
        Ok(programs) => line_up.push(Who::OmniOrb(programs)),
        Err(LabError::Interrupted) => return Err(LabError::Interrupted),
        Err(error) => measured.note(format!("omniORB was left out: {error}")),
    }
    let counting = Counting::choose(context, measured);
    progress.begin(line_up.len());
    for who in &line_up {
        match count(context, counting, who, measured) {
            Ok(()) => {}
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(error) => measured.note(format!("{} was left out: {error}", who.name())),
        }
        progress.step(who.name());
    }
    Ok(())
}

fn omniorb_programs(context: &Context) -> Result<Programs, LabError> {
    let interrupt = &context.launcher.interrupt;
    match OmniOrb::find(interrupt)? {
        Some(peer) => Programs::build(&peer, interrupt),
        None => Err(LabError::Peer {
            what: omniorb::HOW_TO_INSTALL.to_owned(),
        }),
    }
}

/// What this host has to count system calls with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counting {
    /// perf, which also samples.
    Perf,
    /// strace, which only counts, and disturbs.
    Strace,
    /// Nothing.
    Nothing,
}

impl Counting {
    fn choose(context: &Context, measured: &mut Measured) -> Self {
        if perf::is_usable(&context.launcher.interrupt) {
            return Self::Perf;
        }
        if strace::is_usable() {
            measured.note(STRACE.to_owned());
            return Self::Strace;
        }
        measured.note(NOTHING.to_owned());
        Self::Nothing
    }
}

/// Counts one contestant from its start to its end.
fn count(
    context: &Context,
    counting: Counting,
    who: &Who,
    measured: &mut Measured,
) -> Result<(), LabError> {
    let priorities = match context.launcher.placement.fifo {
        Some(_) => Priorities::REAL_TIME,
        None => Priorities::NONE,
    };
    let mut contestant = match who {
        Who::Preset(preset) => Contestant::rtorb(&context.launcher, preset, priorities)?,
        Who::OmniOrb(programs) => {
            Contestant::omniorb(&context.launcher, programs, priorities, context.folder())?
        }
    };
    contestant.run(&WARM_UP)?;
    measured.add_scheduling(contestant.scheduling());
    for run in [TEN, ONE] {
        for _ in 0..rounds(context.effort) {
            if context.interrupted() {
                return Err(LabError::Interrupted);
            }
            std::thread::sleep(PAUSE);
            measured.add_round(who.name(), &mut contestant, &run)?;
        }
        std::thread::sleep(PAUSE);
        let (launcher, folder) = (&context.launcher, context.folder());
        match counting {
            Counting::Perf => {
                let calls = contestant.system_calls(launcher, folder, &run)?;
                measured.add_system_calls(who.name(), &run, calls);
                if run == TEN {
                    std::thread::sleep(PAUSE);
                    sample(context, who, &mut contestant, measured)?;
                }
            }
            Counting::Strace => {
                let calls = contestant.traced_calls(folder, &run)?;
                measured.add_system_calls(who.name(), &run, calls);
            }
            Counting::Nothing => {}
        }
    }
    Ok(())
}

/// Finds out where the time goes. The counts stand without it.
fn sample(
    context: &Context,
    who: &Who,
    contestant: &mut Contestant,
    measured: &mut Measured,
) -> Result<(), LabError> {
    match contestant.samples(&context.launcher, context.folder(), &TEN) {
        Ok(samples) => measured.add_samples(who.name(), &TEN, samples),
        Err(LabError::Interrupted) => return Err(LabError::Interrupted),
        Err(error) => measured.note(format!(
            "Where the time of {} goes was not found out: {error}",
            who.name()
        )),
    }
    Ok(())
}

fn rounds(effort: Effort) -> usize {
    match effort {
        Effort::Glance | Effort::Emulated { .. } => 1,
        Effort::Quick => 2,
        // 4,000 requests a client, as in P1.
        Effort::Full => 10,
    }
}

/// Connections, buffers and caches are there after it.
const WARM_UP: Run = Run {
    low_clients: LOW_CLIENTS,
    count: 50,
    period_us: 100,
};
/// Ten concurrent clients. The high-priority one pauses, as in P1: otherwise it would be through before the others begin.
const TEN: Run = Run {
    low_clients: LOW_CLIENTS,
    count: 400,
    period_us: 100,
};
/// The high-priority client alone.
const ONE: Run = Run {
    low_clients: 0,
    count: 2_000,
    period_us: 0,
};
/// Leaves the CPU to others, so that real-time throttling never has a reason.
const PAUSE: Duration = Duration::from_millis(20);

const STRACE: &str = "System calls were counted by strace, which stops a thread twice a call: with ten clients, locks may be \
                      contended more or less often than when nobody looks. With perf they are not disturbed (Debian: apt \
                      install linux-perf, and run as root).";
const NOTHING: &str = "System calls and kernel-level locks were not counted: neither perf nor strace can be used here (Debian: \
                       apt install linux-perf strace, and run as root).";
