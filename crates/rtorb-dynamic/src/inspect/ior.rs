//! What an object reference says, profile by profile and component by component, in words.

use std::fmt;

use rtorb_wire::ior::{
    IiopProfile, Ior, ProfileBody, ShmiopProfile, TaggedComponent, TaggedProfile, UiopProfile,
    component_tag, profile_tag,
};
use rtorb_wire::url::UrlError;
use rtorb_wire::{Decode, Reader};
use serde::Serialize;

mod components;
mod real_time;
mod security;

pub use real_time::{Band, ClientProtocol, LaneEndpoint, RealTime};

/// A reference in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Description {
    /// Repository id of the most derived interface; empty when the reference does not say.
    pub type_id: String,
    /// Whether it refers to nothing.
    pub nil: bool,
    /// The ways to reach the object, best first.
    pub profiles: Vec<Profile>,
}

/// A profile in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Its tag.
    pub tag: u32,
    /// What the tag stands for.
    pub name: String,
    /// What it says: name and value, in the order of the bytes.
    pub fields: Vec<NamedValue>,
    /// What it says of priorities, if anything.
    pub real_time: Option<RealTime>,
    /// The components that it carries.
    pub components: Vec<Component>,
}

/// A component in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Component {
    /// Its tag.
    pub tag: u32,
    /// What the tag stands for.
    pub name: String,
    /// What it says.
    pub fields: Vec<NamedValue>,
}

/// A name and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedValue {
    /// What it is.
    pub name: String,
    /// The value.
    pub value: FieldValue,
}

/// The value of a field, for programs: in JSON a number is a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum FieldValue {
    /// A number.
    Number(u64),
    /// A yes or no.
    Flag(bool),
    /// A text.
    Text(String),
}

impl Description {
    /// Describes the reference in an `IOR:` text.
    ///
    /// # Errors
    /// That the text is none.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        Ior::parse(text).map(|ior| Self::of(&ior))
    }

    /// Describes a reference.
    #[must_use]
    pub fn of(ior: &Ior) -> Self {
        Self {
            type_id: ior.type_id.clone(),
            nil: ior.is_nil(),
            profiles: ior.profiles.iter().map(describe_profile).collect(),
        }
    }
}

impl NamedValue {
    fn new(name: &str, value: impl ToString) -> Self {
        Self {
            name: name.to_owned(),
            value: FieldValue::Text(value.to_string()),
        }
    }

    fn number(name: &str, value: impl Into<u64>) -> Self {
        Self {
            name: name.to_owned(),
            value: FieldValue::Number(value.into()),
        }
    }

