//! The state of a channel that all its servants and threads share.

use super::config::ChannelConfig;
use super::connection::ConsumerConnection;
use super::consumer::{Consumer, Registration, Service};
use super::dispatch::dispatch;
use super::event::Incoming;
use super::filter::Key;
use super::filter::{FilterLimits, Subscription, SubscriptionError};
use super::lane::Lane;
use super::mailbox::Mailbox;
use super::observers::{Observers, Unions};
use super::priority_source::{EventFlow, PrioritySource, Urgency, UrgencyError};
use super::registry::{ForgottenConsumer, Registry, SubscribedKeys};
use super::reorder::Reorder;
use super::statistics::{Refused, Statistics};
use super::subscriptions::Subscriptions;
use super::supplier::ChannelSupplier;
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    AlreadyConnected, ConsumerQos, ProxyPushSupplierConnectPushConsumerError, SupplierQos,
    TypeError,
};
use crate::stubs::rtec_event::rtec_event_comm::PushSupplier;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use rtorb::exception::local;
use rtorb::rt::{Priority, RtCurrent};
use rtorb::{ExceptionKind, ObjectKeyError, ObjectRef, Orb, Poa, SystemException};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::{Mutex, MutexGuard};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct ChannelCore {
    config: ChannelConfig,
    priorities: Arc<dyn PrioritySource>,
    orb: Orb,
    current: RtCurrent,
    poa: Poa,
    lanes: Vec<Arc<Lane<Consumer>>>,
    mailbox: Arc<Mailbox<Arc<Consumer>>>,
    subscriptions: Subscriptions<Arc<Consumer>>,
    registry: Mutex<Registry>,
    /// The number of changes of all priorities. Changed under the lock of the registry.
    reorders: AtomicU64,
    observers: Observers,
    /// True if the keeper has to update observers.
    has_changed: AtomicBool,
    /// The events that the source of priorities has admitted; `None` if that is unknown, after an admission that failed. It is locked
    /// while the registry is.
    admitted: Mutex<Option<Vec<EventFlow>>>,
    /// True if the source may have admitted more events than the channel has.
    may_have_fewer: AtomicBool,
    is_ending: AtomicBool,
    /// True while the configured key is bound to the channel's object.
    has_key: Mutex<bool>,
    received: AtomicU64,
    too_large: AtomicU64,
    not_connected: AtomicU64,
    malformed: AtomicU64,
}

/// A valid subscription of a consumer that connects.
#[derive(Debug)]
pub(crate) struct SubscriptionRequest {
    pub(crate) subscription: Subscription,
    pub(crate) is_gateway: bool,
}

/// What follows from a subscription request.
struct Plan {
    service: Service,
    priority: Priority,
    subscribed: SubscribedKeys,
}

/// The most urgent `rt_info` of a subscription, with the lock under which its urgency stays true.
struct Placed<'c> {
    registry: MutexGuard<'c, Registry>,
    urgency: Urgency,
    rt_info: i32,
}

impl ChannelCore {
    /// A channel with objects in `poa`. The caller starts its threads.
    pub(crate) fn new(
        config: ChannelConfig,
        priorities: Arc<dyn PrioritySource>,
        orb: Orb,
        poa: Poa,
    ) -> Self {
        let consumers_max = config.consumers_max;
        Self {
            lanes: Lane::all(&config),
            // A consumer is in it at most once to be opened and once because it departed.
            mailbox: Arc::new(Mailbox::new(2 * consumers_max)),
            subscriptions: Subscriptions::new(),
            registry: Mutex::new(Registry::new(consumers_max)),
            reorders: AtomicU64::new(0),
            observers: Observers::new(OBSERVERS_MAX),
            has_changed: AtomicBool::new(false),
            admitted: Mutex::new(Some(Vec::new())),
            may_have_fewer: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            has_key: Mutex::new(false),
            received: AtomicU64::new(0),
            too_large: AtomicU64::new(0),
            not_connected: AtomicU64::new(0),
            malformed: AtomicU64::new(0),
            config,
            priorities,
            current: orb.rt_current(),
            orb,
            poa,
        }
    }

