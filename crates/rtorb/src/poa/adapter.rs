//! An object adapter: activates servants and makes references to their objects.

use super::adapter_activator::{AdapterActivator, PendingAdapter};
use super::adapters::Adapters;
use super::completion::AdapterStage;
use super::manager::PoaManager;
use super::published::{self, Published};
use super::rt_poa::priority_is_settled;
use super::rt_policies::RtPolicies;
use super::{ActiveServant, IdAssignment, Lifespan, PoaPolicies, ServedBy};
use crate::connection::Client;
use crate::dispatch::Dispatch;
use crate::exception::{SystemException, local};
use crate::interceptors::Interceptors;
use crate::realtime::{CallPriority, Policy, Priority, ThreadpoolId};
use crate::reference::{ObjectRef, routes};
use crate::server::object_key::{self, ObjectKey};
use crate::server::{ActiveObject, EnclosingAdapter, ManagerState, ObjectAdapter, Servant};
use crate::timing::{EarlyCalls, Enforcement, OperationTiming};
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};
use rtorb_core::{Interface, Tie};
use rtorb_os::set_once::SetOnce;
use rtorb_os::slab::{Key, SlabGuard};
use rtorb_os::sync::Mutex;
use rtorb_wire::ior::{Ior, TaggedComponent};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// A portable object adapter; cheap to clone.
///
/// ```
/// use rtorb::PoaPolicies;
/// # fn main() -> Result<(), rtorb::OrbError> {
/// let orb = rtorb::Orb::builder().build()?;
/// // References to objects of this adapter hold for later runs of the program, which chooses the objects' ids.
/// let valves = orb.root_poa()?.create_poa("Valves", PoaPolicies::PERSISTENT)?;
/// assert_eq!(valves.name(), "Valves");
/// // let valve: Valve = valves.activate_with_id("inlet", Servant)?; with the code generated for an interface Valve
/// valves.destroy();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Poa {
    client: Client,
    pub(super) core: Arc<Adapters>,
    pub(super) adapter: Arc<Adapter>,
}

/// State of an object adapter, shared by its handles and its objects.
pub(crate) struct Adapter {
    orb: Weak<Adapters>,
    /// Path from the root, separated by `/`; the root's is `RootPOA`.
    path: String,
    /// The components that interceptors add to references.
    components: Vec<TaggedComponent>,
    /// The parent adapter, and this adapter's name there; dangling for the root.
    parent: Weak<Adapter>,
    name_there: String,
    pub(super) policies: PoaPolicies,
    /// The checked RT-CORBA policies.
    pub(crate) rt: RtPolicies,
    pub(crate) manager: Arc<ManagerState>,
    pub(super) children: Mutex<HashMap<String, Arc<Adapter>>>,
    /// The objects by id. Only activation and deactivation use this table; requests do not.
    pub(super) objects: Mutex<Objects>,
    pub(super) activator: Mutex<Option<Arc<AdapterActivator>>>,
    /// The children that the activator is making, by name.
    pub(super) pending: Mutex<HashMap<String, Arc<PendingAdapter>>>,
    /// The objects whose servants have not ended, and what serves the others.
    present: AtomicUsize,
}

#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) by_id: HashMap<Vec<u8>, Key>,
    /// Priorities published in references to objects that may not be active yet.
    pub(super) promised: HashMap<Vec<u8>, Priority>,
    next_id: u64,
    pub(super) stage: AdapterStage,
    /// What serves the objects that are not active.
    pub(super) others: Option<ServantSource>,
}

/// What serves the objects of an adapter that are not active: a servant locator, a default servant or a servant activator.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServantSource {
    pub(super) place: Key,
    pub(super) kind: ServantSourceKind,
}

/// How servants come from elsewhere (CORBA 3, 11.3.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServantSourceKind {
    ServantActivator,
    DefaultServant,
    ServantLocator,
}

/// An object that was activated.
pub(super) struct PlacedObject {
    key: Vec<u8>,
    /// The priority in references to it.
    priority: Option<Priority>,
}

/// Id and priority of an object to be activated.
#[derive(Clone, Copy, Default)]
pub(super) struct Activation<'a> {
    /// The object id; `None` if the adapter makes it.
    pub(super) id: Option<&'a [u8]>,
    /// The object's own priority; `None` for the adapter's.
    pub(super) priority: Option<Priority>,
}

