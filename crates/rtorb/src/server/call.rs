//! A request as the generated code sees it: arguments to read, a reply to write.

use crate::codegen::UserException;
use crate::exception::{CompletionStatus, SystemException};
use crate::orb::OrbCore;
use crate::outgoing;
use crate::transport::Stream;
use core::any::Any;
use rtorb_wire::cdr::CharCodeSet;
use rtorb_wire::giop::{self, ReplyStatus, Response, SystemExceptionBody, Version};
use rtorb_wire::{Decode, EncodeError, Reader, Writer};
use rustix::io::Errno;

/// One request being served.
#[derive(Debug)]
pub struct ServerCall<'m> {
    pub(super) arguments: Reader<'m>,
    pub(super) reply: Reply<'m>,
    pub(super) scratch: &'m mut Scratch,
}

/// Where and how the reply goes.
#[derive(Debug)]
pub(super) struct Reply<'m> {
    pub(super) orb: &'m OrbCore,
    pub(super) stream: &'m Stream,
    /// The connection's buffer for replies, reused.
    pub(super) out: &'m mut Vec<u8>,
    pub(super) version: Version,
    pub(super) request_id: u32,
    pub(super) response: Response,
    pub(super) char_code_set: CharCodeSet,
    /// Set when the client could not be sent its reply: the connection is of no use any more.
    pub(super) broken: Option<Errno>,
    pub(super) sent: bool,
}

impl<'m> ServerCall<'m> {
    /// The arguments not yet read.
    #[inline]
    pub fn arguments(&mut self) -> &mut Reader<'m> {
        &mut self.arguments
    }

    /// Reads the next argument.
    ///
    /// # Errors
    /// MARSHAL, COMPLETED_NO, when the octets are not such a value.
    #[inline]
    pub fn argument<T: Decode>(&mut self) -> Result<T, SystemException> {
        Ok(T::decode(&mut self.arguments)?)
    }

    /// Reads a sequence into memory that the connection keeps for it; give it back by [`recycle`](Self::recycle).
    ///
    /// # Errors
    /// MARSHAL, COMPLETED_NO, when the octets are not such a sequence.
    #[inline]
    pub fn sequence<T: Decode + Send + 'static>(&mut self) -> Result<Vec<T>, SystemException> {
        let count = self.arguments.count(T::OCTETS_MIN)?;
        let mut items = self.scratch.take::<T>();
        self.arguments
            .nested(|r| T::decode_into(&mut items, count, r))?;
        Ok(items)
    }

    /// Takes a sequence's memory back for the next request.
    #[inline]
    pub fn recycle<T: Send + 'static>(&mut self, items: Vec<T>) {
        self.scratch.keep(items);
    }

    /// Sends the results that `encode` writes; nothing for a oneway.
    ///
    /// # Errors
    /// When a result cannot be represented; the client is sent that exception instead.
    #[inline]
    pub fn reply<'r>(
        &mut self,
        encode: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        self.reply.send(ReplyStatus::NoException, encode)
    }

    /// Sends a user exception; nothing for a oneway.
    ///
    /// # Errors
    /// When a member cannot be represented; the client is sent that exception instead.
    pub fn raise<E: UserException>(&mut self, exception: &E) -> Result<(), SystemException> {
        self.reply.send(ReplyStatus::UserException, |w| {
            w.str(E::REPOSITORY_ID)?;
            exception.encode(w)
        })
    }
}

impl Reply<'_> {
    /// Writes and sends a reply, unless none is due any more.
    #[inline]
    pub(super) fn send<'r>(
        &mut self,
        status: ReplyStatus,
        body: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        if self.sent || self.response == Response::None {
            return Ok(());
        }
        let mut w = Writer::new(
            core::mem::take(self.out),
            self.orb.limits.message_octets_max,
        )
        .with_order(self.orb.byte_order)
        .with_char_code_set(self.char_code_set);
        let encoded = giop::begin_reply(&mut w, self.version, self.request_id, status, &[])
            .and_then(|()| giop::encode_body(&mut w, self.version, body))
            .and_then(|()| giop::end_message(&mut w));
        if encoded.is_ok() {
            self.broken = outgoing::send(self.orb, self.stream, &w).err();
            self.sent = true;
        }
        *self.out = w.into_buffer();
        // Whoever answers has done what was asked: calling again would do it twice.
        encoded.map_err(|error| {
            SystemException::from_encode(error).with_completion(CompletionStatus::Yes)
        })
    }

    /// Sends a system exception.
    #[cold]
    pub(super) fn send_exception(&mut self, exception: &SystemException) {
        let body = SystemExceptionBody {
            repository_id: exception.kind.repository_id().as_bytes(),
            minor: exception.minor,
            completed: exception.completed as u32,
        };
        // A system exception is far below every limit on messages.
        let _ = self.send(ReplyStatus::SystemException, |w| body.encode(w));
    }
}

/// Memory of sequences between one request and the next.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    kept: Vec<Box<dyn Any + Send>>,
}

/// Types of sequences that a connection keeps memory for; others are freed.
const TYPES_MAX: usize = 16;

impl Scratch {
    fn take<T: Send + 'static>(&mut self) -> Vec<T> {
        self.find::<T>().map(core::mem::take).unwrap_or_default()
    }

    fn keep<T: Send + 'static>(&mut self, mut items: Vec<T>) {
        items.clear();
        if let Some(place) = self.find::<T>() {
            *place = items;
        } else if self.kept.len() < TYPES_MAX {
            self.kept.push(Box::new(items));
        }
    }

    fn find<T: Send + 'static>(&mut self) -> Option<&mut Vec<T>> {
        self.kept.iter_mut().find_map(|kept| kept.downcast_mut())
    }
}
