//! Threads that calls wait for, which run above all lanes, where the host refuses them that priority.

use rtorb::exception::local::PRIORITY_REFUSED;
use rtorb::rt::{LanedThreadpool, Priority, ThreadpoolLane};
use rtorb::thread::{Resource, SchedPolicy};
use rtorb::{ConnectionStrategy, DispatchStrategy, Orb, OrbError, SystemException, WaitStrategy};
use rtorb_os::sched::allowed;
use rtorb_tests::ours::Ours;
use rtorb_tests::scheduling::{Task, tasks};
use rtorb_tests::scratch::Scratch;
use rustix::process::{Resource as Limit, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::thread;

/// The priority of the lanes.
const URGENT: u8 = 60;

pub(crate) fn a_client_thread_whose_priority_is_refused_fails_the_call_that_starts_it() {
    if is_never_allowed() {
        return;
    }
    let scratch = Scratch::new();
    let path = format!("shmiop://{}", scratch.join("socket").display());
    let by_memory = Ours::serve_as(Orb::builder().listen(&path));
    let by_socket = Ours::serve();
    for (connection, ours) in [
        (ConnectionStrategy::Exclusive, &by_socket),
        (ConnectionStrategy::Exclusive, &by_memory),
        (multiplexed(WaitStrategy::Reactor), &by_socket),
        (multiplexed(WaitStrategy::ConnectionThread), &by_socket),
    ] {
        let orb = Orb::builder().connection(connection).build();
        let orb = orb.expect("an ORB");
        let pool = orb.rt_orb().create_threadpool_with_lanes(lane());
        pool.expect("allowed, and no client's thread runs yet");
        let refused = where_it_is_refused(|| call(&orb, ours));
        let refused = refused.expect_err("the thread is to be above the lane");
        check(&refused);
        let cause = refused.cause.expect("it is known");
        assert!(cause.endpoint.is_some(), "{connection:?}");
        orb.destroy().expect("not in a servant");
    }
}

pub(crate) fn a_client_thread_whose_priority_is_refused_fails_what_would_be_below_it() {
    if is_never_allowed() {
        return;
    }
    let ours = Ours::serve();
    let builder = Orb::builder().dispatch(DispatchStrategy::Lanes);
    let orb = builder.lanes(lane().lanes).build().expect("an ORB");
    assert_eq!(call(&orb, &ours), Ok(false), "it starts the watchdog");
    let (rt_orb, current) = (orb.rt_orb(), orb.rt_current());
    let urgent = Priority::new(URGENT.into()).expect("legal");
    where_it_is_refused(|| {
        // What was refused once is refused again.
        for _ in 0..2 {
            let refused = rt_orb.create_threadpool_with_lanes(lane());
            check(&refused.expect_err("the watchdog is to be above it"));
            let refused = current.set_the_priority(urgent);
            check(&refused.expect_err("the watchdog is to be above it"));
        }
        match orb.run().expect_err("the watchdog is to be above it") {
            OrbError::Refused(refused) => {
                let above = Resource::Policy(SchedPolicy::Fifo(URGENT + 1));
                assert_eq!(refused.resource, above);
            }
            other => panic!("{other}"),
        }
    });
    let with_right = || current.set_the_priority(urgent);
    let set = thread::scope(|scope| scope.spawn(with_right).join());
    set.expect("no panic").expect("allowed");
    let above = Task::new("rtorb-watchdog", u32::from(URGENT) + 1);
    assert!(tasks(std::process::id()).contains(&above), "not forgotten");
}

fn check(refused: &SystemException) {
    let text = refused.to_string();
    let kind = (PRIORITY_REFUSED.kind, PRIORITY_REFUSED.minor);
    assert_eq!((refused.kind, refused.minor), kind, "{text}");
    let above = format!("SCHED_FIFO priority {}", URGENT + 1);
    assert!(text.contains(&above), "{text}");
}

fn call(orb: &Orb, ours: &Ours) -> Result<bool, SystemException> {
    let text = ours.text(ours.cubit.as_object());
    let object = orb.string_to_object(&text).expect("a reference");
    object.is_a("IDL:Any:1.0")
}

fn multiplexed(wait: WaitStrategy) -> ConnectionStrategy {
    ConnectionStrategy::Multiplexed { wait }
}

fn lane() -> LanedThreadpool {
    LanedThreadpool {
        lanes: vec![ThreadpoolLane {
            lane_priority: Priority::new(URGENT.into()).expect("legal"),
            static_threads: 1,
            ..ThreadpoolLane::default()
        }],
        ..LanedThreadpool::default()
    }
}

fn is_never_allowed() -> bool {
    let refused = allowed(SchedPolicy::Fifo(URGENT + 1)).err();
    refused
        .inspect(|refused| println!("skipped: {refused}"))
        .is_some()
}

/// Carries out `work` on a thread without a right to real-time priorities; nor have it those that it makes.
fn where_it_is_refused<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let before = getrlimit(Limit::Rtprio);
    let none = Rlimit {
        current: Some(0),
        ..before
    };
    setrlimit(Limit::Rtprio, none).expect("lower");
    let without_right = || {
        let mut held = capabilities(None).expect("of this thread");
        held.effective.remove(CapabilitySet::SYS_NICE);
        set_capabilities(None, held).expect("fewer");
        work()
    };
    let worked = thread::scope(|scope| scope.spawn(without_right).join());
    setrlimit(Limit::Rtprio, before).expect("as before");
    worked.expect("no panic")
}
