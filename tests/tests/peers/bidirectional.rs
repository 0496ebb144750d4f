//! Callbacks over the client's own connection, between rtorb and other ORBs: nobody can connect to the client's address, because nobody
//! listens there, or because it is behind NAT.

use std::sync::atomic::Ordering;

use rtorb::{DispatchStrategy, Orb, OrbBuilder};
use rtorb_tests::faulty_link::{CLIENT, Link, SERVER};
use rtorb_tests::ours::Ours;
use rtorb_tests::peers::jacorb::jacorb;
use rtorb_tests::peers::omniorb::{Endpoint, omniorb};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::skip;
use rtorb_tests::stubs::exchange::{Desk, Party};

fn both_ways() -> OrbBuilder {
    Orb::builder()
        .dispatch(DispatchStrategy::WorkerPool)
        .bidirectional()
}

/// An endpoint whose address in references nobody listens at.
const HIDDEN: &str = "iiop://127.0.0.1:0/publish=127.0.0.9:9";

/// Has a server call a client of ours that listens at `endpoint`.
fn check_called_back(reference: &str, endpoint: &str) {
    let client = Ours::serve_as(both_ways().listen(endpoint));
    let object = client.orb.string_to_object(reference).expect("a reference");
    let desk = Desk::narrow(&object).expect("it is a Desk");
    for _ in 0..3 {
        assert_eq!(desk.level_of(Some(&Party::from(&client.desk))), Ok(1));
    }
    let text = "caf\u{e9} ".repeat(10_000);
    assert!(desk.echo_string(&text) == Ok(text), "it comes back whole");
}

/// A server on a host of its own, which NAT separates from the calling thread's; `None` if this process may not make such hosts.
fn behind_nat<T: Send>(serve: impl FnOnce() -> T + Send) -> Option<(Link, T)> {
    match Link::to_server(1, serve) {
        Ok((link, server)) => {
            link.faults.translates.store(true, Ordering::Relaxed);
            Some((link, server))
        }
        Err(refused) => {
            skip(&format!("no network namespaces or tunnels here: {refused}"));
            None
        }
    }
}

/// A server of ours behind NAT, and its Desk.
fn ours_behind_nat() -> Option<(Link, Ours, String)> {
    let endpoint = format!("iiop://{SERVER}:2809");
    let (link, server) = behind_nat(|| Ours::serve_as(both_ways().listen(&endpoint)))?;
    let desk = server.text(server.desk.as_object());
    Some((link, server, desk))
}

#[test]
fn we_call_a_client_of_ours_behind_nat() {
    let Some((_link, server, desk)) = ours_behind_nat() else {
        return;
    };
    check_called_back(&desk, &format!("iiop://{CLIENT}:0"));
    assert_eq!(server.orb.connection_counts().accepted, 1);
    // It is the only way.
    let plain = Ours::serve_as(Orb::builder().listen(&format!("iiop://{CLIENT}:0")));
    let object = plain.orb.string_to_object(&desk).expect("a reference");
    let refused = Desk::unchecked_narrow(object).level_of(Some(&Party::from(&plain.desk)));
    refused.expect_err("nobody can connect to it");
}

#[test]
fn jacorb_calls_a_client_of_ours() {
    let Some(jacorb) = jacorb() else { return };
    let scratch = Scratch::new();
    let (_desks, reference) = jacorb.serve_both_ways("DeskServer", "127.0.0.1", &scratch);
    check_called_back(&reference, HIDDEN);
}

#[test]
fn jacorb_calls_a_client_of_ours_behind_nat() {
    let Some(jacorb) = jacorb() else { return };
    let scratch = Scratch::new();
    let serve = || jacorb.serve_both_ways("DeskServer", SERVER, &scratch);
    let Some((_link, (_desks, reference))) = behind_nat(serve) else {
        return;
    };
    check_called_back(&reference, &format!("iiop://{CLIENT}:0"));
}

#[test]
fn we_call_a_client_of_jacorb_behind_nat() {
    let Some(jacorb) = jacorb() else { return };
    let Some((_link, _server, desk)) = ours_behind_nat() else {
        return;
    };
    jacorb.call_both_ways("DeskClient", &desk, CLIENT);
}

#[test]
fn omniorb_calls_a_client_of_ours() {
    let Some(omniorb) = omniorb() else { return };
    let accepts = [
        "--bidirectional",
        "-ORBacceptBiDirectionalGIOP",
        "1",
        "-ORBserverTransportRule",
        "* unix,tcp,bidir",
    ];
    let scratch = Scratch::new();
    let (_desks, reference) = omniorb.serve("desk_server", &scratch, Endpoint::Tcp, &accepts);
    check_called_back(&reference, HIDDEN);
}

#[test]
fn we_call_a_client_of_omniorb_behind_nat() {
    let Some(omniorb) = omniorb() else { return };
    let Some((_link, _server, desk)) = ours_behind_nat() else {
        return;
    };
    let endpoint = format!("giop:tcp:{CLIENT}:");
    let offers = [
        "--called-back",
        "-ORBofferBiDirectionalGIOP",
        "1",
        "-ORBclientTransportRule",
        "* unix,bidir,tcp",
        "-ORBendPoint",
        &endpoint,
    ];
    omniorb.call("desk_client", &desk, &offers);
}
