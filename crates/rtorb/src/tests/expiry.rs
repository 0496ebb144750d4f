//! Deadlines that travel: what a server does with them, what nested calls inherit, and how a client gives up.

use super::clock::{BEGIN_NS, BEGUN_TICKS};
use super::scripted::{Act, cancelled};
use super::world::{Sending, World, call, client_strategies, object};
use crate::clock::{monotonic_ns, sleep_until, utc_origin};
use crate::codegen::Interface;
use crate::deadline::{self, DeadlineScope};
use crate::endpoint::Endpoint;
use crate::exception::{Phase, local};
use crate::poa::{DynamicServant, ServedBy};
use crate::reference::routes::object_key;
use crate::server::ServerCall;
use crate::skeleton::PassThrough as _;
use crate::transport::resolver::Resolver;
use crate::transport::tcp;
use crate::{
    CompletionStatus, CurrentCall, DeadlineForm, Deadlines, ExceptionKind, ObjectRef, Orb,
    SyncScope, SystemException,
};
use core::cell::RefCell;
use core::time::Duration;
use rtorb_os::sync::Mutex;
use rtorb_tests::fake::yes;
use rtorb_wire::Writer;
use rtorb_wire::giop::{
    self, Expiry, Header, ReplyHeader, ReplyStatus, RequestStart, Response, ServiceContext,
    SystemExceptionBody, UtcOrigin, UtcTime, Version, contexts,
};
use rtorb_wire::ior::Ior;
use std::rc::Rc;
use std::sync::Arc;

const MOMENT: Duration = Duration::from_millis(20);

/// The nanoseconds from the beginning of virtual time until an end time.
fn ns_from_begin(end: UtcTime) -> u64 {
    let origin = UtcOrigin {
        earliest_ticks: BEGUN_TICKS,
        latest_ticks: BEGUN_TICKS,
    };
    end.latest_ns_after(origin) - UtcTime::after(origin, BEGIN_NS).latest_ns_after(origin)
}

/// What a call of a [`Watch`] does: it waits for some time, and calls another object.
#[derive(Clone, Default)]
struct Watch {
    /// The remaining time that each call saw at its beginning.
    seen: Arc<Mutex<Vec<Option<Duration>>>>,
    waits: Duration,
    next: Option<ObjectRef>,
    outcome: Arc<Mutex<Option<Result<(), SystemException>>>>,
}

#[derive(Clone, Debug)]
struct WatchRef(ObjectRef);

impl Interface for WatchRef {
    type Object = ObjectRef;
    const REPOSITORY_ID: &'static str = "IDL:Watch:1.0";
    const ANCESTORS: &'static [&'static str] = &[];

    fn unchecked_narrow(object: ObjectRef) -> Self {
        Self(object)
    }

    fn as_object(&self) -> &ObjectRef {
        &self.0
    }
}

impl ServedBy<Watch> for WatchRef {
    fn find_operation(_: &[u8]) -> Option<usize> {
        Some(0)
    }

    fn dispatch(watch: &Watch, _: usize, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        let current = CurrentCall::get().expect("it is in a servant");
        watch.seen.lock().push(current.remaining());
        if watch.waits > Duration::ZERO {
            sleep_until(monotonic_ns() + watch.waits.as_nanos() as u64);
        }
        if let Some(next) = &watch.next {
            *watch.outcome.lock() = Some(look(next));
        }
        call.reply(|_| Ok(()))
    }
}

fn look(object: &ObjectRef) -> Result<(), SystemException> {
    object.invoke("look", |_| Ok(()), |_| Ok(()))
}

/// A server of one watch.
fn serve(world: &World, orb: Orb, watch: &Watch) -> String {
    let poa = orb.root_poa().expect("it listens");
    let reference: WatchRef = poa.activate(watch.clone()).expect("there is room");
    world.run(orb, Sending::ByEventLoop);
    reference.0.to_string()
}

