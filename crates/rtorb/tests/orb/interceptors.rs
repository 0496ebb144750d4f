//! Interceptors: which of them sees what, in which order, and what becomes of a request that one of them changes.

use rtorb::cdr::Reader;
use rtorb::exception::{CompletionStatus, Phase};
use rtorb::interceptors::{
    ClientRequest, ClientRequestInterceptor, Intervention, IorInfo, IorInterceptor, OtherEnding,
    RequestException, RequestPeer, ServerRequest, ServerRequestInterceptor,
};
use rtorb::ior::{IiopProfile, Ior};
use rtorb::poa::Lifespan;
use rtorb::{
    ConnectionStrategy, Deferring, DispatchStrategy, ExceptionKind, ObjectRef, Orb, OrbBuilder,
    PoaPolicies, Responder, SyncScope, SystemException, WaitStrategy,
};

use rtorb_tests::crane::{
    MachineDeferredServant, Overload, Winch, WinchDeferredServant, WinchLiftError,
};
use rtorb_tests::loopback::NOBODYS_PORT;
use rtorb_tests::ours::{Ours, Wide, check_cubit, check_desk, check_nested};
use rtorb_tests::running::until;
use rtorb_tests::scratch::Scratch;
use rtorb_tests::servants::Counter;
use rtorb_tests::stubs::Cubit;
use rtorb_tests::stubs::exchange::{Desk, DeskRefuseError};
use std::cell::Cell;
use std::fmt::Display;
use std::net::TcpListener;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Longer than any test needs.
const PATIENCE: Duration = Duration::from_secs(30);

/// A service context of these tests.
const TRACE: u32 = 0x7472_6163;
/// A tag of a component of these tests.
const TAG: u32 = 0x7461_6700;

const REFUSED: &str = "IDL:Exchange/Refused:1.0";
const OVERLOAD: &str = "IDL:Crane/Overload:1.0";

/// What interceptors have seen.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: String) {
        self.0.lock().expect("no panic").push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }

    fn len(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }

    fn await_lines(&self, count: usize) {
        until("the interceptors have seen it", || {
            (self.len() >= count).then_some(())
        });
    }
}

/// Writes down what it sees, and intervenes at points as a test says.
struct Seer {
    name: &'static str,
    log: Log,
    act: Box<Act>,
}

/// Returns what an interceptor does at a point.
type Act = dyn Fn(&str) -> Option<Intervention> + Send + Sync;

impl Seer {
    fn new(name: &'static str, log: &Log) -> Self {
        Self::acting(name, log, |_| None)
    }

    fn acting(
        name: &'static str,
        log: &Log,
        act: impl Fn(&str) -> Option<Intervention> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            log: log.clone(),
            act: Box::new(act),
        }
    }

    /// Raises NO_PERMISSION at a point.
    fn raising(name: &'static str, log: &Log, at: &'static str) -> Self {
        Self::acting(name, log, move |point| {
            (point == at).then(|| Intervention::Raise(no_permission()))
        })
    }

    /// Forwards once, at a point.
    fn forwarding(name: &'static str, log: &Log, at: &'static str, to: &ObjectRef) -> Self {
        let (is_done, ior) = (AtomicBool::new(false), to.ior().clone());
        Self::acting(name, log, move |point| {
            let is_now = point == at && !is_done.swap(true, Ordering::SeqCst);
            is_now.then(|| Intervention::Forward(ior.clone()))
        })
    }

    fn see(&self, point: &str, operation: &str, detail: impl Display) -> Result<(), Intervention> {
        let line = format!("{} {point} {operation} {detail}", self.name);
        self.log.add(line.trim_end().to_owned());
        (self.act)(point).map_or(Ok(()), Err)
    }

    fn see_results(&self, point: &str, operation: &str) -> Result<(), SystemException> {
        match self.see(point, operation, "") {
            Err(Intervention::Raise(exception)) => Err(exception),
            _ => Ok(()),
        }
    }
}

fn text(exception: RequestException<'_>) -> String {
    match exception {
        RequestException::User(id) => id.to_owned(),
        RequestException::System(exception) => exception.kind.to_string(),
    }
}

fn other(ending: &OtherEnding) -> &'static str {
    match ending {
        OtherEnding::NoReply => "no reply",
        OtherEnding::Forward(_) => "forward",
        OtherEnding::Abandoned => "abandoned",
        _ => "unknown",
    }
}

impl ClientRequestInterceptor for Seer {
    fn send_request(&self, request: &mut ClientRequest<'_>) -> Result<(), Intervention> {
        self.see("send_request", request.operation(), "")
    }

    fn receive_reply(&self, request: &mut ClientRequest<'_>) -> Result<(), SystemException> {
        self.see_results("receive_reply", request.operation())
    }

    fn receive_exception(
        &self,
        request: &mut ClientRequest<'_>,
        exception: RequestException<'_>,
    ) -> Result<(), Intervention> {
        self.see("receive_exception", request.operation(), text(exception))
    }

    fn receive_other(
        &self,
        request: &mut ClientRequest<'_>,
        ending: &OtherEnding,
    ) -> Result<(), Intervention> {
        self.see("receive_other", request.operation(), other(ending))
    }
}

impl ServerRequestInterceptor for Seer {
    fn receive_request(&self, request: &mut ServerRequest<'_>) -> Result<(), Intervention> {
        self.see("receive_request", request.operation(), "")
    }

    fn send_reply(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        self.see_results("send_reply", request.operation())
    }

    fn send_exception(
        &self,
        request: &mut ServerRequest<'_>,
        exception: RequestException<'_>,
    ) -> Result<(), Intervention> {
        self.see("send_exception", request.operation(), text(exception))
    }

    fn send_other(
        &self,
        request: &mut ServerRequest<'_>,
        ending: &OtherEnding,
    ) -> Result<(), Intervention> {
        self.see("send_other", request.operation(), other(ending))
    }
}

/// Numbers its requests in a service context, which a [`Mirror`] sends back, and checks that each reply has its number.
#[derive(Default)]
struct Tracer {
    last: Mutex<u64>,
    log: Log,
}

