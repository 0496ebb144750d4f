//! The RT-CORBA policies of an adapter, checked when the adapter is made.

use super::PoaError;
use super::chosen_policies::{Chosen, has_lane, in_a_band, invalid, laned};
use crate::dispatch::pool::Pool;
use crate::exception::{SystemException, local};
use crate::poa::Adapters;
use crate::realtime::{
    CallPriority, DeclaredPriority, Policy, Priority, PriorityBand, PriorityModel, Protocol,
    ServerPriority, ThreadpoolId,
};
use std::sync::Arc;

/// The checked RT-CORBA policies of one adapter.
#[derive(Debug, Default)]
pub(crate) struct RtPolicies {
    /// The priority model, and the server's priority, which may change.
    model: Option<(PriorityModel, ServerPriority)>,
    /// The adapter's own pool, lent from the ORB.
    pub(crate) pool: Option<Arc<Pool>>,
    /// Empty without the policy.
    pub(crate) bands: Vec<PriorityBand>,
    /// The protocols that lead to its objects; `None` for all.
    pub(crate) server_protocols: Option<Vec<Protocol>>,
    /// The protocols that its references ask clients to use.
    pub(crate) client_protocols: Option<Vec<Protocol>>,
}

impl RtPolicies {
    /// Checks that the policies are compatible with each other and with the ORB, and reserves the thread pool.
    ///
    /// # Errors
    /// [`PoaError::InvalidPolicy`] with the index of the first incompatible policy.
    pub(super) fn new(orb: &Adapters, policies: &[Policy]) -> Result<Self, PoaError> {
        let mut chosen = Chosen::default();
        for (index, policy) in policies.iter().enumerate() {
            chosen.add(index, policy)?;
        }
        let lent = match chosen.pool {
            None => None,
            Some((index, id)) => {
                let lent = orb.pools.lend(id);
                Some(lent.ok_or(invalid(index, "the ORB has no such thread pool"))?)
            }
        };
        let checked = chosen.check(orb, lent.as_ref());
        if let (Err(_), Some(pool)) = (&checked, &lent) {
            orb.pools.give_back(pool.config.id);
        }
        checked?;
        Ok(Self {
            model: chosen
                .model
                .map(|(_, (model, priority))| (model, ServerPriority::new(priority))),
            pool: lent,
            bands: chosen
                .bands
                .map_or_else(Vec::new, |(_, bands)| bands.to_vec()),
            server_protocols: chosen.server_protocols.map(|(_, list)| list.to_vec()),
            client_protocols: chosen.client_protocols.map(<[Protocol]>::to_vec),
        })
    }

    /// The priority model, and the server's priority.
    pub(crate) fn model(&self) -> Option<(PriorityModel, Priority)> {
        let model = self.model.as_ref();
        model.map(|(model, priority)| (*model, priority.get()))
    }

    /// Changes the server's priority.
    ///
    /// # Errors
    /// As [`call_priority`](Self::call_priority).
    pub(super) fn change_server_priority(
        &self,
        orb: &Adapters,
        priority: Priority,
    ) -> Result<(), SystemException> {
        orb.server.rt.to_native(priority)?;
        if self.declares() {
            self.check_own(orb, Some(priority))?;
        }
        if let Some((_, server_priority)) = &self.model {
            server_priority.set(priority);
        }
        Ok(())
    }

    /// True without any policy: references contain no RT-CORBA components.
    pub(crate) fn is_plain(&self) -> bool {
        self.model.is_none()
            && self.pool.is_none()
            && self.bands.is_empty()
            && self.server_protocols.is_none()
            && self.client_protocols.is_none()
    }

    /// The pool whose threads serve the adapter's objects.
    pub(crate) fn pool_id(&self) -> ThreadpoolId {
        self.pool
            .as_ref()
            .map_or(ThreadpoolId::OWN, |pool| pool.config.id)
    }

    /// The pool with lanes that serves the adapter's objects, if it has them: its own, else the ORB's.
    pub(crate) fn laned_pool<'p>(&'p self, orb: &'p Adapters) -> Option<&'p Pool> {
        laned(orb, self.pool.as_ref())
    }

    /// True if objects have a priority: their adapter's, or one of their own.
    pub(super) fn declares(&self) -> bool {
        matches!(self.model, Some((PriorityModel::ServerDeclared, _)))
    }

    /// The priority of calls of an object, with one of its own or its adapter's.
    ///
    /// # Errors
    /// BAD_PARAM for a priority without a lane or band; DATA_CONVERSION 2 for a priority without a native one.
    //= RT-CORBA 1.2 §Real-Time CORBA Priority Models
    //# With SERVER_DECLARED a servant runs at the priority of its object, or else of its adapter.
    pub(super) fn call_priority(
        &self,
        orb: &Adapters,
        own: Option<Priority>,
    ) -> Result<CallPriority, SystemException> {
        let (model, server_priority) = match self.model() {
            None => return Ok(CallPriority::AsItIs),
            Some(model) => model,
        };
        if model == PriorityModel::ClientPropagated {
            return Ok(CallPriority::Propagated {
                otherwise: ServerPriority::new(server_priority),
            });
        }
        let priority = own.unwrap_or(server_priority);
        self.check_own(orb, own)?;
        let native = orb.server.rt.to_native(priority)?;
        let declared = DeclaredPriority::new(priority, native, own.is_some());
        Ok(CallPriority::Declared(declared))
    }

    /// BAD_PARAM for an object's own priority that has no lane or is in no band.
    //= RT-CORBA 1.2 §Real-Time POA
    //# The priority of an object must be one of the pool's lanes, if it has lanes.
    pub(super) fn check_own(
        &self,
        orb: &Adapters,
        own: Option<Priority>,
    ) -> Result<(), SystemException> {
        let is_served = own.is_none_or(|own| {
            let has_lane = self.laned_pool(orb).is_none_or(|pool| has_lane(pool, own));
            has_lane && (self.bands.is_empty() || in_a_band(&self.bands, own))
        });
        if is_served {
            return Ok(());
        }
        Err(local::PRIORITY_UNSERVED)
    }
}
