//! Keys and certificates in a folder: an authority, the servers and clients that it certifies, and those that it revokes.
//!
//! The folder has `ca.pem` and `ca.key` of the authority, `crl.pem` with its list of revoked certificates, and `NAME.pem` with `NAME.key` of
//! each server and client. Only its owner can read the keys.

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SerialNumber,
};
use rustls::crypto::ring;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use time::{Duration, OffsetDateTime};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{CertificateRevocationList, FromDer as _, X509Certificate};

/// The file of the authority's certificate.
pub const AUTHORITY: &str = "ca.pem";
/// The file of the list of revoked certificates.
pub const REVOCATIONS: &str = "crl.pem";

const AUTHORITY_NAME: &str = "ca";

/// An authority in a folder.
#[derive(Debug)]
pub struct Authority {
    folder: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

/// What a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Purpose {
    /// A server, which may be a client too.
    Server,
    /// A client.
    Client,
}

/// The time of validity, in days from now: a negative one is in the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// The first day.
    pub from: i64,
    /// The last day.
    pub until: i64,
}

impl Validity {
    /// Makes the validity of that many days. It begins an hour ago, for clocks that are behind.
    pub const fn days(days: i64) -> Self {
        Self {
            from: 0,
            until: days,
        }
    }

    fn apply(self, params: &mut CertificateParams) {
        let now = OffsetDateTime::now_utc();
        params.not_before = now + Duration::days(self.from) - Duration::hours(1);
        params.not_after = now + Duration::days(self.until);
    }
}

/// The files of a certificate and of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedFiles {
    /// The certificate.
    pub certificate: PathBuf,
    /// The private key, which only its owner can read.
    pub key: PathBuf,
}

impl IssuedFiles {
    /// Writes both files. Neither may be there, so that no key is beside a certificate that it does not fit.
    fn write_new(&self, key: &str, certificate: &str) -> Result<(), KeysError> {
        if fs::symlink_metadata(&self.certificate).is_ok() {
            return Err(KeysError::Exists(self.certificate.clone()));
        }
        write_new(&self.key, key, SECRET)?;
        write_new(&self.certificate, certificate, PUBLIC)
    }
}

impl Authority {
    /// Makes an authority in a folder, which is made if it is missing.
    ///
    /// # Errors
    /// [`KeysError`]: an authority is there already, or the folder cannot be written.
    pub fn create(folder: &Path, name: &str, validity: Validity) -> Result<Self, KeysError> {
        fs::create_dir_all(folder).map_err(|error| in_file(folder, error))?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        validity.apply(&mut params);
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?;
        let files = files(folder, AUTHORITY_NAME);
        files.write_new(&key.serialize_pem(), &certificate.pem())?;
        let authority = Self {
            folder: folder.to_owned(),
            issuer: Issuer::new(params, key),
        };
        authority.write_revocations(Vec::new())?;
        Ok(authority)
    }

