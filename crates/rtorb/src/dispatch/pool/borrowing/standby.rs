//! The state of a lane that may need help from other threads, or lend its own to a more urgent lane.

use super::waiting::WaitingThread;
use crate::dispatch::pool::config::PoolConfig;
use crate::realtime::Priority;
use core::cmp::Ordering;
use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::{AtomicBool, AtomicU32};
use rtorb_os::sched::SchedPolicy;

/// The state of a lane that may need help or lend threads.
#[derive(Debug)]
pub(crate) struct Standby {
    /// The lane can get help: a dynamic thread of its own or a thread of a lender.
    pub(crate) is_relieved: bool,
    /// The lanes that it lends threads to, the most urgent first.
    pub(crate) borrowers: Vec<usize>,
    /// The lanes that lend it threads, the least urgent first.
    pub(super) lenders: Vec<usize>,
    /// The number of its threads that wait.
    idle: AtomicU32,
    /// Its threads by number, if it lends them.
    waiting: Box<[WaitingThread]>,
    /// The number of its threads that serve other lanes.
    lent: AtomicU32,
    /// A thread was called for another lane, and none has responded yet.
    called: AtomicBool,
    /// The lane wants one more thread.
    wanting: AtomicBool,
    /// The lane has asked the relief thread for help.
    asking: AtomicBool,
}

impl Standby {
    /// The state of lane `number`; `None` if it can neither get help nor lend threads.
    pub(crate) fn of(config: &PoolConfig, number: usize) -> Option<Self> {
        let own = &config.lanes[number];
        let in_order = |order: Ordering| {
            let mut lanes: Vec<_> = (0..config.lanes.len())
                .filter(|&other| config.lanes[other].priority.cmp(&own.priority) == order)
                .filter(|_| config.allow_borrowing)
                .collect();
            lanes.sort_by_key(|&other| config.lanes[other].priority);
            lanes
        };
        let (lenders, mut borrowers) = (in_order(Ordering::Less), in_order(Ordering::Greater));
        borrowers.reverse();
        let is_relieved = own.dynamic_threads > 0 || !lenders.is_empty();
        let threads = if borrowers.is_empty() {
            0
        } else {
            own.static_threads.saturating_add(own.dynamic_threads)
        };
        (is_relieved || !borrowers.is_empty()).then(|| Self {
            is_relieved,
            borrowers,
            lenders,
            idle: AtomicU32::new(0),
            waiting: (0..threads).map(|_| WaitingThread::default()).collect(),
            lent: AtomicU32::new(0),
            called: AtomicBool::new(false),
            wanting: AtomicBool::new(false),
            asking: AtomicBool::new(false),
        })
    }

    /// True if threads of other lanes may serve this one.
    pub(crate) fn borrows(&self) -> bool {
        !self.lenders.is_empty()
    }

    pub(super) fn has_idle(&self) -> bool {
        self.idle.load(SeqCst) > 0
    }

    /// Notes that the calling thread, number `place` of the lane, begins to wait; true if it is the first one.
    pub(crate) fn begin_idle(&self, place: u32) -> bool {
        if let Some(waiting) = self.waiting.get(place as usize) {
            waiting.begin();
        }
        self.idle.fetch_add(1, SeqCst) == 0
    }

    /// Notes that the calling thread stops waiting; true if it was the last one.
    pub(crate) fn end_idle(&self) -> bool {
        self.idle.fetch_sub(1, SeqCst) == 1
    }

    /// Counts one more thread that serves another lane.
    pub(crate) fn lend(&self) {
        self.lent.fetch_add(1, SeqCst);
    }

    /// Counts a thread that has returned from another lane.
    pub(crate) fn take_back(&self) {
        self.lent.fetch_sub(1, SeqCst);
    }

    pub(crate) fn lent(&self) -> u32 {
        self.lent.load(SeqCst)
    }

    /// Ends the raising of the calling thread by others; true if it was raised.
    pub(crate) fn take_raised(&self, place: u32) -> bool {
        let waiting = self.waiting.get(place as usize);
        waiting.is_some_and(WaitingThread::end)
    }

    /// Notes that a called thread has responded, so that the next call raises threads again.
    pub(crate) fn clear_call(&self) {
        self.called.swap(false, SeqCst);
    }

    /// Lowers the raised threads that still wait, after another thread has responded to the call.
    pub(crate) fn lower_waiting(&self, own: Option<SchedPolicy>) {
        let Some(own) = own else {
            return;
        };
        for waiting in &self.waiting {
            waiting.lower(own, || self.called.load(SeqCst));
        }
    }

    /// Raises all waiting threads, because any of them may respond.
    pub(super) fn raise(&self, priority: Option<Priority>, policy: SchedPolicy) {
        self.called.store(true, SeqCst);
        for waiting in &self.waiting {
            waiting.raise(priority, policy);
        }
    }

    /// Notes that the lane wants one more thread.
    pub(super) fn want_help(&self) {
        self.wanting.store(true, SeqCst);
    }

    /// Notes that the lane has a thread again, and wants none.
    pub(super) fn give_up_help(&self) {
        self.wanting.store(false, SeqCst);
    }

    /// Notes that the lane asks the relief thread for help; false if it asks already.
    pub(super) fn begin_asking(&self) -> bool {
        !self.asking.swap(true, SeqCst)
    }

    /// Ends asking the relief thread for help; returns true if the lane asked.
    pub(crate) fn end_asking(&self) -> bool {
        self.asking.swap(false, SeqCst)
    }

    pub(crate) fn wants_help(&self) -> bool {
        self.wanting.load(SeqCst)
    }

    /// Claims the help that the lane wants; true for one thread only.
    pub(crate) fn claim_help(&self) -> bool {
        self.wants_help() && self.wanting.swap(false, SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::pool::{Intake, LaneConfig};
    use crate::realtime::ThreadpoolId;

    fn standby(lanes: &[(i16, u32)], number: usize, allow_borrowing: bool) -> Option<Standby> {
        let lanes = lanes.iter().map(|&(priority, dynamic_threads)| LaneConfig {
            name: String::new(),
            priority: Priority::new(priority).ok(),
            static_threads: 1,
            dynamic_threads,
            order: crate::strategies::RequestOrder::Fifo,
            reservation: None,
            threads: rtorb_os::thread::ThreadConfig::default(),
        });
        let config = PoolConfig {
            id: ThreadpoolId::OWN,
            lanes: lanes.collect(),
            has_lanes: true,
            allow_borrowing,
            intake: Intake::Direct,
        };
        Standby::of(&config, number)
    }

    #[test]
    fn a_lane_borrows_of_the_least_urgent_first_and_lends_to_the_most_urgent_first() {
        let lanes = [(20, 0), (40, 0), (10, 0), (30, 0)];
        let expected = [
            (vec![2], vec![1, 3]),
            (vec![2, 0, 3], vec![]),
            (vec![], vec![1, 3, 0]),
            (vec![2, 0], vec![1]),
        ];
        for (number, (lenders, borrowers)) in expected.into_iter().enumerate() {
            let standby = standby(&lanes, number, true).expect("it needs or gives help");
            assert_eq!(
                (&standby.lenders, &standby.borrowers),
                (&lenders, &borrowers)
            );
            assert_eq!(standby.is_relieved, number != 2);
        }
    }

    #[test]
    fn without_borrowing_only_dynamic_threads_help() {
        let lanes = [(20, 0), (40, 1)];
        assert!(standby(&lanes, 0, false).is_none());
        let standby = standby(&lanes, 1, false).expect("it has a dynamic thread");
        assert!(standby.is_relieved && !standby.borrows());
    }
}
