//! Makes references, with the endpoints and policies that lead to an object.

use super::adapters::Adapters;
use super::chosen_policies::goes_by;
use super::rt_policies::RtPolicies;
use crate::dispatch::pool::Lane;
use crate::endpoint::{Endpoint, host_identity, host_name};
use crate::realtime::{Priority, PriorityModel, Protocol};
use crate::transport::Listener;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::code_sets::CodeSetComponentInfo;
use rtorb_wire::giop::Version;
use rtorb_wire::ior::{
    self, Component, IiopProfile, Ior, ListenPoint, OmniUnixTrans, ShmiopProfile, SslSecTrans,
    TaggedComponent, TaggedProfile, TaoUnixEndpoint, UiopProfile, association,
};
use std::path::Path;

/// The properties of an object that its references contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Published<'a> {
    pub(crate) repository_id: &'a str,
    pub(crate) object_key: &'a [u8],
    /// The policies of its adapter.
    pub(crate) rt: &'a RtPolicies,
    /// Its own priority, if it has one and its adapter is SERVER_DECLARED.
    pub(crate) priority: Option<Priority>,
    pub(crate) native_char_code_set: CharCodeSet,
    /// The components that interceptors have added.
    pub(crate) components: &'a [TaggedComponent],
}

/// Makes a reference to an object: a SHMIOP profile for each way through shared memory, which clients of this host take first;
/// an IIOP profile for the first TCP endpoint that leads to it, with the others as its alternate addresses; and a UIOP profile for
/// each UNIX socket. With RT-CORBA policies it has the components that TAO publishes, too.
///
/// Clients propagate their priority to a pool of lanes: then each protocol has one profile, and TAO_TAG_ENDPOINTS lists the
/// endpoints of all lanes. The address of the profile is that of the lane of the server's priority, or of the first lane if
/// there is none. An object with a declared priority is reached by its lane alone.
pub(crate) fn ior(orb: &Adapters, object: &Published<'_>) -> Ior {
    let addresses = Addresses::of(orb, object);
    let mut profiles = Vec::new();
    match &object.rt.server_protocols {
        None => {
            profiles.extend(shmiop_profiles(object, &addresses));
            profiles.extend(iiop_profiles(object, &addresses));
            profiles.extend(uiop_profiles(object, &addresses));
        }
        Some(protocols) => {
            for protocol in protocols {
                match protocol {
                    Protocol::Tcp(_) => profiles.extend(iiop_profiles(object, &addresses)),
                    Protocol::UnixDomain(_) => profiles.extend(uiop_profiles(object, &addresses)),
                    Protocol::SharedMemory(_) => {
                        profiles.extend(shmiop_profiles(object, &addresses));
                    }
                }
            }
        }
    }
    Ior {
        type_id: object.repository_id.to_owned(),
        profiles,
    }
}

/// The addresses of an object that its references contain.
struct Addresses {
    tcp: Vec<Address<(String, u16)>>,
    /// With those that are reached over TLS.
    tls: Vec<SecureAddress>,
    unix: Vec<Address<String>>,
    memory: Vec<Address<String>>,
}

/// An address that is reached over TLS.
struct SecureAddress {
    address: Address<(String, u16)>,
    wants_client_certificate: bool,
}

struct Address<P> {
    place: P,
    /// The priority of its lane, if the client chooses the lane.
    lane: Option<Priority>,
}

