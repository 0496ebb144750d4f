//! What the strategies do whose requests wait in queues: bounds, filters, and the threads that they choose.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rtorb::dispatch::FilteredRequest;
use rtorb::rt::{Priority, PriorityModel};
use rtorb::{
    DispatchStrategy, ExceptionKind, Limits, ObjectRef, Orb, OrbBuilder, Poa, PoaPolicies,
    SystemException,
};
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{CLOSE_CONNECTION, Connection, LOCATE_REQUEST, REQUEST, Request, Stream};
use rtorb_tests::relay::{Served, has_priorities, lane, model, priority, relay, way};
use rtorb_tests::running::until;
use rtorb_tests::stubs::exchange::{Party, PartyServant};
use rtorb_wire::giop::contexts::REMAINING_TIME;
use rtorb_wire::giop::remaining_time;

const TRANSIENT: &str = "IDL:omg.org/CORBA/TRANSIENT:1.0";
const OBJECT_NOT_EXIST: &str = "IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0";
const TIMEOUT: &str = "IDL:omg.org/CORBA/TIMEOUT:1.0";
/// The minor code of a request that expired before a servant was called.
const EXPIRED: u32 = 0x7274_6012;
const CANCEL_REQUEST: u8 = 2;
const OMG_1: u32 = 0x4f4d_0001;
const COMPLETED_NO: u32 = 1;

/// The strategies that queue requests, each with one thread for servants.
const QUEUED: [DispatchStrategy; 2] = [DispatchStrategy::WorkerPool, DispatchStrategy::FilterChain];

#[test]
fn a_request_beyond_the_queue_is_transient_and_those_in_it_are_served() {
    for dispatch in QUEUED {
        let limits = Limits::with(|limits| limits.queued_requests_max = 2);
        let closed = Closed::serve(Orb::builder().limits(limits), dispatch);
        let mut others = closed.known_client();
        let mut busy = closed.call(1);
        closed.until_entered(1);
        for id in 2..=5 {
            others.send(&closed.request(id));
        }
        for id in [4, 5] {
            let refused = others.answer().expect("an exception");
            assert_eq!(
                refused.id, id,
                "{dispatch}: at once, before those that wait"
            );
            let expected = (TRANSIENT.to_owned(), OMG_1, COMPLETED_NO);
            assert_eq!(refused.exception(), expected, "{dispatch}");
        }
        assert_eq!(closed.ours.orb.requests_refused(), 2, "{dispatch}");
        closed.open();
        assert_eq!(busy.answer().map(|answer| answer.status), Some(0));
        for id in [2, 3] {
            let served = others.answer().expect("it waited");
            assert_eq!((served.id, served.status), (id, 0), "{dispatch}: in order");
        }
        let again = others.ask(&closed.request(6)).expect("there is room again");
        assert_eq!((again.id, again.status), (6, 0), "{dispatch}");
    }
}

#[test]
fn a_request_beyond_the_threads_of_requests_is_transient_until_one_ends() {
    let limits = Limits::with(|limits| limits.queued_requests_max = 2);
    let builder = Orb::builder().limits(limits);
    let closed = Closed::serve(builder, DispatchStrategy::ThreadPerRequest);
    let mut busy = [1, 2].map(|id| closed.call(id));
    closed.until_entered(2);
    let mut other = Connection::to(closed.ours.address());
    let refused = other.ask(&closed.request(3)).expect("an exception");
    let expected = (TRANSIENT.to_owned(), OMG_1, COMPLETED_NO);
    assert_eq!((refused.id, refused.exception()), (3, expected));
    assert_eq!(closed.ours.orb.requests_refused(), 1);
    closed.open();
    for connection in &mut busy {
        assert_eq!(connection.answer().map(|answer| answer.status), Some(0));
    }
    until("a thread has ended", || {
        let answer = other.ask(&closed.request(4)).expect("an answer");
        (answer.status == 0).then_some(())
    });
}

