//! Pools whose threads have priorities: lanes, which may borrow threads of others or get more or fewer of them, levels by deadlines, threads that take the priority of
//! a call; and clients of several priorities.

use super::System;
use super::call_end::{CallEnd, ENOUGH, fail};
use super::calls::plan::CONNECTIONS;
use super::worker::{Ledger, Work, Worker};
use crate::random::Random;
use crate::world::faults::Faults;
use crate::world::{self, Observed};
use rtorb::rt::{
    LanedThreadpool, Priority, PriorityModel, RequestBuffering, RequestOrder, Threadpool,
    ThreadpoolId, ThreadpoolLane,
};
use rtorb::{Limits, Orb, PoaPolicies, Strategies};
use std::thread;
use std::time::Duration;

pub(crate) const SYSTEM: System = System {
    name: "lanes",
    faults: |random| match random.below(3) {
        0 => Faults::NONE,
        1 => Faults::draw(random, false),
        _ => Faults::draw(random, true),
    },
    run,
};

/// The CORBA priorities of lanes and calls; the native ones are the same.
const PRIORITIES: [i16; 3] = [10, 40, 70];

/// The CPU time that less urgent threads may have while the most urgent call waits, if nothing of the network delays it: what runs
/// between the end of a critical section and the next choice of a thread.
const INVERSION_NS: u64 = 10_000;

/// As [`INVERSION_NS`], and one request of a less urgent lane: if no thread is idle, the first that finishes its request is lent.
const BORROWING_NS: u64 = INVERSION_NS + 210_000;

/// Calls of each thread at most.
const CALLS_MAX: u64 = 10;

/// What the clients know of the server.
#[derive(Clone, Debug)]
struct Target {
    reference: String,
    /// An urgent call needs nothing of a less urgent thread.
    is_separate: bool,
    /// What less urgent threads may have of the CPU during an urgent call.
    inversion_ns: u64,
    /// Nothing prevents calls from success.
    is_sound: bool,
}

fn run(mut random: Random) {
    let ledger = Ledger::default();
    let limits = Limits::with(|limits| {
        limits.stranger_turns_max = random.choose(&[1, 3, 25]);
    });
    let orb = Orb::builder()
        .strategies(Strategies::default())
        .limits(limits)
        .build()
        .expect("the ORB can be built");
    let Made {
        pool,
        levels,
        has_lanes,
        has_dynamic,
        borrows,
        may_change,
    } = pool(&orb, &mut random);
    let changes = if may_change { random.below(6) } else { 0 };
    let rt_orb = orb.rt_orb();
    let model = rt_orb.create_priority_model_policy(PriorityModel::ClientPropagated, priority(10));
    let policies = PoaPolicies::default()
        .with(model)
        .with(rt_orb.create_threadpool_policy(pool));
    let poa = orb
        .root_poa()
        .and_then(|root| Ok(root.create_poa("Lanes", policies).expect("it is new")));
    let servant = Work {
        ledger: ledger.clone(),
        orb: orb.clone(),
        levels,
    };
    let worker: Worker = poa
        .expect("the ORB can listen")
        .activate(servant)
        .expect("there is room");
    let is_sound = !world::with(|world| world.core.faults.breaks()) && !random.one_in(4);
    let is_separate = has_lanes
        && world::with(|world| world.core.faults.is_none() && world.core.tasks.has_one_cpu());
    let target = Target {
        is_sound,
        reference: worker.to_string(),
        is_separate,
        inversion_ns: if borrows { BORROWING_NS } else { INVERSION_NS },
    };
    drop(worker);
    let runs = orb.clone();
    let server = thread::spawn(move || drop(runs.run()));
    let begun = server_priorities();
    let shares = random.one_in(2);
    let common = client(&mut random, !is_separate);
    let threads = if borrows { 3 } else { 2 + random.below(4) };
    // The first client is the most urgent, and is alone with its priority.
    let threads = (0..threads).map(|number| {
        // Of two most urgent clients, one is served by a borrowed thread.
        let own = match number {
            0 => PRIORITIES[2],
            1 if borrows => PRIORITIES[2],
            _ if borrows => PRIORITIES[1],
            _ => PRIORITIES[random.below(2) as usize],
        };
        let client = if shares {
            common.clone()
        } else {
            client(&mut random, number > 0)
        };
        let (target, random) = (target.clone(), random.split());
        thread::spawn(move || call(&client, &target, own, random, number as u32 * 1000))
    });
    let threads: Vec<_> = threads.collect();
    for _ in 0..changes {
        change_threads(&orb, pool, &mut random);
    }
    if !is_sound && random.one_in(3) {
        thread::sleep(Duration::from_nanos(random.below(20_000_000)));
        orb.shutdown();
    }
    let ended = threads
        .into_iter()
        .map(|thread| thread.join().expect("no client panics"));
    let ended: Vec<_> = ended.flatten().collect();
    drop(common);
    if is_sound && !has_dynamic && changes == 0 && begun != server_priorities() {
        fail(&format!(
            "idle threads have other priorities than before: {begun:?} {:?}",
            server_priorities()
        ));
    }
    orb.shutdown();
    server.join().expect("the server does not panic");
    orb.destroy().expect("it is in no servant");
    ended.iter().for_each(|call| call.check(&ledger));
    if is_sound {
        ended.iter().for_each(CallEnd::check_success);
    }
}

