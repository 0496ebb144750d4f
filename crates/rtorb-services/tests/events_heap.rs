//! An event on its way through a warm channel makes no heap call and waits for no lock, dispatched in place or by a lane.

use core::sync::atomic::{AtomicU64, Ordering};
use rtorb::any::Any;
use rtorb::skeleton::{ServedBy, ServerCall};
use rtorb::{DispatchStrategy, Orb, SystemException};
use rtorb_instruments::heap::{CountingAllocator, process_heap_calls};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::process_lock_calls;
use rtorb_services::events::{Channel, ChannelConfig, Dispatching, strategies};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, Dependency, EventChannel, ProxyPushConsumer, SupplierQos,
};
use rtorb_services::stubs::rtec_event::rtec_event_comm::{
    Event, EventData, EventHeader, PushConsumer,
};
use std::sync::Arc;
use std::time::Duration;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator;

/// A consumer that only counts what comes: the memory of values is not what is looked at here.
struct Counter(Arc<AtomicU64>);

impl ServedBy<Counter> for PushConsumerOfOctets {
    fn find_operation(name: &[u8]) -> Option<usize> {
        (name == b"push").then_some(0)
    }

    fn dispatch(
        servant: &Counter,
        _: usize,
        call: &mut ServerCall<'_>,
    ) -> Result<(), SystemException> {
        let events = call.arguments().primitive::<u32>()?;
        servant.0.fetch_add(u64::from(events), Ordering::SeqCst);
        call.reply(|_| Ok(()))
    }
}

/// A reference type of the interface of its own, so that its servant may be another than the generated one's.
#[derive(Clone)]
struct PushConsumerOfOctets(rtorb::ObjectRef);

impl rtorb::Interface for PushConsumerOfOctets {
    type Object = rtorb::ObjectRef;
    const REPOSITORY_ID: &'static str = "IDL:RtecEventComm/PushConsumer:1.0";
    const ANCESTORS: &'static [&'static str] = &[];

    fn unchecked_narrow(object: rtorb::ObjectRef) -> Self {
        Self(object)
    }

    fn as_object(&self) -> &rtorb::ObjectRef {
        &self.0
    }
}

fn event() -> Event {
    Event {
        header: EventHeader {
            r#type: 16,
            source: 1,
            ttl: 1,
            creation_time: 0,
            ec_recv_time: 0,
            ec_send_time: 0,
        },
        data: EventData {
            pad1: 0,
            payload: vec![7; 64],
            any_value: Any::NULL,
        },
    }
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

fn heap_and_waits_of_events(dispatching: Dispatching) -> (u64, u64) {
    let strategies = strategies(DispatchStrategy::ThreadPerConnection);
    let orb = serving(Orb::builder().strategies(strategies));
    let config = ChannelConfig {
        dispatching,
        // The keeper's rounds do not fall into what is counted.
        hang_timeout: Duration::from_secs(3600),
        ping_every: Duration::from_secs(3600),
        ..ChannelConfig::default()
    };
    let channel = Channel::serve(&orb, config).expect("a channel");
    let client = serving(Orb::builder());
    let text = channel.reference().as_object().to_string();
    let reference = client.string_to_object(&text).expect("a reference");
    let reference = EventChannel::unchecked_narrow(reference);

    let count = Arc::new(AtomicU64::new(0));
    let poa = client.root_poa().expect("it listens");
    let counter: PushConsumerOfOctets = poa
        .activate(Counter(Arc::clone(&count)))
        .expect("activated");
    let consumers = reference.for_consumers().expect("it answers");
    let proxy = consumers.expect("an admin").obtain_push_supplier();
    let proxy = proxy.expect("room").expect("a proxy");
    let wants = ConsumerQos {
        dependencies: vec![Dependency {
            event: event(),
            rt_info: 0,
        }],
        is_gateway: false,
    };
    let consumer = PushConsumer::unchecked_narrow(counter.0);
    let connected = proxy.connect_push_consumer(Some(&consumer), &wants);
    connected.expect("it is connected");
    let supplier = connected_supplier(&reference);

    let events = [event()];
    let mut sent = 0;
    let mut push = |times: u64| {
        for _ in 0..times {
            supplier.push(&events).expect("it is sent");
            sent += 1;
            let late_ns = monotonic_ns() + 30_000_000_000;
            while count.load(Ordering::SeqCst) < sent {
                assert!(monotonic_ns() < late_ns, "event {sent} did not come");
                std::thread::yield_now();
            }
        }
    };
    push(200);
    // Those who have counted it may still be about it, and a thread may begin late.
    rtorb_tests::asleep::until_others_sleep();
    let before = process_heap_calls();
    // A thread that another program stops while it has a lock makes others wait. No event needs that: so some batch is without.
    let mut fewest_waits = u64::MAX;
    for _ in 0..BATCHES_MAX {
        let before = process_lock_calls();
        push(1000);
        let waits = process_lock_calls().since(before).contended;
        fewest_waits = fewest_waits.min(waits);
        if fewest_waits == 0 {
            break;
        }
    }
    let heap_calls = process_heap_calls() - before;
    // Their watchdogs would free what they keep of ended waits while the next channel's events are counted.
    channel.destroy();
    for orb in [client, orb] {
        orb.destroy().expect("it ends");
    }
    (heap_calls, fewest_waits)
}

fn connected_supplier(channel: &EventChannel) -> ProxyPushConsumer {
    let suppliers = channel.for_suppliers().expect("it answers");
    let supplier = suppliers.expect("an admin").obtain_push_consumer();
    let supplier = supplier.expect("room").expect("a proxy");
    let publishes = SupplierQos {
        publications: Vec::new(),
        is_gateway: false,
    };
    let connected = supplier.connect_push_supplier(None, &publishes);
    connected.expect("it is connected");
    supplier
}

/// How many batches of events are sent at most, until one waits for no lock.
const BATCHES_MAX: usize = 20;

fn main() {
    rtorb_tests::alone::run(
        "an_event_makes_no_heap_call_and_waits_for_no_lock",
        an_event_makes_no_heap_call_and_waits_for_no_lock,
    );
}

fn an_event_makes_no_heap_call_and_waits_for_no_lock() {
    for dispatching in [
        Dispatching::Priority,
        Dispatching::Reactive,
        Dispatching::Lanes,
    ] {
        let (heap, waits) = heap_and_waits_of_events(dispatching);
        assert_eq!(heap, 0, "{dispatching:?}");
        // A lane and the next event's thread may meet at the consumer.
        if dispatching != Dispatching::Lanes {
            assert_eq!(waits, 0, "{dispatching:?}");
        }
    }
}
