//! Managers of adapters (CORBA 3, 11.3.2): requests that wait, that are refused, and what becomes of those that wait.

use super::object_keys::{Names, client};
use rtorb::endpoint::Endpoint;
use rtorb::interceptors::{Intervention, ServerRequest, ServerRequestInterceptor};
use rtorb::poa::{PoaManager, PoaManagerState};
use rtorb::rt::{Policy, Threadpool};
use rtorb::{
    CompletionStatus, DispatchStrategy, ExceptionKind, Limits, Orb, OrbBuilder, Poa, PoaError,
    PoaPolicies, SystemException,
};
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{
    CLOSE_CONNECTION, Connection, LOCATE_REQUEST, REPLY, REQUEST, Request, Stream,
};
use rtorb_tests::running::until;
use rtorb_tests::stubs::{Relay, RelayServant, Seen};
use rtorb_wire::giop::contexts::REMAINING_TIME;
use rtorb_wire::giop::remaining_time;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Where a time is meant to pass.
const SHORT: Duration = Duration::from_millis(30);

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

/// An adapter with a manager of its own, and an object "x" that says its name.
struct Managed {
    ours: Ours,
    poa: Poa,
    manager: PoaManager,
}

impl Managed {
    fn serve(builder: OrbBuilder) -> Self {
        Self::of(Ours::serve_as(builder))
    }

    fn of(ours: Ours) -> Self {
        let root = ours.orb.root_poa().expect("the ORB runs");
        let manager = root.create_manager();
        let poa = root.create_poa_with_manager("Managed", PoaPolicies::PERSISTENT, &manager);
        let poa = poa.expect("it is free");
        let x: Relay = (poa.activate_with_id("x", Names("x".to_owned()))).expect("there is room");
        drop(x);
        Self { ours, poa, manager }
    }

    /// The object as an ORB of its own sees it.
    fn client(&self) -> Relay {
        client(&Orb::builder().build().expect("an ORB"), &self.poa, "x")
    }

    /// A client calls the object, and gives the call up when its request has been sent.
    fn give_up(&self, name: &str) {
        let brief = self.client().as_object().with_timeout(SHORT);
        let brief = Relay::unchecked_narrow(brief);
        until("a request is sent and given up", || {
            let (kind, _, completed) = who(&brief).expect_err("the manager holds it");
            assert_eq!(kind, ExceptionKind::Timeout, "{name}");
            // On a busy host, the time may pass before the request is sent.
            (completed == CompletionStatus::Maybe).then_some(())
        });
    }

    fn until_held(&self, count: u32) {
        until("requests wait", || {
            (self.manager.held_requests() == count).then_some(())
        });
    }
}

fn who(relay: &Relay) -> Result<String, Raised> {
    let seen = relay
        .pass_on()
        .map_err(|it| (it.kind, it.minor, it.completed));
    seen.map(|mut seen| seen.remove(0).who)
}

const OMG: u32 = 0x4f4d_0000;

/// An exception: its kind, minor code and completion status.
type Raised = (ExceptionKind, u32, CompletionStatus);

const REFUSED: Raised = (ExceptionKind::Transient, OMG | 1, CompletionStatus::No);
const INACTIVE: Raised = (ExceptionKind::ObjAdapter, OMG | 1, CompletionStatus::No);
const GONE: Raised = (ExceptionKind::ObjectNotExist, OMG | 1, CompletionStatus::No);
const NO_ADAPTER: Raised = (ExceptionKind::ObjectNotExist, OMG | 2, CompletionStatus::No);

type ManagerOperation = fn(&PoaManager);

/// The operations of a manager, and the states that they enter. The final one is the last.
const TRANSITIONS: [(ManagerOperation, PoaManagerState); 4] = [
    (PoaManager::activate, PoaManagerState::Active),
    (PoaManager::hold_requests, PoaManagerState::Holding),
    (PoaManager::discard_requests, PoaManagerState::Discarding),
    (PoaManager::deactivate, PoaManagerState::Inactive),
];

/// Calls the object from `count` ORBs, has `act` act once all calls wait, and returns what they got.
fn hold(managed: &Managed, count: u32, act: impl FnOnce()) -> Vec<Result<String, Raised>> {
    thread::scope(|scope| {
        let calls: Vec<_> = (0..count)
            .map(|_| scope.spawn(|| who(&managed.client())))
            .collect();
        managed.until_held(count);
        act();
        let ended = calls.into_iter().map(|call| call.join().expect("no panic"));
        ended.collect()
    })
}

