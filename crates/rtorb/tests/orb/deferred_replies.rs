//! Replies that servants defer: whoever answers, in whatever order, and whatever happens to the connection meanwhile.

use super::slow_clients::until_full;
use rtorb::rt::{Policy, Priority, PriorityModel};
use rtorb::{
    CompletionStatus, Deadlines, DispatchStrategy, ExceptionKind, Limits, Orb, OrbBuilder,
    PoaPolicies, Responder, SystemException,
};
use rtorb_tests::crane::{
    MachineDeferredServant, Overload, Winch, WinchDeferredServant, WinchLiftError,
};
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{Answer, Connection, REQUEST, Request, Stream};
use rtorb_tests::running::until;
use rtorb_wire::giop::contexts::REMAINING_TIME;
use rtorb_wire::giop::remaining_time;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

/// Longer than any test needs, and where a time is meant to pass.
const PATIENCE: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(20);

const CANCEL_REQUEST: u8 = 2;
const CLOSE_CONNECTION: u8 = 5;
const NO_RESPONSE: &str = "IDL:omg.org/CORBA/NO_RESPONSE:1.0";
const NOT_ANSWERED: (u32, u32) = (0x7274_6010, 2);
const TIMEOUT: &str = "IDL:omg.org/CORBA/TIMEOUT:1.0";
const EXPIRED: (u32, u32) = (0x7274_6012, 1);
const NOT_ANSWERED_IN_TIME: (u32, u32) = (0x7274_6013, 2);
const REPLIES_FULL: (&str, u32, u32) = ("IDL:omg.org/CORBA/TRANSIENT:1.0", 0x7274_601c, 1);
const CONNECTION_REPLIES_FULL: (&str, u32, u32) =
    ("IDL:omg.org/CORBA/TRANSIENT:1.0", 0x7274_601e, 1);

type Hours = Responder<i32>;
type Lift = Responder<(i32, String), WinchLiftError>;

/// A servant that gives its responders to the test.
struct Deferrer {
    hours: Mutex<Sender<Hours>>,
    lifts: Mutex<Sender<Lift>>,
}

impl MachineDeferredServant for Deferrer {
    fn hours(&self, responder: Hours) {
        let _ = self.hours.lock().expect("no panic").send(responder);
    }

    fn start_(&self, _: Responder<()>) {
        panic!("a servant that panics has dropped its responder");
    }
}

impl WinchDeferredServant for Deferrer {
    fn lift(&self, responder: Lift, kilograms: i32, who: String) {
        if kilograms > 1000 {
            return responder.raise(Overload { limit: 1000 });
        }
        assert_eq!(who, "Ada");
        let _ = self.lifts.lock().expect("no panic").send(responder);
    }

    fn nudge(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }

    fn speed(&self, responder: Responder<f64>) {
        responder.reply(2.5);
    }

    fn set_speed(&self, responder: Responder<()>, value: f64) {
        assert_eq!(value, 2.5);
        responder.respond(Ok(()));
    }
}

/// A server with such a servant, and the responders that it gets.
struct Deferred {
    ours: Ours,
    winch: Winch,
    hours: Receiver<Hours>,
    lifts: Receiver<Lift>,
}

impl Deferred {
    fn serve(builder: OrbBuilder) -> Self {
        Self::of(Ours::serve_as(builder))
    }

    fn of(ours: Ours) -> Self {
        let ((hours_sender, hours), (lift_sender, lifts)) = (channel(), channel());
        let servant = Deferrer {
            hours: Mutex::new(hours_sender),
            lifts: Mutex::new(lift_sender),
        };
        let winch = ours.poa.activate(rtorb::Deferring(servant));
        Self {
            winch: winch.expect("room"),
            ours,
            hours,
            lifts,
        }
    }

    fn connect(&self) -> Connection {
        Connection::to(self.ours.address())
    }

    /// Sends the request for the hours with that id, and returns its responder.
    fn ask(&self, client: &mut Connection, id: u32) -> Hours {
        let key = self.ours.key(self.winch.as_object());
        client.send(&request(&key, id, "_get_hours").empty());
        self.hours.recv_timeout(PATIENCE).expect("it is called")
    }

