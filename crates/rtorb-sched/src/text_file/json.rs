//! The tree of values of a JSON text, with their places: the form in which mistakes of TOML are found too.

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Returns the tree of a text that is JSON. A `null` is left out. Returns `None` if values are nested too deep.
pub(super) fn tree(text: &str) -> Option<Spanned<DeValue<'_>>> {
    let mut start = Scanner {
        text,
        at: 0,
        depth: 0,
    };
    start.value()?
}

/// A position in a text that is JSON.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
    /// The number of objects and arrays around the position.
    depth: usize,
}

impl<'t> Scanner<'t> {
    /// Returns the next value; the inner `None` is a `null`.
    fn value(&mut self) -> Option<Option<Spanned<DeValue<'t>>>> {
        let first = self.next_byte()?;
        let start = self.at;
        if self.depth > DEPTH_MAX {
            return None;
        }
        self.depth += 1;
        let value = match first {
            b'{' => Some(DeValue::Table(self.object()?)),
            b'[' => Some(DeValue::Array(self.array()?)),
            b'"' => Some(DeValue::String(self.string()?.into())),
            _ => self.word()?,
        };
        self.depth -= 1;
        Some(value.map(|value| Spanned::new(start..self.at, value)))
    }

    fn object(&mut self) -> Option<DeTable<'t>> {
        let mut table = DeTable::new();
        self.at += 1;
        while self.next_byte()? != b'}' {
            let start = self.at;
            let name = self.string()?.into();
            let name = Spanned::new(start..self.at, name);
            self.pass(b':')?;
            if let Some(value) = self.value()? {
                table.insert(name, value);
            }
            if self.next_byte()? == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Some(table)
    }

    fn array(&mut self) -> Option<DeArray<'t>> {
        let mut all = DeArray::default();
        self.at += 1;
        while self.next_byte()? != b']' {
            if let Some(value) = self.value()? {
                all.push(value);
            }
            if self.next_byte()? == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Some(all)
    }

    fn string(&mut self) -> Option<String> {
        let rest = &self.text[self.at..];
        let mut is_escaped = false;
        let end = rest.bytes().skip(1).position(|byte| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        })?;
        let quoted = &rest[..end + 2];
        self.at += quoted.len();
        serde_json::from_str(quoted).ok()
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Option<Option<DeValue<'t>>> {
        let rest = &self.text[self.at..];
        let is_end = |byte: u8| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
        let length = rest.bytes().position(is_end).unwrap_or(rest.len());
        self.at += length;
        match &rest[..length] {
            "null" => Some(None),
            word => Some(Some(DeValue::parse(word).ok()?.into_inner())),
        }
    }

    fn pass(&mut self, byte: u8) -> Option<()> {
        (self.next_byte()? == byte).then(|| self.at += 1)
    }

    /// Skips white space and returns the byte after it.
    fn next_byte(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
        self.at += blank.count();
        self.text.as_bytes().get(self.at).copied()
    }
}

/// As deep as the reader of JSON permits for values that it keeps.
const DEPTH_MAX: usize = 128;
