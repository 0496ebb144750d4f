//! `rtorb lab kernel check` and `baseline`: compare a campaign with a baseline, for continuous integration.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use rtorb_kernels::baseline::{
    self, Baseline, BoundKey, Cause, Change, Checked, Growth, Measured, Sort,
};
use rtorb_kernels::campaign::{self, Request, Selection};
use rtorb_kernels::catalogue::{self, Kernel};
use rtorb_kernels::explain::BoundsRequest;
use rtorb_kernels::initramfs::OwnFile;
use rtorb_lab::LabError;
use rtorb_lab::experiments::own_program;
use rtorb_lab::processes::interrupt::Interrupt;
use serde_json::json;
use tempfile::TempDir;

use super::explain;
use super::run::{Fetching, Progress, cpus};
use crate::colour::Tone;
use crate::executable;
use crate::exit_status::FAILED;
use crate::output::{line, line_in, print_json, warn};

/// Fail if a real-time bound is worse than in the baseline.
///
/// Runs the baseline's campaign again, or takes an existing one, and compares the largest sample of every series over all seeds
/// with the baseline's. With the same kernels, emulator and programs, the numbers are the same to the last instruction, and any
/// difference fails. If one of these differs, the command says so, and a bound may be longer by the tolerance. For a worse bound
/// of your own program, it names the functions that take more instructions.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// Campaign that `rtorb lab kernel run` wrote. Without it, the baseline's campaign is run.
    #[arg(value_name = "DIR", conflicts_with_all = ["out", "kernel", "program", "own_program", "guests"])]
    folder: Option<PathBuf>,
    /// Baseline file that `rtorb lab kernel baseline` wrote.
    #[arg(long, value_name = "FILE")]
    baseline: PathBuf,
    /// Accept the measured bounds: write them to the baseline file.
    #[arg(long)]
    update: bool,
    /// Percentage by which a bound may be longer if kernel, emulator or programs differ from the baseline's.
    #[arg(long, value_name = "PERCENT", default_value_t = TOLERANCE_PERCENT, value_parser = percent)]
    tolerance: f64,
    /// Print the findings as one JSON object.
    #[arg(long)]
    json: bool,
    /// Folder that keeps the campaign, so that a worse bound can be explained.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Kernels instead of the baseline's, under its names: `6.12` for the newest of them, or `6.12=./bzImage`.
    #[arg(long, value_name = "KERNEL", value_delimiter = ',')]
    kernel: Vec<String>,
    /// Statically linked rtorb for the guests [default: this program, or target/static/rtorb].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Your own statically linked program for the baseline's experiment program/NAME.
    #[arg(long, value_name = "NAME=FILE")]
    own_program: Vec<OwnFile>,
    /// Number of guests that run side by side [default: the number of CPUs of the host].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    guests: Option<u16>,
}

/// Write the real-time bounds of a campaign to a file, for `rtorb lab kernel check`.
#[derive(Debug, Args)]
pub(super) struct WriteBaseline {
    /// Campaign that `rtorb lab kernel run` wrote.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Baseline file to write. Keep it with the code.
    #[arg(long, value_name = "FILE")]
    baseline: PathBuf,
}

impl WriteBaseline {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let measured = Measured::read(&self.folder)?;
        let baseline = &measured.baseline;
        baseline.write(&self.baseline)?;
        line(format!(
            "{}: {} bounds of {} kernels",
            self.baseline.display(),
            baseline.count(),
            baseline.plan.kernels.len()
        ))?;
        warn_without_functions(&measured);
        Ok(ExitCode::SUCCESS)
    }
}

