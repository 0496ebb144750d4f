//! The shared state of a plain channel, and its thread: it connects to the channel, notifies clients and pings them.
#![expect(
    clippy::disallowed_types,
    reason = "a client that connects may wait for another one that moves a value; no event does"
)]

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rtorb::exception::local;
use rtorb::skeleton::ServedBy;
use rtorb::{
    DispatchStrategy, ExceptionKind, ObjectRef, Poa, PoaError, SystemException, with_deadline,
};
use rtorb_os::bounded_queue::BoundedQueue;
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Condvar, Mutex, MutexGuard};

use super::config::{PlainConfig, PlainStatistics};
use super::consumer::QueuedConsumer;
use super::counts::PlainCounts;
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
    state: Mutex<ChannelState>,
    changed: Condvar,
    /// The proxy for suppliers' events, while connected.
    supply: Mutex<Option<rtec::ProxyPushConsumer>>,
    pub(super) consumer_admin: OnceLock<ConsumerAdmin>,
    pub(super) supplier_admin: OnceLock<SupplierAdmin>,
    pub(super) counts: Arc<PlainCounts>,
}

/// A client to notify that it is disconnected.
enum Goodbye {
    Supplier(plain::PushSupplier),
    Consumer(plain::PushConsumer),
}

struct ChannelState {
    last_number: u64,
    suppliers: BTreeMap<u64, Proxy<SupplierClient>>,
    /// With the connected consumers.
    consumers: BTreeMap<u64, Proxy<Option<Arc<QueuedConsumer>>>>,
    /// Threads of consumers whose proxy is removed. They count as consumers until they end.
    ending_threads: usize,
    /// The clients that are still to be notified, in the order in which they were disconnected.
    goodbyes: BoundedQueue<Goodbye>,
    stop: bool,
    /// The channel has disconnected this consumer.
    lost: bool,
    /// True while this is a consumer of the channel.
    subscribed: bool,
    /// Counts the changes that the thread has to handle.
    changes: u64,
}

impl ChannelState {
    /// Admits a new proxy of the kind that `proxies` returns. `activate` makes its object.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the channel ends; NO_RESOURCES if it has all its proxies; the error of `activate`.
    fn admit<C>(
        &mut self,
        is_full: bool,
        proxies: fn(&mut Self) -> &mut BTreeMap<u64, Proxy<C>>,
        client: C,
        activate: impl FnOnce(u64) -> Result<ObjectRef, SystemException>,
    ) -> Result<ObjectRef, SystemException> {
        if self.stop {
            return Err(local::OBJECT_GONE);
        }
        if is_full {
            return Err(local::SERVICE_FULL);
        }
        self.last_number += 1;
        let number = self.last_number;
        let object = activate(number)?;
        let proxy = Proxy {
            object: object.clone(),
            client,
        };
        proxies(self).insert(number, proxy);
        Ok(object)
    }
}

/// The client of a proxy for suppliers.
enum SupplierClient {
    Awaited,
    Connected(ConnectedSupplier),
}

struct ConnectedSupplier {
    /// The object for pings and notifications. A supplier may connect without one.
    object: Option<plain::PushSupplier>,
    /// True if it has pushed since the last pings were noted.
    has_pushed: bool,
    /// Failed pings in a row, since it last pushed.
    failures: u32,
}

/// A proxy and its client.
struct Proxy<C> {
    object: ObjectRef,
    client: C,
}

/// Who is notified of the end of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notify {
    Consumer,
    Nobody,
}

/// The connection to the channel as a consumer.
#[derive(Default)]
struct ChannelLink {
    consumer: Option<(PushConsumer, rtec::ProxyPushSupplier)>,
}

