//! How an experiment on several operating systems is shown: how far these are apart, case by case, in numbers and in words.

use rtorb_results::campaign::{RATIO, RATIO_OF_MEDIANS, SYSTEM};
use rtorb_results::summary::words::shown;
use rtorb_results::{
    CellValue, Derived, Highlight, Labels, Plot, Results, Series, TableView, labels,
};

use rtorb_results::systems::{Gathered, case_of};

/// What systems are compared by.
pub(crate) struct Compared<'a> {
    /// What it is, as a sentence begins: `Worst wake-up`.
    pub(crate) what: &'static str,
    /// Only series that have all of these labels.
    pub(crate) of: &'a Labels,
    pub(crate) by: By,
}

/// Which number of a series.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The worst over all seeds.
    Worst,
    /// The median over seeds.
    Median,
}

impl By {
    fn of(self, series: &Series) -> f64 {
        match self {
            Self::Worst => series.statistics.max,
            Self::Median => series.median_of_rounds(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Worst => RATIO,
            Self::Median => RATIO_OF_MEDIANS,
        }
    }
}

/// One case of a system beside the same of the most real-time one.
struct Difference<'a> {
    series: &'a Series,
    reference: &'a Series,
    ratio: f64,
}

impl<'a> Difference<'a> {
    /// How many times the shorter one the longer one is.
    fn factor(&self) -> f64 {
        match self.ratio {
            ratio if ratio > 0.0 && ratio < 1.0 => ratio.recip(),
            ratio => ratio,
        }
    }

    fn longer(&self) -> &'a Series {
        if self.ratio < 1.0 {
            self.reference
        } else {
            self.series
        }
    }

    fn shorter(&self) -> &'a Series {
        if self.ratio < 1.0 {
            self.series
        } else {
            self.reference
        }
    }
}

impl Compared<'_> {
    /// The comparison as results, with what shows it.
    pub(crate) fn results(
        &self,
        gathered: &Gathered<'_>,
        tables: Vec<TableView>,
        plots: Vec<Plot>,
    ) -> Results {
        Results {
            highlights: self.highlight(gathered).into_iter().collect(),
            columns: vec![SYSTEM.to_owned()],
            tables,
            plots,
            derived: self.derived(gathered),
            conclusions: self.conclusions(gathered),
            ..Results::default()
        }
    }

    /// The worst over seeds of each case, and how many times that of the most real-time system it is.
    pub(crate) fn derived(&self, gathered: &Gathered<'_>) -> Vec<Derived> {
        let worst = gathered.matching(self.of).into_iter().map(|series| {
            derived(
                "worst_over_seeds",
                series,
                (series.statistics.max, &series.unit),
                series.rounds_max.clone(),
            )
        });
        let ratios = self.cases(gathered).into_iter().map(|found| {
            let (ours, theirs) = match self.by {
                By::Worst => (&found.series.rounds_max, &found.reference.rounds_max),
                By::Median => (&found.series.rounds_p50, &found.reference.rounds_p50),
            };
            let is_complete = [found.series, found.reference]
                .into_iter()
                .all(|series| has_all_seeds(gathered, series));
            let rounds = if is_complete {
                quotients(ours, theirs)
            } else {
                Vec::new()
            };
            derived(self.by.name(), found.series, (found.ratio, "ratio"), rounds)
        });
        worst.chain(ratios).collect()
    }

    /// The largest differences and the smallest one, a sentence each.
    pub(crate) fn conclusions(&self, gathered: &Gathered<'_>) -> Vec<String> {
        let all = self.differences(gathered);
        let Some((least, larger)) = all.split_last() else {
            return Vec::new();
        };
        let told = larger.iter().take(LARGEST);
        let told = told.filter(|found| found.factor() >= TOLD_MIN);
        let mut said: Vec<String> = told.map(|found| self.said(gathered, found)).collect();
        said.push(if said.is_empty() {
            self.said(gathered, least)
        } else {
            format!("The least difference: {}", self.said(gathered, least))
        });
        said
    }

    /// The largest difference.
    pub(crate) fn highlight(&self, gathered: &Gathered<'_>) -> Option<Highlight> {
        let all = self.differences(gathered);
        let found = all.first()?;
        let longer = found.longer();
        let case = gathered.said(longer, self.of);
        let what = [self.what, &case, &system(longer)];
        let what: Vec<&str> = what.into_iter().filter(|part| !part.is_empty()).collect();
        Some(Highlight {
            what: what.join(", "),
            value: self.by.of(longer) / 1e3,
            unit: gathered.unit().to_owned(),
            beside: format!(
                "{} on {}: {}",
                self.number(gathered, found.shorter()),
                system(found.shorter()),
                times(found.factor())
            ),
        })
    }

    fn said(&self, gathered: &Gathered<'_>, found: &Difference<'_>) -> String {
        let case = gathered.said(found.series, self.of);
        let case = if case.is_empty() {
            String::new()
        } else {
            format!(", {case}")
        };
        format!(
            "{}{case}: {} on {}, {} on {}: {}.",
            self.what,
            self.number(gathered, found.longer()),
            system(found.longer()),
            self.number(gathered, found.shorter()),
            system(found.shorter()),
            times(found.factor())
        )
    }

    fn number(&self, gathered: &Gathered<'_>, series: &Series) -> String {
        let value = shown(self.by.of(series), &series.unit);
        format!("{value} {}", gathered.unit())
    }

    /// The largest first, whichever of the two systems it is longer on.
    fn differences<'a>(&self, gathered: &'a Gathered<'_>) -> Vec<Difference<'a>> {
        let mut found = self.cases(gathered);
        found.sort_by(|left, right| right.factor().total_cmp(&left.factor()));
        found
    }

    /// Every case that the most real-time system has too, in the order of the series.
    fn cases<'a>(&self, gathered: &'a Gathered<'_>) -> Vec<Difference<'a>> {
        let Some(reference) = gathered.reference() else {
            return Vec::new();
        };
        let others = gathered.matching(self.of).into_iter();
        others
            .filter(|series| series.labels.get(SYSTEM) != Some(&reference.name.as_str().into()))
            .filter_map(|series| {
                let reference = gathered.same_case(series, &reference.name)?;
                let (ours, theirs) = (self.by.of(series), self.by.of(reference));
                (theirs > 0.0 && series.wrong + reference.wrong == 0).then(|| Difference {
                    series,
                    reference,
                    ratio: ours / theirs,
                })
            })
            .collect()
    }
}

