//! The recorder, read from outside: what both ends of a call record of it, and what is counted.
//!
//! It is a program of its own, because the recorder is that of the whole process. Its tests run one after the other: they share the
//! recorder's places for threads and operations.

use rtorb::poa::DynamicServant;
use rtorb::recorder::{
    CallEvent, CallOutcome, CallSide, CountedOperation, EVENTS_MAX, OPERATIONS_MAX,
    ProcessSnapshot, ReadError, RecordedLane, THREADS_MAX, ThreadSnapshot,
};
use rtorb::rt::{Priority, RequestOrder, ThreadpoolLane};
use rtorb::skeleton::ServerCall;
use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb::timing::{EarlyCalls, ExecutionClock, Overrun};
use rtorb::{
    ConnectionStrategy, Deadlines, DispatchStrategy, ExceptionKind, Limits, ObjectRef, Orb,
    SystemException, WaitStrategy,
};
use rtorb_instruments::usage;
use rtorb_os::sched::current_policy;
use rtorb_tests::clockwork::Works;
use rtorb_tests::ours::Ours;
use rtorb_tests::relay::has_priorities;
use rtorb_tests::running::until;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Cubit;
use rtorb_tests::stubs::timing::Clockwork;
use std::fs::{self, File};
use std::process;
use std::sync::{Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

fn main() {
    rtorb_tests::alone::run_each(TESTS);
}

/// In their order.
const TESTS: &[(&str, fn())] = &[
    // First: later there is one.
    (
        "threads_that_start_it_at_once_start_one",
        threads_that_start_it_at_once_start_one,
    ),
    // While there are parts that no thread had.
    (
        "the_calls_of_a_lane_stay_its_own",
        the_calls_of_a_lane_stay_its_own,
    ),
    (
        "both_ends_of_a_call_are_joined_over_every_transport_and_strategy",
        both_ends_of_a_call_are_joined_over_every_transport_and_strategy,
    ),
    (
        "a_call_is_recorded_with_its_priority_and_outcome_and_counted",
        a_call_is_recorded_with_its_priority_and_outcome_and_counted,
    ),
    (
        "the_times_of_requests_in_a_queue_are_counted_apart",
        the_times_of_requests_in_a_queue_are_counted_apart,
    ),
    (
        "a_call_beyond_the_deadline_of_its_annotation_is_counted_at_both_ends",
        a_call_beyond_the_deadline_of_its_annotation_is_counted_at_both_ends,
    ),
    ("a_demoted_servant_is_counted", a_demoted_servant_is_counted),
    (
        "requests_that_are_not_served_are_counted_by_the_reason",
        requests_that_are_not_served_are_counted_by_the_reason,
    ),
    (
        "a_request_that_is_shed_for_a_more_critical_one_is_counted",
        a_request_that_is_shed_for_a_more_critical_one_is_counted,
    ),
    (
        "a_started_call_is_recorded_once_its_result_is_taken",
        a_started_call_is_recorded_once_its_result_is_taken,
    ),
    (
        "calls_of_a_thread_that_has_its_part_fault_no_page",
        calls_of_a_thread_that_has_its_part_fault_no_page,
    ),
    (
        "the_threads_of_lanes_are_known_by_their_lane",
        the_threads_of_lanes_are_known_by_their_lane,
    ),
    (
        "a_call_within_another_one_leaves_what_is_known_of_that",
        a_call_within_another_one_leaves_what_is_known_of_that,
    ),
    (
        "a_request_that_was_never_sent_is_told_from_one_that_went_over_no_connection",
        a_request_that_was_never_sent_is_told_from_one_that_went_over_no_connection,
    ),
    (
        "operations_that_an_object_does_not_have_take_no_place_of_a_server",
        operations_that_an_object_does_not_have_take_no_place_of_a_server,
    ),
    (
        "threads_that_end_leave_their_part_to_others_and_their_counts_stay",
        threads_that_end_leave_their_part_to_others_and_their_counts_stay,
    ),
    (
        "a_process_with_the_file_of_another_one_has_no_recorder_of_its_own",
        a_process_with_the_file_of_another_one_has_no_recorder_of_its_own,
    ),
    (
        "a_process_without_a_recorder_is_told_from_one_that_does_not_exist",
        a_process_without_a_recorder_is_told_from_one_that_does_not_exist,
    ),
    // Last: the parts of its threads have no place for operations of other tests.
    (
        "what_is_overwritten_and_what_has_no_place_is_counted",
        what_is_overwritten_and_what_has_no_place_is_counted,
    ),
];

fn snapshot() -> ProcessSnapshot {
    ProcessSnapshot::of_process(process::id()).expect("this process has a recorder")
}

/// Returns the events of a side of an operation, of all threads.
fn events(side: CallSide, operation: &str) -> Vec<CallEvent> {
    let snapshot = snapshot();
    let events = snapshot
        .threads
        .into_iter()
        .flat_map(|thread| thread.events);
    events
        .filter(|event| event.side == side && event.operation == operation)
        .collect()
}

fn counters(side: CallSide, operation: &str) -> Option<CountedOperation> {
    let mut all = snapshot().operations().into_iter();
    all.find(|it| it.side == side && it.name == operation)
}

/// Runs a client on a thread of its own, so that no other test has recorded anything there.
fn on_a_thread(run: impl FnOnce() + Send + 'static) {
    thread::spawn(run).join().expect("the client ends well");
}

/// A servant that has every operation.
struct Anything;

impl DynamicServant for Anything {
    fn repository_id(&self) -> &str {
        "IDL:Anything:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, operation: &str, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        match operation {
            "busy" | "busy_later" => Err(ExceptionKind::Transient.into()),
            "unknown" => Err(ExceptionKind::BadOperation.into()),
            _ => call.reply(|_| Ok(())),
        }
    }
}

