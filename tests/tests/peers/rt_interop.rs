//! Objects with priorities and other ORBs: omniORB calls ours, ours reads the references of TAO.

use rtorb::cdr::Encode;
use rtorb::exception::OMG;
use rtorb::rt::{
    LanedThreadpool, LinearMapping, Policy, PriorityBand, PriorityMapping, PriorityModel,
    ThreadpoolLane,
};
use rtorb::{ExceptionKind, Orb, OrbBuilder, PoaPolicies, SystemException};
use rtorb_tests::fake::{FakeServer, Peer, reply, request_id};
use rtorb_tests::ours::Ours;
use rtorb_tests::peers::omniorb::{decoded, omniorb};
use rtorb_tests::peers::tao::{Model, TaoReference};
use rtorb_tests::raw::{REPLY, REQUEST, Stream};
use rtorb_tests::recorder;
use rtorb_tests::relay::{has_priorities, priority};
use rtorb_tests::running::PATIENCE;
use rtorb_tests::scheduling::TimeSharing;
use rtorb_tests::servants::Cubes;
use rtorb_tests::stubs::Cubit;
use rtorb_wire::ByteOrder;
use std::io::Write;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

#[test]
fn omniorb_calls_objects_with_priorities() {
    let Some(omniorb) = omniorb() else { return };
    let ours = Ours::serve_as(Orb::builder().priority_mapping(TimeSharing));
    for (name, policies) in adapters(&ours) {
        let root = ours.orb.root_poa().expect("the ORB runs");
        let poa = root.create_poa(name, policies).expect("they go together");
        let servant = Cubes {
            orb: ours.orb.clone(),
        };
        let cubit: Cubit = poa.activate(servant).expect("there is room");
        let text = ours.text(cubit.as_object());
        println!("{name}: {}", decoded(&text));
        assert!(decoded(&text).contains("IIOP 1.2 127.0.0.1"), "{name}");
        omniorb.call("cubit_client", &text, &["--lengths", "0,1,4096"]);
        // And we ourselves, by the same reference.
        let client = orb(Orb::builder());
        let current = client.rt_current();
        current
            .set_the_priority(priority(20))
            .expect("no permission is needed");
        let object = client.string_to_object(&text).expect("a reference");
        assert_eq!(
            Cubit::unchecked_narrow(object).cube_long(3),
            Ok(27),
            "{name}"
        );
    }
}

/// Adapters of every kind that TAO's servers have: with and without lanes, of both models, with bands.
fn adapters(ours: &Ours) -> Vec<(&'static str, PoaPolicies)> {
    let lane = |number, static_threads| ThreadpoolLane {
        lane_priority: priority(number),
        static_threads,
        ..ThreadpoolLane::default()
    };
    let rt_orb = ours.orb.rt_orb();
    let pool = rt_orb.create_threadpool_with_lanes(LanedThreadpool {
        lanes: vec![lane(20, 1), lane(5, 2), lane(0, 1)],
        ..LanedThreadpool::default()
    });
    let lanes = Policy::Threadpool(pool.expect("the pool is started"));
    let pool = rt_orb.create_threadpool(rtorb::rt::Threadpool {
        static_threads: 2,
        ..rtorb::rt::Threadpool::default()
    });
    let plain = Policy::Threadpool(pool.expect("the pool is started"));
    let model = |model, number| Policy::PriorityModel {
        model,
        server_priority: priority(number),
    };
    let client = model(PriorityModel::ClientPropagated, 0);
    let server = model(PriorityModel::ServerDeclared, 5);
    let band = |low, high| PriorityBand { low, high };
    let bands = Policy::PriorityBandedConnection(vec![band(0, 4), band(5, 19), band(20, 99)]);
    let none = PoaPolicies::default;
    vec![
        ("Client", none().with(client.clone())),
        ("Server", none().with(server.clone())),
        (
            "PlainPoolClient",
            none().with(plain.clone()).with(client.clone()),
        ),
        ("PlainPoolServer", none().with(plain).with(server.clone())),
        (
            "LanesClient",
            none().with(lanes.clone()).with(client.clone()),
        ),
        (
            "LanesServer",
            none().with(lanes.clone()).with(server.clone()),
        ),
        (
            "BandsClient",
            none().with(bands.clone()).with(client.clone()),
        ),
        (
            "BandsLanesServer",
            none().with(bands.clone()).with(lanes.clone()).with(server),
        ),
        (
            "BandsLanesClient",
            none().with(bands).with(lanes).with(client),
        ),
    ]
}

