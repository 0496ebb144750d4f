//! The secure transport of an ORB.

use crate::client;
use crate::counts::HandshakeCounts;
use crate::current::CurrentFiles;
use crate::handshakes::HandshakeThread;
use crate::settings::{TlsBuilder, TlsError};
use rtorb::security::{
    HandshakeError, HandshakeFault, SecureLink, SecureListener, SecureTransport, SecurityFiles,
    SecurityReport,
};
use rtorb::thread::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// TLS connections from files: certificates, keys, authorities and lists of revoked certificates.
///
/// ORBs can share one. Clones are the same.
#[derive(Clone, Debug)]
pub struct Tls {
    files: Arc<CurrentFiles>,
    thread: Arc<HandshakeThread>,
}

impl TlsBuilder {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`] for a file that is missing or wrong.
    pub fn build(self) -> Result<Tls, TlsError> {
        let thread = HandshakeThread::new(self.handshakes.clone());
        Ok(Tls {
            files: Arc::new(CurrentFiles::read(self)?),
            thread: Arc::new(thread),
        })
    }
}

impl Tls {
    /// Begins with no files.
    pub fn builder() -> TlsBuilder {
        TlsBuilder::of_files(SecurityFiles::default())
    }

    /// Reads the files again. Servers and clients do so by themselves within a second after a file has changed, with the next connection.
    /// New connections use what is in them; those that are open stay open.
    ///
    /// A client looks at its files, and reads changed ones, on the thread of the call that connects. The deadline of the call does not bound
    /// that, so keep the files on a local disk, and let urgent threads call when a connection is open (`validate_connection`).
    ///
    /// # Errors
    /// [`TlsError`] for a file that is wrong now. Then nothing changes.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.files.reload()
    }

    /// Returns the numbers of the handshakes that servers with this have made.
    pub fn handshakes(&self) -> HandshakeCounts {
        self.thread.counts()
    }

    /// Returns the transport, for [`OrbBuilder::secure_transport`](rtorb::OrbBuilder::secure_transport).
    pub fn transport(&self) -> Arc<dyn SecureTransport> {
        Arc::new(self.clone())
    }
}

/// Makes a secure transport from files, for [`OrbBuilder::security_provider`](rtorb::OrbBuilder::security_provider).
///
/// # Errors
/// The text of a [`TlsError`].
pub fn transport(files: &SecurityFiles) -> Result<Arc<dyn SecureTransport>, String> {
    let tls = TlsBuilder::of_files(files.clone()).build();
    tls.map(|tls| tls.transport())
        .map_err(|error| error.to_string())
}

impl SecureTransport for Tls {
    fn connect(
        &self,
        socket: BorrowedFd<'_>,
        host: &str,
        until_ns: u64,
        report: &SecurityReport,
    ) -> Result<Arc<dyn SecureLink>, HandshakeError> {
        self.files.reload_if_changed(&|text| report(text));
        let configs = self.files.configs();
        let Some(config) = &configs.client else {
            return Err(HandshakeError {
                fault: HandshakeFault::Untrusted,
                detail: "this ORB trusts no authority, because it is given none".to_owned(),
            });
        };
        let link = client::connect(config, socket, host, until_ns)?;
        Ok(Arc::new(link))
    }

    fn listen(
        &self,
        socket: OwnedFd,
        report: SecurityReport,
    ) -> Result<Box<dyn SecureListener>, Errno> {
        if self.files.server().is_none() {
            return Err(Errno::OPNOTSUPP);
        }
        let port = self.thread.serve(Arc::clone(&self.files), socket, report)?;
        Ok(Box::new(port))
    }

    fn wants_client_certificate(&self) -> bool {
        self.files.settings.wants_client_certificate()
    }
}
