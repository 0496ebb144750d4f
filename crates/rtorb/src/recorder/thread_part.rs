//! The part of the recorder that one thread writes.

use super::histogram::bucket;
use super::layout::{EVENTS_MAX, IN_NS, IS_LANE, NAME_BYTES, OPERATIONS_MAX, ThreadWords};
use super::layout::{event_word, operation_word, thread_word};
use super::snapshot::{CallOutcome, CallSide, RecordedLane};
use core::sync::atomic::{AtomicU64, Ordering, fence};
use rtorb_os::clock::{TickClock, monotonic_ns};
use rtorb_os::memory;
use rtorb_os::thread::thread_id;

/// The part of one thread. Only that thread writes it, so plain stores count.
#[derive(Debug)]
pub(crate) struct ThreadPart {
    clock: TickClock,
    /// Its place among the parts.
    number: usize,
    words: ThreadWords,
}

/// A call that has ended, without its times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallNote<'n> {
    pub(crate) side: CallSide,
    pub(crate) outcome: CallOutcome,
    pub(crate) operation: &'n [u8],
    /// The CORBA priority of the thread.
    pub(crate) priority: i16,
    pub(crate) request_id: u32,
    /// Equal at both ends of a connection; 0 for none.
    pub(crate) connection: u64,
}

/// A request that a thread has begun to serve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BegunRequest {
    /// When it arrived.
    first: u64,
    /// When its turn began, in ticks.
    began: u64,
    /// How long it was in a queue.
    waited_ns: Option<u64>,
}

/// A call that the thread makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BegunCall {
    began: u64,
    /// What is known of the request of the call around it.
    outer: [u64; 3],
}

/// When a started call began, was sent and had its reply, in ticks, and the thread that started it. 0 for what did not come so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartedTimes {
    pub(crate) began: u64,
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
    pub(crate) thread: u32,
}

/// Which parts a thread may take.
#[derive(Clone, Copy, Debug)]
pub(super) enum Suitable {
    /// Those of ended threads of its lane.
    OfLane,
    /// Those that no thread had.
    Unused,
    Any,
}

/// The words of the request that the thread has sent last.
const SENT: [usize; 3] = [
    thread_word::SENT,
    thread_word::SENT_ID,
    thread_word::SENT_CONNECTION,
];

/// What is counted of the lane of the thread.
const LANE_COUNTERS: [usize; 4] = [
    thread_word::MOST_ACCEPTED,
    thread_word::REFUSED,
    thread_word::SHED,
    thread_word::EXPIRED,
];

/// The time of sending of a request that is served by the thread itself.
const COLLOCATED: u64 = 1;

/// The name of all operations of a side that have no place of their own. They have the first places.
pub(crate) const UNNAMED: &[u8] = b"...";

/// The place of these.
const fn others(side: CallSide) -> usize {
    matches!(side, CallSide::Server) as usize
}

impl ThreadPart {
    pub(super) const fn new(clock: TickClock, number: usize, words: &ThreadWords) -> Self {
        Self {
            clock,
            number,
            words: *words,
        }
    }

    /// Gives the part to the calling thread, which serves that lane, if no thread has it and it suits as [`Suitable`] says.
    pub(super) fn claim(&self, lane: Option<RecordedLane>, suitable: Suitable) -> bool {
        let head = self.words.head;
        let owned = &head[thread_word::OWNED];
        if owned
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        let is_used = head[thread_word::THREAD].load(Ordering::Relaxed) != 0;
        let is_suitable = match suitable {
            Suitable::OfLane => is_used && self.is_of_lane(lane),
            Suitable::Unused => !is_used,
            Suitable::Any => true,
        };
        if !is_suitable {
            self.release();
            return false;
        }
        if !self.is_of_lane(lane) {
            set(&head[thread_word::LANE], lane_word(lane));
            for counter in LANE_COUNTERS {
                set(&head[counter], 0);
            }
        }
        self.set_sent([0; 3]);
        head[thread_word::THREAD].store(u64::from(thread_id()), Ordering::Release);
        if head[thread_word::OPERATIONS].load(Ordering::Relaxed) == 0 {
            for side in [CallSide::Client, CallSide::Server] {
                self.name(others(side), Key::of(side, UNNAMED), UNNAMED);
            }
            head[thread_word::OPERATIONS].store(2, Ordering::Release);
        }
        true
    }

