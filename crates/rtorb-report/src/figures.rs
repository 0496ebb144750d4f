//! The interactive plots: medians by contestant, the tail of each call, time against size.

use std::collections::BTreeMap;

use plotly::common::{DashType, Line, Marker, Mode};
use plotly::layout::{Axis, AxisType, RangeMode};
use plotly::{Bar, Layout, Plot, Scatter};
use rtorb_results::campaign::PREFIX;
use rtorb_results::summary::words::varying;
use rtorb_results::summary::{
    calls, contestant, contestants, row_name, row_name_of, row_names, text,
};
use rtorb_results::{LabelValue, PlotKind, Results, Series};
use serde_json::Value;

use crate::prose;

mod declared;
mod interruptions;
mod low_clients;
mod staircase;
mod whitebox;

/// One plot, or several of a kind that the reader chooses from.
pub(crate) struct Figure {
    /// Its id in the page.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) caption: String,
    /// The scales that the reader may change; `None` where they are part of what the figure says.
    pub(crate) scales: Option<Scales>,
    pub(crate) choices: Vec<Choice>,
}

impl Figure {
    /// The choice that a reader sees first: of those that compare most, the first.
    pub(crate) fn first_choice(&self) -> usize {
        let lines = |choice: &Choice| choice.lines;
        let most = self.choices.iter().map(lines).max();
        let first = self.choices.iter().position(|one| Some(lines(one)) == most);
        first.unwrap_or(0)
    }
}

/// What a figure begins with, and the reader may change.
#[derive(Clone, Copy)]
pub(crate) struct Scales {
    /// Whether the horizontal axis is logarithmic; `None` where it cannot be chosen.
    pub(crate) log_x: Option<bool>,
    pub(crate) log_y: bool,
    /// Whether the vertical axis counts samples, so that it may show shares instead.
    pub(crate) counts: bool,
}

impl Scales {
    fn of(plot: &rtorb_results::Plot, series: &[&Series]) -> Self {
        let is_number = |one: &&Series| {
            one.labels
                .get(&plot.x)
                .is_some_and(|x| x.number().is_some())
        };
        Self {
            log_x: match plot.kind {
                PlotKind::Histogram => Some(plot.log_x || is_wide(series)),
                PlotKind::Lines if series.iter().all(is_number) => Some(plot.log_x),
                // Names have no logarithm, and a tail needs one.
                PlotKind::Lines | PlotKind::Bars | PlotKind::Percentiles => None,
            },
            log_y: plot.log_y || plot.kind == PlotKind::Percentiles,
            counts: plot.kind == PlotKind::Histogram,
        }
    }
}

pub(crate) struct Choice {
    pub(crate) name: String,
    /// The plot as the library's script takes it, safe inside a script element.
    pub(crate) json: String,
    /// Which series of the file it was drawn from, in words.
    pub(crate) source: String,
    /// How many lines, histograms or groups of bars it has.
    lines: usize,
}

/// Every figure that the results of an experiment have something for.
pub(crate) fn figures(results: &Results) -> Vec<Figure> {
    let mut figures: Vec<Figure> = results
        .plots
        .iter()
        .map(|plot| declared::figure(results, plot))
        .collect();
    figures.extend(interruptions::figure(results));
    // These are of one system; several would be drawn as one line.
    let is_of_one = !results.experiment.starts_with(PREFIX);
    figures.extend(
        is_of_one
            .then(|| {
                [
                    low_clients::figure(results),
                    staircase::figure(results),
                    whitebox::counts(results),
                    whitebox::phases(results),
                    above_raw(results),
                ]
            })
            .into_iter()
            .flatten(),
    );
    let says_itself = !results.plots.is_empty() || !results.columns.is_empty();
    figures.extend(if says_itself {
        percentiles(results).into_iter().collect()
    } else {
        vec![
            medians(results),
            tails(results),
            sizes(results),
            counts(results),
        ]
    });
    figures.retain(|figure| !figure.choices.is_empty());
    figures
}

