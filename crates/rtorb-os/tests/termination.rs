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

#[test]
fn a_hangup_ends_a_watch_for_it_unless_the_process_ignores_it() {
    if std::env::var(CHILD).is_ok() {
        return hang_up();
    }
    for (case, disposition) in [
        ("watched", "--default-signal"),
        ("ignored", "--ignore-signal"),
    ] {
        let ended = Command::new("env")
            .arg(format!("{disposition}=HUP"))
            .arg(std::env::current_exe().expect("its own program"))
            .arg("a_hangup_ends_a_watch_for_it_unless_the_process_ignores_it")
            .env(CHILD, case)
            .output()
            .expect("a child");
        assert!(ended.status.success(), "{case}: {ended:?}");
    }
}

/// Watches for SIGHUP; if the process does not ignore it, sends it and waits for it.
fn hang_up() {
    let watch = Termination::watch_with_hangup().expect("handlers");
    if std::env::var(CHILD).as_deref() == Ok("ignored") {
        assert!(is_hangup_in("SigIgn") && !is_hangup_in("SigCgt"));
    } else {
        assert!(!watch.has_come());
        send(Signal::HUP);
        assert!(watch.wait());
    }
}

/// Returns true if SIGHUP is in a set of signals of this process (proc_pid_status(5)).
fn is_hangup_in(set: &str) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process");
    let mut sets = status.lines().filter_map(|line| line.split_once(':'));
    let (_, signals) = sets.find(|(name, _)| *name == set).expect("a set");
    let signals = u64::from_str_radix(signals.trim(), 16).expect("a mask");
    signals & 1 << (Signal::HUP.as_raw() - 1) != 0
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
