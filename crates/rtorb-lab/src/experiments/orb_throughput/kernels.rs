//! Calls on each operating system.

use crate::experiment::Outcome;
use rtorb_results::campaign::SYSTEM;
use rtorb_results::{CellValue, Plot, PlotKind, StatisticName, TableView, labels};

use crate::systems::{By, Compared};
use rtorb_results::systems::Gathered;

/// P0 Figure 2: operations a second by type.
pub(super) fn view(gathered: &Gathered<'_>) -> Outcome {
    let of = labels([
        ("orb", "rtorb".into()),
        ("part", "call".into()),
        ("preset", "default".into()),
        ("transport", "tcp".into()),
    ]);
    let table = |id: &str, title: &str, value: CellValue| TableView {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: SECOND.to_owned(),
        of: of.clone(),
        rows: gathered.with_load(&[SYSTEM]),
        columns: vec!["operation".to_owned(), "len".to_owned()],
        values: vec![value],
        ..TableView::default()
    };
    let bars = Plot {
        id: "throughput".to_owned(),
        title: "Operations a second".to_owned(),
        caption: format!("Over TCP, one client. {SECOND}"),
        kind: PlotKind::Bars,
        of: of.clone(),
        choose: vec!["load".to_owned()],
        lines: vec![SYSTEM.to_owned()],
        x: "operation".to_owned(),
        x_title: "operation".to_owned(),
        values: vec![StatisticName::CallsPerSecond],
        ..Plot::default()
    };
    let tables = vec![
        table(
            "calls",
            "Operations a second over TCP",
            CellValue::CallsPerSecond,
        ),
        table("time", "A call over TCP", CellValue::Median),
    ];
    let compared = Compared {
        what: "A call over TCP",
        of: &of,
        by: By::Median,
    };
    compared.outcome(gathered, tables, vec![bars])
}

const SECOND: &str = "A second is one of virtual time: 1,000,000,000 guest instructions.";
