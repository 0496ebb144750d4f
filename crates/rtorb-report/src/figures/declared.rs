//! The plots that an experiment asks for in words of its labels ([`results::Plot`](rtorb_results::Plot)).

use plotly::common::{DashType, Line, Marker, MarkerSymbol, Mode};
use plotly::layout::{Axis, AxisType, BarMode, RangeMode};
use plotly::{Bar, Layout, Plot as Drawn, Scatter};
use rtorb_results::summary::calls;
use rtorb_results::summary::words::{
    part_of, prefix, said, said_of, shown_unit, unit_in, values_of, varying,
};
use rtorb_results::{
    Derived, LabelValue, Labels, Plot, PlotKind, PublishedPoints, Results, Series, StatisticName,
    distinct, is_part,
};

use super::{Figure, LINE_COLORS, Scales, TAIL_CAPTION, choice, id, known_color};

mod derived_bars;
mod marks;
mod steps;

/// The figure of one plot; without choices when nothing that it asks for was measured.
pub(super) fn figure(results: &Results, plot: &Plot) -> Figure {
    if !plot.derived.is_empty() {
        return derived_bars::figure(results, plot);
    }
    let series = series_of(results, plot);
    let lines = lines_of(&series, plot);
    let names: Vec<Labels> = values_of(&series, &lines);
    let units = units_of(&series);
    // A line of one point is none, where there are others.
    let x = std::slice::from_ref(&plot.x);
    let is_line = |series: &[&Series]| values_of(series, x).len() > 1;
    let choice_of = |one: &Series| part_of(&one.labels, &plot.choose);
    let has_lines = plot.kind == PlotKind::Lines
        && values_of(&series, &plot.choose).iter().any(|chosen| {
            let own = series.iter().copied();
            is_line(
                &own.filter(|one| choice_of(one) == *chosen)
                    .collect::<Vec<_>>(),
            )
        });
    let mut choices = Vec::new();
    for chosen in values_of(&series, &plot.choose) {
        for unit in &units {
            let shown: Vec<&Series> = series
                .iter()
                .copied()
                .filter(|one| choice_of(one) == chosen && one.unit == *unit)
                .collect();
            if shown.is_empty() || (has_lines && !is_line(&shown)) {
                continue;
            }
            let drawing = Drawing {
                plot,
                lines: &lines,
                names: &names,
                chosen: &chosen,
                scale: Scale::of(results, unit, &shown),
                marks: marks::of(results, plot, &shown),
                series: shown,
            };
            let mut name = said_of(&plot.choose, &chosen);
            if name.is_empty() && !plot.choose.is_empty() {
                // What has none of the labels to choose by, such as the octets alone.
                name = said_of(&lines, &part_of(&drawing.series[0].labels, &lines));
            }
            if units.len() > 1 {
                name = format!("{name} ({})", unit.replace('_', " "))
                    .trim_start()
                    .to_owned();
            }
            let mut drawn = choice(&name, drawing.draw(), drawing.series.iter().copied());
            if !plot.lines.is_empty() {
                // Those that only keep series apart compare nothing.
                drawn.lines = values_of(&drawing.series, &plot.lines).len();
            }
            choices.push(drawn);
        }
    }
    Figure {
        id: id(results, &plot.id),
        title: plot.title.clone(),
        caption: caption(plot),
        scales: Some(Scales::of(plot, &series)),
        choices,
    }
}

/// A tail is no plot that everybody has met before.
fn caption(plot: &Plot) -> String {
    let explained = plot.kind != PlotKind::Percentiles || plot.caption == TAIL_CAPTION;
    if explained {
        plot.caption.clone()
    } else {
        format!("{} {TAIL_CAPTION}", plot.caption)
    }
}

/// Everything that one choice of a plot is drawn from.
struct Drawing<'a> {
    plot: &'a Plot,
    /// The labels whose values name the lines.
    lines: &'a [String],
    /// Every line of the figure, so that it has the same colour in each choice.
    names: &'a [Labels],
    chosen: &'a Labels,
    scale: Scale,
    marks: Vec<&'a Derived>,
    series: Vec<&'a Series>,
}

