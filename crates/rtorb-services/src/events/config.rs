//! The configuration of a channel: each choice with its default, range and reason.

use super::filter::FilterKind;
use rtorb::Limits;
use rtorb::rt::Priority;
use rtorb::thread::ThreadConfig;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The configuration of a channel. Everything that grows has a bound here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// The object key of the channel, as in `corbaloc::host:port/KEY`, and the name of its initial reference.
    pub key: String,
    /// Which thread sends an event to a consumer.
    pub dispatching: Dispatching,
    /// The CORBA priorities of the lanes, the most urgent first; 1 to [`LANES_MAX`] lanes, each with a thread. A consumer belongs
    /// to the least urgent lane that is at least as urgent as the consumer, or to the most urgent lane if there is none.
    pub lanes: Vec<Priority>,
    /// CPUs and stacks of the lanes' threads. Their scheduling policy follows from their priority.
    pub lane_threads: ThreadConfig,
    /// The form of subscriptions.
    pub filter: FilterKind,
    /// What happens to an event when the consumer's queue is full.
    pub when_full: WhenFull,
    /// The greatest number of consumers, 1 to 65,536 (default 128). Each has a queue and up to two connections; see
    /// [`limits`](Self::limits).
    pub consumers_max: usize,
    /// The greatest number of suppliers, 1 to 65,536 (default 1,024).
    pub suppliers_max: usize,
    /// The greatest number of events that wait for one consumer, 1 to 1,048,576 (default 256). The events of a conjunction count
    /// as one.
    pub queue_events: usize,
    /// The greatest number of bytes that wait for one consumer (default 64 KiB), reserved when it connects; at least
    /// `event_bytes_max`, at most 1 GiB.
    pub queue_bytes: usize,
    /// The greatest number of events that a lane has not distributed to its consumers yet, 1 to 1,048,576 (default 256). When a
    /// lane does not get its CPU and this is reached, the supplier's thread distributes one event for each that it brings.
    pub intake_events: usize,
    /// The greatest number of bytes of these events (default 64 KiB), reserved for each lane at the start; at least
    /// `event_bytes_max`, at most 1 GiB.
    pub intake_bytes: usize,
    /// The greatest size of an event in bytes, with its header, 64 to 16 MiB (default 16 KiB). The channel discards and counts
    /// larger events.
    pub event_bytes_max: usize,
    /// The greatest number of entries of one subscription or publication, 1 to 4,096 (default 256). A filter checks each entry
    /// for every event that matches its keys, under the consumer's lock. Each entry also makes building the lookup table slower.
    pub entries_max: usize,
    /// The greatest number of events that a lane sends to one consumer before it serves the next, 1 to 65,536 (default 16).
    pub turn_events: usize,
    /// The channel removes a proxy if no client connects to it within this time, 10 ms to 1 h (default 1 min).
    pub connect_within: Duration,
    /// The time until a lane tries again when a consumer's connection takes no more, 100 us to 1 s (default 1 ms).
    pub retry: Duration,
    /// The channel drops a consumer that takes nothing for this time while events wait for it, 10 ms to 1 h (default 5 s).
    pub hang_timeout: Duration,
    /// The channel pings a client that has been silent for this time, 10 ms to 1 h (default 10 s).
    pub ping_every: Duration,
    /// The timeout of a ping and of a disconnect notification, 1 ms to 1 min (default 1 s).
    pub ping_timeout: Duration,
    /// The time for all disconnect notifications together when the channel ends, 1 ms to 1 min (default 2 s).
    pub goodbye_timeout: Duration,
}

/// Which thread sends an event to a consumer. In each case the lane's thread sends timeouts, and what a connection did not take at
/// once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dispatching {
    /// The supplier's serving thread if it has the priority of the consumer's lane, else the lane's thread.
    #[default]
    Priority,
    /// The supplier's serving thread, as long as the consumer's connection takes the events. This saves the change of threads, but
    /// a less urgent supplier's thread may be sending to a consumer when a more urgent supplier's event comes, which then waits for
    /// it.
    Reactive,
    /// Always the lane's thread. The supplier's thread is free as soon as the event is in the intakes.
    Lanes,
}

/// What happens to an event when the consumer's queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// Discard the oldest waiting event (CosNotification's FifoOrder).
    #[default]
    DiscardOldest,
    /// Discard this event.
    DiscardNewest,
    /// The supplier's serving thread waits for room and discards the event if there is none in time. This slows the supplier
    /// down. Everything else on the supplier's connection waits too, also for other consumers.
    Wait {
        /// The time for one event since it came, for all full queues together, up to 1 min.
        at_most: Duration,
    },
    /// Disconnect the consumer.
    Disconnect,
}

