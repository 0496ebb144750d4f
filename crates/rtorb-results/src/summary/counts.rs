//! The table of an experiment that counts instead of timing: a row a contestant and side, a column for what is counted.

use std::collections::BTreeMap;

use super::text;
use crate::table::Table;
use crate::{Results, Series};

/// The medians over rounds of the counts a request, most clients first; `None` for results without counts.
pub(super) fn counts(results: &Results) -> Option<Table> {
    let columns: Vec<&(&str, &str)> = COLUMNS
        .iter()
        .filter(|(what, _)| results.series.iter().any(|series| is_of(series, what)))
        .collect();
    if columns.is_empty() {
        return None;
    }
    let mut names: Vec<(String, String)> = Vec::new();
    let mut cells: BTreeMap<(String, &str), String> = BTreeMap::new();
    for series in &results.series {
        let found = columns.iter().find(|(what, _)| is_of(series, what));
        let (Some((what, _)), Some(name)) = (found, row_name(series)) else {
            continue;
        };
        if !names.iter().any(|(_, known)| *known == name) {
            names.push((
                text(&series.labels, "clients").unwrap_or_default(),
                name.clone(),
            ));
        }
        let value = series.median_of_rounds();
        let shown = match series.unit.as_str() {
            "ns" => format!("{:.2}", value / 1e3),
            _ => format!("{value:.2}"),
        };
        cells.insert((name, what), shown);
    }
    // Those with more clients, which the papers have, before those with one.
    names.sort_by_key(|(clients, _)| clients == "1");
    let head = std::iter::once("a request".to_owned());
    let rows = names.into_iter().map(|(_, name)| {
        let row = columns.iter().map(|(what, _)| {
            cells
                .get(&(name.clone(), *what))
                .cloned()
                .unwrap_or_default()
        });
        std::iter::once(name.clone()).chain(row).collect()
    });
    Some(Table {
        head: head
            .chain(columns.iter().map(|(_, name)| (*name).to_owned()))
            .collect(),
        rows: rows.collect(),
    })
}

fn is_of(series: &Series, what: &str) -> bool {
    text(&series.labels, "what").is_some_and(|found| found == what)
}

/// Such as `tao server, 10 clients`, or `10 at rates`.
fn row_name(series: &Series) -> Option<String> {
    let label = |name| text(&series.labels, name);
    let clients = match label("clients")?.as_str() {
        "1" => "1 client".to_owned(),
        many if label("calls").is_some_and(|calls| calls == "at_rates") => {
            format!("{many} at rates")
        }
        many => format!("{many} clients"),
    };
    Some(format!(
        "{} {}, {clients}",
        label("preset")?,
        label("side")?
    ))
}

/// The values of the label `what`, and what they are called at the head of a column.
const COLUMNS: [(&str, &str); 8] = [
    ("user_locks", "lock operations"),
    ("contended_locks", "contended"),
    ("kernel_locks", "futex calls"),
    ("heap_calls", "heap calls"),
    ("voluntary_switches", "switches (waits)"),
    ("involuntary_switches", "switches (displaced)"),
    ("system_calls", "system calls"),
    ("cpu_time", "CPU us"),
];
