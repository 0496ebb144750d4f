//! What follows from the hand-overs of all runs.

use std::collections::BTreeMap;

use rtorb_results::by_round::ByRound;
use rtorb_results::cells::{Cells, Samples};
use rtorb_results::statistics::median;
use rtorb_results::{Claim, Derived, Highlight, Published, labels, labels_with};

use super::probe::Test;
use super::published::{P0, P2};
use super::rounds_of_run;
use crate::study::{Answered, Conditions, Findings};

pub(super) fn findings(_: &Cells, conditions: &Conditions) -> Findings {
    let cells = cells(&conditions.answers);
    let tests = Test::ALL.into_iter();
    let timed: Vec<Timed<'_>> = tests
        .filter_map(|test| Timed::of(test, &cells, conditions))
        .collect();
    Findings {
        highlights: timed.iter().filter_map(Timed::highlight).collect(),
        derived: timed
            .iter()
            .filter_map(|timed| timed.derived(conditions.real_time))
            .flatten()
            .collect(),
        claims: timed.iter().filter_map(Timed::claim).collect(),
        conclusions: timed.iter().filter_map(Timed::conclusion).collect(),
        published: published(&timed),
        notes: notes(&timed, conditions),
        cells,
        ..Findings::default()
    }
}

/// The hand-overs, the same calls without a switch, and their differences. Of a yield nothing is subtracted in the papers' test:
/// its hand-over is the switch.
fn cells(answers: &[Answered]) -> Cells {
    let mut cells = Cells::default();
    for kept in answers {
        let [hand_over_ns, uncontended_ns] = &kept.answer.samples[..] else {
            continue;
        };
        if hand_over_ns.is_empty() {
            continue;
        }
        let of = |what: &str| labels_with(&kept.labels, [("what", what.into())]);
        let is_yield = kept.labels["test"] == Test::Yield.label().into();
        if is_yield {
            cells.add(&of(UNCONTENDED), kept.round, uncontended_ns, 0);
            cells.add(&of(SWITCH), kept.round, hand_over_ns, 0);
        } else {
            let both = hand_over_ns.iter().zip(uncontended_ns);
            let switch_ns: Vec<f64> = both
                .map(|(hand_over, uncontended)| *hand_over as f64 - *uncontended as f64)
                .collect();
            cells.add(&of(HAND_OVER), kept.round, hand_over_ns, 0);
            cells.add(&of(UNCONTENDED), kept.round, uncontended_ns, 0);
            cells.add_computed(&of(SWITCH), kept.round, &switch_ns);
        }
    }
    cells
}

/// The switches of a test.
struct Timed<'a> {
    test: Test,
    cells: &'a Cells,
    rounds_of_run: usize,
    switch: &'a Samples,
    /// The figure of each run.
    runs: ByRound,
    /// The median of the runs.
    middle_ns: f64,
    /// The smallest and the largest figure of a run.
    ends_ns: [f64; 2],
}

impl<'a> Timed<'a> {
    /// `None` without a switch.
    fn of(test: Test, cells: &'a Cells, conditions: &Conditions) -> Option<Self> {
        let rounds_of_run = rounds_of_run(conditions.effort);
        let switch = samples(cells, test, SWITCH)?;
        let runs = runs(switch, rounds_of_run);
        let middle_ns = runs.median()?;
        Some(Self {
            ends_ns: ends(&runs.values())?,
            test,
            cells,
            rounds_of_run,
            switch,
            runs,
            middle_ns,
        })
    }

    /// The median over the runs of a part, in microseconds.
    fn median_us(&self, what: &str) -> Option<f64> {
        let samples = samples(self.cells, self.test, what)?;
        Some(runs(samples, self.rounds_of_run).median()? / 1e3)
    }

    /// The largest figure of a run less the smallest, as a share of their median.
    fn apart(&self) -> Option<f64> {
        let [smallest, largest] = self.ends_ns;
        (self.middle_ns > 0.0).then(|| (largest - smallest) / self.middle_ns)
    }

    fn count_of_runs(&self) -> String {
        match self.runs.len() {
            1 => "one run".to_owned(),
            count => format!("{count} runs"),
        }
    }