impl Tracer {
    fn check(&self, request: &ClientRequest<'_>) {
        let number = request.note().to_be_bytes();
        assert_eq!(request.context(TRACE), Some(&number[..]));
        if request.reply_context(TRACE) != Some(&number) {
            self.log
                .add(format!("{} is not traced", request.operation()));
        }
    }
}

impl ClientRequestInterceptor for Tracer {
    fn send_request(&self, request: &mut ClientRequest<'_>) -> Result<(), Intervention> {
        let mut last = self.last.lock().expect("no panic");
        *last += 1;
        request.set_note(*last);
        Ok(request.add_context(TRACE, &last.to_be_bytes())?)
    }

    fn receive_reply(&self, request: &mut ClientRequest<'_>) -> Result<(), SystemException> {
        self.check(request);
        Ok(())
    }

    fn receive_exception(
        &self,
        request: &mut ClientRequest<'_>,
        _: RequestException<'_>,
    ) -> Result<(), Intervention> {
        self.check(request);
        Ok(())
    }
}

/// Sends the context [`TRACE`] back.
struct Mirror;

impl Mirror {
    fn reflect(request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        match request.context(TRACE).map(<[u8]>::to_vec) {
            Some(number) => request.add_reply_context(TRACE, &number),
            None => Ok(()),
        }
    }
}

impl ServerRequestInterceptor for Mirror {
    fn send_reply(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        Self::reflect(request)
    }

    fn send_exception(
        &self,
        request: &mut ServerRequest<'_>,
        _: RequestException<'_>,
    ) -> Result<(), Intervention> {
        Ok(Self::reflect(request)?)
    }
}

fn no_permission() -> SystemException {
    ExceptionKind::NoPermission.into()
}

fn build(builder: OrbBuilder) -> Orb {
    builder.build().expect("the ORB can be built")
}

/// The object in another ORB.
fn seen_by(orb: &Orb, object: &ObjectRef) -> ObjectRef {
    orb.string_to_object(&object.to_string())
        .expect("a reference")
}

fn desk_by(orb: &Orb, ours: &Ours) -> Desk {
    Desk::unchecked_narrow(seen_by(orb, ours.desk.as_object()))
}

fn cubit_by(orb: &Orb, ours: &Ours) -> Cubit {
    Cubit::unchecked_narrow(seen_by(orb, ours.cubit.as_object()))
}

#[test]
fn contexts_go_both_ways_with_every_operation_whatever_serves_it() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let server = Orb::builder().dispatch(dispatch).pool_threads(2);
        let ours = Ours::serve_as(server.server_interceptor(Mirror));
        let log = Log::default();
        let client = build(Orb::builder().client_interceptor(Tracer {
            log: log.clone(),
            ..Tracer::default()
        }));
        check_cubit(&cubit_by(&client, &ours), &[0, 1, 4096, 100_000]);
        check_desk(&desk_by(&client, &ours), Wide::Sent);
        assert_eq!(log.take(), [""; 0], "{name}");
        // From a client that other clients overtake, and that has no interceptors.
        check_cubit(&cubit_by(&build(Orb::builder()), &ours), &[1]);
    }
}

#[test]
fn contexts_go_both_ways_over_every_connection() {
    let scratch = Scratch::new();
    let endpoints = [
        "iiop://127.0.0.1:0".to_owned(),
        format!("uiop://{}", scratch.join("socket").display()),
        format!("shmiop://{}", scratch.join("memory").display()),
    ];
    let wait_strategies = [
        WaitStrategy::Read,
        WaitStrategy::Reactor,
        WaitStrategy::LeaderFollowers,
        WaitStrategy::ConnectionThread,
    ];
    for endpoint in endpoints {
        let server = Orb::builder().listen(&endpoint).fragment_bytes(256);
        let ours = Ours::serve_as(server.server_interceptor(Mirror));
        for wait in wait_strategies {
            for minor in 0..=2 {
                let log = Log::default();
                let client = build(
                    Orb::builder()
                        .connection(ConnectionStrategy::Multiplexed { wait })
                        .max_giop_version(rtorb::giop::Version { major: 1, minor })
                        .client_interceptor(Tracer {
                            log: log.clone(),
                            ..Tracer::default()
                        }),
                );
                check_cubit(&cubit_by(&client, &ours), &[1021]);
                assert_eq!(log.take(), [""; 0], "{endpoint}, {wait:?}, GIOP 1.{minor}");
            }
        }
    }
}

/// A server and a client with three interceptors each, `a`, `b` and `c`, of which `b` does as a test says.
struct Flow {
    ours: Ours,
    client: Orb,
    sent: Log,
    served: Log,
}

impl Flow {
    fn of(
        client: impl FnOnce(&Log) -> Seer,
        server: impl FnOnce(&Log) -> Seer,
        builder: OrbBuilder,
    ) -> Self {
        let (sent, served) = (Log::default(), Log::default());
        let ours = Ours::serve_as(
            Orb::builder()
                .server_interceptor(Seer::new("a", &served))
                .server_interceptor(server(&served))
                .server_interceptor(Seer::new("c", &served)),
        );
        let client = build(
            builder
                .client_interceptor(Seer::new("a", &sent))
                .client_interceptor(client(&sent))
                .client_interceptor(Seer::new("c", &sent)),
        );
        Self {
            ours,
            client,
            sent,
            served,
        }
    }

    fn with_client(client: impl FnOnce(&Log) -> Seer) -> Self {
        Self::of(client, |log| Seer::new("b", log), Orb::builder())
    }

    fn with_server(server: impl FnOnce(&Log) -> Seer) -> Self {
        Self::of(|log| Seer::new("b", log), server, Orb::builder())
    }

    fn desk(&self) -> Desk {
        desk_by(&self.client, &self.ours)
    }

    fn level(&self) -> Result<i32, ExceptionKind> {
        self.desk().level().map_err(|exception| exception.kind)
    }
}

/// The lines of a log without the operation `_get_level`.
fn of_level(log: &Log) -> Vec<String> {
    let lines = log.take().into_iter();
    lines.map(|line| line.replace(" _get_level", "")).collect()
}

