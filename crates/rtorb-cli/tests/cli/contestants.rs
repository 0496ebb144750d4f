//! The measured processes: every contestant answers every operation right, and the raw exchanges carry the octets that
//! our ORB sends.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use rtorb_dynamic::inspect::ior::Description;
use rtorb_host::placement::Placement;
use rtorb_lab::contestants::burst::{Burst, Verb};
use rtorb_lab::contestants::client_orb_builder;
use rtorb_lab::contestants::cubit::Bench;
use rtorb_lab::contestants::operations::{MessageBytes, Operation};
use rtorb_lab::contestants::peers::omniorb::{HOW_TO_INSTALL, OmniOrb};
use rtorb_lab::contestants::{Contestant, Orb, Transport, key_bytes};
use rtorb_lab::experiment::{Context, Effort};
use rtorb_lab::processes::interrupt::Interrupt;

use crate::support::{CubitServer, skip};

/// Without SCHED_FIFO, so that the test does not need the privilege.
fn context() -> Context {
    let executable = assert_cmd::cargo::cargo_bin!("rtorb").to_owned();
    let mut context = Context::new(Effort::Glance, executable, Interrupt::new()).unwrap();
    context.launcher.placement = Placement::default();
    context
}

fn burst(operation: Operation, verb: Verb) -> Burst {
    let len = operation.default_len() * 100;
    let messages = operation.message_bytes(len, 24);
    Burst {
        verb,
        operation,
        len,
        warm_up: 2,
        count: 20,
        // On a busy host, each call may take a time slice or more.
        budget_ns: 60_000_000_000,
        request_bytes: messages.request,
        reply_bytes: messages.reply,
        period_ns: 0,
    }
}

fn answers_every_operation_right(mut contestant: Contestant) {
    for &operation in Operation::ALL {
        let burst = burst(operation, Verb::Call);
        let messages = MessageBytes {
            request: burst.request_bytes,
            reply: burst.reply_bytes,
        };
        if !contestant.carries(messages) {
            continue;
        }
        let samples = contestant
            .burst(&burst)
            .unwrap_or_else(|error| panic!("{contestant}, {operation}: {error}"));
        assert_eq!(
            (samples.times_ns.len(), samples.wrong),
            (20, 0),
            "{contestant}, {operation}"
        );
        assert!(samples.elapsed_ns > 0 && samples.times_ns.iter().all(|time_ns| *time_ns > 0));
    }
    if contestant.orb == Orb::Raw {
        return;
    }
    for verb in [Verb::Work, Verb::Marshal] {
        for &operation in Operation::ALL
            .iter()
            .filter(|operation| operation.is_sequence())
        {
            let samples = contestant.burst(&burst(operation, verb)).unwrap();
            assert_eq!(
                (samples.times_ns.len(), samples.wrong),
                (20, 0),
                "{contestant}, {operation}"
            );
        }
        let error = contestant
            .burst(&burst(Operation::Long, verb))
            .unwrap_err()
            .to_string();
        assert!(error.contains("only sequences"), "{error}");
    }
    // An error is no end: the next burst is answered.
    contestant
        .burst(&burst(Operation::Void, Verb::Call))
        .unwrap();
    let processes = match contestant.transport {
        Transport::Collocated => 1,
        _ => 2,
    };
    assert_eq!(contestant.scheduling().len(), processes);
}

#[test]
fn raw_exchanges() {
    let context = context();
    for transport in [
        Transport::Tcp,
        Transport::Unix,
        Transport::Futex,
        Transport::Memcpy,
    ] {
        answers_every_operation_right(Contestant::raw(&context, transport).unwrap());
    }
}

#[test]
fn rtorb() {
    let context = context();
    for transport in [
        Transport::Tcp,
        Transport::Unix,
        Transport::Shm,
        Transport::ShmYield,
    ] {
        answers_every_operation_right(Contestant::rtorb(&context, transport).unwrap());
    }
    answers_every_operation_right(Contestant::collocated(&context.launcher).unwrap());
}

