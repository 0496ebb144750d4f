//! The policies of a reference: sets and returns them, and validates connections before calls.

use super::binding::states_marks;
use super::timeout::CallTime;
use super::{Inner, ObjectRef};
use crate::connection::InvocationKind;
use crate::exception::{ExceptionKind, SystemException, local};
use crate::realtime::{Policy, Priority, is_band};
use crate::timing::OperationTiming;
use core::{iter, ptr};
use std::collections::BTreeSet;
use std::sync::Arc;

impl ObjectRef {
    /// Returns a reference to the same object with other policies, which replace policies of the same type of this reference and of the
    /// ORB (CORBA::Object::set_policy_overrides, ADD_OVERRIDE).
    ///
    /// A call, or [`validate_connection`](Self::validate_connection), checks whether they are compatible with those of the object's
    /// adapter. A reference with PrivateConnection has connections that no other reference uses, not even this one.
    ///
    /// # Errors
    /// NO_PERMISSION for PriorityModel, Threadpool and ServerProtocol, which belong to adapters; BAD_PARAM for a band whose
    /// `low` is negative or above its `high`.
    //= RT-CORBA 1.2 §PrivateConnectionPolicy
    //# A reference with a private connection shares its connection with no other reference.
    pub fn set_policy_overrides(&self, policies: &[Policy]) -> Result<Self, SystemException> {
        check_policies(policies)?;
        let is_replaced = |old: &&Policy| !policies.iter().any(|new| new.name() == old.name());
        let kept = self.inner.overrides.iter().filter(is_replaced);
        let overrides: Arc<[Policy]> = kept.chain(policies).cloned().collect();
        let (client, ior) = (self.inner.client.clone(), self.inner.ior.clone());
        let (timeout, operations) = (self.inner.timeout, self.inner.operations);
        let mut made = Self::with_policies(client, ior, overrides, timeout, operations);
        if let Some(inner) = Arc::get_mut(&mut made.inner) {
            inner.sync_scope = self.inner.sync_scope;
        }
        Ok(made)
    }

    /// Returns the same reference, with a connection for each network priority that its interface states (`@network_priority`).
    pub(crate) fn with_operations(self, operations: &'static [OperationTiming]) -> Self {
        let inner = &self.inner;
        if !states_marks(operations) || ptr::eq(inner.operations, operations) {
            return self;
        }
        let binding = inner
            .policies
            .binding(&inner.client.core, &inner.routes, operations);
        let conflict = inner.binding.as_deref().and_then(|it| it.as_ref().err());
        let binding = match conflict {
            Some(exception) => Some(Err(exception.clone())),
            None => binding.transpose(),
        };
        Self::of(Inner {
            operations,
            binding: binding.map(Box::new),
            ..inner.copy()
        })
    }

    /// Returns the policies of calls through this reference: of each type, the reference's own, or the ORB's, or the one that the
    /// object's adapter exposes (CORBA::Object::get_policy_overrides and the components of the reference).
    pub fn policies(&self) -> Vec<Policy> {
        self.inner.policies.in_force()
    }

    /// Opens the calling thread's connection to the object, or with bands one connection for each band, and one more of each for every
    /// network priority that the operations of its interface state (`@network_priority`). Asks the server whether
    /// the object exists (CORBA::Object::validate_connection). So no later call waits for that, or sends the code set. The timeout of
    /// one call bounds all of this.
    ///
    /// # Errors
    /// INV_POLICY if policies are not compatible, with their names; OBJECT_NOT_EXIST if the object does not exist; otherwise as a
    /// call.
    //= RT-CORBA 1.2 §Implicit and Explicit Binding
    //# validate_connection opens the connections that calls will use, and fails if the policies are not compatible.
    pub fn validate_connection(&self) -> Result<(), SystemException> {
        let bands = match self.inner.binding.as_deref() {
            Some(Ok(binding)) => binding.bands(),
            _ => &[],
        };
        let stated = self
            .inner
            .operations
            .iter()
            .filter_map(OperationTiming::dscp);
        let stated = BTreeSet::from_iter(stated).into_iter().map(Some);
        let time = &mut self.begin();
        for dscp in iter::once(None).chain(stated) {
            if bands.is_empty() {
                self.locate(None, dscp, time)?;
            }
            for band in bands {
                self.locate(Priority::new(band.low).ok(), dscp, time)?;
            }
        }
        Ok(())
    }

    /// Validates the connection that calls with this CORBA priority use, as [`validate_connection`](Self::validate_connection) does for
    /// the calling thread's own priority. So a thread that may wait can open and check the connection of an urgent lane.
    ///
    /// Other threads can use the connection if connections are shared (`multiplexed` and `banded`).
    ///
    /// # Errors
    /// As [`validate_connection`](Self::validate_connection); INV_POLICY when no lane or band has the priority.
    pub fn validate_connection_at(&self, priority: Priority) -> Result<(), SystemException> {
        let inner = &self.inner;
        let sent = match inner.binding.as_deref() {
            Some(Ok(binding)) => binding.sent(priority, &inner.client.core, &inner.routes)?,
            _ => priority,
        };
        self.locate(Some(sent), None, &mut self.begin())
    }

    /// Opens a connection and asks for the object, as a part of a call with this time.
    fn locate(
        &self,
        at: Option<Priority>,
        dscp: Option<u8>,
        time: &mut CallTime,
    ) -> Result<(), SystemException> {
        let mut ask = || {
            let kind = InvocationKind::Locate { at, dscp };
            let asked = self.ask_whether_gone(kind, "_non_existent", *time);
            time.is_delayed = true;
            asked
        };
        let is_gone = match ask() {
            // GIOP 1.0 and 1.1 use an older name for the operation. But a server that replied has received the code sets.
            Err(exception) if exception.kind == ExceptionKind::BadOperation => ask()?,
            answer => answer?,
        };
        if is_gone {
            return Err(local::OBJECT_GONE);
        }
        Ok(())
    }
}

/// Checks policies of a client.
///
/// # Errors
/// Those of [`ObjectRef::set_policy_overrides`].
pub(super) fn check_policies(policies: &[Policy]) -> Result<(), SystemException> {
    if policies.iter().any(Policy::is_server_only) {
        return Err(local::POLICY_OF_ADAPTER);
    }
    let is_wrong = |policy: &Policy| matches!(policy, Policy::PriorityBandedConnection(bands) if !bands.iter().all(is_band));
    if policies.iter().any(is_wrong) {
        return Err(local::WRONG_BANDS);
    }
    Ok(())
}
