//! Ordinary calls, and all the forms that requests of well-behaved clients have.

use super::Case;
use rtorb::giop::Version;
use rtorb::{Orb, OrbBuilder};
use rtorb_tests::good::Good;
use rtorb_tests::ours::{Ours, Wide, check_cubit, check_desk};
use rtorb_tests::raw::{Answer, Connection, LOCATE_REQUEST, REPLY, Request, Stream, fragments};
use rtorb_tests::running::until;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::stubs::Cubit;
use rtorb_tests::stubs::exchange::Desk;
use rtorb_wire::ByteOrder;
use std::collections::BTreeMap;
use std::thread;

const LENGTHS: [usize; 6] = [0, 1, 4, 1021, 4096, 100_000];
const OMG: u32 = 0x4f4d_0000;
const COMPLETED_NO: u32 = 1;
const CANCEL_REQUEST: u8 = 2;
const LOCATE_REPLY: u8 = 4;
/// Requests on the way at a time: more than any pool has threads.
const PIPELINED: u32 = 200;

pub(crate) fn operations_are_right_in_every_version_and_byte_order(case: Case) {
    let ours = case.serve();
    for version in [Version::V1_0, Version::V1_1, Version::V1_2] {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            println!("GIOP {version}, {order:?}");
            let client = Orb::builder().max_giop_version(version).byte_order(order);
            check_operations(&ours, client, version);
        }
    }
}

pub(crate) fn operations_are_right_over_a_unix_socket(case: Case) {
    let scratch = Scratch::new();
    let endpoint = format!("uiop://{}", scratch.join("socket").display());
    let ours = case.serve_as(case.builder().listen(&endpoint));
    check_operations(&ours, Orb::builder(), Version::V1_2);
}

pub(crate) fn operations_are_right_through_shared_memory(case: Case) {
    // Through the smaller ring, most messages go in parts.
    for ring_bytes in [256 << 10, 4096] {
        let scratch = Scratch::new();
        let endpoint = format!("shmiop://{}", scratch.join("socket").display());
        let server = case.builder().shared_memory_ring_bytes(ring_bytes);
        let ours = case.serve_as(server.listen(&endpoint));
        check_operations(&ours, Orb::builder(), Version::V1_2);
    }
}

pub(crate) fn operations_are_right_in_fragments_both_ways(case: Case) {
    let ours = case.serve_as(case.builder().fragment_bytes(256));
    for version in [Version::V1_1, Version::V1_2] {
        let client = Orb::builder().fragment_bytes(64).max_giop_version(version);
        check_operations(&ours, client, version);
    }
}

pub(crate) fn thirty_two_threads_do_not_disturb_each_other(case: Case) {
    let ours = case.serve();
    thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| check_cubit(&ours.cubit, &[0, 1, 1021]));
        }
    });
    check_desk(&ours.desk, Wide::Sent);
}

pub(crate) fn requests_that_do_not_wait_for_replies_are_each_answered_once(case: Case) {
    let ours = case.serve();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| pipeline(&ours));
        }
    });
    Good::to(&ours).call();
}

/// Sends all requests before it reads a reply, the same ones again when it has all: a connection that went to another
/// way of being served goes on.
fn pipeline(ours: &Ours) {
    let key = ours.key(ours.cubit.as_object());
    let mut connection = Connection::to(ours.address());
    for _ in 0..2 {
        let requests = (0..PIPELINED).map(|id| {
            Request {
                id,
                ..Request::two_way(&key, "cube_long")
            }
            .of_long(id.cast_signed())
        });
        connection.send(&requests.flatten().collect::<Vec<_>>());
        let answers = answers(&mut connection, PIPELINED);
        for (id, answer) in answers {
            let cubed = id.cast_signed().wrapping_pow(3);
            assert_eq!(
                (answer.kind, answer.status, answer.long()),
                (REPLY, 0, cubed),
                "{id}"
            );
        }
    }
    let last = connection.ask(&Request::two_way(&key, "cube_long").of_long(3));
    assert_eq!(
        last.map(|answer| answer.long()),
        Some(27),
        "no answer came twice"
    );
}

