//! A consumer that connects again to its proxy: another subscription in the place of the one that it had.

use super::setup::{Consumer, PATIENCE, Served, Supplier, event, number, serve, subscription};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use rtorb::rt::Priority;
use rtorb_os::clock::monotonic_ns;
use rtorb_services::events::{ChannelConfig, Dispatching, WhenFull};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, ProxyPushSupplierConnectPushConsumerError,
};
use rtorb_tests::running::until;
use std::time::Duration;

#[test]
fn what_both_subscriptions_ask_for_comes_once_and_in_order() {
    const EVENTS: u32 = 20_000;
    const PART: u32 = EVENTS / 4;
    // Suppliers that wait hand nothing over to a lane; with so much room others discard nothing either.
    let roomy = |dispatching| ChannelConfig {
        when_full: WhenFull::DiscardOldest,
        queue_events: 2 * EVENTS as usize,
        queue_bytes: 16 << 20,
        intake_events: 3,
        ..config(dispatching)
    };
    let configs = [
        config(Dispatching::Priority),
        config(Dispatching::Reactive),
        config(Dispatching::Lanes),
        roomy(Dispatching::Priority),
        roomy(Dispatching::Lanes),
    ];
    for config in configs {
        let way = (config.dispatching, config.when_full);
        let served = serve(config);
        let consumer = Consumer::connect(&served, &[(16, 0)], 0);
        let (has_ended, changes) = (AtomicBool::new(false), AtomicU32::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| keep_changing(&consumer, &has_ended, &changes));
            let supplier = Supplier::connect(&served);
            for count in 0..EVENTS {
                // On a busy host too, changes come between events.
                if count % PART == 0 {
                    until("the next change", || {
                        (changes.load(Ordering::SeqCst) > count / PART).then_some(())
                    });
                }
                supplier.push(event(16, 1, count));
                if count % 4 == 0 {
                    supplier.push(event(17, 1, count));
                }
            }
            served.statistics_when("all have come", |it| {
                it.received == u64::from(EVENTS * 5 / 4)
            });
            has_ended.store(true, Ordering::SeqCst);
        });
        // The channel counts what comes before it gives it to the consumer.
        until("all events that both subscriptions ask for", || {
            let got = consumer.got.events.lock();
            let wanted = got.iter().filter(|it| it.header.r#type == 16);
            (wanted.count() >= EVENTS as usize).then_some(())
        });
        let delivered = served.quiet(0).events.delivered;
        let got = consumer.got.wait_for(delivered as usize);
        let wanted = got.iter().filter(|it| it.header.r#type == 16).map(number);
        let wanted: Vec<_> = wanted.collect();
        let wrong = (0..).zip(&wanted).find(|(at, number)| at != *number);
        let seen = (wrong, wanted.len());
        assert_eq!(
            seen,
            (None, EVENTS as usize),
            "{way:?}, {changes:?} changes"
        );
    }
}

#[test]
fn the_lane_is_that_of_the_first_subscription_and_the_events_those_of_the_last() {
    let served = serve(config(Dispatching::Priority));
    let consumer = Consumer::connect(&served, &[(16, 0)], 20);
    let supplier = Supplier::connect(&served);
    let other_lane = connect_again(&consumer, &subscription(&[(17, 0)], 10));
    assert!(matches!(
        other_lane,
        Err(ProxyPushSupplierConnectPushConsumerError::TypeError(_))
    ));
    for (number, event_type) in [(0, 17), (1, 16)] {
        supplier.push(event(event_type, 1, number));
    }
    let numbers: Vec<_> = consumer.got.wait_for(1).iter().map(number).collect();
    assert_eq!(numbers, [1], "nothing has changed");
    connect_again(&consumer, &subscription(&[(17, 0)], 11)).expect("it may");
    assert_eq!(lane(&served), 20);
    for (number, event_type) in [(2, 16), (3, 17)] {
        supplier.push(event(event_type, 1, number));
    }
    let numbers: Vec<_> = consumer.got.wait_for(2).iter().map(number).collect();
    assert_eq!(numbers, [1, 3]);
    assert_eq!(served.quiet(0).events.delivered, 2);
}

#[test]
fn a_subscription_that_cannot_be_leaves_the_former() {
    let served = serve(config(Dispatching::Priority));
    let consumer = Consumer::connect(&served, &[(16, 0)], 0);
    let nothing = connect_again(&consumer, &subscription(&[], 0));
    assert!(matches!(
        nothing,
        Err(ProxyPushSupplierConnectPushConsumerError::TypeError(_))
    ));
    let unknown = connect_again(&consumer, &subscription(&[(17, 0)], -1));
    assert!(matches!(
        unknown,
        Err(ProxyPushSupplierConnectPushConsumerError::System(_))
    ));
    let supplier = Supplier::connect(&served);
    supplier.push(event(17, 1, 1));
    supplier.push(event(16, 1, 2));
    let numbers: Vec<_> = consumer.got.wait_for(1).iter().map(number).collect();
    assert_eq!(numbers, [2]);
}

/// Subscribes again and again: alone, beside another type, as any, and in a group that is asked itself; of either priority in its lane.
fn keep_changing(consumer: &Consumer, has_ended: &AtomicBool, changes: &AtomicU32) {
    let late_ns = monotonic_ns() + PATIENCE.as_nanos() as u64;
    while !has_ended.load(Ordering::SeqCst) && monotonic_ns() < late_ns {
        let change = changes.load(Ordering::SeqCst);
        let rt_info = (change % 2 * 10) as i32;
        let keys = [
            &[(16, 0)][..],
            &[(17, 0), (16, 1)],
            &[(0, 1)],
            &[(LOGICAL_AND, 0), (16, 0), (0, 1)],
        ];
        let keys = keys[change as usize % keys.len()];
        connect_again(consumer, &subscription(keys, rt_info)).expect("it may");
        changes.fetch_add(1, Ordering::SeqCst);
    }
}

fn connect_again(
    consumer: &Consumer,
    qos: &ConsumerQos,
) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
    let reference = Some(&consumer.reference);
    consumer.proxy.connect_push_consumer(reference, qos)
}

fn lane(served: &Served) -> i16 {
    served.channel.statistics().consumers[0].lane
}

/// Two lanes, and suppliers that wait, so that nothing is discarded.
fn config(dispatching: Dispatching) -> ChannelConfig {
    ChannelConfig {
        dispatching,
        lanes: [20, 10]
            .map(|it| Priority::new(it).expect("a priority"))
            .to_vec(),
        when_full: WhenFull::Wait {
            at_most: Duration::from_secs(30),
        },
        ..ChannelConfig::default()
    }
}

/// The designator of a group that looks at one event.
const LOGICAL_AND: i32 = 11;
