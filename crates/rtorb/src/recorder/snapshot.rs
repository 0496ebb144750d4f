//! What a recorder holds at one moment, read from another process or from this one.

use super::histogram::Histogram;
use super::layout::{
    self, EVENTS_MAX, IN_NS, IS_LANE, NAME_BYTES, OPERATIONS_MAX, THREADS_MAX, VERSION,
};
use super::layout::{event_word, operation_word, page_word, thread_word};
use core::fmt::{self, Display, Formatter};
use core::time::Duration;
use rtorb_core::exception::ExceptionKind;
use rtorb_os::clock::{Moment, TickClock};
use rtorb_os::shared_words::WordsOfOther;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

/// The recorder of a process at one moment.
#[derive(Clone, Debug)]
pub struct ProcessSnapshot {
    /// The process.
    pub process: u32,
    /// Its name, as the kernel keeps it: at most 15 bytes.
    pub name: String,
    /// When it was read, in ns of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// When the recorder was started, in ns of CLOCK_MONOTONIC.
    pub started_ns: u64,
    /// The threads that have, or had, a part of the recorder.
    pub threads: Vec<ThreadSnapshot>,
    /// Threads that came when all parts were taken. Their calls are not recorded.
    pub refused_threads: u64,
}

/// What the recorder has about a thread.
#[derive(Clone, Debug)]
pub struct ThreadSnapshot {
    /// The number of the thread (gettid) that has the part, or had it last.
    pub thread: u32,
    /// Its name; empty if it has ended.
    pub name: String,
    /// The lane that it serves; `None` if it serves none.
    pub lane: Option<RecordedLane>,
    /// The most requests that the queue of its lane had accepted and not served, as the thread knows that fills the queue; 0 without a queue.
    pub most_accepted: u64,
    /// Requests that the thread refused because a queue had no room; with the next two, those of earlier threads of its lane that had the part.
    pub refused: u64,
    /// Requests that lost their place in a queue to a more critical one that the thread queued.
    pub shed: u64,
    /// Requests whose deadlines had passed before their servants were called.
    pub expired: u64,
    /// Counters of the operations that it called and served, and those of earlier threads that had the part.
    pub operations: Vec<CountedOperation>,
    /// The last calls, the oldest first; none if only the counters were read. Some may be those of earlier threads.
    pub events: Vec<CallEvent>,
    /// Its calls before those that the recorder keeps.
    pub overwritten: u64,
}

/// A lane of a thread pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordedLane {
    /// The number of the pool (RTCORBA::ThreadpoolId); 0 for the ORB's own.
    pub pool: u32,
    /// The CORBA priority of the lane.
    pub priority: i16,
}

impl Display for RecordedLane {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "pool {}, priority {}", self.pool, self.priority)
    }
}

/// Counters of an operation.
#[derive(Clone, Debug)]
pub struct CountedOperation {
    /// Its name on the wire, of which 48 bytes are kept; `...` for all operations beyond [`OPERATIONS_MAX`].
    pub name: String,
    /// Client for collocated and started calls too. A server counts operations that an object does not have as `...`.
    pub side: CallSide,
    /// Calls by their outcome, in the order of [`CallOutcome`].
    pub outcomes: [u64; 6],
    /// The times of calls: for a client all of a call, for a server from the beginning of the servant's turn to the end of the reply.
    pub times: Histogram,
    /// The longest of them.
    pub longest: Duration,
    /// How long requests waited in a queue of the server; nothing of those that went into none.
    pub waits: Histogram,
    /// Calls that ended later than the deadline of the operation's annotation (`@deadline`), also with TIMEOUT. At its server, a
    /// call counts whose servant was late, not one whose deferred reply was.
    pub deadline_misses: u64,
    /// Requests whose threads were demoted, because the servant executed longer than the worst case of the annotation.
    pub demotions: u64,
}

