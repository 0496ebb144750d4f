//! Oneways that wait for nothing (SYNC_NONE), to servers that read slowly, not at all, or are gone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use rtorb::ior::{Component, Ior};
use rtorb::rt::{Policy, Protocol, TcpProtocolProperties};
use rtorb::{
    CompletionStatus, ConnectionStrategy, ExceptionKind, Limits, ObjectRef, Orb, OrbBuilder,
    PolicyOverrides, SyncScope, SystemException, WaitStrategy,
};
use rtorb_tests::fake::{FakeServer, Peer, request_id, yes};
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{FRAGMENT, LOCATE_REQUEST, REQUEST, Request, Stream, fragments};
use rtorb_tests::running::{PATIENCE, until};
use rtorb_tests::stubs::{Relay, RelayServant, Seen};
use rtorb_wire::code_sets::CodeSetComponentInfo;

#[test]
fn without_a_connection_nothing_is_sent_and_none_is_opened() {
    for connection in ONE_THREAD_AT_A_TIME {
        let server = Slow::new();
        let object = server.object(Orb::builder(), connection);
        for failed in [push(&object, &[1]), object.flush().map(|_| ())] {
            let failed = expect_transient(failed, SyncScope::UNCONNECTED);
            let text = failed.to_string();
            assert!(text.contains(&server.server.endpoint()), "{text}");
            assert!(text.contains("validate_connection"), "{text}");
        }
        object.validate_connection().expect("the server answers");
        assert_eq!(object.flush(), Ok(true));
        push(&object, &[2]).expect("there is room");
        let pushed = server.pushed_after_reading(1);
        assert_eq!(pushed, [request(2, &[2])], "{connection}");
    }
}

#[test]
fn a_server_that_does_not_read_gets_every_accepted_oneway_whole_once_it_does() {
    for connection in ONE_THREAD_AT_A_TIME {
        // Short ones, and some that are lent and larger than any buffer of the kernel's here.
        for octets in [100, 7_000, 300_000, 3_000_000] {
            let server = Slow::new();
            let object = server.object(Orb::builder(), connection);
            object.validate_connection().expect("the server answers");
            let mut accepted = clog(&object, octets);
            if octets >= NEVER_FITS {
                assert_eq!(object.flush(), Ok(false));
            }
            server.read();
            until("the rest is sent", || flushed(&object).then_some(()));
            let last = payload(accepted.len(), octets);
            push(&object, &last).expect("nothing is left");
            accepted.push(last);
            until("the rest is sent", || flushed(&object).then_some(()));
            let pushed = server.pushed_after_reading(accepted.len());
            for (number, (message, octets)) in pushed.iter().zip(&accepted).enumerate() {
                // The connection's first id asked where the object is.
                let expected = request(2 + 2 * number as u32, octets);
                assert!(*message == expected, "{connection}, message {number}");
            }
            assert_eq!(pushed.len(), accepted.len());
        }
    }
}

#[test]
fn a_oneway_sends_what_is_left_of_the_one_before_when_there_is_room() {
    let server = Slow::new();
    let object = server.object(Orb::builder(), MULTIPLEXED);
    object.validate_connection().expect("the server answers");
    let accepted = clog(&object, 10_000).len();
    server.read();
    until("there is room", || push(&object, &[1]).ok());
    until("the rest is sent", || flushed(&object).then_some(()));
    server.pushed_after_reading(accepted + 1);
}

#[test]
fn a_flush_concerns_the_connection_that_the_policies_of_the_thread_choose() {
    let server = Slow::new();
    let orb = with(Orb::builder(), MULTIPLEXED);
    let object = orb.string_to_object(&server.server.reference());
    let object = object
        .expect("a reference")
        .with_sync_scope(SyncScope::None);
    object.validate_connection().expect("the server answers");
    let private = private_and_small()
        .into_iter()
        .fold(PolicyOverrides::default(), PolicyOverrides::policy);
    let flushed = orb.policy_current().with_overrides(private, || {
        object.non_existent().expect("the server answers");
        push(&object, &payload(0, 3 * NEVER_FITS)).expect("nothing is before it");
        object.flush()
    });
    assert_eq!(flushed, Ok(Ok(false)));
    assert_eq!(object.flush(), Ok(true), "its own connection");
}

