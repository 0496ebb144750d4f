//! Real-time settings of an ORB: mappings, transforms, scheduling, client policies, named mutexes.

use super::best_effort::BestEffort;
use super::current;
use super::mapping::{NativeMapping, PriorityMapping};
use super::mutex::NamedMutexes;
use super::network_priority::{NetworkPriority, NetworkPriorityMapping};
use super::policy::Policy;
use super::priority::{NativePriority, Priority};
use super::transform::{Transforms, transformed};
use crate::exception::{ExceptionKind, SystemException};
use rtorb_os::Resource;
use rtorb_os::sched::{SchedPolicy, apply_policy};
use rtorb_os::thread::{ThreadConfig, spawn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The real-time part of an ORB.
#[derive(Debug)]
pub(crate) struct RtCore {
    pub(crate) mapping: Arc<dyn PriorityMapping>,
    pub(crate) network_mapping: Arc<dyn NetworkPriorityMapping>,
    pub(crate) transforms: Transforms,
    /// True for SCHED_RR in the place of SCHED_FIFO.
    pub(crate) round_robin: bool,
    pub(crate) best_effort: BestEffort,
    /// Policies of every reference that does not override them.
    pub(crate) client_policies: Vec<Policy>,
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
            client_policies: Vec::new(),
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
    //= RT-CORBA 1.2 §CORBA Priority Mappings
    //# A call whose priority has no native priority fails with DATA_CONVERSION 2.
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
    //= RT-CORBA 1.2 §Priority Transforms
    //# The outbound transform is applied to the priority of a call that a servant makes before it is sent.
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
