//! The folder of an authority: no key beside a certificate that it does not fit, and no revocation of what another has signed.

use crate::pki::Pki;
use rtorb_tls::keys::{AUTHORITY, Authority, KeysError, Purpose, Validity};
use std::fs;
use std::sync::Barrier;
use std::thread;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{CertificateRevocationList, FromDer as _};

#[test]
fn no_key_is_written_beside_the_certificate_of_a_removed_one() {
    let pki = Pki::new();
    let key = pki.folder.join("ca.key");
    fs::remove_file(&key).expect("it is there");
    let made = Authority::create(&pki.folder, "another", Validity::days(1));
    let exists = KeysError::Exists(pki.folder.join(AUTHORITY));
    assert_eq!(made.expect_err("a certificate is there"), exists);
    assert!(!key.exists());

    let files = pki.issue(Purpose::Client, "crane", &[]);
    fs::remove_file(&files.key).expect("it is there");
    let issued = pki
        .authority
        .issue(Purpose::Client, "crane", &[], Validity::days(1));
    let exists = KeysError::Exists(files.certificate);
    assert_eq!(issued.expect_err("a certificate is there"), exists);
    assert!(!files.key.exists());
}

#[test]
fn an_authority_revokes_only_what_it_has_signed() {
    let (pki, other) = (Pki::new(), Pki::new());
    let list = fs::read(pki.revocations()).expect("it is there");
    // The authorities have the same name.
    let files = other.issue(Purpose::Client, "stranger", &[]);
    let refused = pki.authority.revoke(&files.certificate);
    let text = refused.expect_err("another has signed it").to_string();
    assert!(text.contains("stranger.pem"), "{text}");
    assert_eq!(fs::read(pki.revocations()).expect("it is there"), list);
    let files = pki.issue(Purpose::Client, "own", &[]);
    pki.authority
        .revoke(&files.certificate)
        .expect("it has signed it");
}

#[test]
fn revocations_at_once_are_all_in_the_list() {
    const COUNT: usize = 16;
    let pki = Pki::new();
    let issued = (0..COUNT).map(|number| pki.issue(Purpose::Client, &format!("{number}"), &[]));
    let issued: Vec<_> = issued.collect();
    let (folder, all_there) = (&*pki.folder, &Barrier::new(COUNT));
    thread::scope(|scope| {
        for files in &issued {
            scope.spawn(move || {
                let authority = Authority::open(folder).expect("it is there");
                all_there.wait();
                let revoked = authority.revoke(&files.certificate);
                revoked.expect("it has signed it");
            });
        }
    });
    let text = fs::read(pki.revocations()).expect("it is there");
    let (_, pem) = parse_x509_pem(&text).expect("it is PEM");
    let (_, list) = CertificateRevocationList::from_der(&pem.contents).expect("a list");
    assert_eq!(list.iter_revoked_certificates().count(), COUNT);
}

#[test]
fn a_revocation_overwrites_no_list_that_was_appended() {
    let pki = Pki::new();
    let files = pki.issue(Purpose::Client, "lost", &[]);
    let mut both = fs::read(pki.revocations()).expect("it is there");
    both.extend(both.clone());
    fs::write(pki.revocations(), &both).expect("the folder can be written");
    let refused = pki.authority.revoke(&files.certificate);
    let text = refused.expect_err("there are two lists").to_string();
    assert!(text.contains("more than one list"), "{text}");
    assert_eq!(fs::read(pki.revocations()).expect("it is there"), both);
}
