//! Types as they are used, typedefs, and natives.

use crate::ast::{Declarator, Declarators, Expression, Name, Preamble, TypeKind, TypeSpec};
use crate::diagnostic::Diagnostic;
use crate::source::Location;
use crate::tree::{InterfaceFlavour, Item, ItemId, ItemKind, Type, Value};

use super::scopes::Entity;
use super::{Checker, Facts};

impl Checker<'_> {
    /// The type that `spec` names; `None` after a reported error.
    pub(super) fn type_of(&mut self, spec: &TypeSpec) -> Option<Type> {
        match &spec.kind {
            TypeKind::Basic(ty) => Some(ty.clone()),
            TypeKind::Text { wide, bound } => {
                let bound = self.optional_bound(bound.as_deref(), "string")?;
                Some(if *wide {
                    Type::WString { bound }
                } else {
                    Type::String { bound }
                })
            }
            TypeKind::Fixed(None) => {
                let diagnostic = Diagnostic::error("`fixed` needs its digits here")
                    .at(spec.location, "expected `fixed<digits, scale>`")
                    .note("only a constant's type is plain `fixed`");
                self.diagnostics.push(diagnostic);
                None
            }
            TypeKind::Fixed(Some(sizes)) => self.fixed_type(&sizes.0, &sizes.1),
            TypeKind::Sequence { element, bound } => {
                let element = self.element_type(element);
                let bound = self.optional_bound(bound.as_deref(), "sequence");
                Some(Type::Sequence {
                    element: Box::new(element?),
                    bound: bound?,
                })
            }
            TypeKind::Map { key, value, bound } => {
                let key = self.element_type(key);
                let value = self.element_type(value);
                let bound = self.optional_bound(bound.as_deref(), "map");
                Some(Type::Map {
                    key: Box::new(key?),
                    value: Box::new(value?),
                    bound: bound?,
                })
            }
            TypeKind::Named(name) => {
                let ty = self.named_type(name)?;
                self.complete(&ty, spec.location).then_some(ty)
            }
            TypeKind::Constructed(constructed) => self
                .constructed(&Preamble::default(), constructed)
                .map(Type::Named),
        }
    }

    /// The type of the elements of a sequence. Its definition may follow later.
    fn element_type(&mut self, spec: &TypeSpec) -> Option<Type> {
        match &spec.kind {
            TypeKind::Named(name) => self.named_type(name),
            _ => self.type_of(spec),
        }
    }

    /// The type of `what`, a parameter, a result or an attribute: a place where no type can be declared.
    pub(super) fn declared_type(&mut self, spec: &TypeSpec, what: &str) -> Option<Type> {
        if let TypeKind::Constructed(constructed) = &spec.kind {
            let diagnostic = Diagnostic::error("a type cannot be declared here")
                .at(
                    constructed.name.location,
                    "declared inside an operation or attribute",
                )
                .help("declare the type before, and use its name here");
            self.diagnostics.push(diagnostic);
            return None;
        }
        let ty = self.type_of(spec)?;
        self.check_local(&ty, spec.location, what);
        Some(ty)
    }

    /// Checks that the type of `what`, which is declared at `name`, has a name (CORBA 3.3 part 1, 7.13: `param_type_spec`).
    pub(super) fn check_named(&mut self, spec: &TypeSpec, what: &str, name: Location) {
        let (location, kind) = (spec.location, &spec.kind);
        let is_anonymous = matches!(
            kind,
            TypeKind::Sequence { .. } | TypeKind::Map { .. } | TypeKind::Fixed(_)
        );
        // An argument of a template module may be anonymous. It stands where the module is instantiated.
        let is_argument = location.file != name.file || location > name;
        if !is_anonymous || is_argument {
            return;
        }
        let diagnostic = if what == RESULT {
            Diagnostic::error(format!("the type of {what} has no name"))
                .at(location, "an operation cannot return an anonymous type")
        } else {
            Diagnostic::warning(format!("the type of {what} has no name")).at(
                location,
                "accepted, though the standard and other compilers refuse it",
            )
        };
        let help = "declare it before with `typedef`, and use its name here";
        self.diagnostics.push(diagnostic.help(help));
    }

    fn named_type(&mut self, name: &crate::ast::ScopedName) -> Option<Type> {
        if let Some(ty) = self.predefined(name) {
            return Some(ty);
        }
        let entity = self.lookup(name)?;
        if let Entity::Item(id) = entity {
            if self.is_type_code(id) {
                return Some(Type::TypeCode);
            }
            match self.tree.item(id).kind {
                ItemKind::Module | ItemKind::Exception { .. } | ItemKind::Constant { .. } => {}
                ItemKind::Other {
                    what: "annotation" | "template module",
                } => {}
                _ if self.is_template_instance(entity) && name.parts.len() == 1 => {}
                _ => return Some(Type::Named(id)),
            }
        }
        let what = self.describe(entity);
        let mut diagnostic = Diagnostic::error(format!("`{name}` is not a type"))
            .at(name.location(), format!("{what} cannot be used as a type"));
        if let Entity::Item(id) = entity {
            diagnostic = diagnostic.at(self.tree.item(id).location, "declared here");
        }
        self.diagnostics.push(diagnostic);
        None
    }

    /// The type of a name that needs no declaration: `CORBA::TypeCode`, or an integer of IDL 4. Older files may declare these.
    fn predefined(&mut self, name: &crate::ast::ScopedName) -> Option<Type> {
        let texts: Vec<&str> = name.parts.iter().map(|part| part.text.as_str()).collect();
        let ty = match texts[..] {
            ["CORBA", keyword @ ("Object" | "ValueBase")] => {
                let diagnostic = Diagnostic::warning(format!("`{keyword}` is a keyword")).at(
                    name.location(),
                    format!("the standard writes plain `{keyword}`"),
                );
                self.diagnostics.push(diagnostic);
                return Some(if keyword == "Object" {
                    Type::Object
                } else {
                    Type::ValueBase
                });
            }
            ["CORBA", "TypeCode"] => Type::TypeCode,
            ["TypeCode"] if self.in_module_corba() => Type::TypeCode,
            ["int8"] => Type::Int8,
            ["uint8"] => Type::Octet,
            ["int16"] => Type::Short,
            ["uint16"] => Type::UShort,
            ["int32"] => Type::Long,
            ["uint32"] => Type::ULong,
            ["int64"] => Type::LongLong,
            ["uint64"] => Type::ULongLong,
            _ => return None,
        };
        if self.find_quietly(name).is_some() {
            return None;
        }
        if ty != Type::TypeCode {
            self.warn_of_refusal(name.location(), "the integer types of IDL 4");
        }
        Some(ty)
    }

    pub(super) fn in_module_corba(&self) -> bool {
        let mut items = self.enclosing().filter_map(|scope| self.scopes[scope].item);
        items.any(|item| self.tree.item(item).is_module_corba())
    }

    /// True for `CORBA::TypeCode`, however a file declares it: it is always the pseudo object.
    fn is_type_code(&self, id: ItemId) -> bool {
        let Item { name, scope, .. } = self.tree.item(id);
        name == "TypeCode" && scope.is_some_and(|owner| self.tree.item(owner).is_module_corba())
    }

    /// True if the item is a struct or union whose definition is not complete.
    fn is_incomplete(&self, id: ItemId) -> bool {
        match self.tree.item(id).kind {
            ItemKind::Struct { .. } | ItemKind::Union(_) => self.facts[id.0 as usize].open,
            ItemKind::Undefined { what } => matches!(what, "struct" | "union"),
            _ => false,
        }
    }

    /// The type of an `@external` member. IDL 4 lets a type contain itself there (IDL 4.2, 8.3.3.2), but CORBA has no such values.
    /// Then the member's type is an item of its own, so that no struct of the tree contains itself.
    pub(super) fn external_type(&mut self, spec: &TypeSpec) -> Option<Type> {
        let ty = self.element_type(spec)?;
        let Type::Named(id) = ty else { return Some(ty) };
        if !self.is_incomplete(id) {
            return Some(ty);
        }
        let stands_for = Item {
            items: Vec::new(),
            kind: ItemKind::Other {
                what: "recursive @external member",
            },
            ..self.tree.item(id).clone()
        };
        let facts = self.facts[id.0 as usize].clone();
        let stand_in = ItemId(u32::try_from(self.tree.items.len()).ok()?);
        self.tree.items.push(stands_for);
        self.facts.push(Facts {
            scope: None,
            open: false,
            ..facts
        });
        Some(Type::Named(stand_in))
    }

    /// True if values of `ty` can be laid out now; structs and unions must be defined first (7.11.2.4).
    fn complete(&mut self, ty: &Type, location: Location) -> bool {
        let mut ty = ty;
        while let Type::Array { element, .. } = ty {
            ty = element;
        }
        let Type::Named(id) = *ty else { return true };
        if !self.is_incomplete(id) {
            return true;
        }
        let item = self.tree.item(id);
        let open = self.facts[id.0 as usize].open;
        let diagnostic = if open {
            Diagnostic::error(format!("`{}` would contain itself", item.name))
                .at(location, "used inside its own definition")
                .at(item.location, "this definition is not complete yet")
        } else {
            Diagnostic::error(format!("`{}` is not defined yet", item.name))
                .at(location, "its definition must stand before this")
                .at(item.location, "only declared here")
        };
        let help = format!(
            "a type may contain itself inside a sequence: `sequence<{}>`",
            item.name
        );
        self.diagnostics.push(diagnostic.help(help));
        false
    }

    fn fixed_type(&mut self, digits: &Expression, scale: &Expression) -> Option<Type> {
        let digits_value = self.size(digits, "the number of digits");
        let scale_value = self.evaluate(scale, &Type::UShort);
        let digits_value = digits_value?;
        let Value::Integer(scale_value) = scale_value? else {
            return None;
        };
        let limit = crate::literal::FIXED_DIGITS_MAX;
        if digits_value as usize > limit {
            let message = format!("a fixed type has at most {limit} digits");
            self.error(digits.location, message, format!("this is {digits_value}"));
            return None;
        }
        if scale_value > i128::from(digits_value) {
            let message = "the scale of a fixed type is larger than its number of digits";
            let label = format!("must be from 0 to {digits_value}");
            self.error(scale.location, message, label);
            return None;
        }
        Some(Type::Fixed {
            digits: u16::try_from(digits_value).ok()?,
            scale: u16::try_from(scale_value).ok()?,
        })
    }

    /// The value of a bound. The outer `None` is a reported error; the inner one is no bound.
    fn optional_bound(&mut self, bound: Option<&Expression>, what: &str) -> Option<Option<u32>> {
        match bound {
            None => Some(None),
            Some(bound) => self
                .size(bound, &format!("the bound of the {what}"))
                .map(Some),
        }
    }

    /// The value of an expression that must be positive (7.10.1.1). Reports any other value, with the name `what`.
    pub(super) fn size(&mut self, expression: &Expression, what: &str) -> Option<u32> {
        match self.evaluate(expression, &Type::ULong)? {
            Value::Integer(0) => {
                let message = format!("{what} is 0");
                self.error(expression.location, message, "must be at least 1");
                None
            }
            Value::Integer(value) => u32::try_from(value).ok(),
            _ => None,
        }
    }

    /// `ty` with the dimensions of the declarator.
    pub(super) fn declarator_type(&mut self, ty: &Type, declarator: &Declarator) -> Option<Type> {
        let mut ty = ty.clone();
        if !declarator.dimensions.is_empty() {
            let dimensions = declarator.dimensions.iter();
            let sizes: Vec<Option<u32>> = dimensions
                .map(|dimension| self.size(dimension, "the size of the array"))
                .collect();
            ty = Type::Array {
                element: Box::new(ty),
                dimensions: sizes.into_iter().collect::<Option<_>>()?,
            };
        }
        if self.types_in(&ty) > TYPES_MAX {
            let Name { text, location } = &declarator.name;
            let message = format!("the type of `{text}` is made of more than {TYPES_MAX} types");
            let label = "each sequence, map, dimension and typedef counts as often as it occurs";
            self.error(*location, message, label);
            return None;
        }
        Some(ty)
    }

    /// The number of types that make up `ty`, each counted as often as it occurs: itself, elements, dimensions, keys and values, and what
    /// typedefs stand for. Other declared types count as one.
    fn types_in(&self, ty: &Type) -> usize {
        match ty {
            Type::Sequence { element, .. } => 1 + self.types_in(element),
            Type::Array {
                element,
                dimensions,
            } => dimensions.len() + self.types_in(element),
            Type::Map { key, value, .. } => 1 + self.types_in(key) + self.types_in(value),
            Type::Named(id) => 1 + self.facts[id.0 as usize].aliased,
            _ => 1,
        }
    }

    pub(super) fn typedef(&mut self, preamble: &Preamble, typedef: &Declarators) {
        let ty = self.type_of(&typedef.ty);
        for declarator in &typedef.declarators {
            let declared = ty
                .as_ref()
                .and_then(|ty| self.declarator_type(ty, declarator));
            let preamble = Preamble {
                annotations: [preamble.annotations.clone(), declarator.annotations.clone()]
                    .concat(),
                ..preamble.clone()
            };
            // A wrong type still declares the name, so that its uses are not reported as well.
            let local = declared.as_ref().is_some_and(|ty| self.is_local(ty));
            let ty = declared.unwrap_or(Type::Void);
            let aliased = self.types_in(&ty);
            if let Some(id) = self.declare_item(&preamble, &declarator.name, ItemKind::Alias { ty })
            {
                let facts = self.facts(id);
                facts.local = local;
                facts.aliased = aliased;
            }
        }
    }

    /// True if values of `ty` cannot leave the process.
    pub(super) fn is_local(&self, ty: &Type) -> bool {
        match ty {
            Type::Named(id) => match &self.tree.item(*id).kind {
                ItemKind::Interface(interface) => interface.flavour == InterfaceFlavour::Local,
                _ => self.facts[id.0 as usize].local,
            },
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.is_local(element),
            Type::Map { key, value, .. } => self.is_local(key) || self.is_local(value),
            _ => false,
        }
    }

    /// The item behind typedefs, if `entity` is an item.
    pub(super) fn behind_aliases(&self, entity: Entity) -> Option<ItemId> {
        let Entity::Item(id) = entity else {
            return None;
        };
        self.item_of(&Type::Named(id)).or(Some(id))
    }
}