    pub(crate) fn config(&self) -> &ChannelConfig {
        &self.config
    }

    pub(crate) fn poa(&self) -> &Poa {
        &self.poa
    }

    /// Binds the channel's object to the configured key.
    ///
    /// # Errors
    /// As [`Orb::bind_object_key`].
    pub(crate) fn bind_key(&self, channel: &ObjectRef) -> Result<(), ObjectKeyError> {
        let mut has_key = self.has_key.lock();
        self.orb.bind_object_key(&self.config.key, channel)?;
        *has_key = true;
        Ok(())
    }

    /// Deactivates the channel's objects and frees its object key.
    pub(crate) fn end_objects(&self) {
        // The key of a channel that could not bind it is another object's.
        if core::mem::take(&mut *self.has_key.lock()) {
            self.orb.unbind_object_key(&self.config.key);
        }
        self.poa.destroy();
    }

    pub(crate) fn lanes(&self) -> &[Arc<Lane<Consumer>>] {
        &self.lanes
    }

    pub(crate) fn mailbox(&self) -> &Mailbox<Arc<Consumer>> {
        &self.mailbox
    }

    pub(crate) fn forget_unused(&self, number: u64) {
        let proxy = self.registry.lock().forget_unused(number);
        self.deactivate(proxy);
    }

    pub(crate) fn observers(&self) -> &Observers {
        &self.observers
    }

    /// The CORBA priority of the calling thread, or the least urgent one if it has none.
    pub(crate) fn caller_priority(&self) -> Priority {
        self.current.the_priority().unwrap_or(Priority::MIN)
    }

    /// Gives an event to all consumers that want it, the most urgent first. The calling thread has that priority.
    pub(crate) fn dispatch(&self, event: &Incoming<'_>, priority: Priority) {
        self.received.fetch_add(1, Ordering::Relaxed);
        if event.message.bytes.len() > self.config.event_bytes_max {
            self.too_large.fetch_add(1, Ordering::Relaxed);
            return;
        }
        dispatch(
            event,
            priority,
            self.config.dispatching,
            &self.subscriptions,
        );
    }

    pub(crate) fn subscriptions(&self) -> &Subscriptions<Arc<Consumer>> {
        &self.subscriptions
    }

    /// Counts a push whose bytes are not events.
    pub(crate) fn note_malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts events that came through a proxy without a connected supplier.
    pub(crate) fn note_not_connected(&self, events: u64) {
        self.received.fetch_add(events, Ordering::Relaxed);
        self.not_connected.fetch_add(events, Ordering::Relaxed);
    }

    /// Builds the subscription of a consumer.
    ///
    /// # Errors
    /// The entry that is wrong and why.
    pub(crate) fn subscription(
        &self,
        qos: &ConsumerQos,
    ) -> Result<SubscriptionRequest, SubscriptionError> {
        let limits = FilterLimits {
            entries_max: self.config.entries_max,
            ..FilterLimits::default()
        };
        let built = Subscription::build(qos, self.config.filter, &limits, monotonic_ns());
        Ok(SubscriptionRequest {
            subscription: built?,
            is_gateway: qos.is_gateway,
        })
    }

