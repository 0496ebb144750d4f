//! Fixed-point arithmetic of constants: exact within 62 digits, cut to 31 (CORBA 3.3 part 1, 7.10.1.2).

use crate::literal::FIXED_DIGITS_MAX;
use crate::tree::Value;

/// A decimal number of any length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    /// The digits from the least significant, without leading zeros; empty for 0.
    digits: Vec<i32>,
    /// The number of digits behind the point.
    scale: usize,
}

impl Decimal {
    /// The number of a fixed-point value; `None` for another value.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let Value::Fixed { unscaled, scale } = value else {
            return None;
        };
        let digits = unscaled.unsigned_abs().to_string().into_bytes();
        let digits = digits.iter().rev().map(|digit| i32::from(digit - b'0'));
        Some(Self {
            negative: *unscaled < 0,
            ..Self::of_digits(digits.collect(), usize::from(*scale))
        })
    }

    /// The number with `digits`, from the least significant, each of any size and sign. The result must not have more digits.
    fn of_digits(mut digits: Vec<i32>, scale: usize) -> Self {
        let negative = carried(&mut digits) < 0;
        if negative {
            digits.iter_mut().for_each(|digit| *digit = -*digit);
            carried(&mut digits);
        }
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Self {
            negative,
            digits,
            scale,
        }
    }

    /// The value, cut to 31 digits; `None` if it has more than 31 digits before the point.
    pub(super) fn value(mut self) -> Option<Value> {
        let extra = self
            .digits
            .len()
            .saturating_sub(FIXED_DIGITS_MAX)
            .max(self.scale.saturating_sub(FIXED_DIGITS_MAX));
        if extra > self.scale {
            return None;
        }
        self = self.cut(extra);
        while self.scale > 0 && self.digits.first().is_none_or(|&digit| digit == 0) {
            self = self.cut(1);
        }
        let magnitude = self
            .digits
            .iter()
            .rev()
            .fold(0i128, |value, &digit| value * 10 + i128::from(digit));
        let unscaled = if self.negative { -magnitude } else { magnitude };
        Some(Value::Fixed {
            unscaled,
            scale: u16::try_from(self.scale).ok()?,
        })
    }

    /// The number of digits before the point.
    pub(super) fn whole_digits(&self) -> usize {
        self.digits.len().saturating_sub(self.scale)
    }

    pub(super) fn negated(&self) -> Self {
        Self {
            negative: !self.negative,
            ..self.clone()
        }
    }

    /// The number cut to `scale` digits behind the point.
    pub(super) fn truncated(self, scale: u16) -> Self {
        let extra = self.scale.saturating_sub(usize::from(scale));
        self.cut(extra)
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        let (mut sum, other) = (self.scaled(scale), other.scaled(scale));
        sum.resize(sum.len().max(other.len()) + 1, 0);
        for (digit, addend) in sum.iter_mut().zip(other) {
            *digit += addend;
        }
        Self::of_digits(sum, scale)
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        let (left, right) = (self.scaled(self.scale), other.scaled(other.scale));
        let mut product = vec![0; left.len() + right.len()];
        for (at, left) in left.iter().enumerate() {
            for (offset, right) in right.iter().enumerate() {
                product[at + offset] += left * right;
            }
        }
        Self::of_digits(product, self.scale + other.scale)
    }

    /// The quotient, cut and not rounded. `other` must not be zero.
    pub(super) fn over(&self, other: &Self) -> Self {
        // Both numbers get the same scale; the dividend gets as many more digits as the result can keep.
        let scale = self.scale.max(other.scale);
        let subtrahend = Self {
            negative: true,
            ..Self::of_digits(other.scaled(scale), scale)
        };
        let mut quotient = Vec::new();
        let mut rest = Self::of_digits(Vec::new(), scale);
        for digit in self.scaled(scale + FIXED_DIGITS_MAX).iter().rev() {
            rest.digits.insert(0, digit.abs());
            let mut count = 0;
            loop {
                let less = rest.plus(&subtrahend);
                if less.negative {
                    break;
                }
                rest = less;
                count += 1;
            }
            quotient.insert(0, count);
        }
        Self {
            negative: self.negative != other.negative,
            ..Self::of_digits(quotient, FIXED_DIGITS_MAX)
        }
    }

    /// The number without its last `count` digits, which must be behind the point.
    fn cut(mut self, count: usize) -> Self {
        self.digits.drain(..count.min(self.digits.len()));
        self.scale -= count;
        self.negative &= !self.digits.is_empty();
        self
    }

    /// The digits with `scale` of them behind the point. Each has the sign of the number.
    fn scaled(&self, scale: usize) -> Vec<i32> {
        let sign = if self.negative { -1 } else { 1 };
        let mut digits = vec![0; scale - self.scale];
        digits.extend(self.digits.iter().map(|digit| sign * digit));
        digits
    }
}

/// Brings every digit into the range from 0 to 9, and returns the carry out of the last one.
fn carried(digits: &mut [i32]) -> i32 {
    let mut carry = 0;
    for digit in digits {
        carry += *digit;
        *digit = carry.rem_euclid(10);
        carry = carry.div_euclid(10);
    }
    carry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(unscaled: i128, scale: u16) -> Decimal {
        Decimal::of(&Value::Fixed { unscaled, scale }).expect("it is fixed")
    }

    fn value(unscaled: i128, scale: u16) -> Option<Value> {
        Some(Value::Fixed { unscaled, scale })
    }

    #[test]
    fn arithmetic_is_exact_within_31_digits() {
        assert_eq!(decimal(150, 2).plus(&decimal(25, 1)).value(), value(4, 0));
        assert_eq!(
            decimal(150, 2).plus(&decimal(-1501, 3)).value(),
            value(-1, 3)
        );
        assert_eq!(
            decimal(-12, 1).times(&decimal(35, 1)).value(),
            value(-42, 1)
        );
        assert_eq!(decimal(1, 0).over(&decimal(8, 0)).value(), value(125, 3));
        assert_eq!(
            decimal(1, 0).over(&decimal(3, 0)).value(),
            value(3_333_333_333_333_333_333_333_333_333_333, 31)
        );
        assert_eq!(decimal(5, 0).over(&decimal(-25, 2)).value(), value(-20, 0));
        assert_eq!(decimal(0, 3).times(&decimal(7, 2)).value(), value(0, 0));
    }

    #[test]
    fn cuts_digits_behind_the_point_and_rejects_digits_before_it() {
        let long = decimal(1_111_111_111_111_111_111_111_111_111_111, 30);
        assert!(matches!(
            long.times(&long).value(),
            Some(Value::Fixed { scale: 30, .. })
        ));
        let large = decimal(1_111_111_111_111_111_111_111_111_111_111, 0);
        assert_eq!(large.times(&large).value(), None);
    }
}
