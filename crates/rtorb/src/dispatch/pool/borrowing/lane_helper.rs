//! The helper thread: it starts a dynamic thread for a lane whose threads are all busy, or calls a thread of a less urgent lane.
//!
//! When the last thread of a lane becomes busy, it has the pool's helper thread watch the lane. The helper thread wakes when a
//! request waits there. This costs one system call when the last thread becomes busy and one when the first is idle again: two
//! a request in a lane of one thread. Lanes that can get no help pay nothing.

use super::standby::Standby;
use crate::dispatch::pool::lane::Lane;
use crate::dispatch::pool::running::Pool;
use crate::poller::{Polled, Poller, Token};
use core::mem::MaybeUninit;
use rtorb_os::thread::JoinHandle;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

/// What the helper thread waits for.
#[derive(Debug)]
pub(crate) struct LaneHelper {
    /// Reports the event loops of the lanes that can get help, each only while all its threads are busy. The bell is rung when a
    /// lane asks for help, and when the pool stops.
    poller: Poller,
}

impl LaneHelper {
    /// For these lanes; `None` when none of them may get help.
    pub(crate) fn of(lanes: &[Lane]) -> Result<Option<Self>, Errno> {
        let helped = || lanes.iter().filter(|lane| lane.can_get_help());
        if helped().next().is_none() {
            return Ok(None);
        }
        let poller = Poller::new()?;
        for lane in helped() {
            poller.add(&lane.events, token_of(lane), EventFlags::empty())?;
        }
        Ok(Some(Self { poller }))
    }

    /// Watches a lane while, and only while, all its threads are busy. A thread calls this when it changes that.
    pub(super) fn watch_while_busy(&self, lane: &Lane, standby: &Standby) {
        standby.loans.report_idle(|has_idle| {
            let interest = if has_idle {
                EventFlags::empty()
            } else {
                EventFlags::IN | EventFlags::ONESHOT
            };
            // It cannot fail: the lane was added.
            let _ = self.poller.change(&lane.events, token_of(lane), interest);
        });
    }

    /// Asks the helper thread to help a lane.
    pub(super) fn ask(&self, standby: &Standby) {
        if standby.loans.ask() {
            self.ring();
        }
    }

    /// Wakes the helper thread.
    pub(crate) fn ring(&self) {
        #[cfg(simulation)]
        if rtorb_os::simulation::is_planted("helper-unrung") {
            return;
        }
        self.poller.ring();
    }

    /// Waits for a lane that needs help; `None` when the bell was rung.
    pub(super) fn next(&self) -> Option<usize> {
        let mut room = [MaybeUninit::uninit()];
        let event = self.poller.wait(&mut room, None).first()?;
        match Polled::of(event) {
            Polled::Numbered(number) => Some(number as usize),
            _ => None,
        }
    }
}

/// A thread that was started.
type Started = JoinHandle<Option<()>>;

/// Helps lanes until the pool is stopped. `start` starts a dynamic thread of a lane; `None` if the lane has all its threads.
pub(crate) fn run(pool: &Pool, helper: &LaneHelper, start: impl Fn(&Lane) -> Option<Started>) {
    let mut dynamic: Vec<Started> = Vec::new();
    while !pool.is_stopping() {
        let ready = helper.next().and_then(|number| pool.lanes.get(number));
        let asking = pool.lanes.iter().filter(|lane| lane.end_asking());
        for lane in ready.into_iter().chain(asking) {
            dynamic.retain(|thread| !thread.is_finished());
            help(pool, lane, &start, &mut dynamic);
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
fn help(
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

fn token_of(lane: &Lane) -> Token {
    Token::number(lane.number as u32)
}
