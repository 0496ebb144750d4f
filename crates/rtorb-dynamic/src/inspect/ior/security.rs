//! Security components in words: where a server listens with TLS, and what it asks of its clients (CSIv2 and the Security Service).

use rtorb_wire::{DecodeError, Reader};

use super::{NamedValue, components, hex, printable};

/// `TAG_SSL_SEC_TRANS`. VisiBroker writes longer numbers than the standard has.
pub(super) fn ssl(data: &[u8]) -> Result<Vec<NamedValue>, DecodeError> {
    let r = &mut Reader::encapsulated(data)?;
    if data.len() <= SSL_BYTES {
        let mut fields = protection(r)?;
        fields.push(NamedValue::number("port", r.primitive::<u16>()?));
        return Ok(fields);
    }
    let (supports, requires) = (r.primitive::<u32>()?, r.primitive::<u32>()?);
    Ok(vec![
        NamedValue::new("supports", association_options(supports as u16)),
        NamedValue::new("requires", association_options(requires as u16)),
        NamedValue::number("port", r.primitive::<u16>()?),
        NamedValue::new("note", "in the form of VisiBroker"),
    ])
}

/// What a transport supports and requires.
pub(super) fn protection(r: &mut Reader<'_>) -> Result<Vec<NamedValue>, DecodeError> {
    Ok(vec![
        NamedValue::new("supports", association_options(r.primitive()?)),
        NamedValue::new("requires", association_options(r.primitive()?)),
    ])
}

/// `TAG_TLS_SEC_TRANS`.
pub(super) fn tls(r: &mut Reader<'_>) -> Result<Vec<NamedValue>, DecodeError> {
    let mut fields = protection(r)?;
    fields.extend(addresses(r)?);
    Ok(fields)
}

/// `TAG_CSI_SEC_MECH_LIST`: the ways to reach the object with security, best first.
pub(super) fn mechanisms(r: &mut Reader<'_>) -> Result<Vec<NamedValue>, DecodeError> {
    let mut fields = vec![NamedValue::flag("stateful", r.primitive::<u8>()? != 0)];
    let count = r.count(MECHANISM_BYTES_MIN)?;
    fields.push(NamedValue::number("mechanisms", count as u64));
    for number in 1..=count {
        let requires = association_options(r.primitive()?);
        fields.push(NamedValue::new(
            "mechanism",
            format!("{number}, requires {requires}"),
        ));
        let (tag, data) = (r.primitive::<u32>()?, r.octets()?);
        fields.extend(transport(tag, data));
        fields.extend(authentication(r)?);
        fields.extend(attributes(r)?);
    }
    Ok(fields)
}

/// The transport of a mechanism, which is a component inside the component.
fn transport(tag: u32, data: &[u8]) -> Vec<NamedValue> {
    let told = match tag {
        NULL => return vec![NamedValue::new("transport", "without TLS")],
        TLS_SEC_TRANS => Reader::encapsulated(data).and_then(|mut r| tls(&mut r)),
        SECIOP_SEC_TRANS => Reader::encapsulated(data).and_then(|mut r| seciop(&mut r)),
        _ => Ok(vec![NamedValue::new("octets", hex(data))]),
    };
    let mut fields = vec![NamedValue::new("transport", components::name(tag))];
    match told {
        Ok(told) => fields.extend(told),
        Err(error) => fields.extend(super::malformed(&error, data)),
    }
    fields
}

fn seciop(r: &mut Reader<'_>) -> Result<Vec<NamedValue>, DecodeError> {
    let mut fields = protection(r)?;
    fields.push(NamedValue::new(
        "security_mechanism",
        mechanism_name(r.octets()?),
    ));
    fields.push(NamedValue::new("target", target_name(r.octets()?)));
    fields.extend(addresses(r)?);
    Ok(fields)
}

/// How a client tells who it is (`AS_ContextSec`).
fn authentication(r: &mut Reader<'_>) -> Result<Vec<NamedValue>, DecodeError> {
    let supports = r.primitive::<u16>()?;
    let requires = r.primitive::<u16>()?;
    let (mechanism, target) = (r.octets()?, r.octets()?);
    if supports == 0 && mechanism.is_empty() {
        return Ok(Vec::new());
    }
    let text = format!(
        "{} for {}, supports {}, requires {}",
        mechanism_name(mechanism),
        target_name(target),
        association_options(supports),
        association_options(requires)
    );
    Ok(vec![NamedValue::new("authentication", text)])
}

