//! The switch on each operating system.

use crate::experiments::prelude::*;

/// P0 Table 1 and P2 Table 1: a row an operating system.
pub(super) fn view(gathered: &Gathered<'_>) -> Results {
    let switch = labels([("what", "switch".into())]);
    let table = TableView {
        rows: gathered.with_load(&[SYSTEM]),
        ..super::switches()
    };
    let bars = Plot {
        caption: "Median over all seeds.".to_owned(),
        kind: PlotKind::Bars,
        of: switch.clone(),
        choose: words(&["load"]),
        lines: words(&[SYSTEM]),
        x: "test".to_owned(),
        values: vec![StatisticName::P50],
        ..Plot::named("context-switch", "Context switch by test")
    };
    let compared = Compared {
        what: "Context switch",
        of: &switch,
        by: By::Median,
    };
    compared.results(gathered, vec![table], vec![bars])
}
