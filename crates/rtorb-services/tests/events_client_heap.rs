//! From a supplier's push to a receiver's next, an event makes no heap call once all are warm: in neither, nor in the channel.

use rtorb::any::Any;
use rtorb::{DispatchStrategy, Orb};
use rtorb_instruments::heap::{CountingAllocator, process_heap_calls};
use rtorb_os::clock::monotonic_ns;
use rtorb_services::events::client::{Arrival, Received, Receiver, Supplier};
use rtorb_services::events::{Channel, ChannelConfig, strategies};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, Dependency, EventChannel, SupplierQos,
};
use rtorb_services::stubs::rtec_event::rtec_event_comm::Event;
use std::time::Duration;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

fn event(payload: usize, any_value: Any) -> Event {
    let mut event = Arrival::default().event;
    (event.header.r#type, event.header.source) = (16, 1);
    event.data.payload = vec![7; payload];
    event.data.any_value = any_value;
    event
}

fn serving(builder: rtorb::OrbBuilder) -> Orb {
    let orb = builder.listen("iiop://127.0.0.1:0");
    let orb = orb
        .best_effort()
        .on_warning(|_| {})
        .build()
        .expect("an ORB");
    orb.root_poa().expect("it listens");
    let own = orb.clone();
    std::thread::spawn(move || own.run().expect("it serves"));
    orb
}

fn main() {
    rtorb_tests::alone::run(
        "an_event_makes_no_heap_call_from_its_supplier_to_its_receiver",
        an_event_makes_no_heap_call_from_its_supplier_to_its_receiver,
    );
}

fn an_event_makes_no_heap_call_from_its_supplier_to_its_receiver() {
    let strategies = strategies(DispatchStrategy::ThreadPerConnection);
    let config = ChannelConfig {
        // The keeper's rounds do not fall into what is counted.
        hang_timeout: Duration::from_secs(3600),
        ping_every: Duration::from_secs(3600),
        ..ChannelConfig::default()
    };
    let orb = serving(Orb::builder().strategies(strategies));
    let channel = Channel::serve(&orb, config).expect("a channel");
    let client = serving(Orb::builder());
    let text = channel.reference().as_object().to_string();
    let reference = client.string_to_object(&text).expect("a reference");
    let reference = EventChannel::unchecked_narrow(reference);
    let everything = Dependency {
        event: Arrival::default().event,
        rt_info: 0,
    };
    let wants = ConsumerQos {
        dependencies: vec![everything],
        is_gateway: false,
    };
    let publishes = SupplierQos {
        publications: Vec::new(),
        is_gateway: false,
    };
    let poa = client.root_poa().expect("it listens");
    let receiver = Receiver::connect(&reference, &poa, &wants, 1000).expect("room");
    let supplier = Supplier::connect(&reference, &publishes).expect("room");

    let sent = [
        [event(0, Any::NULL)],
        [event(100, Any::from_value(&7i32).expect("a long"))],
        [event(5000, Any::from_value(&0.5f64).expect("a double"))],
    ];
    let mut arrival = Arrival::default();
    let mut pass = |times: u32| {
        for _ in 0..times {
            for events in &sent {
                supplier.push(events).expect("it is sent");
                let late_ns = monotonic_ns() + 30_000_000_000;
                assert_eq!(receiver.next(&mut arrival, late_ns), Received::Event);
                assert!(arrival.event == events[0]);
            }
        }
    };
    pass(200);
    // The channel's thread may still count what has come, and a thread may begin late.
    rtorb_tests::asleep::until_others_sleep();
    let before = process_heap_calls();
    pass(500);
    assert_eq!(process_heap_calls() - before, 0);
}
