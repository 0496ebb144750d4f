//! Reply handlers and pollers of CORBA Messaging: each call is told once, whatever ends it, on a thread of the application.

use crate::started_calls::{
    FORWARD, LEADING, LONG, SHORT, location_bytes, object_of, sends_cancels, silent, supporting,
    with,
};
use rtorb::{
    CompletionStatus, ConnectionStrategy, ExceptionKind, FullCallTable, Limits, Orb, ReplyDriver,
    SystemException,
};
use rtorb_tests::crane::{AmiMachineHandler, Machine};
use rtorb_tests::fake::{FakeServer, Peer, reply};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// What a handler is told, and on which thread.
type Told = (Result<i32, SystemException>, ThreadId);

/// Passes on what it is told, after a function of the test.
struct Handler {
    first: fn(&Self),
    /// The object that `first` may call.
    machine: Machine,
    told: Mutex<Sender<Told>>,
}

impl Handler {
    fn new(machine: &Machine, first: fn(&Self)) -> (Arc<Self>, Receiver<Told>) {
        let (sender, told) = channel();
        let handler = Self {
            first,
            machine: machine.clone(),
            told: Mutex::new(sender),
        };
        (Arc::new(handler), told)
    }

    fn note(&self, result: Result<i32, SystemException>) {
        (self.first)(self);
        let told = self.told.lock().expect("nobody panics under it");
        told.send((result, thread::current().id()))
            .expect("the test listens");
    }
}

impl AmiMachineHandler for Handler {
    fn get_hours(&self, ami_return_val: i32) {
        self.note(Ok(ami_return_val));
    }

    fn get_hours_excep(&self, excep_holder: SystemException) {
        self.note(Err(excep_holder));
    }

    fn start_(&self) {
        self.note(Ok(0));
    }

    fn start__excep(&self, excep_holder: SystemException) {
        self.note(Err(excep_holder));
    }
}

fn machine(orb: &Orb, server: &FakeServer) -> Machine {
    Machine::unchecked_narrow(object_of(orb, server))
}

fn orb_and_machine(connection: ConnectionStrategy, server: &FakeServer) -> (Orb, Machine) {
    let orb = with(connection, Orb::builder());
    let machine = machine(&orb, server);
    (orb, machine)
}

/// The reply that tells so many hours.
fn hours(id: u32, hours: i32) -> Vec<u8> {
    reply(id, 0, |body| {
        body.long(hours);
    })
}

/// A server whose machine has run as many hours as it has had calls.
fn counting() -> FakeServer {
    FakeServer::new(|_, mut peer: Peer| {
        let mut calls = 0;
        while let Some(id) = peer.request() {
            calls += 1;
            peer.send(&hours(id, calls));
        }
    })
}

/// A server whose machine says that it has run 41 hours, once that is released.
fn holding() -> (Sender<()>, FakeServer) {
    let (release, order) = channel();
    let order = Arc::new(Mutex::new(order));
    let server = FakeServer::new(move |_, mut peer: Peer| {
        let id = peer.request().expect("a request");
        let _ = order.lock().expect("nobody panics").recv();
        peer.send(&hours(id, 41));
        peer.wait_for_end();
    });
    (release, server)
}

/// Runs the driver until a handler was told something, which must be on this thread.
fn next(replies: &ReplyDriver, told: &Receiver<Told>) -> Result<i32, SystemException> {
    loop {
        if let Ok((result, thread)) = told.try_recv() {
            assert_eq!(thread, thread::current().id());
            return result;
        }
        assert!(replies.run_once(Some(Instant::now() + LONG)));
    }
}

#[test]
fn calls_of_one_handler_are_told_in_the_order_of_their_replies() {
    for connection in supporting() {
        let server = counting();
        let (orb, machine) = orb_and_machine(connection, &server);
        let replies = orb.reply_driver().expect("it has started calls");
        let (handler, told) = Handler::new(&machine, |_| {});
        for _ in 0..3 {
            machine.sendc_get_hours(&handler).expect("it is sent");
        }
        let all = [(); 3].map(|()| next(&replies, &told));
        assert_eq!(all, [Ok(1), Ok(2), Ok(3)], "{connection}");
        assert_eq!(Arc::strong_count(&handler), 1, "no handler is kept");
    }
}

#[test]
fn a_deadline_is_told_once() {
    for connection in supporting() {
        let (server, _came) = silent();
        let (orb, machine) = orb_and_machine(connection, &server);
        let replies = orb.reply_driver().expect("it has started calls");
        let (handler, told) = Handler::new(&machine, |_| {});
        let hasty = machine.with_timeout(10 * SHORT);
        // On a busy host, the deadline may pass before the request is sent: then the handler is told nothing.
        let sent = [(); 2].map(|()| hasty.sendc_get_hours(&handler));
        for failed in sent.iter().filter_map(|sent| sent.as_ref().err()) {
            assert_eq!(failed.kind, ExceptionKind::Timeout, "{failed}");
        }
        for _ in sent.iter().filter(|sent| sent.is_ok()) {
            let failed = next(&replies, &told).expect_err("no reply comes");
            assert_eq!(failed.kind, ExceptionKind::Timeout, "{failed}");
        }
        assert_eq!(Arc::strong_count(&handler), 1, "{connection}");
    }
}

