//! Waiting by reading: one system call, and the thread that wakes is the one that wants the reply.

use crate::inbox::Inbox;
use crate::transport::Stream;
use rtorb_os::clock::{coarse_monotonic_ns, monotonic_ns};
use rtorb_os::socket::receive_behind_now;
use rtorb_wire::DecodeError;
use rtorb_wire::cdr::Remainder;
use rustix::io::Errno;
use std::time::Duration;

/// Until when to wait, on CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    begun_ns: u64,
    timeout: Option<Duration>,
}

/// Why nothing came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Silence {
    /// The deadline passed.
    TimedOut,
    /// The peer ended the connection.
    Ended,
    /// The connection failed.
    Failed(Errno),
}

impl Deadline {
    /// `timeout` from now; `None` never passes.
    #[inline]
    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        let begun_ns = match timeout {
            Some(timeout) if timeout < COARSE_FROM => monotonic_ns(),
            _ => coarse_monotonic_ns(),
        };
        Self { begun_ns, timeout }
    }

    /// How long ago it was set.
    pub(crate) fn elapsed(self) -> Duration {
        Duration::from_nanos(monotonic_ns().saturating_sub(self.begun_ns))
    }

    /// When it passes.
    #[inline]
    pub(crate) fn at_ns(self) -> Option<u64> {
        self.timeout.map(|timeout| {
            self.begun_ns
                .saturating_add(timeout.as_nanos().min(u128::from(u64::MAX)) as u64)
        })
    }
}

/// Timeouts from here on begin at the kernel's last tick, at most 10 ms early, and cost each call less.
const COARSE_FROM: Duration = Duration::from_millis(200);

/// Receives what comes first.
///
/// The watchdog ends the wait when the deadline passes: here it needs no clock, no poll and no timer.
#[inline]
pub(crate) fn first(stream: &Stream, inbox: &mut Inbox) -> Result<(), Silence> {
    heard(inbox.receive(stream))
}

/// Receives more of what has begun to come; here the time already spent counts.
#[cold]
pub(crate) fn more(stream: &Stream, inbox: &mut Inbox, deadline: Deadline) -> Result<(), Silence> {
    await_readable(stream, deadline)?;
    heard(inbox.receive(stream))
}

/// The part of a large reply that is still in the socket.
pub(crate) struct Unread<'c> {
    pub(crate) stream: &'c Stream,
    /// Where the message is put together when it has to lie in one piece.
    pub(crate) whole: &'c mut Vec<u8>,
    pub(crate) left: usize,
    pub(crate) deadline: Deadline,
    pub(crate) silence: Option<Silence>,
}

impl Unread<'_> {
    fn fill(&mut self, into: &mut Vec<u8>, count: usize) -> Result<(), Silence> {
        let mut missing = count;
        into.reserve(count);
        while missing > 0 {
            match receive_behind_now(self.stream, into, missing) {
                // The peer is still sending: only now is a look at the time worth a system call.
                Err(Errno::AGAIN) => await_readable(self.stream, self.deadline)?,
                Err(Errno::INTR) => {}
                received => missing -= heard_count(received)?,
            }
        }
        self.left -= count;
        Ok(())
    }
}

impl Remainder for Unread<'_> {
    fn left(&self) -> usize {
        self.left
    }

    fn append(&mut self, into: &mut Vec<u8>, count: usize) -> Result<(), DecodeError> {
        self.fill(into, count).map_err(|silence| {
            self.silence = Some(silence);
            DecodeError::Interrupted
        })
    }

    fn complete(&mut self, head: &[u8]) -> Result<&[u8], DecodeError> {
        let mut whole = core::mem::take(self.whole);
        whole.clear();
        whole.reserve(head.len() + self.left);
        whole.extend_from_slice(head);
        let appended = self.append(&mut whole, self.left);
        *self.whole = whole;
        appended.map(|()| self.whole.as_slice())
    }
}

/// Waits for more of a message until the deadline, however often it comes in parts.
fn await_readable(stream: &Stream, deadline: Deadline) -> Result<(), Silence> {
    match stream.await_readable(deadline.at_ns()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Silence::TimedOut),
        Err(errno) => Err(Silence::Failed(errno)),
    }
}

fn heard(received: Result<usize, Errno>) -> Result<(), Silence> {
    heard_count(received).map(|_| ())
}

#[inline]
fn heard_count(received: Result<usize, Errno>) -> Result<usize, Silence> {
    match received {
        Ok(0) => Err(Silence::Ended),
        Ok(count) => Ok(count),
        Err(Errno::AGAIN) => Err(Silence::TimedOut),
        Err(errno) => Err(Silence::Failed(errno)),
    }
}
