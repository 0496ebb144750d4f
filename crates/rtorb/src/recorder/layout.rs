//! The words of the recorder's memory: a page for the process, and the parts of threads behind it.

use core::sync::atomic::AtomicU64;

/// The most threads of a process that are recorded at a time.
pub const THREADS_MAX: usize = 64;

/// The most operations of a thread, as a client and as a server, that are counted apart. Two of them are `...`, all others of a side.
pub const OPERATIONS_MAX: usize = 32;

/// The calls of a thread that are kept.
pub const EVENTS_MAX: usize = 1024;

/// The name of the file, as its readers see it behind `/memfd:`.
pub(super) const FILE_NAME: &str = "rtorb-recorder";

/// The first word: it changes with the layout. The bytes read `rtrec`, and a number.
pub(super) const VERSION: u64 = 0x7274_7265_6300_0003;

/// Words of the process.
pub(super) mod page_word {
    pub(in crate::recorder) const VERSION: usize = 0;
    /// 1 if ticks are those of the time stamp counter, 0 if they are nanoseconds.
    pub(in crate::recorder) const CLOCK: usize = 2;
    pub(in crate::recorder) const START_TICKS: usize = 3;
    pub(in crate::recorder) const START_NS: usize = 4;
    /// Threads that were refused a part.
    pub(in crate::recorder) const REFUSED_THREADS: usize = 5;
    /// The id of the process, as it has it itself: a child that it forks has the same memory, and is not recorded apart.
    pub(in crate::recorder) const PROCESS: usize = 6;
}

/// Words at the beginning of a thread's part.
pub(super) mod thread_word {
    /// 0 if no thread has the part, 1 while one has it.
    pub(in crate::recorder) const OWNED: usize = 0;
    /// The number of the thread that has the part, or had it last.
    pub(in crate::recorder) const THREAD: usize = 1;
    /// The number of calls that were written, by all its threads.
    pub(in crate::recorder) const WRITTEN: usize = 2;
    /// The number of operations that have a place.
    pub(in crate::recorder) const OPERATIONS: usize = 4;
    /// The place of the operation that was called last; that of the operation that was served last is behind it.
    pub(in crate::recorder) const LAST_OPERATION: usize = 5;
    /// The lane that the thread serves: [`IS_LANE`](super::IS_LANE), the pool, and its priority in the lowest 16 bits; 0 for none.
    pub(in crate::recorder) const LANE: usize = 11;
    /// The most requests that the queue of its lane had accepted and not served.
    pub(in crate::recorder) const MOST_ACCEPTED: usize = 12;
    /// Requests that the thread refused because a queue had no room.
    pub(in crate::recorder) const REFUSED: usize = 13;
    /// Requests that lost their place in a queue to a more critical one that the thread queued.
    pub(in crate::recorder) const SHED: usize = 14;
    /// Requests whose deadlines had passed when the thread looked at them.
    pub(in crate::recorder) const EXPIRED: usize = 15;
    /// When the request of the call in progress was sent, its id and its connection. 0 before it is sent, 1 if the thread serves it itself.
    pub(in crate::recorder) const SENT: usize = 8;
    pub(in crate::recorder) const SENT_ID: usize = 9;
    pub(in crate::recorder) const SENT_CONNECTION: usize = 10;
}

