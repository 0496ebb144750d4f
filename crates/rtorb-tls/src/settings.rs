//! The settings of TLS, and the files that they name.

use crate::verifier::NotingVerifier;
use rtorb::security::{ClientCertificates, SecurityFiles};
use rtorb::thread::{SchedPolicy, ThreadConfig};
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::cmp::Reverse;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use x509_parser::prelude::{CertificateRevocationList, FromDer as _};

/// Builds a [`Tls`](crate::Tls).
#[derive(Clone, Debug)]
#[must_use]
pub struct TlsBuilder {
    files: SecurityFiles,
    pub(crate) handshakes: HandshakeSettings,
}

/// The bounds of a server's handshakes.
#[derive(Clone, Debug)]
pub(crate) struct HandshakeSettings {
    pub(crate) thread: ThreadConfig,
    pub(crate) per_second: u32,
    pub(crate) at_once_max: usize,
    pub(crate) timeout: Duration,
}

impl Default for HandshakeSettings {
    fn default() -> Self {
        Self {
            thread: ThreadConfig {
                policy: Some(SchedPolicy::Other),
                ..ThreadConfig::default()
            },
            per_second: 200,
            at_once_max: 64,
            timeout: Duration::from_secs(5),
        }
    }
}

impl TlsBuilder {
    pub(crate) fn of_files(files: SecurityFiles) -> Self {
        Self {
            files,
            handshakes: HandshakeSettings::default(),
        }
    }