    /// Populates its memory, so that no call waits for the host to provide it.
    #[cold]
    pub(super) fn populate(&self) {
        let ThreadWords {
            head,
            operations,
            events,
        } = self.words;
        for words in [&head[..], operations.as_flattened(), events.as_flattened()] {
            memory::populate(words);
        }
    }

    /// Returns its place among the parts.
    #[inline(always)]
    pub(crate) const fn number(&self) -> usize {
        self.number
    }

    /// Gives the part back. What it holds stays.
    pub(crate) fn release(&self) {
        self.words.head[thread_word::OWNED].store(0, Ordering::Release);
    }

    /// Returns true if the calls of the part are counted for that lane.
    pub(crate) fn is_of_lane(&self, lane: Option<RecordedLane>) -> bool {
        self.words.head[thread_word::LANE].load(Ordering::Relaxed) == lane_word(lane)
    }

    /// Notes how many requests the queue of the thread's lane has accepted and not served.
    #[inline]
    pub(crate) fn note_accepted(&self, requests: u32) {
        let most = &self.words.head[thread_word::MOST_ACCEPTED];
        if u64::from(requests) > most.load(Ordering::Relaxed) {
            set(most, u64::from(requests));
        }
    }

    /// Counts a request that the thread refuses because a queue has no room.
    #[cold]
    pub(crate) fn note_refused(&self) {
        add_one(&self.words.head[thread_word::REFUSED]);
    }

    /// Counts a request that loses its place in a queue to a more critical one.
    #[cold]
    pub(crate) fn note_shed(&self) {
        add_one(&self.words.head[thread_word::SHED]);
    }

    /// Counts a request whose deadline has passed before its servant is called.
    #[cold]
    pub(crate) fn note_expired(&self) {
        add_one(&self.words.head[thread_word::EXPIRED]);
    }

    /// Counts a call that ended later than the deadline of its operation's annotation.
    #[cold]
    pub(crate) fn note_deadline_miss(&self, side: CallSide, operation: &[u8]) {
        let place = self.place_of(side, operation);
        add_one(&self.words.operations[place][operation_word::DEADLINE_MISSES]);
    }

    /// Counts a request whose thread was demoted, because the servant executed longer than the worst case.
    #[cold]
    pub(crate) fn note_demotion(&self, operation: &[u8]) {
        let place = self.place_of(CallSide::Server, operation);
        add_one(&self.words.operations[place][operation_word::DEMOTIONS]);
    }

    /// Returns the ticks now.
    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Notes that the thread has sent the request of its call.
    // Out of line: calls that are not recorded pay for a test alone.
    #[inline(never)]
    pub(crate) fn note_sent(&self, request_id: u32, connection: u64) {
        self.set_sent([self.now(), u64::from(request_id), connection]);
    }

    /// Notes that the thread serves the request of its call itself.
    #[inline(never)]
    pub(crate) fn note_collocated(&self) {
        self.set_sent([COLLOCATED, 0, 0]);
    }

    /// Begins a call of the thread as a client, perhaps within another one.
    #[inline(always)]
    pub(crate) fn begin_call(&self) -> BegunCall {
        let head = self.words.head;
        let outer = SENT.map(|place| head[place].load(Ordering::Relaxed));
        self.set_sent([0; 3]);
        BegunCall {
            began: self.now(),
            outer,
        }
    }

    /// Records a call of the thread as a client.
    #[inline(never)]
    pub(crate) fn called(
        &self,
        operation: &[u8],
        outcome: CallOutcome,
        priority: i16,
        begun: &BegunCall,
    ) {
        let [sent, request_id, connection] =
            SENT.map(|place| self.words.head[place].load(Ordering::Relaxed));
        let (side, second) = match sent {
            COLLOCATED => (CallSide::Collocated, begun.began),
            sent => (CallSide::Client, sent),
        };
        let note = CallNote {
            side,
            outcome,
            operation,
            priority,
            request_id: request_id as u32,
            connection,
        };
        self.record(&note, begun.began, second);
        self.set_sent(begun.outer);
    }