//= CORBA 3 §The Flow Stack Visual Model
//% test
#[test]
fn interceptors_see_the_beginning_in_order_and_the_end_in_reverse() {
    let flow = Flow::with_client(|log| Seer::new("b", log));
    assert_eq!(flow.level(), Ok(0));
    assert_eq!(
        of_level(&flow.sent),
        [
            "a send_request",
            "b send_request",
            "c send_request",
            "c receive_reply",
            "b receive_reply",
            "a receive_reply"
        ]
    );
    assert_eq!(
        of_level(&flow.served),
        [
            "a receive_request",
            "b receive_request",
            "c receive_request",
            "c send_reply",
            "b send_reply",
            "a send_reply"
        ]
    );
}

#[test]
fn a_client_interceptor_that_raises_keeps_the_request_from_the_server() {
    let flow = Flow::with_client(|log| Seer::raising("b", log, "send_request"));
    assert_eq!(flow.level(), Err(ExceptionKind::NoPermission));
    assert_eq!(
        of_level(&flow.sent),
        [
            "a send_request",
            "b send_request",
            "a receive_exception NO_PERMISSION"
        ]
    );
    assert_eq!(flow.served.len(), 0);
}

#[test]
fn a_server_interceptor_that_raises_keeps_the_request_from_the_servant() {
    let flow = Flow::with_server(|log| Seer::raising("b", log, "receive_request"));
    let refused = flow.desk().set_level(7).expect_err("it is refused");
    assert_eq!(refused.kind, ExceptionKind::NoPermission);
    assert_eq!(
        flow.served.take(),
        [
            "a receive_request _set_level",
            "b receive_request _set_level",
            "a send_exception _set_level NO_PERMISSION"
        ]
    );
    // The client's see it as any exception.
    let seen = flow.sent.take();
    assert_eq!(
        seen[3..],
        [
            "c receive_exception _set_level NO_PERMISSION",
            "b receive_exception _set_level NO_PERMISSION",
            "a receive_exception _set_level NO_PERMISSION"
        ]
    );
    assert_eq!(flow.ours.desk.level(), Err(no_permission()));
}

#[test]
fn what_an_interceptor_raises_at_the_end_replaces_the_ending_for_those_that_follow() {
    let flow = Flow::with_client(|log| Seer::raising("b", log, "receive_reply"));
    assert_eq!(flow.level(), Err(ExceptionKind::NoPermission));
    assert_eq!(
        of_level(&flow.sent)[3..],
        [
            "c receive_reply",
            "b receive_reply",
            "a receive_exception NO_PERMISSION"
        ]
    );
    let flow = Flow::with_server(|log| Seer::raising("b", log, "send_reply"));
    assert_eq!(flow.level(), Err(ExceptionKind::NoPermission));
    assert_eq!(
        of_level(&flow.served)[3..],
        [
            "c send_reply",
            "b send_reply",
            "a send_exception NO_PERMISSION"
        ]
    );
}

#[test]
fn a_user_exception_is_seen_by_its_id_and_can_be_replaced() {
    let flow = Flow::with_client(|log| Seer::new("b", log));
    let refused = flow.desk().refuse(3, "no");
    assert!(matches!(refused, Err(DeskRefuseError::Refused(_))));
    let seen = format!("b receive_exception refuse {REFUSED}");
    assert!(flow.sent.take().contains(&seen));
    let seen = format!("b send_exception refuse {REFUSED}");
    assert!(flow.served.take().contains(&seen));
    for at in ["receive_exception", "send_exception"] {
        let flow = Flow::of(
            |log| Seer::raising("b", log, at),
            |log| Seer::raising("b", log, at),
            Orb::builder(),
        );
        match flow.desk().refuse(3, "no") {
            Err(DeskRefuseError::System(e)) => assert_eq!(e.kind, ExceptionKind::NoPermission),
            other => panic!("{at}: {other:?}"),
        }
    }
}

