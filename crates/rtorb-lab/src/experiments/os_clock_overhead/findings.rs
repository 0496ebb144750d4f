//! What the overheads say, beside what P3 says.

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::Cells;
use rtorb_results::{Derived, Highlight, Labels, Published, labels};

use super::PROGRAM_NS;
use super::equations::FINE_BELOW_NS;
use super::overheads::{Overhead, Overheads};
use super::tick::Tick;
use crate::study::{Conditions, Findings};

pub(super) fn findings(_: &Cells, conditions: &Conditions) -> Findings {
    let found = Overheads::of(&conditions.answers);
    Findings {
        cells: cells(&found),
        highlights: highlights(&found),
        derived: derived(&found, conditions.real_time),
        conclusions: conclusions(&found),
        published: published(&found),
        notes: (!conditions.real_time)
            .then(|| NOT_REAL_TIME.to_owned())
            .into_iter()
            .collect(),
        ..Findings::default()
    }
}

fn cells(found: &Overheads) -> Cells {
    let mut cells = Cells::default();
    for (tick, resolution_ns, overhead) in found.each() {
        let of = |what| of(tick.label(), resolution_ns, what);
        for (number, round) in &overhead.rounds {
            let from_medians = round.from_medians_ns.map(|ns| ns.max(0.0));
            cells.add_computed(&of(OVERHEAD), *number, &round.overheads_ns);
            cells.add_computed(&of(FROM_MEDIANS), *number, from_medians.as_slice());
            cells.add_computed(&of(NO_TICK), *number, &round.no_tick_ns);
            cells.add_computed(&as_part(of(EXECUTION)), *number, &round.times_ns);
        }
    }
    for (number, times_ns) in &found.without_ns {
        cells.add_computed(&as_part(of_none()), *number, times_ns);
    }
    cells
}

fn derived(found: &Overheads, real_time: bool) -> Vec<Derived> {
    let derived = |name: &str, mut labels: Labels, unit: &str, rounds: &ByRound| {
        labels.insert("real_time".to_owned(), real_time.into());
        Derived::of_rounds(name, labels, unit, rounds)
    };
    let of_each = found.each().flat_map(|(tick, resolution_ns, overhead)| {
        let of = |what| of(tick.label(), resolution_ns, what);
        let shares = overhead.shares(resolution_ns);
        let from_medians_ns = overhead.typical_by_round();
        let by_count_ns = overhead.by_count_ns();
        [
            derived(FROM_MEDIANS, of(OVERHEAD), "ns", &from_medians_ns),
            derived(
                "overhead_by_counted_ticks",
                of(OVERHEAD),
                "ns",
                &by_count_ns,
            ),
            derived("tick_share", of(OVERHEAD), "ratio", &shares),
            derived("clamped_share", of(OVERHEAD), "ratio", &overhead.clamped()),
            derived("ticks_off_share", of(EXECUTION), "ratio", &overhead.off()),
        ]
    });
    let shortest = derived("time_without_ticks", of_none(), "ns", &found.shortest_ns());
    of_each.chain([shortest]).flatten().collect()
}

fn highlights(found: &Overheads) -> Vec<Highlight> {
    let of_tick = |tick: Tick| {
        // P3's usual clock, or the nearest finer one of this run.
        let usual = found.by(tick).filter(|(ns, _)| *ns <= MILLISECOND_NS);
        let (resolution_ns, overhead) = usual.last()?;
        Some(Highlight {
            what: format!(
                "what a tick costs every {} us, by {}",
                resolution_ns / 1_000,
                tick.label()
            ),
            value: overhead.typical_ns()? / 1e3,
            unit: "us".to_owned(),
            beside: "QNX on a Pentium 133 or 166: around 5 to 7 us (P3)".to_owned(),
        })
    };
    let share = || {
        let (resolution_ns, finest) = found.by(Tick::Thread).next()?;
        Some(Highlight {
            what: format!(
                "of the CPU goes to a thread that wakes every {} us",
                resolution_ns / 1_000
            ),
            value: finest.shares(resolution_ns).median()? * 100.0,
            unit: "%".to_owned(),
            beside: String::new(),
        })
    };
    let of_ticks = Tick::ALL.into_iter().filter_map(of_tick);
    of_ticks.chain(share()).collect()
}

