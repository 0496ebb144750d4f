//! The staircase on each operating system.

use crate::experiments::prelude::*;

/// P2 Figures 3 and 4.
pub(super) fn view(gathered: &Gathered<'_>) -> Results {
    let of = labels([
        ("orb", "rtorb".into()),
        ("part", "call".into()),
        ("preset", "tao".into()),
    ]);
    let table = TableView::new("inversion", "Latency by rate, jitter in parentheses")
        .caption(
            "The more often a client calls, the higher its priority: where the numbers fall from left to right, a more urgent \
             client waits for a less urgent one.",
        )
        .of(of.clone())
        .rows(gathered.with_load(&[SYSTEM]))
        .columns(["servant_work_us", "rate_hz"])
        .values([CellValue::MeanAndDeviation]);
    let bars = |id: &str, title: &str, value: StatisticName| {
        Plot::bars(id, title)
            .caption("A group a system, a bar a client.")
            .of(of.clone())
            .choose(["servant_work_us", "load"])
            .lines(["rate_hz"])
            .x(SYSTEM)
            .x_title("operating system")
            .values([value])
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
    compared.results(gathered, vec![table], plots)
}
