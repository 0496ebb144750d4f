//! The RT-CORBA side of an ORB: makes thread pools, policies and mutexes (RTCORBA::RTORB).

use super::Orb;
use super::config::check_lanes;
use super::lane_levels::{check_levels, check_reserved_cpus};
use crate::dispatch::DestroyThreadpoolError;
use crate::dispatch::pool::{self, Buffering, Intake, LaneConfig, Pool, PoolConfig};
use crate::exception::{Cause, Phase, SystemException, local};
use crate::realtime::{
    LanedThreadpool, MutexNotFound, Policy, Priority, PriorityBand, PriorityModel, Protocol,
    RtMutex, TcpProtocolProperties, Threadpool, ThreadpoolId, ThreadpoolLane, of_mapping, refusal,
};
use crate::server::is_in_upcall;
use crate::strategies::RequestOrder;
use crate::transport::Listener;
use rtorb_os::thread::ThreadConfig;
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
    pub(super) orb: Orb,
}

impl RtOrb {
    pub(crate) fn new(orb: Orb) -> Self {
        Self { orb }
    }

    /// Starts a pool without lanes, with listening endpoints of its own.
    ///
    /// # Errors
    /// BAD_PARAM without a static thread; DATA_CONVERSION 2 for a default priority that this host does not support;
    /// NO_RESOURCES beyond `Limits::pool_threads_max`, or if the host refuses a thread; NO_PERMISSION with the host's reason if it
    /// refuses the scheduling; INITIALIZE if an endpoint cannot be opened.
    pub fn create_threadpool(&self, pool: Threadpool) -> Result<ThreadpoolId, SystemException> {
        let lane = ThreadpoolLane {
            lane_priority: pool.default_priority,
            static_threads: pool.static_threads,
            dynamic_threads: pool.dynamic_threads,
            ..ThreadpoolLane::default()
        };
        self.start(
            LanedThreadpool {
                stacksize: pool.stacksize,
                lanes: vec![lane],
                allow_borrowing: false,
                request_buffering: pool.request_buffering,
            },
            false,
        )
    }

    /// Starts a pool of lanes, each with listening endpoints of its own.
    ///
    /// # Errors
    /// BAD_PARAM without a lane, for a lane without a static thread, or for two lanes of one priority; if a lane has another
    /// [order](crate::rt::RequestOrder) than fifo, also for dynamic threads in it, for borrowing, and for native priorities of its levels that
    /// the host or another lane has; otherwise as [`create_threadpool`](Self::create_threadpool).
    pub fn create_threadpool_with_lanes(
        &self,
        pool: LanedThreadpool,
    ) -> Result<ThreadpoolId, SystemException> {
        self.start(pool, true)
    }

    /// Destroys a pool: requests in progress get their replies, its threads end, its endpoints are closed.
    ///
    /// # Errors
    /// InvalidThreadpool; BAD_INV_ORDER while an adapter uses it, and 3 in a servant: a thread would wait for itself.
    pub fn destroy_threadpool(&self, id: ThreadpoolId) -> Result<(), DestroyThreadpoolError> {
        let core = &self.orb.core.adapters;
        if is_in_upcall(&core.server) {
            return Err(local::WOULD_DEADLOCK.into());
        }
        core.pools.destroy(id)
    }

    /// PriorityModelPolicy, of an adapter: whether client or object determines the priority of a call. `server_priority` is
    /// the priority of the objects, or of requests without a priority.
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

    /// ServerProtocolPolicy, of an adapter: the protocols that lead to its objects, best first.
    pub fn create_server_protocol_policy(&self, protocols: Vec<Protocol>) -> Policy {
        Policy::ServerProtocol(protocols)
    }

    /// ClientProtocolPolicy, of a client or an adapter: the protocols for clients to use, best first.
    pub fn create_client_protocol_policy(&self, protocols: Vec<Protocol>) -> Policy {
        Policy::ClientProtocol(protocols)
    }

