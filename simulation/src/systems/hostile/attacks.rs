//! What attackers send, and what a server does about it in time.

use crate::random::Random;
use crate::systems::call_end::{CallEnd, fail};
use crate::systems::raw::{Answer, RawClient, RawTarget, cancel};
use crate::world;
use rtorb_wire::giop::{HEADER_BYTES, MessageType};
use std::thread;
use std::time::Duration;

/// How long a server waits for its clients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) receive_timeout: Duration,
    pub(super) send_timeout: Duration,
}

/// Longer than a server takes to accept a stranger, to read what it has sent, and to close its connection, if nothing breaks.
const SERVED_MAX: Duration = Duration::from_secs(5);

/// Attacks of each attacker at most, one after the other.
const ATTACKS_MAX: u64 = 6;

/// What an attacker does with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    /// It sends a part of a message, and no more.
    Part,
    /// It sends a message a byte at a time.
    Bytes,
    /// It sends the fragments of a message that does not end.
    Fragments,
    /// It announces a message that is larger than the limit.
    HugeSize,
    /// It sends another protocol.
    OtherProtocol,
    /// Its messages have a version that the server does not know.
    UnknownVersion,
    /// It sends messages of servers, or of a type that does not exist.
    OutOfPlace,
    /// It sends requests, and reads no reply.
    Deaf,
    /// It asks for an object that does not exist.
    UnknownObject,
    /// It cancels requests that it has not sent.
    Cancels,
    /// It goes away in the middle of a message, or before the reply.
    Leaves,
    /// It sends nothing.
    Silent,
}

const ATTACKS: [Attack; 12] = {
    use Attack::{
        Bytes, Cancels, Deaf, Fragments, HugeSize, Leaves, OtherProtocol, OutOfPlace, Part, Silent,
        UnknownObject, UnknownVersion,
    };
    [
        Part,
        Bytes,
        Fragments,
        HugeSize,
        OtherProtocol,
        UnknownVersion,
        OutOfPlace,
        Deaf,
        UnknownObject,
        Cancels,
        Leaves,
        Silent,
    ]
};

/// The requests that a deaf client sends, and the bytes of each: no simulated pipe has room for the replies, unless the server refuses some.
const DEAF_REQUESTS: u32 = 60;
const DEAF_BYTES: usize = 5_000;

/// One that attacks a server.
#[derive(Debug)]
pub(super) struct Attacker {
    pub(super) target: RawTarget,
    /// The number of its first call.
    pub(super) first: u32,
    pub(super) message_bytes_max: usize,
    pub(super) patience: Patience,
    /// The server sees what it does: nothing of the network breaks.
    pub(super) is_seen: bool,
}

impl Attacker {
    /// Attacks some times, on a connection each. Returns the ends of calls of which it does not know more.
    pub(super) fn attack(self, mut random: Random) -> Vec<CallEnd> {
        let mut kept = Vec::new();
        let mut next = self.first;
        for _ in 0..1 + random.below(ATTACKS_MAX) {
            let attack = random.choose(&ATTACKS);
            if let Some(mut client) = RawClient::connect(self.target.address) {
                self.attack_by(attack, &mut client, next, &mut random);
                // Its connection stays open while it attacks over others.
                kept.extend(random.one_in(3).then_some(client));
            }
            next += DEAF_REQUESTS;
            thread::sleep(Duration::from_nanos(random.below(50_000_000)));
        }
        (self.first..next).map(CallEnd::unknown).collect()
    }

    fn attack_by(&self, attack: Attack, client: &mut RawClient, call: u32, random: &mut Random) {
        match attack {
            Attack::Part => {
                let message = self.target.work(call);
                let sent = 1 + random.below(message.len() as u64 - 1) as usize;
                client.send(&message[..sent]);
                self.expect_end(attack, client, self.patience.receive_timeout);
            }
            Attack::Bytes => self.send_slowly(attack, client, self.target.work(call).chunks(1)),
            Attack::Fragments => {
                let bytes = endless_fragments(call, &self.target);
                self.send_slowly(attack, client, bytes.iter().map(Vec::as_slice));
            }
            Attack::HugeSize => {
                let least = (self.message_bytes_max - HEADER_BYTES) as u64 + 1;
                let size = least + random.below(u64::from(u32::MAX) - least + 1);
                client.send(&header([1, 2], 0, size as u32));
                self.expect_error(attack, client);
            }
            Attack::OtherProtocol => {
                let greetings: [&[u8]; 3] = [
                    b"GET / HTTP/1.1\r\n\r\n",
                    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00",
                    &[0xff; 40],
                ];
                client.send(random.choose(&greetings));
                self.expect_error(attack, client);
            }
            Attack::UnknownVersion => {
                let version = random.choose(&[[1, 3], [1, 255], [2, 0], [0, 9]]);
                let mut message = self.target.work(call);
                message[4..6].copy_from_slice(&version);
                client.send(&message);
                self.expect_error(attack, client);
            }
            Attack::OutOfPlace => {
                const REPLY: u8 = 1;
                const LOCATE_REPLY: u8 = 4;
                let kind = random.choose(&[REPLY, LOCATE_REPLY, 8, 200]);
                client.send(&[&*header([1, 2], kind, 12), &[0; 12]].concat());
                self.expect_error(attack, client);
            }
            Attack::Deaf => self.ignore_replies(client, call),
            Attack::UnknownObject => self.ask_for_nothing(client, call),
            Attack::Cancels => {
                for request in call..call + random.below(20) as u32 {
                    client.send(&cancel(request));
                }
            }
            Attack::Leaves => {
                let message = self.target.work(call);
                let sent = random.below(message.len() as u64 + 1) as usize;
                client.send(&message[..sent]);
            }
            Attack::Silent => thread::sleep(Duration::from_nanos(random.below(50_000_000))),
        }
    }

