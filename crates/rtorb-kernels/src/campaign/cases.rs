//! The cases of a campaign: boots them, and holds what each came to.

use std::path::Path;
use std::time::{Duration, Instant};

use rtorb_lab::LabError;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_results::{Results, write_atomically};

use super::joined::{self, Found, Missing};
use super::plan::Case;
use super::workers::{self, Then, WorkerEvent};
use super::{
    Absent, Answer, Boot, Identity, Job, Kernel, Message, Needs, OfSystem, SelfCheck, Standing,
    Watch,
};
use crate::board;
use crate::comparison::identified;
use crate::machine::{self, Machine};
use crate::sha256::sha256;

/// What is to be booted.
pub(super) struct Cases {
    pub(super) all: Vec<Case>,
    pub(super) identity: Identity,
    pub(super) needs: Needs,
    pub(super) interrupt: Interrupt,
}

/// What became of all of them.
#[derive(Debug)]
pub(super) struct Ended {
    cases: Vec<Case>,
    /// `None` was never begun.
    outcomes: Vec<Option<Result<Said, String>>>,
    is_interrupted: bool,
}

/// What a guest said.
#[derive(Debug)]
struct Said {
    octets: Vec<u8>,
    preempt: String,
    sample_taken: u64,
    /// Experiments, with what was found or why not.
    measured: Vec<(String, Result<Results, String>)>,
}

/// Boots all cases, so many side by side.
///
/// # Errors
/// That a kernel does not have the preemption model that it was told.
pub(super) fn run(cases: Cases, guests: usize, watch: &mut dyn Watch) -> Result<Ended, LabError> {
    let all = cases.all.clone();
    let names: Vec<String> = all.iter().map(|case| cases.name(case)).collect();
    let asked = cases.identity.asked.clone();
    let systems = cases.identity.systems.clone();
    let interrupt = cases.interrupt.clone();
    let mut progress = Progress::new(&all, names, guests);
    let mut outcomes: Vec<Option<Result<Said, String>>> = all.iter().map(|_| None).collect();
    let mut refused = None;
    progress.tell(watch);
    workers::run(
        all.len(),
        guests,
        move |at| cases.boot(at),
        &mut |event: Option<WorkerEvent<Said>>| {
            match event {
                None => {}
                Some(WorkerEvent::Begins(at)) => progress.begins(at),
                Some(WorkerEvent::Ends(at, ended)) => {
                    progress.ends(at);
                    if let (Ok(said), Some(told)) = (&ended, &asked[all[at].system])
                        && said.preempt != *told
                    {
                        refused = Some((all[at].system, said.preempt.clone()));
                    }
                    if let Err(error) = &ended
                        && !matches!(error, LabError::Interrupted)
                    {
                        watch.note(&format!("{}: {error}", progress.names[at]));
                    }
                    outcomes[at] = match ended {
                        Err(LabError::Interrupted) => None,
                        ended => Some(ended.map_err(|error| error.to_string())),
                    };
                }
            }
            progress.tell(watch);
            if refused.is_some() || interrupt.requested() {
                Then::Stop
            } else {
                Then::GoOn
            }
        },
    )?;
    if let Some((system, runs)) = refused {
        let (kernel, told) = (&systems[system].kernel.name, &systems[system].preempt);
        return Err(rtorb_results::Error::NotComparable {
            what: format!("{kernel} has no preemption model {told:?}: told so, it runs {runs:?}"),
        }
        .into());
    }
    Ok(Ended {
        cases: all,
        outcomes,
        is_interrupted: interrupt.requested(),
    })
}

impl Cases {
    fn name(&self, case: &Case) -> String {
        let kernel = &self.identity.systems[case.system].kernel.name;
        match &self.identity.asked[case.system] {
            Some(model) => case.name(&format!("{kernel} {model}")),
            None => case.name(kernel),
        }
    }

    fn boot(&self, at: usize) -> Result<Said, LabError> {
        let case = &self.all[at];
        let kernel = &self.identity.systems[case.system].kernel;
        if let Some(emulator) = self
            .needs
            .boards
            .as_ref()
            .filter(|_| kernel.board.is_some())
        {
            let rounds = self.identity.seeds;
            let octets = board::run(emulator, kernel, rounds, &self.interrupt)?;
            return Said::of_board(octets, kernel, rounds);
        }
        let pc = self
            .needs
            .pc
            .as_ref()
            .expect("a Linux among the kernels needs one");
        let job = Job::Measure {
            experiments: case.part.experiments.clone(),
            load: case.part.load.clone(),
            seeds: self.identity.seeds,
            full: self.identity.full,
        };
        let boot = Boot {
            machine: Machine::of(&self.identity),
            kernel,
            preempt: self.identity.asked[case.system].as_deref(),
            initramfs: &pc.initramfs,
            job: &job,
            observers: &[],
        };
        let timeout = case.part.time_limit();
        let octets = pc.emulator.run_for_bytes(&boot, timeout, &self.interrupt)?;
        Ok(Said::read(octets))
    }
}

