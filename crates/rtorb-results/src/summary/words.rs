//! Labels and values as a reader says them: `5 timers`, `highest priority`, `12.4 us`, `1.25 MiB`.

use std::collections::BTreeMap;

use super::{large_time, microseconds, phrase};
use crate::{LabelValue, Labels, Results, Series, distinct};

/// A label in words. A name stands for itself, a number with what it is a number of.
pub fn said(name: &str, value: &LabelValue) -> String {
    let words = name.replace('_', " ");
    match value {
        LabelValue::Bool(true) => words,
        LabelValue::Bool(false) => format!("not {words}"),
        LabelValue::Text(text) if name == "preempt" && text == "none" => "no preemption".to_owned(),
        LabelValue::Text(text) if text == "none" => format!("no {words}"),
        LabelValue::Text(text) if name == "priority" => format!("{text} priority"),
        LabelValue::Text(text) if name == "load" => format!("load {text}"),
        LabelValue::Text(text) => phrase(name, text).unwrap_or_else(|| text.replace('_', " ")),
        LabelValue::Number(number) => {
            phrase(name, &number.to_string()).unwrap_or_else(|| counted(name, *number))
        }
    }
}

/// Some labels in words, in the order of the names.
pub fn said_of(names: &[String], labels: &Labels) -> String {
    let words = names
        .iter()
        .filter_map(|name| labels.get(name).map(|value| said(name, value)));
    words.collect::<Vec<_>>().join(", ")
}

/// Only the labels of these names.
pub fn part_of(labels: &Labels, names: &[String]) -> Labels {
    let found = names
        .iter()
        .filter_map(|name| Some((name.clone(), labels.get(name)?.clone())));
    found.collect()
}

/// The different values of these labels, in the order in which they come.
pub fn parts_of<'a>(all: impl Iterator<Item = &'a Labels>, names: &[String]) -> Vec<Labels> {
    distinct(all.map(|labels| part_of(labels, names)))
}

/// The labels of rows or columns, each behind its name.
pub(super) fn named(names: &[String], all: Vec<Labels>) -> Vec<(String, Labels)> {
    let named = |labels: Labels| (said_of(names, &labels), labels);
    all.into_iter().map(named).collect()
}

/// What the series have under these labels, each once: numbers by size, names in the order of the series.
pub fn values_of(series: &[&Series], names: &[String]) -> Vec<Labels> {
    let mut found = parts_of(series.iter().map(|one| &one.labels), names);
    let first_seen = found.clone();
    let place = |values: &Labels| -> Vec<(i64, usize)> {
        let of_name = |name: &String| match values.get(name) {
            None => (i64::MIN, 0),
            Some(LabelValue::Number(number)) => (*number, 0),
            value => {
                let ranked = value.and_then(|value| rank(&value.to_string()));
                let same = |seen: &Labels| seen.get(name) == value;
                let seen = || RANKS.len() + first_seen.iter().position(same).unwrap_or(0);
                (i64::MIN, ranked.unwrap_or_else(seen) + 1)
            }
        };
        names.iter().map(of_name).collect()
    };
    found.sort_by_key(place);
    found
}

/// The place of a name that has one by itself, whatever was measured first.
fn rank(name: &str) -> Option<usize> {
    RANKS.iter().position(|ranked| *ranked == name)
}

/// The names of the labels that not all series share.
pub fn varying(series: &[&Series]) -> Vec<String> {
    let mut values: BTreeMap<&String, Vec<Option<&LabelValue>>> = BTreeMap::new();
    for name in series.iter().flat_map(|one| one.labels.keys()) {
        values
            .entry(name)
            .or_insert_with(|| series.iter().map(|one| one.labels.get(name)).collect());
    }
    let differ = values
        .into_iter()
        .filter(|(_, of_each)| of_each.windows(2).any(|pair| pair[0] != pair[1]));
    differ.map(|(name, _)| name.clone()).collect()
}

/// A real time with the unit that fits it: `9.45 us`, `31.34 ms`.
#[must_use]
pub fn time(ns: f64) -> String {
    large_time(ns, "us").unwrap_or_else(|| format!("{} us", shown(ns, "ns")))
}

/// A value of a series without its unit where [`shown_unit`] says it, and with it where each has its own.
pub fn shown(value: f64, unit: &str) -> String {
    match unit {
        "ns" if value.abs() < 1e3 => format!("{:.3}", value / 1e3),
        "ns" => microseconds(value),
        "bytes" => {
            let (divisor, prefixed) = prefix(value);
            format!("{} {prefixed}", digits(value / divisor))
        }
        _ => digits(value),
    }
}

/// The unit that [`shown`] leaves out.
pub fn shown_unit(unit: &str) -> String {
    match unit {
        "ns" => "us".to_owned(),
        "bytes" => String::new(),
        _ => unit.replace('_', " "),
    }
}

/// The same of results in which time may be a count of instructions.
pub fn unit_in(results: &Results, unit: &str) -> String {
    match unit {
        "ns" => results.time_unit().of_thousand().to_owned(),
        _ => shown_unit(unit),
    }
}

