//! Two event channels in processes of their own, gateways between them, and a channel that is killed and started again.

use super::System;
use super::call_end::fail;
use super::events::{Manner, Wanted, config, consume, supply};
use super::server::open_shared;
use crate::random::Random;
use crate::world;
use crate::world::faults::Faults;
use crate::world::processes::{Kill, Process};
use rtorb::{DispatchStrategy, Orb};
use rtorb_services::events::client::channel_of;
use rtorb_services::events::gateway::{Ends, Gateway, GatewayConfig};
use rtorb_services::events::{Channel, ChannelConfig, strategies};
use std::cell::RefCell;
use std::mem;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub(crate) const SYSTEM: System = System {
    name: "gateways",
    faults: |random| {
        let breaks = random.one_in(3);
        Faults::draw(random, breaks)
    },
    run,
};

/// The events of the supplier at most, for each time that it comes.
const EVENTS_MAX: u64 = 20;

/// The time in which gateways connect and subscribe, if nothing breaks: some pings, and some pauses after failures.
const CONNECTED: Duration = Duration::from_secs(5);

/// A channel, which has another reference after it was started again.
struct ChannelSite {
    reference: Arc<Mutex<String>>,
    config: ChannelConfig,
    running: RefCell<Option<ChannelServer>>,
}

struct ChannelServer {
    orb: Orb,
    channel: Channel,
    process: Process,
}

fn run(mut random: Random) {
    open_shared();
    let breaks = world::with(|world| world.core.faults.breaks());
    let from = ChannelSite::new(config(&mut random));
    let to = ChannelSite::new(config(&mut random));
    let serving = Orb::builder().round_trip_timeout(Some(Duration::from_secs(1)));
    let serving = serving.build().expect("the ORB can be built");
    let runs = serving.clone();
    let server = thread::spawn(move || drop(runs.run()));
    let mut gateways = vec![gateway(&serving, &from, &to)];
    if random.one_in(2) {
        // Events do not come back.
        gateways.push(gateway(&serving, &to, &from));
    }
    let wanted = Wanted {
        manner: Manner::Good,
        all: 1 + random.below(EVENTS_MAX),
        is_sound: !breaks,
        is_ordered: !breaks,
    };
    send_and_take(&from, &to, wanted, &mut random, || {});
    if random.one_in(2) {
        let killed = if random.one_in(2) { &from } else { &to };
        let how = random.choose(&[Kill::Signal, Kill::Power]);
        let after = Duration::from_nanos(random.below(20_000_000));
        let disturbed = Wanted {
            is_sound: false,
            ..wanted
        };
        send_and_take(&from, &to, disturbed, &mut random, || {
            thread::sleep(after);
            killed.kill(how);
            killed.start();
        });
        send_and_take(&from, &to, wanted, &mut random, || {});
    }
    gateways.iter().for_each(Gateway::stop);
    // A push that came meanwhile is counted now.
    thread::sleep(Duration::from_millis(100));
    for gateway in gateways {
        let counts = gateway.statistics();
        let ended = counts.forwarded
            + counts.expired
            + counts.discarded_full
            + counts.discarded_lost
            + counts.malformed;
        if counts.received != ended {
            fail(&format!("the counts of a gateway do not agree: {counts:?}"));
        }
        world::with(|world| world.core.mix(counts.forwarded));
    }
    serving.shutdown();
    server.join().expect("the gateways' server does not panic");
    let _ = serving.destroy();
    from.end();
    to.end();
}

/// Has a supplier send events to one channel, and consumers take them from both. Does something when they begin.
fn send_and_take(
    from: &ChannelSite,
    to: &ChannelSite,
    wanted: Wanted,
    random: &mut Random,
    meanwhile: impl FnOnce(),
) {
    let consumers: Vec<JoinHandle<()>> = [from, to]
        .map(|site| {
            let (reference, random) = (site.reference(), random.split());
            thread::spawn(move || consume(&reference, wanted, random))
        })
        .into();
    thread::sleep(CONNECTED);
    let (reference, of_supplier) = (from.reference(), random.split());
    let supplier = thread::spawn(move || supply(&reference, 1, wanted.all, of_supplier));
    meanwhile();
    for thread in consumers.into_iter().chain([supplier]) {
        thread.join().expect("no client panics");
    }
}

fn gateway(orb: &Orb, from: &ChannelSite, to: &ChannelSite) -> Gateway {
    let find = |site: &ChannelSite| {
        let (orb, reference) = (orb.clone(), Arc::clone(&site.reference));
        let find = move || {
            let reference = reference.lock().expect("no panic").clone();
            channel_of(&orb, &reference)
        };
        Box::new(find)
    };
    let ends = Ends {
        from: find(from),
        to: find(to),
    };
    let config = GatewayConfig {
        ping_every: Duration::from_millis(300),
        ..GatewayConfig::default()
    };
    Gateway::start(orb, ends, config, |_| {}).expect("it can be started")
}

impl ChannelSite {
    fn new(config: ChannelConfig) -> Self {
        let site = Self {
            reference: Arc::default(),
            config,
            running: RefCell::default(),
        };
        site.start();
        site
    }

    fn start(&self) {
        let config = self.config.clone();
        let (started, starts) = mpsc::channel();
        let process = Process::start(move || {
            let orb = Orb::builder().strategies(strategies(DispatchStrategy::Reactive));
            let orb = orb.build().expect("the ORB can be built");
            let channel = Channel::serve(&orb, config).expect("the host allows it");
            let _ = started.send((orb.clone(), channel));
            let _ = orb.run();
            let _ = orb.destroy();
        });
        let (orb, channel) = starts.recv().expect("the channel starts");
        *self.reference.lock().expect("no panic") = channel.reference().to_string();
        *self.running.borrow_mut() = Some(ChannelServer {
            orb,
            channel,
            process,
        });
    }

    fn reference(&self) -> String {
        self.reference.lock().expect("no panic").clone()
    }

    fn kill(&self, how: Kill) {
        if let Some(running) = self.running.take() {
            running.process.kill_at(world::now_ns(), how);
            running.process.wait();
            // Its threads have both for ever.
            mem::forget((running.orb, running.channel));
        }
    }

    fn end(self) {
        if let Some(running) = self.running.into_inner() {
            running.channel.destroy();
            drop(running.channel);
            running.orb.shutdown();
            running.process.wait();
        }
    }
}
