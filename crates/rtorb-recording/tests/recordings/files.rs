//! Recordings are the same after they were written and read.

use proptest::prelude::*;
use rtorb_host::kernel_trace::{RecordedTrace, TraceEvent, TraceEventKind};
use rtorb_recording::joins::Joins;
use rtorb_recording::{
    CallOutcome, CallRecord, CallSide, HostRecord, ProcessRecord, Recording, ThreadRecord,
};

use crate::synthetic::{PLANTED, Planted, call, recording, thread};

/// The calls of each thread in one order.
fn sorted(mut recording: Recording) -> Recording {
    let processes = recording
        .hosts
        .iter_mut()
        .flat_map(|host| &mut host.processes);
    for thread in processes.flat_map(|process| &mut process.threads) {
        thread
            .calls
            .sort_by_key(|call| (call.first_ns, call.last_ns, call.request_id));
    }
    recording
}

fn again(recording: &Recording) -> Recording {
    let (bytes, left_out) = recording.to_bytes();
    assert_eq!(left_out, 0);
    Recording::of_bytes(&bytes).unwrap()
}

#[test]
fn a_recording_is_the_same_after_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording.pftrace");
    for planted in PLANTED {
        let mut recording = recording(planted);
        recording.hosts[0].processes[0].threads[0].lost = 12;
        assert_eq!(recording.write(&file).unwrap(), 0);
        let read = Recording::read(&file).unwrap();
        assert_eq!(sorted(read), sorted(recording));
    }
}

/// Files of several hosts one after another are one file, whose clocks may be apart.
#[test]
fn files_of_several_hosts_are_one_after_another() {
    let near = recording(Planted::Nothing);
    let mut far = recording(Planted::BusyNeighbour);
    far.hosts[0].name = "far".to_owned();
    far.hosts[0].ahead_ns = -500_000;
    let mut bytes = near.to_bytes().0;
    bytes.extend(far.to_bytes().0);
    let read = Recording::of_bytes(&bytes).unwrap();
    let mut both = near;
    both.add(far);
    assert_eq!(both.hosts.len(), 2);
    assert_eq!(sorted(read), sorted(both.clone()));
    assert_eq!(sorted(again(&both)), sorted(both));
}

/// Boards that were made from one image have one name.
#[test]
fn hosts_of_one_name_are_told_apart_by_their_boot_ids() {
    let near = recording(Planted::Nothing);
    let mut far = recording(Planted::BusyNeighbour);
    far.hosts[0].boot_id = Some("of another one".to_owned());
    let mut bytes = near.to_bytes().0;
    bytes.extend(far.to_bytes().0);
    let mut both = near.clone();
    both.add(far);
    assert_eq!(both.hosts.len(), 2);
    assert_eq!(
        sorted(Recording::of_bytes(&bytes).unwrap()),
        sorted(both.clone())
    );
    assert_eq!(sorted(again(&both)), sorted(both));
    // An older file does not say it: the name decides.
    let mut older = recording(Planted::FullQueue);
    older.hosts[0].boot_id = None;
    let older = again(&older);
    assert_eq!(older.hosts[0].boot_id, None);
    for (mut first, second) in [(older.clone(), near.clone()), (near.clone(), older)] {
        first.add(second);
        assert_eq!(first.hosts.len(), 1);
        assert_eq!(first.hosts[0].boot_id, near.hosts[0].boot_id);
    }
}

/// Files of one host are as if they were read apart and added.
#[test]
fn files_of_one_host_are_one_after_another() {
    let first = recording(Planted::Nothing);
    let mut second = recording(Planted::FullQueue);
    for process in &mut second.hosts[0].processes {
        process.pid += 1_000;
        process.threads[0].lost = 3;
    }
    let mut bytes = first.to_bytes().0;
    bytes.extend(second.to_bytes().0);
    let read = Recording::of_bytes(&bytes).unwrap();
    let mut both = first;
    both.add(second);
    assert_eq!(both.hosts.len(), 1);
    assert_eq!(sorted(read), sorted(both));
}

#[test]
fn two_recordings_of_one_process_stay_two() {
    let mut both = recording(Planted::Nothing);
    both.add(recording(Planted::FullQueue));
    assert_eq!(both.hosts.len(), 1);
    assert_eq!(sorted(again(&both)), sorted(both));
}

/// What has no place in the file is counted there.
#[test]
fn calls_that_are_left_out_are_lost() {
    let mut made = recording(Planted::Nothing);
    let caller = &mut made.hosts[0].processes[0].threads[0];
    caller.lost = 3;
    caller.calls[4].last_ns = 1;
    let (bytes, left_out) = made.to_bytes();
    assert_eq!(left_out, 1);
    let read = Recording::of_bytes(&bytes).unwrap();
    let caller = &read.hosts[0].processes[0].threads[0];
    assert_eq!((caller.calls.len(), caller.lost), (9, 4));
}

#[test]
fn other_files_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.pftrace");
    let said = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        Recording::read(&file).unwrap_err().to_string()
    };
    let missing = Recording::read(&folder.path().join("missing")).unwrap_err();
    assert!(
        missing.to_string().contains("missing: No such file"),
        "{missing}"
    );
    assert!(said(b"").contains("it has no track of a host"));
    assert!(said(b"# a text\n").contains("is no recording of rtorb"));
    let endless = Recording::read(std::path::Path::new("/dev/zero")).unwrap_err();
    let endless = endless.to_string();
    assert!(
        endless.contains("something else than a packet"),
        "{endless}"
    );
    let (whole, _) = recording(Planted::Nothing).to_bytes();
    assert!(said(&whole[..whole.len() / 2]).contains("is no recording of rtorb"));
}

