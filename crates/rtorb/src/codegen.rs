//! Support API for generated code. Not public.
//!
//! `docs/reference/mapping.md` shows the generated code.

pub use crate::orb::EndedCall;
pub use crate::realtime::Priority;
pub use crate::reference::{Call, ObjectRef, ReplyPoller, Starter, UntypedCall};
pub use crate::server::{DeferReply, Deferring, Executor, Responder, ServerCall, TaskServant};
pub use rtorb_core::codegen::*;
pub use rtorb_os::set_once::SetOnce;
pub use std::time::Instant;

impl UntypedReference for ObjectRef {
    type ServerCall<'m> = ServerCall<'m>;

    fn type_id(&self) -> &str {
        self.type_id()
    }

    fn is_a(&self, repository_id: &str) -> Result<bool, SystemException> {
        self.is_a(repository_id)
    }

    /// Makes the ORB's counters for these operations, so that no call has to, and chooses their connections.
    fn with_timings(self, operations: &'static [OperationTiming]) -> Self {
        self.client().core.timing.prepare(operations);
        self.with_operations(operations)
    }
}

/// Gives a reference type the policies of an untyped reference, and its text.
#[macro_export]
#[doc(hidden)]
macro_rules! policies {
    ($name:ident) => {
        impl $name {
            /// Returns a reference to the same object with another timeout of each call; `None` for no timeout. See
            /// `rtorb::ObjectRef::with_timeout`.
            #[must_use]
            pub fn with_timeout(
                &self,
                timeout: impl ::core::convert::Into<::core::option::Option<::core::time::Duration>>,
            ) -> Self {
                Self(self.0.with_timeout(timeout))
            }

            /// Returns a reference to the same object whose calls have that deadline, which the server learns. See
            /// `rtorb::ObjectRef::with_deadline`.
            #[must_use]
            pub fn with_deadline(&self, deadline: ::core::time::Duration) -> Self {
                Self(self.0.with_deadline(deadline))
            }

            /// Returns a reference to the same object whose calls all end by `end`. See `rtorb::ObjectRef::with_end_time`.
            #[must_use]
            pub fn with_end_time(&self, end: ::std::time::Instant) -> Self {
                Self(self.0.with_end_time(end))
            }

            /// Returns a reference to the same object with another scope for oneways. See `rtorb::ObjectRef::with_sync_scope`.
            #[must_use]
            pub fn with_sync_scope(&self, sync_scope: $crate::SyncScope) -> Self {
                Self(self.0.with_sync_scope(sync_scope))
            }

            /// Returns a reference to the same object with other policies. See `rtorb::ObjectRef::set_policy_overrides`.
            ///
            /// # Errors
            /// NO_PERMISSION for policies of object adapters; BAD_PARAM for a wrong band of priorities.
            pub fn set_policy_overrides(
                &self,
                policies: &[$crate::rt::Policy],
            ) -> ::core::result::Result<Self, $crate::codegen::SystemException> {
                ::core::result::Result::Ok(Self(self.0.set_policy_overrides(policies)?))
            }
        }

        /// The stringified reference: `IOR:` and hexadecimal digits.
        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(&self.0, f)
            }
        }
    };
}
pub use crate::policies;

/// Makes a type of pollers a [`ReplyPoller`], whose methods yield to those of the type.
#[macro_export]
#[doc(hidden)]
macro_rules! poller {
    ($name:ident) => {
        impl ::core::ops::Deref for $name {
            type Target = $crate::codegen::ReplyPoller;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl ::core::ops::DerefMut for $name {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.0
            }
        }
    };
}
pub use crate::poller;

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
