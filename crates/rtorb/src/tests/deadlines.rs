//! Calls whose deadline passes: each is right or a timeout, at its time, and none takes the reply of another.

use super::network::{Conditions, connections, set_conditions, silence};
use super::scripted::{Act, PORT, Request};
use super::world::{World, call, client_strategies, object};
use crate::clock::monotonic_ns;
use crate::deadline::{with_deadline, without_deadline};
use crate::exception::{OMG, Phase};
use crate::{
    CompletionStatus, ExceptionKind, Limits, ObjectRef, Orb, PolicyOverrides, SystemException,
};
use core::cell::Cell;
use core::time::Duration;
use rtorb_tests::fake::{reference_at, reply, yes};
use rtorb_tests::raw::{CLOSE_CONNECTION, Stream, fragments};
use rtorb_wire::ior::Ior;
use rtorb_wire::{Encode, Writer};
use std::rc::Rc;
use std::time::Instant;

/// The timeout of calls here.
const TIMEOUT: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_millis(20);

//= RT-CORBA 1.2 §Invocation Timeout
//% test
#[test]
fn a_silent_server_is_a_timeout_at_the_deadline() {
    for (strategy, builder) in client_strategies() {
        for seconds in [1, 10, 3600] {
            let timeout = Duration::from_secs(seconds);
            let world = World::perfect();
            let silent = world.script(|_| vec![]);
            let builder = builder().round_trip_timeout(Some(timeout));
            let object = object(&world, builder, &silent);
            let failed = timed(&object, timeout).expect_err("nobody replies");
            assert!(is_timeout(&failed, 3), "{strategy}: {failed}");
            let cause = failed.cause.expect("it has a cause");
            assert_eq!(cause.phase, Phase::AwaitReply);
            assert!(cause.elapsed >= timeout, "{strategy}: {:?}", cause.elapsed);
        }
    }
}

#[test]
fn a_deadline_may_pass_at_every_byte_of_a_reply() {
    let replies: [fn(u32) -> Vec<u8>; 2] = [yes, in_fragments];
    for (strategy, builder) in client_strategies() {
        for whole in replies {
            for cut in 0..whole(0).len() {
                let is_a = call_with_pause(builder(), whole, cut, TIMEOUT + MOMENT);
                let failed = is_a.expect_err("the rest is late");
                assert!(is_timeout(&failed, 3), "{strategy}, cut at {cut}: {failed}");
                let is_a = call_with_pause(builder(), whole, cut, TIMEOUT - MOMENT);
                assert_eq!(is_a, Ok(true), "{strategy}, cut at {cut}");
            }
        }
    }
}

fn in_fragments(id: u32) -> Vec<u8> {
    let whole = reply(id, 0, |body| {
        body.raw(&[1; 100]);
    });
    fragments(&whole, 32, 32).concat()
}

#[test]
fn a_deadline_may_pass_in_a_reply_larger_than_the_receive_buffer() {
    let whole = |id| {
        reply(id, 0, |body| {
            body.ulong(200_000).raw(&[7; 200_000]);
        })
    };
    for (strategy, builder) in client_strategies() {
        for cut in [23, 24, 4_000, 65_535, 131_072, 200_027] {
            for (pause, is_late) in [(TIMEOUT + MOMENT, true), (TIMEOUT - MOMENT, false)] {
                let world = World::perfect();
                let server = world.script(move |request| {
                    let reply = whole(request.id);
                    let (head, rest) = reply.split_at(cut);
                    vec![
                        Act::Send(head.into()),
                        Act::Wait(pause),
                        Act::Send(rest.into()),
                    ]
                });
                let builder = builder().round_trip_timeout(Some(TIMEOUT));
                let object = object(&world, builder, &server);
                let bytes = object.invoke("bytes", |_| Ok(()), |r| r.octets().map(<[u8]>::len));
                match bytes {
                    Ok(bytes) => assert!(!is_late && bytes == 200_000, "{strategy}, cut at {cut}"),
                    Err(failed) => assert!(
                        is_late && is_timeout(&failed, 3),
                        "{strategy}, cut at {cut}: {failed}"
                    ),
                }
            }
        }
    }
}

