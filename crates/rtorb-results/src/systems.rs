//! Operating systems side by side: the series of all of them, each with the labels that say whose it is.

use std::collections::BTreeMap;

use crate::campaign::{SYSTEM, System};
use crate::summary::words::{part_of, said_of, values_of, varying};
use crate::{LabelValue, Labels, Results, Series, TimeUnit, is_part};

/// What was found of one operating system: an ordinary results file an experiment, with the series of every load in it.
#[derive(Clone, Debug, PartialEq)]
pub struct OfSystem {
    /// Which one.
    pub system: System,
    /// One for each experiment; every series has the label `load`.
    pub results: Vec<Results>,
}

/// What several systems were found to do in one experiment.
#[derive(Debug)]
pub struct Gathered<'a> {
    /// Its name.
    pub experiment: &'a str,
    /// The systems that have results of it.
    pub parts: Vec<Part<'a>>,
    /// Those of all systems.
    pub series: Vec<Series>,
    /// The label that says what ran beside the experiment.
    pub under: &'static str,
}

/// One system's.
#[derive(Debug)]
pub struct Part<'a> {
    /// As the label `system` has it.
    pub name: String,
    /// Which one.
    pub system: &'a System,
    /// Its results of the experiment.
    pub results: &'a Results,
}

impl<'a> Gathered<'a> {
    /// The series that these systems have of an experiment.
    #[must_use]
    pub fn of(experiment: &'a str, systems: &'a [OfSystem]) -> Self {
        let parts: Vec<Part<'a>> = systems
            .iter()
            .filter_map(|found| {
                let mut of_it = found.results.iter();
                Some(Part {
                    name: name(&found.system),
                    system: &found.system,
                    results: of_it.find(|results| results.experiment == experiment)?,
                })
            })
            .collect();
        let under = under(&parts);
        let series = parts.iter().flat_map(|part| {
            let shown = part.results.series.iter();
            shown
                .filter(|series| is_compared(experiment, series))
                .map(|series| labelled(part, series, under))
        });
        Self {
            experiment,
            series: series.collect(),
            parts,
            under,
        }
    }

    /// The unit of a thousand nanoseconds.
    #[must_use]
    pub fn unit(&self) -> &'static str {
        let first = self.parts.first().map(|part| part.results.time_unit());
        match first {
            Some(TimeUnit::VirtualSeconds) => TimeUnit::VirtualSeconds.of_thousand(),
            _ => TimeUnit::GuestInstructions.of_thousand(),
        }
    }

    /// The most real-time one: PREEMPT_RT before others, and of the others the one that preempts most.
    #[must_use]
    pub fn reference(&self) -> Option<&Part<'a>> {
        let place = |part: &&Part<'_>| {
            let preempts = PREEMPTS
                .iter()
                .position(|known| *known == part.system.preempt);
            (part.results.host.preempt_rt, preempts)
        };
        // Of equals, the first one that was named.
        self.parts.iter().rev().max_by_key(place)
    }

    /// The series that have all these labels, and are of no part of a call unless the labels say so.
    #[must_use]
    pub fn matching(&self, of: &Labels) -> Vec<&Series> {
        let names_part = of.contains_key("part");
        let is_of_part = |series: &Series| {
            let part = series.labels.get("part");
            part.is_some_and(|part| *part != LabelValue::from("call"))
        };
        let has_all = |series: &&Series| is_part(of, &series.labels);
        let found = self.series.iter().filter(has_all);
        found
            .filter(|series| names_part || !is_of_part(series))
            .collect()
    }

    /// What these series have under a label, each once.
    #[must_use]
    pub fn values(&self, of: &Labels, name: &str) -> Vec<LabelValue> {
        let names = [name.to_owned()];
        let found = values_of(&self.matching(of), &names);
        found
            .into_iter()
            .filter_map(|mut labels| labels.remove(name))
            .collect()
    }

    /// The largest number under a label.
    #[must_use]
    pub fn most(&self, of: &Labels, name: &str) -> Option<LabelValue> {
        let values = self.values(of, name);
        values.into_iter().max_by_key(LabelValue::number)
    }

    /// The labels that tell these series of one system apart.
    #[must_use]
    pub fn telling(&self, of: &Labels) -> Vec<String> {
        let mut names = varying(&self.matching(of));
        names.retain(|name| !WHOSE.contains(&name.as_str()) && name != "real_time");
        names
    }

    /// With the label of the load behind, where there are several.
    #[must_use]
    pub fn with_load(&self, names: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        if self.values(&Labels::new(), self.under).len() > 1 {
            names.push(self.under.to_owned());
        }
        names
    }

    /// The same case of another system.
    #[must_use]
    pub fn same_case(&self, series: &Series, system: &str) -> Option<&Series> {
        let case = case_of(&series.labels);
        self.series.iter().find(|other| {
            other.labels.get(SYSTEM) == Some(&system.into()) && case_of(&other.labels) == case
        })
    }

    /// What tells a case from the others of these, in words.
    #[must_use]
    pub fn said(&self, series: &Series, of: &Labels) -> String {
        let names = self.telling(of);
        said_of(&names, &part_of(&series.labels, &names))
    }

    /// True if each of these systems has results of it.
    #[must_use]
    pub fn is_of_all(&self, systems: &[OfSystem]) -> bool {
        self.parts.len() == systems.len() && !systems.is_empty()
    }

    /// What every system was measured with.
    #[must_use]
    pub fn common_parameters(&self) -> BTreeMap<String, LabelValue> {
        let Some((first, others)) = self.parts.split_first() else {
            return BTreeMap::new();
        };
        let mut common = first.results.parameters.clone();
        common.retain(|name, value| {
            let mut others = others.iter();
            others.all(|part| part.results.parameters.get(name) == Some(value))
        });
        common
    }
}

