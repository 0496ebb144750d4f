//! Support API for generated code. Not public.
//!
//! It has the names that `rtorb::codegen` has, so that the IDL compiler's output serves both crates.

pub use crate::reference::ObjectRef;
pub use crate::server::ServerCall;
pub use rtorb_core::codegen::*;

impl UntypedReference for ObjectRef {
    type ServerCall<'m> = ServerCall<'m>;

    fn type_id(&self) -> &str {
        self.type_id()
    }

    fn is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        self.is_a(repository_id)
    }

    fn with_timings(self, _operations: &'static [OperationTiming]) -> Self {
        self
    }
}

/// Gives a reference type the policy of an untyped reference.
#[macro_export]
#[doc(hidden)]
macro_rules! policies {
    ($name:ident) => {
        impl $name {
            /// The same reference, whose calls carry that CORBA priority (0 to 32,767) to a server that declares
            /// CLIENT_PROPAGATED.
            #[must_use]
            pub fn with_priority(self, priority: i16) -> Self {
                Self(self.0.with_priority(priority))
            }
        }
    };
}
pub use crate::policies;

/// Gives a type a TypeCode, which is made each time that it is asked for: only an any needs it.
#[macro_export]
#[doc(hidden)]
macro_rules! typed {
    ($name:ident = $type_code:expr) => {
        impl $crate::codegen::Typed for $name {
            fn type_code() -> $crate::codegen::TypeCode {
                $type_code
            }
        }
    };
}
pub use crate::typed;
