//! The interface between an ORB and a secure transport (SSLIOP): what the crate `rtorb-tls` implements, and who a peer has proved to be.
//!
//! The ORB connects, listens, waits and frames messages. A secure transport makes the handshakes, and turns bytes into sealed ones and
//! back. It neither waits for a socket in a call nor has a thread in its path: bytes are sealed and opened on the thread that sends or
//! receives, at its priority.

use crate::exception::{SystemException, local};
use core::fmt;
use rustix::io::Errno;
use std::io::IoSlice;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Makes secure connections, for both sides of an ORB.
pub trait SecureTransport: fmt::Debug + Send + Sync {
    /// Makes the handshake of a client on the calling thread, over a connected socket, until `until_ns` of the monotonic clock. `host` is
    /// the name in the reference, which the certificate of the server must have. `report` reports to the log of the ORB what does not end
    /// the handshake, such as changed files that cannot be used.
    ///
    /// # Errors
    /// [`HandshakeError`]
    fn connect(
        &self,
        socket: BorrowedFd<'_>,
        host: &str,
        until_ns: u64,
        report: &SecurityReport,
    ) -> Result<Arc<dyn SecureLink>, HandshakeError>;

    /// Takes a listening socket over. The handshakes with its clients are made by another thread than those of the ORB. `report` reports
    /// a refused client to the log of the ORB; it may be called often.
    ///
    /// # Errors
    /// The error of the system if the host refuses the thread or a descriptor; `OPNOTSUPP` if there is no certificate for servers.
    fn listen(
        &self,
        socket: OwnedFd,
        report: SecurityReport,
    ) -> Result<Box<dyn SecureListener>, Errno>;

    /// Returns true if clients must have a certificate: references say so.
    fn wants_client_certificate(&self) -> bool;
}

/// Reports an event of a secure transport, as a text for a person.
pub type SecurityReport = Arc<dyn Fn(String) + Send + Sync>;

/// The clients of one listening socket whose handshakes are over.
pub trait SecureListener: fmt::Debug + Send + Sync {
    /// Returns a descriptor that is readable while a client can be accepted.
    ///
    /// # Errors
    /// The error of the system if it has no descriptor left.
    fn readiness(&self) -> Result<OwnedFd, Errno>;

    /// Accepts a client, as a blocking socket. Does not wait.
    ///
    /// # Errors
    /// `AGAIN` if there is none.
    fn accept(&self) -> Result<(OwnedFd, Arc<dyn SecureLink>), Errno>;

    /// Stops listening, and ends the handshakes in progress.
    fn end(&self);
}

/// One end of a secure connection. The ORB owns the socket, so it is a parameter.
///
/// One thread at a time sends, and one receives, perhaps at once. No function waits.
pub trait SecureLink: fmt::Debug + Send + Sync {
    /// Seals and sends as much as the socket takes, and returns the number of bytes.
    ///
    /// If that is not all, the next call begins with the rest of the same bytes. Some of the rest may be sealed already; a byte of it
    /// then counts as unsent until all that is sealed is sent.
    ///
    /// # Errors
    /// That of the system.
    fn send_now(&self, socket: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> Result<usize, Errno>;

    /// Receives and opens bytes until `into` is full or the socket has no more. Returns 0 if the peer has ended.
    ///
    /// # Errors
    /// `AGAIN` if there are none; `KEYREJECTED` if the peer has refused the certificate of this side; `PROTO` for bytes that are not what
    /// TLS allows; that of the system.
    fn receive_now(&self, socket: BorrowedFd<'_>, into: &mut [u8]) -> Result<usize, Errno>;

    /// Returns true if it holds opened bytes that are not received: the socket does not report them.
    fn holds_bytes(&self) -> bool;

    /// Tells the peer that no more bytes come (close_notify), as far as the socket takes that now.
    fn end_sending(&self, socket: BorrowedFd<'_>);

    /// Returns who the peer has proved to be; `None` if it has shown no certificate.
    fn peer(&self) -> Option<&Arc<PeerIdentity>>;
}

/// Who a peer has proved to be: the names in its certificate, which a trusted authority has signed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerIdentity {
    /// The common name of its subject; empty if it has none.
    pub common_name: String,
    /// Its alternative names: host names, addresses and URIs.
    pub alternative_names: Vec<String>,
}

impl PeerIdentity {
    /// Makes the identity with these names.
    pub const fn new(common_name: String, alternative_names: Vec<String>) -> Self {
        Self {
            common_name,
            alternative_names,
        }
    }

    /// Returns true if `name` is its common name or one of its alternative names. No name has a wildcard here.
    pub fn is_named(&self, name: &str) -> bool {
        let mut names = self.alternative_names.iter();
        !name.is_empty() && (self.common_name == name || names.any(|own| own == name))
    }
}

impl fmt::Display for PeerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&*self.common_name, self.alternative_names.is_empty()) {
            ("", true) => f.write_str("without a name"),
            ("", false) => f.write_str(&self.alternative_names.join(", ")),
            (name, true) => f.write_str(name),
            (name, false) => write!(f, "{name} ({})", self.alternative_names.join(", ")),
        }
    }
}