//= GIOP 1.2 §15.4.4
//% test
#[test]
fn a_request_that_is_cancelled_in_the_queue_is_dropped() {
    for dispatch in QUEUED {
        let closed = Closed::serve(Orb::builder(), dispatch);
        let mut other = closed.known_client();
        let mut busy = closed.call(1);
        closed.until_entered(1);
        let mut cancel = Stream::new(CANCEL_REQUEST, 2, false);
        cancel.ulong(3);
        for message in [closed.request(2), closed.request(3), cancel.message()] {
            other.send(&message);
        }
        closed.until_read(&mut other);
        closed.open();
        other.send(&closed.request(4));
        assert_eq!(busy.answer().map(|answer| answer.status), Some(0));
        for id in [2, 4] {
            let served = other.answer().expect("it waited");
            assert_eq!((served.id, served.status), (id, 0), "{dispatch}");
        }
        assert_eq!(closed.ours.orb.requests_cancelled(), 1, "{dispatch}");
        closed.until_entered(3);
    }
}

#[test]
fn a_request_that_expires_in_the_queue_gets_timeout_and_reaches_no_servant() {
    for dispatch in QUEUED {
        let closed = Closed::serve(Orb::builder(), dispatch);
        let mut other = closed.known_client();
        let mut busy = closed.call(1);
        closed.until_entered(1);
        for id in [2, 3] {
            // It has not passed when the request arrives, and has when a thread takes the request out.
            other.send(&closed.request_within(id, 1));
        }
        other.send(&closed.request_within(4, 1_000_000_000_000));
        closed.until_read(&mut other);
        assert_eq!(closed.ours.orb.requests_expired(), 0, "{dispatch}");
        closed.open();
        assert_eq!(busy.answer().map(|answer| answer.status), Some(0));
        for id in [2, 3] {
            let expired = other.answer().expect("an exception");
            let expected = (TIMEOUT.to_owned(), EXPIRED, COMPLETED_NO);
            assert_eq!((expired.id, expired.exception()), (id, expected));
        }
        let served = other.answer().expect("it has time");
        assert_eq!((served.id, served.status), (4, 0), "{dispatch}");
        assert_eq!(closed.ours.orb.requests_expired(), 2, "{dispatch}");
        closed.until_entered(2);
    }
}

#[test]
fn requests_that_are_large_together_are_bounded_by_their_octets() {
    for dispatch in QUEUED {
        let limits = Limits::with(|limits| limits.message_bytes_max = 4096);
        let closed = Closed::serve(Orb::builder().limits(limits), dispatch);
        let (mut first, mut others) = (closed.known_client(), closed.known_client());
        let mut busy = closed.call(1);
        closed.until_entered(1);
        let mut stream = closed.get_level(2).head();
        // What an operation does not read of its arguments is nobody's.
        stream.align(8).raw(&[0; 3000]);
        let large = stream.message();
        // Not more of one client than wait in a queue.
        for _ in 0..3 {
            first.send(&large);
        }
        closed.until_read(&mut first);
        for _ in 0..3 {
            others.send(&large);
        }
        let refused = others.answer().expect("an exception");
        assert_eq!(refused.exception().0, TRANSIENT, "{dispatch}");
        closed.open();
        assert_eq!(busy.answer().map(|answer| answer.status), Some(0));
        for (client, served) in [(&mut first, 3), (&mut others, 2)] {
            for _ in 0..served {
                let status = client.answer().expect("an answer").status;
                assert_eq!(status, 0, "{dispatch}");
            }
        }
    }
}

#[test]
fn a_client_that_pipelines_has_a_few_requests_in_the_queue_and_all_are_served() {
    for dispatch in QUEUED {
        let limits = Limits::with(|limits| limits.queued_requests_max = 5);
        let closed = Closed::serve(Orb::builder().limits(limits), dispatch);
        let mut other = closed.known_client();
        let mut busy = closed.call(1);
        closed.until_entered(1);
        let mut pipelining = Connection::to(closed.ours.address());
        let requests: Vec<u8> = (2..100).flat_map(|id| closed.request(id)).collect();
        pipelining.send(&requests);
        other.send(&closed.request(100));
        // By then the server has read what it takes of the first client's.
        closed.until_read(&mut other);
        closed.open();
        assert_eq!(busy.answer().map(|answer| answer.status), Some(0));
        assert_eq!(other.answer().map(|answer| answer.status), Some(0));
        for id in 2..100 {
            let served = pipelining.answer().expect("it waited");
            assert_eq!((served.id, served.status), (id, 0), "{dispatch}");
        }
    }
}

