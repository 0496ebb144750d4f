//! What the thread saw of each kind, and what follows from it.

use rtorb_results::cells::{Cells, Samples};
use rtorb_results::profile::TICK_PERIOD;
use rtorb_results::{Derived, Highlight, labels};

use super::kinds::{Kind, Kinds, interruptions};
use super::probe::Seen;
use super::{RELEASES, STOLEN_MS};
use crate::processes::gaps::Gap;
use crate::study::{Answered, Conditions, Findings};

pub(super) fn findings(_: &Cells, conditions: &Conditions) -> Findings {
    let found = Found::of(conditions);
    let conclusions = [
        found.of_ticks(),
        found.of_releases(),
        found.of_thefts(conditions.numbers.get(STOLEN_MS)),
    ];
    Findings {
        highlights: found.highlights(),
        derived: found.derived(conditions),
        conclusions: conclusions.into_iter().flatten().collect(),
        notes: found.notes(conditions.real_time),
        cells: found.cells,
        ..Findings::default()
    }
}

/// Everything of a run.
struct Found {
    kinds: Kinds,
    /// The lengths of gaps by the label `what`, of kinds that there are.
    cells: Cells,
    /// The same values of `what`, and what was taken in each turn.
    taken: Vec<(&'static str, Vec<Taken>)>,
    /// How many releases there were, those that were not found among them.
    released: usize,
    /// Gaps in which another thread ran.
    switched: usize,
    beyond_room: u64,
}

/// What was taken from the thread while it looked.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    count: u64,
    sum_ns: u64,
    looked_ns: u64,
}

impl Taken {
    fn all(turns: &[Self]) -> Self {
        turns.iter().fold(Self::default(), |all, turn| Self {
            count: all.count + turn.count,
            sum_ns: all.sum_ns + turn.sum_ns,
            looked_ns: all.looked_ns + turn.looked_ns,
        })
    }

    /// How many came a second.
    fn a_second(&self) -> f64 {
        self.count as f64 * 1e9 / self.looked_ns.max(1) as f64
    }

    /// Which part of the CPU they took.
    fn share(&self) -> f64 {
        self.sum_ns as f64 / self.looked_ns.max(1) as f64
    }
}

impl Found {
    fn of(conditions: &Conditions) -> Self {
        let turns = |are_quiet: bool| -> Vec<(usize, Seen)> {
            let is_quiet = |kept: &&Answered| kept.labels[RELEASES] == 0u64.into();
            let of = conditions.answers.iter();
            let of = of.filter(|kept| is_quiet(kept) == are_quiet);
            // Each has a number of its own.
            let number = |round| 2 * round + usize::from(!are_quiet);
            of.filter_map(|kept| Some((number(kept.round), Seen::of(&kept.answer)?)))
                .collect()
        };
        let (quiet, with_releases) = (turns(true), turns(false));
        let all = || quiet.iter().chain(&with_releases);
        let period_ns = conditions.tick_hz.map(tick_period_ns);
        let of_quiet = quiet.iter().map(|(_, seen)| seen);
        let kinds = Kinds::of(of_quiet, conditions.virtual_machine, period_ns);
        let of_releases = with_releases.iter().map(|(_, seen)| seen.releases_ns.len());
        let switched = all().map(|(_, seen)| seen.gaps.len() - interruptions(seen).count());
        let mut found = Self {
            kinds,
            cells: Cells::default(),
            taken: Vec::new(),
            released: of_releases.sum(),
            switched: switched.sum(),
            beyond_room: all().map(|(_, seen)| seen.beyond_room).sum(),
        };
        found.add(ALL, &quiet, |seen| interruptions(seen).collect());
        for kind in Kind::ALL {
            let of_kind = |seen| -> Vec<&Gap> {
                let all = interruptions(seen);
                all.filter(|gap| kinds.kind(gap) == kind).collect()
            };
            match kind {
                // Of all turns, since they are rare.
                Kind::Theft => found.add(kind.label(), all(), of_kind),
                Kind::Tick | Kind::Other => found.add(kind.label(), &quiet, of_kind),
            }
        }
        found.add(RELEASE, &with_releases, |seen| kinds.releases(seen));
        found
    }

