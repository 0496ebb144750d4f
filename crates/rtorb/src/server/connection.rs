//! A client's connection as the server sees it: messages in, answers out.

use super::call::{Reply, Scratch};
use super::upcall;
use crate::exception::{ExceptionKind, SystemException};
use crate::inbox::Inbox;
use crate::orb::OrbCore;
use crate::outgoing;
use crate::poa::object_table::NameCache;
use crate::transport::Stream;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::code_sets;
use rtorb_wire::giop::{
    self, Accepted, Header, LocateRequestHeader, LocateStatus, MessageType, RequestHeader, Version,
    contexts,
};
use rtorb_wire::{DecodeError, EncodeError, Writer};
use rustix::io::Errno;
use std::sync::Arc;

/// A connection being served, by one thread at a time.
#[derive(Debug)]
pub(crate) struct ServedConnection {
    orb: Arc<OrbCore>,
    stream: Arc<Stream>,
    inbox: Inbox,
    answering: Answering,
    reassembly: giop::Reassembly,
}

/// What answering needs and keeps from one message to the next.
#[derive(Debug, Default)]
struct Answering {
    out: Vec<u8>,
    scratch: Scratch,
    names: NameCache,
    /// What the client said of its code sets, once it did.
    code_sets: Option<contexts::CodeSets>,
    /// Which of ours that is for `char`.
    char_code_set: CharCodeSet,
    /// The version of the last message: what the connection's own messages are sent in.
    version: Option<Version>,
}

/// What became of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// It goes on.
    Open,
    /// It is over: the peer ended it or broke the rules, or it broke.
    Over,
}

impl ServedConnection {
    pub(crate) fn new(orb: Arc<OrbCore>, stream: Arc<Stream>) -> Self {
        let limits = &orb.limits;
        let inbox = Inbox::new(limits.message_octets_max);
        let reassembly =
            giop::Reassembly::new(limits.message_octets_max, limits.fragment_chains_max);
        Self {
            orb,
            stream,
            inbox,
            answering: Answering::default(),
            reassembly,
        }
    }

    /// Waits for octets and answers what is complete.
    #[inline]
    pub(crate) fn serve_waiting(&mut self) -> Served {
        let received = self.inbox.receive(&self.stream);
        self.serve_received(received)
    }

    /// Answers what is complete of the octets that are there.
    pub(crate) fn serve_ready(&mut self) -> Served {
        let received = self.inbox.receive_now(&self.stream);
        self.serve_received(received)
    }

    /// Tells the client that no request is in progress any more and none will be served (CloseConnection).
    pub(crate) fn say_closing(&mut self) {
        let version = self.answering.version.unwrap_or(Version::V1_0);
        // A client that is gone needs no telling.
        let _ = self.answering.send(&self.orb, &self.stream, |w| {
            giop::write_close_connection(w, version)
        });
    }

    #[inline]
    fn serve_received(&mut self, received: Result<usize, Errno>) -> Served {
        match received {
            Ok(0) => Served::Over,
            Ok(_) => self.serve_complete().unwrap_or_else(|error| {
                self.say_error(error);
                Served::Over
            }),
            Err(Errno::AGAIN | Errno::INTR) => Served::Open,
            Err(_) => Served::Over,
        }
    }

    /// Answers every whole message in the inbox.
    #[inline]
    fn serve_complete(&mut self) -> Result<Served, DecodeError> {
        while let Some(header) = self.inbox.header()? {
            let octets = header.message_octets();
            if self.inbox.len() < octets {
                self.inbox.make_room(octets);
                break;
            }
            self.answering.version = Some(header.version);
            let is_plain = !header.more_fragments && header.message_type == MessageType::Request;
            let served = match is_plain {
                true => self.answering.answer(
                    &self.orb,
                    &self.stream,
                    header,
                    self.inbox.octets(octets),
                )?,
                false => self.accept(header, octets)?,
            };
            self.inbox.consume(octets);
            if served == Served::Over || self.orb.is_stopping() {
                return Ok(Served::Over);
            }
        }
        Ok(Served::Open)
    }

    #[cold]
    fn accept(&mut self, header: Header, octets: usize) -> Result<Served, DecodeError> {
        let message = self.inbox.octets(octets);
        match self.reassembly.accept(&header, message)? {
            Accepted::Whole => self
                .answering
                .answer(&self.orb, &self.stream, header, message),
            Accepted::Kept => Ok(Served::Open),
            Accepted::Message(message) => {
                let header = Header::parse(&message, self.orb.limits.message_octets_max)?;
                let header = header.ok_or(DecodeError::BadMagic)?;
                self.answering
                    .answer(&self.orb, &self.stream, header, &message)
            }
        }
    }

