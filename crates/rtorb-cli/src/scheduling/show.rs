//! `rtorb scheduling show`: shows the operations and priorities of a Scheduler.

use std::process::ExitCode;

use anyhow::anyhow;
use clap::Args;
use rtorb_results::table::Table;
use rtorb_services::scheduling::{Schedule, text_of_ns};
use rtorb_services::stubs::rtec_scheduler::rtec_scheduler::{CriticalityT, RtInfo, Scheduler};
use serde_json::json;

use crate::exit_status::FAILED;
use crate::output::{line, print_json, print_table};
use crate::reference::{self, CallOptions};

/// Show the operations of a Scheduler, of rtorb or TAO, and the priorities that it has computed.
///
/// Exit status 1: no priorities are computed.
#[derive(Debug, Args)]
pub(super) struct Show {
    /// Object reference: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one.
    #[arg(value_name = "REF")]
    reference: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    calling: CallOptions,
}

impl Show {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let orb = self.calling.orb()?;
        let object = reference::object(&orb, &self.reference)?;
        let scheduler = Scheduler::narrow(&object).map_err(|exception| {
            anyhow!(
                "{} is not a Scheduler, or does not reply: {exception}",
                self.reference
            )
        })?;
        let infos = scheduler
            .get_rt_info_set()
            .map_err(|error| anyhow!("{}: {error}", self.reference))?;
        let schedule = match Schedule::ask(&scheduler) {
            Ok(schedule) => Some(schedule),
            Err(exception) if exception.kind == rtorb::ExceptionKind::BadInvOrder => None,
            Err(exception) => return Err(anyhow!("{}: {exception}", self.reference)),
        };
        if self.json {
            print_json(&as_json(&infos, schedule.as_ref()))?
        } else {
            print(&infos, schedule.as_ref())?
        }
        Ok(match schedule {
            Some(_) => ExitCode::SUCCESS,
            None => ExitCode::from(FAILED),
        })
    }
}

fn print(infos: &[RtInfo], schedule: Option<&Schedule>) -> anyhow::Result<()> {
    let head = [
        "operation",
        "handle",
        "period",
        "worst",
        "criticality",
        "priority",
        "level",
        "place",
    ];
    print_table(&Table {
        head: head.map(str::to_owned).to_vec(),
        rows: infos.iter().map(|info| row(info, schedule)).collect(),
    })?;
    match schedule {
        None => line("no schedule was computed yet"),
        Some(_) => Ok(()),
    }
}

fn row(info: &RtInfo, schedule: Option<&Schedule>) -> Vec<String> {
    let scheduled = schedule.is_some_and(|schedule| schedule.placed(info.handle).is_some());
    let number = |number: i32| {
        if scheduled {
            number.to_string()
        } else {
            String::new()
        }
    };
    let period = u64::try_from(info.period).ok().filter(|units| *units > 0);
    vec![
        info.entry_point.clone(),
        info.handle.to_string(),
        period.map_or_else(String::new, |units| text_of_ns(units * UNIT_NS)),
        text_of_ns(info.worst_case_execution_time.saturating_mul(UNIT_NS)),
        criticality(info.criticality).to_owned(),
        number(info.priority),
        number(info.preemption_priority),
        number(info.preemption_subpriority),
    ]
}

fn as_json(infos: &[RtInfo], schedule: Option<&Schedule>) -> serde_json::Value {
    let operations = infos.iter().map(|info| {
        let placed = schedule.and_then(|schedule| schedule.placed(info.handle));
        json!({
            "name": info.entry_point,
            "handle": info.handle,
            "period_ns": i64::from(info.period) * 100,
            "worst_ns": info.worst_case_execution_time.saturating_mul(UNIT_NS),
            "criticality": criticality(info.criticality),
            "priority": placed.map(|_| info.priority),
            "level": placed.map(|placed| placed.level),
            "subpriority": placed.map(|placed| placed.subpriority),
        })
    });
    json!({ "scheduled": schedule.is_some(), "operations": operations.collect::<Vec<_>>() })
}

fn criticality(known: CriticalityT) -> &'static str {
    match known {
        CriticalityT::VeryLowCriticality => "very low",
        CriticalityT::LowCriticality => "low",
        CriticalityT::MediumCriticality => "medium",
        CriticalityT::HighCriticality => "high",
        CriticalityT::VeryHighCriticality => "very high",
    }
}

/// The unit of times in the interface.
const UNIT_NS: u64 = 100;
