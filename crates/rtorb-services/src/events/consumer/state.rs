//! The state of a consumer, which its lock guards.

use super::filter_output::FilterOutput;
use crate::events::config::ChannelConfig;
use crate::events::event::Form;
use crate::events::filter::Subscription;
use crate::events::queue::EventQueue;
use crate::events::statistics::Counts;

/// A subscription and the order of turns that follows from its urgency.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) subscription: Subscription,
    /// The time from an event's arrival to the consumer's turn; `None` for order of arrival.
    pub(crate) turn_after_ns: Option<u64>,
}

#[derive(Debug)]
pub(super) struct ConsumerState {
    pub(super) phase: Phase,
    pub(super) send_state: SendState,
    /// True if a subscription has come since a thread began to send: the lane does not know its timeouts.
    pub(super) needs_turn: bool,
    pub(super) is_suspended: bool,
    pub(super) subscription: Subscription,
    /// True if the subscription needs more than the lookup of its keys.
    pub(super) is_filtered: bool,
    /// True while the lookup table may bring events that only a former subscription wanted.
    pub(super) may_be_stale: bool,
    /// The turn of the subscription, as in [`Service`].
    pub(super) turn_after_ns: Option<u64>,
    former: FormerCounts,
    /// The output of the filter. Its memory is reused.
    pub(super) filter_output: FilterOutput,
    /// True once the subscription has seen text, which it may remember.
    pub(super) has_seen_text: bool,
    pub(super) queue: EventQueue,
    pub(super) current: CurrentMessage,
    /// The bytes of the current message if it came from the queue. A thread that sends takes them with it.
    pub(super) outgoing: Vec<u8>,
    /// Suppliers' threads that wait for room.
    pub(super) waiters: u32,
    /// The events of these threads.
    pub(super) waiters_events: u64,
    /// When the connection began to take nothing; `None` while it takes events or none wait.
    pub(super) blocked_since_ns: Option<u64>,
    /// When the connection last took an event or the consumer last answered a ping.
    pub(super) last_response_ns: u64,
    /// How often the connection broke since `breaks_since_ns`.
    pub(super) breaks: u32,
    pub(super) breaks_since_ns: u64,
    pub(super) departure: Option<Departure>,
    /// Without the waiting events, which [`State::counts`] adds.
    pub(super) counts: Counts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The keeper opens the connection; events wait.
    Opening,
    Open,
    /// The consumer disconnected or was dropped.
    Departed,
}

/// Who sends for the consumer. While events wait and the connection is open, it is not idle, unless it is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendState {
    /// No event waits that could be sent.
    Idle,
    /// The lane's ready queue has it.
    Queued,
    /// A thread sends for it, and looks for more before it ends.
    Sending,
    /// The connection takes no more; the lane has a timer to try again.
    Blocked,
}

/// The message that goes next: it is not in the queue and not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CurrentMessage {
    None,
    /// Nothing of it is sent, as far as is known. Its bytes are in `outgoing` or with the thread that sends.
    Unsent(Form),
    /// A part of it is sent; the connection has the rest.
    PartlySent(Form),
}

/// What a thread takes with it to send without the lock.
#[derive(Debug)]
pub(super) struct SendJob {
    pub(super) action: SendAction,
    pub(super) outgoing: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum SendAction {
    /// Send the rest that the connection has.
    Flush,
    /// Send the current message.
    Push(Form),
}

/// Why a consumer departed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// The consumer disconnected, or the channel ended.
    Disconnected,
    /// The consumer does not exist, or its connection cannot be opened.
    Dead,
    /// The consumer took nothing for too long.
    Hung,
    /// Its queue was full and [`WhenFull::Disconnect`](crate::events::WhenFull::Disconnect) was chosen.
    Full,
}

/// The counts of former subscriptions.
#[derive(Clone, Copy, Debug, Default)]
struct FormerCounts {
    forgotten: u64,
    timeouts_missed: u64,
}

impl ConsumerState {
    pub(super) fn new(service: Service, config: &ChannelConfig, now_ns: u64) -> Self {
        Self {
            phase: Phase::Opening,
            send_state: SendState::Idle,
            needs_turn: false,
            is_suspended: false,
            is_filtered: !service.subscription.is_plain(),
            subscription: service.subscription,
            may_be_stale: false,
            turn_after_ns: service.turn_after_ns,
            former: FormerCounts::default(),
            filter_output: FilterOutput::default(),
            has_seen_text: false,
            queue: EventQueue::new(config.queue_events, config.queue_bytes),
            current: CurrentMessage::None,
            outgoing: Vec::with_capacity(config.event_bytes_max.min(OUTGOING_BYTES)),
            waiters: 0,
            waiters_events: 0,
            blocked_since_ns: None,
            last_response_ns: now_ns,
            breaks: 0,
            breaks_since_ns: 0,
            departure: None,
            counts: Counts::default(),
        }
    }

