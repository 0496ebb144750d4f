//! A channel that is served, and the two kinds of its clients, each with an ORB of its own.

use core::sync::atomic::{AtomicBool, Ordering};
use rtorb::any::Any;
use rtorb::{Collocation, DispatchStrategy, Orb, SystemException};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::Mutex;
use rtorb_services::events::statistics::ConsumerStatistics;
use rtorb_services::events::{Channel, ChannelConfig, Statistics, strategies};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, Dependency, EventChannel, ProxyPushConsumer, ProxyPushSupplier, SupplierQos,
};
use rtorb_services::stubs::rtec_event::rtec_event_comm::{
    Event, EventData, EventHeader, PushConsumer, PushConsumerServant,
};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// An ORB that serves until it is dropped.
pub(crate) struct Serving {
    pub(crate) orb: Orb,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    pub(crate) fn new(orb: Orb) -> Self {
        orb.root_poa().expect("it listens");
        let own = orb.clone();
        let thread = std::thread::spawn(move || own.run().expect("it serves"));
        Self {
            orb,
            thread: Some(thread),
        }
    }

    pub(crate) fn of_a_client() -> Self {
        let orb = Orb::builder()
            .collocation(Collocation::Transport)
            .listen("iiop://127.0.0.1:0");
        Self::new(orb.build().expect("an ORB"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.orb.shutdown();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

/// A channel on an ORB of its own.
pub(crate) struct Served {
    pub(crate) channel: Channel,
    pub(crate) serving: Serving,
}

/// An ORB for a channel.
pub(crate) fn orb_for(config: &ChannelConfig) -> Orb {
    Orb::builder()
        .strategies(strategies(DispatchStrategy::ThreadPerConnection))
        .collocation(Collocation::Transport)
        .listen("iiop://127.0.0.1:0")
        .best_effort()
        .on_warning(|_| {})
        .limits(config.limits(rtorb::Limits::default()))
        .build()
        .expect("an ORB")
}

pub(crate) fn serve(config: ChannelConfig) -> Served {
    let orb = orb_for(&config);
    let channel = Channel::serve(&orb, config).expect("a channel");
    Served {
        channel,
        serving: Serving::new(orb),
    }
}

impl Served {
    /// The channel as a client with that ORB knows it.
    pub(crate) fn for_client(&self, orb: &Orb) -> EventChannel {
        let text = self.channel.reference().as_object().to_string();
        EventChannel::unchecked_narrow(orb.string_to_object(&text).expect("a reference"))
    }

    /// The counts, once they are as they should be.
    pub(crate) fn statistics_when(
        &self,
        what: &str,
        is_so: impl Fn(&Statistics) -> bool,
    ) -> Statistics {
        let late_ns = monotonic_ns() + PATIENCE.as_nanos() as u64;
        loop {
            let statistics = self.channel.statistics();
            let all = statistics.consumers.iter().map(|it| it.events);
            for counts in all.chain([statistics.departed.events]) {
                assert!(counts.is_balanced(), "{counts:?}");
            }
            if is_so(&statistics) {
                return statistics;
            }
            assert!(monotonic_ns() < late_ns, "{what}: {statistics:#?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The counts of the consumer of that number among those of now, when nothing waits for it.
    pub(crate) fn quiet(&self, index: usize) -> ConsumerStatistics {
        let statistics = self.statistics_when("nothing waits", |statistics| {
            statistics.undistributed == 0 && statistics.consumers[index].events.waiting == 0
        });
        statistics.consumers[index].clone()
    }
}

/// How long tests wait for what should come at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// What a consumer has got, in order.
#[derive(Default)]
pub(crate) struct Got {
    pub(crate) events: Mutex<Vec<Event>>,
    pub(crate) was_told_goodbye: AtomicBool,
    /// While this is held, the consumer takes nothing.
    pub(crate) gate: Mutex<()>,
}

impl PushConsumerServant for Got {
    fn push(&self, events: &[Event]) -> Result<(), SystemException> {
        let _open = self.gate.lock();
        self.events.lock().extend_from_slice(events);
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        self.was_told_goodbye.store(true, Ordering::SeqCst);
        Ok(())
    }
}

impl Got {
    /// The events, once there are so many.
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Event> {
        let late_ns = monotonic_ns() + PATIENCE.as_nanos() as u64;
        loop {
            let events = self.events.lock();
            if events.len() >= count {
                return events.clone();
            }
            let got = events.len();
            drop(events);
            assert!(monotonic_ns() < late_ns, "{got} of {count} events came");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A connected consumer.
pub(crate) struct Consumer {
    pub(crate) got: Arc<Got>,
    pub(crate) proxy: ProxyPushSupplier,
    pub(crate) reference: PushConsumer,
    pub(crate) serving: Serving,
}

impl Consumer {
    /// One that wants these types and sources, and waits until its connection is open.
    pub(crate) fn connect(served: &Served, keys: &[(i32, i32)], rt_info: i32) -> Self {
        let before = served.channel.statistics().consumers.len();
        let made = Self::connect_with(served, Serving::of_a_client(), subscription(keys, rt_info));
        served.statistics_when("the connection is opened", |statistics| {
            let is_open = |it: &ConsumerStatistics| {
                it.connection == rtorb_services::events::statistics::ConnectionState::Open
            };
            statistics.consumers.len() > before && statistics.consumers.iter().all(is_open)
        });
        made
    }

    pub(crate) fn connect_with(served: &Served, serving: Serving, qos: ConsumerQos) -> Self {
        let got = Arc::new(Got::default());
        let poa = serving.orb.root_poa().expect("it listens");
        let reference: PushConsumer = poa.activate(Arc::clone(&got)).expect("activated");
        let channel = served.for_client(&serving.orb);
        let admin = channel
            .for_consumers()
            .expect("it answers")
            .expect("an admin");
        let proxy = admin
            .obtain_push_supplier()
            .expect("room")
            .expect("a proxy");
        let connected = proxy.connect_push_consumer(Some(&reference), &qos);
        connected.expect("it is connected");
        Self {
            got,
            proxy,
            reference,
            serving,
        }
    }
}

/// A connected supplier.
pub(crate) struct Supplier {
    pub(crate) proxy: ProxyPushConsumer,
    pub(crate) _orb: Orb,
}

impl Supplier {
    pub(crate) fn connect(served: &Served) -> Self {
        Self::connect_with(served, Orb::builder().build().expect("an ORB"))
    }

    pub(crate) fn connect_with(served: &Served, orb: Orb) -> Self {
        let channel = served.for_client(&orb);
        let admin = channel
            .for_suppliers()
            .expect("it answers")
            .expect("an admin");
        let proxy = admin
            .obtain_push_consumer()
            .expect("room")
            .expect("a proxy");
        let qos = SupplierQos {
            publications: Vec::new(),
            is_gateway: false,
        };
        proxy
            .connect_push_supplier(None, &qos)
            .expect("it is connected");
        Self { proxy, _orb: orb }
    }

    pub(crate) fn push(&self, event: Event) {
        self.proxy.push(&[event]).expect("it is sent");
    }
}

pub(crate) fn event(event_type: i32, source: i32, number: u32) -> Event {
    event_with(event_type, source, number, Any::NULL)
}

/// An event with its number in its payload.
pub(crate) fn event_with(event_type: i32, source: i32, number: u32, any_value: Any) -> Event {
    Event {
        header: EventHeader {
            r#type: event_type,
            source,
            ttl: 1,
            creation_time: 0,
            ec_recv_time: 0,
            ec_send_time: 0,
        },
        data: EventData {
            pad1: 0,
            payload: number.to_be_bytes().to_vec(),
            any_value,
        },
    }
}

/// The number in an event's payload.
pub(crate) fn number(event: &Event) -> u32 {
    let octets = event.data.payload.first_chunk().expect("a number");
    u32::from_be_bytes(*octets)
}

/// Any of these types and sources.
pub(crate) fn subscription(keys: &[(i32, i32)], rt_info: i32) -> ConsumerQos {
    ConsumerQos {
        dependencies: keys
            .iter()
            .map(|&(event_type, source)| Dependency {
                event: event(event_type, source, 0),
                rt_info,
            })
            .collect(),
        is_gateway: false,
    }
}
