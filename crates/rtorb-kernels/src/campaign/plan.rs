//! Which boots a campaign consists of, and in which order they are begun.

use std::time::Duration;

use rtorb_lab::LabError;
use rtorb_lab::experiment::{Effort, Emulated, EmulatedLoads};
use rtorb_lab::experiments;
use rtorb_lab::processes::load::Load;
use rtorb_results::campaign::Kernel;
use rtorb_results::distinct;

use crate::board;

/// What is run under which loads, as the user asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The experiments; none given are those of the default plan.
    pub experiments: Vec<String>,
    /// The loads; none given are those of the default plan.
    pub loads: Vec<String>,
    /// A look: few experiments under the loads that tell kernels apart best.
    pub quick: bool,
    /// The published sample counts and levels.
    pub full: bool,
    /// Exactly these boots, each a load and its experiments, as an earlier campaign had them; none given are made of the rest.
    pub boots: Vec<(String, Vec<String>)>,
}

/// A boot of every system: these experiments under this load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) load: String,
    pub(super) experiments: Vec<String>,
    /// With the published sample counts and levels.
    pub(super) is_full: bool,
}

/// One boot: of which system, and which part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    /// Its place in the list of systems.
    pub(super) system: usize,
    pub(super) part: Part,
    /// Whether it is here for the second time, to see whether it repeats.
    pub(super) is_again: bool,
}

impl Selection {
    /// The boots that each system is given. They are the same however many guests run side by side.
    ///
    /// # Errors
    /// An experiment or a load that there is not.
    pub(super) fn parts(&self) -> Result<Vec<Part>, LabError> {
        let of_boots = self.boots.iter().flat_map(|(_, names)| names);
        for name in self.experiments.iter().chain(of_boots) {
            experiments::by_name(name)?;
        }
        for load in self
            .loads
            .iter()
            .chain(self.boots.iter().map(|(load, _)| load))
        {
            let known = load.parse::<Load>();
            known.map_err(|what| rtorb_results::Error::NotComparable { what })?;
        }
        if !self.boots.is_empty() {
            let parts = self.boots.iter().map(|(load, experiments)| Part {
                load: load.clone(),
                experiments: experiments.clone(),
                is_full: self.full,
            });
            return Ok(parts.collect());
        }
        let pairs = self.pairs();
        let loads = distinct(pairs.iter().map(|(_, load)| *load));
        let parts = loads.iter().flat_map(|load| {
            let of_load = pairs.iter().filter(|(_, under)| under == load);
            let names = of_load.map(|(name, _)| (*name).to_owned()).collect();
            split(load, names, self.full)
        });
        Ok(parts.collect())
    }

    /// Experiment and load.
    fn pairs(&self) -> Vec<(&str, &str)> {
        let experiments = self.experiments.iter().map(String::as_str);
        let asked_for = |load: &&str| self.loads.is_empty() || self.loads.iter().any(|l| l == load);
        if !self.experiments.is_empty() && !self.loads.is_empty() {
            let under = |name| self.loads.iter().map(move |load| (name, load.as_str()));
            return experiments.flat_map(under).collect();
        }
        let names: Vec<&str> = match (self.experiments.is_empty(), self.quick) {
            (false, _) => experiments.collect(),
            (true, is_quick) => of_campaign(is_quick).collect(),
        };
        let under = |name| {
            let loads = loads(emulated(name), self.quick);
            loads.iter().map(move |load| (name, *load))
        };
        let planned = names.into_iter().flat_map(under);
        planned.filter(|(_, load)| asked_for(load)).collect()
    }
}

impl Part {
    /// What of it this kernel runs; `None` if nothing.
    pub(super) fn of(&self, kernel: &Kernel) -> Option<Self> {
        let experiments = self.experiments.iter();
        let of_it = experiments.filter(|name| board::runs(kernel, name, &self.load));
        let part = Self {
            experiments: of_it.cloned().collect(),
            ..self.clone()
        };
        (!part.experiments.is_empty()).then_some(part)
    }

    /// True if it is what some kernel runs of this boot.
    pub(super) fn is_of(&self, load: &str, experiments: &[String]) -> bool {
        let mut own = self.experiments.iter();
        self.load == load && own.all(|name| experiments.contains(name))
    }

    /// How long it takes in about, in seconds of a quiet host: by it boots are ordered, and nothing else follows from it.
    pub(super) fn cost_s(&self) -> f64 {
        let experiments = self.experiments.iter();
        let experiments = experiments.map(|name| cost_s(name, &self.load, self.is_full));
        BOOT_S + experiments.sum::<f64>()
    }

    /// After this time it is given up: longer than it takes on the busiest host.
    pub(super) fn time_limit(&self) -> Duration {
        let experiments = u32::try_from(self.experiments.len()).unwrap_or(u32::MAX);
        let ordinary = BOOT_MAX + EXPERIMENT_MAX.saturating_mul(experiments);
        ordinary.max(Duration::from_secs_f64(SLOWER_MAX * self.cost_s()))
    }
}