    /// Has the server show that it reads the connection, and serves other requests meanwhile.
    fn assert_served(&self, client: &mut Connection, id: u32, what: &str) {
        let key = self.ours.key(self.winch.as_object());
        let answer = client.ask(&request(&key, id, "_non_existent").empty());
        let answer = answer.expect("a reply");
        assert_eq!((answer.id, &answer.body[..]), (id, &[0][..]), "{what}");
    }
}

fn request<'a>(key: &'a [u8], id: u32, operation: &'a str) -> Request<'a> {
    Request {
        id,
        ..Request::two_way(key, operation)
    }
}

/// A request for the hours, whose deadline is so long after its arrival.
fn request_within(key: &[u8], id: u32, left: Duration) -> Vec<u8> {
    let mut stream = Stream::new(REQUEST, 2, false);
    stream.ulong(id).raw(&[3, 0, 0, 0]).ushort(0);
    stream.octets(key).string("_get_hours");
    let data = remaining_time(left.as_nanos() as u64);
    stream.ulong(1).ulong(REMAINING_TIME).octets(&data);
    stream.message()
}

/// Whether a call had reached its servant when its deadline passed; the answer says no less.
fn was_deferred(answer: &Answer, what: &str) -> bool {
    let (name, minor, completed) = answer.exception();
    assert_eq!(name, TIMEOUT, "{what}");
    if (minor, completed) == EXPIRED {
        return false;
    }
    assert_eq!((minor, completed), NOT_ANSWERED_IN_TIME, "{what}");
    true
}

/// Takes the next reply, which has the hours.
fn assert_hours(client: &mut Connection, id: u32, hours: i32, what: &str) {
    let answer = client.answer().expect("a reply");
    assert_eq!((answer.id, answer.status), (id, 0), "{what}");
    assert_eq!(answer.long(), hours, "{what}");
}

/// Takes the next reply, which is the exception of a call that is not answered.
fn assert_unanswered(client: &mut Connection, id: u32, what: &str) {
    let answer = client.answer().expect("a reply");
    assert_eq!(answer.id, id, "{what}");
    let (minor, completed) = NOT_ANSWERED;
    let expected = (NO_RESPONSE.to_owned(), minor, completed);
    assert_eq!(answer.exception(), expected, "{what}");
}

#[test]
fn another_thread_answers_in_any_order_while_the_connection_is_served() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Deferred::serve(Orb::builder().dispatch(dispatch));
        let mut client = served.connect();
        for first in [2, 40] {
            let mut owed: Vec<_> = (0..10)
                .map(|place| (first + place, served.ask(&mut client, first + place)))
                .collect();
            served.assert_served(&mut client, 100, name);
            assert_eq!(served.ours.orb.deferred_replies().outstanding, 10, "{name}");
            thread::scope(|scope| {
                let answering = scope.spawn(|| {
                    while let Some((id, responder)) = owed.pop() {
                        responder.reply(id as i32 * 2);
                    }
                });
                answering.join().expect("no panic");
            });
            for id in (first..first + 10).rev() {
                assert_hours(&mut client, id, id as i32 * 2, name);
            }
            served.assert_served(&mut client, 102, name);
        }
        let counts = served.ours.orb.deferred_replies();
        let all = (counts.outstanding, counts.dropped, counts.undelivered);
        assert_eq!(all, (0, 0, 0), "{name}");
    }
}

#[test]
fn a_responder_that_is_dropped_answers_with_no_response() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Deferred::serve(Orb::builder().dispatch(dispatch));
        let mut client = served.connect();
        drop(served.ask(&mut client, 2));
        assert_unanswered(&mut client, 2, name);
        let key = served.ours.key(served.winch.as_object());
        client.send(&request(&key, 4, "start").empty());
        assert_unanswered(&mut client, 4, name);
        assert_eq!(served.ours.orb.deferred_replies().dropped, 2, "{name}");
        served.assert_served(&mut client, 6, name);
    }
}

