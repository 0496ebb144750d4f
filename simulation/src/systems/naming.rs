//! A naming service on a disk that tears, fills and fails. It is killed at any moment and started again, and its clients stay.

use super::System;
use super::call_end::fail;
use super::server::open_shared;
use crate::calls::disk::FOLDER;
use crate::random::Random;
use crate::world;
use crate::world::faults::Faults;
use crate::world::processes::{Kill, Process};
use client::{Client, Conditions};
use rtorb::{DispatchStrategy, Orb};
use rtorb_services::naming::{
    NamingConfig, NamingError, NamingService, NamingStatistics, StoreError,
};
use std::mem;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

mod client;

pub(crate) const SYSTEM: System = System {
    name: "naming",
    faults: |random| {
        let breaks = random.one_in(3);
        Faults {
            sync_ns_max: random.choose(&[0, 100_000, 5_000_000]),
            ..Faults::draw(random, breaks)
        }
    },
    run,
};

/// Services that are killed or shut down, before the last one.
const LIVES_MAX: u64 = 3;

/// What a service is like as long as it runs.
#[derive(Clone, Debug)]
struct Plan {
    faults: Faults,
    change_timeout: Duration,
    dispatch: DispatchStrategy,
    /// When it is killed, counted from its start.
    killed_starting: Option<u64>,
    /// When it is killed, counted from the first change.
    killed_serving: Option<u64>,
    how: Kill,
}

/// A service that is ready.
struct ReadyService {
    orb: Orb,
    service: NamingService,
    statistics: NamingStatistics,
}

type Outcome = Arc<Mutex<Option<Result<ReadyService, NamingError>>>>;

fn run(mut random: Random) {
    open_shared();
    let faults = world::with(|world| world.core.faults);
    let clients = 1 + random.below(3);
    let mut clients: Vec<_> = (0..clients)
        .map(|number| Client::new(number, random.split()))
        .collect();
    for _ in 0..1 + random.below(LIVES_MAX) {
        let plan = plan(&mut random, faults);
        clients = live(clients, &plan);
        // No program can mend what the disk of a running host has lost.
        world::with(|world| {
            if world.disk.has_failed() {
                world.disk.lose_power(&mut world.core.random);
            }
        });
    }
    let last = Plan {
        faults: Faults::NONE,
        change_timeout: Duration::from_secs(10),
        dispatch: DispatchStrategy::default(),
        killed_starting: None,
        killed_serving: None,
        how: Kill::Signal,
    };
    let clients = live(clients, &last);
    let made: u64 = clients.iter().map(|client| client.made).sum();
    world::with(|world| world.core.mix(made));
}

fn plan(random: &mut Random, network: Faults) -> Plan {
    let fails = random.one_in(2);
    let mut rare = |choices: &[u64], otherwise| {
        if fails {
            random.choose(choices)
        } else {
            otherwise
        }
    };
    let faults = Faults {
        disk_error_one_in: rare(&[0, 10, 100, 500], 0),
        disk_bytes: rare(&[u64::MAX, 100_000, 1_000_000, 1_100_000], u64::MAX),
        ..network
    };
    let mut killed = |one_in, within_ns: &[u64]| {
        let within_ns = random.choose(within_ns);
        let at_ns = random.below(within_ns);
        random.one_in(one_in).then_some(at_ns)
    };
    let killed_starting = killed(4, &[200_000, 5_000_000, 50_000_000]);
    let killed_serving = killed(1, &[100_000, 2_000_000, 20_000_000]);
    Plan {
        faults,
        killed_starting,
        killed_serving: killed_serving.filter(|_| !random.one_in(4)),
        change_timeout: Duration::from_millis(random.choose(&[1, 10, 10_000])),
        dispatch: super::dispatch(random),
        how: random.choose(&[Kill::Signal, Kill::Power]),
    }
}

