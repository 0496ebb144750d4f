//! The threads of a pool: their names, their scheduling, their start and end.

use super::Pool;
use super::lane::Lane;
use super::reading::Reader;
use super::relief;
use super::work::LaneThread;
use crate::endpoint::Endpoint;
use crate::server::ServerCore;
use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::Refused;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use std::sync::Arc;
use std::time::Duration;

/// When a thread of a lane ends before its pool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// Never.
    Static,
    /// After it has been idle for this time.
    Dynamic { idle_ns: u64 },
}

impl Lifetime {
    /// The time that it waits for work; `None`: no limit.
    #[inline]
    pub(super) fn idle_ns(self) -> Option<u64> {
        match self {
            Self::Static => None,
            Self::Dynamic { idle_ns } => Some(idle_ns),
        }
    }
}

thread_local! {
    /// The lane of which the calling thread is the only thread.
    static ALONE_IN: RefCell<Option<(Arc<Pool>, usize)>> = const { RefCell::new(None) };
}

/// True if a call to that endpoint would wait for the calling thread itself, because no other thread serves there.
pub(crate) fn would_wait_for_itself(endpoint: &Endpoint) -> bool {
    let would_wait = ALONE_IN.try_with(|alone_in| {
        alone_in.borrow().as_ref().is_some_and(|(pool, lane)| {
            let mut listeners = pool.lanes[*lane].server.listeners.iter();
            listeners.any(|listener| listener.leads_to(endpoint))
        })
    });
    // A thread that is ending and calls from a destructor has no lane any more.
    would_wait.unwrap_or(false)
}

/// Starts the static threads of a pool.
///
/// # Errors
/// When the host refuses one. The threads before it run then.
pub(super) fn start(orb: &Arc<ServerCore>, pool: &Arc<Pool>) -> Result<(), Refused> {
    for lane in &pool.lanes {
        // All are counted first, so that the first to end is not taken for the last.
        let readers = u32::from(lane.queue.is_some());
        lane.expect(lane.static_threads + readers + u32::from(pool.relief.is_some()));
        for place in 0..lane.static_threads {
            pool.note(start_in_lane(orb, pool, lane, place, Lifetime::Static)?);
        }
        if lane.queue.is_some() {
            pool.note(start_reader(orb, pool, lane)?);
        }
    }
    if pool.relief.is_some() {
        pool.note(start_relief(orb, pool)?);
    }
    Ok(())
}

/// Starts a dynamic thread; `None` if the lane has all its threads, or the host refuses one more.
pub(super) fn start_dynamic(
    orb: &Arc<ServerCore>,
    pool: &Arc<Pool>,
    lane: &Lane,
) -> Option<JoinHandle<Option<()>>> {
    let is_free = |place: &AtomicBool| !place.load(Ordering::Acquire);
    let place = lane.dynamic.iter().position(is_free)?;
    lane.dynamic[place].store(true, Ordering::Release);
    let idle_ns = orb.limits.idle_thread_time.min(IDLE_MAX).as_nanos() as u64;
    let number = lane.static_threads + place as u32;
    let entered = lane.enter();
    let thread = start_in_lane(orb, pool, lane, number, Lifetime::Dynamic { idle_ns });
    debug_assert!(entered, "the relief is one of those who run");
    if thread.is_err() {
        lane.dynamic[place].store(false, Ordering::Release);
        lane.leave();
    }
    thread.ok()
}

/// A day: what the system calls take is bounded.
const IDLE_MAX: Duration = Duration::from_secs(86_400);

/// Waits until these threads have ended.
pub(super) fn join(threads: Vec<JoinHandle<Option<()>>>) {
    for thread in threads {
        // A panic was reported when it happened.
        let _ = thread.join();
    }
}

fn start_in_lane(
    orb: &Arc<ServerCore>,
    pool: &Arc<Pool>,
    lane: &Lane,
    place: u32,
    lifetime: Lifetime,
) -> Result<JoinHandle<Option<()>>, Refused> {
    let name = format!("{}-{}", name_of(pool, lane), place + 1);
    start_one(orb, pool, lane, &name, move |orb, pool, lane| {
        if lane.has_one_thread() {
            ALONE_IN.set(Some((Arc::clone(pool), lane.number)));
        }
        LaneThread::new(orb, pool, lane, place, lifetime).run();
        ALONE_IN.set(None);
        let dynamic = place.checked_sub(lane.static_threads);
        if let Some(place) = dynamic.and_then(|place| lane.dynamic.get(place as usize)) {
            place.store(false, Ordering::Release);
            // Requests that arrived while this thread ended, and was still counted, need another thread.
            pool.find_help(lane);
        }
        lane.leave();
    })
}

fn start_reader(
    orb: &Arc<ServerCore>,
    pool: &Arc<Pool>,
    lane: &Lane,
) -> Result<JoinHandle<Option<()>>, Refused> {
    let name = format!("{}-io", name_of(pool, lane));
    start_one(orb, pool, lane, &name, |orb, pool, lane| {
        if let Some(queue) = &lane.queue {
            Reader::new(orb, pool, lane, queue).run();
        }
        lane.leave();
    })
}

fn start_one(
    orb: &Arc<ServerCore>,
    pool: &Arc<Pool>,
    lane: &Lane,
    name: &str,
    work: impl FnOnce(&Arc<ServerCore>, &Arc<Pool>, &Lane) + Send + 'static,
) -> Result<JoinHandle<Option<()>>, Refused> {
    let number = lane.number;
    let (orb, pool) = (Arc::clone(orb), Arc::clone(pool));
    spawn(name, &lane.threads, move || {
        work(&orb, &pool, &pool.lanes[number]);
    })
}

/// Starts the relief thread, as urgent as the most urgent lane that can get help.
fn start_relief(
    orb: &Arc<ServerCore>,
    pool: &Arc<Pool>,
) -> Result<JoinHandle<Option<()>>, Refused> {
    let most_urgent = pool.lanes.iter().filter(|lane| lane.is_relieved());
    let config = most_urgent
        .max_by_key(|lane| lane.priority)
        .map_or_else(ThreadConfig::default, |lane| lane.threads.clone());
    let (orb, pool_) = (Arc::clone(orb), Arc::clone(pool));
    let name = format!("rtorb-p{}-mgr", pool.config.id);
    spawn(&name, &config, move || {
        if let Some(relief) = &pool_.relief {
            relief::run(&orb, &pool_, relief);
        }
    })
}

fn name_of(pool: &Pool, lane: &Lane) -> String {
    format!("rtorb-p{}l{}", pool.config.id, lane.number)
}
