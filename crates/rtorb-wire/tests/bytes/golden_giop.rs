//! The golden GIOP messages, decoded and encoded.

use rtorb_wire::cdr::ByteOrder;
use rtorb_wire::connection::{ReceiveLimits, Receiver, Side};
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
    w.to_bytes()
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

/// The same with a priority, by way of a prefix that was made before.
fn prefixed(order: ByteOrder) -> Vec<u8> {
    let prefix = RequestPrefix::new(Version::V1_2, order, KEY);
    let prefix = prefix.unwrap().expect("GIOP 1.2");
    written(order, |w| {
        let response = Response::FromTarget;
        prefix.begin_request(w, 2, response, "test_method").unwrap();
        RequestPrefix::add_priority(w, 16383).unwrap();
        encode_body(w, Version::V1_2, |w| w.primitive(ARGUMENT)).unwrap();
        end_message(w).unwrap();
    })
}

fn assert_call(octets: &[u8], version: Version) {
    let header = Header::parse(octets, 1024).unwrap().unwrap();
    assert_eq!(header.version, version);
    assert_eq!(header.message_bytes(), octets.len());
    let mut r = header.reader(octets);
    let request = RequestHeader::decode(&mut r).unwrap();
    assert_eq!(request.request_id, 2);
    assert_eq!(request.response, Response::FromTarget);
    assert_eq!(request.target.object_key().unwrap(), KEY);
    assert_eq!(request.operation, b"test_method");
    assert_eq!(r.primitive::<u64>().unwrap(), ARGUMENT);
    assert_eq!(r.remaining(), 0);
}

//= GIOP 1.2 §15.4.1
//% test
//= GIOP 1.2 §15.4.2.1
//% test
//= GIOP 1.2 §15.4.2.2
//% test
#[test]
fn v1_v5_and_v6_requests_of_each_version() {
    for (version, order, octets) in [
        (
            Version::V1_2,
            ByteOrder::Little,
            "47 49 4f 50 01 02 01 00 34 00 00 00 02 00 00 00 03 00 00 00 00 00 00 00 06 00 00 00 61 62 63 64
             65 66 00 00 0c 00 00 00 74 65 73 74 5f 6d 65 74 68 6f 64 00 00 00 00 00 08 07 06 05 04 03 02 01",
        ),
        (
            Version::V1_0,
            ByteOrder::Big,
            "47 49 4f 50 01 00 00 00 00 00 00 34 00 00 00 00 00 00 00 02 01 00 00 00 00 00 00 06 61 62 63 64
             65 66 00 00 00 00 00 0c 74 65 73 74 5f 6d 65 74 68 6f 64 00 00 00 00 00 01 02 03 04 05 06 07 08",
        ),
        (
            Version::V1_1,
            ByteOrder::Little,
            "47 49 4f 50 01 01 01 00 34 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00 06 00 00 00 61 62 63 64
             65 66 00 00 0c 00 00 00 74 65 73 74 5f 6d 65 74 68 6f 64 00 00 00 00 00 08 07 06 05 04 03 02 01",
        ),
    ] {
        let golden = hex(octets);
        assert_eq!(call(version, order, &[]), golden, "{version}");
        assert_call(&golden, version);
    }
}