impl Drawing<'_> {
    fn draw(&self) -> Drawn {
        let mut drawn = Drawn::new();
        for (at, values) in self.names.iter().enumerate() {
            let of_line: Vec<&Series> = self
                .series
                .iter()
                .copied()
                .filter(|one| part_of(&one.labels, self.lines) == *values)
                .collect();
            if of_line.is_empty() {
                continue;
            }
            match self.plot.kind {
                PlotKind::Lines => self.add_lines(&mut drawn, at, &of_line),
                PlotKind::Bars => self.add_bars(&mut drawn, at, &of_line),
                PlotKind::Histogram => {
                    for one in of_line {
                        drawn.add_trace(steps::trace(
                            one,
                            &self.scale,
                            &self.line_name(at),
                            self.color(at),
                        ));
                    }
                }
                PlotKind::Percentiles => {
                    for one in of_line {
                        drawn.add_trace(self.percentiles(at, one));
                    }
                }
            }
        }
        for (at, mark) in self.marks.iter().enumerate() {
            let across = match self.plot.kind {
                PlotKind::Histogram => Some(marks::upright(mark, at, &self.scale, &self.series)),
                PlotKind::Percentiles => Some(marks::level(mark, at, &self.scale, &self.series)),
                PlotKind::Lines | PlotKind::Bars => None,
            };
            if let Some(trace) = across {
                drawn.add_trace(trace);
            }
        }
        let published = self.plot.published.iter().filter(|points| {
            points
                .of
                .iter()
                .all(|(name, value)| self.chosen.get(name).is_none_or(|found| found == value))
        });
        for (points, symbol) in published.zip(PUBLISHED_SYMBOLS.iter().cycle()) {
            drawn.add_trace(self.published(points, symbol));
        }
        drawn.set_layout(self.layout());
        drawn
    }

    fn add_lines(&self, drawn: &mut Drawn, at: usize, series: &[&Series]) {
        let in_order = self.along_x(series);
        for &value in self.values() {
            let x: Vec<LabelValue> = in_order.iter().map(|(x, _)| x.clone()).collect();
            let y: Vec<f64> = in_order
                .iter()
                .map(|(_, one)| self.value(one, value))
                .collect();
            let trace = Scatter::new(x, y)
                .name(self.trace_name(at, value))
                .mode(Mode::LinesMarkers)
                .line(
                    Line::new()
                        .color(self.color(at))
                        .dash(self.dash(value, at))
                        .width(2.0),
                )
                .marker(Marker::new().symbol(symbol(value, self.values())).size(7))
                .hover_template(format!("%{{x}}: %{{y:,.4~r}} {}", self.scale.unit));
            drawn.add_trace(trace);
        }
    }

    fn add_bars(&self, drawn: &mut Drawn, at: usize, series: &[&Series]) {
        let in_order = self.along_x(series);
        for &value in self.values() {
            let x: Vec<String> = in_order.iter().map(|(x, _)| self.on_axis(x)).collect();
            let y: Vec<f64> = in_order
                .iter()
                .map(|(_, one)| self.value(one, value))
                .collect();
            let bar = Bar::new(x, y)
                .name(self.trace_name(at, value))
                .marker(Marker::new().color(bar_color(self.color(at), value, self.values())))
                .hover_template(format!("%{{x}}: %{{y:,.4~r}} {}", self.scale.unit));
            drawn.add_trace(bar);
        }
    }

    fn percentiles(&self, at: usize, series: &Series) -> Box<Scatter<f64, f64>> {
        let points = series.percentiles.iter();
        let (x, y) = points
            .map(|point| (point.one_in, self.scale.of_value(point.value)))
            .unzip();
        Scatter::new(x, y)
            .name(self.line_name(at))
            .mode(Mode::Lines)
            .line(
                Line::new()
                    .color(self.color(at))
                    .dash(self.dash(StatisticName::P50, at))
                    .width(2.0),
            )
            .hover_template(format!(
                "one in %{{x:.0f}}: %{{y:,.4~r}} {}",
                self.scale.unit
            ))
    }

    fn published(
        &self,
        points: &PublishedPoints,
        symbol: &MarkerSymbol,
    ) -> Box<Scatter<LabelValue, f64>> {
        let (x, y): (Vec<LabelValue>, Vec<f64>) = points
            .points
            .iter()
            .map(|(x, y)| match self.plot.kind {
                PlotKind::Bars => (self.on_axis(x).into(), self.scale.of_published(*y)),
                _ => (x.clone(), self.scale.of_published(*y)),
            })
            .unzip();
        Scatter::new(x, y)
            .name(format!("{} ({})", points.name, points.source))
            .mode(match self.plot.kind {
                // Between names there is nothing.
                PlotKind::Bars => Mode::Markers,
                _ => Mode::LinesMarkers,
            })
            .line(
                Line::new()
                    .color(PUBLISHED_COLOR)
                    .dash(DashType::Dot)
                    .width(2.0),
            )
            .marker(
                Marker::new()
                    .color(PUBLISHED_COLOR)
                    .symbol(symbol.clone())
                    .size(8),
            )
            .hover_template(format!(
                "published, %{{x}}: %{{y:,.4~r}} {}",
                self.scale.unit
            ))
    }

    fn layout(&self) -> Layout {
        let unit = &self.scale.unit;
        let (x, y) = match self.plot.kind {
            PlotKind::Lines | PlotKind::Bars => {
                let y = match self.values() {
                    [one @ StatisticName::CallsPerSecond] => statistic(*one).to_owned(),
                    [one] => format!("{unit}, {}", statistic(*one)),
                    _ => unit.clone(),
                };
                (self.x_axis(), y)
            }
            PlotKind::Histogram => {
                let title = if self.plot.x_title.is_empty() {
                    unit.clone()
                } else {
                    self.plot.x_title.clone()
                };
                (super::axis(&title), "samples".to_owned())
            }
            PlotKind::Percentiles => (super::tail_axis(), unit.clone()),
        };
        let y = super::axis(y.trim_start_matches(", ")).range_mode(RangeMode::ToZero);
        let layout = Layout::new().x_axis(x).y_axis(y);
        if self.plot.stacked {
            layout.bar_mode(BarMode::Stack)
        } else {
            layout
        }
    }

    /// The labels of lines are numbers where they can be, so that their distances are true.
    fn x_axis(&self) -> Axis {
        let title = if self.plot.x_title.is_empty() {
            self.plot.x.replace('_', " ")
        } else {
            self.plot.x_title.clone()
        };
        let of_x = |one: &&Series| {
            one.labels
                .get(&self.plot.x)
                .is_none_or(|x| x.number().is_some())
        };
        let is_number = self.plot.kind == PlotKind::Lines && self.series.iter().all(of_x);
        if is_number {
            super::axis(&title)
        } else {
            super::axis(&title).type_(AxisType::Category)
        }
    }

    /// The series of a line from left to right.
    fn along_x<'a>(&self, series: &[&'a Series]) -> Vec<(LabelValue, &'a Series)> {
        let x = std::slice::from_ref(&self.plot.x);
        let places = values_of(&self.series, x);
        let mut found: Vec<(usize, LabelValue, &Series)> = series
            .iter()
            .filter_map(|one| {
                let value = one.labels.get(&self.plot.x)?;
                let place = places
                    .iter()
                    .position(|of| of.get(&self.plot.x) == Some(value))?;
                Some((place, value.clone(), *one))
            })
            .collect();
        found.sort_by_key(|(place, _, _)| *place);
        found.into_iter().map(|(_, x, one)| (x, one)).collect()
    }

    fn values(&self) -> &[StatisticName] {
        if self.plot.values.is_empty() {
            &[StatisticName::P50]
        } else {
            &self.plot.values
        }
    }

    fn value(&self, series: &Series, name: StatisticName) -> f64 {
        let found = &series.statistics;
        let value = match name {
            StatisticName::Min => found.min,
            StatisticName::Mean => found.mean,
            StatisticName::Stddev => found.stddev,
            StatisticName::P50 => series.median_of_rounds(),
            StatisticName::P90 => found.p90,
            StatisticName::P99 => found.p99,
            StatisticName::Max => found.max,
            StatisticName::CallsPerSecond => return series.calls_per_second.unwrap_or_default(),
        };
        self.scale.of_value(value)
    }

    /// A name on an axis of names: a number says what it is of in the title.
    fn on_axis(&self, x: &LabelValue) -> String {
        match x {
            LabelValue::Number(number) => number.to_string(),
            LabelValue::Text(text) => text.replace('_', " "),
            LabelValue::Bool(_) => said(&self.plot.x, x),
        }
    }

    fn line_name(&self, at: usize) -> String {
        let name = said_of(self.lines, &self.names[at]);
        if name.is_empty() {
            "measured here".to_owned()
        } else {
            name
        }
    }

    fn trace_name(&self, at: usize, value: StatisticName) -> String {
        match (self.values().len(), self.lines.is_empty()) {
            (1, _) => self.line_name(at),
            (_, true) => statistic(value).to_owned(),
            (_, false) => format!("{}, {}", self.line_name(at), statistic(value)),
        }
    }

    /// That of the contestant where all lines are contestants.
    fn color(&self, at: usize) -> &'static str {
        let contestant = |values: &Labels| {
            let words: Vec<String> = ["orb", "transport"]
                .iter()
                .filter_map(|name| Some(values.get(*name)?.to_string()))
                .collect();
            known_color(&words.join(" "))
        };
        let all_known: Option<Vec<&'static str>> = self.names.iter().map(contestant).collect();
        match all_known {
            Some(colors) if self.lines.len() <= 2 => colors[at],
            _ => LINE_COLORS[self.family(at).0 % LINE_COLORS.len()],
        }
    }

    fn dash(&self, value: StatisticName, at: usize) -> DashType {
        match (self.has_families(), self.family(at)) {
            (true, (_, place)) => DASHES[place % DASHES.len()].clone(),
            (false, _) => dash(value, at),
        }
    }

    /// Whether lines that have the first of several labels in common share a colour, and the dash tells them apart: only where
    /// the dash does not tell statistics apart already, and where there are several colours.
    fn has_families(&self) -> bool {
        let dashed = match self.plot.kind {
            PlotKind::Lines => self.values().len() == 1,
            PlotKind::Percentiles => true,
            PlotKind::Bars | PlotKind::Histogram => false,
        };
        let first = |names: &Labels| names.get(&self.lines[0]).cloned();
        let all_share = || {
            let mut firsts = self.names.iter().map(first);
            let one = firsts.next();
            firsts.all(|other| Some(other) == one)
        };
        dashed && self.lines.len() > 1 && !all_share()
    }

    /// Which colour a line has, and its place among those of the same colour.
    fn family(&self, at: usize) -> (usize, usize) {
        if !self.has_families() {
            return (at, 0);
        }
        let first = |names: &Labels| names.get(&self.lines[0]).cloned();
        let families = distinct(self.names.iter().map(first));
        let own = first(&self.names[at]);
        let color = families.iter().position(|family| *family == own);
        let before = self.names[..at].iter().filter(|names| first(names) == own);
        (color.unwrap_or(at), before.count())
    }
}

