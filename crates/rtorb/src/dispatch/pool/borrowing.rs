//! Help for a lane whose threads are all busy: a dynamic thread of its own, or a thread that a less urgent lane lends.
//!
//! `standby` is the state of a lane that may need help or lend threads; its transitions are those of
//! [`LoanState`](rtorb_os::loan_state::LoanState), which has models. `relief` watches lanes whose threads are all busy. The relief
//! thread (`relieving`) starts dynamic threads and calls lenders. `waiting` raises a thread before it is called.
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

mod relief;
mod relieving;
mod standby;
mod waiting;

pub(super) use relief::Relief;
pub(super) use relieving::run;
pub(super) use standby::Standby;

use super::lane::Lane;
use super::running::Pool;

impl Pool {
    /// Has the relief thread watch a lane while all its threads are busy, if the lane can get help.
    pub(super) fn watch_while_busy(&self, lane: &Lane) {
        // The thread that fills a queue asks for help itself.
        if let (Some((relief, standby)), None) = (self.relief_of(lane), lane.queue()) {
            relief.watch_while_busy(lane, standby);
        }
    }

    /// Asks for help for a lane with more queued requests than threads.
    pub(super) fn ask_for_help(&self, lane: &Lane) {
        if let Some((relief, standby)) = self.relief_of(lane) {
            relief.ask(standby);
        }
    }

    /// Finds help again for lanes that called a thread of this lane, when that thread woke for something else.
    pub(super) fn repeat_calls(&self, lane: &Lane) {
        let borrowers = lane.standby.iter().flat_map(|standby| &standby.borrowers);
        borrowers
            .map(|&number| &self.lanes[number])
            .filter(|borrower| borrower.wants_help())
            .for_each(|borrower| self.find_help(borrower));
    }

    /// Finds help for a lane that lost a thread.
    pub(super) fn find_help(&self, lane: &Lane) {
        if lane.lacks_thread() {
            self.ask_for_help(lane)
        } else {
            self.watch_while_busy(lane)
        }
    }

    /// The relief of the pool and the state of the lane, if the lane can get help.
    fn relief_of<'p>(&'p self, lane: &'p Lane) -> Option<(&'p Relief, &'p Standby)> {
        let standby = lane.standby.as_ref().filter(|standby| standby.is_relieved);
        self.relief.as_ref().zip(standby)
    }
}
