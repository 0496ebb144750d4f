//! Reads the text of a type: IDL's syntax of types, with array dimensions behind it.

use rtorb::type_code::TypeCode;

use super::Types;
use super::of_tree::value_base;

/// The error in the text of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// An unknown type.
    #[error("there is no type `{name}`{}", suggestion.as_ref().map(|it| format!(" (did you mean `{it}`?)")).unwrap_or_default())]
    Unknown {
        /// The name.
        name: String,
        /// A known name that is similar.
        suggestion: Option<String>,
    },
    /// Something else is expected at a place.
    #[error("{expected} is expected {}", if found.is_empty() { "at the end".to_owned() } else { format!("at `{found}`") })]
    Expected {
        /// The expected text.
        expected: &'static str,
        /// The text there.
        found: String,
    },
    /// Types are nested too deep.
    #[error("types are nested more than {DEPTH_MAX} deep")]
    TooDeep,
}

/// The type that a text names.
pub(super) fn parse(types: &Types, text: &str) -> Result<TypeCode, TypeError> {
    let mut rest = Rest {
        types,
        text,
        depth: 0,
    };
    let type_code = rest.type_code()?;
    if rest.peek().is_empty() {
        Ok(type_code)
    } else {
        Err(rest.expected("the end of the type"))
    }
}

/// The text that is not read yet.
struct Rest<'t> {
    types: &'t Types,
    text: &'t str,
    depth: usize,
}

impl<'t> Rest<'t> {
    fn type_code(&mut self) -> Result<TypeCode, TypeError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(TypeError::TooDeep);
        }
        let element = self.element()?;
        let mut lengths = Vec::new();
        while self.take("[") {
            lengths.push(self.size()?);
            self.expect("]", "`]`")?;
            if lengths.len() > DEPTH_MAX {
                return Err(TypeError::TooDeep);
            }
        }
        self.depth -= 1;
        let nest = |element, length: &u32| TypeCode::array(element, *length);
        Ok(lengths.iter().rev().fold(element, nest))
    }

    fn element(&mut self) -> Result<TypeCode, TypeError> {
        if self.peek().starts_with("IDL:") || self.peek().starts_with("RMI:") {
            return self.identified();
        }
        let word = self.name();
        match word {
            "" => Err(self.expected("a type")),
            "string" => Ok(TypeCode::string(self.bound()?)),
            "wstring" => Ok(TypeCode::wstring(self.bound()?)),
            "sequence" => {
                self.expect("<", "`<`")?;
                let element = self.type_code()?;
                let bound = if self.take(",") { self.size()? } else { 0 };
                self.expect(">", "`>`")?;
                Ok(TypeCode::sequence(element, bound))
            }
            "fixed" => self.fixed(),
            "unsigned" | "long" => self.integer(word),
            _ => match PLAIN.iter().find(|(name, _)| *name == word) {
                Some((_, type_code)) => Ok(type_code.clone()),
                None => self.named(word),
            },
        }
    }

    fn fixed(&mut self) -> Result<TypeCode, TypeError> {
        self.expect("<", "`<`")?;
        let digits = self.number()?;
        self.expect(",", "`,`")?;
        let scale = self.number()?;
        if !(1..=31).contains(&digits) || scale > digits {
            return Err(self.expected("1 to 31 digits, and no more of them behind the point,"));
        }
        self.expect(">", "`>`")?;
        // Both are at most 31.
        Ok(TypeCode::fixed(digits as u16, scale as i16))
    }

    /// The types of several words.
    fn integer(&mut self, first: &str) -> Result<TypeCode, TypeError> {
        if first == "unsigned" {
            return match self.name() {
                "short" => Ok(TypeCode::USHORT),
                "long" if self.take_word("long") => Ok(TypeCode::ULONG_LONG),
                "long" => Ok(TypeCode::ULONG),
                _ => Err(self.expected("`short` or `long` behind `unsigned`")),
            };
        }
        Ok(if self.take_word("long") {
            TypeCode::LONG_LONG
        } else if self.take_word("double") {
            TypeCode::LONG_DOUBLE
        } else {
            TypeCode::LONG
        })
    }

    fn named(&self, name: &str) -> Result<TypeCode, TypeError> {
        let id = self.types.id_of(name);
        let found = id.and_then(|id| self.types.by_id(id));
        found.cloned().ok_or_else(|| TypeError::Unknown {
            name: name.to_owned(),
            suggestion: self.types.suggestion(name).map(str::to_owned),
        })
    }

    /// A repository id, which ends before a character of the syntax around it.
    fn identified(&mut self) -> Result<TypeCode, TypeError> {
        let text = self.peek();
        let end = text.find([',', '>', '[', ']', ' ']).unwrap_or(text.len());
        let (id, rest) = text.split_at(end);
        self.text = rest;
        let found = self.types.by_id(id);
        found.cloned().ok_or_else(|| TypeError::Unknown {
            name: id.to_owned(),
            suggestion: None,
        })
    }

    fn bound(&mut self) -> Result<u32, TypeError> {
        if !self.take("<") {
            return Ok(0);
        }
        let bound = self.size()?;
        self.expect(">", "`>`")?;
        Ok(bound)
    }

    /// A bound or the length of an array. Neither is 0, as in IDL.
    fn size(&mut self) -> Result<u32, TypeError> {
        let before = self.text;
        match self.number()? {
            0 => {
                self.text = before;
                Err(self.expected("a number that is not 0"))
            }
            size => Ok(size),
        }
    }

    fn number(&mut self) -> Result<u32, TypeError> {
        let text = self.peek();
        let end = text
            .find(|it: char| !it.is_ascii_digit())
            .unwrap_or(text.len());
        let (digits, rest) = text.split_at(end);
        match digits.parse() {
            Ok(number) => {
                self.text = rest;
                Ok(number)
            }
            Err(_) => Err(self.expected("a number up to 4294967295")),
        }
    }

    /// An identifier with its scopes; empty if there is none.
    fn name(&mut self) -> &'t str {
        let text = self.peek();
        let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == ':';
        let end = text.find(|it| !is_part(it)).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        self.text = rest;
        name
    }

    fn take_word(&mut self, word: &str) -> bool {
        let before = self.text;
        let found = self.name() == word;
        if !found {
            self.text = before;
        }
        found
    }

    fn take(&mut self, symbol: &str) -> bool {
        let rest = self.peek().strip_prefix(symbol);
        rest.map(|rest| self.text = rest).is_some()
    }

    fn expect(&mut self, symbol: &str, expected: &'static str) -> Result<(), TypeError> {
        if self.take(symbol) {
            return Ok(());
        }
        Err(self.expected(expected))
    }

    fn peek(&mut self) -> &'t str {
        self.text = self.text.trim_start();
        self.text
    }

    fn expected(&mut self, expected: &'static str) -> TypeError {
        let found = self.peek().chars().take(SHOWN_MAX).collect();
        TypeError::Expected { expected, found }
    }
}