/// What values are divided by, and the unit that results.
struct Scale {
    divisor: f64,
    unit: String,
    /// What published figures are divided by: those of times are in microseconds.
    divisor_of_published: f64,
}

impl Scale {
    fn of(results: &Results, unit: &str, series: &[&Series]) -> Self {
        let (divisor, name, divisor_of_published) = match unit {
            "ns" => (1e3, unit_in(results, unit), 1.0),
            "bytes" => {
                let max = series
                    .iter()
                    .map(|one| one.statistics.max)
                    .fold(0.0, f64::max);
                let (divisor, name) = prefix(max);
                (divisor, name.to_owned(), divisor)
            }
            _ => (1.0, shown_unit(unit), 1.0),
        };
        Self {
            divisor,
            unit: name,
            divisor_of_published,
        }
    }

    fn of_value(&self, value: f64) -> f64 {
        value / self.divisor
    }

    fn of_published(&self, value: f64) -> f64 {
        value / self.divisor_of_published
    }
}

/// Parts of a call are not drawn, unless the plot asks for them; nor what has no place on the horizontal axis.
fn series_of<'a>(results: &'a Results, plot: &Plot) -> Vec<&'a Series> {
    let has_x = matches!(plot.kind, PlotKind::Lines | PlotKind::Bars);
    let has_all = |one: &&Series| {
        (!has_x || one.labels.contains_key(&plot.x)) && is_part(&plot.of, &one.labels)
    };
    if plot.of.contains_key("part") || plot.choose.iter().any(|name| name == "part") {
        results.series.iter().filter(has_all).collect()
    } else {
        calls(results).filter(has_all).collect()
    }
}

