//! The words of futexes.
#![expect(unsafe_code, reason = "the address of a word comes from a system call")]

use std::sync::atomic::{AtomicU32, Ordering};

/// A word that threads sleep on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Word(usize);

impl Word {
    /// # Safety
    /// The word must be there as long as a thread waits for it, and its threads must use atomic instructions.
    pub(crate) unsafe fn at(address: usize) -> Self {
        Self(address)
    }

    pub(crate) fn load(self) -> u32 {
        self.word().load(Ordering::SeqCst)
    }

    pub(crate) fn store(self, value: u32) {
        self.word().store(value, Ordering::SeqCst);
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: who made it promised that the word is there.
        unsafe { AtomicU32::from_ptr(self.0 as *mut u32) }
    }
}
