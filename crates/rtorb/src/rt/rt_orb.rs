//! The RT-CORBA side of an ORB: makes thread pools, policies and mutexes (RTCORBA::RTORB).

use super::current::refusal;
use super::mutex::{MutexNotFound, RtMutex};
use super::policy::{Policy, Protocol, TcpProtocolProperties, UnixDomainProtocolProperties};
use super::pools::DestroyThreadpoolError;
use super::priority::Priority;
use super::threadpool::{
    LanedThreadpool, RequestBuffering, Threadpool, ThreadpoolId, ThreadpoolLane,
};
use super::{PriorityBand, PriorityModel};
use crate::dispatch::DispatchError;
use crate::dispatch::pool::{Buffering, LaneConfig, Pool, PoolConfig, endpoints};
use crate::exception::{ExceptionKind, SystemException};
use crate::orb::Orb;
use crate::server::is_in_upcall;
use rtorb_os::thread::ThreadConfig;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The RT-CORBA side of an ORB: the initial reference `RTORB`; cheap to clone.
///
/// ```
/// use rtorb::rt::{LanedThreadpool, Policy, Priority, PriorityModel, ThreadpoolLane};
/// # fn main() -> Result<(), rtorb::OrbError> {
/// let orb = rtorb::Orb::builder().build()?;
/// let rt_orb = orb.rt_orb();
/// let model = rt_orb.create_priority_model_policy(PriorityModel::ServerDeclared, Priority::new(10)?);
/// let flaps = orb
///     .root_poa()?
///     .create_poa("Flaps", rtorb::PoaPolicies::default().with(model))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RtOrb {
    orb: Orb,
}

impl RtOrb {
    pub(crate) fn new(orb: Orb) -> Self {
        Self { orb }
    }

    /// Starts a pool without lanes, with listening endpoints of its own.
    ///
    /// # Errors
    /// BAD_PARAM without a static thread; DATA_CONVERSION 2 for a default priority that this host has not;
    /// NO_RESOURCES beyond `Limits::pool_threads_max` or when the host makes no more threads; NO_PERMISSION with what the
    /// host said when it refuses their scheduling; INITIALIZE when an endpoint cannot be listened on.
    pub fn create_threadpool(&self, pool: Threadpool) -> Result<ThreadpoolId, SystemException> {
        let lane = ThreadpoolLane {
            lane_priority: pool.default_priority,
            static_threads: pool.static_threads,
            dynamic_threads: pool.dynamic_threads,
        };
        self.start(
            LanedThreadpool {
                stacksize: pool.stacksize,
                lanes: vec![lane],
                allow_borrowing: false,
                request_buffering: pool.request_buffering,
            },
            HasLanes::No,
        )
    }

    /// Starts a pool of lanes, each with listening endpoints of its own.
    ///
    /// # Errors
    /// BAD_PARAM without a lane, for a lane without a static thread, or for two lanes of one priority; otherwise as
    /// [`create_threadpool`](Self::create_threadpool).
    pub fn create_threadpool_with_lanes(
        &self,
        pool: LanedThreadpool,
    ) -> Result<ThreadpoolId, SystemException> {
        self.start(pool, HasLanes::Yes)
    }

    /// Ends a pool: requests in progress are answered, its threads end, its endpoints are closed.
    ///
    /// # Errors
    /// InvalidThreadpool; BAD_INV_ORDER while an adapter uses it, and 3 in a servant: a thread would wait for itself.
    pub fn destroy_threadpool(&self, id: ThreadpoolId) -> Result<(), DestroyThreadpoolError> {
        let core = &self.orb.core;
        if is_in_upcall(core) {
            return Err(SystemException::omg(ExceptionKind::BadInvOrder, 3).into());
        }
        core.rt.pools.destroy(id)
    }

    /// PriorityModelPolicy, of an adapter: whose priority a call has. `server_priority` is the objects' own, or that of
    /// calls that bring none.
    pub fn create_priority_model_policy(
        &self,
        model: PriorityModel,
        server_priority: Priority,
    ) -> Policy {
        Policy::PriorityModel {
            model,
            server_priority,
        }
    }

    /// ThreadpoolPolicy, of an adapter: which threads serve its objects.
    pub fn create_threadpool_policy(&self, id: ThreadpoolId) -> Policy {
        Policy::Threadpool(id)
    }

    /// PriorityBandedConnectionPolicy, of a client or an adapter: priorities with connections of their own.
    pub fn create_priority_banded_connection_policy(&self, bands: Vec<PriorityBand>) -> Policy {
        Policy::PriorityBandedConnection(bands)
    }

    /// ServerProtocolPolicy, of an adapter: by which protocols its objects are reached, best first.
    pub fn create_server_protocol_policy(&self, protocols: Vec<Protocol>) -> Policy {
        Policy::ServerProtocol(protocols)
    }

