//! Copies of whole calls: the messages of a request and of its reply, in a ring of bytes for each thread.
//!
//! The rings are a file of memory beside the recorder's, which an ORB with `-ORBRecordCalls` makes. Nothing is copied until a reader
//! ([`CallReader`](super::CallReader)) asks for it. Its request is a lease: a reader that dies stops the copying by that.

use super::layout::THREADS_MAX;
use core::sync::atomic::{AtomicU64, Ordering};
use rtorb_os::Refused;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::memory;
use rtorb_os::set_once::SetOnce;
use rtorb_os::shared_words::SharedWords;
use rtorb_wire::code_sets::CodeSets;

/// The name of the file, as its readers see it behind `/memfd:`.
pub(super) const FILE_NAME: &str = "rtorb-calls";

/// The first word: it changes with the layout. The bytes read `rtcal`, and a number.
pub(super) const VERSION: u64 = 0x7274_6361_6c00_0001;

/// Words of the process.
pub(super) mod page_word {
    pub(in crate::recorder) const VERSION: usize = 0;
    /// The id of the process, as it has it itself.
    pub(in crate::recorder) const PROCESS: usize = 1;
    /// The words of each ring.
    pub(in crate::recorder) const RING_WORDS: usize = 2;
    /// Written by the reader: of how many calls of a thread one is copied; 0 for none.
    pub(in crate::recorder) const SAMPLE: usize = 8;
    /// Written by the reader: until when it wants copies, in ns of CLOCK_MONOTONIC.
    pub(in crate::recorder) const UNTIL_NS: usize = 9;
}

/// Words at the beginning of a ring.
pub(super) mod ring_word {
    /// The number of words that were ever written.
    pub(in crate::recorder) const WRITTEN: usize = 0;
    /// Calls that were served while a reader wanted copies.
    pub(in crate::recorder) const SERVED: usize = 1;
    /// Calls that had no room in the ring, or came when the reader was late.
    pub(in crate::recorder) const LOST: usize = 2;
    /// Written by the reader: the number of words that it has read. It is in a cache line of its own.
    pub(in crate::recorder) const READ: usize = 8;
}

/// Words at the beginning of a copy. Its parts follow, each from a word on: the repository id, the request, the reply.
pub(super) mod copy_word {
    /// The words of the copy, and its flags above them.
    pub(in crate::recorder) const WORDS: usize = 0;
    pub(in crate::recorder) const BEGAN_NS: usize = 1;
    pub(in crate::recorder) const ENDED_NS: usize = 2;
    /// The bytes of the repository id, and the priority above them.
    pub(in crate::recorder) const ID_BYTES: usize = 3;
    pub(in crate::recorder) const REQUEST_BYTES: usize = 4;
    pub(in crate::recorder) const REPLY_BYTES: usize = 5;
    /// The code sets that the client named for its connection: that of `wchar`, and that of `char` above it; 0 if it named none.
    pub(in crate::recorder) const CODE_SETS: usize = 6;
    /// The calls of the thread that had no room before this one.
    pub(in crate::recorder) const LOST: usize = 7;
    pub(in crate::recorder) const COUNT: usize = 8;
}

/// The words before the first ring, and those at the beginning of each ring.
pub(super) const PAGE_WORDS: usize = 64;
pub(super) const RING_HEAD_WORDS: usize = 16;

/// Flags of a copy: the request was not whole in memory; the reply comes later, from another thread.
pub(super) const IS_PARTIAL: u64 = 1 << 32;
pub(super) const IS_DEFERRED: u64 = 1 << 33;

/// The smallest ring for copies of calls, in bytes.
pub const RING_BYTES_MIN: usize = 4096;
/// The largest ring for copies of calls, in bytes.
pub const RING_BYTES_MAX: usize = 64 << 20;

/// The rings of the process, once an ORB has made them.
static COPIES: SetOnce<CallCopies> = SetOnce::new();

/// The rings of all threads.
#[derive(Debug)]
struct CallCopies {
    page: &'static [AtomicU64; PAGE_WORDS],
    rings: Box<[CallRing]>,
    _memory: SharedWords,
}

