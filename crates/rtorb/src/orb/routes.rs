//! From an IOR to the endpoints that lead to its object, and from listening endpoints to an IOR.

use super::Orb;
use crate::endpoint::{Endpoint, ListenEndpoint};
use crate::exception::{Cause, ExceptionKind, Phase, SystemException};
use crate::reference::Route;
use crate::server::Server;
use crate::transport::Listener;
use core::sync::atomic::{AtomicU64, Ordering};
use rtorb_os::sync::Mutex;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::giop::Version;
use rtorb_wire::ior::{IiopProfile, Ior, ProfileBody, TaggedComponent, UiopProfile};
use rtorb_wire::{EncodeError, Reader, Writer};
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// An endpoint that references of one ORB share, with a number that no other endpoint of the process has.
#[derive(Debug)]
pub(crate) struct SharedEndpoint {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) id: u64,
}

/// The endpoints that references in use lead to, so that those to one server share a thread's connection.
#[derive(Debug, Default)]
pub(crate) struct EndpointTable {
    endpoints: Mutex<HashMap<Endpoint, Weak<SharedEndpoint>>>,
}

/// Endpoints beyond this many make the table forget those that no reference has any more.
const PURGE_AT: usize = 256;

impl EndpointTable {
    fn share(&self, endpoint: Endpoint) -> Arc<SharedEndpoint> {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let mut endpoints = self.endpoints.lock();
        if let Some(shared) = endpoints.get(&endpoint).and_then(Weak::upgrade) {
            return shared;
        }
        if endpoints.len() >= PURGE_AT {
            endpoints.retain(|_, shared| shared.strong_count() > 0);
        }
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::new(SharedEndpoint {
            endpoint: Arc::new(endpoint.clone()),
            id,
        });
        endpoints.insert(endpoint, Arc::downgrade(&shared));
        shared
    }
}

/// Routes of one reference; a reference with more has them cut, since a peer chose how many there are.
const ROUTES_MAX: usize = 16;

/// The ways to an object, in the order of the reference's profiles.
pub(crate) fn routes(orb: &Orb, ior: &Ior) -> Vec<Route> {
    let mut routes = Vec::new();
    for profile in &ior.profiles {
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
    let char_code_set = char_code_set(&profile.components);
    let object_key: Arc<[u8]> = profile.object_key.as_slice().into();
    let version = profile.version.min(orb.core.max_version);
    let mut add = |endpoint| {
        routes.push(Route {
            endpoint: orb.core.endpoints.share(endpoint),
            version,
            object_key: Arc::clone(&object_key),
            char_code_set,
        });
    };
    for path in profile.components.iter().filter_map(omni_unix_path) {
        add(Endpoint::Unix { path: path.into() });
    }
    // Port 0: the object cannot be reached by TCP.
    if profile.port != 0 {
        add(Endpoint::Tcp {
            host: profile.host.clone(),
            port: profile.port,
        });
    }
    for (host, port) in profile.components.iter().filter_map(alternate_address) {
        add(Endpoint::Tcp { host, port });
    }
}

fn uiop_route(orb: &Orb, profile: &UiopProfile) -> Route {
    Route {
        endpoint: orb.core.endpoints.share(Endpoint::Unix {
            path: profile.path.clone().into(),
        }),
        version: profile.version.min(orb.core.max_version),
        object_key: profile.object_key.as_slice().into(),
        char_code_set: char_code_set(&profile.components),
    }
}

mod component_tag {
    pub(super) const ORB_TYPE: u32 = 0;
    pub(super) const CODE_SETS: u32 = 1;
    pub(super) const ALTERNATE_IIOP_ADDRESS: u32 = 3;
    pub(super) const OMNI_UNIX_TRANS: u32 = 0x4154_5402;
}

/// ORB_TYPE of this ORB: `rtb` and a zero.
const ORB_TYPE: u32 = 0x7274_6200;

const UTF_16: u32 = 0x0001_0109;

/// What `char` data is sent in to a server with these components.
///
/// Strings here are UTF-8, so that is chosen wherever the server has it, as its own or as a conversion; without a
/// component the standard's default holds (CORBA 3, 13.10.2.6).
fn char_code_set(components: &[TaggedComponent]) -> CharCodeSet {
    let offered = components
        .iter()
        .find(|component| component.tag == component_tag::CODE_SETS)
        .and_then(|component| {
            let mut r = Reader::encapsulated(&component.data).ok()?;
            let native = r.primitive::<u32>().ok()?;
            let count = r.count(4).ok()?;
            let mut all = vec![native];
            r.primitives_into(&mut all, count).ok()?;
            Some(all)
        });
    match offered {
        Some(sets) if sets.contains(&CharCodeSet::Utf8.registry()) => CharCodeSet::Utf8,
        _ => CharCodeSet::Latin1,
    }
}

/// The path of an omniORB server on this host that listens on a UNIX socket.
fn omni_unix_path(component: &TaggedComponent) -> Option<String> {
    if component.tag != component_tag::OMNI_UNIX_TRANS {
        return None;
    }
    let mut r = Reader::encapsulated(&component.data).ok()?;
    let host = r.str().ok()?;
    let path = r.str().ok()?;
    (host == host_name()).then(|| path.into_owned())
}

fn alternate_address(component: &TaggedComponent) -> Option<(String, u16)> {
    if component.tag != component_tag::ALTERNATE_IIOP_ADDRESS {
        return None;
    }
    let mut r = Reader::encapsulated(&component.data).ok()?;
    Some((r.str().ok()?.into_owned(), r.primitive().ok()?))
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
        let mut components = common_components();
        components.extend(addresses.filter_map(|(host, port)| {
            component(component_tag::ALTERNATE_IIOP_ADDRESS, |w| {
                w.str(&host)?;
                w.primitive(port)
            })
        }));
        components.extend(unix().filter_map(|path| {
            component(component_tag::OMNI_UNIX_TRANS, |w| {
                w.str(&host_name())?;
                w.str(&path)
            })
        }));
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
            components: common_components(),
        };
        profiles.extend(profile.to_tagged().ok());
    }
    Ior {
        type_id: repository_id.to_owned(),
        profiles,
    }
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

fn common_components() -> Vec<TaggedComponent> {
    let orb_type = component(component_tag::ORB_TYPE, |w| w.primitive(ORB_TYPE));
    let code_sets = component(component_tag::CODE_SETS, |w| {
        w.primitive(CharCodeSet::Utf8.registry())?;
        w.count(1)?;
        w.primitive(CharCodeSet::Latin1.registry())?;
        w.primitive(UTF_16)?;
        w.count(0)
    });
    orb_type.into_iter().chain(code_sets).collect()
}

fn component(
    tag: u32,
    content: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
) -> Option<TaggedComponent> {
    let mut w = Writer::new(Vec::new(), COMPONENT_OCTETS_MAX);
    w.primitive(w.order().flag())
        .and_then(|()| content(&mut w))
        .ok()?;
    Some(TaggedComponent {
        tag,
        data: w.into_octets(),
    })
}

/// A path or a host name, and little else.
const COMPONENT_OCTETS_MAX: usize = 64 << 10;
