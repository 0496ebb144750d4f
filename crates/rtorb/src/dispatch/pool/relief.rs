//! Help for a lane whose threads are all busy: a dynamic thread, or a thread of a less urgent lane.
//!
//! When the last thread of a lane becomes busy, it has the pool's relief thread watch the lane. The relief thread wakes when a
//! request waits there. This costs one system call when the last thread becomes busy and one when the first is idle again: two
//! a request in a lane of one thread. Lanes that can get no help pay nothing.

use super::lane::Lane;
use super::waiting::WaitingThread;
use super::{Pool, PoolConfig, threads};
use crate::realtime::Priority;
use crate::server::ServerCore;
use core::cmp::Ordering;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::{AtomicBool, AtomicU32};
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::JoinHandle;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What the relief thread waits for.
#[derive(Debug)]
pub(super) struct Relief {
    /// The event loops of all lanes that can get help. Each is watched only while all its threads are busy.
    epoll: OwnedFd,
    /// Rung when a lane asks for help, and when the pool stops.
    bell: OwnedFd,
}

/// The state of a lane that may need help or lend threads.
#[derive(Debug)]
pub(super) struct Standby {
    /// The lane can get help: a dynamic thread of its own or a thread of a lender.
    pub(super) is_relieved: bool,
    /// The lanes that it lends threads to, the most urgent first.
    pub(super) borrowers: Vec<usize>,
    /// The lanes that lend it threads, the least urgent first.
    lenders: Vec<usize>,
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

const BELL: u64 = u64::MAX;

impl Standby {
    /// The state of lane `number`; `None` if it can neither get help nor lend threads.
    pub(super) fn of(config: &PoolConfig, number: usize) -> Option<Self> {
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
    pub(super) fn borrows(&self) -> bool {
        !self.lenders.is_empty()
    }

    pub(super) fn has_idle(&self) -> bool {
        self.idle.load(SeqCst) > 0
    }

    /// Notes that the calling thread, number `place` of the lane, begins to wait; true if it is the first one.
    pub(super) fn begin_idle(&self, place: u32) -> bool {
        if let Some(waiting) = self.waiting.get(place as usize) {
            waiting.begin();
        }
        self.idle.fetch_add(1, SeqCst) == 0
    }

    /// Notes that the calling thread stops waiting; true if it was the last one.
    pub(super) fn end_idle(&self) -> bool {
        self.idle.fetch_sub(1, SeqCst) == 1
    }

    /// Counts one more thread that serves another lane.
    pub(super) fn lend(&self) {
        self.lent.fetch_add(1, SeqCst);
    }

    /// Counts a thread that has returned from another lane.
    pub(super) fn take_back(&self) {
        self.lent.fetch_sub(1, SeqCst);
    }

    pub(super) fn lent(&self) -> u32 {
        self.lent.load(SeqCst)
    }

    /// Ends the raising of the calling thread by others; true if it was raised.
    pub(super) fn take_raised(&self, place: u32) -> bool {
        let waiting = self.waiting.get(place as usize);
        waiting.is_some_and(WaitingThread::end)
    }

    /// Notes that a called thread has responded, so that the next call raises threads again.
    pub(super) fn clear_call(&self) {
        self.called.swap(false, SeqCst);
    }

    /// Lowers the raised threads that still wait, after another thread has responded to the call.
    pub(super) fn lower_waiting(&self, own: Option<SchedPolicy>) {
        let Some(own) = own else {
            return;
        };
        for waiting in &self.waiting {
            waiting.lower(own, || self.called.load(SeqCst));
        }
    }

    /// Raises all waiting threads, because any of them may respond.
    fn raise(&self, priority: Option<Priority>, policy: SchedPolicy) {
        self.called.store(true, SeqCst);
        for waiting in &self.waiting {
            waiting.raise(priority, policy);
        }
    }

    pub(super) fn wants_help(&self) -> bool {
        self.wanting.load(SeqCst)
    }

    /// Claims the help that the lane wants; true for one thread only.
    pub(super) fn claim_help(&self) -> bool {
        self.wants_help() && self.wanting.swap(false, SeqCst)
    }
}

impl Relief {
    /// For these lanes; `None` when none of them may get help.
    pub(super) fn of(lanes: &[Lane]) -> Result<Option<Self>, Errno> {
        let relieved = || lanes.iter().filter(|lane| lane.is_relieved());
        if relieved().next().is_none() {
            return Ok(None);
        }
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), flags)?;
        for lane in relieved() {
            // Not watched over yet; its threads say when.
            epoll::add(&epoll, &lane.events, data(lane), EventFlags::empty())?;
        }
        Ok(Some(Self { epoll, bell }))
    }