//= CORBA 3 §Processing States
//% test
#[test]
fn a_manager_enters_each_state_from_each_other_but_leaves_inactive_for_none() {
    let ours = Ours::serve();
    let root = ours.orb.root_poa().expect("the ORB runs");
    for (enter, from) in TRANSITIONS {
        for (act, to) in TRANSITIONS {
            let manager = root.create_manager();
            assert_eq!(manager.state(), PoaManagerState::Holding);
            enter(&manager);
            assert_eq!(manager.state(), from);
            act(&manager);
            let is_final = from == PoaManagerState::Inactive;
            let expected = if is_final { from } else { to };
            assert_eq!(manager.state(), expected, "{from:?} to {to:?}");
        }
    }
}

#[test]
fn a_request_gets_what_the_state_says_and_an_implicit_operation_an_answer_in_each() {
    // The answer to a request; none if it waits.
    let answers = [Some(Ok("x")), None, Some(Err(REFUSED)), Some(Err(INACTIVE))];
    for collocated in [false, true] {
        let managed = if collocated {
            Managed::of(Ours::serve_collocated(Orb::builder()))
        } else {
            Managed::serve(Orb::builder())
        };
        let own: Relay = (managed.poa.create_reference_with_id("x")).expect("it is persistent");
        // The thread of a connection waits with its request, so each relay has a connection of its own.
        let relay = || {
            if collocated {
                own.clone()
            } else {
                managed.client()
            }
        };
        for ((enter, state), answer) in TRANSITIONS.into_iter().zip(answers) {
            let label = format!("{state:?}, collocated: {collocated}");
            enter(&managed.manager);
            let asked = || {
                let relay = relay();
                assert_eq!(relay.as_object().non_existent(), Ok(false), "{label}");
                let is_a = relay.as_object().is_a("IDL:Cubit:1.0");
                assert_eq!(is_a, Ok(false), "{label}");
                assert_eq!(relay.as_object().validate_connection(), Ok(()), "{label}");
            };
            asked();
            if let Some(answer) = answer {
                let answer = answer.map(str::to_owned);
                assert_eq!(who(&relay()), answer, "{label}");
                continue;
            }
            thread::scope(|scope| {
                let held = relay();
                let call = scope.spawn(move || who(&held));
                managed.until_held(1);
                asked();
                managed.manager.activate();
                let answer = call.join().expect("no panic");
                assert_eq!(answer.as_deref(), Ok("x"), "{label}");
            });
        }
    }
}

#[test]
fn a_request_in_progress_ends_normally_whatever_its_manager_object_or_adapter_enters() {
    type Act = fn(&Managed);
    // What becomes of the next request; nothing yet if it waits.
    let rows: [(Act, Option<Raised>); 5] = [
        (|managed| managed.manager.hold_requests(), None),
        (|managed| managed.manager.discard_requests(), Some(REFUSED)),
        (|managed| managed.manager.deactivate(), Some(INACTIVE)),
        (
            |managed| managed.poa.deactivate_id("b").expect("it is active"),
            Some(GONE),
        ),
        (|managed| managed.poa.destroy(), Some(NO_ADAPTER)),
    ];
    for (row, (act, refused)) in rows.into_iter().enumerate() {
        let managed = Managed::serve(Orb::builder());
        managed.manager.activate();
        let (blocks, called, lets) = Blocks::new();
        let own: Relay = (managed.poa.activate_with_id("b", blocks)).expect("there is room");
        drop(own);
        let [first, next] =
            [0, 1].map(|_| client(&Orb::builder().build().expect("an ORB"), &managed.poa, "b"));
        let call = move |relay: Relay| {
            let called = relay.pass_on();
            called.map_err(|it| (it.kind, it.minor, it.completed))
        };
        thread::scope(|scope| {
            let first = scope.spawn(move || call(first));
            called.recv_timeout(LONG).expect("it is called");
            act(&managed);
            if let Some(refused) = refused {
                assert_eq!(call(next), Err(refused), "{row}");
                lets.send(()).expect("it waits");
                assert_eq!(first.join().expect("no panic"), Ok(Vec::new()), "{row}");
                return;
            }
            let next = scope.spawn(move || call(next));
            managed.until_held(1);
            lets.send(()).expect("it waits");
            assert_eq!(first.join().expect("no panic"), Ok(Vec::new()), "{row}");
            managed.manager.activate();
            lets.send(()).expect("the servant is there");
            assert_eq!(next.join().expect("no panic"), Ok(Vec::new()), "{row}");
        });
    }
}

