//! From the edge to the output on each operating system.

use crate::experiments::prelude::*;

/// P4 Figures 6 to 8.
pub(super) fn view(gathered: &Gathered<'_>) -> Results {
    let of = labels([("role", "high".into()), ("part", "call".into())]);
    let mut apart = gathered.telling(&of);
    apart.retain(|name| name != "load");
    let table = TableView::new(
        "histogram",
        "From the edge to the output, high-priority receiver",
    )
    .caption("P4 Figures 6 to 8 in numbers.")
    .of(of.clone())
    .rows([SYSTEM, "load"])
    .columns(apart.clone())
    .values(WHOLE.to_vec());
    let picture = Plot::histogram("histogram", "Latency histograms (P4 Figures 6 to 8)")
        .caption(
            "Of each system without and with load: how far to the right the last sample lies counts for a deadline.",
        )
        .of(of.clone())
        .choose(apart)
        .lines([SYSTEM, "load"])
        .log_x()
        .log_y();
    let compared = Compared {
        what: "Worst from edge to output",
        of: &of,
        by: By::Worst,
    };
    compared.results(gathered, vec![table], vec![picture])
}

/// A whole distribution in three numbers.
const WHOLE: [CellValue; 3] = [CellValue::Median, CellValue::P99, CellValue::Worst];
