//! What runs beside the measured, where an experiment measures without and with load in one run.

use crate::error::LabError;
use crate::experiment::Context;
use crate::processes::load::{Load, RunningLoad};

/// What runs while it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    /// Nothing.
    Nothing,
    /// The load, which this experiment sets.
    Load,
    /// The load that an emulated machine was booted for, which is there already and may be none.
    LoadOfMachine,
}

impl Beside {
    /// First without load, then with it.
    pub(super) const WITHOUT_AND_WITH: [Self; 2] = [Self::Nothing, Self::Load];

    /// The load that is measured under: the one that was asked for, the mix where none was; in an emulated machine its own.
    pub(super) fn load(context: &Context) -> Load {
        let is_emulated = context.effort.seeds().is_some();
        match context.load.is_none() && !is_emulated {
            true => Load::mix(),
            false => context.load.clone(),
        }
    }

    /// Starts the load where it is for this experiment to set; with it comes, in the first round, a note of who makes it.
    ///
    /// # Errors
    /// As the load.
    pub(super) fn start(
        self,
        (load, round): (&Load, usize),
        context: &Context,
    ) -> Result<(RunningLoad, Option<String>), LabError> {
        if self != Self::Load {
            return Ok((RunningLoad::default(), None));
        }
        let running = load.start(context)?;
        let note = (round == 0).then(|| {
            let generator = running.generator();
            format!("The load {load} is made by {generator}.")
        });
        Ok((running, note))
    }

    /// True unless it is nothing for certain.
    pub(super) fn is_load(self) -> bool {
        self != Self::Nothing
    }
}
