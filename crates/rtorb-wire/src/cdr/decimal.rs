//! `fixed<D, S>`: decimal numbers with a fixed point, two digits in a byte.

use super::{Decode, Reader, Writer};
use crate::{DecodeError, EncodeError};
use core::fmt;

/// A decimal number of at most `DIGITS` digits (1 to 31), `SCALE` of them after the point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fixed<const DIGITS: u16, const SCALE: u16>(i128);

impl<const DIGITS: u16, const SCALE: u16> Fixed<DIGITS, SCALE> {
    /// The number `unscaled` / 10^`SCALE`.
    ///
    /// # Errors
    /// When it has more than `DIGITS` digits.
    pub const fn new(unscaled: i128) -> Result<Self, EncodeError> {
        if fits(unscaled, DIGITS) {
            Ok(Self(unscaled))
        } else {
            Err(EncodeError::FixedOverflow { digits: DIGITS })
        }
    }

    /// The number times 10^`SCALE`.
    pub const fn unscaled(self) -> i128 {
        self.0
    }
}

impl<const DIGITS: u16, const SCALE: u16> fmt::Display for Fixed<DIGITS, SCALE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10u128.pow(u32::from(SCALE));
        let size = self.0.unsigned_abs();
        let sign = if self.0 < 0 { "-" } else { "" };
        if SCALE == 0 {
            return write!(f, "{sign}{size}");
        }
        let (whole, part, width) = (size / unit, size % unit, usize::from(SCALE));
        write!(f, "{sign}{whole}.{part:0width$}")
    }
}

impl<const DIGITS: u16, const SCALE: u16> Decode for Fixed<DIGITS, SCALE> {
    const BYTES_MIN: usize = digit_bytes(DIGITS);

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.fixed_decimal(DIGITS).map(Self)
    }
}

impl Writer<'_> {
    /// Writes the digits of a `fixed` of `digits` digits.
    ///
    /// # Errors
    /// When the number has more digits.
    pub fn fixed_decimal(&mut self, unscaled: i128, digits: u16) -> Result<(), EncodeError> {
        if !fits(unscaled, digits) {
            return Err(EncodeError::FixedOverflow { digits });
        }
        let count = digit_bytes(digits);
        let mut bytes = [0u8; digit_bytes(DIGITS_MAX)];
        let mut left = unscaled.unsigned_abs();
        let mut digit = || {
            let digit = (left % 10) as u8;
            left /= 10;
            digit
        };
        bytes[count - 1] = digit() << 4 | if unscaled < 0 { MINUS } else { PLUS };
        for byte in bytes[..count - 1].iter_mut().rev() {
            let low = digit();
            *byte = digit() << 4 | low;
        }
        self.octets(&bytes[..count])
    }
}

impl Reader<'_> {
    /// Reads the digits of a `fixed` of `digits` digits.
    ///
    /// # Errors
    /// When they are not digits and a sign, or too many.
    pub fn fixed_decimal(&mut self, digits: u16) -> Result<i128, DecodeError> {
        if digits > DIGITS_MAX {
            return Err(DecodeError::BadFixed);
        }
        let bytes = self.take(digit_bytes(digits))?;
        let nibbles = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
        let places = 2 * bytes.len() - 1;
        let mut unscaled = 0i128;
        let mut sign = PLUS;
        for (index, nibble) in nibbles.enumerate() {
            match nibble {
                0..=9 if index < places => unscaled = unscaled * 10 + i128::from(nibble),
                PLUS | MINUS if index == places => sign = nibble,
                _ => return Err(DecodeError::BadFixed),
            }
        }
        // With an even number of digits the first nibble is padding and must be zero.
        if !fits(unscaled, digits) {
            return Err(DecodeError::BadFixed);
        }
        Ok(if sign == MINUS { -unscaled } else { unscaled })
    }
}

/// The most digits of a `fixed` in IDL.
pub(crate) const DIGITS_MAX: u16 = 31;

//= GIOP 1.2 §15.3.2.8
//# A fixed is one digit a nibble, most significant first; the last nibble is 0xc for zero or more, 0xd for less.
const PLUS: u8 = 0xc;
const MINUS: u8 = 0xd;

/// The number of bytes of that many digits.
const fn digit_bytes(digits: u16) -> usize {
    digits as usize / 2 + 1
}

const fn fits(unscaled: i128, digits: u16) -> bool {
    digits <= DIGITS_MAX && unscaled.unsigned_abs() < 10u128.pow(digits as u32)
}
