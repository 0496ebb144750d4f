//! A consumer of the channel (proxy push supplier): its queue, who sends for it, and what became of each of its events.
//!
//! One thread at a time sends for a consumer, so that its events keep their order: the thread that finds nobody attending to it
//! and may send in place, or its lane's. The lock is held to look and to note, never while something is sent.

mod keeping;
mod sending;
mod staged;
mod state;

use super::event::Incoming;
use super::filter::{Key, Subscription};
use super::keeper::Mailbox;
use super::lane::Lane;
use super::outlet::Outlet;
use super::statistics::{ConnectionState, ConsumerStatistics, Counts};
use super::{ChannelConfig, WhenFull};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex, MutexGuard};
use state::{Attention, Phase, State};
use std::sync::Arc;
use std::time::Duration;

pub(crate) use state::Departure;

/// A connected consumer.
#[derive(Debug)]
pub(crate) struct Consumer {
    place: Place,
    rules: Rules,
    outlet: Arc<dyn Outlet>,
    keeper: Arc<Mailbox>,
    connected_ns: u64,
    state: Mutex<State>,
    /// For suppliers' threads that wait for room in its queue.
    room: Condvar,
}

/// Where a consumer stands in the channel.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Its number, never given again.
    pub(crate) number: u64,
    /// Its slot, which is given again when nobody knows it any more.
    pub(crate) slot: usize,
    /// Its lane, whatever it subscribes to later: so its events have one way only, and keep their order.
    pub(crate) lane: Arc<Lane>,
}

/// What a consumer has asked for, and when its turns are therefore.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) subscription: Subscription,
    /// How long after an event came its turn is; `None` for order of arrival.
    pub(crate) turn_after_ns: Option<u64>,
}

/// What the configuration says of every consumer.
#[derive(Clone, Copy, Debug)]
struct Rules {
    when_full: WhenFull,
    turn_events: usize,
    retry_ns: u64,
    hang_ns: u64,
}

/// What a lane shall do after a consumer's turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    /// It stands for another turn, which is then.
    pub(crate) stands_again: Option<u64>,
    /// It shall be looked at then.
    pub(crate) look_at_ns: Option<u64>,
}

/// Whether a thread that has an event may send it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dispatch {
    InPlace,
    /// Unless the consumer's turns go by time: the lane's own thread.
    InTurn,
    ByLane,
}

/// Whether a thread that has an event may wait for room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    /// As the configuration says: a supplier's thread.
    AsConfigured,
    /// Not at all: the lane's own, for which nobody would make room.
    None,
}

impl Consumer {
    /// One whose connection is still to be opened, by the keeper.
    pub(crate) fn new(
        place: Place,
        service: Service,
        outlet: Arc<dyn Outlet>,
        (keeper, config): (Arc<Mailbox>, &ChannelConfig),
    ) -> Self {
        let now_ns = monotonic_ns();
        Self {
            place,
            connected_ns: now_ns,
            rules: Rules {
                when_full: config.when_full,
                turn_events: config.turn_events,
                retry_ns: nanoseconds(config.retry),
                hang_ns: nanoseconds(config.hang_timeout),
            },
            outlet,
            keeper,
            state: Mutex::new(State::new(service, config, now_ns)),
            room: Condvar::new(),
        }
    }

    /// The number that it alone has among the consumers of now.
    pub(crate) fn slot(&self) -> usize {
        self.place.slot
    }

    /// The number that no other one has or will have.
    pub(crate) fn number(&self) -> u64 {
        self.place.number
    }

    pub(crate) fn lane(&self) -> &Arc<Lane> {
        &self.place.lane
    }

    /// Since when it is there.
    pub(crate) fn connected_ns(&self) -> u64 {
        self.connected_ns
    }

    pub(crate) fn outlet(&self) -> &Arc<dyn Outlet> {
        &self.outlet
    }

