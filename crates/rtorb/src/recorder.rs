//! The flight recorder of a process: what happened to its last calls, and counters of all of them.
//!
//! An ORB with `-ORBRecorder yes` starts it, for all ORBs of the process that have the option. It is memory that other processes may read at
//! any time ([`ProcessSnapshot::of_process`]), as `rtorb top` and `rtorb trace` do. Each thread that calls objects or serves them has a part of
//! its own there and is the only one that writes it: a call takes no lock, no heap call and no system call, and waits for no reader.
//!
//! | kept for each thread | bound |
//! |---|---|
//! | its last calls ([`CallEvent`]); older ones are counted as overwritten | [`EVENTS_MAX`] |
//! | counters and histograms for each operation ([`CountedOperation`]); the rest together, as operation `...` | [`OPERATIONS_MAX`] |
//!
//! A process records [`THREADS_MAX`] threads at a time, and counts the threads beyond that. The part of a thread that has ended goes to a new one,
//! which continues its counters.
//!
//! Not recorded: calls of a servant in the same ORB without a request ([collocation](crate::Collocation)), and, on the client's side,
//! calls that are started and oneways that wait for nothing.

mod histogram;
mod layout;
mod snapshot;
mod thread_part;

#[doc(inline)]
pub use histogram::{BUCKETS, Histogram};
pub use layout::{EVENTS_MAX, OPERATIONS_MAX, THREADS_MAX};
pub use snapshot::{
    CallEvent, CallOutcome, CallSide, CountedOperation, ProcessSnapshot, ReadError, RecordedLane,
    ThreadSnapshot,
};
pub(crate) use thread_part::{BegunRequest, CallNote, ThreadPart};

use core::cell::Cell;
use core::sync::atomic::Ordering;
use layout::{FILE_NAME, Page, VERSION, page_word};
use rtorb_os::Refused;
use rtorb_os::clock::TickClock;
use rtorb_os::set_once::SetOnce;
use rtorb_os::shared_words::SharedWords;

/// The recorder of the process, once an ORB has started it.
static RECORDER: SetOnce<Recorder> = SetOnce::new();

/// The memory of the recorder, and each thread's part of it.
#[derive(Debug)]
struct Recorder {
    page: Page,
    parts: Box<[ThreadPart]>,
    _memory: SharedWords,
}

thread_local! {
    /// Gives the part of the thread back when it ends.
    static OWN_PART: Cell<Option<OwnPart>> = const { Cell::new(None) };
}

/// The part of a thread, until the thread ends.
struct OwnPart(&'static ThreadPart);

impl Drop for OwnPart {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Starts the recorder, if it does not run.
///
/// # Errors
/// [`Refused`] when the host has no memory for it.
pub(crate) fn start() -> Result<(), Refused> {
    if RECORDER.get().is_none() {
        let recorder = Recorder::new()?;
        RECORDER.get_or_make(|| recorder);
    }
    Ok(())
}

/// Returns true if the recorder runs.
pub(crate) fn is_running() -> bool {
    RECORDER.get().is_some()
}

/// Gives the calling thread a part of the recorder. `None` if it does not run, or has no part left.
#[cold]
pub(crate) fn enter_thread() -> Option<&'static ThreadPart> {
    let recorder = RECORDER.get()?;
    let part = recorder.parts.iter().find(|part| part.claim());
    if let Some(part) = part {
        OWN_PART.set(Some(OwnPart(part)));
    } else {
        recorder.page.words[page_word::REFUSED_THREADS].fetch_add(1, Ordering::Relaxed);
    }
    part
}

impl Recorder {
    fn new() -> Result<Self, Refused> {
        let memory = SharedWords::create(FILE_NAME, layout::WORDS)?;
        let clock = TickClock::of_host();
        let (page, threads) = layout::split(memory.words());
        let parts = threads
            .iter()
            .map(|words| ThreadPart::new(clock, words))
            .collect();
        let moment = clock.moment();
        for (place, value) in [
            (page_word::PROCESS, u64::from(std::process::id())),
            (
                page_word::CLOCK,
                u64::from(clock == TickClock::TimeStampCounter),
            ),
            (page_word::START_TICKS, moment.ticks),
            (page_word::START_NS, moment.ns),
        ] {
            page.words[place].store(value, Ordering::Relaxed);
        }
        // Last: from now on, readers take it for whole.
        page.words[page_word::VERSION].store(VERSION, Ordering::Release);
        Ok(Self {
            page,
            parts,
            _memory: memory,
        })
    }
}
