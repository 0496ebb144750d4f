//! Processes that share memory: killed and stopped at any moment, of another user, and what they leave behind.
//!
//! `RTORB_SHM_KILLS` is the number of kills of each side.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rtorb::{DispatchStrategy, ExceptionKind, Orb, OrbBuilder, SharedMemoryWait};
use rtorb_tests::ledger::Notes;
use rtorb_tests::ours::Ours;
use rtorb_tests::running::{
    Running, copy_program, outcome_of, signal_process, stop_process, until,
};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::skip;
use rtorb_tests::stubs::Cubit;
use rtorb_tests::stubs::ledgers::Ledger;

/// More than it may take on a loaded machine to find that a peer was killed, and less than the timeout of a call.
const SOON: Duration = Duration::from_secs(20);

fn kills() -> u64 {
    let number = std::env::var("RTORB_SHM_KILLS").ok();
    number.and_then(|number| number.parse().ok()).unwrap_or(60)
}

/// A moment inside or between calls, another one for each number.
fn sleep_until_moment(number: u64) {
    let random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    thread::sleep(Duration::from_micros(random % 20_000));
}

fn endpoint(path: &Path) -> String {
    format!("shmiop://{}", path.display())
}

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warm-calls"));
    command.args(arguments);
    command
}

fn cubit(builder: OrbBuilder, reference: &str) -> Cubit {
    let orb = builder.build().expect("an ORB");
    Cubit::unchecked_narrow(orb.string_to_object(reference).expect("a reference"))
}

/// How a sequence of calls ended.
struct End {
    /// The calls that returned.
    returned: u32,
    kind: ExceptionKind,
    at: Instant,
}

/// Calls until a call fails.
fn call_to_the_end(ledger: &Ledger) -> End {
    let mut number = 0_i32;
    loop {
        match ledger.note(number) {
            Ok(cube) => assert_eq!(cube, number.wrapping_pow(3)),
            Err(failed) => {
                return End {
                    returned: number.unsigned_abs(),
                    kind: failed.kind,
                    at: Instant::now(),
                };
            }
        }
        number += 1;
    }
}

#[test]
fn a_client_of_a_server_that_is_killed_gets_an_exception_soon() {
    let scratch = Scratch::new();
    let [socket, ior, count] = ["socket", "ior", "count"].map(|name| scratch.join(name));
    let listen = endpoint(&socket);
    let notes = Notes::open(&count);
    for number in 0..kills() {
        let (_, dispatch) = DispatchStrategy::ALL[number as usize % 6];
        let (_, wait) = SharedMemoryWait::ALL[number as usize % 4];
        let _ = fs::remove_file(&ior);
        // A server that was killed leaves its socket file; the next one takes its place.
        let mut command = program(&["serve-ledger", &ior.display().to_string(), &listen]);
        command.arg(dispatch.to_string()).arg(&count);
        let (server, reference) = Running::until_written(&mut command, &ior);
        let orb = Orb::builder().shared_memory_wait(wait).build();
        let object = orb.expect("an ORB").string_to_object(&reference);
        let ledger = Ledger::unchecked_narrow(object.expect("a reference"));
        let before = notes.count();
        let (end, took) = thread::scope(|scope| {
            let client = scope.spawn(|| call_to_the_end(&ledger));
            sleep_until_moment(number);
            let killed = Instant::now();
            drop(server);
            let end = client.join().expect("it does not panic");
            let took = end.at.saturating_duration_since(killed);
            (end, took)
        });
        let kinds = [ExceptionKind::CommFailure, ExceptionKind::Transient];
        let kind = end.kind;
        assert!(kinds.contains(&kind), "kill {number}, {dispatch}: {kind:?}");
        assert!(took < SOON, "kill {number}, {dispatch}: {took:?}");
        // Every call that returned was executed once, and the last one once or never.
        let (executed, returned) = (notes.count() - before, end.returned);
        assert!(
            [returned, returned + 1].contains(&executed),
            "kill {number}, {dispatch}: {returned} calls returned, {executed} were executed"
        );
    }
    let left: Vec<_> = fs::read_dir(&*scratch)
        .expect("the folder is there")
        .map(|file| file.expect("a file").file_name())
        .collect();
    assert!(
        left.len() <= 3,
        "more than the socket, the reference and the count: {left:?}"
    );
}

