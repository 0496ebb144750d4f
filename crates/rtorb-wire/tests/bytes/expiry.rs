//! Deadlines in service contexts: golden bytes, what the earliest is, and bytes that are none.

use proptest::collection::vec;
use proptest::prelude::*;
use rtorb_wire::giop::{
    Expiry, Header, PassedDeadline, PassedRequest, PassedTarget, RequestHeader, RequestPrefix,
    RequestStart, Response, ServiceContext, UtcOrigin, UtcTime, Version, begin_request, contexts,
    encode_body, end_message, remaining_time,
};
use rtorb_wire::{ByteOrder, Writer};

fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits"))
        .collect()
}

/// 15 November 2023, 22:13:20.1234567, to 1 ms.
const TIME: UtcTime = UtcTime {
    ticks: 0x01ee_8404_e12b_5687,
    inaccuracy_ticks: 10_000,
};

/// Both end times, as an encapsulation of each byte order has them. A `UtcT` is an encapsulation of its own.
const LITTLE: &str = "01 00 00 00 02 00 00 00
    1c 00 00 00 18 00 00 00 01 00 00 00 00 00 00 00 87 56 2b e1 04 84 ee 01 10 27 00 00 00 00 00 00
    1e 00 00 00 18 00 00 00 01 00 00 00 00 00 00 00 87 56 2b e1 04 84 ee 01 10 27 00 00 00 00 00 00";
const BIG: &str = "00 00 00 00 00 00 00 02
    00 00 00 1c 00 00 00 18 00 00 00 00 00 00 00 00 01 ee 84 04 e1 2b 56 87 00 00 27 10 00 00 00 00
    00 00 00 1e 00 00 00 18 00 00 00 00 00 00 00 00 01 ee 84 04 e1 2b 56 87 00 00 27 10 00 00 00 00";

/// The header of a request with these contexts, read from its bytes, and the expiry in it.
fn expiry(list: &[(u32, &[u8])], version: Version, order: ByteOrder) -> Expiry {
    let contexts: Vec<_> = list
        .iter()
        .map(|&(id, data)| ServiceContext { id, data })
        .collect();
    let start = RequestStart {
        request_id: 2,
        response: Response::FromTarget,
        object_key: b"key",
        operation: "op",
        contexts: &contexts,
    };
    let mut w = Writer::new(Vec::new(), 1 << 20).with_order(order);
    begin_request(&mut w, version, &start).unwrap();
    end_message(&mut w).unwrap();
    let bytes = w.to_bytes();
    let header = Header::parse(&bytes, 1 << 20).unwrap().unwrap();
    let request = RequestHeader::decode(&mut header.reader(&bytes)).unwrap();
    let found = Expiry::of(request.contexts);
    let given = given(&bytes);
    assert!(
        given.is_none_or(|given| found.end == Some(given)),
        "{given:?}, {found:?}"
    );
    found
}

/// The end time that [`RequestHeader::read`] gives. Whoever does not take it finds the same header, with the contexts.
fn given(bytes: &[u8]) -> Option<UtcTime> {
    let header = Header::parse(bytes, 1 << 20).unwrap().unwrap();
    let mut whole = header.reader(bytes);
    let with_contexts = RequestHeader::decode(&mut whole).unwrap();
    assert!(!with_contexts.contexts.are_taken());
    let mut found = None;
    for takes in [false, true] {
        let (mut r, mut request) = (header.reader(bytes), RequestHeader::EMPTY);
        let take = |end| {
            found = Some(end);
            takes
        };
        request.read(&mut r, take).unwrap();
        assert_eq!(r.position(), whole.position());
        assert_eq!(request.contexts.are_taken(), takes && found.is_some());
        if request.contexts.are_taken() {
            assert!(request.contexts.is_empty() && request.contexts.iter().next().is_none());
            request.contexts = with_contexts.contexts;
        }
        assert_eq!(request, with_contexts);
    }
    found
}

const LATEST: Version = Version::V1_2;

fn end(data: &[u8]) -> Option<UtcTime> {
    let list = [(contexts::INVOCATION_POLICIES, data)];
    expiry(&list, LATEST, ByteOrder::NATIVE).end
}

