//! Every experiment there is. A new one is a file in `experiments/` and a line in [`ALL`].

use std::ops::Deref;

use rtorb_results::profile::Services;
use rtorb_sched::text_file::nearest;

use crate::error::LabError;
use crate::experiment::Experiment;
use own_program::OwnProgram;

mod beside;
mod mt_cubit;
pub mod orb_architectures;
pub mod orb_demux;
pub mod orb_edge;
pub mod orb_events;
pub mod orb_footprint;
pub mod orb_latency_jitter;
pub mod orb_packet_inversion;
pub mod orb_priority_inversion;
pub mod orb_receive_inversion;
pub mod orb_rt_policies;
pub mod orb_switches;
pub mod orb_throughput;
pub mod orb_whitebox;
pub mod os_clock_overhead;
pub mod os_context_switch;
pub mod os_interruptions;
pub mod os_interval_jitter;
pub mod os_mutex;
pub mod os_operations;
pub mod os_ready_queue;
pub mod os_services;
pub mod os_wakeup;
pub mod own_program;
mod prelude;
pub mod soak;
mod transports;

/// In the order in which `rtorb measure` runs them.
pub const ALL: [&dyn Experiment; 22] = [
    &os_context_switch::STUDY,
    &os_ready_queue::STUDY,
    &os_services::STUDY,
    &os_operations::STUDY,
    &os_clock_overhead::SUITE,
    &os_interruptions::STUDY,
    &os_interval_jitter::STUDY,
    &os_wakeup::STUDY,
    &os_mutex::STUDY,
    &orb_throughput::STUDY,
    &orb_demux::STUDY,
    &orb_whitebox::STUDY,
    &orb_switches::STUDY,
    &orb_latency_jitter::STUDY,
    &orb_architectures::SUITE,
    &orb_priority_inversion::STUDY,
    &orb_packet_inversion::STUDY,
    &orb_receive_inversion::STUDY,
    &orb_rt_policies::STUDY,
    &orb_edge::STUDY,
    &orb_events::SUITE,
    &orb_footprint::STUDY,
];

/// Names that experiments had, and what has their cells now.
const FORMER_NAMES: [(&str, &str); 5] = [
    ("orb/event-channel", "orb/events"),
    ("orb/event-cost", "orb/events"),
    ("orb/histogram", "orb/edge"),
    ("orb/payload", "orb/edge"),
    ("os/other-cpu", "os/services"),
];

/// Their names, in the same order.
#[must_use]
pub fn names() -> Vec<&'static str> {
    ALL.map(|experiment| experiment.name()).to_vec()
}

/// An experiment that somebody asked for by its name.
pub enum Chosen {
    /// One of [`ALL`].
    Known(&'static dyn Experiment),
    /// A program of the user's own.
    Own(OwnProgram),
}

impl Deref for Chosen {
    type Target = dyn Experiment;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Known(experiment) => *experiment,
            Self::Own(program) => program,
        }
    }
}

/// The experiment that has the cells of one with a former name; `None` for any other name.
#[must_use]
pub fn present_name(former: &str) -> Option<&'static str> {
    let mut names = FORMER_NAMES.into_iter();
    let found = names.find(|(name, _)| *name == former);
    found.map(|(_, present)| present)
}

/// The experiment of this name.
///
/// # Errors
/// That there is none, with the name that is meant.
pub fn by_name(name: &str) -> Result<Chosen, LabError> {
    let mut all = ALL.into_iter();
    let known = all.find(|experiment| experiment.name() == name);
    let own = || OwnProgram::of(name).map(Chosen::Own);
    let chosen = known.map(Chosen::Known).or_else(own);
    chosen.ok_or_else(|| LabError::UnknownExperiment {
        name: name.to_owned(),
        nearest: present_name(name).or_else(|| nearest(name, names().into_iter())),
    })
}

/// Those that a profile of the platform is made of.
#[must_use]
pub fn of_profile() -> Vec<&'static dyn Experiment> {
    let known = ALL.into_iter();
    known.filter(|known| !known.services().is_empty()).collect()
}

/// What a profile of the platform is made of, in the order in which the experiments are run.
#[must_use]
pub fn services() -> Vec<Services> {
    let services = |known: &'static dyn Experiment| Services {
        experiment: known.name(),
        rows: known.services(),
    };
    of_profile().into_iter().map(services).collect()
}

/// Whether a run of these experiments has a profile: all were chosen that one is made of.
#[must_use]
pub fn have_profile(chosen: &[&dyn Experiment]) -> bool {
    of_profile()
        .iter()
        .all(|wanted| chosen.iter().any(|chosen| chosen.name() == wanted.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::cells::Cells;
    use rtorb_results::claim::{Declaration, Grounds};
    use rtorb_results::{Labels, Verdict};

    /// The verdict on one claim, of rounds that have these numbers before anything else is made of them.
    fn verdict(
        declaration: &Declaration,
        subject: &Labels,
        (values, wrong): (&[f64], u64),
    ) -> Verdict {
        let cells = declaration.made_up(subject, values, wrong);
        let judge = |cells: &Cells| {
            declaration.judge(&Grounds {
                planned: std::slice::from_ref(subject),
                ..Grounds::of(cells, 6)
            })
        };
        let (claims, id) = (judge(&cells), judge(&Cells::default()));
        let of_subject = claims.iter().find(|claim| claim.id == id[0].id);
        of_subject.expect("every declared claim is judged").verdict
    }

    #[test]
    fn every_declared_claim_can_be_held_missed_not_judged_and_not_measured() {
        let said = ALL.iter().flat_map(|experiment| experiment.says());
        let mut judged = 0;
        for said in said {
            for declaration in said.says.claims {
                let subjects = declaration.planned(&said.planned);
                assert!(!subjects.is_empty(), "{} is about no cell", declaration.id);
                for subject in subjects {
                    let of =
                        |values: &[f64], wrong| verdict(declaration, &subject, (values, wrong));
                    let (small, large) = (0.0, 1e15);
                    let found = [
                        of(&[small; 6], 0),
                        of(&[large; 6], 0),
                        of(&[small; 6], 1),
                        of(&[], 0),
                    ];
                    let wanted = [
                        Verdict::Held,
                        Verdict::Missed,
                        Verdict::NotJudged,
                        Verdict::NotMeasured,
                    ];
                    assert_eq!(found, wanted, "{} of {subject:?}", declaration.id);
                    judged += 1;
                }
            }
        }
        assert!(judged > 0);
    }

    #[test]
    fn every_former_name_leads_to_an_experiment() {
        for (former, present) in FORMER_NAMES {
            assert!(!names().contains(&former), "{former}");
            assert!(by_name(present).is_ok_and(|found| found.name() == present));
            let error = by_name(former).err().map(|error| error.to_string());
            assert!(
                error.is_some_and(|error| error.contains(present)),
                "{former}"
            );
        }
    }

    #[test]
    fn a_profile_is_made_of_experiments_of_this_program() {
        let wanted = of_profile();
        assert!(have_profile(&ALL));
        assert!(!have_profile(&wanted[1..]));
        assert!(services().iter().all(|services| !services.rows.is_empty()));
    }
}
