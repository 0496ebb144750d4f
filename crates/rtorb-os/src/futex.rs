//! Sleeping on a word of memory until someone changes it: the smallest hand-over that Linux has.

use crate::clock::timespec;
use core::sync::atomic::AtomicU32;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

/// Sleeps while `word` is `expected`, at the latest until `deadline_ns` of CLOCK_MONOTONIC; false if that passed.
///
/// It may also wake without a reason: look at the word again.
pub fn wait(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) -> bool {
    sleep(word, Flags::empty(), expected, deadline_ns)
}

/// Wakes up to `count` of those who sleep on `word`, in this or another process, the most urgent first.
pub fn wake(word: &AtomicU32, count: u32) {
    // Waking cannot fail for a word that is mapped, and a reference is.
    let _ = futex::wake(word, Flags::empty(), count);
}

/// As [`wait`], for a word that no other process sees: the kernel need not look up what is mapped there.
#[cfg_attr(loom, expect(dead_code, reason = "loom has one of its own"))]
pub(crate) fn wait_in_process(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) -> bool {
    sleep(word, Flags::PRIVATE, expected, deadline_ns)
}

/// As [`wake`], of those who sleep by [`wait_in_process`].
#[cfg_attr(loom, expect(dead_code, reason = "loom has one of its own"))]
pub(crate) fn wake_in_process(word: &AtomicU32, count: u32) {
    let _ = futex::wake(word, Flags::PRIVATE, count);
}

fn sleep(word: &AtomicU32, flags: Flags, expected: u32, deadline_ns: Option<u64>) -> bool {
    let deadline = deadline_ns.map(timespec);
    let all = core::num::NonZeroU32::MAX;
    let woken = futex::wait_bitset(word, flags, expected, deadline.as_ref(), all);
    !matches!(woken, Err(Errno::TIMEDOUT))
}