/// The expiry of the requests that `calls` makes to a scripted server.
fn sent(form: DeadlineForm, calls: impl Fn(&ObjectRef)) -> Vec<Expiry> {
    let world = World::perfect();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let into = Rc::clone(&seen);
    let server = world.script(move |request| {
        into.borrow_mut().push(request.expiry);
        vec![Act::Send(yes(request.id))]
    });
    let object = object(&world, Orb::builder().deadline_form(form), &server);
    calls(&object);
    seen.take()
}

#[test]
fn a_request_tells_its_deadline_in_the_form_that_is_chosen_and_others_tell_none() {
    for (form, is_end) in [
        (DeadlineForm::Auto, true),
        (DeadlineForm::EndTime, true),
        (DeadlineForm::RemainingTime, false),
    ] {
        let told = sent(form, |object| {
            for object in [
                object.clone(),
                object.with_timeout(MOMENT),
                object.with_deadline(MOMENT),
                object.with_deadline(MOMENT).with_timeout(MOMENT),
            ] {
                assert_eq!(call(&object), Ok(true));
            }
        });
        let [none, timeout, deadline, replaced] = told[..] else {
            panic!("four calls");
        };
        assert!(none.is_never() && timeout.is_never() && replaced.is_never());
        assert_eq!(deadline.end.is_some(), is_end, "{form}");
        match deadline.end {
            // No virtual time has passed since.
            Some(end) => assert_eq!(ns_from_begin(end), MOMENT.as_nanos() as u64),
            None => assert_eq!(deadline.remaining_ns, Some(MOMENT.as_nanos() as u64)),
        }
    }
}

#[test]
fn the_timeout_of_several_calls_tells_no_server_and_their_deadline_does() {
    let told = sent(DeadlineForm::Auto, |object| {
        let own = object.with_timeout(MOMENT);
        let within = |object: &ObjectRef| {
            assert_eq!(object.within_timeout(|| call(&own)), Ok(true));
        };
        let by_deadline = object.with_deadline(MOMENT / 2);
        within(object);
        within(&object.with_timeout(MOMENT / 2));
        within(&by_deadline);
        crate::with_deadline(MOMENT / 2, || within(object));
        object.within_timeout(|| within(&by_deadline));
        own.within_timeout(|| crate::without_deadline(|| within(object)));
        crate::with_deadline(MOMENT / 2, || call(&own)).expect("it is served");
    });
    let half_ns = (MOMENT / 2).as_nanos() as u64;
    let told: Vec<_> = told.iter().map(|it| it.end.map(ns_from_begin)).collect();
    let half = Some(half_ns);
    assert_eq!(told, [None, None, half, half, half, None, half]);
}

#[test]
fn a_oneway_that_waits_for_nothing_tells_its_deadline_in_both_forms() {
    for form in [DeadlineForm::EndTime, DeadlineForm::RemainingTime] {
        let told = sent(form, |object| {
            assert_eq!(call(object), Ok(true), "it opens the connection");
            let oneway = object
                .with_deadline(MOMENT)
                .with_sync_scope(SyncScope::None);
            let sent = oneway.invoke_oneway("note", |_| Ok(()));
            sent.expect("the connection is open");
            assert_eq!(call(object), Ok(true));
        });
        let [_, oneway, _] = told[..] else {
            panic!("three requests");
        };
        let left_ns = oneway.remaining_ns.or(oneway.end.map(ns_from_begin));
        assert_eq!(left_ns, Some(MOMENT.as_nanos() as u64), "{form}");
    }
}

#[test]
fn a_oneway_that_waits_for_nothing_is_not_sent_after_its_deadline() {
    let told = sent(DeadlineForm::Auto, |object| {
        assert_eq!(call(object), Ok(true), "it opens the connection");
        let oneway = object.with_sync_scope(SyncScope::None);
        let note = || oneway.invoke_oneway("note", |_| Ok(()));
        let late = crate::with_deadline(Duration::ZERO, || {
            assert_eq!(oneway.flush(), Ok(true), "it sends no request");
            note()
        });
        let failed = late.expect_err("its deadline has passed");
        assert_eq!(failed.kind, ExceptionKind::Timeout);
        assert_eq!(failed.completed, CompletionStatus::No);
        note().expect("it has no deadline");
        assert_eq!(call(object), Ok(true));
    });
    assert_eq!(told.len(), 3, "two calls and the second oneway");
}

