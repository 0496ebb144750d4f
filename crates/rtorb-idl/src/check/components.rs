//! Components, homes, port types and connectors: only their names are checked.

use crate::ast::{ComponentDcl, Definition, DefinitionKind, Preamble};
use crate::tree::ItemKind;

use super::Checker;
use super::operations::Calls;
use super::scopes::Entity;

impl Checker<'_> {
    pub(super) fn component(&mut self, preamble: &Preamble, declared: &ComponentDcl) {
        let Some(body) = &declared.body else {
            self.forward(preamble, &declared.name, declared.what);
            return;
        };
        let base = declared.base.as_ref().and_then(|base| self.lookup(base));
        let supports = self.supports(&declared.supports);
        for other in &declared.others {
            self.lookup(other);
        }
        let what = declared.what;
        let kind = ItemKind::Other { what };
        let id = self.begin_definition(preamble, &declared.name, what, kind);
        let base = base.and_then(|base| self.behind_aliases(base));
        let inherited: Vec<_> = base
            .into_iter()
            .chain(supports)
            .filter(|&base| id.is_some_and(|id| base != id))
            .collect();
        self.within(id, |checker| {
            checker.inherit(&declared.name, &inherited);
            checker.component_body(body);
        });
        self.end_definition(id, ItemKind::Other { what });
    }

    fn component_body(&mut self, body: &[Definition]) {
        let mut calls = Calls::default();
        for definition in body {
            if let DefinitionKind::Port(port) = &definition.declared {
                self.type_of(&port.ty);
                self.declare(&port.name, Entity::Other("a port"));
            } else {
                self.export(definition, &mut calls);
            }
        }
    }
}