#[test]
fn held_requests_wait_and_hold_up_no_others_until_the_manager_is_activated() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let managed = Managed::serve(Orb::builder().dispatch(dispatch).pool_threads(2));
        assert_eq!(managed.manager.state(), PoaManagerState::Holding, "{name}");
        for _ in 0..3 {
            let answers = hold(&managed, 5, || {
                assert_eq!(managed.ours.cubit.cube_long(3), Ok(27), "{name}");
                assert_eq!(
                    managed.client().as_object().non_existent(),
                    Ok(false),
                    "{name}"
                );
                managed.manager.activate();
            });
            assert_eq!(answers, vec![Ok("x".to_owned()); 5], "{name}");
            managed.until_held(0);
            assert_eq!(who(&managed.client()).as_deref(), Ok("x"), "{name}");
            managed.manager.hold_requests();
        }
    }
}

#[test]
fn held_requests_get_what_the_next_state_says() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let managed = Managed::serve(Orb::builder().dispatch(dispatch).pool_threads(2));
        let answers = hold(&managed, 3, || managed.manager.discard_requests());
        assert_eq!(answers, vec![Err(REFUSED); 3], "{name}");
        assert_eq!(who(&managed.client()), Err(REFUSED), "{name}");
        managed.manager.hold_requests();
        let answers = hold(&managed, 3, || managed.manager.deactivate());
        assert_eq!(answers, vec![Err(INACTIVE); 3], "{name}");
        managed.manager.activate();
        managed.manager.hold_requests();
        assert_eq!(managed.manager.state(), PoaManagerState::Inactive, "{name}");
        assert_eq!(who(&managed.client()), Err(INACTIVE), "{name}");
    }
}

#[test]
fn requests_of_one_connection_go_past_a_held_one() {
    for (name, dispatch) in DispatchStrategy::ALL {
        if dispatch == DispatchStrategy::ThreadPerConnection {
            // Its thread waits with the request.
            continue;
        }
        let managed = Managed::serve(Orb::builder().dispatch(dispatch).pool_threads(2));
        let own: Relay = (managed.poa.create_reference_with_id("x")).expect("it is persistent");
        let (held, free) = (
            managed.ours.key(own.as_object()),
            managed.ours.key(managed.ours.cubit.as_object()),
        );
        let mut connection = Connection::to(managed.ours.address());
        for round in 0..3 {
            let request = |id, key, operation| Request {
                id,
                ..Request::two_way(key, operation)
            };
            connection.send(&request(100, &held, "pass_on").empty());
            connection.send(&request(101, &held, "pass_on").empty());
            managed.until_held(2);
            let answer = connection.ask(&request(102, &free, "cube_long").of_long(3));
            let answer = answer.expect("it is answered");
            assert_eq!((answer.id, answer.long()), (102, 27), "{name} {round}");
            managed.manager.activate();
            let mut ids = [0, 1].map(|_| {
                let answer = connection.answer().expect("it is answered");
                assert_eq!((answer.kind, answer.status), (REPLY, 0), "{name} {round}");
                answer.id
            });
            ids.sort_unstable();
            assert_eq!(ids, [100, 101], "{name} {round}");
            managed.manager.hold_requests();
        }
    }
}

