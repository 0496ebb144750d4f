//! The two ends of calls.

use rtorb_recording::joins::{CallPlace, Joins};
use rtorb_recording::{CallRecord, CallSide, HostRecord, ProcessRecord, Recording};

use crate::synthetic::{Planted, call, recording, thread};

/// A client and a server with these calls.
fn joined(client: Vec<CallRecord>, server: Vec<CallRecord>) -> Recording {
    let process = |pid: u32, calls| {
        let mut thread = thread(pid.cast_signed() + 1, "thread");
        thread.calls = calls;
        ProcessRecord {
            pid,
            name: format!("process {pid}"),
            threads: vec![thread],
            unrecorded_threads: 0,
        }
    };
    let host = |name: &str, process| HostRecord {
        name: name.to_owned(),
        boot_id: None,
        ahead_ns: 0,
        processes: vec![process],
        kernel: Err("none".to_owned()),
    };
    Recording {
        hosts: vec![
            host("near", process(1, client)),
            host("far", process(2, server)),
        ],
    }
}

fn place(host: usize, call: usize) -> CallPlace {
    CallPlace {
        host,
        process: 0,
        thread: 0,
        call,
    }
}

#[test]
fn every_call_joins_its_server() {
    let recording = recording(Planted::FullQueue);
    let joins = Joins::of(&recording);
    assert_eq!(joins.server_of.len(), 10);
    for (client, server) in &joins.server_of {
        let ends = [recording.call(*client), recording.call(*server)];
        assert_eq!(ends[0].request_id, ends[1].request_id);
        assert_eq!(ends[1].operation, "get");
    }
}

#[test]
fn a_connection_that_is_known_decides() {
    let client = call(CallSide::Client, "get", [0, 10, 100]);
    let own = call(CallSide::Server, "get", [20, 30, 40]);
    let other = CallRecord {
        connection: 8,
        ..own.clone()
    };
    for side in [CallSide::Client, CallSide::Started] {
        let client = CallRecord {
            side,
            ..client.clone()
        };
        let joins = Joins::of(&joined(vec![client], vec![other.clone(), own.clone()]));
        assert_eq!(joins.server_of, [(place(0, 0), place(1, 1))].into());
    }
}

/// Without connections, only what is not ambiguous joins.
#[test]
fn unknown_connections_join_by_time_or_not_at_all() {
    let unknown = |call: CallRecord| CallRecord {
        connection: 0,
        ..call
    };
    let client = unknown(call(CallSide::Client, "get", [0, 10, 100]));
    let server = unknown(call(CallSide::Server, "get", [20, 30, 40]));
    let longer = unknown(call(CallSide::Server, "get", [20, 30, 400]));
    let other = unknown(call(CallSide::Server, "set", [20, 30, 40]));
    let joins = Joins::of(&joined(
        vec![client.clone()],
        vec![longer, other, server.clone()],
    ));
    assert_eq!(joins.server_of, [(place(0, 0), place(1, 2))].into());
    let ambiguous = Joins::of(&joined(
        vec![client.clone()],
        vec![server.clone(), server.clone()],
    ));
    assert!(ambiguous.server_of.is_empty());
    let two_clients = Joins::of(&joined(vec![client.clone(), client], vec![server]));
    assert!(two_clients.server_of.is_empty());
}

/// On one host, a connection that uses an id again has the ends of each call in the order of time, oneways too.
#[test]
fn an_id_that_is_used_again_joins_by_time() {
    let call_at = |side, at_ns: u64| call(side, "get", [at_ns, at_ns + 10_000, at_ns + 20_000]);
    let starts = [100_000, 200_000, 300_000];
    let clients = starts.map(|at_ns| call_at(CallSide::Client, at_ns));
    let servers = [130_000, 215_000, 315_000].map(|at_ns| call_at(CallSide::Server, at_ns));
    let mut recording = joined(clients.to_vec(), servers.to_vec());
    let far = recording.hosts.pop().unwrap();
    recording.hosts[0].processes.extend(far.processes);
    let joins = Joins::of(&recording);
    let server = |call| CallPlace {
        process: 1,
        ..place(0, call)
    };
    let expected = [0, 1, 2].map(|call| (place(0, call), server(call)));
    assert_eq!(joins.server_of, expected.into());
}

/// Ends that are all alike are not compared each with each.
#[test]
fn many_ends_that_are_alike_are_joined_soon() {
    for connection in [0, 7] {
        let alike = |side| CallRecord {
            connection,
            ..call(side, "get", [1_000, 2_000, 3_000])
        };
        let clients = vec![alike(CallSide::Client); 100_000];
        let servers = vec![alike(CallSide::Server); 100_000];
        let joins = Joins::of(&joined(clients, servers));
        assert!(joins.server_of.is_empty());
    }
}

#[test]
fn calls_within_servants_are_found() {
    let outer = call(CallSide::Server, "outer", [0, 10_000, 1_000_000]);
    let inner = call(CallSide::Client, "inner", [20_000, 30_000, 900_000]);
    let later = call(CallSide::Client, "later", [1_100_000, 1_110_000, 1_200_000]);
    let recording = joined(vec![outer, later, inner], vec![]);
    let joins = Joins::of(&recording);
    assert_eq!(joins.within, [(place(0, 2), place(0, 0))].into());
    assert_eq!(joins.nested, [(place(0, 0), vec![place(0, 2)])].into());
}

/// The clock of the other host is 5,000 ns ahead; messages need 8 and 12 ns.
#[test]
fn clocks_are_aligned_by_calls() {
    let mut recording = joined(
        vec![call(CallSide::Client, "get", [0, 10, 100])],
        vec![call(CallSide::Server, "get", [5_018, 5_030, 5_088])],
    );
    let joins = Joins::of(&recording);
    recording.align(&joins);
    assert_eq!(recording.hosts[0].ahead_ns, 0);
    assert!((4_988..=5_008).contains(&recording.hosts[1].ahead_ns));
    // Nothing joins them: nothing is known.
    let mut apart = joined(vec![], vec![]);
    let joins = Joins::of(&apart);
    apart.align(&joins);
    assert_eq!(apart.hosts[1].ahead_ns, 0);
}

#[test]
fn a_oneway_ends_with_its_servant() {
    let client = call(CallSide::Client, "push", [0, 10, 12]);
    let server = call(CallSide::Server, "push", [20, 30, 400]);
    let mut recording = joined(vec![client], vec![server]);
    let far = recording.hosts.pop().unwrap();
    recording.hosts[0].processes.extend(far.processes);
    let joins = Joins::of(&recording);
    let divider = rtorb_recording::parts::Divider::new(&recording, &joins);
    assert_eq!(divider.span(place(0, 0)), (0, 400));
}