#[test]
fn a_lane_of_tao_is_chosen_by_the_callers_priority() {
    let lanes = Lanes::of(&[2, 5, 0]);
    for big in [false, true] {
        let reference = TaoReference {
            endpoints: lanes.endpoints(),
            model: Some((Model::Client, 0)),
            bands: Vec::new(),
            big,
        };
        for number in [0, 2, 5, 2] {
            assert_eq!(call(&reference.text(), number), Ok(()));
            let seen = lanes.seen();
            assert_eq!((seen.lane, seen.priority), (number, Some(number)));
        }
        for number in [1, 3, 4, 6, 32_767] {
            let refused = call(&reference.text(), number).expect_err("no lane has it");
            assert_eq!(refused.kind, ExceptionKind::InvPolicy, "{refused}");
        }
    }
}

#[test]
fn a_lane_of_tao_is_chosen_within_the_callers_band() {
    let lanes = Lanes::of(&[37, 43, 50]);
    let reference = TaoReference {
        endpoints: lanes.endpoints(),
        model: Some((Model::Client, 0)),
        bands: vec![(35, 39), (40, 46), (47, 50)],
        big: false,
    };
    for (number, lane) in [(35, 37), (39, 37), (40, 43), (46, 43), (47, 50), (50, 50)] {
        assert_eq!(call(&reference.text(), number), Ok(()));
        let seen = lanes.seen();
        assert_eq!(
            (seen.lane, seen.priority),
            (lane, Some(number)),
            "the caller's own is sent"
        );
    }
    for number in [0, 34, 51] {
        let refused = call(&reference.text(), number).expect_err("no band has it");
        assert_eq!(refused.kind, ExceptionKind::InvPolicy, "{refused}");
    }
}

#[test]
fn an_object_of_a_declared_priority_is_called_by_all_at_its_one_endpoint() {
    let lanes = Lanes::of(&[-1]);
    for bands in [Vec::new(), vec![(0, 9), (10, 32_767)]] {
        for big in [false, true] {
            let reference = TaoReference {
                endpoints: lanes.endpoints(),
                model: Some((Model::Server, 5)),
                bands: bands.clone(),
                big,
            };
            for number in [0, 5, 9, 100] {
                assert_eq!(call(&reference.text(), number), Ok(()));
                let seen = lanes.seen();
                assert_eq!(
                    (seen.lane, seen.priority),
                    (-1, None),
                    "the server knows it"
                );
            }
        }
    }
}

#[test]
fn a_server_without_lanes_is_told_every_priority_at_its_one_endpoint() {
    let lanes = Lanes::of(&[-1]);
    let reference = TaoReference {
        endpoints: lanes.endpoints(),
        model: Some((Model::Client, 0)),
        bands: Vec::new(),
        big: false,
    };
    for number in [0, 7, 32_767] {
        assert_eq!(call(&reference.text(), number), Ok(()));
        assert_eq!(lanes.seen().priority, Some(number));
    }
    // A reference without the component, as of a server that is no TAO.
    let none = reference.text_with(&[1, 0, 0, 0, 0, 0, 0, 0], &reference.policies_component());
    assert_eq!(call(&none, 7), Ok(()));
    assert_eq!(lanes.seen().priority, Some(7));
}

#[test]
fn without_a_model_no_priority_is_sent() {
    let lanes = Lanes::of(&[-1]);
    let reference = TaoReference {
        endpoints: lanes.endpoints(),
        model: None,
        bands: Vec::new(),
        big: false,
    };
    assert_eq!(call(&reference.text(), 7), Ok(()));
    assert_eq!(lanes.seen().priority, None);
}