/// Whether a tick costs less when it comes more rarely, how much of the CPU ticks take, and whether they all came.
fn conclusions(found: &Overheads) -> Vec<String> {
    let of_ticks = Tick::ALL.into_iter().flat_map(|tick| {
        [
            falls(found, tick),
            noise(found, tick),
            by_count(found, tick),
            shares(found, tick),
        ]
    });
    of_ticks.chain([counts(found)]).flatten().collect()
}

/// From the finest resolution to the coarsest at which Eq. (5) is defined and a tick stands out, compared within each round
/// by counted ticks: what Eq. (3) leaves out would be taken for a fall.
fn falls(found: &Overheads, tick: Tick) -> Option<String> {
    let clear: Vec<_> = clear(found, tick).collect();
    let [(fine_ns, finest), .., (coarse_ns, coarsest)] = clear[..] else {
        return None;
    };
    let [finest, coarsest] = [finest, coarsest].map(Overhead::by_count_ns);
    let grown = finest
        .paired(&coarsest, |fine, coarse| coarse - fine)
        .values();
    let falling = grown.iter().filter(|ns| **ns < 0.0).count();
    let growing = grown.iter().filter(|ns| **ns > 0.0).count();
    let rounds = grown.len();
    let verdict = match (falling * 4 >= rounds * 3, growing * 4 >= rounds * 3) {
        (true, _) => "falls as the resolution gets coarser, as P3 found",
        (_, true) => "grows as the resolution gets coarser, against P3",
        _ => "neither falls nor grows with the resolution beyond the noise of this run",
    };
    Some(format!(
        "The overhead of a tick by {} (from medians, by the ticks that were counted) {verdict}: {} us at {} us, {} us at {} us, the coarsest at which it stands out; \
         less at the coarser one in {falling} of {rounds} rounds.",
        tick.label(),
        us(finest.median()?),
        fine_ns / 1_000,
        us(coarsest.median()?),
        coarse_ns / 1_000,
    ))
}

/// Where Eq. (5) is defined, and a tick stands out.
fn clear(found: &Overheads, tick: Tick) -> impl Iterator<Item = (u64, &Overhead)> {
    let defined = found.by(tick).filter(|(ns, _)| *ns < PROGRAM_NS);
    defined.filter(|(_, overhead)| overhead.is_above_noise())
}

/// Where Eq. (5) over e_0 says little of the tick.
fn noise(found: &Overheads, tick: Tick) -> Option<String> {
    let drowned = found.by(tick).filter(|(_, of)| !of.is_above_noise());
    let each = drowned.filter_map(|(resolution_ns, of)| {
        Some(format!(
            "at {} us it says {} us, and {} us of executions without any tick (from medians: {} us)",
            resolution_ns / 1_000,
            us(of.eq_5_ns()?),
            us(of.no_tick_ns()?),
            us(of.typical_ns()?),
        ))
    });
    Some(format!(
        "Eq. (5) over the shortest execution, as P3 has it, is no measure of a tick by {} where few ticks come: {}.",
        tick.label(),
        listed(each, "; ")?
    ))
}

/// Without any equation, where ticks come while ticks are served.
fn by_count(found: &Overheads, tick: Tick) -> Option<String> {
    let fine = found.by(tick).filter(|(ns, _)| *ns <= FINE_BELOW_NS);
    let each = fine.filter_map(|(resolution_ns, of)| {
        Some(format!(
            "{} us instead of {} at {} us",
            us(of.by_count_ns().median()?),
            us(of.typical_ns()?),
            resolution_ns / 1_000
        ))
    });
    Some(format!(
        "By the ticks that were counted, and no equation, one by {} takes {} (Eq. (5) from medians).",
        tick.label(),
        listed(each, ", ")?
    ))
}

fn shares(found: &Overheads, tick: Tick) -> Option<String> {
    let frequent = found.by(tick).filter(|(ns, _)| *ns <= SHARES_UP_TO_NS);
    let each = frequent.filter_map(|(resolution_ns, of)| {
        let percent = of.shares(resolution_ns).median()? * 100.0;
        Some(format!("{percent:.2} % at {} us", resolution_ns / 1_000))
    });
    Some(format!(
        "Ticks by {} take of the CPU: {}.",
        tick.label(),
        listed(each, ", ")?
    ))
}

