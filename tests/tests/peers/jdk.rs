//! The JDK's ORB as a client of our naming service, which it finds by host and port.

use rtorb_tests::peers::jdk::jdk_orb;

use super::our_names::OurNames;

#[test]
fn it_finds_our_names_by_host_and_port() {
    let Some(jdk) = jdk_orb() else { return };
    let names = OurNames::serve();
    let address = names.address();
    let (host, port) = address.rsplit_once(':').expect("a host and a port");
    assert_eq!(jdk.use_names(host, port).len(), 4);
}
