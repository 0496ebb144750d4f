//! Calls of annotated operations, counted against their annotations on both sides, and the hook that is told.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rtorb::rt::{Policy, PriorityModel};
use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb::timing::TimingSide::{Client, Server};
use rtorb::timing::{ExecutionClock, TimingLimit, TimingSide, TimingViolation};
use rtorb::{Deadlines, DispatchStrategy, ExceptionKind, Orb, OrbBuilder, PoaPolicies};
use rtorb_os::sched::current_affinity;
use rtorb_tests::clockwork::{Works, counted, execute};
use rtorb_tests::relay::{Served, has_priorities, priority};
use rtorb_tests::running::until;
use rtorb_tests::scheduling::TimeSharing;
use rtorb_tests::stubs::timing::{Clockwork, ClockworkFailError};

/// Longer than each worst case and each deadline of the Clockwork by far more than a host delays a thread.
const BEYOND_US: u32 = 600_000;

/// What a hook was told.
type Told = Arc<Mutex<Vec<TimingViolation>>>;

fn telling(builder: OrbBuilder) -> (OrbBuilder, Told) {
    let told = Told::default();
    let into = Arc::clone(&told);
    let hook = move |violation: &TimingViolation| into.lock().expect("no panic").push(*violation);
    (builder.on_timing_violation(hook), told)
}

/// What was told, once it is so much.
fn told(what: &Told, count: usize) -> Vec<TimingViolation> {
    until(&format!("{count} violations"), || {
        let told = what.lock().expect("no panic").clone();
        (told.len() >= count).then_some(told)
    })
}

fn serve(builder: OrbBuilder) -> (Served, Clockwork) {
    let served = Served::by(builder);
    let object = served.root.activate(Works::default());
    let object = object.expect("there is room");
    (served, object)
}

/// A client whose calls take as long as they take.
fn counting() -> OrbBuilder {
    Orb::builder().deadlines(Deadlines::Count)
}

/// The object as a client has it, and the client's ORB.
fn client(builder: OrbBuilder, object: &Clockwork) -> (Orb, Clockwork) {
    let orb = builder.build().expect("an ORB");
    let text = object.as_object().to_string();
    let object = orb.string_to_object(&text).expect("a reference");
    (orb, Clockwork::unchecked_narrow(object))
}

/// Returns when the server has judged the last call of this client: it does so behind the reply, and before it serves the next call.
fn judge_last(object: &Clockwork) {
    object.plain().expect("it is served");
}

#[test]
fn a_servant_that_executes_too_long_overruns() {
    let (builder, violations) = telling(Orb::builder());
    let (served, object) = serve(builder);
    let (orb, object) = client(Orb::builder(), &object);
    for us in [0, BEYOND_US / 4, 0] {
        object.execute(us).expect("it is served");
    }
    let counts = counted(&served.orb, ("execute", Server), 3);
    assert_eq!(counts.overruns, 1);
    assert_eq!((counts.deadline_misses, counts.early_arrivals), (0, 0));
    assert!(counts.worst_execution >= Some(Duration::from_millis(150)));
    assert!(counts.worst_response >= Duration::from_millis(150));
    let [violation] = told(&violations, 1)[..] else {
        panic!("one violation");
    };
    assert_eq!(violation.operation.name(), "Timing::Clockwork::execute");
    assert_eq!(
        (violation.side, violation.kind),
        (Server, TimingLimit::WorstCaseTime)
    );
    assert_eq!(violation.limit, Duration::from_millis(60));
    assert_eq!(Some(violation.observed), counts.worst_execution);
    let seen = counted(&orb, ("execute", Client), 3);
    assert_eq!((seen.overruns, seen.worst_execution), (0, None));
}

