//! Waiting by reading: one system call, and the thread that wants the reply is the thread that wakes.

use crate::clock::monotonic_ns;
use crate::transport::Stream;
use rtorb_wire::DecodeError;
use rtorb_wire::cdr::Remainder;
use rtorb_wire::connection::{Deadline, Message, ReceiveLimits, Receiver, ReplyError, Side};
use rustix::io::Errno;

/// The received bytes of a connection that one thread at a time reads.
#[derive(Debug)]
pub(crate) struct Incoming {
    receiver: Receiver,
    /// Buffer for a reply that is larger than the receive buffer. It is reused.
    whole: Vec<u8>,
    /// True if a message was not read to its end: the next bytes in the socket belong to it.
    is_cut: bool,
}

impl Incoming {
    pub(crate) fn new(limits: ReceiveLimits) -> Self {
        Self {
            receiver: Receiver::new(Side::Client, limits),
            whole: Vec::new(),
            is_cut: false,
        }
    }

    /// Returns true if another reply can be received.
    #[inline]
    pub(crate) fn is_sound(&self) -> bool {
        !self.is_cut
    }

    /// Receives messages until `read` returns a result; it returns `None` for another request's message. `read` gets the message, and the
    /// part that is not received yet.
    ///
    /// The watchdog ends the wait for the first bytes when the deadline passes, so this needs no clock, no poll and no timer.
    #[inline]
    pub(crate) fn reply<T, E: From<ReplyError>>(
        &mut self,
        stream: &Stream,
        deadline: Deadline,
        mut read: impl FnMut(Message<'_>, Option<&mut dyn Remainder>) -> Result<Option<T>, E>,
    ) -> Result<T, E> {
        if self.receiver.is_empty() {
            receive(stream, &mut self.receiver)?;
        }
        loop {
            let message = self.receiver.next_or_beginning();
            let Some(message) = message.map_err(ReplyError::from)? else {
                receive_more(stream, &mut self.receiver, deadline)?;
                continue;
            };
            let mut unread = UnreadPart {
                stream,
                whole: &mut self.whole,
                left: message.missing(),
                deadline,
                error: None,
            };
            let rest = (unread.left > 0).then_some(&mut unread as &mut dyn Remainder);
            let ended = read(message, rest);
            let left = unread.left;
            self.is_cut = left > 0;
            match ended {
                Ok(Some(reply)) => return Ok(reply),
                Err(error) => return Err(unread.error.map_or(error, E::from)),
                Ok(None) if left > 0 => {
                    let error = DecodeError::BadTag {
                        what: "the size of a reply to another request",
                        value: left as u32,
                    };
                    return Err(ReplyError::Malformed(error).into());
                }
                Ok(None) => {}
            }
        }
    }
}

// Always: it is in the path of every call, and its other caller is rare.
#[inline(always)]
fn receive(stream: &Stream, receiver: &mut Receiver) -> Result<(), ReplyError> {
    let count = received(stream.receive(receiver.free()))?;
    receiver.advance(count);
    Ok(())
}

/// Receives more of a message, until the deadline of the call.
#[cold]
fn receive_more(
    stream: &Stream,
    receiver: &mut Receiver,
    deadline: Deadline,
) -> Result<(), ReplyError> {
    loop {
        await_readable(stream, deadline)?;
        // What has come over TLS may be less than a record.
        match stream.receive_now(receiver.free()) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => {
                receiver.advance(received(other)?);
                return Ok(());
            }
        }
    }
}

/// The part of a large reply that is still in the socket.
struct UnreadPart<'c> {
    stream: &'c Stream,
    /// Buffer for the whole message, if it must be contiguous.
    whole: &'c mut Vec<u8>,
    left: usize,
    deadline: Deadline,
    /// The error that ended reading.
    error: Option<ReplyError>,
}

impl UnreadPart<'_> {
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

impl Remainder for UnreadPart<'_> {
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

/// Waits for more bytes of a message until the deadline.
fn await_readable(stream: &Stream, deadline: Deadline) -> Result<(), ReplyError> {
    // A peer that sends without end must not hold the thread: with bytes there, a stream need not look at the time.
    if deadline.has_passed(monotonic_ns()) {
        return Err(ReplyError::TimedOut);
    }
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

/// Returns the error of a wait for a reply on a stream that failed.
pub(crate) fn failed(errno: Errno) -> ReplyError {
    ReplyError::Failed {
        os_error: errno.raw_os_error(),
    }
}
