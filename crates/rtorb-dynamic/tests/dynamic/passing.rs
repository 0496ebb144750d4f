//! What passes through a proxy, byte by byte: a client and a server without an ORB.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use rtorb::Orb;
use rtorb::endpoint::Endpoint;
use rtorb::ior::Ior;
use rtorb_dynamic::recording::Record;
use rtorb_dynamic::search::FoundInterface;
use rtorb_dynamic::{Proxy, Types};
use rtorb_tests::fake::{FakeServer, Peer};
use rtorb_tests::raw::{Connection, REPLY, REQUEST, Stream};
use rtorb_tests::recorder::message;
use rtorb_wire::giop::Version;
use rtorb_wire::giop::contexts::REMAINING_TIME;
use rtorb_wire::ior::{IiopProfile, ProfileBody};
use serde_json::json;

const IDL: &str = "
struct Node { sequence<Node> below; };
interface Mixer {
  void stir(in wstring word, in Node root);
  wstring word();
  Node tree();
  any extra();
};
";

/// The byte order and the GIOP version of a message.
#[derive(Clone, Copy, Debug)]
struct Form {
    minor: u8,
    big: bool,
}

const FORMS: [Form; 6] = [
    Form {
        minor: 0,
        big: false,
    },
    Form {
        minor: 0,
        big: true,
    },
    Form {
        minor: 1,
        big: false,
    },
    Form {
        minor: 1,
        big: true,
    },
    Form {
        minor: 2,
        big: false,
    },
    Form {
        minor: 2,
        big: true,
    },
];

/// A request of a client. Only its id is always the same.
#[derive(Clone, Copy)]
struct Asked<'a> {
    form: Form,
    flags: u8,
    operation: &'a str,
    contexts: &'a [(u32, &'a [u8])],
    principal: &'a [u8],
    body: &'a [u8],
}

const ID: u32 = 77;

impl Asked<'_> {
    /// The message, and where its body begins.
    fn message(&self, key: &[u8]) -> (Vec<u8>, usize) {
        let Form { minor, big } = self.form;
        let mut stream = Stream::new(REQUEST, minor, big);
        if minor < 2 {
            contexts(&mut stream, self.contexts);
        }
        stream.ulong(ID).raw(&[self.flags]);
        if minor > 0 {
            stream.raw(&[0; 3]);
        }
        if minor >= 2 {
            stream.ushort(0);
        }
        stream.octets(key).string(self.operation);
        if minor < 2 {
            stream.octets(self.principal);
        } else {
            contexts(&mut stream, self.contexts);
            if !self.body.is_empty() {
                stream.align(8);
            }
        }
        let body_at = stream.clone().message().len();
        stream.raw(self.body);
        (stream.message(), body_at)
    }
}

fn contexts(stream: &mut Stream, contexts: &[(u32, &[u8])]) {
    stream.ulong(u32::try_from(contexts.len()).unwrap());
    for (id, data) in contexts {
        stream.ulong(*id).octets(data);
    }
}

/// A reply of a server.
fn replied(form: Form, status: u32, given: &[(u32, &[u8])], body: &[u8]) -> Stream {
    let mut stream = Stream::new(REPLY, form.minor, form.big);
    if form.minor < 2 {
        contexts(&mut stream, given);
        stream.ulong(ID).ulong(status);
    } else {
        stream.ulong(ID).ulong(status);
        contexts(&mut stream, given);
        if !body.is_empty() {
            stream.align(8);
        }
    }
    stream.raw(body);
    stream
}

/// The place of the request id in a reply with these contexts.
fn reply_id_at(form: Form, given: &[(u32, &[u8])]) -> usize {
    if form.minor >= 2 {
        return 12;
    }
    let mut stream = Stream::new(REPLY, form.minor, form.big);
    contexts(&mut stream, given);
    stream.align(4);
    stream.message().len()
}

/// Messages, each with the number of its connection.
type Received = Vec<(usize, Vec<u8>)>;

/// A server that replies with given bytes, and keeps what came to it.
struct Target {
    server: FakeServer,
    came: Arc<Mutex<Received>>,
}

