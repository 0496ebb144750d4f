//! Servant locators: objects without activation, whose servant is made for each request.

use super::adapter::Poa;
use super::{PoaError, ServedBy, unknown_operation};
use crate::exception::{SystemException, local};
use crate::reference::ObjectRef;
use crate::server::{LocatedId, Servant, ServerCall};
use crate::timing::Arrivals;
use core::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

impl Poa {
    /// Serves every object of this adapter by a servant that `locate` makes of its id for each request (ServantLocator of
    /// NON_RETAIN, CORBA 3, 11.3.5): objects need no memory of their own, and there may be as many as there are ids.
    ///
    /// `locate` runs in the thread that serves the request, at the priority of the call, in several threads at once, and also
    /// for those that only ask whether the object is there. What it answers is dropped behind the request. Make it cheap: a
    /// pointer to what the objects share and the id. A system exception goes to the caller: OBJECT_NOT_EXIST for an id that
    /// stands for no object.
    ///
    /// References are made by [`create_reference_with_id`](Self::create_reference_with_id). Objects have the priority that
    /// the adapter declares; a `PriorityTransform` does not get their ids.
    ///
    /// # Errors
    /// [`PoaError::WrongPolicy`] unless the adapter is persistent; BAD_INV_ORDER 6 when it has a locator or active objects
    /// already; NO_RESOURCES when `Limits::objects_max` are active.
    pub fn set_servant_locator<I, S, L>(&self, locate: L) -> Result<(), PoaError>
    where
        I: ServedBy<S, Object = ObjectRef> + 'static,
        S: 'static,
        L: Fn(&[u8]) -> Result<S, SystemException> + Send + Sync + 'static,
    {
        let located = Located {
            locate,
            arrivals: Arrivals::new(I::timings().len()),
            interface: PhantomData::<fn() -> (I, S)>,
        };
        self.place_locator::<I>(Box::new(located))
    }
}

/// The servant of all objects of an adapter: locates the servant of each request.
struct Located<I, S, L> {
    locate: L,
    arrivals: Arrivals,
    interface: PhantomData<fn() -> (I, S)>,
}

impl<I, S, L> Servant for Located<I, S, L>
where
    I: ServedBy<S, Object = ObjectRef>,
    L: Fn(&[u8]) -> Result<S, SystemException> + Send + Sync,
{
    fn dispatch(
        &self,
        operation: &[u8],
        call: &mut ServerCall<'_>,
        id: &LocatedId,
    ) -> Result<(), SystemException> {
        let operation = I::find_operation(operation).ok_or_else(unknown_operation)?;
        if let Some(place) = I::timing_of(operation) {
            call.responder
                .begin_timing(I::timings(), place, &self.arrivals);
        }
        let servant = (self.locate)(id.octets())?;
        I::dispatch(&servant, operation, call)
    }

    fn repository_id(&self) -> &'static str {
        I::REPOSITORY_ID
    }

    fn is_a(&self, repository_id: &str) -> bool {
        I::derives_from(repository_id)
    }

    /// A panic in the locator is UNKNOWN for this request.
    fn check_presence(&self, id: &LocatedId) -> Result<(), SystemException> {
        let located = catch_unwind(AssertUnwindSafe(|| (self.locate)(id.octets()).map(|_| ())));
        located.unwrap_or(Err(local::LOCATOR_PANICKED))
    }
}
