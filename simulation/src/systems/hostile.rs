//! Clients without an ORB that send what no client should, or too slowly, or read nothing, or go away; and good clients, whose calls end as if
//! those were not there.

use super::System;
use super::call_end::{CallEnd, ENOUGH, check_end, fail};
use super::calls::plan::client;
use super::raw::RawTarget;
use super::server::Server;
use super::worker::{Ledger, Worker, reply_to};
use crate::random::Random;
use crate::systems;
use crate::world;
use crate::world::bounds::{self, Invariant};
use crate::world::faults::Faults;
use attacks::{Attacker, Patience};
use rtorb::{DispatchStrategy, Limits, Orb, OrbBuilder};
use std::thread;
use std::time::Duration;

mod attacks;

pub(crate) const SYSTEM: System = System {
    name: "hostile",
    faults: Faults::draw_some,
    run,
};

/// Calls of each good client at most.
const CALLS_MAX: u64 = 10;

/// The longest call of a good client that is known to the server, if nothing breaks.
const KNOWN_MAX: Duration = Duration::from_secs(1);

/// The longest time after which the end of a client has ended its connection at the server: each stranger waits for a turn to be read.
const CLOSING_MAX: Duration = Duration::from_secs(3);

/// What a run draws.
#[derive(Clone, Copy, Debug)]
struct Plan {
    dispatch: DispatchStrategy,
    pool_threads: usize,
    /// Nothing prevents good calls from success.
    is_sound: bool,
    /// Connections break, so that the server may not see what attackers do.
    breaks: bool,
    connections_max: usize,
    turns_max: usize,
    message_bytes_max: usize,
    patience: Patience,
    /// The server ends meanwhile.
    ends: bool,
}

impl Plan {
    fn draw(random: &mut Random, breaks: bool) -> Self {
        let is_sound = !breaks && random.one_in(2);
        Self {
            dispatch: systems::dispatch(random),
            pool_threads: 1 + random.below(3) as usize,
            is_sound,
            breaks,
            connections_max: match random.choose(&[2, 8, 100]) {
                _ if is_sound => 100,
                few => few,
            },
            turns_max: if is_sound {
                random.choose(&[3, 25])
            } else {
                random.choose(&[1, 3, 25])
            },
            message_bytes_max: random.choose(&[20_000, 1 << 20]),
            // A stranger has its message read in several turns, and a known client takes its replies in parts: both have the time for that.
            patience: Patience {
                receive_timeout: Duration::from_millis(if is_sound {
                    1_000
                } else {
                    random.choose(&[100, 400])
                }),
                send_timeout: Duration::from_millis(random.choose(&[400, 1_000])),
            },
            ends: !is_sound && random.one_in(4),
        }
    }

    fn builder(self, random: &mut Random) -> OrbBuilder {
        let limits = Limits::with(|limits| {
            limits.connections_max = self.connections_max;
            limits.stranger_turns_max = self.turns_max;
            limits.message_bytes_max = self.message_bytes_max;
            limits.receive_timeout = self.patience.receive_timeout;
            limits.send_timeout = self.patience.send_timeout;
        });
        let builder = Orb::builder().limits(limits);
        let builder = builder.pool_threads(self.pool_threads);
        let builder = builder.listen("iiop://127.0.0.1:7000");
        systems::dispatched(builder, self.dispatch, random)
    }

    /// As many connections are open as the limit allows, beside those that give way, and those that threads have accepted and not counted
    /// yet, or not counted any more and not closed yet. Each lane has connections of its own.
    fn bound(self, orb: &Orb) -> Invariant {
        /// More than run at a time.
        const CONNECTION_THREADS: usize = 40;
        let threads = match self.dispatch {
            DispatchStrategy::ThreadPerConnection => CONNECTION_THREADS,
            _ => self.pool_threads + 4,
        };
        let lanes = 1 + usize::from(self.dispatch == DispatchStrategy::Lanes);
        let most = lanes * self.connections_max + threads;
        let orb = orb.clone();
        let holds = move |open| open <= most + orb.connection_counts().gave_way as usize;
        bounds::always("more connections are open than the limit allows", holds)
    }
}