/// An error of an object adapter (the exceptions of CORBA 3, 11.3.9).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoaError {
    /// The adapter's policies do not allow it.
    #[error(
        "WrongPolicy: the adapter's lifespan, id assignment, priority model or servant locator does not allow this"
    )]
    WrongPolicy,
    /// An object with that id is active.
    #[error("ObjectAlreadyActive: an object with that id is active")]
    ObjectAlreadyActive,
    /// No object with that id is active.
    #[error("ObjectNotActive: no object with that id is active")]
    ObjectNotActive,
    /// An adapter with that name exists under this one, or an object key is bound that is one of its objects'.
    #[error("AdapterAlreadyExists: choose another name")]
    AdapterAlreadyExists,
    /// No adapter with that name exists under this one.
    #[error("AdapterNonExistent: no adapter of that name")]
    AdapterNonExistent,
    /// Another adapter made the reference.
    #[error("WrongAdapter: the reference was made by another adapter")]
    WrongAdapter,
    /// An adapter name that cannot be part of an object key: empty, with `/` or a zero, or the root's name under the root.
    #[error(
        "BadName: an adapter's name is not empty, has no `/` and no zero, and is not the root's"
    )]
    BadName,
    /// An RT-CORBA policy conflicts with another policy, or with this ORB.
    #[error("InvalidPolicy: policy {index} of RT-CORBA: {reason}")]
    InvalidPolicy {
        /// Its place in [`PoaPolicies::rt`].
        index: usize,
        /// What is wrong.
        reason: &'static str,
    },
    /// A limit was reached, a priority is wrong, or the adapter is destroyed.
    #[error(transparent)]
    System(#[from] SystemException),
}

impl PoaError {
    /// WrongPolicy unless the adapter's policies allow the operation.
    //= CORBA 3 §POA Policy Objects
    //# An operation that the policies of the POA do not allow raises WrongPolicy.
    pub(super) fn wrong_policy_unless(is_allowed: bool) -> Result<(), Self> {
        if is_allowed {
            return Ok(());
        }
        Err(Self::WrongPolicy)
    }
}

impl Poa {
    pub(crate) fn new(client: Client, core: Arc<Adapters>, adapter: Arc<Adapter>) -> Self {
        Self {
            client,
            core,
            adapter,
        }
    }

    fn with_adapter(&self, adapter: Arc<Adapter>) -> Self {
        Self::new(self.client.clone(), Arc::clone(&self.core), adapter)
    }

    /// Activates a servant under an id that the adapter makes, and returns a reference to its object.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] if the application chooses the ids; NO_RESOURCES if `Limits::objects_max` objects are active. If
    /// overruns or early calls of the interface are enforced: INV_POLICY if threads would wait that may not, NO_PERMISSION if the host
    /// refuses a priority.
    pub fn activate<I: ServedBy<S, Object = ObjectRef> + 'static, S: Send + Sync + 'static>(
        &self,
        servant: S,
    ) -> Result<I, PoaError> {
        self.check_id_assignment(IdAssignment::System)?;
        self.activate_tie(Activation::default(), servant)
    }

    /// Activates a servant under an id that the application chooses. If a reference made earlier has a priority for this id, the
    /// object has that priority.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] if the adapter makes the ids and did not make this one for a reference;
    /// [`PoaError::ObjectAlreadyActive`]; NO_RESOURCES.
    pub fn activate_with_id<
        I: ServedBy<S, Object = ObjectRef> + 'static,
        S: Send + Sync + 'static,
    >(
        &self,
        id: impl AsRef<[u8]>,
        servant: S,
    ) -> Result<I, PoaError> {
        self.check_id(id.as_ref())?;
        let activation = Activation {
            id: Some(id.as_ref()),
            priority: None,
        };
        self.activate_tie(activation, servant)
    }

    /// Deactivates an object: calls in progress end normally, later calls raise OBJECT_NOT_EXIST.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] if a [locator](Self::set_servant_locator) serves all objects; [`PoaError::WrongAdapter`] for a reference
    /// of another adapter; [`PoaError::ObjectNotActive`].
    pub fn deactivate(&self, object: &ObjectRef) -> Result<(), PoaError> {
        self.check_retention()?;
        let place = self.place_of(object)?;
        let id = self.active(place)?.id.clone();
        self.end(&id, Some(place))
    }

