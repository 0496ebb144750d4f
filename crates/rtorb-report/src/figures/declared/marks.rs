//! Values that a plot marks: a line where a bound or a deadline is.

use plotly::Scatter;
use plotly::common::{DashType, Line, Mode};
use rtorb_results::summary::words::shown;
use rtorb_results::{Derived, Plot, Results, Series, is_part};

use super::{Scale, steps};

/// The derived numbers that a plot marks and whose labels all of these series have.
pub(super) fn of<'a>(results: &'a Results, plot: &Plot, series: &[&Series]) -> Vec<&'a Derived> {
    let is_of_all = |mark: &&Derived| {
        let mut all = series.iter();
        all.all(|one| is_part(&mark.labels, &one.labels))
    };
    let of_name = |name: &String| {
        let named = results.derived.iter().filter(move |one| one.name == *name);
        named.filter(is_of_all).collect::<Vec<_>>()
    };
    plot.marks.iter().flat_map(of_name).collect()
}

/// A line from the horizontal axis up to the highest step. Its `meta` is that of the highest, so that it shrinks with it when the page
/// shows shares.
pub(super) fn upright(
    mark: &Derived,
    at: usize,
    scale: &Scale,
    series: &[&Series],
) -> Box<Scatter<f64, f64>> {
    let x = scale.of_value(mark.value);
    let highest = series
        .iter()
        .max_by_key(|one| steps::highest(one) * 1_000_000 / one.count.max(1));
    let top = highest.map_or(1, |one| steps::highest(one)).max(1);
    Scatter::new(vec![x, x], vec![0.0, top as f64])
        .name(name(mark, scale))
        .mode(Mode::Lines)
        .meta(highest.map_or(1, |one| one.count))
        .line(line(at))
        .hover_template(name(mark, scale))
}

/// A line from the most frequent to the rarest sample.
pub(super) fn level(
    mark: &Derived,
    at: usize,
    scale: &Scale,
    series: &[&Series],
) -> Box<Scatter<f64, f64>> {
    let points = series.iter().flat_map(|one| &one.percentiles);
    let rarest = points.map(|point| point.one_in).fold(10.0, f64::max);
    let y = scale.of_value(mark.value);
    Scatter::new(vec![1.0, rarest], vec![y, y])
        .name(name(mark, scale))
        .mode(Mode::Lines)
        .line(line(at))
        .hover_template(name(mark, scale))
}

/// `bound 4313 us`.
fn name(mark: &Derived, scale: &Scale) -> String {
    let value = shown(mark.value, &mark.unit);
    format!("{} {value} {}", mark.name.replace('_', " "), scale.unit)
}

fn line(at: usize) -> Line {
    let dash = match at {
        0 => DashType::Dash,
        _ => DashType::Solid,
    };
    Line::new()
        .color(COLORS[at % COLORS.len()])
        .dash(dash)
        .width(2.0)
}

/// None of them is that of a line or a bar.
const COLORS: [&str; 3] = ["#d99a00", "#d0342c", "#8f5bd0"];
