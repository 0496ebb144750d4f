//! What references say about TLS, and what plain and secure ends say when they meet.

use crate::calls::cubit;
use crate::pki::{Pki, orb, serving};
use rtorb::exception::local;
use rtorb::ior::{
    AttributeLayer, AuthenticationLayer, Component, CompoundSecMech, CsiSecMechList, Ior,
    ListenPoint, TaggedComponent, TlsSecTrans, association, component_tag,
};
use rtorb::security::ClientCertificates;
use rtorb::{ExceptionKind, Orb, OrbBuilder, Warning};
use rtorb_tests::loopback::NOBODYS_PORT;
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

/// Returns a security mechanism of CSIv2 with these addresses over TLS, which requires authentication in requests if `asks` is true.
fn mechanism(ports: &[u16], asks: bool) -> CompoundSecMech {
    let address = |port: &u16| ListenPoint {
        host: "127.0.0.1".to_owned(),
        port: *port,
    };
    let tls = Component::TlsSecTrans(TlsSecTrans {
        supports: association::INTEGRITY | association::CONFIDENTIALITY,
        requires: association::INTEGRITY | association::CONFIDENTIALITY,
        addresses: ports.iter().map(address).collect(),
    });
    let authentication = AuthenticationLayer {
        supports: association::ESTABLISH_TRUST_IN_CLIENT,
        requires: u16::from(asks) * association::ESTABLISH_TRUST_IN_CLIENT,
        mechanism: vec![6, 6, 0x67, 0x81, 2, 1, 1, 1],
        target: Vec::new(),
    };
    CompoundSecMech {
        requires: association::INTEGRITY | association::CONFIDENTIALITY,
        transport: tls.to_tagged().expect("it is short"),
        authentication,
        attributes: AttributeLayer {
            supports: 0,
            requires: 0,
            authorities: Vec::new(),
            naming_mechanisms: vec![vec![6, 6, 0x67, 0x81, 2, 1, 1, 1]],
            identity_types: 1,
        },
    }
}

/// As references of application servers in Java.
#[test]
fn the_addresses_of_the_security_mechanisms_of_csiv2_are_called() {
    let pki = Pki::new();
    let server = serving(pki.server()).listen("iiop://127.0.0.1:0");
    let ours = Ours::serve_as(server);
    let ior = Ior::parse(&ours.text(ours.cubit.as_object())).expect("a reference");
    let mut profile = ior.iiop_profiles().next().expect("an IIOP profile");
    let port = secure_port(&ior.to_string());
    let is_other = |it: &TaggedComponent| it.tag != component_tag::SSL_SEC_TRANS;
    profile.components.retain(is_other);
    let client = pki.client();
    let call = |mechanisms: Vec<CompoundSecMech>, client: OrbBuilder| {
        let list = Component::CsiSecMechList(CsiSecMechList {
            stateful: false,
            mechanisms,
        });
        let mut profile = profile.clone();
        let list = list.to_tagged().expect("it is short");
        profile.components.push(list);
        let profiles = vec![profile.to_tagged().expect("it is short")];
        let ior = Ior {
            type_id: ior.type_id.clone(),
            profiles,
        };
        cubit(client, &ior.to_string()).cube_long(3)
    };
    let secured = || orb(client.clone()).require_tls();
    // Nobody listens at the first address.
    let addresses = vec![mechanism(&[NOBODYS_PORT, port], false)];
    assert_eq!(call(addresses.clone(), secured()), Ok(27));
    let plain = call(addresses, Orb::builder()).expect_err("it requires TLS");
    assert_eq!(plain.minor, local::NEEDS_TLS.minor, "{plain}");
    // The first mechanism wants a password, which this ORB does not send.
    let password = vec![mechanism(&[NOBODYS_PORT], true), mechanism(&[port], false)];
    assert_eq!(call(password, secured()), Ok(27));
    let unused = vec![mechanism(&[0], false), mechanism(&[0, port], false)];
    assert_eq!(call(unused, secured()), Ok(27));
    // Each mechanism protects what is sent, so nothing is sent in plain text if none is left.
    for mechanisms in [vec![mechanism(&[port], true)], vec![mechanism(&[0], false)]] {
        for caller in [secured(), orb(client.clone()), Orb::builder()] {
            let refused = call(mechanisms.clone(), caller).expect_err("no mechanism is left");
            assert_eq!(refused.kind, ExceptionKind::ImpLimit, "{refused}");
            assert!(refused.to_string().contains("protected"), "{refused}");
        }
    }
    let mut unprotected = mechanism(&[port], true);
    unprotected.requires = association::NO_PROTECTION;
    let free = call(vec![unprotected.clone()], orb(client.clone()));
    assert_eq!(free, Ok(27), "plain text is allowed");
    let refused = call(vec![unprotected], secured()).expect_err("this client wants TLS");
    assert_eq!(refused.minor, local::PLAIN_REFUSED.minor, "{refused}");
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
