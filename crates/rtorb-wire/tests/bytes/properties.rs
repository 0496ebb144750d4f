//! Round trips of random values: in both byte orders, every GIOP version, at any position in the stream.

use proptest::collection::vec;
use proptest::prelude::*;
use rtorb_wire::any::Value;
use rtorb_wire::cdr::{
    BoundedSequence, BoundedString, BoundedWString, CharCodeSet, Fixed, LongDouble, WChar, WString,
};
use rtorb_wire::code_sets::{CodeSetComponent, CodeSetComponentInfo};
use rtorb_wire::connection::{ReceiveLimits, Receiver, Side};
use rtorb_wire::giop::{
    Header, LocateReplyHeader, LocateRequestHeader, LocateStatus, MessageType, ReplyHeader,
    ReplyStatus, RequestHeader, RequestStart, Response, SegmentParameter, ServiceContext,
    SystemExceptionBody, Target, ThreadContext, Version, begin_reply, begin_request, encode_body,
    end_message, fragments, write_locate_forward, write_locate_request,
};
use rtorb_wire::ior::{Ior, TaggedComponent, TaggedProfile};
use rtorb_wire::{Any, ByteOrder, Decode, Encode, Reader, TypeCode, Writer};

const BYTES_MAX: usize = 1 << 20;

/// How a value stands in its stream.
#[derive(Clone, Copy, Debug)]
struct Place {
    order: ByteOrder,
    minor: u8,
    start: usize,
    set: CharCodeSet,
}

fn orders() -> impl Strategy<Value = ByteOrder> {
    prop_oneof![Just(ByteOrder::Big), Just(ByteOrder::Little)]
}

fn places() -> impl Strategy<Value = Place> {
    (orders(), 1u8..=2, 0usize..8).prop_map(|(order, minor, start)| Place {
        order,
        minor,
        start,
        set: CharCodeSet::Utf8,
    })
}

fn versions() -> impl Strategy<Value = Version> {
    (0u8..=2).prop_map(|minor| Version { major: 1, minor })
}

/// The character of a byte of ISO 8859-15.
fn latin_9(byte: u8) -> char {
    let message = [2, 0, 0, 0, byte, 0];
    let mut r = Reader::new(&message, ByteOrder::Little).with_char_code_set(CharCodeSet::Latin9);
    let text = r.str().expect("every byte is a character");
    text.chars().next().expect("one")
}

/// Texts without a zero.
fn texts() -> impl Strategy<Value = String> {
    "[^\\x00]{0,20}"
}

fn comes_back<T>(value: &T, place: Place)
where
    T: Encode + Decode + PartialEq + core::fmt::Debug,
{
    let mut w = Writer::new(vec![0xaa; 3], BYTES_MAX)
        .with_order(place.order)
        .with_giop_minor(place.minor)
        .with_char_code_set(place.set);
    w.octets(&vec![0xee; place.start]).unwrap();
    value.encode(&mut w).unwrap();
    let octets = w.to_bytes();
    let mut r = Reader::new(&octets, place.order)
        .with_giop_minor(place.minor)
        .with_char_code_set(place.set);
    r.take(place.start).unwrap();
    assert_eq!(T::decode(&mut r).as_ref(), Ok(value));
    assert_eq!(r.remaining(), 0);
    // Cut anywhere, it is an error and not a panic; a few values are whole when cut (an array of none).
    for end in place.start..octets.len() {
        let mut r = Reader::new(&octets[..end], place.order).with_giop_minor(place.minor);
        r.take(place.start).unwrap();
        let _ = T::decode(&mut r);
    }
}