    /// Deactivates the object with this id.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] if a [locator](Self::set_servant_locator) serves all objects; [`PoaError::ObjectNotActive`].
    pub fn deactivate_id(&self, id: impl AsRef<[u8]>) -> Result<(), PoaError> {
        self.check_retention()?;
        self.end(id.as_ref(), None)
    }

    /// True if the reference is of an active object of this adapter.
    pub fn is_active(&self, object: &ObjectRef) -> bool {
        let active = self.place_of(object).and_then(|place| self.active(place));
        active.is_ok()
    }

    /// Makes a reference to an object that may be activated later.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless the adapter is persistent: a transient object has no key before it is active; OBJ_ADAPTER
    /// `0x72746010` if the adapter is destroyed.
    pub fn create_reference_with_id<I: Interface<Object = ObjectRef>>(
        &self,
        id: impl AsRef<[u8]>,
    ) -> Result<I, PoaError> {
        self.check_persistent()?;
        let id = id.as_ref();
        let promised = {
            let objects = self.adapter.objects.lock();
            objects.check_exists()?;
            objects.promised.get(id).copied()
        };
        Ok(self.named_reference(id, promised))
    }

    /// The id of the object to which a reference of this adapter refers.
    ///
    /// # Errors
    /// [`PoaError::WrongAdapter`] for a reference of another adapter, and of a transient object that is not active any more.
    pub fn reference_to_id(&self, object: &ObjectRef) -> Result<Vec<u8>, PoaError> {
        let key = routes::object_key(object.ior()).ok_or(PoaError::WrongAdapter)?;
        match ObjectKey::parse(&key) {
            ObjectKey::Named(name) => object_key::id_in(name, &self.adapter.path),
            ObjectKey::Transient { epoch, place } if epoch == self.core.server.epoch => {
                let active = self.core.server.objects.get(place);
                active
                    .filter(|active| self.adapter.is(&*active.adapter))
                    .map(|active| active.id.clone())
            }
            ObjectKey::Transient { .. } => None,
        }
        .ok_or(PoaError::WrongAdapter)
    }

    /// Makes an adapter under this one, with the same manager.
    ///
    /// # Errors
    /// As [`create_poa_with_manager`](Self::create_poa_with_manager).
    pub fn create_poa(&self, name: &str, policies: PoaPolicies) -> Result<Self, PoaError> {
        self.create_poa_with_manager(name, policies, &self.manager())
    }

    /// Makes an adapter under this one, with that manager, which other adapters may have too.
    ///
    /// # Errors
    /// [`PoaError::AdapterAlreadyExists`], [`PoaError::BadName`]; [`PoaError::InvalidPolicy`] for RT-CORBA policies that do
    /// not go together; NO_RESOURCES when there are too many adapters; BAD_PARAM for a manager of another ORB.
    pub fn create_poa_with_manager(
        &self,
        name: &str,
        policies: PoaPolicies,
        manager: &PoaManager,
    ) -> Result<Self, PoaError> {
        if !Arc::ptr_eq(&manager.core, &self.core) {
            return Err(local::FOREIGN_MANAGER.into());
        }
        let is_root = self.adapter.path == ROOT;
        // A child of the root with the root's name could not be told from the root.
        if name.is_empty() || name.contains(['/', '\0']) || is_root && name == ROOT {
            return Err(PoaError::BadName);
        }
        let path = if is_root {
            name.to_owned()
        } else {
            format!("{}/{name}", self.adapter.path)
        };
        // Not under the lock: an interceptor may use adapters.
        let interceptors = &self.client.core.interceptors;
        let components = interceptors.components(&path, &policies.rt);
        let mut children = self.adapter.children.lock();
        let keys = ObjectKey::named(&path, b"");
        if children.contains_key(name) || self.core.server.objects.has_bound_in(&keys) {
            return Err(PoaError::AdapterAlreadyExists);
        }
        self.adapter.objects.lock().check_exists()?;
        self.core.count_adapter()?;
        // From here on the adapter uses its thread pool, if it has one, and releases it in `destroy`.
        let rt = RtPolicies::new(&self.core, &policies.rt)
            .inspect_err(|_| self.core.uncount_adapter())?;
        let adapter = Arc::new(Adapter {
            orb: Arc::downgrade(&self.core),
            path,
            components,
            parent: Arc::downgrade(&self.adapter),
            name_there: name.to_owned(),
            policies,
            rt,
            manager: Arc::clone(&manager.state),
            children: Mutex::default(),
            objects: Mutex::default(),
            activator: Mutex::default(),
            pending: Mutex::default(),
            present: AtomicUsize::new(0),
        });
        children.insert(name.to_owned(), Arc::clone(&adapter));
        Ok(self.with_adapter(adapter))
    }

