//! What a client may send and few do: every form of address, contexts that nobody knows, requests in a row or in crumbs.

use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{Answer, Connection, REPLY, REQUEST, Request, Stream};

const OMG: u32 = 0x4f4d_0000;
const CANCEL_REQUEST: u8 = 2;
const CODE_SETS: u32 = 1;
const UTF_8: u32 = 0x0501_0001;
const ISO_8859_1: u32 = 0x0001_0001;
const UTF_16: u32 = 0x0001_0109;

//= GIOP 1.2 §15.4.2.1
//% test
#[test]
fn an_object_may_be_addressed_by_key_by_profile_or_by_reference() {
    let ours = Ours::serve();
    let ior = ours.cubit.as_object().ior();
    let key = ours.key(ours.cubit.as_object());
    for big in [false, true] {
        let mut connection = Connection::to(ours.address());
        let by_key = |stream: &mut Stream| {
            stream.ushort(0).octets(&key);
        };
        let by_profile = |stream: &mut Stream| {
            stream
                .ushort(1)
                .ulong(ior.profiles[0].tag)
                .octets(&ior.profiles[0].data);
        };
        let by_reference = |stream: &mut Stream| {
            stream.ushort(2).ulong(0).string(&ior.type_id).ulong(1);
            stream
                .ulong(ior.profiles[0].tag)
                .octets(&ior.profiles[0].data);
        };
        for address in [&by_key as &dyn Fn(&mut Stream), &by_profile, &by_reference] {
            assert_right(connection.ask(&addressed(big, 3, address, &[])));
        }
        let to_none = |stream: &mut Stream| {
            stream.ushort(2).ulong(7).string("").ulong(0);
        };
        assert!(
            connection
                .ask(&addressed(big, 3, &to_none, &[]))
                .is_none_or(|answer| answer.status != 0)
        );
    }
}

//= GIOP 1.2 §15.4.2.1
//% test
#[test]
fn a_client_may_ask_for_a_reply_before_the_call() {
    let ours = Ours::serve();
    let key = ours.key(ours.cubit.as_object());
    let mut connection = Connection::to(ours.address());
    let by_key = |stream: &mut Stream| {
        stream.ushort(0).octets(&key);
    };
    let answer = connection
        .ask(&addressed(false, 1, &by_key, &[]))
        .expect("it is told that the request is here");
    assert_eq!(
        (answer.kind, answer.status, answer.body.len()),
        (REPLY, 0, 0),
        "no result"
    );
    assert_right(connection.ask(&addressed(false, 3, &by_key, &[])));
}

//= CORBA 3 §13.7
//% test
#[test]
fn contexts_that_nobody_knows_are_passed_over() {
    let ours = Ours::serve();
    let key = ours.key(ours.cubit.as_object());
    let mut connection = Connection::to(ours.address());
    let by_key = |stream: &mut Stream| {
        stream.ushort(0).octets(&key);
    };
    let contexts: Vec<_> = (0..20)
        .map(|n| (0x4a41_4300 + n, vec![0xff; n as usize]))
        .collect();
    assert_right(connection.ask(&addressed(false, 3, &by_key, &contexts)));
}

//= CORBA 3 §13.10.2.5
//% test
#[test]
fn code_sets_that_the_server_has_not_and_ones_that_change_are_refused() {
    let ours = Ours::serve();
    let key = ours.key(ours.cubit.as_object());
    let by_key = |stream: &mut Stream| {
        stream.ushort(0).octets(&key);
    };
    let told = |char_data: u32| {
        let mut octets = vec![1, 0, 0, 0];
        octets.extend_from_slice(&char_data.to_le_bytes());
        octets.extend_from_slice(&UTF_16.to_le_bytes());
        vec![(CODE_SETS, octets)]
    };
    let mut connection = Connection::to(ours.address());
    let answer = connection
        .ask(&addressed(false, 3, &by_key, &told(0x1002_0025)))
        .expect("an exception");
    let incompatible = "IDL:omg.org/CORBA/CODESET_INCOMPATIBLE:1.0".to_owned();
    assert_eq!(answer.exception(), (incompatible, OMG | 2, 1));
    let mut connection = Connection::to(ours.address());
    assert_right(connection.ask(&addressed(false, 3, &by_key, &told(UTF_8))));
    assert_right(connection.ask(&addressed(false, 3, &by_key, &told(UTF_8))));
    let answer = connection
        .ask(&addressed(false, 3, &by_key, &told(ISO_8859_1)))
        .expect("an exception");
    assert_eq!(
        answer.exception(),
        ("IDL:omg.org/CORBA/MARSHAL:1.0".to_owned(), OMG | 9, 1)
    );
}

