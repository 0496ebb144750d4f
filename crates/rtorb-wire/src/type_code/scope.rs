//! The types around a part of a type, to which recursive types refer.

use super::{Shape, TypeCode, ValueMember};
use core::iter::successors;

/// A type and the types that enclose it. A recursive type refers to one of them.
///
/// Code that walks a value by its type makes one scope for each type that it enters.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'t> {
    /// The type.
    pub type_code: &'t TypeCode,
    /// The type around it.
    pub outer: Option<&'t Scope<'t>>,
    /// The outermost of the aliases that [`resolved`](Self::resolved) has looked behind to find the type.
    alias: Option<&'t TypeCode>,
}

impl<'t> Scope<'t> {
    /// The scope of a type that is in no other.
    pub const fn new(type_code: &'t TypeCode) -> Self {
        Self {
            type_code,
            outer: None,
            alias: None,
        }
    }

    /// The scope of a type that is a part of this one's.
    #[must_use]
    pub const fn inside(&'t self, type_code: &'t TypeCode) -> Self {
        Self {
            type_code,
            outer: Some(self),
            alias: None,
        }
    }

    /// The scope of the enclosing type with that repository id.
    pub fn enclosing(&self, id: &str) -> Option<&'t Self> {
        let mut scopes = successors(self.outer, |scope| scope.outer);
        scopes.find(|scope| scope.type_code.repository_id() == Some(id))
    }

    /// The scope of the type behind aliases, and behind a reference to an enclosing type; `None` if that type does not enclose it. A
    /// reference inside the type may name one of these aliases.
    pub fn resolved(&self) -> Option<Self> {
        let mut scope = *self;
        loop {
            scope = match scope.type_code.shape() {
                Shape::Alias(alias) => Self {
                    type_code: &alias.content,
                    alias: scope.alias.or(Some(scope.type_code)),
                    ..scope
                },
                Shape::Recursive(id) => {
                    let mut scopes = successors(scope.outer, |scope| scope.outer);
                    scopes.find_map(|scope| scope.called(id))?
                }
                _ => return Some(scope),
            };
        }
    }

    /// The scope of the type with that repository id: this one's, or an alias of it that was looked behind.
    fn called(&self, id: &str) -> Option<Self> {
        let outermost = self.alias.unwrap_or(self.type_code);
        let mut types = successors(Some(outermost), |it| match it.shape() {
            Shape::Alias(alias) => Some(&alias.content),
            _ => None,
        });
        let type_code = types.find(|it| it.repository_id() == Some(id))?;
        Some(Self { type_code, ..*self })
    }

    /// Calls `each` for every member of a valuetype: those of the bases first, then its own.
    ///
    /// # Errors
    /// The error of `each`.
    pub fn each_state_member<E>(
        &self,
        each: &mut impl FnMut(&ValueMember, &Scope<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.type_code.shape() {
            Shape::Value(value) | Shape::Event(value) => {
                self.inside(&value.base).each_state_member(each)?;
                value.members.iter().try_for_each(|it| each(it, self))
            }
            Shape::Alias(alias) => self.inside(&alias.content).each_state_member(each),
            _ => Ok(()),
        }
    }
}

impl TypeCode {
    /// True if this is the valuetype with that id, or derives from it by concrete bases.
    pub fn derives_from(&self, id: &str) -> bool {
        let mut lineage = successors(Some(self), |it| match it.unaliased().shape() {
            Shape::Value(value) | Shape::Event(value) => Some(&value.base),
            _ => None,
        });
        lineage.any(|it| it.unaliased().repository_id() == Some(id))
    }
}
