//! What is chosen for a channel, each with a default, a range and a reason.

use super::filter::FilterKind;
use rtorb::rt::Priority;
use rtorb::{Limits, ThreadConfig};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The choices for a channel. Everything that grows has a bound here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelConfig {
    /// The object key of the channel, which is also its initial reference's name: `corbaloc::host:port/KEY`.
    pub key: String,
    /// Which thread hands an event to a consumer.
    pub dispatching: Dispatching,
    /// The CORBA priorities of the lanes, each a thread, most urgent first; 1 to [`LANES_MAX`]. A consumer goes to the least
    /// urgent one that is at least as urgent as it is, and to the most urgent where it is above them all.
    pub lanes: Vec<Priority>,
    /// CPUs and stacks of the lanes' threads; their policy is that of their priority.
    pub lane_threads: ThreadConfig,
    /// In which form subscriptions are written.
    pub filter: FilterKind,
    /// What becomes of an event for whose consumer there is no room.
    pub when_full: WhenFull,
    /// Consumers at a time, 1 to 65,536 (default 128): each has a queue, and up to two connections; see
    /// [`limits`](Self::limits).
    pub consumers_max: usize,
    /// Suppliers at a time, 1 to 65,536 (default 1,024).
    pub suppliers_max: usize,
    /// Events that wait for one consumer, 1 to 1,048,576 (default 256); those of a conjunction that go together count as one.
    pub queue_events: usize,
    /// Octets of the events that wait for one consumer (default 64 KiB), reserved when it connects; at least
    /// `event_octets_max`, at most 1 GiB.
    pub queue_octets: usize,
    /// Events that a lane has taken and not yet distributed to its consumers, 1 to 1,048,576 (default 256). What a lane that is kept
    /// from its CPU gets beyond them, the thread that it comes in on has to distribute: as many as come while it is kept.
    pub intake_events: usize,
    /// Octets of these events (default 64 KiB), reserved for each lane at the start; at least `event_octets_max`, at most 1 GiB.
    pub intake_octets: usize,
    /// Octets of one event, header included, 64 to 16 MiB (default 16 KiB); a larger one is discarded, and counted.
    pub event_octets_max: usize,
    /// Entries of one subscription or publication, 1 to 4,096 (default 256): a filtered one looks at each of them for every event
    /// that its keys match, while its consumer's lock is held; each one also costs a lookup that is made anew.
    pub entries_max: usize,
    /// Events that a lane sends to one consumer before it turns to the next, 1 to 65,536 (default 16).
    pub turn_events: usize,
    /// How long a proxy waits for somebody to connect to it, 10 ms to 1 h (default 1 min); then it is gone.
    pub connect_within: Duration,
    /// How long after a consumer's connection took no more it is looked at again, 100 us to 1 s (default 1 ms).
    pub retry: Duration,
    /// How long a consumer may take nothing while events wait for it, 10 ms to 1 h (default 5 s); then it is dropped.
    pub hang_timeout: Duration,
    /// How often consumers and suppliers of which nothing was heard are asked whether they are there, 10 ms to 1 h (default
    /// 10 s).
    pub ping_every: Duration,
    /// How long such an answer may take, and each goodbye, 1 ms to 1 min (default 1 s).
    pub ping_timeout: Duration,
    /// How long telling everybody that the channel ends may take altogether, 1 ms to 1 min (default 2 s).
    pub goodbye_timeout: Duration,
}

/// Which thread hands an event to a consumer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dispatching {
    /// The supplier's serving thread where it has the lane's very priority, the lane's thread otherwise.
    #[default]
    Priority,
    /// Always the supplier's serving thread, while the consumer takes what it is sent. No hand-over, but a less urgent
    /// supplier's thread may be the one that sends when a more urgent one's event comes, which then waits for it.
    Reactive,
    /// Always the lane's thread: the supplier's is free as soon as the event is in the queues.
    Lanes,
}

/// What becomes of an event for whose consumer there is no room. All but `Wait` cost others nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// The oldest that waits makes room (CosNotification's FifoOrder).
    #[default]
    DiscardOldest,
    /// It is discarded.
    DiscardNewest,
    /// The supplier's serving thread waits for room, so that the supplier is slowed down in the end; what finds none is
    /// discarded. Whatever else comes on the supplier's connection waits too, whomever it is for.
    Wait {
        /// How long for one event, up to 1 min.
        at_most: Duration,
    },
    /// The consumer is disconnected.
    Disconnect,
}

