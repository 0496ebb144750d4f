//! The time of events through a federation beside a gateway, and of an urgent lane beside a flood of the federation.
//!
//! `cargo run --release -p rtorb-zenoh --features tests --example federation-latency [EVENTS]`. All is in one process, over TCP on loopback.
//! Threads are real-time where the host permits it, but for those of Zenoh.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, ensure};
use rtorb::any::Any;
use rtorb::rt::Priority;
use rtorb::{Collocation, DispatchStrategy, Orb};
use rtorb_os::clock::{monotonic_ns, sleep_until};
use rtorb_services::events::client::{Arrival, Received, Receiver, Supplier, channel_of};
use rtorb_services::events::gateway::{Ends, Gateway, GatewayConfig};
use rtorb_services::events::subscribe::{Interest, Publications};
use rtorb_services::events::{Channel, ChannelConfig, Event, strategies};
use rtorb_zenoh::{Federation, FederationConfig};

fn main() -> anyhow::Result<()> {
    let count = match std::env::args().nth(1) {
        Some(count) => count
            .parse()
            .context("usage: federation-latency [EVENTS]")?,
        None => 10_000,
    };
    println!("{count} events at 1,000 a second each, times from push to arrival");
    through_a_gateway(count)?;
    let flood = Flood::start()?;
    show(
        "federation",
        &mut times(&flood.from, &flood.to, count, None)?,
    );
    let urgent = Site::start(vec![URGENT])?;
    let mut quiet = times(&urgent, &urgent, count, Some(URGENT))?;
    show("urgent lane, quiet", &mut quiet);
    let is_over = Arc::new(AtomicBool::new(false));
    let flooding = flood.begin(&is_over)?;
    let mut beside = times(&urgent, &urgent, count, Some(URGENT))?;
    is_over.store(true, Ordering::Relaxed);
    let pushed = flooding
        .join()
        .map_err(|_| anyhow::anyhow!("it panicked"))??;
    show("urgent lane beside the flood", &mut beside);
    println!("the flood: {pushed} events pushed");
    println!(
        "its publisher: {:?}",
        flood.members[0].statistics().outgoing
    );
    println!("its receiver: {:?}", flood.members[1].statistics().incoming);
    Ok(())
}

/// A channel, and an ORB for its clients.
struct Site {
    clients: Orb,
    reference: String,
    channel: Channel,
}

impl Site {
    fn start(lanes: Vec<i16>) -> anyhow::Result<Self> {
        let mut config = ChannelConfig::default();
        if !lanes.is_empty() {
            config.lanes = lanes
                .into_iter()
                .map(Priority::new)
                .collect::<Result<_, _>>()?;
        }
        let orb = Orb::builder()
            .strategies(strategies(DispatchStrategy::ThreadPerConnection))
            .collocation(Collocation::Transport)
            .listen("iiop://127.0.0.1:0")
            .best_effort()
            .on_warning(|warning| println!("warning: {warning}"))
            .limits(config.limits(rtorb::Limits::default()))
            .build()?;
        let channel = Channel::serve(&orb, config)?;
        serve(&orb)?;
        let clients = Orb::builder()
            .collocation(Collocation::Transport)
            .round_trip_timeout(Some(Duration::from_secs(10)))
            .best_effort()
            .on_warning(|_| {})
            .listen("iiop://127.0.0.1:0")
            .build()?;
        serve(&clients)?;
        let reference = channel.reference().as_object().to_string();
        Ok(Self {
            clients,
            reference,
            channel,
        })
    }

    fn supplier(&self) -> anyhow::Result<Supplier> {
        let channel = channel_of(&self.clients, &self.reference)?;
        let publications = Publications::new().event(0, 0, 0);
        Ok(Supplier::connect(&channel, &publications.supplier_qos())?)
    }

    fn consumer(&self, interest: Interest) -> anyhow::Result<Receiver> {
        let channel = channel_of(&self.clients, &self.reference)?;
        let poa = self.clients.root_poa()?;
        Ok(Receiver::connect(
            &channel,
            &poa,
            &interest.consumer_qos(),
            100_000,
        )?)
    }

    fn find(&self) -> rtorb_services::events::gateway::Find {
        let (orb, reference) = (self.clients.clone(), self.reference.clone());
        Box::new(move || channel_of(&orb, &reference))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.channel.destroy();
        self.clients.shutdown();
    }
}

fn serve(orb: &Orb) -> anyhow::Result<()> {
    orb.root_poa()?;
    let orb = orb.clone();
    std::thread::spawn(move || orb.run());
    Ok(())
}

