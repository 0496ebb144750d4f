//! Both engines of a connection joined in memory: any split of the bytes, fragments, replies in any order, and every way
//! for a connection to end. No sockets, no threads, no clock.

use rtorb_wire::connection::{
    ClientState, Outbox, Pending, ReceiveError, ReceiveLimits, Receiver, Reply, ReplyError, Side,
};
use rtorb_wire::exception::CompletionStatus;
use rtorb_wire::giop::{
    self, MessageType, ReplyStatus, RequestHeader, RequestStart, Response, Version,
};
use rtorb_wire::{EncodeError, Writer};

const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Draws numbers from a seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

/// One end of the connection: what it receives, and what it sends.
struct End {
    receiver: Receiver,
    outbox: Outbox,
}

impl End {
    fn new(side: Side) -> Self {
        let limits = ReceiveLimits {
            message_bytes_max: MESSAGE_BYTES_MAX,
            fragmented_messages_max: 8,
        };
        Self {
            receiver: Receiver::new(side, limits),
            outbox: Outbox::new(8 * MESSAGE_BYTES_MAX),
        }
    }

    /// Sends a message, whole or in fragments as the dice fall.
    fn send(
        &mut self,
        random: &mut Random,
        version: Version,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) {
        let mut w = Writer::new(Vec::new(), MESSAGE_BYTES_MAX);
        write(&mut w).expect("it fits");
        let kept = if version == Version::V1_2 && random.below(3) == 0 {
            self.outbox.keep_fragments(&w, 24 + random.below(2000))
        } else {
            self.outbox.keep(&w, 0)
        };
        kept.expect("there is room");
    }

    /// Moves up to `count` bytes to the other end; how many it was.
    fn move_bytes(&mut self, to: &mut End, count: usize) -> usize {
        let free = to.receiver.free();
        let bytes = self.outbox.unsent();
        let count = count.min(free.len()).min(bytes.len());
        free[..count].copy_from_slice(&bytes[..count]);
        to.receiver.advance(count);
        self.outbox.advance(count);
        count
    }
}

/// What a server carried out and has not replied to.
struct Served {
    request_id: u32,
    version: Version,
    body: Vec<u8>,
}

/// The pair, driven by a seed.
struct Pair {
    random: Random,
    client: End,
    state: ClientState,
    /// For each request that waits, what its reply must be.
    pending: Pending<Vec<u8>>,
    server: End,
    served: Vec<Served>,
    carried_out: Vec<u32>,
    replied: usize,
}

