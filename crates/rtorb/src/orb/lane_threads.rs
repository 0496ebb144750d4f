//! The number of threads of a lane, which changes while the lane serves.

use super::added_lane::lanes;
use super::rt_orb::RtOrb;
use crate::dispatch::pool::{self, ADDED_THREADS_MAX, Lane};
use crate::exception::{SystemException, local};
use crate::realtime::{Priority, ThreadpoolId, refusal};
use crate::strategies::RequestOrder;

impl RtOrb {
    /// Changes the number of static threads of a lane that serves: of that priority, in a pool, or with `None` in the ORB's own lanes.
    /// No request is lost, and none waits longer than before.
    ///
    /// New threads start before this returns, scheduled as the others. A thread that is one too many ends at the first moment at which no
    /// request of the lane is in progress, because one in progress may wait for a nested call that needs this thread. Until
    /// then it serves, and counts no more against [`Limits::pool_threads_max`](crate::Limits::pool_threads_max). If only one thread would
    /// be left, and servants of the lane call the lane itself, it stays for good, and is still not counted against that limit.
    ///
    /// # Errors
    /// BAD_PARAM for an unknown pool or lane, for a pool without lanes, with borrowing or with request filters, without a thread, for
    /// a lane with dynamic threads or an order other than fifo, beyond 64 more threads than at the start for a lane with a queue, and
    /// for one thread in a lane whose servants call it; NO_RESOURCES beyond `Limits::pool_threads_max`, or if the host refuses a thread; NO_PERMISSION if it
    /// refuses the scheduling. Nothing has changed then.
    pub fn change_lane_threads(
        &self,
        pool: Option<ThreadpoolId>,
        lane: Priority,
        static_threads: u32,
    ) -> Result<(), SystemException> {
        let core = &self.orb.core.adapters;
        let wrong = |reason: String| local::WRONG_LANES.with_detail(reason);
        let pool = self.growing_pool(pool)?;
        let _one = pool.growing.lock();
        let found = pool.find(lane);
        let (its_pool, running) = found.ok_or_else(|| {
            let known: Vec<_> = lanes(&pool)
                .iter()
                .map(|it| it.lane_priority.to_string())
                .collect();
            wrong(format!(
                "the pool has no lane of priority {lane}: it has {}",
                known.join(", ")
            ))
        })?;
        check(running, static_threads)
            .map_err(|reason| wrong(format!("the lane of priority {lane} {reason}")))?;
        let before = running.count.wanted();
        core.pools
            .change_threads(pool.config.id, before, static_threads, || {
                pool::change_threads(&core.server, its_pool, running, static_threads)
                    .map_err(refusal)
            })
    }
}

/// Checks that a lane may have `static_threads` static threads.
///
/// # Errors
/// The reason why it may not, in words that follow the lane's name.
fn check(lane: &Lane, static_threads: u32) -> Result<(), String> {
    if static_threads == 0 {
        return Err("needs at least 1 static thread".to_owned());
    }
    if lane.order != RequestOrder::Fifo {
        return Err(format!(
            "has the order {}, in which each thread has a place from the start: its number stays",
            lane.order
        ));
    }
    if lane.standby.is_some() {
        return Err(
            "has dynamic threads, so it takes more by itself: the number of its static ones stays"
                .to_owned(),
        );
    }
    let most = lane.static_threads.saturating_add(ADDED_THREADS_MAX);
    if lane.room().is_some() && static_threads > most {
        return Err(format!(
            "has a queue, which has room for {most} threads: choose at most as many"
        ));
    }
    if static_threads == 1 && lane.calls_itself() {
        return Err(
            "serves nested calls of its own servants, which would wait for themselves: leave it 2 threads"
                .to_owned(),
        );
    }
    Ok(())
}
