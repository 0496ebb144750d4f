//! Started calls: many in flight on one connection, whoever reads their replies, with deadlines that hold although nobody waits.

use rtorb::cdr::CharCodeSet;
use rtorb::giop::PassedRequest;
use rtorb::ior::{Component, Ior, TaggedProfile};
use rtorb::rt::Priority;
use rtorb::{
    Call, CompletionStatus, ConnectionStrategy, DeadlineForm, ExceptionKind, FullCallTable, Limits,
    ObjectRef, Orb, OrbBuilder, SystemException, WaitStrategy,
};
use rtorb_tests::fake::{FakeServer, Peer, reference_at, reply, request_id, yes};
use rtorb_tests::loopback::own_endpoint;
use rtorb_tests::ours::Ours;
use rtorb_tests::recorder::message;
use rtorb_tests::running::until;
use rtorb_tests::stubs::exchange::Desk;
use rtorb_wire::code_sets::{CodeSetComponent, CodeSetComponentInfo};
use rtorb_wire::giop::{Expiry, Header, RequestHeader, contexts};
use std::io::Write;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Where no timeout is meant to be met, and where one is.
pub(crate) const LONG: Duration = Duration::from_secs(30);
pub(crate) const SHORT: Duration = Duration::from_millis(5);

const CANCEL_REQUEST: u8 = 2;
pub(crate) const FORWARD: u32 = 3;

/// The strategies that support started calls.
pub(crate) fn supporting() -> Vec<ConnectionStrategy> {
    let waits = [
        WaitStrategy::LeaderFollowers,
        WaitStrategy::Reactor,
        WaitStrategy::ConnectionThread,
    ];
    let both = |wait| {
        [
            ConnectionStrategy::Multiplexed { wait },
            ConnectionStrategy::Banded { wait },
        ]
    };
    waits.into_iter().flat_map(both).collect()
}

pub(crate) const LEADING: ConnectionStrategy = ConnectionStrategy::Multiplexed {
    wait: WaitStrategy::LeaderFollowers,
};

pub(crate) fn with(connection: ConnectionStrategy, builder: OrbBuilder) -> Orb {
    let builder = builder.connection(connection);
    let built = builder.round_trip_timeout(Some(LONG)).build();
    built.expect("the ORB can be built")
}

pub(crate) fn object_of(orb: &Orb, server: &FakeServer) -> ObjectRef {
    orb.string_to_object(&server.reference())
        .expect("a reference")
}

fn object(connection: ConnectionStrategy, server: &FakeServer) -> ObjectRef {
    object_of(&with(connection, Orb::builder()), server)
}

fn echo(object: &ObjectRef, number: u32) -> Call<u32> {
    object.start("echo", |w| w.primitive(number), |r| r.primitive())
}

/// The reply with the last four bytes of the request.
fn echoed(asked: &[u8]) -> Vec<u8> {
    let id = request_id(asked).expect("a request");
    reply(id, 0, |body| {
        body.raw(&asked[asked.len() - 4..]);
    })
}

/// A server that replies to so many requests at a time, the newest first, and the number of its connections.
fn reversing(at_a_time: usize) -> (FakeServer, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&opened);
    let server = FakeServer::new(move |_, mut peer: Peer| {
        counted.fetch_add(1, Ordering::SeqCst);
        loop {
            let asked: Vec<_> = (0..at_a_time).map_while(|_| peer.message()).collect();
            if asked.len() < at_a_time {
                return;
            }
            asked.iter().rev().for_each(|it| peer.send(&echoed(it)));
        }
    });
    (server, opened)
}

/// A server that replies to nothing, and the ids of the requests that came (false) and were cancelled (true).
pub(crate) fn silent() -> (FakeServer, Receiver<(bool, u32)>) {
    let (sender, came) = channel();
    let server = FakeServer::new(move |_, mut peer: Peer| {
        while let Some(message) = peer.message() {
            let id = request_id(&message).expect("a request or a CancelRequest");
            let _ = sender.send((message[7] == CANCEL_REQUEST, id));
        }
    });
    (server, came)
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future whose replies other threads read.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return done;
        }
        thread::park();
    }
}

fn poll<T>(call: &mut Call<T>, waker: &Waker) -> Poll<Result<T, SystemException>> {
    pin!(call).poll(&mut Context::from_waker(waker))
}

#[test]
fn replies_to_many_calls_on_one_connection_come_in_any_order() {
    const CALLS: u32 = 100;
    for connection in supporting() {
        let (server, opened) = reversing(CALLS as usize);
        let object = object(connection, &server);
        for _ in 0..3 {
            let calls: Vec<_> = (0..CALLS).map(|number| echo(&object, number)).collect();
            for (number, call) in calls.into_iter().enumerate() {
                assert_eq!(call.wait(), Ok(number as u32), "{connection}");
            }
        }
        assert_eq!(opened.load(Ordering::SeqCst), 1, "{connection}");
    }
}

#[test]
fn threads_share_the_connection_with_started_calls() {
    for connection in supporting() {
        let (server, _) = reversing(1);
        let object = object(connection, &server);
        thread::scope(|scope| {
            for thread in 0..4 {
                let object = &object;
                scope.spawn(move || {
                    for turn in 0..100 {
                        let number = 1000 * thread + turn;
                        let call = echo(object, number);
                        let blocking: Result<u32, _> =
                            object.invoke("echo", |w| w.primitive(number + 7), |r| r.primitive());
                        assert_eq!(blocking, Ok(number + 7));
                        assert_eq!(call.wait(), Ok(number));
                    }
                });
            }
        });
    }
}