    /// Connects a consumer to the proxy with that number. The keeper opens its connection soon; its events wait until then.
    ///
    /// # Errors
    /// BAD_PARAM for an unknown `rt_info`; NO_RESOURCES if there are `consumers_max` consumers, or if its events would break a
    /// deadline; OBJECT_NOT_EXIST if the channel ends.
    pub(crate) fn connect_consumer(
        &self,
        number: u64,
        request: SubscriptionRequest,
        connection: Arc<dyn ConsumerConnection>,
    ) -> Result<Arc<Consumer>, SystemException> {
        let placed = self.place(&request.subscription)?;
        let Plan {
            service,
            priority,
            subscribed,
        } = plan(request, &placed);
        let mut registry = placed.registry;
        let slot = registry.take_slot(number)?;
        let admitted = self.admit(|| flows(&registry, Some((number, &subscribed)), None));
        admitted.inspect_err(|_| registry.give_slot_back(slot))?;
        let registration = Registration {
            number,
            slot,
            lane: Arc::clone(self.lane_of(priority)),
        };
        let keeper = Arc::clone(&self.mailbox);
        let consumer = Consumer::new(registration, service, connection, keeper, &self.config);
        let consumer = Arc::new(consumer);
        let urgency = i32::from(priority.get());
        let subscriber =
            (self.subscriptions).insert(urgency, &subscribed.keys, Arc::clone(&consumer));
        registry.connected(&consumer, subscriber, subscribed);
        drop(registry);
        consumer.start();
        self.note_change();
        self.mailbox.post(Arc::clone(&consumer));
        Ok(consumer)
    }