#[test]
fn a_request_with_a_priority_is_the_golden_one() {
    let lanes = Lanes::of(&[-1]);
    let reference = TaoReference {
        endpoints: lanes.endpoints(),
        model: Some((Model::Client, 0)),
        bands: Vec::new(),
        big: false,
    };
    let client = orb(Orb::builder().byte_order(ByteOrder::Little));
    let current = client.rt_current();
    current
        .set_the_priority(priority(16_383))
        .expect("no permission is needed");
    let object = client
        .string_to_object(&reference.text())
        .expect("a reference");
    object
        .invoke(
            "test_method",
            |w| 0x0102_0304_0506_0708_u64.encode(w),
            |_| Ok(()),
        )
        .expect("it is answered");
    let mut seen = lanes.next().message;
    // The id is the client's affair.
    seen[12..16].copy_from_slice(&[2, 0, 0, 0]);
    let hex: String = seen.iter().map(|octet| format!("{octet:02x}")).collect();
    // V4 of the collected vectors.
    let golden = "47494f50010201004400000002000000\
                  03000000000000000600000061626364\
                  656600000c000000746573745f6d6574\
                  686f6400010000000a00000004000000\
                  0100ff3f000000000807060504030201";
    assert_eq!(hex, golden);
}

#[test]
fn the_priority_is_that_of_the_native_thread_where_none_was_set() {
    if !has_priorities() {
        return;
    }
    let lanes = Lanes::of(&[-1]);
    let reference = TaoReference {
        endpoints: lanes.endpoints(),
        model: Some((Model::Client, 0)),
        bands: Vec::new(),
        big: false,
    };
    let config = rtorb::thread::ThreadConfig {
        policy: Some(rtorb::thread::SchedPolicy::Fifo(50)),
        ..rtorb::thread::ThreadConfig::default()
    };
    let text = reference.text();
    let calling = rtorb_os::thread::spawn("fifo", &config, move || {
        let builder = Orb::builder().priority_mapping(LinearMapping);
        let client = builder.build().expect("the ORB can be built");
        let object = client.string_to_object(&text).expect("a reference");
        Cubit::unchecked_narrow(object).cube_void()
    });
    let called = calling.expect("it is permitted").join().expect("no panic");
    assert_eq!(called, Some(Ok(())));
    let seen = lanes.next().priority.expect("it is sent");
    assert_eq!(Some(priority(seen)), LinearMapping.to_corba(50));
}

#[test]
fn a_wrong_component_harms_nobody() {
    let lanes = Lanes::of(&[2, 5, 0]);
    let right = TaoReference {
        endpoints: lanes.endpoints(),
        model: Some((Model::Client, 0)),
        bands: vec![(0, 3), (4, 9)],
        big: false,
    };
    let (endpoints, policies) = (right.endpoints_component(), right.policies_component());
    let client = orb(Orb::builder());
    let read = |endpoints: &[u8], policies: &[u8]| {
        let text = right.text_with(endpoints, policies);
        let object = client
            .string_to_object(&text)
            .expect("the rest of it is right");
        object.endpoints().count()
    };
    let mut cases = Vec::new();
    for_each_wrong(&endpoints, |wrong| {
        cases.push((wrong.to_vec(), policies.clone()))
    });
    for_each_wrong(&policies, |wrong| {
        cases.push((endpoints.clone(), wrong.to_vec()))
    });
    for (endpoints, policies) in cases {
        assert!(
            read(&endpoints, &policies) <= 16,
            "{endpoints:x?} {policies:x?}"
        );
    }
}

/// Cut off anywhere, and with any octet changed.
fn for_each_wrong(right: &[u8], mut wrong: impl FnMut(&[u8])) {
    for end in 0..right.len() {
        wrong(&right[..end]);
        for value in [0, 1, 2, 0x7f, 0x80, 0xff] {
            let mut changed = right.to_vec();
            changed[end] = value;
            wrong(&changed);
        }
    }
}

