//! The tables of an experiment that says which labels name its columns: the other labels name the rows.

use super::words::{named, part_of, said_of, shown, unit_in, values_of, varying};
use super::{calls, large_time};
use crate::statistics::Statistics;
use crate::table::Table;
use crate::{Labels, Results, Series};

/// The median over rounds and the largest sample of every series; `None` where the experiment names no columns.
pub(super) fn medians(results: &Results) -> Option<Table> {
    if results.columns.is_empty() {
        return None;
    }
    let series: Vec<&Series> = calls(results).collect();
    let names = row_labels(&series, &results.columns);
    let mut columns = values_of(&series, &results.columns);
    columns.retain(|column| !is_of_zeros(&series, &results.columns, column));
    let unit = unit(results, &series);
    let cell = |row: &Labels, column: &Labels| {
        let of_cell = series.iter().find(|one| {
            part_of(&one.labels, &names) == *row
                && part_of(&one.labels, &results.columns) == *column
        });
        of_cell
            .map(|one| cell(results, one, &unit))
            .unwrap_or_default()
    };
    Some(Table::crossed(
        corner(&series, &unit),
        &named(&names, values_of(&series, &names)),
        &named(&results.columns, columns),
        cell,
    ))
}

/// The whole distribution of every series; `None` where the experiment names no columns.
pub(super) fn tails(results: &Results) -> Option<Table> {
    if results.columns.is_empty() {
        return None;
    }
    let series: Vec<&Series> = calls(results).collect();
    let mut names = row_labels(&series, &results.columns);
    names.extend(results.columns.iter().cloned());
    let in_order = values_of(&series, &names);
    let of_row = |of: &Labels| {
        series
            .iter()
            .find(|one| part_of(&one.labels, &names) == *of)
    };
    let unit = unit(results, &series);
    let row = |one: &&Series| {
        [said_of(&names, &one.labels), one.count.to_string()]
            .into_iter()
            .chain(
                one.statistics
                    .in_order()
                    .map(|value| with_unit(results, (value, &one.unit), &unit)),
            )
            .collect()
    };
    Some(Table {
        head: [unit.as_str(), "count"]
            .into_iter()
            .chain(Statistics::NAMES)
            .map(str::to_owned)
            .collect(),
        rows: in_order.iter().filter_map(of_row).map(row).collect(),
    })
}

/// Whether nothing was counted in a column, as of memory that nobody locked: it would be wide and say nothing.
fn is_of_zeros(series: &[&Series], columns: &[String], column: &Labels) -> bool {
    let all_zero = |unit: &str, of: Option<&Labels>| {
        series
            .iter()
            .filter(|one| of.is_none_or(|of| part_of(&one.labels, columns) == *of))
            .all(|one| one.unit == unit && one.statistics.max == 0.0)
    };
    all_zero("bytes", Some(column)) && !all_zero("bytes", None)
}

/// The labels that tell the rows apart.
fn row_labels(series: &[&Series], columns: &[String]) -> Vec<String> {
    let mut names = varying(series);
    names.retain(|name| !columns.contains(name));
    let others = names.iter().filter(|name| *name != "what");
    if tell_apart(series, columns, others) {
        names.retain(|name| name != "what");
    }
    // A system has both in its name.
    if names.iter().chain(columns).any(|name| name == "system") {
        names.retain(|name| name != "kernel" && name != "preempt");
    }
    // What is true of a series in every row says nothing new about it.
    names.sort_by_key(|name| name == "real_time");
    names
}

/// Whether no two series of one column have the same values under these names.
fn tell_apart<'a>(
    series: &[&Series],
    columns: &'a [String],
    names: impl Iterator<Item = &'a String>,
) -> bool {
    let names: Vec<String> = names.chain(columns).cloned().collect();
    values_of(series, &names).len() == series.len()
}

/// A median alone where there is but one value, as of sizes.
fn cell(results: &Results, series: &Series, unit: &str) -> String {
    let mark = if series.wrong > 0 { " WRONG" } else { "" };
    let median = with_unit(results, (series.median_of_rounds(), &series.unit), unit);
    let max = with_unit(results, (series.statistics.max, &series.unit), unit);
    match series.count {
        0 => String::new(),
        1 => format!("{median}{mark}"),
        _ if median == max => format!("{median}{mark}"),
        _ => format!("{median} / {max}{mark}"),
    }
}

/// A value, with its unit unless the corner of the table has it.
pub(super) fn with_unit(results: &Results, (value, unit): (f64, &str), in_corner: &str) -> String {
    let own = unit_in(results, unit);
    if let Some(large) = large_time(value, &own).filter(|_| unit == "ns") {
        large
    } else if own == in_corner {
        shown(value, unit)
    } else {
        format!("{} {own}", shown(value, unit))
            .trim_end()
            .to_owned()
    }
}

