//! `rtorb lab`: single experiments, and reports of existing results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use rtorb_lab::experiment::Effort;
use rtorb_lab::experiments::{self, soak::Soak};
use rtorb_report::PAPERS;
use serde_json::json;

use crate::agent::Agent;
use crate::measure::{Options, run_experiments};
use crate::named_file;
use crate::orb_options::usage;
use crate::output::{columns, indented, is_terminal, line, note, print_json};

mod compare;
mod export;
mod kernel;
mod kernels;
mod papers;
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
        /// Name of the experiment, from `rtorb lab list`. `profile` runs all experiments that DIR/profile.json needs; `soak` finds out
        /// whether an ORB grows or becomes slower in N hours.
        name: String,
        /// How long `soak` calls a server at full load: 0.005 to 168 hours [default: 1].
        #[arg(long, value_name = "N")]
        hours: Option<f64>,
        #[command(flatten)]
        options: Options,
    },
    Agent(Agent),
    Compare(compare::Compare),
    Export(export::Export),
    Kernel(kernel::Kernel),
    Kernels(kernels::Kernels),
    Papers(papers::Papers),
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
            LabSubcommand::Run {
                name,
                hours,
                options,
            } => return run(name, *hours, options),
            LabSubcommand::Agent(agent) => return agent.run(),
            LabSubcommand::Compare(compare) => return compare.run(),
            LabSubcommand::Export(export) => return export.run(),
            LabSubcommand::Kernel(kernel) => return kernel.run(),
            LabSubcommand::Kernels(kernels) => return kernels.run(),
            LabSubcommand::Papers(papers) => return papers.run(),
            LabSubcommand::Profile(profile) => return profile.run(),
            LabSubcommand::Report { folder } => {
                report(folder)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn run(name: &str, hours: Option<f64>, options: &Options) -> anyhow::Result<ExitCode> {
    match (name, hours) {
        (Soak::NAME, hours) => {
            let soak = Soak::of_hours(hours.unwrap_or(1.0)).map_err(usage)?;
            run_experiments(&[&soak], options)
        }
        (_, Some(_)) => Err(usage(format!(
            "--hours is for `rtorb lab run {}`: --full makes other experiments take more samples",
            Soak::NAME
        ))),
        (PROFILE, None) => run_experiments(&experiments::of_profile(), options),
        (name, None) => {
            let present = experiments::present_name(name);
            if let Some(present) = present {
                note!("{name} is a part of {present}, which is run instead");
            }
            let chosen = experiments::by_name(present.unwrap_or(name))?;
            run_experiments(&[&*chosen], options)
        }
    }
}

fn report(folder: &Path) -> anyhow::Result<()> {
    if folder.join("run-1/results").is_dir() {
        return Err(usage(format!(
            "{folder} holds several runs: name one, such as {folder}/run-1",
            folder = folder.display()
        )));
    }
    if !folder.join("results").is_dir() {
        return Err(usage(format!(
            "{} holds no results: give a folder that `rtorb measure --out DIR` or `rtorb lab run NAME --out DIR` wrote",
            folder.display()
        )));
    }
    let page = rtorb_report::write(folder, &experiments::names());
    let page = page.map_err(named_file::failed(
        "make a report of the results in",
        folder,
    ))?;
    line(format!("Report: {}", page.display()))
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
    // A person reads lines that fit. A pipe gets one line for each experiment, which grep finds whole.
    let width = if is_terminal() { columns() } else { usize::MAX };
    let name_width = experiments::names().iter().map(|name| name.len()).max();
    let name_width = name_width.unwrap_or(0);
    let others = " ".repeat(name_width + 2);
    for experiment in experiments::ALL {
        let text = format!("{}  [{}]", experiment.title(), experiment.reproduces());
        let first = format!("{:name_width$}  ", experiment.name());
        indented(&text, [&first, &others], width)
            .into_iter()
            .try_for_each(line)?;
    }
    if is_terminal() {
        line("\nThe papers:")?;
        for paper in PAPERS {
            let text = format!("{}: {}", paper.short, paper.title);
            indented(&text, [&format!("{}  ", paper.key), "    "], width)
                .into_iter()
                .try_for_each(line)?;
        }
    }
    Ok(())
}

/// The name that stands for all experiments that a platform profile needs.
const PROFILE: &str = "profile";