#[test]
fn a_servant_sees_what_is_left_of_the_deadline_and_none_without_one() {
    for form in [DeadlineForm::EndTime, DeadlineForm::RemainingTime] {
        let world = World::perfect();
        let watch = Watch::default();
        let server = serve(&world, Orb::builder().build().expect("an ORB"), &watch);
        let object = object(&world, Orb::builder().deadline_form(form), &server);
        look(&object).expect("it is served");
        look(&object.with_deadline(MOMENT)).expect("it is served");
        look(&object.with_timeout(MOMENT)).expect("it is served");
        let seen = watch.seen.lock();
        let [None, Some(left), None] = seen[..] else {
            panic!("{seen:?}");
        };
        // An end time counts with its inaccuracy, which is at least a tick of 100 ns.
        assert!(left.abs_diff(MOMENT) < Duration::from_micros(1), "{left:?}");
    }
    assert!(CurrentCall::get().is_none(), "this is no servant");
}

#[test]
fn a_nested_call_inherits_what_is_left_and_the_earliest_deadline_counts() {
    let world = World::perfect();
    let inner = Watch::default();
    let last = serve(&world, Orb::builder().build().expect("an ORB"), &inner);
    let middle = world.client(Orb::builder());
    for (own, expected) in [
        (None, Some(MOMENT * 3 / 4)),
        (Some(MOMENT / 2), Some(MOMENT / 2)),
        (Some(MOMENT * 9), Some(MOMENT * 3 / 4)),
    ] {
        let next = middle.string_to_object(&last).expect("a reference");
        let outer = Watch {
            waits: MOMENT / 4,
            next: Some(match own {
                None => next,
                Some(own) => next.with_deadline(own),
            }),
            ..Watch::default()
        };
        let first = serve(&world, Orb::builder().build().expect("an ORB"), &outer);
        let object = object(&world, Orb::builder(), &first).with_deadline(MOMENT);
        look(&object).expect("it is served");
        assert_eq!(*outer.outcome.lock(), Some(Ok(())));
        let left = inner.seen.lock().pop().expect("it was called");
        let error = left
            .unwrap_or_default()
            .abs_diff(expected.unwrap_or_default());
        assert!(error < Duration::from_micros(2), "{own:?}: {left:?}");
    }
}

#[test]
fn a_call_that_inherits_a_passed_deadline_is_not_sent() {
    let world = World::perfect();
    let inner = Watch::default();
    let last = serve(&world, Orb::builder().build().expect("an ORB"), &inner);
    let next = world.client(Orb::builder()).string_to_object(&last);
    let outer = Watch {
        waits: MOMENT * 2,
        next: Some(next.expect("a reference")),
        ..Watch::default()
    };
    let first = serve(&world, Orb::builder().build().expect("an ORB"), &outer);
    let object = object(&world, Orb::builder(), &first).with_deadline(MOMENT);
    let failed = look(&object).expect_err("the servant takes too long");
    assert_eq!(failed.kind, ExceptionKind::Timeout);
    let nested = outer.outcome.lock().clone().expect("it called");
    let nested = nested.expect_err("nothing is left");
    assert_eq!(
        (nested.kind, nested.completed),
        (ExceptionKind::Timeout, CompletionStatus::No)
    );
    assert!(says_deadline(&nested), "{nested}");
    assert_eq!(nested.cause.expect("a cause").phase, Phase::Send);
    assert_eq!(inner.seen.lock().len(), 0);
}

/// A proxy that waits before it passes a request on.
struct SlowProxy {
    target: ObjectRef,
    waits: Duration,
    /// False if the deadline of the request does not end the call to the target.
    inherits: bool,
}

impl DynamicServant for SlowProxy {
    fn repository_id(&self) -> &str {
        self.target.type_id()
    }

    fn is_a(&self, _: &str) -> bool {
        true
    }

    fn is_proxy(&self) -> bool {
        true
    }

