//! The registry of a channel: its proxies and the consumers that have departed. Dispatching never uses it.

use super::consumer::{Consumer, Departure};
use super::filter::Key;
use super::statistics::Departed;
use super::subscriptions::Subscriber;
use super::supplier::ChannelSupplier;
use rtorb::exception::local;
use rtorb::{ObjectRef, SystemException};
use rtorb_os::clock::monotonic_ns;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Proxies by number.
#[derive(Debug)]
pub(crate) struct Registry {
    consumers: BTreeMap<u64, ConsumerEntry>,
    suppliers: BTreeMap<u64, SupplierEntry>,
    last_number: u64,
    free_slots: Vec<usize>,
    /// Consumers that have departed and may still be in use by a thread.
    leaving: Vec<Arc<Consumer>>,
    departed: Departed,
}

/// A proxy push supplier.
#[derive(Debug)]
struct ConsumerEntry {
    object: ObjectRef,
    made_ns: u64,
    connected: Option<ConnectedConsumer>,
}

#[derive(Debug)]
struct ConnectedConsumer {
    consumer: Arc<Consumer>,
    subscriber: Subscriber,
    subscribed: SubscribedKeys,
}

/// A consumer's share of the union of subscriptions that observers get.
#[derive(Clone, Debug)]
pub(crate) struct SubscribedKeys {
    pub(crate) keys: Vec<Key>,
    /// The `rt_info` of its most urgent entry.
    pub(crate) rt_info: i32,
    /// Those of all entries.
    pub(crate) rt_infos: Vec<i32>,
    pub(crate) is_gateway: bool,
}

/// A proxy push consumer.
#[derive(Debug)]
struct SupplierEntry {
    object: ObjectRef,
    made_ns: u64,
    supplier: Arc<ChannelSupplier>,
}

/// What is left of a consumer that the registry has forgotten.
#[derive(Debug, Default)]
pub(crate) struct ForgottenConsumer {
    pub(crate) subscriber: Option<Subscriber>,
    pub(crate) proxy: Option<ObjectRef>,
}

impl Registry {
    pub(crate) fn new(consumers_max: usize) -> Self {
        Self {
            consumers: BTreeMap::new(),
            suppliers: BTreeMap::new(),
            last_number: 0,
            free_slots: (0..consumers_max).rev().collect(),
            leaving: Vec::with_capacity(consumers_max),
            departed: Departed::default(),
        }
    }

    /// Adds a proxy for a consumer. `activate` makes its object.
    ///
    /// # Errors
    /// NO_RESOURCES if there are `consumers_max` proxies.
    pub(crate) fn add_consumer(
        &mut self,
        consumers_max: usize,
        activate: impl FnOnce(u64) -> Result<ObjectRef, SystemException>,
    ) -> Result<ObjectRef, SystemException> {
        if self.consumers.len() >= consumers_max {
            return Err(local::SERVICE_FULL);
        }
        self.last_number += 1;
        let object = activate(self.last_number)?;
        let entry = ConsumerEntry {
            object: object.clone(),
            made_ns: monotonic_ns(),
            connected: None,
        };
        self.consumers.insert(self.last_number, entry);
        Ok(object)
    }

    /// Adds a proxy for a supplier. `activate` makes its object.
    ///
    /// # Errors
    /// NO_RESOURCES if there are `suppliers_max` proxies.
    pub(crate) fn add_supplier(
        &mut self,
        suppliers_max: usize,
        activate: impl FnOnce(&Arc<ChannelSupplier>) -> Result<ObjectRef, SystemException>,
    ) -> Result<ObjectRef, SystemException> {
        if self.suppliers.len() >= suppliers_max {
            return Err(local::SERVICE_FULL);
        }
        self.last_number += 1;
        let supplier = Arc::new(ChannelSupplier::new(self.last_number));
        let object = activate(&supplier)?;
        let entry = SupplierEntry {
            object: object.clone(),
            made_ns: monotonic_ns(),
            supplier,
        };
        self.suppliers.insert(self.last_number, entry);
        Ok(object)
    }

    /// Checks that a proxy for a consumer exists.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if it does not.
    pub(crate) fn check_consumer(&self, number: u64) -> Result<(), SystemException> {
        check(&self.consumers, number)
    }

    /// Checks that a proxy for a supplier exists.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if it does not.
    pub(crate) fn check_supplier(&self, number: u64) -> Result<(), SystemException> {
        check(&self.suppliers, number)
    }

    /// Takes a slot for the consumer that connects to the proxy with that number.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST if there is no such proxy, NO_RESOURCES if all slots are taken.
    pub(crate) fn take_slot(&mut self, number: u64) -> Result<usize, SystemException> {
        self.check_consumer(number)?;
        if self.free_slots.is_empty() {
            self.free_departed();
        }
        let slot = self.free_slots.pop();
        slot.ok_or(local::SERVICE_FULL)
    }

    /// Frees a slot that was taken for a consumer which does not connect.
    pub(crate) fn give_slot_back(&mut self, slot: usize) {
        self.free_slots.push(slot);
    }

    /// Notes that a consumer with a [slot](Self::take_slot) connected to its proxy.
    pub(crate) fn connected(
        &mut self,
        consumer: &Arc<Consumer>,
        subscriber: Subscriber,
        subscribed: SubscribedKeys,
    ) {
        if let Some(entry) = self.consumers.get_mut(&consumer.number()) {
            entry.connected = Some(ConnectedConsumer {
                consumer: Arc::clone(consumer),
                subscriber,
                subscribed,
            });
        }
    }

