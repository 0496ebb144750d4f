//! Stored results: what rows of the page read of results files, without histograms and curves, one line of JSON an experiment.

use std::collections::{BTreeMap, BTreeSet};

use rtorb_results::{Claim, Derived, LabelValue, Labels, Results, Series};
use serde::{Deserialize, Serialize};

/// The results that the page is made from. An experiment is there once a machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StoredResults(Vec<Stored>);

/// What is kept of one results file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stored {
    pub(super) experiment: String,
    /// The emulated machine; empty for a host.
    pub(super) machine: String,
    /// The processor and the kernel, in words.
    pub(super) host: String,
    /// The day of the run; empty for an emulated machine, which repeats on any day.
    pub(super) day: String,
    pub(super) parameters: BTreeMap<String, LabelValue>,
    pub(super) series: Vec<Measured>,
    pub(super) derived: Vec<Derived>,
    pub(super) claims: Vec<Judged>,
}

/// What is kept of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measured {
    pub(super) labels: Labels,
    pub(super) unit: String,
    pub(super) count: u64,
    /// As `Statistics::NAMES` has them.
    pub(super) statistics: [f64; 8],
    /// The median of each round.
    pub(super) rounds: Vec<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) calls_per_second: Option<f64>,
    #[serde(default, skip_serializing_if = "is_none")]
    pub(super) wrong: u64,
}

/// What is kept of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Judged {
    pub(super) id: String,
    pub(super) value: Option<f64>,
    pub(super) limit: f64,
    pub(super) unit: String,
    /// As in results files: `held`.
    pub(super) verdict: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
}

impl StoredResults {
    /// Reads what [`Self::text`] made.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate().map(|(number, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))
        });
        lines.collect::<Result<_, _>>().map(Self)
    }

    /// The file's text.
    pub(super) fn text(&self) -> Result<String, serde_json::Error> {
        let lines = self.0.iter().map(serde_json::to_string);
        lines.map(|line| Ok(line? + "\n")).collect()
    }

    /// Takes results in, each in place of that of the same experiment on the same machine.
    pub(super) fn take_in(&mut self, results: &[Results]) {
        for stored in results.iter().map(Stored::of) {
            self.0.retain(|old| old.key() != stored.key());
            self.0.push(stored);
        }
        self.0.sort_by(|a, b| a.key().cmp(&b.key()));
    }

    /// The results of an experiment; `None` if it was not measured there.
    pub(super) fn find(&self, experiment: &str, machine: &str) -> Option<&Stored> {
        self.0
            .iter()
            .find(|stored| stored.key() == (machine, experiment))
    }

    /// What was measured where, a list of Markdown.
    pub(super) fn sources(&self) -> String {
        let place = |stored: &Stored| match stored.machine.as_str() {
            "" => format!("{}, {}", stored.host, stored.day),
            machine => format!("emulated machine `{machine}`, {}", stored.host),
        };
        let places: BTreeSet<String> = self.0.iter().map(place).collect();
        let line = |at: &String| {
            let those = self.0.iter().filter(|stored| place(stored) == *at);
            let efforts: BTreeSet<String> = those.clone().filter_map(Stored::effort).collect();
            let efforts: Vec<String> = efforts.into_iter().collect();
            let count = those.count();
            let plural = if count == 1 { "" } else { "s" };
            format!(
                "* {count} experiment{plural}, {}: {at}\n",
                efforts.join(" and ")
            )
        };
        places.iter().map(line).collect()
    }
}

impl Stored {
    pub(super) fn of(results: &Results) -> Self {
        let machine = machine(results);
        let is_host = machine.is_empty();
        Self {
            experiment: results.experiment.clone(),
            host: host(results),
            day: results
                .started
                .chars()
                .take(10 * usize::from(is_host))
                .collect(),
            machine: machine.to_owned(),
            parameters: results.parameters.clone(),
            series: results.series.iter().map(Measured::of).collect(),
            derived: results.derived.iter().map(shortened).collect(),
            claims: results.claims.iter().map(Judged::of).collect(),
        }
    }

    pub(super) fn key(&self) -> (&str, &str) {
        (&self.machine, &self.experiment)
    }

    fn effort(&self) -> Option<String> {
        Some(self.parameters.get("effort")?.to_string())
    }
}

impl Measured {
    fn of(series: &Series) -> Self {
        Self {
            labels: series.labels.clone(),
            unit: series.unit.clone(),
            count: series.count,
            statistics: series.statistics.in_order().map(short),
            rounds: series.rounds_p50.iter().copied().map(short).collect(),
            calls_per_second: series.calls_per_second.map(short),
            wrong: series.wrong,
        }
    }
}

impl Judged {
    fn of(claim: &Claim) -> Self {
        let verdict = serde_json::to_value(claim.verdict).ok();
        let verdict = verdict.as_ref().and_then(serde_json::Value::as_str);
        Self {
            id: claim.id.clone(),
            value: claim.value.map(short),
            limit: short(claim.limit),
            unit: claim.unit.clone(),
            verdict: verdict.unwrap_or_default().to_owned(),
            reason: claim.reason.clone(),
        }
    }
}

/// The emulated machine, as `--machine` names it; empty for a host.
fn machine(results: &Results) -> &'static str {
    match &results.emulation {
        None => "",
        Some(emulation) if emulation.shift > 0 => "p1",
        Some(emulation) if emulation.machine.contains("highres=off") => "tick-clock",
        Some(_) => "one-cpu",
    }
}

fn host(results: &Results) -> String {
    if let Some(emulation) = &results.emulation {
        let systems = emulation.systems.iter().map(|system| system.name());
        return format!(
            "{} seeds, {}",
            emulation.seeds,
            systems.collect::<Vec<_>>().join(", ")
        );
    }
    let host = &results.host;
    let version = host.kernel_release.split('-').next().unwrap_or_default();
    let with = if host.preempt_rt { "with" } else { "without" };
    let model = host.cpu_model.as_deref().unwrap_or("unknown");
    let (cpus, virtualisation) = (host.cpus_online, &host.virtualisation);
    format!(
        "{cpus} CPUs of {model} (virtualisation: {virtualisation}), Linux {version} {with} PREEMPT_RT"
    )
}

fn shortened(derived: &Derived) -> Derived {
    Derived {
        value: short(derived.value),
        rounds: derived.rounds.iter().copied().map(short).collect(),
        ..derived.clone()
    }
}

/// The value with five significant digits: more than the page shows and a run repeats.
fn short(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

fn is_none(count: &u64) -> bool {
    *count == 0
}
