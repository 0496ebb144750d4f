//! A listening port: clients whose handshakes are over wait here until the ORB accepts them.

use crate::budget::Budget;
use crate::counts::{HandshakeCounters, count};
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb::security::{SecureLink, SecureListener, SecurityReport};
use rtorb::thread::Errno;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{fcntl_dupfd_cloexec, read, write};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A listening port.
pub(crate) struct Port {
    pub(crate) socket: OwnedFd,
    pub(crate) counters: Arc<HandshakeCounters>,
    /// Counts the ready clients.
    count: OwnedFd,
    waiting: Mutex<Waiting>,
    has_ended: AtomicBool,
    report: SecurityReport,
    reports: Mutex<Reports>,
}

/// What waits until the ORB accepts clients.
struct Waiting {
    ready: VecDeque<ReadyClient>,
    /// True if the thread of the handshakes begins no other one before.
    is_held_back: bool,
}

/// A client whose handshake is over.
struct ReadyClient {
    socket: OwnedFd,
    link: Arc<dyn SecureLink>,
}

/// The budget of reports: a flood of bad clients must not flood the log.
struct Reports {
    budget: Budget,
    left_out: u64,
}

/// The clients that wait until the ORB accepts them, beyond which no other one begins its handshake. Those that have begun may join them.
const READY_MAX: usize = 64;

/// The most reports of a port in a second.
const REPORTS_PER_SECOND: u32 = 20;

impl Port {
    pub(crate) fn new(
        socket: OwnedFd,
        report: SecurityReport,
        counters: Arc<HandshakeCounters>,
    ) -> Result<Self, Errno> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
        Ok(Self {
            socket,
            counters,
            count: eventfd(0, flags)?,
            waiting: Mutex::new(Waiting {
                ready: VecDeque::with_capacity(READY_MAX),
                is_held_back: false,
            }),
            has_ended: AtomicBool::new(false),
            report,
            reports: Mutex::new(Reports {
                budget: Budget::new(REPORTS_PER_SECOND),
                left_out: 0,
            }),
        })
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Returns true if another client may begin its handshake. If not, the next accepted client wakes the thread of the handshakes.
    pub(crate) fn has_room(&self) -> bool {
        let mut waiting = self.waiting.lock();
        let has_room = waiting.ready.len() < READY_MAX;
        waiting.is_held_back = !has_room;
        has_room
    }

    /// Adds a client whose handshake is over.
    pub(crate) fn add(&self, socket: OwnedFd, link: Arc<dyn SecureLink>) {
        count(&self.counters.completed);
        let client = ReadyClient { socket, link };
        self.waiting.lock().ready.push_back(client);
        // The counter of so few clients does not overflow.
        let _ = write(&self.count, &1u64.to_ne_bytes());
    }

    /// Reports what concerns more than one client. The budget of refused clients does not count it, so it must be rare.
    pub(crate) fn report_rare(&self, text: String) {
        (self.report)(text);
    }

    /// Reports a refused client.
    pub(crate) fn report(&self, text: &str) {
        let mut reports = self.reports.lock();
        let now_ns = monotonic_ns();
        if !reports.budget.allows(now_ns) {
            reports.left_out += 1;
            return;
        }
        reports.budget.take(now_ns);
        let left_out = core::mem::take(&mut reports.left_out);
        drop(reports);
        (self.report)(match left_out {
            0 => text.to_owned(),
            _ => format!("{text} ({left_out} more were refused since the last report)"),
        });
    }
}

impl core::fmt::Debug for Port {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Port")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

/// Wakes the thread of the handshakes.
#[derive(Clone, Debug)]
pub(crate) struct Wakeup(Arc<OwnedFd>);

impl Wakeup {
    pub(crate) fn new() -> Result<Self, Errno> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(bell)))
    }

    pub(crate) fn wake(&self) {
        // A bell that rings already cannot ring more.
        let _ = write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Stops ringing.
    pub(crate) fn clear(&self) {
        let _ = read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The ORB's end of a port.
#[derive(Debug)]
pub(crate) struct ListeningPort {
    pub(crate) port: Arc<Port>,
    pub(crate) wakeup: Wakeup,
}

impl SecureListener for ListeningPort {
    fn readiness(&self) -> Result<OwnedFd, Errno> {
        fcntl_dupfd_cloexec(&self.port.count, 0)
    }

    fn accept(&self) -> Result<(OwnedFd, Arc<dyn SecureLink>), Errno> {
        if self.port.has_ended() {
            return Err(Errno::INVAL);
        }
        let mut waiting = self.port.waiting.lock();
        let client = waiting.ready.pop_front().ok_or(Errno::AGAIN)?;
        let was_held_back = core::mem::take(&mut waiting.is_held_back);
        drop(waiting);
        // One less. There was one.
        let _ = read(&self.port.count, &mut [0; 8]);
        if was_held_back {
            self.wakeup.wake();
        }
        Ok((client.socket, client.link))
    }

    fn end(&self) {
        self.port.has_ended.store(true, Ordering::Release);
        self.port.waiting.lock().ready.clear();
        self.wakeup.wake();
    }
}

impl Drop for ListeningPort {
    fn drop(&mut self) {
        self.end();
    }
}
