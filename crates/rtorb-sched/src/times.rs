//! Times in text form, such as `50ms`.

/// Parses `2ms`, `1.5us`, `40 ns` or `2s` to exact nanoseconds.
///
/// # Errors
/// A message with the mistake and its correction.
pub fn parse_ns(text: &str) -> Result<u64, String> {
    let wrong = || {
        format!(
            "{text:?} is not a time: write a number and its unit, such as 2s, 50ms, 1.5us or 800ns"
        )
    };
    let trimmed = text.trim();
    let digits = trimmed.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let unit_ns: u64 = match &trimmed[digits.len()..] {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1_000,
        "ns" => 1,
        _ => return Err(wrong()),
    };
    let (whole, fraction) = digits
        .trim_end()
        .split_once('.')
        .unwrap_or((digits.trim_end(), ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let mut ns = whole.checked_mul(unit_ns).ok_or_else(wrong)?;
    let mut place_ns = unit_ns;
    for digit in fraction.bytes() {
        if place_ns < 10 && digit != b'0' {
            return Err(format!("{text:?} is finer than a nanosecond"));
        }
        place_ns /= 10;
        ns = u64::from(digit - b'0')
            .checked_mul(place_ns)
            .and_then(|part| ns.checked_add(part))
            .ok_or_else(wrong)?;
    }
    Ok(ns)
}

/// Formats a time in the largest unit in which it has at most three decimals.
#[must_use]
pub fn text_of_ns(ns: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    for (unit_ns, unit) in units {
        let thousandth = unit_ns / 1_000;
        if ns >= unit_ns && ns.is_multiple_of(thousandth) {
            let (whole, rest) = (ns / unit_ns, ns % unit_ns / thousandth);
            let fraction = format!("{rest:03}");
            let fraction = fraction.trim_end_matches('0');
            let point = if fraction.is_empty() { "" } else { "." };
            return format!("{whole}{point}{fraction}{unit}");
        }
    }
    format!("{ns}ns")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_match_the_table() {
        for case in include_str!("times_cases.txt").lines() {
            if case.starts_with('#') {
                continue;
            }
            let (text, meaning) = case.split_once('=').expect("TEXT = MEANING");
            let ns = meaning.trim().parse::<u64>().ok();
            assert_eq!(parse_ns(text).ok(), ns, "{text:?}");
        }
    }

    #[test]
    fn times_are_exact_and_round_trip() {
        for (text, ns) in [
            ("2ms", 2_000_000),
            ("1.5us", 1_500),
            ("40 ns", 40),
            ("0.000000001s", 1),
            ("1s", 1_000_000_000),
            ("0s", 0),
            ("7.0ns", 7),
            ("18446744073709551615ns", u64::MAX),
        ] {
            assert_eq!(parse_ns(text), Ok(ns), "{text}");
            assert_eq!(parse_ns(&text_of_ns(ns)), Ok(ns), "{text}");
        }
        assert_eq!(text_of_ns(2_500_000), "2.5ms");
        assert_eq!(text_of_ns(1_000_001), "1000.001us");
    }

    #[test]
    fn an_invalid_time_is_an_error_with_advice() {
        for text in [
            "",
            "2",
            "ms",
            "2m",
            "-1s",
            "1e3s",
            ".5s",
            "1.2.3s",
            "0.5ns",
            "99999999999999s",
            "µs",
        ] {
            let said = parse_ns(text).unwrap_err();
            assert!(said.contains("50ms") || said.contains("finer"), "{said}");
        }
    }
}
