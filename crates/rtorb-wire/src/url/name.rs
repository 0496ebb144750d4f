//! Names of the naming service as text: `id.kind/id.kind` (CosNaming, "Stringified Names").

use super::UrlError;
use alloc::string::String;
use alloc::vec::Vec;

/// One step of a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NameComponent {
    /// Its identifier.
    pub id: String,
    /// Its kind.
    pub kind: String,
}

/// Parses a stringified name.
///
/// # Errors
/// When a component is empty, ends in a dot, or has two dots; or when a backslash precedes another character than `/`, `.`
/// and `\`.
pub fn parse_name(text: &str) -> Result<Vec<NameComponent>, UrlError> {
    let mut name = Vec::new();
    let mut reading = PartialComponent::default();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('/' | '.' | '\\')) => reading.push(escaped),
                _ => return Err(bad("a \\ before something that is not /, . or \\")),
            },
            '.' if reading.kind.is_some() => return Err(bad("two dots in a component of a name")),
            '.' => reading.kind = Some(String::new()),
            '/' => name.push(core::mem::take(&mut reading).finish()?),
            other => reading.push(other),
        }
    }
    name.push(reading.finish()?);
    Ok(name)
}

/// The stringified form of a name.
pub fn format_name(name: &[NameComponent]) -> String {
    let mut text = String::new();
    for (index, component) in name.iter().enumerate() {
        if index > 0 {
            text.push('/');
        }
        escape_into(&component.id, &mut text);
        // A single dot is the component with empty id and kind.
        if !component.kind.is_empty() || component.id.is_empty() {
            text.push('.');
            escape_into(&component.kind, &mut text);
        }
    }
    text
}

/// A component that is being parsed. Once its dot was read, it has a kind, which may be empty.
#[derive(Default)]
struct PartialComponent {
    id: String,
    kind: Option<String>,
}

impl PartialComponent {
    fn push(&mut self, character: char) {
        self.kind.as_mut().unwrap_or(&mut self.id).push(character);
    }

    fn finish(self) -> Result<NameComponent, UrlError> {
        let Self { id, kind } = self;
        match kind {
            None if id.is_empty() => Err(bad("an empty component in a name")),
            Some(kind) if kind.is_empty() && !id.is_empty() => {
                Err(bad("a component of a name that ends in a dot"))
            }
            kind => Ok(NameComponent {
                id,
                kind: kind.unwrap_or_default(),
            }),
        }
    }
}

fn escape_into(part: &str, text: &mut String) {
    for character in part.chars() {
        if matches!(character, '/' | '.' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
}

const fn bad(what: &'static str) -> UrlError {
    UrlError::SchemeSpecificPart(what)
}

#[cfg(test)]
mod tests {
    use super::{NameComponent, format_name, parse_name};

    fn component(id: &str, kind: &str) -> NameComponent {
        NameComponent {
            id: id.to_owned(),
            kind: kind.to_owned(),
        }
    }

    #[test]
    fn names_are_parsed_and_formatted() {
        for (text, name) in [
            ("a", vec![component("a", "")]),
            (
                "a/b.kind/c",
                vec![
                    component("a", ""),
                    component("b", "kind"),
                    component("c", ""),
                ],
            ),
            (".", vec![component("", "")]),
            (".kind", vec![component("", "kind")]),
            (
                "a/./b",
                vec![component("a", ""), component("", ""), component("b", "")],
            ),
            (r"a\.b.c\/d\\", vec![component("a.b", r"c/d\")]),
        ] {
            assert_eq!(parse_name(text), Ok(name.clone()), "{text}");
            assert_eq!(format_name(&name), text);
        }
    }

    #[test]
    fn wrong_names_are_refused() {
        for text in [
            "", "/", "a/", "/a", "a//b", "a.", "a./b", "a.b.c", r"a\b", r"a\",
        ] {
            assert!(parse_name(text).is_err(), "{text}");
        }
    }
}
