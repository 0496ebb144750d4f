//! Servant activators, which make the servant of an object when its first request comes.

use super::adapter::{Activation, Adapter, Poa, ServantSourceKind, destroyed};
use super::admission::AdmittedServant;
use super::{Adapters, PoaError, ServedBy, begin, timing_of};
use crate::exception::{SystemException, local};
use crate::reference::ObjectRef;
use crate::server::{ActiveObject, LocatedId, PoaManagerState, Servant, ServerCall};
use crate::timing::{Enforcement, OperationTiming, ServantTiming};
use core::sync::atomic::{AtomicBool, Ordering};
use rtorb_core::{Intervention, Tie};
use rtorb_os::sync::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread::{self, ThreadId};

/// Makes servants of objects that are called for the first time, and ends those that are not needed any more (ServantActivator of
/// CORBA 3, 11.3.4).
pub trait ServantActivator: Send + Sync + 'static {
    /// The servants that it makes.
    type Servant: Send + Sync + 'static;

    /// Makes the servant of the object with that id. The object is then active until the application deactivates it.
    ///
    /// It runs on the thread that serves the request, at the priority of the call. Other requests for the object wait for it,
    /// with inheritance of priority, and get the same exception or are sent to the same object if it fails; those for other objects do not.
    ///
    /// # Errors
    /// The exception that the caller gets: OBJECT_NOT_EXIST for an unknown id. Or another object, to which the client sends its requests
    /// instead (ForwardRequest).
    fn incarnate(&self, id: &[u8]) -> Result<Self::Servant, Intervention>;

    /// Ends a servant whose object was deactivated, or whose adapter was destroyed, once its last call has ended. It runs on the
    /// thread of that call, or on the one that deactivates. Unless overridden, it drops the servant.
    ///
    /// A request for the object that comes before it has ended gets TRANSIENT; the object can be incarnated again afterwards.
    fn etherealize(&self, id: &[u8], servant: Self::Servant) {
        let _ = id;
        drop(servant);
    }

    /// Ends a servant as [`etherealize`](Self::etherealize) does, because its adapter was destroyed, or the manager of that was
    /// [deactivated](super::PoaManager::deactivate_and_etherealize): `etherealize` with `cleanup_in_progress` of the standard. Unless
    /// overridden, it calls `etherealize`.
    fn clean_up(&self, id: &[u8], servant: Self::Servant) {
        self.etherealize(id, servant);
    }
}

impl Poa {
    /// Makes the servants of this adapter's objects by an activator: that of each object when its first request comes (RETAIN and
    /// USE_SERVANT_MANAGER of CORBA 3, 11.3.7). The first request also is one that only asks whether the object exists.
    ///
    /// [`create_reference_with_id`](Self::create_reference_with_id) makes references. The objects have the priority that the
    /// adapter declares. [`deactivate_id`](Self::deactivate_id) ends one, and [`destroy`](Self::destroy) all.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless the adapter is persistent; BAD_INV_ORDER 6 if its other objects are served by something
    /// else; NO_RESOURCES if `Limits::objects_max` objects are active.
    pub fn set_servant_activator<I, A>(&self, activator: A) -> Result<(), PoaError>
    where
        I: ServedBy<A::Servant, Object = ObjectRef> + 'static,
        A: ServantActivator,
    {
        let incarnations = Arc::new(Incarnations {
            activator,
            adapter: Arc::downgrade(&self.adapter),
            enforcement: self.enforcement(),
            claims: Mutex::default(),
            _admitted: self.core.admit(I::timings())?,
        });
        let servant = Box::new(Tie::<I, _>::new(incarnations));
        self.place_others::<I>(servant, ServantSourceKind::ServantActivator)
    }
}

/// The objects that an activator has made.
struct Incarnations<A> {
    activator: A,
    adapter: Weak<Adapter>,
    enforcement: Enforcement,
    /// The objects from the beginning of `incarnate` to the end of `etherealize`, by id.
    claims: Mutex<HashMap<Vec<u8>, Arc<Gate>>>,
    /// Dropped with the activator.
    _admitted: Option<AdmittedServant>,
}

