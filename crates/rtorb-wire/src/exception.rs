//! System exceptions on the wire: kinds, completion status, minor codes, and the exception for each error of decoding or encoding.

mod marshal;

pub use marshal::broken_rule;

use crate::{DecodeError, EncodeError};
use core::fmt;

/// Minor codes of the OMG carry its vendor id (CORBA 3, 4.12.4).
pub const OMG: u32 = 0x4f4d_0000;

/// Minor codes of this ORB carry `rtb` in the upper 20 bits.
pub const RTORB: u32 = 0x7274_6000;

/// Minor code of COMM_FAILURE: the server did not understand what was sent (MessageError).
pub const NOT_UNDERSTOOD: u32 = RTORB | 1;

/// The minor code of BAD_PARAM for an object that does not have the interface that it is narrowed to.
pub const WRONG_INTERFACE: u32 = RTORB | 0x10;

/// The exception and the minor code for an error of decoding.
pub const fn of_decoding(error: DecodeError) -> (ExceptionKind, u32) {
    match error {
        DecodeError::BadText => (ExceptionKind::DataConversion, OMG | 1),
        DecodeError::BadEnum { .. } => (ExceptionKind::BadParam, OMG | 25),
        DecodeError::WideInGiop10 => (ExceptionKind::Marshal, OMG | 6),
        DecodeError::BadTypeCode { .. } => (ExceptionKind::BadTypecode, OMG | 1),
        DecodeError::BeyondLargest { .. } => (ExceptionKind::ImpLimit, BEYOND_LARGEST),
        other => (ExceptionKind::Marshal, marshal::minor(other)),
    }
}

/// The exception and the minor code for an error of encoding.
pub const fn of_encoding(error: EncodeError) -> (ExceptionKind, u32) {
    match error {
        EncodeError::TooLarge { .. }
        | EncodeError::CountTooLarge { .. }
        | EncodeError::TypeCodeTooLarge { .. } => (ExceptionKind::ImpLimit, 0),
        EncodeError::BeyondLargest { .. } => (ExceptionKind::ImpLimit, BEYOND_LARGEST),
        EncodeError::NoMemory { .. } => (ExceptionKind::NoMemory, 0),
        EncodeError::NotInCodeSet { .. } | EncodeError::FixedOverflow { .. } => {
            (ExceptionKind::DataConversion, OMG | 1)
        }
        EncodeError::WideInGiop10 => (ExceptionKind::Marshal, OMG | 5),
        EncodeError::WrongDiscriminator => (ExceptionKind::BadParam, OMG | 19),
        EncodeError::IncompleteTypeCode => (ExceptionKind::BadTypecode, OMG | 1),
        EncodeError::Local => (ExceptionKind::Marshal, OMG | 4),
        EncodeError::TooDeep { .. } => (ExceptionKind::BadParam, TOO_DEEP),
        EncodeError::WrongType => (ExceptionKind::BadParam, WRONG_TYPE),
        EncodeError::ZeroInString => (ExceptionKind::BadParam, ZERO_IN_STRING),
    }
}

/// Minor code of IMP_LIMIT: a message is larger than the `@largest_message` of its operation.
pub const BEYOND_LARGEST: u32 = RTORB | 0x14;
/// Minor code of BAD_PARAM: values to send are nested too deep.
pub const TOO_DEEP: u32 = RTORB | 0x40;
/// Minor code of BAD_PARAM: a value to send is not of its type.
pub const WRONG_TYPE: u32 = RTORB | 0x41;
/// Minor code of BAD_PARAM: a string to send contains a zero character.
pub const ZERO_IN_STRING: u32 = RTORB | 0x42;

/// The completion status of an operation: whether it was carried out (CORBA 3, 4.12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum CompletionStatus {
    /// It was carried out before the exception arose.
    Yes = 0,
    /// It was not carried out: calling again is safe.
    No = 1,
    /// It is unknown.
    Maybe = 2,
}

impl CompletionStatus {
    /// The status with that number; `Maybe` for an undefined number.
    pub const fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Yes,
            1 => Self::No,
            _ => Self::Maybe,
        }
    }
}

