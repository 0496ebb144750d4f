//! Times in annotations: `2ms`, `1.5us`.
//!
//! System files have the same syntax for times. Their reader is another crate and neither depends on the other, so the tests
//! of both use one table of cases, `crates/rtorb-sched/src/times_cases.txt`.

/// The reason why a text is not a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TimeError {
    /// Not a number with a unit behind it.
    Malformed,
    /// A number without a unit.
    WithoutUnit,
    /// A unit other than s, ms, us and ns.
    UnknownUnit(String),
    /// Not a whole number of nanoseconds.
    TooFine,
    /// More nanoseconds than 64 bits hold.
    TooLong,
}

/// The time in nanoseconds, exactly.
pub(super) fn nanoseconds(text: &str) -> Result<u64, TimeError> {
    let text = text.trim();
    let end_of_number = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end_of_number);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') {
        return Err(TimeError::Malformed);
    }
    let decimals = match unit.trim_start() {
        "s" => 9,
        "ms" => 6,
        "us" => 3,
        "ns" => 0,
        "" => return Err(TimeError::WithoutUnit),
        other if other.chars().all(char::is_alphabetic) => {
            return Err(TimeError::UnknownUnit(other.to_owned()));
        }
        _ => return Err(TimeError::Malformed),
    };
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > decimals {
        return Err(TimeError::TooFine);
    }
    // Moves the point behind the digit of nanoseconds, which leaves a whole number.
    format!("{whole}{fraction:0<decimals$}")
        .parse()
        .map_err(|_| TimeError::TooLong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_agree_with_system_files() {
        let cases = include_str!("../../../rtorb-sched/src/times_cases.txt");
        let mut count = 0;
        for case in cases.lines().filter(|line| !line.starts_with('#')) {
            let (text, meaning) = case.split_once('=').expect("TEXT = MEANING");
            let ns = meaning.trim().parse::<u64>().ok();
            assert_eq!(nanoseconds(text).ok(), ns, "{text:?}");
            count += 1;
        }
        assert!(count > 30, "the table is read");
    }

    #[test]
    fn wrong_times_have_a_reason() {
        for (text, reason) in [
            ("", TimeError::Malformed),
            ("2", TimeError::WithoutUnit),
            ("2 min", TimeError::UnknownUnit("min".to_owned())),
            ("2µs", TimeError::UnknownUnit("µs".to_owned())),
            ("1.5ns", TimeError::TooFine),
            ("99999999999s", TimeError::TooLong),
            ("1e3s", TimeError::Malformed),
        ] {
            assert_eq!(nanoseconds(text), Err(reason), "{text:?}");
        }
    }
}
