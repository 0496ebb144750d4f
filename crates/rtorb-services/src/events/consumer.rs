//! A consumer of the channel (proxy push supplier): its queue, the thread that sends for it, and the fate of each of its events.
//!
//! One thread at a time sends for a consumer, so its events keep their order: a thread that finds the consumer idle and may send in
//! place, or the thread of its lane. No thread holds the lock while it sends.

mod filter_output;
mod queueing;
mod sending;
mod state;

use super::config::{ChannelConfig, WhenFull};
use super::connection::ConsumerConnection;
use super::event::Incoming;
use super::filter::Key;
use super::lane::Lane;
use super::mailbox::Mailbox;
use super::statistics::{ConnectionState, ConsumerStatistics, Counts};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex, MutexGuard};
use state::{ConsumerState, Phase, SendState};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use state::{Departure, Service};

/// A connected consumer.
#[derive(Debug)]
pub(crate) struct Consumer {
    registration: Registration,
    rules: Rules,
    connection: Arc<dyn ConsumerConnection>,
    keeper: Arc<Mailbox<Arc<Self>>>,
    connected_ns: u64,
    state: Mutex<ConsumerState>,
    /// The signal for threads of suppliers that wait for room in the queue.
    room: Condvar,
}

/// The numbers and the lane of a consumer.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    /// No other consumer of the channel ever has this number.
    pub(crate) number: u64,
    /// No other connected consumer has this slot. It is reused after the consumer is freed.
    pub(crate) slot: usize,
    /// The lane does not change with the subscription: all events take one way and keep their order.
    pub(crate) lane: Arc<Lane<Consumer>>,
}

/// The part of the configuration that every consumer follows.
#[derive(Clone, Copy, Debug)]
struct Rules {
    when_full: WhenFull,
    turn_events: usize,
    retry_ns: u64,
    hang_ns: u64,
}

/// What a lane does after a consumer's turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TurnResult {
    /// Queue the consumer for another turn at this time.
    pub(crate) next_turn_ns: Option<u64>,
    /// Check the consumer again at this time.
    pub(crate) check_at_ns: Option<u64>,
}

/// Whether a thread that has an event may send it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dispatch {
    InPlace,
    /// In place, unless the consumer's turns go by time. For the lane's own thread.
    InTurn,
    ByLane,
}

/// Whether a thread that has an event may wait for room in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitForRoom {
    /// A supplier's thread waits as the configuration says.
    AsConfigured,
    /// The lane's own thread never waits: no other thread would make room.
    Never,
}

impl Consumer {
    /// A consumer whose connection the keeper opens.
    pub(crate) fn new(
        registration: Registration,
        service: Service,
        connection: Arc<dyn ConsumerConnection>,
        keeper: Arc<Mailbox<Arc<Self>>>,
        config: &ChannelConfig,
    ) -> Self {
        let now_ns = monotonic_ns();
        Self {
            registration,
            connected_ns: now_ns,
            rules: Rules {
                when_full: config.when_full,
                turn_events: config.turn_events,
                retry_ns: nanoseconds(config.retry),
                hang_ns: nanoseconds(config.hang_timeout),
            },
            connection,
            keeper,
            state: Mutex::new(ConsumerState::new(service, config, now_ns)),
            room: Condvar::new(),
        }
    }

    pub(crate) fn slot(&self) -> usize {
        self.registration.slot
    }

    pub(crate) fn number(&self) -> u64 {
        self.registration.number
    }

    pub(crate) fn lane(&self) -> &Arc<Lane<Self>> {
        &self.registration.lane
    }

    pub(crate) fn connected_ns(&self) -> u64 {
        self.connected_ns
    }

    pub(crate) fn connection(&self) -> &Arc<dyn ConsumerConnection> {
        &self.connection
    }

    /// Takes an event that matches its keys. Returns true if the caller must wake the lane.
    pub(crate) fn offer(
        self: &Arc<Self>,
        event: &Incoming<'_>,
        dispatch: Dispatch,
        now_ns: u64,
    ) -> bool {
        let mut state = self.state.lock();
        let dispatch = match dispatch {
            Dispatch::InTurn if state.turn_after_ns.is_some() => Dispatch::ByLane,
            Dispatch::InTurn => Dispatch::InPlace,
            other => other,
        };
        if state.is_filtered {
            state = self.filter(state, event, now_ns);
        } else {
            if state.may_be_stale && !state.subscription.wants(Key::of(&event.header)) {
                return false;
            }
            state.counts.received += 1;
            if dispatch == Dispatch::InPlace && state.is_free() {
                let job = state.begin_with(event.message.form);
                drop(state);
                return self.send_in_place(job, Some(event.message));
            }
            state = self.queue(state, event.message, now_ns, WaitForRoom::AsConfigured);
        }
        self.start_sending(state, dispatch)
    }

    /// Handles timeouts that are due, then sends what waits. The lane's thread calls it.
    pub(crate) fn turn(self: &Arc<Self>, now_ns: u64) -> TurnResult {
        let mut state = self.state.lock();
        if state.phase == Phase::Departed {
            return TurnResult::default();
        }
        let expires = state.subscription.next_timeout_ns();
        if expires.is_some_and(|at_ns| at_ns <= now_ns) {
            state = self.expire(state, now_ns);
        }
        let mut result = TurnResult::default();
        // A thread that sends already looks for more before it ends.
        if state.send_state != SendState::Sending
            && let Some(job) = state.begin()
        {
            drop(state);
            result = self.send(job, None);
            state = self.state.lock();
        }
        state.needs_turn = false;
        let timeout_ns = state.subscription.next_timeout_ns();
        result.check_at_ns = result.check_at_ns.into_iter().chain(timeout_ns).min();
        result
    }

