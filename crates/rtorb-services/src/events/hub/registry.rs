//! Who is at a channel: proxies, connected or not, and consumers that have departed. Never looked at while events are dispatched.

use crate::events::consumer::{Consumer, Departure};
use crate::events::filter::Key;
use crate::events::statistics::Departed;
use crate::events::subscriptions::Subscriber;
use crate::events::supplier::Supplier;
use rtorb::{ExceptionKind, ObjectRef, SystemException};
use rtorb_os::clock::monotonic_ns;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Proxies by their numbers.
#[derive(Debug)]
pub(crate) struct Registry {
    consumers: BTreeMap<u64, ConsumerSide>,
    suppliers: BTreeMap<u64, SupplierSide>,
    last_number: u64,
    free_slots: Vec<usize>,
    /// Departed, but some thread may still know them.
    leaving: Vec<Arc<Consumer>>,
    departed: Departed,
}

/// A proxy push supplier.
#[derive(Debug)]
struct ConsumerSide {
    object: ObjectRef,
    made_ns: u64,
    connected: Option<(Arc<Consumer>, Subscriber, Wish)>,
}

/// What a consumer wants, as observers are told.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) keys: Vec<Key>,
    /// Of the most urgent of its entries.
    pub(super) rt_info: i32,
    pub(super) is_gateway: bool,
}

/// A proxy push consumer.
#[derive(Debug)]
struct SupplierSide {
    object: ObjectRef,
    made_ns: u64,
    supplier: Arc<Supplier>,
}

impl Registry {
    pub(super) fn new(consumers_max: usize) -> Self {
        Self {
            consumers: BTreeMap::new(),
            suppliers: BTreeMap::new(),
            last_number: 0,
            free_slots: (0..consumers_max).rev().collect(),
            leaving: Vec::with_capacity(consumers_max),
            departed: Departed::default(),
        }
    }

    /// Makes a place for one more consumer, whose proxy `activate` makes for its number.
    ///
    /// # Errors
    /// NO_RESOURCES when there are as many as there may be.
    pub(crate) fn add_consumer(
        &mut self,
        consumers_max: usize,
        activate: impl FnOnce(u64) -> Result<ObjectRef, SystemException>,
    ) -> Result<ObjectRef, SystemException> {
        if self.consumers.len() >= consumers_max {
            return Err(ExceptionKind::NoResources.into());
        }
        self.last_number += 1;
        let object = activate(self.last_number)?;
        let side = ConsumerSide {
            object: object.clone(),
            made_ns: monotonic_ns(),
            connected: None,
        };
        self.consumers.insert(self.last_number, side);
        Ok(object)
    }

    /// As [`add_consumer`](Self::add_consumer), for a supplier.
    ///
    /// # Errors
    /// NO_RESOURCES when there are as many as there may be.
    pub(crate) fn add_supplier(
        &mut self,
        suppliers_max: usize,
        activate: impl FnOnce(&Arc<Supplier>) -> Result<ObjectRef, SystemException>,
    ) -> Result<ObjectRef, SystemException> {
        if self.suppliers.len() >= suppliers_max {
            return Err(ExceptionKind::NoResources.into());
        }
        self.last_number += 1;
        let supplier = Arc::new(Supplier::new(self.last_number));
        let object = activate(&supplier)?;
        let side = SupplierSide {
            object: object.clone(),
            made_ns: monotonic_ns(),
            supplier,
        };
        self.suppliers.insert(self.last_number, side);
        Ok(object)
    }

    /// A slot for the consumer that connects to the proxy of that number.
    ///
    /// # Errors
    /// OBJECT_NOT_EXIST when the proxy is gone, NO_RESOURCES when all slots are taken.
    pub(super) fn take_slot(&mut self, number: u64) -> Result<usize, SystemException> {
        if !self.consumers.contains_key(&number) {
            return Err(ExceptionKind::ObjectNotExist.into());
        }
        if self.free_slots.is_empty() {
            self.free_departed();
        }
        let slot = self.free_slots.pop();
        slot.ok_or_else(|| ExceptionKind::NoResources.into())
    }

    /// Notes who connected to a proxy for which there is a [slot](Self::take_slot).
    pub(super) fn connected(
        &mut self,
        consumer: &Arc<Consumer>,
        subscriber: Subscriber,
        wish: Wish,
    ) {
        if let Some(side) = self.consumers.get_mut(&consumer.number()) {
            side.connected = Some((Arc::clone(consumer), subscriber, wish));
        }
    }

