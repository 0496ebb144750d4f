//! A request as generated code sees it: arguments to read, a reply to write.

use crate::described::Described;
use crate::exception::SystemException;
use crate::interface::UserException;
use crate::reply::{Intervention, Reply, ReplyEnding, Responder};
use alloc::vec::Vec;
use rtorb_wire::giop::Response;
use rtorb_wire::{Decode, Encode, EncodeError, Reader, Writer};

/// One request being served.
#[derive(Debug)]
pub struct ServerCall<'m, R> {
    arguments: Reader<'m>,
    #[doc(hidden)]
    pub reply: Reply<'m, R>,
}

impl<'m, R: Responder> ServerCall<'m, R> {
    /// A call with these arguments.
    #[doc(hidden)]
    #[inline]
    pub const fn new(arguments: Reader<'m>, reply: Reply<'m, R>) -> Self {
        Self { arguments, reply }
    }

    /// Replies before the upcall to a client that waits only for the arrival of its request (SYNC_WITH_SERVER). A proxy has the
    /// reply of another server.
    // Always: it is in the path of every call.
    #[doc(hidden)]
    #[inline(always)]
    pub fn reply_early(&mut self, servant: &dyn Described) {
        if self.reply.response == Response::BeforeInvocation {
            self.reply_unless_proxy(servant);
        }
    }

    #[cold]
    fn reply_unless_proxy(&mut self, servant: &dyn Described) {
        if !servant.is_proxy() {
            self.reply.responder.reply_is_early();
            let _ = self.reply(|_| Ok(()));
        }
    }

    /// Ends the request as an interceptor or a servant manager wants it.
    ///
    /// # Errors
    /// The exception that it raises. The caller [sends](Reply::send_exception) it.
    #[doc(hidden)]
    #[cold]
    pub fn intervene(&mut self, intervention: Intervention) -> Result<(), SystemException> {
        match intervention {
            Intervention::Raise(exception) => Err(exception),
            Intervention::Forward(ior) => {
                let ending = ReplyEnding::Forward(&ior);
                self.reply.respond(ending, |w| ior.encode(w))
            }
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
        let mut items = self.reply.responder.take::<T>();
        self.arguments
            .nested(|r| T::decode_into(&mut items, count, r))?;
        Ok(items)
    }

    /// Returns a sequence's memory for the next request.
    #[inline]
    pub fn recycle<T: Send + 'static>(&mut self, items: Vec<T>) {
        self.reply.responder.keep(items);
    }

    /// Notes that the servant has returned; for annotated operations.
    #[inline]
    pub fn executed(&mut self) {
        self.reply.responder.executed();
    }

    /// True if the client waits for the end of the operation.
    pub fn expects_reply(&self) -> bool {
        self.reply.response == Response::FromTarget
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
        self.reply.send_results(encode)
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
        self.reply.responder.note_user_exception();
        let ending = ReplyEnding::UserException(repository_id);
        self.reply.respond(ending, |w| {
            w.str(repository_id)?;
            encode(w)
        })
    }
}
