//! System exceptions.
//!
//! ```
//! use rtorb::{CompletionStatus, ExceptionKind};
//! # fn main() -> Result<(), rtorb::OrbError> {
//! let orb = rtorb::Orb::builder().build()?;
//! // Nothing listens on port 1.
//! let object = orb.string_to_object("corbaloc:iiop:127.0.0.1:1/Valve")?;
//! let exception = object.is_a("IDL:Valve:1.0").expect_err("it cannot connect");
//! assert_eq!(exception.kind, ExceptionKind::Transient);
//! // The call was not carried out: calling again is safe.
//! assert_eq!(exception.completed, CompletionStatus::No);
//! // TRANSIENT (minor 0x4f4d0002, COMPLETED_NO): connecting to iiop://127.0.0.1:1, after 60us: Connection refused ...
//! println!("{exception}");
//! # Ok(())
//! # }
//! ```

pub(crate) use rtorb_core::exception::{COLLOCATED_DEPTH, inconsistent, oneway};
#[doc(inline)]
pub use rtorb_core::exception::{
    Cause, CompletionStatus, ExceptionKind, OMG, OsError, Phase, RTORB, SystemException,
    TextCodeSet, UnsentCharacter, local,
};
#[cfg(test)]
pub(crate) use rtorb_core::exception::{NO_USABLE_PROFILE, text};
