//! Names and their text form.

use crate::stubs::naming::cos_naming::NameComponent;
use rtorb::url;

/// A name: its steps from a context.
pub type Name = Vec<NameComponent>;

/// Parses a stringified name, `id.kind/id.kind` (CosNaming, "Stringified Names").
///
/// # Errors
/// If the text is not a name.
pub fn parse_name(text: &str) -> Result<Name, url::UrlError> {
    let parsed = url::parse_name(text)?.into_iter();
    Ok(parsed
        .map(|url::NameComponent { id, kind }| NameComponent { id, kind })
        .collect())
}

/// The stringified form of a name; empty for the context itself.
pub fn format_name(name: &[NameComponent]) -> String {
    let component = |NameComponent { id, kind }: &NameComponent| url::NameComponent {
        id: id.clone(),
        kind: kind.clone(),
    };
    url::format_name(&name.iter().map(component).collect::<Vec<_>>())
}

/// Escapes some characters of a text as in a URL: `%E6%B8%A9`. The text of a name with such escapes may go into a `corbaname:`.
#[must_use]
pub fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if !is_escaped(character) {
            escaped.push(character);
            continue;
        }
        let mut room = [0; 4];
        for byte in character.encode_utf8(&mut room).bytes() {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}
