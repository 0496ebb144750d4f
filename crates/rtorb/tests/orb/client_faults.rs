//! What wrong servers do to our client: each its own exception, in bounded time, naming endpoint and phase.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::call_deadlines::FullPort;
use crate::started_calls::LEADING;
use rtorb::exception::{OMG, Phase};
use rtorb::{CompletionStatus, ExceptionKind, Limits, ObjectRef, Orb, OrbBuilder, SystemException};
use rtorb_tests::fake::{FakeServer, Peer, reference_at, reply, yes};
use rtorb_tests::loopback::NOBODYS_PORT;
use rtorb_tests::ours::Ours;
use rtorb_tests::raw::{CLOSE_CONNECTION, Connection, FRAGMENT, REPLY, Request, Stream};
use rtorb_tests::running::{PATIENCE, until};
use rtorb_tests::stubs::exchange::{Party, PartyServant};

/// The round-trip timeout of these tests, where none is meant to be met.
const LONG: Duration = Duration::from_secs(20);
/// And where one is.
const SHORT: Duration = Duration::from_millis(200);

#[test]
fn a_refused_connection_is_transient_at_connect() {
    let failed = call(Orb::builder(), &reference_at("127.0.0.1", NOBODYS_PORT));
    expect(
        &failed,
        ExceptionKind::Transient,
        CompletionStatus::No,
        Phase::Connect,
        "iiop://127.0.0.1:1",
    );
    assert!(
        failed
            .cause
            .as_ref()
            .is_some_and(|cause| cause.errno.is_some()),
        "the system's word is kept: {failed}"
    );
    assert!(failed.advice().is_some(), "it says what to do: {failed}");
}

#[test]
fn a_missing_unix_socket_is_transient_at_connect() {
    let ours = {
        let scratch = rtorb_tests::scratch::Scratch::new();
        let endpoint = format!("uiop://{}", scratch.join("socket").display());
        let ours = Ours::serve_as(Orb::builder().listen(&endpoint));
        (ours.text(ours.cubit.as_object()), endpoint)
    };
    let failed = call(Orb::builder(), &ours.0);
    expect(
        &failed,
        ExceptionKind::Transient,
        CompletionStatus::No,
        Phase::Connect,
        &ours.1,
    );
}

#[test]
fn a_host_that_nobody_knows_is_found_out_at_resolve() {
    let failed = call(Orb::builder(), &reference_at("no-such-host.invalid", 2809));
    expect(
        &failed,
        ExceptionKind::Transient,
        CompletionStatus::No,
        Phase::Resolve,
        "iiop://no-such-host.invalid:2809",
    );
}

//= RT-CORBA 1.2 §Invocation Timeout
//% test
#[test]
fn a_silent_server_is_a_timeout_while_awaiting_the_reply() {
    let server = FakeServer::new(|_, mut peer: Peer| peer.wait_for_end());
    let begin = Instant::now();
    // On a busy host, the time may pass before the request is sent.
    let failed = until("a request is sent", || {
        let builder = Orb::builder().round_trip_timeout(Some(SHORT));
        let failed = call(builder, &server.reference());
        (failed.completed != CompletionStatus::No).then_some(failed)
    });
    expect(
        &failed,
        ExceptionKind::Timeout,
        CompletionStatus::Maybe,
        Phase::AwaitReply,
        &server.endpoint(),
    );
    assert_eq!(failed.minor, OMG | 3);
    assert!(
        failed
            .cause
            .as_ref()
            .is_some_and(|cause| cause.elapsed >= SHORT),
        "it says how long: {failed}"
    );
    assert!(begin.elapsed() < PATIENCE);
}

#[test]
fn a_server_that_dies_is_a_communication_failure() {
    for end in [0, 1, 12, 20, 24] {
        let server = FakeServer::new(move |_, mut peer: Peer| {
            if let Some(id) = peer.request() {
                peer.send(&yes(id)[..end]);
            }
        });
        let failed = call(
            Orb::builder().round_trip_timeout(Some(LONG)),
            &server.reference(),
        );
        assert_eq!(
            failed.kind,
            ExceptionKind::CommFailure,
            "died after {end}: {failed}"
        );
        expect(
            &failed,
            ExceptionKind::CommFailure,
            CompletionStatus::Maybe,
            Phase::AwaitReply,
            &server.endpoint(),
        );
    }
}

