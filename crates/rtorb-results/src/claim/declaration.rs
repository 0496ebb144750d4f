//! Declared claims: what an experiment promises, as data, and the one place that judges it.

use super::Claim;
use crate::by_round::ByRound;
use crate::cells::{Cells, Samples};
use crate::labels::{Labels, is_part};
use crate::metric::Metric;
use crate::pattern;

/// A claim about every cell that a pattern selects.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// Identifies the claim in all runs, with the values of labels in braces: `to-alone.{low_clients}`.
    pub id: &'static str,
    /// The statement in words, with the values of labels in braces.
    pub says: &'static str,
    /// The cells that it is about, as a pattern of labels: `preset=tao, low_clients>0, part=call`.
    pub of: &'static str,
    /// The number that decides it.
    pub metric: Metric,
    /// The largest value with which it is held, in the metric's unit.
    pub at_most: f64,
    /// The same where servers run on other hosts, if it is another one.
    pub at_most_on_hosts: Option<f64>,
    /// By which rounds it is judged.
    pub judged: Judged,
    /// The number of rounds in which it is measured, if that is not every round.
    pub rounds: Option<usize>,
}

/// By which rounds a claim is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// The interval of the median of the rounds, of which there are at least six.
    Median,
    /// The largest of at least two rounds.
    EveryRound,
    /// The largest round: a count is exact in each.
    Count,
}

/// What claims are judged by.
#[derive(Clone, Copy, Debug)]
pub struct Grounds<'a> {
    /// What was measured.
    pub cells: &'a Cells,
    /// The labels of all cells that were planned, without those of parts.
    pub planned: &'a [Labels],
    /// The planned number of rounds.
    pub rounds: usize,
    /// Rounds are seeds of an emulated machine, which repeats: each of them decides, and few are enough.
    pub is_emulated: bool,
    /// Servers run on other hosts.
    pub on_hosts: bool,
    /// Labels of what is not on this host, with the reason.
    pub absent: &'a [(Labels, String)],
}

impl Declaration {
    /// A claim about a time or a quotient of times, which must not exceed a limit.
    #[must_use]
    pub const fn at_most(id: &'static str, metric: Metric, at_most: f64) -> Self {
        Self {
            id,
            says: "",
            of: "",
            metric,
            at_most,
            at_most_on_hosts: None,
            judged: Judged::Median,
            rounds: None,
        }
    }

    /// A claim about a count, which must not exceed a limit in any round.
    #[must_use]
    pub const fn count(id: &'static str, metric: Metric, at_most: f64) -> Self {
        Self {
            judged: Judged::Count,
            ..Self::at_most(id, metric, at_most)
        }
    }

    /// A claim about every round, none of which may exceed a limit.
    #[must_use]
    pub const fn each(id: &'static str, metric: Metric, at_most: f64) -> Self {
        Self {
            judged: Judged::EveryRound,
            ..Self::at_most(id, metric, at_most)
        }
    }

    /// The claim about what is measured in so many rounds only.
    #[must_use]
    pub const fn in_rounds(self, rounds: usize) -> Self {
        Self {
            rounds: Some(rounds),
            ..self
        }
    }

    /// The claim with its words and the pattern of the cells that it is about.
    #[must_use]
    pub const fn of(self, of: &'static str, says: &'static str) -> Self {
        Self { of, says, ..self }
    }

    /// The claims about all cells that it is about: those that were measured, and those that were only planned.
    #[must_use]
    pub fn judge(&self, grounds: &Grounds<'_>) -> Vec<Claim> {
        let subjects = grounds.subjects(self.of);
        subjects
            .iter()
            .map(|subject| self.judge_one(grounds, subject))
            .collect()
    }

    /// Made-up cells of a subject. `values` has, for each round, the number of the cell that the metric begins with and of those that
    /// are added to it; the others have 1,000.
    #[cfg(any(test, feature = "synthetic"))]
    #[must_use]
    pub fn made_up(&self, subject: &Labels, values: &[f64], wrong: u64) -> Cells {
        let mut cells = Cells::default();
        for (round, value) in values.iter().enumerate() {
            for (of, is_added) in self.metric.cells() {
                let value = if is_added { *value } else { 1_000.0 };
                // Half of them twice as large: a deviation is a number too.
                let samples = [vec![value; 900], vec![2.0 * value; 900]].concat();
                let of = pattern::changed(subject, of);
                let known = cells
                    .get(&of)
                    .map_or(0, |known| known.rounds(|_| 0.0).len());
                if known <= round {
                    cells.add_computed(&of, round, &samples);
                    cells.add_wrong(&of, wrong);
                }
            }
        }
        cells
    }

