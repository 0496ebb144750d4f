//! What a channel counts, so that every event is accounted for.
//!
//! For each consumer at any moment: `received = delivered + discarded.all() + waiting`.

use serde::Serialize;

/// What a channel has counted since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// Events that came from suppliers.
    pub received: u64,
    /// Those of them that were discarded at the door, whoever wanted them.
    pub refused: Refused,
    /// Suppliers that are connected.
    pub suppliers: u64,
    /// Events that lanes have taken and not yet offered to their consumers; they wait, though no consumer has counted them. One that
    /// several lanes have is counted for each.
    pub undistributed: u64,
    /// Consumers that are connected, each with its own counts, most urgent first.
    pub consumers: Vec<ConsumerStatistics>,
    /// Consumers that are connected no more.
    pub departed: Departed,
    /// The suppliers one by one, in the order of connecting.
    pub connected_suppliers: Vec<SupplierStatistics>,
}

/// Events that no consumer was asked about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Refused {
    /// Larger than `event_octets_max`.
    pub too_large: u64,
    /// By a proxy without a connected supplier.
    pub not_connected: u64,
    /// Messages that are no events.
    pub malformed: u64,
}

/// What one consumer's share is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConsumerStatistics {
    /// Its number, given in the order of connecting and never again.
    pub number: u64,
    /// The CORBA priority of its lane.
    pub lane: i16,
    /// How its connection stands.
    pub connection: ConnectionState,
    /// True between suspend_connection and resume_connection.
    pub is_suspended: bool,
    /// Its events.
    pub events: Counts,
    /// Events that its conjunctions should have remembered, and had no room for.
    pub forgotten: u64,
    /// Moments of its timeouts that went by unseen since its lane was late.
    pub timeouts_missed: u64,
    /// Octets of the events in its queue.
    pub queued_octets: u64,
}

/// A supplier that is connected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SupplierStatistics {
    /// Its number, given in the order of connecting and never again.
    pub number: u64,
    /// True if it says that it is a gateway.
    pub is_gateway: bool,
    /// What it said that it publishes.
    pub publications: Vec<Published>,
}

/// Source and type, as a supplier's publication says them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Published {
    /// 0 is any.
    pub source: i32,
    /// 0 is any.
    pub event_type: i32,
}

/// How a consumer's connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConnectionState {
    /// It is being opened, for the first time or again; events wait.
    Opening,
    /// It takes what it is sent.
    Open,
    /// It takes no more for now; events wait.
    Clogged,
    /// It is no more.
    Gone,
}

/// The events of a consumer; those that its subscription let through, and those of its timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// All of them.
    pub received: u64,
    /// Those that its connection has taken whole; a oneway tells no more.
    pub delivered: u64,
    /// Those that it will not get.
    pub discarded: Discarded,
    /// Those that are in its queue, wait for room there, or are being sent.
    pub waiting: u64,
}

/// Why events were discarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Discarded {
    /// Its queue was full.
    pub full: u64,
    /// It was suspended.
    pub suspended: u64,
    /// They were being sent when the connection broke: whether they arrived cannot be known, and they are not sent twice.
    pub broken: u64,
    /// They waited when it was disconnected or dropped, or came after that.
    pub gone: u64,
    /// They cannot be written for it: octets that are no events, or values that its GIOP version does not have.
    pub unsendable: u64,
}

/// Consumers that are connected no more, by how they went, and the sum of their events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Departed {
    /// They disconnected.
    pub disconnected: u64,
    /// They were not there any more.
    pub dead: u64,
    /// They took nothing for `hang_timeout` while events waited.
    pub hung: u64,
    /// Their queue was full, and [`WhenFull::Disconnect`](super::WhenFull::Disconnect) was chosen.
    pub full: u64,
    /// Their events.
    pub events: Counts,
}

impl Counts {
    /// True if every event is accounted for.
    pub fn is_balanced(&self) -> bool {
        self.received == self.delivered + self.discarded.all() + self.waiting
    }

    /// Adds another consumer's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.delivered += other.delivered;
        self.discarded.add(&other.discarded);
        self.waiting += other.waiting;
    }
}

impl Discarded {
    /// All of them, whatever the reason.
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
    /// All of them, however they went.
    pub fn all(&self) -> u64 {
        self.disconnected + self.dead + self.hung + self.full
    }
}
