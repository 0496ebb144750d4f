//! REF on the command line, and the options of whatever calls an object.

use std::time::Duration;

use anyhow::anyhow;
use rtorb::{ObjectRef, Orb};
use rtorb_lab::inspect;

/// The object that a REF means.
pub(crate) fn object(orb: &Orb, argument: &str) -> anyhow::Result<ObjectRef> {
    let text = inspect::reference_text(argument).map_err(|error| anyhow!(error))?;
    orb.string_to_object(&text)
        .map_err(|exception| anyhow!("{argument}: {exception}"))
}

/// Reads `2s`, `500ms`, `100us`, or a number of seconds such as `1.5`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: write 2s, 500ms or 100us");
    let digits = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let seconds_each = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "us" => 1e-6,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    match Duration::try_from_secs_f64(number * seconds_each) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "s", "2m", "-1s", "0s", "1e400s", "NaN"] {
            assert!(duration(wrong).unwrap_err().contains("500ms"), "{wrong}");
        }
    }
}
