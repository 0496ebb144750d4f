//! TypeCodes on the wire, with the indirections of recursive types.
//!
//! Indirections are read everywhere, but written only for recursion, because some peers fail on others.

use super::shape::{
    Aggregate, Alias, Elements, Enumeration, Member, Named, Shape, Union, UnionMember,
    ValueAggregate, ValueMember, Visibility,
};
use super::{Kind, Label, Scope, TypeCode};
use crate::cdr::{DEPTH_MAX, DIGITS_MAX, WChar};
use crate::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::iter::successors;

impl Encode for TypeCode {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        self.write(w)
    }
}

impl TypeCode {
    /// Writes the TypeCode without lending its bytes.
    pub(crate) fn write(&self, w: &mut Writer<'_>) -> Result<(), EncodeError> {
        let max = Self::NODES_MAX;
        if self.nodes() > max {
            return Err(EncodeError::TypeCodeTooLarge { max });
        }
        write(self, w, None)
    }
}

impl Decode for TypeCode {
    const BYTES_MIN: usize = 4;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut decoder = Decoder {
            seen: Vec::new(),
            innermost: NONE,
            outermost: NONE,
            base: 0,
            start: r.position(),
            copied_bytes: 0,
        };
        decoder.type_code(r)
    }
}

const INDIRECTION: u32 = 0xffff_ffff;

/// The most types in a received type, each counted as often as it occurs.
///
/// With indirections, a few bytes can describe a type that is larger than memory.
const RECEIVED_NODES_MAX: u32 = 1 << 16;

/// A type that is being written. Its parts may refer to it.
struct Enclosing<'e> {
    id: &'e str,
    at: usize,
    outer: Option<&'e Enclosing<'e>>,
}

fn write(
    type_code: &TypeCode,
    w: &mut Writer<'_>,
    outer: Option<&Enclosing<'_>>,
) -> Result<(), EncodeError> {
    w.align(4)?;
    let enclosing = Enclosing {
        id: type_code.repository_id().unwrap_or(""),
        at: w.len(),
        outer,
    };
    let inside = Some(&enclosing);
    let shape = type_code.shape();
    if let Shape::Recursive(id) = shape {
        return write_indirection(id, w, outer);
    }
    w.primitive(type_code.kind() as u32)?;
    match shape {
        Shape::Plain(_) | Shape::Recursive(_) => Ok(()),
        Shape::String { bound } | Shape::WString { bound } => w.primitive(*bound),
        Shape::Fixed { digits, scale } => {
            w.primitive(*digits)?;
            w.primitive(*scale)
        }
        Shape::Sequence(elements) | Shape::Array(elements) => w.encapsulation(|w| {
            write(&elements.element, w, inside)?;
            w.primitive(elements.count)
        }),
        Shape::Struct(aggregate) | Shape::Except(aggregate) => w.encapsulation(|w| {
            write_named(&aggregate.named, w)?;
            w.count(aggregate.members.len())?;
            aggregate.members.iter().try_for_each(|member| {
                w.str(&member.name)?;
                write(&member.type_code, w, inside)
            })
        }),
        Shape::Union(union) => w.encapsulation(|w| write_union(union, w, inside)),
        Shape::Enum(enumeration) => w.encapsulation(|w| {
            write_named(&enumeration.named, w)?;
            w.count(enumeration.enumerators.len())?;
            enumeration
                .enumerators
                .iter()
                .try_for_each(|name| w.str(name))
        }),
        Shape::Alias(alias) | Shape::ValueBox(alias) => w.encapsulation(|w| {
            write_named(&alias.named, w)?;
            write(&alias.content, w, inside)
        }),
        Shape::Value(value) | Shape::Event(value) => {
            w.encapsulation(|w| write_value(value, w, inside))
        }
        Shape::Named(_, named) => w.encapsulation(|w| write_named(named, w)),
    }
}

fn write_indirection(
    id: &str,
    w: &mut Writer<'_>,
    outer: Option<&Enclosing<'_>>,
) -> Result<(), EncodeError> {
    let mut enclosing = successors(outer, |enclosing| enclosing.outer);
    let enclosing = enclosing.find(|enclosing| enclosing.id == id);
    let enclosing = enclosing.ok_or(EncodeError::IncompleteTypeCode)?;
    w.primitive(INDIRECTION)?;
    let offset = w.len() - enclosing.at;
    let offset = i32::try_from(offset).map_err(|_| EncodeError::CountTooLarge { count: offset })?;
    w.primitive(-offset)
}

