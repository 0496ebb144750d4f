//! The rounds of a run, and what they have of each kind.

use rtorb_results::profile::TICK_PERIOD;
use rtorb_results::rounds::Rounds;
use rtorb_results::{Derived, Labels, ObtainedScheduling, Series, all_real_time, labels};

use super::conclusions;
use super::kinds::{Kind, Kinds, interruptions};
use super::probe::Seen;
use crate::experiment::Outcome;
use crate::processes::gaps::Gap;

/// What is known of the host beside what was measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Surroundings {
    /// Whether there is a hypervisor that could take the CPU.
    pub(super) virtual_machine: bool,
    /// Ticks a second by the kernel's configuration; `None` where that cannot be read.
    pub(super) tick_hz: Option<u32>,
    /// What the kernel counted as stolen from the CPU meanwhile, in milliseconds.
    pub(super) stolen_ms: Option<u64>,
}

/// Everything of a run.
#[derive(Debug, Default)]
pub(super) struct Measured {
    quiet: Vec<Seen>,
    with_releases: Vec<Seen>,
    scheduling: Vec<ObtainedScheduling>,
}

/// What follows from it.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) kinds: Kinds,
    /// All gaps of the quiet rounds in which no other thread ran.
    pub(super) all: Taken,
    /// They again, in the order of [`Kind::ALL`]; thefts also of the rounds with releases, since they are rare.
    pub(super) of_kind: [Taken; 3],
    /// Gaps that hold the interrupt of a release.
    pub(super) releases: Taken,
    /// How many releases there were, those that were not found among them.
    pub(super) released: usize,
    /// Gaps in which another thread ran.
    pub(super) switched: usize,
    pub(super) beyond_room: u64,
}

/// What was taken from the thread.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) rounds: Rounds,
    /// Of each round: gaps, their sum, and for how long it was looked.
    each: Vec<(u64, u64, u64)>,
}

impl Measured {
    pub(super) fn add(
        &mut self,
        seen: Seen,
        with_releases: bool,
        scheduling: &[ObtainedScheduling],
    ) {
        match with_releases {
            true => self.with_releases.push(seen),
            false => self.quiet.push(seen),
        }
        for threads in scheduling {
            // Only the threads that look or sleep are measured; the others wait for them.
            let is_measured =
                threads.process.contains("looks") || threads.process.contains("sleeps");
            if is_measured && !self.scheduling.contains(threads) {
                self.scheduling.push(threads.clone());
            }
        }
    }

    pub(super) fn outcome(&self, surroundings: &Surroundings) -> Outcome {
        let found = self.found(surroundings);
        let real_time = all_real_time(&self.scheduling);
        Outcome {
            scheduling: self.scheduling.clone(),
            highlights: conclusions::highlights(&found),
            series: series(&found, real_time),
            columns: vec!["load".to_owned(), "real_time".to_owned()],
            plots: conclusions::plots(),
            derived: derived(&found, surroundings, real_time),
            conclusions: conclusions::words(&found, surroundings),
            notes: conclusions::notes(&found, real_time),
            ..Outcome::default()
        }
    }

    pub(super) fn found(&self, surroundings: &Surroundings) -> Found {
        let period_ns = surroundings.tick_hz.map(tick_period_ns);
        let kinds = Kinds::of(self.quiet.iter(), surroundings.virtual_machine, period_ns);
        let mut found = Found {
            kinds,
            all: Taken::default(),
            of_kind: Default::default(),
            releases: Taken::default(),
            released: 0,
            switched: 0,
            beyond_room: 0,
        };
        for seen in &self.quiet {
            found.all.add(interruptions(seen), seen.looked_ns);
        }
        for (kind, taken) in Kind::ALL.into_iter().zip(&mut found.of_kind) {
            let more: &[Seen] = match kind {
                Kind::Theft => &self.with_releases,
                Kind::Tick | Kind::Other => &[],
            };
            for seen in self.quiet.iter().chain(more) {
                let of_kind = interruptions(seen).filter(|gap| kinds.kind(gap) == kind);
                taken.add(of_kind, seen.looked_ns);
            }
        }
        for seen in &self.with_releases {
            found
                .releases
                .add(kinds.releases(seen).into_iter(), seen.looked_ns);
            found.released += seen.releases_ns.len();
        }
        for seen in self.quiet.iter().chain(&self.with_releases) {
            found.switched += seen.gaps.len() - interruptions(seen).count();
            found.beyond_room += seen.beyond_room;
        }
        found
    }
}

