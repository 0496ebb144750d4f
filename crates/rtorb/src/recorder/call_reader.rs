//! Reads the copies of whole calls from the memory of a process, this one or another.

use super::call_copies::{
    FILE_NAME, IS_DEFERRED, IS_PARTIAL, PAGE_WORDS, RING_HEAD_WORDS, VERSION, copy_word, page_word,
    ring_word,
};
use super::layout::THREADS_MAX;
use super::snapshot::{ReadError, files, own_id};
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU64, Ordering};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::shared_words::WritableWordsOfOther;
use rtorb_wire::code_sets::CodeSets;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;

/// A call as it was served: its messages, in GIOP, and its times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopiedCall {
    /// The repository id of the object's interface; empty if the object was gone when its call ended.
    pub repository_id: String,
    /// The message of the request; `None` if it was not whole in memory.
    pub request: Option<Vec<u8>>,
    /// The message of the reply; empty for a oneway, and if the servant has deferred it.
    pub reply: Vec<u8>,
    /// The servant has deferred the reply, which is not copied.
    pub is_deferred: bool,
    /// When the thread began to serve it, in ns of CLOCK_MONOTONIC.
    pub began_ns: u64,
    /// When the reply was sent, in ns of CLOCK_MONOTONIC.
    pub ended_ns: u64,
    /// The CORBA priority of the thread, if it has one.
    pub priority: Option<i16>,
    /// The code sets that the client named for its connection.
    pub code_sets: Option<CodeSets>,
    /// The number of calls of its thread that had no room before it, since the ring exists.
    pub lost_before: u64,
}

/// The reader of a process's calls: while it exists, the process copies them. A process has one at a time.
#[derive(Debug)]
pub struct CallReader {
    process: u32,
    words: WritableWordsOfOther,
    ring_words: usize,
    rings: Vec<RingState>,
    /// A ring had no copy where one should be.
    is_spoilt: bool,
    /// It holds the lock that keeps other readers away.
    _file: File,
}

/// What the reader knows of a ring.
#[derive(Clone, Copy, Debug, Default)]
struct RingState {
    /// The words that it has read.
    read: u64,
    /// The counters when it began.
    served_before: u64,
    lost_before: u64,
}

/// How long a process copies calls after a reader has looked last, in ns.
const LEASE_NS: u64 = 2_000_000_000;

impl CallReader {
    /// Has the process copy one of `sample` calls of each thread, from now on.
    ///
    /// # Errors
    /// [`ReadError`] when it has no rings for calls, another reader reads them, or this user may not write its memory.
    pub fn of_process(process: u32, sample: NonZeroU32) -> Result<Self, ReadError> {
        let failed = |error| ReadError::Process { process, error };
        let own_id = own_id(process).map_err(failed)?;
        for path in files(process, FILE_NAME).map_err(failed)? {
            let file = match OpenOptions::new().read(true).write(true).open(path) {
                // Two threads made the rings at once, and these were those of the second.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file.map_err(failed)?,
            };
            let words = match WritableWordsOfOther::open(&file) {
                // It is being made: its size may still change.
                Err(Errno::PERM) => continue,
                words => words.map_err(|errno| failed(errno.into()))?,
            };
            let page = words.words();
            let version = word(page, page_word::VERSION);
            if version != 0 && version != VERSION {
                return Err(ReadError::OtherVersion { process });
            }
            if version == VERSION && word(page, page_word::PROCESS) == u64::from(own_id) {
                return Self::begin(process, file, words, sample);
            }
        }
        Err(ReadError::NoCallRings { process })
    }

