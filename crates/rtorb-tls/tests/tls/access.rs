//! Access rules: which names may call an adapter.

use crate::calls::cubit;
use crate::pki::{Pki, nameless, orb, serving};
use rtorb::exception::local;
use rtorb::security::ClientCertificates;
use rtorb_tests::ours::Ours;
use rtorb_tls::AccessRule;
use rtorb_tls::keys::Purpose;
use std::sync::{Arc, Mutex};

#[test]
fn only_clients_with_an_allowed_name_call_an_adapter() {
    let pki = Pki::new();
    let reports = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&reports);
    let rule = AccessRule::new("", ["control-room", "spare.example"], move |text| {
        noted.lock().expect("no panic").push(text.to_owned());
    });
    let server = pki.server().clients(ClientCertificates::Optional);
    let ours = Ours::serve_as(serving(server).server_interceptor(rule));
    let reference = ours.text(ours.cubit.as_object());
    let by = |name, hosts: &[&str]| {
        let files = pki.issue(Purpose::Client, name, hosts);
        cubit(orb(pki.with(&files)), &reference).cube_long(3)
    };
    assert_eq!(by("control-room", &[]), Ok(27), "by its common name");
    assert_eq!(by("spare", &["spare.example"]), Ok(27), "by another name");
    assert_eq!(reports.lock().expect("no panic").len(), 0);
    let strange = by("stranger", &[]).expect_err("its name is not allowed");
    assert_eq!(strange.minor, local::NAME_NOT_ALLOWED.minor, "{strange}");
    let unnamed = cubit(orb(nameless(&pki)), &reference).cube_long(3);
    let unnamed = unnamed.expect_err("it has no name");
    assert_eq!(unnamed.minor, local::NAME_NOT_ALLOWED.minor, "{unnamed}");
    let reports = reports.lock().expect("no panic");
    assert!(
        reports[0].contains("the client stranger may not call cube_long"),
        "{reports:?}"
    );
    assert!(
        reports[1].contains("a client without a certificate"),
        "{reports:?}"
    );
}