#[test]
fn a_task_is_woken_whoever_reads() {
    for connection in supporting() {
        let (server, _) = reversing(3);
        let orb = with(connection, Orb::builder());
        let object = object_of(&orb, &server);
        let three = async {
            let calls = [1, 2, 3].map(|number| echo(&object, number));
            let mut sum = 0;
            for call in calls {
                sum += call.await?;
            }
            Ok::<_, SystemException>(sum)
        };
        let replies = orb.reply_driver().expect("it has started calls");
        // The thread of the task reads, and then another one.
        let mut task = pin!(three);
        let waker = replies.waker();
        let sum = loop {
            match task.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(sum) => break sum,
                Poll::Pending => assert!(replies.run_once(Some(Instant::now() + LONG))),
            }
        };
        assert_eq!(sum, Ok(6), "{connection}");
        let calls = [4, 5, 6].map(|number| echo(&object, number));
        let is_done = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                while is_done.load(Ordering::SeqCst) == 0 {
                    replies.run_once(Some(Instant::now() + SHORT));
                }
            });
            for (call, number) in calls.into_iter().zip(4..) {
                assert_eq!(block_on(call), Ok(number), "{connection}");
            }
            is_done.store(1, Ordering::SeqCst);
        });
    }
}

#[test]
fn each_thread_that_runs_a_driver_learns_of_its_wakes() {
    for connection in supporting() {
        let (server, _came) = silent();
        let orb = with(connection, Orb::builder());
        let object = object_of(&orb, &server);
        let replies = orb.reply_driver().expect("it has started calls");
        let is_over = AtomicBool::new(false);
        let ((running, is_running), other) = (channel(), replies.clone());
        thread::scope(|scope| {
            let (is_over, other) = (&is_over, &other);
            // It sees the bell of each wake first.
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let _ = running.send(());
                    other.run_once(Some(Instant::now() + LONG));
                }
            });
            is_running.recv_timeout(LONG).expect("it runs");
            let mut call = echo(&object.with_timeout(20 * SHORT), 1);
            let waker = replies.waker();
            let ended = loop {
                match poll(&mut call, &waker) {
                    Poll::Ready(ended) => break Some(ended),
                    Poll::Pending if replies.run_once(Some(Instant::now() + LONG)) => {}
                    Poll::Pending => break None,
                }
            };
            is_over.store(true, Ordering::SeqCst);
            waker.wake();
            let failed = ended.expect("it is told").expect_err("no reply comes");
            assert_eq!(failed.kind, ExceptionKind::Timeout, "{connection}");
        });
    }
}

#[test]
fn replies_that_a_leader_leaves_behind_are_read_by_the_application() {
    let (release, order) = channel::<()>();
    let order = Arc::new(Mutex::new(order));
    let server = FakeServer::new(move |_, mut peer: Peer| {
        let started = peer.message().expect("a started call");
        let blocking = peer.message().expect("a call that blocks");
        peer.send(&echoed(&blocking));
        let _ = order.lock().expect("nobody panics").recv();
        peer.send(&echoed(&started));
        peer.wait_for_end();
    });
    let orb = with(LEADING, Orb::builder());
    let object = object_of(&orb, &server);
    let replies = orb.reply_driver().expect("leaders read");
    let started = echo(&object, 1);
    let blocking: Result<u32, _> = object.invoke("echo", |w| w.primitive(2), |r| r.primitive());
    assert_eq!(blocking, Ok(2));
    assert!(!started.is_ready());
    release.send(()).expect("the server waits for it");
    while !started.is_ready() {
        assert!(replies.run_once(Some(Instant::now() + LONG)));
    }
    assert_eq!(started.wait(), Ok(1));
    assert!(
        !replies.run_once(Some(Instant::now() + SHORT)),
        "nothing is left"
    );
}

/// Holds the thread that wakes it until it is released.
struct Holding(Mutex<Sender<()>>, Mutex<Receiver<()>>);

impl Wake for Holding {
    fn wake(self: Arc<Self>) {
        let _ = self.0.lock().expect("nobody panics").send(());
        let _ = self.1.lock().expect("nobody panics").recv_timeout(LONG);
    }
}

/// The application learns that a reply came while a leader read, and that the leader has left it.
#[test]
fn a_reply_that_comes_while_a_leader_is_held_up_is_read_after_the_leader() {
    let ((send, order), (sent, is_sent)) = (channel::<()>(), channel());
    let order = Arc::new(Mutex::new(order));
    let server = FakeServer::new(move |_, mut peer: Peer| {
        let asked: Vec<_> = (0..3).map_while(|_| peer.message()).collect();
        let order = order.lock().expect("nobody panics");
        let _ = order.recv();
        // In one piece: the leader has its own reply when it goes on.
        peer.send(&[echoed(&asked[1]), echoed(&asked[0])].concat());
        let _ = order.recv();
        peer.send(&echoed(&asked[2]));
        let _ = sent.send(());
        peer.wait_for_end();
    });
    let orb = with(LEADING, Orb::builder());
    let object = object_of(&orb, &server);
    let replies = orb.reply_driver().expect("leaders read");
    let [led, mut holding, left] = [1, 2, 3].map(|number| echo(&object, number));
    let ((held, is_held), (release, released)) = (channel(), channel());
    let waker = Waker::from(Arc::new(Holding(Mutex::new(held), Mutex::new(released))));
    assert!(poll(&mut holding, &waker).is_pending());
    thread::scope(|scope| {
        let leader = scope.spawn(|| led.wait());
        send.send(()).expect("the server waits for it");
        is_held.recv_timeout(LONG).expect("the leader reads");
        send.send(()).expect("the server waits for it");
        is_sent.recv_timeout(LONG).expect("the server sends");
        // It sees that the connection has a leader, until it sees nothing new.
        while replies.run_once(Some(Instant::now() + SHORT)) {}
        release.send(()).expect("the leader waits for it");
        assert_eq!(leader.join().expect("it does not panic"), Ok(1));
    });
    while !left.is_ready() {
        let has_read = replies.run_once(Some(Instant::now() + LONG));
        assert!(has_read, "the leader says that it left");
    }
    assert_eq!((holding.wait(), left.wait()), (Ok(2), Ok(3)));
}