#[test]
fn a_user_exception_cannot_become_a_forward() {
    let elsewhere = Ours::serve();
    let flow = Flow::with_client(|log| {
        Seer::forwarding("b", log, "receive_exception", elsewhere.desk.as_object())
    });
    match flow.desk().refuse(3, "no") {
        Err(DeskRefuseError::System(e)) => {
            assert_eq!((e.kind, e.minor), (ExceptionKind::BadInvOrder, 0x4f4d_000e));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_interceptor_forwards_a_request_and_all_see_it_again() {
    let elsewhere = Ours::serve();
    elsewhere.desk.set_level(5).expect("it is served");
    let to = elsewhere.desk.as_object();
    let flow = Flow::with_client(|log| Seer::forwarding("b", log, "send_request", to));
    let desk = flow.desk();
    assert_eq!(desk.level(), Ok(5));
    assert_eq!(
        of_level(&flow.sent),
        [
            "a send_request",
            "b send_request",
            "a receive_other forward",
            "a send_request",
            "b send_request",
            "c send_request",
            "c receive_reply",
            "b receive_reply",
            "a receive_reply"
        ]
    );
    assert_eq!(desk.level(), Ok(5), "later calls go there too");
    assert_eq!(flow.served.len(), 0);
    for at in ["receive_request", "send_exception"] {
        let flow = Flow::with_server(|log| Seer::forwarding("b", log, at, to));
        let gone = Desk::unchecked_narrow(seen_by(&flow.client, &nobody(&flow.ours)));
        let desk = if at == "send_exception" {
            gone
        } else {
            flow.desk()
        };
        assert_eq!(desk.level(), Ok(5), "{at}");
        let seen = of_level(&flow.sent);
        let forwards = seen
            .iter()
            .filter(|it| it.ends_with("receive_other forward"));
        assert_eq!(forwards.count(), 3, "{at}: {seen:?}");
        let seen = of_level(&flow.served);
        assert_eq!(
            seen.last().map(String::as_str),
            Some("a send_other forward")
        );
    }
}

/// Asks a desk for its level, by a started call or by one that waits.
fn level_of(desk: &ObjectRef, is_started: bool) -> Result<i32, SystemException> {
    let (operation, read) = ("_get_level", |r: &mut Reader<'_>| r.primitive::<i32>());
    if is_started {
        desk.start(operation, |_| Ok(()), read).wait()
    } else {
        desk.invoke(operation, |_| Ok(()), read)
    }
}

/// A reference to an object that is not there.
fn nobody(ours: &Ours) -> ObjectRef {
    let poa = ours.poa.create_poa(
        "Empty",
        PoaPolicies::default().with_lifespan(Lifespan::Persistent),
    );
    let poa = poa.expect("a new name");
    let nobody: Desk = poa.create_reference_with_id("nobody").expect("persistent");
    nobody.as_object().clone()
}

#[test]
fn an_interceptor_sends_a_request_that_failed_to_another_server() {
    let elsewhere = Ours::serve();
    let to = elsewhere.desk.as_object();
    let flow = Flow::with_client(|log| Seer::forwarding("b", log, "receive_exception", to));
    let gone = flow
        .client
        .string_to_object(&format!("corbaloc:iiop:127.0.0.1:{NOBODYS_PORT}/Desk"));
    let desk = Desk::unchecked_narrow(gone.expect("a reference"));
    assert_eq!(desk.level(), Ok(0));
    let seen = of_level(&flow.sent);
    assert_eq!(
        seen[3..6],
        [
            "c receive_exception TRANSIENT",
            "b receive_exception TRANSIENT",
            "a receive_other forward"
        ]
    );
}

#[test]
fn an_interceptor_that_always_forwards_ends_the_call() {
    let ours = Ours::serve();
    let nobody = nobody(&ours);
    for (at, object) in [
        ("send_request", ours.desk.as_object()),
        ("receive_exception", &nobody),
    ] {
        let (ior, log) = (object.ior().clone(), Log::default());
        let circle = Seer::acting("circle", &log, move |point| {
            (point == at).then(|| Intervention::Forward(ior.clone()))
        });
        let client = build(shared(WaitStrategy::LeaderFollowers).client_interceptor(circle));
        let object = seen_by(&client, object);
        let started = object.start("_get_level", |_| Ok(()), |r| r.primitive::<i32>());
        let called = object.invoke("_get_level", |_| Ok(()), |r| r.primitive::<i32>());
        for ended in [started.wait(), called] {
            let exception = ended.expect_err("it goes on and on");
            assert_eq!(exception.kind, ExceptionKind::Transient, "{at}");
            let phase = exception.cause.as_ref().map(|cause| cause.phase);
            assert_eq!(phase, Some(Phase::Forward), "{at}: {exception}");
        }
    }
}

#[test]
fn oneways_end_without_a_reply() {
    let flow = Flow::with_client(|log| Seer::new("b", log));
    let desk = flow.desk();
    desk.note(1).expect("it is sent");
    assert_eq!(
        flow.sent.take()[3..],
        [
            "c receive_other note no reply",
            "b receive_other note no reply",
            "a receive_other note no reply"
        ]
    );
    flow.served.await_lines(6);
    assert_eq!(
        flow.served.take()[3..],
        [
            "c send_other note no reply",
            "b send_other note no reply",
            "a send_other note no reply"
        ]
    );
    assert_eq!(desk.level(), Ok(0));
    flow.sent.take();
    let object = desk.as_object().with_sync_scope(SyncScope::None);
    let at_once = Desk::unchecked_narrow(object);
    at_once.note(2).expect("the connection is open");
    assert_eq!(
        flow.sent.take().last().map(String::as_str),
        Some("a receive_other note no reply")
    );
    until("both are carried out", || {
        (desk.noted() == Ok(2)).then_some(())
    });
    let refusing = Flow::with_server(|log| Seer::raising("b", log, "receive_request"));
    refusing.desk().note(1).expect("it is sent");
    refusing.served.await_lines(3);
    assert_eq!(
        refusing.served.take().last().map(String::as_str),
        Some("a send_exception note NO_PERMISSION")
    );
}

#[test]
fn implicit_operations_are_seen_and_objects_that_do_not_exist() {
    let flow = Flow::with_client(|log| Seer::new("b", log));
    let object = flow.desk().as_object().clone();
    assert_eq!(object.is_a("IDL:Exchange/Desk:1.0"), Ok(true));
    assert_eq!(object.non_existent(), Ok(false));
    let seen = flow.served.take();
    assert_eq!(
        (&*seen[0], &*seen[11]),
        ("a receive_request _is_a", "a send_reply _non_existent")
    );
    let gone = seen_by(&flow.client, &nobody(&flow.ours));
    let unknown = Desk::unchecked_narrow(gone).level();
    assert_eq!(
        unknown.map_err(|e| e.kind),
        Err(ExceptionKind::ObjectNotExist)
    );
    assert_eq!(
        of_level(&flow.served)[3..],
        [
            "c send_exception OBJECT_NOT_EXIST",
            "b send_exception OBJECT_NOT_EXIST",
            "a send_exception OBJECT_NOT_EXIST"
        ]
    );
}

#[test]
fn a_server_interceptor_that_panics_ends_its_request_alone() {
    for at in ["receive_request", "send_reply"] {
        for (name, dispatch) in DispatchStrategy::ALL {
            let log = Log::default();
            let panicking = AtomicBool::new(true);
            let panics = Seer::acting("p", &log, move |point| {
                let panics = point == at && panicking.swap(false, Ordering::SeqCst);
                assert!(!panics, "a panic that the test wants");
                None
            });
            let server = Orb::builder().dispatch(dispatch).pool_threads(1);
            let ours = Ours::serve_as(
                server
                    .server_interceptor(Seer::new("a", &log))
                    .server_interceptor(panics),
            );
            let client = build(Orb::builder());
            let desk = desk_by(&client, &ours);
            let unknown = desk.level().map_err(|exception| exception.kind);
            assert_eq!(unknown, Err(ExceptionKind::Unknown), "{name}, {at}");
            let seen = of_level(&log);
            let last = seen.last().map(String::as_str);
            assert_eq!(last, Some("a send_exception UNKNOWN"), "{name}, {at}");
            assert_eq!(desk.level(), Ok(0), "{name}, {at}");
        }
    }
}

#[test]
fn collocated_calls_are_seen_on_both_sides() {
    let (sent, served) = (Log::default(), Log::default());
    let ours = Ours::serve_collocated(
        Orb::builder()
            .client_interceptor(Seer::new("a", &sent))
            .client_interceptor(Tracer {
                log: sent.clone(),
                ..Tracer::default()
            })
            .server_interceptor(Seer::new("a", &served))
            .server_interceptor(Mirror)
            .server_interceptor(Seer::acting("peer", &served, |_| None)),
    );
    assert_eq!(ours.desk.level(), Ok(0));
    assert!(ours.desk.refuse(3, "no").is_err());
    assert_eq!(
        sent.take(),
        [
            "a send_request _get_level".to_owned(),
            "a receive_reply _get_level".to_owned(),
            "a send_request refuse".to_owned(),
            format!("a receive_exception refuse {REFUSED}"),
        ]
    );
    let seen = served.take();
    assert_eq!(seen.len(), 8, "{seen:?}");
    check_desk(&ours.desk, Wide::Sent);
    check_cubit(&ours.cubit, &[0, 100]);
    assert!(!sent.take().iter().any(|line| line.ends_with("not traced")));
    // With interceptors of the server alone.
    let log = Log::default();
    let ours = Ours::serve_collocated(Orb::builder().server_interceptor(Seer::raising(
        "r",
        &log,
        "receive_request",
    )));
    let refused = ours.desk.level().map_err(|exception| exception.kind);
    assert_eq!(refused, Err(ExceptionKind::NoPermission));
}

/// A place where requests arrive and are not answered, for as long as it is kept.
struct Silence {
    /// Ends the place when it is dropped.
    _kept: Sender<()>,
    object: ObjectRef,
}

impl Silence {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let place = listener.local_addr().expect("it is bound");
        let (kept, end) = channel();
        // A call that would wait for ever ends with COMM_FAILURE after a while.
        thread::spawn(move || {
            let _ = end.recv_timeout(PATIENCE);
            drop(listener);
        });
        let object =
            build(Orb::builder()).string_to_object(&format!("corbaloc:iiop:1.2@{place}/Desk"));
        Self {
            _kept: kept,
            object: object.expect("a reference"),
        }
    }
}

#[test]
fn a_collocated_call_that_is_forwarded_keeps_its_deadline() {
    let late = |desk: &Desk| {
        let level = rtorb::with_deadline(Duration::from_millis(20), || desk.level());
        level.map_err(|exception| exception.kind) == Err(ExceptionKind::Timeout)
    };
    let (silence, log) = (Silence::new(), Log::default());
    let ours = Ours::serve_collocated(Orb::builder().client_interceptor(Seer::new("a", &log)));
    let poa = ours.poa.create_poa(
        "Elsewhere",
        PoaPolicies::default().with_lifespan(Lifespan::Persistent),
    );
    let poa = poa.expect("a new name");
    let to = silence.object.ior().clone();
    poa.set_servant_locator::<Desk, Counter, _>(move |_| Err(Intervention::Forward(to.clone())))
        .expect("it has none");
    let desk: Desk = poa.create_reference_with_id("desk").expect("persistent");
    // The second call knows from the first one where the object is.
    assert!(late(&desk) && late(&desk), "forwarded by its locator");
    let seer = Seer::forwarding("f", &log, "send_request", &silence.object);
    let ours = Ours::serve_collocated(Orb::builder().client_interceptor(seer));
    assert!(
        late(&ours.desk) && late(&ours.desk),
        "forwarded by an interceptor"
    );
}

#[test]
fn a_started_call_that_is_forwarded_after_its_deadline_is_not_sent() {
    let (served, log) = (Log::default(), Log::default());
    let server = Orb::builder().server_interceptor(Seer::new("s", &served));
    let elsewhere = Ours::serve_as(server);
    let to = elsewhere.desk.as_object().ior().clone();
    let deadline = Duration::from_millis(20);
    let is_done = AtomicBool::new(false);
    let seer = Seer::acting("f", &log, move |point| {
        let is_now = point == "receive_exception" && !is_done.swap(true, Ordering::SeqCst);
        is_now.then(|| {
            thread::sleep(deadline);
            Intervention::Forward(to.clone())
        })
    });
    let client = build(shared(WaitStrategy::LeaderFollowers).client_interceptor(seer));
    // The connection is open: nothing else takes the time to look at the deadline.
    desk_by(&client, &elsewhere).level().expect("it is served");
    served.take();
    let object =
        client.string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{NOBODYS_PORT}/Desk"));
    let object = object.expect("a reference").with_timeout(deadline);
    let started = object.start("_get_level", |_| Ok(()), |r| r.primitive::<i32>());
    let late = started.wait().expect_err("its deadline has passed");
    assert_eq!(
        (late.kind, late.completed),
        (ExceptionKind::Timeout, CompletionStatus::No),
        "{late}"
    );
    assert_eq!(served.take(), [""; 0]);
}

/// Refuses requests by their sender, and tells what it saw.
struct Gate {
    seen: Mutex<Sender<SeenRequest>>,
}

/// The operation, the sender, the adapter and the object id of a request.
type SeenRequest = (String, RequestPeer, String, Vec<u8>);

impl ServerRequestInterceptor for Gate {
    fn receive_request(&self, request: &mut ServerRequest<'_>) -> Result<(), Intervention> {
        let seen = (
            request.operation().to_owned(),
            request.peer(),
            request.adapter().to_owned(),
            request.object_id().to_vec(),
        );
        let _ = self.seen.lock().expect("no panic").send(seen);
        Ok(())
    }
}

#[test]
fn a_server_interceptor_knows_the_sender_and_the_object() {
    let scratch = Scratch::new();
    let uiop = format!("uiop://{}", scratch.join("socket").display());
    let shmiop = format!("shmiop://{}", scratch.join("memory").display());
    for endpoint in ["iiop://127.0.0.1:0", &uiop, &shmiop] {
        let (seen, sees) = channel();
        let gate = Gate {
            seen: Mutex::new(seen),
        };
        let ours = Ours::serve_in(
            Orb::builder().listen(endpoint).server_interceptor(gate),
            |orb| {
                let root = orb.root_poa().expect("the ORB can listen");
                let plant = root.create_poa("Plant", PoaPolicies::default());
                let policies = PoaPolicies::default().with_lifespan(Lifespan::Persistent);
                let made = plant.and_then(|plant| plant.create_poa("Hall", policies));
                made.expect("new names")
            },
        );
        let client = build(Orb::builder());
        let desk: Desk = ours
            .poa
            .create_reference_with_id("desk")
            .expect("persistent");
        for (object, id) in [
            (ours.desk.as_object(), None),
            (desk.as_object(), Some(b"desk")),
        ] {
            let _ = Desk::unchecked_narrow(seen_by(&client, object)).level();
            let (operation, peer, adapter, object_id) = sees.recv_timeout(PATIENCE).expect("seen");
            assert_eq!((&*operation, &*adapter), ("_get_level", "Plant/Hall"));
            assert_eq!(
                object_id.is_empty(),
                id.is_some(),
                "only an active object has an id"
            );
            match peer {
                RequestPeer::Tcp(address) => assert!(address.ip().is_loopback()),
                RequestPeer::Process { pid, .. } => assert_eq!(pid as u32, process::id()),
                other => panic!("{other:?}"),
            }
            assert_eq!(
                matches!(peer, RequestPeer::Tcp(_)),
                endpoint.starts_with("iiop")
            );
        }
    }
}

fn shared(wait: WaitStrategy) -> OrbBuilder {
    Orb::builder().connection(ConnectionStrategy::Multiplexed { wait })
}

#[test]
fn started_calls_are_seen_until_their_results_are_taken() {
    for wait in [
        WaitStrategy::LeaderFollowers,
        WaitStrategy::Reactor,
        WaitStrategy::ConnectionThread,
    ] {
        let flow = Flow::of(
            |log| Seer::new("b", log),
            |log| Seer::new("b", log),
            shared(wait),
        );
        let desk = flow.desk();
        let start = || {
            let object = desk.as_object();
            object.start("_get_level", |_| Ok(()), |r| r.primitive::<i32>())
        };
        let started = start();
        assert_eq!(flow.sent.len(), 3);
        assert_eq!(started.wait(), Ok(0));
        assert_eq!(
            of_level(&flow.sent)[3..],
            ["c receive_reply", "b receive_reply", "a receive_reply"]
        );
        drop(start());
        assert_eq!(
            of_level(&flow.sent)[3..],
            [
                "c receive_other abandoned",
                "b receive_other abandoned",
                "a receive_other abandoned"
            ]
        );
        let object = desk.as_object();
        let failed = object.start("fail", |w| w.primitive(5_u32), |_| Ok(()));
        let failed = failed.wait().map_err(|exception| exception.kind);
        assert_eq!(failed, Err(ExceptionKind::NoPermission));
        assert_eq!(
            flow.sent.take().last().map(String::as_str),
            Some("a receive_exception fail NO_PERMISSION")
        );
    }
}

#[test]
fn started_calls_follow_interceptors_and_servers() {
    let elsewhere = Ours::serve_as(Orb::builder().server_interceptor(Mirror));
    elsewhere.desk.set_level(5).expect("it is served");
    let to = elsewhere.desk.as_object();
    for (client_at, server_at) in [
        ("send_request", "never"),
        ("never", "receive_request"),
        ("receive_exception", "never"),
    ] {
        let (log, served) = (Log::default(), Log::default());
        let ours = Ours::serve_as(
            Orb::builder().server_interceptor(Seer::forwarding("f", &served, server_at, to)),
        );
        let client = build(
            shared(WaitStrategy::LeaderFollowers)
                .client_interceptor(Seer::forwarding("f", &log, client_at, to))
                .client_interceptor(Tracer {
                    log: log.clone(),
                    ..Tracer::default()
                }),
        );
        let object = match client_at {
            "receive_exception" => nobody(&ours),
            _ => ours.desk.as_object().clone(),
        };
        let object = seen_by(&client, &object);
        let started = object.start("_get_level", |_| Ok(()), |r| r.primitive::<i32>());
        assert_eq!(started.wait(), Ok(5), "{client_at}, {server_at}");
        let seen = of_level(&log);
        let starts = seen.iter().filter(|line| *line == "f send_request");
        assert_eq!(starts.count(), 2, "{seen:?}");
        assert_eq!(seen.last().map(String::as_str), Some("f receive_reply"));
    }
}

#[test]
fn a_call_whose_interceptor_forwards_it_to_a_place_that_is_down_goes_back_to_the_original_one() {
    let (ours, elsewhere) = (Ours::serve(), Ours::serve());
    elsewhere.desk.set_level(5).expect("it is served");
    let down =
        (ours.orb).string_to_object(&format!("corbaloc:iiop:1.2@127.0.0.1:{NOBODYS_PORT}/Desk"));
    let down = down.expect("a reference").ior().clone();
    let places = [down, elsewhere.desk.as_object().ior().clone()];
    let nobody = nobody(&ours);
    for is_started in [false, true] {
        let (log, next, places) = (Log::default(), AtomicUsize::new(0), places.clone());
        let seer = Seer::acting("f", &log, move |point| {
            let is_failed = point == "receive_exception";
            let place = is_failed.then(|| places.get(next.fetch_add(1, Ordering::SeqCst)));
            place.flatten().cloned().map(Intervention::Forward)
        });
        let client = build(shared(WaitStrategy::LeaderFollowers).client_interceptor(seer));
        let object = seen_by(&client, &nobody);
        let level = level_of(&object, is_started);
        assert_eq!(level, Ok(5), "started: {is_started}");
        let seen = of_level(&log);
        let failed = seen.iter().filter(|it| it.contains("receive_exception"));
        let failed: Vec<_> = failed.map(String::as_str).collect();
        // Both from the original place: the second one after the place that is down.
        let expected = ["f receive_exception OBJECT_NOT_EXIST"; 2];
        assert_eq!(failed, expected, "started: {is_started}, {seen:?}");
    }
}

/// Adds the context [`TRACE`] to requests to one location.
struct OnlyThere(Ior);

impl ClientRequestInterceptor for OnlyThere {
    fn send_request(&self, request: &mut ClientRequest<'_>) -> Result<(), Intervention> {
        if *request.target() == self.0 {
            request.add_context(TRACE, b"there")?;
        }
        Ok(())
    }
}

/// Notes which requests have the context [`TRACE`].
struct Traced(Log);

impl ServerRequestInterceptor for Traced {
    fn receive_request(&self, request: &mut ServerRequest<'_>) -> Result<(), Intervention> {
        let is_traced = request.context(TRACE).is_some();
        self.0.add(format!("{} {is_traced}", request.operation()));
        Ok(())
    }
}

#[test]
fn a_location_gets_no_context_that_was_added_for_an_earlier_one() {
    let (first, second) = (Log::default(), Log::default());
    let elsewhere = Ours::serve_as(Orb::builder().server_interceptor(Traced(second.clone())));
    elsewhere.desk.set_level(5).expect("it is served");
    second.take();
    let to = elsewhere.desk.as_object().ior().clone();
    let forwarder = Seer::acting("f", &Log::default(), move |point| {
        (point == "receive_request").then(|| Intervention::Forward(to.clone()))
    });
    let ours = Ours::serve_as(
        (Orb::builder().server_interceptor(Traced(first.clone()))).server_interceptor(forwarder),
    );
    let only_there = OnlyThere(ours.desk.as_object().ior().clone());
    let client = build(shared(WaitStrategy::LeaderFollowers).client_interceptor(only_there));
    for is_started in [false, true] {
        let object = seen_by(&client, ours.desk.as_object());
        let level = level_of(&object, is_started);
        assert_eq!(level, Ok(5), "started: {is_started}");
        assert_eq!(first.take(), ["_get_level true"], "started: {is_started}");
        assert_eq!(second.take(), ["_get_level false"], "started: {is_started}");
    }
}

/// A servant that gives its responders to the test.
struct Deferrer {
    lifts: Mutex<Sender<Responder<(i32, String), WinchLiftError>>>,
}

impl MachineDeferredServant for Deferrer {
    fn hours(&self, responder: Responder<i32>) {
        drop(responder);
    }

    fn start_(&self, responder: Responder<()>) {
        responder.reply(());
    }
}

impl WinchDeferredServant for Deferrer {
    fn lift(&self, responder: Responder<(i32, String), WinchLiftError>, _: i32, _: String) {
        let _ = self.lifts.lock().expect("no panic").send(responder);
    }

    fn nudge(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }

    fn speed(&self, responder: Responder<f64>) {
        responder.reply(2.5);
    }

    fn set_speed(&self, responder: Responder<()>, _: f64) {
        responder.reply(());
    }
}

#[test]
fn deferred_replies_are_seen_when_they_are_sent() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Log::default();
        let server = Orb::builder().dispatch(dispatch).pool_threads(2);
        let ours = Ours::serve_as(
            server
                .server_interceptor(Seer::new("a", &served))
                .server_interceptor(Mirror),
        );
        let (lifts, taken) = channel();
        let servant = Deferrer {
            lifts: Mutex::new(lifts),
        };
        let winch: Winch = ours.poa.activate(Deferring(servant)).expect("room");
        let log = Log::default();
        let client = build(Orb::builder().client_interceptor(Tracer {
            log: log.clone(),
            ..Tracer::default()
        }));
        let winch = Winch::unchecked_narrow(seen_by(&client, winch.as_object()));
        let lift = || {
            let winch = winch.clone();
            let lifting = thread::spawn(move || winch.lift(1, "Ada"));
            (lifting, taken.recv_timeout(PATIENCE).expect("it is called"))
        };
        let (lifting, responder) = lift();
        // Other requests of the same threads are seen meanwhile.
        assert_eq!(winch.speed(), Ok(2.5), "{name}");
        assert!(
            !served.take().contains(&"a send_reply lift".to_owned()),
            "{name}"
        );
        responder.reply((3, "up".to_owned()));
        assert!(lifting.join().expect("no panic").is_ok(), "{name}");
        let (lifting, responder) = lift();
        responder.raise(Overload { limit: 1 });
        assert!(lifting.join().expect("no panic").is_err(), "{name}");
        let (lifting, responder) = lift();
        drop(responder);
        assert!(lifting.join().expect("no panic").is_err(), "{name}");
        assert_eq!(
            served.take(),
            [
                "a send_reply lift".to_owned(),
                "a receive_request lift".to_owned(),
                format!("a send_exception lift {OVERLOAD}"),
                "a receive_request lift".to_owned(),
                "a send_exception lift NO_RESPONSE".to_owned(),
            ],
            "{name}"
        );
        assert_eq!(log.take(), [""; 0], "{name}");
    }
}

#[test]
fn a_deadline_is_seen_as_the_end_of_a_deferred_call() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Log::default();
        let server = Orb::builder().dispatch(dispatch);
        let ours = Ours::serve_as(server.server_interceptor(Seer::new("a", &served)));
        let (lifts, taken) = channel();
        let servant = Deferrer {
            lifts: Mutex::new(lifts),
        };
        let winch: Winch = ours.poa.activate(Deferring(servant)).expect("room");
        let client = build(Orb::builder());
        let winch = Winch::unchecked_narrow(seen_by(&client, winch.as_object()));
        let short = Duration::from_millis(20);
        // On a busy host, a deadline may pass before the servant is called.
        let responder = until("a call comes in time", || {
            let late = winch.with_deadline(short).lift(1, "Ada");
            assert!(late.is_err(), "{name}: nobody answers");
            taken.recv_timeout(short).ok()
        });
        until("its end is seen", || {
            let ended = "a send_exception lift TIMEOUT".to_owned();
            served.take().contains(&ended).then_some(())
        });
        responder.reply((3, "up".to_owned()));
        assert_eq!(winch.speed(), Ok(2.5), "{name}");
        let later = served.take();
        let answered = "a send_reply lift".to_owned();
        assert!(!later.contains(&answered), "{name}: {later:?}");
    }
}

