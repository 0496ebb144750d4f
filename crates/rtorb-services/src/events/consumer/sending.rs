//! Sending for a consumer: one thread at a time sends as much as the connection takes and the turn allows.

use super::state::{
    ConsumerState, CurrentMessage, Departure, Phase, SendAction, SendJob, SendState,
};
use super::{Consumer, Dispatch, Held, TurnResult};
use crate::events::connection::{NotSent, SendProgress};
use crate::events::event::Message;
use rtorb_os::clock::{coarse_monotonic_ns, monotonic_ns};
use std::sync::Arc;

/// What a thread that sends does next.
enum SendStep {
    Continue,
    /// The connection takes no more.
    Block,
    /// The connection is broken, or the consumer has departed.
    Stop,
}

impl Consumer {
    /// Sends what waits in place, or has the lane send it. Returns true if the caller must wake the lane.
    pub(super) fn start_sending(self: &Arc<Self>, mut state: Held<'_>, dispatch: Dispatch) -> bool {
        if dispatch == Dispatch::ByLane {
            return self.enqueue(state);
        }
        if !needs_sender(&state) {
            return false;
        }
        let job = state.begin();
        drop(state);
        job.is_some_and(|job| self.send_in_place(job, None))
    }

    /// Queues the consumer for a turn if messages wait and no thread attends to them. Returns true if the caller must wake the lane.
    pub(super) fn enqueue(self: &Arc<Self>, mut state: Held<'_>) -> bool {
        if !needs_sender(&state) {
            return false;
        }
        state.send_state = SendState::Queued;
        let turn_ns = self.turn_ns(&state);
        drop(state);
        self.lane().enqueue(Arc::clone(self), turn_ns);
        true
    }

    /// Sends on a supplier's thread and leaves the rest to the lane. Returns true if the caller must wake the lane.
    pub(super) fn send_in_place(
        self: &Arc<Self>,
        job: SendJob,
        unqueued: Option<Message<'_>>,
    ) -> bool {
        let result = self.send(job, unqueued);
        // Only the lane's thread can set the timer of a blocked consumer.
        let turn_ns = result.next_turn_ns.or(result.check_at_ns.map(|_| 0));
        let Some(turn_ns) = turn_ns else {
            return false;
        };
        self.lane().enqueue(Arc::clone(self), turn_ns);
        true
    }

    /// Does a job and those that follow. `unqueued` is the message of the job if it was never queued.
    ///
    /// The one thread that sends calls it, without the lock.
    pub(super) fn send(
        self: &Arc<Self>,
        job: SendJob,
        mut unqueued: Option<Message<'_>>,
    ) -> TurnResult {
        let SendJob {
            mut action,
            mut outgoing,
        } = job;
        for _ in 0..self.rules.turn_events {
            let sent = match action {
                SendAction::Flush => {
                    let flushed = self.connection.flush();
                    flushed.map_err(|_| NotSent::BrokenMeanwhile)
                }
                SendAction::Push(form) => {
                    let bytes = unqueued.map_or(&outgoing[..], |message| message.bytes);
                    self.connection.push(Message { form, bytes })
                }
            };
            let mut state = self.state.lock();
            let next = self.note_sent(&mut state, sent);
            if let Some(message) = unqueued.take()
                && let CurrentMessage::Unsent(_) = state.current
            {
                outgoing.clear();
                outgoing.extend_from_slice(message.bytes);
            }
            if state.waiters > 0 {
                self.room.notify_all(&self.state);
            }
            let next_action = match next {
                SendStep::Continue => state.next_action(&mut outgoing),
                SendStep::Block => return self.block(state, outgoing),
                SendStep::Stop => None,
            };
            let Some(next_action) = next_action else {
                return self.rest(state, outgoing);
            };
            action = next_action;
        }
        let mut state = self.state.lock();
        state.stop_sending(SendState::Queued, outgoing);
        TurnResult {
            next_turn_ns: Some(self.turn_ns(&state)),
            check_at_ns: None,
        }
    }

    /// Notes the fate of the current message.
    fn note_sent(
        self: &Arc<Self>,
        state: &mut Held<'_>,
        sent: Result<SendProgress, NotSent>,
    ) -> SendStep {
        let next = match sent {
            Ok(SendProgress::Whole) => {
                state.note_delivered(coarse_monotonic_ns());
                SendStep::Continue
            }
            Ok(SendProgress::Partly) => {
                if let CurrentMessage::Unsent(form) = state.current {
                    state.current = CurrentMessage::PartlySent(form);
                }
                SendStep::Block
            }
            Err(NotSent::Busy) => SendStep::Block,
            Err(NotSent::Unsendable) => {
                let events = state.drop_current();
                state.counts.discarded.unsendable += events;
                SendStep::Continue
            }
            Err(NotSent::Broken) => {
                self.reopen(state);
                SendStep::Stop
            }
            Err(NotSent::BrokenMeanwhile) => {
                let events = state.drop_current();
                state.counts.discarded.broken += events;
                self.reopen(state);
                SendStep::Stop
            }
        };
        if state.phase == Phase::Departed {
            let events = state.drop_current();
            state.counts.discarded.gone += events;
            return SendStep::Stop;
        }
        next
    }

    /// Ends the sending, with another turn if the consumer needs one for its timer.
    fn rest(&self, mut state: Held<'_>, outgoing: Vec<u8>) -> TurnResult {
        if core::mem::take(&mut state.needs_turn) && state.phase != Phase::Departed {
            state.stop_sending(SendState::Queued, outgoing);
            return TurnResult {
                next_turn_ns: Some(0),
                check_at_ns: None,
            };
        }
        state.stop_sending(SendState::Idle, outgoing);
        TurnResult::default()
    }

    fn block(&self, mut state: Held<'_>, outgoing: Vec<u8>) -> TurnResult {
        let now_ns = monotonic_ns();
        if !state.is_suspended {
            state.blocked_since_ns.get_or_insert(now_ns);
        }
        state.stop_sending(SendState::Blocked, outgoing);
        TurnResult {
            next_turn_ns: None,
            check_at_ns: Some(now_ns + self.rules.retry_ns),
        }
    }

    /// Asks the keeper to open the connection again, or ends the consumer if its connection breaks too often.
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
        self.keeper.post(Arc::clone(self));
    }

    /// The time of its turn among the consumers of its lane.
    fn turn_ns(&self, state: &ConsumerState) -> u64 {
        let Some(after_ns) = state.turn_after_ns else {
            return 0;
        };
        let oldest = state.queue.oldest();
        oldest.map_or(0, |oldest| oldest.came_ns.saturating_add(after_ns))
    }
}

/// True if messages wait that could be sent and no thread or timer attends to them.
fn needs_sender(state: &ConsumerState) -> bool {
    state.may_send() && state.send_state == SendState::Idle && state.has_messages()
}

/// Breaks of the connection within `hang_timeout`. A consumer that closes each new connection wants no events.
const BREAKS_MAX: u32 = 3;
