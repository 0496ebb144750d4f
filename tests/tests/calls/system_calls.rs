//! System calls of warm calls, counted by strace: two a side for a two-way call over sockets and through shared memory by
//! futex, fewer if nobody sleeps; one for a oneway that waits for nothing; none for a collocated call.
//!
//! A server that shuts down looks after its last reply until the client has read it, which takes more system calls on a busy host.
//! They are not counted.

use std::fs;
use std::path::Path;
use std::process::Command;

use rtorb_tests::running::{Running, output_of};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::skip;

/// The counts of N and 2 N calls differ by those of N calls; what start and end cost cancels out.
const CALLS: u64 = 2000;

#[test]
fn a_two_way_call_makes_two_system_calls_a_side() {
    if !traceable() {
        skip("system calls cannot be counted: apt-get install strace, and allow it to trace");
        return;
    }
    // With the recorder too, which reads the counter of the CPU for its times.
    let recorded: &[&str] = &["-ORBRecorder", "yes"];
    for (transport, options) in [("tcp", &[][..]), ("unix", &[]), ("tcp", recorded)] {
        if !options.is_empty() && !has_counter_clock() {
            skip(
                "the clock source is not the counter of the CPU, so the recorder reads the clock by system calls",
            );
            continue;
        }
        let once = count_with(options, transport, "call", CALLS);
        let twice = count_with(options, transport, "call", 2 * CALLS);
        for (side, once, twice) in [
            ("client", once.client, twice.client),
            ("server", once.server, twice.server),
        ] {
            let a_call = (twice as f64 - once as f64) / CALLS as f64;
            // A signal or a timer of the host may add one or the other; a third call a call would be 1.0.
            assert!(
                (a_call - 2.0).abs() < 0.02,
                "{transport} {options:?}, {side}: {a_call} a call, {once} and {twice} in all"
            );
        }
    }
}

#[test]
fn a_timed_call_makes_one_more_where_the_cpu_time_tells_of_an_overrun() {
    if !traceable() {
        skip("system calls cannot be counted: apt-get install strace, and allow it to trace");
        return;
    }
    if !reads_clock_without_system_call() {
        skip("the clock source is none that programs read by themselves");
        return;
    }
    for (clock, at_server) in [("elapsed", 2.0), ("cpu", 3.0)] {
        let once = count_timed(clock, CALLS);
        let twice = count_timed(clock, 2 * CALLS);
        for (side, once, twice, expected) in [
            ("client", once.client, twice.client, 2.0),
            ("server", once.server, twice.server, at_server),
        ] {
            let a_call = (twice as f64 - once as f64) / CALLS as f64;
            assert!(
                (a_call - expected).abs() < 0.02,
                "{clock}, {side}: {a_call} a call, {once} and {twice} in all"
            );
        }
    }
}

#[test]
fn a_call_with_an_enforced_budget_makes_at_most_one_more_for_its_timer() {
    if !traceable() {
        skip("system calls cannot be counted: apt-get install strace, and allow it to trace");
        return;
    }
    for (clock, without_timer) in [("elapsed", 2.0), ("cpu", 3.0)] {
        let once = count_timed_by(&["-ORBOverrun", "stop"], clock, CALLS);
        let twice = count_timed_by(&["-ORBOverrun", "stop"], clock, 2 * CALLS);
        let a_call = (twice.server as f64 - once.server as f64) / CALLS as f64;
        // The worst case is 10 s, in which these calls share one timer. Without sharing it would be 1.0 more.
        assert!(
            a_call < without_timer + 0.02,
            "{clock}: {a_call} a call, {} and {} in all",
            once.server,
            twice.server
        );
    }
}

#[test]
fn a_oneway_that_waits_for_nothing_is_one_system_call() {
    if !traceable() {
        skip("system calls cannot be counted: apt-get install strace, and allow it to trace");
        return;
    }
    for transport in ["tcp", "unix"] {
        let once = count(transport, "send", CALLS).client;
        let twice = count(transport, "send", 2 * CALLS).client;
        let a_oneway = (twice as f64 - once as f64) / CALLS as f64;
        // A call with a reply follows each hundredth, so that the sockets have room; flush with nothing left makes none.
        assert!(
            (a_oneway - 1.02).abs() < 0.02,
            "{transport}: {a_oneway} a oneway, {once} and {twice} in all"
        );
    }
}

#[test]
fn a_call_through_shared_memory_makes_two_system_calls_a_side_at_most() {
    if !traceable() {
        skip("system calls cannot be counted: apt-get install strace, and allow it to trace");
        return;
    }
    // To wake and to sleep. If the peer is already awake, or has replied already, a call needs less, and not in each run the same: the
    // difference of two runs says nothing.
    let begun = count("shm", "call", 1);
    let done = count("shm", "call", 2 * CALLS);
    for (side, begun, done) in [
        ("client", begun.client, done.client),
        ("server", begun.server, done.server),
    ] {
        let a_call = done.saturating_sub(begun) as f64 / (2 * CALLS) as f64;
        assert!(
            a_call < 2.02,
            "{side}: {a_call} a call, {begun} for one and {done} in all"
        );
    }
}