impl Addresses {
    fn of(orb: &Adapters, object: &Published<'_>) -> Self {
        let (mut tcp, mut tls) = (Vec::new(), Vec::new());
        let (mut unix, mut memory) = (Vec::new(), Vec::new());
        for (listener, lane) in listeners(orb, object) {
            let text = |path: &Path| path.to_string_lossy().into_owned();
            match &listener.bound {
                Endpoint::Tcp { .. } => {
                    tcp.extend(listener.published().iter().filter_map(|endpoint| {
                        let Endpoint::Tcp { host, port } = endpoint else {
                            return None;
                        };
                        let place = (host.clone(), *port);
                        Some(Address { place, lane })
                    }));
                }
                Endpoint::Tls { .. } => {
                    let wants_client_certificate = listener.wants_client_certificate();
                    tls.extend(listener.published().iter().filter_map(|endpoint| {
                        let Endpoint::Tls { host, port } = endpoint else {
                            return None;
                        };
                        let place = (host.clone(), *port);
                        Some(SecureAddress {
                            address: Address { place, lane },
                            wants_client_certificate,
                        })
                    }));
                }
                Endpoint::Unix { path } => {
                    let place = text(path);
                    unix.push(Address { place, lane });
                }
                Endpoint::SharedMemory { path } => {
                    let place = text(path);
                    memory.push(Address { place, lane });
                }
            }
        }
        Self {
            tcp,
            tls,
            unix,
            memory,
        }
    }

    /// The address over TLS that stands in the profile of the first plain one: a profile has one host.
    fn beside_plain(&self) -> Option<usize> {
        let plain = self.tcp.first()?;
        let is_beside = |other: &SecureAddress| {
            other.address.place.0 == plain.place.0 && other.address.lane == plain.lane
        };
        self.tls.iter().position(is_beside)
    }

    /// The UNIX sockets for a client that does not know lanes: those of the first lane, or all if there are no lanes.
    fn plain_unix(&self) -> impl Iterator<Item = &str> {
        let first = self.unix.first().and_then(|address| address.lane);
        self.unix
            .iter()
            .filter(move |address| address.lane == first)
            .map(|address| &*address.place)
    }
}

/// The listeners that lead to an object by its server protocols, each with its lane's priority if the client chooses the lane.
fn listeners<'o>(
    orb: &'o Adapters,
    object: &Published<'o>,
) -> Vec<(&'o Listener, Option<Priority>)> {
    let rt = object.rt;
    let all: Vec<_> = match (rt.laned_pool(orb), rt.model()) {
        (Some(pool), Some((PriorityModel::ClientPropagated, server_priority))) => {
            let mut lanes = orb.listeners(Some(pool));
            // A client that knows no lanes takes the first address: requests without a priority have the server's.
            lanes.sort_by_key(|(_, lane)| *lane != Some(server_priority));
            lanes
        }
        (Some(pool), Some((PriorityModel::ServerDeclared, server_priority))) => {
            let declared = Some(object.priority.unwrap_or(server_priority));
            pool.all_lanes()
                .filter(|lane| lane.priority == declared)
                .flat_map(unlabelled)
                .collect()
        }
        // Objects without a priority are served by the first lane.
        (Some(pool), None) => pool.lanes.iter().take(1).flat_map(unlabelled).collect(),
        (None, _) => orb.listeners(rt.pool.as_deref()),
    };
    let Some(protocols) = &rt.server_protocols else {
        return all;
    };
    all.into_iter()
        .filter(|(listener, _)| {
            let mut protocols = protocols.iter();
            protocols.any(|protocol| goes_by(&listener.bound, *protocol))
        })
        .collect()
}

fn unlabelled(lane: &Lane) -> impl Iterator<Item = (&Listener, Option<Priority>)> {
    lane.server
        .listeners
        .iter()
        .map(|listener| (listener, None))
}

/// The IIOP profiles: that of the plain addresses, and one for each address over TLS that has no place there. Clients of other ORBs take
/// the first that they can use.
fn iiop_profiles(object: &Published<'_>, addresses: &Addresses) -> Vec<TaggedProfile> {
    let beside = addresses.beside_plain();
    let plain = iiop_profile(object, addresses);
    let others = addresses.tls.iter().enumerate();
    let others = others.filter(|(index, _)| Some(*index) != beside);
    let others = others.filter_map(|(_, secure)| secure_profile(object, secure));
    plain.into_iter().chain(others).collect()
}

