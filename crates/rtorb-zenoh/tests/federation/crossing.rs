//! Events cross from channel to channel: once, unchanged, and only where somebody wants them.

use std::time::Duration;

use rtorb::any::Any;
use rtorb::cdr::{ByteOrder, CharCodeSet, Decode, Reader};
use rtorb_services::events::Event;
use rtorb_services::events::subscribe::Interest;
use rtorb_zenoh::{DeliveryPriority, EventKey, FederationLane, FederationNews};
use zenoh::qos::Priority;

use crate::setup::{
    Member, Plant, TYPE, WARM, config, connecting, endpoint, event, key, listening, next, number,
    numbers, warm_up,
};
use crate::stranger::{Stranger, WrittenHeader};

/// An event with all that one can have.
fn full_event(source: i32, number: u32) -> Event {
    let text = Any::from_value(&"Grüße".to_owned()).expect("text goes into an any");
    let mut event = event(key(source), number);
    event.header.creation_time = 0x0102_0304_0506_0708;
    event.header.ec_recv_time = 11;
    event.header.ec_send_time = 12;
    event.data.any_value = text;
    event.data.payload.extend([7; 3000]);
    event
}

#[test]
fn events_of_three_channels_cross_once_and_unchanged() {
    let plants = [Plant::start(), Plant::start(), Plant::start()];
    let at = endpoint();
    let members = [
        Member::start(&plants[0], listening("first", &at)),
        Member::start(&plants[1], connecting("second", &at)),
        Member::start(&plants[2], connecting("third", &at)),
    ];
    let consumers = plants
        .each_ref()
        .map(|plant| plant.consumer(Interest::event_type(TYPE)));
    let suppliers = plants.each_ref().map(Plant::supplier);
    for member in &members {
        member.statistics_when("both others are there", |counts| counts.members == 2);
    }
    // Each pair of channels has found its way.
    for (place, supplier) in suppliers.iter().enumerate() {
        for (other, consumer) in consumers.iter().enumerate() {
            if other != place {
                warm_up(supplier, key(1 + place as i32), consumer);
            }
        }
    }
    for number in 0..100 {
        for (place, supplier) in suppliers.iter().enumerate() {
            let event = full_event(1 + place as i32, number);
            supplier.push(&[event]).expect("it is sent");
        }
    }
    for (place, consumer) in consumers.iter().enumerate() {
        let mut expected = [0; 3];
        while expected != [100; 3] {
            let got = next(consumer);
            if number(&got) == WARM {
                continue;
            }
            let from = (got.header.source - 1) as usize;
            let mut sent = full_event(got.header.source, expected[from]);
            if from != place {
                sent.header.ttl -= 1;
                sent.data.pad1 = got.data.pad1;
                assert_ne!(got.data.pad1, 0, "it has the mark of the federation");
            }
            assert_eq!(got, sent, "from {from} to {place}");
            expected[from] += 1;
        }
    }
    // What came from the federation comes by each channel to its member, and no farther.
    for member in &members {
        let counts = member.statistics_when("all has come back", |counts| {
            counts.outgoing.looped_back == counts.incoming.delivered
        });
        assert_eq!(counts.incoming.repeated, 0, "{counts:#?}");
        assert_eq!(counts.incoming.lost, 0, "{counts:#?}");
        assert!(counts.incoming.is_balanced(), "{counts:#?}");
    }
    for consumer in &consumers {
        assert!(
            numbers(consumer).iter().all(|&number| number == WARM),
            "no event came twice"
        );
    }
    // A member that ends is missed.
    let [first, second, third] = members;
    drop(third);
    first.wait_for_news(
        "the third has left",
        |news| matches!(news, FederationNews::Left { name } if name == "third"),
    );
    second.statistics_when("one is left", |counts| counts.members == 1);
}

#[test]
fn events_come_by_subscription_and_once_where_two_overlap() {
    let (from, to) = (Plant::start(), Plant::start());
    let at = endpoint();
    let publisher = Member::start(&from, listening("from", &at));
    let member = Member::start(&to, connecting("to", &at));
    let of_source = to.consumer(Interest::event(1, TYPE));
    let supplier = from.supplier();
    warm_up(&supplier, key(1), &of_source);
    let before = member.statistics().incoming.arrived;
    let other_type = EventKey {
        event_type: TYPE + 1,
        source: 1,
    };
    for number in 0..50 {
        for key in [key(2), other_type, key(1)] {
            supplier.push(&[event(key, number)]).expect("it is sent");
        }
    }
    let is_last = |event: &Event| number(event) == 49;
    while !is_last(&next(&of_source)) {}
    // The events of a source and a type are in one order, so the others would have come.
    let arrived = member.statistics().incoming.arrived - before;
    assert!(arrived >= 50, "{arrived}");
    publisher.statistics_when("all were published", |counts| {
        counts.outgoing.published >= 150
    });
    assert_eq!(member.statistics().incoming.discarded_unwanted, 0);
    // Two subscriptions, of a type and of a source, match the same events.
    let of_type = to.consumer(Interest::event_type(TYPE));
    let any_of_source = to.consumer(Interest::source(1));
    warm_up(&supplier, other_type, &any_of_source);
    warm_up(&supplier, key(2), &of_type);
    let before = member.statistics();
    for number in 100..150 {
        supplier.push(&[event(key(1), number)]).expect("it is sent");
    }
    let mut got = Vec::new();
    while got.last() != Some(&149) {
        got.push(number(&next(&of_source)));
    }
    got.retain(|&number| (100..150).contains(&number));
    assert_eq!(got, (100..150).collect::<Vec<u32>>(), "each once");
    let counts = member.statistics().incoming;
    assert_eq!(counts.repeated, before.incoming.repeated, "{counts:#?}");
    assert_eq!(counts.lost, 0, "{counts:#?}");
}