    /// The subjects among cells that are planned.
    #[cfg(any(test, feature = "synthetic"))]
    #[must_use]
    pub fn planned(&self, planned: &[Labels]) -> Vec<Labels> {
        let cells = Cells::default();
        let grounds = Grounds {
            planned,
            ..Grounds::of(&cells, 0)
        };
        grounds.subjects(self.of)
    }

    fn judge_one(&self, grounds: &Grounds<'_>, subject: &Labels) -> Claim {
        let [id, statement] = [self.id, self.says].map(|text| pattern::filled(text, subject));
        let scale = (self.limit(grounds), self.metric.unit);
        let missing = |of: &Labels| {
            let absent = grounds.absent.iter();
            let mut absent = absent.filter(|(absent, _)| is_part(absent, of));
            let why = absent.next().map(|(_, why)| why.clone());
            let excused = why.is_some();
            let reason = why.unwrap_or_else(|| format!("no samples of {}", in_words(of)));
            let claim = Claim::not_measured(id.clone(), statement.clone(), scale, reason);
            Claim { excused, ..claim }
        };
        let rounds = match self.metric.rounds(grounds.cells, subject) {
            Err(none) => return missing(&none.of),
            Ok(rounds) => rounds,
        };
        let sides = self.metric.sides(grounds.cells, subject);
        let samples: Vec<&Samples> = sides.iter().map(|(_, samples)| *samples).collect();
        let measured = rounds_of_all(&samples);
        if measured == 0 {
            return missing(subject);
        }
        let mut claim = if rounds.is_empty() {
            let (limit, unit) = scale;
            let claim = Claim::counted(id, statement, 0.0, limit, unit);
            Claim {
                value: None,
                ..claim
            }
        } else {
            self.judge_rounds(grounds, (id, statement), &rounds)
        };
        let tails = sides.iter().filter_map(|(statistic, _)| statistic.tail());
        let tail = tails.reduce(f64::min);
        let deciding = sides
            .iter()
            .filter_map(|(statistic, _)| statistic.deciding());
        claim.deciding = deciding.reduce(f64::min);
        let planned = self.rounds.unwrap_or(grounds.rounds);
        let wrong: u64 = samples.iter().map(|samples| samples.wrong()).sum();
        if wrong > 0 {
            claim.unjudge(format!("{wrong} answers were wrong"));
        } else if measured < planned {
            let lost = planned - measured;
            claim.unjudge(format!("{lost} of {planned} rounds were lost"));
        } else if rounds.len() < measured {
            let without = measured - rounds.len();
            claim.unjudge(format!(
                "what is divided by is not above zero in {without} of {measured} rounds"
            ));
        } else if let Some(reason) = tail.and_then(|tail| too_few(&samples, tail)) {
            claim.unjudge(reason);
        }
        claim
    }

    fn limit(&self, grounds: &Grounds<'_>) -> f64 {
        let on_hosts = self.at_most_on_hosts.filter(|_| grounds.on_hosts);
        on_hosts.unwrap_or(self.at_most)
    }

    fn judge_rounds(
        &self,
        grounds: &Grounds<'_>,
        (id, statement): (String, String),
        rounds: &ByRound,
    ) -> Claim {
        let [smallest, largest] =
            [f64::min, f64::max].map(|of| rounds.values().into_iter().reduce(of).unwrap_or(0.0));
        let limit = self.limit(grounds);
        let of_largest = || Claim {
            rounds: Some(rounds.len()),
            ..Claim::counted(
                id.clone(),
                statement.clone(),
                largest,
                limit,
                self.metric.unit,
            )
        };
        match self.judged {
            Judged::Count => of_largest(),
            Judged::EveryRound if rounds.len() > 1 => of_largest(),
            Judged::EveryRound => of_largest().not_judged("one round shows no spread"),
            Judged::Median if grounds.is_emulated => {
                let claim = Claim {
                    value: rounds.median(),
                    ..of_largest()
                };
                if smallest <= limit && largest > limit {
                    return claim.not_judged("the seeds disagree");
                }
                claim
            }
            Judged::Median => Claim::of_median(id, statement, rounds, (limit, self.metric.unit)),
        }
    }
}

