//! A figure: one number of the stored results, or one that follows from others of its row.

use rtorb_results::{LabelValue, Labels, SAMPLES_BEYOND, pattern};
use serde::Deserialize;

use super::Trouble;
use super::quantity::Quantity;
use super::stored::{Measured, Stored, StoredResults};

/// Where a figure comes from. Without `value` it is read from results.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureSource {
    /// The experiment; that of the row if it is not given. So is the machine, and which statistic or derived number is meant.
    of: Option<String>,
    machine: Option<String>,
    /// `role=high, low_clients=50`: a pattern of the labels of the one series that is meant, beside those of the row. `!preset` means a
    /// series without that label.
    #[serde(default)]
    labels: String,
    /// One of a series; the median if nothing is given.
    statistic: Option<String>,
    /// The name of a derived number.
    derived: Option<String>,
    /// The id of a claim.
    claim: Option<String>,
    /// The name of a parameter.
    parameter: Option<String>,
    /// What is taken of several series or derived numbers: `least`, `most`, `sum`, `number`, `above X` or `below X`.
    among: Option<String>,
    /// An expression of other figures of the row.
    pub(super) value: Option<String>,
    /// The unit that is shown, if it is another one than that of the results: `%` of a ratio, or nothing.
    pub(super) unit: Option<String>,
}

impl FigureSource {
    /// Takes from the row what the figure does not say itself.
    pub(super) fn complete(mut self, row: &Self) -> Self {
        self.of = self.of.or_else(|| row.of.clone());
        self.machine = self.machine.or_else(|| row.machine.clone());
        let is_of_row = [&self.statistic, &self.derived, &self.claim, &self.parameter];
        if is_of_row.iter().all(|own| own.is_none()) {
            self.statistic.clone_from(&row.statistic);
            self.derived.clone_from(&row.derived);
        }
        let parts = [row.labels.as_str(), self.labels.as_str()];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        self.labels = parts.collect::<Vec<_>>().join(", ");
        self
    }

    /// The numbers that a sentence about this figure may have: the values of its labels, and its percentile.
    pub(super) fn levels(&self) -> impl Iterator<Item = &str> {
        let percentile = self
            .statistic
            .as_deref()
            .and_then(|name| name.strip_prefix('p'));
        let pairs = self
            .labels
            .split(',')
            .filter_map(|pair| pair.split_once('='));
        pairs.map(|(_, value)| value.trim()).chain(percentile)
    }

    /// Reads the figure.
    pub(super) fn read(&self, results: &StoredResults) -> Result<Quantity, Trouble> {
        let of = self
            .of
            .as_deref()
            .ok_or_else(|| mistake("a figure names no experiment"))?;
        let machine = self.machine.as_deref().unwrap_or_default();
        let stored = results.find(of, machine).ok_or_else(|| {
            let on = if machine.is_empty() {
                String::new()
            } else {
                format!(" of machine {machine}")
            };
            Trouble::Unmeasured(format!("no stored results of `{of}`{on}"))
        })?;
        let (value, unit) = if let Some(id) = &self.claim {
            claimed(stored, id)?
        } else if let Some(name) = &self.parameter {
            let value = stored.parameters.get(name).and_then(LabelValue::number);
            let value = value.ok_or_else(|| absent(stored, &format!("parameter {name}")))?;
            (value as f64, "")
        } else {
            self.selected(stored)?
        };
        Ok(match (machine, unit) {
            ("one-cpu", "ns") => Quantity {
                value: value / 1e3,
                unit: "k instr".to_owned(),
            },
            _ => Quantity::of(value, unit),
        })
    }

    /// Why the figure selects nothing of such results, or several series where one is meant, whatever the levels of the factors are;
    /// `None` if it selects, or is of others. A glance may lack samples of a part, so what one label alone excludes is no misfit if other
    /// series have that label.
    pub(super) fn misfit(&self, stored: &Stored) -> Option<String> {
        let key = (
            self.machine.as_deref().unwrap_or_default(),
            self.of.as_deref(),
        );
        if self.value.is_some() || key != (stored.machine.as_str(), Some(&stored.experiment)) {
            return None;
        }
        if let Some(id) = &self.claim {
            let is_there = stored.claims.iter().any(|claim| claim.id == *id);
            return (!is_there).then(|| format!("names no claim of it: {id}"));
        }
        if let Some(name) = &self.parameter {
            let is_there = stored.parameters.contains_key(name);
            return (!is_there).then(|| format!("names no parameter of it: {name}"));
        }
        let all: Vec<&Labels> = match &self.derived {
            Some(name) => {
                let derived = stored.derived.iter().filter(|it| it.name == *name);
                derived.map(|it| &it.labels).collect()
            }
            None => stored.series.iter().map(|it| &it.labels).collect(),
        };
        let select = |pattern: &str| -> Vec<Labels> {
            let levels = all.iter().filter_map(|it| pattern::level(pattern, it));
            levels.collect()
        };
        let levels = select(&self.labels);
        let what = self.derived.as_deref().unwrap_or("series");
        let labels = &self.labels;
        if levels.is_empty() && !stored.series.is_empty() {
            let terms: Vec<&str> = labels.split(',').collect();
            let lacks = |term: &&str| select(term).is_empty();
            let nearly = |skipped: usize| {
                let rest = [&terms[..skipped], &terms[skipped + 1..]].concat();
                !select(&rest.join(",")).is_empty()
            };
            let is_nearly = (0..terms.len()).any(nearly) && !terms.iter().any(lacks);
            return (!is_nearly).then(|| format!("selects no {what} with {labels}"));
        }
        let is_twice = |level| levels.iter().filter(|it| *it == level).count() > 1;
        let several = self.among.is_none() && levels.iter().any(is_twice);
        several.then(|| format!("selects several {what} with {labels}"))
    }

