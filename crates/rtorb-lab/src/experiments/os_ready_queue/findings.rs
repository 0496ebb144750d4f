//! Whether the switch grows with the ready queue, and with the resolution of the clock.

use std::collections::BTreeMap;

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::{Cells, Samples};
use rtorb_results::statistics::{Statistics, median};
use rtorb_results::summary::words::said;
use rtorb_results::{Claim, Derived, Highlight, LabelValue, Published, labels};

use crate::study::{Conditions, Findings};

pub(super) fn findings(cells: &Cells, conditions: &Conditions) -> Findings {
    let queues = Queues { cells, conditions };
    Findings {
        highlights: queues.highlights(),
        derived: queues.derived(),
        claims: queues.whole_queues().into_iter().collect(),
        conclusions: queues.conclusions(),
        published: queues.published(),
        ..Findings::default()
    }
}

/// The switches with each task set under each clock.
struct Queues<'a> {
    cells: &'a Cells,
    conditions: &'a Conditions,
}

impl Queues<'_> {
    fn samples(&self, resolution_us: i64, tasks: i64) -> Option<&Samples> {
        let wanted = [
            ("ready_tasks", LabelValue::Number(tasks)),
            ("resolution_us", LabelValue::Number(resolution_us)),
        ];
        let mut found = self.cells.with(&wanted);
        found.next().map(|(_, samples)| samples)
    }

    fn rounds(&self, resolution_us: i64, tasks: i64, statistic: Statistic) -> Option<ByRound> {
        let samples = self.samples(resolution_us, tasks)?;
        Some(samples.rounds(|round| statistic.of(round)))
    }

    /// What share of the samples had not the queue that they should have.
    fn whole_queues(&self) -> Option<Claim> {
        let (kept, dropped) = self.kept_and_dropped();
        let percent = 100.0 * dropped as f64 / (kept + dropped) as f64;
        let what = "samples that do not count, because an interference task had left the ready queue before task 2 began";
        (kept + dropped > 0)
            .then(|| Claim::counted("whole-queues", what, percent, DROPPED_PERCENT_MAX, "%"))
    }

    fn kept_and_dropped(&self) -> (u64, u64) {
        let kept = self.cells.all().map(|(_, samples)| samples.count());
        let dropped = self.conditions.numbers.get("dropped");
        (kept.sum(), dropped.copied().unwrap_or(0.0) as u64)
    }

    fn highlights(&self) -> Vec<Highlight> {
        let highlight = |resolution_us| {
            let compared = self.longest_to_shortest(resolution_us, Statistic::Median)?;
            Some(Highlight {
                what: format!(
                    "context switch with {TASKS_MAX} tasks, {}",
                    resolution(resolution_us)
                ),
                value: self.samples(resolution_us, TASKS_MAX)?.median_ns()? / 1e3,
                unit: "us".to_owned(),
                beside: format!("{:.2} times that with {TASKS_MIN}", compared.median()?),
            })
        };
        RESOLUTIONS_US.into_iter().filter_map(highlight).collect()
    }

    fn longest_to_shortest(&self, resolution_us: i64, statistic: Statistic) -> Option<ByRound> {
        let rounds = |tasks| self.rounds(resolution_us, tasks, statistic);
        let quotients = rounds(TASKS_MAX)?.divided_by(&rounds(TASKS_MIN)?);
        (!quotients.is_empty()).then_some(quotients)
    }

    /// In each round, the median over the task sets of the quotient of fine and coarse clock.
    fn fine_to_coarse(&self, statistic: Statistic) -> Option<ByRound> {
        let [fine, coarse] = RESOLUTIONS_US;
        let of = |resolution_us, tasks| self.rounds(resolution_us, tasks, statistic);
        let mut by_round: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for tasks in TASKS {
            let (Some(fine), Some(coarse)) = (of(fine, tasks), of(coarse, tasks)) else {
                continue;
            };
            for (round, quotient) in fine.divided_by(&coarse).each() {
                by_round.entry(round).or_default().push(quotient);
            }
        }
        let medians = by_round.iter();
        let medians: ByRound = medians
            .filter_map(|(round, quotients)| Some((*round, median(quotients)?)))
            .collect();
        (!medians.is_empty()).then_some(medians)
    }

    fn derived(&self) -> Vec<Derived> {
        let mut found = Vec::new();
        for statistic in Statistic::ALL {
            for resolution_us in RESOLUTIONS_US {
                let labels = labels([
                    ("resolution_us", LabelValue::Number(resolution_us)),
                    ("statistic", statistic.label().into()),
                ]);
                let rounds = self.longest_to_shortest(resolution_us, statistic);
                found.extend(rounds.and_then(|rounds| {
                    Derived::of_rounds("longest_to_shortest_queue", labels, "ratio", &rounds)
                }));
            }
            let labels = labels([("statistic", statistic.label().into())]);
            let rounds = self.fine_to_coarse(statistic);
            found.extend(rounds.and_then(|rounds| {
                Derived::of_rounds("fine_to_coarse_clock", labels, "ratio", &rounds)
            }));
        }
        found
    }

    fn conclusions(&self) -> Vec<String> {
        let queue = RESOLUTIONS_US.into_iter().filter_map(|resolution_us| {
            conclusion(
                &format!(
                    "At {}: the ready queue of {TASKS_MAX} tasks beside that of {TASKS_MIN}",
                    resolution(resolution_us)
                ),
                |statistic| self.longest_to_shortest(resolution_us, statistic),
            )
        });
        let [fine, coarse] = RESOLUTIONS_US.map(resolution);
        let clock = conclusion(&format!("At {fine} beside {coarse}"), |statistic| {
            self.fine_to_coarse(statistic)
        });
        let (kept, dropped) = self.kept_and_dropped();
        let counted = (kept + dropped > 0).then(|| {
            format!(
                "In {kept} of {} samples all interference tasks were in the ready queue when task 2 began; the others do not \
                 count.",
                kept + dropped
            )
        });
        queue.chain(clock).chain(counted).collect()
    }

    fn published(&self) -> Vec<Published> {
        let queue = RESOLUTIONS_US.into_iter().filter_map(|resolution_us| {
            let ratio = |statistic| self.longest_to_shortest(resolution_us, statistic)?.median();
            Some(format!(
                "{}: minimum {:.2}, median {:.2}, mean {:.2}, maximum {:.2} times",
                resolution(resolution_us),
                ratio(Statistic::Min)?,
                ratio(Statistic::Median)?,
                ratio(Statistic::Mean)?,
                ratio(Statistic::Max)?
            ))
        });
        let queue: Vec<String> = queue.collect();
        let clock = || {
            let ratio = |statistic| self.fine_to_coarse(statistic)?.median();
            Some(format!(
                "minimum {:.2}, median {:.2}, mean {:.2}, maximum {:.2} times that under the coarser clock",
                ratio(Statistic::Min)?,
                ratio(Statistic::Median)?,
                ratio(Statistic::Mean)?,
                ratio(Statistic::Max)?
            ))
        };
        let row = |what: &str, published: &str, ours: String| Published {
            source: "P3 section 5.3".to_owned(),
            what: what.to_owned(),
            published: published.to_owned(),
            ours,
        };
        let mut rows = Vec::new();
        if !queue.is_empty() {
            let what = "the switch with 20 tasks ready beside that with 2";
            let ours = queue.join("; ");
            rows.extend(PUBLISHED_QUEUE.map(|published| row(what, published, ours.clone())));
        }
        if let Some(ours) = clock() {
            rows.push(row("the switch under a finer clock", PUBLISHED_CLOCK, ours));
        }
        rows
    }
}

