//! The one suite that every legal pair of a connection strategy and a wait strategy passes.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rtorb::exception::OMG;
use rtorb::{
    CompletionStatus, ConnectionStrategy, ExceptionKind, ObjectRef, Orb, OrbBuilder, Strategies,
    SystemException, WaitStrategy,
};
use rtorb_tests::fake::{FakeServer, Peer, reference_at, reply, yes};
use rtorb_tests::ours::{Ours, Wide, check_cubit, check_desk, check_nested};
use rtorb_tests::peers::omniorb::{Endpoint, omniorb};
use rtorb_tests::raw::{CLOSE_CONNECTION, Stream, fragments};
use rtorb_tests::relay::{Relayer, Served};
use rtorb_tests::scratch::Scratch;
use rtorb_tests::server_process::lasting_port;
use rtorb_tests::stubs::exchange::Desk;
use rtorb_tests::stubs::{Cubit, Relay};

/// The round-trip timeout where none is meant to be met, and where one is.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);
/// One that is met, but not before a busy host has sent the request.
const SURE: Duration = Duration::from_secs(2);

const THREADS: usize = 8;

#[test]
fn every_operation_over_both_transports() {
    for (connection, name) in pairs() {
        let scratch = Scratch::new();
        let unix = format!("uiop://{}", scratch.join("socket").display());
        for endpoint in ["iiop://127.0.0.1:0", &unix] {
            let ours = Ours::serve_as(Orb::builder().listen(endpoint));
            let orb = orb(Orb::builder(), connection);
            println!("{name}, {endpoint}");
            check_cubit(&cubit(&orb, &ours), &[0, 1, 1021, 100_000]);
            check_desk(&desk(&orb, &ours), Wide::Sent);
        }
    }
}

#[test]
fn every_operation_of_an_omniorb_server() {
    let Some(omniorb) = omniorb() else { return };
    for (connection, name) in pairs() {
        let folder = Scratch::new();
        let socket = folder.join("socket");
        for endpoint in [Endpoint::Tcp, Endpoint::Unix(&socket)] {
            let scratch = Scratch::new();
            let (_server, reference) = omniorb.serve("cubit_server", &scratch, endpoint, &[]);
            let orb = orb(Orb::builder(), connection);
            println!("{name}, {endpoint:?}");
            let object = orb.string_to_object(&reference).expect("a reference");
            let cubit = Cubit::narrow(&object).expect("it is a Cubit");
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| check_cubit(&cubit, &[0, 1, 1021]));
                }
            });
        }
    }
}

#[test]
fn each_of_many_threads_gets_its_own_answers() {
    let ours = Ours::serve();
    for (connection, name) in pairs() {
        let orb = orb(Orb::builder(), connection);
        let (cubit, desk) = (cubit(&orb, &ours), desk(&orb, &ours));
        thread::scope(|scope| {
            for number in 0..THREADS as i32 {
                let (cubit, desk) = (&cubit, &desk);
                let name = &name;
                scope.spawn(move || {
                    for turn in 0..300 {
                        let long = number * 1000 + turn;
                        assert_eq!(cubit.cube_long(long), Ok(long.wrapping_pow(3)), "{name}");
                        let text = format!("{number} {turn}");
                        assert_eq!(desk.echo_string(&text), Ok(text), "{name}");
                        cubit.cube_oneway().expect("a oneway is sent");
                    }
                });
            }
        });
    }
}

#[test]
fn large_messages_of_many_threads_do_not_mix() {
    let ours = Ours::serve();
    for (connection, name) in pairs() {
        let orb = orb(Orb::builder(), connection);
        let cubit = cubit(&orb, &ours);
        thread::scope(|scope| {
            for number in 1..=THREADS as i32 {
                let (cubit, name) = (&cubit, &name);
                scope.spawn(move || {
                    for length in [10, 70_000, 400_000, 3] {
                        let longs = vec![number; length];
                        let cubed = vec![number.wrapping_pow(3); length];
                        assert!(cubit.cube_long_sequence(&longs) == Ok(cubed), "{name}");
                    }
                });
            }
        });
    }
}

#[test]
fn messages_in_fragments_are_put_together() {
    let ours = Ours::serve_as(Orb::builder().fragment_bytes(64));
    for (connection, name) in pairs() {
        let orb = orb(Orb::builder().fragment_bytes(104), connection);
        let cubit = cubit(&orb, &ours);
        println!("{name}");
        thread::scope(|scope| {
            for _ in 0..THREADS / 2 {
                scope.spawn(|| check_cubit(&cubit, &[0, 1, 200]));
            }
        });
    }
}