#[test]
fn a_deadline_holds_although_nobody_waits() {
    for connection in supporting() {
        let (server, came) = silent();
        let object = object(connection, &server);
        // It opens the connection, which may take long on a busy host.
        let opening = echo(&object, 0);
        let calls: Vec<_> = [SHORT, 2 * SHORT, SHORT]
            .into_iter()
            .map(|timeout| echo(&object.with_timeout(timeout), 1))
            .collect();
        until("the calls end", || {
            calls.iter().all(Call::is_ready).then_some(())
        });
        assert!(!opening.is_ready());
        let mut sent = 0;
        for call in calls {
            let failed = call.wait().expect_err("no reply comes");
            assert_eq!(
                failed.kind,
                ExceptionKind::Timeout,
                "{connection}: {failed}"
            );
            assert!(failed.to_string().contains(&server.endpoint()), "{failed}");
            // On a busy host, the deadline may pass before the request is sent.
            sent += usize::from(failed.completed == CompletionStatus::Maybe);
        }
        if sends_cancels(connection) {
            let is_cancel = |_| came.recv_timeout(LONG).expect("it comes").0;
            let cancels = (0..=2 * sent).map(is_cancel).filter(|it| *it).count();
            assert_eq!(cancels, sent, "{connection}");
        }
    }
}

/// True if clients tell servers of calls that they give up.
pub(crate) fn sends_cancels(connection: ConnectionStrategy) -> bool {
    !matches!(
        connection,
        ConnectionStrategy::Multiplexed {
            wait: WaitStrategy::ConnectionThread
        } | ConnectionStrategy::Banded {
            wait: WaitStrategy::ConnectionThread
        }
    )
}

#[test]
fn a_deadline_wakes_a_task_that_only_the_watchdog_can_wake() {
    let (server, _came) = silent();
    let object = object(LEADING, &server).with_timeout(SHORT);
    let failed = block_on(echo(&object, 1)).expect_err("no reply comes");
    assert_eq!(failed.kind, ExceptionKind::Timeout);
}

/// Notes when it is woken.
#[derive(Default)]
struct WakeTimes(Mutex<Vec<Instant>>);

impl Wake for WakeTimes {
    fn wake(self: Arc<Self>) {
        let mut times = self.0.lock().expect("nobody panics");
        times.push(Instant::now());
    }
}

/// The time between the first and the last end of many calls with one deadline, while a request that the server does not take holds
/// their connection; `None` if the deadline passed before that.
fn time_between_ends(count: u32, timeout: Duration) -> Option<Duration> {
    let ((release, order), (sender, begun)) = (channel::<()>(), channel());
    let order = Arc::new(Mutex::new(order));
    let server = FakeServer::new(move |number, mut peer: Peer| {
        let is_first = number == 0;
        if is_first {
            (0..count).for_each(|_| drop(peer.message()));
            peer.await_bytes();
        }
        let _ = sender.send(is_first);
        if is_first {
            let _ = order.lock().expect("nobody panics").recv();
        }
    });
    let limits = Limits::with(|limits| limits.message_bytes_max = 128 << 20);
    let object = object_of(&with(LEADING, Orb::builder().limits(limits)), &server);
    let times = Arc::new(WakeTimes::default());
    let waker = Waker::from(Arc::clone(&times));
    let mut calls: Vec<_> = rtorb::with_deadline(timeout, || {
        (0..count).map(|number| echo(&object, number)).collect()
    });
    if calls.iter_mut().any(|call| poll(call, &waker).is_ready()) {
        return None;
    }
    let large = vec![0_u8; 64 << 20];
    thread::scope(|scope| {
        scope.spawn(|| {
            let taken: Result<(), _> = object.invoke(
                "take",
                |w| rtorb::cdr::Encode::encode(&large, w),
                |_| Ok(()),
            );
            taken.expect_err("the server takes nothing");
        });
        let is_held = begun.recv_timeout(LONG).expect("it sends");
        let is_early = !is_held || calls.iter().any(Call::is_ready);
        until("the calls end", || {
            calls.iter().all(Call::is_ready).then_some(())
        });
        until("their tasks are woken", || {
            let times = times.0.lock().expect("nobody panics");
            (times.len() == calls.len()).then_some(())
        });
        drop(release);
        let times = times.0.lock().expect("nobody panics");
        let between = times.last()?.duration_since(*times.first()?);
        (!is_early).then_some(between)
    })
}

#[test]
fn calls_with_one_deadline_end_together_although_another_request_holds_the_connection() {
    const CALLS: u32 = 200;
    // If each waited for its turn to send a cancellation, for 1 ms, no try could be as short.
    let bound = Duration::from_millis(u64::from(CALLS) / 2);
    let mut timeout = 20 * SHORT;
    for _ in 0..20 {
        match time_between_ends(CALLS, timeout) {
            Some(between) if between < bound => return,
            Some(between) => println!("{between:?}"),
            None => timeout *= 2,
        }
    }
    panic!("some calls end later than others");
}

#[test]
fn a_call_goes_on_after_a_wait_that_was_too_short() {
    for connection in supporting() {
        let (server, _) = reversing(2);
        let object = object(connection, &server);
        let mut one = echo(&object, 1);
        assert_eq!(one.wait_until(Instant::now() + SHORT), None);
        assert!(poll(&mut one, Waker::noop()).is_pending());
        assert_eq!(one.wait_until(Instant::now() + SHORT), None);
        let other = echo(&object, 2);
        assert_eq!(one.wait_until(Instant::now() + LONG), Some(Ok(1)));
        let again = one.wait_until(Instant::now() + LONG);
        let again = again.expect("it has ended").expect_err("it is taken");
        assert_eq!(again.kind, ExceptionKind::BadInvOrder);
        assert_eq!(other.wait(), Ok(2));
    }
}

#[test]
fn waits_that_do_not_wait_receive_what_has_arrived() {
    for connection in supporting() {
        let (server, _) = reversing(1);
        let object = object(connection, &server);
        let mut call = echo(&object, 1);
        let result = until("it ends", || call.wait_until(Instant::now()));
        assert_eq!(result, Ok(1), "{connection}");
    }
}

#[test]
fn a_dropped_call_is_cancelled_and_its_place_is_free() {
    for connection in supporting() {
        let (server, came) = silent();
        let limits = Limits::with(|limits| limits.started_calls_max = 1);
        let orb = with(connection, Orb::builder().limits(limits));
        let object = object_of(&orb, &server);
        for turn in 0..3 {
            let mut call = echo(&object, 1);
            assert!(!call.is_ready(), "{connection}: {:?}", call.wait());
            let sent = came.recv_timeout(LONG).expect("it comes");
            assert!(poll(&mut call, Waker::noop()).is_pending());
            call.cancel();
            if sends_cancels(connection) {
                assert_eq!(sent, (false, 2 * turn));
                assert_eq!(came.recv_timeout(LONG), Ok((true, 2 * turn)));
            }
        }
        assert_eq!(orb.started_calls_refused(), 0);
    }
}

