//! The reading side of a client's connection: bytes in, whole messages out, in the order they came.

use super::answer;
use super::request::TakenRequest;
use super::session::Session;
use super::workspace::Workspace;
use crate::exception::{ExceptionKind, SystemException};
use crate::limits::Limits;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::code_sets;
use rtorb_wire::connection::{ReceiveError, Receiver, Side};
use rtorb_wire::giop::{MessageType, RequestHeader, contexts};
use rustix::io::Errno;

/// What a thread reads a connection with; one thread at a time does.
#[derive(Debug)]
pub(crate) struct Reading {
    receiver: Receiver,
    char_codes: CharCodes,
}

/// What became of the next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It was dealt with, or taken out.
    Done,
    /// It is not all there yet.
    Incomplete,
    /// There is none: the peer ended the connection or broke the rules, the connection broke, or the ORB stops.
    Over,
}

/// What a client said of its code sets.
#[derive(Debug, Default)]
pub(super) struct CharCodes {
    told: Option<contexts::CodeSets>,
    /// Which of ours that is for `char`.
    pub(super) char_code_set: CharCodeSet,
}

impl Reading {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            receiver: Receiver::new(Side::Server, limits.receive()),
            char_codes: CharCodes::default(),
        }
    }

    /// Receives once and waits for that; the number of bytes, 0 when the peer has ended the connection.
    #[inline]
    pub(crate) fn receive(&mut self, session: &Session) -> Result<usize, Errno> {
        let received = session.stream.receive(self.receiver.free())?;
        self.receiver.advance(received);
        Ok(received)
    }

    /// Receives what is there without waiting; `AGAIN` when nothing is.
    ///
    /// If the receive buffer [is full](Self::is_full) then, there may be more.
    #[inline]
    pub(crate) fn receive_now(&mut self, session: &Session) -> Result<usize, Errno> {
        let received = session.stream.receive_now(self.receiver.free_ahead())?;
        self.receiver.advance(received);
        Ok(received)
    }

    /// True if [`receive_now`](Self::receive_now) took as much as it takes at a time.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.receiver.is_full()
    }

    /// True if no received bytes are left that were not served or taken.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }

    /// Serves the next message in place, if it is complete.
    #[inline]
    pub(crate) fn serve_next(&mut self, session: &Session, workspace: &mut Workspace) -> Next {
        let next = match self.try_serve_next(session, workspace) {
            Ok(next) => next,
            Err(error) => return broken(session, error),
        };
        if next == Next::Done && session.orb.is_stopping() {
            return Next::Over;
        }
        next
    }

    /// Takes the next request out for another thread, or for later; other messages are served here.
    ///
    /// From now on replies are sent in turn ([`Session::share`]).
    pub(crate) fn take_next(
        &mut self,
        session: &Session,
        workspace: &mut Workspace,
        into: &mut TakenRequest,
    ) -> Next {
        session.share();
        loop {
            match self.try_take_next(session, workspace, into) {
                Ok(Some(next)) => return next,
                Ok(None) if session.orb.is_stopping() => return Next::Over,
                Ok(None) => {}
                Err(error) => return broken(session, error),
            }
        }
    }

    #[inline]
    fn try_serve_next(
        &mut self,
        session: &Session,
        workspace: &mut Workspace,
    ) -> Result<Next, ReceiveError> {
        let Some(message) = self.receiver.next()? else {
            return Ok(Next::Incomplete);
        };
        session.note_message(message.header.version);
        if message.header.message_type == MessageType::Request {
            let char_codes = &mut self.char_codes;
            return Ok(answer::request(session, workspace, char_codes, message)?);
        }
        answer::other(session, workspace, message)
    }

    /// Takes the next message if it is a request; `None` when it was something else.
    fn try_take_next(
        &mut self,
        session: &Session,
        workspace: &mut Workspace,
        into: &mut TakenRequest,
    ) -> Result<Option<Next>, ReceiveError> {
        let Some(message) = self.receiver.next()? else {
            return Ok(Some(Next::Incomplete));
        };
        session.note_message(message.header.version);
        if message.header.message_type != MessageType::Request {
            return Ok(match answer::other(session, workspace, message)? {
                Next::Over => Some(Next::Over),
                _ => None,
            });
        }
        let request = RequestHeader::decode(&mut message.reader())?;
        if let Err(exception) = self.char_codes.note(&request) {
            answer::refuse(session, workspace, (message.header, &request), &exception);
            return Ok(None);
        }
        let arrived_ns = session.orb.timing.arrival_ns();
        into.fill(message.bytes, self.char_codes.char_code_set, arrived_ns);
        Ok(Some(Next::Done))
    }
}

impl CharCodes {
    /// Notes the code sets that a request says its connection uses.
    ///
    /// # Errors
    /// The exception to reply with: CODESET_INCOMPATIBLE 2, or MARSHAL 9 if the code sets differ from those of an earlier
    /// request.
    #[inline]
    pub(super) fn note(&mut self, request: &RequestHeader<'_>) -> Result<(), SystemException> {
        if request.contexts.is_empty() {
            return Ok(());
        }
        self.note_contexts(request)
    }

    fn note_contexts(&mut self, request: &RequestHeader<'_>) -> Result<(), SystemException> {
        let Some(data) = request.contexts.find(contexts::CODE_SETS) else {
            return Ok(());
        };
        let told = contexts::CodeSets::from_data(data)?;
        match self.told {
            Some(known) if known == told => Ok(()),
            Some(_) => Err(SystemException::omg(ExceptionKind::Marshal, 9)),
            None => {
                let refused = |_| SystemException::omg(ExceptionKind::CodesetIncompatible, 2);
                self.char_code_set = code_sets::accept(told).map_err(refused)?;
                self.told = Some(told);
                Ok(())
            }
        }
    }
}

/// Ends a connection after bytes behind which nothing can be read.
#[cold]
fn broken(session: &Session, _: ReceiveError) -> Next {
    session.say_error();
    Next::Over
}