    /// Takes an event that its keys match; true if its lane has to be rung.
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
            if state.may_be_late && !state.subscription.wants(Key::of(&event.header)) {
                return false;
            }
            state.counts.received += 1;
            if dispatch == Dispatch::InPlace && state.is_free() {
                let job = state.begin_with(event.message.form);
                drop(state);
                return self.send_in_place(job, Some(event.message));
            }
            state = self.keep(state, event.message, (now_ns, Patience::AsConfigured));
        }
        self.have_sent(state, dispatch)
    }

    /// Does what is due: timeouts, what waits, what the connection kept. The lane's thread calls it.
    pub(crate) fn turn(self: &Arc<Self>, now_ns: u64) -> Turn {
        let mut state = self.state.lock();
        if state.phase == Phase::Gone {
            return Turn::default();
        }
        let expires = state.subscription.next_timeout_ns();
        if expires.is_some_and(|at_ns| at_ns <= now_ns) {
            state = self.expire(state, now_ns);
        }
        let mut turn = Turn::default();
        // Whoever sends looks for more before it ends.
        if state.attention != Attention::Sending
            && let Some(job) = state.begin()
        {
            drop(state);
            turn = self.send(job, None);
            state = self.state.lock();
        }
        let timeout_ns = state.subscription.next_timeout_ns();
        turn.look_at_ns = turn.look_at_ns.into_iter().chain(timeout_ns).min();
        turn
    }

    /// Lets it be served by another subscription from now on; what waits stays. False if it has departed.
    ///
    /// The lookup table is still the former one: an event that only the former subscription asked for comes to nothing until
    /// [`caught_up`](Self::caught_up).
    pub(crate) fn resubscribe(self: &Arc<Self>, service: Service) -> bool {
        let mut state = self.state.lock();
        if state.phase == Phase::Gone {
            return false;
        }
        state.serve(service.subscription, service.turn_after_ns);
        state.may_be_late = true;
        drop(state);
        // A turn for the new timeouts.
        self.lane().add(Arc::clone(self), 0);
        self.lane().ring();
        true
    }

    /// Says that nobody reads the lookup table of a former subscription any more.
    pub(crate) fn caught_up(&self) {
        self.state.lock().may_be_late = false;
    }

    /// Makes it known to its lane, which looks after its timeouts.
    pub(crate) fn start(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.attention = Attention::Standing;
        drop(state);
        self.lane().add(Arc::clone(self), 0);
        self.lane().ring();
    }

    /// Says that its connection is open: what waits may go.
    pub(crate) fn opened(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if state.phase == Phase::Opening {
            state.phase = Phase::Open;
            state.heard_ns = monotonic_ns();
            self.stand_and_ring(state);
        }
    }

    /// Lets nothing through until [`resume`](Self::resume); what waits stays.
    pub(crate) fn suspend(&self) {
        let mut state = self.state.lock();
        state.is_suspended = true;
        state.blocked_since_ns = None;
        // Who waits for room shall see it.
        self.room.notify_all(&self.state);
    }

    /// Ends a [`suspend`](Self::suspend).
    pub(crate) fn resume(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.is_suspended = false;
        self.stand_and_ring(state);
    }

    /// Ends it, if it is not ended yet: what waits is discarded. The keeper does the rest; true for who ended it.
    pub(crate) fn depart(self: &Arc<Self>, why: Departure) -> bool {
        let mut state = self.state.lock();
        self.end(&mut state, why)
    }

    /// How it departed, if it did.
    pub(crate) fn departure(&self) -> Option<Departure> {
        self.state.lock().departure
    }

    /// True if it has taken nothing for too long while something waits for it.
    pub(crate) fn hangs(&self, now_ns: u64) -> bool {
        let blocked_since_ns = self.state.lock().blocked_since_ns;
        blocked_since_ns
            .is_some_and(|since_ns| now_ns.saturating_sub(since_ns) > self.rules.hang_ns)
    }

    /// When something was last heard of it, if its connection is open and nothing is going on there.
    pub(crate) fn idle_since_ns(&self) -> Option<u64> {
        let state = self.state.lock();
        (state.phase == Phase::Open && state.attention == Attention::Nobody)
            .then_some(state.heard_ns)
    }

    /// Notes that it answered.
    pub(crate) fn was_heard(&self, now_ns: u64) {
        self.state.lock().heard_ns = now_ns;
    }

    /// True if it has to be opened, for the first time or again.
    pub(crate) fn is_to_be_opened(&self) -> bool {
        self.state.lock().phase == Phase::Opening
    }

    pub(crate) fn counts(&self) -> Counts {
        self.state.lock().counts()
    }

    pub(crate) fn statistics(&self) -> ConsumerStatistics {
        let state = self.state.lock();
        ConsumerStatistics {
            number: self.place.number,
            lane: self.lane().priority().get(),
            connection: match (state.phase, state.blocked_since_ns) {
                (Phase::Opening, _) => ConnectionState::Opening,
                (Phase::Open, None) => ConnectionState::Open,
                (Phase::Open, Some(_)) => ConnectionState::Clogged,
                (Phase::Gone, _) => ConnectionState::Gone,
            },
            is_suspended: state.is_suspended,
            events: state.counts(),
            forgotten: state.forgotten(),
            timeouts_missed: state.timeouts_missed(),
            queued_octets: state.queue.octets(),
        }
    }

    fn stand_and_ring(self: &Arc<Self>, state: Held<'_>) {
        if self.stand(state) {
            self.lane().ring();
        }
    }

    fn end(self: &Arc<Self>, state: &mut Held<'_>, why: Departure) -> bool {
        if state.phase == Phase::Gone {
            return false;
        }
        state.phase = Phase::Gone;
        state.departure = Some(why);
        state.blocked_since_ns = None;
        let mut events = state.queue.clear();
        // Whoever sends knows what becomes of what it has in hand.
        if state.attention != Attention::Sending {
            events += state.let_go();
        }
        state.counts.discarded.gone += events;
        self.room.notify_all(&self.state);
        if state.attention != Attention::Standing {
            // The lane's agenda must not keep it.
            self.lane().add(Arc::clone(self), 0);
            self.lane().ring();
        }
        self.keeper.call(Arc::clone(self));
        true
    }
}

/// The state, by who holds its lock.
type Held<'c> = MutexGuard<'c, State>;

/// For times that a configuration bounds.
fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

#[cfg(test)]
pub(crate) mod tests;
