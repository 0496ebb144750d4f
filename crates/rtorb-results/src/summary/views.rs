//! The tables that an experiment asks for in words of its labels ([`TableView`]).

use super::calls;
use super::columns::with_unit;
use super::words::{named, part_of, parts_of, said_of, shown, unit_in, values_of};
use crate::table::Table;
use crate::{CellValue, Derived, Labels, Results, Series, TableView, is_part};

/// A table with what a reader must know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TitledTable {
    /// Its name in the page, without spaces.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How to read it, from what it was made, and of which unit it is.
    pub caption: String,
    /// The table.
    pub table: Table,
}

/// The tables that the experiment asks for, those that something was measured for.
#[must_use]
pub fn tables(results: &Results) -> Vec<TitledTable> {
    let filled = results.tables.iter().map(|view| filled(results, view));
    filled.filter(|one| !one.table.rows.is_empty()).collect()
}

fn filled(results: &Results, view: &TableView) -> TitledTable {
    let (table, from) = if view.derived.is_empty() {
        of_series(results, view)
    } else {
        (of_derived(results, view), String::new())
    };
    let sentences = [view.caption.as_str(), from.as_str()];
    let sentences: Vec<&str> = sentences
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    TitledTable {
        id: view.id.clone(),
        title: view.title.clone(),
        caption: sentences.join(" "),
        table,
    }
}

fn of_series(results: &Results, view: &TableView) -> (Table, String) {
    let of_view = |one: &&Series| is_part(&view.of, &one.labels);
    let series: Vec<&Series> = if view.of.contains_key("part") {
        results.series.iter().filter(of_view).collect()
    } else {
        calls(results).filter(of_view).collect()
    };
    let columns = values_of(&series, &view.columns);
    let cell = |row: &Labels, (column, value): &(&Labels, CellValue)| {
        let mut of_cell = series.iter().filter(|one| {
            part_of(&one.labels, &view.rows) == *row
                && part_of(&one.labels, &view.columns) == **column
        });
        of_cell
            .next()
            .map(|one| cell(results, one, *value))
            .unwrap_or_default()
    };
    let of_values = columns.iter().flat_map(|column| {
        let of_value = move |value: &CellValue| (head(view, column, *value), (column, *value));
        view.values.iter().map(of_value)
    });
    let mut table = Table::crossed(
        corner(results, &series, &view.values),
        &named(&view.rows, values_of(&series, &view.rows)),
        &of_values.collect::<Vec<_>>(),
        cell,
    );
    if !table.rows.is_empty() {
        table.rows.extend(published(view, &columns));
    }
    (table, counted(&series))
}

fn of_derived(results: &Results, view: &TableView) -> Table {
    let shown_here = |one: &&Derived| one.name == view.derived && is_part(&view.of, &one.labels);
    let found: Vec<&Derived> = results.derived.iter().filter(shown_here).collect();
    let parts = |names| parts_of(found.iter().map(|one| &one.labels), names);
    let cell = |row: &Labels, column: &Labels| {
        let mut of_cell = found.iter().filter(|one| {
            part_of(&one.labels, &view.rows) == *row
                && part_of(&one.labels, &view.columns) == *column
        });
        of_cell.next().map(|one| factor(one)).unwrap_or_default()
    };
    let unit = found.first().map_or_else(String::new, |one| {
        if one.unit == "ratio" {
            "times".to_owned()
        } else {
            unit_in(results, &one.unit)
        }
    });
    Table::crossed(
        unit,
        &named(&view.rows, parts(&view.rows)),
        &named(&view.columns, parts(&view.columns)),
        cell,
    )
}

fn factor(derived: &Derived) -> String {
    match (derived.unit.as_str(), derived.value) {
        ("ratio", large) if large >= 100.0 => format!("{large:.0}"),
        ("ratio", medium) if medium >= 10.0 => format!("{medium:.1}"),
        ("ratio", small) => format!("{small:.2}"),
        (unit, value) => shown(value, unit),
    }
}

fn cell(results: &Results, series: &Series, value: CellValue) -> String {
    let found = &series.statistics;
    let in_corner = unit_in(results, &series.unit);
    let shown = |value: f64| with_unit(results, (value, &series.unit), &in_corner);
    let text = match value {
        _ if series.count == 0 => return String::new(),
        CellValue::Median => shown(series.median_of_rounds()),
        CellValue::MeanAndDeviation => format!("{} ({})", shown(found.mean), shown(found.stddev)),
        CellValue::P99 => shown(found.p99),
        CellValue::Worst => shown(found.max),
        CellValue::CallsPerSecond => match series.calls_per_second {
            Some(calls) => format!("{calls:.0}"),
            None => return String::new(),
        },
    };
    match series.wrong {
        0 => text,
        _ => format!("{text} WRONG"),
    }
}

fn head(view: &TableView, column: &Labels, value: CellValue) -> String {
    let column = said_of(&view.columns, column);
    match (view.values.len(), column.is_empty()) {
        (1, false) => column,
        (_, true) => name(value).to_owned(),
        (_, false) => format!("{column}: {}", name(value)),
    }
}

