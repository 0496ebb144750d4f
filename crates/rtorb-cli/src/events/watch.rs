//! `rtorb events watch`: shows events as a consumer.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use rtorb::any::Any;
use rtorb::type_code::TypeCode;
use rtorb_dynamic::{Types, Value as IdlValue, json::to_json};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::termination::Termination;
use rtorb_sched::model::rounded;
use rtorb_services::events::client::{Arrival, Received, Receiver};
use rtorb_services::events::filter::types;
use rtorb_services::events::numbering::{Findings, Order};
use rtorb_services::events::simple_subscription::{Grouping, SimpleSubscription};
use serde_json::{Value, json};

use super::text;
use crate::exit_status::FAILED;
use crate::orb_options::{ServerOptions, UsageError};
use crate::output::{has_reader, line, note, warn};
use crate::reference::{CallOptions, duration};

/// Show the events of a channel, one a line, until it is interrupted.
///
/// Exit status 0: it was interrupted, or received --count events. 1: the channel disconnected it, or --check-sequence found no
/// numbered event, or events lost, repeated or out of order.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Channel: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one.
    #[arg(value_name = "REF")]
    reference: String,
    /// Type of the events. May be given more than once [default: all types].
    #[arg(long = "type", value_name = "N", value_parser = clap::value_parser!(i32).range(16..))]
    types: Vec<i32>,
    /// Source of the events. May be given more than once [default: all sources].
    #[arg(long = "source", value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    sources: Vec<i32>,
    /// Wait for one event of each type and source, and receive them together.
    #[arg(long)]
    all_of: bool,
    /// Period of an additional timeout event. A channel accepts 100us or more by default.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    interval: Option<Duration>,
    /// Time without events after which a timeout event is sent. A channel accepts 100us or more by default.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "all_of")]
    deadline: Option<Duration>,
    /// RT_Info of this consumer, known to the channel's scheduler; or a CORBA priority if the channel has no scheduler. It
    /// selects the lane.
    #[arg(long, value_name = "N", default_value_t = 0)]
    rt_info: i32,
    /// Connect as a gateway: other gateways do not subscribe on its behalf.
    #[arg(long)]
    gateway: bool,
    /// Number of events after which the command ends; timeouts do not count.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Check the numbers of `push --numbered`, and report lost, repeated and reordered events at the end.
    #[arg(long)]
    check_sequence: bool,
    /// Show only the summary at the end.
    #[arg(long)]
    quiet: bool,
    /// Print one JSON object a line: each event, and a summary at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    calling: CallOptions,
    #[command(flatten)]
    server: ServerOptions,
}

/// Counts of received events.
#[derive(Debug, Default)]
struct Tally {
    events: u64,
    timeouts: u64,
    order: Order,
}

/// The reason why the command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Interrupted,
    Counted,
    Disconnected,
}

