//! The portable object adapter: [`Poa`] connects objects with servants.
//!
//! An object's key has its place in a table and a generation. Finding a servant takes no lock, and costs the same for one object
//! and for a million.

mod adapter;
mod adapters;
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
#[doc(hidden)]
pub use crate::server::unknown_operation;
pub use adapter::{Poa, PoaError};
pub use dynamic::DynamicServant;
pub use manager::PoaManager;
pub use policies::{IdAssignment, Lifespan, PoaPolicies};

pub(crate) use adapters::Adapters;

use crate::connection::ServantTraits;
use crate::exception::SystemException;
use crate::interface::Interface;
use crate::server::{LocatedId, Servant};
use crate::timing::Arrivals;
use core::marker::PhantomData;
use rtorb_os::set_once::SetOnce;
use std::sync::Arc;

/// How a servant of type `S` serves the interface whose reference type is `Self`.
///
/// The compiler generates it for every `S` that implements the interface's servant trait.
pub trait ServedBy<S>: Interface {
    /// The number of the operation with that name on the wire.
    fn find_operation(name: &[u8]) -> Option<usize>;

    /// Where in [`timings`](Interface::timings) the operation with that number is; `None` for one that is not annotated.
    #[inline]
    fn timing_of(_operation: usize) -> Option<usize> {
        None
    }

    /// Decodes the arguments, calls the servant and sends the reply.
    ///
    /// # Errors
    /// A system exception, which the caller is sent.
    fn dispatch(
        servant: &S,
        operation: usize,
        call: &mut ServerCall<'_>,
    ) -> Result<(), SystemException>;

    /// The servant as the servant trait of the interface, and as those of the interfaces that this inherits from.
    fn traits(servant: &Arc<S>) -> ServantTraits;
}

/// A servant with the interface that it is activated for.
pub(crate) struct Tie<I, S> {
    servant: Arc<S>,
    /// Made by the first call that needs no request.
    traits: SetOnce<ServantTraits>,
    arrivals: Arrivals,
    interface: PhantomData<fn() -> I>,
}

impl<I: Interface, S> Tie<I, S> {
    pub(crate) fn new(servant: S) -> Self {
        Self {
            servant: Arc::new(servant),
            traits: SetOnce::new(),
            arrivals: Arrivals::new(I::timings().len()),
            interface: PhantomData,
        }
    }
}

impl<S: Send + Sync, I: ServedBy<S>> Servant for Tie<I, S> {
    fn dispatch(
        &self,
        operation: &[u8],
        call: &mut ServerCall<'_>,
        _id: &LocatedId,
    ) -> Result<(), SystemException> {
        let operation = I::find_operation(operation).ok_or_else(unknown_operation)?;
        if let Some(place) = I::timing_of(operation) {
            call.begin_timing(I::timings(), place, &self.arrivals);
        }
        I::dispatch(&self.servant, operation, call)
    }

    #[inline]
    fn traits(&self) -> Option<&ServantTraits> {
        Some(self.traits.get_or_make(|| I::traits(&self.servant)))
    }

    fn repository_id(&self) -> &'static str {
        I::REPOSITORY_ID
    }

    fn is_a(&self, repository_id: &str) -> bool {
        I::derives_from(repository_id)
    }
}