fn counts(found: &Overheads) -> Option<String> {
    let each = found.each().map(|(.., of)| of.executions_and_off());
    let (all, off) = each.reduce(|(all, off), (more, more_off)| (all + more, off + more_off))?;
    Some(format!(
        "In {off} of {all} executions the ticks that were counted differed by more than one from those that the measured \
         time has room for."
    ))
}

/// P3's text beside the least and the most of the resolutions at which its own equation is defined, and a tick stands out.
fn published(found: &Overheads) -> Vec<Published> {
    let ours = |value: fn(&Overhead) -> Option<f64>| {
        let of = |tick: Tick| {
            let values: Vec<f64> = clear(found, tick).filter_map(|(_, of)| value(of)).collect();
            let least = values.iter().copied().reduce(f64::min)?;
            let most = values.iter().copied().reduce(f64::max)?;
            Some(format!(
                "{} to {} us by {}",
                us(least),
                us(most),
                tick.label()
            ))
        };
        listed(Tick::ALL.into_iter().filter_map(of), ", ")
    };
    let (Some(typical), Some(max)) = (ours(Overhead::typical_ns), ours(Overhead::max_ns)) else {
        return Vec::new();
    };
    let fall = Tick::ALL.into_iter().filter_map(|tick| falls(found, tick));
    let fall = listed(fall, " ").unwrap_or_default();
    let rows = [
        (
            "normal overhead of a tick, QNX on Pentium 133 and 166",
            "around 5 to 7 us",
            &typical,
        ),
        ("maximum, QNX", "around 30 us", &max),
        (
            "normal overhead of a tick, Real-Time Linux on Pentium 133 and 166",
            "around 20 us",
            &typical,
        ),
        ("maximum, Real-Time Linux", "around 60 us", &max),
        (
            "overhead of a tick, OSEKWorks on an MPC 555",
            "around 60 us, 70 us at 0.1 ms",
            &typical,
        ),
        (
            "overhead against the distance of ticks",
            "tends to decrease in general as the duration between clock ticks increases",
            &fall,
        ),
    ];
    let row = |(what, published, ours): (&str, &str, &String)| Published {
        source: "P3 section 5.1".to_owned(),
        what: what.to_owned(),
        published: published.to_owned(),
        ours: ours.clone(),
    };
    rows.map(row).into()
}

fn of(tick: &str, resolution_ns: u64, what: &str) -> Labels {
    labels([
        ("tick", tick.into()),
        ("resolution_us", (resolution_ns / 1_000).into()),
        ("what", what.into()),
    ])
}

fn of_none() -> Labels {
    of("none", 1_000 * super::COARSEST_US as u64, EXECUTION)
}

fn as_part(mut labels: Labels) -> Labels {
    labels.insert("part".to_owned(), EXECUTION.into());
    labels
}

/// In a sentence; `None` without any.
fn listed(all: impl Iterator<Item = String>, between: &str) -> Option<String> {
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then(|| all.join(between))
}

fn us(ns: f64) -> String {
    format!("{:.2}", ns / 1e3)
}

const OVERHEAD: &str = "overhead";
const FROM_MEDIANS: &str = "overhead_from_medians";
const NO_TICK: &str = "overhead_of_no_tick";
const EXECUTION: &str = "execution";
const MILLISECOND_NS: u64 = 1_000_000;
/// Above this, a tick takes less of the CPU than this experiment sees.
const SHARES_UP_TO_NS: u64 = 1_000_000;

const NOT_REAL_TIME: &str = "Program and tick did not have SCHED_FIFO: others ran in between, and the thread may tick late or not \
                             at all while the program runs. The numbers are those of the host, not of its timer.";

#[cfg(test)]
mod tests {
    use super::super::overheads::tests::{answered, measured};
    use super::*;

    fn said(overhead_ns: impl Fn(u64) -> u64) -> String {
        conclusions(&Overheads::of(&measured(overhead_ns))).join("\n")
    }

    #[test]
    fn the_verdict_follows_the_numbers() {
        let falling = said(|resolution_ns| 9_000 - resolution_ns / 10_000);
        assert!(falling.contains("falls as the resolution"), "{falling}");
        assert!(falling.contains("in 3 of 3 rounds"), "{falling}");
        let growing = said(|resolution_ns| 5_000 + resolution_ns / 10_000);
        assert!(growing.contains("against P3"), "{growing}");
    }