#[test]
fn a_manager_that_holds_and_admits_in_turn_loses_and_repeats_no_request() {
    const CLIENTS: usize = 4;
    const CALLS: usize = 200;
    for (name, dispatch) in DispatchStrategy::ALL {
        let managed = Managed::serve(Orb::builder().dispatch(dispatch).pool_threads(2));
        let is_over = AtomicBool::new(false);
        let relay = managed.client();
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    managed.manager.hold_requests();
                    thread::yield_now();
                    managed.manager.activate();
                    thread::yield_now();
                }
                managed.manager.activate();
            });
            let clients: Vec<_> = (0..CLIENTS)
                .map(|_| {
                    scope.spawn(|| {
                        for _ in 0..CALLS {
                            assert_eq!(who(&relay).as_deref(), Ok("x"), "{name}");
                        }
                    })
                })
                .collect();
            let ended: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
            is_over.store(true, Ordering::SeqCst);
            assert!(ended.iter().all(Result::is_ok), "{name}");
        });
        managed.until_held(0);
    }
}

#[test]
fn as_many_requests_wait_as_a_queue_has_room_for_and_those_too_late_make_room() {
    let limits = Limits::with(|limits| limits.queued_requests_max = 2);
    let reactive = Orb::builder().dispatch(DispatchStrategy::Reactive);
    let managed = Managed::serve(reactive.limits(limits));
    let answers = hold(&managed, 2, || {
        assert_eq!(who(&managed.client()), Err(REFUSED));
        managed.manager.activate();
    });
    assert_eq!(answers, vec![Ok("x".to_owned()); 2]);
    managed.manager.hold_requests();
    // Their clients never cancel them.
    let own: Relay = (managed.poa.create_reference_with_id("x")).expect("it is persistent");
    let key = managed.ours.key(own.as_object());
    let mut connection = Connection::to(managed.ours.address());
    for id in [2, 3] {
        let mut late = Stream::new(REQUEST, 2, false);
        late.ulong(id).raw(&[3, 0, 0, 0]).ushort(0);
        late.octets(&key).string("pass_on");
        let left_ns = SHORT.as_nanos() as u64;
        late.ulong(1)
            .ulong(REMAINING_TIME)
            .octets(&remaining_time(left_ns));
        connection.send(&late.message());
    }
    managed.until_held(2);
    thread::sleep(2 * SHORT);
    let answers = thread::scope(|scope| {
        let call = scope.spawn(|| who(&managed.client()));
        for _ in 0..2 {
            let (name, ..) = connection.answer().expect("it is answered").exception();
            assert_eq!(name, "IDL:omg.org/CORBA/TIMEOUT:1.0");
        }
        managed.until_held(1);
        managed.manager.activate();
        call.join().expect("no panic")
    });
    assert_eq!(answers.as_deref(), Ok("x"));
}

#[test]
fn a_held_request_ends_with_its_deadline_its_connection_or_its_orb() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let managed = Managed::serve(Orb::builder().dispatch(dispatch).pool_threads(2));
        // Its client gives it up, and cancels it.
        managed.give_up(name);
        if dispatch == DispatchStrategy::ThreadPerConnection {
            // Its thread reads nothing while it waits.
            managed.until_held(1);
            managed.manager.activate();
            managed.until_held(0);
            managed.manager.hold_requests();
        }
        managed.until_held(0);
        if dispatch != DispatchStrategy::ThreadPerConnection {
            let own: Relay = (managed.poa.create_reference_with_id("x")).expect("it is persistent");
            let key = managed.ours.key(own.as_object());
            let mut connection = Connection::to(managed.ours.address());
            connection.send(&Request::two_way(&key, "pass_on").empty());
            managed.until_held(1);
            drop(connection);
            managed.until_held(0);
        }
        let answers = hold(&managed, 2, || managed.ours.orb.shutdown());
        for answer in answers {
            let (kind, ..) = answer.expect_err("the server has ended");
            let is_told = matches!(kind, ExceptionKind::Transient | ExceptionKind::CommFailure);
            assert!(is_told, "{name} {kind:?}");
        }
    }
}

#[test]
fn a_request_that_waits_in_an_adapter_that_ends_has_no_object() {
    for (name, dispatch) in DispatchStrategy::ALL {
        if dispatch == DispatchStrategy::ThreadPerConnection {
            continue;
        }
        let managed = Managed::serve(Orb::builder().dispatch(dispatch).pool_threads(2));
        let answers = hold(&managed, 2, || managed.poa.destroy());
        for answer in answers {
            let (kind, ..) = answer.expect_err("it is gone");
            assert_eq!(kind, ExceptionKind::ObjectNotExist, "{name}");
        }
        managed.until_held(0);
    }
}

