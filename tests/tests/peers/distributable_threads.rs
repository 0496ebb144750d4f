//! A distributable thread through omniORB, which knows neither its context nor CancelRequest, and through JacORB, which does not know its
//! context.

use std::fs;
use std::process::Command;
use std::time::Instant;

use rtorb::rt::{EarliestDeadlineFirst, SpawnOptions};
use rtorb::thread::ThreadConfig;
use rtorb::{ExceptionKind, Orb};
use rtorb_tests::peers::jacorb::jacorb;
use rtorb_tests::peers::omniorb::{Endpoint, omniorb};
use rtorb_tests::running::{Running, until};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::exchange::{Desk, Party};

/// The timeout of the peer's own calls, in milliseconds: then it tells the server behind it, or closes the connection. On a busy host the
/// thread is behind it, and cancelled, before.
const TIMEOUT_MS: &str = "5000";

#[test]
fn a_cancelled_thread_comes_back_from_omniorb_and_ends_behind_it_when_that_gives_up() {
    let Some(omniorb) = omniorb() else {
        return;
    };
    let scratch = Scratch::new();
    let options = ["--carry-threads", "-ORBclientCallTimeOutPeriod", TIMEOUT_MS];
    let (_middle, desk) = omniorb.serve("desk_server", &scratch, Endpoint::Tcp, &options);
    check_cancellation_through("omniORB", &desk, &scratch);
}

#[test]
fn a_cancelled_thread_comes_back_from_jacorb_and_ends_behind_it_when_that_gives_up() {
    let Some(jacorb) = jacorb() else {
        return;
    };
    let scratch = Scratch::new();
    let (_middle, desk) = jacorb.serve_carrying_threads("DeskServer", &scratch, TIMEOUT_MS);
    check_cancellation_through("JacORB", &desk, &scratch);
}

/// Cancels a thread that is in a process behind the peer's desk.
fn check_cancellation_through(peer: &str, desk: &str, scratch: &Scratch) {
    let file = scratch.join("last");
    let mut command = Command::new(env!("CARGO_BIN_EXE_station"));
    command.arg("thread_per_connection").arg(&file);
    let (_last, _) = Running::until_written(&mut command, &file);
    let orb = Orb::builder().build().expect("an ORB");
    let party = fs::read_to_string(file.with_extension("party")).expect("it is ready");
    let party: Party = orb.string_to_reference(&party).expect("a Party");
    let desk: Desk = orb.string_to_reference(desk).expect("a Desk");

    let current = orb.scheduling_current(EarliestDeadlineFirst);
    let calling = current.spawn(
        &SpawnOptions::default(),
        &ThreadConfig::default(),
        move || {
            let ended = desk.level_of(Some(&party)).map(|_| ());
            (ended, Instant::now())
        },
    );
    let calling = calling.expect("a thread");
    let id = calling.thread().id().to_string();
    let is_said = |what| {
        let said = fs::read_to_string(file.with_extension(what)).ok()?;
        (said == id).then_some(())
    };
    until("the thread is behind the peer", || is_said("arrived"));
    let begun = Instant::now();
    calling.thread().cancel().expect("it runs");
    let (ended, at) = calling.join().expect("no panic");
    assert_eq!(
        ended.map_err(|it| it.kind),
        Err(ExceptionKind::ThreadCancelled)
    );
    until(
        "the peer has given up, and the thread behind it is cancelled",
        || is_said("cancelled"),
    );
    println!(
        "back after {:?}, behind {peer} after {:?}",
        at - begun,
        begun.elapsed()
    );
}
