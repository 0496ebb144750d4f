//! Distributable threads: identities and segments that calls carry, and cancellation that follows the calls.

use rtorb::exception::local;
use rtorb::rt::{
    DistributableThreadState, EarliestDeadlineFirst, FixedPriority, SchedulingCurrent,
    SchedulingParameter, SegmentError, SpawnOptions, ThreadId,
};
use rtorb::thread::ThreadConfig;
use rtorb::{
    ConnectionStrategy, CurrentCall, DispatchStrategy, ExceptionKind, Orb, SystemException,
    WaitStrategy,
};
use rtorb_tests::fake::{FakeServer, Peer, reply, request_id};
use rtorb_tests::raw::{Connection, REQUEST, Stream};
use rtorb_tests::relay::{Served, has_priorities, priority};
use rtorb_tests::running::until;
use rtorb_tests::stubs::{Relay, RelayServant, Seen};
use rtorb_wire::ByteOrder;
use rtorb_wire::giop::Header;
use rtorb_wire::giop::{
    DISTRIBUTABLE_THREAD, RequestHeader, SegmentParameter, ThreadContext, Version,
};
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

fn current_of(orb: &Orb) -> SchedulingCurrent {
    orb.scheduling_current(EarliestDeadlineFirst)
}

/// A servant that says which distributable thread it runs in, and calls the next one.
#[derive(Debug)]
struct Station {
    orb: Orb,
    next: Option<Relay>,
    /// Where a servant says that it runs, if it waits until it is cancelled.
    waits: Option<Mutex<Sender<ThreadId>>>,
}

impl RelayServant for Station {
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        let current = current_of(&self.orb);
        let names = current.current_scheduling_segment_names().join(" ");
        let id = current.id();
        let mut way = vec![Seen {
            who: format!(
                "{} {names}",
                id.map_or_else(String::new, |id| id.to_string())
            ),
            corba: -1,
            kernel: 0,
        }];
        if let (Some(waits), Some(id)) = (&self.waits, id) {
            waits.lock().expect("no panic").send(id).expect("a test");
            let begun = Instant::now();
            while begun.elapsed() < LONG {
                CurrentCall::get().expect("it is in a servant").check()?;
                thread::yield_now();
            }
        }
        if let Some(next) = &self.next {
            way.extend(next.pass_on()?);
        }
        Ok(way)
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        self.orb.shutdown();
        Ok(())
    }
}

fn station(served: &Served, next: Option<&Relay>) -> Relay {
    let next = next.map(|next| relay_of(&served.orb, next));
    let servant = Station {
        orb: served.orb.clone(),
        next,
        waits: None,
    };
    served.root.activate(servant).expect("room")
}

/// A servant that waits until it is cancelled, and the threads that have arrived there.
fn waiting_station(served: &Served) -> (Relay, Receiver<ThreadId>) {
    let (arrives, arrived) = channel();
    let servant = Station {
        orb: served.orb.clone(),
        next: None,
        waits: Some(Mutex::new(arrives)),
    };
    (served.root.activate(servant).expect("room"), arrived)
}

fn relay_of(orb: &Orb, relay: &Relay) -> Relay {
    let text = relay.as_object().to_string();
    Relay::unchecked_narrow(orb.string_to_object(&text).expect("a reference"))
}

fn who(way: &[Seen]) -> Vec<&str> {
    way.iter().map(|seen| seen.who.as_str()).collect()
}

/// The client strategies: how the thread of a call waits for its reply.
fn clients() -> Vec<ConnectionStrategy> {
    let waits = [
        WaitStrategy::Read,
        WaitStrategy::Reactor,
        WaitStrategy::LeaderFollowers,
        WaitStrategy::ConnectionThread,
    ];
    let shared = waits.map(|wait| ConnectionStrategy::Multiplexed { wait });
    [ConnectionStrategy::Exclusive]
        .into_iter()
        .chain(shared)
        .collect()
}

