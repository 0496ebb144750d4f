//! The shared state of a plain channel, and its thread: it connects to the channel, notifies clients and pings them.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rtorb::codegen::ServedBy;
use rtorb::exception::local;
use rtorb::{DispatchStrategy, ObjectRef, Poa, PoaError, SystemException};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex, MutexGuard};

use super::config::{PlainConfig, PlainStatistics};
use super::consumer::Consumer;
use super::counts::Counts;
use super::value;
use crate::events::client::{ConnectError, connect_consumer, connect_supplier, is_there};
use crate::events::simple_subscription::SimpleSubscription;
use crate::events::subscribe::Publications;
use crate::stubs::cos_event::cos_event_channel_admin::{ConsumerAdmin, SupplierAdmin};
use crate::stubs::cos_event::cos_event_comm as plain;
use crate::stubs::rtec_event::rtec_event_channel_admin as rtec;
use crate::stubs::rtec_event::rtec_event_comm::{Event, PushConsumer, PushConsumerServant};

/// A plain channel.
pub(super) struct PlainCore {
    config: PlainConfig,
    poa: Poa,
    channel: rtec::EventChannel,
    state: Mutex<State>,
    changed: Condvar,
    /// The proxy for suppliers' events, while connected.
    supply: Mutex<Option<rtec::ProxyPushConsumer>>,
    consumer_admin: OnceLock<ConsumerAdmin>,
    supplier_admin: OnceLock<SupplierAdmin>,
    pub(super) counts: Arc<Counts>,
}

#[derive(Default)]
struct State {
    last_number: u64,
    /// Proxies for suppliers.
    suppliers: BTreeMap<u64, Supplier>,
    /// Proxies for consumers, and the connected consumers.
    consumers: BTreeMap<u64, Option<Arc<Consumer>>>,
    goodbyes: VecDeque<Goodbye>,
    stop: bool,
    /// The channel has disconnected this consumer.
    lost: bool,
    /// True while this is a consumer of the channel.
    subscribed: bool,
    /// Counts the changes that the thread has to handle.
    changes: u64,
}

/// A proxy for suppliers.
#[derive(Clone)]
pub(super) enum Supplier {
    Awaited,
    Connected(Option<plain::PushSupplier>),
}

/// A client to notify that it is disconnected.
pub(super) enum Goodbye {
    Supplier(plain::PushSupplier),
    Consumer(plain::PushConsumer),
}

/// The connection to the channel as a consumer.
#[derive(Default)]
struct Link {
    consumer: Option<(PushConsumer, rtec::ProxyPushSupplier)>,
}

impl PlainCore {
    pub(super) fn new(poa: Poa, channel: rtec::EventChannel, config: PlainConfig) -> Self {
        let object = channel.as_object();
        let channel = object.with_round_trip_timeout(Some(config.push_timeout));
        Self {
            config,
            poa,
            channel: rtec::EventChannel::unchecked_narrow(channel),
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            supply: Mutex::new(None),
            consumer_admin: OnceLock::new(),
            supplier_admin: OnceLock::new(),
            counts: Arc::default(),
        }
    }

    pub(super) fn config(&self) -> &PlainConfig {
        &self.config
    }

    pub(super) fn poa(&self) -> &Poa {
        &self.poa
    }

