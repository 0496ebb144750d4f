//! `fixed<D, S>`: decimal numbers with a fixed point, packed two digits an octet.

use super::{Decode, Encode, Reader, Writer};
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
        if unscaled.unsigned_abs() < 10u128.pow(DIGITS as u32) {
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
        match SCALE {
            0 => write!(f, "{sign}{size}"),
            _ => write!(
                f,
                "{sign}{}.{:0width$}",
                size / unit,
                size % unit,
                width = usize::from(SCALE)
            ),
        }
    }
}

impl<const DIGITS: u16, const SCALE: u16> Encode for Fixed<DIGITS, SCALE> {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        let count = usize::from(DIGITS) / 2 + 1;
        let mut octets = [0u8; 16];
        let mut left = self.0.unsigned_abs();
        let mut digit = || {
            let digit = (left % 10) as u8;
            left /= 10;
            digit
        };
        octets[count - 1] = digit() << 4 | if self.0 < 0 { 0xd } else { 0xc };
        for octet in octets[..count - 1].iter_mut().rev() {
            let low = digit();
            *octet = digit() << 4 | low;
        }
        w.octets(&octets[..count])
    }
}

impl<const DIGITS: u16, const SCALE: u16> Decode for Fixed<DIGITS, SCALE> {
    const OCTETS_MIN: usize = DIGITS as usize / 2 + 1;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let octets = r.take(Self::OCTETS_MIN)?;
        let nibbles = octets.iter().flat_map(|octet| [octet >> 4, octet & 0xf]);
        let digits = 2 * octets.len() - 1;
        let mut unscaled = 0i128;
        let mut sign = 0;
        for (index, nibble) in nibbles.enumerate() {
            match nibble {
                0..=9 if index < digits => unscaled = unscaled * 10 + i128::from(nibble),
                0xc | 0xd if index == digits => sign = nibble,
                _ => return Err(DecodeError::BadFixed),
            }
        }
        Self::new(if sign == 0xd { -unscaled } else { unscaled }).map_err(|_| DecodeError::BadFixed)
    }
}
