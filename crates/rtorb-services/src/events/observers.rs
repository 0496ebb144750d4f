//! The observers of a channel (RtecEventChannelAdmin::Observer): they get the union of all subscriptions and of all publications.
//!
//! The thread that calls [`Observers::update_next`] calls the observers, never a thread that dispatches events. An observer is called
//! only if a union has changed since its last call, so two gateways that observe each other's channels come to rest.

use std::collections::BTreeMap;
use std::time::Duration;

use rtorb::{ExceptionKind, SystemException, with_deadline};
use rtorb_os::sync::Mutex;

use super::event::{event_of, header};
use super::filter::Key;
use crate::stubs::rtec_event::rtec_base::{
    DependencyEnabledTypeT, DependencyInfo, DependencyTypeT,
};
use crate::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, Dependency, Observer, Publication, SupplierQos,
};
use crate::stubs::rtec_event::rtec_event_comm::{Event, EventHeader};

/// The observers of a channel.
#[derive(Debug)]
pub(crate) struct Observers {
    table: Mutex<ObserverTable>,
    observers_max: usize,
}

#[derive(Debug, Default)]
struct ObserverTable {
    /// Handles are never reused: removing one twice does no harm.
    last_handle: u32,
    entries: Vec<ObserverEntry>,
}

#[derive(Clone, Debug)]
struct ObserverEntry {
    handle: u32,
    observer: Observer,
    told_of_consumers: Option<ConsumerQos>,
    told_of_suppliers: Option<SupplierQos>,
    /// Calls in a row that failed.
    misses: u32,
    /// True from such a call to the next [`retry`](Observers::retry).
    awaits_retry: bool,
}

/// The unions that observers get: of subscriptions and of publications, without those of gateways.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unions {
    pub(crate) consumers: ConsumerQos,
    pub(crate) suppliers: SupplierQos,
}

impl Observers {
    /// An empty set with room for that many observers.
    pub(crate) fn new(observers_max: usize) -> Self {
        Self {
            table: Mutex::new(ObserverTable::default()),
            observers_max,
        }
    }

    /// Adds an observer and returns its handle, or `None` if there is no room. An [`update_next`](Self::update_next) calls it.
    pub(crate) fn append(&self, observer: Observer) -> Option<u32> {
        let mut table = self.table.lock();
        if table.entries.len() >= self.observers_max {
            return None;
        }
        let handle = table.last_handle.checked_add(1)?;
        table.last_handle = handle;
        table.entries.push(ObserverEntry {
            handle,
            observer,
            told_of_consumers: None,
            told_of_suppliers: None,
            misses: 0,
            awaits_retry: false,
        });
        Some(handle)
    }

    /// Removes an observer; false where there is none of that handle.
    pub(crate) fn remove(&self, handle: u32) -> bool {
        let mut table = self.table.lock();
        let before = table.entries.len();
        table.entries.retain(|entry| entry.handle != handle);
        table.entries.len() < before
    }

    /// The number of observers.
    pub(crate) fn len(&self) -> usize {
        self.table.lock().entries.len()
    }

    /// Has [`update_next`](Self::update_next) call those observers again whose last call failed. Returns false if there are none.
    pub(crate) fn retry(&self) -> bool {
        let mut any = false;
        for entry in &mut self.table.lock().entries {
            any |= core::mem::take(&mut entry.awaits_retry);
        }
        any
    }

