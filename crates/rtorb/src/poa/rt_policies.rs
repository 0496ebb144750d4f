//! What the RT-CORBA policies of an adapter come to: checked when it is made, and then only looked at.

use super::PoaError;
use crate::dispatch::pool::Pool;
use crate::endpoint::Endpoint;
use crate::exception::{ExceptionKind, SystemException};
use crate::orb::OrbCore;
use crate::rt::{
    CallPriority, Policy, Priority, PriorityBand, PriorityModel, Protocol, ThreadpoolId,
};
use std::sync::Arc;

/// The RT-CORBA policies of one adapter, which go together.
#[derive(Debug, Default)]
pub(crate) struct RtPolicies {
    /// Whose priority a call has, and the server's.
    pub(crate) model: Option<(PriorityModel, Priority)>,
    /// The adapter's own pool, lent from the ORB.
    pub(crate) pool: Option<Arc<Pool>>,
    /// Empty without the policy.
    pub(crate) bands: Vec<PriorityBand>,
    /// By which its objects are reached; `None` leaves all.
    pub(crate) server_protocols: Option<Vec<Protocol>>,
    /// Which a client is asked to use.
    pub(crate) client_protocols: Option<Vec<Protocol>>,
}

impl RtPolicies {
    /// Checks that the policies suit each other and the ORB, and borrows the pool.
    ///
    /// # Errors
    /// [`PoaError::InvalidPolicy`] with the index of the first one that does not.
    pub(super) fn new(orb: &OrbCore, policies: &[Policy]) -> Result<Self, PoaError> {
        let mut chosen = Chosen::default();
        for (index, policy) in policies.iter().enumerate() {
            chosen.add(index, policy)?;
        }
        let lent = match chosen.pool {
            None => None,
            Some((index, id)) => {
                let lent = orb.rt.pools.lend(id);
                Some(lent.ok_or(invalid(index, "the ORB has no such thread pool"))?)
            }
        };
        let checked = chosen.check(orb, lent.as_ref());
        if let (Err(_), Some(pool)) = (&checked, &lent) {
            orb.rt.pools.give_back(pool.config.id);
        }
        checked?;
        Ok(Self {
            model: chosen.model.map(|(_, model)| model),
            pool: lent,
            bands: chosen
                .bands
                .map_or_else(Vec::new, |(_, bands)| bands.to_vec()),
            server_protocols: chosen.server_protocols.map(|(_, list)| list.to_vec()),
            client_protocols: chosen.client_protocols.map(<[Protocol]>::to_vec),
        })
    }

    /// True without any policy: references tell nothing of real time.
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
    pub(crate) fn laned_pool<'p>(&'p self, orb: &'p OrbCore) -> Option<&'p Pool> {
        laned(orb, self.pool.as_ref())
    }

    /// True if objects have a priority: their adapter's, or one of their own.
    pub(super) fn declares(&self) -> bool {
        matches!(self.model, Some((PriorityModel::ServerDeclared, _)))
    }

    /// The priority of calls of an object, with one of its own or its adapter's.
    ///
    /// # Errors
    /// BAD_PARAM for a priority that no lane or band has; DATA_CONVERSION 2 for one that this host has not.
    pub(super) fn call_priority(
        &self,
        orb: &OrbCore,
        own: Option<Priority>,
    ) -> Result<CallPriority, SystemException> {
        let (model, server_priority) = match self.model {
            None => return Ok(CallPriority::AsItIs),
            Some(model) => model,
        };
        if model == PriorityModel::ClientPropagated {
            return Ok(CallPriority::Propagated {
                otherwise: server_priority,
            });
        }
        let priority = own.unwrap_or(server_priority);
        self.check_own(orb, own)?;
        Ok(CallPriority::Declared {
            priority,
            native: orb.rt.to_native(priority)?,
        })
    }

    /// BAD_PARAM for an object's own priority at which nobody would serve it, or nobody call it.
    pub(super) fn check_own(
        &self,
        orb: &OrbCore,
        own: Option<Priority>,
    ) -> Result<(), SystemException> {
        let is_served = own.is_none_or(|own| match self.laned_pool(orb) {
            Some(pool) => has_lane(pool, own),
            None => self.bands.is_empty() || in_a_band(&self.bands, own),
        });
        match is_served {
            true => Ok(()),
            false => Err(ExceptionKind::BadParam.into()),
        }
    }
}

