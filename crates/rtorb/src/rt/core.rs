//! What an ORB knows of real time: mappings, scheduling, transforms, thread pools.

use super::current;
use super::mapping::{NativeMapping, PriorityMapping};
use super::policy::Policy;
use super::priority::{NativePriority, Priority};
use super::threadpool::{ThreadpoolId, ThreadpoolLane};
use crate::dispatch::pool::Pool;
use crate::exception::{ExceptionKind, SystemException};
use rtorb_os::sched::{SchedPolicy, apply_policy};
use rtorb_os::sync::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The real-time part of an ORB.
#[derive(Debug)]
pub(crate) struct RtCore {
    pub(crate) mapping: Arc<dyn PriorityMapping>,
    /// True for SCHED_RR in the place of SCHED_FIFO.
    pub(crate) round_robin: bool,
    /// The lanes of the pool that serves adapters without one of their own; for `DispatchStrategy::Lanes`.
    pub(crate) lanes: Vec<ThreadpoolLane>,
    /// Policies of every reference that does not override them.
    pub(crate) client_policies: Vec<Policy>,
    pub(crate) pools: Mutex<BTreeMap<ThreadpoolId, Arc<Pool>>>,
}

impl Default for RtCore {
    fn default() -> Self {
        Self {
            mapping: Arc::new(NativeMapping),
            round_robin: false,
            lanes: Vec::new(),
            client_policies: Vec::new(),
            pools: Mutex::default(),
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

    /// The scheduling policy of threads with that native priority.
    #[inline]
    pub(crate) fn policy(&self, native: NativePriority) -> SchedPolicy {
        match native {
            0 => SchedPolicy::Other,
            _ if self.round_robin => SchedPolicy::RoundRobin(native),
            _ => SchedPolicy::Fifo(native),
        }
    }

    /// Gives the calling thread that native priority.
    pub(crate) fn apply(&self, native: NativePriority) -> Result<(), SystemException> {
        apply_policy(self.policy(native)).map_err(|refused| current::refused(refused.errno))
    }
}