#[test]
fn a_collocated_call_makes_no_system_call() {
    if !traceable() {
        skip("system calls cannot be counted: apt-get install strace, and allow it to trace");
        return;
    }
    let count = |calls: u64| {
        let scratch = Scratch::new();
        let trace = scratch.join("trace");
        let mut command = strace(&trace, env!("CARGO_BIN_EXE_warm-calls"));
        output_of(command.arg("call-own").arg(calls.to_string()));
        total(&trace)
    };
    let (once, twice) = (count(CALLS), count(2 * CALLS));
    let a_call = (twice as f64 - once as f64) / CALLS as f64;
    assert!(a_call.abs() < 0.02, "{a_call} a call, {once} and {twice}");
}

struct Counts {
    client: u64,
    server: u64,
}

/// The system calls of a server and a client of ours that made so many calls of `cube_long`, or sent so many oneways.
fn count(transport: &str, how: &str, calls: u64) -> Counts {
    count_with(&[], transport, how, calls)
}

/// The same with options of both ORBs.
fn count_with(options: &[&str], transport: &str, how: &str, calls: u64) -> Counts {
    let scratch = Scratch::new();
    let endpoint = match transport {
        "tcp" => "iiop://127.0.0.1:0".to_owned(),
        "shm" => format!("shmiop://{}", scratch.join("socket").display()),
        _ => format!("uiop://{}", scratch.join("socket").display()),
    };
    let how_served = [&[&*endpoint], options].concat();
    traced(&scratch, ("serve", &how_served), (how, options), calls)
}

/// The same of an operation with a worst case, a deadline and a period.
fn count_timed(clock: &str, calls: u64) -> Counts {
    count_timed_by(&[], clock, calls)
}

/// The same with options of the server's ORB.
fn count_timed_by(options: &[&str], clock: &str, calls: u64) -> Counts {
    let how_served = [&["iiop://127.0.0.1:0", clock], options].concat();
    traced(
        &Scratch::new(),
        ("serve-timed", &how_served),
        ("call-timed", &[]),
        calls,
    )
}

/// What a server and a client cost together, each started by that word and these arguments.
fn traced(
    scratch: &Scratch,
    (serve, how_served): (&str, &[&str]),
    (call, how_called): (&str, &[&str]),
    calls: u64,
) -> Counts {
    let (ior, served, called) = (
        scratch.join("ior"),
        scratch.join("served"),
        scratch.join("called"),
    );
    let program = env!("CARGO_BIN_EXE_warm-calls");
    let mut server = strace(&served, program);
    let server = server.arg(serve).arg(&ior).args(how_served);
    let (server, references) = Running::until_written(server, &ior);
    let mut client = strace(&called, program);
    let client = client.arg(call).args(references.split(' '));
    output_of(client.arg(calls.to_string()).args(how_called));
    assert!(
        server.ended().success(),
        "the server ends when it is told to"
    );
    Counts {
        client: total(&called),
        server: total(&served),
    }
}

fn strace(trace: &Path, program: &str) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-o"]).arg(trace).arg(program);
    command
}

/// The number of system calls in strace's lines, `PROCESS CALL(...) = RESULT`, up to the first shutdown(2).
fn total(trace: &Path) -> u64 {
    let text = fs::read_to_string(trace).expect("strace wrote its lines");
    let calls = text.lines().filter_map(|line| line.split_once('('));
    // A call that another thread interrupts has a second line: `<... CALL resumed>`. Signals and ends have no call.
    let calls =
        calls.filter(|(call, _)| !["resumed", "---", "+++"].iter().any(|no| call.contains(no)));
    calls
        .take_while(|(call, _)| !call.ends_with(" shutdown"))
        .count() as u64
}

/// True if programs may read the kernel's clock source themselves.
fn has_counter_clock() -> bool {
    fs::read_to_string(CLOCK_SOURCE).is_ok_and(|source| source.trim() == "tsc")
}

/// The file with the kernel's clock source.
const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// True if CLOCK_MONOTONIC is answered by the vDSO.
fn reads_clock_without_system_call() -> bool {
    let by_itself = [
        "tsc",
        "kvm-clock",
        "hyperv_clocksource_tsc_page",
        "arch_sys_counter",
        "riscv_clocksource",
    ];
    fs::read_to_string(CLOCK_SOURCE).is_ok_and(|source| by_itself.contains(&source.trim()))
}

fn traceable() -> bool {
    let scratch = Scratch::new();
    let traced = strace(&scratch.join("trace"), "true").output();
    traced.is_ok_and(|output| output.status.success())
}
