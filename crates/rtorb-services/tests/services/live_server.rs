//! A server that follows the changes of a scheduling service: its objects move between lanes, and it gets more lanes, under load.

use core::sync::atomic::{AtomicUsize, Ordering};
use rtorb::rt::{LanedThreadpool, Policy};
use rtorb::{
    DispatchStrategy, ExceptionKind, Limits, Orb, OrbBuilder, PoaError, PoaPolicies,
    SystemException,
};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_services::scheduling::{
    Admission, ClientScheduler, CosSchedulingError, Description, Schedule, Scheduling,
    SchedulingConfig, ServerScheduler, SystemChangeError,
};
use rtorb_services::stubs::rtec_scheduler::rtorb_scheduling::{
    Admission as IfUnproven, ChangeableScheduler, ChangeableSchedulerApplySystemError,
    CostStatistic, MissRatio, NodePlatform, OperationTimes, SystemFile,
};
use rtorb_tests::relay::{Served, has_priorities, way};
use rtorb_tests::running::until;
use rtorb_tests::stubs::Relay;
use rtorb_tests::stubs::harbour::{Lamp, LampServant};
use std::thread;

/// The shorter deadline is more urgent: 30, 29, and so on.
fn mode(deadlines: &[(&str, &str)], threads: u32) -> Description {
    let head = "strategy = \"dms\"\npriorities = { least_urgent = 25, most_urgent = 30 }\n";
    let operations = deadlines.iter().map(|(name, deadline)| {
        format!(
            "[[operation]]\nname = \"{name}\"\nperiod = \"10ms\"\nworst = \"10us\"\ndeadline = \"{deadline}\"\nthreads = {threads}\n"
        )
    });
    let text: String = core::iter::once(head.to_owned())
        .chain(operations)
        .collect();
    Description::of_text("the test", &text).expect("a description")
}

fn schedule(description: &Description) -> Schedule {
    let computed = Schedule::compute(description);
    computed.expect("it has a schedule").schedule
}

/// The modes, one after another. The third has a level more, and two threads for each.
fn modes() -> [Description; 3] {
    [
        mode(&[("a", "5ms"), ("b", "8ms")], 1),
        mode(&[("a", "8ms"), ("b", "5ms")], 1),
        mode(&[("a", "5ms"), ("b", "8ms"), ("c", "3ms")], 2),
    ]
}

/// The priorities of `a` and `b` in each mode.
const PRIORITIES: [[i16; 2]; 3] = [[30, 29], [29, 30], [29, 28]];
const CHANGES: usize = 1_000;
const GAP_NS: u64 = 1_000_000;

/// Calls of an object at 1 kHz, until all changes have ended. Each runs at a priority that the object had during the call.
fn call(text: &str, object: usize, [calling, begun, ended]: [&AtomicUsize; 3]) {
    // Each change sends a call on at most once, and a busy host may let many changes pass during a call.
    let limits = Limits::with(|limits| limits.forwards_max = CHANGES);
    let orb = Orb::builder().limits(limits).build().expect("an ORB");
    let relay = Relay::unchecked_narrow(orb.string_to_object(text).expect("a reference"));
    let (mut is_first, mut next_ns) = (true, monotonic_ns());
    while ended.load(Ordering::SeqCst) < CHANGES {
        let before = ended.load(Ordering::SeqCst);
        let seen = &relay.pass_on().expect("no call is lost")[0];
        let after = begun.load(Ordering::SeqCst);
        let changes = before..=after;
        let had: Vec<i16> = changes.map(|it| PRIORITIES[it % 3][object]).collect();
        assert!(had.contains(&seen.corba), "{seen:?}, and it had {had:?}");
        assert_eq!(seen.corba, seen.kernel);
        if core::mem::take(&mut is_first) {
            calling.fetch_add(1, Ordering::SeqCst);
        }
        next_ns += GAP_NS;
        sleep_until(next_ns);
    }
}