#[test]
fn a_reply_that_is_none_is_marshal() {
    type Answer = fn(u32) -> Vec<u8>;
    const YES: CompletionStatus = CompletionStatus::Yes;
    const MAYBE: CompletionStatus = CompletionStatus::Maybe;
    // Only a reply that says so proves that the operation was carried out.
    let wrong: [(&str, CompletionStatus, Answer); 6] = [
        ("no GIOP", MAYBE, |_| {
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()
        }),
        ("another status", MAYBE, |id| reply(id, 99, |_| {})),
        ("no body", YES, |id| reply(id, 0, |_| {})),
        ("no system exception", MAYBE, |id| reply(id, 2, |_| {})),
        ("contexts without end", MAYBE, |id| {
            let mut stream = Stream::new(REPLY, 2, false);
            stream.ulong(id).ulong(0).ulong(u32::MAX);
            stream.message()
        }),
        ("a fragment of nothing", MAYBE, |id| {
            let mut stream = Stream::new(FRAGMENT, 2, false);
            stream.ulong(id);
            stream.message()
        }),
    ];
    for (what, completed, answer) in wrong {
        let server = FakeServer::new(move |_, mut peer: Peer| {
            while let Some(id) = peer.request() {
                peer.send(&answer(id));
            }
        });
        let failed = call(
            Orb::builder().round_trip_timeout(Some(LONG)),
            &server.reference(),
        );
        assert_eq!(failed.kind, ExceptionKind::Marshal, "{what}: {failed}");
        expect(
            &failed,
            ExceptionKind::Marshal,
            completed,
            Phase::DecodeReply,
            &server.endpoint(),
        );
    }
}

#[test]
fn a_reply_beyond_the_limit_is_refused_before_it_is_read() {
    let server = FakeServer::new(|_, mut peer: Peer| {
        if peer.request().is_some() {
            let mut header = Stream::new(REPLY, 2, false).message();
            header[8..12].copy_from_slice(&0x7fff_0000_u32.to_le_bytes());
            peer.send(&header);
            peer.wait_for_end();
        }
    });
    let failed = call(
        Orb::builder().round_trip_timeout(Some(LONG)),
        &server.reference(),
    );
    assert!(
        matches!(
            failed.kind,
            ExceptionKind::Marshal | ExceptionKind::ImpLimit
        ),
        "{failed}"
    );
}

//= GIOP 1.2 §15.4.9
//% test
#[test]
fn a_flood_of_fragments_is_refused() {
    let limits = Limits::with(|limits| limits.message_bytes_max = 4096);
    let server = FakeServer::new(|_, mut peer: Peer| {
        let Some(id) = peer.request() else { return };
        let mut first = Stream::new(REPLY, 2, false);
        first.ulong(id).ulong(0).ulong(0);
        let mut first = first.message();
        first[6] |= 2;
        peer.send(&first);
        for _ in 0..100 {
            let mut more = Stream::new(FRAGMENT, 2, false);
            more.ulong(id).raw(&[0; 1000]);
            let mut more = more.message();
            more[6] |= 2;
            peer.send(&more);
        }
        peer.wait_for_end();
    });
    let builder = Orb::builder().round_trip_timeout(Some(LONG)).limits(limits);
    let failed = call(builder, &server.reference());
    assert!(
        matches!(
            failed.kind,
            ExceptionKind::Marshal | ExceptionKind::ImpLimit
        ),
        "{failed}"
    );
}

//= GIOP 1.2 §15.4.7
//% test
#[test]
fn close_connection_is_not_seen_by_the_caller() {
    // Between two calls, and while one waits for its reply: what was not answered was not carried out.
    for waits in [false, true] {
        let server = FakeServer::new(move |number, mut peer: Peer| {
            while let Some(id) = peer.request() {
                peer.send(&yes(id));
                if number < 2 {
                    if waits {
                        let _ = peer.request();
                    }
                    peer.send(&Stream::new(CLOSE_CONNECTION, 2, false).message());
                    return;
                }
            }
        });
        let object = object(
            Orb::builder().round_trip_timeout(Some(LONG)),
            &server.reference(),
        );
        for _ in 0..5 {
            assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true), "waits: {waits}");
        }
    }
}

#[test]
fn a_large_reply_with_more_than_the_result_costs_its_connection_alone() {
    let server = FakeServer::new(|_, mut peer: Peer| {
        while let Some(id) = peer.request() {
            peer.send(&reply(id, 0, |body| {
                body.raw(&[1; 100_000]);
            }));
        }
    });
    let object = object(
        Orb::builder().round_trip_timeout(Some(LONG)),
        &server.reference(),
    );
    for _ in 0..3 {
        assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true));
    }
}

