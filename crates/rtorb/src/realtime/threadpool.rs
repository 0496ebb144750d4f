//! Descriptions of thread pools (RTCORBA::ThreadpoolId and the arguments of create_threadpool).

use super::mapping::{NATIVE_MAX, PriorityMapping};
use super::priority::{NativePriority, Priority};
use crate::strategies::RequestOrder;
use core::fmt;
use core::ops::RangeInclusive;
use core::time::Duration;
use rtorb_os::sched::SchedPolicy;

/// The id of a thread pool of one ORB; the first pool is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadpoolId(pub(crate) u32);

impl ThreadpoolId {
    /// The threads of the dispatch strategy, which serve adapters without a pool.
    pub(crate) const OWN: Self = Self(0);

    /// Returns the number (RTCORBA::ThreadpoolId).
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ThreadpoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A lane of a thread pool (RTCORBA::ThreadpoolLane): threads of one priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadpoolLane {
    /// The CORBA priority of its threads.
    pub lane_priority: Priority,
    /// Threads that start with the pool; at least 1. With an order by deadlines, each is a level.
    pub static_threads: u32,
    /// The most threads that are added while all others are busy; they end after an idle time. 0 if `order` is not fifo.
    pub dynamic_threads: u32,
    /// The order in which it serves requests: an extension. An order other than fifo needs native priorities above that of the lane:
    /// one for each level but the lowest, and one for the I/O thread.
    pub order: RequestOrder,
    /// The share of the CPU that the kernel reserves for each static thread, which then has no priority: an extension.
    pub reservation: Option<Reservation>,
}

/// A share of the CPU that the kernel reserves for a thread (SCHED_DEADLINE), before all threads with a priority.
///
/// The kernel admits it when the thread starts, or refuses it, with best effort too. It goes on with the next period if a thread would
/// exceed its runtime. Only a cpuset of the process restricts the CPUs of such a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// CPU time in each period, from 1.024 us to the deadline.
    pub runtime: Duration,
    /// When the thread has had this time, counted from the beginning of the period; at most the period.
    pub deadline: Duration,
    /// The length of a period, from 100 us to 4 s.
    pub period: Duration,
}

impl Reservation {
    pub(crate) const PERIODS: RangeInclusive<Duration> =
        Duration::from_micros(100)..=Duration::from_secs(4);

    /// True if the times are in order, and the period is one that the kernel has.
    pub(crate) fn is_valid(&self) -> bool {
        RUNTIME_MIN <= self.runtime
            && self.runtime <= self.deadline
            && self.deadline <= self.period
            && Self::PERIODS.contains(&self.period)
    }

    pub(crate) fn policy(&self) -> SchedPolicy {
        SchedPolicy::Deadline {
            runtime_ns: self.runtime.as_nanos() as u64,
            deadline_ns: self.deadline.as_nanos() as u64,
            period_ns: self.period.as_nanos() as u64,
        }
    }
}

/// The unit of the kernel.
const RUNTIME_MIN: Duration = Duration::from_nanos(1024);

impl Default for ThreadpoolLane {
    fn default() -> Self {
        Self {
            lane_priority: Priority::MIN,
            static_threads: 1,
            dynamic_threads: 0,
            order: RequestOrder::Fifo,
            reservation: None,
        }
    }
}

impl ThreadpoolLane {
    /// The native priority of its most urgent thread; `None` if the mapping or the host has none.
    pub(crate) fn most_urgent(&self, mapping: &dyn PriorityMapping) -> Option<NativePriority> {
        let above = self.order.priorities_above(self.static_threads);
        let native = mapping.to_native(self.lane_priority)?;
        native
            .checked_add(above.try_into().ok()?)
            .filter(|native| *native <= NATIVE_MAX)
    }
}

/// A pool without lanes (RTCORBA::RTORB::create_threadpool): its threads take the priority of the call that they serve.
///
/// ```
/// use rtorb::PoaPolicies;
/// use rtorb::rt::Threadpool;
/// # fn main() -> Result<(), rtorb::OrbError> {
/// let orb = rtorb::Orb::builder().build()?;
/// let rt_orb = orb.rt_orb();
/// let pool = rt_orb.create_threadpool(Threadpool {
///     static_threads: 2,
///     ..Threadpool::default()
/// })?;
/// let policies = PoaPolicies::default().with(rt_orb.create_threadpool_policy(pool));
/// let valves = orb.root_poa()?.create_poa("Valves", policies)?; // two threads serve its objects
/// # valves.destroy();
/// # orb.destroy()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
//= RT-CORBA 1.2 §Threadpools
//# The threads of a pool without lanes run at the priority of the request that they serve.
pub struct Threadpool {
    /// Bytes of stack for each thread, resident from the start; 0 for the platform's default.
    pub stacksize: usize,
    /// Threads that start with the pool; at least 1.
    pub static_threads: u32,
    /// The most threads that are added while all others are busy; they end after an idle time.
    pub dynamic_threads: u32,
    /// The CORBA priority of idle threads.
    pub default_priority: Priority,
    /// Requests wait in the pool while all threads are busy (allow_request_buffering).
    pub request_buffering: Option<RequestBuffering>,
}

impl Default for Threadpool {
    fn default() -> Self {
        Self {
            stacksize: 0,
            static_threads: 1,
            dynamic_threads: 0,
            default_priority: Priority::MIN,
            request_buffering: None,
        }
    }
}

/// A pool of lanes (RTCORBA::RTORB::create_threadpool_with_lanes): each has its own threads, endpoints and connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LanedThreadpool {
    /// Bytes of stack for each thread, resident from the start; 0 for the platform's default.
    pub stacksize: usize,
    /// The lanes: at least one, with different priorities.
    pub lanes: Vec<ThreadpoolLane>,
    /// A lane whose threads are all busy borrows an idle thread of a less urgent lane. The thread's priority is raised before it is
    /// woken, so threads between the two priorities do not delay it. If no thread is idle, the first one that finishes its
    /// request is lent; until then it keeps its own priority.
    pub allow_borrowing: bool,
    /// Requests wait in their lane while all its threads are busy (allow_request_buffering).
    pub request_buffering: Option<RequestBuffering>,
}

/// How many requests wait in a pool, or in each lane, while all threads are busy; the next one gets TRANSIENT 1.
///
/// [`Limits::queued_requests_max`](crate::Limits::queued_requests_max) is an upper bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestBuffering {
    /// The number of requests; 0 for the limit in `Limits`.
    pub max_buffered_requests: u32,
    /// The total size of the requests in bytes; 0 for the limit in `Limits`.
    pub max_request_buffer_size: u32,
}

/// No pool has that id (RTCORBA::RTORB::InvalidThreadpool).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "InvalidThreadpool: the ORB has no thread pool {id}; it was destroyed, or belongs to another ORB"
)]
pub struct InvalidThreadpool {
    pub(crate) id: ThreadpoolId,
}
