//! Deferred calls whose deadlines pass: the watchdog answers them at their time, and waits for no client.

use super::network::{Conditions, set_conditions};
use super::world::{Sending, World};
use crate::codegen::Interface;
use crate::endpoint::Endpoint;
use crate::exception::local;
use crate::poa::ServedBy;
use crate::reference::routes::object_key;
use crate::server::{DeferReply, Responder, ServerCall};
use crate::timing::{OperationTiming, TimingSide};
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
/// The deadline of an annotated operation.
const OWN: Duration = Duration::from_millis(500);
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
        keeper.keep(call)
    }
}

/// A reference to such a servant whose operation is annotated with the deadline [`OWN`].
#[derive(Clone, Debug)]
struct HastyRef(ObjectRef);

static TIMINGS: [OperationTiming; 1] =
    [OperationTiming::new("Hasty::keep").deadline_ns(OWN.as_nanos() as u64)];

impl Interface for HastyRef {
    type Object = ObjectRef;
    const REPOSITORY_ID: &'static str = "IDL:Hasty:1.0";
    const ANCESTORS: &'static [&'static str] = &[];

    fn timings() -> &'static [OperationTiming] {
        &TIMINGS
    }

    fn unchecked_narrow(object: ObjectRef) -> Self {
        Self(object)
    }

    fn as_object(&self) -> &ObjectRef {
        &self.0
    }
}

impl ServedBy<Keeper> for HastyRef {
    fn find_operation(_: &[u8]) -> Option<usize> {
        Some(0)
    }

    fn timing_of(operation: usize) -> Option<usize> {
        Some(operation)
    }

    fn dispatch(
        keeper: &Keeper,
        _: usize,
        call: &mut ServerCall<'_>,
    ) -> Result<(), SystemException> {
        keeper.keep(call)
    }
}

impl Keeper {
    fn keep(&self, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        let responder = call.defer(write)?;
        self.0.lock().push(responder);
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
        Self::of::<KeeperRef>(builder, sending, Some(LEFT))
    }

    /// Calls an object of the interface `I`; `left` is the time to the deadline that the request tells.
    fn of<I: ServedBy<Keeper, Object = ObjectRef> + 'static>(
        builder: OrbBuilder,
        sending: Sending,
        left: Option<Duration>,
    ) -> Self {
        let world = World::perfect();
        let limits = Limits::with(|limits| limits.send_timeout = SEND_TIMEOUT);
        let orb = world.client(builder.limits(limits));
        let poa = orb.root_poa().expect("it listens");
        let keeper = Keeper::default();
        let object: I = poa.activate(keeper.clone()).expect("there is room");
        world.run(orb.clone(), sending);
        let server = orb.core.adapters.server.server().expect("it listens");
        let Endpoint::Tcp { host, port } = server.listeners[0].bound.clone() else {
            panic!("the default endpoint is TCP");
        };
        let client = tcp::connect(&Resolver::default(), &host, port, u64::MAX);
        let client = client.expect("it listens");
        let request = request(&object.as_object().to_string(), left);
        let sent = client.send_message_now(&request, &[]);
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

/// The late calls that a server has counted, which has served one, and its longest response.
fn late_calls(orb: &Orb) -> (u64, Duration) {
    let timing = orb.timing();
    let [counts] = &timing[..] else {
        panic!("one operation is annotated: {timing:?}");
    };
    assert_eq!((counts.side, counts.calls), (TimingSide::Server, 1));
    (counts.deadline_misses, counts.worst_response)
}

/// A request that expires so long after its arrival, if ever.
fn request(reference: &str, left: Option<Duration>) -> Vec<u8> {
    let ior: Ior = reference.parse().expect("an IOR");
    let key = object_key(&ior).expect("a profile");
    let left = left.map(|left| remaining_time(left.as_nanos() as u64));
    let context = left.as_ref().map(|data| ServiceContext {
        id: contexts::REMAINING_TIME,
        data,
    });
    let start = RequestStart {
        request_id: 4,
        response: Response::FromTarget,
        object_key: &key,
        operation: "keep",
        contexts: context.as_slice(),
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
fn the_earlier_one_of_the_deadlines_of_a_call_and_of_its_operation_ends_it() {
    // The time to the deadline that came with the call, to its end, and the misses of the operation's deadline.
    let rows = [
        (None, OWN, 1),
        (Some(LEFT), OWN, 1),
        (Some(OWN / 5), OWN / 5, 0),
    ];
    for sending in BOTH {
        for (left, end, misses) in rows {
            let label = format!("{sending:?}, {left:?}");
            let call = DatedCall::of::<HastyRef>(Orb::builder(), sending, left);
            let remaining = call.responder.remaining().expect("it has a deadline");
            assert!(remaining <= end && remaining + 2 * MOMENT > end, "{label}");
            call.world.pass(end - 2 * MOMENT);
            assert!(call.answer().is_none(), "{label}");
            let before = late_calls(&call.orb);
            assert_eq!(before, (0, Duration::ZERO), "{label}: it has not ended");
            call.world.pass(2 * MOMENT);
            assert_timeout(call.answer(), sending);
            assert!(call.responder.is_cancelled(), "{label}");
            assert_eq!(call.counts().expired, 1, "{label}");
            let (late, response) = late_calls(&call.orb);
            assert_eq!(late, misses, "{label}");
            assert!((end..end + MOMENT).contains(&response), "{response:?}");
            // The late answer is dropped, and the call is not judged again.
            call.world.pass(LEFT);
            call.responder.reply(());
            assert_eq!(late_calls(&call.orb), (late, response), "{label}");
        }
    }
}

/// On real time: the caller waits on its own thread.
#[test]
fn a_caller_in_the_same_orb_waits_no_longer_than_the_deadline_of_the_operation() {
    let orb = Orb::builder().build().expect("it can be built");
    let poa = orb.root_poa().expect("it listens");
    let keeper = Keeper::default();
    let object: HastyRef = poa.activate(keeper.clone()).expect("there is room");
    let called = object.0.invoke("keep", |_| Ok(()), |_| Ok(()));
    let timeout = called.expect_err("nobody answers");
    assert_timeout(Some(timeout), Sending::Waiting);
    let counts = orb.deferred_replies();
    assert_eq!((counts.outstanding, counts.expired), (0, 1));
    let (late, response) = late_calls(&orb);
    assert!(late == 1 && response > OWN, "{late}, {response:?}");
    let responder = keeper.0.lock().pop().expect("it was called");
    assert!(responder.is_cancelled());
    responder.reply(());
    assert_eq!(orb.deferred_replies().undelivered, 1);
}

#[test]
fn the_response_of_a_deferred_call_is_that_of_its_answer() {
    for sending in BOTH {
        for (time, misses) in [(OWN / 2, 0), (2 * OWN, 1)] {
            let builder = Orb::builder().deadlines(Deadlines::Count);
            let call = DatedCall::of::<HastyRef>(builder, sending, None);
            call.world.pass(time - MOMENT);
            assert_eq!(late_calls(&call.orb), (0, Duration::ZERO), "{sending:?}");
            call.responder.reply(());
            let judged = late_calls(&call.orb);
            assert_eq!(judged, (misses, time), "{sending:?}");
            call.world.pass(MOMENT);
            let answer = call.client.receive_now(&mut [0; BYTES_MAX]);
            assert!(answer.is_ok(), "{sending:?}: {answer:?}");
        }
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
