//! What is known of a consumer under its lock.

use crate::events::ChannelConfig;
use crate::events::event::Form;
use crate::events::filter::Subscription;
use crate::events::queue::EventQueue;
use crate::events::statistics::Counts;

use super::Service;
use super::staged::Staged;

#[derive(Debug)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) attention: Attention,
    pub(super) is_suspended: bool,
    pub(super) subscription: Subscription,
    /// True if its subscription is more than the lookup of its keys.
    pub(super) is_filtered: bool,
    /// True while an event may come that only a former subscription asked for.
    pub(super) may_be_late: bool,
    /// How long after an event came its turn is; `None` for order of arrival.
    pub(super) turn_after_ns: Option<u64>,
    /// What former subscriptions have forgotten and missed.
    before: (u64, u64),
    /// What its subscription let through just now; memory that is reused.
    pub(super) staged: Staged,
    /// True once its subscription has seen text, which it may remember.
    pub(super) has_seen_text: bool,
    pub(super) queue: EventQueue,
    pub(super) in_hand: InHand,
    /// The octets of what is in hand, when they came out of the queue; with whoever sends meanwhile.
    pub(super) outgoing: Vec<u8>,
    /// Suppliers' threads that wait for room.
    pub(super) waiters: u32,
    /// The events that they wait with.
    pub(super) at_the_door: u64,
    /// Since when its connection takes nothing; none while it does, or nothing is there to be taken.
    pub(super) blocked_since_ns: Option<u64>,
    /// When its connection took something last, or it answered.
    pub(super) heard_ns: u64,
    /// How often its connection broke since `breaks_since_ns`.
    pub(super) breaks: u32,
    pub(super) breaks_since_ns: u64,
    pub(super) departure: Option<Departure>,
    /// Without what waits, which the queue knows.
    pub(super) counts: Counts,
}

/// How far the consumer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The keeper opens its connection; what comes waits.
    Opening,
    Open,
    /// It is disconnected or dropped.
    Gone,
}

/// Who does something for the consumer. While something waits and the connection is open, somebody does, or it is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attention {
    /// Nobody: nothing waits that could go.
    Nobody,
    /// It stands in its lane for its turn.
    Standing,
    /// A thread sends for it, and looks for more before it ends.
    Sending,
    /// Its connection takes no more; its lane looks at it again soon.
    Clogged,
}

/// A message that is out of the queue, or never was in it, and is not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InHand {
    Nothing,
    /// Nothing of it is sent, as far as is known; with whoever sends, or in `outgoing`.
    Whole(Form),
    /// A part of it is sent; the connection has the rest.
    Rest(Form),
}

/// What a thread that sends takes with it, since it does without the lock.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) work: Work,
    pub(super) outgoing: Vec<u8>,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Work {
    /// Sending what the connection kept.
    Flush,
    /// Sending the message in hand.
    Push(Form),
}

/// Why a consumer is connected no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// It disconnected, or the channel ended.
    Disconnected,
    /// It is not there, or its connection cannot be opened.
    Dead,
    /// It took nothing for too long.
    Hung,
    /// Its queue was full, and that is what was chosen for that.
    Full,
}

impl State {
    pub(super) fn new(service: Service, config: &ChannelConfig, now_ns: u64) -> Self {
        Self {
            phase: Phase::Opening,
            attention: Attention::Nobody,
            is_suspended: false,
            is_filtered: !service.subscription.is_plain(),
            subscription: service.subscription,
            may_be_late: false,
            turn_after_ns: service.turn_after_ns,
            before: (0, 0),
            staged: Staged::default(),
            has_seen_text: false,
            queue: EventQueue::new(config.queue_events, config.queue_octets),
            in_hand: InHand::Nothing,
            outgoing: Vec::with_capacity(config.event_octets_max.min(OUTGOING_OCTETS)),
            waiters: 0,
            at_the_door: 0,
            blocked_since_ns: None,
            heard_ns: now_ns,
            breaks: 0,
            breaks_since_ns: 0,
            departure: None,
            counts: Counts::default(),
        }
    }

