//! Events one after the other, at a rate that is kept on absolute time.

use std::time::Duration;

use rtorb::SystemException;
use rtorb::any::Any;
use rtorb_os::clock::{monotonic_ns, sleep_until};

use super::client::Supplier;
use super::numbering::Number;
use crate::stubs::rtec_event::rtec_event_comm::{Event, EventData, EventHeader};

/// What is pushed, and how often.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The events' type.
    pub event_type: i32,
    /// Their source.
    pub source: i32,
    /// How many gateways they may pass.
    pub ttl: i32,
    /// Their payload; with `numbered`, its first [`Number::OCTETS`] octets are written over.
    pub payload: Vec<u8>,
    /// Their any.
    pub any_value: Any,
    /// The run of the numbers that payloads begin with, if they do.
    pub numbered: Option<u64>,
    /// How many events; `None` goes on until it is told to stop.
    pub count: Option<u64>,
    /// From the release of one event to that of the next; zero pushes one as soon as the one before is sent.
    pub period: Duration,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pushed {
    /// Events that were sent.
    pub events: u64,
    /// From the first release to the end of the last push, in nanoseconds.
    pub elapsed_ns: u64,
    /// What ended it before its time.
    pub failure: Option<SystemException>,
}

/// The channel's time now, in units of 100 ns of CLOCK_MONOTONIC: what TAO's services take as the time of an event on Linux.
#[must_use]
pub fn event_time() -> u64 {
    monotonic_ns() / 100
}

impl Plan {
    /// Pushes the events. Before each one `goes_on` is asked; after each one `late` is told how many nanoseconds after its
    /// release it began to be sent (nothing where the period is zero: such events have no release).
    ///
    /// An event that is late does not shift those after it: the release of each is counted from the first.
    #[must_use]
    pub fn push(
        &self,
        supplier: &Supplier,
        goes_on: impl Fn() -> bool,
        mut late: impl FnMut(u64),
    ) -> Pushed {
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
        Pushed {
            events: sent,
            elapsed_ns: monotonic_ns() - begin_ns,
            failure,
        }
    }

    fn event(&self) -> Event {
        let mut payload = self.payload.clone();
        if self.numbered.is_some() {
            payload.resize(payload.len().max(Number::OCTETS), 0);
        }
        Event {
            header: EventHeader {
                r#type: self.event_type,
                source: self.source,
                ttl: self.ttl,
                creation_time: 0,
                ec_recv_time: 0,
                ec_send_time: 0,
            },
            data: EventData {
                pad1: 0,
                payload,
                any_value: self.any_value.clone(),
            },
        }
    }
}

/// Sleeps until then; false if it is told to stop, which is asked for in between.
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

/// Who waits for the end of a slow supplier does not wait longer.
const ASK_EVERY_NS: u64 = 100_000_000;
