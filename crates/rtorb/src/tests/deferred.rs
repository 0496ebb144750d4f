//! Deferred calls whose deadlines pass: the watchdog answers them at their time, and waits for no client.

use super::network::{Conditions, set_conditions};
use super::world::{Sending, World};
use crate::codegen::Interface;
use crate::endpoint::Endpoint;
use crate::exception::local;
use crate::poa::ServedBy;
use crate::reference::routes::object_key;
use crate::server::{DeferReply, Responder, ServerCall};
use crate::transport::resolver::Resolver;
use crate::transport::{Stream, tcp};
use crate::{
    CompletionStatus, Deadlines, DeferredReplyCounts, Limits, ObjectRef, Orb, OrbBuilder,
    SystemException,
};
use core::time::Duration;
use rtorb_os::sync::Mutex;
use rtorb_wire::Writer;
use rtorb_wire::giop::{
    self, Header, ReplyHeader, ReplyStatus, RequestStart, Response, ServiceContext,
    SystemExceptionBody, Version, contexts, remaining_time,
};
use rtorb_wire::ior::Ior;
use rustix::io::Errno;
use std::sync::Arc;

/// The time from the arrival of a request to its deadline.
const LEFT: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(1);
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
const BYTES_MAX: usize = 1000;

/// A servant that keeps its responders.
#[derive(Clone, Debug, Default)]
struct Keeper(Arc<Mutex<Vec<Responder<()>>>>);

#[derive(Clone, Debug)]
struct KeeperRef(ObjectRef);

impl Interface for KeeperRef {
    type Object = ObjectRef;
    const REPOSITORY_ID: &'static str = "IDL:Keeper:1.0";
    const ANCESTORS: &'static [&'static str] = &[];

    fn unchecked_narrow(object: ObjectRef) -> Self {
        Self(object)
    }

    fn as_object(&self) -> &ObjectRef {
        &self.0
    }
}

impl ServedBy<Keeper> for KeeperRef {
    fn find_operation(_: &[u8]) -> Option<usize> {
        Some(0)
    }

    fn dispatch(
        keeper: &Keeper,
        _: usize,
        call: &mut ServerCall<'_>,
    ) -> Result<(), SystemException> {
        let responder = call.defer(write)?;
        keeper.0.lock().push(responder);
        Ok(())
    }
}

fn write(
    result: Result<(), SystemException>,
    call: &mut ServerCall<'_>,
) -> Result<(), SystemException> {
    result?;
    call.reply(|_| Ok(()))
}

/// A client without an ORB that has called such a servant, with a deadline.
struct DatedCall {
    client: Stream,
    responder: Responder<()>,
    orb: Orb,
    /// The last to be dropped.
    world: World,
}

impl DatedCall {
    fn new(builder: OrbBuilder, sending: Sending) -> Self {
        let world = World::perfect();
        let limits = Limits::with(|limits| limits.send_timeout = SEND_TIMEOUT);
        let orb = world.client(builder.limits(limits));
        let poa = orb.root_poa().expect("it listens");
        let keeper = Keeper::default();
        let object: KeeperRef = poa.activate(keeper.clone()).expect("there is room");
        world.run(orb.clone(), sending);
        let server = orb.core.adapters.server.server().expect("it listens");
        let Endpoint::Tcp { host, port } = server.listeners[0].bound.clone() else {
            panic!("the default endpoint is TCP");
        };
        let client = tcp::connect(&Resolver::default(), &host, port, u64::MAX);
        let client = client.expect("it listens");
        let sent = client.send_message_now(&request(&object.0.to_string()), &[]);
        sent.expect("there is room");
        world.pass(MOMENT);
        let responder = keeper.0.lock().pop().expect("it is called");
        Self {
            client,
            responder,
            orb,
            world,
        }
    }

    /// Lets the deadline pass while the client's socket takes at most so many bytes.
    fn pass_deadline_with_room(&self, pipe_bytes_max: usize) {
        set_conditions(Conditions {
            pipe_bytes_max,
            ..Conditions::PERFECT
        });
        self.world.pass(LEFT);
    }

    /// Takes the exception that has come; `None` if nothing has.
    fn answer(&self) -> Option<SystemException> {
        let mut reply = [0; BYTES_MAX];
        let count = match self.client.receive_now(&mut reply) {
            Err(Errno::AGAIN) => return None,
            received => received.expect("the connection is open"),
        };
        let header = Header::parse(&reply[..count], BYTES_MAX);
        let header = header.expect("GIOP").expect("a whole header");
        let mut r = header.reader(&reply[..count]);
        let status = ReplyHeader::decode(&mut r).expect("a reply").status;
        assert_eq!(status, ReplyStatus::SystemException);
        let body = SystemExceptionBody::decode(&mut r).expect("an exception");
        Some(body.into())
    }

    fn counts(&self) -> DeferredReplyCounts {
        self.orb.deferred_replies()
    }

    fn slow_receivers(&self) -> u64 {
        self.orb.connection_counts().slow_receivers
    }
}