//= GIOP 1.2 §15.4.4
//% test
#[test]
fn a_responder_learns_that_its_call_is_cancelled() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Deferred::serve(Orb::builder().dispatch(dispatch));
        let mut client = served.connect();
        let [one, other] = [2, 4].map(|id| served.ask(&mut client, id));
        assert!(!one.is_cancelled() && !other.is_cancelled(), "{name}");
        let mut cancel = Stream::new(CANCEL_REQUEST, 2, false);
        cancel.ulong(4);
        client.send(&cancel.message());
        until("the call is cancelled", || {
            other.is_cancelled().then_some(())
        });
        assert!(!one.is_cancelled(), "{name}");
        drop(other);
        assert_unanswered(&mut client, 4, name);
        one.reply(7);
        assert_hours(&mut client, 2, 7, name);
        // A later call with the same id is another.
        let again = served.ask(&mut client, 4);
        assert!(!again.is_cancelled(), "{name}");
        again.reply(8);
        assert_hours(&mut client, 4, 8, name);
    }
}

//= GIOP 1.2 §15.5.1.1
//% test
#[test]
fn the_calls_of_a_client_that_is_gone_are_cancelled() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Deferred::serve(Orb::builder().dispatch(dispatch));
        let mut other = served.connect();
        let of_other = served.ask(&mut other, 2);
        for is_reset in [false, true] {
            let socket = TcpStream::connect(served.ours.address()).expect("it listens");
            let mut client = Connection::over(socket.try_clone().expect("a descriptor"));
            let mut owed = [2, 4].map(|id| served.ask(&mut client, id));
            if is_reset {
                // A socket that is closed with unread bytes resets the connection.
                served.ask(&mut client, 6).reply(1);
                socket.peek(&mut [0; 12]).expect("the reply comes");
            }
            let woken = Arc::new(Woken::default());
            let waker = Waker::from(Arc::clone(&woken));
            let [task, _] = &mut owed;
            let is_awaited = task.poll_cancelled(&mut Context::from_waker(&waker));
            assert!(is_awaited.is_pending(), "{name}");
            drop((client, socket));
            until("the calls are cancelled", || {
                owed.iter().all(Responder::is_cancelled).then_some(())
            });
            until("the task is woken", || {
                woken.0.load(Ordering::SeqCst).then_some(())
            });
            let [one, other] = owed;
            one.reply(1);
            drop(other);
        }
        assert!(!of_other.is_cancelled(), "{name}");
        of_other.reply(7);
        assert_hours(&mut other, 2, 7, name);
        assert_eq!(served.ours.orb.deferred_replies().outstanding, 0, "{name}");
    }
}

/// Notes that it was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn an_answer_for_a_client_that_is_gone_is_dropped_and_counted() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Deferred::serve(Orb::builder().dispatch(dispatch));
        let socket = TcpStream::connect(served.ours.address()).expect("it listens");
        let mut client = Connection::over(socket.try_clone().expect("a descriptor"));
        let responder = served.ask(&mut client, 2);
        served.ask(&mut client, 4).reply(1);
        // A socket that is closed with unread bytes resets the connection.
        socket.peek(&mut [0; 12]).expect("the reply comes");
        drop((client, socket));
        until("the end of the client arrives", || {
            responder.is_cancelled().then_some(())
        });
        responder.reply(3);
        let counts = served.ours.orb.deferred_replies();
        assert_eq!((counts.outstanding, counts.undelivered), (0, 1), "{name}");
        let mut client = served.connect();
        served.assert_served(&mut client, 2, name);
    }
}

#[test]
fn a_client_that_has_ended_sending_still_gets_its_answer() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Deferred::serve(Orb::builder().dispatch(dispatch));
        let mut client = served.connect();
        let responder = served.ask(&mut client, 2);
        client.finish();
        // It may as well be gone.
        until("the call is cancelled", || {
            responder.is_cancelled().then_some(())
        });
        responder.reply(3);
        assert_hours(&mut client, 2, 3, name);
    }
}

#[test]
fn so_many_replies_are_deferred_and_one_more_call_is_refused() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let limits = Limits::with(|limits| limits.deferred_replies_max = 2);
        let served = Deferred::serve(Orb::builder().dispatch(dispatch).limits(limits));
        let mut client = served.connect();
        let mut owed = [2, 4].map(|id| Some(served.ask(&mut client, id)));
        let key = served.ours.key(served.winch.as_object());
        let refused = client.ask(&request(&key, 6, "_get_hours").empty());
        let (exception, minor, completed) = REPLIES_FULL;
        let expected = (exception.to_owned(), minor, completed);
        assert_eq!(refused.expect("a reply").exception(), expected, "{name}");
        assert_eq!(served.ours.orb.requests_refused(), 1, "{name}");
        owed[1].take().expect("it is there").reply(1);
        assert_hours(&mut client, 4, 1, name);
        served.ask(&mut client, 8).reply(2);
        assert_hours(&mut client, 8, 2, name);
    }
}