#[test]
fn contexts_are_bounded_and_each_id_is_added_once() {
    struct Adder;
    impl ClientRequestInterceptor for Adder {
        fn send_request(&self, request: &mut ClientRequest<'_>) -> Result<(), Intervention> {
            for id in 0..32 {
                request.add_context(TRACE + id, b"some data")?;
            }
            let again = request.add_context(TRACE, b"").expect_err("it is there");
            assert_eq!(
                (again.kind, again.minor),
                (ExceptionKind::BadInvOrder, 0x4f4d_000f)
            );
            let beyond = request.add_context(TRACE + 32, b"").expect_err("too many");
            assert_eq!(beyond.kind, ExceptionKind::ImpLimit);
            Ok(())
        }

        fn receive_reply(&self, request: &mut ClientRequest<'_>) -> Result<(), SystemException> {
            let late = request
                .add_context(TRACE + 40, b"")
                .expect_err("it was sent");
            assert_eq!(
                (late.kind, late.minor),
                (ExceptionKind::BadInvOrder, 0x4f4d_000e)
            );
            Ok(())
        }
    }
    let ours = Ours::serve();
    let client = build(Orb::builder().client_interceptor(Adder));
    let desk = desk_by(&client, &ours);
    let bounded = Desk::unchecked_narrow(desk.as_object().with_deadline(PATIENCE));
    assert_eq!(bounded.level(), Ok(0), "beside the contexts of the ORB");
    assert_eq!(desk.level(), Ok(0));
}