#[test]
fn a_server_is_not_disturbed_by_clients_that_are_killed() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let scratch = Scratch::new();
        let ior = scratch.join("ior");
        let listen = endpoint(&scratch.join("socket"));
        let dispatch = dispatch.to_string();
        let arguments = ["serve", &ior.display().to_string(), &listen, &dispatch];
        // A process of its own, because its descriptors are counted.
        let (server, reference) = Running::until_written(&mut program(&arguments), &ior);
        let open_files = || open_files(&server);
        let good = cubit(Orb::builder().round_trip_timeout(Some(SOON)), &reference);
        assert_eq!(good.cube_long(3), Ok(27), "{name}");
        let before = open_files();
        for number in 0..kills() / 6 {
            let client = Running::start(&mut program(&["call", &reference, "2000000000"]));
            until("the client is connected", || {
                (open_files() > before).then_some(())
            });
            sleep_until_moment(number);
            drop(client);
            assert_eq!(good.cube_long(3), Ok(27), "{name}, kill {number}");
        }
        let killed = Instant::now();
        until("all connections are closed", || {
            (open_files() <= before).then_some(())
        });
        assert!(killed.elapsed() < SOON, "{name}: {:?}", killed.elapsed());
    }
}

/// File descriptors of a server. One connection of a client has one.
fn open_files(server: &Running) -> usize {
    fs::read_dir(format!("/proc/{}/fd", server.id()))
        .expect("it runs")
        .count()
}

#[test]
fn a_call_to_a_server_that_is_stopped_ends_at_its_timeout() {
    let scratch = Scratch::new();
    let ior = scratch.join("ior");
    let listen = endpoint(&scratch.join("socket"));
    let arguments = ["serve", &ior.display().to_string(), &listen];
    let (server, reference) = Running::until_written(&mut program(&arguments), &ior);
    let timeout = Duration::from_millis(300);
    for (_, wait) in SharedMemoryWait::ALL {
        let cubit = cubit(Orb::builder().shared_memory_wait(wait), &reference);
        assert_eq!(cubit.cube_long(3), Ok(27));
        stop_process(server.id());
        let begun = Instant::now();
        let failed = cubit.with_timeout(timeout).cube_long(4);
        let failed = failed.expect_err("nobody replies");
        signal_process(server.id(), "CONT");
        assert_eq!(failed.kind, ExceptionKind::Timeout, "{wait}: {failed}");
        assert!(begun.elapsed() < SOON, "{wait}: {:?}", begun.elapsed());
        assert_eq!(cubit.cube_long(5), Ok(125), "{wait}: a new connection");
    }
}

/// No user and no group of anybody.
const OTHER: u32 = 65_533;

#[test]
fn a_client_of_another_user_is_refused_unless_its_group_is_trusted() {
    let scratch = Scratch::new();
    let socket = scratch.join("socket");
    let begin = |builder: OrbBuilder| {
        let ours = Ours::serve_as(builder.listen(&endpoint(&socket)));
        for path in [&socket, &scratch.to_path_buf()] {
            let all = fs::Permissions::from_mode(0o777);
            fs::set_permissions(path, all).expect("it is ours");
        }
        let text = ours.text(ours.cubit.as_object());
        (ours, text)
    };
    // Where others can reach it.
    let copy = scratch.join("program");
    copy_program(env!("CARGO_BIN_EXE_warm-calls"), &copy);
    let call = |reference: &str, options: &[&str]| {
        let mut command = Command::new(&copy);
        command.args(["call", reference, "3"]).args(options);
        outcome_of(command.uid(OTHER).gid(OTHER))
    };
    let (ours, reference) = begin(Orb::builder());
    if Command::new("true").uid(OTHER).gid(OTHER).status().is_err() {
        skip("a program of another user cannot be started: run as root");
        return;
    }
    let said = call(&reference, &[]).expect_err("it is of another user");
    assert!(said.contains("Transient"), "{said}");
    let good = cubit(Orb::builder(), &reference);
    assert_eq!(good.cube_long(3), Ok(27));
    drop((good, ours));
    // The server trusts the client's group now, and the client that of the server, which is root's.
    let (_ours, reference) = begin(Orb::builder().shared_memory_group(OTHER));
    let said = call(&reference, &[]).expect_err("the client does not trust the server");
    assert!(said.contains("Transient"), "{said}");
    call(&reference, &["-ORBShmGroup", "0"]).expect("both trust each other");
}
