//! The policies of a reference: sets and returns them, and validates connections before calls.

use super::ObjectRef;
use crate::connection::InvocationKind;
use crate::exception::{ExceptionKind, SystemException, local};
use crate::realtime::{Policy, Priority, is_band};
use rtorb_wire::giop::Response;
use rtorb_wire::{Decode, Reader};
use std::sync::Arc;

impl ObjectRef {
    /// Returns a reference to the same object with other policies; they replace policies of the same type of this reference and
    /// of the ORB
    /// (CORBA::Object::set_policy_overrides, ADD_OVERRIDE).
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
        if policies.iter().any(Policy::is_server_only) {
            return Err(local::POLICY_OF_ADAPTER);
        }
        for policy in policies {
            if let Policy::PriorityBandedConnection(bands) = policy
                && !bands.iter().all(is_band)
            {
                return Err(local::WRONG_BANDS);
            }
        }
        let is_replaced = |old: &&Policy| !policies.iter().any(|new| new.name() == old.name());
        let kept = self.inner.overrides.iter().filter(is_replaced);
        let overrides: Arc<[Policy]> = kept.chain(policies).cloned().collect();
        let (client, ior) = (self.inner.client.clone(), self.inner.ior.clone());
        let mut made = Self::with_policies(client, ior, overrides, self.inner.timeout);
        if let Some(inner) = Arc::get_mut(&mut made.inner) {
            inner.sync_scope = self.inner.sync_scope;
        }
        Ok(made)
    }

    /// The policies that calls through this reference follow: the reference's own, else the ORB's, else those that the
    /// object's adapter exposes (CORBA::Object::get_policy_overrides and what stands in the reference).
    pub fn policies(&self) -> Vec<Policy> {
        self.inner.policies.in_force()
    }

    /// Opens the calling thread's connection to the object, or with bands one for each of them, and asks its server
    /// whether it is there (CORBA::Object::validate_connection): so that no call has to wait for that, nor to tell the server
    /// its code set.
    ///
    /// # Errors
    /// INV_POLICY when policies do not go together, which says which ones; OBJECT_NOT_EXIST when the object is not there;
    /// otherwise as a call.
    //= RT-CORBA 1.2 §Implicit and Explicit Binding
    //# validate_connection opens the connections that calls will use, and fails if the policies are not compatible.
    pub fn validate_connection(&self) -> Result<(), SystemException> {
        let bands = match self.inner.binding.as_deref() {
            Some(Ok(binding)) => binding.bands(),
            _ => &[],
        };
        if bands.is_empty() {
            return self.locate(None);
        }
        bands
            .iter()
            .try_for_each(|band| self.locate(Priority::new(band.low).ok()))
    }

    /// As [`validate_connection`](Self::validate_connection), for the connection that calls with that CORBA priority take,
    /// whatever the calling thread's own is: an urgent lane has its connection opened, and later asked whether it still leads
    /// to the object, by a thread that may wait.
    ///
    /// It is there for other threads where connections are no thread's own (`multiplexed` and `banded`).
    ///
    /// # Errors
    /// As [`validate_connection`](Self::validate_connection); INV_POLICY when no lane or band has the priority.
    pub fn validate_connection_at(&self, priority: Priority) -> Result<(), SystemException> {
        let inner = &self.inner;
        let sent = match inner.binding.as_deref() {
            Some(Ok(binding)) => binding.sent(priority, &inner.client.core, &inner.routes)?,
            _ => priority,
        };
        self.locate(Some(sent))
    }

    fn locate(&self, at: Option<Priority>) -> Result<(), SystemException> {
        let (kind, response) = (InvocationKind::Locate { at }, Response::FromTarget);
        let mut is_gone = false;
        let mut ask = || {
            // Only a Reply has results; a LocateReply has only a status.
            let results = &mut |_, r: &mut Reader<'_>| {
                is_gone = bool::decode(r)?;
                Ok(())
            };
            self.invoke_at(kind, "_non_existent", response, &|_| Ok(()), results)
        };
        match ask() {
            // GIOP 1.0 and 1.1 know the operation by an older name; but a server that replied has seen the code sets.
            Err(exception) if exception.kind == ExceptionKind::BadOperation => ask()?,
            answer => answer?,
        }
        if is_gone {
            return Err(local::OBJECT_GONE);
        }
        Ok(())
    }
}
