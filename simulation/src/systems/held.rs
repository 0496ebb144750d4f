//! Requests that a POA manager holds: they are bounded, wait no longer than their callers, and end once, however their manager, their
//! adapter, their clients and their server act meanwhile.

use super::System;
use super::call_end::{CallEnd, ENOUGH, fail};
use super::calls::plan::{SEND_TIMEOUT_MAX, client};
use super::raw::{RawClient, RawTarget};
use super::worker::{Ledger, Work, Worker, reply_to};
use crate::random::Random;
use crate::systems;
use crate::world;
use crate::world::bounds::{self, Invariant};
use crate::world::faults::Faults;
use quiet::Quiet;
use rtorb::poa::PoaManager;
use rtorb::{DispatchStrategy, Limits, Orb, OrbBuilder, Poa, PoaPolicies, SystemException};
use std::thread::{self, JoinHandle};
use std::time::Duration;

mod priorities;
mod quiet;

pub(crate) const SYSTEM: System = System {
    name: "held",
    faults: Faults::draw_some,
    run,
};

/// Calls of each thread at most.
const CALLS_MAX: u64 = 8;

/// Threads that may have taken a request out at a time: those that serve and read, and the one that ends the ORB.
const THREADS_MAX: usize = 6;

/// The most requests that one client has held, while no other calls.
const QUIET_MAX: usize = 4;

/// What a run draws.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Nothing prevents calls from success.
    is_sound: bool,
    dispatch: DispatchStrategy,
    pool_threads: usize,
    requests_max: usize,
    ending: Ending,
}

/// What happens while all call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    None,
    /// The manager becomes inactive.
    Inactive,
    /// The adapter whose requests are held ends.
    AdapterEnds,
    Shutdown,
}

impl Plan {
    fn draw(random: &mut Random, breaks: bool) -> Self {
        let is_sound = !breaks && random.one_in(2);
        let requests_max = random.choose(&[1, 2, 4]);
        Self {
            is_sound,
            dispatch: systems::dispatch(random),
            pool_threads: 1 + random.below(3) as usize,
            requests_max: if is_sound { 100 } else { requests_max },
            ending: match random.below(6) {
                _ if is_sound => Ending::None,
                0 => Ending::Inactive,
                1 => Ending::AdapterEnds,
                2 => Ending::Shutdown,
                _ => Ending::None,
            },
        }
    }

    fn builder(self, random: &mut Random) -> OrbBuilder {
        let limits = Limits::with(|limits| {
            limits.queued_requests_max = self.requests_max;
            limits.stranger_turns_max = random.choose(&[3, 25]);
            limits.send_timeout = SEND_TIMEOUT_MAX;
        });
        let builder = Orb::builder().limits(limits);
        let builder = builder.pool_threads(self.pool_threads);
        let builder = builder.listen("iiop://127.0.0.1:7000");
        systems::dispatched(builder, self.dispatch, random)
    }

    /// True if a connection has a thread of its own, which waits with a held request.
    fn has_own_threads(self) -> bool {
        self.dispatch == DispatchStrategy::ThreadPerConnection
    }
}

/// A server with an object whose manager holds its requests, and one whose manager is active.
struct HoldingServer {
    orb: Orb,
    manager: PoaManager,
    adapter: Poa,
    held: Worker,
    free: Worker,
    runs: JoinHandle<()>,
}

impl HoldingServer {
    fn start(builder: OrbBuilder, ledger: &Ledger) -> Self {
        let orb = builder.build().expect("the ORB can be built");
        let root = orb.root_poa().expect("the ORB can listen");
        let manager = root.create_manager();
        let adapter = root.create_poa_with_manager("Held", PoaPolicies::default(), &manager);
        let adapter = adapter.expect("it is new");
        let work = || Work {
            ledger: ledger.clone(),
            orb: orb.clone(),
            levels: 0,
        };
        let held: Worker = adapter.activate(work()).expect("there is room");
        let free: Worker = root.activate(work()).expect("there is room");
        let runs = orb.clone();
        Self {
            runs: thread::spawn(move || drop(runs.run())),
            orb,
            manager,
            adapter,
            held,
            free,
        }
    }

    /// As many requests are held as the limit allows, and those that threads have taken out of the table and not forgotten yet: each thread
    /// at most a whole table.
    fn bound(&self, plan: Plan) -> Option<Invariant> {
        if plan.has_own_threads() {
            return None;
        }
        let held_max = plan.requests_max * (1 + THREADS_MAX);
        let manager = self.manager.clone();
        let holds = move |_| manager.held_requests() as usize <= held_max;
        Some(bounds::always(
            "more requests are held than the limit allows",
            holds,
        ))
    }