    fn highlight(&self) -> Option<Highlight> {
        Some(Highlight {
            what: format!("context switch, {}", self.test.name()),
            value: self.middle_ns / 1e3,
            unit: "us".to_owned(),
            beside: format!(
                "{} {:.1} % apart",
                self.count_of_runs(),
                100.0 * self.apart()?
            ),
        })
    }

    /// The figure of each run, and how far they are apart.
    fn derived(&self, real_time: bool) -> Option<[Derived; 2]> {
        let labels = labels([
            ("test", self.test.label().into()),
            ("what", SWITCH.into()),
            ("real_time", real_time.into()),
        ]);
        Some([
            Derived::of_rounds("median_of_run", labels.clone(), "ns", &self.runs)?,
            Derived {
                name: "spread_of_runs".to_owned(),
                labels,
                unit: "ratio".to_owned(),
                value: self.apart()?,
                rounds: Vec::new(),
            },
        ])
    }

    /// The kernel's figure is one figure: runs in processes of their own give the same.
    fn claim(&self) -> Option<Claim> {
        let middle_ns = Some(self.middle_ns).filter(|middle_ns| *middle_ns > 0.0)?;
        let distances = self
            .runs
            .map(|run_ns| 100.0 * (run_ns - middle_ns).abs() / middle_ns);
        let claim = Claim::each_at_most(
            format!("runs-agree.{}", self.test.label()),
            format!(
                "{}: the median of every run, each in a process of its own, is at most {DISTANCE_PERCENT_MAX} % from that of all runs (the farthest)",
                self.test.name()
            ),
            &distances,
            DISTANCE_PERCENT_MAX,
            "%",
        )?;
        let planned = self.runs.len() * self.rounds_of_run;
        let lost = planned - self.switch.rounds(|round| round.p50).len();
        let claim = match lost {
            0 => claim,
            _ => claim.not_judged(format!("{lost} of {planned} rounds were lost")),
        };
        Some(claim.of_each("runs"))
    }

    fn conclusion(&self) -> Option<String> {
        let alone_us = self.median_us(UNCONTENDED)?;
        let apart_from = match self.median_us(HAND_OVER) {
            None => format!(
                "a yield with nobody to yield to takes {alone_us:.2} us, which are not subtracted"
            ),
            Some(hand_over_us) => format!(
                "the hand-over takes {hand_over_us:.2} us, of which {alone_us:.2} us for the same calls without a switch are \
                 subtracted"
            ),
        };
        let [smallest, largest] = self.ends_ns;
        Some(format!(
            "{}: {} gave {:.2} to {:.2} us a switch, {:.1} % apart; {apart_from}.",
            capitalised(self.test.name()),
            self.count_of_runs(),
            smallest / 1e3,
            largest / 1e3,
            100.0 * self.apart()?
        ))
    }
}

fn samples<'a>(cells: &'a Cells, test: Test, what: &str) -> Option<&'a Samples> {
    let wanted = [("test", test.label().into()), ("what", what.into())];
    let found = cells.with(&wanted).next();
    found.map(|(_, samples)| samples)
}

/// The median of the rounds of each run.
fn runs(samples: &Samples, rounds_of_run: usize) -> ByRound {
    let mut runs: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (round, p50) in samples.rounds(|round| round.p50).each() {
        runs.entry(round / rounds_of_run).or_default().push(p50);
    }
    let medians = runs.into_iter();
    medians
        .filter_map(|(run, rounds)| Some((run, median(&rounds)?)))
        .collect()
}

/// The smallest and the largest.
fn ends(values: &[f64]) -> Option<[f64; 2]> {
    let smallest = values.iter().copied().reduce(f64::min)?;
    let largest = values.iter().copied().reduce(f64::max)?;
    Some([smallest, largest])
}

