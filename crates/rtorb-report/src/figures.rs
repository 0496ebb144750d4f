//! The interactive plots: those that results declare, and the tail of each call.

use plotly::Plot;
use plotly::layout::{Axis, AxisType};
use rtorb_results::summary::calls;
use rtorb_results::summary::words::varying;
use rtorb_results::{PlotKind, Results, Series};
use serde_json::Value;

use crate::prose;

mod declared;
mod interruptions;

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
    figures.extend(percentiles(results));
    figures.retain(|figure| !figure.choices.is_empty());
    figures
}

/// The tails of results that declare none of their own: a line for each column of their table, or for each contestant.
fn percentiles(results: &Results) -> Option<Figure> {
    let shown = |plot: &rtorb_results::Plot| plot.kind == PlotKind::Percentiles;
    let timed: Vec<&Series> = calls(results)
        .filter(|series| series.unit == "ns" && series.count > 1)
        .collect();
    if timed.is_empty() || results.plots.iter().any(shown) {
        return None;
    }
    let mut choose = varying(&timed);
    let mut lines = results.columns.clone();
    if lines.is_empty() {
        let contestant = |name: &&str| choose.iter().any(|one| one == name);
        lines = CONTESTANT
            .into_iter()
            .filter(contestant)
            .map(str::to_owned)
            .collect();
    }
    if lines.is_empty() {
        // All calls are of one contestant: what is called names the lines.
        lines.append(&mut choose);
    }
    choose.retain(|name| !lines.contains(name));
    if lines.iter().any(|name| name == "system") {
        // A system has one of each.
        choose.retain(|name| name != "kernel" && name != "preempt");
    }
    let plot = rtorb_results::Plot {
        id: "tails".to_owned(),
        title: TAIL_TITLE.to_owned(),
        caption: TAIL_CAPTION.to_owned(),
        kind: PlotKind::Percentiles,
        choose,
        lines,
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

fn axis(title: &str) -> Axis {
    Axis::new().title(title)
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

fn id(results: &Results, kind: &str) -> String {
    format!("{}-{kind}", results.experiment.replace('/', "-"))
}

const TAIL_TITLE: &str = "The tail: how large is one sample in a thousand";
const TAIL_CAPTION: &str = "Further right is rarer, higher is slower; both scales are logarithmic. A flat line is a time that can be \
     relied on; the last point is the slowest of all.";
const LINE_COLORS: [&str; 8] = [
    "#2f7ed8", "#d9822b", "#3a9e6d", "#8a63d2", "#c2577e", "#7a7f87", "#1aa0b8", "#b3a125",
];
/// Largest sample to median: beyond it, a linear axis shows the tail and nothing else.
const WIDE: f64 = 10.0;
/// The labels that tell contestants apart.
const CONTESTANT: [&str; 4] = ["system", "orb", "transport", "preset"];
