//! Numbers, characters and bytes of JSON.

use rtorb::cdr::LongDouble;
use serde_json::Value as Json;

use super::HEX;

/// Reads an integer from a number or from text. Every JSON writer keeps text exact.
pub(super) fn integer<T: TryFrom<i128>>(json: &Json) -> Option<T> {
    let number = match json {
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => i128::from(number),
            (_, Some(number)) => i128::from(number),
            // 1.0 and 1e3 are integers too.
            _ => number
                .as_f64()
                .filter(|it| it.fract() == 0.0 && it.abs() <= EXACT_DOUBLE)?
                as i128,
        },
        Json::String(text) => text.parse().ok()?,
        _ => return None,
    };
    T::try_from(number).ok()
}

pub(super) fn real(json: &Json) -> Option<f64> {
    match json {
        Json::Number(number) => number.as_f64(),
        // The texts of numbers that JSON does not have.
        Json::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn long_double(json: &Json) -> Option<LongDouble> {
    let bits = || {
        let digits = json.as_str()?.strip_prefix(HEX)?;
        let is_whole = digits.len() == 32 && digits.bytes().all(|it| it.is_ascii_hexdigit());
        is_whole
            .then(|| u128::from_str_radix(digits, 16).ok())
            .flatten()
    };
    real(json)
        .map(LongDouble::from)
        .or_else(|| bits().map(LongDouble))
}

pub(super) fn character(json: &Json) -> Option<char> {
    let mut characters = json.as_str()?.chars();
    let character = characters.next()?;
    characters.next().is_none().then_some(character)
}

/// The bytes of `hex:` and digits.
pub(super) fn hex_bytes(json: &Json) -> Option<Vec<u8>> {
    let digits = json.as_str()?.strip_prefix(HEX)?;
    let is_whole =
        digits.bytes().all(|it| it.is_ascii_hexdigit()) && digits.len().is_multiple_of(2);
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).ok();
    is_whole.then(|| (0..digits.len()).step_by(2).filter_map(byte).collect())
}

/// The beginning of a JSON text.
pub(super) fn short(json: &Json) -> String {
    let text = json.to_string();
    let mut beginning: String = text.chars().take(SHOWN_MAX).collect();
    if beginning.len() < text.len() {
        beginning.push_str("...");
    }
    beginning
}

pub(super) const fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

/// The largest number up to which doubles skip no integer.
const EXACT_DOUBLE: f64 = 9_007_199_254_740_992.0;
/// The most characters of a wrong value that a message shows.
const SHOWN_MAX: usize = 40;
