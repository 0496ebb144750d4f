//! Servers that do what a test says, byte by byte.

use super::network;
use crate::clock::monotonic_ns;
use crate::transport::Stream;
use core::cell::RefCell;
use core::time::Duration;
use rtorb_tests::fake::request_id;
use rtorb_wire::giop::{Expiry, Header, RequestHeader};
use std::collections::VecDeque;

/// The port of scripted servers.
pub(crate) const PORT: u16 = 1;

/// A request as a scripted server gets it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// The number of its connection.
    pub(crate) connection: usize,
    /// Its number on the connection.
    pub(crate) number: usize,
    pub(crate) id: u32,
    /// When it expires, as it says.
    pub(crate) expiry: Expiry,
}

thread_local! {
    static CANCELLED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// The requests that clients of this thread's scripted servers have cancelled since the last look.
pub(crate) fn cancelled() -> Vec<u32> {
    CANCELLED.take()
}

/// What a scripted server does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Send(Vec<u8>),
    Wait(Duration),
    /// Sends no more.
    HalfClose,
    /// Closes the connection.
    Close,
    /// Reads no more, for the time being.
    StopReading,
    /// Reads again.
    Read,
}

/// A connection of a scripted server.
struct Peer {
    stream: Stream,
    connection: usize,
    requests: usize,
    inbox: Vec<u8>,
    acts: VecDeque<Act>,
    /// It does nothing before.
    wakes_ns: u64,
    is_reading: bool,
}

/// A scripted server.
pub(crate) struct Peers<A> {
    peers: Vec<Peer>,
    accepted: usize,
    answer: A,
}

impl<A: FnMut(Request) -> Vec<Act>> Peers<A> {
    pub(crate) fn new(answer: A) -> Self {
        Self {
            peers: Vec::new(),
            accepted: 0,
            answer,
        }
    }

    /// Does what is due, and returns when something is due next.
    pub(crate) fn act(&mut self) -> Option<u64> {
        while let Some(socket) = network::accept_at(PORT) {
            self.peers
                .push(Peer::new(Stream::new(socket), self.accepted));
            self.accepted += 1;
        }
        self.peers.retain_mut(|peer| peer.act(&mut self.answer));
        self.peers.iter().filter_map(Peer::next_ns).min()
    }
}

impl Peer {
    fn new(stream: Stream, connection: usize) -> Self {
        Self {
            stream,
            connection,
            requests: 0,
            inbox: Vec::new(),
            acts: VecDeque::new(),
            wakes_ns: 0,
            is_reading: true,
        }
    }

    /// Does what is due; false once the connection is over.
    fn act(&mut self, answer: &mut impl FnMut(Request) -> Vec<Act>) -> bool {
        if self.is_reading && !self.read(answer) {
            return false;
        }
        while self.wakes_ns <= monotonic_ns() {
            match self.acts.pop_front() {
                None => break,
                Some(Act::Wait(time)) => self.wakes_ns = monotonic_ns() + time.as_nanos() as u64,
                Some(Act::HalfClose) => self.stream.end_sending(),
                Some(Act::Close) => return false,
                Some(Act::StopReading) => self.is_reading = false,
                Some(Act::Read) => {
                    self.is_reading = true;
                    if !self.read(answer) {
                        return false;
                    }
                }
                Some(Act::Send(bytes)) => match self.stream.send_message_now(&bytes, &[]) {
                    Err(_) => return false,
                    Ok(sent) if sent == bytes.len() => {}
                    Ok(sent) => {
                        self.acts.push_front(Act::Send(bytes[sent..].to_vec()));
                        break;
                    }
                },
            }
        }
        true
    }

    fn next_ns(&self) -> Option<u64> {
        (!self.acts.is_empty()).then_some(self.wakes_ns)
    }

    fn read(&mut self, answer: &mut impl FnMut(Request) -> Vec<Act>) -> bool {
        let mut room = [0; 4096];
        loop {
            match self.stream.receive_now(&mut room) {
                Ok(0) => {
                    while let Some(message) = self.take_message() {
                        note_cancelled(&message);
                    }
                    return false;
                }
                Ok(received) => self.inbox.extend_from_slice(&room[..received]),
                Err(rustix::io::Errno::AGAIN) => break,
                Err(_) => return false,
            }
        }
        while let Some(message) = self.take_message() {
            if note_cancelled(&message) {
                continue;
            }
            let request = Request {
                connection: self.connection,
                number: self.requests,
                id: request_id(&message).expect("a request"),
                expiry: expiry(&message),
            };
            self.requests += 1;
            self.acts.extend(answer(request));
        }
        true
    }

    /// The next message, if it is there whole.
    fn take_message(&mut self) -> Option<Vec<u8>> {
        let size: [u8; 4] = self.inbox.get(8..12)?.try_into().expect("four bytes");
        let whole = 12 + u32::from_le_bytes(size) as usize;
        (self.inbox.len() >= whole).then(|| self.inbox.drain(..whole).collect())
    }
}

/// Notes a CancelRequest; returns false for another message.
fn note_cancelled(message: &[u8]) -> bool {
    let is_cancel = message[7] == CANCEL_REQUEST;
    if is_cancel {
        let id = request_id(message).expect("the id of a request");
        CANCELLED.with_borrow_mut(|cancelled| cancelled.push(id));
    }
    is_cancel
}

/// The kind of a message by which a client gives up a request.
const CANCEL_REQUEST: u8 = 2;

/// When a request expires, as it says; a LocateRequest says nothing.
fn expiry(message: &[u8]) -> Expiry {
    let header = Header::parse(message, usize::MAX);
    let header = header.expect("GIOP").expect("a whole header");
    let request = RequestHeader::decode(&mut header.reader(message));
    request.map_or(Expiry::NEVER, |request| Expiry::of(request.contexts))
}
