//! The table at the end of a run: a row for what is called, a column for who is called, medians in microseconds.
//!
//! It is made from the labels alone, so that every experiment has one without saying how.

use std::collections::BTreeMap;

use crate::results::{Labels, Results, Series};

mod columns;
mod counts;
pub(crate) mod words;

/// A table of text, ready for a terminal or a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// What each column shows; the first names the rows.
    pub head: Vec<String>,
    /// The rows, each as long as the head. A cell with nothing measured is empty.
    pub rows: Vec<Vec<String>>,
}

/// The medians over rounds of every series that is a call, in microseconds; of an experiment that counts, the counts. Where an
/// experiment names its columns, with the largest sample beside each, in the unit of the series.
#[must_use]
pub fn medians(results: &Results) -> Table {
    if let Some(table) = counts::counts(results) {
        return table;
    }
    if let Some(table) = columns::medians(results) {
        return table;
    }
    let rows = row_names(results);
    let columns = contestants(results);
    let mut cells: BTreeMap<(usize, usize), String> = BTreeMap::new();
    for series in calls(results) {
        let row = rows.iter().position(|name| *name == row_name(series));
        let column = columns.iter().position(|name| *name == contestant(series));
        if let (Some(row), Some(column)) = (row, column) {
            let mark = if series.wrong > 0 { " WRONG" } else { "" };
            cells.insert(
                (row, column),
                format!("{}{mark}", microseconds(series.median_of_rounds())),
            );
        }
    }
    let cell = |row, column| cells.get(&(row, column)).cloned().unwrap_or_default();
    Table {
        head: std::iter::once("us, median".to_owned())
            .chain(columns.iter().cloned())
            .collect(),
        rows: rows
            .iter()
            .enumerate()
            .map(|(row, name)| {
                std::iter::once(name.clone())
                    .chain((0..columns.len()).map(|column| cell(row, column)))
                    .collect()
            })
            .collect(),
    }
}

/// The whole distribution of every call, from the fastest to the slowest: in microseconds, or in the unit of the series.
#[must_use]
pub fn tails(results: &Results) -> Table {
    if let Some(table) = columns::tails(results) {
        return table;
    }
    let head = [
        "us",
        "contestant",
        "count",
        "min",
        "mean",
        "stddev",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "max",
    ];
    let row = |series: &Series| {
        let found = &series.statistics;
        let values = [
            found.min,
            found.mean,
            found.stddev,
            found.p50,
            found.p90,
            found.p99,
            found.p99_9,
            found.max,
        ];
        [
            row_name(series),
            contestant(series),
            series.count.to_string(),
        ]
        .into_iter()
        .chain(values.into_iter().map(microseconds))
        .collect()
    };
    Table {
        head: head.map(str::to_owned).to_vec(),
        rows: calls(results).map(row).collect(),
    }
}

/// The series that are calls, and not a part of one.
pub fn calls(results: &Results) -> impl Iterator<Item = &Series> {
    results
        .series
        .iter()
        .filter(|series| text(&series.labels, "part").is_none_or(|part| part == "call"))
}

/// Who is called: `rtorb tcp`, or `rtorb tao` where presets are compared.
#[must_use]
pub fn contestant(series: &Series) -> String {
    let label = |name| text(&series.labels, name);
    if let (Some(orb), Some(preset)) = (label("orb"), label("preset")) {
        return match orb == preset {
            true => orb,
            false => format!("{orb} {preset}"),
        };
    }
    let parts = ["orb", "transport"]
        .into_iter()
        .filter_map(|name| text(&series.labels, name));
    parts.collect::<Vec<_>>().join(" ")
}

/// What is called: `octetseq 1024`, `objects 1000 operations 300`, or `octet high saturating, 50 low-priority clients`.
#[must_use]
pub fn row_name(series: &Series) -> String {
    row_name_of(&series.labels)
}

/// The same of labels.
#[must_use]
pub fn row_name_of(labels: &Labels) -> String {
    let mut words = Vec::new();
    words.extend(text(labels, "operation"));
    words.extend(text(labels, "len").filter(|len| len != "0"));
    words.extend(
        ["role", "load"]
            .into_iter()
            .filter_map(|name| text(labels, name)),
    );
    let rest = labels
        .iter()
        .filter(|(name, _)| !NOT_IN_ROW_NAMES.contains(&name.as_str()));
    let (phrases, plain): (Vec<_>, Vec<_>) = rest
        .map(|(name, value)| (phrase(name, &value.to_string()), format!("{name} {value}")))
        .partition(|(phrase, _)| phrase.is_some());
    words.extend(plain.into_iter().map(|(_, pair)| pair));
    let phrases = phrases.into_iter().filter_map(|(phrase, _)| phrase);
    std::iter::once(words.join(" "))
        .chain(phrases)
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

/// How a reader says a label, where its name and value would not do.
fn phrase(name: &str, value: &str) -> Option<String> {
    Some(match (name, value) {
        ("low_clients", "1") => "1 low-priority client".to_owned(),
        ("low_clients", _) => format!("{value} low-priority clients"),
        ("servant_work_us", _) => format!("{value} us of work"),
        ("rate_hz", _) => format!("{value} Hz"),
        ("priority", _) => format!("priority {value}"),
        ("what", _) => value.replace('_', " "),
        _ => return None,
    })
}

/// Every row once, in the order of the series.
#[must_use]
pub fn row_names(results: &Results) -> Vec<String> {
    distinct(calls(results).map(row_name))
}

/// Every contestant once: by transport, and in each the raw exchange first.
#[must_use]
pub fn contestants(results: &Results) -> Vec<String> {
    let mut names = distinct(calls(results).map(contestant));
    let place = |name: &String| {
        let (orb, transport) = name.split_once(' ').unwrap_or((name, ""));
        let transport = ["tcp", "unix", "futex"]
            .iter()
            .position(|known| *known == transport);
        let orb = ["raw", "rtorb", "omniorb"]
            .iter()
            .position(|known| *known == orb);
        (transport.unwrap_or(usize::MAX), orb.unwrap_or(usize::MAX))
    };
    names.sort_by_key(place);
    names
}

/// Nanoseconds as microseconds with as many digits as mean something.
#[must_use]
pub fn microseconds(ns: f64) -> String {
    let us = ns / 1e3;
    match us.abs() {
        small if small < 100.0 => format!("{us:.2}"),
        medium if medium < 1_000.0 => format!("{us:.1}"),
        _ => format!("{us:.0}"),
    }
}

pub(crate) fn text(labels: &Labels, name: &str) -> Option<String> {
    labels.get(name).map(ToString::to_string)
}

fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}

const NOT_IN_ROW_NAMES: [&str; 10] = [
    "operation",
    "len",
    "role",
    "load",
    "preset",
    "orb",
    "transport",
    "part",
    "payload_bytes",
    "real_time",
];
