//! The switch on each operating system.

use crate::experiment::Outcome;
use rtorb_results::campaign::SYSTEM;
use rtorb_results::{Plot, PlotKind, StatisticName, TableView, labels};

use crate::systems::{By, Compared};
use rtorb_results::systems::Gathered;

/// P0 Table 1 and P2 Table 1: a row an operating system.
pub(super) fn view(gathered: &Gathered<'_>) -> Outcome {
    let switch = labels([("what", "switch".into())]);
    let table = TableView {
        rows: gathered.with_load(&[SYSTEM]),
        ..super::table()
    };
    let bars = Plot {
        id: "context-switch".to_owned(),
        title: "Context switch by test".to_owned(),
        caption: "Median over all seeds.".to_owned(),
        kind: PlotKind::Bars,
        of: switch.clone(),
        choose: vec!["load".to_owned()],
        lines: vec![SYSTEM.to_owned()],
        x: "test".to_owned(),
        x_title: "test".to_owned(),
        values: vec![StatisticName::P50],
        ..Plot::default()
    };
    let compared = Compared {
        what: "Context switch",
        of: &switch,
        by: By::Median,
    };
    compared.outcome(gathered, vec![table], vec![bars])
}