/// Waits for its word in each call.
struct Blocks {
    called: Mutex<Sender<()>>,
    goes_on: Mutex<Receiver<()>>,
}

impl Blocks {
    /// Makes it, with what tells of its calls, and what ends them.
    fn new() -> (Self, Receiver<()>, Sender<()>) {
        let ((calls, called), (lets, goes_on)) = (channel(), channel());
        let blocks = Self {
            called: Mutex::new(calls),
            goes_on: Mutex::new(goes_on),
        };
        (blocks, called, lets)
    }

    /// Activates it. Returns its key, what tells of its calls, and what ends them.
    fn activate(ours: &Ours) -> (Vec<u8>, Receiver<()>, Sender<()>) {
        let (blocks, called, lets) = Self::new();
        let relay: Relay = ours.poa.activate(blocks).expect("there is room");
        (ours.key(relay.as_object()), called, lets)
    }
}

impl RelayServant for Blocks {
    fn pass_on(&self) -> Result<Vec<Seen>, SystemException> {
        let _ = self.called.lock().expect("no panic").send(());
        let _ = self.goes_on.lock().expect("no panic").recv_timeout(LONG);
        Ok(Vec::new())
    }

    fn shutdown(&self) -> Result<(), SystemException> {
        Ok(())
    }
}

/// The address of an object's first endpoint.
fn address(relay: &Relay) -> SocketAddr {
    let first = relay.as_object().endpoints().next();
    let Some(Endpoint::Tcp { host, port }) = first else {
        panic!("a pool listens on TCP");
    };
    format!("{host}:{port}").parse().expect("a numeric address")
}

/// The only thread of a pool is in a servant when the requests become due, and does not read any more when that returns.
#[test]
fn the_end_of_a_pool_drops_the_held_requests_of_its_clients_and_does_not_wait_for_them() {
    // Longer than the test takes.
    let limits = Limits::with(|limits| limits.deferred_reply_time = 10 * LONG);
    let ours = Ours::serve_as(Orb::builder().limits(limits));
    let rt_orb = ours.orb.rt_orb();
    let pool = rt_orb.create_threadpool(Threadpool::default());
    let pool = pool.expect("a thread of time sharing");
    let root = ours.orb.root_poa().expect("the ORB runs");
    let policies = || PoaPolicies::default().with(Policy::Threadpool(pool));
    let busy = root.create_poa("Busy", policies()).expect("it is free");
    let manager = root.create_manager();
    let held = root.create_poa_with_manager("Held", policies(), &manager);
    let held = held.expect("it is free");
    let (blocks, called, lets) = Blocks::new();
    let blocks: Relay = busy.activate(blocks).expect("there is room");
    let x: Relay = held.activate(Names("x".to_owned())).expect("room");

    let server = address(&x);
    let mut waiting = Connection::to(server);
    waiting.send(&Request::two_way(&ours.key(x.as_object()), "pass_on").empty());
    until("the request waits", || {
        (manager.held_requests() == 1).then_some(())
    });
    let mut called_one = Connection::to(server);
    called_one.send(&Request::two_way(&ours.key(blocks.as_object()), "pass_on").empty());
    called.recv_timeout(LONG).expect("it is called");
    busy.destroy();
    held.destroy();
    let (ends, ended) = channel();
    thread::spawn(move || ends.send(rt_orb.destroy_threadpool(pool).is_ok()));
    until("the pool is stopped", || {
        TcpStream::connect_timeout(&server, Duration::from_secs(1)).err()
    });
    lets.send(()).expect("it waits");
    assert_eq!(called_one.answer().map(|it| it.kind), Some(REPLY));
    assert_eq!(ended.recv_timeout(LONG), Ok(true));
    let told = waiting.answer().map(|it| it.kind);
    assert_eq!((told, waiting.answer()), (Some(CLOSE_CONNECTION), None));
    assert_eq!(manager.held_requests(), 0);
}

