//! Calls of both ends over one connection: clients that nobody can connect to are called back.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use rtorb::exception::{OMG, Phase};
use rtorb::{
    CompletionStatus, ConnectionStrategy, DispatchStrategy, ExceptionKind, Limits, ObjectRef, Orb,
    OrbBuilder, SystemException,
};
use rtorb_tests::fake::{FakeServer, Peer, reference_at, reply, request_id};
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{
    CLOSE_CONNECTION, Connection, LOCATE_REQUEST, REPLY, REQUEST, Request, Stream, fragments,
};
use rtorb_tests::running::until;
use rtorb_tests::stubs::exchange::{Desk, Party};
use rtorb_tests::stubs::{Relay, RelayServant, Seen};
use rtorb_wire::code_sets::{UTF_8, UTF_16};
use rtorb_wire::giop::contexts::{self, CodeSets};
use rtorb_wire::giop::{Header, RequestHeader};
use rtorb_wire::ior::ListenPoint;

/// Long enough on a busy host.
const PATIENCE: Duration = Duration::from_secs(30);

/// Nobody listens there, at ports below 1024.
const NOWHERE: &str = "127.0.0.9";

/// The service context that offers the connection.
const BI_DIR_IIOP: u32 = 5;

/// The kind of a CancelRequest.
const CANCEL_REQUEST: u8 = 2;

fn both_ways() -> OrbBuilder {
    Orb::builder()
        .dispatch(DispatchStrategy::WorkerPool)
        .bidirectional()
        .round_trip_timeout(Some(PATIENCE))
}

/// A client whose references have an address to which nobody can connect.
fn hidden(builder: OrbBuilder, port: u16) -> Ours {
    Ours::serve_as(builder.listen(&format!("iiop://127.0.0.1:0/publish={NOWHERE}:{port}")))
}

/// The Desk of a server, as a client sees it.
fn desk_of(server: &Ours, client: &Ours) -> Desk {
    let text = server.text(server.desk.as_object());
    let object = client.orb.string_to_object(&text);
    Desk::unchecked_narrow(object.expect("a reference"))
}

#[test]
fn a_client_that_nobody_can_connect_to_is_called_back_over_its_connection() {
    let server = Ours::serve_as(both_ways());
    let client = hidden(both_ways(), 9);
    let own = Party::from(&client.desk);
    let desk = desk_of(&server, &client);
    assert_eq!(desk.level_of(Some(&own)), Ok(1));
    // The server calls it of its own accord too, and the text comes whole.
    let back = desk_of(&client, &server);
    back.set_level(41).expect("it is served");
    assert_eq!(desk.level_of(Some(&own)), Ok(42));
    assert_eq!(
        back.echo_string("zur\u{fc}ck").as_deref(),
        Ok("zur\u{fc}ck")
    );
    assert_eq!(back.as_object().non_existent(), Ok(false));
    assert_eq!(server.orb.connection_counts().accepted, 1);
}

#[test]
//= GIOP 1.2 §15.9
//% test
fn without_the_option_of_both_ends_nothing_goes_back() {
    for (of_server, of_client) in [(true, false), (false, true)] {
        let builder = |is_bidirectional| {
            if is_bidirectional {
                both_ways()
            } else {
                Orb::builder()
            }
        };
        let server = Ours::serve_as(builder(of_server));
        let client = hidden(builder(of_client), 9);
        let desk = desk_of(&server, &client);
        let refused = desk.level_of(Some(&Party::from(&client.desk)));
        let refused = refused.expect_err("nobody can connect to the client");
        let kinds = [ExceptionKind::Transient, ExceptionKind::Timeout];
        assert!(kinds.contains(&refused.kind), "{refused}");
        assert_eq!(refused.completed, CompletionStatus::No, "{refused}");
        assert_eq!(desk.noted(), Ok(0), "the connection is not affected");
    }
}

/// Passes a call on to the other side, and that back, until `left` is 0.
struct Bouncing {
    other: Arc<Mutex<Option<Relay>>>,
    left: Arc<AtomicI32>,
}

