//! Conversion and checks of names.

use super::client::escape;
use super::config::NamingConfig;
use super::exception::NamingException;
use crate::stubs::naming::cos_naming::{self, Binding, naming_context::InvalidName};
use rtorb::cdr::CharCodeSet;
use rtorb::exception::local;
use rtorb::url::{self, NameComponent};

/// Checks the bounds of a name.
pub(super) fn checked(
    name: Vec<NameComponent>,
    config: &NamingConfig,
) -> Result<Vec<NameComponent>, NamingException> {
    if name.is_empty() {
        return Err(NamingException::InvalidName(InvalidName));
    }
    let bytes_max = config.component_bytes_max;
    let is_long = |part: &NameComponent| part.id.len() > bytes_max || part.kind.len() > bytes_max;
    if name.len() > config.name_components_max || name.iter().any(is_long) {
        return Err(local::NAME_TOO_LONG.into());
    }
    Ok(name)
}

/// A name of a request.
pub(super) fn from_wire(name: &[cos_naming::NameComponent]) -> Vec<NameComponent> {
    let component = |component: &cos_naming::NameComponent| NameComponent {
        id: component.id.clone(),
        kind: component.kind.clone(),
    };
    name.iter().map(component).collect()
}

/// A name for a reply.
pub(super) fn to_wire(name: &[NameComponent]) -> Vec<cos_naming::NameComponent> {
    let component = |component: &NameComponent| cos_naming::NameComponent {
        id: component.id.clone(),
        kind: component.kind.clone(),
    };
    name.iter().map(component).collect()
}

/// Parses a stringified name.
pub(super) fn parse(text: &str) -> Result<Vec<NameComponent>, InvalidName> {
    url::parse_name(text).map_err(|_| InvalidName)
}

/// Escapes the characters of listed names that the code set of the client's connection lacks, as in a URL: one such name must not
/// hide all others. A text with such characters has its `%` escaped too, so that `corbaname:` takes it.
pub(super) fn escape_unsendable(listed: &mut [Binding], code_set: CharCodeSet) {
    let is_unsendable = |character| !code_set.has(character);
    let components = listed.iter_mut().flat_map(|it| &mut it.binding_name);
    for text in components.flat_map(|it| [&mut it.id, &mut it.kind]) {
        if text.chars().any(is_unsendable) {
            *text = escape(text, |character| {
                character == '%' || is_unsendable(character)
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stubs::naming::cos_naming::BindingType;

    #[test]
    fn only_what_a_code_set_lacks_is_escaped() {
        let listed = |id: &str| {
            let component = cos_naming::NameComponent {
                id: id.to_owned(),
                kind: "K\u{fc}hlung".to_owned(),
            };
            [Binding {
                binding_name: vec![component],
                binding_type: BindingType::Nobject,
            }]
        };
        let mut latin = listed("a\u{6e29}\u{e9}");
        escape_unsendable(&mut latin, CharCodeSet::Latin1);
        assert_eq!(latin, listed("a%E6%B8%A9\u{e9}"));
        let mut euro = listed("\u{20ac}\u{a4}");
        escape_unsendable(&mut euro, CharCodeSet::Latin9);
        assert_eq!(euro, listed("\u{20ac}%C2%A4"));
        let mut percent = listed("100%\u{6e29}");
        escape_unsendable(&mut percent, CharCodeSet::Latin1);
        assert_eq!(percent, listed("100%25%E6%B8%A9"));
        let mut utf = listed("\u{6e29}");
        escape_unsendable(&mut utf, CharCodeSet::Utf8);
        assert_eq!(utf, listed("\u{6e29}"));
    }
}