    /// Watches a lane while, and only while, all its threads are busy.
    ///
    /// A thread calls this when it changes that. Two threads could reach the kernel in the wrong order, so each checks again.
    pub(super) fn watch_while_busy(&self, lane: &Lane, standby: &Standby) {
        loop {
            let has_idle = standby.has_idle();
            let flags = if has_idle {
                EventFlags::empty()
            } else {
                EventFlags::IN | EventFlags::ONESHOT
            };
            // It cannot fail: the lane was added before its threads began.
            let _ = epoll::modify(&self.epoll, &lane.events, data(lane), flags);
            if has_idle {
                standby.wanting.store(false, SeqCst);
            }
            if standby.has_idle() == has_idle {
                return;
            }
        }
    }

    /// Asks the relief thread to help a lane.
    pub(super) fn ask(&self, standby: &Standby) {
        if !standby.asking.swap(true, SeqCst) {
            self.ring();
        }
    }

    /// Wakes the relief thread.
    pub(super) fn ring(&self) {
        ring(&self.bell);
    }

    /// Waits for a lane that needs help; `None` when the bell was rung.
    fn next(&self) -> Option<usize> {
        let mut room = [MaybeUninit::uninit()];
        match epoll::wait(&self.epoll, &mut room, None) {
            Ok((events, _)) => {
                let number = { events.first()?.data }.u64();
                (number != BELL).then_some(number as usize)
            }
            Err(errno) => {
                assert!(
                    errno == Errno::INTR,
                    "the relief's events are lost: {errno}"
                );
                None
            }
        }
    }
}

/// The work of the relief thread: helps lanes until the pool is stopped.
pub(super) fn run(orb: &Arc<ServerCore>, pool: &Arc<Pool>, relief: &Relief) {
    let mut dynamic: Vec<JoinHandle<Option<()>>> = Vec::new();
    while !pool.is_stopping() {
        let ready = relief.next();
        let asking = |lane: &&Lane| {
            let standby = lane.standby.as_ref();
            standby.is_some_and(|standby| standby.asking.swap(false, SeqCst))
        };
        let ready = ready.and_then(|number| pool.lanes.get(number));
        for lane in ready.into_iter().chain(pool.lanes.iter().filter(asking)) {
            dynamic.retain(|thread| !thread.is_finished());
            relieve(orb, pool, lane, &mut dynamic);
        }
    }
    for lane in &pool.lanes {
        lane.leave();
    }
    threads::join(dynamic);
}

/// Gives a lane dynamic threads while it needs them and may have more, then a thread of another lane.
fn relieve(
    orb: &Arc<ServerCore>,
    pool: &Arc<Pool>,
    lane: &Lane,
    dynamic: &mut Vec<JoinHandle<Option<()>>>,
) {
    let has_queue = lane.queue.is_some();
    while !has_queue || lane.lacks_thread() {
        match threads::start_dynamic(orb, pool, lane) {
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
    // The flag is set before the search: a thread that becomes idle meanwhile is either found here or sees the flag.
    standby.wanting.store(true, SeqCst);
    let mut lenders = standby.lenders.iter().map(|&number| &pool.lanes[number]);
    let idle = lenders.find(|lender| lender.standby.as_ref().is_some_and(Standby::has_idle));
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

pub(super) fn ring(bell: &OwnedFd) {
    // It fails only if the counter is full, and then the bell is readable already.
    let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
}

fn data(lane: &Lane) -> EventData {
    EventData::new_u64(lane.number as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::pool::LaneConfig;
    use crate::realtime::{Priority, ThreadpoolId};

    fn standby(lanes: &[(i16, u32)], number: usize, allow_borrowing: bool) -> Option<Standby> {
        let lanes = lanes.iter().map(|&(priority, dynamic_threads)| LaneConfig {
            priority: Priority::new(priority).ok(),
            static_threads: 1,
            dynamic_threads,
            threads: rtorb_os::thread::ThreadConfig::default(),
        });
        let config = PoolConfig {
            id: ThreadpoolId::OWN,
            lanes: lanes.collect(),
            has_lanes: true,
            allow_borrowing,
            buffering: None,
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