impl Case {
    /// As a user reads it: `tmpfs`, `none: os/mutex, os/timers`.
    pub(super) fn name(&self, system: &str) -> String {
        let again = if self.is_again { ", again" } else { "" };
        let (load, experiments) = (&self.part.load, self.part.experiments.join(" "));
        format!("{system}, load {load}{again} ({experiments})")
    }
}

/// All boots of these kernels, longest first, so that none runs alone at the end; and the one that is run twice before them: a short
/// one under load.
pub(super) fn cases(kernels: &[&Kernel], parts: &[Part]) -> Vec<Case> {
    let of_part = |part: &Part| {
        let of_kernels = kernels.iter().enumerate();
        let cases = of_kernels.filter_map(|(system, kernel)| {
            Some(Case {
                system,
                part: part.of(kernel)?,
                is_again: false,
            })
        });
        cases.collect::<Vec<_>>()
    };
    let mut all: Vec<Case> = parts.iter().flat_map(of_part).collect();
    all.sort_by(|a, b| b.part.cost_s().total_cmp(&a.part.cost_s()));
    let is_loaded = |case: &Case| case.part.load != NONE;
    let shortest = all.iter().rposition(is_loaded).or(all.len().checked_sub(1));
    if let Some(at) = shortest {
        let first = all.remove(at);
        let again = Case {
            is_again: true,
            ..first.clone()
        };
        all.splice(0..0, [first, again]);
    }
    all
}

/// In boots that are short enough to be spread over the guests.
fn split(load: &str, experiments: Vec<String>, is_full: bool) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut cost = 0.0;
    for name in experiments {
        let own = cost_s(&name, load, is_full);
        match parts.last_mut() {
            Some(part) if cost + own <= PART_S => {
                cost += own;
                part.experiments.push(name);
            }
            _ => {
                cost = own;
                parts.push(Part {
                    load: load.to_owned(),
                    experiments: vec![name],
                    is_full,
                });
            }
        }
    }
    parts
}

/// The experiments of a campaign for which none is named.
fn of_campaign(is_quick: bool) -> impl Iterator<Item = &'static str> {
    let all = experiments::ALL.into_iter().filter(move |known| {
        let emulated = known.emulated();
        emulated.is_some_and(|emulated| emulated.is_quick || !is_quick)
    });
    all.map(|known| known.name())
}

fn emulated(experiment: &str) -> Emulated {
    let known = experiments::by_name(experiment).ok();
    let declared = known.and_then(|known| known.emulated());
    declared.unwrap_or(UNPLANNED)
}

fn loads(emulated: Emulated, is_quick: bool) -> &'static [&'static str] {
    match (emulated.loads, is_quick) {
        (EmulatedLoads::None, _) => &[NONE],
        (EmulatedLoads::NoneAndMix, _) => &[NONE, MIX],
        (EmulatedLoads::All, false) => &LOADS,
        // Those under which kernels differ most.
        (EmulatedLoads::All, true) => &[NONE, "munmap", "tmpfs"],
    }
}

fn cost_s(experiment: &str, load: &str, is_full: bool) -> f64 {
    let emulated = emulated(experiment);
    let look_s = if load == NONE {
        emulated.cost_s
    } else {
        emulated.loaded_cost_s
    };
    match experiments::by_name(experiment) {
        Ok(known) if is_full => {
            let amount = |full| known.amount(Effort::Emulated { seeds: 4, full }).max(1) as f64;
            look_s * amount(true) / amount(false)
        }
        _ => look_s,
    }
}

/// An experiment that runs only when it is named.
const UNPLANNED: Emulated = Emulated {
    loads: EmulatedLoads::None,
    is_quick: false,
    cost_s: 9.0,
    loaded_cost_s: 9.0,
};
/// No load.
const NONE: &str = "none";
/// All loads of an emulated machine together.
const MIX: &str = "mix";
/// What a kernel is put under, one after another: each makes another part of it work.
pub const LOADS: [&str; 13] = [
    NONE, "hog", "fork", "munmap", "pipes", "tcp", "udp", "proc", "tmpfs", "timers", "exec",
    "unix", MIX,
];
/// From the emulator's start to the guest's first experiment.
const BOOT_S: f64 = 7.0;
const BOOT_MAX: Duration = Duration::from_secs(300);
const EXPERIMENT_MAX: Duration = Duration::from_secs(600);
/// A busy host is at most so many times as slow as a quiet one.
const SLOWER_MAX: f64 = 10.0;
/// What a boot is split at: a part more is a boot more.
const PART_S: f64 = 40.0;

#[cfg(test)]
mod tests {
    use rtorb_lab::experiments::os_operations;
    use rtorb_lab::processes::load::Kind;

    use super::*;

    fn selection(experiments: &[&str], loads: &[&str]) -> Selection {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Selection {
            experiments: owned(experiments),
            loads: owned(loads),
            ..Selection::default()
        }
    }

