//! Calls of objects of the same ORB: on the calling thread where that is possible, and with what a call over a connection has.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use rtorb::cdr::ByteOrder;
use rtorb::exception::{OMG, RTORB};
use rtorb::giop::Version;
use rtorb::poa::PoaManagerState;
use rtorb::rt::{Policy, PriorityModel, PriorityTransform, Threadpool};
use rtorb::timing::TimingSide;
use rtorb::{
    Collocation, CompletionStatus, DispatchStrategy, ExceptionKind, Limits, ObjectRef, Orb,
    OrbBuilder, PoaPolicies, SyncScope, SystemException,
};
use rtorb_os::sched::{SchedPolicy, apply_policy, current_policy};
use rtorb_tests::clockwork::{Works, counted};
use rtorb_tests::ours::{Ours, Wide, check_cubit, check_desk, check_nested};
use rtorb_tests::relay::{Pair, Served, has_priorities, model, priority, seen};
use rtorb_tests::running::until;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::timing::Clockwork;
use rtorb_tests::stubs::{Greeter, GreeterServant, Relay, RelayServant, Seen};

/// A relay that does as a test says.
struct Acts<F>(F);

impl<F> RelayServant for Acts<F>
where
    F: Fn() -> Result<Vec<Seen>, SystemException> + Send + Sync + 'static,
{
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        (self.0)()
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        (self.0)().map(|_| ())
    }
}

fn serve() -> Served {
    Served::collocated(Orb::builder())
}

/// A relay of the root adapter that does so.
fn acting(
    served: &Served,
    act: impl Fn() -> Result<Vec<Seen>, SystemException> + Send + Sync + 'static,
) -> Relay {
    served.root.activate(Acts(act)).expect("there is room")
}

/// A servant that tells the threads on which it is called.
fn watched() -> (impl RelayServant + 'static, mpsc::Receiver<ThreadId>) {
    let (tell, told) = mpsc::channel();
    let servant = Acts(move || {
        tell.send(thread::current().id()).expect("the test listens");
        Ok(Vec::new())
    });
    (servant, told)
}

/// True if a call of the relay is served on the calling thread.
fn is_direct(relay: &Relay, told: &mpsc::Receiver<ThreadId>) -> bool {
    relay.pass_on().expect("it is served");
    told.recv().expect("it was called") == thread::current().id()
}

#[test]
fn every_operation_is_right_in_every_form_of_message() {
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let builder = Orb::builder().max_giop_version(version).byte_order(order);
            let ours = Ours::serve_collocated(builder.fragment_bytes(256));
            // The longest are borrowed by a message that goes over a connection.
            check_cubit(&ours.cubit, &[0, 1, 100, 70_000]);
            let wide = if version == Version::V1_0 {
                Wide::LeftOut
            } else {
                Wide::Sent
            };
            check_desk(&ours.desk, wide);
            check_nested(&ours.desk);
        }
    }
}

/// A greeter that greets everybody by the address of the name in memory.
struct Addresses;

impl GreeterServant for Addresses {
    fn greet(&self, name: &str) -> Result<String, SystemException> {
        Ok(format!("{:p}", name.as_ptr()))
    }
}

#[test]
fn a_servant_gets_the_arguments_of_its_caller_unless_the_call_needs_a_request() {
    let served = serve();
    let name = "world";
    let own = format!("{:p}", name.as_ptr());
    let greeter: Greeter = served.root.activate(Addresses).expect("there is room");
    assert_eq!(greeter.greet(name), Ok(own.clone()));
    let text = served.orb.object_to_string(greeter.as_object());
    let read = served.orb.string_to_object(&text).expect("a reference");
    assert_eq!(Greeter::unchecked_narrow(read).greet(name), Ok(own.clone()));
    let minute = Some(Duration::from_mins(1));
    let bounded = greeter.with_timeout(minute);
    let by_transport = bounded.greet(name);
    assert_ne!(by_transport.expect("it is served"), own);
    let poa = served.root.create_poa("Named", PoaPolicies::PERSISTENT);
    let named: Greeter = poa
        .expect("the name is free")
        .activate_with_id("one", Addresses)
        .expect("there is room");
    assert_ne!(named.greet(name).expect("it is served"), own);
}

