//! The programs of docs/how-to/tls.md.

use crate::pki::Pki;
use rtorb::{Orb, OrbBuilder};
use rtorb_tests::ours::Ours;
use rtorb_tls::keys::Purpose;
use rtorb_tls::{AccessRule, Tls};
use std::path::Path;

fn orb(keys: &Path) -> Result<Orb, Box<dyn std::error::Error>> {
    let tls = Tls::builder()
        .certificate(keys.join("server.pem"), keys.join("server.key"))
        .authorities(keys.join("ca.pem"))
        .revocations(keys.join("crl.pem"))
        .build()?;
    let orb = Orb::builder()
        .secure_transport(tls.transport())
        .listen("ssliop://127.0.0.1:0")
        .build()?;
    Ok(orb)
}

fn with_rule(builder: OrbBuilder) -> OrbBuilder {
    let rule = AccessRule::new("cranes", ["control-room", "maintenance"], |text| {
        eprintln!("{text}");
    });
    builder.server_interceptor(rule)
}

#[test]
fn the_programs_of_the_page_listen_over_tls() {
    let pki = Pki::new();
    pki.issue(Purpose::Server, "server", &["127.0.0.1"]);
    let orb = orb(&pki.folder).expect("right files");
    orb.root_poa().expect("it listens");
    assert!(orb.endpoints()[0].to_string().starts_with("ssliop://"));
    let _ours = Ours::serve_as(with_rule(Orb::builder()));
}