/// Changes the system of a service 1,000 times while clients call two objects of a server that follows it.
fn change_under_load(builder: OrbBuilder, new: fn(&Orb, Schedule) -> ServerScheduler) {
    let modes = modes();
    let served = Served::by(builder);
    let server = new(&served.orb, schedule(&modes[0]));
    let poa = server.create_poa(&served.root, "Moving", PoaPolicies::default());
    let poa = poa.expect("a free name");
    poa.manager().activate();
    let objects = ["a", "b"].map(|name| {
        let object = server.schedule_object::<Relay, _>(&poa, served.relayer(name), name);
        object.expect("it is known")
    });
    // The ORB runs.
    let seen = objects
        .each_ref()
        .map(|relay| way(Orb::builder(), relay, None));
    assert_eq!(seen, [Ok(vec![(30, 30)]), Ok(vec![(29, 29)])]);
    let its_orb = Orb::builder().build().expect("an ORB");
    let config = SchedulingConfig {
        system: Some(modes[0].clone().into()),
        ..SchedulingConfig::default()
    };
    let service = Scheduling::serve(&its_orb, config).expect("it is admitted");
    service.change_server(&server);
    let [calling, begun, ended] = [(); 3].map(|()| AtomicUsize::new(0));
    let texts = objects
        .each_ref()
        .map(|relay| relay.as_object().to_string());
    thread::scope(|scope| {
        let counts @ [calling, begun, ended] = [&calling, &begun, &ended];
        let callers = [0, 1].map(|object| {
            let text = &texts[object];
            scope.spawn(move || call(text, object, counts))
        });
        // If one caller has panicked, the other one ends with the last change.
        until("both call", || {
            let has_panicked = callers.iter().any(thread::ScopedJoinHandle::is_finished);
            (has_panicked || calling.load(Ordering::SeqCst) == 2).then_some(())
        });
        let mut next_ns = monotonic_ns();
        for change in 1..=CHANGES {
            let next = modes[change % 3].clone();
            begun.store(change, Ordering::SeqCst);
            let changed = service.apply(next, Admission::RefuseUnproven);
            assert_eq!(changed.expect("it holds").unproven, None);
            ended.store(change, Ordering::SeqCst);
            next_ns += GAP_NS;
            sleep_until(next_ns);
        }
        for caller in callers {
            caller.join().expect("every call has a right priority");
        }
    });
}

#[test]
fn a_server_with_a_pool_follows_1000_changes_under_calls_and_loses_none() {
    if !has_priorities() {
        return;
    }
    change_under_load(Orb::builder(), |orb, schedule| {
        ServerScheduler::new(orb, schedule).expect("a pool")
    });
}

#[test]
fn the_lanes_of_an_orb_follow_1000_changes_under_calls_and_lose_none() {
    if !has_priorities() {
        return;
    }
    let builder = Orb::builder()
        .dispatch(DispatchStrategy::Lanes)
        .lanes(schedule(&modes()[0]).lanes());
    change_under_load(builder, |orb, schedule| {
        ServerScheduler::with_lanes_of_orb(orb, schedule).expect("it has the lanes")
    });
}

#[test]
fn an_adapter_of_the_lanes_of_an_orb_has_no_pool_of_its_own() {
    if !has_priorities() {
        return;
    }
    let first = schedule(&modes()[0]);
    let builder = Orb::builder().dispatch(DispatchStrategy::Lanes);
    let served = Served::by(builder.lanes(first.lanes()));
    let pool = LanedThreadpool {
        lanes: first.lanes(),
        ..LanedThreadpool::default()
    };
    let pool = served.orb.rt_orb().create_threadpool_with_lanes(pool);
    let own = PoaPolicies::default().with(Policy::Threadpool(pool.expect("a pool")));
    let server = ServerScheduler::with_lanes_of_orb(&served.orb, first).expect("it has the lanes");
    let refused = server.create_poa(&served.root, "Own", own).map(|_| ());
    assert!(matches!(
        refused,
        Err(PoaError::InvalidPolicy { index: 0, .. })
    ));
    let none = server.create_poa(&served.root, "Own", PoaPolicies::default());
    none.expect("the schedule's lanes");
}