impl<'a> Grounds<'a> {
    /// Cells of so many rounds, all of which were measured on this host.
    #[must_use]
    pub fn of(cells: &'a Cells, rounds: usize) -> Self {
        Self {
            cells,
            planned: &[],
            rounds,
            is_emulated: false,
            on_hosts: false,
            absent: &[],
        }
    }

    /// The cells that a pattern selects, in the order in which they were measured, and after them those that were planned.
    pub(crate) fn subjects(&self, of: &str) -> Vec<Labels> {
        let measured = self.cells.all().map(|(labels, _)| labels);
        let measured = measured.filter(|labels| pattern::matches(of, labels));
        let mut all: Vec<Labels> = measured.cloned().collect();
        for planned in self.planned {
            // A label that some cells have by plan comes from no part of the others.
            let is_of_part = |name: &str| !self.planned.iter().any(|cell| cell.contains_key(name));
            if !pattern::may_match(of, planned, is_of_part) {
                continue;
            }
            let mut wanted = pattern::wanted(of);
            wanted.extend(planned.clone());
            if !all.iter().any(|measured| is_part(&wanted, measured)) {
                all.push(wanted);
            }
        }
        all
    }
}

/// The number of rounds that all of these have.
fn rounds_of_all(samples: &[&Samples]) -> usize {
    let each = samples.iter().map(|samples| samples.rounds(|_| 0.0));
    let all = each.reduce(|all, one| all.paired(&one, |_, _| 0.0));
    all.map_or(0, |all| all.len())
}

/// Why samples do not show a tail; `None` if they do. Ten samples lie beyond it in the whole run, and one in each round; and both
/// sides of a comparison have the same number, or that of the larger would reach farther.
fn too_few(samples: &[&Samples], tail: f64) -> Option<String> {
    let counts = samples.iter().map(|samples| samples.count());
    let (least, most) = (counts.clone().min()?, counts.max()?);
    if (most - least) as f64 > most as f64 * COUNTS_MAY_DIFFER {
        return Some(format!(
            "a tail of {least} samples is compared with one of {most}"
        ));
    }
    let in_round = samples
        .iter()
        .filter_map(|samples| samples.fewest_in_round());
    let in_round = in_round.min().unwrap_or(0) as f64;
    let is_enough = in_round * tail >= 1.0 && least as f64 * tail >= SAMPLES_BEYOND as f64;
    (tail > 0.0 && !is_enough).then(|| {
        let percentile = 100.0 * (1.0 - tail);
        format!(
            "{least} samples, {in_round} in a round, are too few for a {percentile}th percentile"
        )
    })
}

fn in_words(labels: &Labels) -> String {
    let each = labels.iter().map(|(name, value)| format!("{name}={value}"));
    each.collect::<Vec<_>>().join(", ")
}

