//! From results to rows.

use std::collections::BTreeMap;

use super::{Cell, Column, ExportedTable, Kind};
use crate::runs::Run;
use crate::{Derived, LabelValue, Labels, Results, Series};

pub(super) fn all(runs: &[Run]) -> Vec<ExportedTable> {
    let kinds = label_kinds(runs);
    let series = OF_SERIES
        .iter()
        .map(|table| table.export(runs, &kinds, |results| &results.series));
    let derived = OF_DERIVED
        .iter()
        .map(|table| table.export(runs, &kinds, |results| &results.derived));
    series.chain(derived).collect()
}

/// A column with the cell of a row of a series or of a derived number.
type OwnColumn<R> = (&'static str, Kind, fn(&R, usize) -> Cell);

/// A column with the cell of a series or a derived number of results.
type LeadColumn = (&'static str, Kind, fn(&Run, &Results, usize) -> Cell);

/// A table of series or of derived numbers.
struct TableColumns<R: 'static> {
    name: &'static str,
    /// How many rows it has of each.
    rows: fn(&R) -> usize,
    /// The columns after those of [`LEAD`] and the labels, with the cell of a row.
    columns: &'static [OwnColumn<R>],
}

impl<R: Labelled> TableColumns<R> {
    fn export(
        &self,
        runs: &[Run],
        kinds: &BTreeMap<String, Kind>,
        of: fn(&Results) -> &[R],
    ) -> ExportedTable {
        let mut rows = Vec::new();
        for run in runs {
            for results in &run.results {
                for (number, one) in of(results).iter().enumerate() {
                    let from = LEAD.iter().map(|(_, _, cell)| cell(run, results, number));
                    let labels = kinds.iter().map(|label| label_cell(one.labels(), label));
                    let lead: Vec<Cell> = from.chain(labels).collect();
                    rows.extend((0..(self.rows)(one)).map(|row| {
                        let own = self.columns.iter().map(|(_, _, cell)| cell(one, row));
                        lead.iter().cloned().chain(own).collect()
                    }));
                }
            }
        }
        let column = |name: &str, kind: Kind| Column {
            name: name.to_owned(),
            kind,
        };
        let lead = LEAD.iter().map(|(name, kind, _)| column(name, *kind));
        let labels = kinds
            .iter()
            .map(|(name, kind)| column(&format!("label_{name}"), *kind));
        let own = self.columns.iter();
        let own = own.map(|(name, kind, _)| column(name, *kind));
        ExportedTable {
            name: self.name,
            columns: lead.chain(labels).chain(own).collect(),
            rows,
        }
    }
}

/// What has labels.
trait Labelled {
    fn labels(&self) -> &Labels;
}

impl Labelled for Series {
    fn labels(&self) -> &Labels {
        &self.labels
    }
}

impl Labelled for Derived {
    fn labels(&self) -> &Labels {
        &self.labels
    }
}

fn label_cell(labels: &Labels, (name, kind): (&String, &Kind)) -> Cell {
    match (labels.get(name), kind) {
        (None, _) => Cell::Missing,
        (Some(LabelValue::Bool(truth)), Kind::Truth) => Cell::Truth(*truth),
        (Some(LabelValue::Number(number)), Kind::Integer) => Cell::Integer(*number),
        (Some(other), _) => Cell::Text(other.to_string()),
    }
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

/// The columns that every table begins with: where a row is from.
const LEAD: &[LeadColumn] = &[
    ("run", Kind::Text, |_, results, _| text(&results.run)),
    ("run_folder", Kind::Text, |run, _, _| {
        let name = Some(&run.name).filter(|name| !name.is_empty());
        name.map_or(Cell::Missing, |name| text(name))
    }),
    ("experiment", Kind::Text, |_, results, _| {
        text(&results.experiment)
    }),
    ("started", Kind::Text, |_, results, _| {
        text(&results.started)
    }),
    ("kernel_release", Kind::Text, |_, results, _| {
        text(&results.host.kernel_release)
    }),
    ("preemption", Kind::Text, |_, results, _| {
        text(&results.host.preemption)
    }),
    ("machine", Kind::Text, |_, results, _| {
        text(&results.host.machine)
    }),
    ("effort", Kind::Text, |_, results, _| {
        parameter(results, "effort")
    }),
    ("load", Kind::Text, |_, results, _| {
        parameter(results, "load")
    }),
    ("real_time", Kind::Truth, |_, results, _| {
        Cell::Truth(results.is_real_time())
    }),
    ("complete", Kind::Truth, |_, results, _| {
        Cell::Truth(results.complete)
    }),
    ("number", Kind::Integer, |_, _, number| whole(number)),
];

const OF_SERIES: &[TableColumns<Series>] = &[
    TableColumns {
        name: "series",
        rows: |_| 1,
        columns: &[
            ("unit", Kind::Text, |of, _| text(&of.unit)),
            ("count", Kind::Integer, |of, _| count(of.count)),
            ("min", Kind::Real, |of, _| Cell::Real(of.statistics.min)),
            ("mean", Kind::Real, |of, _| Cell::Real(of.statistics.mean)),
            ("stddev", Kind::Real, |of, _| {
                Cell::Real(of.statistics.stddev)
            }),
            ("p50", Kind::Real, |of, _| Cell::Real(of.statistics.p50)),
            ("p90", Kind::Real, |of, _| Cell::Real(of.statistics.p90)),
            ("p99", Kind::Real, |of, _| Cell::Real(of.statistics.p99)),
            ("p99_9", Kind::Real, |of, _| Cell::Real(of.statistics.p99_9)),
            ("max", Kind::Real, |of, _| Cell::Real(of.statistics.max)),
            ("median_of_rounds", Kind::Real, |of, _| {
                Cell::Real(of.median_of_rounds())
            }),
            ("wrong", Kind::Integer, |of, _| count(of.wrong)),
            ("calls_per_second", Kind::Real, |of, _| {
                real(of.calls_per_second)
            }),
        ],
    },
    TableColumns {
        name: "percentiles",
        rows: |of| of.percentiles.len(),
        columns: &[
            ("unit", Kind::Text, |of, _| text(&of.unit)),
            ("one_in", Kind::Real, |of, row| {
                Cell::Real(of.percentiles[row].one_in)
            }),
            ("share", Kind::Real, |of, row| {
                Cell::Real(1.0 - 1.0 / of.percentiles[row].one_in)
            }),
            ("value", Kind::Real, |of, row| {
                Cell::Real(of.percentiles[row].value)
            }),
        ],
    },
    TableColumns {
        name: "histograms",
        rows: |of| of.histogram.len(),
        columns: &[
            ("unit", Kind::Text, |of, _| text(&of.unit)),
            ("from", Kind::Real, |of, row| {
                Cell::Real(of.histogram[row].from)
            }),
            ("to", Kind::Real, |of, row| Cell::Real(of.histogram[row].to)),
            ("count", Kind::Integer, |of, row| {
                count(of.histogram[row].count)
            }),
        ],
    },
    TableColumns {
        name: "rounds",
        rows: |of| of.rounds_p50.len().max(of.rounds_p99.len()),
        columns: &[
            ("unit", Kind::Text, |of, _| text(&of.unit)),
            ("round", Kind::Integer, |_, row| whole(row + 1)),
            ("p50", Kind::Real, |of, row| {
                real(of.rounds_p50.get(row).copied())
            }),
            ("p99", Kind::Real, |of, row| {
                real(of.rounds_p99.get(row).copied())
            }),
        ],
    },
];

const OF_DERIVED: &[TableColumns<Derived>] = &[
    TableColumns {
        name: "derived",
        rows: |_| 1,
        columns: &[
            ("name", Kind::Text, |of, _| text(&of.name)),
            ("unit", Kind::Text, |of, _| text(&of.unit)),
            ("value", Kind::Real, |of, _| Cell::Real(of.value)),
        ],
    },
    TableColumns {
        name: "derived_rounds",
        rows: |of| of.rounds.len(),
        columns: &[
            ("name", Kind::Text, |of, _| text(&of.name)),
            ("unit", Kind::Text, |of, _| text(&of.unit)),
            ("round", Kind::Integer, |_, row| whole(row + 1)),
            ("value", Kind::Real, |of, row| Cell::Real(of.rounds[row])),
        ],
    },
];

fn text(text: &str) -> Cell {
    Cell::Text(text.to_owned())
}

fn parameter(results: &Results, name: &str) -> Cell {
    let value = results.parameters.get(name);
    value.map_or(Cell::Missing, |value| Cell::Text(value.to_string()))
}

fn count(count: u64) -> Cell {
    Cell::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

fn whole(index: usize) -> Cell {
    Cell::Integer(i64::try_from(index).unwrap_or(i64::MAX))
}

fn real(number: Option<f64>) -> Cell {
    number.map_or(Cell::Missing, Cell::Real)
}
