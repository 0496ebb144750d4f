//! Valuetypes: passed by value, but nil or shared (GIOP 1.2 §15.3.4).
//!
//! A value is an `Arc`. If a message contains it twice, it is sent once and received as one `Arc` again. State may be
//! received in chunks; only custom valuetypes, and values inside them, are sent in chunks.

mod candidate;

pub use candidate::{Candidate, read_one_of};

use crate::any::Typed;
use crate::cdr::{ValueHead, ValueStart};
use crate::type_code::{self, Alias, Kind, Named, Shape, TypeCode, ValueMember, Visibility};
use crate::{Decode, DecodeError, Encode, EncodeError, Reader, Writer};
use alloc::sync::Arc;
use core::any::TypeId;

/// The type of an IDL valuetype. Its [`Encode`] and [`Decode`] are those of its state; a message contains
/// `Option<Arc<Self>>`.
pub trait ValueType: Encode + Decode + Send + Sync + 'static {
    /// The repository id.
    const REPOSITORY_ID: &'static str;
    /// True if the application writes and reads the state. It is then sent in chunks.
    const CUSTOM: bool = false;
}

impl<T: ValueType> Encode for Option<Arc<T>> {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        write(self.as_ref(), w)
    }
}

impl<T: ValueType> Encode for Option<&Arc<T>> {
    fn encode<'a>(&'a self, w: &mut Writer<'a>) -> Result<(), EncodeError> {
        write(*self, w)
    }
}

impl<T: ValueType> Decode for Option<Arc<T>> {
    const BYTES_MIN: usize = 4;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.approach_value();
        match r.value_head()? {
            ValueHead::Null => Ok(None),
            ValueHead::Indirection { position } => {
                let value = r.value_at(position)?.downcast();
                value.map(Some).map_err(|_| DecodeError::UnknownValue)
            }
            ValueHead::Value(start) => r
                .keep_value(start.position, |r| read_state::<T>(&start, r))
                .map(Some),
        }
    }
}

/// The IDL type of a value is that of its state.
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
    let value = described(Named::new(id, name), modifier, base, members);
    TypeCode::from_shape(Shape::Value(value))
}

/// The TypeCode of an eventtype, with the parameters of [`type_code()`].
pub fn event_type_code<'s>(
    id: &str,
    name: &str,
    modifier: i16,
    base: TypeCode,
    members: impl IntoIterator<Item = (&'s str, TypeCode, bool)>,
) -> TypeCode {
    let value = described(Named::new(id, name), modifier, base, members);
    TypeCode::from_shape(Shape::Event(value))
}

/// The TypeCode of a boxed valuetype.
pub fn box_type_code(id: &str, name: &str, content: TypeCode) -> TypeCode {
    let named = Named::new(id, name);
    TypeCode::from_shape(Shape::ValueBox(Alias { named, content }.into()))
}

fn described<'s>(
    named: Named,
    modifier: i16,
    base: TypeCode,
    members: impl IntoIterator<Item = (&'s str, TypeCode, bool)>,
) -> Arc<type_code::ValueAggregate> {
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
    Arc::new(type_code::ValueAggregate {
        named,
        modifier,
        base,
        members: members.collect(),
    })
}

/// Writes a value, or null.
///
/// # Errors
/// When the state cannot be sent, or the message would exceed its limit.
//= GIOP 1.2 §15.3.4
//# A value that occurs twice in a message is sent once, and then as an indirection to the first.
pub fn write<'a, T: ValueType>(
    value: Option<&'a Arc<T>>,
    w: &mut Writer<'a>,
) -> Result<(), EncodeError> {
    let Some(value) = value else {
        return w.null_value();
    };
    // The message borrows the value, so no other value can get its address meanwhile.
    let identity = (Arc::as_ptr(value).addr(), TypeId::of::<T>());
    if let Some(position) = w.value_position(identity) {
        return w.value_indirection(position);
    }
    w.value(T::REPOSITORY_ID, identity, T::CUSTOM, |w| {
        T::encode(value, w)
    })
}

