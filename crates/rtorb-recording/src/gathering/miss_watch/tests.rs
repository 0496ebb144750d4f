use rtorb::recorder::{Histogram, ThreadSnapshot};

use super::*;

const PROCESS: u32 = 7;

fn counted(side: CallSide, name: &str, timeouts: u64, deadline_misses: u64) -> CountedOperation {
    let mut outcomes = [0; 6];
    outcomes[CallOutcome::Timeout as usize] = timeouts;
    outcomes[CallOutcome::Done as usize] = 1_000;
    let none = Histogram::new(1.0, |_| 0);
    CountedOperation {
        name: name.to_owned(),
        side,
        outcomes,
        times: none.clone(),
        longest: std::time::Duration::ZERO,
        waits: none,
        deadline_misses,
        demotions: 0,
    }
}

fn thread(expired: u64, operations: Vec<CountedOperation>) -> ThreadSnapshot {
    ThreadSnapshot {
        thread: 1,
        name: "thread".to_owned(),
        lane: None,
        most_accepted: 0,
        refused: 0,
        shed: 0,
        expired,
        operations,
        events: Vec::new(),
        overwritten: 0,
    }
}

fn process(process: u32, threads: Vec<ThreadSnapshot>) -> ProcessSnapshot {
    ProcessSnapshot {
        process,
        name: "plant".to_owned(),
        at_ns: 0,
        started_ns: 0,
        threads,
        refused_threads: 0,
    }
}

/// What a watch says of counters of one thread, one look after another.
fn looks(counters: Vec<(u64, Vec<CountedOperation>)>) -> Vec<Vec<String>> {
    let mut watch = MissWatch::default();
    let looks = counters.into_iter().map(|(expired, operations)| {
        let now = process(PROCESS, vec![thread(expired, operations)]);
        let missed = watch.look(&now).into_iter();
        missed.map(|miss| miss.to_string()).collect()
    });
    looks.collect()
}

#[test]
fn what_was_missed_before_the_first_look_and_calls_in_time_are_no_miss() {
    let get = |timeouts| (0, vec![counted(CallSide::Client, "get", timeouts, 5)]);
    assert_eq!(
        looks(vec![get(3), get(3), get(4), get(4)]),
        [
            vec![],
            vec![],
            vec!["get, called by plant (7)".to_owned()],
            vec![]
        ]
    );
}

#[test]
fn each_kind_of_miss_is_found_and_named() {
    let all = |client: u64, server: u64, expired: u64| {
        let operations = vec![
            counted(CallSide::Client, "get", client, 0),
            counted(CallSide::Server, "get", 0, server),
        ];
        (expired, operations)
    };
    let found = looks(vec![
        all(0, 0, 0),
        all(1, 0, 0),
        all(1, 1, 0),
        all(1, 1, 1),
        all(2, 2, 2),
    ]);
    let client = "get, called by plant (7)".to_owned();
    let server = "get, served by plant (7)".to_owned();
    let expired = "a request to plant (7), before its servant was called".to_owned();
    assert_eq!(
        found,
        [
            vec![],
            vec![client.clone()],
            vec![server.clone()],
            vec![expired.clone()],
            vec![client, server, expired],
        ]
    );
}

#[test]
fn an_operation_that_is_called_for_the_first_time_may_miss_at_once() {
    let late = counted(CallSide::Server, "late", 0, 1);
    let found = looks(vec![(0, vec![]), (0, vec![late])]);
    assert_eq!(found[1], ["late, served by plant (7)"]);
}

#[test]
fn the_counters_of_all_threads_count_together_and_each_process_alone() {
    let mut watch = MissWatch::default();
    let get = |misses| thread(0, vec![counted(CallSide::Server, "get", 0, misses)]);
    let mut look = |id, threads| watch.look(&process(id, threads)).len();
    assert_eq!(look(1, vec![get(2), get(1)]), 0);
    assert_eq!(look(2, vec![get(4)]), 0, "the first look at it");
    assert_eq!(look(1, vec![get(2), get(2)]), 1);
    assert_eq!(look(2, vec![get(4)]), 0);
}

/// The part of a thread goes to a lane that counts from 0.
#[test]
fn counters_that_begin_again_are_no_miss_and_count_from_there() {
    let expired = |count| (count, vec![]);
    let found = looks(vec![expired(5), expired(0), expired(1)]);
    assert_eq!(found[1], Vec::<String>::new());
    assert_eq!(found[2].len(), 1);
}

#[test]
fn counters_that_cannot_be_are_read_without_a_panic() {
    let most = || {
        let operation = counted(CallSide::Client, "get", u64::MAX, u64::MAX);
        vec![thread(u64::MAX, vec![operation]); 2]
    };
    let mut watch = MissWatch::default();
    for _ in 0..2 {
        assert!(watch.look(&process(PROCESS, most())).is_empty());
    }
}