impl RelayServant for Bouncing {
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        if self.left.fetch_sub(1, Ordering::Relaxed) <= 0 {
            return Ok(Vec::new());
        }
        let other = self.other.lock().expect("no panic").clone();
        let mut way = other.expect("it is set").pass_on()?;
        way.push(Seen {
            who: String::new(),
            corba: -1,
            kernel: 0,
        });
        Ok(way)
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn calls_within_calls_go_to_and_fro_over_one_connection() {
    let threads = 6;
    let server = Ours::serve_as(both_ways().pool_threads(threads));
    let client = hidden(both_ways().pool_threads(threads), 9);
    let left = Arc::new(AtomicI32::new(0));
    let [of_server, of_client] = [&server, &client].map(|side| {
        let other = Arc::new(Mutex::new(None));
        let bouncing = Bouncing {
            other: Arc::clone(&other),
            left: Arc::clone(&left),
        };
        let relay: Relay = side.poa.activate(bouncing).expect("room");
        (relay, other)
    });
    let across = |relay: &Relay, to: &Ours| {
        let object = to.orb.string_to_object(&relay.as_object().to_string());
        Relay::unchecked_narrow(object.expect("a reference"))
    };
    let called = across(&of_server.0, &client);
    *of_server.1.lock().expect("no panic") = Some(across(&of_client.0, &server));
    *of_client.1.lock().expect("no panic") = Some(called.clone());
    for depth in [1, 2, 5, 9] {
        left.store(depth, Ordering::Relaxed);
        let way = called.pass_on().expect("it comes back");
        assert_eq!(way.len(), depth as usize);
    }
}

#[test]
fn many_threads_of_both_ends_call_at_once() {
    let server = Ours::serve_as(both_ways().pool_threads(8));
    let client = hidden(both_ways().pool_threads(8), 9);
    let there = desk_of(&server, &client);
    assert_eq!(there.noted(), Ok(0), "the connection is open");
    let back = desk_of(&client, &server);
    thread::scope(|scope| {
        for number in 0..8 {
            let desk = if number % 2 == 0 { &there } else { &back };
            let own = if number % 2 == 0 { &client } else { &server };
            let party = Party::from(&own.desk);
            scope.spawn(move || {
                for call in 0..100 {
                    let text = format!("{number}/{call}");
                    assert_eq!(desk.echo_string(&text).as_deref(), Ok(&*text));
                    if call % 8 == 0 {
                        assert_eq!(desk.level_of(Some(&party)), Ok(1));
                    }
                }
            });
        }
    });
    assert_eq!(server.orb.connection_counts().slow_receivers, 0);
}

#[test]
fn large_messages_pass_each_other_whole_and_in_fragments() {
    let limits = Limits::with(|limits| limits.send_timeout = PATIENCE);
    for fragment_bytes in [None, Some(4096)] {
        let builder = || {
            let builder = both_ways().limits(limits.clone());
            match fragment_bytes {
                Some(bytes) => builder.fragment_bytes(bytes),
                None => builder,
            }
        };
        let server = Ours::serve_as(builder());
        let client = hidden(builder(), 9);
        let there = desk_of(&server, &client);
        assert_eq!(there.noted(), Ok(0), "the connection is open");
        let back = desk_of(&client, &server);
        // More than the sockets take: each end sends while the other one does.
        let text = "so viel Text wie nie zuvor ".repeat(450_000);
        thread::scope(|scope| {
            for desk in [&there, &there, &back, &back] {
                let text = &text;
                scope.spawn(move || {
                    for _ in 0..3 {
                        let echo = desk.echo_string(text).expect("it comes back");
                        assert!(echo == *text, "it is the same text");
                    }
                });
            }
        });
        for side in [&server, &client] {
            assert_eq!(side.orb.connection_counts().slow_receivers, 0);
        }
    }
}

/// The data of a service context with one listen point.
fn listen_points(host: &str, port: u16) -> Vec<u8> {
    let host = host.to_owned();
    contexts::to_data(&vec![ListenPoint { host, port }]).expect("it is text")
}

/// A request of `_non_existent` that offers the connection.
fn offer(key: &[u8], host: &str, port: u16) -> Vec<u8> {
    let mut stream = Stream::new(REQUEST, 2, false);
    stream.ulong(0).raw(&[3, 0, 0, 0]).ushort(0).octets(key);
    stream.string("_non_existent").ulong(1);
    stream.ulong(BI_DIR_IIOP).octets(&listen_points(host, port));
    stream.message()
}

/// A client without an ORB that has offered its connection to a server, and the server's reference to an object of it.
fn offered(server: &Ours, port: u16) -> (Connection, Desk) {
    let mut client = Connection::to(server.address());
    let key = server.key(server.desk.as_object());
    let answer = client.ask(&offer(&key, NOWHERE, port)).expect("a reply");
    assert_eq!((answer.kind, answer.id, answer.status), (REPLY, 0, 0));
    let text = reference_at(NOWHERE, port);
    let object = server.orb.string_to_object(&text).expect("a reference");
    (client, Desk::unchecked_narrow(object))
}

/// Calls on a thread of its own, and gives its result to a channel.
fn begin<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> Receiver<T> {
    let (done, result): (Sender<T>, _) = channel();
    thread::spawn(move || done.send(call()));
    result
}

/// The end of a call that gets no reply in time. On a busy host the time of some calls may pass before they are sent.
fn late(desk: &Desk) -> SystemException {
    until("a request is sent", || {
        let late = desk.noted().expect_err("no reply");
        assert_eq!(late.kind, ExceptionKind::Timeout, "{late}");
        (late.completed != CompletionStatus::No).then_some(late)
    })
}

#[test]
//= GIOP 1.2 §15.8
//% test
fn ids_of_the_server_are_odd_and_replies_find_their_calls_in_any_order() {
    let server = Ours::serve_as(both_ways());
    let (mut client, desk) = offered(&server, 9);
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let desk = desk.clone();
            begin(move || desk.noted())
        })
        .collect();
    let asked: Vec<_> = calls
        .iter()
        .map(|_| client.answer().expect("a request"))
        .collect();
    let mut ids: Vec<_> = asked.iter().map(|request| request.id).collect();
    assert!(asked.iter().all(|request| request.kind == REQUEST));
    ids.sort_unstable();
    assert_eq!(ids, [1, 3, 5]);
    for id in [3, 5, 1] {
        let whole = reply(id, 0, |body| {
            body.long(id as i32);
        });
        for part in fragments(&whole, 16, 24) {
            client.send(&part);
        }
    }
    let mut results: Vec<_> = calls
        .iter()
        .map(|call| {
            call.recv_timeout(PATIENCE)
                .expect("it ends")
                .expect("a result")
        })
        .collect();
    results.sort_unstable();
    assert_eq!(results, [1, 3, 5]);
    // Meanwhile it is a client as any other.
    let key = server.key(server.desk.as_object());
    let mut request = Request::two_way(&key, "noted");
    request.id = 2;
    let answer = client.ask(&request.empty()).expect("a reply");
    assert_eq!((answer.kind, answer.id, answer.long()), (REPLY, 2, 0));
}

