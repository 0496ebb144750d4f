//! The functions that a bound was spent in, and which of them grew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use rtorb_lab::LabError;
use rtorb_lab::experiments::own_program;
use rtorb_results::explanation::{Explanation, Sample};
use rtorb_results::read_json;
use serde::Serialize;

use super::{Baseline, BoundKey, Measured, labels_in_words};
use crate::campaign::EXPLANATIONS;

/// The instructions of a sample by function.
pub type FunctionTable = BTreeMap<String, u64>;

/// System, experiment, labels of the series; the functions of the sample that is the bound.
pub type Functions = BTreeMap<String, BTreeMap<String, BTreeMap<String, FunctionTable>>>;

/// Why a bound is longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The functions that grew most, the one that grew most first. Without any, the CPU slept longer.
    Functions(Vec<Growth>),
    /// No function can be named, for this reason.
    Unknown(String),
}

/// A function that takes more instructions of a sample than it did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Growth {
    /// Its symbol.
    pub function: String,
    /// Instructions of its own in the baseline's sample.
    pub was: u64,
    /// Instructions of its own in the measured sample.
    pub is: u64,
}

impl Baseline {
    /// The functions of a bound, if they are known.
    fn functions_of(&self, [system, experiment, series]: &BoundKey) -> Option<&FunctionTable> {
        self.functions.get(system)?.get(experiment)?.get(series)
    }
}

impl Measured {
    /// Notes why the functions of a bound are not known.
    pub fn note_unexplained(&mut self, bound: BoundKey, why: String) {
        self.unexplained.insert(bound, why);
    }

    /// The bounds of the user's own programs whose functions are not known.
    #[must_use]
    pub fn without_functions(&self) -> BTreeSet<BoundKey> {
        let mut found = BTreeSet::new();
        for (system, experiments) in &self.baseline.bounds {
            for (experiment, bounds) in experiments.iter().filter(|(name, _)| is_own(name)) {
                for series in bounds.keys() {
                    let bound = [system, experiment, series].map(String::clone);
                    if self.baseline.functions_of(&bound).is_none() {
                        found.insert(bound);
                    }
                }
            }
        }
        found
    }

    /// Takes the functions of the bounds that these samples are.
    pub(super) fn add_functions(&mut self, explanations: &[Explanation]) {
        for explanation in explanations {
            let (system, experiment) = (&explanation.system, &explanation.experiment);
            let series = labels_in_words(&explanation.labels);
            let bounds = &self.baseline.bounds;
            let bound = bounds.get(system).and_then(|of| of.get(experiment));
            let bound = bound.and_then(|of| of.get(&series));
            let is_bound = bound == Some(&explanation.value) && explanation.sample == Sample::Worst;
            if !is_bound {
                continue;
            }
            let costs = explanation.functions.iter();
            let own = costs.filter(|cost| cost.instructions > 0);
            let table = own.map(|cost| (cost.name.clone(), cost.instructions));
            let of_system = self.baseline.functions.entry(system.clone()).or_default();
            let of_experiment = of_system.entry(experiment.clone()).or_default();
            of_experiment.insert(series, table.collect());
        }
    }
}

/// Reads the explanations of a campaign. There may be none.
///
/// # Errors
/// What the file system said, or that one is of another form.
pub(super) fn explanations_of(folder: &Path) -> Result<Vec<Explanation>, LabError> {
    let folder = folder.join(EXPLANATIONS);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(LabError::file(&folder))?,
    };
    let mut explanations = Vec::new();
    for entry in entries {
        let path = entry.map_err(LabError::file(&folder))?.path();
        if path.extension().is_some_and(|end| end == "json") {
            let read = read_json(&path, Explanation::SCHEMA);
            explanations.push(read.map_err(LabError::file(&path))?);
        }
    }
    Ok(explanations)
}

