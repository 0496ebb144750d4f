//! What wrong clients do to our server: each is told so or left, and the others are served on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use proptest::prelude::{Just, Strategy, any, prop};
use proptest::test_runner::{Config, TestRunner};
use rtorb::{DispatchStrategy, Limits, Orb};
use rtorb_interop::ours::Ours;
use rtorb_interop::raw::{
    Answer, CLOSE_CONNECTION, Connection, FRAGMENT, LOCATE_REQUEST, MESSAGE_ERROR, REPLY, REQUEST,
    Request, Stream, fragments,
};
use rtorb_interop::running::until;

const OMG: u32 = 0x4f4d_0000;
const COMPLETED_NO: u32 = 1;

#[test]
fn a_wrong_header_ends_the_connection_and_no_other() {
    for (_, dispatch) in DispatchStrategy::ALL {
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch));
        let mut good = Good::to(&ours);
        let right = request(&good.key, "cube_long").of_long(2);
        let changed = |at: usize, value: u8| {
            let mut octets = right.clone();
            octets[at] = value;
            octets
        };
        let wrong = [
            ("magic", changed(0, b'g')),
            ("magic at the end", changed(3, 0)),
            ("major version", changed(4, 2)),
            ("major version 0", changed(4, 0)),
            ("minor version", changed(5, 3)),
            ("kind", changed(7, 8)),
            ("a size beyond the limit", changed(11, 0x7f)),
            ("kind that a client never sends", changed(7, REPLY)),
            ("fragment of nothing", changed(7, FRAGMENT)),
            (
                "no GIOP at all",
                b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
            ),
        ];
        for (what, octets) in wrong {
            let answers = answers(ours.address(), &octets);
            assert!(
                answers.iter().all(|answer| answer.kind == MESSAGE_ERROR),
                "{what}: {answers:?}"
            );
            good.call();
        }
    }
}

#[test]
fn a_message_cut_off_anywhere_harms_nobody() {
    let ours = Ours::serve();
    let mut good = Good::to(&ours);
    let whole = request(&good.key, "cube_long").of_long(2);
    for end in 0..whole.len() {
        let answers = answers(ours.address(), &whole[..end]);
        assert!(answers.is_empty(), "cut off at {end}: {answers:?}");
    }
    good.call();
}

#[test]
fn arguments_that_end_too_early_are_marshal() {
    let ours = Ours::serve();
    let mut good = Good::to(&ours);
    let long = request(&good.key, "cube_long");
    let octets = request(&good.key, "cube_octet_sequence");
    let many = request(&good.key, "cube_many_sequence");
    let union = request(&good.key, "cube_union");
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
    let mut stream = request(&key, "cube_union").head();
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
fn unknown_keys_and_operations_have_their_own_exceptions() {
    let ours = Ours::serve();
    let key = ours.key(ours.cubit.as_object());
    let mut off_by_one = key.clone();
    *off_by_one.last_mut().expect("a key is not empty") ^= 1;
    for minor in 0..3 {
        for big in [false, true] {
            let request = |key, operation| Request {
                minor,
                big,
                id: 9,
                reply: true,
                key,
                operation,
            };
            let mut connection = Connection::to(ours.address());
            let unknown = [
                b"".as_slice(),
                b"nobody",
                b"RootPOA/nobody",
                &off_by_one,
                &[0xff; 20],
                &[0; 1000],
            ];
            for key in unknown {
                let answer = connection
                    .ask(&request(key, "cube_long").of_long(2))
                    .expect("an exception");
                let (id, _, completed) = answer.exception();
                assert_eq!(
                    (id.as_str(), completed),
                    ("IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0", COMPLETED_NO)
                );
                assert_eq!((answer.id, answer.minor), (9, minor));
            }
            for operation in ["", "cube", "cube_longer", "_set_cube", "\u{fc}"] {
                let answer = connection
                    .ask(&request(&key, operation).of_long(2))
                    .expect("an exception");
                let expected = (
                    "IDL:omg.org/CORBA/BAD_OPERATION:1.0".to_owned(),
                    OMG | 2,
                    COMPLETED_NO,
                );
                assert_eq!(answer.exception(), expected, "{operation}");
            }
            let answer = connection
                .ask(&request(&key, "cube_long").of_long(3))
                .expect("the connection is still good");
            assert_eq!((answer.status, answer.long()), (0, 27));
        }
    }
}

#[test]
fn a_oneway_is_never_answered() {
    let ours = Ours::serve();
    let key = ours.key(ours.cubit.as_object());
    let mut connection = Connection::to(ours.address());
    for (key, operation) in [
        (key.as_slice(), "cube_oneway"),
        (&key, "no_such"),
        (b"nobody", "cube_oneway"),
    ] {
        connection.send(
            &Request {
                reply: false,
                ..request(key, operation)
            }
            .empty(),
        );
    }
    let answer = connection
        .ask(
            &Request {
                id: 77,
                ..request(&key, "cube_long")
            }
            .of_long(3),
        )
        .expect("a reply");
    assert_eq!(
        (answer.id, answer.long()),
        (77, 27),
        "the first answer is to the only two-way"
    );
}

#[test]
fn an_object_is_located_in_every_version() {
    let ours = Ours::serve();
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
                assert_eq!(
                    (answer.kind, answer.id, answer.status),
                    (4, 5, status),
                    "GIOP 1.{minor}"
                );
            }
        }
    }
}