/// Returns an object that has every operation, as a client with a recorder sees it.
fn recorded_object(ours: &Ours, connection: ConnectionStrategy) -> ObjectRef {
    let anything = ours.poa.activate_dynamic(Anything).expect("there is room");
    let orb = Orb::builder().recorder().connection(connection).build();
    let orb = orb.expect("the ORB can be built");
    orb.string_to_object(&ours.text(&anything))
        .expect("a reference")
}

/// Calls that no other test makes have this name.
fn call(object: &ObjectRef, operation: &str) {
    let called = object.invoke(operation, |_| Ok(()), |_| Ok(()));
    called.expect("it has every operation");
}

fn threads_that_start_it_at_once_start_one() {
    let together = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                together.wait();
                let orb = Orb::builder().recorder().build();
                let started_ns = snapshot().started_ns;
                drop(orb.expect("the ORB can be built"));
                together.wait();
                assert_eq!(snapshot().started_ns, started_ns);
            });
        }
    });
}

fn both_ends_of_a_call_are_joined_over_every_transport_and_strategy() {
    let scratch = Scratch::new();
    let endpoints = [
        "iiop://127.0.0.1:0".to_owned(),
        format!("uiop://{}", scratch.join("socket").display()),
        format!("shmiop://{}", scratch.join("memory").display()),
    ];
    for endpoint in endpoints {
        for (name, dispatch) in DispatchStrategy::ALL {
            for connection in [
                ConnectionStrategy::Exclusive,
                ConnectionStrategy::Multiplexed {
                    wait: WaitStrategy::LeaderFollowers,
                },
            ] {
                await_places();
                let server = Orb::builder().dispatch(dispatch).recorder();
                let ours = Ours::serve_as(server.listen(&endpoint));
                let what = format!("{name}, {endpoint}, {connection}");
                on_a_thread(move || {
                    let object = recorded_object(&ours, connection);
                    for _ in 0..3 {
                        call(&object, "joined");
                    }
                    check_joined(&what);
                });
            }
        }
    }
}