impl Target {
    /// `reply` makes the reply of a request, with its id.
    fn new(reply: impl Fn(&[u8]) -> Option<Vec<u8>> + Clone + Send + 'static) -> Self {
        let came = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&came);
        let server = FakeServer::new(move |number, mut peer: Peer| {
            while let Some(request) = peer.message() {
                kept.lock().unwrap().push((number, request.clone()));
                if let Some(reply) = reply(&request) {
                    peer.send(&reply);
                }
            }
        });
        Self { server, came }
    }

    /// Its reference with that key and version.
    fn reference(&self, key: &[u8]) -> String {
        let ior: Ior = self.server.reference().parse().unwrap();
        let mut profile = ior.iiop_profiles().next().unwrap();
        profile.object_key = key.to_vec();
        let profiles = vec![profile.to_tagged().unwrap()];
        Ior { profiles, ..ior }.to_string()
    }

    fn last(&self) -> (usize, Vec<u8>) {
        self.came.lock().unwrap().last().cloned().unwrap()
    }
}

/// The id that a request has, with the bytes of a reply: the reply to it.
fn with_id(request: &[u8], reply: &[u8], id_at: usize) -> Vec<u8> {
    let form = Form {
        minor: request[5],
        big: request[6] & 1 == 0,
    };
    let id = request_id_at(form, request);
    let mut reply = reply.to_vec();
    reply[id_at..id_at + 4].copy_from_slice(&request[id..id + 4]);
    reply
}

/// Where the id of a request is: behind the contexts before GIOP 1.2.
fn request_id_at(form: Form, request: &[u8]) -> usize {
    if form.minor >= 2 {
        return 12;
    }
    let number = |at: usize| {
        let four = request[at..at + 4].try_into().unwrap();
        let number = if form.big {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        };
        usize::try_from(number).unwrap()
    };
    let mut at = 16;
    for _ in 0..number(12) {
        at = (at + 8 + number(at + 4)).next_multiple_of(4);
    }
    at
}

/// A proxy of an object, in an ORB of its own.
struct Stand {
    orb: Orb,
    running: Option<JoinHandle<()>>,
    address: SocketAddr,
    key: Vec<u8>,
    records: Arc<Mutex<Vec<Record>>>,
}

impl Stand {
    fn new(reference: &str, found: Option<FoundInterface>) -> Self {
        let orb = Orb::builder().build().unwrap();
        let target = orb.string_to_object(reference).unwrap();
        let records = Arc::new(Mutex::new(Vec::new()));
        let own = Arc::clone(&records);
        let mut proxy = Proxy::new(target, &orb, move |record: &Record| {
            own.lock().unwrap().push(record.clone());
        });
        if let Some(found) = found {
            proxy = proxy.with_interface(found);
        }
        let object = orb.root_poa().unwrap().activate_dynamic(proxy).unwrap();
        let key = object.ior().iiop_profiles().next().unwrap().object_key;
        let address = orb.endpoints().iter().find_map(|it| match it {
            Endpoint::Tcp { port, .. } => Some(SocketAddr::from(([127, 0, 0, 1], *port))),
            _ => None,
        });
        let running = orb.clone();
        let running = std::thread::spawn(move || running.run().unwrap());
        Self {
            orb,
            running: Some(running),
            address: address.unwrap(),
            key,
            records,
        }
    }

    fn last(&self) -> Record {
        self.records.lock().unwrap().last().cloned().unwrap()
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.orb.shutdown();
        let _ = self.running.take().map(JoinHandle::join);
    }
}

/// Sends a request and returns the whole reply.
fn ask(socket: &mut TcpStream, octets: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    socket.write_all(octets).unwrap();
    message(socket).unwrap()
}

fn found() -> FoundInterface {
    let mut types = Types::default();
    types.add_text("mixer.idl", IDL).unwrap();
    let interface = Arc::clone(types.interface("Mixer").unwrap());
    let types = Arc::new(types);
    FoundInterface { interface, types }
}

/// Bytes of no type.
const BYTES: [u8; 21] = [
    0x01, 0xff, 0, 0xd8, 7, 0, 0, 0, 0x80, 0x7f, 0xff, 0xff, 2, 9, 0, 0, 3, 3, 3, 0xfe, 1,
];

