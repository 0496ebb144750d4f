//! How far a run is: a bar on a terminal, plain lines elsewhere. It is drawn between bursts only, by no thread of its own.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rtorb_lab::experiment::Progress;

/// Reports the progress of one experiment on standard error.
#[derive(Debug)]
pub(crate) struct Report {
    name: String,
    bar: ProgressBar,
    on_terminal: bool,
    steps: usize,
    done: usize,
}

impl Report {
    /// For the experiment of this name.
    pub(crate) fn new(name: &str) -> Self {
        let on_terminal = std::io::stderr().is_terminal();
        let target = if on_terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        Self {
            name: name.to_owned(),
            bar,
            on_terminal,
            steps: 0,
            done: 0,
        }
    }

    /// Leaves the terminal as it was.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Report {
    fn begin(&mut self, steps: usize) {
        self.steps = steps;
        self.bar.set_length(steps as u64);
        let style =
            ProgressStyle::with_template("{prefix} [{bar:30}] {percent}% {eta} left: {wide_msg}");
        self.bar.set_style(
            style
                .expect("the template is a constant")
                .progress_chars("=> "),
        );
        self.bar.set_prefix(self.name.clone());
    }

    fn step(&mut self, next: &str) {
        self.done += 1;
        self.bar.set_message(next.to_owned());
        self.bar.inc(1);
        let tenths = |done: usize| done * 10 / self.steps.max(1);
        if !self.on_terminal && tenths(self.done) > tenths(self.done - 1) {
            eprintln!(
                "{}: {} % ({next})",
                self.name,
                self.done * 100 / self.steps.max(1)
            );
        }
    }

    fn note(&mut self, text: &str) {
        match self.on_terminal {
            true => self.bar.println(text),
            false => eprintln!("{}: {text}", self.name),
        }
    }
}
