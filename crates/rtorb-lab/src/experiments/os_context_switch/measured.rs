//! The samples of all runs, and what follows from them.

use std::collections::BTreeMap;

use rtorb_results::statistics::{Recorder, median};
use rtorb_results::{
    Claim, Derived, Highlight, Labels, ObtainedScheduling, Plot, PlotKind, Published, Series,
    StatisticName, all_real_time, labels,
};

use super::probe::Test;
use super::published::{P0, P2, Table};
use crate::experiment::Outcome;
use crate::processes::probe::Answer;

/// What was measured so far.
#[derive(Debug, Default)]
pub(super) struct Measured {
    tests: BTreeMap<Test, Timed>,
    scheduling: Vec<ObtainedScheduling>,
}

impl Measured {
    /// Adds a round of a test; runs are counted from 0.
    pub(super) fn add(&mut self, run: usize, test: Test, answer: &Answer) {
        let [hand_over_ns, uncontended_ns] = &answer.samples[..] else {
            return;
        };
        let timed = self.tests.entry(test).or_default();
        timed.dropped += answer.numbers.get("dropped").copied().unwrap_or(0.0) as u64;
        timed.hand_over.add(run, &as_numbers(hand_over_ns));
        timed.uncontended.add(run, &as_numbers(uncontended_ns));
        let switch_ns: Vec<f64> = hand_over_ns
            .iter()
            .zip(uncontended_ns)
            .map(|(hand_over, uncontended)| switch(test, *hand_over, *uncontended))
            .collect();
        timed.switch.add(run, &switch_ns);
        for found in &answer.scheduling {
            if !self.scheduling.contains(found) {
                self.scheduling.push(found.clone());
            }
        }
    }

    /// What was found. Promises are judged for as many runs as they speak of.
    pub(super) fn outcome(&self) -> Outcome {
        Outcome {
            scheduling: self.scheduling.clone(),
            highlights: self.highlights(),
            series: self.series(),
            columns: vec!["what".to_owned()],
            plots: plots(),
            derived: self.derived(),
            claims: self.claims(),
            conclusions: self.conclusions(),
            published: self.published(),
            notes: self.notes(),
            ..Outcome::default()
        }
    }

    /// The tests that have a sample.
    fn timed(&self) -> impl Iterator<Item = (Test, &Timed)> {
        let timed = self.tests.iter().map(|(test, timed)| (*test, timed));
        timed.filter(|(_, timed)| timed.switch.recorder.count() > 0)
    }

    fn series(&self) -> Vec<Series> {
        let series = self.timed().flat_map(|(test, timed)| {
            timed
                .parts(test)
                .map(|(what, recorded)| recorded.series(self.labels(test, what)))
                .collect::<Vec<_>>()
        });
        series.collect()
    }

    fn labels(&self, test: Test, what: &str) -> Labels {
        labels([
            ("test", label(test).into()),
            ("what", what.into()),
            ("real_time", all_real_time(&self.scheduling).into()),
        ])
    }

    fn highlights(&self) -> Vec<Highlight> {
        let highlight = |(test, timed): (Test, &Timed)| {
            let runs = timed.switch.runs();
            Some(Highlight {
                what: format!("context switch, {}", name(test)),
                value: median(&runs)? / 1e3,
                unit: "us".to_owned(),
                beside: format!(
                    "{} {:.1} % apart",
                    count_of_runs(&runs),
                    100.0 * apart(&runs)?
                ),
            })
        };
        self.timed().filter_map(highlight).collect()
    }

    /// The figure of each run, and how far they are apart.
    fn derived(&self) -> Vec<Derived> {
        let of_test = |(test, timed): (Test, &Timed)| {
            let runs = timed.switch.runs();
            let derived = |name: &str, unit: &str, value, rounds| Derived {
                name: name.to_owned(),
                labels: self.labels(test, SWITCH),
                unit: unit.to_owned(),
                value,
                rounds,
            };
            let spread = apart(&runs)?;
            Some([
                derived("median_of_run", "ns", median(&runs)?, runs),
                derived("spread_of_runs", "ratio", spread, Vec::new()),
            ])
        };
        self.timed().filter_map(of_test).flatten().collect()
    }