impl Found {
    pub(super) fn of(&self, kind: Kind) -> &Taken {
        let [tick, other, theft] = &self.of_kind;
        match kind {
            Kind::Tick => tick,
            Kind::Other => other,
            Kind::Theft => theft,
        }
    }

    /// Everything with its label.
    fn each(&self) -> impl Iterator<Item = (&'static str, &Taken)> {
        let kinds = Kind::ALL.into_iter();
        let of_kind = kinds.map(|kind| (kind.label(), self.of(kind)));
        [(ALL, &self.all)]
            .into_iter()
            .chain(of_kind)
            .chain([(RELEASE, &self.releases)])
    }
}

impl Taken {
    fn add<'a>(&mut self, gaps: impl Iterator<Item = &'a Gap>, looked_ns: u64) {
        let lengths_ns: Vec<u64> = gaps.map(|gap| gap.length_ns).collect();
        self.rounds.add(&lengths_ns);
        let sum_ns = lengths_ns.iter().sum();
        self.each.push((lengths_ns.len() as u64, sum_ns, looked_ns));
    }

    pub(super) fn count(&self) -> u64 {
        self.rounds.recorder.count()
    }

    /// In all, in nanoseconds.
    pub(super) fn sum_ns(&self) -> u64 {
        self.each.iter().map(|(_, sum_ns, _)| sum_ns).sum()
    }

    fn looked_ns(&self) -> u64 {
        self.each.iter().map(|(_, _, looked_ns)| looked_ns).sum()
    }

    /// How many came a second.
    pub(super) fn a_second(&self) -> f64 {
        per(self.count() as f64 * 1e9, self.looked_ns())
    }

    /// Which part of the CPU they took.
    pub(super) fn share(&self) -> f64 {
        per(self.sum_ns() as f64, self.looked_ns())
    }
}

fn per(value: f64, looked_ns: u64) -> f64 {
    value / looked_ns.max(1) as f64
}

fn series(found: &Found, real_time: bool) -> Vec<Series> {
    let are_some = found.each().filter(|(_, taken)| taken.count() > 0);
    are_some
        .map(|(what, taken)| taken.rounds.series(of(what, real_time)))
        .collect()
}

fn derived(found: &Found, surroundings: &Surroundings, real_time: bool) -> Vec<Derived> {
    let mut all: Vec<Derived> = Vec::new();
    // Releases come as often as they were asked for.
    let by_themselves = found.each().filter(|(what, _)| *what != RELEASE);
    for (what, taken) in by_themselves.filter(|(_, taken)| !taken.each.is_empty()) {
        let derived =
            |name: &str, unit: &str, value, of_round: fn(&(u64, u64, u64)) -> f64| Derived {
                name: name.to_owned(),
                labels: of(what, real_time),
                unit: unit.to_owned(),
                value,
                rounds: taken.each.iter().map(of_round).collect(),
            };
        all.push(derived(
            A_SECOND,
            "per_second",
            taken.a_second(),
            |(count, _, looked_ns)| per(*count as f64 * 1e9, *looked_ns),
        ));
        all.push(derived(
            SHARE,
            "ratio",
            taken.share(),
            |(_, sum_ns, looked_ns)| per(*sum_ns as f64, *looked_ns),
        ));
    }
    all.extend(tick_period(found, surroundings));
    all
}

/// From tick to tick, and who says so.
fn tick_period(found: &Found, surroundings: &Surroundings) -> Option<Derived> {
    let configured = surroundings.tick_hz.map(tick_period_ns);
    let period_ns = configured.or(found.kinds.ticks.map(|ticks| ticks.period_ns))?;
    let source = match configured {
        Some(_) => "configuration",
        None => "interruptions",
    };
    Some(Derived {
        name: TICK_PERIOD.to_owned(),
        labels: labels([("source", source.into())]),
        unit: "ns".to_owned(),
        value: period_ns as f64,
        rounds: Vec::new(),
    })
}

fn of(what: &str, real_time: bool) -> Labels {
    labels([("what", what.into()), ("real_time", real_time.into())])
}