    /// The adapter with that name under this one. If there is none, this adapter's activator may make it.
    ///
    /// # Errors
    /// [`PoaError::AdapterNonExistent`].
    pub fn find_poa(&self, name: &str) -> Result<Self, PoaError> {
        self.find_or_activate(name)
            .ok_or(PoaError::AdapterNonExistent)
    }

    /// Returns the adapter with that name under this one.
    pub(super) fn child(&self, name: &str) -> Option<Self> {
        let adapter = self.adapter.children.lock().get(name).cloned();
        adapter.map(|adapter| self.with_adapter(adapter))
    }

    /// Destroys this adapter and its children, and deactivates all their objects. Its name can then be used again.
    //= CORBA 3 §POA Interface
    //# All descendants of a POA are destroyed before its own objects are deactivated and etherealized.
    pub fn destroy(&self) {
        let (active, others) = {
            let mut objects = self.adapter.objects.lock();
            if objects.note_destroyed() == AdapterStage::Destroyed {
                return;
            }
            (core::mem::take(&mut objects.by_id), objects.others.take())
        };
        let activator = self.adapter.activator.lock().take();
        drop(activator);
        // A destroyed adapter accepts no new children, so these are all of them.
        let children = core::mem::take(&mut *self.adapter.children.lock());
        for adapter in children.into_values() {
            self.with_adapter(adapter).destroy();
        }
        self.adapter.end_objects(&self.core, active);
        if let Some(ServantSource { place, .. }) = others {
            let adapter = ObjectKey::named(&self.adapter.path, b"");
            self.core.server.objects.remove_locator(&adapter, place);
        }
        // Requests that its manager holds have no object any more.
        self.core.server.held.release(&self.adapter.manager);
        if self.adapter.path != ROOT {
            self.core.uncount_adapter();
        }
        if let Some(pool) = &self.adapter.rt.pool {
            self.core.pools.give_back(pool.config.id);
        }
        if let Some(parent) = self.adapter.parent.upgrade() {
            let mut siblings = parent.children.lock();
            if siblings
                .get(&self.adapter.name_there)
                .is_some_and(|named| Arc::ptr_eq(named, &self.adapter))
            {
                siblings.remove(&self.adapter.name_there);
            }
        }
    }

    /// The adapter's name: the path from the root, separated by `/`.
    pub fn name(&self) -> &str {
        &self.adapter.path
    }

    /// The adapter's policies, with the priority that its objects have now.
    pub fn policies(&self) -> PoaPolicies {
        let mut policies = self.adapter.policies.clone();
        for policy in &mut policies.rt {
            if let (
                Policy::PriorityModel {
                    server_priority, ..
                },
                Some((_, now)),
            ) = (policy, self.adapter.rt.model())
            {
                *server_priority = now;
            }
        }
        policies
    }

    /// Activates a servant as an object of interface `I`.
    pub(super) fn activate_tie<
        I: ServedBy<S, Object = ObjectRef> + 'static,
        S: Send + Sync + 'static,
    >(
        &self,
        activation: Activation<'_>,
        servant: S,
    ) -> Result<I, PoaError> {
        let admitted = self.core.admit(I::timings())?;
        self.prepare_serving(I::timings())?;
        let servant = ActiveServant::new::<I>(servant, self.enforcement(), admitted);
        let servant = Box::new(Tie::<I, _>::new(servant));
        let object = self.place(activation, I::REPOSITORY_ID, servant)?;
        Ok(I::unchecked_narrow(object))
    }

    /// What happens to calls of this adapter's objects beyond their annotated times.
    pub(super) fn enforcement(&self) -> Enforcement {
        let (policies, orb) = (
            &self.adapter.policies,
            self.core.server.timing.settings.enforcement,
        );
        Enforcement {
            overrun: policies.overrun.unwrap_or(orb.overrun),
            early: policies.early_calls.unwrap_or(orb.early),
            scope: policies.period_scope.unwrap_or(orb.scope),
        }
    }