/// So many answers, by their request id.
fn answers(connection: &mut Connection, number: u32) -> BTreeMap<u32, Answer> {
    let mut answers = BTreeMap::new();
    for _ in 0..number {
        let answer = connection.answer().expect("every request is answered");
        let before = answers.insert(answer.id, answer);
        assert!(before.is_none(), "answered twice: {before:?}");
    }
    answers
}

pub(crate) fn requests_are_found_wherever_the_stream_is_cut(case: Case) {
    let ours = case.serve();
    let key = ours.key(ours.cubit.as_object());
    let two: Vec<u8> = (0..2)
        .flat_map(|id| {
            Request {
                id,
                ..Request::two_way(&key, "cube_long")
            }
            .of_long(3)
        })
        .collect();
    let mut connection = Connection::to(ours.address());
    for cut in (1..two.len()).step_by(5) {
        let (begin, end) = two.split_at(cut);
        connection.send(begin);
        // Time for a server to look at the first part alone; whether it does is of no account for what is right.
        thread::yield_now();
        connection.send(end);
        for (id, answer) in answers(&mut connection, 2) {
            assert_eq!(
                (answer.status, answer.long()),
                (0, 27),
                "{id}, cut at {cut}"
            );
        }
    }
}

pub(crate) fn oneways_are_all_carried_out_and_never_answered(case: Case) {
    let ours = case.serve();
    let key = ours.key(ours.desk.as_object());
    let mut connection = Connection::to(ours.address());
    for _ in 0..PIPELINED {
        connection.send(
            &Request {
                reply: false,
                ..Request::two_way(&key, "note")
            }
            .of_long(7),
        );
        ours.desk.note(7).expect("it can be sent");
    }
    for (key, operation) in [(key.as_slice(), "no_such"), (b"nobody", "note")] {
        connection.send(
            &Request {
                reply: false,
                ..Request::two_way(key, operation)
            }
            .of_long(7),
        );
    }
    let answer = connection.ask(
        &Request {
            id: 77,
            ..Request::two_way(&key, "_get_level")
        }
        .empty(),
    );
    let answer = answer.expect("a two-way is answered");
    assert_eq!((answer.id, answer.status), (77, 0), "it is the only one");
    until("every note is noted", || {
        (ours.desk.noted() == Ok(2 * PIPELINED.cast_signed())).then_some(())
    });
}

pub(crate) fn fragments_of_several_requests_may_come_in_turn(case: Case) {
    let ours = case.serve();
    let key = ours.key(ours.cubit.as_object());
    let parts = |id: u32, octet: u8| {
        let mut stream = Request {
            id,
            ..Request::two_way(&key, "cube_octet_sequence")
        }
        .head();
        stream.align(8).octets(&[octet; 1000]);
        fragments(&stream.message(), 128, 128)
    };
    let (first, second) = (parts(1, 2), parts(2, 3));
    assert_eq!(first.len(), second.len());
    let mut connection = Connection::to(ours.address());
    for _ in 0..3 {
        for (one, other) in first.iter().zip(&second) {
            connection.send(one);
            connection.send(other);
        }
        for (id, answer) in answers(&mut connection, 2) {
            let cubed = if id == 1 { 8 } else { 27 };
            assert_eq!((answer.status, &answer.body[4..]), (0, &[cubed; 1000][..]));
        }
    }
}

pub(crate) fn objects_are_located_in_every_version(case: Case) {
    let ours = case.serve();
    let key = ours.key(ours.cubit.as_object());
    for minor in 0..3 {
        for big in [false, true] {
            let mut connection = Connection::to(ours.address());
            for (key, status) in [(key.as_slice(), 1), (b"nobody".as_slice(), 0)] {
                let mut stream = Stream::new(LOCATE_REQUEST, minor, big);
                stream.ulong(5);
                if minor >= 2 {
                    stream.ushort(0);
                }
                stream.octets(key);
                let answer = connection.ask(&stream.message()).expect("an answer");
                let seen = (answer.kind, answer.id, answer.status);
                assert_eq!(seen, (LOCATE_REPLY, 5, status), "GIOP 1.{minor}");
            }
        }
    }
}

