//! The colours of errors and verdicts on a terminal. There are none in a pipe, in JSON, or if NO_COLOR is set.

use std::io::{self, IsTerminal as _};

use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::{AnsiColor, Style};

/// What a text means to its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// All is as it should be.
    Good,
    /// Something is open, or can be better.
    Doubt,
    /// Something failed.
    Bad,
    /// Nothing of these.
    Plain,
}

impl Tone {
    /// Returns the tone of a verdict, as tables and lists have it.
    pub(crate) fn of(verdict: &str) -> Self {
        match verdict {
            "held" | "holds" | "meets" | "within" => Self::Good,
            "not judged" | "not measured" | "NOT PROVEN" | "not proven" | "meets if preempted"
            | "host took more" | "MISSING" => Self::Doubt,
            "MISSED" | "MISSES" | "misses" | "UNEXPLAINED" | "LOST" | "DIFFERS" | "never runs" => {
                Self::Bad
            }
            _ => Self::Plain,
        }
    }

    /// Returns the tone of a yes or no.
    #[cfg(feature = "laboratory")]
    pub(crate) fn of_answer(is_good: bool) -> Self {
        if is_good { Self::Good } else { Self::Bad }
    }

    /// Returns the text with its colour. A stream of `anstream` removes it where it does not belong.
    pub(crate) fn paint(self, text: &str) -> String {
        let style = match self.colour() {
            Some(colour) => colour.on_default().bold(),
            None => Style::new(),
        };
        format!("{style}{text}{style:#}")
    }

    /// Returns the colour, if there is one.
    pub(crate) fn colour(self) -> Option<AnsiColor> {
        match self {
            Self::Good => Some(AnsiColor::Green),
            Self::Doubt => Some(AnsiColor::Yellow),
            Self::Bad => Some(AnsiColor::Red),
            Self::Plain => None,
        }
    }
}

/// Returns true if standard output takes colours.
pub(crate) fn on_stdout() -> bool {
    let stdout = io::stdout();
    stdout.is_terminal() && AutoStream::choice(&stdout) != ColorChoice::Never
}

/// Returns true if standard error takes colours.
pub(crate) fn on_stderr() -> bool {
    let stderr = io::stderr();
    stderr.is_terminal() && AutoStream::choice(&stderr) != ColorChoice::Never
}
