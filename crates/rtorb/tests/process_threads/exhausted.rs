//! A server that gets no thread for its only client.

use rtorb::thread::ThreadConfig;
use rtorb::{DispatchStrategy, Limits, Orb};
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{CLOSE_CONNECTION, Connection, REPLY, Request};
use rtorb_tests::running::until;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;
use std::time::Duration;

/// More than the C library keeps of threads that have ended.
const STACK_BYTES: u64 = 64 << 20;

pub(crate) fn a_client_for_whom_there_is_no_thread_is_refused_and_the_server_serves_the_next_one() {
    // The server looks for threads that have ended when it looks at its connections.
    let limits = Limits::with(|limits| limits.idle_buffer_time = Duration::from_millis(20));
    let builder = Orb::builder().dispatch(DispatchStrategy::ThreadPerConnection);
    let ours = Ours::serve_as(builder.limits(limits).server_threads(ThreadConfig {
        stack_bytes: Some(STACK_BYTES as usize),
        ..ThreadConfig::default()
    }));
    let request = Request::two_way(&ours.key(ours.cubit.as_object()), "cube_void").empty();
    let ask = || Connection::to(ours.address()).ask(&request);
    // The thread that tries what the host allows had a stack, too. As it ended by itself, the C library may keep that for the next
    // thread, and frees it with that of a thread that is joined.
    until("all stacks of server threads are freed", || {
        assert_eq!(ask().expect("it serves").kind, REPLY);
        let is_freed = |_| {
            std::thread::sleep(Duration::from_millis(2));
            stacks() == 0
        };
        (0..500).any(is_freed).then_some(())
    });
    let before = ours.orb.connection_counts();
    for _ in 0..2 {
        let refused = without_memory_for_a_stack(ask).expect("a message");
        assert_eq!(refused.kind, CLOSE_CONNECTION);
    }
    let counts = ours.orb.connection_counts();
    assert_eq!(counts.accepted, before.accepted);
    assert_eq!(counts.refused, before.refused + 2);
    assert_eq!(ask().expect("there is memory again").kind, REPLY);
}

pub(crate) fn a_request_for_which_there_is_no_thread_is_transient_and_the_server_serves_the_next_one()
 {
    let builder = Orb::builder().dispatch(DispatchStrategy::ThreadPerRequest);
    let ours = Ours::serve_as(builder.server_threads(ThreadConfig {
        stack_bytes: Some(STACK_BYTES as usize),
        ..ThreadConfig::default()
    }));
    let request = Request::two_way(&ours.key(ours.cubit.as_object()), "cube_void").empty();
    let mut client = Connection::to(ours.address());
    let mut ask = || client.ask(&request).expect("a reply");
    assert_eq!(ask().status, 0);
    // The stack of a thread that has ended is freed when the next one starts.
    until(
        "the stacks of the I/O thread and of one other are left",
        || {
            let status = ask().status;
            assert_eq!(status, 0);
            (stacks() == 2).then_some(())
        },
    );
    let refused = with_bytes(process_bytes() - STACK_BYTES / 2, &mut ask);
    assert_eq!(refused.status, SYSTEM_EXCEPTION);
    assert_eq!(refused.exception().0, "IDL:omg.org/CORBA/TRANSIENT:1.0");
    assert_eq!(ask().status, 0, "there is memory again");
}

/// The reply status of a system exception.
const SYSTEM_EXCEPTION: u32 = 2;

/// Runs `what` while the process may have half of a stack more than it has.
fn without_memory_for_a_stack<T>(what: impl FnOnce() -> T) -> T {
    with_bytes(process_bytes() + STACK_BYTES / 2, what)
}

/// Runs `what` while the process may have so many bytes.
fn with_bytes<T>(bytes: u64, what: impl FnOnce() -> T) -> T {
    let before = getrlimit(Resource::As);
    let limit = Rlimit {
        current: Some(bytes),
        ..before
    };
    setrlimit(Resource::As, limit).expect("it is lowered");
    let seen = what();
    setrlimit(Resource::As, before).expect("it is the soft limit");
    seen
}

/// The number of stacks of server threads: of mappings that are written to and as large.
fn stacks() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux has it");
    let is_stack = |line: &&str| {
        let (range, access) = line.split_once(' ').expect("a range and its access");
        let ends = range.split_once('-').expect("a range");
        let [start, end] = [ends.0, ends.1].map(|end| u64::from_str_radix(end, 16));
        access.starts_with("rw") && end.expect("a number") - start.expect("a number") >= STACK_BYTES
    };
    maps.lines().filter(is_stack).count()
}

/// The size of the process's address space.
fn process_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = statm.split(' ').next().and_then(|pages| pages.parse().ok());
    let pages: u64 = pages.expect("a number");
    pages * rustix::param::page_size() as u64
}
