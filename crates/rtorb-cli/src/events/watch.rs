//! `rtorb events watch`: a consumer.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use rtorb_lab::processes::interrupt::Interrupt;
use rtorb_os::clock::monotonic_ns;
use rtorb_services::events::client::{Arrival, Received, Receiver};
use rtorb_services::events::filter::types;
use rtorb_services::events::numbering::{Findings, Order};
use rtorb_services::events::simple_subscription::{Grouping, SimpleSubscription};
use serde_json::{Value, json};

use super::{any_json, text};
use crate::NO;
use crate::orb_options::{Misuse, ServerChoices};
use crate::output::line;
use crate::reference::{Calling, duration};

/// Show the events of a channel, a line each, until it is interrupted.
///
/// Exit status 0: it was interrupted, or the events of --count came. 1: the channel ended it, or with --check-sequence events
/// were lost, repeated or out of order.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// The channel: an IOR:, a corbaloc: or corbaname:, or a file that holds one.
    #[arg(value_name = "REF")]
    reference: String,
    /// Events of this type; may be given more than once. Without it, of any.
    #[arg(long = "type", value_name = "N", value_parser = clap::value_parser!(i32).range(16..))]
    types: Vec<i32>,
    /// Events of this source; may be given more than once. Without it, of any.
    #[arg(long = "source", value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    sources: Vec<i32>,
    /// Only when one of each is there, and all of them together.
    #[arg(long)]
    all_of: bool,
    /// Be called each such time as well.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    interval: Option<Duration>,
    /// Be called when nothing has come for so long.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "all_of")]
    deadline: Option<Duration>,
    /// How urgent this consumer is: an RT_Info of the channel's scheduler; without one, a CORBA priority, which chooses the lane.
    #[arg(long, value_name = "N", default_value_t = 0)]
    rt_info: i32,
    /// Say that it is a gateway: gateways do not subscribe for it.
    #[arg(long)]
    gateway: bool,
    /// End after so many events, timeouts not counted.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Follow the numbers of `push --numbered`, and say at the end what was lost, repeated or out of order.
    #[arg(long)]
    check_sequence: bool,
    /// Show nothing but what is said at the end.
    #[arg(long)]
    quiet: bool,
    /// Print one JSON object a line: each event, and at the end what was seen in all.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    calling: Calling,
    #[command(flatten)]
    server: ServerChoices,
}

/// What was seen.
#[derive(Debug, Default)]
struct Seen {
    events: u64,
    timeouts: u64,
    order: Order,
}

/// Why it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Interrupted,
    Counted,
    Disconnected,
}

impl Watch {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let interrupt = Interrupt::on_signals()?;
        let qos = self.subscription().consumer_qos();
        let qos = qos.map_err(|error| anyhow!(Misuse::new(error.to_string())))?;
        let orb = self.calling.serving_orb(&self.server)?;
        let channel = super::channel(&orb, &self.reference)?;
        let poa = orb.root_poa()?;
        let serving = super::serve_beside(&orb)?;
        let receiver = Receiver::connect(&channel, &poa, &qos, WAITING_MAX)
            .map_err(|error| anyhow!("{}: {error}", self.reference))?;
        eprintln!("watching {}", self.reference);
        let mut seen = Seen::default();
        let end = self.watch(&receiver, &interrupt, &mut seen)?;
        let missed = receiver.missed();
        // A channel that has gone needs no goodbye.
        let _ = receiver.disconnect();
        orb.shutdown();
        if let Ok(Some(served)) = serving.join() {
            served?;
        }
        self.conclude(&seen, missed, end)
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
        interrupt: &Interrupt,
        seen: &mut Seen,
    ) -> anyhow::Result<End> {
        let begin_ns = monotonic_ns();
        let mut ask_ns = begin_ns + ASK_EVERY_NS;
        let mut arrival = Arrival::default();
        while !interrupt.requested() {
            match receiver.next(&mut arrival, monotonic_ns() + LOOK_EVERY_NS) {
                Received::Event => {
                    seen.note(&arrival);
                    if !self.quiet {
                        self.show(&arrival, begin_ns)?;
                    }
                    if self.count.is_some_and(|count| seen.events >= count) {
                        return Ok(End::Counted);
                    }
                }
                Received::Disconnected => return Ok(End::Disconnected),
                Received::Nothing if monotonic_ns() >= ask_ns => {
                    ask_ns = monotonic_ns() + ASK_EVERY_NS;
                    // A channel that was killed says nothing.
                    if let Err(exception) = receiver.is_served() {
                        eprintln!("rtorb: {exception}");
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
                    "any": any_json::any(&data.any_value),
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
            shown += &format!("  after {:.1} us", ns as f64 / 1e3);
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

    fn conclude(&self, seen: &Seen, missed: u64, end: End) -> anyhow::Result<ExitCode> {
        let findings = seen.order.findings();
        if self.json {
            let mut conclusion = json!({
                "events": seen.events,
                "timeouts": seen.timeouts,
                "missed_here": missed,
                "disconnected": end == End::Disconnected,
            });
            if self.check_sequence {
                conclusion["sequence"] = found(&findings);
            }
            line(json!({ "end": conclusion }).to_string())?;
        } else {
            let mut text = format!("{} events, {} timeouts", seen.events, seen.timeouts);
            if missed > 0 {
                text += &format!(", {missed} more came faster than they could be shown");
            }
            if self.check_sequence {
                text += &format!(
                    "; of {} numbered ones {} lost, {} repeated, {} out of order",
                    findings.numbered, findings.lost, findings.repeated, findings.out_of_order
                );
            }
            eprintln!("{text}");
        }
        if end == End::Disconnected {
            eprintln!("rtorb: the channel has disconnected this consumer, or is gone");
        }
        let is_well = !self.check_sequence || findings.all_is_well() && findings.numbered > 0;
        Ok(match end != End::Disconnected && is_well {
            true => ExitCode::SUCCESS,
            false => ExitCode::from(NO),
        })
    }
}

impl Seen {
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

fn found(findings: &Findings) -> Value {
    json!({
        "numbered": findings.numbered,
        "unnumbered": findings.unnumbered,
        "lost": findings.lost,
        "repeated": findings.repeated,
        "out_of_order": findings.out_of_order,
        "untraced": findings.untraced,
    })
}

/// From the event's creation to its arrival, if its creation time can be one of this host's clock.
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

/// Events that wait to be shown; a terminal is slow.
const WAITING_MAX: usize = 65_536;
/// How soon an interrupt is seen.
const LOOK_EVERY_NS: u64 = 50_000_000;
/// How often a channel that says nothing is asked whether it is there.
const ASK_EVERY_NS: u64 = 2_000_000_000;
/// Who takes longer has another clock.
const LATENCY_MAX_NS: u64 = 60_000_000_000;
