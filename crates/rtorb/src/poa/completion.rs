//! The end of the calls, and of the objects, of the adapters of a manager.

use super::adapter::{Adapter, Objects, ServantSourceKind, destroyed};
use super::adapters::Adapters;
use super::manager::PoaManager;
use crate::clock::{monotonic_ns, sleep_until};
use crate::deadline;
use crate::exception::{SystemException, local};
use crate::server::{ManagerState, PoaManagerState, is_in_upcall};
use core::mem;
use core::time::Duration;
use rtorb_os::slab::Key;
use rtorb_wire::connection::Deadline;
use std::sync::Arc;

/// What an adapter still does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AdapterStage {
    #[default]
    Activates,
    /// Its objects were ended with its manager, and it activates no others.
    Etherealized,
    Destroyed,
}

/// How often a thread looks whether the calls have ended, in nanoseconds. A call that tells its end would cost each call more.
const LOOK_NS: u64 = 1_000_000;

impl PoaManager {
    /// [Deactivates](Self::deactivate) the manager, and ends the active objects of those of its adapters that have a servant activator
    /// (`etherealize_objects` of the standard): [`clean_up`](super::ServantActivator::clean_up) gets each servant once its last call has
    /// ended. An adapter whose objects were ended so activates no others: OBJ_ADAPTER 1.
    ///
    /// Objects of its other adapters stay active. It does not wait: see [`wait_for_completion`](Self::wait_for_completion).
    //= CORBA 3 §POAManager Interface
    //# Deactivation with etherealize_objects etherealizes the active objects of the adapters that have the RETAIN and USE_SERVANT_MANAGER
    //# policies.
    pub fn deactivate_and_etherealize(&self) {
        self.deactivate();
        for adapter in self.adapters() {
            adapter.etherealize_objects(&self.core);
        }
    }

    /// Waits until the calls that are in progress in the adapters of this manager have ended, and the servants of objects that were
    /// deactivated are etherealized (`wait_for_completion` of the standard). Call it after [`hold_requests`](Self::hold_requests),
    /// [`discard_requests`](Self::discard_requests) or a deactivation: no new calls begin then. It returns also when the state of the manager
    /// changes.
    ///
    /// A request that the manager holds is not in progress, nor is a call whose reply its servant has deferred: the servant has returned. A
    /// destroyed adapter has no manager. Calls pay nothing for this: the waiting thread looks each millisecond.
    ///
    /// # Errors
    /// BAD_INV_ORDER 3 in a servant of the same ORB, whose call would wait for itself; TIMEOUT `0x72746014` if calls are in progress after
    /// `timeout`, `None` for no timeout, or after the [deadline](crate::with_deadline) that the thread inherits.
    //= CORBA 3 §POAManager Interface
    //# wait_for_completion waits for the requests in progress, or until the state changes; in an invocation of the same ORB it raises
    //# BAD_INV_ORDER with standard minor code 3.
    pub fn wait_for_completion(
        &self,
        timeout: impl Into<Option<Duration>>,
    ) -> Result<(), SystemException> {
        if is_in_upcall(&self.core.server) {
            return Err(local::WOULD_DEADLOCK);
        }
        let end = Deadline::new(monotonic_ns(), timeout.into());
        let end = end.no_later_than(deadline::inherited_ns());
        let entered = self.state();
        let objects = &self.core.server.objects;
        for adapter in self.adapters() {
            for place in adapter.places() {
                self.wait_until(entered, end, || !objects.is_used(place))?;
            }
            self.wait_until(entered, end, || !adapter.has_ending_objects())?;
        }
        Ok(())
    }

    /// Waits until `is_done` returns true, or the manager leaves the state.
    ///
    /// # Errors
    /// TIMEOUT at `end`.
    fn wait_until(
        &self,
        entered: PoaManagerState,
        end: Deadline,
        is_done: impl Fn() -> bool,
    ) -> Result<(), SystemException> {
        let end_ns = end.at_ns().unwrap_or(deadline::NONE_NS);
        while self.state() == entered && !is_done() {
            let now_ns = monotonic_ns();
            if now_ns >= end_ns {
                return Err(local::CALLS_IN_PROGRESS);
            }
            sleep_until(end_ns.min(now_ns + LOOK_NS));
        }
        Ok(())
    }

    /// Returns the adapters of this manager, children before their parents.
    fn adapters(&self) -> Vec<Arc<Adapter>> {
        let mut found = Vec::new();
        self.core.root.add_managed_by(&self.state, &mut found);
        found
    }
}

