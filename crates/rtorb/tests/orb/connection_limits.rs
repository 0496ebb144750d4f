//! The limits of connections: messages that do not arrive, connections of one address, and the counters of both.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rtorb::ior::Ior;
use rtorb::{DispatchStrategy, Limits, Orb};
use rtorb_tests::clockwork::Works;
use rtorb_tests::good::Good;
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{
    Answer, CLOSE_CONNECTION, Connection, REPLY, REQUEST, Request, Stream, fragments,
};
use rtorb_tests::relay::Served;
use rtorb_tests::running::until;
use rtorb_tests::stubs::timing::Clockwork;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

const CANCEL_REQUEST: u8 = 2;

#[test]
fn a_message_that_does_not_arrive_ends_its_connection_with_every_dispatch_strategy() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let limits = Limits::with(|limits| limits.receive_timeout = Duration::from_millis(100));
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch).limits(limits));
        let request = request(&ours);
        let mut good = Good::to(&ours);
        // Half of a header, and half of a body behind a request that is served.
        for part in [&request[..6], &[&request[..], &request[..40]].concat()] {
            let mut half = Connection::to(ours.address());
            half.send(part);
            let ends = |answer: Option<Answer>| answer.expect("a message").kind == CLOSE_CONNECTION;
            until("the server says that it closes", || {
                ends(half.answer()).then_some(())
            });
        }
        // One byte at a time of a message that never ends.
        let mut slow = TcpStream::connect(ours.address()).expect("the server listens");
        slow.write_all(b"GIOP\x01\x02\x01\x00\x00\x00\xf0\x00")
            .expect("it is accepted");
        until("the slow sender is closed", || {
            let _ = slow.write_all(&[0]);
            (ours.orb.connection_counts().slow_senders == 3).then_some(())
        });
        good.call();
        let counts = ours.orb.connection_counts();
        assert_eq!((counts.malformed, counts.refused), (0, 0), "{name}");
    }
}

#[test]
fn a_message_in_fragments_that_does_not_arrive_ends_its_connection_whatever_comes_between_them() {
    let mut cancel = Stream::new(CANCEL_REQUEST, 2, false);
    cancel.ulong(99);
    let cancel = cancel.message();
    for (name, dispatch) in DispatchStrategy::ALL {
        let limits = Limits::with(|limits| limits.receive_timeout = Duration::from_millis(100));
        let ours = Ours::serve_as(Orb::builder().dispatch(dispatch).limits(limits));
        let request = request(&ours);
        let parts = fragments(&request, 24, 24);
        let mut slow = TcpStream::connect(ours.address()).expect("the server listens");
        slow.write_all(&parts[0]).expect("it is accepted");
        until(&format!("{name}: the slow sender is closed"), || {
            let _ = slow.write_all(&cancel);
            (ours.orb.connection_counts().slow_senders == 1).then_some(())
        });
        // One that comes whole in time is served, and its connection stays.
        let mut good = Connection::to(ours.address());
        for _ in 0..3 {
            assert_eq!(kind(good.ask(&parts.concat())), REPLY, "{name}");
        }
    }
}

#[test]
fn a_connection_gives_way_to_another_one_of_its_address_beyond_the_limit() {
    let limits = Limits::with(|limits| limits.connections_per_address_max = 2);
    let ours = Ours::serve_as(Orb::builder().limits(limits));
    let request = request(&ours);
    let mut other = connection_from(2, &ours);
    assert_eq!(kind(other.ask(&request)), REPLY);
    let [mut oldest, mut second, mut third] = [(); 3].map(|()| {
        let mut connection = connection_from(1, &ours);
        assert_eq!(kind(connection.ask(&request)), REPLY);
        connection
    });
    assert_eq!(kind(oldest.answer()), CLOSE_CONNECTION, "the oldest one");
    for connection in [&mut other, &mut second, &mut third] {
        assert_eq!(kind(connection.ask(&request)), REPLY, "it is not affected");
    }
    let counts = ours.orb.connection_counts();
    assert_eq!((counts.accepted, counts.gave_way), (4, 1), "{counts:?}");
}

