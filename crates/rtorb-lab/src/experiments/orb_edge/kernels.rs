//! From the edge to the output on each operating system.

use crate::experiments::prelude::*;

/// P4 Figures 6 to 8.
pub(super) fn view(gathered: &Gathered<'_>) -> Results {
    let of = labels([("role", "high".into()), ("part", "call".into())]);
    let mut apart = gathered.telling(&of);
    apart.retain(|name| name != "load");
    let table = TableView {
        caption: "P4 Figures 6 to 8 in numbers.".to_owned(),
        of: of.clone(),
        rows: words(&[SYSTEM, "load"]),
        columns: apart.clone(),
        values: WHOLE.to_vec(),
        ..table(
            "histogram",
            "From the edge to the output, high-priority receiver",
        )
    };
    let picture = Plot {
        caption: "Of each system without and with load: how far to the right the last sample lies counts for a deadline.".to_owned(),
        kind: PlotKind::Histogram,
        of: of.clone(),
        choose: apart,
        lines: words(&[SYSTEM, "load"]),
        log_x: true,
        log_y: true,
        ..Plot::named("histogram", "Latency histograms (P4 Figures 6 to 8)")
    };
    let compared = Compared {
        what: "Worst from edge to output",
        of: &of,
        by: By::Worst,
    };
    compared.results(gathered, vec![table], vec![picture])
}

/// A whole distribution in three numbers.
const WHOLE: [CellValue; 3] = [CellValue::Median, CellValue::P99, CellValue::Worst];