/// The tails of an experiment that says how it is shown and has none of its own: a line for each column of its table.
fn percentiles(results: &Results) -> Option<Figure> {
    let shown = |plot: &rtorb_results::Plot| plot.kind == PlotKind::Percentiles;
    let timed: Vec<&Series> = calls(results)
        .filter(|series| series.unit == "ns" && series.count > 1)
        .collect();
    if timed.is_empty() || results.plots.iter().any(shown) {
        return None;
    }
    let mut choose = varying(&timed);
    choose.retain(|name| !results.columns.contains(name));
    if results.columns.iter().any(|name| name == "system") {
        // A system has one of each.
        choose.retain(|name| name != "kernel" && name != "preempt");
    }
    let plot = rtorb_results::Plot {
        id: "tails".to_owned(),
        title: TAIL_TITLE.to_owned(),
        caption: TAIL_CAPTION.to_owned(),
        kind: PlotKind::Percentiles,
        choose,
        lines: results.columns.clone(),
        ..rtorb_results::Plot::default()
    };
    Some(declared::figure(results, &plot))
}

/// Whether a tail would press all else against the axis.
fn is_wide(series: &[&Series]) -> bool {
    let max = series
        .iter()
        .map(|one| one.statistics.max)
        .fold(0.0, f64::max);
    let median = series
        .iter()
        .map(|one| one.statistics.p50)
        .fold(f64::INFINITY, f64::min);
    max > WIDE * median
}

/// What an ORB is to blame for: its time less that of the octets alone.
fn above_raw(results: &Results) -> Figure {
    let mut transports: Vec<String> = Vec::new();
    for derived in results
        .derived
        .iter()
        .filter(|derived| derived.name == ABOVE_RAW)
    {
        let transport = text(&derived.labels, "transport").unwrap_or_default();
        if !transports.contains(&transport) {
            transports.push(transport);
        }
    }
    Figure {
        id: id(results, "above-raw"),
        title: "What the ORB adds to the octets".to_owned(),
        caption: "The call less the raw exchange of the same octets on the same transport, median over rounds. What \
                  the servant does is in it too, and is the larger part for long sequences."
            .to_owned(),
        scales: None,
        choices: transports
            .iter()
            .flat_map(|transport| {
                [("short messages", false), ("long messages", true)].map(|(name, large)| {
                    let plot = above_raw_plot(results, transport, large);
                    let of_transport = |series: &&Series| text(&series.labels, "transport").as_ref() == Some(transport);
                    choice(&format!("{transport}, {name}"), plot, calls(results).filter(of_transport))
                })
            })
            .collect(),
    }
}

fn above_raw_plot(results: &Results, transport: &str, large: bool) -> Plot {
    let mut bars: BTreeMap<String, (Vec<String>, Vec<f64>)> = BTreeMap::new();
    for derived in results
        .derived
        .iter()
        .filter(|derived| derived.name == ABOVE_RAW)
    {
        let is_large = matches!(derived.labels.get("payload_bytes"), Some(LabelValue::Number(n)) if *n > LARGE_BYTES);
        if text(&derived.labels, "transport").as_deref() == Some(transport) && is_large == large {
            let name = format!(
                "{} {transport}",
                text(&derived.labels, "orb").unwrap_or_default()
            );
            let (rows, values) = bars.entry(name).or_default();
            rows.push(row_name_of(&derived.labels));
            values.push(derived.value / 1e3);
        }
    }
    let mut plot = Plot::new();
    // Ours first, as everywhere.
    for (name, (rows, values)) in bars.into_iter().rev() {
        plot.add_trace(bar(&name, rows, values));
    }
    plot.set_layout(bars_layout("us above raw"));
    plot
}

fn medians(results: &Results) -> Figure {
    // Bars of one contestant, or of many clients, would compare what the other figures show better.
    let to_compare = contestants(results).len() > 1 && !has_roles(results);
    let (small, large): (Vec<String>, Vec<String>) = row_names(results)
        .into_iter()
        .partition(|row| !is_large(results, row));
    let choices = [("short messages", small), ("long messages", large)];
    Figure {
        id: id(results, "medians"),
        title: "Medians, side by side".to_owned(),
        caption: "The bars without an ORB are the physical limit: two processes that hand each other the same octets. \
                  Choose a name in the legend to hide or show it."
            .to_owned(),
        scales: None,
        choices: choices
            .into_iter()
            .filter(|(_, rows)| to_compare && !rows.is_empty())
            .map(|(name, rows)| {
                let shown = calls(results).filter(|series| rows.contains(&row_name(series)));
                choice(name, medians_plot(results, &rows), shown)
            })
            .collect(),
    }
}