/// Gives a lane another number of threads, a little later.
fn change_threads(orb: &Orb, pool: ThreadpoolId, random: &mut Random) {
    thread::sleep(Duration::from_nanos(random.below(3_000_000)));
    let lane = priority(random.choose(&PRIORITIES));
    let threads = 1 + random.below(3) as u32;
    let rt_orb = orb.rt_orb();
    if let Err(refused) = rt_orb.change_lane_threads(Some(pool), lane, threads) {
        fail(&format!("a lane cannot have {threads} threads: {refused}"));
    }
    let mut lanes = rt_orb.lanes(Some(pool)).into_iter();
    let lane = lanes.find(|known| known.lane_priority == lane);
    if lane.is_none_or(|lane| lane.static_threads != threads) {
        fail(&format!("the lane is to have {threads} threads: {lane:?}"));
    }
}

/// The priorities of all threads that wait.
fn server_priorities() -> Vec<u32> {
    // The last calls have their replies, and their threads soon rest.
    thread::sleep(Duration::from_millis(5));
    world::with(|world| world.core.tasks.ranks_waiting())
}

/// A pool.
struct Made {
    pool: ThreadpoolId,
    /// The priorities above that of a call that its thread may have.
    levels: u8,
    /// Each priority has threads of its own.
    has_lanes: bool,
    has_dynamic: bool,
    /// The most urgent lane has one thread, and always an idle one to borrow.
    borrows: bool,
    /// The number of threads of a lane may change.
    may_change: bool,
}

/// Any kind of pool.
fn pool(orb: &Orb, random: &mut Random) -> Made {
    let rt_orb = orb.rt_orb();
    let buffering = random.one_in(2).then(RequestBuffering::default);
    if random.one_in(4) {
        let pool = Threadpool {
            static_threads: 1 + random.below(2) as u32,
            dynamic_threads: random.below(2) as u32,
            request_buffering: buffering,
            ..Threadpool::default()
        };
        return Made {
            has_dynamic: pool.dynamic_threads > 0,
            pool: rt_orb.create_threadpool(pool).expect("the host allows it"),
            levels: 0,
            has_lanes: false,
            borrows: false,
            may_change: false,
        };
    }
    let borrows = random.one_in(4);
    let order = match random.below(3) {
        _ if borrows => RequestOrder::Fifo,
        0 => random.choose(&RequestOrder::ALL).1,
        _ => RequestOrder::Fifo,
    };
    let is_fifo = order == RequestOrder::Fifo;
    let lane = |own, random: &mut Random| ThreadpoolLane {
        lane_priority: priority(own),
        static_threads: if borrows {
            2 - u32::from(own > 10)
        } else {
            1 + random.below(2) as u32
        },
        dynamic_threads: if is_fifo && !borrows {
            random.below(2) as u32
        } else {
            0
        },
        order,
        ..ThreadpoolLane::default()
    };
    let lanes = LanedThreadpool {
        lanes: PRIORITIES
            .into_iter()
            .map(|own| lane(own, random))
            .collect(),
        allow_borrowing: borrows || is_fifo && random.one_in(2),
        request_buffering: buffering,
        ..LanedThreadpool::default()
    };
    let levels = if is_fifo { 0 } else { 3 };
    Made {
        borrows,
        may_change: is_fifo
            && !lanes.allow_borrowing
            && lanes.lanes.iter().all(|lane| lane.dynamic_threads == 0),
        has_lanes: borrows || is_fifo && !lanes.allow_borrowing,
        has_dynamic: lanes.lanes.iter().any(|lane| lane.dynamic_threads > 0),
        pool: rt_orb
            .create_threadpool_with_lanes(lanes)
            .expect("the host allows it"),
        levels,
    }
}

fn client(random: &mut Random, is_any: bool) -> Orb {
    let builder = Orb::builder();
    if !is_any {
        return builder.build().expect("the ORB can be built");
    }
    let builder = builder.connection(random.choose(&CONNECTIONS));
    let orb = builder.build().expect("the ORB can be built");
    orb
}

fn priority(value: i16) -> Priority {
    Priority::new(value).expect("it is in range")
}

/// The calls of one thread.
fn call(orb: &Orb, target: &Target, own: i16, mut random: Random, first: u32) -> Vec<CallEnd> {
    orb.rt_current()
        .set_the_priority(priority(own))
        .expect("the world allows it");
    let worker: Worker = orb
        .string_to_reference(&target.reference)
        .expect("it is a reference");
    let calls = 1 + random.below(CALLS_MAX);
    let mut ended = Vec::new();
    for call in (first..).take(calls as usize) {
        let timeout = random.choose(&[2_000, 20_000, 200_000, 2_000_000]);
        let timeout = if target.is_sound {
            ENOUGH
        } else {
            Duration::from_micros(timeout)
        };
        let worker = worker.with_timeout(timeout);
        let is_most_urgent = own == PRIORITIES[2];
        // The first of the most urgent clients is observed, the second one occupies the lane.
        let is_most_urgent = is_most_urgent && first == 0;
        let asleep_us = if is_most_urgent {
            0
        } else {
            random.choose(&[0, 0, 50, 1_000])
        };
        let busy_us = random.choose(&[0, 20, 200]);
        if is_most_urgent {
            world::observe(own as u32);
        }
        let begun_ns = world::now_ns();
        let outcome = worker.work(call, own, asleep_us, busy_us, &[1, 2, 3]);
        let Observed { below_ns, .. } = world::with(|world| world.core.observed);
        // The first call connects, and so does one after a call that was given up, whose connection is closed: the server knows the client
        // of a new connection only once it has served it, and may let it wait with other strangers.
        if is_most_urgent
            && target.is_separate
            && ended.last().is_some_and(CallEnd::is_done)
            && outcome.is_ok()
            && below_ns > target.inversion_ns
        {
            fail(&format!(
                "less urgent threads had {below_ns} ns during call {call} of priority {own}"
            ));
        }
        ended.push(CallEnd::new(
            call,
            false,
            begun_ns,
            timeout,
            outcome.map(|_| ()),
        ));
        thread::sleep(Duration::from_nanos(random.below(1_000_000)));
    }
    ended
}