fn write_named(named: &Named, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    w.str(&named.id)?;
    w.str(&named.name)
}

fn write_union(
    union: &Union,
    w: &mut Writer<'_>,
    inside: Option<&Enclosing<'_>>,
) -> Result<(), EncodeError> {
    write_named(&union.named, w)?;
    write(&union.discriminator, w, inside)?;
    w.primitive(union.default.map_or(-1, |index| index as i32))?;
    w.count(union.members.len())?;
    for (index, member) in (0..).zip(&union.members) {
        let label = if Some(index) == union.default {
            0
        } else {
            member.label
        };
        write_label(&union.discriminator, label, w)?;
        w.str(&member.name)?;
        write(&member.type_code, w, inside)?;
    }
    Ok(())
}

fn write_value(
    value: &ValueAggregate,
    w: &mut Writer<'_>,
    inside: Option<&Enclosing<'_>>,
) -> Result<(), EncodeError> {
    write_named(&value.named, w)?;
    w.primitive(value.modifier)?;
    write(&value.base, w, inside)?;
    w.count(value.members.len())?;
    for member in &value.members {
        w.str(&member.name)?;
        write(&member.type_code, w, inside)?;
        w.primitive(member.visibility as i16)?;
    }
    Ok(())
}

/// Writes a discriminator.
pub(crate) fn write_label(
    discriminator: &TypeCode,
    label: Label,
    w: &mut Writer<'_>,
) -> Result<(), EncodeError> {
    match discriminator.unaliased().kind() {
        Kind::Boolean | Kind::Char | Kind::Octet => w.primitive(label as u8),
        Kind::Short | Kind::UShort => w.primitive(label as u16),
        Kind::Long | Kind::ULong | Kind::Enum => w.primitive(label as u32),
        Kind::LongLong | Kind::ULongLong => w.primitive(label),
        Kind::WChar => {
            let character = u32::try_from(label).ok().and_then(char::from_u32);
            let character = character.ok_or(EncodeError::WrongType)?;
            w.wide_char(WChar(character))
        }
        _ => Err(EncodeError::WrongType),
    }
}

/// Reads a discriminator.
pub(crate) fn read_label(
    discriminator: &TypeCode,
    r: &mut Reader<'_>,
) -> Result<Label, DecodeError> {
    Ok(match discriminator.unaliased().shape() {
        Shape::Plain(Kind::Boolean) => Label::from(r.primitive::<u8>()? != 0),
        Shape::Plain(Kind::Char | Kind::Octet) => r.primitive::<u8>()?.into(),
        Shape::Plain(Kind::Short) => r.primitive::<i16>()?.into(),
        Shape::Plain(Kind::UShort) => r.primitive::<u16>()?.into(),
        Shape::Plain(Kind::Long) => r.primitive::<i32>()?.into(),
        Shape::Plain(Kind::ULong) => r.primitive::<u32>()?.into(),
        Shape::Plain(Kind::LongLong | Kind::ULongLong) => r.primitive()?,
        Shape::Plain(Kind::WChar) => u32::from(WChar::decode(r)?.0).into(),
        Shape::Enum(enumeration) => {
            let value = r.primitive::<u32>()?;
            if value as usize >= enumeration.enumerators.len() {
                return Err(DecodeError::BadEnum { value });
            }
            value.into()
        }
        _ => return Err(DecodeError::bad_type_code(discriminator.kind() as u32)),
    })
}

/// The decoder of one TypeCode with all types inside it.
struct Decoder {
    /// The types that an indirection may refer to, in order of their positions in the outermost stream.
    seen: Vec<(usize, Seen)>,
    /// The place in `seen` of the innermost type that is being read, or [`NONE`].
    innermost: usize,
    /// The place in `seen` of the outermost type to which recursive types in the innermost one refer, or [`NONE`].
    outermost: usize,
    /// The position of the current encapsulation in the outermost stream.
    base: usize,
    /// The position of the outermost TypeCode.
    start: usize,
    /// The size of the parts that were copied.
    copied_bytes: usize,
}

/// Larger than all places.
const NONE: usize = usize::MAX;

enum Seen {
    /// A type that is still being read, with its id once it is known. A type with an empty id has none.
    Open(Kind, Option<Arc<str>>),
    /// A finished type.
    Done(TypeCode, Option<Enclosed>),
}

