//! Latency by the rate of the client, the most urgent first: a staircase, if priorities are kept.

use plotly::common::Marker;
use plotly::layout::AxisType;
use plotly::{Bar, Layout, Plot};
use rtorb_results::summary::{contestant, text};
use rtorb_results::{LabelValue, Results, Series};

use super::{Choice, Figure, axis, choice, color, id};

/// The figure of results whose series say how often their client called; without choices for others.
pub(super) fn figure(results: &Results) -> Figure {
    let mut kinds: Vec<(String, String)> = Vec::new();
    for series in stairs(results) {
        let kind = kind(series);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    // With work, and from the release on, is where it shows.
    kinds.reverse();
    Figure {
        id: id(results, "staircase"),
        title: "Latency by rate".to_owned(),
        caption: "The client that calls most often has the highest priority and stands left. If priorities are kept, the \
                  bars of a colour rise from left to right, or are even."
            .to_owned(),
        scales: None,
        choices: kinds.iter().map(|kind| one(results, kind)).collect(),
    }
}

fn one(results: &Results, of: &(String, String)) -> Choice {
    let of_kind = || stairs(results).filter(|series| kind(series) == *of);
    let mut names: Vec<String> = Vec::new();
    for series in of_kind() {
        let name = contestant(series);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut plot = Plot::new();
    for name in names {
        let mut bars: Vec<&Series> = of_kind()
            .filter(|series| contestant(series) == name)
            .collect();
        bars.sort_by_key(|series| std::cmp::Reverse(number(series, LABEL)));
        let rows: Vec<String> = bars.iter().map(|series| row(series)).collect();
        let values: Vec<f64> = bars
            .iter()
            .map(|series| series.median_of_rounds() / 1e3)
            .collect();
        let bar = Bar::new(rows, values)
            .name(&name)
            .marker(Marker::new().color(color(&name)));
        plot.add_trace(bar.hover_template("%{x}: %{y:.1f} us"));
    }
    plot.set_layout(
        Layout::new()
            .x_axis(axis("").type_(AxisType::Category))
            .y_axis(axis("us, median")),
    );
    let (work_us, part) = of;
    let since = if part == "call" {
        "from sending"
    } else {
        "from the release"
    };
    choice(&format!("{work_us} us of work, {since}"), plot, of_kind())
}

fn stairs(results: &Results) -> impl Iterator<Item = &Series> {
    results
        .series
        .iter()
        .filter(|series| series.labels.contains_key(LABEL))
}

fn kind(series: &Series) -> (String, String) {
    let label = |name| text(&series.labels, name).unwrap_or_default();
    (label("servant_work_us"), label("part"))
}

fn row(series: &Series) -> String {
    let (rate_hz, priority) = (number(series, LABEL), number(series, "priority"));
    format!("{rate_hz} Hz, priority {priority}")
}

fn number(series: &Series, label: &str) -> i64 {
    match series.labels.get(label) {
        Some(LabelValue::Number(number)) => *number,
        _ => 0,
    }
}

const LABEL: &str = "rate_hz";
