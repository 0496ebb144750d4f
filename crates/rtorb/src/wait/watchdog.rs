//! Ends waits without a timer for each call: one thread ends those whose deadlines have passed or whose peers are gone.
//!
//! With a socket's own receive timeout, the kernel would set and delete a timer in every call (some 50 ns for 20 ms), and a call with
//! another timeout would need one more system call. Here a call stores its deadline in a word and clears the word afterwards. The
//! watchdog checks the words as rarely as possible: no deadline that is set after a check can pass before the shortest timeout in
//! use has passed, so it sleeps that long, or until the earliest deadline that it saw. Deadlines are kept to 0.2 ms. While a
//! connection is open, an idle watchdog wakes once in the shortest timeout.
//!
//! It also ends started calls, whether or not somebody waits for them, answers deferred calls that nobody has answered in time
//! ([`WatchedReplies`]), and waits for the ends of peers in shared memory (`PeerWatch`).

use super::WatchError;
use super::call_table::CallTable;
use crate::clock::monotonic_ns;
use crate::poller::{ONCE, Polled, Poller, Token};
use crate::realtime::ClientThread;
use crate::transport::Stream;
use crate::transport::shared_memory::PeerWatch;
use core::fmt::Debug;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rtorb_os::set_once::SetOnce;
use rtorb_os::sync::Mutex;
use rtorb_os::thread::{JoinHandle, join_unless_own};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::sync::{Arc, Weak};

/// The thread that ends waits. It starts with the first call that has a timeout, the first deferred reply that has a deadline, or the first
/// peer to be watched.
#[derive(Debug)]
pub(crate) struct Watchdog {
    config: ClientThread,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<Option<()>>>>,
}

#[derive(Debug)]
struct Shared {
    waits: Mutex<Vec<Watched>>,
    calls: Arc<CallTable>,
    /// The deferred replies of the ORB.
    replies: SetOnce<Weak<dyn WatchedReplies>>,
    /// The peers of connections through shared memory.
    peers: PeerWatch,
    /// The clients of requests that can be cancelled, by their numbers.
    clients: Mutex<Vec<Weak<dyn WatchedClient>>>,
    /// The poller in which the thread sleeps. It exists once the thread has started.
    poller: SetOnce<Poller>,
    stop: AtomicBool,
}

/// A connection's wait, and the shortest timeout of its calls.
#[derive(Debug)]
struct Watched {
    wait: Weak<Wait>,
    timeout_ns: u64,
}

/// A connection's wait, which the watchdog can end.
#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) stream: Stream,
    /// The deadline on CLOCK_MONOTONIC, or [`IDLE`], [`ENDED`] or [`SHUT`].
    deadline_ns: AtomicU64,
}

/// A client whose connection no thread reads while a request of a distributable thread is served.
pub(crate) trait WatchedClient: Debug + Send + Sync {
    /// Searches the unread bytes for cancellations.
    fn look(&self);
}

/// Replies that have deadlines.
pub(crate) trait WatchedReplies: Debug + Send + Sync {
    /// Answers the calls whose deadlines have passed. Returns when to look again; `None` if no reply has a deadline.
    ///
    /// It does not wait for a client.
    fn end_due(&self, now_ns: u64) -> Option<u64>;
}

/// Makes the watchdog end waits early.
#[derive(Clone, Debug)]
pub(crate) struct WatchdogBell(Arc<Shared>);

impl WatchdogBell {
    /// Ends a wait that is in progress at `at_ns`, if it does not end before.
    pub(crate) fn end_by(&self, wait: &Arc<Wait>, at_ns: u64) {
        wait.shorten(at_ns);
        self.0.add(wait, u64::MAX);
        self.0.wake();
    }
}

/// The watchdog sleeps at least this many nanoseconds between two checks. Otherwise one short timeout would keep a processor
/// busy, perhaps with an urgent thread, as long as its connection is open.
const REST_NS: u64 = 200_000;

/// How soon the watchdog looks again at a thread that it woke because its peer is gone, in nanoseconds.
const AGAIN_NS: u64 = 10_000_000;

/// The events of a client that is not watched: the kernel reports its end all the same, but only once.
const UNWATCHED: EventFlags = EventFlags::ET;

/// The most clients that are watched: as many as a process has descriptors.
const CLIENTS_MAX: usize = 1 << 20;

/// The most ended peers that one system call reports.
const EVENTS_MAX: usize = 16;

