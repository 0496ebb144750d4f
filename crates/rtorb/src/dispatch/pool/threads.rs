//! The threads of a pool: their names, their scheduling, their start and end.

use super::borrowing;
use super::config::Intake;
use super::lane::{Lane, Source};
use super::running::Pool;
use crate::dispatch::lanes::LaneThread;
use crate::dispatch::serve::LaneServer;
use crate::dispatch::{leader_followers, reactive, worker_pool};
use crate::endpoint::Endpoint;
use crate::realtime::{NativePriority, ThreadpoolId};
use crate::server::ServerCore;
use core::cell::RefCell;
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_os::Refused;
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::{JoinHandle, ThreadConfig, spawn};
use std::sync::Arc;
use std::time::Duration;

thread_local! {
    /// The lane that the calling thread serves.
    static SERVES: RefCell<Option<(Arc<Pool>, usize)>> = const { RefCell::new(None) };
}

/// True if a call to that endpoint would wait for the request that the calling thread serves, because no other is served there
/// meanwhile.
pub(crate) fn would_wait_for_itself(endpoint: &Endpoint) -> bool {
    let would_wait = SERVES.try_with(|serves| {
        serves.borrow().as_ref().is_some_and(|(pool, lane)| {
            let lane = &pool.lanes[*lane];
            let mut listeners = lane.server.listeners.iter();
            let is_own = listeners.any(|listener| listener.leads_to(endpoint));
            if is_own {
                lane.note_own_call();
            }
            is_own && pool.serves_one_at_a_time(lane)
        })
    });
    // A thread that is ending and calls from a destructor has no lane any more.
    would_wait.unwrap_or(false)
}

/// Starts all static threads of a pool at the first call. Later calls return what the first one returned.
///
/// # Errors
/// When the host refuses a thread or its scheduling; no thread is left running then.
pub(crate) fn begin(orb: &Arc<ServerCore>, pool: &Arc<Pool>) -> Result<(), Refused> {
    // The lock is held meanwhile, so that another caller waits for the outcome. No thread of the pool takes it.
    *pool.begun.lock().get_or_insert_with(|| {
        start(orb, pool).inspect_err(|_| {
            pool.stop();
            pool.join();
            // The threads that never started are counted, so that no last one has done it.
            for lane in &pool.lanes {
                lane.close();
                lane.drop_requests();
            }
        })
    })
}

/// Serves the only lane of a pool, which has one thread, on the calling thread until the pool is stopped. Calls `ready` first.
///
/// # Errors
/// When the host refuses the scheduling.
pub(crate) fn serve_here(
    orb: &Arc<ServerCore>,
    pool: &Arc<Pool>,
    ready: &mut dyn FnMut(),
) -> Result<(), Refused> {
    let lane = &pool.lanes[0];
    lane.threads.apply_here()?;
    ready();
    lane.expect(1);
    serve_lane(orb, pool, lane, 0, None);
    Ok(())
}

/// Starts the static threads of a pool.
///
/// # Errors
/// When the host refuses one, or a client's thread its priority above them. The threads before it run then.
fn start(orb: &Arc<ServerCore>, pool: &Arc<Pool>) -> Result<(), Refused> {
    pool.lanes
        .iter()
        .try_for_each(|lane| lane.keep_below(orb))?;
    // All are counted first, so that the first to end is not taken for the last.
    for lane in &pool.lanes {
        let has_reader = pool.reader_config(lane).is_some();
        let others = u32::from(has_reader) + u32::from(pool.helper.is_some());
        pool.served_with(lane)[0].expect(lane.static_threads + others);
    }
    for lane in &pool.lanes {
        for place in 0..lane.static_threads {
            pool.note(start_in_lane(orb, pool, lane, place, None)?);
        }
    }
    for lane in &pool.lanes {
        if let Some(config) = pool.reader_config(lane) {
            pool.note(start_reader(orb, pool, lane, &config)?);
        }
    }
    if let Some(helper) = start_helper(orb, pool)? {
        pool.note(helper);
    }
    Ok(())
}

