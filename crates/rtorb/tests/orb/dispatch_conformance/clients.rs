//! Clients that do wrong or leave: each is told so or left, and the others are served on.

use super::Case;
use super::servants::{Gate, Gated};
use rtorb::{Limits, SystemException};
use rtorb_os::thread::thread_id;
use rtorb_tests::asleep::until_asleep;
use rtorb_tests::good::Good;
use rtorb_tests::raw::{
    Answer, CLOSE_CONNECTION, Connection, FRAGMENT, MESSAGE_ERROR, REPLY, REQUEST, Request, Stream,
};
use rtorb_tests::running::until;
use rtorb_tests::stubs::exchange::{Party, PartyServant};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub(crate) fn a_wrong_header_ends_the_connection_and_no_other(case: Case) {
    let ours = case.serve();
    let mut good = Good::to(&ours);
    let right = Request::two_way(&good.key, "cube_long").of_long(2);
    let changed = |at: usize, value: u8| {
        let mut octets = right.clone();
        octets[at] = value;
        octets
    };
    let wrong = [
        ("magic", changed(0, b'g')),
        ("magic at the end", changed(3, 0)),
        ("major version", changed(4, 2)),
        ("major version 0", changed(4, 0)),
        ("minor version", changed(5, 3)),
        ("kind", changed(7, 8)),
        ("a size beyond the limit", changed(11, 0x7f)),
        ("kind that a client never sends", changed(7, REPLY)),
        ("fragment of nothing", changed(7, FRAGMENT)),
        (
            "no GIOP at all",
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
        ),
    ];
    for (what, octets) in wrong {
        let answers_to_it = answers(ours.address(), &octets);
        let told = answers_to_it
            .iter()
            .all(|answer| answer.kind == MESSAGE_ERROR);
        assert!(told, "{what}: {answers_to_it:?}");
        good.call();
        // What came before it was right, and is answered or not.
        answers(ours.address(), &[right.clone(), octets].concat());
        good.call();
    }
}

pub(crate) fn a_message_cut_off_anywhere_harms_nobody(case: Case) {
    let ours = case.serve();
    let mut good = Good::to(&ours);
    let whole = Request::two_way(&good.key, "cube_long").of_long(2);
    for end in 0..whole.len() {
        let answers = answers(ours.address(), &whole[..end]);
        assert!(answers.is_empty(), "cut off at {end}: {answers:?}");
    }
    good.call();
}

pub(crate) fn clients_that_never_finish_a_header_keep_nobody_waiting(case: Case) {
    let ours = case.serve();
    let mut good = Good::to(&ours);
    let whole = Request::two_way(&good.key, "cube_long").of_long(2);
    let slow: Vec<_> = (0..100)
        .map(|n| {
            let mut connection = Connection::to(ours.address());
            connection.send(&whole[..n % whole.len()]);
            connection
        })
        .collect();
    good.call();
    Good::to(&ours).call();
    drop(slow);
    good.call();
}

pub(crate) fn a_client_that_leaves_in_the_middle_of_its_reply_harms_nobody(case: Case) {
    let ours = case.serve();
    let mut good = Good::to(&ours);
    let large = large_request(&good.key, 4 << 20);
    for read in [0, 1, 24, 100_000] {
        let mut leaving = TcpStream::connect(ours.address()).expect("the server listens");
        leaving.write_all(&large).expect("the server reads");
        leaving
            .read_exact(&mut vec![0; read])
            .expect("the reply begins");
        drop(leaving);
        good.call();
        Good::to(&ours).call();
    }
}

pub(crate) fn a_client_that_leaves_while_its_request_is_served_harms_nobody(case: Case) {
    let ours = case.serve();
    let gate = Arc::new(Gate::default());
    let gated: Party = ours.poa.activate(Gated::at(&gate)).expect("room");
    let key = ours.key(gated.as_object());
    for n in 1..=10 {
        gate.close();
        let mut leaving = Connection::to(ours.address());
        leaving.send(&Request::two_way(&key, "_get_level").empty());
        until("it is served", || (gate.entered() == n).then_some(()));
        drop(leaving);
        gate.open();
        Good::to(&ours).call();
    }
    assert_eq!(gated.level(), Ok(1), "the object is served on");
}

pub(crate) fn clients_that_take_no_replies_are_left_and_the_others_are_served(case: Case) {
    let limits = Limits::with(|limits| limits.send_timeout = Duration::from_millis(100));
    let ours = case.serve_as(case.builder().limits(limits));
    let mut good = Good::to(&ours);
    let large = large_request(&good.key, 4 << 20);
    // More than there are threads in any pool, each with more requests than one.
    let greedy: Vec<_> = (0..6)
        .map(|_| {
            let mut greedy = TcpStream::connect(ours.address()).expect("the server listens");
            let two = [large.as_slice(), &large].concat();
            thread::spawn(move || {
                // The server closes the connection in the middle of this, or after it.
                let _ = greedy.write_all(&two);
                greedy
            })
        })
        .collect();
    good.call();
    Good::to(&ours).call();
    for greedy in greedy {
        drop(greedy.join().expect("no panic"));
    }
    good.call();
}