#[test]
fn an_orb_has_at_most_16_interceptors_of_a_kind() {
    let with = |count: usize| {
        (0..count).fold(Orb::builder(), |builder, _| {
            builder.server_interceptor(Mirror)
        })
    };
    assert!(with(16).build().is_ok());
    let error = with(17).build().expect_err("one too many");
    assert!(error.to_string().contains("at most 16"), "{error}");
}

/// Lets only users in a list, and this ORB itself, call the objects of the adapter `Admin`.
struct Administrators(Vec<u32>);

impl ServerRequestInterceptor for Administrators {
    fn receive_request(&self, request: &mut ServerRequest<'_>) -> Result<(), Intervention> {
        let is_permitted = match request.peer() {
            RequestPeer::Collocated => true,
            RequestPeer::Process { uid, .. } => self.0.contains(&uid),
            _ => false,
        };
        if request.adapter() == "Admin" && !is_permitted {
            return Err(SystemException::from(ExceptionKind::NoPermission).into());
        }
        Ok(())
    }
}

#[test]
fn an_access_rule_by_user_holds_for_its_adapter_alone() {
    let scratch = Scratch::new();
    let user = rustix::process::getuid().as_raw();
    for (users, is_permitted) in [(vec![user], true), (vec![user + 1], false)] {
        let server = Orb::builder().server_interceptor(Administrators(users));
        let endpoint = format!("uiop://{}", scratch.join("socket").display());
        let ours = Ours::serve_as(server.listen(&endpoint));
        let admin = ours.poa.create_poa("Admin", PoaPolicies::default());
        let servant = Counter::default();
        let admin: Desk = admin.and_then(|it| it.activate(servant)).expect("room");
        let client = build(Orb::builder());
        let admin = Desk::unchecked_narrow(seen_by(&client, admin.as_object()));
        let answer = admin.level().map_err(|exception| exception.kind);
        let expected = if is_permitted {
            Ok(0)
        } else {
            Err(ExceptionKind::NoPermission)
        };
        assert_eq!(answer, expected);
        assert_eq!(desk_by(&client, &ours).level(), Ok(0));
    }
}

