//! Finds the routes to an object in its IOR.

use crate::connection::{Client, EndpointKey, Route, SharedEndpoint};
use crate::endpoint::{Endpoint, host_identity, host_name};
use crate::realtime::{Priority, Protocol};
use crate::strategies::{Collocation, DeadlineForm};
use rtorb_wire::DecodeError;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::code_sets::{CodeSetComponentInfo, negotiate};
use rtorb_wire::giop::{RequestPrefix, Version};
use rtorb_wire::ior::{
    self, Component, CsiSecMechList, IiopProfile, Ior, ListenPoint, OmniUnixTrans, ProfileBody,
    ShmiopProfile, TaggedComponent, UiopProfile, association,
};
use std::path::PathBuf;
use std::sync::Arc;

/// The most routes of a reference. More are ignored, because a peer chooses their number.
const ROUTES_MAX: usize = 64;

/// A decoded profile of a reference that this ORB can use.
#[derive(Debug)]
pub(crate) struct Profile {
    /// Its index in the reference.
    index: u32,
    body: Body,
    components: Vec<Component>,
}

#[derive(Debug)]
enum Body {
    Iiop(IiopProfile),
    Uiop(UiopProfile),
    Shmiop(ShmiopProfile),
}

impl Profile {
    /// Returns the usable profiles of a reference, in its order.
    pub(crate) fn of(ior: &Ior) -> Vec<Self> {
        let bodies = (0..)
            .zip(&ior.profiles)
            .filter_map(|(index, profile)| Some((index, ProfileBody::from_tagged(profile).ok()?)));
        let usable = bodies.filter_map(|(index, body)| match body {
            ProfileBody::Iiop(profile) => Some(Self {
                index,
                components: readable(&profile.components, Component::from_tagged),
                body: Body::Iiop(profile),
            }),
            ProfileBody::Uiop(profile) => Some(Self {
                index,
                components: readable(&profile.components, Component::from_uiop_tagged),
                body: Body::Uiop(profile),
            }),
            ProfileBody::Shmiop(profile) => Some(Self {
                index,
                components: readable(&profile.components, Component::from_uiop_tagged),
                body: Body::Shmiop(profile),
            }),
            _ => None,
        });
        usable.take(ROUTES_MAX).collect()
    }

    /// Returns true if it has an address over TLS.
    fn offers_tls(&self) -> bool {
        matches!(&self.body, Body::Iiop(body) if secure_addresses(body, &self.components).is_some())
    }

    /// Returns the policies that the object's adapter exposes to clients.
    pub(crate) fn policies(&self) -> impl Iterator<Item = &ior::ExposedPolicy> {
        self.components
            .iter()
            .filter_map(|component| match component {
                Component::Policies(policies) => Some(policies),
                _ => None,
            })
            .flatten()
    }
}

/// The requirements of a client's policies on its routes.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteRequirements {
    /// The protocols with their properties, best first; if empty, all protocols.
    pub(crate) protocols: Vec<Protocol>,
    /// True if no other reference may use the connections.
    pub(crate) is_private: bool,
}

/// Returns the routes to an object: in the order of the required protocols, or of the reference's profiles.
pub(crate) fn routes(
    client: &Client,
    profiles: &[Profile],
    wanted: &RouteRequirements,
) -> Vec<Route> {
    let has_tls = client.core.securing.transport.is_some();
    let only_tls = has_tls && offer_tls(profiles);
    let mut routes = Vec::new();
    for profile in profiles {
        if routes.len() >= ROUTES_MAX {
            break;
        }
        let of_profile = match &profile.body {
            Body::Iiop(_) if only_tls && !profile.offers_tls() => Vec::new(),
            Body::Iiop(body) => iiop_endpoints(body, &profile.components, has_tls),
            Body::Uiop(body) => path_endpoints(&body.path, &profile.components, |path| {
                Endpoint::Unix { path }
            }),
            // The memory is on another host. This host may have a file with the same name.
            Body::Shmiop(body) if !body.host.is_empty() && body.host != host_identity() => {
                Vec::new()
            }
            Body::Shmiop(body) => path_endpoints(&body.path, &profile.components, |path| {
                Endpoint::SharedMemory { path }
            }),
        };
        let route_to = route_maker(client, profile, wanted);
        let left = ROUTES_MAX - routes.len();
        routes.extend(of_profile.into_iter().filter_map(route_to).take(left));
    }
    if client.core.requires_tls && routes.iter().any(|route| !is_plain(route)) {
        routes.retain(|route| !is_plain(route));
    }
    // If any endpoint has a lane, endpoints without one are for clients that do not know lanes.
    if routes.iter().any(|route| route.priority.is_some()) {
        routes.retain(|route| route.priority.is_some());
    }
    if !wanted.protocols.is_empty() {
        // The sort is stable: routes of one protocol keep their order.
        routes.sort_by_key(|route| {
            let own = route.endpoint.protocol;
            wanted
                .protocols
                .iter()
                .position(|wanted| Some(*wanted) == own)
        });
    }
    routes
}

