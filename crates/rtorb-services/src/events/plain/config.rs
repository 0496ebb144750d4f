//! The configuration of a plain channel, its counts and its errors.

use std::time::Duration;

use rtorb::thread::ThreadConfig;
use rtorb::{PoaError, SystemException};
use rtorb_os::Refused;

use crate::events::filter::types;

/// The configuration of a plain channel. Everything that grows has a bound here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainConfig {
    /// The type of events of plain suppliers (default 16, the first one for applications).
    pub event_type: i32,
    /// Their source (default 1).
    pub source: i32,
    /// The number of gateways that they may pass (default 1).
    pub ttl: i32,
    /// The types of events that plain consumers get; empty for any.
    pub types: Vec<i32>,
    /// The sources of events that plain consumers get; empty for any.
    pub sources: Vec<i32>,
    /// The urgency of the plain channel as a consumer: an RT_Info of the channel's scheduler, or a CORBA priority.
    pub rt_info: i32,
    /// The greatest number of proxies for plain suppliers (default 1,024), at least 1: NO_RESOURCES. As many more may wait for
    /// their disconnect notification. Beyond that a notification is dropped and counted.
    pub suppliers_max: usize,
    /// The greatest number of proxies for plain consumers (default 256), at least 1: NO_RESOURCES. Each connected one has a
    /// thread. A place is free only when its thread has ended: after a disconnect that takes up to `push_timeout`. As many more
    /// may wait for their disconnect notification. Beyond that a notification is dropped and counted.
    pub consumers_max: usize,
    /// The greatest number of events that wait for one consumer (default 256), at least 1. Beyond it the oldest is discarded and
    /// counted.
    pub queue_events: usize,
    /// Bytes of their anys (default 1 MiB). Consumers share the memory of an event.
    pub queue_bytes: usize,
    /// The timeout of a push and of a disconnect notification (default 2 s).
    pub push_timeout: Duration,
    /// A consumer is dropped after this number of failed pushes and pings in a row (default 3), at least 1, and a supplier after this
    /// number of failed pings between two of its pushes. A consumer that raises Disconnected, and a client that does not exist, is
    /// dropped at once.
    pub failures_max: u32,
    /// The time after which a silent client is pinged (default 10 s).
    pub ping_every: Duration,
    /// The configuration of the consumers' threads, such as the priority of a lane. By default they have the policy and the CPUs of the thread
    /// that calls [`serve`](super::PlainChannel::serve), as the thread `rtorb-plain` always has.
    pub consumer_threads: ThreadConfig,
}

impl Default for PlainConfig {
    fn default() -> Self {
        Self {
            event_type: types::UNDEFINED,
            source: 1,
            ttl: 1,
            types: Vec::new(),
            sources: Vec::new(),
            rt_info: 0,
            suppliers_max: 1024,
            consumers_max: 256,
            queue_events: 256,
            queue_bytes: 1 << 20,
            push_timeout: Duration::from_secs(2),
            failures_max: 3,
            ping_every: Duration::from_secs(10),
            consumer_threads: ThreadConfig::default(),
        }
    }
}

/// The counts of a plain channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct PlainStatistics {
    /// Connected suppliers.
    pub suppliers: u64,
    /// Connected consumers.
    pub consumers: u64,
    /// Events of plain suppliers that were sent to the channel.
    pub pushed: u64,
    /// Events of plain suppliers that could not be sent. The supplier got the exception.
    pub refused: u64,
    /// Events of the channel, times the plain consumers at that moment.
    pub received: u64,
    /// Those that a consumer took.
    pub delivered: u64,
    /// Those that were discarded because a queue was full.
    pub discarded_full: u64,
    /// Those that were discarded because the push failed or the consumer was gone.
    pub discarded_failed: u64,
    /// Clients that were dropped because they did not exist or failed too often.
    pub dropped: u64,
    /// Disconnect notifications that were dropped because too many waited, or because the channel ended. Such a client learns it
    /// from OBJECT_NOT_EXIST of its proxy.
    pub goodbyes_dropped: u64,
}

/// Why a plain channel cannot be served.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlainError {
    /// A value is out of its range.
    #[error("plain channel: {name} must be {right}")]
    Config {
        /// The field of [`PlainConfig`].
        name: &'static str,
        /// The range.
        right: &'static str,
    },
    /// An error of the object adapter.
    #[error("plain channel: {0}")]
    Poa(#[from] PoaError),
    /// An error of the ORB.
    #[error("plain channel: {0}")]
    System(#[from] SystemException),
    /// The host refuses its thread.
    #[error("plain channel: {0}")]
    Thread(#[from] Refused),
}

impl PlainConfig {
    pub(super) fn check(&self) -> Result<(), PlainError> {
        let wrong = |name, right| Err(PlainError::Config { name, right });
        if self.event_type < types::UNDEFINED {
            return wrong(
                "event_type",
                "16 at least: what is below has meanings of its own",
            );
        }
        let counts = [
            ("suppliers_max", self.suppliers_max),
            ("consumers_max", self.consumers_max),
            ("queue_events", self.queue_events),
            ("queue_bytes", self.queue_bytes),
            ("failures_max", self.failures_max as usize),
        ];
        if let Some((name, _)) = counts.into_iter().find(|(_, count)| *count == 0) {
            return wrong(name, "1 at least");
        }
        let range = Duration::from_millis(1)..=Duration::from_secs(3600);
        let times = [
            ("push_timeout", self.push_timeout),
            ("ping_every", self.ping_every),
        ];
        match times.into_iter().find(|(_, time)| !range.contains(time)) {
            Some((name, _)) => wrong(name, "1 ms to 1 h"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_out_of_range_is_named() {
        let refused = |change: &dyn Fn(&mut PlainConfig)| {
            let mut config = PlainConfig::default();
            change(&mut config);
            config.check().expect_err("out of range").to_string()
        };
        assert_eq!(PlainConfig::default().check(), Ok(()));
        assert!(refused(&|config| config.event_type = 9).contains("event_type"));
        assert!(refused(&|config| config.queue_events = 0).contains("queue_events"));
        assert!(refused(&|config| config.failures_max = 0).contains("failures_max"));
        assert!(refused(&|config| config.push_timeout = Duration::ZERO).contains("push_timeout"));
    }
}
