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
    /// UTF-8.
    Utf8,
}

impl CharCodeSet {
    /// The number in the OSF character and code set registry.
    pub const fn registry(self) -> u32 {
        match self {
            Self::Latin1 => LATIN_1,
            Self::Utf8 => UTF_8,
        }
    }

    /// The code set of a registry number, if the ORB supports it.
    pub const fn from_registry(number: u32) -> Option<Self> {
        match number {
            LATIN_1 => Some(Self::Latin1),
            UTF_8 => Some(Self::Utf8),
            _ => None,
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
        } else if is("UTF-8") || is("0x05010001") {
            Ok(Self::Utf8)
        } else {
            Err(UnknownCodeSet)
        }
    }
}

/// The name of a code set is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are the code sets UTF-8 and ISO-8859-1")]
pub struct UnknownCodeSet;

const LATIN_1: u32 = 0x0001_0001;
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
        if self.char_code_set() == CharCodeSet::Latin1 && !text.is_ascii() {
            return self.latin1(text);
        }
        self.terminated_bytes(text.as_bytes())
    }

    /// Writes a character.
    ///
    /// # Errors
    /// When its code set needs more than one byte for it, or does not have it.
    pub fn char(&mut self, character: char) -> Result<(), EncodeError> {
        // A char has one byte, which in UTF-8 is ASCII.
        if self.char_code_set() == CharCodeSet::Utf8 && !character.is_ascii() {
            return Err(EncodeError::NotInCodeSet {
                character: u32::from(character),
                code_set: TextCodeSet::Utf8Char,
            });
        }
        self.primitive(latin1_byte(character)?)
    }

    fn latin1(&mut self, text: &str) -> Result<(), EncodeError> {
        self.count(text.chars().count() + 1)?;
        for character in text.chars() {
            self.primitive(latin1_byte(character)?)?;
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
        let valid = match self.char_code_set() {
            CharCodeSet::Latin1 => bytes.is_ascii(),
            CharCodeSet::Utf8 => true,
        };
        if valid {
            return core::str::from_utf8(bytes)
                .map(Cow::Borrowed)
                .map_err(|_| DecodeError::BadText);
        }
        Ok(Cow::Owned(
            bytes.iter().map(|&byte| char::from(byte)).collect(),
        ))
    }

    /// Reads a character.
    ///
    /// # Errors
    /// When its byte is not a character of the code set.
    pub fn char(&mut self) -> Result<char, DecodeError> {
        let byte = self.primitive::<u8>()?;
        if self.char_code_set() == CharCodeSet::Utf8 && !byte.is_ascii() {
            return Err(DecodeError::BadText);
        }
        Ok(char::from(byte))
    }

    /// Borrows the bytes of a string, without its terminator and unconverted.
    ///
    /// Old ORBs send the length 0 for the empty string, which is accepted.
    ///
    /// # Errors
    /// When its only zero byte is not at the end.
    #[inline]
    pub fn string_bytes(&mut self) -> Result<&'m [u8], DecodeError> {
        match self.octets()?.split_last() {
            None => Ok(&[]),
            Some((0, text)) if !text.contains(&0) => Ok(text),
            Some(_) => Err(DecodeError::BadString),
        }
    }
}

fn latin1_byte(character: char) -> Result<u8, EncodeError> {
    u8::try_from(character).map_err(|_| EncodeError::NotInCodeSet {
        character: u32::from(character),
        code_set: TextCodeSet::Latin1,
    })
}
