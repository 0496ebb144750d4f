//! Requirements that operations state beside their times: the size of messages, their marks, the requests that wait, and how many calls
//! may be late.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rtorb::timing::TimingSide::{Client, Server};
use rtorb::timing::{
    MissRatio, MissRatios, OperationCounts, TimingLimit, TimingSide, TimingViolation,
};
use rtorb::{
    CompletionStatus, Deadlines, DispatchStrategy, ExceptionKind, Interface, Orb, OrbBuilder,
    SyncScope, SystemException,
};
use rtorb_tests::loopback::own_endpoint;
use rtorb_tests::relay::Served;
use rtorb_tests::running::until;
use rtorb_tests::skip;
use rtorb_tests::stubs::harbour::{
    Brake, BrakeServant, Crane, CraneLiftError, CraneServant, Hoist, HoistLiftError, HoistServant,
    Lamp, LampServant, Stuck, Yard, YardServant,
};

const BEYOND_LARGEST: u32 = 0x7274_6014;
const QUEUE_FULL: u32 = 0x7274_601b;

/// An object as a client in another ORB has it, and the client's ORB.
fn client<I: Interface<Object = rtorb::ObjectRef>>(builder: OrbBuilder, object: &I) -> (Orb, I) {
    let orb = builder.build().expect("an ORB");
    let text = object.as_object().to_string();
    let object = orb.string_to_object(&text).expect("a reference");
    (orb, I::unchecked_narrow(object))
}

/// Repeats plans; counts the calls.
#[derive(Default)]
struct Lifts(Arc<AtomicUsize>);

impl Lifts {
    /// Returns the text, or the reason why there is none.
    fn repeat(&self, plan: &str, copies: u32) -> Result<String, String> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let repeated = plan.repeat(copies as usize);
        match plan.strip_prefix("stuck") {
            Some(_) => Err(repeated),
            None => Ok(repeated),
        }
    }
}

impl CraneServant for Lifts {
    fn lift(&self, plan: &str, copies: u32) -> Result<String, CraneLiftError> {
        let repeated = self.repeat(plan, copies);
        repeated.map_err(|why| CraneLiftError::Stuck(Stuck { why }))
    }
}

impl HoistServant for Lifts {
    fn lift(&self, plan: &str, copies: u32) -> Result<String, HoistLiftError> {
        let repeated = self.repeat(plan, copies);
        repeated.map_err(|why| HoistLiftError::Stuck(Stuck { why }))
    }
}

fn system(error: CraneLiftError) -> SystemException {
    match error {
        CraneLiftError::System(exception) => exception,
        CraneLiftError::Stuck(stuck) => panic!("{stuck}"),
    }
}

fn assert_beyond(exception: &SystemException, completed: CompletionStatus) {
    let seen = (exception.kind, exception.minor, exception.completed);
    let expected = (ExceptionKind::ImpLimit, BEYOND_LARGEST, completed);
    assert_eq!(seen, expected, "{exception}");
    assert!(exception.to_string().contains("@largest_message"));
}

#[test]
fn a_request_beyond_the_largest_message_is_not_sent_and_a_server_does_not_decode_one() {
    let served = Served::by(Orb::builder());
    let lifts = Lifts::default();
    let calls = Arc::clone(&lifts.0);
    let crane: Crane = served.root.activate(lifts).expect("room");
    let (_orb, crane) = client(Orb::builder(), &crane);
    assert_eq!(crane.lift("up", 2).expect("it is small"), "upup");
    let refused = system(crane.lift(&"x".repeat(300), 0).expect_err("it is large"));
    assert_beyond(&refused, CompletionStatus::No);
    let detail = refused.detail().expect("the bound");
    assert!(detail.contains("exceeds the 256 bytes"), "{detail}");
    // The same operation by an interface that bounds nothing.
    let unbounded = Hoist::unchecked_narrow(crane.as_object().clone());
    let refused = unbounded.lift(&"x".repeat(300), 0).expect_err("too large");
    let HoistLiftError::System(refused) = refused else {
        panic!("{refused}");
    };
    assert_beyond(&refused, CompletionStatus::No);
    assert_eq!(calls.load(Ordering::SeqCst), 1, "only the small one");
}

#[test]
fn a_reply_beyond_the_largest_message_is_neither_sent_nor_decoded() {
    let served = Served::by(Orb::builder());
    let crane: Crane = served.root.activate(Lifts::default()).expect("room");
    let hoist: Hoist = served.root.activate(Lifts::default()).expect("room");
    let (_orb, crane) = client(Orb::builder(), &crane);
    for plan in ["ten bytes ", "stuck ten "] {
        let refused = system(crane.lift(plan, 40).expect_err("the reply is large"));
        assert_beyond(&refused, CompletionStatus::Yes);
    }
    // Its server sends replies of any size.
    let bounded = Crane::unchecked_narrow(hoist.as_object().clone());
    let (_orb, bounded) = client(Orb::builder(), &bounded);
    for plan in ["ten bytes ", "stuck ten "] {
        let refused = system(bounded.lift(plan, 40).expect_err("the reply is large"));
        assert_beyond(&refused, CompletionStatus::Yes);
        let detail = refused.detail().expect("the bound");
        assert!(detail.contains("exceeds the 256 bytes"), "{detail}");
    }
    assert_eq!(bounded.lift("up", 1).expect("it is small"), "up");
}

