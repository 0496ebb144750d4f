//! Valuetypes: handed over by value, and yet nil or shared (CORBA 3, "Value Types" of CDR).
//!
//! A value is an `Arc`: one that a message holds twice is sent once, and comes out as one `Arc` again. State is read in
//! one piece or in one chunk; it is written in one piece.

use crate::any::Typed;
use crate::cdr::{Chunk, ValueHead, ValueStart};
use crate::type_code::{self, Named, Shape, TypeCode, ValueMember, Visibility};
use crate::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};
use core::any::TypeId;
use std::sync::Arc;

/// A type made of an IDL valuetype. Its [`Encode`] and [`Decode`] are those of its state alone: what goes into a
/// message is an `Option<Arc<Self>>`.
pub trait ValueType: Encode + Decode + Send + Sync + 'static {
    /// Its repository id.
    const REPOSITORY_ID: &'static str;
}

impl<T: ValueType> Encode for Option<Arc<T>> {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        match self {
            Some(value) => write(value, w),
            None => w.null_value(),
        }
    }
}

impl<T: ValueType> Encode for Option<&Arc<T>> {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        match self {
            Some(value) => write(value, w),
            None => w.null_value(),
        }
    }
}

impl<T: ValueType> Decode for Option<Arc<T>> {
    const OCTETS_MIN: usize = 4;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.value_head()? {
            ValueHead::Null => Ok(None),
            ValueHead::Again { position } => {
                let value = r.value_at(position).and_then(|value| value.downcast().ok());
                value.map(Some).ok_or(DecodeError::UnknownValue)
            }
            ValueHead::Value(start) => r
                .keep_value(start.position, |r| read_state::<T>(&start, r))
                .map(Some),
        }
    }
}

/// A value's type is that of its state.
impl<T: Typed + ValueType> Typed for Option<Arc<T>> {
    fn type_code() -> TypeCode {
        T::type_code()
    }
}

/// The TypeCode of a valuetype that adds `members` (true for public ones) to those of `base` ([`TypeCode::NULL`] for none).
///
/// `modifier` is 0 for none, 1 for custom, 2 for abstract, 3 for truncatable.
pub fn type_code<'s>(
    id: &str,
    name: &str,
    modifier: i16,
    base: TypeCode,
    members: impl IntoIterator<Item = (&'s str, TypeCode, bool)>,
) -> TypeCode {
    let members = members
        .into_iter()
        .map(|(name, type_code, is_public)| ValueMember {
            name: name.into(),
            type_code,
            visibility: if is_public {
                Visibility::Public
            } else {
                Visibility::Private
            },
        });
    let value = type_code::ValueType::new(Named::new(id, name), modifier, base, members.collect());
    TypeCode::from_shape(Shape::Value(Arc::new(value)))
}

/// The TypeCode of a boxed valuetype.
pub fn box_type_code(id: &str, name: &str, content: TypeCode) -> TypeCode {
    let alias = type_code::Alias::new(Named::new(id, name), content);
    TypeCode::from_shape(Shape::ValueBox(Arc::new(alias)))
}

fn write<'a, T: ValueType>(value: &'a Arc<T>, w: &mut Writer<'a>) -> Result<(), EncodeError> {
    // The message borrows the value, so that no other can come to lie at its address meanwhile.
    let identity = (Arc::as_ptr(value).addr(), TypeId::of::<T>());
    if let Some(position) = w.value_position(identity) {
        return w.value_again(position);
    }
    let position = w.begin_value(&[T::REPOSITORY_ID], false)?;
    w.open_value(identity, position)?;
    let written = T::encode(value, w);
    w.close_value();
    written
}

/// Reads the state of a value of type `T`, or of one that may be truncated to it.
fn read_state<T: ValueType>(start: &ValueStart<'_>, r: &mut Reader<'_>) -> Result<T, DecodeError> {
    let is_expected = |id: &&[u8]| *id == T::REPOSITORY_ID.as_bytes();
    let is_exact = start.repository_ids.first().is_none_or(is_expected);
    let can_be_truncated = start.chunked && start.repository_ids.iter().any(is_expected);
    if !is_exact && !can_be_truncated {
        return Err(DecodeError::UnknownValue);
    }
    if !start.chunked {
        return T::decode(r);
    }
    let Chunk::State(octets) = r.chunk()? else {
        return Err(DecodeError::UnknownValue);
    };
    let end = r.position().saturating_add(octets);
    let state = r.in_chunk(T::decode)?;
    let left = end
        .checked_sub(r.position())
        .ok_or(DecodeError::UnknownValue)?;
    if is_exact && left > 0 {
        return Err(DecodeError::UnknownValue);
    }
    r.take(left)?;
    match r.skip_chunks(OUTERMOST)? {
        OUTERMOST => Ok(state),
        _ => Err(DecodeError::UnknownValue),
    }
}

