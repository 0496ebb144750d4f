//! Copies values between streams with different byte order, alignment or code set, by their TypeCode.

use super::state::{NOTHING_KNOWN, State};
use super::{check_bound, layout, unsupported};
use crate::cdr::{LongDouble, Primitive, WChar, WString};
use crate::type_code::{Kind, Scope, Shape, TypeCode, read_label, write_label};
use crate::{Decode, DecodeError, EncodeError, Reader, Writer};

/// The error of one side of a copy.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(transparent)]
pub(super) enum CopyError {
    Decode(#[from] DecodeError),
    Encode(#[from] EncodeError),
}

/// Copies one value of `type_code`.
pub(super) fn copy(
    type_code: &TypeCode,
    r: &mut Reader<'_>,
    w: &mut Writer<'_>,
) -> Result<(), CopyError> {
    value(&Scope::new(type_code), r, w)
}

fn value(scope: &Scope<'_>, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), CopyError> {
    let scope = &scope.resolved().ok_or(DecodeError::bad_type_code(0))?;
    let type_code = scope.type_code;
    match type_code.shape() {
        Shape::Plain(kind) => plain(*kind, r, w),
        Shape::String { bound } => string(*bound, r, w),
        Shape::WString { bound } => {
            let text = WString::decode(r)?;
            check_bound(text.chars().count(), *bound)?;
            Ok(w.wide_str(&text)?)
        }
        Shape::Fixed { digits, .. } => Ok(w.octets(r.take(usize::from(*digits) / 2 + 1)?)?),
        Shape::Enum(_) => Ok(write_label(type_code, read_label(type_code, r)?, w)?),
        Shape::Sequence(elements) => {
            let count = r.count(1)?;
            check_bound(count, elements.count)?;
            w.count(count)?;
            deeper(r, |r| run(&scope.inside(&elements.element), count, r, w))
        }
        Shape::Array(elements) => {
            let count = elements.count as usize;
            r.step(|r| run(&scope.inside(&elements.element), count, r, w))
        }
        Shape::Struct(aggregate) | Shape::Except(aggregate) => {
            if let Shape::Except(_) = type_code.shape() {
                // The repository id.
                string(0, r, w)?;
            }
            r.step(|r| {
                let mut members = aggregate.members.iter();
                members.try_for_each(|member| value(&scope.inside(&member.type_code), r, w))
            })
        }
        Shape::Union(union) => {
            let label = read_label(&union.discriminator, r)?;
            write_label(&union.discriminator, label, w)?;
            match union.select(label) {
                Some(member) => r.step(|r| value(&scope.inside(&member.type_code), r, w)),
                None => Ok(()),
            }
        }
        Shape::Named(Kind::ObjectReference | Kind::Component | Kind::Home, _) => reference(r, w),
        //= GIOP 1.2 §15.3.7
        //# An abstract interface is a boolean, and an object reference if it is true or a valuetype if it is false.
        Shape::Named(Kind::AbstractInterface, _) => {
            let is_reference = r.primitive::<u8>()? != 0;
            w.primitive(u8::from(is_reference))?;
            if is_reference {
                reference(r, w)
            } else {
                state(scope, r, w)
            }
        }
        Shape::ValueBox(_) | Shape::Value(_) | Shape::Event(_) => state(scope, r, w),
        Shape::Named(kind, _) => Err(unsupported(*kind).into()),
        // Aliases and recursive types are resolved above.
        Shape::Alias(_) | Shape::Recursive(_) => Err(DecodeError::bad_type_code(0).into()),
    }
}

/// Copies a valuetype. A derived type is truncated, because the any's TypeCode does not have its members.
fn state(scope: &Scope<'_>, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), CopyError> {
    let state = State::decode(scope, NOTHING_KNOWN, r)?;
    Ok(State::encode(state.as_ref(), scope, NOTHING_KNOWN, w)?)
}

fn plain(kind: Kind, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), CopyError> {
    match kind {
        Kind::Null | Kind::Void => Ok(()),
        Kind::Boolean => Ok(w.primitive(u8::from(r.primitive::<u8>()? != 0))?),
        Kind::Octet => number::<u8>(r, w),
        Kind::Short | Kind::UShort => number::<u16>(r, w),
        Kind::Long | Kind::ULong | Kind::Float => number::<u32>(r, w),
        Kind::LongLong | Kind::ULongLong | Kind::Double => number::<u64>(r, w),
        Kind::LongDouble => Ok(w.long_double(LongDouble::decode(r)?)?),
        Kind::Char => Ok(w.char(char::decode(r)?)?),
        Kind::WChar => Ok(w.wide_char(WChar::decode(r)?)?),
        Kind::Principal => Ok(w.counted_bytes(r.octets()?)?),
        Kind::TypeCode => Ok(TypeCode::decode(r)?.write(w)?),
        Kind::Any => deeper(r, |r| {
            let inner = TypeCode::decode(r)?;
            inner.write(w)?;
            copy(&inner, r, w)
        }),
        other => Err(DecodeError::bad_type_code(other as u32).into()),
    }
}

/// Copies the elements of a sequence or array: numbers in one piece if they need no change. `scope` is that of an element.
fn run(
    scope: &Scope<'_>,
    count: usize,
    r: &mut Reader<'_>,
    w: &mut Writer<'_>,
) -> Result<(), CopyError> {
    let element = scope.type_code;
    match element.unaliased().kind() {
        Kind::Octet => Ok(w.octets(r.take(count)?)?),
        Kind::Short | Kind::UShort => numbers::<u16>(count, r, w),
        Kind::Long | Kind::ULong | Kind::Float => numbers::<u32>(count, r, w),
        Kind::LongLong | Kind::ULongLong | Kind::Double => numbers::<u64>(count, r, w),
        _ if can_copy(element, r, w) => {
            let length = layout::run_length(element, count, r.position(), r.remaining());
            let bytes = r.take(length.unwrap_or(usize::MAX))?;
            Ok(w.octets(bytes)?)
        }
        _ => (0..count).try_for_each(|_| value(scope, r, w)),
    }
}

/// True if elements have the same bytes and padding on both sides, and are in one piece. A chunk may end inside them.
fn can_copy(element: &TypeCode, r: &Reader<'_>, w: &Writer<'_>) -> bool {
    let summary = element.summary();
    let distance = r.position() ^ w.position();
    let is_in_place = r.order() == w.order() && !r.is_inside_chunk();
    summary.fixed && is_in_place && distance & (usize::from(summary.alignment) - 1) == 0
}

fn number<T: Primitive>(r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), CopyError> {
    Ok(w.primitive(r.primitive::<T>()?)?)
}

fn numbers<T: Primitive>(
    count: usize,
    r: &mut Reader<'_>,
    w: &mut Writer<'_>,
) -> Result<(), CopyError> {
    if count == 0 {
        return Ok(());
    }
    if r.order() != w.order() {
        return (0..count).try_for_each(|_| number::<T>(r, w));
    }
    r.align(size_of::<T>())?;
    w.align(size_of::<T>())?;
    Ok(w.octets(r.take(count.saturating_mul(size_of::<T>()))?)?)
}

fn string(bound: u32, r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), CopyError> {
    let text = r.str()?;
    if bound != 0 {
        check_bound(text.chars().count(), bound)?;
    }
    Ok(w.str(&text)?)
}

/// Copies an IOR.
fn reference(r: &mut Reader<'_>, w: &mut Writer<'_>) -> Result<(), CopyError> {
    string(0, r, w)?;
    let profiles = r.count(8)?;
    w.count(profiles)?;
    for _ in 0..profiles {
        number::<u32>(r, w)?;
        w.counted_bytes(r.octets()?)?;
    }
    Ok(())
}

/// Runs `copy` one level deeper.
fn deeper(
    r: &mut Reader<'_>,
    copy: impl FnOnce(&mut Reader<'_>) -> Result<(), CopyError>,
) -> Result<(), CopyError> {
    r.enter()?;
    let copied = copy(r);
    r.leave();
    copied
}
