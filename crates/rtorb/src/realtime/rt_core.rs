//! The real-time part of an ORB: mappings, transforms, scheduling, client policies, named mutexes.

use super::best_effort::BestEffort;
use super::client_threads::ClientThreads;
use super::current;
use super::demotion;
use super::mapping::PriorityMapping;
use super::mutex::NamedMutexes;
use super::network_priority::{NetworkPriority, NetworkPriorityMapping};
use super::policy::Policy;
use super::priority::{NativePriority, Priority};
use super::transform::{Transforms, transformed};
use crate::exception::{SystemException, local};
use rtorb_os::Resource;
use rtorb_os::sched::SchedPolicy;
use rtorb_os::thread::{ThreadConfig, spawn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The real-time settings of an ORB, and its named mutexes.
#[derive(Debug)]
pub(crate) struct RtCore {
    pub(crate) mapping: Arc<dyn PriorityMapping>,
    pub(crate) network_mapping: Arc<dyn NetworkPriorityMapping>,
    pub(crate) transforms: Transforms,
    /// True for SCHED_RR, false for SCHED_FIFO.
    pub(crate) round_robin: bool,
    pub(crate) best_effort: BestEffort,
    pub(crate) client_threads: ClientThreads,
    /// Policies of all references that do not override them.
    pub(crate) client_policies: Vec<Policy>,
    pub(crate) named_mutexes: NamedMutexes,
}

impl RtCore {
    /// Returns the native priority of a CORBA priority.
    ///
    /// # Errors
    /// DATA_CONVERSION 2 if the mapping has none.
    #[inline]
    //= RT-CORBA 1.2 §CORBA Priority Mappings
    //# A call whose priority has no native priority fails with DATA_CONVERSION 2.
    pub(crate) fn to_native(&self, priority: Priority) -> Result<NativePriority, SystemException> {
        self.mapping
            .to_native(priority)
            .ok_or(local::UNMAPPED_PRIORITY)
    }

    /// Applies the inbound transform to the priority of a call: the servant runs at the result.
    ///
    /// # Errors
    /// DATA_CONVERSION 2 if the transform refuses; UNKNOWN if it panics.
    #[inline]
    //= RT-CORBA 1.2 §Priority Transforms
    //# A server applies the inbound transform to the priority of a call before the servant runs.
    pub(crate) fn inbound(
        &self,
        priority: Priority,
        object_id: &[u8],
    ) -> Result<Priority, SystemException> {
        let inbound = self.transforms.inbound.as_ref();
        if inbound.is_none() {
            return Ok(priority);
        }
        // A panic in the transform must not end the thread, which serves other clients too.
        catch_unwind(AssertUnwindSafe(|| {
            transformed(inbound, priority, object_id)
        }))
        .unwrap_or(Err(local::TRANSFORM_PANICKED))
    }

    /// Applies the outbound transform to the priority of a call that a thread of `priority` makes.
    ///
    /// # Errors
    /// DATA_CONVERSION 2 if the transform refuses.
    #[inline]
    //= RT-CORBA 1.2 §Priority Transforms
    //# The outbound transform is applied to the priority of a call that a servant makes before it is sent.
    pub(crate) fn outbound(
        &self,
        priority: Priority,
        object_key: &[u8],
    ) -> Result<Priority, SystemException> {
        transformed(self.transforms.outbound.as_ref(), priority, object_key)
    }

    /// Returns the packet marks of calls with this priority.
    pub(crate) fn network_priority(&self, priority: Priority) -> NetworkPriority {
        self.network_mapping.to_network(priority)
    }

    /// Returns the scheduling policy of threads with this native priority.
    #[inline]
    pub(crate) fn policy(&self, native: NativePriority) -> SchedPolicy {
        match native {
            0 => SchedPolicy::Other,
            _ if self.round_robin => SchedPolicy::RoundRobin(native),
            _ => SchedPolicy::Fifo(native),
        }
    }

    /// Sets the native priority of the calling thread. With best effort, a refusal of the host leaves it unchanged.
    ///
    /// # Errors
    /// NO_PERMISSION, with the host's error.
    pub(crate) fn apply(&self, native: NativePriority) -> Result<(), SystemException> {
        self.apply_policy(self.policy(native))
    }

    /// Sets the policy of the calling thread, as [`apply`](Self::apply) does; that of a demoted thread changes when the demotion ends.
    pub(crate) fn apply_policy(&self, policy: SchedPolicy) -> Result<(), SystemException> {
        demotion::apply(policy)
            .or_else(|refused| self.best_effort.pass(refused))
            .map_err(|refused| current::refused(refused.errno))
    }

    /// Returns `config`, with a policy that the host permits: if best effort is allowed and the host refuses the policy, that of the
    /// thread that built the ORB. Without best effort, it returns `config` unchanged, and starting a thread fails.
    ///
    /// It starts a thread to find out, because a container may forbid scheduling that the limits permit.
    pub(crate) fn obtainable(&self, config: &ThreadConfig) -> ThreadConfig {
        let is_asked =
            self.best_effort.is_allowed() && config.policy.is_some_and(SchedPolicy::is_real_time);
        let refused = is_asked
            .then(|| spawn("rtorb-probe", config, || ()).err())
            .flatten()
            .filter(|refused| matches!(refused.resource, Resource::Policy(_)));
        match refused.map(|refused| self.best_effort.pass(refused)) {
            None | Some(Err(_)) => config.clone(),
            Some(Ok(())) => ThreadConfig {
                policy: Some(self.client_threads.own()),
                ..config.clone()
            },
        }
    }
}
