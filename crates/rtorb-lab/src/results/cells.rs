//! The samples of an experiment, by labels and round.

use std::collections::BTreeMap;

use super::by_round::ByRound;
use super::statistics::{Recorder, Statistics};
use super::{LabelValue, Labels, Series};

/// The samples under each set of labels, in the order in which they came first.
#[derive(Debug, Default)]
pub(crate) struct Cells(Vec<(Labels, Samples)>);

/// Times in nanoseconds under one set of labels.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    recorder: Recorder,
    rounds: BTreeMap<usize, Statistics>,
    wrong: u64,
}

impl Cells {
    /// Adds the samples of a round. Without any, the round is lost.
    pub(crate) fn add(&mut self, labels: &Labels, round: usize, times_ns: &[u64], wrong: u64) {
        let known = self.0.iter().position(|(known, _)| known == labels);
        let place = known.unwrap_or_else(|| {
            self.0.push((labels.clone(), Samples::default()));
            self.0.len() - 1
        });
        self.0[place].1.add(round, times_ns, wrong);
    }

    /// The cells with all of these labels.
    pub(crate) fn with<'a>(
        &'a self,
        labels: &'a [(&'a str, LabelValue)],
    ) -> impl Iterator<Item = (&'a Labels, &'a Samples)> {
        let all = self.0.iter().map(|(labels, samples)| (labels, samples));
        all.filter(|(found, _)| {
            let mut wanted = labels.iter();
            wanted.all(|(name, value)| found.get(*name) == Some(value))
        })
    }

    /// All cells.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Labels, &Samples)> {
        self.with(&[])
    }

    /// A series for each cell, with these labels beside its own.
    pub(crate) fn series(&self, beside: &Labels) -> Vec<Series> {
        let series = |(labels, samples): (&Labels, &Samples)| {
            let mut labels = labels.clone();
            labels.extend(beside.clone());
            samples.series(labels)
        };
        self.all().map(series).collect()
    }
}

impl Samples {
    fn add(&mut self, round: usize, times_ns: &[u64], wrong: u64) {
        let mut of_round = Recorder::new();
        of_round.record_all(times_ns);
        self.recorder.record_all(times_ns);
        self.recorder.end_round();
        self.wrong += wrong;
        if of_round.count() > 0 {
            self.rounds.insert(round, of_round.statistics());
        }
    }

    /// The statistics of all samples.
    pub(crate) fn statistics(&self) -> Statistics {
        self.recorder.statistics()
    }

    /// A statistic of each round.
    pub(crate) fn rounds(&self, which: impl Fn(&Statistics) -> f64) -> ByRound {
        let each = self.rounds.iter();
        each.map(|(round, found)| (*round, which(found))).collect()
    }

    /// The median of the rounds' medians; `None` without samples.
    pub(crate) fn median_ns(&self) -> Option<f64> {
        self.rounds(|round| round.p50).median()
    }

    fn series(&self, labels: Labels) -> Series {
        Series {
            rounds_p50: self.rounds(|round| round.p50).values(),
            rounds_p99: self.rounds(|round| round.p99).values(),
            wrong: self.wrong,
            ..Series::from_recorder(labels, &self.recorder)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::labels;

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
        let medians = found[0].1.rounds(|round| round.p50);
        assert_eq!(medians, [(0, 20.0), (2, 40.0)].into_iter().collect());
        let series = cells.series(&labels([("real_time", true.into())]));
        assert_eq!((series[0].count, series[0].wrong), (4, 1));
        assert_eq!(series[1].labels["real_time"], true.into());
    }
}