    /// PrivateConnectionPolicy, of a client: no other reference uses the reference's connection.
    pub fn create_private_connection_policy(&self) -> Policy {
        Policy::PrivateConnection
    }

    /// IIOP with these properties, for a list of protocols.
    pub fn create_tcp_protocol_properties(&self, properties: TcpProtocolProperties) -> Protocol {
        Protocol::Tcp(properties)
    }

    /// Makes a mutex with priority inheritance that guards a value; use `()` for no value.
    pub fn create_mutex<T>(&self, value: T) -> RtMutex<T> {
        RtMutex::new(value)
    }

    /// Returns the mutex with this name in this ORB, and true if this call made it. Dropping the last clone frees the name.
    pub fn create_named_mutex(&self, name: &str) -> (RtMutex, bool) {
        self.orb.core.client.rt.named_mutexes.create(name)
    }

    /// Returns the mutex with this name in this ORB.
    ///
    /// # Errors
    /// [`MutexNotFound`] if no mutex with that name is in use.
    pub fn open_named_mutex(&self, name: &str) -> Result<RtMutex, MutexNotFound> {
        self.orb.core.client.rt.named_mutexes.open(name)
    }

    fn start(
        &self,
        pool: LanedThreadpool,
        has_lanes: bool,
    ) -> Result<ThreadpoolId, SystemException> {
        let core = &self.orb.core.adapters;
        core.server.check_running()?;
        self.check(&pool)
            .map_err(|wrong| local::WRONG_LANES.with_detail(wrong))?;
        let lanes = pool.lanes.iter();
        let threads = lanes
            .clone()
            .map(|lane| u64::from(lane.static_threads) + u64::from(lane.dynamic_threads))
            .sum();
        let lanes = lanes.map(|lane| self.lane(lane, pool.stacksize));
        let mut lanes = lanes.collect::<Result<Vec<_>, _>>()?;
        core.pools.add(threads, |id| {
            for (number, lane) in lanes.iter_mut().enumerate() {
                lane.name = LaneConfig::name(id, number);
            }
            let config = PoolConfig {
                id,
                lanes,
                has_lanes,
                allow_borrowing: pool.allow_borrowing,
                intake: pool.request_buffering.map_or(Intake::Direct, |bounds| {
                    Intake::Queue(Buffering {
                        requests_max: bounds.max_buffered_requests,
                        bytes_max: bounds.max_request_buffer_size,
                        bounds_connections: false,
                    })
                }),
            };
            let listeners = core.pools.open_endpoints(&config)?;
            self.begin(config, listeners)
        })
    }

    /// Opens a pool with the listening endpoints of each lane, and starts its threads.
    pub(super) fn begin(
        &self,
        config: PoolConfig,
        listeners: Vec<Vec<Listener>>,
    ) -> Result<Arc<Pool>, SystemException> {
        let server = &self.orb.core.adapters.server;
        let pool = Pool::open(server, config, listeners).map_err(|errno| {
            local::DESCRIPTOR_REFUSED.with_cause(Cause::host(Phase::Listen, errno))
        })?;
        pool::begin(server, &pool).map_err(refusal)?;
        Ok(pool)
    }

    fn check(&self, pool: &LanedThreadpool) -> Result<(), String> {
        check_lanes(&pool.lanes)?;
        let is_special =
            |lane: &&ThreadpoolLane| lane.order != RequestOrder::Fifo || lane.reservation.is_some();
        if let Some(lane) = pool
            .lanes
            .iter()
            .find(is_special)
            .filter(|_| pool.allow_borrowing)
        {
            return Err(format!(
                "the lane of priority {} has levels or reservations, and such threads are not lent: do not allow borrowing",
                lane.lane_priority
            ));
        }
        check_reserved_cpus(&pool.lanes, &self.orb.core.adapters.server.server_threads)?;
        check_levels(&pool.lanes, &*self.orb.core.adapters.server.rt.mapping)
    }

