//! The executions that were seen, and what follows from them by [`super::equations`].

use std::collections::BTreeMap;

use rtorb_results::rounds::Rounds;
use rtorb_results::statistics::median;
use rtorb_results::{
    Derived, Highlight, Labels, ObtainedScheduling, Series, all_real_time, labels,
};

use super::equations::{overhead_ns, ticks_in};
use super::probe::Executions;
use super::tick::Tick;
use super::{NO_TICK_NS, conclusions};
use crate::experiment::Outcome;
use crate::processes::probe::Answer;

/// Everything of a run.
#[derive(Debug, Default)]
pub(super) struct Measured {
    cells: BTreeMap<(Tick, u64), Cell>,
    without_ticks: Rounds,
    /// e_0 of each round: the shortest execution without ticks (Eq. 6).
    shortest_ns: Vec<f64>,
    scheduling: Vec<ObtainedScheduling>,
}

/// One kind of tick at one resolution.
#[derive(Debug, Default)]
pub(super) struct Cell {
    execution: Rounds,
    overhead: Rounds,
    /// What Eq. (5) says of the executions without ticks, as if they had had these: what else delays the program.
    no_tick: Rounds,
    /// The next, where it is not negative.
    from_medians: Rounds,
    /// Of each round, from the median with and the median without ticks. Signed: noise is as often negative.
    pub(super) overhead_from_medians_ns: Vec<f64>,
    /// Of each round, how much longer the median is than that without ticks, for each tick that was counted.
    pub(super) overhead_by_count_ns: Vec<f64>,
    /// Of each round, the share of executions that were shorter than e_0.
    clamped: Vec<f64>,
    /// Of each round, the share of executions with other ticks than the time had room for.
    off: Vec<f64>,
}

impl Measured {
    /// One round: the answer has times and counts of ticks for each of the executions.
    pub(super) fn add(&mut self, asked: &[Executions], answer: Answer) {
        let pairs = || {
            let pairs = answer.samples.chunks_exact(2);
            asked.iter().zip(pairs)
        };
        let without = pairs().filter(|(executions, _)| executions.is_without_ticks());
        let without_ns: Vec<f64> = without.flat_map(|(_, pair)| as_times(&pair[0])).collect();
        let shortest_ns = without_ns.iter().copied().reduce(f64::min);
        let (Some(shortest_ns), Some(typical_ns)) = (shortest_ns, median(&without_ns)) else {
            return;
        };
        self.without_ticks.add_computed(&without_ns);
        self.shortest_ns.push(shortest_ns);
        for (executions, pair) in pairs() {
            if !executions.is_without_ticks() {
                let key = (executions.tick, executions.resolution_ns);
                let round = Round {
                    executions,
                    times_ns: as_times(&pair[0]),
                    ticks: &pair[1],
                };
                let without = Without {
                    times_ns: &without_ns,
                    shortest_ns,
                    typical_ns,
                };
                self.cells.entry(key).or_default().add(&round, &without);
            }
        }
        self.scheduling = measuring_threads(answer.scheduling);
    }

    pub(super) fn outcome(&self, complete: bool, kernel_hz: Option<u32>) -> Outcome {
        Outcome {
            complete,
            scheduling: self.scheduling.clone(),
            highlights: self.highlights(),
            series: self.series(),
            columns: vec!["tick".to_owned()],
            tables: Vec::new(),
            plots: conclusions::plots(&self.resolutions_us()),
            derived: self.derived(),
            claims: Vec::new(),
            lost: Vec::new(),
            conclusions: conclusions::conclusions(self),
            published: conclusions::published(self),
            notes: conclusions::notes(kernel_hz, self.is_real_time()),
        }
    }

    pub(super) fn cells(&self, tick: Tick) -> impl Iterator<Item = (u64, &Cell)> {
        let of_tick = self.cells.iter().filter(move |((of, _), _)| *of == tick);
        of_tick.map(|((_, resolution_ns), cell)| (*resolution_ns, cell))
    }

    fn is_real_time(&self) -> bool {
        all_real_time(&self.scheduling)
    }

    fn resolutions_us(&self) -> Vec<u64> {
        let all = self
            .cells
            .keys()
            .map(|(_, resolution_ns)| resolution_ns / 1_000);
        std::collections::BTreeSet::from_iter(all)
            .into_iter()
            .collect()
    }