    fn pairs(selection: &Selection) -> Vec<(String, String)> {
        let parts = selection.parts().unwrap();
        let of_part = |part: &Part| {
            let load = part.load.clone();
            let names = part.experiments.clone().into_iter();
            names.map(move |name| (name, load.clone()))
        };
        parts.iter().flat_map(of_part).collect()
    }

    fn loads_of(pairs: &[(String, String)], experiment: &str) -> usize {
        pairs.iter().filter(|(name, _)| name == experiment).count()
    }

    #[test]
    fn a_full_campaign_has_the_same_experiments_and_says_that_it_takes_longer() {
        let of = |full| {
            let selection = Selection {
                full,
                ..selection(&["os/wakeup", "orb/architectures"], &[NONE])
            };
            let parts = selection.parts().unwrap();
            let seconds: f64 = parts.iter().map(Part::cost_s).sum();
            let limits: Vec<Duration> = parts.iter().map(Part::time_limit).collect();
            (pairs(&selection), seconds, limits)
        };
        let ((look, look_s, _), (full, full_s, limits)) = (of(false), of(true));
        assert_eq!(look, full);
        assert!(full_s > 10.0 * look_s, "{look_s} s and {full_s} s");
        assert!(limits[0] > Duration::from_secs_f64(full_s));
    }

    #[test]
    fn the_default_plan_puts_the_wake_up_under_every_load() {
        let pairs = pairs(&Selection::default());
        assert_eq!(loads_of(&pairs, "os/wakeup"), LOADS.len());
        assert_eq!(LOADS[1..12], Kind::EMULATED_MIX.map(Kind::name));
        assert_eq!(loads_of(&pairs, "os/services"), 1);
        assert_eq!(loads_of(&pairs, "orb/latency-jitter"), 2);
        assert_eq!(loads_of(&pairs, "orb/throughput"), 1);
        let mut distinct = pairs.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), pairs.len(), "nothing is measured twice");
    }

    #[test]
    fn what_is_named_is_all_that_is_run() {
        let both = pairs(&selection(
            &["os/wakeup", "orb/throughput"],
            &["none", "hog"],
        ));
        assert_eq!(both.len(), 4);
        let loads_alone = pairs(&selection(&[], &["tcp"]));
        let names: Vec<&str> = loads_alone.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["os/wakeup"]);
        let experiments_alone = pairs(&selection(&["orb/edge"], &[]));
        assert_eq!(experiments_alone.len(), 2);
    }

    #[test]
    fn a_quick_campaign_is_three_boots_a_system() {
        let quick = Selection {
            quick: true,
            ..Selection::default()
        };
        assert_eq!(quick.parts().unwrap().len(), 3);
        let pairs = pairs(&quick);
        assert_eq!(loads_of(&pairs, "os/wakeup"), 3);
        assert_eq!(loads_of(&pairs, "os/services"), 1);
    }

    #[test]
    fn what_there_is_not_is_refused() {
        assert!(selection(&["os/none-such"], &[]).parts().is_err());
        let error = selection(&[], &["flood"]).parts().unwrap_err();
        assert!(error.to_string().contains("flood"), "{error}");
    }

    #[test]
    fn a_short_loaded_case_is_run_twice_and_long_ones_come_first() {
        let parts = Selection::default().parts().unwrap();
        let kernel = kernel(None);
        let cases = cases(&[&kernel, &kernel], &parts);
        assert_eq!(cases.len(), 2 * parts.len() + 1);
        let again: Vec<&Case> = cases.iter().filter(|case| case.is_again).collect();
        assert_eq!(again.len(), 1);
        assert_ne!(again[0].part.load, NONE);
        let twin = |case: &&Case| {
            !case.is_again && (case.system, &case.part) == (again[0].system, &again[0].part)
        };
        assert_eq!(cases.iter().filter(twin).count(), 1);
        let costs: Vec<f64> = cases[2..].iter().map(|case| case.part.cost_s()).collect();
        assert!(costs.is_sorted_by(|a, b| a >= b), "{costs:?}");
        // Without any load there is still one that is run twice.
        let parts = selection(&["os/wakeup"], &["none"]).parts().unwrap();
        assert_eq!(super::cases(&[&kernel], &parts).len(), 2);
        assert!(super::cases(&[], &parts).is_empty());
    }

    #[test]
    fn a_guest_of_a_board_is_booted_once_for_what_it_has() {
        let (linux, guest) = (kernel(None), kernel(Some("board")));
        let parts = Selection::default().parts().unwrap();
        let cases = cases(&[&linux, &guest], &parts);
        let of_guest: Vec<&Case> = cases.iter().filter(|case| case.system == 1).collect();
        assert_eq!(of_guest.len(), 1);
        assert_eq!(of_guest[0].part.experiments, [os_operations::NAME]);
        assert_eq!(of_guest[0].part.load, NONE);
    }

    fn kernel(board: Option<&str>) -> Kernel {
        Kernel {
            name: String::new(),
            release: String::new(),
            image: "/nowhere".into(),
            sha256: String::new(),
            package: None,
            board: board.map(str::to_owned),
        }
    }
}
