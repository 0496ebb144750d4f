//! Valuetypes that are read and written by their TypeCode.

use super::unsupported;
use super::value::{self, Value};
use crate::cdr::{ValueHead, ValueStart};
use crate::type_code::{Kind, Scope, Shape, TypeCode};
use crate::{DecodeError, EncodeError, Reader, Writer};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::TypeId;
use core::fmt;

/// Finds the TypeCode of a derived valuetype by its repository id. The TypeCode of a base does not name derived types.
pub type KnownTypes<'k> = &'k dyn Fn(&str) -> Option<TypeCode>;

/// Finds no type: only the valuetypes that a TypeCode names are known.
pub const NOTHING_KNOWN: KnownTypes<'static> = &|_| None;

/// A value of a valuetype.
#[derive(Clone)]
pub struct State {
    /// The repository id of its type: the expected type, or one that derives from it.
    pub repository_id: Arc<str>,
    /// Its members, those of its bases first. For a boxed value, the one value in the box.
    pub members: Vec<Value>,
}

impl State {
    pub(super) fn decode(
        scope: &Scope<'_>,
        known: KnownTypes<'_>,
        r: &mut Reader<'_>,
    ) -> Result<Option<Arc<Self>>, DecodeError> {
        r.approach_value();
        match r.value_head()? {
            ValueHead::Null => Ok(None),
            ValueHead::Indirection { position } => {
                let value = r.value_at(position)?.downcast().ok();
                let is_expected =
                    |state: &Arc<Self>| find(scope, &state.repository_id, known).is_some();
                let state = value.filter(is_expected);
                state.map(Some).ok_or(DecodeError::UnknownValue)
            }
            ValueHead::Value(start) => {
                let read = |r: &mut Reader<'_>| Self::read(&start, scope, known, r);
                r.keep_value(start.position, read).map(Some)
            }
        }
    }

    /// Reads a state of the sent type if it is known, else of the first base to which it may be truncated.
    fn read(
        start: &ValueStart<'_>,
        scope: &Scope<'_>,
        known: KnownTypes<'_>,
        r: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        let formal_id = scope.type_code.repository_id().unwrap_or_default();
        let mut ids = start.repository_ids.iter();
        let found = match ids.len() {
            0 => find(scope, formal_id, known).map(|found| (0, formal_id, found)),
            _ => ids.by_ref().enumerate().find_map(|(place, id)| {
                let id = core::str::from_utf8(id).ok()?;
                Some((place, id, find(scope, id, known)?))
            }),
        };
        let (place, id, found) = found.ok_or(DecodeError::UnknownValue)?;
        if place > 0 && !start.chunked {
            return Err(DecodeError::UnknownValue);
        }
        let members = r.value_state(start, place == 0, |r| {
            let mut members = Vec::new();
            found.in_scope(scope, |scope| {
                if let Shape::ValueBox(boxed) = scope.type_code.shape() {
                    members.push(value::decode(&scope.inside(&boxed.content), known, r)?);
                    return Ok(());
                }
                if is_custom(scope.type_code) {
                    return Err(unsupported(scope.type_code.kind()));
                }
                scope.each_state_member(&mut |member, scope| {
                    members.push(value::decode(&scope.inside(&member.type_code), known, r)?);
                    Ok(())
                })
            })?;
            Ok(members)
        })?;
        Ok(Self {
            repository_id: r.shared_id(id),
            members,
        })
    }

    pub(super) fn encode(
        state: Option<&Arc<Self>>,
        scope: &Scope<'_>,
        known: KnownTypes<'_>,
        w: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        let Some(state) = state else {
            return w.null_value();
        };
        let identity = (Arc::as_ptr(state).addr(), TypeId::of::<Self>());
        if let Some(position) = w.value_position(identity) {
            return w.value_indirection(position);
        }
        let found = find(scope, &state.repository_id, known).ok_or(EncodeError::WrongType)?;
        w.value(&state.repository_id, identity, false, |w| {
            w.keep_value(Arc::clone(state) as _);
            found.in_scope(scope, |scope| state.write(scope, known, w))
        })
    }

    fn write(
        &self,
        scope: &Scope<'_>,
        known: KnownTypes<'_>,
        w: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        let mut members = self.members.iter();
        let mut next = |type_code: &TypeCode, scope: &Scope<'_>| {
            let member = members.next().ok_or(EncodeError::WrongType)?;
            value::encode(member, &scope.inside(type_code), known, w)
        };
        if let Shape::ValueBox(boxed) = scope.type_code.shape() {
            next(&boxed.content, scope)?;
        } else if is_custom(scope.type_code) {
            return Err(EncodeError::WrongType);
        } else {
            scope.each_state_member(&mut |member, scope| next(&member.type_code, scope))?;
        }
        members
            .next()
            .map_or(Ok(()), |_| Err(EncodeError::WrongType))
    }
}

/// Omits the members: a few shared values in a message could make the text endless.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.members.len();
        write!(f, "State({}, {count} members)", self.repository_id)
    }
}

/// The type of a state.
#[derive(Debug)]
pub enum StateType {
    /// The expected type.
    Expected,
    /// A type that derives from the expected one.
    Derived(TypeCode),
}

impl StateType {
    /// Calls `work` with the scope of the type. `expected` is the scope of the expected type.
    pub fn in_scope<T>(&self, expected: &Scope<'_>, work: impl FnOnce(&Scope<'_>) -> T) -> T {
        match self {
            Self::Expected => work(expected),
            Self::Derived(type_code) => work(&Scope::new(type_code)),
        }
    }
}

/// Finds the type with the repository id `id` where the type of `scope` is expected; `None` if it is unknown or does not derive from
/// the expected type.
pub fn find(scope: &Scope<'_>, id: &str, known: KnownTypes<'_>) -> Option<StateType> {
    let expected = scope.type_code;
    let formal_id = expected.repository_id().unwrap_or_default();
    let is_abstract = match expected.shape() {
        Shape::Value(value) | Shape::Event(value) => value.modifier == ABSTRACT,
        Shape::Named(kind, _) => *kind == Kind::AbstractInterface,
        _ => false,
    };
    let takes_all = is_abstract || formal_id == VALUE_BASE;
    if id == formal_id && !takes_all {
        return Some(StateType::Expected);
    }
    let found = known(id)?;
    let is_value = matches!(found.kind(), Kind::Value | Kind::Event | Kind::ValueBox);
    (is_value && (takes_all || found.derives_from(formal_id))).then_some(StateType::Derived(found))
}

fn is_custom(type_code: &TypeCode) -> bool {
    match type_code.shape() {
        Shape::Value(value) | Shape::Event(value) => value.modifier == CUSTOM,
        _ => false,
    }
}

/// The repository id of `ValueBase`, the base of every valuetype.
pub const VALUE_BASE: &str = "IDL:omg.org/CORBA/ValueBase:1.0";

/// Modifiers of a valuetype (CORBA 3, `ValueModifier`).
const CUSTOM: i16 = 1;
const ABSTRACT: i16 = 2;