    fn series(&self) -> Vec<Series> {
        let mut series = Vec::new();
        for ((tick, resolution_ns), cell) in &self.cells {
            let of = |what| self.labels(tick.label(), *resolution_ns, what);
            series.push(cell.overhead.series(of(OVERHEAD)));
            series.push(cell.from_medians.series(of(FROM_MEDIANS)));
            series.push(cell.no_tick.series(of(NO_TICK)));
            series.push(cell.execution.series(as_part(of(EXECUTION))));
        }
        if !self.cells.is_empty() {
            let of_none = self.labels("none", NO_TICK_NS, EXECUTION);
            series.push(self.without_ticks.series(as_part(of_none)));
        }
        series
    }

    fn derived(&self) -> Vec<Derived> {
        let mut derived = Vec::new();
        let mut push = |name: &str, labels: Labels, unit: &str, rounds: &[f64]| {
            derived.extend(median(rounds).map(|value| Derived {
                name: name.to_owned(),
                labels,
                unit: unit.to_owned(),
                value,
                rounds: rounds.to_vec(),
            }));
        };
        for ((tick, resolution_ns), cell) in &self.cells {
            let of = |what| self.labels(tick.label(), *resolution_ns, what);
            let shares = cell.shares(*resolution_ns);
            push(
                "overhead_from_medians",
                of(OVERHEAD),
                "ns",
                &cell.overhead_from_medians_ns,
            );
            push(
                "overhead_by_counted_ticks",
                of(OVERHEAD),
                "ns",
                &cell.overhead_by_count_ns,
            );
            push("tick_share", of(OVERHEAD), "ratio", &shares);
            push("clamped_share", of(OVERHEAD), "ratio", &cell.clamped);
            push("ticks_off_share", of(EXECUTION), "ratio", &cell.off);
        }
        let of_none = self.labels("none", NO_TICK_NS, EXECUTION);
        push("time_without_ticks", of_none, "ns", &self.shortest_ns);
        derived
    }

    fn highlights(&self) -> Vec<Highlight> {
        let mut highlights = Vec::new();
        for tick in Tick::ALL {
            // P3's usual clock, or the nearest finer one of this run.
            let usual = self.cells(tick).filter(|(ns, _)| *ns <= MILLISECOND_NS);
            let overhead = usual
                .last()
                .and_then(|(ns, cell)| Some((ns, cell.typical_ns()?)));
            highlights.extend(overhead.map(|(resolution_ns, ns)| Highlight {
                what: format!(
                    "what a tick costs every {} us, by {}",
                    resolution_ns / 1_000,
                    tick.label()
                ),
                value: ns / 1e3,
                unit: "us".to_owned(),
                beside: "QNX on a Pentium 133 or 166: around 5 to 7 us (P3)".to_owned(),
            }));
        }
        let finest = self.cells(Tick::Thread).next();
        let share = finest.and_then(|(ns, cell)| Some((ns, median(&cell.shares(ns))?)));
        highlights.extend(share.map(|(ns, share)| Highlight {
            what: format!(
                "of the CPU goes to a thread that wakes every {} us",
                ns / 1_000
            ),
            value: share * 100.0,
            unit: "%".to_owned(),
            beside: String::new(),
        }));
        highlights
    }

    fn labels(&self, tick: &str, resolution_ns: u64, what: &str) -> Labels {
        labels([
            ("tick", tick.into()),
            ("resolution_us", (resolution_ns / 1_000).into()),
            ("what", what.into()),
            ("real_time", self.is_real_time().into()),
        ])
    }
}

struct Round<'a> {
    executions: &'a Executions,
    times_ns: Vec<f64>,
    ticks: &'a [u64],
}

/// The executions of the same round in which no tick came.
struct Without<'a> {
    times_ns: &'a [f64],
    /// e_0 (Eq. 6).
    shortest_ns: f64,
    /// Their median.
    typical_ns: f64,
}