    #[test]
    fn what_eq_3_leaves_out_is_not_taken_for_a_fall() {
        // A tick of 32 us at any resolution, ticks among those that are served included.
        let mut answers = Vec::new();
        for round in 0..4 {
            let without = vec![vec![10_500_000], vec![0]];
            answers.push(answered("none", 100_000, round, without));
            for resolution_us in [100, 200, 1_000] {
                let ticks = 10_500_000 / (1_000 * resolution_us - 32_000);
                let samples = vec![vec![10_500_000 + ticks * 32_000], vec![ticks]];
                answers.push(answered("signal", resolution_us, round, samples));
            }
        }
        let said = conclusions(&Overheads::of(&answers)).join("\n");
        assert!(said.contains("neither falls nor grows"), "{said}");
        assert!(said.contains("32.00 us instead of 34.81"), "{said}");
    }

    #[test]
    fn where_other_delays_drown_the_tick_that_is_said_and_not_compared() {
        // Executions without ticks differ by 4 us, of which the median is 2 us: as much as five ticks of 1 us are not.
        let drowned = said(|_| 1_000);
        assert!(
            drowned.contains("no measure of a tick by signal"),
            "{drowned}"
        );
        assert!(
            drowned.contains("at 10000 us it says 3.00 us, and 2.00 us of executions without any tick (from medians: 1.00 us)"),
            "{drowned}"
        );
        assert!(
            drowned.contains("1000 us, the coarsest at which it stands out"),
            "{drowned}"
        );
        assert!(
            drowned.contains("1.00 us instead of 1.00 at 500 us"),
            "{drowned}"
        );
        let clear = said(|_| 7_000);
        assert!(!clear.contains("no measure"), "{clear}");
    }

    #[test]
    fn shares_and_lost_ticks_are_told() {
        let said = said(|_| 5_000);
        assert!(said.contains("1.00 % at 500 us"), "{said}");
        assert!(said.contains("In 0 of 36 executions"), "{said}");
    }

    #[test]
    fn every_published_figure_has_ours_beside_it() {
        let of = |overhead_ns: fn(u64) -> u64| published(&Overheads::of(&measured(overhead_ns)));
        let all = of(|_| 5_000);
        assert!(all.iter().all(|one| !one.ours.is_empty()));
        assert!(all[0].ours.contains("5.00 to 5.00 us by signal"), "{all:?}");
        assert!(published(&Overheads::default()).is_empty());
        // 3 us at 10 ms are not twice the 2 us of executions without any tick: they are left out.
        let drowned = of(|resolution_ns| match resolution_ns {
            10_000_000 => 3_000,
            _ => 5_000,
        });
        let ours = &drowned[0].ours;
        assert!(ours.contains("5.00 to 5.00 us by signal"), "{ours}");
    }

    #[test]
    fn every_kind_has_its_series_and_derived_numbers() {
        let conditions = |answers| Conditions {
            real_time: true,
            answers,
            ..Conditions::default()
        };
        let found = findings(&Cells::default(), &conditions(measured(|_| 7_000)));
        let series = found.cells.series(&Labels::new());
        let of = |what: &str| {
            let mut of = series
                .iter()
                .filter(|one| one.labels["what"] == what.into());
            let one = of.next().expect("it is a series");
            (one.count, one.rounds_p50.clone())
        };
        // Three rounds of 21 ticks.
        assert_eq!(of(FROM_MEDIANS), (3, vec![7_000.0; 3]));
        let median_ns = 2_000.0 / 21.0;
        assert_eq!(of(NO_TICK), (6, vec![median_ns; 3]));
        assert_eq!(of(OVERHEAD), (6, vec![7_000.0 + median_ns; 3]));
        // Of two ticks at three resolutions, and of none.
        assert_eq!((series.len(), found.derived.len()), (25, 31));
        let last = &series[24].labels;
        let [tick, part] = ["tick", "part"].map(|label| last[label].to_string());
        assert_eq!((tick.as_str(), part.as_str()), ("none", EXECUTION));
        assert!(found.notes.is_empty());
        let nothing = findings(&Cells::default(), &Conditions::default());
        assert!(nothing.derived.is_empty() && nothing.conclusions.is_empty());
        assert_eq!(nothing.notes, [NOT_REAL_TIME]);
    }
}
