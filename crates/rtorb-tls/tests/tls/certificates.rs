//! Certificates that are refused: the exception of the call says which, about whom, and what to do; the server reports them too.

use crate::calls::cubit;
use crate::pki::{Pki, nameless, orb, serving};
use rcgen::{
    CertificateRevocationListParams, Issuer, KeyIdMethod, KeyPair, SerialNumber, date_time_ymd,
};
use rtorb::exception::local;
use rtorb::security::ClientCertificates;
use rtorb::{CompletionStatus, ExceptionKind, OrbBuilder, SystemException, Warning};
use rtorb_tests::ours::Ours;
use rtorb_tests::running::until;
use rtorb_tls::keys::{IssuedFiles, Purpose, Validity};
use rtorb_tls::{Tls, TlsBuilder};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

const EXPIRED: Validity = Validity {
    from: -3,
    until: -1,
};

/// Calls a server with these certificates. Returns the exception.
fn refused(server: TlsBuilder, client: TlsBuilder) -> SystemException {
    let ours = Ours::serve_as(serving(server));
    let cubit = cubit(orb(client), &ours.text(ours.cubit.as_object()));
    cubit.cube_long(3).expect_err("the certificate is refused")
}

#[track_caller]
fn check(exception: &SystemException, expected: &SystemException, words: &[&str]) {
    assert_eq!(exception.kind, ExceptionKind::NoPermission, "{exception}");
    assert_eq!(exception.minor, expected.minor, "{exception}");
    assert_eq!(exception.completed, CompletionStatus::No);
    for word in words {
        assert!(exception.to_string().contains(word), "{word}: {exception}");
    }
}

#[test]
fn an_expired_certificate_of_a_server_is_named() {
    let pki = Pki::new();
    let files = pki.issue_for(Purpose::Server, "old", &["127.0.0.1"], EXPIRED);
    let exception = refused(pki.with(&files), pki.client());
    let words = ["certificate of old", "it has expired", "rtorb keys server"];
    check(&exception, &local::CERTIFICATE_EXPIRED, &words);
}

#[test]
fn a_certificate_for_another_name_is_named() {
    let pki = Pki::new();
    let files = pki.issue(Purpose::Server, "elsewhere", &["other.example"]);
    let exception = refused(pki.with(&files), pki.client());
    let words = ["other.example", "it is not for 127.0.0.1"];
    check(&exception, &local::CERTIFICATE_OF_OTHER_NAME, &words);
}

/// Returns a server with a certificate that is to be revoked, and its files.
fn with_lost_certificate(pki: &Pki) -> (Ours, IssuedFiles) {
    let files = pki.issue(Purpose::Server, "lost", &["127.0.0.1"]);
    (Ours::serve_as(serving(pki.with(&files))), files)
}

/// Returns the TLS of a client that knows which certificates are revoked.
fn client_with_revocations(pki: &Pki) -> Tls {
    let tls = pki.client().revocations(pki.revocations()).build();
    tls.expect("right files")
}

#[test]
fn a_revoked_certificate_of_a_server_is_named_after_a_reload() {
    let pki = Pki::new();
    let (ours, files) = with_lost_certificate(&pki);
    let tls = client_with_revocations(&pki);
    let reference = ours.text(ours.cubit.as_object());
    let client = || rtorb::Orb::builder().secure_transport(tls.transport());
    assert_eq!(cubit(client(), &reference).cube_long(3), Ok(27));
    pki.authority
        .revoke(&files.certificate)
        .expect("it is there");
    tls.reload().expect("right files");
    let exception = cubit(client(), &reference).cube_long(3);
    let exception = exception.expect_err("it is revoked");
    let words = ["certificate of lost", "revoked"];
    check(&exception, &local::CERTIFICATE_REVOKED, &words);
}