impl Adapter {
    /// Adds this adapter and those under it that the manager has, children first.
    fn add_managed_by(self: &Arc<Self>, manager: &Arc<ManagerState>, found: &mut Vec<Arc<Self>>) {
        let children: Vec<_> = self.children.lock().values().cloned().collect();
        for child in children {
            child.add_managed_by(manager, found);
        }
        if Arc::ptr_eq(&self.manager, manager) {
            found.push(Arc::clone(self));
        }
    }

    /// Ends the active objects, and activates no others from now on, if a servant activator makes those that are not active.
    fn etherealize_objects(&self, orb: &Adapters) {
        let ended = {
            let mut objects = self.objects.lock();
            let kind = objects.others.map(|others| others.kind);
            if kind != Some(ServantSourceKind::ServantActivator) {
                return;
            }
            objects.stage = AdapterStage::Etherealized;
            mem::take(&mut objects.by_id)
        };
        self.end_objects(orb, ended);
    }

    /// Returns the places of what serves requests now: the active objects, and what serves the others.
    fn places(&self) -> Vec<Key> {
        let objects = self.objects.lock();
        let others = objects.others.as_ref().map(|others| &others.place);
        objects.by_id.values().chain(others).copied().collect()
    }

    /// Returns true if the servant of an object that was deactivated is in use, or is being etherealized.
    fn has_ending_objects(&self) -> bool {
        // Objects are added and deactivated under the lock.
        let objects = self.objects.lock();
        let active = objects.by_id.len() + usize::from(objects.others.is_some());
        self.present_objects() > active
    }
}

impl Objects {
    /// Returns OBJ_ADAPTER if the adapter is destroyed.
    pub(super) fn check_exists(&self) -> Result<(), SystemException> {
        match self.stage {
            AdapterStage::Activates | AdapterStage::Etherealized => Ok(()),
            AdapterStage::Destroyed => Err(destroyed()),
        }
    }

    /// Returns OBJ_ADAPTER if the adapter is destroyed, or its objects were ended with its manager.
    pub(super) fn check_activates(&self) -> Result<(), SystemException> {
        match self.stage {
            AdapterStage::Activates => Ok(()),
            AdapterStage::Etherealized => Err(local::INACTIVE),
            AdapterStage::Destroyed => Err(destroyed()),
        }
    }

    /// Notes that the adapter is destroyed. Returns what it did until now.
    pub(super) fn note_destroyed(&mut self) -> AdapterStage {
        mem::replace(&mut self.stage, AdapterStage::Destroyed)
    }
}

