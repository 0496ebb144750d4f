//! Everybody who takes part in an experiment of clients that call at a rate.

use indexmap::IndexMap;
use rtorb_host::placement::Placement;
use rtorb_results::{Labels, ObtainedScheduling};

use super::contestants::{Entrant, RateContestant};
use super::server::RateObject;
use crate::contestants::Transport;
use crate::contestants::peers::omniorb;
use crate::error::LabError;
use crate::experiment::Context;
use crate::study::Cell;

/// Those who can take part, and why others cannot.
#[derive(Debug, Default)]
pub struct LineUp {
    contestants: Vec<(Labels, RateContestant)>,
    scheduling: Vec<ObtainedScheduling>,
    left_out: Vec<String>,
}

impl LineUp {
    /// Starts everybody of these cells with these objects, and has each prepared. Who fails is left out. Cells with the same
    /// levels of `factors` have the same contestant. `placement` says where its server runs; `None` if this host has no such
    /// place.
    ///
    /// # Errors
    /// The interrupt.
    pub(crate) fn start(
        context: &Context,
        cells: &[Cell<'_>],
        factors: &[&str],
        placement: impl Fn(&Cell<'_>) -> Option<Placement>,
        objects: &[RateObject],
        mut prepare: impl FnMut(
            &Labels,
            &mut RateContestant,
        ) -> Result<Vec<ObtainedScheduling>, LabError>,
    ) -> Result<Self, LabError> {
        let mut line_up = Self::default();
        let mut entrants: IndexMap<Labels, Entrant> = IndexMap::new();
        for cell in cells {
            if let (Some(name), Some(server)) = (cell.level(PRESET), placement(cell)) {
                let transport = Transport::of(cell);
                let entrant = Entrant {
                    name,
                    server,
                    transport,
                };
                entrants.entry(cell.levels(factors)).or_insert(entrant);
            }
        }
        for (labels, entrant) in &entrants {
            let started =
                RateContestant::start(&context.launcher, context.folder(), entrant, objects);
            let prepared = started.and_then(|found| {
                let prepared = found.map(|mut contestant| {
                    let scheduling = prepare(labels, &mut contestant)?;
                    Ok((contestant, scheduling))
                });
                prepared.transpose()
            });
            let why = match prepared {
                Ok(Some((contestant, scheduling))) => {
                    line_up.contestants.push((labels.clone(), contestant));
                    line_up.scheduling.extend(scheduling);
                    continue;
                }
                Ok(None) => format!("{}.", omniorb::HOW_TO_INSTALL),
                Err(LabError::Interrupted) => return Err(LabError::Interrupted),
                Err(error) => error.to_string(),
            };
            let left_out = format!("{entrant} was left out: {why}");
            if !line_up.left_out.contains(&left_out) {
                line_up.left_out.push(left_out);
            }
        }
        Ok(line_up)
    }

    /// The contestant of a cell; `None` if it was left out.
    pub(crate) fn of(&mut self, cell: &Cell<'_>) -> Option<&mut RateContestant> {
        let mut all = self.contestants.iter_mut();
        let found = all.find(|(labels, _)| cell.is_of(labels));
        found.map(|(_, contestant)| contestant)
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

/// The factor that says who calls and serves.
const PRESET: &str = "preset";