#[test]
fn a_handler_that_panics_ends_alone() {
    for connection in supporting() {
        let server = counting();
        let (orb, machine) = orb_and_machine(connection, &server);
        let replies = orb.reply_driver().expect("it has started calls");
        let (panicking, untold) = Handler::new(&machine, |_| panic!("a handler panics"));
        let (handler, told) = Handler::new(&machine, |_| {});
        machine.sendc_get_hours(&panicking).expect("it is sent");
        machine.sendc_get_hours(&handler).expect("it is sent");
        assert_eq!(next(&replies, &told), Ok(2), "{connection}");
        assert_eq!(Arc::strong_count(&panicking), 1, "{connection}");
        assert!(untold.try_recv().is_err());
    }
}

#[test]
fn a_handler_sends_the_next_call_at_the_place_of_the_last() {
    for connection in supporting() {
        let server = counting();
        let limits = Limits::with(|limits| limits.started_calls_max = 1);
        let orb = with(connection, Orb::builder().limits(limits));
        let machine = machine(&orb, &server);
        let replies = orb.reply_driver().expect("it has started calls");
        let (last, told) = Handler::new(&machine, |_| {});
        let (handler, first) = Handler::new(&machine, |it| {
            let (other, _) = Handler::new(&it.machine, |_| {});
            it.machine.sendc_get_hours(&other).expect("a place is free");
            let refused = it.machine.sendc_get_hours(&other);
            let refused = refused.expect_err("and no other one");
            assert_eq!(refused.kind, ExceptionKind::NoResources);
        });
        machine.sendc_get_hours(&handler).expect("it is sent");
        assert_eq!(next(&replies, &first), Ok(1), "{connection}");
        // The handler of the second call is told, and panics: nobody listens.
        while machine.sendc_get_hours(&last).is_err() {
            replies.run_once(Some(Instant::now() + LONG));
        }
        assert_eq!(next(&replies, &told), Ok(3), "{connection}");
    }
}

#[test]
fn a_call_that_a_handler_sends_does_not_wait_for_a_place() {
    for connection in supporting() {
        let server = counting();
        let limits = Limits::with(|limits| limits.started_calls_max = 1);
        let builder = Orb::builder().full_call_table(FullCallTable::Wait);
        let orb = with(connection, builder.limits(limits));
        let machine = machine(&orb, &server);
        let replies = orb.reply_driver().expect("it has started calls");
        let (handler, told) = Handler::new(&machine, |it| {
            let (other, _) = Handler::new(&it.machine, |_| {});
            it.machine.sendc_get_hours(&other).expect("a place is free");
            let refused = it.machine.sendc_get_hours(&other);
            let refused = refused.expect_err("and no other one");
            assert_eq!(refused.kind, ExceptionKind::NoResources);
        });
        machine.sendc_get_hours(&handler).expect("it is sent");
        assert_eq!(next(&replies, &told), Ok(1), "{connection}");
        assert_eq!(orb.started_calls_delayed(), 0, "{connection}");
    }
}

#[test]
fn a_call_that_cannot_be_sent_is_told_to_its_caller() {
    let (server, _came) = silent();
    for connection in [ConnectionStrategy::Exclusive, LEADING] {
        let (orb, machine) = orb_and_machine(connection, &server);
        let (handler, told) = Handler::new(&machine, |_| {});
        if connection == LEADING {
            orb.shutdown();
        }
        let refused = machine.sendc_get_hours(&handler);
        let kind = refused.expect_err("it is not sent").kind;
        let is_right = kind == ExceptionKind::InvPolicy || kind == ExceptionKind::BadInvOrder;
        assert!(is_right, "{kind}");
        assert_eq!(Arc::strong_count(&handler), 1);
        assert!(told.try_recv().is_err());
    }
}

#[test]
fn handlers_are_told_the_end_of_their_orb_once() {
    for connection in supporting() {
        let (server, came) = silent();
        let (orb, machine) = orb_and_machine(connection, &server);
        let replies = orb.reply_driver().expect("it has started calls");
        let (handler, told) = Handler::new(&machine, |_| {});
        for _ in 0..2 {
            machine.sendc_get_hours(&handler).expect("it is sent");
            came.recv_timeout(LONG).expect("it comes");
        }
        orb.shutdown();
        replies.run_once(Some(Instant::now() + SHORT));
        assert!(told.try_recv().is_err(), "calls go on after `shutdown`");
        orb.destroy().expect("no servant does it");
        for _ in 0..2 {
            let (ended, thread) = told.try_recv().expect("`destroy` tells it");
            let ended = ended.expect_err("no reply comes");
            assert_eq!(ended.kind, ExceptionKind::BadInvOrder, "{ended}");
            assert_eq!(ended.completed, CompletionStatus::Maybe, "{ended}");
            assert_eq!(thread, thread::current().id());
            if sends_cancels(connection) {
                let (is_cancel, _) = came.recv_timeout(LONG).expect("it is cancelled");
                assert!(is_cancel, "{connection}");
            }
        }
        orb.destroy().expect("no servant does it");
        replies.run_once(Some(Instant::now()));
        assert!(told.try_recv().is_err(), "each handler is told once");
        assert_eq!(Arc::strong_count(&handler), 1, "{connection}");
    }
}