    fn lane(&self, lane: &ThreadpoolLane, stacksize: usize) -> Result<LaneConfig, SystemException> {
        let core = &self.orb.core.adapters.server;
        // The pool derives its threads' policy from the priority; an unmappable priority is reported here.
        let native = core.rt.to_native(lane.lane_priority);
        native.map_err(|refused| refused.with_detail(of_mapping(&core.rt, lane.lane_priority)))?;
        let threads = ThreadConfig {
            policy: None,
            affinity: core.server_threads.affinity.clone(),
            stack_bytes: (stacksize > 0).then_some(stacksize),
        };
        Ok(LaneConfig::of_lane(String::new(), lane, threads))
    }
}

#[cfg(test)]
mod tests {
    use crate::dispatch::pool;
    use crate::endpoint::Endpoint;
    use crate::exception::ExceptionKind;
    use crate::orb::{Orb, OrbError};
    use crate::realtime::{ClientThread, LanedThreadpool, Priority, Threadpool, ThreadpoolLane};
    use crate::strategies::DispatchStrategy;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use rtorb_os::sched::SchedPolicy;
    use rtorb_os::sync::Mutex;
    use rtorb_os::thread::ThreadConfig;
    use rtorb_tests::raw::{CLOSE_CONNECTION, Connection};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
    use std::sync::Arc;

    /// Carries out `work` on a thread that the host refuses real-time scheduling, as it does for those that it makes.
    fn where_it_is_refused(work: impl FnOnce() + Send) {
        let limit = getrlimit(Resource::Rtprio);
        setrlimit(
            Resource::Rtprio,
            Rlimit {
                current: Some(0),
                ..limit
            },
        )
        .expect("lower");
        std::thread::scope(|scope| {
            let refused = scope.spawn(|| {
                let mut held = capabilities(None).expect("of this thread");
                held.effective.remove(CapabilitySet::SYS_NICE);
                set_capabilities(None, held).expect("fewer");
                work();
            });
            refused.join().expect("no panic");
        });
    }

    fn lanes() -> LanedThreadpool {
        let lane = |number| ThreadpoolLane {
            lane_priority: Priority::new(number).expect("legal"),
            static_threads: 1,
            ..ThreadpoolLane::default()
        };
        LanedThreadpool {
            lanes: vec![lane(1), lane(50)],
            ..LanedThreadpool::default()
        }
    }

    #[test]
    fn what_the_host_refuses_is_an_error() {
        where_it_is_refused(|| {
            let orb = Orb::builder().build().expect("an ORB");
            let refused = orb
                .rt_current()
                .set_the_priority(Priority::new(50).expect("legal"));
            let refused = refused.expect_err("the host refuses");
            assert_eq!(refused.kind, ExceptionKind::NoPermission);
            let refused = orb.rt_orb().create_threadpool_with_lanes(lanes());
            assert_eq!(
                refused.expect_err("the host refuses").kind,
                ExceptionKind::NoPermission
            );
            // Time sharing needs no permission.
            let pool = orb.rt_orb().create_threadpool(Threadpool::default());
            orb.rt_orb()
                .destroy_threadpool(pool.expect("allowed"))
                .expect("unused");
        });
    }

    #[test]
    fn a_server_whose_threads_are_refused_ends_with_its_pools() {
        let strategies = [
            DispatchStrategy::Reactive,
            DispatchStrategy::LeaderFollowers,
            DispatchStrategy::FilterChain,
            DispatchStrategy::Lanes,
        ];
        where_it_is_refused(|| {
            for dispatch in strategies {
                let urgent = ThreadConfig {
                    policy: Some(SchedPolicy::Fifo(50)),
                    ..ThreadConfig::default()
                };
                let builder = Orb::builder().dispatch(dispatch).server_threads(urgent);
                let orb = builder.build().expect("an ORB");
                let pool = orb.rt_orb().create_threadpool(Threadpool::default());
                pool.expect("time sharing needs no permission");
                let refused = orb.run().expect_err("the host refuses");
                assert!(matches!(refused, OrbError::Refused(_)), "{refused}");
            }
        });
    }

