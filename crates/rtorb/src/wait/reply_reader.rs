//! Reading by the application: its own thread reads the replies of started calls, when and where it wants.
//!
//! It reads as a leader does, for as long as bytes are there. A connection that has a leader is left to that one, which says when it
//! leaves replies of started calls behind. Between two reads the thread waits for all connections at once.

use super::{ReplySource, lock_until};
use crate::poller::{ONCE, Polled, Poller, Token};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use rtorb_os::set_once::SetOnce;
use rtorb_os::sync::Mutex;
use rustix::event::epoll;
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Weak};
use std::task::Wake;

/// The connections of an ORB whose threads lead each other, for a thread of the application that reads them.
#[derive(Debug, Default)]
pub(crate) struct ReplyReader {
    /// It exists once the application reads.
    poller: SetOnce<Poller>,
    connections: Mutex<NumberedConnections>,
    /// Held by the thread that reads, with the time of the poller's timer.
    turn: Mutex<Option<u64>>,
    /// The state of that thread: one of the constants below.
    state: AtomicU32,
    /// True if a leader has left a connection whose replies nobody reads.
    has_left: AtomicBool,
}

#[derive(Debug, Default)]
struct NumberedConnections {
    next_number: u32,
    open: Vec<(u32, Weak<dyn ReplySource>)>,
}

/// No thread waits.
const IDLE: u32 = 0;
/// A thread waits, or is about to. The bell ends that.
const WAITING: u32 = 1;
/// A task was woken since the last wait: the next one does not wait.
const WOKEN: u32 = 2;

/// The most readable connections that one system call reports.
const EVENTS_MAX: usize = 64;

/// Numbers of connections in the poller repeat after so many.
const NUMBERS: u32 = 1 << 30;

impl ReplyReader {
    /// Adds a new connection.
    pub(super) fn add(&self, source: Weak<dyn ReplySource>) -> Result<(), Errno> {
        let mut connections = self.connections.lock();
        connections.open.retain(|it| it.1.strong_count() > 0);
        let number = connections.next_number;
        connections.next_number = (number + 1) % NUMBERS;
        if let Some(poller) = self.poller.get() {
            register(poller, number, &source)?;
        }
        connections.open.push((number, source));
        Ok(())
    }

    /// Prepares for reading: open connections and new ones.
    pub(crate) fn prepare(&self) -> Result<(), Errno> {
        let connections = self.connections.lock();
        if self.poller.get().is_some() {
            return Ok(());
        }
        let poller = Poller::with_timer()?;
        for (number, source) in &connections.open {
            register(&poller, *number, source)?;
        }
        self.poller.get_or_make(|| poller);
        Ok(())
    }

    /// Waits until a reply arrives, a task is woken, or `until_ns` of the monotonic clock; reads all replies that have arrived. Returns
    /// false if the time passed first.
    pub(crate) fn read_once(&self, until_ns: Option<u64>) -> bool {
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
        let is_woken = self.state.swap(WAITING, Ordering::AcqRel) == WOKEN;
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        let events = poller.wait(&mut room, is_woken.then_some(0));
        let was_woken = self.state.swap(IDLE, Ordering::AcqRel) == WOKEN || is_woken;
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
        // It stays so, because the descriptor waits: whoever wakes this reader rings.
        self.state.store(WAITING, Ordering::Release);
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        let events = poller.wait(&mut room, Some(0));
        self.read_those(poller, events, &mut timer_ns)
    }

    /// Returns what is readable when [`read_ready`](Self::read_ready) has something to read; `None` before [`prepare`](Self::prepare).
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
                Polled::Numbered(number) => {
                    has_read = true;
                    self.read(poller, number);
                }
                Polled::Timer => *timer_ns = None,
                // Whoever rings may ring no more before the next look.
                Polled::Bell => has_read = true,
                Polled::Entry(..) => {}
            }
        }
        if self.has_left.swap(false, Ordering::AcqRel) {
            has_read = true;
            self.read_all(poller);
        }
        has_read
    }

    /// Has the thread that reads look at all connections, because a leader has left one.
    pub(crate) fn note_left(&self) {
        if self.poller.get().is_some() {
            self.has_left.store(true, Ordering::Release);
            self.end_wait();
        }
    }

    /// Ends a wait: one in progress, or else the next one.
    pub(crate) fn end_wait(&self) {
        if self.state.swap(WOKEN, Ordering::AcqRel) == WAITING
            && let Some(poller) = self.poller.get()
        {
            poller.ring();
        }
    }

    fn read(&self, poller: &Poller, number: u32) {
        let mut connections = self.connections.lock();
        let Some(place) = connections.open.iter().position(|it| it.0 == number) else {
            return;
        };
        let source = connections.open[place].1.upgrade();
        if source.is_none() {
            connections.open.swap_remove(place);
        }
        drop(connections);
        let Some(source) = source else { return };
        if !source.read_for_tasks() {
            poller.remove(source.stream());
            let mut connections = self.connections.lock();
            connections.open.retain(|it| it.0 != number);
        }
    }

    #[cold]
    fn read_all(&self, poller: &Poller) {
        let numbers: Vec<u32> = {
            let connections = self.connections.lock();
            connections.open.iter().map(|it| it.0).collect()
        };
        for number in numbers {
            self.read(poller, number);
        }
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

fn register(poller: &Poller, number: u32, source: &Weak<dyn ReplySource>) -> Result<(), Errno> {
    let Some(source) = source.upgrade() else {
        return Ok(());
    };
    source.stream().register_for_polling();
    poller.add(source.stream(), Token::number(number), ONCE)
}
