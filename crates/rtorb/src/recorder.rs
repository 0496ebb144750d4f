//! The flight recorder of a process: what happened to its last calls, and counters of all of them.
//!
//! An ORB with `-ORBRecorder yes` starts it. From then on it records the calls that ORBs with the option make, and all that the process serves on
//! threads that begin later. It is memory that other processes may read at
//! any time ([`ProcessSnapshot::of_process`]), as `rtorb top` and `rtorb trace` do. Each thread that calls objects or serves them has a part of
//! its own there and is the only one that writes it: after the first, a call takes no lock, no heap call and no system call, and waits for no reader.
//!
//! | kept for each thread | bound |
//! |---|---|
//! | its last calls ([`CallEvent`]); older ones are counted as overwritten | [`EVENTS_MAX`] |
//! | counters and histograms for each operation ([`CountedOperation`]); the rest together, as operation `...` | [`OPERATIONS_MAX`] |
//!
//! A process records [`THREADS_MAX`] threads at a time, and counts the threads beyond that, which are never recorded. The part of a thread that has
//! ended goes to a new one of the same lane, or to one without a lane if it had none, which continues its counters: those of a lane never
//! become less. Only if all parts are used does it go to a thread of another lane, and its counters with it.
//!
//! The memory of a part, 136 KiB, is populated when a thread gets it: a thread that serves before its first request, any other in its first call,
//! which takes that time and these system calls. The ring of a thread that serves is populated then, too.
//!
//! With `-ORBRecordCalls BYTES`, whole calls can be copied too, with their arguments and results: each thread has a ring of that size for the
//! messages of requests and replies. It copies them only while a [`CallReader`] asks for it, after the reply is sent. What has no room is
//! counted as lost; nothing that is not read yet is overwritten, so that no copy is torn.
//!
//! A process that is forked later has the memory too. What it calls and serves is counted there, for its parent; it has no recorder of its own.
//!
//! A call that was [started](crate::Call) is recorded when its result is taken, and ends when its reply has come.
//!
//! Not recorded: calls of a servant in the same ORB without a request ([collocation](crate::Collocation)); on the client's side, started calls whose
//! results nobody takes, oneways that wait for nothing, and requests that a proxy passes on; on the server's side, requests that are refused before their
//! object is looked for, such as those without room in a queue or whose deadline has passed. Operations that an object does not have are
//! counted as `...`, because clients could fill the places of others by them.

mod call_copies;
mod call_reader;
mod histogram;
mod layout;
mod snapshot;
mod thread_part;

pub(crate) use call_copies::{
    BegunCopy, ServedCall, begin as begin_copy, populate as populate_copies, start as start_copies,
};
pub use call_copies::{RING_BYTES_MAX, RING_BYTES_MIN};
pub use call_reader::{CallReader, CopiedCall};
#[doc(inline)]
pub use histogram::{BUCKETS, Histogram};
pub use layout::{EVENTS_MAX, OPERATIONS_MAX, THREADS_MAX};
pub use snapshot::{
    CallEvent, CallOutcome, CallSide, CountedOperation, ProcessSnapshot, ReadError, RecordedLane,
    ThreadSnapshot,
};
pub(crate) use thread_part::{BegunRequest, CallNote, StartedTimes, ThreadPart, UNNAMED};

use core::sync::atomic::Ordering;
use layout::{FILE_NAME, Page, VERSION, page_word};
use rtorb_os::Refused;
use rtorb_os::clock::TickClock;
use rtorb_os::set_once::SetOnce;
use rtorb_os::shared_words::SharedWords;
use thread_part::Suitable;

/// The recorder of the process, once an ORB has started it.
static RECORDER: SetOnce<Recorder> = SetOnce::new();

/// The memory of the recorder, and each thread's part of it.
#[derive(Debug)]
struct Recorder {
    page: Page,
    parts: Box<[ThreadPart]>,
    _memory: SharedWords,
}

/// Starts the recorder, if it does not run.
///
/// # Errors
/// [`Refused`] when the host has no memory for it.
pub(crate) fn start() -> Result<(), Refused> {
    let recorder = match RECORDER.get() {
        Some(running) => running,
        None => {
            let new = Recorder::new()?;
            RECORDER.get_or_make(|| new)
        }
    };
    // Only now: of two threads that start it at once, one drops what it made, and no reader takes that for the recorder.
    recorder.publish();
    Ok(())
}

/// Returns true if this process has a recorder.
#[must_use]
pub fn is_running() -> bool {
    RECORDER.get().is_some()
}

/// Returns the ticks now; 0 if this process has no recorder.
#[cold]
pub(crate) fn now() -> u64 {
    let parts = RECORDER.get().map(|recorder| &recorder.parts);
    let first = parts.and_then(|parts| parts.first());
    first.map_or(0, ThreadPart::now)
}

/// Gives the calling thread, which serves that lane or none, a part of the recorder, which it [releases](ThreadPart::release) when it ends. `None`
/// if the recorder has no part left, which is counted.
#[cold]
pub(crate) fn claim(lane: Option<RecordedLane>) -> Option<&'static ThreadPart> {
    let recorder = RECORDER.get()?;
    let mut choices = [Suitable::OfLane, Suitable::Unused, Suitable::Any].into_iter();
    let part = choices.find_map(|suitable| {
        let mut parts = recorder.parts.iter();
        parts.find(|part| part.claim(lane, suitable))
    });
    if let Some(part) = part {
        part.populate();
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
            .enumerate()
            .map(|(number, words)| ThreadPart::new(clock, number, words))
            .collect();
        let moment = clock.moment();
        for (place, value) in [
            (
                page_word::CLOCK,
                u64::from(clock == TickClock::TimeStampCounter),
            ),
            (page_word::START_TICKS, moment.ticks),
            (page_word::START_NS, moment.ns),
            (page_word::PROCESS, u64::from(std::process::id())),
        ] {
            page.words[place].store(value, Ordering::Relaxed);
        }
        Ok(Self {
            page,
            parts,
            _memory: memory,
        })
    }

    /// Lets readers take it for whole.
    fn publish(&self) {
        self.page.words[page_word::VERSION].store(VERSION, Ordering::Release);
    }
}