/// True if no round of the system was lost. Results have the rounds that were measured, one behind the other: if one is missing, the
/// seeds of those behind it are not known.
fn has_all_seeds(gathered: &Gathered<'_>, series: &Series) -> bool {
    let whose = system(series);
    let mut parts = gathered.parts.iter();
    let part = parts.find(|part| part.name == whose);
    part.is_some_and(|part| part.results.lost.is_empty())
}

/// The quotients of rounds that have the same seed; none if one side has other rounds than the other.
fn quotients(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    if ours.len() != theirs.len() {
        return Vec::new();
    }
    let pairs = ours.iter().zip(theirs).filter(|(_, theirs)| **theirs > 0.0);
    pairs.map(|(ours, theirs)| ours / theirs).collect()
}

/// An experiment that has no table of its own.
pub fn any(gathered: &Gathered<'_>) -> Results {
    essential(gathered, "Median", &labels([]))
}

/// Rows are systems, columns all other labels that tell the series apart.
pub(crate) fn essential(gathered: &Gathered<'_>, what: &'static str, of: &Labels) -> Results {
    let rows = gathered.with_load(&[SYSTEM]);
    let mut columns = gathered.telling(of);
    columns.retain(|name| !rows.contains(name));
    let table = |id: &str, title: &str, value: CellValue| {
        TableView::new(id, title)
            .of(of.clone())
            .rows(rows.clone())
            .columns(columns.clone())
            .values([value])
    };
    let ratio = table(
        "ratio",
        "How many times that of the most real-time system",
        CellValue::Median,
    )
    .caption("The median divided by that of the most real-time system.")
    .derived(RATIO_OF_MEDIANS);
    let tables = vec![
        table("median", &format!("{what}: median"), CellValue::Median),
        table(
            "worst",
            &format!("{what}: worst over all seeds"),
            CellValue::Worst,
        ),
        ratio,
    ];
    let compared = Compared {
        what,
        of,
        by: By::Median,
    };
    compared.results(gathered, tables, Vec::new())
}

fn derived(name: &str, series: &Series, (value, unit): (f64, &str), rounds: Vec<f64>) -> Derived {
    let mut labels = case_of(&series.labels);
    for whose in [SYSTEM, "kernel", "preempt"] {
        if let Some(value) = series.labels.get(whose) {
            labels.insert(whose.to_owned(), value.clone());
        }
    }
    Derived {
        name: name.to_owned(),
        labels,
        unit: unit.to_owned(),
        value,
        rounds,
    }
}

fn system(series: &Series) -> String {
    let name = series.labels.get(SYSTEM);
    name.map(ToString::to_string).unwrap_or_default()
}

fn times(ratio: f64) -> String {
    match ratio {
        large if large >= 100.0 => format!("{large:.0} times"),
        medium if medium >= 10.0 => format!("{medium:.1} times"),
        small => format!("{small:.2} times"),
    }
}

/// Less of a difference is not told by itself.
const TOLD_MIN: f64 = 1.05;
/// So many differences are told.
const LARGEST: usize = 3;
/// A worst case over fewer seeds is none.
pub const SEEDS_MIN: u16 = 4;

#[cfg(test)]
mod tests {
    use rtorb_results::systems::OfSystem;
    use rtorb_results::{LostRound, synthetic};

    use super::*;

    fn of_system(preempt: &str, rounds_ns: &[u64], lost: Option<usize>) -> OfSystem {
        let of = labels([("service", "futex".into())]);
        let mut series = synthetic::series(of, rounds_ns.to_vec());
        series.rounds_p50 = rounds_ns.iter().map(|ns| *ns as f64).collect();
        let mut results = synthetic::results("os/services", vec![series]);
        results.lost.extend(lost.map(|round| LostRound {
            round,
            what: "service futex".to_owned(),
            why: "it was silent".to_owned(),
        }));
        synthetic::of_system(preempt, results)
    }

    fn paired(ours: OfSystem) -> Vec<f64> {
        let systems = [ours, of_system("full", &[10, 20, 40], None)];
        let gathered = Gathered::of("os/services", &systems);
        let outcome = any(&gathered);
        let mut ratios = outcome.derived.into_iter();
        let ratio = ratios.find(|one| one.name == RATIO_OF_MEDIANS);
        ratio.expect("two systems").rounds
    }

    /// Each round of ours takes twice as long as that of the same seed. Without the first, the next two would stand beside other seeds.
    #[test]
    fn rounds_are_paired_by_their_seeds() {
        assert_eq!(paired(of_system("none", &[20, 40, 80], None)), [2.0; 3]);
        assert!(paired(of_system("none", &[40, 80], Some(0))).is_empty());
        assert!(paired(of_system("none", &[40, 80, 99], Some(0))).is_empty());
    }
}