    /// Replaces the subscription of a connected consumer. An event that both subscriptions want is neither lost nor repeated: what
    /// waits stays, and every lookup finds the consumer once.
    ///
    /// # Errors
    /// TypeError if the new subscription belongs to another lane: events would take two ways and overtake each other. BAD_PARAM for
    /// an unknown `rt_info`; NO_RESOURCES if its events would break a deadline; OBJECT_NOT_EXIST if the consumer has departed.
    pub(crate) fn resubscribe_consumer(
        &self,
        consumer: &Arc<Consumer>,
        request: SubscriptionRequest,
    ) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
        let placed = self.place(&request.subscription)?;
        let Plan {
            service,
            priority,
            subscribed,
        } = plan(request, &placed);
        let mut registry = placed.registry;
        if !Arc::ptr_eq(self.lane_of(priority), consumer.lane()) {
            return Err(TypeError.into());
        }
        let departed = || local::PROXY_GONE;
        registry.check_consumer(consumer.number())?;
        self.admit(|| flows(&registry, Some((consumer.number(), &subscribed)), None))?;
        let keys = subscribed.keys.clone();
        let subscriber = registry.resubscribed(consumer, subscribed);
        let subscriber = subscriber.ok_or_else(departed)?;
        if !consumer.resubscribe(service) {
            return Err(departed().into());
        }
        let urgency = i32::from(priority.get());
        self.subscriptions.replace(subscriber, urgency, &keys);
        drop(registry);
        self.note_change();
        Ok(())
    }

    /// Removes a departed consumer and its proxy.
    pub(crate) fn forget_consumer(&self, consumer: &Arc<Consumer>) {
        // Under the lock: the lookup table never has a consumer that the registry does not have.
        let mut registry = self.registry.lock();
        let ForgottenConsumer { subscriber, proxy } = registry.forget_consumer(consumer);
        if let Some(subscriber) = subscriber {
            self.subscriptions.remove(subscriber);
        }
        drop(registry);
        if subscriber.is_some() {
            self.note_fewer_events();
        }
        self.deactivate(proxy);
    }

    /// Removes a supplier and its proxy.
    pub(crate) fn forget_supplier(&self, number: u64) {
        let proxy = self.registry.lock().forget_supplier(number);
        self.note_fewer_events();
        self.deactivate(proxy);
    }

    /// Removes the proxies to which no client connected within `connect_within`.
    pub(crate) fn forget_unconnected(&self, now_ns: u64) {
        let before_ns = now_ns.saturating_sub(self.config.connect_within.as_nanos() as u64);
        let removed = self.registry.lock().forget_unconnected(before_ns);
        for proxy in removed {
            self.deactivate(Some(proxy));
        }
    }

    /// Frees the departed consumers that no thread uses any more.
    pub(crate) fn free_departed(&self) {
        let mut registry = self.registry.lock();
        if self.subscriptions.free_retired() == 0 {
            registry.lookup_is_current();
        }
        let freed = registry.free_departed();
        drop(registry);
        drop(freed);
    }

    /// Locks the registry for a new client.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if the channel ends: the keeper would not notify this client.
    pub(crate) fn open_registry(&self) -> Result<MutexGuard<'_, Registry>, SystemException> {
        let registry = self.registry.lock();
        if self.is_ending() {
            return Err(local::PROXY_GONE);
        }
        Ok(registry)
    }

    /// All connected clients, when the channel [ends](Self::end). No other one connects any more.
    pub(crate) fn last_clients(&self) -> (Vec<Arc<Consumer>>, Vec<Arc<ChannelSupplier>>) {
        let registry = self.registry.lock();
        (self.consumers(), registry.connected_suppliers())
    }

    /// The connected consumers, the most urgent first.
    pub(crate) fn consumers(&self) -> Vec<Arc<Consumer>> {
        self.subscriptions.snapshot().all().to_vec()
    }

    /// The connected suppliers.
    pub(crate) fn suppliers(&self) -> Vec<Arc<ChannelSupplier>> {
        self.registry.lock().connected_suppliers()
    }

    /// Asks the keeper to update the observers, and the source of priorities, after a client has left.
    fn note_fewer_events(&self) {
        self.may_have_fewer.store(true, Ordering::SeqCst);
        self.note_change();
    }

    /// Tells the source of priorities which events are left, if clients have left. May wait; the keeper calls it. If the source does not
    /// answer, the keeper asks again later.
    pub(crate) fn update_admission(&self) {
        let has_left = self.may_have_fewer.swap(false, Ordering::SeqCst);
        if !has_left || self.priorities.admission().is_none() {
            return;
        }
        // Under the lock: no client connects between the question and the answer.
        let registry = self.registry.lock();
        let left = flows(&registry, None, None);
        if self.admitted.lock().as_ref() != Some(&left) {
            // If it fails, the keeper tries again.
            let _ = rtorb::with_deadline(self.config.ping_timeout, || self.admit(|| left));
        }
    }

    /// Asks the keeper to update the observers.
    pub(crate) fn note_change(&self) {
        self.has_changed.store(true, Ordering::SeqCst);
        self.mailbox.signal().wake();
    }

    /// Has the keeper update those observers again whose last update failed.
    pub(crate) fn retry_observers(&self) {
        if self.observers.retry() {
            self.has_changed.store(true, Ordering::SeqCst);
        }
    }

    /// Updates one observer if something has changed for it. Returns true if it has called one. May wait; the keeper calls it.
    pub(crate) fn update_an_observer(&self) -> bool {
        if !self.has_changed.swap(false, Ordering::SeqCst) || self.observers.len() == 0 {
            return false;
        }
        let unions = {
            let registry = self.registry.lock();
            Unions::of(registry.wanted(), registry.published())
        };
        let has_called = (self.observers).update_next(&unions, self.config.ping_timeout);
        if has_called {
            // There may be another one.
            self.has_changed.store(true, Ordering::SeqCst);
        }
        has_called
    }

    /// Asks the keeper to end the channel.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::SeqCst);
        self.mailbox.stop();
    }

    /// True from the first [`end`](Self::end) on.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Read before the consumers' counts: an event that is not in it any more is in theirs.
        let undistributed = self.lanes.iter().map(|lane| lane.undistributed() as u64);
        let undistributed = undistributed.sum();
        // Under the lock, as a consumer departs: it is in one of both lists.
        let registry = self.registry.lock();
        let consumers = self.consumers();
        let suppliers = registry.connected_suppliers();
        Statistics {
            received: count(&self.received),
            refused: Refused {
                too_large: count(&self.too_large),
                not_connected: count(&self.not_connected),
                malformed: count(&self.malformed),
            },
            suppliers: suppliers.len() as u64,
            undistributed,
            consumers: consumers.iter().map(|it| it.statistics()).collect(),
            departed: registry.departed(),
            connected_suppliers: suppliers.iter().map(|it| it.statistics()).collect(),
        }
    }

    /// Prepares the change of all consumers and lanes to other urgencies. Until it is carried out or dropped, nobody connects.
    ///
    /// # Errors
    /// The part that cannot change.
    pub(crate) fn reorder(&self, source: &dyn PrioritySource) -> Result<Reorder<'_>, String> {
        Reorder::prepare(&self.lanes, self.registry.lock(), source)
    }

    /// Carries out a change.
    pub(crate) fn carry_out(&self, reorder: Reorder<'_>) {
        reorder.carry_out(&self.subscriptions, &self.reorders);
        self.note_change();
    }

    /// Connects a supplier.
    ///
    /// # Errors
    /// If its events would break a deadline, it is connected already, its proxy is gone, or the channel ends.
    pub(crate) fn connect_supplier(
        &self,
        supplier: &ChannelSupplier,
        reference: Option<&PushSupplier>,
        qos: SupplierQos,
    ) -> Result<(), ConnectSupplierError> {
        let registry = self.open_registry()?;
        registry.check_supplier(supplier.number())?;
        self.admit(|| flows(&registry, None, Some(&qos)))?;
        let connected = supplier.connect(reference, qos, self.config.ping_timeout);
        drop(registry);
        if let Err(already) = connected {
            self.note_fewer_events();
            return Err(ConnectSupplierError::AlreadyConnected(already));
        }
        self.note_change();
        Ok(())
    }

    /// Asks the source of priorities, for [`ADMISSION_TIMEOUT`] at most, whether the events of its operations may go through the channel.
    /// A source that does not answer in time may have admitted them, so the keeper tells it later which events there are.
    fn admit(&self, flows: impl FnOnce() -> Vec<EventFlow>) -> Result<(), SystemException> {
        let Some(admission) = self.priorities.admission() else {
            return Ok(());
        };
        let flows = flows();
        let name = self.name();
        let admitted = rtorb::with_deadline(ADMISSION_TIMEOUT, || admission.admit(&name, &flows));
        *self.admitted.lock() = admitted.is_ok().then_some(flows);
        admitted.map_err(|reason| {
            // The keeper is not woken: it may be the caller.
            self.may_have_fewer.store(true, Ordering::SeqCst);
            local::NOT_ADMITTED.with_detail(reason)
        })
    }

    /// Returns a name that no other running channel has, and that this one has again after a restart at the same endpoint: its key, its
    /// endpoints and its host.
    fn name(&self) -> String {
        let endpoints: Vec<String> = (self.orb.endpoints().iter())
            .map(ToString::to_string)
            .collect();
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let (key, endpoints) = (&self.config.key, endpoints.join(" "));
        format!("{key} at {endpoints} of {}", host.trim())
    }

    /// Finds out how urgent a subscription is. The source may take its time, so no lock is held meanwhile.
    ///
    /// # Errors
    /// BAD_PARAM for an unknown `rt_info`, TRANSIENT if the source does not tell its urgency, OBJECT_NOT_EXIST if the channel ends.
    fn place(&self, subscription: &Subscription) -> Result<Placed<'_>, SystemException> {
        loop {
            let seen = self.reorders.load(Ordering::Acquire);
            let most = most_urgent(&*self.priorities, subscription.rt_infos());
            let (urgency, rt_info) = most.map_err(|error| match error {
                UrgencyError::UnknownRtInfo(_) => ExceptionKind::BadParam,
                UrgencyError::NotTold { .. } => ExceptionKind::Transient,
            })?;
            let registry = self.open_registry()?;
            if seen == self.reorders.load(Ordering::Acquire) {
                return Ok(Placed {
                    registry,
                    urgency,
                    rt_info,
                });
            }
        }
    }

    fn lane_of(&self, priority: Priority) -> &Arc<Lane<Consumer>> {
        let priorities: Vec<Priority> = self.lanes.iter().map(|lane| lane.priority()).collect();
        &self.lanes[lane_for(priority, &priorities)]
    }

    fn deactivate(&self, proxy: Option<ObjectRef>) {
        if let Some(proxy) = proxy {
            // It fails if another thread deactivated the proxy first.
            let _ = self.poa.deactivate(&proxy);
        }
    }
}

