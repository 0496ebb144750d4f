//! The state of a server's connection: whether it is read, who may send on it, and how it ends.
//!
//! All threads that work for a connection share its [`ServerConnection`]. The *reader* receives bytes. *Repliers* serve the
//! requests that the reader takes out, and send replies that servants have deferred. The *event loop* sends what the client does
//! not take at once. The *closer* ends the connection. The state is one word, so that each transition is a single step for all
//! of them. A method that finds no such transition changes nothing and returns false.
//!
//! # Phases
//!
//! ```text
//!              reported
//!            ------------>           hold: the bound on requests taken out is reached
//!  Requested               Reading -----------------------------------------------> Held     (hold: also from Requested)
//!   ^        <------------   |  ^                                                    |
//!   |          request       |  |                                                    |
//!   +------------------------|--|----------------------------------------------------+
//!                            |  |    served: half of these requests have replies
//!  drain: the client does    |  |
//!  not take a reply; also    |  |  drained
//!  from Requested and Held   v  |
//!                          Draining
//!                            |
//!                            |  end
//!                            v        drained
//!                         Finishing ------------> Ended <-- end: from Reading, Requested and Held
//!                                   <------------
//!                                       drain: a request that was taken out gets its reply
//! ```
//!
//! # How requests are served
//!
//! ```text
//!         take_out: a request came before the reply to the last one
//! InPlace --------------------------------------------------------> TakenOut
//!         <--------------------------------------------------------
//!         serve_in_place: no request is taken out
//! ```
//!
//! # Why reading ends
//!
//! ```text
//! Open --report_end--> Reported --give_way--> GivingWay <--give_way-- Open
//! ```
//!
//! # How long messages in fragments take
//!
//! A look at the connection moves its own time on by one. Each message in fragments has the time at which it began, and the connection
//! that of the oldest. What else the client sends, and the replies to that, change neither.
//!
//! # Whether the client is known
//!
//! ```text
//! Stranger --note_answered, note_bulk_reply--> Known
//! ```

use crate::giop::Version;
use ServerPhase::{Draining, Ended, Finishing, Held, Reading, Requested};
use model::{AtomicU8, AtomicU32, Ordering};

#[cfg(not(loom))]
use core::sync::atomic as model;
#[cfg(loom)]
use loom::sync::atomic as model;

/// What a server knows of one connection. All threads that work for the connection share it.
#[derive(Debug)]
pub struct ServerConnection {
    /// The phase, how requests are served, why reading ends, whether the client is known, and the number of requests that are taken out.
    word: AtomicU32,
    exchange: AtomicU8,
    /// The minor version of the last message; [`NO_VERSION`] before the first one.
    minor: AtomicU8,
    /// The bound on requests taken out; [`BULK_PACE`] while the next reply may be bulk.
    pace: AtomicU32,
    /// The number of replies that servants have deferred and that are not sent yet.
    deferred: AtomicU32,
    /// The number of looks, from 1, that found messages in fragments incomplete.
    looks: AtomicU32,
    /// The value of `looks` when the oldest incomplete message in fragments began; [`NO_CHAIN`] if there is none.
    oldest_chain: AtomicU32,
}

/// Whether a server reads a connection, and what its event loop watches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ServerPhase {
    /// The connection is read when bytes come.
    Reading = 0,
    /// More has come than one turn serves: the event loop reports the connection at once.
    Requested = 1 << PHASE_SHIFT,
    /// Nothing is read until half of the requests taken out have replies.
    Held = 2 << PHASE_SHIFT,
    /// Nothing is read any more. Requests in progress still get their replies.
    Ended = 3 << PHASE_SHIFT,
    /// The client does not take its replies: nothing is read until the event loop has sent them.
    Draining = UNSENT,
    /// As [`Ended`](Self::Ended), and the event loop sends replies that the client did not take.
    Finishing = UNSENT | 1 << PHASE_SHIFT,
}

