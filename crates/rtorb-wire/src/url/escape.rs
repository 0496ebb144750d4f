//! `%XX`: escapes of bytes that a URL must not contain.

use super::UrlError;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// The bytes of a text with escapes.
pub(super) fn unescape(text: &str) -> Result<Vec<u8>, UrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
                let (Some(high), Some(low)) = (digit(), digit()) else {
                    return Err(UrlError::SchemeSpecificPart(
                        "a % without two hexadecimal digits",
                    ));
                };
                bytes.push((high << 4 | low) as u8);
            }
            // The standard allows fewer unescaped characters. All that are not ambiguous are accepted.
            byte if byte.is_ascii_graphic() => bytes.push(byte),
            _ => {
                return Err(UrlError::SchemeSpecificPart(
                    "a character that must be written as %XX",
                ));
            }
        }
    }
    Ok(bytes)
}

/// The UTF-8 text of a text with escapes.
pub(super) fn unescape_text(text: &str) -> Result<String, UrlError> {
    String::from_utf8(unescape(text)?)
        .map_err(|_| UrlError::SchemeSpecificPart("a text that is not UTF-8"))
}

/// Writes bytes for a URL, and escapes those in `special` too.
pub(super) fn escape(bytes: &[u8], special: &[u8], f: &mut impl Write) -> fmt::Result {
    bytes.iter().try_for_each(|&byte| {
        let plain = byte.is_ascii_alphanumeric() || UNESCAPED.contains(&byte);
        if plain && !special.contains(&byte) {
            f.write_char(char::from(byte))
        } else {
            write!(f, "%{byte:02x}")
        }
    })
}

/// The characters that the standard allows unescaped, besides letters and digits.
const UNESCAPED: &[u8] = b";/:?@&=+$,-_.!~*'()";
