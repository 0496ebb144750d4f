//! Tagged components in words (CORBA 3, "Standard IOR Components"; TAO's and omniORB's own).

use rtorb_wire::ior::{ExposedProtocol, orb_name, profile_tag};
use rtorb_wire::{Decode, DecodeError, Reader};

use super::real_time::client_protocol;
use super::{NamedValue, hex, references, security};

/// What a component's tag stands for.
pub(super) fn name(tag: u32) -> &'static str {
    NAMES
        .iter()
        .find(|(known, _)| *known == tag)
        .map_or("unknown", |(_, name)| name)
}

/// What a component of a profile says; its bytes when its form is not known here.
pub(super) fn fields(profile: u32, tag: u32, data: &[u8]) -> Result<Vec<NamedValue>, DecodeError> {
    if tag == NULL {
        return Ok(Vec::new());
    }
    if RAW.contains(&tag) || name(tag) == "unknown" {
        return Ok(vec![NamedValue::new("octets", hex(data))]);
    }
    let r = &mut Reader::encapsulated(data)?;
    match tag {
        0 => Ok(vec![NamedValue::new("orb", orb_type(r.primitive()?))]),
        1 => code_sets(r),
        2 => policies(r),
        3 => Ok(vec![NamedValue::new("address", address(r)?)]),
        6 => Ok(vec![
            NamedValue::number("begin", r.primitive::<u16>()?),
            NamedValue::number("end", r.primitive::<u16>()?),
        ]),
        12 | 38 => Ok(vec![NamedValue::number("value", r.primitive::<u8>()?)]),
        13 => security::protection(r),
        20 => security::ssl(data),
        25 => Ok(vec![NamedValue::new("value", r.str()?)]),
        26 | 31 | 32 => Ok(vec![NamedValue::number("value", r.primitive::<u16>()?)]),
        27 | 39 => group(r),
        28 | 29 => Ok(vec![NamedValue::flag("value", r.primitive::<u8>()? != 0)]),
        30 => Ok(references(r)?
            .into_iter()
            .map(|router| NamedValue::new("router", router))
            .collect()),
        33 => security::mechanisms(r),
        36 => security::tls(r),
        40 => {
            let (major, minor) = (r.primitive::<u8>()?, r.primitive::<u8>()?);
            Ok(vec![
                NamedValue::new("version", format!("{major}.{minor}")),
                NamedValue::new("address", address(r)?),
            ])
        }
        TAO_ENDPOINTS if matches!(profile, profile_tag::TAO_UIOP | profile_tag::RTORB_SHMIOP) => {
            tao_endpoints(r, |r| Ok(r.str()?.into_owned()))
        }
        TAO_ENDPOINTS => tao_endpoints(r, address),
        OMNI_UNIX => Ok(vec![
            NamedValue::new("host", r.str()?),
            NamedValue::new("path", r.str()?),
        ]),
        _ => Ok(vec![NamedValue::new("octets", hex(data))]),
    }
}

/// The name of a code set of the OSF registry, and its number.
fn code_set(number: u32) -> String {
    let name = match number {
        0x0001_0001 => "ISO 8859-1",
        0x0001_000f => "ISO 8859-15",
        0x0001_0020 => "ISO 646 (ASCII)",
        0x0001_0100 => "UCS-2",
        0x0001_0104 => "UCS-4",
        0x0001_0109 => "UTF-16",
        0x0501_0001 => "UTF-8",
        _ => "code set",
    };
    format!("{name} (0x{number:08x})")
}

fn orb_type(number: u32) -> String {
    let name = orb_name(number).unwrap_or("ORB");
    format!("{name} (0x{number:08x})")
}

fn code_sets(r: &mut Reader<'_>) -> Result<Vec<NamedValue>, DecodeError> {
    let mut fields = Vec::new();
    for kind in ["char", "wchar"] {
        let native = r.primitive::<u32>()?;
        let conversions: Vec<String> = r
            .primitives::<u32>()?
            .iter()
            .map(|number| code_set(*number))
            .collect();
        let native = if native == 0 {
            "none".to_owned()
        } else {
            code_set(native)
        };
        fields.push(NamedValue::new(&format!("{kind}_native"), native));
        fields.push(NamedValue::new(
            &format!("{kind}_conversions"),
            if conversions.is_empty() {
                "none".to_owned()
            } else {
                conversions.join(", ")
            },
        ));
    }
    Ok(fields)
}

fn policies(r: &mut Reader<'_>) -> Result<Vec<NamedValue>, DecodeError> {
    // A policy is at least its type and the length of its value.
    let count = r.count(8)?;
    (0..count)
        .map(|_| {
            let kind = r.primitive::<u32>()?;
            let value = r.octets()?;
            let text = policy(kind, value)
                .unwrap_or_else(|error| format!("malformed ({error}): {}", hex(value)));
            Ok(NamedValue::new(
                policy_name(kind).unwrap_or(&format!("policy {kind}")),
                text,
            ))
        })
        .collect()
}

fn policy_name(kind: u32) -> Option<&'static str> {
    match kind {
        40 => Some("PriorityModel"),
        43 => Some("ClientProtocol"),
        45 => Some("PriorityBandedConnection"),
        _ => None,
    }
}

