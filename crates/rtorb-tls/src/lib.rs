//! TLS for the ORB rtorb: SSLIOP, as omniORB and JacORB have it, with TLS 1.2 and 1.3 by rustls.
//!
//! ```no_run
//! use rtorb_tls::Tls;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let tls = Tls::builder()
//!     .certificate("server.pem", "server.key")
//!     .authorities("ca.pem")
//!     .build()?;
//! let orb = rtorb::Orb::builder()
//!     .secure_transport(tls.transport())
//!     .listen("ssliop://0.0.0.0:2809")
//!     .build()?;
//! // When the files have changed, new connections use them within a second; after this call, at once.
//! tls.reload()?;
//! # Ok(())
//! # }
//! ```
//!
//! A server asks its clients for a certificate unless [`TlsBuilder::clients`] says otherwise: mutual TLS. An [`AccessRule`] lets only
//! some of them call an adapter. A client gives authorities, and a certificate where a server asks for one.
//!
//! Bytes are sealed and opened on the thread that sends or receives, at its priority. The handshakes of a server are made by a thread of
//! their own, `rtorb-tls`: so many at a time, so many a second, each within a time. What is more waits in the queue of the listening
//! socket, and the threads that serve calls do not know of it.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod access;
mod budget;
mod certificate;
mod client;
mod counts;
mod current;
mod fault;
mod handshakes;
#[cfg(feature = "keys")]
pub mod keys;
mod link;
mod port;
mod settings;
#[cfg(test)]
mod test_keys;
mod tls;
mod verifier;

pub use access::AccessRule;
pub use counts::HandshakeCounts;
pub use settings::{TlsBuilder, TlsError};
pub use tls::{Tls, transport};
