//! Processes that are killed, stopped, or end while they are called.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rtorb_tests::running::{signal_process, stop_process, until};
use rtorb_tests::server_process::lasting_port;
use rtorb_tests::stubs::ledgers::Ledger;

use crate::calls::{Ends, SLACK, Server, TIMEOUT, ledger};

/// Calls that a client makes undisturbed before the fault and after it.
const QUIET: u32 = 50;

fn servers() -> [Server; 3] {
    [
        Server::at(format!("iiop://127.0.0.1:{}", lasting_port())),
        Server::at_file("uiop"),
        Server::at_file("shmiop"),
    ]
}

/// Calls beside `fault`, which begins when the first calls have returned, until calls return again after it. `fault` is given the number
/// of calls that have failed.
fn calls_beside(ledger: &Ledger, fault: impl FnOnce(&AtomicU32) + Send) -> Ends {
    let (returned, failed) = (AtomicU32::new(0), AtomicU32::new(0));
    let over = AtomicU32::new(u32::MAX);
    thread::scope(|scope| {
        let faulting = scope.spawn(|| {
            until("the first calls return", || {
                (returned.load(Ordering::Acquire) >= QUIET).then_some(())
            });
            fault(&failed);
            over.store(returned.load(Ordering::Acquire), Ordering::Release);
        });
        Ends::of_calls(ledger, |ends| {
            returned.store(ends.returned, Ordering::Release);
            failed.store(ends.failures(), Ordering::Release);
            let has_ended = faulting.is_finished();
            let at_the_end = over.load(Ordering::Acquire);
            // If it has panicked, calls may never return again.
            let has_panicked = has_ended && at_the_end == u32::MAX;
            has_panicked
                || ends.returned >= at_the_end.saturating_add(QUIET) && ends.returned_since >= QUIET
        })
    })
}

#[test]
fn a_server_that_is_killed_and_started_again() {
    for server in servers() {
        let (first, reference) = server.start();
        let mut second = None;
        let ledger = ledger(&reference).with_timeout(SLACK);
        let ends = calls_beside(&ledger, |_| {
            drop(first);
            second = Some(server.start());
        });
        let ways = ["CommFailure Maybe", "Transient No"];
        ends.check("killed and started again", server.notes.count(), &ways);
        // One was under way. The next one may have connected while the host closed the killed server's descriptors one after another.
        assert!(ends.maybe <= 2, "two calls at most met it: {ends:?}");
        let unanswered = server.notes.count() - ends.returned;
        assert!(unanswered <= 1, "one reply at most is lost: {ends:?}");
    }
}

#[test]
fn a_server_that_is_ended_and_started_again_loses_nothing() {
    for server in servers() {
        let (first, reference) = server.start();
        let mut second = None;
        let ledger = ledger(&reference).with_timeout(SLACK);
        let ends = calls_beside(&ledger, |_| {
            signal_process(first.id(), "TERM");
            assert!(first.ended().success(), "it ends in good order");
            second = Some(server.start());
        });
        ends.check(
            "SIGTERM and started again",
            server.notes.count(),
            &["Transient No"],
        );
        assert_eq!(server.notes.count(), ends.returned, "nothing is lost");
    }
}

#[test]
fn a_server_that_stands_still_for_a_while() {
    for server in servers() {
        let (process, reference) = server.start();
        let ends = calls_beside(&ledger(&reference), |failed| {
            stop_process(process.id());
            let before = failed.load(Ordering::Acquire);
            until("three calls meet it", || {
                (failed.load(Ordering::Acquire) >= before + 3).then_some(())
            });
            signal_process(process.id(), "CONT");
        });
        let ways = ["Timeout Maybe", "Timeout No"];
        ends.check("SIGSTOP, then SIGCONT", server.notes.count(), &ways);
    }
}

#[test]
fn a_client_that_is_killed_leaves_nothing_at_the_server() {
    for server in servers() {
        let (process, reference) = server.start();
        let descriptors = || {
            let folder = format!("/proc/{}/fd", process.id());
            std::fs::read_dir(folder).expect("the server runs").count()
        };
        Ends::of_calls(&ledger(&reference), |ends| ends.returned == QUIET);
        let before = until("the connection is gone", || {
            let now = descriptors();
            thread::sleep(TIMEOUT / 10);
            (now == descriptors()).then_some(now)
        });
        for _ in 0..5 {
            let counted = server.notes.count();
            let client = Command::new(env!("CARGO_BIN_EXE_warm-calls"))
                .args(["note", &reference])
                .spawn()
                .expect("the client can be started");
            until("the client calls", || {
                (server.notes.count() > counted + QUIET).then_some(())
            });
            kill(client);
        }
        until("the server has closed the connections", || {
            (descriptors() <= before).then_some(())
        });
        Ends::of_calls(&ledger(&reference), |ends| ends.returned_since == QUIET);
    }
}

fn kill(mut client: std::process::Child) {
    client.kill().expect("it runs");
    client.wait().expect("it was started");
}