    /// Takes another subscription in the place of the one that it has.
    pub(super) fn serve(&mut self, subscription: Subscription, turn_after_ns: Option<u64>) {
        self.before = (self.forgotten(), self.timeouts_missed());
        self.is_filtered = !subscription.is_plain();
        self.subscription = subscription;
        self.turn_after_ns = turn_after_ns;
    }

    /// Events that its conjunctions had no room for, whichever subscription they were of.
    pub(super) fn forgotten(&self) -> u64 {
        self.before.0 + self.subscription.forgotten()
    }

    /// Moments of its timeouts that went by unseen, whichever subscription they were of.
    pub(super) fn timeouts_missed(&self) -> u64 {
        self.before.1 + self.subscription.timeouts_missed()
    }

    /// True if an event may go at once: nothing waits, nobody sends.
    pub(super) fn is_free(&self) -> bool {
        self.may_send()
            && self.attention == Attention::Nobody
            && self.in_hand == InHand::Nothing
            && self.queue.is_empty()
    }

    /// True if its connection may be given something.
    pub(super) fn may_send(&self) -> bool {
        self.phase == Phase::Open && !self.is_suspended
    }

    /// True if events are accepted for it at all.
    pub(super) fn takes_events(&self) -> bool {
        self.phase != Phase::Gone && !self.is_suspended
    }

    /// True if there is something to be sent.
    pub(super) fn has_something(&self) -> bool {
        self.in_hand != InHand::Nothing || !self.queue.is_empty()
    }

    /// Makes the calling thread the one that sends, if there is something to be sent.
    pub(super) fn begin(&mut self) -> Option<Job> {
        let mut outgoing = core::mem::take(&mut self.outgoing);
        match self.next_work(&mut outgoing) {
            Some(work) => {
                self.attention = Attention::Sending;
                Some(Job { work, outgoing })
            }
            None => {
                self.leave(Attention::Nobody, outgoing);
                None
            }
        }
    }

    /// As [`begin`](Self::begin), with a message that was never queued.
    pub(super) fn begin_with(&mut self, form: Form) -> Job {
        self.attention = Attention::Sending;
        self.in_hand = InHand::Whole(form);
        Job {
            work: Work::Push(form),
            outgoing: core::mem::take(&mut self.outgoing),
        }
    }

    /// What the thread that sends shall do now; what it shall push is in `outgoing` then.
    pub(super) fn next_work(&mut self, outgoing: &mut Vec<u8>) -> Option<Work> {
        if !self.may_send() {
            return None;
        }
        match self.in_hand {
            InHand::Rest(_) => Some(Work::Flush),
            InHand::Whole(form) => Some(Work::Push(form)),
            InHand::Nothing => {
                let form = self.queue.pop(outgoing)?.form;
                self.in_hand = InHand::Whole(form);
                Some(Work::Push(form))
            }
        }
    }

    /// Ends the sending of the thread that did.
    pub(super) fn leave(&mut self, attention: Attention, outgoing: Vec<u8>) {
        self.attention = attention;
        self.outgoing = outgoing;
    }

    /// What the message in hand was is delivered.
    pub(super) fn note_delivered(&mut self, now_ns: u64) {
        self.counts.delivered += self.let_go();
        self.blocked_since_ns = None;
        self.heard_ns = now_ns;
    }

    /// How many events were in hand; they are no more.
    pub(super) fn let_go(&mut self) -> u64 {
        let events = self.in_hand.events();
        self.in_hand = InHand::Nothing;
        events
    }

    /// All counts, what waits included.
    pub(super) fn counts(&self) -> Counts {
        Counts {
            waiting: self.queue.events() + self.in_hand.events() + self.at_the_door,
            ..self.counts
        }
    }
}

impl InHand {
    fn events(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Whole(form) | Self::Rest(form) => u64::from(form.events),
        }
    }
}

/// Reserved for the event that is being sent; a larger one makes it grow once, to at most `event_octets_max`.
const OUTGOING_OCTETS: usize = 4096;
