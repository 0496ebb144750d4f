//! Traits of types that are generated from IDL.

use crate::exception::SystemException;
use crate::timing::OperationTiming;
use rtorb_wire::cdr::Reference;
use rtorb_wire::{Decode, Encode};

/// The reference type of an ORB for objects of any interface.
pub trait UntypedReference: Clone + Reference {
    /// A request that the ORB serves.
    type ServerCall<'m>;

    /// The repository id that the reference contains; empty if it contains none.
    fn type_id(&self) -> &str;

    /// Asks the object whether it has the interface with that repository id.
    ///
    /// # Errors
    /// The exception of the call.
    fn is_a(&self, repository_id: &str) -> Result<bool, SystemException>;

    /// Prepares the reference for calls of these annotated operations.
    #[must_use]
    fn with_timings(self, operations: &'static [OperationTiming]) -> Self;
}

/// A reference type that is generated from an IDL interface.
pub trait Interface: Sized + Clone {
    /// The untyped reference inside: the `ObjectRef` of the ORB.
    type Object: UntypedReference;
    /// The interface's repository id, for example `IDL:Cubit:1.0`.
    const REPOSITORY_ID: &'static str;
    /// The repository ids of all interfaces that it inherits from, each once.
    const ANCESTORS: &'static [&'static str];

    /// The timing of the operations that objects of this interface have and that are annotated in IDL, in their order.
    fn timings() -> &'static [OperationTiming] {
        &[]
    }

    /// A reference of this type to an object, without asking the object for its interface.
    fn unchecked_narrow(object: Self::Object) -> Self;

    /// The reference without its type.
    fn as_object(&self) -> &Self::Object;

    /// True if a reference of this type can be used where the interface `repository_id` is expected.
    fn derives_from(repository_id: &str) -> bool {
        repository_id == Self::REPOSITORY_ID
            || repository_id == "IDL:omg.org/CORBA/Object:1.0"
            || Self::ANCESTORS.contains(&repository_id)
    }
}

/// A user exception of IDL.
pub trait UserException: Encode + Decode + core::error::Error {
    /// Its repository id.
    const REPOSITORY_ID: &'static str;
}

/// A reference of type `I` to an object whose reference has that type id, or that says so (`_is_a`).
///
/// # Errors
/// BAD_PARAM if the object has another interface; the exception of `_is_a`.
pub fn narrow<I: Interface>(object: &I::Object) -> Result<I, SystemException> {
    if object.type_id() == I::REPOSITORY_ID || object.is_a(I::REPOSITORY_ID)? {
        Ok(I::unchecked_narrow(object.clone()))
    } else {
        Err(SystemException::wrong_interface(
            object.type_id(),
            I::REPOSITORY_ID,
        ))
    }
}
