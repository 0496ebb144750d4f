//! Code sets: what a server advertises, and which of them a client and a server use (CORBA 3, "Code Set Conversion").

use crate::cdr::{ByteOrder, CharCodeSet, cdr_struct};
use crate::{DecodeError, Reader};

/// ISO 8859-1, Latin 1.
pub const ISO_8859_1: u32 = 0x0001_0001;
/// ISO 8859-15, Latin 9.
pub const ISO_8859_15: u32 = 0x0001_000f;
/// ISO 646, ASCII.
pub const ISO_646: u32 = 0x0001_0020;
/// UCS-2, level 1.
pub const UCS_2: u32 = 0x0001_0100;
/// UCS-4, level 1.
pub const UCS_4: u32 = 0x0001_0104;
/// UTF-16.
pub const UTF_16: u32 = 0x0001_0109;
/// UTF-8.
pub const UTF_8: u32 = 0x0501_0001;

/// What one side knows of one sort of characters, as numbers of the OSF registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodeSetComponent {
    /// What it uses itself; 0 for nothing.
    pub native: u32,
    /// What it can convert from and to, best first.
    pub conversion: Vec<u32>,
}
cdr_struct!(CodeSetComponent {
    native: u32,
    conversion: Vec<u32>
});

/// What one side knows of characters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodeSetComponentInfo {
    /// For `char` and `string`.
    pub char_data: CodeSetComponent,
    /// For `wchar` and `wstring`.
    pub wchar_data: CodeSetComponent,
}
cdr_struct!(CodeSetComponentInfo {
    char_data: CodeSetComponent,
    wchar_data: CodeSetComponent
});

impl CodeSetComponentInfo {
    /// What this ORB knows: UTF-8, which is what Rust has, and ISO 8859-1; UTF-16 for wide characters.
    pub fn ours() -> Self {
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

/// The transmission code sets of a connection, as numbers of the OSF registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeSets {
    /// Of `char` and `string`.
    pub char_data: u32,
    /// Of `wchar` and `wstring`.
    pub wchar_data: u32,
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
    /// When it is no such data.
    pub fn from_data(data: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::encapsulated(data)?;
        Ok(Self {
            char_data: r.primitive()?,
            wchar_data: r.primitive()?,
        })
    }
}

/// The transmission code sets that a client has to use with a server: the server's component and its own.
///
/// # Errors
/// CODESET_INCOMPATIBLE 1: there is none for that sort of characters.
pub fn choose(
    server: &CodeSetComponentInfo,
    client: &CodeSetComponentInfo,
) -> Result<CodeSets, Incompatible> {
    Ok(CodeSets {
        char_data: choose_one(&server.char_data, &client.char_data, UTF_8)
            .ok_or(Incompatible::Char)?,
        wchar_data: choose_one(&server.wchar_data, &client.wchar_data, UTF_16)
            .ok_or(Incompatible::WChar)?,
    })
}

/// Client and server have no code set in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incompatible {
    /// For `char` and `string`.
    #[error("client and server have no code set for char in common")]
    Char,
    /// For `wchar` and `wstring`.
    #[error("client and server have no code set for wchar in common")]
    WChar,
    /// A client chose what this ORB does not know (CODESET_INCOMPATIBLE 2).
    #[error("code set {0:#010x} is not known here")]
    Unknown(u32),
}

/// The code set for `char` that a client's context asks for, if this ORB knows both sets of the context.
///
/// # Errors
/// [`Incompatible::Unknown`].
pub fn accept(chosen: CodeSets) -> Result<CharCodeSet, Incompatible> {
    // Peers that never send wide characters may leave their code set empty; UCS-2 is UTF-16 without surrogates.
    match chosen.wchar_data {
        0 | UTF_16 | UCS_2 => {}
        other => return Err(Incompatible::Unknown(other)),
    }
    match chosen.char_data {
        // ASCII is a part of both.
        0 | ISO_646 => Ok(CharCodeSet::Latin1),
        other => CharCodeSet::from_registry(other).ok_or(Incompatible::Unknown(other)),
    }
}

fn choose_one(server: &CodeSetComponent, client: &CodeSetComponent, fallback: u32) -> Option<u32> {
    if server.native == client.native || client.conversion.contains(&server.native) {
        return Some(server.native);
    }
    if server.conversion.contains(&client.native) {
        return Some(client.native);
    }
    let common = server.conversion.iter().copied();
    let common = common
        .into_iter()
        .find(|set| client.conversion.contains(set));
    common.or_else(|| overlap(server.native, client.native).then_some(fallback))
}

/// True if texts of one set can often be said in the other: both are Latin, or both hold all of Unicode.
fn overlap(a: u32, b: u32) -> bool {
    let latin = |set| matches!(set, ISO_8859_1 | ISO_8859_15 | ISO_646);
    let unicode = |set| matches!(set, UCS_2..=0x0001_010f | UTF_8);
    latin(a) && latin(b) || unicode(a) && unicode(b)
}

#[cfg(test)]
mod tests {
    use super::{
        CodeSetComponent, CodeSetComponentInfo, CodeSets, ISO_646, ISO_8859_1, ISO_8859_15,
        Incompatible, UCS_4, UTF_8, UTF_16, accept, choose,
    };
    use crate::cdr::CharCodeSet;

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
            let answer = choose(&server, &client);
            match chosen {
                Some(char_data) => assert_eq!(
                    answer,
                    Ok(CodeSets {
                        char_data,
                        wchar_data: UTF_16
                    })
                ),
                None => assert_eq!(answer, Err(Incompatible::Char)),
            }
        }
    }

    #[test]
    fn what_we_do_not_know_is_refused() {
        let sets = |char_data, wchar_data| CodeSets {
            char_data,
            wchar_data,
        };
        assert_eq!(accept(sets(UTF_8, UTF_16)), Ok(CharCodeSet::Utf8));
        assert_eq!(accept(sets(ISO_8859_1, 0)), Ok(CharCodeSet::Latin1));
        assert_eq!(
            accept(sets(ISO_8859_15, UTF_16)),
            Err(Incompatible::Unknown(ISO_8859_15))
        );
        assert_eq!(
            accept(sets(UTF_8, UCS_4)),
            Err(Incompatible::Unknown(UCS_4))
        );
    }
}
