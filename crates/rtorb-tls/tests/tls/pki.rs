//! An authority with its certificates, in a folder of the test.

use rtorb::security::ClientCertificates;
use rtorb::{Orb, OrbBuilder};
use rtorb_tests::scratch::Scratch;
use rtorb_tls::keys::{AUTHORITY, Authority, IssuedFiles, Purpose, REVOCATIONS, Validity};
use rtorb_tls::{Tls, TlsBuilder};

/// An authority of the test.
pub(crate) struct Pki {
    pub(crate) folder: Scratch,
    pub(crate) authority: Authority,
}

impl Pki {
    pub(crate) fn new() -> Self {
        Self::of("test authority")
    }

    /// Makes an authority of that name.
    pub(crate) fn of(name: &str) -> Self {
        let folder = Scratch::new();
        let authority = Authority::create(&folder, name, Validity::days(2));
        Self {
            authority: authority.expect("the folder can be written"),
            folder,
        }
    }

    pub(crate) fn issue(&self, purpose: Purpose, name: &str, hosts: &[&str]) -> IssuedFiles {
        self.issue_for(purpose, name, hosts, Validity::days(1))
    }

    pub(crate) fn issue_for(
        &self,
        purpose: Purpose,
        name: &str,
        hosts: &[&str],
        validity: Validity,
    ) -> IssuedFiles {
        let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let issued = self.authority.issue(purpose, name, &hosts, validity);
        issued.expect("the folder can be written")
    }

    /// Begins TLS with this certificate, which trusts the authority.
    pub(crate) fn with(&self, files: &IssuedFiles) -> TlsBuilder {
        let authorities = self.folder.join(AUTHORITY);
        Tls::builder()
            .certificate(&files.certificate, &files.key)
            .authorities(authorities)
    }

    pub(crate) fn server(&self) -> TlsBuilder {
        self.with(&self.issue(Purpose::Server, "server", &["127.0.0.1", "localhost"]))
    }

    pub(crate) fn client(&self) -> TlsBuilder {
        self.with(&self.issue(Purpose::Client, "client", &[]))
    }

    pub(crate) fn revocations(&self) -> std::path::PathBuf {
        self.folder.join(REVOCATIONS)
    }
}

/// An ORB with TLS.
pub(crate) fn orb(tls: TlsBuilder) -> OrbBuilder {
    Orb::builder().secure_transport(tls.build().expect("right files").transport())
}

/// An ORB that serves over TLS.
pub(crate) fn serving(tls: TlsBuilder) -> OrbBuilder {
    serving_with(&tls.build().expect("right files"))
}

/// An ORB that serves over this TLS.
pub(crate) fn serving_with(tls: &Tls) -> OrbBuilder {
    let orb = Orb::builder().secure_transport(tls.transport());
    orb.listen("ssliop://127.0.0.1:0")
}

/// A client that trusts the authority and has no certificate.
pub(crate) fn nameless(pki: &Pki) -> TlsBuilder {
    Tls::builder()
        .authorities(pki.folder.join(AUTHORITY))
        .clients(ClientCertificates::None)
}
