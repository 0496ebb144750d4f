//! The operations of Cubit that are measured, and how many octets each puts on the wire.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// An operation of the Cubit interface, by the name that `rtorb cubit bench --op` takes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// `cube_oneway`: no answer; its time is that of sending.
    Oneway,
    /// `cube_void`: the empty call.
    Void,
    /// `cube_octet`.
    Octet,
    /// `cube_short`.
    Short,
    /// `cube_long`.
    Long,
    /// `cube_struct`, of a `Many`.
    Struct,
    /// `cube_union`, of a `oneof` that holds a `Many`.
    Union,
    /// `cube_any`, of an any that holds a long.
    Any,
    /// `cube_long_sequence`.
    #[serde(rename = "longseq")]
    #[strum(serialize = "longseq")]
    LongSequence,
    /// `cube_octet_sequence`.
    #[serde(rename = "octetseq")]
    #[strum(serialize = "octetseq")]
    OctetSequence,
    /// `cube_many_sequence`: a sequence of structs.
    #[serde(rename = "manyseq")]
    #[strum(serialize = "manyseq")]
    ManySequence,
}

impl Operation {
    /// Every operation, the simple ones first.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// The short name: `long`, `octetseq`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The operation's name in the IDL, which goes on the wire.
    #[must_use]
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Oneway => "cube_oneway",
            Self::Void => "cube_void",
            Self::Octet => "cube_octet",
            Self::Short => "cube_short",
            Self::Long => "cube_long",
            Self::Struct => "cube_struct",
            Self::Union => "cube_union",
            Self::Any => "cube_any",
            Self::LongSequence => "cube_long_sequence",
            Self::OctetSequence => "cube_octet_sequence",
            Self::ManySequence => "cube_many_sequence",
        }
    }

    /// Whether its time depends on how many elements it carries.
    #[must_use]
    pub fn is_sequence(self) -> bool {
        matches!(
            self,
            Self::LongSequence | Self::OctetSequence | Self::ManySequence
        )
    }

    /// The elements that a sequence has when nobody says: those of the original benchmark.
    #[must_use]
    pub fn default_len(self) -> usize {
        match self {
            Self::LongSequence | Self::ManySequence => 4,
            Self::OctetSequence => 16,
            _ => 0,
        }
    }

    /// The octets of the argument as CDR lays it out, which are also those of the result.
    #[must_use]
    pub fn payload_bytes(self, len: usize) -> usize {
        match self {
            Self::Oneway | Self::Void => 0,
            Self::Octet => 1,
            Self::Short => 2,
            Self::Long => 4,
            Self::Struct => MANY_BYTES,
            Self::Union => 4 + MANY_BYTES,
            // TypeCode of a basic type, then the value.
            Self::Any => 4 + 4,
            Self::LongSequence => 4 + 4 * len,
            Self::OctetSequence => 4 + len,
            Self::ManySequence if len == 0 => 4,
            // The octet of the next struct follows the short at once, so only the first needs all its padding.
            Self::ManySequence => 4 + MANY_BYTES + (len - 1) * MANY_STRIDE_BYTES,
        }
    }

    /// The octets of the GIOP 1.2 request and reply for a key of `key_bytes`, with no service context.
    #[must_use]
    pub fn message_bytes(self, len: usize, key_bytes: usize) -> MessageBytes {
        let payload = self.payload_bytes(len);
        //= GIOP 1.2 §15.4.2.1
        //# A request header is: id, response flags with three reserved bytes, addressing disposition, object key, operation.
        let after_key = padded(GIOP_HEADER_BYTES + 4 + 4 + 4 + 4 + key_bytes, 4);
        let after_operation = padded(after_key + 4 + self.wire_name().len() + 1, 4);
        let request = with_body(after_operation + 4, payload);
        let reply = match self {
            Self::Oneway => 0,
            _ => with_body(GIOP_HEADER_BYTES + 4 + 4 + 4, payload),
        };
        MessageBytes { request, reply }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut all = Self::ALL.iter().copied();
        let known = all.find(|operation| operation.name() == name);
        known.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|operation| operation.name()).collect();
            let names = names.join(", ");
            format!("no operation is called {name:?}; there are {names}")
        })
    }
}

/// The sizes of what a call sends each way, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageBytes {
    /// Client to server.
    pub request: usize,
    /// Server to client; 0 for a oneway.
    pub reply: usize,
}

/// A body begins on a multiple of 8; when there is none, nothing is padded.
fn with_body(header: usize, body: usize) -> usize {
    if body == 0 {
        header
    } else {
        padded(header, 8) + body
    }
}

fn padded(bytes: usize, alignment: usize) -> usize {
    bytes.next_multiple_of(alignment)
}

const GIOP_HEADER_BYTES: usize = 12;
/// octet, three of padding, long, short.
const MANY_BYTES: usize = 10;
const MANY_STRIDE_BYTES: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for &operation in Operation::ALL {
            assert_eq!(operation.name().parse(), Ok(operation));
            let json = serde_json::to_string(&operation).unwrap();
            assert_eq!(json, format!("{:?}", operation.name()));
        }
        assert!(
            "longs"
                .parse::<Operation>()
                .unwrap_err()
                .contains("longseq")
        );
    }

    #[test]
    fn sizes_are_those_of_known_messages() {
        // Golden vector V3: shutdown(), key of 6: "cube_void" has two octets more, which the padding swallows.
        assert_eq!(
            Operation::Void.message_bytes(0, 6),
            MessageBytes {
                request: 56,
                reply: 24
            }
        );
        // As V1 but with four octets of argument, and a name of 10 for 12.
        assert_eq!(
            Operation::Long.message_bytes(0, 6),
            MessageBytes {
                request: 60,
                reply: 28
            }
        );
        assert_eq!(Operation::Oneway.message_bytes(0, 6).reply, 0);
    }

    #[test]
    fn structs_follow_each_other_without_padding_between() {
        assert_eq!(Operation::ManySequence.payload_bytes(0), 4);
        assert_eq!(Operation::ManySequence.payload_bytes(1), 14);
        assert_eq!(Operation::ManySequence.payload_bytes(3), 30);
    }
}
