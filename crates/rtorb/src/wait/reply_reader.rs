//! Reading by the application: its own thread reads the replies of started calls, when and where it wants.
//!
//! It reads as a leader does, while there are bytes. It does not read a connection that has a leader: the leader notifies it when it
//! stops and replies of started calls may be unread. Between two reads the thread waits for all connections at once.

use super::reactor::CONNECTIONS_MAX;
use super::{ReplySource, lock_until};
use crate::poller::{ONCE, Polled, Poller, Token};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rtorb_os::set_once::SetOnce;
use rtorb_os::slab::Slab;
use rtorb_os::sync::Mutex;
use rustix::event::epoll;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};
use std::task::Wake;

/// The connections of an ORB with wait strategy `leader_followers`, for a thread of the application that reads them.
#[derive(Debug)]
pub(crate) struct ReplyReader {
    /// It exists once the application reads.
    poller: SetOnce<Poller>,
    connections: Slab<ReadableConnection>,
    /// Held while connections are registered with the poller, each of them once.
    registration: Mutex<()>,
    /// Held by the thread that reads, with the time of the poller's timer.
    turn: Mutex<Option<u64>>,
    /// True while a thread waits or is about to, or the application waits for the descriptor. The wake that clears it rings the bell.
    is_awaited: AtomicBool,
    /// The number of times that a wait was ended.
    wakes: AtomicU64,
    /// True if a leader has left a connection, and replies of started calls may be unread there.
    has_left: AtomicBool,
}

#[derive(Debug)]
struct ReadableConnection {
    token: Token,
    source: Weak<dyn ReplySource>,
}

/// The most readable connections that one system call reports.
const EVENTS_MAX: usize = 64;

impl ReplyReader {
    /// Adds a new connection.
    pub(super) fn add(&self, source: Weak<dyn ReplySource>) -> Result<(), Errno> {
        let _registering = self.registration.lock();
        self.connections.retain(|it| it.source.strong_count() > 0);
        let make = |key| ReadableConnection {
            token: Token::of(key),
            source,
        };
        let key = self.connections.insert_with(make).ok_or(Errno::NOBUFS)?;
        match (self.poller.get(), self.connections.get(key)) {
            (Some(poller), Some(connection)) => connection.register(poller),
            _ => Ok(()),
        }
    }

    /// Prepares open connections and new ones for reading.
    pub(crate) fn prepare(&self) -> Result<(), Errno> {
        let _registering = self.registration.lock();
        if self.poller.get().is_some() {
            return Ok(());
        }
        let poller = Poller::with_timer()?;
        let mut registered = Ok(());
        self.connections.retain(|connection| {
            registered = registered.and_then(|()| connection.register(&poller));
            true
        });
        registered?;
        self.poller.get_or_make(|| poller);
        Ok(())
    }

    /// Waits until a reply arrives, a task is woken, or `until_ns` of the monotonic clock; reads all replies that have arrived. Returns
    /// false if the time passed first.
    ///
    /// `seen` is the number of [wakes](Self::end_wait) that the calling thread knows of. If there were more, it does not wait: another
    /// thread may have cleared their bell.
    pub(crate) fn read_once(&self, seen: &AtomicU64, until_ns: Option<u64>) -> bool {
        let Some(poller) = self.poller.get() else {
            return false;
        };
        let Some(mut timer_ns) = lock_until(&self.turn, until_ns) else {
            return false;
        };
        if *timer_ns != until_ns {
            poller.set_timer(until_ns);
            *timer_ns = until_ns;
        }
        self.await_bell();
        let is_woken = self.has_woken(seen);
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        let events = poller.wait(&mut room, is_woken.then_some(0));
        self.is_awaited.store(false, Ordering::Release);
        // Before the reading: what a wake is about is then read here, or by the next call.
        let was_woken = self.has_woken(seen) || is_woken;
        self.read_those(poller, events, &mut timer_ns) || was_woken
    }