/// Policies of each type, with their indices where an error may need them.
#[derive(Default)]
struct Chosen<'p> {
    model: Option<(usize, (PriorityModel, Priority))>,
    pool: Option<(usize, ThreadpoolId)>,
    bands: Option<(usize, &'p [PriorityBand])>,
    server_protocols: Option<(usize, &'p [Protocol])>,
    client_protocols: Option<&'p [Protocol]>,
}

impl<'p> Chosen<'p> {
    fn add(&mut self, index: usize, policy: &'p Policy) -> Result<(), PoaError> {
        let is_second = match policy {
            Policy::PriorityModel {
                model,
                server_priority,
            } => self
                .model
                .replace((index, (*model, *server_priority)))
                .is_some(),
            Policy::Threadpool(id) => self.pool.replace((index, *id)).is_some(),
            Policy::PriorityBandedConnection(bands) => self.bands.replace((index, bands)).is_some(),
            Policy::ServerProtocol(list) => self.server_protocols.replace((index, list)).is_some(),
            Policy::ClientProtocol(list) => self.client_protocols.replace(list).is_some(),
            Policy::PrivateConnection => {
                return Err(invalid(index, "PrivateConnectionPolicy is a client's"));
            }
        };
        match is_second {
            true => Err(invalid(index, "there is one of its type before it")),
            false => Ok(()),
        }
    }

    fn check(&self, orb: &OrbCore, pool: Option<&Arc<Pool>>) -> Result<(), PoaError> {
        let lanes = laned(orb, pool);
        if let (Some((index, _)), None, Some(_)) = (self.pool, self.model, lanes) {
            return Err(invalid(
                index,
                "a pool with lanes needs a PriorityModelPolicy",
            ));
        }
        if let Some((index, bands)) = self.bands {
            check_bands(index, bands)?;
            if self.model.is_none() {
                return Err(invalid(index, "bands need a PriorityModelPolicy"));
            }
            if lanes.is_some_and(|pool| !bands.iter().all(|band| contains_lane(*band, pool))) {
                return Err(invalid(index, "a band contains no lane of the thread pool"));
            }
        }
        if let Some((index, (model, server_priority))) = self.model {
            self.check_model(orb, lanes, model, server_priority)
                .map_err(|reason| invalid(index, reason))?;
        }
        if let Some((index, protocols)) = self.server_protocols {
            check_protocols(orb, pool, protocols).map_err(|reason| invalid(index, reason))?;
        }
        Ok(())
    }

    fn check_model(
        &self,
        orb: &OrbCore,
        lanes: Option<&Pool>,
        model: PriorityModel,
        server_priority: Priority,
    ) -> Result<(), &'static str> {
        if orb.rt.to_native(server_priority).is_err() {
            return Err("the priority mapping has no native priority for the server's priority");
        }
        if model == PriorityModel::ClientPropagated {
            return Ok(());
        }
        if lanes.is_some_and(|pool| !has_lane(pool, server_priority)) {
            return Err("no lane of the thread pool has the declared priority");
        }
        match self.bands {
            Some((_, bands)) if !in_a_band(bands, server_priority) => {
                Err("no band contains the declared priority")
            }
            _ => Ok(()),
        }
    }
}

fn check_bands(index: usize, bands: &[PriorityBand]) -> Result<(), PoaError> {
    if bands.is_empty() {
        return Err(invalid(index, "the list of bands is empty"));
    }
    match bands
        .iter()
        .all(|band| band.low >= 0 && band.low <= band.high)
    {
        true => Ok(()),
        false => Err(invalid(
            index,
            "a band begins below 0 or ends below its beginning",
        )),
    }
}

fn check_protocols(
    orb: &OrbCore,
    pool: Option<&Arc<Pool>>,
    protocols: &[Protocol],
) -> Result<(), &'static str> {
    let is_tcp = |protocol: &&Protocol| matches!(protocol, Protocol::Tcp(_));
    let tcp = protocols.iter().filter(is_tcp).count();
    if protocols.is_empty() || tcp > 1 || protocols.len() - tcp > 1 {
        return Err("each protocol is listed at most once, and one at least");
    }
    let endpoints = match pool {
        Some(pool) => pool
            .lanes
            .iter()
            .flat_map(|lane| &lane.server.listeners)
            .collect(),
        None => orb.own_listeners(),
    };
    let is_there = |protocol: &Protocol| {
        endpoints
            .iter()
            .any(|listener| goes_by(&listener.bound, *protocol))
    };
    match protocols.iter().all(is_there) {
        true => Ok(()),
        false => Err("a protocol is listed that the ORB has no endpoint of"),
    }
}

/// True if that endpoint is of that protocol.
pub(crate) fn goes_by(endpoint: &Endpoint, protocol: Protocol) -> bool {
    matches!(
        (endpoint, protocol),
        (Endpoint::Tcp { .. }, Protocol::Tcp(_)) | (Endpoint::Unix { .. }, Protocol::UnixDomain(_))
    )
}

fn laned<'p>(orb: &'p OrbCore, own: Option<&'p Arc<Pool>>) -> Option<&'p Pool> {
    let pool = own.or_else(|| orb.rt.own_pool.get())?;
    pool.config.has_lanes.then_some(pool)
}

fn has_lane(pool: &Pool, priority: Priority) -> bool {
    pool.lanes
        .iter()
        .any(|lane| lane.priority == Some(priority))
}

fn contains_lane(band: PriorityBand, pool: &Pool) -> bool {
    let lanes = pool.lanes.iter().filter_map(|lane| lane.priority);
    lanes.into_iter().any(|lane| in_a_band(&[band], lane))
}

fn in_a_band(bands: &[PriorityBand], priority: Priority) -> bool {
    bands
        .iter()
        .any(|band| (band.low..=band.high).contains(&priority.get()))
}

fn invalid(index: usize, reason: &'static str) -> PoaError {
    PoaError::InvalidPolicy { index, reason }
}