/// As tables and figures name a system: `6.12 voluntary`.
#[must_use]
pub fn name(system: &System) -> String {
    format!("{} {}", system.kernel.name, system.preempt)
}

/// Everything but whose it is.
#[must_use]
pub fn case_of(labels: &Labels) -> Labels {
    let mut case = labels.clone();
    case.retain(|name, _| !WHOSE.contains(&name.as_str()) && name != "real_time");
    case
}

/// Where `load` says how clients call, what runs beside them is `background_load`.
fn under(parts: &[Part<'_>]) -> &'static str {
    let mut series = parts.iter().flat_map(|part| &part.results.series);
    if series.any(|series| series.labels.contains_key(BACKGROUND)) {
        BACKGROUND
    } else {
        "load"
    }
}

/// A CPU that is kept awake, and another tool's loop, answer other questions than which system is used.
fn is_compared(experiment: &str, series: &Series) -> bool {
    let is = |name: &str, value: &str| series.labels.get(name) == Some(&value.into());
    let of_another = is("cpu", "awake") || is("tool", "cyclictest");
    experiment != "os/wakeup" || !of_another
}

fn labelled(part: &Part<'_>, series: &Series, under: &str) -> Series {
    let mut series = series.clone();
    let labels = &mut series.labels;
    // A condition of the load that says nothing beside it.
    labels.remove("cpu");
    if under != "load"
        && !labels.contains_key("role")
        && let Some(load) = labels.remove("load")
    {
        labels.insert(under.to_owned(), load);
    }
    labels
        .entry(under.to_owned())
        .or_insert_with(|| "none".into());
    if labels.contains_key("operation") {
        // Of presets, the one without lanes is not named.
        labels
            .entry("preset".to_owned())
            .or_insert_with(|| "default".into());
    }
    labels.insert(SYSTEM.to_owned(), part.name.clone().into());
    labels.insert("kernel".to_owned(), part.system.kernel.name.clone().into());
    labels.insert("preempt".to_owned(), part.system.preempt.clone().into());
    series
}

const BACKGROUND: &str = "background_load";
/// The labels that say whose a series is.
const WHOSE: [&str; 3] = [SYSTEM, "kernel", "preempt"];
/// From what preempts least to what preempts most.
const PREEMPTS: [&str; 4] = ["none", "voluntary", "lazy", "full"];