/// What P3 shows of a configuration, and the median, which a single disturbance does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statistic {
    Min,
    Median,
    Mean,
    Max,
}

impl Statistic {
    const ALL: [Self; 4] = [Self::Min, Self::Median, Self::Mean, Self::Max];

    fn of(self, round: &Statistics) -> f64 {
        match self {
            Self::Min => round.min,
            Self::Median => round.p50,
            Self::Mean => round.mean,
            Self::Max => round.max,
        }
    }

    /// The value of the label `statistic`.
    fn label(self) -> &'static str {
        match self {
            Self::Min => "min",
            Self::Median => "p50",
            Self::Mean => "mean",
            Self::Max => "max",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Min => "shortest",
            Self::Median => "median",
            Self::Mean => "mean",
            Self::Max => "longest",
        }
    }
}

/// What the quotients of the rounds say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Difference {
    /// The first takes longer.
    Longer,
    /// The first is over sooner.
    Shorter,
    /// Neither, as far as the rounds can tell.
    Alike,
    /// A difference as large as P3's could hide in the interval.
    Scattered,
}

impl Difference {
    /// `None` for too few rounds.
    fn of(quotients: &ByRound) -> Option<Self> {
        let [low, high] = quotients.interval()?;
        Some(match quotients.median()? {
            middle if low > 1.0 && middle > 1.0 + NEGLIGIBLE => Self::Longer,
            middle if high < 1.0 && middle < 1.0 / (1.0 + NEGLIGIBLE) => Self::Shorter,
            _ if high > SCATTERED * low => Self::Scattered,
            _ => Self::Alike,
        })
    }
}

