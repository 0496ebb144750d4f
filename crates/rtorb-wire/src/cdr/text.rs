//! `char` and `string` in the transmission code set of the connection.

use super::{Reader, Writer};
use crate::{DecodeError, EncodeError, TextCodeSet};
use alloc::borrow::Cow;
use core::str::FromStr;

/// A transmission code set for `char` and `string`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CharCodeSet {
    /// ISO 8859-1, the default without negotiation.
    #[default]
    Latin1,
    /// ISO 8859-15, which has the Euro sign and seven letters in place of eight signs of ISO 8859-1.
    Latin9,
    /// UTF-8.
    Utf8,
}

impl CharCodeSet {
    /// The number in the OSF character and code set registry.
    pub const fn registry(self) -> u32 {
        match self {
            Self::Latin1 => LATIN_1,
            Self::Latin9 => LATIN_9,
            Self::Utf8 => UTF_8,
        }
    }

    /// The code set of a registry number, if the ORB supports it.
    pub const fn from_registry(number: u32) -> Option<Self> {
        match number {
            LATIN_1 => Some(Self::Latin1),
            LATIN_9 => Some(Self::Latin9),
            UTF_8 => Some(Self::Utf8),
            _ => None,
        }
    }

    /// True if a string in this code set can contain the character.
    pub fn has(self, character: char) -> bool {
        self == Self::Utf8 || self.byte(character).is_ok()
    }

    /// The byte of a character, as a `char` in this code set.
    ///
    /// # Errors
    /// When the code set needs more than one byte for it, or does not have it.
    fn byte(self, character: char) -> Result<u8, EncodeError> {
        let not_in = |code_set| EncodeError::NotInCodeSet {
            character: u32::from(character),
            code_set,
            argument: None,
        };
        let latin_1 = u8::try_from(character).ok();
        match self {
            Self::Latin1 => latin_1.ok_or(not_in(TextCodeSet::Latin1)),
            Self::Latin9 => {
                let own = LATIN_9_OWN.iter().find(|(_, own)| *own == character);
                own.map(|(byte, _)| *byte)
                    .or(latin_1.filter(|byte| self.character(*byte) == Some(character)))
                    .ok_or(not_in(TextCodeSet::Latin9))
            }
            // A char has one byte, which in UTF-8 is ASCII.
            Self::Utf8 => (latin_1.filter(u8::is_ascii)).ok_or(not_in(TextCodeSet::Utf8Char)),
        }
    }

    /// The character that a byte alone is in this code set.
    fn character(self, byte: u8) -> Option<char> {
        match self {
            Self::Latin1 => Some(char::from(byte)),
            Self::Latin9 => {
                let own = LATIN_9_OWN.iter().find(|(own, _)| *own == byte);
                Some(own.map_or(char::from(byte), |(_, character)| *character))
            }
            Self::Utf8 => byte.is_ascii().then_some(char::from(byte)),
        }
    }
}

/// Parses the name of a code set, or its registry number in the form that TAO accepts.
impl FromStr for CharCodeSet {
    type Err = UnknownCodeSet;

    fn from_str(text: &str) -> Result<Self, UnknownCodeSet> {
        let is = |name: &str| text.eq_ignore_ascii_case(name);
        if is("ISO-8859-1") || is("0x00010001") {
            Ok(Self::Latin1)
        } else if is("ISO-8859-15") || is("0x0001000f") {
            Ok(Self::Latin9)
        } else if is("UTF-8") || is("0x05010001") {
            Ok(Self::Utf8)
        } else {
            Err(UnknownCodeSet)
        }
    }
}

/// The name of a code set is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are the code sets UTF-8, ISO-8859-1 and ISO-8859-15")]
pub struct UnknownCodeSet;

/// The bytes of ISO 8859-15 that are other characters than in ISO 8859-1.
const LATIN_9_OWN: [(u8, char); 8] = [
    (0xa4, '\u{20ac}'),
    (0xa6, '\u{160}'),
    (0xa8, '\u{161}'),
    (0xb4, '\u{17d}'),
    (0xb8, '\u{17e}'),
    (0xbc, '\u{152}'),
    (0xbd, '\u{153}'),
    (0xbe, '\u{178}'),
];

const LATIN_1: u32 = 0x0001_0001;
const LATIN_9: u32 = 0x0001_000f;
const UTF_8: u32 = 0x0501_0001;