//= GIOP 1.2 §15.4.2.2
//% test
#[test]
fn padding_behind_an_empty_body_is_tolerated() {
    let ours = Ours::serve();
    let key = ours.key(ours.cubit.as_object());
    let mut connection = Connection::to(ours.address());
    for pad in 0..9 {
        let mut stream = request(&key, "cube_void").head();
        stream.raw(&vec![0; pad]);
        let answer = connection.ask(&stream.message()).expect("a reply");
        assert_eq!(
            (answer.kind, answer.status),
            (REPLY, 0),
            "{pad} octets of padding"
        );
    }
}

//= GIOP 1.2 §15.4.4
//% test
#[test]
fn a_cancel_request_is_heard_and_changes_nothing() {
    let ours = Ours::serve();
    let key = ours.key(ours.cubit.as_object());
    let mut connection = Connection::to(ours.address());
    for id in [1, 99] {
        let mut cancel = Stream::new(CANCEL_REQUEST, 2, false);
        cancel.ulong(id);
        connection.send(&cancel.message());
        assert_right(connection.ask(&request(&key, "cube_long").of_long(3)));
    }
}

#[test]
fn requests_in_a_row_are_answered_in_order() {
    let ours = Ours::serve();
    let key = ours.key(ours.cubit.as_object());
    let ids = 0..500;
    let row: Vec<u8> = ids
        .clone()
        .flat_map(|id| {
            Request {
                id,
                ..request(&key, "cube_long")
            }
            .of_long(3)
        })
        .collect();
    let mut connection = Connection::to(ours.address());
    connection.send(&row);
    for id in ids {
        let answer = connection.answer();
        assert_eq!(answer.as_ref().map(|answer| answer.id), Some(id));
        assert_right(answer);
    }
}

#[test]
fn a_request_in_crumbs_is_answered_once_it_is_whole() {
    let ours = Ours::serve();
    let key = ours.key(ours.cubit.as_object());
    let mut connection = Connection::to(ours.address());
    for octet in request(&key, "cube_long").of_long(3) {
        connection.send(&[octet]);
    }
    assert_right(connection.answer());
}

fn assert_right(answer: Option<Answer>) {
    let answer = answer.expect("a reply");
    assert_eq!((answer.kind, answer.status), (REPLY, 0), "{answer:?}");
    assert_eq!(answer.long(), 27);
}

fn request<'a>(key: &'a [u8], operation: &'a str) -> Request<'a> {
    Request {
        minor: 2,
        big: false,
        id: 1,
        reply: true,
        key,
        operation,
    }
}

/// `cube_long(3)` in GIOP 1.2 with these response flags, form of address, and contexts.
fn addressed(
    big: bool,
    flags: u8,
    address: &dyn Fn(&mut Stream),
    contexts: &[(u32, Vec<u8>)],
) -> Vec<u8> {
    let mut stream = Stream::new(REQUEST, 2, big);
    stream.ulong(5).raw(&[flags, 0, 0, 0]);
    address(&mut stream);
    stream
        .string("cube_long")
        .ulong(u32::try_from(contexts.len()).expect("few"));
    for (id, data) in contexts {
        stream.ulong(*id).octets(data);
    }
    stream.align(8).long(3);
    stream.message()
}
