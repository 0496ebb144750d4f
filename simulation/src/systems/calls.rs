//! Clients and a server with any strategies, over connections that break, and a server that ends at any moment.

use super::System;
use super::worker::{Ended, Ledger, Server, Worker, fail, reply_to};
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

fn run(mut random: Random) {
    let ledger = Ledger::default();
    let server = Server::start(server(&mut random), &ledger);
    let clients: Vec<_> = (0..1 + random.below(2))
        .map(|_| client(&mut random))
        .collect();
    let threads = 1 + random.below(4);
    let threads = (0..threads).map(|number| {
        let orb = clients[number as usize % clients.len()].clone();
        let (reference, random) = (server.reference.clone(), random.split());
        thread::spawn(move || call(&orb, &reference, random, number as u32 * 1000))
    });
    let threads: Vec<_> = threads.collect();
    if random.one_in(3) {
        thread::sleep(Duration::from_nanos(random.below(20_000_000)));
        server.orb.shutdown();
    }
    let ended = threads
        .into_iter()
        .map(|thread| thread.join().expect("no client panics"));
    let ended: Vec<_> = ended.flatten().collect();
    if random.one_in(2) {
        drop(clients);
        server.end();
    } else {
        server.end();
        drop(clients);
    }
    ended.iter().for_each(|call| call.check(&ledger));
    let done = ended.iter().filter(|call| call.is_done()).count();
    world::with(|world| world.core.mix(done as u64));
}

fn server(random: &mut Random) -> OrbBuilder {
    let (_, dispatch) = random.choose(&DispatchStrategy::ALL);
    let lane = |priority, threads| ThreadpoolLane {
        lane_priority: Priority::new(priority).expect("it is in range"),
        static_threads: threads,
        ..ThreadpoolLane::default()
    };
    let limits = Limits::with(|limits| {
        limits.send_timeout = Duration::from_millis(random.choose(&[1, 10, 1000]));
        limits.queued_requests_max = random.choose(&[1, 3, 100]);
        limits.connections_max = random.choose(&[2, 100]);
        limits.idle_buffer_time = Duration::from_millis(random.choose(&[10, 1000]));
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
    let builder = Orb::builder().connection(random.choose(&CONNECTIONS));
    let builder = if random.one_in(3) {
        builder.fragment_bytes(64 + random.below(500) as usize)
    } else {
        builder
    };
    builder.build().expect("the ORB can be built")
}

/// The calls of one thread.
fn call(orb: &Orb, reference: &str, mut random: Random, first: u32) -> Vec<Ended> {
    let worker: Worker = orb
        .string_to_reference(reference)
        .expect("it is a reference");
    let calls = 1 + random.below(CALLS_MAX);
    let mut ended = Vec::new();
    for call in (first..).take(calls as usize) {
        let timeout =
            Duration::from_micros(random.choose(&[200, 2_000, 20_000, 200_000, 2_000_000]));
        let worker = worker.with_timeout(timeout);
        let size = random.choose(&[0, 10, 500, 5_000]);
        let body: Vec<u8> = (0..random.below(size + 1)).map(|n| n as u8).collect();
        let begun_ns = world::now_ns();
        let way = random.below(8);
        let outcome = match way {
            0 => worker.note(call, &body).map(|()| None),
            1 => worker.relay(call, reference, &body).map(Some),
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
