//! The samples of an experiment, by labels and round.

use std::collections::BTreeMap;

use crate::by_round::ByRound;
use crate::statistics::{Recorder, Statistics};
use crate::{LabelValue, Labels, Series, WorstSample};

/// The samples under each set of labels, in the order in which they came first.
#[derive(Debug, Default)]
pub struct Cells(Vec<(Labels, Samples)>);

/// Times in nanoseconds, or counts, under one set of labels.
#[derive(Debug, Default)]
pub struct Samples {
    recorder: Recorder,
    rounds: BTreeMap<usize, OfRound>,
    /// What is counted, and how often in all; `None` of times.
    counted: Option<(&'static str, u64)>,
    wrong: u64,
    elapsed_ns: u64,
    /// The slowest sample, if a repeated run can find it again.
    worst: Option<WorstSample>,
    /// A sample of the first round that takes as long as usual.
    typical: Option<WorstSample>,
}

/// The samples of a round.
#[derive(Debug)]
struct OfRound {
    statistics: Statistics,
    count: usize,
}

impl Cells {
    /// Adds the samples of a round. Without any, the round is lost.
    pub fn add(&mut self, labels: &Labels, round: usize, times_ns: &[u64], wrong: u64) {
        let times_ns: Vec<f64> = times_ns.iter().map(|ns| *ns as f64).collect();
        self.add_computed(labels, round, &times_ns);
        self.of(labels).wrong += wrong;
    }

    /// Adds the times of a round that were computed and may be negative: then they count as 0 in percentiles of all samples.
    pub fn add_computed(&mut self, labels: &Labels, round: usize, times_ns: &[f64]) {
        self.of(labels).add(round, times_ns);
    }