#[test]
fn one_connection_takes_no_more_than_its_share_of_deferred_replies() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let limits = Limits::with(|limits| limits.deferred_replies_per_connection_max = 2);
        let served = Deferred::serve(Orb::builder().dispatch(dispatch).limits(limits));
        let (mut client, mut other) = (served.connect(), served.connect());
        let mut owed = [2, 4].map(|id| Some(served.ask(&mut client, id)));
        let key = served.ours.key(served.winch.as_object());
        let refused = client.ask(&request(&key, 6, "_get_hours").empty());
        let (exception, minor, completed) = CONNECTION_REPLIES_FULL;
        let expected = (exception.to_owned(), minor, completed);
        assert_eq!(refused.expect("a reply").exception(), expected, "{name}");
        assert_eq!(served.ours.orb.requests_refused(), 1, "{name}");
        // Another client has a share of its own.
        served.ask(&mut other, 2).reply(3);
        assert_hours(&mut other, 2, 3, name);
        owed[1].take().expect("it is there").reply(1);
        assert_hours(&mut client, 4, 1, name);
        served.ask(&mut client, 8).reply(2);
        assert_hours(&mut client, 8, 2, name);
    }
}

#[test]
fn the_end_of_the_orb_waits_for_deferred_replies() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let limits = Limits::with(|limits| limits.deferred_reply_time = PATIENCE);
        let served = Deferred::serve(Orb::builder().dispatch(dispatch).limits(limits));
        let mut client = served.connect();
        let responder = served.ask(&mut client, 2);
        served.ours.orb.shutdown();
        assert!(!responder.is_cancelled(), "{name}");
        responder.reply(5);
        assert_hours(&mut client, 2, 5, name);
        let closed = client.answer().map(|answer| answer.kind);
        assert_eq!(closed, Some(CLOSE_CONNECTION), "{name}");
    }
}

#[test]
fn a_reply_that_is_missing_at_the_end_of_the_orb_becomes_no_response() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let limits = Limits::with(|limits| limits.deferred_reply_time = SHORT);
        let served = Deferred::serve(Orb::builder().dispatch(dispatch).limits(limits));
        let mut client = served.connect();
        let responder = served.ask(&mut client, 2);
        served.ours.orb.shutdown();
        assert_unanswered(&mut client, 2, name);
        let closed = client.answer().map(|answer| answer.kind);
        assert_eq!(closed, Some(CLOSE_CONNECTION), "{name}");
        assert!(responder.is_cancelled(), "{name}");
        responder.reply(5);
        let counts = served.ours.orb.deferred_replies();
        let all = (counts.outstanding, counts.dropped, counts.undelivered);
        assert_eq!(all, (0, 0, 1), "{name}");
    }
}

#[test]
fn a_connection_with_a_deferred_reply_does_not_give_way() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let limits = Limits::with(|limits| limits.connections_max = 1);
        let served = Deferred::serve(Orb::builder().dispatch(dispatch).limits(limits));
        let mut client = served.connect();
        let responder = served.ask(&mut client, 2);
        let refused = served.connect().answer().map(|answer| answer.kind);
        assert_eq!(refused, Some(CLOSE_CONNECTION), "{name}");
        responder.reply(9);
        assert_hours(&mut client, 2, 9, name);
        until("the connection gives way", || {
            let mut other = served.connect();
            let key = served.ours.key(served.winch.as_object());
            let answer = other.ask(&request(&key, 2, "_non_existent").empty());
            (answer?.kind != CLOSE_CONNECTION).then_some(())
        });
    }
}