//= RT-CORBA 1.2 §Distributable Threads
//% test
#[test]
fn every_servant_on_the_way_runs_as_the_thread_of_the_client() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = [(); 2].map(|()| Served::by(Orb::builder().dispatch(dispatch)));
        let last = station(&served[1], None);
        let first = station(&served[0], Some(&last));
        for connection in clients() {
            let orb = Orb::builder()
                .connection(connection)
                .build()
                .expect("an ORB");
            let relay = relay_of(&orb, &first);
            assert_eq!(who(&relay.pass_on().expect("a way")), [" ", " "], "{name}");
            let current = current_of(&orb);
            current
                .begin_scheduling_segment("outer", None, None)
                .expect("a segment");
            current
                .begin_scheduling_segment("inner", None, None)
                .expect("a segment");
            let id = current.id().expect("a thread").to_string();
            let way = relay.pass_on().expect("a way");
            let expected = format!("{id} inner");
            assert_eq!(who(&way), [&expected, &expected], "{name} {connection:?}");
            current
                .end_scheduling_segment("inner")
                .expect("it is the innermost");
            current
                .end_scheduling_segment("outer")
                .expect("it is the outermost");
            assert_eq!(who(&relay.pass_on().expect("a way")), [" ", " "], "{name}");
        }
    }
}

#[test]
fn a_collocated_servant_runs_as_the_thread_too_and_gives_it_back() {
    let served = Served::collocated(Orb::builder());
    let relay = station(&served, None);
    let current = current_of(&served.orb);
    current
        .begin_scheduling_segment("here", None, None)
        .expect("a segment");
    let id = current.id().expect("a thread");
    let way = relay.pass_on().expect("a way");
    assert_eq!(who(&way), [format!("{id} here")]);
    assert_eq!(current.id(), Some(id));
    current
        .end_scheduling_segment("here")
        .expect("it is the outermost");
}

//= RT-CORBA 1.2 §Scheduling Segments
//% test
#[test]
fn segments_nest_and_end_in_reverse_order() {
    let orb = Orb::builder().build().expect("an ORB");
    let current = current_of(&orb);
    let minor =
        |ended: Result<(), SystemException>| ended.map_err(|it| (it.kind, it.minor & 0xfff));
    let outside = minor(current.end_scheduling_segment("none"));
    assert_eq!(outside, Err((ExceptionKind::BadInvOrder, 0x13)));
    let deadline = SchedulingParameter::deadline_after(LONG);
    current
        .begin_scheduling_segment("outer", deadline, None)
        .expect("a segment");
    let id = current.id();
    current
        .begin_scheduling_segment("inner", None, deadline)
        .expect("a segment");
    assert_eq!(current.id(), id);
    assert_eq!(
        current.current_scheduling_segment_names(),
        ["inner", "outer"]
    );
    assert_eq!(current.scheduling_parameter(), None);
    assert_eq!(current.implicit_scheduling_parameter(), Some(deadline));
    let other = minor(current.end_scheduling_segment("outer"));
    assert_eq!(other, Err((ExceptionKind::BadParam, 0x1c)));
    current
        .update_scheduling_segment("changed", deadline, None)
        .expect("it is a segment");
    assert_eq!(
        current.current_scheduling_segment_names(),
        ["changed", "outer"]
    );
    assert_eq!(current.scheduling_parameter(), Some(deadline));
    current
        .end_scheduling_segment("changed")
        .expect("it is the innermost");
    let found = current.lookup(id.expect("a thread")).expect("it runs");
    assert_eq!(found.state(), DistributableThreadState::Active);
    current
        .end_scheduling_segment("outer")
        .expect("it is the outermost");
    assert_eq!((current.id(), current.lookup(found.id())), (None, None));
    assert_eq!(
        found.cancel().map_err(|it| it.kind),
        Err(ExceptionKind::ObjectNotExist)
    );
}

#[test]
fn segments_have_bounds() {
    let orb = Orb::builder().build().expect("an ORB");
    let current = current_of(&orb);
    let long = current.begin_scheduling_segment(&"s".repeat(256), None, None);
    assert!(matches!(long, Err(SegmentError::System(it)) if it.kind == ExceptionKind::BadParam));
    for _ in 0..64 {
        current
            .begin_scheduling_segment("", None, None)
            .expect("room");
    }
    let more = current.begin_scheduling_segment("", None, None);
    assert!(matches!(more, Err(SegmentError::System(it)) if it.kind == ExceptionKind::ImpLimit));
    for _ in 0..64 {
        current.end_scheduling_segment("").expect("it was begun");
    }
    assert_eq!(current.id(), None);
}

