//! Threads and connections of a server that 200 threads of one client call: the table of docs/explanation/architectures.md.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::thread;

use rtorb::{ConnectionStrategy, Orb, WaitStrategy};
use rtorb_tests::running::{Running, until};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Cubit;

const CLIENT_THREADS: usize = 200;

#[test]
fn the_page_of_architectures_says_how_many_threads_and_connections_a_server_has() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/explanation/architectures.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, table) = page.split_once("## Threads and connections").unwrap();
    for dispatch in [
        "thread_per_connection",
        "reactive",
        "leader_followers",
        "worker_pool",
    ] {
        let start = format!("| `{dispatch}` |");
        let row = table.lines().find_map(|line| line.strip_prefix(&start));
        let mut cells = row.unwrap().split('|').map(str::trim);
        let wait = WaitStrategy::LeaderFollowers;
        for connection in [
            ConnectionStrategy::Exclusive,
            ConnectionStrategy::Multiplexed { wait },
        ] {
            called(dispatch, connection, cells.next().unwrap());
        }
    }
}

/// Calls a server of that dispatch strategy from all threads, and waits until it has what a cell of the table says.
fn called(dispatch: &str, connection: ConnectionStrategy, cell: &str) {
    let scratch = Scratch::new();
    let file = scratch.join("ior");
    let mut command = Command::new(env!("CARGO_BIN_EXE_warm-calls"));
    command.arg("serve").arg(&file);
    command.args(["iiop://127.0.0.1:0", dispatch, "-ORBPoolThreads", "4"]);
    let (server, reference) = Running::until_written(&mut command, &file);
    let of_nobody = sockets(&server);
    let orb = Orb::builder().connection(connection).build().unwrap();
    let cubit: Cubit = orb.string_to_reference(&reference).unwrap();
    let (connected, counted) = (
        Barrier::new(CLIENT_THREADS + 1),
        Barrier::new(CLIENT_THREADS + 1),
    );
    thread::scope(|scope| {
        for _ in 0..CLIENT_THREADS {
            scope.spawn(|| {
                let cube = cubit.cube_long(3);
                connected.wait();
                counted.wait();
                assert_eq!(cube, Ok(27));
            });
        }
        connected.wait();
        // A thread of a call before may not have ended yet.
        let what = format!("{dispatch}, {connection}: {cell}");
        let is_so = std::panic::catch_unwind(|| {
            until(&what, || {
                let threads = fs::read_dir(format!("/proc/{}/task", server.id())).unwrap();
                let threads = of(threads.count(), "thread");
                let connections = of(sockets(&server) - of_nobody, "connection");
                (format!("{threads}, {connections}") == cell).then_some(())
            });
        });
        counted.wait();
        assert!(is_so.is_ok(), "{what}");
    });
    cubit.shutdown().unwrap();
    assert!(server.ended().success());
}

fn of(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn sockets(server: &Running) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{}/fd", server.id())).unwrap();
    let links = descriptors.filter_map(|descriptor| fs::read_link(descriptor.ok()?.path()).ok());
    let are_sockets = links.filter(|link| link.to_string_lossy().starts_with("socket:"));
    are_sockets.count()
}