    /// Records a call that a thread has started, once this one has its result. It counts as a client's.
    #[cold]
    pub(crate) fn started(&self, note: &CallNote<'_>, times: &StartedTimes) {
        let (now, cpu) = self.clock.now_on_cpu();
        let StartedTimes {
            began,
            sent,
            arrived,
            thread,
        } = *times;
        let last = if arrived == 0 { now } else { arrived };
        // Another thread may have read the reply before this one noted that the request was sent.
        self.record_ended(note, [began, sent.min(last), last], cpu, u64::from(thread));
    }

    /// Returns the number of the thread that has the part.
    pub(crate) fn thread(&self) -> u32 {
        self.words.head[thread_word::THREAD].load(Ordering::Relaxed) as u32
    }

    #[inline(always)]
    fn set_sent(&self, sent: [u64; 3]) {
        for (place, value) in SENT.into_iter().zip(sent) {
            set(&self.words.head[place], value);
        }
    }

    /// Begins to serve a request that arrived in a queue at `arrived_ns`, 0 without a queue.
    #[inline(always)]
    pub(crate) fn begin(&self, arrived_ns: u64) -> BegunRequest {
        let began = self.now();
        if arrived_ns == 0 {
            return BegunRequest {
                first: began,
                began,
                waited_ns: None,
            };
        }
        BegunRequest {
            first: arrived_ns | IN_NS,
            began,
            waited_ns: Some(monotonic_ns().saturating_sub(arrived_ns)),
        }
    }

    /// Records a request that the thread has served.
    #[inline(always)]
    pub(crate) fn served(&self, note: &CallNote<'_>, begun: &BegunRequest) {
        if let Some(waited_ns) = begun.waited_ns {
            self.note_wait(note, waited_ns);
        }
        self.record(note, begun.first, begun.began);
    }

    /// Counts how long a request was in a queue.
    #[cold]
    fn note_wait(&self, note: &CallNote<'_>, waited_ns: u64) {
        let operation = self.place_of(note.side, note.operation);
        let counters = &self.words.operations[operation];
        add_one(&counters[operation_word::WAITING + bucket(waited_ns)]);
    }

    // What is rare is out of line, and names are compared as words, so that a call's numbers stay in registers.
    #[inline(always)]
    fn record(&self, note: &CallNote<'_>, first: u64, second: u64) {
        let (last, cpu) = self.clock.now_on_cpu();
        let thread = self.words.head[thread_word::THREAD].load(Ordering::Relaxed);
        self.record_ended(note, [first, second, last], cpu, thread);
    }

    /// Records a call of that thread whose end is known.
    #[inline(always)]
    fn record_ended(&self, note: &CallNote<'_>, times: [u64; 3], cpu: u16, thread: u64) {
        let [first, second, last] = times;
        let operation = self.place_of(note.side, note.operation);
        let counters = &self.words.operations[operation];
        let outcome = note.outcome as usize;
        add_one(&counters[operation_word::OUTCOMES + outcome]);
        // The time of a client's call is all of it, that of a server's the servant's turn.
        let began = if note.side == CallSide::Server {
            second
        } else {
            first
        };
        let time = last.wrapping_sub(began);
        add_one(&counters[operation_word::TIMES + bucket(time)]);
        if time > counters[operation_word::LONGEST].load(Ordering::Relaxed) {
            set(&counters[operation_word::LONGEST], time);
        }

        let head = self.words.head;
        let written = head[thread_word::WRITTEN].load(Ordering::Relaxed);
        let event = &self.words.events[written as usize % EVENTS_MAX];
        // A reader that sees a part of this event sees the number of the one before.
        fence(Ordering::Release);
        let what = note.side as u64
            | (outcome as u64) << 8
            | (operation as u64) << 16
            | u64::from(cpu) << 32
            | u64::from(note.priority as u16) << 48;
        set(&event[event_word::WHAT], what);
        set(&event[event_word::FIRST], first);
        set(&event[event_word::SECOND], second);
        set(&event[event_word::LAST], last);
        let request = u64::from(note.request_id) | thread << 32;
        set(&event[event_word::REQUEST], request);
        set(&event[event_word::CONNECTION], note.connection);
        // A reader that sees the number sees the event.
        head[thread_word::WRITTEN].store(written + 1, Ordering::Release);
    }