/// Where the last message of the client stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Exchange {
    /// It is served, with a reply or without one; or no message has come yet.
    Answered,
    /// It is being served.
    Asked,
    /// It is served, and a part of the next one has come.
    Partial,
    /// As [`Partial`](Self::Partial), and the part has been looked at.
    PartialSeen,
}

/// The minor version before the first message.
const NO_VERSION: u8 = u8::MAX;

/// No message in fragments is incomplete.
const NO_CHAIN: u32 = 0;

/// The number of looks within which a message in fragments may be incomplete. The next one is too many.
const LOOKS_OF_CHAIN: u32 = 1;

/// The bits of the word that count the requests taken out.
const TAKEN: u32 = (1 << PHASE_SHIFT) - 1;
const PHASE_SHIFT: u32 = 23;
const PHASE: u32 = 7 << PHASE_SHIFT;
/// Set in the phases in which replies wait to be sent.
const UNSENT: u32 = 4 << PHASE_SHIFT;
/// Set while requests are taken out of the connection before they are served.
const TAKEN_OUT: u32 = 1 << 26;
/// Set when the client sends no more than what has come.
const END_REPORTED: u32 = 1 << 27;
/// Set when the connection gives way to another client.
const GIVING_WAY: u32 = 1 << 28;
/// Set while a servant executes whose reply was early.
const EXECUTING: u32 = 1 << 29;
/// Set once a servant has deferred a reply, or the connection is bidirectional: any thread may send from then on.
const DEFERS: u32 = 1 << 30;
/// Set once a message of the client has been served.
const KNOWN: u32 = 1 << 31;

/// The pace of a connection whose next reply may be bulk.
const BULK_PACE: u32 = 1;

impl ServerConnection {
    /// A new connection, which is read. Its requests are served in place.
    pub fn new() -> Self {
        Self {
            word: AtomicU32::new(Reading as u32),
            exchange: AtomicU8::new(Exchange::Answered as u8),
            minor: AtomicU8::new(NO_VERSION),
            // The first replies to a new client may be large.
            pace: AtomicU32::new(BULK_PACE),
            deferred: AtomicU32::new(0),
            looks: AtomicU32::new(NO_CHAIN + 1),
            oldest_chain: AtomicU32::new(NO_CHAIN),
        }
    }

    /// The current phase.
    pub fn phase(&self) -> ServerPhase {
        let phase = self.load() & PHASE;
        let known = [Requested, Held, Ended, Draining, Finishing];
        let found = known.into_iter().find(|known| *known as u32 == phase);
        found.unwrap_or(Reading)
    }

    /// Notes that a whole message has come.
    #[inline]
    pub fn note_message(&self, version: Version) {
        self.minor.store(version.minor, Ordering::Relaxed);
        self.exchange
            .store(Exchange::Asked as u8, Ordering::Relaxed);
    }

    /// Notes that the last message is served: a small reply is sent, or none is expected. Returns true if it was the first message of
    /// the client, which [is known](Self::is_known) from now on.
    #[inline]
    pub fn note_answered(&self) -> bool {
        self.note_served();
        self.may_be_bulk() && self.end_bulk()
    }

    /// Notes that the last message is served. A thread that sees that also sees that its servant still executes, or has deferred its reply.
    #[inline]
    fn note_served(&self) {
        self.exchange
            .store(Exchange::Answered as u8, Ordering::Release);
    }

    /// Notes that the next reply is not expected to be bulk. Returns true if the client becomes known.
    #[cold]
    fn end_bulk(&self) -> bool {
        self.pace.store(BULK_PACE + 1, Ordering::Relaxed);
        self.become_known()
    }

    /// Notes that the last message is served by a bulk reply, which costs other clients as much time as many small ones. Returns as
    /// [`note_answered`](Self::note_answered).
    #[cold]
    pub fn note_bulk_reply(&self) -> bool {
        self.note_served();
        // Swapped, not stored: so a bound that another thread raises meanwhile cannot hide it.
        self.pace.swap(BULK_PACE, Ordering::Relaxed);
        self.become_known()
    }

