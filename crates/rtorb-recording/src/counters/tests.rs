use std::time::Duration;

use rtorb::recorder::Histogram;

use super::*;

const LANE: RecordedLane = RecordedLane {
    pool: 2,
    priority: 60,
};

/// An operation whose counts all differ. Each tick of its histograms is a second.
fn counted(side: CallSide, name: &str) -> CountedOperation {
    CountedOperation {
        name: name.to_owned(),
        side,
        outcomes: [1, 2, 3, 4, 5, 6],
        times: Histogram::new(1e9, |bucket| if bucket == 1 { 21 } else { 0 }),
        longest: Duration::from_nanos(7),
        waits: Histogram::new(1e9, |bucket| if bucket == 3 { 8 } else { 0 }),
        deadline_misses: 9,
        demotions: 10,
    }
}

/// A thread of a lane that did not serve so many requests, by the reason.
fn thread([refused, shed, expired]: [u64; 3]) -> ThreadSnapshot {
    ThreadSnapshot {
        thread: 11,
        name: "worker".to_owned(),
        lane: Some(LANE),
        most_accepted: 12,
        refused,
        shed,
        expired,
        operations: vec![counted(CallSide::Server, "get")],
        events: Vec::new(),
        overwritten: 13,
    }
}

fn process(at_ns: u64, threads: Vec<ThreadSnapshot>) -> ProcessSnapshot {
    ProcessSnapshot {
        process: 7,
        name: "plant".to_owned(),
        at_ns,
        started_ns: 1_000,
        threads,
        refused_threads: 14,
    }
}

const fn unserved(refused: u64, shed: u64, expired: u64) -> UnservedRequests {
    UnservedRequests {
        refused,
        shed,
        expired,
    }
}

#[test]
fn each_counter_of_the_recorder_has_its_place() {
    let now = process(5_000, vec![thread([15, 16, 17]), thread([100, 200, 300])]);
    let counters = ProcessCounters::of(&now, None);
    let of_process = (counters.process, counters.name.as_str(), counters.for_ns);
    assert_eq!(of_process, (7, "plant", 4_000));
    assert_eq!(counters.refused_threads, 14);
    assert_eq!(counters.unserved, unserved(115, 216, 317));
    let [get] = &counters.operations[..] else {
        panic!("{counters:?}");
    };
    assert_eq!(
        (get.side, get.operation.as_str(), get.calls),
        ("server", "get", 42)
    );
    let failures = get.failures;
    let failures = [
        failures.user_exceptions,
        failures.system_exceptions,
        failures.timeouts,
        failures.transients,
    ];
    assert_eq!(failures, [4, 6, 8, 10]);
    assert_eq!((get.longest_ns, get.queued), (7, 16));
    assert!(get.p99_ns < get.queue_p99_ns, "{get:?}");
    assert_eq!((get.deadline_misses, get.demotions), (18, 20));
    let [first, _] = &counters.threads[..] else {
        panic!("{counters:?}");
    };
    assert_eq!((first.thread, first.calls, first.overwritten), (11, 21, 13));
    let [lane] = &counters.lanes[..] else {
        panic!("{counters:?}");
    };
    assert_eq!((lane.pool, lane.priority, lane.threads), (2, 60, 2));
    assert_eq!((lane.served, lane.most_accepted), (42, 12));
    assert_eq!(lane.unserved, unserved(115, 216, 317));
}

#[test]
fn requests_that_were_not_served_before_the_earlier_look_do_not_count() {
    let earlier = process(2_000, vec![thread([3, 10, 7]), thread([1, 9, 1])]);
    // The second part has gone to another lane, and there is a third one.
    let threads = vec![thread([5, 10, 11]), thread([0, 4, 0]), thread([20, 30, 40])];
    let now = process(5_000, threads);
    let counters = ProcessCounters::of(&now, Some(&earlier));
    assert_eq!(counters.for_ns, 3_000);
    assert_eq!(counters.unserved, unserved(22, 34, 44));
    assert_eq!(counters.lanes[0].unserved, unserved(25, 44, 51));
    let same = ProcessCounters::of(&now, Some(&now));
    assert_eq!(same.unserved, unserved(0, 0, 0));
}

/// They are another process's.
#[test]
fn counts_that_cannot_be_are_read_without_a_panic() {
    let now = process(0, vec![thread([u64::MAX; 3]); 2]);
    let most = unserved(u64::MAX, u64::MAX, u64::MAX);
    assert_eq!(ProcessCounters::of(&now, None).unserved, most);
    assert_eq!(ProcessCounters::of(&now, None).lanes[0].unserved, most);
}
