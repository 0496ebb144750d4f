//! Started calls: threads with tasks start, await, drop and cancel them, each call with its deadline, whoever reads the replies.

use super::System;
use super::call_end::{CallEnd, fail};
use super::calls::plan::{CONNECTIONS, Disturbance, Plan, client_with};
use super::server::open_shared;
use super::worker::Ledger;
use crate::random::Random;
use crate::world;
use crate::world::faults::Faults;
use rtorb::{ConnectionStrategy, Orb, ReplyDriver, WaitStrategy};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tasks::{IN_FLIGHT_MAX, Tasks};

mod tasks;

pub(crate) const SYSTEM: System = System {
    name: "started",
    faults: |random| {
        let breaks = random.one_in(3);
        Faults::draw(random, breaks)
    },
    run,
};

fn run(mut random: Random) {
    let ledger = Ledger::default();
    let faults = world::with(|world| world.core.faults);
    let plan = Plan::draw(&mut random, faults);
    if matches!(plan.disturbance, Disturbance::Restart(_)) {
        open_shared();
    }
    let first = |random: &mut Random| plan.start_first(random, &ledger);
    let mut served = first(&mut random);
    let threads = 1 + random.below(3);
    let client = client(&mut random, threads as usize);
    // A thread of its own reads replies, or the threads with the tasks do: those do not read while they send, so that a server that waits for
    // room and a client that does may wait for each other.
    let reads = client.strategies().connection.wait() == WaitStrategy::LeaderFollowers;
    let replies = client.reply_driver().ok().filter(|_| reads);
    let is_over = Arc::new(AtomicBool::new(false));
    let needs_driver = plan.is_sound && !plan.gives_up;
    let driver = replies.clone().filter(|_| needs_driver || random.one_in(2));
    let reading = driver.map(|replies| {
        let is_over = Arc::clone(&is_over);
        thread::spawn(move || read(&replies, &is_over))
    });
    let tasks = (0..threads).map(|number| {
        let worker = client.string_to_reference(&served.reference);
        let worker = worker.expect("it is a reference");
        let reads = replies.clone().filter(|_| reading.is_none());
        let mut tasks = Tasks::new(worker, reads, random.split(), plan);
        thread::spawn(move || tasks.run(number as u32 * 1000))
    });
    let tasks: Vec<_> = tasks.collect();
    let may_end = !plan.is_sound && random.one_in(4);
    if may_end || plan.disturbance != Disturbance::None {
        thread::sleep(Duration::from_nanos(random.below(20_000_000)));
    }
    if may_end {
        client.shutdown();
    }
    match plan.disturbance {
        Disturbance::None => {}
        Disturbance::Shutdown => served.orb.shutdown(),
        Disturbance::Restart(kill) => {
            served.end(kill);
            served = first(&mut random);
        }
    }
    let ended = tasks.into_iter().map(thread::JoinHandle::join);
    let ended: Vec<CallEnd> = ended
        .flat_map(|ended| ended.expect("no task panics"))
        .collect();
    is_over.store(true, Ordering::SeqCst);
    if let Some(reading) = reading {
        reading.join().expect("the driver does not panic");
    }
    // There is a place for as many calls as the tasks have at a time: one that is not free again would be missed.
    if client.started_calls_refused() > 0 {
        fail("the place of a call that has ended is kept");
    }
    drop((replies, client));
    served.end(None);
    ended.iter().for_each(|call| call.check(&ledger));
    if plan.is_sound {
        ended.iter().for_each(CallEnd::check_success);
    }
    let done = ended.iter().filter(|call| call.is_done()).count();
    world::with(|world| world.core.mix(done as u64));
}

/// Reads replies until it is over.
fn read(replies: &ReplyDriver, is_over: &AtomicBool) {
    while !is_over.load(Ordering::SeqCst) {
        replies.run_once(Some(Instant::now() + READ_MAX));
    }
}

/// The longest time that the driver waits at a time.
const READ_MAX: Duration = Duration::from_millis(20);

/// A client whose threads share connections.
fn client(random: &mut Random, threads: usize) -> Orb {
    let shared = CONNECTIONS.iter().copied().filter(is_shared_at_once);
    let shared: Vec<ConnectionStrategy> = shared.collect();
    client_with(random, &shared, |limits| {
        limits.started_calls_max = threads * IN_FLIGHT_MAX;
    })
}

fn is_shared_at_once(connection: &ConnectionStrategy) -> bool {
    connection.wait() != WaitStrategy::Read
}