    /// The file of the own certificate, with those behind it that lead to its authority, and the file of its private key. Both are in PEM.
    pub fn certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.files.certificate = Some(certificate.into());
        self.files.key = Some(key.into());
        self
    }

    /// The file with the certificates of the trusted authorities, in PEM. No other authority is trusted, not even those of the system.
    pub fn authorities(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.authorities = Some(file.into());
        self
    }

    /// The file with lists of revoked certificates, in PEM. A certificate whose authority has no list there is not revoked. Of several lists of
    /// one authority, the one that was made last counts. Once the next list of an authority is due, none of its certificates is accepted.
    pub fn revocations(mut self, file: impl Into<PathBuf>) -> Self {
        self.files.revocations = Some(file.into());
        self
    }

    /// Lets a list of revoked certificates count also after the time at which the next one was due.
    pub fn accept_expired_revocations(mut self) -> Self {
        self.files.accepts_expired_revocations = true;
        self
    }

    /// What a server asks of its clients; a certificate by default.
    pub fn clients(mut self, clients: ClientCertificates) -> Self {
        self.files.clients = clients;
        self
    }

    /// The scheduling of the thread that makes a server's handshakes; SCHED_OTHER by default, so that it never delays a lane that has
    /// SCHED_FIFO. Give it CPUs of its own to keep it from the caches of urgent threads too.
    pub fn handshake_thread(mut self, thread: ThreadConfig) -> Self {
        self.handshakes.thread = thread;
        self
    }

    /// The most handshakes that a server begins in a second, at least 1; 200 by default. Other clients wait in the queue of the socket.
    pub fn handshakes_per_second(mut self, handshakes: u32) -> Self {
        self.handshakes.per_second = handshakes.max(1);
        self
    }

    /// The most handshakes of a server in progress, at least 1; 64 by default. If another client waits, the oldest of them gives its place up
    /// once it has lasted 250 ms.
    pub fn handshakes_at_once(mut self, handshakes: usize) -> Self {
        self.handshakes.at_once_max = handshakes.max(1);
        self
    }

    /// The longest time of a handshake of a server; 5 s by default. A client's handshake ends with the timeout of its call.
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshakes.timeout = timeout;
        self
    }

    /// Returns true if clients must have a certificate.
    pub(crate) fn wants_client_certificate(&self) -> bool {
        self.files.clients == ClientCertificates::Required
    }

    /// Returns what shows whether the files have changed.
    pub(crate) fn stamps(&self) -> FileStamps {
        let files = &self.files;
        let files = [
            &files.certificate,
            &files.key,
            &files.authorities,
            &files.revocations,
        ];
        files.map(|file| {
            let metadata = std::fs::metadata(file.as_ref()?).ok()?;
            let modified = (metadata.mtime(), metadata.mtime_nsec());
            Some((metadata.ino(), metadata.len(), modified))
        })
    }

    /// Reads the files.
    pub(crate) fn configs(&self) -> Result<Configs, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let identity = self.identity()?;
        let authorities = self.authorities_in_file()?;
        let revocations = self.revocations_in_file()?;
        let trust = Trust {
            authorities,
            revocations,
            provider,
            files: &self.files,
        };
        Ok(Configs {
            client: trust.client(identity.as_ref())?,
            server: match &identity {
                Some(identity) => Some(trust.server(identity, self.files.clients)?),
                None => None,
            },
        })
    }

    fn identity(&self) -> Result<Option<Identity>, TlsError> {
        let (certificate, key) = match (&self.files.certificate, &self.files.key) {
            (None, None) => return Ok(None),
            (Some(certificate), Some(key)) => (certificate, key),
            _ => return Err(TlsError::Incomplete),
        };
        let chain = items(certificate, "certificate")?;
        let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error))?;
        Ok(Some(Identity {
            chain,
            key: secret,
            file: certificate.clone(),
        }))
    }

    fn authorities_in_file(&self) -> Result<Option<Arc<RootCertStore>>, TlsError> {
        let Some(file) = &self.files.authorities else {
            return Ok(None);
        };
        let mut store = RootCertStore::empty();
        for certificate in items::<CertificateDer<'static>>(file, "certificate")? {
            store.add(certificate).map_err(|error| TlsError::Wrong {
                file: file.clone(),
                reason: error.to_string(),
            })?;
        }
        Ok(Some(Arc::new(store)))
    }

    /// The lists of revoked certificates. Those that were made last are first, because rustls uses the first list of an authority.
    fn revocations_in_file(&self) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
        let Some(file) = &self.files.revocations else {
            return Ok(Vec::new());
        };
        let mut lists = Vec::new();
        for list in
            items::<CertificateRevocationListDer<'static>>(file, "list of revoked certificates")?
        {
            let made = CertificateRevocationList::from_der(&list);
            let made = made.map(|(_, list)| list.last_update());
            let made = made.map_err(|error| TlsError::Wrong {
                file: file.clone(),
                reason: format!("a list of revoked certificates cannot be read: {error}"),
            })?;
            lists.push((made, list));
        }
        // Of two that were made in the same second, the later one in the file.
        lists.reverse();
        lists.sort_by_key(|(made, _)| Reverse(*made));
        Ok(lists.into_iter().map(|(_, list)| list).collect())
    }
}

/// The number, the size and the time of the last change of each file, in seconds and nanoseconds.
pub(crate) type FileStamps = [Option<(u64, u64, (i64, i64))>; 4];

/// What the files of one reading result in.
#[derive(Debug)]
pub(crate) struct Configs {
    /// `None` without authorities: then no server is trusted.
    pub(crate) client: Option<Arc<ClientConfig>>,
    /// `None` without a certificate.
    pub(crate) server: Option<Arc<ServerConfig>>,
}

struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    file: PathBuf,
}

impl Identity {
    fn wrong(&self, reason: impl ToString) -> TlsError {
        TlsError::Wrong {
            file: self.file.clone(),
            reason: reason.to_string(),
        }
    }
}

/// Whom to trust.
struct Trust<'f> {
    authorities: Option<Arc<RootCertStore>>,
    revocations: Vec<CertificateRevocationListDer<'static>>,
    provider: Arc<CryptoProvider>,
    files: &'f SecurityFiles,
}

