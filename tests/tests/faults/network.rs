//! A network between client and server that loses, delays and reorders packets, or breaks.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rtorb_tests::faulty_link::{Faults, Link, SERVER};
use rtorb_tests::running::Running;
use rtorb_tests::skip;

use crate::calls::{Ends, SLACK, Server, TIMEOUT, ledger};

struct Hosts {
    link: Link,
    server: Server,
    _process: Running,
    reference: String,
}

/// Two hosts and a server on one; the calling thread is on the other.
fn hosts(seed: u64) -> Option<Hosts> {
    let started = Link::to_server(seed, || {
        let server = Server::at(format!("iiop://{SERVER}:2809"));
        let (process, reference) = server.start();
        (server, process, reference)
    });
    match started {
        Ok((link, (server, process, reference))) => Some(Hosts {
            link,
            server,
            _process: process,
            reference,
        }),
        Err(refused) => {
            skip(&format!("no network namespaces or tunnels here: {refused}"));
            None
        }
    }
}

fn set(number: &AtomicU32, to: u32) {
    number.store(to, Ordering::Relaxed);
}

/// Makes 300 calls beside what `fault` sets before the first.
fn calls_with(row: &str, fault: impl FnOnce(&Faults), ways: &[&str]) {
    let Some(hosts) = hosts(1) else { return };
    fault(&hosts.link.faults);
    let mut ledger = ledger(&hosts.reference);
    if ways.is_empty() {
        // Nothing is lost: a loaded machine alone makes calls so late.
        ledger = ledger.with_timeout(SLACK);
    }
    let ends = Ends::of_calls(&ledger, |ends| ends.returned + ends.failures() == 300);
    ends.check(row, hosts.server.notes.count(), ways);
    assert!(ends.returned > 250, "{row}: {ends:?}");
}

#[test]
fn packets_that_take_long() {
    let delayed = |faults: &Faults| set(&faults.delay_us, 5_000);
    calls_with("5 ms each way", delayed, &[]);
}

#[test]
fn packets_that_overtake_each_other() {
    let reordered = |faults: &Faults| set(&faults.jitter_us, 4_000);
    calls_with("reordered within 4 ms", reordered, &[]);
}

#[test]
fn packets_that_are_lost() {
    let lossy = |faults: &Faults| set(&faults.lost_per_mille, 20);
    // TCP repeats a lost packet after 200 ms, which is within the timeout; the second time after 400 ms more, which is not.
    calls_with("2 % lost", lossy, &["Timeout Maybe", "Timeout No"]);
}

#[test]
fn a_partition_that_ends() {
    let Some(hosts) = hosts(2) else { return };
    let faults = &hosts.link.faults;
    let ledger = ledger(&hosts.reference);
    let mut ends = Ends::of_calls(&ledger, |ends| ends.returned == 50);
    faults.cut.store(true, Ordering::Relaxed);
    let cut = Ends::of_calls(&ledger, |ends| ends.failures() == 3);
    faults.cut.store(false, Ordering::Relaxed);
    let after = Ends::of_calls(&ledger, |ends| ends.returned_since == 50);
    for part in [cut, after] {
        ends.join(part);
    }
    let ways = ["Timeout Maybe", "Timeout No"];
    ends.check("a partition of a second", hosts.server.notes.count(), &ways);
}

#[test]
fn a_server_whose_host_is_gone_is_half_open() {
    let Some(hosts) = hosts(3) else { return };
    let ledger = ledger(&hosts.reference);
    // None of them is late on a loaded machine, and executed although it failed.
    let patient = ledger.with_timeout(SLACK);
    let mut ends = Ends::of_calls(&patient, |ends| ends.returned == 50);
    // Nobody says that the connection has ended.
    hosts.link.faults.cut.store(true, Ordering::Relaxed);
    thread::sleep(TIMEOUT);
    let cut = Ends::of_calls(&ledger, |ends| ends.failures() == 5);
    ends.join(cut);
    let ways = ["Timeout Maybe", "Timeout No"];
    ends.check("half-open", hosts.server.notes.count(), &ways);
    assert_eq!(hosts.server.notes.count(), 50, "nothing arrived");
}