/// What to divide octets by, and the unit that results, for values up to this one.
pub fn prefix(bytes_max: f64) -> (f64, &'static str) {
    let fits = PREFIXES
        .iter()
        .rev()
        .find(|(divisor, _)| bytes_max.abs() >= *divisor);
    fits.copied().unwrap_or(PREFIXES[0])
}

/// `5 timers`, `500 us resolution`, `1 ms resolution`.
fn counted(name: &str, number: i64) -> String {
    for unit in UNITS {
        if let Some(stem) = name
            .strip_suffix(unit)
            .and_then(|stem| stem.strip_suffix('_'))
        {
            let (number, unit) = match unit {
                "us" if number != 0 && number % 1_000 == 0 => (number / 1_000, "ms"),
                unit => (number, unit),
            };
            return format!("{number} {unit} {}", stem.replace('_', " "));
        }
    }
    let words = name.replace('_', " ");
    match (words.strip_suffix('s'), number) {
        (Some(one), 1) => format!("1 {one}"),
        (Some(_), _) => format!("{number} {words}"),
        (None, _) => format!("{words} {number}"),
    }
}

/// `1,234,567`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// As many digits as mean something.
fn digits(value: f64) -> String {
    match value.abs() {
        whole if whole.fract() == 0.0 => format!("{value:.0}"),
        small if small < 1.0 => format!("{value:.4}"),
        small if small < 100.0 => format!("{value:.2}"),
        medium if medium < 1_000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

const RANKS: [&str; 3] = ["highest", "middle", "lowest"];
const UNITS: [&str; 7] = ["ns", "us", "ms", "s", "hz", "bytes", "percent"];
const PREFIXES: [(f64, &str); 4] = [
    (1.0, "bytes"),
    (1024.0, "KiB"),
    (1_048_576.0, "MiB"),
    (1_073_741_824.0, "GiB"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels;
    use crate::statistics::Recorder;

    #[test]
    fn labels_are_said_as_a_reader_would() {
        for (name, value, words) in [
            ("timers", LabelValue::Number(5), "5 timers"),
            ("timers", LabelValue::Number(1), "1 timer"),
            ("ready_tasks", LabelValue::Number(20), "20 ready tasks"),
            (
                "resolution_us",
                LabelValue::Number(500),
                "500 us resolution",
            ),
            (
                "resolution_us",
                LabelValue::Number(10_000),
                "10 ms resolution",
            ),
            ("payload_bytes", LabelValue::Number(64), "64 bytes payload"),
            ("priority", LabelValue::Number(50), "priority 50"),
            ("priority", "highest".into(), "highest priority"),
            ("pattern", "non_harmonic".into(), "non harmonic"),
            ("load", "none".into(), "no load"),
            ("load", "mix".into(), "load mix"),
            ("pinned", true.into(), "pinned"),
            ("pinned", false.into(), "not pinned"),
        ] {
            assert_eq!(said(name, &value), words);
        }
    }

    #[test]
    fn values_keep_their_unit_and_lose_no_digit_that_means_something() {
        assert_eq!(shown(34.0, "ns"), "0.034");
        assert_eq!(shown(12_345.0, "ns"), "12.35");
        assert_eq!(shown(1_310_720.0, "bytes"), "1.25 MiB");
        assert_eq!(shown(512.0, "bytes"), "512 bytes");
        assert_eq!(shown(0.0125, "ratio"), "0.0125");
        assert_eq!(shown(7.0, "switches"), "7");
        assert_eq!(shown_unit("ns"), "us");
    }

    #[test]
    fn numbers_are_ordered_by_size_and_names_as_they_come() {
        let made =
            [(10u32, "harmonic"), (2, "harmonic"), (2, "arbitrary")].map(|(timers, pattern)| {
                let of = labels([
                    ("timers", timers.into()),
                    ("pattern", pattern.into()),
                    ("orb", "x".into()),
                ]);
                Series::from_recorder(of, &Recorder::new())
            });
        let series: Vec<&Series> = made.iter().collect();
        let numbers = values_of(&series, &["timers".to_owned()]);
        assert_eq!(
            numbers
                .iter()
                .map(|of| of["timers"].clone())
                .collect::<Vec<_>>(),
            [2u32, 10].map(LabelValue::from)
        );
        let names = values_of(&series, &["pattern".to_owned()]);
        assert_eq!(
            names
                .iter()
                .map(|of| of["pattern"].clone())
                .collect::<Vec<_>>(),
            ["harmonic", "arbitrary"].map(LabelValue::from)
        );
        let ranked = ["lowest", "highest", "middle"].map(|priority| {
            Series::from_recorder(labels([("priority", priority.into())]), &Recorder::new())
        });
        let of_priority = values_of(&ranked.iter().collect::<Vec<_>>(), &["priority".to_owned()]);
        assert_eq!(
            of_priority
                .iter()
                .map(|of| of["priority"].clone())
                .collect::<Vec<_>>(),
            ["highest", "middle", "lowest"].map(LabelValue::from)
        );
        assert_eq!(varying(&series), ["pattern", "timers"]);
        assert!(varying(&series[..1]).is_empty());
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
