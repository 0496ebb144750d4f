//! Sleeping on a word of memory until another thread changes it: futex(2).

use crate::clock::timespec;
use core::sync::atomic::AtomicU32;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

/// Sleeps while `word` is `expected`, until `deadline_ns` of CLOCK_MONOTONIC at the latest; false if that passed.
///
/// It may also wake without a reason: check the word again.
pub fn wait(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) -> bool {
    sleep(word, Flags::empty(), expected, deadline_ns)
}

/// Wakes up to `count` threads that sleep on `word`, in this or another process, the most urgent first.
pub fn wake(word: &AtomicU32, count: u32) {
    // Waking fails only for an unmapped word, and a reference is mapped.
    let _ = futex::wake(word, Flags::empty(), count);
}

/// As [`wait`], for a word that no other process shares: the kernel need not look up the mapping.
#[cfg_attr(loom, expect(dead_code, reason = "loom has its own"))]
pub(crate) fn wait_in_process(word: &AtomicU32, expected: u32, deadline_ns: Option<u64>) -> bool {
    sleep(word, Flags::PRIVATE, expected, deadline_ns)
}

/// As [`wake`], for sleepers of [`wait_in_process`].
#[cfg_attr(loom, expect(dead_code, reason = "loom has its own"))]
pub(crate) fn wake_in_process(word: &AtomicU32, count: u32) {
    let _ = futex::wake(word, Flags::PRIVATE, count);
}

fn sleep(word: &AtomicU32, flags: Flags, expected: u32, deadline_ns: Option<u64>) -> bool {
    let deadline = deadline_ns.map(timespec);
    let all = core::num::NonZeroU32::MAX;
    let woken = futex::wait_bitset(word, flags, expected, deadline.as_ref(), all);
    !matches!(woken, Err(Errno::TIMEDOUT))
}
