//! `wchar` and `wstring`: UTF-16, in the form of the GIOP version.

use super::{ByteOrder, Reader, Writer};
use crate::{DecodeError, EncodeError, TextCodeSet};
use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A wide character of the basic multilingual plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WChar(pub char);

/// A wide string.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WString(pub String);

impl From<&str> for WString {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for WString {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for WString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl core::ops::Deref for WString {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Reader<'_> {
    /// Reads a wide character.
    ///
    /// # Errors
    /// When it is not one unit of UTF-16, or in GIOP 1.0.
    //= GIOP 1.2 §15.3.1.6
    //# In GIOP 1.2 a wchar is the number of its bytes and the bytes, big-endian without a byte order mark. In 1.1 it is an
    //# unsigned number in the order of the message, and 1.0 has none.
    pub fn wide_char(&mut self) -> Result<WChar, DecodeError> {
        let unit = match self.giop_minor() {
            0 => return Err(DecodeError::WideInGiop10),
            1 => self.primitive::<u16>()?,
            _ => {
                let length = self.primitive::<u8>()?;
                match *self.take(usize::from(length))? {
                    [0xff, 0xfe, low, high] => u16::from_le_bytes([low, high]),
                    [0xfe, 0xff, high, low] | [high, low] => u16::from_be_bytes([high, low]),
                    _ => {
                        return Err(DecodeError::BadWide {
                            bytes: u32::from(length),
                        });
                    }
                }
            }
        };
        char::from_u32(u32::from(unit))
            .map(WChar)
            .ok_or(DecodeError::BadText)
    }

    /// Reads a wide string.
    ///
    /// # Errors
    /// When it is not UTF-16, contains a zero, or in GIOP 1.0.
    pub fn wide_str(&mut self) -> Result<WString, DecodeError> {
        let units: Vec<u16> = match self.giop_minor() {
            0 => return Err(DecodeError::WideInGiop10),
            1 => {
                let count = self.count(2)?;
                let mut units = Vec::new();
                self.primitives_into(&mut units, count)?;
                if units.pop().is_some_and(|terminator| terminator != 0) {
                    return Err(DecodeError::BadString);
                }
                units
            }
            _ => {
                let bytes = self.octets()?;
                let (bytes, order) = match bytes {
                    [0xff, 0xfe, rest @ ..] => (rest, ByteOrder::Little),
                    [0xfe, 0xff, rest @ ..] | rest => (rest, ByteOrder::Big),
                };
                let (pairs, odd) = bytes.as_chunks::<2>();
                if !odd.is_empty() {
                    return Err(DecodeError::BadWide {
                        bytes: bytes.len() as u32,
                    });
                }
                let unit = |&pair| match order {
                    ByteOrder::Big => u16::from_be_bytes(pair),
                    ByteOrder::Little => u16::from_le_bytes(pair),
                };
                pairs.iter().map(unit).collect()
            }
        };
        if units.contains(&0) {
            return Err(DecodeError::BadString);
        }
        String::from_utf16(&units)
            .map(WString)
            .map_err(|_| DecodeError::BadText)
    }
}

impl Writer<'_> {
    /// Writes a wide character.
    ///
    /// # Errors
    /// When one unit of UTF-16 cannot hold it, or in GIOP 1.0.
    pub fn wide_char(&mut self, character: WChar) -> Result<(), EncodeError> {
        let character = u32::from(character.0);
        let Ok(unit) = u16::try_from(character) else {
            let code_set = TextCodeSet::Utf16WChar;
            return Err(EncodeError::NotInCodeSet {
                character,
                code_set,
                argument: None,
            });
        };
        match self.giop_minor() {
            0 => Err(EncodeError::WideInGiop10),
            1 => self.primitive(unit),
            // Big-endian without a mark is the shortest form, and all ORBs read it.
            _ if BYTE_ORDER_MARKS.contains(&unit) => {
                self.primitive(4u8)?;
                self.octets(&BYTE_ORDER_MARKS[0].to_be_bytes())?;
                self.octets(&unit.to_be_bytes())
            }
            _ => {
                self.primitive(2u8)?;
                self.octets(&unit.to_be_bytes())
            }
        }
    }

    /// Writes a wide string.
    ///
    /// # Errors
    /// When it contains a zero character, or in GIOP 1.0.
    //= GIOP 1.2 §15.3.2.7
    //# In GIOP 1.2 a wstring is the number of its bytes and the bytes, without a terminator. In 1.1 it is the number of its
    //# characters with a terminating zero, and the characters.
    pub fn wide_str(&mut self, text: &str) -> Result<(), EncodeError> {
        if text.contains('\0') {
            return Err(EncodeError::ZeroInString);
        }
        let units = text.encode_utf16();
        match self.giop_minor() {
            0 => Err(EncodeError::WideInGiop10),
            1 => {
                self.count(units.clone().count() + 1)?;
                units.chain([0]).try_for_each(|unit| self.primitive(unit))
            }
            _ => {
                let first = units.clone().next();
                let marked = first.is_some_and(|unit| BYTE_ORDER_MARKS.contains(&unit));
                let mark = BYTE_ORDER_MARKS[..usize::from(marked)].iter().copied();
                let mut units = mark.chain(units);
                self.count(2 * units.clone().count())?;
                units.try_for_each(|unit| self.octets(&unit.to_be_bytes()))
            }
        }
    }
}

/// U+FEFF in both byte orders. A text that begins with one of them needs a byte order mark before it: otherwise the reader takes
/// its first character for the mark.
const BYTE_ORDER_MARKS: [u16; 2] = [0xfeff, 0xfffe];

#[cfg(test)]
mod tests {
    use super::{WChar, WString};
    use crate::{ByteOrder, Decode, DecodeError, Encode, Reader, Writer};

    fn comes_back<T: Encode + Decode>(value: &T) -> Result<T, DecodeError> {
        let mut w = Writer::new(Vec::new(), 64);
        value.encode(&mut w).expect("it fits");
        let bytes = w.to_bytes();
        T::decode(&mut Reader::new(&bytes, ByteOrder::NATIVE))
    }

    #[test]
    fn a_text_that_begins_like_a_byte_order_mark_comes_back() {
        for text in [
            "\u{feff}a",
            "\u{fffe}a",
            "\u{feff}",
            "\u{fffe}",
            "a\u{feff}",
        ] {
            let wide = WString::from(text);
            assert_eq!(comes_back(&wide), Ok(wide));
        }
        for character in ['\u{feff}', '\u{fffe}', 'a'] {
            assert_eq!(comes_back(&WChar(character)), Ok(WChar(character)));
        }
    }

    #[test]
    fn a_zero_within_a_wide_string_is_refused() {
        let bytes = [4, 0, 0, 0, 0, 0x61, 0, 0];
        let read = WString::decode(&mut Reader::new(&bytes, ByteOrder::Little));
        assert_eq!(read, Err(DecodeError::BadString));
    }
}