#[test]
fn a_reply_that_came_before_the_end_of_its_orb_is_told() {
    for connection in supporting() {
        let server = counting();
        let (orb, machine) = orb_and_machine(connection, &server);
        let (handler, told) = Handler::new(&machine, |_| {});
        machine.sendc_get_hours(&handler).expect("it is sent");
        // On the same connection: the first reply was read.
        assert_eq!(machine.start().hours().wait(), Ok(2));
        assert!(told.try_recv().is_err(), "nobody runs the driver");
        orb.destroy().expect("no servant does it");
        assert_eq!(told.try_recv().map(|it| it.0), Ok(Ok(1)), "{connection}");
    }
}

#[test]
fn a_moved_object_is_followed_without_a_wait() {
    for connection in supporting() {
        let (release, there) = holding();
        let location = rtorb::ior::Ior::parse(&there.reference()).expect("a reference");
        let here = FakeServer::new(move |_, mut peer: Peer| {
            while let Some(id) = peer.request() {
                peer.send(&reply(id, FORWARD, |body| {
                    body.raw(&location_bytes(&location));
                }));
            }
        });
        let (orb, moved) = orb_and_machine(connection, &here);
        let replies = orb.reply_driver().expect("it has started calls");
        let (handler, told) = Handler::new(&moved, |_| {});
        moved.sendc_get_hours(&handler).expect("it is sent");
        let server = counting();
        let other = machine(&orb, &server);
        let (other_handler, told_other) = Handler::new(&other, |_| {});
        // Until it is told, the request of the first goes to its new place.
        for calls in 1..10 {
            other.sendc_get_hours(&other_handler).expect("it is sent");
            assert_eq!(next(&replies, &told_other), Ok(calls), "{connection}");
        }
        assert!(told.try_recv().is_err(), "the object has not replied");
        release.send(()).expect("the server waits for it");
        assert_eq!(next(&replies, &told), Ok(41), "{connection}");
    }
}

#[test]
fn a_thread_that_only_drives_tells_handlers_of_others() {
    for connection in supporting() {
        let server = counting();
        let (orb, machine) = orb_and_machine(connection, &server);
        let replies = orb.reply_driver().expect("it has started calls");
        let (handler, told) = Handler::new(&machine, |_| {});
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let driving = scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    replies.run_once(Some(Instant::now() + LONG));
                }
            });
            for _ in 0..10 {
                machine.sendc_get_hours(&handler).expect("it is sent");
                let (result, thread) = told.recv_timeout(LONG).expect("the driver tells it");
                assert!(result.is_ok(), "{connection}: {result:?}");
                assert_eq!(thread, driving.thread().id());
            }
            is_over.store(true, Ordering::SeqCst);
            replies.waker().wake();
            driving.join().expect("it does not panic");
        });
    }
}

//= CORBA 3 §22.9
//% test
//= CORBA 3 §22.10.1.1
//% test
#[test]
fn a_poller_says_why_it_has_no_reply() {
    for connection in supporting() {
        let (release, server) = holding();
        let (_orb, machine) = orb_and_machine(connection, &server);
        let mut poller = machine.sendp_get_hours();
        assert_eq!(poller.is_ready(SHORT), Ok(false), "{connection}");
        let missing = poller.get_hours(Duration::ZERO).expect_err("it is missing");
        assert_eq!(missing.kind, ExceptionKind::NoResponse, "{missing}");
        let late = poller.get_hours(SHORT).expect_err("it is missing");
        assert_eq!(late.kind, ExceptionKind::Timeout, "{late}");
        release.send(()).expect("the server waits for it");
        assert_eq!(poller.is_ready(None), Ok(true), "{connection}");
        assert_eq!(poller.get_hours(Duration::ZERO), Ok(41), "{connection}");
        let taken = poller.get_hours(None).expect_err("it was taken");
        assert_eq!(taken.kind, ExceptionKind::ObjectNotExist, "{taken}");
    }
}

#[test]
fn a_dropped_poller_gives_its_call_up() {
    let (server, came) = silent();
    let (_orb, machine) = orb_and_machine(LEADING, &server);
    drop(machine.sendp_get_hours());
    assert_eq!(came.recv_timeout(LONG), Ok((false, 0)));
    assert_eq!(came.recv_timeout(LONG), Ok((true, 0)));
}
