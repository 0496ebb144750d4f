//! Conversion and checks of names.

use super::config::NamingConfig;
use super::exception::NamingException;
use crate::stubs::naming::cos_naming::{self, naming_context::InvalidName};
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
    let octets_max = config.component_octets_max;
    let is_long = |part: &NameComponent| part.id.len() > octets_max || part.kind.len() > octets_max;
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