/// Why a channel cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// A value is out of its range.
    #[error("event channel: {name} is {value}, and must be {right}")]
    Config {
        /// The field of [`ChannelConfig`].
        name: &'static str,
        /// Its value.
        value: String,
        /// Its range.
        right: String,
    },
    /// The ORB does not have the connection and wait strategies that a channel needs.
    #[error(
        "event channel: the ORB has connection strategy {connection} and wait strategy {}; build it with multiplexed and read, so that a consumer's connection is its reference's own",
        .connection.wait()
    )]
    Strategies {
        /// The ORB's connection strategy.
        connection: rtorb::ConnectionStrategy,
    },
    /// The ORB's limit of connections is too low.
    #[error(
        "event channel: consumers_max is {consumers_max}, and the ORB's limit of shared_connections_max is {connections_max}; each consumer takes two"
    )]
    Connections {
        /// The configured value.
        consumers_max: usize,
        /// The ORB's limit.
        connections_max: usize,
    },
    /// The host or the ORB's priority mapping refuses the priority of a thread, and the ORB was not built for best effort.
    #[error("event channel: no thread of CORBA priority {priority} for {thread}: {reason}")]
    Thread {
        /// The thread.
        thread: &'static str,
        /// Its CORBA priority.
        priority: Priority,
        /// The error of the host or of the mapping.
        reason: String,
        /// True if the mapping has the priority: then the host refuses it.
        is_mapped: bool,
    },
    /// The ORB refuses the channel's object key.
    #[error("event channel: key: {0}")]
    Key(#[from] rtorb::ObjectKeyError),
    /// An error of the object adapter.
    #[error("event channel: {0}")]
    Poa(#[from] rtorb::PoaError),
    /// An error of the ORB.
    #[error("event channel: {0}")]
    System(#[from] rtorb::SystemException),
}

/// The greatest number of lanes of a channel.
pub const LANES_MAX: usize = 64;

/// The least value of [`ChannelConfig::event_bytes_max`] in bytes.
pub const EVENT_BYTES_MIN: usize = 64;

impl Default for ChannelConfig {
    fn default() -> Self {
        Self {
            key: "EventService".to_owned(),
            dispatching: Dispatching::default(),
            lanes: vec![Priority::MIN],
            lane_threads: ThreadConfig::default(),
            filter: FilterKind::default(),
            when_full: WhenFull::default(),
            consumers_max: 128,
            suppliers_max: 1024,
            queue_events: 256,
            queue_bytes: 64 << 10,
            intake_events: 256,
            intake_bytes: 64 << 10,
            event_bytes_max: 16 << 10,
            entries_max: 256,
            turn_events: 16,
            connect_within: Duration::from_secs(60),
            retry: Duration::from_millis(1),
            hang_timeout: Duration::from_secs(5),
            ping_every: Duration::from_secs(10),
            ping_timeout: Duration::from_secs(1),
            goodbye_timeout: Duration::from_secs(2),
        }
    }
}

impl ChannelConfig {
    /// Checks that every value is in its range.
    ///
    /// # Errors
    /// [`ChannelError::Config`] for the first value that is not.
    pub fn check(&self) -> Result<(), ChannelError> {
        if self.key.is_empty() || self.key.len() > KEY_BYTES_MAX {
            return Err(wrong("key", &self.key, "1 to 255 bytes"));
        }
        self.check_lanes()?;
        within("consumers_max", self.consumers_max, 1..=PEERS_MAX)?;
        within("suppliers_max", self.suppliers_max, 1..=PEERS_MAX)?;
        within("queue_events", self.queue_events, 1..=1 << 20)?;
        within("intake_events", self.intake_events, 1..=1 << 20)?;
        within(
            "event_bytes_max",
            self.event_bytes_max,
            EVENT_BYTES_MIN..=16 << 20,
        )?;
        within(
            "queue_bytes",
            self.queue_bytes,
            self.event_bytes_max..=1 << 30,
        )?;
        within(
            "intake_bytes",
            self.intake_bytes,
            self.event_bytes_max..=1 << 30,
        )?;
        within("entries_max", self.entries_max, 1..=4096)?;
        within("turn_events", self.turn_events, 1..=65_536)?;
        let (ms, minute, hour) = (
            Duration::from_millis,
            Duration::from_secs(60),
            Duration::from_secs(3600),
        );
        lasting(
            "retry",
            self.retry,
            Duration::from_micros(100)..=Duration::from_secs(1),
        )?;
        lasting("connect_within", self.connect_within, ms(10)..=hour)?;
        lasting("hang_timeout", self.hang_timeout, ms(10)..=hour)?;
        lasting("ping_every", self.ping_every, ms(10)..=hour)?;
        lasting("ping_timeout", self.ping_timeout, ms(1)..=minute)?;
        lasting("goodbye_timeout", self.goodbye_timeout, ms(1)..=minute)?;
        match self.when_full {
            WhenFull::Wait { at_most } => lasting("when_full", at_most, Duration::ZERO..=minute),
            _ => Ok(()),
        }
    }

    /// Raises an ORB's limits of connections and objects to what the channel, its consumers and its suppliers need.
    #[must_use]
    pub fn limits(&self, mut limits: Limits) -> Limits {
        let peers = self.consumers_max + self.suppliers_max;
        limits.shared_connections_max = limits.shared_connections_max.max(2 * self.consumers_max);
        limits.connections_max = limits.connections_max.max(peers + CONNECTIONS_OF_OTHERS);
        limits.objects_max = limits.objects_max.max(peers + OBJECTS_OF_OTHERS);
        limits
    }

    fn check_lanes(&self) -> Result<(), ChannelError> {
        within("the number of lanes", self.lanes.len(), 1..=LANES_MAX)?;
        let falls = |pair: &[Priority]| pair[0] > pair[1];
        if self.lanes.windows(2).all(falls) {
            return Ok(());
        }
        let lanes = self.lanes.iter().map(|lane| lane.get().to_string());
        let lanes = lanes.collect::<Vec<_>>().join(",");
        Err(wrong(
            "lanes",
            &lanes,
            "different priorities, the most urgent first",
        ))
    }
}

/// Connections of observers and of clients that neither push nor consume.
const CONNECTIONS_OF_OTHERS: usize = 64;

/// The channel's own objects and other objects of the ORB.
const OBJECTS_OF_OTHERS: usize = 64;

/// The longest object key of a channel: it is to be typed in a `corbaloc:`.
const KEY_BYTES_MAX: usize = 255;

/// The default limit of open files of a process.
const PEERS_MAX: usize = 65_536;

fn wrong(name: &'static str, value: &str, right: &str) -> ChannelError {
    ChannelError::Config {
        name,
        value: value.to_owned(),
        right: right.to_owned(),
    }
}

fn within(
    name: &'static str,
    value: usize,
    range: RangeInclusive<usize>,
) -> Result<(), ChannelError> {
    if range.contains(&value) {
        Ok(())
    } else {
        Err(wrong(
            name,
            &value.to_string(),
            &format!("{} to {}", range.start(), range.end()),
        ))
    }
}

fn lasting(
    name: &'static str,
    value: Duration,
    range: RangeInclusive<Duration>,
) -> Result<(), ChannelError> {
    if range.contains(&value) {
        Ok(())
    } else {
        Err(wrong(
            name,
            &format!("{value:?}"),
            &format!("{:?} to {:?}", range.start(), range.end()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut ChannelConfig)) -> String {
        let mut config = ChannelConfig::default();
        change(&mut config);
        config.check().expect_err("out of range").to_string()
    }

    #[test]
    fn the_default_is_within_its_ranges() {
        assert_eq!(ChannelConfig::default().check(), Ok(()));
    }

    #[test]
    fn what_is_out_of_range_is_named_with_what_is_right() {
        let said = refused(|config| config.queue_events = 0);
        assert_eq!(
            said,
            "event channel: queue_events is 0, and must be 1 to 1048576"
        );
        let said = refused(|config| config.queue_bytes = 1000);
        assert!(said.contains("16384 to"), "{said}");
        let said = refused(|config| config.retry = Duration::ZERO);
        assert!(said.contains("100µs to 1s"), "{said}");
    }

    #[test]
    fn lanes_fall_in_priority() {
        let said = refused(|config| config.lanes = vec![Priority::MIN, Priority::MAX]);
        assert!(said.contains("the most urgent first"), "{said}");
        let said = refused(|config| config.lanes.clear());
        assert!(said.contains("the number of lanes is 0"), "{said}");
    }
}
