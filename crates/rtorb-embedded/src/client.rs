//! Calls of objects at the other end of a link.

use crate::link::{self, Link, LinkError};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use rtorb_core::exception::{ExceptionKind, SystemException};
use rtorb_wire::connection::{ClientState, Receiver, Reply, ReplyError, Side};
use rtorb_wire::giop::{
    self, ReplyStatus, RequestStart, Response, ServiceContext, Version, contexts,
};
use rtorb_wire::{DecodeError, EncodeError, Reader, Writer};

/// The client's end of a link. One task at a time uses it.
pub struct Client {
    link: Box<dyn Link + Send>,
    state: ClientState,
    receiver: Receiver,
    /// The buffer of requests, reused.
    out: Vec<u8>,
    message_bytes_max: usize,
}

/// A client that tasks share. The application implements it with a mutex of its kernel, one that inherits priority.
pub trait SharedClient: Sync {
    /// Runs `call` while no other task uses the client.
    fn exclusively(&self, call: &mut dyn FnMut(&mut Client));
}

/// One request.
pub(crate) struct Request<'x> {
    pub(crate) key: &'x [u8],
    pub(crate) operation: &'x str,
    pub(crate) response: Response,
    pub(crate) priority: Option<i16>,
}

pub(crate) type Arguments<'f, 'a> = &'f dyn Fn(&mut Writer<'a>) -> Result<(), EncodeError>;
pub(crate) type Results<'f> =
    &'f mut dyn FnMut(ReplyStatus, &mut Reader<'_>) -> Result<(), DecodeError>;

impl Client {
    /// A client whose messages have at most `message_bytes_max` bytes. It takes its memory now.
    #[must_use]
    pub fn new(link: Box<dyn Link + Send>, message_bytes_max: usize) -> Self {
        Self {
            link,
            state: ClientState::new(),
            receiver: Receiver::new(Side::Client, link::limits(message_bytes_max)),
            out: Writer::memory(message_bytes_max),
            message_bytes_max,
        }
    }

    pub(crate) fn call<'a>(
        &mut self,
        request: &Request<'_>,
        arguments: Arguments<'_, 'a>,
        results: Results<'_>,
    ) -> Result<(), SystemException> {
        let request_id = self.send(request, arguments)?;
        if request.response == Response::None {
            return Ok(());
        }
        self.read_reply(request_id, results).inspect_err(|error| {
            // After a timeout the rest of the reply can still come.
            if error.kind != ExceptionKind::Timeout {
                self.receiver.clear();
            }
        })?
    }

    /// Writes a request, sends it, and returns its id.
    fn send<'a>(
        &mut self,
        request: &Request<'_>,
        arguments: Arguments<'_, 'a>,
    ) -> Result<u32, SystemException> {
        let mut w = Writer::new(core::mem::take(&mut self.out), self.message_bytes_max);
        let request_id = self.state.next_request_id();
        let sent = request
            .encode(&mut w, request_id, arguments)
            .map_err(SystemException::from_encode)
            .and_then(|()| {
                link::send(&mut *self.link, &w).map_err(|error| {
                    // Only after a timeout, the rest of an earlier reply can still come.
                    if error == LinkError::Broken {
                        self.receiver.clear();
                    }
                    unsent(error)
                })
            });
        self.out = w.into_buffer();
        sent.map(|()| request_id)
    }

    /// Reads the reply to a request. The outer error says that no reply can be used.
    fn read_reply(
        &mut self,
        request_id: u32,
        results: Results<'_>,
    ) -> Result<Result<(), SystemException>, SystemException> {
        loop {
            let next = self.receiver.next();
            let Some(message) = next.map_err(|error| no_reply(error.into()))? else {
                let received = self.link.receive(self.receiver.free());
                match received.map_err(|error| no_reply(unanswered(error)))? {
                    0 => return Err(no_reply(ReplyError::Ended)),
                    count => self.receiver.advance(count),
                }
                continue;
            };
            let kind = message.header.message_type;
            let mut r = message.reader();
            let reply = Reply::decode(kind, &mut r, request_id);
            // Another's is the late reply to a call whose time had passed.
            let Some(reply) = reply.map_err(|error| no_reply(ReplyError::Malformed(error)))? else {
                continue;
            };
            return Ok(match reply {
                Reply::Results(status) => {
                    results(status, &mut r).map_err(|error| no_reply(ReplyError::BadResults(error)))
                }
                Reply::ObjectHere => Ok(()),
                Reply::UnknownObject => Err(ExceptionKind::ObjectNotExist.into()),
                Reply::SystemException(body) => Err(body.into()),
                // There is one link, and the object is not at its other end.
                Reply::Forward(_) => Err(ExceptionKind::Rebind.into()),
                Reply::NeedsAddressingMode(_) => Err(no_reply(ReplyError::NeedsAddressingMode)),
            });
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Request<'_> {
    fn encode<'a>(
        &self,
        w: &mut Writer<'a>,
        request_id: u32,
        arguments: Arguments<'_, 'a>,
    ) -> Result<(), EncodeError> {
        let priority = self.priority.map(contexts::priority);
        let context = priority.as_ref().map(|data| ServiceContext {
            id: contexts::RT_CORBA_PRIORITY,
            data,
        });
        let start = RequestStart {
            request_id,
            response: self.response,
            object_key: self.key,
            operation: self.operation,
            contexts: context.as_slice(),
        };
        giop::begin_request(w, Version::V1_2, &start)?;
        giop::encode_body(w, Version::V1_2, arguments)?;
        giop::end_message(w)
    }
}

/// The exception of a request that the link did not take.
fn unsent(error: LinkError) -> SystemException {
    no_reply(match error {
        LinkError::TimedOut => ReplyError::SendTimedOut,
        LinkError::Broken => ReplyError::Ended,
    })
}

/// Why no reply came.
fn unanswered(error: LinkError) -> ReplyError {
    match error {
        LinkError::TimedOut => ReplyError::TimedOut,
        LinkError::Broken => ReplyError::Ended,
    }
}

fn no_reply(error: ReplyError) -> SystemException {
    let (kind, minor) = error.exception();
    SystemException::new(kind, minor, error.completion())
}
