//! Help for a lane whose threads are all busy: a dynamic thread of its own, or a thread that a less urgent lane lends.
//!
//! `standby` is the state of a lane that may need help or lend threads; its transitions are those of
//! [`LoanState`](rtorb_os::loan_state::LoanState), which has models. The thread of `lane_helper`
//! watches lanes whose threads are all busy, starts dynamic threads and calls lenders. `waiting` raises a thread before it is called.
//!
//! # A lane that needs help
//!
//! ```text
//!           all threads are busy, and a        no dynamic thread is left:
//!           request waits; or it asks          a lender is called
//! Content -----------------------------> Asking -----------------------> Wanting
//!    ^                                     |                                |
//!    |         a dynamic thread starts     |                                |
//!    +-------------------------------------+                                |
//!    +----------------------------------------------------------------------+
//!              a lender's thread claims the help, or an own thread is idle
//! ```
//!
//! Only a lane with a queue asks; a watched lane gets a thread or is wanting at once. An own thread that is idle ends wanting only in
//! a lane without a queue. While a lane is wanting, it may ask once more: for a further request.
//!
//! # A thread of a lane that lends
//!
//! ```text
//!          begin_idle                  raise               wakes by the call
//! Serving ------------> Waiting ---------------> Raised ---------------------> Helping
//!    ^                   |  ^                    |  |                             |
//!    |     own request   |  |   lower_waiting:   |  | own request: it takes its   |
//!    +-------------------+  |   another thread   |  | own scheduling, and repeats |
//!    |                      +---- responded -----+  | the call                    |
//!    +----------------------------------------------+-----------------------------+
//!                                                        no lane wants help any more
//! ```
//!
//! A thread that ends its work while a lane wants help goes from Serving to Helping without a call, and a waiting thread that need
//! not be raised, or may not, from Waiting to Helping. A call wakes any thread of the lender, so all waiting ones are raised, and
//! those that were not needed are lowered again.

mod lane_helper;
mod standby;
mod waiting;

pub(super) use lane_helper::{LaneHelper, run};
pub(crate) use standby::Standby;

use super::lane::Lane;
use super::running::Pool;

impl Pool {
    /// Has the helper thread watch a lane while all its threads are busy, if the lane can get help.
    pub(crate) fn watch_while_busy(&self, lane: &Lane) {
        // The thread that fills a queue asks for help itself.
        if let (Some((helper, standby)), None) = (self.helper_of(lane), lane.queue()) {
            helper.watch_while_busy(lane, standby);
        }
    }

    /// Asks for help for a lane with more queued requests than threads.
    pub(crate) fn ask_for_help(&self, lane: &Lane) {
        if let Some((helper, standby)) = self.helper_of(lane) {
            helper.ask(standby);
        }
    }

    /// Finds help again for lanes that called a thread of this lane, when that thread woke for something else.
    pub(crate) fn repeat_calls(&self, lane: &Lane) {
        let borrowers = lane.standby.iter().flat_map(|standby| &standby.borrowers);
        borrowers
            .map(|&number| &self.lanes[number])
            .filter(|borrower| borrower.wants_help())
            .for_each(|borrower| self.find_help(borrower));
    }

    /// Finds help for the requests that wait in a lane after a thread of another lane took one.
    pub(crate) fn find_help_for_rest(&self, lane: &Lane) {
        if lane.queue().is_some_and(|queue| !queue.is_empty()) {
            self.ask_for_help(lane)
        } else {
            self.watch_while_busy(lane)
        }
    }

    /// Finds help for a lane that lost a thread.
    pub(crate) fn find_help(&self, lane: &Lane) {
        if lane.lacks_thread() {
            self.ask_for_help(lane)
        } else {
            self.watch_while_busy(lane)
        }
    }

    /// The helper of the pool and the state of the lane, if the lane can get help.
    fn helper_of<'p>(&'p self, lane: &'p Lane) -> Option<(&'p LaneHelper, &'p Standby)> {
        let standby = lane.standby.as_ref().filter(|standby| standby.can_get_help);
        self.helper.as_ref().zip(standby)
    }
}

impl Lane {
    /// True if threads other than its static ones may serve it.
    pub(crate) fn can_get_help(&self) -> bool {
        self.standby
            .as_ref()
            .is_some_and(|standby| standby.can_get_help)
    }

    /// True if it has more queued and running requests than threads that serve no other lane.
    pub(crate) fn lacks_thread(&self) -> bool {
        // A thread that adds a request or removes a thread does so before it checks: of two at once, one sees both changes.
        let lent = self.standby.as_ref().map_or(0, |it| it.loans.lent());
        let threads = self.thread_count().saturating_sub(lent);
        self.queue()
            .is_some_and(|queue| queue.room.accepted() > threads)
    }

    /// True if the lane wants a thread of another lane.
    pub(crate) fn wants_help(&self) -> bool {
        self.standby.as_ref().is_some_and(|it| it.loans.wants())
    }

    /// Ends asking the helper thread for help; returns true if the lane asked.
    pub(crate) fn end_asking(&self) -> bool {
        self.standby.as_ref().is_some_and(|it| it.loans.answer())
    }

    /// Wakes one of its idle threads to help another lane.
    pub(crate) fn call(&self) {
        match self.queue() {
            None => self.events.call_for_help(),
            Some(queue) => queue.call(),
        }
    }
}