fn medians_plot(results: &Results, rows: &[String]) -> Plot {
    let mut plot = Plot::new();
    for name in contestants(results) {
        let mut shown_rows = Vec::new();
        let mut values = Vec::new();
        for row in rows {
            if let Some(series) = find(results, row, &name) {
                shown_rows.push(row.clone());
                values.push(series.median_of_rounds() / 1e3);
            }
        }
        // One bar of many would leave a gap beside all the others.
        if values.is_empty() || (values.len() == 1 && rows.len() > 1) {
            continue;
        }
        plot.add_trace(bar(&name, shown_rows, values));
    }
    plot.set_layout(bars_layout("us, median"));
    plot
}

/// The times of one contestant, in microseconds, each above the name of its row.
fn bar(name: &str, rows: Vec<String>, values_us: Vec<f64>) -> Box<Bar<String, f64>> {
    Bar::new(rows, values_us)
        .name(name)
        .marker(Marker::new().color(color(name)))
        .hover_template("%{x}: %{y:.2f} us")
}

fn bars_layout(y_title: &str) -> Layout {
    Layout::new()
        .x_axis(Axis::new().type_(AxisType::Category))
        .y_axis(axis(y_title))
}

fn tails(results: &Results) -> Figure {
    Figure {
        id: id(results, "tails"),
        title: "The tail: how slow is one call in a thousand".to_owned(),
        caption: TAIL_CAPTION.to_owned(),
        scales: None,
        choices: match contestants(results).len() {
            1 => vec![choice("all", tails_of_rows(results), calls(results))],
            _ => preferred(row_names(results))
                .iter()
                .map(|row| {
                    let shown = calls(results).filter(|series| row_name(series) == *row);
                    choice(row, tails_plot(results, row), shown)
                })
                .collect(),
        },
    }
}

/// The row that most readers look for comes first: the plain call, or the high-priority client under the hardest load, which
/// was measured last.
fn preferred(mut rows: Vec<String>) -> Vec<String> {
    rows.sort_by_key(|row| row != "long");
    if let Some(hardest) = rows.iter().rposition(|row| row.starts_with("octet high")) {
        rows[..=hardest].rotate_right(1);
    }
    rows
}

/// Whether there are clients of several priorities.
fn has_roles(results: &Results) -> bool {
    calls(results).any(|series| series.labels.contains_key("role"))
}

/// The contestants of one row.
fn tails_plot(results: &Results, row: &str) -> Plot {
    let mut plot = Plot::new();
    for name in contestants(results) {
        if let Some(series) = find(results, row, &name) {
            let (x, y) = tail(series);
            plot.add_trace(curve(&name, x, y, Mode::Lines).hover_template(TAIL_HOVER));
        }
    }
    plot.set_layout(tail_layout());
    plot
}

/// All rows of the one contestant that there is.
fn tails_of_rows(results: &Results) -> Plot {
    let mut plot = Plot::new();
    for (series, color) in calls(results).zip(LINE_COLORS.iter().cycle()) {
        let (x, y) = tail(series);
        let line = Scatter::new(x, y).name(row_name(series)).mode(Mode::Lines);
        plot.add_trace(
            line.line(Line::new().color(*color).width(2.0))
                .hover_template(TAIL_HOVER),
        );
    }
    plot.set_layout(tail_layout());
    plot
}

fn tail(series: &Series) -> (Vec<f64>, Vec<f64>) {
    series
        .percentiles
        .iter()
        .map(|point| (point.one_in, point.value / 1e3))
        .unzip()
}

fn tail_layout() -> Layout {
    Layout::new()
        .x_axis(tail_axis())
        .y_axis(axis("us").type_(AxisType::Log))
}

/// How rare a sample is, in the words of a reader.
fn tail_axis() -> Axis {
    let ticks = [
        (1.0, "fastest"),
        (2.0, "50 %"),
        (10.0, "90 %"),
        (1e2, "99 %"),
        (1e3, "99.9 %"),
        (1e4, "99.99 %"),
        (1e5, "99.999 %"),
        (1e6, "99.9999 %"),
    ];
    Axis::new()
        .type_(AxisType::Log)
        .tick_values(ticks.iter().map(|(at, _)| *at).collect())
        .tick_text(ticks.iter().map(|(_, text)| (*text).to_owned()).collect())
}