/// The ring of one thread. Only that thread writes copies, and one reader takes them.
#[derive(Debug)]
pub(super) struct CallRing {
    head: &'static [AtomicU64; RING_HEAD_WORDS],
    words: &'static [AtomicU64],
}

/// A call that is copied when it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BegunCopy {
    ring: &'static CallRing,
    began_ns: u64,
}

/// A call that the thread has served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedCall<'c> {
    /// The repository id of the object's interface; empty if it is not known.
    pub(crate) repository_id: &'c str,
    /// The message of the request; `None` if it was not whole in memory.
    pub(crate) request: Option<&'c [u8]>,
    /// The message of the reply; empty without one.
    pub(crate) reply: &'c [u8],
    /// The servant has deferred the reply.
    pub(crate) is_deferred: bool,
    /// The CORBA priority of the thread.
    pub(crate) priority: i16,
    /// The code sets that the client named for its connection.
    pub(crate) code_sets: Option<CodeSets>,
}

/// Makes the rings, if there are none.
///
/// # Errors
/// [`Refused`] when the host has no memory for them.
pub(crate) fn start(ring_bytes: usize) -> Result<(), Refused> {
    let copies = match COPIES.get() {
        Some(made) => made,
        None => {
            let new = CallCopies::new(ring_bytes)?;
            COPIES.get_or_make(|| new)
        }
    };
    copies.page[page_word::VERSION].store(VERSION, Ordering::Release);
    Ok(())
}

/// Begins a call of the thread with that part of the recorder. `None` if it is not copied.
#[inline(always)]
pub(crate) fn begin(part: usize) -> Option<BegunCopy> {
    let copies = COPIES.get()?;
    match copies.page[page_word::SAMPLE].load(Ordering::Relaxed) {
        0 => None,
        sample => copies.begin(part, sample),
    }
}

/// Populates the ring of that part, so that no call that a thread serves waits for the host to provide its memory.
#[cold]
pub(crate) fn populate(part: usize) {
    if let Some(ring) = COPIES.get().and_then(|copies| copies.rings.get(part)) {
        for words in [ring.head, ring.words] {
            memory::populate(words);
        }
    }
}

impl CallCopies {
    fn new(ring_bytes: usize) -> Result<Self, Refused> {
        let ring_words = ring_bytes.clamp(RING_BYTES_MIN, RING_BYTES_MAX) / size_of::<u64>();
        let count = PAGE_WORDS + THREADS_MAX * (RING_HEAD_WORDS + ring_words);
        let memory = SharedWords::create(FILE_NAME, count)?;
        let whole = "the memory has as many words as the layout";
        let (page, rest) = memory.words().split_first_chunk().expect(whole);
        let rings = rest.chunks_exact(RING_HEAD_WORDS + ring_words);
        let rings = rings.map(|words| {
            let (head, words) = words.split_first_chunk().expect(whole);
            CallRing { head, words }
        });
        let rings = rings.collect();
        page[page_word::PROCESS].store(u64::from(std::process::id()), Ordering::Relaxed);
        page[page_word::RING_WORDS].store(ring_words as u64, Ordering::Relaxed);
        Ok(Self {
            page,
            rings,
            _memory: memory,
        })
    }

    /// Begins a call while a reader may want copies.
    #[cold]
    fn begin(&'static self, part: usize, sample: u64) -> Option<BegunCopy> {
        let began_ns = monotonic_ns();
        let ring = self.rings.get(part)?;
        if !ring.add_one(ring_word::SERVED).is_multiple_of(sample) {
            return None;
        }
        if began_ns >= self.page[page_word::UNTIL_NS].load(Ordering::Relaxed) {
            // The reader is late, or has died.
            ring.add_one(ring_word::LOST);
            return None;
        }
        Some(BegunCopy { ring, began_ns })
    }
}

impl BegunCopy {
    /// Copies the call, if there is room.
    #[cold]
    pub(crate) fn end(&self, call: &ServedCall<'_>) {
        self.ring.write(self.began_ns, monotonic_ns(), call);
    }
}