/// The IIOP profile of an address that is reached over TLS alone: its port is 0. TAG_SSL_SEC_TRANS has the port for TLS, on the host of the
/// profile, and what the server supports and requires (Security Service 1.8, SSLIOP).
fn secure_profile(object: &Published<'_>, secure: &SecureAddress) -> Option<TaggedProfile> {
    let mut components = common_components(object.native_char_code_set).to_vec();
    components.push(ssl_component(secure, true));
    if !object.rt.is_plain() {
        components.push(Component::TaoEndpoints(vec![tao_endpoint(&secure.address)]));
        components.extend(policies(object));
    }
    let profile = IiopProfile {
        version: Version::V1_2,
        host: secure.address.place.0.clone(),
        port: 0,
        object_key: object.object_key.to_vec(),
        components: tagged(components, object),
    };
    profile.to_tagged().ok()
}

/// The component of an address over TLS. `is_required` is false if the profile has a plain address too.
fn ssl_component(secure: &SecureAddress, is_required: bool) -> Component {
    let sealed = association::INTEGRITY | association::CONFIDENTIALITY;
    let trust = association::ESTABLISH_TRUST_IN_TARGET | association::ESTABLISH_TRUST_IN_CLIENT;
    let of_client = if secure.wants_client_certificate {
        association::ESTABLISH_TRUST_IN_CLIENT
    } else {
        0
    };
    let (supports, requires) = if is_required {
        (sealed | trust, sealed | of_client)
    } else {
        let plain = association::NO_PROTECTION;
        (sealed | trust | plain, plain)
    };
    Component::SslSecTrans(SslSecTrans {
        supports,
        requires,
        port: secure.address.place.1,
    })
}

/// The IIOP profile of the plain addresses. omniORB finds a UNIX socket only in a component of one, which without TCP has port 0.
fn iiop_profile(object: &Published<'_>, addresses: &Addresses) -> Option<TaggedProfile> {
    let first = addresses.tcp.first();
    let (host, port) = match (first, addresses.unix.first()) {
        (Some(first), _) => first.place.clone(),
        (None, Some(_)) => (host_name(), 0),
        (None, None) => return None,
    };
    let mut components = common_components(object.native_char_code_set).to_vec();
    let beside = addresses.beside_plain();
    components.extend(beside.map(|index| ssl_component(&addresses.tls[index], false)));
    if !object.rt.is_plain() {
        // TAO takes a single endpoint without a lane here; further endpoints are alternate addresses.
        let has_lane = |address: &&Address<_>| address.lane.is_some();
        let lanes = addresses.tcp.iter().filter(has_lane);
        let mut endpoints: Vec<_> = lanes.map(tao_endpoint).collect();
        if endpoints.is_empty() {
            endpoints.extend(first.map(tao_endpoint));
        }
        if !endpoints.is_empty() {
            components.push(Component::TaoEndpoints(endpoints));
        }
        components.extend(policies(object));
    }
    let further = addresses
        .tcp
        .iter()
        .skip(1)
        .filter(|address| address.lane.is_none());
    components.extend(further.map(|address| {
        let (host, port) = address.place.clone();
        Component::AlternateIiopAddress(ListenPoint { host, port })
    }));
    components.extend(addresses.plain_unix().map(|path| {
        let (host, path) = (host_name(), path.to_owned());
        Component::OmniUnixTrans(OmniUnixTrans { host, path })
    }));
    let profile = IiopProfile {
        version: Version::V1_2,
        host,
        port,
        object_key: object.object_key.to_vec(),
        components: tagged(components, object),
    };
    profile.to_tagged().ok()
}

/// A UIOP profile for each UNIX socket, or one for those of all lanes.
fn uiop_profiles<'a>(
    object: &'a Published<'_>,
    addresses: &'a Addresses,
) -> impl Iterator<Item = TaggedProfile> {
    paths(object, &addresses.unix).filter_map(|(path, components)| {
        let profile = UiopProfile {
            version: Version::V1_2,
            path,
            object_key: object.object_key.to_vec(),
            components,
        };
        profile.to_tagged().ok()
    })
}