fn run(mut random: Random) {
    let ledger = Ledger::default();
    let breaks = world::with(|world| world.core.faults.breaks());
    let plan = Plan::draw(&mut random, breaks);
    let server = Server::start(plan.builder(&mut random), &ledger);
    let bound = plan.bound(&server.orb);
    let worker: Result<Worker, _> = server.orb.string_to_reference(&server.reference);
    let target = RawTarget::of(worker.expect("it is a reference").as_object());
    let attackers = (1..2 + random.below(4) as u32).map(|number| {
        let attacker = Attacker {
            target: target.clone(),
            first: 100_000 * number,
            message_bytes_max: plan.message_bytes_max,
            patience: plan.patience,
            is_seen: !plan.breaks,
        };
        let random = random.split();
        thread::spawn(move || attacker.attack(random))
    });
    let attackers: Vec<_> = attackers.collect();
    let clients = (0..1 + random.below(3) as u32).map(|number| {
        let (orb, random) = (client(&mut random), random.split());
        let reference = server.reference.clone();
        thread::spawn(move || call(&orb, &reference, random, number * 1000, plan))
    });
    let clients: Vec<_> = clients.collect();
    if plan.ends {
        thread::sleep(Duration::from_nanos(random.below(500_000_000)));
        server.orb.shutdown();
    }
    let mut ended = Vec::new();
    for thread in clients.into_iter().chain(attackers) {
        ended.extend(thread.join().expect("no client panics"));
    }
    if !plan.breaks && !plan.ends {
        check_connections(&server);
    }
    drop(bound);
    server.end(None);
    ended.iter().for_each(|call| call.check(&ledger));
    if plan.is_sound {
        ended.iter().for_each(CallEnd::check_success);
    }
    let done = ended.iter().filter(|call| call.is_done()).count();
    world::with(|world| world.core.mix(done as u64));
}

/// All clients are gone: so are their connections, and each was counted once.
fn check_connections(server: &Server) {
    thread::sleep(CLOSING_MAX);
    let (open, accepts) = world::with(|world| (world.files.accepted, world.core.counted.accepts));
    if open > 0 {
        fail(&format!(
            "{open} connections of clients that are gone are open"
        ));
    }
    let counts = server.orb.connection_counts();
    if counts.accepted + counts.refused != accepts {
        fail(&format!("{accepts} connections are counted as {counts:?}"));
    }
}

/// The calls of a good client.
fn call(orb: &Orb, reference: &str, mut random: Random, first: u32, plan: Plan) -> Vec<CallEnd> {
    let worker: Worker = orb
        .string_to_reference(reference)
        .expect("it is a reference");
    let calls = 1 + random.below(CALLS_MAX);
    let mut ended: Vec<CallEnd> = Vec::new();
    for call in (first..).take(calls as usize) {
        thread::sleep(Duration::from_nanos(random.below(100_000_000)));
        let timeout = random.choose(&[20_000, 200_000, 2_000_000]);
        let timeout = if plan.is_sound {
            ENOUGH
        } else {
            Duration::from_micros(timeout)
        };
        let is_known = ended.iter().any(CallEnd::is_done);
        let size = random.choose(&[0, 10, 500, 5_000]);
        let size = if is_known { size } else { 0 };
        let body: Vec<u8> = (0..random.below(size + 1)).map(|n| n as u8).collect();
        let asleep_us = random.choose(&[0, 0, 50, 1_000]);
        let begun_ns = world::now_ns();
        let outcome = worker
            .with_timeout(timeout)
            .work(call, -1, asleep_us, 0, &body);
        if outcome
            .as_ref()
            .is_ok_and(|it| *it != reply_to(call, &body))
        {
            fail(&format!("call {call} got the reply to another one"));
        }
        if is_known && plan.is_sound {
            check_end("a call of a known client", begun_ns, KNOWN_MAX, &outcome);
        }
        let outcome = outcome.map(drop);
        ended.push(CallEnd::new(call, false, begun_ns, timeout, outcome));
    }
    ended
}