fn policy(kind: u32, value: &[u8]) -> Result<String, DecodeError> {
    let r = &mut Reader::encapsulated(value)?;
    match kind {
        40 => {
            let model = match r.primitive::<u32>()? {
                0 => "CLIENT_PROPAGATED".to_owned(),
                1 => "SERVER_DECLARED".to_owned(),
                other => format!("model {other}"),
            };
            Ok(format!(
                "{model}, server priority {}",
                r.primitive::<i16>()?
            ))
        }
        45 => {
            let count = r.count(4)?;
            let band = |_| -> Result<String, DecodeError> {
                let (low, high) = (r.primitive::<i16>()?, r.primitive::<i16>()?);
                Ok(format!("{low} to {high}"))
            };
            Ok((0..count)
                .map(band)
                .collect::<Result<Vec<_>, _>>()?
                .join(", "))
        }
        43 => {
            let protocols: Vec<ExposedProtocol> = Decode::decode(r)?;
            let texts = protocols
                .iter()
                .map(|protocol| client_protocol(protocol).to_string());
            Ok(texts.collect::<Vec<_>>().join("; "))
        }
        _ => Ok(hex(value)),
    }
}

fn group(r: &mut Reader<'_>) -> Result<Vec<NamedValue>, DecodeError> {
    let (major, minor) = (r.primitive::<u8>()?, r.primitive::<u8>()?);
    Ok(vec![
        NamedValue::new("version", format!("{major}.{minor}")),
        NamedValue::new("domain", r.str()?),
        NamedValue::number("group", r.primitive::<u64>()?),
        NamedValue::number("group_version", r.primitive::<u32>()?),
    ])
}

/// A sequence of addresses, each with its CORBA priority; the first is the profile's own.
fn tao_endpoints(
    r: &mut Reader<'_>,
    address: impl Fn(&mut Reader<'_>) -> Result<String, DecodeError>,
) -> Result<Vec<NamedValue>, DecodeError> {
    let count = r.count(6)?;
    (0..count)
        .map(|_| {
            let address = address(r)?;
            let priority = match r.primitive::<i16>()? {
                -1 => "no priority of its own".to_owned(),
                priority => format!("priority {priority}"),
            };
            Ok(NamedValue::new(
                "endpoint",
                format!("{address}, {priority}"),
            ))
        })
        .collect()
}

pub(super) fn address(r: &mut Reader<'_>) -> Result<String, DecodeError> {
    Ok(super::address(&r.str()?, r.primitive()?))
}

const NULL: u32 = 34;
const TAO_ENDPOINTS: u32 = 0x5441_4f02;
const OMNI_UNIX: u32 = 0x4154_5402;
/// Components that are bytes and no encapsulation, or whose inside is another standard's business.
const RAW: [u32; 22] = [
    5,
    14,
    15,
    16,
    17,
    18,
    19,
    21,
    22,
    23,
    24,
    35,
    37,
    100,
    101,
    102,
    103,
    123,
    0x4154_5401,
    0x4154_5403,
    0x4154_5404,
    0x4942_4d0a,
];

const NAMES: [(u32, &str); 46] = [
    (0, "ORB_TYPE"),
    (1, "CODE_SETS"),
    (2, "POLICIES"),
    (3, "ALTERNATE_IIOP_ADDRESS"),
    (5, "COMPLETE_OBJECT_KEY"),
    (6, "ENDPOINT_ID_POSITION"),
    (12, "LOCATION_POLICY"),
    (13, "ASSOCIATION_OPTIONS"),
    (14, "SEC_NAME"),
    (15, "SPKM_1_SEC_MECH"),
    (16, "SPKM_2_SEC_MECH"),
    (17, "KERBEROSV5_SEC_MECH"),
    (18, "CSI_ECMA_SECRET_SEC_MECH"),
    (19, "CSI_ECMA_HYBRID_SEC_MECH"),
    (20, "SSL_SEC_TRANS"),
    (21, "CSI_ECMA_PUBLIC_SEC_MECH"),
    (22, "GENERIC_SEC_MECH"),
    (23, "FIREWALL_TRANS"),
    (24, "SCCP_CONTACT_INFO"),
    (25, "JAVA_CODEBASE"),
    (26, "TRANSACTION_POLICY"),
    (27, "FT_GROUP"),
    (28, "FT_PRIMARY"),
    (29, "FT_HEARTBEAT_ENABLED"),
    (30, "MESSAGE_ROUTERS"),
    (31, "OTS_POLICY"),
    (32, "INV_POLICY"),
    (33, "CSI_SEC_MECH_LIST"),
    (34, "NULL"),
    (35, "SECIOP_SEC_TRANS"),
    (36, "TLS_SEC_TRANS"),
    (37, "ACTIVITY_POLICY"),
    (38, "RMI_CUSTOM_MAX_STREAM_FORMAT"),
    (39, "GROUP"),
    (40, "GROUP_IIOP"),
    (100, "DCE_STRING_BINDING"),
    (101, "DCE_BINDING_NAME"),
    (102, "DCE_NO_PIPES"),
    (103, "DCE_MECHANISM"),
    (123, "INET_SEC_TRANS"),
    (TAO_ENDPOINTS, "TAO_TAG_ENDPOINTS"),
    (0x4154_5401, "OMNIORB_BIDIR"),
    (OMNI_UNIX, "OMNIORB_UNIX_TRANS"),
    (0x4154_5403, "OMNIORB_PERSISTENT_ID"),
    (0x4154_5404, "OMNIORB_RESTRICTED_CONNECTION"),
    (0x4942_4d0a, "IBM_PV_TC_ID"),
];