    fn add<'a>(
        &mut self,
        what: &'static str,
        turns: impl IntoIterator<Item = &'a (usize, Seen)>,
        gaps: impl Fn(&'a Seen) -> Vec<&'a Gap>,
    ) {
        let mut taken = Vec::new();
        let mut all = Vec::new();
        for (number, seen) in turns {
            let lengths_ns = gaps(seen).into_iter().map(|gap| gap.length_ns);
            let lengths_ns: Vec<u64> = lengths_ns.collect();
            taken.push(Taken {
                count: lengths_ns.len() as u64,
                sum_ns: lengths_ns.iter().sum(),
                looked_ns: seen.looked_ns,
            });
            all.push((*number, lengths_ns));
        }
        if taken.iter().any(|turn| turn.count > 0) {
            for (number, lengths_ns) in all {
                let labels = labels([("what", what.into())]);
                self.cells.add(&labels, number, &lengths_ns, 0);
            }
        }
        self.taken.push((what, taken));
    }

    fn taken(&self, what: &str) -> Taken {
        let mut all = self.taken.iter();
        let found = all.find(|(found, _)| *found == what);
        found.map_or_else(Taken::default, |(_, turns)| Taken::all(turns))
    }

    /// `None` of what there is not.
    fn samples(&self, what: &str) -> Option<&Samples> {
        let wanted = [("what", what.into())];
        let mut found = self.cells.with(&wanted);
        found.next().map(|(_, samples)| samples)
    }

    fn derived(&self, conditions: &Conditions) -> Vec<Derived> {
        // Releases come as often as they were asked for.
        let by_themselves = self
            .taken
            .iter()
            .filter(|(what, turns)| *what != RELEASE && !turns.is_empty());
        let each = by_themselves.flat_map(|(what, turns)| {
            let derived = |name: &str, unit: &str, value: fn(&Taken) -> f64| Derived {
                name: name.to_owned(),
                labels: labels([
                    ("what", (*what).into()),
                    ("real_time", conditions.real_time.into()),
                ]),
                unit: unit.to_owned(),
                value: value(&Taken::all(turns)),
                rounds: turns.iter().map(value).collect(),
            };
            [
                derived(A_SECOND, "per_second", Taken::a_second),
                derived(SHARE, "ratio", Taken::share),
            ]
        });
        each.chain(self.tick_period(conditions.tick_hz)).collect()
    }

    /// From tick to tick, and who says so.
    fn tick_period(&self, tick_hz: Option<u32>) -> Option<Derived> {
        let (period_ns, source) = match (tick_hz, self.kinds.ticks) {
            (Some(hz), _) => (tick_period_ns(hz), "configuration"),
            (None, ticks) => (ticks?.period_ns, "interruptions"),
        };
        Some(Derived {
            name: TICK_PERIOD.to_owned(),
            labels: labels([("source", source.into())]),
            unit: "ns".to_owned(),
            value: period_ns as f64,
            rounds: Vec::new(),
        })
    }

    fn highlights(&self) -> Vec<Highlight> {
        let lengths = [
            ("a tick of the kernel", Kind::Tick.label()),
            ("the interrupt of a release", RELEASE),
            ("other interruptions", Kind::Other.label()),
            ("taken by the hypervisor at a time", Kind::Theft.label()),
        ];
        let lengths = lengths.into_iter().filter_map(|(name, what)| {
            let of = self.samples(what)?.statistics();
            let (p99_us, max_us) = (of.p99 / 1e3, of.max / 1e3);
            Some(Highlight {
                what: name.to_owned(),
                value: of.p50 / 1e3,
                unit: "us".to_owned(),
                beside: format!("99 of 100 at most {p99_us:.1} us, at most {max_us:.1} us"),
            })
        });
        let all = self.taken(ALL);
        let share = (all.count > 0).then(|| Highlight {
            what: "of the CPU goes to interruptions".to_owned(),
            value: all.share() * 100.0,
            unit: "%".to_owned(),
            beside: format!("{:.0} a second", all.a_second()),
        });
        lengths.chain(share).collect()
    }