    fn end(self) {
        let Self {
            orb,
            manager,
            adapter,
            held,
            free,
            runs,
        } = self;
        orb.shutdown();
        runs.join().expect("the server does not panic");
        if manager.held_requests() > 0 {
            fail("a request is held by a server that has ended");
        }
        drop((manager, adapter, held, free));
        orb.destroy().expect("it is in no servant");
    }
}

fn run(mut random: Random) {
    let faults = world::with(|world| world.core.faults);
    if faults.is_none() && !faults.breaks() && random.one_in(4) {
        return priorities::run(&mut random);
    }
    let ledger = Ledger::default();
    let breaks = faults.breaks();
    let plan = Plan::draw(&mut random, breaks);
    let server = HoldingServer::start(plan.builder(&mut random), &ledger);
    let bound = server.bound(plan);
    let ended = storm(&server, plan, breaks, &mut random);
    if !breaks && plan.ending == Ending::None && !plan.has_own_threads() {
        let quiet = Quiet {
            server: &server,
            ledger: &ledger,
            requests: plan.requests_max.min(QUIET_MAX) as u32,
            is_full: plan.requests_max <= QUIET_MAX,
            is_ordered: serves_in_order(plan),
        };
        quiet.run(&mut random);
    }
    drop(bound);
    server.end();
    ended.iter().for_each(|call| call.check(&ledger));
    if plan.is_sound {
        ended.iter().for_each(CallEnd::check_success);
    }
    let done = ended.iter().filter(|call| call.is_done()).count();
    world::with(|world| world.core.mix(done as u64));
}

/// One thread serves the requests of a connection, one after the other.
fn serves_in_order(plan: Plan) -> bool {
    match plan.dispatch {
        DispatchStrategy::Reactive => true,
        DispatchStrategy::WorkerPool | DispatchStrategy::LeaderFollowers => plan.pool_threads == 1,
        _ => false,
    }
}

/// Clients call, and some go away, while the manager changes its state. Returns the ends of the calls.
fn storm(server: &HoldingServer, plan: Plan, breaks: bool, random: &mut Random) -> Vec<CallEnd> {
    let references = [server.held.to_string(), server.free.to_string()];
    let clients: Vec<_> = (0..1 + random.below(2)).map(|_| client(random)).collect();
    let threads = (0..1 + random.below(4)).map(|number| {
        let orb = clients[number as usize % clients.len()].clone();
        let (references, random) = (references.clone(), random.split());
        thread::spawn(move || call(&orb, &references, random, number as u32 * 1000, plan))
    });
    let mut threads: Vec<_> = threads.collect();
    if plan.has_own_threads() && random.one_in(2) {
        let (held, random) = (server.held.clone(), random.split());
        threads.push(thread::spawn(move || call_collocated(&held, random, plan)));
    }
    let target = RawTarget::of(server.held.as_object());
    let leaving = (1..1 + random.below(3)).map(|number| {
        let (target, random) = (target.clone(), random.split());
        thread::spawn(move || leave(&target, random, 100_000 + number as u32 * 1000))
    });
    let leaving: Vec<_> = leaving.collect();
    change_states(&server.manager, plan, random);
    let begun_ns = world::now_ns();
    match plan.ending {
        Ending::None => {}
        Ending::Inactive => server.manager.deactivate(),
        Ending::AdapterEnds => server.adapter.destroy(),
        Ending::Shutdown => server.orb.shutdown(),
    }
    let mut ended = Vec::new();
    for thread in threads.into_iter().chain(leaving) {
        ended.extend(thread.join().expect("no client panics"));
    }
    let elapsed = Duration::from_nanos(world::now_ns() - begun_ns);
    if plan.ending == Ending::Shutdown && !breaks && elapsed > ENOUGH / 2 {
        fail(&format!(
            "calls went on for {elapsed:?} behind the end of their server"
        ));
    }
    drop(clients);
    if !breaks {
        // Requests of clients that have given up leave with their connections.
        server.await_held(0, "an active manager holds requests");
        HoldingServer::await_gone();
    }
    ended
}

/// Changes the state of the manager a few times. In the end, it is active.
fn change_states(manager: &PoaManager, plan: Plan, random: &mut Random) {
    for _ in 0..1 + random.below(6) {
        thread::sleep(Duration::from_nanos(random.below(4_000_000)));
        match random.below(5) {
            0 | 1 => manager.hold_requests(),
            2 if !plan.is_sound => manager.discard_requests(),
            _ => manager.activate(),
        }
    }
    thread::sleep(Duration::from_nanos(random.below(4_000_000)));
    manager.activate();
}

