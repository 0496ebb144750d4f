//! Endpoints of an ORB: TCP ports, UNIX sockets, shared memory, and sockets that a service manager passed.

use core::fmt;
use core::str::FromStr;
use rtorb_os::set_once::SetOnce;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;

#[doc(inline)]
pub use rtorb_core::endpoint::Endpoint;

/// An endpoint to listen on, and the addresses to put into references instead of its own.
///
/// `iiop://HOST:PORT`, `iiop://:PORT` (every interface), `ssliop://HOST:PORT` (TLS), `uiop:///PATH`, `shmiop:///PATH`; a version and `@` before the address, as TAO
/// writes it, is accepted and ignored. `inherited://NAME` has the [`InheritedSockets`] with that name. Options follow an `iiop` or `ssliop`
/// address or the name behind `/`, joined by `&`:
///
/// * `publish=HOST:PORT`: references contain this address. Write it several times for several addresses; an IPv6 address stands in
///   brackets. Without `:PORT`, it is the port of the endpoint, and so with `hostname_in_ior=HOST`, which TAO has too.
/// * `portspan=N`: listens on the first free one of N ports, from PORT on. Not for `inherited`.
/// * `ssliop`: the sockets are for TLS. For `inherited` alone.
///
/// ```
/// use rtorb::endpoint::ListenEndpoint;
/// let listen: ListenEndpoint = "iiop://0.0.0.0:2809/publish=gate:12809".parse()?;
/// assert_eq!(listen.address.to_string(), "iiop://0.0.0.0:2809");
/// let listen: ListenEndpoint = "inherited://naming".parse()?;
/// assert_eq!(listen.address.to_string(), "inherited://naming");
/// # Ok::<(), rtorb::endpoint::EndpointError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListenEndpoint {
    /// Where to listen.
    pub address: ListenAddress,
    /// The addresses for references if clients need others: behind NAT, in a container.
    pub published: Vec<PublishedAddress>,
    /// The number of ports to try, from that of the endpoint on.
    pub port_span: u16,
}

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenAddress {
    /// At this address: the ORB opens a socket there.
    Endpoint(Endpoint),
    /// At sockets that listen already.
    Inherited(InheritedSockets),
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Endpoint(endpoint) => endpoint.fmt(f),
            Self::Inherited(sockets) => sockets.fmt(f),
        }
    }
}

/// The listening sockets with one name that a service manager passed to the process (socket activation, sd_listen_fds(3)): TCP and UNIX
/// sockets.
///
/// The manager has opened them and keeps them, so clients can connect before the process serves and while it is started again: they
/// wait. When the ORB ends, it accepts no more clients, and the sockets go on to listen. The addresses in references are those of the sockets.
///
/// An ORB takes a socket when its root adapter is made. One endpoint has it at a time: another can take it once the ORB is gone, or if the
/// ORB cannot listen at all of its endpoints. Programs that the process starts after that get no passed socket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InheritedSockets {
    /// Their name (`FileDescriptorName=` of a `.socket` unit, LISTEN_FDNAMES), without `/`; empty for all that nobody has.
    pub name: String,
    /// True for TLS over them. Then all are TCP sockets.
    pub is_secure: bool,
}

impl fmt::Display for InheritedSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secure = if self.is_secure { "/ssliop" } else { "" };
        write!(f, "inherited://{}{secure}", self.name)
    }
}

/// An address that references contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedAddress {
    /// A name, or an IPv4 or IPv6 address without brackets.
    pub host: String,
    /// The port; `None` for that of the endpoint.
    pub port: Option<u16>,
}

impl ListenEndpoint {
    fn new(address: ListenAddress) -> Self {
        Self {
            address,
            published: Vec::new(),
            port_span: 1,
        }
    }

