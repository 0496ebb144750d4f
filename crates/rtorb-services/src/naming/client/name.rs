//! Names and their text form.

use crate::stubs::naming::cos_naming::NameComponent;
use rtorb::url;

/// A name as the naming service has it: from a context, step by step.
pub type Name = Vec<NameComponent>;

/// Reads a stringified name, `id.kind/id.kind` (CosNaming, "Stringified Names").
///
/// # Errors
/// What is wrong with it.
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