/// Reads the state of a value of type `T`, or of a derived type that may be truncated to `T`.
fn read_state<T: ValueType>(start: &ValueStart<'_>, r: &mut Reader<'_>) -> Result<T, DecodeError> {
    let is_expected = |id: &&[u8]| *id == T::REPOSITORY_ID.as_bytes();
    let is_exact = start.repository_ids.first().is_none_or(is_expected);
    let can_be_truncated = start.chunked && start.repository_ids.iter().any(is_expected);
    if !is_exact && !can_be_truncated {
        return Err(DecodeError::UnknownValue);
    }
    r.value_state(start, is_exact, T::decode)
}

/// Writes the head of an abstract interface's reference; if `is_nil`, all of it.
///
/// # Errors
/// When the message would exceed its limit.
//= GIOP 1.2 §15.3.7
//# An abstract interface is a boolean: true before an object reference, false before a value. Nil is the null value.
pub fn write_abstract_head(w: &mut Writer<'_>, is_nil: bool) -> Result<(), EncodeError> {
    w.primitive(u8::from(!is_nil))?;
    if is_nil { w.null_value() } else { Ok(()) }
}

/// Reads the head of an abstract interface's reference. Returns true if an object reference follows, false for nil.
///
/// # Errors
/// [`DecodeError::Unsupported`] for a value, or when the message ends.
pub fn read_abstract_head(r: &mut Reader<'_>) -> Result<bool, DecodeError> {
    if bool::decode(r)? {
        return Ok(true);
    }
    r.approach_value();
    match r.value_head()? {
        ValueHead::Null => Ok(false),
        ValueHead::Indirection { .. } | ValueHead::Value(_) => Err(DecodeError::Unsupported {
            kind: Kind::Value as u32,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ByteOrder;
    use crate::any::Value;

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
        const BYTES_MIN: usize = 8;
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
        const BYTES_MIN: usize = 4;
        fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
            Decode::decode(r).map(Self)
        }
    }

    impl ValueType for V {
        const REPOSITORY_ID: &'static str = "IDL:V:1.0";
    }

    type Values = Vec<Option<Arc<V>>>;

    fn bytes(values: &impl Encode, order: ByteOrder) -> Vec<u8> {
        let mut w = Writer::new(Vec::new(), 1 << 20).with_order(order);
        values.encode(&mut w).expect("it can be sent");
        w.to_bytes()
    }

    /// Golden vectors V21 and V22.
    //= GIOP 1.2 §15.3.4
    //% test
    #[test]
    fn a_value_is_written_once_and_then_as_an_indirection() {
        let value = Some(Arc::new(V(7)));
        let written = bytes(&[value.clone(), value], ByteOrder::Little);
        let head = b"\x02\xff\xff\x7f\x0a\0\0\0IDL:V:1.0\0\0\0\x07\0\0\0";
        assert_eq!(
            written,
            [&head[..], b"\xff\xff\xff\xff\xe4\xff\xff\xff"].concat()
        );
    }

    #[test]
    fn shared_values_and_nil_come_back() {
        let value = Some(Arc::new(V(7)));
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let written = bytes(
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
    fn a_list_may_be_nested_up_to_the_bound() {
        let list =
            |length| (0..length).fold(None, |next, number| Some(Arc::new(Link { number, next })));
        let written = bytes(&list(40), ByteOrder::NATIVE);
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

    /// Each link refers to the one before: a few bytes for each link, and a stack frame for each when they are dropped.
    #[test]
    fn indirections_cannot_exceed_the_depth() {
        let mut w = Writer::new(Vec::new(), 1 << 24);
        w.count(100_000).expect("it fits");
        let mut before = None;
        for _ in 0..100_000 {
            let position = w.begin_value(&[], false).expect("it fits");
            w.primitive(1i32).expect("it fits");
            match before {
                Some(before) => w.value_indirection(before),
                None => w.null_value(),
            }
            .expect("it fits");
            before = Some(position);
        }
        let bytes = w.to_bytes();
        let mut r = Reader::new(&bytes, ByteOrder::NATIVE);
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

    /// A value before, between and behind members of odd alignment.
    #[derive(Debug, PartialEq)]
    struct Mixed {
        first: Option<Arc<V>>,
        byte: u8,
        second: Option<Arc<V>>,
        double: f64,
        third: Option<Arc<V>>,
    }

    impl Encode for Mixed {
        fn encode<'a>(&'a self, _: &mut Writer<'a>) -> Result<(), EncodeError> {
            unreachable!("it is written by hand")
        }
    }

    impl Decode for Mixed {
        const BYTES_MIN: usize = 21;
        fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                first: Decode::decode(r)?,
                byte: Decode::decode(r)?,
                second: Decode::decode(r)?,
                double: Decode::decode(r)?,
                third: Decode::decode(r)?,
            })
        }
    }

    impl ValueType for Mixed {
        const REPOSITORY_ID: &'static str = "IDL:Mixed:1.0";
    }

    fn chunked_v(w: &mut Writer<'_>, number: i32) -> Result<usize, EncodeError> {
        let position = w.begin_value(&["IDL:V:1.0"], true)?;
        w.chunk(|w| w.primitive(number))?;
        Ok(position)
    }

    /// `third` is an indirection to `first`; `ends` writes what follows the last chunk.
    fn chunked_mixed(
        w: &mut Writer<'_>,
        ids: &[&str],
        ends: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        w.begin_value(ids, true)?;
        let first = chunked_v(w, 1)?;
        w.end_value(2)?;
        w.chunk(|w| w.primitive(5u8))?;
        chunked_v(w, 2)?;
        w.end_value(2)?;
        // The two members are in chunks of their own.
        w.chunk(|w| w.primitive(0.5f64))?;
        w.chunk(|w| w.value_indirection(first))?;
        ends(w)
    }

    #[test]
    fn nested_values_are_between_the_chunks_of_the_enclosing_value() {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let mut w = Writer::new(Vec::new(), 1 << 20).with_order(order);
            chunked_mixed(&mut w, &["IDL:Mixed:1.0"], |w| w.end_value(1)).unwrap();
            // The same as a derived type, which has a chunk and a value more, ended together.
            chunked_mixed(&mut w, &["IDL:Derived:1.0", "IDL:Mixed:1.0"], |w| {
                w.chunk(|w| w.primitive(9u8))?;
                chunked_v(w, 3)?;
                w.end_value(1)
            })
            .unwrap();
            w.primitive(77u8).unwrap();
            let bytes = w.to_bytes();
            let mut r = Reader::new(&bytes, order);
            for _ in 0..2 {
                let read = <Option<Arc<Mixed>>>::decode(&mut r)
                    .unwrap()
                    .expect("it is not nil");
                let Mixed {
                    first: Some(first),
                    byte: 5,
                    second,
                    double: 0.5,
                    third: Some(third),
                } = &*read
                else {
                    panic!("{read:?}")
                };
                assert!(Arc::ptr_eq(first, third));
                assert_eq!((&**first, second.as_deref()), (&V(1), Some(&V(2))));
            }
            assert_eq!((r.primitive::<u8>(), r.remaining()), (Ok(77), 0));
            // A truncated stream is an error and no panic.
            for end in 0..bytes.len() - 1 {
                let mut r = Reader::new(&bytes[..end], order);
                let both = [(); 2].map(|()| <Option<Arc<Mixed>>>::decode(&mut r));
                assert!(both.iter().any(Result::is_err), "{end}");
            }
        }
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Side {
        Left,
        Right,
    }
    crate::cdr_enum!(Side {
        Left = 0,
        Right = 1
    });

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Point {
        is_set: bool,
        place: [i16; 2],
        side: Side,
    }
    crate::fixed_layout!(Point {
        is_set: bool,
        place: [i16; 2],
        side: Side
    });

    /// Everything in it has a fixed layout.
    #[derive(Debug, PartialEq)]
    struct Plan {
        one: Point,
        all: Vec<Point>,
        sides: Vec<Side>,
    }

    impl Encode for Plan {
        fn encode<'a>(&'a self, _: &mut Writer<'a>) -> Result<(), EncodeError> {
            unreachable!("it is written by hand")
        }
    }

    impl Decode for Plan {
        const BYTES_MIN: usize = 17;
        fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                one: Decode::decode(r)?,
                all: Decode::decode(r)?,
                sides: Decode::decode(r)?,
            })
        }
    }

    impl ValueType for Plan {
        const REPOSITORY_ID: &'static str = "IDL:Plan:1.0";
    }

    fn chunked_point(w: &mut Writer<'_>, point: &Point) -> Result<(), EncodeError> {
        w.chunk(|w| w.primitive(u8::from(point.is_set)))?;
        w.chunk(|w| point.place.iter().try_for_each(|it| w.primitive(*it)))?;
        w.chunk(|w| w.primitive(point.side as u32))
    }

    //= GIOP 1.2 §15.3.4
    //% test
    #[test]
    fn a_chunk_may_end_between_the_members_of_a_struct() {
        let point = |place| Point {
            is_set: true,
            place: [place, -place],
            side: Side::Right,
        };
        let plan = Plan {
            one: point(1),
            all: vec![point(2), point(3)],
            sides: vec![Side::Left, Side::Right],
        };
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let mut w = Writer::new(Vec::new(), 1 << 20).with_order(order);
            w.begin_value(&[Plan::REPOSITORY_ID], true).unwrap();
            chunked_point(&mut w, &plan.one).unwrap();
            w.chunk(|w| w.count(plan.all.len())).unwrap();
            for point in &plan.all {
                chunked_point(&mut w, point).unwrap();
            }
            w.chunk(|w| w.count(plan.sides.len())).unwrap();
            for side in &plan.sides {
                w.chunk(|w| w.primitive(*side as u32)).unwrap();
            }
            w.end_value(1).unwrap();
            let bytes = w.to_bytes();
            let mut r = Reader::new(&bytes, order);
            let read = <Option<Arc<Plan>>>::decode(&mut r);
            let read = read.unwrap().expect("it is not nil");
            assert_eq!((&*read, r.remaining()), (&plan, 0));
            // By its TypeCode too.
            let side = TypeCode::enumeration("IDL:Side:1.0", "Side", ["Left", "Right"]);
            let place = TypeCode::array(TypeCode::SHORT, 2);
            let members = [("a", TypeCode::BOOLEAN), ("b", place), ("c", side.clone())];
            let point = TypeCode::structure("IDL:Point:1.0", "Point", members);
            let state = [
                ("one", point.clone(), true),
                ("all", TypeCode::sequence(point, 0), true),
                ("sides", TypeCode::sequence(side, 0), true),
            ];
            let plan = type_code("IDL:Plan:1.0", "Plan", 0, TypeCode::NULL, state);
            let mut r = Reader::new(&bytes, order);
            assert!(Value::decode(&plan, &mut r).is_ok());
        }
    }

    /// A nested value comes behind a sequence of structs.
    #[derive(Debug, PartialEq)]
    struct Route {
        all: Vec<Point>,
        next: Option<Arc<V>>,
        sides: Vec<Side>,
    }

    impl Encode for Route {
        fn encode<'a>(&'a self, _: &mut Writer<'a>) -> Result<(), EncodeError> {
            unreachable!("it is written by hand")
        }
    }

    impl Decode for Route {
        const BYTES_MIN: usize = 12;
        fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
            Ok(Self {
                all: Decode::decode(r)?,
                next: Decode::decode(r)?,
                sides: Decode::decode(r)?,
            })
        }
    }

    impl ValueType for Route {
        const REPOSITORY_ID: &'static str = "IDL:Route:1.0";
    }

    //= GIOP 1.2 §15.3.4
    //% test
    #[test]
    fn an_empty_sequence_may_be_the_last_of_its_chunk() {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let mut w = Writer::new(Vec::new(), 1 << 20).with_order(order);
            w.begin_value(&[Route::REPOSITORY_ID], true).unwrap();
            w.chunk(|w| w.count(0)).unwrap();
            chunked_v(&mut w, 1).unwrap();
            w.end_value(2).unwrap();
            w.chunk(|w| w.count(0)).unwrap();
            w.end_value(1).unwrap();
            w.primitive(77u8).unwrap();
            let bytes = w.to_bytes();
            let mut r = Reader::new(&bytes, order);
            let read = <Option<Arc<Route>>>::decode(&mut r);
            let route = Route {
                all: vec![],
                next: Some(Arc::new(V(1))),
                sides: vec![],
            };
            assert_eq!(read, Ok(Some(Arc::new(route))));
            assert_eq!((r.primitive::<u8>(), r.remaining()), (Ok(77), 0));
        }
    }

    #[test]
    fn a_chunk_may_end_amid_the_structs_of_an_any() {
        let number = TypeCode::structure("IDL:N:1.0", "N", [("n", TypeCode::LONG)]);
        let numbers = TypeCode::sequence(number, 0);
        let mut w = Writer::new(Vec::new(), 1 << 20);
        w.begin_value(&["IDL:Holder:1.0"], true).unwrap();
        w.chunk(|w| {
            numbers.write(w)?;
            w.count(2)?;
            w.primitive(7i32)
        })
        .unwrap();
        w.chunk(|w| w.primitive(8i32)).unwrap();
        w.end_value(1).unwrap();
        let state = [("it", TypeCode::ANY, true)];
        let holder = type_code("IDL:Holder:1.0", "Holder", 0, TypeCode::NULL, state);
        let bytes = w.to_bytes();
        let read = Value::decode(&holder, &mut Reader::new(&bytes, ByteOrder::NATIVE));
        let Ok(Value::Valuetype(Some(state))) = read else {
            panic!("{read:?}")
        };
        let Value::Any(any) = &state.members[0] else {
            panic!("{state:?}")
        };
        let of = |number| Value::Members(vec![Value::Long(number)]);
        assert_eq!(any.value(), Ok(Value::Elements(vec![of(7), of(8)])));
    }

    #[test]
    fn one_end_tag_can_end_several_values() {
        let mut w = Writer::new(Vec::new(), 1 << 20);
        for number in [1, 2, 3] {
            w.begin_value(&["IDL:Link:1.0"], true).unwrap();
            w.chunk(|w| {
                w.primitive(number)?;
                if number == 3 { w.null_value() } else { Ok(()) }
            })
            .unwrap();
        }
        w.end_value(1).unwrap();
        let bytes = w.to_bytes();
        let mut r = Reader::new(&bytes, ByteOrder::NATIVE);
        let read = <Option<Arc<Link>>>::decode(&mut r).unwrap();
        let list = [3, 2, 1]
            .into_iter()
            .fold(None, |next, number| Some(Arc::new(Link { number, next })));
        assert_eq!((read, r.remaining()), (list, 0));
    }

    #[test]
    fn a_ring_of_values_is_called_so() {
        // A link whose next is itself, and two that name each other.
        let link = b"\x02\xff\xff\x7f\x0d\0\0\0IDL:Link:1.0\0\0\0\0\x07\0\0\0";
        let own = [&link[..], b"\xff\xff\xff\xff\xe0\xff\xff\xff"].concat();
        let two = [&link[..], link, b"\xff\xff\xff\xff\xc4\xff\xff\xff"].concat();
        for bytes in [own, two] {
            let mut r = Reader::new(&bytes, ByteOrder::Little);
            let read = <Option<Arc<Link>>>::decode(&mut r);
            assert_eq!(read, Err(DecodeError::Ring), "{bytes:02x?}");
        }
    }

    #[test]
    fn a_value_of_another_type_is_refused() {
        let written = bytes(&Some(Arc::new(V(7))), ByteOrder::NATIVE);
        let read = <Option<Arc<Link>>>::decode(&mut Reader::new(&written, ByteOrder::NATIVE));
        assert_eq!(read, Err(DecodeError::UnknownValue));
        let again =
            b"\x02\xff\xff\x7f\x0a\0\0\0IDL:V:1.0\0\0\0\x07\0\0\0\xff\xff\xff\xff\xe8\xff\xff\xff";
        let mut r = Reader::new(again, ByteOrder::Little);
        assert!(<[Option<Arc<V>>; 2]>::decode(&mut r).is_err());
    }
}