/// A thread may take a request that its connection has left in a queue after the connection has ended.
#[test]
fn a_request_that_is_held_after_the_end_of_its_connection_is_dropped() {
    let pool = Orb::builder().dispatch(DispatchStrategy::WorkerPool);
    let managed = Managed::serve(pool.pool_threads(1));
    let (blocks, called, lets) = Blocks::activate(&managed.ours);
    let own: Relay = (managed.poa.create_reference_with_id("x")).expect("it is persistent");
    let x = managed.ours.key(own.as_object());
    let mut ending = Connection::to(managed.ours.address());
    let cubit = managed.ours.key(managed.ours.cubit.as_object());
    for _ in 0..4 {
        // The connection of a new client is not read while it has a request in the queue.
        let answer = ending.ask(&Request::two_way(&cubit, "cube_void").empty());
        assert_eq!(answer.map(|it| it.kind), Some(REPLY));
    }
    let mut busy = Connection::to(managed.ours.address());
    busy.send(&Request::two_way(&blocks, "pass_on").empty());
    called.recv_timeout(LONG).expect("it is called");
    ending.send(&Request::two_way(&x, "pass_on").empty());
    drop(ending);
    // The thread that reads has seen the end before it answers this.
    let mut other = Connection::to(managed.ours.address());
    for id in 0..3 {
        let mut locate = Stream::new(LOCATE_REQUEST, 2, false);
        locate.ulong(id).ushort(0).octets(&blocks);
        assert_eq!(other.ask(&locate.message()).map(|it| it.id), Some(id));
    }
    lets.send(()).expect("it waits");
    assert_eq!(busy.answer().map(|it| it.kind), Some(REPLY));
    // It is served behind the one that is dropped.
    assert_eq!(managed.ours.cubit.cube_long(3), Ok(27));
    managed.until_held(0);
}

#[test]
fn a_released_request_does_not_wait_until_its_client_sends_nothing_new() {
    const NEWER: u32 = 200;
    for dispatch in [
        DispatchStrategy::Reactive,
        DispatchStrategy::LeaderFollowers,
    ] {
        let managed = Managed::serve(Orb::builder().dispatch(dispatch).pool_threads(1));
        let (blocks, called, lets) = Blocks::activate(&managed.ours);
        let own: Relay = (managed.poa.create_reference_with_id("x")).expect("it is persistent");
        let (x, cubit) = (
            managed.ours.key(own.as_object()),
            managed.ours.key(managed.ours.cubit.as_object()),
        );
        let request = |id, key, operation| Request {
            id,
            ..Request::two_way(key, operation)
        };
        let mut connection = Connection::to(managed.ours.address());
        connection.send(&request(1, &x, "pass_on").empty());
        managed.until_held(1);
        connection.send(&request(2, &blocks, "pass_on").empty());
        called.recv_timeout(LONG).expect("it is called");
        let newer = (0..NEWER).flat_map(|number| request(3 + number, &cubit, "cube_void").empty());
        connection.send(&newer.collect::<Vec<_>>());
        managed.manager.activate();
        lets.send(()).expect("it waits");
        let ids = (0..NEWER + 2).map(|_| connection.answer().expect("it is answered").id);
        let place = ids.collect::<Vec<_>>().iter().position(|id| *id == 1);
        assert!(place < Some(10), "{dispatch:?} {place:?}");
    }
}

#[test]
fn a_thread_that_waits_with_a_request_goes_on_when_its_adapter_ends() {
    let per_connection = Orb::builder().dispatch(DispatchStrategy::ThreadPerConnection);
    for collocated in [false, true] {
        let managed = if collocated {
            Managed::of(Ours::serve_collocated(Orb::builder()))
        } else {
            Managed::serve(per_connection.clone())
        };
        let own: Relay = (managed.poa.create_reference_with_id("x")).expect("it is persistent");
        let relay = if collocated { own } else { managed.client() };
        // The manager holds as before for its other adapters.
        let root = managed.ours.orb.root_poa().expect("the ORB runs");
        let sibling =
            root.create_poa_with_manager("Sibling", PoaPolicies::PERSISTENT, &managed.manager);
        let sibling = sibling.expect("it is free");
        let stays: Relay = (sibling.activate_with_id("y", Names("y".to_owned()))).expect("room");
        let stays = if collocated {
            stays
        } else {
            client(&Orb::builder().build().expect("an ORB"), &sibling, "y")
        };
        thread::scope(|scope| {
            let call = scope.spawn(|| rtorb::with_deadline(LONG, || who(&relay)));
            let other = scope.spawn(|| rtorb::with_deadline(LONG, || who(&stays)));
            managed.until_held(2);
            managed.poa.destroy();
            let (kind, ..) = call.join().expect("no panic").expect_err("it is gone");
            assert_eq!(kind, ExceptionKind::ObjectNotExist, "{collocated}");
            managed.until_held(1);
            managed.manager.activate();
            assert_eq!(other.join().expect("no panic").as_deref(), Ok("y"));
        });
    }
}

