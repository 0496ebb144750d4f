//! Calls to a host name that the system does not find in time, on the real clock.

use crate::exception::{OMG, Phase, local};
use crate::transport::resolver::tests::{SILENT, fill};
use crate::{CompletionStatus, ConnectionStrategy, ExceptionKind, ObjectRef, Orb, WaitStrategy};
use core::time::Duration;
use rtorb_tests::fake::{FakeServer, Peer, yes};
use std::time::Instant;

const TIMEOUT: Duration = Duration::from_millis(20);
/// Other programs may keep the CPUs. Without a timeout of its own, an ORB waits for 30 s.
const BOUND: Duration = Duration::from_secs(20);

//= RT-CORBA 1.2 §Invocation Timeout
//% test
#[test]
fn a_name_that_is_not_found_in_time_is_a_timeout_of_resolving() {
    let all = ConnectionStrategy::ALL.into_iter();
    let all = all.flat_map(|(_, it)| WaitStrategy::ALL.map(|(_, wait)| it.with_wait(wait)));
    for connection in all.flatten() {
        let builder = Orb::builder()
            .connection(connection)
            .round_trip_timeout(Some(TIMEOUT));
        let orb = builder.build().expect("the ORB can be built");
        let silent = format!("corbaloc::{SILENT}:2809,:{SILENT}:2810/x");
        let object = orb.string_to_object(&silent).expect("a reference");
        let asks: [fn(&ObjectRef) -> bool; 2] = [
            |object| is_unresolved(object.is_a("IDL:Any:1.0").map(|_| ())),
            |object| is_unresolved(object.validate_connection()),
        ];
        for ask in asks {
            let begun = Instant::now();
            assert!(ask(&object), "{connection}");
            let elapsed = begun.elapsed();
            assert!(elapsed < BOUND, "{connection}: {elapsed:?}");
            println!("resolving, {connection}: {elapsed:?}");
        }
    }
}

fn is_unresolved(ended: Result<(), crate::SystemException>) -> bool {
    let failed = ended.expect_err("nobody knows the name");
    let phase = failed.cause.as_ref().map(|cause| cause.phase);
    let advice = failed.advice().expect("there is a remedy");
    assert!(advice.contains("name servers"), "{failed}");
    (failed.kind, failed.minor, failed.completed, phase)
        == (
            ExceptionKind::Timeout,
            OMG | 2,
            CompletionStatus::No,
            Some(Phase::Resolve),
        )
}

#[test]
fn an_endpoint_behind_a_name_that_is_not_found_is_tried_in_time() {
    let server = answering();
    let port = server.port();
    let two = format!("corbaloc:iiop:1.2@{SILENT}:2809,iiop:1.2@127.0.0.1:{port}/object");
    for builder in [
        Orb::builder().round_trip_timeout(Some(Duration::from_secs(2))),
        Orb::builder().connect_timeout(TIMEOUT),
    ] {
        let orb = builder.build().expect("the ORB can be built");
        let object = orb.string_to_object(&two).expect("a reference");
        // Other programs may keep the CPUs for the rest of the time.
        let mut asked = (0..10).map(|_| object.is_a("IDL:Any:1.0"));
        assert_eq!(asked.find(Result::is_ok), Some(Ok(true)));
    }
}

fn answering() -> FakeServer {
    FakeServer::new(|_, mut peer: Peer| {
        while let Some(id) = peer.request() {
            peer.send(&yes(id));
        }
    })
}

#[test]
fn an_endpoint_behind_one_name_too_many_is_tried() {
    let orb = Orb::builder().build().expect("the ORB can be built");
    fill(&orb.core.client.resolver);
    let server = answering();
    let port = server.port();
    let two = format!("corbaloc:iiop:1.2@another.test:2809,iiop:1.2@127.0.0.1:{port}/object");
    let object = orb.string_to_object(&two).expect("a reference");
    assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true));
}

#[test]
fn one_name_too_many_is_refused_with_what_to_do_about_names() {
    let orb = Orb::builder().build().expect("the ORB can be built");
    fill(&orb.core.client.resolver);
    let object = orb.string_to_object("corbaloc::another.test:2809/x");
    let ended = object.expect("a reference").is_a("IDL:Any:1.0");
    let failed = ended.expect_err("64 others wait");
    let expected = local::NAMES_FULL;
    assert_eq!(
        (failed.kind, failed.minor, failed.completed),
        (expected.kind, expected.minor, CompletionStatus::No)
    );
    let cause = failed.cause.as_ref().expect("it says where");
    assert_eq!((cause.phase, cause.errno), (Phase::Resolve, None));
    let advice = failed.advice().expect("there is a remedy");
    assert!(advice.contains("numeric address"), "{advice}");
}