/// The types around a finished type in which a recursive type refers to one of them. All are places in `seen`.
#[derive(Clone, Copy)]
struct Enclosed {
    /// The innermost type around it.
    by: usize,
    /// The outermost type to which it refers.
    outermost: usize,
}

impl Decoder {
    //= GIOP 1.2 §15.3.5.1
    //# A TypeCode is its kind and its parameters: none, inline, or in an encapsulation.
    fn type_code(&mut self, r: &mut Reader<'_>) -> Result<TypeCode, DecodeError> {
        r.align(4)?;
        let at = self.base.wrapping_add(r.position());
        let number = r.primitive::<u32>()?;
        if number == INDIRECTION {
            return self.indirection(r);
        }
        let kind = Kind::from_number(number).ok_or(DecodeError::bad_type_code(number))?;
        let index = self.seen.len();
        let (by, outermost) = (self.innermost, self.outermost);
        let shape = match kind {
            Kind::String => Shape::String {
                bound: r.primitive()?,
            },
            Kind::WString => Shape::WString {
                bound: r.primitive()?,
            },
            Kind::Fixed => fixed(r)?,
            _ if is_plain(kind) => return Ok(TypeCode::from_shape(Shape::Plain(kind))),
            // The parameters of the other kinds are in an encapsulation.
            _ => {
                self.seen.push((at, Seen::Open(kind, None)));
                self.innermost = index;
                self.outermost = NONE;
                r.nested(|r| self.complex(kind, r))?
            }
        };
        // A type without an encapsulation has no types inside: `outermost` is still that of the type around it.
        let refers_out = self.innermost == index && self.outermost < index;
        let enclosed = refers_out.then_some(Enclosed {
            by,
            outermost: self.outermost,
        });
        self.innermost = by;
        self.outermost = outermost.min(enclosed.map_or(NONE, |it| it.outermost));
        let type_code = TypeCode::from_shape(shape);
        let summary = type_code.summary();
        if summary.nodes > RECEIVED_NODES_MAX {
            return Err(DecodeError::bad_type_code(number));
        }
        // With indirections, a type can be nested deeper than its bytes.
        if summary.depth > DEPTH_MAX.into() {
            return Err(DecodeError::TooDeep { max: DEPTH_MAX });
        }
        let done = (at, Seen::Done(type_code.clone(), enclosed));
        match self.seen.get_mut(index) {
            Some(open) => *open = done,
            None => self.seen.push(done),
        }
        Ok(type_code)
    }

    //= GIOP 1.2 §15.3.5.1
    //# An indirection is 0xffffffff and an offset, back from its own position to an earlier TypeCode of the same outermost
    //# one. Offsets count through encapsulations, which restart only the alignment.
    fn indirection(&mut self, r: &mut Reader<'_>) -> Result<TypeCode, DecodeError> {
        r.align(4)?;
        let at = self.base.wrapping_add(r.position());
        let offset = r.primitive::<i32>()?;
        let bad = DecodeError::bad_type_code(offset as u32);
        let target = at.wrapping_add_signed(offset as isize);
        let found = self.seen.binary_search_by_key(&target, |seen| seen.0);
        let type_code = self.part(found.map_err(|_| bad)?, r)?;
        match type_code.unaliased().shape() {
            Shape::Recursive(id) if self.is_alias_of(id) => Err(bad),
            _ => Ok(type_code),
        }
    }

    /// The type at a place in `seen`, as a part of the innermost type that is being read.
    fn part(&mut self, place: usize, r: &mut Reader<'_>) -> Result<TypeCode, DecodeError> {
        let (type_code, enclosed) = match &self.seen[place].1 {
            Seen::Done(type_code, None) => return Ok(type_code.clone()),
            Seen::Done(type_code, Some(enclosed)) => (type_code.clone(), *enclosed),
            // A few bytes refer to an id of any length, so the id is shared.
            Seen::Open(_, Some(id)) => {
                self.outermost = self.outermost.min(place);
                return Ok(TypeCode::from_shape(Shape::Recursive(Arc::clone(id))));
            }
            // A recursive type is identified by its id, so a type without one cannot be recursive.
            Seen::Open(_, None) => return Err(DecodeError::bad_type_code(INDIRECTION)),
        };
        if self.is_open(enclosed.outermost) {
            self.outermost = self.outermost.min(enclosed.outermost);
        }
        // If the innermost is still being read, so are the others.
        if self.is_open(enclosed.by) {
            return Ok(type_code);
        }
        self.moved(&Scope::new(&type_code), enclosed.by, r)
    }

