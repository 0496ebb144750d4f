//! Signals that end a process: delivered to those that watch for them, and an end at once where nobody does.

use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_os::termination::Termination;
use rustix::process::{Signal, getpid, kill_process};
use std::io::Write as _;
use std::process::Command;
use std::thread;

/// Names what a child process of these tests does.
const CHILD: &str = "RTORB_TERMINATION_CHILD";

#[test]
fn every_watch_gets_a_signal_and_a_wait_can_be_cancelled() {
    let first = Termination::watch().expect("handlers");
    let second = Termination::watch().expect("handlers");
    assert!(!first.has_come());
    let told = thread::scope(|scope| {
        let waiting = scope.spawn(|| first.wait());
        send(Signal::TERM);
        waiting.join().expect("no panic")
    });
    assert!(told && second.wait() && second.has_come());

    let third = Termination::watch().expect("handlers");
    assert!(!third.has_come(), "that signal came before");
    let told = thread::scope(|scope| {
        let waiting = scope.spawn(|| third.wait());
        third.cancel();
        waiting.join().expect("no panic")
    });
    assert!(!told, "it was cancelled");
}

#[test]
fn a_later_signal_or_one_that_nobody_watches_for_ends_the_process() {
    if let Ok(case) = std::env::var(CHILD) {
        end_by_signals(&case);
    }
    survived("unwatched", 128 + 2);
    // A busy host may leave a child little of the second in which it survives.
    let survives = (0..5).any(|_| survived("repeated", 128 + 15) > 10);
    assert!(survives, "timeout(1) sends two");
}

/// Runs a child that is ended by signals with that status, and returns how many it has survived.
fn survived(case: &str, status: i32) -> usize {
    let program = std::env::current_exe().expect("its own program");
    let ended = Command::new(program)
        .arg("a_later_signal_or_one_that_nobody_watches_for_ends_the_process")
        .env(CHILD, case)
        .output()
        .expect("a child");
    assert_eq!(ended.status.code(), Some(status), "{case}: {ended:?}");
    String::from_utf8_lossy(&ended.stdout)
        .matches("survived")
        .count()
}

/// Is ended by a signal within a minute.
fn end_by_signals(case: &str) {
    let watch = Termination::watch().expect("handlers");
    if case == "unwatched" {
        drop(watch);
        send(Signal::INT);
        return;
    }
    send(Signal::TERM);
    assert!(watch.wait());
    let given_up_ns = monotonic_ns() + 60_000_000_000;
    while monotonic_ns() < given_up_ns {
        send(Signal::TERM);
        sleep_until(monotonic_ns() + 10_000_000);
        // Not by `println`, which the harness keeps.
        std::io::stdout().write_all(b"survived\n").expect("a pipe");
    }
}

fn send(signal: Signal) {
    kill_process(getpid(), signal).expect("this process");
}
