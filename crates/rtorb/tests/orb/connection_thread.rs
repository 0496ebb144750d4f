//! The wait strategy `connection_thread`: a thread of the connection sends and reads for all client threads.

use rtorb::cdr::Encode;
use rtorb::exception::{OMG, Phase};
use rtorb::rt::{EarliestDeadlineFirst, SpawnOptions};
use rtorb::thread::ThreadConfig;
use rtorb::{
    CompletionStatus, ConnectionStrategy, ExceptionKind, Limits, ObjectRef, Orb, OrbBuilder,
    SystemException, WaitStrategy,
};
use rtorb_os::thread::thread_id;
use rtorb_tests::asleep::until_asleep;
use rtorb_tests::fake::{FakeServer, Peer, reply, request_id, yes};
use rtorb_tests::running::until;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The round-trip timeout where none is meant to be met, and where one is.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);

const THREADS: usize = 8;

/// No socket takes so much of a peer that does not read.
const LARGE: usize = 12 << 20;

#[test]
fn all_threads_have_one_connection_and_each_its_own_replies() {
    let (server, opened) = echoing();
    // With room for all their requests, and with room for two.
    for room in [1024, 2] {
        let limits = Limits::with(|limits| limits.queued_requests_max = room);
        let object = object(Orb::builder().limits(limits), &server);
        thread::scope(|scope| {
            for thread in 0..THREADS as u32 {
                let object = &object;
                scope.spawn(move || {
                    for turn in 0..200 {
                        let number = 1000 * thread + turn;
                        assert_eq!(echo(object, number), Ok(number));
                        let sent = object.invoke_oneway("push", |w| w.primitive(number));
                        sent.expect("the socket takes it");
                    }
                });
            }
        });
    }
    assert_eq!(opened.load(Ordering::SeqCst), 2);
}

#[test]
fn a_call_at_its_deadline_is_right_or_fails_while_the_queue_is_full() {
    let (server, _) = echoing();
    let limits = Limits::with(|limits| limits.queued_requests_max = 2);
    let object = object(Orb::builder().limits(limits), &server);
    thread::scope(|scope| {
        for thread in 0..THREADS as u32 {
            let timeout = Duration::from_micros(50) * (thread + 1);
            let hasty = object.with_timeout(timeout);
            scope.spawn(move || {
                for turn in 0..200 {
                    let number = 1000 * thread + turn;
                    match echo(&hasty, number) {
                        Ok(echoed) => assert_eq!(echoed, number),
                        Err(failed) if failed.kind == ExceptionKind::Timeout => {}
                        // The timeouts of others took one connection after another away while it waited for room.
                        Err(failed) => {
                            let told = (failed.kind, failed.completed);
                            let expected = (ExceptionKind::Transient, CompletionStatus::No);
                            assert_eq!(told, expected, "{failed}");
                        }
                    }
                }
            });
        }
    });
    assert_eq!(echo(&object, 7), Ok(7));
}

#[test]
fn a_dead_server_ends_the_calls_that_it_has_received() {
    let opened = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&opened);
    let server = FakeServer::new(move |_, mut peer: Peer| {
        counted.fetch_add(1, Ordering::SeqCst);
        (0..THREADS).for_each(|_| assert!(peer.request().is_some()));
    });
    let object = object(Orb::builder(), &server);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let failed = ask(&object).expect_err("the server dies");
                let expected = (ExceptionKind::CommFailure, CompletionStatus::Maybe);
                assert_eq!((failed.kind, failed.completed), expected, "{failed}");
                assert!(failed.to_string().contains(&server.endpoint()), "{failed}");
            });
        }
    });
    assert_eq!(opened.load(Ordering::SeqCst), 1);
}

#[test]
fn a_request_that_had_not_begun_when_the_server_died_is_sent_on_another_connection() {
    let stuck = Stuck::new();
    let object = object(Orb::builder(), &stuck.server);
    assert_eq!(ask(&object), Ok(true));
    let (queued, queues) = channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            let failed = eat(&object, LARGE).expect_err("the server dies");
            assert_eq!(failed.kind, ExceptionKind::CommFailure, "{failed}");
        });
        stuck.await_begun();
        scope.spawn(|| {
            queued.send(thread_id()).expect("the test waits for it");
            assert_eq!(ask(&object), Ok(true));
        });
        until_asleep(&[queues.recv().expect("it begins")]);
        stuck.go_on(Then::Die);
    });
    // The first one on the old connection, the second one on the new one.
    assert_eq!(stuck.read_requests(2), [(0, 0), (1, 0)]);
}

