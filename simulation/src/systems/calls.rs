//! Clients and a server with any strategies, over connections that break, and a server that ends at any moment.

use super::System;
use super::worker::{ENOUGH, Ended, Ledger, Server, Worker, fail, reply_to};
use crate::random::Random;
use crate::world;
use crate::world::faults::Faults;
use rtorb::rt::{Priority, ThreadpoolLane};
use rtorb::{ConnectionStrategy, DispatchStrategy, Limits, Orb, OrbBuilder, WaitStrategy};
use std::thread;
use std::time::Duration;

pub(crate) const SYSTEM: System = System {
    name: "calls",
    faults: |random| {
        let breaks = random.one_in(2);
        Faults::draw(random, breaks)
    },
    run,
};

/// Every connection strategy with every wait strategy.
pub(super) const CONNECTIONS: [ConnectionStrategy; 9] = {
    use ConnectionStrategy::{Banded, Exclusive, Multiplexed};
    use WaitStrategy::{ConnectionThread, LeaderFollowers, Reactor, Read};
    [
        Exclusive,
        Multiplexed { wait: Read },
        Multiplexed { wait: Reactor },
        Multiplexed {
            wait: LeaderFollowers,
        },
        Multiplexed {
            wait: ConnectionThread,
        },
        Banded { wait: Read },
        Banded { wait: Reactor },
        Banded {
            wait: LeaderFollowers,
        },
        Banded {
            wait: ConnectionThread,
        },
    ]
};

/// Calls of each thread at most.
const CALLS_MAX: u64 = 12;

/// What may happen in a run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Nothing prevents calls from success: no connection breaks, no limit is low, the server stays, and no object waits for its own
    /// server's threads.
    is_sound: bool,
    /// The object calls itself through its own server, which may have no thread for that.
    relays: bool,
    threads: u64,
}

fn run(mut random: Random) {
    let ledger = Ledger::default();
    let breaks = world::with(|world| world.core.faults.breaks());
    let is_sound = !breaks && random.one_in(2);
    let plan = Plan {
        is_sound,
        relays: !is_sound && random.one_in(2),
        threads: 1 + random.below(6),
    };
    let server = Server::start(server(&mut random, plan), &ledger);
    let clients: Vec<_> = (0..1 + random.below(2))
        .map(|_| client(&mut random))
        .collect();
    let threads = (0..plan.threads).map(|number| {
        let orb = clients[number as usize % clients.len()].clone();
        let (reference, random) = (server.reference.clone(), random.split());
        thread::spawn(move || call(&orb, &reference, random, number as u32 * 1000, plan))
    });
    let threads: Vec<_> = threads.collect();
    if !plan.is_sound && random.one_in(3) {
        thread::sleep(Duration::from_nanos(random.below(20_000_000)));
        server.orb.shutdown();
    }
    let ended = threads
        .into_iter()
        .map(|thread| thread.join().expect("no client panics"));
    let ended: Vec<_> = ended.flatten().collect();
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
        server.end();
    } else {
        server.end();
        drop(clients);
    }
    ended.iter().for_each(|call| call.check(&ledger));
    if plan.is_sound {
        ended.iter().for_each(Ended::check_success);
    }
    let done = ended.iter().filter(|call| call.is_done()).count();
    world::with(|world| world.core.mix(done as u64));
}

/// The longest time that a client has to read.
const SEND_TIMEOUT_MAX: Duration = Duration::from_secs(1);

fn server(random: &mut Random, plan: Plan) -> OrbBuilder {
    let (_, dispatch) = random.choose(&DispatchStrategy::ALL);
    let lane = |priority, threads| ThreadpoolLane {
        lane_priority: Priority::new(priority).expect("it is in range"),
        static_threads: threads,
        ..ThreadpoolLane::default()
    };
    let mut limit = |low: &[u64], enough| {
        if plan.is_sound {
            enough
        } else {
            random.choose(low)
        }
    };
    let limits = Limits::with(|limits| {
        let longest = SEND_TIMEOUT_MAX.as_millis() as u64;
        limits.send_timeout =
            Duration::from_millis(limit(&[1, 10, longest], ENOUGH.as_millis() as u64));
        limits.queued_requests_max = limit(&[1, 3, 100], 100) as usize;
        limits.connections_max = limit(&[2, 100], 100) as usize;
        limits.idle_buffer_time = Duration::from_millis(limit(&[10, 1000], 10));
    });
    let builder = Orb::builder().dispatch(dispatch).limits(limits);
    let builder = builder.pool_threads(1 + random.below(3) as usize);
    match dispatch {
        DispatchStrategy::Lanes | DispatchStrategy::FilterChain => {
            builder.lanes([lane(0, 1 + random.below(2) as u32), lane(20, 1)])
        }
        _ => builder,
    }
}

fn client(random: &mut Random) -> Orb {
    let limits = Limits::with(|limits| limits.queued_requests_max = random.choose(&[1, 2, 100]));
    let builder = Orb::builder()
        .connection(random.choose(&CONNECTIONS))
        .limits(limits);
    let builder = if random.one_in(3) {
        builder.fragment_bytes(64 + random.below(500) as usize)
    } else {
        builder
    };
    builder.build().expect("the ORB can be built")
}

/// The calls of one thread.
fn call(orb: &Orb, reference: &str, mut random: Random, first: u32, plan: Plan) -> Vec<Ended> {
    let worker: Worker = orb
        .string_to_reference(reference)
        .expect("it is a reference");
    let calls = 1 + random.below(CALLS_MAX);
    let mut ended = Vec::new();
    for call in (first..).take(calls as usize) {
        let timeout = random.choose(&[200, 2_000, 20_000, 200_000, 2_000_000]);
        // A thread that gives up in the middle of a message ends a connection that others share.
        let timeout = if plan.is_sound {
            ENOUGH
        } else {
            Duration::from_micros(timeout)
        };
        let worker = worker.with_timeout(timeout);
        let size = random.choose(&[0, 10, 500, 5_000]);
        let body: Vec<u8> = (0..random.below(size + 1)).map(|n| n as u8).collect();
        let begun_ns = world::now_ns();
        let way = random.below(8);
        let outcome = match way {
            0 => worker.note(call, &body).map(|()| None),
            1 if plan.relays => worker.relay(call, reference, &body).map(Some),
            _ => {
                let asleep_us = random.choose(&[0, 0, 50, 1_000, 50_000]);
                let busy_us = random.choose(&[0, 0, 20, 200]);
                worker.work(call, -1, asleep_us, busy_us, &body).map(Some)
            }
        };
        if let Ok(Some(reply)) = &outcome
            && *reply != reply_to(call, &body)
        {
            fail(&format!("call {call} got the reply to another one"));
        }
        ended.push(Ended::new(
            call,
            way == 0,
            begun_ns,
            timeout,
            outcome.map(|_| ()),
        ));
        if random.one_in(3) {
            thread::sleep(Duration::from_nanos(random.below(3_000_000)));
        }
    }
    ended
}