/// The threads of the server wait for replies on the connection that has more requests than they take.
#[test]
fn more_pipelined_requests_than_threads_call_back_over_their_connection() {
    struct CallsBack(Desk);
    impl RelayServant for CallsBack {
        fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
            self.0.noted().map(|_| Vec::new())
        }

        fn shutdown(&self) -> Result<(), SystemException> {
            Ok(())
        }
    }
    const REQUESTS: u32 = 40;
    let server = Ours::serve_as(both_ways().pool_threads(2));
    let (mut client, desk) = offered(&server, 9);
    let calls_back: Relay = server.poa.activate(CallsBack(desk)).expect("room");
    let key = server.key(calls_back.as_object());
    let requests = (1..=REQUESTS).flat_map(|number| {
        let request = Request {
            id: 2 * number,
            ..Request::two_way(&key, "pass_on")
        };
        request.empty()
    });
    client.send(&requests.collect::<Vec<_>>());
    let mut replies = 0;
    while replies < REQUESTS {
        let message = client.answer().expect("a callback or a reply");
        if message.kind == REQUEST {
            client.send(&reply(message.id, 0, |body| {
                body.long(0);
            }));
        } else {
            assert_eq!((message.kind, message.status), (REPLY, 0));
            replies += 1;
        }
    }
}