    /// Opens the authority of a folder.
    ///
    /// # Errors
    /// [`KeysError`]: there is none.
    pub fn open(folder: &Path) -> Result<Self, KeysError> {
        let files = files(folder, AUTHORITY_NAME);
        let missing = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => KeysError::NoAuthority(folder.to_owned()),
            _ => in_file(&files.key, error),
        };
        let key = fs::read_to_string(&files.key).map_err(missing)?;
        let certificate = fs::read_to_string(&files.certificate).map_err(missing)?;
        Ok(Self {
            folder: folder.to_owned(),
            issuer: Issuer::from_ca_cert_pem(&certificate, KeyPair::from_pem(&key)?)?,
        })
    }

    /// Makes a certificate with a key of its own. `name` is its common name and that of its files; a server is reached under `hosts`, which
    /// are names or addresses.
    ///
    /// # Errors
    /// [`KeysError`]: the files are there already, or cannot be written.
    pub fn issue(
        &self,
        purpose: Purpose,
        name: &str,
        hosts: &[String],
        validity: Validity,
    ) -> Result<IssuedFiles, KeysError> {
        let is_file_name =
            !name.is_empty() && !name.contains(['/', '\0']) && !name.starts_with('.');
        if !is_file_name || name == AUTHORITY_NAME || name == "crl" {
            return Err(KeysError::Name(name.to_owned()));
        }
        let mut params = CertificateParams::new(hosts.to_vec())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = match purpose {
            // A server calls other objects too.
            Purpose::Server => vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ],
            Purpose::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
        };
        validity.apply(&mut params);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let files = files(&self.folder, name);
        files.write_new(&key.serialize_pem(), &certificate.pem())?;
        Ok(files)
    }

    /// Adds a certificate to the list of revoked ones. Does nothing if it is there.
    ///
    /// # Errors
    /// [`KeysError`]: the certificate or the list cannot be read or written, or another authority has signed the certificate.
    pub fn revoke(&self, certificate: &Path) -> Result<(), KeysError> {
        let der = read_pem(certificate)?;
        let (_, parsed) = X509Certificate::from_der(&der).map_err(|_| not_readable(certificate))?;
        if !self.has_signed(&parsed) {
            return Err(KeysError::OtherAuthority {
                certificate: certificate.to_owned(),
                folder: self.folder.clone(),
            });
        }
        let serial = parsed.raw_serial().to_vec();
        let list = self.folder.join(REVOCATIONS);
        let _lock = self.lock()?;
        let text = fs::read(&list).map_err(|error| in_file(&list, error))?;
        let (behind, pem) = parse_x509_pem(&text).map_err(|_| not_readable(&list))?;
        if String::from_utf8_lossy(behind).contains("-----BEGIN") {
            return Err(KeysError::File {
                file: list,
                reason: "it has more than one list: leave only the newest of this authority in it"
                    .to_owned(),
            });
        }
        let (_, parsed) =
            CertificateRevocationList::from_der(&pem.contents).map_err(|_| not_readable(&list))?;
        let revoked = parsed.iter_revoked_certificates();
        let mut revoked: Vec<_> = revoked
            .map(|it| entry(it.raw_serial().to_vec(), it.revocation_date.to_datetime()))
            .collect();
        let serial = SerialNumber::from(serial);
        if revoked.iter().all(|it| it.serial_number != serial) {
            revoked.push(entry(serial.to_bytes(), OffsetDateTime::now_utc()));
        }
        self.write_revocations(revoked)
    }

    /// Keeps other processes from changing the list of revoked certificates until the file is dropped.
    fn lock(&self) -> Result<File, KeysError> {
        let key = files(&self.folder, AUTHORITY_NAME).key;
        // NFS locks only what is open for writing. A key may be read-only.
        let opened = OpenOptions::new().append(true).open(&key);
        let opened = opened.or_else(|_| File::open(&key));
        let locked = opened.and_then(|opened| opened.lock().map(|()| opened));
        locked.map_err(|error| in_file(&key, error))
    }

    fn has_signed(&self, certificate: &X509Certificate<'_>) -> bool {
        let key = self.issuer.key().public_key_raw();
        let (signed, signature) = (&certificate.tbs_certificate, &certificate.signature_value);
        let algorithms = ring::default_provider().signature_verification_algorithms;
        let mut algorithms = algorithms.all.iter();
        algorithms.any(|it| {
            it.verify_signature(key, signed.as_ref(), &signature.data)
                .is_ok()
        })
    }

    fn write_revocations(&self, revoked: Vec<RevokedCertParams>) -> Result<(), KeysError> {
        let now = OffsetDateTime::now_utc();
        let list = CertificateRevocationListParams {
            this_update: now - Duration::hours(1),
            next_update: now + Duration::days(3650),
            crl_number: SerialNumber::from(now.unix_timestamp().unsigned_abs()),
            issuing_distribution_point: None,
            revoked_certs: revoked,
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let text = list.signed_by(&self.issuer)?.pem()?;
        // A reader finds the old list or the new one.
        let place = self.folder.join(REVOCATIONS);
        let beside = self.folder.join("crl.pem.new");
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &place));
        written.map_err(|error| in_file(&place, error))
    }
}

fn entry(serial: Vec<u8>, at: OffsetDateTime) -> RevokedCertParams {
    RevokedCertParams {
        serial_number: SerialNumber::from(serial),
        revocation_time: at,
        reason_code: None,
        invalidity_date: None,
    }
}

fn files(folder: &Path, name: &str) -> IssuedFiles {
    IssuedFiles {
        certificate: folder.join(format!("{name}.pem")),
        key: folder.join(format!("{name}.key")),
    }
}

const SECRET: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// Writes a file that is not there yet.
fn write_new(file: &Path, text: &str, mode: u32) -> Result<(), KeysError> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create_new(true).mode(mode).open(file);
    let written = opened.and_then(|mut opened| opened.write_all(text.as_bytes()));
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => KeysError::Exists(file.to_owned()),
        _ => in_file(file, error),
    })
}

fn read_pem(file: &Path) -> Result<Vec<u8>, KeysError> {
    let text = fs::read(file).map_err(|error| in_file(file, error))?;
    let (_, pem) = parse_x509_pem(&text).map_err(|_| not_readable(file))?;
    Ok(pem.contents)
}

fn in_file(file: &Path, error: io::Error) -> KeysError {
    KeysError::File {
        file: file.to_owned(),
        reason: error.to_string(),
    }
}

fn not_readable(file: &Path) -> KeysError {
    KeysError::File {
        file: file.to_owned(),
        reason: "it is not such a file in PEM".to_owned(),
    }
}

/// An error of making keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeysError {
    /// A file cannot be read or written.
    #[error("{}: {reason}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file is there already.
    #[error("{} is there already: choose another name, or remove it first if nobody needs it", .0.display())]
    Exists(PathBuf),
    /// A folder has no authority.
    #[error("{} has no authority: make one with `rtorb keys ca {}`", .0.display(), .0.display())]
    NoAuthority(PathBuf),
    /// A certificate is to be revoked by an authority that has not signed it.
    #[error(
        "{} is not signed by the authority in {}: revoke it where the one is that has signed it",
        certificate.display(),
        folder.display()
    )]
    OtherAuthority {
        /// The certificate.
        certificate: PathBuf,
        /// The folder of the authority.
        folder: PathBuf,
    },
    /// A name is no name of a file.
    #[error(
        "{0:?} cannot be the name of a certificate: it names two files, so it has no `/`, does not begin with `.`, and is not ca or crl"
    )]
    Name(String),
    /// The certificate cannot be made.
    #[error("the certificate cannot be made: {0}")]
    Certificate(#[from] rcgen::Error),
}
