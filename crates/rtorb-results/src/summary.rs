//! The table at the end of a run: a row for what is called, a column for who is called, medians in microseconds.
//!
//! It is made from the labels alone, so that every experiment has one without saying how.

use std::collections::BTreeMap;

use crate::series::fitting;
use crate::statistics::Statistics;
use crate::table::Table;
use crate::{Labels, Results, Series, distinct, labels_without};

mod columns;
mod counts;
mod views;
pub mod words;

pub use views::{TitledTable, tables};

/// What an experiment found, in a sentence: the first of its conclusions, otherwise its key figure.
#[must_use]
pub fn finding(results: &Results) -> Option<String> {
    let conclusion = results.conclusions.first().map(|words| {
        let ends = words.match_indices(". ").map(|(at, _)| at);
        let mut ends = ends.filter(|at| words[at + 2..].starts_with(char::is_uppercase));
        match ends.next() {
            Some(end) => words[..=end].to_owned(),
            None => words.clone(),
        }
    });
    conclusion.or_else(|| {
        let key = results.highlights.first()?;
        let figure = format!("{}: {} {}", key.what, key.shown(), key.shown_unit());
        Some(match key.beside.as_str() {
            "" => format!("{}.", figure.trim_end()),
            beside => format!("{}, {beside}.", figure.trim_end()),
        })
    })
}

/// The medians over rounds of every series that is a call, in microseconds (of an emulated machine, in thousands of instructions); of an experiment that counts, the counts. Where an
/// experiment names its columns, with the largest sample beside each, in the unit of the series.
#[must_use]
pub fn medians(results: &Results) -> Table {
    if let Some(table) = counts::counts(results) {
        return table;
    }
    if let Some(table) = columns::medians(results) {
        return table;
    }
    let mut columns = contestants(results);
    let lone = lone(results, &columns);
    columns.retain(|name| !lone.contains(name));
    let rows = distinct(calls(results).map(|series| place(series, &lone).0));
    let unit = results.time_unit().of_thousand();
    let placed = calls(results).map(|series| (place(series, &lone), series));
    let placed: BTreeMap<(String, String), &Series> = placed.collect();
    let cell = |row: &String, column: &String| {
        let Some(series) = placed.get(&(row.clone(), column.clone())) else {
            return String::new();
        };
        let mark = if series.wrong > 0 { " WRONG" } else { "" };
        format!("{}{mark}", in_cell(series.median_of_rounds(), unit))
    };
    let named = |names: Vec<String>| -> Vec<(String, String)> {
        names.into_iter().map(|name| (name.clone(), name)).collect()
    };
    let corner = format!("{unit}, median");
    Table::crossed(corner, &named(rows), &named(columns), cell)
}

/// Contestants that took part in one row of many, beside one of the same ORB and transport: a column of each would be empty but
/// for one cell.
fn lone(results: &Results, contestants: &[String]) -> Vec<String> {
    let rows_of = |name: &String| {
        let of_name = calls(results).filter(|series| contestant(series) == *name);
        distinct(of_name.map(row_name)).len()
    };
    let is_lone = |series: &&Series| {
        let (name, beside) = (contestant(series), orb_and_transport(series));
        name != beside && contestants.contains(&beside) && rows_of(&name) == 1
    };
    if row_names(results).len() <= ROWS_OF_LONE {
        return Vec::new();
    }
    distinct(calls(results).filter(is_lone).map(contestant))
}

/// The row and the column of a series: of a lone contestant, a row of its own.
fn place(series: &Series, lone: &[String]) -> (String, String) {
    let name = contestant(series);
    if lone.contains(&name) {
        let preset = text(&series.labels, "preset").unwrap_or(name);
        return (
            format!("{}, {}", row_name(series), preset.replace('_', " ")),
            orb_and_transport(series),
        );
    }
    (row_name(series), name)
}