#[test]
fn fragments_that_did_not_go_at_once_are_whole_and_in_order() {
    let server = Slow::new();
    let builder = Orb::builder().fragment_bytes(1024);
    let object = server.object(builder, MULTIPLEXED);
    object.validate_connection().expect("the server answers");
    let accepted = clog(&object, 100_000);
    server.read();
    until("the rest is sent", || flushed(&object).then_some(()));
    let expected: Vec<Vec<u8>> = (0..)
        .zip(&accepted)
        .flat_map(|(number, octets)| fragments(&request(2 + 2 * number, octets), 1024, 1024))
        .collect();
    assert!(server.pushed_after_reading(expected.len()) == expected);
}

#[test]
fn many_threads_send_over_what_one_has_opened_and_no_message_is_torn() {
    const THREADS: u8 = 4;
    const EACH: u32 = 300;
    let server = Slow::new();
    let object = server.object(Orb::builder(), MULTIPLEXED);
    object.validate_connection().expect("the server answers");
    server.read();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let object = &object;
            scope.spawn(move || {
                for number in 0..EACH {
                    let mut octets = number.to_le_bytes().to_vec();
                    octets.resize(20_000, thread);
                    until("there is room", || match push(object, &octets) {
                        Ok(()) => Some(()),
                        Err(failed) => {
                            assert_eq!(failed.kind, ExceptionKind::Transient, "{failed}");
                            assert_eq!(failed.completed, CompletionStatus::No);
                            assert_ne!(failed.minor, SyncScope::UNCONNECTED, "{failed}");
                            None
                        }
                    });
                }
            });
        }
    });
    until("the rest is sent", || flushed(&object).then_some(()));
    let pushed = server.pushed_after_reading(usize::from(THREADS) * EACH as usize);
    let mut next = [0; THREADS as usize];
    for message in &pushed {
        let body = &message[message.len() - 20_000..];
        let thread = usize::from(body[4]);
        assert!(body[4..].iter().all(|octet| *octet == body[4]));
        assert_eq!(body[..4], u32::to_le_bytes(next[thread]));
        next[thread] += 1;
    }
    assert_eq!(next, [EACH; THREADS as usize]);
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_broken_connection_is_told_closed_and_opened_only_on_demand() {
    for connection in ONE_THREAD_AT_A_TIME {
        let server = Slow::new();
        let object = server.object(Orb::builder(), connection);
        object.validate_connection().expect("the server answers");
        clog(&object, 50_000);
        server.hang_up();
        let failed = until("the server is seen to be gone", || object.flush().err());
        assert_eq!(failed.kind, ExceptionKind::CommFailure, "{failed}");
        assert_eq!(failed.completed, CompletionStatus::No);
        expect_transient(push(&object, &[1]), SyncScope::UNCONNECTED);
        assert_eq!(server.connections(), 1, "{connection}");
        object.validate_connection().expect("the server answers");
        push(&object, &[1]).expect("there is room");
        assert_eq!(server.connections(), 2, "{connection}");
    }
}

#[test]
fn a_server_that_ended_is_noticed_by_one_of_the_next_oneways() {
    let server = Slow::new();
    let object = server.object(Orb::builder(), MULTIPLEXED);
    object.validate_connection().expect("the server answers");
    push(&object, &[1]).expect("there is room");
    server.hang_up();
    let failed = until("the server is seen to be gone", || refused(&object, &[2]));
    assert_eq!(failed.kind, ExceptionKind::CommFailure, "{failed}");
}