    /// Reads replies that have arrived, without waiting. Returns false if there was nothing: from then on, the next reply, and a leader
    /// that leaves, make the [descriptor](Self::descriptor) readable.
    pub(crate) fn read_ready(&self) -> bool {
        let Some(poller) = self.poller.get() else {
            return false;
        };
        let Some(mut timer_ns) = self.turn.try_lock() else {
            return false;
        };
        // Also for the time in which only the descriptor is waited for.
        self.await_bell();
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        let events = poller.wait(&mut room, Some(0));
        self.read_those(poller, events, &mut timer_ns)
    }

    /// Returns the descriptor that is readable when [`read_ready`](Self::read_ready) has something to read; `None` before
    /// [`prepare`](Self::prepare).
    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.poller.get().map(Poller::as_fd)
    }

    /// Reads the connections of these events, and those that leaders have left. Returns false if there was none, and no task was woken.
    fn read_those(
        &self,
        poller: &Poller,
        events: &[epoll::Event],
        timer_ns: &mut Option<u64>,
    ) -> bool {
        let mut has_read = false;
        for event in events {
            match Polled::of(event) {
                Polled::Entry(token, _) => {
                    has_read = true;
                    self.read(poller, token);
                }
                Polled::Timer => *timer_ns = None,
                // A thread that has rung does not ring again before the next look.
                Polled::Bell => has_read = true,
                Polled::Numbered(_) => {}
            }
        }
        if self.has_left.swap(false, Ordering::AcqRel) {
            has_read = true;
            self.connections
                .retain(|connection| connection.read(poller));
        }
        has_read
    }

    /// Makes the reading thread look at all connections, because a leader has left one.
    pub(crate) fn note_left(&self) {
        if self.poller.get().is_some() {
            self.has_left.store(true, Ordering::Release);
            self.end_wait();
        }
    }

    /// Ends one wait of each thread: the wait in progress, or else the next one.
    pub(crate) fn end_wait(&self) {
        self.wakes.fetch_add(1, Ordering::Release);
        if self.is_awaited.swap(false, Ordering::AcqRel)
            && let Some(poller) = self.poller.get()
        {
            poller.ring();
        }
    }

    /// Makes the next [wake](Self::end_wait) ring the bell. The calling thread sees all earlier wakes.
    fn await_bell(&self) {
        self.is_awaited.swap(true, Ordering::AcqRel);
    }

    /// Returns true if there were wakes that the calling thread has not seen, and notes that it has seen them.
    fn has_woken(&self, seen: &AtomicU64) -> bool {
        let wakes = self.wakes.load(Ordering::Acquire);
        seen.swap(wakes, Ordering::Relaxed) != wakes
    }

    fn read(&self, poller: &Poller, token: Token) {
        let connection = self.connections.get(token.key());
        if connection.is_some_and(|connection| !connection.read(poller)) {
            self.connections.remove(token.key());
        }
    }
}

impl Default for ReplyReader {
    fn default() -> Self {
        Self {
            poller: SetOnce::new(),
            connections: Slab::new(CONNECTIONS_MAX),
            registration: Mutex::default(),
            turn: Mutex::default(),
            is_awaited: AtomicBool::new(false),
            wakes: AtomicU64::new(0),
            has_left: AtomicBool::new(false),
        }
    }
}

impl ReadableConnection {
    fn register(&self, poller: &Poller) -> Result<(), Errno> {
        let Some(source) = self.source.upgrade() else {
            return Ok(());
        };
        source.stream().register_for_polling();
        poller.add(source.stream(), self.token, ONCE)
    }

    /// Reads its replies. Returns false if it has ended.
    fn read(&self, poller: &Poller) -> bool {
        let Some(source) = self.source.upgrade() else {
            return false;
        };
        let is_open = source.read_for_tasks();
        if !is_open {
            poller.remove(source.stream());
        }
        is_open
    }
}

/// The waker of a task that the reading thread polls: it ends the wait for replies.
impl Wake for ReplyReader {
    fn wake(self: Arc<Self>) {
        self.end_wait();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.end_wait();
    }
}
