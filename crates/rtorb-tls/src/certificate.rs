//! What certificates say, for people and access rules.

use rtorb::security::PeerIdentity;
use rustls::pki_types::CertificateDer;
use std::net::IpAddr;
use std::path::PathBuf;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Returns the names in a certificate; `None` if it cannot be read.
pub(crate) fn identity(certificate: &CertificateDer<'_>) -> Option<PeerIdentity> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(names(&certificate))
}

fn names(certificate: &X509Certificate<'_>) -> PeerIdentity {
    let mut common_names = certificate.subject().iter_common_name();
    let common_name = common_names.next().and_then(|name| name.as_str().ok());
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let alternative = alternative.iter().flat_map(|it| &it.value.general_names);
    let alternative = alternative.filter_map(|name| match name {
        GeneralName::DNSName(name) | GeneralName::URI(name) | GeneralName::RFC822Name(name) => {
            Some((*name).to_owned())
        }
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
        _ => None,
    });
    PeerIdentity::new(
        common_name.unwrap_or_default().to_owned(),
        alternative.collect(),
    )
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

/// A certificate that was refused, for a message.
#[derive(Clone, Debug)]
pub(crate) struct RefusedCertificate {
    /// Its names, its authority and the time of its validity.
    pub(crate) description: String,
    /// True if it names itself as its authority.
    pub(crate) is_self_signed: bool,
    /// The file of the lists of revoked certificates by which it was refused.
    pub(crate) revocations: Option<PathBuf>,
}

impl RefusedCertificate {
    pub(crate) fn of(der: &CertificateDer<'_>, revocations: Option<PathBuf>) -> Self {
        let Ok((_, certificate)) = X509Certificate::from_der(der) else {
            return Self {
                description: "a certificate that cannot be read".to_owned(),
                is_self_signed: false,
                revocations,
            };
        };
        let is_self_signed = certificate.subject() == certificate.issuer();
        let mut issuers = certificate.issuer().iter_common_name();
        let issuer = issuers.next().and_then(|name| name.as_str().ok());
        let authority = if is_self_signed {
            "signed by itself".to_owned()
        } else {
            format!(
                "signed by {}",
                issuer.unwrap_or("an authority without a name")
            )
        };
        let validity = certificate.validity();
        Self {
            description: format!(
                "the certificate of {}, {authority}, valid from {} to {}",
                names(&certificate),
                validity.not_before,
                validity.not_after
            ),
            is_self_signed,
            revocations,
        }
    }
}
