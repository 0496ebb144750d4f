//! `rtorb scheduling compute`: computes priorities, bounds and verdicts from a file.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use rtorb_results::table::Table;
use rtorb_services::scheduling::analysis::{
    Operation, OperationSchedule, Response, Severity, Verdict,
};
use rtorb_services::scheduling::{Computation, Description, Schedule, text_of_ns};
use serde_json::{Value, json};

use super::{criticality, if_preempted, strategies};
use crate::colour::Tone;
use crate::exit_status::FAILED;
use crate::named_file;
use crate::orb_options::usage;
use crate::output::{line, line_in, print_json, print_table};

/// Compute priorities and worst-case response times of the operations in a file, and check their deadlines.
///
/// Exit status 0: all deadlines hold. 1: a deadline is missed (the first one is named), or is not proven to hold, or no
/// schedule exists. 2: the file is wrong.
#[derive(Debug, Args)]
pub(super) struct Compute {
    /// File of the operations (docs/how-to/scheduling.md).
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// File to write the priorities to, for ORBs and channels.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Scheduling strategy. Overrides the file's.
    #[arg(long, value_name = "NAME", value_parser = strategies())]
    strategy: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

impl Compute {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let description = super::description(&self.file, self.strategy.as_ref())?;
        let computed = Schedule::compute(&description).map_err(|error| {
            let text = format!("{}: {error}", self.file.display());
            if error.is_wrong_description() {
                usage(text)
            } else {
                anyhow!(text)
            }
        })?;
        if let Some(out) = &self.out {
            let written = computed.schedule.write(out);
            written.map_err(named_file::unwritable(out))?;
        }
        if self.json {
            print_json(&as_json(&description, &computed))?
        } else {
            print(&description, &computed)?
        }
        Ok(match computed.analysis.holds() {
            Some(true) => ExitCode::SUCCESS,
            _ => ExitCode::from(FAILED),
        })
    }
}

fn print(description: &Description, computed: &Computation) -> anyhow::Result<()> {
    let head = [
        "operation",
        "period",
        "worst",
        "deadline",
        "criticality",
        "priority",
        "level",
        "response",
        "slack",
        "verdict",
    ];
    let each = description.graph.operations.iter();
    let rows = each
        .zip(&computed.analysis.operations)
        .map(|(operation, scheduled)| row(operation, scheduled, computed));
    print_table(&Table {
        head: head.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    })?;
    let analysis = &computed.analysis;
    let used = analysis.utilisation.millionths();
    line(format!(
        "strategy {}, {} levels, {}.{:02} % of the processor used",
        analysis.strategy,
        analysis.levels.len(),
        used / 10_000,
        used % 10_000 / 100
    ))?;
    for anomaly in &analysis.anomalies {
        line(format!(
            "{}: {}",
            severity(anomaly.severity),
            anomaly.description
        ))?;
    }
    let tone = match computed.analysis.holds() {
        Some(true) => Tone::Good,
        Some(false) => Tone::Bad,
        None => Tone::Doubt,
    };
    line_in(tone, conclusion(description, computed))
}

/// Formats the verdict as a sentence.
fn conclusion(description: &Description, computed: &Computation) -> String {
    let first = computed.analysis.first_miss();
    let named = first.map(|index| &description.graph.operations[index].name);
    match (computed.analysis.holds(), named) {
        (Some(true), _) => format!(
            "all deadlines hold{}",
            if_preempted(computed.analysis.needs_preemption())
        ),
        (_, Some(name)) => format!("the first deadline to be missed is that of {name}"),
        _ => "not every deadline is proven to hold".to_owned(),
    }
}

fn row(
    operation: &Operation,
    scheduled: &OperationSchedule,
    computed: &Computation,
) -> Vec<String> {
    let time = |ns: Option<u64>| ns.map(text_of_ns).unwrap_or_default();
    let response = match scheduled.response {
        Some(Response::Bounded { ns }) => text_of_ns(ns),
        Some(Response::Unbounded) => "unbounded".to_owned(),
        Some(Response::Undecided { at_least_ns }) => format!("> {}", text_of_ns(at_least_ns)),
        None => String::new(),
    };
    vec![
        operation.name.clone(),
        time(scheduled.period_ns),
        text_of_ns(operation.worst_ns),
        time(scheduled.deadline_ns),
        criticality(operation.criticality).to_owned(),
        priority(scheduled, computed).map_or_else(String::new, |number| number.to_string()),
        scheduled
            .level
            .map_or_else(String::new, |level| level.to_string()),
        response,
        slack(scheduled).map_or_else(String::new, |(sign, ns)| {
            format!("{sign}{}", text_of_ns(ns))
        }),
        words(scheduled.verdict).to_owned(),
    ]
}

fn priority(scheduled: &OperationSchedule, computed: &Computation) -> Option<i32> {
    let level = computed.schedule.levels().get(scheduled.level? as usize)?;
    Some(level.priority)
}

/// Returns the time between the response bound and the deadline; the sign is `-` if the deadline is missed.
fn slack(scheduled: &OperationSchedule) -> Option<(&'static str, u64)> {
    let bound = scheduled.response?.bound_ns()?;
    let deadline = scheduled.deadline_ns?;
    let sign = if bound > deadline { "-" } else { "" };
    Some((sign, bound.abs_diff(deadline)))
}

fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Meets => "meets",
        Verdict::MeetsIfPreempted => "meets if preempted",
        Verdict::Misses => "misses",
        Verdict::NotProven => "not proven",
        Verdict::NeverRuns => "never runs",
    }
}

fn severity(known: Severity) -> &'static str {
    match known {
        Severity::Fatal => "fatal",
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn as_json(description: &Description, computed: &Computation) -> Value {
    let analysis = &computed.analysis;
    let name = |index: usize| description.graph.operations[index].name.as_str();
    let each = description
        .graph
        .operations
        .iter()
        .zip(&description.handles);
    let operations = each
        .zip(&analysis.operations)
        .map(|((operation, handle), scheduled)| {
            let slack = slack(scheduled).map(|(sign, ns)| {
                let ns = i128::from(ns);
                if sign.is_empty() { ns } else { -ns }
            });
            json!({
                "name": operation.name,
                "handle": handle,
                "period_ns": scheduled.period_ns,
                "worst_ns": operation.worst_ns,
                "deadline_ns": scheduled.deadline_ns,
                "criticality": criticality(operation.criticality),
                "priority": priority(scheduled, computed),
                "level": scheduled.level,
                "subpriority": scheduled.subpriority,
                "response_ns": scheduled.response.and_then(Response::bound_ns),
                "slack_ns": slack.and_then(|ns| i64::try_from(ns).ok()),
                "verdict": words(scheduled.verdict),
            })
        });
    let anomalies = analysis.anomalies.iter().map(|anomaly| {
        json!({ "severity": severity(anomaly.severity), "description": anomaly.description })
    });
    json!({
        "strategy": analysis.strategy.to_string(),
        "utilisation_millionths": analysis.utilisation.millionths(),
        "holds": analysis.holds(),
        "first_miss": analysis.first_miss().map(name),
        "operations": operations.collect::<Vec<_>>(),
        "anomalies": anomalies.collect::<Vec<_>>(),
    })
}
