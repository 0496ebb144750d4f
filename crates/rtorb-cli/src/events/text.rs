//! Payloads and anys as text: given on the command line, and shown.

use std::fmt::Write as _;

use rtorb::any::{Any, Value};

/// A payload as it is given: text, or `hex:` and digits.
pub(super) fn payload(text: &str) -> Result<Vec<u8>, String> {
    let Some(digits) = text.strip_prefix("hex:") else {
        return Ok(text.as_bytes().to_vec());
    };
    let wrong = || format!("{text:?} is no payload: after hex: come two digits for each octet");
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let octet = |at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong());
    (0..digits.len()).step_by(2).map(octet).collect()
}

/// Octets as `hex:` and digits, at most so many of them.
pub(super) fn hex(octets: &[u8], octets_max: usize) -> String {
    let mut text = "hex:".to_owned();
    for octet in octets.iter().take(octets_max) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{octet:02x}");
    }
    if octets.len() > octets_max {
        let _ = write!(text, "... ({} octets)", octets.len());
    }
    text
}

/// A payload for a person: text where it is text that a terminal shows, else octets.
pub(super) fn shown(payload: &[u8]) -> String {
    match std::str::from_utf8(payload) {
        Ok(text) if !text.chars().any(char::is_control) => format!("{text:?}"),
        _ => hex(payload, SHOWN_OCTETS_MAX),
    }
}

/// The value of an any, for a person; none where it holds nothing.
pub(super) fn any(any: &Any) -> Option<String> {
    match any.value() {
        Ok(Value::Nothing) => None,
        Ok(Value::String(text) | Value::WString(text)) => Some(format!("{text:?}")),
        Ok(Value::Octets(octets)) => Some(shown(&octets)),
        Ok(value) => Some(format!("{value:?}")),
        Err(error) => Some(format!("({error})")),
    }
}

/// A line of a terminal or two.
const SHOWN_OCTETS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_text_or_octets() {
        assert_eq!(payload("hello"), Ok(b"hello".to_vec()));
        assert_eq!(payload("hex:00ff0A"), Ok(vec![0, 255, 10]));
        assert_eq!(payload("hex:"), Ok(Vec::new()));
        for wrong in ["hex:0", "hex:xy", "hex:é0"] {
            assert!(
                payload(wrong).unwrap_err().contains("two digits"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn what_a_terminal_would_not_show_is_shown_as_octets() {
        assert_eq!(
            shown("temperature 20\u{b0}".as_bytes()),
            "\"temperature 20\u{b0}\""
        );
        assert_eq!(shown(b"\x1b[2J"), "hex:1b5b324a");
        assert_eq!(shown(&[0xff, 0xfe]), "hex:fffe");
        assert!(shown(&[0; 100]).ends_with("... (100 octets)"));
    }
}