/// The calls of one thread.
fn call(
    orb: &Orb,
    references: &[String; 2],
    mut random: Random,
    first: u32,
    plan: Plan,
) -> Vec<CallEnd> {
    let workers = references.each_ref().map(|reference| {
        let worker: Result<Worker, _> = orb.string_to_reference(reference);
        worker.expect("it is a reference")
    });
    let calls = 1 + random.below(CALLS_MAX);
    let mut ended = Vec::new();
    for call in (first..).take(calls as usize) {
        let timeout = timeout(&mut random, plan);
        let size = random.choose(&[0, 10, 500, 5_000]);
        let body: Vec<u8> = (0..random.below(size + 1)).map(|n| n as u8).collect();
        let worker = &workers[usize::from(random.one_in(4))];
        // The server knows a deadline, and no timeout.
        let worker = if random.one_in(2) {
            worker.with_timeout(timeout)
        } else {
            Worker::unchecked_narrow(worker.as_object().with_deadline(timeout))
        };
        let is_oneway = random.one_in(8);
        let begun_ns = world::now_ns();
        let outcome = if is_oneway {
            worker.note(call, &body)
        } else {
            let asleep_us = random.choose(&[0, 0, 50, 1_000]);
            check_reply(call, &body, worker.work(call, -1, asleep_us, 0, &body))
        };
        ended.push(CallEnd::new(call, is_oneway, begun_ns, timeout, outcome));
        if random.one_in(3) {
            thread::sleep(Duration::from_nanos(random.below(3_000_000)));
        }
    }
    ended
}

fn timeout(random: &mut Random, plan: Plan) -> Duration {
    let timeout = random.choose(&[200, 2_000, 20_000, 200_000, 2_000_000]);
    if plan.is_sound {
        ENOUGH
    } else {
        Duration::from_micros(timeout)
    }
}

/// Calls the object from a thread of its own ORB, which waits itself.
fn call_collocated(held: &Worker, mut random: Random, plan: Plan) -> Vec<CallEnd> {
    const FIRST: u32 = 90_000;
    let calls = 1 + random.below(CALLS_MAX);
    let calls = (FIRST..).take(calls as usize).map(|call| {
        let timeout = timeout(&mut random, plan);
        let begun_ns = world::now_ns();
        let outcome = rtorb::with_deadline(timeout, || held.work(call, -1, 0, 0, &[]));
        let outcome = check_reply(call, &[], outcome);
        CallEnd::new(call, false, begun_ns, timeout, outcome)
    });
    calls.collect()
}

fn check_reply(
    call: u32,
    body: &[u8],
    outcome: Result<Vec<u8>, SystemException>,
) -> Result<(), SystemException> {
    if outcome.as_ref().is_ok_and(|it| *it != reply_to(call, body)) {
        fail(&format!("call {call} got the reply to another one"));
    }
    outcome.map(drop)
}

/// Sends some requests, and goes away without a word.
fn leave(target: &RawTarget, mut random: Random, first: u32) -> Vec<CallEnd> {
    let Some(mut client) = RawClient::connect(target.address) else {
        return Vec::new();
    };
    let calls = first..first + 1 + random.below(3) as u32;
    let bytes: Vec<u8> = calls.clone().flat_map(|call| target.work(call)).collect();
    let sent = if random.one_in(3) {
        random.below(bytes.len() as u64) as usize
    } else {
        bytes.len()
    };
    client.send(&bytes[..sent]);
    thread::sleep(Duration::from_nanos(random.below(6_000_000)));
    calls.map(CallEnd::unknown).collect()
}

impl HoldingServer {
    /// Waits until so many requests are held.
    fn await_held(&self, count: u32, else_what: &str) {
        if !comes_true(|| self.manager.held_requests() == count) {
            let held = self.manager.held_requests();
            fail(&format!("{else_what}: {held} are held instead of {count}"));
        }
    }

    /// Waits until the connections of all clients have ended: no request of theirs waits in a lane, or is held later.
    fn await_gone() {
        let count = || world::with(|world| world.files.count_served());
        if !comes_true(|| count() == 0) {
            let open = count();
            fail(&format!(
                "{open} connections of clients that are gone are open"
            ));
        }
    }
}

/// Waits for a condition; false if it does not come true.
fn comes_true(holds: impl Fn() -> bool) -> bool {
    // A client that does not read has its send timeout.
    const PATIENCE: Duration = Duration::from_secs(10);
    let until_ns = world::now_ns() + PATIENCE.as_nanos() as u64;
    while !holds() {
        if world::now_ns() > until_ns {
            return false;
        }
        thread::sleep(Duration::from_micros(200));
    }
    true
}