/// Why a channel cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// A choice is out of its range.
    #[error("event channel: {name} is {value}, and must be {right}")]
    Config {
        /// The field of [`ChannelConfig`].
        name: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        right: String,
    },
    /// The ORB shares its connections in another way than a channel needs.
    #[error(
        "event channel: the ORB has connection strategy {connection} and wait strategy {}; build it with multiplexed and read, so that a consumer's connection is its reference's own",
        .connection.wait()
    )]
    Strategies {
        /// The ORB's connection strategy.
        connection: rtorb::ConnectionStrategy,
    },
    /// The ORB may have too few connections.
    #[error(
        "event channel: consumers_max is {consumers_max}, and the ORB's limit of shared_connections_max is {connections_max}; each consumer takes two"
    )]
    Connections {
        /// As configured.
        consumers_max: usize,
        /// The ORB's limit.
        connections_max: usize,
    },
    /// The host or the ORB's priority mapping refuses a thread of the channel, and best effort was not chosen.
    #[error("event channel: no thread of CORBA priority {priority} for {thread}: {reason}")]
    Thread {
        /// Which one.
        thread: &'static str,
        /// The CORBA priority that it shall have.
        priority: Priority,
        /// What was said.
        reason: String,
    },
    /// The ORB refuses the channel's object key.
    #[error("event channel: key: {0}")]
    Key(#[from] rtorb::ObjectKeyError),
    /// The adapter refuses.
    #[error("event channel: {0}")]
    Poa(#[from] rtorb::PoaError),
    /// The ORB refuses.
    #[error("event channel: {0}")]
    System(#[from] rtorb::SystemException),
}

/// Lanes of one channel.
pub const LANES_MAX: usize = 64;

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
            queue_octets: 64 << 10,
            intake_events: 256,
            intake_octets: 64 << 10,
            event_octets_max: 16 << 10,
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
    /// Looks whether every choice is in its range.
    ///
    /// # Errors
    /// [`ChannelError::Config`] with the first that is not, and what it may be.
    pub fn check(&self) -> Result<(), ChannelError> {
        if self.key.is_empty() || self.key.len() > KEY_OCTETS_MAX {
            return Err(wrong("key", &self.key, "1 to 255 octets"));
        }
        self.check_lanes()?;
        within("consumers_max", self.consumers_max, 1..=PEERS_MAX)?;
        within("suppliers_max", self.suppliers_max, 1..=PEERS_MAX)?;
        within("queue_events", self.queue_events, 1..=1 << 20)?;
        within("intake_events", self.intake_events, 1..=1 << 20)?;
        within("event_octets_max", self.event_octets_max, 64..=16 << 20)?;
        within(
            "queue_octets",
            self.queue_octets,
            self.event_octets_max..=1 << 30,
        )?;
        within(
            "intake_octets",
            self.intake_octets,
            self.event_octets_max..=1 << 30,
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

    /// An ORB's limits, raised where the channel needs more connections and objects: those to consumers, and those of consumers
    /// and suppliers.
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
        match self.lanes.windows(2).all(falls) {
            true => Ok(()),
            false => Err(wrong(
                "lanes",
                &format!("{:?}", self.lanes),
                "different priorities, the most urgent first",
            )),
        }
    }
}

/// Whoever only asks, and observers.
const CONNECTIONS_OF_OTHERS: usize = 64;

/// The channel's own objects, and what else the ORB serves.
const OBJECTS_OF_OTHERS: usize = 64;

/// Octets of an object key that anybody would still type.
const KEY_OCTETS_MAX: usize = 255;

/// More sockets than this no process has by default.
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
    match range.contains(&value) {
        true => Ok(()),
        false => Err(wrong(
            name,
            &value.to_string(),
            &format!("{} to {}", range.start(), range.end()),
        )),
    }
}

fn lasting(
    name: &'static str,
    value: Duration,
    range: RangeInclusive<Duration>,
) -> Result<(), ChannelError> {
    match range.contains(&value) {
        true => Ok(()),
        false => Err(wrong(
            name,
            &format!("{value:?}"),
            &format!("{:?} to {:?}", range.start(), range.end()),
        )),
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
        let said = refused(|config| config.queue_octets = 1000);
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