/// The whole distribution of every call, from the fastest to the slowest: in microseconds, or in the unit of the series.
#[must_use]
pub fn tails(results: &Results) -> Table {
    if let Some(table) = columns::tails(results) {
        return table;
    }
    let unit = results.time_unit().of_thousand();
    let head = [unit, "contestant", "count"]
        .into_iter()
        .chain(Statistics::NAMES);
    let row = |series: &Series| {
        [
            row_name(series),
            contestant(series),
            series.count.to_string(),
        ]
        .into_iter()
        .chain(series.statistics.in_order().map(|ns| in_cell(ns, unit)))
        .collect()
    };
    Table {
        head: head.map(str::to_owned).collect(),
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
        return if orb == preset {
            orb
        } else {
            format!("{orb} {preset}")
        };
    }
    orb_and_transport(series)
}

/// Who answered wrongly, and how often. The parts of a call have its wrong answers in common: they count once.
#[must_use]
pub fn wrong_answers(results: &Results) -> Vec<(String, u64)> {
    struct OfCall {
        who: String,
        /// The wrong answers of the call itself, if its times are there.
        own: Option<u64>,
        /// The most of its parts. What is computed of a call has the wrong answers of others too.
        most: u64,
    }
    let mut calls: BTreeMap<Labels, OfCall> = BTreeMap::new();
    for series in &results.series {
        let of = labels_without(&series.labels, &["part"]);
        let call = calls.entry(of).or_insert_with(|| OfCall {
            who: contestant(series),
            own: None,
            most: 0,
        });
        if text(&series.labels, "part").is_none_or(|part| part == "call") {
            call.own = call.own.max(Some(series.wrong));
        } else {
            call.most = call.most.max(series.wrong);
        }
    }
    let mut found: Vec<(String, u64)> = Vec::new();
    for OfCall { who, own, most } in calls.into_values() {
        let wrong = own.unwrap_or(most);
        if wrong == 0 {
            continue;
        }
        match found.iter_mut().find(|(known, _)| *known == who) {
            Some((_, count)) => *count += wrong,
            None => found.push((who, wrong)),
        }
    }
    found
}

fn orb_and_transport(series: &Series) -> String {
    let parts = ["orb", "transport"]
        .into_iter()
        .filter_map(|name| text(&series.labels, name));
    parts.collect::<Vec<_>>().join(" ")
}

/// What is called: `octetseq 1024`, `1000 objects, 300 operations`, or `octet high saturating, 50 low-priority clients`.
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
        ("objects", "1") => "1 object".to_owned(),
        ("operations", "1") => "1 operation".to_owned(),
        ("objects" | "operations", _) => format!("{value} {name}"),
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

/// A time in a table of times in `unit`: in another unit, with its name, if it is too large for that one.
fn in_cell(ns: f64, unit: &str) -> String {
    large_time(ns, unit).unwrap_or_else(|| microseconds(ns))
}

/// A time that is too large for `unit`, with its own unit: `31.34 ms`.
fn large_time(ns: f64, unit: &str) -> Option<String> {
    let (value, fitting) = fitting(ns / 1e3, unit);
    (fitting != unit).then(|| format!("{value:.2} {fitting}"))
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

/// The value of a label as text; `None` if there is no such label.
#[must_use]
pub fn text(labels: &Labels, name: &str) -> Option<String> {
    labels.get(name).map(ToString::to_string)
}

/// Up to so many rows, a column with one cell is none too many.
const ROWS_OF_LONE: usize = 3;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{labels, synthetic};

    #[test]
    fn wrong_answers_of_a_call_count_once_and_for_its_contestant() {
        let of = |orb: &str, operation: &str, part: &str, wrong| Series {
            wrong,
            ..synthetic::series(
                labels([
                    ("orb", orb.into()),
                    ("transport", "tcp".into()),
                    ("operation", operation.into()),
                    ("part", part.into()),
                ]),
                [1],
            )
        };
        let all = vec![
            of("raw", "long", "call", 1),
            of("rtorb", "long", "above_raw", 4),
            of("rtorb", "long", "call", 3),
            of("rtorb", "octet", "send", 2),
            of("rtorb", "octet", "receive", 2),
            of("omniorb", "long", "call", 0),
            of("omniorb", "long", "above_raw", 1),
        ];
        let found = wrong_answers(&synthetic::results("orb/throughput", all));
        let expected = [("raw tcp", 1), ("rtorb tcp", 5)];
        assert_eq!(found, expected.map(|(who, wrong)| (who.to_owned(), wrong)));
    }
}