    /// The kernel's figure is one figure: runs in processes of their own give the same.
    fn claims(&self) -> Vec<Claim> {
        let claim = |(test, timed): (Test, &Timed)| {
            let runs = timed.switch.runs();
            let middle = median(&runs).filter(|middle| *middle > 0.0)?;
            let distances = runs.iter().map(|run| 100.0 * (run - middle).abs() / middle);
            let distances: Vec<f64> = distances.collect();
            let statement = format!(
                "{}: the median of a run, each in a process of its own, is at most {DISTANCE_PERCENT_MAX} % from that of all runs",
                name(test)
            );
            let id = format!("runs-agree.{}", label(test));
            let claim = Claim::at_most(
                id,
                statement,
                &distances[..].into(),
                DISTANCE_PERCENT_MAX,
                "%",
            )?;
            Some(claim.of_each("runs"))
        };
        self.timed().filter_map(claim).collect()
    }

    fn conclusions(&self) -> Vec<String> {
        let of_test = |(test, timed): (Test, &Timed)| {
            let runs = timed.switch.runs();
            let (smallest, largest) = ends(&runs)?;
            let stable = format!(
                "{}: {} gave {:.2} to {:.2} us a switch, {:.1} % apart",
                capitalised(name(test)),
                count_of_runs(&runs),
                smallest / 1e3,
                largest / 1e3,
                100.0 * apart(&runs)?
            );
            let alone_us = median(&timed.uncontended.runs())? / 1e3;
            let apart_from = match test {
                Test::Yield => format!(
                    "a yield with nobody to yield to takes {alone_us:.2} us, which are not subtracted"
                ),
                Test::SuspendResume | Test::Synchronized | Test::SynchronizedPlain => format!(
                    "the hand-over takes {:.2} us, of which {alone_us:.2} us for the same calls without a switch are \
                     subtracted",
                    median(&timed.hand_over.runs())? / 1e3
                ),
            };
            Some(format!("{stable}; {apart_from}."))
        };
        self.timed().filter_map(of_test).collect()
    }

    fn published(&self) -> Vec<Published> {
        let tables = [&P0, &P2].into_iter();
        let rows = tables.flat_map(|table| {
            self.timed().filter_map(|(test, timed)| {
                let found = timed.switch.recorder.statistics();
                Some(Published {
                    source: table.source.to_owned(),
                    what: format!(
                        "{} test, mean (standard deviation) in us, {}",
                        name(test),
                        table.machine
                    ),
                    published: table.shown(test)?,
                    ours: format!(
                        "{:.3} ({:.3}), median {:.3}",
                        found.mean / 1e3,
                        found.stddev / 1e3,
                        median(&timed.switch.runs())? / 1e3
                    ),
                })
            })
        });
        rows.chain(self.depends_on_the_benchmark()).collect()
    }

    fn depends_on_the_benchmark(&self) -> Option<Published> {
        let medians: Vec<f64> = self
            .timed()
            .filter_map(|(_, timed)| median(&timed.switch.runs()))
            .collect();
        let (smallest, largest) = ends(&medians).filter(|_| medians.len() > 1)?;
        Some(Published {
            source: "P0 section 3.1".to_owned(),
            what: "whether the tests agree".to_owned(),
            published: "the measurements \"depend largely on the particular benchmark used\""
                .to_owned(),
            ours: format!(
                "the test with the longest switch shows {:.1} times that with the shortest",
                largest / smallest
            ),
        })
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let is_timed = |wanted: Test| self.timed().any(|(test, _)| test == wanted);
        if is_timed(Test::SuspendResume) {
            notes.push(LEFT_BY_FUTEX.to_owned());
        }
        if is_timed(Test::Synchronized) || is_timed(Test::SynchronizedPlain) {
            notes.push(LEFT_BY_MUTEX.to_owned());
        }
        if !all_real_time(&self.scheduling) {
            notes.push(NO_FIFO.to_owned());
        }
        for (test, timed) in &self.tests {
            let taken = timed.hand_over.recorder.count() + timed.dropped;
            if timed.dropped > 0 {
                notes.push(format!(
                    "{}: in {} of {taken} samples the other thread did not run when it should have; they are not counted.",
                    name(*test),
                    timed.dropped
                ));
            }
        }
        notes
    }
}

/// A test's samples.
#[derive(Debug, Default)]
struct Timed {
    hand_over: Recorded,
    uncontended: Recorded,
    switch: Recorded,
    dropped: u64,
}

impl Timed {
    /// Of a yield nothing is subtracted, so that the hand-over is the switch.
    fn parts(&self, test: Test) -> impl Iterator<Item = (&'static str, &Recorded)> {
        let hand_over = (test != Test::Yield).then_some((HAND_OVER, &self.hand_over));
        let others = [(UNCONTENDED, &self.uncontended), (SWITCH, &self.switch)];
        hand_over.into_iter().chain(others)
    }
}

