//! Waiting for the connection's own thread: it sends the requests of all client threads and reads their replies.
//!
//! So does the client of CORBAplus (P1 2.2.2). A request needs a switch to that thread, and its reply one back. All threads wait
//! at the priority of that thread, and for the requests before theirs in its queue.

use super::{ReplySource, Unwatched};
use crate::realtime::ClientThread;
use crate::transport::Stream;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::JoinHandle;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// The threads of an ORB's shared connections. Each ends with its connection, all end with the ORB.
#[derive(Debug)]
pub(crate) struct ConnectionThreads {
    config: ClientThread,
    started: AtomicU64,
    /// No more than there are connections, and those that ended since the last one was opened.
    running: Mutex<Vec<Running>>,
}

/// What a connection's thread is to know at once: that there is a request to send, or that it shall end.
#[derive(Debug)]
pub(crate) struct ThreadSignal {
    event: OwnedFd,
    has_ended: AtomicBool,
}

/// A message of which the connection's thread has sent a part. The buffer is reused.
#[derive(Debug, Default)]
pub(crate) struct MessageInProgress {
    bytes: Vec<u8>,
    sent: usize,
}

/// What remains to do after sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remaining {
    /// Nothing: the queue is empty.
    Nothing,
    /// To send more when the socket has room, or after reading.
    Requests,
    /// To end: the connection failed.
    End,
}

#[derive(Debug)]
struct Running {
    signal: Arc<ThreadSignal>,
    thread: Option<JoinHandle<Option<()>>>,
}

/// What a connection's thread waits for.
struct Events {
    epoll: OwnedFd,
    awaits_room: bool,
}

/// What has happened.
#[derive(Default)]
struct Happened {
    is_readable: bool,
    may_send: bool,
}

const SIGNAL: u64 = 0;
const STREAM: u64 = 1;

impl ConnectionThreads {
    /// Threads that will run as `config` says.
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
    ) -> Result<Arc<ThreadSignal>, Unwatched> {
        let signal = Arc::new(ThreadSignal::new()?);
        let events = Events::new(&signal, stream)?;
        let number = self.started.fetch_add(1, Ordering::Relaxed) + 1;
        let of_thread = Arc::clone(&signal);
        let mut running = self.running.lock();
        running.retain(|other| !other.has_ended());
        let name = format!("rtorb-client-{number}");
        let thread = self.config.spawn(&name, move || {
            run(&source, events, &of_thread);
        })?;
        running.push(Running {
            signal: Arc::clone(&signal),
            thread: Some(thread),
        });
        Ok(signal)
    }
}

impl Running {
    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal.end();
        if let Some(thread) = self.thread.take() {
            // It has nothing that could panic, and nothing to say.
            let _ = thread.join();
        }
    }
}

impl ThreadSignal {
    fn new() -> Result<Self, Errno> {
        Ok(Self {
            event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            has_ended: AtomicBool::new(false),
        })
    }

    /// Wakes the thread: the queue was empty, and is not any more.
    pub(crate) fn wake(&self) {
        // It fails only if the counter is full, and then the thread has been woken already.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    /// Ends the thread soon.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.wake();
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }
}

impl MessageInProgress {
    /// Begins with another message.
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

    /// The bytes to send next; none if the message is sent whole, or there is none.
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
fn run(source: &Weak<dyn ReplySource>, mut events: Events, signal: &ThreadSignal) {
    let mut room = Vec::with_capacity(EVENTS_MAX);
    let mut message = MessageInProgress::default();
    loop {
        let happened = events.wait(&mut room);
        // Not before: the connection may be gone, and its last user must not wait for this thread.
        let Some(source) = source.upgrade().filter(|_| !signal.has_ended()) else {
            return;
        };
        let served = happened.and_then(|happened| {
            // First what came: after CloseConnection, no request may be sent.
            if happened.is_readable && !source.receive() {
                return Ok(false);
            }
            if !happened.may_send {
                return Ok(true);
            }
            let remaining = source.send_queued(&mut message);
            events.await_room(&*source, remaining == Remaining::Requests)?;
            Ok(remaining != Remaining::End)
        });
        match served {
            Ok(true) => {}
            Ok(false) => return,
            // It cannot fail while the thread holds the descriptors.
            Err(errno) => return source.fail(errno),
        }
    }
}

/// Events of one wait: the signal, and the stream.
const EVENTS_MAX: usize = 2;

impl Events {
    fn new(signal: &ThreadSignal, stream: &Stream) -> Result<Self, Errno> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        // Reported once: nobody reads the counter.
        let once = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &signal.event, EventData::new_u64(SIGNAL), once)?;
        stream.be_polled();
        epoll::add(&epoll, stream, EventData::new_u64(STREAM), EventFlags::IN)?;
        Ok(Self {
            epoll,
            awaits_room: false,
        })
    }

    fn wait(&self, room: &mut Vec<Event>) -> Result<Happened, Errno> {
        room.clear();
        match epoll::wait(&self.epoll, spare_capacity(room), None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
        let mut happened = Happened::default();
        for event in room {
            let flags = event.flags;
            let is_signal = { event.data }.u64() == SIGNAL;
            happened.may_send |= is_signal || flags.contains(EventFlags::OUT);
            happened.is_readable |= !is_signal && flags != EventFlags::OUT;
            // Through shared memory, the doorbell says that there is room too.
            happened.may_send |= !is_signal && self.awaits_room;
        }
        Ok(happened)
    }

    /// Waits for room in the socket from now on, or not.
    fn await_room(&mut self, source: &dyn ReplySource, awaits_room: bool) -> Result<(), Errno> {
        if self.awaits_room == awaits_room {
            return Ok(());
        }
        let flags = if awaits_room {
            EventFlags::IN | source.stream().room_events()
        } else {
            EventFlags::IN
        };
        self.awaits_room = awaits_room;
        let data = EventData::new_u64(STREAM);
        epoll::modify(&self.epoll, source.stream(), data, flags)
    }
}