    fn is_open(&self, place: usize) -> bool {
        matches!(self.seen[place].1, Seen::Open(..))
    }

    /// The type of `scope`, which is a part of a finished type, or is in one, outside of that finished type: recursive types that refer to
    /// finished types are replaced by these. `by` is the place of the innermost type around the part.
    fn moved(
        &mut self,
        scope: &Scope<'_>,
        by: usize,
        r: &mut Reader<'_>,
    ) -> Result<TypeCode, DecodeError> {
        let shape = scope.type_code.shape();
        self.copied_bytes += size_of::<TypeCode>() + shape.text_bytes();
        let received = self
            .base
            .wrapping_add(r.position())
            .wrapping_sub(self.start);
        // The message may refer to the same part again and again.
        if self.copied_bytes > received.saturating_mul(16).saturating_add(4096) {
            return Err(DecodeError::bad_type_code(INDIRECTION));
        }
        r.nested(|r| match shape {
            Shape::Recursive(id) if scope.enclosing(id).is_none() => {
                let found = self.around(by, id);
                found.map_or_else(|| Ok(scope.type_code.clone()), |place| self.part(place, r))
            }
            _ => {
                let shape = shape.with_parts(&mut |part| self.moved(&scope.inside(part), by, r))?;
                Ok(TypeCode::from_shape(shape))
            }
        })
    }

    /// The place of the finished type with that id among the one at place `by` and those around it; `None` if it is still being read.
    fn around(&self, mut by: usize, id: &str) -> Option<usize> {
        loop {
            match &self.seen[by].1 {
                Seen::Done(type_code, _) if type_code.repository_id() == Some(id) => {
                    return Some(by);
                }
                Seen::Done(_, Some(enclosed)) => by = enclosed.by,
                // The types around one that is being read are being read too.
                _ => return None,
            }
        }
    }

    /// True if the type that is being read is the content of an alias with that id, or of an alias of such an alias. An alias that leads to
    /// itself names no type, and code that looks behind it would never end.
    fn is_alias_of(&self, id: &str) -> bool {
        // The content of an alias comes next behind it.
        let aliases = self.seen.iter().rev().map_while(|(_, seen)| match seen {
            Seen::Open(Kind::Alias, alias) => Some(alias),
            _ => None,
        });
        aliases.flatten().any(|alias| **alias == *id)
    }

    /// Reads parameters in an encapsulation.
    fn complex(&mut self, kind: Kind, r: &mut Reader<'_>) -> Result<Shape, DecodeError> {
        let mut inner = r.encapsulation()?;
        let bytes = inner.remaining() + 1;
        let outer_base = self.base;
        self.base = outer_base.wrapping_add(r.position()).wrapping_sub(bytes);
        let shape = self.parameters(kind, &mut inner);
        self.base = outer_base;
        shape
    }

    fn parameters(&mut self, kind: Kind, r: &mut Reader<'_>) -> Result<Shape, DecodeError> {
        if let Kind::Sequence | Kind::Array = kind {
            let element = self.content(r)?;
            let count = r.primitive()?;
            let elements = Elements { element, count }.into();
            return match (kind, count) {
                (Kind::Array, 0) => Err(DecodeError::bad_type_code(kind as u32)),
                (Kind::Array, _) => Ok(Shape::Array(elements)),
                _ => Ok(Shape::Sequence(elements)),
            };
        }
        let named = self.named(r)?;
        Ok(match kind {
            Kind::Struct => Shape::Struct(self.aggregate(named, r)?),
            Kind::Except => Shape::Except(self.aggregate(named, r)?),
            Kind::Union => Shape::Union(self.union(named, r)?),
            Kind::Enum => {
                let enumerators = list(r, 4, |r| Ok(r.type_text()?.into()))?;
                Shape::Enum(Enumeration { named, enumerators }.into())
            }
            Kind::Alias => Shape::Alias(self.alias(named, r)?),
            Kind::ValueBox => Shape::ValueBox(self.alias(named, r)?),
            Kind::Value => Shape::Value(self.value(named, r)?),
            Kind::Event => Shape::Event(self.value(named, r)?),
            _ => Shape::Named(kind, named.into()),
        })
    }

