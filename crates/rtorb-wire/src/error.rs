//! Errors of decoding and of encoding.

use core::num::NonZeroU8;

/// The received bytes are not a valid value or message.
///
/// The ORB converts it into a system exception, usually MARSHAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The message ends before the value does.
    #[error("the message ends too early: {needed} more bytes needed, {left} left")]
    Truncated {
        /// The bytes that the value still needs.
        needed: usize,
        /// The bytes left.
        left: usize,
    },
    /// A count is larger than the bytes left can hold.
    #[error("{count} elements do not fit into the {left} bytes left")]
    CountTooLarge {
        /// The count received.
        count: u32,
        /// The bytes left.
        left: usize,
    },
    /// More elements or characters than the IDL bound allows.
    #[error("{count} elements or characters are more than the bound {bound}")]
    OverBound {
        /// The number received.
        count: usize,
        /// The bound.
        bound: usize,
    },
    /// A map that has a key twice.
    #[error("a map has a key twice")]
    KeyTwice,
    /// A string without a terminating zero byte, or with another zero byte.
    #[error("a string must have one zero byte, at its end")]
    BadString,
    /// Text that is not valid in its transmission code set (DATA_CONVERSION).
    #[error("a text is not valid in the code set of the connection")]
    BadText,
    /// An enum value beyond the last enumerator.
    #[error("the enum has no enumerator {value}")]
    BadEnum {
        /// The ordinal received.
        value: u32,
    },
    /// A wide character or string where GIOP 1.0 forbids it.
    #[error("GIOP 1.0 has no wide characters")]
    WideInGiop10,
    /// A wide character or string of an invalid length.
    #[error("wide characters cannot have {bytes} bytes")]
    BadWide {
        /// The length received.
        bytes: u32,
    },
    /// A fixed-point number with a nibble that is neither digit nor sign, or with too many digits.
    #[error("a fixed is not decimal digits and a sign")]
    BadFixed,
    /// A valuetype of another type than the one expected, or an indirection to no earlier value.
    #[error("a valuetype is not of the type expected here")]
    UnknownValue,
    /// A valuetype that refers to itself, directly or by others.
    #[error("a valuetype refers to itself, directly or by others: values cannot form a ring here")]
    Ring,
    /// Values nested deeper than the bound.
    #[error("values are nested more than {max} deep")]
    TooDeep {
        /// The bound.
        max: u8,
    },
    /// An encapsulation without its byte order, or with a wrong one.
    #[error("an encapsulation does not begin with its byte order")]
    BadEncapsulation,
    /// A TypeCode kind, label or indirection that does not exist.
    #[error("not a TypeCode: kind or offset {value:#x}")]
    BadTypeCode {
        /// The value received.
        value: u32,
    },
    /// A tag, status or disposition that does not exist.
    #[error("{what} cannot be {value}")]
    BadTag {
        /// The field.
        what: &'static str,
        /// The value received.
        value: u32,
    },
    /// A message that does not begin with `GIOP`.
    #[error("the message does not begin with GIOP")]
    BadMagic,
    /// A record of TLS instead of a message.
    #[error("TLS instead of GIOP")]
    Tls,
    /// A GIOP version that is not 1.0, 1.1 or 1.2.
    #[error("GIOP {major}.{minor} is not supported")]
    BadVersion {
        /// The major version received.
        major: u8,
        /// The minor version received.
        minor: u8,
    },
    /// A message larger than the limit.
    #[error("a message of {bytes} bytes exceeds the limit of {limit}")]
    TooLarge {
        /// The size of the message, or one more than the limit if the size is unknown.
        bytes: u64,
        /// The limit.
        limit: usize,
    },
    /// A message larger than its operation states (`@largest_message`).
    #[error(
        "a message of {bytes} bytes exceeds the {limit} bytes of its operation's @largest_message"
    )]
    BeyondLargest {
        /// The size of the message.
        bytes: usize,
        /// The stated size.
        limit: u32,
    },
    /// More fragmented messages at a time than the limit of a connection.
    #[error("more than {max} fragmented messages arrive at the same time")]
    TooManyFragmented {
        /// The limit.
        max: usize,
    },
    /// A value of a kind that no message can contain, or that only its own program can read: a local interface, a native type, a
    /// custom valuetype.
    #[error("a value of TypeCode kind {kind} cannot be read by its TypeCode")]
    Unsupported {
        /// The TypeCode kind.
        kind: u32,
    },
    /// The connection ended or timed out in the middle of a message. The ORB keeps the reason.
    #[error("the rest of the message did not arrive")]
    Interrupted,
}

