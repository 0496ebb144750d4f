//! Events through the real-time event channel: a process that is the [`channel`], one with [`consumers`], and one that is a
//! [`supplier`].
//!
//! Each event that a supplier here sends carries its number and the moment at which it was sent, so that a consumer knows by
//! itself how long an event took, and whether one was lost or came twice. All of them answer lines:
//!
//! ```text
//! connect                       asked of consumers: subscribes
//! connected
//! clear                         asked of consumers: numbers begin at 0 again
//! cleared
//! work 1000000                  asked of consumers: for how long each sleeps over an event from now on, in nanoseconds
//! working
//! start {"first":0,...}         asked of a supplier: sends until all are sent, while other questions are answered
//! started
//! finish                        asked of a supplier: waits for the last; `stop` has it send no more
//! sent 1000 12000000            events, and the nanoseconds from the first until the last was sent
//! received                      asked of consumers: events of the one with the fewest, and of all together
//! received 1000 2000
//! latencies 1000                asked of consumers: of the first so many events
//! latencies 2 1000 0 0 0        consumers, events, lost, repeated, malformed; then 32-bit numbers, consumer by consumer
//! discarded                     asked of the channel: how many events it has discarded, over all consumers
//! discarded 0
//! counts                        asked of the channel, as of whitebox servers
//! ```
//!
//! What cannot be done is answered by `error TEXT`. All numbers after a line are unsigned and little-endian.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub mod channel;
pub mod consumers;
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

impl FromStr for Served {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("no channel: {error}: {text:?}"))
    }
}

impl fmt::Display for Served {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_json(self, formatter)
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

impl FromStr for Subscribers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found: Self = serde_json::from_str(text)
            .map_err(|error| format!("no subscribers: {error}: {text:?}"))?;
        let is_meant = (1..=CONSUMERS_MAX).contains(&found.count)
            && found.count.saturating_mul(found.events_max) <= LATENCIES_MAX
            && found.priority <= 99;
        if is_meant {
            Ok(found)
        } else {
            Err(format!("more than was ever meant: {text:?}"))
        }
    }
}

impl fmt::Display for Subscribers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_json(self, formatter)
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
    #[serde(default)]
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

    /// How long it takes at most, if it ends.
    #[must_use]
    pub fn lasting(&self) -> Duration {
        let paced_ns = self.count.saturating_mul(self.period_ns);
        Duration::from_nanos(paced_ns.saturating_add(2 * self.pause_ns))
    }
}

impl FromStr for Sending {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found: Self =
            serde_json::from_str(text).map_err(|error| format!("nothing to send: {error}"))?;
        if found.burst > 0 && found.payload_bytes <= PAYLOAD_BYTES_MAX {
            Ok(found)
        } else {
            Err(format!(
                "a burst has an event, and an event at most {PAYLOAD_BYTES_MAX} octets: {text:?}"
            ))
        }
    }
}

impl fmt::Display for Sending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_json(self, formatter)
    }
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// How many events.
    pub count: u64,
    /// From the first until the last was sent.
    pub elapsed_ns: u64,
}

impl fmt::Display for Sent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sent {} {}", self.count, self.elapsed_ns)
    }
}

impl FromStr for Sent {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split(' ').collect();
        let found = match words[..] {
            ["sent", count, elapsed_ns] => count.parse().ok().zip(elapsed_ns.parse().ok()),
            _ => None,
        };
        found
            .map(|(count, elapsed_ns)| Self { count, elapsed_ns })
            .ok_or_else(|| line.to_owned())
    }
}

fn write_json(value: &impl Serialize, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
    let line = serde_json::to_string(value).map_err(|_| fmt::Error)?;
    formatter.write_str(&line)
}

/// Of one process, and more than any experiment has.
pub const CONSUMERS_MAX: usize = 1_000;
/// Far below what a message may have.
const PAYLOAD_BYTES_MAX: usize = 64 << 10;
/// Sixty-four mebibytes.
const LATENCIES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_back() {
        let served = Served {
            lanes: vec![60, 40],
            queue_events: 64,
            wait_ms: None,
            counts: true,
        };
        assert_eq!(served.to_string().parse(), Ok(served.clone()));
        let subscribers = Subscribers {
            count: 100,
            source: 2,
            priority: 40,
            events_max: 1_000,
        };
        assert_eq!(subscribers.to_string().parse(), Ok(subscribers.clone()));
        let sending = Sending {
            first: 7,
            count: 1 << 40,
            period_ns: 0,
            burst: 1,
            pause_ns: 5,
            payload_bytes: 1_024,
        };
        assert_eq!(sending.to_string().parse(), Ok(sending.clone()));
        let sent = Sent {
            count: 5,
            elapsed_ns: 9,
        };
        assert_eq!(sent.to_string().parse(), Ok(sent));
        assert!(!subscribers.to_string().contains(['\n', ' ']));
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
            ..subscribers
        };
        for wrong in [none, too_many] {
            assert!(wrong.to_string().parse::<Subscribers>().is_err(), "{wrong}");
        }
        let nothing = r#"{"first":0,"count":1,"period_ns":0,"burst":0,"pause_ns":0}"#;
        assert!(nothing.parse::<Sending>().is_err());
        assert_eq!("sent 1".parse::<Sent>(), Err("sent 1".to_owned()));
    }
}
