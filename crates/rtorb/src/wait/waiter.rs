//! A thread that waits on a connection which others read too, and where its reply is put.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, Ordering};
use rtorb_os::futex;
use rtorb_os::sync::Mutex;
use rtorb_wire::DecodeError;
use rustix::io::Errno;
use std::sync::Arc;

/// What whoever reads the connection needs of a thread that waits.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    /// One of the states below; the thread sleeps on this word alone, so that waking it wakes nobody else.
    state: AtomicU32,
    pub(crate) answer: Mutex<Answer>,
}

/// What a thread waited for.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The reply, in the first `octets` octets; the buffer is reused.
    pub(crate) message: Vec<u8>,
    pub(crate) octets: usize,
    /// Why there will be none.
    pub(crate) over: Option<Over>,
}

/// Why a connection is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The peer ended it without a word, or after it had begun a reply.
    Ended,
    /// The connection failed.
    Failed(Errno),
    /// The peer closed it in an orderly way.
    ByPeer,
    /// A message came that no server sends.
    OutOfPlace,
    /// Octets came that are no message.
    Malformed(DecodeError),
    /// This ORB closed it, since it needed the place and nobody waited.
    Unused,
}

/// What woke a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// There is an answer.
    Answered,
    /// It shall read for all who wait.
    Leading,
    /// The deadline passed.
    Late,
}

/// It does not sleep, and there is nothing for it.
const AWAKE: u32 = 0;
/// As that, and it sleeps: whoever has something for it must wake it.
const ASLEEP: u32 = 1;
const ANSWERED: u32 = 2;
const LEADING: u32 = 3;

impl Waiter {
    /// Begins to wait for another reply.
    pub(crate) fn begin(&self) {
        self.state.store(AWAKE, Ordering::Relaxed);
    }

    /// Tells the thread that its answer is there.
    pub(crate) fn answered(&self) {
        self.tell(ANSWERED);
    }

    /// Tells the thread to read for all.
    pub(crate) fn lead(&self) {
        self.tell(LEADING);
    }

    /// True if the answer is there.
    pub(crate) fn is_answered(&self) -> bool {
        self.state.load(Ordering::Acquire) == ANSWERED
    }

    /// True if the thread was told to read for all and has no answer.
    pub(crate) fn is_leading(&self) -> bool {
        self.state.load(Ordering::Acquire) == LEADING
    }

    /// Sleeps until there is something for the thread, at the latest until `deadline_ns` of the monotonic clock.
    pub(crate) fn wait(&self, deadline_ns: Option<u64>) -> Woken {
        loop {
            let state =
                self.state
                    .compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
            match state {
                Err(ANSWERED) => return Woken::Answered,
                Err(LEADING) => return Woken::Leading,
                _ => {}
            }
            let in_time = futex::wait(&self.state, ASLEEP, deadline_ns);
            match self.state.load(Ordering::Acquire) {
                AWAKE | ASLEEP if !in_time => return Woken::Late,
                _ => {}
            }
        }
    }

    /// Sleeps until the answer is there that somebody is about to give.
    pub(crate) fn await_certain_answer(&self) {
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state == ANSWERED {
                return;
            }
            let slept =
                self.state
                    .compare_exchange(state, ASLEEP, Ordering::AcqRel, Ordering::Relaxed);
            if slept.is_ok() {
                futex::wait(&self.state, ASLEEP, None);
            }
        }
    }

    fn tell(&self, state: u32) {
        if self.state.swap(state, Ordering::AcqRel) == ASLEEP {
            futex::wake(&self.state, 1);
        }
    }
}

/// What a thread needs for a call on such a connection; it has one for each call in progress, and reuses it.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    pub(crate) waiter: Arc<Waiter>,
    /// The buffer of the request.
    pub(crate) out: Vec<u8>,
}

thread_local! {
    static DESK: Cell<Option<Box<Desk>>> = const { Cell::new(None) };
}

/// Does `work` with the thread's desk; a call within it has another.
pub(crate) fn at_desk<T>(work: impl FnOnce(&mut Desk) -> T) -> T {
    // A thread that is ending and calls from a destructor has no place for it any more.
    let mut desk = DESK.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let done = work(&mut desk);
    let _ = DESK.try_with(|place| place.set(Some(desk)));
    done
}