#[test]
fn a_servant_that_waits_is_no_overrun_by_the_clock_of_the_cpu_and_one_by_the_other() {
    for (clock, overruns) in [(ExecutionClock::Cpu, 0), (ExecutionClock::Elapsed, 1)] {
        let (served, object) = serve(Orb::builder().execution_clock(clock));
        let (_orb, object) = client(Orb::builder(), &object);
        object.pause(BEYOND_US / 4).expect("it is served");
        judge_last(&object);
        let counts = counted(&served.orb, ("pause", Server), 1);
        assert_eq!(counts.overruns, overruns, "{clock:?}");
        assert!(counts.worst_response >= Duration::from_millis(150));
    }
}

#[test]
fn a_servant_that_is_preempted_is_no_overrun() {
    if !has_priorities() {
        return;
    }
    let cpu = *current_affinity().first().expect("one at least");
    let at = |number| ThreadConfig {
        policy: Some(SchedPolicy::Fifo(number)),
        affinity: vec![cpu],
        ..ThreadConfig::default()
    };
    let dispatch = DispatchStrategy::Reactive;
    let (served, object) = serve(Orb::builder().dispatch(dispatch).server_threads(at(10)));
    let (_orb, object) = client(Orb::builder(), &object);
    object.execute(0).expect("it is served");
    let (starts, started) = mpsc::channel();
    let goes_on = Arc::new(AtomicBool::new(true));
    let (going_on, urgent) = (Arc::clone(&goes_on), at(20));
    // Runs three quarters of the time, so that it takes the CPU from the servant for long, and leaves it some.
    let preempting = thread::spawn(move || {
        urgent.apply_here().expect("it is allowed");
        starts.send(()).expect("somebody waits");
        for _ in 0..1_000 {
            execute(Duration::from_millis(30));
            thread::sleep(Duration::from_millis(10));
            if !going_on.load(Ordering::Relaxed) {
                break;
            }
        }
    });
    started.recv().expect("it starts");
    let (mut times, mut overruns) = (Vec::new(), 0);
    // A thread of a virtual machine seems to execute while the host holds its CPU.
    let is_no_overrun = (2..12).any(|calls| {
        let before = Instant::now();
        object.execute(30_000).expect("it is served");
        times.push(before.elapsed());
        judge_last(&object);
        let counts = counted(&served.orb, ("execute", Server), calls);
        counts.overruns == core::mem::replace(&mut overruns, counts.overruns)
    });
    goes_on.store(false, Ordering::Relaxed);
    preempting.join().expect("no panic");
    let counts = counted(&served.orb, ("execute", Server), 1 + times.len() as u64);
    let is_preempted = |took: &Duration| *took > Duration::from_millis(60);
    assert!(times.iter().all(is_preempted), "{times:?}");
    assert!(is_preempted(&counts.worst_response), "{counts:?}");
    assert!(is_no_overrun, "it executed 30 ms of 60: {counts:?}");
}

#[test]
fn calls_that_come_too_soon_are_counted_for_each_servant() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let (builder, violations) = telling(Orb::builder().dispatch(dispatch));
        let (served, one) = serve(builder);
        let another = served.root.activate(Works::default());
        let another: Clockwork = another.expect("there is room");
        let (_orb, one) = client(Orb::builder(), &one);
        let (_other_orb, another) = client(Orb::builder(), &another);
        for _ in 0..3 {
            one.again().expect("it is served");
        }
        another.again().expect("it is served");
        let counts = counted(&served.orb, ("again", Server), 4);
        assert_eq!(counts.early_arrivals, 2, "{name}: none is the first one's");
        for violation in told(&violations, 2) {
            assert_eq!(violation.kind, TimingLimit::Period, "{name}");
            assert_eq!(violation.limit, Duration::from_secs(100), "{name}");
            assert!(violation.observed < Duration::from_secs(50), "{name}");
        }
        for n in 0..10 {
            assert_eq!(one.cube(n), Ok(n * n * n), "{name}");
        }
        let counts = counted(&served.orb, ("cube", Server), 10);
        let beyond = [
            counts.early_arrivals,
            counts.overruns,
            counts.deadline_misses,
        ];
        assert_eq!(beyond, [0; 3], "{name}");
    }
}

