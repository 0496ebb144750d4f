//! Locks and heap calls of warm calls, counted on both sides: none where no thread shares anything with another.
//!
//! P1 counts 41 and 100 user-level locks a request for TAO 1.0, 199 and 216 for CORBAplus, 175 and 599 for MT-Orbix, 94 and
//! 231 for miniCOOL, in the client and in the server. What our versions of those architectures take is printed.

use rtorb::rt::{LanedThreadpool, Policy, PriorityModel, RequestOrder, ThreadpoolLane};
use rtorb::{ObjectRef, Orb, PoaPolicies, Strategies};
use rtorb_instruments::heap::{CountingAllocator, process_heap_calls, thread_heap_calls};
use rtorb_os::sync::{process_lock_calls, thread_lock_calls};
use rtorb_tests::asleep::until_others_sleep;
use rtorb_tests::ours::Ours;
use rtorb_tests::relay::priority;
use rtorb_tests::scheduling::TimeSharing;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::Cubit;
use std::thread;
use std::time::Duration;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

/// Calls before counting begins: connections, buffers and tables are made in them.
const WARM_UP: usize = 200;
const CALLS: usize = 1000;

/// None of ours needs more than this for a request, on either side.
const LOCKS_MAX: f64 = 16.0;

fn main() {
    rtorb_tests::alone::run(
        "warm_calls_take_no_lock_and_no_heap_where_nothing_is_shared",
        warm_calls_take_no_lock_and_no_heap_where_nothing_is_shared,
    );
}

/// One test, since the counters of the process count whatever runs beside it.
fn warm_calls_take_no_lock_and_no_heap_where_nothing_is_shared() {
    let scratch = Scratch::new();
    let endpoints = [
        "iiop://127.0.0.1:0".to_owned(),
        format!("uiop://{}", scratch.join("socket").display()),
        format!("shmiop://{}", scratch.join("memory").display()),
    ];
    for endpoint in endpoints {
        for (name, preset) in Strategies::PRESETS {
            let ours = Ours::serve_as(
                Orb::builder()
                    .strategies(preset)
                    .priority_mapping(TimeSharing)
                    .listen(&endpoint),
            );
            let counted = count(preset, ours.cubit.as_object());
            println!("{name}, {endpoint}: {counted:?} a request");
            if name == "default" || name == "tao" {
                assert_eq!(counted, Counted::default(), "{name}, {endpoint}");
            } else {
                assert!(counted.here.locks <= LOCKS_MAX, "{name}: {counted:?}");
                assert!(counted.elsewhere.locks <= LOCKS_MAX, "{name}: {counted:?}");
                assert_eq!(counted.here.heap_calls, 0.0, "{name}: {counted:?}");
                assert_eq!(counted.elsewhere.heap_calls, 0.0, "{name}: {counted:?}");
            }
        }
    }
    collocated();
    lanes_of_a_pool(PriorityModel::ClientPropagated);
    lanes_of_a_pool(PriorityModel::ServerDeclared);
    lane_by_deadline();
}

/// Objects with and without a priority model, called by their own ORB on the calling thread.
fn collocated() {
    let ours = Ours::serve_collocated(Orb::builder().priority_mapping(TimeSharing));
    let current = ours.orb.rt_current();
    let set = current.set_the_priority(priority(10));
    set.expect("it needs no permission");
    let counted = count_calls(ours.cubit.as_object());
    assert_eq!(counted, Counted::default(), "collocated");
    for (name, model) in [
        ("Propagated", PriorityModel::ClientPropagated),
        ("Declared", PriorityModel::ServerDeclared),
    ] {
        let policies = PoaPolicies::PERSISTENT.with(Policy::PriorityModel {
            model,
            server_priority: priority(20),
        });
        let poa = ours.poa.create_poa(name, policies).expect("it is free");
        let servant = Cubes {
            orb: ours.orb.clone(),
        };
        let cubit: Cubit = poa.activate_with_id("a", servant).expect("room");
        let counted = count_calls(cubit.as_object());
        assert_eq!(counted, Counted::default(), "collocated, {name}");
    }
}

/// A pool of lanes with one thread and with several, and a client for each lane.
fn lanes_of_a_pool(model: PriorityModel) {
    let ours = Ours::serve_as(Orb::builder().priority_mapping(TimeSharing));
    let lane = |number, static_threads| ThreadpoolLane {
        lane_priority: priority(number),
        static_threads,
        ..ThreadpoolLane::default()
    };
    let started = ours
        .orb
        .rt_orb()
        .create_threadpool_with_lanes(LanedThreadpool {
            lanes: vec![lane(10, 1), lane(20, 3)],
            ..LanedThreadpool::default()
        });
    let pool = started.expect("the pool is started");
    let root = ours.orb.root_poa().expect("the ORB runs");
    for (number, name) in [(10, "One"), (20, "Several")] {
        let policies =
            PoaPolicies::default()
                .with(Policy::Threadpool(pool))
                .with(Policy::PriorityModel {
                    model,
                    server_priority: priority(number),
                });
        let poa = root.create_poa(name, policies).expect("they go together");
        let servant = Cubes {
            orb: ours.orb.clone(),
        };
        let cubit: Cubit = poa.activate(servant).expect("there is room");
        let text = ours.text(cubit.as_object());
        let counted = thread::spawn(move || {
            let client = client(Strategies::TAO);
            let current = client.rt_current();
            current
                .set_the_priority(priority(number))
                .expect("it needs no permission");
            count_calls(&client.string_to_object(&text).expect("a reference"))
        });
        let mut counted = counted.join().expect("no panic");
        if name == "Several" {
            // A thread that has served a connection 16 times in a row, because events of it kept waking others, gives it back to
            // the event loop: two locks, which no other thread holds.
            assert!(counted.elsewhere.locks <= 4.0 / 16.0, "{counted:?}");
            counted.elsewhere.locks = 0.0;
        }
        assert_eq!(counted, Counted::default(), "{name} thread, {model:?}");
    }
}

