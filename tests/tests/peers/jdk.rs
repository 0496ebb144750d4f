//! The JDK's ORB: as a client of our naming service, which it finds by host and port, and text both ways.

use rtorb_tests::ours::{Ours, check_text_by};
use rtorb_tests::peers::jdk::jdk_orb;
use rtorb_tests::scratch::Scratch;

use super::our_names::OurNames;

#[test]
fn it_finds_our_names_by_host_and_port() {
    let Some(jdk) = jdk_orb() else { return };
    let names = OurNames::serve();
    let address = names.address();
    let (host, port) = address.rsplit_once(':').expect("a host and a port");
    assert_eq!(jdk.use_names(host, port).len(), 4);
}

#[test]
fn it_sends_us_text_by_a_reference_and_by_a_url() {
    let Some(jdk) = jdk_orb() else { return };
    let ours = Ours::serve();
    let desk = ours.desk.as_object();
    let bound = ours.orb.bind_object_key("Desk", desk);
    bound.expect("it is free");
    // It changes bytes of a URL's key that are no ASCII.
    let url = format!("corbaloc:iiop:1.2@{}/Desk", ours.address());
    assert_eq!(jdk.send_text(&ours.text(desk)).len(), 11);
    // It sends wide text by references with code sets only.
    assert_eq!(jdk.send_text(&url).len(), 3);
}

#[test]
fn we_send_it_text_by_a_reference_and_by_a_url() {
    let Some(jdk) = jdk_orb() else { return };
    let scratch = Scratch::new();
    let (_server, reference) = jdk.serve_text(&scratch);
    check_text_by(&reference);
}