/// Returns true for a route over TCP without TLS.
fn is_plain(route: &Route) -> bool {
    matches!(*route.endpoint.endpoint, Endpoint::Tcp { .. })
}

/// Returns the key in the first profile that this ORB can read.
pub(crate) fn object_key(ior: &Ior) -> Option<Vec<u8>> {
    ior.profiles
        .iter()
        .find_map(|profile| match ProfileBody::from_tagged(profile) {
            Ok(ProfileBody::Iiop(profile)) => Some(profile.object_key),
            Ok(ProfileBody::Uiop(profile)) => Some(profile.object_key),
            Ok(ProfileBody::Shmiop(profile)) => Some(profile.object_key),
            _ => None,
        })
}

/// An endpoint, and the priority of its lane, if the reference contains it.
type LaneEndpoint = (Endpoint, Option<Priority>);

/// Returns true if any profile has TLS. Then a client with TLS uses no IIOP profile without it: otherwise an attacker who
/// makes TLS fail could read the call.
fn offer_tls(profiles: &[Profile]) -> bool {
    profiles.iter().any(Profile::offers_tls)
}

/// The addresses of an IIOP profile that are reached over TLS.
struct SecureAddresses {
    addresses: Vec<ListenPoint>,
    /// True if the server requires TLS.
    is_required: bool,
}

/// Returns the addresses that are reached over TLS: of the component of SSLIOP; if there is none, of the security mechanisms of CSIv2 that need
/// nothing in requests.
fn secure_addresses(profile: &IiopProfile, components: &[Component]) -> Option<SecureAddresses> {
    // JacORB states only whose identity it requires.
    let is_required = |requires: u16| requires & !association::NO_PROTECTION != 0;
    let of_ssliop = components.iter().find_map(|component| match component {
        Component::SslSecTrans(ssl) if ssl.port != 0 => Some(SecureAddresses {
            addresses: vec![ListenPoint {
                host: profile.host.clone(),
                port: ssl.port,
            }],
            is_required: is_required(ssl.requires),
        }),
        _ => None,
    });
    let of_csi = || {
        let csi = security_mechanisms(components)?;
        let addresses = csi.tls_addresses().filter(|it| it.port != 0);
        Some(SecureAddresses {
            addresses: addresses.take(ROUTES_MAX).collect(),
            is_required: csi.mechanisms.iter().all(|it| is_required(it.requires)),
        })
    };
    let found = of_ssliop.or_else(of_csi);
    found.filter(|secure| !secure.addresses.is_empty())
}

/// Returns true if the server protects its data by every security mechanism of CSIv2 that it names: a call in plain text would show it.
fn requires_protection(components: &[Component]) -> bool {
    let protection = association::INTEGRITY | association::CONFIDENTIALITY;
    security_mechanisms(components).is_some_and(|csi| {
        let mut each = csi.mechanisms.iter();
        !csi.mechanisms.is_empty() && each.all(|it| it.requires & protection != 0)
    })
}

/// Returns the first list of security mechanisms of CSIv2.
fn security_mechanisms(components: &[Component]) -> Option<&CsiSecMechList> {
    components.iter().find_map(|component| match component {
        Component::CsiSecMechList(csi) => Some(csi),
        _ => None,
    })
}

