//! What a guest is asked, and what it answers: one JSON object in its initramfs, and lines of JSON out of its debug port.

use rtorb_lab::experiments::by_name;
use rtorb_results::Results;
use serde::{Deserialize, Serialize};

/// What one boot does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "snake_case")]
pub enum Job {
    /// Runs experiments one after another under one load.
    Measure {
        /// Their names, in the order in which they are run.
        experiments: Vec<String>,
        /// As [`rtorb_lab::processes::load::Load`] is written.
        load: String,
        /// How many seeds: 1 and up.
        seeds: u16,
        /// The published sample counts and levels; otherwise a look.
        #[serde(default)]
        full: bool,
    },
    /// Answers the kernel's symbols.
    Symbols,
}

impl Job {
    /// Whether one of its experiments needs modules of the kernel.
    pub(super) fn needs_modules(&self) -> bool {
        matches!(self, Self::Measure { experiments, .. } if need_modules(experiments))
    }
}

/// Whether one of the experiments of these names needs modules of the kernel.
pub(super) fn need_modules(experiments: &[String]) -> bool {
    let mut known = experiments.iter().filter_map(|name| by_name(name).ok());
    known.any(|experiment| !experiment.modules().is_empty())
}

/// What a guest says, in this order: `Booted`; for each experiment `Begins`, then `Measured` or `Failed`; `End`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The guest runs.
    Booted {
        /// `uname -r`.
        release: String,
        /// The preemption model that its kernel runs: `none`, `voluntary`, `full`, `lazy`.
        preempt: String,
        /// The address of [`rtorb_instruments::replay::sample_taken`], which an instruction trace counts.
        sample_taken: u64,
    },
    /// An experiment begins.
    Begins {
        /// Its name.
        experiment: String,
    },
    /// What an experiment found.
    Measured(Box<Results>),
    /// An experiment could not be run.
    Failed {
        /// Its name.
        experiment: String,
        /// Why.
        why: String,
    },
    /// The lines of /proc/kallsyms that are functions.
    Symbols(String),
    /// Nothing more is to come.
    End,
}