/// A call that has ended. Times are in ns of CLOCK_MONOTONIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallEvent {
    /// The number of the thread: of a started call, of that which started it.
    pub thread: u32,
    /// Who has recorded it.
    pub side: CallSide,
    /// How it ended.
    pub outcome: CallOutcome,
    /// The operation's name on the wire, of which 48 bytes are kept.
    pub operation: String,
    /// The CPU on which it ended, or on which the result of a started call was taken.
    pub cpu: u16,
    /// The CORBA priority of the thread; `None` if it has none.
    pub priority: Option<i16>,
    /// The id of the request, unique on its connection for as long as it is in progress.
    pub request_id: u32,
    /// Equal at both ends of a connection, unless addresses are translated between them; 0 for none.
    pub connection: u64,
    /// A client's call began, or a server's request was received.
    pub first_ns: u64,
    /// A client's request was sent, or a server began to serve the request. It may have been in a queue until then. 0 if a client's request
    /// was never sent.
    pub second_ns: u64,
    /// A client had the reply, or a server had sent it.
    pub last_ns: u64,
}

/// Who recorded a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CallSide {
    /// Its client.
    Client,
    /// Its server.
    Server,
    /// The client, which served the request itself.
    Collocated,
    /// Its client, whose thread went on once the request was sent ([`Call`](crate::Call)).
    Started,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CallOutcome {
    /// With results; a oneway was sent or served.
    Done,
    /// With a user exception.
    UserException,
    /// With a system exception other than those below.
    SystemException,
    /// With TIMEOUT: its deadline passed.
    Timeout,
    /// With TRANSIENT, as a server does that sheds load.
    Transient,
    /// The servant deferred the reply: the time ends when it returned.
    Deferred,
}

/// Why the recorder of a process cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// There is no such process, or it may not be traced by this user.
    Process {
        /// The process.
        process: u32,
        /// The host's reason.
        error: io::Error,
    },
    /// The process has no recorder.
    NoRecorder {
        /// The process.
        process: u32,
    },
    /// The recorder is of another version of rtorb.
    OtherVersion {
        /// The process.
        process: u32,
    },
    /// The process has no rings for copies of its calls.
    NoCallRings {
        /// The process.
        process: u32,
    },
    /// Another reader takes the copies of the process's calls.
    OtherReader {
        /// The process.
        process: u32,
    },
    /// The memory for copies of calls has something else in it.
    SpoiltCopies {
        /// The process.
        process: u32,
    },
}

impl Display for ReadError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { process, error } => write!(
                f,
                "cannot read process {process}: {error}. Its own user and root may, while it runs"
            ),
            Self::NoRecorder { process } => write!(
                f,
                "process {process} has no recorder: start it with -ORBRecorder yes"
            ),
            Self::OtherVersion { process } => write!(
                f,
                "the recorder of process {process} is of another version of rtorb: use the command of that version"
            ),
            Self::NoCallRings { process } => write!(
                f,
                "process {process} has no room for copies of its calls: start it with -ORBRecordCalls 1048576"
            ),
            Self::OtherReader { process } => write!(
                f,
                "another command records the calls of process {process}: a process has one such reader at a time"
            ),
            Self::SpoiltCopies { process } => write!(
                f,
                "the copies of calls of process {process} cannot be read further: something else has written their memory, such as a process that it has forked"
            ),
        }
    }
}

impl core::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Process { error, .. } => Some(error),
            Self::NoRecorder { .. }
            | Self::OtherVersion { .. }
            | Self::NoCallRings { .. }
            | Self::OtherReader { .. }
            | Self::SpoiltCopies { .. } => None,
        }
    }
}

impl CallSide {
    const ALL: [Self; 4] = [Self::Client, Self::Server, Self::Collocated, Self::Started];

    /// Returns its name, as traces have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Collocated => "collocated",
            Self::Started => "started",
        }
    }

    /// Returns the side with that [name](Self::name).
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|side| side.name() == name)
    }

    /// Returns the side with that number.
    const fn of(number: u64) -> Self {
        match number {
            1 => Self::Server,
            2 => Self::Collocated,
            3 => Self::Started,
            _ => Self::Client,
        }
    }
}

impl CallOutcome {
    /// All, in their order.
    pub const ALL: [Self; 6] = [
        Self::Done,
        Self::UserException,
        Self::SystemException,
        Self::Timeout,
        Self::Transient,
        Self::Deferred,
    ];

    pub(crate) const fn of(kind: ExceptionKind) -> Self {
        match kind {
            ExceptionKind::Timeout => Self::Timeout,
            ExceptionKind::Transient => Self::Transient,
            _ => Self::SystemException,
        }
    }