/// A call whose reply comes with a pause; afterwards a second call, which is always right.
fn call_with_pause(
    builder: crate::OrbBuilder,
    whole: fn(u32) -> Vec<u8>,
    cut: usize,
    pause: Duration,
) -> Result<bool, SystemException> {
    let world = World::perfect();
    let server = world.script(move |request| {
        let reply = whole(request.id);
        if request.connection + request.number > 0 {
            return vec![Act::Send(reply)];
        }
        let (head, rest) = reply.split_at(cut);
        vec![
            Act::Send(head.into()),
            Act::Wait(pause),
            Act::Send(rest.into()),
        ]
    });
    let object = object(&world, builder.round_trip_timeout(Some(TIMEOUT)), &server);
    let is_a = timed(&object, TIMEOUT);
    assert_eq!(call(&object), Ok(true), "the next call is not concerned");
    is_a
}

#[test]
fn a_server_that_sends_byte_by_byte_does_not_outlast_the_timeout() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let server = world.script(|request: Request| {
            let whole = reply(request.id, 0, |body| {
                body.raw(&[1; 4000]);
            });
            let bytes = whole.into_iter().map(|byte| Act::Send(vec![byte]));
            bytes.flat_map(|send| [send, Act::Wait(MOMENT)]).collect()
        });
        let builder = builder().round_trip_timeout(Some(TIMEOUT));
        let failed = timed(&object(&world, builder, &server), TIMEOUT).expect_err("80 s");
        assert!(is_timeout(&failed, 3), "{strategy}: {failed}");
    }
}

#[test]
fn the_late_reply_to_a_call_given_up_is_for_nobody() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let server = world.script(|request| {
            // The first reply says no, and comes too late.
            if request.connection + request.number == 0 {
                let no = reply(request.id, 0, |body| {
                    body.raw(&[0]);
                });
                return vec![Act::Wait(2 * MOMENT), Act::Send(no)];
            }
            vec![Act::Send(yes(request.id))]
        });
        let object = object(&world, builder().round_trip_timeout(Some(TIMEOUT)), &server);
        let hasty = object.with_timeout(MOMENT);
        let failed = timed(&hasty, MOMENT).expect_err("it comes too late");
        assert!(is_timeout(&failed, 3), "{strategy}: {failed}");
        world.pass(2 * MOMENT);
        assert_eq!(call(&object), Ok(true), "{strategy}");
    }
}

#[test]
fn a_call_at_its_deadline_is_right_or_a_timeout() {
    const SHORT: Duration = Duration::from_millis(2);
    // A thread that wakes late may have its reply on a connection that the watchdog has ended.
    for ((strategy, builder), late_wakeups) in client_strategies()
        .into_iter()
        .flat_map(|strategy| [(strategy, false), (strategy, true)])
    {
        let conditions = Conditions {
            late_wakeups,
            ..Conditions::PERFECT
        };
        let world = World::new(0, conditions);
        let wait = Rc::new(Cell::new(Duration::ZERO));
        let of_server = Rc::clone(&wait);
        let server = world
            .script(move |request| vec![Act::Wait(of_server.get()), Act::Send(yes(request.id))]);
        let object = object(&world, builder().round_trip_timeout(Some(TIMEOUT)), &server);
        let hasty = object.with_timeout(SHORT);
        // From well before to well after the deadline, and the watchdog's 0.2 ms.
        for micros in 1_500..2_500 {
            wait.set(Duration::from_micros(micros));
            match timed(&hasty, SHORT) {
                Ok(is_a) => assert!(is_a && micros <= 2_200, "{strategy}, {micros} us"),
                Err(failed) => {
                    let is_late = micros >= 2_000 && is_timeout(&failed, 3);
                    assert!(is_late, "{strategy}, {micros} us: {failed}");
                }
            }
        }
        wait.set(SHORT);
        assert_eq!(call(&object), Ok(true), "{strategy}: with time enough");
    }
}

