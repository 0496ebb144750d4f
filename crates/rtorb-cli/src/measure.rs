//! `rtorb measure`: the main job. Describes and checks the host, runs every experiment, and writes the report.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use rtorb_lab::experiment::{self, Context, Effort, Experiment};
use rtorb_lab::interrupt::Interrupt;
use rtorb_lab::load::Load;
use rtorb_lab::results::Results;
use rtorb_lab::{experiments, preflight, report, summary};
use serde_json::json;

use crate::NO;
use crate::output::{line, print_json, print_table};
use crate::progress::Report;

/// Measure this host and the ORB on it, and write a report.
///
/// Writes DIR/index.html, and DIR/results/NAME.json for each experiment. Ctrl-C ends the run early; what was measured
/// until then is reported.
#[derive(Debug, Args)]
pub(crate) struct Measure {
    #[command(flatten)]
    options: Options,
}

/// What `rtorb lab run` takes too.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Take the published sample counts and more: all experiments together need about three hours instead of three minutes.
    #[arg(long)]
    full: bool,
    /// Only see whether everything runs, in seconds; the numbers mean nothing.
    #[arg(long, hide = true, conflicts_with = "full")]
    glance: bool,
    /// Measure under load: hog, disk, network, several with commas between, or mix for all three.
    ///
    /// hog: five processes of low priority that compute; disk: files are written and forced to the disk; network: octets through the
    /// loopback device. stress-ng makes the load where it is installed. It ends with the run.
    #[arg(long, value_name = "LOAD", default_value = "none")]
    load: Load,
    /// Where the report is written.
    #[arg(long, value_name = "DIR", default_value = "report")]
    out: PathBuf,
    /// Print the results as one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

impl Measure {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        run_experiments(&experiments::ALL, &self.options)
    }
}

/// Runs experiments one after another, and writes and prints what they found.
pub(crate) fn run_experiments(
    chosen: &[&dyn Experiment],
    options: &Options,
) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::on_signals().context("cannot listen to signals")?;
    let effort = match options {
        Options { full: true, .. } => Effort::Full,
        Options { glance: true, .. } => Effort::Glance,
        _ => Effort::Quick,
    };
    let executable = std::env::current_exe().context("cannot find this program's own file")?;
    let mut context = Context::new(effort, executable, interrupt)?;
    context.load = options.load.clone();
    tell_preflight(&context);
    let mut all = Vec::new();
    for experiment in chosen {
        if context.interrupted() {
            break;
        }
        let mut progress = Report::new(experiment.name());
        let results = experiment::run(*experiment, &context, &mut progress);
        progress.finish();
        let results =
            results.with_context(|| format!("{} could not be measured", experiment.name()))?;
        results
            .write(&options.out)
            .with_context(|| format!("cannot write below {}", options.out.display()))?;
        all.push(results);
    }
    let page = report::write(&options.out)
        .with_context(|| format!("cannot write the report in {}", options.out.display()))?;
    if options.json {
        print_json(&json!({ "report": page, "results": all }))?;
    } else {
        print_results(&all, &page)?;
    }
    let complete = all.len() == chosen.len() && all.iter().all(|results| results.complete);
    Ok(if complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NO)
    })
}

/// What stands in the way of real time is said before the numbers, once.
fn tell_preflight(context: &Context) {
    for finding in preflight::findings(&context.host) {
        if finding.severity == preflight::Severity::Unfit {
            eprintln!(
                "not fit for real time: {}; `rtorb check` says what to do",
                finding.what
            );
        }
    }
}

fn print_results(all: &[Results], page: &Path) -> anyhow::Result<()> {
    for results in all {
        line(format!("\n{}: {}", results.experiment, results.title))?;
        print_table(&summary::medians(results))?;
        for target in &results.targets {
            let verdict = if target.holds { "holds" } else { "MISSED" };
            line(format!(
                "{verdict:>6}  {}: {:.3}, at most {:.2}",
                target.what, target.value, target.limit
            ))?;
        }
        for conclusion in &results.conclusions {
            line(format!(" found  {conclusion}"))?;
        }
        for note in &results.notes {
            line(format!("  note  {note}"))?;
        }
        if !results.is_real_time() {
            line("  note  NOT REAL-TIME: not every measured thread had SCHED_FIFO on one CPU")?;
        }
    }
    line(format!("\nReport: {}", page.display()))
}