#[test]
fn a_call_that_nobody_answers_by_its_deadline_gets_a_timeout() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Deferred::serve(Orb::builder().dispatch(dispatch));
        let mut client = served.connect();
        let key = served.ours.key(served.winch.as_object());
        let mut id = 0;
        // On a busy host, a deadline may pass before the servant is called.
        until("a call that has come in time ends", || {
            id += 2;
            let answer = client.ask(&request_within(&key, id, SHORT));
            let answer = answer.expect("a reply");
            assert_eq!(answer.id, id, "{name}");
            was_deferred(&answer, name).then_some(())
        });
        let responder = served.hours.recv_timeout(PATIENCE).expect("it was called");
        assert!(responder.is_cancelled(), "{name}");
        assert_eq!(responder.remaining(), Some(Duration::ZERO), "{name}");
        responder.reply(1);
        served.assert_served(&mut client, id + 2, name);
        until("its place is free", || {
            (served.ours.orb.deferred_replies().outstanding == 0).then_some(())
        });
        let counts = served.ours.orb.deferred_replies();
        let all = (counts.dropped, counts.undelivered, counts.expired);
        assert_eq!(all, (0, 1, 1), "{name}");
    }
}

#[test]
fn a_responder_that_is_dropped_after_the_deadline_answers_nothing() {
    let served = Deferred::serve(Orb::builder());
    let mut client = served.connect();
    let key = served.ours.key(served.winch.as_object());
    until("a call that has come in time ends", || {
        let answer = client.ask(&request_within(&key, 2, SHORT));
        was_deferred(&answer.expect("a reply"), "dropped").then_some(())
    });
    drop(served.hours.recv_timeout(PATIENCE).expect("it was called"));
    served.assert_served(&mut client, 4, "dropped");
    let counts = served.ours.orb.deferred_replies();
    let all = (counts.dropped, counts.undelivered, counts.expired);
    assert_eq!(all, (0, 0, 1));
}

#[test]
fn an_earlier_deadline_is_kept_beside_a_later_one_and_one_that_is_met() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Deferred::serve(Orb::builder().dispatch(dispatch));
        let mut client = served.connect();
        let key = served.ours.key(served.winch.as_object());
        let mut later = [2, 4].map(|id| {
            client.send(&request_within(&key, id, 20 * PATIENCE));
            Some(served.hours.recv_timeout(PATIENCE).expect("it is called"))
        });
        let mut answer = |at: usize, hours| later[at].take().expect("once").reply(hours);
        answer(0, 5);
        assert_hours(&mut client, 2, 5, name);
        until("a call that has come in time ends", || {
            let early = client.ask(&request_within(&key, 6, SHORT));
            let early = early.expect("a reply");
            assert_eq!(early.id, 6, "{name}");
            was_deferred(&early, name).then_some(())
        });
        answer(1, 7);
        assert_hours(&mut client, 4, 7, name);
        let counts = served.ours.orb.deferred_replies();
        assert_eq!((counts.undelivered, counts.expired), (0, 1), "{name}");
    }
}

#[test]
fn a_task_is_woken_at_the_deadline() {
    let served = Deferred::serve(Orb::builder());
    let mut client = served.connect();
    let key = served.ours.key(served.winch.as_object());
    until("a task awaits a call in time", || {
        let left = 5 * SHORT;
        client.send(&request_within(&key, 2, left));
        // If the deadline passes before the servant is called, none comes.
        let responder = served.hours.recv_timeout(10 * left).ok()?;
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let is_in_time = responder
            .poll_cancelled(&mut Context::from_waker(&waker))
            .is_pending();
        if is_in_time {
            until("the task is woken", || {
                woken.0.load(Ordering::SeqCst).then_some(())
            });
        }
        assert!(responder.is_cancelled());
        is_in_time.then_some(())
    });
}

#[test]
fn a_client_that_takes_nothing_delays_no_other_deadline() {
    let limits = Limits::with(|limits| limits.send_timeout = PATIENCE);
    for (name, dispatch) in DispatchStrategy::ALL {
        let builder = Orb::builder().dispatch(dispatch).limits(limits.clone());
        let served = Deferred::serve(builder);
        until("a reply is held up before a deadline passes", || {
            end_beside_held_reply(&served, name)
        });
    }
}

