//! What the jitter says, beside what P3 says: always in counts of configurations, so that what contradicts it is seen.

use rtorb_results::LabelValue;
use rtorb_results::statistics::{Statistics, median};

use super::findings::{Case, Jitters, PUBLISHED, Value, mean, p50};
use super::plan::Rank;

impl Jitters<'_> {
    /// The conclusions, in the order of [`PUBLISHED`].
    pub(super) fn said(&self) -> [Option<String>; PUBLISHED.len()] {
        [
            self.order(),
            self.growth(),
            self.patterns(),
            self.bound(),
            self.lengths(),
            self.resolutions(),
        ]
    }

    /// Highest, middle, lowest: in how many configurations is the jitter of the more urgent task the smaller one? Said for each
    /// statistic, since a mean is that of a few stalls of the host where there are such.
    fn order(&self) -> Option<String> {
        let several = self.configurations().filter(|tasks| tasks.len() > 1);
        let several: Vec<&[Case<'_>]> = several.collect();
        let most = several
            .iter()
            .max_by_key(|tasks| tasks[0].configuration())?;
        let mut counts = Vec::new();
        let mut exceptions = String::new();
        for (name_of_statistic, value) in STATISTICS {
            let is_ordered = |tasks: &&[Case<'_>]| {
                let jitters = tasks.iter().map(|task| value(&task.jitter));
                jitters.is_sorted()
            };
            let (hold, against): (Vec<&[Case<'_>]>, Vec<_>) =
                several.iter().copied().partition(is_ordered);
            counts.push(format!(
                "in {} of {} by the {name_of_statistic}",
                hold.len(),
                several.len()
            ));
            let against = against.iter().take(NAMED_MAX);
            let against: Vec<String> = against
                .map(|tasks| format!("{} ({} us)", name(tasks), values(tasks, value)))
                .collect();
            if !against.is_empty() {
                exceptions += &format!(" Not by the {name_of_statistic}: {}.", against.join("; "));
            }
        }
        Some(format!(
            "The higher the priority, the smaller the jitter, of configurations of several tasks: {}. At {} (most urgent task first): {} us \
             in the median, {} us on average.{exceptions}",
            counts.join(", "),
            name(most),
            values(most, p50),
            values(most, mean),
        ))
    }

    /// With the most timers against the fewest that have a task of this priority.
    fn growth(&self) -> Option<String> {
        let most_timers = |few: &'_ Case<'_>| {
            let alike = |other: &&Case<'_>| {
                let labels = ["priority", "pattern", "resolution_us"];
                let mut labels = labels.into_iter();
                labels.all(|label| other.labels[label] == few.labels[label])
            };
            let timers = |one: &&Case<'_>| one.number("timers");
            let alike = self.together.iter().filter(alike);
            let fewest = alike.clone().min_by_key(timers)?;
            let most = alike.max_by_key(timers)?;
            (timers(&few) == timers(&fewest) && timers(&most) > timers(&few)).then_some(most)
        };
        let compared: Vec<_> = self
            .together
            .iter()
            .filter_map(|few| Some((few, most_timers(few)?)))
            .collect();
        let quotient = |value: Value, few: &Case<'_>, most: &Case<'_>| {
            value(&most.jitter) / value(&few.jitter).max(1.0)
        };
        let counts = STATISTICS.map(|(name_of_statistic, value)| {
            let grown = compared.iter();
            let grown = grown.filter(|(few, most)| quotient(value, few, most) > 1.0);
            format!(
                "in {} of {} by the {name_of_statistic}",
                grown.count(),
                compared.len()
            )
        });
        let of_rank = |rank: Rank| {
            let of = compared
                .iter()
                .filter(|(few, _)| few.is("priority", rank.label()));
            let quotients: Vec<f64> = of.map(|(few, most)| quotient(p50, few, most)).collect();
            Some(format!("{} {:.1} times", rank.label(), median(&quotients)?))
        };
        let by_rank: Vec<String> = Rank::ALL.into_iter().filter_map(of_rank).collect();
        (!compared.is_empty()).then(|| {
            format!(
                "From the fewest timers to the most the jitter grows, of cases of pattern, resolution and priority: {}. The median jitter \
                 becomes (median of the cases): {}.",
                counts.join(", "),
                by_rank.join(", ")
            )
        })
    }

    fn patterns(&self) -> Option<String> {
        let said = |are_few: bool| {
            let harmonic = self.together.iter().filter(|case| {
                case.is("pattern", "harmonic") && (case.number("timers") <= FEW_TIMERS) == are_few
            });
            let quotient = |case: &Case<'_>| {
                let other = self.beside(case, "pattern", "non_harmonic".into())?;
                Some(other.statistics().p50 / case.jitter.p50.max(1.0))
            };
            let quotients: Vec<f64> = harmonic.filter_map(quotient).collect();
            let least = quotients.iter().copied().reduce(f64::min)?;
            let most = quotients.iter().copied().reduce(f64::max)?;
            let median = median(&quotients)?;
            Some(format!("{median:.2} (median; {least:.2} to {most:.2})"))
        };
        let of_few = said(true)?;
        let of_many = said(false).map_or_else(String::new, |many| format!(", with more {many}"));
        Some(format!(
            "Median jitter with non-harmonic intervals, divided by that with harmonic ones: up to {FEW_TIMERS} timers {of_few}{of_many}."
        ))
    }

    fn bound(&self) -> Option<String> {
        let all = self.together.len();
        let twice_ns = |case: &Case<'_>| 2_000.0 * case.number("resolution_us") as f64;
        let bounded = |case: &&Case<'_>| case.jitter.max <= twice_ns(case);
        let within = self.together.iter().filter(bounded).count();
        // Twice the resolution is the shortest interval of either pattern too.
        let in_time = self.together.iter().filter(|case| {
            let lateness = self.beside(case, "what", "lateness".into());
            lateness.is_some_and(|lateness| lateness.statistics().max < twice_ns(case))
        });
        let in_time = in_time.count();
        (all > 0).then(|| {
            format!(
                "The largest jitter is at most twice the resolution in {within} of {all} cases; no release was as late as the shortest \
                 interval in {in_time} of {all}."
            )
        })
    }

    fn lengths(&self) -> Option<String> {
        let of = |resolution_us: i64| {
            let of_resolution = |case: &&Case<'_>| case.number("resolution_us") == resolution_us;
            let mut all: Vec<_> = self.alone.iter().filter(of_resolution).collect();
            all.sort_by_key(|case| case.number("interval_us"));
            let [shortest, .., longest] = all[..] else {
                return None;
            };
            let ends = [shortest, longest].map(|case| {
                let interval_ms = case.number("interval_us") as f64 / 1e3;
                format!("{} us at {interval_ms} ms", us(case.jitter.p50))
            });
            Some(ends.join(" and "))
        };
        let each: Vec<String> = self.resolutions_us().into_iter().filter_map(of).collect();
        (!each.is_empty()).then(|| {
            format!(
                "The median jitter of one task alone, by the length of its interval: {}.",
                each.join("; ")
            )
        })
    }

    fn resolutions(&self) -> Option<String> {
        let [fine, .., coarse] = self.resolutions_us()[..] else {
            return None;
        };
        let at_fine = self
            .together
            .iter()
            .filter(|case| case.number("resolution_us") == fine);
        let quotient = |case: &Case<'_>| {
            let coarse = self.beside(case, "resolution_us", LabelValue::Number(coarse))?;
            Some(coarse.statistics().p50 / case.jitter.p50.max(1.0))
        };
        let quotients: Vec<f64> = at_fine.filter_map(quotient).collect();
        Some(format!(
            "Median jitter at a resolution of {coarse} us divided by that at {fine} us: {:.2} (median of {} cases).",
            median(&quotients)?,
            quotients.len()
        ))
    }

    fn resolutions_us(&self) -> Vec<i64> {
        let all = self
            .together
            .iter()
            .map(|case| case.number("resolution_us"));
        let mut all: Vec<i64> = all.collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// `20 timers, harmonic, 1000 us`.
fn name(tasks: &[Case<'_>]) -> String {
    let (timers, resolution_us, pattern) = tasks[0].configuration();
    format!("{timers} timers, {pattern}, {resolution_us} us")
}

/// The values of observed tasks: `1.2, 3.4 and 5.6`.
fn values(tasks: &[Case<'_>], value: Value) -> String {
    let all: Vec<String> = tasks.iter().map(|task| us(value(&task.jitter))).collect();
    match &all[..] {
        [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        all => all.concat(),
    }
}

fn p99(statistics: &Statistics) -> f64 {
    statistics.p99
}

fn us(ns: f64) -> String {
    format!("{:.1}", ns / 1e3)
}

/// "A relatively small number of timers" (P3 section 5.2).
const FEW_TIMERS: i64 = 5;
const NAMED_MAX: usize = 4;
/// The one that a few stalls do not move first; P3 has the mean.
const STATISTICS: [(&str, Value); 3] = [("median", p50), ("mean", mean), ("99th percentile", p99)];

#[cfg(test)]
mod tests {
    use super::super::findings::findings;
    use super::super::plan::{Configuration, Pattern};
    use super::*;
    use crate::study::Conditions;
    use rtorb_results::cells::Cells;

    /// A round in every configuration, with the same jitter in every sample of a task.
    fn measured(jitter_ns: impl Fn(Configuration, Rank) -> u64) -> Cells {
        let mut cells = Cells::default();
        let mut add = |configuration: Configuration| {
            for rank in configuration.ranks() {
                let ns = jitter_ns(configuration, *rank);
                for (what, ns) in [("jitter", ns), ("lateness", 2 * ns)] {
                    cells.add(&configuration.labels(*rank, what), 0, &[ns; 10], 0);
                }
            }
        };
        for resolution_us in [500, 1_000] {
            for timers in [1, 2, 5, 20] {
                for pattern in Pattern::TOGETHER {
                    add(Configuration {
                        pattern,
                        resolution_us,
                        timers,
                    });
                }
            }
            for multiple in [1, 16] {
                add(Configuration {
                    pattern: Pattern::Alone(multiple),
                    resolution_us,
                    timers: 1,
                });
            }
        }
        cells
    }

    fn said_of(cells: &Cells) -> [String; PUBLISHED.len()] {
        Jitters::of(cells).said().map(Option::unwrap_or_default)
    }

    fn rank_number(rank: Rank) -> u64 {
        match rank {
            Rank::Highest => 1,
            Rank::Middle => 2,
            Rank::Lowest => 3,
        }
    }

    #[test]
    fn an_order_that_holds_is_told_with_its_counts() {
        let [said, ..] = said_of(&measured(|one, rank| {
            rank_number(rank) * 1_000 * one.timers as u64
        }));
        assert!(
            said.contains("in 12 of 12 by the median, in 12 of 12 by the mean"),
            "{said}"
        );
        assert!(said.contains("20.0, 40.0 and 60.0 us"), "{said}");
        assert!(!said.contains("Not by"), "{said}");
    }

    #[test]
    fn what_contradicts_the_order_is_named() {
        let [said, ..] = said_of(&measured(|one, rank| {
            match (one.timers, one.pattern, one.resolution_us) {
                (5, Pattern::NonHarmonic, 500) => 4_000 - rank_number(rank) * 1_000,
                _ => rank_number(rank) * 1_000,
            }
        }));
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
        for (rank, ns) in [(Rank::Highest, 33_000_000), (Rank::Lowest, 3_000)] {
            found.add(&stalled.labels(rank, "jitter"), 1, &[ns], 0);
        }
        let [said, ..] = said_of(&found);
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
        let [_, grows, ..] = said_of(&measured(|one, _| 1_000 * one.timers as u64));
        assert!(
            grows.contains("in 12 of 12 by the median, in 12 of 12 by the mean"),
            "{grows}"
        );
        assert!(
            grows.contains("highest 20.0 times, middle 4.0 times, lowest 10.0 times"),
            "{grows}"
        );
        let [_, shrinks, ..] = said_of(&measured(|one, _| 21_000 - 1_000 * one.timers as u64));
        assert!(shrinks.contains("in 0 of 12 by the median"), "{shrinks}");
    }

    #[test]
    fn patterns_are_compared_up_to_five_timers_and_beyond() {
        let [_, _, said, ..] = said_of(&measured(|one, _| match (one.pattern, one.timers) {
            (Pattern::NonHarmonic, 20) => 3_000,
            _ => 1_000,
        }));
        assert!(said.contains("up to 5 timers 1.00"), "{said}");
        assert!(said.contains("with more 3.00"), "{said}");
    }

    #[test]
    fn the_bound_is_twice_the_resolution() {
        let [_, _, _, said, ..] = said_of(&measured(|one, rank| match (one.timers, rank) {
            (20, Rank::Lowest) => 2_500_000,
            _ => 900_000,
        }));
        // 2 x (1 + 2 + 3 + 3) cases a resolution; the lowest of 20 exceeds both.
        assert!(said.contains("in 32 of 36 cases"), "{said}");
        // Twice the jitter is late: 1.8 ms is later than an interval of 1 ms, and not than one of 2 ms.
        assert!(said.contains("in 16 of 36."), "{said}");
    }

    #[test]
    fn lengths_and_resolutions_are_compared() {
        let found = measured(|one, _| one.shortest_interval_ns() / 100);
        let [.., said, resolutions] = said_of(&found);
        assert!(
            said.contains("5.0 us at 0.5 ms and 80.0 us at 8 ms"),
            "{said}"
        );
        assert!(resolutions.contains("at 500 us: 2.00"));
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        let found = findings(&Cells::default(), &Conditions::default());
        assert!(found.conclusions.is_empty() && found.published.is_empty());
        assert!(found.highlights.is_empty() && found.derived.is_empty());
        assert_eq!(found.notes.len(), 1, "there was no SCHED_FIFO");
    }

    #[test]
    fn every_observed_task_is_a_series_and_no_two_have_the_same_labels() {
        let cells = measured(|_, _| 1_000);
        // For each resolution: 1, 2, 3 and 3 tasks of both patterns, and two that run alone.
        let tasks = 2 * (2 * (1 + 2 + 3 + 3) + 2);
        assert_eq!(cells.all().count(), 2 * tasks);
        let parts = cells
            .all()
            .filter(|(labels, _)| labels.contains_key("part"));
        assert_eq!(parts.count(), tasks);
        let found = findings(&cells, &Conditions::default());
        let what: Vec<&str> = found
            .highlights
            .iter()
            .map(|one| one.what.as_str())
            .collect();
        let highest =
            "median jitter of the highest of 20 tasks, non-harmonic intervals, 1 ms resolution";
        assert_eq!((what.len(), what[0]), (3, highest));
    }

    #[test]
    fn quotients_are_of_the_same_configuration() {
        let cells = measured(|configuration, rank| match (configuration.pattern, rank) {
            (Pattern::NonHarmonic, Rank::Lowest) => 6_000,
            (_, Rank::Lowest) => 3_000,
            _ => 1_000,
        });
        let derived = findings(&cells, &Conditions::default()).derived;
        let values = |name: &str, pattern: &str| -> Vec<f64> {
            let of = derived.iter().filter(|one| {
                one.name == name
                    && one.labels["statistic"] == "p50".into()
                    && one.labels["pattern"] == pattern.into()
                    && one.labels["priority"] == "lowest".into()
            });
            of.map(|one| one.value).collect()
        };
        assert_eq!(values("lowest_to_highest", "harmonic"), [3.0; 6]);
        assert_eq!(values("lowest_to_highest", "non_harmonic"), [6.0; 6]);
        assert_eq!(values("non_harmonic_to_harmonic", "non_harmonic"), [2.0; 6]);
    }
}
