//! `rtorb scheduling`: computes priorities from rates, deadlines and criticalities.

mod compute;
mod reload;
mod serve;
mod show;
mod system_file;

use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use rtorb_services::scheduling::Description;
use rtorb_services::scheduling::analysis::{Criticality, Strategy};

use crate::named_file::file_error;
use crate::orb_options::UsageError;

/// Compute priorities of operations from a file, and serve or show them (TAO's RtecScheduler).
#[derive(Debug, Args)]
pub(crate) struct Scheduling {
    #[command(subcommand)]
    subcommand: SchedulingSubcommand,
}

#[derive(Debug, Subcommand)]
enum SchedulingSubcommand {
    Compute(compute::Compute),
    Serve(Box<serve::Serve>),
    Show(show::Show),
}

impl Scheduling {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.subcommand {
            SchedulingSubcommand::Compute(compute) => compute.run(),
            SchedulingSubcommand::Serve(serve) => serve.run(),
            SchedulingSubcommand::Show(show) => show.run(),
        }
    }
}

/// Returns the condition that follows "every deadline holds", if there is one.
pub(crate) fn if_preempted(is_needed: bool) -> &'static str {
    if is_needed {
        " where the lane of the most urgent level preempts, as that of Schedule::lanes does and that of a channel does not"
    } else {
        ""
    }
}

/// Reads the description in a file; `strategy` overrides the file's.
fn description(file: &Path, strategy: Option<&String>) -> anyhow::Result<Description> {
    let mut description = Description::read(file).map_err(file_error)?;
    if let Some(strategy) = self::strategy(strategy)? {
        description.strategy = strategy;
    }
    Ok(description)
}

/// Parses the name of a strategy.
fn strategy(name: Option<&String>) -> anyhow::Result<Option<Strategy>> {
    let parsed = name.map(|name| name.parse::<Strategy>()).transpose();
    parsed.map_err(|reason| anyhow!(UsageError::new(reason)))
}

/// Accepts the names of strategies. The error for another name lists them.
fn strategies() -> PossibleValuesParser {
    PossibleValuesParser::new(Strategy::ALL.map(|(name, _)| name))
}

fn criticality(known: Criticality) -> &'static str {
    match known {
        Criticality::VeryLow => "very low",
        Criticality::Low => "low",
        Criticality::Medium => "medium",
        Criticality::High => "high",
        Criticality::VeryHigh => "very high",
    }
}
