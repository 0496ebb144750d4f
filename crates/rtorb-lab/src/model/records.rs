//! What the processes of a run keep of every job and of every gap, in memory that is there before the start.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A job of a behaviour that was done. Times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Job {
    /// Where in the tree of calls.
    pub(crate) place: u32,
    /// Which job of the root.
    pub(crate) number: u32,
    /// When the root's job arrived.
    pub(crate) release_ns: u64,
    /// When its own code began.
    pub(crate) begin_ns: u64,
    /// When its own code was done.
    pub(crate) own_end_ns: u64,
    /// When all of it was: its two-way calls too.
    pub(crate) end_ns: u64,
}

/// A time during which the thread of a job did not execute its own code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobGap {
    /// The job's place in the tree.
    pub(crate) place: u32,
    /// The root's job.
    pub(crate) number: u32,
    /// From when on.
    pub(crate) begin_ns: u64,
    /// How long.
    pub(crate) length_ns: u64,
    /// Whether another thread ran meanwhile.
    pub(crate) switched: bool,
}

/// Something that is kept as a few words.
pub(crate) trait Record<const WORDS: usize>: Sized {
    fn words(&self) -> [u64; WORDS];
    fn of_words(words: [u64; WORDS]) -> Self;
}

impl Record<5> for Job {
    fn words(&self) -> [u64; 5] {
        let who = two(self.place, self.number);
        [
            who,
            self.release_ns,
            self.begin_ns,
            self.own_end_ns,
            self.end_ns,
        ]
    }

    fn of_words([who, release_ns, begin_ns, own_end_ns, end_ns]: [u64; 5]) -> Self {
        let (place, number) = of_two(who);
        Self {
            place,
            number,
            release_ns,
            begin_ns,
            own_end_ns,
            end_ns,
        }
    }
}

impl Record<3> for JobGap {
    fn words(&self) -> [u64; 3] {
        let length = self.length_ns << 1 | u64::from(self.switched);
        [two(self.place, self.number), self.begin_ns, length]
    }

    fn of_words([who, begin_ns, length]: [u64; 3]) -> Self {
        let (place, number) = of_two(who);
        Self {
            place,
            number,
            begin_ns,
            length_ns: length >> 1,
            switched: length & 1 == 1,
        }
    }
}

fn two(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn of_two(both: u64) -> (u32, u32) {
    ((both >> 32) as u32, both as u32)
}

/// Room for records, which any thread fills without a lock and without a heap call.
#[derive(Debug)]
pub(crate) struct Kept<const WORDS: usize> {
    room: Box<[[AtomicU64; WORDS]]>,
    taken: AtomicUsize,
}

impl<const WORDS: usize> Kept<WORDS> {
    /// With room for so many.
    pub(crate) fn with_room(room: usize) -> Self {
        // Not zeros: those would come as memory that nobody has touched.
        let untouched = || std::array::from_fn(|_| AtomicU64::new(u64::MAX));
        Self {
            room: (0..room).map(|_| untouched()).collect(),
            taken: AtomicUsize::new(0),
        }
    }

    /// Keeps one, if there is room.
    pub(crate) fn keep(&self, record: &impl Record<WORDS>) {
        let place = self.taken.fetch_add(1, Ordering::Relaxed);
        if let Some(room) = self.room.get(place) {
            for (word, value) in room.iter().zip(record.words()) {
                word.store(value, Ordering::Relaxed);
            }
        }
    }

    /// How many are kept, and how many had no room.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let taken = self.taken.load(Ordering::Acquire);
        let kept = taken.min(self.room.len());
        (kept, taken - kept)
    }

    /// The numbers of all that are kept.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let words = self.room[..self.counts().0].iter().flatten();
        words.map(|word| word.load(Ordering::Relaxed)).collect()
    }

    /// The numbers of all that are kept, and how many records had no room; None if a record came meanwhile.
    pub(crate) fn all(&self) -> Option<(Vec<u64>, usize)> {
        let numbers = self.numbers();
        let (kept, no_room) = self.counts();
        (numbers.len() == kept * WORDS).then_some((numbers, no_room))
    }
}

/// Reads back the records of these numbers.
pub(crate) fn read<const WORDS: usize, R: Record<WORDS>>(
    numbers: &[u64],
) -> impl Iterator<Item = R> {
    let (records, _) = numbers.as_chunks::<WORDS>();
    records.iter().map(|words| R::of_words(*words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_and_room_has_an_end() {
        let job = Job {
            place: 7,
            number: u32::MAX,
            release_ns: 1 << 60,
            begin_ns: 2,
            own_end_ns: 3,
            end_ns: 4,
        };
        let gap = JobGap {
            place: 1,
            number: 2,
            begin_ns: 3,
            length_ns: 1 << 50,
            switched: true,
        };
        let (jobs, gaps) = (Kept::<5>::with_room(2), Kept::<3>::with_room(2));
        for _ in 0..3 {
            jobs.keep(&job);
        }
        gaps.keep(&gap);
        assert_eq!((jobs.counts(), gaps.counts()), ((2, 1), (1, 0)));
        assert!(read::<5, Job>(&jobs.numbers()).eq([job; 2]));
        assert!(read::<3, JobGap>(&gaps.numbers()).eq([gap]));
    }
}