/// However a file is damaged, reading ends with a recording or an error, and what was read can be judged.
#[test]
fn damaged_files_cause_no_panic() {
    let mut small = recording(Planted::FullQueue);
    let kernel = small.hosts[0].kernel.as_mut().unwrap();
    kernel
        .events
        .values_mut()
        .for_each(|events| events.truncate(5));
    let (whole, _) = small.to_bytes();
    let mut read = 0;
    for at in (0..whole.len()).step_by(7) {
        for changed in [0, 0xff, whole[at] ^ 1] {
            let mut bytes = whole.clone();
            bytes[at] = changed;
            let Ok(mut recording) = Recording::of_bytes(&bytes) else {
                continue;
            };
            read += 1;
            let joins = Joins::of(&recording);
            recording.align(&joins);
            if at % 35 == 0 {
                let judged = rtorb_recording::late::Judged::ByLimit(Some(1));
                rtorb_recording::late::late_calls(&recording, &joins, &judged);
            }
            let _ = recording.to_bytes();
        }
        let _ = Recording::of_bytes(&whole[..at]);
    }
    assert!(read > 0);
}

fn any_call() -> impl Strategy<Value = CallRecord> {
    let sides = [
        CallSide::Client,
        CallSide::Server,
        CallSide::Collocated,
        CallSide::Started,
    ];
    let outcomes = [
        CallOutcome::Transient,
        CallOutcome::Deferred,
        CallOutcome::Done,
        CallOutcome::UserException,
        CallOutcome::SystemException,
        CallOutcome::Timeout,
    ];
    let numbers = (any::<u16>(), any::<i16>(), 0..4_u32, 0..3_u64);
    let times = (0..1_000_u64, proptest::option::of(0..200_u64), 0..200_u64);
    (0..4_usize, 0..6_usize, "[a-c]{1,2}", numbers, times).prop_map(
        move |(side, outcome, operation, (cpu, priority, request_id, connection), times)| {
            let first_ns = times.0 + 1;
            let second_ns = times.1.map_or(0, |after_ns| first_ns + after_ns);
            CallRecord {
                side: sides[side],
                operation,
                outcome: outcomes[outcome],
                cpu,
                priority,
                request_id,
                connection,
                first_ns,
                second_ns,
                last_ns: first_ns.max(second_ns) + times.2,
            }
        },
    )
}

fn any_thread() -> impl Strategy<Value = Vec<CallRecord>> {
    proptest::collection::vec(any_call(), 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any calls, however they overlap: the file has them all, and the parts of each fill its time.
    #[test]
    fn any_calls_are_the_same_after_their_file(threads in proptest::collection::vec(any_thread(), 1..4)) {
        let record = |(index, calls): (usize, Vec<CallRecord>)| ThreadRecord {
            calls,
            lost: index as u64,
            ..thread(10 + index as i32, "a thread")
        };
        let threads = threads.into_iter().enumerate().map(record).collect();
        let process = ProcessRecord { pid: 9, name: "process".to_owned(), threads, unrecorded_threads: 0 };
        let host = HostRecord {
            name: "host".to_owned(),
            boot_id: None,
            ahead_ns: 0,
            processes: vec![process],
            kernel: Err("none".to_owned()),
        };
        let recording = Recording { hosts: vec![host] };
        prop_assert_eq!(by_content(again(&recording)), by_content(recording.clone()));
        let joins = Joins::of(&recording);
        let divider = rtorb_recording::parts::Divider::new(&recording, &joins);
        for (place, _) in recording.places() {
            let (begin_ns, end_ns) = divider.span(place);
            let parts = divider.parts(place, u64::MAX);
            let sum: u64 = parts.iter().map(|part| part.end_ns - part.begin_ns).sum();
            prop_assert_eq!(sum, end_ns - begin_ns);
        }
    }
}

/// Calls in an order that depends on nothing but themselves.
fn by_content(mut recording: Recording) -> Recording {
    for thread in &mut recording.hosts[0].processes[0].threads {
        thread.calls.sort_by_key(|call| format!("{call:?}"));
    }
    recording
}

/// A thread without calls, a record with no events, and names that look like others.
#[test]
fn odd_recordings_are_kept() {
    let odd = thread(5, "calls of 7");
    let mut overlapping = thread(7, "queue of 5");
    overlapping.calls = vec![
        call(CallSide::Client, "a", [10, 20, 40]),
        call(CallSide::Client, "b", [15, 25, 50]),
        call(CallSide::Server, "c", [5, 0, 60]),
    ];
    let record = RecordedTrace {
        events: [(
            3,
            vec![TraceEvent {
                at_ns: 9,
                kind: TraceEventKind::PageFault { thread: 7 },
            }],
        )]
        .into(),
        begin_ns: 1,
        ends_ns: [(3, 99)].into(),
        lost: 4,
        ..RecordedTrace::default()
    };
    let host = |name: &str, kernel| HostRecord {
        name: name.to_owned(),
        boot_id: None,
        ahead_ns: 0,
        processes: vec![ProcessRecord {
            pid: 5,
            name: "host x".to_owned(),
            threads: vec![odd.clone(), overlapping.clone()],
            unrecorded_threads: 3,
        }],
        kernel,
    };
    let made = Recording {
        hosts: vec![
            host("host", Ok(record)),
            host("", Err("no tracefs".to_owned())),
        ],
    };
    assert_eq!(sorted(again(&made)), sorted(made));
}
