//! The numbers of a server's handshakes, by how they ended.

use core::sync::atomic::{AtomicU64, Ordering};

/// The handshakes of a server that are over, by how they ended.
///
/// They count from the [`Tls`](crate::Tls)'s beginning, for all its ports together. They are not an atomic snapshot: handshakes go on while they
/// are read. A client that goes by itself before its handshake is over, such as one that looks whether the port is open, is in none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandshakeCounts {
    /// Handshakes that made a connection.
    pub completed: u64,
    /// Clients that were refused: by their certificate or the lack of one, an error of TLS, or bytes that are no TLS.
    pub refused: u64,
    /// Clients that did not end their handshake within
    /// [`handshake_timeout`](crate::TlsBuilder::handshake_timeout).
    pub late: u64,
    /// Clients that gave their place up to one that waited, because
    /// [`handshakes_at_once`](crate::TlsBuilder::handshakes_at_once) were in progress.
    pub gave_way: u64,
}

/// The counters that the thread of the handshakes adds to.
#[derive(Debug, Default)]
pub(crate) struct HandshakeCounters {
    pub(crate) completed: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) late: AtomicU64,
    pub(crate) gave_way: AtomicU64,
}

impl HandshakeCounters {
    /// Returns the numbers so far.
    pub(crate) fn read(&self) -> HandshakeCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        HandshakeCounts {
            completed: of(&self.completed),
            refused: of(&self.refused),
            late: of(&self.late),
            gave_way: of(&self.gave_way),
        }
    }
}

/// Counts one more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
