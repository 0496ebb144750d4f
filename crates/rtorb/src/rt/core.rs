//! What an ORB knows of real time: mappings, transforms, scheduling, thread pools, named mutexes.

use super::best_effort::BestEffort;
use super::current;
use super::mapping::{NativeMapping, PriorityMapping};
use super::mutex::NamedMutexes;
use super::network_priority::{NetworkPriority, NetworkPriorityMapping};
use super::policy::Policy;
use super::pools::Pools;
use super::priority::{NativePriority, Priority};
use super::threadpool::ThreadpoolLane;
use super::transform::{Transforms, transformed};
use crate::dispatch::pool::Pool;
use crate::exception::{ExceptionKind, SystemException};
use rtorb_os::Resource;
use rtorb_os::sched::{SchedPolicy, apply_policy};
use rtorb_os::thread::{ThreadConfig, spawn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

/// The real-time part of an ORB.
#[derive(Debug)]
pub(crate) struct RtCore {
    pub(crate) mapping: Arc<dyn PriorityMapping>,
    pub(crate) network_mapping: Arc<dyn NetworkPriorityMapping>,
    pub(crate) transforms: Transforms,
    /// True for SCHED_RR in the place of SCHED_FIFO.
    pub(crate) round_robin: bool,
    pub(crate) best_effort: BestEffort,
    /// The lanes of the pool that serves adapters without one of their own; for `DispatchStrategy::Lanes`.
    pub(crate) lanes: Vec<ThreadpoolLane>,
    /// Policies of every reference that does not override them.
    pub(crate) client_policies: Vec<Policy>,
    /// That pool, from when the ORB listens; empty with other strategies.
    pub(crate) own_pool: OnceLock<Arc<Pool>>,
    /// The application's pools.
    pub(crate) pools: Pools,
    pub(crate) named_mutexes: NamedMutexes,
}

impl Default for RtCore {
    fn default() -> Self {
        let mapping = Arc::new(NativeMapping);
        Self {
            network_mapping: super::default_network_mapping(&*mapping),
            mapping,
            transforms: Transforms::default(),
            round_robin: false,
            best_effort: BestEffort::default(),
            lanes: Vec::new(),
            client_policies: Vec::new(),
            own_pool: OnceLock::new(),
            pools: Pools::default(),
            named_mutexes: NamedMutexes::default(),
        }
    }
}

impl RtCore {
    /// The native priority of a CORBA priority.
    ///
    /// # Errors
    /// DATA_CONVERSION 2 when the mapping has none.
    #[inline]
    pub(crate) fn to_native(&self, priority: Priority) -> Result<NativePriority, SystemException> {
        self.mapping
            .to_native(priority)
            .ok_or_else(|| SystemException::omg(ExceptionKind::DataConversion, 2))
    }

    /// The priority at which a servant runs that is called with `priority`: what the inbound transform says.
    ///
    /// # Errors
    /// DATA_CONVERSION 2 when the transform refuses; UNKNOWN when it panics.
    #[inline]
    pub(crate) fn inbound(
        &self,
        priority: Priority,
        object_id: &[u8],
    ) -> Result<Priority, SystemException> {
        let inbound = self.transforms.inbound.as_ref();
        if inbound.is_none() {
            return Ok(priority);
        }
        // A panic there is for this client, and nothing for the thread that serves others too.
        catch_unwind(AssertUnwindSafe(|| {
            transformed(inbound, priority, object_id)
        }))
        .unwrap_or_else(|_| Err(ExceptionKind::Unknown.into()))
    }

    /// The priority that a call goes out with which a thread of `priority` makes: what the outbound transform says.
    ///
    /// # Errors
    /// DATA_CONVERSION 2 when the transform refuses.
    #[inline]
    pub(crate) fn outbound(
        &self,
        priority: Priority,
        object_key: &[u8],
    ) -> Result<Priority, SystemException> {
        transformed(self.transforms.outbound.as_ref(), priority, object_key)
    }

    /// The marks of packets of calls with that priority.
    pub(crate) fn network_priority(&self, priority: Priority) -> NetworkPriority {
        self.network_mapping.to_network(priority)
    }

    /// The scheduling policy of threads with that native priority.
    #[inline]
    pub(crate) fn policy(&self, native: NativePriority) -> SchedPolicy {
        match native {
            0 => SchedPolicy::Other,
            _ if self.round_robin => SchedPolicy::RoundRobin(native),
            _ => SchedPolicy::Fifo(native),
        }
    }

    /// Gives the calling thread that native priority; leaves it where the host refuses and best effort is allowed.
    ///
    /// # Errors
    /// NO_PERMISSION, with what the host said.
    pub(crate) fn apply(&self, native: NativePriority) -> Result<(), SystemException> {
        self.apply_policy(self.policy(native))
    }

    /// As [`apply`](Self::apply), for any policy.
    pub(crate) fn apply_policy(&self, policy: SchedPolicy) -> Result<(), SystemException> {
        apply_policy(policy)
            .or_else(|refused| self.best_effort.pass(refused))
            .map_err(|refused| current::refused(refused.errno))
    }

    /// How threads can run that shall run as `config` says: without its policy where the host refuses that and best effort
    /// is allowed. For whoever makes threads at start; where it is not allowed, making the thread fails.
    ///
    /// The host is asked by a thread that is made for it: what a container forbids, no table tells.
    pub(crate) fn obtainable(&self, config: &ThreadConfig) -> ThreadConfig {
        let is_asked = self.best_effort.is_allowed() && config.policy.is_some();
        let refused = is_asked
            .then(|| spawn("rtorb-probe", config, || ()).err())
            .flatten()
            .filter(|refused| matches!(refused.resource, Resource::Policy(_)));
        match refused.map(|refused| self.best_effort.pass(refused)) {
            None | Some(Err(_)) => config.clone(),
            Some(Ok(())) => ThreadConfig {
                policy: None,
                ..config.clone()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orb::{Orb, OrbError};
    use crate::rt::{LanedThreadpool, Threadpool};
    use crate::strategies::DispatchStrategy;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

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
            dynamic_threads: 0,
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
    fn best_effort_goes_on_without_it_and_says_so_once() {
        where_it_is_refused(|| {
            let times = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&times);
            let builder = Orb::builder().best_effort_telling(move |refused| {
                assert!(refused.to_string().contains("CAP_SYS_NICE"), "{refused}");
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