/// Starts a dynamic thread; `None` if the lane has all its threads, or the host refuses one more.
fn start_dynamic(
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
    let thread = start_in_lane(orb, pool, lane, number, Some(idle_ns));
    debug_assert!(entered, "the helper is one of those who run");
    if thread.is_err() {
        lane.dynamic[place].store(false, Ordering::Release);
        pool.leave(lane);
    }
    thread.ok()
}

/// Changes the number of static threads of a lane that serves. Threads that are too many end once no request of the lane is in
/// progress. Callers exclude each other by `growing` of the pool.
///
/// # Errors
/// When the host refuses a thread or its scheduling; then those that were started end.
pub(crate) fn change_threads(
    orb: &Arc<ServerCore>,
    pool: &Arc<Pool>,
    lane: &Lane,
    wanted: u32,
) -> Result<(), Refused> {
    let before = lane.count.wanted();
    let missing = lane.count.want(wanted);
    if missing > 0 {
        lane.share();
        if let Some(room) = lane.room() {
            room.add_memory(missing);
        }
    }
    let added = (0..missing).try_for_each(|_| add_thread(orb, pool, lane));
    // Also if all were added: a thread that was about to end may have stayed meanwhile.
    lane.count.want(if added.is_ok() { wanted } else { before });
    if lane.count.is_surplus() {
        lane.call();
    }
    added
}

fn add_thread(orb: &Arc<ServerCore>, pool: &Arc<Pool>, lane: &Lane) -> Result<(), Refused> {
    if !lane.enter() {
        // The pool has ended.
        return Ok(());
    }
    lane.count.add();
    let thread = start_in_lane(orb, pool, lane, lane.take_place(), None);
    let thread = thread.inspect_err(|_| {
        lane.count.remove();
        pool.leave(lane);
    })?;
    pool.note_added(thread);
    Ok(())
}

/// A day: what the system calls take is bounded.
const IDLE_MAX: Duration = Duration::from_secs(86_400);

fn start_in_lane(
    orb: &Arc<ServerCore>,
    pool: &Arc<Pool>,
    lane: &Lane,
    place: u32,
    idle_ns: Option<u64>,
) -> Result<JoinHandle<Option<()>>, Refused> {
    let number = lane.number;
    let (orb, pool) = (Arc::clone(orb), Arc::clone(pool));
    spawn(
        &format!("{}-{}", lane.name, place + 1),
        &lane.thread_config(place),
        move || serve_lane(&orb, &pool, &pool.lanes[number], place, idle_ns),
    )
}

/// The whole life of a thread of a lane. A dynamic thread ends after it has been idle for `idle_ns`.
fn serve_lane(
    orb: &Arc<ServerCore>,
    pool: &Arc<Pool>,
    lane: &Lane,
    place: u32,
    idle_ns: Option<u64>,
) {
    SERVES.set(Some((Arc::clone(pool), lane.number)));
    let server = LaneServer::new(orb, pool, lane);
    match (&lane.source, &lane.standby) {
        // A pool with a leader neither borrows nor has dynamic threads.
        (Source::Leader(lead), _) => leader_followers::run(server, lead),
        (Source::Levels(queue), _) => worker_pool::work_at_level(server, queue, place as usize),
        (Source::Events, None) => reactive::run(server),
        (Source::Events, Some(standby)) => {
            reactive::run(LaneThread::new(server, standby, place, idle_ns));
        }
        // No thread of the lane itself serves.
        (Source::PerRequest(_), _) => {}
        (Source::Queue(_), None) => worker_pool::work(server),
        (Source::Queue(_), Some(standby)) => {
            worker_pool::work(LaneThread::new(server, standby, place, idle_ns));
        }
    }
    SERVES.set(None);
    let dynamic = place.checked_sub(lane.static_threads);
    if let Some(place) = dynamic.and_then(|place| lane.dynamic.get(place as usize)) {
        place.store(false, Ordering::Release);
        // Requests that arrived while this thread ended, and was still counted, need another thread.
        pool.find_help(lane);
    }
    if lane.count.is_surplus() && !lane.count.is_stopped() {
        // Another one is to end, and may wait.
        lane.call();
    }
    pool.leave(lane);
}