    /// Prepares the counters of operations, and what enforces their times.
    ///
    /// # Errors
    /// INV_POLICY if early calls are delayed, and the threads that serve this adapter may not wait; NO_PERMISSION or NO_RESOURCES if the
    /// host refuses the enforcing thread.
    fn prepare_serving(&self, operations: &'static [OperationTiming]) -> Result<(), PoaError> {
        let Enforcement { overrun, early, .. } = self.enforcement();
        let has_period = operations.iter().any(|one| one.period_ns.is_some());
        let serves_one_client = matches!(self.core.dispatch, Dispatch::ThreadPerConnection)
            && self.adapter.rt.pool_id() == ThreadpoolId::OWN;
        if matches!(early, EarlyCalls::Delay(_)) && has_period && !serves_one_client {
            return Err(local::NO_THREAD_TO_WAIT.into());
        }
        let timing = &self.core.server.timing;
        Ok(timing.prepare_serving(operations, overrun)?)
    }

    /// WrongPolicy unless object ids are assigned so.
    pub(super) fn check_id_assignment(&self, expected: IdAssignment) -> Result<(), PoaError> {
        PoaError::wrong_policy_unless(self.adapter.policies.id_assignment == expected)
    }

    /// Activates a servant as an object of the interface with that repository id.
    pub(super) fn place(
        &self,
        activation: Activation<'_>,
        repository_id: &str,
        servant: Box<dyn Servant>,
    ) -> Result<ObjectRef, PoaError> {
        let PlacedObject { key, priority } = self.adapter.place(&self.core, activation, servant)?;
        Ok(self.reference(repository_id, &key, priority))
    }

    /// Installs what serves the objects that are not active.
    //= CORBA 3 §Request Processing Policy
    //# A POA has one servant manager or default servant, for the objects that are not active.
    pub(super) fn place_others<I: Interface<Object = ObjectRef>>(
        &self,
        servant: Box<dyn Servant>,
        kind: ServantSourceKind,
    ) -> Result<(), PoaError> {
        self.check_persistent()?;
        let core = &self.core;
        self.prepare_serving(I::timings())?;
        let mut servant = Some(servant);
        let mut objects = self.adapter.objects.lock();
        let priority = self.adapter.rt.call_priority(core, None)?;
        objects.check_exists()?;
        let is_alone = kind.retains() || objects.by_id.is_empty();
        if objects.others.is_some() || !is_alone {
            return Err(local::HAS_OBJECTS.into());
        }
        let others = |_| {
            let servant = servant.take().expect("a slab makes an entry at most once");
            self.adapter.active_object(servant, Vec::new(), priority)
        };
        let adapter = ObjectKey::named(&self.adapter.path, b"");
        let place = core.server.objects.insert_locator(adapter, others);
        let place = place.ok_or(local::OBJECTS_FULL)?;
        objects.others = Some(ServantSource { place, kind });
        Ok(())
    }

    /// WrongPolicy if the application may not choose this id.
    pub(super) fn check_id(&self, id: &[u8]) -> Result<(), PoaError> {
        PoaError::wrong_policy_unless(
            self.adapter.policies.id_assignment == IdAssignment::User
                || self.adapter.objects.lock().promised.contains_key(id),
        )
    }

    /// WrongPolicy if the adapter is transient: its objects have no key before they are active.
    pub(super) fn check_persistent(&self) -> Result<(), PoaError> {
        PoaError::wrong_policy_unless(self.adapter.policies.lifespan == Lifespan::Persistent)
    }

    /// WrongPolicy if the adapter has no active objects.
    //= CORBA 3 §Servant Retention Policy
    //# Operations on active objects raise WrongPolicy if the adapter does not retain them.
    fn check_retention(&self) -> Result<(), PoaError> {
        PoaError::wrong_policy_unless(self.adapter.objects.lock().retains())
    }

    /// A reference to the object with that id of a persistent adapter.
    pub(super) fn named_reference<I: Interface<Object = ObjectRef>>(
        &self,
        id: &[u8],
        priority: Option<Priority>,
    ) -> I {
        let key = ObjectKey::named(&self.adapter.path, id);
        I::unchecked_narrow(self.reference(I::REPOSITORY_ID, &key, priority))
    }

