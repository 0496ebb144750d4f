//! `rtorb cubit serve` and `bench`.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rtorb_lab::contestants::client_orb_builder;
use rtorb_lab::contestants::cubit::Bench;
use rtorb_tests::fake::{FakeServer, yes};
use rustix::process::Signal;

use crate::support::{CubitServer, PATIENT, Running, json, rtorb};

const OPERATIONS: [&str; 11] = [
    "void", "oneway", "octet", "short", "long", "struct", "union", "any", "longseq", "octetseq",
    "manyseq",
];

#[test]
fn every_operation_answers_right_over_every_transport_and_dispatch() {
    let folder = tempfile::tempdir().unwrap();
    let socket = format!("uiop://{}", folder.path().join("cubit.socket").display());
    for listen in ["iiop://127.0.0.1:0", socket.as_str()] {
        for dispatch in ["thread_per_connection", "reactive"] {
            let server =
                CubitServer::start(folder.path(), &["--listen", listen, "--dispatch", dispatch]);
            for operation in OPERATIONS {
                let arguments = [
                    "cubit",
                    "bench",
                    server.reference(),
                    "--op",
                    operation,
                    "--count",
                    "50",
                    "--json",
                ];
                let answer = json(
                    &rtorb()
                        .args(arguments)
                        .args(PATIENT)
                        .assert()
                        .success()
                        .get_output()
                        .stdout,
                );
                assert_eq!(answer["operation"], operation);
                assert_eq!(
                    (&answer["count"], &answer["wrong"]),
                    (&50.into(), &0.into()),
                    "{operation} {listen}"
                );
                for name in ["min", "mean", "stddev", "p50", "p90", "p99", "p99_9", "max"] {
                    assert!(answer["latency_ns"][name].is_number(), "{name} of {answer}");
                }
            }
            std::fs::remove_file(&server.ior_file).unwrap();
        }
    }
}

#[test]
fn long_sequences_come_back_whole() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    for operation in ["longseq", "octetseq", "manyseq"] {
        for len in ["0", "1", "4096", "100000"] {
            let arguments = ["--op", operation, "--len", len, "--count", "3", "--json"];
            let bench = rtorb()
                .args(["cubit", "bench", server.reference()])
                .args(PATIENT)
                .args(arguments)
                .assert()
                .success();
            let answer = json(&bench.get_output().stdout);
            assert_eq!(
                (answer["len"].to_string().as_str(), &answer["wrong"]),
                (len, &0.into()),
                "{operation}"
            );
        }
    }
}

#[test]
fn a_server_ends_on_sigterm_sigint_and_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = CubitServer::start(folder.path(), &[]);
        server.running.signal(signal);
        assert_eq!(server.running.ended(), Some(0), "{signal:?}");
        std::fs::remove_file(&server.ior_file).unwrap();
    }
    let mut server = CubitServer::start(folder.path(), &[]);
    let orb = client_orb_builder(Duration::from_secs(60)).build().unwrap();
    let reference = std::fs::read_to_string(&server.ior_file).unwrap();
    let bench = Bench::new(&orb.string_to_object(reference.trim()).unwrap()).unwrap();
    bench.shutdown().unwrap();
    assert_eq!(server.running.ended(), Some(0));
}

#[test]
fn the_file_holds_one_reference_and_a_line_end() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    let text = std::fs::read_to_string(&server.ior_file).unwrap();
    assert!(
        text.starts_with("IOR:") && text.ends_with('\n') && text.lines().count() == 1,
        "{text:?}"
    );
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["cubit.ior"], "nothing half-written is left");
}

#[test]
fn without_options_the_reference_is_printed_and_void_is_called() {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("rtorb"));
    command.args(["cubit", "serve"]).stdout(Stdio::piped());
    let mut server = Running(command.spawn().unwrap());
    let mut output = BufReader::new(server.0.stdout.take().unwrap());
    let mut reference = String::new();
    output.read_line(&mut reference).unwrap();
    let assert = rtorb()
        .args(["cubit", "bench", reference.trim(), "--count", "10"])
        .args(PATIENT)
        .assert()
        .success();
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(text.contains("void: 10 calls, 0 wrong results"), "{text}");
    server.signal(Signal::TERM);
    assert_eq!(server.ended(), Some(0));
}

