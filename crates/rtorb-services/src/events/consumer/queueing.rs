//! Which events a consumer gets, and what happens to events for which the queue has no room.

use super::state::{ConsumerState, Departure, Phase};
use super::{Consumer, Held, WaitForRoom, nanoseconds};
use crate::events::config::WhenFull;
use crate::events::event::{EncodedEvents, Incoming, Message};
use rtorb::cdr::CharCodeSet;
use std::borrow::Cow;
use std::sync::Arc;

impl Consumer {
    /// Runs the filter on an event and queues what it lets through.
    pub(super) fn filter<'c>(
        self: &'c Arc<Self>,
        mut state: Held<'c>,
        event: &Incoming<'_>,
        now_ns: u64,
    ) -> Held<'c> {
        let Some((text, bytes)) = in_one_code_set(event.message) else {
            state.counts.received += 1;
            state.counts.discarded.unsendable += 1;
            return state;
        };
        let ConsumerState {
            subscription,
            filter_output,
            has_seen_text,
            ..
        } = &mut *state;
        *has_seen_text |= text.is_some();
        let text_of_several = has_seen_text.then_some(CANONICAL);
        subscription.accept(&event.header, &bytes, now_ns, &mut |delivery| {
            let text = match delivery.len() {
                1 => text,
                _ => text_of_several,
            };
            filter_output.add(&delivery, text);
        });
        self.queue_filter_output(state, now_ns, WaitForRoom::AsConfigured)
    }

    /// Queues the events of timeouts that are due.
    pub(super) fn expire<'c>(self: &'c Arc<Self>, mut state: Held<'c>, now_ns: u64) -> Held<'c> {
        let ConsumerState {
            subscription,
            filter_output,
            has_seen_text,
            ..
        } = &mut *state;
        let text = has_seen_text.then_some(CANONICAL);
        subscription.expire(now_ns, &mut |delivery| filter_output.add(&delivery, text));
        self.queue_filter_output(state, now_ns, WaitForRoom::Never)
    }

    fn queue_filter_output<'c>(
        self: &'c Arc<Self>,
        mut state: Held<'c>,
        now_ns: u64,
        wait: WaitForRoom,
    ) -> Held<'c> {
        // Taken out of the state, because this may release the lock to wait for room.
        let mut output = core::mem::take(&mut state.filter_output);
        for message in output.messages() {
            state.counts.received += u64::from(message.form.events);
            state = self.queue(state, message, now_ns, wait);
        }
        output.clear();
        state.filter_output = output;
        state
    }

    /// Queues a message that is counted as received. If there is no room, it does what the configuration says.
    pub(super) fn queue<'c>(
        self: &'c Arc<Self>,
        mut state: Held<'c>,
        message: Message<'_>,
        now_ns: u64,
        wait: WaitForRoom,
    ) -> Held<'c> {
        let bytes = message.bytes.len();
        if !state.queue.has_room(bytes) && state.queue.could_have_room(bytes) {
            state = self.make_room(state, message, now_ns, wait);
        }
        let events = u64::from(message.form.events);
        let came_ns = state.turn_after_ns.map_or(0, |_| now_ns);
        if state.phase == Phase::Departed {
            state.counts.discarded.gone += events;
        } else if state.is_suspended {
            state.counts.discarded.suspended += events;
        } else if !state.queue.push(message, came_ns) {
            state.counts.discarded.full += events;
        }
        state
    }

    fn make_room<'c>(
        self: &'c Arc<Self>,
        mut state: Held<'c>,
        message: Message<'_>,
        now_ns: u64,
        wait: WaitForRoom,
    ) -> Held<'c> {
        let bytes = message.bytes.len();
        if !state.takes_events() {
            return state;
        }
        match (self.rules.when_full, wait) {
            (WhenFull::DiscardOldest, _) => {
                while !state.queue.has_room(bytes)
                    && let Some(oldest) = state.queue.discard_oldest()
                {
                    state.counts.discarded.full += u64::from(oldest.form.events);
                }
            }
            (WhenFull::DiscardNewest, _) | (WhenFull::Wait { .. }, WaitForRoom::Never) => {}
            (WhenFull::Disconnect, _) => {
                self.end(&mut state, Departure::Full);
            }
            (WhenFull::Wait { at_most }, WaitForRoom::AsConfigured) => {
                // From the time when the event came, so that full queues do not add up their waits.
                let deadline_ns = now_ns.saturating_add(nanoseconds(at_most));
                state.waiters += 1;
                state.waiters_events += u64::from(message.form.events);
                // Other consumers of the lane that have this event must not wait for this one.
                self.lane().wake();
                while state.takes_events() && !state.queue.has_room(bytes) {
                    if !self.room.wait_until(&mut state, deadline_ns) {
                        break;
                    }
                }
                state.waiters -= 1;
                state.waiters_events -= u64::from(message.form.events);
            }
        }
        state
    }
}

/// The bytes with their text in the code set in which a subscription remembers text; `None` if they cannot be converted.
fn in_one_code_set(message: Message<'_>) -> Option<(Option<CharCodeSet>, Cow<'_, [u8]>)> {
    let text = message.form.text;
    if text.is_none_or(|text| text == CANONICAL) {
        return Some((text, Cow::Borrowed(message.bytes)));
    }
    let events = message.values().ok()?;
    let bytes = EncodedEvents::of(&events, CANONICAL).ok()?;
    Some((Some(CANONICAL), Cow::Owned(bytes.message().bytes.to_vec())))
}

/// The code set of remembered text: it has all characters.
const CANONICAL: CharCodeSet = CharCodeSet::Utf8;