/// Keeps other threads from an object while one incarnates it.
struct Gate {
    /// Why the object was not incarnated. Locked until that is known.
    incarnating: Mutex<Option<Intervention>>,
    thread: ThreadId,
}

/// An id whose object exists, until this is dropped.
struct Claim<A> {
    id: Vec<u8>,
    of: Arc<Incarnations<A>>,
}

/// A servant that an activator has made.
struct Incarnation<A: ServantActivator> {
    /// `None` once it is etherealized.
    servant: Option<A::Servant>,
    timing: ServantTiming,
    /// True once the object ends with its adapter, or with the manager of that.
    is_cleaned_up: AtomicBool,
    /// Dropped after the servant.
    claim: Claim<A>,
}

/// A request looks for the object, waits for the thread that incarnates it, and incarnates it if that one could not.
const LOOKS: usize = 3;

impl<A: ServantActivator> Incarnations<A> {
    /// Calls `call` with the object of that id, and incarnates the object if it is not active.
    ///
    /// # Errors
    /// Those of `incarnate` and `call`; UNKNOWN if the activator panics; TRANSIENT if the last servant of the object is being
    /// etherealized; NO_RESOURCES if there are too many objects; OBJ_ADAPTER 1 if the object is not active, and the manager inactive.
    //= CORBA 3 §ServantActivator Interface
    //# Calls of incarnate and etherealize for one object are serialized: neither begins before the other has ended.
    fn with_object<I>(
        self: &Arc<Self>,
        id: &[u8],
        call: impl FnOnce(&ActiveObject) -> Result<(), SystemException>,
    ) -> Result<(), Intervention>
    where
        I: ServedBy<A::Servant, Object = ObjectRef> + 'static,
    {
        let adapter = self.adapter.upgrade().ok_or_else(destroyed)?;
        let orb = adapter.orb().ok_or_else(destroyed)?;
        for look in 1..=LOOKS {
            let place = adapter.objects.lock().by_id.get(id).copied();
            if let Some(object) = place.and_then(|place| orb.server.objects.get(place)) {
                return Ok(call(&object)?);
            }
            if adapter.manager.get() == PoaManagerState::Inactive {
                // An implicit operation; all others are refused before.
                return Err(local::INACTIVE.into());
            }
            if look < LOOKS {
                self.incarnate::<I>(id, &adapter, &orb)?;
            }
        }
        Err(local::BEING_ETHEREALIZED.into())
    }

    /// Incarnates the object with that id, or waits until another thread has done so.
    fn incarnate<I>(
        self: &Arc<Self>,
        id: &[u8],
        adapter: &Arc<Adapter>,
        orb: &Adapters,
    ) -> Result<(), Intervention>
    where
        I: ServedBy<A::Servant, Object = ObjectRef> + 'static,
    {
        let gate = Arc::new(Gate {
            incarnating: Mutex::new(None),
            thread: thread::current().id(),
        });
        let mut failed = gate.incarnating.lock();
        let claimed = match self.claims.lock().entry(id.to_vec()) {
            Entry::Occupied(taken) => Some(Arc::clone(taken.get())),
            Entry::Vacant(free) => {
                free.insert(Arc::clone(&gate));
                None
            }
        };
        if let Some(theirs) = claimed {
            return theirs.wait();
        }
        let placed = self.place::<I>(id, adapter, orb);
        *failed = placed.as_ref().err().cloned();
        placed
    }

