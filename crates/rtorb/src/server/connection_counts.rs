//! Counters of a server's connections: how many were accepted and refused, and how many a limit ended.

use core::sync::atomic::{AtomicU64, Ordering};

/// The connections of a server since it started, and those that a limit refused or ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionCounts {
    /// Connections that the server accepted, without those that it refused.
    pub accepted: u64,
    /// Clients that were refused, because the connections that [`Limits`](crate::Limits) allows, or the file descriptors of the process,
    /// were all in use, or because the host had no thread for one, or could not watch one more.
    pub refused: u64,
    /// Idle connections that gave way to another client.
    pub gave_way: u64,
    /// Connections that ended because their clients sent bytes that are no GIOP message or break a limit.
    pub malformed: u64,
    /// Connections that ended because a message did not arrive within `Limits::receive_timeout`.
    pub slow_senders: u64,
    /// Connections that ended because their clients did not take replies: within `Limits::send_timeout`, or within the bound on unsent
    /// bytes.
    pub slow_receivers: u64,
    /// Times that strangers waited for the next period, because `Limits::stranger_turns_max` had begun in this one.
    pub held_back: u64,
}

/// What happened to a connection, or to strangers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionOutcome {
    Accepted,
    Refused,
    GaveWay,
    Malformed,
    SlowSender,
    SlowReceiver,
    HeldBack,
}

/// The counters of a server. None of them is on the path of a call.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounters([AtomicU64; 7]);

impl ConnectionCounters {
    /// Counts a connection with this outcome.
    #[cold]
    pub(crate) fn note(&self, outcome: ConnectionOutcome) {
        self.0[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a client as refused that was [counted](Self::note) as accepted.
    #[cold]
    pub(super) fn note_refused_after_all(&self) {
        self.0[ConnectionOutcome::Accepted as usize].fetch_sub(1, Ordering::Relaxed);
        self.note(ConnectionOutcome::Refused);
    }

    pub(crate) fn snapshot(&self) -> ConnectionCounts {
        let count = |outcome: ConnectionOutcome| self.0[outcome as usize].load(Ordering::Relaxed);
        ConnectionCounts {
            accepted: count(ConnectionOutcome::Accepted),
            refused: count(ConnectionOutcome::Refused),
            gave_way: count(ConnectionOutcome::GaveWay),
            malformed: count(ConnectionOutcome::Malformed),
            slow_senders: count(ConnectionOutcome::SlowSender),
            slow_receivers: count(ConnectionOutcome::SlowReceiver),
            held_back: count(ConnectionOutcome::HeldBack),
        }
    }
}
