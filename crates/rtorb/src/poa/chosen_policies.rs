//! Checks which RT-CORBA policies of an adapter are compatible (RT-CORBA 1.2, "Real-time POA"; TAO 2.2.1 refuses the same ones).

use crate::dispatch::pool::Pool;
use crate::endpoint::Endpoint;
use crate::poa::Adapters;
use crate::poa::PoaError;
use crate::realtime::{
    NetworkPriority, Policy, Priority, PriorityBand, PriorityModel, Protocol, ThreadpoolId,
    is_band, is_in_band,
};
use crate::transport::ConnectionOptions;
use std::sync::Arc;

/// The policies by type, with their indices for error messages.
#[derive(Default)]
pub(super) struct Chosen<'p> {
    pub(super) model: Option<(usize, (PriorityModel, Priority))>,
    pub(super) pool: Option<(usize, ThreadpoolId)>,
    pub(super) bands: Option<(usize, &'p [PriorityBand])>,
    pub(super) server_protocols: Option<(usize, &'p [Protocol])>,
    pub(super) client_protocols: Option<&'p [Protocol]>,
}

impl<'p> Chosen<'p> {
    /// Adds the policy at that index.
    pub(super) fn add(&mut self, index: usize, policy: &'p Policy) -> Result<(), PoaError> {
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
        if is_second {
            return Err(invalid(
                index,
                "another policy of this type comes before it",
            ));
        }
        Ok(())
    }

    /// Checks that the policies are compatible, and sets the options of the endpoints.
    pub(super) fn check(&self, orb: &Adapters, pool: Option<&Arc<Pool>>) -> Result<(), PoaError> {
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
            self.set_options(orb, pool, protocols)
                .map_err(|reason| invalid(index, reason))?;
        }
        Ok(())
    }

    /// Checks the ServerProtocolPolicy, and applies it to the endpoints. This is the last step, because it cannot be undone.
    fn set_options(
        &self,
        orb: &Adapters,
        pool: Option<&Arc<Pool>>,
        protocols: &[Protocol],
    ) -> Result<(), &'static str> {
        if protocols.is_empty() || Protocol::is_repeated(protocols) {
            return Err("the list must have at least one protocol, and each at most once");
        }
        let declared = match self.model {
            Some((_, (PriorityModel::ServerDeclared, priority))) => Some(priority),
            _ => None,
        };
        let endpoints = orb.listeners(pool.map(|pool| &**pool));
        let is_served = |protocol: &Protocol| {
            endpoints
                .iter()
                .any(|(listener, _)| goes_by(&listener.bound, *protocol))
        };
        if !protocols.iter().all(is_served) {
            return Err("the ORB has no endpoint of a listed protocol");
        }
        for (listener, lane) in endpoints {
            let priority = lane.or(declared);
            let of_it = |protocol: &&Protocol| goes_by(&listener.bound, **protocol);
            let Some(protocol) = protocols.iter().find(of_it) else {
                continue;
            };
            let options = ConnectionOptions {
                protocol: *protocol,
                marks: marks(orb, *protocol, priority),
            };
            match listener.set_options(options) {
                Ok(true) => {}
                Ok(false) => {
                    return Err(
                        "another adapter needs its endpoints set up in another way: \
                                give this one a thread pool of its own",
                    );
                }
                Err(_) => return Err("the host refuses a protocol's properties"),
            }
        }
        Ok(())
    }

    fn check_model(
        &self,
        orb: &Adapters,
        lanes: Option<&Pool>,
        model: PriorityModel,
        server_priority: Priority,
    ) -> Result<(), &'static str> {
        if orb.server.rt.to_native(server_priority).is_err() {
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
    if !bands.iter().all(is_band) {
        return Err(invalid(
            index,
            "a band begins below 0 or ends below its beginning",
        ));
    }
    Ok(())
}

/// The marks of replies on connections of a protocol, if the priority is known when a connection is accepted.
fn marks(
    orb: &Adapters,
    protocol: Protocol,
    priority: Option<Priority>,
) -> Option<NetworkPriority> {
    match protocol {
        Protocol::Tcp(tcp) if tcp.enable_network_priority => {
            priority.map(|priority| orb.server.rt.network_priority(priority))
        }
        Protocol::Tcp(_) | Protocol::UnixDomain(_) | Protocol::SharedMemory(_) => None,
    }
}

fn contains_lane(band: PriorityBand, pool: &Pool) -> bool {
    let mut priorities = pool.all_lanes().filter_map(|lane| lane.priority);
    priorities.any(|priority| is_in_band(&band, priority))
}

pub(super) fn invalid(index: usize, reason: &'static str) -> PoaError {
    PoaError::InvalidPolicy { index, reason }
}

/// True if the endpoint belongs to the protocol.
pub(crate) fn goes_by(endpoint: &Endpoint, protocol: Protocol) -> bool {
    matches!(
        (endpoint, protocol),
        (
            Endpoint::Tcp { .. } | Endpoint::Tls { .. },
            Protocol::Tcp(_)
        ) | (Endpoint::Unix { .. }, Protocol::UnixDomain(_))
            | (Endpoint::SharedMemory { .. }, Protocol::SharedMemory(_))
    )
}

pub(super) fn laned<'p>(orb: &'p Adapters, own: Option<&'p Arc<Pool>>) -> Option<&'p Pool> {
    let pool = own.or_else(|| orb.own_pool())?;
    pool.config.has_lanes.then_some(pool)
}

pub(super) fn has_lane(pool: &Pool, priority: Priority) -> bool {
    pool.all_lanes().any(|lane| lane.priority == Some(priority))
}

pub(super) fn in_a_band(bands: &[PriorityBand], priority: Priority) -> bool {
    bands.iter().any(|band| is_in_band(band, priority))
}