    /// Sends a part eight times within the time that a message may take, until the connection has ended.
    fn send_slowly<'b>(
        &self,
        attack: Attack,
        client: &mut RawClient,
        parts: impl Iterator<Item = &'b [u8]>,
    ) {
        for part in parts {
            if !client.send(part) {
                break;
            }
            thread::sleep(self.patience.receive_timeout / 8);
        }
        self.expect_end(attack, client, Duration::ZERO);
    }

    /// Sends requests and reads no reply. The server does not wait for room longer than its send timeout. It keeps the connection only if
    /// it never waited: each request has its whole reply, and there was room for all of them.
    fn ignore_replies(&self, client: &mut RawClient, first: u32) {
        let body = [7; DEAF_BYTES];
        let calls = first..first + DEAF_REQUESTS;
        let sent = calls.take_while(|call| client.send(&self.target.work_with(*call, &body)));
        let sent = sent.count();
        thread::sleep(self.patience.send_timeout + SERVED_MAX);
        let mut replies = 0;
        let has_ended = client.await_close(SERVED_MAX, |message| match message {
            Answer::Reply { .. } => replies += 1,
            other => check_refusal(Attack::Deaf, &other),
        });
        let room = world::with(|world| world.core.faults.pipe_bytes);
        let had_room = replies == sent && client.received_bytes() <= room;
        if self.is_seen && !has_ended && !had_room {
            fail_kept(Attack::Deaf);
        }
    }

    /// The server ends the connection by that time, and says nothing but that, or that it has not understood.
    fn expect_end(&self, attack: Attack, client: &mut RawClient, by: Duration) {
        let has_ended = client.await_close(by + SERVED_MAX, |message| {
            check_refusal(attack, &message);
        });
        if self.is_seen && !has_ended {
            fail_kept(attack);
        }
    }

    /// As [`expect_end`](Self::expect_end), at once.
    fn expect_error(&self, attack: Attack, client: &mut RawClient) {
        self.expect_end(attack, client, Duration::ZERO);
    }

    /// The server replies that there is no such object, unless it refuses the client.
    fn ask_for_nothing(&self, client: &mut RawClient, call: u32) {
        let mut unknown = self.target.clone();
        unknown.key.reverse();
        client.send(&unknown.work(call));
        match client.answer(SERVED_MAX) {
            Answer::Reply { outcome, .. } if outcome.is_refusal("OBJECT_NOT_EXIST") => {}
            Answer::Other(MessageType::CloseConnection) | Answer::Closed => {}
            Answer::Nothing if !self.is_seen => {}
            other => fail(&format!("a request for an unknown object got {other:?}")),
        }
    }
}

/// A server tells an attacker nothing but that it ends the connection, or that it has not understood.
fn check_refusal(attack: Attack, message: &Answer) {
    if !matches!(
        message,
        Answer::Other(MessageType::CloseConnection | MessageType::MessageError)
    ) {
        fail(&format!("an attack by {attack:?} got {message:?}"));
    }
}

fn fail_kept(attack: Attack) {
    fail(&format!(
        "the server keeps the connection of an attack by {attack:?}"
    ));
}

/// A header of GIOP in big-endian order.
fn header(version: [u8; 2], kind: u8, body_bytes: u32) -> Vec<u8> {
    let mut header = b"GIOP".to_vec();
    header.extend(version);
    header.extend([0, kind]);
    header.extend(body_bytes.to_be_bytes());
    header
}

/// A request in fragments, of which none is the last.
fn endless_fragments(call: u32, target: &RawTarget) -> Vec<Vec<u8>> {
    const FLAGS_AT: usize = 6;
    const MORE: u8 = 2;
    const FRAGMENT: u8 = 7;
    const FRAGMENTS: usize = 100;
    let mut first = target.work_with(call, &[0; 64]);
    // All but the last fragment are multiples of 8.
    first.truncate(first.len() / 8 * 8);
    let size = (first.len() - HEADER_BYTES) as u32;
    first[8..HEADER_BYTES].copy_from_slice(&size.to_le_bytes());
    first[FLAGS_AT] |= MORE;
    let mut next = header([1, 2], FRAGMENT, 12);
    next[FLAGS_AT] |= MORE;
    next.extend(call.to_be_bytes());
    next.extend([0; 8]);
    let mut parts = vec![first];
    parts.resize(FRAGMENTS, next);
    parts
}
