//! System exceptions. Errors of the layers below become exceptions here.

#[cfg(feature = "std")]
mod advice;
#[cfg(feature = "std")]
mod cause;
mod detail;
pub mod local;
#[doc(hidden)]
pub mod text;

use alloc::boxed::Box;
use alloc::format;
use core::fmt;
use detail::Detail;
use rtorb_wire::code_sets::CodeSetError;
use rtorb_wire::giop::SystemExceptionBody;
use rtorb_wire::{DecodeError, EncodeError, exception};

#[cfg(feature = "std")]
#[doc(hidden)]
pub use advice::{COLLOCATED_DEPTH, NO_USABLE_PROFILE, inconsistent, oneway};
#[cfg(feature = "std")]
pub use cause::{Cause, OsError, Phase};
pub use rtorb_wire::exception::{CompletionStatus, ExceptionKind, OMG, RTORB};
pub use text::{TextCodeSet, UnsentCharacter};

/// A CORBA system exception, and its cause where the ORB knows it.
///
/// Only `kind`, `minor` and `completed` are sent to a client; the cause and the [detail](Self::detail) stay on the side where they
/// were found. The text of an exception has all of these, and advice where the remedy is clear. Where there is no operating system,
/// an exception has neither a cause nor advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemException {
    /// Which exception.
    pub kind: ExceptionKind,
    /// The reason in numbers: a vendor id in the upper 20 bits, a code in the lower 12.
    pub minor: u32,
    /// Whether the operation was carried out.
    pub completed: CompletionStatus,
    /// Where it arose, if that was in this process.
    #[cfg(feature = "std")]
    pub cause: Option<Cause>,
    /// The values that it concerns, if a local check found it.
    detail: Option<Box<Detail>>,
    /// The character that could not be sent.
    unsent: Option<UnsentCharacter>,
}

impl SystemException {
    /// An exception without a cause.
    pub const fn new(kind: ExceptionKind, minor: u32, completed: CompletionStatus) -> Self {
        Self {
            kind,
            minor,
            completed,
            #[cfg(feature = "std")]
            cause: None,
            detail: None,
            unsent: None,
        }
    }

    /// An exception with a minor code of the OMG, for an operation that was not carried out.
    pub const fn omg(kind: ExceptionKind, code: u32) -> Self {
        Self::new(kind, OMG | code, CompletionStatus::No)
    }

    /// An exception with minor code 0, COMPLETED_NO.
    const fn plain(kind: ExceptionKind) -> Self {
        Self::new(kind, 0, CompletionStatus::No)
    }

    /// The same exception with another completion status.
    #[must_use]
    pub const fn with_completion(mut self, completed: CompletionStatus) -> Self {
        self.completed = completed;
        self
    }

    /// The exception for an object that does not have the interface that it is narrowed to.
    #[cold]
    pub(crate) fn wrong_interface(found: &str, wanted: &str) -> Self {
        let minor = exception::WRONG_INTERFACE;
        let wrong = Self::new(ExceptionKind::BadParam, minor, CompletionStatus::No);
        if !cfg!(feature = "std") {
            return wrong;
        }
        wrong.with_detail(match found {
            "" => format!("the object is not of type {wanted}"),
            _ => format!("the object is of type {found}, not of {wanted}"),
        })
    }

    /// The form in which it is sent.
    #[doc(hidden)]
    pub fn body(&self) -> SystemExceptionBody<'static> {
        SystemExceptionBody {
            repository_id: self.kind.repository_id().as_bytes(),
            minor: self.minor,
            completed: self.completed as u32,
        }
    }

    /// The character that could not be sent, for DATA_CONVERSION that arose here.
    pub const fn unsent_character(&self) -> Option<UnsentCharacter> {
        self.unsent
    }

    /// The exception for a decoding error, for an operation that was not carried out.
    pub const fn from_decode(error: DecodeError) -> Self {
        let (kind, minor) = exception::of_decoding(error);
        Self::new(kind, minor, CompletionStatus::No)
    }

    /// The exception for an encoding error, for an operation that was not carried out.
    pub fn from_encode(error: EncodeError) -> Self {
        let (kind, minor) = exception::of_encoding(error);
        let mut exception = Self::new(kind, minor, CompletionStatus::No);
        exception.unsent = UnsentCharacter::of(error);
        match error {
            EncodeError::BeyondLargest { .. } | EncodeError::TypeCodeTooLarge { .. } => {
                exception.with_detail(error)
            }
            _ => exception,
        }
    }
}

impl From<ExceptionKind> for SystemException {
    fn from(kind: ExceptionKind) -> Self {
        Self::plain(kind)
    }
}

/// The exception for arguments of a request that cannot be decoded. Wide characters in GIOP 1.0 are the client's mistake
/// (CORBA 3, MARSHAL 5; in a reply they are the server's, MARSHAL 6).
impl From<DecodeError> for SystemException {
    fn from(error: DecodeError) -> Self {
        match error {
            DecodeError::WideInGiop10 => Self::omg(ExceptionKind::Marshal, 5),
            error => Self::from_decode(error),
        }
    }
}

impl From<EncodeError> for SystemException {
    fn from(error: EncodeError) -> Self {
        Self::from_encode(error)
    }
}

/// The exception for the code sets that a request names.
impl From<CodeSetError> for SystemException {
    fn from(error: CodeSetError) -> Self {
        match error {
            CodeSetError::Unsupported(_) => Self::omg(ExceptionKind::CodesetIncompatible, 2),
            CodeSetError::Changed => Self::omg(ExceptionKind::Marshal, 9),
            CodeSetError::Malformed(error) => error.into(),
            _ => local::CONTRADICTION,
        }
    }
}

/// The exception that a reply contains.
impl From<SystemExceptionBody<'_>> for SystemException {
    fn from(body: SystemExceptionBody<'_>) -> Self {
        Self::new(
            ExceptionKind::from_repository_id(body.repository_id),
            body.minor,
            CompletionStatus::from_number(body.completed),
        )
    }
}

impl fmt::Display for SystemException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} (minor {:#010x}, {})",
            self.kind, self.minor, self.completed
        )?;
        #[cfg(feature = "std")]
        if let Some(cause) = &self.cause {
            write!(f, ": {cause}")?;
        }
        if let Some(detail) = self.detail() {
            write!(f, ": {detail}")?;
        }
        if let Some(character) = &self.unsent {
            write!(f, ": {character}")?;
        }
        #[cfg(feature = "std")]
        if let Some(advice) = self.advice() {
            write!(f, "; {advice}")?;
        }
        Ok(())
    }
}

impl core::error::Error for SystemException {
    #[cfg(feature = "std")]
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        let errno = self.cause.as_ref()?.errno.as_ref()?;
        Some(errno)
    }
}