    /// ClientProtocolPolicy, of a client or an adapter: which protocols a client shall use, best first.
    pub fn create_client_protocol_policy(&self, protocols: Vec<Protocol>) -> Policy {
        Policy::ClientProtocol(protocols)
    }

    /// PrivateConnectionPolicy, of a client: a reference's connection is not used by any other one.
    pub fn create_private_connection_policy(&self) -> Policy {
        Policy::PrivateConnection
    }

    /// IIOP with these properties, for a list of protocols.
    pub fn create_tcp_protocol_properties(&self, properties: TcpProtocolProperties) -> Protocol {
        Protocol::Tcp(properties)
    }

    /// GIOP over UNIX sockets with these properties, for a list of protocols.
    pub fn create_unix_domain_protocol_properties(
        &self,
        properties: UnixDomainProtocolProperties,
    ) -> Protocol {
        Protocol::UnixDomain(properties)
    }

    /// A mutex whose holder inherits the priority of who waits, around a value; `()` for a bare one.
    pub fn create_mutex<T>(&self, value: T) -> RtMutex<T> {
        RtMutex::new(value)
    }

    /// The mutex of that name in this ORB, and true if it was made for this call. The name goes with its last clone.
    pub fn create_named_mutex(&self, name: &str) -> (RtMutex, bool) {
        self.orb.core.rt.named_mutexes.create(name)
    }

    /// The mutex of that name in this ORB.
    ///
    /// # Errors
    /// [`MutexNotFound`] when nobody has one of that name.
    pub fn open_named_mutex(&self, name: &str) -> Result<RtMutex, MutexNotFound> {
        self.orb.core.rt.named_mutexes.open(name)
    }

    fn start(
        &self,
        pool: LanedThreadpool,
        has_lanes: HasLanes,
    ) -> Result<ThreadpoolId, SystemException> {
        self.orb.core.check_running()?;
        check(&pool.lanes)?;
        let lanes: Result<Vec<_>, _> = pool
            .lanes
            .iter()
            .map(|lane| self.lane(lane, pool.stacksize))
            .collect();
        let lanes = lanes?;
        let threads = pool
            .lanes
            .iter()
            .map(|lane| u64::from(lane.static_threads) + u64::from(lane.dynamic_threads))
            .sum();
        let core = &self.orb.core;
        core.rt
            .pools
            .add(threads, core.limits.pool_threads_max, |id| {
                let config = PoolConfig {
                    id,
                    lanes,
                    has_lanes: has_lanes == HasLanes::Yes,
                    allow_borrowing: pool.allow_borrowing,
                    buffering: pool.request_buffering.map(buffering),
                };
                self.open(config)
            })
    }

    /// Opens the pool's endpoints and starts its threads.
    fn open(&self, config: PoolConfig) -> Result<Arc<Pool>, SystemException> {
        let core = &self.orb.core;
        let open = |lane| {
            let listen = core.lane_endpoints.of_lane(&core.listen, config.id, lane);
            endpoints::open(&listen)
        };
        let listeners: Result<Vec<_>, _> = (0..config.lanes.len()).map(open).collect();
        Pool::start(core, config, listeners?).map_err(not_started)
    }

    fn lane(&self, lane: &ThreadpoolLane, stacksize: usize) -> Result<LaneConfig, SystemException> {
        let core = &self.orb.core;
        // The pool makes its threads' policy of the priority, and could not say what was wrong with it.
        core.rt.to_native(lane.lane_priority)?;
        let threads = ThreadConfig {
            policy: None,
            affinity: core.server_threads.affinity.clone(),
            stack_bytes: (stacksize > 0).then_some(stacksize),
        };
        Ok(LaneConfig {
            priority: Some(lane.lane_priority),
            static_threads: lane.static_threads,
            dynamic_threads: lane.dynamic_threads,
            threads,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HasLanes {
    Yes,
    No,
}

/// BAD_PARAM for lanes that nobody could serve, or that could not be told from each other.
fn check(lanes: &[ThreadpoolLane]) -> Result<(), SystemException> {
    let priorities: BTreeSet<_> = lanes.iter().map(|lane| lane.lane_priority).collect();
    let is_right = !lanes.is_empty()
        && lanes.iter().all(|lane| lane.static_threads > 0)
        && priorities.len() == lanes.len();
    match is_right {
        true => Ok(()),
        false => Err(ExceptionKind::BadParam.into()),
    }
}

fn buffering(bounds: RequestBuffering) -> Buffering {
    Buffering {
        requests_max: bounds.max_buffered_requests,
        octets_max: bounds.max_request_buffer_size,
    }
}

/// Why a pool could not be started, as an exception.
fn not_started(error: DispatchError) -> SystemException {
    match error {
        DispatchError::Refused(refused) => refusal(refused),
        DispatchError::System(_) => ExceptionKind::NoResources.into(),
    }
}
