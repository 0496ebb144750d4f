//! Waiting for the ORB's reactor: one thread reads from all shared connections and wakes whom a reply is for.
//!
//! Whoever waits is woken by another thread: two more switches a call than reading oneself, and the reactor's priority counts
//! for all of them.

use super::waiter::{Waiter, Woken};
use crate::connection::shared::{Give, Shared};
use crate::exception::Phase;
use core::sync::atomic::{AtomicU64, Ordering};
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// Waits until the answer to a request is with `waiter`; false if `deadline_ns` passed first.
pub(crate) fn await_answer(
    shared: &Shared,
    waiter: &Waiter,
    request_id: u32,
    deadline_ns: Option<u64>,
) -> bool {
    if waiter.wait(deadline_ns) != Woken::Late {
        return true;
    }
    match shared.give_up(request_id) {
        Give::Up => false,
        Give::NotYet => {
            waiter.await_certain_answer();
            true
        }
    }
}

/// The thread that reads from all shared connections, made when the first one is.
#[derive(Debug, Default)]
pub(crate) struct Reactor {
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    watched: Arc<Watched>,
    thread: Option<JoinHandle<Option<()>>>,
}

/// What the thread looks after.
#[derive(Debug)]
struct Watched {
    epoll: OwnedFd,
    /// Becomes readable when the thread shall end.
    stop: OwnedFd,
    connections: Mutex<Vec<(u64, Weak<Shared>)>>,
    next: AtomicU64,
}

/// The number of the signal to stop; connections count on from there.
const STOP: u64 = 0;

/// Connections read for one system call that asks which have something.
const EVENTS_MAX: usize = 64;

impl Reactor {
    /// Reads from that connection from now on. The thread is made by the first caller and runs as `config` says.
    pub(crate) fn watch(
        &self,
        shared: &Arc<Shared>,
        config: &ThreadConfig,
    ) -> Result<(), (Phase, Errno)> {
        let mut running = self.running.lock();
        let running = match &mut *running {
            Some(running) => running,
            none => none.insert(Running::start(config)?),
        };
        let watched = running.watched.watch(shared);
        watched.map_err(|errno| (Phase::SetUp, errno))
    }
}

impl Running {
    fn start(config: &ThreadConfig) -> Result<Self, (Phase, Errno)> {
        let watched = Watched::new().map_err(|errno| (Phase::SetUp, errno))?;
        let watched = Arc::new(watched);
        let for_thread = Arc::clone(&watched);
        let thread = spawn("rtorb-reactor", config, move || for_thread.run());
        let thread = thread.map_err(|refused| (Phase::Schedule, refused.errno))?;
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

    fn watch(&self, shared: &Arc<Shared>) -> Result<(), Errno> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        {
            let mut connections = self.connections.lock();
            connections.retain(|(_, known)| known.strong_count() > 0);
            connections.push((number, Arc::downgrade(shared)));
        }
        let data = EventData::new_u64(number);
        epoll::add(&self.epoll, shared.stream(), data, EventFlags::IN)
    }

    fn run(&self) {
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS_MAX);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                // It can fail only for want of what the thread holds.
                Err(_) => return,
            }
            for event in &events {
                match { event.data }.u64() {
                    STOP => return,
                    number => self.read(number),
                }
            }
        }
    }

    /// Hands out what a connection has; looks after it no longer once it is over.
    fn read(&self, number: u64) {
        let known = {
            let connections = self.connections.lock();
            let known = connections.iter().find(|(known, _)| *known == number);
            known.and_then(|(_, shared)| shared.upgrade())
        };
        // It may be gone already, and its socket with it.
        let Some(shared) = known else { return };
        let read = {
            let mut incoming = shared.incoming();
            incoming
                .receive(&shared)
                .and_then(|()| incoming.hand_out(&shared))
        };
        if let Err(over) = read {
            shared.end(over);
            // It fails only for a socket that is not looked after.
            let _ = epoll::delete(&self.epoll, shared.stream());
            self.connections
                .lock()
                .retain(|(known, _)| *known != number);
        }
    }
}