#[test]
fn a_change_that_the_server_cannot_make_changes_nothing() {
    if !has_priorities() {
        return;
    }
    let [first, ..] = modes();
    let served = Served::by(Orb::builder());
    let missing = ServerScheduler::with_lanes_of_orb(&served.orb, schedule(&first));
    let missing = missing.map(|_| ()).map_err(|it| it.kind);
    assert_eq!(missing, Err(ExceptionKind::BadParam));
    let server = ServerScheduler::new(&served.orb, schedule(&first)).expect("a pool");
    let poa = server.create_poa(&served.root, "Fixed", PoaPolicies::default());
    let poa = poa.expect("a free name");
    poa.manager().activate();
    let a: Relay = server
        .schedule_object(&poa, served.relayer("a"), "a")
        .expect("it is known");
    let other: Relay = poa.activate(served.relayer("other")).expect("room");
    let service = Scheduling::serve(
        &served.orb,
        SchedulingConfig {
            system: Some(first.into()),
            ..SchedulingConfig::default()
        },
    );
    let service = service.expect("it is admitted");
    service.change_server(&server);
    service.change_server(&server);
    for (system, words) in [
        (mode(&[("b", "5ms")], 1), "the object a is active"),
        (
            mode(&[("a", "8ms"), ("b", "5ms")], 2000),
            "the 2000 threads",
        ),
    ] {
        match service.apply(system.clone(), Admission::RefuseUnproven) {
            Err(SystemChangeError::Fixed(reason)) => {
                assert!(reason.contains(words), "{words} in {reason}");
            }
            other => panic!("{words}: {other:?}"),
        }
        let same = server.change(schedule(&system));
        assert!(matches!(same, Err(CosSchedulingError::CannotChange(_))));
        assert_eq!(service.priority("a").map(|it| it.get()), Some(30));
        assert_eq!(way(Orb::builder(), &a, None), Ok(vec![(30, 30)]));
    }
    assert_eq!(way(Orb::builder(), &other, None), Ok(vec![(29, 29)]));
    // Objects without a name get the priority of the third level. An object that has ended does not prevent a change.
    let third = mode(&[("a", "8ms"), ("b", "5ms"), ("c", "9ms")], 1);
    let changed = service.apply(third, Admission::RefuseUnproven);
    changed.expect("it has room for a lane");
    assert_eq!(way(Orb::builder(), &a, None), Ok(vec![(29, 29)]));
    assert_eq!(way(Orb::builder(), &other, None), Ok(vec![(28, 28)]));
    poa.deactivate(a.as_object()).expect("it is active");
    let without = service.apply(mode(&[("b", "5ms")], 1), Admission::RefuseUnproven);
    without.expect("the object has ended");
    assert_eq!(way(Orb::builder(), &other, None), Ok(vec![(30, 30)]));
}

#[test]
fn the_activities_of_a_client_follow_a_change() {
    if !has_priorities() {
        return;
    }
    // A priority stays with its thread.
    let checked = thread::spawn(|| {
        let orb = Orb::builder().build().expect("an ORB");
        let [first, second, _] = modes();
        let client = ClientScheduler::new(&orb, schedule(&first));
        let worker = client.clone();
        let begun = |expected| {
            worker.schedule_activity("a").expect("it is known");
            let has = orb.rt_current().the_priority();
            assert_eq!(has.map(|it| it.get()), Ok(expected));
        };
        begun(30);
        client.change(schedule(&second));
        begun(29);
    });
    checked.join().expect("no panic");
}

struct Lights;

impl LampServant for Lights {
    fn answer_after(&self, _us: u32) -> Result<(), SystemException> {
        Ok(())
    }
}

const ANSWER: &str = "Harbour::Lamp::answer_after";

