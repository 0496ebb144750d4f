//! Walks through a value of any type, part by part (as DynAny).

use core::iter::successors;

use rtorb::any::{Value, find_state_type};
use rtorb::type_code::{Kind, Scope, Shape, TypeCode};

use crate::json::known;
use crate::types::Types;

/// A part of a value, with its type.
#[derive(Clone, Debug)]
pub struct Part<'v> {
    types: &'v Types,
    value: &'v Value,
    /// The types around the part, the outermost first, and its own type at the end.
    enclosing: Vec<TypeCode>,
    name: String,
}

impl<'v> Part<'v> {
    /// A whole value. `types` has the valuetypes that may take the place of their bases.
    pub fn whole(types: &'v Types, value: &'v Value, type_code: &TypeCode) -> Self {
        let part = Self {
            types,
            value,
            enclosing: vec![type_code.clone()],
            name: String::new(),
        };
        part.resolved()
    }

    /// The name of the member, or `[INDEX]` of the element; empty for a whole value.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value.
    pub const fn value(&self) -> &'v Value {
        self.value
    }

    /// The type, behind aliases and recursion.
    pub fn type_code(&self) -> &TypeCode {
        self.enclosing.last().unwrap_or(&TypeCode::NULL)
    }

    /// The parts: members, elements, the value of a union, or the state of a valuetype. Empty for a value without parts, for bytes,
    /// and for an any, which has a type of its own.
    pub fn parts(&self) -> Vec<Self> {
        match (self.value, self.type_code().shape()) {
            (Value::Members(values), Shape::Struct(made) | Shape::Except(made)) => {
                let members = made.members.iter().zip(values);
                let part = members.map(|(it, value)| self.part(value, &it.type_code, &it.name));
                part.collect()
            }
            (Value::Elements(values), Shape::Sequence(made) | Shape::Array(made)) => {
                let part = |(place, value)| self.part(value, &made.element, &format!("[{place}]"));
                values.iter().enumerate().map(part).collect()
            }
            (
                Value::Union {
                    discriminator,
                    value: Some(value),
                },
                Shape::Union(union),
            ) => {
                let member = union.select(*discriminator);
                member
                    .map(|it| self.part(value, &it.type_code, &it.name))
                    .into_iter()
                    .collect()
            }
            (Value::Valuetype(Some(_)), _) => self.state(),
            _ => Vec::new(),
        }
    }

    /// The part at a path: `stops[2].x`.
    pub fn at(&self, path: &str) -> Option<Self> {
        let path = path.strip_prefix('.').unwrap_or(path);
        if path.is_empty() {
            return Some(self.clone());
        }
        let end = path
            .get(1..)?
            .find(['.', '['])
            .map_or(path.len(), |end| end + 1);
        let (name, rest) = path.split_at(end);
        let part = self.parts().into_iter().find(|part| part.name == name)?;
        part.at(rest)
    }

    fn part(&self, value: &'v Value, type_code: &TypeCode, name: &str) -> Self {
        let mut enclosing = self.enclosing.clone();
        enclosing.push(type_code.clone());
        let part = Self {
            types: self.types,
            value,
            enclosing,
            name: name.to_owned(),
        };
        part.resolved()
    }

    /// The same part, with the type behind aliases and recursion.
    fn resolved(mut self) -> Self {
        while let Some(last) = self.enclosing.last().cloned() {
            match last.shape() {
                Shape::Alias(alias) => self.enclosing.push(alias.content.clone()),
                Shape::Recursive(id) => {
                    self.enclosing.pop();
                    let is =
                        |it: &TypeCode| it.repository_id() == Some(id) && it.kind() != Kind::Null;
                    match self.enclosing.iter().rposition(is) {
                        Some(place) => self.enclosing.truncate(place + 1),
                        None => break,
                    }
                }
                _ => break,
            }
        }
        self
    }

    fn state(&self) -> Vec<Self> {
        let Value::Valuetype(Some(state)) = self.value else {
            return Vec::new();
        };
        let known = known(self.types);
        let expected = self.type_code();
        let id = &state.repository_id;
        // The types around the expected one matter only for what is inside it.
        if find_state_type(&Scope::new(expected), id, &known).is_none() {
            return Vec::new();
        }
        let mut actual = self.clone();
        if expected.repository_id() != Some(id) {
            actual.enclosing = known(id).into_iter().collect();
        }
        let type_code = actual.type_code().clone();
        let mut values = state.members.iter();
        if let Shape::ValueBox(boxed) = type_code.shape() {
            let part = values
                .next()
                .map(|it| actual.part(it, &boxed.content, "value"));
            return part.into_iter().collect();
        }
        let mut parts = Vec::new();
        let around = &actual.enclosing[..actual.enclosing.len() - 1];
        let walked: Result<(), ()> = Scope::new(&type_code).each_state_member(&mut |it, scope| {
            // A member of a base is inside the base, which is inside the derived type.
            let lineage = successors(Some(scope), |scope| scope.outer);
            let mut lineage: Vec<_> = lineage.map(|scope| scope.type_code.clone()).collect();
            lineage.reverse();
            let owner = Self {
                enclosing: [around, &lineage].concat(),
                ..actual.clone()
            };
            parts.extend(
                values
                    .next()
                    .map(|value| owner.part(value, &it.type_code, &it.name)),
            );
            Ok(())
        });
        debug_assert!(walked.is_ok());
        parts
    }
}