//= RT-CORBA 1.2 §Fixed Priority Scheduling
//% test
#[test]
fn a_segment_has_the_priority_of_its_parameter_and_the_thread_its_own_afterwards() {
    if !has_priorities() {
        return;
    }
    // A priority stays with its thread.
    let checked = thread::spawn(|| {
        let orb = Orb::builder().build().expect("an ORB");
        let current = orb.scheduling_current(FixedPriority);
        let of = |number| SchedulingParameter::Priority(priority(number));
        let has = || orb.rt_current().the_priority().map(|it| it.get()).ok();
        current
            .begin_scheduling_segment("outer", of(3), None)
            .expect("a segment");
        current
            .begin_scheduling_segment("inner", of(7), None)
            .expect("a segment");
        assert_eq!(has(), Some(7));
        current
            .update_scheduling_segment("inner", of(9), None)
            .expect("a segment");
        assert_eq!(has(), Some(9));
        for (parameter, expected) in [(None, 3), (Some(of(8)), 8)] {
            current
                .update_scheduling_segment("inner", parameter, None)
                .expect("a segment");
            assert_eq!(has(), Some(expected));
        }
        current
            .end_scheduling_segment("inner")
            .expect("the innermost");
        assert_eq!(has(), Some(3));
        let wrong = SchedulingParameter::deadline_after(LONG);
        let wrong = current.begin_scheduling_segment("wrong", wrong, None);
        assert!(matches!(
            wrong,
            Err(SegmentError::UnsupportedDiscipline { .. })
        ));
        current
            .end_scheduling_segment("outer")
            .expect("the outermost");
        assert_eq!(has(), None);
        assert_eq!(rtorb_os::sched::current_policy().priority(), 0);
    });
    checked.join().expect("no panic");
}

/// A servant that notes the segments that it finds, leaves one open whose deadline has passed, and returns, fails or panics.
#[derive(Debug, Default)]
struct Leaving {
    orb: Option<Orb>,
    found: Arc<Mutex<Vec<String>>>,
}

impl RelayServant for Leaving {
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        let current = current_of(self.orb.as_ref().expect("it is served"));
        let names = current.current_scheduling_segment_names().join(" ");
        let calls = {
            let mut found = self.found.lock().expect("no panic");
            found.push(names);
            found.len()
        };
        for deadline in [Some(Duration::ZERO), None] {
            let parameter = deadline.map(SchedulingParameter::deadline_after);
            let begun = current.begin_scheduling_segment("left", parameter, None);
            begun.expect("there is room");
        }
        match calls % 3 {
            0 => std::panic::resume_unwind(Box::new(())),
            1 => Err(local::STOPPED_BY_BUDGET),
            _ => Ok(Vec::new()),
        }
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// Makes such a servant in that server. Returns it with the segments that it has found.
fn leaving(served: &Served) -> (Relay, Arc<Mutex<Vec<String>>>) {
    let leaving = Leaving {
        orb: Some(served.orb.clone()),
        ..Leaving::default()
    };
    let found = Arc::clone(&leaving.found);
    (served.root.activate(leaving).expect("room"), found)
}

/// Calls it outside of segments and within one. Returns the segments that its servant should find.
fn call_leaving(current: &SchedulingCurrent, relay: &Relay) -> Vec<String> {
    let mut expected = Vec::new();
    for segments in [&[][..], &["outer", "inner"]] {
        for name in segments {
            let begun = current.begin_scheduling_segment(name, None, None);
            begun.expect("a segment");
        }
        let own: Vec<_> = segments.iter().rev().copied().collect();
        let id = current.id();
        for _ in 0..6 {
            // Its outcome is the servant's choice.
            let _ = relay.pass_on();
            assert_eq!(current.current_scheduling_segment_names(), own);
            assert_eq!(current.id(), id);
            expected.push(own.join(" "));
        }
        for name in own {
            current.end_scheduling_segment(name).expect("it is open");
        }
    }
    expected
}

#[test]
fn a_segment_that_a_servant_leaves_open_ends_with_the_upcall() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Served::by(Orb::builder().dispatch(dispatch));
        let (relay, found) = leaving(&served);
        let orb = Orb::builder().build().expect("an ORB");
        let mut expected = call_leaving(&current_of(&orb), &relay_of(&orb, &relay));
        // A client sends the name of its innermost segment.
        for name in &mut expected {
            *name = name.replace("inner outer", "inner");
        }
        assert_eq!(*found.lock().expect("no panic"), expected, "{name}");
    }
}