#[test]
fn lanes_publish_with_their_priority_deadline_and_time() {
    let from = Plant::start();
    let at = endpoint();
    let mut config = listening("from", &at);
    config.deadline = Some(Duration::from_secs(3000));
    config.lanes = vec![
        FederationLane::default(),
        FederationLane {
            priority: Some(90),
            rt_info: Some(0),
            keys: vec![key(0)],
        },
    ];
    let _member = Member::start(&from, config);
    let stranger = Stranger::connect(&at);
    let overheard = stranger.listen("from/*/*");
    let supplier = from.supplier();
    let other = EventKey {
        event_type: TYPE + 1,
        source: 1,
    };
    for (wanted, priority, band) in [
        (key(3), 90, Priority::RealTime),
        (other, -1, Priority::Data),
    ] {
        let text = format!("from/{}/{}", wanted.event_type, wanted.source);
        let sample = rtorb_tests::running::until("it is published", || {
            supplier.push(&[event(wanted, 1)]).expect("it is sent");
            std::thread::sleep(Duration::from_millis(5));
            overheard.find(|sample| sample.key_expr().as_str().ends_with(&text))
        });
        assert_eq!(sample.priority(), band);
        let attachment = sample.attachment().expect("it has a header").to_bytes();
        let header = WrittenHeader::read(&attachment);
        assert_eq!((header.version, header.priority), (1, priority));
        let deadline = Duration::from_nanos(header.deadline_ns);
        assert!(deadline <= Duration::from_secs(3000), "{deadline:?}");
        assert!(deadline > Duration::from_secs(2000), "{deadline:?}");
        let now_ticks = rtorb_os::clock::utc_offset(rtorb_os::clock::monotonic_ns()).latest_ticks
            + rtorb_os::clock::monotonic_ns() / 100;
        let age = Duration::from_nanos((now_ticks - header.sent_ticks) * 100);
        assert!(age < Duration::from_secs(1000), "{age:?}");
        // The payload as the page describes it.
        let payload = sample.payload().to_bytes();
        let order = match payload[..4] {
            [0, 1, 0, 0] => ByteOrder::Little,
            [0, 0, 0, 0] => ByteOrder::Big,
            _ => panic!("{payload:?}"),
        };
        let mut r = Reader::new(&payload[4..], order).with_char_code_set(CharCodeSet::Utf8);
        let got = Event::decode(&mut r).expect("an event");
        assert_eq!(
            (got.header.r#type, got.header.source),
            (wanted.event_type, wanted.source)
        );
        assert_eq!(got.header.ttl, 4);
    }
}

#[test]
fn an_event_whose_deadline_passes_before_it_is_published_is_counted() {
    let plant = Plant::start();
    let mut config = config("alone");
    config.deadline = Some(std::time::Duration::from_micros(1));
    let member = Member::start(&plant, config);
    plant
        .supplier()
        .push(&[event(key(1), 0)])
        .expect("it is sent");
    let counts = member.statistics_when("it came", |counts| counts.outgoing.received == 1);
    assert_eq!(counts.outgoing.discarded_late, 1, "{counts:#?}");
}

#[test]
fn an_event_without_ttl_stays_and_a_large_one_is_counted() {
    let from = Plant::start();
    let mut config = config("alone");
    config.event_bytes_max = 200;
    config.delivery = DeliveryPriority::AsPublished { most: 50 };
    let member = Member::start(&from, config);
    let supplier = from.supplier();
    let mut stays = event(key(1), 0);
    stays.header.ttl = 0;
    let mut large = event(key(1), 1);
    large.data.payload = vec![0; 1000];
    for event in [stays, large, event(key(1), 2)] {
        supplier.push(&[event]).expect("it is sent");
    }
    let counts = member.statistics_when("all three came", |counts| counts.outgoing.received == 3);
    assert_eq!(counts.outgoing.expired, 1);
    assert_eq!(counts.outgoing.discarded_large, 1);
    assert_eq!(counts.outgoing.published, 1);
    assert_eq!(from.consumers(), 1);
    member.federation.stop();
    assert!(member.federation.has_ended());
    rtorb_tests::running::until("it has disconnected", || {
        (from.consumers() == 0).then_some(())
    });
}
