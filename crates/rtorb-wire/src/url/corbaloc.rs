//! `corbaloc:`: an object by its addresses and its key.

use super::escape::escape;
use super::{DEFAULT_KEY, UrlError, unescape};
use crate::EncodeError;
use crate::ior::{IiopProfile, Ior, UiopProfile};
use crate::version::Version;
use core::fmt;

/// An object by its addresses, tried in order, and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corbaloc {
    /// At least one.
    pub addresses: Vec<CorbalocAddress>,
    /// The object key; a text without one means `NameService`.
    pub object_key: Vec<u8>,
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorbalocAddress {
    /// `iiop:`, or nothing before the colon.
    Iiop {
        /// GIOP version to speak; 1.0 if the text says nothing.
        version: Version,
        /// Host name or address, IPv6 without its brackets.
        host: String,
        /// TCP port; 2809 if the text says nothing.
        port: u16,
    },
    /// `uiop:`, TAO's form of a UNIX socket, with `|` before the key.
    Uiop {
        /// GIOP version to speak; 1.0 if the text says nothing.
        version: Version,
        /// The socket's path.
        path: String,
    },
}

impl Corbaloc {
    /// A reference with a profile an address.
    ///
    /// # Errors
    /// When an address holds what a profile cannot say.
    pub fn to_ior(&self, type_id: &str) -> Result<Ior, EncodeError> {
        let profiles = self.addresses.iter().map(|address| {
            let object_key = self.object_key.clone();
            match address {
                CorbalocAddress::Iiop {
                    version,
                    host,
                    port,
                } => IiopProfile {
                    version: *version,
                    host: host.clone(),
                    port: *port,
                    object_key,
                    components: Vec::new(),
                }
                .to_tagged(),
                CorbalocAddress::Uiop { version, path } => UiopProfile {
                    version: *version,
                    path: path.clone(),
                    object_key,
                    components: Vec::new(),
                }
                .to_tagged(),
            }
        });
        Ok(Ior {
            type_id: type_id.to_owned(),
            profiles: profiles.collect::<Result<_, _>>()?,
        })
    }

    /// Reads what stands behind `corbaloc:`.
    pub(super) fn parse_rest(text: &str) -> Result<Self, UrlError> {
        let mut addresses = Vec::new();
        let mut rest = text;
        loop {
            let (address, behind) = CorbalocAddress::parse(rest)?;
            addresses.push(address);
            match behind.strip_prefix(',') {
                Some(next) => rest = next,
                None => {
                    let key = behind.get(1..).unwrap_or("");
                    let key = if key.is_empty() { DEFAULT_KEY } else { key };
                    return Ok(Self {
                        addresses,
                        object_key: unescape(key)?,
                    });
                }
            }
        }
    }
}

impl CorbalocAddress {
    /// Reads an address, and answers what follows: nothing, `,` and another address, or a delimiter and the key.
    fn parse(text: &str) -> Result<(Self, &str), UrlError> {
        let (protocol, rest) = text
            .split_once(':')
            .ok_or(UrlError::Address("no protocol"))?;
        let delimiters: &[char] = match protocol {
            "" | "iiop" => &[',', '/'],
            "uiop" => &[',', '|'],
            "rir" => return Err(UrlError::Address("rir: beside others")),
            _ => return Err(UrlError::Address("an unknown protocol")),
        };
        let end = rest.find(delimiters).unwrap_or(rest.len());
        let (address, behind) = rest.split_at(end);
        let (version, place) = match address.split_once('@') {
            Some((version, place)) => (parse_version(version)?, place),
            None => (Version::V1_0, address),
        };
        let address = match protocol {
            "uiop" => {
                let path = unescape(place)?;
                let path = String::from_utf8(path)
                    .map_err(|_| UrlError::Address("a path that is not UTF-8"))?;
                if path.is_empty() {
                    return Err(UrlError::Address("no path"));
                }
                Self::Uiop { version, path }
            }
            _ => {
                let (host, port) = parse_host(place)?;
                Self::Iiop {
                    version,
                    host: host.to_owned(),
                    port,
                }
            }
        };
        Ok((address, behind))
    }
}

const DEFAULT_PORT: u16 = 2809;

fn parse_version(text: &str) -> Result<Version, UrlError> {
    let (major, minor) = text
        .split_once('.')
        .ok_or(UrlError::Address("no version before @"))?;
    match (major.parse(), minor.parse()) {
        (Ok(1), Ok(minor)) => Ok(Version { major: 1, minor }),
        _ => Err(UrlError::Address("a version that is not 1.x")),
    }
}

fn parse_host(text: &str) -> Result<(&str, u16), UrlError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest
                .split_once(']')
                .ok_or(UrlError::Address("a [ without its ]"))?;
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err(UrlError::Address("something between ] and the port")),
            }
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err(UrlError::Address("no host"));
    }
    let port = match port {
        Some(port) => port
            .parse()
            .map_err(|_| UrlError::Address("a port that is not between 0 and 65535"))?,
        None => DEFAULT_PORT,
    };
    Ok((host, port))
}

impl fmt::Display for Corbaloc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("corbaloc:")?;
        for (index, address) in self.addresses.iter().enumerate() {
            if index > 0 {
                f.write_str(",")?;
            }
            write!(f, "{address}")?;
        }
        f.write_str(match self.addresses.last() {
            Some(CorbalocAddress::Uiop { .. }) => "|",
            _ => "/",
        })?;
        escape(&self.object_key, b"", f)
    }
}

impl fmt::Display for CorbalocAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iiop {
                version,
                host,
                port,
            } if host.contains(':') => write!(f, "iiop:{version}@[{host}]:{port}"),
            Self::Iiop {
                version,
                host,
                port,
            } => write!(f, "iiop:{version}@{host}:{port}"),
            Self::Uiop { version, path } => {
                write!(f, "uiop:{version}@")?;
                escape(path.as_bytes(), b",", f)
            }
        }
    }
}
