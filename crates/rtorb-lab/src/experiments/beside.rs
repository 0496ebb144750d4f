//! What runs beside the measured, where an experiment measures without and with load in one run.

use crate::experiments::prelude::*;
use crate::processes::load::{Load, RunningLoad};

/// The levels of the factor `load`: without load, and with the one of the run.
pub(super) const LOADS: Factor = Factor::texts("load", &[NONE, "chosen"]);

/// The load of a study that measures without and with load in one run. It runs while cells with load are measured.
#[derive(Debug)]
pub(super) struct VariedLoad {
    load: Load,
    /// The number of agents on whose hosts it runs too.
    agents: usize,
    /// An emulated machine has its load already.
    is_there: bool,
    running: Option<RunningLoad>,
    /// What makes it, once it has run.
    generator: Option<String>,
    /// What of the host keeps it from running.
    refusal: Option<String>,
}

impl VariedLoad {
    /// The load of this host and of those of the first so many agents. It is started once, so that it fails before anything is
    /// measured if it must; not in a glance, which is over soon.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub(super) fn new(context: &Context, agents: usize) -> Result<Self, LabError> {
        let mut varied = Self::later(context, agents);
        if context.effort != Effort::Glance {
            varied.start(context)?;
            varied.running = None;
        }
        Ok(varied)
    }

    /// The same, started no sooner than a cell has it.
    pub(super) fn later(context: &Context, agents: usize) -> Self {
        Self {
            load: context.varied_load(),
            agents,
            is_there: context.effort.seeds().is_some(),
            running: None,
            generator: None,
            refusal: None,
        }
    }

    fn start(&mut self, context: &Context) -> Result<(), LabError> {
        if self.running.is_none() && !self.is_there && self.refusal.is_none() {
            match context.start_load(&self.load, self.agents) {
                Ok(running) => {
                    self.generator = Some(running.generator());
                    self.running = Some(running);
                }
                // If it has run before, rounds are lost.
                Err(LabError::Refused { what }) if self.generator.is_none() => {
                    self.refusal = Some(what);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Starts or ends the load, as the cell has it; answers the value of the label `load`, or `None` if the host does not have the load.
    ///
    /// # Errors
    /// That the load fails, or is refused though it ran before.
    pub(super) fn set(
        &mut self,
        cell: &Cell<'_>,
        context: &Context,
    ) -> Result<Option<LabelValue>, LabError> {
        if cell.is("load", NONE) {
            self.running = None;
            return Ok(Some(NONE.into()));
        }
        self.start(context)?;
        Ok(self.refusal.is_none().then(|| self.label()))
    }

    /// The label of what is not measured for want of the load, and why.
    pub(super) fn absent(&self) -> Option<(Labels, String)> {
        let what = self.refusal.as_ref()?;
        let why = format!("With load, nothing was measured: {what}");
        Some((labels([("load", self.label())]), why))
    }

    fn label(&self) -> LabelValue {
        self.load.to_string().into()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::interrupt::Interrupt;

    fn load(effort: Effort, asked: &str) -> String {
        let context = Context::new(effort, "/bin/false".into(), Interrupt::new());
        let mut context = context.expect("a folder");
        context.load = asked.parse().expect("it is a load");
        context.varied_load().to_string()
    }

    #[test]
    fn what_is_absent_has_the_label_of_the_load_that_is_refused() {
        let context = Context::new(Effort::Quick, "/bin/false".into(), Interrupt::new());
        let mut varied = VariedLoad::later(&context.expect("a folder"), 0);
        assert_eq!(varied.absent(), None);
        varied.refusal = Some("load disk: /tmp is in memory".to_owned());
        let (of, why) = varied.absent().expect("it is refused");
        assert_eq!(of, labels([("load", "mix".into())]));
        assert!(why.contains("/tmp is in memory"), "{why}");
    }

    #[test]
    fn there_is_always_a_load_to_compare_with() {
        assert_eq!(load(Effort::Quick, "none"), "mix");
        assert_eq!(load(Effort::Quick, "hog"), "hog");
    }

    #[test]
    fn an_emulated_machine_has_the_load_that_it_was_booted_for() {
        for asked in ["none", "hog"] {
            assert_eq!(
                load(
                    Effort::Emulated {
                        seeds: 1,
                        full: false
                    },
                    asked
                ),
                asked
            );
        }
    }
}