#[test]
fn text_has_the_code_set_that_the_client_has_named() {
    let server = Ours::serve_as(both_ways());
    let mut client = Connection::to(server.address());
    let key = server.key(server.desk.as_object());
    let sets = CodeSets {
        char_data: UTF_8,
        wchar_data: UTF_16,
    };
    let mut stream = Stream::new(REQUEST, 2, false);
    stream.ulong(0).raw(&[3, 0, 0, 0]).ushort(0).octets(&key);
    stream.string("_non_existent").ulong(2);
    stream.ulong(contexts::CODE_SETS).octets(&sets.to_data());
    stream.ulong(BI_DIR_IIOP).octets(&listen_points(NOWHERE, 9));
    assert_eq!(client.ask(&stream.message()).map(|it| it.status), Some(0));
    // The reference has no code sets, so that the server would send ISO 8859-1 to its address.
    let object = server.orb.string_to_object(&reference_at(NOWHERE, 9));
    let desk = Desk::unchecked_narrow(object.expect("a reference"));
    let text = "caf\u{e9}";
    let call = begin(move || desk.echo_string(text));
    let request = client.answer().expect("a request");
    let is_utf_8 = |bytes: &[u8]| bytes == text.as_bytes();
    assert!(
        request.body.windows(text.len()).any(is_utf_8),
        "{request:?}"
    );
    client.send(&reply(request.id, 0, |body| {
        body.string(text);
    }));
    let answered = call.recv_timeout(PATIENCE).expect("it ends");
    assert_eq!(answered.as_deref(), Ok(text));
}

#[test]
fn the_end_of_the_connection_ends_its_calls() {
    let server = Ours::serve_as(both_ways());
    for (port, is_said) in [(9, false), (10, true)] {
        let (mut client, desk) = offered(&server, port);
        let call = begin(move || desk.noted());
        assert_eq!(client.answer().expect("a request").kind, REQUEST);
        if is_said {
            client.send(&Stream::new(CLOSE_CONNECTION, 2, false).message());
        }
        drop(client);
        let ended = call
            .recv_timeout(PATIENCE)
            .expect("it ends")
            .expect_err("no reply");
        if is_said {
            // It was not executed. There is no other way to the client.
            assert_eq!(ended.completed, CompletionStatus::No, "{ended}");
            let phase = ended.cause.as_ref().map(|cause| cause.phase);
            assert_eq!(phase, Some(Phase::Connect), "{ended}");
        } else {
            let seen = (ended.kind, ended.completed);
            assert_eq!(
                seen,
                (ExceptionKind::CommFailure, CompletionStatus::Maybe),
                "{ended}"
            );
        }
    }
}

#[test]
fn a_callback_without_a_reply_in_time_is_cancelled_and_the_connection_stays() {
    let server = Ours::serve_as(both_ways());
    let (mut client, desk) = offered(&server, 9);
    let hurried = desk.as_object().with_timeout(Duration::from_millis(50));
    let late = late(&Desk::unchecked_narrow(hurried));
    let seen = (late.kind, late.minor, late.completed);
    assert_eq!(
        seen,
        (ExceptionKind::Timeout, OMG | 3, CompletionStatus::Maybe),
        "{late}"
    );
    let [asked, cancelled] = [(); 2].map(|()| client.answer().expect("a message"));
    assert_eq!((asked.kind, cancelled.kind), (REQUEST, CANCEL_REQUEST));
    // A late reply is dropped, and the next call is as if nothing had been.
    client.send(&reply(asked.id, 0, |body| {
        body.long(1);
    }));
    let call = begin(move || desk.noted());
    let request = client.answer().expect("a request");
    assert_eq!((request.kind, request.id), (REQUEST, asked.id + 2));
    client.send(&reply(request.id, 0, |body| {
        body.long(3);
    }));
    assert_eq!(call.recv_timeout(PATIENCE), Ok(Ok(3)));
}

