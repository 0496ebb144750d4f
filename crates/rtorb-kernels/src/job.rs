//! What a guest is asked, and what it answers: one JSON object in its initramfs, and lines of JSON out of its debug port.

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
        /// The address of [`rtorb_os::replay::sample_taken`], which an instruction trace counts.
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