impl Trust<'_> {
    /// Makes a verifier that remembers what it refuses.
    fn noting<V: ?Sized>(&self, verifier: Arc<V>) -> Arc<NotingVerifier<V>> {
        Arc::new(NotingVerifier {
            verifier,
            revocations: self.files.revocations.clone(),
        })
    }

    fn client(&self, identity: Option<&Identity>) -> Result<Option<Arc<ClientConfig>>, TlsError> {
        let Some(authorities) = &self.authorities else {
            return Ok(None);
        };
        let provider = &self.provider;
        let roots = Arc::clone(authorities);
        let mut verifier = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
            .with_crls(self.revocations.iter().cloned())
            .allow_unknown_revocation_status();
        if !self.files.accepts_expired_revocations {
            verifier = verifier.enforce_revocation_expiration();
        }
        let verifier = verifier.build();
        let verifier = verifier.map_err(|error| TlsError::Trust(error.to_string()))?;
        let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Trust(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(self.noting::<dyn ServerCertVerifier>(verifier));
        let mut config = match identity {
            None => builder.with_no_client_auth(),
            Some(identity) => builder
                .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
                .map_err(|error| identity.wrong(error))?,
        };
        // A resumed session shows no certificate, so that one that has expired since would go on.
        config.resumption = Resumption::disabled();
        Ok(Some(Arc::new(config)))
    }

    fn server(
        &self,
        identity: &Identity,
        clients: ClientCertificates,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let provider = &self.provider;
        let builder = ServerConfig::builder_with_provider(Arc::clone(provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsError::Trust(error.to_string()))?;
        let builder = match (clients, &self.authorities) {
            (ClientCertificates::None, _) | (ClientCertificates::Optional, None) => {
                builder.with_no_client_auth()
            }
            (_, None) => return Err(TlsError::NoAuthority),
            (clients, Some(authorities)) => {
                let roots = Arc::clone(authorities);
                let mut verifier =
                    WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider))
                        .with_crls(self.revocations.iter().cloned())
                        .allow_unknown_revocation_status();
                if !self.files.accepts_expired_revocations {
                    verifier = verifier.enforce_revocation_expiration();
                }
                if clients == ClientCertificates::Optional {
                    verifier = verifier.allow_unauthenticated();
                }
                let verifier = verifier.build();
                let verifier = verifier.map_err(|error| TlsError::Trust(error.to_string()))?;
                builder.with_client_cert_verifier(self.noting::<dyn ClientCertVerifier>(verifier))
            }
        };
        let config = builder.with_single_cert(identity.chain.clone(), identity.key.clone_key());
        let mut config = config.map_err(|error| identity.wrong(error))?;
        // As for clients: a session that is not resumed has its certificates checked.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

/// Returns the items of a kind in a file, at least one.
fn items<T: rustls::pki_types::pem::PemObject>(
    file: &Path,
    what: &'static str,
) -> Result<Vec<T>, TlsError> {
    let read = T::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<T>, _>>);
    let items = read.map_err(|error| unreadable(file, error))?;
    if items.is_empty() {
        return Err(TlsError::Wrong {
            file: file.to_owned(),
            reason: format!("it has no {what} in PEM, which begins with `-----BEGIN`"),
        });
    }
    Ok(items)
}

fn unreadable(file: &Path, error: PemError) -> TlsError {
    TlsError::Wrong {
        file: file.to_owned(),
        reason: match error {
            PemError::Io(error) => error.to_string(),
            PemError::NoItemsFound => "it has no such item in PEM".to_owned(),
            other => format!("it is not PEM: {other}"),
        },
    }
}