    /// Returns the outcome with that [name](Self::name).
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|outcome| outcome.name() == name)
    }

    /// Returns its name, as JSON and traces have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::UserException => "user_exception",
            Self::SystemException => "system_exception",
            Self::Timeout => "timeout",
            Self::Transient => "transient",
            Self::Deferred => "deferred",
        }
    }
}

impl CountedOperation {
    /// Returns the number of calls.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.outcomes
            .iter()
            .fold(0, |sum, calls| sum.saturating_add(*calls))
    }
}

impl ProcessSnapshot {
    /// Reads the recorder of a process. The process does not notice.
    ///
    /// # Errors
    /// [`ReadError`] when it has none, or may not be read.
    pub fn of_process(process: u32) -> Result<Self, ReadError> {
        Self::read(process, true)
    }

    /// Reads the recorder of a process without its events, which are most of it.
    ///
    /// # Errors
    /// [`ReadError`] when it has none, or may not be read.
    pub fn counters_of_process(process: u32) -> Result<Self, ReadError> {
        Self::read(process, false)
    }

    fn read(process: u32, with_events: bool) -> Result<Self, ReadError> {
        let words = open(process)?;
        if words.count() < layout::WORDS || words.get(page_word::VERSION) != VERSION {
            return Err(ReadError::OtherVersion { process });
        }
        let times = Times::of(&words);
        // Parts are taken in their order, so that each has the same place in all snapshots of a process.
        let threads = (0..THREADS_MAX).map_while(|number| {
            ThreadWordsOfOther {
                words: &words,
                at: layout::thread_at(number),
                times,
            }
            .read(process, with_events)
        });
        Ok(Self {
            process,
            name: comm(&format!("/proc/{process}/comm")),
            at_ns: times.now.ns,
            started_ns: times.start.ns,
            threads: threads.collect(),
            refused_threads: words.get(page_word::REFUSED_THREADS),
        })
    }

    /// Returns the processes of this host that have a recorder and may be read, in ascending order.
    #[must_use]
    pub fn processes() -> Vec<u32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let mut found: Vec<u32> = numbers.filter(|process| open(*process).is_ok()).collect();
        found.sort_unstable();
        found
    }

    /// Returns the counters of all threads together, by side and name.
    #[must_use]
    pub fn operations(&self) -> Vec<CountedOperation> {
        let mut all: Vec<CountedOperation> = Vec::new();
        for one in self.threads.iter().flat_map(|thread| &thread.operations) {
            match all
                .iter_mut()
                .find(|it| it.side == one.side && it.name == one.name)
            {
                Some(known) => known.add(one),
                None => all.push(one.clone()),
            }
        }
        all.sort_by(|one, other| (one.side, &one.name).cmp(&(other.side, &other.name)));
        all
    }
}

impl CountedOperation {
    /// Returns the calls that came after an earlier state of the same counters. The longest time is that of all.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let outcomes = self.outcomes.iter().zip(earlier.outcomes);
        let mut outcomes = outcomes.map(|(now, before)| now.saturating_sub(before));
        Self {
            name: self.name.clone(),
            side: self.side,
            outcomes: core::array::from_fn(|_| outcomes.next().unwrap_or_default()),
            times: self.times.since(&earlier.times),
            longest: self.longest,
            waits: self.waits.since(&earlier.waits),
            deadline_misses: self.deadline_misses.saturating_sub(earlier.deadline_misses),
            demotions: self.demotions.saturating_sub(earlier.demotions),
        }
    }

    /// Adds the calls of another thread.
    fn add(&mut self, other: &Self) {
        for (own, others) in self.outcomes.iter_mut().zip(other.outcomes) {
            *own = own.saturating_add(others);
        }
        self.times.add(&other.times);
        self.longest = self.longest.max(other.longest);
        self.waits.add(&other.waits);
        self.deadline_misses = self.deadline_misses.saturating_add(other.deadline_misses);
        self.demotions = self.demotions.saturating_add(other.demotions);
    }

    /// Returns true if anything of it was counted. A call is counted once it has been recorded, what it missed perhaps before.
    fn is_counted(&self) -> bool {
        self.calls() > 0 || self.deadline_misses > 0 || self.demotions > 0
    }
}