/// The most types that make up one: far more than in real IDL. Code that reads the tree visits each where it occurs, by recursion, and a few
/// typedefs of maps could stand for more than any memory holds.
const TYPES_MAX: usize = 128;

/// The result of an operation in messages.
pub(super) const RESULT: &str = "the result";

#[cfg(test)]
mod tests {
    use crate::Options;

    #[test]
    fn a_type_is_made_of_a_bounded_number_of_types() {
        let aliases = |count: usize, of: fn(usize) -> String| {
            let more = (1..=count).map(|it| format!("typedef {} A{it};\n", of(it - 1)));
            "typedef long A0;\n".to_owned() + &more.collect::<String>()
        };
        let chain = |count| aliases(count, |it| format!("A{it}"));
        let array = |dimensions| format!("struct S {{ long x{}; }};", "[1]".repeat(dimensions));
        let check = |text: &str| crate::check_text("made_of.idl", text, &Options::default());
        for right in [chain(127), array(127)] {
            let outcome = check(&right);
            assert!(outcome.tree.is_some(), "{}", outcome.render(false));
        }
        let maps = aliases(40, |it| format!("map<A{it}, A{it}>"));
        for wrong in [chain(128), array(128), maps] {
            let outcome = check(&wrong);
            assert!(outcome.tree.is_none(), "{wrong} was accepted");
            let text = outcome.render(false);
            assert!(text.contains("made of more than 128 types"), "{text}");
        }
    }
}