//= CORBA 3 §22.2
//% test
#[test]
fn end_times_are_those_of_corba_messaging() {
    let golden = match ByteOrder::NATIVE {
        ByteOrder::Little => LITTLE,
        ByteOrder::Big => BIG,
    };
    assert_eq!(TIME.end_times()[..], hex(golden));
    let data = [hex(LITTLE), hex(BIG)];
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for data in &data {
                let list = [
                    (contexts::RT_CORBA_PRIORITY, &contexts::priority(5)[..]),
                    (contexts::INVOCATION_POLICIES, data),
                ];
                let found = expiry(&list, version, order);
                assert_eq!(found.end, Some(TIME), "{version}");
                assert_eq!(found.remaining_ns, None);
            }
        }
    }
}

#[test]
fn remaining_time_is_a_context_of_rtorb() {
    let golden = hex("01 00 00 00 00 00 00 00 40 4b 4c 00 00 00 00 00");
    if ByteOrder::NATIVE == ByteOrder::Little {
        assert_eq!(remaining_time(5_000_000)[..], golden);
    }
    let big = hex("00 00 00 00 00 00 00 00 00 00 00 00 00 4c 4b 40");
    for data in [golden, big] {
        let list = [(0x7274_6001, &data[..])];
        let found = expiry(&list, LATEST, ByteOrder::NATIVE);
        assert_eq!((found.end, found.remaining_ns), (None, Some(5_000_000)));
    }
}

#[test]
fn a_prefix_begins_the_same_request_as_the_long_way() {
    let data = TIME.end_times();
    let priority = contexts::priority(9);
    let both = [
        ServiceContext {
            id: contexts::INVOCATION_POLICIES,
            data: &data,
        },
        ServiceContext {
            id: contexts::RT_CORBA_PRIORITY,
            data: &priority,
        },
    ];
    for order in [ByteOrder::Little, ByteOrder::Big] {
        for contexts in [&both[..1], &both] {
            let start = RequestStart {
                request_id: 6,
                response: Response::FromTarget,
                object_key: b"a key",
                operation: "op",
                contexts,
            };
            let mut whole = Writer::new(Vec::new(), 1000).with_order(order);
            begin_request(&mut whole, LATEST, &start).unwrap();
            end_message(&mut whole).unwrap();
            let prefix = RequestPrefix::new(LATEST, order, b"a key");
            let prefix = prefix.unwrap().expect("GIOP 1.2");
            let mut w = Writer::new(Vec::new(), 1000).with_order(order);
            let response = Response::FromTarget;
            prefix.begin_request(&mut w, 6, response, "op").unwrap();
            RequestPrefix::add_contexts(&mut w, contexts).unwrap();
            end_message(&mut w).unwrap();
            assert_eq!(w.to_bytes(), whole.to_bytes());
            if contexts.len() == 1 {
                let mut w = Writer::new(w.into_buffer(), 1000).with_order(order);
                prefix.begin_request(&mut w, 6, response, "op").unwrap();
                assert!(prefix.add_end_time(&mut w, TIME), "there is room");
                end_message(&mut w).unwrap();
                assert_eq!(w.to_bytes(), whole.to_bytes());
            }
        }
    }
}

