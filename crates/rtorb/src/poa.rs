//! The portable object adapter: [`Poa`] connects objects with servants.
//!
//! An object's key has its place in a table and a generation. Finding a servant takes no lock, and costs the same for one object
//! and for a million.

mod adapter;
mod adapters;
mod admission;
mod changed_priority;
mod chosen_policies;
mod dynamic;
mod locator;
mod manager;
mod policies;
mod published;
mod rt_poa;
mod rt_policies;

pub use crate::server::PoaManagerState;
pub use crate::server::ServerCall;
pub use adapter::{Poa, PoaError};
pub use dynamic::DynamicServant;
pub use manager::PoaManager;
pub use policies::{IdAssignment, Lifespan, PoaPolicies};
#[doc(inline)]
pub use rtorb_core::ServedBy;

pub(crate) use adapters::Adapters;
pub use admission::{AdmittedServant, ServantAdmission};
pub(crate) use chosen_policies::goes_by;

use crate::exception::SystemException;
use crate::reference::ObjectRef;
use crate::server::{LocatedId, Servant};
use crate::timing::{Enforcement, OperationTiming, ServantTiming};
use core::marker::PhantomData;
use rtorb_core::codegen::ServantTraits;
use rtorb_core::{Interface, unknown_operation};
use std::sync::Arc;

/// A servant with the interface that it is activated for.
pub(crate) struct Tie<I, S> {
    servant: Arc<S>,
    timing: ServantTiming,
    /// Dropped with the servant.
    _admitted: Option<AdmittedServant>,
    interface: PhantomData<fn() -> I>,
}

/// The annotations of an operation of `I`; `None` if it has none.
fn timing_of<S, I: ServedBy<S>>(operation: &[u8]) -> Option<&'static OperationTiming> {
    I::timings().get(I::timing_of(I::find_operation(operation)?)?)
}

impl<I: Interface, S> Tie<I, S> {
    pub(crate) fn new(
        servant: S,
        enforcement: Enforcement,
        admitted: Option<AdmittedServant>,
    ) -> Self {
        Self {
            servant: Arc::new(servant),
            timing: ServantTiming::new(I::timings().len(), enforcement),
            _admitted: admitted,
            interface: PhantomData,
        }
    }
}

impl<S: Send + Sync, I: ServedBy<S, Object = ObjectRef>> Servant for Tie<I, S> {
    fn dispatch(
        &self,
        operation: &[u8],
        call: &mut ServerCall<'_>,
        _id: &LocatedId,
    ) -> Result<(), SystemException> {
        let operation = I::find_operation(operation).ok_or_else(unknown_operation)?;
        if let Some(place) = I::timing_of(operation) {
            call.responder
                .begin_timing(I::timings(), place, &self.timing)?;
        }
        I::dispatch(&self.servant, operation, call)
    }

    fn traits(&self) -> Option<ServantTraits> {
        I::traits(&self.servant)
    }

    fn timing(&self, operation: &[u8]) -> Option<&'static OperationTiming> {
        timing_of::<S, I>(operation)
    }

    fn repository_id(&self) -> &'static str {
        I::REPOSITORY_ID
    }

    fn is_a(&self, repository_id: &str) -> bool {
        I::derives_from(repository_id)
    }
}