#[test]
fn priorities_that_make_no_sense_leave_a_reference_usable_or_refused() {
    let lanes = Lanes::of(&[2]);
    let port = lanes.endpoints()[0].0;
    let priorities: [&[i16]; 6] = [&[-2], &[i16::MIN], &[-1, -1], &[7, 7], &[-5, 2], &[2, -1]];
    let bands: [&[(i16, i16)]; 7] = [
        &[],
        &[(9, 3)],
        &[(-3, -1)],
        &[(-3, 9)],
        &[(i16::MAX, i16::MIN)],
        &[(0, 9), (5, 20)],
        &[(2, 2), (2, 2), (2, 2)],
    ];
    for endpoints in priorities {
        for bands in bands {
            for model in [Model::Client, Model::Server] {
                for declared in [i16::MIN, -1, 2] {
                    let reference = TaoReference {
                        endpoints: endpoints.iter().map(|priority| (port, *priority)).collect(),
                        model: Some((model, declared)),
                        bands: bands.to_vec(),
                        big: false,
                    };
                    answered_or_refused(&reference);
                }
            }
        }
    }
}

fn answered_or_refused(reference: &TaoReference) {
    for number in [0, 2, 7] {
        match call(&reference.text(), number) {
            Ok(()) => {}
            Err(refused) => {
                let kinds = [ExceptionKind::InvPolicy, ExceptionKind::DataConversion];
                let is_refusal = kinds.contains(&refused.kind);
                assert!(is_refusal, "{reference:?}, called with {number}: {refused}");
            }
        }
    }
}

#[test]
fn a_server_answers_requests_with_a_priority_by_the_model() {
    let ours = Ours::serve_as(Orb::builder().priority_mapping(UpTo100));
    for (name, policies) in adapters(&ours) {
        let object = Raw::activated(&ours, name, policies);
        let answer_to = |priority: Option<i16>| {
            let data = priority.map(|number| {
                let [low, high] = number.to_le_bytes();
                [1, 0xbb, low, high]
            });
            let context = data.as_ref().map(|data| (RT_CORBA_PRIORITY, &data[..]));
            object.answer("cube_void", context)
        };
        let is_echoed = name.ends_with("Client") && !name.contains("Lanes");
        for number in [Some(7), Some(0), None] {
            let reply = answer_to(number);
            let echo = if is_echoed { number } else { None };
            assert_eq!(contexts(&reply, 20).0, echo, "{name}: {reply:x?}");
            assert_eq!(status(&reply), 0, "{name}, {number:?}");
        }
        for nonsense in [-5, -1, i16::MIN, 101, i16::MAX] {
            let reply = answer_to(Some(nonsense));
            if is_echoed {
                let refused = exception(&reply);
                let expected = ("IDL:omg.org/CORBA/DATA_CONVERSION:1.0", OMG | 2, 1);
                let seen = (&*refused.0, refused.1, refused.2);
                assert_eq!(seen, expected, "{name}, {nonsense}");
            } else {
                assert_eq!(status(&reply), 0, "{name} looks at no context");
            }
        }
    }
}

#[test]
fn a_context_that_is_no_priority_harms_nobody() {
    let ours = Ours::serve_as(Orb::builder().priority_mapping(UpTo100));
    let wrong: [&[u8]; 9] = [
        &[],
        &[1],
        &[1, 0],
        &[1, 0, 7],
        &[0xff, 0xff, 0xff, 0xff],
        &[0, 0, 0, 7],
        &[2, 0, 7, 0],
        &[1, 0, 7, 0, 0, 0, 0, 0, 9],
        &[0; 200],
    ];
    for (name, policies) in adapters(&ours) {
        let object = Raw::activated(&ours, name, policies);
        for data in wrong {
            for id in [RT_CORBA_PRIORITY, RT_CORBA_PRIORITY_RANGE, 1, 5] {
                let reply = object.answer("cube_void", Some((id, data)));
                assert!([0, 2].contains(&status(&reply)), "{name}, {id}, {data:x?}");
            }
        }
        assert_eq!(status(&object.answer("cube_void", None)), 0, "{name}");
    }
}

