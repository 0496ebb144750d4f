//! How what waits for a consumer goes out: by one thread at a time, as much as the connection takes and the turn lasts.

use super::state::{Attention, InHand, Job, Phase, Work};
use super::{Consumer, Departure, Dispatch, Held, Turn};
use crate::events::event::Message;
use crate::events::outlet::{NotSent, Progress};
use rtorb_os::clock::{coarse_monotonic_ns, monotonic_ns};
use std::sync::Arc;

/// How a thread's sending goes on.
enum Next {
    More,
    /// The connection takes no more.
    Clogged,
    /// It is no more.
    Stop,
}

impl Consumer {
    /// Has what waits sent: in place, or by the lane, which is to be rung if the answer is true.
    pub(super) fn have_sent(self: &Arc<Self>, mut state: Held<'_>, dispatch: Dispatch) -> bool {
        if !state.may_send() || state.attention != Attention::Nobody || !state.has_something() {
            return false;
        }
        match dispatch {
            Dispatch::InPlace | Dispatch::InTurn => {
                let job = state.begin();
                drop(state);
                job.is_some_and(|job| self.send_in_place(job, None))
            }
            Dispatch::ByLane => self.stand(state),
        }
    }

    /// Lets it stand for its turn if it does not and something waits; true if the lane is to be rung.
    pub(super) fn stand(self: &Arc<Self>, mut state: Held<'_>) -> bool {
        if !state.may_send() || state.attention != Attention::Nobody || !state.has_something() {
            return false;
        }
        state.attention = Attention::Standing;
        let turn_ns = self.turn_ns(&state);
        drop(state);
        self.lane().add(Arc::clone(self), turn_ns);
        true
    }

    /// Sends on a supplier's thread; what that leaves undone is its lane's, which is to be rung if the answer is true.
    pub(super) fn send_in_place(self: &Arc<Self>, job: Job, fresh: Option<Message<'_>>) -> bool {
        let turn = self.send(job, fresh);
        // What is clogged gets its appointment by the lane too: only its thread knows the agenda.
        let Some(turn_ns) = turn.stands_again.or(turn.look_at_ns.map(|_| 0)) else {
            return false;
        };
        self.lane().add(Arc::clone(self), turn_ns);
        true
    }

    /// Does a job and what comes after it; `fresh` is its message if that was never queued.
    ///
    /// Called without the lock by the one thread that sends.
    pub(super) fn send(self: &Arc<Self>, job: Job, mut fresh: Option<Message<'_>>) -> Turn {
        let Job {
            mut work,
            mut outgoing,
        } = job;
        for _ in 0..self.rules.turn_events {
            let outcome = match work {
                Work::Flush => self.outlet.flush().map_err(|_| NotSent::BrokenMeanwhile),
                Work::Push(form) => {
                    let octets = fresh.map_or(&outgoing[..], |message| message.octets);
                    self.outlet.push(Message { form, octets })
                }
            };
            let mut state = self.state.lock();
            let next = self.settle(&mut state, outcome);
            if let Some(message) = fresh.take()
                && let InHand::Whole(_) = state.in_hand
            {
                outgoing.clear();
                outgoing.extend_from_slice(message.octets);
            }
            if state.waiters > 0 {
                self.room.notify_all(&self.state);
            }
            let more = match next {
                Next::More => state.next_work(&mut outgoing),
                Next::Clogged => return self.leave_clogged(state, outgoing),
                Next::Stop => None,
            };
            match more {
                Some(more) => work = more,
                None => {
                    state.leave(Attention::Nobody, outgoing);
                    return Turn::default();
                }
            }
        }
        let mut state = self.state.lock();
        state.leave(Attention::Standing, outgoing);
        Turn {
            stands_again: Some(self.turn_ns(&state)),
            look_at_ns: None,
        }
    }

    /// Notes what became of the message in hand.
    fn settle(self: &Arc<Self>, state: &mut Held<'_>, outcome: Result<Progress, NotSent>) -> Next {
        let next = match outcome {
            Ok(Progress::Whole) => {
                state.note_delivered(coarse_monotonic_ns());
                Next::More
            }
            Ok(Progress::Partly) => {
                if let InHand::Whole(form) = state.in_hand {
                    state.in_hand = InHand::Rest(form);
                }
                Next::Clogged
            }
            Err(NotSent::Busy) => Next::Clogged,
            Err(NotSent::Unsendable) => {
                let events = state.let_go();
                state.counts.discarded.unsendable += events;
                Next::More
            }
            Err(NotSent::Broken) => {
                self.reopen(state);
                Next::Stop
            }
            Err(NotSent::BrokenMeanwhile) => {
                let events = state.let_go();
                state.counts.discarded.broken += events;
                self.reopen(state);
                Next::Stop
            }
        };
        if state.phase == Phase::Gone {
            let events = state.let_go();
            state.counts.discarded.gone += events;
            return Next::Stop;
        }
        next
    }

    fn leave_clogged(&self, mut state: Held<'_>, outgoing: Vec<u8>) -> Turn {
        let now_ns = monotonic_ns();
        if !state.is_suspended {
            state.blocked_since_ns.get_or_insert(now_ns);
        }
        state.leave(Attention::Clogged, outgoing);
        Turn {
            stands_again: None,
            look_at_ns: Some(now_ns + self.rules.retry_ns),
        }
    }

    /// Has its connection opened again, unless that breaks all the time.
    fn reopen(self: &Arc<Self>, state: &mut Held<'_>) {
        if state.phase != Phase::Open {
            return;
        }
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(state.breaks_since_ns) > self.rules.hang_ns {
            state.breaks = 0;
            state.breaks_since_ns = now_ns;
        }
        state.breaks += 1;
        if state.breaks > BREAKS_MAX {
            self.end(state, Departure::Dead);
            return;
        }
        state.phase = Phase::Opening;
        state.blocked_since_ns = None;
        self.keeper.call(Arc::clone(self));
    }

    /// When its turn is, among others of its lane.
    fn turn_ns(&self, state: &super::State) -> u64 {
        let Some(after_ns) = state.turn_after_ns else {
            return 0;
        };
        let oldest = state.queue.oldest();
        oldest.map_or(0, |oldest| oldest.came_ns.saturating_add(after_ns))
    }
}

/// Connections that may break within the time for hanging: whoever closes each new one wants none.
const BREAKS_MAX: u32 = 3;