    /// Replaces the subscription.
    pub(super) fn serve(&mut self, service: Service) {
        self.former = FormerCounts {
            forgotten: self.forgotten(),
            timeouts_missed: self.timeouts_missed(),
        };
        self.is_filtered = !service.subscription.is_plain();
        self.subscription = service.subscription;
        self.turn_after_ns = service.turn_after_ns;
    }

    /// Events that conjunctions had no room for, in all subscriptions so far.
    pub(super) fn forgotten(&self) -> u64 {
        self.former.forgotten + self.subscription.forgotten()
    }

    /// Timeouts that were missed, in all subscriptions so far.
    pub(super) fn timeouts_missed(&self) -> u64 {
        self.former.timeouts_missed + self.subscription.timeouts_missed()
    }

    /// True if an event may be sent at once: none waits and no thread sends.
    pub(super) fn is_free(&self) -> bool {
        self.may_send() && self.send_state == SendState::Idle && !self.has_messages()
    }

    pub(super) fn may_send(&self) -> bool {
        self.phase == Phase::Open && !self.is_suspended
    }

    /// True if the consumer does not discard every event.
    pub(super) fn takes_events(&self) -> bool {
        self.phase != Phase::Departed && !self.is_suspended
    }

    /// True if a message waits or is partly sent.
    pub(super) fn has_messages(&self) -> bool {
        self.current != CurrentMessage::None || !self.queue.is_empty()
    }

    /// Makes the calling thread the one that sends, if there is a message.
    pub(super) fn begin(&mut self) -> Option<SendJob> {
        let mut outgoing = core::mem::take(&mut self.outgoing);
        let Some(action) = self.next_action(&mut outgoing) else {
            self.stop_sending(SendState::Idle, outgoing);
            return None;
        };
        self.send_state = SendState::Sending;
        Some(SendJob { action, outgoing })
    }

    /// Makes the calling thread the one that sends a message that was never queued.
    pub(super) fn begin_with(&mut self, form: Form) -> SendJob {
        self.send_state = SendState::Sending;
        self.current = CurrentMessage::Unsent(form);
        SendJob {
            action: SendAction::Push(form),
            outgoing: core::mem::take(&mut self.outgoing),
        }
    }

    /// The next action of the thread that sends. It moves the bytes of a queued message to `outgoing`.
    pub(super) fn next_action(&mut self, outgoing: &mut Vec<u8>) -> Option<SendAction> {
        if !self.may_send() {
            return None;
        }
        match self.current {
            CurrentMessage::PartlySent(_) => Some(SendAction::Flush),
            CurrentMessage::Unsent(form) => Some(SendAction::Push(form)),
            CurrentMessage::None => {
                let form = self.queue.pop(outgoing)?.form;
                self.current = CurrentMessage::Unsent(form);
                Some(SendAction::Push(form))
            }
        }
    }

    /// Notes that the thread that sent has stopped, and returns its buffer.
    pub(super) fn stop_sending(&mut self, send_state: SendState, outgoing: Vec<u8>) {
        self.send_state = send_state;
        self.outgoing = outgoing;
    }

    /// Notes that the current message is delivered.
    pub(super) fn note_delivered(&mut self, now_ns: u64) {
        self.counts.delivered += self.drop_current();
        self.blocked_since_ns = None;
        self.last_response_ns = now_ns;
    }

    /// Removes the current message and returns the number of its events.
    pub(super) fn drop_current(&mut self) -> u64 {
        let events = self.current.events();
        self.current = CurrentMessage::None;
        events
    }

    /// All counts, with the waiting events.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            waiting: self.queue.events() + self.current.events() + self.waiters_events,
            ..self.counts
        }
    }
}

impl CurrentMessage {
    fn events(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Unsent(form) | Self::PartlySent(form) => u64::from(form.events),
        }
    }
}

/// Reserved for the event that is being sent. A larger event makes the buffer grow once, to `event_bytes_max` at most.
const OUTGOING_BYTES: usize = 4096;