//= RT-CORBA 1.2 §Priority Banded Connections
//% test
#[test]
fn a_connection_can_be_bound_to_a_band_at_every_object() {
    let ours = Ours::serve_as(Orb::builder().priority_mapping(UpTo100));
    for (name, policies) in adapters(&ours) {
        let object = Raw::activated(&ours, name, policies);
        let range = [1, 0xbb, 3, 0, 40, 0];
        let bound = object.answer(
            "_bind_priority_band",
            Some((RT_CORBA_PRIORITY_RANGE, &range)),
        );
        assert_eq!(status(&bound), 0, "{name}");
    }
}

/// An object that is called by hand.
struct Raw {
    address: String,
    key: Vec<u8>,
}

impl Raw {
    /// Activates a Cubit in a new adapter.
    fn activated(ours: &Ours, name: &str, policies: PoaPolicies) -> Self {
        let root = ours.orb.root_poa().expect("the ORB runs");
        let poa = root.create_poa(name, policies).expect("they go together");
        let servant = Cubes {
            orb: ours.orb.clone(),
        };
        let cubit: Cubit = poa.activate(servant).expect("there is room");
        let profile = cubit.as_object().ior().iiop_profiles().next();
        let profile = profile.expect("an IIOP profile");
        Self {
            address: format!("{}:{}", profile.host, profile.port),
            key: profile.object_key,
        }
    }

    /// The reply to a request without arguments, in GIOP 1.2, little-endian.
    fn answer(&self, operation: &str, context: Option<(u32, &[u8])>) -> Vec<u8> {
        let mut stream = Stream::new(REQUEST, 2, false);
        stream.ulong(1).raw(&[3, 0, 0, 0]).ushort(0);
        stream.octets(&self.key).string(operation);
        match context {
            None => stream.ulong(0),
            Some((id, data)) => stream.ulong(1).ulong(id).octets(data),
        };
        let mut socket = TcpStream::connect(&self.address).expect("the server listens");
        socket
            .set_read_timeout(Some(PATIENCE))
            .expect("the bound is not zero");
        socket
            .write_all(&stream.message())
            .expect("the server reads");
        recorder::message(&mut socket).expect("an answer")
    }
}

const RT_CORBA_PRIORITY: u32 = 10;
const RT_CORBA_PRIORITY_RANGE: u32 = 11;

/// Has priorities up to 100.
#[derive(Debug)]
struct UpTo100;

impl PriorityMapping for UpTo100 {
    fn to_native(&self, priority: rtorb::rt::Priority) -> Option<u8> {
        (priority.get() <= 100).then_some(0)
    }

    fn to_corba(&self, native: u8) -> Option<rtorb::rt::Priority> {
        TimeSharing.to_corba(native)
    }
}

fn status(reply: &[u8]) -> u32 {
    ulong(reply, 16)
}

/// Repository id, minor code and completion of the system exception in a reply.
fn exception(reply: &[u8]) -> (String, u32, u32) {
    assert_eq!(status(reply), 2, "a system exception: {reply:x?}");
    let (_, end) = contexts(reply, 20);
    let at = end.next_multiple_of(8);
    let length = ulong(reply, at) as usize;
    let id = String::from_utf8_lossy(&reply[at + 4..at + 3 + length]).into_owned();
    let after = (at + 4 + length).next_multiple_of(4);
    (id, ulong(reply, after), ulong(reply, after + 4))
}