impl Said {
    fn of_board(octets: Vec<u8>, kernel: &Kernel, rounds: u16) -> Result<Self, LabError> {
        let (preempt, results) = board::read(&octets, kernel, rounds)?;
        Ok(Self {
            octets,
            preempt,
            sample_taken: 0,
            measured: vec![(results.experiment.clone(), Ok(results))],
        })
    }

    fn read(octets: Vec<u8>) -> Self {
        let (mut preempt, mut sample_taken) = (String::new(), 0);
        let mut measured = Vec::new();
        for message in machine::messages(&octets) {
            match message {
                Message::Booted {
                    preempt: told,
                    sample_taken: at,
                    ..
                } => (preempt, sample_taken) = (told, at),
                Message::Measured(results) => {
                    measured.push((results.experiment.clone(), Ok(*results)));
                }
                Message::Failed { experiment, why } => measured.push((experiment, Err(why))),
                Message::Begins { .. } | Message::Symbols(_) | Message::End => {}
            }
        }
        Self {
            octets,
            preempt,
            sample_taken,
            measured,
        }
    }
}

impl Ended {
    /// Gives each system the preemption model that its kernel says it runs.
    pub(super) fn name_systems(&self, identity: &mut Identity) {
        for (case, outcome) in self.cases.iter().zip(&self.outcomes) {
            if let Some(Ok(said)) = outcome {
                identity.systems[case.system].preempt = said.preempt.clone();
            }
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        let all_measured = |said: &Said| {
            said.measured
                .iter()
                .all(|(_, found)| found.as_ref().is_ok_and(|results| results.complete))
        };
        self.outcomes
            .iter()
            .all(|outcome| matches!(outcome, Some(Ok(said)) if all_measured(said)))
    }

    /// Everything that was planned and is not there.
    pub(super) fn missing(&self, identity: &Identity) -> Vec<Absent> {
        let systems = identity.systems.iter().enumerate();
        let of_system = systems.flat_map(|(at, system)| {
            self.missing_of(at).into_iter().map(|one| Absent {
                kernel: system.kernel.name.clone(),
                preempt: system.preempt.clone(),
                load: one.load,
                experiment: one.experiment,
                why: one.why,
            })
        });
        of_system.collect()
    }

    /// What was found of each system, under all its loads.
    pub(super) fn of_systems(&self, identity: &Identity) -> Vec<OfSystem> {
        let systems = identity.systems.iter().enumerate();
        let joined = systems.map(|(at, system)| OfSystem {
            system: system.clone(),
            results: joined::join(&self.found_of(at, identity), &self.missing_of(at))
                .into_iter()
                .map(|results| identified(results, system, identity))
                .collect(),
        });
        joined.filter(|one| !one.results.is_empty()).collect()
    }

    /// What every guest said that came to its end.
    pub(super) fn answers(&self) -> Vec<Answer> {
        let all = self.cases.iter().zip(&self.outcomes);
        let answered = all.filter_map(|(case, outcome)| match outcome {
            Some(Ok(said)) if !case.is_again => Some(Answer {
                system: case.system,
                load: case.part.load.clone(),
                experiments: case.part.experiments.clone(),
                sample_taken: said.sample_taken,
                sha256: sha256(&said.octets),
            }),
            _ => None,
        });
        answered.collect()
    }

    /// Whether the case that was run twice said the same twice.
    pub(super) fn self_check(&self, identity: &Identity) -> SelfCheck {
        let Some((case, first, again)) = self.pair() else {
            return SelfCheck::default();
        };
        let system = &identity.systems[case.system];
        let digests = [first, again].map(|said| said.map(|said| sha256(&said.octets)));
        SelfCheck {
            case: case.name(&format!("{} {}", system.kernel.name, system.preempt)),
            repeats: match &digests {
                [Some(first), Some(again)] => Some(first == again),
                _ => None,
            },
            sha256: digests.into_iter().flatten().collect(),
        }
    }

    /// Keeps both answers where they differ.
    ///
    /// # Errors
    /// What the file system said.
    pub(super) fn keep_differing(&self, folder: &Path, check: &SelfCheck) -> Result<(), LabError> {
        if check.repeats != Some(false) {
            return Ok(());
        }
        let Some((_, first, again)) = self.pair() else {
            return Ok(());
        };
        for (said, name) in [(first, "first.jsonl"), (again, "again.jsonl")] {
            let path = folder.join(DIFFERS).join(name);
            let octets = said.map_or(&[][..], |said| &said.octets);
            write_atomically(&path, octets).map_err(LabError::file(&path))?;
        }
        Ok(())
    }

    /// The case that was run twice, and what it said each time.
    fn pair(&self) -> Option<(&Case, Option<&Said>, Option<&Said>)> {
        let again = self.cases.iter().position(|case| case.is_again)?;
        let first = self.cases.iter().position(|case| {
            let of = &self.cases[again];
            !case.is_again && case.system == of.system && case.part == of.part
        })?;
        let said = |at: usize| self.outcomes[at].as_ref()?.as_ref().ok();
        Some((&self.cases[first], said(first), said(again)))
    }

    /// In the order of the plan, which is not the one in which the cases were run.
    fn of_system(
        &self,
        system: usize,
    ) -> impl Iterator<Item = (&Case, &Option<Result<Said, String>>)> {
        let all = self.cases.iter().zip(&self.outcomes);
        all.filter(move |(case, _)| case.system == system && !case.is_again)
    }

    fn found_of(&self, system: usize, identity: &Identity) -> Vec<Found> {
        let mut found = Vec::new();
        for (load, experiments) in &identity.boots {
            let case = self
                .of_system(system)
                .find(|(case, _)| case.part.is_of(load, experiments));
            let Some((_, Some(Ok(said)))) = case else {
                continue;
            };
            let results = said
                .measured
                .iter()
                .filter_map(|(_, one)| one.as_ref().ok());
            found.extend(results.map(|results| Found {
                load: load.clone(),
                results: results.clone(),
            }));
        }
        found
    }

    fn missing_of(&self, system: usize) -> Vec<Missing> {
        let mut missing = Vec::new();
        for (case, outcome) in self.of_system(system) {
            for experiment in &case.part.experiments {
                let why = match outcome {
                    None if self.is_interrupted => Some(INTERRUPTED.to_owned()),
                    None => Some(NEVER_BEGUN.to_owned()),
                    Some(Err(why)) => Some(why.clone()),
                    Some(Ok(said)) => said.why_missing(experiment),
                };
                missing.extend(why.map(|why| Missing {
                    experiment: experiment.clone(),
                    load: case.part.load.clone(),
                    why,
                }));
            }
        }
        missing
    }
}

impl Said {
    fn why_missing(&self, experiment: &str) -> Option<String> {
        let measured = self.measured.iter().find(|(name, _)| name == experiment);
        match measured {
            Some((_, Ok(_))) => None,
            Some((_, Err(why))) => Some(why.clone()),
            None => Some("the guest did not say anything of it".to_owned()),
        }
    }
}

/// How far it is, and how long the rest takes.
struct Progress {
    names: Vec<String>,
    costs: Vec<f64>,
    guests: usize,
    begun: Vec<Option<Instant>>,
    /// Seconds that cases took, and what they were thought to cost.
    took: (f64, f64),
    running: Vec<usize>,
    done: usize,
}

impl Progress {
    fn new(cases: &[Case], names: Vec<String>, guests: usize) -> Self {
        Self {
            names,
            costs: cases.iter().map(|case| case.part.cost_s()).collect(),
            guests,
            begun: vec![None; cases.len()],
            took: (0.0, 0.0),
            running: Vec::new(),
            done: 0,
        }
    }

