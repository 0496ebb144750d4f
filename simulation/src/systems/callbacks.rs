//! Callbacks over the connections of clients: nobody listens at the clients' addresses. They call a server, which calls them back meanwhile,
//! and calls them of its own accord.

use super::System;
use super::call_end::{CallEnd, ENOUGH, fail};
use super::calls::plan::OWN_TIMEOUT;
use super::server::{Server, open_shared};
use super::worker::{Ledger, Worker, reply_to};
use crate::random::Random;
use crate::world;
use crate::world::faults::Faults;
use crate::world::processes::Kill;
use rtorb::{DispatchStrategy, Orb, OrbBuilder};
use std::thread;
use std::time::Duration;

pub(crate) const SYSTEM: System = System {
    name: "callbacks",
    faults: |random| {
        let breaks = random.one_in(3);
        Faults::draw(random, breaks)
    },
    run,
};

/// What happens while all call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    None,
    OfServer,
    OfClient,
    KillOfServer,
}

fn run(mut random: Random) {
    let ledger = Ledger::default();
    let faults = world::with(|world| world.core.faults);
    let is_sound = !faults.breaks() && random.one_in(2);
    let ending = if is_sound {
        Ending::None
    } else {
        use Ending::{KillOfServer, None, OfClient, OfServer};
        random.choose(&[None, OfServer, OfClient, KillOfServer])
    };
    if ending == Ending::KillOfServer {
        open_shared();
    }
    let server = Server::start(both_ways(&mut random, "iiop://127.0.0.1:7000"), &ledger);
    let clients: Vec<_> = (1..2 + random.below(2))
        .map(|port| {
            let endpoint = format!("iiop://127.0.0.1:0/publish=127.0.0.9:{port}");
            Server::start(both_ways(&mut random, &endpoint), &ledger)
        })
        .collect();
    let mut threads = Vec::new();
    for (client, first) in clients.iter().zip((1..).map(|number| number * 100_000)) {
        let there = Caller {
            orb: client.orb.clone(),
            called: server.reference.clone(),
            own: Some(client.reference.clone()),
            is_sound,
        };
        // The server knows the way back then, if nothing breaks.
        let opened = there.open(first);
        for number in 1..2 + random.below(3) as u32 {
            let (there, random) = (there.clone(), random.split());
            let first = first + number * 1000;
            threads.push(thread::spawn(move || there.call(random, first, CALLS_MAX)));
        }
        // A killed program calls no more.
        if ending != Ending::KillOfServer {
            let back = Caller {
                orb: server.orb.clone(),
                called: client.reference.clone(),
                own: None,
                is_sound,
            };
            let random = random.split();
            threads.push(thread::spawn(move || {
                back.call(random, first + 50_000, CALLS_MAX)
            }));
        }
        opened.check(&ledger);
    }
    if ending != Ending::None {
        thread::sleep(Duration::from_nanos(random.below(20_000_000)));
    }
    match ending {
        Ending::OfServer => server.orb.shutdown(),
        Ending::OfClient => clients[0].orb.shutdown(),
        Ending::None | Ending::KillOfServer => {}
    }
    let killed = (ending == Ending::KillOfServer).then_some(Kill::Signal);
    let mut server = Some(server);
    if killed.is_some() {
        server
            .take()
            .into_iter()
            .for_each(|server| server.end(killed));
    }
    let ended = threads.into_iter().map(thread::JoinHandle::join);
    let ended: Vec<CallEnd> = ended
        .flat_map(|ended| ended.expect("no thread panics"))
        .collect();
    clients.into_iter().for_each(|client| client.end(None));
    server.into_iter().for_each(|server| server.end(None));
    ended.iter().for_each(|call| call.check(&ledger));
    if is_sound {
        ended.iter().for_each(CallEnd::check_success);
    }
    let done = ended.iter().filter(|call| call.is_done()).count();
    world::with(|world| world.core.mix(done as u64));
}

/// Calls of each thread at most.
const CALLS_MAX: u64 = 12;

/// An ORB whose connections carry calls of both ends, and that listens at `endpoint`.
fn both_ways(random: &mut Random, endpoint: &str) -> OrbBuilder {
    let builder = Orb::builder()
        .dispatch(DispatchStrategy::WorkerPool)
        .bidirectional()
        .pool_threads(1 + random.below(3) as usize)
        .round_trip_timeout(Some(OWN_TIMEOUT))
        .listen(endpoint);
    if random.one_in(3) {
        builder.fragment_bytes(64 + random.below(500) as usize)
    } else {
        builder
    }
}

/// What a thread calls by which ORB.
#[derive(Clone)]
struct Caller {
    orb: Orb,
    called: String,
    /// An object of the ORB, which is called back.
    own: Option<String>,
    is_sound: bool,
}

impl Caller {
    /// Makes a call that has a reply.
    fn open(&self, call: u32) -> CallEnd {
        let worker: Worker = self
            .orb
            .string_to_reference(&self.called)
            .expect("it is a reference");
        let begun_ns = world::now_ns();
        let outcome = worker.with_timeout(ENOUGH).work(call, -1, 0, 0, &[]);
        CallEnd::new(call, false, begun_ns, ENOUGH, outcome.map(drop))
    }

    /// Makes at most so many calls.
    fn call(&self, mut random: Random, first: u32, calls_max: u64) -> Vec<CallEnd> {
        let worker: Worker = self
            .orb
            .string_to_reference(&self.called)
            .expect("it is a reference");
        let calls = 1 + random.below(calls_max);
        let mut ended = Vec::new();
        for call in (first..).take(calls as usize) {
            let timeout = random.choose(&[200, 2_000, 20_000, 200_000, 2_000_000]);
            let timeout = if self.is_sound {
                ENOUGH
            } else {
                Duration::from_micros(timeout)
            };
            let size = random.choose(&[0, 10, 500, 5_000]);
            let body: Vec<u8> = (0..random.below(size + 1)).map(|n| n as u8).collect();
            let worker = worker.with_timeout(timeout);
            let begun_ns = world::now_ns();
            let way = random.below(6);
            let outcome = match (way, &self.own) {
                (0, _) => worker.note(call, &body).map(|()| None),
                (1..4, Some(own)) => worker.relay(call, own, 0, &body).map(Some),
                _ => {
                    let asleep_us = random.choose(&[0, 0, 50, 1_000]);
                    worker.work(call, -1, asleep_us, 0, &body).map(Some)
                }
            };
            if let Ok(Some(reply)) = &outcome
                && *reply != reply_to(call, &body)
            {
                fail(&format!("call {call} got the reply to another one"));
            }
            let outcome = outcome.map(drop);
            ended.push(CallEnd::new(call, way == 0, begun_ns, timeout, outcome));
            if random.one_in(3) {
                thread::sleep(Duration::from_nanos(random.below(3_000_000)));
            }
        }
        ended
    }
}
