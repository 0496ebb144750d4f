//! The interception of one request of a client.

use super::flow_stack::FlowStack;
use super::{ClientRequestInterceptor, Ending, KEPT_BYTES_MAX, RequestException, add_context};
use crate::exception::{SystemException, local};
use core::cell::RefCell;
use rtorb_wire::giop::{ContextBuffer, ReplyHeader, ReplyStatus};
use rtorb_wire::ior::Ior;
use rtorb_wire::{DecodeError, Reader};
use std::sync::Arc;

/// A request of a client, as an interceptor sees it.
#[derive(Debug)]
pub struct ClientRequest<'r> {
    operation: &'r str,
    target: &'r Ior,
    expects_reply: bool,
    added: &'r mut ContextBuffer,
    received: &'r ContextBuffer,
    note: &'r mut u64,
    is_sent: bool,
}

impl ClientRequest<'_> {
    /// Returns the name of the operation, as it is on the wire: `_get_speed` for an attribute.
    pub fn operation(&self) -> &str {
        self.operation
    }

    /// Returns the reference to which the request goes: after a LOCATION_FORWARD, that of the new location (`effective_target`).
    pub fn target(&self) -> &Ior {
        self.target
    }

    /// Returns false for a oneway.
    pub fn expects_reply(&self) -> bool {
        self.expects_reply
    }

    /// Adds a service context to the request (`add_request_service_context`).
    ///
    /// # Errors
    /// BAD_INV_ORDER 15 if an interceptor has added one with that id, 14 at an ending point; IMP_LIMIT for more than 32 contexts.
    pub fn add_context(&mut self, id: u32, data: &[u8]) -> Result<(), SystemException> {
        if self.is_sent {
            return Err(local::WRONG_POINT);
        }
        add_context(self.added, id, data)
    }

    /// Returns the data of a context that an interceptor has added to the request.
    pub fn context(&self, id: u32) -> Option<&[u8]> {
        self.added.find(id)
    }

    /// Returns the data of a context of the reply (`get_reply_service_context`).
    pub fn reply_context(&self, id: u32) -> Option<&[u8]> {
        self.received.find(id)
    }

    /// Returns what this interceptor noted for the request at its starting point; 0 if nothing.
    pub fn note(&self) -> u64 {
        *self.note
    }

    /// Notes a number for the ending point of this interceptor, such as the beginning of the call or an index.
    pub fn set_note(&mut self, note: u64) {
        *self.note = note;
    }
}

/// What the interceptors of a client know of one request. Later requests use the memory again.
#[derive(Debug, Default)]
pub(crate) struct ClientInterception {
    stack: FlowStack,
    operation: String,
    expects_reply: bool,
    /// The contexts that the interceptors add to the request.
    pub(crate) added: ContextBuffer,
    pub(crate) received: ReceivedReply,
}

/// What a client's interceptors see of a reply.
#[derive(Debug, Default)]
pub(crate) struct ReceivedReply {
    contexts: ContextBuffer,
    /// The repository id of a user exception.
    exception_id: String,
    is_exception: bool,
}

thread_local! {
    /// The memory of this thread for interceptions: one for each call that was in progress at the same time.
    #[expect(clippy::vec_box, reason = "each call takes one out and puts it back: a pointer moves")]
    static IDLE: RefCell<Vec<Box<ClientInterception>>> = const { RefCell::new(Vec::new()) };
}

/// The most interceptions for which a thread keeps memory. More is freed.
const IDLE_MAX: usize = 64;

impl ClientInterception {
    /// Takes memory for the interception of a request.
    pub(crate) fn of(operation: &str, expects_reply: bool) -> Box<Self> {
        let idle = IDLE.try_with(|idle| idle.borrow_mut().pop());
        // A thread that calls from a destructor while it ends has none any more.
        let mut interception = idle.ok().flatten().unwrap_or_default();
        interception.begin(operation, expects_reply);
        interception
    }