    fn begin(
        process: u32,
        file: File,
        words: WritableWordsOfOther,
        sample: NonZeroU32,
    ) -> Result<Self, ReadError> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Err(ReadError::OtherReader { process }),
            locked => locked.map_err(|errno| ReadError::Process {
                process,
                error: errno.into(),
            })?,
        }
        let page = words.words();
        let ring_words = word(page, page_word::RING_WORDS) as usize;
        let needed = ring_words
            .checked_add(RING_HEAD_WORDS)
            .and_then(|ring| ring.checked_mul(THREADS_MAX)?.checked_add(PAGE_WORDS));
        if ring_words == 0 || needed != Some(page.len()) {
            return Err(ReadError::OtherVersion { process });
        }
        let mut reader = Self {
            process,
            words,
            ring_words,
            rings: Vec::new(),
            is_spoilt: false,
            _file: file,
        };
        reader.rings = (0..THREADS_MAX)
            .map(|number| {
                let head = reader.head(number);
                // What an earlier reader has left is not of this recording.
                let written = head[ring_word::WRITTEN].load(Ordering::Acquire);
                head[ring_word::READ].store(written, Ordering::Release);
                RingState {
                    read: written,
                    served_before: word(head, ring_word::SERVED),
                    lost_before: word(head, ring_word::LOST),
                }
            })
            .collect();
        reader.renew();
        let sample = u64::from(sample.get());
        reader.words.words()[page_word::SAMPLE].store(sample, Ordering::Release);
        Ok(reader)
    }

    /// Returns the process.
    #[must_use]
    pub const fn process(&self) -> u32 {
        self.process
    }

    /// Takes the calls that have ended since, in the order of their ends. Call it at least every second: the process copies calls for two
    /// seconds more.
    ///
    /// # Errors
    /// [`ReadError::SpoiltCopies`] when a ring has no copies of calls, because something else has written it.
    pub fn read(&mut self) -> Result<Vec<CopiedCall>, ReadError> {
        self.renew();
        self.take()
    }

    /// Has the process copy no more calls, and takes the last ones.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn stop(&mut self) -> Result<Vec<CopiedCall>, ReadError> {
        self.words.words()[page_word::SAMPLE].store(0, Ordering::Release);
        self.take()
    }

    /// Returns the number of calls that the process served since the reader began, copied or not.
    #[must_use]
    pub fn served(&self) -> u64 {
        self.count(ring_word::SERVED, |ring| ring.served_before)
    }

    /// Returns the number of calls since the reader began that had no room in their rings, or came more than two seconds after it looked.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.count(ring_word::LOST, |ring| ring.lost_before)
    }

    fn count(&self, counter: usize, before: impl Fn(&RingState) -> u64) -> u64 {
        let rings = self.rings.iter().enumerate();
        rings.fold(0, |sum, (number, ring)| {
            let now = word(self.head(number), counter);
            sum.saturating_add(now.saturating_sub(before(ring)))
        })
    }

    fn renew(&self) {
        let until = monotonic_ns().saturating_add(LEASE_NS);
        self.words.words()[page_word::UNTIL_NS].store(until, Ordering::Release);
    }

    fn take(&mut self) -> Result<Vec<CopiedCall>, ReadError> {
        let spoilt = ReadError::SpoiltCopies {
            process: self.process,
        };
        if self.is_spoilt {
            return Err(spoilt);
        }
        let mut calls = Vec::new();
        for number in 0..self.rings.len() {
            let written = self.head(number)[ring_word::WRITTEN].load(Ordering::Acquire);
            while self.rings[number].read != written {
                let read = self.rings[number].read;
                let unread = written.wrapping_sub(read);
                let Some((words, call)) = read_copy(self.ring(number), read, unread) else {
                    self.is_spoilt = true;
                    break;
                };
                self.rings[number].read = read.wrapping_add(words);
                calls.push(call);
            }
            // From here on, the thread may use the room again.
            self.head(number)[ring_word::READ].store(written, Ordering::Release);
        }
        // What was read before is not lost: the next reading fails.
        if self.is_spoilt && calls.is_empty() {
            return Err(spoilt);
        }
        calls.sort_by_key(|call| call.ended_ns);
        Ok(calls)
    }

    fn head(&self, number: usize) -> &[AtomicU64] {
        let at = PAGE_WORDS + number * (RING_HEAD_WORDS + self.ring_words);
        &self.words.words()[at..at + RING_HEAD_WORDS]
    }

    fn ring(&self, number: usize) -> &[AtomicU64] {
        let at = PAGE_WORDS + number * (RING_HEAD_WORDS + self.ring_words) + RING_HEAD_WORDS;
        &self.words.words()[at..at + self.ring_words]
    }
}

impl Drop for CallReader {
    fn drop(&mut self) {
        self.words.words()[page_word::SAMPLE].store(0, Ordering::Release);
    }
}

/// Reads the copy at that position of a ring that has `unread` words to read. Returns the number of its words too. `None` if it is no copy.
pub(super) fn read_copy(ring: &[AtomicU64], at: u64, unread: u64) -> Option<(u64, CopiedCall)> {
    let get = |offset: usize| {
        let place = at.wrapping_add(offset as u64) % ring.len() as u64;
        word(ring, place as usize)
    };
    let what = get(copy_word::WORDS);
    let words = u64::from(what as u32);
    if unread > ring.len() as u64 || words > unread || words < copy_word::COUNT as u64 {
        return None;
    }
    let id = get(copy_word::ID_BYTES);
    let lengths = [
        u64::from(id as u32),
        get(copy_word::REQUEST_BYTES),
        get(copy_word::REPLY_BYTES),
    ];
    let mut offset = copy_word::COUNT;
    let mut parts = [const { Vec::new() }; 3];
    for (part, length) in parts.iter_mut().zip(lengths) {
        let part_words = length.div_ceil(8);
        if part_words > words - offset as u64 {
            return None;
        }
        let bytes = (0..part_words as usize).flat_map(|it| get(offset + it).to_le_bytes());
        part.extend(bytes.take(length as usize));
        offset += part_words as usize;
    }
    let [repository_id, request, reply] = parts;
    let priority = (id >> 32) as u16 as i16;
    let code_sets = get(copy_word::CODE_SETS);
    let call = CopiedCall {
        repository_id: String::from_utf8_lossy(&repository_id).into_owned(),
        request: (what & IS_PARTIAL == 0).then_some(request),
        reply,
        is_deferred: what & IS_DEFERRED != 0,
        began_ns: get(copy_word::BEGAN_NS),
        ended_ns: get(copy_word::ENDED_NS),
        priority: (priority >= 0).then_some(priority),
        code_sets: (code_sets != 0).then_some(CodeSets {
            char_data: (code_sets >> 32) as u32,
            wchar_data: code_sets as u32,
        }),
        lost_before: get(copy_word::LOST),
    };
    Some((words, call))
}

fn word(words: &[AtomicU64], place: usize) -> u64 {
    words[place].load(Ordering::Acquire)
}
