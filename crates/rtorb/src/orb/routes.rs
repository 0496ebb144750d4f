//! From an IOR to the endpoints that lead to its object.

use super::Orb;
use crate::endpoint::Endpoint;
use crate::reference::Route;
use rtorb_os::sync::Mutex;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::code_sets::{self, CodeSetComponentInfo};
use rtorb_wire::giop::contexts::ListenPoint;
use rtorb_wire::giop::{RequestPrefix, Version};
use rtorb_wire::ior::{Component, IiopProfile, Ior, ProfileBody, TaggedComponent, UiopProfile};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

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
        priority: None,
    }
}

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

/// The name of this host, as it calls itself.
pub(super) fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