#[test]
fn a_servant_that_calls_its_own_server_is_answered() {
    for (connection, name) in pairs() {
        let ours = Ours::serve_as(Orb::builder().connection(connection));
        println!("{name}");
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| check_nested(&ours.desk));
            }
        });
    }
}

#[test]
fn a_servant_waits_for_nobody_on_the_connection_of_another_orb() {
    for (connection, name) in pairs() {
        // What comes over the first connection is answered when what comes over the second one has been.
        let (asked, first) = channel();
        let second_answered = Arc::new(Barrier::new(2));
        let server = FakeServer::new(move |number, mut peer: Peer| {
            let Some(id) = peer.request() else { return };
            let nobody = reply(id, 0, |body| {
                body.ulong(0);
            });
            if number == 0 {
                asked.send(()).expect("it waits");
                second_answered.wait();
                peer.send(&nobody);
            } else {
                peer.send(&nobody);
                second_answered.wait();
            }
        });
        let orb = orb(Orb::builder(), connection);
        let next = Relay::unchecked_narrow(object(&orb, &server.reference()));
        let served = Served::by(Orb::builder());
        let relay: Relay = served
            .adapter("Relays", &[])
            .and_then(|adapter| {
                adapter.activate(Relayer {
                    next: Some(next.clone()),
                    ..served.relayer("relay")
                })
            })
            .expect("it is activated");
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(next.pass_on().map(|way| way.len()), Ok(0), "{name}"));
            first.recv().expect("it is asked");
            assert_eq!(relay.pass_on().map(|way| way.len()), Ok(1), "{name}");
        });
    }
}

#[test]
fn a_silent_server_is_a_timeout_for_each_at_its_own_time() {
    for (connection, name) in pairs() {
        let server = FakeServer::new(|_, mut peer: Peer| peer.wait_for_end());
        let orb = orb(Orb::builder(), connection);
        let object = object(&orb, &server.reference());
        thread::scope(|scope| {
            for number in 1..=4 {
                let timeout = SHORT * number;
                let hasty = object.with_timeout(timeout);
                let name = &name;
                scope.spawn(move || {
                    let begin = Instant::now();
                    let failed = hasty.is_a("IDL:Any:1.0").expect_err("nothing is answered");
                    assert_eq!(failed.kind, ExceptionKind::Timeout, "{name}: {failed}");
                    assert!(
                        begin.elapsed() + Duration::from_millis(20) >= timeout,
                        "{name}"
                    );
                });
            }
        });
    }
}

#[test]
fn whoever_has_no_more_time_leaves_the_connection_to_the_others() {
    all_at_once(leaves_the_connection);
}

fn leaves_the_connection(connection: ConnectionStrategy, name: &str) {
    // The first request is answered too late, and wrongly: nobody may get that.
    let (give_up, given_up) = channel();
    let given_up = Arc::new(Mutex::new(given_up));
    let (came, comes) = channel();
    let server = FakeServer::new(move |number, mut peer: Peer| {
        let Some(first) = peer.request() else { return };
        if number == 0 {
            came.send(()).expect("the test waits for it");
            let given_up = given_up.lock().expect("no panic").recv();
            given_up.expect("the first one gives up");
            peer.send(&no(first));
        } else {
            peer.send(&yes(first));
        }
        while let Some(id) = peer.request() {
            peer.send(&yes(id));
        }
    });
    let orb = orb(Orb::builder(), connection);
    let object = object(&orb, &server.reference());
    thread::scope(|scope| {
        scope.spawn(|| {
            let hasty = object.with_timeout(SURE);
            let failed = hasty.is_a("IDL:Any:1.0").expect_err("it is late");
            let (kind, minor) = (ExceptionKind::Timeout, OMG | 3);
            assert_eq!(
                (failed.kind, failed.minor),
                (kind, minor),
                "{name}: {failed}"
            );
            assert_eq!(failed.completed, CompletionStatus::Maybe);
            give_up.send(()).expect("the server waits for it");
        });
        comes.recv().expect("the first request comes");
        // It waits while the first one leads, and must be led to its answer after that.
        for _ in 0..3 {
            assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true), "{name}");
        }
    });
    assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true), "{name}");
}

#[test]
fn a_connection_that_was_silent_for_too_long_gets_no_more_requests() {
    all_at_once(is_left_for_another);
}