/// The expiry that is found at once in a request with these contexts, in the byte order of this host.
fn found_at_once(list: &[ServiceContext<'_>]) -> Option<UtcTime> {
    let start = RequestStart {
        request_id: 6,
        response: Response::FromTarget,
        object_key: b"a key",
        operation: "op",
        contexts: list,
    };
    let mut w = Writer::new(Vec::new(), 1000);
    begin_request(&mut w, LATEST, &start).unwrap();
    end_message(&mut w).unwrap();
    let bytes = w.to_bytes();
    given(&bytes)
}

#[test]
fn only_a_lone_context_as_this_orb_makes_it_is_read_at_once() {
    let id = contexts::INVOCATION_POLICIES;
    let data = TIME.end_times();
    let own = ServiceContext { id, data: &data };
    assert_eq!(found_at_once(&[own]), Some(TIME));
    for list in [&[][..], &[own, own], &[ServiceContext { id: 6, ..own }]] {
        assert_eq!(found_at_once(list), None);
    }
    for (at, bit) in (0..data.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut other = data;
        other[at] ^= 1 << bit;
        let other = [ServiceContext { id, data: &other }];
        // Only what pads a time to a multiple of 8 has no meaning.
        let found = matches!(at, 20..24 | 54..56).then_some(TIME);
        assert_eq!(found_at_once(&other), found, "bit {bit} of byte {at}");
        if found.is_some() {
            let slowly = expiry(&[(id, other[0].data)], LATEST, ByteOrder::NATIVE);
            assert_eq!(slowly.end, found, "byte {at}");
        }
    }
    let swapped = hex(if ByteOrder::NATIVE == ByteOrder::Little {
        BIG
    } else {
        LITTLE
    });
    let swapped = ServiceContext { id, data: &swapped };
    assert_eq!(found_at_once(&[swapped]), None);
    for cut in 0..data.len() {
        let data = &data[..cut];
        assert_eq!(found_at_once(&[ServiceContext { id, data }]), None);
    }
}

#[test]
fn the_body_is_found_behind_a_context_of_any_length() {
    for (order, length) in (0..80).flat_map(|n| [(ByteOrder::Little, n), (ByteOrder::Big, n)]) {
        let data: Vec<u8> = (0..length).collect();
        let context = ServiceContext { id: 9, data: &data };
        for contexts in [&[context][..], &[context, context]] {
            let start = RequestStart {
                request_id: 7,
                response: Response::FromTarget,
                object_key: b"a key",
                operation: "op",
                contexts,
            };
            let mut w = Writer::new(Vec::new(), 1000).with_order(order);
            begin_request(&mut w, LATEST, &start).unwrap();
            encode_body(&mut w, LATEST, |w| w.primitive(0x0102_0304_0506_0708_u64)).unwrap();
            end_message(&mut w).unwrap();
            let bytes = w.to_bytes();
            let header = Header::parse(&bytes, 1000).unwrap().unwrap();
            let mut r = header.reader(&bytes);
            let request = RequestHeader::decode(&mut r).unwrap();
            assert_eq!((request.request_id, request.operation), (7, &b"op"[..]));
            assert!(request.contexts.iter().eq(contexts.iter().copied()));
            assert_eq!(request.contexts.find(9), Some(&data[..]));
            assert_eq!(request.contexts.find(8), None);
            assert!(!request.contexts.is_empty());
            assert_eq!(r.primitive(), Ok(0x0102_0304_0506_0708_u64));
        }
    }
}

/// An INVOCATION_POLICIES of big-endian policies.
fn policies(list: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut data = vec![0, 0, 0, 0];
    data.extend((list.len() as u32).to_be_bytes());
    for (policy, value) in list {
        data.resize(data.len().next_multiple_of(4), 0);
        data.extend(policy.to_be_bytes());
        data.extend((value.len() as u32).to_be_bytes());
        data.extend(value);
    }
    data
}

fn utc(ticks: u64) -> Vec<u8> {
    let mut value = vec![0; 8];
    value.extend(ticks.to_be_bytes());
    value.extend([0; 8]);
    value
}

fn period(ticks: u64) -> Vec<u8> {
    let mut value = vec![0; 8];
    value.extend(ticks.to_be_bytes());
    value
}

#[test]
fn the_earliest_deadline_counts_and_what_is_not_known_says_nothing() {
    let unknown = (37, vec![0, 0, 0, 1]);
    let data = policies(&[
        (30, utc(900)),
        unknown.clone(),
        (28, utc(700)),
        (32, period(50)),
        (31, period(40)),
    ]);
    let own = remaining_time(3_900);
    let list = [
        (contexts::INVOCATION_POLICIES, &data[..]),
        (contexts::REMAINING_TIME, &own),
    ];
    let found = expiry(&list, LATEST, ByteOrder::NATIVE);
    assert_eq!(found.end.map(|end| end.ticks), Some(700));
    assert_eq!(found.remaining_ns, Some(3_900));
    let found = expiry(&list[..1], LATEST, ByteOrder::NATIVE);
    assert_eq!(found.remaining_ns, Some(4_000));
    assert_eq!(end(&policies(&[unknown])), None);
    assert!(expiry(&[], LATEST, ByteOrder::NATIVE).is_never());
    // Malformed: a value that is cut, a count that is too large, nothing at all. What stands before it counts.
    let cut = policies(&[(30, utc(900)), (28, vec![0, 0, 0])]);
    assert_eq!(end(&cut).map(|end| end.ticks), Some(900));
    assert_eq!(end(&[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]), None);
    assert_eq!(end(&[]), None);
}

const KEY: &[u8] = b"a key";
const ID: u32 = 6;

/// A request with this context between two others, and a body.
fn request_with(id: u32, data: &[u8], version: Version, order: ByteOrder) -> Vec<u8> {
    let other = ServiceContext {
        id: 9,
        data: &[0, 1, 2],
    };
    let start = RequestStart {
        request_id: ID,
        response: Response::FromTarget,
        object_key: KEY,
        operation: "op",
        contexts: &[other, ServiceContext { id, data }, other],
    };
    let mut w = Writer::new(Vec::new(), 1 << 20).with_order(order);
    begin_request(&mut w, version, &start).unwrap();
    encode_body(&mut w, version, |w| w.primitive(0x0102_0304_0506_0708_u64)).unwrap();
    end_message(&mut w).unwrap();
    w.to_bytes()
}

/// The request as a proxy passes it on after `spent_ns`, to an object with the same key, and with the same id.
fn passed_after(spent_ns: u64, request: &[u8]) -> Vec<u8> {
    let request = PassedRequest::parse(request, None).unwrap();
    let target = PassedTarget {
        object_key: KEY,
        address: None,
    };
    let deadline = PassedDeadline::Stated { spent_ns };
    let mut w = Writer::new(Vec::new(), 1 << 20);
    request.write(&mut w, ID, target, None, deadline).unwrap();
    w.to_bytes()
}

/// The data of a context of a request that was passed on after `spent_ns`. Checks that no other byte has changed, in any form of request.
fn data_after(spent_ns: u64, id: u32, data: &[u8]) -> Vec<u8> {
    let mut later = None;
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let passed = passed_after(spent_ns, &request_with(id, data, version, order));
            let found = {
                let request = PassedRequest::parse(&passed, None).unwrap();
                let found = request.request().contexts.find(id);
                found.expect("the context").to_vec()
            };
            assert_eq!(found.len(), data.len(), "{version} {order:?}");
            assert_eq!(
                passed,
                request_with(id, &found, version, order),
                "{version} {order:?}"
            );
            let same = later.get_or_insert_with(|| found.clone());
            assert_eq!(*same, found, "{version} {order:?}");
        }
    }
    later.expect("there are versions")
}