/// A code set that lacks some characters, or needs more than one unit for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextCodeSet {
    /// ISO 8859-1, of `char` and `string`.
    Latin1,
    /// ISO 8859-15, of `char` and `string`.
    Latin9,
    /// UTF-8, of `char`.
    Utf8Char,
    /// UTF-16, of `wchar`.
    Utf16WChar,
}

impl TextCodeSet {
    /// The end of a sentence about a character that the code set does not have, or not in one unit.
    pub const fn refusal(self) -> &'static str {
        match self {
            Self::Latin1 => {
                "is not in ISO 8859-1, the code set of char and string on the connection"
            }
            Self::Latin9 => {
                "is not in ISO 8859-15, the code set of char and string on the connection"
            }
            Self::Utf8Char => {
                "is no char in UTF-8, the code set of the connection, because it has more than one byte there"
            }
            Self::Utf16WChar => "is no wchar in UTF-16, because it has two units there",
        }
    }
}

impl DecodeError {
    pub(crate) const fn bad_tag(what: &'static str, value: u32) -> Self {
        Self::BadTag { what, value }
    }

    pub(crate) const fn bad_type_code(value: u32) -> Self {
        Self::BadTypeCode { value }
    }
}

/// The value cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The message would exceed its limit (IMP_LIMIT).
    #[error("the message exceeds the limit of {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// The message would exceed what its operation states (`@largest_message`, IMP_LIMIT).
    #[error(
        "a message of {bytes} bytes exceeds the {limit} bytes of its operation's @largest_message"
    )]
    BeyondLargest {
        /// The size of the message.
        bytes: usize,
        /// The stated size.
        limit: u32,
    },
    /// Memory is short (NO_MEMORY).
    #[error("no memory for {bytes} bytes")]
    NoMemory {
        /// The bytes asked for.
        bytes: usize,
    },
    /// A count that does not fit an unsigned long.
    #[error("{count} elements do not fit an unsigned long")]
    CountTooLarge {
        /// The count.
        count: usize,
    },
    /// A string with a zero character (BAD_PARAM).
    #[error("a string contains a zero character")]
    ZeroInString,
    /// A character that the transmission code set does not have (DATA_CONVERSION 1).
    #[error("U+{character:04X} {}", code_set.refusal())]
    NotInCodeSet {
        /// The character's code point.
        character: u32,
        /// The code set.
        code_set: TextCodeSet,
        /// The position of the argument that has it, from 1; `None` if only the value is known.
        argument: Option<NonZeroU8>,
    },
    /// A wide character where GIOP 1.0 forbids it (MARSHAL 5).
    #[error("GIOP 1.0 has no wide characters")]
    WideInGiop10,
    /// A union whose discriminator belongs to another member (BAD_PARAM 19).
    #[error("the discriminator belongs to another member")]
    WrongDiscriminator,
    /// A fixed-point number with more digits than its type has (DATA_CONVERSION).
    #[error("the number has more than {digits} digits")]
    FixedOverflow {
        /// Digits of the type.
        digits: u16,
    },
    /// A recursive TypeCode outside of the type that it names (BAD_TYPECODE 1).
    #[error("a TypeCode refers to a type that does not enclose it")]
    IncompleteTypeCode,
    /// A TypeCode with more types than are sent, each counted as often as it occurs (IMP_LIMIT).
    #[error("a TypeCode has more than {max} types")]
    TypeCodeTooLarge {
        /// The bound.
        max: u32,
    },
    /// A value that is not of the type of its TypeCode (BAD_PARAM).
    #[error("the value is not of the type of its TypeCode")]
    WrongType,
    /// Values nested deeper than the bound of a reader (BAD_PARAM).
    #[error("values are nested more than {max} deep")]
    TooDeep {
        /// The bound.
        max: u8,
    },
    /// A value that must stay in the process, such as a local object (MARSHAL 4).
    #[error("local objects cannot be sent")]
    Local,
}

impl EncodeError {
    /// Adds the position of the argument, from 1, to an error about a character.
    #[cold]
    pub(crate) fn in_argument(self, position: u8) -> Self {
        match self {
            Self::NotInCodeSet {
                character,
                code_set,
                ..
            } => Self::NotInCodeSet {
                character,
                code_set,
                argument: NonZeroU8::new(position),
            },
            error => error,
        }
    }
}