#[test]
fn requests_and_replies_pass_in_every_form_and_at_every_place() {
    let target = Target::new(|request| {
        let form = Form {
            minor: request[5],
            big: request[6] & 1 == 0,
        };
        let given: [(u32, &[u8]); 2] = [(0x4a41_4300, &[1, 2, 3]), (14, &[0, 0, 0, 0, 0])];
        // The operation says how many contexts the reply has.
        let count = usize::from(request.windows(6).any(|it| it == b"second")) * 2;
        let reply = replied(form, 0, &given[..count], &BYTES).message();
        let id_at = reply_id_at(form, &given[..count]);
        Some(with_id(request, &reply, id_at))
    });
    for key_len in [1, 4, 5, 30, 31, 32, 33, 40] {
        let key = vec![b'k'; key_len];
        let stand = Stand::new(&target.reference(&key), None);
        for form in FORMS {
            let mut socket = TcpStream::connect(stand.address).unwrap();
            for (operation, principal, body) in [
                ("first", &b""[..], &BYTES[..]),
                ("second", b"root", &BYTES[..]),
                ("second_", b"r", &BYTES[..9]),
                ("empty", b"", b""),
            ] {
                let asked = Asked {
                    form,
                    flags: if form.minor >= 2 { 3 } else { 1 },
                    operation,
                    contexts: &[(0x4a41_4301, &[5; 5])],
                    principal,
                    body,
                };
                let (request, body_at) = asked.message(&stand.key);
                let reply = ask(&mut socket, &request);
                let (_, came) = target.last();
                assert_eq!((came[5], came[6] & 1 == 0), (form.minor, form.big));
                assert!(came.ends_with(body), "{form:?} {operation}: {came:?}");
                let moved = came.len() - body.len();
                assert!(
                    body.is_empty() || moved % 8 == body_at % 8,
                    "{form:?} {came:?}"
                );
                // GIOP 1.2 has no principal.
                let principal = if form.minor < 2 { principal } else { b"" };
                let text = [key.as_slice(), principal, operation.as_bytes()];
                for part in text {
                    let mut windows = came.windows(part.len().max(1));
                    assert!(part.is_empty() || windows.any(|it| it == part), "{form:?}");
                }
                let given: [(u32, &[u8]); 2] = [(0x4a41_4300, &[1, 2, 3]), (14, &[0, 0, 0, 0, 0])];
                let count = usize::from(operation.starts_with("second")) * 2;
                let expected = replied(form, 0, &given[..count], &BYTES).message();
                assert_eq!(reply, expected, "{form:?} {operation}");
            }
        }
    }
}

/// The data of a context that says how much time is left, in either byte order.
fn remaining_time(big: bool, left_ns: u64) -> Vec<u8> {
    let left = if big {
        left_ns.to_be_bytes()
    } else {
        left_ns.to_le_bytes()
    };
    [&[u8::from(!big)][..], &[0; 7], &left].concat()
}

#[test]
fn a_remaining_time_passes_without_the_time_that_the_proxy_took_and_all_else_as_it_came() {
    const LEFT_NS: u64 = 3_600_000_000_000;
    // As long as the key of the proxy: the body does not move.
    const TARGET_KEY: [u8; 20] = [b'k'; 20];
    let target = Target::new(|request| {
        let form = Form {
            minor: request[5],
            big: request[6] & 1 == 0,
        };
        let reply = replied(form, 0, &[], &BYTES).message();
        Some(with_id(request, &reply, reply_id_at(form, &[])))
    });
    let stand = Stand::new(&target.reference(&TARGET_KEY), None);
    assert_eq!(stand.key.len(), TARGET_KEY.len());
    for (form, big) in FORMS.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let data = remaining_time(big, LEFT_NS);
        let asked = Asked {
            form,
            flags: if form.minor >= 2 { 3 } else { 1 },
            operation: "turn",
            contexts: &[
                (0x4a41_4301, &[5; 5]),
                (REMAINING_TIME, &data),
                (0x4a41_4302, &[6; 4]),
            ],
            principal: b"",
            body: &BYTES,
        };
        let mut socket = TcpStream::connect(stand.address).unwrap();
        let begun = Instant::now();
        ask(&mut socket, &asked.message(&stand.key).0);
        let took = begun.elapsed();
        let (_, came) = target.last();
        let (mut expected, _) = asked.message(&TARGET_KEY);
        let id_at = request_id_at(form, &expected);
        expected[id_at..id_at + 4].copy_from_slice(&came[id_at..id_at + 4]);
        let mut windows = expected.windows(data.len());
        let at = 8 + windows.position(|it| it == data).unwrap();
        let left: [u8; 8] = came[at..at + 8].try_into().unwrap();
        expected[at..at + 8].copy_from_slice(&left);
        assert_eq!(came, expected, "{form:?}");
        let left_ns = if big {
            u64::from_be_bytes(left)
        } else {
            u64::from_le_bytes(left)
        };
        let spent_ns = LEFT_NS.checked_sub(left_ns).unwrap();
        assert!(
            spent_ns > 0 && u128::from(spent_ns) <= took.as_nanos(),
            "{form:?}: {spent_ns} ns of {took:?}"
        );
    }
}

