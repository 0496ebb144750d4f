//! The word by which one end of a shared queue tells the other that it waits. No wake-up is lost, and none is sent without need.

use crate::atomics::{AtomicU32, Ordering, fence, futex};

/// A word on which one thread waits, in memory that two processes share.
///
/// The waiting thread [announces](Self::announce) itself, looks once more whether it has to wait, and only then waits. The other
/// one changes the queue, and then [calls](Self::call). Each has a sequentially consistent fence between its write and its read,
/// so at least one of them sees the write of the other.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct WaitingWord(AtomicU32);

/// Where a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It sleeps on the word, and [`WaitingWord::call`] wakes it.
    Word,
    /// It waits for a message elsewhere, such as a byte on a socket. The caller must send it.
    Doorbell,
}

/// As many threads as the kernel can wake at once.
const SLEEPERS_MAX: u32 = i32::MAX as u32;

const AWAKE: u32 = 0;
const AT_WORD: u32 = 1;
const AT_DOORBELL: u32 = 2;

impl WaitingWord {
    /// Announces that this thread is about to wait. Check after this whether it has to.
    #[inline]
    pub fn announce(&self, place: Place) {
        let state = match place {
            Place::Word => AT_WORD,
            Place::Doorbell => AT_DOORBELL,
        };
        self.0.store(state, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Takes the announcement back.
    #[inline]
    pub fn withdraw(&self) {
        self.0.store(AWAKE, Ordering::Relaxed);
    }

    /// Sleeps until it is called, at the latest until `deadline_ns` of CLOCK_MONOTONIC. It may wake without a reason.
    #[inline]
    pub fn sleep(&self, deadline_ns: Option<u64>) {
        futex::wait(&self.0, AT_WORD, deadline_ns);
    }

    /// Wakes the thread that waits on this word, if one does. Returns true if that thread waits at its doorbell: ring it.
    #[inline]
    pub fn call(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) != AWAKE && self.call_waiting()
    }

    /// Wakes every thread that sleeps on this word, whatever a hostile peer has written into it.
    ///
    /// If the peer writes again at the same moment, a thread that is about to sleep may sleep: repeat this until it does not.
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        self.0.swap(AWAKE, Ordering::SeqCst);
        // All, because a thread of the peer may sleep on the word too.
        futex::wake(&self.0, SLEEPERS_MAX);
    }

    fn call_waiting(&self) -> bool {
        match self.0.swap(AWAKE, Ordering::SeqCst) {
            AT_WORD => {
                futex::wake(&self.0, 1);
                false
            }
            // The peer may have written anything. A doorbell that is rung too often does no harm.
            state => state != AWAKE,
        }
    }
}
