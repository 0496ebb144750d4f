//! A lock-free queue of slot numbers, each in the queue at most once: the order of a [`Ring`](crate::ring::Ring).
//!
//! After C.-H. Shann, T.-L. Huang, C. Chen, *A Practical Nonblocking Queue Algorithm Using Compare-and-Swap*, ICPADS 2000.
//! Every word has a count beside its number, which distinguishes a word of this lap from one of the last. A thread that
//! finds a changed word whose end of the queue was not moved yet moves the end itself.

use crate::atomics::{AtomicU64, Ordering};

/// A queue of slot numbers.
pub(crate) struct Indices {
    /// Lap (upper half), and 0 or the number plus one. Taking a number leaves the word empty with the next lap.
    words: Box<[AtomicU64]>,
    /// The position of the next take, counted over all laps. Its word shows whether the number was taken already.
    head: Line,
    /// The position of the next put, counted in the same way.
    tail: Line,
}

/// A counter on its own cache line, and on the neighbour line that the CPU fetches with it.
#[repr(align(128))]
struct Line(AtomicU64);

impl Indices {
    /// An empty queue with room for `count` numbers.
    pub(crate) fn empty(count: usize) -> Self {
        Self::with(count, 0)
    }

    /// A queue of all numbers below `count`.
    pub(crate) fn all(count: usize) -> Self {
        Self::with(count, count)
    }

    fn with(room: usize, filled: usize) -> Self {
        // A power of two, so that laps continue when the counts wrap.
        let words = room.next_power_of_two();
        let word = |place: usize| {
            if place < filled {
                full(0, place as u32)
            } else {
                empty(0)
            }
        };
        Self {
            words: (0..words)
                .map(|place| AtomicU64::new(word(place)))
                .collect(),
            head: Line(AtomicU64::new(0)),
            // The end of a full queue is the first word of the next lap, unless there are more words than numbers.
            tail: Line(AtomicU64::new(filled as u64)),
        }
    }

    /// Adds a number that is in no queue. There is always room, because there is a word for each number.
    pub(crate) fn put(&self, index: u32) {
        loop {
            let tail = self.tail.0.load(Ordering::Acquire);
            let word = self.word(tail);
            let vacant = empty(self.lap(tail));
            let put = word.compare_exchange(
                vacant,
                full(self.lap(tail), index),
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            // This thread or another one put a number at `tail`.
            self.advance(&self.tail, tail);
            if put.is_ok() {
                return;
            }
        }
    }

    /// Takes the oldest number; `None` if the queue was empty.
    pub(crate) fn take(&self) -> Option<u32> {
        loop {
            let head = self.head.0.load(Ordering::Acquire);
            let word = self.word(head);
            let seen = word.load(Ordering::Acquire);
            if seen == empty(self.lap(head)) {
                return None;
            }
            let taken = (seen >> 32 == self.lap(head))
                && word
                    .compare_exchange(
                        seen,
                        empty(self.lap(head) + 1),
                        Ordering::AcqRel,
                        Ordering::Acquire,
                    )
                    .is_ok();
            // This thread or another one took the number at `head`.
            self.advance(&self.head, head);
            if taken {
                return Some(seen as u32 - 1);
            }
        }
    }

    /// The approximate length at some moment of the call.
    pub(crate) fn len(&self) -> usize {
        let head = self.head.0.load(Ordering::Acquire);
        let tail = self.tail.0.load(Ordering::Acquire);
        tail.saturating_sub(head) as usize
    }

    fn advance(&self, end: &Line, from: u64) {
        // It fails when another thread has done it.
        let _ = end
            .0
            .compare_exchange(from, from + 1, Ordering::AcqRel, Ordering::Relaxed);
    }

    fn word(&self, position: u64) -> &AtomicU64 {
        &self.words[(position & (self.words.len() as u64 - 1)) as usize]
    }

    /// The lap of a position, modulo 2^32. A thread that is preempted between reading a position and its word for exactly
    /// 2^32 laps would mistake one lap for the other.
    fn lap(&self, position: u64) -> u64 {
        position >> self.words.len().ilog2() & LAP_MAX
    }
}

const LAP_MAX: u64 = u32::MAX as u64;

fn empty(lap: u64) -> u64 {
    (lap & LAP_MAX) << 32
}

fn full(lap: u64, index: u32) -> u64 {
    empty(lap) | u64::from(index + 1)
}