impl ServantSourceKind {
    /// Returns true if the adapter has active objects too, which are served by their own servants (CORBA 3, 11.3.7.5).
    pub(super) fn retains(self) -> bool {
        self != Self::ServantLocator
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poa::{Poa, PoaError, PoaPolicies, ServantActivator, ServedBy};
    use crate::server::ServerCall;
    use crate::tests::servant::Worker;
    use crate::{ExceptionKind, Intervention, Orb, with_deadline};
    use rtorb_os::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    /// Longer than anything here takes.
    const LONG: Duration = Duration::from_secs(60);

    /// A servant whose operation does something.
    struct Acts(Box<dyn Fn() + Send + Sync>);

    impl ServedBy<Acts> for Worker {
        fn find_operation(_: &[u8]) -> Option<usize> {
            Some(0)
        }

        fn dispatch(
            acts: &Acts,
            _: usize,
            call: &mut ServerCall<'_>,
        ) -> Result<(), SystemException> {
            (acts.0)();
            call.reply(|_| Ok(()))
        }
    }

    /// What happened, in order.
    type Events = Arc<Mutex<Vec<String>>>;

    fn taken(events: &Events) -> Vec<String> {
        mem::take(&mut *events.lock())
    }

    /// Makes servants that do nothing, and notes their ends.
    struct Makes(Events);

    impl Makes {
        fn note(&self, what: &str, id: &[u8]) {
            let id = String::from_utf8_lossy(id);
            self.0.lock().push(format!("{what}{id}"));
        }
    }

    impl ServantActivator for Makes {
        type Servant = Acts;

        fn incarnate(&self, id: &[u8]) -> Result<Acts, Intervention> {
            self.note("+", id);
            Ok(Acts(Box::new(|| {})))
        }

        fn etherealize(&self, id: &[u8], _: Acts) {
            self.note("-", id);
        }

        fn clean_up(&self, id: &[u8], _: Acts) {
            self.note("clean ", id);
        }
    }

    fn orb() -> Orb {
        Orb::builder().build().expect("it can be built")
    }

    /// An adapter with a manager of its own, which is active.
    fn managed(orb: &Orb) -> (Poa, PoaManager) {
        let root = orb.root_poa().expect("it listens");
        let manager = root.create_manager();
        let poa = root.create_poa_with_manager("Managed", PoaPolicies::PERSISTENT, &manager);
        manager.activate();
        (poa.expect("it is free"), manager)
    }

    fn work(worker: &Worker) -> Result<(), SystemException> {
        worker.0.invoke("work", |_| Ok(()), |_| Ok(()))
    }

    /// A call in progress, until something is sent.
    struct Pause {
        worker: Worker,
        called: Receiver<()>,
        ends: Sender<()>,
        /// What happens to the servant after its last wait.
        events: Events,
    }

    impl Pause {
        fn of(poa: &Poa) -> Self {
            let events = Events::default();
            let ended = Arc::clone(&events);
            let (tells, called) = channel();
            let (ends, waits) = channel();
            let waits = Mutex::new(waits);
            let acts = Acts(Box::new(move || {
                tells.send(()).expect("the test waits");
                waits.lock().recv_timeout(LONG).expect("the test ends it");
                ended.lock().push("ended".to_owned());
            }));
            Self {
                worker: poa.activate_with_id("pause", acts).expect("room"),
                called,
                ends,
                events,
            }
        }

        /// Calls the servant on a thread of its own, runs `act` while the call is in progress, and then ends the call.
        fn during(&self, act: impl FnOnce()) {
            thread::scope(|scope| {
                let worker = self.worker.clone();
                let call = scope.spawn(move || work(&worker));
                self.called.recv_timeout(LONG).expect("it is called");
                act();
                self.ends.send(()).expect("the servant waits");
                call.join().expect("no panic").expect("it is served");
            });
        }
    }

    fn is_in_progress(waited: &Result<(), SystemException>) -> bool {
        *waited == Err(local::CALLS_IN_PROGRESS)
    }

    //= CORBA 3 §POAManager Interface
    //% test
    #[test]
    fn the_wait_for_completion_ends_with_the_last_call_and_not_before() {
        type Enter = fn(&PoaManager);
        let rows: [Enter; 3] = [
            PoaManager::hold_requests,
            PoaManager::discard_requests,
            PoaManager::deactivate,
        ];
        for (row, enter) in rows.into_iter().enumerate() {
            let orb = orb();
            let (poa, manager) = managed(&orb);
            let pause = Pause::of(&poa);
            assert_eq!(manager.wait_for_completion(None), Ok(()), "{row}");
            thread::scope(|scope| {
                pause.during(|| {
                    enter(&manager);
                    let waited = manager.wait_for_completion(Duration::ZERO);
                    assert!(is_in_progress(&waited), "{row}: {waited:?}");
                    let moment = Duration::from_millis(1);
                    let waited = with_deadline(moment, || manager.wait_for_completion(None));
                    assert!(is_in_progress(&waited), "{row}: {waited:?}");
                    let (manager, events) = (manager.clone(), Arc::clone(&pause.events));
                    scope.spawn(move || {
                        assert_eq!(manager.wait_for_completion(LONG), Ok(()), "{row}");
                        assert_eq!(taken(&events), ["ended"], "{row}");
                    });
                });
            });
            assert_eq!(manager.wait_for_completion(Duration::ZERO), Ok(()), "{row}");
        }
    }

    #[test]
    fn a_call_of_another_manager_is_not_waited_for() {
        let orb = orb();
        let (poa, _manager) = managed(&orb);
        let other = orb.root_poa().expect("it listens").manager();
        Pause::of(&poa).during(|| assert_eq!(other.wait_for_completion(None), Ok(())));
    }

    #[test]
    fn a_change_of_the_state_ends_the_wait_for_completion() {
        let orb = orb();
        let (poa, manager) = managed(&orb);
        Pause::of(&poa).during(|| {
            thread::scope(|scope| {
                let waiting = manager.clone();
                let waiter = scope.spawn(move || waiting.wait_for_completion(None));
                // It may look between two changes, and see none.
                while !waiter.is_finished() {
                    manager.discard_requests();
                    thread::yield_now();
                    manager.activate();
                    thread::yield_now();
                }
                assert_eq!(waiter.join().expect("no panic"), Ok(()));
            });
        });
    }

    //= CORBA 3 §POAManager Interface
    //% test
    #[test]
    fn a_servant_of_the_same_orb_does_not_wait_for_completion() {
        let (own, other) = (orb(), orb());
        let (poa, manager) = managed(&own);
        let elsewhere = managed(&other).1;
        let (tells, told) = channel();
        let acts = Acts(Box::new(move || {
            let waited = [&manager, &elsewhere].map(|it| it.wait_for_completion(None));
            tells.send(waited).expect("the test waits");
        }));
        let worker: Worker = poa.activate_with_id("x", acts).expect("room");
        work(&worker).expect("it is served");
        let waited = told.try_recv().expect("it was called");
        assert_eq!(waited, [Err(local::WOULD_DEADLOCK), Ok(())]);
        poa.destroy();
    }

    //= CORBA 3 §POAManager Interface
    //% test
    #[test]
    fn a_manager_ends_the_objects_of_its_servant_activators_when_it_is_deactivated() {
        let orb = orb();
        let (poa, manager) = managed(&orb);
        let plain = poa.create_poa("Plain", PoaPolicies::PERSISTENT);
        let plain = plain.expect("it is free");
        let root = orb.root_poa().expect("it listens");
        let foreign = root.create_poa("Foreign", PoaPolicies::PERSISTENT);
        let foreign = foreign.expect("it is free");
        let events = Events::default();
        for activated in [&poa, &foreign] {
            let set = activated.set_servant_activator::<Worker, _>(Makes(Arc::clone(&events)));
            set.expect("it has none");
        }
        let named = |poa: &Poa, id: &str| -> Worker {
            let made = poa.create_reference_with_id(id);
            made.expect("it is persistent")
        };
        let [a, b] = ["a", "b"].map(|id| named(&poa, id));
        let other = named(&foreign, "other");
        for worker in [&a, &b, &other] {
            work(worker).expect("it is incarnated");
        }
        let own = || Acts(Box::new(|| {}));
        let kept: Worker = plain.activate_with_id("kept", own()).expect("room");
        assert_eq!(taken(&events), ["+a", "+b", "+other"]);
        poa.deactivate_id("b").expect("it is active");
        assert_eq!(taken(&events), ["-b"]);

        manager.deactivate_and_etherealize();
        assert_eq!(manager.wait_for_completion(None), Ok(()));
        assert_eq!(taken(&events), ["clean a"]);
        assert!(plain.is_active(&kept.0) && foreign.is_active(&other.0));
        assert!(!poa.is_active(&a.0));
        work(&other).expect("its manager is another one");
        for failed in [work(&a), a.0.is_a("IDL:Any:1.0").map(drop), work(&kept)] {
            let failed = failed.expect_err("the manager is inactive");
            let expected = (local::INACTIVE.kind, local::INACTIVE.minor);
            assert_eq!((failed.kind, failed.minor), expected, "{failed}");
        }
        let late = poa.activate_with_id::<Worker, _>("late", own()).map(drop);
        assert_eq!(late, Err(PoaError::System(local::INACTIVE)));
        assert_eq!(taken(&events), [""; 0], "nothing is incarnated");
        manager.deactivate_and_etherealize();
        poa.destroy();
        assert_eq!(taken(&events), [""; 0], "all have ended");
        foreign.destroy();
        assert_eq!(taken(&events), ["clean other"]);
    }

    #[test]
    fn the_wait_for_completion_is_also_for_the_ends_of_servants() {
        /// Waits in `etherealize`.
        struct Lingers(Events, Sender<()>, Mutex<Receiver<()>>);
        impl ServantActivator for Lingers {
            type Servant = Acts;

            fn incarnate(&self, _: &[u8]) -> Result<Acts, Intervention> {
                Ok(Acts(Box::new(|| {})))
            }

            fn etherealize(&self, _: &[u8], _: Acts) {
                self.1.send(()).expect("the test waits");
                self.2.lock().recv_timeout(LONG).expect("the test ends it");
                self.0.lock().push("etherealized".to_owned());
            }
        }
        let orb = orb();
        let (poa, manager) = managed(&orb);
        let events = Events::default();
        let (tells, told) = channel();
        let (ends, waits) = channel();
        let lingers = Lingers(Arc::clone(&events), tells, Mutex::new(waits));
        let set = poa.set_servant_activator::<Worker, _>(lingers);
        set.expect("it has none");
        let worker: Worker = poa.create_reference_with_id("x").expect("it is persistent");
        work(&worker).expect("it is incarnated");
        thread::scope(|scope| {
            scope.spawn(|| manager.deactivate_and_etherealize());
            told.recv_timeout(LONG).expect("it is etherealized");
            let waited = manager.wait_for_completion(Duration::ZERO);
            assert!(is_in_progress(&waited), "{waited:?}");
            ends.send(()).expect("the activator waits");
            assert_eq!(manager.wait_for_completion(LONG), Ok(()));
            assert_eq!(taken(&events), ["etherealized"]);
        });
        let gone = work(&worker).expect_err("the manager is inactive");
        assert_eq!(gone.kind, ExceptionKind::ObjAdapter, "{gone}");
    }
}