    fn of_ticks(&self) -> Option<String> {
        Some(format!(
            "The kernel's tick comes each {:.3} ms and takes {} from the most urgent thread: {:.3} % of the CPU.",
            self.kinds.ticks?.period_ns as f64 / 1e6,
            self.lengths(Kind::Tick.label())?,
            self.taken(Kind::Tick.label()).share() * 100.0
        ))
    }

    fn of_releases(&self) -> Option<String> {
        Some(format!(
            "The interrupt that ends the sleep of a less urgent thread takes {} from the most urgent one; {} of {} were found.",
            self.lengths(RELEASE)?,
            self.taken(RELEASE).count,
            self.released
        ))
    }

    fn of_thefts(&self, stolen_ms: Option<&f64>) -> Option<String> {
        let min_us = self.kinds.theft_ns_min? as f64 / 1e3;
        let thefts = self.taken(Kind::Theft.label());
        let seen = match self.lengths(Kind::Theft.label()) {
            None => format!("No interruption was longer than {min_us:.0} us."),
            Some(lengths) => format!(
                "{} interruptions were longer than {min_us:.0} us, at least ten times a tick, and are taken for the hypervisor's: {lengths}, {:.1} ms \
                 in all.",
                thefts.count,
                thefts.sum_ns as f64 / 1e6
            ),
        };
        let counted = stolen_ms.map_or_else(String::new, |ms| {
            format!(
                " The kernel counted {ms:.0} ms as stolen from this CPU meanwhile, the pauses between rounds included."
            )
        });
        Some(seen + &counted)
    }

    fn lengths(&self, what: &str) -> Option<String> {
        let of = self.samples(what)?.statistics();
        Some(format!(
            "{:.1} us (median; 99 of 100 at most {:.1} us, all at most {:.1} us)",
            of.p50 / 1e3,
            of.p99 / 1e3,
            of.max / 1e3
        ))
    }

    fn notes(&self, real_time: bool) -> Vec<String> {
        let Self {
            switched,
            beyond_room,
            ..
        } = self;
        let notes = [
            (!real_time).then(|| NO_FIFO.to_owned()),
            self.kinds.ticks.is_none().then(|| NO_TICK.to_owned()),
            (*switched > 0).then(|| {
                format!(
                    "In {switched} further gaps another thread ran: they are no interruptions, and in no series."
                )
            }),
            (*beyond_room > 0).then(|| {
                format!(
                    "{beyond_room} gaps had no room: the rounds in which there were more than fit are those with most interruptions."
                )
            }),
        ];
        notes.into_iter().flatten().collect()
    }
}

/// The period of the tick, rounded to the nearest nanosecond as the kernel does.
fn tick_period_ns(hz: u32) -> u64 {
    let hz = u64::from(hz.max(1));
    (1_000_000_000 + hz / 2) / hz
}

/// Values of the label `what` beside those of the kinds.
const ALL: &str = "interruption";
const RELEASE: &str = "release";
const A_SECOND: &str = "interruptions_per_second";
const SHARE: &str = "interrupted_share";

const NO_FIFO: &str = "Without SCHED_FIFO on one CPU other threads may run instead of the one that looks: gaps with a switch are left out, \
                       but interrupts while they ran were not seen.";