//= GIOP 1.2 §15.4.3.1
//% test
#[test]
fn v2_reply_1_2() {
    let v2 = hex(
        "47 49 4f 50 01 02 01 01 14 00 00 00 02 00 00 00 00 00 00 00 00 00 00 00 08 07 06 05 04 03 02 01",
    );
    let reply = written(ByteOrder::Little, |w| {
        begin_reply(w, Version::V1_2, 2, ReplyStatus::NoException, &[]).unwrap();
        encode_body(w, Version::V1_2, |w| w.primitive(ARGUMENT)).unwrap();
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

//= GIOP 1.2 §15.4.2.2
//% test
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

//= RT-CORBA 1.2 §CORBA Priority
//% test
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
    assert_eq!(prefixed(ByteOrder::Little), v4);
    let big = call(Version::V1_2, ByteOrder::Big, &[context]);
    assert_eq!(prefixed(ByteOrder::Big), big);
    assert_eq!(request.contexts.find(contexts::CODE_SETS), None);
}

//= GIOP 1.2 §15.4.3.2
//% test
#[test]
fn v7_system_exception() {
    let v7 = hex(
        "47 49 4f 50 01 02 01 01 38 00 00 00 02 00 00 00 02 00 00 00 00 00 00 00 20 00 00 00 49 44 4c 3a
         6f 6d 67 2e 6f 72 67 2f 43 4f 52 42 41 2f 54 52 41 4e 53 49 45 4e 54 3a 31 2e 30 00 02 00 4d 4f
         01 00 00 00",
    );
    let body = SystemExceptionBody {
        repository_id: b"IDL:omg.org/CORBA/TRANSIENT:1.0",
        minor: 0x4f4d_0002,
        completed: 1,
    };
    let reply = written(ByteOrder::Little, |w| {
        begin_reply(w, Version::V1_2, 2, ReplyStatus::SystemException, &[]).unwrap();
        encode_body(w, Version::V1_2, |w| body.encode(w)).unwrap();
        end_message(w).unwrap();
    });
    assert_eq!(reply, v7);
    let header = Header::parse(&v7, 1024).unwrap().unwrap();
    let mut r = header.reader(&v7);
    let reply = ReplyHeader::decode(&mut r).unwrap();
    assert_eq!(reply.status, ReplyStatus::SystemException);
    assert_eq!(SystemExceptionBody::decode(&mut r), Ok(body));
}

//= GIOP 1.2 §15.4.4
//% test
//= GIOP 1.2 §15.4.5
//% test
//= GIOP 1.2 §15.4.6
//% test
//= GIOP 1.2 §15.4.7
//% test
//= GIOP 1.2 §15.4.8
//% test
#[test]
fn v8_to_v11_short_messages() {
    let v8 = hex(
        "47 49 4f 50 01 02 01 03 12 00 00 00 06 00 00 00 00 00 00 00 06 00 00 00 61 62 63 64 65 66",
    );
    let v9 = hex("47 49 4f 50 01 02 01 04 08 00 00 00 06 00 00 00 01 00 00 00");
    let v10 = hex("47 49 4f 50 01 02 01 02 04 00 00 00 02 00 00 00");
    let v11 = hex("47 49 4f 50 01 00 00 05 00 00 00 00");
    let (little, version) = (ByteOrder::Little, Version::V1_2);
    let here = LocateStatus::ObjectHere;
    let wrote = written(little, |w| {
        write_locate_request(w, version, 6, KEY).unwrap()
    });
    assert_eq!(wrote, v8);
    let wrote = written(little, |w| write_locate_reply(w, version, 6, here).unwrap());
    assert_eq!(wrote, v9);
    let wrote = written(little, |w| write_cancel_request(w, version, 2).unwrap());
    assert_eq!(wrote, v10);
    let close = |w: &mut Writer<'_>| write_close_connection(w, Version::V1_0).unwrap();
    assert_eq!(written(ByteOrder::Big, close), v11);

    let parse = |octets: &[u8]| Header::parse(octets, 64).unwrap().unwrap();
    let request = LocateRequestHeader::decode(&mut parse(&v8).reader(&v8)).unwrap();
    assert_eq!(request.target, Target::Key(KEY));
    let reply = LocateReplyHeader::decode(&mut parse(&v9).reader(&v9)).unwrap();
    assert_eq!((reply.request_id, reply.status), (6, here));
    assert_eq!(parse(&v10).message_type, MessageType::CancelRequest);
    assert_eq!(parse(&v11).message_type, MessageType::CloseConnection);
}

fn v12() -> (Vec<u8>, Vec<u8>) {
    let first = hex(
        "47 49 4f 50 01 02 03 00 3c 00 00 00 02 00 00 00 03 00 00 00 00 00 00 00 06 00 00 00 61 62 63 64
         65 66 00 00 0c 00 00 00 74 65 73 74 5f 6d 65 74 68 6f 64 00 00 00 00 00 28 00 00 00 00 01 02 03
         04 05 06 07 08 09 0a 0b",
    );
    let last = hex(
        "47 49 4f 50 01 02 01 07 20 00 00 00 02 00 00 00 0c 0d 0e 0f 10 11 12 13 14 15 16 17 18 19 1a 1b
         1c 1d 1e 1f 20 21 22 23 24 25 26 27",
    );
    (first, last)
}

//= GIOP 1.2 §15.4.9
//% test
#[test]
fn v12_fragmented_request() {
    let (first, last) = v12();
    let octets: Vec<u8> = (0..40).collect();
    let whole = written(ByteOrder::Little, |w| {
        let start = RequestStart {
            request_id: 2,
            response: Response::FromTarget,
            object_key: KEY,
            operation: "test_method",
            contexts: &[],
        };
        begin_request(w, Version::V1_2, &start).unwrap();
        encode_body(w, Version::V1_2, |w| {
            w.count(octets.len())?;
            w.octets(&octets)
        })
        .unwrap();
        end_message(w).unwrap();
    });
    let parts: Vec<_> = fragments(&whole, 79).collect();
    assert_eq!(parts, [first.clone(), last.clone()]);

    let limits = ReceiveLimits {
        message_bytes_max: 1024,
        fragmented_messages_max: 2,
    };
    let mut receiver = Receiver::new(Side::Server, limits);
    for (part, message) in [(first, None), (last, Some(&whole[..]))] {
        receiver.free()[..part.len()].copy_from_slice(&part);
        receiver.advance(part.len());
        let received = receiver.next().unwrap();
        assert_eq!(received.map(|received| received.bytes), message);
    }
}

//= GIOP 1.2 §15.4.9
//% test
#[test]
fn a_cancel_request_ends_the_fragments_of_its_request_in_each_version() {
    for version in [Version::V1_1, Version::V1_2] {
        let request = |request_id| {
            written(ByteOrder::Little, |w| {
                let start = RequestStart {
                    request_id,
                    response: Response::FromTarget,
                    object_key: KEY,
                    operation: "test_method",
                    contexts: &[],
                };
                begin_request(w, version, &start).unwrap();
                encode_body(w, version, |w| w.octets(&[7; 64])).unwrap();
                end_message(w).unwrap();
            })
        };
        let (cancelled, next) = (request(2), request(3));
        let limits = ReceiveLimits {
            message_bytes_max: 1024,
            fragmented_messages_max: 2,
        };
        let mut receiver = Receiver::new(Side::Server, limits);
        let mut receive = |part: &[u8]| {
            receiver.free()[..part.len()].copy_from_slice(part);
            receiver.advance(part.len());
            let received = receiver.next().map(|it| it.map(|it| it.bytes.to_vec()));
            received.expect("it is in place")
        };
        let cancel = |request_id| {
            written(ByteOrder::Little, |w| {
                write_cancel_request(w, version, request_id).unwrap();
            })
        };
        let first = fragments(&cancelled, 80).next().unwrap();
        assert_eq!(receive(&first), None);
        // It concerns an earlier request.
        assert_eq!(receive(&cancel(1)), Some(cancel(1)));
        assert_eq!(receive(&cancel(2)), Some(cancel(2)));
        let parts: Vec<_> = fragments(&next, 80).collect();
        let (last, first) = parts.split_last().unwrap();
        assert!(first.iter().all(|part| receive(part).is_none()));
        assert_eq!(receive(last), Some(next.clone()));
    }
}

#[test]
fn a_receiver_gives_its_buffer_away_only_when_nothing_waits_in_it() {
    let mut w = Writer::new(Vec::new(), 1024);
    write_cancel_request(&mut w, Version::V1_2, 7).unwrap();
    let message = w.to_bytes();
    let limits = ReceiveLimits {
        message_bytes_max: 1024,
        fragmented_messages_max: 2,
    };
    let mut receiver = Receiver::without_buffer(Side::Server, limits);
    assert!(receiver.free().is_empty() && receiver.take_buffer().is_none());
    assert_eq!(receiver.next().map(|next| next.is_none()), Ok(true));
    receiver.lend(Receiver::new_buffer());
    receiver.free()[..5].copy_from_slice(&message[..5]);
    receiver.advance(5);
    assert!(
        receiver.take_buffer().is_none() && receiver.has_buffer(),
        "half a message"
    );
    receiver.free()[..message.len() - 5].copy_from_slice(&message[5..]);
    receiver.advance(message.len() - 5);
    assert!(receiver.next().unwrap().is_some(), "a whole message");
    let buffer = receiver.take_buffer().expect("everything was read");
    assert!(!receiver.has_buffer());
    receiver.lend(buffer);
    assert!(!receiver.free().is_empty());
}

const THREAD: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xa, 0xb, 0xc, 0xd, 0xe, 0xf];

//= RT-CORBA 1.2 §Distributable Threads
//% test
#[test]
fn the_context_of_a_distributable_thread_in_both_byte_orders() {
    let by_priority = ThreadContext {
        thread_id: THREAD,
        segment: "ab".into(),
        parameter: SegmentParameter::Priority(0x102),
        implicit: SegmentParameter::None,
    };
    let by_deadline = ThreadContext {
        segment: "".into(),
        parameter: SegmentParameter::Deadline {
            left_ns: 0x0102_0304_0506_0708,
            importance: -2,
        },
        implicit: SegmentParameter::Priority(7),
        ..by_priority.clone()
    };
    for (context, order, octets) in [
        (
            &by_priority,
            ByteOrder::Big,
            "00 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 00 00 00 00 00 00 03 61 62 00 00 00 00 00 01
             01 02 00 00 00 00 00 00",
        ),
        (
            &by_priority,
            ByteOrder::Little,
            "01 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 00 00 00 03 00 00 00 61 62 00 00 01 00 00 00
             02 01 00 00 00 00 00 00",
        ),
        (
            &by_deadline,
            ByteOrder::Big,
            "00 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 00 00 00 00 00 00 01 00 00 00 00 00 00 00 02
             01 02 03 04 05 06 07 08 ff ff ff fe 00 00 00 01 00 07",
        ),
        (
            &by_deadline,
            ByteOrder::Little,
            "01 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 00 00 00 01 00 00 00 00 00 00 00 02 00 00 00
             08 07 06 05 04 03 02 01 fe ff ff ff 01 00 00 00 07 00",
        ),
    ] {
        let golden = hex(octets);
        let mut written = Vec::new();
        context.write(&mut written, order).unwrap();
        assert_eq!(written, golden, "{context:?}");
        assert_eq!(ThreadContext::read(&golden).as_ref(), Ok(context));
        for end in 0..golden.len() {
            assert!(ThreadContext::read(&golden[..end]).is_err(), "{end} bytes");
        }
    }
}

#[test]
fn the_context_of_a_distributable_thread_has_bounds() {
    let named = |bytes: usize| ThreadContext {
        thread_id: THREAD,
        segment: "s".repeat(bytes).into(),
        parameter: SegmentParameter::None,
        implicit: SegmentParameter::None,
    };
    let mut data = Vec::new();
    named(SEGMENT_NAME_BYTES_MAX)
        .write(&mut data, ByteOrder::Big)
        .unwrap();
    assert_eq!(
        ThreadContext::read(&data),
        Ok(named(SEGMENT_NAME_BYTES_MAX))
    );
    let long = named(SEGMENT_NAME_BYTES_MAX + 1).write(&mut data, ByteOrder::Big);
    assert!(long.is_err());
    data.resize(THREAD_CONTEXT_BYTES_MAX + 1, 0);
    assert!(ThreadContext::read(&data).is_err());
}

//= GIOP 1.2 §15.4.4
//% test
#[test]
fn cancelled_requests_are_found_between_other_messages() {
    for order in [ByteOrder::Big, ByteOrder::Little] {
        let mut bytes = call(Version::V1_2, order, &[]);
        for id in [7, 0x0102_0304] {
            bytes.extend(written(order, |w| {
                write_cancel_request(w, Version::V1_0, id).unwrap();
            }));
            bytes.extend(call(Version::V1_0, order, &[]));
        }
        assert!(cancelled_requests(&bytes).eq([7, 0x0102_0304]));
        // A message that is not whole yet, or is no GIOP, ends the list.
        assert_eq!(cancelled_requests(&bytes[..bytes.len() - 1]).count(), 2);
        bytes.splice(..4, *b"JUNK");
        assert_eq!(cancelled_requests(&bytes).count(), 0);
    }
}
