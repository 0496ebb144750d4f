//! Connections that break: every call has one truthful outcome, and what did not run is sent again where that is allowed.

use super::network::{Conditions, Cut, Direction, Fault, connections, cut_next, reset_all};
use super::scripted::Act;
use super::servant::{Job, Worker};
use super::world::{Sending, World, call, client_strategies, object};
use crate::exception::{Phase, oneway};
use crate::{CompletionStatus, ExceptionKind, Orb, SystemException};
use core::time::Duration;
use rtorb_tests::fake::{reply, yes};
use rtorb_tests::raw::{CLOSE_CONNECTION, MESSAGE_ERROR, Stream, fragments};
use rtorb_wire::exception::NOT_UNDERSTOOD;

const TIMEOUT: Duration = Duration::from_secs(10);
/// More than the bytes of a request or a reply here.
const BYTES_MAX: usize = 160;
/// Their number of calls.
const LAST: u32 = 5;

#[test]
fn a_connection_may_break_at_every_byte_of_a_request_or_a_reply() {
    // With a narrow pipe, the client is still sending when the connection breaks.
    let narrow = Conditions {
        pipe_bytes_max: 16,
        ..Conditions::PERFECT
    };
    let mut outcomes = [0; 3];
    for (strategy, builder) in client_strategies() {
        for (conditions, step) in [(Conditions::PERFECT, 1), (narrow, 5)] {
            for fault in [Fault::Reset, Fault::HalfClose, Fault::Silence] {
                for direction in [Direction::ToServer, Direction::ToClient] {
                    for received in (0..BYTES_MAX).step_by(step) {
                        let world = World::new(0, conditions);
                        let server = world.serve(Orb::builder(), Sending::ByEventLoop);
                        let cut = Cut {
                            direction,
                            received,
                            fault,
                        };
                        cut_next([Some(cut)]);
                        let builder = builder().round_trip_timeout(Some(TIMEOUT));
                        let worker = Worker(object(&world, builder, &server.reference));
                        let what = format!("{strategy}, {conditions:?}, {cut:?}");
                        // The last call is certainly one behind the break.
                        for number in 1..=LAST {
                            let done = worker.work(Job::small(number));
                            world.pass(Duration::from_millis(1));
                            let ran = server.log.count(number);
                            outcomes[check(&done, ran, &what)] += 1;
                            assert!(done.is_ok() || number < LAST, "{what}: {done:?}");
                        }
                        assert!(connections() <= 2, "{what}");
                    }
                }
            }
        }
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}

/// An outcome never contradicts what the server did. Returns its place among done, not done, and maybe.
fn check(done: &Result<(), SystemException>, ran: usize, what: &str) -> usize {
    match done.as_ref().map_err(|failed| failed.completed) {
        Ok(()) | Err(CompletionStatus::Yes) => assert_eq!(ran, 1, "{what}"),
        Err(CompletionStatus::No) => assert_eq!(ran, 0, "{what}"),
        Err(CompletionStatus::Maybe) => assert!(ran <= 1, "{what}"),
    }
    match done {
        Ok(()) => 0,
        Err(failed) if failed.completed == CompletionStatus::No => 1,
        Err(failed) => {
            let kinds = [ExceptionKind::CommFailure, ExceptionKind::Timeout];
            assert!(kinds.contains(&failed.kind), "{what}");
            2
        }
    }
}

#[test]
fn a_server_that_dies_is_a_communication_failure() {
    for (strategy, builder) in client_strategies() {
        for end in 0..yes(0).len() {
            let world = World::perfect();
            let server = world
                .script(move |request| vec![Act::Send(yes(request.id)[..end].into()), Act::Close]);
            let object = object(&world, builder().round_trip_timeout(Some(TIMEOUT)), &server);
            let failed = call(&object).expect_err("it dies");
            expect_failure(&failed, &format!("{strategy}, after {end}"));
        }
    }
}

#[test]
fn a_connection_that_broke_between_two_calls_is_replaced() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let server = world.serve(Orb::builder(), Sending::ByEventLoop);
        let builder = builder().round_trip_timeout(Some(TIMEOUT));
        let worker = Worker(object(&world, builder, &server.reference));
        for number in 0..5 {
            worker.work(Job::small(number)).expect(strategy);
            reset_all();
        }
        assert_eq!((server.log.len(), connections()), (5, 5), "{strategy}");
    }
}

//= GIOP 1.2 §15.4.7
//% test
#[test]
fn a_connection_whose_server_ended_while_it_was_idle_is_replaced() {
    let close = Stream::new(CLOSE_CONNECTION, 2, false).message();
    let error = Stream::new(MESSAGE_ERROR, 2, false).message();
    let ends = [vec![], vec![Act::Send(close)], vec![Act::Send(error)]];
    for ((strategy, builder), end) in client_strategies()
        .into_iter()
        .flat_map(|strategy| ends.clone().map(|end| (strategy, end)))
    {
        for timeout in [
            None,
            Some(Duration::from_millis(20)),
            Some(Duration::from_secs(30)),
        ] {
            let what = format!("{strategy}, {end:?}, {timeout:?}");
            let world = World::perfect();
            let end = end.clone();
            let server = world.script(move |request| {
                let send = Act::Send(yes(request.id));
                if request.connection > 0 {
                    return vec![send];
                }
                [vec![send, Act::Wait(IDLE)], end.clone(), vec![Act::Close]].concat()
            });
            let builder = builder().round_trip_timeout(timeout);
            let object = object(&world, builder, &server);
            assert_eq!(call(&object), Ok(true), "{what}");
            world.pass(2 * IDLE);
            // What is lost with a oneway, nobody learns.
            assert_eq!(object.invoke_oneway("tell", |_| Ok(())), Ok(()), "{what}");
            assert_eq!(connections(), 2, "{what}");
            assert_eq!(call(&object), Ok(true), "{what}");
            assert_eq!(connections(), 2, "{what}");
        }
    }
}