/// An error of the settings of TLS.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be used.
    #[error("{}: {reason}", file.display())]
    Wrong {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Only one of certificate and key is given.
    #[error(
        "a certificate and its key go together: give both (tls_certificate and tls_key), or none"
    )]
    Incomplete,
    /// Clients must have certificates, of no authority.
    #[error(
        "a server that wants certificates of its clients needs their authorities: give them (tls_ca), or ask for none (tls_clients none)"
    )]
    NoAuthority,
    /// The authorities or the lists of revoked certificates cannot be used.
    #[error("the authorities or the lists of revoked certificates cannot be used: {0}")]
    Trust(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tls;
    use crate::test_keys::server_keys;
    use rcgen::{
        CertificateParams, CertificateRevocationListParams, Issuer, KeyIdMethod, KeyPair,
        SerialNumber, date_time_ymd,
    };
    use rustls::server::ServerSessionMemoryCache;
    use rustls::{ClientConnection, HandshakeKind, ServerConnection};

    /// Makes a handshake, and returns how it was made.
    fn handshake(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> HandshakeKind {
        let name = "localhost".try_into().expect("a name");
        let client = ClientConnection::new(Arc::clone(client), name).expect("right settings");
        let server = ServerConnection::new(Arc::clone(server)).expect("right settings");
        let (mut client, mut server) = (client, server);
        for _ in 0..8 {
            let mut sent = Vec::new();
            client.write_tls(&mut sent).expect("there is room");
            let mut unread = sent.as_slice();
            while !unread.is_empty() {
                server.read_tls(&mut unread).expect("it is in memory");
                server.process_new_packets().expect("right certificates");
            }
            let mut sent = Vec::new();
            server.write_tls(&mut sent).expect("there is room");
            let mut unread = sent.as_slice();
            while !unread.is_empty() {
                client.read_tls(&mut unread).expect("it is in memory");
                client.process_new_packets().expect("right certificates");
            }
        }
        client.handshake_kind().expect("the handshake is over")
    }

    #[test]
    fn the_list_that_was_made_last_is_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let key = KeyPair::generate().expect("a key");
        let issuer = Issuer::new(CertificateParams::default(), key);
        let [old, new] = [2020, 2021].map(|year| {
            let list = CertificateRevocationListParams {
                this_update: date_time_ymd(year, 1, 1),
                next_update: date_time_ymd(2099, 1, 1),
                crl_number: SerialNumber::from(1_u64),
                issuing_distribution_point: None,
                revoked_certs: Vec::new(),
                key_identifier_method: KeyIdMethod::Sha256,
            };
            list.signed_by(&issuer).expect("a list")
        });
        let file = folder.path().join("lists.pem");
        for lists in [[&old, &new], [&new, &old]] {
            let text = lists.map(|list| list.pem().expect("a list"));
            std::fs::write(&file, text.concat()).expect("the folder can be written");
            let read = Tls::builder().revocations(&file).revocations_in_file();
            assert_eq!(
                read.expect("right lists"),
                [new.der().clone(), old.der().clone()]
            );
        }
    }

    #[test]
    fn neither_end_resumes_a_session() {
        let (_folder, settings) = server_keys();
        let configs = settings.configs().expect("right files");
        let client = configs.client.expect("it has authorities");
        let server = configs.server.expect("it has a certificate");
        let mut asking = ClientConfig::clone(&client);
        asking.resumption = Resumption::in_memory_sessions(8);
        let asking = Arc::new(asking);
        let mut giving = ServerConfig::clone(&server);
        giving.session_storage = ServerSessionMemoryCache::new(8);
        giving.send_tls13_tickets = 2;
        let giving = Arc::new(giving);
        let again = |client, server| {
            handshake(client, server);
            handshake(client, server)
        };
        assert_eq!(again(&asking, &giving), HandshakeKind::Resumed);
        assert_eq!(again(&client, &giving), HandshakeKind::Full);
        // Its earlier sessions are of another server.
        let mut asking = ClientConfig::clone(&asking);
        asking.resumption = Resumption::in_memory_sessions(8);
        assert_eq!(again(&Arc::new(asking), &server), HandshakeKind::Full);
    }
}