    /// The administration of consumers, made on first use.
    pub(super) fn consumer_admin<S: Send + Sync + 'static>(
        &self,
        servant: impl FnOnce() -> S,
    ) -> Result<ConsumerAdmin, SystemException>
    where
        ConsumerAdmin: ServedBy<S>,
    {
        if let Some(admin) = self.consumer_admin.get() {
            return Ok(admin.clone());
        }
        let admin = self.poa.activate(servant()).map_err(refused)?;
        Ok(self.consumer_admin.get_or_init(|| admin).clone())
    }

    /// The administration of suppliers, made on first use.
    pub(super) fn supplier_admin<S: Send + Sync + 'static>(
        &self,
        servant: impl FnOnce() -> S,
    ) -> Result<SupplierAdmin, SystemException>
    where
        SupplierAdmin: ServedBy<S>,
    {
        if let Some(admin) = self.supplier_admin.get() {
            return Ok(admin.clone());
        }
        let admin = self.poa.activate(servant()).map_err(refused)?;
        Ok(self.supplier_admin.get_or_init(|| admin).clone())
    }

    /// Admits a new proxy for a supplier and returns its number.
    pub(super) fn admit_supplier(&self) -> Result<u64, SystemException> {
        let mut state = self.state.lock();
        if state.stop || state.suppliers.len() >= self.config.suppliers_max {
            return Err(local::SERVICE_FULL);
        }
        let number = state.next_number();
        state.suppliers.insert(number, Supplier::Awaited);
        Ok(number)
    }

    /// Connects a supplier to its proxy. Returns `Some(false)` if another supplier is connected, `None` if the proxy does not
    /// exist.
    pub(super) fn connect_supplier(
        &self,
        number: u64,
        supplier: Option<plain::PushSupplier>,
    ) -> Option<bool> {
        let mut state = self.state.lock();
        let proxy = state.suppliers.get_mut(&number)?;
        if let Supplier::Connected(_) = proxy {
            return Some(false);
        }
        *proxy = Supplier::Connected(supplier);
        self.note(state);
        Some(true)
    }

    /// Removes a proxy for a supplier and notifies the supplier.
    pub(super) fn end_supplier(&self, number: u64) {
        let mut state = self.state.lock();
        if let Some(Supplier::Connected(Some(supplier))) = state.suppliers.remove(&number) {
            state.goodbyes.push_back(Goodbye::Supplier(supplier));
        }
        self.note(state);
    }

    pub(super) fn is_connected_supplier(&self, number: u64) -> bool {
        let state = self.state.lock();
        matches!(state.suppliers.get(&number), Some(Supplier::Connected(_)))
    }

    /// Admits a new proxy for a consumer and returns its number.
    pub(super) fn admit_consumer(&self) -> Result<u64, SystemException> {
        let mut state = self.state.lock();
        if state.stop || state.consumers.len() >= self.config.consumers_max {
            return Err(local::SERVICE_FULL);
        }
        let number = state.next_number();
        state.consumers.insert(number, None);
        Ok(number)
    }

    /// Connects a consumer to its proxy. Returns `Some(false)` if another consumer is connected, `None` if the proxy does not
    /// exist.
    pub(super) fn connect_consumer(&self, number: u64, consumer: &Arc<Consumer>) -> Option<bool> {
        let mut state = self.state.lock();
        let place = state.consumers.get_mut(&number)?;
        if place.is_some() {
            return Some(false);
        }
        *place = Some(Arc::clone(consumer));
        self.note(state);
        Some(true)
    }

    /// Removes a proxy for a consumer. Notifies `told`, if the consumer does not know yet.
    pub(super) fn end_consumer(&self, number: u64, told: Option<plain::PushConsumer>) {
        let mut state = self.state.lock();
        if let Some(Some(consumer)) = state.consumers.remove(&number) {
            consumer.end();
            state.goodbyes.extend(told.map(Goodbye::Consumer));
        }
        self.note(state);
    }

    /// Sends the event of a plain supplier to the channel.
    pub(super) fn push(&self, any: &rtorb::any::Any) -> Result<(), SystemException> {
        let proxy = self.supply.lock().clone();
        let sent = match proxy {
            Some(proxy) => proxy.push(&[value::event(&self.config, any.clone())]),
            // The thread is about to connect.
            None => Err(local::SERVICE_STARTING),
        };
        match &sent {
            Ok(()) => self.counts.pushed.fetch_add(1, Ordering::Relaxed),
            Err(_) => self.counts.refused.fetch_add(1, Ordering::Relaxed),
        };
        sent
    }

    pub(super) fn stop(&self) {
        let mut state = self.state.lock();
        state.stop = true;
        self.note(state);
    }

    /// Waits until this is a consumer of the channel, at most `push_timeout`: an event that is pushed after a consumer has
    /// connected must reach it. A reactive server would wait for itself, so it does not wait.
    pub(super) fn await_subscription(&self) {
        let orb = self.channel.as_object().orb();
        if orb.strategies().dispatch == DispatchStrategy::Reactive {
            return;
        }
        let deadline_ns = monotonic_ns() + self.config.push_timeout.as_nanos() as u64;
        let mut state = self.state.lock();
        while !state.subscribed && !state.stop && monotonic_ns() < deadline_ns {
            self.changed.wait_until(&mut state, deadline_ns);
        }
    }

    /// Wakes the threads that wait for a change.
    fn note(&self, mut state: MutexGuard<'_, State>) {
        state.changes += 1;
        drop(state);
        self.changed.notify_all(&self.state);
    }

    pub(super) fn statistics(&self) -> PlainStatistics {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let state = self.state.lock();
        let connected = |proxy: &&Supplier| matches!(proxy, Supplier::Connected(_));
        PlainStatistics {
            suppliers: state.suppliers.values().filter(connected).count() as u64,
            consumers: state.consumers.values().flatten().count() as u64,
            pushed: of(&self.counts.pushed),
            refused: of(&self.counts.refused),
            received: of(&self.counts.received),
            delivered: of(&self.counts.delivered),
            discarded_full: of(&self.counts.discarded_full),
            discarded_failed: of(&self.counts.discarded_failed),
            dropped: of(&self.counts.dropped),
        }
    }

    /// The work of the thread until it is stopped.
    pub(super) fn work(self: &Arc<Self>) {
        let mut link = Link::default();
        let ping_ns = self.config.ping_every.as_nanos() as u64;
        let mut next_ping_ns = monotonic_ns() + ping_ns;
        loop {
            let seen = self.state.lock().changes;
            self.say_goodbyes();
            let is_linked = self.relink(&mut link);
            let now_ns = monotonic_ns();
            if now_ns >= next_ping_ns {
                self.ask_suppliers();
                self.ask_channel(&mut link);
                next_ping_ns = monotonic_ns() + ping_ns;
            }
            let until_ns = if is_linked {
                next_ping_ns
            } else {
                next_ping_ns.min(now_ns + RETRY_NS)
            };
            let mut state = self.state.lock();
            while state.changes == seen && !state.stop && monotonic_ns() < until_ns {
                self.changed.wait_until(&mut state, until_ns);
            }
            if state.stop {
                break;
            }
        }
        self.end(&mut link);
    }

    /// Connects to the channel as needed. Returns false if it must try again.
    fn relink(self: &Arc<Self>, link: &mut Link) -> bool {
        let (has_consumers, lost) = {
            let mut state = self.state.lock();
            let lost = std::mem::take(&mut state.lost);
            (state.has_consumers(), lost)
        };
        if lost && let Some((object, _)) = link.consumer.take() {
            let _ = self.poa.deactivate(object.as_object());
        }
        let mut is_linked = true;
        let has_supply = self.supply.lock().is_some();
        if !has_supply {
            match connect_supplier(&self.channel, None, &Self::publication(&self.config)) {
                Ok(proxy) => *self.supply.lock() = Some(proxy),
                Err(_) => is_linked = false,
            }
        }
        match (&link.consumer, has_consumers) {
            (None, true) => match self.subscribe() {
                Ok(consumer) => link.consumer = Some(consumer),
                Err(_) => is_linked = false,
            },
            (Some(_), false) => self.unsubscribe(link),
            _ => {}
        }
        // Not counted as a change: this thread made it.
        self.state.lock().subscribed = link.consumer.is_some();
        self.changed.notify_all(&self.state);
        is_linked
    }

    fn subscribe(
        self: &Arc<Self>,
    ) -> Result<(PushConsumer, rtec::ProxyPushSupplier), ConnectError> {
        let subscription = SimpleSubscription {
            types: self.config.types.clone(),
            sources: self.config.sources.clone(),
            rt_info: self.config.rt_info,
            ..SimpleSubscription::default()
        };
        // Without timeouts it never fails.
        let qos = subscription
            .consumer_qos()
            .map_err(|_| ConnectError::TypeError)?;
        let object: PushConsumer = self.poa.activate(FanOut(Arc::clone(self)))?;
        match connect_consumer(&self.channel, &object, &qos) {
            Ok(proxy) => Ok((object, proxy)),
            Err(error) => {
                let _ = self.poa.deactivate(object.as_object());
                Err(error)
            }
        }
    }

    fn unsubscribe(&self, link: &mut Link) {
        if let Some((object, proxy)) = link.consumer.take() {
            let _ = proxy.disconnect_push_supplier();
            let _ = self.poa.deactivate(object.as_object());
        }
    }

    fn publication(config: &PlainConfig) -> rtec::SupplierQos {
        let publications = Publications::new();
        let own = publications.event(config.source, config.event_type, config.rt_info);
        own.supplier_qos()
    }

    /// Notifies disconnected clients, as far as they answer.
    fn say_goodbyes(&self) {
        loop {
            let goodbye = self.state.lock().goodbyes.pop_front();
            let timeout = Some(self.config.push_timeout);
            match goodbye {
                None => return,
                Some(Goodbye::Supplier(supplier)) => {
                    let object = supplier.as_object().with_round_trip_timeout(timeout);
                    let supplier = plain::PushSupplier::unchecked_narrow(object);
                    let _ = supplier.disconnect_push_supplier();
                }
                Some(Goodbye::Consumer(consumer)) => {
                    let object = consumer.as_object().with_round_trip_timeout(timeout);
                    let consumer = plain::PushConsumer::unchecked_narrow(object);
                    let _ = consumer.disconnect_push_consumer();
                }
            }
        }
    }

    /// Removes suppliers that do not exist. Consumers' threads ping the consumers.
    fn ask_suppliers(&self) {
        let known: Vec<(u64, plain::PushSupplier)> = {
            let state = self.state.lock();
            let known = state.suppliers.iter();
            known
                .filter_map(|(number, proxy)| match proxy {
                    Supplier::Connected(Some(supplier)) => Some((*number, supplier.clone())),
                    _ => None,
                })
                .collect()
        };
        for (number, supplier) in known {
            let timeout = Some(self.config.push_timeout);
            let object = supplier.as_object().with_round_trip_timeout(timeout);
            if is_there(&object).is_err() {
                self.state.lock().suppliers.remove(&number);
            }
        }
    }

    /// Notices that the channel has dropped this client or was restarted.
    fn ask_channel(&self, link: &mut Link) {
        let supply = self.supply.lock().clone();
        if supply.is_some_and(|proxy| is_there(proxy.as_object()).is_err()) {
            *self.supply.lock() = None;
        }
        if let Some((object, proxy)) = &link.consumer
            && is_there(proxy.as_object()).is_err()
        {
            let _ = self.poa.deactivate(object.as_object());
            link.consumer = None;
        }
    }

    fn end(&self, link: &mut Link) {
        self.unsubscribe(link);
        if let Some(proxy) = self.supply.lock().take() {
            let _ = proxy.disconnect_push_consumer();
        }
        {
            let mut state = self.state.lock();
            let State {
                suppliers,
                consumers,
                goodbyes,
                ..
            } = &mut *state;
            for proxy in std::mem::take(suppliers).into_values() {
                if let Supplier::Connected(Some(supplier)) = proxy {
                    goodbyes.push_back(Goodbye::Supplier(supplier));
                }
            }
            for consumer in std::mem::take(consumers).into_values().flatten() {
                consumer.end();
                goodbyes.push_back(Goodbye::Consumer(consumer.object().clone()));
            }
        }
        self.say_goodbyes();
    }
}

