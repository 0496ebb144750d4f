//! Code sets: what a server advertises, and what client and server negotiate (CORBA 3 §13.10).

use crate::DecodeError;
use crate::cdr::{ByteOrder, CharCodeSet, cdr_struct, decode_encapsulated};
use alloc::vec;
use alloc::vec::Vec;

/// ISO 8859-1, Latin 1.
pub const ISO_8859_1: u32 = CharCodeSet::Latin1.registry();
/// ISO 8859-15, Latin 9.
pub const ISO_8859_15: u32 = CharCodeSet::Latin9.registry();
/// ISO 646, ASCII.
pub const ISO_646: u32 = 0x0001_0020;
/// UCS-2, level 1.
pub const UCS_2: u32 = 0x0001_0100;
/// UCS-4, level 1.
pub const UCS_4: u32 = 0x0001_0104;
/// UTF-16.
pub const UTF_16: u32 = 0x0001_0109;
/// UTF-8.
pub const UTF_8: u32 = CharCodeSet::Utf8.registry();

cdr_struct! {
    /// The code sets of one side for `char` or `wchar`, as numbers of the OSF registry.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
    pub struct CodeSetComponent {
        /// Its native code set; 0 for none.
        pub native: u32,
        /// The code sets that it converts from and to, best first.
        pub conversion: Vec<u32>,
    }

    //= CORBA 3 §13.10.2.4
    //# A server advertises its native and conversion code sets for char and for wchar in its references.
    /// The code sets of one side.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
    pub struct CodeSetComponentInfo {
        /// For `char` and `string`.
        pub char_data: CodeSetComponent,
        /// For `wchar` and `wstring`.
        pub wchar_data: CodeSetComponent,
    }

    /// The transmission code sets of a connection, as numbers of the OSF registry.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct CodeSets {
        /// For `char` and `string`.
        pub char_data: u32,
        /// For `wchar` and `wstring`.
        pub wchar_data: u32,
    }
}

impl CodeSetComponentInfo {
    /// The code sets of this ORB: UTF-8, as in Rust, and ISO 8859-1; UTF-16 for wide characters.
    pub fn supported() -> Self {
        Self {
            char_data: CodeSetComponent {
                native: UTF_8,
                conversion: vec![ISO_8859_1],
            },
            wchar_data: CodeSetComponent {
                native: UTF_16,
                conversion: Vec::new(),
            },
        }
    }
}

impl CodeSetComponentInfo {
    /// The same code sets, with `native` as the native one for `char`.
    #[must_use]
    pub fn with_native_char(mut self, native: CharCodeSet) -> Self {
        self.char_data = CodeSetComponent {
            native: native.registry(),
            conversion: match native {
                CharCodeSet::Latin1 => vec![UTF_8],
                CharCodeSet::Latin9 => vec![UTF_8, ISO_8859_1],
                CharCodeSet::Utf8 => vec![ISO_8859_1],
            },
        };
        self
    }
}

impl CodeSets {
    /// The data of a [`CODE_SETS`](crate::giop::contexts::CODE_SETS) context, in this machine's byte order.
    pub fn to_data(self) -> [u8; 12] {
        let [a, b, c, d] = self.char_data.to_ne_bytes();
        let [e, f, g, h] = self.wchar_data.to_ne_bytes();
        [ByteOrder::NATIVE.flag(), 0, 0, 0, a, b, c, d, e, f, g, h]
    }

    /// Reads the data of a [`CODE_SETS`](crate::giop::contexts::CODE_SETS) context.
    ///
    /// # Errors
    /// When the data is malformed.
    pub fn from_data(data: &[u8]) -> Result<Self, DecodeError> {
        decode_encapsulated(data)
    }
}

/// The transmission code sets that a client uses with a server.
///
/// # Errors
/// CODESET_INCOMPATIBLE 1 when they have no code set in common.
pub fn negotiate(
    server: &CodeSetComponentInfo,
    client: &CodeSetComponentInfo,
) -> Result<CodeSets, CodeSetError> {
    Ok(CodeSets {
        char_data: common(&server.char_data, &client.char_data, UTF_8)
            .ok_or(CodeSetError::NoCommonChar)?,
        wchar_data: common(&server.wchar_data, &client.wchar_data, UTF_16)
            .ok_or(CodeSetError::NoCommonWChar)?,
    })
}

/// The reason why client and server cannot exchange characters (CODESET_INCOMPATIBLE).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeSetError {
    /// They have no code set for `char` in common (minor code 1).
    #[error("client and server have no code set for char in common")]
    NoCommonChar,
    /// They have no code set for `wchar` in common (minor code 1).
    #[error("client and server have no code set for wchar in common")]
    NoCommonWChar,
    /// The client chose a code set that this ORB does not support (minor code 2).
    #[error("the client chose code set {0:#010x}, which this ORB does not support")]
    Unsupported(u32),
    /// The client named other code sets in an earlier request of the connection.
    #[error("the code sets differ from those of an earlier request on the connection")]
    Changed,
    /// The code sets that the client named cannot be read.
    #[error(transparent)]
    Malformed(#[from] DecodeError),
}