/// To the nearest nanosecond, as the kernel reckons it.
fn tick_period_ns(hz: u32) -> u64 {
    let hz = u64::from(hz.max(1));
    (1_000_000_000 + hz / 2) / hz
}

/// Values of the label `what` beside those of the kinds.
pub(super) const ALL: &str = "interruption";
pub(super) const RELEASE: &str = "release";
const A_SECOND: &str = "interruptions_per_second";
const SHARE: &str = "interrupted_share";

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(begin_ns: u64, length_ns: u64, switched: bool) -> Gap {
        Gap {
            begin_ns,
            length_ns,
            switched,
        }
    }

    /// A tick of 5 us each 4 ms over 100 ms; with a theft of 2 ms, a switch and an interrupt of 1 us where there are no releases, and
    /// with an interrupt of 3 us for one of two releases where there are.
    fn round(with_releases: bool) -> Seen {
        let mut gaps: Vec<Gap> = (0..25)
            .map(|tick| gap(1_000 + tick * 4_000_000, 5_000, false))
            .collect();
        match with_releases {
            false => gaps.extend([
                gap(97_000_000, 2_000_000, false),
                gap(99_500_000, 300_000, true),
                gap(99_900_000, 1_000, false),
            ]),
            true => gaps.push(gap(98_000_000, 3_000, false)),
        }
        Seen {
            gaps,
            releases_ns: match with_releases {
                true => vec![50_500_000, 97_999_990],
                false => Vec::new(),
            },
            looked_ns: 100_000_000,
            beyond_room: 0,
        }
    }

    fn measured() -> Measured {
        let mut measured = Measured::default();
        for with_releases in [false, true, false, true] {
            measured.add(round(with_releases), with_releases, &[]);
        }
        measured
    }

    fn virtual_machine(tick_hz: Option<u32>) -> Surroundings {
        Surroundings {
            virtual_machine: true,
            tick_hz,
            stolen_ms: Some(0),
        }
    }

    fn derived_of(outcome: &Outcome, name: &str, what: &str) -> f64 {
        let mut all = outcome.derived.iter();
        let of_it =
            |derived: &&Derived| derived.name == name && derived.labels["what"] == what.into();
        all.find(of_it).unwrap().value
    }

    #[test]
    fn each_kind_has_a_series_and_says_how_often_it_comes_and_what_it_takes() {
        let outcome = measured().outcome(&virtual_machine(Some(250)));
        let counts: Vec<(String, u64)> = outcome
            .series
            .iter()
            .map(|series| (series.labels["what"].to_string(), series.count))
            .collect();
        let expected = [
            ("interruption", 54),
            ("tick", 50),
            ("other", 2),
            ("theft", 2),
            ("release", 2),
        ];
        assert_eq!(
            counts,
            expected.map(|(what, count)| (what.to_owned(), count))
        );
        assert_eq!(derived_of(&outcome, A_SECOND, "tick"), 250.0);
        assert_eq!(derived_of(&outcome, SHARE, "tick"), 250.0 * 5_000.0 / 1e9);
        // Thefts are looked for in twice the time.
        assert_eq!(derived_of(&outcome, A_SECOND, "theft"), 5.0);
        let share = derived_of(&outcome, SHARE, ALL);
        assert!((share - (125_000.0 + 2_001_000.0) / 1e8).abs() < 1e-9);
    }

    #[test]
    fn the_period_is_the_kernels_word_or_else_what_was_seen() {
        for (hz, source) in [(Some(250), "configuration"), (None, "interruptions")] {
            let outcome = measured().outcome(&virtual_machine(hz));
            let mut all = outcome.derived.iter();
            let period = all.find(|derived| derived.name == TICK_PERIOD).unwrap();
            assert_eq!(period.value, 4e6);
            assert_eq!(period.labels["source"], source.into());
        }
        assert_eq!(tick_period_ns(300), 3_333_333);
    }

    #[test]
    fn nothing_seen_is_nothing_said() {
        let outcome = Measured::default().outcome(&Surroundings::default());
        assert!(outcome.series.is_empty() && outcome.derived.is_empty());
        assert!(outcome.highlights.is_empty() && outcome.conclusions.is_empty());
    }
}