    fn dispatch(&self, _: &str, call: &mut ServerCall<'_>) -> Result<(), SystemException> {
        let request = call.passed()?;
        sleep_until(monotonic_ns() + self.waits.as_nanos() as u64);
        let pass = || self.target.pass(&request);
        let reply = if self.inherits {
            pass()
        } else {
            crate::without_deadline(pass)
        };
        call.pass_reply(&reply?.expect("the client expects a reply"))
    }
}

/// The expiry of what a server gets of a call with the deadline [`MOMENT`], which goes through a proxy that waits.
fn told_through_proxy(form: DeadlineForm, waits: Duration, inherits: bool) -> Vec<Expiry> {
    let world = World::perfect();
    let told = Rc::new(RefCell::new(Vec::new()));
    let into = Rc::clone(&told);
    let server = world.script(move |request| {
        into.borrow_mut().push(request.expiry);
        vec![Act::Send(yes(request.id))]
    });
    let proxy = SlowProxy {
        target: object(&world, Orb::builder(), &server),
        waits,
        inherits,
    };
    let orb = Orb::builder().build().expect("an ORB");
    let poa = orb.root_poa().expect("it listens");
    let proxy = poa.activate_dynamic(proxy).expect("there is room");
    world.run(orb, Sending::ByEventLoop);
    let object = object(
        &world,
        Orb::builder().deadline_form(form),
        &proxy.to_string(),
    );
    let outcome = call(&object.with_deadline(MOMENT));
    assert!(outcome == Ok(true) || waits > MOMENT, "{outcome:?}");
    told.take()
}

#[test]
fn a_proxy_takes_the_time_that_it_needs_off_the_remaining_time_and_keeps_an_end_time() {
    for waits in [Duration::ZERO, MOMENT / 4, MOMENT * 3 / 4] {
        let told = told_through_proxy(DeadlineForm::RemainingTime, waits, true);
        let [expiry] = told[..] else {
            panic!("one call: {told:?}");
        };
        assert_eq!(expiry.end, None);
        let left = Duration::from_nanos(expiry.remaining_ns.expect("it has a deadline"));
        let error = left.abs_diff(MOMENT - waits);
        assert!(error < Duration::from_micros(1), "{waits:?}: {left:?}");

        let told = told_through_proxy(DeadlineForm::EndTime, waits, true);
        let [expiry] = told[..] else {
            panic!("one call: {told:?}");
        };
        assert_eq!(expiry.remaining_ns, None);
        let end = expiry.end.map(ns_from_begin);
        assert_eq!(end, Some(MOMENT.as_nanos() as u64), "{waits:?}");
    }
}

#[test]
fn a_proxy_that_needs_too_long_passes_nothing_on_or_says_that_nothing_is_left() {
    let told = |inherits| told_through_proxy(DeadlineForm::RemainingTime, MOMENT * 2, inherits);
    assert_eq!(told(true), []);
    let left: Vec<_> = told(false).iter().map(|it| it.remaining_ns).collect();
    assert_eq!(left, [Some(0)]);
}

#[test]
fn a_served_request_arrived_its_remaining_time_before_the_deadline_that_its_thread_inherits() {
    let _world = World::perfect();
    let expiry = Expiry {
        end: None,
        remaining_ns: Some(500),
    };
    let now_ns = monotonic_ns();
    assert_eq!(deadline::arrival_of_served(Expiry::NEVER), None);
    assert_eq!(deadline::arrival_of_served(expiry), Some(now_ns));
    let _inherited = DeadlineScope::enter(now_ns + 300);
    assert_eq!(deadline::arrival_of_served(Expiry::NEVER), None);
    assert_eq!(deadline::arrival_of_served(expiry), Some(now_ns - 200));
}

#[test]
fn a_request_that_arrives_late_is_refused_before_a_servant_is_called_or_only_counted() {
    for (deadlines, served) in [(Deadlines::Enforce, 0), (Deadlines::Count, 1)] {
        let world = World::perfect();
        let watch = Watch::default();
        let orb = Orb::builder().deadlines(deadlines).build().expect("an ORB");
        let server = serve(&world, orb.clone(), &watch);
        let late = request(&world, &orb, &server, monotonic_ns() - 1_000);
        assert_eq!(watch.seen.lock().len(), served, "{deadlines}");
        assert_eq!(orb.requests_expired(), 1);
        match late {
            Ok(()) => assert_eq!(deadlines, Deadlines::Count),
            Err(refused) => {
                assert_eq!(deadlines, Deadlines::Enforce);
                assert_eq!(
                    (refused.kind, refused.minor, refused.completed),
                    (
                        local::EXPIRED.kind,
                        local::EXPIRED.minor,
                        CompletionStatus::No
                    )
                );
            }
        }
    }
}

