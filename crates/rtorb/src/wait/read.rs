//! Waits by reading: one system call, and the thread that wants the reply is the thread that wakes.

use crate::transport::Stream;
use rtorb_wire::DecodeError;
use rtorb_wire::cdr::Remainder;
use rtorb_wire::connection::{Deadline, Receiver, ReplyError};
use rustix::io::Errno;

/// Receives bytes of replies.
///
/// The watchdog ends the wait for the first bytes of a reply when the deadline passes: this needs no clock, no poll and no timer.
#[inline]
pub(crate) fn receive(
    stream: &Stream,
    receiver: &mut Receiver,
    deadline: Deadline,
) -> Result<(), ReplyError> {
    if !receiver.is_empty() {
        await_readable(stream, deadline)?;
    }
    let count = received(stream.receive(receiver.free()))?;
    receiver.advance(count);
    Ok(())
}

/// The part of a large reply that is still in the socket.
pub(crate) struct Unread<'c> {
    pub(crate) stream: &'c Stream,
    /// Buffer for the whole message, if it must be contiguous.
    pub(crate) whole: &'c mut Vec<u8>,
    pub(crate) left: usize,
    pub(crate) deadline: Deadline,
    /// The error that ended reading.
    pub(crate) error: Option<ReplyError>,
}

impl Unread<'_> {
    fn fill(&mut self, into: &mut Vec<u8>, count: usize) -> Result<(), ReplyError> {
        let mut missing = count;
        into.reserve(count);
        while missing > 0 {
            match self.stream.receive_behind_now(into, missing) {
                // The socket is empty, so checking the deadline is worth a system call.
                Err(Errno::AGAIN) => await_readable(self.stream, self.deadline)?,
                Err(Errno::INTR) => {}
                other => missing -= received(other)?,
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
        self.fill(into, count).map_err(|error| {
            self.error = Some(error);
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

/// Waits for more of a message until the deadline, in however many parts it comes.
#[cold]
fn await_readable(stream: &Stream, deadline: Deadline) -> Result<(), ReplyError> {
    match stream.await_readable(deadline.at_ns()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(ReplyError::TimedOut),
        Err(errno) => Err(failed(errno)),
    }
}

#[inline]
fn received(received: Result<usize, Errno>) -> Result<usize, ReplyError> {
    match received {
        Ok(0) => Err(ReplyError::Ended),
        Ok(count) => Ok(count),
        Err(Errno::AGAIN) => Err(ReplyError::TimedOut),
        Err(errno) => Err(failed(errno)),
    }
}

/// The failure of a wait for a reply on a stream that failed.
pub(crate) fn failed(errno: Errno) -> ReplyError {
    ReplyError::Failed {
        os_error: errno.raw_os_error(),
    }
}
