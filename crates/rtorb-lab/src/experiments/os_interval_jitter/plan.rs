//! Which timers run together: P3 Table 3.

use super::probe::Task;
use crate::experiments::prelude::*;

/// How the intervals of the tasks go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Pattern {
    /// Each interval is a multiple of every shorter one.
    Harmonic,
    /// Intervals that differ have no common factor, in multiples of the resolution.
    NonHarmonic,
    /// One task alone, with an interval of so many resolutions: jitter against the length of the interval.
    Alone(u64),
}

impl Pattern {
    /// The two of Table 3.
    pub(super) const TOGETHER: [Self; 2] = [Self::Harmonic, Self::NonHarmonic];

    /// The value of the label `pattern`.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Harmonic => "harmonic",
            Self::NonHarmonic => "non_harmonic",
            Self::Alone(_) => "alone",
        }
    }

    /// The shortest first. The two patterns release about as often in all (15/16 and 601/630 of the resolution's rate), so
    /// that they differ in nothing but the pattern.
    fn multiples(self) -> [u64; 4] {
        match self {
            Self::Harmonic => [2, 4, 8, 16],
            Self::NonHarmonic => [2, 5, 7, 9],
            Self::Alone(multiple) => [multiple; 4],
        }
    }
}

/// Which of the tasks is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Highest,
    Middle,
    Lowest,
}

impl Rank {
    pub(super) const ALL: [Self; 3] = [Self::Highest, Self::Middle, Self::Lowest];

    /// The value of the label `priority`, and the name of the task's thread.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Highest => "highest",
            Self::Middle => "middle",
            Self::Lowest => "lowest",
        }
    }
}

/// Tasks that run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Configuration {
    pub(super) pattern: Pattern,
    pub(super) resolution_us: u64,
    pub(super) timers: usize,
}

impl Configuration {
    /// The tasks of a cell.
    pub(super) fn of(cell: &Cell<'_>) -> Self {
        let alone = |multiple: &u64| cell.is("pattern", &format!("alone_{multiple}"));
        let mut together = Pattern::TOGETHER.into_iter();
        let together = together.find(|pattern| cell.is("pattern", pattern.label()));
        let alone = || (1..=32).find(alone).map(Pattern::Alone);
        Self {
            pattern: together.or_else(alone).expect("every level is a pattern"),
            resolution_us: cell.number("resolution_us") as u64,
            timers: cell.number("timers"),
        }
    }

    /// The labels of an observed task. What runs alone has names of its own, so that no plot against the number of timers has it.
    pub(super) fn labels(self, rank: Rank, what: &str) -> Labels {
        let pattern = self.pattern.label();
        let mut all = labels([
            ("timers", self.timers.into()),
            ("pattern", pattern.into()),
            ("priority", rank.label().into()),
            ("resolution_us", self.resolution_us.into()),
            ("what", what.into()),
        ]);
        if what == "lateness" {
            all.insert("part".to_owned(), what.into());
        }
        if self.is_alone() {
            let interval_us = self.shortest_interval_ns() / 1_000;
            all.insert("interval_us".to_owned(), interval_us.into());
            all.insert("what".to_owned(), format!("{what}_{pattern}").into());
        }
        all
    }

    pub(super) fn is_alone(self) -> bool {
        matches!(self.pattern, Pattern::Alone(_))
    }