    /// Returns the place of an operation among those of the thread.
    #[inline(always)]
    fn place_of(&self, side: CallSide, name: &[u8]) -> usize {
        let of_side = thread_word::LAST_OPERATION + usize::from(side == CallSide::Server);
        let last = self.words.head[of_side].load(Ordering::Relaxed) as usize % OPERATIONS_MAX;
        let is_last = name.len() <= 16 && self.has_key(last, Key::of(side, name));
        if is_last { last } else { self.find(side, name) }
    }

    /// Finds the place of an operation that has a long name, or is called after another one; or gives it a place.
    #[cold]
    #[inline(never)]
    fn find(&self, side: CallSide, name: &[u8]) -> usize {
        let key = Key::of(side, name);
        let count = &self.words.head[thread_word::OPERATIONS];
        let taken = count.load(Ordering::Relaxed) as usize % (OPERATIONS_MAX + 1);
        let of_side = thread_word::LAST_OPERATION + usize::from(side == CallSide::Server);
        let last = &self.words.head[of_side];
        let before = last.load(Ordering::Relaxed) as usize % OPERATIONS_MAX;
        let mut places = core::iter::once(before).chain(0..taken);
        let place =
            match places.find(|place| self.has_key(*place, key) && self.has_name(*place, name)) {
                Some(place) => place,
                None if taken == OPERATIONS_MAX => others(side),
                None => {
                    self.name(taken, key, name);
                    count.store(taken as u64 + 1, Ordering::Release);
                    taken
                }
            };
        set(last, place as u64);
        place
    }

    /// Returns true if an operation with that key has the place.
    #[inline(always)]
    fn has_key(&self, place: usize, key: Key) -> bool {
        let words = &self.words.operations[place];
        let word = |place: usize| words[place].load(Ordering::Relaxed);
        word(operation_word::KEY) == key.length_and_side
            && word(operation_word::FIRST) == key.first
            && word(operation_word::LAST) == key.last
    }

    /// Returns true if the kept bytes of a name are equal.
    fn has_name(&self, place: usize, name: &[u8]) -> bool {
        let words = &self.words.operations[place];
        name_words(name).enumerate().all(|(index, word)| {
            words[operation_word::NAME + index].load(Ordering::Relaxed) == word
        })
    }

    fn name(&self, place: usize, key: Key, name: &[u8]) {
        let words = &self.words.operations[place];
        set(&words[operation_word::KEY], key.length_and_side);
        set(&words[operation_word::FIRST], key.first);
        set(&words[operation_word::LAST], key.last);
        for (index, word) in name_words(name).enumerate() {
            set(&words[operation_word::NAME + index], word);
        }
    }
}

/// What tells operations apart without a look at their whole names, unless these are longer than 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    length_and_side: u64,
    first: u64,
    last: u64,
}

impl Key {
    #[inline(always)]
    fn of(side: CallSide, name: &[u8]) -> Self {
        let side = u64::from(side == CallSide::Server) << 32;
        let (first, last) = match (name.first_chunk(), name.last_chunk()) {
            (Some(first), Some(last)) => (u64::from_ne_bytes(*first), u64::from_ne_bytes(*last)),
            _ => (short(name), 0),
        };
        Self {
            length_and_side: name.len() as u64 | side,
            first,
            last,
        }
    }
}

/// Returns a lane as [`thread_word::LANE`] has it.
fn lane_word(lane: Option<RecordedLane>) -> u64 {
    lane.map_or(0, |RecordedLane { pool, priority }| {
        IS_LANE | u64::from(pool) << 16 | u64::from(priority as u16)
    })
}

/// Returns a name of at most seven bytes as a word.
#[inline(never)]
fn short(name: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        return u64::from(u32::from_ne_bytes(*first)) | u64::from(u32::from_ne_bytes(*last)) << 32;
    }
    name.iter()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Returns the kept bytes of a name, in words.
fn name_words(name: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let kept = &name[..name.len().min(NAME_BYTES)];
    kept.chunks(8).map(|chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(bytes)
    })
}

#[inline(always)]
fn set(word: &AtomicU64, value: u64) {
    word.store(value, Ordering::Relaxed);
}

#[inline(always)]
fn add_one(word: &AtomicU64) {
    set(word, word.load(Ordering::Relaxed) + 1);
}
