//! What follows from the costs: how many yields each operation takes.

use rtorb_results::cells::{Cells, Samples};
use rtorb_results::{Highlight, Labels, Series, labels};

use super::operation::{ALL, YIELD};
use crate::study::{Conditions, Findings};

pub(super) fn findings(cells: &Cells, _: &Conditions) -> Findings {
    Findings {
        highlights: highlights(cells),
        series: in_yields(cells),
        ..Findings::default()
    }
}

/// A series of ratios for each operation: round by round, its median divided by that of a yield; of wake-ups, the latest one's.
///
/// It does not say whose instructions they are: it is the same question on every kernel.
pub(super) fn in_yields(cells: &Cells) -> Vec<Series> {
    let Some(reference) = of(cells, YIELD) else {
        return Vec::new();
    };
    let yields = reference.rounds(|round| round.p50);
    let ratios = ALL.iter().filter_map(|operation| {
        let samples = of(cells, operation.name)?;
        let rounds = samples.rounds(operation.by).divided_by(&yields);
        let values = rounds.values();
        let labels = labels([
            ("operation", operation.name.into()),
            ("in", IN_YIELDS.into()),
            ("kind", operation.kind.into()),
        ]);
        (!values.is_empty()).then(|| Series::of_counts(labels, "ratio", samples.count(), &values))
    });
    ratios.collect()
}

fn highlights(cells: &Cells) -> Vec<Highlight> {
    let shown = ["cube_long"].into_iter().filter_map(|operation| {
        let ratio = of(cells, operation)?.median_ns()? / of(cells, YIELD)?.median_ns()?;
        Some(Highlight {
            what: format!("{operation}, called by another task, to a yield"),
            value: ratio,
            unit: "yields".to_owned(),
            beside: "a yield is one switch to another task of the same system".to_owned(),
        })
    });
    shown.collect()
}

fn of<'c>(cells: &'c Cells, operation: &str) -> Option<&'c Samples> {
    let is_it = |labels: &Labels| labels.get("operation") == Some(&operation.into());
    let mut found = cells.all().filter(|(labels, _)| is_it(labels));
    let samples = found.next().map(|(_, samples)| samples)?;
    (samples.median_ns()? > 0.0).then_some(samples)
}

/// The value of the label `in` of ratios.
pub(super) const IN_YIELDS: &str = "yields";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_divided_by_the_yield_of_its_round() {
        let mut cells = Cells::default();
        let operation = |name: &str| labels([("operation", name.into())]);
        for (round, yield_ns) in [(0, 100), (1, 200)] {
            cells.add(&operation(YIELD), round, &[yield_ns; 3], 0);
            cells.add(&operation("mutex"), round, &[300; 3], 0);
        }
        let series = in_yields(&cells);
        assert_eq!(series.len(), 2);
        assert_eq!(series[0].rounds_p50, [1.0, 1.0]);
        assert_eq!(series[1].labels["operation"], "mutex".into());
        assert_eq!(series[1].rounds_p50, [3.0, 1.5]);
        assert!(in_yields(&Cells::default()).is_empty());
    }
}