thread_local! {
    /// The `traceparent` of the span that the thread works for.
    static TRACE_PARENT: Cell<Option<[u8; 55]>> = const { Cell::new(None) };
}

/// The id of the service context. Choose one that no other service uses.
const TRACE_CONTEXT: u32 = 0x5452_4143;

/// Passes traces on.
struct Tracing;

impl ClientRequestInterceptor for Tracing {
    fn send_request(&self, request: &mut ClientRequest<'_>) -> Result<(), Intervention> {
        if let Some(parent) = TRACE_PARENT.get() {
            request.add_context(TRACE_CONTEXT, &parent)?;
        }
        Ok(())
    }
}

impl ServerRequestInterceptor for Tracing {
    fn receive_request(&self, request: &mut ServerRequest<'_>) -> Result<(), Intervention> {
        let data = request.context(TRACE_CONTEXT);
        TRACE_PARENT.set(data.and_then(|data| data.try_into().ok()));
        Ok(())
    }
}

/// Notes the traces of its requests.
struct Traces(Log);

impl ServerRequestInterceptor for Traces {
    fn receive_request(&self, request: &mut ServerRequest<'_>) -> Result<(), Intervention> {
        let parent = TRACE_PARENT.get();
        let parent = parent.map_or("none".to_owned(), |parent| {
            String::from_utf8_lossy(&parent).into_owned()
        });
        self.0.add(format!("{} {parent}", request.operation()));
        Ok(())
    }
}