    /// Replaces the subscription; what waits stays. Returns false if the consumer has departed.
    ///
    /// Until [`lookup_is_current`](Self::lookup_is_current), the lookup table may still bring events that only the former
    /// subscription wanted. The consumer ignores them.
    pub(crate) fn resubscribe(self: &Arc<Self>, service: Service) -> bool {
        let mut state = self.state.lock();
        if state.phase == Phase::Departed {
            return false;
        }
        state.serve(service);
        state.may_be_stale = true;
        // A turn sets the timer for the new timeouts. One comes anyway if it is queued or blocked.
        match state.send_state {
            SendState::Idle => self.start_turn(state),
            SendState::Sending => state.needs_turn = true,
            SendState::Queued | SendState::Blocked => {}
        }
        true
    }

    /// Gives its turns another order.
    pub(crate) fn reorder(&self, turn_after_ns: Option<u64>) {
        self.state.lock().turn_after_ns = turn_after_ns;
    }

    /// Notes that no thread reads a lookup table of a former subscription any more.
    pub(crate) fn lookup_is_current(&self) {
        self.state.lock().may_be_stale = false;
    }

    /// Gives the consumer its first turn, which sets the timer for its timeouts.
    pub(crate) fn start(self: &Arc<Self>) {
        self.start_turn(self.state.lock());
    }

    /// Notes that the connection is open; what waits may go.
    pub(crate) fn opened(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.phase == Phase::Opening {
            state.phase = Phase::Open;
            state.last_response_ns = monotonic_ns();
            self.enqueue_and_wake(state);
        }
    }

    /// Discards all events until [`resume`](Self::resume); what waits stays.
    pub(crate) fn suspend(&self) {
        let mut state = self.state.lock();
        state.is_suspended = true;
        state.blocked_since_ns = None;
        // Threads that wait for room must not wait on.
        self.room.notify_all(&self.state);
    }

    /// Ends a [`suspend`](Self::suspend).
    pub(crate) fn resume(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.is_suspended = false;
        self.enqueue_and_wake(state);
    }

    /// Ends the consumer and discards what waits; the keeper does the rest. Returns false if it had departed already.
    pub(crate) fn depart(self: &Arc<Self>, why: Departure) -> bool {
        let mut state = self.state.lock();
        self.end(&mut state, why)
    }

    /// Why it departed, if it did.
    pub(crate) fn departure(&self) -> Option<Departure> {
        self.state.lock().departure
    }

    /// True if events wait and the connection has taken nothing for longer than `hang_timeout`.
    pub(crate) fn hangs(&self, now_ns: u64) -> bool {
        let blocked_since_ns = self.state.lock().blocked_since_ns;
        blocked_since_ns
            .is_some_and(|since_ns| now_ns.saturating_sub(since_ns) > self.rules.hang_ns)
    }

    /// When the consumer last responded, if its connection is open and idle.
    pub(crate) fn idle_since_ns(&self) -> Option<u64> {
        let state = self.state.lock();
        let is_idle = state.phase == Phase::Open && state.send_state == SendState::Idle;
        is_idle.then_some(state.last_response_ns)
    }

    /// Notes that it responded.
    pub(crate) fn note_response(&self, now_ns: u64) {
        self.state.lock().last_response_ns = now_ns;
    }

    /// True if the keeper has to open its connection, for the first time or again.
    pub(crate) fn must_open(&self) -> bool {
        self.state.lock().phase == Phase::Opening
    }

    pub(crate) fn counts(&self) -> Counts {
        self.state.lock().counts()
    }

    pub(crate) fn statistics(&self) -> ConsumerStatistics {
        let state = self.state.lock();
        ConsumerStatistics {
            number: self.number(),
            lane: self.lane().priority().get(),
            connection: match (state.phase, state.blocked_since_ns) {
                (Phase::Opening, _) => ConnectionState::Opening,
                (Phase::Open, None) => ConnectionState::Open,
                (Phase::Open, Some(_)) => ConnectionState::Clogged,
                (Phase::Departed, _) => ConnectionState::Gone,
            },
            is_suspended: state.is_suspended,
            events: state.counts(),
            forgotten: state.forgotten(),
            timeouts_missed: state.timeouts_missed(),
            queued_octets: state.queue.bytes(),
        }
    }

    /// Queues the consumer, for which no thread sends, for a turn.
    fn start_turn(self: &Arc<Self>, mut state: Held<'_>) {
        state.send_state = SendState::Queued;
        drop(state);
        self.lane().enqueue(Arc::clone(self), 0);
        self.lane().wake();
    }

    fn enqueue_and_wake(self: &Arc<Self>, state: Held<'_>) {
        if self.enqueue(state) {
            self.lane().wake();
        }
    }

    fn end(self: &Arc<Self>, state: &mut Held<'_>, why: Departure) -> bool {
        if state.phase == Phase::Departed {
            return false;
        }
        state.phase = Phase::Departed;
        state.departure = Some(why);
        state.blocked_since_ns = None;
        let mut events = state.queue.clear();
        // A thread that sends counts its current message itself.
        if state.send_state != SendState::Sending {
            events += state.drop_current();
        }
        state.counts.discarded.gone += events;
        self.room.notify_all(&self.state);
        if state.send_state != SendState::Queued {
            // The turn removes its timer from the lane.
            self.lane().enqueue(Arc::clone(self), 0);
            self.lane().wake();
        }
        self.keeper.post(Arc::clone(self));
        true
    }
}

/// The state, under its lock.
type Held<'c> = MutexGuard<'c, ConsumerState>;

/// A configured time in nanoseconds. Its range bounds it.
fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

#[cfg(test)]
pub(crate) mod tests;
