//! `rtorb lab kernel check` and `baseline`: the gate, for continuous integration.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;
use rtorb_lab::LabError;
use rtorb_lab::experiments::own_program;
use rtorb_lab::kernels::baseline::{self, Baseline, Change, Checked, Measured, Sort};
use rtorb_lab::kernels::campaign::{self, Request, Selection};
use rtorb_lab::kernels::catalogue::{self, Kernel};
use rtorb_lab::kernels::initramfs::OwnFile;
use rtorb_lab::processes::interrupt::Interrupt;
use serde_json::json;
use tempfile::TempDir;

use super::run::{Fetching, Progress, cpus};
use crate::NO;
use crate::executable;
use crate::output::{line, print_json};

/// Fail when a real-time bound got worse than it was written down.
///
/// Runs the baseline's campaign again, or takes one that was run, and sets the largest sample of every series over all seeds
/// beside the baseline's. With the same kernels, emulator and programs, the numbers are the same to the last instruction, and
/// any difference fails. Where one of them differs it is a different experiment: that is said, and a bound may be longer by
/// the tolerance.
#[derive(Debug, Args)]
pub(super) struct Check {
    /// A campaign that `rtorb lab kernel run` wrote; without it, the baseline's campaign is run.
    #[arg(value_name = "DIR", conflicts_with_all = ["out", "kernel", "program", "own_program", "guests"])]
    folder: Option<PathBuf>,
    /// The file that `rtorb lab kernel baseline` wrote.
    #[arg(long, value_name = "FILE")]
    baseline: PathBuf,
    /// Accept: write what was measured into the file.
    #[arg(long)]
    update: bool,
    /// By how many per cent a bound may be longer when kernel, emulator or programs are not those of the baseline.
    #[arg(long, value_name = "PERCENT", default_value_t = TOLERANCE_PERCENT, value_parser = percent)]
    tolerance: f64,
    /// Print what was found as one JSON object.
    #[arg(long)]
    json: bool,
    /// Keep the campaign in this folder, to explain a bound that got worse.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Other kernels than the baseline's, under its names: `6.12` for the newest of them, or `6.12=./bzImage`.
    #[arg(long, value_name = "KERNEL", value_delimiter = ',')]
    kernel: Vec<String>,
    /// The guests' program, a statically linked rtorb; without it, this one, or target/static/rtorb.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// A program of your own, statically linked, that the baseline's experiment program/NAME runs.
    #[arg(long, value_name = "NAME=FILE")]
    own_program: Vec<OwnFile>,
    /// How many guests run side by side; without it, as many as the host has CPUs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    guests: Option<u16>,
}

/// Write down the real-time bounds of a campaign, for `rtorb lab kernel check`.
#[derive(Debug, Args)]
pub(super) struct WriteBaseline {
    /// A campaign that `rtorb lab kernel run` wrote.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The file to write, which belongs beside the code.
    #[arg(long, value_name = "FILE")]
    baseline: PathBuf,
}

impl WriteBaseline {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let measured = Measured::read(&self.folder)?.baseline;
        measured.write(&self.baseline)?;
        line(format!(
            "{}: {} bounds of {} kernels",
            self.baseline.display(),
            measured.count(),
            measured.plan.kernels.len()
        ))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Check {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let baseline = Baseline::read(&self.baseline)?;
        let temporary = TempDir::with_prefix("rtorb-check-")
            .context("no folder for temporary files can be made")?;
        let folder = match (&self.folder, &self.out) {
            (Some(folder), _) => folder.clone(),
            (None, out) => {
                let folder = out.clone().unwrap_or_else(|| temporary.path().to_owned());
                self.measure(&baseline, &folder)?;
                folder
            }
        };
        let measured = Measured::read(&folder)?;
        let checked = baseline::check(&baseline, &measured, self.tolerance);
        if self.update {
            measured.baseline.write(&self.baseline)?;
        }
        match self.json {
            true => print_json(&json!({
                "passes": checked.passes(),
                "updated": self.update,
                "checked": checked,
            }))?,
            false => self.print(&checked, self.is_kept().then_some(&*folder))?,
        }
        Ok(match checked.passes() || self.update {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(NO),
        })
    }

    /// Whether the campaign can be looked at afterwards.
    fn is_kept(&self) -> bool {
        self.folder.is_some() || self.out.is_some()
    }

    fn measure(&self, baseline: &Baseline, folder: &Path) -> anyhow::Result<()> {
        let interrupt = Interrupt::on_signals().context("cannot listen to signals")?;
        let request = Request {
            kernels: self.kernels(baseline, &interrupt)?,
            preempt: baseline.plan.preempt.clone(),
            selection: Selection {
                boots: baseline.plan.boots.clone(),
                ..Selection::default()
            },
            seeds: baseline.plan.seeds,
            guests: self.guests.map_or_else(cpus, usize::from),
            program: self.program.clone(),
            own_programs: self.own_program.clone(),
            folder: folder.to_owned(),
        };
        let mut progress = Progress::new();
        let finished = campaign::run(&request, &executable::own()?, &interrupt, &mut progress);
        progress.finish();
        let record = finished?.record;
        if interrupt.requested() {
            return Err(LabError::Interrupted.into());
        }
        for one in &record.missing {
            eprintln!(
                "rtorb: {} {} load {} {}: {}",
                one.kernel, one.preempt, one.load, one.experiment, one.why
            );
        }
        Ok(())
    }

    /// Those of the baseline by their releases, as long as they are to be had; otherwise the newest of their names.
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
                    eprintln!(
                        "rtorb: {} is no longer to be had: the newest {} is taken. `--kernel {}=FILE` names an image",
                        planned.release, planned.name, planned.name
                    );
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
            line("The same experiment as the baseline's: no number may differ.")?;
        } else {
            line(format!(
                "A different experiment than the baseline's: a bound may be longer by {} %, or by {} instructions where that is more.",
                checked.tolerance_percent, checked.tolerance_instructions
            ))?;
            for difference in &checked.differences {
                line(format!("  {difference}"))?;
            }
        }
        for change in &checked.changes {
            line(told(change))?;
        }
        line(format!(
            "{} bounds as they were, {} not.",
            checked.equal,
            checked.changes.len()
        ))?;
        let file = self.baseline.display();
        if self.update {
            return line(format!("{file} was written anew."));
        }
        if checked.passes() {
            return line("Passed.");
        }
        line("FAILED.")?;
        if let Some(explain) = how_to_explain(checked, kept) {
            line(format!("  What the time is spent in: {explain}."))?;
        }
        line(format!(
            "  To accept: `rtorb lab kernel check --baseline {file} --update` with the same options, and commit the file."
        ))
    }
}

/// Of the first bound that got worse and whose samples are marked; those of a program of the user's own are not.
fn how_to_explain(checked: &Checked, kept: Option<&Path>) -> Option<String> {
    let is_marked = |change: &&Change| {
        change.sort == Sort::Worse && !change.experiment.starts_with(own_program::PREFIX)
    };
    let change = checked.changes.iter().find(is_marked)?;
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

/// `WORSE  6.12-voluntary os/wakeup load=tmpfs: was 1199303, is 1310385 (+9.3 %), seed 2`.
fn told(change: &Change) -> String {
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

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("it must be a number of per cent, 0 or more, such as 50".to_owned()),
    }
}

/// The worst wake-up over four seeds was up to 29 % longer than in another variant of the same program: docs/kernels.md.
const TOLERANCE_PERCENT: f64 = 50.0;