    fn reference(
        &self,
        repository_id: &str,
        object_key: &[u8],
        priority: Option<Priority>,
    ) -> ObjectRef {
        let published = Published {
            repository_id,
            object_key,
            rt: &self.adapter.rt,
            priority,
            native_char_code_set: self.core.server.client.core.native_char_code_set,
            components: &self.adapter.components,
        };
        let ior = published::ior(&self.core, &published);
        ObjectRef::new(self.client.clone(), ior)
    }

    /// Deactivates the object with this id, if it still has the expected table entry: another object may have been activated since.
    fn end(&self, id: &[u8], expected: Option<Key>) -> Result<(), PoaError> {
        let place = {
            let mut objects = self.adapter.objects.lock();
            let place = *objects.by_id.get(id).ok_or(PoaError::ObjectNotActive)?;
            if expected.is_some_and(|expected| expected != place) {
                return Err(PoaError::ObjectNotActive);
            }
            objects.by_id.remove(id);
            // Under the lock: once it is released, another thread may activate an object with this id.
            self.adapter.forget_name(&self.core, id);
            place
        };
        self.core.server.objects.remove(place);
        Ok(())
    }

    /// The table entry of the object to which a reference of this adapter refers. The entry of a transient object may be of another adapter,
    /// which [`active`](Self::active) checks.
    pub(super) fn place_of(&self, object: &ObjectRef) -> Result<Key, PoaError> {
        let key = routes::object_key(object.ior()).ok_or(PoaError::WrongAdapter)?;
        let server = &self.core.server;
        match ObjectKey::parse(&key) {
            ObjectKey::Transient { epoch, place } if epoch == server.epoch => Ok(place),
            ObjectKey::Transient { .. } => Err(PoaError::WrongAdapter),
            ObjectKey::Named(name) if object_key::id_in(name, &self.adapter.path).is_none() => {
                Err(PoaError::WrongAdapter)
            }
            ObjectKey::Named(name) => server
                .objects
                .place_of(name)
                .ok_or(PoaError::ObjectNotActive),
        }
    }

    /// Looks up an active object of this adapter, and keeps it until the guard is dropped.
    pub(super) fn active(&self, place: Key) -> Result<SlabGuard<'_, ActiveObject>, PoaError> {
        let active = self.core.server.objects.get(place);
        let active = active.ok_or(PoaError::ObjectNotActive)?;
        if !self.adapter.is(&*active.adapter) {
            return Err(PoaError::WrongAdapter);
        }
        Ok(active)
    }
}

/// The root adapter's name.
const ROOT: &str = "RootPOA";

impl Adapter {
    /// True if `other` is this adapter.
    fn is(&self, other: &dyn ObjectAdapter) -> bool {
        core::ptr::addr_eq(self, other)
    }

    /// True if an adapter with that path exists below this one, the root.
    pub(crate) fn has(&self, path: &str) -> bool {
        let mut below: Option<Arc<Self>> = None;
        path.split('/').all(|name| {
            let adapter = below.as_deref().unwrap_or(self);
            let child = adapter.children.lock().get(name).cloned();
            below = child;
            below.is_some()
        })
    }

    pub(crate) fn root(orb: Weak<Adapters>, interceptors: &Interceptors) -> Self {
        Self {
            orb,
            path: ROOT.to_owned(),
            components: interceptors.components(ROOT, &[]),
            parent: Weak::new(),
            name_there: ROOT.to_owned(),
            policies: PoaPolicies::default(),
            rt: RtPolicies::default(),
            manager: Arc::default(),
            children: Mutex::default(),
            objects: Mutex::default(),
            activator: Mutex::default(),
            pending: Mutex::default(),
            present: AtomicUsize::new(0),
        }
    }

