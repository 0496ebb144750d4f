//! Held requests of several lanes: a release has them served in the order of their priorities, in whatever order they arrived, and however
//! urgent the thread is that releases them.

use crate::random::Random;
use crate::systems::call_end::{CallEnd, ENOUGH, fail};
use crate::systems::worker::{Ledger, Work, Worker};
use crate::world;
use rtorb::poa::PoaManager;
use rtorb::rt::{LanedThreadpool, Priority, PriorityModel, ThreadpoolLane};
use rtorb::{Orb, Poa, PoaPolicies};
use std::thread;
use std::time::Duration;

/// The CORBA priorities of lanes and calls, in the order in which they are served; the native ones are the same.
const PRIORITIES: [i16; 3] = [70, 40, 10];

/// Those of the thread that releases the requests: above, among and below the lanes, which run as soon as it has reported their connections.
const RELEASING: [i16; 4] = [90, 50, 20, 5];

pub(super) fn run(random: &mut Random) {
    let ledger = Ledger::default();
    let orb = Orb::builder().build().expect("the ORB can be built");
    let (adapter, manager) = laned_adapter(&orb);
    let servant = Work {
        ledger: ledger.clone(),
        orb: orb.clone(),
        levels: 0,
    };
    let worker: Worker = adapter.activate(servant).expect("there is room");
    let runs = orb.clone();
    let server = thread::spawn(move || drop(runs.run()));
    let mut waiting = PRIORITIES.to_vec();
    let mut calls = Vec::new();
    while !waiting.is_empty() {
        let own = waiting.swap_remove(random.below(waiting.len() as u64) as usize);
        let reference = worker.to_string();
        calls.push(thread::spawn(move || call(&reference, own)));
        await_held(&manager, calls.len() as u32);
    }
    let (releases, released) = (orb.clone(), manager.clone());
    let own = random.choose(&RELEASING);
    let releasing = thread::spawn(move || {
        take_priority(&releases, own);
        released.activate();
    });
    releasing.join().expect("no panic");
    let ended: Vec<CallEnd> = calls
        .into_iter()
        .map(|call| call.join().expect("no client panics"))
        .collect();
    await_held(&manager, 0);
    drop((adapter, manager, worker));
    orb.shutdown();
    server.join().expect("the server does not panic");
    orb.destroy().expect("it is in no servant");
    for call in &ended {
        call.check(&ledger);
        call.check_success();
    }
    let places = PRIORITIES.map(|own| ledger.of(own as u32).place);
    if world::with(|world| world.core.tasks.has_one_cpu()) && !places.is_sorted() {
        fail(&format!(
            "released requests of priorities {PRIORITIES:?} were served at the places {places:?}"
        ));
    }
}

/// An adapter whose lanes have these priorities, and its manager, which holds requests.
fn laned_adapter(orb: &Orb) -> (Poa, PoaManager) {
    let lanes = PRIORITIES.map(|own| ThreadpoolLane {
        lane_priority: priority(own),
        static_threads: 1,
        ..ThreadpoolLane::default()
    });
    let rt_orb = orb.rt_orb();
    let pool = rt_orb.create_threadpool_with_lanes(LanedThreadpool {
        lanes: lanes.to_vec(),
        ..LanedThreadpool::default()
    });
    let model = rt_orb.create_priority_model_policy(PriorityModel::ClientPropagated, priority(10));
    let policies = PoaPolicies::default()
        .with(model)
        .with(rt_orb.create_threadpool_policy(pool.expect("the host allows it")));
    let root = orb.root_poa().expect("the ORB can listen");
    let manager = root.create_manager();
    let adapter = root.create_poa_with_manager("Lanes", policies, &manager);
    (adapter.expect("it is new"), manager)
}

/// Calls with a priority, which is also the number of the call.
fn call(reference: &str, own: i16) -> CallEnd {
    let orb = Orb::builder().build().expect("the ORB can be built");
    take_priority(&orb, own);
    let worker: Worker = orb
        .string_to_reference(reference)
        .expect("it is a reference");
    let begun_ns = world::now_ns();
    let outcome = worker.with_timeout(ENOUGH).work(own as u32, own, 0, 0, &[]);
    CallEnd::new(own as u32, false, begun_ns, ENOUGH, outcome.map(drop))
}

fn take_priority(orb: &Orb, own: i16) {
    let taken = orb.rt_current().set_the_priority(priority(own));
    taken.expect("the world allows it");
}

fn priority(value: i16) -> Priority {
    Priority::new(value).expect("it is in range")
}

fn await_held(manager: &PoaManager, count: u32) {
    let until_ns = world::now_ns() + ENOUGH.as_nanos() as u64 / 2;
    while manager.held_requests() != count {
        if world::now_ns() > until_ns {
            fail(&format!(
                "{} requests are held instead of {count}",
                manager.held_requests()
            ));
        }
        thread::sleep(Duration::from_micros(200));
    }
}
