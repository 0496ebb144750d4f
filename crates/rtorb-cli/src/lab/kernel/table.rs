//! What a campaign prints at its end: the worst of every system under every load.

use rtorb_lab::results::summary::{Table, microseconds};
use rtorb_lab::results::{Labels, Results, Series};

/// A table for each experiment on the operating system's own: the largest sample over all seeds.
pub(super) fn worst(compared: &[Results]) -> Vec<Table> {
    let shown = compared
        .iter()
        .filter(|results| SHOWN.contains(&results.experiment.as_str()));
    shown.map(table).collect()
}

/// Rows by what was measured, columns by system; beside all but the last, how many times as long as that of the last.
fn table(results: &Results) -> Table {
    let mut systems: Vec<String> = Vec::new();
    let mut rows: Vec<String> = Vec::new();
    for series in &results.series {
        for (names, name) in [
            (&mut systems, system(series)),
            (&mut rows, row(&series.labels)),
        ] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let worst = |name: &String, of: &String| {
        let series = results.series.iter();
        let mut matching = series.filter(|one| row(&one.labels) == *name && system(one) == *of);
        matching.next().map(|one| one.statistics.max)
    };
    let last = systems.last().cloned().unwrap_or_default();
    let cells = |name: &String| {
        let beside = worst(name, &last);
        let cell = |of: &String| match (worst(name, of), beside) {
            (None, _) => String::new(),
            (Some(ns), Some(beside)) if *of != last && beside > 0.0 => {
                format!("{} ({:.1}x)", microseconds(ns), ns / beside)
            }
            (Some(ns), _) => microseconds(ns),
        };
        let cells = systems.iter().map(cell);
        std::iter::once(name.clone()).chain(cells).collect()
    };
    let head = format!("{}, worst, us", results.experiment);
    Table {
        head: std::iter::once(head).chain(systems.clone()).collect(),
        rows: rows.iter().map(cells).collect(),
    }
}

fn system(series: &Series) -> String {
    series
        .labels
        .get("system")
        .map(ToString::to_string)
        .unwrap_or_default()
}

/// The values of the labels that differ between rows, the load last.
fn row(labels: &Labels) -> String {
    let rest = labels
        .iter()
        .filter(|(name, _)| !NOT_IN_ROWS.contains(&name.as_str()));
    let words = rest.map(|(_, value)| value.to_string());
    let load = labels.get("load").map(ToString::to_string);
    words.chain(load).collect::<Vec<_>>().join(" ")
}

/// What names the columns, what is said last, and what is the same in every row.
const NOT_IN_ROWS: [&str; 7] = [
    "system",
    "kernel",
    "preempt",
    "load",
    "tool",
    "cpu",
    "real_time",
];
const SHOWN: [&str; 2] = ["kernel/os/wakeup", "kernel/os/services"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_named_by_what_differs() {
        let labels = rtorb_lab::results::labels([
            ("system", "6.12 voluntary".into()),
            ("load", "tmpfs".into()),
            ("service", "eventfd".into()),
            ("real_time", true.into()),
        ]);
        assert_eq!(row(&labels), "eventfd tmpfs");
    }
}