/// Longer than connections are used unseen.
const IDLE: Duration = Duration::from_secs(2);

#[test]
fn a_oneway_that_waits_for_nothing_finds_the_end_of_an_idle_connection() {
    for (strategy, builder) in client_strategies().into_iter().take(2) {
        let world = World::perfect();
        let server = world.script(|request| {
            let close = [Act::Wait(IDLE), Act::Close];
            [vec![Act::Send(yes(request.id))], close.into()].concat()
        });
        let object = object(&world, builder(), &server);
        assert_eq!(call(&object), Ok(true), "{strategy}");
        world.pass(2 * IDLE);
        let sent = object.invoke_oneway_at_once("tell", |_| Ok(()));
        let failed = sent.expect_err("the connection has ended");
        assert_eq!(failed.minor, oneway::UNCONNECTED, "{strategy}: {failed}");
    }
}

#[test]
fn an_idle_connection_that_lives_stays() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let server = world.script(|request| vec![Act::Send(yes(request.id))]);
        let object = object(&world, builder(), &server);
        for _ in 0..3 {
            assert_eq!(call(&object), Ok(true), "{strategy}");
            world.pass(2 * IDLE);
        }
        assert_eq!(connections(), 1, "{strategy}");
    }
}

#[test]
fn close_connection_is_not_seen_by_the_caller() {
    let close = Stream::new(CLOSE_CONNECTION, 2, false).message();
    for (strategy, builder) in client_strategies() {
        // Between two calls, and while one waits for its reply: what was not answered was not carried out.
        for is_awaited in [false, true] {
            // In two parts, at every place.
            for cut in 0..close.len() {
                let world = World::perfect();
                let close = close.clone();
                let server = world.script(move |request| {
                    let (head, rest) = close.split_at(cut);
                    let pause = Act::Wait(Duration::from_millis(1));
                    let last = [
                        Act::Send(head.into()),
                        pause,
                        Act::Send(rest.into()),
                        Act::Close,
                    ];
                    let yes = Act::Send(yes(request.id));
                    match (request.connection, request.number, is_awaited) {
                        (0 | 1, 0, false) => [vec![yes], last.into()].concat(),
                        (0 | 1, 1, true) => last.into(),
                        _ => vec![yes],
                    }
                });
                let object = object(&world, builder().round_trip_timeout(Some(TIMEOUT)), &server);
                for _ in 0..5 {
                    assert_eq!(call(&object), Ok(true), "{strategy}, awaited: {is_awaited}");
                    world.pass(Duration::from_millis(2));
                }
                assert_eq!(connections(), 3, "{strategy}, awaited: {is_awaited}");
            }
        }
    }
}

#[test]
fn a_request_whose_reply_has_begun_is_not_sent_again() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let server = world.script(|request| {
            let whole = reply(request.id, 0, |body| {
                body.raw(&[1; 100]);
            });
            let close = Stream::new(CLOSE_CONNECTION, 2, false).message();
            vec![
                Act::Send(fragments(&whole, 32, 32).swap_remove(0)),
                Act::Send(close),
            ]
        });
        let object = object(&world, builder().round_trip_timeout(Some(TIMEOUT)), &server);
        let failed = call(&object).expect_err("the rest never comes");
        expect_failure(&failed, strategy);
        assert_eq!(connections(), 1);
    }
}

#[test]
fn a_server_that_closes_every_connection_is_transient() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let close = Stream::new(CLOSE_CONNECTION, 2, false).message();
        let server = world.script(move |_| vec![Act::Send(close.clone()), Act::Close]);
        let object = object(&world, builder().round_trip_timeout(Some(TIMEOUT)), &server);
        let failed = call(&object).expect_err("it serves nobody");
        assert_eq!(
            (failed.kind, failed.completed),
            (ExceptionKind::Transient, CompletionStatus::No),
            "{strategy}: {failed}"
        );
        assert!(connections() <= 2, "it is not tried for ever");
    }
}

//= GIOP 1.2 §15.4.8
//% test
#[test]
fn a_message_error_is_a_communication_failure() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let error = Stream::new(MESSAGE_ERROR, 2, false).message();
        let server = world.script(move |_| vec![Act::Send(error.clone())]);
        let object = object(&world, builder().round_trip_timeout(Some(TIMEOUT)), &server);
        let failed = call(&object).expect_err("an error came");
        expect_failure(&failed, strategy);
        assert_eq!(failed.minor, NOT_UNDERSTOOD, "{strategy}");
        let advice = failed.advice().expect("there is a remedy");
        assert!(
            advice.contains("did not understand"),
            "{strategy}: {advice}"
        );
    }
}

#[test]
fn a_server_that_sends_no_more_may_still_be_replied_by() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let server = world.script(|request| vec![Act::Send(yes(request.id)), Act::HalfClose]);
        let object = object(&world, builder().round_trip_timeout(Some(TIMEOUT)), &server);
        assert_eq!(call(&object), Ok(true), "{strategy}");
        // The second request reaches a server that cannot reply: nobody knows whether it ran.
        expect_failure(&call(&object).expect_err("no reply"), strategy);
    }
}

fn expect_failure(failed: &SystemException, what: &str) {
    assert_eq!(
        (failed.kind, failed.completed),
        (ExceptionKind::CommFailure, CompletionStatus::Maybe),
        "{what}: {failed}"
    );
    let phase = failed.cause.as_ref().map(|cause| cause.phase);
    assert_eq!(phase, Some(Phase::AwaitReply), "{what}: {failed}");
}
