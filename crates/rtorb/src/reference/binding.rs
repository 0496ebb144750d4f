//! Combines the policies of a reference, of its ORB and of its object's adapter: which connection and priority a call gets.

use super::routes::{Profile, RouteRequirements};
use crate::connection::banded::{Bands, NoBand};
use crate::connection::{Channel, ClientCore, Invocation, InvocationKind, Route, Sharing};
use crate::endpoint::Endpoint;
use crate::exception::{CompletionStatus, ExceptionKind, SystemException, inconsistent};
use crate::realtime::{
    NetworkPriority, Policy, Priority, PriorityBand, PriorityModel, Protocol,
    TcpProtocolProperties, UnixDomainProtocolProperties, caller_priority, is_in_band,
    is_without_priority, thread_priority,
};
use crate::timing::OperationTiming;
use rtorb_wire::ior::{self, ProtocolProperties};
use std::collections::BTreeSet;

/// The rules by which calls through a reference choose a connection, if not all use the same one.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    /// True for CLIENT_PROPAGATED: the request carries the caller's priority, which also selects the lane.
    is_propagated: bool,
    /// The server's priority, which requests without a priority have.
    server_priority: Priority,
    bands: Bands,
    /// True if the connection depends on nothing but the operation.
    pub(super) is_by_operation: bool,
}

/// The policies in force for a reference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    /// Policies that the object's adapter exposes.
    exposed: Set,
    /// Policies of the client: the reference's, else the ORB's.
    own: Set,
    /// True if the bands are the reference's own override.
    overrides_bands: bool,
}

/// Policies of one side; an empty list means no policy.
#[derive(Clone, Debug, Default)]
struct Set {
    model: Option<PriorityModel>,
    server_priority: Priority,
    bands: Vec<PriorityBand>,
    protocols: Vec<Protocol>,
    is_private: bool,
}

/// The priority of one call, and its band.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BandedPriority {
    is_propagated: bool,
    /// True if the request carries the priority.
    is_sent: bool,
    priority: Priority,
    band: Option<PriorityBand>,
}

impl Policies {
    /// Combines the ORB's policies, the reference's overrides and the policies that the profiles expose.
    pub(crate) fn new(core: &ClientCore, overrides: &[Policy], profiles: &[Profile]) -> Self {
        let mut own = Set::default();
        own.take(&core.rt.client_policies);
        own.take(overrides);
        let mut exposed = Set::default();
        // All profiles of an object expose the same policies.
        if let Some(profile) = profiles.iter().find(|it| it.policies().next().is_some()) {
            profile
                .policies()
                .for_each(|policy| exposed.take_exposed(policy));
        }
        let is_bands = |policy: &Policy| matches!(policy, Policy::PriorityBandedConnection(bands) if !bands.is_empty());
        Self {
            exposed,
            own,
            overrides_bands: overrides.iter().any(is_bands),
        }
    }

    /// Returns the requirements of the policies on routes.
    ///
    /// # Errors
    /// INV_POLICY when both sides set protocols.
    pub(crate) fn wanted(&self) -> Result<RouteRequirements, SystemException> {
        if !self.own.protocols.is_empty() && !self.exposed.protocols.is_empty() {
            //= RT-CORBA 1.2 §Protocol Configuration
            //# Client and server must not both set the client protocols of an object.
            return Err(invalid(inconsistent::SET_TWICE));
        }
        Ok(RouteRequirements {
            protocols: own_or(&self.own.protocols, &self.exposed.protocols).clone(),
            is_private: self.own.is_private,
        })
    }

    /// Returns the rules for the connections of calls of these operations; `None` if all calls through the reference use the same
    /// connection.
    ///
    /// # Errors
    /// INV_POLICY when both sides set bands, the reference has bands for an object without a priority model, or there are
    /// profiles but none of a wanted protocol.
    pub(crate) fn binding(
        &self,
        core: &ClientCore,
        routes: &[Route],
        operations: &'static [OperationTiming],
    ) -> Result<Option<Binding>, SystemException> {
        let (own, exposed) = (&self.own.bands, &self.exposed.bands);
        if !own.is_empty() && !exposed.is_empty() {
            return Err(invalid(inconsistent::SET_TWICE));
        }
        if self.exposed.model.is_none() && self.overrides_bands {
            return Err(invalid(inconsistent::BANDS_WITHOUT_MODEL));
        }
        let by_strategy = matches!(core.sharing, Sharing::Banded(_));
        let of_policy = own_or(own, exposed);
        // Bands apply to objects with a priority model. With the banded strategy they apply to all objects.
        let is_in_force = self.exposed.model.is_some() || by_strategy;
        let bands = match (of_policy.is_empty(), by_strategy) {
            (false, _) if is_in_force => Bands::Of(of_policy.clone()),
            (_, true) => Bands::EachPriority,
            (_, false) => Bands::One,
        };
        let is_propagated = self.exposed.model == Some(PriorityModel::ClientPropagated);
        let has_marks = routes.iter().any(has_marks);
        let is_by_operation = !is_propagated && bands == Bands::One && !has_marks;
        let is_plain = is_by_operation && !states_marks(operations);
        Ok((!is_plain).then_some(Binding {
            is_propagated,
            server_priority: self.exposed.server_priority,
            bands,
            is_by_operation,
        }))
    }

