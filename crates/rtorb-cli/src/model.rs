//! `rtorb model`: checks whether every deadline holds, and runs the analysed system.

mod answer;
mod apply;
mod check;
mod run;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::anyhow;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use rtorb_idl::tree::Criticality as Annotated;
use rtorb_sched::model::{
    CheckOptions, CheckReport, MissRatio, Platform, ProfileOption, Statistic, System, Timing,
    profiles_of,
};
use rtorb_sched::{Criticality, Strategy};

use crate::named_file::file_error;
use crate::orb_options::UsageError;

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
        let system = self.options.system(&self.file)?;
        let platforms = self.options.platforms(&self.file, &system)?;
        let options = CheckOptions {
            sensitivity: !self.no_sensitivity,
            strategy: self.options.strategy()?,
            ..CheckOptions::default()
        };
        let checked = rtorb_sched::model::check(&system, &platforms, &options)
            .map_err(|error| usage_error(format!("{}: {error}", self.file.display())))?;
        Ok((system, checked))
    }
}

/// The platforms, priorities and interfaces of a system.
#[derive(Debug, Args)]
struct SystemOptions {
    /// Platform profile, of one node or of all. Overrides those of the file. `rtorb lab run profile` writes one.
    #[arg(long = "profile", value_name = "[NODE=]FILE", conflicts_with = "ideal")]
    profiles: Vec<ProfileOption>,
    /// Statistic of the measured costs: the largest (max), or p99, with rare costs as separate terms.
    ///
    /// The default is max, but p99 in a virtual machine, where the largest value contains what the hypervisor took.
    #[arg(long, value_name = "STATISTIC", value_parser = ["max", "p99"], conflicts_with = "ideal")]
    costs: Option<String>,
    /// Assume a platform that costs nothing: only the application's own code counts.
    #[arg(long)]
    ideal: bool,
    /// Strategy for behaviours without a priority. Overrides the file's.
    #[arg(long, value_name = "NAME", value_parser = strategies())]
    strategy: Option<String>,
    /// Folder to search for included IDL files. May be given more than once.
    #[arg(short = 'I', value_name = "DIR")]
    include_dirs: Vec<PathBuf>,
}

impl SystemOptions {
    /// True if one of them is given.
    fn is_given(&self) -> bool {
        let Self {
            profiles,
            costs,
            ideal,
            strategy,
            include_dirs,
        } = self;
        let is_any = costs.is_some() || strategy.is_some() || *ideal;
        is_any || !profiles.is_empty() || !include_dirs.is_empty()
    }

    /// Reads the file of a system.
    fn system(&self, file: &Path) -> anyhow::Result<System> {
        System::read(file, &|files| self.timings(files)).map_err(file_error)
    }

    fn strategy(&self) -> anyhow::Result<Option<Strategy>> {
        let strategy = self.strategy.as_deref().map(str::parse).transpose();
        strategy.map_err(usage_error)
    }

    /// Returns the profile of each node, in order; `None` for a platform that costs nothing.
    fn profiles(&self, file: &Path, system: &System) -> anyhow::Result<Vec<Option<PathBuf>>> {
        if self.ideal {
            return Ok(vec![None; system.nodes.len()]);
        }
        let files = profiles_of(system, &self.profiles)
            .map_err(|reason| usage_error(format!("{}: {reason}", file.display())))?;
        Ok(files.into_iter().map(Some).collect())
    }

    /// Returns a platform for each node; reads a profile of several nodes once.
    fn platforms(&self, file: &Path, system: &System) -> anyhow::Result<Vec<Platform>> {
        let files = self.profiles(file, system)?;
        let mut read: BTreeMap<&Path, Platform> = BTreeMap::new();
        for file in files.iter().flatten() {
            if !read.contains_key(file.as_path()) {
                let platform = Platform::read(file).map_err(file_error)?;
                read.insert(file, self.with_costs(platform));
            }
        }
        let each = files.iter().map(|file| match file {
            Some(file) => read[file.as_path()].clone(),
            None => Platform::ideal(),
        });
        Ok(each.collect())
    }

    fn with_costs(&self, platform: Platform) -> Platform {
        match self.costs.as_deref() {
            Some("max") => platform.with_statistic(Statistic::Max),
            Some(_) => platform.with_statistic(Statistic::P99),
            None => platform,
        }
    }

    /// Returns the timing annotations of the operations in IDL.
    fn timings(&self, files: &[PathBuf]) -> Result<BTreeMap<String, Timing>, String> {
        let found = rtorb_idl::timings(files, &self.include_dirs);
        let found = found.map_err(|error| error.to_string())?;
        let named = found.into_iter().map(|one| {
            let timing = Timing {
                place: format!("{}:{}", one.file, one.line),
                worst_ns: one.worst_ns,
                deadline_ns: one.deadline_ns,
                period_ns: one.period_ns,
                criticality: one.criticality.map(in_the_model),
                miss_ratio: one.statistical.map(|ratio| MissRatio {
                    misses: ratio.misses,
                    calls: ratio.calls,
                }),
            };
            (one.operation, timing)
        });
        Ok(named.collect())
    }
}

fn in_the_model(criticality: Annotated) -> Criticality {
    match criticality {
        Annotated::VeryLow => Criticality::VeryLow,
        Annotated::Low => Criticality::Low,
        Annotated::Medium => Criticality::Medium,
        Annotated::High => Criticality::High,
        Annotated::VeryHigh => Criticality::VeryHigh,
    }
}

/// An error that other arguments, or another file, would correct.
fn usage_error(error: impl core::fmt::Display) -> anyhow::Error {
    anyhow!(UsageError::new(error.to_string()))
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