    /// Incarnates the object with that id, which this thread has claimed.
    fn place<I>(
        self: &Arc<Self>,
        id: &[u8],
        adapter: &Arc<Adapter>,
        orb: &Adapters,
    ) -> Result<(), Intervention>
    where
        I: ServedBy<A::Servant, Object = ObjectRef> + 'static,
    {
        let claim = Claim {
            id: id.to_vec(),
            of: Arc::clone(self),
        };
        let made = catch_unwind(AssertUnwindSafe(|| self.activator.incarnate(id)));
        let servant = Box::new(Tie::<I, _>::new(Incarnation {
            servant: Some(made.unwrap_or(Err(local::ACTIVATOR_PANICKED.into()))?),
            timing: ServantTiming::new(I::timings().len(), self.enforcement),
            is_cleaned_up: AtomicBool::new(false),
            claim,
        }));
        let activation = Activation {
            id: Some(id),
            priority: None,
        };
        match adapter.place(orb, activation, servant) {
            // The application may have activated the object meanwhile.
            Ok(_) | Err(PoaError::ObjectAlreadyActive) => Ok(()),
            Err(PoaError::System(exception)) => Err(exception.into()),
            Err(_) => Err(local::CONTRADICTION.into()),
        }
    }
}

impl Gate {
    /// Waits until the object is incarnated.
    ///
    /// # Errors
    /// BAD_INV_ORDER 3 if this thread incarnates it; what the thread got that could not.
    fn wait(&self) -> Result<(), Intervention> {
        let failed = match self.incarnating.try_lock() {
            Some(failed) => failed,
            None if self.thread == thread::current().id() => {
                return Err(local::WOULD_DEADLOCK.into());
            }
            None => self.incarnating.lock(),
        };
        failed.clone().map_or(Ok(()), Err)
    }
}

impl<A> Drop for Claim<A> {
    fn drop(&mut self) {
        let gate = self.of.claims.lock().remove(&self.id);
        drop(gate);
    }
}

impl<A: ServantActivator> Drop for Incarnation<A> {
    fn drop(&mut self) {
        //= CORBA 3 §ServantActivator Interface
        //# etherealize is called once the requests of the object that were in progress have ended.
        if let Some(servant) = self.servant.take() {
            let Claim { id, of } = &self.claim;
            if *self.is_cleaned_up.get_mut() {
                of.activator.clean_up(id, servant);
            } else {
                of.activator.etherealize(id, servant);
            }
        }
    }
}

impl<I, A> Servant for Tie<I, Arc<Incarnations<A>>>
where
    I: ServedBy<A::Servant, Object = ObjectRef> + 'static,
    A: ServantActivator,
{
    fn dispatch(
        &self,
        operation: &[u8],
        call: &mut ServerCall<'_>,
        id: &LocatedId,
    ) -> Result<(), SystemException> {
        let dispatch = |object: &ActiveObject| {
            call.reply_early(&*object.servant);
            object.servant.dispatch(operation, call, id)
        };
        let dispatched = self.servant().with_object::<I>(id.bytes(), dispatch);
        dispatched.or_else(|intervention| call.intervene(intervention))
    }

    fn is_locator(&self) -> bool {
        true
    }

    fn timing(&self, operation: &[u8]) -> Option<&'static OperationTiming> {
        timing_of::<A::Servant, I>(operation)
    }

    /// Incarnates the object. A panic of its last servant's end becomes UNKNOWN for this request.
    fn check_presence(&self, id: &LocatedId) -> Result<(), Intervention> {
        let incarnate = || self.servant().with_object::<I>(id.bytes(), |_| Ok(()));
        let present = catch_unwind(AssertUnwindSafe(incarnate));
        present.unwrap_or(Err(local::ACTIVATOR_PANICKED.into()))
    }
}

impl<I, A> Servant for Tie<I, Incarnation<A>>
where
    I: ServedBy<A::Servant, Object = ObjectRef>,
    A: ServantActivator,
{
    fn dispatch(
        &self,
        operation: &[u8],
        call: &mut ServerCall<'_>,
        _id: &LocatedId,
    ) -> Result<(), SystemException> {
        let incarnation = self.servant();
        let operation = begin::<A::Servant, I>(operation, call, &incarnation.timing)?;
        let servant = incarnation.servant.as_ref().ok_or(local::CONTRADICTION)?;
        I::dispatch(servant, operation, call)
    }

    fn note_cleanup(&self) {
        self.servant().is_cleaned_up.store(true, Ordering::Relaxed);
    }

    fn timing(&self, operation: &[u8]) -> Option<&'static OperationTiming> {
        timing_of::<A::Servant, I>(operation)
    }
}
