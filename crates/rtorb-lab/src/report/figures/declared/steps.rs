//! A histogram as steps, so that several can lie over each other.

use std::collections::BTreeMap;

use plotly::Scatter;
use plotly::common::{Fill, Line, Mode};

use super::Scale;
use crate::results::Series;

/// The steps of one series. What they count stands in the trace's `meta`, so that the page can show shares instead.
pub(super) fn trace(
    series: &Series,
    scale: &Scale,
    name: &str,
    color: &'static str,
) -> Box<Scatter<f64, u64>> {
    let mut x = Vec::new();
    let mut y = Vec::new();
    let mut text = Vec::new();
    for step in steps(series) {
        let said = format!(
            "{} to {} {}: {} of {}",
            short(scale.of_value(step.from)),
            short(scale.of_value(step.to)),
            scale.unit,
            step.count,
            series.count
        );
        for edge in [step.from, step.to] {
            x.push(scale.of_value(edge));
            y.push(step.count);
            text.push(said.clone());
        }
    }
    Scatter::new(x, y)
        .name(name)
        .mode(Mode::Lines)
        .meta(series.count)
        .line(Line::new().color(color).width(1.5))
        .fill(Fill::ToZeroY)
        .fill_color(format!("{color}2e"))
        .text_array(text)
        .hover_template("%{text}")
}

struct Step {
    from: f64,
    to: f64,
    count: u64,
}

/// The buckets of a series on the same grid as those of every other, with nothing between them where there is nothing.
fn steps(series: &Series) -> Vec<Step> {
    let mut counts: BTreeMap<i32, u64> = BTreeMap::new();
    for bucket in &series.histogram {
        let middle = f64::midpoint(bucket.from, bucket.to).max(SMALLEST);
        *counts
            .entry((middle.ln() / GROWTH.ln()).floor() as i32)
            .or_default() += bucket.count;
    }
    let edge = |at: i32| GROWTH.powi(at);
    let mut steps: Vec<Step> = Vec::new();
    let empty = |from: i32, to: i32| Step {
        from: edge(from),
        to: edge(to),
        count: 0,
    };
    let mut next = None;
    for (at, count) in counts {
        match next {
            None => steps.push(empty(at, at)),
            Some(next) if next < at => steps.push(empty(next, at)),
            Some(_) => {}
        }
        steps.push(Step {
            from: edge(at),
            to: edge(at + 1),
            count,
        });
        next = Some(at + 1);
    }
    steps.extend(next.map(|at| empty(at, at)));
    steps
}

/// Four digits: finer than a step is wide.
fn short(value: f64) -> String {
    match value {
        small if small < 10.0 => format!("{small:.3}"),
        medium if medium < 1_000.0 => format!("{medium:.1}"),
        large => format!("{large:.0}"),
    }
}

/// A step is a tenth wider than the one before it: as wide as two buckets, so that none stays empty for lack of one.
const GROWTH: f64 = 1.1;
/// A logarithm needs something above zero; nothing is measured finer than this in any unit.
const SMALLEST: f64 = 1e-3;
