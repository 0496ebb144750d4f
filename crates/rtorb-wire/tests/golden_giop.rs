//! The golden GIOP messages: read as what they say, and written octet for octet.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall panic")]

use rtorb_wire::cdr::ByteOrder;
use rtorb_wire::giop::*;
use rtorb_wire::{Encode, Writer};

const KEY: &[u8] = b"abcdef";
const ARGUMENT: u64 = 0x0102_0304_0506_0708;

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .map(|octet| u8::from_str_radix(octet, 16).expect("two hexadecimal digits"))
        .collect()
}

fn written(order: ByteOrder, write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut w = Writer::new(Vec::new(), 1 << 20).with_order(order);
    write(&mut w);
    w.into_octets()
}

fn call(version: Version, order: ByteOrder, contexts: &[ServiceContext<'_>]) -> Vec<u8> {
    written(order, |w| {
        let start = RequestStart {
            request_id: 2,
            response: Response::FromTarget,
            object_key: KEY,
            operation: "test_method",
            contexts,
        };
        begin_request(w, version, &start).unwrap();
        encode_body(w, version, |w| w.primitive(ARGUMENT)).unwrap();
        end_message(w).unwrap();
    })
}

fn assert_call(octets: &[u8], version: Version) {
    let header = Header::parse(octets, 1024).unwrap().unwrap();
    assert_eq!(header.version, version);
    assert_eq!(header.message_octets(), octets.len());
    let mut r = header.reader(octets);
    let request = RequestHeader::decode(&mut r).unwrap();
    assert_eq!(request.request_id, 2);
    assert_eq!(request.response, Response::FromTarget);
    assert_eq!(request.target.object_key().unwrap(), KEY);
    assert_eq!(request.operation, b"test_method");
    assert_eq!(r.primitive::<u64>().unwrap(), ARGUMENT);
    assert_eq!(r.remaining(), 0);
}

#[test]
fn v1_request_1_2() {
    let v1 = hex(
        "47 49 4f 50 01 02 01 00 34 00 00 00 02 00 00 00 03 00 00 00 00 00 00 00 06 00 00 00 61 62 63 64
         65 66 00 00 0c 00 00 00 74 65 73 74 5f 6d 65 74 68 6f 64 00 00 00 00 00 08 07 06 05 04 03 02 01",
    );
    assert_eq!(call(Version::V1_2, ByteOrder::Little, &[]), v1);
    assert_call(&v1, Version::V1_2);
}

#[test]
fn v2_reply_1_2() {
    let v2 = hex(
        "47 49 4f 50 01 02 01 01 14 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00 08 07 06 05 04 03 02 01",
    );
    let reply = written(ByteOrder::Little, |w| {
        begin_reply(w, Version::V1_2, 2, ReplyStatus::NoException, &[]).unwrap();
        encode_body(w, Version::V1_2, |w| ARGUMENT.encode_copied(w)).unwrap();
        end_message(w).unwrap();
    });
    assert_eq!(reply, v2);
    let header = Header::parse(&v2, 32).unwrap().unwrap();
    let mut r = header.reader(&v2);
    let reply = ReplyHeader::decode(&mut r).unwrap();
    assert_eq!(
        (reply.request_id, reply.status),
        (2, ReplyStatus::NoException)
    );
    assert!(reply.contexts.is_empty());
    assert_eq!(r.primitive::<u64>().unwrap(), ARGUMENT);
}

trait EncodeCopied {
    fn encode_copied(&self, w: &mut Writer<'_>) -> Result<(), rtorb_wire::EncodeError>;
}

impl EncodeCopied for u64 {
    fn encode_copied(&self, w: &mut Writer<'_>) -> Result<(), rtorb_wire::EncodeError> {
        w.primitive(*self)
    }
}

#[test]
fn v3_request_without_body_is_not_padded() {
    let v3 = hex(
        "47 49 4f 50 01 02 01 00 2c 00 00 00 04 00 00 00 03 00 00 00 00 00 00 00 06 00 00 00 61 62 63 64
         65 66 00 00 09 00 00 00 73 68 75 74 64 6f 77 6e 00 00 00 00 00 00 00 00",
    );
    let request = written(ByteOrder::Little, |w| {
        let start = RequestStart {
            request_id: 4,
            response: Response::FromTarget,
            object_key: KEY,
            operation: "shutdown",
            contexts: &[],
        };
        begin_request(w, Version::V1_2, &start).unwrap();
        encode_body(w, Version::V1_2, |w| ().encode(w)).unwrap();
        end_message(w).unwrap();
    });
    assert_eq!(request, v3);
}

#[test]
fn v4_request_with_priority() {
    let v4 = hex(
        "47 49 4f 50 01 02 01 00 44 00 00 00 02 00 00 00 03 00 00 00 00 00 00 00 06 00 00 00 61 62 63 64
         65 66 00 00 0c 00 00 00 74 65 73 74 5f 6d 65 74 68 6f 64 00 01 00 00 00 0a 00 00 00 04 00 00 00
         01 00 ff 3f 00 00 00 00 08 07 06 05 04 03 02 01",
    );
    let data = contexts::priority(16383);
    let context = ServiceContext {
        id: contexts::RT_CORBA_PRIORITY,
        data: &data,
    };
    assert_eq!(call(Version::V1_2, ByteOrder::Little, &[context]), v4);
    assert_call(&v4, Version::V1_2);
    let header = Header::parse(&v4, 1024).unwrap().unwrap();
    let request = RequestHeader::decode(&mut header.reader(&v4)).unwrap();
    let found = request.contexts.find(contexts::RT_CORBA_PRIORITY).unwrap();
    assert_eq!(contexts::decode_priority(found), Ok(16383));
    assert_eq!(request.contexts.find(contexts::CODE_SETS), None);
}
