//! What the host runs out of harms who asked for too much, and only while it lasts.

use std::fs;
use std::net::SocketAddr;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rtorb::DispatchStrategy;
use rtorb::ior::Ior;
use rtorb_tests::raw::{Connection, REPLY, Request};
use rtorb_tests::running::{Running, until};
use rtorb_tests::scratch::Scratch;

/// A server that may open fewer files than there are clients.
const FILES_MAX: usize = 24;
const CLIENTS: usize = 60;

#[test]
fn a_server_without_files_serves_whom_it_has_idles_and_recovers() {
    for (dispatch, _) in DispatchStrategy::ALL {
        let scratch = Scratch::new();
        let file = scratch.join("ior");
        let mut command = Command::new("prlimit");
        command
            .arg(format!("--nofile={FILES_MAX}"))
            .arg(env!("CARGO_BIN_EXE_warm-calls"));
        command
            .arg("serve")
            .arg(&file)
            .args(["iiop://127.0.0.1:0", dispatch]);
        let (server, reference) = Running::until_written(&mut command, &file);
        let (address, key) = address_and_key(&reference);
        let mut first = Connection::to(address);
        assert!(is_served(&mut first, &key), "{dispatch}");
        let mut crowd = Vec::new();
        for _ in 0..CLIENTS {
            crowd.push(Connection::to(address));
            // Clients come faster than they are accepted, so that it may give way to them.
            if !is_served(&mut first, &key) {
                first = served(address, &key, &format!("{dispatch}: in the crowd"));
            }
        }
        // Behind the crowd, which keeps all files: one of it gives way.
        let mut late = served(address, &key, &format!("{dispatch}: behind the crowd"));
        let before = busy_ticks(server.id());
        thread::sleep(Duration::from_millis(500));
        let busy = busy_ticks(server.id()) - before;
        // 50 ticks are the whole time of one CPU.
        assert!(
            busy < 20,
            "{dispatch}: the server was busy with nothing for {busy} of 50 ticks"
        );
        assert!(
            is_served(&mut late, &key),
            "{dispatch}: in the crowd, later"
        );
        drop(crowd);
        served(address, &key, "there are files again");
    }
}

#[test]
fn a_server_without_memory_for_threads_serves_whom_it_has_and_recovers() {
    let scratch = Scratch::new();
    let file = scratch.join("ior");
    let mut command = Command::new("prlimit");
    // With an arena for each thread, the C library's reservations decide by chance whether the heap has room beside the stacks.
    command.env("MALLOC_ARENA_MAX", "1");
    // Room for some stacks of 2 MiB and not for as many as there are clients.
    command
        .arg("--as=100000000")
        .arg(env!("CARGO_BIN_EXE_warm-calls"));
    command
        .arg("serve")
        .arg(&file)
        .args(["iiop://127.0.0.1:0", "thread_per_connection"]);
    let (_server, reference) = Running::until_written(&mut command, &file);
    let (address, key) = address_and_key(&reference);
    let mut first = Connection::to(address);
    assert!(is_served(&mut first, &key));
    let mut crowd: Vec<_> = (0..CLIENTS).map(|_| Connection::to(address)).collect();
    let number = crowd
        .iter_mut()
        .filter_map(|connection| is_served(connection, &key).then_some(()))
        .count();
    assert!(
        (1..CLIENTS).contains(&number),
        "{number} of {CLIENTS} are served, the others told to go"
    );
    assert!(is_served(&mut first, &key), "in the crowd");
    drop(crowd);
    served(address, &key, "there is memory again");
}

/// Where the server of a reference is, and what it knows the object by.
fn address_and_key(reference: &str) -> (SocketAddr, Vec<u8>) {
    let ior: Ior = reference.parse().expect("a reference");
    let profile = ior.iiop_profiles().next().expect("an IIOP profile");
    (
        format!("{}:{}", profile.host, profile.port)
            .parse()
            .expect("loopback"),
        profile.object_key,
    )
}

/// Connects until it is served, as ORBs do: a client is refused if no connection has given way within 20 ms, as on a busy host.
fn served(address: SocketAddr, key: &[u8], what: &str) -> Connection {
    until(what, || {
        let mut connection = Connection::to(address);
        is_served(&mut connection, key).then_some(connection)
    })
}

fn is_served(connection: &mut Connection, key: &[u8]) -> bool {
    let request = Request {
        minor: 2,
        big: false,
        id: 1,
        reply: true,
        key,
        operation: "cube_long",
    };
    connection
        .ask(&request.of_long(3))
        .is_some_and(|answer| answer.kind == REPLY && answer.status == 0 && answer.long() == 27)
}

/// The process's CPU time in hundredths of a second, from /proc/PID/stat: utime and stime, fields 14 and 15.
fn busy_ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("the server runs");
    let behind_name = stat.rsplit(')').next().expect("a name in parentheses");
    let fields = behind_name.split_whitespace().skip(11).take(2);
    fields
        .map(|ticks| ticks.parse::<u64>().expect("a number"))
        .sum()
}
