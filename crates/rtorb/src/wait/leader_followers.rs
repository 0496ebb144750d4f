//! Waiting in a group: one of the waiting threads, the leader, reads for all of them.
//!
//! It hands each follower its reply and wakes that one alone; when it has its own, or no more time, it makes another the
//! leader (the Leader/Followers pattern). No thread stands between the socket and the one whose reply comes, as long
//! as only one waits.

use super::waiter::{Over, Waiter, Woken};
use crate::connection::shared::{Give, Lead, Shared};

/// Waits until the answer to a request is with `waiter`; false if `deadline_ns` passed first.
pub(crate) fn await_answer(
    shared: &Shared,
    waiter: &Waiter,
    request_id: u32,
    deadline_ns: Option<u64>,
) -> bool {
    match shared.take_lead(request_id) {
        Lead::Taken => return lead(shared, waiter, request_id, deadline_ns),
        Lead::AnotherHasIt => {}
        // Whoever took the request out of the list is about to answer it.
        Lead::NotNeeded => {
            waiter.await_certain_answer();
            return true;
        }
    }
    match waiter.wait(deadline_ns) {
        Woken::Answered => true,
        Woken::Leading => lead(shared, waiter, request_id, deadline_ns),
        Woken::Late => match shared.give_up(request_id) {
            // It was made the leader at the last moment: another has to be.
            Give::Up if waiter.is_leading() => {
                shared.hand_lead_on();
                false
            }
            Give::Up => false,
            Give::NotYet => {
                waiter.await_certain_answer();
                true
            }
        },
    }
}

/// Reads for all who wait until this thread has its answer or no more time.
fn lead(shared: &Shared, waiter: &Waiter, request_id: u32, deadline_ns: Option<u64>) -> bool {
    let is_answered = read_until(shared, waiter, deadline_ns);
    if !is_answered {
        shared.give_up(request_id);
    }
    shared.hand_lead_on();
    is_answered || waiter.is_answered()
}

fn read_until(shared: &Shared, waiter: &Waiter, deadline_ns: Option<u64>) -> bool {
    let mut incoming = shared.incoming();
    loop {
        match incoming.hand_out(shared) {
            Ok(()) if waiter.is_answered() => return true,
            Ok(()) => {}
            Err(over) => {
                shared.end(over);
                return true;
            }
        }
        match shared.stream().await_readable(deadline_ns) {
            Ok(true) => {}
            Ok(false) => return false,
            Err(errno) => {
                shared.end(Over::Failed(errno));
                return true;
            }
        }
        if let Err(over) = incoming.receive(shared) {
            shared.end(over);
            return true;
        }
    }
}
