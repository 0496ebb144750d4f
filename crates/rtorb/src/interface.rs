//! What every reference type that IDL makes has in common.

use crate::exception::{ExceptionKind, SystemException};
use crate::reference::ObjectRef;
use crate::timing::OperationTiming;

/// A reference type made of an IDL interface.
pub trait Interface: Sized + Clone {
    /// The interface's repository id, for example `IDL:Cubit:1.0`.
    const REPOSITORY_ID: &'static str;
    /// The repository ids of all interfaces that it inherits from, each once.
    const ANCESTORS: &'static [&'static str];

    /// The timing of the operations that objects of this interface have and that are annotated in IDL, in their order.
    fn timings() -> &'static [OperationTiming] {
        &[]
    }

    /// Takes an object for one of this interface without asking it.
    fn unchecked_narrow(object: ObjectRef) -> Self;

    /// The reference without its type.
    fn as_object(&self) -> &ObjectRef;

    /// True if a reference of this type can be used where the interface `repository_id` is expected.
    fn derives_from(repository_id: &str) -> bool {
        repository_id == Self::REPOSITORY_ID
            || repository_id == "IDL:omg.org/CORBA/Object:1.0"
            || Self::ANCESTORS.contains(&repository_id)
    }
}

/// Takes an object for one of interface `I`: by the type id that its reference carries, else by asking it.
///
/// # Errors
/// BAD_PARAM when it is of another interface; what `_is_a` raises when it cannot be asked.
pub fn narrow<I: Interface>(object: &ObjectRef) -> Result<I, SystemException> {
    if object.type_id() == I::REPOSITORY_ID || object.is_a(I::REPOSITORY_ID)? {
        Ok(I::unchecked_narrow(object.clone()))
    } else {
        Err(ExceptionKind::BadParam.into())
    }
}
