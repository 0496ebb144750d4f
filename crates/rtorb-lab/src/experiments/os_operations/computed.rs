//! How many yields each operation takes.

use rtorb_results::cells::{Cells, Samples};

use super::operation::{ALL, YIELD};
use crate::experiments::prelude::*;
use crate::study::{Computed, Conditions};

pub(super) const SAYS: Statements = Statements {
    highlights: &[HighlightOf {
        what: "cube_long, called by another task, to a yield",
        of: "operation=cube_long, !in",
        metric: Metric::of(P50)
            .with(&[Over(P50, "operation=yield")])
            .in_unit("yields"),
        beside: Words::text("a yield is one switch to another task of the same system"),
    }],
    ..Statements::NONE
};

pub(super) fn compute(cells: &Cells, _: &Conditions) -> Computed {
    in_yields(cells).into()
}

/// The ratios of each operation: round by round, its median divided by that of a yield; of wake-ups, the latest one's.
///
/// It does not say whose instructions they are: it is the same question on every kernel.
pub(super) fn in_yields(cells: &Cells) -> Cells {
    let mut ratios = Cells::default();
    let Some(reference) = of(cells, YIELD) else {
        return ratios;
    };
    let yields = reference.rounds(|round| round.p50);
    for operation in &ALL {
        let labels = labels([
            ("operation", operation.name.into()),
            ("in", IN_YIELDS.into()),
            ("kind", operation.kind.into()),
        ]);
        let samples = of(cells, operation.name);
        let rounds = samples.map(|samples| samples.rounds(operation.by).divided_by(&yields));
        for (round, ratio) in rounds.iter().flat_map(|rounds| rounds.each()) {
            ratios.add_count(&labels, round, ratio, ("ratio", 1));
        }
    }
    ratios
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
        let series = in_yields(&cells).series(&Labels::new());
        assert_eq!(series.len(), 2);
        assert_eq!(series[0].rounds_p50, [1.0, 1.0]);
        assert_eq!(series[1].labels["operation"], "mutex".into());
        assert_eq!(series[1].rounds_p50, [3.0, 1.5]);
        assert_eq!(in_yields(&Cells::default()).all().count(), 0);
    }
}
