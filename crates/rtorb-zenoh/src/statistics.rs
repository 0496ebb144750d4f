//! The counts of a federation's member.

use rtorb_os::sync::Mutex;

/// The counts of a member of a federation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct FederationStatistics {
    /// Events from the channel to the federation.
    pub outgoing: OutgoingStatistics,
    /// Events from the federation to the channel.
    pub incoming: IncomingStatistics,
    /// The number of times that it connected to its channel.
    pub connections: u64,
    /// Other members of this version that are there now.
    pub members: u64,
}

/// The fate of each event that the channel delivered to the member. [`received`](Self::received) is the sum of all others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct OutgoingStatistics {
    /// Events that the channel delivered.
    pub received: u64,
    /// Events passed to Zenoh. It may discard them later, on a full link: those who miss them count them as lost.
    pub published: u64,
    /// Events that came from this federation, and are not sent into it again.
    pub looped_back: u64,
    /// Events whose `ttl` was used up.
    pub expired: u64,
    /// Events discarded because the queue was full.
    pub discarded_full: u64,
    /// Events whose deadline passed while they waited here.
    pub discarded_late: u64,
    /// Events that are larger than the configured size.
    pub discarded_large: u64,
    /// Events with a value that cannot be encoded.
    pub discarded_unsendable: u64,
    /// Events of a type and source beyond the 4,096 of a lane, or which Zenoh did not declare.
    pub discarded_keys: u64,
    /// Events that Zenoh refused: the session is closed, while the member opens it again.
    pub discarded_refused: u64,
}

/// The fate of each event that other members sent. [`arrived`](Self::arrived) is the sum of all others, but for the last two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct IncomingStatistics {
    /// Events that arrived.
    pub arrived: u64,
    /// Events pushed to the channel.
    pub delivered: u64,
    /// Events that wait to be pushed.
    pub waiting: u64,
    /// Events that had come before.
    pub repeated: u64,
    /// Samples that are no events.
    pub malformed: u64,
    /// Samples of members of another version.
    pub other_version: u64,
    /// Events discarded because the queue was full.
    pub discarded_full: u64,
    /// Events whose deadline had passed, or passed while they were pushed.
    pub discarded_late: u64,
    /// Events that are larger than the configured size.
    pub discarded_large: u64,
    /// Events that no consumer of the channel wanted any more when they came, or for which the subscription was just being made.
    pub discarded_unwanted: u64,
    /// Events that waited or were being pushed when the channel was lost, which it cannot encode, or which it did not take within the timeout of
    /// calls.
    pub discarded_lost: u64,
    /// Events that never arrived, by the gaps in the numbers of their publishers.
    pub lost: u64,
    /// Events that were published before this member heard of them, or while no consumer of the channel wanted them.
    pub unsubscribed: u64,
}

impl OutgoingStatistics {
    /// True if each event that was received has one fate.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        let discarded = self.discarded_full
            + self.discarded_late
            + self.discarded_large
            + self.discarded_unsendable
            + self.discarded_keys
            + self.discarded_refused;
        self.received == self.published + self.looped_back + self.expired + discarded
    }
}

impl IncomingStatistics {
    /// The events that arrived and were discarded, but for repeated ones and those that are no events.
    #[must_use]
    pub fn discarded(&self) -> u64 {
        self.discarded_full
            + self.discarded_late
            + self.discarded_large
            + self.discarded_unwanted
            + self.discarded_lost
    }

    /// True if each event that arrived has one fate.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        let refused = self.repeated + self.malformed + self.other_version;
        self.arrived == self.delivered + self.waiting + refused + self.discarded()
    }
}

/// The counts as the threads of a member change them.
#[derive(Debug, Default)]
pub(crate) struct FederationCounts(Mutex<FederationStatistics>);

impl FederationCounts {
    pub(crate) fn change(&self, change: impl FnOnce(&mut FederationStatistics)) {
        change(&mut self.0.lock());
    }

    pub(crate) fn outgoing(&self, change: impl FnOnce(&mut OutgoingStatistics)) {
        change(&mut self.0.lock().outgoing);
    }

    pub(crate) fn incoming(&self, change: impl FnOnce(&mut IncomingStatistics)) {
        change(&mut self.0.lock().incoming);
    }

    pub(crate) fn get(&self) -> FederationStatistics {
        *self.0.lock()
    }
}
