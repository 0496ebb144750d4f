//! `rtorb scheduling`: priorities from rates, deadlines and criticalities.

mod compute;
mod serve;
mod show;

use std::path::Path;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use rtorb_services::scheduling::analysis::{Criticality, Strategy};
use rtorb_services::scheduling::{Description, FileError};

use crate::orb_options::Misuse;

/// Priorities of operations, off line from a file, or from a scheduling service (RtecScheduler, as TAO has it).
#[derive(Debug, Args)]
pub(crate) struct Scheduling {
    #[command(subcommand)]
    subcommand: SchedulingSubcommand,
}

#[derive(Debug, Subcommand)]
enum SchedulingSubcommand {
    Compute(compute::Compute),
    Serve(serve::Serve),
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

/// What a file describes, with another strategy if one was chosen.
fn described(file: &Path, strategy: Option<&String>) -> anyhow::Result<Description> {
    let misuse = |error: FileError| anyhow!(Misuse::new(error.to_string()));
    let mut description = Description::read(file).map_err(misuse)?;
    if let Some(strategy) = chosen(strategy)? {
        description.strategy = strategy;
    }
    Ok(description)
}

/// The strategy of that name.
fn chosen(name: Option<&String>) -> anyhow::Result<Option<Strategy>> {
    let parsed = name.map(|name| name.parse::<Strategy>()).transpose();
    parsed.map_err(|reason| anyhow!(Misuse::new(reason)))
}

/// The names that there are, so that a wrong one is told with them.
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