    /// Reads id and name, and records the id of the type that is being read.
    fn named(&mut self, r: &mut Reader<'_>) -> Result<Named, DecodeError> {
        let named = Named {
            id: r.type_text()?.into(),
            name: r.type_text()?.into(),
        };
        if let Some((_, Seen::Open(_, id))) = self.seen.last_mut() {
            *id = (!named.id.is_empty()).then(|| Arc::from(&*named.id));
        }
        Ok(named)
    }

    /// Reads the type of an element or a member.
    ///
    /// A value of it must have at least one byte. IDL has no empty structs, and a few bytes could describe endless work with them.
    fn content(&mut self, r: &mut Reader<'_>) -> Result<TypeCode, DecodeError> {
        let type_code = self.type_code(r)?;
        if type_code.summary().empty {
            return Err(DecodeError::bad_type_code(type_code.kind() as u32));
        }
        Ok(type_code)
    }

    fn alias(&mut self, named: Named, r: &mut Reader<'_>) -> Result<Arc<Alias>, DecodeError> {
        let content = self.content(r)?;
        Ok(Alias { named, content }.into())
    }

    fn aggregate(
        &mut self,
        named: Named,
        r: &mut Reader<'_>,
    ) -> Result<Arc<Aggregate>, DecodeError> {
        let members = list(r, MEMBER_BYTES_MIN, |r| {
            Ok(Member {
                name: r.type_text()?.into(),
                type_code: self.content(r)?,
            })
        })?;
        Ok(Aggregate { named, members }.into())
    }

    fn union(&mut self, named: Named, r: &mut Reader<'_>) -> Result<Arc<Union>, DecodeError> {
        let discriminator = self.type_code(r)?;
        let default = r.primitive::<i32>()?;
        let members = list(r, MEMBER_BYTES_MIN, |r| {
            Ok(UnionMember {
                label: read_label(&discriminator, r)?,
                name: r.type_text()?.into(),
                type_code: self.content(r)?,
            })
        })?;
        let default = match u32::try_from(default) {
            Ok(index) if (index as usize) < members.len() => Some(index),
            Err(_) if default == -1 => None,
            _ => return Err(DecodeError::bad_type_code(default as u32)),
        };
        Ok(Union::new(named, discriminator, default, members).into())
    }

    fn value(
        &mut self,
        named: Named,
        r: &mut Reader<'_>,
    ) -> Result<Arc<ValueAggregate>, DecodeError> {
        let modifier = r.primitive()?;
        let base = self.type_code(r)?;
        let members = list(r, MEMBER_BYTES_MIN, |r| {
            Ok(ValueMember {
                name: r.type_text()?.into(),
                type_code: self.content(r)?,
                visibility: match r.primitive::<i16>()? {
                    0 => Visibility::Private,
                    _ => Visibility::Public,
                },
            })
        })?;
        Ok(ValueAggregate {
            named,
            modifier,
            base,
            members,
        }
        .into())
    }
}

/// Reads the parameters of a `fixed`. With a larger scale, the text of one byte could be very long.
fn fixed(r: &mut Reader<'_>) -> Result<Shape, DecodeError> {
    let (digits, scale) = (r.primitive::<u16>()?, r.primitive::<i16>()?);
    if digits.max(scale.unsigned_abs()) > DIGITS_MAX {
        return Err(DecodeError::bad_type_code(Kind::Fixed as u32));
    }
    Ok(Shape::Fixed { digits, scale })
}

/// The fewest bytes of a member: the length of an empty name, and a kind.
const MEMBER_BYTES_MIN: usize = 8;

/// Reads a count and that many items. Memory grows with the bytes received.
fn list<'m, T>(
    r: &mut Reader<'m>,
    bytes_min: usize,
    mut item: impl FnMut(&mut Reader<'m>) -> Result<T, DecodeError>,
) -> Result<Box<[T]>, DecodeError> {
    let mut items = Vec::new();
    for _ in 0..r.count(bytes_min)? {
        items.push(item(r)?);
    }
    Ok(items.into())
}

/// True if the kind has no parameters.
const fn is_plain(kind: Kind) -> bool {
    use Kind::{LongDouble, LongLong, ULongLong, WChar};
    (kind as u32) < Kind::ObjectReference as u32
        || matches!(kind, LongLong | ULongLong | LongDouble | WChar)
}
