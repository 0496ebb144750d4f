//! Payloads and anys as text: parsed from the command line, and formatted.

use std::fmt::Write as _;

use rtorb::any::{Any, Value};

/// Parses a payload: text, or `hex:` and digits.
pub(super) fn payload(text: &str) -> Result<Vec<u8>, String> {
    let Some(digits) = text.strip_prefix("hex:") else {
        return Ok(text.as_bytes().to_vec());
    };
    let wrong = || format!("{text:?} is not a payload: write two digits for each byte after hex:");
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return Err(wrong());
    }
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| wrong());
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// Formats bytes as `hex:` and digits, at most `bytes_max` of them.
pub(super) fn hex(bytes: &[u8], bytes_max: usize) -> String {
    let mut text = "hex:".to_owned();
    for byte in bytes.iter().take(bytes_max) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    if bytes.len() > bytes_max {
        let _ = write!(text, "... ({} bytes)", bytes.len());
    }
    text
}

/// Formats a payload for people: as text if a terminal can show it, otherwise as bytes.
pub(super) fn shown(payload: &[u8]) -> String {
    match std::str::from_utf8(payload) {
        Ok(text) if !text.chars().any(char::is_control) => format!("{text:?}"),
        _ => hex(payload, SHOWN_BYTES_MAX),
    }
}

/// Formats the value of an any for people; `None` for an empty any.
pub(super) fn any(any: &Any) -> Option<String> {
    match any.value() {
        Ok(Value::Nothing) => None,
        Ok(Value::String(text) | Value::WString(text)) => Some(format!("{text:?}")),
        Ok(Value::Octets(bytes)) => Some(shown(&bytes)),
        Ok(value) => Some(format!("{value:?}")),
        Err(error) => Some(format!("({error})")),
    }
}

/// One or two lines of a terminal.
const SHOWN_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_text_or_bytes() {
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
    fn control_characters_are_shown_as_bytes() {
        assert_eq!(
            shown("temperature 20\u{b0}".as_bytes()),
            "\"temperature 20\u{b0}\""
        );
        assert_eq!(shown(b"\x1b[2J"), "hex:1b5b324a");
        assert_eq!(shown(&[0xff, 0xfe]), "hex:fffe");
        assert!(shown(&[0; 100]).ends_with("... (100 bytes)"));
    }
}