    /// Returns the priority model and the priority that the object's adapter exposes.
    pub(crate) fn model(&self) -> Option<(PriorityModel, Priority)> {
        self.exposed
            .model
            .map(|model| (model, self.exposed.server_priority))
    }

    /// Returns all policies in force. A policy of the client replaces that of the adapter.
    pub(crate) fn in_force(&self) -> Vec<Policy> {
        let (own, exposed) = (&self.own, &self.exposed);
        let mut policies = Vec::new();
        if let Some((model, server_priority)) = self.model() {
            policies.push(Policy::PriorityModel {
                model,
                server_priority,
            });
        }
        let protocols = own_or(&own.protocols, &exposed.protocols);
        if !protocols.is_empty() {
            policies.push(Policy::ClientProtocol(protocols.clone()));
        }
        if own.is_private {
            policies.push(Policy::PrivateConnection);
        }
        let bands = own_or(&own.bands, &exposed.bands);
        if !bands.is_empty() {
            policies.push(Policy::PriorityBandedConnection(bands.clone()));
        }
        policies
    }
}

impl Binding {
    /// Returns the priority of a call by the calling thread.
    ///
    /// # Errors
    /// DATA_CONVERSION 2 if the thread's priority has no CORBA priority; INV_POLICY if it is in no band.
    #[inline]
    pub(crate) fn of_caller(
        &self,
        core: &ClientCore,
        routes: &[Route],
    ) -> Result<BandedPriority, SystemException> {
        if self.is_by_operation {
            return self.at(self.server_priority);
        }
        match thread_priority() {
            Some(own) => self.at(self.sent(own, core, routes)?),
            None => self.of_caller_without(core, routes),
        }
    }

    /// Returns the priority of a call by a thread that has set none: the one that the mapping has for its native priority.
    ///
    /// If no lane or band has that priority, and the thread is not real-time, the call is like that of a client without RT-CORBA: it goes
    /// to the lane of the server's priority, contains no priority, and uses no connection of a band.
    #[cold]
    fn of_caller_without(
        &self,
        core: &ClientCore,
        routes: &[Route],
    ) -> Result<BandedPriority, SystemException> {
        let derived = self.sent(caller_priority(&core.rt)?, core, routes)?;
        let is_served = |call: &BandedPriority| routes.iter().any(|route| call.accepts(route));
        // The text of the exception is made only for a call that fails with it.
        let is_in_band = self.bands.band(derived).is_ok();
        if !is_without_priority() || is_in_band && is_served(&self.at(derived)?) {
            return self.at(derived);
        }
        let plain = BandedPriority {
            is_propagated: self.is_propagated,
            is_sent: false,
            priority: self.server_priority,
            band: None,
        };
        if is_served(&plain) {
            Ok(plain)
        } else {
            self.at(derived)
        }
    }

    /// Applies the outbound transform to a caller's priority.
    ///
    /// # Errors
    /// The exception of the outbound transform.
    #[inline]
    pub(crate) fn sent(
        &self,
        own: Priority,
        core: &ClientCore,
        routes: &[Route],
    ) -> Result<Priority, SystemException> {
        match routes.first() {
            Some(route) if self.is_propagated => core.rt.outbound(own, &route.object_key),
            _ => Ok(own),
        }
    }

    /// Returns a call's priority with its band.
    ///
    /// # Errors
    /// INV_POLICY if the priority is in no band.
    pub(crate) fn at(&self, priority: Priority) -> Result<BandedPriority, SystemException> {
        let band = self.bands.band(priority);
        Ok(BandedPriority {
            is_propagated: self.is_propagated,
            is_sent: self.is_propagated,
            priority,
            band: band.map_err(|NoBand| self.no_band(priority))?,
        })
    }

    #[cold]
    fn no_band(&self, priority: Priority) -> SystemException {
        let bands = self.bands().iter();
        let bands = bands.map(|band| format!("{}-{}", band.low, band.high));
        let bands = bands.collect::<Vec<_>>().join(", ");
        invalid(inconsistent::NO_BAND).with_detail(format_args!(
            "the call has priority {priority}, the bands are {bands}"
        ))
    }

    /// Returns the bands, if there are any.
    pub(crate) fn bands(&self) -> &[PriorityBand] {
        match &self.bands {
            Bands::Of(bands) => bands,
            Bands::One | Bands::EachPriority => &[],
        }
    }
}

impl BandedPriority {
    /// Returns true if the call may use the route: its endpoint belongs to no lane, or to the lane of the call.
    #[inline]
    pub(crate) fn accepts(&self, route: &Route) -> bool {
        match route.priority {
            Some(lane) if self.is_propagated => match self.band {
                Some(band) => is_in_band(&band, lane),
                None => lane == self.priority,
            },
            _ => true,
        }
    }