#[test]
fn what_waits_for_a_thread_has_arrived_before() {
    let dispatch = DispatchStrategy::WorkerPool;
    let (served, object) = serve(Orb::builder().dispatch(dispatch).pool_threads(1));
    let (_orb, object) = client(counting(), &object);
    object.plain().expect("it is served");
    // A busy host may send the second request when its server has almost waited for long enough.
    until("a request waits for a thread beyond its deadline", || {
        object.finish_after(BEYOND_US).expect("it is sent");
        object.set_setting(3).expect("it is served, behind that");
        let counts = served.orb.timing();
        let mut setting = counts.iter().filter(|it| {
            it.side == Server && it.operation.name() == "Timing::Clockwork::_set_setting"
        });
        setting.any(|it| it.deadline_misses > 0).then_some(())
    });
}

#[test]
fn calls_that_fail_are_calls() {
    let (served, object) = serve(Orb::builder());
    let (orb, object) = client(counting(), &object);
    let raised = object.fail(false).expect_err("it raises");
    assert!(
        matches!(raised, ClockworkFailError::Broken(_)),
        "{raised:?}"
    );
    let panicked = object.fail(true).expect_err("it panics");
    assert!(
        matches!(&panicked, ClockworkFailError::System(e) if e.kind == ExceptionKind::Unknown),
        "{panicked:?}"
    );
    judge_last(&object);
    for (orb, side) in [(&served.orb, Server), (&orb, Client)] {
        let counts = counted(orb, ("fail", side), 2);
        // A busy host may delay a call beyond its deadline.
        let is_in_time = counts.worst_response <= Duration::from_millis(300);
        assert_eq!(counts.deadline_misses == 0, is_in_time, "{counts:?}");
    }
}

#[test]
fn a_violation_tells_the_priority_of_the_call() {
    let (builder, at_server) = telling(Orb::builder().priority_mapping(TimeSharing));
    let (served, _) = serve(builder);
    let policies = PoaPolicies::default().with(Policy::PriorityModel {
        model: PriorityModel::ClientPropagated,
        server_priority: priority(1),
    });
    let adapter = served.root.create_poa("Propagated", policies);
    let object = adapter
        .expect("they go together")
        .activate(Works::default());
    let object: Clockwork = object.expect("there is room");
    let (builder, at_client) = telling(counting().priority_mapping(TimeSharing));
    let (orb, object) = client(builder, &object);
    let current = orb.rt_current();
    current
        .set_the_priority(priority(42))
        .expect("no permission is needed");
    assert_eq!(object.answer_after(BEYOND_US), Ok(BEYOND_US));
    for violations in [at_server, at_client] {
        let violations = told(&violations, 1);
        assert_eq!(violations[0].priority, Some(priority(42)), "{violations:?}");
    }
}

#[test]
fn each_orb_counts_for_itself_and_tells_all_that_it_serves() {
    let (served, _) = serve(Orb::builder());
    let (other, object) = serve(Orb::builder());
    object.cube(2).expect("it is served");
    let names = |orb: &Orb, side: TimingSide| -> Vec<String> {
        let counts = orb
            .timing()
            .into_iter()
            .filter(|counts| counts.side == side);
        let names = counts.map(|counts| counts.operation.name().replace("Timing::Clockwork::", ""));
        names.collect()
    };
    let all = [
        "_get_setting",
        "_set_setting",
        "again",
        "answer_after",
        "cube",
        "execute",
        "fail",
        "finish_after",
        "pause",
    ];
    assert_eq!(names(&served.orb, Server), all);
    assert_eq!(names(&served.orb, Client), [""; 0]);
    assert_eq!(names(&other.orb, Client), ["cube"]);
    assert_eq!(counted(&other.orb, ("cube", Server), 1).calls, 1);
    let idle = served.orb.timing();
    assert!(idle.iter().all(|counts| counts.calls == 0), "{idle:?}");
}