proptest! {
    #[test]
    fn numbers_come_back(
        a in any::<(u8, i8, u16, i16, u32)>(),
        b in any::<(i32, u64, i64, u128)>(),
        f in -1e300..1e300,
        place in places(),
    ) {
        comes_back(&a.0, place);
        comes_back(&a.1, place);
        comes_back(&a.2, place);
        comes_back(&a.3, place);
        comes_back(&a.4, place);
        comes_back(&b.0, place);
        comes_back(&b.1, place);
        comes_back(&b.2, place);
        comes_back(&LongDouble(b.3), place);
        comes_back(&LongDouble::from(f), place);
        comes_back(&f, place);
        comes_back(&(f as f32), place);
    }

    //= GIOP 1.2 §15.3.2.4
    //% test
    //= GIOP 1.2 §15.3.2.5
    //% test
    #[test]
    fn sequences_and_arrays_come_back(
        octets in vec(any::<u8>(), 0..70),
        numbers in vec(any::<i64>(), 0..9),
        shorts in vec(vec(any::<i16>(), 0..4), 0..4),
        array in any::<[[u32; 3]; 2]>(),
        flags in vec(any::<bool>(), 0..9),
        place in places(),
    ) {
        comes_back(&octets, place);
        comes_back(&numbers, place);
        comes_back(&shorts, place);
        comes_back(&array, place);
        comes_back(&flags, place);
        comes_back(&vec![array; 3], place);
        comes_back(&BoundedSequence::<u8, 70>::try_from(octets).unwrap(), place);
        comes_back(&vec![Box::new(numbers)], place);
    }

    #[test]
    fn texts_come_back(
        text in texts(),
        plain in "[ -~]{0,9}",
        bytes in vec(1u8..=255, 0..9),
        wide in any::<u16>(),
        place in places(),
    ) {
        comes_back(&text, place);
        comes_back(&WString(text.clone()), place);
        comes_back(&vec![text.clone(), plain.clone()], place);
        comes_back(&BoundedString::<20>::try_from(text.as_str()).unwrap(), place);
        comes_back(&BoundedWString::<20>::try_from(WString(text)).unwrap(), place);
        if let Some(character) = char::from_u32(wide.into()) {
            comes_back(&WChar(character), place);
        }
        let latin: String = bytes.iter().copied().map(char::from).collect();
        let place = Place { set: CharCodeSet::Latin1, ..place };
        comes_back(&latin, place);
        latin.chars().for_each(|character| comes_back(&character, place));
        let place = Place { set: CharCodeSet::Latin9, ..place };
        let text: String = bytes.iter().map(|byte| latin_9(*byte)).collect();
        comes_back(&text, place);
        text.chars().for_each(|character| comes_back(&character, place));
    }

    #[test]
    fn decimals_come_back(value in -9_999_999i128..=9_999_999, place in places()) {
        comes_back(&Fixed::<7, 2>::new(value).unwrap(), place);
        comes_back(&Fixed::<8, 0>::new(value).unwrap(), place);
        comes_back(&Fixed::<31, 31>::new(value).unwrap(), place);
    }

    #[test]
    fn references_come_back(ior in iors(), place in places()) {
        comes_back(&ior, place);
        let sets = CodeSetComponentInfo {
            char_data: CodeSetComponent { native: 1, conversion: vec![2, 3] },
            wchar_data: CodeSetComponent::default(),
        };
        comes_back(&sets, place);
        let plain = Ior { type_id: "IDL:X:1.0".into(), ..ior };
        prop_assert_eq!(Ior::parse(&plain.to_string()), Ok(plain));
    }

    #[test]
    fn anys_come_back((type_code, value) in typed_values(), place in places()) {
        let any = Any::from_parts(type_code.clone(), &value).unwrap();
        prop_assert_eq!(any.value(), Ok(value));
        comes_back(&type_code, place);
        comes_back(&any, place);
        comes_back(&vec![any], place);
    }

    #[test]
    fn requests_come_back(
        version in versions(),
        order in orders(),
        request_id in any::<u32>(),
        key in vec(any::<u8>(), 0..20),
        operation in "[a-z_]{1,20}",
        contexts in vec((any::<u32>(), vec(any::<u8>(), 0..9)), 0..4),
        body in vec(any::<u8>(), 0..9),
    ) {
        let contexts: Vec<_> = contexts
            .iter()
            .map(|(id, data)| ServiceContext { id: *id, data })
            .collect();
        let start = RequestStart {
            request_id,
            response: Response::FromTarget,
            object_key: &key,
            operation: &operation,
            contexts: &contexts,
        };
        let mut w = Writer::new(Vec::new(), BYTES_MAX).with_order(order);
        begin_request(&mut w, version, &start).unwrap();
        encode_body(&mut w, version, |w| w.octets(&body)).unwrap();
        end_message(&mut w).unwrap();
        let octets = w.to_bytes();
        let header = Header::parse(&octets, BYTES_MAX).unwrap().unwrap();
        prop_assert_eq!(header.message_bytes(), octets.len());
        prop_assert_eq!((header.version, header.order), (version, order));
        let mut r = header.reader(&octets);
        let request = RequestHeader::decode(&mut r).unwrap();
        prop_assert_eq!(request.request_id, request_id);
        prop_assert_eq!(request.target.object_key(), Ok(&key[..]));
        prop_assert_eq!(request.operation, operation.as_bytes());
        prop_assert!(request.contexts.iter().eq(contexts.iter().copied()));
        prop_assert_eq!(r.take(body.len()), Ok(&body[..]));
        prop_assert_eq!(r.remaining(), 0);
        for end in 12..octets.len() {
            let _ = RequestHeader::decode(&mut header.reader(&octets[..end]));
        }
    }

    #[test]
    fn replies_come_back(
        version in versions(),
        order in orders(),
        request_id in any::<u32>(),
        contexts in vec((any::<u32>(), vec(any::<u8>(), 0..9)), 0..4),
        minor in any::<u32>(),
    ) {
        let contexts: Vec<_> = contexts
            .iter()
            .map(|(id, data)| ServiceContext { id: *id, data })
            .collect();
        let status = ReplyStatus::SystemException;
        let body = SystemExceptionBody {
            repository_id: b"IDL:omg.org/CORBA/MARSHAL:1.0",
            minor,
            completed: 2,
        };
        let mut w = Writer::new(Vec::new(), BYTES_MAX).with_order(order);
        begin_reply(&mut w, version, request_id, status, &contexts).unwrap();
        encode_body(&mut w, version, |w| body.encode(w)).unwrap();
        end_message(&mut w).unwrap();
        let octets = w.to_bytes();
        let header = Header::parse(&octets, BYTES_MAX).unwrap().unwrap();
        let mut r = header.reader(&octets);
        let reply = ReplyHeader::decode(&mut r).unwrap();
        prop_assert_eq!((reply.request_id, reply.status), (request_id, status));
        prop_assert!(reply.contexts.iter().eq(contexts.iter().copied()));
        prop_assert_eq!(SystemExceptionBody::decode(&mut r), Ok(body));
    }

    #[test]
    fn locate_messages_come_back(
        version in versions(),
        order in orders(),
        request_id in any::<u32>(),
        key in vec(any::<u8>(), 0..20),
        ior in iors(),
    ) {
        let mut w = Writer::new(Vec::new(), BYTES_MAX).with_order(order);
        write_locate_request(&mut w, version, request_id, &key).unwrap();
        let octets = w.to_bytes();
        let header = Header::parse(&octets, BYTES_MAX).unwrap().unwrap();
        let request = LocateRequestHeader::decode(&mut header.reader(&octets)).unwrap();
        prop_assert_eq!(request, LocateRequestHeader { request_id, target: Target::Key(&key) });

        let mut w = Writer::new(Vec::new(), BYTES_MAX)
            .with_order(order)
            .with_char_code_set(CharCodeSet::Utf8);
        write_locate_forward(&mut w, version, request_id, &ior).unwrap();
        let octets = w.to_bytes();
        let header = Header::parse(&octets, BYTES_MAX).unwrap().unwrap();
        prop_assert_eq!(header.message_type, MessageType::LocateReply);
        let mut r = header.reader(&octets).with_char_code_set(CharCodeSet::Utf8);
        let reply = LocateReplyHeader::decode(&mut r).unwrap();
        prop_assert_eq!(reply.status, LocateStatus::ObjectForward);
        prop_assert_eq!(Ior::decode(&mut r), Ok(ior));
    }

    #[test]
    fn fragmented_messages_are_reassembled(
        minor in 1u8..=2,
        order in orders(),
        body in vec(any::<u8>(), 0..300),
        part_bytes in 0usize..200,
    ) {
        let version = Version { major: 1, minor };
        let mut w = Writer::new(Vec::new(), BYTES_MAX).with_order(order);
        begin_reply(&mut w, version, 7, ReplyStatus::NoException, &[]).unwrap();
        encode_body(&mut w, version, |w| w.octets(&body)).unwrap();
        end_message(&mut w).unwrap();
        let whole = w.to_bytes();
        let parts: Vec<_> = fragments(&whole, part_bytes).collect();
        let limits = ReceiveLimits { message_bytes_max: whole.len(), fragmented_messages_max: 1 };
        let mut receiver = Receiver::new(Side::Client, limits);
        for (index, part) in parts.iter().enumerate() {
            let is_last = index + 1 == parts.len();
            let header = Header::parse(part, BYTES_MAX).unwrap().unwrap();
            prop_assert!(part.len() <= part_bytes.max(24));
            prop_assert!(is_last || part.len() % 8 == 0);
            prop_assert_eq!(header.more_fragments, !is_last);
            prop_assert_eq!(header.message_bytes(), part.len());
            receiver.free()[..part.len()].copy_from_slice(part);
            receiver.advance(part.len());
            let message = receiver.next().unwrap().map(|message| message.bytes);
            prop_assert_eq!(message, is_last.then_some(&whole[..]));
        }
    }
}

