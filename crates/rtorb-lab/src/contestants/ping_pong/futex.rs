//! The raw exchange through shared memory: the octets are copied word by word, and a futex wakes the other side, or it spins.
//!
//! If both sides sleep in the kernel as they do on a socket, one CPU is enough. If they spin, each needs a CPU of its own; it is
//! the cheapest hand-over between two processes that a machine has.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rtorb_os::clock::monotonic_ns;
use rtorb_os::futex;
use rtorb_os::shared_memory::{SharedMemory, WORDS};

use super::spinning::Spinning;
use crate::contestants::burst::{Burst, Samples};

/// The octets of a message that fit.
pub const MESSAGE_BYTES_MAX: usize = (WORDS - PAYLOAD) * 4;

/// What a side does until the other one has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It sleeps on a futex.
    Sleep,
    /// It looks again and again. As [`Spinning`] says.
    Spin,
}

/// Makes the shared words at a path and serves until the client closes.
///
/// # Errors
/// That the memory was refused.
pub fn serve(path: &Path, wait: Wait, ready: impl FnOnce(&str)) -> io::Result<()> {
    let memory = SharedMemory::create(path).map_err(io::Error::other)?;
    let mut message = vec![0; WORDS];
    // Before anybody knows of the words: a request that comes at once must be seen as new.
    let mut seen = memory.word(REQUEST).load(Ordering::Acquire);
    ready(&path.display().to_string());
    loop {
        seen = wait
            .until_changed(memory.word(REQUEST), seen, None)
            .unwrap_or(seen);
        if memory.word(CLOSED).load(Ordering::Acquire) != 0 {
            return Ok(());
        }
        take(
            &memory,
            &mut message,
            memory.word(REQUEST_WORDS).load(Ordering::Relaxed),
        );
        put(
            &memory,
            &message,
            memory.word(REPLY_WORDS).load(Ordering::Relaxed),
        );
        wait.publish(memory.word(REPLY), seen);
    }
}

/// The calling end.
#[derive(Debug)]
pub struct FutexClient {
    memory: SharedMemory,
    message: Vec<u32>,
    sequence: u32,
    wait: Wait,
}

impl FutexClient {
    /// Opens the words that [`serve`] made.
    ///
    /// # Errors
    /// That the memory was refused.
    pub fn connect(path: &Path, wait: Wait) -> io::Result<Self> {
        let memory = SharedMemory::open(path).map_err(io::Error::other)?;
        let sequence = memory.word(REQUEST).load(Ordering::Acquire);
        Ok(Self {
            memory,
            message: vec![0; WORDS],
            sequence,
            wait,
        })
    }

    /// Times a burst of exchanges.
    ///
    /// # Errors
    /// That the messages do not fit, have no reply, or that the server is silent.
    pub fn burst(&mut self, burst: &Burst) -> Result<Samples, String> {
        if burst.reply_bytes == 0 || burst.request_bytes.max(burst.reply_bytes) > MESSAGE_BYTES_MAX
        {
            return Err(format!(
                "the futex exchange carries 1 to {MESSAGE_BYTES_MAX} octets each way"
            ));
        }
        let mut samples = Samples::for_burst(burst);
        samples.time(
            burst,
            || self.exchange(burst.request_bytes, burst.reply_bytes),
            |right| *right,
        )?;
        Ok(samples)
    }

    fn exchange(&mut self, request_bytes: usize, reply_bytes: usize) -> Result<bool, String> {
        let previous = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        self.message[0] = self.sequence;
        let (request_words, reply_words) = (
            request_bytes.div_ceil(4) as u32,
            reply_bytes.div_ceil(4) as u32,
        );
        put(&self.memory, &self.message, request_words);
        self.memory
            .word(REQUEST_WORDS)
            .store(request_words, Ordering::Relaxed);
        self.memory
            .word(REPLY_WORDS)
            .store(reply_words, Ordering::Relaxed);
        self.wait.publish(self.memory.word(REQUEST), self.sequence);
        let deadline_ns = monotonic_ns() + REPLY_TIMEOUT_NS;
        let answered = self
            .wait
            .until_changed(self.memory.word(REPLY), previous, Some(deadline_ns))
            .ok_or_else(|| format!("no reply within {} ms", REPLY_TIMEOUT_NS / 1_000_000))?;
        take(&self.memory, &mut self.message, reply_words);
        Ok(answered == self.sequence && self.message[0] == self.sequence)
    }
}