#[test]
fn what_waits_when_the_orb_is_shut_down_is_answered_first() {
    for dispatch in QUEUED {
        let closed = Closed::serve(Orb::builder(), dispatch);
        let (mut connection, mut other) = (closed.known_client(), closed.known_client());
        connection.send(&closed.request(1));
        closed.until_entered(1);
        connection.send(&closed.request(2));
        other.send(&closed.request(3));
        closed.until_read(&mut connection);
        closed.until_read(&mut other);
        closed.ours.orb.shutdown();
        closed.open();
        for (connection, ids) in [(&mut connection, vec![1, 2]), (&mut other, vec![3])] {
            for id in ids {
                let answer = connection.answer().expect("it was taken");
                assert_eq!((answer.id, answer.status), (id, 0), "{dispatch}");
            }
            let end = connection.answer().expect("the server says that it ends");
            assert_eq!(end.kind, CLOSE_CONNECTION, "{dispatch}");
        }
    }
}

#[test]
fn filters_choose_the_servants_thread_before_objects_and_clients_do() {
    if !has_priorities() {
        return;
    }
    let server = Orb::builder()
        .dispatch(DispatchStrategy::FilterChain)
        .lanes([lane(10), lane(30), lane(50)])
        .filter(|request: &FilteredRequest<'_>| {
            (request.adapter == "urgent").then_some(priority(50))
        })
        .filter(|request: &FilteredRequest<'_>| {
            assert_ne!(request.adapter, "fatal", "as the test wants it");
            (request.operation == b"is_never_called").then_some(Priority::MAX)
        });
    let served = Served::by(server);
    let declared = model(PriorityModel::ServerDeclared, 30);
    let propagated = model(PriorityModel::ClientPropagated, 30);
    let cases = BTreeMap::from([
        ("plain", (vec![], None, 10)),
        ("declared", (vec![declared.clone()], Some(50), 30)),
        ("propagated", (vec![propagated.clone()], Some(49), 30)),
        ("more", (vec![propagated], Some(60), 50)),
        ("urgent", (vec![declared], None, 50)),
    ]);
    for (name, (policies, of, lane)) in cases {
        let relay = relay(&served, name, &policies);
        assert_eq!(
            way(Orb::builder(), &relay, of),
            Ok(vec![(lane, lane)]),
            "{name}"
        );
    }
    let fatal = relay(&served, "fatal", &[]);
    let failed = way(Orb::builder(), &fatal, None).expect_err("its filter panics");
    assert_eq!(failed.kind, ExceptionKind::Unknown);
    let plain = relay(&served, "again", &[]);
    assert_eq!(way(Orb::builder(), &plain, None), Ok(vec![(10, 10)]));
}

/// Does nothing, and keeps something.
struct Plain<T>(T);

impl<T: Send + Sync + 'static> PartyServant for Plain<T> {
    fn name(&self) -> Result<String, SystemException> {
        Ok(String::new())
    }
    fn level(&self) -> Result<i32, SystemException> {
        Ok(0)
    }
    fn set_level(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

#[test]
fn a_filter_sees_the_id_of_an_object_that_a_locator_serves() {
    let seen = Arc::<Mutex<Vec<(Vec<u8>, Vec<u8>)>>>::default();
    let seen_by_filter = Arc::clone(&seen);
    let builder = Orb::builder().dispatch(DispatchStrategy::FilterChain);
    let builder = builder.filter(move |request: &FilteredRequest<'_>| {
        let names = [request.adapter.as_bytes(), request.object_id].map(<[u8]>::to_vec);
        seen_by_filter.lock().expect("no panic").push(names.into());
        None
    });
    let served = Served::by(builder);
    let poa = served.root.create_poa("Located", PoaPolicies::PERSISTENT);
    let poa = poa.expect("the name is free");
    poa.manager().activate();
    poa.set_servant_locator::<Party, _, _>(|_: &[u8]| Ok(Plain(())))
        .expect("it has no objects");
    for id in ["one", "another"] {
        let party: Party = poa.create_reference_with_id(id).expect("persistent");
        party.name().expect("it is served");
        let expected = (b"Located".to_vec(), id.as_bytes().to_vec());
        assert_eq!(seen.lock().expect("no panic").pop(), Some(expected));
    }
}