impl PlainCore {
    pub(super) fn new(poa: Poa, channel: rtec::EventChannel, config: PlainConfig) -> Self {
        let channel = channel.with_timeout(config.push_timeout);
        let state = ChannelState {
            last_number: 0,
            suppliers: BTreeMap::new(),
            consumers: BTreeMap::new(),
            ending_threads: 0,
            goodbyes: BoundedQueue::new(config.suppliers_max + config.consumers_max, usize::MAX),
            stop: false,
            lost: false,
            subscribed: false,
            changes: 0,
        };
        Self {
            config,
            poa,
            channel,
            state: Mutex::new(state),
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

    /// The object in `cell`, activated on first use.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the channel ends, and the exception of the adapter.
    pub(super) fn made_once<
        I: ServedBy<S, Object = ObjectRef> + 'static,
        S: Send + Sync + 'static,
    >(
        &self,
        cell: &OnceLock<I>,
        servant: impl FnOnce() -> S,
    ) -> Result<I, SystemException> {
        let servant = servant();
        // Under the lock: no two threads activate an object, and none does after the end.
        let state = self.state.lock();
        if state.stop {
            return Err(local::OBJECT_GONE);
        }
        if let Some(object) = cell.get() {
            return Ok(object.clone());
        }
        let object = self.poa.activate(servant).map_err(refused)?;
        Ok(cell.get_or_init(|| object).clone())
    }

    /// Admits a new proxy for a supplier. `activate` makes its object.
    pub(super) fn admit_supplier(
        &self,
        activate: impl FnOnce(u64) -> Result<ObjectRef, SystemException>,
    ) -> Result<ObjectRef, SystemException> {
        let mut state = self.state.lock();
        let is_full = state.suppliers.len() >= self.config.suppliers_max;
        state.admit(
            is_full,
            |state| &mut state.suppliers,
            SupplierClient::Awaited,
            activate,
        )
    }

    /// Connects a supplier to its proxy. Returns `Some(false)` if another supplier is connected, `None` if the proxy does not
    /// exist.
    pub(super) fn connect_supplier(
        &self,
        number: u64,
        supplier: Option<plain::PushSupplier>,
    ) -> Option<bool> {
        let mut state = self.state.lock();
        let client = &mut state.suppliers.get_mut(&number)?.client;
        if let SupplierClient::Connected(_) = client {
            return Some(false);
        }
        *client = SupplierClient::Connected(ConnectedSupplier {
            object: supplier,
            has_pushed: false,
            failures: 0,
        });
        self.note(state);
        Some(true)
    }

    /// Removes a proxy for a supplier and notifies the supplier.
    pub(super) fn end_supplier(&self, number: u64) {
        let mut state = self.state.lock();
        let removed = state.suppliers.remove(&number);
        if let Some(Proxy {
            client: SupplierClient::Connected(supplier),
            ..
        }) = &removed
            && let Some(object) = &supplier.object
        {
            self.add_goodbye(&mut state, Goodbye::Supplier(object.clone()));
        }
        self.note(state);
        self.deactivate(removed.map(|proxy| proxy.object));
    }

    /// Notes that a supplier pushes. Returns false if it is not connected.
    pub(super) fn note_push(&self, number: u64) -> bool {
        let mut state = self.state.lock();
        let supplier = state.supplier(number);
        let is_connected = supplier.is_some();
        if let Some(supplier) = supplier {
            supplier.has_pushed = true;
            supplier.failures = 0;
        }
        is_connected
    }

    /// Admits a new proxy for a consumer. `activate` makes its object.
    pub(super) fn admit_consumer(
        &self,
        activate: impl FnOnce(u64) -> Result<ObjectRef, SystemException>,
    ) -> Result<ObjectRef, SystemException> {
        let mut state = self.state.lock();
        let taken = state.consumers.len() + state.ending_threads;
        let is_full = taken >= self.config.consumers_max;
        state.admit(is_full, |state| &mut state.consumers, None, activate)
    }

    /// Connects a consumer to its proxy. The caller starts its thread, which calls [`thread_ended`](Self::thread_ended). Returns
    /// `Some(false)` if another consumer is connected, `None` if the proxy does not exist.
    pub(super) fn connect_consumer(
        &self,
        number: u64,
        consumer: &Arc<QueuedConsumer>,
    ) -> Option<bool> {
        let mut state = self.state.lock();
        let client = &mut state.consumers.get_mut(&number)?.client;
        if client.is_some() {
            return Some(false);
        }
        *client = Some(Arc::clone(consumer));
        self.note(state);
        Some(true)
    }

    /// Removes a proxy for a consumer and has its thread end.
    pub(super) fn end_consumer(&self, number: u64, notify: Notify) {
        let mut state = self.state.lock();
        let removed = state.consumers.remove(&number);
        if let Some(Proxy {
            client: Some(consumer),
            ..
        }) = &removed
        {
            consumer.end();
            state.ending_threads += 1;
            if notify == Notify::Consumer {
                self.add_goodbye(&mut state, Goodbye::Consumer(consumer.object().clone()));
            }
        }
        self.note(state);
        self.deactivate(removed.map(|proxy| proxy.object));
    }

    /// Frees the place of a consumer whose thread has ended.
    pub(super) fn thread_ended(&self, number: u64) {
        let mut state = self.state.lock();
        // The proxy is still there if the thread could not start or panicked.
        let removed = state.consumers.remove(&number);
        if removed.is_none() {
            state.ending_threads -= 1;
        }
        self.note(state);
        self.deactivate(removed.map(|proxy| proxy.object));
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
        let deadline_ns = self.deadline_ns();
        let mut state = self.state.lock();
        while !state.subscribed && !state.stop && monotonic_ns() < deadline_ns {
            self.changed.wait_until(&mut state, deadline_ns);
        }
    }

    /// Wakes the threads that wait for a change.
    fn note(&self, mut state: MutexGuard<'_, ChannelState>) {
        state.changes += 1;
        drop(state);
        self.changed.notify_all(&self.state);
    }

    pub(super) fn statistics(&self) -> PlainStatistics {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let state = self.state.lock();
        let suppliers = state.suppliers.values();
        let suppliers = suppliers.filter(|it| matches!(it.client, SupplierClient::Connected(_)));
        let consumers = state.consumers.values().flat_map(|it| &it.client);
        PlainStatistics {
            suppliers: suppliers.count() as u64,
            consumers: consumers.count() as u64,
            pushed: of(&self.counts.pushed),
            refused: of(&self.counts.refused),
            received: of(&self.counts.received),
            delivered: of(&self.counts.delivered),
            discarded_full: of(&self.counts.discarded_full),
            discarded_failed: of(&self.counts.discarded_failed),
            dropped: of(&self.counts.dropped),
            goodbyes_dropped: of(&self.counts.goodbyes_dropped),
        }
    }

    /// The work of the thread until it is stopped. Between two calls to clients it looks at the channel and at the end.
    pub(super) fn work(self: &Arc<Self>) {
        let mut link = ChannelLink::default();
        let mut pings = VecDeque::new();
        let ping_ns = self.config.ping_every.as_nanos() as u64;
        let mut next_ping_ns = monotonic_ns() + ping_ns;
        let (mut is_linked, mut next_link_ns) = (false, 0);
        loop {
            let (seen, is_lost) = {
                let state = self.state.lock();
                (state.changes, state.lost)
            };
            // If the channel does not reply, this takes `push_timeout`, and the clients of this plain channel wait meanwhile.
            if is_linked || is_lost || monotonic_ns() >= next_link_ns {
                is_linked = self.relink(&mut link);
                next_link_ns = monotonic_ns() + RETRY_NS;
            }
            if monotonic_ns() >= next_ping_ns {
                self.ask_channel(&mut link);
                // A supplier is not noted again before all pings are made.
                if pings.is_empty() {
                    pings = self.suppliers_to_ask();
                }
                next_ping_ns = monotonic_ns() + ping_ns;
            }
            // Both: clients that come and go without an end must not keep the dead ones from being found.
            let has_worked = self.say_goodbye() | self.ask_supplier(&mut pings);
            let until_ns = if is_linked {
                next_ping_ns
            } else {
                next_ping_ns.min(next_link_ns)
            };
            let mut state = self.state.lock();
            let has_news = |state: &ChannelState| has_worked || state.stop || state.changes != seen;
            while !has_news(&state) && monotonic_ns() < until_ns {
                self.changed.wait_until(&mut state, until_ns);
            }
            if state.stop {
                break;
            }
        }
        self.end(&mut link);
    }

    /// Connects to the channel as needed, within `push_timeout` and the time to discard the proxies of failed attempts. Returns false if it
    /// must try again.
    fn relink(self: &Arc<Self>, link: &mut ChannelLink) -> bool {
        let (has_consumers, lost) = {
            let mut state = self.state.lock();
            let lost = std::mem::take(&mut state.lost);
            (state.has_consumers(), lost)
        };
        if lost && let Some((object, _)) = link.consumer.take() {
            let _ = self.poa.deactivate(object.as_object());
        }
        let is_linked = with_deadline(self.config.push_timeout, || {
            let is_supplier = self.join_as_supplier();
            self.join_as_consumer(link, has_consumers) && is_supplier
        });
        // Not counted as a change: this thread made it.
        self.state.lock().subscribed = link.consumer.is_some();
        self.changed.notify_all(&self.state);
        is_linked
    }

    /// Becomes a supplier of the channel. Returns false if it must try again.
    fn join_as_supplier(&self) -> bool {
        if self.supply.lock().is_some() {
            return true;
        }
        match connect_supplier(&self.channel, None, &Self::publication(&self.config)) {
            Ok(proxy) => {
                *self.supply.lock() = Some(proxy.with_timeout(self.config.push_timeout));
                true
            }
            Err(_) => false,
        }
    }

    /// Connects to the channel as a consumer if this channel has consumers, and disconnects if it has none. Returns false if it must try again.
    fn join_as_consumer(self: &Arc<Self>, link: &mut ChannelLink, has_consumers: bool) -> bool {
        match (&link.consumer, has_consumers) {
            (None, true) => link.consumer = self.subscribe().ok(),
            (Some(_), false) => self.unsubscribe(link),
            _ => {}
        }
        link.consumer.is_some() == has_consumers
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
            Ok(proxy) => Ok((object, proxy.with_timeout(self.config.push_timeout))),
            Err(error) => {
                let _ = self.poa.deactivate(object.as_object());
                Err(error)
            }
        }
    }

    fn unsubscribe(&self, link: &mut ChannelLink) {
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

    /// Queues a notification, or counts it as dropped.
    fn add_goodbye(&self, state: &mut ChannelState, goodbye: Goodbye) {
        if state.goodbyes.push(goodbye, 0).is_err() {
            (self.counts.goodbyes_dropped).fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notifies the next disconnected client. Returns false if there is none.
    fn say_goodbye(&self) -> bool {
        let goodbye = self.state.lock().goodbyes.pop();
        goodbye.inspect(|client| self.notify(client)).is_some()
    }

    /// Notifies a disconnected client, if it answers.
    fn notify(&self, client: &Goodbye) {
        let _ = match client {
            Goodbye::Supplier(supplier) => {
                let supplier = supplier.with_timeout(self.config.push_timeout);
                supplier.disconnect_push_supplier()
            }
            Goodbye::Consumer(consumer) => {
                let consumer = consumer.with_timeout(self.config.push_timeout);
                consumer.disconnect_push_consumer()
            }
        };
    }

    /// The suppliers to ping: those that have not pushed since this was called last. Consumers' threads ping the consumers.
    fn suppliers_to_ask(&self) -> VecDeque<(u64, plain::PushSupplier)> {
        let mut state = self.state.lock();
        let proxies = state.suppliers.iter_mut();
        let silent = proxies.filter_map(|(number, proxy)| {
            let SupplierClient::Connected(supplier) = &mut proxy.client else {
                return None;
            };
            let is_silent = !std::mem::take(&mut supplier.has_pushed);
            let object = supplier.object.as_ref().filter(|_| is_silent)?;
            Some((*number, object.clone()))
        });
        silent.collect()
    }

    /// Pings a supplier. Removes its proxy if it does not exist, or has not answered `failures_max` times in a row. Returns false if there
    /// is none to ping.
    fn ask_supplier(&self, pings: &mut VecDeque<(u64, plain::PushSupplier)>) -> bool {
        let Some((number, supplier)) = pings.pop_front() else {
            return false;
        };
        let supplier = supplier.with_timeout(self.config.push_timeout);
        let answer = is_there(supplier.as_object());
        let mut state = self.state.lock();
        // It may have disconnected meanwhile.
        let Some(supplier) = state.supplier(number) else {
            return true;
        };
        supplier.failures = match &answer {
            Ok(()) => 0,
            Err(exception) if no_longer_exists(exception) => u32::MAX,
            Err(_) => supplier.failures + 1,
        };
        if supplier.failures >= self.config.failures_max {
            self.counts.dropped.fetch_add(1, Ordering::Relaxed);
            let removed = state.suppliers.remove(&number);
            drop(state);
            self.deactivate(removed.map(|proxy| proxy.object));
        }
        true
    }

    /// Notices, within `push_timeout`, that the channel has dropped this client or was restarted. It keeps a proxy that does not answer:
    /// if the channel still has it, another one beside it would stay there for ever, because no ping finds a supplier without an object.
    fn ask_channel(&self, link: &mut ChannelLink) {
        let supply = self.supply.lock().clone();
        let consumer = link.consumer.as_ref().map(|(_, proxy)| proxy.as_object());
        let has_lost =
            |proxy: &ObjectRef| is_there(proxy).is_err_and(|lost| no_longer_exists(&lost));
        let (lost_supply, lost_consumer) = with_deadline(self.config.push_timeout, || {
            (
                supply.is_some_and(|proxy| has_lost(proxy.as_object())),
                consumer.is_some_and(has_lost),
            )
        });
        if lost_supply {
            *self.supply.lock() = None;
        }
        if lost_consumer && let Some((object, _)) = link.consumer.take() {
            let _ = self.poa.deactivate(object.as_object());
        }
    }

    /// Disconnects from the channel and from all clients, all within `push_timeout`.
    fn end(&self, link: &mut ChannelLink) {
        let deadline_ns = self.deadline_ns();
        let (objects, goodbyes) = self.remove_clients();
        for object in objects {
            self.deactivate(Some(object));
        }
        with_deadline(self.config.push_timeout, || {
            // First: a channel that does not answer uses up the time, and no ping finds a supplier without an object.
            if let Some(proxy) = self.supply.lock().take() {
                let _ = proxy.disconnect_push_consumer();
            }
            self.unsubscribe(link);
            for client in &goodbyes {
                if monotonic_ns() < deadline_ns {
                    self.notify(client);
                } else {
                    (self.counts.goodbyes_dropped).fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        // Each thread ends after the push in progress, which began before this.
        let mut state = self.state.lock();
        while state.ending_threads > 0 && monotonic_ns() < deadline_ns {
            self.changed.wait_until(&mut state, deadline_ns);
        }
    }

    /// Removes all proxies and has the consumers' threads end. Returns the objects to deactivate and the clients to notify.
    fn remove_clients(&self) -> (Vec<ObjectRef>, Vec<Goodbye>) {
        let mut objects = Vec::new();
        let mut state = self.state.lock();
        let mut goodbyes: Vec<Goodbye> = state.goodbyes.drain(usize::MAX).collect();
        for proxy in std::mem::take(&mut state.suppliers).into_values() {
            objects.push(proxy.object);
            if let SupplierClient::Connected(supplier) = proxy.client {
                goodbyes.extend(supplier.object.map(Goodbye::Supplier));
            }
        }
        for proxy in std::mem::take(&mut state.consumers).into_values() {
            objects.push(proxy.object);
            if let Some(consumer) = proxy.client {
                consumer.end();
                state.ending_threads += 1;
                goodbyes.push(Goodbye::Consumer(consumer.object().clone()));
            }
        }
        objects.extend(self.consumer_admin.get().map(|it| it.as_object().clone()));
        objects.extend(self.supplier_admin.get().map(|it| it.as_object().clone()));
        (objects, goodbyes)
    }

    fn deadline_ns(&self) -> u64 {
        monotonic_ns() + self.config.push_timeout.as_nanos() as u64
    }

    /// Deactivates an object, if it is active.
    fn deactivate(&self, object: Option<ObjectRef>) {
        if let Some(object) = object {
            let _ = self.poa.deactivate(&object);
        }
    }
}

impl fmt::Debug for PlainCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainCore")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl ChannelState {
    fn has_consumers(&self) -> bool {
        self.consumers.values().any(|it| it.client.is_some())
    }

    /// The supplier that is connected to the proxy with that number.
    fn supplier(&mut self, number: u64) -> Option<&mut ConnectedSupplier> {
        match &mut self.suppliers.get_mut(&number)?.client {
            SupplierClient::Connected(supplier) => Some(supplier),
            SupplierClient::Awaited => None,
        }
    }
}

/// The servant that the channel calls: it queues each event for every consumer.
struct FanOut(Arc<PlainCore>);

impl PushConsumerServant for FanOut {
    fn push(&self, events: &[Event]) -> Result<(), SystemException> {
        let consumers: Vec<Arc<QueuedConsumer>> = {
            let state = self.0.state.lock();
            let proxies = state.consumers.values();
            proxies.filter_map(|it| it.client.clone()).collect()
        };
        for event in events {
            let any = Arc::new(value::any(event));
            let bytes = value::bytes(&any);
            for consumer in &consumers {
                consumer.put(&any, bytes);
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

/// True if the exception says that the object does not exist; false if it did not answer.
pub(super) fn no_longer_exists(exception: &SystemException) -> bool {
    exception.kind == ExceptionKind::ObjectNotExist
}

/// The exception of a caller for an error of the adapter.
pub(super) fn refused(error: PoaError) -> SystemException {
    match error {
        PoaError::System(exception) => exception,
        _ => local::NOT_ACTIVATED,
    }
}

/// The pause before the next attempt to connect.
const RETRY_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests;