#[test]
fn a_call_of_an_object_of_the_same_orb_waits_on_its_own_thread() {
    let managed = Managed::of(Ours::serve_collocated(Orb::builder()));
    let own: Relay = (managed.poa.create_reference_with_id("x")).expect("it is persistent");
    let answer = thread::scope(|scope| {
        let call = scope.spawn(|| who(&own));
        managed.until_held(1);
        managed.manager.activate();
        call.join().expect("no panic")
    });
    assert_eq!(answer.as_deref(), Ok("x"));
    managed.manager.hold_requests();
    let late = rtorb::with_deadline(SHORT, || who(&own)).map_err(|(kind, ..)| kind);
    assert_eq!(late, Err(ExceptionKind::Timeout));
    managed.until_held(0);
    let answer = thread::scope(|scope| {
        let call = scope.spawn(|| who(&own));
        managed.until_held(1);
        managed.manager.deactivate();
        call.join().expect("no panic")
    });
    assert_eq!(answer, Err(INACTIVE));
}

#[test]
fn interceptors_see_a_held_request_once_when_it_is_served() {
    #[derive(Default)]
    struct Counts {
        begun: AtomicUsize,
        ended: AtomicUsize,
    }
    struct CountsThem(Arc<Counts>);
    impl ServerRequestInterceptor for CountsThem {
        fn receive_request(&self, _: &mut ServerRequest<'_>) -> Result<(), Intervention> {
            self.0.begun.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }

        fn send_reply(&self, _: &mut ServerRequest<'_>) -> Result<(), SystemException> {
            self.0.ended.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }
    for collocated in [false, true] {
        let counts = Arc::new(Counts::default());
        let builder = Orb::builder().server_interceptor(CountsThem(Arc::clone(&counts)));
        let managed = if collocated {
            Managed::of(Ours::serve_collocated(builder))
        } else {
            Managed::serve(builder)
        };
        let own: Relay = (managed.poa.create_reference_with_id("x")).expect("it is persistent");
        let relay = if collocated { own } else { managed.client() };
        let answer = thread::scope(|scope| {
            let call = scope.spawn(|| who(&relay));
            managed.until_held(1);
            assert_eq!(counts.begun.load(Ordering::SeqCst), 0);
            managed.manager.activate();
            call.join().expect("no panic")
        });
        assert_eq!(answer.as_deref(), Ok("x"));
        let seen = [&counts.begun, &counts.ended].map(|it| it.load(Ordering::SeqCst));
        assert_eq!(seen, [1, 1]);
    }
}

#[test]
fn adapters_share_the_manager_that_they_are_made_with() {
    let managed = Managed::serve(Orb::builder());
    let root = managed.ours.orb.root_poa().expect("the ORB runs");
    let make = |parent: &Poa, name: &str, manager: &PoaManager| {
        parent.create_poa_with_manager(name, PoaPolicies::PERSISTENT, manager)
    };
    let sibling = make(&root, "Sibling", &managed.manager).expect("it is free");
    let child = managed.poa.create_poa("Child", PoaPolicies::PERSISTENT);
    let child = child.expect("it is free");
    let other = make(&root, "Other", &root.create_manager()).expect("it is free");
    managed.manager.activate();
    let states = [&sibling, &child, &other, &root].map(|poa| poa.manager().state());
    let (active, holding) = (PoaManagerState::Active, PoaManagerState::Holding);
    assert_eq!(states, [active, active, holding, active]);
    child.manager().discard_requests();
    assert_eq!(managed.manager.state(), PoaManagerState::Discarding);
    assert_eq!(root.manager().state(), active);
    let foreign = Managed::serve(Orb::builder());
    let refused = make(&root, "Foreign", &foreign.manager).map(|_| ());
    let is_told =
        matches!(&refused, Err(PoaError::System(told)) if told.kind == ExceptionKind::BadParam);
    assert!(is_told, "{refused:?}");
}
