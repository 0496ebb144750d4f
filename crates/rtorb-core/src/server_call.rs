//! A request as generated code sees it: arguments to read, a reply to write.

use crate::exception::SystemException;
use crate::interface::UserException;
use alloc::vec::Vec;
use rtorb_wire::giop::ReplyStatus;
use rtorb_wire::{Decode, EncodeError, Reader, Writer};

/// One request being served.
#[derive(Debug)]
pub struct ServerCall<'m, R> {
    arguments: Reader<'m>,
    #[doc(hidden)]
    pub responder: R,
}

/// What an ORB does for a request that it serves.
pub trait Responder {
    /// Writes and sends a reply, unless it was sent already or none is expected.
    ///
    /// # Errors
    /// When a value cannot be encoded; the client gets that exception instead.
    fn respond<'r>(
        &mut self,
        status: ReplyStatus,
        body: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException>;

    /// True if the client waits for the end of the operation.
    fn expects_reply(&self) -> bool;

    /// Returns an empty vector, if possible with the memory of one that was [kept](Self::keep).
    #[inline]
    fn take<T: Send + 'static>(&mut self) -> Vec<T> {
        Vec::new()
    }

    /// Keeps the memory of a vector for later requests, if possible.
    #[inline]
    fn keep<T: Send + 'static>(&mut self, items: Vec<T>) {
        drop(items);
    }

    /// Notes that the servant has returned; for annotated operations.
    #[inline]
    fn executed(&mut self) {}
}

impl<'m, R: Responder> ServerCall<'m, R> {
    /// A call with these arguments.
    #[doc(hidden)]
    #[inline]
    pub const fn new(arguments: Reader<'m>, responder: R) -> Self {
        Self {
            arguments,
            responder,
        }
    }

    /// The arguments not yet read.
    #[inline]
    pub const fn arguments(&mut self) -> &mut Reader<'m> {
        &mut self.arguments
    }

    /// Reads the next argument.
    ///
    /// # Errors
    /// MARSHAL, COMPLETED_NO, when the bytes are not such a value.
    #[inline]
    pub fn argument<T: Decode>(&mut self) -> Result<T, SystemException> {
        Ok(T::decode(&mut self.arguments)?)
    }

    /// Reads a sequence into memory that the ORB may keep; return it with [`recycle`](Self::recycle).
    ///
    /// # Errors
    /// MARSHAL, COMPLETED_NO, when the bytes are not such a sequence.
    #[inline]
    pub fn sequence<T: Decode + Send + 'static>(&mut self) -> Result<Vec<T>, SystemException> {
        let count = self.arguments.count(T::BYTES_MIN)?;
        let mut items = self.responder.take::<T>();
        self.arguments
            .nested(|r| T::decode_into(&mut items, count, r))?;
        Ok(items)
    }

    /// Returns a sequence's memory for the next request.
    #[inline]
    pub fn recycle<T: Send + 'static>(&mut self, items: Vec<T>) {
        self.responder.keep(items);
    }

    /// Notes that the servant has returned; for annotated operations.
    #[inline]
    pub fn executed(&mut self) {
        self.responder.executed();
    }

    /// True if the client waits for the end of the operation.
    pub fn expects_reply(&self) -> bool {
        self.responder.expects_reply()
    }

    /// Sends the results that `encode` writes. Sends nothing for a oneway.
    ///
    /// # Errors
    /// When a result cannot be encoded; the client gets that exception instead.
    #[inline]
    pub fn reply<'r>(
        &mut self,
        encode: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        self.responder.respond(ReplyStatus::NoException, encode)
    }

    /// Sends a user exception. Sends nothing for a oneway.
    ///
    /// # Errors
    /// When a member cannot be encoded; the client gets that exception instead.
    pub fn raise<E: UserException>(&mut self, exception: &E) -> Result<(), SystemException> {
        self.raise_with(E::REPOSITORY_ID, |w| exception.encode(w))
    }

    /// Sends a user exception with that repository id and the members that `encode` writes. Sends nothing for a oneway.
    ///
    /// # Errors
    /// When a member cannot be encoded; the client gets that exception instead.
    pub fn raise_with<'r>(
        &mut self,
        repository_id: &str,
        encode: impl FnOnce(&mut Writer<'r>) -> Result<(), EncodeError>,
    ) -> Result<(), SystemException> {
        self.responder.respond(ReplyStatus::UserException, |w| {
            w.str(repository_id)?;
            encode(w)
        })
    }
}