pub(crate) fn a_request_that_is_cancelled_leaves_the_connection_good(case: Case) {
    let ours = case.serve();
    let key = ours.key(ours.cubit.as_object());
    let cancel = |id: u32| {
        let mut stream = Stream::new(CANCEL_REQUEST, 2, false);
        stream.ulong(id);
        stream.message()
    };
    let mut connection = Connection::to(ours.address());
    // One that never was, one that came in part, and one that may be served already or not.
    connection.send(&cancel(5));
    let mut stream = Request {
        id: 6,
        ..Request::two_way(&key, "cube_octet_sequence")
    }
    .head();
    stream.align(8).octets(&[2; 1000]);
    connection.send(&fragments(&stream.message(), 128, 128)[0]);
    connection.send(&cancel(6));
    let served = Request {
        id: 7,
        ..Request::two_way(&key, "cube_long")
    }
    .of_long(2);
    connection.send(&[served, cancel(7)].concat());
    connection.send(
        &Request {
            id: 8,
            ..Request::two_way(&key, "cube_long")
        }
        .of_long(3),
    );
    loop {
        let answer = connection.answer().expect("the connection is good");
        match answer.id {
            7 => assert_eq!(
                answer.long(),
                8,
                "a request may be answered although it was cancelled"
            ),
            8 => break assert_eq!(answer.long(), 27),
            id => panic!("an answer to {id}"),
        }
    }
}

pub(crate) fn unknown_keys_and_operations_have_their_own_exceptions(case: Case) {
    let ours = case.serve();
    let key = ours.key(ours.cubit.as_object());
    let mut off_by_one = key.clone();
    *off_by_one.last_mut().expect("a key is not empty") ^= 1;
    for minor in 0..3 {
        for big in [false, true] {
            let request_for = |key, operation| Request {
                minor,
                big,
                id: 9,
                reply: true,
                key,
                operation,
            };
            let mut connection = Connection::to(ours.address());
            for key in [
                b"".as_slice(),
                b"RootPOA/nobody",
                &off_by_one,
                &[0xff; 20],
                &[0; 1000],
            ] {
                let answer = connection
                    .ask(&request_for(key, "cube_long").of_long(2))
                    .expect("an exception");
                let (id, _, completed) = answer.exception();
                assert_eq!(
                    (id.as_str(), completed),
                    ("IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0", COMPLETED_NO)
                );
                assert_eq!((answer.id, answer.minor), (9, minor));
            }
            for operation in ["", "cube_longer", "_set_cube", "\u{fc}"] {
                let answer = connection
                    .ask(&request_for(&key, operation).of_long(2))
                    .expect("an exception");
                let expected = (
                    "IDL:omg.org/CORBA/BAD_OPERATION:1.0".to_owned(),
                    OMG | 2,
                    COMPLETED_NO,
                );
                assert_eq!(answer.exception(), expected, "{operation}");
            }
            let answer = connection.ask(&request_for(&key, "cube_long").of_long(3));
            let answer = answer.expect("the connection is still good");
            assert_eq!((answer.status, answer.long()), (0, 27));
        }
    }
}

fn check_operations(ours: &Ours, client: OrbBuilder, version: Version) {
    let orb = client.build().expect("the ORB can be built");
    let object = |text: &str| orb.string_to_object(text).expect("a reference");
    let cubit = Cubit::narrow(&object(&ours.text(ours.cubit.as_object()))).expect("it is a Cubit");
    check_cubit(&cubit, &LENGTHS);
    let desk = Desk::narrow(&object(&ours.text(ours.desk.as_object()))).expect("it is a Desk");
    let wide = if version == Version::V1_0 {
        Wide::LeftOut
    } else {
        Wide::Sent
    };
    check_desk(&desk, wide);
}
