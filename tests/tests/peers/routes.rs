//! The ways to an object: names, address families, alternates, and what happens when one of them leads nowhere.

use std::net::TcpListener;
use std::path::Path;

use rtorb::exception::local;
use rtorb::{ExceptionKind, Orb, OrbBuilder};
use rtorb_tests::fake::reference_at;
use rtorb_tests::ours::Ours;
use rtorb_tests::peers::omniorb::omniorb;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::server_process::lasting_port;
use rtorb_tests::stubs::Cubit;
use rtorb_wire::ior::Ior;

#[test]
fn an_ipv6_address_is_listened_on_and_found() {
    if TcpListener::bind("[::1]:0").is_err() {
        rtorb_tests::skip("this host has no IPv6 loopback: sysctl net.ipv6.conf.lo.disable_ipv6=0");
        return;
    }
    let ours = Ours::serve_as(listening("iiop://[::1]:0"));
    let reference = ours.text(ours.cubit.as_object());
    assert_eq!(cubit(&reference).cube_long(3), Ok(27));
    let ior = ours.cubit.as_object().ior();
    let port = ior.iiop_profiles().next().expect("an IIOP profile").port;
    let bracketed = reference_at("[::1]", port);
    let orb = Orb::builder().build().expect("the ORB can be built");
    let nobody = orb.string_to_object(&bracketed).expect("a reference");
    assert_eq!(nobody.non_existent(), Ok(true), "it is asked at all");
    if let Some(omniorb) = omniorb() {
        omniorb.call("cubit_client", &reference, &["--lengths", "1"]);
    }
}

#[test]
fn a_name_with_several_addresses_is_tried_by_each() {
    // `localhost` may stand for ::1 first, where nobody listens.
    let ours = Ours::serve_as(listening("iiop://127.0.0.1:0"));
    rtorb_tests::ours::activate_readable(&ours.orb, "Routes");
    let reference = format!(
        "corbaloc::1.2@localhost:{}/Routes/cubit",
        ours.address().port()
    );
    assert_eq!(cubit(&reference).cube_long(3), Ok(27));
}

#[test]
fn a_corbaloc_with_several_addresses_is_tried_in_order() {
    let ours = Ours::serve();
    rtorb_tests::ours::activate_readable(&ours.orb, "Routes");
    let nobody = lasting_port();
    let reference = format!(
        "corbaloc::127.0.0.1:{nobody},:1.2@{}/Routes/cubit",
        ours.address()
    );
    let cubit = cubit(&reference);
    assert_eq!(cubit.cube_long(3), Ok(27));
    assert_eq!(cubit.cube_long(4), Ok(64));
}

#[test]
fn a_server_with_several_endpoints_is_reached_by_those_that_are_left() {
    let scratch = Scratch::new();
    let socket = scratch.join("socket");
    let builder = listening("iiop://127.0.0.1:0").listen("iiop://127.0.0.1:0");
    let ours = Ours::serve_as(builder.listen(&format!("uiop://{}", socket.display())));
    let reference = ours.text(ours.cubit.as_object());
    assert_eq!(cubit(&reference).cube_long(3), Ok(27), "by the UNIX socket");
    std::fs::remove_file(&socket).expect("the socket is there");
    assert_eq!(cubit(&reference).cube_long(3), Ok(27), "by TCP");
    let mut ior: Ior = reference.parse().expect("a reference");
    // The first address now leads nowhere; the alternate one is in a component.
    let dead: Ior = reference_at("127.0.0.1", lasting_port())
        .parse()
        .expect("a reference");
    ior.profiles.insert(0, dead.profiles[0].clone());
    assert_eq!(
        cubit(&ior.to_string()).cube_long(3),
        Ok(27),
        "by the next profile"
    );
}

#[test]
fn a_host_name_for_the_reference_is_what_clients_are_told() {
    let ours = Ours::serve_as(listening("iiop://127.0.0.1:0/hostname_in_ior=localhost"));
    let ior: Ior = ours
        .text(ours.cubit.as_object())
        .parse()
        .expect("a reference");
    assert_eq!(
        ior.iiop_profiles().next().expect("an IIOP profile").host,
        "localhost"
    );
    assert_eq!(cubit(&ior.to_string()).cube_long(3), Ok(27));
}

#[test]
fn a_socket_that_a_killed_server_left_is_taken_over_and_a_live_one_is_not() {
    let scratch = Scratch::new();
    let socket = scratch.join("socket");
    // A bound socket leaves its file behind, as a server that was killed does.
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("the folder can be written"));
    let endpoint = format!("uiop://{}", socket.display());
    let ours = Ours::serve_as(listening(&endpoint));
    assert_eq!(
        cubit(&ours.text(ours.cubit.as_object())).cube_long(3),
        Ok(27)
    );
    let second = listening(&endpoint).build().expect("nothing is opened yet");
    let refused = second.root_poa().expect_err("somebody listens there");
    assert_eq!(refused.kind, ExceptionKind::Initialize);
    assert!(refused.to_string().contains(&endpoint), "{refused}");
    drop(second);
    assert_eq!(
        cubit(&ours.text(ours.cubit.as_object())).cube_long(3),
        Ok(27),
        "the first is not disturbed"
    );
    ours.orb.shutdown();
    let next = Ours::serve_as(listening(&endpoint));
    drop(ours);
    assert!(
        Path::new(&socket).exists(),
        "the server before takes only its own file away"
    );
    assert_eq!(
        cubit(&next.text(next.cubit.as_object())).cube_long(3),
        Ok(27)
    );
}

#[test]
fn a_file_that_holds_a_reference_is_one() {
    let scratch = Scratch::new();
    let ours = Ours::serve();
    let file = scratch.join("cubit.ior");
    std::fs::write(&file, format!("  {}\n", ours.text(ours.cubit.as_object())))
        .expect("it can be written");
    assert_eq!(
        cubit(&format!("file://{}", file.display())).cube_long(3),
        Ok(27)
    );
}

#[test]
fn names_and_files_may_lead_to_one_another_but_not_for_ever() {
    let scratch = Scratch::new();
    let ours = Ours::serve();
    let file = scratch.join("circle");
    std::fs::write(&file, "corbaloc:rir:/Circle").expect("it can be written");
    let orb = Orb::builder()
        .initial_reference("Circle", &format!("file://{}", file.display()))
        .initial_reference("Self", "corbaloc:rir:/Self")
        .initial_reference("Cubit", &ours.text(ours.cubit.as_object()))
        .initial_reference("Alias", "corbaloc:rir:/Cubit")
        .build()
        .expect("an ORB");
    for name in ["Circle", "Self"] {
        let failed = orb.resolve_initial_references(name).expect_err(name);
        assert_eq!(
            (failed.kind, failed.minor),
            (ExceptionKind::BadParam, local::REFERENCES_IN_CIRCLE.minor),
            "{failed}"
        );
    }
    let alias = orb.resolve_initial_references("Alias").expect("an alias");
    assert_eq!(alias.is_a("IDL:Cubit:1.0"), Ok(true));
}

fn listening(endpoint: &str) -> OrbBuilder {
    Orb::builder().listen(endpoint)
}

fn cubit(reference: &str) -> Cubit {
    let orb = Orb::builder().build().expect("the ORB can be built");
    Cubit::narrow(&orb.string_to_object(reference).expect("a reference")).expect("it is a Cubit")
}