/// Returns the endpoints of an IIOP profile. If it has TLS, a client with TLS uses only that. A client without TLS uses the endpoint
/// without TLS; if the server requires TLS, it gets the other one, and its call fails with the reason. There is none if the server requires
/// protection and no mechanism can be used.
fn iiop_endpoints(
    profile: &IiopProfile,
    components: &[Component],
    has_tls: bool,
) -> Vec<LaneEndpoint> {
    let Some(secure) = secure_addresses(profile, components) else {
        if requires_protection(components) {
            return Vec::new();
        }
        return plain_endpoints(profile, components);
    };
    if !has_tls && !secure.is_required {
        let plain = plain_endpoints(profile, components);
        if !plain.is_empty() {
            return plain;
        }
    }
    let lanes = components.iter().find_map(|component| match component {
        Component::TaoEndpoints(lanes) => lanes.first(),
        _ => None,
    });
    let lane = lanes.and_then(|lane| lane_priority(lane.priority));
    let addresses = secure.addresses.into_iter();
    addresses
        .map(|ListenPoint { host, port }| (Endpoint::Tls { host, port }, lane))
        .collect()
}

fn plain_endpoints(profile: &IiopProfile, components: &[Component]) -> Vec<LaneEndpoint> {
    let tcp = |host: &str, port| Endpoint::Tcp {
        host: host.to_owned(),
        port,
    };
    let lanes = components.iter().find_map(|component| match component {
        Component::TaoEndpoints(lanes) => Some(lanes.as_slice()),
        _ => None,
    });
    let lanes = lanes.unwrap_or_default();
    let own_lane = lanes.first().and_then(|lane| lane_priority(lane.priority));
    let mut endpoints = Vec::new();
    for component in components.iter().take(ROUTES_MAX) {
        // An omniORB server on this host that listens on a UNIX socket, which is faster than TCP.
        if let Component::OmniUnixTrans(OmniUnixTrans { host, path }) = component
            && *host == host_name()
        {
            endpoints.push((Endpoint::Unix { path: path.into() }, None));
        }
    }
    // Port 0: the object cannot be reached by TCP.
    if profile.port != 0 {
        endpoints.push((tcp(&profile.host, profile.port), own_lane));
    }
    for lane in lanes.iter().skip(1).take(ROUTES_MAX) {
        endpoints.push((tcp(&lane.host, lane.port), lane_priority(lane.priority)));
    }
    for component in components.iter().take(ROUTES_MAX) {
        if let Component::AlternateIiopAddress(ListenPoint { host, port }) = component {
            endpoints.push((tcp(host, *port), None));
        }
    }
    endpoints
}

/// Returns the endpoints of a profile whose addresses are paths.
fn path_endpoints(
    path: &str,
    components: &[Component],
    endpoint: fn(PathBuf) -> Endpoint,
) -> Vec<LaneEndpoint> {
    let lanes = components.iter().find_map(|component| match component {
        Component::TaoUnixEndpoints(lanes) => Some(lanes.as_slice()),
        _ => None,
    });
    let lanes = lanes.unwrap_or_default();
    let own_lane = lanes.first().and_then(|lane| lane_priority(lane.priority));
    let own = (endpoint(path.into()), own_lane);
    let others = lanes
        .iter()
        .skip(1)
        .map(|lane| (endpoint((&lane.path).into()), lane_priority(lane.priority)));
    core::iter::once(own)
        .chain(others)
        .take(ROUTES_MAX)
        .collect()
}

/// Returns the priority of a lane; -1 means that there is no lane.
fn lane_priority(number: i16) -> Option<Priority> {
    Priority::new(number).ok()
}