    /// Answers octets that are no GIOP, or break a limit, before the connection is closed.
    #[cold]
    fn say_error(&mut self, _: DecodeError) {
        let version = self.answering.version.unwrap_or(Version::V1_2);
        let _ = self.answering.send(&self.orb, &self.stream, |w| {
            giop::write_message_error(w, version)
        });
    }
}

impl Answering {
    #[inline]
    fn answer(
        &mut self,
        orb: &Arc<OrbCore>,
        stream: &Stream,
        header: Header,
        message: &[u8],
    ) -> Result<Served, DecodeError> {
        match header.message_type {
            MessageType::Request => self.answer_request(orb, stream, header, message),
            MessageType::LocateRequest => self.answer_locate(orb, stream, header, message),
            MessageType::CancelRequest => Ok(Served::Open),
            MessageType::CloseConnection | MessageType::MessageError => Ok(Served::Over),
            // Only a client of ours could be sent these, and it is none on this connection.
            MessageType::Reply | MessageType::LocateReply | MessageType::Fragment => {
                Err(DecodeError::BadTag {
                    what: "the type of a message to a server",
                    value: header.message_type as u32,
                })
            }
        }
    }

    #[inline]
    fn answer_request(
        &mut self,
        orb: &Arc<OrbCore>,
        stream: &Stream,
        header: Header,
        message: &[u8],
    ) -> Result<Served, DecodeError> {
        let mut reader = header.reader(message).with_context(orb);
        let request = RequestHeader::decode(&mut reader)?;
        let refused = match request.contexts.is_empty() {
            true => Ok(()),
            false => self.note_contexts(&request),
        };
        let char_code_set = self.char_code_set;
        let mut reply = Reply {
            orb,
            stream,
            out: &mut self.out,
            version: header.version,
            request_id: request.request_id,
            response: request.response,
            char_code_set,
            broken: None,
            sent: false,
        };
        if let Err(exception) = refused {
            reply.send_exception(&exception);
            return Ok(Served::Open);
        }
        let arguments = reader.with_char_code_set(char_code_set);
        let broken = upcall::serve(
            &request,
            arguments,
            reply,
            &mut self.scratch,
            &mut self.names,
        );
        Ok(if broken.is_some() {
            Served::Over
        } else {
            Served::Open
        })
    }

    /// Takes from a request's service contexts what concerns the connection.
    #[cold]
    fn note_contexts(&mut self, request: &RequestHeader<'_>) -> Result<(), SystemException> {
        let Some(data) = request.contexts.find(contexts::CODE_SETS) else {
            return Ok(());
        };
        let told = contexts::CodeSets::from_data(data)?;
        match self.code_sets {
            Some(known) if known != told => Err(SystemException::omg(ExceptionKind::Marshal, 9)),
            _ => {
                let refused = |_| SystemException::omg(ExceptionKind::CodesetIncompatible, 2);
                self.char_code_set = code_sets::accept(told).map_err(refused)?;
                self.code_sets = Some(told);
                Ok(())
            }
        }
    }

    #[cold]
    fn answer_locate(
        &mut self,
        orb: &Arc<OrbCore>,
        stream: &Stream,
        header: Header,
        message: &[u8],
    ) -> Result<Served, DecodeError> {
        let request = LocateRequestHeader::decode(&mut header.reader(message))?;
        let is_here = upcall::find(orb, request.target.object_key()?, &mut self.names).is_some();
        let status = if is_here {
            LocateStatus::ObjectHere
        } else {
            LocateStatus::UnknownObject
        };
        let sent = self.send(orb, stream, |w| {
            giop::write_locate_reply(w, header.version, request.request_id, status)
        });
        Ok(if sent.is_ok() {
            Served::Open
        } else {
            Served::Over
        })
    }

    /// Sends a message that `write` makes.
    fn send(
        &mut self,
        orb: &OrbCore,
        stream: &Stream,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EncodeError>,
    ) -> Result<(), Errno> {
        let mut w = Writer::new(
            core::mem::take(&mut self.out),
            orb.limits.message_octets_max,
        );
        let written = write(&mut w);
        let sent = match written {
            Ok(()) => outgoing::send(orb, stream, &w),
            Err(_) => Err(Errno::NOMEM),
        };
        self.out = w.into_buffer();
        sent
    }
}