    /// Adds what was counted in a round, such as locks a request: `of` is the number of requests, `unit` what they are counted in.
    pub fn add_count(
        &mut self,
        labels: &Labels,
        round: usize,
        value: f64,
        (unit, of): (&'static str, u64),
    ) {
        let samples = self.of(labels);
        samples.add(round, &[value]);
        let counted = samples.counted.map_or(0, |(_, counted)| counted);
        samples.counted = Some((unit, counted + of));
    }

    /// Adds wrong answers to a cell, if it has samples.
    pub fn add_wrong(&mut self, labels: &Labels, wrong: u64) {
        let found = self.0.iter_mut().find(|(known, _)| known == labels);
        if let Some((_, samples)) = found {
            samples.wrong += wrong;
        }
    }

    /// The samples under these labels, which are none at first.
    fn of(&mut self, labels: &Labels) -> &mut Samples {
        let known = self.0.iter().position(|(known, _)| known == labels);
        let place = known.unwrap_or_else(|| {
            self.0.push((labels.clone(), Samples::default()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }

    /// Adds cells that were computed, after those that are there.
    pub fn extend(&mut self, computed: Self) {
        self.0.extend(computed.0);
    }

    /// Notes where the samples of a round are found again: the first was ended by that mark.
    pub fn mark(&mut self, labels: &Labels, first_mark: u64, times_ns: &[u64]) {
        let marked = (first_mark..).zip(times_ns.iter().copied());
        let marked: Vec<_> = marked
            .map(|(mark, value_ns)| WorstSample { mark, value_ns })
            .collect();
        self.mark_each(labels, &marked);
    }

    /// Notes where the samples of a round are found again, if other samples were marked between them.
    pub fn mark_each(&mut self, labels: &Labels, marked: &[WorstSample]) {
        let found = self.0.iter_mut().find(|(known, _)| known == labels);
        if let Some((_, samples)) = found {
            samples.mark(marked);
        }
    }

    /// Adds the time in which the samples of a round were taken, if the samples a second are to be known.
    pub fn add_elapsed(&mut self, labels: &Labels, elapsed_ns: u64) {
        let found = self.0.iter_mut().find(|(known, _)| known == labels);
        if let Some((_, samples)) = found {
            samples.elapsed_ns += elapsed_ns;
        }
    }

    /// The samples of the cell that has these labels and no others.
    pub fn get(&self, labels: &Labels) -> Option<&Samples> {
        let found = self.0.iter().find(|(known, _)| known == labels);
        found.map(|(_, samples)| samples)
    }

    /// The cells with all of these labels.
    pub fn with<'a, 'l>(
        &'a self,
        labels: &'l [(&'l str, LabelValue)],
    ) -> impl Iterator<Item = (&'a Labels, &'a Samples)> {
        let all = self.0.iter().map(|(labels, samples)| (labels, samples));
        all.filter(|(found, _)| {
            let mut wanted = labels.iter();
            wanted.all(|(name, value)| found.get(*name) == Some(value))
        })
    }

    /// All cells.
    pub fn all(&self) -> impl Iterator<Item = (&Labels, &Samples)> {
        self.with(&[])
    }

    /// A series for each cell, with these labels beside its own.
    pub fn series(&self, beside: &Labels) -> Vec<Series> {
        let series = |(labels, samples): (&Labels, &Samples)| {
            let mut labels = labels.clone();
            labels.extend(beside.clone());
            samples.series(labels)
        };
        self.all().map(series).collect()
    }
}

impl Samples {
    fn add(&mut self, round: usize, times_ns: &[f64]) {
        for time_ns in times_ns {
            self.recorder.record_difference(*time_ns);
        }
        self.recorder.end_round();
        if !times_ns.is_empty() {
            let of_round = OfRound {
                statistics: Statistics::exactly(times_ns),
                count: times_ns.len(),
            };
            self.rounds.insert(round, of_round);
        }
    }

    fn mark(&mut self, marked: &[WorstSample]) {
        let all = self.worst.into_iter().chain(marked.iter().copied());
        self.worst = all.reduce(WorstSample::or);
        self.typical = self.typical.or_else(|| WorstSample::typical(marked));
    }

    /// The number of samples.
    pub fn count(&self) -> u64 {
        self.recorder.count()
    }

    /// The statistics of all samples.
    pub fn statistics(&self) -> Statistics {
        self.recorder.statistics()
    }

    /// A statistic of each round.
    pub fn rounds(&self, which: impl Fn(&Statistics) -> f64) -> ByRound {
        let each = self.rounds.iter();
        each.map(|(round, found)| (*round, which(&found.statistics)))
            .collect()
    }

    /// The number of wrong answers.
    pub fn wrong(&self) -> u64 {
        self.wrong
    }

    /// The smallest number of samples of a round; `None` without a round.
    pub(crate) fn fewest_in_round(&self) -> Option<usize> {
        self.rounds.values().map(|round| round.count).min()
    }

    /// The median of the rounds' medians; `None` without samples.
    pub fn median_ns(&self) -> Option<f64> {
        self.rounds(|round| round.p50).median()
    }

    /// Samples a second; `None` if the time in which they were taken is not known.
    pub fn a_second(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| self.count() as f64 * 1e9 / self.elapsed_ns as f64)
    }

    fn series(&self, labels: Labels) -> Series {
        if let Some((unit, of)) = self.counted {
            let rounds = self.rounds(|round| round.p50).values();
            return Series {
                wrong: self.wrong,
                ..Series::of_counts(labels, unit, of, &rounds)
            };
        }
        Series {
            rounds_p50: self.rounds(|round| round.p50).values(),
            rounds_p99: self.rounds(|round| round.p99).values(),
            wrong: self.wrong,
            worst_sample: self.worst,
            typical_sample: self.typical,
            calls_per_second: self.a_second(),
            ..Series::from_recorder(labels, &self.recorder)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels;

    #[test]
    fn cells_are_found_by_some_of_their_labels_and_lost_rounds_leave_gaps() {
        let of = |service: &str, peer: &str| {
            labels([("service", service.into()), ("peer", peer.into())])
        };
        let mut cells = Cells::default();
        cells.add(&of("tcp", "idle"), 0, &[10, 20, 30], 0);
        cells.add(&of("tcp", "awake"), 0, &[1, 2, 3], 0);
        cells.add(&of("tcp", "idle"), 1, &[], 0);
        cells.add(&of("tcp", "idle"), 2, &[40], 1);
        let wanted = [("peer", "idle".into())];
        let found: Vec<_> = cells.with(&wanted).collect();
        assert_eq!(found.len(), 1);
        assert!(cells.get(&labels(wanted.clone())).is_none());
        assert_eq!(cells.get(&of("tcp", "awake")).map(Samples::count), Some(3));
        let medians = found[0].1.rounds(|round| round.p50);
        assert_eq!(medians, [(0, 20.0), (2, 40.0)].into_iter().collect());
        let series = cells.series(&labels([("real_time", true.into())]));
        assert_eq!((series[0].count, series[0].wrong), (4, 1));
        assert_eq!(series[1].labels["real_time"], true.into());
    }

    #[test]
    fn a_negative_time_counts_as_nothing_but_in_median_and_mean() {
        let mut cells = Cells::default();
        cells.add(&Labels::new(), 0, &[3, 1, 2], 0);
        cells.add_computed(&Labels::new(), 1, &[-4.0, -2.0, 9.4]);
        cells.add(&Labels::new(), 2, &[], 0);
        let series = &cells.series(&Labels::new())[0];
        assert_eq!(series.rounds_p50, [2.0, -2.0]);
        assert_eq!(series.rounds_max, [3.0, 9.0]);
        assert_eq!(
            (series.count, series.statistics.min, series.statistics.max),
            (6, 0.0, 9.0)
        );
        assert!((series.statistics.mean - 9.4 / 6.0).abs() < 1e-9);
    }

    #[test]
    fn samples_have_a_rate_where_time_was_taken() {
        let mut cells = Cells::default();
        for round in 0..2 {
            cells.add(&Labels::new(), round, &[10, 20, 30], 0);
            assert_eq!(cells.get(&Labels::new()).and_then(Samples::a_second), None);
        }
        cells.add_elapsed(&Labels::new(), 2_000);
        cells.add_elapsed(&Labels::new(), 1_000);
        let rate = cells.series(&Labels::new())[0].calls_per_second;
        assert_eq!(rate, Some(2e6), "6 samples in 3 us");
    }

    #[test]
    fn the_first_of_the_slowest_samples_keeps_its_mark() {
        let futex = labels([("service", "futex".into())]);
        let mut cells = Cells::default();
        for (round, first_mark, times_ns) in [(0, 11, [3, 9, 4]), (1, 1_011, [8, 12, 12])] {
            cells.add(&futex, round, &times_ns, 0);
            cells.mark(&futex, first_mark, &times_ns);
        }
        let series = &cells.series(&Labels::new())[0];
        let (worst, typical) = (series.worst_sample, series.typical_sample);
        let found = [worst, typical].map(|one| one.map(|one| (one.mark, one.value_ns)));
        assert_eq!(found, [Some((1_012, 12)), Some((13, 4))]);
    }

    #[test]
    fn samples_between_which_others_were_marked_keep_their_marks() {
        let none = Labels::new();
        let sample = |mark, value_ns| WorstSample { mark, value_ns };
        let mut cells = Cells::default();
        for (round, marked) in [
            (0, [sample(2, 5), sample(5, 7), sample(9, 6)]),
            (1, [sample(12, 7), sample(13, 1), sample(17, 8)]),
        ] {
            let times_ns = marked.map(|sample| sample.value_ns);
            cells.add(&none, round, &times_ns, 0);
            cells.mark_each(&none, &marked);
        }
        let series = &cells.series(&none)[0];
        assert_eq!(series.worst_sample, Some(sample(17, 8)));
        assert_eq!(series.typical_sample, Some(sample(9, 6)));
    }
}
