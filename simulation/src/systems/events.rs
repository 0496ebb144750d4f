//! An event channel with suppliers, and consumers of which some are slow, hang, or end at any moment.

use super::System;
use super::call_end::fail;
use crate::random::Random;
use crate::world;
use crate::world::faults::Faults;
use rtorb::any::Any;
use rtorb::rt::Priority;
use rtorb::{DispatchStrategy, Orb};
use rtorb_services::events::client::{Arrival, Received, Receiver, Supplier, channel_of};
use rtorb_services::events::subscribe::{Interest, Publications};
use rtorb_services::events::{
    Channel, ChannelConfig, Dispatching, Event, Statistics, WhenFull, strategies,
};
use std::thread;
use std::time::Duration;

pub(crate) const SYSTEM: System = System {
    name: "events",
    faults: |random| {
        let breaks = random.one_in(2);
        Faults::draw(random, breaks)
    },
    run,
};

/// How a consumer treats its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// It takes each at once, and gets all if nothing breaks.
    Good,
    /// It takes one now and then.
    Slow,
    /// Its program ends at some moment.
    Dies,
}

/// What a consumer does, and what it may expect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) manner: Manner,
    /// The events of all suppliers.
    pub(super) all: u64,
    /// Nothing breaks.
    pub(super) is_sound: bool,
    /// The events of each supplier come in order.
    pub(super) is_ordered: bool,
}

/// Events of one supplier at most. The queues of a good consumer have room for those of all suppliers.
const EVENTS_MAX: u64 = 20;
const EVENT_TYPE: i32 = 20;

/// Longer than it takes to deliver all events if nothing breaks.
const LONG_NS: u64 = 10_000_000_000;

fn run(mut random: Random) {
    let breaks = world::with(|world| world.core.faults.breaks());
    let dispatch = super::dispatch(&mut random);
    // Several threads serve the pushes of one supplier in any order. So do the threads of two connections to a consumer, of which one broke.
    let is_ordered = !breaks
        && matches!(
            dispatch,
            DispatchStrategy::ThreadPerConnection | DispatchStrategy::Reactive
        );
    let orb = Orb::builder().strategies(strategies(dispatch));
    let orb = orb.build().expect("the ORB can be built");
    let config = config(&mut random);
    let channel = Channel::serve(&orb, config).expect("the host allows it");
    let reference = channel.reference().to_string();
    let runs = orb.clone();
    let server = thread::spawn(move || drop(runs.run()));
    let suppliers = 1 + random.below(2);
    let counts: Vec<_> = (0..suppliers)
        .map(|_| 1 + random.below(EVENTS_MAX))
        .collect();
    let all = counts.iter().sum();
    let consumers = (0..1 + random.below(3)).map(|_| {
        let manner = random.choose(&[Manner::Good, Manner::Slow, Manner::Dies]);
        let (reference, random) = (reference.clone(), random.split());
        thread::spawn(move || {
            consume(
                &reference,
                Wanted {
                    manner,
                    all,
                    is_sound: !breaks,
                    is_ordered,
                },
                random,
            )
        })
    });
    let consumers: Vec<_> = consumers.collect();
    // The consumers connect meanwhile, if nothing breaks.
    thread::sleep(Duration::from_secs(1));
    let suppliers = counts.iter().enumerate().map(|(source, count)| {
        let (reference, random, count) = (reference.clone(), random.split(), *count);
        thread::spawn(move || supply(&reference, source as i32 + 1, count, random))
    });
    let suppliers: Vec<_> = suppliers.collect();
    if random.one_in(4) && breaks {
        thread::sleep(Duration::from_nanos(random.below(20_000_000)));
        channel.destroy();
    }
    for thread in suppliers.into_iter().chain(consumers) {
        thread.join().expect("no client panics");
        check(&channel.statistics());
    }
    channel.destroy();
    drop(channel);
    orb.shutdown();
    server.join().expect("the server does not panic");
    let _ = orb.destroy();
}

