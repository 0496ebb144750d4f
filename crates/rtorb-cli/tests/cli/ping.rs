//! `rtorb ping`.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use rtorb_tests::loopback::own_address;

use crate::support::{CubitServer, PATIENT, json, rtorb};

#[test]
fn an_object_answers_with_its_endpoint_and_times() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    let assert = rtorb()
        .args(["ping", server.reference(), "--count", "5", "--json"])
        .args(PATIENT)
        .assert()
        .success();
    let pong = json(&assert.get_output().stdout);
    assert_eq!(
        (&pong["alive"], &pong["answers"]),
        (&true.into(), &5.into())
    );
    assert!(
        pong["endpoints"][0]
            .as_str()
            .unwrap()
            .starts_with("iiop://127.0.0.1:")
    );
    assert!(pong["round_trip_ns"]["min"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_refused_connection_is_no_and_says_what_to_do() {
    let address = own_address();
    let reference = format!("corbaloc:iiop:1.2@{address}/key");
    let begin = Instant::now();
    let assert = rtorb()
        .args(["ping", &reference])
        .args(PATIENT)
        .assert()
        .code(1);
    assert!(begin.elapsed() < Duration::from_secs(30));
    let text = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    let port = address.port().to_string();
    for word in [port.as_str(), "connecting to", "refused", "check"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

#[test]
fn a_silent_endpoint_is_no_in_bounded_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reference = format!("corbaloc:iiop:1.2@127.0.0.1:{port}/key");
    let begin = Instant::now();
    let assert = rtorb()
        .args(["ping", &reference, "--timeout", "1s", "--json"])
        .assert()
        .code(1);
    assert!(begin.elapsed() < Duration::from_secs(30));
    let pong = json(&assert.get_output().stdout);
    assert_eq!(
        (&pong["alive"], &pong["answers"]),
        (&false.into(), &0.into())
    );
    assert!(pong["round_trip_ns"].is_null(), "{pong}");
    assert!(
        pong["trouble"]
            .as_str()
            .unwrap()
            .contains("awaiting a reply"),
        "{pong}"
    );
}

#[test]
fn an_unknown_key_is_no() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    let assert = rtorb()
        .args(["ping", server.reference(), "--count", "1", "--json"])
        .args(PATIENT)
        .assert()
        .success();
    let endpoint = json(&assert.get_output().stdout)["endpoints"][0]
        .as_str()
        .unwrap()
        .to_owned();
    let reference = format!(
        "corbaloc:iiop:1.2@{}/nobody",
        endpoint.trim_start_matches("iiop://")
    );
    let assert = rtorb()
        .args(["ping", &reference, "--json"])
        .args(PATIENT)
        .assert()
        .code(1);
    assert!(
        json(&assert.get_output().stdout)["trouble"]
            .as_str()
            .unwrap()
            .contains("does not exist")
    );
}