fn is_left_for_another(connection: ConnectionStrategy, name: &str) {
    // As a host that was switched off and on again: what was open stays silent for ever.
    let (came, comes) = channel();
    let server = FakeServer::new(move |number, mut peer: Peer| {
        if number == 0 {
            if peer.request().is_some() {
                came.send(()).expect("the test has the other end");
            }
            return peer.wait_for_end();
        }
        while let Some(id) = peer.request() {
            peer.send(&yes(id));
        }
    });
    let orb = orb(Orb::builder(), connection);
    let object = object(&orb, &server.reference());
    let patient = object.with_timeout(2 * SURE);
    let hasty = object.with_timeout(SURE);
    let expect_timeout = |object: &ObjectRef| {
        let failed = object.is_a("IDL:Any:1.0").expect_err("it is silent");
        assert_eq!(failed.kind, ExceptionKind::Timeout, "{name}: {failed}");
    };
    thread::scope(|scope| {
        if connection != ConnectionStrategy::Exclusive {
            scope.spawn(|| expect_timeout(&patient));
            comes.recv().expect("the first request comes");
        }
        expect_timeout(&hasty);
        // Whether or not somebody still waits for the first one.
        assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true), "{name}");
    });
}

//= GIOP 1.2 §15.5.2
//% test
#[test]
fn replies_in_any_order_find_their_threads() {
    for (connection, name) in
        pairs().filter(|(connection, _)| connection.wait() != WaitStrategy::Read)
    {
        let server = FakeServer::new(|_, mut peer: Peer| {
            loop {
                let asked: Vec<u32> = (0..THREADS).map_while(|_| peer.request()).collect();
                if asked.len() < THREADS {
                    return;
                }
                // All of them at once, the last one first, and one that nobody waits for between.
                let mut replies = no(1_000_001);
                for id in asked.iter().rev() {
                    replies.extend(reply(*id, 0, |body| {
                        body.ulong(*id);
                    }));
                }
                peer.send(&replies);
            }
        });
        let orb = orb(Orb::builder(), connection);
        let object = object(&orb, &server.reference());
        thread::scope(|scope| {
            let all: Vec<_> = (0..THREADS)
                .map(|_| scope.spawn(|| [(); 20].map(|()| answered_id(&object))))
                .collect();
            let answers = all
                .into_iter()
                .flat_map(|one| one.join().expect("no panic"));
            let mut answers: Vec<u32> = answers.collect();
            answers.sort_unstable();
            let asked: Vec<u32> = (0..20 * THREADS as u32).map(|n| 2 * n).collect();
            assert_eq!(answers, asked, "{name}");
        });
    }
}

#[test]
fn a_server_that_dies_is_told_to_all_who_wait() {
    for (connection, name) in pairs() {
        let server = dying(connection, |peer| peer.send(&[]));
        let failed = outcomes(connection, &server);
        assert_eq!(failed.len(), THREADS, "{name}");
        for failed in failed {
            let expected = (ExceptionKind::CommFailure, CompletionStatus::Maybe);
            assert_eq!(
                (failed.kind, failed.completed),
                expected,
                "{name}: {failed}"
            );
            assert!(failed.to_string().contains(&server.endpoint()), "{failed}");
        }
    }
}

#[test]
fn octets_that_are_no_giop_are_told_to_all_who_wait() {
    for (connection, name) in pairs() {
        let server = dying(connection, |peer| {
            peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        });
        for failed in outcomes(connection, &server) {
            let expected = (ExceptionKind::Marshal, CompletionStatus::Maybe);
            assert_eq!(
                (failed.kind, failed.completed),
                expected,
                "{name}: {failed}"
            );
        }
    }
}

#[test]
fn close_connection_is_seen_by_nobody() {
    for (connection, name) in pairs() {
        // The first connections answer once, so that they are known to work, and are then closed while requests wait.
        let opened = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&opened);
        let server = FakeServer::new(move |_, mut peer: Peer| {
            let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
            while let Some(id) = peer.request() {
                peer.send(&yes(id));
                if is_first {
                    let _ = peer.request();
                    peer.send(&Stream::new(CLOSE_CONNECTION, 2, false).message());
                    // A socket that is closed with requests in it would take the message back.
                    return peer.wait_for_end();
                }
            }
        });
        let orb = orb(Orb::builder(), connection);
        let object = object(&orb, &server.reference());
        assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true), "{name}");
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true), "{name}"));
            }
            // This thread's own connection, where it has one, is the one that is closed.
            assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true), "{name}");
        });
        let most = match connection {
            ConnectionStrategy::Exclusive => THREADS + 2,
            _ => 2,
        };
        assert!(opened.load(Ordering::SeqCst) <= most, "{name}");
    }
}