#[test]
fn a_passed_request_says_what_is_left_of_its_remaining_time() {
    // 5 ms, then 1.5 ms less. What pads the time, and what is behind it, stays.
    for (before, after) in [
        (
            "01 00 00 00 00 00 00 00 40 4b 4c 00 00 00 00 00",
            "01 00 00 00 00 00 00 00 e0 67 35 00 00 00 00 00",
        ),
        (
            "00 00 00 00 00 00 00 00 00 00 00 00 00 4c 4b 40",
            "00 00 00 00 00 00 00 00 00 00 00 00 00 35 67 e0",
        ),
        (
            "01 a1 a2 a3 a4 a5 a6 a7 40 4b 4c 00 00 00 00 00 b1 b2",
            "01 a1 a2 a3 a4 a5 a6 a7 e0 67 35 00 00 00 00 00 b1 b2",
        ),
    ] {
        let before = hex(before);
        let data_after = |spent_ns| data_after(spent_ns, contexts::REMAINING_TIME, &before);
        assert_eq!(data_after(0), before);
        assert_eq!(data_after(1_500_000), hex(after));
        let mut expired = before.clone();
        expired[8..16].fill(0);
        for spent_ns in [5_000_000, 5_000_001, u64::MAX] {
            assert_eq!(data_after(spent_ns), expired, "{spent_ns}");
        }
    }
}

#[test]
fn a_passed_request_says_what_is_left_of_relative_timeouts() {
    let of = |request_ticks, round_trip_ticks| {
        let unknown = (37, vec![0, 0, 0, 1]);
        policies(&[
            (30, utc(900)),
            (31, period(request_ticks)),
            unknown,
            (32, period(round_trip_ticks)),
            (28, utc(700)),
        ])
    };
    let data_after =
        |spent_ns| data_after(spent_ns, contexts::INVOCATION_POLICIES, &of(40, 1 << 40));
    // A part of a tick of 100 ns is not left.
    for (spent_ns, ticks) in [(0, 0), (1, 1), (100, 1), (101, 2), (4_000, 40)] {
        assert_eq!(data_after(spent_ns), of(40 - ticks, (1 << 40) - ticks));
    }
    assert_eq!(data_after(4_001), of(0, (1 << 40) - 41));
    assert_eq!(data_after(u64::MAX), of(0, 0));
}

#[test]
fn a_passed_request_keeps_end_times_and_times_that_cannot_be_read() {
    for both in [hex(LITTLE), hex(BIG)] {
        let id = contexts::INVOCATION_POLICIES;
        assert_eq!(data_after(u64::MAX, id, &both), both);
    }
    for id in [contexts::REMAINING_TIME, contexts::INVOCATION_POLICIES] {
        for data in ["", "01", "02 00", "01 00 00 00 00 00 00 00 40 4b 4c 00 00"] {
            assert_eq!(data_after(1, id, &hex(data)), hex(data), "{id} {data}");
        }
    }
    // What stands before a value that is cut is read.
    let cut = |ticks| policies(&[(32, period(ticks)), (31, vec![0; 9])]);
    let id = contexts::INVOCATION_POLICIES;
    assert_eq!(data_after(100, id, &cut(7)), cut(6));
    // Other contexts may have the same bytes.
    let other = hex("01 00 00 00 00 00 00 00 40 4b 4c 00 00 00 00 00");
    assert_eq!(data_after(1, 0x7274_6002, &other), other);
}

