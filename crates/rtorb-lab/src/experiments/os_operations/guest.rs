//! What a guest that is no Linux measured of itself, as results of this experiment.

use rtorb_host::Host;
use rtorb_results::cells::Cells;
use rtorb_results::{ObtainedScheduling, Results, labels};

use super::computed::in_yields;
use super::{NAME, REPRODUCES, TITLE};
use crate::effort::Effort;
use crate::experiment::IN_INSTRUCTIONS;

/// What a guest said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What its kernel calls itself.
    pub release: String,
    /// How its kernel chooses the task that runs: `priority`, `ceiling`.
    pub preempt: String,
    /// The instruction set, as the label `instructions` has it.
    pub instructions: String,
    /// The samples of each operation in each round.
    pub samples: Vec<Samples>,
    /// Operations that its kernel does not have, and why.
    pub without: Vec<(String, String)>,
}

/// Samples of an operation in a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Samples {
    /// Which round, from 0.
    pub round: usize,
    /// Which operation.
    pub operation: String,
    /// In instructions.
    pub instructions: Vec<u64>,
}

impl Answer {
    /// The results of `kernel`, which were measured in so many rounds.
    #[must_use]
    pub fn results(&self, kernel: &str, rounds: u16) -> Results {
        let mut cells = Cells::default();
        for samples in &self.samples {
            let of = labels([
                ("operation", samples.operation.clone().into()),
                ("instructions", self.instructions.clone().into()),
            ]);
            cells.add(&of, samples.round, &samples.instructions, 0);
        }
        let real_time = labels([("real_time", true.into())]);
        let mut series = cells.series(&real_time);
        series.extend(in_yields(&cells).series(&real_time));
        let host = Host::of_guest(&self.release, &self.instructions, &self.preempt);
        let effort = Effort::Emulated {
            seeds: rounds,
            full: false,
        };
        Results {
            reproduces: REPRODUCES.to_owned(),
            started: STARTED.to_owned(),
            complete: true,
            parameters: labels([
                ("effort", effort.name().into()),
                ("rounds", u32::from(rounds).into()),
            ]),
            scheduling: vec![ObtainedScheduling {
                process: kernel.to_owned(),
                threads: 1,
                policy: self.preempt.clone(),
                priority: 0,
                cpus: "0".to_owned(),
                real_time: true,
            }],
            series,
            columns: vec!["instructions".to_owned()],
            notes: self.notes(),
            ..Results::of(NAME.to_owned(), TITLE.to_owned(), host)
        }
    }

    fn notes(&self) -> Vec<String> {
        let without = self.without.iter();
        let without = without.map(|(operation, why)| format!("There is no {operation}: {why}."));
        let mut notes = vec![
            IN_INSTRUCTIONS.to_owned(),
            format!(
                "A sample of {} instructions is the mean of 40 executions; of a wake-up, it is one, seen by a clock of 40 instructions.",
                self.instructions
            ),
        ];
        notes.extend(without);
        notes
    }
}

/// When the clock of every guest starts.
const STARTED: &str = "2024-01-01T00:00:00Z";