#[test]
fn the_last_client_that_names_an_address_has_its_calls_and_none_has_those_of_the_server_itself() {
    let server = Ours::serve_as(both_ways());
    let (mut first, _) = offered(&server, 9);
    let (mut second, desk) = offered(&server, 9);
    let call = begin(move || desk.noted());
    let id = second.answer().expect("a request").id;
    second.send(&reply(id, 0, |body| {
        body.long(2);
    }));
    assert_eq!(call.recv_timeout(PATIENCE), Ok(Ok(2)));
    let key = server.key(server.desk.as_object());
    let own = server.address();
    let answer = first.ask(&offer(&key, &own.ip().to_string(), own.port()));
    assert_eq!(answer.map(|it| it.status), Some(0));
    assert_eq!(desk_of(&server, &server).noted(), Ok(0), "it calls itself");
    // What cannot be read is no offer, and no reason to end the connection.
    let mut stream = Stream::new(REQUEST, 2, false);
    stream.ulong(2).raw(&[3, 0, 0, 0]).ushort(0).octets(&key);
    stream
        .string("_non_existent")
        .ulong(1)
        .ulong(BI_DIR_IIOP)
        .octets(&[1, 2, 3]);
    assert_eq!(first.ask(&stream.message()).map(|it| it.status), Some(0));
}

#[test]
fn only_a_client_that_has_offered_its_connection_may_send_replies() {
    for builder in [both_ways(), Orb::builder()] {
        let server = Ours::serve_as(builder);
        let mut client = Connection::to(server.address());
        let answer = client.ask(&reply(1, 0, |_| ()));
        assert_eq!(
            answer.map(|it| it.kind),
            Some(rtorb_tests::raw::MESSAGE_ERROR)
        );
    }
}

/// The listen points that a request offers.
fn points_of(message: &[u8]) -> Option<Vec<ListenPoint>> {
    let header = Header::parse(message, usize::MAX).ok().flatten()?;
    let request = RequestHeader::decode(&mut header.reader(message)).ok()?;
    contexts::from_data(request.contexts.find(BI_DIR_IIOP)?).ok()
}

/// A server of a test, with what it does for its only client.
fn acting(serve: impl Fn(&mut Peer) + Clone + Send + 'static) -> FakeServer {
    FakeServer::new(move |_, mut client| {
        serve(&mut client);
        client.wait_for_end();
    })
}

#[test]
fn an_offer_is_repeated_until_a_reply_comes() {
    let (told, seen) = channel();
    let server = acting(move |client| {
        for _ in 0..4 {
            let message = client.message().expect("a request");
            let _ = told.send(points_of(&message));
            let id = request_id(&message).expect("it has an id");
            // The first one is oneway.
            if id > 0 {
                client.send(&reply(id, 0, |body| {
                    body.long(0);
                }));
            }
        }
    });
    let client = hidden(both_ways(), 9);
    let object = client
        .orb
        .string_to_object(&server.reference())
        .expect("a reference");
    let desk = Desk::unchecked_narrow(object);
    desk.note(1).expect("it is sent");
    for _ in 0..3 {
        assert_eq!(desk.noted(), Ok(0));
    }
    let seen: Vec<_> = seen.iter().take(4).collect();
    let point = ListenPoint {
        host: NOWHERE.to_owned(),
        port: 9,
    };
    assert_eq!(
        seen,
        [Some(vec![point.clone()]), Some(vec![point]), None, None]
    );
}