fn start_reader(
    orb: &Arc<ServerCore>,
    pool: &Arc<Pool>,
    lane: &Lane,
    config: &ThreadConfig,
) -> Result<JoinHandle<Option<()>>, Refused> {
    let is_only_one = pool.config.id == ThreadpoolId::OWN && !pool.config.has_lanes;
    let name = if is_only_one {
        "rtorb-io".to_owned()
    } else {
        format!("{}-io", lane.name)
    };
    let number = lane.number;
    let (orb, pool) = (Arc::clone(orb), Arc::clone(pool));
    spawn(&name, config, move || {
        let lane = &pool.lanes[number];
        if let Some(room) = lane.room() {
            worker_pool::read(LaneServer::reader(&orb, &pool, lane), room);
        }
        if let Source::PerRequest(threads) = &lane.source {
            threads.join();
        }
        pool.leave(lane);
    })
}

/// Starts the helper thread if a lane can get help. It is as urgent as the most urgent of these lanes.
fn start_helper(
    orb: &Arc<ServerCore>,
    pool: &Arc<Pool>,
) -> Result<Option<JoinHandle<Option<()>>>, Refused> {
    let helped = pool.lanes.iter().filter(|lane| lane.can_get_help());
    let Some(most_urgent) = helped.max_by_key(|lane| lane.priority) else {
        return Ok(None);
    };
    let name = format!("rtorb-p{}-mgr", pool.config.id);
    let (orb, pool) = (Arc::clone(orb), Arc::clone(pool));
    let help = move || {
        if let Some(helper) = &pool.helper {
            borrowing::run(&pool, helper, |lane| start_dynamic(&orb, &pool, lane));
        }
    };
    spawn(&name, &most_urgent.threads, help).map(Some)
}

impl Pool {
    /// The scheduling of the I/O thread that reads the connections of a lane, if there is one.
    fn reader_config(&self, lane: &Lane) -> Option<ThreadConfig> {
        match &self.config.intake {
            Intake::Routed { io_thread, .. } => (lane.number == 0).then(|| io_thread.clone()),
            _ => lane.room().map(|_| lane.reader_config()),
        }
    }
}

impl Lane {
    /// The scheduling of a thread: that of the lane, that of its level, or its reservation.
    fn thread_config(&self, place: u32) -> ThreadConfig {
        match (&self.source, &self.reservation) {
            (Source::Levels(queue), _) if queue.has_levels() => self.config_above(place),
            (_, Some(reservation)) => ThreadConfig {
                policy: Some(reservation.policy()),
                ..self.threads.clone()
            },
            (_, None) => self.threads.clone(),
        }
    }

    /// The scheduling of the I/O thread: that of the lane, or above all levels.
    fn reader_config(&self) -> ThreadConfig {
        self.config_above(self.priorities_above.into())
    }

    fn config_above(&self, by: u32) -> ThreadConfig {
        let by = by.min(self.priorities_above.into()) as NativePriority;
        let raised = |policy| match policy {
            SchedPolicy::Fifo(native) => SchedPolicy::Fifo(native + by),
            SchedPolicy::RoundRobin(native) => SchedPolicy::RoundRobin(native + by),
            other => other,
        };
        ThreadConfig {
            policy: self.threads.policy.map(raised),
            ..self.threads.clone()
        }
    }

    /// Keeps the threads that calls wait for more urgent than the lane's own.
    ///
    /// # Errors
    /// As [`keep_above`](crate::realtime::RtCore::keep_above).
    fn keep_below(&self, orb: &ServerCore) -> Result<(), Refused> {
        // A lane is not opened without a native priority.
        let native = self.priority.and_then(|it| orb.rt.mapping.to_native(it));
        native.map_or(Ok(()), |native| {
            orb.rt
                .keep_above(native.saturating_add(self.priorities_above))
        })
    }
}