    fn flag(name: &str, value: bool) -> Self {
        Self {
            name: name.to_owned(),
            value: FieldValue::Flag(value),
        }
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

fn describe_profile(profile: &TaggedProfile) -> Profile {
    let name = profile_name(profile.tag).to_owned();
    let mut host = None;
    let (fields, components) = match ProfileBody::from_tagged(profile) {
        Ok(ProfileBody::Iiop(body)) => {
            let fields = iiop_fields(&body);
            host = Some(body.host);
            (fields, body.components)
        }
        Ok(ProfileBody::Uiop(body)) => (uiop_fields(&body), body.components),
        Ok(ProfileBody::Shmiop(body)) => (shmiop_fields(&body), body.components),
        Ok(ProfileBody::Components(components)) => (Vec::new(), components),
        Ok(_) => (
            vec![NamedValue::new("octets", hex(&profile.data))],
            Vec::new(),
        ),
        Err(error) => (malformed(&error, &profile.data), Vec::new()),
    };
    Profile {
        tag: profile.tag,
        name,
        fields,
        real_time: RealTime::of(profile.tag, &components),
        components: describe_components(profile.tag, host.as_deref(), &components),
    }
}

fn iiop_fields(body: &IiopProfile) -> Vec<NamedValue> {
    let mut fields = vec![
        NamedValue::new("version", body.version),
        NamedValue::new("host", &body.host),
        NamedValue::number("port", body.port),
    ];
    if body.port == 0 {
        fields.push(NamedValue::new(
            "note",
            "port 0: it does not listen in clear",
        ));
    }
    fields.extend(key_fields(&body.object_key));
    fields
}

fn uiop_fields(body: &UiopProfile) -> Vec<NamedValue> {
    let mut fields = vec![
        NamedValue::new("version", body.version),
        NamedValue::new("path", &body.path),
    ];
    fields.extend(key_fields(&body.object_key));
    fields
}

fn shmiop_fields(body: &ShmiopProfile) -> Vec<NamedValue> {
    let mut fields = vec![
        NamedValue::new("version", body.version),
        NamedValue::new("host", &body.host),
        NamedValue::new("path", &body.path),
    ];
    fields.extend(key_fields(&body.object_key));
    fields
}

/// The key in hexadecimal, and as text where it is some.
fn key_fields(key: &[u8]) -> Vec<NamedValue> {
    let mut fields = vec![
        NamedValue::new("object_key", hex(key)),
        NamedValue::number("object_key_octets", key.len() as u64),
    ];
    let mut runs = key.split(|byte| !is_printable(*byte));
    if runs.any(|run| run.len() >= RUN_MIN) || runs_through(key) {
        fields.push(NamedValue::new("object_key_text", printable(key)));
    }
    fields
}

/// The text of bytes: those that are not printable as `\xNN`.
fn printable(bytes: &[u8]) -> String {
    let text = |byte: &u8| {
        if is_printable(*byte) {
            char::from(*byte).to_string()
        } else {
            format!("\\x{byte:02x}")
        }
    };
    bytes.iter().map(text).collect()
}

fn is_printable(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

fn runs_through(key: &[u8]) -> bool {
    !key.is_empty() && key.iter().copied().all(is_printable)
}

fn describe_components(
    profile_tag: u32,
    host: Option<&str>,
    components: &[TaggedComponent],
) -> Vec<Component> {
    let describe = |component: &TaggedComponent| {
        let told = components::fields(profile_tag, component.tag, &component.data);
        let mut fields = told.unwrap_or_else(|error| malformed(&error, &component.data));
        if let (component_tag::SSL_SEC_TRANS, Some(host)) = (component.tag, host) {
            fields.extend(ssl_address(host, &fields));
        }
        Component {
            tag: component.tag,
            name: components::name(component.tag).to_owned(),
            fields,
        }
    };
    components.iter().map(describe).collect()
}

/// The address of a `TAG_SSL_SEC_TRANS`: its port on the host of the profile.
fn ssl_address(host: &str, fields: &[NamedValue]) -> Option<NamedValue> {
    let port = fields.iter().find(|field| field.name == "port")?;
    let FieldValue::Number(port) = port.value else {
        return None;
    };
    Some(NamedValue::new(
        "address",
        address(host, u16::try_from(port).ok()?),
    ))
}

fn malformed(error: &rtorb_wire::DecodeError, data: &[u8]) -> Vec<NamedValue> {
    vec![
        NamedValue::new("malformed", error),
        NamedValue::new("octets", hex(data)),
    ]
}

fn profile_name(tag: u32) -> &'static str {
    match tag {
        profile_tag::INTERNET_IOP => "IIOP",
        profile_tag::MULTIPLE_COMPONENTS => "multiple components",
        2 => "SCCP",
        3 => "UIPMC (MIOP multicast)",
        profile_tag::TAO_UIOP => "UIOP (UNIX socket, as TAO has it)",
        profile_tag::RTORB_SHMIOP => "rtorb SHMIOP (shared memory)",
        0x5441_4f02 => "TAO SHMIOP (shared memory)",
        0x5441_4f04 => "TAO DIOP (UDP)",
        0x5441_4f05 => "TAO COIOP (collocated only)",
        0x5441_4f0e => "TAO SCIOP (SCTP)",
        0x4f43_4902 => "TAO HTIOP (HTTP tunnel)",
        0x3039 | 0x303a => "TAO NSK",
        reserved if reserved >> 8 == 0x0054_414f => "TAO, reserved",
        _ => "unknown",
    }
}

fn address(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// References inside references: only what tells them apart.
fn short_reference(ior: &Ior) -> String {
    match ior.iiop_profiles().next() {
        Some(profile) => format!("{} at {}:{}", ior.type_id, profile.host, profile.port),
        None => ior.type_id.clone(),
    }
}

/// The references in a sequence, in short.
fn references(reader: &mut Reader<'_>) -> Result<Vec<String>, rtorb_wire::DecodeError> {
    let iors: Vec<Ior> = Decode::decode(reader)?;
    Ok(iors.iter().map(short_reference).collect())
}

/// The printable bytes in a row that are probably text.
const RUN_MIN: usize = 3;

#[cfg(test)]
mod tests;
