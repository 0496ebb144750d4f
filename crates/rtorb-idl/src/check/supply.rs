//! Names of module CORBA that a specification uses without declaring them.
//!
//! The standard requires `#include <orb.idl>`, but its contents differ from ORB to ORB: the files of one ORB fail with
//! the `orb.idl` of another. Missing declarations are taken, one at a time, from the built-in file.

use std::collections::HashMap;

use crate::ast::{ConstructedKind, Declarators, Definition, DefinitionKind, Name, Preamble};
use crate::source::Location;
use crate::tree::{ItemId, ItemKind};

use super::ids::Prefix;
use super::{Checker, GLOBAL};

/// The declarations in the modules of `definitions`, by name.
pub(super) fn by_name(definitions: &[Definition]) -> HashMap<&str, &Definition> {
    let mut found = HashMap::new();
    for definition in definitions {
        if let DefinitionKind::Module { body, .. } = &definition.declared {
            for inner in body {
                for name in names_of(&inner.declared) {
                    found.entry(name.text.as_str()).or_insert(inner);
                }
            }
        }
    }
    found
}

impl Checker<'_> {
    /// Declares `CORBA::name` if the built-in module has it; true if so.
    pub(super) fn supply(&mut self, name: &Name) -> bool {
        let (name, at) = (name.text.as_str(), name.location);
        let Some(definition) = self.orb.remove(name) else {
            return false;
        };
        self.check_supply_shared(name, at);
        self.orb
            .retain(|_, other| !std::ptr::eq(*other, definition));
        let outer = std::mem::replace(&mut self.current, GLOBAL);
        let outer_prefix = std::mem::replace(&mut self.prefix, Prefix::new("omg.org", GLOBAL));
        if let Some(module) = self.module_corba() {
            self.within(Some(module), |checker| {
                checker.prefix = Prefix::new("omg.org", GLOBAL);
                checker.definition(definition);
            });
        }
        self.current = outer;
        self.prefix = outer_prefix;
        true
    }

    /// The global module CORBA, created if it does not exist; `None` if another declaration has that name.
    fn module_corba(&mut self) -> Option<ItemId> {
        let name = Name {
            text: "CORBA".to_owned(),
            location: Location::default(),
        };
        match self.declared_here(&name) {
            Some(id) => self.is_module(id).then_some(id),
            None => {
                let id = self.declare_item(&Preamble::default(), &name, ItemKind::Module)?;
                self.within(Some(id), |_| {});
                Some(id)
            }
        }
    }
}

/// The names that a declaration declares. An enum also declares its enumerators.
fn names_of(kind: &DefinitionKind) -> Vec<&Name> {
    match kind {
        DefinitionKind::Interface(interface) => vec![&interface.name],
        DefinitionKind::Valuetype(valuetype) => vec![&valuetype.name],
        DefinitionKind::Typedef(Declarators { declarators, .. }) => declarators
            .iter()
            .map(|declarator| &declarator.name)
            .collect(),
        DefinitionKind::ValueBox { name, .. }
        | DefinitionKind::Exception { name, .. }
        | DefinitionKind::Constant { name, .. }
        | DefinitionKind::Native { name } => vec![name],
        DefinitionKind::Constructed(constructed) => match &constructed.kind {
            ConstructedKind::Enum { enumerators } => {
                let values = enumerators.iter().map(|enumerator| &enumerator.declared);
                std::iter::once(&constructed.name).chain(values).collect()
            }
            _ => vec![&constructed.name],
        },
        _ => Vec::new(),
    }
}