#[test]
fn a_client_reads_its_files_again_when_they_have_changed() {
    let pki = Pki::new();
    let (ours, files) = with_lost_certificate(&pki);
    let tls = client_with_revocations(&pki);
    let reference = ours.text(ours.cubit.as_object());
    let reports = Arc::new(Mutex::new(Vec::new()));
    let call = || {
        let noted = Arc::clone(&reports);
        let client = rtorb::Orb::builder().secure_transport(tls.transport());
        let client = client.on_warning(move |warning| {
            noted.lock().expect("no panic").push(warning.to_string());
        });
        cubit(client, &reference).cube_long(3)
    };
    let list = fs::read(pki.revocations()).expect("it is there");
    fs::write(pki.revocations(), "rubbish").expect("it can be written");
    let report = until("the client reports the file", || {
        assert_eq!(call(), Ok(27), "the earlier list counts");
        reports.lock().expect("no panic").pop()
    });
    assert!(report.contains("crl.pem"), "{report}");
    fs::write(pki.revocations(), list).expect("it can be written");
    let revoked = pki.authority.revoke(&files.certificate);
    revoked.expect("it is there");
    let exception = until("the client refuses the server", || call().err());
    check(&exception, &local::CERTIFICATE_REVOKED, &["lost"]);
}

#[test]
fn a_certificate_of_an_unknown_authority_is_named() {
    let (pki, other) = (Pki::new(), Pki::new());
    let exception = refused(other.server(), nameless(&pki));
    let words = [
        "certificate of server",
        "signed by test authority",
        "-ORBTlsCa",
    ];
    check(&exception, &local::CERTIFICATE_UNTRUSTED, &words);
}

#[test]
fn a_certificate_that_is_signed_by_itself_is_named() {
    let (pki, other) = (Pki::new(), Pki::new());
    let own = other.folder.join("ca");
    let files = IssuedFiles {
        certificate: own.with_extension("pem"),
        key: own.with_extension("key"),
    };
    let exception = refused(other.with(&files), nameless(&pki));
    let words = ["signed by itself", "-ORBTlsCa"];
    check(&exception, &local::CERTIFICATE_UNTRUSTED, &words);
}

/// Has a server refuse this client. Returns the exception, and what the server reports.
fn refused_client(server: TlsBuilder, client: TlsBuilder) -> (SystemException, String) {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&reports);
    let builder: OrbBuilder = serving(server).on_warning(move |warning| {
        if let Warning::Refused(text) = warning {
            noted.lock().expect("no panic").push(text.clone());
        }
    });
    let ours = Ours::serve_as(builder);
    let cubit = cubit(orb(client), &ours.text(ours.cubit.as_object()));
    let exception = cubit.cube_long(3).expect_err("the client is refused");
    let report = until("the server reports it", || {
        reports.lock().expect("no panic").first().cloned()
    });
    (exception, report)
}

#[test]
fn a_refused_client_learns_it_and_the_server_reports_why() {
    let pki = Pki::new();
    let other = Pki::new();
    let server = pki.server().revocations(pki.revocations());
    let old = pki.issue_for(Purpose::Client, "old", &[], EXPIRED);
    let lost = pki.issue(Purpose::Client, "lost", &[]);
    pki.authority
        .revoke(&lost.certificate)
        .expect("it is there");
    let strange = other.issue(Purpose::Client, "stranger", &[]);
    let authorities = pki.folder.join("ca.pem");
    for (client, words) in [
        (pki.with(&old), ["certificate of old", "it has expired"]),
        (pki.with(&lost), ["certificate of lost", "it is revoked"]),
        (
            other.with(&strange).authorities(authorities),
            ["certificate of stranger", "has not signed it"],
        ),
        (
            nameless(&pki),
            ["client at 127.0.0.1", "shows no certificate"],
        ),
    ] {
        let (exception, report) = refused_client(server.clone(), client);
        check(&exception, &local::OWN_CERTIFICATE_REFUSED, &[]);
        for word in words {
            assert!(report.contains(word), "{report}");
        }
    }
}

