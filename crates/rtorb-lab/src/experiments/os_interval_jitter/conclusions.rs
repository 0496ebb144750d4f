//! What the jitter says, beside what P3 says: always in counts of configurations, so that what contradicts it is seen.

use rtorb_results::statistics::{Statistics, median};
use rtorb_results::{Plot, PlotKind, Published, StatisticName, labels};

use super::measured::Measured;
use super::plan::{Configuration, Pattern, Rank};

pub(super) fn conclusions(measured: &Measured) -> Vec<String> {
    [
        order(measured),
        growth(measured),
        patterns(measured),
        bound(measured),
        lengths(measured),
        resolutions(measured),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// P3's words, each with the sentence of ours that decides it.
pub(super) fn published(measured: &Measured) -> Vec<Published> {
    let rows = [
        (
            "jitter and priority, all measured cases",
            "a higher-priority task experienced a smaller jitter, a lower-priority task a larger one",
            order(measured),
        ),
        (
            "jitter and the number of timers, all measured cases",
            "increases with the number of timers in the system",
            growth(measured),
        ),
        (
            "harmonic and non-harmonic intervals",
            "almost the same up to 5 timers; beyond, larger with non-harmonic ones on QNX, smaller on RTLinux and OSEKWorks",
            patterns(measured),
        ),
        (
            "a bound, QNX",
            "always bounded by twice the clock resolution",
            bound(measured),
        ),
        (
            "jitter and the length of the interval",
            "independent of the interval length",
            lengths(measured),
        ),
        (
            "jitter and the clock resolution",
            "QNX: increased as the resolution became coarser; RTLinux: almost no change",
            resolutions(measured),
        ),
    ];
    let beside = |(what, published, ours): (&str, &str, Option<String>)| {
        Some(Published {
            source: "P3 section 5.2".to_owned(),
            what: what.to_owned(),
            published: published.to_owned(),
            ours: ours?,
        })
    };
    rows.into_iter().filter_map(beside).collect()
}

/// Highest, middle, lowest: in how many configurations is the jitter of the more urgent task the smaller one? Said for each
/// statistic, since a mean is that of a few stalls of the host where there are such.
fn order(measured: &Measured) -> Option<String> {
    let of_several: Vec<Configuration> = measured
        .together()
        .into_iter()
        .filter(|configuration| configuration.timers > 1)
        .collect();
    let ordered = |value: Value, configuration: Configuration| {
        let ranks = configuration.ranks().iter();
        let values = ranks.map(|rank| Some(value(&measured.jitter(configuration, *rank)?)));
        let values: Option<Vec<f64>> = values.collect();
        Some(values?.is_sorted())
    };
    let most = of_several
        .iter()
        .max_by_key(|one| (one.timers, one.resolution_us, one.pattern))?;
    let mut counts = Vec::new();
    let mut exceptions = String::new();
    for (name_of_statistic, value) in STATISTICS {
        let (all, hold, against) = count(of_several.iter().copied(), |one| ordered(value, one));
        counts.push(format!("in {hold} of {all} by the {name_of_statistic}"));
        let against = against.iter().filter_map(|one| {
            Some(format!(
                "{} ({} us)",
                name(*one),
                tasks(measured, *one, value)?
            ))
        });
        let against: Vec<String> = against.take(NAMED_MAX).collect();
        if !against.is_empty() {
            exceptions += &format!(" Not by the {name_of_statistic}: {}.", against.join("; "));
        }
    }
    Some(format!(
        "The higher the priority, the smaller the jitter, of configurations of several tasks: {}. {}: {} us in the median, {} us on \
         average.{exceptions}",
        counts.join(", "),
        capitalised(&name(*most)),
        tasks(measured, *most, p50)?,
        tasks(measured, *most, mean)?,
    ))
}

/// With the most timers against the fewest that have a task of this priority.
fn growth(measured: &Measured) -> Option<String> {
    let all = measured.together();
    let mut compared = Vec::new();
    for rank in Rank::ALL {
        let of_rank = all.iter().filter(|one| one.ranks().contains(&rank));
        for few in of_rank.clone() {
            let alike = of_rank
                .clone()
                .filter(|one| (one.pattern, one.resolution_us) == (few.pattern, few.resolution_us));
            let fewest = alike.clone().map(|one| one.timers).min();
            let Some(most) = alike.max_by_key(|one| one.timers) else {
                continue;
            };
            if fewest == Some(few.timers) && most.timers > few.timers {
                compared.push((rank, *few, *most));
            }
        }
    }
    let quotients_by = |value: Value| -> Vec<(Rank, f64)> {
        let quotient = |(rank, few, most): &(Rank, Configuration, Configuration)| {
            let [few, most] = [few, most].map(|one| measured.jitter(*one, *rank));
            Some((*rank, value(&most?) / value(&few?).max(1.0)))
        };
        compared.iter().filter_map(quotient).collect()
    };
    let quotients = quotients_by(p50);
    let counts = STATISTICS.map(|(name_of_statistic, value)| {
        let of = quotients_by(value);
        let grown = of.iter().filter(|(_, quotient)| *quotient > 1.0).count();
        format!("in {grown} of {} by the {name_of_statistic}", of.len())
    });
    let of_rank = |rank: Rank| {
        let of = quotients.iter().filter(|(found, _)| *found == rank);
        let values: Vec<f64> = of.map(|(_, quotient)| *quotient).collect();
        Some(format!("{} {:.1} times", rank.label(), median(&values)?))
    };
    let by_rank: Vec<String> = Rank::ALL.into_iter().filter_map(of_rank).collect();
    (!quotients.is_empty()).then(|| {
        format!(
            "From the fewest timers to the most the jitter grows, of cases of pattern, resolution and priority: {}. The median jitter \
             becomes (median of the cases): {}.",
            counts.join(", "),
            by_rank.join(", ")
        )
    })
}

fn patterns(measured: &Measured) -> Option<String> {
    let mut few = Vec::new();
    let mut many = Vec::new();
    for harmonic in measured.together() {
        if harmonic.pattern != Pattern::Harmonic {
            continue;
        }
        let other = Configuration {
            pattern: Pattern::NonHarmonic,
            ..harmonic
        };
        for rank in harmonic.ranks() {
            let both = [other, harmonic].map(|one| measured.jitter(one, *rank));
            if let [Some(non_harmonic), Some(harmonic_jitter)] = both {
                let quotient = non_harmonic.p50 / harmonic_jitter.p50.max(1.0);
                match harmonic.timers <= FEW_TIMERS {
                    true => few.push(quotient),
                    false => many.push(quotient),
                }
            }
        }
    }
    let said = |quotients: &[f64]| {
        let least = quotients.iter().copied().reduce(f64::min)?;
        let most = quotients.iter().copied().reduce(f64::max)?;
        Some(format!(
            "{:.2} (median; {least:.2} to {most:.2})",
            median(quotients)?
        ))
    };
    let of_few = said(&few)?;
    let of_many = match said(&many) {
        Some(of_many) => format!(", with more {of_many}"),
        None => String::new(),
    };
    Some(format!(
        "Median jitter with non-harmonic intervals, divided by that with harmonic ones: up to {FEW_TIMERS} timers {of_few}{of_many}."
    ))
}

fn bound(measured: &Measured) -> Option<String> {
    let within = |(configuration, rank): (Configuration, Rank)| {
        let jitter = measured.jitter(configuration, rank)?;
        Some(jitter.max <= 2_000.0 * configuration.resolution_us as f64)
    };
    let (all, within, _) = count(cases(measured), within);
    let late = |(configuration, rank): (Configuration, Rank)| {
        let lateness_ns = measured.lateness_max_ns(configuration, rank)?;
        Some(lateness_ns < configuration.shortest_interval_ns() as f64)
    };
    let (_, in_time, _) = count(cases(measured), late);
    (all > 0).then(|| {
        format!(
            "The largest jitter is at most twice the resolution in {within} of {all} cases; no release was as late as the shortest \
             interval in {in_time} of {all}."
        )
    })
}

fn lengths(measured: &Measured) -> Option<String> {
    let of = |resolution_us: u64| {
        let all = measured.alone(resolution_us);
        let [(shortest, short_ns), .., (longest, long_ns)] = all[..] else {
            return None;
        };
        let [short, long] = [shortest, longest].map(|one| measured.jitter(one, Rank::Highest));
        Some(format!(
            "{} us at {} ms and {} us at {} ms",
            us(short?.p50),
            short_ns as f64 / 1e6,
            us(long?.p50),
            long_ns as f64 / 1e6
        ))
    };
    let each: Vec<String> = resolutions_us(measured)
        .into_iter()
        .filter_map(of)
        .collect();
    (!each.is_empty()).then(|| {
        format!(
            "The median jitter of one task alone, by the length of its interval: {}.",
            each.join("; ")
        )
    })
}

fn resolutions(measured: &Measured) -> Option<String> {
    let all = resolutions_us(measured);
    let [fine, .., coarse] = all[..] else {
        return None;
    };
    let quotient = |(configuration, rank): (Configuration, Rank)| {
        let at_coarse = Configuration {
            resolution_us: coarse,
            ..configuration
        };
        let under = measured.jitter(configuration, rank)?.p50;
        Some(measured.jitter(at_coarse, rank)?.p50 / under.max(1.0))
    };
    let at_fine = cases(measured).filter(|(one, _)| one.resolution_us == fine);
    let quotients: Vec<f64> = at_fine.filter_map(quotient).collect();
    Some(format!(
        "Median jitter at a resolution of {coarse} us divided by that at {fine} us: {:.2} (median of {} cases).",
        median(&quotients)?,
        quotients.len()
    ))
}

pub(super) fn plots() -> Vec<Plot> {
    let of = |what: &str| labels([("what", what.into())]);
    vec![
        Plot {
            choose: names(&["resolution_us"]),
            lines: names(&["priority", "pattern"]),
            ..against_timers(
                "jitter-against-timers",
                "Median interval jitter against the number of timers, both patterns",
                vec![StatisticName::P50],
            )
        },
        against_timers(
            "worst-jitter-against-timers",
            "Mean, 99th percentile and maximum of the jitter against the number of timers",
            vec![
                StatisticName::Mean,
                StatisticName::P99,
                StatisticName::Max,
            ],
        ),
        Plot {
            id: "jitter-percentiles".to_owned(),
            title: "The tail of the jitter, by priority".to_owned(),
            caption: "The whole distribution for each of the three tasks.".to_owned(),
            kind: PlotKind::Percentiles,
            of: of("jitter"),
            choose: names(&["pattern", "resolution_us", "timers"]),
            lines: names(&["priority"]),
            log_y: true,
            ..Plot::default()
        },
        Plot {
            id: "lateness-against-timers".to_owned(),
            title: "How late a task wakes, against the number of timers".to_owned(),
            caption: "Lateness: from the release to the wake-up. A task that is always equally late has no jitter.".to_owned(),
            of: labels([("what", "lateness".into()), ("part", "lateness".into())]),
            ..against_timers("", "", vec![StatisticName::P50, StatisticName::Mean, StatisticName::P99])
        },
        Plot {
            id: "jitter-against-interval".to_owned(),
            title: "Interval jitter against the length of the interval, one task alone".to_owned(),
            caption: "P3 Figures 6 and 7 show the same for QNX and RTLinux; the text has no numbers for them.".to_owned(),
            kind: PlotKind::Lines,
            of: of("jitter_alone"),
            lines: names(&["resolution_us"]),
            x: "interval_us".to_owned(),
            x_title: "interval (us)".to_owned(),
            values: vec![
                StatisticName::P50,
                StatisticName::Mean,
                StatisticName::P99,
                StatisticName::Max,
            ],
            log_x: true,
            log_y: true,
            ..Plot::default()
        },
    ]
}

fn against_timers(id: &str, title: &str, values: Vec<StatisticName>) -> Plot {
    Plot {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: "Jitter: how far the distance of two wake-ups deviates from the interval. All tasks on one CPU, each with a priority \
                  of its own; one task alone is the highest, of two there is no middle."
            .to_owned(),
        kind: PlotKind::Lines,
        of: labels([("what", "jitter".into())]),
        choose: names(&["pattern", "resolution_us"]),
        lines: names(&["priority"]),
        x: "timers".to_owned(),
        x_title: "number of timers".to_owned(),
        values,
        log_y: true,
        ..Plot::default()
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// What a reader must know of the numbers.
pub(super) fn notes(measured: &Measured) -> Vec<String> {
    let mut notes = vec![
        "Linux with high-resolution timers has no clock tick that releases tasks: each timer interrupts when it is due. The resolution \
         is therefore that of the intervals and of the moment at which all begin, so that timers expire together as they would at a \
         tick; no tick was added that the kernel does not have."
            .to_owned(),
        "An idle-class thread kept the CPU from sleeping: otherwise what is seen is how long an idle CPU takes to wake.".to_owned(),
        "P3 speaks of averages. Where something else takes the CPU for many intervals, such as the host of a virtual machine, one \
         such stall is a long interval and then a short one for each release that was missed, since none is left out. These make most \
         of a mean, and of the 99th percentile when samples are few. So the conclusions tell the median too, and go by it where they \
         name one number."
            .to_owned(),
    ];
    if !measured.is_real_time() {
        notes.push(NOT_REAL_TIME.to_owned());
    }
    notes
}

type Value = fn(&Statistics) -> f64;

fn mean(statistics: &Statistics) -> f64 {
    statistics.mean
}

fn p50(statistics: &Statistics) -> f64 {
    statistics.p50
}

fn p99(statistics: &Statistics) -> f64 {
    statistics.p99
}

/// Every observed task of Table 3.
fn cases(measured: &Measured) -> impl Iterator<Item = (Configuration, Rank)> {
    let all = measured.together().into_iter();
    all.flat_map(|one| one.ranks().iter().map(move |rank| (one, *rank)))
}

/// How many could be judged, how many hold, and those that do not.
fn count<T: Copy>(
    all: impl Iterator<Item = T>,
    holds: impl Fn(T) -> Option<bool>,
) -> (usize, usize, Vec<T>) {
    let judged: Vec<(T, bool)> = all.filter_map(|one| Some((one, holds(one)?))).collect();
    let against = judged.iter().filter(|(_, holds)| !holds);
    let against: Vec<T> = against.map(|(one, _)| *one).collect();
    (judged.len(), judged.len() - against.len(), against)
}

/// The values of the observed tasks, most urgent first: `1.2, 3.4 and 5.6`.
fn tasks(measured: &Measured, configuration: Configuration, value: Value) -> Option<String> {
    let one = |rank: &Rank| Some(us(value(&measured.jitter(configuration, *rank)?)));
    let all: Option<Vec<String>> = configuration.ranks().iter().map(one).collect();
    let all = all?;
    let (last, before) = all.split_last()?;
    Some(match before.is_empty() {
        true => last.clone(),
        false => format!("{} and {last}", before.join(", ")),
    })
}

fn resolutions_us(measured: &Measured) -> Vec<u64> {
    let mut all: Vec<u64> = cases(measured).map(|(one, _)| one.resolution_us).collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn name(configuration: Configuration) -> String {
    format!(
        "{} timers, {}, {} us",
        configuration.timers,
        configuration.pattern.label().replace('_', "-"),
        configuration.resolution_us
    )
}

fn capitalised(text: &str) -> String {
    format!("At {text} (most urgent task first)")
}

fn us(ns: f64) -> String {
    format!("{:.1}", ns / 1e3)
}

/// "A relatively small number of timers" (P3 section 5.2).
const FEW_TIMERS: usize = 5;
const NAMED_MAX: usize = 4;
/// The one that a few stalls do not move first; P3 has the mean.
const STATISTICS: [(&str, Value); 3] = [("median", p50), ("mean", mean), ("99th percentile", p99)];

const NOT_REAL_TIME: &str = "The tasks did not have SCHED_FIFO: `priority` says what was asked for, and nobody had it. The kernel may \
                             add up to 50 us to each sleep (timer slack).";

#[cfg(test)]
mod tests {
    use super::super::measured::tests::measured;
    use super::*;
    use crate::processes::probe::Answer;
    use rtorb_results::LabelValue;

    fn rank_number(rank: Rank) -> u64 {
        match rank {
            Rank::Highest => 1,
            Rank::Middle => 2,
            Rank::Lowest => 3,
        }
    }

    #[test]
    fn an_order_that_holds_is_told_with_its_counts() {
        let said = order(&measured(|one, rank| {
            rank_number(rank) * 1_000 * one.timers as u64
        }));
        let said = said.unwrap();
        assert!(
            said.contains("in 12 of 12 by the median, in 12 of 12 by the mean"),
            "{said}"
        );
        assert!(said.contains("20.0, 40.0 and 60.0 us"), "{said}");
        assert!(!said.contains("Not by"), "{said}");
    }

    #[test]
    fn what_contradicts_the_order_is_named() {
        let said = order(&measured(|one, rank| {
            match (one.timers, one.pattern, one.resolution_us) {
                (5, Pattern::NonHarmonic, 500) => 4_000 - rank_number(rank) * 1_000,
                _ => rank_number(rank) * 1_000,
            }
        }));
        let said = said.unwrap();
        assert!(said.contains("in 11 of 12 by the mean"), "{said}");
        assert!(
            said.contains("Not by the mean: 5 timers, non-harmonic, 500 us (3.0, 2.0 and 1.0 us)."),
            "{said}"
        );
    }

    #[test]
    fn a_few_stalls_move_the_mean_and_not_the_median() {
        let mut found = measured(|_, rank| rank_number(rank) * 1_000);
        let stalled = Configuration {
            pattern: Pattern::Harmonic,
            resolution_us: 500,
            timers: 2,
        };
        // The first task, the more urgent one, has one stall more than the other.
        let answer = Answer {
            samples: vec![vec![33_000_000], vec![1], vec![3_000], vec![1]],
            ..Answer::default()
        };
        found.add(stalled, answer);
        let said = order(&found).unwrap();
        assert!(
            said.contains("in 12 of 12 by the median, in 11 of 12 by the mean, in 11 of 12 by the 99th percentile"),
            "{said}"
        );
        assert!(
            said.contains("Not by the mean: 2 timers, harmonic, 500 us (3000.9 and 3.0 us)."),
            "{said}"
        );
    }

    #[test]
    fn growth_is_from_the_fewest_timers_to_the_most() {
        let grows = growth(&measured(|one, _| 1_000 * one.timers as u64)).unwrap();
        assert!(
            grows.contains("in 12 of 12 by the median, in 12 of 12 by the mean"),
            "{grows}"
        );
        assert!(
            grows.contains("highest 20.0 times, middle 4.0 times, lowest 10.0 times"),
            "{grows}"
        );
        let shrinks = growth(&measured(|one, _| 21_000 - 1_000 * one.timers as u64)).unwrap();
        assert!(shrinks.contains("in 0 of 12 by the median"), "{shrinks}");
    }

    #[test]
    fn patterns_are_compared_up_to_five_timers_and_beyond() {
        let said = patterns(&measured(|one, _| match (one.pattern, one.timers) {
            (Pattern::NonHarmonic, 20) => 3_000,
            _ => 1_000,
        }));
        let said = said.unwrap();
        assert!(said.contains("up to 5 timers 1.00"), "{said}");
        assert!(said.contains("with more 3.00"), "{said}");
    }

    #[test]
    fn the_bound_is_twice_the_resolution() {
        let said = bound(&measured(|one, rank| match (one.timers, rank) {
            (20, Rank::Lowest) => 2_500_000,
            _ => 900_000,
        }));
        let said = said.unwrap();
        // 2 x (1 + 2 + 3 + 3) cases a resolution; the lowest of 20 exceeds both.
        assert!(said.contains("in 32 of 36 cases"), "{said}");
        // Twice the jitter is late: 1.8 ms is later than an interval of 1 ms, and not than one of 2 ms.
        assert!(said.contains("in 16 of 36."), "{said}");
    }

    #[test]
    fn lengths_and_resolutions_are_compared() {
        let found = measured(|one, _| one.shortest_interval_ns() / 100);
        let said = lengths(&found).unwrap();
        assert!(
            said.contains("5.0 us at 0.5 ms and 80.0 us at 8 ms"),
            "{said}"
        );
        assert!(resolutions(&found).unwrap().contains("at 500 us: 2.00"));
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        assert!(conclusions(&Measured::default()).is_empty());
        assert!(published(&Measured::default()).is_empty());
    }

    #[test]
    fn both_patterns_are_plotted_against_the_number_of_timers() {
        let plot = &plots()[0];
        assert_eq!(plot.x, "timers");
        assert!(plot.lines.contains(&"pattern".to_owned()));
        assert_eq!(plot.of.get("what"), Some(&LabelValue::from("jitter")));
    }
}