/// Lets the deadlines of two clients pass while one of them takes nothing of a large reply. Returns `None` if its own has passed before the
/// reply was held up.
fn end_beside_held_reply(served: &Deferred, name: &str) -> Option<()> {
    let socket = TcpStream::connect(served.ours.address()).expect("the server listens");
    let mut slow = Connection::over(socket.try_clone().expect("a descriptor"));
    let mut good = served.connect();
    let key = served.ours.key(served.winch.as_object());
    let mut lift = request(&key, 2, "lift").head();
    lift.align(8).long(7).string("Ada");
    slow.send(&lift.message());
    let lift = served.lifts.recv_timeout(PATIENCE).expect("it is called");
    let left = 25 * SHORT;
    slow.send(&request_within(&key, 4, left));
    // If the deadline passes before the servant is called, none comes.
    let responder = served.hours.recv_timeout(10 * left).ok()?;
    thread::scope(|scope| {
        // With `thread_per_connection`, it waits for the client.
        scope.spawn(move || lift.reply((1, "x".repeat(8 << 20))));
        until_full(&socket);
        if responder.is_cancelled() {
            // Ends the reply too.
            drop((slow, socket));
            return None;
        }
        until("its deadline passes", || {
            responder.is_cancelled().then_some(())
        });
        until("a call of the other client comes in time", || {
            let answer = good.ask(&request_within(&key, 2, SHORT));
            was_deferred(&answer.expect("a reply"), name).then_some(())
        });
        let (mut has_lift, mut has_timeout) = (false, false);
        while !(has_lift && has_timeout) {
            let answer = slow.answer().expect("a reply");
            match answer.id {
                2 => has_lift = answer.body.len() > 8 << 20,
                _ => has_timeout = was_deferred(&answer, name),
            }
        }
        Some(())
    })
}

#[test]
fn where_deadlines_are_counted_an_answer_after_the_deadline_is_sent() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let builder = Orb::builder().deadlines(Deadlines::Count);
        let served = Deferred::serve(builder.dispatch(dispatch));
        let mut client = served.connect();
        let key = served.ours.key(served.winch.as_object());
        client.send(&request_within(&key, 2, SHORT));
        let responder = served.hours.recv_timeout(PATIENCE).expect("it is called");
        until("the deadline passes", || {
            (responder.remaining() == Some(Duration::ZERO)).then_some(())
        });
        assert!(!responder.is_cancelled(), "{name}");
        responder.reply(3);
        assert_hours(&mut client, 2, 3, name);
        assert_eq!(served.ours.orb.deferred_replies().expired, 0, "{name}");
    }
}

#[test]
fn a_client_of_ours_makes_later_calls_after_one_that_nobody_answered() {
    for (name, dispatch) in DispatchStrategy::ALL {
        let served = Deferred::serve(Orb::builder().dispatch(dispatch));
        let client = Orb::builder().round_trip_timeout(Some(PATIENCE)).build();
        let client = client.expect("an ORB");
        let winch: Winch = client
            .string_to_reference(&served.winch.to_string())
            .expect("it is there");
        // On a busy host, a deadline may pass before the request is sent.
        let responder = until("a late call has come", || {
            let late = winch.with_deadline(SHORT).hours();
            let late = late.expect_err("nobody answers");
            assert_eq!(late.kind, ExceptionKind::Timeout, "{name}");
            served.hours.recv_timeout(SHORT).ok()
        });
        assert_eq!(responder.remaining(), Some(Duration::ZERO), "{name}");
        assert!(responder.deadline().is_some(), "{name}");
        responder.reply(1);
        assert_eq!(winch.speed(), Ok(2.5), "{name}");
    }
}

#[test]
fn a_responder_has_the_priority_of_its_call() {
    let priority = Priority::new(7).expect("it is in range");
    let policies = PoaPolicies::default().with(Policy::PriorityModel {
        model: PriorityModel::ServerDeclared,
        server_priority: priority,
    });
    let ours = Ours::serve_in(Orb::builder().best_effort(), |orb| {
        let root = orb.root_poa().expect("it listens");
        root.create_poa("declared", policies).expect("a name")
    });
    let served = Deferred::of(ours);
    let mut client = served.connect();
    let responder = served.ask(&mut client, 2);
    assert_eq!(responder.priority(), Some(priority));
    assert_eq!((responder.deadline(), responder.remaining()), (None, None));
    responder.reply(3);
    assert_hours(&mut client, 2, 3, "declared");
}