impl CallRing {
    /// Writes a copy behind those that are not read yet. Counts the call if there is no room.
    fn write(&self, began_ns: u64, ended_ns: u64, call: &ServedCall<'_>) {
        let request = call.request.unwrap_or_default();
        let parts = [call.repository_id.as_bytes(), request, call.reply];
        let words = parts.iter().map(|part| part.len().div_ceil(8));
        let words = copy_word::COUNT + words.sum::<usize>();
        let written = self.head[ring_word::WRITTEN].load(Ordering::Relaxed);
        // What the reader writes is not trusted: it decides what is lost, and nothing else.
        let read = self.head[ring_word::READ].load(Ordering::Acquire);
        let used = usize::try_from(written.wrapping_sub(read)).unwrap_or(usize::MAX);
        let room = self.words.len().saturating_sub(used);
        if words > room {
            self.add_one(ring_word::LOST);
            return;
        }
        let mut flags = 0;
        if call.request.is_none() {
            flags |= IS_PARTIAL;
        }
        if call.is_deferred {
            flags |= IS_DEFERRED;
        }
        let code_sets = call.code_sets.map_or(0, |named| {
            u64::from(named.char_data) << 32 | u64::from(named.wchar_data)
        });
        let mut head = [0; copy_word::COUNT];
        head[copy_word::WORDS] = words as u64 | flags;
        head[copy_word::BEGAN_NS] = began_ns;
        head[copy_word::ENDED_NS] = ended_ns;
        head[copy_word::ID_BYTES] = parts[0].len() as u64 | u64::from(call.priority as u16) << 32;
        head[copy_word::REQUEST_BYTES] = request.len() as u64;
        head[copy_word::REPLY_BYTES] = call.reply.len() as u64;
        head[copy_word::CODE_SETS] = code_sets;
        head[copy_word::LOST] = self.head[ring_word::LOST].load(Ordering::Relaxed);
        let bytes = parts.iter().flat_map(|part| part.chunks(8)).map(word_of);
        let mut place = (written % self.words.len() as u64) as usize;
        for word in head.into_iter().chain(bytes) {
            self.words[place].store(word, Ordering::Relaxed);
            place = if place + 1 == self.words.len() {
                0
            } else {
                place + 1
            };
        }
        // A reader that sees the number sees the copy.
        let written = written.wrapping_add(words as u64);
        self.head[ring_word::WRITTEN].store(written, Ordering::Release);
    }

    /// Adds one to a counter, which only this thread writes. Returns what it was.
    fn add_one(&self, counter: usize) -> u64 {
        let before = self.head[counter].load(Ordering::Relaxed);
        self.head[counter].store(before.wrapping_add(1), Ordering::Relaxed);
        before
    }
}