impl<'a> Writer<'a> {
    /// Writes a string.
    ///
    /// # Errors
    /// When it contains a zero character, or one that the code set does not have.
    //= GIOP 1.2 §15.3.2.7
    //# A string is its length with the terminating zero, its characters and the zero. It contains no other zero.
    #[inline]
    pub fn str(&mut self, text: &str) -> Result<(), EncodeError> {
        if text.as_bytes().contains(&0) {
            return Err(EncodeError::ZeroInString);
        }
        if self.char_code_set() != CharCodeSet::Utf8 && !text.is_ascii() {
            return self.latin(text);
        }
        self.terminated_bytes(text.as_bytes())
    }

    /// Writes a character.
    ///
    /// # Errors
    /// When its code set needs more than one byte for it, or does not have it.
    pub fn char(&mut self, character: char) -> Result<(), EncodeError> {
        self.primitive(self.char_code_set().byte(character)?)
    }

    /// Writes a string in a code set with one byte for each character.
    fn latin(&mut self, text: &str) -> Result<(), EncodeError> {
        let code_set = self.char_code_set();
        self.count(text.chars().count() + 1)?;
        for character in text.chars() {
            self.primitive(code_set.byte(character)?)?;
        }
        self.primitive(0u8)
    }
}

impl<'m> Reader<'m> {
    /// Reads a string. Borrows it from the message if its bytes are UTF-8, and converts it otherwise.
    ///
    /// # Errors
    /// When it is not terminated, or not valid in its code set.
    #[inline]
    pub fn str(&mut self) -> Result<Cow<'m, str>, DecodeError> {
        let bytes = self.string_bytes()?;
        self.converted(bytes)
    }

    /// Reads a repository id or a name of a type.
    ///
    /// # Errors
    /// When it has more than [`TYPE_TEXT_BYTES_MAX`] bytes; else as [`str`](Self::str).
    pub(crate) fn type_text(&mut self) -> Result<Cow<'m, str>, DecodeError> {
        let bytes = self.short_string_bytes(TYPE_TEXT_BYTES_MAX)?;
        self.converted(bytes)
    }

    /// Converts a text from the code set of the stream.
    #[inline]
    fn converted(&self, bytes: &'m [u8]) -> Result<Cow<'m, str>, DecodeError> {
        let code_set = self.char_code_set();
        if code_set == CharCodeSet::Utf8 || bytes.is_ascii() {
            return core::str::from_utf8(bytes)
                .map(Cow::Borrowed)
                .map_err(|_| DecodeError::BadText);
        }
        let characters = bytes.iter().map(|byte| code_set.character(*byte));
        let text = characters.collect::<Option<_>>();
        text.map(Cow::Owned).ok_or(DecodeError::BadText)
    }

    /// Reads a character.
    ///
    /// # Errors
    /// When its byte is not a character of the code set.
    pub fn char(&mut self) -> Result<char, DecodeError> {
        let byte = self.primitive::<u8>()?;
        let character = self.char_code_set().character(byte);
        character.ok_or(DecodeError::BadText)
    }

    /// Borrows the bytes of a string, without its terminator and unconverted.
    ///
    /// Old ORBs send the length 0 for the empty string, which is accepted.
    ///
    /// # Errors
    /// When its only zero byte is not at the end.
    #[inline]
    pub fn string_bytes(&mut self) -> Result<&'m [u8], DecodeError> {
        unterminated(self.octets()?)
    }

    /// As [`string_bytes`](Self::string_bytes), for a string of at most `bound` bytes. A longer one costs no time.
    pub(crate) fn short_string_bytes(&mut self, bound: usize) -> Result<&'m [u8], DecodeError> {
        let bytes = self.octets()?;
        let count = bytes.len().saturating_sub(1);
        if count > bound {
            return Err(DecodeError::OverBound { count, bound });
        }
        unterminated(bytes)
    }
}

/// The most bytes of a received repository id, and of the name of a type or of a part of it.
///
/// With indirections, a few bytes can refer to a text any number of times, which takes time to compare and memory to copy.
pub(crate) const TYPE_TEXT_BYTES_MAX: usize = 1024;

/// The bytes of a string before its terminating zero.
#[inline]
fn unterminated(bytes: &[u8]) -> Result<&[u8], DecodeError> {
    match bytes.split_last() {
        None => Ok(&[]),
        Some((0, text)) if !text.contains(&0) => Ok(text),
        Some(_) => Err(DecodeError::BadString),
    }
}
