//! Budgets: reading from strangers has one for each period, and a servant has one for each call. Strangers come in crowds, and servants
//! execute longer than they may.

use super::System;
use super::call_end::{CallEnd, ENOUGH, check_end, fail};
use super::calls::plan::client;
use super::raw::{RawClient, RawTarget};
use super::worker::Ledger;
use crate::random::Random;
use crate::world;
use crate::world::bounds::{self, TurnBound};
use crate::world::faults::Faults;
use executions::{Executes, Timed, WORST};
use rtorb::thread::{SchedPolicy, ThreadConfig};
use rtorb::timing::Overrun;
use rtorb::{DispatchStrategy, Limits, Orb, OrbBuilder};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

mod executions;

pub(crate) const SYSTEM: System = System {
    name: "budgets",
    faults: Faults::draw_some,
    run,
};

/// Calls of each client at most.
const CALLS_MAX: u64 = 8;

/// The period of the strangers' budget.
const PERIOD: Duration = Duration::from_millis(10);

/// The longest call of a client that is known, if nothing breaks: strangers delay it by their budget alone.
const KNOWN_MAX: Duration = Duration::from_secs(1);

/// The native priority of the threads that serve, and that of a demoted one.
const SERVING: u8 = 20;
const DEMOTED: u8 = 1;

/// What a run draws.
#[derive(Clone, Copy, Debug)]
struct Plan {
    dispatch: DispatchStrategy,
    pool_threads: usize,
    overrun: Overrun,
    turns_max: usize,
    /// Threads with strangers, and the strangers of each.
    crowds: u64,
    crowd: u64,
    is_sound: bool,
}

impl Plan {
    fn draw(random: &mut Random, breaks: bool) -> Self {
        use DispatchStrategy::{LeaderFollowers, Reactive, ThreadPerConnection, WorkerPool};
        let dispatches = [ThreadPerConnection, Reactive, WorkerPool, LeaderFollowers];
        let overruns = [Overrun::Count, Overrun::Demote(DEMOTED), Overrun::Stop];
        Self {
            dispatch: random.choose(&dispatches),
            pool_threads: 1 + random.below(3) as usize,
            overrun: random.choose(&overruns),
            turns_max: random.choose(&[1, 1, 3, 25]),
            crowds: random.below(4),
            crowd: 1 + random.below(12),
            is_sound: !breaks,
        }
    }

    fn builder(self) -> OrbBuilder {
        let limits = Limits::with(|limits| {
            limits.stranger_turns_max = self.turns_max;
            limits.stranger_period = PERIOD;
        });
        Orb::builder()
            .dispatch(self.dispatch)
            .pool_threads(self.pool_threads)
            .server_threads(ThreadConfig {
                policy: Some(SchedPolicy::Fifo(SERVING)),
                ..ThreadConfig::default()
            })
            .overrun(self.overrun)
            .limits(limits)
            .listen("iiop://127.0.0.1:7000")
    }

    /// A window of the length of a period may have turns of two periods. A thread that has begun a turn may be preempted, and have it later.
    fn bound(self) -> TurnBound {
        let threads = self.pool_threads + 2;
        TurnBound {
            turns_max: 2 * self.turns_max + threads,
            period_ns: PERIOD.as_nanos() as u64,
        }
    }
}

