//! What becomes of a lane all of whose threads are busy: it gets a dynamic thread, or one of a less urgent lane.
//!
//! Its own threads tell when the last of them gets busy. From then on one thread of the pool, the relief, is told when a
//! request waits in the lane: nobody looks before there is need. Telling costs a system call when the last thread gets busy
//! and one when the first is idle again, so two a request in a lane of one thread; lanes that can get no help pay nothing.

use super::lane::Lane;
use super::waiting::Waiting;
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

/// Where the relief waits.
#[derive(Debug)]
pub(super) struct Relief {
    /// The events of all lanes that can get help, each watched over only while its threads are busy.
    epoll: OwnedFd,
    /// Rung for lanes that ask, and to end.
    bell: OwnedFd,
}

/// How a lane that may need or give help stands.
#[derive(Debug)]
pub(super) struct Standby {
    /// It may get help: a dynamic thread of its own or one of the lenders.
    pub(super) is_relieved: bool,
    /// The lanes that it lends threads to, the most urgent first.
    pub(super) borrowers: Vec<usize>,
    /// The lanes that lend it threads, the least urgent first.
    lenders: Vec<usize>,
    /// Its own threads that wait.
    idle: AtomicU32,
    /// Who they are, if it lends them.
    waiting: Box<[Waiting]>,
    /// Its own threads that serve other lanes.
    lent: AtomicU32,
    /// One of its threads was called, and none has come yet.
    called: AtomicBool,
    /// Somebody more may serve this lane.
    wanting: AtomicBool,
    /// The relief was asked to look at this lane.
    asking: AtomicBool,
}

const BELL: u64 = u64::MAX;

impl Standby {
    /// That of lane `number`; `None` for one that neither needs nor gives help.
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
            waiting: (0..threads).map(|_| Waiting::default()).collect(),
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

    /// The calling thread, the lane's one at that place, waits; true if it is the first one.
    pub(super) fn begin_idle(&self, place: u32) -> bool {
        if let Some(waiting) = self.waiting.get(place as usize) {
            waiting.begin();
        }
        self.idle.fetch_add(1, SeqCst) == 0
    }

    /// The calling thread waits no more; true if it was the last one.
    pub(super) fn end_idle(&self) -> bool {
        self.idle.fetch_sub(1, SeqCst) == 1
    }

    /// One thread more serves another lane.
    pub(super) fn lend(&self) {
        self.lent.fetch_add(1, SeqCst);
    }

    /// One that served another lane is back.
    pub(super) fn take_back(&self) {
        self.lent.fetch_sub(1, SeqCst);
    }

    pub(super) fn lent(&self) -> u32 {
        self.lent.load(SeqCst)
    }

    /// The calling thread is raised by others no more; true if it was.
    pub(super) fn take_raised(&self, place: u32) -> bool {
        let waiting = self.waiting.get(place as usize);
        waiting.is_some_and(Waiting::end)
    }

    /// A thread has come that was called: what is called from now on comes again.
    pub(super) fn come(&self) {
        self.called.swap(false, SeqCst);
    }

    /// Lets those wait as the lane's threads do that were raised, and of whom another one has come.
    pub(super) fn calm(&self, own: Option<SchedPolicy>) {
        let Some(own) = own else {
            return;
        };
        for waiting in &self.waiting {
            waiting.lower(own, || self.called.load(SeqCst));
        }
    }

    /// Raises all that wait, since any of them may be the one who comes.
    fn raise(&self, priority: Option<Priority>, policy: SchedPolicy) {
        self.called.store(true, SeqCst);
        for waiting in &self.waiting {
            waiting.raise(priority, policy);
        }
    }

    pub(super) fn is_wanting(&self) -> bool {
        self.wanting.load(SeqCst)
    }

    /// True for the one thread that shall help.
    pub(super) fn answer(&self) -> bool {
        self.is_wanting() && self.wanting.swap(false, SeqCst)
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

    /// Watches over a lane while, and only while, all its threads are busy.
    ///
    /// Called by whoever changes that. Two who do so at once could tell the kernel in the wrong order, so each looks again.
    pub(super) fn settle(&self, lane: &Lane, standby: &Standby) {
        loop {
            let has_idle = standby.has_idle();
            let flags = if has_idle {
                EventFlags::empty()
            } else {
                EventFlags::IN | EventFlags::ONESHOT
            };
            // The lane was added before its threads began, so there is nothing to fail.
            let _ = epoll::modify(&self.epoll, &lane.events, data(lane), flags);
            if has_idle {
                standby.wanting.store(false, SeqCst);
            }
            if standby.has_idle() == has_idle {
                return;
            }
        }
    }

    /// Asks for help in the name of a lane.
    pub(super) fn ask(&self, standby: &Standby) {
        if !standby.asking.swap(true, SeqCst) {
            self.ring();
        }
    }

    /// Wakes the relief.
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

/// Helps lanes until the pool is stopped: the work of the relief's thread.
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

/// Gives a lane dynamic threads as long as it may have more and needs them, then one of another lane.
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
        // Several may have been put into a queue since it was asked; without one, the new thread itself tells of more.
        if !has_queue {
            return;
        }
    }
}

/// Calls a thread of the least urgent lane that has an idle one, or lets the first that is through with its work come.
//= RT-CORBA 1.2 §Threadpools
//# A lane without idle threads may borrow a thread of a lane of lower priority, which runs at its priority meanwhile.
fn borrow(pool: &Pool, lane: &Lane) {
    let Some(standby) = lane.standby.as_ref().filter(|standby| standby.borrows()) else {
        return;
    };
    // First the wish, then the look: a thread that gets idle meanwhile is either seen here, or sees the wish.
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
    // Without a policy, the host has refused the lane's.
    if let (Some(own), Some(policy)) = (lender.threads.policy, lane.threads.policy)
        && own != policy
        && let Some(standby) = &lender.standby
    {
        standby.raise(lane.priority, policy);
    }
}

pub(super) fn ring(bell: &OwnedFd) {
    // A counter that is full is readable all the same.
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
