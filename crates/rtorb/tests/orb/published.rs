//! The addresses that references contain, and the ports that a server takes.

use rtorb::Orb;
use rtorb::endpoint::Endpoint;
use rtorb_tests::ours::Ours;

#[test]
fn references_contain_the_published_addresses_in_their_order() {
    let listen = "iiop://127.0.0.1:0/publish=gate:19000&publish=[::1]:7&publish=plant";
    let ours = Ours::serve_as(Orb::builder().listen(listen));
    let [Endpoint::Tcp { port, .. }] = &ours.orb.endpoints()[..] else {
        panic!("it listens on one port");
    };
    let own = format!("iiop://plant:{port}");
    let published: Vec<_> = ours.cubit.as_object().endpoints().collect();
    let texts: Vec<_> = published.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["iiop://gate:19000", "iiop://[::1]:7", &own]);
    // The ORB knows its own objects by these addresses, and calls them without a connection.
    let own = Ours::serve_collocated(Orb::builder().listen(listen));
    assert_eq!(own.cubit.cube_long(3), Ok(27));
}

#[test]
fn a_server_with_a_span_of_ports_takes_the_first_free_one() {
    let first = Ours::serve();
    let (host, taken) = (first.address().ip(), first.address().port());
    let listen = format!("iiop://{host}:{taken}/portspan=50");
    let second = Ours::serve_as(Orb::builder().listen(&listen));
    let port = second.address().port();
    assert!(port > taken && port < taken + 50, "{taken}: {port}");
    assert_eq!(second.cubit.cube_long(3), Ok(27));

    let full = format!("iiop://{host}:{taken}/portspan=1");
    let orb = Orb::builder().listen(&full).build();
    let refused = orb.expect("an ORB").root_poa().map(drop);
    assert!(refused.expect_err("taken").to_string().contains("in use"));
}