fn iors() -> impl Strategy<Value = Ior> {
    let profile = (any::<u32>(), vec(any::<u8>(), 0..9));
    let profile = profile.prop_map(|(tag, data)| TaggedProfile { tag, data });
    (texts(), vec(profile, 0..4)).prop_map(|(type_id, profiles)| Ior { type_id, profiles })
}

#[test]
fn components_come_back() {
    for start in 0..8 {
        let place = Place {
            order: ByteOrder::Big,
            minor: 2,
            start,
            set: CharCodeSet::Latin1,
        };
        comes_back(
            &TaggedComponent {
                tag: 9,
                data: vec![1, 2, 3],
            },
            place,
        );
    }
}

/// A type without others inside, and a value of it.
fn simple_values() -> impl Strategy<Value = (TypeCode, Value)> {
    prop_oneof![
        any::<u8>().prop_map(|v| (TypeCode::OCTET, Value::Octet(v))),
        any::<bool>().prop_map(|v| (TypeCode::BOOLEAN, Value::Boolean(v))),
        any::<i16>().prop_map(|v| (TypeCode::SHORT, Value::Short(v))),
        any::<u32>().prop_map(|v| (TypeCode::ULONG, Value::ULong(v))),
        any::<i64>().prop_map(|v| (TypeCode::LONG_LONG, Value::LongLong(v))),
        (-1e9..1e9).prop_map(|v| (TypeCode::DOUBLE, Value::Double(v))),
        texts().prop_map(|v| (TypeCode::STRING, Value::String(v))),
        texts().prop_map(|v| (TypeCode::wstring(20), Value::WString(v))),
        "[ -~]".prop_map(|v| (TypeCode::CHAR, Value::Char(v.chars().next().unwrap()))),
        (-999i128..=999).prop_map(|v| (TypeCode::fixed(3, 1), Value::Fixed(v))),
        vec(any::<u8>(), 0..9)
            .prop_map(|v| { (TypeCode::sequence(TypeCode::OCTET, 0), Value::Octets(v)) }),
        (0u32..3).prop_map(|v| {
            let names = ["red", "green", "blue"];
            (
                TypeCode::enumeration("IDL:C:1.0", "C", names),
                Value::Enum(v),
            )
        }),
        iors().prop_map(|v| {
            (
                TypeCode::object_reference("IDL:I:1.0", "I"),
                Value::Reference(v),
            )
        }),
        Just((
            TypeCode::TYPE_CODE,
            Value::TypeCode(TypeCode::sequence(TypeCode::ANY, 4))
        )),
    ]
}