/// Sends a request that expires at `at_ns`, by hand, and returns its reply.
fn request(world: &World, orb: &Orb, reference: &str, at_ns: u64) -> Result<(), SystemException> {
    let ior: Ior = reference.parse().expect("an IOR");
    let key = object_key(&ior).expect("a profile");
    let data = UtcTime::after(utc_origin(monotonic_ns()), at_ns).end_times();
    let id = contexts::INVOCATION_POLICIES;
    let start = RequestStart {
        request_id: 4,
        response: Response::FromTarget,
        object_key: &key,
        operation: "look",
        contexts: &[ServiceContext { id, data: &data }],
    };
    let mut w = Writer::new(Vec::new(), 1000);
    giop::begin_request(&mut w, Version::V1_2, &start).expect("it fits");
    giop::end_message(&mut w).expect("it fits");
    let server = orb.core.adapters.server.server().expect("it listens");
    let Endpoint::Tcp { host, port } = server.listeners[0].bound.clone() else {
        panic!("the default endpoint is TCP");
    };
    let client = tcp::connect(&Resolver::default(), &host, port, u64::MAX);
    let client = client.expect("it listens");
    let sent = client.send_message_now(&w.to_bytes(), &[]);
    sent.expect("there is room");
    world.pass(Duration::from_millis(1));
    let mut reply = [0; 1000];
    let count = client.receive_now(&mut reply).expect("a reply");
    let header = Header::parse(&reply[..count], 1000)
        .expect("GIOP")
        .expect("a header");
    let mut r = header.reader(&reply[..count]);
    match ReplyHeader::decode(&mut r).expect("a reply").status {
        ReplyStatus::NoException => Ok(()),
        _ => Err(SystemExceptionBody::decode(&mut r)
            .expect("an exception")
            .into()),
    }
}

//= GIOP 1.2 §15.4.4
//% test
#[test]
fn a_client_that_gives_up_tells_the_server() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let silent = world.script(|_| vec![]);
        let object = object(&world, builder(), &silent);
        cancelled();
        for (bounded, is_deadline) in [
            (object.with_timeout(MOMENT), false),
            (object.with_deadline(MOMENT), true),
        ] {
            let begun_ns = monotonic_ns();
            let failed = call(&bounded).expect_err("nobody replies");
            assert_eq!(failed.kind, ExceptionKind::Timeout, "{strategy}");
            assert_eq!(says_deadline(&failed), is_deadline, "{failed}");
            assert_eq!(failed.cause.expect("a cause").phase, Phase::AwaitReply);
            let took = Duration::from_nanos(monotonic_ns() - begun_ns);
            assert!(took < MOMENT * 2, "{strategy}: {took:?}");
            world.pass(MOMENT);
            assert_eq!(cancelled().len(), 1, "{strategy}");
        }
    }
}

#[test]
fn a_timeout_says_whether_the_deadline_passed_or_the_timeout_before_it() {
    let world = World::perfect();
    let silent = world.script(|_| vec![]);
    let object = object(&world, Orb::builder(), &silent);
    for (timeout, is_deadline) in [(MOMENT / 2, false), (MOMENT * 2, true)] {
        let inherited = DeadlineScope::enter(monotonic_ns() + MOMENT.as_nanos() as u64);
        let failed = call(&object.with_timeout(timeout)).expect_err("nobody replies");
        drop(inherited);
        assert_eq!(failed.kind, ExceptionKind::Timeout);
        assert_eq!(says_deadline(&failed), is_deadline, "{failed}");
    }
}

fn says_deadline(failed: &SystemException) -> bool {
    failed.detail() == Some("the deadline of the call passed")
}
