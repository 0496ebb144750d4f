//! Waiting for the ORB's reactor: one thread reads from all shared connections, and wakes the thread of each reply.
//!
//! Each reply needs two more thread switches than reading does, and all threads wait at the reactor's priority.

use super::waiter::{Waiter, WakeReason};
use super::{Receipt, ReplySource, WatchError};
use crate::poller::{Polled, Poller, Token};
use crate::realtime::ClientThread;
use crate::transport::Stream;
use core::mem::MaybeUninit;
use rtorb_os::slab::Slab;
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, join_unless_own};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use std::sync::{Arc, Weak};

/// Waits until the reply to a request is delivered to `waiter`. Returns false if `deadline_ns` passes first.
pub(crate) fn await_reply(
    source: &dyn ReplySource,
    waiter: &Waiter,
    request_id: u32,
    deadline_ns: Option<u64>,
) -> bool {
    waiter.await_reply(deadline_ns, || source.give_up(request_id))
}

/// Waits until a started call has ended, until `until_ns` at the latest. Returns false if it has not: the call goes on.
pub(crate) fn await_started(
    _: &dyn ReplySource,
    waiter: &Waiter,
    _: u32,
    until_ns: Option<u64>,
) -> bool {
    waiter.wait(until_ns) != WakeReason::Late
}

/// The thread that reads from all shared connections. It starts with the first of them.
#[derive(Debug)]
pub(crate) struct Reactor {
    config: ClientThread,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    watched: Arc<PolledConnection>,
    thread: Option<JoinHandle<Option<()>>>,
}

/// The connections that the thread reads. The bell ends the thread.
#[derive(Debug)]
struct PolledConnection {
    poller: Poller,
    connections: Slab<Weak<dyn ReplySource>>,
}

/// The most connections: as many as a process has descriptors.
pub(super) const CONNECTIONS_MAX: usize = 1 << 20;

/// The most readable connections that one system call reports.
const EVENTS_MAX: usize = 64;

impl Reactor {
    /// Makes a reactor, with the scheduling of its thread.
    pub(crate) fn new(config: ClientThread) -> Self {
        Self {
            config,
            running: Mutex::default(),
        }
    }

    /// Adds a connection to read from.
    pub(crate) fn watch(
        &self,
        source: Weak<dyn ReplySource>,
        stream: &Stream,
    ) -> Result<(), WatchError> {
        let mut running = self.running.lock();
        let running = match &mut *running {
            Some(running) => running,
            none => none.insert(Running::start(&self.config)?),
        };
        Ok(running.watched.watch(source, stream)?)
    }
}

impl Running {
    fn start(config: &ClientThread) -> Result<Self, WatchError> {
        let watched = Arc::new(PolledConnection {
            poller: Poller::new()?,
            connections: Slab::new(CONNECTIONS_MAX),
        });
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
        self.watched.poller.ring();
        if let Some(thread) = self.thread.take() {
            join_unless_own(thread);
        }
    }
}

impl PolledConnection {
    fn watch(&self, source: Weak<dyn ReplySource>, stream: &Stream) -> Result<(), Errno> {
        self.connections.retain(|source| source.strong_count() > 0);
        let key = self.connections.insert(source).ok_or(Errno::NOBUFS)?;
        stream.register_for_polling();
        self.poller.add(stream, Token::of(key), EventFlags::IN)
    }

    fn run(&self) {
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        // Connections with bytes that no event reports again. Its memory is there before the first call.
        let mut unread: Vec<Token> = Vec::with_capacity(EVENTS_MAX);
        loop {
            let events = self
                .poller
                .wait(&mut room, (!unread.is_empty()).then_some(0));
            unread.retain(|token| self.read(*token) == Receipt::Part);
            for event in events {
                match Polled::of(event) {
                    Polled::Entry(token, _) if unread.contains(&token) => {}
                    Polled::Entry(token, _) => {
                        if self.read(token) == Receipt::Part {
                            unread.push(token);
                        }
                    }
                    _ => return,
                }
            }
        }
    }

    /// Reads a connection. Removes it once it has ended.
    fn read(&self, token: Token) -> Receipt {
        let source = self.connections.get(token.key());
        let Some(source) = source.and_then(|source| source.upgrade()) else {
            return Receipt::End;
        };
        let received = source.receive();
        if received == Receipt::End {
            self.poller.remove(source.stream());
            self.connections.remove(token.key());
        }
        received
    }
}