/// The unit, and what is shown where all columns show the same.
fn corner(results: &Results, series: &[&Series], values: &[CellValue]) -> String {
    let unit = match (values, series.first()) {
        ([CellValue::CallsPerSecond], _) | (_, None) => String::new(),
        (_, Some(first)) => unit_in(results, &first.unit),
    };
    let what = match values {
        [one] => name(*one),
        _ => "",
    };
    let words = [unit.as_str(), what];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(", ")
}

fn name(value: CellValue) -> &'static str {
    match value {
        CellValue::Median => "median",
        CellValue::MeanAndDeviation => "mean (standard deviation)",
        CellValue::P99 => "p99",
        CellValue::Worst => "worst",
        CellValue::CallsPerSecond => "calls/s",
    }
}

fn published(view: &TableView, columns: &[Labels]) -> Vec<Vec<String>> {
    let row = |row: &crate::PublishedRow| {
        let cells = columns.iter().flat_map(|column| {
            let cell = row.cells.iter().find(|(of, _)| of == column);
            let cell = cell.map(|(_, cell)| cell.clone()).unwrap_or_default();
            // A paper has one number a column.
            let others = view.values.len().saturating_sub(1);
            std::iter::once(cell).chain(std::iter::repeat_n(String::new(), others))
        });
        std::iter::once(format!("{} ({})", row.name, row.source))
            .chain(cells)
            .collect()
    };
    view.published.iter().map(row).collect()
}

/// How many seeds and samples a cell is made of: a largest sample means nothing without.
fn counted(series: &[&Series]) -> String {
    let range = |counts: &mut dyn Iterator<Item = u64>| {
        let counts: Vec<u64> = counts.collect();
        let (least, most) = (counts.iter().min()?, counts.iter().max()?);
        Some(if least == most {
            least.to_string()
        } else {
            format!("{least} to {most}")
        })
    };
    let samples = range(&mut series.iter().map(|one| one.count));
    let seeds = range(&mut series.iter().map(|one| one.rounds_max.len() as u64));
    match (seeds, samples) {
        (Some(seeds), Some(samples)) if seeds == "1" => {
            format!("Each cell: {samples} samples, of one seed.")
        }
        (Some(seeds), Some(samples)) if seeds != "0" => {
            format!("Each cell: {samples} samples, of {seeds} seeds together.")
        }
        (_, Some(samples)) => format!("Each cell: {samples} samples."),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PublishedRow, labels, synthetic};

    fn results() -> Results {
        let cases = [
            ("6.12 voluntary", "none", 4_000),
            ("6.12 voluntary", "tmpfs", 900_000),
            ("6.12-rt full", "none", 4_500),
            ("6.12-rt full", "tmpfs", 6_000),
        ];
        let series = cases.map(|(system, load, worst)| {
            let of = labels([("system", system.into()), ("load", load.into())]);
            synthetic::series(of, [1_000, worst])
        });
        let mut results = synthetic::results("kernel/os/wakeup", series.to_vec());
        results.emulation = Some(Default::default());
        results.tables = vec![TableView {
            title: "Worst".to_owned(),
            rows: vec!["load".to_owned()],
            columns: vec!["system".to_owned()],
            values: vec![CellValue::Worst],
            published: vec![PublishedRow {
                source: "P9".to_owned(),
                name: "OS/9".to_owned(),
                cells: vec![(
                    labels([("system", "6.12-rt full".into())]),
                    "1.5".to_owned(),
                )],
            }],
            ..TableView::default()
        }];
        results
    }

    #[test]
    fn rows_and_columns_are_values_of_labels_and_what_was_published_stands_below() {
        let found = tables(&results());
        let table = &found[0].table;
        assert_eq!(
            table.head,
            ["k instr, worst", "6.12 voluntary", "6.12-rt full"]
        );
        assert_eq!(
            table.rows,
            [
                ["no load", "4.00", "4.50"],
                ["load tmpfs", "900.0", "6.00"],
                ["OS/9 (P9)", "", "1.5"]
            ]
        );
        assert_eq!(found[0].caption, "Each cell: 2 samples.");
    }

    #[test]
    fn several_values_have_a_column_each_and_a_derived_number_its_own_table() {
        let mut results = results();
        results.tables[0].values = vec![CellValue::Median, CellValue::Worst];
        results.derived = vec![Derived {
            name: "ratio".to_owned(),
            labels: labels([("load", "tmpfs".into()), ("system", "a".into())]),
            unit: "ratio".to_owned(),
            value: 150.4,
            rounds: Vec::new(),
        }];
        let mut derived = results.tables[0].clone();
        derived.derived = "ratio".to_owned();
        results.tables.push(derived);
        let found = tables(&results);
        assert_eq!(
            found[0].table.head[1..3],
            ["6.12 voluntary: median", "6.12 voluntary: worst"]
        );
        assert_eq!(found[0].table.rows[2].len(), found[0].table.head.len());
        assert_eq!(found[1].table.head, ["times", "a"]);
        assert_eq!(found[1].table.rows, [["load tmpfs", "150"]]);
    }

    #[test]
    fn a_table_that_nothing_was_measured_for_is_none() {
        let mut results = results();
        results.tables[0].of = labels([("load", "fork".into())]);
        assert!(tables(&results).is_empty());
    }
}
