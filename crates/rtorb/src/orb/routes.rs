//! From an IOR to the endpoints that lead to its object, and from listening endpoints to an IOR.

use super::Orb;
use crate::endpoint::{Endpoint, ListenEndpoint};
use crate::exception::{Cause, ExceptionKind, Phase, SystemException};
use crate::reference::Route;
use crate::server::Server;
use crate::transport::Listener;
use rtorb_os::sync::Mutex;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::code_sets::{self, CodeSetComponentInfo};
use rtorb_wire::giop::contexts::ListenPoint;
use rtorb_wire::giop::{RequestPrefix, Version};
use rtorb_wire::ior::{Component, IiopProfile, Ior, ProfileBody, TaggedComponent, UiopProfile};
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// An endpoint as references and connections of one ORB share it: those that have the same one go together.
#[derive(Debug)]
pub(crate) struct SharedEndpoint {
    pub(crate) endpoint: Arc<Endpoint>,
    /// In which `char` data goes there. A connection tells its server one code set, and once, so that references which
    /// do not agree on it have different connections (CORBA 3, 13.10.2.5).
    pub(crate) char_code_set: CharCodeSet,
}

/// The endpoints that references in use lead to, so that those to one server share a thread's connection.
#[derive(Debug, Default)]
pub(crate) struct EndpointTable {
    endpoints: Mutex<HashMap<(Endpoint, CharCodeSet), Weak<SharedEndpoint>>>,
}

/// Endpoints beyond this many make the table forget those that no reference has any more.
const PURGE_AT: usize = 256;

impl EndpointTable {
    fn share(&self, endpoint: Endpoint, char_code_set: CharCodeSet) -> Arc<SharedEndpoint> {
        let key = (endpoint, char_code_set);
        let mut endpoints = self.endpoints.lock();
        if let Some(shared) = endpoints.get(&key).and_then(Weak::upgrade) {
            return shared;
        }
        if endpoints.len() >= PURGE_AT {
            endpoints.retain(|_, shared| shared.strong_count() > 0);
        }
        let shared = Arc::new(SharedEndpoint {
            endpoint: Arc::new(key.0.clone()),
            char_code_set,
        });
        endpoints.insert(key, Arc::downgrade(&shared));
        shared
    }
}

/// Routes of one reference; a reference with more has them cut, since a peer chose how many there are.
const ROUTES_MAX: usize = 16;

/// The ways to an object, in the order of the reference's profiles.
pub(crate) fn routes(orb: &Orb, ior: &Ior) -> Vec<Route> {
    let mut routes = Vec::new();
    for profile in &ior.profiles {
        if routes.len() >= ROUTES_MAX {
            break;
        }
        match ProfileBody::from_tagged(profile) {
            Ok(ProfileBody::Iiop(profile)) => iiop_routes(orb, &profile, &mut routes),
            Ok(ProfileBody::Uiop(profile)) => routes.push(uiop_route(orb, &profile)),
            // A profile that cannot be used may stand beside one that can.
            Ok(_) | Err(_) => {}
        }
    }
    routes.truncate(ROUTES_MAX);
    routes
}

/// The key in the first profile that this ORB can read.
pub(crate) fn object_key(ior: &Ior) -> Option<Vec<u8>> {
    ior.profiles
        .iter()
        .find_map(|profile| match ProfileBody::from_tagged(profile) {
            Ok(ProfileBody::Iiop(profile)) => Some(profile.object_key),
            Ok(ProfileBody::Uiop(profile)) => Some(profile.object_key),
            _ => None,
        })
}

fn iiop_routes(orb: &Orb, profile: &IiopProfile, routes: &mut Vec<Route>) {
    let components = readable(&profile.components);
    let route_to = route_maker(orb, profile.version, &profile.object_key, &components);
    for component in components.iter().take(ROUTES_MAX) {
        // An omniORB server on this host that listens on a UNIX socket: the shorter way.
        if let Component::OmniUnixTrans { host, path } = component
            && *host == host_name()
        {
            routes.push(route_to(Endpoint::Unix { path: path.into() }));
        }
    }
    // Port 0: the object cannot be reached by TCP.
    if profile.port != 0 {
        routes.push(route_to(Endpoint::Tcp {
            host: profile.host.clone(),
            port: profile.port,
        }));
    }
    let left = ROUTES_MAX.saturating_sub(routes.len());
    let is_alternate =
        |component: &Component| matches!(component, Component::AlternateIiopAddress(_));
    for component in components.into_iter().filter(is_alternate).take(left) {
        if let Component::AlternateIiopAddress(ListenPoint { host, port }) = component {
            routes.push(route_to(Endpoint::Tcp { host, port }));
        }
    }
}

fn uiop_route(orb: &Orb, profile: &UiopProfile) -> Route {
    let components = readable(&profile.components);
    let route_to = route_maker(orb, profile.version, &profile.object_key, &components);
    route_to(Endpoint::Unix {
        path: profile.path.clone().into(),
    })
}

