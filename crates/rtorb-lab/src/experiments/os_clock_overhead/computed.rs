//! The overheads, beside what P3 says.

use rtorb_results::cells::Cells;

use super::overheads::Overheads;
use crate::experiments::prelude::*;
use crate::study::{Computed, Conditions};

pub(super) fn compute(_: &Cells, conditions: &Conditions) -> Computed {
    let found = Overheads::of(&conditions.answers);
    let mut cells = Cells::default();
    for (tick, resolution_ns, number, round) in found.each() {
        let of = |what| of(tick.label(), resolution_ns, ("what", what));
        let part = |part| self::of(tick.label(), resolution_ns, ("part", part));
        let times = [
            (of(OVERHEAD), &round.overheads_ns[..]),
            (of(FROM_MEDIANS), round.from_medians_ns.as_slice()),
            (of(BY_COUNT), round.by_count_ns.as_slice()),
            (of(NO_TICK), &round.no_tick_ns),
            (as_part(of(EXECUTION)), &round.times_ns),
        ];
        for (of, times_ns) in times {
            cells.add_computed(&of, number, times_ns);
        }
        let executions = round.times_ns.len() as u64;
        if let Some(ns) = round.by_count_ns {
            let percent = 100.0 * ns / resolution_ns as f64;
            cells.add_count(&part("tick_share"), number, percent, ("%", executions));
        }
        let off = ("executions", executions);
        cells.add_count(&part("ticks_off"), number, round.off as f64, off);
    }
    let none = of(
        "none",
        1_000 * super::COARSEST_US as u64,
        ("what", EXECUTION),
    );
    for (number, times_ns) in &found.without_ns {
        cells.add_computed(&as_part(none.clone()), *number, times_ns);
    }
    cells.into()
}

fn of(tick: &str, resolution_ns: u64, (label, value): (&str, &str)) -> Labels {
    labels([
        ("tick", tick.into()),
        ("resolution_us", (resolution_ns / 1_000).into()),
        (label, value.into()),
    ])
}

fn as_part(mut labels: Labels) -> Labels {
    labels.insert("part".to_owned(), EXECUTION.into());
    labels
}

const OVERHEAD: &str = "overhead";
const FROM_MEDIANS: &str = "overhead_from_medians";
const BY_COUNT: &str = "overhead_by_counted_ticks";
const NO_TICK: &str = "overhead_of_no_tick";
const EXECUTION: &str = "execution";

const FINEST: &str = "resolution_us=100";

pub(super) const SAYS: Statements = Statements {
    highlights: &[
        // P3's usual clock.
        HighlightOf {
            what: "what a tick costs every 1,000 us, by {tick}",
            of: "what=overhead_from_medians, resolution_us=1000",
            metric: US,
            beside: Words::text("QNX on a Pentium 133 or 166: around 5 to 7 us (P3)"),
        },
        HighlightOf {
            what: "of the CPU goes to a thread that wakes every 100 us",
            of: "part=tick_share, tick=thread, resolution_us=100",
            metric: Metric::of(P50).in_unit("%"),
            beside: Words::text(""),
        },
    ],
    conclusions: &[
        Sentence {
            of: "what=overhead_by_counted_ticks, resolution_us=1000",
            says: Words::with(
                "A tick by {tick} costs {0} every 1,000 us and {1} every 100 us, by the ticks that were counted; {2} by Eq. (5).",
                &[
                    US,
                    US.at(FINEST),
                    US.at("resolution_us=100, what=overhead_from_medians"),
                ],
            ),
        },
        Sentence {
            of: "what=overhead, resolution_us=10000",
            says: Words::with(
                "Eq. (5) over the shortest execution, as P3 has it, says {0} of a tick by {tick} every 10 ms, and {1} of executions without any \
                 tick; from medians {2}.",
                &[
                    US,
                    US.at("what=overhead_of_no_tick"),
                    US.at("what=overhead_from_medians"),
                ],
            ),
        },
    ],
    published: &[
        usual(
            "normal overhead of a tick, QNX on Pentium 133 and 166",
            "around 5 to 7 us",
        ),
        largest("maximum, QNX", "around 30 us"),
        usual(
            "normal overhead of a tick, Real-Time Linux on Pentium 133 and 166",
            "around 20 us",
        ),
        largest("maximum, Real-Time Linux", "around 60 us"),
        usual(
            "overhead of a tick, OSEKWorks on an MPC 555",
            "around 60 us, 70 us at 0.1 ms",
        ),
        PublishedOf {
            source: "P3 section 5.1",
            what: "overhead against the distance of ticks, by {tick} and by counted ticks",
            published: "tends to decrease in general as the duration between clock ticks increases",
            of: "what=overhead_by_counted_ticks, resolution_us=1000",
            ours: FROM_FINE_TO_COARSE,
        },
    ],
    ..Statements::NONE
};

const FROM_FINE_TO_COARSE: Words = Words::with("{0} at 0.1 ms, {1} at 1 ms", &[US.at(FINEST), US]);

/// P3's text beside ours at its finest and its usual clock.
const fn beside(
    what: &'static str,
    published: &'static str,
    of: &'static str,
    numbers: &'static [Metric],
) -> PublishedOf {
    PublishedOf {
        source: "P3 section 5.1",
        what,
        published,
        of,
        ours: Words::with(
            "{0} at 0.1 ms, {1} at 1 ms by signal; {2} and {3} by thread",
            numbers,
        ),
    }
}

const fn usual(what: &'static str, published: &'static str) -> PublishedOf {
    let of = "what=overhead_from_medians, tick=signal, resolution_us=1000";
    beside(what, published, of, &MEDIANS)
}

const fn largest(what: &'static str, published: &'static str) -> PublishedOf {
    let of = "what=overhead, tick=signal, resolution_us=1000";
    beside(what, published, of, &MAXIMA)
}

const MEDIANS: [Metric; 4] = at_clocks(US);
const MAXIMA: [Metric; 4] = at_clocks(MAX_US);

const fn at_clocks(metric: Metric) -> [Metric; 4] {
    [
        metric.at(FINEST),
        metric,
        metric.at("resolution_us=100, tick=thread"),
        metric.at("tick=thread"),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::overheads::tests::measured;
    use super::*;

    #[test]
    fn every_kind_has_its_series() {
        let conditions = Conditions {
            answers: measured(|_| 7_000),
            ..Conditions::default()
        };
        let cells = compute(&Cells::default(), &conditions).cells;
        let found = |label: &str, value: &str| {
            let of = of("signal", 500_000, (label, value));
            let found = cells.get(&of).expect("it is a series");
            (found.count(), found.median_ns().unwrap())
        };
        // Three rounds of 21 ticks.
        assert_eq!(found("what", FROM_MEDIANS), (3, 7_000.0));
        assert_eq!(found("what", BY_COUNT), (3, 7_000.0));
        let median_ns = 2_000.0 / 21.0;
        assert_eq!(found("what", NO_TICK), (6, median_ns));
        assert_eq!(found("what", OVERHEAD), (6, 7_000.0 + median_ns));
        assert_eq!(found("part", "tick_share"), (3, 1.4));
        assert_eq!(found("part", "ticks_off"), (3, 0.0));
        // Of two ticks at three resolutions, and of none.
        let all: Vec<&Labels> = cells.all().map(|(labels, _)| labels).collect();
        assert_eq!(all.len(), 7 * 2 * 3 + 1);
        let none = all[all.len() - 1];
        assert_eq!(
            (&none["tick"], &none["part"]),
            (&"none".into(), &EXECUTION.into())
        );
    }
}