/// A lane that serves requests in the order of their deadlines: the I/O thread and the thread of a level each lock its levels once. The
/// reply takes the lock of the connection, as from every queue.
fn lane_by_deadline() {
    // Levels need real-time priorities, which they do not get where the host refuses them.
    let ours = Ours::serve_as(Orb::builder().best_effort());
    let lane = ThreadpoolLane {
        lane_priority: priority(10),
        static_threads: 3,
        order: RequestOrder::EarliestDeadline,
        ..ThreadpoolLane::default()
    };
    let started = ours
        .orb
        .rt_orb()
        .create_threadpool_with_lanes(LanedThreadpool {
            lanes: vec![lane],
            ..LanedThreadpool::default()
        });
    let model = Policy::PriorityModel {
        model: PriorityModel::ServerDeclared,
        server_priority: lane.lane_priority,
    };
    let pool = Policy::Threadpool(started.expect("the pool is started"));
    let root = ours.orb.root_poa().expect("the ORB runs");
    let policies = PoaPolicies::default().with(pool).with(model);
    let poa = root.create_poa("Levels", policies);
    let servant = Cubes {
        orb: ours.orb.clone(),
    };
    let cubit: Cubit = poa
        .expect("they go together")
        .activate(servant)
        .expect("room");
    let client = Orb::builder().build().expect("the ORB can be built");
    let object = client.string_to_object(&ours.text(cubit.as_object()));
    let object = object.expect("a reference");
    let expected = Calls {
        locks: 3.0,
        heap_calls: 0.0,
    };
    for object in [object.with_deadline(Duration::from_secs(60)), object] {
        let counted = count_calls(&object);
        assert_eq!(counted.elsewhere, expected, "levels: {counted:?}");
    }
}

/// What a call of `object` costs a client with these strategies, and its server.
fn count(strategies: Strategies, object: &ObjectRef) -> Counted {
    let client = client(strategies);
    let object = client.string_to_object(&object.to_string());
    count_calls(&object.expect("a reference"))
}

fn client(strategies: Strategies) -> Orb {
    let builder = Orb::builder().strategies(strategies);
    let built = builder.priority_mapping(TimeSharing).build();
    built.expect("the ORB can be built")
}

/// Locks and heap calls of one request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counted {
    /// In the calling thread.
    here: Calls,
    /// In every other thread: the server's, and those that the client's ORB has for itself.
    elsewhere: Calls,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Calls {
    locks: f64,
    heap_calls: f64,
}

fn count_calls(object: &ObjectRef) -> Counted {
    let cubit = Cubit::unchecked_narrow(object.clone());
    let call = |n: usize| {
        let n = n as i32;
        assert_eq!(cubit.cube_long(n), Ok(n.wrapping_pow(3)));
    };
    (0..WARM_UP).for_each(call);
    let counts = [(); 3].map(|()| {
        // Threads of an ORB before this one may have something left to free.
        until_others_sleep();
        count_once(|| (0..CALLS).for_each(call))
    });
    let least = |which: fn(&Totals) -> u64| {
        let least = counts.iter().map(which).min();
        least.expect("three") as f64 / CALLS as f64
    };
    Counted {
        here: Calls {
            locks: least(|totals| totals.locks_here),
            heap_calls: least(|totals| totals.heap_calls_here),
        },
        elsewhere: Calls {
            locks: least(|totals| totals.locks_elsewhere),
            heap_calls: least(|totals| totals.heap_calls_elsewhere),
        },
    }
}

/// Calls of this thread, and of all others.
struct Totals {
    locks_here: u64,
    locks_elsewhere: u64,
    heap_calls_here: u64,
    heap_calls_elsewhere: u64,
}

impl Totals {
    fn now() -> Self {
        let (locks_here, heap_calls_here) = (thread_lock_calls().all, thread_heap_calls());
        Self {
            locks_here,
            locks_elsewhere: process_lock_calls().all - locks_here,
            heap_calls_here,
            heap_calls_elsewhere: process_heap_calls() - heap_calls_here,
        }
    }
}

fn count_once(work: impl FnOnce()) -> Totals {
    let before = Totals::now();
    work();
    let here = Totals::now();
    // A server ends a request after its reply: the last one may not have ended.
    until_others_sleep();
    let elsewhere = Totals::now();
    Totals {
        locks_here: here.locks_here - before.locks_here,
        locks_elsewhere: elsewhere.locks_elsewhere - before.locks_elsewhere,
        heap_calls_here: here.heap_calls_here - before.heap_calls_here,
        heap_calls_elsewhere: elsewhere.heap_calls_elsewhere - before.heap_calls_elsewhere,
    }
}
