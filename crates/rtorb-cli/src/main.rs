//! The command `rtorb`: arguments in, text out. The library crates do the work; each subcommand is one file here.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

#[cfg(feature = "laboratory")]
mod agent;
mod background_printer;
mod call;
#[cfg(feature = "laboratory")]
mod check;
mod colour;
mod completions;
#[cfg(feature = "laboratory")]
mod cubit;
mod events;
#[cfg(feature = "laboratory")]
mod executable;
mod exit_status;
mod idl;
mod interface_options;
mod ior;
mod keys;
#[cfg(feature = "laboratory")]
mod lab;
#[cfg_attr(not(feature = "laboratory"), path = "no_laboratory.rs")]
mod laboratory;
mod locate;
mod man;
#[cfg(feature = "laboratory")]
mod measure;
#[cfg(feature = "laboratory")]
mod model;
mod named_file;
mod naming;
mod orb_options;
mod output;
mod ping;
#[cfg(feature = "laboratory")]
mod progress;
mod record;
mod reference;
#[cfg(feature = "laboratory")]
mod run_summary;
mod scheduling;
mod serve;
mod serving;
mod supervisor;
mod system_options;
#[cfg(feature = "laboratory")]
mod top;
#[cfg(feature = "laboratory")]
mod trace;
#[cfg(feature = "laboratory")]
mod why;

/// A real-time object request broker for Linux, and the laboratory that measures it.
#[derive(Debug, Parser)]
#[command(name = "rtorb", version, max_term_width = 100, after_help = exit_status::HELP)]
struct Command {
    #[command(subcommand)]
    subcommand: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    #[command(flatten)]
    Laboratory(laboratory::Laboratory),
    Ior(ior::Ior),
    Call(call::Call),
    Serve(serve::Serve),
    Record(record::Record),
    Ping(ping::Ping),
    Naming(naming::Naming),
    Locate(locate::Locate),
    Scheduling(scheduling::Scheduling),
    Events(events::Events),
    Keys(keys::Keys),
    Idl(idl::Idl),
    Completions(completions::Completions),
    Man(man::Manual),
}

fn main() -> ExitCode {
    if let Some(status) = laboratory::start() {
        return status;
    }
    let command = with_negative_numbers(Command::command())
        .try_get_matches()
        .and_then(|matches| Command::from_arg_matches(&matches))
        .unwrap_or_else(|error| with_tip(error).exit());
    let done = match command.subcommand {
        Subcommands::Laboratory(laboratory) => laboratory.run(),
        Subcommands::Ior(ior) => ior.run(),
        Subcommands::Call(call) => call.run(),
        Subcommands::Serve(serve) => serve.run(),
        Subcommands::Record(record) => record.run(),
        Subcommands::Ping(ping) => ping.run(),
        Subcommands::Naming(naming) => naming.run(),
        Subcommands::Locate(locate) => locate.run(),
        Subcommands::Scheduling(scheduling) => scheduling.run(),
        Subcommands::Events(events) => events.run(),
        Subcommands::Keys(keys) => keys.run(),
        Subcommands::Idl(idl) => idl.run(),
        Subcommands::Completions(completions) => completions.run(),
        Subcommands::Man(manual) => manual.run(),
    };
    done.unwrap_or_else(|error| {
        output::warn(text(&error));
        exit_status::of_error(&error)
    })
}

/// Adds what an option of CORBA programs is called here.
fn with_tip(mut error: clap::Error) -> clap::Error {
    let option = std::env::args().find(|argument| argument.starts_with("-ORB"));
    if let Some(option) = option
        && error.kind() == ErrorKind::UnknownArgument
    {
        let tip = format!(
            "'{option}' is an option of programs that use the ORB. --help lists this command's own; where that has --config, its file may contain any of the ORB's"
        );
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    error
}

/// Lets `-1` be the value of an option, so that the error about it is the option's own.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    command
        .allow_negative_numbers(true)
        .mut_subcommands(with_negative_numbers)
}

/// Joins the texts of an error and of its sources, without those that the error's own text already contains.
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
