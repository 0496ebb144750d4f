//! Calls that miss the deadline of their operation's annotation: counted on both sides, and reported to the hook.

use super::network::Conditions;
use super::servant::{DEADLINE, Job, Worker};
use super::world::{Sending, Server, World};
use crate::timing::{OperationCounts, TimingLimit, TimingSide, TimingViolation};
use crate::{Deadlines, ExceptionKind, Orb, OrbBuilder};
use core::time::Duration;
use rtorb_os::sync::Mutex;
use std::sync::Arc;

/// Far longer than the deadline.
const LATE: Duration = Duration::from_millis(600);

fn late(number: u32) -> Job {
    Job {
        duration_ns: LATE.as_nanos() as u64,
        ..Job::small(number)
    }
}

/// What a hook was told.
type Violations = Arc<Mutex<Vec<TimingViolation>>>;

fn telling(builder: OrbBuilder) -> (OrbBuilder, Violations) {
    let violations = Violations::default();
    let into = Arc::clone(&violations);
    let builder = builder.on_timing_violation(move |violation| into.lock().push(*violation));
    (builder, violations)
}

fn client(world: &World, builder: OrbBuilder, server: &Server) -> (Orb, Worker) {
    let orb = world.client(builder);
    let object = orb
        .string_to_object(&server.reference)
        .expect("a reference");
    (orb, Worker(object))
}

fn counted(orb: &Orb, name: &str, side: TimingSide) -> OperationCounts {
    let mut all = orb.timing().into_iter();
    let found = all.find(|counts| (counts.operation.name(), counts.side) == (name, side));
    found.expect("it is counted")
}

#[test]
fn a_late_reply_is_missed_on_both_sides() {
    // The client waits for the network, too.
    let world = World::new(
        0,
        Conditions {
            delay_ns_max: 1_000_000,
            ..Conditions::PERFECT
        },
    );
    let (builder, at_server) = telling(Orb::builder());
    let server = world.serve(builder, Sending::ByEventLoop);
    let (builder, at_client) = telling(Orb::builder().deadlines(Deadlines::Count));
    let (orb, worker) = client(&world, builder, &server);
    worker.work(Job::small(0)).expect("it is served");
    worker.work(late(1)).expect("it is served");
    let [of_server, of_client] = [
        (&server.orb, &at_server, TimingSide::Server),
        (&orb, &at_client, TimingSide::Client),
    ]
    .map(|(orb, violations, side)| {
        let counts = counted(orb, "Worker::work", side);
        assert_eq!((counts.calls, counts.deadline_misses), (2, 1), "{side:?}");
        let violations = violations.lock();
        assert_eq!(violations.len(), 1, "{violations:?}");
        let violation = violations[0];
        assert_eq!(
            (violation.side, violation.kind),
            (side, TimingLimit::Deadline)
        );
        assert_eq!(violation.limit, DEADLINE);
        assert_eq!(violation.observed, counts.worst_response);
        violation.observed
    });
    assert_eq!(of_server, LATE);
    assert!(of_client > LATE && of_client <= LATE + Duration::from_millis(2));
}

#[test]
fn a_client_counts_what_it_did_not_get_in_time() {
    let world = World::perfect();
    let server = world.serve(Orb::builder(), Sending::ByEventLoop);
    let builder = Orb::builder().round_trip_timeout(Some(Duration::from_millis(400)));
    let (orb, worker) = client(&world, builder, &server);
    let failed = worker.work(late(0)).expect_err("too late");
    assert_eq!(failed.kind, ExceptionKind::Timeout);
    let counts = counted(&orb, "Worker::work", TimingSide::Client);
    assert_eq!((counts.calls, counts.deadline_misses), (1, 1));
}

#[test]
fn a_oneway_is_judged_where_it_is_served() {
    let world = World::perfect();
    let server = world.serve(Orb::builder(), Sending::ByEventLoop);
    let (orb, worker) = client(&world, Orb::builder(), &server);
    for job in [Job::small(0), late(1)] {
        worker.note(job).expect("it is sent");
    }
    world.pass(2 * LATE);
    let counts = counted(&server.orb, "Worker::note", TimingSide::Server);
    assert_eq!((counts.calls, counts.deadline_misses), (2, 1));
    let seen = orb.timing();
    assert!(seen.is_empty(), "its client waits for nothing: {seen:?}");
}

#[test]
fn a_hook_that_panics_or_calls_takes_nothing_with_it() {
    let world = World::perfect();
    let panicking = Orb::builder().on_timing_violation(|_| panic!("as the application wishes"));
    let server = world.serve(panicking, Sending::ByEventLoop);
    let own: Arc<Mutex<Option<Worker>>> = Arc::default();
    let times = Arc::new(Mutex::new(0));
    let (inner, counting) = (Arc::clone(&own), Arc::clone(&times));
    let counting_only = Orb::builder().deadlines(Deadlines::Count);
    let calling = counting_only.on_timing_violation(move |_| {
        *counting.lock() += 1;
        let worker = inner.lock().clone().expect("it was put there");
        worker.work(late(9)).expect("it is served, and late again");
    });
    let (orb, worker) = client(&world, calling, &server);
    *own.lock() = Some(worker.clone());
    for number in 0..2 {
        worker.work(late(number)).expect("it is served");
    }
    assert_eq!(*times.lock(), 2, "it is not told of itself");
    for (orb, side) in [
        (&orb, TimingSide::Client),
        (&server.orb, TimingSide::Server),
    ] {
        let counts = counted(orb, "Worker::work", side);
        assert_eq!((counts.calls, counts.deadline_misses), (4, 4), "{side:?}");
    }
    own.lock().take();
}
