use super::messages::{EventType, PacketData, Trace, TracePacket, TrackEvent};
use super::*;
use crate::records::{CallOutcome, CallRecord, CallSide, HostRecord, ProcessRecord, ThreadRecord};

/// Two clients' calls of one server, one of which waits while the other executes; and a oneway whose server is not recorded.
fn recording() -> Recording {
    let call = |side, connection, times: [u64; 3]| CallRecord {
        side,
        operation: "get".to_owned(),
        outcome: CallOutcome::Done,
        cpu: 0,
        priority: 5,
        request_id: 1,
        connection,
        first_ns: times[0],
        second_ns: times[1],
        last_ns: times[2],
    };
    let thread = |tid, calls| ThreadRecord {
        tid,
        name: format!("thread {tid}"),
        lane: Some("pool 1".to_owned()),
        calls,
        lost: 0,
    };
    let process = |pid, threads| ProcessRecord {
        pid,
        name: format!("process {pid}"),
        threads,
        unrecorded_threads: 0,
    };
    let client = vec![
        thread(11, vec![call(CallSide::Client, 1, [0, 10, 100])]),
        thread(
            12,
            vec![
                call(CallSide::Client, 2, [5, 15, 200]),
                call(CallSide::Client, 3, [210, 220, 230]),
            ],
        ),
    ];
    let server = vec![thread(
        21,
        vec![
            call(CallSide::Server, 1, [20, 30, 90]),
            call(CallSide::Server, 2, [25, 95, 190]),
        ],
    )];
    Recording {
        hosts: vec![HostRecord {
            name: "host".to_owned(),
            boot_id: Some("of the host".to_owned()),
            ahead_ns: 0,
            processes: vec![process(1, client), process(2, server)],
            kernel: Err("none".to_owned()),
        }],
    }
}

/// The events of tracks, with their times, in the order of the file.
fn events(trace: &Trace) -> Vec<(u64, &TrackEvent)> {
    let packets = trace.packet.iter();
    let events = packets.filter_map(|packet| match &packet.data {
        Some(PacketData::Event(event)) => Some((packet.timestamp(), event)),
        _ => None,
    });
    events.collect()
}

fn made() -> Trace {
    let (bytes, _) = recording().to_bytes();
    Trace::decode(&bytes[..]).unwrap()
}

/// An arrow begins where a client awaits its reply, passes the queue, and ends where the servant executes.
#[test]
fn arrows_lead_from_clients_over_queues_to_servants() {
    let trace = made();
    let mut arrows: Vec<(u64, Vec<u64>, Vec<u64>)> = Vec::new();
    for (at_ns, event) in events(&trace) {
        for flow in &event.flow_ids {
            match arrows.iter_mut().find(|(known, ..)| known == flow) {
                Some((_, through, _)) => through.push(at_ns),
                None => arrows.push((*flow, vec![at_ns], Vec::new())),
            }
        }
        for flow in &event.terminating_flow_ids {
            let known = arrows.iter_mut().find(|(known, ..)| known == flow);
            known.expect("it began").2.push(at_ns);
        }
    }
    let mut times: Vec<_> = arrows
        .into_iter()
        .map(|(_, begins, ends)| (begins, ends))
        .collect();
    times.sort();
    assert_eq!(times, [(vec![10, 20], vec![30]), (vec![15, 25], vec![95])]);
}

/// On each track, slices begin and end in the order of time, one in another, and all end.
#[test]
fn slices_nest_on_every_track() {
    let trace = made();
    let mut open: std::collections::BTreeMap<u64, (u64, usize)> = std::collections::BTreeMap::new();
    for (at_ns, event) in events(&trace) {
        let (last_ns, depth) = open.entry(event.track_uuid()).or_default();
        match event.r#type() {
            EventType::SliceBegin => *depth += 1,
            EventType::SliceEnd => *depth -= 1,
            _ => continue,
        }
        assert!(*last_ns <= at_ns, "{event:?}");
        *last_ns = at_ns;
    }
    assert!(open.values().all(|(_, depth)| *depth == 0), "{open:?}");
}

