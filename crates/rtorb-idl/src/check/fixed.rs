//! Fixed-point arithmetic of constants: exact within 62 digits, cut to 31 (CORBA 3.3 part 1, 7.10.1.2).

use crate::literal::FIXED_DIGITS_MAX;
use crate::tree::Value;

/// A decimal number of any length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    /// From the least significant, without leading zeros; empty for 0.
    digits: Vec<u8>,
    /// How many digits are behind the point.
    scale: usize,
}

impl Decimal {
    /// `None` if `value` is no fixed-point value.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let Value::Fixed { unscaled, scale } = value else {
            return None;
        };
        let digits = if *unscaled == 0 {
            String::new()
        } else {
            unscaled.unsigned_abs().to_string()
        };
        let digits = digits.bytes().rev().map(|digit| digit - b'0').collect();
        Some(Self {
            negative: *unscaled < 0,
            digits,
            scale: usize::from(*scale),
        })
    }

    /// `None` if it has more than 31 digits before the point.
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

    /// How many digits it has before the point.
    pub(super) fn whole_digits(&self) -> usize {
        self.digits.len().saturating_sub(self.scale)
    }

    pub(super) fn negated(&self) -> Self {
        Self {
            negative: !self.negative,
            ..self.clone()
        }
    }

    /// Without the digits beyond `scale` behind the point.
    pub(super) fn truncated(self, scale: u16) -> Self {
        let extra = self.scale.saturating_sub(usize::from(scale));
        self.cut(extra)
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let scale = self.scale.max(other.scale);
        let (left, right) = (self.scaled(scale), other.scaled(scale));
        let (negative, digits) = if self.negative == other.negative {
            (self.negative, add(&left, &right))
        } else if is_less(&left, &right) {
            (other.negative, subtract(&right, &left))
        } else {
            (self.negative, subtract(&left, &right))
        };
        Self {
            negative,
            digits,
            scale,
        }
    }

    pub(super) fn times(&self, other: &Self) -> Self {
        let mut digits = vec![0u8; self.digits.len() + other.digits.len()];
        for (at, &left) in self.digits.iter().enumerate() {
            let mut carry = 0;
            for (offset, &right) in other.digits.iter().enumerate() {
                let sum = digits[at + offset] + left * right + carry;
                digits[at + offset] = sum % 10;
                carry = sum / 10;
            }
            digits[at + other.digits.len()] += carry;
        }
        Self {
            negative: self.negative != other.negative,
            digits: trimmed(digits),
            scale: self.scale + other.scale,
        }
    }

    /// `other` is not zero. The quotient is cut, not rounded.
    pub(super) fn over(&self, other: &Self) -> Self {
        // As many digits as the result can keep, and then some.
        let scale = self.scale.max(other.scale);
        let divisor = other.scaled(scale);
        let dividend = self.scaled(scale + FIXED_DIGITS_MAX);
        let mut quotient = Vec::with_capacity(dividend.len());
        let mut rest: Vec<u8> = Vec::new();
        for &digit in dividend.iter().rev() {
            rest.insert(0, digit);
            rest = trimmed(rest);
            let mut count = 0;
            while !is_less(&rest, &divisor) {
                rest = subtract(&rest, &divisor);
                count += 1;
            }
            quotient.insert(0, count);
        }
        Self {
            negative: self.negative != other.negative,
            digits: trimmed(quotient),
            scale: FIXED_DIGITS_MAX,
        }
    }

    /// Without its last `count` digits, which are behind the point.
    fn cut(mut self, count: usize) -> Self {
        self.digits.drain(..count.min(self.digits.len()));
        self.scale -= count;
        self.negative &= !self.digits.is_empty();
        self
    }

    /// The digits with `scale` of them behind the point.
    fn scaled(&self, scale: usize) -> Vec<u8> {
        let mut digits = vec![0; scale - self.scale];
        digits.extend(&self.digits);
        trimmed(digits)
    }
}

fn trimmed(mut digits: Vec<u8>) -> Vec<u8> {
    while digits.last() == Some(&0) {
        digits.pop();
    }
    digits
}

fn is_less(left: &[u8], right: &[u8]) -> bool {
    (left.len(), left.iter().rev().collect::<Vec<_>>())
        < (right.len(), right.iter().rev().collect::<Vec<_>>())
}

fn add(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut sum = Vec::with_capacity(left.len().max(right.len()) + 1);
    let mut carry = 0;
    for at in 0..left.len().max(right.len()) {
        let digit = left.get(at).unwrap_or(&0) + right.get(at).unwrap_or(&0) + carry;
        sum.push(digit % 10);
        carry = digit / 10;
    }
    sum.push(carry);
    trimmed(sum)
}

/// `left` is at least `right`.
fn subtract(left: &[u8], right: &[u8]) -> Vec<u8> {
    let mut difference = Vec::with_capacity(left.len());
    let mut borrow = 0;
    for (at, &digit) in left.iter().enumerate() {
        let take = right.get(at).unwrap_or(&0) + borrow;
        borrow = u8::from(digit < take);
        difference.push(digit + 10 * borrow - take);
    }
    trimmed(difference)
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
