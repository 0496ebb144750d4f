//! The state of a lane that may need help from other threads, or lend its own to a more urgent lane.

use super::waiting::WaitingThread;
use crate::dispatch::pool::config::PoolConfig;
use crate::realtime::Priority;
use core::cmp::Ordering;
use rtorb_os::loan_state::LoanState;
use rtorb_os::sched::SchedPolicy;

/// The state of a lane that may need help or lend threads.
#[derive(Debug)]
pub(crate) struct Standby {
    /// The lane can get help: a dynamic thread of its own or a thread of a lender.
    pub(crate) can_get_help: bool,
    /// The lanes that it lends threads to, the most urgent first.
    pub(crate) borrowers: Vec<usize>,
    /// The lanes that lend it threads, the least urgent first.
    pub(super) lenders: Vec<usize>,
    /// Its threads by number, if it lends them.
    waiting: Box<[WaitingThread]>,
    /// What it needs and lends.
    pub(crate) loans: LoanState,
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
        let can_get_help = own.dynamic_threads > 0 || !lenders.is_empty();
        let threads = if borrowers.is_empty() {
            0
        } else {
            own.static_threads.saturating_add(own.dynamic_threads)
        };
        (can_get_help || !borrowers.is_empty()).then(|| Self {
            can_get_help,
            borrowers,
            lenders,
            waiting: (0..threads).map(|_| WaitingThread::default()).collect(),
            loans: LoanState::new(),
        })
    }

    /// True if threads of other lanes may serve this one.
    pub(crate) fn borrows(&self) -> bool {
        !self.lenders.is_empty()
    }

    /// Counts the calling thread, number `place` of the lane, as idle; returns true if it is the first one.
    #[inline]
    pub(crate) fn begin_idle(&self, place: u32) -> bool {
        if let Some(waiting) = self.waiting.get(place as usize) {
            waiting.begin();
        }
        self.loans.begin_idle()
    }

    /// Ends the raising of the calling thread by others; returns true if it was raised.
    pub(crate) fn take_raised(&self, place: u32) -> bool {
        let waiting = self.waiting.get(place as usize);
        waiting.is_some_and(WaitingThread::end)
    }

    /// Lowers the raised threads that still wait, after another thread has responded to the call.
    pub(crate) fn lower_waiting(&self, own: Option<SchedPolicy>) {
        let Some(own) = own else {
            return;
        };
        for waiting in &self.waiting {
            waiting.lower(own, || self.loans.is_called());
        }
    }

    /// Raises all waiting threads, because any of them may respond to a call.
    pub(super) fn raise(&self, priority: Option<Priority>, policy: SchedPolicy) {
        for waiting in &self.waiting {
            waiting.raise(priority, policy);
        }
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
            assert_eq!(standby.can_get_help, number != 2);
        }
    }

    #[test]
    fn without_borrowing_only_dynamic_threads_help() {
        let lanes = [(20, 0), (40, 1)];
        assert!(standby(&lanes, 0, false).is_none());
        let standby = standby(&lanes, 1, false).expect("it has a dynamic thread");
        assert!(standby.can_get_help && !standby.borrows());
    }
}
