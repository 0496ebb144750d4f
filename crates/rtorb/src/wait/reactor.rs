//! Waiting for the ORB's reactor: one thread reads from all shared connections and wakes the thread that a reply is for.
//!
//! Each reply needs two more thread switches than reading does, and all threads wait at the reactor's priority.

use super::waiter::{Waiter, Woken};
use super::{ReplySource, Unwatched};
use crate::realtime::ClientThread;
use crate::transport::Stream;
use core::sync::atomic::{AtomicU64, Ordering};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::JoinHandle;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// Waits until the reply to a request is with `waiter`; false if `deadline_ns` passed first.
pub(crate) fn await_reply(
    source: &dyn ReplySource,
    waiter: &Waiter,
    request_id: u32,
    deadline_ns: Option<u64>,
) -> bool {
    if waiter.wait(deadline_ns) != Woken::Late {
        return true;
    }
    if source.give_up(request_id) {
        return false;
    }
    waiter.await_delivery();
    true
}

/// The thread that reads from all shared connections. It starts with the first of them.
#[derive(Debug)]
pub(crate) struct Reactor {
    config: ClientThread,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    watched: Arc<Watched>,
    thread: Option<JoinHandle<Option<()>>>,
}

/// The connections that the thread reads.
#[derive(Debug)]
struct Watched {
    epoll: OwnedFd,
    /// Becomes readable when the thread is to end.
    stop: OwnedFd,
    connections: Mutex<Vec<(u64, Weak<dyn ReplySource>)>>,
    next: AtomicU64,
}

/// The token of the signal to stop; those of connections follow.
const STOP: u64 = 0;

/// Readable connections that one system call reports at most.
const EVENTS_MAX: usize = 64;

impl Reactor {
    /// A reactor whose thread will run as `config` says.
    pub(crate) fn new(config: ClientThread) -> Self {
        Self {
            config,
            running: Mutex::default(),
        }
    }

    /// Reads from that connection from now on.
    pub(crate) fn watch(
        &self,
        source: Weak<dyn ReplySource>,
        stream: &Stream,
    ) -> Result<(), Unwatched> {
        let mut running = self.running.lock();
        let running = match &mut *running {
            Some(running) => running,
            none => none.insert(Running::start(&self.config)?),
        };
        Ok(running.watched.watch(source, stream)?)
    }
}

impl Running {
    fn start(config: &ClientThread) -> Result<Self, Unwatched> {
        let watched = Arc::new(Watched::new()?);
        let for_thread = Arc::clone(&watched);
        let thread = config.spawn("rtorb-reactor", move || for_thread.run())?;
        Ok(Self {
            watched,
            thread: Some(thread),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // An eventfd takes so small a number at any time.
        let _ = rustix::io::write(&self.watched.stop, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // It has nothing that could panic, and nothing to say.
            let _ = thread.join();
        }
    }
}

impl Watched {
    fn new() -> Result<Self, Errno> {
        let watched = Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            stop: eventfd(0, EventfdFlags::CLOEXEC)?,
            connections: Mutex::default(),
            next: AtomicU64::new(STOP + 1),
        };
        let data = EventData::new_u64(STOP);
        epoll::add(&watched.epoll, &watched.stop, data, EventFlags::IN)?;
        Ok(watched)
    }

    fn watch(&self, source: Weak<dyn ReplySource>, stream: &Stream) -> Result<(), Errno> {
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        {
            let mut connections = self.connections.lock();
            connections.retain(|(_, known)| known.strong_count() > 0);
            connections.push((token, source));
        }
        stream.be_polled();
        let data = EventData::new_u64(token);
        epoll::add(&self.epoll, stream, data, EventFlags::IN)
    }

    fn run(&self) {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                // It cannot fail while the thread holds the descriptor.
                Err(_) => return,
            }
            for event in &events {
                match { event.data }.u64() {
                    STOP => return,
                    token => self.read(token),
                }
            }
        }
    }

    /// Reads a connection; forgets it once it has ended.
    fn read(&self, token: u64) {
        let known = {
            let connections = self.connections.lock();
            let known = connections.iter().find(|(known, _)| *known == token);
            known.and_then(|(_, source)| source.upgrade())
        };
        // It may be gone already, and its socket with it.
        let Some(source) = known else { return };
        if !source.receive() {
            // It fails only for a socket that is not registered.
            let _ = epoll::delete(&self.epoll, source.stream());
            self.connections.lock().retain(|(known, _)| *known != token);
        }
    }
}
