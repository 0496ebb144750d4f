//! The values of literals: numbers, characters and strings with all their escapes (CORBA 3.3 part 1, 7.2.5).

use crate::diagnostic::Diagnostic;
use crate::tree::Value;

/// The value of a numeric literal: an integer, a floating-point or a fixed-point one.
pub(crate) fn number(text: &str) -> Result<Value, Diagnostic> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return integer(text, digits, 16);
    }
    if let Some(mantissa) = text.strip_suffix(['d', 'D']) {
        return fixed(text, mantissa);
    }
    if text.contains(['.', 'e', 'E']) {
        return float(text);
    }
    match text.strip_prefix('0') {
        Some("") => Ok(Value::Integer(0)),
        Some(digits) => integer(text, digits, 8),
        None => integer(text, text, 10),
    }
}

/// The characters of a string or character literal, with escapes replaced. `wide` allows `\u`.
pub(crate) fn characters(text: &str, wide: bool) -> Result<Vec<char>, Diagnostic> {
    let mut found = Vec::new();
    let mut rest = text.chars();
    while let Some(next) = rest.next() {
        if next != '\\' {
            found.push(next);
            continue;
        }
        let (value, left) = escape(rest.as_str(), wide)?;
        found.push(value);
        rest = left.chars();
    }
    Ok(found)
}

fn integer(text: &str, digits: &str, radix: u32) -> Result<Value, Diagnostic> {
    let kind = match radix {
        8 => "octal",
        10 => "decimal",
        _ => "hexadecimal",
    };
    if let Some(wrong) = digits.chars().find(|digit| !digit.is_digit(radix)) {
        let message = format!("`{wrong}` is not a digit of the {kind} number `{text}`");
        let bad = Diagnostic::error(message);
        return Err(match radix {
            8 => bad.help("a number that starts with 0 is octal: remove the 0 if it is decimal"),
            _ if "uUlL".contains(wrong) => bad.help("IDL numbers have no `u` or `l` suffix"),
            _ => bad,
        });
    }
    if digits.is_empty() {
        return Err(Diagnostic::error(format!(
            "the {kind} number `{text}` has no digits"
        )));
    }
    match u64::from_str_radix(digits, radix) {
        Ok(value) => Ok(Value::Integer(i128::from(value))),
        Err(_) => Err(
            Diagnostic::error(format!("the number `{text}` is too large"))
                .help("the largest IDL integer is 18446744073709551615"),
        ),
    }
}

fn float(text: &str) -> Result<Value, Diagnostic> {
    let plain = text
        .chars()
        .all(|c| c.is_ascii_digit() || ".eE+-".contains(c));
    let has_digits = text
        .split(['e', 'E'])
        .next()
        .is_some_and(|m| m.contains(|c: char| c.is_ascii_digit()));
    match text.parse::<f64>() {
        Ok(value) if plain && has_digits && value.is_finite() => Ok(Value::Float(value)),
        Ok(_) if plain && has_digits => Err(Diagnostic::error(format!(
            "the number `{text}` is too large for a double"
        ))),
        _ if text.ends_with(['f', 'F', 'l', 'L']) => {
            Err(Diagnostic::error(format!("`{text}` is not a number"))
                .help("IDL floating-point numbers have no `f` or `l` suffix"))
        }
        _ => Err(Diagnostic::error(format!("`{text}` is not a number"))),
    }
}

fn fixed(text: &str, mantissa: &str) -> Result<Value, Diagnostic> {
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_ascii_digit()) {
        return Err(Diagnostic::error(format!(
            "`{text}` is not a fixed-point number"
        )));
    }
    // Leading and trailing zeros are factored out: CORBA 3.3 part 1, 7.2.5.5.
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if whole.len() + fraction.len() > FIXED_DIGITS_MAX {
        return Err(Diagnostic::error(format!(
            "the fixed-point number `{text}` has more than {FIXED_DIGITS_MAX} digits"
        )));
    }
    let unscaled = format!("0{whole}{fraction}").parse();
    Ok(Value::Fixed {
        unscaled: unscaled.expect("31 digits are less than 128 bits"),
        scale: u16::try_from(fraction.len()).expect("there are at most 31 digits"),
    })
}