#[test]
fn a_request_that_the_server_does_not_take_is_a_timeout_of_sending() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let server = world.script(|request| vec![Act::Send(yes(request.id)), Act::StopReading]);
        let object = object(&world, builder().round_trip_timeout(Some(TIMEOUT)), &server);
        assert_eq!(call(&object), Ok(true));
        let narrow = Conditions {
            pipe_bytes_max: 1000,
            ..Conditions::PERFECT
        };
        set_conditions(narrow);
        let bytes = vec![1u8; 5000];
        let begun_ns = monotonic_ns();
        let failed = object
            .invoke("eat", |w| bytes.encode(w), |_| Ok(()))
            .expect_err("it is not taken");
        assert_eq!(
            (failed.kind, failed.minor),
            (ExceptionKind::Timeout, OMG | 2),
            "{strategy}: {failed}"
        );
        assert_eq!(failed.completed, CompletionStatus::Maybe, "{strategy}");
        let cause = failed.cause.expect("it has a cause");
        assert_eq!(cause.phase, Phase::Send, "{strategy}");
        check_time(begun_ns, TIMEOUT);
    }
}

#[test]
fn a_call_sends_the_rest_of_a_oneway_first() {
    let world = World::perfect();
    let requests = Rc::new(Cell::new(0));
    let of_server = Rc::clone(&requests);
    let server = world.script(move |request| {
        of_server.set(of_server.get() + 1);
        let pause = [Act::StopReading, Act::Wait(MOMENT), Act::Read];
        [vec![Act::Send(yes(request.id))], pause.into()].concat()
    });
    let builder = Orb::builder().round_trip_timeout(Some(TIMEOUT));
    let object = object(&world, builder, &server);
    assert_eq!(call(&object), Ok(true));
    set_conditions(Conditions {
        pipe_bytes_max: 1000,
        ..Conditions::PERFECT
    });
    let bytes = vec![1u8; 5000];
    let is_whole = object.invoke_oneway_at_once("eat", |w| bytes.encode(w));
    assert_eq!(is_whole, Ok(false), "the rest is kept");
    assert_eq!(call(&object), Ok(true), "the server reads in time");
    assert_eq!(requests.get(), 3);
    assert_eq!(object.flush(), Ok(true));
}

#[test]
fn a_timeout_that_was_very_short_keeps_no_processor_busy() {
    let world = World::perfect();
    let server = world.script(|request| vec![Act::Send(yes(request.id))]);
    let orb = world.client(Orb::builder().round_trip_timeout(Some(TIMEOUT)));
    let object = orb.string_to_object(&server).expect("a reference");
    let hasty = object.with_timeout(Duration::from_nanos(1));
    for _ in 0..3 {
        // Whether the server is faster does not matter here.
        let _ = call(&hasty);
    }
    assert_eq!(call(&object), Ok(true));
    if let Some(next_ns) = orb.core.client.watchdog.look() {
        assert!(next_ns >= monotonic_ns() + WATCHDOG.as_nanos() as u64);
    }
}

#[test]
fn a_call_behind_the_rest_of_a_oneway_ends_at_its_deadline() {
    let world = World::perfect();
    let server = world.script(|request| vec![Act::Send(yes(request.id)), Act::StopReading]);
    let builder = Orb::builder().round_trip_timeout(Some(TIMEOUT));
    let object = object(&world, builder, &server);
    assert_eq!(call(&object), Ok(true));
    set_conditions(Conditions {
        pipe_bytes_max: 1000,
        ..Conditions::PERFECT
    });
    let bytes = vec![1u8; 5000];
    let is_whole = object.invoke_oneway_at_once("eat", |w| bytes.encode(w));
    assert_eq!(is_whole, Ok(false), "the rest is kept");
    let failed = timed(&object, TIMEOUT).expect_err("the server takes nothing");
    assert!(is_unsent(&failed, Phase::Send), "{failed}");
}

