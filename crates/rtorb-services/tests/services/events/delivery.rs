//! Events arrive at who wants them, whole and in order, and are counted.

use super::setup::{
    Consumer, Served, Serving, Supplier, event, event_with, number, serve, subscription,
};
use rtorb::Orb;
use rtorb::any::Any;
use rtorb::cdr::ByteOrder;
use rtorb::giop::Version;
use rtorb::rt::Priority;
use rtorb_services::events::{ChannelConfig, Dispatching, WhenFull};
use rtorb_services::stubs::rtec_event::rtec_event_comm::Event;
use std::time::Duration;

#[test]
fn an_event_goes_to_who_wants_it_by_every_way_of_dispatching() {
    for dispatching in DISPATCHING {
        let served = serve(ChannelConfig {
            dispatching,
            ..ChannelConfig::default()
        });
        let all = Consumer::connect(&served, &[(0, 0)], 0);
        let some = Consumer::connect(&served, &[(17, 0)], 0);
        let supplier = Supplier::connect(&served);
        for count in 0..100 {
            supplier.push(event(16 + (count % 2) as i32, 1, count));
        }
        assert_eq!(
            numbers(&all.got.wait_for(100)),
            (0..100).collect::<Vec<_>>()
        );
        let odd = numbers(&some.got.wait_for(50));
        assert_eq!(odd, (0..100).filter(|it| it % 2 == 1).collect::<Vec<_>>());
        let statistics = all_delivered(&served);
        assert_eq!(statistics, (100, vec![100, 50]), "{dispatching:?}");
    }
}

#[test]
fn three_suppliers_and_five_consumers_of_three_lanes() {
    const EACH: u32 = 2000;
    let priorities = [30, 20, 10].map(|it| Priority::new(it).expect("a priority"));
    for dispatching in DISPATCHING {
        let served = serve(ChannelConfig {
            dispatching,
            lanes: priorities.to_vec(),
            when_full: PATIENT,
            ..ChannelConfig::default()
        });
        let consumers =
            [35, 30, 15, 10, 0].map(|rt_info| Consumer::connect(&served, &[(0, 0)], rt_info));
        let lanes = served.channel.statistics().consumers;
        let lanes: Vec<_> = lanes.iter().map(|it| it.lane).collect();
        assert_eq!(lanes, [30, 30, 20, 10, 10]);
        std::thread::scope(|scope| {
            for source in 1..=3 {
                let served = &served;
                scope.spawn(move || {
                    let supplier = Supplier::connect(served);
                    for count in 0..EACH {
                        supplier.push(event(16, source, count));
                    }
                });
            }
        });
        for consumer in &consumers {
            let events = consumer.got.wait_for(3 * EACH as usize);
            for source in 1..=3 {
                let own = events.iter().filter(|it| it.header.source == source);
                let own: Vec<_> = own.map(number).collect();
                assert_eq!(own, (0..EACH).collect::<Vec<_>>(), "of {source}");
            }
        }
        let each = u64::from(3 * EACH);
        assert_eq!(all_delivered(&served), (each, vec![each; 5]));
    }
}

#[test]
fn no_number_is_missing_or_repeated_where_suppliers_wait_for_room() {
    const EVENTS: u32 = 200_000;
    let served = serve(ChannelConfig {
        when_full: PATIENT,
        queue_events: 16,
        ..ChannelConfig::default()
    });
    let consumer = Consumer::connect(&served, &[(0, 0)], 0);
    let supplier = Supplier::connect(&served);
    for count in 0..EVENTS {
        supplier.push(event(16, 1, count));
    }
    let numbers = numbers(&consumer.got.wait_for(EVENTS as usize));
    assert!(numbers.into_iter().eq(0..EVENTS));
    assert_eq!(
        all_delivered(&served),
        (u64::from(EVENTS), vec![u64::from(EVENTS)])
    );
}

#[test]
fn values_are_the_same_whatever_either_side_speaks() {
    let served = serve(ChannelConfig::default());
    let sides = [
        (ByteOrder::Little, Version::V1_2),
        (ByteOrder::Big, Version::V1_2),
        (ByteOrder::Little, Version::V1_1),
        (ByteOrder::Big, Version::V1_0),
    ];
    let orb = |(order, version)| {
        let orb = Orb::builder().byte_order(order).max_giop_version(version);
        orb.listen("iiop://127.0.0.1:0").build().expect("an ORB")
    };
    let events: Vec<Event> = (0..)
        .zip(anys())
        .map(|(number, any)| event_with(16, 1, number, any))
        .collect();
    for consumer_side in sides {
        for supplier_side in sides {
            let serving = Serving::new(orb(consumer_side));
            let consumer = Consumer::connect_with(&served, serving, subscription(&[(16, 0)], 0));
            let supplier = Supplier::connect_with(&served, orb(supplier_side));
            for event in &events {
                supplier.push(event.clone());
            }
            // Several in one message too.
            supplier.proxy.push(&events).expect("it is sent");
            let got = consumer.got.wait_for(2 * events.len());
            let twice: Vec<_> = events.iter().chain(&events).cloned().collect();
            assert_eq!(got, twice, "from {supplier_side:?} to {consumer_side:?}");
            consumer
                .proxy
                .disconnect_push_supplier()
                .expect("it answers");
        }
    }
}

const DISPATCHING: [Dispatching; 3] = [
    Dispatching::Priority,
    Dispatching::Reactive,
    Dispatching::Lanes,
];

const PATIENT: WhenFull = WhenFull::Wait {
    at_most: Duration::from_secs(30),
};

/// Anys of every shape that an event may carry.
fn anys() -> Vec<Any> {
    let inner = event_with(20, 2, 1, Any::from_value(&7i16).expect("a short"));
    vec![
        Any::NULL,
        Any::from_value(&true).expect("a boolean"),
        Any::from_value(&7u8).expect("an octet"),
        Any::from_value(&-7i32).expect("a long"),
        Any::from_value(&u64::MAX).expect("a long long"),
        Any::from_value(&0.25f64).expect("a double"),
        Any::from_value(&"plain text".to_owned()).expect("a string"),
        Any::from_value(&vec![1.5f64, 2.5]).expect("a sequence"),
        Any::from_value(&inner.header).expect("a struct"),
        Any::from_value(&inner).expect("an any in a struct in an any"),
    ]
}

fn numbers(events: &[Event]) -> Vec<u32> {
    events.iter().map(number).collect()
}

/// What came, and what each consumer was delivered of it, once nothing waits; nothing is discarded.
fn all_delivered(served: &Served) -> (u64, Vec<u64>) {
    let statistics = served.statistics_when("all is delivered", |statistics| {
        let is_done = |counts: &rtorb_services::events::statistics::Counts| {
            counts.waiting == 0 && counts.discarded.all() == 0
        };
        let is_distributed = statistics.undistributed == 0;
        is_distributed && statistics.consumers.iter().all(|it| is_done(&it.events))
    });
    let delivered = statistics.consumers.iter().map(|it| it.events.delivered);
    (statistics.received, delivered.collect())
}