/// Why a bound is longer than in the baseline. `None` where nobody has explained a sample of the laboratory's own experiments.
pub(super) fn cause(baseline: &Baseline, measured: &Measured, bound: &BoundKey) -> Option<Cause> {
    let was = baseline.functions_of(bound);
    let is = measured.baseline.functions_of(bound);
    let why = match (was, is) {
        (Some(was), Some(is)) => return Some(Cause::Functions(grown(was, is))),
        _ if !is_own(&bound[1]) => return None,
        (_, None) => {
            let why = measured.unexplained.get(bound);
            why.cloned().unwrap_or_else(|| not_explained(bound))
        }
        (None, Some(_)) => NOT_IN_BASELINE.to_owned(),
    };
    Some(Cause::Unknown(why))
}

/// The functions that grew most. One that grew by far less than the first is left out: an interrupt comes at another moment.
fn grown(was: &FunctionTable, is: &FunctionTable) -> Vec<Growth> {
    let grown = is.iter().map(|(function, is)| Growth {
        function: function.clone(),
        was: was.get(function).copied().unwrap_or(0),
        is: *is,
    });
    let mut grown: Vec<Growth> = grown.filter(|one| one.is > one.was).collect();
    grown.sort_by_key(|one| std::cmp::Reverse(one.is - one.was));
    let largest = grown.first().map_or(0, |one| one.is - one.was);
    grown.retain(|one| (one.is - one.was) >= largest / SMALL_PART);
    grown.truncate(GROWN_MAX);
    grown
}

fn not_explained([system, experiment, series]: &BoundKey) -> String {
    let labels = series.split_whitespace().filter_map(|label| {
        let (name, value) = label.split_once('=')?;
        Some(format!(" --{name} {value}"))
    });
    let name = experiment.trim_start_matches(own_program::PREFIX);
    format!(
        "the campaign's folder has no explanation of its sample. `rtorb lab kernel explain DIR --system {system} --experiment \
         {experiment}{} --own-program {name}=FILE` makes one",
        labels.collect::<String>()
    )
}

fn is_own(experiment: &str) -> bool {
    experiment.starts_with(own_program::PREFIX)
}

const NOT_IN_BASELINE: &str = "the baseline has no functions of this bound. Write it anew of the program as it was: the next check can name them";
const GROWN_MAX: usize = 3;
/// Less than a tenth of the largest growth is not told.
const SMALL_PART: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn table(costs: &[(&str, u64)]) -> FunctionTable {
        let costs = costs.iter();
        costs
            .map(|(name, cost)| ((*name).to_owned(), *cost))
            .collect()
    }

    fn told(was: &[(&str, u64)], is: &[(&str, u64)]) -> Vec<(String, u64, u64)> {
        let grown = grown(&table(was), &table(is));
        let told = grown.into_iter().map(|one| (one.function, one.was, one.is));
        told.collect()
    }

    #[test]
    fn the_function_that_grew_most_is_told_first() {
        let was = [
            ("step", 900),
            ("log", 100),
            ("schedule", 2_000),
            ("gone", 5_000),
        ];
        let is = [
            ("step", 21_000),
            ("log", 8_100),
            ("schedule", 2_400),
            ("new", 9_000),
        ];
        let expected = [
            ("step", 900, 21_000),
            ("new", 0, 9_000),
            ("log", 100, 8_100),
        ];
        assert_eq!(
            told(&was, &is),
            expected.map(|(name, was, is)| (name.to_owned(), was, is))
        );
    }

    #[test]
    fn functions_that_grew_by_little_beside_the_first_are_not_told() {
        let grown = told(
            &[("step", 0), ("tick", 10)],
            &[("step", 1_000), ("tick", 109)],
        );
        assert_eq!(grown, [("step".to_owned(), 0, 1_000)]);
        let four = [("a", 1), ("b", 1), ("c", 1), ("d", 1)];
        assert_eq!(told(&[], &four).len(), GROWN_MAX);
    }

    #[test]
    fn where_none_grew_none_is_told() {
        assert!(told(&[("step", 7), ("tick", 3)], &[("step", 7), ("tick", 2)]).is_empty());
    }
}
