//! Changes of a serving ORB: objects take other priorities, and pools more lanes, while clients call.

use core::sync::atomic::{AtomicU64, Ordering};
use rtorb::exception::local;
use rtorb::rt::{LanedThreadpool, LinearMapping, Policy, Priority, PriorityModel, ThreadpoolId};
use rtorb::{DispatchStrategy, ExceptionKind, Limits, Orb, OrbBuilder, PoaError, PoaPolicies};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_tests::relay::{Served, bands, has_priorities, lane, laned_pool, model, priority, way};
use rtorb_tests::stubs::Relay;
use std::thread;

use PriorityModel::{ClientPropagated, ServerDeclared};

/// The priorities that the object takes, one after another.
const CYCLE: [i16; 3] = [20, 25, 30];
const CHANGES: u64 = 1_000;
/// Calls and changes at 1 kHz.
const GAP_NS: u64 = 1_000_000;

fn priority_after(changes: u64) -> i16 {
    CYCLE[(changes % 3) as usize]
}

/// The changes of an object that have begun, and those that have ended.
#[derive(Debug, Default)]
struct Progress {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// Calls an object of the adapter at 1 kHz while it takes another priority 1,000 times, also at 1 kHz. Each call must run at a priority
/// that the object had during the call.
fn call_during_changes(served: &Served, policies: &[Policy]) {
    let poa = served
        .adapter("moving", policies)
        .expect("they go together");
    let relay: Relay = poa.activate(served.relayer("moving")).expect("room");
    poa.manager().activate();
    let text = relay.as_object().to_string();
    let progress = Progress::default();
    let calls = thread::scope(|scope| {
        let calls = scope.spawn(|| call_until_the_end(&text, &progress));
        let mut next_ns = monotonic_ns();
        for change in 1..=CHANGES {
            progress.begun.store(change, Ordering::SeqCst);
            poa.change_priority(relay.as_object(), priority(priority_after(change)))
                .expect("it has a lane");
            progress.ended.store(change, Ordering::SeqCst);
            next_ns += GAP_NS;
            sleep_until(next_ns);
        }
        calls.join().expect("every call has a right priority")
    });
    assert!(calls > 0, "no call was made");
    let seen = way(Orb::builder(), &relay, None).expect("it is still there");
    let last = priority_after(CHANGES);
    assert_eq!(seen, [(last, last)]);
}

/// A client whose calls follow the object through all changes: each sends a call on at most once, and a busy host may let many pass
/// during a call.
fn client() -> OrbBuilder {
    let limits = Limits::with(|limits| limits.forwards_max = CHANGES as usize);
    Orb::builder().limits(limits)
}

/// Calls until all changes have ended, and returns the number of calls.
fn call_until_the_end(text: &str, progress: &Progress) -> u64 {
    let orb = client().build().expect("an ORB");
    let relay = Relay::unchecked_narrow(orb.string_to_object(text).expect("a reference"));
    let (mut calls, mut next_ns) = (0, monotonic_ns());
    while progress.ended.load(Ordering::SeqCst) < CHANGES {
        let before = progress.ended.load(Ordering::SeqCst);
        let seen = &relay.pass_on().expect("no call is lost")[0];
        let after = progress.begun.load(Ordering::SeqCst);
        let had: Vec<i16> = (before..=after).map(priority_after).collect();
        assert!(had.contains(&seen.corba), "{seen:?}, and it had {had:?}");
        assert_eq!(seen.corba, seen.kernel);
        calls += 1;
        next_ns += GAP_NS;
        sleep_until(next_ns);
    }
    calls
}

#[test]
fn an_object_that_moves_between_lanes_loses_no_call_and_has_no_other_priority() {
    let served = Served::by(Orb::builder());
    let rt_orb = served.orb.rt_orb();
    let Some(pool) = laned_pool(&rt_orb, &[20, 30]) else {
        return;
    };
    rt_orb.add_lane(Some(pool), lane(25)).expect("room");
    let policies = [model(ServerDeclared, 20), Policy::Threadpool(pool)];
    call_during_changes(&served, &policies);
}

#[test]
fn an_object_whose_threads_take_its_priority_loses_no_call_and_has_no_other_priority() {
    if !has_priorities() {
        return;
    }
    let strategies = [
        DispatchStrategy::ThreadPerConnection,
        DispatchStrategy::Reactive,
    ];
    for dispatch in strategies {
        let served = Served::by(Orb::builder().dispatch(dispatch));
        call_during_changes(&served, &[model(ServerDeclared, 20)]);
    }
}

#[test]
fn the_lanes_of_an_orb_grow_while_it_serves() {
    if !has_priorities() {
        return;
    }
    let own = |builder: OrbBuilder| {
        builder
            .dispatch(DispatchStrategy::Lanes)
            .lanes(vec![lane(20), lane(30)])
    };
    let waiting = own(Orb::builder()).build().expect("an ORB");
    waiting.root_poa().expect("a port");
    let refused = waiting.rt_orb().add_lane(None, lane(25));
    let refused = refused.expect_err("its threads do not run");
    assert!(refused.to_string().contains("run the ORB"), "{refused}");

    let served = Served::by(own(Orb::builder()));
    let policies = [model(ClientPropagated, 20)];
    let poa = served.adapter("served", &policies).expect("right");
    poa.manager().activate();
    let old: Relay = poa.activate(served.relayer("old")).expect("room");
    assert_eq!(way(Orb::builder(), &old, Some(30)), Ok(vec![(30, 30)]));
    let rt_orb = served.orb.rt_orb();
    rt_orb.add_lane(None, lane(25)).expect("room");
    let lanes = rt_orb.lanes(None);
    let lanes: Vec<i16> = lanes.iter().map(|lane| lane.lane_priority.get()).collect();
    assert_eq!(lanes, [20, 30, 25]);
    // An old reference does not have the new lane.
    let nobody = way(Orb::builder(), &old, Some(25)).map_err(|it| it.kind);
    assert_eq!(nobody, Err(ExceptionKind::InvPolicy));
    let new: Relay = poa.activate(served.relayer("new")).expect("room");
    for number in [20, 25, 30] {
        let seen = way(Orb::builder(), &new, Some(number));
        assert_eq!(seen, Ok(vec![(number, number)]));
    }
    drop(poa);
    let declared = [model(ServerDeclared, 20)];
    call_during_changes(&served, &declared);
}

#[test]
fn a_lane_that_does_not_fit_is_refused_with_the_reason() {
    if !has_priorities() {
        return;
    }
    let served = Served::by(Orb::builder());
    let rt_orb = served.orb.rt_orb();
    let laned = laned_pool(&rt_orb, &[20, 30]).expect("it has priorities");
    let plain = rt_orb.create_threadpool(rtorb::rt::Threadpool::default());
    let borrowing = rt_orb.create_threadpool_with_lanes(LanedThreadpool {
        lanes: vec![lane(20), lane(30)],
        allow_borrowing: true,
        ..LanedThreadpool::default()
    });
    let (plain, borrowing) = (plain.expect("a pool"), borrowing.expect("a pool"));
    let gone = laned_pool(&rt_orb, &[20]).expect("it has priorities");
    rt_orb.destroy_threadpool(gone).expect("unused");
    let add = |pool: Option<ThreadpoolId>, number| {
        let refused = rt_orb
            .add_lane(pool, lane(number))
            .expect_err("it is wrong");
        assert_eq!(refused.kind, ExceptionKind::BadParam, "{refused}");
        refused.to_string()
    };
    for (pool, number, words) in [
        (Some(laned), 20, "two lanes have priority 20"),
        (Some(laned), 100, "the mapping has 0 to 99"),
        (Some(plain), 25, "no lanes that clients choose"),
        (Some(borrowing), 25, "borrow"),
        (Some(gone), 25, "InvalidThreadpool"),
        (None, 25, "no lanes that clients choose"),
    ] {
        let said = add(pool, number);
        assert!(said.contains(words), "{words} in {said}");
    }
    assert_eq!(rt_orb.lanes(Some(laned)).len(), 2);
    // The pool ends with the lane that was added.
    rt_orb.add_lane(Some(laned), lane(25)).expect("room");
    rt_orb.destroy_threadpool(laned).expect("unused");
    assert_eq!(rt_orb.lanes(Some(laned)), []);
}

#[test]
fn a_pool_with_all_lanes_that_can_be_added_takes_no_more() {
    if !has_priorities() {
        return;
    }
    // With this mapping, there are more priorities than lanes that can be added.
    let served = Served::by(Orb::builder().priority_mapping(LinearMapping));
    let rt_orb = served.orb.rt_orb();
    let pool = laned_pool(&rt_orb, &[20]).expect("it has priorities");
    for number in 1..=99 {
        rt_orb
            .add_lane(Some(pool), lane(100 + number))
            .expect("room");
    }
    let refused = rt_orb.add_lane(Some(pool), lane(10)).expect_err("no room");
    assert_eq!(refused.kind, ExceptionKind::BadParam, "{refused}");
    let said = refused.to_string();
    assert!(said.contains("room for no more"), "{said}");
    assert_eq!(rt_orb.lanes(Some(pool)).len(), 100);
}

#[test]
fn the_priority_of_an_adapter_changes_for_objects_without_one_of_their_own() {
    if !has_priorities() {
        return;
    }
    let served = Served::by(Orb::builder());
    let poa = served
        .adapter("declared", &[model(ServerDeclared, 20)])
        .expect("right");
    poa.manager().activate();
    let its: Relay = poa.activate(served.relayer("its")).expect("room");
    let own = poa.activate_with_priority(served.relayer("own"), priority(30));
    let own: Relay = own.expect("room");
    let seen = |relay: &Relay| way(Orb::builder(), relay, None).expect("served")[0].0;
    assert_eq!((seen(&its), seen(&own)), (20, 30));
    poa.change_server_priority(priority(25))
        .expect("it is right");
    assert_eq!((seen(&its), seen(&own)), (25, 30));
    let later: Relay = poa.activate(served.relayer("later")).expect("room");
    assert_eq!(seen(&later), 25);
    assert_eq!(poa.policies().rt, [model(ServerDeclared, 25)]);
    // From now on it has one of its own.
    poa.change_priority(its.as_object(), priority(40))
        .expect("it is right");
    poa.change_server_priority(priority(20))
        .expect("it is right");
    assert_eq!((seen(&its), seen(&later)), (40, 20));

    let propagated = served.adapter("propagated", &[model(ClientPropagated, 20)]);
    let propagated = propagated.expect("right");
    let relay: Relay = propagated.activate(served.relayer("told")).expect("room");
    propagated
        .change_server_priority(priority(35))
        .expect("it is right");
    let model_now = propagated.policies().rt;
    assert_eq!(model_now, [model(ClientPropagated, 35)]);
    let wrong = propagated.change_priority(relay.as_object(), priority(35));
    assert_eq!(wrong, Err(PoaError::WrongPolicy));
    let wrong = served.root.change_server_priority(priority(35));
    assert_eq!(wrong, Err(PoaError::WrongPolicy));
    let wrong = poa.change_priority(relay.as_object(), priority(35));
    assert_eq!(wrong, Err(PoaError::WrongAdapter));
    let are_active = [&its, &relay].map(|object| poa.is_active(object.as_object()));
    assert_eq!(are_active, [true, false]);
    poa.deactivate(its.as_object()).expect("it is active");
    assert!(!poa.is_active(its.as_object()));
    let wrong = poa.change_priority(its.as_object(), priority(35));
    assert_eq!(wrong, Err(PoaError::ObjectNotActive));
}

#[test]
fn a_priority_without_a_lane_or_a_native_one_changes_nothing() {
    let served = Served::by(Orb::builder());
    let Some(pool) = laned_pool(&served.orb.rt_orb(), &[20, 30]) else {
        return;
    };
    let policies = PoaPolicies::PERSISTENT
        .with(model(ServerDeclared, 20))
        .with(Policy::Threadpool(pool));
    let poa = served.root.create_poa("laned", policies).expect("right");
    poa.manager().activate();
    let early: Relay = poa
        .create_reference_with_id_and_priority("valve", priority(30))
        .expect("it has a lane");
    let relay: Relay = poa
        .activate_with_id("valve", served.relayer("valve"))
        .expect("room");
    let change = |to: Priority| poa.change_priority(relay.as_object(), to);
    let no_lane = Err(PoaError::System(local::PRIORITY_UNSERVED));
    assert_eq!(change(priority(25)), no_lane);
    assert_eq!(poa.change_server_priority(priority(25)), no_lane);
    assert_eq!(way(Orb::builder(), &early, None), Ok(vec![(30, 30)]));
    let banded = [
        model(ServerDeclared, 20),
        Policy::Threadpool(pool),
        bands(&[(0, 25)]),
    ];
    let banded = served
        .adapter("banded", &banded)
        .expect("a lane is in the band");
    let of_lane: Result<Relay, _> =
        banded.activate_with_priority(served.relayer("x"), priority(30));
    assert_eq!(
        of_lane.err(),
        no_lane.clone().err(),
        "its lane is in no band"
    );
    assert_eq!(banded.change_server_priority(priority(30)), no_lane);
    change(priority(20)).expect("it has a lane");
    assert_eq!(way(Orb::builder(), &early, None), Ok(vec![(20, 20)]));
    // An object that is activated again keeps it.
    poa.deactivate_id("valve").expect("it is active");
    poa.activate_with_id::<Relay, _>("valve", served.relayer("valve"))
        .expect("room");
    assert_eq!(way(Orb::builder(), &early, None), Ok(vec![(20, 20)]));
}