/// Returns a function that makes the routes of a profile, which differ in their endpoints only. It makes none for a protocol that is not
/// wanted.
fn route_maker<'o>(
    client: &'o Client,
    profile: &Profile,
    wanted: &'o RouteRequirements,
) -> impl Fn(LaneEndpoint) -> Option<Route> + use<'o> {
    let core = &client.core;
    let (version, object_key) = match &profile.body {
        Body::Iiop(profile) => (profile.version, &profile.object_key),
        Body::Uiop(profile) => (profile.version, &profile.object_key),
        Body::Shmiop(profile) => (profile.version, &profile.object_key),
    };
    let version = version.min(core.max_version);
    let code_sets = code_sets(&profile.components, version, core.native_char_code_set);
    // A key that fits into no message is an error of each request.
    let prefix = RequestPrefix::new(version, core.byte_order, object_key)
        .ok()
        .flatten()
        .map(Arc::new);
    let object_key: Arc<[u8]> = object_key.as_slice().into();
    let profile = profile.index;
    move |(endpoint, priority)| {
        let protocol = wanted.protocols.iter().find(|protocol| {
            matches!(
                (protocol, &endpoint),
                (
                    Protocol::Tcp(_),
                    Endpoint::Tcp { .. } | Endpoint::Tls { .. }
                ) | (Protocol::UnixDomain(_), Endpoint::Unix { .. })
                    | (Protocol::SharedMemory(_), Endpoint::SharedMemory { .. })
            )
        });
        if protocol.is_none() && !wanted.protocols.is_empty() {
            return None;
        }
        let is_own =
            core.collocation == Collocation::Direct && client.host.is_collocated(&endpoint);
        let key = EndpointKey {
            endpoint,
            char_code_set: code_sets.unwrap_or_default(),
            names_code_sets: code_sets.is_some(),
            protocol: protocol.copied(),
        };
        let endpoint = if wanted.is_private {
            Arc::new(SharedEndpoint::new(&key, true))
        } else {
            core.endpoints.share(key)
        };
        Some(Route {
            tells_end_time: match core.deadline_form {
                DeadlineForm::Auto => endpoint.is_on_this_host,
                DeadlineForm::EndTime => true,
                DeadlineForm::RemainingTime => false,
            },
            endpoint,
            version,
            object_key: Arc::clone(&object_key),
            profile,
            address: None,
            prefix: prefix.clone(),
            is_own,
            is_collocated: false,
            timeout_ns: u64::MAX,
            priority,
        })
    }
}

/// Returns the code set of `char` data that the client names to a server with these components. `None` if it names none: then `char`
/// data is ISO 8859-1.
///
/// Rust strings are UTF-8, so the client asks for UTF-8 first, unless the application has chosen another native code set. A server
/// without UTF-8 gets its native code set. A profile
/// without components comes from a URL, and does not describe the server. ORBs have UTF-8 and UTF-16, and a server that does not know
/// code sets ignores the service context that names them.
fn code_sets(
    components: &[Component],
    version: Version,
    native: CharCodeSet,
) -> Option<CharCodeSet> {
    let is_of_url = |component: &Component| matches!(component, Component::SslSecTrans(_));
    if components.iter().all(is_of_url) {
        // Code sets are negotiated since GIOP 1.1. In GIOP 1.0, char data is ISO 8859-1.
        return (version.minor > 0).then_some(native);
    }
    let server = components.iter().find_map(|component| match component {
        Component::CodeSets(server) => Some(server),
        _ => None,
    })?;
    let mut client = CodeSetComponentInfo::supported().with_native_char(native);
    if native == CharCodeSet::Utf8 {
        client.char_data.conversion.clear();
    }
    let chosen = negotiate(server, &client).ok();
    let char_data = chosen.map_or(server.char_data.native, |sets| sets.char_data);
    let char_data = CharCodeSet::from_registry(char_data);
    // The fallback if the server supports neither (CORBA 3, 13.10.2.6).
    (version.minor > 0).then(|| char_data.unwrap_or_default())
}

/// Returns the components that can be decoded. The others are ignored.
fn readable(
    components: &[TaggedComponent],
    read: impl Fn(&TaggedComponent) -> Result<Component, DecodeError>,
) -> Vec<Component> {
    components
        .iter()
        .filter_map(|component| read(component).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtorb_wire::code_sets::{CodeSetComponent, ISO_8859_1, ISO_8859_15, UTF_8, UTF_16};

    #[test]
    fn a_server_without_utf_8_gets_its_native_code_set() {
        for (native, conversion, chosen) in [
            (ISO_8859_15, vec![], CharCodeSet::Latin9),
            (ISO_8859_15, vec![UTF_8], CharCodeSet::Utf8),
            (ISO_8859_1, vec![], CharCodeSet::Latin1),
        ] {
            let server = Component::CodeSets(CodeSetComponentInfo {
                char_data: CodeSetComponent { native, conversion },
                wchar_data: CodeSetComponent {
                    native: UTF_16,
                    conversion: vec![],
                },
            });
            let sets = code_sets(&[server], Version::V1_2, CharCodeSet::Utf8);
            assert_eq!(sets, Some(chosen));
        }
    }
}