/// Why a supplier is not connected.
#[derive(Debug)]
pub(crate) enum ConnectSupplierError {
    AlreadyConnected(AlreadyConnected),
    System(SystemException),
}

impl From<SystemException> for ConnectSupplierError {
    fn from(exception: SystemException) -> Self {
        Self::System(exception)
    }
}

/// The most urgent of these `rt_info`s, and its urgency.
pub(crate) fn most_urgent(
    source: &dyn PrioritySource,
    rt_infos: &[i32],
) -> Result<(Urgency, i32), UrgencyError> {
    let mut most: Option<(Urgency, i32)> = None;
    for &rt_info in rt_infos {
        let urgency = source.urgency(rt_info)?;
        if most.is_none_or(|(most, _)| urgency.priority > most.priority) {
            most = Some((urgency, rt_info));
        }
    }
    Ok(most.unwrap_or((Urgency::of(Priority::MIN), 0)))
}

/// The index of the least urgent priority of a lane that is at least as urgent as `priority`, or of the most urgent one if there is
/// none.
pub(crate) fn lane_for(priority: Priority, lanes: &[Priority]) -> usize {
    let all = || lanes.iter().enumerate();
    let urgent_enough = all().filter(|(_, lane)| **lane >= priority);
    let found = urgent_enough
        .min_by_key(|(_, lane)| **lane)
        .or_else(|| all().max_by_key(|(_, lane)| **lane));
    found.map_or(0, |(index, _)| index)
}