/// Returns at most eight bytes as a word.
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::super::call_reader::{CopiedCall, read_copy};
    use super::*;
    use std::thread;

    fn words(count: usize) -> &'static [AtomicU64] {
        Box::leak((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    fn ring(count: usize) -> CallRing {
        let head = words(RING_HEAD_WORDS).first_chunk().expect("as many words");
        CallRing {
            head,
            words: words(count),
        }
    }

    impl CallRing {
        fn at(&self, word: usize) -> u64 {
            self.head[word].load(Ordering::Acquire)
        }

        /// Writes a call whose messages have that length and content.
        fn write_call(&self, length: usize, content: u8) {
            let message = vec![content; length];
            let call = ServedCall {
                repository_id: "IDL:Valve:1.0",
                request: Some(&message),
                reply: &message,
                is_deferred: false,
                priority: 7,
                code_sets: None,
            };
            self.write(1, 2, &call);
        }

        /// Takes the oldest call, as the reader does.
        fn take(&self) -> Option<CopiedCall> {
            let (written, read) = (self.at(ring_word::WRITTEN), self.at(ring_word::READ));
            if written == read {
                return None;
            }
            let (count, call) = read_copy(self.words, read, written - read).expect("a copy");
            self.head[ring_word::READ].store(read + count, Ordering::Release);
            Some(call)
        }
    }

    #[test]
    fn a_copy_comes_back_whole_wherever_the_ring_ends_in_it() {
        let ring = ring(61);
        for number in 0..1000 {
            let (length, content) = (number % 150, number as u8);
            ring.write_call(length, content);
            let call = ring.take().expect("it has room");
            let message = vec![content; length];
            assert_eq!(call.repository_id, "IDL:Valve:1.0");
            assert_eq!(call.request.as_deref(), Some(&message[..]), "{number}");
            assert_eq!(call.reply, message, "{number}");
            assert_eq!((call.began_ns, call.ended_ns), (1, 2));
            assert_eq!((call.priority, call.lost_before), (Some(7), 0));
        }
    }

    #[test]
    fn what_has_no_room_is_counted_and_overwrites_nothing() {
        let ring = ring(61);
        for content in 0..10 {
            ring.write_call(8, content);
        }
        // Each has 8 words, 2 of the repository id and 2 of messages.
        assert_eq!(ring.at(ring_word::LOST), 5);
        assert_eq!(ring.take().expect("the first").reply, [0; 8]);
        ring.write_call(8, 10);
        ring.write_call(8, 11);
        assert_eq!(ring.at(ring_word::LOST), 6);
        let kept: Vec<_> = core::iter::from_fn(|| ring.take()).collect();
        let replies: Vec<_> = kept.iter().map(|call| call.reply[0]).collect();
        assert_eq!(replies, [1, 2, 3, 4, 10]);
        assert_eq!(kept[4].lost_before, 5);
    }

    #[test]
    fn a_call_larger_than_the_ring_is_lost() {
        let ring = ring(61);
        ring.write_call(400, 1);
        assert_eq!((ring.at(ring_word::LOST), ring.take()), (1, None));
    }

    #[test]
    fn whatever_a_reader_writes_a_call_is_written_or_lost() {
        let ring = ring(61);
        for read in [0, 1, 60, 61, 62, u64::MAX, u64::MAX / 2, 1 << 32] {
            ring.head[ring_word::READ].store(read, Ordering::Release);
            let before = (ring.at(ring_word::WRITTEN), ring.at(ring_word::LOST));
            ring.write_call(16, 1);
            let written = ring.at(ring_word::WRITTEN) - before.0;
            let lost = ring.at(ring_word::LOST) - before.1;
            assert!(matches!((written, lost), (14, 0) | (0, 1)), "{read}");
        }
    }

    #[test]
    fn words_that_are_no_copy_are_refused() {
        let ring = words(61);
        let copy = |what: u64, id: u64, request: u64, unread: u64| {
            ring[copy_word::WORDS].store(what, Ordering::Relaxed);
            ring[copy_word::ID_BYTES].store(id, Ordering::Relaxed);
            ring[copy_word::REQUEST_BYTES].store(request, Ordering::Relaxed);
            read_copy(ring, 0, unread)
        };
        assert!(copy(10, 8, 8, 10).is_some());
        for (what, id, request, unread) in [
            (0, 0, 0, 61),
            (7, 0, 0, 61),
            (11, 8, 8, 10),
            (10, 8, 9, 10),
            (10, 8, u64::MAX, 10),
            (10, u64::MAX, 8, 10),
            (62, 8, 8, 62),
            (u64::MAX, 8, 8, u64::MAX),
        ] {
            assert_eq!(
                copy(what, id, request, unread),
                None,
                "{what} {id} {request}"
            );
        }
    }

    #[test]
    fn a_reader_beside_the_writer_sees_no_torn_call() {
        const CALLS: u64 = 20_000;
        let ring: &CallRing = Box::leak(Box::new(ring(251)));
        let writer = thread::spawn(move || {
            for number in 0..CALLS {
                ring.write_call(number as usize % 90, number as u8);
            }
        });
        let mut read = 0;
        let mut take = || {
            let call = ring.take()?;
            read += 1;
            let number = read - 1 + call.lost_before;
            let expected = vec![number as u8; number as usize % 90];
            assert_eq!(call.reply, expected, "{number}");
            Some(())
        };
        while !writer.is_finished() {
            while take().is_some() {}
        }
        while take().is_some() {}
        writer.join().expect("it ends well");
        assert_eq!(read + ring.at(ring_word::LOST), CALLS);
    }
}
