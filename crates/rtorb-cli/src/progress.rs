//! The progress of a run: a bar on a terminal, plain lines elsewhere. It is drawn between bursts only, and needs no thread.

use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rtorb_lab::experiment::Progress;

use crate::output::note;

/// Reports the progress of one experiment on standard error. When it is dropped, the experiment has ended.
#[derive(Debug)]
pub(crate) struct Report {
    name: String,
    begun: Instant,
    bar: ProgressBar,
    on_terminal: bool,
    steps: usize,
    done: usize,
}

impl Report {
    /// Begins the report of experiment `number` of `count`.
    pub(crate) fn new(name: &str, number: usize, count: usize) -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        let target = if on_terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let name = match count {
            1 => name.to_owned(),
            _ => format!("[{number}/{count}] {name}"),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style("{prefix}: {wide_msg}"));
        bar.set_prefix(name.clone());
        bar.set_message("starts");
        bar.tick();
        if !on_terminal {
            note!("{name}: starts");
        }
        Self {
            name,
            begun: Instant::now(),
            bar,
            on_terminal,
            steps: 0,
            done: 0,
        }
    }
}

impl Drop for Report {
    /// Prints one line: the name, and how long the experiment took.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        note!("{}: {:.0} s", self.name, self.begun.elapsed().as_secs_f64());
    }
}

impl Progress for Report {
    fn begin(&mut self, steps: usize) {
        self.steps = steps;
        self.bar.set_length(steps as u64);
        self.bar.set_style(style(
            "{prefix} [{bar:24}] {percent}% {eta} left: {wide_msg}",
        ));
    }

    fn step(&mut self, next: &str) {
        self.done += 1;
        self.bar.set_message(next.to_owned());
        self.bar.inc(1);
        let tenths = |done: usize| done * 10 / self.steps.max(1);
        if !self.on_terminal && tenths(self.done) > tenths(self.done - 1) {
            note!(
                "{}: {} % ({next})",
                self.name,
                self.done * 100 / self.steps.max(1)
            );
        }
    }

    fn note(&mut self, text: &str) {
        if self.on_terminal {
            self.bar.println(text)
        } else {
            note!("{}: {text}", self.name)
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the templates are constants")
        .progress_chars("=> ")
}