#[test]
fn omniorb() {
    let Some(peer) = OmniOrb::find(&Interrupt::new()).unwrap() else {
        return skip(HOW_TO_INSTALL);
    };
    let context = context();
    for transport in [Transport::Tcp, Transport::Unix] {
        let omniorb = Contestant::omniorb(&context.launcher, &peer, transport, context.folder());
        answers_every_operation_right(omniorb.unwrap());
    }
}

#[test]
fn a_server_that_cannot_listen_is_told_by_its_name() {
    let context = context();
    let folder = context.folder().display().to_string();
    std::fs::remove_dir(context.folder()).unwrap();
    let error = Contestant::rtorb(&context, Transport::Unix).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("rtorb unix server") && text.contains(&folder),
        "{text}"
    );
}

#[test]
fn raw_messages_have_the_size_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let server = CubitServer::start(folder.path(), &[]);
    let reference = std::fs::read_to_string(&server.ior_file).unwrap();
    let key_bytes = key_bytes(&reference).unwrap();
    let description = Description::parse(&reference).unwrap();
    let field = |name: &str| {
        let fields = &description.profiles[0].fields;
        fields
            .iter()
            .find(|field| field.name == name)
            .map(|field| field.value.to_string())
            .unwrap()
    };
    let between = TcpListener::bind("127.0.0.1:0").unwrap();
    let escaped: String = field("object_key")
        .as_bytes()
        .chunks(2)
        .map(|pair| format!("%{}", str::from_utf8(pair).unwrap()))
        .collect();
    let through = format!(
        "corbaloc:iiop:1.2@{}/{escaped}",
        between.local_addr().unwrap()
    );
    let address = format!("{}:{}", field("host"), field("port"));
    let counting =
        std::thread::spawn(move || count_messages(&between.accept().unwrap().0, &address));
    // Connections belong to a thread and are closed with it.
    let calling = std::thread::spawn(move || {
        let orb = client_orb_builder(Duration::from_secs(60)).build().unwrap();
        let bench = Bench::new(&orb.string_to_object(&through).unwrap()).unwrap();
        let two_way = Operation::ALL
            .iter()
            .filter(|operation| **operation != Operation::Oneway);
        let expected = two_way.map(|&operation| {
            let burst = Burst {
                warm_up: 0,
                count: 1,
                ..burst(operation, Verb::Call)
            };
            assert_eq!(bench.burst(&burst).unwrap().wrong, 0);
            (operation, operation.message_bytes(burst.len, key_bytes))
        });
        expected.collect::<Vec<_>>()
    });
    let expected = calling.join().unwrap();
    let seen = counting.join().unwrap();
    // Before them, the object was asked for its type.
    let seen = &seen[seen.len() - expected.len()..];
    for ((operation, expected), seen) in expected.iter().zip(seen) {
        assert_eq!(seen, expected, "{operation}");
    }
}

/// Passes messages on between a client and the server at `address`, and answers how long each request and reply was.
fn count_messages(mut client: &TcpStream, address: &str) -> Vec<MessageBytes> {
    let mut server = TcpStream::connect(address).unwrap();
    let mut seen = Vec::new();
    while let Some(request) = message(&mut client) {
        server.write_all(&request).unwrap();
        let reply = message(&mut server).unwrap();
        client.write_all(&reply).unwrap();
        seen.push(MessageBytes {
            request: request.len(),
            reply: reply.len(),
        });
    }
    seen
}

/// One GIOP message in this machine's byte order; `None` when the connection was closed.
fn message(stream: &mut impl Read) -> Option<Vec<u8>> {
    let mut octets = vec![0; 12];
    stream.read_exact(&mut octets).ok()?;
    // GIOP 1.2 15.4.1: the size of what follows is in octets 8 to 11.
    let size = u32::from_ne_bytes([octets[8], octets[9], octets[10], octets[11]]) as usize;
    octets.resize(12 + size, 0);
    stream.read_exact(&mut octets[12..]).ok()?;
    Some(octets)
}