fn run(mut random: Random) {
    let ledger = Ledger::default();
    let breaks = world::with(|world| world.core.faults.breaks());
    let plan = Plan::draw(&mut random, breaks);
    bounds::bound_turns(plan.bound());
    let orb = plan.builder().build().expect("the ORB can be built");
    let root = orb.root_poa().expect("the ORB can listen");
    let servant = Executes::new(ledger.clone(), plan.overrun);
    let executed = servant.executed();
    let timed: Timed = root.activate(servant).expect("there is room");
    let runs = orb.clone();
    let server = thread::spawn(move || drop(runs.run()));
    // The enforcing thread is to have begun: until then it has no priority, and less urgent threads may keep it from the CPU.
    thread::sleep(PERIOD);
    let address = RawTarget::of(timed.as_object()).address;
    let crowds = (0..plan.crowds).map(|_| {
        let random = random.split();
        thread::spawn(move || crowd(address, random, plan.crowd))
    });
    let crowds: Vec<_> = crowds.collect();
    let clients = (0..1 + random.below(3) as u32).map(|number| {
        let (orb, random) = (client(&mut random), random.split());
        let reference = timed.to_string();
        thread::spawn(move || call(&orb, &reference, random, number * 1000, plan))
    });
    let clients: Vec<_> = clients.collect();
    let ended = clients
        .into_iter()
        .flat_map(|client| client.join().expect("no client panics"));
    let ended: Vec<TimedEnd> = ended.collect();
    for crowd in crowds {
        crowd.join().expect("no stranger panics");
    }
    drop((root, timed));
    orb.shutdown();
    server.join().expect("the server does not panic");
    executed.check(&orb);
    orb.destroy().expect("it is in no servant");
    for TimedEnd {
        end,
        may_be_stopped,
    } in &ended
    {
        end.check(&ledger);
        if plan.is_sound && !may_be_stopped {
            end.check_success();
        }
    }
    let done = ended.iter().filter(|it| it.end.is_done()).count();
    world::with(|world| world.core.mix(done as u64));
}

/// The end of a call.
struct TimedEnd {
    end: CallEnd,
    /// Its servant executes longer than it may, and is asked to stop.
    may_be_stopped: bool,
}

/// The calls of one client. It is a stranger before the first one.
fn call(orb: &Orb, reference: &str, mut random: Random, first: u32, plan: Plan) -> Vec<TimedEnd> {
    let timed: Timed = orb
        .string_to_reference(reference)
        .expect("it is a reference");
    thread::sleep(Duration::from_nanos(random.below(20_000_000)));
    let calls = 1 + random.below(CALLS_MAX);
    let mut ended: Vec<TimedEnd> = Vec::new();
    for call in (first..).take(calls as usize) {
        let timeout = random.choose(&[2_000, 20_000, 2_000_000]);
        let timeout = if plan.is_sound {
            ENOUGH
        } else {
            Duration::from_micros(timeout)
        };
        let busy_us = random.choose(&[0, 0, 200, 700, 3_000, 5_000]);
        let is_known = ended.iter().any(|it| it.end.is_done());
        let begun_ns = world::now_ns();
        let outcome = timed.with_timeout(timeout).execute(call, busy_us);
        if is_known && plan.is_sound {
            check_end("a call of a known client", begun_ns, KNOWN_MAX, &outcome);
        }
        let busy = Duration::from_micros(busy_us.into());
        ended.push(TimedEnd {
            end: CallEnd::new(call, false, begun_ns, timeout, outcome),
            may_be_stopped: plan.overrun == Overrun::Stop && busy > WORST / 2,
        });
        thread::sleep(Duration::from_nanos(random.below(3_000_000)));
    }
    ended
}

/// Strangers that connect, send some bytes of a message now and then, and go away.
fn crowd(server: SocketAddr, mut random: Random, count: u64) {
    const MESSAGE: &[u8] =
        b"GIOP\x01\x02\x01\x00\xff\x00\x00\x00 and more of a request that never ends";
    let mut strangers: Vec<(RawClient, usize)> = Vec::new();
    for _ in 0..count {
        strangers.extend(RawClient::connect(server).map(|client| (client, 0)));
        if random.one_in(4) {
            thread::sleep(Duration::from_nanos(random.below(2_000_000)));
        }
    }
    for _ in 0..random.below(40) {
        if strangers.is_empty() {
            return;
        }
        let place = random.below(strangers.len() as u64) as usize;
        let (client, sent) = &mut strangers[place];
        let has_ended = match MESSAGE.get(*sent) {
            Some(byte) => !client.send(&[*byte]),
            None => true,
        };
        *sent += 1;
        if has_ended || random.one_in(20) {
            strangers.swap_remove(place);
        }
        if random.one_in(2) {
            thread::sleep(Duration::from_nanos(random.below(2_000_000)));
        }
    }
}

/// Ends the seed, with the place in the budget.
fn fail_at(what: &str, call: u32, executed_ns: u64) -> ! {
    fail(&format!(
        "{what}: call {call} at {executed_ns} ns of {WORST:?}"
    ))
}
