//! What a tick costs in each round, by [`super::equations`].

use std::collections::BTreeMap;

use rtorb_results::statistics::median;

use super::equations::{overhead_ns, ticks_in};
use super::probe::Executions;
use super::tick::Tick;
use crate::study::Answered;

/// Everything of a run.
#[derive(Debug, Default)]
pub(super) struct Overheads {
    /// By resolution in nanoseconds.
    all: BTreeMap<(Tick, u64), BTreeMap<usize, Round>>,
    /// The executions of each round in which no tick came.
    pub(super) without_ns: BTreeMap<usize, Vec<f64>>,
}

/// Executions of a round, and what follows from them.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) times_ns: Vec<f64>,
    /// By Eq. (5), of each.
    pub(super) overheads_ns: Vec<f64>,
    /// What Eq. (5) says of the executions without ticks, as if they had had these: what else delays the program.
    pub(super) no_tick_ns: Vec<f64>,
    /// By Eq. (5), from the median with and the median without ticks. Noise is as often negative.
    pub(super) from_medians_ns: Option<f64>,
    /// How much longer the median is than that without ticks, for each tick that was counted.
    pub(super) by_count_ns: Option<f64>,
    /// Executions with other ticks than the time had room for.
    pub(super) off: usize,
}

impl Overheads {
    /// The answers have times, and counts of ticks, for each of the executions.
    pub(super) fn of(answers: &[Answered]) -> Self {
        let mut found = Self::default();
        let tick = |kept: &Answered| {
            let mut ticks = Tick::ALL.into_iter();
            ticks.find(|tick| kept.labels["tick"] == tick.label().into())
        };
        for kept in answers.iter().filter(|kept| tick(kept).is_none()) {
            let times_ns = kept.answer.samples.iter().step_by(2);
            let times_ns = times_ns.flat_map(|times_ns| as_times(times_ns)).collect();
            found.without_ns.insert(kept.round, times_ns);
        }
        for kept in answers {
            let round = || {
                let [times_ns, ticks] = &kept.answer.samples[..] else {
                    return None;
                };
                let resolution_ns = 1_000 * kept.labels["resolution_us"].number()? as u64;
                let executions = Executions::of(tick(kept)?, resolution_ns, ticks.len());
                let without_ns = found.without_ns.get(&kept.round)?;
                let round = Round::of(executions, as_times(times_ns), ticks, without_ns)?;
                Some(((executions.tick, resolution_ns), round))
            };
            if let Some((key, of_round)) = round() {
                let rounds = found.all.entry(key).or_default();
                rounds.insert(kept.round, of_round);
            }
        }
        found
    }

    /// The kind of tick, the resolution in nanoseconds, the number of the round, and the round.
    pub(super) fn each(&self) -> impl Iterator<Item = (Tick, u64, usize, &Round)> {
        let all = self.all.iter();
        all.flat_map(|((tick, resolution_ns), rounds)| {
            let rounds = rounds.iter();
            rounds.map(|(number, round)| (*tick, *resolution_ns, *number, round))
        })
    }
}

impl Round {
    /// `None` if the round has no execution of a kind.
    fn of(
        executions: Executions,
        times_ns: Vec<f64>,
        ticks: &[u64],
        without_ns: &[f64],
    ) -> Option<Self> {
        let Executions {
            resolution_ns,
            first_ns,
            ..
        } = executions;
        let fitting = |program_ns| ticks_in(program_ns, first_ns, resolution_ns);
        let over = |measured_ns, program_ns| {
            overhead_ns(measured_ns, program_ns, fitting(program_ns), resolution_ns)
        };
        let shortest_ns = without_ns.iter().copied().reduce(f64::min)?;
        let over_shortest = |ns: &f64| over(*ns, shortest_ns);
        let (measured_ns, typical_ns) = (median(&times_ns)?, median(without_ns)?);
        let counted = median(&as_times(ticks)).filter(|ticks| *ticks > 0.0);
        let both = times_ns.iter().zip(ticks);
        let off = both.filter(|(time_ns, ticks)| fitting(**time_ns).abs_diff(**ticks) > 1);
        Some(Self {
            overheads_ns: times_ns.iter().filter_map(over_shortest).collect(),
            no_tick_ns: without_ns.iter().filter_map(over_shortest).collect(),
            from_medians_ns: over(measured_ns, typical_ns),
            by_count_ns: counted.map(|ticks| (measured_ns - typical_ns) / ticks),
            off: off.count(),
            times_ns,
        })
    }
}

