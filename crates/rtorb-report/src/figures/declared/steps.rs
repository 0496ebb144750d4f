//! A histogram as steps, so that several can lie over each other.

use std::collections::BTreeMap;

use plotly::Scatter;
use plotly::common::{Fill, Line, Mode};
use rtorb_results::Series;

use super::Scale;

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
        let to = short(scale.of_value(step.to));
        let range = if step.is_lowest {
            format!("less than {to}")
        } else {
            format!("{} to {to}", short(scale.of_value(step.from)))
        };
        let said = format!("{range} {}: {} of {}", scale.unit, step.count, series.count);
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

/// How many samples are in the highest step of a series.
pub(super) fn highest(series: &Series) -> u64 {
    let counts = steps(series).into_iter().map(|step| step.count);
    counts.max().unwrap_or(0)
}

struct Step {
    from: f64,
    to: f64,
    count: u64,
    /// Whether it holds samples of 0, which a logarithmic axis has no place for.
    is_lowest: bool,
}

/// The buckets of a series on the same grid as those of every other, with nothing between them where there is nothing.
fn steps(series: &Series) -> Vec<Step> {
    let mut counts: BTreeMap<i32, u64> = BTreeMap::new();
    let mut zeros = 0;
    for bucket in &series.histogram {
        let middle = f64::midpoint(bucket.from, bucket.to);
        if middle > 0.0 {
            *counts.entry(step_of(middle)).or_default() += bucket.count
        } else {
            zeros += bucket.count
        }
    }
    // Beside the smallest that has a place: far from it, they would press all else together.
    let lowest = counts.keys().next().map_or(0, |first| first - 1);
    if zeros > 0 {
        counts.insert(lowest, zeros);
    }
    let is_lowest = |at: i32| zeros > 0 && at == lowest;
    let edge = |at: i32| GROWTH.powi(at);
    let mut steps: Vec<Step> = Vec::new();
    let empty = |from: i32, to: i32| Step {
        from: edge(from),
        to: edge(to),
        count: 0,
        is_lowest: false,
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
            is_lowest: is_lowest(at),
        });
        next = Some(at + 1);
    }
    steps.extend(next.map(|at| empty(at, at)));
    steps
}

fn step_of(value: f64) -> i32 {
    (value.ln() / GROWTH.ln()).floor() as i32
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

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_results::labels;
    use rtorb_results::statistics::Recorder;

    #[test]
    fn samples_of_zero_stand_beside_the_smallest() {
        let mut recorder = Recorder::new();
        for value in [0, 0, 500, 1_000] {
            recorder.record(value);
        }
        let steps = steps(&Series::from_recorder(labels([]), &recorder));
        let filled: Vec<&Step> = steps.iter().filter(|step| step.count > 0).collect();
        let counts: Vec<u64> = filled.iter().map(|step| step.count).collect();
        assert_eq!(counts, [2, 1, 1]);
        assert!(filled[0].is_lowest && !filled[1].is_lowest);
        assert!(filled[0].to <= 500.0 && filled[0].from > 400.0);
        assert!(filled[1].from <= 500.0 && filled[1].to >= 500.0);
    }
}
