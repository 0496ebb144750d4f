//! Consumers that clog, die, are suspended or go; misuse; the end of a channel. None of it costs others an event.

use super::setup::{
    Consumer, Got, PATIENCE, Served, Serving, Supplier, event, number, orb_for, serve, subscription,
};
use core::sync::atomic::{AtomicU64, Ordering};
use rtorb::rt::Priority;
use rtorb::{ExceptionKind, ObjectKeyError, Orb};
use rtorb_os::sync::Mutex;
use rtorb_services::events::statistics::ConnectionState;
use rtorb_services::events::{
    Channel, ChannelConfig, ChannelError, EventFlow, FlowAdmission, PrioritySource,
    RtInfoIsPriority, Urgency, UrgencyError, client,
};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{
    ProxyPushConsumerConnectPushSupplierError, ProxyPushSupplierConnectPushConsumerError,
    SupplierQos,
};
use rtorb_services::stubs::rtec_event::rtec_event_comm::PushConsumer;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_consumer_that_takes_nothing_is_dropped_and_costs_others_nothing() {
    let served = serve(ChannelConfig {
        // A busy host fills the queue of the one that hangs meanwhile.
        hang_timeout: Duration::from_secs(2),
        ping_timeout: Duration::from_millis(100),
        ..ChannelConfig::default()
    });
    let good = Consumer::connect(&served, &[(0, 0)], 0);
    let stuck = Consumer::connect(&served, &[(0, 0)], 0);
    let supplier = Supplier::connect(&served);
    let shut = stuck.got.gate.lock();
    let mut large = event(16, 1, 0);
    large.data.payload.resize(8000, 7);
    let mut sent = 0;
    // As much as sockets hold, and more.
    while served.channel.statistics().departed.hung == 0 {
        assert!(sent < 100_000, "{:#?}", served.channel.statistics());
        large.data.payload[..4].copy_from_slice(&u32::to_be_bytes(sent));
        supplier.push(large.clone());
        sent += 1;
        good.got.wait_for(sent as usize);
    }
    drop(shut);
    let numbers: Vec<_> = good
        .got
        .wait_for(sent as usize)
        .iter()
        .map(number)
        .collect();
    assert_eq!(numbers, (0..sent).collect::<Vec<_>>());
    // The channel counts an event behind the sending.
    let statistics = served.statistics_when("one is left, which has got all", |it| {
        it.consumers.len() == 1 && it.consumers[0].events.waiting == 0
    });
    assert_eq!(statistics.consumers[0].events.delivered, u64::from(sent));
    let departed = statistics.departed.events;
    // What came once it was dropped is not its own any more.
    assert!(departed.received <= u64::from(sent), "{departed:?}");
    assert!(
        departed.discarded.full > 0 && departed.discarded.gone > 0,
        "{departed:?}"
    );
}

#[test]
fn a_consumer_that_dies_is_found_and_costs_others_nothing() {
    let served = serve(ChannelConfig {
        ping_every: Duration::from_millis(50),
        hang_timeout: Duration::from_millis(500),
        ..ChannelConfig::default()
    });
    let good = Consumer::connect(&served, &[(0, 0)], 0);
    let supplier = Supplier::connect(&served);
    // One dies while events come, one while none does.
    for has_events in [true, false] {
        let dying = Consumer::connect(&served, &[(0, 0)], 0);
        let before = good.got.events.lock().len();
        drop(dying);
        if has_events {
            for count in 0..500 {
                supplier.push(event(16, 1, count));
            }
        }
        served.statistics_when("it is found", |it| it.consumers.len() == 1);
        good.got.wait_for(before + if has_events { 500 } else { 0 });
    }
    let statistics = served.statistics_when("both are gone", |it| it.departed.dead == 2);
    assert_eq!(statistics.consumers[0].events.discarded.all(), 0);
}

#[test]
fn suspended_means_nothing_comes_and_what_came_meanwhile_is_counted() {
    let served = serve(ChannelConfig::default());
    let consumer = Consumer::connect(&served, &[(0, 0)], 0);
    let supplier = Supplier::connect(&served);
    supplier.push(event(16, 1, 1));
    consumer.got.wait_for(1);
    consumer.proxy.suspend_connection().expect("it answers");
    for count in 2..=5 {
        supplier.push(event(16, 1, count));
    }
    served.statistics_when("they came", |it| {
        it.consumers[0].events.discarded.suspended == 4
    });
    consumer.proxy.resume_connection().expect("it answers");
    supplier.push(event(16, 1, 6));
    let numbers: Vec<_> = consumer.got.wait_for(2).iter().map(number).collect();
    assert_eq!(numbers, [1, 6]);
    assert_eq!(served.quiet(0).events.discarded.suspended, 4);
}