fn as_times(samples: &[u64]) -> Vec<f64> {
    samples.iter().map(|ns| *ns as f64).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::processes::probe::Answer;
    use rtorb_results::{LabelValue, labels};

    /// Executions of a round, and the ticks that were counted in them.
    pub(in super::super) fn answered(
        tick: &str,
        resolution_us: u64,
        round: usize,
        samples: Vec<Vec<u64>>,
    ) -> Answered {
        Answered {
            labels: labels([
                ("tick", tick.into()),
                ("resolution_us", LabelValue::from(resolution_us)),
            ]),
            round,
            answer: Answer {
                samples,
                ..Answer::default()
            },
        }
    }

    /// Rounds in which a program of 10.5 ms takes so much longer for each tick as `overhead_ns` says of the resolution.
    pub(in super::super) fn measured(overhead_ns: impl Fn(u64) -> u64) -> Vec<Answered> {
        let mut answers = Vec::new();
        for (round, drift_ns) in [0, 50_000, 100_000].into_iter().enumerate() {
            let e = 10_500_000 + drift_ns;
            for tick in Tick::ALL {
                for r in [500, 1_000, 10_000] {
                    let n = e / (1_000 * r);
                    let e_m = e + n * overhead_ns(1_000 * r);
                    let samples = vec![vec![e_m + 4_000, e_m], vec![n, n]];
                    answers.push(answered(tick.label(), r, round, samples));
                }
            }
            let without = vec![vec![e + 4_000], vec![0], vec![e], vec![0]];
            answers.push(answered("none", 100_000, round, without));
        }
        answers
    }

    #[test]
    fn a_drift_from_round_to_round_cancels() {
        let found = Overheads::of(&measured(|_| 7_000));
        assert_eq!(found.each().count(), 18);
        for (.., round) in found.each() {
            assert_eq!(round.from_medians_ns, Some(7_000.0));
            assert_eq!((round.by_count_ns, round.off), (Some(7_000.0), 0));
        }
    }

    #[test]
    fn what_else_delays_the_program_is_told_apart_from_ticks() {
        // Three executions without ticks that are 0, 60 and 120 us longer than the shortest, and as many with one tick of 40 us.
        let without = vec![10_500_000, 10_560_000, 10_620_000];
        let with = without.iter().map(|ns| ns + 40_000).collect();
        let answers = [
            answered("signal", 10_000, 0, vec![with, vec![1; 3]]),
            answered("none", 100_000, 0, vec![without, vec![0; 3]]),
        ];
        let found = Overheads::of(&answers);
        let (.., round) = found.each().next().unwrap();
        assert_eq!(median(&round.overheads_ns), Some(100_000.0));
        assert_eq!(median(&round.no_tick_ns), Some(60_000.0));
        assert_eq!(round.from_medians_ns, Some(40_000.0));
        assert_eq!(round.by_count_ns, Some(40_000.0));
    }

    #[test]
    fn what_eq_3_leaves_out_is_not_in_the_overhead_by_counted_ticks() {
        // A tick of 32 us, ticks among those that are served included.
        let ticks = 10_500_000 / (100_000 - 32_000);
        let with = vec![vec![10_500_000 + ticks * 32_000], vec![ticks]];
        let found = Overheads::of(&[
            answered("signal", 100, 0, with),
            answered("none", 100_000, 0, vec![vec![10_500_000], vec![0]]),
        ]);
        let (.., round) = found.each().next().unwrap();
        assert_eq!(round.by_count_ns, Some(32_000.0));
        let by_eq_5 = round.from_medians_ns.unwrap();
        assert!((34_800.0..34_820.0).contains(&by_eq_5), "{by_eq_5}");
    }

    #[test]
    fn executions_shorter_than_e_stay_negative_and_lost_ticks_are_seen() {
        let with = vec![vec![10_400_000, 10_600_000], vec![10, 5]];
        let answers = [
            answered("none", 100_000, 0, vec![vec![10_500_000; 2], vec![0; 2]]),
            answered("thread", 1_000, 0, with.clone()),
            // Its executions without ticks were lost.
            answered("thread", 1_000, 1, with),
        ];
        let found = Overheads::of(&answers);
        let all: Vec<_> = found.each().collect();
        let [(.., 0, round)] = all[..] else {
            panic!("{all:?}");
        };
        assert_eq!(round.off, 1);
        assert_eq!(round.overheads_ns, [-10_000.0, 10_000.0]);
        assert_eq!(round.from_medians_ns, Some(0.0));
    }
}