    /// Calls the first observer whose unions have changed. Drops it if it does not exist, or has not answered within `timeout` several
    /// times in a row. Returns false if there is none.
    pub(crate) fn update_next(&self, unions: &Unions, timeout: Duration) -> bool {
        let is_due = |entry: &&ObserverEntry| !entry.awaits_retry && !entry.has(unions);
        let next = self.table.lock().entries.iter().find(is_due).cloned();
        let Some(mut entry) = next else {
            return false;
        };
        let observer = &entry.observer;
        let told = with_deadline(timeout, || {
            if entry.told_of_consumers.as_ref() != Some(&unions.consumers) {
                observer.update_consumer(&unions.consumers)?;
            }
            if entry.told_of_suppliers.as_ref() != Some(&unions.suppliers) {
                observer.update_supplier(&unions.suppliers)?;
            }
            Ok::<(), SystemException>(())
        });
        match told {
            Ok(()) => {
                entry.told_of_consumers = Some(unions.consumers.clone());
                entry.told_of_suppliers = Some(unions.suppliers.clone());
                entry.misses = 0;
            }
            Err(exception)
                if exception.kind != ExceptionKind::ObjectNotExist
                    && entry.misses + 1 < MISSES_MAX =>
            {
                entry.misses += 1;
                entry.awaits_retry = true;
            }
            Err(_) => {
                self.remove(entry.handle);
                return true;
            }
        }
        let mut table = self.table.lock();
        let own = table
            .entries
            .iter_mut()
            .find(|own| own.handle == entry.handle);
        // It may have been removed meanwhile.
        if let Some(own) = own {
            *own = entry;
        }
        true
    }
}

impl ObserverEntry {
    /// Returns true if the observer has received these unions.
    fn has(&self, unions: &Unions) -> bool {
        self.told_of_consumers.as_ref() == Some(&unions.consumers)
            && self.told_of_suppliers.as_ref() == Some(&unions.suppliers)
    }
}

impl Unions {
    /// Builds the unions from the keys of consumers and suppliers, each with its `rt_info`; the first `rt_info` of a key counts,
    /// so the most urgent consumer comes first.
    ///
    /// A key that a more general one covers is omitted, so a gateway subscribes to no event twice.
    pub(crate) fn of(
        wanted: impl IntoIterator<Item = (Key, i32)>,
        published: impl IntoIterator<Item = (Key, i32)>,
    ) -> Self {
        let dependencies = reduced(wanted)
            .into_iter()
            .map(|(key, rt_info)| Dependency {
                event: event(key),
                rt_info,
            });
        let publications = reduced(published)
            .into_iter()
            .map(|(key, rt_info)| Publication {
                event: event(key),
                dependency_info: DependencyInfo {
                    dependency_type: DependencyTypeT::OneWayCall,
                    number_of_calls: 1,
                    rt_info,
                    rt_info_depended_on: 0,
                    enabled: DependencyEnabledTypeT::DependencyEnabled,
                },
            });
        Self {
            consumers: ConsumerQos {
                dependencies: dependencies.collect(),
                is_gateway: false,
            },
            suppliers: SupplierQos {
                publications: publications.collect(),
                is_gateway: false,
            },
        }
    }
}

/// Each key once, in order, with its first value, without keys that another one covers.
fn reduced(keys: impl IntoIterator<Item = (Key, i32)>) -> BTreeMap<Key, i32> {
    let mut first = BTreeMap::new();
    for (key, rt_info) in keys {
        first.entry(key).or_insert(rt_info);
    }
    let all: Vec<Key> = first.keys().copied().collect();
    let is_covered = |key: &Key| key.wider().any(|wider| all.binary_search(&wider).is_ok());
    first.retain(|key, _| !is_covered(key));
    first
}

fn event(key: Key) -> Event {
    event_of(EventHeader {
        ttl: 1,
        ..header(key.event_type, key.source)
    })
}