const NO_TICK: &str = "No tick was found at a regular distance: the kernel may be one that has none while a single thread computes \
                       (nohz_full), or too many came late.";

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
    fn turn(with_releases: bool) -> Seen {
        let mut gaps: Vec<Gap> = (0..25)
            .map(|tick| gap(1_000 + tick * 4_000_000, 5_000, false))
            .collect();
        if !with_releases {
            gaps.extend([
                gap(97_000_000, 2_000_000, false),
                gap(99_500_000, 300_000, true),
                gap(99_900_000, 1_000, false),
            ])
        } else {
            gaps.push(gap(98_000_000, 3_000, false))
        }
        Seen {
            gaps,
            releases_ns: if with_releases {
                vec![50_500_000, 97_999_990]
            } else {
                Vec::new()
            },
            looked_ns: 100_000_000,
            beyond_room: 0,
        }
    }

    /// Two rounds in a virtual machine.
    fn found(tick_hz: Option<u32>) -> Findings {
        let turns = [(0, false), (0, true), (1, true), (1, false)];
        let answers = turns.map(|(round, with_releases)| Answered {
            labels: labels([(RELEASES, if with_releases { 16u64 } else { 0 }.into())]),
            round,
            answer: turn(with_releases).to_answer(),
        });
        let conditions = Conditions {
            real_time: true,
            virtual_machine: true,
            tick_hz,
            numbers: [(STOLEN_MS.to_owned(), 10.0)].into(),
            answers: answers.into(),
            ..Conditions::default()
        };
        findings(&Cells::default(), &conditions)
    }

    fn derived_of(found: &Findings, name: &str, what: &str) -> f64 {
        let mut all = found.derived.iter();
        let of_it =
            |derived: &&Derived| derived.name == name && derived.labels["what"] == what.into();
        all.find(of_it).unwrap().value
    }

    #[test]
    fn each_kind_has_a_series_and_says_how_often_it_comes_and_what_it_takes() {
        let found = found(Some(250));
        let counts: Vec<(String, u64, usize)> = found
            .cells
            .series(&labels([]))
            .iter()
            .map(|series| {
                let what = series.labels["what"].to_string();
                (what, series.count, series.rounds_p50.len())
            })
            .collect();
        let expected = [
            ("interruption", 54, 2),
            ("tick", 50, 2),
            ("other", 2, 2),
            ("theft", 2, 2),
            ("release", 2, 2),
        ];
        assert_eq!(
            counts,
            expected.map(|(what, count, rounds)| (what.to_owned(), count, rounds))
        );
        assert_eq!(derived_of(&found, A_SECOND, "tick"), 250.0);
        assert_eq!(derived_of(&found, SHARE, "tick"), 250.0 * 5_000.0 / 1e9);
        // Thefts are looked for in twice the time.
        assert_eq!(derived_of(&found, A_SECOND, "theft"), 5.0);
        let share = derived_of(&found, SHARE, ALL);
        assert!((share - (125_000.0 + 2_001_000.0) / 1e8).abs() < 1e-9);
    }

    #[test]
    fn ticks_releases_and_thefts_are_told_and_so_is_what_is_no_interruption() {
        let found = found(Some(250));
        let [ticks, releases, thefts] = &found.conclusions[..] else {
            panic!("{:?}", found.conclusions);
        };
        assert!(ticks.contains("each 4.000 ms and takes 5.0 us"), "{ticks}");
        assert!(releases.contains("2 of 4 were found"), "{releases}");
        assert!(
            thefts.contains("2 interruptions were longer than 50 us"),
            "{thefts}"
        );
        assert!(thefts.contains("counted 10 ms as stolen"), "{thefts}");
        assert!(
            found.notes[0].contains("In 2 further gaps"),
            "{:?}",
            found.notes
        );
        assert_eq!((found.highlights.len(), found.notes.len()), (5, 1));
    }

    #[test]
    fn the_period_is_the_kernels_word_or_else_what_was_seen() {
        for (hz, source) in [(Some(250), "configuration"), (None, "interruptions")] {
            let found = found(hz);
            let mut all = found.derived.iter();
            let period = all.find(|derived| derived.name == TICK_PERIOD).unwrap();
            assert_eq!(period.value, 4e6);
            assert_eq!(period.labels["source"], source.into());
        }
        assert_eq!(tick_period_ns(300), 3_333_333);
    }

    #[test]
    fn nothing_seen_is_nothing_said() {
        let found = findings(&Cells::default(), &Conditions::default());
        assert!(found.cells.all().next().is_none() && found.derived.is_empty());
        assert!(found.highlights.is_empty() && found.conclusions.is_empty());
    }
}