fn sizes(results: &Results) -> Figure {
    let mut operations: Vec<String> = Vec::new();
    for series in calls(results) {
        let operation = text(&series.labels, "operation").unwrap_or_default();
        let is_sequence = text(&series.labels, "len").is_some_and(|len| len != "0");
        if is_sequence && !operations.contains(&operation) {
            operations.push(operation);
        }
    }
    Figure {
        id: id(results, "sizes"),
        title: "Time against size".to_owned(),
        caption: "Medians of sequences against the octets that each message carries, both scales logarithmic.".to_owned(),
        scales: None,
        choices: operations
            .iter()
            .map(|operation| {
                let is_of = |series: &Series| text(&series.labels, "operation").as_ref() == Some(operation);
                let plot = against(results, "payload_bytes", "octets of payload", is_of);
                choice(operation, plot, calls(results).filter(|series| is_of(series)))
            })
            .collect(),
    }
}

/// For experiments that count something other than octets: objects.
fn counts(results: &Results) -> Figure {
    let counted = COUNTED
        .into_iter()
        .filter(|label| calls(results).any(|series| series.labels.contains_key(*label)));
    Figure {
        id: id(results, "counts"),
        title: "Time against how many there are".to_owned(),
        caption:
            "Medians, from zero up; a flat line means that the time does not grow with the number."
                .to_owned(),
        scales: None,
        choices: counted
            .map(|label| choice(label, counts_plot(results, label), calls(results)))
            .collect(),
    }
}

/// A line for each combination of the other labels.
fn counts_plot(results: &Results, label: &str) -> Plot {
    let mut lines: BTreeMap<String, Vec<(i64, f64)>> = BTreeMap::new();
    for series in calls(results) {
        if let Some(LabelValue::Number(number)) = series.labels.get(label) {
            let mut others = series.clone();
            others.labels.remove(label);
            let name = format!("{}, {}", contestant(series), row_name(&others));
            lines
                .entry(name)
                .or_default()
                .push((*number, series.median_of_rounds() / 1e3));
        }
    }
    let mut plot = Plot::new();
    for (mut points, color, name) in lines
        .into_iter()
        .zip(LINE_COLORS.iter().cycle())
        .map(|((n, p), c)| (p, c, n))
    {
        points.sort_by_key(|(number, _)| *number);
        let (x, y): (Vec<f64>, Vec<f64>) = points
            .into_iter()
            .map(|(number, us)| (number as f64, us))
            .unzip();
        let line = Scatter::new(x, y)
            .name(&name)
            .mode(Mode::LinesMarkers)
            .line(Line::new().color(*color).width(2.0));
        plot.add_trace(line.hover_template("%{x:,.0f}: %{y:.2f} us"));
    }
    let x_axis = axis(label).type_(AxisType::Log).dtick(1.0);
    plot.set_layout(
        Layout::new()
            .x_axis(x_axis)
            .y_axis(axis("us, median").range_mode(RangeMode::ToZero)),
    );
    plot
}

/// The median of each contestant against a label that is a number, both scales logarithmic.
fn against(results: &Results, label: &str, title: &str, wanted: impl Fn(&Series) -> bool) -> Plot {
    let mut plot = Plot::new();
    for name in contestants(results) {
        let mut points: Vec<(i64, f64)> = calls(results)
            .filter(|series| contestant(series) == name && wanted(series))
            .filter_map(|series| match series.labels.get(label) {
                Some(LabelValue::Number(number)) => {
                    Some((*number, series.median_of_rounds() / 1e3))
                }
                _ => None,
            })
            .collect();
        points.sort_by_key(|(number, _)| *number);
        let (x, y) = points
            .into_iter()
            .map(|(number, us)| (number as f64, us))
            .unzip();
        plot.add_trace(
            curve(&name, x, y, Mode::LinesMarkers).hover_template("%{x:,.0f}: %{y:.2f} us"),
        );
    }
    let x_axis = axis(title).type_(AxisType::Log).dtick(1.0);
    plot.set_layout(
        Layout::new()
            .x_axis(x_axis)
            .y_axis(axis("us, median").type_(AxisType::Log)),
    );
    plot
}

fn curve(name: &str, x: Vec<f64>, y: Vec<f64>, mode: Mode) -> Box<Scatter<f64, f64>> {
    let dash = if name.contains("unix") {
        DashType::Dash
    } else {
        DashType::Solid
    };
    let dash = if name.starts_with("raw futex") {
        DashType::Dot
    } else {
        dash
    };
    Scatter::new(x, y)
        .name(name)
        .mode(mode)
        .line(Line::new().color(color(name)).dash(dash).width(2.0))
}

fn axis(title: &str) -> Axis {
    Axis::new().title(title)
}

