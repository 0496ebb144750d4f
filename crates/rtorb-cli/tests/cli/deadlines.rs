//! Calls with `--deadline`.

use std::sync::mpsc::channel;

use rtorb_tests::fake::{FakeServer, request_id, yes};
use rustix::process::Signal;

use crate::support::{CubitServer, PATIENT, json, rtorb};

/// The service context of CORBA Messaging, in which a deadline travels to a server of the same host.
const INVOCATION_POLICIES: u32 = 7;

/// Both end times, with the inaccuracy.
const END_TIMES_BYTES: u32 = 72;

#[test]
fn calls_in_time_succeed_and_calls_that_miss_it_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    let reference = server.reference();
    let bench = ["cubit", "bench", reference, "--count", "10", "--json"];
    let call = ["call", reference, "cube_long", "3"];
    let in_flight = [&bench[..], &["--in-flight", "4"]].concat();
    let (bench, call) = (bench.as_slice(), call.as_slice());
    let benched = rtorb()
        .args(bench)
        .args(["--deadline", "60s"])
        .args(PATIENT)
        .assert()
        .success();
    assert_eq!(json(&benched.get_output().stdout)["count"], 10);
    let called = rtorb()
        .args(call)
        .args(["--deadline", "60s"])
        .args(PATIENT)
        .assert()
        .success();
    assert_eq!(json(&called.get_output().stdout), 27);
    server.running.stop();
    for arguments in [bench, &in_flight, call] {
        let missed = rtorb()
            .args(arguments)
            .args(["--deadline", "5ms"])
            .assert()
            .failure()
            .code(1);
        let said = String::from_utf8_lossy(&missed.get_output().stderr).into_owned();
        assert!(
            said.contains("TIMEOUT") && said.contains("the deadline of the call passed"),
            "{said}"
        );
    }
    server.running.signal(Signal::CONT);
}

#[test]
fn the_server_learns_it() {
    for (options, is_told) in [(&["--deadline", "60s"][..], true), (&[], false)] {
        let (came, comes) = channel();
        let server = FakeServer::new(move |_, mut peer| {
            while let Some(message) = peer.message() {
                let id = request_id(&message).unwrap();
                let _ = came.send(message);
                peer.send(&yes(id));
            }
        });
        let reference = server.reference();
        for arguments in [
            &["cubit", "bench", &reference, "--count", "1"][..],
            &["call", "--interface", "Cubit", &reference, "cube_void"],
        ] {
            let mut command = rtorb();
            let calling = command.args(arguments).args(PATIENT).args(options);
            calling.output().unwrap();
            let messages: Vec<_> = comes.try_iter().collect();
            assert!(!messages.is_empty(), "{arguments:?}");
            assert_eq!(
                messages.iter().any(|message| tells(message)),
                is_told,
                "{arguments:?}"
            );
        }
    }
}

/// True if a message, little-endian, has the service context of a deadline.
fn tells(message: &[u8]) -> bool {
    let context: Vec<_> = [INVOCATION_POLICIES, END_TIMES_BYTES]
        .map(u32::to_le_bytes)
        .concat();
    (0..message.len())
        .step_by(4)
        .any(|at| message[at..].starts_with(&context))
}
