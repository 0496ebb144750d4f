//! From the edge to the output on each operating system.

use crate::experiment::Outcome;
use rtorb_results::campaign::SYSTEM;
use rtorb_results::{CellValue, Plot, PlotKind, TableView, labels};

use crate::systems::{By, Compared};
use rtorb_results::systems::Gathered;

/// P4 Figures 6 to 8.
pub(super) fn view(gathered: &Gathered<'_>) -> Outcome {
    let of = labels([("role", "high".into()), ("part", "call".into())]);
    let mut apart = gathered.telling(&of);
    apart.retain(|name| name != "load");
    let table = TableView {
        id: "histogram".to_owned(),
        title: "From the edge to the output, high-priority receiver".to_owned(),
        caption: "P4 Figures 6 to 8 in numbers.".to_owned(),
        of: of.clone(),
        rows: vec![SYSTEM.to_owned(), "load".to_owned()],
        columns: apart.clone(),
        values: WHOLE.to_vec(),
        ..TableView::default()
    };
    let picture = Plot {
        id: "histogram".to_owned(),
        title: "Latency histograms (P4 Figures 6 to 8)".to_owned(),
        caption: "Of each system without and with load: how far to the right the last sample lies counts for a deadline.".to_owned(),
        kind: PlotKind::Histogram,
        of: of.clone(),
        choose: apart,
        lines: vec![SYSTEM.to_owned(), "load".to_owned()],
        log_x: true,
        log_y: true,
        ..Plot::default()
    };
    let compared = Compared {
        what: "Worst from edge to output",
        of: &of,
        by: By::Worst,
    };
    compared.outcome(gathered, vec![table], vec![picture])
}

/// A whole distribution in three numbers.
const WHOLE: [CellValue; 3] = [CellValue::Median, CellValue::P99, CellValue::Worst];