#[test]
fn a_request_whose_reply_has_begun_is_not_sent_again() {
    for (connection, name) in pairs() {
        let server = FakeServer::new(|_, mut peer: Peer| {
            let Some(id) = peer.request() else { return };
            let whole = reply(id, 0, |body| {
                body.raw(&[1; 100]);
            });
            peer.send(&fragments(&whole, 32, 32)[0]);
            peer.send(&Stream::new(CLOSE_CONNECTION, 2, false).message());
        });
        let orb = orb(Orb::builder(), connection);
        let failed = object(&orb, &server.reference())
            .is_a("IDL:Any:1.0")
            .expect_err("it is not known what became of it");
        let expected = (ExceptionKind::CommFailure, CompletionStatus::Maybe);
        assert_eq!(
            (failed.kind, failed.completed),
            expected,
            "{name}: {failed}"
        );
    }
}

#[test]
fn a_forward_is_followed() {
    let ours = Ours::serve();
    let ior = ours.desk.as_object().ior().clone();
    let server = FakeServer::new(move |_, mut peer: Peer| {
        while let Some(id) = peer.request() {
            peer.send(&reply(id, 3, |body| {
                body.string(&ior.type_id).ulong(ior.profiles.len() as u32);
                for profile in &ior.profiles {
                    body.ulong(profile.tag).octets(&profile.data);
                }
            }));
        }
    });
    for (connection, name) in pairs() {
        let orb = orb(Orb::builder(), connection);
        let object = object(&orb, &server.reference());
        object.validate_connection().expect("a locate reply");
        assert_eq!(object.is_a("IDL:Exchange/Desk:1.0"), Ok(true), "{name}");
    }
}

#[test]
fn a_server_that_is_not_there_is_transient_and_may_come() {
    for (connection, name) in pairs() {
        let orb = orb(Orb::builder(), connection);
        let object = object(&orb, &reference_at("127.0.0.1", lasting_port()));
        for _ in 0..2 {
            let failed = object.is_a("IDL:Any:1.0").expect_err("nobody listens");
            assert_eq!(failed.kind, ExceptionKind::Transient, "{name}: {failed}");
        }
    }
}

#[test]
fn a_peer_that_takes_nothing_is_a_timeout() {
    for (connection, name) in pairs() {
        let (_end, ends) = channel::<()>();
        let ends = Arc::new(Mutex::new(ends));
        let server = FakeServer::new(move |_, peer: Peer| {
            // Until the test ends.
            let _ = ends.lock().map(|ends| ends.recv());
            drop(peer);
        });
        let orb = orb(Orb::builder(), connection);
        let hasty = object(&orb, &server.reference()).with_timeout(SHORT);
        let octets = vec![1u8; 12 << 20];
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    use rtorb::cdr::Encode;
                    let failed = hasty.invoke("eat", |w| octets.encode(w), |_| Ok(()));
                    let failed = failed.expect_err("nothing is taken");
                    // Of those that wait for their turn to send, some find the connection given up.
                    let kinds = [
                        ExceptionKind::Timeout,
                        ExceptionKind::CommFailure,
                        ExceptionKind::Transient,
                    ];
                    assert!(kinds.contains(&failed.kind), "{name}: {failed}");
                });
            }
        });
    }
}

#[test]
fn a_call_at_its_deadline_is_right_or_a_timeout() {
    const TIMEOUT: Duration = Duration::from_millis(4);
    for (connection, name) in pairs() {
        let server = FakeServer::new(|_, mut peer: Peer| {
            let mut turn = 0;
            while let Some(asked) = peer.message() {
                // With those before it a request is answered about when its time is over, now before, now after.
                thread::sleep(Duration::from_micros([0, 300, 600, 1500][turn % 4]));
                turn += 1;
                let id = [asked[12], asked[13], asked[14], asked[15]];
                peer.send(&reply(u32::from_le_bytes(id), 0, |body| {
                    body.raw(&asked[asked.len() - 4..]);
                }));
            }
        });
        let orb = orb(Orb::builder(), connection);
        let object = object(&orb, &server.reference());
        let hasty = object.with_timeout(TIMEOUT);
        thread::scope(|scope| {
            for thread in 0..4 {
                let (hasty, name) = (&hasty, &name);
                scope.spawn(move || {
                    for turn in 0..150 {
                        let number = 1000 * thread + turn;
                        match echo(hasty, number) {
                            Ok(same) => assert_eq!(same, number, "{name}"),
                            Err(failed) => {
                                assert_eq!(failed.kind, ExceptionKind::Timeout, "{name}: {failed}");
                            }
                        }
                    }
                });
            }
        });
        assert_eq!(echo(&object, 7), Ok(7), "{name}: with time enough");
    }
}