#[test]
fn a_call_that_is_dropped_while_it_is_sent_disturbs_no_other() {
    let (opened, (begun, has_begun)) = (Arc::new(AtomicUsize::new(0)), channel());
    let (release, order) = channel::<()>();
    let (order, counted) = (Arc::new(Mutex::new(order)), Arc::clone(&opened));
    let server = FakeServer::new(move |_, mut peer: Peer| {
        counted.fetch_add(1, Ordering::SeqCst);
        peer.await_bytes();
        let _ = begun.send(());
        let _ = order.lock().expect("nobody panics").recv();
        while let Some(asked) = peer.message() {
            peer.send(&echoed(&asked));
        }
    });
    let limits = Limits::with(|limits| limits.message_bytes_max = 128 << 20);
    let sending = ConnectionStrategy::Multiplexed {
        wait: WaitStrategy::ConnectionThread,
    };
    let object = object_of(&with(sending, Orb::builder().limits(limits)), &server);
    let large = vec![0_u8; 64 << 20];
    let taken = object.start(
        "take",
        |w| rtorb::cdr::Encode::encode(&large, w),
        |_| Ok(()),
    );
    has_begun.recv_timeout(LONG).expect("it is sent");
    let behind = echo(&object, 1);
    taken.cancel();
    drop(release);
    assert_eq!(behind.wait(), Ok(1));
    assert_eq!(opened.load(Ordering::SeqCst), 1, "it has not moved");
}

#[test]
fn a_connection_that_a_dropped_call_has_left_stuck_ends_with_the_next_late_call() {
    let (begun, has_begun) = channel();
    let (_release, order) = channel::<()>();
    let order = Arc::new(Mutex::new(order));
    let server = FakeServer::new(move |number, mut peer: Peer| {
        if number == 0 {
            peer.await_bytes();
            let _ = begun.send(());
            let _ = order.lock().expect("nobody panics").recv();
        }
        while let Some(asked) = peer.message() {
            peer.send(&echoed(&asked));
        }
    });
    let limits = Limits::with(|limits| limits.message_bytes_max = 128 << 20);
    let sending = ConnectionStrategy::Multiplexed {
        wait: WaitStrategy::ConnectionThread,
    };
    let object = object_of(&with(sending, Orb::builder().limits(limits)), &server);
    let large = vec![0_u8; 64 << 20];
    let taken = object.start(
        "take",
        |w| rtorb::cdr::Encode::encode(&large, w),
        |_| Ok(()),
    );
    has_begun.recv_timeout(LONG).expect("it is sent");
    taken.cancel();
    let object = object.with_timeout(20 * SHORT);
    until("a call goes over another connection", || {
        echo(&object, 2).wait().ok()
    });
}

/// A task that its waker owns, with all that it uses. Once it is woken, it ends.
struct Last {
    uses: Mutex<Option<(Call<u32>, ObjectRef, Orb)>>,
    ended: Mutex<Sender<()>>,
}

impl Wake for Last {
    fn wake(self: Arc<Self>) {
        drop(self.uses.lock().expect("nobody panics").take());
        let _ = self.ended.lock().expect("nobody panics").send(());
    }
}

#[test]
fn a_task_may_be_the_last_user_of_the_orb_whose_thread_wakes_it() {
    for connection in supporting() {
        let (server, _came) = silent();
        let orb = with(connection, Orb::builder());
        let object = object_of(&orb, &server).with_timeout(20 * SHORT);
        let mut call = echo(&object, 1);
        let (ended, has_ended) = channel();
        let last = Arc::new(Last {
            uses: Mutex::default(),
            ended: Mutex::new(ended),
        });
        let waker = Waker::from(Arc::clone(&last));
        // On a busy host the deadline may have passed.
        if poll(&mut call, &waker).is_pending() {
            *last.uses.lock().expect("nobody panics") = Some((call, object, orb));
            drop((last, waker));
            assert_eq!(has_ended.recv_timeout(LONG), Ok(()), "{connection}");
        }
    }
}

#[test]
fn one_call_more_than_the_limit_ends_at_once() {
    let (server, _) = reversing(2);
    let limits = Limits::with(|limits| limits.started_calls_max = 2);
    let orb = with(LEADING, Orb::builder().limits(limits));
    let object = object_of(&orb, &server);
    let calls = [1, 2].map(|number| echo(&object, number));
    let refused = echo(&object, 3);
    assert!(refused.is_ready());
    let refused = refused.wait().expect_err("the table is full");
    let told = (refused.kind, refused.completed);
    assert_eq!(told, (ExceptionKind::NoResources, CompletionStatus::No));
    assert!(
        refused.to_string().contains("started_calls_max"),
        "{refused}"
    );
    assert_eq!(orb.started_calls_refused(), 1);
    assert_eq!(calls.map(Call::wait), [Ok(1), Ok(2)]);
    let calls = [4, 5].map(|number| echo(&object, number));
    assert_eq!(calls.map(Call::wait), [Ok(4), Ok(5)]);
}

/// An ORB that has so many started calls, and lets others wait.
fn waiting(connection: ConnectionStrategy, calls_max: usize) -> Orb {
    let limits = Limits::with(|limits| limits.started_calls_max = calls_max);
    let builder = Orb::builder().full_call_table(FullCallTable::Wait);
    with(connection, builder.limits(limits))
}

#[test]
fn a_call_waits_until_the_result_of_another_is_taken_or_it_is_dropped() {
    for connection in supporting() {
        for takes_result in [true, false] {
            let (server, _) = reversing(1);
            let orb = waiting(connection, 1);
            let object = object_of(&orb, &server);
            let first = echo(&object, 1);
            thread::scope(|scope| {
                let second = scope.spawn(|| echo(&object, 2).wait());
                until("it waits", || {
                    (orb.started_calls_delayed() == 1).then_some(())
                });
                assert!(!second.is_finished(), "{connection}");
                if takes_result {
                    assert_eq!(first.wait(), Ok(1), "{connection}");
                } else {
                    drop(first);
                }
                assert_eq!(second.join().expect("no panic"), Ok(2), "{connection}");
            });
            assert_eq!(orb.started_calls_refused(), 0, "{connection}");
        }
    }
}