#[derive(Debug, Default)]
struct Recorded {
    recorder: Recorder,
    /// The medians of the rounds of each run.
    rounds_ns: BTreeMap<usize, Vec<f64>>,
}

impl Recorded {
    fn add(&mut self, run: usize, samples_ns: &[f64]) {
        for sample_ns in samples_ns {
            self.recorder.record_difference(*sample_ns);
        }
        self.recorder.end_round();
        self.rounds_ns
            .entry(run)
            .or_default()
            .extend(median(samples_ns));
    }

    /// The median of the rounds of each run.
    fn runs(&self) -> Vec<f64> {
        let runs = self.rounds_ns.values();
        runs.filter_map(|rounds| median(rounds)).collect()
    }

    fn series(&self, labels: Labels) -> Series {
        Series {
            rounds_p50: self.rounds_ns.values().flatten().copied().collect(),
            ..Series::from_recorder(labels, &self.recorder)
        }
    }
}

/// The same calls without a switch are no part of it. A yield without one is not subtracted in the papers' test.
fn switch(test: Test, hand_over_ns: u64, uncontended_ns: u64) -> f64 {
    match test {
        Test::Yield => hand_over_ns as f64,
        Test::SuspendResume | Test::Synchronized | Test::SynchronizedPlain => {
            hand_over_ns as f64 - uncontended_ns as f64
        }
    }
}

fn as_numbers(times_ns: &[u64]) -> Vec<f64> {
    times_ns.iter().map(|ns| *ns as f64).collect()
}

/// The largest less the smallest, as a share of their median.
fn apart(values: &[f64]) -> Option<f64> {
    let (smallest, largest) = ends(values)?;
    let middle = median(values).filter(|middle| *middle > 0.0)?;
    Some((largest - smallest) / middle)
}

fn ends(values: &[f64]) -> Option<(f64, f64)> {
    let smallest = values.iter().copied().reduce(f64::min)?;
    let largest = values.iter().copied().reduce(f64::max)?;
    Some((smallest, largest))
}

fn count_of_runs(runs: &[f64]) -> String {
    match runs.len() {
        1 => "one run".to_owned(),
        count => format!("{count} runs"),
    }
}

fn plots() -> Vec<Plot> {
    let of_switch = labels([("what", SWITCH.into())]);
    let published = |table: &Table| table.points(|test| label(test).into());
    vec![
        Plot {
            id: "context-switch".to_owned(),
            title: "A context switch beside the published ones".to_owned(),
            caption: "Ours are medians of the rounds' medians, the published ones means. The machines are not ours: what can be \
                      compared is the order of the tests."
                .to_owned(),
            kind: PlotKind::Bars,
            of: of_switch.clone(),
            x: "test".to_owned(),
            x_title: "test".to_owned(),
            values: vec![StatisticName::P50],
            log_y: true,
            published: published(&P0).into_iter().chain(published(&P2)).collect(),
            ..Plot::default()
        },
        Plot {
            id: "context-switch-parts".to_owned(),
            title: "The hand-over, the same calls without a switch, and their difference".to_owned(),
            caption: "A yield has nothing subtracted: its switch is the hand-over.".to_owned(),
            kind: PlotKind::Histogram,
            choose: vec!["test".to_owned()],
            lines: vec!["what".to_owned()],
            ..Plot::default()
        },
        Plot {
            id: "context-switch-percentiles".to_owned(),
            title: "The tail of a context switch".to_owned(),
            caption: "Of yields, a sample is the mean of a batch.".to_owned(),
            kind: PlotKind::Percentiles,
            of: of_switch,
            lines: vec!["test".to_owned()],
            log_y: true,
            ..Plot::default()
        },
    ]
}

/// The value of the label `test`.
pub(super) fn label(test: Test) -> &'static str {
    match test {
        Test::SuspendResume => "suspend_resume",
        Test::Yield => "yield",
        Test::Synchronized => "synchronized",
        Test::SynchronizedPlain => "synchronized_plain",
    }
}

fn name(test: Test) -> &'static str {
    match test {
        Test::SuspendResume => "suspend-resume by futex",
        Test::Yield => "yield",
        Test::Synchronized => "synchronized suspend-resume",
        Test::SynchronizedPlain => "synchronized suspend-resume without inheritance",
    }
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