/// The labels that name lines; also those without which two series would stand on the same place.
fn lines_of(series: &[&Series], plot: &Plot) -> Vec<String> {
    let mut lines = plot.lines.clone();
    let mut placed = plot.choose.clone();
    placed.extend(lines.iter().cloned());
    if matches!(plot.kind, PlotKind::Lines | PlotKind::Bars) {
        placed.push(plot.x.clone());
    }
    for place in values_of(series, &placed) {
        let same: Vec<&Series> = series
            .iter()
            .copied()
            .filter(|one| part_of(&one.labels, &placed) == place)
            .collect();
        for name in varying(&same) {
            if !lines.contains(&name) {
                lines.push(name);
            }
        }
    }
    lines
}

fn units_of<'a>(series: &[&'a Series]) -> Vec<&'a str> {
    distinct(series.iter().map(|one| one.unit.as_str()))
}

/// The middle is solid; what is beside it is not. Lines beyond the last colour are told apart by it too.
fn dash(value: StatisticName, line: usize) -> DashType {
    match value {
        StatisticName::Min => DashType::Dot,
        StatisticName::Max => DashType::Dash,
        StatisticName::P90 | StatisticName::P99 => DashType::DashDot,
        StatisticName::Stddev => DashType::LongDash,
        StatisticName::Mean => DashType::LongDashDot,
        StatisticName::P50 if line >= LINE_COLORS.len() => DashType::LongDashDot,
        StatisticName::P50 | StatisticName::CallsPerSecond => DashType::Solid,
    }
}

