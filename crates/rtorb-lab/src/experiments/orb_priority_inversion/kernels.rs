//! The staircase on each operating system.

use crate::experiment::Outcome;
use rtorb_results::campaign::SYSTEM;
use rtorb_results::{CellValue, Plot, PlotKind, StatisticName, TableView, labels};

use crate::systems::{By, Compared};
use rtorb_results::systems::Gathered;

/// P2 Figures 3 and 4.
pub(super) fn view(gathered: &Gathered<'_>) -> Outcome {
    let of = labels([
        ("orb", "rtorb".into()),
        ("part", "call".into()),
        ("preset", "tao".into()),
    ]);
    let table = TableView {
        id: "inversion".to_owned(),
        title: "Latency by rate, jitter in parentheses".to_owned(),
        caption: "The more often a client calls, the higher its priority: where the numbers fall from left to right, a more urgent \
                  client waits for a less urgent one."
            .to_owned(),
        of: of.clone(),
        rows: gathered.with_load(&[SYSTEM]),
        columns: vec!["servant_work_us".to_owned(), "rate_hz".to_owned()],
        values: vec![CellValue::MeanAndDeviation],
        ..TableView::default()
    };
    let bars = |id: &str, title: &str, value: StatisticName| Plot {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: "A group a system, a bar a client.".to_owned(),
        kind: PlotKind::Bars,
        of: of.clone(),
        choose: vec!["servant_work_us".to_owned(), "load".to_owned()],
        lines: vec!["rate_hz".to_owned()],
        x: SYSTEM.to_owned(),
        x_title: "operating system".to_owned(),
        values: vec![value],
        ..Plot::default()
    };
    let compared = Compared {
        what: "Worst call",
        of: &of,
        by: By::Worst,
    };
    let plots = vec![
        bars(
            "inversion-latency",
            "Latency by rate (P2 Figure 3)",
            StatisticName::Mean,
        ),
        bars(
            "inversion-jitter",
            "Jitter by rate (P2 Figure 4)",
            StatisticName::Stddev,
        ),
    ];
    compared.outcome(gathered, vec![table], plots)
}