/// Deactivates itself in a call, so that the end of the call drops it. Panics when it is dropped.
struct Fragile(rtorb::Poa, Arc<OnceLock<Greeter>>);

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("a servant panics when it is dropped: this is a test");
    }
}

impl GreeterServant for Fragile {
    fn greet(&self, _: &str) -> Result<String, SystemException> {
        let own = self.1.get().expect("it is known").as_object();
        self.0.deactivate(own).expect("it is active");
        Ok("last".to_owned())
    }
}

#[test]
fn a_servant_that_panics_when_it_is_dropped_has_answered_its_last_call() {
    let served = serve();
    let own = Arc::new(OnceLock::new());
    let fragile = Fragile(served.root.clone(), Arc::clone(&own));
    let greeter: Greeter = served.root.activate(fragile).expect("there is room");
    own.set(greeter.clone()).expect("it was not known");
    assert_eq!(greeter.greet("world"), Ok("last".to_owned()));
}

#[test]
fn a_reference_of_another_interface_finds_no_operation() {
    let served = serve();
    let greeter: Greeter = served.root.activate(Addresses).expect("there is room");
    let relay = Relay::unchecked_narrow(greeter.as_object().clone());
    let refused = relay.pass_on().expect_err("it is no relay");
    assert_eq!(refused.kind, ExceptionKind::BadOperation);
    let retired = relay.as_object().clone();
    served
        .root
        .deactivate(greeter.as_object())
        .expect("it is active");
    let gone = Greeter::unchecked_narrow(retired).greet("world");
    assert_eq!(
        gone.expect_err("it is gone").kind,
        ExceptionKind::ObjectNotExist
    );
}

#[test]
fn a_reference_of_an_object_that_is_gone_does_not_reach_the_next_object() {
    let served = serve();
    let activate = || -> Greeter { served.root.activate(Addresses).expect("there is room") };
    let first = activate();
    first.greet("world").expect("it is active");
    served.root.deactivate(first.as_object()).expect("active");
    // It has the place of the first one in the table of objects.
    let next = activate();
    for _ in 0..2 {
        let gone = first.greet("world").expect_err("it is gone");
        assert_eq!(gone.kind, ExceptionKind::ObjectNotExist);
        next.greet("world").expect("it is active");
    }
}

#[test]
fn an_object_is_called_directly_by_every_reference_of_its_orb() {
    let scratch = Scratch::new();
    for endpoint in [
        "iiop://127.0.0.1:0".to_owned(),
        "iiop://127.0.0.1:0/hostname_in_ior=localhost".to_owned(),
        format!("uiop://{}", scratch.join("socket").display()),
        format!("shmiop://{}", scratch.join("memory").display()),
    ] {
        let served = Served::collocated(Orb::builder().listen(&endpoint));
        let (servant, told) = watched();
        let relay: Relay = served.root.activate(servant).expect("there is room");
        assert!(is_direct(&relay, &told), "{endpoint}: the adapter's");
        let text = served.orb.object_to_string(relay.as_object());
        let read = served.orb.string_to_object(&text).expect("a reference");
        let read = Relay::narrow(&read).expect("it is a Relay");
        assert!(is_direct(&read, &told), "{endpoint}: from text");
        let object = relay.as_object();
        served
            .orb
            .bind_object_key("Key", object)
            .expect("it is free");
        if endpoint == "iiop://127.0.0.1:0" {
            let port = object.endpoints().next().expect("one").to_string();
            let corbaloc = port.replace("iiop://", "corbaloc:iiop:") + "/Key";
            let bound = served.orb.string_to_object(&corbaloc).expect("a URL");
            assert!(
                is_direct(&Relay::unchecked_narrow(bound), &told),
                "by its key"
            );
        }
    }
}

#[test]
fn objects_without_activation_are_called_directly() {
    let served = serve();
    let poa = served.root.create_poa("Located", PoaPolicies::PERSISTENT);
    let poa = poa.expect("the name is free");
    let (tell, told) = mpsc::channel();
    poa.set_servant_locator::<Relay, _, _>(move |id: &[u8]| {
        if id == b"none" {
            return Err(ExceptionKind::ObjectNotExist.into());
        }
        let tell = tell.clone();
        Ok(Acts(move || {
            tell.send(thread::current().id()).expect("the test listens");
            Ok(Vec::new())
        }))
    })
    .expect("it has no objects");
    let relay: Relay = poa.create_reference_with_id("a").expect("it is persistent");
    assert!(is_direct(&relay, &told));
    let none: Relay = poa.create_reference_with_id("none").expect("persistent");
    let gone = none.pass_on().expect_err("there is none");
    assert_eq!(gone.kind, ExceptionKind::ObjectNotExist);
    assert_eq!(none.as_object().non_existent(), Ok(true));
}

