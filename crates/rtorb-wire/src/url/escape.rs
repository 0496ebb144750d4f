//! `%XX`: octets that may not stand in a URL as they are.

use super::UrlError;
use core::fmt::{self, Write};

/// The octets that a text stands for.
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
            // More than the standard allows unescaped: what cannot be mistaken for something else is let through.
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

/// The UTF-8 text that a text stands for.
pub(super) fn unescape_text(text: &str) -> Result<String, UrlError> {
    String::from_utf8(unescape(text)?)
        .map_err(|_| UrlError::SchemeSpecificPart("a text that is not UTF-8"))
}

/// Writes octets so that they can stand in a URL, and those in `special` escaped too.
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

/// What the standard lets stand, beside letters and digits.
const UNESCAPED: &[u8] = b";/:?@&=+$,-_.!~*'()";