impl fmt::Debug for PlainCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainCore")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn has_consumers(&self) -> bool {
        self.consumers.values().any(Option::is_some)
    }
}

/// The servant that the channel calls: it queues each event for every consumer.
struct FanOut(Arc<PlainCore>);

impl PushConsumerServant for FanOut {
    fn push(&self, events: &[Event]) -> Result<(), SystemException> {
        let consumers: Vec<Arc<Consumer>> = {
            let state = self.0.state.lock();
            state.consumers.values().flatten().cloned().collect()
        };
        for event in events {
            let any = Arc::new(value::any(event));
            let octets = value::octets(&any);
            for consumer in &consumers {
                consumer.put(&any, octets);
            }
        }
        Ok(())
    }

    fn disconnect_push_consumer(&self) -> Result<(), SystemException> {
        let mut state = self.0.state.lock();
        state.lost = true;
        self.0.note(state);
        Ok(())
    }
}

/// The exception of a caller for an error of the adapter.
pub(super) fn refused(error: PoaError) -> SystemException {
    match error {
        PoaError::System(exception) => exception,
        _ => local::NOT_ACTIVATED,
    }
}

/// Deactivates an object, if it exists.
pub(super) fn deactivate(poa: &Poa, object: Option<&ObjectRef>) {
    if let Some(object) = object {
        let _ = poa.deactivate(object);
    }
}

/// The pause before the next attempt to connect.
const RETRY_NS: u64 = 100_000_000;
