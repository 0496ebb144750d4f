//! `wchar` and `wstring`: UTF-16, in a form that depends on the GIOP version.

use super::{ByteOrder, Decode, Encode, Reader, Writer};
use crate::{DecodeError, EncodeError};
use core::fmt;

/// One wide character; only those of the basic multilingual plane fit into one.
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

impl Encode for WChar {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        let Ok(unit) = u16::try_from(u32::from(self.0)) else {
            return Err(EncodeError::NotInCodeSet {
                character: u32::from(self.0),
            });
        };
        match w.giop_minor() {
            0 => Err(EncodeError::WideInGiop10),
            1 => w.primitive(unit),
            // Big-endian without a mark: the shortest form, and the one that everybody reads.
            _ => {
                w.primitive(2u8)?;
                w.octets(&unit.to_be_bytes())
            }
        }
    }
}

impl Decode for WChar {
    const OCTETS_MIN: usize = 2;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let unit = match r.giop_minor() {
            0 => return Err(DecodeError::WideInGiop10),
            1 => r.primitive::<u16>()?,
            _ => {
                let length = r.primitive::<u8>()?;
                match r.take(usize::from(length))? {
                    [0xfe, 0xff, units @ ..] | units => match *units {
                        [0xff, 0xfe, low, high] => u16::from_le_bytes([low, high]),
                        [high, low] => u16::from_be_bytes([high, low]),
                        _ => {
                            return Err(DecodeError::BadWide {
                                octets: u32::from(length),
                            });
                        }
                    },
                }
            }
        };
        char::from_u32(u32::from(unit))
            .map(Self)
            .ok_or(DecodeError::BadText)
    }
}

impl Encode for WString {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        if self.0.contains('\0') {
            return Err(EncodeError::ZeroInString);
        }
        let units = self.0.encode_utf16();
        match w.giop_minor() {
            0 => Err(EncodeError::WideInGiop10),
            1 => {
                w.count(units.clone().count() + 1)?;
                units.chain([0]).try_for_each(|unit| w.primitive(unit))
            }
            _ => {
                w.count(2 * units.clone().count())?;
                units
                    .map(u16::to_be_bytes)
                    .try_for_each(|octets| w.octets(&octets))
            }
        }
    }
}

impl Decode for WString {
    const OCTETS_MIN: usize = 4;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let units: Vec<u16> = match r.giop_minor() {
            0 => return Err(DecodeError::WideInGiop10),
            1 => {
                let count = r.count(2)?;
                let mut units = Vec::new();
                r.primitives_into(&mut units, count)?;
                if units.pop().is_some_and(|terminator| terminator != 0) {
                    return Err(DecodeError::BadString);
                }
                units
            }
            _ => {
                let octets = r.octets()?;
                let (octets, order) = match octets {
                    [0xff, 0xfe, rest @ ..] => (rest, ByteOrder::Little),
                    [0xfe, 0xff, rest @ ..] | rest => (rest, ByteOrder::Big),
                };
                let (pairs, odd) = octets.as_chunks::<2>();
                if !odd.is_empty() {
                    return Err(DecodeError::BadWide {
                        octets: octets.len() as u32,
                    });
                }
                let unit = |&pair| match order {
                    ByteOrder::Big => u16::from_be_bytes(pair),
                    ByteOrder::Little => u16::from_le_bytes(pair),
                };
                pairs.iter().map(unit).collect()
            }
        };
        String::from_utf16(&units)
            .map(Self)
            .map_err(|_| DecodeError::BadText)
    }
}