const HAND_OVER: &str = "hand_over";
const UNCONTENDED: &str = "uncontended";
const SWITCH: &str = "switch";
/// What the promise of stability speaks of.
pub(super) const RUNS_JUDGED: usize = 5;
const DISTANCE_PERCENT_MAX: f64 = 10.0;
const LEFT_BY_FUTEX: &str = "Suspend-resume: what is subtracted is a futex(2) call that finds nobody to wake and one that finds no reason \
                             to sleep. That the other call makes a thread ready and this one takes itself off the ready queue is left in \
                             the switch.";
const LEFT_BY_MUTEX: &str = "Synchronized suspend-resume: what is subtracted is taking and giving back a free mutex, as in P0, which on Linux \
                             makes no system call. So the switch holds what the kernel does for a contended one: futex(2) to give it \
                             back and wake who waits, the return from the call in which that one slept, and with priority inheritance \
                             the hand-over of ownership and of the lent priority.";
const NO_FIFO: &str = "Without SCHED_FIFO a yield need not let the other thread run, and who is woken need not run at once: batches \
                       of yields in which the threads did not take turns are dropped, and a hand-over may hold what the first \
                       thread did until it slept.";

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::Verdict;

    fn answer(hand_over_ns: &[u64], uncontended_ns: u64) -> Answer {
        Answer {
            samples: vec![
                hand_over_ns.to_vec(),
                vec![uncontended_ns; hand_over_ns.len()],
            ],
            scheduling: vec![ObtainedScheduling {
                process: "the two threads: first".to_owned(),
                threads: 1,
                policy: "SCHED_FIFO".to_owned(),
                priority: 40,
                cpus: "1".to_owned(),
                real_time: true,
            }],
            ..Answer::default()
        }
    }

    fn measured(test: Test, runs_ns: &[u64]) -> Measured {
        let mut measured = Measured::default();
        for (run, ns) in runs_ns.iter().enumerate() {
            // A round that the host disturbed moves no run's figure.
            for disturbance_ns in [0, 0, 50_000] {
                let samples_ns = [ns + disturbance_ns, ns + disturbance_ns + 10, ns + 90_000];
                measured.add(run, test, &answer(&samples_ns, 500));
            }
        }
        measured
    }

    #[test]
    fn what_takes_no_switch_is_subtracted_sample_by_sample() {
        let outcome = measured(Test::Synchronized, &[3_000; 5]).outcome();
        let median_ns = |what: &str| {
            let mut found = outcome
                .series
                .iter()
                .filter(|series| series.labels["what"] == what.into());
            found.next().unwrap().median_of_rounds()
        };
        assert_eq!(median_ns(HAND_OVER), 3_010.0);
        assert_eq!(median_ns(UNCONTENDED), 500.0);
        assert_eq!(median_ns(SWITCH), 2_510.0);
        assert_eq!(switch(Test::SuspendResume, 400, 500), -100.0);
    }

    #[test]
    fn nothing_is_subtracted_from_a_yield() {
        let outcome = measured(Test::Yield, &[700; 5]).outcome();
        assert_eq!(outcome.series.len(), 2);
        assert_eq!(outcome.highlights[0].value, 0.71);
    }

    #[test]
    fn runs_agree_if_none_is_far_from_the_others() {
        let judged = |runs: &[u64]| measured(Test::SuspendResume, runs).outcome().claims[0].verdict;
        assert_eq!(judged(&[1_490, 1_490, 1_540, 1_490, 1_490]), Verdict::Held);
        assert_eq!(judged(&[1_490, 900, 2_100, 2_000, 1_000]), Verdict::Missed);
        assert_eq!(
            judged(&[1_490, 1_490, 2_640, 1_490, 1_490]),
            Verdict::NotJudged
        );
    }

    #[test]
    fn what_had_no_turns_is_told_and_has_no_series() {
        let mut measured = Measured::default();
        let mut none = answer(&[], 0);
        none.numbers.insert("dropped".to_owned(), 7.0);
        none.scheduling[0].real_time = false;
        measured.add(0, Test::Yield, &none);
        let outcome = measured.outcome();
        assert!(outcome.series.is_empty());
        let notes = outcome.notes.join(" ");
        assert!(notes.contains("in 7 of 7 samples"), "{notes}");
        assert!(notes.contains("Without SCHED_FIFO"), "{notes}");
    }

    #[test]
    fn the_published_figures_stand_beside_ours() {
        let outcome = measured(Test::Yield, &[700; 5]).outcome();
        assert_eq!(outcome.published.len(), 2, "{:?}", outcome.published);
        assert!(
            outcome.published[0]
                .published
                .contains("Linux 0.548 (0.006)")
        );
        assert!(
            outcome.published[1]
                .published
                .contains("Linux 2.60 (0.023)")
        );
    }
}
