//! `long double`: IEEE binary128, without arithmetic.

use super::{ByteOrder, Reader, Writer};
use crate::{DecodeError, EncodeError};

/// The bits of a binary128 number: 1 of sign, 15 of exponent (bias 16383), 112 of fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LongDouble(pub u128);

impl From<f64> for LongDouble {
    /// Exact: every double has a binary128 form.
    fn from(value: f64) -> Self {
        const BIAS: i32 = 16_383;
        let bits = value.to_bits();
        let sign = u128::from(bits >> 63) << 127;
        let exponent = ((bits >> 52) & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let (exponent, fraction) = match (exponent, fraction) {
            (0, 0) => (0, 0),
            (0, fraction) => {
                // A subnormal double is a normal binary128: shift the leading one out.
                let shift = fraction.leading_zeros() as i32 - 11;
                (BIAS - 1022 - shift, (fraction << shift) & ((1 << 52) - 1))
            }
            (0x7ff, fraction) => (0x7fff, fraction),
            (exponent, fraction) => (exponent - 1023 + BIAS, fraction),
        };
        Self(sign | (exponent as u128) << 112 | u128::from(fraction) << 60)
    }
}

impl Writer<'_> {
    /// Writes a `long double`.
    ///
    /// # Errors
    /// When the message would exceed its limit.
    //= GIOP 1.2 §15.3.1.3
    //# A long double is an IEEE number of 16 bytes, aligned to 8.
    pub fn long_double(&mut self, value: LongDouble) -> Result<(), EncodeError> {
        self.align(8)?;
        self.octets(&match self.order() {
            ByteOrder::Big => value.0.to_be_bytes(),
            ByteOrder::Little => value.0.to_le_bytes(),
        })
    }
}

impl Reader<'_> {
    /// Reads a `long double`.
    ///
    /// # Errors
    /// When the message ends too early.
    pub fn long_double(&mut self) -> Result<LongDouble, DecodeError> {
        self.align(8)?;
        let bits = bytemuck::pod_read_unaligned(self.take(16)?);
        Ok(LongDouble(match self.order() {
            ByteOrder::Big => u128::from_be(bits),
            ByteOrder::Little => u128::from_le(bits),
        }))
    }
}