impl Cell {
    fn add(&mut self, round: &Round<'_>, without: &Without<'_>) {
        let Executions {
            resolution_ns,
            first_ns,
            ..
        } = *round.executions;
        let overhead = |measured_ns, program_ns| {
            let ticks = ticks_in(program_ns, first_ns, resolution_ns);
            overhead_ns(measured_ns, program_ns, ticks, resolution_ns)
        };
        let times_ns = &round.times_ns;
        let each: Vec<f64> = times_ns
            .iter()
            .filter_map(|time_ns| overhead(*time_ns, without.shortest_ns))
            .collect();
        let ticks = ticks_in(without.shortest_ns, first_ns, resolution_ns);
        let without_ticks = without.times_ns.iter();
        let of_none: Vec<f64> = without_ticks
            .filter_map(|time_ns| overhead_ns(*time_ns, without.shortest_ns, ticks, resolution_ns))
            .collect();
        let clamped = each.iter().filter(|ns| **ns < 0.0).count();
        let off = times_ns.iter().zip(round.ticks).filter(|(time_ns, ticks)| {
            ticks_in(**time_ns, first_ns, resolution_ns).abs_diff(**ticks) > 1
        });
        self.off.extend(share(off.count(), times_ns.len()));
        self.clamped.extend(share(clamped, each.len()));
        self.overhead.add_computed(&each);
        self.execution.add_computed(times_ns);
        self.no_tick.add_computed(&of_none);
        let Some(measured_ns) = median(times_ns) else {
            return;
        };
        if let Some(overhead_ns) = overhead(measured_ns, without.typical_ns) {
            self.from_medians.add_computed(&[overhead_ns.max(0.0)]);
            self.overhead_from_medians_ns.push(overhead_ns);
        }
        let counted = median(&as_times(round.ticks)).filter(|ticks| *ticks > 0.0);
        let by_count = counted.map(|ticks| (measured_ns - without.typical_ns) / ticks);
        self.overhead_by_count_ns.extend(by_count);
    }

    /// Whether a tick is more than twice what Eq. (5) makes of executions without any.
    pub(super) fn is_above_noise(&self) -> bool {
        self.typical_ns()
            .zip(self.no_tick_ns())
            .is_some_and(|(typical, none)| typical > 2.0 * none)
    }

    /// The median over rounds of what Eq. (5) says of executions without ticks.
    pub(super) fn no_tick_ns(&self) -> Option<f64> {
        self.no_tick.p50.median()
    }

    /// The median over rounds of Eq. (5) over e_0, as P3 has it.
    pub(super) fn eq_5_ns(&self) -> Option<f64> {
        self.overhead.p50.median()
    }

    /// The median over rounds of the overhead by counted ticks.
    pub(super) fn by_count_ns(&self) -> Option<f64> {
        median(&self.overhead_by_count_ns)
    }

    /// What a tick costs, without what else makes a program longer: the median over rounds of the estimates from medians.
    pub(super) fn typical_ns(&self) -> Option<f64> {
        median(&self.overhead_from_medians_ns)
    }

    pub(super) fn max_ns(&self) -> f64 {
        self.overhead.recorder.statistics().max
    }

    /// How many executions there were, and how many with other ticks than the time had room for.
    pub(super) fn executions_and_off(&self) -> (f64, f64) {
        let count = self.execution.recorder.count() as f64;
        let rounds = self.off.len().max(1) as f64;
        (count, self.off.iter().sum::<f64>() / rounds * count)
    }

    /// Of the CPU, what the ticks take: one in every resolution.
    pub(super) fn shares(&self, resolution_ns: u64) -> Vec<f64> {
        let overheads = self.overhead_by_count_ns.iter();
        overheads.map(|ns| ns / resolution_ns as f64).collect()
    }
}

fn as_times(samples: &[u64]) -> Vec<f64> {
    samples.iter().map(|ns| *ns as f64).collect()
}

fn as_part(mut labels: Labels) -> Labels {
    labels.insert("part".to_owned(), EXECUTION.into());
    labels
}

fn share(of: usize, all: usize) -> Option<f64> {
    (all > 0).then(|| of as f64 / all as f64)
}

/// The probe's main thread, which only waits, is not of them.
fn measuring_threads(all: Vec<ObtainedScheduling>) -> Vec<ObtainedScheduling> {
    let measures = |kind: &ObtainedScheduling| {
        ["program", "tick"]
            .iter()
            .any(|name| kind.process.contains(name))
    };
    all.into_iter().filter(measures).collect()
}

