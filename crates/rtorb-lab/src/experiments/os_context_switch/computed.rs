//! The switches of a thread, and how far runs in processes of their own are apart.

use std::collections::BTreeMap;

use rtorb_results::cells::Cells;
use rtorb_results::statistics::median;
use rtorb_results::{labels_with, labels_without};

use super::probe::Test;
use super::rounds_of_run;
use crate::experiments::prelude::*;
use crate::study::{Answered, Computed, Conditions};

pub(super) fn compute(_: &Cells, conditions: &Conditions) -> Computed {
    let mut cells = cells(&conditions.answers);
    let distances = distances(&cells, rounds_of_run(conditions.effort));
    cells.extend(distances);
    cells.into()
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

/// How far the run of each round is from all runs: its median from theirs, in percent of it.
fn distances(cells: &Cells, rounds_of_run: usize) -> Cells {
    let mut distances = Cells::default();
    for (labels, samples) in cells.with(&[("what", SWITCH.into())]) {
        let rounds = samples.rounds(|round| round.p50);
        let mut runs: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for (round, ns) in rounds.each() {
            runs.entry(round / rounds_of_run).or_default().push(ns);
        }
        let runs = runs.into_iter();
        let runs: BTreeMap<usize, f64> = runs
            .filter_map(|(run, rounds)| Some((run, median(&rounds)?)))
            .collect();
        let medians: Vec<f64> = runs.values().copied().collect();
        let Some(all_ns) = median(&medians).filter(|ns| *ns > 0.0) else {
            continue;
        };
        let of = distance_of(labels);
        for (round, _) in rounds.each() {
            let apart_ns = (runs[&(round / rounds_of_run)] - all_ns).abs();
            distances.add_count(&of, round, 100.0 * apart_ns / all_ns, ("%", 1));
        }
    }
    distances
}

fn distance_of(labels: &Labels) -> Labels {
    labels_with(
        &labels_without(labels, &["what"]),
        [("part", "run_distance".into())],
    )
}

const HAND_OVER: &str = "hand_over";
const UNCONTENDED: &str = "uncontended";
pub(super) const SWITCH: &str = "switch";

pub(super) const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "context switch, {test}",
        of: "what=switch, test!=synchronized_plain",
        metric: US,
        beside: Words::with(
            "runs in processes of their own at most {0} from their median",
            &[Metric::of(P50).at("-what, part=run_distance").with(&[Largest]).in_unit("%")],
        ),
    }],
    claims: &[
        // The kernel's figure is one figure. The distance of a run stands in each of its rounds.
        Declaration::each("runs-agree.{test}", Metric::of(P50).in_unit("%"), 10.0).of(
            "part=run_distance",
            "{test}: how far the median of a run, each in a process of its own, is from that of all runs (the farthest)",
        ),
    ],
    published: &[PublishedOf {
        source: "P0 section 3.1",
        what: "whether the tests agree",
        published: "the measurements \"depend largely on the particular benchmark used\"",
        of: "what=switch, test=synchronized",
        ours: Words::with(
            "the synchronized switch takes {0} as long as that of a yield",
            &[Metric::of(P50).with(&[Over(P50, "test=yield")])],
        ),
    }],
    conclusions: &[Sentence {
        of: "what=switch, test=synchronized",
        says: Words::with(
            "A switch takes {0} by a yield, {1} by a futex, and {2} by a mutex with priority inheritance, without the calls that take no switch.",
            &[US.at("test=yield"), US.at("test=suspend_resume"), US],
        ),
    }],
    ..Statements::NONE
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Effort;
    use crate::processes::probe::Answer;
    use rtorb_results::labels;

    fn of(test: Test, what: &str) -> Labels {
        labels([("test", test.label().into()), ("what", what.into())])
    }

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

    #[test]
    fn what_takes_no_switch_is_subtracted_sample_by_sample() {
        let answers = [(0, [3_000, 3_010]), (1, [400, 400])]
            .map(|(round, ns)| answered(Test::Synchronized, round, [&ns, &[500, 500]]));
        let cells = cells(&answers);
        let switch = cells.get(&of(Test::Synchronized, SWITCH));
        let rounds = switch.map(|switch| switch.rounds(|round| round.p50).values());
        assert_eq!(rounds, Some(vec![2_505.0, -100.0]));
    }

    #[test]
    fn nothing_is_subtracted_from_a_yield() {
        let cells = cells(&[
            answered(Test::Yield, 0, [&[700], &[500]]),
            answered(Test::Yield, 1, [&[], &[]]),
        ]);
        let known: Vec<&Labels> = cells.all().map(|(labels, _)| labels).collect();
        let [alone, switch] = [UNCONTENDED, SWITCH].map(|what| of(Test::Yield, what));
        assert_eq!(known, [&alone, &switch]);
        let switch = cells.get(&switch);
        assert_eq!(switch.and_then(|switch| switch.median_ns()), Some(700.0));
    }

    #[test]
    fn the_distance_of_a_run_is_that_of_its_median() {
        let rounds_of_run = rounds_of_run(Effort::Quick);
        let runs_ns = [1_000, 1_000, 1_200, 1_000, 1_000];
        // Rounds that the host disturbed move no run.
        let ns = |round: usize| {
            let disturbance_ns = if round.is_multiple_of(3) { 50_000 } else { 0 };
            runs_ns[round / rounds_of_run] + disturbance_ns
        };
        let answer = |round| answered(Test::Yield, round, [&[ns(round)], &[500]]);
        let conditions = Conditions {
            effort: Effort::Quick,
            answers: (0..5 * rounds_of_run).map(answer).collect(),
            ..Conditions::default()
        };
        let cells = compute(&Cells::default(), &conditions).cells;
        let found = cells.get(&distance_of(&of(Test::Yield, SWITCH)));
        let found = found.map(|found| found.rounds(|round| round.p50).values());
        let expected = (0..5 * rounds_of_run).map(|round| {
            if round / rounds_of_run == 2 {
                20.0
            } else {
                0.0
            }
        });
        assert_eq!(found, Some(expected.collect()));
    }
}