/// How many samples must lie beyond a percentile, so that it is none of the largest few.
pub const SAMPLES_BEYOND: u64 = 10;
/// A paced run may lose a call in a hundred.
const COUNTS_MAY_DIFFER: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::labels;
    use crate::metric::{Statistic, Step};

    const TO_ALONE: Declaration = Declaration::at_most(
        "to-alone.{clients}",
        Metric::of(Statistic::P50).with(&[Step::Over(Statistic::P50, "clients=0")]),
        1.5,
    )
    .of(
        "clients>0, part=call",
        "{clients} clients: the median, to that without them",
    );

    fn of(clients: usize) -> Labels {
        labels([("clients", clients.into()), ("part", "call".into())])
    }

    fn planned() -> [Labels; 2] {
        [0usize, 9].map(|clients| labels([("clients", clients.into())]))
    }

    fn judged(declaration: &Declaration, cells: &Cells, absent: &[(Labels, String)]) -> Claim {
        let grounds = Grounds {
            planned: &planned(),
            absent,
            ..Grounds::of(cells, 6)
        };
        let claims = declaration.judge(&grounds);
        let [claim] = <[Claim; 1]>::try_from(claims).expect("one cell is selected");
        claim
    }

    fn cells(rounds: usize, beside_ns: &[u64]) -> Cells {
        let mut cells = Cells::default();
        for round in 0..rounds {
            cells.add(&of(0), round, &vec![100; beside_ns.len()], 0);
            cells.add(&of(9), round, beside_ns, 0);
        }
        cells
    }

    #[test]
    fn every_declared_claim_is_in_the_result() {
        let of_round = |ns| judged(&TO_ALONE, &cells(6, &[ns]), &[]);
        assert_eq!(of_round(120).verdict, Verdict::Held);
        assert_eq!(of_round(120).id, "to-alone.9");
        assert_eq!(of_round(160).verdict, Verdict::Missed);
        let none = judged(&TO_ALONE, &Cells::default(), &[]);
        assert_eq!((none.verdict, none.value), (Verdict::NotMeasured, None));
        assert_eq!(none.reason, "no samples of clients=9, part=call");
        assert!(none.is_failure());
        let absent = [(
            labels([("clients", 9usize.into())]),
            "no such program".to_owned(),
        )];
        let absent = judged(&TO_ALONE, &Cells::default(), &absent);
        assert_eq!(absent.reason, "no such program");
        assert!(!absent.is_failure());
    }

    #[test]
    fn a_lost_round_and_a_wrong_answer_unjudge_times_and_counts() {
        let count = Declaration {
            judged: Judged::Count,
            ..TO_ALONE
        };
        for declaration in [TO_ALONE, count] {
            let lost = judged(&declaration, &cells(5, &[120]), &[]);
            assert_eq!(lost.verdict, Verdict::NotJudged);
            assert_eq!(lost.reason, "1 of 6 rounds were lost");
            let mut wrong = cells(5, &[120]);
            wrong.add(&of(0), 5, &[100], 2);
            wrong.add(&of(9), 5, &[120], 0);
            let wrong = judged(&declaration, &wrong, &[]);
            assert_eq!(wrong.verdict, Verdict::NotJudged);
            assert_eq!(wrong.reason, "2 answers were wrong");
        }
    }

    #[test]
    fn nothing_is_a_share_of_a_negative_time() {
        let mut cells = Cells::default();
        for round in 0..6 {
            cells.add_computed(&of(0), round, &[-1.0]);
            cells.add(&of(9), round, &[120], 0);
        }
        let claim = judged(&TO_ALONE, &cells, &[]);
        assert_eq!((claim.verdict, claim.value), (Verdict::NotJudged, None));
        assert_eq!(
            claim.reason,
            "what is divided by is not above zero in 6 of 6 rounds"
        );
        assert!(!claim.is_failure());
    }

    #[test]
    fn the_largest_round_of_a_count_decides() {
        let count = Declaration::count("none", Metric::of(Statistic::P50).in_unit("events"), 0.0)
            .of("clients=9, part=call", "none in any round");
        let mut cells = Cells::default();
        for (round, events) in [0, 0, 0, 0, 0, 5].into_iter().enumerate() {
            cells.add(&of(9), round, &[events], 0);
        }
        let claim = judged(&count, &cells, &[]);
        assert_eq!((claim.verdict, claim.value), (Verdict::Missed, Some(5.0)));
    }

    #[test]
    fn a_bound_holds_in_every_round() {
        let bound = Declaration::each("bound", Metric::of(Statistic::P50), 100.0)
            .of("clients=9, part=call", "no round is longer");
        let of = |longest| {
            let mut cells = cells(5, &[90]);
            cells.add(&of(9), 5, &[longest], 0);
            judged(&bound, &cells, &[])
        };
        assert_eq!(of(99).verdict, Verdict::Held);
        let missed = of(5_000);
        assert_eq!(
            (missed.verdict, missed.value),
            (Verdict::Missed, Some(5_000.0))
        );
    }

    #[test]
    fn a_tail_needs_samples_and_the_same_number_on_both_sides() {
        let tail = Declaration {
            metric: Metric::of(Statistic::P99).with(&[Step::Over(Statistic::P99, "clients=0")]),
            ..TO_ALONE
        };
        let of_samples = |count: usize| judged(&tail, &cells(6, &vec![120; count]), &[]);
        assert_eq!(of_samples(200).verdict, Verdict::Held);
        for few in [10, 75, 99, 150] {
            assert_eq!(of_samples(few).verdict, Verdict::NotJudged, "{few}");
        }
        let mut unequal = cells(5, &[120; 200]);
        unequal.add(&of(0), 5, &[100; 100], 0);
        unequal.add(&of(9), 5, &[120; 200], 0);
        let unequal = judged(&tail, &unequal, &[]);
        assert_eq!(
            unequal.reason,
            "a tail of 1100 samples is compared with one of 1200"
        );
        assert!((of_samples(200).stolen_share_max() - 0.001).abs() < 1e-12);
    }
}
