//! The account of a bounded queue of requests: how many are in progress, and how many bytes wait.

use crate::atomics::{AtomicU32, AtomicU64, Ordering};

/// Decides which requests a queue accepts.
///
/// One thread [admits](Self::admit) requests and adds them to the queue. Any thread takes one out, which it [notes](Self::note_taken),
/// and notes [when it is served](Self::note_served). A request that was admitted and could not be added is
/// [withdrawn](Self::withdraw), so that it takes no room for ever.
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
    /// For a queue of at most so many waiting requests and bytes.
    pub fn new(requests_max: u32, bytes_max: u64) -> Self {
        Self {
            accepted: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
            requests_max,
            bytes_max,
        }
    }

    /// Counts a request of so many bytes; false if there is no room.
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

    /// Counts off a request that was admitted and is not in the queue.
    #[cold]
    pub fn withdraw(&self, bytes: u64) {
        self.note_taken(bytes);
        self.note_served();
    }

    /// Counts off the bytes of a request that a thread has taken out.
    pub fn note_taken(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts off a request that was taken out and is served.
    pub fn note_served(&self) {
        self.accepted.fetch_sub(1, Ordering::Release);
    }

    /// The number of requests that were admitted and not served yet.
    pub fn accepted(&self) -> u32 {
        self.accepted.load(Ordering::Acquire)
    }
}