/// The most digits of a fixed-point value (CORBA 3.3 part 1, 7.11.3.4).
pub(crate) const FIXED_DIGITS_MAX: usize = 31;

/// The character of an escape sequence and the text behind it. `text` begins after the backslash.
fn escape(text: &str, wide: bool) -> Result<(char, &str), Diagnostic> {
    let Some(first) = text.chars().next() else {
        return Err(Diagnostic::error("a backslash at the end of a literal"));
    };
    let rest = &text[first.len_utf8()..];
    let simple = match first {
        'n' => '\n',
        't' => '\t',
        'v' => '\u{b}',
        'b' => '\u{8}',
        'r' => '\r',
        'f' => '\u{c}',
        'a' => '\u{7}',
        '\\' | '?' | '\'' | '"' => first,
        '0'..='7' => return numeric(text, 8, 3, false),
        'x' => return numeric(rest, 16, 2, true),
        'u' if wide => return numeric(rest, 16, 4, true),
        'u' => {
            return Err(
                Diagnostic::error("`\\u` is for wide characters and wide strings only")
                    .help("write L'...' or L\"...\""),
            );
        }
        _ => {
            return Err(
                Diagnostic::error(format!("`\\{first}` is not an escape sequence of IDL"))
                    .help("the escapes are \\n \\t \\v \\b \\r \\f \\a \\\\ \\? \\' \\\" \\ooo \\xhh and, in wide literals, \\uhhhh"),
            );
        }
    };
    Ok((simple, rest))
}

fn numeric(
    text: &str,
    radix: u32,
    digits_max: usize,
    prefixed: bool,
) -> Result<(char, &str), Diagnostic> {
    let length = text
        .chars()
        .take(digits_max)
        .take_while(|digit| digit.is_digit(radix))
        .count();
    if length == 0 && prefixed {
        return Err(Diagnostic::error(
            "an escape sequence without hexadecimal digits",
        ));
    }
    let value = u32::from_str_radix(&text[..length], radix).unwrap_or(0);
    match char::from_u32(value) {
        Some(found) if radix == 16 || value <= 0xff => Ok((found, &text[length..])),
        _ => Err(Diagnostic::error(format!(
            "the escape sequence `{}` is not a character",
            &text[..length]
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_radix() {
        for (text, value) in [
            ("0", 0),
            ("10", 10),
            ("010", 8),
            ("0x1f", 31),
            ("18446744073709551615", u64::MAX.into()),
        ] {
            assert_eq!(number(text), Ok(Value::Integer(value)), "{text}");
        }
        for text in [
            "08",
            "0x",
            "0xg",
            "18446744073709551616",
            "1u",
            "1.5f",
            "1e",
            "e",
            "1.2.3",
            "1e999",
        ] {
            assert!(number(text).is_err(), "{text}");
        }
        assert_eq!(number("1.50e2"), Ok(Value::Float(150.0)));
        assert_eq!(number(".5"), Ok(Value::Float(0.5)));
        assert_eq!(
            number("0012.3400d"),
            Ok(Value::Fixed {
                unscaled: 1234,
                scale: 2
            })
        );
        assert_eq!(
            number("0d"),
            Ok(Value::Fixed {
                unscaled: 0,
                scale: 0
            })
        );
    }

    #[test]
    fn every_escape() {
        let read =
            characters(r#"\n\t\v\b\r\f\a\\\?\'\"\101\x4a\0"#, false).expect("all are escapes");
        let expected = [
            '\n', '\t', '\u{b}', '\u{8}', '\r', '\u{c}', '\u{7}', '\\', '?', '\'', '"', 'A', 'J',
            '\0',
        ];
        assert_eq!(read, expected);
        assert_eq!(characters(r"\u20ac", true), Ok(vec!['€']));
        for text in [r"\q", r"\u0041", r"\x", r"\777", "\\"] {
            assert!(characters(text, false).is_err(), "{text}");
        }
    }
}
