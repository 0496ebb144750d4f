//! What all threads of a channel share, and the way of an event through it.

mod registry;

use super::ChannelConfig;
use super::consumer::{Consumer, Place, Service};
use super::dispatch::dispatch;
use super::event::Incoming;
use super::filter::{FilterLimits, Subscription, SubscriptionError};
use super::keeper::Mailbox;
use super::lane::Lane;
use super::observers::{Observers, Unions};
use super::outlet::Outlet;
use super::priority_source::{PrioritySource, Urgency, UrgencyError};
use super::statistics::{Refused, Statistics};
use super::subscriptions::Subscriptions;
use super::supplier::Supplier;
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, ProxyPushSupplierConnectPushConsumerError, TypeError,
};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use registry::{Registry, Wish};
use rtorb::rt::{Priority, RtCurrent};
use rtorb::{ExceptionKind, ObjectRef, Orb, Poa, SystemException};
use rtorb_os::clock::monotonic_ns;
use rtorb_os::sync::Mutex;
use std::sync::Arc;

/// A channel, as its servants and threads see it.
#[derive(Debug)]
pub(crate) struct Hub {
    config: ChannelConfig,
    priorities: Arc<dyn PrioritySource>,
    orb: Orb,
    current: RtCurrent,
    poa: Poa,
    lanes: Vec<Arc<Lane>>,
    mailbox: Arc<Mailbox>,
    subscriptions: Subscriptions<Arc<Consumer>>,
    registry: Mutex<Registry>,
    observers: Observers,
    /// True when observers have something to be told.
    has_changed: AtomicBool,
    is_ending: AtomicBool,
    received: AtomicU64,
    too_large: AtomicU64,
    not_connected: AtomicU64,
    malformed: AtomicU64,
}

