//! `rtorb naming bind --from FILE`: binds many names, with progress and a summary.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use rtorb::Orb;
use rtorb_services::naming::client::{Context, Existing, Load, LoadReport, Progress};
use serde_json::json;

use crate::exit_status::FAILED;
use crate::named_file::unreadable;
use crate::output::{line, note, print_beside, print_json, warn};
use crate::reference;

/// A file of names, and what to do with them.
#[derive(Debug)]
pub(super) struct Loading {
    pub(super) file: PathBuf,
    pub(super) connections: usize,
    pub(super) existing: Existing,
    pub(super) makes_parents: bool,
    pub(super) as_json: bool,
}

impl Loading {
    pub(super) fn run(&self, orb: &Orb, context: &Context) -> anyhow::Result<ExitCode> {
        let input = open(&self.file)?;
        let on_terminal = std::io::stderr().is_terminal();
        let load = Load {
            connections: self.connections,
            existing: self.existing,
            makes_parents: self.makes_parents,
            report_every: if on_terminal {
                DRAWN_EVERY
            } else {
                PRINTED_EVERY
            },
        };
        let begun = Instant::now();
        let resolve = {
            let orb = orb.clone();
            move |text: &str| reference::object(&orb, text).map_err(|error| crate::text(&error))
        };
        let loaded = load.run(context, input, resolve, &mut |progress| {
            let text = so_far(progress, begun.elapsed());
            if on_terminal {
                print_beside(&format!("{REDRAW}{text}"))
            } else {
                note!("{text}")
            }
        })?;
        if on_terminal {
            print_beside(REDRAW);
        }
        self.print(&loaded, begun.elapsed())?;
        let is_done = loaded.progress.failed == 0 && loaded.stopped.is_none();
        Ok(if is_done {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }

    fn print(&self, loaded: &LoadReport, elapsed: Duration) -> anyhow::Result<()> {
        let file = if self.file == Path::new("-") {
            "standard input".to_owned()
        } else {
            self.file.display().to_string()
        };
        for not_bound in &loaded.not_bound {
            warn(format!("{file}:{}: {}", not_bound.line, not_bound.reason));
        }
        if loaded.progress.failed > loaded.not_bound.len() as u64 {
            warn(format!("{file}: only the first failures are listed"));
        }
        if let Some(stopped) = &loaded.stopped {
            warn(format!(
                "{file}:{}: {}; later lines were not read, and some lines near it may be bound",
                stopped.line, stopped.reason
            ));
        }
        let Progress { bound, failed } = loaded.progress;
        if !self.as_json {
            return line(so_far(loaded.progress, elapsed));
        }
        let failures: Vec<_> = loaded
            .not_bound
            .iter()
            .chain(&loaded.stopped)
            .map(|not_bound| json!({"line": not_bound.line, "reason": not_bound.reason}))
            .collect();
        print_json(&json!({
            "bound": bound,
            "failed": failed,
            "complete": loaded.stopped.is_none(),
            "seconds": elapsed.as_secs_f64(),
            "failures": failures,
        }))
    }
}

fn open(path: &Path) -> anyhow::Result<Box<dyn BufRead + Send>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let file = File::open(path).map_err(unreadable(path))?;
    Ok(Box::new(BufReader::new(file)))
}

fn so_far(Progress { bound, failed }: Progress, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    format!(
        "{bound} names bound, {failed} not, in {seconds:.1} s ({:.0}/s)",
        bound as f64 / seconds.max(f64::MIN_POSITIVE)
    )
}

/// Clears the line of a terminal, and goes back to its beginning.
const REDRAW: &str = "\r\x1b[K";
/// The interval of reports on a terminal, which redraws the line.
const DRAWN_EVERY: Duration = Duration::from_millis(200);
/// The interval of reports elsewhere, where each report adds a line.
const PRINTED_EVERY: Duration = Duration::from_secs(5);