/// Waits until threads of servers that have ended leave the recorder places for others: on a busy host they end late.
fn await_places() {
    until("half of the recorder's places are free", || {
        let Ok(snapshot) = ProcessSnapshot::of_process(process::id()) else {
            // The first server starts it.
            return Some(());
        };
        let threads = snapshot.threads;
        let running = threads.iter().filter(|thread| !thread.name.is_empty());
        (running.count() < THREADS_MAX / 2).then_some(())
    });
}

/// Checks what both ends have recorded of three calls of this thread.
fn check_joined(what: &str) {
    let mut called = events(CallSide::Client, "joined");
    called.retain(|event| event.thread == this_thread());
    assert_eq!(called.len(), 3, "{what}");
    // A server records a call when it has replied.
    let served = until(&format!("all calls are recorded: {what}"), || {
        let mut served = events(CallSide::Server, "joined");
        served.retain(|event| event.connection == called[0].connection);
        (served.len() == 3).then_some(served)
    });
    for call in called {
        assert_ne!(call.connection, 0, "{what}");
        assert!(
            call.first_ns <= call.second_ns && call.second_ns <= call.last_ns,
            "{what}"
        );
        let key = (call.connection, call.request_id);
        let mut of_call = served
            .iter()
            .filter(|it| (it.connection, it.request_id) == key);
        let (Some(server), None) = (of_call.next(), of_call.next()) else {
            panic!("{what}: {call:?} is not joined with one of {served:?}");
        };
        assert_eq!(server.outcome, CallOutcome::Done, "{what}");
        assert!(
            call.first_ns <= server.first_ns,
            "{what}: {call:?} {server:?}"
        );
        assert!(server.first_ns <= server.second_ns, "{what}: {server:?}");
        assert!(
            server.second_ns <= call.last_ns,
            "{what}: {call:?} {server:?}"
        );
    }
}

fn a_call_is_recorded_with_its_priority_and_outcome_and_counted() {
    let ours = Ours::serve_as(Orb::builder().recorder());
    on_a_thread(move || {
        let orb = Orb::builder()
            .recorder()
            .best_effort()
            .build()
            .expect("the ORB can be built");
        let object = orb
            .string_to_object(&ours.text(ours.cubit.as_object()))
            .expect("a reference");
        let cubit = Cubit::unchecked_narrow(object);
        let current = orb.rt_current();
        current
            .set_the_priority(Priority::new(7).expect("a priority"))
            .expect("best effort");
        for _ in 0..5 {
            assert_eq!(cubit.cube_short(3).expect("it is served"), 27);
        }
        let calls = events(CallSide::Client, "cube_short");
        assert_eq!(calls.len(), 5);
        assert!(
            calls
                .iter()
                .all(|it| it.outcome == CallOutcome::Done && it.priority == Some(7))
        );
        let counted = counters(CallSide::Client, "cube_short").expect("it was called");
        assert_eq!(
            (counted.calls(), counted.outcomes[0], counted.times.count()),
            (5, 5, 5)
        );
        let lasted = calls
            .iter()
            .map(|it| it.last_ns - it.first_ns)
            .max()
            .expect("five calls");
        let longest = counted.longest.as_nanos() as u64;
        assert!(
            longest.abs_diff(lasted) <= 1 + lasted / 1000,
            "{longest} ns, {lasted} ns"
        );
        assert!(counted.times.quantile(1.0).expect("five calls") >= counted.longest);
    });
}

fn this_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

fn own_part() -> ThreadSnapshot {
    let mut threads = snapshot().threads.into_iter();
    threads
        .find(|it| it.thread == this_thread())
        .expect("it has called")
}

/// Returns the calls that the part of the calling thread has counted, and those without a place of their own.
fn own_calls() -> (u64, u64) {
    let operations = own_part().operations;
    let others = operations.iter().filter(|it| it.name == "...");
    let others = others.map(CountedOperation::calls).sum();
    let all = operations.iter().map(CountedOperation::calls).sum();
    (all, others)
}

