//! Support API for generated code. Not public.
//!
//! `docs/reference/mapping.md` shows the generated code.

pub use crate::reference::ObjectRef;
pub use crate::server::ServerCall;
pub use rtorb_core::codegen::*;
pub use rtorb_os::set_once::SetOnce;

impl UntypedReference for ObjectRef {
    type ServerCall<'m> = ServerCall<'m>;

    fn type_id(&self) -> &str {
        self.type_id()
    }

    fn is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        self.is_a(repository_id)
    }

    /// Makes the ORB's counters for these operations, so that no call has to.
    fn with_timings(self, operations: &'static [OperationTiming]) -> Self {
        self.client().core.timing.prepare(operations);
        self
    }
}

/// Gives a type a TypeCode, which is made once: the TypeCode of a type that contains another one twice shares the other's.
#[macro_export]
#[doc(hidden)]
macro_rules! typed {
    ($name:ident = $type_code:expr) => {
        impl $crate::codegen::Typed for $name {
            fn type_code() -> $crate::codegen::TypeCode {
                static TYPE_CODE: $crate::codegen::SetOnce<$crate::codegen::TypeCode> =
                    $crate::codegen::SetOnce::new();
                ::core::clone::Clone::clone(TYPE_CODE.get_or_make(|| $type_code))
            }
        }
    };
}
pub use crate::typed;
