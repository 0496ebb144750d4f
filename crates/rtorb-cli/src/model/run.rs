//! `rtorb model run`: runs the analysed system as synthetic work and real calls, and compares it with its bounds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use clap::builder::RangedU64ValueParser;
use rtorb_host::preflight;
use rtorb_lab::experiment::{Context, Effort};
use rtorb_lab::experiments;
use rtorb_lab::model::noise::Noise;
use rtorb_lab::model::{self, DURATION_MAX, DURATION_MIN, RunOptions, loading, repeats};
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_results::judgement::{Judgement, Observed};
use rtorb_results::judgement_views;
use rtorb_results::{Results, runs};
use rtorb_sched::model::{CheckReport, Standing};
use rtorb_sched::times::parse_ns;

use super::Analysis;
use super::answer::{heading, paragraph, verdict};
use crate::colour::Tone;
use crate::executable;
use crate::exit_status::FAILED;
use crate::output::{columns, indented, line, note, print_json, print_table};
use crate::progress::Report;
use crate::run_summary::of_host;

/// Run an analysed system, and compare its responses with the bounds.
///
/// Checks the system first, as `rtorb model check` does, and runs it only if every deadline holds. Each component is a process
/// whose ORB loads the lanes and bands of the analysis. Behaviours execute as long as the file says, and call each other. Threads
/// run under SCHED_FIFO at their priorities.
///
/// Exit status 0: every behaviour ran, every deadline was met, and no response exceeded its bound unless the host took the CPU
/// meanwhile. 1: not so, or the deadlines are not proven and --force was not given. 2: the file or the options are wrong. With
/// --runs, each run counts.
#[derive(Debug, Args)]
pub(super) struct Run {
    #[command(flatten)]
    analysis: Analysis,
    /// Duration of arrivals: 10ms to an hour.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = time)]
    duration: Duration,
    /// Run it even if deadlines will be missed.
    #[arg(long)]
    force: bool,
    /// Host CPU for a CPU of the system, such as flight/0=1. May be given more than once; every other CPU of the system
    /// gets its own CPU.
    #[arg(long, value_name = "NODE/CPU=HOSTCPU")]
    place: Vec<CpuAssignment>,
    /// Let a CPU of this host run several CPUs of the system if there are too few. No bound holds then.
    #[arg(long)]
    share: bool,
    /// Seed of execution times and of gaps between arrivals, if the file gives a range.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of runs, each with the next seed. The report has the least favourable one, and says which behaviours exceeded their
    /// bounds in how many of them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = RangedU64ValueParser::<usize>::new().range(1..=RUNS_MAX))]
    runs: usize,
    /// Folder of the report.
    #[arg(long, value_name = "DIR", default_value = "report")]
    out: PathBuf,
    /// Print the results as one JSON object.
    #[arg(long)]
    json: bool,
}

