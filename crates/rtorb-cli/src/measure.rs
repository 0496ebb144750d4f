//! `rtorb measure`: the main job. Describes and checks the host, runs every experiment, and writes the report.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use rtorb_lab::agent::Agent;
use rtorb_lab::error::LabError;
use rtorb_lab::experiment::{self, Context, Effort, Experiment};
use rtorb_lab::interrupt::Interrupt;
use rtorb_lab::load::Load;
use rtorb_lab::report::Failure;
use rtorb_lab::results::Results;
use rtorb_lab::square_wave::gpio::GpioLines;
use rtorb_lab::{experiments, preflight, report};
use serde_json::json;

use crate::NO;
use crate::executable;
use crate::output::print_json;
use crate::progress::Report;

mod closing;

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
    /// Measure orb/histogram and orb/payload through real GPIO lines.
    ///
    /// The generator of the square wave is wired to IN; the receiver sets OUT; MONITOR is an input that is wired to OUT, and
    /// without it a latency ends when the line was set. Given twice, the first lines are those of the more urgent wave.
    /// Without it a timer makes the pulse.
    #[arg(long, value_name = "CHIP:IN:OUT[:MONITOR]")]
    gpio: Vec<GpioLines>,
    /// Run the servers of the ORB's experiments on another host, where `rtorb lab agent` listens; clients stay here.
    ///
    /// Then only contestants over TCP take part. Experiments on the operating system measure this host.
    #[arg(long, value_name = "ADDR:PORT")]
    agent: Option<String>,
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
    let executable = executable::own()?;
    let mut context = Context::new(effort, executable, interrupt)?;
    context.load = options.load.clone();
    context.gpio = options.gpio.clone();
    tell_preflight(&context);
    if let Some(address) = &options.agent {
        let agent = Agent::connect(address)?;
        tell_agent(&agent);
        context.launcher.agent = Some(agent);
    }
    let measured = measure_each(chosen, &context, options)?;
    let page =
        match measured.all.is_empty() {
            true => None,
            false => {
                let run = report::Run {
                    id: &context.run,
                    failures: &measured.failures,
                };
                let page = report::write_run(&options.out, &run);
                Some(page.with_context(|| {
                    format!("cannot write the report in {}", options.out.display())
                })?)
            }
        };
    if options.json {
        print_json(&json!({ "report": page, "results": measured.all }))?;
    } else {
        closing::print(&measured, page.as_deref())?;
    }
    if let (Some(agent), Some(why)) = (&options.agent, context.launcher.agent_lost()) {
        eprintln!(
            "rtorb: the agent at {agent} was lost: {why}; the report has what was measured before"
        );
    }
    // One that was asked for alone and several of which none could be measured: an error like any other.
    if let (None, Some(failure)) = (&page, measured.failures.first()) {
        anyhow::bail!(
            "{} could not be measured: {}",
            failure.experiment,
            failure.why
        );
    }
    let complete =
        measured.all.len() == chosen.len() && measured.all.iter().all(|results| results.complete);
    Ok(if complete {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NO)
    })
}

/// What a run came to.
pub(crate) struct Measured {
    pub(crate) all: Vec<Results>,
    pub(crate) failures: Vec<Failure>,
}

/// Runs the experiments until somebody wants the end. One that fails does not take the others with it.
fn measure_each(
    chosen: &[&dyn Experiment],
    context: &Context,
    options: &Options,
) -> anyhow::Result<Measured> {
    let mut measured = Measured {
        all: Vec::new(),
        failures: Vec::new(),
    };
    for (at, experiment) in chosen.iter().enumerate() {
        if context.interrupted() {
            break;
        }
        let mut progress = Report::new(experiment.name(), at + 1, chosen.len());
        let results = experiment::run(*experiment, context, &mut progress);
        progress.finish();
        match results {
            Ok(results) => {
                results
                    .write(&options.out)
                    .with_context(|| format!("cannot write below {}", options.out.display()))?;
                measured.all.push(results);
            }
            Err(LabError::Interrupted) => break,
            Err(error) => {
                eprintln!("{}: could not be measured: {error}", experiment.name());
                measured.failures.push(Failure {
                    experiment: experiment.name().to_owned(),
                    why: error.to_string(),
                });
            }
        }
    }
    Ok(measured)
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

/// Who serves, and how.
fn tell_agent(agent: &Agent) {
    let host = agent.host();
    let placement = agent.placement();
    let cpu = placement
        .cpu
        .map_or("any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let policy = placement
        .fifo
        .map_or("no real-time priority".to_owned(), |priority| {
            format!("SCHED_FIFO {priority}")
        });
    eprintln!(
        "servers run on the agent's host, {}: Linux {}, on {cpu} with {policy}",
        agent.address(),
        host.kernel_release
    );
    for finding in preflight::findings(host) {
        if finding.severity == preflight::Severity::Unfit {
            eprintln!(
                "the agent's host is not fit for real time: {}",
                finding.what
            );
        }
    }
}
