//! References as text: `IOR:`, `corbaloc:`, `corbaname:` and `file:` (CORBA 3 §13.6.10).
//!
//! This module parses and formats them. It opens no file and asks no naming service.

mod corbaloc;
mod escape;
mod ior_text;
mod name;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
pub use corbaloc::{Corbaloc, CorbalocAddress};
pub use name::{NameComponent, format_name, parse_name};

use crate::DecodeError;
use crate::ior::Ior;
use escape::{escape, unescape, unescape_text};

/// A parsed reference. Nothing is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectUrl {
    /// `IOR:`: a reference.
    Ior(Ior),
    /// `corbaloc:`: the location of an object.
    Corbaloc(Location),
    /// `corbaname:`: the object bound to a name in a naming context.
    Corbaname {
        /// The naming context.
        context: Location,
        /// The stringified name: see [`parse_name`]. Empty for the context itself.
        name: String,
    },
    /// `file:`: a file that contains a reference as text.
    File {
        /// The path of the file.
        path: String,
    },
}

/// The location of the object of a `corbaloc:`, or of the naming context of a `corbaname:`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// `rir:`: the initial reference of that name.
    Initial(String),
    /// Addresses and an object key.
    Addresses(Corbaloc),
}

impl ObjectUrl {
    /// Parses a reference. Ignores spaces around it.
    ///
    /// # Errors
    /// [`UrlError`]
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        let (scheme, rest) = text.split_once(':').ok_or(UrlError::Scheme)?;
        match scheme.to_ascii_lowercase().as_str() {
            "ior" => Ior::parse(text).map(Self::Ior),
            "corbaloc" => location(rest).map(Self::Corbaloc),
            //= CORBA 3 §13.6.10.5
            //# A corbaname is a location, NameService if it has no key, and behind # a stringified name with escapes.
            "corbaname" => {
                let (place, name) = rest.split_once('#').unwrap_or((rest, ""));
                Ok(Self::Corbaname {
                    context: location(place)?,
                    name: unescape_text(name)?,
                })
            }
            "file" => {
                let path = unescape_text(rest.strip_prefix("//").unwrap_or(rest))?;
                if path.is_empty() {
                    return Err(UrlError::SchemeSpecificPart("no path behind file:"));
                }
                Ok(Self::File { path })
            }
            _ => Err(UrlError::Scheme),
        }
    }
}

/// The `corbaname:` of a stringified name at an address such as `:host:2809` or `:host/key`. An empty name gives the URL of
/// the naming context.
///
/// # Errors
/// [`UrlError::Address`] or [`UrlError::SchemeSpecificPart`] for an address that is invalid in a `corbaname:`.
pub fn format_corbaname(address: &str, name: &str) -> Result<String, UrlError> {
    if address.contains('#') {
        return Err(UrlError::Address("a # in an address"));
    }
    location(address)?;
    let mut url = format!("corbaname:{address}");
    if !name.is_empty() {
        url.push('#');
    }
    // Writing to a string cannot fail.
    let _ = escape(name.as_bytes(), b"", &mut url);
    Ok(url)
}

/// Parses the location behind `corbaloc:` or `corbaname:`.
//= CORBA 3 §13.6.10.2
//# `rir:` names an initial reference, which is NameService if the name is empty. It cannot be combined with addresses.
fn location(text: &str) -> Result<Location, UrlError> {
    let Some(rest) = text.strip_prefix("rir:") else {
        return Corbaloc::parse_rest(text).map(Location::Addresses);
    };
    let name = match rest.strip_prefix('/') {
        Some(name) => unescape_text(name)?,
        None if rest.is_empty() => String::new(),
        None => return Err(UrlError::Address("something behind rir:")),
    };
    Ok(Location::Initial(if name.is_empty() {
        DEFAULT_KEY.to_owned()
    } else {
        name
    }))
}

/// The object key, or the initial reference, of a location without one.
const DEFAULT_KEY: &str = "NameService";

