//! Numbers that JSON cannot express in every program: fixed and long double.

use rtorb::cdr::LongDouble;

/// The decimal text of `unscaled` / 10^`scale`.
pub(super) fn fixed_text(unscaled: i128, scale: i16) -> String {
    let (sign, size) = (if unscaled < 0 { "-" } else { "" }, unscaled.unsigned_abs());
    let Ok(scale) = usize::try_from(scale) else {
        let zeros = "0".repeat(usize::from(scale.unsigned_abs()));
        return format!("{sign}{size}{zeros}");
    };
    if scale == 0 {
        return format!("{sign}{size}");
    }
    let digits = format!("{size:0>width$}", width = scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    format!("{sign}{whole}.{part}")
}

/// The number that is `text` times 10^`scale`, if `text` is decimal and needs no more than `digits` digits.
pub(super) fn fixed_of_text(text: &str, digits: u16, scale: i16) -> Option<i128> {
    let (is_negative, size) = match text.strip_prefix('-') {
        Some(size) => (true, size),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, part) = size.split_once('.').unwrap_or((size, ""));
    let is_decimal = |text: &str| text.bytes().all(|it| it.is_ascii_digit());
    if size.len() > TEXT_MAX || whole.is_empty() || !is_decimal(whole) || !is_decimal(part) {
        return None;
    }
    let part = part.trim_end_matches('0');
    let zeros = i32::from(scale) - i32::try_from(part.len()).ok()?;
    let all = format!("{whole}{part}");
    let shifted = match usize::try_from(zeros) {
        Ok(zeros) => all + &"0".repeat(zeros),
        // Only zeros may be lost.
        Err(_) => {
            let (kept, lost) =
                all.split_at_checked(all.len().checked_sub(zeros.unsigned_abs() as usize)?)?;
            lost.bytes().all(|it| it == b'0').then(|| kept.to_owned())?
        }
    };
    let size = match shifted.trim_start_matches('0') {
        "" => 0,
        significant => significant.parse::<i128>().ok()?,
    };
    let fits = size < 10i128.checked_pow(u32::from(digits))?;
    fits.then_some(if is_negative { -size } else { size })
}

/// The double that is exactly this number, if there is one.
pub(super) fn exact_double(number: LongDouble) -> Option<f64> {
    let sign = (number.0 >> 127) as u64;
    let exponent = ((number.0 >> 112) & 0x7fff) as i32;
    // A subnormal double loses bits here, so that the comparison below fails.
    let exponent = match exponent {
        0 => 0,
        0x7fff => 0x7ff,
        _ => u64::try_from(exponent - 16_383 + 1_023)
            .ok()
            .filter(|it| *it < 0x7ff)?,
    };
    let fraction = (number.0 >> 60) as u64 & ((1 << 52) - 1);
    let double = f64::from_bits(sign << 63 | exponent << 52 | fraction);
    (LongDouble::from(double) == number).then_some(double)
}

/// The most characters of a number: more than any fixed needs, zeros included.
const TEXT_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_numbers_are_decimal_text() {
        assert_eq!(fixed_text(-1250, 2), "-12.50");
        assert_eq!(fixed_text(5, 3), "0.005");
        assert_eq!(fixed_text(7, 0), "7");
        assert_eq!(fixed_text(7, -2), "700");
        for (text, expected) in [
            ("-12.5", Some(-1250)),
            ("12.500", Some(1250)),
            ("0", Some(0)),
            ("99.99", Some(9999)),
            ("100", None),
            ("1.001", None),
            ("1e2", None),
            ("", None),
            (".5", None),
            ("-", None),
        ] {
            assert_eq!(fixed_of_text(text, 4, 2), expected, "{text}");
        }
        assert_eq!(fixed_of_text("700", 1, -2), Some(7));
        assert_eq!(fixed_of_text("750", 1, -2), None);
    }

    #[test]
    fn long_doubles_are_doubles_where_that_is_exact() {
        for double in [0.0, -0.0, 1.5, -1e300, f64::MAX, f64::INFINITY] {
            let there = exact_double(LongDouble::from(double));
            assert_eq!(there.map(f64::to_bits), Some(double.to_bits()), "{double}");
        }
        let third = LongDouble(0x3ffd_5555_5555_5555_5555_5555_5555_5555);
        assert_eq!(exact_double(third), None);
        assert_eq!(exact_double(LongDouble::from(5e-324)), None);
    }
}