#[test]
fn a_trace_goes_on_into_the_calls_that_a_servant_makes() {
    let traces = Log::default();
    let ours = Ours::serve_as(
        Orb::builder()
            .client_interceptor(Tracing)
            .server_interceptor(Tracing)
            .server_interceptor(Traces(traces.clone())),
    );
    let client = build(Orb::builder().client_interceptor(Tracing));
    let desk = desk_by(&client, &ours);
    // The example of the W3C's recommendation.
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    TRACE_PARENT.set(parent.as_bytes().try_into().ok());
    check_nested(&desk);
    TRACE_PARENT.set(None);
    assert_eq!(desk.level(), Ok(41));
    let seen = traces.take();
    for operation in ["level_of", "_get_level"] {
        assert!(seen.contains(&format!("{operation} {parent}")), "{seen:?}");
    }
    assert_eq!(seen.last().map(String::as_str), Some("_get_level none"));
}

/// Adds the path of each adapter to its references.
struct Labels;

impl IorInterceptor for Labels {
    fn establish_components(&self, info: &mut IorInfo<'_>) {
        let path = info.adapter().to_owned();
        info.add_component(TAG, path.as_bytes());
    }
}

fn label(ior: &Ior) -> Option<Vec<u8>> {
    let profile: IiopProfile = ior.iiop_profiles().next()?;
    let mut components = profile.components.into_iter();
    Some(components.find(|component| component.tag == TAG)?.data)
}

#[test]
fn references_have_the_components_of_interceptors() {
    let ours = Ours::serve_in(Orb::builder().ior_interceptor(Labels), |orb| {
        orb.root_poa().expect("the ORB can listen")
    });
    let label_of = |object: &ObjectRef| label(object.ior());
    assert_eq!(
        label_of(ours.desk.as_object()).as_deref(),
        Some(&b"RootPOA"[..])
    );
    assert_eq!(label_of(&nobody(&ours)).as_deref(), Some(&b"Empty"[..]));
    let client = build(Orb::builder());
    assert_eq!(desk_by(&client, &ours).level(), Ok(0));
}
