//! What the ORBs of the process know of the calling thread.
//!
//! It is one thread-local variable, because a call pays for finding each.

use crate::recorder::{self, RecordedLane, ThreadPart};
use core::cell::Cell;

thread_local! {
    /// The state of the calling thread.
    pub(crate) static THREAD: ThreadState = const {
        ThreadState {
            scheduling: Cell::new(ThreadScheduling::NONE),
            upcall: Cell::new(NO_UPCALL),
            collocated_calls: Cell::new(0),
            reads_replies: Cell::new(false),
            ends_calls: Cell::new(false),
            recorder: Cell::new(None),
        }
    };
}

thread_local! {
    /// Why calls of the thread look further: one test finds any of the reasons.
    static SPECIAL_CALLS: Cell<u8> = const { Cell::new(0) };
}

/// A reason why the calls of a thread look further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SpecialCalls {
    /// The thread runs a distributable thread.
    OfDistributableThread = 1,
    /// The thread has policies of its own.
    WithPolicies = 2,
}

/// Returns true if there is any reason why calls look further.
#[inline(always)]
pub(crate) fn has_special() -> bool {
    SPECIAL_CALLS.get() != 0
}

/// Returns true if there is this reason why calls look further.
#[inline(always)]
pub(crate) fn is_special(reason: SpecialCalls) -> bool {
    SPECIAL_CALLS.get() & reason as u8 != 0
}

/// Sets whether there is this reason why calls look further.
pub(crate) fn set_special(reason: SpecialCalls, is_there: bool) {
    let others = SPECIAL_CALLS.get() & !(reason as u8);
    SPECIAL_CALLS.set(others | if is_there { reason as u8 } else { 0 });
}

/// The state of a thread that calls objects or serves them.
pub(crate) struct ThreadState {
    /// What a servant must leave as it finds it.
    pub(crate) scheduling: Cell<ThreadScheduling>,
    /// The ORB whose servant it executes, in the upper half, and the number of the connection; [`NO_UPCALL`] if it executes none.
    pub(crate) upcall: Cell<u64>,
    /// The number of collocated calls in progress, of all ORBs.
    pub(crate) collocated_calls: Cell<usize>,
    /// True for the I/O thread of an ORB with bidirectional connections: it must not wait for a reply that only it can read.
    pub(crate) reads_replies: Cell<bool>,
    /// True while started calls end on the thread: it must not wait for the end of another.
    ends_calls: Cell<bool>,
    /// Its part of the recorder; `None` until it enters that.
    recorder: Cell<Option<&'static ThreadPart>>,
}

/// The time in which started calls, or those that nobody has answered in time, end on the calling thread: their tasks are woken, and their
/// handlers and interceptors called. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct EndingCalls {
    was_ending: bool,
}

impl EndingCalls {
    pub(crate) fn begin() -> Self {
        Self {
            was_ending: THREAD.with(|thread| thread.ends_calls.replace(true)),
        }
    }
}

impl Drop for EndingCalls {
    fn drop(&mut self) {
        THREAD.with(|thread| thread.ends_calls.set(self.was_ending));
    }
}

/// Returns true while started calls [end](EndingCalls) on the calling thread.
pub(crate) fn ends_calls() -> bool {
    THREAD.with(|thread| thread.ends_calls.get())
}

/// What the application may change on a thread. One word, so that one comparison shows whether a servant has left anything changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadScheduling(u64);

impl ThreadScheduling {
    /// No priority, segment or change.
    const NONE: Self = Self(NO_PRIORITY as u16 as u64);

    /// Returns the CORBA priority; [`NO_PRIORITY`] until it is set.
    #[inline]
    pub(crate) fn priority(self) -> i16 {
        self.0 as i16
    }

    /// Returns the number of open segments of the distributable thread.
    pub(crate) fn segments(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Returns the number of changes of the priority that are in effect. 0: only the ORB has scheduled the thread.
    pub(crate) fn changes(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    pub(crate) fn with_priority(self, priority: i16) -> Self {
        Self((self.0 & !0xffff) | u64::from(priority as u16))
    }

    pub(crate) fn with_segments(self, segments: u16) -> Self {
        Self((self.0 & !0xffff_0000) | (u64::from(segments) << 16))
    }

    pub(crate) fn with_changes(self, changes: u32) -> Self {
        Self((self.0 & 0xffff_ffff) | (u64::from(changes) << 32))
    }
}

/// Returns what the application may change on the calling thread.
#[inline(always)]
pub(crate) fn scheduling() -> ThreadScheduling {
    THREAD.with(|thread| thread.scheduling.get())
}

/// Notes a change of that.
#[inline(always)]
pub(crate) fn set_scheduling(scheduling: ThreadScheduling) {
    THREAD.with(|thread| thread.scheduling.set(scheduling));
}

/// The thread has no CORBA priority.
pub(crate) const NO_PRIORITY: i16 = -1;

/// The thread executes no servant.
pub(crate) const NO_UPCALL: u64 = 0;

/// Returns the part of the recorder that the calling thread writes; `None` if its calls are not recorded.
#[inline(always)]
pub(crate) fn recorder() -> Option<&'static ThreadPart> {
    THREAD.with(|thread| thread.recorder.get())
}

/// Returns the same. If the recorder runs and the thread has no part of it yet, the thread gets one. A thread that is refused one is not
/// asked for again.
#[inline]
pub(crate) fn enter_recorder() -> Option<&'static ThreadPart> {
    recorder().or_else(|| claim(None))
}

/// Gives the calling thread a part of the recorder for the calls that it serves in a lane, if the recorder runs.
#[cold]
pub(crate) fn enter_recorder_of(lane: RecordedLane) {
    let lane = Some(lane);
    if recorder().is_some_and(|part| part.is_of_lane(lane)) {
        return;
    }
    let _ = OWN_PART.try_with(OwnPart::release);
    claim(lane);
}

/// Gives the calling thread a part of the recorder for the calls that it serves, if the recorder runs and it has none; and memory for copies of them.
#[cold]
pub(crate) fn enter_recorder_to_serve() {
    if let Some(part) = enter_recorder() {
        recorder::populate_copies(part.number());
    }
}

#[cold]
fn claim(lane: Option<RecordedLane>) -> Option<&'static ThreadPart> {
    // While a thread ends, nothing would give the part back.
    let entered = OWN_PART.try_with(|own| {
        if own.is_refused.get() || !recorder::is_running() {
            return None;
        }
        let part = recorder::claim(lane);
        own.is_refused.set(part.is_none());
        own.part.set(part);
        part
    });
    let part = entered.ok().flatten();
    THREAD.with(|thread| thread.recorder.set(part));
    part
}

thread_local! {
    /// The part of the recorder that the thread has, to give it back when the thread ends.
    static OWN_PART: OwnPart = const {
        OwnPart {
            part: Cell::new(None),
            is_refused: Cell::new(false),
        }
    };
}

struct OwnPart {
    part: Cell<Option<&'static ThreadPart>>,
    is_refused: Cell<bool>,
}

impl OwnPart {
    /// Gives the part back.
    fn release(&self) {
        // Calls in later destructors of the thread are not recorded: the part may belong to another thread by then.
        THREAD.with(|thread| thread.recorder.set(None));
        if let Some(part) = self.part.take() {
            part.release();
        }
    }
}

impl Drop for OwnPart {
    fn drop(&mut self) {
        self.release();
    }
}
