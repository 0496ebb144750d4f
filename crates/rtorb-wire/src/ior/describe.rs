//! Components and policies as readable text.

use super::components::{Component, association, component_tag, orb_name};
use super::policies::{ExposedPolicy, PriorityModel, ProtocolProperties};
use crate::code_sets::{self, CodeSetComponent};
use core::fmt;

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OrbType(orb) => match orb_name(*orb) {
                Some(name) => write!(f, "ORB type: {name}"),
                None => write!(f, "ORB type: {orb:#010x}"),
            },
            Self::CodeSets(info) => {
                f.write_str("code sets: char ")?;
                code_set(&info.char_data, f)?;
                f.write_str("; wchar ")?;
                code_set(&info.wchar_data, f)
            }
            Self::Policies(policies) => {
                f.write_str("policies: ")?;
                list(policies, f, |policy, f| write!(f, "{policy}"))
            }
            Self::AlternateIiopAddress(address) => {
                write!(f, "also at {}", at(&address.host, address.port))
            }
            Self::CompleteObjectKey(key) => write!(f, "whole object key: {}", Hex(key)),
            Self::SslSecTrans(ssl) => {
                write!(f, "TLS at port {}", ssl.port)?;
                security(ssl.supports, ssl.requires, f)
            }
            Self::TlsSecTrans(tls) => {
                f.write_str("TLS at ")?;
                list(&tls.addresses, f, |address, f| {
                    f.write_str(&at(&address.host, address.port))
                })?;
                security(tls.supports, tls.requires, f)
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
                f.write_str("endpoints: ")?;
                list(endpoints, f, |endpoint, f| {
                    f.write_str(&at(&endpoint.host, endpoint.port))?;
                    lane(endpoint.priority, f)
                })
            }
            Self::TaoUnixEndpoints(endpoints) => {
                f.write_str("endpoints: ")?;
                list(endpoints, f, |endpoint, f| {
                    f.write_str(&endpoint.path)?;
                    lane(endpoint.priority, f)
                })
            }
            Self::OmniUnixTrans(socket) => {
                write!(f, "UNIX socket {} of host {}", socket.path, socket.host)
            }
            Self::Other(component) => {
                let name = tag_name(component.tag);
                match name {
                    "" => write!(f, "component {:#x}: ", component.tag)?,
                    name => write!(f, "{name}: ")?,
                }
                write!(f, "{}", Hex(&component.data))
            }
        }
    }
}

/// The priority of an endpoint.
fn lane(priority: i16, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match priority {
        -1 => Ok(()),
        priority => write!(f, " for priority {priority}"),
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
                f.write_str("priority bands ")?;
                list(bands, f, |band, f| {
                    write!(f, "{} to {}", band.low, band.high)
                })
            }
            Self::ClientProtocols(protocols) => {
                f.write_str("protocols ")?;
                list(protocols, f, |protocol, f| {
                    f.write_str(match protocol.properties {
                        ProtocolProperties::Tcp(_) => "IIOP",
                        ProtocolProperties::Unix(_) => "UIOP",
                    })
                })
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
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

fn list<T>(
    items: &[T],
    f: &mut fmt::Formatter<'_>,
    each: impl Fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    if items.is_empty() {
        return f.write_str("none");
    }
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            f.write_str(", ")?;
        }
        each(item, f)?;
    }
    Ok(())
}

/// Host and port as in a URL, an IPv6 address in brackets.
pub(crate) fn at(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

fn code_set(component: &CodeSetComponent, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    code_set_name(component.native, f)?;
    if component.conversion.is_empty() {
        return Ok(());
    }
    f.write_str(", also ")?;
    list(&component.conversion, f, |set, f| code_set_name(*set, f))
}

fn code_set_name(number: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(match number {
        0 => "none",
        code_sets::ISO_8859_1 => "ISO 8859-1",
        code_sets::ISO_8859_15 => "ISO 8859-15",
        code_sets::ISO_646 => "ASCII",
        code_sets::UCS_2 => "UCS-2",
        code_sets::UCS_4 => "UCS-4",
        code_sets::UTF_16 => "UTF-16",
        code_sets::UTF_8 => "UTF-8",
        other => return write!(f, "{other:#010x}"),
    })
}

fn security(supports: u16, requires: u16, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(", supports ")?;
    options(supports, f)?;
    f.write_str(", requires ")?;
    options(requires, f)
}

fn options(bits: u16, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    const NAMES: [(u16, &str); 5] = [
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
    let named: Vec<_> = NAMES.iter().filter(|(bit, _)| bits & bit != 0).collect();
    list(&named, f, |(_, name), f| f.write_str(name))
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
