//! Plots that an experiment asks for in words of its labels: the report draws them from the series of the same file.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::view_setters::{owned, view_setters};
use crate::{LabelValue, Labels};

/// One plot, or one for each value of the labels that the reader chooses from.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// Its name in the page, without spaces: `jitter-against-timers`.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// What a reader must know to read it.
    pub caption: String,
    /// How it is drawn.
    pub kind: PlotKind,
    /// Only series that have all of these labels.
    pub of: Labels,
    /// The labels whose values the reader chooses from.
    pub choose: Vec<String>,
    /// The labels whose values name a line, a group of bars or a histogram.
    pub lines: Vec<String>,
    /// The label on the horizontal axis of lines and bars; not of histograms and percentiles.
    pub x: String,
    /// What the horizontal axis is called, with its unit.
    pub x_title: String,
    /// The statistics that are shown, of lines and bars: a line or group for each.
    pub values: Vec<StatisticName>,
    /// Whether the horizontal axis is logarithmic.
    pub log_x: bool,
    /// Whether the vertical axis is logarithmic.
    pub log_y: bool,
    /// The derived numbers that bars are of, by name; empty where they are of series.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub derived: String,
    /// Whether bars stand on each other, the parts of a whole.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub stacked: bool,
    /// Derived numbers that are marked, by name: lines across histograms and percentiles, where all that is drawn has their labels;
    /// symbols beside bars of derived numbers. A bound, a deadline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<String>,
    /// Figures that somebody published, on the same axes.
    pub published: Vec<PublishedPoints>,
}

impl Plot {
    /// Lines against a label.
    pub fn line_chart(id: &str, title: &str) -> Self {
        Self::default().named(id, title)
    }

    /// Bars for the values of a label.
    pub fn bars(id: &str, title: &str) -> Self {
        Self::line_chart(id, title).kind(PlotKind::Bars)
    }

    /// How many samples were how large.
    pub fn histogram(id: &str, title: &str) -> Self {
        Self::line_chart(id, title).kind(PlotKind::Histogram)
    }

    /// How large the samples are that all but one in so many do not exceed.
    pub fn percentiles(id: &str, title: &str) -> Self {
        Self::line_chart(id, title).kind(PlotKind::Percentiles)
    }

    view_setters! {
        /// How it is drawn.
        kind(kind: PlotKind) => kind;
        /// What a reader must know to read it.
        caption(value: impl Into<String>) => value.into();
        /// Only series that have all of these labels.
        of(of: Labels) => of;
        /// The labels whose values the reader chooses from.
        choose(names: impl IntoIterator<Item = impl Into<String>>) => owned(names);
        /// The labels whose values name a line, a group of bars or a histogram.
        lines(names: impl IntoIterator<Item = impl Into<String>>) => owned(names);
        /// The label on the horizontal axis of lines and bars.
        x(value: impl Into<String>) => value.into();
        /// What the horizontal axis is called.
        x_title(value: impl Into<String>) => value.into();
        /// The statistics that are shown.
        values(value: impl Into<Vec<StatisticName>>) => value.into();
        /// The derived numbers that bars are of.
        derived(value: impl Into<String>) => value.into();
        /// Derived numbers that are marked.
        marks(names: impl IntoIterator<Item = impl Into<String>>) => owned(names);
        /// Figures that somebody published.
        published(published: Vec<PublishedPoints>) => published;
        /// A logarithmic horizontal axis.
        log_x() => true;
        /// A logarithmic vertical axis.
        log_y() => true;
        /// Bars that stand on each other.
        stacked() => true;
    }
}

/// How a plot is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlotKind {
    /// A statistic against a label.
    #[default]
    Lines,
    /// The same as bars, for labels that are names.
    Bars,
    /// How many samples were how large.
    Histogram,
    /// How large the samples are that all but one in so many do not exceed.
    Percentiles,
}

/// One of the statistics of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatisticName {
    /// The smallest sample.
    Min,
    /// The arithmetic mean.
    Mean,
    /// The sample standard deviation.
    Stddev,
    /// The median: that of the rounds' medians where there were rounds.
    P50,
    /// Nine of ten samples are at most this.
    P90,
    /// 99 of 100 samples are at most this.
    P99,
    /// The largest sample.
    Max,
    /// Calls a second, which is no time.
    CallsPerSecond,
}

/// Points that a paper gives, in the unit of the plot's axis (microseconds for times).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PublishedPoints {
    /// Where they stand, such as `P3 section 5.1`.
    pub source: String,
    /// What they are of, such as `QNX on a Pentium 133`.
    pub name: String,
    /// Which choice they belong to; empty for all.
    #[serde(default)]
    pub of: BTreeMap<String, LabelValue>,
    /// The value at each place on the horizontal axis.
    pub points: Vec<(LabelValue, f64)>,
}