fn the_times_of_requests_in_a_queue_are_counted_apart() {
    let queued = Orb::builder()
        .dispatch(DispatchStrategy::WorkerPool)
        .recorder();
    let (queued, direct) = (
        Ours::serve_as(queued),
        Ours::serve_as(Orb::builder().recorder()),
    );
    on_a_thread(move || {
        for (ours, operation, waited) in [(&queued, "queued", 3), (&direct, "direct", 0)] {
            let object = recorded_object(ours, ConnectionStrategy::Exclusive);
            for _ in 0..3 {
                call(&object, operation);
            }
            let counted = until("all calls are recorded", || {
                counters(CallSide::Server, operation).filter(|it| it.calls() == 3)
            });
            assert_eq!(counted.waits.count(), waited, "{operation}");
        }
    });
}

/// Returns an object with annotated operations, as a client that only counts deadlines sees it.
fn clockwork(ours: &Ours, works: Works) -> Clockwork {
    let object: Clockwork = ours.poa.activate(works).expect("there is room");
    let orb = Orb::builder().recorder().deadlines(Deadlines::Count);
    let orb = orb.build().expect("the ORB can be built");
    let object = orb.string_to_object(&ours.text(object.as_object()));
    Clockwork::unchecked_narrow(object.expect("a reference"))
}

fn a_call_beyond_the_deadline_of_its_annotation_is_counted_at_both_ends() {
    let ours = Ours::serve_as(Orb::builder().recorder());
    on_a_thread(move || {
        let object = clockwork(&ours, Works::default());
        // Twice the deadline.
        object.answer_after(600_000).expect("it is served");
        object.plain().expect("it is served");
        for (operation, misses) in [("answer_after", 1), ("plain", 0)] {
            for side in [CallSide::Client, CallSide::Server] {
                let counted = until("the call is recorded", || {
                    counters(side, operation).filter(|it| it.calls() == 1)
                });
                assert_eq!(counted.deadline_misses, misses, "{operation}, {side:?}");
                assert_eq!(counted.since(&counted).deadline_misses, 0);
            }
        }
    });
}

fn a_demoted_servant_is_counted() {
    if !has_priorities() {
        return;
    }
    let serving = ThreadConfig {
        policy: Some(SchedPolicy::Fifo(2)),
        ..ThreadConfig::default()
    };
    let builder = Orb::builder()
        .server_threads(serving)
        .execution_clock(ExecutionClock::Elapsed)
        .overrun(Overrun::Demote(1));
    let ours = Ours::serve_as(builder.recorder());
    on_a_thread(move || {
        let until_demoted = |_| {
            until("the servant is demoted", || {
                (current_policy() == SchedPolicy::Fifo(1)).then_some(())
            });
            Ok(())
        };
        let object = clockwork(&ours, Works::executing(until_demoted));
        object.execute(0).expect("it is served");
        let counted = until("the call is recorded", || {
            counters(CallSide::Server, "execute").filter(|it| it.calls() == 1)
        });
        assert_eq!(counted.demotions, 1);
    });
}

/// Returns the sum of a counter of all threads.
fn sum_of(counter: fn(&ThreadSnapshot) -> u64) -> u64 {
    snapshot().threads.iter().map(counter).sum()
}