#[test]
fn a_segment_that_a_servant_leaves_open_on_the_thread_of_its_caller_ends_with_the_call() {
    let served = Served::collocated(Orb::builder());
    let (relay, found) = leaving(&served);
    let expected = call_leaving(&current_of(&served.orb), &relay);
    assert_eq!(*found.lock().expect("no panic"), expected);
}

//= RT-CORBA 1.2 §Earliest Deadline First Scheduling
//% test
#[test]
fn calls_of_a_segment_end_by_its_deadline() {
    let fake = FakeServer::new(|_, mut peer| peer.wait_for_end());
    let orb = Orb::builder().build().expect("an ORB");
    let relay = Relay::unchecked_narrow(orb.string_to_object(&fake.reference()).expect("one"));
    let current = current_of(&orb);
    let deadline = SchedulingParameter::deadline_after(Duration::from_millis(30));
    current
        .begin_scheduling_segment("short", deadline, None)
        .expect("a segment");
    let late = relay.pass_on().map(|_| ()).map_err(|it| it.kind);
    assert_eq!(late, Err(ExceptionKind::Timeout));
    current
        .end_scheduling_segment("short")
        .expect("the outermost");
}

#[test]
fn a_spawned_thread_has_an_identity_of_its_own_and_the_implicit_parameter() {
    let orb = Orb::builder().build().expect("an ORB");
    let current = current_of(&orb);
    let implicit = SchedulingParameter::deadline_after(LONG);
    current
        .begin_scheduling_segment("outer", None, implicit)
        .expect("a segment");
    let own = current.id().expect("a thread");
    let theirs = current.clone();
    let spawned = current.spawn(
        &SpawnOptions {
            name: "spawned",
            ..SpawnOptions::default()
        },
        &ThreadConfig::default(),
        move || {
            (
                theirs.id(),
                theirs.current_scheduling_segment_names(),
                theirs.scheduling_parameter(),
            )
        },
    );
    let spawned = spawned.expect("a thread");
    let thread = spawned.thread();
    assert_ne!(thread.id(), own);
    let (id, names, parameter) = spawned.join().expect("no panic");
    assert_eq!((id, parameter), (Some(thread.id()), Some(implicit)));
    assert_eq!(names, ["spawned"]);
    assert_eq!(current.lookup(thread.id()), None);
    current
        .end_scheduling_segment("outer")
        .expect("the outermost");
}

//= RT-CORBA 1.2 §Distributable Threads
//% test
#[test]
fn a_oneway_is_another_thread_with_the_implicit_parameter() {
    let (sends, sent) = channel();
    let sends = Arc::new(Mutex::new(sends));
    let fake = FakeServer::new(move |_, mut peer| {
        while let Some(message) = peer.message() {
            let context = context_of(&message);
            sends
                .lock()
                .expect("no panic")
                .send(context)
                .expect("a test");
        }
    });
    let orb = Orb::builder().build().expect("an ORB");
    let relay = Relay::unchecked_narrow(orb.string_to_object(&fake.reference()).expect("one"));
    let current = current_of(&orb);
    let implicit = SchedulingParameter::deadline_after(LONG);
    current
        .begin_scheduling_segment("outer", None, implicit)
        .expect("a segment");
    relay.shutdown().expect("it is sent");
    let context = sent
        .recv_timeout(LONG)
        .expect("a request")
        .expect("a context");
    let own = current.id().expect("a thread").to_bytes();
    assert_ne!(context.thread_id, own);
    assert!(matches!(
        context.parameter,
        SegmentParameter::Deadline { left_ns: 1.., .. }
    ));
    current
        .end_scheduling_segment("outer")
        .expect("the outermost");
    relay.shutdown().expect("it is sent");
    assert_eq!(sent.recv_timeout(LONG).expect("a request"), None);
}

