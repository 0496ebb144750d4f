//! An example of a type's JSON.

use rtorb::any::VALUE_BASE;
use rtorb::type_code::{Aggregate, Kind, Scope, Shape, TypeCode, Union};
use serde_json::{Map, Value as Json, json};

use super::write::label;
use super::{EXCEPTION, bits, exception_key, may_be_null, optional_content};
use crate::types::Types;

/// A JSON value that is one of `type_code`; `None` if it would be very long, or the type has no values.
pub fn example(types: &Types, type_code: &TypeCode) -> Option<Json> {
    Example {
        types,
        values: 0,
        depth: 0,
    }
    .value(&Scope::new(type_code))
}

struct Example<'t> {
    types: &'t Types,
    values: usize,
    depth: usize,
}

impl Example<'_> {
    fn value(&mut self, scope: &Scope<'_>) -> Option<Json> {
        self.values += 1;
        if self.values > VALUES_MAX {
            return None;
        }
        self.depth += 1;
        let value = self.shape(scope);
        self.depth -= 1;
        value
    }

    fn shape(&mut self, scope: &Scope<'_>) -> Option<Json> {
        let type_code = scope.type_code;
        if let Some(bits) = self.types.bits(type_code) {
            return bits::example(bits);
        }
        Some(match type_code.shape() {
            Shape::Plain(kind) => plain(*kind)?,
            Shape::String { bound } | Shape::WString { bound } => {
                let length = if *bound == 0 {
                    4
                } else {
                    (*bound as usize).min(4)
                };
                json!("text"[..length])
            }
            Shape::Fixed { digits, scale } => {
                let whole = if i32::from(*digits) > i32::from(*scale) {
                    "1"
                } else {
                    "0"
                };
                match scale {
                    1.. => json!(format!(
                        "{whole}.{}",
                        "0".repeat(scale.unsigned_abs().into())
                    )),
                    _ => json!("0"),
                }
            }
            Shape::Enum(enumeration) => json!(enumeration.enumerators.first()?),
            Shape::Alias(alias) => return self.value(&scope.inside(&alias.content)),
            Shape::Recursive(id) => return self.value(scope.enclosing(id)?),
            Shape::Sequence(_) | Shape::Array(_) => return self.elements(scope),
            Shape::Struct(made) | Shape::Except(made) => return self.structure(made, scope),
            Shape::Union(union) => return self.union(union, scope),
            Shape::Named(Kind::Native | Kind::LocalInterface, _) => return None,
            Shape::Named(..) => Json::Null,
            // A valuetype may contain itself without end.
            Shape::Value(_) | Shape::Event(_) if self.depth > VALUE_DEPTH_MAX => Json::Null,
            Shape::ValueBox(_) if self.depth > VALUE_DEPTH_MAX => Json::Null,
            Shape::ValueBox(boxed) => {
                let value = self.value(&scope.inside(&boxed.content))?;
                if may_be_null(&boxed.content) {
                    json!({ "value": value })
                } else {
                    value
                }
            }
            Shape::Value(value) | Shape::Event(value) => {
                if &*value.named.id == VALUE_BASE || value.modifier != 0 && value.modifier != 3 {
                    return Some(Json::Null);
                }
                let mut object = Map::new();
                scope
                    .each_state_member(&mut |member, scope| {
                        let value = self.member(&member.name, scope, &member.type_code);
                        let value = value.ok_or(())?;
                        object.insert(member.name.to_string(), value);
                        Ok::<(), ()>(())
                    })
                    .ok()?;
                Json::Object(object)
            }
        })
    }

    fn structure(&mut self, made: &Aggregate, scope: &Scope<'_>) -> Option<Json> {
        let mut object = Map::new();
        let is_exception = scope.type_code.kind() == Kind::Except;
        if is_exception {
            object.insert(EXCEPTION.to_owned(), json!(made.named.id));
        }
        for member in &made.members {
            let value = self.member(&member.name, scope, &member.type_code)?;
            let key = if is_exception {
                exception_key(&member.name)
            } else {
                &member.name
            };
            object.insert(key.to_owned(), value);
        }
        Some(Json::Object(object))
    }

    /// A member of the type of `scope`. An optional one has a value, unless its type contains itself.
    fn member(&mut self, name: &str, scope: &Scope<'_>, type_code: &TypeCode) -> Option<Json> {
        let member = scope.inside(type_code);
        let Some(content) = optional_content(self.types, scope, name, type_code) else {
            return self.value(&member);
        };
        if self.depth > OPTIONAL_DEPTH_MAX {
            return Some(Json::Null);
        }
        let value = self.value(&member.inside(content))?;
        Some(if may_be_null(content) {
            json!({ "value": value })
        } else {
            value
        })
    }

    /// One element of a sequence, none of one that contains itself; all elements of an array.
    fn elements(&mut self, scope: &Scope<'_>) -> Option<Json> {
        let (elements, count) = match scope.type_code.shape() {
            Shape::Array(elements) => (elements, elements.count as usize),
            Shape::Sequence(elements) if self.depth > SEQUENCE_DEPTH_MAX => (elements, 0),
            Shape::Sequence(elements) => (elements, 1),
            _ => return None,
        };
        let is_octet = elements.element.unaliased().kind() == Kind::Octet;
        if is_octet && self.types.bits(&elements.element).is_none() {
            return (count <= VALUES_MAX).then(|| json!(format!("hex:{}", "00".repeat(count))));
        }
        if count > VALUES_MAX {
            return None;
        }
        let element = scope.inside(&elements.element);
        let values = (0..count).map(|_| self.value(&element));
        values.collect::<Option<Vec<_>>>().map(Json::Array)
    }

    fn union(&mut self, union: &Union, scope: &Scope<'_>) -> Option<Json> {
        let is_labelled = |index: &usize| union.default.is_none_or(|it| it as usize != *index);
        let index = (0..union.members.len()).find(is_labelled)?;
        let member = &union.members[index];
        let value = self.value(&scope.inside(&member.type_code))?;
        let discriminator = label(member.label, &union.discriminator).ok()?;
        Some(json!({ "d": discriminator, "v": value }))
    }
}

fn plain(kind: Kind) -> Option<Json> {
    Some(match kind {
        Kind::Null | Kind::Void => Json::Null,
        Kind::Boolean => json!(true),
        Kind::Float | Kind::Double | Kind::LongDouble => json!(1.5),
        Kind::Char | Kind::WChar => json!("c"),
        Kind::Any => json!({ "type": "long", "value": 1 }),
        Kind::TypeCode => json!("sequence<long>"),
        Kind::Principal => json!("hex:00"),
        Kind::Octet
        | Kind::Short
        | Kind::UShort
        | Kind::Long
        | Kind::ULong
        | Kind::LongLong
        | Kind::ULongLong => {
            json!(1)
        }
        _ => return None,
    })
}

/// The most values of an example.
const VALUES_MAX: usize = 200;
const SEQUENCE_DEPTH_MAX: usize = 12;
const OPTIONAL_DEPTH_MAX: usize = 6;
const VALUE_DEPTH_MAX: usize = 6;
