//! Clients that do not read: the server keeps what they do not take within bounds, and gives them up in time.

use super::network::{Conditions, set_conditions};
use super::servant::{Job, Worker};
use super::world::{Sending, World, object};
use crate::clock::monotonic_ns;
use crate::endpoint::Endpoint;
use crate::poller::Token;
use crate::server::{Admission, EventLoop, ServedConnection};
use crate::transport::resolver::Resolver;
use crate::transport::{Stream, tcp};
use crate::{Limits, Orb};
use core::time::Duration;
use rtorb_os::slab::Key;
use rtorb_tests::raw::Request;
use rtorb_wire::giop::HEADER_BYTES;
use rustix::io::Errno;
use std::sync::Arc;

const SEND_TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(60);
const NARROW: Conditions = Conditions {
    pipe_bytes_max: 1000,
    ..Conditions::PERFECT
};

#[test]
fn a_client_that_reads_slowly_gets_everything() {
    for sending in [Sending::Waiting, Sending::ByEventLoop] {
        let world = World::new(0, NARROW);
        let server = world.serve(builder(), sending);
        let builder = Orb::builder().round_trip_timeout(Some(TIMEOUT));
        let worker = Worker(object(&world, builder, &server.reference));
        let large = Job {
            bytes: 900,
            ..Job::small(1)
        };
        worker.work(large).expect("it is taken");
    }
}

#[test]
fn the_event_loop_sends_a_reply_piece_by_piece() {
    for fragment_bytes in [None, Some(400)] {
        let world = World::new(0, NARROW);
        let builder = match fragment_bytes {
            Some(bytes) => builder().fragment_bytes(bytes),
            None => builder(),
        };
        let server = world.serve(builder, Sending::ByEventLoop);
        let client = Orb::builder().round_trip_timeout(Some(TIMEOUT));
        let worker = Worker(object(&world, client, &server.reference));
        for number in 0..4 {
            let large = Job {
                bytes: 100_000,
                ..Job::small(number)
            };
            worker.work(large).expect("it is taken");
        }
    }
}

#[test]
fn a_client_that_does_not_read_is_given_up_in_time() {
    for (sending, latest) in [
        (Sending::Waiting, SEND_TIMEOUT),
        // The time between two looks of the simulated server.
        (Sending::ByEventLoop, SEND_TIMEOUT + SEND_TIMEOUT / 16),
    ] {
        let world = World::perfect();
        let server = world.serve(builder(), sending);
        let deaf = connect(&server.reference);
        let requests = Worker(object(&world, Orb::builder(), &server.reference));
        requests.work(Job::small(0)).expect("others are served");
        set_conditions(NARROW);
        // The replies to unknown operations are not taken.
        let key = key(&server.reference);
        let request = Request::two_way(&key, "unknown").empty();
        let begun_ns = monotonic_ns();
        while matches!(deaf.send_message_now(&request, &[]), Ok(1..)) {
            world.pass(Duration::from_millis(1));
        }
        // While it has unsent bytes, nothing more is read from it.
        let mut ended_ns = None;
        while ended_ns.is_none() {
            world.pass(Duration::from_millis(10));
            let sent = deaf.send_message_now(&request, &[]);
            if matches!(sent, Err(Errno::CONNRESET | Errno::PIPE)) {
                ended_ns = Some(monotonic_ns());
            }
            let elapsed = Duration::from_nanos(monotonic_ns() - begun_ns);
            assert!(elapsed < TIMEOUT, "{sending:?}: it is not given up");
        }
        let elapsed = Duration::from_nanos(ended_ns.expect("it ended") - begun_ns);
        let slack = Duration::from_millis(200);
        assert!(elapsed >= SEND_TIMEOUT, "{sending:?}: {elapsed:?}");
        assert!(elapsed <= latest + slack, "{sending:?}: {elapsed:?}");
        let counts = server.orb.connection_counts();
        assert_eq!(counts.slow_receivers, 1, "{sending:?}");
        requests.work(Job::small(1)).expect("others are served on");
    }
}

