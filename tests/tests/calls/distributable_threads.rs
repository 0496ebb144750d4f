//! A distributable thread through three processes is cancelled in all of them, and leaves nothing behind.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use rtorb::rt::{EarliestDeadlineFirst, SpawnOptions};
use rtorb::thread::ThreadConfig;
use rtorb::{ExceptionKind, Orb};
use rtorb_tests::running::{Running, until};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Relay;

/// How the second and the third process serve. In a pool, more and more threads of the second would open connections to the third.
const WAYS: [[&str; 2]; 3] = [
    ["thread_per_connection", "reactive"],
    ["reactive", "thread_per_connection"],
    ["thread_per_connection", "worker_pool"],
];

/// Threads that are cancelled one after the other.
const ROUNDS: usize = 20;

//= RT-CORBA 1.2 §Distributable Threads
//% test
#[test]
fn a_cancellation_crosses_three_processes_and_frees_what_the_thread_had() {
    for way in WAYS {
        let scratch = Scratch::new();
        let (last_file, middle_file) = (scratch.join("last"), scratch.join("middle"));
        let (last, reference) = station(way[1], &last_file, None);
        let (middle, first) = station(way[0], &middle_file, Some(&reference));
        let orb = Orb::builder().build().expect("an ORB");
        let relay = Relay::unchecked_narrow(orb.string_to_object(&first).expect("a reference"));
        let mut had = None;
        let mut took = Vec::new();
        for _ in 0..ROUNDS {
            took.push(cancel_one(&orb, &relay, &last_file));
            // Outside of a distributable thread the stations wait for nothing: no thread of theirs is lost.
            assert_eq!(relay.pass_on().map(|way| way.len()), Ok(0), "{way:?}");
            let have = || [&last, &middle].map(|process| threads_and_descriptors(process.id()));
            let had: [_; 2] = *had.get_or_insert_with(have);
            // The connections of a thread that has ended close a moment later.
            until(
                "the processes have no more threads and descriptors than after the first round",
                || {
                    let have = have().concat();
                    have.iter()
                        .zip(had.concat())
                        .all(|(has, had)| *has <= had)
                        .then_some(())
                },
            );
        }
        took.sort_unstable();
        println!(
            "{way:?}: {} us at most, median {} us",
            took[ROUNDS - 1],
            took[ROUNDS / 2]
        );
        relay.shutdown().expect("it is sent");
        let last = Relay::unchecked_narrow(orb.string_to_object(&reference).expect("one"));
        last.shutdown().expect("it is sent");
    }
}

/// Cancels a thread once it is in the last process; returns how long it took until it was back here, in microseconds.
fn cancel_one(orb: &Orb, relay: &Relay, last: &Path) -> u128 {
    let [arrived, cancelled] = ["arrived", "cancelled"].map(|what| last.with_extension(what));
    let current = orb.scheduling_current(EarliestDeadlineFirst);
    let relay = relay.clone();
    let calling = current.spawn(
        &SpawnOptions::default(),
        &ThreadConfig::default(),
        move || {
            let ended = relay.pass_on().map(|_| ());
            (ended, Instant::now())
        },
    );
    let calling = calling.expect("a thread");
    let id = calling.thread().id().to_string();
    let said = |file: &Path| (fs::read_to_string(file).ok()? == id).then_some(());
    until("the thread is in the last process", || said(&arrived));
    let begun = Instant::now();
    calling.thread().cancel().expect("it runs");
    let (ended, at) = calling.join().expect("no panic");
    assert_eq!(
        ended.map_err(|it| it.kind),
        Err(ExceptionKind::ThreadCancelled)
    );
    until("the last process has seen it", || said(&cancelled));
    (at - begun).as_micros()
}

fn station(dispatch: &str, file: &Path, next: Option<&str>) -> (Running, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_station"));
    command.arg(dispatch).arg(file).args(next);
    Running::until_written(&mut command, file)
}

fn threads_and_descriptors(process: u32) -> [usize; 2] {
    ["task", "fd"].map(|what| {
        let folder = format!("/proc/{process}/{what}");
        fs::read_dir(folder).expect("the process runs").count()
    })
}
