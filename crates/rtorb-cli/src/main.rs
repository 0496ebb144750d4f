//! The command `rtorb`: arguments in, text out. What it does is in the library crates, one file a subcommand is here.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use orb_options::Misuse;
use rtorb_lab::LabError;
use rtorb_lab::contestants::whitebox::{CountingAllocator, stop_counting};
use rtorb_lab::kernels::guest;

mod agent;
mod check;
mod cubit;
mod events;
mod executable;
mod idl;
mod ior;
mod lab;
mod measure;
mod model;
mod naming;
mod orb_options;
mod output;
mod ping;
mod progress;
mod reference;
mod scheduling;

/// A real-time object request broker for Linux, and the laboratory that measures it.
///
/// Exit status: 0 done, 1 the answer is no, 2 misuse.
#[derive(Debug, Parser)]
#[command(name = "rtorb", version, max_term_width = 100)]
struct Command {
    #[command(subcommand)]
    subcommand: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    Measure(measure::Measure),
    Check(check::Check),
    Lab(lab::Lab),
    Model(model::Model),
    Cubit(cubit::Cubit),
    Ior(ior::Ior),
    Ping(ping::Ping),
    Naming(naming::Naming),
    Scheduling(scheduling::Scheduling),
    Events(events::Events),
    Idl(idl::Idl),
    /// One of the measured processes: started by `measure` and `lab run`.
    #[command(hide = true)]
    Child {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

/// Counts in the processes that are measured for their heap calls, and in no other.
#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    stop_counting();
    if guest::is_guest() {
        guest::boot();
        return ExitCode::FAILURE;
    }
    let done = match Command::parse().subcommand {
        Subcommands::Measure(measure) => measure.run(),
        Subcommands::Check(check) => check.run(),
        Subcommands::Lab(lab) => lab.run(),
        Subcommands::Model(model) => model.run(),
        Subcommands::Cubit(cubit) => cubit.run(),
        Subcommands::Ior(ior) => ior.run(),
        Subcommands::Ping(ping) => ping.run(),
        Subcommands::Naming(naming) => naming.run(),
        Subcommands::Scheduling(scheduling) => scheduling.run(),
        Subcommands::Events(events) => events.run(),
        Subcommands::Idl(idl) => idl.run(),
        Subcommands::Child { arguments } => return rtorb_lab::processes::child::run(&arguments),
    };
    done.unwrap_or_else(|error| {
        eprintln!("rtorb: {}", text(&error));
        ExitCode::from(if is_misuse(&error) { MISUSE } else { NO })
    })
}

/// The texts of an error and of its sources, apart from those that the error's own text has already.
fn text(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |text, source| {
        let source = source.to_string();
        if text.is_empty() {
            source
        } else if text.contains(&source) {
            text
        } else {
            format!("{text}: {source}")
        }
    })
}

/// Whether other arguments would do: what was given cannot be used.
fn is_misuse(error: &anyhow::Error) -> bool {
    let given = error.downcast_ref::<LabError>();
    error.is::<Misuse>()
        || given.is_some_and(|error| {
            matches!(
                error,
                LabError::UnknownExperiment { .. }
                    | LabError::Folder { .. }
                    | LabError::NotComparable { .. }
                    | LabError::Incomplete { .. }
                    | LabError::Model { .. }
            )
        })
}

/// The exit status of an answer that is no, and of what could not be done.
const NO: u8 = 1;
/// The exit status of arguments that make no sense, as clap has it.
const MISUSE: u8 = 2;