/// Returns the files of memory of a process that have that name.
pub(super) fn files(process: u32, name: &str) -> io::Result<impl Iterator<Item = PathBuf>> {
    let files = fs::read_dir(format!("/proc/{process}/fd"))?.flatten();
    let name = format!("/memfd:{name}");
    let paths = files.map(|file| file.path());
    Ok(paths.filter(move |path| {
        let leads_to = fs::read_link(path).unwrap_or_default();
        leads_to
            .to_str()
            .is_some_and(|it| it.split(' ').next() == Some(&name))
    }))
}

fn open(process: u32) -> Result<WordsOfOther, ReadError> {
    let failed = |error| ReadError::Process { process, error };
    let own_id = own_id(process).map_err(failed)?;
    for path in files(process, layout::FILE_NAME).map_err(failed)? {
        // Whatever the process has put in its place meanwhile: opening it does not wait.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path);
        let file = match file {
            // Two threads started the recorder at once, and this was that of the second.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file.map_err(failed)?,
        };
        let words = match WordsOfOther::open(&file) {
            // It is being made: its size may still change.
            Err(Errno::PERM) => continue,
            words => words.map_err(|errno| failed(errno.into()))?,
        };
        // Until the recorder runs, the version is 0. A child has the file of the process that forked it.
        let is_own = match words.get(page_word::VERSION) {
            VERSION => words.get(page_word::PROCESS) == u64::from(own_id),
            version => version != 0,
        };
        if is_own {
            return Ok(words);
        }
    }
    Err(ReadError::NoRecorder { process })
}

/// Returns the id of a process in its own PID namespace, the last of `NSpid` (proc_pid_status(5)).
pub(super) fn own_id(process: u32) -> io::Result<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    let own = ids.and_then(|ids| ids.split_whitespace().next_back()?.parse().ok());
    Ok(own.unwrap_or(process))
}

/// Returns the name in a file of /proc; empty if it is gone.
fn comm(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| String::new(), |name| name.trim_end().to_owned())
}

/// Converts ticks to times.
#[derive(Clone, Copy, Debug)]
struct Times {
    start: Moment,
    now: Moment,
    tick_ns: f64,
}

impl Times {
    fn of(words: &WordsOfOther) -> Self {
        let clock = if words.get(page_word::CLOCK) == 1 {
            TickClock::TimeStampCounter
        } else {
            TickClock::Monotonic
        };
        let start = Moment {
            ticks: words.get(page_word::START_TICKS),
            ns: words.get(page_word::START_NS),
        };
        let now = clock.moment();
        let ticks = now.ticks.saturating_sub(start.ticks).max(1);
        Self {
            start,
            now,
            tick_ns: now.ns.saturating_sub(start.ns) as f64 / ticks as f64,
        }
    }

    /// Returns a time of an event in ns; 0 for none. It is exact near the present, where the events are that matter.
    fn ns(&self, time: u64) -> u64 {
        if time == 0 {
            return 0;
        }
        if time & IN_NS != 0 {
            return time & !IN_NS;
        }
        match self.now.ticks.checked_sub(time) {
            Some(ago) => self.now.ns.saturating_sub(self.length(ago)),
            // It ended while the recorder was read.
            None => self.now.ns + self.length(time - self.now.ticks),
        }
    }

    fn length(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.tick_ns).round() as u64
    }
}

/// The part of a thread in the memory of another process.
#[derive(Debug)]
struct ThreadWordsOfOther<'w> {
    words: &'w WordsOfOther,
    at: usize,
    times: Times,
}