/// As after `cat new.pem >> lists.pem`.
#[test]
fn a_list_that_is_appended_revokes() {
    let pki = Pki::new();
    let lost = pki.issue(Purpose::Client, "lost", &[]);
    let mut text = fs::read(pki.revocations()).expect("it is there");
    pki.authority
        .revoke(&lost.certificate)
        .expect("it is there");
    text.extend(fs::read(pki.revocations()).expect("it is there"));
    let lists = pki.folder.join("lists.pem");
    fs::write(&lists, text).expect("the folder can be written");
    let server = pki.server().revocations(lists);
    let (exception, report) = refused_client(server, pki.with(&lost));
    check(&exception, &local::OWN_CERTIFICATE_REFUSED, &[]);
    assert!(report.contains("it is revoked"), "{report}");
}

/// Writes a list of the authority of which the next one was due in 2021. Returns its file.
fn old_list(pki: &Pki) -> PathBuf {
    let read = |name| fs::read_to_string(pki.folder.join(name)).expect("it is there");
    let key = KeyPair::from_pem(&read("ca.key")).expect("a key");
    let issuer = Issuer::from_ca_cert_pem(&read("ca.pem"), key).expect("an authority");
    let list = CertificateRevocationListParams {
        this_update: date_time_ymd(2020, 1, 1),
        next_update: date_time_ymd(2021, 2, 3),
        crl_number: SerialNumber::from(1_u64),
        issuing_distribution_point: None,
        revoked_certs: Vec::new(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let text = list.signed_by(&issuer).and_then(|list| list.pem());
    let file = pki.folder.join("old.pem");
    fs::write(&file, text.expect("a list")).expect("the folder can be written");
    file
}

#[test]
fn a_list_of_which_the_next_one_is_due_is_named() {
    let pki = Pki::new();
    let lists = old_list(&pki);
    let (server, client) = (pki.server(), pki.client());
    let file = lists.display().to_string();
    let words = ["of server", &file, "Feb  3", "2021", "-ORBTlsExpiredCrl"];
    let exception = refused(server.clone(), client.clone().revocations(&lists));
    check(&exception, &local::REVOCATIONS_EXPIRED, &words);
    let (exception, report) = refused_client(server.clone().revocations(&lists), client.clone());
    check(&exception, &local::OWN_CERTIFICATE_REFUSED, &[]);
    for word in ["certificate of client", &file, "2021"] {
        assert!(report.contains(word), "{word}: {report}");
    }
}

#[test]
fn a_list_of_which_the_next_one_is_due_counts_if_that_is_chosen() {
    let pki = Pki::new();
    let lists = old_list(&pki);
    let accepting = |tls: TlsBuilder| tls.revocations(&lists).accept_expired_revocations();
    let ours = Ours::serve_as(serving(accepting(pki.server())));
    let client = orb(accepting(pki.client()));
    let cubit = cubit(client, &ours.text(ours.cubit.as_object()));
    assert_eq!(cubit.cube_long(3), Ok(27));
}

/// The list of another authority does not keep a client from this one.
#[test]
fn an_old_list_of_another_authority_refuses_nobody() {
    let (pki, other) = (Pki::new(), Pki::of("another authority"));
    let ours = Ours::serve_as(serving(pki.server().revocations(old_list(&other))));
    let client = orb(pki.client().revocations(old_list(&other)));
    let cubit = cubit(client, &ours.text(ours.cubit.as_object()));
    assert_eq!(cubit.cube_long(3), Ok(27));
}

#[test]
fn a_server_may_do_without_certificates_of_clients() {
    let pki = Pki::new();
    for clients in [ClientCertificates::Optional, ClientCertificates::None] {
        let ours = Ours::serve_as(serving(pki_server(&pki, clients)));
        let cubit = cubit(orb(nameless(&pki)), &ours.text(ours.cubit.as_object()));
        assert_eq!(cubit.cube_long(3), Ok(27), "{clients:?}");
    }
}

fn pki_server(pki: &Pki, clients: ClientCertificates) -> TlsBuilder {
    let name = format!("{clients:?}");
    let files = pki.issue(Purpose::Server, &name, &["127.0.0.1"]);
    pki.with(&files).clients(clients)
}