impl Check {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let baseline = Baseline::read(&self.baseline)?;
        let temporary =
            TempDir::with_prefix("rtorb-check-").context("cannot make a temporary folder")?;
        let (folder, measured) = match (&self.folder, &self.out) {
            (Some(folder), _) => (folder.clone(), Measured::read(folder)?),
            (None, out) => {
                let folder = out.clone().unwrap_or_else(|| temporary.path().to_owned());
                let measured = self.measure(&baseline, &folder)?;
                (folder, measured)
            }
        };
        let checked = baseline::check(&baseline, &measured, self.tolerance);
        if self.update {
            measured.baseline.write(&self.baseline)?;
            warn_without_functions(&measured);
        }
        if self.json {
            print_json(&json!({
                "passes": checked.passes(),
                "updated": self.update,
                "checked": checked,
            }))?
        } else {
            self.print(&checked, self.is_kept().then_some(&*folder))?
        }
        Ok(if checked.passes() || self.update {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }

    /// Returns true if the campaign's folder is kept.
    fn is_kept(&self) -> bool {
        self.folder.is_some() || self.out.is_some()
    }

    /// Runs the campaign, and explains the bounds of the user's own programs that are worse; all of them for a new baseline.
    fn measure(&self, baseline: &Baseline, folder: &Path) -> anyhow::Result<Measured> {
        let interrupt = Interrupt::on_signals().context("cannot listen to signals")?;
        let executable = executable::own()?;
        let selection = Selection {
            boots: baseline.plan.boots.clone(),
            full: baseline.plan.full,
            ..Selection::default()
        };
        let program = self.program.as_deref();
        catalogue::check_names(&self.kernel)?;
        let names = self.names(baseline);
        campaign::check_needs(&names, &selection, program, &executable, &interrupt)?;
        let request = Request {
            kernels: self.kernels(baseline, &interrupt)?,
            preempt: baseline.plan.preempt.clone(),
            machine: baseline.plan.machine,
            selection,
            seeds: baseline.plan.seeds,
            guests: self.guests.map_or_else(cpus, usize::from),
            program: self.program.clone(),
            own_programs: self.own_program.clone(),
            folder: folder.to_owned(),
        };
        let mut progress = Progress::new();
        let finished = campaign::run(&request, &executable, &interrupt, &mut progress);
        progress.finish();
        let record = finished?.record;
        if interrupt.requested() {
            return Err(LabError::Interrupted.into());
        }
        for one in &record.missing {
            warn(format!(
                "{} {} load {} {}: {}",
                one.kernel, one.preempt, one.load, one.experiment, one.why
            ));
        }
        let measured = Measured::read(folder)?;
        self.with_functions(baseline, folder, measured, &interrupt)
    }

    fn with_functions(
        &self,
        baseline: &Baseline,
        folder: &Path,
        measured: Measured,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Measured> {
        let mut wanted = measured.without_functions();
        if !self.update {
            let checked = baseline::check(baseline, &measured, self.tolerance);
            let worse = checked.changes.iter();
            let worse = worse.filter(|change| change.sort == Sort::Worse);
            let worse: BTreeSet<BoundKey> = worse.map(Change::bound).collect();
            wanted.retain(|bound| worse.contains(bound));
        }
        if wanted.is_empty() {
            return Ok(measured);
        }
        let request = BoundsRequest {
            folder: folder.to_owned(),
            program: self.program.clone(),
            own_programs: self.own_program.clone(),
            only: Some(wanted.clone()),
        };
        let explained = explain::bounds(&request, interrupt);
        let mut measured = Measured::read(folder)?;
        let unexplained = match explained.map_err(anyhow::Error::downcast::<LabError>) {
            Ok(explained) => explained
                .into_iter()
                .filter_map(|(bound, found)| Some((bound, found.err()?.to_string())))
                .collect(),
            Err(Ok(LabError::Incomplete { what })) => {
                let each = wanted.into_iter();
                each.map(|bound| (bound, what.clone())).collect::<Vec<_>>()
            }
            Err(Ok(error)) => return Err(error.into()),
            Err(Err(error)) => return Err(error),
        };
        for (bound, why) in unexplained {
            measured.note_unexplained(bound, why);
        }
        Ok(measured)
    }

    /// Returns the names of the kernels. Those of a baseline may be of images that this host does not have.
    fn names(&self, baseline: &Baseline) -> Vec<String> {
        if self.kernel.is_empty() {
            let planned = baseline.plan.kernels.iter();
            planned.map(|kernel| kernel.name.clone()).collect()
        } else {
            self.kernel.clone()
        }
    }

    /// Returns the kernels of the baseline by their releases; if a release is no longer available, the newest kernel of its
    /// name.
    fn kernels(&self, baseline: &Baseline, interrupt: &Interrupt) -> anyhow::Result<Vec<Kernel>> {
        let mut fetching = Fetching::default();
        if !self.kernel.is_empty() {
            return Ok(catalogue::ensure(&self.kernel, &mut fetching, interrupt)?);
        }
        let mut kernels = Vec::new();
        for planned in &baseline.plan.kernels {
            let mut ensure =
                |name: &str| catalogue::ensure(&[name.to_owned()], &mut fetching, interrupt);
            let found = match ensure(&planned.release) {
                Err(LabError::Incomplete { .. }) => {
                    warn(format!(
                        "{} is no longer available; using the newest {}. `--kernel {}=FILE` selects an image",
                        planned.release, planned.name, planned.name
                    ));
                    ensure(&planned.name)?
                }
                found => found?,
            };
            kernels.extend(found.into_iter().map(|kernel| Kernel {
                name: planned.name.clone(),
                ..kernel
            }));
        }
        Ok(kernels)
    }

    fn print(&self, checked: &Checked, kept: Option<&Path>) -> anyhow::Result<()> {
        if checked.same_experiment {
            line(
                "Kernels, emulator and programs are those of the baseline: no number may differ.",
            )?;
        } else {
            line(format!(
                "Kernels, emulator or programs differ from the baseline's: a bound may be longer by {} %, or by {} instructions if that is more.",
                checked.tolerance_percent, checked.tolerance_instructions
            ))?;
            for difference in &checked.differences {
                line(format!("  {difference}"))?;
            }
        }
        for change in &checked.changes {
            line(change_line(change))?;
            cause_lines(change).into_iter().try_for_each(line)?;
        }
        line(format!(
            "{} bounds are unchanged, {} are not.",
            checked.equal,
            checked.changes.len()
        ))?;
        let file = self.baseline.display();
        if self.update {
            return line(format!("{file} was updated."));
        }
        if checked.passes() {
            return line_in(Tone::Good, "Passed.");
        }
        line_in(Tone::Bad, "FAILED.")?;
        if let Some(explain) = how_to_explain(checked, kept) {
            line(format!("  To see where the time is spent: {explain}."))?;
        }
        line(format!(
            "  To accept: `rtorb lab kernel check --baseline {file} --update` with the same options, and commit the file."
        ))
    }
}

fn warn_without_functions(measured: &Measured) {
    let unexplained = measured.without_functions().len();
    if unexplained > 0 {
        warn(format!(
            "{unexplained} bounds of your own programs have no explanation: a check cannot name the functions of a longer one. \
             `rtorb lab kernel run`, without `--explain none`, says why"
        ));
    }
}

/// Returns the command that explains the first worse bound of the laboratory's own experiments. Those of a user's own program are
/// explained already.
fn how_to_explain(checked: &Checked, kept: Option<&Path>) -> Option<String> {
    let is_ours = |change: &&Change| {
        change.sort == Sort::Worse && !change.experiment.starts_with(own_program::PREFIX)
    };
    let change = checked.changes.iter().find(is_ours)?;
    let of = format!(
        "--system {} --experiment {}",
        change.system, change.experiment
    );
    Some(match kept {
        Some(folder) => format!("`rtorb lab kernel explain {} {of}`", folder.display()),
        None => {
            format!("run it again with `--out DIR`, and `rtorb lab kernel explain DIR {of}`")
        }
    })
}

/// Formats `WORSE  6.12-voluntary os/wakeup load=tmpfs: was 1199303, is 1310385 (+9.3 %), seed 2`.
fn change_line(change: &Change) -> String {
    let word = match change.sort {
        Sort::Worse => "WORSE",
        Sort::Missing => "MISSING",
        Sort::Differs => "DIFFERS",
        Sort::LongerWithinTolerance => "longer",
        Sort::Better => "better",
        Sort::New => "new",
    };
    let value =
        |value: Option<u64>| value.map_or_else(|| "nothing".to_owned(), |ns| ns.to_string());
    let percent = change
        .percent()
        .map(|percent| format!(" ({percent:+.1} %)"));
    let seed = change.seed.map(|seed| format!(", seed {seed}"));
    format!(
        "{word:>8}  {} {} {}: was {}, is {} guest instructions{}{}",
        change.system,
        change.experiment,
        change.series,
        value(change.was),
        value(change.is),
        percent.unwrap_or_default(),
        seed.unwrap_or_default()
    )
}

/// Formats `function compute_setpoint: was 0, is 120004`, one line for each function that grew; or why none can be named.
fn cause_lines(change: &Change) -> Vec<String> {
    let lines: Vec<String> = match &change.cause {
        None => Vec::new(),
        Some(Cause::Functions(grown)) if grown.is_empty() => vec![SLEPT.to_owned()],
        Some(Cause::Functions(grown)) => grown
            .iter()
            .map(|Growth { function, was, is }| format!("function {function}: was {was}, is {is}"))
            .collect(),
        Some(Cause::Unknown(why)) => vec![format!("no function can be named: {why}")],
    };
    let indented = lines.iter().map(|line| format!("{:>10}{line}", ""));
    indented.collect()
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("it must be a percentage of 0 or more, such as 50".to_owned()),
    }
}

const SLEPT: &str =
    "no function takes more instructions than in the baseline: the CPU slept longer";
/// The worst wake-up over four seeds was up to 29 % longer than in another variant of the same program: docs/how-to/kernels.md.
const TOLERANCE_PERCENT: f64 = 50.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_a_worse_bound_stand_its_functions_or_why_none_is_named() {
        let change = |cause| Change {
            sort: Sort::Worse,
            system: "6.12-rt-lazy".to_owned(),
            experiment: "program/loop".to_owned(),
            series: "load=none".to_owned(),
            was: Some(6_259),
            is: Some(126_941),
            seed: Some(4),
            cause,
        };
        let grown = |function: &str, was, is| Growth {
            function: function.to_owned(),
            was,
            is,
        };
        let lines = |cause| {
            let lines = cause_lines(&change(cause));
            let within = lines.iter().map(|line| line.trim_start().to_owned());
            within.collect::<Vec<_>>()
        };
        let both = vec![grown("step", 0, 120_006), grown("log", 5, 90_000)];
        assert_eq!(
            lines(Some(Cause::Functions(both))),
            [
                "function step: was 0, is 120006",
                "function log: was 5, is 90000"
            ]
        );
        let unknown = Cause::Unknown("it is stripped".to_owned());
        assert_eq!(
            lines(Some(unknown)),
            ["no function can be named: it is stripped"]
        );
        assert_eq!(lines(Some(Cause::Functions(Vec::new()))), [SLEPT]);
        assert!(lines(None).is_empty());
    }
}
