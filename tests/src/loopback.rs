//! Loopback addresses that no other test listens on.

use std::net::{SocketAddr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU8, Ordering};

/// A port at which nobody listens: a host gives no port below 1024 to a server that asks for any.
pub const NOBODYS_PORT: u16 = 1;

/// Returns an endpoint at a loopback address of its own, with a port that the host chooses.
///
/// A test calls a server that has ended and expects that nobody is there. At an address that all tests have, the host gives the same
/// port to the next server, which answers that it has no such object.
#[must_use]
pub fn own_endpoint() -> String {
    static SERVERS: AtomicU8 = AtomicU8::new(0);
    let [.., high, low] = process::id().to_be_bytes();
    let server = SERVERS.fetch_add(1, Ordering::Relaxed);
    format!("iiop://127.{high}.{low}.{}:0", server.clamp(2, 254))
}

/// Listens at an address as that of [`own_endpoint`], with a port that the host chooses.
///
/// The port is the caller's from its choice on: between a choice and a later `bind`, a server that listens at all addresses could get it.
///
/// # Panics
///
/// The host gives no port.
#[must_use]
pub fn own_listener() -> TcpListener {
    let endpoint = own_endpoint();
    TcpListener::bind(endpoint.trim_start_matches("iiop://")).expect("loopback has a free port")
}

/// Returns an address as that of [`own_endpoint`], with a port at which nobody listens.
///
/// # Panics
///
/// The host gives no port.
#[must_use]
pub fn own_address() -> SocketAddr {
    own_listener().local_addr().expect("it is bound")
}