impl Pair {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed),
            client: End::new(Side::Client),
            state: ClientState::naming_code_sets(),
            pending: Pending::default(),
            server: End::new(Side::Server),
            served: Vec::new(),
            carried_out: Vec::new(),
            replied: 0,
        }
    }

    fn request(&mut self) {
        let versions = [Version::V1_0, Version::V1_1, Version::V1_2, Version::V1_2];
        let version = versions[self.random.below(versions.len())];
        let body: Vec<u8> = (0..self.random.below(3000)).map(|it| it as u8).collect();
        let request_id = self.state.next_shared_request_id();
        let start = RequestStart {
            request_id,
            response: Response::FromTarget,
            object_key: b"object",
            operation: "echo",
            contexts: &[],
        };
        self.client.send(&mut self.random, version, |w| {
            giop::begin_request(w, version, &start)?;
            giop::encode_body(w, version, |w| w.octets(&body))?;
            giop::end_message(w)
        });
        assert!(self.pending.insert(request_id, body));
    }

    /// Receives some bytes at the server, and carries out what is complete.
    fn serve(&mut self) {
        let count = 1 + self.random.below(4000);
        self.client.move_bytes(&mut self.server, count);
        while let Some(message) = self.server.receiver.next().expect("requests only") {
            let mut reader = message.reader();
            let request = RequestHeader::decode(&mut reader).expect("a request");
            let left = reader.remaining();
            self.carried_out.push(request.request_id);
            self.served.push(Served {
                request_id: request.request_id,
                version: message.header.version,
                body: reader.take(left).expect("they are there").to_vec(),
            });
        }
    }

    /// Replies to one of the requests that were carried out.
    fn reply(&mut self) {
        let place = self.random.below(self.served.len());
        let served = self.served.swap_remove(place);
        self.server.send(&mut self.random, served.version, |w| {
            let status = ReplyStatus::NoException;
            giop::begin_reply(w, served.version, served.request_id, status, &[])?;
            giop::encode_body(w, served.version, |w| w.octets(&served.body))?;
            giop::end_message(w)
        });
    }

    /// Receives at most `count` bytes at the client; takes the replies that are complete.
    fn receive(&mut self, count: usize) -> Result<usize, ReplyError> {
        let count = self.server.move_bytes(&mut self.client, count);
        while let Some(message) = self.client.receiver.next()? {
            let kind = message.header.message_type;
            let id = Reply::request_id(kind, &mut message.reader()).expect("a reply");
            let mut reader = message.reader();
            let reply = Reply::decode(kind, &mut reader, id);
            let results = Reply::Results(ReplyStatus::NoException);
            assert_eq!(reply, Ok(Some(results)));
            let left = reader.remaining();
            let body = reader.take(left).expect("they are there");
            assert_eq!(self.pending.remove(id).as_deref(), Some(body));
            self.state.note_reply(kind);
            self.replied += 1;
        }
        Ok(count)
    }

    /// Does something that may happen now.
    fn step(&mut self) {
        match self.random.below(4) {
            0 if self.carried_out.len() < 30 => self.request(),
            1 if !self.served.is_empty() => self.reply(),
            2 => {
                let count = 1 + self.random.below(4000);
                self.receive(count).map(|_| ()).expect("replies only");
            }
            _ => self.serve(),
        }
    }
}

#[test]
//= GIOP 1.2 §15.4.2.2
//% test
fn every_request_gets_its_own_reply() {
    for seed in 0..200 {
        let mut pair = Pair::new(seed);
        for _ in 0..100 {
            pair.step();
        }
        for _ in 0..100_000 {
            pair.serve();
            while !pair.served.is_empty() {
                pair.reply();
            }
            pair.receive(1000).expect("replies only");
            if pair.pending.is_empty() {
                break;
            }
        }
        assert!(pair.pending.is_empty(), "seed {seed}");
        assert_eq!(pair.replied, pair.carried_out.len(), "seed {seed}");
        assert!(pair.replied == 0 || !pair.state.needs_code_sets());
    }
}

#[test]
//= GIOP 1.2 §15.4.7
//% test
fn after_close_connection_what_has_no_reply_was_not_carried_out() {
    let mut closed = 0;
    for seed in 0..500 {
        let mut pair = Pair::new(seed);
        for _ in 0..pair.random.below(100) {
            pair.step();
        }
        // A server replies to all that it has carried out before it says CloseConnection.
        while !pair.served.is_empty() {
            pair.reply();
        }
        pair.server.send(&mut pair.random, Version::V1_0, |w| {
            giop::write_close_connection(w, Version::V1_2)
        });
        let part = 1 + pair.random.below(500);
        let error = loop {
            if let Err(error) = pair.receive(part) {
                break error;
            }
        };
        assert_eq!(error, ReplyError::Closed, "seed {seed}");
        assert!(error.is_stale() && error.completion() == CompletionStatus::No);
        for request_id in &pair.carried_out {
            assert!(pair.pending.remove(*request_id).is_none(), "seed {seed}");
        }
        closed += pair.pending.end(error).count();
        assert!(!pair.pending.is_open());
    }
    assert!(closed > 100, "requests were cut off: {closed}");
}

