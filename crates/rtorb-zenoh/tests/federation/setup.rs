//! A channel with a consumer, a supplier and a member of a federation, each with an ORB of its own.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rtorb::any::Any;
use rtorb::{Collocation, DispatchStrategy, Orb};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::Mutex;
use rtorb_services::events::client::{Arrival, Received, Receiver, Supplier, channel_of};
use rtorb_services::events::subscribe::{Interest, Publications};
use rtorb_services::events::{Channel, ChannelConfig, Event, strategies};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::EventChannel;
use rtorb_tests::loopback::own_listener;
use rtorb_tests::running::until;
use rtorb_zenoh::{
    EventKey, Federation, FederationConfig, FederationCongestion, FederationNews,
    FederationStatistics,
};

/// How long tests wait for what should come at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The prefix of all tests: their endpoints keep them apart.
pub(crate) const PREFIX: &str = "test/events";

/// The type of most events.
pub(crate) const TYPE: i32 = 20;

/// An ORB that serves until it is dropped.
pub(crate) struct Serving {
    pub(crate) orb: Orb,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    fn new(orb: Orb) -> Self {
        orb.root_poa().expect("it listens");
        let own = orb.clone();
        let thread = std::thread::spawn(move || own.run().expect("it serves"));
        Self {
            orb,
            thread: Some(thread),
        }
    }

