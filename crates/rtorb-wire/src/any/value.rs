//! A value decoded by its TypeCode, for tools that learn the type at run time.

use super::state::{KnownTypes, NOTHING_KNOWN, State};
use super::{Any, check_bound, unsupported};
use crate::cdr::{LongDouble, WChar, WString};
use crate::ior::Ior;
use crate::type_code::{Kind, Label, Scope, Shape, TypeCode, Union, read_label, write_label};
use crate::{Decode, DecodeError, EncodeError, Reader, Writer};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// A value of any IDL type.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null` or `void`
    Nothing,
    /// `boolean`
    Boolean(bool),
    /// `octet`
    Octet(u8),
    /// `short`
    Short(i16),
    /// `unsigned short`
    UShort(u16),
    /// `long`
    Long(i32),
    /// `unsigned long`
    ULong(u32),
    /// `long long`
    LongLong(i64),
    /// `unsigned long long`
    ULongLong(u64),
    /// `float`
    Float(f32),
    /// `double`
    Double(f64),
    /// `long double`
    LongDouble(LongDouble),
    /// `char`
    Char(char),
    /// `wchar`
    WChar(char),
    /// `string`
    String(String),
    /// `wstring`
    WString(String),
    /// `fixed`: the number times 10 to the power of the type's scale.
    Fixed(i128),
    /// The ordinal of an enumerator.
    Enum(u32),
    /// The members of a struct or exception in order.
    Members(Vec<Value>),
    /// A union.
    Union {
        /// Its discriminator.
        discriminator: Label,
        /// The member that it selects, if any.
        value: Option<Box<Value>>,
    },
    /// The elements of a sequence or array.
    Elements(Vec<Value>),
    /// The bytes of a sequence or array of octets.
    Octets(Vec<u8>),
    /// `any`
    Any(Any),
    /// `TypeCode`
    TypeCode(TypeCode),
    /// An object reference.
    Reference(Ior),
    /// A valuetype, boxed or not; `None` is the null value. Shared values are one `Arc`.
    Valuetype(Option<Arc<State>>),
}

impl Value {
    /// Reads a value of `type_code`. A derived valuetype is truncated to the type that `type_code` names, if its sender allows it.
    ///
    /// # Errors
    /// When the bytes are not such a value, or no value of its kind can be received (local interfaces, custom valuetypes).
    pub fn decode(type_code: &TypeCode, r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_with(type_code, NOTHING_KNOWN, r)
    }

    /// Reads a value of `type_code`, with derived valuetypes that `known` finds.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_with(
        type_code: &TypeCode,
        known: KnownTypes<'_>,
        r: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        decode(&Scope::new(type_code), known, r)
    }

    /// Returns the label of a union whose discriminator has this value; `None` if no discriminator can have it.
    pub fn label(&self) -> Option<Label> {
        Some(match self {
            Self::Boolean(value) => Label::from(*value),
            Self::Octet(value) => Label::from(*value),
            Self::Short(value) => Label::from(*value),
            Self::UShort(value) => Label::from(*value),
            Self::Long(value) => Label::from(*value),
            Self::ULong(value) => Label::from(*value),
            Self::LongLong(value) => *value,
            Self::ULongLong(value) => value.cast_signed(),
            Self::Char(value) | Self::WChar(value) => Label::from(u32::from(*value)),
            Self::Enum(ordinal) => Label::from(*ordinal),
            _ => return None,
        })
    }

    /// Writes the value as one of `type_code`.
    ///
    /// # Errors
    /// [`EncodeError::WrongType`] when it is of another type, or another error when it cannot be sent.
    pub fn encode(&self, type_code: &TypeCode, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        self.encode_with(type_code, NOTHING_KNOWN, w)
    }

    /// Writes the value as one of `type_code`, with derived valuetypes that `known` finds.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_with(
        &self,
        type_code: &TypeCode,
        known: KnownTypes<'_>,
        w: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        encode(self, &Scope::new(type_code), known, w)
    }

    /// The number of elements of a sequence or array.
    fn elements(&self) -> Option<usize> {
        match self {
            Self::Elements(items) => Some(items.len()),
            Self::Octets(bytes) => Some(bytes.len()),
            _ => None,
        }
    }
}

