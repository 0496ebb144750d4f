//! What references say about TLS, and what plain and secure ends say when they meet.

use crate::calls::cubit;
use crate::pki::{Pki, orb, serving};
use rtorb::exception::local;
use rtorb::ior::{Component, Ior, association};
use rtorb::security::ClientCertificates;
use rtorb::{ExceptionKind, Orb, Warning};
use rtorb_tests::ours::Ours;
use rtorb_tests::running::until;
use std::sync::{Arc, Mutex};

fn component(reference: &str) -> rtorb::ior::SslSecTrans {
    let ior = Ior::parse(reference).expect("a reference");
    let profile = ior.iiop_profiles().next().expect("an IIOP profile");
    let mut components = profile.components.iter();
    let found = components.find_map(|component| match Component::from_tagged(component) {
        Ok(Component::SslSecTrans(ssl)) => Some(ssl),
        _ => None,
    });
    found.expect("TAG_SSL_SEC_TRANS")
}

pub(crate) fn secure_port(reference: &str) -> u16 {
    component(reference).port
}

#[test]
fn a_reference_says_what_the_server_requires() {
    let pki = Pki::new();
    let server = pki.server();
    for (clients, plain, requires) in [
        (
            ClientCertificates::Required,
            false,
            association::INTEGRITY
                | association::CONFIDENTIALITY
                | association::ESTABLISH_TRUST_IN_CLIENT,
        ),
        (
            ClientCertificates::None,
            false,
            association::INTEGRITY | association::CONFIDENTIALITY,
        ),
        (ClientCertificates::None, true, association::NO_PROTECTION),
    ] {
        let mut builder = serving(server.clone().clients(clients));
        if plain {
            builder = builder.listen("iiop://127.0.0.1:0");
        }
        let ours = Ours::serve_as(builder);
        let ssl = component(&ours.text(ours.cubit.as_object()));
        assert_eq!(ssl.requires, requires, "{clients:?}");
        assert_ne!(ssl.port, 0);
        let both = association::CONFIDENTIALITY | association::ESTABLISH_TRUST_IN_TARGET;
        assert_eq!(ssl.supports & both, both);
    }
}

#[test]
fn a_client_without_tls_is_told_that_it_needs_it() {
    let pki = Pki::new();
    let ours = Ours::serve_as(serving(pki.server()));
    let plain = cubit(Orb::builder(), &ours.text(ours.cubit.as_object()));
    let exception = plain.cube_long(3).expect_err("it has no TLS");
    assert_eq!(exception.kind, ExceptionKind::NoPermission);
    assert_eq!(exception.minor, local::NEEDS_TLS.minor);
    assert!(exception.to_string().contains("-ORBTlsCa"), "{exception}");
}

#[test]
fn a_client_with_tls_uses_no_plain_profile_of_a_reference_that_offers_tls() {
    let pki = Pki::new();
    let plain = Ours::serve_as(Orb::builder().listen("iiop://127.0.0.1:0"));
    let secure = Ours::serve_as(serving(pki.server()));
    let ior_of = |ours: &Ours| {
        let text = ours.text(ours.cubit.as_object());
        Ior::parse(&text).expect("a reference")
    };
    let (mut plain_first, mut secure_first) = (ior_of(&plain), ior_of(&secure));
    let plain_profiles = plain_first.profiles.clone();
    plain_first.profiles.extend(secure_first.profiles.clone());
    secure_first.profiles.extend(plain_profiles);
    drop(secure);
    let client = pki.client();
    for ior in [plain_first, secure_first] {
        let text = ior.to_string();
        let secured = cubit(orb(client.clone()), &text).cube_long(3);
        secured.expect_err("the server with TLS is gone");
        assert_eq!(cubit(Orb::builder(), &text).cube_long(3), Ok(27));
    }
}

#[test]
fn a_plain_client_at_a_port_of_tls_and_tls_at_a_plain_port_say_what_they_met() {
    let pki = Pki::new();
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&warnings);
    let server = serving(pki.server()).listen("iiop://127.0.0.1:0");
    let ours = Ours::serve_as(server.on_warning(move |warning| {
        if let Warning::Refused(text) = warning {
            noted.lock().expect("no panic").push(text.clone());
        }
    }));
    let text = ours.text(ours.cubit.as_object());
    let ior = Ior::parse(&text).expect("a reference");
    let plain = ior.iiop_profiles().next().expect("an IIOP profile").port;
    let secure = secure_port(&text);

    let wrong = cubit(
        Orb::builder(),
        &format!("corbaloc:iiop:1.2@127.0.0.1:{secure}/x"),
    );
    let exception = wrong.cube_long(3).expect_err("it is a port of TLS");
    assert!(exception.to_string().contains("TLS"), "{exception}");
    until("the server reports it", || {
        let warnings = warnings.lock().expect("no panic");
        let met = |text: &String| text.contains("speaks GIOP without TLS");
        warnings.iter().any(met).then_some(())
    });

    let wrong = cubit(
        orb(pki.client()),
        &format!("corbaloc:ssliop:127.0.0.1:{plain}/x"),
    );
    let exception = wrong.cube_long(3).expect_err("it is a plain port");
    assert_eq!(exception.minor, local::PEER_IS_PLAIN.minor, "{exception}");
    assert!(
        exception.to_string().contains("GIOP without TLS"),
        "{exception}"
    );
}

#[test]
fn an_endpoint_of_tls_needs_tls_and_a_certificate() {
    let plain = Orb::builder().listen("ssliop://127.0.0.1:0");
    let orb_without = plain.build().expect("it opens nothing");
    let exception = orb_without.root_poa().expect_err("it has no TLS");
    assert_eq!(exception.minor, local::NO_TLS.minor, "{exception}");
    let pki = Pki::new();
    let nameless = orb(crate::pki::nameless(&pki)).listen("ssliop://127.0.0.1:0");
    let orb_without = nameless.build().expect("it opens nothing");
    let exception = orb_without.root_poa().expect_err("it has no certificate");
    assert_eq!(
        exception.minor,
        local::NO_SERVER_CERTIFICATE.minor,
        "{exception}"
    );
}