/// The types of one word.
static PLAIN: std::sync::LazyLock<[(&str, TypeCode); 22]> = std::sync::LazyLock::new(|| {
    [
        ("null", TypeCode::NULL),
        ("void", TypeCode::VOID),
        ("short", TypeCode::SHORT),
        ("float", TypeCode::FLOAT),
        ("double", TypeCode::DOUBLE),
        ("boolean", TypeCode::BOOLEAN),
        ("char", TypeCode::CHAR),
        ("wchar", TypeCode::WCHAR),
        ("octet", TypeCode::OCTET),
        ("any", TypeCode::ANY),
        ("TypeCode", TypeCode::TYPE_CODE),
        ("CORBA::TypeCode", TypeCode::TYPE_CODE),
        (
            "Object",
            TypeCode::object_reference(crate::interface::OBJECT, "Object"),
        ),
        ("ValueBase", value_base()),
        // A TypeCode has no integers of 8 bits.
        ("int8", TypeCode::OCTET),
        ("uint8", TypeCode::OCTET),
        ("int16", TypeCode::SHORT),
        ("int32", TypeCode::LONG),
        ("int64", TypeCode::LONG_LONG),
        ("uint16", TypeCode::USHORT),
        ("uint32", TypeCode::ULONG),
        ("uint64", TypeCode::ULONG_LONG),
    ]
});

/// The most levels of types: values with more cannot be decoded.
const DEPTH_MAX: usize = 64;
/// The most characters of the text that a message shows.
const SHOWN_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_types_are_read_and_written_alike() {
        let types = Types::standard();
        for text in [
            "long",
            "unsigned long long",
            "long double",
            "string<8>",
            "wstring",
            "sequence<string<3>, 4>[2][3]",
            "sequence<sequence<octet>>",
            "fixed<10, 2>",
            "CosNaming::Name",
            "sequence<CosNaming::NameComponent, 7>",
            "Object",
            "TypeCode",
            "Many[5]",
        ] {
            let read = types
                .parse(text)
                .unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(types.text(&read), text);
        }
        let by_id = types
            .parse("sequence<IDL:omg.org/CosNaming/Name:1.0>")
            .unwrap();
        assert_eq!(types.text(&by_id), "sequence<CosNaming::Name>");
        for small in ["int8", "uint8"] {
            assert_eq!(types.parse(small), Ok(TypeCode::OCTET));
        }
        let short = types.parse("NameComponent").unwrap();
        assert_eq!(types.text(&short), "CosNaming::NameComponent");
    }

    #[test]
    fn wrong_texts_are_told_where_and_why() {
        let types = Types::standard();
        let told = |text: &str| types.parse(text).expect_err(text).to_string();
        assert_eq!(
            told("CosNaming::NameComponet"),
            "there is no type `CosNaming::NameComponet` (did you mean `CosNaming::NameComponent`?)"
        );
        assert_eq!(told(""), "a type is expected at the end");
        assert_eq!(told("sequence<long"), "`>` is expected at the end");
        assert_eq!(told("long x"), "the end of the type is expected at `x`");
        assert_eq!(
            told("string<99999999999>"),
            "a number up to 4294967295 is expected at `99999999999>`"
        );
        for zero in ["string<0>", "wstring<0>", "sequence<long, 0>", "long[2][0]"] {
            assert!(told(zero).contains("not 0 is expected at `0"), "{zero}");
        }
        assert!(told("fixed<40, 2>").contains("31"));
        assert!(told(&"sequence<".repeat(1000)).contains("64"));
        assert!(told(&("long".to_owned() + &"[1]".repeat(1000))).contains("64"));
    }
}
