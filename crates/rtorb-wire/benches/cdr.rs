//! What messages cost: headers of requests and replies, and sequences of structs and numbers.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "criterion's macros make functions; a benchmark that cannot go on shall panic"
)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rtorb_wire::cdr::ByteOrder;
use rtorb_wire::giop::{
    Header, ReplyHeader, ReplyStatus, RequestHeader, RequestStart, Response, Version, begin_reply,
    begin_request, encode_body, end_message,
};
use rtorb_wire::{Any, Decode, Encode, Reader, TypeCode, Typed, Writer};
use std::hint::black_box;

const ELEMENTS: usize = 4096;
const BYTES_MAX: usize = 1 << 20;

/// The struct of Cubit: an octet, a long, a short.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Many {
    o: u8,
    l: i32,
    s: i16,
}
impl Typed for Many {
    fn type_code() -> TypeCode {
        let members = [
            ("o", TypeCode::OCTET),
            ("l", TypeCode::LONG),
            ("s", TypeCode::SHORT),
        ];
        TypeCode::structure("IDL:Many:1.0", "Many", members)
    }
}

rtorb_wire::fixed_layout!(Many {
    o: u8,
    l: i32,
    s: i16
});

fn request(buffer: Vec<u8>) -> Vec<u8> {
    let mut w = Writer::new(buffer, BYTES_MAX);
    let start = RequestStart {
        request_id: 2,
        response: Response::FromTarget,
        object_key: black_box(b"\x00rtorb\x00\x00\x00\x00\x01\x00\x00\x00\x07"),
        operation: black_box("cube_long"),
        contexts: &[],
    };
    begin_request(&mut w, Version::V1_2, &start).unwrap();
    encode_body(&mut w, Version::V1_2, |w| w.primitive(black_box(3i32))).unwrap();
    end_message(&mut w).unwrap();
    w.finish().0
}

fn reply(buffer: Vec<u8>) -> Vec<u8> {
    let mut w = Writer::new(buffer, BYTES_MAX);
    begin_reply(
        &mut w,
        Version::V1_2,
        black_box(2),
        ReplyStatus::NoException,
        &[],
    )
    .unwrap();
    encode_body(&mut w, Version::V1_2, |w| w.primitive(black_box(3i32))).unwrap();
    end_message(&mut w).unwrap();
    w.finish().0
}

fn headers(c: &mut Criterion) {
    let mut group = c.benchmark_group("message");
    let mut buffer = Some(request(Vec::new()));
    group.bench_function("request/encode", |b| {
        b.iter(|| buffer = Some(request(buffer.take().unwrap())));
    });
    let octets = request(Vec::new());
    group.bench_function("request/decode", |b| {
        b.iter(|| {
            let octets = black_box(&octets[..]);
            let header = Header::parse(octets, BYTES_MAX).unwrap().unwrap();
            let mut r = header.reader(&octets[..header.message_bytes()]);
            let request = RequestHeader::decode(&mut r).unwrap();
            black_box(&request);
            r.primitive::<i32>().unwrap()
        });
    });
    let mut buffer = Some(reply(Vec::new()));
    group.bench_function("reply/encode", |b| {
        b.iter(|| buffer = Some(reply(buffer.take().unwrap())));
    });
    let octets = reply(Vec::new());
    group.bench_function("reply/decode", |b| {
        b.iter(|| {
            let octets = black_box(&octets[..]);
            let header = Header::parse(octets, BYTES_MAX).unwrap().unwrap();
            let mut r = header.reader(&octets[..header.message_bytes()]);
            black_box(ReplyHeader::decode(&mut r).unwrap());
            r.primitive::<i32>().unwrap()
        });
    });
    group.finish();
}

fn sequences(c: &mut Criterion) {
    let structs: Vec<Many> = (0..ELEMENTS)
        .map(|i| Many {
            o: i as u8,
            l: i as i32,
            s: i as i16,
        })
        .collect();
    let longs: Vec<i32> = (0..ELEMENTS as i32).collect();
    for order in [ByteOrder::Little, ByteOrder::Big] {
        run(c, "structs", &structs, order);
        run(c, "longs", &longs, order);
    }
}

/// A struct, and a sequence of structs, in an any.
fn anys(c: &mut Criterion) {
    let one = Many { o: 1, l: 2, s: 3 };
    let all = vec![one; ELEMENTS];
    let mut group = c.benchmark_group("any");
    group.bench_function("struct/make", |b| {
        b.iter(|| Any::from_value(black_box(&one)).unwrap());
    });
    for (name, any) in [
        ("struct", Any::from_value(&one).unwrap()),
        ("structs", Any::from_value(&all).unwrap()),
    ] {
        let mut buffer = Some(Vec::new());
        group.bench_function(format!("{name}/encode"), |b| {
            b.iter(|| {
                let mut w = Writer::new(buffer.take().unwrap(), BYTES_MAX);
                black_box(&any).encode(&mut w).unwrap();
                buffer = Some(w.finish().0);
            });
        });
        let mut w = Writer::new(Vec::new(), BYTES_MAX);
        any.encode(&mut w).unwrap();
        let octets = w.to_bytes();
        group.bench_function(format!("{name}/decode"), |b| {
            b.iter(|| {
                Any::decode(&mut Reader::new(black_box(&octets), ByteOrder::NATIVE)).unwrap()
            });
        });
    }
    let any = Any::from_value(&all).unwrap();
    group.bench_function("structs/extract", |b| {
        b.iter(|| black_box(&any).extract::<Vec<Many>>().unwrap());
    });
    group.finish();
}

fn run<T: Encode + Decode + Clone>(c: &mut Criterion, name: &str, items: &Vec<T>, order: ByteOrder)
where
    Vec<T>: Encode + Decode,
{
    let mut group = c.benchmark_group(format!("{name}/{order:?}"));
    group.throughput(Throughput::Elements(ELEMENTS as u64));
    let encode = |buffer: Vec<u8>| {
        let mut w = Writer::new(buffer, BYTES_MAX).with_order(order);
        black_box(items).encode(&mut w).unwrap();
        w.finish().0
    };
    let mut buffer = Some(encode(Vec::new()));
    group.bench_function("encode", |b| {
        b.iter(|| buffer = Some(encode(buffer.take().unwrap())));
    });
    let mut w = Writer::new(Vec::new(), BYTES_MAX).with_order(order);
    items.encode(&mut w).unwrap();
    let octets = w.to_bytes();
    // As in a server, which decodes every call into the same memory.
    let mut into = Vec::with_capacity(ELEMENTS);
    group.bench_function("decode", |b| {
        b.iter(|| {
            into.clear();
            let mut r = Reader::new(black_box(&octets), order);
            let count = r.count(T::BYTES_MIN).unwrap();
            T::decode_into(&mut into, count, &mut r).unwrap();
            black_box(&mut into);
        });
    });
    group.finish();
}

criterion_group!(benches, headers, sequences, anys);
criterion_main!(benches);
