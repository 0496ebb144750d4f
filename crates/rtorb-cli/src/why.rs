//! `rtorb why`: says what made recorded calls late.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use rtorb_recording::Recording;
use rtorb_recording::joins::Joins;
use rtorb_recording::late::{Judged, LateCall, late_calls};
use rtorb_recording::limits::SystemBounds;
use rtorb_sched::model::{CheckOptions, rounded};
use rtorb_sched::times::parse_ns;

use crate::colour::Tone;
use crate::exit_status::FAILED;
use crate::named_file::check_readable;
use crate::orb_options::usage;
use crate::output::{columns, indented, line, line_in, printable};
use crate::system_options::PlatformOptions;

/// Say what made the late calls of a recording late (docs/how-to/late-calls.md).
///
/// A call is late if it took longer than --limit, or longer than the bound of its behaviour in the system's file, or ended with TIMEOUT, however
/// early, and has no such bound.
/// Prints what part of the call took too long: queue, preempted, execution, network, kernel or page_fault; or unknown, if the recording does
/// not say. Exit status 0: no call was late. 1: calls were late.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Why {
    /// Recordings that `rtorb trace` wrote, of one host or of several.
    #[arg(value_name = "RECORDING", required = true)]
    recordings: Vec<PathBuf>,
    /// File of the system whose behaviours these processes are (docs/reference/model.md).
    #[arg(long, value_name = "FILE", conflicts_with = "limit")]
    system: Option<PathBuf>,
    #[command(flatten)]
    platform: PlatformOptions,
    /// How long any call may take, such as 5ms.
    #[arg(long, value_name = "TIME", value_parser = parse_ns)]
    limit: Option<u64>,
    /// Print one JSON object a line for each late call: behaviour, late_by_ns, cause, evidence, and more.
    #[arg(long)]
    json: bool,
}

impl Why {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        let judged = self.judged()?;
        let mut recording = Recording::default();
        for path in &self.recordings {
            check_readable(path)?;
            recording.add(Recording::read(path).map_err(usage)?);
        }
        let joins = Joins::of(&recording);
        recording.align(&joins);
        let late = late_calls(&recording, &joins, &judged);
        for call in &late {
            if self.json {
                line(serde_json::to_string(call)?)?;
            } else {
                print(call)?;
            }
        }
        if !self.json {
            let calls = recording.places().count();
            line_in(
                if late.is_empty() {
                    Tone::Good
                } else {
                    Tone::Bad
                },
                format!("{} of {calls} recorded calls were late.", late.len()),
            )?;
        }
        Ok(if late.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }

    fn judged(&self) -> anyhow::Result<Judged> {
        let Some(file) = &self.system else {
            if self.platform.is_given() {
                return Err(usage("options of platforms are for the file of --system"));
            }
            return Ok(Judged::ByLimit(self.limit));
        };
        let system = self.platform.system(file)?;
        let platforms = self.platform.platforms(file, &system)?;
        let options = CheckOptions {
            sensitivity: false,
            ..CheckOptions::default()
        };
        let checked = rtorb_sched::model::check(&system, &platforms, &options)
            .map_err(|error| usage(format!("{}: {error}", file.display())))?;
        Ok(Judged::BySystem(SystemBounds::of(&system, &checked)))
    }
}

fn print(call: &LateCall) -> anyhow::Result<()> {
    let time = |ns: u64| rounded(ns as f64);
    let late = match call.late_by_ns {
        // The recording does not say when its servant ended.
        0 => format!("TIMEOUT after {}", time(call.response_ns)),
        late_by_ns => format!(
            "{} instead of {}, late by {}",
            time(call.response_ns),
            time(call.limit_ns),
            time(late_by_ns)
        ),
    };
    line(printable(&format!(
        "{} in {}: {late}. Cause: {}",
        call.behaviour, call.process, call.cause
    )))?;
    for evidence in &call.evidence {
        for text in indented(&printable(evidence), ["  * ", "    "], columns()) {
            line(text)?;
        }
    }
    line("")
}

const EXAMPLES: &str = "Examples:
  rtorb why plant.pftrace --limit 5ms
  rtorb why plant.pftrace --system plant.toml --profile profile.json --json";