/// The priority in a list of service contexts that begins at `at`, and where the list ends.
fn contexts(message: &[u8], mut at: usize) -> (Option<i16>, usize) {
    let mut priority = None;
    let count = ulong(message, at);
    at += 4;
    for _ in 0..count {
        at = at.next_multiple_of(4);
        let (id, length) = (ulong(message, at), ulong(message, at + 4) as usize);
        let data = &message[at + 8..at + 8 + length];
        if id == RT_CORBA_PRIORITY {
            let number = [data[2], data[3]];
            let little = data[0] & 1 == 1;
            let number = if little {
                i16::from_le_bytes(number)
            } else {
                i16::from_be_bytes(number)
            };
            assert!(length == 4 && priority.is_none(), "{message:x?}");
            priority = Some(number);
        }
        at += 8 + length;
    }
    (priority, at)
}

fn ulong(message: &[u8], at: usize) -> u32 {
    let four = message
        .get(at..at + 4)
        .and_then(|four| four.try_into().ok());
    u32::from_le_bytes(four.expect("it is long enough"))
}

/// Fake servers, each of which stands for a lane.
struct Lanes {
    servers: Vec<(FakeServer, i16)>,
    requests: Receiver<Seen>,
}

/// A request that a lane has got.
struct Seen {
    lane: i16,
    priority: Option<i16>,
    message: Vec<u8>,
}

impl Lanes {
    fn of(priorities: &[i16]) -> Self {
        let (sender, requests) = channel();
        let server = |&lane: &i16| (FakeServer::new(answering(lane, sender.clone())), lane);
        Self {
            servers: priorities.iter().map(server).collect(),
            requests,
        }
    }

    fn endpoints(&self) -> Vec<(u16, i16)> {
        let endpoints = self.servers.iter();
        endpoints
            .map(|(server, lane)| (server.port(), *lane))
            .collect()
    }

    /// The two requests of [`call`], which are alike.
    fn seen(&self) -> Seen {
        let [first, second] = [(); 2].map(|()| self.next());
        assert_eq!((first.lane, first.priority), (second.lane, second.priority));
        assert!(self.requests.try_recv().is_err(), "each came once");
        second
    }

    fn next(&self) -> Seen {
        let next = self.requests.try_recv();
        next.expect("it came before it was answered")
    }
}

/// Notes every request, and answers every other one of a connection with its contexts.
fn answering(lane: i16, sender: Sender<Seen>) -> impl Fn(usize, Peer) + Clone {
    move |_, mut peer| {
        let mut echoes = lane % 2 == 0;
        while let Some(message) = peer.message() {
            let id = request_id(&message).expect("a request");
            // Behind the key and the operation.
            let key = 28 + ulong(&message, 24) as usize;
            let operation = key.next_multiple_of(4);
            let list = (operation + 4 + ulong(&message, operation) as usize).next_multiple_of(4);
            let (priority, _) = contexts(&message, list);
            // The test may be over.
            let _ = sender.send(Seen {
                lane,
                priority,
                message,
            });
            peer.send(&match priority {
                Some(number) if echoes => reply_with(id, number),
                _ => reply(id, 0, |_| {}),
            });
            echoes = !echoes;
        }
    }
}

/// An empty reply that echoes the priority, as TAO's.
fn reply_with(id: u32, priority: i16) -> Vec<u8> {
    let mut stream = Stream::new(REPLY, 2, false);
    let [low, high] = priority.to_le_bytes();
    stream
        .ulong(id)
        .ulong(0)
        .ulong(1)
        .ulong(10)
        .octets(&[1, 0xf0, low, high]);
    stream.message()
}

/// Calls an object twice with a priority; the second reply has a context if the first has none.
fn call(reference: &str, number: i16) -> Result<(), SystemException> {
    let client = orb(Orb::builder());
    let current = client.rt_current();
    current
        .set_the_priority(priority(number))
        .expect("no permission is needed");
    let object = client.string_to_object(reference).expect("a reference");
    let timeout = Some(Duration::from_secs(20));
    let cubit = Cubit::unchecked_narrow(object.with_timeout(timeout));
    cubit.cube_void()?;
    cubit.cube_void()
}

fn orb(builder: OrbBuilder) -> Orb {
    let built = builder.priority_mapping(TimeSharing).build();
    built.expect("the ORB can be built")
}