    /// Returns the priority to send with the request.
    #[inline]
    //= RT-CORBA 1.2 §Real-Time CORBA Priority Models
    //# A client sends its priority to objects with CLIENT_PROPAGATED only.
    pub(crate) fn sent(&self) -> Option<Priority> {
        self.is_sent.then_some(self.priority)
    }

    /// Returns the connection of a route that the call uses.
    #[inline]
    pub(crate) fn channel(&self, core: &ClientCore, route: &Route) -> Channel {
        Channel {
            band: self.band,
            marks: has_marks(route).then(|| core.rt.network_priority(self.marking_priority())),
        }
    }

    /// Returns the exception for a call whose priority or band has no lane among these routes.
    #[cold]
    pub(super) fn no_lane(&self, routes: &[Route]) -> SystemException {
        let lanes: BTreeSet<_> = routes.iter().filter_map(|route| route.priority).collect();
        let lanes = lanes.iter().rev().map(ToString::to_string);
        let lanes = lanes.collect::<Vec<_>>().join(", ");
        let priority = self.priority;
        invalid(inconsistent::NO_LANE).with_detail(format_args!(
            "the call has priority {priority}, the lanes have {lanes}"
        ))
    }

    /// Returns the priority that gives a connection its marks: that of the most urgent call of its band.
    fn marking_priority(&self) -> Priority {
        let highest = self.band.and_then(|band| Priority::new(band.high).ok());
        highest.unwrap_or(self.priority)
    }
}

impl Set {
    fn take(&mut self, policies: &[Policy]) {
        for policy in policies {
            match policy {
                Policy::ClientProtocol(protocols) => self.protocols.clone_from(protocols),
                Policy::PriorityBandedConnection(bands) => self.bands.clone_from(bands),
                Policy::PrivateConnection => self.is_private = true,
                // Policies of an adapter: `is_server_only` refuses them for clients.
                _ => {}
            }
        }
    }

    fn take_exposed(&mut self, policy: &ior::ExposedPolicy) {
        match policy {
            ior::ExposedPolicy::PriorityModel {
                model,
                server_priority,
            } => {
                self.model = Some(*model);
                self.server_priority = Priority::new(*server_priority).unwrap_or_default();
            }
            ior::ExposedPolicy::PriorityBands(bands) => self.bands.clone_from(bands),
            ior::ExposedPolicy::ClientProtocols(protocols) => {
                self.protocols = protocols.iter().map(protocol).collect();
            }
            ior::ExposedPolicy::Other(_) => {}
        }
    }
}

/// Returns the client's list, or the adapter's if the client has none.
fn own_or<'l, T>(own: &'l Vec<T>, exposed: &'l Vec<T>) -> &'l Vec<T> {
    if own.is_empty() { exposed } else { own }
}

fn protocol(exposed: &ior::ExposedProtocol) -> Protocol {
    // The standard's numbers are signed; negative ones have no meaning.
    let size = |bytes: i32| u32::try_from(bytes).unwrap_or(0);
    match exposed.properties {
        ProtocolProperties::Tcp(tcp) => Protocol::Tcp(TcpProtocolProperties {
            send_buffer_size: size(tcp.send_buffer_bytes),
            recv_buffer_size: size(tcp.recv_buffer_bytes),
            keep_alive: tcp.keep_alive,
            dont_route: tcp.dont_route,
            no_delay: tcp.no_delay,
            enable_network_priority: false,
        }),
        ProtocolProperties::Unix(unix) => Protocol::UnixDomain(UnixDomainProtocolProperties {
            send_buffer_size: size(unix.send_buffer_bytes),
            recv_buffer_size: size(unix.recv_buffer_bytes),
        }),
    }
}

/// Returns true if an operation states a network priority.
pub(super) fn states_marks(operations: &[OperationTiming]) -> bool {
    operations.iter().any(|one| one.dscp().is_some())
}

/// Returns the marks that the called operation states, if packets of the route have marks.
#[cold]
pub(super) fn stated_marks(
    operations: &[OperationTiming],
    invocation: &Invocation<'_>,
) -> Option<NetworkPriority> {
    let (Endpoint::Tcp { .. } | Endpoint::Tls { .. }) = *invocation.route.endpoint.endpoint else {
        return None;
    };
    let dscp = match invocation.kind {
        InvocationKind::Locate { dscp, .. } => dscp,
        _ => {
            let mut called = operations.iter();
            called
                .find(|one| one.wire_name() == invocation.operation)?
                .dscp()
        }
    };
    dscp.map(NetworkPriority::of_dscp)
}

#[inline]
fn has_marks(route: &Route) -> bool {
    matches!(
        route.endpoint.protocol,
        Some(Protocol::Tcp(tcp)) if tcp.enable_network_priority
    )
}

/// Returns INV_POLICY with one of the codes of [`inconsistent`].
#[cold]
pub(super) fn invalid(minor: u32) -> SystemException {
    SystemException::new(ExceptionKind::InvPolicy, minor, CompletionStatus::No)
}
