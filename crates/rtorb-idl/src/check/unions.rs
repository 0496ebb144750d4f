//! Unions: the discriminator, the labels, and the values that they cover (CORBA 3.3 part 1, 7.11.2.2).

use std::collections::HashMap;

use crate::ast::{CaseLabel, Expression, ExpressionKind, Name, Preamble, TypeSpec, UnionBody};
use crate::diagnostic::Diagnostic;
use crate::source::Location;
use crate::tree::{ItemId, ItemKind, Type, Union, UnionCase, Value};

use super::Checker;
use super::scopes::Entity;
use super::structs::tree_member;

impl Checker<'_> {
    pub(super) fn union_definition(
        &mut self,
        preamble: &Preamble,
        name: &Name,
        body: &UnionBody,
    ) -> Option<ItemId> {
        let id = self.begin_definition(preamble, name, "union", ItemKind::Union(Union::default()));
        let union = self.within(id, |checker| checker.union_body(name, body));
        self.end_definition(id, ItemKind::Union(union))
    }

    fn union_body(&mut self, name: &Name, body: &UnionBody) -> Union {
        let discriminator = self.discriminator(&body.discriminator);
        let mut labels = Labels::default();
        let mut cases = Vec::new();
        for case in &body.cases {
            let ty = self.member_type(&case.preamble, &case.declared.ty);
            let mut values = Vec::new();
            let mut is_default = false;
            for label in &case.declared.labels {
                match label {
                    CaseLabel::Default(location) => {
                        is_default = true;
                        self.default_label(&mut labels, *location);
                    }
                    CaseLabel::Value(expression) => {
                        let value = discriminator
                            .as_ref()
                            .and_then(|ty| self.label(&mut labels, expression, ty));
                        if let Some(value) = value
                            && self.new_label(&mut labels, &value, expression.location)
                        {
                            values.push(value);
                        }
                    }
                }
            }
            self.declare(&case.declared.declarator.name, Entity::Other("a member"));
            let Some(ty) = ty.and_then(|ty| self.declarator_type(&ty, &case.declared.declarator))
            else {
                continue;
            };
            cases.push(UnionCase {
                labels: values,
                is_default,
                member: tree_member(&case.preamble, &case.declared.declarator, ty),
            });
        }
        self.check_names_of_labels(&labels, body);
        if body.cases.is_empty() {
            let message = format!("the union `{}` is empty", name.text);
            self.error(name.location, message, "expected at least one `case`");
        }
        let possible = discriminator.as_ref().and_then(|ty| self.value_count(ty));
        let covers_all = possible.is_some_and(|possible| labels.seen.len() as u128 >= possible);
        if let Some(location) = labels.default.filter(|_| covers_all) {
            let label =
                "accepted, though the labels already cover every value of the discriminator";
            let warning = Diagnostic::warning("this `default` is never selected");
            self.diagnostics.push(warning.at(location, label));
        }
        Union {
            discriminator: discriminator.unwrap_or_default(),
            discriminator_annotations: body.annotations.clone(),
            cases,
            covers_all,
        }
    }

    fn discriminator(&mut self, spec: &TypeSpec) -> Option<Type> {
        let ty = self.type_of(spec)?;
        let allowed = match self.tree.resolved(&ty) {
            Type::Boolean | Type::Char | Type::WChar => true,
            Type::Named(id) => matches!(self.tree.item(*id).kind, ItemKind::Enum { .. }),
            // The type of a typedef whose error has been reported.
            Type::Void => return None,
            ty => ty.is_integer(),
        };
        if !allowed {
            let label = "expected an integer, `char`, `wchar`, `boolean`, `octet` or an enum";
            self.error(
                spec.location,
                "a union discriminator cannot have this type",
                label,
            );
        }
        if let Type::Octet | Type::WChar | Type::Int8 = self.tree.resolved(&ty) {
            self.warn_of_refusal(spec.location, "discriminators of this type");
        }
        allowed.then_some(ty)
    }

    /// The value of a label. An enumerator is also found if the enum itself is not visible.
    fn label(
        &mut self,
        labels: &mut Labels,
        expression: &Expression,
        discriminator: &Type,
    ) -> Option<Value> {
        if let ExpressionKind::Name(name) = &expression.kind
            && name.parts.len() == 1
            && let Type::Named(id) = *self.tree.resolved(discriminator)
            && let Some((at, _)) = self.enumerator(id, &name.first().text)
        {
            if self.find_quietly(name) != Some(Entity::Enumerator(id, at)) {
                let what = "an enumerator as a label where its enum is not visible";
                self.warn_of_refusal(expression.location, what);
            }
            let used = name.first();
            labels.names.insert(used.text.to_lowercase(), used.clone());
            return Some(Value::Enumerator(id, at));
        }
        self.evaluate(expression, discriminator)
    }

    /// Warns about members with the name of an enumerator that is a label: the union is one scope (7.20.2).
    fn check_names_of_labels(&mut self, labels: &Labels, body: &UnionBody) {
        for case in &body.cases {
            let member = &case.declared.declarator.name;
            match labels.names.get(&member.text.to_lowercase()) {
                Some(used) if used.text == member.text => {
                    let text = &member.text;
                    let message = format!("the member `{text}` has the name of a label");
                    let warning = Diagnostic::warning(message)
                        .at(member.location, "accepted, though the standard forbids it")
                        .at(
                            used.location,
                            "an enumerator with the same name is used here",
                        );
                    self.diagnostics.push(warning);
                }
                Some(used) => self.warn_of_case(member, used),
                None => {}
            }
        }
    }

    fn default_label(&mut self, labels: &mut Labels, location: Location) {
        match labels.default {
            Some(first) => self.diagnostics.push(
                Diagnostic::error("this union has two defaults")
                    .at(location, "the second one")
                    .at(first, "the first one"),
            ),
            None => labels.default = Some(location),
        }
    }

    fn new_label(&mut self, labels: &mut Labels, value: &Value, location: Location) -> bool {
        let key = match value {
            Value::Integer(value) => *value,
            Value::Boolean(value) => i128::from(*value),
            Value::Char(value) => i128::from(u32::from(*value)),
            Value::Enumerator(_, at) => i128::from(*at),
            _ => return false,
        };
        if let Some(first) = labels.seen.get(&key) {
            let diagnostic = Diagnostic::error("this label is used twice in the union")
                .at(location, "the same value again")
                .at(*first, "first used here");
            self.diagnostics.push(diagnostic);
            return false;
        }
        labels.seen.insert(key, location);
        true
    }

    /// The number of values of a discriminator; `None` if labels cannot cover all of them.
    fn value_count(&self, discriminator: &Type) -> Option<u128> {
        match self.tree.resolved(discriminator) {
            Type::Boolean => Some(2),
            Type::Char | Type::Octet | Type::Int8 => Some(256),
            Type::Short | Type::UShort | Type::WChar => Some(65_536),
            Type::Named(id) => match &self.tree.item(*id).kind {
                ItemKind::Enum { enumerators } => Some(enumerators.len() as u128),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The labels of a union so far.
#[derive(Default)]
struct Labels {
    seen: HashMap<i128, Location>,
    /// The enumerators among the labels, by their simple names in lower case.
    names: HashMap<String, Name>,
    default: Option<Location>,
}