#[test]
fn a_client_is_refused_while_no_connection_of_its_address_is_idle() {
    let limits = Limits::with(|limits| limits.connections_per_address_max = 0);
    let ours = Ours::serve_as(Orb::builder().limits(limits));
    let mut refused = connection_from(1, &ours);
    assert_eq!(kind(refused.answer()), CLOSE_CONNECTION);
    let counts = ours.orb.connection_counts();
    assert_eq!((counts.accepted, counts.refused), (0, 1), "{counts:?}");
}

/// The strategies that serve a second client while a servant executes.
const SEVERAL_THREADS: [DispatchStrategy; 3] = [
    DispatchStrategy::ThreadPerConnection,
    DispatchStrategy::LeaderFollowers,
    DispatchStrategy::WorkerPool,
];

#[test]
fn a_connection_does_not_give_way_while_a_servant_executes_that_was_replied_for_already() {
    for dispatch in SEVERAL_THREADS {
        let limits = Limits::with(|limits| limits.connections_per_address_max = 1);
        let served = Served::by(Orb::builder().dispatch(dispatch).limits(limits));
        let is_over = Arc::new(AtomicBool::new(false));
        let until_over = Arc::clone(&is_over);
        let works = Works::executing(move |_| {
            let over = || until_over.load(Ordering::SeqCst).then_some(());
            until("the test lets it return", over);
            Ok(())
        });
        let object: Clockwork = served.root.activate(works).expect("there is room");
        let (address, key) = place(&object.as_object().to_string());
        // SYNC_WITH_SERVER.
        let mut request = Stream::new(REQUEST, 2, false);
        request.ulong(1).raw(&[1, 0, 0, 0]).ushort(0);
        request.octets(&key).string("execute").ulong(0).align(8);
        request.ulong(0);
        let mut first = Connection::to(address);
        let answer = first.ask(&request.message());
        assert_eq!(
            kind(answer),
            REPLY,
            "{dispatch}: before the servant returns"
        );
        let refused = Connection::to(address).answer();
        assert_eq!(kind(refused), CLOSE_CONNECTION, "{dispatch}");
        let counts = served.orb.connection_counts();
        assert_eq!((counts.gave_way, counts.refused), (0, 1), "{dispatch}");
        is_over.store(true, Ordering::SeqCst);
        until("it gives way", || {
            let plain = Request::two_way(&key, "plain").empty();
            let answer = Connection::to(address).ask(&plain);
            (kind(answer) == REPLY).then_some(())
        });
    }
}

#[test]
fn bytes_that_are_no_message_are_counted() {
    let ours = Ours::serve();
    let mut wrong = Connection::to(ours.address());
    wrong.send(b"GET / HTTP/1.1\r\n\r\n");
    until("it is counted", || {
        (ours.orb.connection_counts().malformed == 1).then_some(())
    });
}

/// Where the server of a reference is, and what it knows the object by.
fn place(reference: &str) -> (SocketAddr, Vec<u8>) {
    let ior: Ior = reference.parse().expect("a reference");
    let profile = ior.iiop_profiles().next().expect("an IIOP profile");
    let ip = profile.host.parse().expect("loopback");
    (SocketAddr::new(ip, profile.port), profile.object_key)
}

fn request(ours: &Ours) -> Vec<u8> {
    Request::two_way(&ours.key(ours.cubit.as_object()), "cube_void").empty()
}

fn kind(answer: Option<Answer>) -> u8 {
    answer.expect("a message").kind
}

/// A connection from that address of loopback.
fn connection_from(host: u8, ours: &Ours) -> Connection {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let own = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, host), 0);
    bind(&socket, &own).expect("an address of loopback");
    connect(&socket, &ours.address()).expect("the server listens");
    Connection::over(TcpStream::from(socket))
}