/// Several statistics of one line differ in their points too: two of them may lie upon each other, and a legend shows little of a dash.
fn symbol(value: StatisticName, of: &[StatisticName]) -> MarkerSymbol {
    match value {
        _ if of.len() < 2 => MarkerSymbol::Circle,
        StatisticName::Min => MarkerSymbol::TriangleDown,
        StatisticName::Mean => MarkerSymbol::DiamondOpen,
        StatisticName::Stddev => MarkerSymbol::CrossOpen,
        StatisticName::P50 | StatisticName::CallsPerSecond => MarkerSymbol::Circle,
        StatisticName::P90 | StatisticName::P99 => MarkerSymbol::Square,
        StatisticName::Max => MarkerSymbol::TriangleUp,
    }
}

/// Several statistics of one line share its colour, from faint to full. The colour itself is faint, so that it is in the legend too.
fn bar_color(color: &str, value: StatisticName, of: &[StatisticName]) -> String {
    let place = of.iter().position(|one| *one == value).unwrap_or(0);
    let alpha = 255 * (place + 1) / of.len().max(1);
    format!("{color}{alpha:02x}")
}

fn statistic(name: StatisticName) -> &'static str {
    match name {
        StatisticName::Min => "smallest",
        StatisticName::Mean => "mean",
        StatisticName::Stddev => "standard deviation",
        StatisticName::P50 => "median",
        StatisticName::P90 => "90th percentile",
        StatisticName::P99 => "99th percentile",
        StatisticName::Max => "largest",
        StatisticName::CallsPerSecond => "calls a second",
    }
}

const DASHES: [DashType; 5] = [
    DashType::Solid,
    DashType::Dash,
    DashType::Dot,
    DashType::DashDot,
    DashType::LongDash,
];
const PUBLISHED_COLOR: &str = "#8a8f98";
const PUBLISHED_SYMBOLS: [MarkerSymbol; 6] = [
    MarkerSymbol::DiamondOpen,
    MarkerSymbol::SquareOpen,
    MarkerSymbol::TriangleUpOpen,
    MarkerSymbol::CircleOpen,
    MarkerSymbol::CrossOpen,
    MarkerSymbol::StarOpen,
];
