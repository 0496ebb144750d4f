//! `rtorb trace --on-miss`: waits for missed deadlines, and records what happened around them.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rtorb_os::termination::Termination;
use rtorb_os::user_signal::UserSignal;
use rtorb_recording::gathering::{DeadlineMiss, MissRecorder, WaitEnd, Wanted};
use rtorb_sched::model::rounded;

use super::{OutputFile, Trace, write};
use crate::exit_status::FAILED;
use crate::output::{line, note, printable, warn};

/// Why the wait is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopReason {
    /// A user wants a recording now.
    Requested,
    Interrupted,
    TimedOut,
}

impl Trace {
    /// Waits for missed deadlines, and records what happens around them.
    pub(super) fn wait_for_misses(
        &self,
        wanted: &Wanted,
        interrupted: &Termination,
    ) -> anyhow::Result<ExitCode> {
        let requested = UserSignal::watch()?;
        let first = self.path_of(1);
        let _file = OutputFile::open(&first)?;
        let mut recorder = MissRecorder::begin(wanted)?;
        let wait = WaitLine::begin(wanted.processes.len());
        let (mut written, mut on_request) = (0, 0);
        let why = loop {
            let ended = recorder.wait(|| {
                wait.show(written, self.misses.count);
                self.stop_reason(&wait, interrupted, &requested)
            });
            match ended {
                WaitEnd::Missed(missed) => {
                    wait.beside(|| print(&missed))?;
                    recorder.look_on(|| interrupted.has_come());
                    if let Some(before) = recorder.begun_before(&missed) {
                        wait.beside(|| warn(too_short(before)));
                    }
                    written += 1;
                    let path = self.path_of(written);
                    if written == self.misses.count {
                        drop(wait);
                        write(&recorder.into_recording(), &path, wanted.kernel)?;
                        return Ok(ExitCode::SUCCESS);
                    }
                    let recording = recorder.recording();
                    wait.beside(|| write(&recording, &path, wanted.kernel))?;
                }
                WaitEnd::Stopped(StopReason::Requested) => {
                    on_request += 1;
                    let path = beside(&self.out, &format!("signal-{on_request}"));
                    let recording = recorder.recording();
                    // The wait may have lasted for hours, and there may be room for the recording of a miss.
                    if let Err(error) = wait.beside(|| write(&recording, &path, wanted.kernel)) {
                        wait.beside(|| warn(format!("on SIGUSR1: {error:#}")));
                    }
                }
                WaitEnd::Stopped(StopReason::Interrupted) => break "interrupted",
                WaitEnd::Stopped(StopReason::TimedOut) => break "the timeout has passed",
                WaitEnd::ProcessesEnded => break "no process has a recorder any more",
            }
        };
        let waited = rounded(wait.begun.elapsed().as_nanos() as f64);
        drop(wait);
        warn(format!("{why} after {waited}: {}", self.outcome(written)));
        Ok(ExitCode::from(FAILED))
    }

    fn stop_reason(
        &self,
        wait: &WaitLine,
        interrupted: &Termination,
        requested: &UserSignal,
    ) -> Option<StopReason> {
        let timeout = self.misses.timeout;
        if interrupted.has_come() {
            Some(StopReason::Interrupted)
        } else if requested.came_since() {
            Some(StopReason::Requested)
        } else if timeout.is_some_and(|timeout| wait.begun.elapsed() >= timeout) {
            Some(StopReason::TimedOut)
        } else {
            None
        }
    }

    /// Returns the file of a recording, by its number from 1.
    fn path_of(&self, number: u32) -> PathBuf {
        if self.misses.count == 1 {
            self.out.clone()
        } else {
            beside(&self.out, &number.to_string())
        }
    }

    /// Says what was written before the wait ended too early.
    fn outcome(&self, written: u32) -> String {
        match written {
            0 => "no operation missed its deadline".to_owned(),
            written => format!("{written} of {} recordings are written", self.misses.count),
        }
    }
}

/// Says that the begin of a missed call is not in the recording.
fn too_short(before: Duration) -> String {
    let before = rounded(before.as_nanos() as f64);
    format!(
        "the missed call began {before} before the recording: take a longer --window, and start before such a call begins"
    )
}

fn print(missed: &[DeadlineMiss]) -> anyhow::Result<()> {
    let texts = missed.iter().map(|miss| printable(&miss.to_string()));
    let mut lines = texts.map(|text| line(format!("Deadline missed: {text}")));
    lines.try_for_each(|printed| printed)
}

/// Returns the path of a file beside another one, whose name has more before its extension.
fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push("-");
    name.push(more);
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The progress of the wait on standard error: a line that changes on a terminal, and one line elsewhere.
struct WaitLine {
    begun: Instant,
    bar: ProgressBar,
}

impl WaitLine {
    fn begin(processes: usize) -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(
            ProgressStyle::with_template("{spinner} {wide_msg}").expect("the template is constant"),
        );
        let processes = match processes {
            1 => "a process".to_owned(),
            processes => format!("{processes} processes"),
        };
        note!(
            "Waiting for a missed deadline in {processes}. Ctrl-C ends it; kill -USR1 {} writes what there is.",
            process::id()
        );
        Self {
            begun: Instant::now(),
            bar,
        }
    }

    /// Shows how long the wait takes. A terminal gets it some times a second, whatever the number of calls.
    fn show(&self, written: u32, count: u32) {
        if self.bar.is_hidden() {
            return;
        }
        let waited = Duration::from_secs(self.begun.elapsed().as_secs());
        self.bar
            .set_message(format!("{waited:?}, {written} of {count} recorded"));
        self.bar.tick();
    }

    /// Runs what prints other lines.
    fn beside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }
}

impl Drop for WaitLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stands_before_the_extension() {
        let names = [
            "late.pftrace",
            "a.b/late",
            "late.a.pftrace",
            "/x/late.pftrace",
        ];
        let found = names.map(|name| beside(Path::new(name), "2"));
        let expected = [
            "late-2.pftrace",
            "a.b/late-2",
            "late.a-2.pftrace",
            "/x/late-2.pftrace",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
    }
}