#[test]
fn a_client_serves_requests_on_its_connection_and_survives_its_end() {
    let client = hidden(both_ways(), 9);
    let key = client.key(client.desk.as_object());
    let (told, seen) = channel();
    let server = FakeServer::new(move |number, mut client| {
        let id = client.request().expect("a request");
        if number > 0 {
            return client.send(&reply(id, 0, |body| {
                body.long(7);
            }));
        }
        // It asks back before it replies, in fragments, and locates the object.
        let mut request = Request::two_way(&key, "noted");
        request.id = 1;
        for part in fragments(&request.empty(), 16, 24) {
            client.send(&part);
        }
        let mut locate = Stream::new(LOCATE_REQUEST, 2, false);
        locate.ulong(3).ushort(0).octets(&key);
        client.send(&locate.message());
        let answers = [(); 2].map(|()| client.message().expect("a reply")[7]);
        let _ = told.send(answers);
        // The call has no reply, and the server is gone.
    });
    let object = client
        .orb
        .string_to_object(&server.reference())
        .expect("a reference");
    let desk = Desk::unchecked_narrow(object);
    let ended = desk.noted().expect_err("the server is gone");
    let expected = (ExceptionKind::CommFailure, CompletionStatus::Maybe);
    assert_eq!((ended.kind, ended.completed), expected, "{ended}");
    let mut kinds = seen.recv_timeout(PATIENCE).expect("it asked");
    kinds.sort_unstable();
    assert_eq!(kinds, [REPLY, LOCATE_REPLY]);
    assert_eq!(desk.noted(), Ok(7), "it connects again");
}

/// The kind of a LocateReply.
const LOCATE_REPLY: u8 = 4;

#[test]
fn a_server_that_does_not_reply_in_time_gets_the_next_call_on_another_connection() {
    // The connection of the first request gets no reply.
    let silent = Arc::new(OnceLock::new());
    let server = FakeServer::new(move |number, mut client| {
        if let Some(id) = client.request()
            && *silent.get_or_init(|| number) != number
        {
            client.send(&reply(id, 0, |body| {
                body.long(1);
            }));
        }
        client.wait_for_end();
    });
    let client = hidden(both_ways(), 9);
    let object = client
        .orb
        .string_to_object(&server.reference())
        .expect("a reference");
    let hurried = |ms| Desk::unchecked_narrow(object.with_timeout(Duration::from_millis(ms)));
    late(&hurried(50));
    assert_eq!(hurried(30_000).noted(), Ok(1));
}

#[test]
fn a_shutdown_ends_the_calls_of_both_ends() {
    let server = Ours::serve_as(both_ways());
    let (mut client, desk) = offered(&server, 9);
    let call = begin(move || desk.noted());
    assert_eq!(client.answer().expect("a request").kind, REQUEST);
    server.orb.shutdown();
    let ended = call
        .recv_timeout(PATIENCE)
        .expect("it ends")
        .expect_err("no reply");
    let expected = (ExceptionKind::CommFailure, CompletionStatus::Maybe);
    assert_eq!((ended.kind, ended.completed), expected, "{ended}");
    assert_eq!(client.answer().map(|it| it.kind), Some(CLOSE_CONNECTION));
}

#[test]
fn a_call_before_the_orb_runs_says_so_when_its_time_is_over() {
    let server = Ours::serve_as(both_ways());
    let builder = both_ways().round_trip_timeout(Some(Duration::from_millis(200)));
    let orb = builder.build().expect("an ORB");
    orb.root_poa().expect("it listens");
    let text = server.text(server.desk.as_object());
    let object: ObjectRef = orb.string_to_object(&text).expect("a reference");
    let hung = late(&Desk::unchecked_narrow(object));
    assert!(hung.to_string().contains("Orb::run"), "{hung}");
}

#[test]
fn strategies_that_cannot_read_for_both_ends_are_refused() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let built = Orb::builder().bidirectional().dispatch(dispatch).build();
        let is_right = dispatch == DispatchStrategy::WorkerPool;
        assert_eq!(built.is_ok(), is_right, "{name}");
    }
    for (name, connection) in ConnectionStrategy::ALL {
        let built = both_ways().connection(connection).build().map(|_| ());
        let is_right = connection == ConnectionStrategy::Exclusive;
        assert_eq!(built.is_ok(), is_right, "{name}");
        if let Err(refused) = built {
            let text = refused.to_string();
            assert!(
                text.contains("-ORBBidirectional") && text.contains("worker_pool"),
                "{text}"
            );
        }
    }
}