impl fmt::Display for CompletionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Yes => "COMPLETED_YES",
            Self::No => "COMPLETED_NO",
            Self::Maybe => "COMPLETED_MAYBE",
        })
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// The standard's system exceptions (CORBA 3, 4.12.3).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ExceptionKind {
            $($(#[$doc])* $variant,)*
        }

        impl ExceptionKind {
            /// Its name as the standard writes it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Its repository id.
            pub const fn repository_id(self) -> &'static str {
                match self { $(Self::$variant => concat!("IDL:omg.org/CORBA/", $name, ":1.0"),)* }
            }

            /// The exception with that repository id; UNKNOWN for any other id.
            pub fn from_repository_id(id: &[u8]) -> Self {
                let name = id.strip_prefix(b"IDL:omg.org/CORBA/").and_then(|id| id.strip_suffix(b":1.0"));
                $(if name == Some($name.as_bytes()) { return Self::$variant; })*
                Self::Unknown
            }
        }
    };
}

kinds! {
    /// An exception that is none of the others.
    Unknown "UNKNOWN",
    /// A parameter is not allowed.
    BadParam "BAD_PARAM",
    /// No memory.
    NoMemory "NO_MEMORY",
    /// A limit of the implementation is passed.
    ImpLimit "IMP_LIMIT",
    /// The connection was lost.
    CommFailure "COMM_FAILURE",
    /// The reference is malformed.
    InvObjref "INV_OBJREF",
    /// The object does not exist.
    ObjectNotExist "OBJECT_NOT_EXIST",
    /// The caller lacks permission.
    NoPermission "NO_PERMISSION",
    /// The ORB is damaged.
    Internal "INTERNAL",
    /// Encoded bytes do not match their types.
    Marshal "MARSHAL",
    /// The ORB could not be set up.
    Initialize "INITIALIZE",
    /// Not implemented.
    NoImplement "NO_IMPLEMENT",
    /// A TypeCode is malformed.
    BadTypecode "BAD_TYPECODE",
    /// The object has no such operation.
    BadOperation "BAD_OPERATION",
    /// A resource is used up.
    NoResources "NO_RESOURCES",
    /// The reply is not there yet.
    NoResponse "NO_RESPONSE",
    /// Persistent storage failed.
    PersistStore "PERSIST_STORE",
    /// Operations were called in the wrong order.
    BadInvOrder "BAD_INV_ORDER",
    /// It did not work now; it may later.
    Transient "TRANSIENT",
    /// Memory could not be freed.
    FreeMem "FREE_MEM",
    /// An identifier is malformed.
    InvIdent "INV_IDENT",
    /// A flag is wrong.
    InvFlag "INV_FLAG",
    /// The interface repository failed.
    IntfRepos "INTF_REPOS",
    /// A context is wrong.
    BadContext "BAD_CONTEXT",
    /// The object adapter failed.
    ObjAdapter "OBJ_ADAPTER",
    /// A value could not be converted.
    DataConversion "DATA_CONVERSION",
    /// Policies contradict each other.
    InvPolicy "INV_POLICY",
    /// The reference would have to be bound anew.
    Rebind "REBIND",
    /// A timeout passed.
    Timeout "TIMEOUT",
    /// The transaction service is not there.
    TransactionUnavailable "TRANSACTION_UNAVAILABLE",
    /// The transaction mode is wrong.
    TransactionMode "TRANSACTION_MODE",
    /// A transaction is needed.
    TransactionRequired "TRANSACTION_REQUIRED",
    /// The transaction was rolled back.
    TransactionRolledback "TRANSACTION_ROLLEDBACK",
    /// The transaction is not valid.
    InvalidTransaction "INVALID_TRANSACTION",
    /// No code set suits both sides.
    CodesetIncompatible "CODESET_INCOMPATIBLE",
    /// A quality of service cannot be had.
    BadQos "BAD_QOS",
    /// The activity is not valid.
    InvalidActivity "INVALID_ACTIVITY",
    /// The activity is completed.
    ActivityCompleted "ACTIVITY_COMPLETED",
    /// An activity is needed.
    ActivityRequired "ACTIVITY_REQUIRED",
    /// The distributable thread was cancelled.
    ThreadCancelled "THREAD_CANCELLED",
}

impl fmt::Display for ExceptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
