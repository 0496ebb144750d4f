//! From listening endpoints to the references of the objects behind them.

use super::routes::host_name;
use crate::endpoint::{Endpoint, ListenEndpoint};
use crate::exception::{Cause, ExceptionKind, Phase, SystemException};
use crate::server::Server;
use crate::transport::Listener;
use rtorb_wire::code_sets::CodeSetComponentInfo;
use rtorb_wire::giop::Version;
use rtorb_wire::giop::contexts::ListenPoint;
use rtorb_wire::ior::{Component, IiopProfile, Ior, TaggedComponent, UiopProfile};
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Duration;

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

/// ORB_TYPE of this ORB: `rtb` and a zero.
const ORB_TYPE: u32 = 0x7274_6200;

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
