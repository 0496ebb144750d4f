//! The table that a reader of a comparison needs first: what was measured as rows, the systems as columns, and beside them how many
//! times that of the most real-time system it is.

use rtorb_results::campaign::{PREFIX, RATIO, RATIO_OF_MEDIANS, SYSTEM};
use rtorb_results::summary::TitledTable;
use rtorb_results::summary::words::shown;
use rtorb_results::table::Table;
use rtorb_results::{Labels, Results, Series, distinct, is_part};

/// The worst wake-up by load of `kernel/os/wakeup`, the median cost by service of `kernel/os/services`; other results have none.
#[must_use]
pub fn of(results: &Results) -> Option<TitledTable> {
    let experiment = results.experiment.strip_prefix(PREFIX)?;
    let matrix = match experiment {
        "os/wakeup" => Matrix::worst(results),
        "os/services" => Matrix::costs(results),
        _ => return None,
    };
    let table = matrix.table();
    (!table.rows.is_empty()).then(|| TitledTable {
        id: "matrix".to_owned(),
        title: matrix.title.clone(),
        caption: String::new(),
        table,
    })
}

struct Matrix<'a> {
    results: &'a Results,
    title: String,
    /// The label whose values name the rows. It is the head of their column.
    rows: &'static str,
    /// Only series, and ratios, that have all of these labels.
    of: Labels,
    value: fn(&Series) -> f64,
    /// The derived number that says how many times it is.
    ratio: &'static str,
}

impl<'a> Matrix<'a> {
    fn worst(results: &'a Results) -> Self {
        Self {
            results,
            title: "Worst wake-up by load".to_owned(),
            rows: "load",
            of: Labels::new(),
            value: |series| series.statistics.max,
            ratio: RATIO,
        }
    }

    /// Under the first load, which is none where it was measured: what a service costs hardly depends on it.
    fn costs(results: &'a Results) -> Self {
        let load = results.series.first().map(|series| &series.labels);
        let load = load.and_then(|labels| labels.get("load")).cloned();
        let under = match load.as_ref().map(ToString::to_string).as_deref() {
            None | Some("none") => "no load".to_owned(),
            Some(load) => format!("load {load}"),
        };
        Self {
            results,
            title: format!("Median cost by service, {under}"),
            rows: "service",
            of: load
                .map(|load| ("load".to_owned(), load))
                .into_iter()
                .collect(),
            value: Series::median_of_rounds,
            ratio: RATIO_OF_MEDIANS,
        }
    }

    fn table(&self) -> Table {
        let names = |label: &str| -> Vec<String> {
            let found = self.series().filter_map(|series| series.labels.get(label));
            distinct(found.map(ToString::to_string))
        };
        let (systems, rows) = (names(SYSTEM), names(self.rows));
        let has_one_ratio = systems.len() == 2;
        let mut head = vec![format!("{}, {}", self.rows, self.unit())];
        head.extend(systems.iter().cloned());
        head.extend(has_one_ratio.then(|| "times".to_owned()));
        let row = |name: &String| {
            let mut cells = vec![name.replace('_', " ")];
            for system in &systems {
                let value = self.cell(name, system).unwrap_or_default();
                cells.push(match self.ratio(name, system) {
                    Some(ratio) if !has_one_ratio => format!("{value} ({ratio}x)"),
                    _ => value,
                });
            }
            if has_one_ratio {
                let ratio = systems.iter().find_map(|system| self.ratio(name, system));
                cells.push(ratio.unwrap_or_default());
            }
            cells
        };
        Table {
            rows: rows.iter().map(row).collect(),
            head,
        }
    }

    fn unit(&self) -> &'static str {
        self.results.time_unit().of_thousand()
    }

    fn series(&self) -> impl Iterator<Item = &'a Series> {
        let timed = self.results.series.iter();
        timed.filter(|series| series.unit == "ns" && is_part(&self.of, &series.labels))
    }

    fn cell(&self, row: &str, system: &str) -> Option<String> {
        let found = self.series().find(|series| {
            is(&series.labels, self.rows, row) && is(&series.labels, SYSTEM, system)
        })?;
        Some(shown((self.value)(found), &found.unit))
    }

    fn ratio(&self, row: &str, system: &str) -> Option<String> {
        let found = self.results.derived.iter().find(|derived| {
            derived.name == self.ratio
                && is_part(&self.of, &derived.labels)
                && is(&derived.labels, self.rows, row)
                && is(&derived.labels, SYSTEM, system)
        })?;
        Some(match found.value {
            large if large >= 100.0 => format!("{large:.0}"),
            medium if medium >= 10.0 => format!("{medium:.1}"),
            small => format!("{small:.2}"),
        })
    }
}

fn is(labels: &Labels, name: &str, value: &str) -> bool {
    labels.get(name) == Some(&value.into())
}
