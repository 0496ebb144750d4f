//! Endpoints of an ORB: TCP ports, UNIX sockets and shared memory.

use core::fmt;
use core::str::FromStr;
use rtorb_os::set_once::SetOnce;
use std::path::PathBuf;

/// An address of a transport.
///
/// ```
/// use rtorb::endpoint::ListenEndpoint;
/// let listen: ListenEndpoint = "iiop://0.0.0.0:2809/hostname_in_ior=gate".parse()?;
/// assert_eq!(listen.endpoint.to_string(), "iiop://0.0.0.0:2809");
/// # Ok::<(), rtorb::endpoint::EndpointError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Endpoint {
    /// IIOP: GIOP over TCP.
    Tcp {
        /// A name, or an IPv4 or IPv6 address without brackets.
        host: String,
        /// The port; 0 lets the system choose when listening.
        port: u16,
    },
    /// UIOP: GIOP over a UNIX stream socket.
    Unix {
        /// The rendezvous point in the file system.
        path: PathBuf,
    },
    /// SHMIOP: GIOP through memory that client and server share, on one host.
    SharedMemory {
        /// The socket at which they meet.
        path: PathBuf,
    },
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "iiop://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "iiop://{host}:{port}"),
            Self::Unix { path } => write!(f, "uiop://{}", path.display()),
            Self::SharedMemory { path } => write!(f, "shmiop://{}", path.display()),
        }
    }
}

/// An endpoint to listen on, and the host name to put into references instead of its own.
///
/// `iiop://HOST:PORT`, `iiop://HOST:PORT/hostname_in_ior=NAME`, `iiop://:PORT` (every interface), `uiop:///PATH`,
/// `shmiop:///PATH`; a version and `@` before the address, as TAO writes it, is accepted and ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenEndpoint {
    /// Where to listen.
    pub endpoint: Endpoint,
    /// The host name for references if clients need another one: behind NAT, in a container.
    pub advertised_host: Option<String>,
}

impl FromStr for ListenEndpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Self, EndpointError> {
        let wrong = |reason| EndpointError {
            text: text.to_owned(),
            reason,
        };
        let with_path = |path: &str, endpoint: fn(PathBuf) -> Endpoint| {
            let path = without_version(path);
            if path.is_empty() {
                return Err(wrong("a path is missing"));
            }
            Ok(Self {
                endpoint: endpoint(path.into()),
                advertised_host: None,
            })
        };
        if let Some(path) = text.strip_prefix("uiop://") {
            return with_path(path, |path| Endpoint::Unix { path });
        }
        if let Some(path) = text.strip_prefix("shmiop://") {
            return with_path(path, |path| Endpoint::SharedMemory { path });
        }
        let Some(address) = text.strip_prefix("iiop://") else {
            return Err(wrong("it begins with none of iiop://, uiop://, shmiop://"));
        };
        let (address, options) = without_version(address)
            .split_once('/')
            .unwrap_or((address, ""));
        let mut advertised_host = None;
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("hostname_in_ior", name)) if !name.is_empty() => {
                    advertised_host = Some(name.to_owned())
                }
                _ => return Err(wrong("the only option is hostname_in_ior=NAME")),
            }
        }
        let (host, port) = split_port(without_version(address)).map_err(wrong)?;
        let host = if host.is_empty() { "0.0.0.0" } else { host };
        Ok(Self {
            endpoint: Endpoint::Tcp {
                host: host.to_owned(),
                port,
            },
            advertised_host,
        })
    }
}

/// The error for text that is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no endpoint: {reason}; write iiop://127.0.0.1:0, iiop://0.0.0.0:2809/hostname_in_ior=NAME, \
     uiop:///run/server.sock or shmiop:///run/server.sock"
)]
pub struct EndpointError {
    text: String,
    reason: &'static str,
}

/// The name of this host.
pub(crate) fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// The identity of this host for peers that share its memory: the number of its last boot, else its name.
pub(crate) fn host_identity() -> &'static str {
    static IDENTITY: SetOnce<String> = SetOnce::new();
    IDENTITY.get_or_make(|| {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = boot.trim();
        if boot.is_empty() {
            host_name()
        } else {
            boot.to_owned()
        }
    })
}

fn without_version(address: &str) -> &str {
    match address.split_once('@') {
        Some((version, rest)) if version.starts_with("1.") => rest,
        _ => address,
    }
}

fn split_port(address: &str) -> Result<(&str, u16), &'static str> {
    let (host, port) = match address.strip_prefix('[') {
        Some(rest) => rest
            .split_once(']')
            .ok_or("the bracket of the IPv6 address is not closed")?,
        None => match address.split_once(':') {
            Some((host, _)) => (host, &address[host.len()..]),
            None => (address, ""),
        },
    };
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok((host, 0)),
        Some(port) => port
            .parse()
            .map(|port| (host, port))
            .map_err(|_| "the port is no number from 0 to 65535"),
        None => Err("what follows the bracket is not a colon and a port"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Endpoint {
        Endpoint::Tcp {
            host: host.to_owned(),
            port,
        }
    }

    #[test]
    fn endpoints_are_read_as_omniorb_and_tao_users_write_them() {
        let endpoint = |text: &str| text.parse::<ListenEndpoint>().expect(text).endpoint;
        assert_eq!(endpoint("iiop://127.0.0.1:0"), tcp("127.0.0.1", 0));
        assert_eq!(endpoint("iiop://1.2@board:2809"), tcp("board", 2809));
        assert_eq!(endpoint("iiop://[::1]:7"), tcp("::1", 7));
        assert_eq!(endpoint("iiop://:2809"), tcp("0.0.0.0", 2809));
        assert_eq!(
            endpoint("uiop:///run/x.sock"),
            Endpoint::Unix {
                path: "/run/x.sock".into()
            }
        );
        assert_eq!(
            endpoint("shmiop:///run/x.sock"),
            Endpoint::SharedMemory {
                path: "/run/x.sock".into()
            }
        );
        let advertised: ListenEndpoint = "iiop://0.0.0.0:1/hostname_in_ior=gate"
            .parse()
            .expect("legal");
        assert_eq!(advertised.advertised_host.as_deref(), Some("gate"));
    }

    #[test]
    fn what_is_no_endpoint_is_refused_with_an_example() {
        for text in [
            "",
            "tcp://x",
            "iiop://x:70000",
            "iiop://x:1/colour=red",
            "uiop://",
            "shmiop://",
            "iiop://[::1",
        ] {
            let error = text.parse::<ListenEndpoint>().expect_err(text).to_string();
            assert!(error.contains("iiop://127.0.0.1:0"), "{error}");
        }
    }
}