    /// Notes the new subscription of a connected consumer. Returns its handle in the lookup table.
    pub(crate) fn resubscribed(
        &mut self,
        consumer: &Consumer,
        subscribed: SubscribedKeys,
    ) -> Option<Subscriber> {
        let entry = self.consumers.get_mut(&consumer.number())?;
        let connected = entry.connected.as_mut()?;
        connected.subscribed = subscribed;
        Some(connected.subscriber)
    }

    /// Tells all consumers that no thread reads a former lookup table any more.
    pub(crate) fn lookup_is_current(&self) {
        let connected = self.connected_consumers();
        connected.for_each(|connected| connected.consumer.lookup_is_current());
    }

    /// Removes a departed consumer and its proxy.
    pub(crate) fn forget_consumer(&mut self, consumer: &Arc<Consumer>) -> ForgottenConsumer {
        let Some(entry) = self.consumers.remove(&consumer.number()) else {
            return ForgottenConsumer::default();
        };
        self.leaving.push(Arc::clone(consumer));
        ForgottenConsumer {
            subscriber: entry.connected.map(|connected| connected.subscriber),
            proxy: Some(entry.object),
        }
    }

    /// Removes a proxy to which no consumer is connected.
    pub(crate) fn forget_unused(&mut self, number: u64) -> Option<ObjectRef> {
        self.consumers.remove(&number).map(|entry| entry.object)
    }

    pub(crate) fn forget_supplier(&mut self, number: u64) -> Option<ObjectRef> {
        let entry = self.suppliers.remove(&number)?;
        entry.supplier.disconnect();
        Some(entry.object)
    }

    /// Removes the proxies that were made before `before_ns` and never connected, and returns them.
    pub(crate) fn forget_unconnected(&mut self, before_ns: u64) -> Vec<ObjectRef> {
        let consumers = self.consumers.extract_if(.., |_, entry| {
            entry.connected.is_none() && entry.made_ns < before_ns
        });
        let mut removed: Vec<_> = consumers.map(|(_, entry)| entry.object).collect();
        let suppliers = self.suppliers.extract_if(.., |_, entry| {
            !entry.supplier.is_connected() && entry.made_ns < before_ns
        });
        removed.extend(suppliers.map(|(_, entry)| entry.object));
        removed
    }

    /// Removes the departed consumers that no thread uses any more, and returns them.
    pub(crate) fn free_departed(&mut self) -> Vec<Arc<Consumer>> {
        let (used, freed) = core::mem::take(&mut self.leaving)
            .into_iter()
            .partition(|consumer| Arc::strong_count(consumer) > 1);
        self.leaving = used;
        for consumer in &freed {
            count_departed(&mut self.departed, consumer);
            self.free_slots.push(consumer.slot());
        }
        freed
    }

    pub(crate) fn connected_suppliers(&self) -> Vec<Arc<ChannelSupplier>> {
        let suppliers = self.suppliers.values().map(|entry| &entry.supplier);
        suppliers.filter(|it| it.is_connected()).cloned().collect()
    }

    /// The number of departed consumers and the fate of their events.
    pub(crate) fn departed(&self) -> Departed {
        let mut departed = self.departed;
        for consumer in &self.leaving {
            count_departed(&mut departed, consumer);
        }
        departed
    }

    /// The keys that connected consumers subscribe to, each with its `rt_info`; the most urgent consumer first, without gateways.
    pub(crate) fn wanted(&self) -> Vec<(Key, i32)> {
        let connected = self.connected_consumers();
        let mut connected: Vec<_> = connected.filter(|it| !it.subscribed.is_gateway).collect();
        connected.sort_by_key(|it| core::cmp::Reverse(it.consumer.lane().priority()));
        let subscribed = connected.into_iter().map(|it| &it.subscribed);
        subscribed
            .flat_map(|it| it.keys.iter().map(|&key| (key, it.rt_info)))
            .collect()
    }

    /// The keys that connected suppliers publish, each with its `rt_info`, without gateways.
    pub(crate) fn published(&self) -> Vec<(Key, i32)> {
        let suppliers = self.suppliers.values();
        let qos = suppliers.filter_map(|entry| entry.supplier.qos());
        let mut published = Vec::new();
        for qos in qos.filter(|qos| !qos.is_gateway) {
            published.extend(qos.publications.iter().map(|publication| {
                let key = Key::of(&publication.event.header);
                (key, publication.dependency_info.rt_info)
            }));
        }
        published
    }

    /// The connected consumers with the `rt_info`s of their subscriptions.
    pub(crate) fn rt_infos(&self) -> impl Iterator<Item = (&Arc<Consumer>, &[i32])> {
        let connected = self.connected_consumers();
        connected.map(|it| (&it.consumer, &it.subscribed.rt_infos[..]))
    }

    /// The connected consumers, by number, with their subscriptions.
    pub(crate) fn subscribed(&self) -> impl Iterator<Item = (u64, &SubscribedKeys)> {
        let connected = self.connected_consumers();
        connected.map(|it| (it.consumer.number(), &it.subscribed))
    }

    fn connected_consumers(&self) -> impl Iterator<Item = &ConnectedConsumer> {
        self.consumers.values().flat_map(|entry| &entry.connected)
    }
}

/// Checks that there is a proxy with that number.
///
/// # Errors
/// OBJECT_NOT_EXIST if there is none.
fn check<P>(proxies: &BTreeMap<u64, P>, number: u64) -> Result<(), SystemException> {
    let known = proxies.get(&number);
    known.map(|_| ()).ok_or(local::PROXY_GONE)
}

fn count_departed(departed: &mut Departed, consumer: &Consumer) {
    let Some(departure) = consumer.departure() else {
        return;
    };
    *match departure {
        Departure::Disconnected => &mut departed.disconnected,
        Departure::Dead => &mut departed.dead,
        Departure::Hung => &mut departed.hung,
        Departure::Full => &mut departed.full,
    } += 1;
    departed.events.add(&consumer.counts());
}
