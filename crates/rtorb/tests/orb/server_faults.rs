//! What wrong clients do to our server: each is told so or left, and the others are served on.

use std::net::SocketAddr;

use proptest::prelude::{Just, Strategy, any, prop};
use proptest::test_runner::{Config, TestRunner};
use rtorb::{Limits, Orb};
use rtorb_tests::good::Good;
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{Answer, Connection, MESSAGE_ERROR, Request, fragments};

const COMPLETED_NO: u32 = 1;

#[test]
fn arguments_that_end_too_early_are_marshal() {
    let ours = Ours::serve();
    let mut good = Good::to(&ours);
    let long = Request::two_way(&good.key, "cube_long");
    let octets = Request::two_way(&good.key, "cube_octet_sequence");
    let many = Request::two_way(&good.key, "cube_many_sequence");
    let union = Request::two_way(&good.key, "cube_union");
    let body = |request: &Request<'_>, numbers: &[u32]| {
        let mut stream = request.head();
        stream.align(8);
        numbers.iter().for_each(|&number| {
            stream.ulong(number);
        });
        stream.message()
    };
    let cases = [
        ("no long", long.empty()),
        ("a sequence without its octets", body(&octets, &[100, 1])),
        ("a sequence of 4 Gi octets", body(&octets, &[u32::MAX, 1])),
        ("a sequence of 4 Gi structs", body(&many, &[u32::MAX, 1])),
        (
            "a sequence of 512 Mi structs",
            body(&many, &[0x2000_0000, 1]),
        ),
        ("a union without a member", body(&union, &[2])),
    ];
    for (what, message) in cases {
        let answer = Connection::to(ours.address()).ask(&message);
        let (id, minor, completed) = answer
            .unwrap_or_else(|| panic!("{what}: the connection was closed"))
            .exception();
        assert_eq!(
            (id.as_str(), completed),
            ("IDL:omg.org/CORBA/MARSHAL:1.0", COMPLETED_NO),
            "{what}: {minor:#x}"
        );
        good.call();
    }
}

#[test]
fn a_discriminator_that_no_enumerator_has_is_refused() {
    let ours = Ours::serve();
    let key = ours.key(ours.cubit.as_object());
    let mut stream = Request::two_way(&key, "cube_union").head();
    stream.align(8).ulong(4).ulong(1);
    let answer = Connection::to(ours.address())
        .ask(&stream.message())
        .expect("an exception");
    let (id, _, completed) = answer.exception();
    assert!(
        id == "IDL:omg.org/CORBA/BAD_PARAM:1.0" || id == "IDL:omg.org/CORBA/MARSHAL:1.0",
        "{id}"
    );
    assert_eq!(completed, COMPLETED_NO);
}

#[test]
fn fragments_beyond_the_limit_end_the_connection() {
    let limits = Limits::with(|limits| {
        limits.message_bytes_max = 4096;
        limits.fragment_chains_max = 2;
    });
    let ours = Ours::serve_as(Orb::builder().limits(limits));
    let mut good = Good::to(&ours);
    let endless = |id: u32| {
        let mut stream = Request {
            id,
            ..Request::two_way(&good.key, "cube_octet_sequence")
        }
        .head();
        stream.align(8).octets(&[0; 1 << 20]);
        fragments(&stream.message(), 1024, 1024)
    };
    let one_too_long = endless(1).concat();
    let answers_to_long = answers(ours.address(), &one_too_long);
    assert!(
        answers_to_long
            .iter()
            .all(|answer| answer.kind == MESSAGE_ERROR),
        "{answers_to_long:?}"
    );
    let too_many: Vec<u8> = (0..100).flat_map(|id| endless(id)[0].clone()).collect();
    let answers_to_many = answers(ours.address(), &too_many);
    assert!(
        answers_to_many
            .iter()
            .all(|answer| answer.kind == MESSAGE_ERROR),
        "{answers_to_many:?}"
    );
    good.call();
}

#[test]
fn right_messages_made_wrong_harm_nobody() {
    let ours = Ours::serve();
    let mut good = Good::to(&ours);
    let key = good.key.clone();
    let right = move |operation: &str, minor: u8, big: bool| {
        let mut stream = Request {
            minor,
            big,
            ..Request::two_way(&key, operation)
        }
        .head();
        stream.align(8).ulong(3).raw(b"abcdefghijklmnopqrstuvwx");
        stream.message()
    };
    // Not `shutdown`: that would be obeyed.
    let operations = [
        "cube_struct",
        "cube_union",
        "cube_many_sequence",
        "cube_long_sequence",
        "_is_a",
    ];
    let operations = prop::sample::select(operations.to_vec());
    let message = (operations, 0..3u8, any::<bool>())
        .prop_map(move |(operation, minor, big)| right(operation, minor, big));
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4);
    let cases = (message, changes, prop_oneof_end()).prop_map(|(mut message, changes, end)| {
        for (at, value) in changes {
            let at = at.index(message.len());
            message[at] = value;
        }
        message.truncate(end.map_or(message.len(), |end| end.index(message.len())));
        message
    });
    let mut runner = TestRunner::new(Config {
        cases: 1000,
        failure_persistence: None,
        ..Config::default()
    });
    let ran = runner.run(&cases, |message| {
        // Whatever is left of the message, right or wrong, is answered by an answer or an end.
        answers(ours.address(), &message);
        Ok(())
    });
    ran.expect("every case ends");
    good.call();
}

fn prop_oneof_end() -> impl Strategy<Value = Option<prop::sample::Index>> {
    proptest::prop_oneof![3 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)]
}

/// Sends octets and nothing more, and answers all that comes back until the connection ends.
fn answers(server: SocketAddr, octets: &[u8]) -> Vec<Answer> {
    let mut connection = Connection::to(server);
    connection.send(octets);
    connection.finish();
    std::iter::from_fn(|| connection.answer()).collect()
}
