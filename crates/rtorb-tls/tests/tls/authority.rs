//! The folder of an authority: no key beside a certificate that it does not fit, and no revocation of what another has signed.

use crate::pki::Pki;
use rtorb_tls::keys::{AUTHORITY, Authority, KeysError, Purpose, Validity};
use std::fs;

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