    fn selected<'a>(&self, stored: &'a Stored) -> Result<(f64, &'a str), Trouble> {
        let matches = |labels: &Labels| pattern::matches(&self.labels, labels);
        let found: Vec<(f64, &str)> = match &self.derived {
            Some(name) => {
                let derived = stored.derived.iter();
                let derived = derived.filter(|it| it.name == *name && matches(&it.labels));
                derived.map(|it| (it.value, it.unit.as_str())).collect()
            }
            None => {
                let series = stored.series.iter().filter(|it| matches(&it.labels));
                let values = series.map(|it| Ok((self.statistic_of(it)?, self.unit_of(it))));
                values.collect::<Result<_, _>>()?
            }
        };
        let what = self.derived.as_deref().unwrap_or("series");
        let labels = &self.labels;
        let Some(&(first, unit)) = found.first() else {
            return Err(absent(stored, &format!("{what} with {labels}")));
        };
        let values = || found.iter().map(|(value, _)| *value);
        let count =
            |is: &dyn Fn(f64) -> bool| (values().filter(|value| is(*value)).count() as f64, "");
        Ok(
            match self
                .among
                .as_deref()
                .map(|among| among.split_once(' ').unwrap_or((among, "")))
            {
                None if found.len() == 1 => (first, unit),
                None => {
                    let (number, of) = (found.len(), &stored.experiment);
                    return Err(mistake(&format!(
                        "`{of}` has {number} of {what} with {labels}: give more labels"
                    )));
                }
                Some(("least", _)) => (values().fold(first, f64::min), unit),
                Some(("most", _)) => (values().fold(first, f64::max), unit),
                Some(("sum", _)) => (values().sum(), unit),
                Some(("number", _)) => count(&|_| true),
                Some((word, limit)) => {
                    let limit = limit
                        .parse::<f64>()
                        .map_err(|_| mistake(&format!("`{word} {limit}` of several")))?;
                    match word {
                        "above" => count(&|value| value > limit),
                        "below" => count(&|value| value < limit),
                        _ => return Err(mistake(&format!("`{word}` of several"))),
                    }
                }
            },
        )
    }

    fn statistic_of(&self, series: &Measured) -> Result<f64, Trouble> {
        let [min, mean, stddev, p50, p90, p99, p99_9, max] = series.statistics;
        if series.wrong > 0 {
            return Err(Trouble::Unmeasured(format!(
                "{} answers were wrong",
                series.wrong
            )));
        }
        let tail = |value: f64, one_in: u64| match series.count {
            enough if enough >= one_in * SAMPLES_BEYOND => Ok(value),
            count => {
                let text = format!(
                    "{count} samples are too few for one in {one_in}: {} are needed",
                    one_in * SAMPLES_BEYOND
                );
                Err(Trouble::Unmeasured(text))
            }
        };
        match self.statistic.as_deref().unwrap_or("p50") {
            "min" => Ok(min),
            "mean" => Ok(mean),
            "stddev" => Ok(stddev),
            "p50" => Ok(p50),
            "p90" => tail(p90, 10),
            "p99" => tail(p99, 100),
            "p99.9" => tail(p99_9, 1_000),
            "max" => Ok(max),
            "count" => Ok(series.count as f64),
            "calls_per_second" => series
                .calls_per_second
                .ok_or_else(|| Trouble::Unmeasured("no calls a second".to_owned())),
            other => Err(mistake(&format!("there is no statistic {other}"))),
        }
    }

    fn unit_of<'a>(&self, series: &'a Measured) -> &'a str {
        match self.statistic.as_deref() {
            Some("count" | "calls_per_second") => "",
            _ => &series.unit,
        }
    }
}

/// The value of a claim that the run can tell.
fn claimed<'a>(stored: &'a Stored, id: &str) -> Result<(f64, &'a str), Trouble> {
    let claim = stored.claims.iter().find(|claim| claim.id == id);
    let claim = claim.ok_or_else(|| absent(stored, &format!("claim {id}")))?;
    match (claim.verdict.as_str(), claim.value) {
        ("held" | "missed", Some(value)) => Ok((value, &claim.unit)),
        _ => Err(Trouble::Unmeasured(format!(
            "the run cannot tell: {}",
            claim.reason
        ))),
    }
}

fn absent(stored: &Stored, what: &str) -> Trouble {
    Trouble::Unmeasured(format!(
        "the stored results of `{}` have no {what}",
        stored.experiment
    ))
}

fn mistake(what: &str) -> Trouble {
    Trouble::Mistake(what.to_owned())
}