    fn begins(&mut self, at: usize) {
        self.begun[at] = Some(Instant::now());
        self.running.push(at);
    }

    fn ends(&mut self, at: usize) {
        self.running.retain(|running| *running != at);
        self.done += 1;
        let took = self.begun[at].map_or(0.0, |begun| begun.elapsed().as_secs_f64());
        self.took = (self.took.0 + took, self.took.1 + self.costs[at]);
        self.costs[at] = 0.0;
    }

    fn tell(&self, watch: &mut dyn Watch) {
        let names: Vec<String> = self
            .running
            .iter()
            .map(|at| self.names[*at].clone())
            .collect();
        watch.at(&Standing {
            done: self.done,
            cases: self.names.len(),
            running: &names,
            left: self.left(),
        });
    }

    /// As if the rest were as much slower than it was thought as what is over.
    fn left(&self) -> Option<Duration> {
        let (took, thought) = self.took;
        if thought == 0.0 {
            return None;
        }
        let slower = took / thought;
        let running = self.running.iter().filter_map(|at| self.begun[*at]);
        let spent: f64 = running.map(|begun| begun.elapsed().as_secs_f64()).sum();
        let rest = (self.costs.iter().sum::<f64>() * slower - spent).max(0.0);
        Duration::try_from_secs_f64(rest / self.guests.max(1) as f64).ok()
    }
}

const DIFFERS: &str = "differs";
const INTERRUPTED: &str = "the campaign was interrupted before";
const NEVER_BEGUN: &str = "it was not begun";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::plan::{self, Selection};
    use rtorb_results::synthetic;