#[test]
fn what_a_direct_call_cannot_keep_goes_by_a_transport() {
    let minute = Some(Duration::from_mins(1));
    let cases: [(&str, OrbBuilder, bool); 9] = [
        ("default", Orb::builder(), true),
        ("waits", Orb::builder().round_trip_timeout(None), true),
        ("timeout", Orb::builder().round_trip_timeout(minute), false),
        (
            "transport",
            Orb::builder().collocation(Collocation::Transport),
            false,
        ),
        ("reactive", by(DispatchStrategy::Reactive), false),
        ("worker_pool", by(DispatchStrategy::WorkerPool), false),
        ("followers", by(DispatchStrategy::LeaderFollowers), false),
        ("filter_chain", by(DispatchStrategy::FilterChain), false),
        ("lanes", by(DispatchStrategy::Lanes), false),
    ];
    for (name, builder, expected) in cases {
        let orb = builder.build().expect("an ORB");
        let root = orb.root_poa().expect("a port");
        let (servant, told) = watched();
        let relay: Relay = root.activate(servant).expect("there is room");
        let server = orb.clone();
        let running = thread::spawn(move || server.run());
        assert_eq!(is_direct(&relay, &told), expected, "{name}");
        let bounded = relay.as_object().with_timeout(minute);
        let overridden = bounded.set_policy_overrides(&[Policy::PrivateConnection]);
        let overridden = Relay::unchecked_narrow(overridden.expect("it is a client's"));
        for bounded in [Relay::unchecked_narrow(bounded), overridden] {
            assert!(!is_direct(&bounded, &told), "{name}, its own timeout");
        }
        let waits = relay.as_object().with_timeout(None);
        let waits = Relay::unchecked_narrow(waits);
        let is_possible = expected || name == "timeout";
        assert_eq!(is_direct(&waits, &told), is_possible, "{name}, no timeout");
        relay.shutdown().expect("a oneway is sent");
        let thread = told.recv().expect("it was called");
        assert_ne!(thread, thread::current().id(), "{name}, a oneway");
        orb.shutdown();
        running.join().expect("no panic").expect("it ran");
    }
}

fn by(dispatch: DispatchStrategy) -> OrbBuilder {
    Orb::builder().dispatch(dispatch)
}

#[test]
fn objects_of_a_thread_pool_and_of_another_orb_are_called_by_a_transport() {
    let served = serve();
    let pool = served.orb.rt_orb().create_threadpool(Threadpool {
        static_threads: 1,
        ..Threadpool::default()
    });
    let pool = pool.expect("a pool");
    let poa = served.adapter("Pooled", &[Policy::Threadpool(pool)]);
    let (servant, told) = watched();
    let pooled: Relay = poa.expect("free").activate(servant).expect("there is room");
    assert!(!is_direct(&pooled, &told));
    let (servant, told) = watched();
    let relay: Relay = served.root.activate(servant).expect("there is room");
    let other = serve();
    let text = relay.as_object().to_string();
    let elsewhere = other.orb.string_to_object(&text).expect("a reference");
    assert!(!is_direct(&Relay::unchecked_narrow(elsewhere), &told));
    assert!(is_direct(&relay, &told));
}

#[test]
fn a_key_at_the_wrong_endpoint_leads_to_the_pool_of_its_object() {
    let served = serve();
    let pool = served.orb.rt_orb().create_threadpool(Threadpool {
        static_threads: 1,
        ..Threadpool::default()
    });
    let policies = PoaPolicies::PERSISTENT.with(Policy::Threadpool(pool.expect("a pool")));
    let poa = served.root.create_poa("Pooled", policies).expect("free");
    let (servant, told) = watched();
    let _: Relay = poa.activate_with_id("a", servant).expect("there is room");
    let plain = acting(&served, || Ok(Vec::new()));
    let endpoint = plain.as_object().endpoints().next().expect("one");
    let corbaloc = endpoint.to_string().replace("iiop://", "corbaloc:iiop:") + "/Pooled/a";
    let object = served.orb.string_to_object(&corbaloc).expect("a URL");
    // The first call follows the forward, the second one knows it.
    for _ in 0..2 {
        assert!(!is_direct(&Relay::unchecked_narrow(object.clone()), &told));
    }
}