/// A request that expires so long after its arrival.
fn request(reference: &str) -> Vec<u8> {
    let ior: Ior = reference.parse().expect("an IOR");
    let key = object_key(&ior).expect("a profile");
    let start = RequestStart {
        request_id: 4,
        response: Response::FromTarget,
        object_key: &key,
        operation: "keep",
        contexts: &[ServiceContext {
            id: contexts::REMAINING_TIME,
            data: &remaining_time(LEFT.as_nanos() as u64),
        }],
    };
    let mut w = Writer::new(Vec::new(), BYTES_MAX);
    giop::begin_request(&mut w, Version::V1_2, &start).expect("it fits");
    giop::end_message(&mut w).expect("it fits");
    w.to_bytes()
}

fn assert_timeout(answer: Option<SystemException>, sending: Sending) {
    let timeout = answer.expect("an answer");
    let expected = local::NOT_ANSWERED_IN_TIME;
    assert_eq!(
        (timeout.kind, timeout.minor, timeout.completed),
        (expected.kind, expected.minor, CompletionStatus::Maybe),
        "{sending:?}"
    );
}

const BOTH: [Sending; 2] = [Sending::Waiting, Sending::ByEventLoop];

#[test]
fn a_call_is_answered_at_its_deadline_and_not_before() {
    for sending in BOTH {
        let call = DatedCall::new(Orb::builder(), sending);
        // The request has come a moment ago.
        call.world.pass(LEFT - 2 * MOMENT);
        assert!(call.answer().is_none(), "{sending:?}");
        assert!(!call.responder.is_cancelled(), "{sending:?}");
        call.world.pass(2 * MOMENT);
        assert_timeout(call.answer(), sending);
        assert!(call.responder.is_cancelled(), "{sending:?}");
        let counts = call.counts();
        let all = (counts.outstanding, counts.expired);
        assert_eq!(all, (0, 1), "{sending:?}");
        call.responder.reply(());
        call.world.pass(MOMENT);
        let more = call.client.receive_now(&mut [0; BYTES_MAX]);
        assert_eq!(more, Err(Errno::AGAIN), "{sending:?}");
        let counts = call.orb.deferred_replies();
        assert_eq!(counts.undelivered, 1, "{sending:?}");
    }
}

#[test]
fn a_deadline_that_is_only_counted_ends_no_deferred_call() {
    for sending in BOTH {
        let builder = Orb::builder().deadlines(Deadlines::Count);
        let call = DatedCall::new(builder, sending);
        call.world.pass(2 * LEFT);
        assert!(call.answer().is_none(), "{sending:?}");
        assert!(!call.responder.is_cancelled(), "{sending:?}");
        let counts = call.counts();
        let all = (counts.outstanding, counts.expired);
        assert_eq!(all, (1, 0), "{sending:?}");
    }
}

#[test]
fn a_client_without_room_gets_the_timeout_when_it_has_room() {
    for sending in BOTH {
        let call = DatedCall::new(Orb::builder(), sending);
        call.pass_deadline_with_room(0);
        assert!(call.answer().is_none(), "{sending:?}");
        assert!(call.responder.is_cancelled(), "{sending:?}");
        assert_eq!(call.counts().expired, 1, "{sending:?}");
        set_conditions(Conditions::PERFECT);
        // The simulated server looks for room rarely.
        call.world.pass(SEND_TIMEOUT / 2);
        assert_timeout(call.answer(), sending);
        let counts = call.counts();
        let all = (counts.outstanding, counts.expired);
        assert_eq!(all, (0, 1), "{sending:?}");
        assert_eq!(call.slow_receivers(), 0, "{sending:?}");
    }
}

#[test]
fn a_client_that_has_no_room_for_too_long_is_given_up() {
    for sending in BOTH {
        let call = DatedCall::new(Orb::builder(), sending);
        call.pass_deadline_with_room(0);
        call.world.pass(SEND_TIMEOUT / 2);
        assert_eq!(call.slow_receivers(), 0, "{sending:?}");
        call.world.pass(SEND_TIMEOUT);
        assert_eq!(call.slow_receivers(), 1, "{sending:?}");
        assert_eq!(call.counts().outstanding, 0, "{sending:?}");
    }
}

/// Without an event loop, nobody would send the rest.
#[test]
fn a_connection_without_an_event_loop_ends_with_a_part_of_the_timeout() {
    let call = DatedCall::new(Orb::builder(), Sending::Waiting);
    call.pass_deadline_with_room(20);
    let mut part = [0; BYTES_MAX];
    assert_eq!(call.client.receive_now(&mut part), Ok(20));
    let end = call.client.receive_now(&mut part);
    assert!(matches!(end, Ok(0) | Err(Errno::CONNRESET)), "{end:?}");
    assert_eq!(call.slow_receivers(), 1);
    assert_eq!(call.counts().outstanding, 0);
}

/// The event loop sends the rest.
#[test]
fn a_client_may_take_the_timeout_in_parts() {
    let call = DatedCall::new(Orb::builder(), Sending::ByEventLoop);
    call.pass_deadline_with_room(20);
    let mut part = [0; BYTES_MAX];
    assert_eq!(call.client.receive_now(&mut part), Ok(20));
    set_conditions(Conditions::PERFECT);
    call.world.pass(SEND_TIMEOUT / 2);
    assert!(matches!(call.client.receive_now(&mut part), Ok(21..)));
    assert_eq!(call.slow_receivers(), 0);
}
