//! The configuration of a thread pool.

use super::request_room::Buffering;
use crate::exception::SystemException;
use crate::realtime::{NativePriority, Priority, Reservation, ThreadpoolId, ThreadpoolLane};
use crate::server::{ServerCore, Session, TakenRequest, Workspace};
use crate::strategies::RequestOrder;
use core::fmt;
use rtorb_os::thread::ThreadConfig;
use rustix::io::Errno;

/// The configuration of a pool.
#[derive(Debug)]
pub(crate) struct PoolConfig {
    pub(crate) id: ThreadpoolId,
    pub(crate) lanes: Vec<LaneConfig>,
    /// True if clients choose the lane by its endpoint. In a pool without lanes, which has one lane here, the threads take the
    /// priority of the requests.
    pub(crate) has_lanes: bool,
    /// A lane without an idle thread borrows a thread of a less urgent lane.
    pub(crate) allow_borrowing: bool,
    pub(crate) intake: Intake,
}

/// The configuration of a lane.
#[derive(Clone, Debug)]
pub(crate) struct LaneConfig {
    /// The beginning of the names of its threads.
    pub(crate) name: String,
    /// The CORBA priority of its threads (of idle threads in a pool without lanes); `None`: `threads` has the policy.
    pub(crate) priority: Option<Priority>,
    pub(crate) static_threads: u32,
    pub(crate) dynamic_threads: u32,
    pub(crate) order: RequestOrder,
    /// Of each static thread, instead of a priority.
    pub(crate) reservation: Option<Reservation>,
    /// The scheduling of its threads; `priority`, if there is one, sets the policy.
    pub(crate) threads: ThreadConfig,
}

impl PoolConfig {
    /// The ORB's own pool, whose lanes neither borrow threads nor are chosen by clients.
    pub(crate) fn own(lanes: Vec<LaneConfig>, intake: Intake) -> Self {
        Self {
            id: ThreadpoolId::OWN,
            lanes,
            has_lanes: false,
            allow_borrowing: false,
            intake,
        }
    }
}

impl LaneConfig {
    /// A fixed number of threads with the scheduling of the server's threads.
    pub(crate) fn plain(orb: &ServerCore, name: &str, threads: u32) -> Self {
        Self {
            name: name.to_owned(),
            priority: None,
            static_threads: threads,
            dynamic_threads: 0,
            order: RequestOrder::Fifo,
            reservation: None,
            threads: orb.server_threads.clone(),
        }
    }

    /// The threads of a lane of the application, with the priority of the lane.
    pub(crate) fn of_lane(name: String, lane: &ThreadpoolLane, threads: ThreadConfig) -> Self {
        Self {
            name,
            priority: Some(lane.lane_priority),
            static_threads: lane.static_threads.max(1),
            dynamic_threads: lane.dynamic_threads,
            order: lane.order,
            reservation: lane.reservation,
            threads,
        }
    }

    /// The native priorities above that of the lane that its threads have.
    fn priorities_above(&self) -> u32 {
        self.order.priorities_above(self.static_threads)
    }

    /// The scheduling of its threads, or of the lowest level, and how many native priorities other threads of it are above.
    ///
    /// # Errors
    /// INVAL for a priority outside the ORB's mapping.
    pub(crate) fn scheduling(
        &self,
        orb: &ServerCore,
    ) -> Result<(ThreadConfig, NativePriority), Errno> {
        let Some(priority) = self.priority else {
            return Ok((self.threads.clone(), 0));
        };
        let native = orb.rt.to_native(priority).map_err(|_| Errno::INVAL)?;
        // The caller has checked that the host has as many.
        let above = u8::try_from(self.priorities_above()).map_err(|_| Errno::INVAL)?;
        let at = |native| ThreadConfig {
            policy: Some(orb.rt.policy(native)),
            ..self.threads.clone()
        };
        let most_urgent = at(native.saturating_add(above));
        let obtained = orb.rt.obtainable(&most_urgent);
        Ok(if obtained == most_urgent {
            (at(native), above)
        } else {
            // Best effort: without real-time scheduling, all have one priority.
            (obtained, 0)
        })
    }

    /// The beginning of the names of threads of a lane.
    pub(crate) fn name(pool: ThreadpoolId, lane: usize) -> String {
        format!("rtorb-p{pool}l{lane}")
    }
}

/// How requests come to the threads that serve them.
#[derive(Debug)]
pub(crate) enum Intake {
    /// The threads of a lane wait for its connections, all at once.
    Direct,
    /// One thread of a lane at a time, the leader, waits for its connections. It takes a request out, and makes another thread
    /// the leader before it serves the request.
    Leader,
    /// An I/O thread of each lane puts the requests into the lane's queue.
    Queue(Buffering),
    /// An I/O thread of each lane starts a thread for each request.
    PerRequest,
    /// One I/O thread reads the connections of the first lane, and puts each request into the queue of the lane that `route`
    /// chooses.
    Routed {
        buffering: Buffering,
        route: LaneSelection,
        io_thread: ThreadConfig,
    },
}

/// Chooses the number of the lane that serves a request. The client gets the exception of an error as the reply.
pub(crate) struct LaneSelection(pub(crate) Box<Choose>);

type Choose =
    dyn Fn(&Session, &TakenRequest, &mut Workspace) -> Result<usize, SystemException> + Send + Sync;

impl fmt::Debug for LaneSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LaneSelection")
    }
}