#[test]
fn a_server_that_is_full_of_busy_connections_is_transient() {
    let limits = Limits::with(|limits| limits.connections_max = 1);
    let ours = Ours::serve_as(Orb::builder().limits(limits));
    let text = ours.text(ours.cubit.as_object());
    // Half a message keeps nobody out: its connection is idle.
    let mut silent = Connection::to(ours.address());
    silent.send(b"GIOP");
    let (entered, is_entered) = channel();
    let held = Held {
        entered,
        gate: Mutex::default(),
    };
    let held = Arc::new(held);
    let party: Party = ours.poa.activate(Arc::clone(&held)).expect("room");
    let closed = held.gate.lock().expect("nobody panics");
    let mut busy = Connection::to(ours.address());
    let key = ours.key(party.as_object());
    busy.send(&Request::two_way(&key, "_get_level").empty());
    is_entered.recv().expect("the call comes");
    for _ in 0..20 {
        let failed = call(Orb::builder(), &text);
        let endpoint = format!("iiop://{}", ours.address());
        expect(
            &failed,
            ExceptionKind::Transient,
            CompletionStatus::No,
            Phase::AwaitReply,
            &endpoint,
        );
        assert!(failed.to_string().contains("connections_max"), "{failed}");
    }
    drop(closed);
    assert_eq!(busy.answer().map(|reply| reply.kind), Some(REPLY));
    drop(busy);
}

/// A party whose level is told when the gate is open.
struct Held {
    entered: Sender<()>,
    gate: Mutex<()>,
}

impl PartyServant for Held {
    fn name(&self) -> Result<String, SystemException> {
        Ok(String::new())
    }

    fn level(&self) -> Result<i32, SystemException> {
        self.entered.send(()).expect("the test waits for it");
        let _open = self.gate.lock().expect("nobody panics");
        Ok(1)
    }

    fn set_level(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

//= GIOP 1.2 §15.4.4
//% test
#[test]
fn a_reply_to_another_request_is_passed_over() {
    let server = FakeServer::new(|_, mut peer: Peer| {
        while let Some(id) = peer.request() {
            peer.send(&reply(id.wrapping_add(1000), 0, |body| {
                body.raw(&[0]);
            }));
            peer.send(&yes(id));
        }
    });
    let object = object(
        Orb::builder().round_trip_timeout(Some(LONG)),
        &server.reference(),
    );
    assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true));
    assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true));
}

//= GIOP 1.2 §15.6
//% test
#[test]
fn a_forward_is_followed_and_one_in_a_circle_is_not() {
    let ours = Ours::serve();
    let ior = ours.text(ours.desk.as_object());
    let server = FakeServer::new(move |_, mut peer: Peer| {
        while let Some(id) = peer.request() {
            peer.send(&forward(id, &ior));
        }
    });
    let forwarded = object(Orb::builder(), &server.reference());
    assert_eq!(forwarded.is_a("IDL:Exchange/Desk:1.0"), Ok(true));
    assert_eq!(
        forwarded.is_a("IDL:Exchange/Desk:1.0"),
        Ok(true),
        "and again, straight to where it is"
    );

    let (tell, told) = std::sync::mpsc::channel();
    let told = std::sync::Arc::new(std::sync::Mutex::new(told));
    let circle = FakeServer::new(move |_, mut peer: Peer| {
        let to: String = told.lock().expect("no panic").recv().expect("it is told");
        while let Some(id) = peer.request() {
            peer.send(&forward(id, &to));
        }
    });
    let orb = Orb::builder().connection(LEADING);
    let orb = orb.build().expect("the ORB can be built");
    let itself = orb
        .string_to_object(&circle.reference())
        .expect("a reference");
    tell.send(orb.object_to_string(&itself))
        .expect("it is awaited");
    let started = itself.start("anything", |_| Ok(()), |_| Ok(()));
    for failed in [itself.is_a("IDL:Any:1.0").map(|_| ()), started.wait()] {
        expect(
            &failed.expect_err("it leads nowhere"),
            ExceptionKind::Transient,
            CompletionStatus::No,
            Phase::Forward,
            &circle.endpoint(),
        );
    }
}

//= GIOP 1.2 §15.4.3.2
//% test
#[test]
fn an_object_that_is_gone_from_where_it_had_moved_to_is_asked_for_where_it_was_known() {
    let first = Ours::serve();
    let second = Ours::serve();
    let places = [&first, &second].map(|ours| ours.text(ours.desk.as_object()));
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let server = FakeServer::new(move |_, mut peer: Peer| {
        while let Some(id) = peer.request() {
            let turn = asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            peer.send(&forward(id, &places[turn.min(1)]));
        }
    });
    let forwarded = object(Orb::builder(), &server.reference());
    assert_eq!(forwarded.is_a("IDL:Exchange/Desk:1.0"), Ok(true));
    let root = first.orb.root_poa().expect("it serves");
    root.deactivate(first.desk.as_object()).expect("active");
    assert_eq!(forwarded.is_a("IDL:Exchange/Desk:1.0"), Ok(true));
    let root = second.orb.root_poa().expect("it serves");
    root.deactivate(second.desk.as_object()).expect("active");
    let failed = forwarded
        .is_a("IDL:Exchange/Desk:1.0")
        .expect_err("it is nowhere");
    assert_eq!(failed.kind, ExceptionKind::ObjectNotExist, "{failed}");
}