/// Words of an operation.
pub(super) mod operation_word {
    /// The length of the name in bytes, and the side above it.
    pub(in crate::recorder) const KEY: usize = 0;
    /// The first eight bytes of the name, and the last.
    pub(in crate::recorder) const FIRST: usize = 1;
    pub(in crate::recorder) const LAST: usize = 2;
    /// The name, as far as there is room: [`NAME_BYTES`](super::NAME_BYTES).
    pub(in crate::recorder) const NAME: usize = 3;
    /// Calls that ended in each way, in the order of `CallOutcome`.
    pub(in crate::recorder) const OUTCOMES: usize = NAME + super::NAME_WORDS;
    /// The longest time of a call, in ticks.
    pub(in crate::recorder) const LONGEST: usize = OUTCOMES + 6;
    /// Calls that ended later than the deadline of the operation's annotation.
    pub(in crate::recorder) const DEADLINE_MISSES: usize = LONGEST + 1;
    /// Calls whose threads were demoted.
    pub(in crate::recorder) const DEMOTIONS: usize = LONGEST + 2;
    /// Times in a queue, in ns.
    pub(in crate::recorder) const WAITING: usize = 24;
    /// Times of calls, in ticks.
    pub(in crate::recorder) const TIMES: usize = WAITING + super::super::BUCKETS;
    pub(in crate::recorder) const COUNT: usize = TIMES + super::super::BUCKETS;
}

/// Words of a call.
pub(super) mod event_word {
    /// Side, outcome, place of the operation, CPU and priority.
    pub(in crate::recorder) const WHAT: usize = 0;
    pub(in crate::recorder) const FIRST: usize = 1;
    pub(in crate::recorder) const SECOND: usize = 2;
    pub(in crate::recorder) const LAST: usize = 3;
    /// The id of the request, and the number of the thread above it.
    pub(in crate::recorder) const REQUEST: usize = 4;
    pub(in crate::recorder) const CONNECTION: usize = 5;
    pub(in crate::recorder) const COUNT: usize = 6;
}

/// The bit of a lane, whose pool and priority may both be 0.
pub(super) const IS_LANE: u64 = 1 << 63;

/// The bit of a time that is in nanoseconds already.
pub(super) const IN_NS: u64 = 1 << 63;

pub(super) const NAME_WORDS: usize = 6;
/// The bytes of an operation's name that are kept. Operations whose names differ behind them are counted apart all the same.
pub(super) const NAME_BYTES: usize = NAME_WORDS * 8;

/// The words of the process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    pub(super) words: &'static [AtomicU64; PAGE_WORDS],
}

/// The part of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadWords {
    pub(super) head: &'static [AtomicU64; HEAD_WORDS],
    pub(super) operations: &'static [[AtomicU64; operation_word::COUNT]; OPERATIONS_MAX],
    pub(super) events: &'static [[AtomicU64; event_word::COUNT]; EVENTS_MAX],
}

const PAGE_WORDS: usize = 64;
const HEAD_WORDS: usize = 32;
/// Where the operations and the events of a thread are in its part.
pub(super) const OPERATIONS_AT: usize = HEAD_WORDS;
pub(super) const EVENTS_AT: usize = OPERATIONS_AT + OPERATIONS_MAX * operation_word::COUNT;
pub(super) const THREAD_WORDS: usize = EVENTS_AT + EVENTS_MAX * event_word::COUNT;
/// All words.
pub(super) const WORDS: usize = PAGE_WORDS + THREADS_MAX * THREAD_WORDS;

/// Returns where the part of a thread begins.
pub(super) const fn thread_at(number: usize) -> usize {
    PAGE_WORDS + number * THREAD_WORDS
}

/// Divides the memory of a recorder, [`WORDS`] words.
pub(super) fn split(words: &'static [AtomicU64]) -> (Page, Vec<ThreadWords>) {
    let whole = "the memory has as many words as the layout";
    let (page, rest) = words.split_first_chunk().expect(whole);
    let (threads, _) = rest.as_chunks::<THREAD_WORDS>();
    let threads = threads.iter().map(|part| {
        let (head, part) = part.split_first_chunk().expect(whole);
        let (operations, events) = part.split_at(EVENTS_AT - OPERATIONS_AT);
        ThreadWords {
            head,
            operations: operations.as_chunks().0.first_chunk().expect(whole),
            events: events.as_chunks().0.first_chunk().expect(whole),
        }
    });
    (Page { words: page }, threads.collect())
}
