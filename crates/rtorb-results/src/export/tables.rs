//! From results to rows.

use std::collections::BTreeMap;

use super::{Cell, Column, ExportedTable, Kind};
use crate::runs::Run;
use crate::{Derived, LabelValue, Labels, Results, Series};

pub(super) fn all(runs: &[Run]) -> Vec<ExportedTable> {
    let kinds = label_kinds(runs);
    let mut tables = SHAPES.map(|shape| ExportedTable {
        name: shape.name,
        columns: columns(&kinds, shape.columns),
        rows: Vec::new(),
    });
    for run in runs {
        for results in &run.results {
            let lead = |index: usize, labels: &Labels| lead(run, results, index, (labels, &kinds));
            for (index, series) in results.series.iter().enumerate() {
                let lead = lead(index, &series.labels);
                let mut add = |table: usize, cells: Vec<Cell>| {
                    tables[table]
                        .rows
                        .push(lead.iter().cloned().chain(cells).collect());
                };
                add(SERIES, of_series(series));
                of_percentiles(series).for_each(|cells| add(PERCENTILES, cells));
                of_histogram(series).for_each(|cells| add(HISTOGRAMS, cells));
                of_rounds(series).for_each(|cells| add(ROUNDS, cells));
            }
            for (index, derived) in results.derived.iter().enumerate() {
                let lead = lead(index, &derived.labels);
                let mut add = |table: usize, cells: Vec<Cell>| {
                    tables[table]
                        .rows
                        .push(lead.iter().cloned().chain(cells).collect());
                };
                add(DERIVED, of_derived(derived));
                of_derived_rounds(derived).for_each(|cells| add(DERIVED_ROUNDS, cells));
            }
        }
    }
    tables.into()
}

/// What every row begins with: where it is from, then a cell for each label that any row has.
fn lead(
    run: &Run,
    results: &Results,
    index: usize,
    (labels, kinds): (&Labels, &BTreeMap<String, Kind>),
) -> Vec<Cell> {
    let parameter = |name: &str| match results.parameters.get(name) {
        Some(value) => Cell::Text(value.to_string()),
        None => Cell::Missing,
    };
    let mut cells = vec![
        text(&results.run),
        if run.name.is_empty() {
            Cell::Missing
        } else {
            text(&run.name)
        },
        text(&results.experiment),
        text(&results.started),
        text(&results.host.kernel_release),
        text(&results.host.preemption),
        text(&results.host.machine),
        parameter("effort"),
        parameter("load"),
        Cell::Truth(results.is_real_time()),
        Cell::Truth(results.complete),
        whole(index),
    ];
    cells.extend(
        kinds
            .iter()
            .map(|(name, kind)| match (labels.get(name), kind) {
                (None, _) => Cell::Missing,
                (Some(LabelValue::Bool(truth)), Kind::Truth) => Cell::Truth(*truth),
                (Some(LabelValue::Number(number)), Kind::Integer) => Cell::Integer(*number),
                (Some(other), _) => Cell::Text(other.to_string()),
            }),
    );
    cells
}

fn of_series(series: &Series) -> Vec<Cell> {
    let found = &series.statistics;
    vec![
        text(&series.unit),
        count(series.count),
        Cell::Real(found.min),
        Cell::Real(found.mean),
        Cell::Real(found.stddev),
        Cell::Real(found.p50),
        Cell::Real(found.p90),
        Cell::Real(found.p99),
        Cell::Real(found.p99_9),
        Cell::Real(found.max),
        Cell::Real(series.median_of_rounds()),
        count(series.wrong),
        series.calls_per_second.map_or(Cell::Missing, Cell::Real),
    ]
}

fn of_percentiles(series: &Series) -> impl Iterator<Item = Vec<Cell>> {
    series.percentiles.iter().map(|point| {
        let share = 1.0 - 1.0 / point.one_in;
        vec![
            text(&series.unit),
            Cell::Real(point.one_in),
            Cell::Real(share),
            Cell::Real(point.value),
        ]
    })
}

fn of_histogram(series: &Series) -> impl Iterator<Item = Vec<Cell>> {
    series.histogram.iter().map(|bucket| {
        vec![
            text(&series.unit),
            Cell::Real(bucket.from),
            Cell::Real(bucket.to),
            count(bucket.count),
        ]
    })
}

fn of_rounds(series: &Series) -> impl Iterator<Item = Vec<Cell>> {
    let rounds = series.rounds_p50.len().max(series.rounds_p99.len());
    let value = |values: &[f64], round: usize| {
        values
            .get(round)
            .map_or(Cell::Missing, |value| Cell::Real(*value))
    };
    (0..rounds).map(move |round| {
        vec![
            text(&series.unit),
            whole(round + 1),
            value(&series.rounds_p50, round),
            value(&series.rounds_p99, round),
        ]
    })
}