pub(crate) fn an_idle_connection_gives_way_to_one_too_many(case: Case) {
    let limits = Limits::with(|limits| limits.connections_max = 3);
    let ours = case.serve_as(case.builder().limits(limits));
    let party: Party = ours.poa.activate(Whereabouts).expect("room");
    let request = Request::two_way(&ours.key(party.as_object()), "_get_level").empty();
    // A connection is idle when the thread that replied on it is done with it, which is a moment after its reply.
    let call = |connection: &mut Connection| {
        let reply = connection.ask(&request).expect("it is served");
        assert_eq!(reply.kind, REPLY);
        until_asleep(&[reply.long().cast_unsigned()]);
    };
    let served = || {
        // Several threads could accept connections in another order than they were made.
        let mut connection = Connection::to(ours.address());
        call(&mut connection);
        connection
    };
    let mut idle: Vec<_> = (0..3).map(|_| served()).collect();
    let mut later = Vec::new();
    for _ in 0..3 {
        let next = served();
        let told = idle.remove(0).answer();
        assert_eq!(told.map(|message| message.kind), Some(CLOSE_CONNECTION));
        // Neither the one that came last gives way, nor what was used since.
        idle.iter_mut().for_each(call);
        later.push(next);
        later.iter_mut().for_each(call);
    }
}

/// A party whose level is the number of the thread that tells it.
struct Whereabouts;

impl PartyServant for Whereabouts {
    fn name(&self) -> Result<String, SystemException> {
        Ok(String::new())
    }

    fn level(&self) -> Result<i32, SystemException> {
        Ok(thread_id().cast_signed())
    }

    fn set_level(&self, _: i32) -> Result<(), SystemException> {
        Ok(())
    }
}

pub(crate) fn a_client_is_refused_when_all_connections_are_busy(case: Case) {
    let busy_max = case.spare_threads().min(3);
    if busy_max == 0 {
        // The thread that would refuse is in the servant.
        return;
    }
    let limits = Limits::with(|limits| limits.connections_max = busy_max);
    let ours = case.serve_as(case.builder().limits(limits));
    let gate = Arc::new(Gate::default());
    let gated: Party = ours.poa.activate(Gated::at(&gate)).expect("room");
    gate.close();
    let request = Request::two_way(&ours.key(gated.as_object()), "_get_level").empty();
    let mut busy: Vec<_> = (0..busy_max)
        .map(|_| {
            let mut connection = Connection::to(ours.address());
            connection.send(&request);
            connection
        })
        .collect();
    until("all are in the servant", || {
        (gate.entered() == busy_max).then_some(())
    });
    let told = Connection::to(ours.address()).answer();
    assert_eq!(told.map(|message| message.kind), Some(CLOSE_CONNECTION));
    gate.open();
    for connection in &mut busy {
        assert_eq!(connection.answer().map(|reply| reply.kind), Some(REPLY));
    }
    // A connection is idle a moment after its reply.
    until("another client is served", || Good::to(&ours).try_call());
}

pub(crate) fn random_messages_harm_nobody(case: Case) {
    let ours = case.serve();
    let mut good = Good::to(&ours);
    let mut random = Random::seeded();
    for round in 0..400 {
        let kind = (random.next() % 9) as u8;
        let minor = (random.next() % 3) as u8;
        let mut stream = Stream::new(kind, minor, random.next().is_multiple_of(2));
        let length = random.next() as usize % 200;
        let body: Vec<u8> = (0..length).map(|_| random.octet()).collect();
        stream.raw(&body);
        let answers = answers(ours.address(), &stream.message());
        assert!(answers.iter().all(is_refusal), "{answers:?}");
        if round % 50 == 0 {
            good.call();
        }
    }
    good.call();
}

/// A request whose reply has so many octets.
fn large_request(key: &[u8], octets: usize) -> Vec<u8> {
    let mut stream = Request {
        id: 1,
        ..Request::two_way(key, "cube_octet_sequence")
    }
    .head();
    stream.align(8).octets(&vec![1; octets]);
    stream.message()
}

/// Sends octets and nothing more, and answers all that comes back until the connection ends.
fn answers(server: SocketAddr, octets: &[u8]) -> Vec<Answer> {
    let mut connection = Connection::to(server);
    connection.send(octets);
    connection.finish();
    std::iter::from_fn(|| connection.answer()).collect()
}

/// Whether an answer tells a client that it was wrong, or that what it asked for is not there.
fn is_refusal(answer: &Answer) -> bool {
    match answer.kind {
        REPLY => answer.status == 2,
        kind => kind != REQUEST,
    }
}

/// Numbers without a pattern (xorshift), from the seed of all random tests.
struct Random(u64);

impl Random {
    fn seeded() -> Self {
        let seed = std::env::var("PROPTEST_RNG_SEED").ok();
        let seed: u64 = seed.map_or(1, |text| {
            text.parse().expect("PROPTEST_RNG_SEED is a number")
        });
        println!("PROPTEST_RNG_SEED={seed}");
        // xorshift never leaves zero.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Small numbers are what lengths and tags are made of, so they come often.
    fn octet(&mut self) -> u8 {
        let octet = self.next().to_le_bytes()[3];
        if self.next().is_multiple_of(2) {
            octet % 4
        } else {
            octet
        }
    }
}
