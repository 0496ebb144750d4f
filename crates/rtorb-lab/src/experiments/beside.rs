//! What runs beside the measured, where an experiment measures without and with load in one run.

use rtorb_results::LabelValue;

use crate::error::LabError;
use crate::experiment::Context;
use crate::processes::load::{Load, RunningLoad};
use crate::study::{Cell, Value};

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
        if context.load.is_none() && !is_emulated {
            Load::mix()
        } else {
            context.load.clone()
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

/// The levels of the factor `load`: without load, and with the one of the run.
pub(super) const LOADS: [Value; 2] = [Value::Text(NONE), Value::Text("chosen")];

/// The load of a study that measures without and with load in one run. It runs while cells with load are measured.
#[derive(Debug)]
pub(super) struct VariedLoad {
    load: Load,
    running: Option<RunningLoad>,
    /// What makes it; nothing in an emulated machine, which has its load already.
    generator: Option<String>,
}

impl VariedLoad {
    /// Starts the load once, for it to fail before anything is measured if it must.
    ///
    /// # Errors
    /// As the load.
    pub(super) fn new(context: &Context) -> Result<Self, LabError> {
        let load = Beside::load(context);
        let is_emulated = context.effort.seeds().is_some();
        let generator = if is_emulated {
            None
        } else {
            Some(load.start(context)?.generator())
        };
        Ok(Self {
            load,
            running: None,
            generator,
        })
    }

    /// Starts or ends the load, as the cell has it; answers the value of the label `load`.
    ///
    /// # Errors
    /// As the load.
    pub(super) fn set(
        &mut self,
        cell: &Cell<'_>,
        context: &Context,
    ) -> Result<LabelValue, LabError> {
        if cell.is("load", NONE) {
            self.running = None;
            return Ok(NONE.into());
        }
        if self.running.is_none() && self.generator.is_some() {
            self.running = Some(self.load.start(context)?);
        }
        Ok(self.load.to_string().into())
    }

    /// Whether the load has run until now. If not, it is started again for the next cell.
    ///
    /// # Errors
    /// Which part has ended.
    pub(super) fn check(&mut self) -> Result<(), LabError> {
        let checked = self.running.as_mut().map_or(Ok(()), RunningLoad::check);
        if checked.is_err() {
            self.running = None;
        }
        checked
    }

    /// Who makes the load.
    pub(super) fn note(&self) -> Option<String> {
        let generator = self.generator.as_ref()?;
        Some(format!("The load {} is made by {generator}.", self.load))
    }
}

/// The value of the label `load` where there is none.
pub(super) const NONE: &str = "none";
