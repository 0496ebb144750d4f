//! A queue of slot numbers of which each is in one place at a time: the order of a [`Ring`](super::Ring).
//!
//! After C.-H. Shann, T.-L. Huang, C. Chen, *A Practical Nonblocking Queue Algorithm Using Compare-and-Swap*, ICPADS 2000:
//! every word has a count beside its number, which tells a word of this lap from one of the last; who finds that another
//! thread changed a word and did not move the end yet, moves it in its place.

use crate::atomics::{AtomicU64, Ordering};

/// The queue.
pub(super) struct Indices {
    /// Lap (upper half), and 0 or the number plus one. A lap that begins empty ends empty with the next lap's number.
    words: Box<[AtomicU64]>,
    /// Where the next is taken, counted over all laps; the word there tells whether it was taken already.
    head: Line,
    /// Where the next is put, likewise.
    tail: Line,
}

/// On a cache line (and its neighbour, which is fetched with it) of its own.
#[repr(align(128))]
struct Line(AtomicU64);

impl Indices {
    /// Room for `count` numbers, and none in it.
    pub(super) fn none(count: usize) -> Self {
        Self::with(count, 0)
    }

    /// All numbers below `count`.
    pub(super) fn all(count: usize) -> Self {
        Self::with(count, count)
    }

    fn with(room: usize, filled: usize) -> Self {
        // Powers of two, so that laps go on where the counts wrap around.
        let words = room.next_power_of_two();
        let word = |place: usize| match place < filled {
            true => full(0, place as u32),
            false => empty(0),
        };
        Self {
            words: (0..words)
                .map(|place| AtomicU64::new(word(place)))
                .collect(),
            head: Line(AtomicU64::new(0)),
            // A full one has its end in the next lap, at the first word, unless there are more words than numbers.
            tail: Line(AtomicU64::new(filled as u64)),
        }
    }

    /// Adds a number that is in no queue; there is room for it, as there is for each.
    pub(super) fn put(&self, index: u32) {
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
            // Ours, or another's who did not get to it yet: either way something was put at `tail`.
            self.advance(&self.tail, tail);
            if put.is_ok() {
                return;
            }
        }
    }

    /// Takes the oldest number; `None` if there was none.
    pub(super) fn take(&self) -> Option<u32> {
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
            // By us, or by another who did not get to it yet.
            self.advance(&self.head, head);
            if taken {
                return Some(seen as u32 - 1);
            }
        }
    }

    /// How many are in it, at some moment and about.
    pub(super) fn len(&self) -> usize {
        let head = self.head.0.load(Ordering::Acquire);
        let tail = self.tail.0.load(Ordering::Acquire);
        tail.saturating_sub(head) as usize
    }

    fn advance(&self, end: &Line, from: u64) {
        // It fails when somebody else did it.
        let _ = end
            .0
            .compare_exchange(from, from + 1, Ordering::AcqRel, Ordering::Relaxed);
    }

    fn word(&self, position: u64) -> &AtomicU64 {
        &self.words[(position & (self.words.len() as u64 - 1)) as usize]
    }

    /// The lap of a position, modulo 2^32: a thread that is stopped between reading a position and its word for exactly 2^32
    /// laps would take one for the other.
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
