//! Minor codes of MARSHAL: which rule the received bytes break.

use super::RTORB;
use crate::DecodeError;

/// The number of the rule that an error reports.
const fn code(error: DecodeError) -> u32 {
    match error {
        DecodeError::Truncated { .. } => 1,
        DecodeError::CountTooLarge { .. } => 2,
        DecodeError::OverBound { .. } => 3,
        DecodeError::BadString => 4,
        DecodeError::BadWide { .. } => 5,
        DecodeError::BadFixed => 6,
        DecodeError::UnknownValue => 7,
        DecodeError::TooDeep { .. } => 8,
        DecodeError::BadEncapsulation => 9,
        DecodeError::BadTag { .. } => 10,
        DecodeError::Unsupported { .. } => 11,
        DecodeError::TooLarge { .. } => 12,
        DecodeError::TooManyFragmented { .. } => 13,
        DecodeError::Interrupted => 14,
        DecodeError::Ring => 16,
        DecodeError::Tls => 17,
        // The rest are wrong messages, or have exceptions of their own.
        _ => 15,
    }
}

/// The minor code of MARSHAL for a decoding error.
pub(super) const fn minor(error: DecodeError) -> u32 {
    RTORB | code(error)
}

/// The broken rule that a minor code of this ORB stands for.
pub fn broken_rule(minor: u32) -> Option<&'static str> {
    let place = (minor ^ RTORB).checked_sub(1)?;
    RULES.get(usize::try_from(place).ok()?).copied()
}

/// The texts of the codes from 1 on.
const RULES: [&str; 17] = [
    "the message ends before its values do: client and server disagree on the types",
    "a count is larger than the rest of the message: client and server disagree on the types",
    "a sequence or string is longer than its bound in IDL",
    "a string must have one zero byte, at its end: client and server disagree on the types",
    "a wide character has an impossible length: client and server disagree on the types",
    "a fixed is not decimal digits and a sign: client and server disagree on the types",
    "a valuetype is not of the type expected here, or of a derived type that the receiver does not know",
    "values are nested deeper than the receiver allows",
    "an encapsulation does not begin with its byte order",
    "a tag does not exist: client and server disagree on the types",
    "a local interface, a native type or a custom valuetype cannot be received by its TypeCode",
    "the message is larger than `Limits::message_bytes_max`",
    "more fragmented messages arrive at the same time than `Limits` allow",
    "the rest of the message did not arrive",
    "the bytes are not a message of GIOP",
    "a valuetype refers to itself, directly or by others: send a tree, and let members name each other by a key",
    "the peer speaks TLS at this address: call it over TLS (corbaloc:ssliop:HOST:PORT/KEY), or at its plain port",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exception::{ExceptionKind, OMG, of_decoding};

    #[test]
    fn every_code_says_which_rule_is_broken() {
        let truncated = DecodeError::Truncated { needed: 4, left: 0 };
        assert_eq!(minor(truncated), 0x7274_6001);
        let rule = |error| {
            let (kind, minor) = of_decoding(error);
            assert_eq!(kind, ExceptionKind::Marshal);
            broken_rule(minor).expect("a code has a text")
        };
        assert!(rule(DecodeError::Unsupported { kind: 33 }).contains("local interface"));
        assert!(rule(DecodeError::BadMagic).contains("GIOP"));
        for unknown in [0, RTORB, RTORB | 18, OMG | 1] {
            assert_eq!(broken_rule(unknown), None, "{unknown:#x}");
        }
    }
}