impl Watch {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let termination = Termination::watch()?;
        let qos = self.subscription().consumer_qos();
        let qos = qos.map_err(|error| anyhow!(UsageError::new(error.to_string())))?;
        let orb = self.calling.serving_orb(&self.server)?;
        let channel = super::channel(&orb, &self.reference)?;
        let poa = orb.root_poa()?;
        let serving = super::spawn_server(&orb)?;
        let receiver = Receiver::connect(&channel, &poa, &qos, WAITING_MAX)
            .map_err(|error| anyhow!("{}: {error}", self.reference))?;
        note!("watching {}", self.reference);
        let mut tally = Tally::default();
        let end = self.watch(&receiver, &termination, &mut tally)?;
        let missed = receiver.missed();
        // The channel may no longer exist, so the result is ignored.
        let _ = receiver.disconnect();
        orb.shutdown();
        if let Ok(Some(served)) = serving.join() {
            served?;
        }
        self.conclude(&tally, missed, end)
    }

    fn subscription(&self) -> SimpleSubscription {
        SimpleSubscription {
            types: self.types.clone(),
            sources: self.sources.clone(),
            grouping: if self.all_of {
                Grouping::AllOf
            } else {
                Grouping::AnyOf
            },
            interval: self.interval,
            deadline: self.deadline,
            rt_info: self.rt_info,
            is_gateway: self.gateway,
        }
    }

    fn watch(
        &self,
        receiver: &Receiver,
        termination: &Termination,
        tally: &mut Tally,
    ) -> anyhow::Result<End> {
        let begin_ns = monotonic_ns();
        let mut ask_ns = begin_ns + ASK_EVERY_NS;
        let mut arrival = Arrival::default();
        while !termination.has_come() && has_reader() {
            match receiver.next(&mut arrival, monotonic_ns() + LOOK_EVERY_NS) {
                Received::Event => {
                    tally.note(&arrival);
                    if !self.quiet {
                        self.show(&arrival, begin_ns)?;
                    }
                    if self.count.is_some_and(|count| tally.events >= count) {
                        return Ok(End::Counted);
                    }
                }
                Received::Disconnected => return Ok(End::Disconnected),
                Received::Nothing if monotonic_ns() >= ask_ns => {
                    ask_ns = monotonic_ns() + ASK_EVERY_NS;
                    // A killed channel sends no disconnect.
                    if let Err(exception) = receiver.is_served() {
                        warn(exception);
                        return Ok(End::Disconnected);
                    }
                }
                Received::Nothing => {}
            }
        }
        Ok(End::Interrupted)
    }

    fn show(&self, arrival: &Arrival, begin_ns: u64) -> anyhow::Result<()> {
        let header = &arrival.event.header;
        let data = &arrival.event.data;
        let after_ns = arrival.arrived_ns.saturating_sub(begin_ns);
        let latency_ns = latency_ns(arrival);
        if self.json {
            return line(
                json!({
                    "after_ns": after_ns,
                    "type": header.r#type,
                    "source": header.source,
                    "ttl": header.ttl,
                    "creation_time": header.creation_time,
                    "latency_ns": latency_ns,
                    "together": arrival.together,
                    "payload": text::hex(&data.payload, usize::MAX),
                    "any": any(&data.any_value),
                })
                .to_string(),
            );
        }
        let mut shown = format!(
            "{:>12.6}  type {} source {} ttl {}",
            after_ns as f64 / 1e9,
            type_name(header.r#type),
            header.source,
            header.ttl
        );
        if let Some(ns) = latency_ns {
            shown += &format!("  after {}", rounded(ns as f64));
        }
        if arrival.together > 1 {
            shown += &format!("  one of {}", arrival.together);
        }
        if !data.payload.is_empty() {
            shown += &format!("  {}", text::shown(&data.payload));
        }
        if let Some(any) = text::any(&data.any_value) {
            shown += &format!("  any {any}");
        }
        line(shown)
    }

    fn conclude(&self, tally: &Tally, missed: u64, end: End) -> anyhow::Result<ExitCode> {
        let findings = tally.order.findings();
        if self.json {
            let mut conclusion = json!({
                "events": tally.events,
                "timeouts": tally.timeouts,
                "missed_here": missed,
                "disconnected": end == End::Disconnected,
            });
            if self.check_sequence {
                conclusion["sequence"] = findings_json(&findings);
            }
            line(json!({ "end": conclusion }).to_string())?;
        } else {
            let mut text = format!("{} events, {} timeouts", tally.events, tally.timeouts);
            if missed > 0 {
                text += &format!(", {missed} more arrived faster than they could be shown");
            }
            if self.check_sequence {
                text += &format!(
                    "; of {} numbered ones {} lost, {} repeated, {} out of order",
                    findings.numbered, findings.lost, findings.repeated, findings.out_of_order
                );
            }
            note!("{text}");
        }
        if end == End::Disconnected {
            warn("the channel disconnected this consumer, or no longer exists");
        }
        if self.check_sequence && findings.numbered == 0 {
            warn("no event had a number: `rtorb events push --numbered` gives them one");
        }
        let is_well = !self.check_sequence || findings.all_is_well() && findings.numbered > 0;
        Ok(if end != End::Disconnected && is_well {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(FAILED)
        })
    }
}

impl Tally {
    fn note(&mut self, arrival: &Arrival) {
        let header = &arrival.event.header;
        match header.r#type {
            types::TIMEOUT | types::INTERVAL_TIMEOUT | types::DEADLINE_TIMEOUT => {
                self.timeouts += 1;
            }
            _ => {
                self.events += 1;
                self.order.note(header.source, &arrival.event.data.payload);
            }
        }
    }
}

fn findings_json(findings: &Findings) -> Value {
    json!({
        "numbered": findings.numbered,
        "unnumbered": findings.unnumbered,
        "lost": findings.lost,
        "repeated": findings.repeated,
        "out_of_order": findings.out_of_order,
        "untraced": findings.untraced,
    })
}

/// Returns the time from the event's creation to its arrival, if this host's clock can have set the creation time.
fn latency_ns(arrival: &Arrival) -> Option<u64> {
    let created_ns = arrival.event.header.creation_time.checked_mul(100)?;
    let latency_ns = arrival.arrived_ns.checked_sub(created_ns)?;
    (created_ns > 0 && latency_ns < LATENCY_MAX_NS).then_some(latency_ns)
}

fn type_name(event_type: i32) -> String {
    match event_type {
        types::TIMEOUT => "timeout".to_owned(),
        types::INTERVAL_TIMEOUT => "interval".to_owned(),
        types::DEADLINE_TIMEOUT => "deadline".to_owned(),
        number => number.to_string(),
    }
}

/// The maximum number of events that wait to be shown, because a terminal is slow.
const WAITING_MAX: usize = 65_536;
/// The interval of checks for a signal.
const LOOK_EVERY_NS: u64 = 50_000_000;
/// The interval of pings to a silent channel.
const ASK_EVERY_NS: u64 = 2_000_000_000;
/// A longer latency means that the event's creator has another clock.
const LATENCY_MAX_NS: u64 = 60_000_000_000;

/// Returns `{"type": IDL-TYPE, "value": VALUE}`, or `null` for an empty any. Of a value without JSON, `error` says why.
fn any(any: &Any) -> Value {
    let value = to_json(
        &Types::default(),
        &IdlValue::Any(any.clone()),
        &TypeCode::ANY,
    );
    value.unwrap_or_else(
        |error| json!({ "type": any.type_code().to_string(), "error": error.to_string() }),
    )
}
