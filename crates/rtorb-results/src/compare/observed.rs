//! What both sides have of each series, and the test of it.

use std::collections::BTreeMap;

use super::welch::{Difference, OBSERVATIONS_MIN};
use super::{Change, Compared, Observations, SeriesName, SeriesSummary};
use crate::runs::Run;
use crate::statistics::median;
use crate::{Labels, Results, Series};

/// The series of both sides by their names.
pub(super) struct Matched<'a> {
    pub(super) both: Vec<Pair<'a>>,
    pub(super) only_in_a: Vec<SeriesName>,
    pub(super) only_in_b: Vec<SeriesName>,
}

/// Matches the series of all runs.
pub(super) fn matched<'a>(a: &'a [Run], b: &'a [Run]) -> Matched<'a> {
    let (of_a, mut of_b) = (by_name(a), by_name(b));
    let (mut both, mut only_in_a) = (Vec::new(), Vec::new());
    for (name, a) in of_a {
        match of_b.remove(&name) {
            Some(b) => both.push(Pair { name, a, b }),
            None => only_in_a.push(name),
        }
    }
    Matched {
        both,
        only_in_a,
        only_in_b: of_b.into_keys().collect(),
    }
}

/// One series of both sides: that of each run which has it.
pub(super) struct Pair<'a> {
    name: SeriesName,
    a: Vec<&'a Series>,
    b: Vec<&'a Series>,
}

impl Pair<'_> {
    /// Tests it; the verdict is still open where there is a p-value.
    pub(super) fn compared(self, observations: Observations) -> Compared {
        let (a, b) = (values(&self.a, observations), values(&self.b, observations));
        let is_log = [&a, &b].into_iter().all(|values| is_positive(values));
        let mut compared = Compared {
            unit: self.a[0].unit.clone(),
            a: observed(&self.a, &a, is_log),
            b: observed(&self.b, &b, is_log),
            ratio: None,
            ratio_low: None,
            ratio_high: None,
            p: None,
            p_adjusted: None,
            verdict: Change::CannotBeSaid,
            why: None,
            name: self.name,
        };
        let (low, high) = (compared.a.p50, compared.b.p50);
        compared.ratio = (low > 0.0 && high > 0.0).then(|| high / low);
        match obstacle(&self.a, &self.b).or_else(|| too_few(a.len().min(b.len()), observations)) {
            Some(why) => compared.why = Some(why),
            None => test(&mut compared, (&a, &b), is_log),
        }
        compared
    }
}

/// On logarithms, so that the interval is one of the ratio; as they are where one is 0.
fn test(compared: &mut Compared, (a, b): (&[f64], &[f64]), is_log: bool) {
    if is_log {
        let logarithms = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
        let variance = rounding_variance(compared.a.p50, &compared.unit)
            + rounding_variance(compared.b.p50, &compared.unit);
        if let Some(found) = Difference::between(&logarithms(a), &logarithms(b), variance) {
            compared.ratio_low = Some(found.low.exp());
            compared.ratio_high = Some(found.high.exp());
            compared.p = Some(found.p);
        }
        return;
    }
    compared.p = Difference::between(a, b, 0.0).map(|found| found.p);
}

/// The variance of the logarithm of a value that was rounded: that of the uniform distribution over the width of a step.
fn rounding_variance(value: f64, unit: &str) -> f64 {
    let step = match unit {
        "ns" => ROUNDING.max(1.0 / value),
        _ => ROUNDING,
    };
    step * step / 12.0
}

/// Why the values cannot be compared however many there are.
fn obstacle(a: &[&Series], b: &[&Series]) -> Option<String> {
    let mut all = a.iter().chain(b);
    if all.clone().any(|series| series.wrong > 0) {
        return Some("there were wrong answers".to_owned());
    }
    let unit = &a[0].unit;
    all.find(|series| series.unit != *unit)
        .map(|series| format!("the unit is {unit} and {}", series.unit))
}

fn too_few(count: usize, observations: Observations) -> Option<String> {
    let what = match observations {
        Observations::Runs => "runs",
        Observations::Rounds => "rounds",
    };
    (count < OBSERVATIONS_MIN)
        .then(|| format!("too few {what}: {count} on a side, {OBSERVATIONS_MIN} are needed"))
}

fn values(series: &[&Series], observations: Observations) -> Vec<f64> {
    match observations {
        Observations::Runs => series.iter().map(|one| one.median_of_rounds()).collect(),
        Observations::Rounds => series
            .iter()
            .flat_map(|one| one.rounds_p50.iter().copied())
            .collect(),
    }
}

fn observed(series: &[&Series], values: &[f64], is_log: bool) -> SeriesSummary {
    let p99: Vec<f64> = series.iter().map(|one| one.statistics.p99).collect();
    let medians: Vec<f64> = series.iter().map(|one| one.median_of_rounds()).collect();
    SeriesSummary {
        observations: values.len(),
        p50: match values {
            [] => centre(&medians, is_positive(&medians)),
            values => centre(values, is_log),
        },
        p99: median(&p99).unwrap_or_default(),
        max: series
            .iter()
            .map(|one| one.statistics.max)
            .fold(f64::NEG_INFINITY, f64::max),
    }
}

/// The geometric mean, or the arithmetic one: of both sides what they are tested by, so that the direction is that of the test.
fn centre(values: &[f64], is_log: bool) -> f64 {
    let mean =
        |values: &mut dyn Iterator<Item = f64>, count: usize| values.sum::<f64>() / count as f64;
    if is_log {
        mean(&mut values.iter().map(|value| value.ln()), values.len()).exp()
    } else {
        mean(&mut values.iter().copied(), values.len())
    }
}

fn is_positive(values: &[f64]) -> bool {
    values.iter().all(|value| *value > 0.0)
}

fn by_name(runs: &[Run]) -> BTreeMap<SeriesName, Vec<&Series>> {
    let mut found: BTreeMap<SeriesName, Vec<&Series>> = BTreeMap::new();
    let results = runs.iter().flat_map(|run| &run.results);
    for results in results {
        for series in &results.series {
            found.entry(name(results, series)).or_default().push(series);
        }
    }
    found
}

/// The labels without those that are conditions of the whole run.
fn name(results: &Results, series: &Series) -> SeriesName {
    let mut labels: Labels = series.labels.clone();
    labels.remove("real_time");
    let load = results.parameters.get("load");
    if results.is_loaded()
        && labels.remove("background_load").is_none()
        && labels.get("load") == load
    {
        labels.remove("load");
    }
    SeriesName {
        experiment: results.experiment.clone(),
        labels,
    }
}

/// Percentiles have three significant digits.
const ROUNDING: f64 = 1e-3;
