//! The configuration of a plain channel, its counts and its errors.

use std::time::Duration;

use rtorb::{PoaError, SystemException, ThreadConfig};
use rtorb_os::Refused;

use crate::events::filter::types;

/// What is chosen for a plain face. Everything that grows has a bound here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainConfig {
    /// The type of the events that plain suppliers push (default 16, the first one for applications).
    pub event_type: i32,
    /// Their source (default 1).
    pub source: i32,
    /// How many gateways they may pass (default 1).
    pub ttl: i32,
    /// The types of events that plain consumers get; none for any.
    pub types: Vec<i32>,
    /// The sources of events that plain consumers get; none for any.
    pub sources: Vec<i32>,
    /// How urgent the face is as a consumer of the channel: an RT_Info of its scheduler, or a CORBA priority.
    pub rt_info: i32,
    /// Proxies for plain suppliers at a time (default 1,024), 1 at least: NO_RESOURCES.
    pub suppliers_max: usize,
    /// Proxies for plain consumers at a time (default 256), 1 at least: NO_RESOURCES. Each that is connected has a thread.
    pub consumers_max: usize,
    /// Events that wait for one consumer (default 256), 1 at least. Of more, the oldest is discarded, and counted.
    pub queue_events: usize,
    /// Octets of their anys (default 1 MiB); an event is shared by all consumers that wait for it.
    pub queue_octets: usize,
    /// How long a push may take (default 2 s), and each goodbye.
    pub push_timeout: Duration,
    /// Pushes in a row that fail before a consumer is dropped (default 3), 1 at least. One that says that it is disconnected, or
    /// does not exist, is dropped at once.
    pub failures_max: u32,
    /// How often suppliers and consumers of which nothing was heard are asked whether they are there (default 10 s).
    pub ping_every: Duration,
    /// How the threads of consumers run: with the priority of a lane, for example.
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
            queue_octets: 1 << 20,
            push_timeout: Duration::from_secs(2),
            failures_max: 3,
            ping_every: Duration::from_secs(10),
            consumer_threads: ThreadConfig::default(),
        }
    }
}

/// What a plain face has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct PlainStatistics {
    /// Suppliers that are connected.
    pub suppliers: u64,
    /// Consumers that are connected.
    pub consumers: u64,
    /// Events that suppliers pushed and the channel was sent.
    pub pushed: u64,
    /// Events that suppliers were told could not be sent.
    pub refused: u64,
    /// Events that the channel brought, times the consumers that were there.
    pub received: u64,
    /// Those of them that a consumer has taken.
    pub delivered: u64,
    /// Those that were discarded: their queue was full.
    pub discarded_full: u64,
    /// Those that were discarded: their push failed, or their consumer was gone.
    pub discarded_failed: u64,
    /// Consumers that were dropped since they were gone, or failed too often.
    pub dropped: u64,
}

/// Why a plain face is not there.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlainError {
    /// A choice is out of its range.
    #[error("plain face: {name} must be {right}")]
    Config {
        /// The field of [`PlainConfig`].
        name: &'static str,
        /// What it may be.
        right: &'static str,
    },
    /// The adapter refuses.
    #[error("plain face: {0}")]
    Poa(#[from] PoaError),
    /// The ORB refuses.
    #[error("plain face: {0}")]
    System(#[from] SystemException),
    /// The host refuses its thread.
    #[error("plain face: {0}")]
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
            ("queue_octets", self.queue_octets),
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
