//! Right results of calls over TLS, with all strategies of both sides.

use crate::pki::{Pki, orb, serving};
use rtorb::{ConnectionStrategy, DispatchStrategy, Orb, OrbBuilder, WaitStrategy};
use rtorb_tests::ours::{Ours, check_cubit, check_sequences};
use rtorb_tests::stubs::Cubit;
use std::thread;

pub(crate) fn cubit(client: OrbBuilder, reference: &str) -> Cubit {
    let orb = client.build().expect("an ORB");
    Cubit::unchecked_narrow(orb.string_to_object(reference).expect("a reference"))
}

#[test]
fn calls_over_tls_are_right_with_every_dispatch_strategy() {
    let pki = Pki::new();
    let (server, client) = (pki.server(), pki.client());
    for (_, dispatch) in DispatchStrategy::ALL {
        println!("{dispatch}");
        let ours = Ours::serve_as(serving(server.clone()).dispatch(dispatch));
        let reference = ours.text(ours.cubit.as_object());
        // Larger than many records, and than the socket takes at once.
        check_cubit(
            &cubit(orb(client.clone()), &reference),
            &[0, 1, 20_000, 1_000_000],
        );
    }
}

#[test]
fn calls_over_tls_are_right_with_every_connection_and_wait_strategy() {
    let pki = Pki::new();
    let client = pki.client();
    let ours = Ours::serve_as(serving(pki.server()).dispatch(DispatchStrategy::WorkerPool));
    let reference = ours.text(ours.cubit.as_object());
    for (_, connection) in ConnectionStrategy::ALL {
        for (_, how) in WaitStrategy::ALL {
            let Some(connection) = connection.with_wait(how) else {
                continue;
            };
            println!("{connection} and {how}");
            let cubit = cubit(orb(client.clone()).connection(connection), &reference);
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| check_sequences(&cubit, &[0, 1, 1021, 100_000]));
                }
            });
        }
    }
}

#[test]
fn an_object_is_called_by_a_corbaloc_of_tls() {
    let pki = Pki::new();
    let ours = Ours::serve_as(serving(pki.server()));
    let text = ours.text(ours.cubit.as_object());
    let ior = rtorb::ior::Ior::parse(&text).expect("a reference");
    let profile = ior.iiop_profiles().next().expect("one profile");
    assert_eq!(profile.port, 0, "there is no plain port");
    let port = crate::references::secure_port(&text);
    let key = ours.key(ours.cubit.as_object());
    let location = rtorb::url::Corbaloc {
        addresses: vec![rtorb::url::CorbalocAddress::Ssliop {
            version: rtorb::giop::Version::V1_2,
            host: "localhost".to_owned(),
            port,
        }],
        object_key: key,
    };
    check_cubit(&cubit(orb(pki.client()), &location.to_string()), &[10]);
}

#[test]
fn a_server_offers_plain_and_secure_ports_beside_each_other() {
    let pki = Pki::new();
    let ours = Ours::serve_as(serving(pki.server()).listen("iiop://127.0.0.1:0"));
    let reference = ours.text(ours.cubit.as_object());
    check_cubit(&cubit(Orb::builder(), &reference), &[10]);
    check_cubit(&cubit(orb(pki.client()), &reference), &[10]);
}
