//! Numbers with their units: as figures are compared, and as sentences show them.

/// A number in the unit in which figures are compared: a time is in microseconds, or in thousands of instructions where the
/// emulated machine counts these; a share is a ratio, a size is in KiB.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantity {
    pub(super) value: f64,
    pub(super) unit: String,
}

impl Quantity {
    /// Changes a number of the results to the unit of comparisons.
    pub(super) fn of(value: f64, unit: &str) -> Self {
        let (value, unit) = match unit {
            "ns" => (value / 1e3, "us"),
            "%" => (value / 100.0, "%"),
            "ratio" => (value, "times"),
            "bytes" => (value / 1024.0, "KiB"),
            "per_request" | "per_event" | "per_second" => (value, ""),
            other => (value, other),
        };
        let unit = unit.to_owned();
        Self { value, unit }
    }

    /// The number with its unit, as a sentence has it: `15.8 us`, `31.3 ms`, `77,400`.
    pub(super) fn shown(&self) -> String {
        let (value, unit) = match (self.unit.as_str(), self.value.abs()) {
            ("us", large) if large >= 1e6 => (self.value / 1e6, "s"),
            ("us", large) if large >= 1e3 => (self.value / 1e3, "ms"),
            ("%", _) => (self.value * 100.0, "%"),
            (unit, _) => (self.value, unit),
        };
        format!("{} {unit}", digits(value)).trim_end().to_owned()
    }
}

/// Three significant digits, and all digits of a whole number below a million.
fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let is_whole = value.fract() == 0.0 && value.abs() < 1e6;
    let rounded: f64 = if is_whole {
        value
    } else {
        format!("{value:.2e}").parse().unwrap_or(value)
    };
    let places = (2 - rounded.abs().log10().floor() as i32).max(0) as usize;
    let text = format!("{rounded:.*}", if is_whole { 0 } else { places });
    let (whole, fraction) = text
        .split_once('.')
        .map_or((text.as_str(), None), |(a, b)| (a, Some(b)));
    let (sign, whole) = whole
        .strip_prefix('-')
        .map_or(("", whole), |rest| ("-", rest));
    let mut grouped = String::new();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let fraction = fraction
        .map(|digits| format!(".{digits}"))
        .unwrap_or_default();
    format!("{sign}{grouped}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_three_significant_digits_and_a_fitting_unit() {
        for (value, unit, shown) in [
            (15_834.0, "ns", "15.8 us"),
            (31_343_210.0, "ns", "31.3 ms"),
            (999_600.0, "ns", "1,000 us"),
            (77_412.3, "", "77,400"),
            (1_691_648.0, "bytes", "1,652 KiB"),
            (1.0, "ratio", "1 times"),
            (12.34, "%", "12.3 %"),
            (-0.000_52, "ratio", "-0.000520 times"),
            (0.0, "per_request", "0"),
        ] {
            assert_eq!(Quantity::of(value, unit).shown(), shown);
        }
    }
}
