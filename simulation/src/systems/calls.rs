//! Clients and servers with any strategies, over TCP and UNIX sockets that break. Calls are nested, deferred, given up; servers end, are
//! killed and start again at any moment.

use super::System;
use super::call_end::{CallEnd, fail};
use super::server::{Server, open_shared};
use super::worker::Ledger;
use crate::random::Random;
use crate::world;
use crate::world::faults::Faults;
use client::{Targets, call, reconnect};
use deferred::WorkOperation;
use plan::{Disturbance, Plan, SEND_TIMEOUT_MAX, client, server};
use std::thread::{self, JoinHandle};
use std::time::Duration;

mod client;
mod deferred;
pub(super) mod plan;

pub(crate) const SYSTEM: System = System {
    name: "calls",
    faults: |random| {
        let breaks = random.one_in(2);
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
    let mut first_server = first(&mut random);
    let second = plan
        .has_second
        .then(|| Server::start(server(&mut random, plan), &ledger));
    let clients: Vec<_> = (0..1 + random.below(2))
        .map(|_| client(&mut random))
        .collect();
    let targets = Targets {
        first: first_server.reference.clone(),
        second: second.as_ref().map(|server| server.reference.clone()),
        work: WorkOperation::parse(),
    };
    let threads = (0..plan.threads).map(|number| {
        let orb = clients[number as usize % clients.len()].clone();
        let (targets, random) = (targets.clone(), random.split());
        thread::spawn(move || call(&orb, &targets, random, number as u32 * 1000, plan))
    });
    let threads: Vec<_> = threads.collect();
    if plan.disturbance != Disturbance::None {
        thread::sleep(Duration::from_nanos(random.below(20_000_000)));
    }
    match plan.disturbance {
        Disturbance::None => {}
        Disturbance::Shutdown => first_server.orb.shutdown(),
        Disturbance::Restart(kill) => {
            first_server.end(kill);
            first_server = first(&mut random);
        }
    }
    let mut ended = joined(threads);
    if matches!(plan.disturbance, Disturbance::Restart(_)) && !faults.breaks() {
        // On threads of their own, whose connections end with them.
        let threads = clients.iter().zip(100_000..).map(|(orb, call)| {
            let (orb, targets) = (orb.clone(), targets.clone());
            thread::spawn(move || reconnect(&orb, &targets, call))
        });
        ended.extend(joined(threads.collect()));
    }
    let servers = [Some(first_server), second].into_iter().flatten();
    if random.one_in(2) {
        drop(clients);
        // Longer than any send timeout.
        thread::sleep(2 * SEND_TIMEOUT_MAX);
        if !plan.relays
            && !plan.is_sound
            && world::with(|world| world.files.count_stuck(&world.core)) > 0
        {
            fail("a connection whose client does not read is kept");
        }
        servers.for_each(|server| server.end(None));
    } else {
        servers.for_each(|server| server.end(None));
        drop(clients);
    }
    ended.iter().for_each(|call| call.check(&ledger));
    if plan.is_sound {
        ended.iter().for_each(CallEnd::check_success);
    }
    let done = ended.iter().filter(|call| call.is_done()).count();
    world::with(|world| world.core.mix(done as u64));
}

fn joined(threads: Vec<JoinHandle<Vec<CallEnd>>>) -> Vec<CallEnd> {
    let ended = threads.into_iter().map(|thread| thread.join());
    let ended = ended.map(|ended| ended.expect("no client panics"));
    ended.flatten().collect()
}