#[test]
fn a_connection_that_is_validated_is_open_for_oneways() {
    let served = serve();
    let (servant, told) = watched();
    let relay: Relay = served.root.activate(servant).expect("there is room");
    let at_once = relay.as_object().with_sync_scope(SyncScope::None);
    let at_once = Relay::unchecked_narrow(at_once);
    let unsent = at_once.shutdown().expect_err("no connection is open");
    assert_eq!(unsent.minor, SyncScope::UNCONNECTED);
    assert!(is_direct(&relay, &told));
    at_once.shutdown().expect_err("a direct call opens none");
    at_once
        .as_object()
        .validate_connection()
        .expect("it is there");
    at_once.shutdown().expect("it is sent");
    told.recv().expect("it arrives");
}

#[test]
fn a_manager_that_does_not_admit_requests_refuses_direct_calls() {
    let served = serve();
    let relay = acting(&served, || Ok(Vec::new()));
    let manager = served.root.manager();
    let refused = || {
        let refused = relay.pass_on().expect_err("it is not admitted");
        (refused.kind, refused.minor, refused.completed)
    };
    manager.discard_requests();
    let expected = (ExceptionKind::Transient, OMG | 1, CompletionStatus::No);
    assert_eq!(refused(), expected);
    manager.activate();
    assert_eq!(relay.pass_on(), Ok(Vec::new()));
    manager.deactivate();
    assert_eq!(manager.state(), PoaManagerState::Inactive);
    let expected = (ExceptionKind::ObjAdapter, OMG | 1, CompletionStatus::No);
    assert_eq!(refused(), expected);
}