    /// Returns the endpoint of a text behind `inherited://`.
    fn inherited(text: &str) -> Result<Self, &'static str> {
        let (name, options) = text.split_once('/').unwrap_or((text, ""));
        let mut listen = Self::new(ListenAddress::Inherited(InheritedSockets {
            name: name.to_owned(),
            is_secure: false,
        }));
        listen.set_all(options)?;
        Ok(listen)
    }

    /// Applies options that are joined by `&`.
    fn set_all(&mut self, options: &str) -> Result<(), &'static str> {
        let mut options = options.split('&').filter(|option| !option.is_empty());
        options.try_for_each(|option| self.set(option))
    }

    fn set(&mut self, option: &str) -> Result<(), &'static str> {
        match (option.split_once('='), &mut self.address) {
            (Some(("hostname_in_ior", host)), _) => self.published.push(PublishedAddress {
                host: host_alone(host)?,
                port: None,
            }),
            (Some(("publish", address)), _) => self.published.push(published(address)?),
            (Some(("portspan", number)), ListenAddress::Endpoint(_)) => {
                let span = number.parse().ok().filter(|span| *span > 0);
                self.port_span = span.ok_or("portspan must be from 1 to 65535")?;
            }
            (None, ListenAddress::Inherited(sockets)) if option == "ssliop" => {
                sockets.is_secure = true;
            }
            (_, ListenAddress::Inherited(_)) => {
                return Err(
                    "a name contains no /, and the options behind it are publish=HOST:PORT, hostname_in_ior=HOST and ssliop, joined by &",
                );
            }
            (_, ListenAddress::Endpoint(_)) => {
                return Err(
                    "the options are publish=HOST:PORT, hostname_in_ior=HOST and portspan=N, joined by &",
                );
            }
        }
        Ok(())
    }

    /// Checks the ports from `port` on.
    fn check_span(&self, port: u16) -> Result<(), &'static str> {
        if port == 0 && self.port_span > 1 {
            return Err("portspan needs the first port: for port 0 the system chooses one");
        }
        if port.checked_add(self.port_span - 1).is_none() {
            return Err("portspan goes beyond port 65535");
        }
        Ok(())
    }
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
            Ok(Self::new(ListenAddress::Endpoint(endpoint(path.into()))))
        };
        if let Some(path) = text.strip_prefix("uiop://") {
            return with_path(path, |path| Endpoint::Unix { path });
        }
        if let Some(path) = text.strip_prefix("shmiop://") {
            return with_path(path, |path| Endpoint::SharedMemory { path });
        }
        if let Some(name) = text.strip_prefix("inherited://") {
            return Self::inherited(name).map_err(wrong);
        }
        let (address, is_secure) = match text.strip_prefix("ssliop://") {
            Some(address) => (Some(address), true),
            None => (text.strip_prefix("iiop://"), false),
        };
        let address = address.ok_or(wrong(
            "it must begin with iiop://, ssliop://, uiop://, shmiop:// or inherited://",
        ))?;
        let (address, options) = without_version(address)
            .split_once('/')
            .unwrap_or((address, ""));
        let (host, port) = split_port(without_version(address)).map_err(wrong)?;
        let host = if host.is_empty() { "0.0.0.0" } else { host };
        let host = host.to_owned();
        let mut listen = Self::new(ListenAddress::Endpoint(if is_secure {
            Endpoint::Tls { host, port }
        } else {
            Endpoint::Tcp { host, port }
        }));
        listen.set_all(options).map_err(wrong)?;
        listen.check_span(port).map_err(wrong)?;
        Ok(listen)
    }
}

/// Returns the host of `hostname_in_ior`, where TAO writes IPv6 addresses without brackets.
fn host_alone(text: &str) -> Result<String, &'static str> {
    let unbracketed = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let host = unbracketed.unwrap_or(text);
    if host.is_empty() {
        return Err("the host to publish is missing");
    }
    if host.contains(':') && host.parse::<Ipv6Addr>().is_err() {
        return Err("a host name has no colon; write publish=HOST:PORT to publish a port");
    }
    Ok(host.to_owned())
}

/// Returns the address of `publish`.
fn published(text: &str) -> Result<PublishedAddress, &'static str> {
    // An IPv6 address without brackets has no port.
    if text.parse::<Ipv6Addr>().is_ok() {
        let (host, port) = (text.to_owned(), None);
        return Ok(PublishedAddress { host, port });
    }
    let has_port = !text.ends_with(']') && text.contains(':');
    let (host, port) = split_port(text)?;
    if has_port && port == 0 {
        return Err("the port to publish is 0");
    }
    Ok(PublishedAddress {
        host: host_alone(host)?,
        port: has_port.then_some(port),
    })
}

/// The error for text that is not an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not an endpoint: {reason}; endpoints are iiop://127.0.0.1:0, iiop://0.0.0.0:2809/publish=HOST:PORT, \
     ssliop://0.0.0.0:2809, uiop:///run/server.sock, shmiop:///run/server.sock and inherited://NAME"
)]
pub struct EndpointError {
    text: String,
    reason: &'static str,
}

/// Returns the name of this host.
pub(crate) fn host_name() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// Returns true if a server at that endpoint is certainly on this host, and so has its clock.
pub(crate) fn is_on_this_host(endpoint: &Endpoint) -> bool {
    match endpoint {
        Endpoint::Unix { .. } | Endpoint::SharedMemory { .. } => true,
        Endpoint::Tcp { host, .. } | Endpoint::Tls { host, .. } => {
            let address = host.parse::<IpAddr>();
            let is_loopback = address.is_ok_and(|address| address.is_loopback());
            is_loopback || host == "localhost" || *host == host_name()
        }
    }
}

