//! A study: an experiment as one description, most of it data.
//!
//! The description has the factors with their levels, the amounts, the subject, and what follows from the cells. The engine
//! here owns the rest: rounds, rotation, seeds, interrupts, progress, marks, lost rounds, and the scheduling that was obtained.

use rtorb_results::cells::Cells;
use rtorb_results::profile::ServiceRow;
use rtorb_results::statements::Statements;
use rtorb_results::systems::Gathered;
use rtorb_results::{Labels, ObtainedScheduling, Plot, Results, TableView};

use crate::error::LabError;
use crate::experiment::{Context, Effort, Emulated, Parameters};
use crate::processes::probe::Answer;
pub(crate) use factors::Amounts;
pub use factors::{ByEffort, Cell, Factor, Value};

mod engine;
mod factors;

/// An experiment whose subject is measured under each combination of levels.
#[derive(Debug)]
pub struct Study<S> {
    /// The name by which it is run: `os/services`.
    pub(crate) name: &'static str,
    /// What it shows, in a line.
    pub(crate) title: &'static str,
    /// The published table or figure that it repeats.
    pub(crate) reproduces: &'static str,
    /// Rounds, and samples of a cell in a round.
    pub(crate) amounts: Amounts,
    /// What is varied. The last factor varies fastest.
    pub(crate) factors: &'static [Factor],
    /// Labels that all cells have: `orb=rtorb, transport=tcp`.
    pub(crate) fixed: &'static str,
    /// What a reader of the results must know beside factors and amounts.
    pub(crate) parameters: &'static [(&'static str, Value)],
    /// The labels whose values name the columns of the table.
    pub(crate) columns: &'static [&'static str],
    /// Labels of all series that only the run knows.
    pub(crate) labels_of_run: fn(&Context) -> Labels,
    /// The time from one sample to the next, in nanoseconds, if samples have a rate; otherwise 0.
    pub(crate) period_ns: u64,
    /// How long a turn in a cell takes, in milliseconds, if that is set; otherwise 0.
    pub(crate) run_ms: fn(&Cell<'_>, Effort) -> usize,
    /// The number of other hosts on which its servers can run, if there are agents.
    pub(crate) agents_max: usize,
    /// Cells that an effort leaves out.
    pub(crate) leaves_out: fn(&Cell<'_>, Effort) -> bool,
    /// Why this host cannot be measured; nothing if it can.
    pub(crate) obstacle: fn(&Context) -> Option<&'static str>,
    /// Starts the subject, which will be measured in these cells.
    pub(crate) start: fn(&Context, &[Cell<'_>]) -> Result<S, LabError>,
    /// The tables that show it, if not that of all medians.
    pub(crate) tables: fn() -> Vec<TableView>,
    /// The plots that show it.
    pub(crate) plots: fn() -> Vec<Plot>,
    /// What a campaign of emulated machines does with it; `None` if it runs there only when it is named.
    pub(crate) emulated: Option<Emulated>,
    /// The kernel modules that an emulated machine loads for it.
    pub(crate) modules: &'static [&'static str],
    /// How several operating systems are shown side by side; `None` for a table of medians.
    pub(crate) kernels: Option<fn(&Gathered<'_>) -> Results>,
    /// The services of the platform that a profile takes from its results.
    pub(crate) services: &'static [ServiceRow],
    /// What is said about the cells.
    pub(crate) says: Statements,
    /// The cells that are computed from others and cannot be declared.
    pub(crate) computed: fn(&Cells, &Conditions) -> Computed,
    /// What a reader must know of every run.
    pub(crate) notes: fn(&Context) -> Vec<String>,
}

/// What is measured: processes, or threads of a probe.
pub trait Subject {
    /// The first factor, if its levels are measured one after the other, each in all its rounds. Otherwise all cells have a turn
    /// in each round.
    const BLOCKS: Option<&'static str> = None;

    /// The scheduling of its processes, if that is known before the first turn.
    ///
    /// # Errors
    /// That a process does not answer.
    fn scheduling(&mut self) -> Result<Vec<ObtainedScheduling>, LabError> {
        Ok(Vec::new())
    }

    /// Takes the samples of a cell in a round.
    ///
    /// # Errors
    /// What went wrong. The round of this cell is lost then, and the run goes on.
    fn measure(&mut self, cell: &Cell<'_>, turn: &Turn<'_>) -> Result<Sampled, LabError>;

    /// What a reader must know of it.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// The labels of what this host does not have, such as a peer that is not installed, each with the reason. Claims about it are
    /// not measured for that reason.
    fn absent(&self) -> Vec<(Labels, String)> {
        Vec::new()
    }

    /// Parameters that are computed from the effort.
    fn parameters(_: Effort) -> Parameters {
        Parameters::new()
    }
}

/// A turn of the subject.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The surroundings.
    pub(crate) context: &'a Context,
    /// The number of the round, counted from 0.
    pub(crate) round: usize,
    /// The number of samples to take.
    pub(crate) samples: usize,
    /// How long it takes, in milliseconds, if that is set; otherwise 0.
    pub(crate) run_ms: usize,
}

/// What a turn gave.
#[derive(Debug, Default)]
pub struct Sampled {
    /// The times of each part in nanoseconds, with the labels that tell the parts apart.
    pub(crate) parts: Vec<(Labels, Vec<u64>)>,
    /// What was counted, with the labels that tell the counts apart; the unit, and of how many requests it is a count.
    pub(crate) counts: Vec<(Labels, f64, (&'static str, u64))>,
    /// Wrong answers.
    pub(crate) wrong: u64,
    /// The scheduling of the measuring threads, if they were seen.
    pub(crate) scheduling: Vec<ObtainedScheduling>,
    /// Samples that were marked, those of the warm-up included.
    pub(crate) marks: u64,
    /// The marks of the warm-up, if a repeated run can find the samples again.
    pub(crate) warm_up: Option<u64>,
    /// From before the first sample until after the last, if the samples a second are to be known; otherwise 0.
    pub(crate) elapsed_ns: u64,
    /// The answer from which `computed` takes the samples, if it has none itself.
    pub(crate) answer: Option<Answer>,
}

/// An answer that was kept for `computed`.
#[derive(Debug)]
pub(crate) struct Answered {
    /// The cell.
    pub(crate) labels: Labels,
    pub(crate) round: usize,
    pub(crate) answer: Answer,
}

/// What computed cells depend on beside those that were measured.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    /// How much was measured.
    pub(crate) effort: Effort,
    /// There is a hypervisor that may take the CPU.
    pub(crate) virtual_machine: bool,
    /// The ticks of the kernel in a second, by its configuration; `None` if that cannot be read.
    pub(crate) tick_hz: Option<u32>,
    /// The answers that were kept, in the order of the turns.
    pub(crate) answers: Vec<Answered>,
}

/// What is computed from cells and answers.
#[derive(Debug, Default)]
pub(crate) struct Computed {
    /// Cells that were computed from the answers. They are shown after those that were measured.
    pub(crate) cells: Cells,
    /// What a reader must know of this run.
    pub(crate) notes: Vec<String>,
}

impl From<Cells> for Computed {
    fn from(cells: Cells) -> Self {
        Self {
            cells,
            notes: Vec::new(),
        }
    }
}

impl<S> Study<S> {
    /// A study with nothing that many do without: `..Study::with(start)` leaves it out.
    pub(crate) const fn with(start: fn(&Context, &[Cell<'_>]) -> Result<S, LabError>) -> Self {
        Self {
            name: "",
            title: "",
            reproduces: "nothing that was published",
            amounts: Amounts {
                glance: 0,
                emulated: 0,
                quick: [0; 2],
                full: [0; 2],
                samples: "samples_per_round",
            },
            factors: &[],
            fixed: "",
            parameters: &[],
            columns: &[],
            labels_of_run: |_| Labels::new(),
            period_ns: 0,
            run_ms: |_, _| 0,
            agents_max: 0,
            leaves_out: |_, _| false,
            obstacle: |_| None,
            start,
            tables: Vec::new,
            plots: Vec::new,
            emulated: None,
            modules: &[],
            kernels: None,
            services: &[],
            says: Statements::NONE,
            computed: |_, _| Computed::default(),
            notes: |_| Vec::new(),
        }
    }
}

impl Turn<'_> {
    /// What the turn draws its random numbers from.
    pub(crate) fn seed(&self) -> u64 {
        self.context
            .seed(self.round)
            .unwrap_or(self.round as u64 + 1)
    }
}

impl Sampled {
    /// The first set of samples of a probe's answer.
    pub(crate) fn of(answer: Answer) -> Self {
        let mut samples = answer.samples.into_iter();
        Self {
            scheduling: answer.scheduling,
            marks: answer.marks,
            ..Self::whole(samples.next().unwrap_or_default())
        }
    }

    /// No samples yet: `computed` takes them from the whole answer.
    pub(crate) fn kept(mut answer: Answer) -> Self {
        Self {
            scheduling: std::mem::take(&mut answer.scheduling),
            marks: answer.marks,
            answer: Some(answer),
            ..Self::default()
        }
    }

    /// True if the subject does not have the cell.
    fn is_nothing(&self) -> bool {
        self.parts.is_empty() && self.counts.is_empty() && self.answer.is_none()
    }

    /// Leaves out the scheduling of all threads but those that have one of these names: the others only wait for them.
    pub(crate) fn of_threads(mut self, names: &[&str]) -> Self {
        let is_one = |process: &str| names.iter().any(|name| process.contains(name));
        self.scheduling.retain(|threads| is_one(&threads.process));
        self
    }

    /// Times of one part, which needs no label.
    pub(crate) fn whole(times_ns: Vec<u64>) -> Self {
        Self {
            parts: vec![(Labels::new(), times_ns)],
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests;
