//! What differs between two measurements besides what was measured: host, parameters, load, effort, scheduling.

use std::collections::{BTreeMap, BTreeSet};

use rtorb_host::Host;
use serde::Serialize;
use serde_json::Value;

use crate::runs::Run;
use crate::{EmulatedSystem, Results, TimeUnit};

/// Something that is not the same on both sides, or not within one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// What it is: `kernel_release`, `parameter rounds`, `real time`.
    pub what: String,
    /// The experiments that it concerns; empty when all of them.
    pub experiments: Vec<String>,
    /// What A has; several values with commas between when its runs differ.
    pub a: String,
    /// What B has.
    pub b: String,
    /// How grave it is.
    pub gravity: Gravity,
    /// What it means for the comparison.
    pub why: String,
}

/// How grave a condition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Gravity {
    /// The numbers cannot be compared.
    Spoils,
    /// A difference of the numbers may come from it; often it is what one wants to see.
    Matters,
}

/// Everything that differs, gravest first.
pub(super) fn between(a: &[Run], b: &[Run]) -> Vec<Condition> {
    let (of_a, of_b) = (facts(a), facts(b));
    let mut grouped: BTreeMap<(Fact, String, String), Vec<String>> = BTreeMap::new();
    let (experiments_a, experiments_b) = (experiments(a), experiments(b));
    // What only one side measured is listed as series that it alone has.
    let common: BTreeSet<&str> = experiments_a
        .intersection(&experiments_b)
        .copied()
        .collect();
    let keys: BTreeSet<_> = of_a.keys().chain(of_b.keys()).collect();
    for key in keys {
        let (fact, experiment) = key;
        let (in_a, in_b) = (of_a.get(key), of_b.get(key));
        let is_told = match (in_a, in_b) {
            (Some(in_a), Some(in_b)) => {
                in_a != in_b || in_a.len() > 1 || fact.is_told_when_equal(in_a)
            }
            _ => common.contains(experiment.as_str()) && !fact.is_told_by_another(),
        };
        if is_told {
            let told = (fact.clone(), shown(in_a), shown(in_b));
            grouped.entry(told).or_default().push(experiment.clone());
        }
    }
    let mut conditions: Vec<Condition> = grouped
        .into_iter()
        .map(|((fact, a, b), experiments)| Condition {
            gravity: fact.gravity(),
            why: fact.why().to_owned(),
            what: fact.name(),
            experiments: if experiments.len() == common.len() {
                Vec::new()
            } else {
                experiments
            },
            a,
            b,
        })
        .collect();
    conditions.extend(same_runs(a, b));
    conditions.sort_by_key(|condition| condition.gravity);
    conditions
}

/// What is known of how a run was made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    Effort,
    RealTime,
    Complete,
    Load,
    Parameter(String),
    Host(String),
    /// Where the servers ran.
    Servers,
    /// Of that host, when it was another one.
    ServerHost(String),
    /// Whether time is that of day or a count of instructions.
    Time,
    /// What results of an emulated machine depend on.
    Emulation(String),
}

impl Fact {
    fn name(&self) -> String {
        match self {
            Self::Effort => "effort".to_owned(),
            Self::RealTime => "real time".to_owned(),
            Self::Complete => "complete".to_owned(),
            Self::Load => "load".to_owned(),
            Self::Parameter(name) => format!("parameter {name}"),
            Self::Host(field) => format!("host {field}"),
            Self::Servers => "servers".to_owned(),
            Self::ServerHost(field) => format!("host of the servers {field}"),
            Self::Time => "time".to_owned(),
            Self::Emulation(field) => format!("emulated {field}"),
        }
    }

    fn gravity(&self) -> Gravity {
        match self {
            Self::Effort | Self::Time => Gravity::Spoils,
            _ => Gravity::Matters,
        }
    }

    fn why(&self) -> &'static str {
        match self {
            Self::Effort => {
                "Measure both sides with the same effort; a glance has too few samples to be compared."
            }
            Self::RealTime => "Without SCHED_FIFO on one CPU the scheduler is measured too.",
            Self::Complete => {
                "A run was interrupted: what it has was measured, the rest is missing."
            }
            Self::Load => "What is measured beside other work is slower.",
            Self::Time => {
                "Instructions of an emulated machine cannot be set beside times of a real one."
            }
            Self::Emulation(field) if field.starts_with("system") => {
                "The kernels differ: what is not due to the seeds is due to them."
            }
            Self::Emulation(_) => {
                "Another machine or program was emulated: that is a different experiment, and may be why numbers differ."
            }
            Self::Parameter(_) => "The sides were not measured in the same way.",
            Self::Servers => "A call to another host takes the network's time too.",
            Self::Host(field) | Self::ServerHost(field)
                if field.starts_with("kernel") || field.starts_with("preempt") =>
            {
                "The kernels differ: if that is not what you compare, measure again on one."
            }
            Self::Host(_) | Self::ServerHost(_) => {
                "The hosts differ: if that is not what you compare, measure again on one."
            }
        }
    }

    /// What only one side has because its servers ran on another host is told in one line, by [`Self::Servers`].
    fn is_told_by_another(&self) -> bool {
        matches!(self, Self::ServerHost(_))
    }

    /// Some facts matter though both sides have them.
    fn is_told_when_equal(&self, values: &BTreeSet<String>) -> bool {
        let awkward = match self {
            Self::Effort => "glance",
            Self::RealTime | Self::Complete => "false",
            _ => return false,
        };
        values.contains(awkward)
    }
}

