//! Servers that answer late or not at all: an operation of several calls ends within the timeout of one, and so do the calls that a client
//! makes when it is dropped.

use rtorb::cdr::{ByteOrder, Encode as _, Writer};
use rtorb::ior::Ior;
use rtorb::{ExceptionKind, ObjectRef, Orb};
use rtorb_services::events::client::{Receiver, Supplier};
use rtorb_services::naming::client::{Context, Failure, FailureReason, parse_name};
use rtorb_services::stubs::rtec_event::rtec_event_channel_admin::{
    ConsumerQos, EventChannel, SupplierQos,
};
use rtorb_tests::fake::{FakeServer, Peer, reply};
use rtorb_tests::raw::Stream;
use std::time::{Duration, Instant};

/// Two replies of a slow server take longer.
const TIMEOUT: Duration = Duration::from_millis(200);
/// A server that replies at once does so within this time, also on a busy host.
const ENOUGH: Duration = Duration::from_secs(5);
/// What the ORB allows, if nobody tells it otherwise.
const USUAL: Duration = Duration::from_secs(30);
const USER_EXCEPTION: u32 = 1;

/// A server that replies so to each request, `pause` after it has come.
fn answering(
    pause: Duration,
    status: u32,
    body: impl Fn(&mut Stream) + Clone + Send + 'static,
) -> FakeServer {
    FakeServer::new(move |_, mut peer: Peer| {
        while let Some(id) = peer.request() {
            std::thread::sleep(pause);
            peer.send(&reply(id, status, &body));
        }
    })
}

/// A server that replies to so many requests of its first client, with nothing, and then no more.
fn silent_after(requests: usize) -> FakeServer {
    FakeServer::new(move |_, mut peer: Peer| {
        for _ in 0..requests {
            if let Some(id) = peer.request() {
                peer.send(&reply(id, 0, |_| {}));
            }
        }
        peer.wait_for_end();
    })
}

/// A reference to the one object of a server, which is called a naming context, so that a client does not ask.
fn reference(server: &FakeServer) -> Ior {
    let mut ior: Ior = server.reference().parse().expect("a reference");
    ior.type_id = "IDL:omg.org/CosNaming/NamingContext:1.0".to_owned();
    ior
}

/// The same as it stands in a reply.
fn reference_to(server: &FakeServer) -> Vec<u8> {
    let ior = reference(server);
    let mut w = Writer::new(Vec::new(), 1 << 16).with_order(ByteOrder::Little);
    ior.encode(&mut w).expect("it fits");
    w.to_bytes()
}

/// A server that replies to each request with a reference to the other.
fn referring_to(server: &FakeServer) -> FakeServer {
    let reference = reference_to(server);
    answering(Duration::ZERO, 0, move |body| {
        body.raw(&reference);
    })
}

/// The object of a server, whose calls have that timeout.
fn object(orb: &Orb, server: &FakeServer, timeout: Duration) -> ObjectRef {
    let object = orb.string_to_object(&reference(server).to_string());
    object.expect("a reference").with_timeout(timeout)
}

fn context(orb: &Orb, server: &FakeServer, timeout: Duration) -> Context {
    Context::narrow(&object(orb, server, timeout)).expect("its reference says so")
}

fn orb() -> Orb {
    let orb = Orb::builder().listen("iiop://127.0.0.1:0");
    orb.build().expect("an ORB")
}

/// Drops a client whose server is silent: it may take the timeout of the client's reference, not that of the ORB.
fn drops_in_time(client: impl Sized) {
    let began = Instant::now();
    drop(client);
    assert!(began.elapsed() < USUAL / 2, "{:?}", began.elapsed());
}

#[test]
fn a_change_of_several_calls_ends_within_one_timeout() {
    let pause = TIMEOUT * 3 / 4;
    let orb = orb();
    let name = parse_name("a/b/c").expect("a name");
    let bound = answering(pause, USER_EXCEPTION, |body| {
        body.string("IDL:omg.org/CosNaming/NamingContext/AlreadyBound:1.0");
    });
    let late = context(&orb, &bound, TIMEOUT).make_parents(&name);
    is_late(late, "two parents");
    let slow = answering(pause, 0, |_| {});
    let reference = reference_to(&slow);
    let of_parent = answering(pause, 0, move |body| {
        body.raw(&reference);
    });
    let late = context(&orb, &of_parent, TIMEOUT).remove_context(&name);
    is_late(
        late,
        "the call of the context comes after that of its parent",
    );
}

fn is_late(result: Result<(), Failure>, why: &str) {
    let FailureReason::System(exception) = result.expect_err(why).reason else {
        panic!("{why}");
    };
    assert_eq!(exception.kind, ExceptionKind::Timeout, "{why}");
}

#[test]
fn contexts_that_come_from_a_context_have_its_timeout() {
    let orb = orb();
    let known = context(&orb, &referring_to(&silent_after(0)), ENOUGH);
    let name = parse_name("a").expect("a name");
    for next in [
        known.context(&name),
        known.new_context(),
        known.bind_new_context(&name),
    ] {
        let next = next.expect("the server answers");
        assert_eq!(next.as_object().chosen_timeout(), Some(ENOUGH));
    }
}

#[test]
fn a_list_is_dropped_in_time_although_its_iterator_is_silent() {
    let silent = silent_after(0);
    let iterator = reference_to(&silent);
    let lists = answering(Duration::ZERO, 0, move |body| {
        // No bindings at once, and an iterator for the others.
        body.ulong(0).raw(&iterator);
    });
    let bindings = context(&orb(), &lists, ENOUGH).bindings(1);
    drops_in_time(bindings.expect("the server answers"));
}

#[test]
fn a_receiver_and_a_supplier_are_dropped_in_time_although_their_channel_is_silent() {
    let orb = orb();
    let poa = orb.root_poa().expect("it listens");
    // It answers when they connect.
    let proxy = silent_after(1);
    let admin = referring_to(&proxy);
    let channel = referring_to(&admin);
    let channel = EventChannel::unchecked_narrow(object(&orb, &channel, ENOUGH));
    let qos = ConsumerQos::default();
    let receiver = Receiver::connect(&channel, &poa, &qos, 1).expect("it answers");
    // A connection of its own, on which the proxy answers once.
    let supplier = std::thread::spawn(move || {
        let supplier = Supplier::connect(&channel, &SupplierQos::default());
        drops_in_time(supplier.expect("it answers"));
    });
    let began = Instant::now();
    let silent = receiver.is_served().expect_err("the channel is silent");
    assert_eq!(silent.kind, ExceptionKind::Timeout);
    assert!(began.elapsed() < USUAL / 2, "{:?}", began.elapsed());
    drops_in_time(receiver);
    supplier.join().expect("it ends in time");
}