#[test]
fn exceptions_and_oneways_pass_in_every_form() {
    let target = Target::new(|request| {
        let form = Form {
            minor: request[5],
            big: request[6] & 1 == 0,
        };
        let has = |word: &[u8]| request.windows(word.len()).any(|it| it == word);
        let status = if has(b"user") { 1 } else { 2 };
        let reply = exception(form, status).message();
        (!has(b"oneway")).then(|| with_id(request, &reply, reply_id_at(form, &[])))
    });
    let stand = Stand::new(&target.reference(b"object"), None);
    for form in FORMS {
        let mut socket = TcpStream::connect(stand.address).unwrap();
        for (operation, status) in [("user", 1), ("system", 2), ("_is_a", 2), ("_interface", 2)] {
            let two_way = Asked {
                form,
                flags: if form.minor >= 2 { 3 } else { 1 },
                operation,
                contexts: &[],
                principal: b"",
                body: b"",
            };
            let oneway = Asked {
                flags: 0,
                operation: "oneway",
                ..two_way
            };
            let together = [oneway, two_way]
                .map(|it| it.message(&stand.key).0)
                .concat();
            let reply = ask(&mut socket, &together);
            assert_eq!(
                reply,
                exception(form, status).message(),
                "{operation} {form:?}"
            );
            let came = target.came.lock().unwrap();
            let [.., (_, oneway), (_, two_way)] = &came[..] else {
                panic!("both came")
            };
            let has = |came: &[u8], word: &str| {
                let mut windows = came.windows(word.len());
                windows.any(|it| it == word.as_bytes())
            };
            assert!(has(oneway, "oneway") && has(two_way, operation));
        }
        let waits = Asked {
            form,
            flags: 1,
            operation: "waits",
            contexts: &[],
            principal: b"",
            body: b"",
        };
        let reply = ask(&mut socket, &waits.message(&stand.key).0);
        assert_eq!(reply, exception(form, 2).message(), "SYNC_WITH_SERVER");
        assert_eq!(
            target.last().1[request_id_at(form, &target.last().1) + 4],
            1
        );
    }
    let raised = stand.last().raises.unwrap();
    assert_eq!(raised["exception"], json!("IDL:omg.org/CORBA/UNKNOWN:1.0"));
}

/// A reply with an exception that this ORB does not know.
fn exception(form: Form, status: u32) -> Stream {
    let mut reply = replied(form, status, &[], &[]);
    reply.align(8).string("IDL:vendor.example/ODD:1.0");
    if status == 2 {
        reply.ulong(0x5445_0001).ulong(2);
    } else {
        reply.raw(&BYTES);
    }
    reply
}