#[test]
fn a_servant_is_there_until_the_last_direct_call_of_it_has_ended() {
    struct Dropped(Arc<AtomicBool>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let served = serve();
    let is_dropped = Arc::new(AtomicBool::new(false));
    let guard = Dropped(Arc::clone(&is_dropped));
    let (own, root) = (mpsc::channel::<ObjectRef>(), served.root.clone());
    let of_test = Arc::clone(&is_dropped);
    let own_reference = std::sync::Mutex::new(own.1);
    let relay = acting(&served, move || {
        let _ = &guard;
        let own = own_reference.lock().expect("no panic").recv();
        root.deactivate(&own.expect("it is sent")).expect("active");
        assert!(!of_test.load(Ordering::SeqCst), "it still runs");
        Ok(Vec::new())
    });
    own.0.send(relay.as_object().clone()).expect("it listens");
    assert_eq!(relay.pass_on(), Ok(Vec::new()));
    assert!(is_dropped.load(Ordering::SeqCst));
    let gone = relay.pass_on().expect_err("it is not active");
    assert_eq!(gone.kind, ExceptionKind::ObjectNotExist, "{gone}");
    assert_eq!(relay.as_object().non_existent(), Ok(true));
}

#[test]
fn a_panic_of_a_servant_is_unknown_for_its_caller() {
    let served = Served::collocated(limited(2));
    let broken = acting(&served, || panic!("this one is wanted"));
    for _ in 0..4 {
        let failed = broken.pass_on().expect_err("it panics");
        assert_eq!(failed.kind, ExceptionKind::Unknown);
        assert_eq!(failed.completed, CompletionStatus::Maybe);
    }
}

fn limited(depth_max: usize) -> OrbBuilder {
    Orb::builder().limits(Limits::with(|limits| {
        limits.collocated_depth_max = depth_max;
    }))
}

/// A relay that calls itself so often within each other, and then returns.
fn recursive(served: &Served, depth: usize) -> Relay {
    let (send, own) = mpsc::channel::<Relay>();
    let own = std::sync::Mutex::new((own, None, 0));
    let relay = acting(served, move || {
        let next = {
            let mut state = own.lock().expect("no panic");
            let (own, known, level) = &mut *state;
            let relay = known.get_or_insert_with(|| own.recv().expect("it is sent"));
            let is_last = *level + 1 >= depth;
            *level = if is_last { 0 } else { *level + 1 };
            (!is_last).then(|| relay.clone())
        };
        next.map_or(Ok(Vec::new()), |relay| relay.pass_on())
    });
    send.send(relay.clone()).expect("it listens");
    relay
}

#[test]
fn calls_within_each_other_are_bounded_and_the_bound_is_no_end() {
    let served = Served::collocated(limited(5));
    assert_eq!(recursive(&served, 5).pass_on(), Ok(Vec::new()));
    let too_deep = recursive(&served, 6).pass_on().expect_err("one too many");
    let expected = (ExceptionKind::ImpLimit, RTORB | 1, CompletionStatus::No);
    let told = (too_deep.kind, too_deep.minor, too_deep.completed);
    assert_eq!(told, expected, "{too_deep}");
    assert!(
        too_deep.to_string().contains("collocated_depth_max"),
        "{too_deep}"
    );
    assert_eq!(recursive(&served, 5).pass_on(), Ok(Vec::new()));
}

/// Stack of a thread that makes as many calls within each other as the default allows.
const STACK_BYTES: usize = 512 << 10;

#[test]
fn the_default_depth_fits_on_a_small_stack() {
    let served = serve();
    let relay = recursive(&served, Limits::default().collocated_depth_max);
    let thread = thread::Builder::new().stack_size(STACK_BYTES);
    let called = thread.spawn(move || relay.pass_on()).expect("a thread");
    assert_eq!(called.join().expect("no panic"), Ok(Vec::new()));
}

#[test]
fn a_direct_call_in_progress_outlives_the_shutdown_of_its_orb() {
    let served = serve();
    let orb = served.orb.clone();
    let relay = acting(&served, move || {
        let refused = orb.destroy().expect_err("its thread would wait for itself");
        assert_eq!(refused.minor, OMG | 3);
        orb.shutdown();
        Ok(vec![seen("me", &orb)])
    });
    let way = relay.pass_on().expect("it has begun");
    assert_eq!(way[0].who, "me");
    let ended = relay.pass_on().expect_err("the ORB has ended");
    let told = (ended.kind, ended.minor);
    assert_eq!(told, (ExceptionKind::BadInvOrder, OMG | 4));
}

#[test]
fn a_direct_call_needs_no_thread_that_runs_the_orb() {
    let orb = Orb::builder().build().expect("an ORB");
    let root = orb.root_poa().expect("a port");
    let (servant, told) = watched();
    let relay: Relay = root.activate(servant).expect("there is room");
    assert!(is_direct(&relay, &told));
    orb.destroy().expect("it is in no servant");
}

#[test]
fn annotated_operations_are_counted_on_both_sides() {
    let served = serve();
    let object: Clockwork = served.root.activate(Works::default()).expect("room");
    for n in 0..3 {
        assert_eq!(object.cube(n), Ok(n * n * n));
    }
    for side in [TimingSide::Client, TimingSide::Server] {
        let counts = counted(&served.orb, ("cube", side), 3);
        assert_eq!(counts.deadline_misses, 0, "{side:?}");
    }
}

/// The calling thread's CORBA priority and the kernel's.
fn here(orb: &Orb) -> Pair {
    let seen = seen("", orb);
    (seen.corba, seen.kernel)
}

/// Runs `test` on a thread of its own, whose priority it may change.
fn on_a_thread(test: impl FnOnce() + Send) {
    thread::scope(|scope| scope.spawn(test).join()).expect("the checks hold");
}

/// A relay that tells what its thread is, in an adapter with that model.
fn telling(served: &Served, name: &str, policies: &[Policy]) -> Relay {
    let poa = served.adapter(name, policies).expect("they go together");
    poa.activate(served.relayer(name)).expect("there is room")
}

fn told_by(relay: &Relay) -> Vec<Pair> {
    let way = relay.pass_on().expect("it is served");
    way.iter().map(|seen| (seen.corba, seen.kernel)).collect()
}

//= RT-CORBA 1.2 §Real-Time CORBA Priority Models
//% test
#[test]
fn a_direct_call_has_the_priority_of_its_model_and_the_thread_gets_back_its_own() {
    if !has_priorities() {
        return;
    }
    let served = serve();
    let propagated = model(PriorityModel::ClientPropagated, 3);
    let propagated = telling(&served, "propagated", &[propagated]);
    let declared = model(PriorityModel::ServerDeclared, 7);
    let declared = telling(&served, "declared", &[declared]);
    let plain = telling(&served, "plain", &[]);
    on_a_thread(|| {
        let orb = &served.orb;
        orb.rt_current()
            .set_the_priority(priority(20))
            .expect("allowed");
        for own in [20, 9] {
            orb.rt_current()
                .set_the_priority(priority(own))
                .expect("allowed");
            assert_eq!(told_by(&propagated), [(own, own)]);
            assert_eq!(told_by(&declared), [(7, 7)]);
            assert_eq!(told_by(&plain), [(own, own)], "it is as the caller is");
            assert_eq!(here(orb), (own, own));
        }
    });
    // A thread that has set no priority, and whose scheduling changes without the ORB's knowledge.
    on_a_thread(|| {
        for policy in [
            SchedPolicy::Other,
            SchedPolicy::RoundRobin(30),
            SchedPolicy::Fifo(5),
        ] {
            apply_policy(policy).expect("it is allowed");
            assert_eq!(told_by(&declared), [(7, 7)]);
            assert_eq!(current_policy(), policy);
            assert_eq!(told_by(&plain), [(-1, policy.priority().into())]);
        }
    });
}

#[test]
fn a_servant_that_changes_its_priority_leaves_the_caller_as_it_was() {
    if !has_priorities() {
        return;
    }
    let served = serve();
    let orb = served.orb.clone();
    let act = move || {
        orb.rt_current().set_the_priority(priority(40))?;
        Ok(vec![seen("", &orb)])
    };
    let plain = acting(&served, act.clone());
    let declared = served.adapter("declared", &[model(PriorityModel::ServerDeclared, 7)]);
    let declared: Relay = declared.expect("free").activate(Acts(act)).expect("room");
    on_a_thread(|| {
        for relay in [&plain, &declared] {
            for policy in [SchedPolicy::RoundRobin(30), SchedPolicy::Other] {
                apply_policy(policy).expect("it is allowed");
                assert_eq!(told_by(relay), [(40, 40)]);
                assert_eq!((here(&served.orb).0, current_policy()), (-1, policy));
            }
        }
        let current = served.orb.rt_current();
        current.set_the_priority(priority(12)).expect("allowed");
        for relay in [&plain, &declared] {
            assert_eq!(told_by(relay), [(40, 40)]);
            assert_eq!(here(&served.orb), (12, 12));
        }
    });
}

/// Adds to a priority.
#[derive(Debug)]
struct Adds(i16);

impl PriorityTransform for Adds {
    fn transform_priority(
        &self,
        own: rtorb::rt::Priority,
        _: &[u8],
    ) -> Option<rtorb::rt::Priority> {
        rtorb::rt::Priority::new(own.get() + self.0).ok()
    }
}

//= RT-CORBA 1.2 §Priority Transforms
//% test
#[test]
fn transforms_change_the_priority_of_a_direct_call() {
    if !has_priorities() {
        return;
    }
    let builder = Orb::builder();
    let builder = builder
        .outbound_transform(Adds(1))
        .inbound_transform(Adds(10));
    let served = Served::collocated(builder);
    let propagated = model(PriorityModel::ClientPropagated, 3);
    let propagated = telling(&served, "propagated", &[propagated]);
    on_a_thread(|| {
        let current = served.orb.rt_current();
        current.set_the_priority(priority(20)).expect("allowed");
        assert_eq!(told_by(&propagated), [(31, 31)]);
        assert_eq!(here(&served.orb), (20, 20));
    });
}

#[test]
fn many_threads_call_directly_at_once_while_objects_come_and_go() {
    let ours = Ours::serve_collocated(Orb::builder());
    thread::scope(|scope| {
        for n in 0..8 {
            let ours = &ours;
            scope.spawn(move || {
                for k in 0..200 {
                    let n = n * 1000 + k;
                    assert_eq!(ours.cubit.cube_long(n), Ok(n.wrapping_pow(3)));
                }
            });
        }
        for _ in 0..50 {
            let relay: Relay = ours.poa.activate(Acts(|| Ok(Vec::new()))).expect("room");
            let caller = relay.clone();
            let calling = scope.spawn(move || until("it is gone", || caller.pass_on().err()));
            ours.poa.deactivate(relay.as_object()).expect("active");
            let gone = calling.join().expect("no panic");
            assert_eq!(gone.kind, ExceptionKind::ObjectNotExist, "{gone}");
        }
    });
}