fn requests_that_are_not_served_are_counted_by_the_reason() {
    let expired = |thread: &ThreadSnapshot| thread.expired;
    let refused = |thread: &ThreadSnapshot| thread.refused;
    let before = (sum_of(expired), sum_of(refused));

    let delay = EarlyCalls::Delay(Duration::from_secs(200));
    let ours = Ours::serve_as(Orb::builder().early_calls(delay).recorder());
    on_a_thread(move || {
        let object = clockwork(&ours, Works::default());
        object.again().expect("it is the first");
        let late = rtorb::with_deadline(Duration::from_secs(50), || object.again());
        let late = late.expect_err("the period is 100 s");
        assert_eq!(late.kind, ExceptionKind::Timeout);
    });
    assert_eq!(sum_of(expired), before.0 + 1);

    // One request is executed, one is queued, and two have no room.
    let limits = Limits::with(|limits| limits.queued_requests_max = 1);
    let builder = Orb::builder().dispatch(DispatchStrategy::WorkerPool);
    let ours = Ours::serve_as(builder.pool_threads(1).limits(limits).recorder());
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let works = Works::executing(move |_| {
        // It ends with its other end.
        let _ = gate.lock().expect("no panic").recv();
        Ok(())
    });
    let object = clockwork(&ours, works);
    thread::scope(|scope| {
        let calls = [(); 4].map(|()| scope.spawn(|| object.execute(0)));
        until("two are refused", || {
            (sum_of(refused) == before.1 + 2).then_some(())
        });
        drop(open);
        let ended = calls.map(|call| call.join().expect("no panic"));
        let transient = ended.iter().flat_map(|ended| ended.as_ref().err());
        assert!(
            transient
                .clone()
                .all(|exception| exception.kind == ExceptionKind::Transient)
        );
        assert_eq!(transient.count(), 2);
    });
}