#[test]
fn what_cannot_be_decoded_passes_and_is_recorded_with_the_reason() {
    // The parts of a message behind its header, at a multiple of 8, little-endian.
    let surrogate = [2, 0, 0, 0, 0xd8, 0];
    let deep: Vec<u8> = [[1, 0, 0, 0]; 500].concat();
    let deep = [&deep[..], &[0; 4]].concat();
    let unknown_value = [&[27, 0, 0, 0, 0, 0, 0, 0][..], &[0xff; 16]].concat();
    let bodies: [(&str, &[u8], &str); 3] = [
        ("word", &surrogate, "not valid in the code set"),
        ("tree", &deep, "nested more than 64 deep"),
        ("extra", &unknown_value, "the results cannot be decoded"),
    ];
    let form = Form {
        minor: 2,
        big: false,
    };
    for (operation, body, reason) in bodies {
        let reply = replied(form, 0, &[], body).message();
        let own = reply.clone();
        let target = Target::new(move |request| Some(with_id(request, &own, 12)));
        let stand = Stand::new(&target.reference(b"object"), Some(found()));
        let mut socket = TcpStream::connect(stand.address).unwrap();
        let asked = Asked {
            form,
            flags: 3,
            operation,
            contexts: &[],
            principal: b"",
            body: b"",
        };
        let came = ask(&mut socket, &asked.message(&stand.key).0);
        assert_eq!(came, reply, "{operation}");
        let record = stand.last();
        let missing = record.missing.unwrap();
        assert!(missing.contains(reason), "{missing}");
        assert!(record.answer.unwrap()["octets"].is_string());
        // The same as an argument.
        let stir = Asked {
            operation: "stir",
            body: &surrogate,
            ..asked
        };
        assert_eq!(ask(&mut socket, &stir.message(&stand.key).0), reply);
        assert!(target.last().1.ends_with(&surrogate));
        let record = stand.last();
        assert_eq!(record.arguments["octets"], json!("hex:02000000d800"));
        assert!(record.missing.unwrap().contains("the argument `word`"));
        // An operation that the IDL does not have.
        let other = Asked {
            operation: "other",
            body: &surrogate,
            ..asked
        };
        assert_eq!(ask(&mut socket, &other.message(&stand.key).0), reply);
        assert!(stand.last().missing.unwrap().contains("no such operation"));
    }
}

#[test]
fn each_client_has_its_own_code_sets() {
    let form = Form {
        minor: 2,
        big: false,
    };
    let reply = replied(form, 0, &[], b"").message();
    let target = Target::new(move |request| Some(with_id(request, &reply, 12)));
    let stand = Stand::new(&target.reference(b"object"), None);
    let named = |char_data: u32, wchar_data: u32| {
        let sets = [char_data.to_le_bytes(), wchar_data.to_le_bytes()].concat();
        [&[1, 0, 0, 0][..], &sets].concat()
    };
    // ISO 8859-15 and UCS-4, which this ORB does not have; UTF-8 and UTF-16; none.
    let sets = [
        named(0x1_000f, 0x1_0104),
        named(0x0501_0001, 0x1_0109),
        Vec::new(),
    ];
    let mut connections = Vec::new();
    for set in &sets {
        let mut socket = TcpStream::connect(stand.address).unwrap();
        for is_first in [true, false] {
            let context: [(u32, &[u8]); 1] = [(1, set)];
            let names = is_first && !set.is_empty();
            let asked = Asked {
                form,
                flags: 3,
                operation: "ask",
                contexts: if names { &context } else { &[] },
                principal: b"",
                body: b"",
            };
            ask(&mut socket, &asked.message(&stand.key).0);
            let (connection, came) = target.last();
            let has = came.windows(12).any(|it| it == &set[..]);
            assert_eq!(has, !set.is_empty(), "{came:?}");
            connections.push(connection);
        }
    }
    connections.dedup();
    let count = connections.len();
    connections.sort_unstable();
    connections.dedup();
    assert_eq!((connections.len(), count), (3, 3), "{connections:?}");
}