#[test]
fn a_call_waits_for_a_place_no_longer_than_its_deadline() {
    for connection in supporting() {
        let (server, _) = reversing(1);
        let orb = waiting(connection, 1);
        let object = object_of(&orb, &server);
        let held = echo(&object, 1);
        let late = echo(&object.with_timeout(SHORT), 2).wait();
        let late = late.expect_err("no place becomes free");
        let told = (late.kind, late.completed);
        let expected = (ExceptionKind::Timeout, CompletionStatus::No);
        assert_eq!(told, expected, "{connection}: {late}");
        assert_eq!(orb.started_calls_delayed(), 1, "{connection}");
        assert_eq!(held.wait(), Ok(1), "{connection}");
        assert_eq!(echo(&object, 3).wait(), Ok(3), "{connection}");
        assert_eq!(orb.started_calls_delayed(), 1, "{connection}");
    }
}

#[test]
fn the_end_of_the_orb_ends_calls_that_wait_for_a_place() {
    const THREADS: u64 = 2;
    for connection in supporting() {
        let (server, _came) = silent();
        let orb = waiting(connection, 1);
        let object = object_of(&orb, &server).with_timeout(2 * LONG);
        let held = echo(&object, 1);
        thread::scope(|scope| {
            let start = || scope.spawn(|| echo(&object, 2).wait());
            let waiting = [(); THREADS as usize].map(|()| start());
            until("they wait", || {
                (orb.started_calls_delayed() == THREADS).then_some(())
            });
            orb.shutdown();
            for call in waiting {
                let ended = call.join().expect("no panic");
                let ended = ended.expect_err("the ORB is shut down");
                assert_eq!(ended.kind, ExceptionKind::BadInvOrder, "{ended}");
            }
        });
        assert!(!held.is_ready(), "{connection}: no place became free");
    }
}

#[test]
fn each_place_that_becomes_free_wakes_a_thread_that_waits_for_one() {
    const THREADS: u32 = 8;
    for connection in supporting() {
        let (server, _) = reversing(1);
        let orb = waiting(connection, 2);
        let object = object_of(&orb, &server);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let object = &object;
                scope.spawn(move || {
                    for turn in 0..100 {
                        let number = 1000 * thread + turn;
                        assert_eq!(echo(object, number).wait(), Ok(number));
                    }
                });
            }
        });
        assert_eq!(orb.started_calls_refused(), 0, "{connection}");
    }
}

#[test]
fn a_call_that_a_waker_starts_does_not_wait_for_a_place() {
    for connection in supporting() {
        let (server, _came) = silent();
        let orb = waiting(connection, 2);
        let object = object_of(&orb, &server);
        let refused = until("a task awaits a call in time", || {
            let (waker, started) = Starting::waker(&object, echo(&object, 1));
            let mut call = echo(&object.with_timeout(10 * SHORT), 2);
            if poll(&mut call, &waker).is_ready() {
                return None;
            }
            let started = started.recv_timeout(LONG).expect("the waker returns");
            Some(started.wait().expect_err("the table is full"))
        });
        let told = (refused.kind, refused.completed);
        let expected = (ExceptionKind::NoResources, CompletionStatus::No);
        assert_eq!(told, expected, "{connection}: {refused}");
    }
}

#[test]
fn a_table_for_no_call_refuses_each_although_others_may_wait() {
    let (server, _) = reversing(1);
    let orb = waiting(LEADING, 0);
    let refused = echo(&object_of(&orb, &server), 1).wait();
    let refused = refused.expect_err("there is no place");
    assert_eq!(refused.kind, ExceptionKind::NoResources, "{refused}");
}

#[test]
fn calls_in_flight_end_by_their_deadlines_after_shutdown() {
    for connection in supporting() {
        let (server, _came) = silent();
        let orb = with(connection, Orb::builder());
        let object = object_of(&orb, &server).with_timeout(20 * SHORT);
        let call = echo(&object, 1);
        orb.shutdown();
        let late = echo(&object, 2).wait().expect_err("it is shut down");
        assert_eq!(late.kind, ExceptionKind::BadInvOrder, "{late}");
        drop((object, orb));
        until("the call ends", || call.is_ready().then_some(()));
        let failed = call.wait().expect_err("no reply comes");
        assert_eq!(
            failed.kind,
            ExceptionKind::Timeout,
            "{connection}: {failed}"
        );
    }
}

#[test]
fn strategies_without_shared_connections_say_what_to_choose() {
    let (server, _) = reversing(1);
    let read = WaitStrategy::Read;
    for connection in [
        ConnectionStrategy::Exclusive,
        ConnectionStrategy::Multiplexed { wait: read },
        ConnectionStrategy::Banded { wait: read },
    ] {
        let orb = with(connection, Orb::builder());
        let object = object_of(&orb, &server);
        let refused = echo(&object, 1).wait().expect_err("it is not supported");
        assert_eq!(refused.kind, ExceptionKind::InvPolicy, "{connection}");
        assert!(
            refused.to_string().contains("leader_followers"),
            "{refused}"
        );
        let refused = orb.reply_driver().expect_err("it is not supported");
        assert_eq!(refused.kind, ExceptionKind::InvPolicy, "{connection}");
    }
}

#[test]
fn a_call_follows_its_object() {
    for connection in supporting() {
        let (there, _) = reversing(1);
        let location = Ior::parse(&there.reference()).expect("a reference");
        let here = FakeServer::new(move |_, mut peer: Peer| {
            while let Some(id) = peer.request() {
                peer.send(&reply(id, FORWARD, |body| {
                    body.raw(&location_bytes(&location));
                }));
            }
        });
        let object = object(connection, &here);
        let bytes = vec![7_u8; 100_000];
        let call = object.start(
            "echo",
            |w| {
                rtorb::cdr::Encode::encode(&bytes, w)?;
                w.primitive(41_u32)
            },
            |r| r.primitive::<u32>(),
        );
        assert_eq!(call.wait(), Ok(41), "{connection}");
        // It knows the new location.
        assert_eq!(block_or_read(&object, echo(&object, 42)), Ok(42));
    }
}

