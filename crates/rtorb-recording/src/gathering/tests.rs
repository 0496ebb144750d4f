use crate::records::{CallOutcome, CallSide};
use rtorb::recorder::RecordedLane;

use super::*;

fn event(thread: u32, second_ns: u64) -> CallEvent {
    CallEvent {
        thread,
        side: CallSide::Client,
        outcome: CallOutcome::Done,
        operation: "get".to_owned(),
        cpu: 0,
        priority: None,
        request_id: 1,
        connection: 1,
        first_ns: 10,
        second_ns,
        last_ns: 30,
    }
}

fn part(thread: u32, events: Vec<CallEvent>) -> ThreadSnapshot {
    ThreadSnapshot {
        thread,
        name: format!("thread {thread}"),
        lane: None,
        most_accepted: 0,
        refused: 0,
        shed: 0,
        expired: 0,
        operations: Vec::new(),
        events,
        overwritten: 0,
    }
}

fn gathered() -> Gathered {
    Gathered {
        record: ProcessRecord {
            pid: 1,
            name: "process".to_owned(),
            threads: Vec::new(),
            unrecorded_threads: 0,
        },
        next: vec![0; 2],
    }
}

#[test]
fn calls_of_all_processes_have_one_bound() {
    let mut room = 3;
    let mut processes = [gathered(), gathered()];
    for process in &mut processes {
        let events = vec![event(5, 20), event(5, 20)];
        process.add_part(0, &part(5, events), &mut room);
    }
    let found = processes.map(|process| {
        let thread = &process.record.threads[0];
        (thread.calls.len(), thread.lost)
    });
    assert_eq!(found, [(2, 0), (1, 1)]);
    assert_eq!(room, 0);
}

/// A thread that takes the part of another one may be seen with the lane of that one first.
#[test]
fn a_lane_is_taken_back() {
    let lane = RecordedLane {
        pool: 1,
        priority: 5,
    };
    let mut process = gathered();
    let mut look = |place, part: ThreadSnapshot| {
        process.add_part(place, &part, &mut 9);
        process.thread(part.thread, "").lane.clone()
    };
    let with_lane = ThreadSnapshot {
        lane: Some(lane),
        ..part(5, Vec::new())
    };
    assert_eq!(look(0, with_lane.clone()), Some(lane.to_string()));
    assert_eq!(look(0, part(5, Vec::new())), None);
    assert_eq!(look(0, with_lane), Some(lane.to_string()));
    // An ended thread of the same number had another part.
    let ended = ThreadSnapshot {
        name: String::new(),
        ..part(5, Vec::new())
    };
    assert_eq!(look(1, ended), Some(lane.to_string()));
}

#[test]
fn a_request_that_was_never_sent_has_no_second_time() {
    assert_eq!(of_event(&event(5, 0)).second_ns, 0);
    assert_eq!(of_event(&event(5, 9)).second_ns, 10);
}

#[test]
fn threads_have_the_ids_of_their_process() {
    assert_eq!(
        own_id("Name:\tx\nNSpid:\t4711\t12\nNSpgid:\t4711\t1\n"),
        Some(12)
    );
    assert_eq!(own_id("Name:\tx\nNSpid:\t4711\n"), Some(4711));
    assert_eq!(own_id(""), None);
}
