//! The samples of all configurations, and what follows from them.

use std::collections::BTreeMap;

use crate::experiment::Outcome;
use crate::processes::probe::Answer;
use crate::results::by_round::ByRound;
use crate::results::statistics::{Recorder, median};
use crate::results::summary::words::said;
use crate::results::{
    Claim, Derived, Highlight, Labels, ObtainedScheduling, Plot, PlotKind, Published, Series,
    StatisticName, all_real_time, labels,
};

/// One task set under one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Configuration {
    pub(super) resolution_us: u64,
    pub(super) tasks: u32,
}

impl Configuration {
    /// Every one of P3.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        TASKS.into_iter().flat_map(|tasks| {
            RESOLUTIONS_US.map(|resolution_us| Self {
                resolution_us,
                tasks,
            })
        })
    }
}

/// What was measured so far.
#[derive(Debug, Default)]
pub(super) struct Measured {
    timed: BTreeMap<Configuration, Timed>,
    scheduling: Vec<ObtainedScheduling>,
}

impl Measured {
    /// Adds a round of a configuration; rounds are counted from 0.
    pub(super) fn add(&mut self, round: usize, configuration: Configuration, answer: &Answer) {
        let timed = self.timed.entry(configuration).or_default();
        timed.dropped += answer.numbers.get("dropped").copied().unwrap_or(0.0) as u64;
        if let Some(samples_ns) = answer.samples.first() {
            samples_ns.iter().for_each(|ns| timed.recorder.record(*ns));
            timed.recorder.end_round();
            timed
                .rounds
                .extend(Round::of(samples_ns).map(|found| (round, found)));
        }
        for found in &answer.scheduling {
            self.add_scheduling(found);
        }
    }

    /// What was found.
    pub(super) fn outcome(&self) -> Outcome {
        let series = self
            .timed
            .iter()
            .filter(|(_, timed)| timed.recorder.count() > 0);
        Outcome {
            scheduling: self.scheduling.clone(),
            highlights: self.highlights(),
            series: series
                .map(|(configuration, timed)| timed.series(self.labels(*configuration)))
                .collect(),
            columns: vec!["resolution_us".to_owned()],
            plots: plots(),
            derived: self.derived(),
            claims: self.whole_queues().into_iter().collect(),
            conclusions: self.conclusions(),
            published: self.published(),
            notes: vec![STALLS.to_owned()],
            ..Outcome::default()
        }
    }

    /// Task sets differ in how many threads of a kind they have: the largest number is shown.
    fn add_scheduling(&mut self, found: &ObtainedScheduling) {
        let same = |known: &&mut ObtainedScheduling| {
            (&known.process, &known.policy, known.priority, &known.cpus)
                == (&found.process, &found.policy, found.priority, &found.cpus)
        };
        match self.scheduling.iter_mut().find(same) {
            Some(known) => known.threads = known.threads.max(found.threads),
            None => self.scheduling.push(found.clone()),
        }
    }

    fn labels(&self, configuration: Configuration) -> Labels {
        labels([
            ("ready_tasks", configuration.tasks.into()),
            ("resolution_us", configuration.resolution_us.into()),
            ("real_time", all_real_time(&self.scheduling).into()),
        ])
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
        let timed = self.timed.values();
        timed.fold((0, 0), |(kept, dropped), timed| {
            (kept + timed.recorder.count(), dropped + timed.dropped)
        })
    }

    fn highlights(&self) -> Vec<Highlight> {
        let highlight = |(resolution_us, tasks)| {
            let longest = Configuration {
                resolution_us,
                tasks,
            };
            let compared = self.longest_to_shortest(resolution_us, Statistic::Median)?;
            Some(Highlight {
                what: format!(
                    "context switch with {tasks} tasks, {}",
                    resolution(resolution_us)
                ),
                value: self.timed.get(&longest)?.median_ns()? / 1e3,
                unit: "us".to_owned(),
                beside: format!("{:.2} times that with {TASKS_MIN}", compared.median()?),
            })
        };
        let longest = RESOLUTIONS_US
            .into_iter()
            .map(|resolution_us| (resolution_us, TASKS_MAX));
        longest.filter_map(highlight).collect()
    }