    /// Makes a servant an active object.
    pub(super) fn place(
        self: &Arc<Self>,
        orb: &Adapters,
        Activation { id, priority }: Activation<'_>,
        servant: Box<dyn Servant>,
    ) -> Result<PlacedObject, PoaError> {
        let table = &orb.server.objects;
        // A refused servant is dropped after the lock is released: its destructor may call this adapter.
        let mut servant = Some(servant);
        let mut objects = self.objects.lock();
        objects.check_activates()?;
        PoaError::wrong_policy_unless(objects.retains())?;
        if id.is_some_and(|id| objects.by_id.contains_key(id)) {
            return Err(PoaError::ObjectAlreadyActive);
        }
        let priority = objects.settle(id, priority)?;
        let call_priority = self.rt.call_priority(orb, priority)?;
        let lifespan = self.policies.lifespan;
        let id = match id {
            Some(id) => id.to_vec(),
            None => objects.make_id(lifespan, orb.server.epoch),
        };
        let activate = |_| {
            let servant = servant.take().expect("a slab makes an entry at most once");
            self.active_object(servant, id.clone(), call_priority)
        };
        let place = table.insert_with(activate).ok_or(local::OBJECTS_FULL)?;
        let key = match lifespan {
            Lifespan::Transient => ObjectKey::transient(orb.server.epoch, place),
            Lifespan::Persistent => {
                let key = ObjectKey::named(&self.path, &id);
                if !table.name(key.clone(), place) {
                    drop(objects);
                    table.remove(place);
                    return Err(PoaError::ObjectAlreadyActive);
                }
                key
            }
        };
        objects.by_id.insert(id, place);
        Ok(PlacedObject { key, priority })
    }

    /// The table entry of an object, or of what serves the others, of this adapter.
    fn active_object(
        self: &Arc<Self>,
        servant: Box<dyn Servant>,
        id: Vec<u8>,
        priority: CallPriority,
    ) -> ActiveObject {
        ActiveObject {
            traits: SetOnce::new(),
            servant,
            adapter: EnclosingAdapter::new(Arc::clone(self) as Arc<dyn ObjectAdapter>),
            manager: Arc::clone(&self.manager),
            id,
            priority,
            pool: self.rt.pool_id(),
        }
    }

    /// Ends active objects, because the adapter or its manager ends.
    pub(super) fn end_objects(&self, orb: &Adapters, active: HashMap<Vec<u8>, Key>) {
        let table = &orb.server.objects;
        for (id, place) in active {
            self.forget_name(orb, &id);
            if let Some(object) = table.get(place) {
                object.servant.note_cleanup();
            }
            table.remove(place);
        }
    }

    /// Removes the readable key of an object, if the adapter gives it one.
    fn forget_name(&self, orb: &Adapters, id: &[u8]) {
        if self.policies.lifespan == Lifespan::Persistent {
            let key = ObjectKey::named(&self.path, id);
            orb.server.objects.forget_name(&key);
        }
    }

    /// Returns the number of objects whose servants have not ended, and of what serves the others.
    pub(super) fn present_objects(&self) -> usize {
        self.present.load(Ordering::Acquire)
    }

    /// Returns the ORB; `None` once it has ended.
    pub(super) fn orb(&self) -> Option<Arc<Adapters>> {
        self.orb.upgrade()
    }

    /// An id that no object of the adapter has.
    pub(super) fn make_id(&self, epoch: u64) -> Vec<u8> {
        self.objects.lock().make_id(self.policies.lifespan, epoch)
    }

    /// Records the priority that is published in references to an object.
    pub(super) fn promise(
        &self,
        id: &[u8],
        priority: Priority,
        promises_max: usize,
    ) -> Result<(), PoaError> {
        let mut objects = self.objects.lock();
        objects.check_exists()?;
        objects.settle(Some(id), Some(priority))?;
        if !objects.promised.contains_key(id) && objects.promised.len() >= promises_max {
            return Err(local::OBJECTS_FULL.into());
        }
        objects.promised.insert(id.to_vec(), priority);
        Ok(())
    }
}

impl ObjectAdapter for Adapter {
    fn path(&self) -> &str {
        &self.path
    }

    fn note_object(&self) {
        self.present.fetch_add(1, Ordering::Relaxed);
    }

    fn note_object_ended(&self) {
        self.present.fetch_sub(1, Ordering::Release);
    }

    #[cold]
    fn leads_to(&self, path: &[u8]) -> bool {
        let path = core::str::from_utf8(path).ok();
        path.is_some_and(|path| path == self.path || self.has(path))
    }

    #[cold]
    fn forward(&self, object: &ActiveObject, object_key: &[u8]) -> Ior {
        let Some(orb) = self.orb.upgrade() else {
            return Ior {
                type_id: String::new(),
                profiles: Vec::new(),
            };
        };
        let priority = match &object.priority {
            CallPriority::Declared(declared) => Some(declared.priority()),
            CallPriority::AsItIs | CallPriority::Propagated { .. } => None,
        };
        let published = Published {
            repository_id: object.servant.repository_id(),
            object_key,
            rt: &self.rt,
            priority,
            native_char_code_set: orb.server.client.core.native_char_code_set,
            components: &self.components,
        };
        published::ior(&orb, &published)
    }
}