pub(super) fn decode(
    scope: &Scope<'_>,
    known: KnownTypes<'_>,
    r: &mut Reader<'_>,
) -> Result<Value, DecodeError> {
    let scope = &scope.resolved().ok_or(DecodeError::bad_type_code(0))?;
    let type_code = scope.type_code;
    let part = |part, r: &mut Reader<'_>| decode(&scope.inside(part), known, r);
    Ok(match type_code.shape() {
        Shape::Plain(kind) => return decode_plain(*kind, r),
        Shape::String { bound } => {
            let text = r.str()?.into_owned();
            check_bound(text.chars().count(), *bound)?;
            Value::String(text)
        }
        Shape::WString { bound } => {
            let WString(text) = WString::decode(r)?;
            check_bound(text.chars().count(), *bound)?;
            Value::WString(text)
        }
        Shape::Fixed { digits, .. } => Value::Fixed(r.fixed_decimal(*digits)?),
        Shape::Enum(_) => Value::Enum(read_label(type_code, r)? as u32),
        Shape::Sequence(elements) => {
            let count = r.count(1)?;
            check_bound(count, elements.count)?;
            return r.nested(|r| decode_run(&scope.inside(&elements.element), count, known, r));
        }
        Shape::Array(elements) => {
            let count = elements.count as usize;
            return r.step(|r| decode_run(&scope.inside(&elements.element), count, known, r));
        }
        Shape::Struct(aggregate) | Shape::Except(aggregate) => r.step(|r| {
            if let Shape::Except(_) = type_code.shape() {
                r.string_bytes()?;
            }
            let members = aggregate.members.iter();
            let members = members.map(|member| part(&member.type_code, r));
            members.collect::<Result<_, _>>().map(Value::Members)
        })?,
        Shape::Union(union) => {
            let discriminator = read_label(&union.discriminator, r)?;
            let member = union.select(discriminator);
            let value = member.map(|member| r.step(|r| part(&member.type_code, r)));
            Value::Union {
                discriminator,
                value: value.transpose()?.map(Box::new),
            }
        }
        Shape::Named(Kind::ObjectReference | Kind::Component | Kind::Home, _) => {
            Value::Reference(Ior::decode(r)?)
        }
        //= GIOP 1.2 §15.3.7
        //# An abstract interface is a boolean, and an object reference if it is true or a valuetype if it is false.
        Shape::Named(Kind::AbstractInterface, _) if r.primitive::<u8>()? != 0 => {
            Value::Reference(Ior::decode(r)?)
        }
        Shape::Named(Kind::AbstractInterface, _)
        | Shape::ValueBox(_)
        | Shape::Value(_)
        | Shape::Event(_) => Value::Valuetype(State::decode(scope, known, r)?),
        Shape::Named(kind, _) => return Err(unsupported(*kind)),
        // Aliases and recursive types are resolved above.
        Shape::Alias(_) | Shape::Recursive(_) => return Err(DecodeError::bad_type_code(0)),
    })
}

fn decode_plain(kind: Kind, r: &mut Reader<'_>) -> Result<Value, DecodeError> {
    Ok(match kind {
        Kind::Null | Kind::Void => Value::Nothing,
        Kind::Boolean => Value::Boolean(Decode::decode(r)?),
        Kind::Octet => Value::Octet(Decode::decode(r)?),
        Kind::Short => Value::Short(Decode::decode(r)?),
        Kind::UShort => Value::UShort(Decode::decode(r)?),
        Kind::Long => Value::Long(Decode::decode(r)?),
        Kind::ULong => Value::ULong(Decode::decode(r)?),
        Kind::LongLong => Value::LongLong(Decode::decode(r)?),
        Kind::ULongLong => Value::ULongLong(Decode::decode(r)?),
        Kind::Float => Value::Float(Decode::decode(r)?),
        Kind::Double => Value::Double(Decode::decode(r)?),
        Kind::LongDouble => Value::LongDouble(Decode::decode(r)?),
        Kind::Char => Value::Char(Decode::decode(r)?),
        Kind::WChar => Value::WChar(WChar::decode(r)?.0),
        Kind::Any => Value::Any(Decode::decode(r)?),
        Kind::TypeCode => Value::TypeCode(Decode::decode(r)?),
        Kind::Principal => Value::Octets(r.octets()?.to_vec()),
        other => return Err(DecodeError::bad_type_code(other as u32)),
    })
}

fn decode_run(
    scope: &Scope<'_>,
    count: usize,
    known: KnownTypes<'_>,
    r: &mut Reader<'_>,
) -> Result<Value, DecodeError> {
    if scope.type_code.unaliased().kind() == Kind::Octet {
        return Ok(Value::Octets(r.take(count)?.to_vec()));
    }
    // Reserves nothing: the length of an array comes from the TypeCode, so the vector grows with the bytes received.
    let mut elements = Vec::new();
    for _ in 0..count {
        elements.push(decode(scope, known, r)?);
    }
    Ok(Value::Elements(elements))
}

