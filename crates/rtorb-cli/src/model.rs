//! `rtorb model`: checks whether every deadline holds, and runs the analysed system.

mod answer;
mod apply;
mod check;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use rtorb_sched::Strategy;
use rtorb_sched::model::{CheckOptions, CheckReport, System};

use crate::orb_options::usage;
use crate::system_options::PlatformOptions;

/// Check and run a system: from its file and platform profiles to proven bounds, and to a run that tests them.
///
/// `rtorb lab run profile` measures the services of a platform. `check` composes their costs with the system and bounds every
/// response and end-to-end chain. `run` builds the system of synthetic work and real calls, and compares its responses with the
/// bounds. docs/reference/model.md explains all three.
#[derive(Debug, Args)]
pub(crate) struct Model {
    #[command(subcommand)]
    subcommand: ModelSubcommand,
}

#[derive(Debug, Subcommand)]
enum ModelSubcommand {
    Apply(apply::Apply),
    Check(check::Check),
    Run(run::Run),
}

impl Model {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match &self.subcommand {
            ModelSubcommand::Apply(apply) => apply.run(),
            ModelSubcommand::Check(check) => check.run(),
            ModelSubcommand::Run(run) => run.run(),
        }
    }
}

/// The system and its costs.
#[derive(Debug, Args)]
struct Analysis {
    /// File of the system: nodes, components, behaviours and their calls (docs/reference/model.md).
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    options: SystemOptions,
    /// Skip the search for the permitted growth of each behaviour.
    #[arg(long)]
    no_sensitivity: bool,
}

impl Analysis {
    /// Returns the system and its report.
    fn check(&self) -> anyhow::Result<(System, CheckReport)> {
        let system = self.options.platform.system(&self.file)?;
        let platforms = self.options.platform.platforms(&self.file, &system)?;
        let options = CheckOptions {
            sensitivity: !self.no_sensitivity,
            strategy: self.options.strategy()?,
            ..CheckOptions::default()
        };
        let checked = rtorb_sched::model::check(&system, &platforms, &options)
            .map_err(|error| usage(format!("{}: {error}", self.file.display())))?;
        Ok((system, checked))
    }
}

/// The platforms, priorities and interfaces of a system.
#[derive(Debug, Args)]
struct SystemOptions {
    #[command(flatten)]
    platform: PlatformOptions,
    /// Strategy for behaviours without a priority. Overrides the file's.
    #[arg(long, value_name = "NAME", value_parser = strategies())]
    strategy: Option<String>,
}

impl SystemOptions {
    /// True if one of them is given.
    fn is_given(&self) -> bool {
        self.strategy.is_some() || self.platform.is_given()
    }

    fn strategy(&self) -> anyhow::Result<Option<Strategy>> {
        let strategy = self.strategy.as_deref().map(str::parse).transpose();
        strategy.map_err(usage)
    }
}

/// The names of the strategies that give each behaviour a fixed priority.
fn strategies() -> PossibleValuesParser {
    let is_fixed = |strategy: &Strategy| {
        !matches!(
            strategy,
            Strategy::EarliestDeadlineFirst | Strategy::MinimumLaxityFirst
        )
    };
    let fixed = Strategy::ALL
        .into_iter()
        .filter(|(_, strategy)| is_fixed(strategy));
    PossibleValuesParser::new(fixed.map(|(name, _)| name))
}
