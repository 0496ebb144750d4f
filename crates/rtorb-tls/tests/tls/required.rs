//! A client that makes no connection over TCP without TLS.

use crate::calls::cubit;
use crate::pki::{Pki, orb, serving};
use rtorb::exception::{Phase, SystemException, local};
use rtorb::{
    CompletionStatus, ConnectionStrategy, DispatchStrategy, ExceptionKind, Orb, WaitStrategy,
};
use rtorb_tests::ours::Ours;
use std::io::ErrorKind;
use std::net::TcpListener;

#[track_caller]
fn check(exception: &SystemException) {
    assert_eq!(exception.kind, ExceptionKind::NoPermission, "{exception}");
    assert_eq!(exception.minor, local::PLAIN_REFUSED.minor, "{exception}");
    assert_eq!(exception.completed, CompletionStatus::No);
}

#[test]
fn a_client_that_requires_tls_opens_no_plain_connection() {
    let pki = Pki::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let reference = format!("corbaloc:iiop:1.2@{address}/x");
    let client = pki.client();
    let exclusive = cubit(orb(client.clone()).require_tls(), &reference);
    let exception = exclusive.cube_long(3).expect_err("it has no TLS");
    check(&exception);
    let cause = exception.cause.as_ref().expect("a cause");
    assert_eq!(cause.phase, Phase::Connect);
    let text = exception.to_string();
    for word in [&format!("iiop://{address}"), "-ORBTlsRequired", "ssliop://"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let shared = ConnectionStrategy::Multiplexed {
        wait: WaitStrategy::LeaderFollowers,
    };
    let shared = cubit(orb(client).require_tls().connection(shared), &reference);
    check(&shared.cube_long(3).expect_err("it has no TLS"));
    let object = shared.as_object();
    let started = object.start("cube_long", |w| w.primitive(3_i32), |r| r.primitive());
    let started: Result<i32, _> = started.wait();
    check(&started.expect_err("it has no TLS"));
    listener.set_nonblocking(true).expect("it is open");
    let nobody = listener.accept().expect_err("nobody connected");
    assert_eq!(nobody.kind(), ErrorKind::WouldBlock);
}

#[test]
fn a_client_that_requires_tls_takes_the_address_with_it() {
    let pki = Pki::new();
    let ours = Ours::serve_as(serving(pki.server()).listen("iiop://127.0.0.1:0"));
    let reference = ours.text(ours.cubit.as_object());
    let client = orb(pki.client()).require_tls();
    assert_eq!(cubit(client, &reference).cube_long(3), Ok(27));
}

#[test]
fn a_client_that_requires_tls_uses_what_does_not_leave_the_host() {
    let pki = Pki::new();
    let socket = format!("uiop://{}", pki.folder.join("socket").display());
    let plain = Orb::builder().listen("iiop://127.0.0.1:0");
    let ours = Ours::serve_as(plain.listen(&socket));
    let reference = ours.text(ours.cubit.as_object());
    let tls = pki.client();
    let client = orb(tls.clone()).require_tls();
    assert_eq!(cubit(client, &reference).cube_long(3), Ok(27));

    let own = || orb(tls.clone()).require_tls().listen("iiop://127.0.0.1:0");
    let collocated = Ours::serve_collocated(own());
    assert_eq!(collocated.cubit.cube_long(3), Ok(27));
    let by_transport = Ours::serve_as(own());
    check(&by_transport.cubit.cube_long(3).expect_err("it is plain"));
}

#[test]
fn options_that_exclude_tls_are_refused_beside_the_one_that_requires_it() {
    let without = Orb::builder().args(["-ORBTlsRequired", "yes"].map(str::to_owned));
    let text = without.build().map(|_| ()).expect_err("no TLS").to_string();
    assert!(
        text.contains("-ORBTlsRequired") && text.contains("-ORBTlsCa"),
        "{text}"
    );
    let pki = Pki::new();
    let both_ways = orb(pki.client())
        .require_tls()
        .bidirectional()
        .dispatch(DispatchStrategy::WorkerPool);
    let text = both_ways.build().map(|_| ()).expect_err("it is plain");
    let text = text.to_string();
    assert!(
        text.contains("-ORBTlsRequired") && text.contains("-ORBBidirectional"),
        "{text}"
    );
}