#[test]
fn a_client_that_takes_its_reply_in_sips_is_given_up_in_time() {
    for sending in [Sending::Waiting, Sending::ByEventLoop] {
        let world = World::new(0, NARROW);
        let server = world.serve(builder(), sending);
        let sipping = connect(&server.reference);
        let key = key(&server.reference);
        let request = Request::two_way(&key, "unknown").empty();
        let begun_ns = monotonic_ns();
        // Something is taken well within the timeout, and less than what the client asks for.
        let is_open = || {
            let _ = sipping.send_message_now(&request, &[]);
            let _ = sipping.send_message_now(&request, &[]);
            matches!(
                sipping.receive_now(&mut [0; 20]),
                Ok(1..) | Err(Errno::AGAIN)
            )
        };
        while is_open() {
            world.pass(Duration::from_secs(1));
            let elapsed = Duration::from_nanos(monotonic_ns() - begun_ns);
            assert!(elapsed < 10 * TIMEOUT, "{sending:?}: it is not given up");
        }
    }
}

#[test]
fn a_client_whose_unsent_bytes_exceed_the_bound_is_counted() {
    let _world = World::perfect();
    let limits = Limits::with(|limits| limits.message_bytes_max = 1024);
    let orb = Orb::builder().limits(limits).build().expect("an ORB");
    let (_deaf, connection, _events) = watched(&orb);
    let session = &connection.session;
    set_conditions(NARROW);
    let most = orb.limits().unsent_bytes_max() / HEADER_BYTES + 1000;
    let is_ended = (0..most).any(|_| {
        session.say_closing();
        orb.connection_counts().slow_receivers > 0
    });
    assert!(is_ended, "no more than {most} messages are kept");
    session.say_closing();
    assert_eq!(orb.connection_counts().slow_receivers, 1);
}

#[test]
fn an_event_loop_that_has_ended_keeps_no_connection() {
    for sends_after_the_end in [false, true] {
        let _world = World::perfect();
        let orb = Orb::builder().build().expect("an ORB");
        let (_deaf, connection, events) = watched(&orb);
        let session = Arc::downgrade(&connection.session);
        set_conditions(NARROW);
        if sends_after_the_end {
            events.close();
        }
        // More than the client takes.
        for _ in 0..=NARROW.pipe_bytes_max / HEADER_BYTES {
            connection.session.say_closing();
        }
        let has_unsent = connection.session.state.has_unsent();
        assert_eq!(has_unsent, !sends_after_the_end);
        events.close();
        drop(connection);
        assert!(session.upgrade().is_none(), "{sends_after_the_end}");
    }
}

#[test]
fn others_are_served_while_a_client_does_not_read() {
    let world = World::perfect();
    let server = world.serve(builder(), Sending::ByEventLoop);
    let deaf = connect(&server.reference);
    let good = Worker(object(&world, Orb::builder(), &server.reference));
    set_conditions(NARROW);
    let request = Request::two_way(&key(&server.reference), "unknown").empty();
    for number in 0..100 {
        let _ = deaf.send_message_now(&request, &[]);
        let begun_ns = monotonic_ns();
        good.work(Job::small(number)).expect("it is served");
        assert_eq!(monotonic_ns(), begun_ns, "it waits for nobody");
    }
}

fn builder() -> crate::OrbBuilder {
    Orb::builder().limits(Limits::with(|limits| limits.send_timeout = SEND_TIMEOUT))
}

/// A connection to an ORB, without an ORB at its other end, and the event loop that watches it.
fn watched(orb: &Orb) -> (Stream, ServedConnection, Arc<EventLoop>) {
    orb.root_poa().expect("it listens");
    let core = &orb.core.adapters.server;
    let server = core.server().expect("it is open");
    let Endpoint::Tcp { host, port } = server.listeners[0].bound.clone() else {
        panic!("the default endpoint is TCP");
    };
    let deaf = tcp::connect(&Resolver::default(), &host, port, u64::MAX);
    let Admission::Accepted(connection) = server.accept(core, &server.listeners[0]) else {
        panic!("a client waits");
    };
    let events = server.event_loop(&core.limits).expect("epoll");
    let token = Token::of(Key {
        index: 0,
        generation: 1,
    });
    let attached = connection.session.attach(&events, token);
    attached.expect("it can be watched");
    let deaf = deaf.expect("the simulated network connects");
    (deaf, connection, events)
}

/// A connection to a server, without an ORB.
fn connect(reference: &str) -> Stream {
    let profile = profile(reference);
    let (resolver, until_ns) = (Resolver::default(), u64::MAX);
    let connected = tcp::connect(&resolver, &profile.host, profile.port, until_ns);
    connected.expect("the simulated network connects")
}

fn key(reference: &str) -> Vec<u8> {
    profile(reference).object_key
}

fn profile(reference: &str) -> rtorb_wire::ior::IiopProfile {
    let ior: rtorb_wire::ior::Ior = reference.parse().expect("a reference");
    ior.iiop_profiles().next().expect("an IIOP profile")
}
