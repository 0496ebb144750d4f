//! The reading side of a client's connection: octets in, whole messages out, in the order they came.

use super::answer;
use super::request::TakenRequest;
use super::session::Session;
use super::workspace::Workspace;
use crate::exception::{ExceptionKind, SystemException};
use crate::inbox::Inbox;
use crate::limits::Limits;
use rtorb_wire::DecodeError;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::code_sets;
use rtorb_wire::giop::{self, Accepted, Header, MessageType, RequestHeader, contexts};
use rustix::io::Errno;

/// What one thread at a time reads a connection with.
#[derive(Debug)]
pub(crate) struct Reading {
    inbox: Inbox,
    reassembly: giop::Reassembly,
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
            inbox: Inbox::new(limits.message_octets_max),
            reassembly: giop::Reassembly::new(
                limits.message_octets_max,
                limits.fragment_chains_max,
            ),
            char_codes: CharCodes::default(),
        }
    }

    /// Receives once, waiting; the number of octets, 0 when the peer has ended.
    #[inline]
    pub(crate) fn receive(&mut self, session: &Session) -> Result<usize, Errno> {
        self.inbox.receive(&session.stream)
    }

    /// Receives what is there without waiting; `AGAIN` when that is nothing.
    ///
    /// As much as there is room for: if the inbox [is full](Self::is_full) then, there may be more.
    #[inline]
    pub(crate) fn receive_now(&mut self, session: &Session) -> Result<usize, Errno> {
        self.inbox.receive_now(&session.stream)
    }

    /// True if nothing more can be received before a message is dealt with, or found to be incomplete.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.inbox.is_full()
    }

    /// True if nothing lies here that was received and not dealt with.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.inbox.len() == 0
    }

    /// Answers the next message where it lies, if it is all there.
    #[inline]
    pub(crate) fn serve_next(&mut self, session: &Session, workspace: &mut Workspace) -> Next {
        self.try_serve_next(session, workspace)
            .unwrap_or_else(|error| broken(session, error))
    }

    /// Takes the next request out for another thread, or for later; what is no request is dealt with here.
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
    ) -> Result<Next, DecodeError> {
        let Some(header) = self.complete(session)? else {
            return Ok(Next::Incomplete);
        };
        let octets = header.message_octets();
        let next = match is_plain_request(header) {
            true => {
                let message = self.inbox.octets(octets);
                answer::request(session, workspace, &mut self.char_codes, (header, message))?
            }
            false => self.serve_unusual(session, workspace, header)?,
        };
        self.inbox.consume(octets);
        Ok(match session.orb.is_stopping() {
            true => Next::Over,
            false => next,
        })
    }

    #[cold]
    fn serve_unusual(
        &mut self,
        session: &Session,
        workspace: &mut Workspace,
        header: Header,
    ) -> Result<Next, DecodeError> {
        let Some((header, assembled)) = self.assemble(session, header)? else {
            return Ok(Next::Done);
        };
        let message = match &assembled {
            Some(message) => message,
            None => self.inbox.octets(header.message_octets()),
        };
        match header.message_type {
            MessageType::Request => {
                answer::request(session, workspace, &mut self.char_codes, (header, message))
            }
            _ => answer::other(session, workspace, (header, message)),
        }
    }

    /// Takes the next message if it is a request; `None` when it was something else.
    fn try_take_next(
        &mut self,
        session: &Session,
        workspace: &mut Workspace,
        into: &mut TakenRequest,
    ) -> Result<Option<Next>, DecodeError> {
        let Some(first) = self.complete(session)? else {
            return Ok(Some(Next::Incomplete));
        };
        let (header, assembled) = match is_plain_request(first) {
            true => (first, None),
            false => match self.assemble(session, first)? {
                Some(whole) => whole,
                None => {
                    self.inbox.consume(first.message_octets());
                    return Ok(None);
                }
            },
        };
        let message = match &assembled {
            Some(message) => message,
            None => self.inbox.octets(header.message_octets()),
        };
        let next = match header.message_type {
            MessageType::Request => {
                let request = RequestHeader::decode(&mut header.reader(message))?;
                match self.char_codes.note(&request) {
                    Ok(()) => {
                        let arrived_ns = session.orb.timing.arrival_ns();
                        into.fill(message, self.char_codes.char_code_set, arrived_ns);
                        Some(Next::Done)
                    }
                    Err(exception) => {
                        answer::refuse(session, workspace, (header, &request), &exception);
                        None
                    }
                }
            }
            _ => match answer::other(session, workspace, (header, message))? {
                Next::Over => Some(Next::Over),
                _ => None,
            },
        };
        self.inbox.consume(first.message_octets());
        Ok(next)
    }

    /// The header of the next message, when all of that is there.
    #[inline]
    fn complete(&mut self, session: &Session) -> Result<Option<Header>, DecodeError> {
        let Some(header) = self.inbox.header()? else {
            return Ok(None);
        };
        let octets = header.message_octets();
        if self.inbox.len() < octets {
            self.inbox.make_room(octets);
            return Ok(None);
        }
        session.note_message(header.version);
        Ok(Some(header))
    }

    /// The whole message that the next one is or completes.
    #[cold]
    fn assemble(
        &mut self,
        session: &Session,
        header: Header,
    ) -> Result<Option<Assembled>, DecodeError> {
        let part = self.inbox.octets(header.message_octets());
        match self.reassembly.accept(&header, part)? {
            Accepted::Whole => Ok(Some((header, None))),
            Accepted::Kept => Ok(None),
            Accepted::Message(message) => {
                let header = Header::parse(&message, session.orb.limits.message_octets_max)?;
                let header = header.ok_or(DecodeError::BadMagic)?;
                Ok(Some((header, Some(message))))
            }
        }
    }
}

/// A whole message: its header, and its octets unless they lie in the inbox.
type Assembled = (Header, Option<Vec<u8>>);

impl CharCodes {
    /// Takes from a request what it says of code sets.
    ///
    /// # Errors
    /// What the request is to be answered with: CODESET_INCOMPATIBLE 2, or MARSHAL 9 for one that says something else than
    /// an earlier one.
    #[inline]
    pub(super) fn note(&mut self, request: &RequestHeader<'_>) -> Result<(), SystemException> {
        match request.contexts.is_empty() {
            true => Ok(()),
            false => self.note_contexts(request),
        }
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

#[inline]
fn is_plain_request(header: Header) -> bool {
    !header.more_fragments && header.message_type == MessageType::Request
}

/// Ends a connection on which octets came that nobody can read on behind.
#[cold]
fn broken(session: &Session, _: DecodeError) -> Next {
    session.say_error();
    Next::Over
}