pub(super) fn config(random: &mut Random) -> ChannelConfig {
    let lanes: &[i16] = if random.one_in(2) { &[10] } else { &[40, 10] };
    let lanes = lanes
        .iter()
        .map(|lane| Priority::new(*lane).expect("it is in range"));
    ChannelConfig {
        dispatching: random.choose(&[
            Dispatching::Priority,
            Dispatching::Reactive,
            Dispatching::Lanes,
        ]),
        lanes: lanes.collect(),
        when_full: random.choose(&[
            WhenFull::DiscardOldest,
            WhenFull::DiscardNewest,
            WhenFull::Disconnect,
            WhenFull::Wait {
                at_most: Duration::from_millis(5),
            },
        ]),
        turn_events: random.choose(&[1, 16]),
        hang_timeout: Duration::from_millis(100),
        ping_every: Duration::from_millis(500),
        ..ChannelConfig::default()
    }
}

/// Each event of a consumer was delivered, was discarded for a reason, or waits.
fn check(statistics: &Statistics) {
    for consumer in &statistics.consumers {
        if !consumer.events.is_balanced() {
            fail(&format!(
                "the counts of a consumer are not balanced: {consumer:?}"
            ));
        }
    }
    if !statistics.departed.events.is_balanced() {
        fail(&format!(
            "the counts of those that departed are not balanced: {statistics:?}"
        ));
    }
}

/// Connects, and takes events.
pub(super) fn consume(reference: &str, wanted: Wanted, mut random: Random) {
    let Wanted {
        manner,
        all,
        is_sound,
        ..
    } = wanted;
    let orb = Orb::builder().build().expect("the ORB can be built");
    let poa = orb.root_poa().expect("the ORB can listen");
    let runs = orb.clone();
    let server = thread::spawn(move || drop(runs.run()));
    let wants = Interest::event_type(EVENT_TYPE).consumer_qos();
    let receiver = channel_of(&orb, reference);
    let receiver = receiver
        .ok()
        .and_then(|channel| Receiver::connect(&channel, &poa, &wants, 100).ok());
    if let Some(receiver) = receiver {
        let taken = take(&receiver, wanted, &mut random);
        if is_sound && wanted.is_ordered && manner == Manner::Good && taken < all {
            fail(&format!("a good consumer got {taken} of {all} events"));
        }
        if manner != Manner::Dies {
            drop(receiver);
        } else {
            orb.shutdown();
        }
    }
    orb.shutdown();
    server.join().expect("the server does not panic");
    let _ = orb.destroy();
}

/// Takes events until all have come, or none comes any more; returns the number.
fn take(receiver: &Receiver, wanted: Wanted, random: &mut Random) -> u64 {
    let Wanted {
        manner,
        all,
        is_ordered,
        ..
    } = wanted;
    let mut arrival = Arrival::default();
    let mut last = [0; 3];
    let end = if manner == Manner::Dies {
        random.below(all + 1)
    } else {
        all
    };
    for taken in 0..end {
        let wait_ns = if manner == Manner::Good {
            LONG_NS
        } else {
            LONG_NS / 5
        };
        if receiver.next(&mut arrival, world::now_ns() + wait_ns) != Received::Event {
            return taken;
        }
        let source = arrival.event.header.source as usize;
        let number: i32 = arrival
            .event
            .data
            .any_value
            .extract()
            .expect("it is a number");
        if is_ordered && number <= last[source] {
            fail(&format!(
                "event {number} of source {source} came after event {}",
                last[source]
            ));
        }
        last[source] = number;
        if manner == Manner::Slow {
            thread::sleep(Duration::from_millis(random.below(30)));
        }
    }
    end
}

/// Connects, and pushes so many events with growing numbers.
pub(super) fn supply(reference: &str, source: i32, count: u64, mut random: Random) {
    let orb = Orb::builder().build().expect("the ORB can be built");
    let publications = Publications::new()
        .event(source, EVENT_TYPE, 0)
        .supplier_qos();
    let supplier = channel_of(&orb, reference).ok();
    let supplier = supplier.and_then(|channel| Supplier::connect(&channel, &publications).ok());
    if let Some(supplier) = supplier {
        for number in 1..=count as i32 {
            let data = Any::from_value(&number).expect("it is a number");
            let _ = supplier.push(&[Event::new(source, EVENT_TYPE, data)]);
            if random.one_in(4) {
                thread::sleep(Duration::from_micros(random.below(2000)));
            }
        }
        let _ = supplier.arrived();
    }
}