    /// Notes that a message of the client has been served. Returns true the first time.
    fn become_known(&self) -> bool {
        self.set(KNOWN, Ordering::Relaxed)
    }

    /// True once a message of the client has been served. Before, it is a stranger.
    pub fn is_known(&self) -> bool {
        self.load() & KNOWN != 0
    }

    /// Notes that the reply to the last message is sent before its servant is called. Call it before the reply is sent: a client
    /// that has its reply may open a connection that this one would give way to.
    #[cold]
    pub fn note_early_reply(&self) {
        self.set(EXECUTING, Ordering::AcqRel);
    }

    /// Notes that the servant has returned whose [reply was early](Self::note_early_reply).
    #[cold]
    pub fn note_executed(&self) {
        #[cfg(loom)]
        if is_removed("note executed") {
            return;
        }
        self.word.fetch_and(!EXECUTING, Ordering::AcqRel);
    }

    /// Counts a reply that a servant defers. Call it before another thread may send the reply: from then on no thread
    /// [sends alone](Self::sends_alone).
    #[cold]
    pub fn note_deferred(&self) {
        self.set(DEFERS, Ordering::AcqRel);
        self.deferred.fetch_add(1, Ordering::AcqRel);
    }

    /// Has no thread [send alone](Self::sends_alone) from now on: requests of this end are sent too. The thread that reads calls this.
    #[cold]
    pub fn share_sending(&self) {
        self.set(DEFERS, Ordering::AcqRel);
    }

    /// Counts off a [deferred](Self::note_deferred) reply that was sent or cannot be sent.
    #[cold]
    pub fn note_settled(&self) {
        self.deferred.fetch_sub(1, Ordering::AcqRel);
    }

    /// True while a deferred reply is not sent.
    pub fn has_deferred(&self) -> bool {
        self.deferred.load(Ordering::Acquire) != 0
    }

    /// Notes that a part of a message has come, unless a request is in progress. The next whole message ends that.
    #[cold]
    pub fn note_partial(&self) {
        if self.load() & EXECUTING == 0 {
            self.exchange_step(Exchange::Answered, Exchange::Partial);
        }
    }

    /// Looks at the part of a message that has come; true if it was looked at before, and the rest has not come since. So it is for each
    /// message in fragments, whatever else comes meanwhile; a look while a request is in progress does not count for them.
    #[cold]
    pub fn look_at_partial(&self) -> bool {
        let stood = self.exchange_step(Exchange::Partial, Exchange::PartialSeen);
        stood == Exchange::PartialSeen as u8 || self.look_at_chains()
    }

    /// True if a message in fragments was looked at before and is incomplete.
    fn look_at_chains(&self) -> bool {
        let oldest = self.oldest_chain.load(Ordering::Relaxed);
        if oldest == NO_CHAIN || !self.is_idle() {
            return false;
        }
        let before = self.looks.fetch_add(1, Ordering::Relaxed);
        before.wrapping_sub(oldest) >= LOOKS_OF_CHAIN
    }

    /// The time of the connection, by which messages in fragments are timed.
    pub(super) fn chain_time(&self) -> u32 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Notes [when](Self::chain_time) the oldest message in fragments began that is incomplete; `None` if there is none. The thread that
    /// reads calls this.
    pub(super) fn note_oldest_chain(&self, begun: Option<u32>) {
        self.oldest_chain
            .store(begun.unwrap_or(NO_CHAIN), Ordering::Relaxed);
    }

    /// Changes where the last message stands, if it stands there; returns where it stood.
    fn exchange_step(&self, from: Exchange, to: Exchange) -> u8 {
        let relaxed = Ordering::Relaxed;
        let step = self
            .exchange
            .compare_exchange(from as u8, to as u8, relaxed, relaxed);
        step.unwrap_or_else(|other| other)
    }

