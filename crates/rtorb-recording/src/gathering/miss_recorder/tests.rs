use super::*;
use crate::records::CallOutcome;

fn calls(count: usize) -> Vec<CallRecord> {
    let call = CallRecord {
        side: CallSide::Server,
        operation: "get".to_owned(),
        outcome: CallOutcome::Done,
        cpu: 0,
        priority: -1,
        request_id: 1,
        connection: 1,
        first_ns: 1,
        second_ns: 2,
        last_ns: 3,
    };
    vec![call; count]
}

fn thread(tid: u32, lane: Option<&str>, count: usize) -> ThreadRecord {
    ThreadRecord {
        tid,
        name: format!("thread {tid}"),
        lane: lane.map(str::to_owned),
        calls: calls(count),
        lost: 0,
    }
}

fn look(at_ns: u64, threads: Vec<ThreadRecord>) -> Look {
    Look {
        at_ns,
        threads: vec![threads],
    }
}

fn kept(looks: impl IntoIterator<Item = Look>, room: usize) -> KeptCalls {
    KeptCalls {
        looks: looks.into_iter().collect(),
        room,
        since_ns: 0,
    }
}

/// A process that has ended, or never was: nothing is known of its threads but what is kept.
fn of_process(kept: &KeptCalls) -> Vec<ThreadRecord> {
    let process = Gathered {
        record: ProcessRecord {
            pid: 0,
            name: "plant".to_owned(),
            threads: Vec::new(),
            unrecorded_threads: 2,
        },
        next: Vec::new(),
    };
    let record = kept.of_process(0, &process);
    assert_eq!(
        (record.name.as_str(), record.unrecorded_threads),
        ("plant", 2)
    );
    record.threads
}

#[test]
fn the_looks_of_a_thread_are_one_and_its_last_lane_counts() {
    let lost = ThreadRecord {
        lost: 4,
        ..thread(5, None, 0)
    };
    let kept = kept(
        [
            look(10, vec![thread(5, None, 2), thread(6, Some("lane"), 1)]),
            look(20, vec![lost]),
            look(30, vec![thread(5, Some("lane"), 3)]),
        ],
        0,
    );
    let found = of_process(&kept);
    let found: Vec<_> = found
        .iter()
        .map(|thread| (thread.tid, thread.calls.len(), thread.lost))
        .collect();
    assert_eq!(found, [(5, 5, 4), (6, 1, 0)]);
    assert_eq!(of_process(&kept)[0].lane.as_deref(), Some("lane"));
}

#[test]
fn looks_before_the_window_are_forgotten_and_give_their_room_back() {
    let mut kept = kept(
        [10, 20, 30].map(|at_ns| look(at_ns, vec![thread(5, None, 2)])),
        7,
    );
    kept.forget_before(20);
    kept.forget_before(15);
    assert_eq!((kept.looks.len(), kept.room, kept.since_ns), (2, 9, 20));
    assert_eq!(of_process(&kept)[0].lost, 0, "they are not wanted");
}

#[test]
fn the_first_begin_is_that_of_the_calls_that_a_look_since_a_time_has_found() {
    let begun = |first_ns| {
        let mut thread = thread(5, None, 1);
        thread.calls[0].first_ns = first_ns;
        thread
    };
    let kept = kept(
        [
            look(10, vec![begun(2)]),
            look(20, vec![begun(7), begun(5)]),
            look(30, vec![begun(3), begun(6)]),
        ],
        0,
    );
    let all = |_, _: &CallRecord| true;
    assert_eq!(kept.first_begin(10, all), Some(3));
    assert_eq!(kept.first_begin(10, |_, call| call.first_ns > 3), Some(5));
    assert_eq!(kept.first_begin(30, all), None);
    assert_eq!(kept.first_begin(0, |index, _| index > 0), None);
}

#[test]
fn without_room_for_a_look_the_oldest_calls_are_counted_as_lost() {
    let mut kept = kept(
        [10, 20, 30].map(|at_ns| look(at_ns, vec![thread(5, None, 2)])),
        ROOM_FOR_LOOK - 3,
    );
    kept.make_room();
    assert_eq!(kept.room, ROOM_FOR_LOOK + 1);
    let found = of_process(&kept);
    assert_eq!((found[0].calls.len(), found[0].lost), (2, 4));
    kept.make_room();
    assert_eq!(of_process(&kept)[0].lost, 4, "there is room");
}

#[test]
fn what_was_taken_out_of_a_process_is_not_there_again() {
    let mut process = Gathered {
        record: ProcessRecord {
            pid: 0,
            name: "plant".to_owned(),
            threads: vec![thread(5, None, 2), thread(6, None, 0)],
            unrecorded_threads: 0,
        },
        next: vec![7],
    };
    let taken = process.take_threads();
    assert_eq!(
        taken,
        [thread(5, None, 2)],
        "nothing was found of the other"
    );
    assert!(process.take_threads().is_empty());
    assert_eq!(process.next, [7]);
}