#[test]
fn a_thread_that_ends_may_call_from_a_destructor() {
    struct Last(ObjectRef, Sender<Result<bool, SystemException>>);
    impl Drop for Last {
        fn drop(&mut self) {
            self.1.send(self.0.is_a("IDL:Any:1.0")).expect("it waits");
        }
    }
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    for (connection, name) in pairs() {
        let server = FakeServer::new(|_, mut peer: Peer| {
            while let Some(id) = peer.request() {
                peer.send(&yes(id));
            }
        });
        let orb = orb(Orb::builder(), connection);
        let object = object(&orb, &server.reference());
        let (sender, answers) = channel();
        let calling = thread::spawn(move || {
            // What the thread had first is dropped last: after all that the ORB keeps there.
            LAST.set(Some(Last(object.clone(), sender)));
            assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true));
        });
        assert_eq!(answers.recv(), Ok(Ok(true)), "{name}");
        calling.join().expect("no panic");
    }
}

#[test]
fn every_preset_calls_a_server_of_its_own_kind() {
    for (name, strategies) in Strategies::PRESETS {
        println!("{name}");
        let ours = Ours::serve_as(Orb::builder().strategies(strategies));
        let orb = orb(Orb::builder(), strategies.connection);
        let (cubit, desk) = (cubit(&orb, &ours), desk(&orb, &ours));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| check_cubit(&cubit, &[0, 1, 1021, 70_000]));
            }
        });
        check_desk(&desk, Wide::Sent);
    }
}

/// Checks all pairs at the same time: each check waits.
fn all_at_once(check: fn(ConnectionStrategy, &str)) {
    thread::scope(|scope| {
        for (connection, name) in pairs() {
            scope.spawn(move || check(connection, &name));
        }
    });
}

/// Every connection strategy with every wait strategy that it has, and its name.
fn pairs() -> impl Iterator<Item = (ConnectionStrategy, String)> {
    let all = ConnectionStrategy::ALL
        .into_iter()
        .flat_map(|(_, connection)| WaitStrategy::ALL.map(|(_, wait)| connection.with_wait(wait)));
    all.flatten().map(|connection| {
        (
            connection,
            format!("{connection} and {}", connection.wait()),
        )
    })
}

fn orb(builder: OrbBuilder, connection: ConnectionStrategy) -> Orb {
    let builder = builder
        .round_trip_timeout(Some(LONG))
        .connection(connection);
    builder.build().expect("the ORB can be built")
}

fn object(orb: &Orb, reference: &str) -> ObjectRef {
    orb.string_to_object(reference).expect("a reference")
}

fn cubit(orb: &Orb, ours: &Ours) -> Cubit {
    let object = object(orb, &ours.text(ours.cubit.as_object()));
    Cubit::narrow(&object).expect("it is a Cubit")
}

fn desk(orb: &Orb, ours: &Ours) -> Desk {
    let object = object(orb, &ours.text(ours.desk.as_object()));
    Desk::narrow(&object).expect("it is a Desk")
}

/// The reply to `_is_a` that says no.
fn no(id: u32) -> Vec<u8> {
    reply(id, 0, |body| {
        body.raw(&[0]);
    })
}

/// Calls an operation whose result is the id of its request.
fn answered_id(object: &ObjectRef) -> u32 {
    object
        .invoke("id", |_| Ok(()), |r| r.primitive())
        .expect("it is answered")
}

/// Calls an operation whose result is its argument.
fn echo(object: &ObjectRef, number: u32) -> Result<u32, SystemException> {
    object.invoke("echo", |w| w.primitive(number), |r| r.primitive())
}

/// A server whose every connection says its last words once it has had all requests that can come over it.
fn dying(
    connection: ConnectionStrategy,
    say: impl Fn(&mut Peer) + Clone + Send + 'static,
) -> FakeServer {
    let requests = match connection.wait() {
        WaitStrategy::Read => 1,
        _ => THREADS,
    };
    FakeServer::new(move |_, mut peer: Peer| {
        for _ in 0..requests {
            let _ = peer.request();
        }
        say(&mut peer);
    })
}

/// What many threads that call at once are told.
fn outcomes(connection: ConnectionStrategy, server: &FakeServer) -> Vec<SystemException> {
    let orb = orb(Orb::builder(), connection);
    let object = object(&orb, &server.reference());
    thread::scope(|scope| {
        let all: Vec<_> = (0..THREADS)
            .map(|_| scope.spawn(|| object.is_a("IDL:Any:1.0").expect_err("it dies")))
            .collect();
        let joined = all.into_iter().map(|one| one.join().expect("no panic"));
        joined.collect()
    })
}