/// The depth of a chunked value that is inside no other.
const OUTERMOST: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ByteOrder;

    #[derive(Debug, PartialEq)]
    struct Link {
        number: i32,
        next: Option<Arc<Link>>,
    }

    impl Encode for Link {
        fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
            self.number.encode(w)?;
            self.next.encode(w)
        }
    }

    impl Decode for Link {
        const OCTETS_MIN: usize = 8;
        fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                number: Decode::decode(r)?,
                next: Decode::decode(r)?,
            })
        }
    }

    impl ValueType for Link {
        const REPOSITORY_ID: &'static str = "IDL:Link:1.0";
    }

    #[derive(Debug, PartialEq)]
    struct V(i32);

    impl Encode for V {
        fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
            self.0.encode(w)
        }
    }

    impl Decode for V {
        const OCTETS_MIN: usize = 4;
        fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
            Decode::decode(r).map(Self)
        }
    }

    impl ValueType for V {
        const REPOSITORY_ID: &'static str = "IDL:V:1.0";
    }

    type Values = Vec<Option<Arc<V>>>;

    fn octets(values: &impl Encode, order: ByteOrder) -> Vec<u8> {
        let mut w = Writer::new(Vec::new(), 1 << 20).with_order(order);
        values.encode(&mut w).expect("it can be sent");
        w.into_octets()
    }

    /// Golden vectors V21 and V22, behind the null value.
    #[test]
    fn a_value_is_written_once_and_referred_to_after() {
        let value = Some(Arc::new(V(7)));
        let written = octets(&[value.clone(), value], ByteOrder::Little);
        let head = b"\x02\xff\xff\x7f\x0a\0\0\0IDL:V:1.0\0\0\0\x07\0\0\0";
        assert_eq!(
            written,
            [&head[..], b"\xff\xff\xff\xff\xe4\xff\xff\xff"].concat()
        );
    }

    #[test]
    fn shared_values_and_nil_come_out_as_they_went_in() {
        let value = Some(Arc::new(V(7)));
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let written = octets(
                &vec![value.clone(), None, value.clone(), Some(Arc::new(V(7)))],
                order,
            );
            let mut r = Reader::new(&written, order);
            let read = Values::decode(&mut r).unwrap();
            assert_eq!((r.remaining(), &read[1]), (0, &None));
            let [Some(first), None, Some(second), Some(third)] = &read[..] else {
                panic!("{read:?}")
            };
            assert!(Arc::ptr_eq(first, second) && !Arc::ptr_eq(first, third));
            assert_eq!(first, third);
        }
    }

    #[test]
    fn lists_nest_and_end_before_the_stack_does() {
        let list =
            |length| (0..length).fold(None, |next, number| Some(Arc::new(Link { number, next })));
        let written = octets(&list(40), ByteOrder::NATIVE);
        let read =
            <Option<Arc<Link>>>::decode(&mut Reader::new(&written, ByteOrder::NATIVE)).unwrap();
        assert_eq!(read, list(40));
        let long = list(1000);
        let mut w = Writer::new(Vec::new(), 1 << 20);
        assert!(matches!(
            long.encode(&mut w),
            Err(EncodeError::TooDeep { .. })
        ));
    }

    /// Each link refers to the one before: a few octets a link, and a stack frame for each when they are dropped.
    #[test]
    fn references_make_no_list_that_is_deeper_than_its_octets() {
        let mut w = Writer::new(Vec::new(), 1 << 24);
        w.count(100_000).expect("it fits");
        let mut before = None;
        for _ in 0..100_000 {
            let position = w.begin_value(&[], false).expect("it fits");
            w.primitive(1i32).expect("it fits");
            match before {
                Some(before) => w.value_again(before),
                None => w.null_value(),
            }
            .expect("it fits");
            before = Some(position);
        }
        let octets = w.into_octets();
        let mut r = Reader::new(&octets, ByteOrder::NATIVE);
        let read = Vec::<Option<Arc<Link>>>::decode(&mut r);
        assert!(matches!(read, Err(DecodeError::TooDeep { .. })));
    }

    /// Golden vector V20, and the same with a derived type that may be truncated.
    #[test]
    fn a_value_in_a_chunk_is_read_and_truncated() {
        let chunked =
            b"\x0a\xff\xff\x7f\x0a\0\0\0IDL:V:1.0\0\0\0\x04\0\0\0\x07\0\0\0\xff\xff\xff\xff";
        let mut r = Reader::new(chunked, ByteOrder::Little);
        assert_eq!(<Option<Arc<V>>>::decode(&mut r), Ok(Some(Arc::new(V(7)))));
        assert_eq!(r.remaining(), 0);
        let derived =
            b"\x0e\xff\xff\x7f\x02\0\0\0\x0a\0\0\0IDL:W:1.0\0\0\0\x0a\0\0\0IDL:V:1.0\0\0\0\
            \x08\0\0\0\x07\0\0\0\x09\0\0\0\x04\0\0\0\x0a\0\0\0\xff\xff\xff\xff";
        let mut r = Reader::new(derived, ByteOrder::Little);
        assert_eq!(<Option<Arc<V>>>::decode(&mut r), Ok(Some(Arc::new(V(7)))));
        assert_eq!(r.remaining(), 0);
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        let written = octets(&Some(Arc::new(V(7))), ByteOrder::NATIVE);
        let read = <Option<Arc<Link>>>::decode(&mut Reader::new(&written, ByteOrder::NATIVE));
        assert_eq!(read, Err(DecodeError::UnknownValue));
        let again =
            b"\x02\xff\xff\x7f\x0a\0\0\0IDL:V:1.0\0\0\0\x07\0\0\0\xff\xff\xff\xff\xe8\xff\xff\xff";
        let mut r = Reader::new(again, ByteOrder::Little);
        assert!(<[Option<Arc<V>>; 2]>::decode(&mut r).is_err());
    }
}