/// The time that a request says is left, in nanoseconds.
fn told_ns(asked: &[u8]) -> u64 {
    let request = PassedRequest::parse(asked, None).expect("a request");
    let expiry = Expiry::of(request.request().contexts);
    assert_eq!(expiry.end, None);
    expiry.remaining_ns.expect("it has a deadline")
}

#[test]
fn a_call_that_follows_its_object_tells_what_is_left_of_its_deadline() {
    for connection in supporting() {
        let (tell, told) = channel();
        let telling = tell.clone();
        let there = FakeServer::new(move |_, mut peer: Peer| {
            while let Some(asked) = peer.message() {
                let _ = telling.send(told_ns(&asked));
                peer.send(&echoed(&asked));
            }
        });
        let location = Ior::parse(&there.reference()).expect("a reference");
        let here = FakeServer::new(move |_, mut peer: Peer| {
            while let Some(asked) = peer.message() {
                let _ = tell.send(told_ns(&asked));
                let id = request_id(&asked).expect("a request");
                peer.send(&reply(id, FORWARD, |body| {
                    body.raw(&location_bytes(&location));
                }));
            }
        });
        let builder = Orb::builder().deadline_form(DeadlineForm::RemainingTime);
        let object = object_of(&with(connection, builder), &here).with_deadline(LONG);
        assert_eq!(echo(&object, 1).wait(), Ok(1), "{connection}");
        let told: Vec<_> = told.try_iter().collect();
        let [first, second] = told[..] else {
            panic!("two requests: {told:?}");
        };
        assert!(second < first, "{connection}: {told:?}");
    }
}

/// The reference as it stands in a reply, little-endian, at a multiple of 8.
pub(crate) fn location_bytes(location: &Ior) -> Vec<u8> {
    let order = rtorb::cdr::ByteOrder::Little;
    let mut w = rtorb::cdr::Writer::new(Vec::new(), 1 << 16).with_order(order);
    rtorb::cdr::Encode::encode(location, &mut w).expect("it fits");
    w.to_bytes()
}

/// Polls a call on the calling thread, which reads if it may.
fn block_or_read(object: &ObjectRef, mut call: Call<u32>) -> Result<u32, SystemException> {
    let replies = object.orb().reply_driver().expect("it reads, or waits");
    loop {
        if let Poll::Ready(result) = poll(&mut call, &replies.waker()) {
            return result;
        }
        assert!(replies.run_once(Some(Instant::now() + LONG)));
    }
}

/// How an object leaves the place to which its calls were forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    /// Its server says that it is not there.
    Gone,
    /// Its server has ended.
    Ended,
    /// Its server refuses connections.
    Refused,
}

/// The place of an object that replies to one call, and is not there afterwards.
fn left(leaving: Leaving) -> Ior {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        let (mut socket, _) = listener.accept().expect("a client");
        let asked = message(&mut socket).expect("a request");
        let listener = (leaving == Leaving::Refused).then_some(listener);
        socket.write_all(&echoed(&asked)).expect("it is open");
        while let Ok(asked) = message(&mut socket) {
            if leaving != Leaving::Gone {
                let _ = socket.write_all(&CLOSE);
                break;
            }
            let id = request_id(&asked).expect("a request");
            let _ = socket.write_all(&reply(id, SYSTEM_EXCEPTION, |body| {
                let gone = "IDL:omg.org/CORBA/OBJECT_NOT_EXIST:1.0";
                body.string(gone).ulong(0).ulong(COMPLETED_NO);
            }));
        }
        drop(socket);
        if let Some(Ok((mut socket, _))) = listener.as_ref().map(TcpListener::accept) {
            let _ = message(&mut socket);
            let _ = socket.write_all(&CLOSE);
        }
    });
    Ior::parse(&reference_at("127.0.0.1", port)).expect("a reference")
}

#[test]
fn a_call_goes_back_to_the_original_place_when_the_known_one_fails() {
    for connection in supporting() {
        for leaving in [Leaving::Gone, Leaving::Ended, Leaving::Refused] {
            let location = left(leaving);
            let here = FakeServer::new(move |_, mut peer: Peer| {
                let moved = peer.request().expect("the first call");
                peer.send(&reply(moved, FORWARD, |body| {
                    body.raw(&location_bytes(&location));
                }));
                while let Some(asked) = peer.message() {
                    peer.send(&echoed(&asked));
                }
            });
            // At a place that refuses, it is not tried once more.
            let limits = Limits::with(|limits| limits.forwards_max = 1);
            let object = object_of(&with(connection, Orb::builder().limits(limits)), &here);
            for number in 1..4 {
                let result = echo(&object, number).wait();
                assert_eq!(result, Ok(number), "{connection}, {leaving:?}");
            }
        }
    }
}

#[test]
fn calls_begin_with_the_address_that_was_reached_last() {
    for connection in supporting() {
        let (server, _) = reversing(1);
        let endpoint = own_endpoint();
        let host = endpoint.trim_start_matches("iiop://");
        let host = host.trim_end_matches(":0");
        let closed = TcpListener::bind((host, 0)).expect("a free port");
        let port = closed.local_addr().expect("it is bound").port();
        drop(closed);
        let orb = with(connection, Orb::builder());
        let there = server.port();
        let url = format!("corbaloc:iiop:1.2@{host}:{port},iiop:1.2@127.0.0.1:{there}/object");
        let object = orb.string_to_object(&url).expect("two addresses");
        assert_eq!(echo(&object, 1).wait(), Ok(1), "{connection}");
        // It takes connections, and replies to nothing.
        let _open = TcpListener::bind((host, port)).expect("it is free");
        assert_eq!(echo(&object, 2).wait(), Ok(2), "{connection}");
    }
}

const CLOSE: [u8; 12] = *b"GIOP\x01\x02\x01\x05\0\0\0\0";
const SYSTEM_EXCEPTION: u32 = 2;
const COMPLETED_NO: u32 = 1;

