//! `rtorb measure`: describes and checks the host, runs every experiment, and writes the report.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use rtorb_host::preflight;
use rtorb_lab::experiment::{Clocks, Context, Effort, Experiment, GpioLines, Progress};
use rtorb_lab::experiments;
use rtorb_lab::measurement::{MeasuredRun, Measurement, Observer};
use rtorb_lab::processes::agent::Agent;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_lab::processes::load::Load;
use rtorb_results::profile::Profile;
use rtorb_results::{ExperimentFailure, Results};
use serde::Serialize;
use serde_json::json;

use crate::executable;
use crate::exit_status::FAILED;
use crate::orb_options::{TlsOptions, usage};
use crate::output::{columns, indented, line, note, print_json};
use crate::progress::Report;
use crate::run_summary;

/// Measure this host and the ORB on it, and write a report.
///
/// Writes DIR/index.html, and DIR/results/NAME.json for each experiment. Ctrl-C ends the run early; the report then has what
/// was measured until then. The exit status is 1 if a claim is missed, if an answer was wrong, or if
/// something could not be measured.
#[derive(Debug, Args)]
pub(crate) struct Measure {
    #[command(flatten)]
    options: Options,
}

/// Options of `rtorb measure` and of `rtorb lab run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Take at least the published sample counts: all experiments together need about ten hours instead of three minutes.
    #[arg(long)]
    full: bool,
    /// Only try whether everything runs, in seconds; the numbers mean nothing.
    #[arg(long, hide = true, conflicts_with = "full")]
    glance: bool,
    /// Load during the measurement: mix (hog, disk and network), or kinds separated by commas; --help lists them.
    ///
    /// hog: five processes of low priority compute; disk: files are written and forced to the disk; network: bytes go through
    /// the loopback device. stress-ng makes these if it is installed. rtorb itself makes the others, as in `rtorb lab kernel`:
    /// fork: a process with 32 MiB is copied; munmap: 64 MiB are mapped, touched and unmapped; pipes: threads write to each
    /// other; tcp, udp: a stream, or small datagrams, through the loopback device; proc: /proc is read; tmpfs: files of 64 MiB
    /// in memory are written and removed; timers: 200 expire at once; exec: programs are started; unix: messages over UNIX
    /// sockets. The load ends with the run.
    #[arg(long, value_name = "LOAD", default_value = "none")]
    load: Load,
    /// GPIO lines for the edges of orb/edge.
    ///
    /// The generator of the square wave is wired to IN. The receiver sets OUT. MONITOR is an input that is wired to OUT;
    /// without it, a latency ends when the call that sets OUT has returned. If the option is given twice, the first lines are
    /// those of the more urgent wave. Without the option, a timer makes the pulse.
    #[arg(long, value_name = "CHIP:IN:OUT[:MONITOR]")]
    gpio: Vec<GpioLines>,
    /// Agent that runs the servers of the ORB's experiments on another host (`rtorb lab agent`); clients run here.
    ///
    /// Then only contestants over TCP take part. Experiments on the operating system still measure this host. If the option is
    /// given three times, orb/edge has the urgent receiver on the first host, the other receiver on the second, and the event channel
    /// on the third; the last agent takes the servers of hosts that are missing.
    #[arg(long, value_name = "ADDR:PORT", value_parser = crate::agent::address)]
    agent: Vec<String>,
    #[command(flatten)]
    tls: TlsOptions,
    /// How a latency ends on another host: by its clock, or by a datagram that it sends back as it sets its output.
    ///
    /// `disciplined:ERROR`, such as `disciplined:2us`: CLOCK_REALTIME of all hosts is disciplined, by PTP for example, and never
    /// further apart than ERROR. `datagram`: a latency ends when this host's kernel receives the datagram, so that the way back is
    /// in it. Without the option: `datagram`, unless the hosts are network namespaces of one machine, which have one clock.
    #[arg(long, value_name = "CLOCKS", requires = "agent")]
    clocks: Option<Clocks>,
    /// Folder of the report.
    #[arg(long, value_name = "DIR", default_value = "report")]
    out: PathBuf,
    /// Number of runs, one after another: DIR/run-1, DIR/run-2 and so on, for `rtorb lab compare`.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=RUNS_MAX))]
    runs: u16,
    /// End with exit status 0 even if claims are missed: the run only looks.
    #[arg(long)]
    no_fail: bool,
    /// Print the results as one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

impl Measure {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        run_experiments(&experiments::ALL, &self.options)
    }
}

