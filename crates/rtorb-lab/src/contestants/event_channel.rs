//! Events through the real-time event channel: a process that is the [`channel`], one with [`consumers`], and one that is a
//! [`supplier`].
//!
//! Each event that a supplier here sends carries its number and the moment at which it was to be sent, so that a consumer knows by
//! itself how long an event took, and whether one was lost or came twice. All answer
//! questions in JSON.

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub mod channel;
pub mod consumers;
pub(crate) mod roles;
pub mod rtec;
pub mod supplier;
pub mod system;

/// How a channel is set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// Its lanes, most urgent first; one lane of priority 0 leaves the scheduling as it is.
    pub lanes: Vec<u8>,
    /// Events that wait for one consumer.
    pub queue_events: usize,
    /// For how long a supplier is made to wait for room, in milliseconds; `None` discards the oldest event.
    pub wait_ms: Option<u64>,
    /// Whether it counts its heap calls and locks, which costs it a little.
    pub counts: bool,
}

impl Served {
    /// Whether an agent may serve it for any laboratory.
    pub(crate) fn is_bounded(&self) -> bool {
        self.lanes.len() <= LANES_MAX
            && self.queue_events <= QUEUE_EVENTS_MAX
            && self.lanes.iter().all(|priority| *priority <= 99)
    }
}

/// What consumers of one process have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subscribers {
    /// How many, each with a connection of its own.
    pub count: usize,
    /// Whose events they want.
    pub source: i32,
    /// The CORBA priority at which events are dispatched to them; 0 leaves the scheduling as it is.
    pub priority: u8,
    /// Of how many events each remembers the latency.
    pub events_max: usize,
}

impl Subscribers {
    /// Refuses more than any experiment has.
    fn check(&self) -> Result<(), String> {
        let is_meant = (1..=CONSUMERS_MAX).contains(&self.count)
            && self.count.saturating_mul(self.events_max) <= LATENCIES_MAX
            && self.priority <= 99;
        if is_meant {
            Ok(())
        } else {
            Err(format!("more than was ever meant: {self:?}"))
        }
    }
}

/// What a supplier is asked to send.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sending {
    /// The number of the first event.
    pub first: u64,
    /// How many events.
    pub count: u64,
    /// From one burst to the next; 0 sends without a pause.
    pub period_ns: u64,
    /// Events a burst.
    pub burst: u64,
    /// How much longer the second burst waits, and how long the connection stays after the last, in nanoseconds: for those who
    /// count what all events but the first cost, without what is made and unmade once.
    pub pause_ns: u64,
    /// Octets of data in each event; never fewer than a [`rtec::Stamp`] has.
    pub payload_bytes: usize,
}

impl Sending {
    /// So many events, one each period.
    #[must_use]
    pub fn paced(count: u64, period_ns: u64) -> Self {
        Self {
            first: 0,
            count,
            period_ns,
            burst: 1,
            pause_ns: 0,
            payload_bytes: rtec::STAMP_BYTES,
        }
    }

    /// When an event is to be sent, in a run that begins at `begin_ns`: all of a burst together. `None` of one that directly follows the
    /// one before, without a pause.
    fn release_ns(&self, begin_ns: u64, event: u64) -> Option<u64> {
        if event > 0 && self.period_ns == 0 {
            return None;
        }
        let bursts = event / self.burst;
        let pause_ns = if bursts == 0 { 0 } else { self.pause_ns };
        Some(begin_ns + pause_ns + bursts * self.period_ns)
    }

    /// Refuses what cannot be sent.
    fn check(&self) -> Result<(), String> {
        if self.burst > 0 && self.payload_bytes <= PAYLOAD_BYTES_MAX {
            return Ok(());
        }
        Err(format!(
            "a burst has an event, and an event at most {PAYLOAD_BYTES_MAX} octets: {self:?}"
        ))
    }

    /// How long it takes at most, if it ends.
    #[must_use]
    pub fn lasting(&self) -> Duration {
        let paced_ns = self.count.saturating_mul(self.period_ns);
        Duration::from_nanos(paced_ns.saturating_add(2 * self.pause_ns))
    }
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// How many events.
    pub count: u64,
    /// From the first until the last was sent.
    pub elapsed_ns: u64,
}

/// Of a channel on an agent.
const LANES_MAX: usize = 8;
const QUEUE_EVENTS_MAX: usize = 4_096;
/// Of one process, and more than any experiment has.
pub const CONSUMERS_MAX: usize = 1_000;
/// Far below what a message may have.
const PAYLOAD_BYTES_MAX: usize = 64 << 10;
/// Sixty-four mebibytes.
const LATENCIES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::child::{value, word};

    #[test]
    fn an_answer_is_a_line_that_is_read_back() {
        let sent = Sent {
            count: 1 << 40,
            elapsed_ns: 9,
        };
        let line = serde_json::to_string(&sent).unwrap();
        assert!(!line.contains('\n') && !line.starts_with("error "));
        assert_eq!(serde_json::from_str::<Sent>(&line).unwrap(), sent);
        let sending = Sending::paced(u64::MAX, 7);
        let line = serde_json::to_string(&sending).unwrap();
        assert_eq!(serde_json::from_str::<Sending>(&line).unwrap(), sending);
    }

    #[test]
    fn questions_are_read_back() {
        let served = Served {
            lanes: vec![60, 40],
            queue_events: 64,
            wait_ms: None,
            counts: true,
        };
        assert_eq!(value(&word(&served)), Ok(served));
        let subscribers = Subscribers {
            count: 100,
            source: 2,
            priority: 40,
            events_max: 1_000,
        };
        let text = word(&subscribers);
        assert!(!text.contains(['\n', ' ']), "{text}");
        assert_eq!(value(&text), Ok(subscribers));
        assert!(value::<Subscribers>("{}").is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        let subscribers = Subscribers {
            count: 1,
            source: 1,
            priority: 0,
            events_max: 1,
        };
        let none = Subscribers {
            count: 0,
            ..subscribers.clone()
        };
        let too_many = Subscribers {
            count: CONSUMERS_MAX,
            events_max: usize::MAX,
            ..subscribers.clone()
        };
        assert_eq!(subscribers.check(), Ok(()));
        for wrong in [none, too_many] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
        let nothing = Sending {
            burst: 0,
            ..Sending::paced(1, 0)
        };
        assert!(nothing.check().is_err() && Sending::paced(1, 0).check().is_ok());
    }
}
