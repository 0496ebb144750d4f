//! Everybody who takes part in an experiment of clients that call at a rate.

use rtorb_results::ObtainedScheduling;

use super::contestants::RateContestant;
use super::server::RateObject;
use crate::contestants::peers::omniorb;
use crate::error::LabError;
use crate::processes::Launcher;
use crate::study::Cell;

/// Those who can take part, and why others cannot.
#[derive(Debug, Default)]
pub struct LineUp {
    contestants: Vec<RateContestant>,
    scheduling: Vec<ObtainedScheduling>,
    left_out: Vec<String>,
}

impl LineUp {
    /// Starts each of these presets, or the peer, with these objects, and has it prepared. Who fails is left out.
    ///
    /// # Errors
    /// The interrupt.
    pub fn start(
        launcher: &Launcher,
        names: &[&str],
        objects: &[RateObject],
        mut prepare: impl FnMut(&mut RateContestant) -> Result<Vec<ObtainedScheduling>, LabError>,
    ) -> Result<Self, LabError> {
        let mut line_up = Self::default();
        for name in names {
            let started = RateContestant::named(launcher, name, objects);
            let prepared = started.and_then(|found| {
                let prepared = found.map(|mut contestant| {
                    let scheduling = prepare(&mut contestant)?;
                    Ok((contestant, scheduling))
                });
                prepared.transpose()
            });
            let why = match prepared {
                Ok(Some((contestant, scheduling))) => {
                    line_up.contestants.push(contestant);
                    line_up.scheduling.extend(scheduling);
                    continue;
                }
                Ok(None) => format!("{}.", omniorb::HOW_TO_INSTALL),
                Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                Err(error) => error.to_string(),
            };
            line_up.left_out.push(format!("{name} was left out: {why}"));
        }
        Ok(line_up)
    }

    /// The contestant of a cell; `None` if it was left out.
    pub(crate) fn of(&mut self, cell: &Cell<'_>) -> Option<&mut RateContestant> {
        let mut all = self.contestants.iter_mut();
        all.find(|contestant| cell.is("preset", &contestant.preset))
    }

    /// What their threads have.
    #[must_use]
    pub fn scheduling(&mut self) -> Vec<ObtainedScheduling> {
        std::mem::take(&mut self.scheduling)
    }

    /// Who was left out, and why.
    #[must_use]
    pub fn left_out(&self) -> Vec<String> {
        self.left_out.clone()
    }
}
