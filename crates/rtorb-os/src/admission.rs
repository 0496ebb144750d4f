//! Counts the requests and bytes of a bounded queue, and decides whether one more fits.

use crate::atomics::{AtomicU32, AtomicU64, Ordering};

/// Decides which requests a queue accepts.
///
/// One thread [admits](Self::admit) requests and adds them to the queue. Any thread takes one out, which it [notes](Self::note_taken),
/// and notes [when it is served](Self::note_served). A request that was admitted and will not be served is [withdrawn](Self::withdraw),
/// which gives its room back.
#[derive(Debug)]
pub struct Admission {
    /// The number of requests that were admitted and not served yet.
    accepted: AtomicU32,
    /// The bytes of the requests that no thread has taken yet.
    bytes: AtomicU64,
    requests_max: u32,
    bytes_max: u64,
}

impl Admission {
    /// Counts for a queue of at most `requests_max` waiting requests and `bytes_max` waiting bytes.
    pub fn new(requests_max: u32, bytes_max: u64) -> Self {
        Self {
            accepted: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
            requests_max,
            bytes_max,
        }
    }

    /// Counts a request of `bytes` bytes. Returns false if there is no room for it.
    ///
    /// Only one thread calls this, so that no other can take the room meanwhile. If one of the queue's `threads` is free for the
    /// request, it needs no room.
    pub fn admit(&self, bytes: u64, threads: u32) -> bool {
        let accepted = self.accepted();
        let waiting = self.bytes.load(Ordering::Relaxed);
        let fits = accepted < threads
            || accepted - threads < self.requests_max
                && bytes <= self.bytes_max.saturating_sub(waiting);
        if fits {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.accepted.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    /// Returns true if `bytes` bytes fit once waiting requests of `freed` bytes are [withdrawn](Self::withdraw).
    #[cold]
    pub fn would_fit(&self, bytes: u64, freed: u64) -> bool {
        let waiting = self.bytes.load(Ordering::Relaxed).saturating_sub(freed);
        bytes <= self.bytes_max.saturating_sub(waiting)
    }

    /// Subtracts a request that was admitted, and that no thread takes out of the queue.
    #[cold]
    pub fn withdraw(&self, bytes: u64) {
        self.note_taken(bytes);
        self.note_served();
    }

    /// Subtracts the bytes of a request that a thread has taken out.
    pub fn note_taken(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Subtracts a request that was taken out and is served.
    pub fn note_served(&self) {
        self.accepted.fetch_sub(1, Ordering::Release);
    }

    /// The number of requests that were admitted and not served yet.
    pub fn accepted(&self) -> u32 {
        self.accepted.load(Ordering::Acquire)
    }
}
