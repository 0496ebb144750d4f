//! System exceptions, without the cause that `rtorb` keeps: there is no operating system that could say more.

use core::fmt;
use rtorb_wire::giop::SystemExceptionBody;
use rtorb_wire::{DecodeError, EncodeError, exception};

pub use rtorb_wire::exception::{CompletionStatus, ExceptionKind, OMG, RTORB};

/// A CORBA system exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemException {
    /// Which exception.
    pub kind: ExceptionKind,
    /// The reason in numbers: a vendor id in the upper 20 bits, a code in the lower 12.
    pub minor: u32,
    /// Whether the operation was carried out.
    pub completed: CompletionStatus,
}

impl SystemException {
    /// An exception.
    #[must_use]
    pub const fn new(kind: ExceptionKind, minor: u32, completed: CompletionStatus) -> Self {
        Self {
            kind,
            minor,
            completed,
        }
    }

    /// An exception with a minor code of the OMG, for an operation that was not carried out.
    #[must_use]
    pub const fn omg(kind: ExceptionKind, code: u32) -> Self {
        Self::new(kind, OMG | code, CompletionStatus::No)
    }

    /// The same exception with another completion status.
    #[must_use]
    pub const fn with_completion(mut self, completed: CompletionStatus) -> Self {
        self.completed = completed;
        self
    }

    /// The exception for an object that does not have the interface that it is narrowed to.
    pub(crate) const fn wrong_interface(_found: &str, _wanted: &str) -> Self {
        let minor = exception::WRONG_INTERFACE;
        Self::new(ExceptionKind::BadParam, minor, CompletionStatus::No)
    }

    /// The exception for a decoding error, for an operation that was not carried out.
    #[must_use]
    pub const fn from_decode(error: DecodeError) -> Self {
        let (kind, minor) = exception::of_decoding(error);
        Self::new(kind, minor, CompletionStatus::No)
    }

    /// The exception for an encoding error, for an operation that was not carried out.
    #[must_use]
    pub const fn from_encode(error: EncodeError) -> Self {
        let (kind, minor) = exception::of_encoding(error);
        Self::new(kind, minor, CompletionStatus::No)
    }

    /// The form in which it is sent.
    pub(crate) fn body(&self) -> SystemExceptionBody<'static> {
        SystemExceptionBody {
            repository_id: self.kind.repository_id().as_bytes(),
            minor: self.minor,
            completed: self.completed as u32,
        }
    }
}

impl From<ExceptionKind> for SystemException {
    fn from(kind: ExceptionKind) -> Self {
        Self::new(kind, 0, CompletionStatus::No)
    }
}

/// The exception for arguments of a request that cannot be decoded. Wide characters in GIOP 1.0 are the client's mistake
/// (CORBA 3, MARSHAL 5).
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
        )
    }
}

impl core::error::Error for SystemException {}