/// The reason why a text is not a reference: BAD_PARAM with the minor code [`minor`](Self::minor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It does not begin with `IOR:`, `corbaloc:`, `corbaname:` or `file:`.
    #[error("a reference begins with IOR:, corbaloc:, corbaname: or file:")]
    Scheme,
    /// An address is invalid.
    #[error("{0} in an address of the reference")]
    Address(&'static str),
    /// A key, a name or a path is invalid.
    #[error("{0}")]
    SchemeSpecificPart(&'static str),
    /// Anything else.
    #[error("{0}")]
    Other(&'static str),
    /// The bytes behind `IOR:` are not a reference.
    #[error("the bytes behind IOR: are not a reference")]
    Reference(#[source] DecodeError),
}

impl UrlError {
    /// The standard minor code of BAD_PARAM, without the vendor: 7 to 10.
    //= CORBA 3 §13.6.10
    //# A wrong URL is BAD_PARAM: minor code 7 for the scheme, 8 for an address, 9 for the scheme-specific part, 10 otherwise.
    pub const fn minor(self) -> u32 {
        match self {
            Self::Scheme => 7,
            Self::Address(_) => 8,
            Self::SchemeSpecificPart(_) => 9,
            Self::Other(_) | Self::Reference(_) => 10,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Corbaloc, CorbalocAddress, Location, ObjectUrl, format_corbaname};
    use crate::version::Version;

    fn iiop(version: Version, host: &str, port: u16) -> CorbalocAddress {
        CorbalocAddress::Iiop {
            version,
            host: host.to_owned(),
            port,
        }
    }

    fn corbaloc(addresses: Vec<CorbalocAddress>, key: &[u8]) -> Corbaloc {
        Corbaloc {
            addresses,
            object_key: key.to_vec(),
        }
    }

    //= CORBA 3 §13.6.10.1
    //% test
    //= CORBA 3 §13.6.10.3
    //% test
    #[test]
    fn corbaloc_forms_are_parsed() {
        let (v0, v2) = (Version::V1_0, Version::V1_2);
        for (text, expected) in [
            (
                "corbaloc::host/k",
                corbaloc(vec![iiop(v0, "host", 2809)], b"k"),
            ),
            (
                "corbaloc:iiop:host:99/k",
                corbaloc(vec![iiop(v0, "host", 99)], b"k"),
            ),
            (
                "CORBALOC:iiop:1.2@h:9/a/b",
                corbaloc(vec![iiop(v2, "h", 9)], b"a/b"),
            ),
            (
                "corbaloc::1.2@[::1]:5/k",
                corbaloc(vec![iiop(v2, "::1", 5)], b"k"),
            ),
            (
                "corbaloc::[fe80::2]/%00%fFx",
                corbaloc(vec![iiop(v0, "fe80::2", 2809)], b"\0\xffx"),
            ),
            (
                "corbaloc::h",
                corbaloc(vec![iiop(v0, "h", 2809)], b"NameService"),
            ),
            (
                "corbaloc::a:1,iiop:1.2@b:2/k",
                corbaloc(vec![iiop(v0, "a", 1), iiop(v2, "b", 2)], b"k"),
            ),
            (
                "corbaloc:uiop:1.2@/tmp/s|k/x",
                corbaloc(
                    vec![CorbalocAddress::Uiop {
                        version: v2,
                        path: "/tmp/s".to_owned(),
                    }],
                    b"k/x",
                ),
            ),
            (
                "corbaloc:shmiop:/run/a%7cb,:h:1/k",
                corbaloc(
                    vec![
                        CorbalocAddress::Shmiop {
                            version: v0,
                            path: "/run/a|b".to_owned(),
                        },
                        iiop(v0, "h", 1),
                    ],
                    b"k",
                ),
            ),
        ] {
            assert_eq!(
                ObjectUrl::parse(text),
                Ok(ObjectUrl::Corbaloc(Location::Addresses(expected))),
                "{text}"
            );
        }
    }

    #[test]
    fn a_corbaloc_of_tls_is_of_version_1_2_unless_it_says_another_one() {
        let secure = |version, host: &str, port| CorbalocAddress::Ssliop {
            version,
            host: host.to_owned(),
            port,
        };
        let addresses = vec![
            secure(Version::V1_2, "h", 4443),
            secure(Version::V1_1, "::1", 2809),
        ];
        assert_eq!(
            ObjectUrl::parse("corbaloc:ssliop:h:4443,ssliop:1.1@[::1]/k"),
            Ok(ObjectUrl::Corbaloc(Location::Addresses(corbaloc(
                addresses, b"k"
            ))))
        );
    }

    #[test]
    fn a_formatted_corbaloc_is_parsed_again() {
        let addresses = vec![
            iiop(Version::V1_2, "::1", 2809),
            iiop(Version::V1_0, "host.example", 1),
            CorbalocAddress::Ssliop {
                version: Version::V1_2,
                host: "::1".to_owned(),
                port: 2810,
            },
            CorbalocAddress::Uiop {
                version: Version::V1_2,
                path: "/tmp/a b|c,d%".to_owned(),
            },
            CorbalocAddress::Shmiop {
                version: Version::V1_2,
                path: "/run/a|,b".to_owned(),
            },
        ];
        let all = corbaloc(addresses, b"\x14\x01\x0f\0 key#|%/");
        assert_eq!(
            ObjectUrl::parse(&all.to_string()),
            Ok(ObjectUrl::Corbaloc(Location::Addresses(all.clone())))
        );
        let ior = all.to_ior("IDL:X:1.0").expect("it can be sent");
        assert_eq!(ior.profiles.len(), 5);
    }

    //= CORBA 3 §13.6.10.2
    //% test
    //= CORBA 3 §13.6.10.5
    //% test
    #[test]
    fn other_schemes_are_parsed() {
        let rir = |name: &str| ObjectUrl::Corbaloc(Location::Initial(name.to_owned()));
        assert_eq!(ObjectUrl::parse("corbaloc:rir:/RTORB"), Ok(rir("RTORB")));
        assert_eq!(ObjectUrl::parse("corbaloc:rir:/"), Ok(rir("NameService")));
        assert_eq!(ObjectUrl::parse("corbaloc:rir:"), Ok(rir("NameService")));
        let file = |path: &str| ObjectUrl::File {
            path: path.to_owned(),
        };
        assert_eq!(
            ObjectUrl::parse(" file:///tmp/x.ior\n"),
            Ok(file("/tmp/x.ior"))
        );
        assert_eq!(ObjectUrl::parse("file://x%20y"), Ok(file("x y")));
        assert_eq!(
            ObjectUrl::parse("corbaname:rir:#a/b.kind"),
            Ok(ObjectUrl::Corbaname {
                context: Location::Initial("NameService".to_owned()),
                name: "a/b.kind".to_owned(),
            })
        );
        assert_eq!(
            ObjectUrl::parse("corbaname::h:7/Root#x%20y"),
            Ok(ObjectUrl::Corbaname {
                context: Location::Addresses(corbaloc(vec![iiop(Version::V1_0, "h", 7)], b"Root")),
                name: "x y".to_owned(),
            })
        );
    }

    #[test]
    fn a_corbaname_is_made_of_an_address_and_a_name() {
        for (address, name, url) in [
            (":h", "a/b.k", "corbaname::h#a/b.k"),
            (
                "iiop:1.2@h:2809/k",
                r"a\.b",
                "corbaname:iiop:1.2@h:2809/k#a%5c.b",
            ),
            ("rir:", "x y#", "corbaname:rir:#x%20y%23"),
            (":h", "", "corbaname::h"),
        ] {
            assert_eq!(format_corbaname(address, name).as_deref(), Ok(url));
            let parsed = ObjectUrl::parse(url).expect(url);
            assert!(matches!(parsed, ObjectUrl::Corbaname { name: read, .. } if read == name));
        }
        for address in ["", "h", ":", ":h#a", ":h:x", "x:h"] {
            assert!(format_corbaname(address, "a").is_err(), "{address}");
        }
    }

    //= CORBA 3 §13.6.10
    //% test
    #[test]
    fn mistakes_have_the_minor_codes_of_the_standard() {
        for (text, minor) in [
            ("", 7),
            ("host:port", 7),
            ("IOR;00", 7),
            ("IOR:0", 10),
            ("IOR:0g", 10),
            ("IOR:01", 10),
            ("IOR:02000000", 10),
            ("corbaloc:", 8),
            ("corbaloc:/k", 8),
            ("corbaloc:foo:h/k", 8),
            ("corbaloc::/k", 8),
            ("corbaloc::h:/k", 8),
            ("corbaloc::h:70000/k", 8),
            ("corbaloc::2.0@h/k", 8),
            ("corbaloc::x@h/k", 8),
            ("corbaloc::[::1/k", 8),
            ("corbaloc::[::1]x/k", 8),
            ("corbaloc::a,rir:/k", 8),
            ("corbaloc:rir:x", 8),
            ("corbaloc:uiop:|k", 8),
            ("corbaloc::h/%", 9),
            ("corbaloc::h/%4", 9),
            ("corbaloc::h/%gg", 9),
            ("corbaloc::h/a b", 9),
            ("corbaname::h#%ff", 9),
            ("file:", 9),
        ] {
            let error = ObjectUrl::parse(text).expect_err(text);
            assert_eq!(error.minor(), minor, "{text}: {error}");
        }
    }

    #[test]
    fn the_error_of_a_reference_says_what_is_wrong() {
        let error = ObjectUrl::parse("IOR:01").expect_err("too short");
        let source = core::error::Error::source(&error).expect("it has one");
        assert!(source.to_string().starts_with("the message ends too early"));
    }
}
