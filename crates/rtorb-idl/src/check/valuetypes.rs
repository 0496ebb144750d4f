//! Valuetypes, eventtypes and value boxes (CORBA 3.3 part 1, 7.9).

use crate::ast::{Definition, DefinitionKind, Name, Preamble, ScopedName, TypeSpec, ValuetypeDcl};
use crate::diagnostic::Diagnostic;
use crate::tree::{InterfaceFlavour, ItemId, ItemKind, StateMember, Valuetype};

use super::Checker;
use super::operations::Calls;
use super::scopes::Entity;

impl Checker<'_> {
    pub(super) fn valuetype(&mut self, preamble: &Preamble, declared: &ValuetypeDcl) {
        let Some(body) = &declared.body else {
            self.forward(preamble, &declared.name, "valuetype");
            return;
        };
        let kind = ItemKind::Valuetype(Valuetype::default());
        let id = self.begin_definition(preamble, &declared.name, "valuetype", kind);
        let (mut bases, mut supports) = (Vec::new(), Vec::new());
        if let Some(id) = id {
            bases = self.value_bases(id, declared);
            supports = self.supports(&declared.supports);
            self.check_truncatable(declared, &bases);
        }
        let (state, calls) = self.within(id, |checker| {
            checker.inherit(&declared.name, &[bases.as_slice(), &supports].concat());
            checker.value_body(body, declared)
        });
        let valuetype = Valuetype {
            is_abstract: declared.is_abstract,
            is_custom: declared.is_custom,
            is_truncatable: declared.truncatable.is_some(),
            is_event: declared.is_event,
            bases,
            supports,
            state,
            operations: calls.operations,
            attributes: calls.attributes,
            factories: calls.factories,
        };
        self.end_definition(id, ItemKind::Valuetype(valuetype));
    }

    fn value_body(
        &mut self,
        body: &[Definition],
        declared: &ValuetypeDcl,
    ) -> (Vec<StateMember>, Calls) {
        let mut state = Vec::new();
        let mut calls = Calls::default();
        for definition in body {
            let location = match &definition.declared {
                DefinitionKind::State { public, members } => {
                    let found = self.declared_members(&definition.preamble, members);
                    if found.first().is_some_and(|first| self.is_local(&first.ty)) {
                        let message = "the state of a valuetype should not be local";
                        let label = "accepted, though a local object cannot leave its process";
                        let warning = Diagnostic::warning(message).at(members.ty.location, label);
                        self.diagnostics.push(warning);
                    }
                    state.extend(found.into_iter().map(|member| StateMember {
                        is_public: *public,
                        member,
                    }));
                    members
                        .declarators
                        .first()
                        .map(|declarator| declarator.name.location)
                }
                DefinitionKind::Factory(factory) => {
                    self.export(definition, &mut calls);
                    Some(factory.name.location)
                }
                _ => {
                    self.export(definition, &mut calls);
                    None
                }
            };
            if let Some(location) = location.filter(|_| declared.is_abstract) {
                let name = &declared.name.text;
                let message = format!("the abstract valuetype `{name}` has state or a factory");
                let label = "an abstract valuetype has only operations and attributes";
                self.error(location, message, label);
            }
        }
        (state, calls)
    }

    fn value_bases(&mut self, id: ItemId, declared: &ValuetypeDcl) -> Vec<ItemId> {
        let mut bases: Vec<ItemId> = Vec::new();
        for (at, name) in declared.bases.iter().enumerate() {
            let Some(base) = self.value_base(name) else {
                continue;
            };
            let base_is_abstract = self.is_abstract_value(base);
            let problem = if bases.contains(&base) {
                "is inherited twice"
            } else if declared.is_abstract && !base_is_abstract {
                "is not abstract: an abstract valuetype cannot inherit from it"
            } else if !base_is_abstract && at > 0 {
                "is not abstract: it must stand first among the bases, and alone"
            } else {
                self.add_base(id, base, name, &mut bases);
                continue;
            };
            self.refuse_base(name, base, problem, "declared here");
        }
        bases
    }

    fn is_abstract_value(&self, id: ItemId) -> bool {
        matches!(&self.tree.item(id).kind, ItemKind::Valuetype(valuetype) if valuetype.is_abstract)
    }

    fn value_base(&mut self, name: &ScopedName) -> Option<ItemId> {
        let entity = self.lookup(name)?;
        let id = self.behind_aliases(entity);
        let what = self.describe(entity);
        match id.map(|id| (id, &self.tree.item(id).kind)) {
            Some((id, ItemKind::Valuetype(_))) if self.facts[id.0 as usize].open => {
                self.refuse_base(name, id, "inherits from itself", "declared here");
                None
            }
            Some((id, ItemKind::Valuetype(_))) => Some(id),
            Some((id, ItemKind::Undefined { what: "valuetype" })) => {
                self.refuse_base(name, id, "is not defined yet", "declared here");
                None
            }
            _ => {
                let message = format!("`{name}` cannot be the base of a valuetype");
                let label = format!("expected a valuetype, this is {what}");
                let mut diagnostic = Diagnostic::error(message).at(name.location(), label);
                if let Some(ItemKind::Interface(_)) = id.map(|id| &self.tree.item(id).kind) {
                    diagnostic = diagnostic.help(format!("write `supports {name}`"));
                }
                self.diagnostics.push(diagnostic);
                None
            }
        }
    }

    fn check_truncatable(&mut self, declared: &ValuetypeDcl, bases: &[ItemId]) {
        let Some(location) = declared.truncatable else {
            return;
        };
        let why = if declared.is_custom {
            "a custom valuetype cannot be truncated"
        } else if declared.is_abstract {
            "an abstract valuetype has no state that could be truncated"
        } else if bases
            .first()
            .is_some_and(|&base| self.is_abstract_value(base))
        {
            "there is no state to truncate to: the base is abstract"
        } else {
            return;
        };
        self.error(location, "`truncatable` cannot stand here", why);
    }

    /// The interfaces of a `supports` clause. Reports more than one that is not abstract (7.9.1).
    pub(super) fn supports(&mut self, names: &[ScopedName]) -> Vec<ItemId> {
        let mut supported = Vec::new();
        let mut concrete: Option<&ScopedName> = None;
        for name in names {
            let Some(entity) = self.lookup(name) else {
                continue;
            };
            let id = self.behind_aliases(entity);
            match id.map(|id| (id, &self.tree.item(id).kind)) {
                Some((id, ItemKind::Interface(interface))) => {
                    if interface.flavour != InterfaceFlavour::Abstract
                        && let Some(first) = concrete.replace(name)
                    {
                        let diagnostic = Diagnostic::error(
                            "a valuetype supports at most one interface that is not abstract",
                        )
                        .at(name.location(), "the second one")
                        .at(first.location(), "the first one");
                        self.diagnostics.push(diagnostic);
                    }
                    supported.push(id);
                }
                _ => self.unfit(name, entity, "cannot be supported", "a defined interface"),
            }
        }
        supported
    }

    pub(super) fn value_box(&mut self, preamble: &Preamble, name: &Name, spec: &TypeSpec) {
        let Some(ty) = self.type_of(spec) else {
            self.declare(name, Entity::Other("a value box"));
            return;
        };
        let boxed_value = self.item_of(&ty).is_some_and(|id| {
            matches!(
                self.tree.item(id).kind,
                ItemKind::Valuetype(_)
                    | ItemKind::ValueBox { .. }
                    | ItemKind::Undefined { what: "valuetype" }
            )
        });
        if boxed_value {
            let diagnostic = Diagnostic::error("a valuetype cannot be boxed")
                .at(spec.location, "it is a value already")
                .help(format!(
                    "to derive from it, write `valuetype {} : ... {{ }};`",
                    name.text
                ));
            self.diagnostics.push(diagnostic);
        }
        let local = self.is_local(&ty);
        if let Some(id) = self.declare_item(preamble, name, ItemKind::ValueBox { ty }) {
            self.facts(id).local = local;
        }
    }
}