/// The thread that a request names.
fn context_of(message: &[u8]) -> Option<ThreadContext<'static>> {
    let header = Header::parse(message, 1 << 20).expect("GIOP")?;
    let request = RequestHeader::decode(&mut header.reader(message)).expect("a request");
    let data = request.contexts.find(DISTRIBUTABLE_THREAD)?;
    let read = ThreadContext::read(data).expect("a context");
    Some(ThreadContext {
        segment: read.segment.into_owned().into(),
        ..read
    })
}

const CANCEL_REQUEST: u8 = 2;

const THREAD: [u8; 16] = *b"a thread of ours";

/// A request of a distributable thread, and the CancelRequest for it.
fn request_and_cancel(key: &[u8], id: u32) -> (Vec<u8>, Vec<u8>) {
    let mut cancel = Stream::new(CANCEL_REQUEST, 2, false);
    cancel.ulong(id);
    (request_of(THREAD, key, id), cancel.message())
}

/// A request of a distributable thread.
fn request_of(thread_id: [u8; 16], key: &[u8], id: u32) -> Vec<u8> {
    let context = ThreadContext {
        thread_id,
        segment: "raw".into(),
        parameter: SegmentParameter::None,
        implicit: SegmentParameter::None,
    };
    let mut data = Vec::new();
    context
        .write(&mut data, ByteOrder::Little)
        .expect("a short name");
    let mut request = Stream::new(REQUEST, 2, false);
    request
        .ulong(id)
        .raw(&[3, 0, 0, 0])
        .ushort(0)
        .octets(key)
        .string("pass_on");
    request.ulong(1).ulong(DISTRIBUTABLE_THREAD).octets(&data);
    request.message()
}

/// A connection to a server, and the key of an object there.
fn connected(served: &Served, relay: &Relay) -> (Connection, Vec<u8>) {
    let endpoint = served.orb.endpoints()[0].to_string();
    let address = endpoint.trim_start_matches("iiop://");
    let address: SocketAddr = address.parse().expect("an address");
    let mut profiles = relay.as_object().ior().iiop_profiles();
    let key = profiles.next().expect("an IIOP profile").object_key;
    (Connection::to(address), key)
}

/// The name of the system exception of an answer.
fn exception(connection: &mut Connection) -> String {
    let answer = connection.answer().expect("an answer");
    assert_eq!(answer.status, 2, "a system exception");
    answer.exception().0
}

const CANCELLED: &str = "IDL:omg.org/CORBA/THREAD_CANCELLED:1.0";

//= RT-CORBA 1.2 §Distributable Threads
//% test
#[test]
fn a_cancel_request_reaches_a_servant_that_computes_whichever_thread_serves_it() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Served::by(Orb::builder().dispatch(dispatch));
        let (relay, arrived) = waiting_station(&served);
        let (mut connection, key) = connected(&served, &relay);
        for id in 1..4 {
            let (request, cancel) = request_and_cancel(&key, id);
            connection.send(&request);
            let thread = arrived.recv_timeout(LONG).expect("it arrives");
            assert_eq!(thread.to_bytes(), THREAD, "{name}");
            connection.send(&cancel);
            assert_eq!(exception(&mut connection), CANCELLED, "{name}");
        }
    }
}

#[test]
fn a_cancel_request_does_not_concern_the_next_request_with_its_id() {
    for dispatch in [
        DispatchStrategy::ThreadPerConnection,
        DispatchStrategy::Reactive,
    ] {
        let served = Served::by(Orb::builder().dispatch(dispatch));
        let (relay, arrived) = waiting_station(&served);
        let (mut connection, key) = connected(&served, &relay);
        let (request, cancel) = request_and_cancel(&key, 2);
        for _ in 0..3 {
            connection.send(&request);
            arrived.recv_timeout(LONG).expect("it arrives");
            connection.send(&cancel);
            assert_eq!(exception(&mut connection), CANCELLED, "{dispatch:?}");
        }
    }
}