#[test]
fn misuse_is_told_with_what_is_known() {
    let known = |arguments: &[&str], words: &[&str]| {
        let assert = rtorb().args(arguments).assert().code(2);
        let text = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(
            words.iter().all(|word| text.contains(word)),
            "{arguments:?}: {text}"
        );
    };
    known(
        &[
            "cubit",
            "serve",
            "--ior-file",
            "/dev/null",
            "--preset",
            "fancy",
        ],
        &["fancy", "default"],
    );
    known(
        &[
            "cubit",
            "serve",
            "--ior-file",
            "/dev/null",
            "--dispatch",
            "fast",
        ],
        &["reactive"],
    );
    known(
        &[
            "cubit",
            "serve",
            "--ior-file",
            "/dev/null",
            "--listen",
            "ftp://host",
        ],
        &["iiop://"],
    );
    known(
        &["cubit", "bench", "IOR:00", "--op", "longs"],
        &["longs", "longseq"],
    );
    known(
        &[
            "cubit",
            "bench",
            "IOR:00",
            "--op",
            "long",
            "--timeout",
            "never",
        ],
        &["500ms"],
    );
    known(
        &["cubit", "bench", "IOR:00", "--op", "long", "--count", "0"],
        &["count"],
    );
}

#[test]
fn calls_in_flight_share_one_connection_and_keep_their_number() {
    const IN_FLIGHT: usize = 7;
    let waiting = Arc::new(AtomicUsize::new(0));
    let most = Arc::clone(&waiting);
    // It is a Cubit. It replies once as many requests as may be in flight have come, the newest first, and to one request at a time afterwards.
    let server = FakeServer::new(move |_, mut peer| {
        let is_a = peer.request().expect("it is asked for its type");
        peer.send(&yes(is_a));
        let first: Vec<_> = (0..IN_FLIGHT).map_while(|_| peer.request()).collect();
        most.fetch_add(first.len(), Ordering::SeqCst);
        first.iter().rev().for_each(|id| peer.send(&yes(*id)));
        while let Some(id) = peer.request() {
            peer.send(&yes(id));
        }
    });
    let reference = server.reference();
    let arguments = ["cubit", "bench", &reference, "--count", "40", "--json"];
    let assert = rtorb()
        .args(arguments)
        .args(["--in-flight", "7"])
        .args(PATIENT)
        .assert()
        .success();
    let answer = json(&assert.get_output().stdout);
    assert_eq!(answer["in_flight"], 7);
    assert_eq!(
        (&answer["count"], &answer["wrong"]),
        (&40.into(), &0.into())
    );
    assert!(answer["calls_per_second"].is_number(), "{answer}");
    assert_eq!(waiting.load(Ordering::SeqCst), IN_FLIGHT, "one connection");
}

#[test]
fn every_operation_with_a_reply_is_kept_in_flight_by_every_wait_strategy() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    let bench = |options: &[&str]| {
        let arguments = ["cubit", "bench", server.reference(), "--in-flight", "16"];
        let mut command = rtorb();
        command.args(arguments).args(PATIENT).args(options);
        command.assert().success()
    };
    for operation in OPERATIONS.iter().filter(|it| **it != "oneway") {
        let assert = bench(&["--op", operation, "--count", "50", "--json"]);
        let answer = json(&assert.get_output().stdout);
        assert_eq!(
            (&answer["count"], &answer["wrong"]),
            (&50.into(), &0.into())
        );
    }
    for wait in ["leader_followers", "reactor", "connection_thread"] {
        for connection in ["multiplexed", "banded"] {
            let strategies = ["--connection", connection, "--wait", wait];
            let calling = ["--count", "20", "--deadline", "60s", "--priority", "3"];
            let assert = bench(&[&strategies[..], &calling, &["--best-effort"]].concat());
            let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
            assert!(text.contains("void: 20 calls, 0 wrong results"), "{text}");
            assert!(text.contains("16 in flight: "), "{text}");
        }
    }
}

#[test]
fn calls_in_flight_that_cannot_be_are_misuse() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    for (options, word) in [
        (&["--in-flight", "0"][..], "1..=1024"),
        (&["--in-flight", "1025"], "1..=1024"),
        (&["--in-flight", "2", "--op", "oneway"], "no reply"),
        (
            &["--in-flight", "2", "--connection", "exclusive"],
            "multiplexed",
        ),
        (&["--in-flight", "2", "--wait", "read"], "leader_followers"),
        (
            &["--in-flight", "2", "--preset", "default"],
            "leader_followers",
        ),
    ] {
        let assert = rtorb()
            .args(["cubit", "bench", server.reference(), "--count", "1"])
            .args(options)
            .assert()
            .code(2);
        let text = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(text.contains(word), "{options:?}: {text}");
    }
}

#[test]
fn a_reference_that_cannot_be_used_is_misuse() {
    for (reference, word) in [
        ("IOR:zz", "IOR:zz"),
        ("/nowhere/cubit.ior", "corbaloc"),
        ("corbaloc::", "address"),
    ] {
        let assert = rtorb()
            .args(["cubit", "bench", reference, "--op", "void"])
            .assert()
            .code(2);
        let text = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(
            text.contains(word),
            "{reference} should say something of {word}: {text}"
        );
    }
}
