//! The counts of a channel. They account for every event.
//!
//! This holds for each consumer at any moment: `received = delivered + discarded.all() + waiting`.

use serde::Serialize;

/// The counts of a channel since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// Events that came from suppliers.
    pub received: u64,
    /// What the channel discarded before it looked for consumers.
    pub refused: Refused,
    /// Connected suppliers.
    pub suppliers: u64,
    /// Events that lanes have not distributed to their consumers yet. No consumer has counted them. An event that several lanes
    /// have counts once for each.
    pub undistributed: u64,
    /// Connected consumers with their counts, the most urgent first.
    pub consumers: Vec<ConsumerStatistics>,
    /// Consumers that have departed.
    pub departed: Departed,
    /// The connected suppliers, in the order in which their proxies were obtained.
    pub connected_suppliers: Vec<SupplierStatistics>,
}

/// What the channel discarded before it looked for consumers. `received` contains the events, and no malformed push.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Refused {
    /// Events larger than `event_bytes_max`.
    pub too_large: u64,
    /// Events pushed to a proxy without a connected supplier.
    pub not_connected: u64,
    /// Pushes whose bytes are not events. The events before the wrong bytes are received and dispatched.
    pub malformed: u64,
}

/// The counts of one consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConsumerStatistics {
    /// Its number, assigned when its proxy was obtained and never reused. Later proxies have higher numbers.
    pub number: u64,
    /// The CORBA priority of its lane.
    pub lane: i16,
    /// The state of its connection.
    pub connection: ConnectionState,
    /// True between suspend_connection and resume_connection.
    pub is_suspended: bool,
    /// Its events.
    pub events: Counts,
    /// Events that its conjunctions had no room to remember.
    pub forgotten: u64,
    /// Timeouts that it missed because its lane was late.
    pub timeouts_missed: u64,
    /// Bytes of the events in its queue.
    pub queued_octets: u64,
}

/// A connected supplier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SupplierStatistics {
    /// Its number, assigned when its proxy was obtained and never reused. Later proxies have higher numbers.
    pub number: u64,
    /// True if it declared itself a gateway.
    pub is_gateway: bool,
    /// Its declared publications.
    pub publications: Vec<Published>,
}

/// The source and type of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Published {
    /// 0 is any.
    pub source: i32,
    /// 0 is any.
    pub event_type: i32,
}

/// The state of a consumer's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConnectionState {
    /// The channel is opening it, for the first time or again; events wait.
    Opening,
    /// The consumer takes events.
    Open,
    /// The consumer takes no more at the moment; events wait.
    Clogged,
    /// The consumer has departed.
    Gone,
}

/// The events of a consumer: those that its subscription let through and those of its timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// All of them.
    pub received: u64,
    /// Events that its connection took whole. A oneway gives no further confirmation.
    pub delivered: u64,
    /// Events that it will not get.
    pub discarded: Discarded,
    /// Events that are in its queue, wait for room there, or are being sent.
    pub waiting: u64,
}

/// Why events were discarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Discarded {
    /// Events that found the consumer's queue full.
    pub full: u64,
    /// Events that came while the consumer was suspended.
    pub suspended: u64,
    /// Events that were being sent when the connection broke. They may have arrived, and are not sent again.
    pub broken: u64,
    /// Events that waited when the consumer departed, or came after that.
    pub gone: u64,
    /// Events that cannot be encoded for the consumer: bytes that are not events, or values that its GIOP version does not have.
    pub unsendable: u64,
}

/// Departed consumers by reason, and the sum of their events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Departed {
    /// Consumers that disconnected.
    pub disconnected: u64,
    /// Consumers that did not exist any more.
    pub dead: u64,
    /// Consumers that took nothing for `hang_timeout` while events waited.
    pub hung: u64,
    /// Their queue was full and [`WhenFull::Disconnect`](super::WhenFull::Disconnect) was chosen.
    pub full: u64,
    /// Their events.
    pub events: Counts,
}

impl Counts {
    /// True if the counts account for every event.
    pub fn is_balanced(&self) -> bool {
        self.received == self.delivered + self.discarded.all() + self.waiting
    }

    /// Adds the counts of another consumer.
    pub(crate) fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.delivered += other.delivered;
        self.discarded.add(&other.discarded);
        self.waiting += other.waiting;
    }
}

impl Discarded {
    /// The sum of all reasons.
    pub fn all(&self) -> u64 {
        self.full + self.suspended + self.broken + self.gone + self.unsendable
    }

    fn add(&mut self, other: &Self) {
        self.full += other.full;
        self.suspended += other.suspended;
        self.broken += other.broken;
        self.gone += other.gone;
        self.unsendable += other.unsendable;
    }
}

impl Departed {
    /// The sum of all reasons.
    pub fn all(&self) -> u64 {
        self.disconnected + self.dead + self.hung + self.full
    }
}