#[test]
fn who_disconnects_is_gone_and_its_proxy_with_it() {
    let served = serve(ChannelConfig::default());
    let consumer = Consumer::connect(&served, &[(0, 0)], 0);
    let supplier = Supplier::connect(&served);
    supplier.push(event(16, 1, 1));
    consumer.got.wait_for(1);
    // The channel counts it behind the sending.
    served.quiet(0);
    consumer
        .proxy
        .disconnect_push_supplier()
        .expect("it answers");
    let gone = consumer.proxy.suspend_connection().expect_err("it is gone");
    assert_eq!(gone.kind, ExceptionKind::ObjectNotExist);
    supplier
        .proxy
        .disconnect_push_consumer()
        .expect("it answers");
    let statistics = served.channel.statistics();
    assert_eq!((statistics.consumers.len(), statistics.suppliers), (0, 0));
    assert_eq!(statistics.departed.disconnected, 1);
    assert_eq!(statistics.departed.events.delivered, 1);
}

#[test]
fn a_proxy_is_one_consumers_and_no_consumer_is_nil() {
    let served = serve(ChannelConfig::default());
    let consumer = Consumer::connect(&served, &[(0, 0)], 0);
    let other = Consumer::connect(&served, &[(0, 0)], 0);
    let qos = subscription(&[(0, 0)], 0);
    let twice = consumer
        .proxy
        .connect_push_consumer(Some(&other.reference), &qos);
    assert!(matches!(
        twice,
        Err(ProxyPushSupplierConnectPushConsumerError::AlreadyConnected(
            _
        ))
    ));
    let supplier = Supplier::connect(&served);
    let none = SupplierQos {
        publications: Vec::new(),
        is_gateway: false,
    };
    assert!(matches!(
        supplier.proxy.connect_push_supplier(None, &none),
        Err(ProxyPushConsumerConnectPushSupplierError::AlreadyConnected(
            _
        ))
    ));
    let channel = served.for_client(&consumer.serving.orb);
    let admin = channel
        .for_consumers()
        .expect("it answers")
        .expect("an admin");
    let refuses = |consumer, qos| {
        let proxy = admin
            .obtain_push_supplier()
            .expect("room")
            .expect("a proxy");
        match proxy.connect_push_consumer(consumer, qos) {
            Err(ProxyPushSupplierConnectPushConsumerError::System(exception)) => exception.kind,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refuses(None, &qos), ExceptionKind::BadParam);
    let unknown = subscription(&[(0, 0)], -1);
    assert_eq!(
        refuses(Some(&consumer.reference), &unknown),
        ExceptionKind::BadParam
    );
    let nothing = subscription(&[], 0);
    let proxy = admin
        .obtain_push_supplier()
        .expect("room")
        .expect("a proxy");
    assert!(matches!(
        proxy.connect_push_consumer(Some(&consumer.reference), &nothing),
        Err(ProxyPushSupplierConnectPushConsumerError::TypeError(_))
    ));
}

#[test]
fn there_are_no_more_of_them_than_was_chosen() {
    let served = serve(ChannelConfig {
        consumers_max: 2,
        suppliers_max: 1,
        ..ChannelConfig::default()
    });
    let orb = Orb::builder().build().expect("an ORB");
    let channel = served.for_client(&orb);
    let consumers = channel
        .for_consumers()
        .expect("it answers")
        .expect("an admin");
    let suppliers = channel
        .for_suppliers()
        .expect("it answers")
        .expect("an admin");
    for _ in 0..2 {
        consumers.obtain_push_supplier().expect("room");
    }
    suppliers.obtain_push_consumer().expect("room");
    let full = consumers.obtain_push_supplier().expect_err("there are two");
    assert_eq!(full.kind, ExceptionKind::NoResources);
    let full = suppliers.obtain_push_consumer().expect_err("there is one");
    assert_eq!(full.kind, ExceptionKind::NoResources);
}

#[test]
fn a_proxy_to_which_nobody_connects_is_given_to_others() {
    let served = serve(ChannelConfig {
        consumers_max: 1,
        connect_within: Duration::from_millis(200),
        ping_every: Duration::from_millis(100),
        ..ChannelConfig::default()
    });
    let orb = Orb::builder().build().expect("an ORB");
    let consumers = served.for_client(&orb).for_consumers();
    let consumers = consumers.expect("it answers").expect("an admin");
    consumers.obtain_push_supplier().expect("room");
    let made = served.statistics_when("a proxy is free", |_| {
        consumers.obtain_push_supplier().is_ok()
    });
    assert_eq!(made.departed.all(), 0);
}

#[test]
fn an_event_that_is_too_large_or_nobodys_is_refused_and_counted() {
    let served = serve(ChannelConfig {
        event_bytes_max: 64 + 64,
        ..ChannelConfig::default()
    });
    let consumer = Consumer::connect(&served, &[(0, 0)], 0);
    let supplier = Supplier::connect(&served);
    let mut large = event(16, 1, 1);
    large.data.payload.resize(100, 1);
    supplier.push(large);
    supplier.push(event(16, 1, 2));
    assert_eq!(number(&consumer.got.wait_for(1)[0]), 2);
    let orb = Orb::builder().build().expect("an ORB");
    let admin = served.for_client(&orb).for_suppliers();
    let admin = admin.expect("it answers").expect("an admin");
    let unconnected = admin
        .obtain_push_consumer()
        .expect("room")
        .expect("a proxy");
    unconnected.push(&[event(16, 1, 3)]).expect("it is sent");
    let statistics = served.statistics_when("it came", |it| it.refused.not_connected == 1);
    assert_eq!((statistics.received, statistics.refused.too_large), (3, 1));
    // It says that more events come than its bytes can hold.
    let wrong = unconnected
        .as_object()
        .invoke_oneway("push", |w| w.primitive(u32::MAX));
    wrong.expect("it is sent");
    let statistics = served.statistics_when("it came", |it| it.refused.malformed == 1);
    assert_eq!(statistics.received, 3);
}

/// A channel that has the time to tell its clients on a busy host that it ends.
fn with_long_goodbyes() -> ChannelConfig {
    ChannelConfig {
        goodbye_timeout: PATIENCE,
        ..ChannelConfig::default()
    }
}

#[test]
fn everybody_is_told_when_the_channel_ends() {
    let served = serve(with_long_goodbyes());
    let consumer = Consumer::connect(&served, &[(0, 0)], 0);
    let channel = served.for_client(&consumer.serving.orb);
    channel.destroy().expect("it answers");
    served.channel.destroy();
    assert!(served.channel.is_destroyed());
    assert!(consumer.got.was_told_goodbye.load(Ordering::SeqCst));
    let gone = channel.for_consumers().expect_err("it is gone");
    assert_eq!(gone.kind, ExceptionKind::ObjectNotExist);
}

#[test]
fn a_supplier_with_an_object_learns_that_the_channel_has_ended() {
    let served = serve(with_long_goodbyes());
    let serving = Serving::of_a_client();
    let channel = served.for_client(&serving.orb);
    let poa = serving.orb.root_poa().expect("it listens");
    let supplier = client::Supplier::connect_served(&channel, &poa, &SupplierQos::default());
    let supplier = supplier.expect("it is connected");
    supplier.push(&[event(16, 1, 1)]).expect("it is sent");
    supplier.arrived().expect("it has come");
    assert!(!supplier.was_disconnected());
    served.channel.destroy();
    assert!(supplier.was_disconnected());
    let gone = supplier.arrived().expect_err("it is gone");
    assert_eq!(gone.kind, ExceptionKind::ObjectNotExist);
}

#[test]
fn a_consumer_that_cannot_be_reached_is_dropped() {
    let served = serve(ChannelConfig::default());
    let dead = {
        let gone = Serving::of_a_client();
        let text = Consumer::connect_with(&served, gone, subscription(&[(16, 0)], 0));
        text.proxy.disconnect_push_supplier().expect("it answers");
        text.reference.as_object().to_string()
    };
    let orb = Orb::builder().build().expect("an ORB");
    let dead = orb.string_to_object(&dead).expect("a reference");
    let admin = served.for_client(&orb).for_consumers();
    let admin = admin.expect("it answers").expect("an admin");
    let proxy = admin
        .obtain_push_supplier()
        .expect("room")
        .expect("a proxy");
    let dead = PushConsumer::unchecked_narrow(dead);
    let connected = proxy.connect_push_consumer(Some(&dead), &subscription(&[(16, 0)], 0));
    connected.expect("nobody has asked it yet");
    served.statistics_when("it is dropped", |it| it.departed.dead == 1);
}

#[test]
fn a_channel_is_found_by_its_key() {
    let served = serve(ChannelConfig::default());
    let consumer = Consumer::connect(&served, &[(0, 0)], 0);
    let endpoints = served.serving.orb.endpoints();
    let text = endpoints[0]
        .to_string()
        .replace("iiop://", "corbaloc:iiop:")
        + "/EventService";
    let object = consumer.serving.orb.string_to_object(&text).expect("a URL");
    assert!(
        object
            .is_a("IDL:RtecEventChannelAdmin/EventChannel:1.0")
            .expect("it answers")
    );
    let connection = served.channel.statistics().consumers[0].connection;
    assert_eq!(connection, ConnectionState::Open);
}

#[test]
fn an_orb_that_cannot_do_it_is_refused_with_what_is_right() {
    let orb = Orb::builder().build().expect("an ORB");
    let refused = Channel::serve(&orb, ChannelConfig::default()).map(drop);
    assert!(
        matches!(refused, Err(ChannelError::Strategies { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_channel_whose_key_is_taken_leaves_the_other_object_and_can_be_served_later() {
    let config = ChannelConfig::default();
    let serving = Serving::new(orb_for(&config));
    let orb = &serving.orb;
    let poa = orb.root_poa().expect("it listens");
    let other: PushConsumer = poa.activate(Arc::new(Got::default())).expect("activated");
    let bound = orb.bind_object_key(&config.key, other.as_object());
    bound.expect("the key is free");
    let refused = Channel::serve(orb, config.clone()).map(drop);
    assert_eq!(
        refused,
        Err(ChannelError::Key(ObjectKeyError::Taken)),
        "the key is another object's"
    );
    assert!(orb.unbind_object_key(&config.key), "the key was unbound");
    let served = Channel::serve(orb, config.clone()).expect("the key is free");
    served.destroy();
    assert!(!orb.unbind_object_key(&config.key), "it frees its key");
}

#[test]
fn real_time_that_the_host_refuses_is_an_error() {
    use rtorb::DispatchStrategy::ThreadPerConnection;
    let urgent = Priority::new(99).expect("a priority");
    let orb = Orb::builder()
        .strategies(rtorb_services::events::strategies(ThreadPerConnection))
        .priority_mapping(TimeSharing)
        .build()
        .expect("an ORB");
    let config = ChannelConfig {
        lanes: vec![urgent],
        ..ChannelConfig::default()
    };
    let refused = Channel::serve(&orb, config).map(drop);
    let Err(ChannelError::Thread {
        thread,
        priority,
        is_mapped,
        ..
    }) = refused
    else {
        panic!("{refused:?}");
    };
    assert_eq!((thread, priority, is_mapped), ("lane", urgent, false));
}

/// A host with time sharing alone.
#[derive(Debug)]
struct TimeSharing;

impl rtorb::rt::PriorityMapping for TimeSharing {
    fn to_native(&self, priority: Priority) -> Option<u8> {
        (priority == Priority::MIN).then_some(0)
    }

    fn to_corba(&self, native: u8) -> Option<Priority> {
        (native == 0).then_some(Priority::MIN)
    }
}

/// Decides on clients only while nobody holds the gate.
#[derive(Debug, Default)]
struct SlowAdmission {
    asked: AtomicU64,
    gate: Mutex<()>,
}

impl PrioritySource for SlowAdmission {
    fn urgency(&self, rt_info: i32) -> Result<Urgency, UrgencyError> {
        RtInfoIsPriority.urgency(rt_info)
    }

    fn admission(&self) -> Option<&dyn FlowAdmission> {
        Some(self)
    }
}

impl FlowAdmission for SlowAdmission {
    fn admit(&self, _channel: &str, _flows: &[EventFlow]) -> Result<(), String> {
        self.asked.fetch_add(1, Ordering::AcqRel);
        let _open = self.gate.lock();
        Ok(())
    }
}

#[test]
fn a_supplier_that_is_connected_after_its_timeout_does_not_stay() {
    let config = ChannelConfig::default();
    let orb = orb_for(&config);
    let admission = Arc::new(SlowAdmission::default());
    let source: Arc<dyn PrioritySource> = Arc::<SlowAdmission>::clone(&admission);
    let served = Served {
        channel: Channel::serve_with(&orb, config, source).expect("a channel"),
        serving: Serving::new(orb),
    };
    let own = Orb::builder().build().expect("an ORB");
    let channel = served.for_client(&own);
    let shut = admission.gate.lock();
    let is_asked = || admission.asked.load(Ordering::Acquire) > 0;
    // A busy host may need more than one attempt until the channel is asked.
    for _ in 0..100 {
        let connect = || client::Supplier::connect(&channel, &SupplierQos::default());
        let late = rtorb::with_deadline(Duration::from_millis(200), connect);
        late.expect_err("the channel does not decide");
        if is_asked() {
            break;
        }
    }
    assert!(is_asked(), "the channel connects nobody");
    drop(shut);
    // The channel connects it now, and has been told that nobody uses it.
    served.statistics_when("the supplier is gone", |it| it.suppliers == 0);
}