    /// Begins the interception of a request.
    pub(crate) fn begin(&mut self, operation: &str, expects_reply: bool) {
        self.operation.clear();
        self.operation.push_str(operation);
        self.expects_reply = expects_reply;
    }

    /// Keeps the memory for the next request of this thread.
    pub(crate) fn keep(self: Box<Self>) {
        let _ = IDLE.try_with(|idle| {
            let mut idle = idle.borrow_mut();
            if idle.len() < IDLE_MAX {
                idle.push(self);
            }
        });
    }

    /// Calls the starting points.
    ///
    /// # Errors
    /// The ending of a request that is not sent, for [`end`](Self::end).
    pub(crate) fn start(
        &mut self,
        interceptors: &[Arc<dyn ClientRequestInterceptor>],
        target: &Ior,
    ) -> Result<(), Ending> {
        self.stack.clear();
        self.added.clear(KEPT_BYTES_MAX);
        self.received.clear();
        for (index, interceptor) in interceptors.iter().enumerate() {
            interceptor.send_request(&mut ClientRequest {
                operation: &self.operation,
                target,
                expects_reply: self.expects_reply,
                added: &mut self.added,
                received: &self.received.contexts,
                note: self.stack.note(index),
                is_sent: false,
            })?;
            self.stack.push();
        }
        Ok(())
    }

    /// Calls the ending points. Returns how the request ends.
    //= CORBA 3 §The Flow Stack Visual Model
    //# Each interceptor whose starting point was called gets one ending point, in reverse order. What one raises replaces the ending.
    pub(crate) fn end(
        &mut self,
        interceptors: &[Arc<dyn ClientRequestInterceptor>],
        target: &Ior,
        mut ending: Ending,
    ) -> Ending {
        while let Some(index) = self.stack.pop() {
            let interceptor = &interceptors[index];
            let request = &mut ClientRequest {
                operation: &self.operation,
                target,
                expects_reply: self.expects_reply,
                added: &mut self.added,
                received: &self.received.contexts,
                note: self.stack.note(index),
                is_sent: true,
            };
            let point = match &ending {
                Ending::Results => interceptor.receive_reply(request).map_err(Into::into),
                Ending::UserException => {
                    let exception = RequestException::User(&self.received.exception_id);
                    interceptor.receive_exception(request, exception)
                }
                Ending::SystemException(exception) => {
                    interceptor.receive_exception(request, RequestException::System(exception))
                }
                Ending::Other(other) => interceptor.receive_other(request, other),
            };
            ending = ending.after(point);
        }
        ending
    }
}

impl ReceivedReply {
    fn clear(&mut self) {
        self.contexts.clear(KEPT_BYTES_MAX);
        self.is_exception = false;
    }

    /// Reads a reply: notes what interceptors may ask for, and has `results` read the body, unless that was read before.
    pub(crate) fn read(
        &mut self,
        status: ReplyStatus,
        body: &mut Reader<'_>,
        results: &mut dyn FnMut(ReplyStatus, &mut Reader<'_>) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        self.note(status, body);
        match status {
            ReplyStatus::NoException | ReplyStatus::UserException => results(status, body),
            _ => Ok(()),
        }
    }

    fn note(&mut self, status: ReplyStatus, body: &Reader<'_>) {
        self.clear();
        for context in ReplyHeader::contexts_before(body) {
            self.contexts.add(context.id, context.data);
        }
        if status == ReplyStatus::UserException {
            self.is_exception = true;
            let id = ReplyHeader::exception_after(body);
            self.exception_id.clear();
            self.exception_id
                .push_str(core::str::from_utf8(id).unwrap_or_default());
        }
    }

    /// Returns the ending of a request that got this reply.
    pub(crate) fn ending(&self) -> Ending {
        if self.is_exception {
            Ending::UserException
        } else {
            Ending::Results
        }
    }
}
