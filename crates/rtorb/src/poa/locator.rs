//! Servant locators and default servants, which serve objects that are not active.

use super::adapter::{Poa, ServantSourceKind};
use super::admission::AdmittedServant;
use super::{PoaError, ServedBy, begin, timing_of};
use crate::exception::{SystemException, local};
use crate::reference::ObjectRef;
use crate::server::{LocatedId, Servant, ServerCall};
use crate::timing::{OperationTiming, ServantTiming};
use core::marker::PhantomData;
use rtorb_core::{Intervention, Tie};
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Poa {
    /// Serves all objects of this adapter by servants that `locate` makes from the object id, one for each request (ServantLocator of
    /// NON_RETAIN, CORBA 3, 11.3.5). `locate` is its preinvoke, and the `Drop` of the servant its postinvoke. Objects need no memory of
    /// their own, and there may be one for each possible id.
    ///
    /// `locate` runs on the thread that serves the request, at the priority of the call. Several threads may run it at once. It also
    /// runs for requests that only ask whether the object exists, then at the thread's own priority and without a
    /// [`CurrentCall`](crate::CurrentCall). The servant is dropped after the request, so it should be cheap: the
    /// id, and a pointer to shared data. A system exception is sent to the caller: return OBJECT_NOT_EXIST for an unknown id. With
    /// [`Intervention::Forward`], the client sends its requests to another object instead (ForwardRequest).
    ///
    /// [`create_reference_with_id`](Self::create_reference_with_id) makes references. Objects have the priority that the adapter
    /// declares; a `PriorityTransform` does not get their ids.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless the adapter is persistent; BAD_INV_ORDER 6 if it already has a locator or active objects;
    /// NO_RESOURCES if `Limits::objects_max` objects are active.
    pub fn set_servant_locator<I, S, L>(&self, locate: L) -> Result<(), PoaError>
    where
        I: ServedBy<S, Object = ObjectRef> + 'static,
        S: 'static,
        L: Fn(&[u8]) -> Result<S, Intervention> + Send + Sync + 'static,
    {
        self.locate::<I, S, L>(locate, ServantSourceKind::ServantLocator)
    }

    /// Serves all objects of this adapter that are not active by one default servant (USE_DEFAULT_SERVANT of CORBA 3, 11.3.7.6).
    /// Objects that the adapter activates have their own servants.
    ///
    /// A servant in C++ asks PortableServer::Current for the id of the object that is called. Here `servant` gets it, and returns
    /// the default servant for this id: the id, and a pointer to shared data. All else is as for a
    /// [servant locator](Self::set_servant_locator).
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless the adapter is persistent; BAD_INV_ORDER 6 if its other objects are served by something
    /// else; NO_RESOURCES if `Limits::objects_max` objects are active.
    pub fn set_default_servant<I, S, L>(&self, servant: L) -> Result<(), PoaError>
    where
        I: ServedBy<S, Object = ObjectRef> + 'static,
        S: 'static,
        L: Fn(&[u8]) -> Result<S, Intervention> + Send + Sync + 'static,
    {
        self.locate::<I, S, L>(servant, ServantSourceKind::DefaultServant)
    }

    fn locate<I, S, L>(&self, locate: L, kind: ServantSourceKind) -> Result<(), PoaError>
    where
        I: ServedBy<S, Object = ObjectRef> + 'static,
        S: 'static,
        L: Fn(&[u8]) -> Result<S, Intervention> + Send + Sync + 'static,
    {
        let locator = Locator {
            _admitted: self.core.admit(I::timings())?,
            locate,
            timing: ServantTiming::new(I::timings().len(), self.enforcement()),
            servant: PhantomData,
        };
        self.place_others::<I>(Box::new(Tie::<I, _>::new(locator)), kind)
    }
}

/// Locates the servant of each request, for the objects of an adapter that are not active.
struct Locator<S, L> {
    /// Dropped with the locator.
    _admitted: Option<AdmittedServant>,
    locate: L,
    timing: ServantTiming,
    servant: PhantomData<fn() -> S>,
}

impl<I, S, L> Servant for Tie<I, Locator<S, L>>
where
    I: ServedBy<S, Object = ObjectRef>,
    L: Fn(&[u8]) -> Result<S, Intervention> + Send + Sync,
{
    fn dispatch(
        &self,
        operation: &[u8],
        call: &mut ServerCall<'_>,
        id: &LocatedId,
    ) -> Result<(), SystemException> {
        //= CORBA 3 §ServantLocator Interface
        //# preinvoke, the operation and postinvoke run on one thread, in this order, for each request.
        let locator = self.servant();
        let operation = begin::<S, I>(operation, call, &locator.timing)?;
        let servant = match (locator.locate)(id.bytes()) {
            Ok(servant) => servant,
            Err(intervention) => return call.intervene(intervention),
        };
        call.reply_early(self);
        I::dispatch(&servant, operation, call)
    }

    fn is_locator(&self) -> bool {
        true
    }

    fn timing(&self, operation: &[u8]) -> Option<&'static OperationTiming> {
        timing_of::<S, I>(operation)
    }

    /// Calls the locator. A panic in it becomes UNKNOWN for this request.
    fn check_presence(&self, id: &LocatedId) -> Result<(), Intervention> {
        let located = catch_unwind(AssertUnwindSafe(|| {
            (self.servant().locate)(id.bytes()).map(|_| ())
        }));
        located.unwrap_or(Err(local::LOCATOR_PANICKED.into()))
    }
}