    /// True if the last message has its reply or needs none, or none has come.
    #[inline]
    pub fn is_answered(&self) -> bool {
        self.exchange.load(Ordering::Acquire) != Exchange::Asked as u8
    }

    /// True if the last reply was bulk, or no message is served yet.
    #[inline]
    pub fn may_be_bulk(&self) -> bool {
        self.pace.load(Ordering::Relaxed) == BULK_PACE
    }

    /// The version of the last message, which the connection's own messages have too; `None` before the first one.
    pub fn version(&self) -> Option<Version> {
        let minor = self.minor.load(Ordering::Relaxed);
        (minor != NO_VERSION).then_some(Version { major: 1, minor })
    }

    /// True if no request is in progress, no reply is deferred, and none waits to be sent.
    pub fn is_idle(&self) -> bool {
        self.is_answered()
            && self.load() & (TAKEN | UNSENT | EXECUTING) == 0
            && !self.has_deferred()
    }

    /// True if the thread that reads may send without a lock: no other thread replies, and nothing waits to be sent.
    #[inline]
    pub fn sends_alone(&self) -> bool {
        self.load() & (TAKEN | UNSENT | DEFERS) == 0
    }

    /// True while requests are taken out that have no reply yet.
    pub fn has_taken(&self) -> bool {
        self.load() & TAKEN != 0
    }

