//! Waiting for the connection's own thread: it sends the requests of all client threads and reads their replies.
//!
//! The client of CORBAplus does this too (P1 2.2.2). A request needs a switch to that thread, and its reply a switch back. All
//! requests are sent at the priority of that thread, in the order of the queue.

use super::{Receipt, ReplySource, WatchError};
use crate::poller::{Polled, Poller, Token};
use crate::realtime::ClientThread;
use crate::transport::Stream;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, join_unless_own};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use std::sync::{Arc, Weak};

/// The threads of an ORB's shared connections. Each ends with its connection, all end with the ORB.
#[derive(Debug)]
pub(crate) struct ConnectionThreads {
    config: ClientThread,
    started: AtomicU64,
    /// The threads of open connections, and those that ended since the last connection was opened.
    running: Mutex<Vec<StartedThread>>,
}

/// Wakes a connection's thread: it has a request to send, or must end.
#[derive(Debug)]
pub(crate) struct ThreadSignal {
    poller: Poller,
    has_ended: AtomicBool,
}

/// The message that the connection's thread is sending. The buffer is reused.
#[derive(Debug, Default)]
pub(crate) struct MessageInProgress {
    bytes: Vec<u8>,
    sent: usize,
}

/// The next action after sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remaining {
    /// None: the queue is empty.
    Nothing,
    /// Send more when the socket has room, or after reading.
    Requests,
    /// End: the connection failed.
    End,
}

#[derive(Debug)]
struct StartedThread {
    signal: Arc<ThreadSignal>,
    thread: Option<JoinHandle<Option<()>>>,
}

/// The number of the stream in its thread's poller.
const STREAM: u32 = 0;

/// The most events of one wait: the bell and the stream.
const EVENTS_MAX: usize = 2;

impl ConnectionThreads {
    /// Makes the list of an ORB's connection threads, with the scheduling of new ones.
    pub(crate) fn new(config: ClientThread) -> Self {
        Self {
            config,
            started: AtomicU64::new(0),
            running: Mutex::default(),
        }
    }

    /// Starts the thread of a connection.
    pub(crate) fn start(
        &self,
        source: Weak<dyn ReplySource>,
        stream: &Stream,
    ) -> Result<Arc<ThreadSignal>, WatchError> {
        let mut running = self.running.lock();
        // First, so that the descriptors of threads that have ended are free.
        running.retain(|other| !other.has_ended());
        let signal = Arc::new(ThreadSignal {
            poller: Poller::new()?,
            has_ended: AtomicBool::new(false),
        });
        stream.register_for_polling();
        let poller = &signal.poller;
        poller.add(stream, Token::number(STREAM), EventFlags::IN)?;
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let of_thread = Arc::clone(&signal);
        let name = format!("rtorb-client-{number}");
        let thread = self.config.spawn(&name, move || {
            run(&source, &of_thread);
        })?;
        running.push(StartedThread {
            signal: Arc::clone(&signal),
            thread: Some(thread),
        });
        Ok(signal)
    }
}

impl StartedThread {
    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for StartedThread {
    fn drop(&mut self) {
        self.signal.end();
        if let Some(thread) = self.thread.take() {
            join_unless_own(thread);
        }
    }
}

impl ThreadSignal {
    /// Wakes the thread, because an empty queue has got a request.
    pub(crate) fn wake(&self) {
        self.poller.ring();
    }

    /// Ends the thread soon.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.wake();
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Starts or stops waiting for room in the socket.
    fn await_room(&self, stream: &Stream, awaits_room: bool) -> Result<(), Errno> {
        let interest = if awaits_room {
            EventFlags::IN | stream.room_events()
        } else {
            EventFlags::IN
        };
        self.poller.change(stream, Token::number(STREAM), interest)
    }
}

impl MessageInProgress {
    /// Begins another message.
    pub(crate) fn begin(&mut self, message: &[u8]) {
        self.clear();
        self.bytes.extend_from_slice(message);
    }

    /// Forgets the message.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
    }

    /// Notes that `count` more bytes were sent.
    pub(crate) fn advance(&mut self, count: usize) {
        self.sent = (self.sent + count).min(self.bytes.len());
    }

    /// Returns the bytes to send next; none if the message is sent whole, or there is none.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    pub(crate) fn is_sent(&self) -> bool {
        self.sent == self.bytes.len()
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.sent > 0
    }
}

/// Sends and reads until the connection or the ORB ends.
fn run(source: &Weak<dyn ReplySource>, signal: &ThreadSignal) {
    let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
    let mut message = MessageInProgress::default();
    let mut awaits_room = false;
    let mut is_readable = false;
    loop {
        let mut may_send = false;
        for event in signal.poller.wait(&mut room, is_readable.then_some(0)) {
            let flags = event.flags;
            if Polled::of(event) == Polled::Bell {
                may_send = true;
            } else {
                is_readable |= flags != EventFlags::OUT;
                // Through shared memory, the doorbell says that there is room too.
                may_send |= awaits_room;
            }
        }
        // Not before: the connection may be gone, and its last user must not wait for this thread.
        let Some(source) = source.upgrade().filter(|_| !signal.has_ended()) else {
            return;
        };
        // It receives first: after CloseConnection, no request may be sent.
        if is_readable {
            match source.receive() {
                Receipt::All => is_readable = false,
                Receipt::Part => {}
                Receipt::End => return,
            }
        }
        if !may_send {
            continue;
        }
        let remaining = source.send_queued(&mut message);
        if remaining == Remaining::End {
            return;
        }
        if awaits_room != (remaining == Remaining::Requests) {
            awaits_room = !awaits_room;
            if let Err(errno) = signal.await_room(source.stream(), awaits_room) {
                return source.fail(errno);
            }
        }
    }
}