    pub(crate) fn of_a_client() -> Self {
        let builder = Orb::builder()
            .collocation(Collocation::Transport)
            .round_trip_timeout(Some(PATIENCE))
            .best_effort()
            .on_warning(|_| {})
            .listen("iiop://127.0.0.1:0");
        Self::new(builder.build().expect("an ORB"))
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

/// A channel on an ORB of its own, with clients.
pub(crate) struct Plant {
    pub(crate) clients: Serving,
    pub(crate) reference: String,
    channel: Channel,
    _serving: Serving,
}

impl Plant {
    pub(crate) fn start() -> Self {
        // A slow host lets a burst wait: none of it is discarded.
        let config = ChannelConfig {
            queue_events: 10_000,
            queue_bytes: 16 << 20,
            ..ChannelConfig::default()
        };
        let orb = Orb::builder()
            .strategies(strategies(DispatchStrategy::ThreadPerConnection))
            .collocation(Collocation::Transport)
            .listen("iiop://127.0.0.1:0")
            .best_effort()
            .on_warning(|_| {})
            .limits(config.limits(rtorb::Limits::default()))
            .build()
            .expect("an ORB");
        let channel = Channel::serve(&orb, config).expect("a channel");
        Self {
            reference: channel.reference().as_object().to_string(),
            channel,
            _serving: Serving::new(orb),
            clients: Serving::of_a_client(),
        }
    }

    fn for_clients(&self) -> EventChannel {
        channel_of(&self.clients.orb, &self.reference).expect("it is a channel")
    }

    pub(crate) fn consumer(&self, interest: Interest) -> Receiver {
        let poa = self.clients.orb.root_poa().expect("it listens");
        let qos = interest.consumer_qos();
        Receiver::connect(&self.for_clients(), &poa, &qos, 100_000).expect("it is connected")
    }

    pub(crate) fn supplier(&self) -> Supplier {
        let publications = Publications::new().event(0, 0, 0);
        Supplier::connect(&self.for_clients(), &publications.supplier_qos())
            .expect("it is connected")
    }

    /// Ends the channel. Its ORB still serves.
    pub(crate) fn end_channel(&self) {
        self.channel.destroy();
    }

    /// The number of consumers, with members and suppliers of the federation.
    pub(crate) fn consumers(&self) -> usize {
        self.channel.statistics().consumers.len()
    }
}

/// A member, with its news.
pub(crate) struct Member {
    pub(crate) federation: Federation,
    news: Arc<Mutex<Vec<FederationNews>>>,
}

impl Member {
    pub(crate) fn start(plant: &Plant, config: FederationConfig) -> Self {
        Self::start_with(plant, config, |_| {})
    }

    /// `tell` is called on the member's thread for each news.
    pub(crate) fn start_with(
        plant: &Plant,
        config: FederationConfig,
        tell: impl Fn(&FederationNews) + Send + 'static,
    ) -> Self {
        let news: Arc<Mutex<Vec<FederationNews>>> = Arc::default();
        let (orb, reference) = (plant.clients.orb.clone(), plant.reference.clone());
        let find = Box::new(move || channel_of(&orb, &reference));
        let told = Arc::clone(&news);
        let federation = Federation::start(&plant.clients.orb, find, config, move |one| {
            told.lock().push(one.clone());
            tell(one);
        });
        let member = Self {
            federation: federation.expect("it starts"),
            news,
        };
        let is_connected = |news: &FederationNews| *news == FederationNews::Connected;
        member.wait_for_news("it is connected to its channel", is_connected);
        member
    }

    pub(crate) fn statistics(&self) -> FederationStatistics {
        let counts = self.federation.statistics();
        assert!(counts.outgoing.is_balanced(), "{counts:#?}");
        counts
    }

    /// The counts, once they are as they should be.
    pub(crate) fn statistics_when(
        &self,
        what: &str,
        is_so: impl Fn(&FederationStatistics) -> bool,
    ) -> FederationStatistics {
        let late_ns = monotonic_ns() + PATIENCE.as_nanos() as u64;
        loop {
            let counts = self.statistics();
            if is_so(&counts) {
                return counts;
            }
            let news = self.news.lock().clone();
            assert!(monotonic_ns() < late_ns, "{what}: {counts:#?} {news:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn wait_for_news(&self, what: &str, is_it: impl Fn(&FederationNews) -> bool) {
        until(what, || self.news.lock().iter().any(&is_it).then_some(()));
    }

    pub(crate) fn count_news(&self, is_it: impl Fn(&FederationNews) -> bool) -> usize {
        self.news.lock().iter().filter(|news| is_it(news)).count()
    }
}

/// A configuration whose reports come soon, and which discards nothing, however slow the host is.
pub(crate) fn config(name: &str) -> FederationConfig {
    FederationConfig {
        report_every: Duration::from_millis(50),
        congestion: FederationCongestion::Block(PATIENCE),
        queue_events: 100_000,
        queue_bytes: 100 << 20,
        ..FederationConfig::new(PREFIX, name)
    }
}

/// The configuration of a member that listens there.
pub(crate) fn listening(name: &str, endpoint: &str) -> FederationConfig {
    let mut config = config(name);
    config.network.listen = vec![endpoint.to_owned()];
    config
}

/// The configuration of a member that connects there.
pub(crate) fn connecting(name: &str, endpoint: &str) -> FederationConfig {
    let mut config = config(name);
    config.network.connect = vec![endpoint.to_owned()];
    config
}

/// An endpoint of Zenoh at an address of its own.
pub(crate) fn endpoint() -> String {
    let address = own_listener().local_addr().expect("it has an address");
    format!("tcp/{address}")
}

/// An event with its number in its payload.
pub(crate) fn event(key: EventKey, number: u32) -> Event {
    let mut event = Event::new(key.source, key.event_type, Any::NULL);
    event.header.ttl = 5;
    event.data.payload = number.to_be_bytes().to_vec();
    event
}

/// The number in an event's payload.
pub(crate) fn number(event: &Event) -> u32 {
    let bytes = event.data.payload.first_chunk().expect("a number");
    u32::from_be_bytes(*bytes)
}

pub(crate) fn key(source: i32) -> EventKey {
    EventKey {
        event_type: TYPE,
        source,
    }
}

/// The next event that a consumer gets.
pub(crate) fn next(consumer: &Receiver) -> Event {
    let mut arrival = Arrival::default();
    let late_ns = monotonic_ns() + PATIENCE.as_nanos() as u64;
    let received = consumer.next(&mut arrival, late_ns);
    assert_eq!(received, Received::Event);
    arrival.event
}

/// The numbers of the events that a consumer has got and not returned yet.
pub(crate) fn numbers(consumer: &Receiver) -> Vec<u32> {
    let mut arrival = Arrival::default();
    let mut numbers = Vec::new();
    while consumer.next(&mut arrival, 0) == Received::Event {
        numbers.push(number(&arrival.event));
    }
    numbers
}

/// Pushes events that say nothing until one arrives: then the other channel's subscription has come to the publisher. Returns how many.
pub(crate) fn warm_up(supplier: &Supplier, key: EventKey, consumer: &Receiver) -> u64 {
    let mut arrival = Arrival::default();
    let mut pushed = 0;
    until("an event crosses", || {
        supplier.push(&[event(key, WARM)]).expect("it is sent");
        pushed += 1;
        let soon_ns = monotonic_ns() + 20_000_000;
        while consumer.next(&mut arrival, soon_ns) == Received::Event {
            let header = &arrival.event.header;
            if (header.r#type, header.source) == (key.event_type, key.source) {
                return Some(());
            }
        }
        None
    });
    pushed
}

/// The number of an event that says nothing.
pub(crate) const WARM: u32 = u32::MAX;