#[test]
fn fragments_of_several_requests_may_come_in_turn() {
    let ours = Ours::serve();
    let key = ours.key(ours.cubit.as_object());
    let parts = |id: u32, octet: u8| {
        let mut stream = Request {
            id,
            ..request(&key, "cube_octet_sequence")
        }
        .head();
        stream.align(8).octets(&[octet; 1000]);
        fragments(&stream.message(), 128, 128)
    };
    let (first, second) = (parts(1, 2), parts(2, 3));
    assert_eq!(first.len(), second.len());
    let mut connection = Connection::to(ours.address());
    for (one, other) in first.iter().zip(&second) {
        connection.send(one);
        connection.send(other);
    }
    for (id, cubed) in [(1, 8), (2, 27)] {
        let answer = connection.answer().expect("a reply");
        assert_eq!(
            (answer.id, answer.status, answer.body[4..].to_vec()),
            (id, 0, vec![cubed; 1000])
        );
    }
}

#[test]
fn fragments_beyond_the_limit_end_the_connection() {
    let limits = Limits {
        message_octets_max: 4096,
        fragment_chains_max: 2,
        ..Limits::default()
    };
    let ours = Ours::serve_as(Orb::builder().limits(limits));
    let mut good = Good::to(&ours);
    let endless = |id: u32| {
        let mut stream = Request {
            id,
            ..request(&good.key, "cube_octet_sequence")
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
fn clients_that_never_finish_a_header_keep_nobody_waiting() {
    for (_, dispatch) in DispatchStrategy::ALL {
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch));
        let mut good = Good::to(&ours);
        let whole = request(&good.key, "cube_long").of_long(2);
        let slow: Vec<_> = (0..100)
            .map(|n| {
                let mut connection = Connection::to(ours.address());
                connection.send(&whole[..n % whole.len()]);
                connection
            })
            .collect();
        good.call();
        Good::to(&ours).call();
        drop(slow);
        good.call();
    }
}

#[test]
fn a_client_that_takes_its_reply_in_sips_is_left_and_the_others_are_served() {
    let limits = Limits {
        send_timeout: Duration::from_millis(300),
        ..Limits::default()
    };
    let reactive = Orb::builder().dispatch(DispatchStrategy::Reactive);
    let ours = Ours::serve_as(reactive.limits(limits));
    let mut good = Good::to(&ours);
    let mut greedy = TcpStream::connect(ours.address()).expect("the server listens");
    let mut stream = request(&good.key, "cube_octet_sequence").head();
    stream.align(8).octets(&vec![1; 12 << 20]);
    greedy
        .write_all(&stream.message())
        .expect("the server reads");
    // At this rate the reply would take 20 s; something is taken well within each timeout.
    let sipping = std::thread::spawn(move || {
        let mut sip = vec![0; 64 << 10];
        while greedy.read(&mut sip).is_ok_and(|taken| taken > 0) {
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let begin = Instant::now();
    good.call();
    assert!(
        begin.elapsed() < Duration::from_secs(5),
        "{:?}",
        begin.elapsed()
    );
    drop(ours);
    sipping.join().expect("no panic");
}

#[test]
fn one_connection_too_many_is_told_and_one_that_leaves_makes_room() {
    let limits = Limits {
        connections_max: 3,
        ..Limits::default()
    };
    let ours = Ours::serve_as(Orb::builder().limits(limits));
    let mut served: Vec<_> = (0..3).map(|_| Good::to(&ours)).collect();
    served.iter_mut().for_each(Good::call);
    let told = Connection::to(ours.address())
        .answer()
        .expect("the server says why it closes");
    assert_eq!(told.kind, CLOSE_CONNECTION);
    served.iter_mut().for_each(Good::call);
    drop(served.pop());
    until("a connection that ended makes room", || {
        Good::to(&ours).try_call()
    });
}

#[test]
fn random_messages_harm_nobody() {
    let ours = Ours::serve();
    let mut good = Good::to(&ours);
    let mut random = Random(0x5eed);
    for round in 0..2000 {
        let kind = (random.next() % 9) as u8;
        let mut stream = Stream::new(
            kind,
            (random.next() % 3) as u8,
            random.next().is_multiple_of(2),
        );
        let length = random.next() as usize % 200;
        let body: Vec<u8> = (0..length).map(|_| random.octet()).collect();
        stream.raw(&body);
        let answers = answers(ours.address(), &stream.message());
        assert!(answers.iter().all(is_refusal), "{answers:?}");
        if round % 100 == 0 {
            good.call();
        }
    }
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
            ..request(&key, operation)
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

/// Whether an answer tells a client that it was wrong, or that what it asked for is not there.
fn is_refusal(answer: &Answer) -> bool {
    match answer.kind {
        REPLY => answer.status == 2,
        kind => kind != REQUEST,
    }
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

/// A client that does nothing wrong and must be served whatever others do.
struct Good {
    connection: Connection,
    key: Vec<u8>,
}

impl Good {
    fn to(ours: &Ours) -> Self {
        Self {
            connection: Connection::to(ours.address()),
            key: ours.key(ours.cubit.as_object()),
        }
    }

    fn call(&mut self) {
        self.try_call()
            .expect("a client that did nothing wrong is served");
    }

    fn try_call(&mut self) -> Option<()> {
        let answer = self
            .connection
            .ask(&request(&self.key, "cube_long").of_long(3))?;
        (answer.kind == REPLY && answer.status == 0 && answer.long() == 27).then_some(())
    }
}

/// Numbers without a pattern, the same in every run (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Small numbers are what lengths and tags are made of, so they come often.
    fn octet(&mut self) -> u8 {
        let octet = self.next().to_le_bytes()[3];
        if self.next().is_multiple_of(2) {
            octet % 4
        } else {
            octet
        }
    }
}