/// Starts a service, checks its names, has clients change them, and ends it.
fn live(clients: Vec<Client>, plan: &Plan) -> Vec<Client> {
    set_faults(Faults {
        sync_ns_max: plan.faults.sync_ns_max,
        disk_error_one_in: plan.faults.disk_error_one_in,
        disk_bytes: plan.faults.disk_bytes,
        ..Faults::NONE
    });
    let outcome = Outcome::default();
    let (served, of) = (Arc::clone(&outcome), plan.clone());
    let process = Process::start(move || serve(&of, &served));
    if let Some(after_ns) = plan.killed_starting {
        process.kill_at(world::now_ns() + after_ns, plan.how);
    }
    while process.is_running() && outcome.lock().expect("no panic").is_none() {
        thread::sleep(Duration::from_micros(200));
    }
    let started = match outcome.lock().expect("no panic").take() {
        Some(Ok(started)) => started,
        Some(Err(error)) => {
            check_refusal(&error, plan);
            process.wait();
            return clients;
        }
        None => {
            process.wait();
            return clients;
        }
    };
    let clients = if plan.killed_starting.is_none() {
        let reference = started.service.reference().to_string();
        // On a thread of its own, whose connections end with it.
        let (of_check, statistics) = (reference.clone(), started.statistics);
        let checking = thread::spawn(move || check(clients, &of_check, statistics));
        let clients = checking.join().expect("the check does not panic");
        change(clients, &reference, plan, &process)
    } else {
        clients
    };
    if plan.killed_starting.or(plan.killed_serving).is_some() {
        // Its threads have them for ever.
        mem::forget(started);
    } else {
        started.service.end();
        started.orb.shutdown();
        drop(started);
    }
    process.wait();
    clients
}

fn set_faults(faults: Faults) {
    world::with(|world| world.core.faults = faults);
}

/// A disk that refuses calls may prevent the start of a service, and nothing else may.
fn check_refusal(error: &NamingError, plan: &Plan) {
    let is_refusal = matches!(
        error,
        NamingError::Store {
            why: StoreError::Io(_),
            ..
        }
    );
    if !is_refusal || !plan.faults.refuses() {
        fail(&format!("the service does not start: {error}"));
    }
}

/// What the process of a service does.
fn serve(plan: &Plan, outcome: &Outcome) {
    let orb = Orb::builder()
        .listen("iiop://127.0.0.1:2809")
        .dispatch(plan.dispatch);
    let orb = orb.build().expect("the ORB can be built");
    let config = NamingConfig {
        store: Some(format!("{FOLDER}/names").into()),
        bindings_max: 1000,
        change_timeout: plan.change_timeout,
        ..NamingConfig::default()
    };
    let service = NamingService::serve(&orb, config);
    let started = service.map(|service| ReadyService {
        orb: orb.clone(),
        statistics: service.statistics(),
        service,
    });
    let serves = started.is_ok();
    *outcome.lock().expect("no panic") = Some(started);
    if serves {
        let root = orb.root_poa().expect("the ORB can listen");
        root.manager().activate();
        let _ = orb.run();
    }
    let _ = orb.destroy();
}

/// Each name is as it was acknowledged, and nothing else is there.
fn check(mut clients: Vec<Client>, reference: &str, statistics: NamingStatistics) -> Vec<Client> {
    let orb = Orb::builder().build().expect("the ORB can be built");
    for client in &mut clients {
        client.check(&orb, reference);
    }
    let contexts = clients.iter().filter(|client| client.has_context()).count();
    let bindings: usize = clients.iter().map(Client::count).sum();
    if (statistics.contexts, statistics.bindings) != (contexts + 1, bindings) {
        fail(&format!(
            "{contexts} contexts and {bindings} names are bound, and there are {statistics:?}"
        ));
    }
    orb.destroy().expect("it is in no servant");
    clients
}

/// Has all clients make changes.
fn change(clients: Vec<Client>, reference: &str, plan: &Plan, process: &Process) -> Vec<Client> {
    set_faults(plan.faults);
    let conditions = Conditions {
        is_disk_sound: !plan.faults.refuses(),
        is_sound: plan.killed_serving.is_none()
            && !plan.faults.refuses()
            && !plan.faults.breaks()
            && plan.change_timeout >= Duration::from_secs(10),
    };
    if let Some(after_ns) = plan.killed_serving {
        process.kill_at(world::now_ns() + after_ns, plan.how);
    }
    let clients = clients.into_iter().map(|mut client| {
        let reference = reference.to_owned();
        thread::spawn(move || {
            client.change(&reference, conditions);
            client
        })
    });
    let threads: Vec<_> = clients.collect();
    let clients = threads.into_iter().map(|thread| thread.join());
    clients
        .map(|client| client.expect("no client panics"))
        .collect()
}