    /// True while replies wait to be sent. Nothing is read meanwhile.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.load() & UNSENT != 0
    }

    /// True once nothing is read any more.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase(), Ended | Finishing)
    }

    /// True while the connection is read.
    pub fn is_read(&self) -> bool {
        matches!(self.phase(), Reading | Requested)
    }

    /// True while the event loop is to report the connection at once.
    #[inline]
    pub fn is_requested(&self) -> bool {
        self.load() & PHASE == Requested as u32
    }

    /// True while requests are to be taken out of the connection before they are served.
    #[inline]
    pub fn is_taken_out(&self) -> bool {
        self.load() & TAKEN_OUT != 0
    }

    /// True if the client sends no more than what has come. Then the end comes behind the last byte.
    #[inline]
    pub fn is_ending(&self) -> bool {
        self.load() & (END_REPORTED | GIVING_WAY) != 0
    }

    /// True if the connection gives way to another client, and ends with CloseConnection.
    pub fn gives_way(&self) -> bool {
        self.load() & GIVING_WAY != 0
    }

    /// Has the event loop report the connection at once, unless it is held, has unsent replies, or has ended.
    pub fn request(&self) -> bool {
        self.step(&[(Reading, Requested), (Requested, Requested)])
    }

    /// Notes that the requested report has come, or is no longer needed.
    pub fn reported(&self) -> bool {
        self.step(&[(Requested, Reading)])
    }

    /// Stops reading if as many requests are taken out as the bound allows.
    pub fn hold(&self) -> bool {
        let bound = self.pace.load(Ordering::Relaxed);
        self.step_if(&[(Reading, Held), (Requested, Held)], |taken| {
            taken >= bound
        })
    }

    /// Counts a request that is taken out for another thread or for later. Returns how many were taken out before.
    #[inline]
    pub fn take(&self) -> u32 {
        let taken = self.word.fetch_add(1, Ordering::Relaxed) & TAKEN;
        debug_assert!(
            taken < TAKEN,
            "the threads and the queue of a server are bounded"
        );
        taken
    }

    /// Counts off a request that was taken out and has its reply. Returns true if reading goes on: the event loop is to report
    /// the connection.
    #[inline]
    pub fn served(&self) -> bool {
        let before = self.word.fetch_sub(1, Ordering::AcqRel);
        before & PHASE == Held as u32 && self.resume()
    }

    /// Raises the bound on requests taken out, up to `bound_max`, unless replies are bulk.
    pub fn raise_bound(&self, bound_max: u32) {
        // In one step, so that a bulk reply that another thread notes meanwhile is not forgotten.
        let raised = |pace| (pace != BULK_PACE).then(|| bound_max.min(pace + 1));
        let _ = self
            .pace
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, raised);
    }

    /// Stops reading because a reply waits to be sent; returns false if earlier ones do already.
    pub fn drain(&self) -> bool {
        self.step(&[
            (Reading, Draining),
            (Requested, Draining),
            (Held, Draining),
            (Ended, Finishing),
        ])
    }

    /// Notes that no reply waits any more.
    pub fn drained(&self) -> bool {
        self.step(&[(Draining, Reading), (Finishing, Ended)])
    }

    /// Ends reading for good.
    pub fn end(&self) -> bool {
        self.step(&[
            (Reading, Ended),
            (Requested, Ended),
            (Held, Ended),
            (Draining, Finishing),
        ])
    }

    /// Has requests taken out before they are served. Any thread may call this. A thread that sees the change also sees what the caller did before it.
    pub fn take_out(&self) {
        self.set(TAKEN_OUT, Ordering::Release);
    }

    /// Has requests served in place again; returns false while some are taken out. The reader calls this.
    pub fn serve_in_place(&self) -> bool {
        #[cfg(loom)]
        if is_removed("serve in place") {
            return false;
        }
        let change = |word| (word & TAKEN == 0).then_some(word & !TAKEN_OUT);
        let changed = self
            .word
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, change);
        changed.is_ok()
    }

    /// Notes that the client sends no more than what has come.
    pub fn report_end(&self) {
        self.set(END_REPORTED, Ordering::Release);
    }

    /// Has the connection end with CloseConnection, in favour of another client.
    pub fn give_way(&self) {
        self.set(GIVING_WAY, Ordering::Release);
    }

    /// Reads a held connection again if half of its requests have replies.
    #[cold]
    fn resume(&self) -> bool {
        let bound = self.pace.load(Ordering::Relaxed);
        self.step_if(&[(Held, Requested)], |taken| taken <= bound / 2)
    }

    /// Makes the transition from the current phase, if there is one.
    fn step(&self, transitions: &[(ServerPhase, ServerPhase)]) -> bool {
        self.step_if(transitions, |_| true)
    }

    /// Makes the transition from the current phase, if there is one and `is_due` for the number of requests taken out.
    fn step_if(
        &self,
        transitions: &[(ServerPhase, ServerPhase)],
        is_due: impl Fn(u32) -> bool,
    ) -> bool {
        let change = |word| {
            let is_current = |(from, _): &&(ServerPhase, _)| *from as u32 == word & PHASE;
            let (_from, next) = transitions.iter().find(is_current)?;
            #[cfg(loom)]
            if is_removed(&alloc::format!("{_from:?} to {next:?}")) {
                return None;
            }
            is_due(word & TAKEN).then_some(word & !PHASE | *next as u32)
        };
        let changed = self
            .word
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
        changed.is_ok()
    }

    /// Sets a flag of the word. Returns true if it was clear.
    fn set(&self, flag: u32, ordering: Ordering) -> bool {
        #[cfg(loom)]
        if is_removed(&alloc::format!("set bit {}", flag.trailing_zeros())) {
            return false;
        }
        self.word.fetch_or(flag, ordering) & flag == 0
    }

    /// The word. It shows what other threads did before they changed it.
    #[inline]
    fn load(&self) -> u32 {
        self.word.load(Ordering::Acquire)
    }
}

/// True for the transition that a model goes without. Models show in this way that they need each of them.
#[cfg(loom)]
fn is_removed(transition: &str) -> bool {
    extern crate std;
    std::env::var("RTORB_LOOM_WITHOUT").is_ok_and(|removed| removed == transition)
}

impl Default for ServerConnection {
    fn default() -> Self {
        Self::new()
    }
}
