//! `%XX`: escapes of bytes that a URL must not contain.

use super::UrlError;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// The bytes of a text with escapes.
pub(super) fn unescape(text: &str) -> Result<Vec<u8>, UrlError> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(octet) = rest.next() {
        match octet {
            b'%' => {
                let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
                let (Some(high), Some(low)) = (digit(), digit()) else {
                    return Err(UrlError::SchemeSpecificPart(
                        "a % without two hexadecimal digits",
                    ));
                };
                octets.push((high << 4 | low) as u8);
            }
            // The standard allows fewer unescaped characters. All that are not ambiguous are accepted.
            octet if octet.is_ascii_graphic() => octets.push(octet),
            _ => {
                return Err(UrlError::SchemeSpecificPart(
                    "a character that must be written as %XX",
                ));
            }
        }
    }
    Ok(octets)
}

/// The UTF-8 text of a text with escapes.
pub(super) fn unescape_text(text: &str) -> Result<String, UrlError> {
    String::from_utf8(unescape(text)?)
        .map_err(|_| UrlError::SchemeSpecificPart("a text that is not UTF-8"))
}

/// Writes bytes for a URL, and escapes those in `special` too.
pub(super) fn escape(octets: &[u8], special: &[u8], f: &mut impl Write) -> fmt::Result {
    octets.iter().try_for_each(|&octet| {
        let plain = octet.is_ascii_alphanumeric() || UNESCAPED.contains(&octet);
        if plain && !special.contains(&octet) {
            f.write_char(char::from(octet))
        } else {
            write!(f, "%{octet:02x}")
        }
    })
}

/// The characters that the standard allows unescaped, besides letters and digits.
const UNESCAPED: &[u8] = b";/:?@&=+$,-_.!~*'()";