fn through_a_gateway(count: usize) -> anyhow::Result<()> {
    let (from, to) = (Site::start(Vec::new())?, Site::start(Vec::new())?);
    let ends = Ends {
        from: from.find(),
        to: to.find(),
    };
    let gateway = Gateway::start(&from.clients, ends, GatewayConfig::default(), |_| {})?;
    show("gateway", &mut times(&from, &to, count, None)?);
    gateway.stop();
    Ok(())
}

/// Two channels that a federation joins.
struct Flood {
    from: Site,
    to: Site,
    members: [Federation; 2],
}

impl Flood {
    fn start() -> anyhow::Result<Self> {
        let (from, to) = (Site::start(Vec::new())?, Site::start(Vec::new())?);
        let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let endpoint = format!("tcp/{address}");
        let mut listening = FederationConfig::new("latency", "from");
        listening.network.listen = vec![endpoint.clone()];
        let mut connecting = FederationConfig::new("latency", "to");
        connecting.network.connect = vec![endpoint];
        let members = [
            Federation::start(&from.clients, from.find(), listening, |_| {})?,
            Federation::start(&to.clients, to.find(), connecting, |_| {})?,
        ];
        Ok(Self { from, to, members })
    }

    /// Pushes as fast as it can until it is over, and returns how many events that were.
    fn begin(
        &self,
        is_over: &Arc<AtomicBool>,
    ) -> anyhow::Result<std::thread::JoinHandle<anyhow::Result<u64>>> {
        let supplier = self.from.supplier()?;
        let consumer = self.to.consumer(Interest::event_type(TYPE))?;
        let is_over = Arc::clone(is_over);
        Ok(std::thread::spawn(move || {
            let mut arrival = Arrival::default();
            let mut pushed = 0;
            while !is_over.load(Ordering::Relaxed) {
                supplier.push(&[event()])?;
                pushed += 1;
                while consumer.next(&mut arrival, 0) == Received::Event {}
            }
            Ok(pushed)
        }))
    }
}

/// The times of events from one channel to another, in nanoseconds.
fn times(from: &Site, to: &Site, count: usize, urgent: Option<i16>) -> anyhow::Result<Vec<u64>> {
    let interest = Interest::event_type(TYPE).rt_info(urgent.unwrap_or(0).into());
    let consumer = to.consumer(interest)?;
    let supplier = from.supplier()?;
    let mut arrival = Arrival::default();
    // Until the subscription has come to the other channel.
    let late_ns = monotonic_ns() + 60_000_000_000;
    loop {
        supplier.push(&[event()])?;
        if consumer.next(&mut arrival, monotonic_ns() + 20_000_000) == Received::Event {
            break;
        }
        ensure!(monotonic_ns() < late_ns, "no event crosses in 60 s");
    }
    while consumer.next(&mut arrival, monotonic_ns() + 200_000_000) == Received::Event {}
    let orb = from.clients.clone();
    let pushing = std::thread::spawn(move || -> anyhow::Result<()> {
        if let Some(priority) = urgent {
            orb.rt_current()
                .set_the_priority(Priority::new(priority)?)?;
        }
        let begin_ns = monotonic_ns();
        for index in 0..count as u64 {
            sleep_until(begin_ns + index * PERIOD_NS);
            supplier.push(&[event()])?;
        }
        supplier.arrived()?;
        Ok(())
    });
    let mut times = Vec::with_capacity(count);
    while times.len() < count {
        let received = consumer.next(&mut arrival, monotonic_ns() + 2_000_000_000);
        if received != Received::Event {
            break;
        }
        let sent_ns = arrival.event.header.creation_time * 100;
        times.push(arrival.arrived_ns.saturating_sub(sent_ns));
    }
    pushing
        .join()
        .map_err(|_| anyhow::anyhow!("it panicked"))??;
    ensure!(!times.is_empty(), "no event came");
    Ok(times)
}

fn event() -> Event {
    let mut event = Event::new(1, TYPE, Any::NULL);
    event.header.creation_time = monotonic_ns() / 100;
    event.data.payload = vec![0; 64];
    event
}

fn show(what: &str, times: &mut [u64]) {
    times.sort_unstable();
    let at = |per_mille: usize| times[(times.len() - 1) * per_mille / 1000] as f64 / 1000.0;
    println!(
        "{what}: {} events, p50 {:.1} us, p99 {:.1} us, max {:.1} us",
        times.len(),
        at(500),
        at(990),
        at(1000)
    );
}

const TYPE: i32 = 20;
const URGENT: i16 = 80;
const PERIOD_NS: u64 = 1_000_000;