    /// Notes what a connected consumer wants instead; how it stands in the lookup table.
    pub(super) fn resubscribed(&mut self, consumer: &Consumer, wish: Wish) -> Option<Subscriber> {
        let side = self.consumers.get_mut(&consumer.number())?;
        let (_, subscriber, former) = side.connected.as_mut()?;
        *former = wish;
        Some(*subscriber)
    }

    /// Tells everybody who changed its subscription that nobody reads the former table any more.
    pub(super) fn caught_up(&self) {
        let connected = self.consumers.values().flat_map(|side| &side.connected);
        connected.for_each(|(consumer, _, _)| consumer.caught_up());
    }

    /// Takes a departed consumer out, with its proxy.
    pub(super) fn forget_consumer(
        &mut self,
        consumer: &Arc<Consumer>,
    ) -> (Option<Subscriber>, Option<ObjectRef>) {
        let Some(side) = self.consumers.remove(&consumer.number()) else {
            return (None, None);
        };
        self.leaving.push(Arc::clone(consumer));
        let subscriber = side.connected.map(|(_, subscriber, _)| subscriber);
        (subscriber, Some(side.object))
    }

    /// Takes a proxy out to which no consumer is connected.
    pub(crate) fn forget_unused(&mut self, number: u64) -> Option<ObjectRef> {
        self.consumers.remove(&number).map(|side| side.object)
    }

    pub(super) fn forget_supplier(&mut self, number: u64) -> Option<ObjectRef> {
        let side = self.suppliers.remove(&number)?;
        side.supplier.disconnect();
        Some(side.object)
    }

    /// Takes out who was made before that and never connected; their proxies.
    pub(super) fn forget_unconnected(&mut self, before_ns: u64) -> Vec<ObjectRef> {
        let consumers = self.consumers.extract_if(.., |_, side| {
            side.connected.is_none() && side.made_ns < before_ns
        });
        let mut gone: Vec<_> = consumers.map(|(_, side)| side.object).collect();
        let suppliers = self.suppliers.extract_if(.., |_, side| {
            !side.supplier.is_connected() && side.made_ns < before_ns
        });
        gone.extend(suppliers.map(|(_, side)| side.object));
        gone
    }

    /// Takes out those departed that nobody else knows any more.
    pub(super) fn free_departed(&mut self) -> Vec<Arc<Consumer>> {
        let (known, freed) = core::mem::take(&mut self.leaving)
            .into_iter()
            .partition(|consumer| Arc::strong_count(consumer) > 1);
        self.leaving = known;
        for consumer in &freed {
            note(&mut self.departed, consumer);
            self.free_slots.push(consumer.slot());
        }
        freed
    }

    pub(super) fn connected_suppliers(&self) -> Vec<Arc<Supplier>> {
        let connected = self.suppliers.values().map(|side| &side.supplier);
        connected.filter(|it| it.is_connected()).cloned().collect()
    }

    /// Those departed, and what became of their events.
    pub(super) fn departed(&self) -> Departed {
        let mut departed = self.departed;
        for consumer in &self.leaving {
            note(&mut departed, consumer);
        }
        departed
    }

    /// What connected consumers want, gateways apart; those of the most urgent first.
    pub(super) fn wanted(&self) -> Vec<(Key, i32)> {
        let connected = self.consumers.values().flat_map(|side| &side.connected);
        let mut connected: Vec<_> = connected.filter(|it| !it.2.is_gateway).collect();
        connected.sort_by_key(|it| core::cmp::Reverse(it.0.lane().priority()));
        let keys = |wish: &Wish| {
            let rt_info = wish.rt_info;
            let keys = wish.keys.clone();
            keys.into_iter().map(move |key| (key, rt_info))
        };
        connected.iter().flat_map(|it| keys(&it.2)).collect()
    }

    /// What connected suppliers publish, gateways apart.
    pub(super) fn published(&self) -> Vec<(Key, i32)> {
        let suppliers = self.suppliers.values();
        let qos = suppliers.filter_map(|side| side.supplier.qos());
        let mut published = Vec::new();
        for qos in qos.filter(|qos| !qos.is_gateway) {
            published.extend(qos.publications.iter().map(|publication| {
                let key = Key::of(&publication.event.header);
                (key, publication.dependency_info.rt_info)
            }));
        }
        published
    }
}

fn note(departed: &mut Departed, consumer: &Consumer) {
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
