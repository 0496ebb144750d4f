//! Pushing events at a fixed rate, on absolute time.

use std::time::Duration;

use rtorb::SystemException;
use rtorb::any::Any;
use rtorb_os::clock::{monotonic_ns, sleep_until};

use super::client::Supplier;
use super::numbering::Number;
use crate::stubs::rtec_event::rtec_event_comm::{Event, EventData, EventHeader};

/// Which events to push, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct PushPlan {
    /// The events' type.
    pub event_type: i32,
    /// Their source.
    pub source: i32,
    /// The number of gateways that they may pass.
    pub ttl: i32,
    /// Their payload. With `numbered`, a number replaces its first [`Number::BYTES`] bytes.
    pub payload: Vec<u8>,
    /// Their any.
    pub any_value: Any,
    /// The run in the numbers at the begin of payloads; `None` for no numbers.
    pub numbered: Option<u64>,
    /// The number of events; `None` pushes until `goes_on` returns false.
    pub count: Option<u64>,
    /// The time between two releases. Zero pushes each event as soon as the one before is sent.
    pub period: Duration,
}

/// The result of a push plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PushReport {
    /// Events that were sent.
    pub events: u64,
    /// From the first release to the end of the last push, in nanoseconds.
    pub elapsed_ns: u64,
    /// The exception that ended it early.
    pub failure: Option<SystemException>,
}

/// The current time of an event, in units of 100 ns of CLOCK_MONOTONIC, as TAO's services use it on Linux.
#[must_use]
pub fn event_time() -> u64 {
    monotonic_ns() / 100
}

impl PushPlan {
    /// Pushes the events. It calls `goes_on` before each event, and `late` after each event with the nanoseconds from its release
    /// to its sending (not if the period is zero: such events have no release).
    ///
    /// A late event does not delay later releases: each release counts from the first.
    #[must_use]
    pub fn push(
        &self,
        supplier: &Supplier,
        goes_on: impl Fn() -> bool,
        mut late: impl FnMut(u64),
    ) -> PushReport {
        let mut events = [self.event()];
        let period_ns = self.period.as_nanos() as u64;
        let begin_ns = monotonic_ns();
        let mut release_ns = begin_ns;
        let mut sent = 0;
        let mut failure = None;
        while self.count.is_none_or(|count| sent < count) && wait(release_ns, &goes_on) {
            if let Some(run) = self.numbered {
                let number = Number { run, index: sent };
                number.write(&mut events[0].data.payload);
            }
            let now_ns = monotonic_ns();
            events[0].header.creation_time = now_ns / 100;
            if let Err(exception) = supplier.push(&events) {
                failure = Some(exception);
                break;
            }
            sent += 1;
            if period_ns > 0 {
                late(now_ns.saturating_sub(release_ns));
                release_ns = release_ns.saturating_add(period_ns);
            }
        }
        PushReport {
            events: sent,
            elapsed_ns: monotonic_ns() - begin_ns,
            failure,
        }
    }

    fn event(&self) -> Event {
        let mut payload = self.payload.clone();
        if self.numbered.is_some() {
            payload.resize(payload.len().max(Number::BYTES), 0);
        }
        Event {
            header: EventHeader {
                r#type: self.event_type,
                source: self.source,
                ttl: self.ttl,
                ..EventHeader::default()
            },
            data: EventData {
                payload,
                any_value: self.any_value.clone(),
                ..EventData::default()
            },
        }
    }
}

/// Sleeps until the release. Returns false if `goes_on` returns false meanwhile.
fn wait(release_ns: u64, goes_on: &impl Fn() -> bool) -> bool {
    while goes_on() {
        let now_ns = monotonic_ns();
        if now_ns >= release_ns {
            return true;
        }
        sleep_until(release_ns.min(now_ns + ASK_EVERY_NS));
    }
    false
}

/// The longest sleep between two calls of `goes_on`.
const ASK_EVERY_NS: u64 = 100_000_000;
