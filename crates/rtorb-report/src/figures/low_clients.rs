//! Latency and jitter against the number of low-priority clients: a line a contestant and role.

use std::collections::BTreeMap;

use plotly::common::{DashType, Line, Mode};
use plotly::layout::AxisType;
use plotly::{Layout, Plot, Scatter};
use rtorb_results::statistics::median;
use rtorb_results::summary::{calls, contestant, text};
use rtorb_results::{LabelValue, Results, Series};

use super::{Choice, Figure, axis, choice, color, id};

/// The figure of results whose series say how many low-priority clients there were; without choices for others.
pub(super) fn figure(results: &Results) -> Figure {
    let mut conditions: Vec<(String, String)> = Vec::new();
    for series in calls(results).filter(|series| series.labels.contains_key(LABEL)) {
        let condition = condition(series);
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    // The hardest is what most readers come for.
    conditions.reverse();
    let choices = conditions
        .iter()
        .flat_map(|condition| KINDS.map(|kind| one(results, condition, kind)));
    Figure {
        id: id(results, "low-clients"),
        title: "Latency and jitter against low-priority clients".to_owned(),
        caption: "The high-priority client as a solid line, the low-priority ones dotted, from sending to having the \
                  reply. A flat solid line is an ORB that keeps its priorities; one that rises with the dotted one \
                  inverts them. Jitter is the standard deviation, as in the papers."
            .to_owned(),
        scales: None,
        choices: choices.collect(),
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Median,
    P99,
    Jitter,
}

const KINDS: [Kind; 3] = [Kind::Median, Kind::P99, Kind::Jitter];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Median => "median",
            Self::P99 => "99th percentile",
            Self::Jitter => "jitter",
        }
    }

    fn value_us(self, series: &Series) -> f64 {
        let ns = match self {
            Self::Median => series.median_of_rounds(),
            Self::P99 => median(&series.rounds_p99).unwrap_or(series.statistics.p99),
            Self::Jitter => series.statistics.stddev,
        };
        ns / 1e3
    }
}

fn one(results: &Results, of: &(String, String), kind: Kind) -> Choice {
    let (load, work_us) = of;
    let mut lines: BTreeMap<(String, String), Vec<(i64, f64)>> = BTreeMap::new();
    for series in calls(results).filter(|series| condition(series) == *of) {
        if let Some(LabelValue::Number(clients)) = series.labels.get(LABEL) {
            let role = text(&series.labels, "role").unwrap_or_default();
            lines
                .entry((contestant(series), role))
                .or_default()
                .push((*clients, kind.value_us(series)));
        }
    }
    let mut plot = Plot::new();
    for ((name, role), mut points) in lines {
        points.sort_by_key(|(clients, _)| *clients);
        let (x, y): (Vec<i64>, Vec<f64>) = points.into_iter().unzip();
        let dash = if role == "low" {
            DashType::Dot
        } else {
            DashType::Solid
        };
        let line = Scatter::new(x, y)
            .name(format!("{name}, {role}"))
            .mode(Mode::LinesMarkers)
            .line(Line::new().color(color(&name)).dash(dash).width(2.0));
        plot.add_trace(line.hover_template("%{x} low-priority clients: %{y:.1f} us"));
    }
    plot.set_layout(
        Layout::new()
            .x_axis(axis("low-priority clients"))
            .y_axis(axis(&format!("us, {}", kind.name())).type_(AxisType::Log)),
    );
    choice(
        &format!("{load}, {work_us} us of work, {}", kind.name()),
        plot,
        calls(results).filter(|series| condition(series) == *of),
    )
}

fn condition(series: &Series) -> (String, String) {
    let label = |name| text(&series.labels, name).unwrap_or_default();
    (label("load"), label("servant_work_us"))
}

const LABEL: &str = "low_clients";