/// The code set for `char` that a client chose, if this ORB supports both code sets of the choice.
///
/// # Errors
/// [`CodeSetError::Unsupported`].
//= CORBA 3 §13.10.2.5
//# A client sends the code sets that it chose with its first request. The server refuses code sets that it does not support
//# with CODESET_INCOMPATIBLE.
pub fn accept(chosen: CodeSets) -> Result<CharCodeSet, CodeSetError> {
    // A peer that sends no wide characters may leave their code set 0; UCS-2 is UTF-16 without surrogates.
    match chosen.wchar_data {
        0 | UTF_16 | UCS_2 => {}
        other => return Err(CodeSetError::Unsupported(other)),
    }
    match chosen.char_data {
        // ASCII is a subset of Latin 1.
        0 | ISO_646 => Ok(CharCodeSet::Latin1),
        other => CharCodeSet::from_registry(other).ok_or(CodeSetError::Unsupported(other)),
    }
}

//= CORBA 3 §13.10.2.6
//# The first that exists: the common native set; the server's native set; the client's native set; the first conversion set
//# of the server that the client has too; UTF-8 or UTF-16 if the native sets overlap. Otherwise they are incompatible.
fn common(server: &CodeSetComponent, client: &CodeSetComponent, fallback: u32) -> Option<u32> {
    if server.native == client.native || client.conversion.contains(&server.native) {
        return Some(server.native);
    }
    if server.conversion.contains(&client.native) {
        return Some(client.native);
    }
    let mut conversion = server.conversion.iter().copied();
    conversion
        .find(|set| client.conversion.contains(set))
        .or_else(|| overlap(server.native, client.native).then_some(fallback))
}

/// True if both code sets are Latin, or both have all of Unicode, so that many texts exist in both.
fn overlap(a: u32, b: u32) -> bool {
    let latin = |set| matches!(set, ISO_8859_1 | ISO_8859_15 | ISO_646);
    let unicode = |set| matches!(set, UCS_2..=0x0001_010f | UTF_8);
    latin(a) && latin(b) || unicode(a) && unicode(b)
}

#[cfg(test)]
mod tests {
    use super::{
        CodeSetComponent, CodeSetComponentInfo, CodeSetError, CodeSets, ISO_646, ISO_8859_1,
        ISO_8859_15, UCS_4, UTF_8, UTF_16, accept, negotiate,
    };
    use crate::cdr::CharCodeSet;

    /// JIS X 0208: kanji.
    const JIS_X_0208: u32 = 0x0003_0004;

    fn info(native: u32, conversion: &[u32]) -> CodeSetComponentInfo {
        CodeSetComponentInfo {
            char_data: CodeSetComponent {
                native,
                conversion: conversion.to_vec(),
            },
            wchar_data: CodeSetComponent {
                native: UTF_16,
                conversion: Vec::new(),
            },
        }
    }

    //= CORBA 3 §13.10.2.6
    //% test
    #[test]
    fn the_rules_are_tried_in_order() {
        for (server, client, chosen) in [
            (
                info(ISO_8859_1, &[]),
                info(ISO_8859_1, &[UTF_8]),
                Some(ISO_8859_1),
            ),
            (
                info(ISO_8859_1, &[UTF_8]),
                info(UTF_8, &[ISO_8859_1]),
                Some(ISO_8859_1),
            ),
            (info(ISO_8859_1, &[UTF_8]), info(UTF_8, &[]), Some(UTF_8)),
            (
                info(ISO_8859_15, &[UTF_8, ISO_8859_1]),
                info(ISO_646, &[ISO_8859_1, UTF_8]),
                Some(UTF_8),
            ),
            (info(ISO_8859_1, &[]), info(ISO_8859_15, &[]), Some(UTF_8)),
            (info(ISO_8859_1, &[]), info(UCS_4, &[]), None),
        ] {
            let negotiated = negotiate(&server, &client);
            match chosen {
                Some(char_data) => assert_eq!(
                    negotiated,
                    Ok(CodeSets {
                        char_data,
                        wchar_data: UTF_16
                    })
                ),
                None => assert_eq!(negotiated, Err(CodeSetError::NoCommonChar)),
            }
        }
    }

    //= CORBA 3 §13.10.2.5
    //% test
    #[test]
    fn unsupported_code_sets_are_refused() {
        let sets = |char_data, wchar_data| CodeSets {
            char_data,
            wchar_data,
        };
        assert_eq!(accept(sets(UTF_8, UTF_16)), Ok(CharCodeSet::Utf8));
        assert_eq!(accept(sets(ISO_8859_1, 0)), Ok(CharCodeSet::Latin1));
        assert_eq!(accept(sets(ISO_8859_15, 0)), Ok(CharCodeSet::Latin9));
        assert_eq!(
            accept(sets(JIS_X_0208, UTF_16)),
            Err(CodeSetError::Unsupported(JIS_X_0208))
        );
        assert_eq!(
            accept(sets(UTF_8, UCS_4)),
            Err(CodeSetError::Unsupported(UCS_4))
        );
    }
}