impl ThreadWordsOfOther<'_> {
    fn word(&self, place: usize) -> u64 {
        self.words.get(self.at + place)
    }

    /// Reads it; `None` if no thread has ever had it.
    fn read(&self, process: u32, with_events: bool) -> Option<ThreadSnapshot> {
        let thread = u32::try_from(self.word(thread_word::THREAD)).ok()?;
        if thread == 0 {
            return None;
        }
        // Before the operations, so that those of all these events are among them.
        let written = self.word(thread_word::WRITTEN);
        let count = self.word(thread_word::OPERATIONS) as usize;
        let operations: Vec<CountedOperation> = (0..count.min(OPERATIONS_MAX))
            .map(|place| self.operation(place))
            .collect();
        let (events, overwritten) = if with_events {
            self.events(written, &operations)
        } else {
            (Vec::new(), written.saturating_sub(EVENTS_MAX as u64))
        };
        let is_owned = self.word(thread_word::OWNED) != 0;
        let name = if is_owned {
            comm(&format!("/proc/{process}/task/{thread}/comm"))
        } else {
            String::new()
        };
        Some(ThreadSnapshot {
            thread,
            name,
            lane: self.lane(),
            most_accepted: self.word(thread_word::MOST_ACCEPTED),
            refused: self.word(thread_word::REFUSED),
            shed: self.word(thread_word::SHED),
            expired: self.word(thread_word::EXPIRED),
            operations: operations
                .into_iter()
                .filter(CountedOperation::is_counted)
                .collect(),
            events,
            overwritten,
        })
    }

    fn lane(&self) -> Option<RecordedLane> {
        let lane = self.word(thread_word::LANE);
        (lane & IS_LANE != 0).then_some(RecordedLane {
            pool: ((lane & !IS_LANE) >> 16) as u32,
            priority: lane as i16,
        })
    }

    fn operation(&self, number: usize) -> CountedOperation {
        let at = layout::OPERATIONS_AT + number * operation_word::COUNT;
        let word = |place: usize| self.word(at + place);
        let key = word(operation_word::KEY);
        let length = (key as u32 as usize).min(NAME_BYTES);
        let bytes: Vec<u8> = (0..NAME_BYTES / 8)
            .flat_map(|index| word(operation_word::NAME + index).to_le_bytes())
            .take(length)
            .collect();
        CountedOperation {
            name: String::from_utf8_lossy(&bytes).into_owned(),
            side: CallSide::of(key >> 32),
            outcomes: core::array::from_fn(|outcome| word(operation_word::OUTCOMES + outcome)),
            times: Histogram::new(self.times.tick_ns, |bucket| {
                word(operation_word::TIMES + bucket)
            }),
            waits: Histogram::new(1.0, |bucket| word(operation_word::WAITING + bucket)),
            longest: Duration::from_nanos(self.times.length(word(operation_word::LONGEST))),
            deadline_misses: word(operation_word::DEADLINE_MISSES),
            demotions: word(operation_word::DEMOTIONS),
        }
    }

    /// Returns the events that the thread did not overwrite while they were read, and how many are gone.
    fn events(&self, written: u64, operations: &[CountedOperation]) -> (Vec<CallEvent>, u64) {
        let oldest = written.saturating_sub(EVENTS_MAX as u64);
        let read: Vec<CallEvent> = (oldest..written)
            .map(|number| self.event(number, operations))
            .collect();
        // The thread may be in the middle of the event behind the last that it has written.
        let ended = self.word(thread_word::WRITTEN).saturating_add(1);
        let whole = ended.saturating_sub(EVENTS_MAX as u64);
        let torn = whole.saturating_sub(oldest).min(read.len() as u64);
        let events = read.into_iter().skip(torn as usize).collect();
        (events, oldest + torn)
    }

    fn event(&self, number: u64, operations: &[CountedOperation]) -> CallEvent {
        let place = (number % EVENTS_MAX as u64) as usize;
        let at = layout::EVENTS_AT + place * event_word::COUNT;
        let word = |place: usize| self.word(at + place);
        let what = word(event_word::WHAT);
        let operation = operations.get((what >> 16 & 0xffff) as usize);
        let outcome = CallOutcome::ALL.get((what >> 8 & 0xff) as usize);
        let priority = (what >> 48) as u16 as i16;
        CallEvent {
            thread: (word(event_word::REQUEST) >> 32) as u32,
            side: CallSide::of(what & 0xff),
            outcome: outcome.copied().unwrap_or(CallOutcome::SystemException),
            operation: operation.map_or_else(|| "...".to_owned(), |it| it.name.clone()),
            cpu: (what >> 32) as u16,
            priority: (priority >= 0).then_some(priority),
            request_id: word(event_word::REQUEST) as u32,
            connection: word(event_word::CONNECTION),
            first_ns: self.times.ns(word(event_word::FIRST)),
            second_ns: self.times.ns(word(event_word::SECOND)),
            last_ns: self.times.ns(word(event_word::LAST)),
        }
    }
}