#[test]
fn a_request_has_been_here_since_its_arrival() {
    let data = remaining_time(5_000_000);
    let bytes = request_with(contexts::REMAINING_TIME, &data, LATEST, ByteOrder::NATIVE);
    let request = PassedRequest::parse(&bytes, None).unwrap();
    assert_eq!(request.spent_ns(100), 0);
    let request = request.with_arrival(30);
    assert_eq!((request.spent_ns(100), request.spent_ns(29)), (70, 0));
}

proptest! {
    #[test]
    fn every_remaining_time_is_shorter_by_what_was_spent(
        remaining_ns in any::<u64>(),
        spent_ns in any::<u64>(),
    ) {
        let data = data_after(spent_ns, contexts::REMAINING_TIME, &remaining_time(remaining_ns));
        prop_assert_eq!(data, remaining_time(remaining_ns.saturating_sub(spent_ns)));
    }

    #[test]
    fn no_bytes_of_a_passed_request_are_a_panic(
        data in vec(any::<u8>(), 0..100),
        spent_ns in any::<u64>(),
    ) {
        for id in [contexts::REMAINING_TIME, contexts::INVOCATION_POLICIES] {
            data_after(spent_ns, id, &data);
        }
    }

    #[test]
    fn every_time_comes_back(ns in 0..u64::MAX / 2, inaccuracy_ticks in 0..1_u64 << 33) {
        let latest_ticks = TIME.ticks;
        let origin = UtcOrigin { earliest_ticks: latest_ticks - inaccuracy_ticks, latest_ticks };
        let time = UtcTime::after(origin, ns);
        prop_assert_eq!(end(&time.end_times()), Some(time));
        let exactly = UtcOrigin { earliest_ticks: latest_ticks, latest_ticks };
        let (latest_ns, inaccuracy_ns) = (time.latest_ns_after(exactly), inaccuracy_ticks * 100);
        prop_assert!(latest_ns >= ns + inaccuracy_ns);
        prop_assert!(latest_ns - ns <= inaccuracy_ns + 200);
    }

    #[test]
    fn a_time_is_near_or_before_the_origin_or_later_than_nanoseconds_say(
        ticks in any::<u64>(),
        inaccuracy_ticks in 0..1_u64 << 48,
        earlier in any::<u64>(),
    ) {
        let time = UtcTime { ticks, inaccuracy_ticks };
        let latest_ticks = TIME.ticks;
        let earliest_ticks = latest_ticks - earlier % (latest_ticks / 2);
        let origin = UtcOrigin { earliest_ticks, latest_ticks };
        let latest_ns = time.latest_ns_after(origin);
        let exact = i128::from(ticks) + i128::from(inaccuracy_ticks) - i128::from(earliest_ticks);
        let nearest_ns = if exact < 0 { 0 } else { u64::MAX };
        match u64::try_from(exact * 100) {
            Ok(exact_ns) => {
                prop_assert_eq!(latest_ns, exact_ns);
                prop_assert_eq!(time.near_ns_after(origin), Some(exact_ns));
            }
            Err(_) => {
                prop_assert_eq!(latest_ns, nearest_ns);
                prop_assert_eq!(time.near_ns_after(origin), None);
            }
        }
    }

    #[test]
    fn no_bytes_are_a_panic(data in vec(any::<u8>(), 0..100), own in vec(any::<u8>(), 0..20)) {
        let list = [(contexts::INVOCATION_POLICIES, &data[..]), (contexts::REMAINING_TIME, &own)];
        let found = expiry(&list, LATEST, ByteOrder::NATIVE);
        if let Some(end) = found.end {
            let (earliest_ticks, latest_ticks) = (TIME.ticks, TIME.ticks);
            let origin = UtcOrigin { earliest_ticks, latest_ticks };
            let _ = (end.latest_ns_after(origin), end.near_ns_after(origin));
        }
    }

    #[test]
    fn changed_end_times_are_no_panic(at in 0..72_usize, byte in any::<u8>()) {
        let mut data = TIME.end_times();
        data[at] = byte;
        let _ = end(&data);
    }
}
