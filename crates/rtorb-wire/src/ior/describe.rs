//! Components and policies as readable text.

use super::components::{Component, TaggedComponent, association, component_tag, orb_name};
use super::policies::{ExposedPolicy, PriorityModel, ProtocolProperties};
use crate::code_sets::{self, CodeSetComponent};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OrbType(orb) => match orb_name(*orb) {
                Some(name) => write!(f, "ORB type: {name}"),
                None => write!(f, "ORB type: {orb:#010x}"),
            },
            Self::CodeSets(info) => {
                let char_data = code_sets(&info.char_data);
                let wchar_data = code_sets(&info.wchar_data);
                write!(f, "code sets: char {char_data}; wchar {wchar_data}")
            }
            Self::Policies(policies) => write!(f, "policies: {}", list(policies)),
            Self::AlternateIiopAddress(address) => {
                write!(f, "also at {}", at(&address.host, address.port))
            }
            Self::CompleteObjectKey(key) => write!(f, "whole object key: {}", Hex(key)),
            Self::SslSecTrans(ssl) => {
                let security = security(ssl.supports, ssl.requires);
                write!(f, "TLS at port {}, {security}", ssl.port)
            }
            Self::CsiSecMechList(csi) => {
                let mechanisms = csi.mechanisms.iter().map(|it| transport(&it.transport));
                write!(f, "security mechanisms: {}", list(mechanisms))
            }
            Self::TlsSecTrans(tls) => {
                let addresses = tls.addresses.iter().map(|it| at(&it.host, it.port));
                let security = security(tls.supports, tls.requires);
                write!(f, "TLS at {}, {security}", list(addresses))
            }
            Self::JavaCodebase(url) => write!(f, "Java codebase: {url}"),
            Self::NumberPolicy { tag, value } => write!(f, "{}: {value}", tag_name(*tag)),
            Self::Group { tag, group } => {
                let (name, domain) = (tag_name(*tag), &group.domain);
                let (id, version) = (group.id, group.version);
                write!(f, "{name}: {domain}, group {id}, version {version}")
            }
            Self::Flag { tag, set } => write!(f, "{}: {set}", tag_name(*tag)),
            Self::TaoEndpoints(endpoints) => {
                let endpoints = endpoints
                    .iter()
                    .map(|it| at(&it.host, it.port) + &lane(it.priority));
                write!(f, "endpoints: {}", list(endpoints))
            }
            Self::TaoUnixEndpoints(endpoints) => {
                let endpoints = endpoints.iter();
                let endpoints = endpoints.map(|it| it.path.clone() + &lane(it.priority));
                write!(f, "endpoints: {}", list(endpoints))
            }
            Self::OmniUnixTrans(socket) => {
                write!(f, "UNIX socket {} of host {}", socket.path, socket.host)
            }
            Self::Other(component) => {
                match tag_name(component.tag) {
                    "" => write!(f, "component {:#x}: ", component.tag)?,
                    name => write!(f, "{name}: ")?,
                }
                Hex(&component.data).fmt(f)
            }
        }
    }
}

/// The transport of a security mechanism. Only TLS is decoded: a list of mechanisms in a mechanism, which only hostile bytes have, would be
/// described by recursion.
fn transport(component: &TaggedComponent) -> String {
    match component.tag {
        component_tag::TLS_SEC_TRANS => component.describe(),
        _ => Component::Other(component.clone()).to_string(),
    }
}

/// The priority of an endpoint.
fn lane(priority: i16) -> String {
    match priority {
        -1 => String::new(),
        priority => format!(" for priority {priority}"),
    }
}

impl fmt::Display for ExposedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PriorityModel {
                model: PriorityModel::ClientPropagated,
                server_priority,
            } => write!(f, "priority of the client, otherwise {server_priority}"),
            Self::PriorityModel {
                model: PriorityModel::ServerDeclared,
                server_priority,
            } => write!(f, "priority {server_priority}, declared by the server"),
            Self::PriorityBands(bands) => {
                let bands = bands.iter();
                let bands = bands.map(|band| format!("{} to {}", band.low, band.high));
                write!(f, "priority bands {}", list(bands))
            }
            Self::ClientProtocols(protocols) => {
                let protocols = protocols.iter().map(|protocol| match protocol.properties {
                    ProtocolProperties::Tcp(_) => "IIOP",
                    ProtocolProperties::Unix(_) => "UIOP",
                });
                write!(f, "protocols {}", list(protocols))
            }
            Self::Other(policy) => {
                write!(f, "policy {} = {}", policy.policy_type, Hex(&policy.value))
            }
        }
    }
}

/// Bytes as hexadecimal digits.
pub(crate) struct Hex<'x>(pub(crate) &'x [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The items with commas between them, or `none`.
fn list(items: impl IntoIterator<Item: ToString>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    match &items[..] {
        [] => "none".to_owned(),
        items => items.join(", "),
    }
}

/// Host and port as in a URL, an IPv6 address in brackets.
pub(crate) fn at(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

fn code_sets(component: &CodeSetComponent) -> String {
    let native = code_set(component.native);
    if component.conversion.is_empty() {
        return native;
    }
    let conversion = component.conversion.iter().copied().map(code_set);
    format!("{native}, also {}", list(conversion))
}

fn code_set(number: u32) -> String {
    let name = match number {
        0 => "none",
        code_sets::ISO_8859_1 => "ISO 8859-1",
        code_sets::ISO_8859_15 => "ISO 8859-15",
        code_sets::ISO_646 => "ASCII",
        code_sets::UCS_2 => "UCS-2",
        code_sets::UCS_4 => "UCS-4",
        code_sets::UTF_16 => "UTF-16",
        code_sets::UTF_8 => "UTF-8",
        other => return format!("{other:#010x}"),
    };
    name.to_owned()
}

fn security(supports: u16, requires: u16) -> String {
    let (supports, requires) = (options(supports), options(requires));
    format!("supports {supports}, requires {requires}")
}

fn options(bits: u16) -> String {
    let names = [
        (association::NO_PROTECTION, "no protection"),
        (association::INTEGRITY, "integrity"),
        (association::CONFIDENTIALITY, "confidentiality"),
        (
            association::ESTABLISH_TRUST_IN_TARGET,
            "trust in the server",
        ),
        (
            association::ESTABLISH_TRUST_IN_CLIENT,
            "trust in the client",
        ),
    ];
    let named = names.iter().filter(|(bit, _)| bits & bit != 0);
    list(named.map(|(_, name)| name))
}

fn tag_name(tag: u32) -> &'static str {
    match tag {
        component_tag::TRANSACTION_POLICY => "transaction policy",
        component_tag::OTS_POLICY => "OTS policy",
        component_tag::INV_POLICY => "invocation policy",
        component_tag::FT_GROUP => "replicated object",
        component_tag::FT_PRIMARY => "primary replica",
        component_tag::FT_HEARTBEAT_ENABLED => "heartbeat",
        component_tag::GROUP => "multicast group",
        component_tag::OMNI_BIDIR => "omniORB, bidirectional",
        component_tag::OMNI_PERSISTENT_ID => "omniORB, run of the server",
        component_tag::OMNI_RESTRICTED => "omniORB, restricted connection",
        _ => "",
    }
}
