//! Equality and equivalence of TypeCodes.

use super::TypeCode;
use super::shape::{Aggregate, Elements, Shape, Union, ValueAggregate};
use alloc::sync::Arc;

impl TypeCode {
    /// True if both are the same type, including all names (`TypeCode::equal`).
    pub fn equal(&self, other: &Self) -> bool {
        Comparison::Equal.holds(self, other)
    }

    /// True if each value of one type is a value of the other (`TypeCode::equivalent`).
    //= CORBA 3 §10.7.1
    //# Equivalence ignores aliases and names. If both types have a repository id, only kind and id count.
    pub fn equivalent(&self, other: &Self) -> bool {
        Comparison::Equivalent.holds(self, other)
    }
}

impl PartialEq for TypeCode {
    fn eq(&self, other: &Self) -> bool {
        self.equal(other)
    }
}

impl Eq for TypeCode {}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Equivalent,
}

impl Comparison {
    fn holds(self, a: &TypeCode, b: &TypeCode) -> bool {
        let (a, b) = match self {
            Self::Equal => (a, b),
            Self::Equivalent => (a.unaliased(), b.unaliased()),
        };
        if let (Some(id_a), Some(id_b)) = (a.repository_id(), b.repository_id()) {
            let recursive = |t: &TypeCode| matches!(t.shape(), Shape::Recursive(_));
            // A recursive type stands for the type with its id, which is compared at its own place.
            if recursive(a) || recursive(b) {
                return id_a == id_b;
            }
            if self == Self::Equivalent && !id_a.is_empty() && !id_b.is_empty() {
                return id_a == id_b && a.kind() == b.kind();
            }
        }
        self.shapes(a.shape(), b.shape())
    }

    fn shapes(self, a: &Shape, b: &Shape) -> bool {
        use Shape::{
            Alias, Array, Enum, Event, Except, Fixed, Plain, Sequence, String, Struct, Union,
            Value, ValueBox, WString,
        };
        match (a, b) {
            (Plain(a), Plain(b)) => a == b,
            (String { bound: a }, String { bound: b })
            | (WString { bound: a }, WString { bound: b }) => a == b,
            (
                Fixed { digits, scale },
                Fixed {
                    digits: d,
                    scale: s,
                },
            ) => (digits, scale) == (d, s),
            (Sequence(a), Sequence(b)) | (Array(a), Array(b)) => self.elements(a, b),
            (Struct(a), Struct(b)) | (Except(a), Except(b)) => {
                Arc::ptr_eq(a, b) || self.aggregates(a, b)
            }
            (Union(a), Union(b)) => Arc::ptr_eq(a, b) || self.unions(a, b),
            (Enum(a), Enum(b)) => match self {
                Self::Equal => a == b,
                Self::Equivalent => a.enumerators.len() == b.enumerators.len(),
            },
            (Alias(a), Alias(b)) | (ValueBox(a), ValueBox(b)) => {
                self.same(&a.named, &b.named) && self.holds(&a.content, &b.content)
            }
            (Value(a), Value(b)) | (Event(a), Event(b)) => Arc::ptr_eq(a, b) || self.values(a, b),
            (Shape::Named(kind, a), Shape::Named(k, b)) => kind == k && self.same(a, b),
            _ => false,
        }
    }

    fn elements(self, a: &Elements, b: &Elements) -> bool {
        a.count == b.count && self.holds(&a.element, &b.element)
    }

    fn aggregates(self, a: &Aggregate, b: &Aggregate) -> bool {
        self.same(&a.named, &b.named)
            && a.members.len() == b.members.len()
            && a.members
                .iter()
                .zip(&b.members)
                .all(|(a, b)| self.same(&a.name, &b.name) && self.holds(&a.type_code, &b.type_code))
    }

    fn unions(self, a: &Union, b: &Union) -> bool {
        self.same(&a.named, &b.named)
            && a.default == b.default
            && a.members.len() == b.members.len()
            && self.holds(&a.discriminator, &b.discriminator)
            && (0..)
                .zip(a.members.iter().zip(&b.members))
                .all(|(index, (a_member, b_member))| {
                    (a_member.label == b_member.label || Some(index) == a.default)
                        && self.same(&a_member.name, &b_member.name)
                        && self.holds(&a_member.type_code, &b_member.type_code)
                })
    }

    fn values(self, a: &ValueAggregate, b: &ValueAggregate) -> bool {
        self.same(&a.named, &b.named)
            && a.modifier == b.modifier
            && self.holds(&a.base, &b.base)
            && a.members.len() == b.members.len()
            && a.members.iter().zip(&b.members).all(|(a, b)| {
                a.visibility == b.visibility
                    && self.same(&a.name, &b.name)
                    && self.holds(&a.type_code, &b.type_code)
            })
    }

    /// True if names are equal, or need not be.
    fn same<T: PartialEq>(self, a: &T, b: &T) -> bool {
        self == Self::Equivalent || a == b
    }
}
