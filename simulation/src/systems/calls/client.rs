//! The calls of clients.

use super::deferred::{DeferredCalls, WorkOperation};
use super::plan::{OWN_TIMEOUT, Plan};
use crate::random::Random;
use crate::systems::call_end::{CallEnd, ENOUGH, fail};
use crate::systems::worker::{Worker, reply_to};
use crate::world;
use rtorb::{Orb, SystemException};
use std::thread;
use std::time::Duration;

/// Calls of each thread at most.
const CALLS_MAX: u64 = 12;

/// What clients know of the servers.
#[derive(Clone, Debug)]
pub(super) struct Targets {
    pub(super) first: String,
    pub(super) second: Option<String>,
    pub(super) work: WorkOperation,
}

/// The calls of one thread.
pub(super) fn call(
    orb: &Orb,
    targets: &Targets,
    mut random: Random,
    first: u32,
    plan: Plan,
) -> Vec<CallEnd> {
    let worker: Worker = orb
        .string_to_reference(&targets.first)
        .expect("it is a reference");
    let mut deferring = DeferredCalls::new(orb, &targets.work, plan);
    let calls = 1 + random.below(CALLS_MAX);
    for call in (first..).take(calls as usize) {
        let timeout = random.choose(&[200, 2_000, 20_000, 200_000, 2_000_000]);
        let timeout = if plan.is_sound && !(plan.gives_up && random.one_in(2)) {
            ENOUGH
        } else {
            Duration::from_micros(timeout)
        };
        let size = random.choose(&[0, 10, 500, 5_000]);
        let body: Vec<u8> = (0..random.below(size + 1)).map(|n| n as u8).collect();
        let begun_ns = world::now_ns();
        let next = random
            .choose(&[targets.second.as_ref(), Some(&targets.first)])
            .filter(|next| plan.relays || **next != targets.first);
        let way = random.below(9);
        let outcome = match (way, next) {
            (0, _) => worker
                .with_timeout(timeout)
                .note(call, &body)
                .map(|()| None),
            (1 | 2, Some(next)) => relay(&worker, call, next, timeout, &body).map(Some),
            (3, _) if deferring.may_defer() => {
                let asleep_us = random.choose(&[0, 50, 1_000]);
                deferring.begin(&worker, call, asleep_us, timeout, &body);
                continue;
            }
            _ => {
                let worker = worker.with_timeout(timeout);
                let asleep_us = random.choose(&[0, 0, 50, 1_000, 50_000]);
                let busy_us = random.choose(&[0, 0, 20, 200]);
                worker.work(call, -1, asleep_us, busy_us, &body).map(Some)
            }
        };
        check_reply(call, outcome.as_ref().ok().and_then(Option::as_ref), &body);
        let outcome = outcome.map(drop);
        deferring
            .ended
            .push(CallEnd::new(call, way == 0, begun_ns, timeout, outcome));
        if random.one_in(3) {
            thread::sleep(Duration::from_nanos(random.below(3_000_000)));
        }
        if random.one_in(3) {
            deferring.finish(&mut random);
        }
    }
    deferring.finish(&mut random);
    deferring.ended
}

/// A nested call. Half of them have a deadline that the nested call inherits, and the others a timeout of which no server learns.
fn relay(
    worker: &Worker,
    call: u32,
    next: &str,
    timeout: Duration,
    body: &[u8],
) -> Result<Vec<u8>, SystemException> {
    if call.is_multiple_of(2) {
        return worker.with_timeout(timeout).relay(call, next, 0, body);
    }
    let until_ns = world::now_ns() + timeout.as_nanos() as u64;
    let object = worker.as_object().with_deadline(timeout);
    Worker::unchecked_narrow(object).relay(call, next, until_ns, body)
}

pub(super) fn check_reply(call: u32, reply: Option<&Vec<u8>>, body: &[u8]) {
    if reply.is_some_and(|reply| *reply != reply_to(call, body)) {
        fail(&format!("call {call} got the reply to another one"));
    }
}

/// A client reaches a server that has started again. Its first calls may find out that their connection has ended.
pub(super) fn reconnect(orb: &Orb, targets: &Targets, call: u32) -> Vec<CallEnd> {
    const ATTEMPTS: u32 = 10;
    let worker: Worker = orb
        .string_to_reference(&targets.first)
        .expect("it is a reference");
    let worker = worker.with_timeout(ENOUGH);
    let mut ended = Vec::new();
    for call in (call * ATTEMPTS..).take(ATTEMPTS as usize) {
        let begun_ns = world::now_ns();
        let outcome = worker.work(call, -1, 0, 0, &[]).map(drop);
        let is_done = outcome.is_ok();
        ended.push(CallEnd::new(call, false, begun_ns, ENOUGH, outcome));
        if is_done {
            return ended;
        }
        // Calls that were forgotten may occupy the server: fewer than the attempts, one after the other.
        thread::sleep(OWN_TIMEOUT);
    }
    fail(&format!(
        "a client does not reach the server that started again: {ended:?}"
    ))
}