/// No thread waits.
const IDLE: u64 = 0;
/// The deadline passed and the watchdog has ended receiving. The thread can still tell the server that it gives up.
const ENDED: u64 = u64::MAX;
/// The watchdog has shut the stream, because the thread still waited at the next check, for room to send.
const SHUT: u64 = u64::MAX - 1;

impl Wait {
    pub(crate) fn new(stream: Stream) -> Arc<Self> {
        Arc::new(Self {
            stream,
            deadline_ns: AtomicU64::new(IDLE),
        })
    }

    /// Begins a wait that may last until `deadline_ns`.
    #[inline]
    pub(crate) fn begin(&self, deadline_ns: u64) {
        self.deadline_ns
            .store(deadline_ns.clamp(1, SHUT - 1), Ordering::Release);
    }

    /// Moves the deadline of a wait in progress to `at_ns`, if that is earlier.
    #[cold]
    fn shorten(&self, at_ns: u64) {
        let shorter = |deadline_ns| {
            let is_longer = at_ns < deadline_ns && deadline_ns < SHUT;
            is_longer.then_some(at_ns.max(1))
        };
        let _ = self
            .deadline_ns
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, shorter);
    }

    /// Ends the wait. Returns false if the watchdog has ended it first; then the connection cannot be used again.
    #[inline]
    pub(crate) fn end(&self) -> bool {
        self.deadline_ns.swap(IDLE, Ordering::AcqRel) < SHUT
    }

    /// Returns true if the watchdog has ended the wait.
    #[cold]
    pub(crate) fn has_ended(&self) -> bool {
        self.deadline_ns.load(Ordering::Acquire) >= SHUT
    }

    /// Ends the wait if its deadline has passed. Returns when to look again: at the deadline of a wait in progress, or soon at one that
    /// has just been ended.
    fn end_if_due(&self, now_ns: u64) -> Option<u64> {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("timeout-forgotten") {
            return None;
        }
        let deadline_ns = self.deadline_ns.load(Ordering::Acquire);
        match deadline_ns {
            IDLE | SHUT => None,
            ENDED => {
                if self.step(ENDED, SHUT) {
                    self.stream.shut();
                }
                None
            }
            _ if deadline_ns > now_ns => Some(deadline_ns),
            _ => self.step(deadline_ns, ENDED).then(|| {
                self.stream.end_receiving();
                now_ns
            }),
        }
    }

    fn step(&self, from: u64, to: u64) -> bool {
        self.deadline_ns
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

impl Watchdog {
    /// Makes a watchdog of the started calls, with the scheduling of its thread.
    pub(crate) fn new(config: ClientThread, calls: CallTable) -> Self {
        Self {
            config,
            shared: Arc::new(Shared::new(calls)),
            thread: Mutex::default(),
        }
    }

    /// Watches the waits of a connection from now on. Each of them lasts at least `timeout_ns`, or is followed by
    /// [`check_waits`](Self::check_waits).
    pub(crate) fn watch(&self, wait: &Arc<Wait>, timeout_ns: u64) -> Result<(), WatchError> {
        self.shared.add(wait, timeout_ns);
        self.watch_calls()
    }

    /// Returns the started calls.
    pub(crate) fn calls(&self) -> &Arc<CallTable> {
        &self.shared.calls
    }

    /// Has the thread answer deferred calls, once it [watches](Self::watch_calls).
    pub(crate) fn watch_replies(&self, replies: Weak<dyn WatchedReplies>) {
        self.shared.replies.get_or_make(|| replies);
    }

    /// Watches the deadlines of started calls and deferred replies from now on.
    pub(crate) fn watch_calls(&self) -> Result<(), WatchError> {
        // On virtual time the simulation looks instead.
        #[cfg(test)]
        if crate::tests::clock::is_virtual() {
            return Ok(());
        }
        self.start().map(|_| ())
    }

    /// Makes the thread check the waits, calls and deferred replies that have begun.
    pub(crate) fn check_waits(&self) {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("shorter-timeout-unheard") {
            return;
        }
        self.shared.wake();
    }

    /// Returns the handle that ends [watched](Self::watch) waits early.
    pub(crate) fn bell(&self) -> WatchdogBell {
        WatchdogBell(Arc::clone(&self.shared))
    }

    /// Registers a client. Returns its number for [`begin_look`](Self::begin_look).
    pub(crate) fn add_client(
        &self,
        client: Weak<dyn WatchedClient>,
        socket: impl AsFd,
    ) -> Result<u32, WatchError> {
        let poller = self.start()?;
        let mut clients = self.shared.clients.lock();
        // An event of a client that is gone makes the thread look at the next one at its place once too often.
        let free = clients.iter().position(|it| it.strong_count() == 0);
        let place = free.unwrap_or(clients.len());
        if place >= CLIENTS_MAX {
            return Err(Errno::NOBUFS.into());
        }
        let number = place as u32;
        poller.add(socket, Token::number(number), UNWATCHED)?;
        match clients.get_mut(place) {
            Some(known) => *known = client,
            None => clients.push(client),
        }
        Ok(number)
    }

    /// Watches a client: calls its [`look`](WatchedClient::look) whenever bytes arrive, and at once if some have arrived.
    pub(crate) fn begin_look(&self, number: u32, socket: impl AsFd) {
        if let Some(poller) = self.shared.poller.get() {
            // It fails only if the socket is not registered.
            let _ = poller.change(socket, Token::number(number), ONCE | EventFlags::RDHUP);
        }
    }

    /// Stops watching a client.
    pub(crate) fn end_look(&self, number: u32, socket: impl AsFd) {
        if let Some(poller) = self.shared.poller.get() {
            let _ = poller.change(socket, Token::number(number), UNWATCHED);
        }
    }

    /// Wakes the threads that sleep on this connection when its peer is gone. For a socket the kernel does that.
    pub(crate) fn watch_peer(&self, stream: &Stream) -> Result<(), WatchError> {
        let Some(link) = stream.memory() else {
            return Ok(());
        };
        let poller = self.start()?;
        Ok(self.shared.peers.add(link, stream, poller)?)
    }

    /// Starts the thread, unless it runs. Returns the poller in which it sleeps.
    fn start(&self) -> Result<&Poller, WatchError> {
        let mut thread = self.thread.lock();
        let poller = match self.shared.poller.get() {
            Some(poller) => poller,
            None => {
                let made = Poller::with_timer()?;
                self.shared.poller.get_or_make(|| made)
            }
        };
        if thread.is_none() {
            let shared = Arc::clone(&self.shared);
            *thread = Some(self.config.spawn("rtorb-watchdog", move || shared.run())?);
        }
        Ok(poller)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.wake();
        if let Some(thread) = self.thread.get_mut().take() {
            join_unless_own(thread);
        }
    }
}

impl Shared {
    fn new(calls: CallTable) -> Self {
        Self {
            waits: Mutex::default(),
            calls: Arc::new(calls),
            replies: SetOnce::new(),
            peers: PeerWatch::new(),
            clients: Mutex::default(),
            poller: SetOnce::new(),
            stop: AtomicBool::new(false),
        }
    }

    fn run(&self) {
        while !self.stop.load(Ordering::Acquire) {
            self.turn(|_| {});
        }
    }

    /// Looks at everything once, and sleeps until it must look again. Calls `before` with the number of each step before it.
    #[inline]
    fn turn(&self, before: impl Fn(u32)) {
        before(0);
        let until_ns = self.look(monotonic_ns());
        before(1);
        let until_ns = self.look_at_peers(until_ns);
        before(2);
        self.sleep(until_ns);
    }

    /// Wakes the threads whose peers are gone and returns when to look again: at `until_ns` or before.
    fn look_at_peers(&self, until_ns: Option<u64>) -> Option<u64> {
        if !self.peers.wake_threads() {
            return until_ns;
        }
        let soon_ns = monotonic_ns() + AGAIN_NS;
        Some(until_ns.map_or(soon_ns, |until_ns| until_ns.min(soon_ns)))
    }

    /// Sleeps until the bell rings, a peer is gone, or `until_ns`.
    ///
    /// Only this clears the bell, and the thread checks everything afterwards.
    fn sleep(&self, until_ns: Option<u64>) {
        let Some(poller) = self.poller.get() else {
            return;
        };
        poller.set_timer(until_ns);
        let mut room = [MaybeUninit::uninit(); EVENTS_MAX];
        for event in poller.wait(&mut room, None) {
            match Polled::of(event) {
                Polled::Entry(token, flags) => self.peers.note_end(token, flags),
                Polled::Numbered(number) => self.look_at_client(number),
                Polled::Bell | Polled::Timer => {}
            }
        }
    }

    #[cold]
    fn look_at_client(&self, number: u32) {
        let client = self.clients.lock().get(number as usize).cloned();
        if let Some(client) = client.and_then(|client| client.upgrade()) {
            client.look();
        }
    }

    /// Watches the waits of a connection, each of which lasts at least `timeout_ns`.
    fn add(&self, wait: &Arc<Wait>, timeout_ns: u64) {
        let wait = Arc::downgrade(wait);
        let mut waits = self.waits.lock();
        let known = waits.iter().position(|known| known.wait.ptr_eq(&wait));
        // A wait that ends early does not make the others of its connection longer.
        let known_ns = known.map_or(u64::MAX, |place| waits.swap_remove(place).timeout_ns);
        waits.retain(|known| known.wait.strong_count() > 0);
        waits.push(Watched {
            wait,
            timeout_ns: timeout_ns.min(known_ns),
        });
    }

    /// Ends the waits, calls and deferred replies that are due and returns when to look again; `None` if there is neither a connection nor a
    /// deadline.
    fn look(&self, now_ns: u64) -> Option<u64> {
        let mut next_ns = self.calls.look(now_ns).unwrap_or(u64::MAX);
        if let Some(replies) = self.replies.get().and_then(Weak::upgrade) {
            next_ns = next_ns.min(replies.end_due(now_ns).unwrap_or(u64::MAX));
        }
        let mut waits = self.waits.lock();
        waits.retain(|watched| watched.wait.strong_count() > 0);
        for watched in &*waits {
            // A wait that begins after this look ends no earlier than its timeout from now.
            next_ns = next_ns.min(now_ns.saturating_add(watched.timeout_ns));
            let deadline_ns = watched
                .wait
                .upgrade()
                .and_then(|wait| wait.end_if_due(now_ns));
            next_ns = next_ns.min(deadline_ns.unwrap_or(u64::MAX));
        }
        (next_ns < u64::MAX).then(|| next_ns.max(now_ns.saturating_add(REST_NS)))
    }

    fn wake(&self) {
        // Without a poller, the thread does not run yet. It begins with a check.
        if let Some(poller) = self.poller.get() {
            poller.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategies::FullCallTable;
    use crate::transport::resolver::Resolver;
    use crate::transport::tcp;
    use rtorb_os::thread::{ThreadConfig, spawn};

    impl Watchdog {
        /// Ends the waits that are due on virtual time, and returns when to look again.
        pub(crate) fn look(&self) -> Option<u64> {
            self.shared.look(monotonic_ns())
        }
    }

    /// Longer than any sleep takes that something ends, in nanoseconds.
    const LONG_NS: u64 = 20_000_000_000;

    #[test]
    fn a_wait_that_has_ended_is_not_made_shorter() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it is bound").port();
        let stream = tcp::connect(&Resolver::default(), "127.0.0.1", port, u64::MAX);
        let wait = Wait::new(stream.expect("it listens"));
        wait.begin(100);
        wait.shorten(200);
        assert_eq!(wait.end_if_due(99), Some(100));
        wait.shorten(50);
        for looks in [Some(60), None] {
            assert_eq!(wait.end_if_due(60), looks);
            wait.shorten(40);
            assert!(wait.has_ended());
        }
        assert!(!wait.end(), "its connection is not used again");
        wait.shorten(40);
        assert!(!wait.has_ended(), "no thread waits");
    }

    fn shared() -> Arc<Shared> {
        let shared = Shared::new(CallTable::new(0, FullCallTable::Refuse));
        let poller = Poller::with_timer().expect("the host has descriptors");
        shared.poller.get_or_make(|| poller);
        Arc::new(shared)
    }

    /// True if a turn of the thread ends soon although nothing more happens than what `before` does.
    fn turns_alone(shared: &Arc<Shared>, before: impl Fn(u32) + Send + 'static) -> bool {
        let of_thread = Arc::clone(shared);
        let turn = move || of_thread.turn(before);
        let thread = spawn("turns", &ThreadConfig::default(), turn).expect("a thread");
        let late_ns = monotonic_ns() + LONG_NS;
        while !thread.is_finished() && monotonic_ns() < late_ns {
            rustix::thread::sched_yield();
        }
        let is_over = thread.is_finished();
        shared.wake();
        thread.join().expect("no panic");
        is_over
    }

    #[test]
    fn a_wait_that_is_announced_between_any_two_steps_of_the_thread_is_watched() {
        for step in 0..3 {
            let shared = shared();
            let (socket, _peer) = std::os::unix::net::UnixStream::pair().expect("sockets");
            let wait = Wait::new(Stream::new(socket.into()));
            let (announcing, watched) = (Arc::clone(&shared), Arc::downgrade(&wait));
            let announce = move |current: u32| {
                if current == step {
                    announcing.waits.lock().push(Watched {
                        wait: Weak::clone(&watched),
                        timeout_ns: 1_000_000,
                    });
                    announcing.wake();
                }
            };
            assert!(
                turns_alone(&shared, announce),
                "announced before step {step}"
            );
        }
    }
}
