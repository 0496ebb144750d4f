//! Which events a consumer gets, and what becomes of those for which there is no room.

use super::state::{Phase, State};
use super::{Consumer, Departure, Held, Patience, WhenFull, nanoseconds};
use crate::events::event::{Incoming, Message, Octets};
use rtorb::cdr::CharCodeSet;
use rtorb_os::clock::monotonic_ns;
use std::borrow::Cow;
use std::sync::Arc;

impl Consumer {
    /// Shows an event to a subscription that is more than its keys, and queues what that lets through.
    pub(super) fn filter<'c>(
        self: &'c Arc<Self>,
        mut state: Held<'c>,
        event: &Incoming<'_>,
        now_ns: u64,
    ) -> Held<'c> {
        let Some((text, octets)) = in_one_code_set(event.message) else {
            state.counts.received += 1;
            state.counts.discarded.unsendable += 1;
            return state;
        };
        let State {
            subscription,
            staged,
            has_seen_text,
            ..
        } = &mut *state;
        *has_seen_text |= text.is_some();
        let text_of_several = has_seen_text.then_some(CANONICAL);
        subscription.accept(&event.header, &octets, now_ns, &mut |delivery| {
            let text = match delivery.len() {
                1 => text,
                _ => text_of_several,
            };
            staged.add(&delivery, text);
        });
        self.keep_staged(state, (now_ns, Patience::AsConfigured))
    }

    /// Queues the events of timeouts that are due.
    pub(super) fn expire<'c>(self: &'c Arc<Self>, mut state: Held<'c>, now_ns: u64) -> Held<'c> {
        let State {
            subscription,
            staged,
            has_seen_text,
            ..
        } = &mut *state;
        let text = has_seen_text.then_some(CANONICAL);
        subscription.expire(now_ns, &mut |delivery| staged.add(&delivery, text));
        self.keep_staged(state, (now_ns, Patience::None))
    }

    fn keep_staged<'c>(
        self: &'c Arc<Self>,
        mut state: Held<'c>,
        when: (u64, Patience),
    ) -> Held<'c> {
        // Out of the state, since the lock is given back while this waits for room.
        let mut staged = core::mem::take(&mut state.staged);
        for message in staged.messages() {
            state.counts.received += u64::from(message.form.events);
            state = self.keep(state, message, when);
        }
        staged.clear();
        state.staged = staged;
        state
    }

    /// Queues a message that was counted as received, or discards it, or others, as was chosen.
    pub(super) fn keep<'c>(
        self: &'c Arc<Self>,
        mut state: Held<'c>,
        message: Message<'_>,
        (now_ns, patience): (u64, Patience),
    ) -> Held<'c> {
        let octets = message.octets.len();
        if !state.queue.has_room(octets) && state.queue.could_have_room(octets) {
            state = self.make_room(state, message, patience);
        }
        let events = u64::from(message.form.events);
        let came_ns = state.turn_after_ns.map_or(0, |_| now_ns);
        if state.phase == Phase::Gone {
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
        patience: Patience,
    ) -> Held<'c> {
        let octets = message.octets.len();
        if !state.takes_events() {
            return state;
        }
        match (self.rules.when_full, patience) {
            (WhenFull::DiscardOldest, _) => {
                while !state.queue.has_room(octets)
                    && let Some(oldest) = state.queue.discard_oldest()
                {
                    state.counts.discarded.full += u64::from(oldest.form.events);
                }
            }
            (WhenFull::DiscardNewest, _) | (WhenFull::Wait { .. }, Patience::None) => {}
            (WhenFull::Disconnect, _) => {
                self.end(&mut state, Departure::Full);
            }
            (WhenFull::Wait { at_most }, Patience::AsConfigured) => {
                let deadline_ns = monotonic_ns().saturating_add(nanoseconds(at_most));
                state.waiters += 1;
                state.at_the_door += u64::from(message.form.events);
                // Others of the lane that have this event are not to wait for it too.
                self.lane().ring();
                while state.takes_events() && !state.queue.has_room(octets) {
                    if !self.room.wait_until(&mut state, deadline_ns) {
                        break;
                    }
                }
                state.waiters -= 1;
                state.at_the_door -= u64::from(message.form.events);
            }
        }
        state
    }
}

/// The octets with their text in the one code set in which a subscription remembers them; none if they cannot be.
fn in_one_code_set(message: Message<'_>) -> Option<(Option<CharCodeSet>, Cow<'_, [u8]>)> {
    let text = message.form.text;
    if text.is_none_or(|text| text == CANONICAL) {
        return Some((text, Cow::Borrowed(message.octets)));
    }
    let events = message.values().ok()?;
    let octets = Octets::of(&events, CANONICAL).ok()?;
    Some((
        Some(CANONICAL),
        Cow::Owned(octets.message().octets.to_vec()),
    ))
}

/// What has all characters.
const CANONICAL: CharCodeSet = CharCodeSet::Utf8;
