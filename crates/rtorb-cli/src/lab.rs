//! `rtorb lab`: single experiments, and reports of existing results.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use rtorb_lab::experiment::Effort;
use rtorb_lab::experiments;
use serde_json::json;

use crate::USAGE_ERROR;
use crate::agent::Agent;
use crate::measure::{Options, run_experiments};
use crate::output::{line, print_json};

mod compare;
mod export;
mod kernel;
mod kernels;
pub(crate) mod profile;

/// Run single experiments, and make reports from existing results.
#[derive(Debug, Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    subcommand: LabSubcommand,
}

#[derive(Debug, Subcommand)]
enum LabSubcommand {
    /// List the experiments: the name, what it shows, what it reproduces.
    List {
        /// Print one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Run one experiment and write its results and the report.
    Run {
        /// Name of the experiment, from `rtorb lab list`. `profile` runs all experiments that DIR/profile.json needs.
        name: String,
        #[command(flatten)]
        options: Options,
    },
    Agent(Agent),
    Compare(compare::Compare),
    Export(export::Export),
    Kernel(kernel::Kernel),
    Kernels(kernels::Kernels),
    Profile(profile::MakeProfile),
    /// Write DIR/index.html from the results below DIR.
    Report {
        /// Folder that `measure` or `lab run` wrote.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

impl Lab {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match &self.subcommand {
            LabSubcommand::List { json } => list(*json)?,
            LabSubcommand::Run { name, options } if name == PROFILE => {
                return run_experiments(&experiments::of_profile(), options);
            }
            LabSubcommand::Run { name, options } => match experiments::by_name(name) {
                Ok(experiment) => return run_experiments(&[experiment], options),
                Err(error) => {
                    eprintln!("rtorb: {error}");
                    return Ok(ExitCode::from(USAGE_ERROR));
                }
            },
            LabSubcommand::Agent(agent) => return agent.run(),
            LabSubcommand::Compare(compare) => return compare.run(),
            LabSubcommand::Export(export) => return export.run(),
            LabSubcommand::Kernel(kernel) => return kernel.run(),
            LabSubcommand::Kernels(kernels) => return kernels.run(),
            LabSubcommand::Profile(profile) => return profile.run(),
            LabSubcommand::Report { folder } => {
                let page =
                    rtorb_report::write(folder, &experiments::names()).with_context(|| {
                        format!(
                            "cannot make a report of the results in {}",
                            folder.display()
                        )
                    })?;
                line(format!("Report: {}", page.display()))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list(as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let entries = experiments::ALL.map(|experiment| {
            json!({
                "name": experiment.name(),
                "title": experiment.title(),
                "reproduces": experiment.reproduces(),
                "parameters": experiment.parameters(Effort::Quick),
                "parameters_full": experiment.parameters(Effort::Full),
            })
        });
        return print_json(&entries);
    }
    experiments::ALL.iter().try_for_each(|experiment| {
        line(format!(
            "{:16}  {}  [{}]",
            experiment.name(),
            experiment.title(),
            experiment.reproduces()
        ))
    })
}

/// The name that stands for all experiments that a platform profile needs.
const PROFILE: &str = "profile";