#[test]
fn a_request_that_the_server_has_certainly_not_served_is_sent_again() {
    for connection in supporting() {
        let server = FakeServer::new(move |number, mut peer: Peer| {
            while let Some(asked) = peer.message() {
                peer.send(&echoed(&asked));
                if number == 0 {
                    let _ = peer.message();
                    return peer.send(&CLOSE);
                }
            }
        });
        let object = object(connection, &server);
        assert_eq!(echo(&object, 0).wait(), Ok(0), "{connection}");
        let calls = [1, 2].map(|number| echo(&object, number));
        assert_eq!(calls.map(Call::wait), [Ok(1), Ok(2)], "{connection}");
    }
}

/// A server that refuses all connections, and the number of them.
fn refusing() -> (FakeServer, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&opened);
    let server = FakeServer::new(move |_, mut peer: Peer| {
        counted.fetch_add(1, Ordering::SeqCst);
        let _ = peer.message();
        peer.send(&CLOSE);
    });
    (server, opened)
}

#[test]
fn a_call_tries_the_next_address_when_a_server_refuses_the_connection() {
    for connection in supporting() {
        let ((refuses, opened), (serves, _)) = (refusing(), reversing(1));
        let (here, there) = (refuses.port(), serves.port());
        let url = format!("corbaloc:iiop:1.2@127.0.0.1:{here},iiop:1.2@127.0.0.1:{there}/object");
        let orb = with(connection, Orb::builder());
        let object = || orb.string_to_object(&url).expect("two addresses");
        let started = object();
        assert_eq!(echo(&started, 1).wait(), Ok(1), "{connection}");
        assert_eq!(opened.load(Ordering::SeqCst), 1, "{connection}");
        assert_eq!(echo(&started, 2).wait(), Ok(2), "{connection}");
        assert_eq!(opened.load(Ordering::SeqCst), 1, "it begins with the other");
        let blocking: Result<u32, _> =
            object().invoke("echo", |w| w.primitive(3), |r| r.primitive());
        assert_eq!(blocking, Ok(3), "{connection}");
        assert_eq!(opened.load(Ordering::SeqCst), 2, "{connection}");

        let alone = object_of(&orb, &refuses);
        let started = echo(&alone, 4).wait().expect_err("it is refused");
        let blocking: Result<u32, _> = alone.invoke("echo", |w| w.primitive(5), |r| r.primitive());
        let blocking = blocking.expect_err("it is refused");
        for failed in [&started, &blocking] {
            let told = (failed.kind, failed.completed);
            let expected = (ExceptionKind::Transient, CompletionStatus::No);
            assert_eq!(told, expected, "{connection}: {failed}");
        }
        assert_eq!(opened.load(Ordering::SeqCst), 4, "{connection}");
    }
}

/// A server that refuses all connections but tells the code set of `char` data that each request names.
fn told_code_set(tell: Sender<Option<u32>>) -> FakeServer {
    FakeServer::new(move |_, mut peer: Peer| {
        let Some(asked) = peer.message() else {
            return;
        };
        let header = Header::parse(&asked, 1 << 20)
            .expect("GIOP")
            .expect("whole");
        let request = RequestHeader::decode(&mut header.reader(&asked)).expect("a request");
        let data = request.contexts.find(contexts::CODE_SETS);
        let named = data.map(|data| contexts::CodeSets::from_data(data).expect("code sets"));
        tell.send(named.map(|named| named.char_data))
            .expect("a test");
        peer.send(&CLOSE);
    })
}

/// The profile of such a server, which knows one code set of `char` data.
fn profile_with(server: &FakeServer, char_data: CharCodeSet) -> TaggedProfile {
    let ior: Ior = server.reference().parse().expect("a reference");
    let mut profile = ior.iiop_profiles().next().expect("a profile");
    let mut code_sets = CodeSetComponentInfo::supported();
    code_sets.char_data = CodeSetComponent {
        native: char_data.registry(),
        conversion: Vec::new(),
    };
    let code_sets = Component::CodeSets(code_sets).to_tagged();
    profile.components.push(code_sets.expect("it fits"));
    profile.to_tagged().expect("it fits")
}

#[test]
fn a_request_that_is_sent_again_names_the_code_sets_of_its_arguments() {
    for connection in supporting() {
        let (tell, told) = channel();
        let servers = [CharCodeSet::Latin1, CharCodeSet::Utf8, CharCodeSet::Utf8]
            .map(|char_data| (told_code_set(tell.clone()), char_data));
        let profiles = servers.each_ref();
        let profiles = profiles.map(|(server, char_data)| profile_with(server, *char_data));
        let ior = Ior {
            type_id: String::new(),
            profiles: profiles.into(),
        };
        let object = with(connection, Orb::builder()).string_to_object(&ior.to_string());
        echo(&object.expect("a reference"), 1)
            .wait()
            .expect_err("all refuse it");
        let named: Vec<_> = told.try_iter().collect();
        let latin = Some(CharCodeSet::Latin1.registry());
        assert_eq!(named, [latin; 3], "{connection}");
    }
}

#[test]
fn a_request_that_is_sent_again_leaves_the_code_set_of_its_other_connections() {
    let ours = Ours::serve();
    let served: &Ior = ours.desk.as_object().ior();
    let text = "caf\u{e9}";
    for connection in supporting() {
        let (refuses, opened) = refusing();
        let both = Ior {
            type_id: served.type_id.clone(),
            profiles: [profile_with(&refuses, CharCodeSet::Latin1)]
                .into_iter()
                .chain(served.profiles.iter().cloned())
                .collect(),
        };
        let orb = with(connection, Orb::builder());
        let object = |ior: &Ior| orb.string_to_object(&ior.to_string()).expect("a reference");
        let either = object(&both);
        let echo = || -> Call<String> {
            either.start("echo_string", |w| w.str(text), |r| Ok(r.str()?.into()))
        };
        for _ in 0..2 {
            assert_eq!(echo().wait().as_deref(), Ok(text), "{connection}");
            let desk = Desk::unchecked_narrow(object(served));
            assert_eq!(desk.echo_string(text).as_deref(), Ok(text), "{connection}");
        }
        let refused = opened.load(Ordering::SeqCst);
        assert_eq!(refused, 1, "{connection}: the second begins with the other");
    }
}

