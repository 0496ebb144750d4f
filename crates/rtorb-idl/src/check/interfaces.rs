//! Interfaces: inheritance and contents.

use std::collections::HashMap;

use crate::ast::{InterfaceDcl, Name, Preamble, ScopedName};
use crate::diagnostic::Diagnostic;
use crate::tree::{Interface, InterfaceFlavour, ItemId, ItemKind};

use super::Checker;
use super::scopes::{Entity, ScopeId, Symbol};

impl Checker<'_> {
    pub(super) fn interface(&mut self, preamble: &Preamble, declared: &InterfaceDcl) {
        self.check_flavour(declared);
        let Some(body) = &declared.body else {
            if let Some(id) = self.forward(preamble, &declared.name, "interface") {
                self.keep_flavour(id, declared.flavour);
            }
            return;
        };
        let flavour = declared.flavour;
        let kind = ItemKind::Interface(Interface {
            flavour,
            ..Interface::default()
        });
        let id = self.begin_definition(preamble, &declared.name, "interface", kind);
        let mut bases = Vec::new();
        if let Some(id) = id {
            self.keep_flavour(id, flavour);
            bases = self.bases(id, declared);
        }
        let stated = self.interface_requirements(preamble, flavour);
        let mut calls = self.within(id, |checker| {
            checker.inherit(&declared.name, &bases);
            checker.exports(body)
        });
        self.apply_requirements(stated, preamble, &mut calls);
        let interface = Interface {
            flavour,
            bases,
            operations: calls.operations,
            attributes: calls.attributes,
        };
        self.end_definition(id, ItemKind::Interface(interface));
    }

    /// Checks that all declarations of an interface have the same modifiers (7.6.4).
    fn check_flavour(&mut self, declared: &InterfaceDcl) {
        let Some(id) = self.declared_here(&declared.name) else {
            return;
        };
        let known = match &self.tree.item(id).kind {
            ItemKind::Interface(interface) => interface.flavour,
            ItemKind::Undefined { what: "interface" } => self.facts[id.0 as usize].flavour,
            _ => return,
        };
        if known != declared.flavour {
            let name = &declared.name.text;
            let diagnostic = Diagnostic::error(format!(
                "the declarations of `{name}` have different modifiers"
            ))
            .at(declared.name.location, keywords_of(declared.flavour))
            .at(self.tree.item(id).location, keywords_of(known))
            .help("write the same modifier at every declaration");
            self.diagnostics.push(diagnostic);
        }
    }

    fn keep_flavour(&mut self, id: ItemId, flavour: InterfaceFlavour) {
        let facts = self.facts(id);
        facts.flavour = flavour;
        facts.local = flavour == InterfaceFlavour::Local;
    }

    fn bases(&mut self, id: ItemId, declared: &InterfaceDcl) -> Vec<ItemId> {
        let mut bases: Vec<ItemId> = Vec::new();
        for name in &declared.bases {
            let Some(base) = self.base(name, declared.flavour) else {
                continue;
            };
            if bases.contains(&base) {
                let message = format!("`{name}` is inherited twice");
                self.error(name.location(), message, "named again here");
                continue;
            }
            self.add_base(id, base, name, &mut bases);
        }
        bases
    }

    /// Adds `base`, which is called `name`, to the bases of `id`.
    pub(super) fn add_base(
        &mut self,
        id: ItemId,
        base: ItemId,
        name: &ScopedName,
        bases: &mut Vec<ItemId>,
    ) {
        let generation = self.facts(base).generation + 1;
        if generation > GENERATIONS_MAX {
            let message =
                format!("more than {GENERATIONS_MAX} declarations inherit from each other");
            self.error(name.location(), message, "one too many");
            return;
        }
        self.facts(id).generation = self.facts(id).generation.max(generation);
        bases.push(base);
    }

    /// Looks up a base for an interface of this flavour (7.6.5 and 7.6.6); `None` after a reported error or a warning.
    fn base(&mut self, name: &ScopedName, flavour: InterfaceFlavour) -> Option<ItemId> {
        let entity = self.lookup(name)?;
        let id = self.behind_aliases(entity);
        let found = id.map(|id| (id, &self.tree.item(id).kind));
        let (id, base) = match found {
            Some((id, ItemKind::Interface(_))) if self.facts[id.0 as usize].open => {
                self.refuse_base(
                    name,
                    id,
                    "inherits from itself",
                    "its definition is still open here",
                );
                return None;
            }
            Some((id, ItemKind::Interface(interface))) => (id, interface.flavour),
            Some((id, ItemKind::Undefined { what: "interface" })) => {
                self.refuse_base(name, id, "is not defined yet", "only declared here");
                return None;
            }
            _ if self.is_template_instance(entity) => {
                let diagnostic = Diagnostic::warning(format!("`{name}` is ignored as a base")).at(
                    name.location(),
                    "the contents of an instance of a template module are not known",
                );
                self.diagnostics.push(diagnostic);
                return None;
            }
            _ => {
                self.unfit(
                    name,
                    entity,
                    "cannot be the base of an interface",
                    "an interface",
                );
                return None;
            }
        };
        let why = match (flavour, base) {
            (InterfaceFlavour::Abstract, InterfaceFlavour::Plain | InterfaceFlavour::Local) => {
                "is not abstract: an abstract interface cannot inherit from it"
            }
            (InterfaceFlavour::Plain, InterfaceFlavour::Local) => {
                "is local: only a local interface can inherit from it"
            }
            _ => return Some(id),
        };
        self.refuse_base(name, id, why, "declared here");
        None
    }

    /// Reports that `name` has a `problem`: it refers to `entity`, but `wanted` is needed.
    pub(super) fn unfit(&mut self, name: &ScopedName, entity: Entity, problem: &str, wanted: &str) {
        let message = format!("`{name}` {problem}");
        let label = format!("expected {wanted}, this is {}", self.describe(entity));
        self.error(name.location(), message, label);
    }

    pub(super) fn refuse_base(&mut self, name: &ScopedName, id: ItemId, why: &str, there: &str) {
        let diagnostic = Diagnostic::error(format!("`{name}` {why}"))
            .at(name.location(), "cannot be a base here")
            .at(self.tree.item(id).location, there);
        self.diagnostics.push(diagnostic);
    }

    /// Makes the names of `bases` visible in the current scope. Rejects operations that two of them declare.
    pub(super) fn inherit(&mut self, name: &Name, bases: &[ItemId]) {
        let scopes: Vec<ScopeId> = bases
            .iter()
            .filter_map(|base| self.facts[base.0 as usize].scope)
            .collect();
        let mut known: HashMap<String, Symbol> = HashMap::new();
        let mut clashes = Vec::new();
        if scopes.len() > 1 {
            for &scope in &scopes {
                for symbol in self.callables(scope) {
                    let key = symbol.name.to_lowercase();
                    match known.get(&key) {
                        Some(first) if first.entity != symbol.entity => {
                            clashes.push((first.clone(), symbol))
                        }
                        Some(_) => {}
                        None => {
                            known.insert(key, symbol);
                        }
                    }
                }
            }
        }
        clashes.sort_by_key(|(_, symbol)| symbol.location);
        for (first, second) in clashes {
            let message = format!(
                "`{}` inherits two different operations `{}`",
                name.text, second.name
            );
            let diagnostic = Diagnostic::error(message)
                .at(name.location, "inherits both")
                .at(first.location, "one is declared here")
                .at(second.location, "the other one here")
                .note("IDL has no overloading: each operation and attribute of an interface needs a name of its own");
            self.diagnostics.push(diagnostic);
        }
        self.scopes[self.current].bases = scopes;
    }
}

/// The most declarations that may inherit from each other. Code that reads the tree visits them by recursion.
const GENERATIONS_MAX: u32 = 200;

fn keywords_of(flavour: InterfaceFlavour) -> &'static str {
    match flavour {
        InterfaceFlavour::Plain => "plain `interface` here",
        InterfaceFlavour::Abstract => "`abstract interface` here",
        InterfaceFlavour::Local => "`local interface` here",
    }
}