fn a_request_that_is_shed_for_a_more_critical_one_is_counted() {
    if !has_priorities() {
        return;
    }
    let shed = |thread: &ThreadSnapshot| thread.shed;
    let before = sum_of(shed);
    let lane = ThreadpoolLane {
        lane_priority: Priority::new(2).expect("a priority"),
        static_threads: 1,
        order: RequestOrder::FifoShedding,
        ..ThreadpoolLane::default()
    };
    let limits = Limits::with(|limits| limits.queued_requests_max = 1);
    let builder = Orb::builder().dispatch(DispatchStrategy::Lanes);
    let ours = Ours::serve_as(builder.lanes([lane]).limits(limits).recorder());
    let (begun, begins) = mpsc::channel::<()>();
    let (open, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let works = Works::executing(move |_| {
        begun.send(()).expect("the test waits");
        // It ends with its other end.
        let _ = gate.lock().expect("no panic").recv();
        Ok(())
    });
    let object = clockwork(&ours, works);
    thread::scope(|scope| {
        let executed = scope.spawn(|| object.execute(0));
        begins.recv().expect("it is executed");
        let queued = scope.spawn(|| object.execute(0));
        until("it waits", || {
            let threads = snapshot().threads;
            let mut lanes = threads.iter().filter(|it| it.lane == Some(self::lane(2)));
            lanes.any(|it| it.most_accepted >= 2).then_some(())
        });
        // Its deadline is counted, not enforced.
        let critical = scope.spawn(|| object.answer_after(0));
        let ended = queued.join().expect("no panic");
        let ended = ended.expect_err("a more critical request has its place");
        assert_eq!(ended.kind, ExceptionKind::Transient);
        drop(open);
        executed.join().expect("no panic").expect("it is served");
        critical.join().expect("no panic").expect("it is served");
    });
    assert_eq!(sum_of(shed), before + 1);
}

fn calls_of_a_thread_that_has_its_part_fault_no_page() {
    await_places();
    let ours = Ours::serve_as(Orb::builder().recorder());
    on_a_thread(move || {
        let object = recorded_object(&ours, ConnectionStrategy::Exclusive);
        call(&object, "faultless");
        let before = usage::of_thread().page_faults;
        for _ in 0..EVENTS_MAX {
            call(&object, "faultless");
        }
        // The calls have 12 pages of the recorder.
        let faults = usage::of_thread().page_faults.since(before).minor;
        assert!(faults < 6, "{faults}");
    });
}

fn a_started_call_is_recorded_once_its_result_is_taken() {
    for (wait, operation) in [
        (WaitStrategy::LeaderFollowers, "by_leader"),
        (WaitStrategy::Reactor, "by_reactor"),
        (WaitStrategy::ConnectionThread, "by_thread"),
    ] {
        await_places();
        let ours = Ours::serve_as(Orb::builder().recorder());
        on_a_thread(move || {
            let shared = ConnectionStrategy::Multiplexed { wait };
            let object = recorded_object(&ours, shared);
            let start = || object.start(operation, |_| Ok(()), |_| Ok(()));
            let (first, second, given_up) = (start(), start(), start());
            second.wait().expect("it is served");
            assert_eq!(events(CallSide::Started, operation).len(), 1);
            let own = this_thread();
            // A thread records what it has taken, of whatever thread.
            thread::scope(|scope| {
                scope.spawn(|| first.wait().expect("it is served"));
            });
            given_up.cancel();
            let calls = events(CallSide::Started, operation);
            assert_eq!(calls.len(), 2, "{calls:?}");
            for call in &calls {
                check_started(call, own, operation);
            }
            let counted = counters(CallSide::Client, operation).expect("it was called");
            assert_eq!(counted.calls(), 2);
        });
    }
    on_a_thread(|| {
        let ours = Ours::serve_as(Orb::builder().recorder());
        let (shared, exclusive) = (
            ConnectionStrategy::Multiplexed {
                wait: WaitStrategy::LeaderFollowers,
            },
            ConnectionStrategy::Exclusive,
        );
        for (connection, operation, outcome) in [
            (shared, "busy_later", CallOutcome::Transient),
            (exclusive, "unsent", CallOutcome::SystemException),
        ] {
            let object = recorded_object(&ours, connection);
            let started = object.start(operation, |_| Ok(()), |_| Ok(()));
            started.wait().expect_err("it fails");
            let calls = events(CallSide::Started, operation);
            assert_eq!(calls.len(), 1, "{calls:?}");
            assert_eq!(calls[0].outcome, outcome);
            assert_eq!(calls[0].second_ns == 0, operation == "unsent", "{calls:?}");
        }
    });
}

/// Checks what is recorded of a call that the thread `own` started, beside its server's end.
fn check_started(call: &CallEvent, own: u32, operation: &str) {
    assert_eq!((call.thread, call.outcome), (own, CallOutcome::Done));
    assert_ne!(call.connection, 0, "{call:?}");
    let served = until("the call is recorded at its server", || {
        let mut served = events(CallSide::Server, operation).into_iter();
        served.find(|it| (it.connection, it.request_id) == (call.connection, call.request_id))
    });
    let times = [
        call.first_ns,
        served.first_ns,
        served.second_ns,
        call.last_ns,
    ];
    assert!(times.is_sorted(), "{call:?} {served:?}");
    assert!(
        (call.first_ns..=call.last_ns).contains(&call.second_ns),
        "{call:?}"
    );
}

const fn lane(priority: i16) -> RecordedLane {
    RecordedLane { pool: 0, priority }
}

/// Serves calls in a lane, until the recorder has them. The server has ended then.
fn call_in_lane(RecordedLane { priority, .. }: RecordedLane, operation: &'static str, calls: u64) {
    let priority = Priority::new(priority).expect("a priority");
    let lane = ThreadpoolLane {
        lane_priority: priority,
        static_threads: 2,
        ..ThreadpoolLane::default()
    };
    let server = Orb::builder()
        .dispatch(DispatchStrategy::Lanes)
        .lanes([lane]);
    let ours = Ours::serve_as(server.best_effort().recorder());
    on_a_thread(move || {
        let orb = Orb::builder().recorder().best_effort().build();
        let orb = orb.expect("the ORB can be built");
        orb.rt_current()
            .set_the_priority(priority)
            .expect("best effort");
        let anything = ours.poa.activate_dynamic(Anything).expect("there is room");
        let object = orb.string_to_object(&ours.text(&anything));
        let object = object.expect("a reference");
        for _ in 0..calls {
            call(&object, operation);
        }
        until("the calls are recorded", || {
            let counted = counters(CallSide::Server, operation)?;
            (counted.calls() == calls).then_some(())
        });
    });
}

/// The threads that serve a lane, or did before they ended.
fn threads_of(lane: RecordedLane) -> Vec<ThreadSnapshot> {
    let threads = snapshot().threads.into_iter();
    threads.filter(|it| it.lane == Some(lane)).collect()
}

fn the_threads_of_lanes_are_known_by_their_lane() {
    call_in_lane(lane(9), "of_a_lane", 1);
    let mut threads = threads_of(lane(9)).into_iter();
    let is_it = |it: &CountedOperation| it.name == "of_a_lane";
    assert!(threads.any(|thread| thread.operations.iter().any(is_it)));
}

/// Threads of another lane come when those of the first have ended.
fn the_calls_of_a_lane_stay_its_own() {
    let served = |lane| {
        let threads = threads_of(lane).into_iter();
        let operations = threads.flat_map(|thread| thread.operations);
        let served = operations.filter(|it| it.side == CallSide::Server);
        served.map(|it| it.calls()).sum::<u64>()
    };
    let (first, second) = (lane(21), lane(22));
    for (number, operations) in [["a", "b"], ["c", "d"], ["e", "f"]].iter().enumerate() {
        let number = number as u64;
        for (lane, operation, calls) in [(first, operations[0], 5), (second, operations[1], 2)] {
            call_in_lane(lane, operation, calls);
            until("its threads have ended", || {
                let has_ended = |thread: &ThreadSnapshot| thread.name.is_empty();
                threads_of(lane).iter().all(has_ended).then_some(())
            });
        }
        let both = (served(first), served(second));
        assert_eq!(both, (5 * (number + 1), 2 * (number + 1)));
    }
}

fn a_call_within_another_one_leaves_what_is_known_of_that() {
    struct Relay(ObjectRef);

    impl DynamicServant for Relay {
        fn repository_id(&self) -> &str {
            "IDL:Relay:1.0"
        }

        fn is_a(&self, _: &str) -> bool {
            false
        }

        fn dispatch(&self, _: &str, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
            self.0.invoke("within", |_| Ok(()), |_| Ok(()))?;
            call.reply(|_| Ok(()))
        }
    }

    let ours = Ours::serve_as(Orb::builder().recorder());
    on_a_thread(move || {
        let anything = ours.poa.activate_dynamic(Anything).expect("there is room");
        let own = Ours::serve_collocated(Orb::builder().recorder());
        let remote = own.orb.string_to_object(&ours.text(&anything));
        let relay = Relay(remote.expect("a reference"));
        let relay = own.poa.activate_dynamic(relay).expect("there is room");
        call(&relay, "around");
        let around = events(CallSide::Collocated, "around");
        let within = events(CallSide::Client, "within");
        let ([around], [within]) = (&around[..], &within[..]) else {
            panic!("{around:?}, {within:?}");
        };
        assert_eq!((around.connection, around.request_id), (0, 0));
        assert_ne!(within.connection, 0);
        assert!(around.first_ns <= within.first_ns && within.last_ns <= around.last_ns);
    });
}

fn a_request_that_was_never_sent_is_told_from_one_that_went_over_no_connection() {
    on_a_thread(|| {
        let orb = Orb::builder()
            .recorder()
            .build()
            .expect("the ORB can be built");
        let nobody = orb.string_to_object("corbaloc:iiop:127.0.0.1:1/nobody");
        let nobody = nobody.expect("a reference");
        let refused = nobody.invoke("unsent", |_| Ok(()), |_| Ok(()));
        refused.expect_err("nobody listens there");
        let unsent = events(CallSide::Client, "unsent");
        let [unsent] = &unsent[..] else {
            panic!("{unsent:?}");
        };
        assert_eq!(
            (unsent.outcome, unsent.second_ns),
            (CallOutcome::Transient, 0)
        );
    });
}

fn operations_that_an_object_does_not_have_take_no_place_of_a_server() {
    let ours = Ours::serve_as(Orb::builder().recorder());
    on_a_thread(move || {
        let object = recorded_object(&ours, ConnectionStrategy::Exclusive);
        for (operation, outcome) in [
            ("unknown", CallOutcome::SystemException),
            ("busy", CallOutcome::Transient),
        ] {
            let refused = object.invoke(operation, |_| Ok(()), |_| Ok(()));
            refused.expect_err("the servant raises an exception");
            let called = counters(CallSide::Client, operation).expect("it was called");
            assert_eq!(called.outcomes[outcome as usize], 1, "{operation}");
        }
        until("the second call is recorded", || {
            counters(CallSide::Server, "busy")
        });
        assert!(counters(CallSide::Server, "unknown").is_none());
        assert!(counters(CallSide::Server, "...").is_some());
    });
}

fn what_is_overwritten_and_what_has_no_place_is_counted() {
    let ours = Ours::serve_as(Orb::builder());
    on_a_thread(move || {
        let object = recorded_object(&ours, ConnectionStrategy::Exclusive);
        call(&object, "first");
        // Earlier threads may have had the part.
        let (before, others_before) = own_calls();
        let operations = OPERATIONS_MAX + 3;
        for number in 0..operations {
            call(&object, &format!("an_operation_with_a_long_name_{number}"));
        }
        for _ in 0..EVENTS_MAX {
            call(&object, "beyond");
        }
        let own = own_part();
        // The one that the thread may be writing is not read.
        assert!((EVENTS_MAX - 1..=EVENTS_MAX).contains(&own.events.len()));
        let (calls, others) = own_calls();
        assert_eq!(calls, own.overwritten + own.events.len() as u64);
        assert_eq!(calls - before, (operations + EVENTS_MAX) as u64);
        // Two places are those of all others, and at least one was taken before.
        assert!(others - others_before >= 6 + EVENTS_MAX as u64, "{others}");
    });
}

fn threads_that_end_leave_their_part_to_others_and_their_counts_stay() {
    let ours = Ours::serve_as(Orb::builder());
    let object = recorded_object(&ours, ConnectionStrategy::Exclusive);
    for _ in 0..200 {
        let object = object.clone();
        on_a_thread(move || call(&object, "in_turn"));
    }
    let counted = counters(CallSide::Client, "in_turn").expect("it was called");
    assert_eq!(counted.calls(), 200);
}

/// As a forked child has the file of its parent.
fn a_process_with_the_file_of_another_one_has_no_recorder_of_its_own() {
    let _orb = Orb::builder().recorder().build();
    let mut files = fs::read_dir("/proc/self/fd").expect("files").flatten();
    let file = files.find(|file| {
        let leads_to = fs::read_link(file.path()).unwrap_or_default();
        leads_to
            .to_string_lossy()
            .starts_with("/memfd:rtorb-recorder")
    });
    let file = File::open(file.expect("the recorder").path()).expect("it can be read");
    let mut other = process::Command::new("sleep")
        .arg("60")
        .stdin(file)
        .spawn()
        .expect("a process");
    let read = ProcessSnapshot::of_process(other.id());
    let all = ProcessSnapshot::processes();
    other.kill().expect("it runs");
    other.wait().expect("it ends");
    assert!(
        matches!(read, Err(ReadError::NoRecorder { .. })),
        "{read:?}"
    );
    assert!(all.contains(&process::id()), "{all:?}");
    assert!(!all.contains(&other.id()), "{all:?}");
}

fn a_process_without_a_recorder_is_told_from_one_that_does_not_exist() {
    let mut other = process::Command::new("sleep")
        .arg("60")
        .spawn()
        .expect("a process");
    let read = ProcessSnapshot::of_process(other.id());
    other.kill().expect("it runs");
    other.wait().expect("it ends");
    assert!(
        matches!(read, Err(ReadError::NoRecorder { .. })),
        "{read:?}"
    );
    let read = ProcessSnapshot::of_process(u32::MAX);
    assert!(matches!(read, Err(ReadError::Process { .. })), "{read:?}");
}