/// Brakes.
struct Brakes;

impl BrakeServant for Brakes {
    fn stop(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn note(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn rest(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// The IP_TOS of all sockets that are connected to an address, or from it: `dst` or `src`.
fn marks(address: SocketAddr, end: &str) -> Option<Vec<u8>> {
    let filter = format!("{end} {address}");
    let arguments = ["--tos", "-tnH", "state", "established", &filter];
    let listed = Command::new("ss").args(arguments).output().ok()?;
    let text = String::from_utf8(listed.stdout).expect("ASCII");
    let marks = text.split_whitespace().filter_map(|word| {
        let number = word.strip_prefix("tos:")?.trim_start_matches("0x");
        u8::from_str_radix(number, 16).ok()
    });
    let mut marks: Vec<u8> = marks.collect();
    marks.sort_unstable();
    Some(marks)
}

#[test]
fn calls_and_replies_of_an_operation_have_the_marks_that_it_states() {
    // Another server may have the same port at another address.
    let served = Served::by(Orb::builder().listen(&own_endpoint()));
    let brake: Brake = served.root.activate(Brakes).expect("room");
    let rtorb::endpoint::Endpoint::Tcp { host, port } = served.orb.endpoints()[0].clone() else {
        panic!("it listens there");
    };
    let address = format!("{host}:{port}").parse().expect("a numeric address");
    let (_orb, brake) = client(Orb::builder(), &brake);
    let sent = || marks(address, "dst");
    brake
        .as_object()
        .validate_connection()
        .expect("it is there");
    if sent().is_none() {
        return skip("`ss` is missing: apt-get install iproute2");
    }
    let expected = [0, 10 << 2, 46 << 2];
    assert_eq!(
        sent(),
        Some(expected.to_vec()),
        "a connection for each mark"
    );
    let nonblocking = brake.with_sync_scope(SyncScope::None);
    nonblocking.note().expect("its connection is open");
    for _ in 0..3 {
        brake.rest().expect("it is served");
        brake.stop().expect("it is served");
        brake.note().expect("it is sent");
    }
    assert_eq!(sent(), Some(expected.to_vec()), "no others");
    let replies = until("the servant of the oneway is called", || {
        marks(address, "src").filter(|marks| marks[1] != 0)
    });
    assert_eq!(replies, expected);
}

/// Lets callers in once its gate is open.
#[derive(Clone, Default)]
struct Gate {
    is_open: Arc<AtomicBool>,
    entered: Arc<AtomicUsize>,
}

impl YardServant for Gate {
    fn enter(&self) -> Result<(), SystemException> {
        self.entered.fetch_add(1, Ordering::SeqCst);
        until("the gate is open", || {
            self.is_open.load(Ordering::SeqCst).then_some(())
        });
        Ok(())
    }

    fn pass(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn as_many_requests_wait_as_the_queue_of_their_operation_allows() {
    for dispatch in [DispatchStrategy::WorkerPool, DispatchStrategy::FilterChain] {
        let served = Served::by(Orb::builder().dispatch(dispatch).pool_threads(1));
        let gate = Gate::default();
        let yard: Yard = served.root.activate(gate.clone()).expect("room");
        let (_orb, yard) = client(Orb::builder(), &yard);
        let refusals = || {
            let counts = served.orb.timing();
            counts
                .iter()
                .map(|counts| counts.queue_refusals)
                .sum::<u64>()
        };
        thread::scope(|scope| {
            let entering = || {
                let yard = yard.clone();
                scope.spawn(move || yard.enter())
            };
            let first = entering();
            until("it is served", || {
                (gate.entered.load(Ordering::SeqCst) == 1).then_some(())
            });
            let others = [entering(), entering(), entering()];
            until("two are refused", || (refusals() == 2).then_some(()));
            let passing = scope.spawn(|| yard.pass());
            gate.is_open.store(true, Ordering::SeqCst);
            first.join().expect("no panic").expect("it is served");
            passing.join().expect("no panic").expect("it is unbounded");
            let ended = others.map(|other| other.join().expect("no panic"));
            let refused: Vec<_> = ended.into_iter().filter_map(Result::err).collect();
            assert_eq!(refused.len(), 2, "{dispatch}");
            for exception in refused {
                let seen = (exception.kind, exception.minor, exception.completed);
                let expected = (ExceptionKind::Transient, QUEUE_FULL, CompletionStatus::No);
                assert_eq!(seen, expected, "{dispatch}: {exception}");
            }
        });
        yard.enter().expect("nothing waits any more");
        assert_eq!(refusals(), 2, "{dispatch}");
        assert_eq!(served.orb.requests_refused(), 2, "{dispatch}");
    }
}

/// The counters of the only annotated operation on a side, once it has been called so often.
fn counted(orb: &Orb, side: TimingSide, calls: u64) -> OperationCounts {
    until("the calls are counted", || {
        let mut counts = orb.timing().into_iter();
        counts.find(|counts| (counts.side, counts.calls) == (side, calls))
    })
}

/// Answers after the given time.
struct Lights;

impl LampServant for Lights {
    fn answer_after(&self, us: u32) -> Result<(), SystemException> {
        thread::sleep(Duration::from_micros(us.into()));
        Ok(())
    }
}

#[test]
fn too_many_late_calls_are_counted_and_told_and_fewer_are_not_told() {
    let told = Arc::new(Mutex::new(Vec::<TimingViolation>::new()));
    let into = Arc::clone(&told);
    let hook = move |violation: &TimingViolation| into.lock().expect("no panic").push(*violation);
    let served = Served::by(Orb::builder().on_timing_violation(hook));
    let lamp: Lamp = served.root.activate(Lights).expect("room");
    let (orb, lamp) = client(Orb::builder().deadlines(Deadlines::Count), &lamp);
    // The second late call comes three calls after the first one, and the third one four calls after the second.
    for us in [90_000, 0, 0, 90_000, 0, 0, 0, 90_000] {
        lamp.answer_after(us).expect("it is served");
    }
    // The server judges the last call after its reply.
    let counts = until("the last late call is judged", || {
        Some(counted(&served.orb, Server, 8)).filter(|it| it.deadline_misses >= 3)
    });
    let seen = counted(&orb, Client, 8);
    if counts.deadline_misses > 3 || seen.deadline_misses > 3 {
        return skip("the host delayed a call that had nothing to do");
    }
    assert_eq!((counts.deadline_misses, counts.ratio_violations), (3, 1));
    assert_eq!((seen.deadline_misses, seen.ratio_violations), (3, 1));
    let told = told.lock().expect("no panic");
    let [violation] = told[..] else {
        panic!("one violation: {told:?}");
    };
    assert_eq!(violation.kind, TimingLimit::MissRatio);
    assert_eq!(violation.limit, Duration::from_millis(40));
    assert!(violation.observed >= Duration::from_millis(90));
}

#[test]
fn the_ratio_of_late_calls_changes_while_calls_go_on() {
    const OPERATION: &str = "Harbour::Lamp::answer_after";
    let of = |misses, calls| Some(MissRatio { misses, calls });
    let told = Arc::new(Mutex::new(Vec::<TimingLimit>::new()));
    let into = Arc::clone(&told);
    let hook =
        move |violation: &TimingViolation| into.lock().expect("no panic").push(violation.kind);
    let served = Served::by(Orb::builder().on_timing_violation(hook));
    // It holds for a servant that is activated later.
    let change = |orb: &Orb, ratio: Option<MissRatio>| {
        orb.set_miss_ratios([(OPERATION.to_owned(), ratio)].into())
    };
    change(&served.orb, of(2, 4)).expect("it can be counted");
    let lamp: Lamp = served.root.activate(Lights).expect("room");
    let (orb, lamp) = client(Orb::builder().deadlines(Deadlines::Count), &lamp);
    change(&orb, of(2, 4)).expect("it can be counted");
    // Each call is late. It is judged after its reply is sent.
    let call = |calls: u64, violations: u64, ratio: Option<MissRatio>| {
        lamp.answer_after(60_000).expect("it is served");
        for (orb, side) in [(&served.orb, Server), (&orb, Client)] {
            let counts = until("the late call is judged", || {
                orb.timing().into_iter().find(|it| {
                    let late = (it.calls, it.deadline_misses, it.ratio_violations);
                    it.side == side && late == (calls, calls, violations)
                })
            });
            assert_eq!(counts.miss_ratio, ratio);
        }
    };
    for (calls, violations) in [(1, 0), (2, 0), (3, 1)] {
        call(calls, violations, of(2, 4));
    }
    for orb in [&served.orb, &orb] {
        change(orb, None).expect("each late call is a miss");
    }
    call(4, 1, None);
    for orb in [&served.orb, &orb] {
        for wrong in [of(4, 4), of(65, 1000)] {
            let refused = change(orb, wrong).expect_err("it cannot be counted");
            assert_eq!(refused.kind, ExceptionKind::BadParam);
        }
        // That of the annotation.
        orb.set_miss_ratios(MissRatios::new())
            .expect("none is wrong");
    }
    call(5, 1, of(1, 4));
    call(6, 2, of(1, 4));
    let told = until("the last violation is told", || {
        let told = told.lock().expect("no panic").clone();
        (told.len() == 3).then_some(told)
    });
    let expected = [
        TimingLimit::MissRatio,
        TimingLimit::Deadline,
        TimingLimit::MissRatio,
    ];
    assert_eq!(told, expected);
}