#[test]
fn endpoints_that_never_answer_share_the_time_of_one_call() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        (2..6).for_each(silence);
        let builder = builder().connect_timeout(Duration::from_secs(1));
        let orb = world.client(builder.round_trip_timeout(Some(MOMENT)));
        let silent = "corbaloc::127.0.0.1:2,:127.0.0.1:3,:127.0.0.1:4,:127.0.0.1:5/x";
        let object = orb.string_to_object(silent).expect("a reference");
        type Ask = fn(&ObjectRef) -> Result<(), SystemException>;
        let asks: [Ask; 4] = [
            |object| object.is_a("IDL:Any:1.0").map(|_| ()),
            |object| object.non_existent().map(|_| ()),
            ObjectRef::validate_connection,
            |object| object.invoke_oneway("tell", |_| Ok(())),
        ];
        for ask in asks {
            let begun_ns = monotonic_ns();
            let failed = ask(&object).expect_err("nobody answers");
            assert!(is_unsent(&failed, Phase::Connect), "{strategy}: {failed}");
            check_time(begun_ns, MOMENT);
        }
    }
}

#[test]
fn an_endpoint_that_never_answers_leaves_time_for_the_next() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        silence(2);
        world.script(|request| vec![Act::Send(yes(request.id))]);
        let builder = builder().connect_timeout(Duration::from_secs(1));
        let builder = builder.round_trip_timeout(Some(MOMENT));
        let two = "corbaloc:iiop:1.2@127.0.0.1:2,iiop:1.2@127.0.0.1:1/x";
        assert_eq!(call(&object(&world, builder, two)), Ok(true), "{strategy}");
    }
}

#[test]
fn forwards_do_not_begin_the_time_anew() {
    for (strategy, builder) in client_strategies() {
        // The deadline passes while a server is asked, or exactly when it has replied.
        for pause in [MOMENT * 3 / 10, MOMENT / 2] {
            let world = World::perfect();
            let server = world.script(move |request| {
                vec![Act::Wait(pause), Act::Send(forward_to_itself(request.id))]
            });
            let limits = Limits::with(|limits| limits.forwards_max = 64);
            let builder = builder().limits(limits).round_trip_timeout(Some(MOMENT));
            let object = object(&world, builder, &server);
            let begun_ns = monotonic_ns();
            let failed = call(&object).expect_err("it goes on for ever");
            check_time(begun_ns, MOMENT);
            let is_waiting = is_timeout(&failed, 3);
            assert!(
                is_waiting || is_unsent(&failed, Phase::Forward),
                "{strategy}: {failed}"
            );
        }
    }
}

/// Two servers, of which the first forwards the call to the second: each needs most of the timeout.
#[test]
fn the_usual_timeout_bounds_a_call_with_its_forward() {
    for (strategy, builder) in client_strategies() {
        for (pause, is_late) in [(USUAL * 3 / 4, true), (USUAL / 4, false)] {
            let world = World::perfect();
            let server = world.script(move |request| {
                let is_first = request.connection + request.number == 0;
                let answer = if is_first {
                    forward_to_itself(request.id)
                } else {
                    yes(request.id)
                };
                vec![Act::Wait(pause), Act::Send(answer)]
            });
            let object = object(&world, builder(), &server);
            assert_eq!(object.chosen_timeout(), None, "{strategy}");
            let is_a = timed(&object, USUAL);
            if is_late {
                let failed = is_a.expect_err("there is no time for the second");
                assert!(is_timeout(&failed, 3), "{strategy}: {failed}");
            } else {
                assert_eq!(is_a, Ok(true), "{strategy}");
            }
        }
    }
}