fn of_derived(derived: &Derived) -> Vec<Cell> {
    vec![
        text(&derived.name),
        text(&derived.unit),
        Cell::Real(derived.value),
    ]
}

fn of_derived_rounds(derived: &Derived) -> impl Iterator<Item = Vec<Cell>> {
    derived.rounds.iter().enumerate().map(|(round, value)| {
        vec![
            text(&derived.name),
            text(&derived.unit),
            whole(round + 1),
            Cell::Real(*value),
        ]
    })
}

fn columns(kinds: &BTreeMap<String, Kind>, own: &[(&str, Kind)]) -> Vec<Column> {
    let column = |(name, kind): &(&str, Kind)| Column {
        name: (*name).to_owned(),
        kind: *kind,
    };
    let labels = kinds.iter().map(|(name, kind)| Column {
        name: format!("label_{name}"),
        kind: *kind,
    });
    LEAD.iter()
        .map(column)
        .chain(labels)
        .chain(own.iter().map(column))
        .collect()
}

/// Every label of any row, with the kind of its values; text where they are of several kinds.
fn label_kinds(runs: &[Run]) -> BTreeMap<String, Kind> {
    let mut kinds: BTreeMap<String, Kind> = BTreeMap::new();
    for results in runs.iter().flat_map(|run| &run.results) {
        let of_series = results.series.iter().map(|series| &series.labels);
        let of_derived = results.derived.iter().map(|derived| &derived.labels);
        for (name, value) in of_series.chain(of_derived).flatten() {
            let kind = match value {
                LabelValue::Bool(_) => Kind::Truth,
                LabelValue::Number(_) => Kind::Integer,
                LabelValue::Text(_) => Kind::Text,
            };
            let known = kinds.entry(name.clone()).or_insert(kind);
            if *known != kind {
                *known = Kind::Text;
            }
        }
    }
    kinds
}

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn count(count: u64) -> Cell {
    Cell::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

fn whole(index: usize) -> Cell {
    Cell::Integer(i64::try_from(index).unwrap_or(i64::MAX))
}

/// The columns that every table begins with.
const LEAD: [(&str, Kind); 12] = [
    ("run", Kind::Text),
    ("run_folder", Kind::Text),
    ("experiment", Kind::Text),
    ("started", Kind::Text),
    ("kernel_release", Kind::Text),
    ("preemption", Kind::Text),
    ("machine", Kind::Text),
    ("effort", Kind::Text),
    ("load", Kind::Text),
    ("real_time", Kind::Truth),
    ("complete", Kind::Truth),
    ("number", Kind::Integer),
];

/// A table's name, and its columns after those of [`LEAD`] and the labels.
struct Shape {
    name: &'static str,
    columns: &'static [(&'static str, Kind)],
}

const SERIES: usize = 0;
const PERCENTILES: usize = 1;
const HISTOGRAMS: usize = 2;
const ROUNDS: usize = 3;
const DERIVED: usize = 4;
const DERIVED_ROUNDS: usize = 5;

const SHAPES: [Shape; 6] = [
    Shape {
        name: "series",
        columns: &[
            ("unit", Kind::Text),
            ("count", Kind::Integer),
            ("min", Kind::Real),
            ("mean", Kind::Real),
            ("stddev", Kind::Real),
            ("p50", Kind::Real),
            ("p90", Kind::Real),
            ("p99", Kind::Real),
            ("p99_9", Kind::Real),
            ("max", Kind::Real),
            ("median_of_rounds", Kind::Real),
            ("wrong", Kind::Integer),
            ("calls_per_second", Kind::Real),
        ],
    },
    Shape {
        name: "percentiles",
        columns: &[
            ("unit", Kind::Text),
            ("one_in", Kind::Real),
            ("share", Kind::Real),
            ("value", Kind::Real),
        ],
    },
    Shape {
        name: "histograms",
        columns: &[
            ("unit", Kind::Text),
            ("from", Kind::Real),
            ("to", Kind::Real),
            ("count", Kind::Integer),
        ],
    },
    Shape {
        name: "rounds",
        columns: &[
            ("unit", Kind::Text),
            ("round", Kind::Integer),
            ("p50", Kind::Real),
            ("p99", Kind::Real),
        ],
    },
    Shape {
        name: "derived",
        columns: &[
            ("name", Kind::Text),
            ("unit", Kind::Text),
            ("value", Kind::Real),
        ],
    },
    Shape {
        name: "derived_rounds",
        columns: &[
            ("name", Kind::Text),
            ("unit", Kind::Text),
            ("round", Kind::Integer),
            ("value", Kind::Real),
        ],
    },
];
