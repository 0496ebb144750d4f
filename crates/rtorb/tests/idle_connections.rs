//! The memory of thousands of connections that are silent. It counts that of the whole process, so this is the only test of its
//! program. The clients are bare sockets, which cost the process nothing but descriptors.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rtorb::{DispatchStrategy, Limits, Orb};
use rtorb_os::memory::trim_heap;
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::Request;
use rtorb_tests::running::until;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The memory that a connection without a buffer may cost.
const OF_CONNECTION_MAX: i64 = 2 << 10;

/// A connection's buffer, which shows in the measurement.
const BUFFER: i64 = 8 << 10;

#[test]
fn a_silent_connection_costs_less_than_two_kibibytes_and_serves_again() {
    let count = raise_descriptors();
    for dispatch in [
        DispatchStrategy::WorkerPool,
        DispatchStrategy::LeaderFollowers,
        DispatchStrategy::Reactive,
    ] {
        let limits = Limits::with(|limits| {
            limits.connections_max = count;
            limits.idle_buffer_time = Duration::from_millis(800);
            // All of them connect and call before the first one has been silent for that time.
            limits.stranger_turns_max = 4 * count;
        });
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch).limits(limits));
        let request = Request::two_way(&ours.key(ours.cubit.as_object()), "cube_void").empty();
        // Everything but the connections has its memory.
        call(&mut connect(&ours), &request);

        let before = resident();
        let connected = (1..count).map(|number| {
            let mut client = connect(&ours);
            // When one is served, those before are accepted: the queue of the listening socket is short.
            if number % 64 == 0 || number == count - 1 {
                call(&mut client, &request);
            }
            client
        });
        let mut clients: Vec<_> = connected.collect();
        let connected = resident() - before;
        let per = |bytes: i64| bytes / count as i64;
        println!(
            "{dispatch}: {} bytes for a connection without a request",
            per(connected)
        );
        assert!(
            per(connected) < OF_CONNECTION_MAX,
            "{dispatch}: {connected}"
        );

        // On a busy host, the first ones are silent for long before the last ones have called, and all before it is measured.
        let (first, rest) = clients.split_at_mut(count / 8);
        let called = until("the buffers show in the memory", || {
            first.iter_mut().for_each(|client| call(client, &request));
            let called = (resident() - before - connected) / first.len() as i64;
            (called > BUFFER / 2).then_some(called)
        });
        rest.iter_mut().for_each(|client| call(client, &request));
        println!("{dispatch}: {called} bytes more after a request");
        let silent = until("the buffers are given back", || {
            let now = resident() - before;
            (per(now) < OF_CONNECTION_MAX).then_some(now)
        });
        println!("{dispatch}: {} bytes when it is silent", per(silent));
        clients.iter_mut().for_each(|client| call(client, &request));
        drop(clients);
        let left = until("the memory is returned", || {
            let now = resident() - before;
            // The table of connections keeps its places.
            (per(now) < OF_CONNECTION_MAX / 2).then_some(now)
        });
        println!("{dispatch}: {} KiB are kept when all have left", left >> 10);
        drop(ours);
        trim_heap();
    }
}

/// Raises the limit of descriptors; returns a number of connections, both ends of which it allows.
fn raise_descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let maximum = limit.maximum;
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("up to the hard limit");
    let descriptors = maximum.unwrap_or(u64::MAX).min(10_200);
    usize::try_from((descriptors - 200) / 2).expect("it is small")
}

fn connect(ours: &Ours) -> TcpStream {
    TcpStream::connect(ours.address()).expect("it listens")
}

/// Sends a request and receives the reply, which is one packet.
fn call(client: &mut TcpStream, request: &[u8]) {
    client.write_all(request).expect("there is room");
    let mut reply = [0; 512];
    let received = client.read(&mut reply).expect("a reply");
    assert!(received > 12 && reply[7] == 1, "{:?}", &reply[..received]);
}

/// The resident memory of this process, in bytes: the second number of /proc/PID/statm, in pages (proc_pid_statm(5)).
fn resident() -> i64 {
    let text = fs::read_to_string("/proc/self/statm").expect("this process");
    let pages: i64 = text
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("numbers");
    pages * rustix::param::page_size() as i64
}
