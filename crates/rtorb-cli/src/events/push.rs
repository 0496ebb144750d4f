//! `rtorb events push`: pushes events as a supplier.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use rtorb::any::Any;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::termination::Termination;
use rtorb_results::statistics::Recorder;
use rtorb_sched::model::rounded;
use rtorb_services::events::client::Supplier;
use rtorb_services::events::numbering::Number;
use rtorb_services::events::pushing::{PushPlan, PushReport};
use rtorb_services::events::subscribe::Publications;
use serde_json::json;

use super::text;
use crate::exit_status::FAILED;
use crate::output::{line, print_json, warn};
use crate::reference::CallOptions;

/// Push events to a channel: one, several, or at a rate until it is interrupted.
///
/// Exit status 0: all events were sent, and the channel is still there. 1: not so; the message says why. An event that is larger
/// than the channel's --event-bytes is discarded without an error; `rtorb events list` counts it.
#[derive(Debug, Args)]
pub(crate) struct Push {
    /// Channel: an IOR:, a corbaloc: or corbaname: URL, or a file that contains one.
    #[arg(value_name = "REF")]
    reference: String,
    /// Type of the events; types of applications begin at 16.
    #[arg(long = "type", value_name = "N", value_parser = clap::value_parser!(i32).range(16..))]
    event_type: i32,
    /// Source of the events.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..))]
    source: i32,
    /// Maximum number of gateways that an event passes.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(i32).range(0..))]
    ttl: i32,
    /// Payload of the events: text, or hex: and digits.
    #[arg(long, value_name = "TEXT", value_parser = text::payload, conflicts_with = "size")]
    payload: Option<std::vec::Vec<u8>>,
    /// Size of the payload in bytes; the bytes are 0.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=16_000_000))]
    size: Option<u32>,
    /// Text for the any of the events.
    #[arg(long, value_name = "TEXT")]
    any: Option<String>,
    /// Replace the first 24 bytes of each payload by a number, so that `watch --check-sequence` detects lost and repeated events. A
    /// shorter payload becomes 24 bytes.
    #[arg(long)]
    numbered: bool,
    /// Rate in events per second [default: as fast as they can be sent].
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: Option<f64>,
    /// Number of events [default: 1; with --rate, until it is interrupted].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print one JSON object at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    calling: CallOptions,
}

impl Push {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let termination = Termination::watch()?;
        let orb = self.calling.orb()?;
        let channel = super::channel(&orb, &self.reference)?;
        let plan = self.plan()?;
        let publications = Publications::new().event(self.source, self.event_type, 0);
        let supplier = Supplier::connect(&channel, &publications.supplier_qos())
            .map_err(|error| anyhow!("{}: {error}", self.reference))?;
        let mut late = Recorder::new();
        let mut pushed = plan.push(
            &supplier,
            || !termination.has_come(),
            |late_ns| late.record(late_ns),
        );
        // Oneways may still be in transit. The channel handles them before it replies to this call.
        if let (None, Err(exception)) = (&pushed.failure, supplier.arrived()) {
            pushed.failure = Some(exception);
        }
        // The report has a failure already; a failed disconnect adds nothing.
        let _ = supplier.disconnect();
        self.print(&pushed, &late)?;
        Ok(match pushed.failure {
            None => ExitCode::SUCCESS,
            Some(exception) => {
                warn(exception);
                ExitCode::from(FAILED)
            }
        })
    }

    fn plan(&self) -> anyhow::Result<PushPlan> {
        let payload = match (&self.payload, self.size) {
            (Some(payload), _) => payload.clone(),
            (None, size) => vec![0; size.unwrap_or(0) as usize],
        };
        let any_value = match &self.any {
            Some(text) => Any::from_value(text)?,
            None => Any::NULL,
        };
        let rate = self.rate.map(|hz| Duration::from_secs_f64(1.0 / hz));
        Ok(PushPlan {
            event_type: self.event_type,
            source: self.source,
            ttl: self.ttl,
            payload,
            any_value,
            numbered: self.numbered.then(run),
            count: self.count.or(rate.is_none().then_some(1)),
            period: rate.unwrap_or(Duration::ZERO),
        })
    }

    fn print(&self, pushed: &PushReport, late: &Recorder) -> anyhow::Result<()> {
        let seconds = pushed.elapsed_ns as f64 / 1e9;
        let times = (late.count() > 0).then(|| late.statistics());
        if self.json {
            return print_json(&json!({
                "events": pushed.events,
                "seconds": seconds,
                "late_ns": times,
                "failure": pushed.failure.as_ref().map(ToString::to_string),
            }));
        }
        let late = times.map_or_else(String::new, |times| {
            let times = [times.p50, times.p99, times.max];
            let [median, p99, max] = times.map(rounded);
            format!(", late by {median} in the median, {p99} in 99 of 100, {max} at most")
        });
        line(format!("{} events in {seconds:.3} s{late}", pushed.events))
    }
}

/// Returns a number that distinguishes this run from others of this host, and most likely from all others.
fn run() -> u64 {
    monotonic_ns().rotate_left(20) ^ u64::from(std::process::id())
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(hz) if (RATE_MIN_HZ..=RATE_MAX_HZ).contains(&hz) => Ok(hz),
        _ => Err(format!(
            "a rate is {RATE_MIN_HZ} to {RATE_MAX_HZ} events a second"
        )),
    }
}

const RATE_MIN_HZ: f64 = 0.001;
const RATE_MAX_HZ: f64 = 1e6;
const _: () = assert!(Number::BYTES == 24, "the help says so");