fn corner(series: &[&Series], unit: &str) -> String {
    let what = if series.iter().any(|one| one.count > 1) {
        "median / max"
    } else {
        "measured"
    };
    if unit.is_empty() {
        what.to_owned()
    } else {
        format!("{unit}, {what}")
    }
}

/// The unit of all series; empty where they have several, or say it themselves.
fn unit(results: &Results, series: &[&Series]) -> String {
    let Some(first) = series.first() else {
        return String::new();
    };
    let all_same = series.iter().all(|one| one.unit == first.unit);
    if all_same {
        unit_in(results, &first.unit)
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Recorder;
    use crate::{labels, synthetic};

    fn results(unit: &str) -> Results {
        let series =
            [(20u32, "harmonic"), (1, "harmonic"), (1, "arbitrary")].map(|(timers, pattern)| {
                let mut recorder = Recorder::new();
                (1..=100).for_each(|step| recorder.record(u64::from(timers) * 1_000 + step));
                let of = labels([
                    ("timers", timers.into()),
                    ("pattern", pattern.into()),
                    ("real_time", true.into()),
                ]);
                Series {
                    unit: unit.to_owned(),
                    ..Series::from_recorder(of, &recorder)
                }
            });
        Results {
            columns: vec!["timers".to_owned()],
            ..synthetic::results("os/interval-jitter", series.to_vec())
        }
    }

    #[test]
    fn the_named_labels_make_the_columns_and_those_that_differ_the_rows() {
        let table = medians(&results("ns")).unwrap();
        assert_eq!(table.head, ["us, median / max", "1 timer", "20 timers"]);
        assert_eq!(
            table.rows,
            [
                ["harmonic", "1.05 / 1.10", "20.06 / 20.10"],
                ["arbitrary", "1.05 / 1.10", ""]
            ]
        );
    }

    #[test]
    fn the_whole_distribution_has_a_row_a_series() {
        let table = tails(&results("switches")).unwrap();
        assert_eq!(table.head[..4], ["switches", "count", "min", "mean"]);
        assert_eq!(table.rows.len(), 3);
        assert_eq!(table.rows[0][..3], ["harmonic, 1 timer", "100", "1001"]);
    }

    #[test]
    fn where_units_differ_each_cell_says_its_own() {
        let mut mixed = results("ns");
        mixed.series[0].unit = "bytes".to_owned();
        let table = medians(&mixed).unwrap();
        assert_eq!(table.head[0], "median / max");
        assert_eq!(table.rows[0][1], "1.05 us / 1.10 us");
        assert!(table.rows[0][2].contains("KiB"), "{:?}", table.rows[0]);
    }

    #[test]
    fn a_time_that_is_too_large_for_the_corner_says_its_own_unit() {
        let mut late = results("ns");
        late.series[0].statistics.max = 31_343_000.0;
        assert_eq!(medians(&late).unwrap().rows[0][2], "20.06 / 31.34 ms");
        let whole = tails(&late).unwrap();
        assert_eq!(whole.rows[1].last().map(String::as_str), Some("31.34 ms"));
        late.parameters
            .insert("effort".to_owned(), "emulated".into());
        assert_eq!(medians(&late).unwrap().rows[0][2], "20.06 / 31343");
    }

    #[test]
    fn what_the_other_labels_say_already_is_not_said_again() {
        let mut told = results("ns");
        for (series, what) in told.series.iter_mut().zip(["jitter", "jitter", "alone"]) {
            series.labels.insert("what".to_owned(), what.into());
        }
        let table = medians(&told).unwrap();
        assert_eq!(table.rows[0][0], "harmonic");
        told.series[2]
            .labels
            .insert("pattern".to_owned(), "harmonic".into());
        let table = medians(&told).unwrap();
        assert_eq!(table.rows[0][0], "jitter");
    }

    #[test]
    fn a_column_of_which_nothing_was_counted_is_left_out() {
        let mut counted = results("bytes");
        for series in &mut counted.series {
            let is_one = series.labels["timers"] == 1u32.into();
            if is_one {
                let mut none = Recorder::new();
                none.record(0);
                series.statistics = none.statistics();
            }
        }
        assert_eq!(
            medians(&counted).unwrap().head,
            ["median / max", "20 timers"]
        );
    }

    #[test]
    fn without_named_columns_there_is_no_such_table() {
        let mut unnamed = results("ns");
        unnamed.columns.clear();
        assert!(medians(&unnamed).is_none() && tails(&unnamed).is_none());
    }
}
