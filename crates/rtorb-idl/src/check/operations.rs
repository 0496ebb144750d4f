//! Operations and attributes (CORBA 3.3 part 1, 7.13 and 7.14).

use crate::ast::{
    self, AttributeDcl, Definition, DefinitionKind, OperationDcl, Preamble, ScopedName,
};
use crate::diagnostic::Diagnostic;
use crate::source::Location;
use crate::tree::{
    Attribute, Direction, InterfaceFlavour, Item, ItemId, ItemKind, Operation, Parameter, Timing,
    Type,
};

use super::Checker;
use super::annotations::ONEWAY;
use super::scopes::{Entity, ScopeKind};
use super::types::RESULT;

/// The operations, attributes and factories of an interface, valuetype or home.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) operations: Vec<Operation>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) factories: Vec<Operation>,
}

impl Checker<'_> {
    /// Declares the types of the current scope, and returns its operations and attributes.
    pub(super) fn exports(&mut self, body: &[Definition]) -> Calls {
        let mut calls = Calls::default();
        for definition in body {
            self.export(definition, &mut calls);
        }
        calls
    }

    pub(super) fn export(&mut self, definition: &Definition, calls: &mut Calls) {
        let preamble = &definition.preamble;
        match &definition.declared {
            DefinitionKind::Operation(operation) => {
                let timing = self.timing(&preamble.annotations);
                let entity = Entity::Operation(self.current);
                let checked = self.operation(preamble, operation, entity);
                calls.operations.extend(checked.map(|operation| Operation {
                    timing,
                    ..operation
                }));
            }
            DefinitionKind::Factory(factory) => {
                let checked = self.operation(preamble, factory, Entity::Other("a factory"));
                calls.factories.extend(checked);
            }
            DefinitionKind::Attribute(attribute) => {
                let checked = self.attribute(preamble, attribute);
                calls.attributes.extend(checked);
            }
            _ => self.definition(definition),
        }
    }

    fn operation(
        &mut self,
        preamble: &Preamble,
        declared: &OperationDcl,
        entity: Entity,
    ) -> Option<Operation> {
        let returns = self.declared_type(&declared.returns, RESULT);
        self.check_named(&declared.returns, RESULT, declared.name.location);
        self.declare(&declared.name, entity);
        // An operation is a scope: exceptions are looked up among its parameters first (7.20.1).
        let scope = self.new_scope(ScopeKind::Closed, None);
        let (parameters, raises) = self.enter(scope, |checker| {
            let parameters = checker.parameters(&declared.parameters);
            (parameters, checker.raises(&declared.raises))
        });
        let annotated = self.is_annotated(&preamble.annotations, ONEWAY);
        let oneway = declared.oneway.or(annotated);
        if let Some(oneway) = oneway {
            self.check_oneway(oneway, declared, returns.as_ref());
        }
        if matches!(entity, Entity::Other(_)) {
            self.check_factory(declared);
        }
        Some(Operation {
            name: declared.name.text.clone(),
            location: declared.name.location,
            documentation: preamble.documentation.clone(),
            annotations: preamble.annotations.clone(),
            timing: Timing::default(),
            oneway: oneway.is_some(),
            returns: returns?,
            parameters: parameters?,
            raises,
            context: declared.context.clone(),
        })
    }

    fn parameters(&mut self, declared: &[ast::ParameterDcl]) -> Option<Vec<Parameter>> {
        let mut parameters = Vec::with_capacity(declared.len());
        for parameter in declared {
            let ty = self.declared_type(&parameter.ty, "the parameter");
            self.check_named(&parameter.ty, "the parameter", parameter.name.location);
            self.declare(&parameter.name, Entity::Other("a parameter"));
            parameters.push(ty.map(|ty| Parameter {
                direction: parameter.direction,
                name: parameter.name.text.clone(),
                location: parameter.name.location,
                ty,
                annotations: parameter.preamble.annotations.clone(),
            }));
        }
        parameters.into_iter().collect()
    }

    /// Reports the parts of a oneway operation that need a reply, which it does not have (7.13.2).
    fn check_oneway(&mut self, oneway: Location, declared: &OperationDcl, returns: Option<&Type>) {
        let mut refuse = |what: &str, location, label| {
            let message = format!("the oneway operation `{}` {what}", declared.name.text);
            let diagnostic = Diagnostic::error(message)
                .at(location, label)
                .at(oneway, "a oneway operation has no reply");
            self.diagnostics.push(diagnostic);
        };
        if returns.is_some_and(|returns| *returns != Type::Void) {
            let location = declared.returns.location;
            refuse("returns a value", location, "must be `void`");
        }
        for parameter in &declared.parameters {
            if parameter.direction != Direction::In {
                let location = parameter.direction_location;
                refuse(
                    "has an `out` or `inout` parameter",
                    location,
                    "must be `in`",
                );
            }
        }
        if let (Some(first), Some(last)) = (declared.raises.first(), declared.raises.last()) {
            let location = first.location().to(last.location());
            refuse("raises exceptions", location, "leave `raises` out");
        }
    }

    fn check_factory(&mut self, declared: &OperationDcl) {
        for parameter in &declared.parameters {
            if parameter.direction != Direction::In {
                let message = "a factory takes only `in` parameters";
                self.error(parameter.direction_location, message, "must be `in`");
            }
        }
    }

    fn attribute(&mut self, preamble: &Preamble, declared: &AttributeDcl) -> Vec<Attribute> {
        let ty = self.declared_type(&declared.ty, "the attribute");
        if let Some(first) = declared.names.first() {
            self.check_named(&declared.ty, "the attribute", first.location);
        }
        let get_raises = self.raises(&declared.get_raises);
        let set_raises = self.raises(&declared.set_raises);
        for name in &declared.names {
            self.declare(name, Entity::Attribute(self.current));
        }
        let annotations = [preamble.annotations.clone(), declared.annotations.clone()].concat();
        let timing = self.timing(&annotations);
        let Some(ty) = ty else { return Vec::new() };
        let attribute = |name: &ast::Name| Attribute {
            name: name.text.clone(),
            location: name.location,
            documentation: preamble.documentation.clone(),
            annotations: annotations.clone(),
            timing,
            readonly: declared.readonly,
            ty: ty.clone(),
            get_raises: get_raises.clone(),
            set_raises: set_raises.clone(),
        };
        declared.names.iter().map(attribute).collect()
    }

    /// The exceptions of a `raises` clause.
    fn raises(&mut self, names: &[ScopedName]) -> Vec<ItemId> {
        let mut raised: Vec<ItemId> = Vec::new();
        for name in names {
            let Some(entity) = self.lookup(name) else {
                continue;
            };
            match entity {
                Entity::Item(id)
                    if matches!(
                        self.tree.item(id).kind,
                        ItemKind::Exception { .. } | ItemKind::Native
                    ) =>
                {
                    if raised.contains(&id) {
                        let diagnostic = Diagnostic::warning(format!("`{name}` is raised twice"))
                            .at(name.location(), "named again here");
                        self.diagnostics.push(diagnostic);
                    } else {
                        raised.push(id);
                    }
                }
                _ => self.unfit(name, entity, "cannot be raised", "an exception"),
            }
        }
        raised
    }

    /// Reports a local type in an interface that is not local (7.6.8).
    pub(super) fn check_local(&mut self, ty: &Type, location: Location, what: &str) {
        let Some(owner) = self.owner() else { return };
        let Item { name, kind, .. } = self.tree.item(owner);
        let is_plain = matches!(kind, ItemKind::Interface(interface) if interface.flavour == InterfaceFlavour::Plain);
        if is_plain && self.is_local(ty) {
            let diagnostic = Diagnostic::error(format!(
                "{what} is local, but the interface `{name}` is not"
            ))
            .at(location, "a local object cannot leave its process")
            .help(format!(
                "declare `local interface {name}` if its objects also never leave the process"
            ));
            self.diagnostics.push(diagnostic);
        }
    }

    /// The item that the current scope is in.
    pub(super) fn owner(&self) -> Option<ItemId> {
        self.enclosing().find_map(|scope| self.scopes[scope].item)
    }
}