const OVERHEAD: &str = "overhead";
const FROM_MEDIANS: &str = "overhead_from_medians";
const NO_TICK: &str = "overhead_of_no_tick";
const EXECUTION: &str = "execution";
const MILLISECOND_NS: u64 = 1_000_000;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn executions(tick: Tick, resolution_ns: u64) -> Executions {
        Executions {
            tick,
            resolution_ns,
            first_ns: resolution_ns,
            count: 2,
        }
    }

    /// Rounds in which a program of 10.5 ms takes so much longer for each tick as `overhead_ns` says of the resolution.
    pub(in super::super) fn measured(overhead_ns: impl Fn(u64) -> u64) -> Measured {
        let mut measured = Measured::default();
        let resolutions_ns = [500_000, 1_000_000, 10_000_000];
        for drift_ns in [0, 50_000, 100_000] {
            let e = 10_500_000 + drift_ns;
            let mut asked = vec![executions(Tick::Signal, NO_TICK_NS)];
            let mut samples = vec![vec![e + 4_000, e], vec![0, 0]];
            for tick in Tick::ALL {
                for r in resolutions_ns {
                    let n = e / r;
                    let e_m = e + n * overhead_ns(r);
                    asked.push(executions(tick, r));
                    samples.extend([vec![e_m + 4_000, e_m], vec![n, n]]);
                }
            }
            let answer = Answer {
                samples,
                ..Answer::default()
            };
            measured.add(&asked, answer);
        }
        measured
    }

    #[test]
    fn a_drift_from_round_to_round_cancels() {
        let measured = measured(|_| 7_000);
        for (_, cell) in measured.cells(Tick::Signal) {
            assert_eq!(cell.typical_ns(), Some(7_000.0));
            assert!(cell.max_ns() >= 7_000.0 && cell.max_ns() <= 11_000.0);
            assert_eq!(cell.executions_and_off(), (6.0, 0.0));
        }
        let outcome = measured.outcome(true, Some(250));
        let share = outcome.derived.iter().find(|one| one.name == "tick_share");
        assert!((share.unwrap().value - 0.014).abs() < 1e-9, "{share:?}");
    }

    #[test]
    fn what_else_delays_the_program_is_told_apart_from_ticks() {
        // Three executions without ticks that are 0, 60 and 120 us longer than the shortest, and as many with one tick of 40 us.
        let mut measured = Measured::default();
        let asked = [
            executions(Tick::Signal, NO_TICK_NS),
            executions(Tick::Signal, 10_000_000),
        ];
        let without = vec![10_500_000, 10_560_000, 10_620_000];
        let with = without.iter().map(|ns| ns + 40_000).collect();
        let answer = Answer {
            samples: vec![without, vec![0; 3], with, vec![1; 3]],
            ..Answer::default()
        };
        measured.add(&asked, answer);
        let (_, cell) = measured.cells(Tick::Signal).next().unwrap();
        assert_eq!(cell.eq_5_ns(), Some(100_000.0));
        assert_eq!(cell.no_tick_ns(), Some(60_000.0));
        assert_eq!(cell.typical_ns(), Some(40_000.0));
        assert_eq!(cell.by_count_ns(), Some(40_000.0));
        assert!(!cell.is_above_noise());
        let series = measured.series();
        let of = |what: &str| {
            let mut found = series
                .iter()
                .filter(|one| one.labels["what"] == what.into());
            let one = found.next().unwrap();
            (one.count, one.rounds_p50.clone())
        };
        assert_eq!(of(NO_TICK), (3, vec![60_000.0]));
        assert_eq!(of(FROM_MEDIANS), (1, vec![40_000.0]));
    }

    #[test]
    fn executions_shorter_than_e_are_clamped_and_counted_and_lost_ticks_are_seen() {
        let mut measured = Measured::default();
        let asked = [
            executions(Tick::Thread, NO_TICK_NS),
            executions(Tick::Thread, 1_000_000),
        ];
        let answer = Answer {
            samples: vec![
                vec![10_500_000, 10_500_000],
                vec![0, 0],
                vec![10_400_000, 10_600_000],
                vec![10, 5],
            ],
            ..Answer::default()
        };
        measured.add(&asked, answer);
        let (_, cell) = measured.cells(Tick::Thread).next().unwrap();
        assert_eq!(cell.clamped, [0.5]);
        assert_eq!(cell.off, [0.5]);
        let statistics = cell.overhead.recorder.statistics();
        assert_eq!((statistics.min, statistics.max), (0.0, 10_000.0));
        assert_eq!(cell.typical_ns(), Some(0.0));
    }
}