/// Why a handshake failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}: {detail}")]
pub struct HandshakeError {
    /// The kind of failure.
    pub fault: HandshakeFault,
    /// Which certificate or message it was, for a person.
    pub detail: String,
}

/// The kinds of failed handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeFault {
    /// The certificate of the peer is not valid yet, or no longer.
    #[error("the certificate is of another time")]
    OtherTime,
    /// The certificate of the server does not have the name of its host.
    #[error("the certificate has another name")]
    OtherName,
    /// The certificate of the peer is revoked.
    #[error("the certificate is revoked")]
    Revoked,
    /// The list of revoked certificates of the peer's authority is out of date.
    #[error("the list of revoked certificates is out of date")]
    OldRevocations,
    /// The certificate of the peer leads to no trusted authority.
    #[error("the certificate is of no trusted authority")]
    Untrusted,
    /// The certificate of the peer cannot be used for another reason.
    #[error("the certificate cannot be used")]
    Unusable,
    /// The peer refuses the certificate of this side, or needs one.
    #[error("the peer refuses the certificate")]
    Refused,
    /// The peer sends something that is not TLS.
    #[error("no TLS")]
    Plain,
    /// Another failure of TLS.
    #[error("no agreement")]
    Failed,
    /// The connection failed. `TIMEDOUT` if the time was over.
    #[error("the connection failed")]
    Connection(Errno),
}

impl HandshakeError {
    /// Returns the exception of a call.
    #[cold]
    pub(crate) fn into_exception(self) -> Result<SystemException, Errno> {
        let exception = match self.fault {
            HandshakeFault::Connection(errno) => return Err(errno),
            HandshakeFault::OtherTime => local::CERTIFICATE_EXPIRED,
            HandshakeFault::OtherName => local::CERTIFICATE_OF_OTHER_NAME,
            HandshakeFault::Revoked => local::CERTIFICATE_REVOKED,
            HandshakeFault::OldRevocations => local::REVOCATIONS_EXPIRED,
            HandshakeFault::Untrusted => local::CERTIFICATE_UNTRUSTED,
            HandshakeFault::Unusable => local::CERTIFICATE_UNUSABLE,
            HandshakeFault::Refused => local::OWN_CERTIFICATE_REFUSED,
            HandshakeFault::Plain => local::PEER_IS_PLAIN,
            HandshakeFault::Failed => local::HANDSHAKE_FAILED,
        };
        Ok(exception.with_detail(self.detail))
    }
}

/// The files of a secure transport, as options and configuration files name them. All are in PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecurityFiles {
    /// The certificate of this program, and behind it those that lead to its authority.
    pub certificate: Option<std::path::PathBuf>,
    /// The private key of the certificate.
    pub key: Option<std::path::PathBuf>,
    /// The certificates of the trusted authorities.
    pub authorities: Option<std::path::PathBuf>,
    /// The lists of revoked certificates.
    pub revocations: Option<std::path::PathBuf>,
    /// True if a list of revoked certificates counts also after the time at which the next one was due. Otherwise no certificate of its
    /// authority is accepted then.
    pub accepts_expired_revocations: bool,
    /// What a server asks of its clients.
    pub clients: ClientCertificates,
}

impl SecurityFiles {
    /// Returns true if no file is named.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a server asks of its clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClientCertificates {
    /// Each client shows a certificate of a trusted authority: mutual TLS.
    #[default]
    Required,
    /// A client may show one.
    Optional,
    /// No client is asked.
    None,
}

/// Makes a secure transport from files: `rtorb_tls::transport`.
pub type SecurityProvider = fn(&SecurityFiles) -> Result<Arc<dyn SecureTransport>, String>;