/// That of a contestant, or one for all others.
fn color(contestant: &str) -> &'static str {
    known_color(contestant).unwrap_or("#8a63d2")
}

/// Ours is blue, the peer orange, the octets alone grey: told apart in light and dark, and by most who see few colours.
fn known_color(contestant: &str) -> Option<&'static str> {
    Some(match contestant {
        "rtorb tcp" => "#2f7ed8",
        "rtorb unix" => "#7cb5f0",
        "omniorb tcp" => "#d9822b",
        "omniorb unix" => "#f0b679",
        "raw tcp" => "#7a7f87",
        "raw unix" => "#a3a8b0",
        "raw futex" => "#c5c9cf",
        // They may stand beside `rtorb tcp`.
        "rtorb tao" => "#1aa0b8",
        "rtorb tao_propagated" => "#7fd0dc",
        "rtorb default" => "#7cb5f0",
        "rtorb mt_orbix" => "#3a9e6d",
        "rtorb minicool" => "#8a63d2",
        "rtorb corbaplus" => "#c2577e",
        "omniorb" => "#d9822b",
        _ => return None,
    })
}

/// A drawing, and the series that it was drawn from.
fn choice<'a>(name: &str, plot: Plot, series: impl Iterator<Item = &'a Series>) -> Choice {
    drawn_choice(name, plot, source(&series.collect::<Vec<_>>()))
}

/// A drawing, and in words what it was drawn from.
fn drawn_choice(name: &str, plot: Plot, source: String) -> Choice {
    let mut drawn: Value = serde_json::from_str(&plot.to_json()).expect("the library writes JSON");
    escape(&mut drawn);
    // A `<` could end the script element that the text stands in.
    Choice {
        name: prose::plain(name),
        lines: drawn["data"].as_array().map_or(0, Vec::len),
        json: drawn.to_string().replace('<', "\\u003c"),
        source,
    }
}

/// How many series and samples there are, and what the series have in common.
fn source(series: &[&Series]) -> String {
    let (Some(first), samples) = (
        series.first(),
        series.iter().map(|one| one.count).sum::<u64>(),
    ) else {
        return String::new();
    };
    let differ = varying(series);
    let shared = first
        .labels
        .iter()
        .filter(|(name, _)| !differ.contains(name));
    let shared: Vec<String> = shared
        .map(|(name, value)| format!("{} {value}", prose::words(name)))
        .collect();
    let with = if shared.is_empty() { "" } else { " with " };
    format!(
        "{} series{with}{}, {samples} samples",
        series.len(),
        shared.join(", ")
    )
}

/// Makes text readable. The library takes some of HTML for markup, links among them: a label's text is text.
fn escape(value: &mut Value) {
    match value {
        Value::String(text) => {
            *text = prose::plain(text)
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;");
        }
        Value::Array(values) => values.iter_mut().for_each(escape),
        Value::Object(members) => members.values_mut().for_each(escape),
        _ => {}
    }
}

fn find<'a>(results: &'a Results, row: &str, name: &str) -> Option<&'a Series> {
    calls(results).find(|series| row_name(series) == row && contestant(series) == name)
}

fn is_large(results: &Results, row: &str) -> bool {
    let payload = |series: &Series| match series.labels.get("payload_bytes") {
        Some(LabelValue::Number(bytes)) => *bytes,
        _ => 0,
    };
    calls(results).any(|series| row_name(series) == row && payload(series) > LARGE_BYTES)
}

fn id(results: &Results, kind: &str) -> String {
    format!("{}-{kind}", results.experiment.replace('/', "-"))
}

/// What an experiment may count.
const COUNTED: [&str; 1] = ["objects"];
const ABOVE_RAW: &str = "time_above_raw";
const TAIL_TITLE: &str = "The tail: how large is one sample in a thousand";
const TAIL_CAPTION: &str = "Further right is rarer, higher is slower; both scales are logarithmic. A flat line is a time that can be \
     relied on; the last point is the slowest of all.";
const TAIL_HOVER: &str = "one in %{x:.0f}: %{y:.2f} us";
const LINE_COLORS: [&str; 8] = [
    "#2f7ed8", "#d9822b", "#3a9e6d", "#8a63d2", "#c2577e", "#7a7f87", "#1aa0b8", "#b3a125",
];
/// Largest sample to median: beyond it, a linear axis shows the tail and nothing else.
const WIDE: f64 = 10.0;
/// Beyond it, bars would dwarf those of the simple operations.
const LARGE_BYTES: i64 = 512;