#[test]
fn the_last_waker_is_woken_once() {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let counts = [0, 1].map(|_| Arc::new(Count(AtomicUsize::new(0))));
    let (server, _) = reversing(2);
    let object = object(
        ConnectionStrategy::Multiplexed {
            wait: WaitStrategy::Reactor,
        },
        &server,
    );
    let mut call = echo(&object, 1);
    for count in &counts {
        let waker = Waker::from(Arc::clone(count));
        assert!(poll(&mut call, &waker).is_pending());
        assert!(poll(&mut call, &waker).is_pending());
    }
    assert_eq!(echo(&object, 2).wait(), Ok(2));
    until("it ends", || call.is_ready().then_some(()));
    until("it is woken", || {
        (counts[1].0.load(Ordering::SeqCst) == 1).then_some(())
    });
    assert_eq!(counts[0].0.load(Ordering::SeqCst), 0);
    // The thread that has woken it may still have it.
    until("no waker is kept", || {
        (Arc::strong_count(&counts[1]) == 1).then_some(())
    });
    assert_eq!(call.wait(), Ok(1));
}

/// Drops calls when it is woken.
struct Dropping(Mutex<Vec<Call<u32>>>, Mutex<Sender<()>>);

impl Wake for Dropping {
    fn wake(self: Arc<Self>) {
        self.0.lock().expect("nobody panics").clear();
        let _ = self.1.lock().expect("nobody panics").send(());
    }
}

#[test]
fn a_waker_may_drop_other_calls_of_a_connection_that_ends() {
    for wait in [WaitStrategy::Reactor, WaitStrategy::ConnectionThread] {
        let server = FakeServer::new(|_, mut peer: Peer| {
            (0..3).for_each(|_| assert!(peer.message().is_some()));
        });
        let object = object(ConnectionStrategy::Multiplexed { wait }, &server);
        let (sender, woken) = channel();
        let others = Mutex::new([1, 2].map(|number| echo(&object, number)).into());
        let waker = Waker::from(Arc::new(Dropping(others, Mutex::new(sender))));
        let mut call = echo(&object, 3);
        let ended = match poll(&mut call, &waker) {
            Poll::Ready(ended) => ended,
            Poll::Pending => {
                woken.recv_timeout(LONG).expect("the waker returns");
                call.wait()
            }
        };
        let failed = ended.expect_err("the server ends");
        assert_eq!(failed.kind, ExceptionKind::CommFailure, "{failed}");
    }
}

/// Asks whether a call is ready, and starts another one, when it is woken.
struct Starting {
    object: ObjectRef,
    known: Mutex<Call<u32>>,
    started: Mutex<Sender<Call<u32>>>,
}

impl Wake for Starting {
    fn wake(self: Arc<Self>) {
        assert!(!self.known.lock().expect("nobody panics").is_ready());
        let started = self.started.lock().expect("nobody panics");
        let _ = started.send(echo(&self.object, 7));
    }
}

impl Starting {
    /// Such a waker, and the calls that it starts.
    fn waker(object: &ObjectRef, known: Call<u32>) -> (Waker, Receiver<Call<u32>>) {
        let (sender, started) = channel();
        let starting = Self {
            object: object.clone(),
            known: Mutex::new(known),
            started: Mutex::new(sender),
        };
        (Waker::from(Arc::new(starting)), started)
    }
}

#[test]
fn a_waker_may_ask_for_calls_and_start_others() {
    for connection in supporting() {
        let (release, order) = channel::<()>();
        let order = Arc::new(Mutex::new(order));
        let server = FakeServer::new(move |_, mut peer: Peer| {
            assert!(peer.message().is_some(), "a call without a reply");
            let asked = peer.message().expect("another call");
            let _ = order.lock().expect("nobody panics").recv();
            peer.send(&echoed(&asked));
            while let Some(asked) = peer.message() {
                peer.send(&echoed(&asked));
            }
        });
        let orb = with(connection, Orb::builder());
        let object = object_of(&orb, &server);
        let (waker, started) = Starting::waker(&object, echo(&object, 1));
        let mut call = echo(&object, 2);
        assert!(poll(&mut call, &waker).is_pending());
        release.send(()).expect("the server waits for it");
        if connection.wait() == WaitStrategy::LeaderFollowers {
            let replies = orb.reply_driver().expect("leaders read");
            while !call.is_ready() {
                assert!(replies.run_once(Some(Instant::now() + LONG)));
            }
        }
        let started = started.recv_timeout(LONG).expect("the waker returns");
        assert_eq!(started.wait(), Ok(7), "{connection}");
        assert_eq!(call.wait(), Ok(2), "{connection}");
    }
}

#[test]
fn a_waker_may_start_calls_when_a_deadline_passes() {
    for connection in supporting() {
        let (server, _came) = silent();
        let object = object(connection, &server);
        until("a task awaits a call in time", || {
            let (waker, started) = Starting::waker(&object, echo(&object, 1));
            let mut call = echo(&object.with_timeout(10 * SHORT), 2);
            if poll(&mut call, &waker).is_ready() {
                return None;
            }
            let started = started.recv_timeout(LONG).expect("the waker returns");
            assert!(!started.is_ready(), "{connection}: {:?}", started.wait());
            Some(())
        });
    }
}

#[test]
fn calls_of_two_priorities_go_over_the_connections_of_their_bands() {
    let (sender, came) = channel();
    let server = FakeServer::new(move |number, mut peer: Peer| {
        while let Some(id) = peer.request() {
            let _ = sender.send(number);
            peer.send(&yes(id));
        }
    });
    let wait = WaitStrategy::LeaderFollowers;
    let object = object(ConnectionStrategy::Banded { wait }, &server);
    let calls = [10, 20, 10].map(|number| {
        let priority = Priority::new(number).expect("legal");
        let starter = object.starter_at(priority);
        starter.start("ask", |_| Ok(()), |r| r.primitive::<u8>())
    });
    assert_eq!(calls.map(Call::wait), [Ok(1), Ok(1), Ok(1)]);
    let mut used: Vec<usize> = came.try_iter().collect();
    used.sort_unstable();
    assert_eq!(used, [0, 0, 1]);
}
