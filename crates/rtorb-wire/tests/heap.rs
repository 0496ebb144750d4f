//! The memory that bytes of a peer may cost: a count without elements costs nothing, and message headers cost nothing.
//! A program without a test harness, because the counter sees every thread, and a harness allocates on another one.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

use peak_alloc::PeakAlloc;
use rtorb_wire::any::Value;
use rtorb_wire::connection::{ReceiveLimits, Receiver, Side};
use rtorb_wire::giop::{
    Header, ReplyHeader, ReplyStatus, RequestHeader, RequestStart, Response, ServiceContext,
    Version, begin_reply, begin_request, contexts, encode_body, end_message, write_cancel_request,
    write_locate_request,
};
use rtorb_wire::type_code::Kind;
use rtorb_wire::{
    Any, ByteOrder, Decode, DecodeError, Encode, EncodeError, Ior, Reader, TypeCode, Writer,
    valuetype,
};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Most octets beyond what was there before that were in use at a time while `work` ran.
fn growth(work: impl FnOnce()) -> usize {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    work();
    HEAP.peak_usage().saturating_sub(before)
}

/// Shows a count of four thousand million with sixteen octets behind it.
fn hostile<T: Decode>() {
    for count in [u32::MAX, 1 << 31, 1 << 20, 17, 16] {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let mut octets = match order {
                ByteOrder::Big => count.to_be_bytes(),
                ByteOrder::Little => count.to_le_bytes(),
            }
            .to_vec();
            octets.extend([0; 16]);
            let grown = growth(|| drop(T::decode(&mut Reader::new(&octets, order))));
            let name = core::any::type_name::<T>();
            assert!(
                grown <= 16 * size_of::<usize>() * 4,
                "{name} reserved {grown} octets"
            );
        }
    }
}

/// Has a byte on the wire, or 8,001: a union with a large member.
struct Large {
    _member: [u64; 1000],
}

impl Decode for Large {
    const BYTES_MIN: usize = 1;

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.primitive::<u8>()?;
        let _member = Decode::decode(r)?;
        Ok(Self { _member })
    }
}

fn counts_without_elements_reserve_nothing() {
    hostile::<Vec<u8>>();
    hostile::<Vec<u64>>();
    hostile::<Vec<()>>();
    hostile::<Vec<String>>();
    hostile::<Vec<Vec<Vec<u8>>>>();
    hostile::<Vec<[u64; 1000]>>();
    hostile::<Vec<Large>>();
    hostile::<String>();
    hostile::<Ior>();
    hostile::<Vec<Any>>();
    hostile::<TypeCode>();
    let mut r = Reader::new(&[0xff; 8], ByteOrder::Little);
    assert!(matches!(r.count(1), Err(DecodeError::CountTooLarge { .. })));
}

/// The type may say what it likes: an array's length is not among the octets of the value.
fn lengths_in_type_codes_reserve_nothing() {
    let array = TypeCode::array(TypeCode::STRING, u32::MAX);
    let mut w = Writer::new(Vec::new(), 1024).with_order(ByteOrder::Little);
    rtorb_wire::Encode::encode(&array, &mut w).unwrap();
    let octets = w.to_bytes();
    let grown = growth(|| {
        assert!(Any::decode(&mut Reader::new(&octets, ByteOrder::Little)).is_err());
    });
    assert!(grown < 2048, "{grown} octets");
}

/// Decodes a message, and checks that it takes at most `factor` times its own bytes of memory.
fn takes_at_most<T>(factor: usize, octets: &[u8], decode: impl FnOnce(&mut Reader<'_>) -> T) -> T {
    let mut decoded = None;
    let grown = growth(|| decoded = Some(decode(&mut Reader::new(octets, ByteOrder::Little))));
    let most = factor * octets.len();
    assert!(grown <= most, "{grown} octets of {}", octets.len());
    decoded.unwrap()
}

fn written<'a>(write: impl FnOnce(&mut Writer<'a>) -> Result<(), EncodeError>) -> Vec<u8> {
    let mut w = Writer::new(Vec::new(), 1 << 20).with_order(ByteOrder::Little);
    write(&mut w).unwrap();
    w.to_bytes()
}

fn an_id_is_not_copied_for_each_member_of_that_type() {
    let id = "x".repeat(1000);
    let members = vec![("", TypeCode::recursive(&id)); 4000];
    let type_code = TypeCode::structure(&id, "", members);
    let octets = written(|w| type_code.encode(w));
    takes_at_most(24, &octets, TypeCode::decode).unwrap();
}

/// A sequence of valuetypes without members. In a message each has four bytes, and does not name its type.
fn nameless_values(id: &str, count: u32) -> (TypeCode, Vec<u8>) {
    let value = valuetype::type_code(id, "", 0, TypeCode::NULL, []);
    let octets = written(|w| {
        w.primitive(count)?;
        (0..count).try_for_each(|_| w.begin_value(&[], false).map(|_| ()))
    });
    (TypeCode::sequence(value, 0), octets)
}

fn an_id_is_not_copied_for_each_value_that_does_not_name_it() {
    let (type_code, octets) = nameless_values(&"x".repeat(1000), 10_000);
    takes_at_most(128, &octets, |r| Value::decode(&type_code, r)).unwrap();
}