#[test]
fn a_client_that_is_gone_cancels_its_threads() {
    let served = Served::by(Orb::builder());
    let (relay, arrived) = waiting_station(&served);
    let (mut connection, key) = connected(&served, &relay);
    connection.send(&request_and_cancel(&key, 1).0);
    let id = arrived.recv_timeout(LONG).expect("it arrives");
    drop(connection);
    let current = current_of(&served.orb);
    until("the thread has ended", || {
        current.lookup(id).is_none().then_some(())
    });
}

#[test]
fn a_client_that_is_gone_does_not_cancel_what_its_thread_does_elsewhere() {
    let served = Served::by(Orb::builder());
    let (relay, arrived) = waiting_station(&served);
    let current = current_of(&served.orb);
    current
        .begin_scheduling_segment("here", None, None)
        .expect("a segment");
    let id = current.id().expect("a thread");
    let (mut connection, key) = connected(&served, &relay);
    connection.send(&request_of(id.to_bytes(), &key, 1));
    assert_eq!(arrived.recv_timeout(LONG), Ok(id));
    drop(connection);
    served
        .root
        .deactivate(relay.as_object())
        .expect("it is active");
    let dropped = arrived.recv_timeout(LONG);
    assert_eq!(
        dropped,
        Err(RecvTimeoutError::Disconnected),
        "the servant ends"
    );
    assert_eq!(current.check(), Ok(()));
}

#[test]
fn a_cancelled_request_that_waits_is_refused_when_its_turn_comes() {
    for dispatch in [DispatchStrategy::WorkerPool, DispatchStrategy::FilterChain] {
        let served = Served::by(Orb::builder().dispatch(dispatch).pool_threads(1));
        let (relay, arrived) = waiting_station(&served);
        let (mut connection, key) = connected(&served, &relay);
        let requests = [1, 2].map(|id| request_and_cancel(&key, id));
        connection.send(&requests[0].0);
        arrived.recv_timeout(LONG).expect("it arrives");
        // At once, so that the cancellation of the second one is found before the first one ends.
        let [(_, cancel_first), (second, cancel_second)] = &requests;
        connection.send(&[&second[..], cancel_second, cancel_first].concat());
        for id in [1, 2] {
            let refused = connection.answer().expect("an answer");
            assert_eq!(
                (refused.id, refused.exception().0.as_str()),
                (id, CANCELLED),
                "{dispatch}"
            );
        }
        assert!(
            arrived.try_recv().is_err(),
            "{dispatch}: the servant ran once"
        );
    }
}

/// A server that says which messages come, and replies to a CancelRequest as it is told.
fn told(answers: bool) -> (FakeServer, Receiver<Vec<u8>>) {
    let (tells, told) = channel();
    let tells = Arc::new(Mutex::new(tells));
    let fake = FakeServer::new(move |_, mut peer: Peer| {
        while let Some(message) = peer.message() {
            let is_cancel = message[7] == CANCEL_REQUEST;
            if let (true, true, Some(id)) = (answers, is_cancel, request_id(&message)) {
                peer.send(&reply(id, 2, |body| {
                    body.string(CANCELLED).ulong(0).ulong(0);
                }));
            }
            // The test may be over.
            let _ = tells.lock().expect("no panic").send(message);
        }
    });
    (fake, told)
}

//= RT-CORBA 1.2 §Distributable Threads
//% test
#[test]
fn a_server_passes_a_cancellation_on_to_the_server_that_it_waits_for() {
    for (name, dispatch) in DispatchStrategy::ALL {
        for answers in [true, false] {
            let (fake, told) = told(answers);
            let served = Served::by(Orb::builder().dispatch(dispatch));
            let next = served
                .orb
                .string_to_object(&fake.reference())
                .expect("a reference");
            let relay = station(&served, Some(&Relay::unchecked_narrow(next)));
            let (mut connection, key) = connected(&served, &relay);
            let (request, cancel) = request_and_cancel(&key, 5);
            connection.send(&request);
            let nested = told.recv_timeout(LONG).expect("a request");
            let context = context_of(&nested).expect("the thread goes on");
            assert_eq!(
                (context.thread_id, &*context.segment),
                (THREAD, "raw"),
                "{name}"
            );
            connection.send(&cancel);
            let cancelled = told.recv_timeout(LONG).expect("a CancelRequest");
            assert_eq!(cancelled[7], CANCEL_REQUEST, "{name}");
            assert_eq!(request_id(&cancelled), request_id(&nested), "{name}");
            assert_eq!(
                exception(&mut connection),
                CANCELLED,
                "{name}, answers: {answers}"
            );
        }
    }
}