/// Runs experiments, writes and prints their results, and returns the exit status.
pub(crate) fn run_experiments(
    chosen: &[&dyn Experiment],
    options: &Options,
) -> anyhow::Result<ExitCode> {
    if options.agent.is_empty() && !options.tls.is_empty() {
        return Err(usage(
            "the options of TLS are for connections to agents: name one with --agent ADDR:PORT",
        ));
    }
    let security = crate::agent::security(&options.tls)?;
    let measurement = Measurement {
        chosen,
        effort: match options {
            Options { full: true, .. } => Effort::Full,
            Options { glance: true, .. } => Effort::Glance,
            _ => Effort::Quick,
        },
        load: &options.load,
        gpio: &options.gpio,
        agents: &options.agent,
        security: security.as_ref(),
        clocks: options.clocks,
        folder: &options.out,
        runs: options.runs.into(),
        executable: executable::own()?,
        interrupt: Interrupt::on_signals().context("cannot listen to signals")?,
    };
    let mut screen = Screen {
        chosen,
        runs: measurement.runs,
        done: Vec::new(),
    };
    measurement.run(&mut screen)?;
    let mut done = screen.done;
    print(&done, options)?;
    if let Some(error) = done.iter_mut().find_map(|run| run.unwritten.take()) {
        return Err(error);
    }
    // If nothing was measured, the first failure is the error of the command.
    let failed = done.iter().find(|run| run.report.is_none());
    if let Some(failure) = failed.and_then(|run| run.measured.failures.first()) {
        anyhow::bail!(
            "{} could not be measured: {}",
            failure.experiment,
            failure.why
        );
    }
    let measured: Vec<_> = done.iter().map(|run| &run.measured).collect();
    let is_done = done.len() == measurement.runs;
    Ok(if is_done && is_good(&measured, chosen, options.no_fail) {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(FAILED)
    })
}

/// Returns true if everything was measured and, unless the runs only look, nothing failed.
fn is_good(runs: &[&MeasuredRun], chosen: &[&dyn Experiment], only_looks: bool) -> bool {
    runs.iter()
        .all(|run| run.is_complete(chosen) && (only_looks || !run.has_failed()))
}

/// The runs that have ended, and what is printed meanwhile.
struct Screen<'a> {
    chosen: &'a [&'a dyn Experiment],
    runs: usize,
    done: Vec<Run>,
}

impl Observer for Screen<'_> {
    fn begin_run(&mut self, number: usize, context: &Context) {
        if self.runs > 1 {
            note!("run {number} of {}", self.runs);
        }
        if number == 1 {
            print_preflight(context);
        }
    }

    fn connected(&mut self, agent: &Agent) {
        print_agent(agent);
    }

    fn begin_experiment(&mut self, name: &str, place: usize) -> Box<dyn Progress> {
        Box::new(Report::new(name, place, self.chosen.len()))
    }

    fn failed(&mut self, failure: &ExperimentFailure) {
        note!("{}: failed: {}", failure.experiment, failure.why);
    }

    fn end_run(&mut self, run: MeasuredRun, context: &Context, folder: &Path) -> ControlFlow<()> {
        let mut run = Run {
            measured: run,
            report: None,
            profile: None,
            unwritten: None,
        };
        run.unwritten = self.write(&mut run, context, folder).err();
        let is_written = run.unwritten.is_none();
        self.done.push(run);
        if is_written {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    fn lost(&mut self, address: &str, why: &str) {
        note!(
            "rtorb: the agent at {address} was lost: {why}; the report has what was measured before"
        );
    }
}

impl Screen<'_> {
    /// Writes the report and the profile of a run whose results are written.
    fn write(&self, run: &mut Run, context: &Context, folder: &Path) -> anyhow::Result<()> {
        if let Some(error) = run.measured.unwritten.take() {
            return Err(error).with_context(|| format!("cannot write below {}", folder.display()));
        }
        write_report(context, folder, run)?;
        run.profile = write_profile(self.chosen, &run.measured.results, folder)?;
        Ok(())
    }
}

/// The results of one run, and the files that it wrote.
struct Run {
    measured: MeasuredRun,
    report: Option<PathBuf>,
    /// The platform profile and its file, if all experiments that it needs were chosen.
    profile: Option<(Profile, PathBuf)>,
    /// The error that kept the run from writing everything.
    unwritten: Option<anyhow::Error>,
}

/// A run as JSON.
#[derive(Serialize)]
struct RunAsJson<'a> {
    report: Option<&'a Path>,
    results: &'a [Results],
    profile: Option<&'a Path>,
}

impl Run {
    fn as_json(&self) -> RunAsJson<'_> {
        RunAsJson {
            report: self.report.as_deref(),
            results: &self.measured.results,
            profile: self.profile.as_ref().map(|(_, file)| file.as_path()),
        }
    }
}

fn write_report(context: &Context, folder: &Path, run: &mut Run) -> anyhow::Result<()> {
    if run.measured.results.is_empty() {
        return Ok(());
    }
    let of = rtorb_report::Run {
        id: &context.run,
        failures: &run.measured.failures,
        order: &experiments::names(),
    };
    let page = rtorb_report::write_run(folder, &of);
    run.report =
        Some(page.with_context(|| format!("cannot write the report in {}", folder.display()))?);
    Ok(())
}

