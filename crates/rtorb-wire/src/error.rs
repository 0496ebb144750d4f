//! What can be wrong with octets that came, or with values that shall go.

/// The octets are not what they should be.
///
/// Small and `Copy`, so that it costs nothing on the call path; the ORB turns it into a system exception, most often
/// MARSHAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The message ends before the value does.
    #[error("the message ends too early: {needed} more octets needed, {left} left")]
    Truncated {
        /// Octets that the value still needs.
        needed: usize,
        /// Octets that are left.
        left: usize,
    },
    /// A count says more elements than the octets left could hold.
    #[error("a count of {count} does not fit into the {left} octets left")]
    CountTooLarge {
        /// The count read.
        count: u32,
        /// Octets that are left.
        left: usize,
    },
    /// More elements or characters than the IDL bound allows.
    #[error("{count} elements, and the bound is {bound}")]
    OverBound {
        /// How many came.
        count: usize,
        /// How many may.
        bound: usize,
    },
    /// A string without its terminating zero octet, or with one inside.
    #[error("a string is not terminated by its only zero octet")]
    BadString,
    /// Text that is not valid in its transmission code set (DATA_CONVERSION).
    #[error("text is not valid in its code set")]
    BadText,
    /// An enum value beyond the last enumerator.
    #[error("the enum has no value {value}")]
    BadEnum {
        /// The ordinal read.
        value: u32,
    },
    /// A wide character or string where GIOP 1.0 forbids it.
    #[error("GIOP 1.0 has no wide characters")]
    WideInGiop10,
    /// A wide character of a length that no form allows.
    #[error("a wide character of {octets} octets")]
    BadWide {
        /// Octets it claims.
        octets: u32,
    },
    /// A fixed-point number with a nibble that is neither digit nor sign, or with too many digits.
    #[error("not a packed decimal number")]
    BadFixed,
    /// A value of another type than the one expected here, or a reference to none that came before.
    #[error("a value is not of the type expected")]
    UnknownValue,
    /// Values nested deeper than the reader's bound.
    #[error("values are nested more than {max} deep")]
    TooDeep {
        /// The bound.
        max: u8,
    },
    /// An encapsulation without its byte-order octet, or with a wrong one.
    #[error("an encapsulation does not begin with a byte order")]
    BadEncapsulation,
    /// A TypeCode kind, label or indirection that the standard does not have.
    #[error("not a TypeCode (kind or offset {value:#x})")]
    BadTypeCode {
        /// What was read.
        value: u32,
    },
    /// A tag, status or disposition that the standard does not have.
    #[error("{what} cannot be {value}")]
    BadTag {
        /// Which field.
        what: &'static str,
        /// What was read.
        value: u32,
    },
    /// Not `GIOP`.
    #[error("the message does not begin with GIOP")]
    BadMagic,
    /// A GIOP version that is not 1.0, 1.1 or 1.2.
    #[error("GIOP {major}.{minor} is not supported")]
    BadVersion {
        /// Major version read.
        major: u8,
        /// Minor version read.
        minor: u8,
    },
    /// More octets than the limit lets a message have.
    #[error("a message of {octets} octets, and the limit is {limit}")]
    TooLarge {
        /// Octets announced.
        octets: u64,
        /// Octets allowed.
        limit: usize,
    },
    /// More messages in parts than the limit lets a connection have at a time.
    #[error("more than {max} messages come in fragments at the same time")]
    TooManyFragmented {
        /// How many may.
        max: usize,
    },
    /// A value of a kind that this ORB cannot read without knowing its type (NO_IMPLEMENT).
    #[error("a value of TypeCode kind {kind} cannot be read from an any")]
    Unsupported {
        /// The TypeCode kind.
        kind: u32,
    },
    /// The connection ended or timed out before the rest of a message came; the ORB keeps the reason.
    #[error("the rest of the message did not come")]
    Interrupted,
}

/// The value cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The message would outgrow its limit (IMP_LIMIT).
    #[error("the message outgrows {limit} octets")]
    TooLarge {
        /// Octets allowed.
        limit: usize,
    },
    /// Memory was refused (NO_MEMORY).
    #[error("no memory for {octets} octets")]
    NoMemory {
        /// Octets asked for.
        octets: usize,
    },
    /// A count that an unsigned long cannot hold.
    #[error("{count} elements are more than a count can say")]
    CountTooLarge {
        /// How many.
        count: usize,
    },
    /// A string with a zero character inside (BAD_PARAM).
    #[error("a string holds a zero character")]
    ZeroInString,
    /// A character that the transmission code set does not have (DATA_CONVERSION 1).
    #[error("U+{character:04X} is not in the transmission code set")]
    NotInCodeSet {
        /// The character's code point.
        character: u32,
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
    /// A recursive place in a TypeCode outside of the type that it names (BAD_TYPECODE 1).
    #[error("a TypeCode refers to a type that does not enclose it")]
    IncompleteTypeCode,
    /// A value that is not of the type that its TypeCode says (BAD_PARAM).
    #[error("the value is not of the type of its TypeCode")]
    WrongType,
    /// Values nested deeper than a reader would follow (BAD_PARAM).
    #[error("values are nested more than {max} deep")]
    TooDeep {
        /// The bound.
        max: u8,
    },
    /// A value that must not leave the process, such as a local object (MARSHAL 4).
    #[error("local objects cannot be sent")]
    Local,
}
