//! Sleeping on a word of memory until someone changes it: the smallest hand-over that Linux has.

use crate::clock::timespec;
use core::sync::atomic::AtomicU32;
use rustix::io::Errno;
use rustix::thread::futex;

/// Sleeps while `word` is `expected`, at the latest until `deadline_ns` of CLOCK_MONOTONIC; false if that passed.
///
/// It may also wake without a reason: look at the word again.
pub fn wait(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) -> bool {
    let deadline = deadline_ns.map(timespec);
    let all = core::num::NonZeroU32::MAX;
    let woken = futex::wait_bitset(
        word,
        futex::Flags::empty(),
        expected,
        deadline.as_ref(),
        all,
    );
    !matches!(woken, Err(Errno::TIMEDOUT))
}

/// Wakes up to `count` of those who sleep on `word`, in this or another process.
pub fn wake(word: &AtomicU32, count: u32) {
    // Waking cannot fail for a word that is mapped, and a reference is.
    let _ = futex::wake(word, futex::Flags::empty(), count);
}