    fn identity(parts: &[plan::Part]) -> Identity {
        Identity {
            systems: vec![synthetic::system("")],
            asked: vec![None],
            boots: parts
                .iter()
                .map(|part| (part.load.clone(), part.experiments.clone()))
                .collect(),
            ..Identity::default()
        }
    }

    fn answer(run: &str) -> Vec<u8> {
        let mut results = synthetic::results("os/wakeup", Vec::new());
        results.run = run.to_owned();
        let messages = [
            Message::Booted {
                release: "6.12".to_owned(),
                preempt: "voluntary".to_owned(),
                sample_taken: 1,
            },
            Message::Measured(Box::new(results)),
            Message::End,
        ];
        let lines = messages.map(|message| serde_json::to_string(&message).unwrap() + "\n");
        lines.concat().into_bytes()
    }

    /// Under none and hog, of which hog is run twice.
    fn ended(outcomes: [Option<Result<Vec<u8>, String>>; 3]) -> (Ended, Identity) {
        let selection = Selection {
            experiments: vec!["os/wakeup".to_owned()],
            loads: vec!["none".to_owned(), "hog".to_owned()],
            ..Selection::default()
        };
        let parts = selection.parts().unwrap();
        let ended = Ended {
            cases: plan::cases(&[&identity(&parts).systems[0].kernel], &parts),
            outcomes: outcomes
                .into_iter()
                .map(|outcome| outcome.map(|said| said.map(Said::read)))
                .collect(),
            is_interrupted: true,
        };
        let mut identity = identity(&parts);
        ended.name_systems(&mut identity);
        (ended, identity)
    }

    #[test]
    fn two_equal_answers_are_a_campaign_that_repeats() {
        let (ended, identity) = ended([
            Some(Ok(answer("a"))),
            Some(Ok(answer("a"))),
            Some(Ok(answer("b"))),
        ]);
        assert!(ended.is_complete());
        assert_eq!(ended.missing(&identity), []);
        let check = ended.self_check(&identity);
        assert_eq!(check.repeats, Some(true));
        assert!(check.case.contains("6.12 voluntary, load hog"), "{check:?}");
        let folder = tempfile::tempdir().unwrap();
        ended.keep_differing(folder.path(), &check).unwrap();
        assert!(!folder.path().join(DIFFERS).exists());
        let systems = ended.of_systems(&identity);
        assert_eq!(systems[0].results.len(), 1);
        assert_eq!(
            systems[0].results[0].run,
            crate::comparison::name_of(&identity)
        );
    }

    #[test]
    fn one_octet_that_differs_is_told_and_both_answers_are_kept() {
        let (ended, identity) = ended([
            Some(Ok(answer("a"))),
            Some(Ok(answer("c"))),
            Some(Ok(answer("b"))),
        ]);
        let check = ended.self_check(&identity);
        assert_eq!(check.repeats, Some(false));
        assert!(check.warning().unwrap().contains("NOT REPEATABLE"));
        let folder = tempfile::tempdir().unwrap();
        ended.keep_differing(folder.path(), &check).unwrap();
        let kept = folder.path().join(DIFFERS);
        assert_eq!(
            std::fs::read(kept.join("first.jsonl")).unwrap(),
            answer("a")
        );
        assert_eq!(
            std::fs::read(kept.join("again.jsonl")).unwrap(),
            answer("c")
        );
    }

    #[test]
    fn what_failed_and_what_was_not_reached_are_missing() {
        let (ended, identity) = ended([
            Some(Ok(answer("a"))),
            None,
            Some(Err("the guest panicked".to_owned())),
        ]);
        assert!(!ended.is_complete());
        assert_eq!(ended.self_check(&identity).repeats, None);
        let missing = ended.missing(&identity);
        assert_eq!(
            missing.len(),
            1,
            "the repetition is no part of it: {missing:?}"
        );
        assert_eq!(
            (missing[0].load.as_str(), missing[0].why.as_str()),
            ("none", "the guest panicked")
        );
        assert!(!ended.of_systems(&identity)[0].results[0].complete);
    }
}