//= RT-CORBA 1.2 §Distributable Threads
//% test
#[test]
fn a_cancelled_call_ends_even_if_its_server_never_replies() {
    for connection in clients() {
        let (fake, told) = told(false);
        let orb = Orb::builder()
            .connection(connection)
            .build()
            .expect("an ORB");
        let relay = Relay::unchecked_narrow(orb.string_to_object(&fake.reference()).expect("one"));
        let current = current_of(&orb);
        let theirs = current.clone();
        let calling = current.spawn(
            &SpawnOptions::default(),
            &ThreadConfig::default(),
            move || {
                let cancelled = relay.pass_on().map(|_| ());
                // It stays so: neither a call nor a segment begins any more.
                let again = relay.pass_on().map(|_| ());
                (
                    cancelled,
                    again,
                    theirs.begin_scheduling_segment("", None, None),
                )
            },
        );
        let calling = calling.expect("a thread");
        let sent = told.recv_timeout(LONG).expect("a request");
        // Its context names the thread.
        let id = context_of(&sent).expect("a context").thread_id;
        assert_eq!(ThreadId::from_bytes(id), calling.thread().id());
        calling.thread().cancel().expect("it runs");
        assert_eq!(
            calling.thread().state(),
            DistributableThreadState::Cancelled
        );
        let (cancelled, again, segment) = calling.join().expect("no panic");
        let is_it = |it: &SystemException| it.kind == ExceptionKind::ThreadCancelled;
        assert!(cancelled.is_err_and(|it| is_it(&it)), "{connection:?}");
        assert!(again.is_err_and(|it| is_it(&it)), "{connection:?}");
        assert!(
            matches!(segment, Err(SegmentError::System(it)) if is_it(&it)),
            "{connection:?}"
        );
        let by_thread = ConnectionStrategy::Multiplexed {
            wait: WaitStrategy::ConnectionThread,
        };
        if connection != by_thread {
            let message = told.recv_timeout(LONG).expect("a CancelRequest");
            assert_eq!(message[7], CANCEL_REQUEST, "{connection:?}");
        }
    }
}

/// omniORB closes a connection on a CancelRequest of GIOP 1.1, and calls of other threads may be lost.
#[test]
fn a_shared_connection_before_giop_1_2_gets_no_cancel_request() {
    for wait in [WaitStrategy::Reactor, WaitStrategy::LeaderFollowers] {
        let (fake, told) = told(false);
        let builder = Orb::builder().connection(ConnectionStrategy::Multiplexed { wait });
        let orb = builder.max_giop_version(Version::V1_1).build();
        let orb = orb.expect("an ORB");
        let relay = Relay::unchecked_narrow(orb.string_to_object(&fake.reference()).expect("one"));
        let called = relay.clone();
        let work = move || called.pass_on().map(|_| ());
        let calling =
            current_of(&orb).spawn(&SpawnOptions::default(), &ThreadConfig::default(), work);
        let calling = calling.expect("a thread");
        assert_eq!(told.recv_timeout(LONG).expect("a request")[7], REQUEST);
        calling.thread().cancel().expect("it runs");
        let cancelled = calling.join().expect("no panic");
        let failed = cancelled.expect_err("no reply came");
        assert_eq!(failed.kind, ExceptionKind::ThreadCancelled, "{wait:?}");
        let short = Duration::from_millis(20);
        // On a busy host, its time may pass before the request is sent.
        let next = until("the next request comes", || {
            let late = relay.with_timeout(short).pass_on();
            assert_eq!(late.expect_err("no reply").kind, ExceptionKind::Timeout);
            told.recv_timeout(short).ok()
        });
        assert_eq!(next[7], REQUEST, "{wait:?}");
    }
}