#[test]
fn a_connection_that_ends_anywhere_leaves_no_request_behind() {
    for seed in 0..500 {
        let mut pair = Pair::new(seed);
        for _ in 0..pair.random.below(100) {
            pair.step();
        }
        // The transport fails at this byte: what is on the way is lost.
        let waiting = pair.pending.iter().count();
        let error = ReplyError::Ended;
        assert_eq!(pair.pending.end(error).count(), waiting);
        assert!(!error.is_stale() && error.completion() == CompletionStatus::Maybe);
        assert!(pair.pending.is_empty() && !pair.pending.is_open());
        // Nothing is told twice.
        assert_eq!(pair.pending.end(ReplyError::Closed).count(), 0);
    }
}

#[test]
fn close_connection_amid_a_reply_does_not_let_the_request_go_again() {
    let mut pair = Pair::new(1);
    let version = Version::V1_2;
    let mut w = Writer::new(Vec::new(), MESSAGE_BYTES_MAX);
    giop::begin_reply(&mut w, version, 0, ReplyStatus::NoException, &[]).expect("it fits");
    w.octets(&[7; 100]).expect("it fits");
    giop::end_message(&mut w).expect("it fits");
    let first = giop::fragments(&w.to_bytes(), 32).next();
    let mut bytes = first.expect("there are several");
    let mut w = Writer::new(Vec::new(), giop::HEADER_BYTES);
    giop::write_close_connection(&mut w, version).expect("it fits");
    bytes.extend_from_slice(&w.to_bytes());
    let receiver = &mut pair.client.receiver;
    receiver.free()[..bytes.len()].copy_from_slice(&bytes);
    receiver.advance(bytes.len());
    let error = receiver.next().map(|_| ()).expect_err("it closed");
    assert_eq!(error, ReceiveError::Closed { amid_message: true });
    assert_eq!(ReplyError::from(error), ReplyError::Ended);
}

#[test]
fn bytes_of_a_peer_that_are_no_reply_end_the_connection() {
    let errors = [
        (&b"HTTP/1.1 400 Bad Request"[..], None),
        // A request, of whose header the rest does not matter.
        (
            b"GIOP\x01\x02\x01\x00\x00\x00\x00\x00",
            Some(ReplyError::OutOfPlace),
        ),
        // MessageError.
        (
            b"GIOP\x01\x02\x01\x06\x00\x00\x00\x00",
            Some(ReplyError::NotUnderstood),
        ),
    ];
    for (bytes, expected) in errors {
        let mut receiver = End::new(Side::Client).receiver;
        receiver.free()[..bytes.len()].copy_from_slice(bytes);
        receiver.advance(bytes.len());
        let error = receiver.next().map(|_| ()).expect_err("it is no reply");
        let error = ReplyError::from(error);
        match expected {
            Some(expected) => assert_eq!(error, expected),
            None => assert!(matches!(error, ReplyError::Malformed(_)), "{error}"),
        }
        assert_eq!(error.completion(), CompletionStatus::Maybe);
        assert!(!error.is_stale());
    }
}

#[test]
fn a_locate_reply_says_where_the_object_is_and_nothing_of_code_sets() {
    use rtorb_wire::giop::LocateStatus;
    let state = ClientState::naming_code_sets();
    for (status, expected) in [
        (LocateStatus::ObjectHere, Reply::ObjectHere),
        (LocateStatus::UnknownObject, Reply::UnknownObject),
    ] {
        let mut w = Writer::new(Vec::new(), 100);
        giop::write_locate_reply(&mut w, Version::V1_2, 6, status).expect("it fits");
        let bytes = w.to_bytes();
        let header = giop::Header::parse(&bytes, 100).ok().flatten();
        let header = header.expect("a header");
        let decode = |id| Reply::decode(header.message_type, &mut header.reader(&bytes), id);
        assert_eq!(decode(6), Ok(Some(expected)));
        assert_eq!(decode(4), Ok(None));
        state.note_reply(header.message_type);
        assert!(state.needs_code_sets());
    }
    state.note_reply(MessageType::Reply);
    assert!(!state.needs_code_sets());
}