impl fmt::Debug for Poa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poa")
            .field("name", &self.adapter.path)
            .finish_non_exhaustive()
    }
}

/// The exception for an operation on a destroyed adapter.
pub(super) fn destroyed() -> SystemException {
    local::ADAPTER_DESTROYED
}

impl Objects {
    fn make_id(&mut self, lifespan: Lifespan, epoch: u64) -> Vec<u8> {
        let number = self.next_id();
        match lifespan {
            Lifespan::Transient => number.to_be_bytes().to_vec(),
            // A later process must not assign the same id to another object, so the id contains the epoch.
            Lifespan::Persistent => format!("{epoch:016x}-{number}").into_bytes(),
        }
    }

    /// Returns true if the adapter may have active objects.
    fn retains(&self) -> bool {
        self.others.is_none_or(|others| others.kind.retains())
    }

    /// The priority of an object to be activated: the given one, else the one published in its references.
    fn settle(
        &self,
        id: Option<&[u8]>,
        priority: Option<Priority>,
    ) -> Result<Option<Priority>, SystemException> {
        let promised = id.and_then(|id| self.promised.get(id).copied());
        match (promised, priority) {
            (Some(promised), Some(priority)) if promised != priority => Err(priority_is_settled()),
            _ => Ok(priority.or(promised)),
        }
    }

    /// A number that no object of the adapter had before in this process.
    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Orb;
    use crate::server::ServerCall;
    use crate::tests::servant::{Log, Worker};
    use core::sync::atomic::AtomicBool;
    use core::time::Duration;
    use std::sync::mpsc;
    use std::thread;

    /// A servant whose end deactivates an object of its adapter.
    struct Leaving(Poa);

    const OTHER: &str = "other";

    impl Drop for Leaving {
        fn drop(&mut self) {
            let _ = self.0.deactivate_id(OTHER);
        }
    }

    impl ServedBy<Leaving> for Worker {
        fn find_operation(_: &[u8]) -> Option<usize> {
            None
        }

        fn dispatch(
            _: &Leaving,
            _: usize,
            call: &mut ServerCall<'_>,
        ) -> Result<(), SystemException> {
            call.reply(|_| Ok(()))
        }
    }

    fn persistent(orb: &Orb) -> Poa {
        let root = orb.root_poa().expect("it can be built");
        let poa = root.create_poa("Kept", PoaPolicies::PERSISTENT);
        poa.expect("the name is free")
    }

    #[test]
    fn a_servant_that_is_refused_for_its_key_may_use_the_adapter_as_it_is_dropped() {
        let orb = Orb::builder().build().expect("it can be built");
        let poa = persistent(&orb);
        let other: Worker = poa
            .activate_with_id(OTHER, Log::default())
            .expect("there is room");
        let place = poa.place_of(&other.0).expect("it is active");
        let key = ObjectKey::named(poa.name(), b"taken");
        assert!(poa.core.server.objects.name(key, place));
        let (tells, told) = mpsc::channel();
        let of_thread = poa.clone();
        thread::spawn(move || {
            let leaving = Leaving(of_thread.clone());
            let refused = of_thread.activate_with_id::<Worker, _>("taken", leaving);
            tells.send(refused.map(|_| ()))
        });
        let refused = told.recv_timeout(Duration::from_secs(60));
        let refused = refused.expect("the servant does not wait for itself");
        assert_eq!(refused, Err(PoaError::ObjectAlreadyActive));
        assert_eq!(poa.deactivate_id(OTHER), Err(PoaError::ObjectNotActive));
    }

    #[test]
    fn an_id_whose_object_another_thread_has_deactivated_is_free() {
        let orb = Orb::builder().build().expect("it can be built");
        let poa = persistent(&orb);
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let _ = poa.deactivate_id("k");
                }
            });
            let mut failed = None;
            for _ in 0..100_000 {
                if poa.deactivate_id("k").is_ok() {
                    continue;
                }
                failed = poa.activate_with_id::<Worker, _>("k", Log::default()).err();
                if failed.is_some() {
                    break;
                }
            }
            is_done.store(true, Ordering::Relaxed);
            assert_eq!(failed, None);
        });
    }
}