impl Drop for FutexClient {
    fn drop(&mut self) {
        self.memory.word(CLOSED).store(1, Ordering::Release);
        self.memory.word(REQUEST).fetch_add(1, Ordering::Release);
        futex::wake(self.memory.word(REQUEST), 1);
    }
}

impl Wait {
    /// Writes the word, and wakes the other side if it may sleep.
    fn publish(self, word: &AtomicU32, value: u32) {
        word.store(value, Ordering::Release);
        if self == Self::Sleep {
            futex::wake(word, 1);
        }
    }

    /// Waits until the word is no longer `old`; answers what it became, `None` when the deadline passed.
    fn until_changed(self, word: &AtomicU32, old: u32, deadline_ns: Option<u64>) -> Option<u32> {
        match self {
            Self::Sleep => sleep_while(word, old, deadline_ns),
            Self::Spin => spin_while(word, old, deadline_ns),
        }
    }
}

fn spin_while(word: &AtomicU32, old: u32, deadline_ns: Option<u64>) -> Option<u32> {
    let mut spinning = Spinning::until(deadline_ns);
    loop {
        let now = word.load(Ordering::Acquire);
        if now != old {
            return Some(now);
        }
        if !spinning.pause() {
            return None;
        }
    }
}

/// Sleeps until the word is no longer `old`; answers what it became, `None` when the deadline passed.
pub(crate) fn sleep_while(word: &AtomicU32, old: u32, deadline_ns: Option<u64>) -> Option<u32> {
    loop {
        let now = word.load(Ordering::Acquire);
        if now != old {
            return Some(now);
        }
        if !futex::wait(word, old, deadline_ns) && word.load(Ordering::Acquire) == old {
            return None;
        }
    }
}

/// Copies a message into the shared words; the release that follows publishes it.
fn put(memory: &SharedMemory, message: &[u32], words: u32) {
    for (index, word) in message.iter().take(words as usize).enumerate() {
        memory.word(PAYLOAD + index).store(*word, Ordering::Relaxed);
    }
}

fn take(memory: &SharedMemory, message: &mut [u32], words: u32) {
    for (index, word) in message
        .iter_mut()
        .take((words as usize).min(WORDS - PAYLOAD))
        .enumerate()
    {
        *word = memory.word(PAYLOAD + index).load(Ordering::Relaxed);
    }
}

/// Counts requests; the server sleeps on it.
const REQUEST: usize = 0;
/// Counts replies; the client sleeps on it. A cache line away from the request's.
const REPLY: usize = 16;
const REQUEST_WORDS: usize = 1;
const REPLY_WORDS: usize = 2;
const CLOSED: usize = 3;
/// Where a message begins.
const PAYLOAD: usize = 32;
/// Longer than a busy host lets the other thread wait for a CPU, and less than the laboratory waits for this process.
const REPLY_TIMEOUT_NS: u64 = 8_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contestants::burst::Verb;
    use crate::contestants::operations::Operation;

    #[test]
    fn words_come_back_and_closing_ends_the_server() {
        for wait in [Wait::Sleep, Wait::Spin] {
            exchange_and_close(wait);
        }
    }

    fn exchange_and_close(wait: Wait) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("words");
        let (ready, is_ready) = std::sync::mpsc::channel();
        let server_path = path.clone();
        let work = move || serve(&server_path, wait, |_| ready.send(()).unwrap());
        let server = rtorb_os::thread::spawn("server", &Default::default(), work).unwrap();
        is_ready.recv().unwrap();
        let mut client = FutexClient::connect(&path, wait).unwrap();
        let burst = Burst {
            verb: Verb::Call,
            operation: Operation::Long,
            len: 0,
            warm_up: 5,
            count: 50,
            // Beside other threads two that spin may take a time slice for each word.
            budget_ns: 30_000_000_000,
            request_bytes: 1400,
            reply_bytes: 1300,
            period_ns: 0,
        };
        let samples = client.burst(&burst).unwrap();
        assert_eq!((samples.times_ns.len(), samples.wrong), (50, 0));
        assert!(
            client
                .burst(&Burst {
                    request_bytes: 70_000,
                    ..burst
                })
                .is_err()
        );
        drop(client);
        server.join().unwrap().unwrap().unwrap();
    }
}
