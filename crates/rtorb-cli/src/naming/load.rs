//! `rtorb naming bind --from FILE`: how far it is, and how it ended.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressDrawTarget};
use rtorb::Orb;
use rtorb_services::naming::client::{Context, Existing, Load, LoadReport, Progress};
use serde_json::json;

use crate::NO;
use crate::output::{line, print_json};
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
            report_every: if on_terminal { DRAWN_EVERY } else { TOLD_EVERY },
        };
        let bar = ProgressBar::with_draw_target(
            None,
            match on_terminal {
                true => ProgressDrawTarget::stderr(),
                false => ProgressDrawTarget::hidden(),
            },
        );
        let begun = Instant::now();
        let meant = {
            let orb = orb.clone();
            move |text: &str| reference::object(&orb, text).map_err(|error| crate::text(&error))
        };
        let loaded = load.run(context, input, meant, &mut |progress| {
            let text = so_far(progress, begun.elapsed());
            match on_terminal {
                true => {
                    bar.set_message(text);
                    bar.tick();
                }
                false => eprintln!("{text}"),
            }
        })?;
        bar.finish_and_clear();
        self.print(&loaded, begun.elapsed())?;
        let is_done = loaded.progress.failed == 0 && loaded.stopped.is_none();
        Ok(if is_done {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(NO)
        })
    }

    fn print(&self, loaded: &LoadReport, elapsed: Duration) -> anyhow::Result<()> {
        let file = match self.file == Path::new("-") {
            true => "standard input".to_owned(),
            false => self.file.display().to_string(),
        };
        for not_bound in &loaded.not_bound {
            eprintln!("rtorb: {file}:{}: {}", not_bound.line, not_bound.reason);
        }
        if loaded.progress.failed > loaded.not_bound.len() as u64 {
            eprintln!("rtorb: {file}: only the first failures are told");
        }
        if let Some(stopped) = &loaded.stopped {
            eprintln!(
                "rtorb: {file}:{}: {}; the lines behind it were not read, and of those beside it some may be bound",
                stopped.line, stopped.reason
            );
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
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Box::new(BufReader::new(file)))
}

fn so_far(Progress { bound, failed }: Progress, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    format!(
        "{bound} names bound, {failed} not, in {seconds:.1} s ({:.0}/s)",
        bound as f64 / seconds.max(f64::MIN_POSITIVE)
    )
}

/// On a terminal, where a line is drawn over.
const DRAWN_EVERY: Duration = Duration::from_millis(200);
/// Elsewhere, where a line is one more.
const TOLD_EVERY: Duration = Duration::from_secs(5);
