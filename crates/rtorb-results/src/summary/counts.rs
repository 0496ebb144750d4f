//! The table of an experiment that counts instead of timing: a row a contestant and side, a column for what is counted.

use super::text;
use crate::table::Table;
use crate::{Results, Series, distinct};

/// The medians over rounds of the counts a request, most clients first; `None` for results without counts.
pub(super) fn counts(results: &Results) -> Option<Table> {
    let is_counted = |what: &str| results.series.iter().any(|series| is_of(series, what));
    let columns = COLUMNS.iter().filter(|(what, _)| is_counted(what));
    let columns: Vec<(String, &str)> = columns
        .map(|(what, name)| ((*name).to_owned(), *what))
        .collect();
    if columns.is_empty() {
        return None;
    }
    let is_shown = |series: &&Series| columns.iter().any(|(_, what)| is_of(series, what));
    let shown = results.series.iter().filter(is_shown);
    let placed: Vec<(String, &Series)> = shown
        .filter_map(|series| Some((row_name(series)?, series)))
        .collect();
    let mut names = distinct(placed.iter().map(|(name, _)| name.clone()));
    // Those with more clients, which the papers have, before those with one.
    names.sort_by_key(|name| name.ends_with(ONE_CLIENT));
    let rows: Vec<(String, String)> = names.into_iter().map(|name| (name.clone(), name)).collect();
    let cell = |row: &String, what: &&str| {
        let mut of_row = placed.iter().rev().filter(|(name, _)| name == row);
        let found = of_row.find(|(_, series)| is_of(series, what));
        let Some((_, series)) = found else {
            return String::new();
        };
        let value = series.median_of_rounds();
        match series.unit.as_str() {
            "ns" => format!("{:.2}", value / 1e3),
            _ => format!("{value:.2}"),
        }
    };
    Some(Table::crossed(
        "a request".to_owned(),
        &rows,
        &columns,
        cell,
    ))
}

fn is_of(series: &Series, what: &str) -> bool {
    text(&series.labels, "what").is_some_and(|found| found == what)
}

/// Such as `tao server, 10 clients`, or `10 at rates`.
fn row_name(series: &Series) -> Option<String> {
    let label = |name| text(&series.labels, name);
    let clients = match label("clients")?.as_str() {
        "1" => ONE_CLIENT.to_owned(),
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

const ONE_CLIENT: &str = "1 client";
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
