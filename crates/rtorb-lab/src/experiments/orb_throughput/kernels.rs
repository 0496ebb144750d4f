//! Calls on each operating system.

use crate::experiments::prelude::*;

/// P0 Figure 2: operations a second by type.
pub(super) fn view(gathered: &Gathered<'_>) -> Results {
    let of = labels([
        ("orb", "rtorb".into()),
        ("part", "call".into()),
        ("preset", "default".into()),
        ("transport", "tcp".into()),
    ]);
    let table = |id: &str, title: &str, value: CellValue| {
        TableView::new(id, title)
            .caption(SECOND)
            .of(of.clone())
            .rows(gathered.with_load(&[SYSTEM]))
            .columns(["operation", "len"])
            .values([value])
    };
    let bars = Plot::bars("throughput", "Operations a second")
        .caption(format!("Over TCP, one client. {SECOND}"))
        .of(of.clone())
        .choose(["load"])
        .lines([SYSTEM])
        .x("operation")
        .values([StatisticName::CallsPerSecond]);
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
    compared.results(gathered, tables, vec![bars])
}

const SECOND: &str = "A second is one of virtual time: 1,000,000,000 guest instructions.";
