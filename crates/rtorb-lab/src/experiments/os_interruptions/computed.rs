//! What the thread saw of each kind: the lengths of gaps, how often they come and what they take of the CPU.

use rtorb_results::cells::Cells;
use rtorb_results::profile::TICK_PERIOD;

use super::RELEASES;
use super::kinds::{Kind, Kinds, interruptions};
use super::probe::Seen;
use crate::experiments::prelude::*;
use crate::processes::gaps::Gap;
use crate::study::{Answered, Computed, Conditions};

pub(super) fn compute(_: &Cells, conditions: &Conditions) -> Computed {
    let [quiet, with_releases] = [true, false].map(|are_quiet| turns(conditions, are_quiet));
    let all = || quiet.iter().chain(&with_releases);
    let period_ns = conditions.tick_hz.map(tick_period_ns);
    let of_quiet = quiet.iter().map(|(_, seen)| seen);
    let kinds = Kinds::of(of_quiet, conditions.virtual_machine, period_ns);
    let mut cells = Cells::default();
    add(&mut cells, ALL, &quiet, |seen| {
        interruptions(seen).collect()
    });
    for kind in Kind::ALL {
        let of_kind = |seen| -> Vec<&Gap> {
            let all = interruptions(seen);
            all.filter(|gap| kinds.kind(gap) == kind).collect()
        };
        match kind {
            // Of all turns, since they are rare.
            Kind::Theft => add(&mut cells, kind.label(), all(), of_kind),
            Kind::Tick | Kind::Other => add(&mut cells, kind.label(), &quiet, of_kind),
        }
    }
    add(&mut cells, RELEASE, &with_releases, |seen| {
        kinds.releases(seen)
    });
    add_found(&mut cells, &kinds, &with_releases);
    add_tick_period(&mut cells, &kinds, conditions.tick_hz);
    let seen: Vec<&Seen> = all().map(|(_, seen)| seen).collect();
    Computed {
        notes: notes(&kinds, &seen),
        cells,
    }
}

/// The turns with or without releases; each has a number of its own.
fn turns(conditions: &Conditions, are_quiet: bool) -> Vec<(usize, Seen)> {
    let is_quiet = |kept: &&Answered| kept.labels[RELEASES] == 0u64.into();
    let of = conditions.answers.iter();
    let of = of.filter(|kept| is_quiet(kept) == are_quiet);
    let number = |round| 2 * round + usize::from(!are_quiet);
    of.filter_map(|kept| Some((number(kept.round), Seen::of(&kept.answer)?)))
        .collect()
}

/// The lengths of gaps, how many came a second and their share of the CPU, of what there is.
fn add<'a>(
    cells: &mut Cells,
    what: &'static str,
    turns: impl IntoIterator<Item = &'a (usize, Seen)>,
    gaps: impl Fn(&'a Seen) -> Vec<&'a Gap>,
) {
    let lengths = |(number, seen): &'a (usize, Seen)| {
        let lengths_ns = gaps(seen).into_iter().map(|gap| gap.length_ns);
        (*number, seen.looked_ns, lengths_ns.collect::<Vec<u64>>())
    };
    let turns: Vec<(usize, u64, Vec<u64>)> = turns.into_iter().map(lengths).collect();
    if turns.iter().all(|(_, _, lengths_ns)| lengths_ns.is_empty()) {
        return;
    }
    let of = |part: Option<&'static str>| {
        let mut of = labels([("what", what.into())]);
        of.extend(part.map(|part| ("part".to_owned(), part.into())));
        of
    };
    for (number, looked_ns, lengths_ns) in turns {
        cells.add(&of(None), number, &lengths_ns, 0);
        // Releases come as often as they were asked for.
        if what != RELEASE {
            let count = lengths_ns.len() as u64;
            let looked_ns = looked_ns.max(1) as f64;
            let a_second = count as f64 * 1e9 / looked_ns;
            let percent = 100.0 * lengths_ns.iter().sum::<u64>() as f64 / looked_ns;
            cells.add_count(&of(Some(RATE)), number, a_second, ("per_second", count));
            cells.add_count(&of(Some(SHARE)), number, percent, ("%", count));
        }
    }
}

/// How many of the releases were found.
fn add_found(cells: &mut Cells, kinds: &Kinds, with_releases: &[(usize, Seen)]) {
    let of = labels([("what", RELEASE.into()), ("part", FOUND.into())]);
    for (number, seen) in with_releases {
        let all = seen.releases_ns.len();
        let percent = 100.0 * kinds.releases(seen).len() as f64 / all.max(1) as f64;
        cells.add_count(&of, *number, percent, ("%", all as u64));
    }
}

/// From tick to tick, and who says so.
fn add_tick_period(cells: &mut Cells, kinds: &Kinds, tick_hz: Option<u32>) {
    let found = match (tick_hz, kinds.ticks) {
        (Some(hz), _) => Some((tick_period_ns(hz), "configuration")),
        (None, ticks) => ticks.map(|ticks| (ticks.period_ns, "interruptions")),
    };
    if let Some((period_ns, source)) = found {
        let of = labels([("part", TICK_PERIOD.into()), ("source", source.into())]);
        cells.add(&of, 0, &[period_ns], 0);
    }
}