pub(super) fn encode(
    value: &Value,
    scope: &Scope<'_>,
    known: KnownTypes<'_>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    let scope = &scope.resolved().ok_or(EncodeError::IncompleteTypeCode)?;
    let type_code = scope.type_code;
    let part = |value, part, w: &mut Writer<'_>| encode(value, &scope.inside(part), known, w);
    match (type_code.shape(), value) {
        (Shape::Plain(kind), value) => encode_plain(value, *kind, w),
        (Shape::String { bound }, Value::String(text)) => {
            fits(text.chars().count(), *bound)?;
            w.str(text)
        }
        (Shape::WString { bound }, Value::WString(text)) => {
            fits(text.chars().count(), *bound)?;
            w.wide_str(text)
        }
        (Shape::Fixed { digits, .. }, Value::Fixed(unscaled)) => {
            w.fixed_decimal(*unscaled, *digits)
        }
        (Shape::Enum(enumeration), Value::Enum(ordinal)) => {
            if *ordinal as usize >= enumeration.enumerators.len() {
                return Err(EncodeError::WrongType);
            }
            w.primitive(*ordinal)
        }
        (Shape::Sequence(elements), value) => {
            let count = value.elements().ok_or(EncodeError::WrongType)?;
            fits(count, elements.count)?;
            w.count(count)?;
            encode_run(value, &scope.inside(&elements.element), known, w)
        }
        (Shape::Array(elements), value) if value.elements() == Some(elements.count as usize) => {
            encode_run(value, &scope.inside(&elements.element), known, w)
        }
        (Shape::Struct(aggregate) | Shape::Except(aggregate), Value::Members(values))
            if values.len() == aggregate.members.len() =>
        {
            if let Shape::Except(_) = type_code.shape() {
                w.str(&aggregate.named.id)?;
            }
            let mut pairs = values.iter().zip(&aggregate.members);
            pairs.try_for_each(|(value, member)| part(value, &member.type_code, w))
        }
        (Shape::Union(union), value) => {
            let member = union_member(union, value, w)?;
            member.map_or(Ok(()), |(member, value)| part(value, member, w))
        }
        (
            Shape::Named(Kind::ObjectReference | Kind::Component | Kind::Home, _),
            Value::Reference(ior),
        ) => ior.write(w),
        (Shape::Named(Kind::AbstractInterface, _), value) => {
            encode_abstract(value, scope, known, w)
        }
        (Shape::ValueBox(_) | Shape::Value(_) | Shape::Event(_), Value::Valuetype(state)) => {
            State::encode(state.as_ref(), scope, known, w)
        }
        // Aliases and recursive types are resolved above.
        _ => Err(EncodeError::WrongType),
    }
}

fn encode_plain(value: &Value, kind: Kind, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    match (kind, value) {
        (Kind::Null | Kind::Void, Value::Nothing) => Ok(()),
        (Kind::Boolean, Value::Boolean(value)) => w.primitive(u8::from(*value)),
        (Kind::Octet, Value::Octet(value)) => w.primitive(*value),
        (Kind::Short, Value::Short(value)) => w.primitive(*value),
        (Kind::UShort, Value::UShort(value)) => w.primitive(*value),
        (Kind::Long, Value::Long(value)) => w.primitive(*value),
        (Kind::ULong, Value::ULong(value)) => w.primitive(*value),
        (Kind::LongLong, Value::LongLong(value)) => w.primitive(*value),
        (Kind::ULongLong, Value::ULongLong(value)) => w.primitive(*value),
        (Kind::Float, Value::Float(value)) => w.primitive(*value),
        (Kind::Double, Value::Double(value)) => w.primitive(*value),
        (Kind::LongDouble, Value::LongDouble(value)) => w.long_double(*value),
        (Kind::Char, Value::Char(value)) => w.char(*value),
        (Kind::WChar, Value::WChar(value)) => w.wide_char(WChar(*value)),
        (Kind::Any, Value::Any(any)) => any.write(w),
        (Kind::TypeCode, Value::TypeCode(type_code)) => type_code.write(w),
        (Kind::Principal, Value::Octets(bytes)) => w.counted_bytes(bytes),
        _ => Err(EncodeError::WrongType),
    }
}

/// Writes the discriminator of a union; returns the type and the value of the member that it selects.
fn union_member<'v>(
    union: &'v Union,
    value: &'v Value,
    w: &mut Writer<'_>,
) -> Result<Option<(&'v TypeCode, &'v Value)>, EncodeError> {
    let Value::Union {
        discriminator,
        value,
    } = value
    else {
        return Err(EncodeError::WrongType);
    };
    write_label(&union.discriminator, *discriminator, w)?;
    match (union.select(*discriminator), value) {
        (Some(member), Some(value)) => Ok(Some((&member.type_code, value))),
        (None, None) => Ok(None),
        _ => Err(EncodeError::WrongDiscriminator),
    }
}

/// Writes a reference or a valuetype where an abstract interface is expected.
fn encode_abstract(
    value: &Value,
    scope: &Scope<'_>,
    known: KnownTypes<'_>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    match value {
        Value::Reference(ior) => {
            w.primitive(1u8)?;
            ior.write(w)
        }
        Value::Valuetype(state) => {
            w.primitive(0u8)?;
            State::encode(state.as_ref(), scope, known, w)
        }
        _ => Err(EncodeError::WrongType),
    }
}

fn encode_run(
    value: &Value,
    scope: &Scope<'_>,
    known: KnownTypes<'_>,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    match value {
        Value::Elements(items) => {
            let mut items = items.iter();
            items.try_for_each(|item| encode(item, scope, known, w))
        }
        Value::Octets(bytes) if scope.type_code.unaliased().kind() == Kind::Octet => {
            w.octets(bytes)
        }
        _ => Err(EncodeError::WrongType),
    }
}

fn fits(count: usize, bound: u32) -> Result<(), EncodeError> {
    check_bound(count, bound).map_err(|_| EncodeError::WrongType)
}
