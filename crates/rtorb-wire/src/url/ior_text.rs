//! `IOR:`: a reference as the hexadecimal digits of its encapsulation.

use super::UrlError;
use crate::cdr::encapsulate;
use crate::ior::{Hex, Ior};
use crate::{Decode, Encode, Reader};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

impl Ior {
    /// Parses an `IOR:` text in either case and byte order. Ignores spaces around it.
    ///
    /// # Errors
    /// [`UrlError::Scheme`] without the prefix; [`UrlError::Other`] or [`UrlError::Reference`] for the text behind it.
    //= CORBA 3 §13.6.9
    //# A stringified reference is `IOR:` and two hexadecimal digits for each byte of the encapsulated IOR.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        let digits = match text.split_at_checked(PREFIX.len()) {
            Some((prefix, digits)) if prefix.eq_ignore_ascii_case(PREFIX) => digits,
            _ => return Err(UrlError::Scheme),
        };
        let bytes =
            from_hex(digits).ok_or(UrlError::Other("not an even run of hexadecimal digits"))?;
        Reader::encapsulated(&bytes)
            .and_then(|mut r| Self::decode(&mut r))
            .map_err(UrlError::Reference)
    }
}

impl FromStr for Ior {
    type Err = UrlError;
    fn from_str(text: &str) -> Result<Self, UrlError> {
        Self::parse(text)
    }
}

impl fmt::Display for Ior {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Only a type id with a zero character fails, and no peer can send one.
        let bytes = encapsulate(|w| self.encode(w)).map_err(|_| fmt::Error)?;
        write!(f, "{PREFIX}{}", Hex(&bytes))
    }
}

const PREFIX: &str = "IOR:";

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, odd) = digits.as_bytes().as_chunks::<2>();
    if !odd.is_empty() {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    pairs
        .iter()
        .map(|&[high, low]| Some(value(high)? << 4 | value(low)?))
        .collect()
}