#[test]
fn a_peer_that_does_not_read_gets_nothing_of_a_request_that_timed_out_in_the_queue() {
    let stuck = Stuck::new();
    // The large request and one more.
    let limits = Limits::with(|limits| limits.queued_requests_max = 2);
    let object = object(Orb::builder().limits(limits), &stuck.server);
    assert_eq!(ask(&object), Ok(true));
    let (queued, queues) = channel();
    thread::scope(|scope| {
        scope.spawn(|| eat(&object, LARGE).expect("the server reads it at last"));
        stuck.await_begun();
        let hasty = object.with_timeout(SHORT);
        thread::scope(|scope| {
            // One of them is in the queue. The others wait for room.
            for _ in 0..3 {
                scope.spawn(|| {
                    let failed = ask(&hasty).expect_err("nothing is read");
                    expect_unsent(&failed);
                });
            }
            scope.spawn(|| {
                let failed = hasty.invoke_oneway("push", |w| w.primitive(1u32));
                expect_unsent(&failed.expect_err("nothing is read"));
            });
        });
        scope.spawn(|| {
            queued.send(thread_id()).expect("the test waits for it");
            assert_eq!(ask(&object), Ok(true));
        });
        until_asleep(&[queues.recv().expect("it begins")]);
        stuck.go_on(Then::Read);
    });
    // Ids of requests are even.
    assert_eq!(stuck.read_requests(3), [(0, 0), (0, 2), (0, 12)]);
}

#[test]
fn a_request_that_is_cancelled_in_the_queue_is_not_sent() {
    let stuck = Stuck::new();
    let orb = with(Orb::builder());
    let object = orb.string_to_object(&stuck.server.reference());
    let object = object.expect("a reference");
    assert_eq!(ask(&object), Ok(true));
    let (queued, queues) = channel();
    let mut is_unsent = false;
    thread::scope(|scope| {
        scope.spawn(|| eat(&object, LARGE).expect("the server reads it at last"));
        stuck.await_begun();
        let asking = object.clone();
        let calling = orb.scheduling_current(EarliestDeadlineFirst).spawn(
            &SpawnOptions::default(),
            &ThreadConfig::default(),
            move || {
                queued.send(thread_id()).expect("the test waits for it");
                ask(&asking)
            },
        );
        let calling = calling.expect("a thread");
        until_asleep(&[queues.recv().expect("it begins")]);
        calling.thread().cancel().expect("it runs");
        let ended = calling.join();
        stuck.go_on(Then::Read);
        let failed = ended.expect("no panic").expect_err("it is cancelled");
        assert_eq!(failed.kind, ExceptionKind::ThreadCancelled, "{failed}");
        is_unsent = failed.completed == CompletionStatus::No;
    });
    assert_eq!(ask(&object), Ok(true));
    // Ids of requests are even.
    assert_eq!(stuck.read_requests(3), [(0, 0), (0, 2), (0, 6)]);
    assert!(is_unsent);
}

#[test]
fn a_timeout_while_a_request_is_being_sent_leaves_the_connection() {
    let stuck = Stuck::new();
    let object = object(Orb::builder(), &stuck.server);
    assert_eq!(ask(&object), Ok(true));
    // On a busy host, the time of some may pass before they begin.
    let hasty = object.with_timeout(4 * SHORT);
    let failed = until("a request is begun", || {
        let failed = eat(&hasty, LARGE).expect_err("nothing is read");
        (failed.completed != CompletionStatus::No).then_some(failed)
    });
    expect_timeout(&failed, CompletionStatus::Maybe);
    assert_eq!(ask(&object), Ok(true));
    assert_eq!(stuck.read_requests(2), [(0, 0), (1, 0)]);
}

#[test]
fn an_accepted_oneway_is_sent_even_if_the_orb_ends_at_once() {
    const ONEWAYS: u32 = 100;
    let (sender, came) = channel();
    let server = FakeServer::new(move |_, mut peer: Peer| {
        while let Some(message) = peer.message() {
            let payload = message[message.len() - 4..].try_into().expect("four bytes");
            let _ = sender.send(u32::from_le_bytes(payload));
        }
    });
    let object = object(Orb::builder(), &server);
    for number in 0..ONEWAYS {
        let sent = object.invoke_oneway("push", |w| w.primitive(number));
        sent.expect("the socket takes it");
    }
    drop(object);
    let all: Vec<u32> = (0..ONEWAYS)
        .map(|_| came.recv_timeout(LONG).expect("it comes"))
        .collect();
    assert_eq!(all, (0..ONEWAYS).collect::<Vec<_>>());
}

#[test]
fn a_connection_with_a_oneway_in_its_queue_is_not_closed_for_another() {
    let (stuck, other) = (Stuck::new(), Stuck::new());
    let orb = with(Orb::builder().limits(Limits::with(|limits| limits.shared_connections_max = 1)));
    let [object, another] = [&stuck, &other].map(|stuck| {
        let object = orb.string_to_object(&stuck.server.reference());
        object.expect("a reference")
    });
    assert_eq!(ask(&object), Ok(true));
    thread::scope(|scope| {
        scope.spawn(|| {
            let bytes = vec![1u8; LARGE];
            let sent = object.invoke_oneway("push", |w| bytes.encode(w));
            sent.expect("the server reads it at last");
        });
        stuck.await_begun();
        let failed = ask(&another).expect_err("the only connection is in use");
        assert_eq!(failed.kind, ExceptionKind::NoResources, "{failed}");
        stuck.go_on(Then::Read);
    });
    assert_eq!(ask(&another), Ok(true));
}