fn notes(kinds: &Kinds, seen: &[&Seen]) -> Vec<String> {
    let switched = seen
        .iter()
        .map(|seen| seen.gaps.len() - interruptions(seen).count());
    let switched: usize = switched.sum();
    let beyond_room: u64 = seen.iter().map(|seen| seen.beyond_room).sum();
    let notes = [
        kinds.ticks.is_none().then(|| NO_TICK.to_owned()),
        (switched > 0).then(|| {
            format!(
                "In {switched} further gaps another thread ran: they are no interruptions, and in no series."
            )
        }),
        (beyond_room > 0).then(|| {
            format!(
                "{beyond_room} gaps had no room: the rounds in which there were more than fit are those with most interruptions."
            )
        }),
    ];
    notes.into_iter().flatten().collect()
}

/// The period of the tick, rounded to the nearest nanosecond as the kernel does.
fn tick_period_ns(hz: u32) -> u64 {
    let hz = u64::from(hz.max(1));
    (1_000_000_000 + hz / 2) / hz
}

const OF_CPU: Metric = Metric::of(P50).in_unit("%");

pub(super) const SAYS: Statements = Statements {
    highlights: &[
        length("a tick of the kernel", "what=tick, !part"),
        length("the interrupt of a release", "what=release, !part"),
        HighlightOf {
            what: "of the CPU goes to interruptions",
            of: "what=interruption, part=share",
            metric: OF_CPU,
            beside: Words::with(
                "{0}",
                &[Metric::of(P50).at("part=rate").in_unit("per_second")],
            ),
        },
    ],
    derived: &[DerivedOf {
        name: TICK_PERIOD,
        of: "part=tick_period",
        without: &["part"],
        metric: Metric::of(P50),
    }],
    conclusions: &[
        Sentence {
            of: "what=tick, !part",
            says: Words::with(
                "The kernel's tick comes each {0} and takes {1} from the most urgent thread (median; at most {2}): {3} of the CPU.",
                &[
                    Metric::of(P50)
                        .at("-what, part=tick_period")
                        .with(&[Times(1e-6)])
                        .in_unit("ms"),
                    US,
                    MAX_US,
                    OF_CPU.at("part=share"),
                ],
            ),
        },
        Sentence {
            of: "what=release, !part",
            says: Words::with(
                "The interrupt that ends the sleep of a less urgent thread takes {0} from the most urgent one (median; at most {1}); {2} of \
                 them were found.",
                &[US, MAX_US, OF_CPU.at("part=found")],
            ),
        },
        Sentence {
            of: "what=theft, !part",
            says: Words::with(
                "Interruptions of at least ten ticks are taken for the hypervisor's: {0} at a time (median), at most {1}.",
                &[US, MAX_US],
            ),
        },
    ],
    ..Statements::NONE
};

const fn length(what: &'static str, of: &'static str) -> HighlightOf {
    HighlightOf {
        what,
        of,
        metric: US,
        beside: Words::with("at most {0}", &[MAX_US]),
    }
}

/// Values of the label `what` beside those of the kinds.
const ALL: &str = "interruption";
const RELEASE: &str = "release";
/// Values of the label `part`.
const RATE: &str = "rate";
const SHARE: &str = "share";
const FOUND: &str = "found";

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
    fn found(tick_hz: Option<u32>) -> Computed {
        let turns = [(0, false), (0, true), (1, true), (1, false)];
        let answers = turns.map(|(round, with_releases)| Answered {
            labels: labels([(RELEASES, if with_releases { 16u64 } else { 0 }.into())]),
            round,
            answer: turn(with_releases).to_answer(),
        });
        let conditions = Conditions {
            virtual_machine: true,
            tick_hz,
            answers: answers.into(),
            ..Conditions::default()
        };
        compute(&Cells::default(), &conditions)
    }

    /// The median of the rounds.
    fn median(found: &Computed, what: &str, part: &str) -> Option<f64> {
        let of = labels([("what", what.into()), ("part", part.into())]);
        found.cells.get(&of)?.median_ns()
    }

    #[test]
    fn each_kind_has_a_series_and_says_how_often_it_comes_and_what_it_takes() {
        let found = found(Some(250));
        let lengths = found.cells.all();
        let counts: Vec<(String, u64, usize)> = lengths
            .filter(|(labels, _)| !labels.contains_key("part"))
            .map(|(labels, samples)| {
                let rounds = samples.rounds(|round| round.p50).len();
                (labels["what"].to_string(), samples.count(), rounds)
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
        assert_eq!(median(&found, "tick", RATE), Some(250.0));
        assert_eq!(median(&found, "tick", SHARE), Some(0.125));
        // Thefts are looked for in turns with releases too, which have none.
        assert_eq!(median(&found, "theft", RATE), Some(5.0));
        let share = median(&found, ALL, SHARE).unwrap_or_default();
        assert!((share - (125.0 + 2_001.0) / 1e3).abs() < 1e-9, "{share}");
        assert_eq!(median(&found, RELEASE, FOUND), Some(50.0));
        assert_eq!(median(&found, RELEASE, RATE), None);
        assert!(
            found.notes[0].contains("In 2 further gaps"),
            "{:?}",
            found.notes
        );
    }

    #[test]
    fn the_period_is_the_kernels_word_or_else_what_was_seen() {
        for (hz, source) in [(Some(250), "configuration"), (None, "interruptions")] {
            let of = labels([("part", TICK_PERIOD.into()), ("source", source.into())]);
            let period = found(hz).cells.get(&of).and_then(|cell| cell.median_ns());
            assert_eq!(period, Some(4e6));
        }
        assert_eq!(tick_period_ns(300), 3_333_333);
    }

    #[test]
    fn nothing_seen_is_nothing_said() {
        let found = compute(&Cells::default(), &Conditions::default());
        assert!(found.cells.all().next().is_none());
        assert_eq!(found.notes, [NO_TICK]);
    }
}
