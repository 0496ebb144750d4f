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
pub use adapter::{Poa, PoaError};
pub use dynamic::DynamicServant;
pub use manager::PoaManager;
pub use policies::{IdAssignment, Lifespan, PoaPolicies};

pub(crate) use adapters::Adapters;

use crate::exception::SystemException;
use crate::interface::Interface;
use crate::server::{LocatedId, Servant, unknown_operation};
use crate::timing::Arrivals;
use core::marker::PhantomData;

/// How a servant of type `S` serves the interface whose reference type is `Self`.
///
/// The compiler generates it for every `S` that implements the interface's servant trait.
pub trait ServedBy<S>: Interface {
    /// Returns the number of the operation with this name on the wire.
    fn find_operation(name: &[u8]) -> Option<usize>;

    /// Returns the place of an operation in [`timings`](Interface::timings); `None` if it is not annotated.
    #[inline]
    fn timing_of(_operation: usize) -> Option<usize> {
        None
    }

    /// Decodes the arguments, calls the servant and sends the reply.
    ///
    /// # Errors
    /// A system exception, which is sent to the caller.
    fn dispatch(
        servant: &S,
        operation: usize,
        call: &mut ServerCall<'_>,
    ) -> Result<(), SystemException>;
}

/// A servant with the interface that it is activated for.
pub(crate) struct Tie<I, S> {
    servant: S,
    arrivals: Arrivals,
    interface: PhantomData<fn() -> I>,
}

impl<I: Interface, S> Tie<I, S> {
    pub(crate) fn new(servant: S) -> Self {
        Self {
            servant,
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

    fn repository_id(&self) -> &'static str {
        I::REPOSITORY_ID
    }

    fn is_a(&self, repository_id: &str) -> bool {
        I::derives_from(repository_id)
    }
}