impl Hub {
    /// A channel whose objects are `poa`'s; its threads are still to be started.
    pub(crate) fn new(
        config: ChannelConfig,
        priorities: Arc<dyn PrioritySource>,
        (orb, poa): (Orb, Poa),
    ) -> Self {
        let consumers_max = config.consumers_max;
        Self {
            lanes: Lane::all(&config),
            mailbox: Arc::new(Mailbox::new(consumers_max)),
            subscriptions: Subscriptions::new(),
            registry: Mutex::new(Registry::new(consumers_max)),
            observers: Observers::new(OBSERVERS_MAX),
            has_changed: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
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

    /// Ends the channel's objects, and gives its key back.
    pub(crate) fn end_objects(&self) {
        self.orb.unbind_object_key(&self.config.key);
        self.poa.destroy();
    }

    pub(crate) fn lanes(&self) -> &[Arc<Lane>] {
        &self.lanes
    }

    pub(crate) fn mailbox(&self) -> &Arc<Mailbox> {
        &self.mailbox
    }

    pub(crate) fn forget_unused(&self, number: u64) {
        let proxy = self.registry.lock().forget_unused(number);
        self.deactivate(proxy);
    }

    pub(crate) fn observers(&self) -> &Observers {
        &self.observers
    }

    /// The CORBA priority of the calling thread; the least urgent where none is known.
    pub(crate) fn caller_priority(&self) -> Priority {
        self.current.the_priority().unwrap_or(Priority::MIN)
    }

    /// Hands an event to all consumers that want it, the most urgent first; the caller has that priority.
    pub(crate) fn dispatch(&self, event: &Incoming<'_>, priority: Priority) {
        self.received.fetch_add(1, Ordering::Relaxed);
        if event.message.octets.len() > self.config.event_octets_max {
            self.too_large.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let to = (&self.subscriptions, self.config.dispatching);
        dispatch(event, priority, to);
    }

    /// Who wants what.
    pub(crate) fn subscriptions(&self) -> &Subscriptions<Arc<Consumer>> {
        &self.subscriptions
    }

    /// Counts a message that is no events.
    pub(crate) fn note_malformed(&self) {
        self.malformed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts events of nobody's.
    pub(crate) fn note_not_connected(&self, events: u64) {
        self.received.fetch_add(events, Ordering::Relaxed);
        self.not_connected.fetch_add(events, Ordering::Relaxed);
    }

    /// Reads what a consumer wants.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn subscription(
        &self,
        qos: &ConsumerQos,
    ) -> Result<Subscription, SubscriptionError> {
        let limits = FilterLimits {
            entries_max: self.config.entries_max,
            ..FilterLimits::default()
        };
        Subscription::build(qos, self.config.filter, &limits, monotonic_ns())
    }

    /// Makes a consumer of whoever is behind `outlet`; its connection is opened soon, and its events wait until then.
    ///
    /// # Errors
    /// BAD_PARAM for an `rt_info` that nobody knows; NO_RESOURCES when there are `consumers_max`; OBJECT_NOT_EXIST when the
    /// channel ends.
    pub(crate) fn connect_consumer(
        &self,
        number: u64,
        (subscription, is_gateway): (Subscription, bool),
        outlet: Arc<dyn Outlet>,
    ) -> Result<Arc<Consumer>, SystemException> {
        let (service, priority, wish) = self.service(subscription, is_gateway)?;
        let mut registry = self.registry.lock();
        let slot = registry.take_slot(number)?;
        let place = Place {
            number,
            slot,
            lane: Arc::clone(self.lane_of(priority)),
        };
        let ends = (Arc::clone(&self.mailbox), &self.config);
        let consumer = Arc::new(Consumer::new(place, service, outlet, ends));
        let urgency = i32::from(priority.get());
        let subscriber = self
            .subscriptions
            .insert(urgency, &wish.keys, Arc::clone(&consumer));
        registry.connected(&consumer, subscriber, wish);
        drop(registry);
        consumer.start();
        self.note_change();
        self.mailbox.call(Arc::clone(&consumer));
        Ok(consumer)
    }

    /// Gives a connected consumer another subscription. An event that both ask for is neither lost nor repeated: what waits
    /// stays, and every dispatch and every distribution of its lane finds the consumer once.
    ///
    /// # Errors
    /// TypeError for one that is another lane's: its events would come two ways, and overtake each other. BAD_PARAM for an
    /// `rt_info` that nobody knows; OBJECT_NOT_EXIST when the consumer has departed.
    pub(crate) fn resubscribe_consumer(
        &self,
        consumer: &Arc<Consumer>,
        (subscription, is_gateway): (Subscription, bool),
    ) -> Result<(), ProxyPushSupplierConnectPushConsumerError> {
        let (service, priority, wish) = self.service(subscription, is_gateway)?;
        if !Arc::ptr_eq(self.lane_of(priority), consumer.lane()) {
            return Err(TypeError.into());
        }
        let departed = || SystemException::from(ExceptionKind::ObjectNotExist);
        let keys = wish.keys.clone();
        let mut registry = self.registry.lock();
        let subscriber = registry.resubscribed(consumer, wish);
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

    /// Takes a consumer that has departed, and its proxy, out of everything.
    pub(crate) fn forget_consumer(&self, consumer: &Arc<Consumer>) {
        let (subscriber, proxy) = self.registry.lock().forget_consumer(consumer);
        if let Some(subscriber) = subscriber {
            self.subscriptions.remove(subscriber);
            self.note_change();
        }
        self.deactivate(proxy);
    }

    /// Takes a supplier and its proxy out of everything.
    pub(crate) fn forget_supplier(&self, number: u64) {
        let proxy = self.registry.lock().forget_supplier(number);
        self.note_change();
        self.deactivate(proxy);
    }

    /// Takes out proxies to which nobody connected for too long.
    pub(crate) fn forget_unconnected(&self, now_ns: u64) {
        let before_ns = now_ns.saturating_sub(self.config.connect_within.as_nanos() as u64);
        let gone = self.registry.lock().forget_unconnected(before_ns);
        for proxy in gone {
            self.deactivate(Some(proxy));
        }
    }

    /// Frees consumers that have departed and that no thread knows any more.
    pub(crate) fn free_departed(&self) {
        let mut registry = self.registry.lock();
        if self.subscriptions.free_retired() == 0 {
            registry.caught_up();
        }
        let freed = registry.free_departed();
        drop(registry);
        drop(freed);
    }

    pub(crate) fn registry(&self) -> &Mutex<Registry> {
        &self.registry
    }

    /// The connected consumers, the most urgent first.
    pub(crate) fn consumers(&self) -> Vec<Arc<Consumer>> {
        self.subscriptions.snapshot().all().to_vec()
    }

    /// The connected suppliers.
    pub(crate) fn suppliers(&self) -> Vec<Arc<Supplier>> {
        self.registry.lock().connected_suppliers()
    }

    /// Says that observers have something to be told; the keeper does it.
    pub(crate) fn note_change(&self) {
        self.has_changed.store(true, Ordering::SeqCst);
        self.mailbox.ring();
    }

    /// Tells observers what has changed, if something has; may wait. The keeper's.
    pub(crate) fn tell_observers(&self) {
        if !self.has_changed.swap(false, Ordering::SeqCst) || self.observers.len() == 0 {
            return;
        }
        let unions = {
            let registry = self.registry.lock();
            Unions::of(registry.wanted(), registry.published())
        };
        self.observers.tell(&unions, self.config.ping_timeout);
    }

    /// Has the keeper end the channel; true for who asked first.
    pub(crate) fn end(&self) -> bool {
        let is_first = !self.is_ending.swap(true, Ordering::SeqCst);
        self.mailbox.stop();
        is_first
    }

    /// True from the first [`end`](Self::end) on.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Before the consumers' counts: what is not in it is in those.
        let undistributed = self.lanes.iter().map(|lane| lane.undistributed() as u64);
        let undistributed = undistributed.sum();
        let consumers = self.consumers();
        let registry = self.registry.lock();
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

    /// How a subscription is served, how urgently, and what observers are told of it.
    fn service(
        &self,
        subscription: Subscription,
        is_gateway: bool,
    ) -> Result<(Service, Priority, Wish), SystemException> {
        let (urgency, rt_info) = self.urgency(&subscription)?;
        let wish = Wish {
            keys: subscription.keys().to_vec(),
            rt_info,
            is_gateway,
        };
        let service = Service {
            subscription,
            turn_after_ns: urgency.turn_after().map(|after| after.as_nanos() as u64),
        };
        Ok((service, urgency.priority, wish))
    }

    /// The most urgent of those that the subscription names, and its `rt_info`.
    fn urgency(&self, subscription: &Subscription) -> Result<(Urgency, i32), SystemException> {
        let mut most: Option<(Urgency, i32)> = None;
        for &rt_info in subscription.rt_infos() {
            let urgency = self.priorities.urgency(rt_info);
            let urgency = urgency.map_err(|error| match error {
                UrgencyError::UnknownRtInfo(_) => ExceptionKind::BadParam,
                UrgencyError::NotTold { .. } => ExceptionKind::Transient,
            })?;
            if most.is_none_or(|(most, _)| urgency.priority > most.priority) {
                most = Some((urgency, rt_info));
            }
        }
        Ok(most.unwrap_or((Urgency::of(Priority::MIN), 0)))
    }

    /// The least urgent lane that is at least that urgent; the most urgent one where there is none.
    fn lane_of(&self, priority: Priority) -> &Arc<Lane> {
        let urgent_enough = self.lanes.iter().rev();
        let mut urgent_enough = urgent_enough.filter(|lane| lane.priority() >= priority);
        urgent_enough.next().unwrap_or(&self.lanes[0])
    }

    fn deactivate(&self, proxy: Option<ObjectRef>) {
        if let Some(proxy) = proxy {
            // Whoever was first has ended it.
            let _ = self.poa.deactivate(&proxy);
        }
    }
}

/// Gateways of one channel, and whoever else looks.
const OBSERVERS_MAX: usize = 64;

#[cfg(test)]
mod tests;
