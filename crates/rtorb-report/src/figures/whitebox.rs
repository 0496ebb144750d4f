//! What a request costs besides time: a bar a preset and side; and where its processor time goes.

use plotly::common::{Marker, Pattern, PatternShape};
use plotly::layout::Axis;
use plotly::layout::{AxisType, BarMode};
use plotly::{Bar, Layout, Plot};
use rtorb_results::summary::text;
use rtorb_results::{Results, Series};

use super::{Choice, Figure, axis, choice, id};

/// Counts a request of results that have counts; without choices for others.
pub(super) fn counts(results: &Results) -> Figure {
    let counted = COUNTED
        .into_iter()
        .filter(|(what, ..)| results.series.iter().any(|series| is(series, "what", what)));
    Figure {
        id: id(results, "counts-a-request"),
        title: "What a request costs besides time".to_owned(),
        caption: "Ten concurrent clients, one of them of high priority. A preset without a bar needs none of it."
            .to_owned(),
        scales: None,
        choices: counted
            .map(|(what, name, unit)| {
                let shown = results.series.iter().filter(|series| is(series, "what", what));
                choice(name, counts_plot(results, what, unit), shown.filter(|series| !is(series, "clients", "1")))
            })
            .collect(),
    }
}

/// The processor time of a request, shared out; without choices for results that have no phases.
pub(super) fn phases(results: &Results) -> Figure {
    let has_phases = results
        .series
        .iter()
        .any(|series| is(series, "what", PHASES));
    let choices = ["client", "server"].into_iter().filter(|_| has_phases);
    Figure {
        id: id(results, "phases"),
        title: "Where the processor time of a request goes".to_owned(),
        caption: "Ten concurrent clients. Bars with lines are time in the kernel. The pause that the high-priority client \
                  makes is left out."
            .to_owned(),
        scales: None,
        choices: choices
            .map(|side| {
                let of_phases = |series: &&Series| {
                    is(series, "what", PHASES) && is(series, "side", side) && !is(series, "clients", "1")
                };
                let shown = results.series.iter().filter(of_phases);
                choice(&format!("{side} side"), phases_plot(results, side), shown)
            })
            .collect::<Vec<Choice>>(),
    }
}

fn counts_plot(results: &Results, what: &str, unit: &str) -> Plot {
    let mut plot = Plot::new();
    for (side, color) in [("client", "#7cb5f0"), ("server", "#2f7ed8")] {
        let (presets, values) = bars(results, side, |series| is(series, "what", what));
        let bar = Bar::new(presets, values)
            .name(side)
            .marker(Marker::new().color(color));
        plot.add_trace(bar.hover_template("%{x}: %{y:.2f} a request"));
    }
    plot.set_layout(
        Layout::new()
            .x_axis(Axis::new().type_(AxisType::Category))
            .y_axis(axis(unit)),
    );
    plot
}

fn phases_plot(results: &Results, side: &str) -> Plot {
    let mut plot = Plot::new();
    for phase in SHOWN {
        let of_phase =
            |series: &Series| is(series, "what", PHASES) && is(series, "phase", phase.label);
        let (presets, values) = bars(results, side, of_phase);
        let mut marker = Marker::new().color(phase.color);
        if phase.is_kernel {
            marker = marker.pattern(Pattern::new().shape(PatternShape::RightDiagonalLine));
        }
        let values = values.into_iter().map(|ns| ns / 1e3).collect();
        let bar = Bar::new(presets, values).name(phase.name).marker(marker);
        plot.add_trace(bar.hover_template("%{x}: %{y:.2f} us"));
    }
    plot.set_layout(
        Layout::new()
            .bar_mode(BarMode::Stack)
            .x_axis(Axis::new().type_(AxisType::Category))
            .y_axis(axis("us a request")),
    );
    plot
}

/// The presets, and the value of each, on one side and with the most clients.
fn bars(
    results: &Results,
    side: &str,
    wanted: impl Fn(&Series) -> bool,
) -> (Vec<String>, Vec<f64>) {
    let of_side = results
        .series
        .iter()
        .filter(|series| wanted(series) && is(series, "side", side) && !is(series, "clients", "1"));
    let bar = |series: &Series| {
        let preset = text(&series.labels, "preset").unwrap_or_default();
        (preset, series.median_of_rounds())
    };
    of_side.map(bar).unzip()
}

fn is(series: &Series, label: &str, value: &str) -> bool {
    text(&series.labels, label).is_some_and(|found| found == value)
}

const PHASES: &str = "cpu_time_of";
/// A part of the processor time of a request.
struct Phase {
    /// The value of the label `phase`.
    label: &'static str,
    name: &'static str,
    color: &'static str,
    /// Whether the kernel executes it.
    is_kernel: bool,
}

const fn phase(
    label: &'static str,
    name: &'static str,
    color: &'static str,
    is_kernel: bool,
) -> Phase {
    Phase {
        label,
        name,
        color,
        is_kernel,
    }
}

/// In the order of a bar. The pause between calls is none of the ORB's, and not shown.
const SHOWN: [Phase; 8] = [
    phase("orb", "ORB and servant", "#2f7ed8", false),
    phase("user_locks", "locks", "#c2577e", false),
    phase("heap", "heap", "#d9822b", false),
    phase("io", "kernel: sockets", "#3a9e6d", true),
    phase("kernel_locks", "kernel: locks", "#c2577e", true),
    phase("switches", "kernel: switches", "#8a63d2", true),
    phase("priorities", "kernel: priorities", "#d9822b", true),
    phase("other_kernel", "kernel: other", "#a3a8b0", true),
];
/// The value of `what`, its name, and the title of its axis.
const COUNTED: [(&str, &str, &str); 6] = [
    (
        "user_locks",
        "user-level lock operations",
        "lock operations a request",
    ),
    (
        "kernel_locks",
        "kernel-level lock calls",
        "futex calls a request",
    ),
    ("heap_calls", "heap calls", "heap calls a request"),
    ("system_calls", "system calls", "system calls a request"),
    (
        "voluntary_switches",
        "switches: a thread waits",
        "switches a request",
    ),
    (
        "involuntary_switches",
        "switches: a thread is displaced",
        "switches a request",
    ),
];