#[test]
fn a_large_reply_is_sent_whole_whoever_waits_for_the_client() {
    let text = "x".repeat(8 << 20);
    for (name, dispatch) in DispatchStrategy::ALL {
        let limits = Limits::with(|limits| limits.send_timeout = PATIENCE);
        let served = Deferred::serve(Orb::builder().dispatch(dispatch).limits(limits));
        let mut client = served.connect();
        let key = served.ours.key(served.winch.as_object());
        let mut lift = request(&key, 2, "lift").head();
        lift.align(8).long(7).string("Ada");
        client.send(&lift.message());
        let lift = served.lifts.recv_timeout(PATIENCE).expect("it is called");
        let small = served.ask(&mut client, 4);
        thread::scope(|scope| {
            let text = text.clone();
            scope.spawn(move || {
                lift.reply((1, text));
                small.reply(2);
            });
            let large = client.answer().expect("a reply");
            assert_eq!(
                (large.id, large.body.len()),
                (2, 8 + text_bytes()),
                "{name}"
            );
            assert_hours(&mut client, 4, 2, name);
        });
    }

    const fn text_bytes() -> usize {
        (8 << 20) + 1
    }
}

#[test]
fn a_caller_in_the_same_orb_waits_for_the_answer() {
    let served = Deferred::of(Ours::serve_collocated(Orb::builder()));
    let winch = &served.winch;
    for hours in 0..100 {
        thread::scope(|scope| {
            let caller = scope.spawn(|| winch.hours());
            let responder = served.hours.recv_timeout(PATIENCE).expect("it is called");
            responder.reply(hours);
            assert_eq!(caller.join().expect("no panic"), Ok(hours));
        });
    }
    assert_eq!(winch.speed(), Ok(2.5), "answered before it waits");
    assert_eq!(winch.set_speed(2.5), Ok(()));
    let overload = WinchLiftError::from(Overload { limit: 1000 });
    assert_eq!(winch.lift(1001, "Ada"), Err(overload));
    let dropped = winch.start_().expect_err("it panics");
    assert_eq!(
        (dropped.kind, dropped.minor, dropped.completed),
        (
            ExceptionKind::NoResponse,
            NOT_ANSWERED.0,
            CompletionStatus::Maybe
        )
    );
}

#[test]
fn a_caller_in_the_same_orb_waits_no_longer_than_its_timeout() {
    let served = Deferred::of(Ours::serve_collocated(Orb::builder()));
    // On a busy host, a deadline may pass before the servant is called.
    until("a servant is called", || {
        let late = rtorb::with_deadline(10 * SHORT, || served.winch.hours());
        let late = late.expect_err("nobody answers");
        assert_eq!(late.kind, ExceptionKind::Timeout);
        (late.completed == CompletionStatus::Maybe).then_some(())
    });
    let responder = served.hours.recv_timeout(PATIENCE).expect("it was called");
    assert!(responder.is_cancelled());
    responder.reply(1);
    let counts = served.ours.orb.deferred_replies();
    assert_eq!((counts.outstanding, counts.undelivered), (0, 1));
    assert_eq!(served.winch.speed(), Ok(2.5));
}

#[test]
fn a_servant_thread_waits_for_a_nested_deferred_call_of_its_own_orb() {
    let served = Deferred::of(Ours::serve_collocated(Orb::builder()));
    let answering = thread::spawn({
        let hours = served.hours;
        move || {
            let outer = hours.recv_timeout(PATIENCE).expect("it is called");
            let inner = hours.recv_timeout(PATIENCE).expect("it is called");
            outer.reply(1);
            inner.reply(2);
        }
    });
    let winch = served.winch;
    let (one, other) = thread::scope(|scope| {
        let one = scope.spawn(|| winch.hours());
        let other = scope.spawn(|| winch.hours());
        (
            one.join().expect("no panic"),
            other.join().expect("no panic"),
        )
    });
    let mut both = [one.expect("a reply"), other.expect("a reply")];
    both.sort_unstable();
    assert_eq!(both, [1, 2]);
    answering.join().expect("no panic");
}