    #[test]
    fn a_pool_whose_threads_are_refused_is_refused_to_each_caller_and_its_clients_are_told_so() {
        where_it_is_refused(|| {
            let urgent = ThreadConfig {
                policy: Some(SchedPolicy::Fifo(50)),
                ..ThreadConfig::default()
            };
            let builder = Orb::builder().dispatch(DispatchStrategy::Lanes);
            let orb = builder.server_threads(urgent).build().expect("an ORB");
            let adapters = &orb.core.adapters;
            let _server = adapters.open_server().expect("it listens");
            let pool = adapters.own_pool().expect("it is open");
            let lane = &pool.lanes[0];
            let Endpoint::Tcp { host, port } = &lane.server.listeners[0].bound else {
                panic!("the default endpoint is TCP");
            };
            let address = format!("{host}:{port}").parse().expect("numeric");
            let mut client = Connection::to(address);
            // As a thread that was allowed does before the next one is refused.
            lane.accept(&adapters.server, 0);
            let refused = pool::begin(&adapters.server, pool).expect_err("the host refuses");
            let told = client.answer().map(|it| it.kind);
            assert_eq!((told, client.answer()), (Some(CLOSE_CONNECTION), None));
            assert_eq!(pool::begin(&adapters.server, pool), Err(refused));
        });
    }

    #[test]
    fn the_hook_for_warnings_may_set_a_priority_above_the_one_that_was_refused() {
        where_it_is_refused(|| {
            let known = Arc::new(Mutex::new(None::<Orb>));
            let current = Arc::clone(&known);
            let builder = Orb::builder().best_effort().on_warning(move |_| {
                let orb = current.lock().clone().expect("it is built");
                let urgent = Priority::new(60).expect("legal");
                let set = orb.rt_current().set_the_priority(urgent);
                set.expect("best effort");
            });
            let orb = builder.build().expect("an ORB");
            *known.lock() = Some(orb.clone());
            let rt = &orb.core.adapters.server.rt;
            let (begin, begun) = std::sync::mpsc::channel::<()>();
            let (end, ended) = std::sync::mpsc::channel::<()>();
            // A thread that calls wait for, which the host keeps from becoming more urgent.
            let thread = ClientThread::new(rt, &ThreadConfig::default());
            let thread = thread.spawn("waits", move || {
                drop(begin);
                _ = ended.recv();
            });
            // Only a running thread gets a new priority.
            begun.recv().expect_err("nothing is sent");
            rt.keep_above(50).expect("best effort");
            assert_eq!(orb.rt_current().the_priority(), Priority::new(60));
            drop(end);
            thread.expect("allowed").join().expect("no panic");
            *known.lock() = None;
        });
    }

    #[test]
    fn best_effort_goes_on_without_it_and_says_so_once() {
        where_it_is_refused(|| {
            let times = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&times);
            let builder = Orb::builder().best_effort().on_warning(move |warning| {
                assert!(warning.to_string().contains("CAP_SYS_NICE"), "{warning}");
                counted.fetch_add(1, Ordering::Relaxed);
            });
            let orb = builder.build().expect("an ORB");
            assert_eq!(times.load(Ordering::Relaxed), 0);
            let urgent = Priority::new(50).expect("legal");
            let current = orb.rt_current();
            current.set_the_priority(urgent).expect("best effort");
            assert_eq!(current.the_priority(), Ok(urgent));
            let pool = orb.rt_orb().create_threadpool_with_lanes(lanes());
            orb.rt_orb()
                .destroy_threadpool(pool.expect("best effort"))
                .expect("unused");
            assert_eq!(times.load(Ordering::Relaxed), 1);
        });
    }
}
