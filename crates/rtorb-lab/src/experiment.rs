//! What an experiment is, and how one is run.

use std::collections::BTreeMap;

use rtorb_results::profile::ServiceRow;
use rtorb_results::statements::Statements;
use rtorb_results::systems::Gathered;
use rtorb_results::{LabelValue, Labels, Results};

use crate::error::LabError;

pub use crate::effort::Effort;
pub use clocks::Clocks;
pub use context::Context;
pub use gpio_lines::GpioLines;
pub use run::{IN_INSTRUCTIONS, run};

mod clocks;
mod context;
mod gpio_lines;
mod run;
pub mod split_mix;

/// A table or figure that can be measured again. Each is a file in `experiments/`.
pub trait Experiment: Sync {
    /// The name by which it is run and its results are kept: `orb/throughput`.
    fn name(&self) -> &str;

    /// What it shows, in a line.
    fn title(&self) -> &'static str;

    /// The published table or figure that it reproduces.
    fn reproduces(&self) -> &'static str;

    /// What a run with this effort would do.
    fn parameters(&self, effort: Effort) -> Parameters;

    /// Whether it measures with and without load itself. The others are run under the load that the user chose.
    fn varies_load(&self) -> bool {
        false
    }

    /// The number of other hosts on which its servers can run, if there are agents. With 0 it measures this host alone.
    fn agents_max(&self) -> usize {
        0
    }

    /// What a campaign of emulated machines does with it; `None` if it runs there only when it is named.
    fn emulated(&self) -> Option<Emulated> {
        None
    }

    /// The modules that a kernel of an emulated machine loads for it, each after those that it needs. A kernel that has their code
    /// built in needs none.
    fn modules(&self) -> &'static [&'static str] {
        &[]
    }

    /// How its results on several operating systems are shown side by side; `None` for a table of medians
    /// ([`crate::systems::any`]).
    fn kernels(&self, _: &Gathered<'_>) -> Option<Results> {
        None
    }

    /// The services of the platform that a profile takes from its results.
    fn services(&self) -> &'static [ServiceRow] {
        &[]
    }

    /// What is said about its cells, as data: for each study that it has.
    fn says(&self) -> Vec<Said<'_>> {
        Vec::new()
    }

    /// How much an effort measures, in a unit of its own: what another effort takes is guessed from the ratio.
    fn amount(&self, _: Effort) -> usize {
        1
    }

    /// Measures. An interrupt is not an error: the results say that they are not complete. [`run`] adds what it knows of the run.
    ///
    /// # Errors
    /// That nothing could be measured at all.
    fn run(&self, context: &Context, progress: &mut dyn Progress) -> Result<Results, LabError>;
}

/// What a study says, and of which cells.
#[derive(Debug)]
pub struct Said<'a> {
    /// What it says.
    pub says: &'a Statements,
    /// All cells of a full run.
    pub planned: Vec<Labels>,
}

/// Names to values.
pub type Parameters = BTreeMap<String, LabelValue>;

/// What a campaign of emulated machines does with an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Emulated {
    /// The loads under which it runs.
    pub loads: EmulatedLoads,
    /// Whether it is in a quick campaign.
    pub is_quick: bool,
    /// The seconds of a quiet host that four seeds take in about, without load.
    pub cost_s: f64,
    /// The same under load. A load works whenever nothing else does; without one, idle time costs nothing.
    pub loaded_cost_s: f64,
}

/// The loads under which a campaign runs an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmulatedLoads {
    /// None.
    None,
    /// None, and all together.
    NoneAndMix,
    /// None, each alone, and all together. A quick campaign has those that tell kernels apart best.
    All,
}

impl Emulated {
    /// One that runs without load in a campaign that is not quick.
    pub(crate) const fn unloaded(cost_s: f64) -> Self {
        Self {
            loads: EmulatedLoads::None,
            is_quick: false,
            cost_s,
            loaded_cost_s: 9.0,
        }
    }
}

/// Is told how far a run is. Called between bursts, never while something is measured.
pub trait Progress {
    /// So many steps are to come.
    fn begin(&mut self, steps: usize);
    /// One more step is done; `next` is what comes now.
    fn step(&mut self, next: &str);
    /// Something that a reader should know.
    fn note(&mut self, text: &str);
}

/// Whether a measurement came to its end: an interrupt is no error, and what was measured before it is shown.
///
/// # Errors
/// Any other one.
pub(crate) fn is_complete(done: Result<(), LabError>) -> Result<bool, LabError> {
    match done {
        Ok(()) => Ok(true),
        Err(LabError::Interrupted) => Ok(false),
        Err(error) => Err(error),
    }
}