#[test]
fn fragments_of_many_threads_do_not_mix() {
    let ours = rtorb_tests::ours::Ours::serve();
    let orb = with(Orb::builder().fragment_bytes(104));
    let object = orb.string_to_object(&ours.text(ours.cubit.as_object()));
    let cubit = rtorb_tests::stubs::Cubit::narrow(&object.expect("a reference")).expect("a Cubit");
    thread::scope(|scope| {
        for _ in 0..THREADS / 2 {
            scope.spawn(|| rtorb_tests::ours::check_cubit(&cubit, &[0, 1, 2000]));
        }
    });
}

/// A server that answers the first request of its first connection and then stops reading until it is told to read. It serves
/// later connections.
struct Stuck {
    server: FakeServer,
    begun: Receiver<()>,
    then: Sender<Then>,
    read: Receiver<(usize, u32)>,
}

/// What it does at last.
#[derive(Clone, Copy)]
enum Then {
    Read,
    Die,
}

impl Stuck {
    fn new() -> Self {
        let (begin, begun) = channel();
        let (then, order) = channel();
        let (reading, read) = channel();
        let order = Arc::new(Mutex::new(order));
        let server = FakeServer::new(move |number, mut peer: Peer| {
            let serve = |peer: &mut Peer| {
                let id = peer.request()?;
                let _ = reading.send((number, id));
                peer.send(&yes(id));
                Some(())
            };
            if number == 0 && serve(&mut peer).is_some() {
                peer.await_bytes();
                let _ = begin.send(());
                let then = order.lock().expect("nobody panics").recv();
                if !matches!(then, Ok(Then::Read)) {
                    return;
                }
            }
            while serve(&mut peer).is_some() {}
        });
        Self {
            server,
            begun,
            then,
            read,
        }
    }

    /// Waits until some of the second request has come.
    fn await_begun(&self) {
        self.begun.recv_timeout(LONG).expect("it comes");
    }

    fn go_on(&self, then: Then) {
        self.then.send(then).expect("the server waits for it");
    }

    /// The number of the connection and the id of each request that was read.
    fn read_requests(&self, count: usize) -> Vec<(usize, u32)> {
        let next = |_| self.read.recv_timeout(LONG).expect("it comes");
        let read = (0..count).map(next).collect();
        assert!(self.read.try_recv().is_err(), "one too many after {read:?}");
        read
    }
}

/// A server that answers with the last four bytes of a request, and the number of its connections.
fn echoing() -> (FakeServer, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&opened);
    let server = FakeServer::new(move |_, mut peer: Peer| {
        counted.fetch_add(1, Ordering::SeqCst);
        while let Some(asked) = peer.message() {
            let id = request_id(&asked).expect("a request");
            peer.send(&reply(id, 0, |body| {
                body.raw(&asked[asked.len() - 4..]);
            }));
        }
    });
    (server, opened)
}

fn with(builder: OrbBuilder) -> Orb {
    let wait = WaitStrategy::ConnectionThread;
    let builder = builder.connection(ConnectionStrategy::Multiplexed { wait });
    let built = builder.round_trip_timeout(Some(LONG)).build();
    built.expect("the ORB can be built")
}

fn object(builder: OrbBuilder, server: &FakeServer) -> ObjectRef {
    let object = with(builder).string_to_object(&server.reference());
    object.expect("a reference")
}

fn ask(object: &ObjectRef) -> Result<bool, SystemException> {
    object.is_a("IDL:Any:1.0")
}

/// Calls an operation whose result is its argument.
fn echo(object: &ObjectRef, number: u32) -> Result<u32, SystemException> {
    object.invoke("echo", |w| w.primitive(number), |r| r.primitive())
}

fn eat(object: &ObjectRef, bytes: usize) -> Result<(), SystemException> {
    let bytes = vec![1u8; bytes];
    object.invoke("eat", |w| bytes.encode(w), |_| Ok(()))
}

fn expect_unsent(failed: &SystemException) {
    expect_timeout(failed, CompletionStatus::No);
}

fn expect_timeout(failed: &SystemException, completed: CompletionStatus) {
    let told = (failed.kind, failed.minor, failed.completed);
    let expected = (ExceptionKind::Timeout, OMG | 2, completed);
    assert_eq!(told, expected, "{failed}");
    let phase = failed.cause.as_ref().map(|cause| cause.phase);
    assert_eq!(phase, Some(Phase::Send), "{failed}");
}