/// A LOCATION_FORWARD to the scripted server.
fn forward_to_itself(id: u32) -> Vec<u8> {
    let elsewhere: Ior = reference_at("127.0.0.1", PORT).parse().expect("an IOR");
    let mut w = Writer::new(Vec::new(), 1000);
    elsewhere.encode(&mut w).expect("it fits");
    reply(id, 3, |body| {
        body.raw(&w.to_bytes());
    })
}

#[test]
fn a_request_that_is_sent_again_has_the_time_that_is_left() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let server = world.script(|request| match (request.connection, request.number) {
            (0, 0) => vec![Act::Send(yes(request.id))],
            (0, _) => vec![
                Act::Wait(MOMENT * 3 / 4),
                Act::Send(Stream::new(CLOSE_CONNECTION, 2, false).message()),
                Act::Close,
            ],
            _ => vec![],
        });
        let object = object(&world, builder().round_trip_timeout(Some(MOMENT)), &server);
        assert_eq!(call(&object), Ok(true));
        let failed = timed(&object, MOMENT).expect_err("the second server is silent");
        assert!(is_timeout(&failed, 3), "{strategy}: {failed}");
        assert_eq!(connections(), 2, "{strategy}");
    }
}

#[test]
fn the_older_name_of_an_operation_is_asked_within_the_time_that_is_left() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let server = world.script(|request| {
            let unknown = reply(request.id, 2, |body| {
                body.string("IDL:omg.org/CORBA/BAD_OPERATION:1.0");
                body.ulong(0).ulong(1);
            });
            vec![Act::Wait(MOMENT * 3 / 4), Act::Send(unknown)]
        });
        let object = object(&world, builder().round_trip_timeout(Some(MOMENT)), &server);
        for ask in [
            |object: &ObjectRef| object.non_existent().map(|_| ()),
            ObjectRef::validate_connection,
        ] {
            let begun_ns = monotonic_ns();
            let failed = ask(&object).expect_err("the second reply is late");
            assert!(is_timeout(&failed, 3), "{strategy}: {failed}");
            check_time(begun_ns, MOMENT);
        }
    }
}

/// The time of one step of an application. Its end is a time of the real clock: what a busy host delays the test is taken from it.
const STEP: Duration = Duration::from_secs(100);

#[test]
fn calls_with_one_end_time_end_by_it() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let server =
            world.script(|request| vec![Act::Wait(STEP * 2 / 5), Act::Send(yes(request.id))]);
        let object = object(&world, builder().round_trip_timeout(Some(STEP)), &server);
        assert_eq!(call(&object), Ok(true));
        let begun_ns = monotonic_ns();
        let bounded = object.with_end_time(Instant::now() + STEP);
        assert!(bounded.chosen_timeout().is_some_and(|left| left <= STEP));
        assert_eq!(call(&bounded), Ok(true), "{strategy}");
        assert_eq!(call(&bounded), Ok(true), "{strategy}");
        let failed = call(&bounded).expect_err("there is no time for a third");
        assert!(is_timeout(&failed, 3), "{strategy}: {failed}");
        let elapsed = Duration::from_nanos(monotonic_ns() - begun_ns);
        assert!(elapsed <= STEP + WATCHDOG, "{strategy}: {elapsed:?}");
        // The request of a call whose time is over is not sent, also where a connection is open.
        assert_eq!(call(&object), Ok(true), "{strategy}");
        let late = call(&bounded).expect_err("the time is over");
        assert_eq!(
            (late.kind, late.completed),
            (ExceptionKind::Timeout, CompletionStatus::No),
            "{strategy}: {late}"
        );
        assert_eq!(object.chosen_timeout(), Some(STEP));
    }
}