/// Makes the routes of one profile, which differ in nothing but the endpoint.
fn route_maker<'o>(
    orb: &'o Orb,
    version: Version,
    object_key: &[u8],
    components: &[Component],
) -> impl Fn(Endpoint) -> Route + use<'o> {
    let version = version.min(orb.core.max_version);
    let char_code_set = char_code_set(components);
    // A key that fits into no message is found out when a request is made.
    let prefix = RequestPrefix::new(version, orb.core.byte_order, object_key)
        .ok()
        .flatten()
        .map(Arc::new);
    let object_key: Arc<[u8]> = object_key.into();
    move |endpoint| Route {
        endpoint: orb.core.endpoints.share(endpoint, char_code_set),
        version,
        object_key: Arc::clone(&object_key),
        prefix: prefix.clone(),
    }
}

/// ORB_TYPE of this ORB: `rtb` and a zero.
const ORB_TYPE: u32 = 0x7274_6200;

/// What `char` data is sent in to a server with these components.
///
/// Strings here are UTF-8, so that is asked for first; ISO 8859-1 is what holds without a component, and what is left
/// when a server has neither (CORBA 3, 13.10.2.6).
fn char_code_set(components: &[Component]) -> CharCodeSet {
    let chosen = components.iter().find_map(|component| match component {
        Component::CodeSets(server) => {
            let mut client = CodeSetComponentInfo::ours();
            client.char_data.conversion.clear();
            code_sets::choose(server, &client).ok()
        }
        _ => None,
    });
    chosen
        .and_then(|sets| CharCodeSet::from_registry(sets.char_data))
        .unwrap_or_default()
}

/// The components that can be read; one that cannot says nothing about the others.
fn readable(components: &[TaggedComponent]) -> Vec<Component> {
    components
        .iter()
        .filter_map(|component| Component::from_tagged(component).ok())
        .collect()
}

fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// Opens the listening endpoints.
pub(super) fn listen(endpoints: &[ListenEndpoint]) -> Result<Server, SystemException> {
    let failed = |endpoint: Option<&Endpoint>, errno: Errno| {
        SystemException::from(ExceptionKind::Initialize).with_cause(Cause {
            phase: Phase::Listen,
            endpoint: endpoint.cloned().map(Arc::new),
            elapsed: Duration::ZERO,
            errno: Some(errno),
        })
    };
    let listeners: Result<Vec<_>, _> = endpoints
        .iter()
        .map(|listen| Listener::bind(listen).map_err(|errno| failed(Some(&listen.endpoint), errno)))
        .collect();
    Server::new(listeners?).map_err(|errno| failed(None, errno))
}

/// A reference to an object behind these listening endpoints: an IIOP profile for the first TCP one, the others as its
/// alternate addresses, and a UIOP profile for each UNIX socket.
pub(super) fn ior(repository_id: &str, object_key: &[u8], listeners: &[Listener]) -> Ior {
    let tcp = listeners.iter().filter_map(tcp_address);
    let unix = || {
        listeners
            .iter()
            .filter_map(|listener| match &listener.bound {
                Endpoint::Unix { path } => Some(path.to_string_lossy().into_owned()),
                Endpoint::Tcp { .. } => None,
            })
    };
    let mut profiles = Vec::new();
    let mut addresses = tcp.peekable();
    // omniORB finds a UNIX socket only in a component of an IIOP profile, which then has no port.
    let first = addresses
        .next()
        .or_else(|| unix().next().map(|_| (host_name(), 0)));
    if let Some((host, port)) = first {
        let alternates = addresses
            .map(|(host, port)| Component::AlternateIiopAddress(ListenPoint { host, port }));
        let sockets = unix().map(|path| Component::OmniUnixTrans {
            host: host_name(),
            path,
        });
        let components = tagged(
            common_components()
                .into_iter()
                .chain(alternates)
                .chain(sockets),
        );
        let object_key = object_key.to_vec();
        profiles.extend(
            IiopProfile {
                version: Version::V1_2,
                host,
                port,
                object_key,
                components,
            }
            .to_tagged()
            .ok(),
        );
    }
    for path in unix() {
        let object_key = object_key.to_vec();
        let profile = UiopProfile {
            version: Version::V1_2,
            path,
            object_key,
            components: tagged(common_components()),
        };
        profiles.extend(profile.to_tagged().ok());
    }
    Ior {
        type_id: repository_id.to_owned(),
        profiles,
    }
}

/// True if that endpoint is the listener's own, as it was asked for or as clients are told it.
pub(super) fn leads_to(listener: &Listener, endpoint: &Endpoint) -> bool {
    let told = tcp_address(listener).map(|(host, port)| Endpoint::Tcp { host, port });
    listener.bound == *endpoint || told.as_ref() == Some(endpoint)
}

/// Host and port that clients are told.
fn tcp_address(listener: &Listener) -> Option<(String, u16)> {
    let Endpoint::Tcp { host, port } = &listener.bound else {
        return None;
    };
    let host = match (&listener.advertised_host, host.as_str()) {
        (Some(name), _) => name.clone(),
        // Every interface: this host's name is the best that is known of them.
        (None, "0.0.0.0" | "::") => host_name(),
        (None, host) => host.to_owned(),
    };
    Some((host, *port))
}

fn common_components() -> [Component; 2] {
    [
        Component::OrbType(ORB_TYPE),
        Component::CodeSets(CodeSetComponentInfo::ours()),
    ]
}

/// The components as they travel; a host name that cannot be encoded cannot be listened on either.
fn tagged(components: impl IntoIterator<Item = Component>) -> Vec<TaggedComponent> {
    components
        .into_iter()
        .filter_map(|component| component.to_tagged().ok())
        .collect()
}