/// A SHMIOP profile for each way through shared memory, or one for those of all lanes.
fn shmiop_profiles<'a>(
    object: &'a Published<'_>,
    addresses: &'a Addresses,
) -> impl Iterator<Item = TaggedProfile> {
    paths(object, &addresses.memory).filter_map(|(path, components)| {
        let profile = ShmiopProfile {
            version: Version::V1_2,
            host: host_identity().to_owned(),
            path,
            object_key: object.object_key.to_vec(),
            components,
        };
        profile.to_tagged().ok()
    })
}

/// The path and the components of each profile whose addresses are paths: one for each, or one for those of all lanes.
fn paths<'a>(
    object: &'a Published<'_>,
    addresses: &'a [Address<String>],
) -> impl Iterator<Item = (String, Vec<TaggedComponent>)> {
    let has_lanes = addresses.iter().any(|address| address.lane.is_some());
    let profiles_max = if has_lanes { 1 } else { addresses.len() };
    addresses.iter().take(profiles_max).map(move |address| {
        let mut components = common_components(object.native_char_code_set).to_vec();
        if !object.rt.is_plain() {
            let endpoints = if has_lanes {
                addresses.iter().map(tao_unix_endpoint).collect()
            } else {
                vec![tao_unix_endpoint(address)]
            };
            components.push(Component::TaoUnixEndpoints(endpoints));
            components.extend(policies(object));
        }
        (address.place.clone(), tagged(components, object))
    })
}

fn tao_endpoint(address: &Address<(String, u16)>) -> ior::TaoEndpoint {
    let (host, port) = address.place.clone();
    ior::TaoEndpoint {
        host,
        port,
        priority: label(address.lane),
    }
}

fn tao_unix_endpoint(address: &Address<String>) -> TaoUnixEndpoint {
    TaoUnixEndpoint {
        path: address.place.clone(),
        priority: label(address.lane),
    }
}

/// Returns a lane's priority in TAO's form: -1 without a lane.
fn label(lane: Option<Priority>) -> i16 {
    lane.map_or(-1, Priority::get)
}

/// TAG_POLICIES, in the order of TAO: bands before the model.
fn policies(object: &Published<'_>) -> Option<Component> {
    let rt = object.rt;
    let bands = (!rt.bands.is_empty()).then(|| ior::ExposedPolicy::PriorityBands(rt.bands.clone()));
    let model = rt.model().map(|(model, server_priority)| {
        let server_priority = match model {
            PriorityModel::ServerDeclared => object.priority.unwrap_or(server_priority),
            PriorityModel::ClientPropagated => server_priority,
        };
        ior::ExposedPolicy::PriorityModel {
            model,
            server_priority: server_priority.get(),
        }
    });
    let protocols = rt.client_protocols.as_ref().map(|protocols| {
        let protocols = protocols.iter().filter_map(|protocol| protocol.to_wire());
        ior::ExposedPolicy::ClientProtocols(protocols.collect())
    });
    let policies: Vec<_> = [bands, model, protocols].into_iter().flatten().collect();
    (!policies.is_empty()).then_some(Component::Policies(policies))
}

/// Returns ORB_TYPE of this ORB, which is `rtb` and a zero, and its code sets.
const ORB_TYPE: u32 = 0x7274_6200;

fn common_components(native: CharCodeSet) -> [Component; 2] {
    [
        Component::OrbType(ORB_TYPE),
        Component::CodeSets(CodeSetComponentInfo::supported().with_native_char(native)),
    ]
}

/// Encodes components, and adds those of interceptors. A host name that cannot be encoded does not occur, because no server can listen
/// on it.
fn tagged(components: Vec<Component>, object: &Published<'_>) -> Vec<TaggedComponent> {
    let own = components.iter().filter_map(|own| own.to_tagged().ok());
    own.chain(object.components.iter().cloned()).collect()
}