/// A slow observer is not gone: a gateway never learns that it was dropped.
const MISSES_MAX: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stubs::rtec_event::rtec_event_channel_admin::ObserverServant;
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use rtorb::Orb;
    use std::sync::Arc;

    fn key(source: i32, event_type: i32) -> Key {
        Key { source, event_type }
    }

    fn unions(wanted: &[(Key, i32)]) -> Unions {
        Unions::of(wanted.iter().copied(), [])
    }

    fn keys(unions: &Unions) -> Vec<(Key, i32)> {
        let dependencies = unions.consumers.dependencies.iter();
        let keys =
            dependencies.map(|dependency| (Key::of(&dependency.event.header), dependency.rt_info));
        keys.collect()
    }

    #[test]
    fn a_union_has_each_key_once_and_none_that_another_covers() {
        let union = unions(&[
            (key(2, 20), 50),
            (key(1, 20), 50),
            (key(2, 20), 10),
            (key(3, 0), 10),
            (key(3, 21), 90),
        ]);
        let expected = [(key(1, 20), 50), (key(2, 20), 50), (key(3, 0), 10)];
        assert_eq!(keys(&union), expected);
        let any = unions(&[(key(1, 20), 1), (Key::ANY, 2), (key(0, 20), 3)]);
        assert_eq!(keys(&any), [(Key::ANY, 2)]);
        assert!(unions(&[]).consumers.dependencies.is_empty());
    }

    /// What an observer was told, without its first calls, which came too late.
    #[derive(Default)]
    struct Told(Mutex<Vec<usize>>, AtomicU32);

    impl ObserverServant for Told {
        fn update_consumer(&self, sub: &ConsumerQos) -> Result<(), SystemException> {
            let Told(told, late_calls) = self;
            let is_late = late_calls.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
            if is_late.is_ok() {
                return Err(ExceptionKind::Timeout.into());
            }
            told.lock().push(sub.dependencies.len());
            Ok(())
        }

        fn update_supplier(&self, _pub: &SupplierQos) -> Result<(), SystemException> {
            Ok(())
        }
    }

    #[test]
    fn observers_are_told_what_they_do_not_know_and_dead_ones_are_dropped() {
        let orb = Orb::builder().build().expect("an ORB");
        let poa = orb.root_poa().expect("its adapter");
        let server = orb.clone();
        let serving = std::thread::spawn(move || server.run());
        let told = Arc::new(Told::default());
        let observer: Observer = poa.activate(Arc::clone(&told)).expect("an object");
        let observers = Observers::new(2);
        let handle = observers.append(observer.clone()).expect("room");
        let (one, none) = (unions(&[(key(1, 20), 0)]), unions(&[]));
        let update = |union: &Unions| {
            let before = observers.len();
            while observers.update_next(union, TIMEOUT) {}
            before - observers.len()
        };
        for union in [&one, &one, &none, &one] {
            assert_eq!(update(union), 0);
        }
        assert_eq!(*told.0.lock(), [1, 0, 1], "what was new each time");

        let dead: Observer = poa.activate(Told::default()).expect("an object");
        poa.deactivate(dead.as_object()).expect("it was active");
        let gone = observers.append(dead.clone()).expect("room");
        assert_eq!(observers.append(dead), None, "two is the bound");
        assert_eq!(update(&one), 1);
        assert!(!observers.remove(gone), "it is dropped");
        assert!(observers.remove(handle));
        assert!(!observers.remove(handle));
        assert_eq!(observers.len(), 0);

        for _ in 0..2 {
            observers.append(observer.clone()).expect("room");
        }
        let calls = || told.0.lock().len();
        let before = calls();
        assert!(observers.update_next(&one, TIMEOUT));
        assert_eq!(calls(), before + 1, "one at a time");
        assert!(observers.update_next(&one, TIMEOUT));
        assert!(!observers.update_next(&one, TIMEOUT));
        assert_eq!(calls(), before + 2);
        orb.shutdown();
        serving.join().expect("no panic").expect("it served");
    }

    #[test]
    fn an_observer_that_is_late_is_called_again_and_dropped_only_if_that_lasts() {
        let orb = Orb::builder().build().expect("an ORB");
        let poa = orb.root_poa().expect("its adapter");
        poa.manager().activate();
        let told = Arc::new(Told::default());
        let observer: Observer = poa.activate(Arc::clone(&told)).expect("an object");
        let observers = Observers::new(2);
        observers.append(observer.clone()).expect("room");
        let update = |union: &Unions| while observers.update_next(union, TIMEOUT) {};
        let (one, none) = (unions(&[(key(1, 20), 0)]), unions(&[]));
        for union in [&one, &none] {
            told.1.store(MISSES_MAX - 1, Relaxed);
            for _ in 1..MISSES_MAX {
                // It waits for the retry, so that it delays no other observer.
                update(union);
                assert!(observers.retry());
            }
            update(union);
            assert!(!observers.retry(), "it has answered: the count begins anew");
        }
        assert_eq!(*told.0.lock(), [1, 0]);

        told.1.store(MISSES_MAX, Relaxed);
        for left in [1, 1, 0] {
            update(&one);
            assert_eq!(observers.len(), left);
            observers.retry();
        }
    }

    const TIMEOUT: Duration = Duration::from_secs(5);
}