#[test]
fn a_target_that_has_moved_is_followed_and_one_that_is_gone_looks_gone() {
    let form = Form {
        minor: 1,
        big: true,
    };
    let reply = replied(form, 0, &[], &BYTES).message();
    let own = reply.clone();
    let there = Target::new(move |request| Some(with_id(request, &own, 16)));
    let ior: Ior = there.reference(b"new place").parse().unwrap();
    let former = Target::new(move |request| {
        let tagged = &ior.profiles[0];
        let mut moved = replied(form, 3, &[], &[]);
        moved
            .string("")
            .ulong(1)
            .ulong(tagged.tag)
            .octets(&tagged.data);
        Some(with_id(request, &moved.message(), 16))
    });
    let stand = Stand::new(&former.reference(b"old"), None);
    let asked = Asked {
        form,
        flags: 1,
        operation: "_non_existent",
        contexts: &[],
        principal: b"",
        body: &BYTES,
    };
    let mut socket = TcpStream::connect(stand.address).unwrap();
    assert_eq!(ask(&mut socket, &asked.message(&stand.key).0), reply);
    assert!(there.last().1.windows(9).any(|it| it == b"new place"));
    assert!(
        stand.records.lock().unwrap().is_empty(),
        "every object has it"
    );

    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = rtorb_tests::fake::reference_at("127.0.0.1", free.local_addr().unwrap().port());
    drop(free);
    let stand = Stand::new(&gone, None);
    let asked = rtorb_tests::raw::Request::two_way(&stand.key, "_non_existent").empty();
    let answer = Connection::to(stand.address).ask(&asked).unwrap();
    assert_eq!(answer.exception().0, "IDL:omg.org/CORBA/TRANSIENT:1.0");
}

#[test]
fn a_target_gets_the_form_of_address_that_it_asks_for() {
    const PROFILE: u8 = 1;
    let form = Form {
        minor: 2,
        big: true,
    };
    let reply = replied(form, 0, &[], &BYTES).message();
    let needs_profile = replied(form, 5, &[], &[0, PROFILE]).message();
    let own = reply.clone();
    let target = Target::new(move |request| {
        let is_right = request[21] == PROFILE;
        Some(with_id(
            request,
            if is_right { &own } else { &needs_profile },
            12,
        ))
    });
    let stand = Stand::new(&target.reference(b"there"), None);
    let asked = Asked {
        form,
        flags: 3,
        operation: "turn",
        contexts: &[],
        principal: b"",
        body: &BYTES,
    };
    let mut socket = TcpStream::connect(stand.address).unwrap();
    for requests in [2, 3] {
        assert_eq!(ask(&mut socket, &asked.message(&stand.key).0), reply);
        assert_eq!(target.came.lock().unwrap().len(), requests);
        let (_, came) = target.last();
        assert!(came.ends_with(&BYTES), "the body is as it came");
    }
}

#[test]
fn the_reference_of_a_proxy_has_version_and_code_sets_of_the_target() {
    let orb = Orb::builder().build().unwrap();
    let target = Target::new(|_| None);
    let object = orb.string_to_object(&target.reference(b"object")).unwrap();
    let proxy = Proxy::new(object, &orb, |_| ());
    let own = orb.root_poa().unwrap().activate_dynamic(proxy).unwrap();
    let has_code_sets = |ior: &Ior| {
        let profile = ior.iiop_profiles().next().unwrap();
        let tags = profile.components.iter().map(|it| it.tag);
        (profile.version.minor, tags.filter(|tag| *tag == 1).count())
    };
    let standing = |minor: u8, type_id: &str, components| {
        let profile = IiopProfile {
            version: Version { major: 1, minor },
            host: "plant".to_owned(),
            port: 1,
            object_key: b"key".to_vec(),
            components,
        };
        let target = Ior {
            type_id: type_id.to_owned(),
            profiles: vec![profile.to_tagged().unwrap()],
        };
        rtorb_dynamic::standing_for(own.ior(), &target)
    };
    let ProfileBody::Iiop(of_own) = ProfileBody::from_tagged(&own.ior().profiles[0]).unwrap()
    else {
        panic!("it has an IIOP profile first")
    };
    let [orb_type, code_sets] = [0, 1].map(|tag| {
        let found = of_own.components.iter().find(|it| it.tag == tag);
        found.unwrap().clone()
    });
    let standing_for_url = standing(0, "", Vec::new());
    assert_eq!(
        has_code_sets(&standing_for_url),
        (2, 1),
        "a URL says nothing"
    );
    assert_eq!(has_code_sets(&standing(1, "", Vec::new())), (1, 1));
    assert_eq!(
        has_code_sets(&standing(2, "IDL:It:1.0", vec![orb_type])),
        (2, 0)
    );
    let mut latin = code_sets;
    latin.data[7] ^= 1;
    let ior = standing(1, "IDL:It:1.0", vec![latin.clone()]);
    assert_eq!(has_code_sets(&ior), (1, 1));
    let profile = ior.iiop_profiles().next().unwrap();
    assert!(profile.components.contains(&latin));
}