#[test]
fn an_operation_of_several_calls_ends_by_its_deadline() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let server =
            world.script(|request| vec![Act::Wait(MOMENT * 2 / 5), Act::Send(yes(request.id))]);
        let object = object(&world, builder().round_trip_timeout(Some(TIMEOUT)), &server);
        assert_eq!(call(&object), Ok(true));
        let begun_ns = monotonic_ns();
        let failed = with_deadline(MOMENT, || {
            assert_eq!(call(&object), Ok(true), "{strategy}");
            // A longer deadline of a part of it changes nothing.
            assert_eq!(with_deadline(TIMEOUT, || call(&object)), Ok(true));
            call(&object)
        });
        let failed = failed.expect_err("there is no time for a third");
        assert!(is_timeout(&failed, 3), "{strategy}: {failed}");
        let elapsed = Duration::from_nanos(monotonic_ns() - begun_ns);
        assert!(elapsed <= MOMENT + WATCHDOG, "{strategy}: {elapsed:?}");
        assert_eq!(call(&object), Ok(true), "{strategy}: it is over");
        let unbounded = with_deadline(None, || call(&object));
        assert_eq!(unbounded, Ok(true), "{strategy}");
    }
}

/// The ORB's timeout, if the application sets none.
const USUAL: Duration = Duration::from_secs(30);

#[test]
fn an_operation_of_several_calls_ends_by_the_timeout_of_one_also_if_nobody_chose_it() {
    for (strategy, builder) in client_strategies() {
        let world = World::perfect();
        let server =
            world.script(|request| vec![Act::Wait(USUAL * 3 / 4), Act::Send(yes(request.id))]);
        let orb = world.client(builder());
        let object = orb.string_to_object(&server).expect("a reference");
        assert_eq!(object.chosen_timeout(), None);
        let twice = || call(&object).and_then(|_| call(&object));
        type Within<'o> = &'o dyn Fn() -> Result<bool, SystemException>;
        let operations: [Within<'_>; 2] = [&|| object.within_timeout(twice), &|| {
            orb.within_timeout(twice)
        }];
        for operation in operations {
            let begun_ns = monotonic_ns();
            let failed = operation().expect_err("there is no time for a second call");
            assert!(is_timeout(&failed, 3), "{strategy}: {failed}");
            assert_eq!(failed.detail(), None, "it is no deadline");
            check_time(begun_ns, USUAL);
        }
        assert_eq!(twice(), Ok(true), "{strategy}: it is over");
    }
}

#[test]
fn an_operation_of_several_calls_of_an_orb_has_the_timeout_of_the_thread() {
    let world = World::perfect();
    let server = world.script(|request| vec![Act::Wait(USUAL * 3 / 4), Act::Send(yes(request.id))]);
    let orb = world.client(Orb::builder());
    let object = orb.string_to_object(&server).expect("a reference");
    let current = orb.policy_current();
    let within = |timeout: Option<Duration>| {
        let overrides = PolicyOverrides::default().round_trip_timeout(timeout);
        let twice = || call(&object).and_then(|_| call(&object));
        let called = current.with_overrides(overrides, || orb.within_timeout(twice));
        called.expect("legal policies")
    };
    assert_eq!(within(Some(USUAL * 2)), Ok(true));
    assert_eq!(within(None), Ok(true));
    let begun_ns = monotonic_ns();
    let failed = within(Some(USUAL)).expect_err("there is no time for a second call");
    assert!(is_timeout(&failed, 3), "{failed}");
    check_time(begun_ns, USUAL);
}

#[test]
fn references_of_replies_get_the_timeout_of_each_call_and_no_end_time() {
    let world = World::perfect();
    let silent = world.script(|_| vec![]);
    let given = object(&world, Orb::builder(), &silent);
    for other in [given.with_timeout(MOMENT), given.with_deadline(MOMENT)] {
        let timed = given.with_timeout_of(&other);
        assert_eq!(timed.chosen_timeout(), Some(MOMENT));
    }
    for other in [given.clone(), given.with_end_time(Instant::now())] {
        assert_eq!(given.with_timeout_of(&other).chosen_timeout(), None);
    }
}

