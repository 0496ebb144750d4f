//! Errors of TLS as causes of failed handshakes.

use crate::certificate::RefusedCertificate;
use rtorb::security::{HandshakeError, HandshakeFault};
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};
use x509_parser::time::ASN1Time;

/// Returns the cause of a failed handshake. `refused` is the certificate that was looked at last.
pub(crate) fn of_error(error: &Error, refused: Option<&RefusedCertificate>) -> HandshakeError {
    let fault = match error {
        Error::InvalidCertificate(reason) => of_certificate(reason, refused),
        Error::NoCertificatesPresented => HandshakeFault::Refused,
        error if is_refusal(error) => HandshakeFault::Refused,
        _ => HandshakeFault::Failed,
    };
    let about = match (error, refused) {
        (Error::InvalidCertificate(_), Some(refused)) => refused.description.clone(),
        _ => error.to_string(),
    };
    let detail = match error {
        Error::InvalidCertificate(reason) => format!("{about}: {}", words(reason, refused)),
        Error::NoCertificatesPresented => "the peer shows no certificate".to_owned(),
        _ => about,
    };
    HandshakeError { fault, detail }
}

/// Returns true for an alert by which a peer refuses the certificate of this side, or the lack of one.
pub(crate) fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::AlertReceived(
            AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied
                | AlertDescription::CertificateRequired
                // Another authority of the same name has signed the certificate.
                | AlertDescription::DecryptError
                | AlertDescription::NoCertificate
        )
    )
}

fn of_certificate(
    reason: &CertificateError,
    refused: Option<&RefusedCertificate>,
) -> HandshakeFault {
    match reason {
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => HandshakeFault::OtherTime,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            HandshakeFault::OtherName
        }
        CertificateError::Revoked => HandshakeFault::Revoked,
        CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => HandshakeFault::OldRevocations,
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            HandshakeFault::Untrusted
        }
        _ if refused.is_some_and(|refused| refused.is_self_signed) => HandshakeFault::Untrusted,
        _ => HandshakeFault::Unusable,
    }
}

/// Returns what is wrong with a certificate.
fn words(reason: &CertificateError, refused: Option<&RefusedCertificate>) -> String {
    match reason {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "it has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, .. } => {
            format!("it is not for {}", expected.to_str())
        }
        CertificateError::Revoked => "it is revoked".to_owned(),
        CertificateError::ExpiredRevocationListContext { next_update, .. } => {
            let file = refused.and_then(|refused| refused.revocations.as_ref());
            let file = file.map_or(String::new(), |file| format!(" in {}", file.display()));
            let due = date(*next_update);
            format!(
                "the list of revoked certificates of its authority{file} is out of date: the next one was due on {due} (nextUpdate)"
            )
        }
        CertificateError::UnknownIssuer => "no trusted authority has signed it".to_owned(),
        CertificateError::BadSignature => {
            "the trusted authority of that name has not signed it".to_owned()
        }
        other => other.to_string(),
    }
}

fn date(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    ASN1Time::from_timestamp(seconds).map_or_else(
        |_| format!("second {seconds} after 1970"),
        |time| time.to_string(),
    )
}