#[test]
fn a_connection_that_another_thread_calls_on_is_not_waited_for_not_even_in_a_servant() {
    let server = Slow::new();
    let object = server.object(Orb::builder(), MULTIPLEXED);
    object.validate_connection().expect("the server answers");
    let ours = Ours::serve();
    let relay: Relay = ours
        .poa
        .activate(Sends { to: object.clone() })
        .expect("there is room");
    thread::scope(|scope| {
        // It has the connection until the server reads on.
        let call = scope.spawn(|| object.is_a("IDL:X:1.0"));
        until("the call has the connection", || {
            let failed = refused(&object, &[])?;
            expect_transient(Err(failed), SyncScope::IN_USE);
            Some(())
        });
        assert_eq!(object.flush(), Ok(false));
        let failed = relay.pass_on().expect_err("it tells what it got");
        assert_eq!(
            (failed.kind, failed.minor),
            (ExceptionKind::Transient, SyncScope::IN_USE)
        );
        server.read();
        assert_eq!(call.join().expect("it does not panic"), Ok(true));
    });
    assert_eq!(relay.pass_on(), Ok(Vec::new()));
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_connection_on_which_many_wait_at_once_is_refused() {
    for (_, wait) in WaitStrategy::ALL {
        if wait == WaitStrategy::Read {
            continue;
        }
        let server = Slow::new();
        let connection = ConnectionStrategy::Multiplexed { wait };
        let orb = Orb::builder().connection(connection).build();
        let orb = orb.expect("legal");
        let object = orb.string_to_object(&server.server.reference());
        let object = object
            .expect("a reference")
            .with_sync_scope(SyncScope::None);
        let failed = push(&object, &[1]).expect_err("it would have to wait");
        assert_eq!(failed.kind, ExceptionKind::InvPolicy, "{failed}");
        assert!(failed.to_string().contains("`read`"), "{failed}");
    }
}

#[test]
fn a_connection_that_keeps_something_is_closed_for_another_only_as_the_last_choice() {
    for connection in [ConnectionStrategy::Exclusive, MULTIPLEXED] {
        let servers = [(); 4].map(|()| Slow::new());
        let limits = Limits::with(|limits| {
            limits.thread_connections_max = 2;
            limits.shared_connections_max = 2;
        });
        let orb = with(Orb::builder().limits(limits), connection);
        let objects = servers.each_ref().map(|server| server.object_of(&orb));
        let open = |number: usize| {
            let opened = objects[number].validate_connection();
            opened.expect("there is one to close");
        };
        open(0);
        clog(&objects[0], NEVER_FITS);
        open(1);
        // In the place of the second, which was used last but keeps nothing.
        open(2);
        assert_eq!(objects[0].flush(), Ok(false), "{connection}");
        let closed = objects[1].flush().map(|_| ());
        expect_transient(closed, SyncScope::UNCONNECTED);
        clog(&objects[2], NEVER_FITS);
        open(3);
        let closed = objects[0].flush().map(|_| ());
        expect_transient(closed, SyncScope::UNCONNECTED);
        assert_eq!(objects[2].flush(), Ok(false), "{connection}");
    }
}

#[test]
fn an_object_that_moved_is_sent_to_where_it_was_found() {
    let server = Slow::new();
    let elsewhere = server.server.reference();
    let former = FakeServer::new(move |_, mut peer| {
        while let Some(id) = peer.request() {
            peer.send(&moved_to(id, &elsewhere));
        }
    });
    let orb = with(Orb::builder(), MULTIPLEXED);
    let object = orb.string_to_object(&former.reference());
    let object = object.expect("a reference");
    let own = object.set_policy_overrides(&[Policy::PrivateConnection]);
    let own = own.expect("a client may").with_sync_scope(SyncScope::None);
    expect_transient(push(&own, &[1]), SyncScope::UNCONNECTED);
    own.validate_connection().expect("it says where it is");
    push(&own, &[2]).expect("it is open");
    assert_eq!(server.pushed_after_reading(1), [request(2, &[2])]);
    assert_eq!(server.connections(), 1);
}

#[test]
fn a_server_that_needs_the_code_set_is_told_when_the_connection_is_validated() {
    let server = Slow::new();
    let orb = with(Orb::builder(), MULTIPLEXED);
    let object = orb.string_to_object(&server.reference_with_code_sets());
    let own = object
        .expect("a reference")
        .set_policy_overrides(&[Policy::PrivateConnection])
        .expect("a client may")
        .with_sync_scope(SyncScope::None);
    let refused = own.validate_connection().expect_err("it is gone");
    assert_eq!(refused.kind, ExceptionKind::ObjectNotExist, "{refused}");
    // It has the code set, so that the second question is a LocateRequest.
    server.read();
    own.validate_connection().expect("the server answers");
    assert_eq!(own.invoke_oneway_at_once("push", |_| Ok(())), Ok(true));
    let pushed = server.pushed_after_reading(1);
    let request = Request {
        id: 4,
        reply: false,
        ..Request::two_way(b"object", "push")
    };
    assert!(pushed[0] == request.head().message(), "{pushed:?}");
}

#[test]
fn the_scope_goes_with_a_reference_through_its_other_choices() {
    let server = Slow::new();
    let object = server.object(Orb::builder(), MULTIPLEXED);
    let other = object
        .with_timeout(None)
        .set_policy_overrides(&[])
        .expect("a client may");
    assert_eq!(other.sync_scope(), SyncScope::None);
    let waits = other.with_sync_scope(SyncScope::WithTransport);
    assert_eq!(waits.sync_scope(), SyncScope::default());
}

/// One connection for all threads, used by one of them at a time.
const MULTIPLEXED: ConnectionStrategy = ConnectionStrategy::Multiplexed {
    wait: WaitStrategy::Read,
};

/// The connection strategies with which one thread at a time uses a connection.
const ONE_THREAD_AT_A_TIME: [ConnectionStrategy; 3] = [
    ConnectionStrategy::Exclusive,
    MULTIPLEXED,
    ConnectionStrategy::Banded {
        wait: WaitStrategy::Read,
    },
];

/// A servant that sends a oneway and answers what became of it.
struct Sends {
    to: ObjectRef,
}

impl RelayServant for Sends {
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        push(&self.to, &[]).map(|()| Vec::new())
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// A server that says where its object is, and then reads only when it is told to.
struct Slow {
    server: FakeServer,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    order: Mutex<Order>,
    told: Condvar,
    pushed: Mutex<Vec<Vec<u8>>>,
    connections: AtomicUsize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Order {
    #[default]
    Wait,
    Read,
    HangUp,
}

impl Slow {
    fn new() -> Self {
        let shared = Arc::new(Shared::default());
        let of_server = Arc::clone(&shared);
        let server = FakeServer::new(move |_, peer| of_server.serve(peer));
        Self { server, shared }
    }

    /// Its object, for oneways that wait for nothing, over a private connection with small buffers.
    fn object(&self, builder: OrbBuilder, connection: ConnectionStrategy) -> ObjectRef {
        self.object_of(&with(builder, connection))
    }

    fn object_of(&self, orb: &Orb) -> ObjectRef {
        let object = orb.string_to_object(&self.server.reference());
        let object = object
            .expect("a reference")
            .set_policy_overrides(&private_and_small());
        object
            .expect("a client may")
            .with_sync_scope(SyncScope::None)
    }

    /// As the server's reference, of one that has chosen code sets and speaks UTF-8.
    fn reference_with_code_sets(&self) -> String {
        let ior: Ior = self.server.reference().parse().expect("a reference");
        let mut profile = ior.iiop_profiles().next().expect("a profile");
        let code_sets = Component::CodeSets(CodeSetComponentInfo::supported());
        profile
            .components
            .push(code_sets.to_tagged().expect("it fits"));
        let profiles = vec![profile.to_tagged().expect("it fits")];
        Ior { profiles, ..ior }.to_string()
    }

    fn read(&self) {
        self.shared.give(Order::Read);
    }

    fn hang_up(&self) {
        self.shared.give(Order::HangUp);
    }

    fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Oneways, or parts of them, that came, once there are so many.
    fn pushed_after_reading(&self, count: usize) -> Vec<Vec<u8>> {
        self.read();
        until("all oneways came", || {
            let pushed = self.shared.pushed.lock().expect("nobody panics");
            (pushed.len() >= count).then(|| pushed.clone())
        })
    }
}

impl Shared {
    fn give(&self, order: Order) {
        *self.order.lock().expect("nobody panics") = order;
        self.told.notify_all();
    }

    fn serve(&self, mut peer: Peer) {
        self.connections.fetch_add(1, Ordering::SeqCst);
        while let Some(message) = peer.message() {
            match message[7] {
                LOCATE_REQUEST => {
                    let id = request_id(&message).expect("it has one");
                    peer.send(&here(id));
                }
                REQUEST if message[16] != 0 => {
                    peer.send(&yes(request_id(&message).expect("it has one")));
                }
                REQUEST | FRAGMENT => self.pushed.lock().expect("nobody panics").push(message),
                other => panic!("a client sends no message of kind {other}"),
            }
            let waits = |order: &mut Order| *order == Order::Wait;
            let order = self.order.lock().expect("nobody panics");
            let told = self.told.wait_timeout_while(order, PATIENCE, waits);
            let (order, _) = told.expect("nobody panics");
            if *order == Order::HangUp {
                drop(order);
                // The next one is to be served again.
                self.give(Order::Wait);
                return;
            }
        }
    }
}

/// LocateReply: the object is here.
fn here(id: u32) -> Vec<u8> {
    let mut stream = Stream::new(4, 2, false);
    stream.ulong(id).ulong(1);
    stream.message()
}

/// LocateReply: the object is at that reference.
fn moved_to(id: u32, reference: &str) -> Vec<u8> {
    let ior: Ior = reference.parse().expect("a reference");
    let mut stream = Stream::new(4, 2, false);
    stream.ulong(id).ulong(2).string(&ior.type_id);
    stream.ulong(ior.profiles.len() as u32);
    for profile in &ior.profiles {
        stream.ulong(profile.tag).octets(&profile.data);
    }
    stream.message()
}

fn with(builder: OrbBuilder, connection: ConnectionStrategy) -> Orb {
    builder.connection(connection).build().expect("legal")
}

/// The policies of a private connection with small buffers.
fn private_and_small() -> [Policy; 2] {
    let small = TcpProtocolProperties {
        send_buffer_size: 8192,
        ..TcpProtocolProperties::default()
    };
    [
        Policy::PrivateConnection,
        Policy::ClientProtocol(vec![Protocol::Tcp(small)]),
    ]
}

fn push(object: &ObjectRef, octets: &[u8]) -> Result<(), SystemException> {
    object.invoke_oneway("push", |w| {
        w.primitive(octets.len() as u32)?;
        w.lend_bytes(octets)
    })
}

/// The exception of a oneway, unless those before it have filled the buffers: on a busy host, another thread may be so late.
fn refused(object: &ObjectRef, octets: &[u8]) -> Option<SystemException> {
    let failed = push(object, octets).err()?;
    (failed.minor != SyncScope::BEHIND_ANOTHER).then_some(failed)
}

/// More octets than the buffers of both hosts have room for. Less may be sent to the end also if the server does not read: the kernel
/// may be late to move octets from one buffer to the other.
const NEVER_FITS: usize = 1 << 20;

/// Sends until one is refused: what was accepted.
fn clog(object: &ObjectRef, octets: usize) -> Vec<Vec<u8>> {
    let mut accepted = Vec::new();
    loop {
        let next = payload(accepted.len(), octets);
        match push(object, &next) {
            Ok(()) => accepted.push(next),
            failed => {
                expect_transient(failed, SyncScope::BEHIND_ANOTHER);
                return accepted;
            }
        }
        assert!(accepted.len() < 1 << 20, "the peer does not read");
    }
}

fn payload(number: usize, octets: usize) -> Vec<u8> {
    (0..octets).map(|at| (at * 7 + number * 13) as u8).collect()
}

fn flushed(object: &ObjectRef) -> bool {
    object.flush().expect("the connection is sound")
}

/// The oneway of [`push`] as it shall be.
fn request(id: u32, octets: &[u8]) -> Vec<u8> {
    let request = Request {
        id,
        reply: false,
        ..Request::two_way(b"object", "push")
    };
    let mut stream = request.head();
    stream.align(8).octets(octets);
    stream.message()
}

fn expect_transient(answer: Result<(), SystemException>, minor: u32) -> SystemException {
    let failed = answer.expect_err("it would have to wait");
    assert_eq!(
        (failed.kind, failed.minor, failed.completed),
        (ExceptionKind::Transient, minor, CompletionStatus::No),
        "{failed}"
    );
    failed
}