#[test]
fn a_call_that_inherits_no_deadline_may_end_after_it() {
    let world = World::perfect();
    let server = world.script(|request| vec![Act::Wait(MOMENT * 2), Act::Send(yes(request.id))]);
    let builder = Orb::builder().round_trip_timeout(Some(TIMEOUT));
    let object = object(&world, builder, &server);
    let failed = with_deadline(MOMENT, || {
        assert_eq!(without_deadline(|| call(&object)), Ok(true));
        call(&object)
    });
    let failed = failed.expect_err("the deadline counts again");
    assert_eq!(failed.kind, ExceptionKind::Timeout);
}

#[test]
fn names_that_lead_to_names_are_resolved_within_one_timeout() {
    for (strategy, builder) in client_strategies() {
        for timeout in [None, Some(MOMENT)] {
            let bound = timeout.unwrap_or(USUAL);
            let world = World::perfect();
            world.script(move |request| {
                let found: Ior = reference_at("127.0.0.1", PORT).parse().expect("an IOR");
                let mut w = Writer::new(Vec::new(), 1000);
                found.encode(&mut w).expect("it fits");
                let found = reply(request.id, 0, |body| {
                    body.raw(&w.to_bytes());
                });
                vec![Act::Wait(bound * 3 / 4), Act::Send(found)]
            });
            let builder = match timeout {
                Some(_) => builder().round_trip_timeout(timeout),
                None => builder(),
            };
            let builder =
                builder.initial_reference("First", "corbaname:iiop:1.2@127.0.0.1:1/root#first");
            let orb = world.client(builder);
            assert!(
                orb.resolve_initial_references("First").is_ok(),
                "{strategy}"
            );
            let begun_ns = monotonic_ns();
            let second = orb.string_to_object("corbaname:rir:/First#second");
            let failed = second.expect_err("there is no time for a second question");
            assert!(is_timeout(&failed, 3), "{strategy}: {failed}");
            check_time(begun_ns, bound);
        }
    }
}

fn is_unsent(failed: &SystemException, phase: Phase) -> bool {
    let is_timeout = (failed.kind, failed.minor) == (ExceptionKind::Timeout, OMG | 2);
    let is_there = failed.cause.as_ref().is_some_and(|it| it.phase == phase);
    is_timeout && is_there && failed.completed == CompletionStatus::No
}

/// Calls, and checks that it ends by the deadline, which the watchdog keeps to 0.2 ms and which a coarse clock begins early.
fn timed(object: &crate::ObjectRef, timeout: Duration) -> Result<bool, SystemException> {
    let begun_ns = monotonic_ns();
    let is_a = call(object);
    let elapsed = Duration::from_nanos(monotonic_ns() - begun_ns);
    match &is_a {
        Ok(_) => assert!(elapsed <= timeout + WATCHDOG, "{elapsed:?}"),
        Err(failed) if failed.kind == ExceptionKind::Timeout => check_time(begun_ns, timeout),
        Err(failed) => panic!("after {elapsed:?}: {failed}"),
    }
    is_a
}

fn check_time(begun_ns: u64, timeout: Duration) {
    let elapsed = Duration::from_nanos(monotonic_ns() - begun_ns);
    assert!(
        elapsed + TICK >= timeout,
        "{elapsed:?}: not before its time"
    );
    assert!(elapsed <= timeout + WATCHDOG, "{elapsed:?}: not after it");
}

const WATCHDOG: Duration = Duration::from_micros(200);
const TICK: Duration = Duration::from_millis(4);

fn is_timeout(failed: &SystemException, minor: u32) -> bool {
    (failed.kind, failed.minor, failed.completed)
        == (ExceptionKind::Timeout, OMG | minor, CompletionStatus::Maybe)
}