/// Writes the platform profile, if all experiments that it needs were chosen and any of them was measured.
fn write_profile(
    chosen: &[&dyn Experiment],
    all: &[Results],
    folder: &Path,
) -> anyhow::Result<Option<(Profile, PathBuf)>> {
    if !experiments::have_profile(chosen) {
        return Ok(None);
    }
    // A run that was interrupted before anything was measured has no profile.
    let Ok(profile) = Profile::from_results(all, &experiments::services()) else {
        return Ok(None);
    };
    let file = profile.write(folder)?;
    Ok(Some((profile, file)))
}

fn print(done: &[Run], options: &Options) -> anyhow::Result<()> {
    let is_one = options.runs == 1;
    if options.json {
        return match done {
            [only] if is_one => print_json(&only.as_json()),
            several => {
                let runs: Vec<_> = several.iter().map(Run::as_json).collect();
                print_json(&json!({ "runs": runs }))
            }
        };
    }
    for (number, run) in (1..).zip(done) {
        if !is_one {
            line(format!("\nRun {number} of {}", options.runs))?;
        }
        let MeasuredRun {
            results, failures, ..
        } = &run.measured;
        run_summary::print(results, failures, run.report.as_deref())?;
        if let Some((profile, file)) = &run.profile {
            crate::lab::profile::print(profile, file)?;
        }
    }
    Ok(())
}

/// Prints once, before the numbers, what makes the host unfit for real time.
fn print_preflight(context: &Context) {
    for finding in preflight::findings(&context.host) {
        if finding.severity == preflight::Severity::Unfit {
            let text = format!(
                "not fit for real time: {}; `rtorb check` explains what to change",
                finding.what
            );
            for part in indented(&text, ["", "  "], columns()) {
                note!("{part}");
            }
        }
    }
}

/// Prints which host runs the servers, and how they are scheduled.
fn print_agent(agent: &Agent) {
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
    note!(
        "servers run on the agent's host, {}: Linux {}, on {cpu} with {policy}",
        agent.address(),
        host.kernel_release
    );
    for finding in preflight::findings(host) {
        if finding.severity == preflight::Severity::Unfit {
            note!(
                "the agent's host is not fit for real time: {}",
                finding.what
            );
        }
    }
}

/// More runs would take a day even with quick effort.
const RUNS_MAX: i64 = 1_000;

#[cfg(test)]
mod tests {
    use rtorb_results::{Claim, LostRound, Series, Verdict, labels, synthetic};

    use super::*;
    use crate::run_summary::{short_verdicts, wrong_words};

    fn results(verdict: Verdict, is_excused: bool) -> Results {
        let mut claim = Claim::counted("orb/demux.x", "nothing is lost", 0.0, 0.0, "calls");
        claim.verdict = verdict;
        claim.excused = is_excused;
        Results {
            claims: vec![claim],
            ..synthetic::results("orb/demux", Vec::new())
        }
    }

    #[test]
    fn the_exit_status_says_what_the_screen_says() {
        let lost = LostRound {
            round: 0,
            what: "tcp".to_owned(),
            why: "the server is silent".to_owned(),
        };
        let of = labels([("orb", "rtorb".into()), ("transport", "tcp".into())]);
        let wrong = Series {
            wrong: 3,
            ..synthetic::series(of, [1])
        };
        let held = results(Verdict::Held, false);
        let missed = results(Verdict::Missed, false);
        let not_judged = results(Verdict::NotJudged, false);
        let not_measured = results(Verdict::NotMeasured, false);
        let excused = results(Verdict::NotMeasured, true);
        let mut with_lost = held.clone();
        with_lost.lost = vec![lost];
        let mut with_wrong = not_judged.clone();
        with_wrong.series = vec![wrong];
        let mut interrupted = held.clone();
        interrupted.complete = false;
        // What the screen says, whether the status is 0, and whether it is 0 with --no-fail.
        for (results, words, is_zero, if_only_looking) in [
            (held, "1 held", true, true),
            (missed, "1 MISSED", false, true),
            (not_judged, "1 not judged", true, true),
            (not_measured, "1 not measured", false, true),
            (excused, "1 not measured", true, true),
            (with_lost, "1 held, 1 LOST", false, true),
            (with_wrong, "1 not judged, WRONG answers", false, true),
            (interrupted, "1 held, interrupted", false, false),
        ] {
            assert_eq!(short_verdicts(&results), words);
            let sentences = wrong_words(&results);
            let is_said = sentences == ["orb/demux: rtorb tcp answered wrongly, 3 times."];
            assert_eq!(is_said, words.contains("WRONG"), "{sentences:?}");
            let run = MeasuredRun {
                results: vec![results],
                ..MeasuredRun::default()
            };
            let chosen = &experiments::ALL[..1];
            let good = [false, true].map(|only_looks| is_good(&[&run], chosen, only_looks));
            assert_eq!(good, [is_zero, if_only_looking], "{words}");
            // An experiment that failed has no results.
            assert!(!is_good(&[&run], &experiments::ALL[..2], true));
        }
    }
}