/// What the rounds say of all statistics together, and of each.
fn conclusion(subject: &str, compared: impl Fn(Statistic) -> Option<ByRound>) -> Option<String> {
    let mut all = Vec::new();
    for statistic in Statistic::ALL {
        let Some(quotients) = compared(statistic) else {
            continue;
        };
        let (Some(difference), Some([low, high])) =
            (Difference::of(&quotients), quotients.interval())
        else {
            return Some(format!("{subject}: too few rounds to tell."));
        };
        let figure = format!(
            "{} {:.2} ({low:.2} to {high:.2})",
            statistic.name(),
            quotients.median()?
        );
        all.push((statistic, difference, figure));
    }
    let have = |wanted: Difference| {
        let having = all
            .iter()
            .filter(|(_, difference, _)| *difference == wanted);
        let names: Vec<&str> = having.map(|(statistic, ..)| statistic.name()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let differences = [
        have(Difference::Longer).map(|names| format!("longer ({names})")),
        have(Difference::Shorter).map(|names| format!("shorter ({names})")),
    ];
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    let found = if differences.is_empty() {
        have(Difference::Alike)
            .map(|names| format!("no difference beyond the noise of the rounds ({names})"))
    } else {
        Some(format!("the switch is {}", differences.join(" and ")))
    };
    let scattered = have(Difference::Scattered).map(|names| {
        format!("the rounds are too far apart to tell twice as long from alike ({names})")
    });
    let said: Vec<String> = found.into_iter().chain(scattered).collect();
    let figures: Vec<&str> = all.iter().map(|(.., figure)| figure.as_str()).collect();
    (!all.is_empty()).then(|| {
        format!(
            "{subject}: {}. Median of the rounds' quotients, with its interval: {}.",
            said.join("; "),
            figures.join(", ")
        )
    })
}

/// As tables and plots say it.
fn resolution(us: i64) -> String {
    said("resolution_us", &LabelValue::Number(us))
}

/// P3 Table 5.
const TASKS: [i64; 5] = [TASKS_MIN, 5, 10, 15, TASKS_MAX];
const TASKS_MIN: i64 = 2;
const TASKS_MAX: i64 = 20;
/// P3 section 5.3: the finer first.
const RESOLUTIONS_US: [i64; 2] = [500, 1_000];
const DROPPED_PERCENT_MAX: f64 = 1.0;
/// What no paper would call a difference.
const NEGLIGIBLE: f64 = 0.05;
/// P3's smallest difference that it gives a number for: twice as long with 20 tasks as without any.
const SCATTERED: f64 = 2.0;

const PUBLISHED_QUEUE: [&str; 3] = [
    "QNX: mean and minimum not sensitive; the maximum grows under the finer clock, by as much as 300 %",
    "RTLinux: mean and maximum grow under any clock, to twice as much; the minimum remains the same",
    "OSEKWorks: little difference",
];
const PUBLISHED_CLOCK: &str = "QNX: mean, maximum and minimum higher under the finer clock; RTLinux and OSEKWorks: the opposite";

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::Verdict;

    /// Seven rounds of so many samples by round, tasks and resolution.
    fn cells<const N: usize>(samples_ns: impl Fn(usize, i64, i64) -> [u64; N]) -> Cells {
        let mut cells = Cells::default();
        for round in 0..7 {
            for tasks in TASKS {
                for resolution_us in RESOLUTIONS_US {
                    let labels = labels([
                        ("ready_tasks", LabelValue::Number(tasks)),
                        ("resolution_us", LabelValue::Number(resolution_us)),
                    ]);
                    let round_ns = samples_ns(round, tasks, resolution_us);
                    cells.add(&labels, round, &round_ns, 0);
                }
            }
        }
        cells
    }

    fn found(switch_ns: impl Fn(i64, i64) -> i64, dropped: f64) -> Findings {
        let cells = cells(|round, tasks, resolution_us| {
            let ns = switch_ns(tasks, resolution_us) as u64 + round as u64;
            [ns, ns + 10, ns + 20]
        });
        let conditions = Conditions {
            numbers: [("dropped".to_owned(), dropped)].into(),
            ..Conditions::default()
        };
        findings(&cells, &conditions)
    }

    #[test]
    fn a_switch_that_grows_with_the_queue_is_found_and_one_that_does_not_is_not() {
        let words = found(|tasks, _| 1_000 + 50 * tasks, 0.0)
            .conclusions
            .join("\n");
        let longer = "the switch is longer (shortest, median, mean, longest)";
        assert_eq!(words.matches(longer).count(), 2, "{words}");
        assert_eq!(words.matches("no difference").count(), 1, "{words}");
        let words = found(|_, _| 1_000, 0.0).conclusions.join("\n");
        assert_eq!(words.matches("no difference").count(), 3, "{words}");
    }

    #[test]
    fn a_difference_needs_a_size_and_the_agreement_of_the_rounds() {
        let of = |quotients: &[f64]| Difference::of(&quotients.into());
        let longer = [1.2, 1.3, 1.1, 1.2, 1.4, 1.2, 1.3];
        assert_eq!(of(&longer), Some(Difference::Longer));
        assert_eq!(
            of(&longer.map(|ratio| 1.0 / ratio)),
            Some(Difference::Shorter)
        );
        let small = [1.01, 1.02, 1.01, 1.03, 1.02, 1.01, 1.02];
        assert_eq!(of(&small), Some(Difference::Alike));
        let disagreeing = [1.2, 1.3, 0.9, 1.2, 1.4, 1.1, 0.8];
        assert_eq!(of(&disagreeing), Some(Difference::Alike));
        let apart = [0.4, 0.5, 1.0, 1.1, 3.0, 3.9, 1.0];
        assert_eq!(of(&apart), Some(Difference::Scattered));
        assert_eq!(of(&[2.0]), None);
    }

    #[test]
    fn a_mean_of_stalls_is_not_called_alike() {
        let cells = cells(|round, tasks, _| {
            let stall_ns = [1, 9][round % 2];
            let stall_ns = if tasks == TASKS_MAX {
                stall_ns
            } else {
                10 - stall_ns
            };
            [1_000, 1_000, 1_000, stall_ns * 10_000]
        });
        let said = findings(&cells, &Conditions::default()).conclusions;
        assert!(
            said[0].contains("no difference beyond the noise of the rounds (shortest, median)"),
            "{said:?}"
        );
        assert!(said[0].contains("from alike (mean, longest)"), "{said:?}");
    }

    #[test]
    fn the_clock_is_compared_at_equal_task_sets() {
        let found = found(|_, resolution_us| 1_000 + resolution_us, 0.0);
        let words = found.conclusions.join("\n");
        let shorter = "At 500 us resolution beside 1 ms resolution: the switch is shorter (shortest, median, mean, longest)";
        assert!(words.contains(shorter), "{words}");
        let mut derived = found.derived.iter();
        let clock = derived.find(|derived| derived.name == "fine_to_coarse_clock");
        let clock = clock.expect("both clocks were measured");
        assert!((clock.value - 0.75).abs() < 0.01, "{clock:?}");
        assert_eq!((clock.rounds.len(), found.published.len()), (7, 4));
    }

    #[test]
    fn samples_with_a_shorter_queue_are_counted_against_the_claim() {
        assert_eq!(found(|_, _| 1_000, 0.0).claims[0].verdict, Verdict::Held);
        let short = found(|_, _| 1_000, 30.0);
        assert!(short.claims[0].is_missed(), "{:?}", short.claims);
        let said = short.conclusions.last().expect("they are counted");
        assert!(said.contains("In 210 of 240 samples"), "{said}");
    }
}
