//! A client without an ORB. It sends messages of GIOP as its user writes them, whole or in parts, right or wrong.

use crate::world;
use rtorb::ObjectRef;
use rtorb::endpoint::Endpoint;
use rtorb_wire::Writer;
use rtorb_wire::giop::{
    self, Header, MessageType, ReplyHeader, ReplyStatus, RequestStart, Response,
    SystemExceptionBody, Version,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// The largest message that it sends or understands.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// How long it waits for room to send: longer than a server keeps a client from which it does not read. A network that loses all bytes tells
/// nobody; TCP gives up after a quarter of an hour.
const ROOM_MAX: Duration = Duration::from_secs(30);

/// An object as a client without an ORB knows it.
#[derive(Clone, Debug)]
pub(super) struct RawTarget {
    pub(super) address: SocketAddr,
    pub(super) key: Vec<u8>,
}

impl RawTarget {
    /// The object at the first endpoint of its reference, which is one of TCP.
    pub(super) fn of(object: &ObjectRef) -> Self {
        let Some(Endpoint::Tcp { host, port }) = object.endpoints().next() else {
            panic!("the server listens on TCP");
        };
        let address = format!("{host}:{port}").parse();
        let profile = object.ior().iiop_profiles().next();
        Self {
            address: address.expect("it is numeric"),
            key: profile.expect("it has an address").object_key,
        }
    }

    /// The request for a call of `work` that takes no time.
    pub(super) fn work(&self, call: u32) -> Vec<u8> {
        self.work_with(call, &[])
    }

    /// As [`work`](Self::work), with a body, which comes back.
    pub(super) fn work_with(&self, call: u32, body: &[u8]) -> Vec<u8> {
        let start = RequestStart {
            request_id: call,
            response: Response::FromTarget,
            object_key: &self.key,
            operation: "work",
            contexts: &[],
        };
        message(|w| {
            giop::begin_request(w, Version::V1_2, &start)?;
            giop::encode_body(w, Version::V1_2, |w| {
                w.primitive(call)?;
                w.primitive(-1i16)?;
                w.primitive(0u32)?;
                w.primitive(0u32)?;
                w.count(body.len())?;
                w.octets(body)
            })?;
            giop::end_message(w)
        })
    }
}

/// The message that cancels a request.
pub(super) fn cancel(call: u32) -> Vec<u8> {
    message(|w| giop::write_cancel_request(w, Version::V1_2, call))
}

fn message<'a>(
    write: impl FnOnce(&mut Writer<'a>) -> Result<(), rtorb_wire::EncodeError>,
) -> Vec<u8> {
    let mut w = Writer::new(Vec::new(), MESSAGE_BYTES_MAX);
    write(&mut w).expect("it fits");
    w.to_bytes()
}

/// What comes from a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The reply to a request.
    Reply { call: u32, outcome: RawOutcome },
    /// Another message.
    Other(MessageType),
    /// The end of the connection.
    Closed,
    /// Nothing in time.
    Nothing,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RawOutcome {
    Done,
    /// A system exception: the part of its repository id with its name, and the completion status.
    Refused {
        name: String,
        completed: u32,
    },
    Unexpected,
}

impl RawOutcome {
    /// True if the call was refused with this exception, and was not carried out.
    pub(super) fn is_refusal(&self, with: &str) -> bool {
        /// COMPLETED_NO.
        const NO: u32 = 1;
        matches!(self, Self::Refused { name, completed: NO } if name == with)
    }
}

/// A connection without an ORB.
#[derive(Debug)]
pub(super) struct RawClient {
    socket: TcpStream,
    received: Vec<u8>,
    received_bytes: usize,
    has_ended: bool,
}

impl RawClient {
    /// Connects; `None` if the network or the server refuses.
    pub(super) fn connect(to: SocketAddr) -> Option<Self> {
        let socket = TcpStream::connect(to).ok()?;
        Some(Self {
            socket,
            received: Vec::new(),
            received_bytes: 0,
            has_ended: false,
        })
    }

    /// Sends all bytes, and waits for room. Returns false if the connection has ended, or has no room for [`ROOM_MAX`].
    pub(super) fn send(&mut self, bytes: &[u8]) -> bool {
        const AT_ONCE: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
        let until_ns = world::now_ns() + ROOM_MAX.as_nanos() as u64;
        let mut left = bytes;
        while !left.is_empty() {
            match send(&self.socket, left, AT_ONCE) {
                Ok(count) => left = &left[count..],
                Err(Errno::AGAIN) if self.await_event(PollFlags::OUT, until_ns) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// All bytes that it has read.
    pub(super) fn received_bytes(&self) -> usize {
        self.received_bytes
    }

    /// Says that nothing more comes.
    pub(super) fn end_sending(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Returns what comes next, or [`Answer::Nothing`] after `patience`.
    pub(super) fn answer(&mut self, patience: Duration) -> Answer {
        let until_ns = world::now_ns() + patience.as_nanos() as u64;
        loop {
            if let Some(answer) = self.take() {
                return answer;
            }
            if self.has_ended {
                return Answer::Closed;
            }
            if !self.await_event(PollFlags::IN, until_ns) {
                return Answer::Nothing;
            }
            let mut room = [0; 4096];
            match self.socket.read(&mut room) {
                Ok(0) | Err(_) => self.has_ended = true,
                Ok(count) => {
                    self.received.extend_from_slice(&room[..count]);
                    self.received_bytes += count;
                }
            }
        }
    }

    /// Reads until the server has closed the connection; false if it has not after `patience`. Calls `check` for each message.
    pub(super) fn await_close(
        &mut self,
        patience: Duration,
        mut check: impl FnMut(Answer),
    ) -> bool {
        let until_ns = world::now_ns() + patience.as_nanos() as u64;
        loop {
            let left_ns = until_ns.saturating_sub(world::now_ns());
            match self.answer(Duration::from_nanos(left_ns)) {
                Answer::Closed => return true,
                Answer::Nothing => return false,
                message => check(message),
            }
        }
    }

    /// Waits for bytes or for room, or for the end; false if none has come by that time.
    fn await_event(&self, event: PollFlags, until_ns: u64) -> bool {
        let left_ns = until_ns.saturating_sub(world::now_ns());
        let timeout = Timespec {
            tv_sec: (left_ns / 1_000_000_000) as i64,
            tv_nsec: (left_ns % 1_000_000_000) as i64,
        };
        let mut polled = [PollFd::new(&self.socket, event)];
        poll(&mut polled, Some(&timeout)) != Ok(0)
    }

    /// Takes the first message that was received, if it is whole.
    fn take(&mut self) -> Option<Answer> {
        let header = Header::parse(&self.received, MESSAGE_BYTES_MAX);
        let header = header.expect("the server sends GIOP")?;
        if self.received.len() < header.message_bytes() {
            return None;
        }
        let message: Vec<u8> = self.received.drain(..header.message_bytes()).collect();
        if header.message_type != MessageType::Reply {
            return Some(Answer::Other(header.message_type));
        }
        let mut reader = header.reader(&message);
        let reply = ReplyHeader::decode(&mut reader).expect("it is a reply");
        let outcome = match reply.status {
            ReplyStatus::NoException => RawOutcome::Done,
            ReplyStatus::SystemException => {
                let body = SystemExceptionBody::decode(&mut reader).expect("it is an exception");
                RawOutcome::Refused {
                    name: name_of(body.repository_id),
                    completed: body.completed,
                }
            }
            _ => RawOutcome::Unexpected,
        };
        Some(Answer::Reply {
            call: reply.request_id,
            outcome,
        })
    }
}

/// The name in the repository id of a system exception.
fn name_of(repository_id: &[u8]) -> String {
    let id = String::from_utf8_lossy(repository_id);
    let name = id.strip_prefix("IDL:omg.org/CORBA/");
    let name = name.and_then(|name| name.strip_suffix(":1.0"));
    name.unwrap_or(&id).to_owned()
}