#[test]
fn a_forward_to_nowhere_is_not_remembered() {
    let server = FakeServer::new(|_, mut peer: Peer| {
        if let Some(id) = peer.request() {
            peer.send(&reply(id, 3, |body| {
                body.string("").ulong(0);
            }));
        }
        while let Some(id) = peer.request() {
            peer.send(&yes(id));
        }
    });
    let object = object(Orb::builder(), &server.reference());
    let failed = object.is_a("IDL:Any:1.0").expect_err("nil");
    assert_eq!(failed.kind, ExceptionKind::ImpLimit, "{failed}");
    assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true));
}

#[test]
fn a_host_that_answers_nothing_is_passed_over() {
    let deaf = FullPort::new();
    let server = FakeServer::new(|_, mut peer: Peer| {
        while let Some(id) = peer.request() {
            peer.send(&yes(id));
        }
    });
    let live: rtorb::ior::Ior = server.reference().parse().expect("a reference");
    let mut both: rtorb::ior::Ior = reference_at("127.0.0.1", deaf.address.port())
        .parse()
        .expect("a reference");
    both.profiles.extend(live.profiles);
    let object = object(Orb::builder().connect_timeout(SHORT), &both.to_string());
    assert_eq!(object.is_a("IDL:Any:1.0"), Ok(true));
}

#[test]
fn an_exception_of_an_unknown_kind_is_unknown() {
    let server = FakeServer::new(|_, mut peer: Peer| {
        while let Some(id) = peer.request() {
            peer.send(&reply(id, 2, |body| {
                body.string("IDL:omg.org/CORBA/NOT_YET_INVENTED:1.0")
                    .ulong(7)
                    .ulong(0);
            }));
        }
    });
    let failed = call(Orb::builder(), &server.reference());
    assert_eq!(
        (failed.kind, failed.completed),
        (ExceptionKind::Unknown, CompletionStatus::Yes),
        "{failed}"
    );
}

#[test]
fn wrong_texts_of_references_have_the_minor_codes_of_the_standard() {
    let orb = Orb::builder().build().expect("the ORB can be built");
    let wrong = [
        ("", 7),
        ("no reference", 7),
        ("http://example.org/object", 7),
        ("IOR:0", 10),
        ("IOR:zz", 10),
        ("IOR:00", 10),
        ("corbaloc:", 8),
        ("corbaloc::host:port/key", 8),
        ("corbaloc::1.2@:/key", 8),
        ("corbaloc:carrier-pigeon:roof/key", 8),
        ("corbaloc::host/%zz", 9),
    ];
    for (text, code) in wrong {
        let failed = orb.string_to_object(text).expect_err(text);
        assert_eq!(
            (failed.kind, failed.minor),
            (ExceptionKind::BadParam, OMG | code),
            "{text:?}: {failed}"
        );
    }
}

/// A LOCATION_FORWARD in GIOP 1.2, little-endian, whose IOR is the text of one.
fn forward(id: u32, text: &str) -> Vec<u8> {
    let ior: rtorb::ior::Ior = text.parse().expect("a reference");
    reply(id, 3, |body| {
        body.string(&ior.type_id)
            .ulong(u32::try_from(ior.profiles.len()).expect("few profiles"));
        for profile in &ior.profiles {
            body.ulong(profile.tag).octets(&profile.data);
        }
    })
}

fn object(builder: OrbBuilder, reference: &str) -> ObjectRef {
    let orb = builder.build().expect("the ORB can be built");
    orb.string_to_object(reference).expect("a reference")
}

fn call(builder: OrbBuilder, reference: &str) -> SystemException {
    object(builder, reference)
        .is_a("IDL:Any:1.0")
        .expect_err("the server is wrong")
}

/// An exception says what, how far, in which phase, and to whom.
fn expect(
    failed: &SystemException,
    kind: ExceptionKind,
    completed: CompletionStatus,
    phase: Phase,
    endpoint: &str,
) {
    assert_eq!(
        (failed.kind, failed.completed),
        (kind, completed),
        "{failed}"
    );
    let cause = failed
        .cause
        .as_ref()
        .unwrap_or_else(|| panic!("{failed} has no cause"));
    assert_eq!(cause.phase, phase, "{failed}");
    assert_eq!(
        cause.endpoint.as_ref().map(ToString::to_string).as_deref(),
        Some(endpoint),
        "{failed}"
    );
    assert!(failed.to_string().contains(endpoint), "{failed}");
}