/// A type and a value of it.
fn typed_values() -> impl Strategy<Value = (TypeCode, Value)> {
    simple_values().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 1..4).prop_map(|members| {
                let (types, values): (Vec<_>, _) = members.into_iter().unzip();
                let types = types.into_iter().map(|type_code| ("m", type_code));
                (
                    TypeCode::structure("IDL:S:1.0", "S", types),
                    Value::Members(values),
                )
            }),
            (inner.clone(), 1usize..4).prop_map(|((type_code, value), count)| {
                run_of(TypeCode::sequence(type_code, 5), value, count)
            }),
            (inner.clone(), 1usize..4).prop_map(|((type_code, value), count)| {
                run_of(TypeCode::array(type_code, count as u32), value, count)
            }),
            inner.clone().prop_map(|(type_code, value)| {
                (TypeCode::alias("IDL:A:1.0", "A", type_code), value)
            }),
            inner.clone().prop_map(|(type_code, value)| {
                (
                    TypeCode::ANY,
                    Value::Any(Any::from_parts(type_code, &value).unwrap()),
                )
            }),
            (inner, any::<i16>()).prop_map(|((type_code, value), label)| {
                let members = [
                    (7, "seven", TypeCode::LONG),
                    (label.into(), "other", type_code),
                ];
                let default = (label == 7).then_some(1);
                let discriminator = if label == 7 { 8 } else { label.into() };
                let union = TypeCode::union("IDL:U:1.0", "U", TypeCode::SHORT, default, members);
                let value = Some(Box::new(value));
                (
                    union,
                    Value::Union {
                        discriminator,
                        value,
                    },
                )
            }),
        ]
    })
}

/// Several of the same; octets have a form of their own.
fn run_of(type_code: TypeCode, value: Value, count: usize) -> (TypeCode, Value) {
    match value {
        Value::Octet(octet) => (type_code, Value::Octets(vec![octet; count])),
        value => (type_code, Value::Elements(vec![value; count])),
    }
}

fn parameters() -> impl Strategy<Value = SegmentParameter> {
    prop_oneof![
        Just(SegmentParameter::None),
        any::<i16>().prop_map(SegmentParameter::Priority),
        any::<(u64, i32)>().prop_map(|(left_ns, importance)| SegmentParameter::Deadline {
            left_ns,
            importance
        }),
    ]
}

proptest! {
    #[test]
    fn the_context_of_a_distributable_thread_comes_back(
        order in orders(),
        thread_id: [u8; 16],
        segment in texts(),
        parameter in parameters(),
        implicit in parameters(),
    ) {
        let context = ThreadContext { thread_id, segment: segment.into(), parameter, implicit };
        let mut data = vec![0xaa; 3];
        context.write(&mut data, order).expect("a short name");
        prop_assert_eq!(ThreadContext::read(&data), Ok(context));
    }
}
