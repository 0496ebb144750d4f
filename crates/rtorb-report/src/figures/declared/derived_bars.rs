//! Bars of derived numbers: beside each other, or on each other as the parts of a whole.

use plotly::common::{Line, Marker, MarkerSymbol, Mode};
use plotly::layout::{AxisType, BarMode, RangeMode};
use plotly::{Bar, Layout, Plot as Drawn, Scatter};
use rtorb_results::summary::words::{part_of, parts_of, said_of, shown_unit};
use rtorb_results::{Derived, LabelValue, Labels, Plot, Results};

use super::super::{Choice, Figure, LINE_COLORS, axis, drawn_choice, id};

/// The figure of one plot; without choices when nothing that it asks for was derived.
pub(super) fn figure(results: &Results, plot: &Plot) -> Figure {
    let of_name = |name: &str| -> Vec<&Derived> {
        let has_all = |one: &&Derived| {
            let mut wanted = plot.of.iter();
            one.name == name && wanted.all(|(of, value)| one.labels.get(of) == Some(value))
        };
        results.derived.iter().filter(has_all).collect()
    };
    let numbers = of_name(&plot.derived);
    let marked: Vec<(&String, Vec<&Derived>)> = plot
        .marks
        .iter()
        .map(|name| (name, of_name(name)))
        .collect();
    let mut choices: Vec<Choice> = Vec::new();
    for chosen in parts_of(labels_of(&numbers), &plot.choose) {
        let is_of = |one: &&Derived| part_of(&one.labels, &plot.choose) == chosen;
        let shown: Vec<&Derived> = numbers.iter().copied().filter(is_of).collect();
        let marked: Vec<(&str, Vec<&Derived>)> = marked
            .iter()
            .map(|(name, of)| (name.as_str(), of.iter().copied().filter(is_of).collect()))
            .collect();
        let source = format!("{} derived numbers {}", shown.len(), plot.derived);
        choices.push(drawn_choice(
            &said_of(&plot.choose, &chosen),
            drawn(plot, &shown, &marked),
            source,
        ));
    }
    Figure {
        id: id(results, &plot.id),
        title: plot.title.clone(),
        caption: plot.caption.clone(),
        scales: None,
        choices,
    }
}

fn labels_of<'a>(numbers: &'a [&Derived]) -> impl Iterator<Item = &'a Labels> {
    numbers.iter().map(|one| &one.labels)
}

fn drawn(plot: &Plot, numbers: &[&Derived], marked: &[(&str, Vec<&Derived>)]) -> Drawn {
    let scale = BarScale::of(numbers, marked);
    let mut drawn = Drawn::new();
    for (at, line) in parts_of(labels_of(numbers), &plot.lines).iter().enumerate() {
        let own = numbers
            .iter()
            .filter(|one| part_of(&one.labels, &plot.lines) == *line);
        let (x, y): (Vec<String>, Vec<f64>) = own
            .filter_map(|one| Some((place(one, &plot.x)?, scale.of_value(one.value))))
            .unzip();
        let bar = Bar::new(x, y)
            .name(said_of(&plot.lines, line))
            .marker(Marker::new().color(LINE_COLORS[at % LINE_COLORS.len()]))
            .hover_template(format!("%{{x}}: %{{y:,.4~r}} {}", scale.unit));
        drawn.add_trace(bar);
    }
    for (at, (name, of)) in marked.iter().enumerate() {
        let (x, y): (Vec<String>, Vec<f64>) = of
            .iter()
            .filter_map(|one| Some((place(one, &plot.x)?, scale.of_value(one.value))))
            .unzip();
        if x.is_empty() {
            continue;
        }
        let symbol = SYMBOLS[at % SYMBOLS.len()].clone();
        let trace = Scatter::new(x, y)
            .name(name.trim_end_matches("_percent").replace('_', " "))
            .mode(Mode::Markers)
            .marker(
                Marker::new()
                    .color(MARK_COLORS[at % MARK_COLORS.len()])
                    .line(Line::new().color("#ffffff").width(1.0))
                    .symbol(symbol)
                    .size(12),
            )
            .hover_template(format!("%{{x}}: %{{y:,.4~r}} {}", scale.unit));
        drawn.add_trace(trace);
    }
    let y = axis(&scale.unit).range_mode(RangeMode::ToZero);
    let x = axis(&plot.x_title).type_(AxisType::Category);
    let mode = if plot.stacked {
        BarMode::Stack
    } else {
        BarMode::Group
    };
    drawn.set_layout(Layout::new().x_axis(x).y_axis(y).bar_mode(mode));
    drawn
}

/// A place on the axis of names.
fn place(one: &Derived, x: &str) -> Option<String> {
    Some(match one.labels.get(x)? {
        LabelValue::Text(text) => text.clone(),
        other => other.to_string(),
    })
}

/// The unit in which the largest is read most easily.
struct BarScale {
    divisor: f64,
    unit: String,
}

impl BarScale {
    fn of(numbers: &[&Derived], marked: &[(&str, Vec<&Derived>)]) -> Self {
        let all = || numbers.iter().chain(marked.iter().flat_map(|(_, of)| of));
        let largest = all().map(|one| one.value).fold(0.0, f64::max);
        let unit = all().next().map_or("", |one| one.unit.as_str());
        let (divisor, unit) = match unit {
            "ns" if largest >= 1e7 => (1e6, "ms".to_owned()),
            "ns" => (1e3, "us".to_owned()),
            "percent" => (1.0, "%".to_owned()),
            other => (1.0, shown_unit(other)),
        };
        Self { divisor, unit }
    }

    fn of_value(&self, value: f64) -> f64 {
        value / self.divisor
    }
}

/// They are seen on every bar.
const MARK_COLORS: [&str; 3] = ["#d0342c", "#f2c94c", "#1d2024"];
const SYMBOLS: [MarkerSymbol; 3] = [
    MarkerSymbol::Diamond,
    MarkerSymbol::TriangleUp,
    MarkerSymbol::TriangleDown,
];