fn published(timed: &[Timed<'_>]) -> Vec<Published> {
    let tables = [&P0, &P2].into_iter();
    let rows = tables.flat_map(|table| {
        timed.iter().filter_map(|timed| {
            let found = timed.switch.statistics();
            Some(Published {
                source: table.source.to_owned(),
                what: format!(
                    "{} test, mean (standard deviation) in us, {}",
                    timed.test.name(),
                    table.machine
                ),
                published: table.shown(timed.test)?,
                ours: format!(
                    "{:.3} ({:.3}), median {:.3}",
                    found.mean / 1e3,
                    found.stddev / 1e3,
                    timed.middle_ns / 1e3
                ),
            })
        })
    });
    let medians: Vec<f64> = timed.iter().map(|timed| timed.middle_ns).collect();
    let ends = ends(&medians).filter(|_| medians.len() > 1);
    let depends_on_the_benchmark = ends.map(|[smallest, largest]| Published {
        source: "P0 section 3.1".to_owned(),
        what: "whether the tests agree".to_owned(),
        published: "the measurements \"depend largely on the particular benchmark used\""
            .to_owned(),
        ours: format!(
            "the test with the longest switch shows {:.1} times that with the shortest",
            largest / smallest
        ),
    });
    rows.chain(depends_on_the_benchmark).collect()
}

fn notes(timed: &[Timed<'_>], conditions: &Conditions) -> Vec<String> {
    let is_timed = |wanted: Test| timed.iter().any(|timed| timed.test == wanted);
    let has_mutex = is_timed(Test::Synchronized) || is_timed(Test::SynchronizedPlain);
    let known = [
        (is_timed(Test::SuspendResume), LEFT_BY_FUTEX),
        (has_mutex, LEFT_BY_MUTEX),
        (!conditions.real_time, NO_FIFO),
    ];
    let known = known.into_iter().filter(|(is_so, _)| *is_so);
    let dropped = Test::ALL.into_iter().filter_map(|test| {
        let answers = conditions.answers.iter();
        let answers = answers.filter(|kept| kept.labels["test"] == test.label().into());
        let (mut dropped, mut taken) = (0, 0);
        for kept in answers {
            let of_round = kept.answer.numbers.get("dropped").copied().unwrap_or(0.0) as usize;
            dropped += of_round;
            taken += of_round + kept.answer.samples.first().map_or(0, Vec::len);
        }
        (dropped > 0).then(|| {
            format!(
                "{}: in {dropped} of {taken} samples the other thread did not run when it should have; they are not counted.",
                test.name()
            )
        })
    });
    known
        .map(|(_, note)| note.to_owned())
        .chain(dropped)
        .collect()
}

fn capitalised(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

const HAND_OVER: &str = "hand_over";
const UNCONTENDED: &str = "uncontended";
pub(super) const SWITCH: &str = "switch";
const DISTANCE_PERCENT_MAX: f64 = 10.0;
const LEFT_BY_FUTEX: &str = "Suspend-resume: the low-priority thread wakes the high-priority one, which sleeps again. What is subtracted is a \
                             futex(2) call that finds nobody to wake and one that finds no reason to sleep, and the rest is halved, as in \
                             P0 and P2. That the one call makes a thread ready and the other takes it off the ready queue is left in the \
                             switch.";
const LEFT_BY_MUTEX: &str = "Synchronized suspend-resume: what is subtracted is taking and giving back a free mutex, as in P0, which on Linux \
                             makes no system call. So the switch holds what the kernel does for a contended one: futex(2) to give it \
                             back and wake the waiting thread, the return from the call in which it slept, and with priority inheritance \
                             the hand-over of ownership and of the lent priority.";
const NO_FIFO: &str = "Without SCHED_FIFO a yield need not let the other thread run, and a thread that is woken need not run at once: batches \
                       of yields in which the threads did not take turns are dropped, and a hand-over may hold what the first \
                       thread did until it slept.";

#[cfg(test)]
mod tests {
    use rtorb_results::{LabelValue, Verdict};

    use super::*;
    use crate::experiment::Effort;
    use crate::processes::probe::Answer;

    fn answered(test: Test, round: usize, [hand_over_ns, uncontended_ns]: [&[u64]; 2]) -> Answered {
        Answered {
            labels: labels([("test", test.label().into())]),
            round,
            answer: Answer {
                samples: vec![hand_over_ns.to_vec(), uncontended_ns.to_vec()],
                ..Answer::default()
            },
        }
    }

    /// Whole runs with these medians.
    fn conditions(test: Test, runs_ns: &[u64]) -> Conditions {
        let rounds_of_run = rounds_of_run(Effort::Quick);
        let round = |round: usize| {
            // Rounds that the host disturbed move no run's figure.
            let disturbance_ns = if round.is_multiple_of(3) { 50_000 } else { 0 };
            let ns = runs_ns[round / rounds_of_run];
            let samples_ns = [ns + disturbance_ns, ns + disturbance_ns + 10, ns + 90_000];
            answered(test, round, [&samples_ns, &[500; 3]])
        };
        Conditions {
            effort: Effort::Quick,
            real_time: true,
            answers: (0..runs_ns.len() * rounds_of_run).map(round).collect(),
            ..Conditions::default()
        }
    }

    fn found(conditions: &Conditions) -> Findings {
        findings(&Cells::default(), conditions)
    }

    #[test]
    fn what_takes_no_switch_is_subtracted_sample_by_sample() {
        let found = found(&conditions(Test::Synchronized, &[3_000; 5]));
        let median_ns = |what| samples(&found.cells, Test::Synchronized, what)?.median_ns();
        assert_eq!(median_ns(HAND_OVER), Some(3_010.0));
        assert_eq!(median_ns(UNCONTENDED), Some(500.0));
        assert_eq!(median_ns(SWITCH), Some(2_510.0));
        let negative = cells(&[answered(Test::SuspendResume, 0, [&[400], &[500]])]);
        let switch = samples(&negative, Test::SuspendResume, SWITCH);
        assert_eq!(switch.and_then(Samples::median_ns), Some(-100.0));
    }

    #[test]
    fn nothing_is_subtracted_from_a_yield() {
        let found = found(&conditions(Test::Yield, &[700; 5]));
        let parts: Vec<&LabelValue> = found
            .cells
            .all()
            .map(|(labels, _)| &labels["what"])
            .collect();
        assert_eq!(parts, [&UNCONTENDED.into(), &SWITCH.into()]);
        assert_eq!(found.highlights[0].value, 0.71);
    }

    #[test]
    fn one_run_agrees_with_itself_and_is_not_judged() {
        let claims = found(&conditions(Test::SuspendResume, &[1_490])).claims;
        assert_eq!(claims[0].verdict, Verdict::NotJudged);
    }

    #[test]
    fn runs_agree_if_none_is_far_from_the_others() {
        let judged = |runs: &[u64]| {
            let claims = found(&conditions(Test::SuspendResume, runs)).claims;
            assert_eq!(claims[0].rounds, Some(5));
            claims[0].verdict
        };
        assert_eq!(judged(&[1_490, 1_490, 1_540, 1_490, 1_490]), Verdict::Held);
        assert_eq!(judged(&[1_490, 900, 2_100, 2_000, 1_000]), Verdict::Missed);
        // One that is far is enough.
        assert_eq!(
            judged(&[1_632, 1_622, 1_627, 1_835, 1_627]),
            Verdict::Missed
        );
    }

    #[test]
    fn a_run_that_lost_a_round_keeps_its_figure_and_is_not_judged() {
        let mut conditions = conditions(Test::SuspendResume, &[1_490; 5]);
        conditions.answers.remove(17);
        let found = found(&conditions);
        assert_eq!(found.derived[0].rounds, [1_000.0; 5]);
        assert_eq!(found.claims[0].verdict, Verdict::NotJudged);
        assert_eq!(found.claims[0].reason, "1 of 75 rounds were lost");
    }

    #[test]
    fn what_had_no_turns_is_told_and_has_no_series() {
        let mut none = answered(Test::Yield, 0, [&[], &[]]);
        none.answer.numbers.insert("dropped".to_owned(), 7.0);
        let found = found(&Conditions {
            answers: vec![none],
            ..Conditions::default()
        });
        assert_eq!(found.cells.all().count(), 0);
        let notes = found.notes.join(" ");
        assert!(notes.contains("in 7 of 7 samples"), "{notes}");
        assert!(notes.contains("Without SCHED_FIFO"), "{notes}");
    }

    #[test]
    fn the_published_figures_stand_beside_ours() {
        let published = found(&conditions(Test::Yield, &[700; 5])).published;
        let shown: Vec<&str> = published.iter().map(|row| row.published.as_str()).collect();
        assert_eq!(shown.len(), 2);
        assert!(shown[0].contains("Linux 0.548 (0.006)"));
        assert!(shown[1].contains("Linux 2.60 (0.023)"));
    }
}
