//! The relief thread: it starts a dynamic thread for a lane whose threads are all busy, or calls a thread of a less urgent lane.

use super::relief::Relief;
use crate::dispatch::pool::lane::Lane;
use crate::dispatch::pool::running::Pool;
use rtorb_os::thread::JoinHandle;

/// A thread that was started.
type Started = JoinHandle<Option<()>>;

/// Helps lanes until the pool is stopped. `start` starts a dynamic thread of a lane; `None` if the lane has all its threads.
pub(crate) fn run(pool: &Pool, relief: &Relief, start: impl Fn(&Lane) -> Option<Started>) {
    let mut dynamic: Vec<Started> = Vec::new();
    while !pool.is_stopping() {
        let ready = relief.next().and_then(|number| pool.lanes.get(number));
        let asking = pool.lanes.iter().filter(|lane| lane.end_asking());
        for lane in ready.into_iter().chain(asking) {
            dynamic.retain(|thread| !thread.is_finished());
            relieve(pool, lane, &start, &mut dynamic);
        }
    }
    for lane in &pool.lanes {
        pool.leave(lane);
    }
    for thread in dynamic {
        // A panic was reported when it happened.
        let _ = thread.join();
    }
}

/// Gives a lane dynamic threads while it needs them and may have more, then a thread of another lane.
fn relieve(
    pool: &Pool,
    lane: &Lane,
    start: &impl Fn(&Lane) -> Option<Started>,
    dynamic: &mut Vec<Started>,
) {
    let has_queue = lane.queue().is_some();
    while !has_queue || lane.lacks_thread() {
        match start(lane) {
            Some(thread) => dynamic.push(thread),
            None => return borrow(pool, lane),
        }
        // Several requests may have been queued since the lane asked. Without a queue, the new thread itself asks again.
        if !has_queue {
            return;
        }
    }
}

/// Calls an idle thread of the least urgent lane that has one. If none is idle, the first that finishes its work helps.
//= RT-CORBA 1.2 §Threadpools
//# A lane without idle threads may borrow a thread of a lane of lower priority, which runs at its priority meanwhile.
fn borrow(pool: &Pool, lane: &Lane) {
    let Some(standby) = lane.standby.as_ref().filter(|standby| standby.borrows()) else {
        return;
    };
    // It wants a thread before the search: one that becomes idle meanwhile is either found here or sees that.
    standby.loans.want();
    let mut lenders = standby.lenders.iter().map(|&number| &pool.lanes[number]);
    let idle = lenders.find(|lender| lender.standby.as_ref().is_some_and(|it| it.loans.call()));
    if let Some(lender) = idle {
        raise(lender, lane);
        lender.call();
    }
}

/// Makes the waiting threads of a lender as urgent as the lane that one of them is called to.
fn raise(lender: &Lane, lane: &Lane) {
    // Without a policy, the host has refused the scheduling of the lane.
    if let (Some(own), Some(policy)) = (lender.threads.policy, lane.threads.policy)
        && own != policy
        && let Some(standby) = &lender.standby
    {
        standby.raise(lane.priority, policy);
    }
}