/// Two requests that wait at once are on two tracks of one name.
#[test]
fn overlapping_waits_are_on_tracks_of_one_name() {
    let trace = made();
    let names = trace.packet.iter().filter_map(|packet| match &packet.data {
        Some(PacketData::Track(track)) => track.name.clone(),
        _ => None,
    });
    let queues = names.filter(|name| name == "queue of thread 21 21");
    assert_eq!(queues.count(), 2);
}

/// Requests that waited for nothing are in no queue.
#[test]
fn requests_that_did_not_wait_are_in_no_queue() {
    let mut made = recording();
    for call in &mut made.hosts[0].processes[1].threads[0].calls {
        call.second_ns = call.first_ns;
    }
    let (bytes, _) = made.to_bytes();
    let trace = Trace::decode(&bytes[..]).unwrap();
    let is_queue = |packet: &TracePacket| match &packet.data {
        Some(PacketData::Track(track)) => track.name().starts_with("queue of"),
        _ => false,
    };
    assert!(!trace.packet.iter().any(is_queue));
    assert_eq!(Recording::of_bytes(&bytes).unwrap(), made);
}

/// A packet that may be much larger in memory is not decoded.
#[test]
fn packets_are_bounded() {
    let mut large = vec![0x0a];
    prost::encode_length_delimiter(5 << 20, &mut large).unwrap();
    large.resize(6 << 20, 0);
    let said = Recording::of_bytes(&large).unwrap_err();
    assert!(said.contains("more than 4194304 bytes"), "{said}");
}

/// A file with too many hosts is refused: the search for a host takes longer with each of them.
#[test]
fn hosts_are_bounded_over_the_whole_file() {
    let of_hosts = |(first, end): (usize, usize)| {
        let hosts = (first..end).map(|name| HostRecord {
            name: format!("host {name}"),
            processes: Vec::new(),
            ..recording().hosts.remove(0)
        });
        let hosts = hosts.collect();
        Recording { hosts }.to_bytes().0
    };
    for (parts, is_read) in [
        (vec![(0, 1000)], true),
        (vec![(0, 1001)], false),
        (vec![(0, 600), (400, 1000), (0, 1000)], true),
        (vec![(0, 600), (600, 1200)], false),
    ] {
        let bytes: Vec<u8> = parts.iter().copied().flat_map(of_hosts).collect();
        match Recording::of_bytes(&bytes) {
            Ok(read) => assert!(is_read && read.hosts.len() == 1000, "{parts:?}"),
            Err(said) => assert!(!is_read && said.contains("more than 1000 hosts"), "{said}"),
        }
    }
}

/// The largest recording that is made of processes can be read.
#[test]
fn the_largest_recording_is_small_enough() {
    let mut one = recording();
    let bytes = |made: &Recording| made.to_bytes().0.len() as u64;
    let small = bytes(&one);
    let process = &mut one.hosts[0].processes[1];
    let mut call = process.threads[0].calls[0].clone();
    call.operation = "x".repeat(48);
    (call.cpu, call.priority) = (u16::MAX, i16::MAX);
    (call.request_id, call.connection) = (u32::MAX, u64::MAX);
    call.first_ns = 1 << 62;
    call.second_ns = call.first_ns + (1 << 40);
    call.last_ns = call.second_ns + 1;
    process.threads[0].calls.push(call);
    let of_call = bytes(&one) - small;
    let calls = crate::gathering::CALLS_MAX as u64 * of_call;
    // The begin and the end of a handler of a timer have 32 bytes in the kernel's buffer, and fewer than 64 in the file.
    let kernel = crate::gathering::KERNEL_KIB_MAX * 1024 * 2;
    assert!(calls + kernel < Recording::BYTES_MAX, "{of_call} bytes");
}