/// In whose name a client may call (`SAS_ContextSec`).
fn attributes(r: &mut Reader<'_>) -> Result<Vec<NamedValue>, DecodeError> {
    let supports = r.primitive::<u16>()?;
    let requires = r.primitive::<u16>()?;
    let authorities = r.count(AUTHORITY_BYTES_MIN)?;
    for _ in 0..authorities {
        r.primitive::<u32>()?;
        r.octets()?;
    }
    let count = r.count(LENGTH_BYTES)?;
    let names: Vec<String> = (0..count)
        .map(|_| r.octets().map(mechanism_name))
        .collect::<Result<_, _>>()?;
    let types = r.primitive::<u32>()?;
    if supports == 0 && names.is_empty() && types == 0 {
        return Ok(Vec::new());
    }
    let named = IDENTITY_TYPES.iter().filter(|(bit, _)| types & bit != 0);
    let types: Vec<&str> = named.map(|(_, name)| *name).collect();
    let text = format!(
        "supports {}, requires {}, identities: {}, names: {}",
        association_options(supports),
        association_options(requires),
        or_none(&types.join(", ")),
        or_none(&names.join(", "))
    );
    Ok(vec![NamedValue::new("attributes", text)])
}

fn addresses(r: &mut Reader<'_>) -> Result<Vec<NamedValue>, DecodeError> {
    let count = r.count(ADDRESS_BYTES_MIN)?;
    (0..count)
        .map(|_| Ok(NamedValue::new("address", components::address(r)?)))
        .collect()
}

fn association_options(bits: u16) -> String {
    let named = ASSOCIATION_OPTIONS
        .iter()
        .filter(|(bit, _)| bits & bit != 0)
        .map(|(_, name)| *name);
    let names: Vec<&str> = named.collect();
    or_none(&names.join(", ")).to_owned()
}

/// The name of a mechanism of GSS by its object identifier in DER.
fn mechanism_name(oid: &[u8]) -> String {
    match oid {
        [] => "none".to_owned(),
        GSSUP => "GSSUP (user and password)".to_owned(),
        KERBEROS => "Kerberos 5".to_owned(),
        _ => format!("mechanism {}", hex(oid)),
    }
}

/// The name in an exported name of GSS, behind its mechanism: 04 01, two lengths and the identifier (RFC 2743, 3.2).
fn target_name(exported: &[u8]) -> String {
    let inside = || {
        let rest = exported.strip_prefix(&[4, 1])?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let rest = rest.get(usize::from(u16::from_be_bytes(*length))..)?;
        let (length, name) = rest.split_first_chunk::<4>()?;
        name.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)
    };
    let name = inside().unwrap_or(exported);
    match name {
        [] => "any target".to_owned(),
        name => printable(name),
    }
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

const TLS_SEC_TRANS: u32 = 36;
const SECIOP_SEC_TRANS: u32 = 35;
const NULL: u32 = 34;
/// The bytes of the standard's `TAG_SSL_SEC_TRANS`, its byte order and padding included.
const SSL_BYTES: usize = 8;
/// The length of a sequence.
const LENGTH_BYTES: usize = 4;
/// An empty host, and the port.
const ADDRESS_BYTES_MIN: usize = 6;
/// A syntax, and the length of a name.
const AUTHORITY_BYTES_MIN: usize = 8;
/// The least that a mechanism has: options, tags, and lengths.
const MECHANISM_BYTES_MIN: usize = 40;
/// 2.23.130.1.1.1
const GSSUP: &[u8] = &[6, 6, 0x67, 0x81, 2, 1, 1, 1];
/// 1.2.840.113554.1.2.2
const KERBEROS: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2];

const IDENTITY_TYPES: [(u32, &str); 4] = [
    (1, "anonymous"),
    (2, "principal name"),
    (4, "X.509 certificates"),
    (8, "distinguished name"),
];

const ASSOCIATION_OPTIONS: [(u16, &str); 12] = [
    (1, "NoProtection"),
    (2, "Integrity"),
    (4, "Confidentiality"),
    (8, "DetectReplay"),
    (16, "DetectMisordering"),
    (32, "EstablishTrustInTarget"),
    (64, "EstablishTrustInClient"),
    (128, "NoDelegation"),
    (256, "SimpleDelegation"),
    (512, "CompositeDelegation"),
    (1024, "IdentityAssertion"),
    (2048, "DelegationByClient"),
];