impl Run {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let (system, checked) = self.analysis.check()?;
        if checked.standing != Standing::Holds && !self.force {
            let (verdict, file) = (checked.verdict(), self.analysis.file.display());
            anyhow::bail!(
                "{verdict} It was not run: `rtorb model check {file}` explains why, and --force runs it anyway"
            );
        }
        runs::prepare(&self.out)?;
        let interrupt = Interrupt::on_signals().context("cannot listen to signals")?;
        let context = Context::new(Effort::Quick, executable::own()?, interrupt)?;
        print_host(&context)?;
        let mut runs = Vec::with_capacity(self.runs);
        for number in 1..=self.runs {
            let mut progress = Report::new(&format!("model/{}", system.name), number, self.runs);
            let options = self.options(number);
            let ran = model::run(&system, &checked, &options, &context, &mut progress);
            drop(progress);
            runs.push(ran?);
        }
        let results = repeats::least_favourable(runs).context("a run has results")?;
        results
            .write(&self.out)
            .with_context(|| format!("cannot write below {}", self.out.display()))?;
        loading::write_answer(&self.out, &checked)?;
        let of = rtorb_report::Run {
            id: &context.run,
            failures: &[],
            order: &experiments::names(),
        };
        let page = rtorb_report::write_run(&self.out, &of)
            .with_context(|| format!("cannot write the report in {}", self.out.display()))?;
        if self.json {
            print_json(&results)?;
        } else {
            print(&results, &checked, &page)?;
            if self.analysis.options.platform.ideal && !kept(&results) {
                line(IDEAL)?;
            }
        }
        Ok(if kept(&results) && results.complete {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }

    /// Those of the run with this number, from 1.
    fn options(&self, number: usize) -> RunOptions {
        let assignments = self.place.iter();
        let place: BTreeMap<_, _> = assignments
            .map(|one| ((one.node.clone(), one.cpu), one.host_cpu))
            .collect();
        RunOptions {
            duration: self.duration,
            force: self.force,
            seed: self.seed.wrapping_add(number as u64 - 1),
            place,
            share: self.share,
            ..RunOptions::default()
        }
    }
}

fn kept(results: &Results) -> bool {
    results.judgement.as_ref().is_some_and(Judgement::is_kept)
}

/// Prints whether the host is fit for a run, and how noisy it is now.
fn print_host(context: &Context) -> anyhow::Result<()> {
    let findings = preflight::findings(&context.host);
    let noise = Noise::measure(context)?;
    let text = format!("{} Now: {noise}.", of_host(&findings));
    for text in indented(&text, ["", "  "], columns()) {
        note!("{text}");
    }
    Ok(())
}

fn print(results: &Results, checked: &CheckReport, page: &Path) -> anyhow::Result<()> {
    if let Some(judgement) = &results.judgement {
        print_judgement(judgement)?;
    }
    // The check and the page list the assumptions of the bounds.
    let of_check = |note: &&String| {
        let mut assumed = checked.assumptions.iter();
        assumed.any(|one| note.ends_with(&one.what))
    };
    let notes: Vec<&String> = results
        .notes
        .iter()
        .filter(|note| !of_check(note))
        .collect();
    if !notes.is_empty() {
        heading("Notes")?;
    }
    for note in notes {
        paragraph(note, ["  * ", "    "])?;
    }
    line(format!("\nReport: {}", page.display()))
}

/// Prints the verdict, the tables, and for each response above its bound the excess and the cause.
fn print_judgement(judgement: &Judgement) -> anyhow::Result<()> {
    line("")?;
    verdict(Tone::of_answer(judgement.is_kept()), &judgement.verdict())?;
    for titled in judgement_views::tables(judgement) {
        heading(&titled.title)?;
        print_table(&titled.table)?;
    }
    let all = judgement.behaviours.iter().chain(&judgement.chains);
    let exceeded: Vec<&Observed> = all.filter(|one| !one.is_as_promised()).collect();
    if !exceeded.is_empty() {
        heading("Missed deadlines and exceeded bounds")?;
    }
    let words: Vec<&String> = exceeded.iter().map(|one| &one.words).collect();
    print_points(&words)?;
    for (title, of) in [
        (
            "What took the CPUs, and whose fault it is",
            &judgement.causes,
        ),
        ("What to do next", &judgement.next),
    ] {
        if !of.is_empty() {
            heading(title)?;
            print_points(&of.iter().collect::<Vec<_>>())?;
        }
    }
    Ok(())
}

fn print_points(points: &[&String]) -> anyhow::Result<()> {
    points
        .iter()
        .try_for_each(|one| paragraph(one, ["  * ", "    "]))
}

/// A CPU of the system, and the host's CPU that runs it.
#[derive(Clone, Debug)]
struct CpuAssignment {
    node: String,
    cpu: u32,
    host_cpu: usize,
}

impl FromStr for CpuAssignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (processor, host_cpu) = text.rsplit_once('=')?;
            let (node, cpu) = processor.rsplit_once('/')?;
            Some(Self {
                node: node.to_owned(),
                cpu: cpu.parse().ok()?,
                host_cpu: host_cpu.parse().ok()?,
            })
        };
        read().ok_or_else(|| {
            "an assignment is NODE/CPU=HOSTCPU, such as flight/0=1: CPU 0 of the node flight is CPU 1 of this host".to_owned()
        })
    }
}

/// The results of all runs are in memory until the last has ended.
const RUNS_MAX: u64 = 100;
const IDEAL: &str = "The bounds are those of --ideal, without the costs of ORB and kernel: give --profile to compare a run.";

fn time(text: &str) -> Result<Duration, String> {
    let duration = parse_ns(text).map(Duration::from_nanos)?;
    if (DURATION_MIN..=DURATION_MAX).contains(&duration) {
        Ok(duration)
    } else {
        Err("a run takes 10ms to an hour".to_owned())
    }
}