/// A system of one behaviour, whose operation has these annotations besides its times.
fn lamps(statistical: &[(u32, u32)], queue: Option<u32>) -> SystemFile {
    let text = format!(
        "name = \"harbour\"\nidl = [\"harbour.idl\"]\npriorities = {{ least_urgent = 25, most_urgent = 30 }}\n[[node]]\nname = \"here\"\n\
         [[component]]\nname = \"lamps\"\n[[component.behaviour]]\nname = \"answer\"\nperiod = \"100ms\"\nexecution = \"1ms\"\n\
         operation = \"{ANSWER}\"\n"
    );
    let ratio = |(misses, calls): &(u32, u32)| MissRatio {
        misses: *misses,
        calls: *calls,
    };
    SystemFile {
        text,
        times: vec![OperationTimes {
            operation: ANSWER.to_owned(),
            place: "harbour.idl:28".to_owned(),
            worst_case: 0,
            deadline: 40_000_000,
            period: 0,
            criticality: Vec::new(),
            statistical: statistical.iter().map(ratio).collect(),
            network_priority: Vec::new(),
            largest_message: Vec::new(),
            queue: queue.into_iter().collect(),
        }],
        platforms: vec![NodePlatform {
            nodes: vec!["here".to_owned()],
            profile: String::new(),
            costs: CostStatistic::DefaultCosts,
        }],
        strategy: String::new(),
    }
}

#[test]
fn a_server_counts_late_calls_as_the_new_file_allows_them_and_keeps_what_is_compiled() {
    if !has_priorities() {
        return;
    }
    let its_orb = Orb::builder().build().expect("an ORB");
    let service = Scheduling::serve(&its_orb, SchedulingConfig::default()).expect("a service");
    let scheduler = ChangeableScheduler::narrow(service.reference().as_object());
    let scheduler = scheduler.expect("it is one");
    let apply = |file| scheduler.apply_system(&file, IfUnproven::RefuseUnproven);
    apply(lamps(&[(1, 10)], None)).expect("it holds");

    let served = Served::by(Orb::builder());
    let _lamp: Lamp = served.root.activate(Lights).expect("room");
    let counted_by = || {
        let counts = served.orb.timing();
        let counts = counts.iter().find(|it| it.operation.name() == ANSWER);
        let ratio = counts.expect("it is served").miss_ratio;
        ratio.map(|ratio| (ratio.misses, ratio.calls))
    };
    assert_eq!(counted_by(), Some((1, 4)), "as its annotations state");
    let schedule = service.schedule().expect("it is computed");
    let server = ServerScheduler::new(&served.orb, schedule).expect("a pool");
    assert_eq!(counted_by(), Some((1, 10)));
    service.change_server(&server);
    for statistical in [&[(2, 8)][..], &[], &[(0, 5)]] {
        apply(lamps(statistical, None)).expect("it holds");
        assert_eq!(counted_by(), statistical.first().copied());
        // A server of another process asks.
        let asked = Schedule::ask(service.reference()).expect("it answers");
        let ratio = asked.miss_ratios()[ANSWER];
        let ratio = ratio.map(|ratio| (ratio.misses, ratio.calls));
        assert_eq!(ratio, statistical.first().copied());
    }

    match apply(lamps(&[(3, 9)], Some(4))) {
        Err(ChangeableSchedulerApplySystemError::CannotChange(refused)) => {
            let words = format!("@queue of {ANSWER} cannot change");
            assert!(refused.reason.contains(&words), "{}", refused.reason);
        }
        other => panic!("{other:?}"),
    }
    match apply(lamps(&[(65, 1000)], None)) {
        Err(ChangeableSchedulerApplySystemError::WrongFile(refused)) => {
            let words = format!("@statistical of {ANSWER} allows 65 late calls of 1000");
            assert!(refused.reason.contains(&words), "{}", refused.reason);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(counted_by(), Some((0, 5)), "nothing has changed");
}
