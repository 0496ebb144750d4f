//! Everybody who takes part in an experiment of clients that call at a rate.

use indexmap::IndexMap;
use rtorb_host::placement::Placement;
use rtorb_results::{Labels, ObtainedScheduling};

use super::contestants::RateContestant;
use super::entrant::Entrant;
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
    notes: Vec<String>,
    /// The peers that cannot be had here, each with the reason.
    absent: Vec<(Labels, String)>,
}

impl LineUp {
    /// Starts everybody of these cells with these objects, and has each prepared. A peer that cannot be had here is left out. Cells
    /// with the same levels of `factors` have the same contestant. `placement` says where its server runs; `None` if this host
    /// has no such place.
    ///
    /// # Errors
    /// That a contestant does not start, or cannot be prepared: a run without it would say less than it was asked for. The
    /// interrupt.
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
            if let Some(mut contestant) = line_up.started((labels, entrant), started)? {
                line_up.scheduling.extend(prepare(labels, &mut contestant)?);
                line_up.note(entrant.one_priority());
                line_up.contestants.push((labels.clone(), contestant));
            }
        }
        Ok(line_up)
    }

    /// The contestant, if it has started; `None` of a peer that cannot be had here, with a note that says why.
    fn started<C>(
        &mut self,
        (labels, entrant): (&Labels, &Entrant),
        started: Result<Option<C>, LabError>,
    ) -> Result<Option<C>, LabError> {
        let why = match started {
            Ok(Some(contestant)) => return Ok(Some(contestant)),
            Ok(None) => format!("{}.", omniorb::HOW_TO_INSTALL),
            Err(LabError::Peer { what }) => what,
            Err(error) => return Err(error),
        };
        let left_out = format!("{entrant} was left out: {why}");
        self.absent.push((labels.clone(), left_out.clone()));
        self.note(Some(left_out));
        Ok(None)
    }

    fn note(&mut self, note: Option<String>) {
        let is_new = |note: &String| !self.notes.contains(note);
        let note = note.filter(is_new);
        self.notes.extend(note);
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

    /// Who was left out, by the levels of the factors, and why.
    pub(crate) fn absent(&self) -> Vec<(Labels, String)> {
        self.absent.clone()
    }

    /// Who was left out, and why; and whose server has one priority for all requests.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// The factor that says who calls and serves.
const PRESET: &str = "preset";

#[cfg(test)]
mod tests {
    use rtorb_host::placement::Placement;
    use rtorb_results::labels;

    use super::*;

    fn entrant(name: &str) -> Entrant {
        Entrant {
            name: name.to_owned(),
            server: Placement::default(),
            transport: Transport::Tcp,
        }
    }

    /// A server of ours that does not start has no excuse: without it, the claims about it would not be missed.
    #[test]
    fn only_a_peer_that_cannot_be_had_is_left_out() {
        let mut line_up = LineUp::default();
        let mut started = |name: &str, started: Result<Option<()>, LabError>| {
            let labels = labels([(PRESET, name.into())]);
            let started = line_up.started((&labels, &entrant(name)), started);
            started.map(|found| found.is_some())
        };
        let failed = || Err(LabError::process("tao server", "no port is free"));
        let error = started("tao", failed()).unwrap_err();
        assert!(error.to_string().contains("no port is free"), "{error}");
        assert!(started("omniorb", failed()).is_err());
        let what = "g++ failed".to_owned();
        assert!(!started("omniorb", Ok(None)).unwrap());
        assert!(!started("omniorb", Err(LabError::Peer { what })).unwrap());
        assert!(started("tao", Ok(Some(()))).unwrap());
        let [first, second] = &line_up.absent()[..] else {
            panic!("{:?}", line_up.absent())
        };
        assert_eq!(first.0[PRESET], "omniorb".into());
        assert!(
            first
                .1
                .starts_with("omniorb was left out: omniORB is not installed")
        );
        assert_eq!(second.1, "omniorb was left out: g++ failed");
        assert_eq!(line_up.notes(), [first.1.clone(), second.1.clone()]);
    }
}
