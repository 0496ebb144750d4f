//! How many static threads a lane has, and how many of them are to end: one word, so that each transition is one step for all threads.
//!
//! ```text
//!           want(more): the caller starts threads
//!          +------+
//!          v      |     want(fewer)
//!   Complete ----------------------------> Surplus
//!          <-----------------------------
//!            claim: the last thread that is too many ends
//!            want(more): it stays
//! ```
//!
//! Any thread of the lane may be the one that ends. From both states, `stop` ends all.

use core::sync::atomic::{AtomicU64, Ordering};

/// The static threads of a running lane.
#[derive(Debug)]
pub(crate) struct ThreadCount {
    /// The threads, in the upper half. In the lower one, those of them that are too many, or [`ALL`].
    word: AtomicU64,
}

/// All threads are to end.
const ALL: u64 = u32::MAX as u64;
/// One thread, in the upper half.
const ONE: u64 = 1 << 32;

impl ThreadCount {
    pub(crate) fn new(threads: u32) -> Self {
        Self {
            word: AtomicU64::new(u64::from(threads) * ONE),
        }
    }

    /// The threads that have not ended.
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        threads(self.word.load(Ordering::Relaxed))
    }

    /// The threads that stay.
    pub(crate) fn wanted(&self) -> u32 {
        let word = self.word.load(Ordering::Relaxed);
        match word & ALL {
            ALL => threads(word),
            surplus => threads(word) - surplus as u32,
        }
    }

    /// True if one of the threads, or all of them, are to end.
    #[inline(always)]
    pub(crate) fn is_surplus(&self) -> bool {
        self.word.load(Ordering::Relaxed) & ALL != 0
    }

    /// True if all threads are to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.word.load(Ordering::Relaxed) & ALL == ALL
    }

    /// Has all threads end.
    pub(crate) fn stop(&self) {
        self.word.fetch_or(ALL, Ordering::AcqRel);
    }

    /// Changes the number of threads that stay. Returns how many the caller is to [add](Self::add): none if threads that were about
    /// to end are enough, or if all are to end. Callers exclude each other, and say the same number again when these are added: one that had
    /// claimed its end may have [stayed](Self::stay) meanwhile.
    pub(crate) fn want(&self, wanted: u32) -> u32 {
        let change = |word| {
            let surplus = threads(word).saturating_sub(wanted);
            (word & ALL != ALL).then_some(word & !ALL | u64::from(surplus))
        };
        match (self.word).fetch_update(Ordering::AcqRel, Ordering::Relaxed, change) {
            Ok(word) => wanted.saturating_sub(threads(word)),
            Err(_) => 0,
        }
    }

    /// Counts a thread that is about to start.
    pub(crate) fn add(&self) {
        self.word.fetch_add(ONE, Ordering::AcqRel);
    }

    /// Counts off a thread that did not start.
    pub(crate) fn remove(&self) {
        self.word.fetch_sub(ONE, Ordering::AcqRel);
    }

    /// Counts off the calling thread if it is one too many; then it ends, or [stays](Self::unclaim).
    pub(crate) fn claim(&self) -> bool {
        let change = |word| (!matches!(word & ALL, 0 | ALL)).then(|| word - ONE - 1);
        (self.word)
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, change)
            .is_ok()
    }

    /// Counts the calling thread again, which had claimed its end, and would have left one thread. It is not too many any more, unless others
    /// were added meanwhile.
    pub(crate) fn stay(&self) {
        let change = |word| {
            let is_surplus = word & ALL != ALL && threads(word) > 1;
            Some(word + ONE + u64::from(is_surplus))
        };
        let _ = (self.word).fetch_update(Ordering::AcqRel, Ordering::Relaxed, change);
    }

    /// Counts the calling thread again, which had claimed its end. It is still one too many.
    pub(crate) fn unclaim(&self) {
        let change = |word| Some(word + ONE + u64::from(word & ALL != ALL));
        let _ = (self.word).fetch_update(Ordering::AcqRel, Ordering::Relaxed, change);
    }
}

fn threads(word: u64) -> u32 {
    (word >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The threads, those that stay, and whether any is to end.
    fn state(count: &ThreadCount) -> (u32, u32, bool) {
        (count.get(), count.wanted(), count.is_surplus())
    }

    #[test]
    fn as_many_threads_end_as_are_too_many() {
        let count = ThreadCount::new(3);
        assert!(!count.claim(), "none is too many");
        assert_eq!(count.want(1), 0);
        assert_eq!(state(&count), (3, 1, true));
        assert!(count.claim());
        assert_eq!(state(&count), (2, 1, true));
        count.unclaim();
        assert_eq!(state(&count), (3, 1, true));
        assert!(count.claim() && count.claim() && !count.claim());
        assert_eq!(state(&count), (1, 1, false));
    }

    #[test]
    fn threads_that_are_about_to_end_stay_before_others_start() {
        let count = ThreadCount::new(3);
        count.want(1);
        assert!(count.claim());
        assert_eq!(count.want(4), 2, "two have not ended");
        assert_eq!(state(&count), (2, 2, false));
        count.add();
        count.add();
        count.remove();
        assert_eq!(state(&count), (3, 3, false));
    }

    #[test]
    fn the_last_but_one_that_stays_changes_no_number_that_was_set_meanwhile() {
        let claimed = || {
            let count = ThreadCount::new(2);
            count.want(1);
            assert!(count.claim());
            count
        };
        let count = claimed();
        count.stay();
        assert_eq!(state(&count), (2, 2, false));

        let count = claimed();
        assert_eq!(count.want(3), 2);
        count.add();
        count.add();
        count.stay();
        assert_eq!(state(&count), (4, 3, true), "one of them ends");

        let count = claimed();
        assert_eq!(count.want(3), 2);
        count.stay();
        count.add();
        count.add();
        assert_eq!(count.want(3), 0, "the caller says it again");
        assert_eq!(state(&count), (4, 3, true), "one of them ends");

        let count = claimed();
        count.stop();
        count.stay();
        assert_eq!(state(&count), (2, 2, true));
    }

    #[test]
    fn after_a_stop_all_end_and_no_number_changes_that() {
        let count = ThreadCount::new(2);
        count.want(1);
        assert!(count.claim());
        count.stop();
        count.unclaim();
        assert!(count.is_stopped() && !count.claim());
        assert_eq!(count.want(5), 0);
        assert_eq!(state(&count), (2, 2, true));
    }
}
