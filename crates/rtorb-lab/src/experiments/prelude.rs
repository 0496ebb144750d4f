//! What declarations of experiments, and views of several kernels, are written with.

pub(super) use rtorb_results::campaign::SYSTEM;
pub(super) use rtorb_results::claim::Declaration;
pub(super) use rtorb_results::metric::{Metric, Statistic::*, Step::*};
pub(super) use rtorb_results::profile::ServiceRow;
pub(super) use rtorb_results::statements::{
    DerivedOf, HighlightOf, PublishedOf, Sentence, Statements, Words,
};
pub(super) use rtorb_results::systems::Gathered;
pub(super) use rtorb_results::{
    CellValue, LabelValue, Labels, ObtainedScheduling, Plot, PlotKind, Results, StatisticName,
    TableView, labels,
};
pub(super) use strum::VariantNames;

pub(super) use crate::error::LabError;
pub(super) use crate::experiment::{Context, Effort, Emulated, EmulatedLoads, Parameters};
pub(super) use crate::study::{
    Amounts, ByEffort, Cell, Factor, Sampled, Study, Subject, Turn,
    Value::{self, Flag, Number, Text},
};
pub(super) use crate::systems::{By, Compared};

/// The median in microseconds.
pub(super) const US: Metric = Metric::of(P50).with(&[Times(1e-3)]).in_unit("us");
/// The mean in microseconds.
pub(super) const MEAN_US: Metric = Metric::of(Mean).with(&[Times(1e-3)]).in_unit("us");
/// The 90th percentile in microseconds.
pub(super) const P90_US: Metric = Metric::of(P90).with(&[Times(1e-3)]).in_unit("us");
/// The 99th percentile in microseconds.
pub(super) const P99_US: Metric = Metric::of(P99).with(&[Times(1e-3)]).in_unit("us");
/// The largest sample of all rounds in microseconds.
pub(super) const MAX_US: Metric = Metric::of(Max).with(&[Times(1e-3), Largest]).in_unit("us");

/// Names of labels, as tables and plots have them.
pub(super) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