#[test]
fn a_servant_that_panics_when_it_is_dropped_by_the_reading_thread_ends_nothing() {
    /// Panics when it goes.
    struct Fragile;
    impl Drop for Fragile {
        fn drop(&mut self) {
            panic!("as the test wants it");
        }
    }
    let doomed = Arc::<Mutex<Option<(Poa, ObjectRef)>>>::default();
    let its = Arc::clone(&doomed);
    // The object is looked at meanwhile: the thread that reads is the last to leave it.
    let builder = Orb::builder().filter(move |_: &FilteredRequest<'_>| {
        if let Some((poa, object)) = its.lock().expect("no panic").take() {
            poa.deactivate(&object).expect("it is active");
        }
        None
    });
    let closed = Closed::serve(builder, DispatchStrategy::FilterChain);
    closed.open();
    let root = closed.ours.orb.root_poa().expect("it listens");
    let fragile: Party = root.activate(Plain(Fragile)).expect("room");
    let key = closed.ours.key(fragile.as_object());
    *doomed.lock().expect("no panic") = Some((root, fragile.as_object().clone()));
    let mut client = Connection::to(closed.ours.address());
    let request = Request {
        key: &key,
        ..closed.get_level(1)
    };
    let gone = client.ask(&request.empty()).expect("an exception");
    assert_eq!(gone.exception().0, OBJECT_NOT_EXIST);
    let served = client.ask(&closed.request(2)).expect("it reads on");
    assert_eq!((served.id, served.status), (2, 0));
}

/// A server with one thread for servants, whose one servant waits until it is let go.
struct Closed {
    ours: Ours,
    gate: Arc<Gate>,
    key: Vec<u8>,
}

#[derive(Debug, Default)]
struct Gate {
    is_open: AtomicBool,
    entered: AtomicUsize,
}

impl Closed {
    fn serve(builder: OrbBuilder, dispatch: DispatchStrategy) -> Self {
        let ours = Ours::serve_as(builder.dispatch(dispatch).pool_threads(1));
        let gate = Arc::<Gate>::default();
        let root: Poa = ours.orb.root_poa().expect("it listens");
        let party: Party = root.activate(Gated(Arc::clone(&gate))).expect("room");
        let key = ours.key(party.as_object());
        Self { ours, gate, key }
    }

    fn get_level(&self, id: u32) -> Request<'_> {
        Request {
            minor: 2,
            big: false,
            id,
            reply: true,
            key: &self.key,
            operation: "_get_level",
        }
    }

    fn request(&self, id: u32) -> Vec<u8> {
        self.get_level(id).empty()
    }

    /// A request whose deadline is so many nanoseconds after its arrival.
    fn request_within(&self, id: u32, left_ns: u64) -> Vec<u8> {
        let mut stream = Stream::new(REQUEST, 2, false);
        stream.ulong(id).raw(&[3, 0, 0, 0]).ushort(0);
        stream.octets(&self.key).string("_get_level");
        let data = remaining_time(left_ns);
        stream.ulong(1).ulong(REMAINING_TIME).octets(&data);
        stream.message()
    }

    /// Waits until all that was sent has been read: the reading thread answers this itself.
    fn until_read(&self, connection: &mut Connection) {
        let mut stream = Stream::new(LOCATE_REQUEST, 2, false);
        stream.ulong(77).ushort(0).octets(&self.key);
        let located = connection.ask(&stream.message()).expect("an answer");
        assert_eq!((located.id, located.status), (77, 1));
    }

    /// A client whose earlier requests got small replies, so that several of its requests may wait in the queue.
    fn known_client(&self) -> Connection {
        let mut connection = Connection::to(self.ours.address());
        for id in 1000..1004 {
            let request = Request {
                operation: "_get_name",
                ..self.get_level(id)
            };
            let answer = connection.ask(&request.empty()).expect("an answer");
            assert_eq!((answer.id, answer.status), (id, 0));
        }
        connection
    }

    /// Sends a request on a connection of its own.
    fn call(&self, id: u32) -> Connection {
        let mut connection = Connection::to(self.ours.address());
        connection.send(&self.request(id));
        connection
    }

    fn until_entered(&self, times: usize) {
        until("the servant is called", || {
            (self.gate.entered.load(Ordering::SeqCst) == times).then_some(())
        });
    }

    fn open(&self) {
        self.gate.is_open.store(true, Ordering::SeqCst);
    }
}

struct Gated(Arc<Gate>);

impl PartyServant for Gated {
    fn name(&self) -> Result<String, SystemException> {
        Ok(String::new())
    }

    fn level(&self) -> Result<i32, SystemException> {
        self.0.entered.fetch_add(1, Ordering::SeqCst);
        until("the gate is opened", || {
            self.0.is_open.load(Ordering::SeqCst).then_some(())
        });
        Ok(1)
    }

    fn set_level(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }
}
