//! Thread pools, as the application describes them (RTCORBA::ThreadpoolId and what create_threadpool takes).

use super::priority::Priority;
use core::fmt;

/// A thread pool of one ORB; the first one is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadpoolId(pub(crate) u32);

impl ThreadpoolId {
    /// The threads that serve adapters without a pool: those of the dispatch strategy.
    pub(crate) const OWN: Self = Self(0);

    /// Its number (RTCORBA::ThreadpoolId).
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
    /// Threads that are there from the beginning; at least 1.
    pub static_threads: u32,
    /// Threads that are added while all others are busy, and end when they have been idle.
    pub dynamic_threads: u32,
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
    /// Octets of stack a thread, all in memory from the beginning; 0 takes the platform's.
    pub stacksize: usize,
    /// Threads that are there from the beginning; at least 1.
    pub static_threads: u32,
    /// Threads that are added while all others are busy, and end when they have been idle.
    pub dynamic_threads: u32,
    /// The CORBA priority of threads that serve nobody.
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
    /// Octets of stack a thread, all in memory from the beginning; 0 takes the platform's.
    pub stacksize: usize,
    /// At least one; each priority once.
    pub lanes: Vec<ThreadpoolLane>,
    /// A lane whose threads are all busy takes an idle one of a less urgent lane, raised meanwhile. It is raised before it is woken,
    /// so nothing between the two priorities delays it. If none is idle, the first that is through with its work comes;
    /// until then it runs at its own priority.
    pub allow_borrowing: bool,
    /// Requests wait in their lane while all its threads are busy (allow_request_buffering).
    pub request_buffering: Option<RequestBuffering>,
}

/// How many requests wait in a pool, or in each lane, while all threads are busy; the next one gets TRANSIENT 1.
///
/// Never more than [`Limits::queued_requests_max`](crate::Limits::queued_requests_max) says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestBuffering {
    /// So many requests; 0 leaves it to the limits.
    pub max_buffered_requests: u32,
    /// Requests of so many octets together; 0 leaves it to the limits.
    pub max_request_buffer_size: u32,
}

/// No pool has that id (RTCORBA::RTORB::InvalidThreadpool).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidThreadpool {
    pub(crate) id: ThreadpoolId,
}

impl fmt::Display for InvalidThreadpool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "InvalidThreadpool: the ORB has no thread pool {}; it was destroyed, or is of another ORB",
            self.id
        )
    }
}

impl std::error::Error for InvalidThreadpool {}