/// A struct of two members of the same struct, and so on. In a message, the second is an indirection.
fn doubled(depth: u32, w: &mut Writer<'_>) -> Result<(), EncodeError> {
    if depth == 0 {
        w.primitive(Kind::String as u32)?;
        return w.primitive(0u32);
    }
    w.primitive(Kind::Struct as u32)?;
    w.encapsulation(|w| {
        ["", ""].iter().try_for_each(|text| w.str(text))?;
        w.count(2)?;
        w.str("")?;
        w.align(4)?;
        let inner = w.len();
        doubled(depth - 1, w)?;
        w.str("")?;
        w.primitive(u32::MAX)?;
        let back = w.len() - inner;
        w.primitive(-(back as i32))
    })
}

fn the_contents_of_an_any_are_not_much_larger_than_what_was_received() {
    let any_of_type = |depth| {
        written(|w| {
            w.primitive(Kind::TypeCode as u32)?;
            doubled(depth, w)
        })
    };
    takes_at_most(128, &any_of_type(4), Any::decode).unwrap();
    let refused = takes_at_most(128, &any_of_type(15), Any::decode);
    assert!(matches!(refused, Err(DecodeError::TooLarge { .. })));
    let any_of_values = |id: &str| {
        let (type_code, values) = nameless_values(id, 10_000);
        written(|w| {
            type_code.encode(w)?;
            w.align(4)?;
            w.octets(&values)
        })
    };
    let usual = "IDL:example.org/Instruments/Measurement:1.0";
    takes_at_most(128, &any_of_values(usual), Any::decode).unwrap();
    let refused = takes_at_most(128, &any_of_values(&"x".repeat(1000)), Any::decode);
    assert!(matches!(refused, Err(DecodeError::TooLarge { .. })));
}

fn headers_make_no_heap_call() {
    let version = Version::V1_2;
    let data = contexts::priority(7);
    let context = ServiceContext {
        id: contexts::RT_CORBA_PRIORITY,
        data: &data,
    };
    let start = RequestStart {
        request_id: 1,
        response: Response::FromTarget,
        object_key: b"key",
        operation: "operation",
        contexts: &[context],
    };
    let mut buffer = vec![0; 512];
    let grown = growth(|| {
        let mut w = Writer::new(core::mem::take(&mut buffer), 512);
        begin_request(&mut w, version, &start).unwrap();
        encode_body(&mut w, version, |w| w.primitive(7u64)).unwrap();
        end_message(&mut w).unwrap();
        let (message, length, _) = w.finish();
        let header = Header::parse(&message, 512).unwrap().unwrap();
        let mut r = header.reader(&message[..length]);
        let request = RequestHeader::decode(&mut r).unwrap();
        let data = request.contexts.find(contexts::RT_CORBA_PRIORITY).unwrap();
        assert_eq!(contexts::decode_priority(data), Ok(7));
        assert_eq!(r.primitive::<u64>(), Ok(7));

        let mut w = Writer::new(message, 512);
        begin_reply(&mut w, version, 1, ReplyStatus::NoException, &[context]).unwrap();
        encode_body(&mut w, version, |w| w.primitive(7u64)).unwrap();
        end_message(&mut w).unwrap();
        let (message, length, _) = w.finish();
        let header = Header::parse(&message, 512).unwrap().unwrap();
        let reply = ReplyHeader::decode(&mut header.reader(&message[..length])).unwrap();
        assert_eq!(reply.status, ReplyStatus::NoException);
        buffer = message;
    });
    assert_eq!(grown, 0);
}

/// A first part that announces much is worth what it brings.
fn reassembly_stays_within_its_bounds() {
    let mut w = Writer::new(Vec::new(), 1024);
    write_locate_request(&mut w, Version::V1_2, 1, b"key").unwrap();
    let mut part = w.to_bytes();
    part[6] |= 2;
    let mut w = Writer::new(Vec::new(), 1024);
    write_cancel_request(&mut w, Version::V1_2, 1).unwrap();
    let cancel = w.to_bytes();
    let limits = ReceiveLimits {
        message_bytes_max: 100,
        fragmented_messages_max: 3,
    };
    let mut receiver = Receiver::new(Side::Server, limits);
    let mut receive = |message: &[u8]| {
        receiver.free()[..message.len()].copy_from_slice(message);
        receiver.advance(message.len());
        receiver.next().map(|received| received.is_some())
    };
    let grown = growth(|| {
        for id in 0..10u32 {
            part[12..16].copy_from_slice(&id.to_ne_bytes());
            assert_eq!(receive(&part).is_ok(), id < 3);
        }
    });
    assert!(grown < 1024, "{grown} octets");
    assert_eq!(receive(&cancel), Ok(true));
    assert_eq!(receive(&part), Ok(false));
}

fn main() {
    counts_without_elements_reserve_nothing();
    lengths_in_type_codes_reserve_nothing();
    an_id_is_not_copied_for_each_member_of_that_type();
    an_id_is_not_copied_for_each_value_that_does_not_name_it();
    the_contents_of_an_any_are_not_much_larger_than_what_was_received();
    headers_make_no_heap_call();
    reassembly_stays_within_its_bounds();
}