type Facts = BTreeMap<(Fact, String), BTreeSet<String>>;

fn facts(runs: &[Run]) -> Facts {
    let mut found = Facts::new();
    for results in runs.iter().flat_map(|run| &run.results) {
        for (fact, value) in facts_of(results) {
            found
                .entry((fact, results.experiment.clone()))
                .or_default()
                .insert(value);
        }
    }
    found
}

fn facts_of(results: &Results) -> Vec<(Fact, String)> {
    let mut found = vec![(Fact::Complete, results.complete.to_string())];
    if !results.scheduling.is_empty() {
        found.push((Fact::RealTime, results.is_real_time().to_string()));
    }
    for (name, value) in &results.parameters {
        let fact = match name.as_str() {
            "effort" => Fact::Effort,
            "load" => Fact::Load,
            _ => Fact::Parameter(name.clone()),
        };
        found.push((fact, value.to_string()));
    }
    let fields = |host: &Host| fields(serde_json::to_value(host)).into_iter();
    found.extend(fields(&results.host).map(|(field, value)| (Fact::Host(field), value)));
    found.push((
        Fact::Time,
        match results.time_unit() {
            TimeUnit::Seconds => "that of day",
            TimeUnit::GuestInstructions => "guest instructions",
            TimeUnit::VirtualSeconds => "virtual",
        }
        .to_owned(),
    ));
    found.extend(facts_of_emulation(results));
    found.push((
        Fact::Servers,
        match &results.server_host {
            Some(_) => "on another host",
            None => "on the same host",
        }
        .to_owned(),
    ));
    let servers = results.server_host.iter().chain(&results.further_hosts);
    let of_servers = servers.enumerate().flat_map(|(place, host)| {
        fields(host).map(move |(field, value)| match place {
            0 => (Fact::ServerHost(field), value),
            _ => (Fact::ServerHost(format!("{} {field}", place + 1)), value),
        })
    });
    found.extend(of_servers);
    found
}

/// What the emulated machine was; its systems are named by their kernels, so that one that only a side has is told.
fn facts_of_emulation(results: &Results) -> Vec<(Fact, String)> {
    let Some(emulation) = &results.emulation else {
        return Vec::new();
    };
    let told = |system: &EmulatedSystem| {
        format!(
            "{} ({}, sha256 {})",
            system.name(),
            system.release,
            system.image_sha256
        )
    };
    let systems: Vec<String> = emulation.systems.iter().map(told).collect();
    let described = serde_json::to_value(emulation).map(|mut described| {
        described["systems"] = systems.join("; ").into();
        described
    });
    let fields = fields(described).into_iter();
    fields
        .map(|(field, value)| (Fact::Emulation(field.replace('_', " ")), value))
        .collect()
}

/// All fields of a description with their values. It is read as JSON, so that none is forgotten here.
fn fields(description: serde_json::Result<Value>) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    if let Ok(description) = description {
        leaves("", &description, &mut fields);
    }
    fields
}

/// Every field of the host that stays as it is from run to run, those of its parts by a path such as `interrupts.devices`.
fn leaves(path: &str, value: &Value, into: &mut Vec<(String, String)>) {
    if CHANGES_ALWAYS.contains(&path) {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let below = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                leaves(&below, field, into);
            }
        }
        Value::String(text) => into.push((path.to_owned(), text.clone())),
        other => into.push((path.to_owned(), other.to_string())),
    }
}

fn shown(values: Option<&BTreeSet<String>>) -> String {
    match values {
        None => "nothing".to_owned(),
        Some(values) => values.iter().cloned().collect::<Vec<_>>().join(", "),
    }
}

fn experiments(runs: &[Run]) -> BTreeSet<&str> {
    let results = runs.iter().flat_map(|run| &run.results);
    results.map(|results| results.experiment.as_str()).collect()
}

/// The same run on both sides differs from itself in nothing.
fn same_runs(a: &[Run], b: &[Run]) -> Option<Condition> {
    let ids = |runs: &[Run]| -> BTreeSet<String> {
        let results = runs.iter().flat_map(|run| &run.results);
        results.map(measured_once).collect()
    };
    let (of_a, of_b) = (ids(a), ids(b));
    let same: Vec<&String> = of_a
        .intersection(&of_b)
        .filter(|run| !run.is_empty())
        .collect();
    let first = (*same.first()?).clone();
    Some(Condition {
        what: "the same run".to_owned(),
        experiments: Vec::new(),
        a: first.clone(),
        b: first,
        gravity: Gravity::Spoils,
        why: "Both sides hold it: give two measurements that were made apart.".to_owned(),
    })
}

/// What no two measurements have in common: the run, and which of its systems where several were booted in it.
fn measured_once(results: &Results) -> String {
    let systems = results.emulation.iter().flat_map(|found| &found.systems);
    let names: Vec<String> = systems.map(EmulatedSystem::name).collect();
    let words = [results.run.clone(), names.join(", ")];
    words.join(" ").trim().to_owned()
}

/// What is of the minutes before the run, or counts since the host was started: it says nothing of what the host is.
const CHANGES_ALWAYS: [&str; 5] = [
    "load_average",
    "interrupts.handled",
    "interrupts.busiest",
    "stolen",
    "memory_moves.swap_used_bytes",
];
