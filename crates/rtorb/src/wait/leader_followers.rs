//! Waiting in a group: one of the waiting threads, the leader, reads for all of them.
//!
//! The leader delivers each follower's reply and wakes only that follower. When it has its own reply, or its deadline has passed,
//! it makes another thread the leader (the Leader/Followers pattern). A thread that waits alone reads its own reply.

use super::waiter::{Waiter, WakeReason};
use super::{Lead, Receipt, ReplySource};
use crate::clock::monotonic_ns;

/// Waits until the reply to a request is delivered to `waiter`. Returns false if `deadline_ns` passes first.
pub(crate) fn await_reply(
    source: &dyn ReplySource,
    waiter: &Waiter,
    request_id: u32,
    deadline_ns: Option<u64>,
) -> bool {
    match source.take_lead(request_id) {
        Lead::Taken => return lead(source, waiter, request_id, deadline_ns),
        Lead::Occupied => {}
        Lead::NotNeeded => {
            waiter.await_delivery();
            return true;
        }
    }
    match waiter.wait(deadline_ns) {
        WakeReason::Replied => true,
        WakeReason::Leading => lead(source, waiter, request_id, deadline_ns),
        WakeReason::Late => {
            let is_given_up = source.give_up(request_id);
            if !is_given_up {
                waiter.await_delivery();
            }
            if waiter.is_leading() {
                // It was made the leader at the last moment: another has to be.
                source.pass_lead();
            }
            !is_given_up
        }
    }
}

/// Waits until a started call has ended, until `until_ns` at the latest. Returns false if it has not: the call goes on without the
/// calling thread.
pub(crate) fn await_started(
    source: &dyn ReplySource,
    waiter: &Waiter,
    request_id: u32,
    until_ns: Option<u64>,
) -> bool {
    let leads = match source.take_lead(request_id) {
        Lead::Taken => true,
        Lead::Occupied => match waiter.wait(until_ns) {
            WakeReason::Replied => return true,
            WakeReason::Leading => true,
            WakeReason::Late => false,
        },
        Lead::NotNeeded => {
            waiter.await_delivery();
            return true;
        }
    };
    if leads && !read_until(source, waiter, until_ns) {
        // What has arrived by then, so that a loop of waits that do not wait ends too.
        source.receive();
    }
    // First, so that this thread does not get the lead back.
    source.step_back(request_id);
    if leads || waiter.is_leading() {
        waiter.end_lead();
        source.pass_lead();
    }
    waiter.has_reply()
}

/// Reads for all waiting threads until this thread has its reply or its deadline has passed.
fn lead(
    source: &dyn ReplySource,
    waiter: &Waiter,
    request_id: u32,
    deadline_ns: Option<u64>,
) -> bool {
    let has_reply = read_until(source, waiter, deadline_ns);
    if !has_reply {
        source.give_up(request_id);
    }
    source.pass_lead();
    has_reply || waiter.has_reply()
}

/// Reads until this thread has its reply, or the connection has ended. Returns false if the deadline passes first.
///
/// A leader delivers all whole replies in the receive buffer before it stops. So the next leader begins by waiting.
fn read_until(source: &dyn ReplySource, waiter: &Waiter, deadline_ns: Option<u64>) -> bool {
    let mut has_read = false;
    while !waiter.has_reply() {
        // A peer that sends without end must not hold the thread: with bytes there, a stream need not look at the time.
        if has_read && deadline_ns.is_some_and(|at_ns| at_ns <= monotonic_ns()) {
            return false;
        }
        match source.stream().await_readable(waiter.look_by(deadline_ns)) {
            Ok(true) => {}
            // It only looks whether it is cancelled.
            Ok(false) if deadline_ns.is_some_and(|at_ns| monotonic_ns() < at_ns) => {}
            Ok(false) => return false,
            Err(errno) => {
                source.fail(errno);
                return true;
            }
        }
        if source.receive() == Receipt::End {
            return true;
        }
        has_read = true;
    }
    true
}
