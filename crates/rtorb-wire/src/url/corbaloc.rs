//! `corbaloc:`: the addresses and the key of an object.

use super::escape::escape;
use super::{DEFAULT_KEY, UrlError, unescape};
use crate::EncodeError;
use crate::ior::{IiopProfile, Ior, ShmiopProfile, UiopProfile, at};
use crate::version::Version;
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// The addresses of an object, tried in order, and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corbaloc {
    /// At least one.
    pub addresses: Vec<CorbalocAddress>,
    /// The object key; `NameService` if the text has none.
    pub object_key: Vec<u8>,
}

/// The address of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorbalocAddress {
    /// `iiop:` or `:`
    Iiop {
        /// The GIOP version; 1.0 if the text has none.
        version: Version,
        /// Host name or address, IPv6 without its brackets.
        host: String,
        /// TCP port; 2809 if the text has none.
        port: u16,
    },
    /// `ssliop:`, omniORB's form of TLS.
    Ssliop {
        /// The GIOP version; 1.2 if the text has none.
        version: Version,
        /// Host name or address, IPv6 without its brackets.
        host: String,
        /// TCP port; 2809 if the text has none.
        port: u16,
    },
    /// `uiop:`, TAO's form of a UNIX socket, with `|` before the key.
    Uiop {
        /// The GIOP version; 1.0 if the text has none.
        version: Version,
        /// The socket's path.
        path: String,
    },
    /// `shmiop:`, rtorb's shared memory, in the same form.
    Shmiop {
        /// The GIOP version; 1.0 if the text has none.
        version: Version,
        /// The path of the socket at which client and server meet.
        path: String,
    },
}

impl Corbaloc {
    /// A reference with one profile for each address.
    ///
    /// # Errors
    /// When an address cannot be written into a profile.
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
                CorbalocAddress::Ssliop {
                    version,
                    host,
                    port,
                } => IiopProfile::over_tls(*version, host.clone(), *port, object_key).to_tagged(),
                CorbalocAddress::Uiop { version, path } => UiopProfile {
                    version: *version,
                    path: path.clone(),
                    object_key,
                    components: Vec::new(),
                }
                .to_tagged(),
                CorbalocAddress::Shmiop { version, path } => ShmiopProfile {
                    version: *version,
                    // A path without a host belongs to the host of its reader, as in UIOP.
                    host: String::new(),
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

    /// Parses the text behind `corbaloc:`.
    //= CORBA 3 §13.6.10.1
    //# A corbaloc is a list of addresses, separated by commas, and behind / the object key with escapes.
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
    /// Parses an address and returns the rest: nothing, `,` and another address, or a delimiter and the key.
    //= CORBA 3 §13.6.10.3
    //# An IIOP address is `iiop:` or `:`, a version (1.0 if absent), a host, in brackets for IPv6, and a port (2809 if absent).
    fn parse(text: &str) -> Result<(Self, &str), UrlError> {
        let (protocol, rest) = text
            .split_once(':')
            .ok_or(UrlError::Address("no protocol"))?;
        let delimiters: &[char] = match protocol {
            "" | "iiop" | "ssliop" => &[',', '/'],
            "uiop" | "shmiop" => &[',', '|'],
            "rir" => return Err(UrlError::Address("rir: besides other addresses")),
            _ => return Err(UrlError::Address("an unknown protocol")),
        };
        let end = rest.find(delimiters).unwrap_or(rest.len());
        let (address, behind) = rest.split_at(end);
        let (version, place) = match address.split_once('@') {
            Some((version, place)) => (parse_version(version)?, place),
            // References over TLS need components, which version 1.0 has not.
            None if protocol == "ssliop" => (Version::V1_2, address),
            None => (Version::V1_0, address),
        };
        let address = match protocol {
            "uiop" => Self::Uiop {
                version,
                path: parse_path(place)?,
            },
            "shmiop" => Self::Shmiop {
                version,
                path: parse_path(place)?,
            },
            _ => {
                let (host, port) = parse_host(place)?;
                let host = host.to_owned();
                if protocol == "ssliop" {
                    Self::Ssliop {
                        version,
                        host,
                        port,
                    }
                } else {
                    Self::Iiop {
                        version,
                        host,
                        port,
                    }
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

fn parse_path(text: &str) -> Result<String, UrlError> {
    let path = String::from_utf8(unescape(text)?)
        .map_err(|_| UrlError::Address("a path that is not UTF-8"))?;
    if path.is_empty() {
        return Err(UrlError::Address("no path"));
    }
    Ok(path)
}

fn parse_host(text: &str) -> Result<(&str, u16), UrlError> {
    let (host, behind) = match text.strip_prefix('[') {
        Some(rest) => rest
            .split_once(']')
            .ok_or(UrlError::Address("a [ without its ]"))?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = behind.strip_prefix(':');
    if port.is_none() && !behind.is_empty() {
        return Err(UrlError::Address("something between ] and the port"));
    }
    if host.is_empty() {
        return Err(UrlError::Address("no host"));
    }
    let wrong_port = |_| UrlError::Address("a port that is not between 0 and 65535");
    let port = port.map_or(Ok(DEFAULT_PORT), |port| port.parse().map_err(wrong_port))?;
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
            Some(CorbalocAddress::Uiop { .. } | CorbalocAddress::Shmiop { .. }) => "|",
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
            } => write!(f, "iiop:{version}@{}", at(host, *port)),
            Self::Ssliop {
                version,
                host,
                port,
            } => write!(f, "ssliop:{version}@{}", at(host, *port)),
            Self::Uiop { version, path } => {
                write!(f, "uiop:{version}@")?;
                escape(path.as_bytes(), b",", f)
            }
            Self::Shmiop { version, path } => {
                write!(f, "shmiop:{version}@")?;
                escape(path.as_bytes(), b",", f)
            }
        }
    }
}