    fn longest_to_shortest(&self, resolution_us: u64, statistic: Statistic) -> Option<ByRound> {
        let rounds = |tasks| {
            let configuration = Configuration {
                resolution_us,
                tasks,
            };
            Some(self.timed.get(&configuration)?.of(statistic))
        };
        let quotients = rounds(TASKS_MAX)?.divided_by(&rounds(TASKS_MIN)?);
        (quotients.len() > 0).then_some(quotients)
    }

    /// In each round, the median over the task sets of the quotient of fine and coarse clock.
    fn fine_to_coarse(&self, statistic: Statistic) -> Option<ByRound> {
        let [fine, coarse] = RESOLUTIONS_US;
        let of = |resolution_us, tasks| {
            let configuration = Configuration {
                resolution_us,
                tasks,
            };
            Some(self.timed.get(&configuration)?.of(statistic))
        };
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
        (medians.len() > 0).then_some(medians)
    }

    fn derived(&self) -> Vec<Derived> {
        let mut found = Vec::new();
        for statistic in Statistic::ALL {
            for resolution_us in RESOLUTIONS_US {
                let labels = labels([
                    ("resolution_us", resolution_us.into()),
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

/// The samples of a configuration.
#[derive(Debug, Default)]
struct Timed {
    recorder: Recorder,
    rounds: BTreeMap<usize, Round>,
    dropped: u64,
}

impl Timed {
    fn median_ns(&self) -> Option<f64> {
        median(&self.rounds_p50())
    }

    fn of(&self, statistic: Statistic) -> ByRound {
        let each = self.rounds.iter();
        each.map(|(round, found)| (*round, statistic.of(found)))
            .collect()
    }

    fn rounds_p50(&self) -> Vec<f64> {
        self.rounds.values().map(|round| round.median_ns).collect()
    }

    fn series(&self, labels: Labels) -> Series {
        Series {
            rounds_p50: self.rounds_p50(),
            ..Series::from_recorder(labels, &self.recorder)
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Round {
    min_ns: f64,
    median_ns: f64,
    mean_ns: f64,
    max_ns: f64,
}

impl Round {
    fn of(samples_ns: &[u64]) -> Option<Self> {
        let samples: Vec<f64> = samples_ns.iter().map(|ns| *ns as f64).collect();
        Some(Self {
            min_ns: samples.iter().copied().reduce(f64::min)?,
            median_ns: median(&samples)?,
            mean_ns: samples.iter().sum::<f64>() / samples.len() as f64,
            max_ns: samples.iter().copied().reduce(f64::max)?,
        })
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

    fn of(self, round: &Round) -> f64 {
        match self {
            Self::Min => round.min_ns,
            Self::Median => round.median_ns,
            Self::Mean => round.mean_ns,
            Self::Max => round.max_ns,
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
fn resolution(us: u64) -> String {
    said("resolution_us", &us.into())
}

fn plots() -> Vec<Plot> {
    let choose = vec!["resolution_us".to_owned()];
    vec![
        Plot {
            id: "ready-queue".to_owned(),
            title: "A context switch against the number of tasks".to_owned(),
            caption: "From the end of task 1 to the beginning of task 2, as P3 Figures 14 to 16 show it. All tasks but the second \
                      are made ready at the same moment."
                .to_owned(),
            kind: PlotKind::Lines,
            choose: choose.clone(),
            x: "ready_tasks".to_owned(),
            x_title: "tasks".to_owned(),
            values: vec![
                StatisticName::Min,
                StatisticName::P50,
                StatisticName::Mean,
                StatisticName::Max,
            ],
            log_y: true,
            ..Plot::default()
        },
        Plot {
            id: "ready-queue-percentiles".to_owned(),
            title: "The tail of a context switch, by the number of tasks".to_owned(),
            caption: "Where the lines lie upon each other, the length of the ready queue does not matter.".to_owned(),
            kind: PlotKind::Percentiles,
            choose,
            lines: vec!["ready_tasks".to_owned()],
            log_y: true,
            ..Plot::default()
        },
    ]
}

/// P3 Table 5.
const TASKS: [u32; 5] = [TASKS_MIN, 5, 10, 15, TASKS_MAX];
const TASKS_MIN: u32 = 2;
const TASKS_MAX: u32 = 20;
/// P3 section 5.3: the finer first.
const RESOLUTIONS_US: [u64; 2] = [500, 1_000];
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
const STALLS: &str = "P3 speaks of minimum, mean and maximum. A round's maximum is one switch, and where something else took the CPU in it \
                      it makes the mean too: what these two say is worth what their rounds' quotients are apart. The median is \
                      beside them for that.";
const PUBLISHED_CLOCK: &str = "QNX: mean, maximum and minimum higher under the finer clock; RTLinux and OSEKWorks: the opposite";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Verdict;

    fn answer(samples_ns: &[u64], dropped: u32) -> Answer {
        Answer {
            samples: vec![samples_ns.to_vec()],
            numbers: [("dropped".to_owned(), f64::from(dropped))].into(),
            scheduling: vec![ObtainedScheduling {
                process: "task set: interference".to_owned(),
                threads: samples_ns.len(),
                policy: "SCHED_FIFO".to_owned(),
                priority: 41,
                cpus: "1".to_owned(),
                real_time: true,
            }],
            ..Answer::default()
        }
    }

    /// Seven rounds in which a switch takes as long as `switch_ns` says.
    fn measured(switch_ns: impl Fn(Configuration) -> u64) -> Measured {
        let mut measured = Measured::default();
        for round in 0..7 {
            for configuration in Configuration::all() {
                let ns = switch_ns(configuration) + round as u64;
                measured.add(round, configuration, &answer(&[ns, ns + 10, ns + 20], 0));
            }
        }
        measured
    }

    #[test]
    fn a_switch_that_grows_with_the_queue_is_found_and_one_that_does_not_is_not() {
        let grows = measured(|configuration| 1_000 + 50 * u64::from(configuration.tasks)).outcome();
        let words = grows.conclusions.join("\n");
        let longer = "the switch is longer (shortest, median, mean, longest)";
        assert_eq!(words.matches(longer).count(), 2, "{words}");
        assert_eq!(words.matches("no difference").count(), 1, "{words}");
        let flat = measured(|_| 1_000).outcome();
        let words = flat.conclusions.join("\n");
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
        let mut measured = Measured::default();
        for (round, stall_ns) in [1, 9, 1, 9, 1, 9, 1].into_iter().enumerate() {
            for configuration in Configuration::all() {
                let stall_ns = match configuration.tasks {
                    TASKS_MAX => stall_ns * 10_000,
                    _ => (10 - stall_ns) * 10_000,
                };
                let samples_ns = [1_000, 1_000, 1_000, stall_ns];
                measured.add(round, configuration, &answer(&samples_ns, 0));
            }
        }
        let said = measured.outcome().conclusions;
        assert!(
            said[0].contains("no difference beyond the noise of the rounds (shortest, median)"),
            "{said:?}"
        );
        assert!(said[0].contains("from alike (mean, longest)"), "{said:?}");
    }

    #[test]
    fn the_clock_is_compared_at_equal_task_sets() {
        let outcome = measured(|configuration| 1_000 + configuration.resolution_us).outcome();
        let words = outcome.conclusions.join("\n");
        let shorter = "At 500 us resolution beside 1 ms resolution: the switch is shorter (shortest, median, mean, longest)";
        assert!(words.contains(shorter), "{words}");
        let derived = outcome
            .derived
            .iter()
            .find(|derived| derived.name == "fine_to_coarse_clock")
            .unwrap();
        assert!((derived.value - 0.75).abs() < 0.01, "{derived:?}");
        assert_eq!(derived.rounds.len(), 7);
        assert_eq!(outcome.published.len(), 4);
        assert_eq!(outcome.series.len(), 10);
    }

    #[test]
    fn samples_with_a_shorter_queue_are_counted_against_the_promise() {
        let mut measured = measured(|_| 1_000);
        assert_eq!(measured.outcome().claims[0].verdict, Verdict::Held);
        let configuration = Configuration::all().last().unwrap();
        measured.add(7, configuration, &answer(&[1_000; 3], 30));
        let outcome = measured.outcome();
        assert!(outcome.claims[0].is_missed(), "{:?}", outcome.claims);
        assert!(
            outcome
                .conclusions
                .last()
                .unwrap()
                .contains("In 213 of 243 samples")
        );
    }

    #[test]
    fn the_largest_number_of_threads_of_a_kind_is_shown() {
        let mut measured = Measured::default();
        let configuration = Configuration::all().next().unwrap();
        for threads in [2, 18, 3] {
            measured.add(0, configuration, &answer(&vec![1_000; threads], 0));
        }
        assert_eq!(measured.scheduling.len(), 1);
        assert_eq!(measured.scheduling[0].threads, 18);
    }
}