/// Returns the identity of this host for peers that share its memory: the id of its last boot, or its name.
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
            .map_err(|_| "the port must be a number from 0 to 65535"),
        None => Err("expected a colon and a port after the bracket"),
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
        let endpoint = |text: &str| {
            let listen: ListenEndpoint = text.parse().expect(text);
            match listen.address {
                ListenAddress::Endpoint(endpoint) => endpoint,
                ListenAddress::Inherited(sockets) => panic!("{sockets}"),
            }
        };
        assert_eq!(endpoint("iiop://127.0.0.1:0"), tcp("127.0.0.1", 0));
        assert_eq!(endpoint("iiop://1.2@board:2809"), tcp("board", 2809));
        assert_eq!(endpoint("iiop://[::1]:7"), tcp("::1", 7));
        assert_eq!(endpoint("iiop://:2809"), tcp("0.0.0.0", 2809));
        let secure = endpoint("ssliop://[::1]:2810");
        assert_eq!(secure.to_string(), "ssliop://[::1]:2810");
        assert!(matches!(secure, Endpoint::Tls { port: 2810, .. }));
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
    }

    #[test]
    fn sockets_of_a_service_manager_have_a_name_and_may_publish_other_addresses() {
        let listen = |text: &str| text.parse::<ListenEndpoint>().expect(text);
        for (text, name, is_secure) in [
            ("inherited://naming", "naming", false),
            ("inherited://", "", false),
            ("inherited://rtorb.socket/ssliop", "rtorb.socket", true),
        ] {
            let sockets = InheritedSockets {
                name: name.to_owned(),
                is_secure,
            };
            let listen = listen(text);
            assert_eq!(listen.address.to_string(), text);
            assert_eq!(listen.address, ListenAddress::Inherited(sockets));
        }
        let listen = listen("inherited://naming/publish=gate:12809&ssliop&publish=wall");
        assert_eq!(listen.address.to_string(), "inherited://naming/ssliop");
        let published = listen.published.into_iter();
        let published: Vec<_> = published.map(|it| (it.host, it.port)).collect();
        let expected = [("gate".to_owned(), Some(12_809)), ("wall".to_owned(), None)];
        assert_eq!(published, expected);
        for wrong in [
            "inherited://naming/portspan=2",
            "inherited://naming/tls",
            "inherited://naming/ssliop=yes",
            "iiop://127.0.0.1:2809/ssliop",
        ] {
            let error = wrong.parse::<ListenEndpoint>().expect_err(wrong);
            assert!(error.to_string().contains("the options"), "{error}");
        }
    }

    #[test]
    fn an_endpoint_publishes_the_addresses_that_its_options_name() {
        let published = |options: &str| {
            let text = format!("iiop://0.0.0.0:9000/{options}");
            let listen: ListenEndpoint = text.parse().expect(&text);
            let addresses = listen.published.into_iter();
            let addresses = addresses.map(|address| (address.host, address.port));
            (addresses.collect::<Vec<_>>(), listen.port_span)
        };
        let address = |host: &str, port: u16| (host.to_owned(), (port > 0).then_some(port));
        for (options, addresses, span) in [
            ("", vec![], 1),
            ("hostname_in_ior=gate", vec![address("gate", 0)], 1),
            ("hostname_in_ior=::1", vec![address("::1", 0)], 1),
            ("publish=gate", vec![address("gate", 0)], 1),
            ("publish=::1", vec![address("::1", 0)], 1),
            (
                "publish=gate:19000&publish=[::1]:7&portspan=5",
                vec![address("gate", 19_000), address("::1", 7)],
                5,
            ),
        ] {
            assert_eq!(published(options), (addresses, span), "{options}");
        }
    }

    #[test]
    fn an_option_that_makes_a_dead_reference_is_refused_with_the_right_one() {
        for (options, advice) in [
            ("hostname_in_ior=gate:9000", "publish=HOST:PORT"),
            ("publish=gate:9000:1", "the port must be a number"),
            ("publish=[gate:1]", "has no colon"),
            ("publish=gate:0", "is 0"),
            ("publish=gate:", "the port must be a number"),
            ("publish=:9", "is missing"),
            ("publish=", "is missing"),
            ("hostname_in_ior=", "is missing"),
            ("portspan=0", "1 to 65535"),
            ("portspan=60000", "beyond port 65535"),
        ] {
            let text = format!("iiop://0.0.0.0:9000/{options}");
            let error = text.parse::<ListenEndpoint>().expect_err(&text).to_string();
            assert!(error.contains(advice), "{error}");
        }
        let any = "iiop://127.0.0.1:0/portspan=2".parse::<ListenEndpoint>();
        assert!(
            any.expect_err("no first port")
                .to_string()
                .contains("port 0")
        );
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