    /// The observed tasks, most urgent first: one task is the highest of all, of two there is no middle.
    pub(super) fn ranks(self) -> &'static [Rank] {
        match self.timers {
            0 | 1 => &[Rank::Highest],
            2 => &[Rank::Highest, Rank::Lowest],
            _ => &Rank::ALL,
        }
    }

    /// Every task, most urgent first.
    ///
    /// The observed ones have the shortest interval of the pattern, so that nothing but their priority tells them apart; the
    /// others take the intervals in turn. Of two tasks, the more urgent one has the second interval: with one interval there
    /// would be no pattern.
    pub(super) fn tasks(self) -> Vec<Task> {
        let [shortest, second, third, fourth] = self.pattern.multiples();
        let mut of_others = [second, third, fourth, shortest].into_iter().cycle();
        let task = |place| {
            let observed = self.rank_at(place);
            let multiple = match observed {
                Some(Rank::Highest) if self.timers == 2 => second,
                Some(_) => shortest,
                None => of_others.next().unwrap_or(shortest),
            };
            Task {
                name: observed.map_or("other", Rank::label).to_owned(),
                interval_ns: multiple * self.resolution_us * 1_000,
                observed: observed.is_some(),
            }
        };
        (0..self.timers).map(task).collect()
    }

    /// Of the task that is observed longest for a number of releases.
    pub(super) fn shortest_interval_ns(self) -> u64 {
        self.pattern.multiples()[0] * self.resolution_us * 1_000
    }

    fn rank_at(self, place: usize) -> Option<Rank> {
        match place {
            0 => Some(Rank::Highest),
            last if last + 1 == self.timers => Some(Rank::Lowest),
            middle if middle == self.timers / 2 => Some(Rank::Middle),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(pattern: Pattern, timers: usize) -> Configuration {
        Configuration {
            pattern,
            resolution_us: 1_000,
            timers,
        }
    }

    fn intervals_ms(configuration: Configuration) -> Vec<u64> {
        let tasks = configuration.tasks();
        tasks
            .iter()
            .map(|task| task.interval_ns / 1_000_000)
            .collect()
    }

    #[test]
    fn harmonic_intervals_divide_each_other_and_the_others_do_not() {
        for timers in [2, 5, 10, 15, 20] {
            let divide = |pattern| {
                let all = intervals_ms(configuration(pattern, timers));
                assert_eq!(all.len(), timers);
                let pairs = all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b)));
                pairs
                    .filter(|(a, b)| a < b)
                    .map(|(a, b)| b % a == 0)
                    .collect::<Vec<_>>()
            };
            assert!(divide(Pattern::Harmonic).iter().all(|divides| *divides));
            assert!(divide(Pattern::NonHarmonic).iter().all(|divides| !divides));
        }
    }

    #[test]
    fn observed_tasks_differ_in_their_priority_alone() {
        for timers in [5, 10, 15, 20] {
            let tasks = configuration(Pattern::NonHarmonic, timers).tasks();
            let observed: Vec<_> = tasks.iter().filter(|task| task.observed).collect();
            let names: Vec<_> = observed.iter().map(|task| task.name.as_str()).collect();
            assert_eq!(names, ["highest", "middle", "lowest"]);
            assert!(observed.iter().all(|task| task.interval_ns == 2_000_000));
            assert_eq!(tasks[timers / 2].name, "middle");
        }
    }

    #[test]
    fn few_tasks_are_what_there_is() {
        assert_eq!(intervals_ms(configuration(Pattern::Harmonic, 1)), [2]);
        assert_eq!(intervals_ms(configuration(Pattern::Harmonic, 2)), [4, 2]);
        assert_eq!(intervals_ms(configuration(Pattern::NonHarmonic, 2)), [5, 2]);
        assert_eq!(intervals_ms(configuration(Pattern::Alone(8), 1)), [8]);
        for timers in [1, 2, 5] {
            let one = configuration(Pattern::Harmonic, timers);
            let observed = one.tasks().iter().filter(|task| task.observed).count();
            assert_eq!(observed, one.ranks().len());
        }
    }

    #[test]
    fn no_two_observed_tasks_have_the_same_labels() {
        let mut all = std::collections::BTreeSet::new();
        for pattern in [Pattern::Harmonic, Pattern::NonHarmonic, Pattern::Alone(1)] {
            for timers in if pattern == Pattern::Alone(1) {
                vec![1]
            } else {
                vec![1, 2, 5]
            } {
                let one = configuration(pattern, timers);
                for rank in one.ranks() {
                    let [jitter, lateness] =
                        ["jitter", "lateness"].map(|what| one.labels(*rank, what));
                    assert_eq!(lateness["part"], "lateness".into());
                    assert!(!jitter.contains_key("part"));
                    assert!(all.insert(jitter) && all.insert(lateness));
                }
            }
        }
        // One, two and three tasks of both patterns, and one alone.
        assert_eq!(all.len(), 2 * (2 * (1 + 2 + 3) + 1));
    }

    #[test]
    fn both_patterns_release_about_as_often() {
        let rate = |pattern: Pattern| -> f64 {
            let multiples = pattern.multiples();
            multiples
                .iter()
                .map(|multiple| 1.0 / *multiple as f64)
                .sum()
        };
        let quotient = rate(Pattern::Harmonic) / rate(Pattern::NonHarmonic);
        assert!((quotient - 1.0).abs() < 0.02, "{quotient}");
    }
}