fn plan(request: SubscriptionRequest, placed: &Placed<'_>) -> Plan {
    let SubscriptionRequest {
        subscription,
        is_gateway,
    } = request;
    Plan {
        priority: placed.urgency.priority,
        subscribed: SubscribedKeys {
            keys: subscription.keys().to_vec(),
            rt_info: placed.rt_info,
            rt_infos: subscription.rt_infos().to_vec(),
            is_gateway,
        },
        service: Service {
            subscription,
            turn_after_ns: turn_after_ns(&placed.urgency),
        },
    }
}

pub(crate) fn turn_after_ns(urgency: &Urgency) -> Option<u64> {
    urgency.turn_after().map(|after| after.as_nanos() as u64)
}

/// The events from each supplier's operation to each consumer's, with a new consumer in place of the one with its number, and with
/// a new supplier.
fn flows(
    registry: &Registry,
    consumer: Option<(u64, &SubscribedKeys)>,
    supplier: Option<&SupplierQos>,
) -> Vec<EventFlow> {
    let new = consumer.map(|(number, _)| number);
    let others = registry
        .subscribed()
        .filter(|(number, _)| Some(*number) != new);
    let consumers: Vec<&SubscribedKeys> = others.chain(consumer).map(|(_, it)| it).collect();
    let mut published = registry.published();
    let publications = supplier.iter().flat_map(|qos| &qos.publications);
    published
        .extend(publications.map(|it| (Key::of(&it.event.header), it.dependency_info.rt_info)));
    let mut counts: BTreeMap<(i32, i32), u32> = BTreeMap::new();
    for subscribed in consumers {
        let wanted = |key: &Key| {
            let keys = subscribed.keys.iter();
            keys.clone()
                .any(|own| own.matches(*key) || key.matches(*own))
        };
        let suppliers = published.iter().filter(|(key, _)| wanted(key));
        let suppliers: BTreeSet<i32> = suppliers.map(|(_, rt_info)| *rt_info).collect();
        for rt_info in suppliers {
            *counts.entry((rt_info, subscribed.rt_info)).or_default() += 1;
        }
    }
    let flow = |((supplier, consumer), count)| EventFlow {
        supplier,
        consumer,
        count,
    };
    counts.into_iter().map(flow).collect()
}

/// The time for the admission of a client's events: an analysis takes seconds at most. Meanwhile no other client connects, and the
/// keeper, which has to find those that hang, waits too; so it is less than the 30 s that an ORB gives a call.
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(5);

/// Gateways of one channel, and other observers.
const OBSERVERS_MAX: usize = 64;

#[cfg(test)]
pub(crate) mod tests;
