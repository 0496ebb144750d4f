//! The verifier of certificates, which remembers the one that it refused.

use crate::certificate::RefusedCertificate;
use core::cell::RefCell;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use std::path::PathBuf;
use std::sync::Arc;

thread_local! {
    /// The certificate that this thread refused last. A certificate is verified on the thread that reads it.
    static REFUSED: RefCell<Option<RefusedCertificate>> = const { RefCell::new(None) };
}

/// Returns the certificate that this thread refused last, and forgets it.
pub(crate) fn take_refused() -> Option<RefusedCertificate> {
    REFUSED.take()
}

/// Verifies the certificates of servers or of clients, and remembers the one that it refuses.
#[derive(Debug)]
pub(crate) struct NotingVerifier<V: ?Sized> {
    pub(crate) verifier: Arc<V>,
    /// The file of the lists of revoked certificates.
    pub(crate) revocations: Option<PathBuf>,
}

impl<V: ?Sized> NotingVerifier<V> {
    fn note<T>(
        &self,
        end_entity: &CertificateDer<'_>,
        verified: Result<T, Error>,
    ) -> Result<T, Error> {
        if verified.is_err() {
            let refused = RefusedCertificate::of(end_entity, self.revocations.clone());
            REFUSED.set(Some(refused));
        }
        verified
    }
}

/// Implements what the traits for servers and for clients have in common.
macro_rules! verify_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.verifier.verify_tls12_signature(message, cert, dss)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.verifier.verify_tls13_signature(message, cert, dss)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.verifier.supported_verify_schemes()
        }
    };
}

impl ServerCertVerifier for NotingVerifier<dyn ServerCertVerifier> {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verifier = &self.verifier;
        let verified =
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        self.note(end_entity, verified)
    }

    verify_signatures!();
}

impl ClientCertVerifier for NotingVerifier<dyn ClientCertVerifier> {
    fn offer_client_auth(&self) -> bool {
        self.verifier.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.verifier.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verifier = &self.verifier;
        let verified = verifier.verify_client_cert(end_entity, intermediates, now);
        self.note(end_entity, verified)
    }

    verify_signatures!();
}
